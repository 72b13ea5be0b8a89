//! What money does to an invoice: payments recorded by hand, attempts to pay online, receipts, refunds.

use super::{Attempt, Invoice, State};
use crate::event::EventType;
use crate::id::Id;
use crate::money::Money;
use crate::payment::{PaymentSession, Settlement, TransactionSummary};
use crate::receipt::ReceiptSummary;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// Payments of one invoice, enough for daily ones over years: each writes the list of all anew. What a provider confirms is
/// taken all the same.
const MOST_PARTS: usize = 1_000;

impl Invoice {
    /// Money that changed hands elsewhere. Call [`Invoice::observe`] first.
    pub fn record(&mut self, amount: Money, now: Timestamp) -> Result<EventType, Refusal> {
        assert!(amount.minor > 0, "a payment is of something");
        self.refuse_if_closed(now)?;
        assert_eq!(self.status(now), self.stored_status(), "what the clock decided is stored first");
        let remaining = self.remaining();
        if amount.minor > remaining.minor {
            return Err(Refusal::InvoiceOverpayment { remaining });
        }
        self.refuse_part_too_many(amount)?;
        // What the provider may confirm at any moment has its place first.
        let held = match crate::planted!(Defect::HeldPaymentForgotten) {
            true => 0,
            false => self.with_provider.map_or(0, |attempt| attempt.amount.minor),
        };
        if amount.minor > remaining.minor - held {
            return Err(Refusal::PaymentInProgress);
        }
        self.take(amount, now);
        Ok(self.settled_event())
    }

    /// What an online payment begun at `now` is for: `amount`, or all that is left.
    pub fn payable(&self, amount: Option<Money>, partial_allowed: bool, now: Timestamp) -> Result<Money, Refusal> {
        self.refuse_if_closed(now)?;
        let remaining = self.remaining();
        let amount = amount.unwrap_or(remaining);
        assert_eq!(amount.currency, remaining.currency, "an invoice is paid in its currency");
        assert!(amount.minor > 0, "a payment is of something");
        if amount.minor > remaining.minor {
            return Err(Refusal::InvoiceOverpayment { remaining });
        }
        if amount.minor < remaining.minor && !partial_allowed && !crate::planted!(Defect::PartsNotAsked) {
            return Err(Refusal::PartialPaymentNotAllowed { remaining });
        }
        self.refuse_part_too_many(amount)?;
        Ok(amount)
    }

    /// Whether less than all that is left may be one more payment of it, wherever its merchant takes parts.
    pub fn takes_parts(&self) -> bool {
        self.receipts.len() + 1 < MOST_PARTS
    }

    /// The last place is for all that is left, so that every invoice can be paid. While something of that is with a provider
    /// all of it would be refused too.
    fn refuse_part_too_many(&self, amount: Money) -> Result<(), Refusal> {
        let remaining = self.remaining();
        if self.takes_parts() || amount.minor >= remaining.minor {
            return Ok(());
        }
        Err(match self.attempt_with_provider() {
            true => Refusal::PaymentInProgress,
            false => Refusal::TooManyParts { parts: self.receipts.len(), remaining },
        })
    }

    pub fn session_opened(&mut self, session: Id<PaymentSession>, now: Timestamp) {
        assert!(self.refuse_if_closed(now).is_ok(), "a session opens on what can be paid");
        assert_ne!(self.payment_session, Some(session), "a session opens once");
        self.payment_session = Some(session);
        self.see(now);
    }

    /// An attempt moved. `with_provider` tells whether its outcome is open over there.
    pub fn attempt_moved(&mut self, transaction: TransactionSummary, with_provider: bool, now: Timestamp) {
        assert_eq!(transaction.amount.currency, self.bill.currency(), "an invoice is paid in its currency");
        assert!(!transaction.is_paid(), "money goes through `money_arrived`");
        self.see(now);
        let attempt = Attempt { transaction: transaction.id, amount: transaction.amount };
        let is_held = with_provider && self.refuse_if_closed(now).is_ok();
        if is_held {
            self.with_provider = Some(attempt);
        } else {
            self.release(transaction.id);
        }
        // A loser that ends later hides neither what came after it nor the money that ended it all.
        let is_over = self.refuse_if_closed(now).is_err();
        let hides = |known: &TransactionSummary| known.id > transaction.id || (is_over && known.is_paid());
        if !self.transaction.as_ref().is_some_and(hides) {
            self.transaction = Some(transaction);
        }
    }

