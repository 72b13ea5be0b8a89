//! Customers: people whom a merchant knows by e-mail address or phone (contract §3).
//!
//! Objects that name a customer keep copies of what they need, so that nothing here changes what has happened.

use serde::{Deserialize, Serialize};

use crate::id::{Id, Object};
use crate::metadata::Metadata;
use crate::payment::Payer;
use crate::phone::Msisdn;
use crate::scope::Scope;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Customer {
    pub id: Id<Customer>,
    pub scope: Scope,
    pub version: i64,
    pub contact: Contact,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub metadata: Metadata,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Kept for what refers to it; nobody finds it any more.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
}

impl Object for Customer {
    const PREFIX: &'static str = "cus";
    const NOUN: &'static str = "customer";
}

/// An e-mail address, a phone, or both. No two customers of a merchant share either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Reach")]
pub struct Contact {
    email: Option<String>,
    phone: Option<Msisdn>,
}

#[derive(Deserialize)]
struct Reach {
    email: Option<String>,
    phone: Option<Msisdn>,
}

impl TryFrom<Reach> for Contact {
    type Error = &'static str;

    fn try_from(reach: Reach) -> Result<Self, Self::Error> {
        Self::new(reach.email, reach.phone).ok_or("a customer has an e-mail address or a phone")
    }
}

impl Contact {
    /// `None` where there is neither.
    pub fn new(email: Option<String>, phone: Option<Msisdn>) -> Option<Self> {
        (email.is_some() || phone.is_some()).then_some(Self { email, phone })
    }

    /// As it was given.
    pub fn email(&self) -> Option<&str> {
        self.email.as_deref()
    }

    pub fn phone(&self) -> Option<&Msisdn> {
        self.phone.as_ref()
    }
}

/// The spelling by which two e-mail addresses are compared: mailboxes that differ in case only are one in practice.
pub fn email_key(email: &str) -> String {
    email.to_lowercase()
}

impl Customer {
    /// What is known of them as a payer.
    pub fn payer(&self) -> Payer {
        Payer {
            customer: Some(self.id),
            phone: self.contact.phone.clone(),
            email: self.contact.email.clone(),
            name: self.name.clone(),
        }
    }

    pub fn delete(&mut self, now: Timestamp) {
        assert_eq!(self.deleted_at, None, "nobody finds a deleted customer");
        self.updated_at = self.updated_at.max(now);
        self.deleted_at = Some(self.updated_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_never_empty() {
        let phone = || Msisdn::parse("7000000").ok();
        let email = || Some("Awa@Example.gm".to_owned());
        assert_eq!(Contact::new(None, None), None);
        for (email, phone) in [(email(), None), (None, phone()), (email(), phone())] {
            let contact = Contact::new(email, phone).expect("one is enough");
            let text = serde_json::to_string(&contact).unwrap();
            assert_eq!(serde_json::from_str::<Contact>(&text).unwrap(), contact);
        }
        let nobody = serde_json::from_str::<Contact>(r#"{"email":null,"phone":null}"#);
        assert!(nobody.unwrap_err().to_string().contains("e-mail address or a phone"));
    }

    #[test]
    fn addresses_are_compared_without_their_case() {
        for text in ["awa@example.gm", "Awa@Example.GM", "AWA@EXAMPLE.GM"] {
            assert_eq!(email_key(text), "awa@example.gm");
        }
        assert_eq!(email_key("ÉLISE@exemple.sn"), email_key("élise@Exemple.sn"));
        assert_ne!(email_key("awa+1@example.gm"), email_key("awa@example.gm"), "another mailbox, for all we know");
    }
}
