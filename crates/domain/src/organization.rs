//! The merchant, once per mode: who is paid, how, at what fee. Test and live share nothing.

use serde::{Deserialize, Serialize};

use crate::id::{Id, Object};
use crate::method::Method;
use crate::money::{BasisPoints, Money};
use crate::scope::{Mode, Scope};
use crate::time::Timestamp;

/// 2.5 %, in basis points (contract §0, Fees).
const DEFAULT_FEE: u32 = 250;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Organization {
    pub id: Id<Organization>,
    pub mode: Mode,
    pub version: i64,
    pub profile: Profile,
    pub payments: PaymentSettings,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Object for Organization {
    const PREFIX: &'static str = "org";
    const NOUN: &'static str = "organization";
}

/// What a payer sees of the merchant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub name: String,
    #[serde(default)]
    pub logo_url: Option<String>,
    /// The picture that was last fetched from there, by the SHA-256 of the file that was made of it, in hexadecimal.
    #[serde(default)]
    pub logo_digest: Option<String>,
    /// `#rrggbb`
    #[serde(default)]
    pub accent_color: Option<String>,
    #[serde(default)]
    pub address: Option<String>,
    #[serde(default)]
    pub phone: Option<String>,
    #[serde(default)]
    pub email: Option<String>,
    #[serde(default)]
    pub tax_id: Option<String>,
    #[serde(default)]
    pub locale: Locale,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Locale {
    #[default]
    En,
    Fr,
}

impl Locale {
    pub fn as_str(self) -> &'static str {
        match self {
            Locale::En => "en",
            Locale::Fr => "fr",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "en" => Some(Locale::En),
            "fr" => Some(Locale::Fr),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaymentSettings {
    pub enabled_methods: Vec<Method>,
    #[serde(default)]
    pub fees: FeeSchedule,
    #[serde(default)]
    pub allow_partial_payments: bool,
    /// Seconds from a payment until it counts as available.
    #[serde(default)]
    pub settlement_delay_s: u32,
    #[serde(default = "yes")]
    pub allow_negative_balance: bool,
}

fn yes() -> bool {
    true
}

/// What a merchant's operator charges per method.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FeeSchedule {
    #[serde(default)]
    rates: std::collections::BTreeMap<Method, BasisPoints>,
}

impl FeeSchedule {
    pub fn rate(&self, method: Method) -> BasisPoints {
        let default = BasisPoints::new(DEFAULT_FEE).expect("2.5 % is a rate");
        self.rates.get(&method).copied().unwrap_or(default)
    }

    pub fn with(mut self, method: Method, rate: BasisPoints) -> Self {
        self.rates.insert(method, rate);
        self
    }

    pub fn fee(&self, method: Method, amount: Money) -> Money {
        if crate::planted!(Defect::FeeForgotten) && method == Method::Card {
            return Money::new(0, amount.currency);
        }
        amount.share_half_up(self.rate(method))
    }
}

impl Organization {
    pub fn new(id: Id<Organization>, mode: Mode, name: String, now: Timestamp) -> Self {
        Self {
            id,
            mode,
            version: 0,
            profile: Profile {
                name,
                logo_url: None,
                logo_digest: None,
                accent_color: None,
                address: None,
                phone: None,
                email: None,
                tax_id: None,
                locale: Locale::En,
            },
            payments: PaymentSettings {
                enabled_methods: Method::ALL.to_vec(),
                fees: FeeSchedule::default(),
                allow_partial_payments: false,
                settlement_delay_s: 0,
                allow_negative_balance: true,
            },
            created_at: now,
            updated_at: now,
        }
    }

    pub fn scope(&self) -> Scope {
        Scope { organization: self.id, mode: self.mode }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::dalasi;

    fn rate(basis_points: u32) -> BasisPoints {
        BasisPoints::new(basis_points).unwrap()
    }

    #[test]
    fn a_fee_is_two_and_a_half_percent_unless_told_otherwise() {
        let fees = FeeSchedule::default().with(Method::Card, rate(300)).with(Method::Wave, rate(0));
        let of = |method| fees.fee(method, dalasi(10_000)).to_string();
        assert_eq!(Method::ALL.map(of), ["0.00", "2.50", "2.50", "3.00"]);
        let again: FeeSchedule = serde_json::from_str(&serde_json::to_string(&fees).unwrap()).unwrap();
        assert_eq!(again, fees);
    }

    #[test]
    fn a_rate_is_at_most_all_of_it() {
        assert_eq!(BasisPoints::new(10_001), None);
        assert!(serde_json::from_str::<BasisPoints>("10001").is_err());
        let fees = FeeSchedule::default().with(Method::Wave, rate(10_000));
        assert_eq!(fees.fee(Method::Wave, dalasi(1)), dalasi(1));
        assert_eq!(fees.fee(Method::Wave, dalasi(i64::MAX)), dalasi(i64::MAX));
    }

    #[test]
    fn both_modes_are_apart() {
        let new = |mode| Organization::new(crate::sample::id(1), mode, "Shop".into(), crate::sample::at(0));
        assert_ne!(new(Mode::Test).scope(), new(Mode::Live).scope());
        assert_eq!(new(Mode::Test).payments.enabled_methods, Method::ALL);
    }
}
