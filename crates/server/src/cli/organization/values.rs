//! Settings as they are typed: the rules of contract §2.2, with sentences for a terminal.

use domain::money::BasisPoints;
use domain::organization::Locale;
use domain::{Method, Msisdn};

use crate::names::composed;
use crate::plausible::{LONGEST_EMAIL, LONGEST_URL, is_email, is_visible, is_web_address};

/// A year: no rail settles later.
const LONGEST_DELAY_S: u32 = 366 * 86_400;

/// A setting that an empty text clears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clearable(pub(super) Option<String>);

type Read<T> = Result<T, String>;

fn clearable(text: &str, check: impl FnOnce(&str) -> Read<String>) -> Read<Clearable> {
    if text.is_empty() { Ok(Clearable(None)) } else { check(text).map(|text| Clearable(Some(text))) }
}

fn bounded(text: &str, most: usize) -> Read<String> {
    match text.chars().count() {
        _ if text.contains('\0') => Err("it must not contain U+0000".into()),
        count if count > most => Err(format!("at most {most} characters, these are {count}")),
        _ => Ok(text.to_owned()),
    }
}

pub(super) fn name(text: &str) -> Read<String> {
    match text {
        _ if !is_visible(text) => Err("a name can't be empty".into()),
        _ if text.chars().any(char::is_control) => {
            Err("a name has no control characters, such as the end of a line".into())
        }
        _ => bounded(&composed(text), 200),
    }
}

pub(super) fn url(text: &str) -> Read<Clearable> {
    clearable(text, |text| {
        if text.len() <= LONGEST_URL && is_web_address(text) {
            Ok(text.to_owned())
        } else {
            Err("the absolute address of a PNG, JPEG or WebP file, such as https://shop.example/logo.png".into())
        }
    })
}

pub(super) fn color(text: &str) -> Read<Clearable> {
    clearable(text, |text| match text.strip_prefix('#') {
        Some(digits) if digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Ok(text.to_ascii_lowercase())
        }
        _ => Err("a colour is written as #1a2b3c".into()),
    })
}

pub(super) fn address(text: &str) -> Read<Clearable> {
    clearable(text, |text| bounded(text, 2000))
}

pub(super) fn phone(text: &str) -> Read<Clearable> {
    clearable(text, |text| {
        let phone = Msisdn::parse(text).map_err(|_| "a phone number is written as +2207000000 or as 7 digits")?;
        Ok(phone.as_str().to_owned())
    })
}

pub(super) fn email(text: &str) -> Read<Clearable> {
    clearable(text, |text| {
        let sound = text.len() <= LONGEST_EMAIL && is_email(text);
        if sound { Ok(text.to_owned()) } else { Err("an e-mail address, such as awa@example.gm".into()) }
    })
}

pub(super) fn tax_id(text: &str) -> Read<Clearable> {
    clearable(text, |text| bounded(text, 200))
}

pub(super) fn locale(text: &str) -> Read<Locale> {
    Locale::parse(text).ok_or_else(|| "en or fr".into())
}

pub(super) fn method(text: &str) -> Read<Method> {
    Method::parse(text.trim()).ok_or_else(|| format!("{text:?} is none of wave, afrimoney, qmoney, card"))
}

/// `wave=2.5%`; the sign may be left out.
pub(super) fn fee(text: &str) -> Read<(Method, BasisPoints)> {
    let (name, percent) = text.split_once('=').ok_or("such as wave=2.5%")?;
    Ok((method(name)?, basis_points(percent.trim())?))
}

fn basis_points(text: &str) -> Read<BasisPoints> {
    let malformed = || "a percentage from 0 to 100 with at most 2 decimals, such as 2.5%".to_owned();
    let number = text.strip_suffix('%').unwrap_or(text);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str, most| (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole, 3) || !digits(fraction, 2) {
        return Err(malformed());
    }
    // Decimal to the hundredth of a percent, without a float.
    let points: u32 = format!("{whole}{fraction:0<2}").parse().map_err(|_| malformed())?;
    BasisPoints::new(points).ok_or_else(malformed)
}

/// As it is typed: `2.5`.
pub(super) fn percent(rate: BasisPoints) -> String {
    let text = format!("{}.{:02}", rate.get() / 100, rate.get() % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn delay(text: &str) -> Read<u32> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, "s"),
    };
    let seconds = match unit {
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => 1,
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let delay = number.parse::<u32>().ok().filter(|_| is_number).and_then(|number| number.checked_mul(seconds));
    delay
        .filter(|delay| *delay <= LONGEST_DELAY_S)
        .ok_or_else(|| "seconds, or a number with s, m, h or d, up to 366d".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fees_are_exact_hundredths_of_a_percent() {
        let points = |text| fee(text).map(|(_, rate)| rate.get());
        for (text, expected) in
            [("wave=2.5%", 250), ("card=3.25", 325), ("wave=0%", 0), ("qmoney=100%", 10_000), ("wave=0.07%", 7)]
        {
            assert_eq!(points(text), Ok(expected), "{text}");
            let rate = fee(text).unwrap().1;
            assert_eq!(basis_points(&percent(rate)), Ok(rate), "{text}");
        }
        for text in [
            "wave",
            "cash=1%",
            "wave=",
            "wave=%",
            "wave=-1%",
            "wave=100.01%",
            "wave=1.234%",
            "wave=1e1",
            "wave=2,5",
            "wave=.5",
        ] {
            assert!(fee(text).is_err(), "{text}");
        }
    }

    #[test]
    fn delays_have_units() {
        for (text, expected) in [("0", 0), ("90", 90), ("90s", 90), ("2m", 120), ("12h", 43_200), ("2d", 172_800)] {
            assert_eq!(delay(text), Ok(expected), "{text}");
        }
        for text in ["", "d", "-1", "+1", "1w", "1.5h", "367d", "99999999999"] {
            assert!(delay(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_empty_text_clears() {
        assert_eq!(url(""), Ok(Clearable(None)));
        assert_eq!(color("#0B6E4F"), Ok(Clearable(Some("#0b6e4f".into()))));
        assert_eq!(phone("7000000"), Ok(Clearable(Some("+2207000000".into()))));
        assert!(name("Kairaba\nBooks").is_err() && name("Kairaba\u{1b}[2J").is_err());
        assert!(name(" ").is_err() && color("green").is_err() && url("javascript:1").is_err() && email("a@b").is_err());
    }
}
