//! Money: whole minor units *with* their currency. No floats; every sum is checked.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The largest amount that a request may carry, in hundredths (contract §0): 999 999 999 999.99 of every currency.
const MAX_HUNDREDTHS: i64 = 99_999_999_999_999;
const MAX_MAJOR_DIGITS: usize = 12;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency(iso_currency::Currency);

impl Currency {
    /// An ISO 4217 code in upper case that has minor units, else `None`. It may have been withdrawn since.
    pub fn parse(code: &str) -> Option<Self> {
        let currency = iso_currency::Currency::from_code(code)?;
        currency.exponent()?;
        (currency.code() == code).then_some(Self(currency))
    }

    pub fn gmd() -> Self {
        Self::parse("GMD").expect("the dalasi is in ISO 4217")
    }

    /// One that no other has more decimals than.
    pub fn of_most_decimals() -> Self {
        Self::parse("CLF").expect("the unidad de fomento is in ISO 4217")
    }

    pub fn code(&self) -> &'static str {
        self.0.code()
    }

    /// Whether ISO 4217 still has it among its active codes.
    pub fn is_active(&self) -> bool {
        // The library takes the bolívar for gone; ISO has it beside its successor.
        self.0.is_superseded().is_none() || self.0 == iso_currency::Currency::VES
    }

    /// Digits behind the decimal point.
    pub fn exponent(&self) -> u32 {
        u32::from(self.0.exponent().expect("checked by parse"))
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&code).ok_or_else(|| serde::de::Error::custom("not an ISO 4217 currency"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Money {
    /// In the currency's smallest unit: 100.00 GMD is 10 000.
    pub minor: i64,
    pub currency: Currency,
}

/// Why a text is not an amount. Each has a field code of contract §1.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmountFault {
    Malformed,
    NotPositive,
    TooManyDecimals { digits: u32 },
    TooLarge { most: Money },
}

impl AmountFault {
    pub fn code(self) -> &'static str {
        match self {
            AmountFault::Malformed => "invalid_format",
            AmountFault::NotPositive => "amount_not_positive",
            AmountFault::TooManyDecimals { .. } => "too_many_decimals",
            AmountFault::TooLarge { .. } => "amount_too_large",
        }
    }

    pub fn sentence(self) -> String {
        match self {
            AmountFault::Malformed => {
                "must be a plain decimal string such as \"100.00\": digits, one optional point, no sign, no spaces."
                    .into()
            }
            AmountFault::NotPositive => "must be greater than zero.".into(),
            AmountFault::TooManyDecimals { digits: 0 } => {
                "must be a whole number: this currency has no decimals.".into()
            }
            AmountFault::TooManyDecimals { digits } => format!("may have at most {digits} decimals in this currency."),
            AmountFault::TooLarge { most } => format!("must not be above {most}."),
        }
    }
}

