//! Points in time, in microseconds of UTC. Reading a clock is the shell's business.

use std::time::Duration;

use jiff::civil;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::TimeZone;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

const MICROS: i64 = 1_000_000;
/// 9999-12-30T21:59:59Z: the last second that the calendar library and every client can still print.
const LATEST_S: i64 = 253_402_207_199;

const SECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(0));
const MICROSECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// The text is not a time that contract §0 (Time) accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedTime;

impl Timestamp {
    /// The last whole second that can be printed in every zone.
    pub const LATEST: Self = Self(LATEST_S * MICROS);

    pub fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// What was stored, which somebody may have altered.
    pub fn from_stored(micros: i64) -> Result<Self, MalformedTime> {
        if (0..=LATEST_S * MICROS + MICROS - 1).contains(&micros) { Ok(Self(micros)) } else { Err(MalformedTime) }
    }

    pub fn micros(self) -> i64 {
        self.0
    }

    /// Whole Unix seconds, rounded down.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(MICROS)
    }

    pub fn floor_to_second(self) -> Self {
        Self(self.seconds() * MICROS)
    }

    pub fn plus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(LATEST_S * MICROS))
    }

    pub fn minus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(micros))
    }

    /// The time from `earlier` to this one; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// `2026-11-21T03:45:58Z`: how every object but the invoice prints its times.
    pub fn to_text(self) -> String {
        SECONDS.timestamp_to_string(&self.jiff())
    }

    /// `2026-11-21T03:45:58.000123Z`
    pub fn to_text_micros(self) -> String {
        MICROSECONDS.timestamp_to_string(&self.jiff())
    }

    /// RFC 3339; a date-time without offset is UTC (what the SDK sends).
    pub fn parse(text: &str) -> Result<Self, MalformedTime> {
        // The strict shape first: the calendar library reads more than the contract allows.
        let bytes = text.as_bytes();
        let digits =
            |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
        let shaped = bytes.len() >= 19
            && digits(0..4)
            && digits(5..7)
            && digits(8..10)
            && digits(11..13)
            && digits(14..16)
            && digits(17..19)
            && bytes[4] == b'-'
            && bytes[7] == b'-'
            && matches!(bytes[10], b'T' | b't' | b' ')
            && bytes[13] == b':'
            && bytes[16] == b':';
        if !shaped {
            return Err(MalformedTime);
        }
        let rest = &text[19..];
        let fraction = rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
        let zone = if rest.starts_with('.') { &rest[1 + fraction..] } else { rest };
        let zoned = match zone.as_bytes() {
            [] => false,
            [b'Z' | b'z'] => true,
            [b'+' | b'-', hour, hours, b':', minute, minutes]
                if [hour, hours, minute, minutes].iter().all(|digit| digit.is_ascii_digit())
                    // RFC 3339 knows no offset of a day; the calendar library does.
                    && [*hour, *hours] <= *b"23" =>
            {
                true
            }
            _ => return Err(MalformedTime),
        };
        let stamp = if zoned {
            text.parse::<jiff::Timestamp>().map_err(|_| MalformedTime)?
        } else {
            let civil = text.parse::<civil::DateTime>().map_err(|_| MalformedTime)?;
            civil.to_zoned(TimeZone::UTC).map_err(|_| MalformedTime)?.timestamp()
        };
        Self::in_range(stamp)
    }

    /// The first and the last moment of a day (UTC) written `YYYY-MM-DD`.
    pub fn parse_day(text: &str) -> Result<(Self, Self), MalformedTime> {
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
            return Err(MalformedTime);
        }
        let date = text.parse::<civil::Date>().map_err(|_| MalformedTime)?;
        let start = Self::in_range(date.to_zoned(TimeZone::UTC).map_err(|_| MalformedTime)?.timestamp())?;
        let end = Self::from_stored(start.0 + 86_400 * MICROS - 1)?;
        Ok((start, end))
    }

    /// As [`Timestamp::parse`], for one end of what is looked for: outside of all times it is the first or the last of them.
    pub fn parse_bound(text: &str) -> Result<Self, MalformedTime> {
        Self::parse(text).or_else(|fault| {
            let (inside, end) = outside(text).ok_or(fault)?;
            Self::parse(&inside).map(|_| end)
        })
    }

    /// As [`Timestamp::parse_day`], likewise.
    pub fn parse_day_bounds(text: &str) -> Result<(Self, Self), MalformedTime> {
        Self::parse_day(text).or_else(|fault| {
            let (inside, end) = outside(text).ok_or(fault)?;
            Self::parse_day(&inside).map(|_| (end, end))
        })
    }

    fn in_range(stamp: jiff::Timestamp) -> Result<Self, MalformedTime> {
        // Its microseconds are cut towards 1970, which would take what lies just before for it.
        if stamp < jiff::Timestamp::UNIX_EPOCH { Err(MalformedTime) } else { Self::from_stored(stamp.as_microsecond()) }
    }

    fn jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_microsecond(self.0).expect("times are bounded where they enter")
    }
}

