//! The object that is being paid, whichever it is, loaded. Each kind answers the same questions by its own rules: one
//! exhaustive match a question, so that the compiler names every place where a further kind has to answer.

use domain::checkout::{Checkout, Status};
use domain::event::EventType;
use domain::job::Job;
use domain::payment::{Payable, Payer, PaymentSession, Settlement, TransactionSummary};
use domain::{Id, Method, Money, Refusal, Scope, Timestamp};
use store::Tx;
use store::queries::jobs;

use super::{Context, checkouts, load, publish};
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};

#[derive(Debug, Clone)]
pub enum PaidObject {
    Checkout(Checkout),
}

impl PaidObject {
    /// Locked for a change: the first lock of every command that moves a payment.
    pub fn load(tx: &mut Tx<'_>, scope: Scope, payable: Payable) -> Result<Self, Failure> {
        Ok(match payable {
            Payable::Checkout(id) => Self::Checkout(load(tx, scope, id)?),
        })
    }

    pub fn save(&mut self, tx: &mut Tx<'_>) -> Result<(), Failure> {
        match self {
            Self::Checkout(checkout) => tx.save(checkout)?,
        }
        Ok(())
    }

    pub fn payable(&self) -> Payable {
        match self {
            Self::Checkout(checkout) => Payable::Checkout(checkout.id),
        }
    }

    pub fn scope(&self) -> Scope {
        match self {
            Self::Checkout(checkout) => checkout.scope,
        }
    }

    /// Whether an attempt may begin at `now`.
    pub fn refuse_unless_payable(&self, now: Timestamp) -> Result<(), Refusal> {
        match self {
            Self::Checkout(checkout) => checkout.payable(now),
        }
    }

    /// The session that was opened last.
    pub fn session(&self) -> Option<Id<PaymentSession>> {
        match self {
            Self::Checkout(checkout) => checkout.payment_session,
        }
    }

    /// What one payment is for. Any other amount than the whole is a fault.
    pub fn amount(&self, asked: Option<Money>) -> Result<Money, Fault> {
        match self {
            Self::Checkout(checkout) => {
                let whole = checkout.order.amount;
                if asked.is_none_or(|asked| asked == whole) {
                    return Ok(whole);
                }
                let message = format!("`amount` is {whole} for this checkout; leave it out.");
                Err(Fault::new("amount", FaultCode::Conflict, message))
            }
        }
    }

    /// The method that the merchant chose, where no other is taken.
    pub fn fixed_method(&self) -> Option<Method> {
        match self {
            Self::Checkout(checkout) => checkout.order.fixed_method,
        }
    }

    pub fn offers(&self, method: Method) -> bool {
        match self {
            Self::Checkout(checkout) => checkout.order.available_methods.contains(&method),
        }
    }

    /// Who pays, as far as the merchant told.
    pub fn payer(&self) -> Payer {
        match self {
            Self::Checkout(checkout) => checkouts::payer_of(checkout),
        }
    }

    /// Until when a session that opens now can be used.
    pub fn session_expires_at(&self) -> Timestamp {
        match self {
            Self::Checkout(checkout) => checkout.expires_at,
        }
    }

    pub fn session_opened(&mut self, session: Id<PaymentSession>, now: Timestamp) {
        match self {
            Self::Checkout(checkout) => checkout.session_opened(session, now),
        }
    }

    /// The attempt of a session moved. `with_provider` tells whether its outcome is open over there.
    pub fn attempt_moved(
        &mut self,
        session: Id<PaymentSession>,
        transaction: TransactionSummary,
        with_provider: bool,
        now: Timestamp,
    ) {
        match self {
            // What a session of before is still told of is not the checkout's latest attempt.
            Self::Checkout(checkout) if checkout.payment_session != Some(session) => {}
            Self::Checkout(checkout) => checkout.attempt_moved(transaction, with_provider, now),
        }
    }

    /// Attempts to pay it so far.
    pub fn attempt_count(&self) -> i64 {
        match self {
            Self::Checkout(checkout) => checkout.attempt_count,
        }
    }

    /// Money of an attempt was paid back; whether the object shows it.
    pub fn refund_moved(&mut self, transaction: TransactionSummary, now: Timestamp) -> bool {
        match self {
            Self::Checkout(checkout) => checkout.refund_moved(transaction, now),
        }
    }

    /// Whether somebody waits for a payment: what is paid, expired or cancelled does not hear of attempts that fail.
    pub fn awaits_payment(&self) -> bool {
        match self {
            Self::Checkout(checkout) => checkout.stored_status() == Status::Pending,
        }
    }

    /// Whether another session than this one still waits for the same money.
    pub fn rival_of(&self, session: Id<PaymentSession>, now: Timestamp) -> Option<Id<PaymentSession>> {
        match self {
            Self::Checkout(checkout) => {
                checkout.payment_session.filter(|open| *open != session && checkout.status(now) == Status::Pending)
            }
        }
    }

    /// A provider confirmed an attempt. Call [`PaidObject::observe`] first.
    pub fn money_arrived(&mut self, transaction: TransactionSummary, now: Timestamp) -> Settlement {
        match self {
            Self::Checkout(checkout) => checkout.money_arrived(transaction, now),
        }
    }

    /// What follows from money that paid the object.
    pub fn paid(&mut self, tx: &mut Tx<'_>, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Checkout(checkout) => {
                publish::checkout_event(tx, context, checkout, EventType::CheckoutCompleted)?;
                jobs::cancel(tx, Job::ExpireCheckout(checkout.id))?;
            }
        }
        Ok(())
    }

    /// Stores the expiry that the clock has decided.
    pub fn observe(&mut self, now: Timestamp) -> Option<EventType> {
        match self {
            Self::Checkout(checkout) => checkout.observe(now),
        }
    }
}
