//! Amounts, rates and dates as the document's language writes them. Integers throughout: the digits that are shown are
//! the digits that are owed.

use crate::values::{Currency, Date, Locale, Moment};
use crate::words::Words;

/// U+00A0: what it joins never stands apart.
const FIXED_SPACE: char = '\u{a0}';
/// U+202F, which French puts between thousands.
const NARROW_SPACE: char = '\u{202f}';

/// `1,500.00 GMD`, in French `1 500,00 GMD`.
pub(crate) fn amount(minor: i64, currency: &Currency, locale: Locale) -> String {
    format!("{}{FIXED_SPACE}{}", digits(minor, currency.exponent, locale), crate::clean::line(&currency.code))
}

/// The number without its currency.
pub(crate) fn digits(minor: i64, exponent: u8, locale: Locale) -> String {
    let (group, point) = match locale {
        Locale::English => (',', '.'),
        Locale::French => (NARROW_SPACE, ','),
    };
    let exponent = usize::from(exponent);
    let all = format!("{:0>width$}", minor.unsigned_abs(), width = exponent + 1);
    let (whole, fraction) = all.split_at(all.len() - exponent);

    let mut out = String::with_capacity(all.len() + all.len() / 3 + 4);
    if minor < 0 {
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

/// `7.5%`, in French `7,5 %`.
pub(crate) fn rate(percent: &str, locale: Locale) -> String {
    let percent = crate::clean::line(percent);
    match locale {
        Locale::English => format!("{percent}%"),
        Locale::French => format!("{}{FIXED_SPACE}%", percent.replace('.', ",")),
    }
}

/// `14 March 2026`, in French `14 mars 2026` and `1er mars 2026`.
pub(crate) fn date(date: Date, locale: Locale, words: &Words) -> String {
    let month = usize::from(date.month).checked_sub(1).and_then(|it| words.months.get(it)).copied().unwrap_or("?");
    let first = if locale == Locale::French && date.day == 1 { "er" } else { "" };
    format!("{}{first}{FIXED_SPACE}{month}{FIXED_SPACE}{}", date.day, date.year)
}

/// `14 March 2026, 15:05 GMT`.
pub(crate) fn moment(moment: Moment, locale: Locale, words: &Words) -> String {
    let day = date(moment.date, locale, words);
    format!("{day}{} {:02}:{:02}{FIXED_SPACE}GMT", words.before_the_time, moment.hour, moment.minute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    #[test]
    fn amounts_read_as_their_language_writes_them() {
        let table = [
            (150_000, 2, "1,500.00", "1\u{202f}500,00"),
            (5, 2, "0.05", "0,05"),
            (1500, 0, "1,500", "1\u{202f}500"),
            (1, 3, "0.001", "0,001"),
            (
                i64::MIN,
                2,
                "\u{2212}92,233,720,368,547,758.08",
                "\u{2212}92\u{202f}233\u{202f}720\u{202f}368\u{202f}547\u{202f}758,08",
            ),
        ];
        for (minor, exponent, english, french) in table {
            assert_eq!(digits(minor, exponent, Locale::English), english);
            assert_eq!(digits(minor, exponent, Locale::French), french);
        }
    }

    #[test]
    fn dates_and_rates_too() {
        let (english, french) = (words::of(Locale::English), words::of(Locale::French));
        let first = Date { year: 2026, month: 8, day: 1 };
        assert_eq!(date(first, Locale::English, english), "1\u{a0}August\u{a0}2026");
        assert_eq!(date(first, Locale::French, french), "1er\u{a0}août\u{a0}2026");
        let at = Moment { date: first, hour: 9, minute: 5, second: 59 };
        assert_eq!(moment(at, Locale::English, english), "1\u{a0}August\u{a0}2026, 09:05\u{a0}GMT");
        assert_eq!(moment(at, Locale::French, french), "1er\u{a0}août\u{a0}2026 à 09:05\u{a0}GMT");
        assert_eq!(date(Date { year: -1, month: 0, day: 0 }, Locale::English, english), "0\u{a0}?\u{a0}-1");
        assert_eq!(rate("7.5", Locale::English), "7.5%");
        assert_eq!(rate("7.5", Locale::French), "7,5\u{a0}%");
    }
}
