//! API keys as they are remembered (never the key itself), and what a credential may do.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::{Id, Object};
use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiKey {
    pub id: Id<ApiKey>,
    pub scope: Scope,
    pub version: i64,
    pub kind: KeyKind,
    /// HMAC-SHA256 of the key under the installation's pepper, in hex.
    pub digest: String,
    /// The last four characters: what a person compares.
    pub last4: String,
    pub rights: Rights,
    #[serde(default)]
    pub name: Option<String>,
    pub created_at: Timestamp,
    #[serde(default)]
    pub revoked_at: Option<Timestamp>,
}

impl Object for ApiKey {
    const PREFIX: &'static str = "key";
    const NOUN: &'static str = "key";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    Secret,
    Publishable,
}

impl KeyKind {
    pub fn as_str(self) -> &'static str {
        match self {
            KeyKind::Secret => "secret",
            KeyKind::Publishable => "publishable",
        }
    }
}

impl ApiKey {
    pub fn revoke(&mut self, now: Timestamp) -> Result<(), Refusal> {
        match self.revoked_at {
            Some(_) => Err(Refusal::KeyAlreadyRevoked),
            None => {
                self.revoked_at = Some(now);
                Ok(())
            }
        }
    }
}

/// `read:checkouts`, `write:webhooks` … (contract §1.2). `write` does not include `read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Right {
    pub access: Access,
    pub area: Area,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    Read,
    Write,
}

macro_rules! areas {
    ($($variant:ident => $text:literal),+ $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Area { $($variant),+ }

        impl Area {
            pub const ALL: &'static [Area] = &[$(Area::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Area::$variant => $text),+ }
            }
        }
    };
}

areas! {
    Checkouts => "checkouts",
    Payments => "payments",
    PaymentLinks => "payment_links",
    Invoices => "invoices",
    Customers => "customers",
    Products => "products",
    Transactions => "transactions",
    Refunds => "refunds",
    Subscriptions => "subscriptions",
    Donations => "donations",
    Payouts => "payouts",
    Sms => "sms",
    Webhooks => "webhooks",
}

impl Right {
    pub fn read(area: Area) -> Self {
        Self { access: Access::Read, area }
    }

    pub fn write(area: Area) -> Self {
        Self { access: Access::Write, area }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (access, area) = text.split_once(':')?;
        let access = match access {
            "read" => Access::Read,
            "write" => Access::Write,
            _ => return None,
        };
        let area = Area::ALL.iter().copied().find(|candidate| candidate.as_str() == area)?;
        Some(Self { access, area })
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let access = match self.access {
            Access::Read => "read",
            Access::Write => "write",
        };
        write!(f, "{access}:{}", self.area.as_str())
    }
}

/// A set of rights, written space-separated as OAuth writes scopes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rights(BTreeSet<Right>);

impl Rights {
    pub fn all() -> Self {
        let both = |area: &Area| [Right::read(*area), Right::write(*area)];
        Self(Area::ALL.iter().flat_map(both).collect())
    }

    /// What a page in a browser may do with a publishable key: nothing by scope, four operations by name.
    pub fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Space- or comma-separated; `Err` names the first word that is not a right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words = text.split([' ', ',']).filter(|word| !word.is_empty());
        words.map(|word| Right::parse(word).ok_or_else(|| word.to_owned())).collect::<Result<_, _>>().map(Self)
    }

    pub fn contains(&self, right: Right) -> bool {
        self.0.contains(&right)
    }

    pub fn is_within(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Display for Rights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, right) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{right}")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Rights {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).map_err(|word| format!("{word:?} is not a scope"))
    }
}

impl From<Rights> for String {
    fn from(rights: Rights) -> String {
        rights.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read_as_written() {
        let all = Rights::all();
        assert_eq!(Rights::parse(&all.to_string()), Ok(all.clone()));
        assert_eq!(Rights::parse("read:checkouts write:nothing"), Err("write:nothing".into()));
        let narrow = Rights::parse("write:checkouts").unwrap();
        assert!(narrow.is_within(&all) && !all.is_within(&narrow));
        assert!(!narrow.contains(Right::read(Area::Checkouts)), "write does not include read");
        assert!(narrow.contains(Right::write(Area::Checkouts)) && !narrow.is_empty());
    }

    #[test]
    fn a_set_of_rights_has_one_spelling() {
        let rights = Rights::parse("write:sms,read:checkouts  read:checkouts").unwrap();
        assert_eq!(rights.to_string(), "read:checkouts write:sms");
        assert_eq!(serde_json::to_value(&rights).unwrap(), "read:checkouts write:sms");
        assert_eq!(Rights::parse(""), Ok(Rights::none()));
        assert!(Rights::none().is_empty() && Rights::none().is_within(&rights));
        for wrong in ["read", "read:", ":checkouts", "Read:checkouts", "read:Checkouts", "admin:checkouts", "read:a:b"]
        {
            assert_eq!(Rights::parse(wrong), Err(wrong.to_owned()));
        }
        assert_eq!(Area::ALL.len(), 13, "the areas of contract §1.2");
        assert!(serde_json::from_str::<Rights>("\"read:everything\"").is_err());
    }

    #[test]
    fn a_kind_has_one_name_wherever_it_is_written() {
        for kind in [KeyKind::Secret, KeyKind::Publishable] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert_eq!(KeyKind::Publishable.as_str(), "publishable");
    }

    #[test]
    fn a_key_is_revoked_once() {
        let mut key = ApiKey {
            id: crate::sample::id(1),
            scope: crate::sample::scope(),
            version: 1,
            kind: KeyKind::Secret,
            digest: String::new(),
            last4: "abcd".into(),
            rights: Rights::all(),
            name: None,
            created_at: crate::sample::at(0),
            revoked_at: None,
        };
        assert_eq!(key.revoke(crate::sample::at(1)), Ok(()));
        assert_eq!(key.revoke(crate::sample::at(2)), Err(Refusal::KeyAlreadyRevoked));
        assert_eq!(key.revoked_at, Some(crate::sample::at(1)), "the first time counts");
    }
}
