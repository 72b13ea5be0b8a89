//! A tax rate as it was sent: percent, exact to four decimals (contract §1.7).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::money::Money;

const DECIMALS: usize = 4;
/// Units in one percent.
const PERCENT: u32 = 10_000;
/// 100 %
const WHOLE: u32 = 100 * PERCENT;

/// Ten-thousandths of a percent, 0 to 1 000 000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct TaxRate(u32);

/// Why a number is not a tax rate. Each has a field code of contract §1.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaxRateFault {
    Malformed,
    OutOfRange,
    TooManyDecimals,
}

impl TaxRateFault {
    pub fn code(self) -> &'static str {
        match self {
            TaxRateFault::Malformed => "wrong_type",
            TaxRateFault::OutOfRange => "out_of_range",
            TaxRateFault::TooManyDecimals => "too_many_decimals",
        }
    }

    pub fn sentence(self) -> &'static str {
        match self {
            TaxRateFault::Malformed => "must be a number: a percentage such as 15 or 7.5.",
            TaxRateFault::OutOfRange => "must be a percentage from 0 to 100.",
            TaxRateFault::TooManyDecimals => "may have at most 4 decimals.",
        }
    }
}

impl TaxRate {
    pub const ZERO: TaxRate = TaxRate(0);

    /// Reads the text of a JSON number. Zeros at its end are no decimals; `1.5e1` is 15.
    pub fn parse(text: &str) -> Result<Self, TaxRateFault> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i32 = exponent.parse().map_err(|_| TaxRateFault::Malformed)?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_negative = whole.starts_with('-');
        let digits = format!("{}{fraction}", whole.strip_prefix('-').unwrap_or(whole));
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(TaxRateFault::Malformed);
        }
        let significant = digits.trim_start_matches('0').trim_end_matches('0');
        if significant.is_empty() {
            return Ok(Self::ZERO);
        }
        if is_negative {
            return Err(TaxRateFault::OutOfRange);
        }
        // The value is `significant` × 10^scale percent.
        let trailing = digits.len() - digits.trim_end_matches('0').len();
        let [trailing, fraction] = [trailing, fraction.len()].map(|length| i64::try_from(length).unwrap_or(i64::MAX));
        let scale = trailing - fraction + i64::from(exponent);
        let length = i64::try_from(significant.len()).unwrap_or(i64::MAX);
        // More than three digits before the point are more than 100 %.
        if length.saturating_add(scale) > 3 {
            return Err(TaxRateFault::OutOfRange);
        }
        let zeros = usize::try_from(scale.saturating_add(4)).map_err(|_| TaxRateFault::TooManyDecimals)?;
        let units: u32 = format!("{significant}{}", "0".repeat(zeros)).parse().map_err(|_| TaxRateFault::OutOfRange)?;
        Self::from_units(units).ok_or(TaxRateFault::OutOfRange)
    }

    fn from_units(units: u32) -> Option<Self> {
        (units <= WHOLE).then_some(Self(units))
    }

    /// The tax on `amount`, half-up to the minor unit.
    pub fn tax_half_up(self, amount: Money) -> Money {
        assert!(amount.minor >= 0, "tax is taken of what is there");
        let whole = i128::from(WHOLE);
        let scaled = i128::from(amount.minor) * i128::from(self.0);
        let minor =
            i64::try_from((scaled + if crate::planted!(Defect::TaxRoundedDown) { 0 } else { whole / 2 }) / whole)
                .expect("a share of at most 100 % fits");
        assert!(minor <= amount.minor, "a tax of at most 100 % is at most the amount");
        Money { minor, ..amount }
    }
}

impl fmt::Display for TaxRate {
    /// As a JSON number: `15`, `7.5`, `0.0001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (percent, rest) = (self.0 / PERCENT, self.0 % PERCENT);
        if rest == 0 {
            return write!(f, "{percent}");
        }
        let decimals = format!("{rest:0DECIMALS$}");
        write!(f, "{percent}.{}", decimals.trim_end_matches('0'))
    }
}

impl TryFrom<u32> for TaxRate {
    type Error = &'static str;
    fn try_from(units: u32) -> Result<Self, Self::Error> {
        Self::from_units(units).ok_or("a tax rate is at most 100 %")
    }
}

impl From<TaxRate> for u32 {
    fn from(rate: TaxRate) -> u32 {
        rate.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::dalasi;

    #[test]
    fn rates_in_and_out() {
        let check = |text: &str, expected: Result<&str, TaxRateFault>| {
            assert_eq!(
                TaxRate::parse(text).map(|rate| rate.to_string()).as_deref(),
                expected.as_ref().copied(),
                "{text:?}"
            );
        };
        for (text, shown) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("0e9", "0"),
            ("15", "15"),
            ("15.0", "15"),
            ("15.00000000", "15"),
            ("7.5", "7.5"),
            ("0.0001", "0.0001"),
            ("1e-4", "0.0001"),
            ("1.5e1", "15"),
            ("1E+2", "100"),
            ("100", "100"),
            ("100.0000", "100"),
            ("99.9999", "99.9999"),
            ("17.0305", "17.0305"),
        ] {
            check(text, Ok(shown));
        }
        for text in ["100.0001", "101", "1000", "1e3", "1e99", "-1", "-0.5", "99999999999999999999"] {
            check(text, Err(TaxRateFault::OutOfRange));
        }
        for text in ["0.00001", "15.12345", "1e-5", "1e-2000000000", "0.00000000000000000000001"] {
            check(text, Err(TaxRateFault::TooManyDecimals));
        }
        for text in ["", ".", "-", "x", "1,5", "1e", "1e1.5", "٣", "--1", "1e99999999999"] {
            check(text, Err(TaxRateFault::Malformed));
        }
    }

    #[test]
    fn tax_rounds_half_up() {
        let tax = |minor, rate| TaxRate::parse(rate).expect("a sample is right").tax_half_up(dalasi(minor)).minor;
        assert_eq!(tax(10_000, "15"), 1_500);
        assert_eq!(tax(10, "5"), 1, "half a butut goes up");
        assert_eq!(tax(10, "4.9999"), 0, "a little less goes down");
        assert_eq!(tax(333, "15"), 50, "49.95");
        let maximum = Money::maximum(dalasi(1).currency);
        assert_eq!(tax(maximum.minor, "100"), maximum.minor);
        assert_eq!(tax(maximum.minor, "0"), 0);
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_is_read_back(units in 0..=WHOLE) {
            let rate = TaxRate(units);
            proptest::prop_assert_eq!(TaxRate::parse(&rate.to_string()), Ok(rate));
            let text = serde_json::to_string(&rate).expect("it is data");
            proptest::prop_assert_eq!(serde_json::from_str::<TaxRate>(&text).expect("ours"), rate);
        }
    }
}
