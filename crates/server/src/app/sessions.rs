//! Payment sessions with their attempts: found, read by the clock, closed.
//!
//! What closing a session means for the paid object is its caller's to say.

use domain::checkout::{Checkout, Status};
use domain::job::Job;
use domain::payment::{Payable, PaymentSession, SessionStatus, Transaction, TransactionStatus, TransactionSummary};
use domain::{Id, Scope, Timestamp};
use store::Tx;
use store::queries::jobs;

use super::paid_object::PaidObject;
use super::{load, look_up};
use crate::error::Failure;

/// Payments that a page looks back on, given up by their payer one for another, or leads past: each more is one more look.
pub const MOST_REPLACED: usize = 8;
/// So many are looked through where a payer would pay twice otherwise: more than anybody begins in the time of one.
const LONGEST_CHAIN: usize = 256;

/// A session with its attempt, if one was handed to a rail.
#[derive(Debug, Clone)]
pub struct Payment {
    pub session: PaymentSession,
    pub transaction: Option<Transaction>,
}

pub fn load_payment(tx: &mut Tx<'_>, scope: Scope, id: Id<PaymentSession>) -> Result<Payment, Failure> {
    let session = load::<PaymentSession>(tx, scope, id)?;
    let transaction = match session.transaction {
        Some(id) => Some(load::<Transaction>(tx, scope, id)?),
        None => None,
    };
    Ok(Payment { session, transaction })
}

pub fn look_up_payment(tx: &mut Tx<'_>, scope: Scope, id: Id<PaymentSession>) -> Result<Payment, Failure> {
    let mut session = look_up::<PaymentSession>(tx, scope, id)?;
    let mut transaction = match session.transaction {
        Some(id) => Some(look_up::<Transaction>(tx, scope, id)?),
        None => None,
    };
    // A reader is told the truth of the clock, whether or not the timer ran.
    let now = tx.now();
    if session.status() == SessionStatus::Pending && is_over(tx, &session)? {
        session.close(transaction.as_mut(), true, now);
    }
    Ok(Payment { session, transaction })
}

/// A transaction as a reader is told at this moment: what waits for a payer whose time ran out is expired, whether or not the
/// timer ran.
pub fn shown(tx: &mut Tx<'_>, stored: Transaction) -> Result<Transaction, Failure> {
    let told = match stored.status() {
        TransactionStatus::Pending => look_up_payment(tx, stored.scope, stored.attempt().session)?.transaction,
        TransactionStatus::Processing
        | TransactionStatus::Completed
        | TransactionStatus::Failed
        | TransactionStatus::Cancelled
        | TransactionStatus::Expired
        | TransactionStatus::PartiallyRefunded
        | TransactionStatus::Refunded => None,
    };
    Ok(told.unwrap_or(stored))
}

/// Whether the time of a pending session ran out.
fn is_over(tx: &mut Tx<'_>, session: &PaymentSession) -> Result<bool, Failure> {
    let now = tx.now();
    match session.payable {
        Payable::Checkout(id) => Ok(look_up::<Checkout>(tx, session.scope, id)?.status(now) == Status::Expired),
        Payable::Invoice(_) | Payable::PaymentLink(_) => Ok(session.has_expired(now)),
    }
}

/// Closes a pending session that nobody will use any more; gives what became of its attempt.
pub(super) fn close_by_id(
    tx: &mut Tx<'_>,
    scope: Scope,
    id: Id<PaymentSession>,
    expired: bool,
) -> Result<Option<TransactionSummary>, Failure> {
    let Payment { mut session, mut transaction } = load_payment(tx, scope, id)?;
    if session.status() != SessionStatus::Pending {
        return Ok(None);
    }
    // What ran out is over, whether or not its timer came first.
    let expired = expired || session.has_expired(tx.now());
    close(tx, &mut session, transaction.as_mut(), expired)?;
    Ok(transaction.map(|transaction| transaction.summary()))
}

/// Closes a pending session and asks the rail to drop its attempt; does nothing to any other.
pub(super) fn close(
    tx: &mut Tx<'_>,
    session: &mut PaymentSession,
    transaction: Option<&mut Transaction>,
    expired: bool,
) -> Result<(), Failure> {
    let now = tx.now();
    if session.status() != SessionStatus::Pending {
        return Ok(());
    }
    match transaction {
        Some(transaction) => {
            session.close(Some(transaction), expired, now);
            tx.save(transaction)?;
            jobs::schedule(tx, session.scope, Job::WithdrawAttempt(transaction.id), now)?;
        }
        None => session.close(None, expired, now),
    }
    unwatch(tx, session)?;
    tx.save(session)?;
    Ok(())
}

/// Asks the rail to drop an attempt that it has and that nobody has a use for from then on. Its outcome decides all the same; what is
/// being handed over is withdrawn once it is there.
pub(super) fn withdraw(tx: &mut Tx<'_>, payment: &Payment, from: Timestamp) -> Result<(), Failure> {
    let Payment { session, transaction: Some(transaction) } = payment else { return Ok(()) };
    if session.is_with_provider() && transaction.may_be_withdrawn() {
        jobs::schedule(tx, session.scope, Job::WithdrawAttempt(transaction.id), from)?;
    }
    Ok(())
}

