//! Phone numbers as the network knows them: E.164. Written as people in The Gambia write them.

use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberFormat};
use serde::{Deserialize, Serialize};

/// A phone number in E.164 (`+2207000000`).
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Msisdn(String);

/// The text is not a phone number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedPhone;

impl Msisdn {
    /// Accepts `+220XXXXXXX`, `220XXXXXXX`, seven local digits, and any other country's number
    /// with its `+`; spaces and dashes are dropped (contract §1.7).
    pub fn parse(text: &str) -> Result<Self, MalformedPhone> {
        let plain: String = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
        let digits = plain.strip_prefix('+').unwrap_or(&plain);
        if digits.len() < 7 || digits.len() > 15 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(MalformedPhone);
        }
        let international = match (plain.starts_with('+'), digits.len()) {
            (true, _) => plain,
            (false, 7) => format!("+220{digits}"),
            (false, 10) if digits.starts_with("220") => format!("+{digits}"),
            (false, _) => return Err(MalformedPhone),
        };
        let number = PHONE_NUMBER_UTIL.parse(&international, None).map_err(|_| MalformedPhone)?;
        if !PHONE_NUMBER_UTIL.is_possible_number(&number) {
            return Err(MalformedPhone);
        }
        let text = PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::E164).into_owned();
        // What is shown has to mean the same when it comes back, and a few numbers with zeros in front don't.
        match PHONE_NUMBER_UTIL.parse(&text, None) {
            Ok(again) if again == number => Ok(Self(text)),
            Ok(_) | Err(_) => Err(MalformedPhone),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_gambian(&self) -> bool {
        self.0.starts_with("+220")
    }
}

impl std::fmt::Debug for Msisdn {
    /// Never the whole number: it ends up in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Msisdn(…{})", self.0.get(self.0.len().saturating_sub(2)..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_many_spellings() {
        for text in ["+2207000000", "2207000000", "7000000", "700 0000", "+220 700-0000"] {
            assert_eq!(Msisdn::parse(text).map(|phone| phone.0), Ok("+2207000000".into()), "{text}");
        }
        for text in ["", "12", "+", "abc", "+220700000", "+22070000000", "00220700000", "7000000x", "+1", "٧٠٠٠٠٠٠"]
        {
            assert_eq!(Msisdn::parse(text), Err(MalformedPhone), "{text}");
        }
    }

    #[test]
    fn what_is_shown_means_the_same_when_it_comes_back() {
        for text in ["+39065551234", "+2250700000000", "+221770000000", "+224620000000"] {
            let number = Msisdn::parse(text).unwrap();
            assert_eq!((number.as_str(), Msisdn::parse(number.as_str()).as_ref()), (text, Ok(&number)));
        }
        assert_eq!(Msisdn::parse("+200027000000"), Err(MalformedPhone), "its zeros are lost on the way out");
    }
}
