//! How a customer can pay online.

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