/// What would be a time but for its year: the same in a year that is one in all else, since the calendar repeats itself after
/// 400 years, and the time that is nearest.
fn outside(text: &str) -> Option<(String, Timestamp)> {
    let (year, rest) = text.split_at_checked(4)?;
    if !year.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let year: u16 = year.parse().ok()?;
    let end = match year {
        ..=1970 => Timestamp(0),
        9999 => Timestamp::LATEST,
        _ => return None,
    };
    Some((format!("{}{rest}", 2000 + year % 400), end))
}

/// A document with a time that nobody could print does not parse.
impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let micros = i64::deserialize(deserializer)?;
        Self::from_stored(micros).map_err(|_| D::Error::custom(format!("{micros} is no time from 1970 to 9999")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_clients_send() {
        let expected = Ok(Timestamp(1_704_067_200 * MICROS));
        for text in [
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00Z",
            "2024-01-01T00:00:00+00:00",
            "2024-01-01T02:00:00+02:00",
            "2024-01-01T00:00:00.000000",
        ] {
            assert_eq!(Timestamp::parse(text), expected, "{text}");
        }
        for text in [
            "",
            "2024-01-01",
            "2024-13-01T00:00:00Z",
            "2024-01-01T25:00:00Z",
            "yesterday",
            "1704067200",
            "2024-02-30T00:00:00Z",
            "2024-01-01T00:00",
            "10000-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(text), Err(MalformedTime), "{text}");
        }
    }

    #[test]
    fn a_day_has_both_ends() {
        let (start, end) = Timestamp::parse_day("2024-02-29").unwrap();
        assert_eq!(start.to_text(), "2024-02-29T00:00:00Z");
        assert_eq!(end.to_text_micros(), "2024-02-29T23:59:59.999999Z");
        assert!(Timestamp::parse_day("2023-02-29").is_err());
    }

    #[test]
    fn refuses_what_the_calendar_library_would_take() {
        for text in [
            "2024-01-01T00:00:00Z[UTC]",
            "2024-01-01T00:00:00[Africa/Banjul]",
            "2024-01-01T00:00:00+00:00[UTC]",
            "2024-01-01T00:00:00+02",
            "2024-01-01T00:00:00+0200",
            "2024-01-01T00:00:00+02:00:00",
            "2024-01-01T00:00:00+24:00",
            "2024-01-01T00:00:00-25:30",
            "1969-12-31T23:59:59.999999999Z",
            "2024-01-01T00:00:00,5Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00 Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00Zjunk",
            "2024-01-01T00:00:00é",
            "+2024-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(text), Err(MalformedTime), "{text}");
        }
    }

    #[test]
    fn offsets_and_fractions_are_kept_to_the_microsecond() {
        let micros = |text| Timestamp::parse(text).map(Timestamp::micros);
        assert_eq!(micros("1970-01-01T00:00:00.000001Z"), Ok(1));
        assert_eq!(micros("1970-01-01T05:30:00.5+05:30"), Ok(500_000));
        assert_eq!(micros("1969-12-31T23:59:59Z"), Err(MalformedTime));
        assert_eq!(micros("1969-12-31T23:00:00-01:00"), Ok(0));
    }

    #[test]
    fn what_is_stored_can_be_printed_or_is_not_read() {
        let last = LATEST_S * MICROS + MICROS - 1;
        for micros in [0, 1, last] {
            let read: Timestamp = serde_json::from_str(&micros.to_string()).unwrap();
            assert_eq!((read.micros(), read.to_text_micros().len()), (micros, 27));
        }
        for micros in [i64::MIN, -1, last + 1, i64::MAX] {
            assert_eq!(Timestamp::from_stored(micros), Err(MalformedTime));
            let fault = serde_json::from_str::<Timestamp>(&micros.to_string()).unwrap_err().to_string();
            assert!(fault.contains("is no time from 1970 to 9999"), "{fault}");
        }
    }

    #[test]
    fn everything_that_is_accepted_can_be_printed() {
        let last = Timestamp(LATEST_S * MICROS + MICROS - 1);
        assert_eq!(Timestamp::parse(&last.to_text_micros()), Ok(last));
        assert_eq!(last.to_text(), "9999-12-30T21:59:59Z");
        assert_eq!(last.plus(Duration::MAX).to_text(), last.to_text());
        assert_eq!(Timestamp(0).plus(Duration::MAX).to_text(), last.to_text());
        assert!(Timestamp::parse("9999-12-30T22:00:00Z").is_err() && Timestamp::parse("9999-12-31T23:59:59Z").is_err());
        let (_, end) = Timestamp::parse_day("9999-12-29").unwrap();
        assert_eq!(end.to_text(), "9999-12-29T23:59:59Z");
        assert!(Timestamp::parse_day("9999-12-30").is_err(), "its end can't be printed");
        for wrong in ["2024-1-01", "2024-01-1 ", "20240101--", "2024-01-01T", "٢٠٢٤-01"] {
            assert!(Timestamp::parse_day(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_looked_for_may_begin_and_end_outside_of_all_times() {
        let (first, last) = (Timestamp(0), Timestamp::LATEST);
        for (text, bound) in [
            ("0001-01-01T00:00:00", first),
            ("1969-12-31T23:59:59.999999Z", first),
            ("1970-01-01T00:30:00+01:00", first),
            ("9999-12-31T23:59:59.999999", last),
            ("9999-12-31T23:59:59-11:00", last),
            ("2024-02-29T12:00:00Z", Timestamp::parse("2024-02-29T12:00:00Z").unwrap()),
        ] {
            assert_eq!(Timestamp::parse_bound(text), Ok(bound), "{text}");
        }
        let day = Timestamp::parse_day("2024-02-29").unwrap();
        for (text, bounds) in [
            ("0001-01-01", (first, first)),
            ("1600-02-29", (first, first)),
            ("9999-12-31", (last, last)),
            ("2024-02-29", day),
        ] {
            assert_eq!(Timestamp::parse_day_bounds(text), Ok(bounds), "{text}");
        }
        for wrong in [
            "1900-02-29",
            "9999-13-01",
            "9999-12-32",
            "+001-01-01",
            "99999-01-01",
            "1969",
            "",
            "1969-01-01 ",
            "٠٠٠١-01-01",
        ] {
            assert_eq!(Timestamp::parse_day_bounds(wrong), Err(MalformedTime), "{wrong}");
            assert_eq!(Timestamp::parse_bound(wrong), Err(MalformedTime), "{wrong}");
            assert_eq!(Timestamp::parse_bound(&format!("{wrong}T00:00:00Z")), Err(MalformedTime), "{wrong}");
        }
        assert_eq!(Timestamp::parse_bound("9999-12-31T24:00:00Z"), Err(MalformedTime));
    }

    #[test]
    fn differences_never_go_below_zero() {
        let (early, late) = (Timestamp(1), Timestamp(MICROS + 2));
        assert_eq!((late.since(early), early.since(late)), (Duration::from_micros(1_000_001), Duration::ZERO));
        assert_eq!((late.seconds(), late.floor_to_second()), (1, Timestamp(MICROS)));
        assert_eq!((Timestamp(-1).seconds(), Timestamp(-1).floor_to_second()), (-1, Timestamp(-MICROS)));
    }
}
