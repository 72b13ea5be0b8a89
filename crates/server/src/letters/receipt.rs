//! The letter that confirms a payment.

use askama::Template;

use super::{Letter, Merchant, Row, Shown, clean, render, subject};
use crate::pages::amount;
use crate::pages::moment;
use crate::pages::text::{Locale, Text};
use crate::pages::view::Amount;

#[derive(Debug, Clone)]
pub struct ReceiptLetter {
    pub merchant: Merchant,
    pub locale: Locale,
    pub test_mode: bool,
    pub number: String,
    pub amount: Amount,
    /// What went back of that, as it stands when the letter is written.
    pub refunded: Amount,
    pub invoice_number: String,
    pub paid_with: PaidWith,
    /// Unix seconds.
    pub paid_at: i64,
    pub rest: Rest,
}

/// What is still owed on the invoice, as it stands when the letter is written.
#[derive(Debug, Clone)]
pub enum Rest {
    Nothing,
    Left {
        left: Amount,
        /// Nothing: it is not paid online.
        pay_url: Option<String>,
    },
    /// The invoice takes no more payments.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaidWith {
    Wave,
    Afrimoney,
    Qmoney,
    Card,
    Cash,
    BankTransfer,
    Check,
    WesternUnion,
    Other,
}

impl PaidWith {
    fn name(self, t: Text) -> String {
        t.get(match self {
            PaidWith::Wave => "letter-method-wave",
            PaidWith::Afrimoney => "letter-method-afrimoney",
            PaidWith::Qmoney => "letter-method-qmoney",
            PaidWith::Card => "letter-method-card",
            PaidWith::Cash => "letter-method-cash",
            PaidWith::BankTransfer => "letter-method-bank-transfer",
            PaidWith::Check => "letter-method-check",
            PaidWith::WesternUnion => "letter-method-western-union",
            PaidWith::Other => "letter-method-other",
        })
    }
}

#[derive(Template)]
#[template(path = "letters/receipt.html")]
struct Html<'a> {
    t: Text,
    subject: &'a str,
    test_mode: bool,
    merchant: &'a Shown,
    amount: &'a str,
    rows: &'a [Row],
    pay_url: Option<&'a str>,
    /// Of what is left to pay, where no address says it.
    rest: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "letters/receipt.txt")]
struct Plain<'a> {
    t: Text,
    test_mode: bool,
    merchant: &'a Shown,
    amount: &'a str,
    rows: &'a [Row],
    pay_url: Option<&'a str>,
    /// Of what is left to pay, where no address says it.
    rest: Option<&'a str>,
}

impl ReceiptLetter {
    pub fn write(&self) -> Letter {
        let t = Text::new(self.locale);
        let merchant = Shown::of(&self.merchant);
        let number = clean(&self.number);
        let title = t.with_two("letter-receipt-subject", ("number", &number), ("merchant", &merchant.name));
        let subject = subject(title, self.test_mode, t);
        let amount = amount::format(&self.amount, self.locale);
        let mut rows = vec![
            Row::new(t.get("letter-receipt-number"), number, t),
            Row::new(t.get("letter-receipt-invoice"), clean(&self.invoice_number), t),
            Row::new(t.get("letter-receipt-method"), self.paid_with.name(t), t),
            Row::new(t.get("letter-receipt-when"), moment::in_words(self.paid_at, t), t),
        ];
        if self.refunded.minor > 0 {
            rows.push(Row::new(t.get("letter-refunded"), amount::format(&self.refunded, self.locale), t));
        }
        let (pay_url, rest) = match &self.rest {
            Rest::Nothing => (None, Some(t.get("letter-receipt-settled"))),
            Rest::Closed => (None, None),
            Rest::Left { left, pay_url } => {
                rows.push(Row::new(t.get("letter-left"), amount::format(left, self.locale), t).strong());
                (pay_url.as_deref(), Some(t.with("letter-not-online", "merchant", &merchant.name)))
            }
        };
        let rest = rest.as_deref();
        let (merchant, amount, rows, test_mode) = (&merchant, amount.as_str(), rows.as_slice(), self.test_mode);
        let html = Html { t, subject: &subject, test_mode, merchant, amount, rows, pay_url, rest };
        let text = Plain { t, test_mode, merchant, amount, rows, pay_url, rest };
        Letter { html: render(&html), text: render(&text), subject }
    }
}
