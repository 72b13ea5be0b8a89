//! What became known of an attempt, by whichever way: session, transaction, paid object, ledger and events move together,
//! in one transaction.

use domain::event::EventType;
use domain::job::Job;
use domain::ledger::Entry;
use domain::method::Flow;
use domain::payment::{Moved, PaymentSession, SessionStatus, Settlement, Step, Transaction};
use domain::{Id, Refusal, Scope, Timestamp};
use store::Tx;
use store::queries::{jobs, ledger};

use super::paid_object::{Arrived, PaidObject};
use super::sessions::{self, Payment, load_payment};
use super::{Context, load, look_up, publish};
use crate::error::Failure;

/// Applies what became known of an attempt, with everything that follows from it, in one transaction.
pub fn settle(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    id: Id<Transaction>,
    apply: impl Fn(&mut Tx<'_>, &mut PaymentSession, &mut Transaction, Timestamp) -> Result<Moved, Failure>,
) -> Result<Payment, Failure> {
    let known = look_up::<Transaction>(tx, scope, id)?;
    if known.is_recorded() {
        return Err(Refusal::AttemptNotUnknown { status: known.status().as_str() }.into());
    }
    let session_id = known.attempt().session;
    let mut object = PaidObject::load(tx, scope, known.payable)?;
    let mut session = load::<PaymentSession>(tx, scope, session_id)?;
    let mut transaction = load::<Transaction>(tx, scope, id)?;
    // The attempts at one object are dated in the order in which they moved, whatever the clocks of two processes say.
    let now = object.clock(tx.now()).max(transaction.updated_at);
    let step_before = transaction.step();
    // What ran out is over, whether or not its timer came first.
    let has_expired = session.has_expired(now);
    let before = if has_expired { SessionStatus::Cancelled } else { session.status() };
    match apply(tx, &mut session, &mut transaction, now)? {
        Moved::Nowhere => {
            if transaction.step() != Step::Settled {
                ask_later(tx, &mut transaction)?;
                tx.save(&mut transaction)?;
            }
            return Ok(Payment { session, transaction: Some(transaction) });
        }
        Moved::On => object.attempt_moved(session_id, transaction.summary(), session.is_with_provider(), now),
        Moved::ToFailed => {
            // What is told of the failure is told of what still waited for it; what ran out meanwhile is told next.
            object.attempt_moved(session_id, transaction.summary(), object.is_held(), now);
            if object.awaits_payment() && !domain::planted!(Defect::FailureUntold) {
                publish::payment_event(tx, context, &mut object, &mut session, &transaction, EventType::PaymentFailed)?;
                if let Some(event) = object.failed_event() {
                    publish::object_event(tx, context, &mut object, event)?;
                }
            }
            object.attempt_moved(session_id, transaction.summary(), false, now);
        }
        Moved::ToPaid => {
            if has_expired {
                // What is told of the end of its object is told first.
                object.attempt_moved(session_id, transaction.summary_before_money(), false, now);
            }
            money_arrived(tx, context, &mut object, &mut session, &mut transaction, before, now)?;
        }
    }
    if lacks_way_on(context, &session, &transaction) {
        jobs::schedule(tx, scope, Job::StartAttempt(id), tx.now())?;
    }
    // What held an outdated object open may be over now.
    let observed = object.observe(now);
    let is_outdated = observed.is_some() && object.payable().ends_its_sessions();
    if is_outdated && !domain::planted!(Defect::ExpiryKeepsSession) {
        close_rival(tx, &mut object, session_id, true)?;
    }
    // While it was handed over nobody could tell the rail that its payer is not waited for any more.
    let is_news = step_before != transaction.step() || is_outdated;
    if transaction.may_be_withdrawn()
        && is_news
        && let Some(from) = sessions::unwanted_from(tx, &object, &session, &transaction)?
    {
        jobs::schedule(tx, scope, Job::WithdrawAttempt(id), from)?;
    }
    let is_expired = is_outdated || session.has_expired(now);
    // While the provider had it other money came, or the merchant gave up: the payer to whom it comes back is not waited for.
    let is_useless = session.status() == SessionStatus::Pending && !sessions::has_use(tx, &object, &session)?;
    if is_expired || is_useless {
        sessions::close(tx, &mut session, Some(&mut transaction), is_expired)?;
        if !transaction.status().is_paid() {
            object.attempt_moved(session_id, transaction.summary(), false, now);
        }
    }
    if let Some(event) = observed {
        publish::object_event(tx, context, &mut object, event)?;
    }
    if session.refuse_if_closed().is_err() {
        sessions::unwatch(tx, &session)?;
    }
    withdraw_rival(tx, &object, session_id)?;
    ask_later(tx, &mut transaction)?;
    object.save(tx)?;
    tx.save(&mut session)?;
    tx.save(&mut transaction)?;
    Ok(Payment { session, transaction: Some(transaction) })
}

/// Whether the rail has it, and its answer with the way on was lost: a rail that knows the reference gives it again.
pub(super) fn lacks_way_on(context: &Context, session: &PaymentSession, transaction: &Transaction) -> bool {
    session.refuse_if_closed().is_ok()
        && transaction.step() == Step::Waiting
        && session.next_action.is_none()
        && restarts(context, transaction)
}

/// Whether starting again would give the same payment, with the way on that the payer needs.
fn restarts(context: &Context, transaction: &Transaction) -> bool {
    transaction.attempt().method.flow() == Flow::Redirect
        && !transaction.status().is_paid()
        && context.starts_once(transaction)
}

fn money_arrived(
    tx: &mut Tx<'_>,
    context: &Context,
    object: &mut PaidObject,
    session: &mut PaymentSession,
    transaction: &mut Transaction,
    before: SessionStatus,
    now: Timestamp,
) -> Result<(), Failure> {
    let observed = object.observe(now);
    let is_outdated = observed.is_some() && object.payable().ends_its_sessions();
    // Another attempt that waits for a payer would only take money twice.
    if !domain::planted!(Defect::RivalStaysOpen) {
        close_rival(tx, object, session.id, is_outdated)?;
    }
    sessions::close_successors(tx, session)?;
    if let Some(event) = observed {
        publish::object_event(tx, context, object, event)?;
    }
    let Arrived { settlement, event } = object.money_arrived(transaction, before, now);
    let entry_id = tx.entropy().id(now);
    let entry = match settlement {
        Settlement::Paid | Settlement::Late => Entry::payment_completed(entry_id, transaction),
        Settlement::Second => Entry::second_money(entry_id, transaction),
    };
    if settlement != Settlement::Late || !domain::planted!(Defect::LateMoneyNotPosted) {
        ledger::append(tx, object.scope(), &entry, now)?;
    }
    if settlement == Settlement::Paid {
        object.issue_receipt(tx, context, transaction)?;
    }
    publish::payment_event(tx, context, object, session, transaction, EventType::PaymentSucceeded)?;
    if domain::planted!(Defect::SuccessToldTwice) {
        publish::payment_event(tx, context, object, session, transaction, EventType::PaymentSucceeded)?;
    }
    if let Some(event) = event
        && !domain::planted!(Defect::CompletionUntold)
    {
        publish::object_event(tx, context, object, event)?;
    }
    object.settled(tx, settlement)
}

/// Closes the object's open session if it is another than this one, and its payer's turn.
fn close_rival(
    tx: &mut Tx<'_>,
    object: &mut PaidObject,
    session: Id<PaymentSession>,
    expired: bool,
) -> Result<(), Failure> {
    if let Some(rival) = object.rival_of(session)
        && let Some(closed) = sessions::close_by_id(tx, object.scope(), rival, expired)?
    {
        object.attempt_moved(rival, closed, false, tx.now());
    }
    Ok(())
}

/// Asks the rail to drop another attempt than this one, where what has become of the object leaves no use for it: whoever approves
/// it now would only pay twice.
fn withdraw_rival(tx: &mut Tx<'_>, object: &PaidObject, session: Id<PaymentSession>) -> Result<(), Failure> {
    if let Some(rival) = object.rival_of(session) {
        let rival = load_payment(tx, object.scope(), rival)?;
        if !object.has_use_for(rival.session.amount) {
            sessions::withdraw(tx, &rival, tx.now())?;
        }
    }
    Ok(())
}

/// The rail is asked again, with growing pauses, until the outcome is known.
fn ask_later(tx: &mut Tx<'_>, transaction: &mut Transaction) -> Result<(), Failure> {
    let (job, now) = (Job::AskRail(transaction.id), tx.now());
    match transaction.next_question(now) {
        Some(_) if domain::planted!(Defect::QuestionForgotten) => jobs::cancel(tx, job)?,
        Some(pause) => {
            // At the end of a code's call at once: nobody else answers who handed it over, if that request died. Once the call is
            // lost, before that as well: what came of the code counts whenever the rail knows it.
            let end_of_call = transaction.code_on_its_way_until().filter(|until| now < *until);
            let next = match (end_of_call, transaction.step()) {
                (Some(until), Step::Unknown) => until.min(now.plus(pause)),
                (Some(until), Step::Sending | Step::Waiting | Step::Settled) => until,
                (None, _) => now.plus(pause),
            };
            jobs::schedule(tx, transaction.scope, job, next)?;
        }
        None => jobs::cancel(tx, job)?,
    }
    Ok(())
}