impl Money {
    pub fn new(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// Reads an amount as contract §1.7 allows it: plain decimal, greater than zero, bounded.
    pub fn parse_positive(text: &str, currency: Currency) -> Result<Self, AmountFault> {
        let money = Self::parse(text, currency)?;
        if money.minor > 0 { Ok(money) } else { Err(AmountFault::NotPositive) }
    }

    /// The same, where nothing is an amount too.
    pub fn parse(text: &str, currency: Currency) -> Result<Self, AmountFault> {
        let money = Self::parse_stored(text, currency)?;
        if money.fits() { Ok(money) } else { Err(AmountFault::TooLarge { most: Self::maximum(currency) }) }
    }

    /// An amount as it was printed, by whichever version.
    pub fn parse_stored(text: &str, currency: Currency) -> Result<Self, AmountFault> {
        // A leading minus gets the more helpful answer.
        if let Some(rest) = text.strip_prefix('-') {
            return match Self::parse_stored(rest, currency) {
                Err(AmountFault::Malformed) => Err(AmountFault::Malformed),
                _ if rest.starts_with('-') => Err(AmountFault::Malformed),
                _ => Err(AmountFault::NotPositive),
            };
        }
        let (major, fraction) = match text.split_once('.') {
            Some((_, "")) => return Err(AmountFault::Malformed),
            Some((major, fraction)) => (major, fraction),
            None => (text, ""),
        };
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let leading_zero = major.len() > 1 && major.starts_with('0');
        if major.is_empty() || leading_zero || !digits(major) || !digits(fraction) {
            return Err(AmountFault::Malformed);
        }
        let exponent = currency.exponent();
        if fraction.len() > exponent as usize {
            return Err(AmountFault::TooManyDecimals { digits: exponent });
        }
        let too_large = AmountFault::TooLarge { most: Self::maximum(currency) };
        if major.len() > MAX_MAJOR_DIGITS {
            return Err(too_large);
        }
        let padded = format!("{major}{fraction:0<width$}", width = exponent as usize);
        let minor = padded.parse().map_err(|_| too_large)?;
        Ok(Self { minor, currency })
    }

    /// The largest amount that one object may have.
    pub fn maximum(currency: Currency) -> Self {
        let exponent = currency.exponent();
        let minor = match exponent.checked_sub(2) {
            Some(more) => MAX_HUNDREDTHS * 10_i64.pow(more),
            // Less than its smallest unit can't be said.
            None => MAX_HUNDREDTHS / 10_i64.pow(2 - exponent),
        };
        Self { minor, currency }
    }

    /// The largest amount that a stored object may have: older versions took a nine in every decimal of a currency.
    pub fn stored_maximum(currency: Currency) -> Self {
        let minor = 10_i64.pow(MAX_MAJOR_DIGITS as u32 + currency.exponent()) - 1;
        Self { minor, currency }
    }

    /// Whether one object may have it.
    pub fn fits(self) -> bool {
        self.minor <= Self::maximum(self.currency).minor
    }

    /// Whether a stored object may have it.
    pub fn fits_stored(self) -> bool {
        self.minor <= Self::stored_maximum(self.currency).minor
    }

    pub fn checked_add(self, other: Self) -> Option<Self> {
        assert_eq!(self.currency, other.currency, "two currencies never add up");
        Some(Self { minor: self.minor.checked_add(other.minor)?, ..self })
    }

    pub fn checked_sub(self, other: Self) -> Option<Self> {
        assert_eq!(self.currency, other.currency, "two currencies never add up");
        Some(Self { minor: self.minor.checked_sub(other.minor)?, ..self })
    }

    pub fn checked_times(self, quantity: i64) -> Option<Self> {
        Some(Self { minor: self.minor.checked_mul(quantity)?, ..self })
    }

    /// `rate` of the amount, half-up to the minor unit (contract §0, Fees).
    pub fn share_half_up(self, rate: BasisPoints) -> Self {
        assert!(self.minor >= 0, "a share is taken of what is there");
        let scaled = i128::from(self.minor) * i128::from(rate.0);
        let minor = i64::try_from((scaled + 5_000) / 10_000).expect("a share of at most 100 % fits");
        Self { minor, ..self }
    }
}

impl fmt::Display for Money {
    /// The wire form: exactly the currency's minor digits, no code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Sum::from(*self).fmt(f)
    }
}

/// What many amounts come to: no number of them that can be stored is too large for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sum {
    pub minor: i128,
    pub currency: Currency,
}

impl Sum {
    pub fn new(minor: i128, currency: Currency) -> Self {
        Self { minor, currency }
    }
}

impl From<Money> for Sum {
    fn from(money: Money) -> Self {
        Self { minor: i128::from(money.minor), currency: money.currency }
    }
}

impl fmt::Display for Sum {
    /// As an amount is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exponent = self.currency.exponent();
        let unit = 10_u128.pow(exponent);
        let sign = if self.minor < 0 { "-" } else { "" };
        let minor = self.minor.unsigned_abs();
        if exponent == 0 {
            return write!(f, "{sign}{minor}");
        }
        write!(f, "{sign}{}.{:0width$}", minor / unit, minor % unit, width = exponent as usize)
    }
}

/// Hundredths of a percent, 0 to 10 000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct BasisPoints(u32);

impl BasisPoints {
    pub fn new(value: u32) -> Option<Self> {
        (value <= 10_000).then_some(Self(value))
    }

    pub fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for BasisPoints {
    type Error = &'static str;
    fn try_from(value: u32) -> Result<Self, Self::Error> {
        Self::new(value).ok_or("a rate is at most 100 %")
    }
}

impl From<BasisPoints> for u32 {
    fn from(rate: BasisPoints) -> u32 {
        rate.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<i64, AmountFault>) {
        assert_eq!(Money::parse_positive(text, Currency::gmd()).map(|money| money.minor), expected, "{text:?}");
    }

    #[test]
    fn amounts_in() {
        check("100.00", Ok(10_000));
        check("100", Ok(10_000));
        check("0.1", Ok(10));
        check("999999999999.99", Ok(99_999_999_999_999));
        check("1000000000000", Err(AmountFault::TooLarge { most: Money::maximum(Currency::gmd()) }));
        check("0", Err(AmountFault::NotPositive));
        check("0.00", Err(AmountFault::NotPositive));
        check("-5", Err(AmountFault::NotPositive));
        check("1.234", Err(AmountFault::TooManyDecimals { digits: 2 }));
        for text in ["", ".", "1.", ".5", "+1", "1e3", " 1", "1 ", "01", "1,00", "٣", "NaN", "--1", "1.0.0"] {
            check(text, Err(AmountFault::Malformed));
        }
    }

