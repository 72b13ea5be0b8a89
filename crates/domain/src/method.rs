//! How a customer can pay: online, or outside the system.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    Wave,
    Afrimoney,
    Qmoney,
    Card,
}

/// What the payer does, as the wire says it (contract §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Redirect,
    Push,
    Otp,
}

impl Method {
    /// In the order in which a page offers them.
    pub const ALL: [Method; 4] = [Method::Wave, Method::Afrimoney, Method::Qmoney, Method::Card];

    pub fn as_str(self) -> &'static str {
        match self {
            Method::Wave => "wave",
            Method::Afrimoney => "afrimoney",
            Method::Qmoney => "qmoney",
            Method::Card => "card",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == text)
    }

    /// The name that people know.
    pub fn name(self) -> &'static str {
        match self {
            Method::Wave => "Wave",
            Method::Afrimoney => "Afrimoney",
            Method::Qmoney => "QMoney",
            Method::Card => "Card",
        }
    }

    pub fn flow(self) -> Flow {
        match self {
            Method::Wave | Method::Card => Flow::Redirect,
            Method::Afrimoney => Flow::Push,
            Method::Qmoney => Flow::Otp,
        }
    }

    pub fn needs_phone(self) -> bool {
        match self.flow() {
            Flow::Redirect => false,
            Flow::Push | Flow::Otp => true,
        }
    }
}

impl Flow {
    pub fn as_str(self) -> &'static str {
        match self {
            Flow::Redirect => "redirect",
            Flow::Push => "push",
            Flow::Otp => "otp",
        }
    }
}

/// Money that changed hands elsewhere; somebody writes it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OfflineMethod {
    Cash,
    BankTransfer,
    Check,
    WesternUnion,
    Other,
}

impl OfflineMethod {
    pub const ALL: [OfflineMethod; 5] = [
        OfflineMethod::Cash,
        OfflineMethod::BankTransfer,
        OfflineMethod::Check,
        OfflineMethod::WesternUnion,
        OfflineMethod::Other,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            OfflineMethod::Cash => "cash",
            OfflineMethod::BankTransfer => "bank_transfer",
            OfflineMethod::Check => "check",
            OfflineMethod::WesternUnion => "western_union",
            OfflineMethod::Other => "other",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == text)
    }

    /// The name that people know.
    pub fn name(self) -> &'static str {
        match self {
            OfflineMethod::Cash => "Cash",
            OfflineMethod::BankTransfer => "Bank transfer",
            OfflineMethod::Check => "Cheque",
            OfflineMethod::WesternUnion => "Western Union",
            OfflineMethod::Other => "Other",
        }
    }
}

/// How money came, whichever way that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PaymentMethod {
    Online(Method),
    Offline(OfflineMethod),
}

impl PaymentMethod {
    pub fn as_str(self) -> &'static str {
        match self {
            PaymentMethod::Online(method) => method.as_str(),
            PaymentMethod::Offline(method) => method.as_str(),
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let offline = || OfflineMethod::parse(text).map(PaymentMethod::Offline);
        Method::parse(text).map(PaymentMethod::Online).or_else(offline)
    }

    pub fn name(self) -> &'static str {
        match self {
            PaymentMethod::Online(method) => method.name(),
            PaymentMethod::Offline(method) => method.name(),
        }
    }
}

impl TryFrom<String> for PaymentMethod {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not a payment method")
    }
}

impl From<PaymentMethod> for String {
    fn from(method: PaymentMethod) -> String {
        method.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_pay_has_one_spelling() {
        let online = Method::ALL.map(PaymentMethod::Online);
        let offline = OfflineMethod::ALL.map(PaymentMethod::Offline);
        for method in online.into_iter().chain(offline) {
            assert_eq!(PaymentMethod::parse(method.as_str()), Some(method));
            let text = serde_json::to_string(&method).expect("it is data");
            assert_eq!(serde_json::from_str::<PaymentMethod>(&text).expect("ours"), method);
        }
        assert_eq!(PaymentMethod::parse("Cash"), None);
        assert!(serde_json::from_str::<PaymentMethod>("\"barter\"").is_err());
    }
}
