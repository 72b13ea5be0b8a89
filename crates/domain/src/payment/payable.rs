//! What can be paid online, and what money that arrived means for it. The objects themselves decide; here are the words
//! that they share.

use serde::{Deserialize, Serialize};

use crate::checkout::Checkout;
use crate::id::Id;
use crate::invoice::Invoice;
use crate::payment_link::PaymentLink;

/// What is being paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "id", rename_all = "snake_case")]
pub enum Payable {
    Checkout(Id<Checkout>),
    Invoice(Id<Invoice>),
    PaymentLink(Id<PaymentLink>),
}

impl Payable {
    pub fn kind(&self) -> &'static str {
        match self {
            Payable::Checkout(_) => "checkout",
            Payable::Invoice(_) => "invoice",
            Payable::PaymentLink(_) => "payment_link",
        }
    }

    pub fn object_id(&self) -> String {
        match self {
            Payable::Checkout(id) => id.to_string(),
            Payable::Invoice(id) => id.to_string(),
            Payable::PaymentLink(id) => id.to_string(),
        }
    }

    /// As a sentence says it.
    pub fn noun(&self) -> &'static str {
        match self {
            Payable::Checkout(_) => "checkout",
            Payable::Invoice(_) => "invoice",
            Payable::PaymentLink(_) => "payment link",
        }
    }

    /// Whether the time of its sessions is its own, so that its own timer ends them.
    pub fn ends_its_sessions(&self) -> bool {
        match self {
            Payable::Checkout(_) => true,
            Payable::Invoice(_) | Payable::PaymentLink(_) => false,
        }
    }
}

/// What money that arrived means for the paid object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Settlement {
    /// It pays the object.
    Paid,
    /// The object was expired or cancelled before: credited, shown, the merchant decides.
    Late,
    /// The object was paid before: kept apart, refundable.
    Second,
}