    #[test]
    fn the_largest_amount_is_the_same_in_every_currency() {
        for (code, most, above) in [
            ("XOF", "999999999999", "1000000000000"),
            ("GMD", "999999999999.99", "1000000000000.00"),
            ("TND", "999999999999.990", "999999999999.991"),
            ("CLF", "999999999999.9900", "999999999999.9901"),
        ] {
            let currency = Currency::parse(code).unwrap();
            let largest = Money::maximum(currency);
            assert_eq!(largest.to_string(), most, "{code}");
            assert_eq!(Money::parse_positive(most, currency), Ok(largest), "{code}");
            let fault = Money::parse(above, currency).unwrap_err();
            assert_eq!(fault, AmountFault::TooLarge { most: largest }, "{code}");
            assert_eq!(fault.sentence(), format!("must not be above {most}."), "{code}");
            assert!(largest.fits() && !Money::new(largest.minor + 1, currency).fits(), "{code}");
        }
    }

    #[test]
    fn what_older_versions_took_can_be_read() {
        for (code, most) in [
            ("XOF", "999999999999"),
            ("GMD", "999999999999.99"),
            ("TND", "999999999999.999"),
            ("CLF", "999999999999.9999"),
        ] {
            let currency = Currency::parse(code).unwrap();
            let largest = Money::stored_maximum(currency);
            assert_eq!(largest.to_string(), most, "{code}");
            assert_eq!(Money::parse_stored(most, currency), Ok(largest), "{code}");
            let fault = Money::parse_stored("1000000000000", currency).unwrap_err();
            assert_eq!(fault, AmountFault::TooLarge { most: Money::maximum(currency) }, "{code}");
            assert!(largest.fits_stored() && !Money::new(largest.minor + 1, currency).fits_stored(), "{code}");
        }
    }

    /// ISO 4217 as of 2026: what has minor units and is no code for tests or precious metal.
    const ACTIVE: &str = "\
        AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW \
        CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL \
        HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA \
        MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD \
        RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD \
        USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XCD XCG XOF XPF YER ZAR ZMW ZWG";

    #[test]
    fn active_currencies_are_those_of_the_standard() {
        let letters = || 'A'..='Z';
        let codes = letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| format!("{a}{b}{c}"))));
        let known: Vec<Currency> = codes.filter_map(|code| Currency::parse(&code)).collect();
        let (active, withdrawn): (Vec<&Currency>, Vec<&Currency>) = known.iter().partition(|known| known.is_active());
        let codes = |of: Vec<&Currency>| of.iter().map(|one| one.code()).collect::<Vec<_>>();
        assert_eq!(codes(active), ACTIVE.split(' ').collect::<Vec<_>>());
        assert!(known.iter().all(|one| one.exponent() <= Currency::of_most_decimals().exponent()));
        assert_eq!(codes(withdrawn), ["BGN", "CUC", "HRK", "SLL", "ZWL"]);
    }

    #[test]
    fn amounts_out() {
        let show = |minor, code| Money::new(minor, Currency::parse(code).unwrap()).to_string();
        assert_eq!(show(10_000, "GMD"), "100.00");
        assert_eq!(show(5, "GMD"), "0.05");
        assert_eq!(show(500, "XOF"), "500");
        assert_eq!(show(1, "TND"), "0.001");
        assert_eq!(show(-105, "GMD"), "-1.05");
        assert_eq!(Money::maximum(Currency::gmd()).to_string(), "999999999999.99");
    }

    #[test]
    fn a_sum_is_written_as_its_amounts_are() {
        let show = |minor, code| Sum::new(minor, Currency::parse(code).unwrap()).to_string();
        let most = Money::stored_maximum(Currency::parse("CLF").unwrap());
        assert_eq!(most.to_string(), "999999999999.9999");
        assert_eq!(show(923 * i128::from(most.minor), "CLF"), "922999999999999.9077");
        assert_eq!(show(-923 * i128::from(most.minor), "CLF"), "-922999999999999.9077");
        assert_eq!(show(i128::from(i64::MIN), "GMD"), Money::new(i64::MIN, Currency::gmd()).to_string());
        assert_eq!(show(i128::MIN, "XOF"), i128::MIN.to_string());
    }

    #[test]
    fn currencies_have_one_spelling() {
        assert!(Currency::parse("GMD").is_some());
        for code in ["gmd", "GM", "XXX", "ZZZ", ""] {
            assert_eq!(Currency::parse(code), None, "{code}");
        }
    }

    #[test]
    fn fees_round_half_up() {
        let fee = |minor| Money::new(minor, Currency::gmd()).share_half_up(BasisPoints::new(250).unwrap()).minor;
        assert_eq!(fee(10_000), 250);
        assert_eq!(fee(20), 1); // 0.5 butut
        assert_eq!(fee(19), 0);
        assert_eq!(fee(Money::maximum(Currency::gmd()).minor), 2_500_000_000_000);
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_is_read_back(minor in 1_i64..99_999_999_999_999) {
            let money = Money::new(minor, Currency::gmd());
            proptest::prop_assert_eq!(Money::parse_positive(&money.to_string(), Currency::gmd()), Ok(money));
        }
    }
}
