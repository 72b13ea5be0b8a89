//! Invoices: what a customer owes, and what of it was paid (contract §4.4).
//!
//! An attempt to pay one online is `payment`; the documents made of one (PDF, mail) are the server's.

mod bill;
mod paying;
mod payment;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checkout::Item;
use crate::customer::Customer;
use crate::event::EventType;
use crate::id::{Id, Object};
use crate::metadata::Metadata;
use crate::money::Money;
use crate::payment::{Payer, PaymentSession, Transaction, TransactionSummary};
use crate::phone::Msisdn;
use crate::receipt::ReceiptSummary;
use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::tax_rate::TaxRate;
use crate::time::Timestamp;

pub use bill::Bill;
pub use payment::InvoicePayment;

/// An invoice whose due date had passed before it was issued is overdue so long after that.
const GRACE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invoice {
    pub id: Id<Invoice>,
    pub scope: Scope,
    /// Guards the row. What the API calls `version` is [`Invoice::revision`].
    pub version: i64,
    revision: i64,
    /// `INV-2026-11-0001`
    pub number: String,
    state: State,
    pub customer_id: Id<Customer>,
    pub customer: BillTo,
    bill: Bill,
    pub due_date: Timestamp,
    /// Empty where none were given.
    #[serde(default)]
    pub notes: String,
    /// Text values only.
    #[serde(default)]
    pub metadata: Metadata,
    #[serde(default)]
    pub subscription_id: Option<String>,
    #[serde(default)]
    pub sent_at: Option<Timestamp>,
    #[serde(default)]
    pub sent_count: i64,
    /// One for each payment, in the order in which they came.
    #[serde(default)]
    receipts: Vec<ReceiptSummary>,
    /// The session that was opened last.
    #[serde(default)]
    pub payment_session: Option<Id<PaymentSession>>,
    /// The attempt or the money that came last.
    #[serde(default)]
    pub transaction: Option<TransactionSummary>,
    /// The provider has this attempt and its outcome is open.
    #[serde(default)]
    with_provider: Option<Attempt>,
    /// Events of this invoice so far.
    #[serde(default)]
    pub event_sequence: i64,
    pub created_at: Timestamp,
    /// The last change that API users can see.
    pub updated_at: Timestamp,
    /// The latest time that this invoice has met.
    seen_at: Timestamp,
}

impl Object for Invoice {
    const PREFIX: &'static str = "inv";
    const NOUN: &'static str = "invoice";
}

/// The customer as the invoice names them. What was not given is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BillTo {
    #[serde(default)]
    pub email: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub address: String,
    #[serde(default)]
    pub phone: Option<Msisdn>,
}

/// What a merchant asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub customer_id: Id<Customer>,
    pub customer: BillTo,
    pub bill: Bill,
    pub due_date: Timestamp,
    pub notes: String,
    pub metadata: Metadata,
    pub subscription_id: Option<String>,
}

/// What a merchant wants to be otherwise; `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    pub email: Option<String>,
    pub name: Option<String>,
    pub address: Option<String>,
    pub phone: Option<Option<Msisdn>>,
    pub tax_rate: Option<TaxRate>,
    pub due_date: Option<Timestamp>,
    pub notes: Option<String>,
    pub metadata: Option<Metadata>,
    /// Replaces all lines; there is at least one.
    pub items: Option<Vec<Item>>,
    /// The revision that the change is based on.
    pub based_on: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotUpdated {
    Refused(Refusal),
    /// The total would be above what one object may cost.
    TotalTooLarge,
}