/// From when on a rail is to drop what it has of a payment; nothing as long as that is wanted.
pub(super) fn unwanted_from(
    tx: &mut Tx<'_>,
    object: &PaidObject,
    session: &PaymentSession,
    transaction: &Transaction,
) -> Result<Option<Timestamp>, Failure> {
    let now = tx.now();
    if session.refuse_if_closed().is_err() || !has_use(tx, object, session)? {
        return Ok(Some(now));
    }
    // A checkout that is held has its own end.
    let runs_out = !session.payable.ends_its_sessions() && session.is_past_expiry(now);
    Ok(runs_out.then(|| session.waits_until(transaction).max(now)))
}

/// Whether a payment that waits for its payer has its use.
pub(super) fn has_use(tx: &mut Tx<'_>, object: &PaidObject, session: &PaymentSession) -> Result<bool, Failure> {
    Ok(object.has_use_for(session.amount) && !is_paid_before(tx, session)?)
}

/// Whether its payer has paid a link by another payment, which they had given up for this one. What went back is as if it had not come.
fn is_paid_before(tx: &mut Tx<'_>, session: &PaymentSession) -> Result<bool, Failure> {
    let mut replaced = session.replaces.filter(|_| matches!(session.payable, Payable::PaymentLink(_)));
    for _ in 0..LONGEST_CHAIN {
        let Some(id) = replaced else { break };
        let before = look_up::<PaymentSession>(tx, session.scope, id)?;
        if let (SessionStatus::Succeeded, Some(paid)) = (before.status(), before.transaction)
            && look_up::<Transaction>(tx, session.scope, paid)?.status() != TransactionStatus::Refunded
        {
            return Ok(true);
        }
        replaced = before.replaces;
    }
    Ok(false)
}

/// What a payer of a link began in the place of a payment that brought money after all would take it twice: it is closed, or
/// withdrawn where its rail has it.
pub(super) fn close_successors(tx: &mut Tx<'_>, session: &PaymentSession) -> Result<(), Failure> {
    let mut next = session.replaced_by.filter(|_| matches!(session.payable, Payable::PaymentLink(_)));
    for _ in 0..LONGEST_CHAIN {
        let Some(id) = next else { break };
        let successor = look_up::<PaymentSession>(tx, session.scope, id)?;
        if successor.refuse_if_closed().is_ok() {
            close_by_id(tx, session.scope, id, false)?;
            let closed = load_payment(tx, session.scope, id)?;
            withdraw(tx, &closed, tx.now())?;
        }
        next = successor.replaced_by;
    }
    Ok(())
}

/// What a rail keeps though it was asked to drop it is withdrawn again, each time that it is asked what became of it.
pub(super) fn withdraw_again(tx: &mut Tx<'_>, payment: &Payment) -> Result<(), Failure> {
    let Payment { session, transaction: Some(transaction) } = payment else { return Ok(()) };
    if !transaction.may_be_withdrawn() {
        return Ok(());
    }
    let object = PaidObject::look_up(tx, session.scope, session.payable)?;
    let now = tx.now();
    if unwanted_from(tx, &object, session, transaction)?.is_some_and(|from| from <= now) {
        jobs::schedule(tx, session.scope, Job::WithdrawAttempt(transaction.id), now)?;
    }
    Ok(())
}

/// The timer of a session whose object has none.
pub(super) fn watch(tx: &mut Tx<'_>, session: &PaymentSession) -> Result<(), Failure> {
    if !session.payable.ends_its_sessions() {
        jobs::schedule(tx, session.scope, Job::ExpireSession(session.id), session.expires_at)?;
    }
    Ok(())
}

pub(super) fn unwatch(tx: &mut Tx<'_>, session: &PaymentSession) -> Result<(), Failure> {
    if !session.payable.ends_its_sessions() {
        jobs::cancel(tx, Job::ExpireSession(session.id))?;
    }
    Ok(())
}

/// The timer: closes what nobody has used in time. What a rail has is waited for a while longer, and withdrawn then.
pub fn expire(tx: &mut Tx<'_>, scope: Scope, id: Id<PaymentSession>) -> Result<(), Failure> {
    let Some(known) = tx.peek::<PaymentSession>(scope, id)? else { return Ok(()) };
    let mut object = PaidObject::load(tx, scope, known.payable)?;
    let mut payment = load_payment(tx, scope, id)?;
    let now = tx.now();
    if payment.session.has_expired(now) {
        close(tx, &mut payment.session, payment.transaction.as_mut(), true)?;
        if let Some(transaction) = &payment.transaction {
            object.attempt_moved(id, transaction.summary(), false, now);
        }
        object.save(tx)?;
        return Ok(());
    }
    match payment.session.status() {
        SessionStatus::Pending => watch(tx, &payment.session)?,
        SessionStatus::Processing => {
            payment.session.observe(now);
            tx.save(&mut payment.session)?;
            if let Some(transaction) = &payment.transaction
                && let Some(from) = unwanted_from(tx, &object, &payment.session, transaction)?
            {
                withdraw(tx, &payment, from)?;
            }
        }
        SessionStatus::Succeeded | SessionStatus::Failed | SessionStatus::Cancelled => {}
    }
    Ok(())
}