    /// A provider confirmed an attempt of this invoice. Call [`Invoice::observe`] first.
    pub fn money_arrived(&mut self, transaction: TransactionSummary, now: Timestamp) -> Settlement {
        assert!(transaction.is_completed(), "only a completed attempt brings money");
        assert_eq!(self.status(now), self.stored_status(), "what the clock decided is stored first");
        assert_ne!(self.state, State::Draft, "nobody pays a draft");
        let amount = transaction.amount;
        self.release(transaction.id);
        self.transaction = Some(transaction);
        if let State::Cancelled { late, .. } = &mut self.state {
            // The first to come is late; what would not have fitted beside it came twice.
            let sum = late.checked_add(amount).filter(|sum| sum.minor <= self.bill.total().minor);
            let Some(sum) = sum else {
                self.see(now);
                return Settlement::Second;
            };
            if !crate::planted!(Defect::LateMoneyNotCounted) {
                *late = sum;
            }
            self.see(now);
            return Settlement::Late;
        }
        if amount.minor > self.remaining().minor {
            self.see(now);
            return Settlement::Second;
        }
        self.take(amount, now);
        Settlement::Paid
    }

    fn take(&mut self, amount: Money, now: Timestamp) {
        let (paid, remaining) = (self.paid(), self.remaining());
        assert!(amount.minor > 0, "a payment is of something");
        assert!(amount.minor <= remaining.minor, "nobody pays more than is left");
        let issued_at = self.issued_date().expect("only an issued invoice is paid");
        let at = self.touch(now);
        self.state = if amount == remaining {
            State::Paid { issued_at, at }
        } else {
            let paid = paid.checked_add(amount).expect("a part of the total fits");
            State::PartiallyPaid { issued_at, paid }
        };
        assert_eq!(self.paid().minor, paid.minor + amount.minor, "what is paid grows by what came");
        assert_eq!(self.paid().minor + self.remaining().minor, self.total().minor, "the sums agree");
    }

    /// What a payment that was taken is called.
    pub fn settled_event(&self) -> EventType {
        match self.state {
            State::PartiallyPaid { .. } => EventType::InvoicePartiallyPaid,
            State::Paid { .. } => EventType::InvoicePaid,
            State::Draft | State::Pending { .. } | State::Overdue { .. } | State::Cancelled { .. } => {
                unreachable!("a payment that was taken leaves nothing unpaid")
            }
        }
    }

    /// Belongs to the payment that was just taken, and to its revision.
    pub fn receipt_issued(&mut self, receipt: ReceiptSummary) {
        assert!(self.receipts.iter().all(|known| known.id != receipt.id), "a receipt is issued once");
        self.receipts.push(receipt);
        let sum: i128 = self.receipts.iter().map(|receipt| i128::from(receipt.amount.minor)).sum();
        assert_eq!(sum, i128::from(self.paid().minor), "every payment has its receipt");
    }

    /// Money of a payment was paid back: the invoice keeps its state, and shows it where it shows that payment.
    pub fn refund_moved(&mut self, transaction: TransactionSummary, now: Timestamp) -> bool {
        assert!(transaction.is_paid(), "only money that came is paid back");
        let is_shown = self.transaction.as_ref().is_some_and(|shown| shown.id == transaction.id);
        if is_shown {
            self.see(now);
            self.transaction = Some(transaction);
        }
        is_shown
    }

    pub fn attempt_with_provider(&self) -> bool {
        self.with_provider.is_some()
    }
}