impl From<Refusal> for NotUpdated {
    fn from(refusal: Refusal) -> Self {
        NotUpdated::Refused(refusal)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
enum State {
    Draft,
    Pending {
        issued_at: Timestamp,
        overdue_at: Timestamp,
    },
    PartiallyPaid {
        issued_at: Timestamp,
        paid: Money,
    },
    Overdue {
        issued_at: Timestamp,
        at: Timestamp,
    },
    Paid {
        issued_at: Timestamp,
        at: Timestamp,
    },
    Cancelled {
        issued_at: Option<Timestamp>,
        at: Timestamp,
        /// What arrived afterwards all the same.
        late: Money,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Attempt {
    transaction: Id<Transaction>,
    amount: Money,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Draft,
    Pending,
    PartiallyPaid,
    Overdue,
    Paid,
    Cancelled,
}

impl Status {
    pub const ALL: [Status; 6] =
        [Status::Draft, Status::Pending, Status::PartiallyPaid, Status::Overdue, Status::Paid, Status::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Draft => "draft",
            Status::Pending => "pending",
            Status::PartiallyPaid => "partially_paid",
            Status::Overdue => "overdue",
            Status::Paid => "paid",
            Status::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// As a sentence says it.
    fn word(self) -> &'static str {
        match self {
            Status::Draft => "a draft",
            Status::PartiallyPaid => "partially paid",
            Status::Pending | Status::Overdue | Status::Paid | Status::Cancelled => self.as_str(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentStatus {
    Unpaid,
    Partial,
    Paid,
    Cancelled,
}

impl PaymentStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            PaymentStatus::Unpaid => "unpaid",
            PaymentStatus::Partial => "partial",
            PaymentStatus::Paid => "paid",
            PaymentStatus::Cancelled => "cancelled",
        }
    }
}

impl Invoice {
    pub fn create(id: Id<Invoice>, scope: Scope, number: String, order: Order, now: Timestamp) -> Self {
        let Order { customer_id, customer, bill, due_date, notes, metadata, subscription_id } = order;
        Self {
            id,
            scope,
            version: 0,
            revision: 1,
            number,
            state: State::Draft,
            customer_id,
            customer,
            bill,
            due_date,
            notes,
            metadata,
            subscription_id,
            sent_at: None,
            sent_count: 0,
            receipts: Vec::new(),
            payment_session: None,
            transaction: None,
            with_provider: None,
            event_sequence: 0,
            created_at: now,
            updated_at: now,
            seen_at: now,
        }
    }

    /// What was created to be sent at once: one revision, though it was finalized as well.
    pub fn create_issued(id: Id<Invoice>, scope: Scope, number: String, order: Order, now: Timestamp) -> Self {
        let mut invoice = Self::create(id, scope, number, order, now);
        invoice.issue(now);
        invoice
    }

    pub fn revision(&self) -> i64 {
        self.revision
    }

    pub fn bill(&self) -> &Bill {
        &self.bill
    }

    pub fn receipts(&self) -> &[ReceiptSummary] {
        &self.receipts
    }

    /// What a reader is told at `now`, whether or not the timer ran.
    pub fn status(&self, now: Timestamp) -> Status {
        match self.state {
            State::Pending { overdue_at, .. }
                if self.clock(now) >= overdue_at
                    && !(crate::planted!(Defect::OverdueInclusive) && self.clock(now) == overdue_at) =>
            {
                Status::Overdue
            }
            _ => self.stored_status(),
        }
    }

    /// What is stored, for the promoted column.
    pub fn stored_status(&self) -> Status {
        match self.state {
            State::Draft => Status::Draft,
            State::Pending { .. } => Status::Pending,
            State::PartiallyPaid { .. } => Status::PartiallyPaid,
            State::Overdue { .. } => Status::Overdue,
            State::Paid { .. } => Status::Paid,
            State::Cancelled { .. } => Status::Cancelled,
        }
    }

    pub fn payment_status(&self) -> PaymentStatus {
        match self.state {
            State::Draft | State::Pending { .. } | State::Overdue { .. } => PaymentStatus::Unpaid,
            State::PartiallyPaid { .. } => PaymentStatus::Partial,
            State::Paid { .. } => PaymentStatus::Paid,
            State::Cancelled { .. } => PaymentStatus::Cancelled,
        }
    }

    pub fn total(&self) -> Money {
        self.bill.total()
    }

    pub fn paid(&self) -> Money {
        match self.state {
            State::Draft | State::Pending { .. } | State::Overdue { .. } | State::Cancelled { .. } => self.nothing(),
            State::PartiallyPaid { paid, .. } => paid,
            State::Paid { .. } => self.total(),
        }
    }

    /// What is paid is a part of the total, which is taken for granted wherever the rest is shown or counted.
    pub fn adds_up(&self) -> bool {
        let (total, paid) = (self.total(), self.paid());
        paid.currency == total.currency && (0..=total.minor).contains(&paid.minor)
    }

    pub fn remaining(&self) -> Money {
        self.total().checked_sub(self.paid()).expect("what is paid is a part of the total")
    }

    pub fn issued_date(&self) -> Option<Timestamp> {
        match self.state {
            State::Draft => None,
            State::Pending { issued_at, .. }
            | State::PartiallyPaid { issued_at, .. }
            | State::Overdue { issued_at, .. }
            | State::Paid { issued_at, .. } => Some(issued_at),
            State::Cancelled { issued_at, .. } => issued_at,
        }
    }

    pub fn paid_date(&self) -> Option<Timestamp> {
        match self.state {
            State::Paid { at, .. } => Some(at),
            State::Draft
            | State::Pending { .. }
            | State::PartiallyPaid { .. }
            | State::Overdue { .. }
            | State::Cancelled { .. } => None,
        }
    }

    pub fn cancelled_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Cancelled { at, .. } => Some(at),
            State::Draft
            | State::Pending { .. }
            | State::PartiallyPaid { .. }
            | State::Overdue { .. }
            | State::Paid { .. } => None,
        }
    }

    /// When the timer has to look, while nothing was paid.
    pub fn overdue_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Pending { overdue_at, .. } => Some(overdue_at),
            State::Draft
            | State::PartiallyPaid { .. }
            | State::Overdue { .. }
            | State::Paid { .. }
            | State::Cancelled { .. } => None,
        }
    }

    /// `None`: it is as it was asked to be already.
    pub fn update(&mut self, change: Change, now: Timestamp) -> Result<Option<EventType>, NotUpdated> {
        self.updatable(change.based_on, now)?;
        let changed = self.changed_by(change, now).ok_or(NotUpdated::TotalTooLarge)?;
        if changed == *self {
            return Ok(None);
        }
        *self = changed;
        self.touch(now);
        Ok(Some(EventType::InvoiceUpdated))
    }

    /// Whether a change that is based on a revision can be made at `now`.
    pub fn updatable(&self, based_on: Option<i64>, now: Timestamp) -> Result<(), Refusal> {
        match self.status(now) {
            Status::Draft | Status::Pending => {}
            Status::Overdue if crate::planted!(Defect::OverdueUpdatable) => {}
            status @ (Status::PartiallyPaid | Status::Overdue | Status::Paid | Status::Cancelled) => {
                return Err(Refusal::InvoiceNotUpdatable { status: status.word() });
            }
        }
        self.refuse_if_with_provider()?;
        if based_on.is_some_and(|based_on| based_on != self.revision) && !crate::planted!(Defect::StaleVersionTaken) {
            return Err(Refusal::InvoiceVersionConflict { current: self.revision });
        }
        Ok(())
    }

    /// `None` where the total is above what one object may cost.
    fn changed_by(&self, change: Change, now: Timestamp) -> Option<Self> {
        let mut changed = self.clone();
        let Change { email, name, address, phone, tax_rate, due_date, notes, metadata, items, based_on: _ } = change;
        let customer = &mut changed.customer;
        replace(&mut customer.email, email);
        replace(&mut customer.name, name);
        replace(&mut customer.address, address);
        replace(&mut customer.phone, phone);
        replace(&mut changed.notes, notes);
        replace(&mut changed.metadata, metadata);
        if items.is_some() || tax_rate.is_some() {
            let items = items.unwrap_or_else(|| self.bill.items().to_vec());
            changed.bill = Bill::new(items, tax_rate.unwrap_or(self.bill.tax_rate()))?;
            assert_eq!(changed.bill.currency(), self.bill.currency(), "an invoice keeps its currency");
        }
        if let Some(due_date) = due_date.filter(|due_date| *due_date != self.due_date) {
            changed.due_date = due_date;
            if let State::Pending { issued_at, overdue_at } = &mut changed.state {
                *overdue_at = overdue_from(due_date, *issued_at, self.clock(now));
            }
        }
        Some(changed)
    }

    pub fn finalize(&mut self, now: Timestamp) -> Result<EventType, Refusal> {
        match self.status(now) {
            Status::Draft => {}
            status @ (Status::Pending | Status::PartiallyPaid | Status::Overdue | Status::Paid | Status::Cancelled) => {
                return Err(Refusal::InvoiceNotDraft { status: status.word() });
            }
        }
        let at = self.touch(now);
        self.issue(at);
        assert_eq!(self.status(now), Status::Pending, "nothing is overdue as soon as it is issued");
        Ok(EventType::InvoiceFinalized)
    }

    fn issue(&mut self, at: Timestamp) {
        assert_eq!(self.state, State::Draft, "an invoice is issued once");
        self.state = State::Pending { issued_at: at, overdue_at: overdue_from(self.due_date, at, at) };
    }

    pub fn sent(&mut self, now: Timestamp) -> Result<EventType, Refusal> {
        self.refuse_if_closed(now)?;
        self.sent_at = Some(self.touch(now));
        self.sent_count += 1;
        Ok(EventType::InvoiceSent)
    }

    pub fn cancel(&mut self, now: Timestamp) -> Result<EventType, Refusal> {
        match self.status(now) {
            Status::Draft | Status::Pending | Status::Overdue => {}
            Status::PartiallyPaid => return Err(Refusal::InvoiceHasPayments),
            Status::Paid => return Err(Refusal::InvoiceAlreadyPaid),
            Status::Cancelled => return Err(Refusal::InvoiceAlreadyCancelled),
        }
        if !crate::planted!(Defect::CancelWhileProcessing) {
            self.refuse_if_with_provider()?;
        }
        assert_eq!(self.paid(), self.nothing(), "what was paid for is not cancelled");
        let issued_at = self.issued_date();
        let at = self.touch(now);
        self.state = State::Cancelled { issued_at, at, late: self.nothing() };
        Ok(EventType::InvoiceCancelled)
    }

    /// Stores what the clock has decided.
    pub fn observe(&mut self, now: Timestamp) -> Option<EventType> {
        let State::Pending { issued_at, overdue_at } = self.state else { return None };
        if self.status(now) != Status::Overdue {
            return None;
        }
        let at = self.touch(now);
        assert!(at >= overdue_at, "nothing is overdue early");
        self.state = State::Overdue { issued_at, at };
        assert_eq!(self.status(now), Status::Overdue, "what is stored is what readers were told");
        Some(EventType::InvoiceOverdue)
    }

    /// The number of the next event of this invoice.
    pub fn next_sequence(&mut self) -> i64 {
        assert!(self.event_sequence >= 0, "events are counted from one");
        self.event_sequence += 1;
        self.event_sequence
    }

    /// Who pays, as far as the merchant told.
    pub fn payer(&self) -> Payer {
        let BillTo { email, name, phone, address: _ } = &self.customer;
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        Payer { customer: Some(self.customer_id), phone: phone.clone(), email: given(email), name: given(name) }
    }

    fn refuse_if_closed(&self, now: Timestamp) -> Result<(), Refusal> {
        match self.status(now) {
            Status::Pending | Status::PartiallyPaid | Status::Overdue => Ok(()),
            Status::Draft => Err(Refusal::InvoiceIsDraft),
            Status::Paid => Err(Refusal::InvoiceAlreadyPaid),
            Status::Cancelled => Err(Refusal::InvoiceAlreadyCancelled),
        }
    }

    fn refuse_if_with_provider(&self) -> Result<(), Refusal> {
        if self.attempt_with_provider() { Err(Refusal::PaymentInProgress) } else { Ok(()) }
    }

    fn release(&mut self, transaction: Id<Transaction>) {
        self.with_provider = self.with_provider.filter(|attempt| attempt.transaction != transaction);
    }

    fn nothing(&self) -> Money {
        Money::new(0, self.bill.currency())
    }

    /// What this invoice has seen already does not become the future again (P9).
    pub fn clock(&self, now: Timestamp) -> Timestamp {
        now.max(self.seen_at)
    }

    fn see(&mut self, now: Timestamp) -> Timestamp {
        self.seen_at = self.clock(now);
        self.seen_at
    }

    /// A change that API users can see.
    fn touch(&mut self, now: Timestamp) -> Timestamp {
        self.updated_at = self.see(now);
        self.revision += if crate::planted!(Defect::RevisionStands) { 0 } else { 1 };
        self.updated_at
    }
}

/// When an invoice that nobody pays is overdue: at its due date, unless that had passed when it was set.
fn overdue_from(due_date: Timestamp, issued_at: Timestamp, set_at: Timestamp) -> Timestamp {
    assert!(issued_at <= set_at, "a due date counts from the issue on");
    if due_date > set_at || (crate::planted!(Defect::GraceForgotten) && issued_at < set_at) {
        due_date
    } else {
        due_date.max(issued_at.plus(GRACE))
    }
}

fn replace<T>(field: &mut T, wanted: Option<T>) {
    if let Some(wanted) = wanted {
        *field = wanted;
    }
}

#[cfg(test)]
mod tests;
