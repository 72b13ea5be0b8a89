//! What a hosted page needs to know of what is paid there, in one read, and the two commands that only a page has.
//!
//! A page has no credential: the object's id is all that its reader brings. How anything looks is `pages`' to say.

use domain::checkout::{self, Checkout};
use domain::organization::Organization;
use domain::payment::{Payable, SessionStatus, Step, Transaction, TransactionStatus};
use domain::simulator::SimulatedPayment;
use domain::{Method, Mode, Money, Msisdn, Refusal, Scope, Timestamp};
use store::Tx;
use store::queries::{locate, transactions};

use super::paid_object::PaidObject;
use super::payments;
use super::sessions::{self, Payment};
use super::{Context, checkouts, load, look_up};
use crate::error::Failure;

#[derive(Debug, Clone)]
pub struct Hosted {
    pub object: PaidObject,
    pub organization: Organization,
    /// The session that was opened last.
    pub payment: Option<Payment>,
    /// Every attempt that was handed to a rail, oldest first.
    pub attempts: Vec<Transaction>,
    /// Test mode: the far side of the current attempt.
    pub simulated: Option<SimulatedPayment>,
    /// The one clock reading by which the page is drawn.
    pub now: Timestamp,
}

/// How what is paid stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It waits for money.
    Open,
    Paid,
    Expired,
    Cancelled,
}

impl Hosted {
    pub fn scope(&self) -> Scope {
        self.object.scope()
    }

    pub fn standing(&self) -> Standing {
        match &self.object {
            PaidObject::Checkout(checkout) => match checkout.status(self.now) {
                checkout::Status::Pending => Standing::Open,
                checkout::Status::Completed => Standing::Paid,
                checkout::Status::Expired => Standing::Expired,
                checkout::Status::Cancelled => Standing::Cancelled,
            },
        }
    }

    /// What the page is about: what is being paid now, or what was.
    pub fn amount(&self) -> Money {
        match &self.object {
            PaidObject::Checkout(checkout) => checkout.order.amount,
        }
    }

    /// The methods that a payer can choose, in the page's order.
    pub fn methods(&self) -> Vec<Method> {
        match &self.object {
            PaidObject::Checkout(checkout) => checkout.order.available_methods.clone(),
        }
    }

    /// The payer's phone as the merchant told it.
    pub fn told_phone(&self) -> Option<Msisdn> {
        self.object.payer().phone
    }

    pub fn told_email(&self) -> Option<String> {
        self.object.payer().email
    }

    /// Where the merchant wants the payer when it is paid.
    pub fn success_url(&self) -> Option<&str> {
        match &self.object {
            PaidObject::Checkout(checkout) => checkout.order.success_url.as_deref(),
        }
    }

    /// Where the merchant wants the payer who leaves unpaid.
    pub fn failure_url(&self) -> Option<&str> {
        match &self.object {
            PaidObject::Checkout(checkout) => checkout.order.failure_url.as_deref(),
        }
    }

    /// An attempt of which no final word is known: money may still move.
    pub fn unsettled(&self) -> Option<&Transaction> {
        self.attempts.iter().rev().find(|attempt| attempt.step() != Step::Settled)
    }

    pub fn is_paid_by(&self) -> impl Iterator<Item = &Transaction> {
        self.attempts.iter().filter(|attempt| attempt.status() == TransactionStatus::Completed)
    }
}

pub fn look_up_hosted(tx: &mut Tx<'_>, payable: Payable) -> Result<Hosted, Failure> {
    let scope = scope_of(tx, payable)?;
    let object = PaidObject::look_up(tx, scope, payable)?;
    let payment = match object.session() {
        Some(session) => Some(sessions::look_up_payment(tx, scope, session)?),
        None => None,
    };
    let current = payment.as_ref().and_then(|payment| payment.transaction.as_ref());
    let simulated = match current {
        Some(transaction) if scope.mode == Mode::Test => tx.peek::<SimulatedPayment>(scope, transaction.id)?,
        Some(_) | None => None,
    };
    // What was recorded by hand is no payer's attempt.
    let mut attempts = transactions::of_object(tx, scope, &payable.object_id())?;
    attempts.retain(|transaction| !transaction.is_recorded());
    Ok(Hosted {
        organization: look_up::<Organization>(tx, scope, scope.organization)?,
        attempts,
        now: tx.now(),
        object,
        payment,
        simulated,
    })
}

fn scope_of(tx: &mut Tx<'_>, payable: Payable) -> Result<Scope, Failure> {
    let scope = match payable {
        Payable::Checkout(id) => locate::checkout(tx, id)?.ok_or_else(Refusal::not_found::<Checkout>)?,
    };
    Ok(scope)
}

/// The payer cancels. While an attempt is with its rail only the merchant may.
pub fn leave(tx: &mut Tx<'_>, context: &Context, scope: Scope, payable: Payable) -> Result<(), Failure> {
    match payable {
        Payable::Checkout(id) => {
            if load::<Checkout>(tx, scope, id)?.attempt_with_provider() {
                return Err(Refusal::PaymentInProgress.into());
            }
            checkouts::cancel(tx, context, scope, id).map(drop)
        }
    }
}

/// The payer wants to choose again: what was begun and is not with its rail is closed.
pub fn choose_again(tx: &mut Tx<'_>, scope: Scope, payable: Payable) -> Result<(), Failure> {
    let mut object = PaidObject::load(tx, scope, payable)?;
    object.refuse_unless_payable(tx.now())?;
    let Some(session) = object.session() else { return Ok(()) };
    let mut payment = sessions::load_payment(tx, scope, session)?;
    match payment.session.status() {
        SessionStatus::Processing => return Err(Refusal::PaymentInProgress.into()),
        SessionStatus::Pending if payment.transaction.is_some() => {}
        SessionStatus::Pending | SessionStatus::Succeeded | SessionStatus::Failed | SessionStatus::Cancelled => {
            return Ok(());
        }
    }
    payments::close(tx, &mut object, &mut payment)?;
    object.save(tx)
}
