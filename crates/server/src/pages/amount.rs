//! An amount as a person reads it, in the manner of the page's language. Integers throughout: the
//! digits that are shown are the digits that are charged.

use super::text::Locale;
use super::view::Amount;

/// U+202F, which French puts between thousands.
const NARROW_SPACE: char = '\u{202f}';
/// U+00A0, so that the currency never stands alone on a line.
const FIXED_SPACE: char = '\u{a0}';

/// `1,500.00 GMD`, in French `1 500,00 GMD`.
pub fn format(amount: &Amount, locale: Locale) -> String {
    format!("{}{FIXED_SPACE}{}", digits(amount, locale), amount.currency)
}

/// The number without its currency.
pub fn digits(amount: &Amount, locale: Locale) -> String {
    let (group, point) = match locale {
        Locale::English => (',', '.'),
        Locale::French => (NARROW_SPACE, ','),
    };
    let exponent = usize::from(amount.exponent);
    let all = format!("{:0>width$}", amount.minor.unsigned_abs(), width = exponent + 1);
    let (whole, fraction) = all.split_at(all.len() - exponent);

    let mut out = String::with_capacity(all.len() + all.len() / 3 + 4);
    if amount.minor < 0 {
        out.push('\u{2212}');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(group);
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push(point);
        out.push_str(fraction);
    }
    out
}

/// How a page sets its amount: smaller when it is long, so that it keeps to its line on a small phone.
pub fn class(digits: &str) -> &'static str {
    match digits.chars().count() {
        0..=8 => "amount",
        9..=12 => "amount long",
        _ => "amount longer",
    }
}

/// An amount as a payer would type it, from how the API writes it.
pub fn to_type(text: &str, locale: Locale) -> String {
    match locale {
        Locale::English => text.to_owned(),
        Locale::French => text.replace('.', ","),
    }
}

/// An amount that a payer could type, to show how: `50.00`, in French `50,00`, and `50` in a currency without decimals.
pub fn example(exponent: u8, locale: Locale) -> String {
    let minor = 50 * 10_i64.pow(u32::from(exponent));
    digits(&Amount { minor, exponent, currency: String::new() }, locale)
}

/// The number of a rate in percent: `7.5`, in French `7,5`.
pub fn rate(percent: &str, locale: Locale) -> String {
    to_type(percent, locale)
}

/// An amount as a payer typed it, as the API writes it: with a point and nothing between thousands. Where the language
/// leaves open what was meant, it is none.
pub fn typed(text: &str, locale: Locale) -> Option<String> {
    let text: String = text.chars().filter(|it| !it.is_whitespace()).collect();
    match locale {
        Locale::English => {
            let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(it, rest)| (it, Some(rest)));
            let mut groups = whole.split(',');
            let first = groups.next()?;
            let are_groups = (1..=3).contains(&first.len()) && groups.clone().all(|group| group.len() == 3);
            if whole.contains(',') && !are_groups {
                return None;
            }
            let whole: String = whole.split(',').collect();
            Some(fraction.map_or(whole.clone(), |fraction| format!("{whole}.{fraction}")))
        }
        Locale::French if text.contains('.') && text.contains(',') => None,
        Locale::French => Some(text.replace(',', ".")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_a_field_is_read_as_it_was_meant() {
        assert_eq!(to_type("1250.50", Locale::French), "1250,50");
        for locale in Locale::ALL {
            for text in ["1250.50", "0.05", "1500", "999999.99"] {
                assert_eq!(typed(&to_type(text, locale), locale).as_deref(), Some(text));
            }
        }
    }

    #[test]
    fn an_example_has_the_decimals_of_its_currency() {
        for (exponent, english, french) in [(0, "50", "50"), (2, "50.00", "50,00"), (3, "50.000", "50,000")] {
            assert_eq!(example(exponent, Locale::English), english);
            assert_eq!(example(exponent, Locale::French), french);
        }
    }

    #[test]
    fn what_is_typed_is_read_as_its_language_means_it() {
        let table = [
            ("50", Some("50"), Some("50")),
            (" 50.00 ", Some("50.00"), Some("50.00")),
            ("50,00", None, Some("50.00")),
            ("1,500", Some("1500"), Some("1.500")),
            ("1,500.00", Some("1500.00"), None),
            ("1 500,00", None, Some("1500.00")),
            ("1\u{202f}500,5", None, Some("1500.5")),
            ("1,50,000", None, Some("1.50.000")),
            ("1234,567", None, Some("1234.567")),
            (",5", None, Some(".5")),
            ("", Some(""), Some("")),
            ("ten", Some("ten"), Some("ten")),
        ];
        for (text, english, french) in table {
            assert_eq!(typed(text, Locale::English).as_deref(), english, "{text:?}");
            assert_eq!(typed(text, Locale::French).as_deref(), french, "{text:?}");
        }
    }

    #[test]
    fn amounts_read_as_their_language_writes_them() {
        let table = [
            (150_000, 2, "1,500.00", "1\u{202f}500,00"),
            (0, 2, "0.00", "0,00"),
            (5, 2, "0.05", "0,05"),
            (99_999, 2, "999.99", "999,99"),
            (100_000_000, 2, "1,000,000.00", "1\u{202f}000\u{202f}000,00"),
            (1500, 0, "1,500", "1\u{202f}500"),
            (1, 3, "0.001", "0,001"),
            (-123_456, 2, "\u{2212}1,234.56", "\u{2212}1\u{202f}234,56"),
            (i64::MAX, 2, "92,233,720,368,547,758.07", "92\u{202f}233\u{202f}720\u{202f}368\u{202f}547\u{202f}758,07"),
            (
                i64::MIN,
                2,
                "\u{2212}92,233,720,368,547,758.08",
                "\u{2212}92\u{202f}233\u{202f}720\u{202f}368\u{202f}547\u{202f}758,08",
            ),
        ];
        for (minor, exponent, english, french) in table {
            let amount = Amount { minor, exponent, currency: "GMD".into() };
            assert_eq!(digits(&amount, Locale::English), english);
            assert_eq!(digits(&amount, Locale::French), french);
        }
    }

    #[test]
    fn the_currency_stays_with_its_number() {
        let amount = Amount { minor: 150_000, exponent: 2, currency: "GMD".into() };
        assert_eq!(format(&amount, Locale::English), "1,500.00\u{a0}GMD");
    }
}
