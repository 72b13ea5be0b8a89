//! Receipts: the proof, for people, that money for an invoice was taken (contract §2.5).
//!
//! A receipt is written when the money is there and says for ever what was true then: the merchant and the customer
//! are copies. Its document is made from it whenever somebody asks, so there is none that could be missing.

use serde::{Deserialize, Serialize};

use crate::id::{Id, Object};
use crate::invoice::{BillTo, Invoice, InvoicePayment};
use crate::method::PaymentMethod;
use crate::money::Money;
use crate::organization::Profile;
use crate::payment::Transaction;
use crate::scope::Scope;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub id: Id<Receipt>,
    pub scope: Scope,
    pub version: i64,
    /// `RCT-2026-001`
    pub number: String,
    pub invoice: Id<Invoice>,
    pub invoice_number: String,
    pub payment: Id<InvoicePayment>,
    pub transaction: Id<Transaction>,
    pub amount: Money,
    pub method: PaymentMethod,
    pub payment_date: Timestamp,
    pub validation_code: ValidationCode,
    pub customer: BillTo,
    pub merchant: Profile,
    email: Email,
    /// The credential that recorded the payment; `None` where a provider confirmed it.
    #[serde(default)]
    pub created_by: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Object for Receipt {
    const PREFIX: &'static str = "rec";
    const NOUN: &'static str = "receipt";
}

/// What an invoice shows of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptSummary {
    pub id: Id<Receipt>,
    pub number: String,
    pub amount: Money,
    pub payment_date: Timestamp,
    /// Names the receipt's file.
    pub validation_code: ValidationCode,
}

/// 128 random bits, as 32 hexadecimal digits: whoever has it can ask whether the receipt is real.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ValidationCode(String);

impl ValidationCode {
    pub fn new(random: [u8; 16]) -> Self {
        Self(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// `None`: such a text is nobody's code.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 32 && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// As a person copies it from paper: in groups, in capitals.
    pub fn typed(text: &str) -> Option<Self> {
        Self::parse(&without_groups(text).to_ascii_lowercase())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What somebody typed, without the blanks and hyphens that make it easy to read.
pub fn without_groups(text: &str) -> String {
    text.chars().filter(|it| !it.is_whitespace() && *it != '-').collect()
}

impl TryFrom<String> for ValidationCode {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("a validation code has 32 hexadecimal digits")
    }
}

impl From<ValidationCode> for String {
    fn from(code: ValidationCode) -> String {
        code.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum Email {
    Pending,
    Sent { at: Timestamp },
    Failed,
}

/// Whether it was sent to the customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmailStatus {
    Pending,
    Sent,
    Failed,
}

impl EmailStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            EmailStatus::Pending => "pending",
            EmailStatus::Sent => "sent",
            EmailStatus::Failed => "failed",
        }
    }
}

impl Receipt {
    /// For a payment that `invoice` has taken already.
    pub fn issue(
        payment: &InvoicePayment,
        number: String,
        validation_code: ValidationCode,
        invoice: &Invoice,
        merchant: Profile,
        now: Timestamp,
    ) -> Self {
        assert_eq!(payment.invoice, invoice.id, "a receipt is for its own invoice");
        assert_eq!(payment.scope, invoice.scope, "a receipt stays in its scope");
        assert!(payment.amount.minor > 0, "a receipt is for money");
        let created_at = now.floor_to_second();
        Self {
            id: payment.receipt,
            scope: payment.scope,
            version: 0,
            number,
            invoice: invoice.id,
            invoice_number: invoice.number.clone(),
            payment: payment.id,
            transaction: payment.transaction,
            amount: payment.amount,
            method: payment.method,
            payment_date: payment.payment_date,
            validation_code,
            customer: invoice.customer.clone(),
            merchant,
            email: Email::Pending,
            created_by: payment.recorded_by.clone(),
            created_at,
            updated_at: created_at,
        }
    }

    pub fn summary(&self) -> ReceiptSummary {
        ReceiptSummary {
            id: self.id,
            number: self.number.clone(),
            amount: self.amount,
            payment_date: self.payment_date,
            validation_code: self.validation_code.clone(),
        }
    }

    pub fn email_status(&self) -> EmailStatus {
        match self.email {
            Email::Pending => EmailStatus::Pending,
            Email::Sent { .. } => EmailStatus::Sent,
            Email::Failed => EmailStatus::Failed,
        }
    }

    pub fn email_sent_at(&self) -> Option<Timestamp> {
        match self.email {
            Email::Sent { at } => Some(at),
            Email::Pending | Email::Failed => None,
        }
    }

    /// It reached the customer's mail server.
    pub fn emailed(&mut self, now: Timestamp) {
        self.updated_at = self.updated_at.max(now.floor_to_second());
        self.email = Email::Sent { at: self.updated_at };
    }

    /// It was given up; what was sent before stays sent.
    pub fn email_failed(&mut self, now: Timestamp) {
        match self.email {
            Email::Sent { .. } => {}
            Email::Pending | Email::Failed => {
                self.updated_at = self.updated_at.max(now.floor_to_second());
                self.email = Email::Failed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_validation_code_has_one_spelling() {
        let code = ValidationCode::new([0xa5; 16]);
        assert_eq!(code.as_str(), "a5".repeat(16));
        assert_eq!(ValidationCode::parse(code.as_str()), Some(code.clone()));
        for wrong in ["", "a5", &"A5".repeat(16), &"g5".repeat(16), &"a5".repeat(17), &format!(" {}", "a".repeat(31))] {
            assert_eq!(ValidationCode::parse(wrong), None, "{wrong:?}");
        }
        let text = serde_json::to_string(&code).expect("it is data");
        assert_eq!(serde_json::from_str::<ValidationCode>(&text).expect("ours"), code);
        assert!(serde_json::from_str::<ValidationCode>("\"a5\"").is_err());
    }

    #[test]
    fn a_person_types_a_validation_code_in_groups_and_capitals() {
        let code = ValidationCode::new([0xa5; 16]);
        for typed in ["a5".repeat(16), "A5".repeat(16), " a5A5".repeat(8), "a5A5-".repeat(8), "\u{a0}a5\t".repeat(16)] {
            assert_eq!(ValidationCode::typed(&typed), Some(code.clone()), "{typed:?}");
        }
        for wrong in ["", "-", &"a5".repeat(17), &"a5 ".repeat(15), &"g5".repeat(16), &"a5.".repeat(16)] {
            assert_eq!(ValidationCode::typed(wrong), None, "{wrong:?}");
        }
    }
}
