//! What is paid: the object itself, with what the shell asks of it (`app/paid_object.rs` of the server).

use domain::checkout::{self, Checkout};
use domain::event::EventType;
use domain::invoice::{self, Invoice};
use domain::payment::{Payable, PaymentSession, SESSION_LIFETIME, Settlement, Transaction, TransactionSummary};
use domain::receipt::{ReceiptSummary, ValidationCode};
use domain::{Id, Money, Refusal, Timestamp};

use crate::kept::Kept;
use crate::sample::id;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Stored {
    Checkout(Kept<Checkout>),
    Invoice(Kept<Invoice>),
}

/// Loaded for a change.
pub(crate) enum Object {
    Checkout(Checkout),
    Invoice(Invoice),
}

impl Stored {
    pub(crate) fn load(&self) -> Object {
        match self {
            Self::Checkout(checkout) => Object::Checkout(checkout.load()),
            Self::Invoice(invoice) => Object::Invoice(invoice.load()),
        }
    }

    /// What a reader is told at `now`.
    pub(crate) fn status(&self, now: Timestamp) -> &'static str {
        match self {
            Self::Checkout(checkout) => checkout.status(now).as_str(),
            Self::Invoice(invoice) => invoice.status(now).as_str(),
        }
    }

    pub(crate) fn session(&self) -> Option<Id<PaymentSession>> {
        match self {
            Self::Checkout(checkout) => checkout.payment_session,
            Self::Invoice(invoice) => invoice.payment_session,
        }
    }
}

impl Object {
    pub(crate) fn save(self) -> Stored {
        match self {
            Self::Checkout(checkout) => Stored::Checkout(Kept::new(checkout)),
            Self::Invoice(invoice) => Stored::Invoice(Kept::new(invoice)),
        }
    }

    pub(crate) fn payable(&self) -> Payable {
        match self {
            Self::Checkout(checkout) => Payable::Checkout(checkout.id),
            Self::Invoice(invoice) => Payable::Invoice(invoice.id),
        }
    }

    /// What a payment begun at `now` is for.
    pub(crate) fn amount(&self, asked: Option<Money>, now: Timestamp) -> Result<Money, Refusal> {
        match self {
            Self::Checkout(checkout) => checkout.payable(now).map(|()| checkout.order.amount),
            Self::Invoice(invoice) => invoice.payable(asked, true, now),
        }
    }

    pub(crate) fn session_expires_at(&self, now: Timestamp) -> Timestamp {
        match self {
            Self::Checkout(checkout) => checkout.expires_at,
            Self::Invoice(_) => now.plus(SESSION_LIFETIME),
        }
    }

    pub(crate) fn session_opened(&mut self, session: Id<PaymentSession>, now: Timestamp) {
        match self {
            Self::Checkout(checkout) => checkout.session_opened(session, now),
            Self::Invoice(invoice) => invoice.session_opened(session, now),
        }
    }

    pub(crate) fn attempt_moved(
        &mut self,
        session: Id<PaymentSession>,
        transaction: TransactionSummary,
        with_provider: bool,
        now: Timestamp,
    ) {
        match self {
            // What a session of before is still told of concerns the checkout as long as it shows that attempt.
            Self::Checkout(checkout)
                if checkout.payment_session != Some(session)
                    && checkout.transaction.as_ref().is_none_or(|shown| shown.id != transaction.id) => {}
            Self::Checkout(checkout) => checkout.attempt_moved(transaction, with_provider, now),
            Self::Invoice(invoice) => invoice.attempt_moved(transaction, with_provider, now),
        }
    }

    pub(crate) fn awaits_payment(&self) -> bool {
        match self {
            Self::Checkout(checkout) => checkout.stored_status() == checkout::Status::Pending,
            Self::Invoice(invoice) => match invoice.stored_status() {
                invoice::Status::Pending | invoice::Status::PartiallyPaid | invoice::Status::Overdue => true,
                invoice::Status::Draft | invoice::Status::Paid | invoice::Status::Cancelled => false,
            },
        }
    }

    pub(crate) fn has_use_for(&self, amount: Money) -> bool {
        match self {
            Self::Checkout(_) => self.awaits_payment(),
            Self::Invoice(invoice) => self.awaits_payment() && amount.minor <= invoice.remaining().minor,
        }
    }

    /// Another session than this one that waits, or waited, for the same money.
    pub(crate) fn rival_of(&self, session: Id<PaymentSession>) -> Option<Id<PaymentSession>> {
        let latest = match self {
            Self::Checkout(checkout) => checkout.payment_session,
            Self::Invoice(invoice) => invoice.payment_session,
        };
        latest.filter(|latest| *latest != session)
    }

    /// What the money means, and what happened to the object thereby. Money that pays an invoice has its receipt.
    pub(crate) fn money_arrived(
        &mut self,
        transaction: &mut Transaction,
        now: Timestamp,
    ) -> (Settlement, Option<EventType>) {
        let (settlement, event) = match self {
            Self::Checkout(checkout) => {
                (checkout.money_arrived(transaction.summary(), now), EventType::CheckoutCompleted)
            }
            Self::Invoice(invoice) => {
                let settlement = invoice.money_arrived(transaction.summary(), now);
                if settlement != Settlement::Paid {
                    (settlement, EventType::InvoicePaid)
                } else {
                    issue_receipt(invoice, transaction.amount, now);
                    (settlement, invoice.settled_event())
                }
            }
        };
        transaction.late = settlement == Settlement::Late;
        transaction.duplicate = settlement == Settlement::Second;
        (settlement, (settlement == Settlement::Paid).then_some(event))
    }

    pub(crate) fn observe(&mut self, now: Timestamp) -> Option<EventType> {
        match self {
            Self::Checkout(checkout) => checkout.observe(now),
            Self::Invoice(invoice) => invoice.observe(now),
        }
    }

    pub(crate) fn next_sequence(&mut self) -> i64 {
        match self {
            Self::Checkout(checkout) => checkout.next_sequence(),
            Self::Invoice(invoice) => invoice.next_sequence(),
        }
    }
}

pub(crate) fn issue_receipt(invoice: &mut Invoice, amount: Money, now: Timestamp) {
    let number = u8::try_from(invoice.receipts().len()).expect("a model has few receipts");
    invoice.receipt_issued(ReceiptSummary {
        id: id(100 + number),
        number: format!("RCT-{number}"),
        amount,
        payment_date: now,
        validation_code: ValidationCode::new([number; 16]),
    });
}
