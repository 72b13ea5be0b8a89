//! The numbers that people read out: `INV-2026-11-0001`, `RCT-2026-001` (contract §1.6).
//!
//! A series counts without a gap inside its period; the counters themselves are rows of the store. A number is a
//! name for people and never authority.

use crate::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// Counts from 1 each month.
    Invoice,
    /// Counts from 1 each year.
    Receipt,
}

impl Series {
    pub const ALL: [Series; 2] = [Series::Invoice, Series::Receipt];

    pub fn as_str(self) -> &'static str {
        match self {
            Series::Invoice => "invoice",
            Series::Receipt => "receipt",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|series| series.as_str() == text)
    }

    /// `2026-11` or `2026`, of the day that it is in UTC.
    pub fn period(self, now: Timestamp) -> String {
        let day = now.to_text();
        let length = match self {
            Series::Invoice => "2026-11".len(),
            Series::Receipt => "2026".len(),
        };
        day[..length].to_owned()
    }

    /// The counter grows beyond its width: number 10 000 of a month has five digits.
    pub fn number(self, period: &str, count: i64) -> String {
        assert!(count > 0, "numbers count from one");
        match self {
            Series::Invoice => format!("INV-{period}-{count:04}"),
            Series::Receipt => format!("RCT-{period}-{count:03}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_ends_with_its_last_microsecond() {
        let periods = |text| {
            let now = Timestamp::parse(text).expect("a sample is right");
            Series::ALL.map(|series| series.period(now))
        };
        assert_eq!(periods("2026-11-30T23:59:59.999999Z"), ["2026-11", "2026"]);
        assert_eq!(periods("2026-12-01T00:00:00Z"), ["2026-12", "2026"]);
        assert_eq!(periods("2026-12-31T23:59:59.999999Z"), ["2026-12", "2026"]);
        assert_eq!(periods("2027-01-01T00:00:00Z"), ["2027-01", "2027"]);
    }

    #[test]
    fn numbers_outgrow_their_width() {
        let numbers = |count| [Series::Invoice.number("2026-11", count), Series::Receipt.number("2026", count)];
        assert_eq!(numbers(1), ["INV-2026-11-0001", "RCT-2026-001"]);
        assert_eq!(numbers(9_999), ["INV-2026-11-9999", "RCT-2026-9999"]);
        assert_eq!(numbers(10_000), ["INV-2026-11-10000", "RCT-2026-10000"]);
    }

    #[test]
    fn every_series_has_one_spelling() {
        for series in Series::ALL {
            assert_eq!(Series::parse(series.as_str()), Some(series));
        }
        assert_eq!(Series::parse("Invoice"), None);
    }
}
