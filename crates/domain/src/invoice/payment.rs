//! One payment of an invoice, online or recorded by hand: what links invoice, transaction and receipt.

use serde::{Deserialize, Serialize};

use super::Invoice;
use crate::id::{Id, Object};
use crate::method::PaymentMethod;
use crate::money::Money;
use crate::payment::Transaction;
use crate::receipt::Receipt;
use crate::scope::Scope;
use crate::time::Timestamp;

/// It is written once and never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvoicePayment {
    pub id: Id<InvoicePayment>,
    pub scope: Scope,
    pub version: i64,
    pub invoice: Id<Invoice>,
    pub transaction: Id<Transaction>,
    pub receipt: Id<Receipt>,
    pub amount: Money,
    pub method: PaymentMethod,
    #[serde(default)]
    pub notes: Option<String>,
    /// The credential that recorded it; `None` where a provider confirmed it.
    #[serde(default)]
    pub recorded_by: Option<String>,
    pub payment_date: Timestamp,
    pub created_at: Timestamp,
}

impl Object for InvoicePayment {
    const PREFIX: &'static str = "invpay";
    const NOUN: &'static str = "invoice_payment";
}
