//! Moments and spans in words. Times are Banjul's, which is UTC all year.

use super::text::{Locale, Text};
use super::view::TimeLeft;

/// `14 March 2026, 15:05 (Banjul time)` from Unix seconds.
pub fn in_words(unix_seconds: i64, text: Text) -> String {
    let Some(moment) = zoned(unix_seconds) else { return String::new() };
    let time = format!("{:02}:{:02}", moment.hour(), moment.minute());
    text.with_two("moment", ("day", &day_of(&moment, text)), ("time", &time))
}

/// `14 March 2026` from Unix seconds.
pub fn day(unix_seconds: i64, text: Text) -> String {
    zoned(unix_seconds).map(|moment| day_of(&moment, text)).unwrap_or_default()
}

fn zoned(unix_seconds: i64) -> Option<jiff::Zoned> {
    let moment = jiff::Timestamp::from_second(unix_seconds).ok()?;
    Some(moment.to_zoned(jiff::tz::TimeZone::UTC))
}

fn day_of(moment: &jiff::Zoned, text: Text) -> String {
    let month = text.get(MONTHS[usize::from(moment.month().unsigned_abs()) - 1]);
    let first = if text.locale == Locale::French && moment.day() == 1 { "er" } else { "" };
    format!("{}{first}\u{a0}{month}\u{a0}{}", moment.day(), moment.year())
}

const MONTHS: [&str; 12] = [
    "month-1", "month-2", "month-3", "month-4", "month-5", "month-6", "month-7", "month-8", "month-9", "month-10",
    "month-11", "month-12",
];

/// Only the last quarter of a session's life is worth a word; before it the answer is `None`, and from the end on
/// too, since then the page says that it has expired. All in Unix seconds.
pub fn time_left(created_at: i64, expires_at: i64, now: i64) -> Option<TimeLeft> {
    let life = expires_at.saturating_sub(created_at);
    let left = expires_at.saturating_sub(now);
    if left <= 0 || left.saturating_mul(4) > life {
        return None;
    }
    // Rounded down: a page that promises too little disappoints nobody.
    let minutes = u32::try_from(left / 60).unwrap_or(u32::MAX);
    Some(match minutes {
        0 => TimeLeft::LessThanAMinute,
        1..=119 => TimeLeft::Minutes(minutes),
        _ => TimeLeft::Hours(minutes / 60),
    })
}

/// In words, from when on it is worth one.
pub fn left_in_words(left: TimeLeft, text: Text) -> String {
    match left {
        TimeLeft::Hours(hours) => text.count("left-hours", hours),
        TimeLeft::Minutes(minutes) => text.count("left-minutes", minutes),
        TimeLeft::LessThanAMinute => text.get("left-seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_as_its_language_says_it() {
        let at = 1_773_500_700;
        let english = in_words(at, Text::new(Locale::English));
        let french = in_words(at, Text::new(Locale::French));
        assert_eq!(english, "14\u{a0}March\u{a0}2026, 15:05 (Banjul time)");
        assert_eq!(french, "14\u{a0}mars\u{a0}2026 à 15:05 (heure de Banjul)");
        assert_eq!(in_words(i64::MAX, Text::new(Locale::English)), "");
        assert_eq!(day(at, Text::new(Locale::English)), "14\u{a0}March\u{a0}2026");
        assert_eq!(day(at, Text::new(Locale::French)), "14\u{a0}mars\u{a0}2026");
        let first = at - 13 * 86_400;
        assert_eq!(day(first, Text::new(Locale::English)), "1\u{a0}March\u{a0}2026");
        assert_eq!(day(first, Text::new(Locale::French)), "1er\u{a0}mars\u{a0}2026");
        assert_eq!(day(i64::MAX, Text::new(Locale::French)), "");
    }

    #[test]
    fn time_is_mentioned_only_in_the_last_quarter() {
        let day = 86_400;
        let table = [
            (day, 0, None),
            (day, day * 3 / 4 - 1, None),
            (day, day * 3 / 4, Some(TimeLeft::Hours(6))),
            (day, day - 7200, Some(TimeLeft::Hours(2))),
            (day, day - 7199, Some(TimeLeft::Minutes(119))),
            (day, day - 60, Some(TimeLeft::Minutes(1))),
            (day, day - 59, Some(TimeLeft::LessThanAMinute)),
            (day, day, None),
            (day, day + 5, None),
            (60, 44, None),
            (60, 45, Some(TimeLeft::LessThanAMinute)),
        ];
        for (life, now, words) in table {
            assert_eq!(time_left(0, life, now), words, "life {life}, now {now}");
        }
    }
}
