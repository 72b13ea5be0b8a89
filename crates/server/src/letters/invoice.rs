//! The letter that brings an invoice.

use askama::Template;

use super::{Letter, Merchant, Row, Shown, clean, hello, lines, render, subject};
use crate::pages::amount;
use crate::pages::moment;
use crate::pages::text::{Locale, Text};
use crate::pages::view::Amount;

/// The PDF has them all.
const MOST_LINES: usize = 20;

#[derive(Debug, Clone)]
pub struct InvoiceLetter {
    pub merchant: Merchant,
    pub locale: Locale,
    pub test_mode: bool,
    pub customer: Option<String>,
    pub number: String,
    pub lines: Vec<Line>,
    pub before_tax: Amount,
    /// The rate in percent as text, and what it comes to. Nothing: no tax.
    pub tax: Option<(String, Amount)>,
    pub total: Amount,
    pub paid: Amount,
    /// What went back of that.
    pub refunded: Amount,
    pub left: Amount,
    pub standing: Standing,
    /// Unix seconds.
    pub due_at: i64,
    pub notes: String,
    /// Nothing: it takes no payments any more, or none online.
    pub pay_url: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Line {
    pub description: String,
    pub quantity: i64,
    pub total: Amount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Open,
    Overdue,
    /// Nothing is left to pay.
    Settled,
}

#[derive(Template)]
#[template(path = "letters/invoice.html")]
struct Html<'a> {
    t: Text,
    subject: &'a str,
    test_mode: bool,
    merchant: &'a Shown,
    amount: &'a str,
    state: &'a str,
    is_settled: bool,
    pay_url: Option<&'a str>,
    hello: &'a str,
    lead: &'a str,
    rows: &'a [Row],
    notes: Option<&'a [String]>,
}

#[derive(Template)]
#[template(path = "letters/invoice.txt")]
struct Plain<'a> {
    t: Text,
    test_mode: bool,
    merchant: &'a Shown,
    amount: &'a str,
    state: &'a str,
    is_settled: bool,
    pay_url: Option<&'a str>,
    hello: &'a str,
    lead: &'a str,
    rows: &'a [Row],
    notes: Option<&'a [String]>,
}

impl InvoiceLetter {
    pub fn write(&self) -> Letter {
        let t = Text::new(self.locale);
        let merchant = Shown::of(&self.merchant);
        let number = clean(&self.number);
        let title = t.with_two("letter-invoice-subject", ("number", &number), ("merchant", &merchant.name));
        let subject = subject(title, self.test_mode, t);
        let is_settled = self.standing == Standing::Settled;
        let amount = amount::format(if is_settled { &self.total } else { &self.left }, self.locale);
        let day = moment::day(self.due_at, t);
        let state = match self.standing {
            Standing::Open => t.with("letter-invoice-due", "day", &day),
            Standing::Overdue => t.with("letter-invoice-overdue", "day", &day),
            Standing::Settled => t.get("letter-invoice-settled"),
        };
        let pay_url = self.pay_url.as_deref();
        let hello = hello(self.customer.as_deref(), t);
        let lead = t.with_two("letter-invoice-lead", ("merchant", &merchant.name), ("number", &number));
        let rows = self.rows(t);
        let notes = lines(&self.notes);
        let notes = (!notes.is_empty()).then_some(notes.as_slice());
        let (subject_line, test_mode) = (subject.as_str(), self.test_mode);
        let (merchant, amount, state) = (&merchant, amount.as_str(), state.as_str());
        let (hello, lead, rows) = (hello.as_str(), lead.as_str(), rows.as_slice());
        let html = Html {
            t,
            subject: subject_line,
            test_mode,
            merchant,
            amount,
            state,
            is_settled,
            pay_url,
            hello,
            lead,
            rows,
            notes,
        };
        let text = Plain { t, test_mode, merchant, amount, state, is_settled, pay_url, hello, lead, rows, notes };
        Letter { html: render(&html), text: render(&text), subject }
    }

    fn rows(&self, t: Text) -> Vec<Row> {
        let money = |amount: &Amount| amount::format(amount, self.locale);
        let mut rows: Vec<Row> = self
            .lines
            .iter()
            .take(MOST_LINES)
            .map(|line| {
                let description = clean(&line.description);
                let name = match line.quantity {
                    1 => description,
                    quantity => format!("{quantity}\u{a0}× {description}"),
                };
                Row::new(name, money(&line.total), t)
            })
            .collect();
        if let Some(more) = self.lines.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            rows.push(Row::new(t.count("letter-invoice-more", more), String::new(), t));
        }
        if let Some((rate, tax)) = &self.tax {
            rows.push(Row::new(t.get("letter-invoice-before-tax"), money(&self.before_tax), t));
            let rate = amount::rate(rate, self.locale);
            rows.push(Row::new(t.with("letter-invoice-tax", "rate", rate), money(tax), t));
        }
        rows.push(Row::new(t.get("letter-total"), money(&self.total), t).strong());
        if self.paid.minor > 0 && self.standing != Standing::Settled {
            rows.push(Row::new(t.get("letter-invoice-paid"), money(&self.paid), t));
            rows.push(Row::new(t.get("letter-left"), money(&self.left), t).strong());
        }
        if self.refunded.minor > 0 {
            rows.push(Row::new(t.get("letter-refunded"), money(&self.refunded), t));
        }
        rows
    }
}
