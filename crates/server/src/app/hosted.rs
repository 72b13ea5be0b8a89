//! What a hosted page needs to know of a checkout, in one read, and the two commands that only a page has.
//!
//! A page has no credential: the checkout's id is all that its reader brings. How anything looks is `pages`' to say.

use domain::checkout::Checkout;
use domain::organization::Organization;
use domain::payment::{SessionStatus, Step, Transaction};
use domain::simulator::SimulatedPayment;
use domain::{Id, Mode, Refusal, Scope, Timestamp};
use store::Tx;
use store::queries::{locate, transactions};

use super::sessions::{self, Payment};
use super::{Context, checkouts, load, look_up};
use crate::error::Failure;

#[derive(Debug, Clone)]
pub struct HostedCheckout {
    pub checkout: Checkout,
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

impl HostedCheckout {
    pub fn scope(&self) -> Scope {
        self.checkout.scope
    }

    /// An attempt of which no final word is known: money may still move.
    pub fn unsettled(&self) -> Option<&Transaction> {
        self.attempts.iter().rev().find(|attempt| attempt.step() != Step::Settled)
    }

    pub fn is_paid_by(&self) -> impl Iterator<Item = &Transaction> {
        self.attempts.iter().filter(|attempt| attempt.status().is_paid())
    }
}

pub fn look_up_hosted(tx: &mut Tx<'_>, id: Id<Checkout>) -> Result<HostedCheckout, Failure> {
    let scope = locate::checkout(tx, id)?.ok_or_else(Refusal::not_found::<Checkout>)?;
    let checkout = look_up::<Checkout>(tx, scope, id)?;
    let payment = match checkout.payment_session {
        Some(session) => Some(sessions::look_up_payment(tx, scope, session)?),
        None => None,
    };
    let current = payment.as_ref().and_then(|payment| payment.transaction.as_ref());
    let simulated = match current {
        Some(transaction) if scope.mode == Mode::Test => tx.peek::<SimulatedPayment>(scope, transaction.id)?,
        Some(_) | None => None,
    };
    Ok(HostedCheckout {
        organization: look_up::<Organization>(tx, scope, scope.organization)?,
        attempts: transactions::of_object(tx, scope, &id.to_string())?,
        now: tx.now(),
        checkout,
        payment,
        simulated,
    })
}

/// The payer cancels. While an attempt is with its rail only the merchant may.
pub fn leave(tx: &mut Tx<'_>, context: &Context, scope: Scope, id: Id<Checkout>) -> Result<Checkout, Failure> {
    let checkout = load::<Checkout>(tx, scope, id)?;
    if checkout.attempt_with_provider() {
        return Err(Refusal::PaymentInProgress.into());
    }
    checkouts::cancel(tx, context, scope, id)
}

/// The payer wants to choose again: what was begun and is not with its rail is closed.
pub fn choose_again(tx: &mut Tx<'_>, scope: Scope, id: Id<Checkout>) -> Result<Checkout, Failure> {
    let mut checkout = load::<Checkout>(tx, scope, id)?;
    checkout.payable(tx.now())?;
    let Some(session) = checkout.payment_session else { return Ok(checkout) };
    let Payment { session, transaction } = sessions::load_payment(tx, scope, session)?;
    match session.status() {
        SessionStatus::Processing => return Err(Refusal::PaymentInProgress.into()),
        SessionStatus::Pending if transaction.is_some() => {}
        SessionStatus::Pending | SessionStatus::Succeeded | SessionStatus::Failed | SessionStatus::Cancelled => {
            return Ok(checkout);
        }
    }
    checkouts::close_session(tx, &mut checkout, false)?;
    tx.save(&mut checkout)?;
    Ok(checkout)
}
