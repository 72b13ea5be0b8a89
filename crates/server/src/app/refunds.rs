//! Refunds: asked for in one transaction, settled in another. The call to the rail, between the two, is in
//! `refund_calls`.
//!
//! Rows are locked in the order of all payments, the paid object first, and then the refund and the balance's guard.

use domain::event::EventType;
use domain::job::{ClaimedJob, Job};
use domain::ledger::Entry;
use domain::organization::Organization;
use domain::payment::{Step, Transaction};
use domain::rail::RefundSupport;
use domain::refund::{Refund, RefundMoved, Source};
use domain::{Id, Money, Refusal, Scope, Sum, Timestamp};
use store::Tx;
use store::queries::{balances, jobs, ledger, refunds as stored};

use super::balance;
use super::paid_object::PaidObject;
use super::{Context, load, look_up, organization_of, publish};
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};

/// What a request asks for, each value readable by itself.
#[derive(Debug, Clone)]
pub struct NewRefund {
    pub transaction: Id<Transaction>,
    /// All that is left, if nothing is said.
    pub amount: Option<Money>,
    pub reason: Option<String>,
}

/// Commits the intent: the money can be used for nothing else, and the worker hands the refund to its rail.
pub fn ask(tx: &mut Tx<'_>, context: &Context, scope: Scope, new: &NewRefund) -> Result<Refund, Failure> {
    let found = look_up::<Transaction>(tx, scope, new.transaction)?;
    // What is given back at once is shown at once, and what shows it is locked first.
    let object = match found.is_recorded() {
        true => Some(PaidObject::load(tx, scope, found.payable)?),
        false => None,
    };
    let mut transaction = load::<Transaction>(tx, scope, new.transaction)?;
    // Behind what it pays back, also where that was stored by a process whose clock is ahead.
    let now = tx.now().max(transaction.updated_at);
    let id = tx.entropy().id(now);
    let mut refund = Refund::ask(id, &mut transaction, new.amount, new.reason.clone(), now)?;
    let takes_all = transaction.refundable().minor == 0;
    stored::of_transaction(tx, scope, transaction.id)?.refuse_beyond_most(takes_all)?;
    let entry_id = tx.entropy().id(now);
    let entry = match refund.source.clone() {
        Source::Merchant { rail } => {
            check_support(context, &transaction, &rail, refund.amount)?;
            take_from_merchant(tx, scope, refund.amount)?;
            Entry::refund_asked(entry_id, &refund)
        }
        Source::Unapplied { rail } => {
            check_support(context, &transaction, &rail, refund.amount)?;
            Entry::refund_asked(entry_id, &refund)
        }
        Source::Offline => {
            publish::refund_event(tx, &mut refund, EventType::RefundCompleted)?;
            Entry::offline_refunded(entry_id, &refund)
        }
    };
    ledger::append(tx, scope, &entry, now)?;
    tx.save(&mut transaction)?;
    tx.insert(&mut refund)?;
    match object {
        Some(mut object) => {
            if object.refund_moved(transaction.summary(), now) {
                object.save(tx)?;
            }
        }
        None if domain::planted!(Defect::RefundNotSent) => {}
        None => jobs::schedule(tx, scope, Job::SendRefund(id), tx.now())?,
    }
    Ok(refund)
}

/// What the rail pays back is the capability of the rail that has the money, whichever stands behind the method today.
fn check_support(context: &Context, transaction: &Transaction, rail: &str, amount: Money) -> Result<(), Failure> {
    let support = match context.offer_of(transaction.scope.mode, transaction.attempt().method, rail) {
        Some(offer) => offer.capability.refund,
        None => RefundSupport::None,
    };
    match support {
        RefundSupport::Partial => Ok(()),
        RefundSupport::Full if amount == transaction.amount => Ok(()),
        RefundSupport::Full => {
            let message = "`amount`: this payment provider refunds a payment as a whole only; leave it out.";
            Err(Fault::new("amount", FaultCode::NotAllowed, message).into())
        }
        RefundSupport::None => Err(Refusal::RefundNotSupported.into()),
    }
}

/// From the lock to the end of the transaction no other debit takes anything out of this balance.
fn take_from_merchant(tx: &mut Tx<'_>, scope: Scope, required: Money) -> Result<(), Failure> {
    let organization = organization_of(tx, scope)?;
    if organization.payments.allow_negative_balance {
        balances::lock(tx, scope, required.currency)?;
        return Ok(());
    }
    let settled = settled_until(&organization, tx.now());
    // What was paid within the delay may be millions of postings: nobody waits while they are added up.
    let before = balance::of(tx, scope, required.currency, settled)?;
    check_available(before.available(), required)?;
    balances::lock(tx, scope, required.currency)?;
    check_available(balance::still_available(tx, scope, &before, settled, required)?, required)
}

fn check_available(available: Sum, required: Money) -> Result<(), Failure> {
    if available.minor < i128::from(required.minor) && !domain::planted!(Defect::BalanceUnchecked) {
        return Err(Refusal::InsufficientBalance { available, required }.into());
    }
    Ok(())
}

/// What was paid up to then is available now; `None`: all of it is. Without a delay no clock has a say, since another process's may be
/// ahead of ours.
pub fn settled_until(organization: &Organization, now: Timestamp) -> Option<Timestamp> {
    match organization.payments.settlement_delay_s {
        0 => None,
        delay_s => Some(now.minus(std::time::Duration::from_secs(delay_s.into()))),
    }
}

/// Applies what became known of a refund, with everything that follows from it, in one transaction.
pub fn settle(
    tx: &mut Tx<'_>,
    scope: Scope,
    id: Id<Refund>,
    claimed: Option<&ClaimedJob>,
    apply: impl Fn(&mut Tx<'_>, &mut Refund, &mut Transaction, Timestamp) -> Result<RefundMoved, Failure>,
) -> Result<Refund, Failure> {
    let transaction_id = look_up::<Refund>(tx, scope, id)?.transaction;
    let payable = look_up::<Transaction>(tx, scope, transaction_id)?.payable;
    let mut object = PaidObject::load(tx, scope, payable)?;
    let mut transaction = load::<Transaction>(tx, scope, transaction_id)?;
    let mut refund = load::<Refund>(tx, scope, id)?;
    let now = tx.now().max(transaction.updated_at).max(refund.updated_at);
    let moved = apply(tx, &mut refund, &mut transaction, now)?;
    let entry_id = tx.entropy().id(now);
    let outcome = match moved {
        RefundMoved::Nowhere | RefundMoved::On => None,
        RefundMoved::ToCompleted => Some((Entry::refund_completed(entry_id, &refund), EventType::RefundCompleted)),
        RefundMoved::ToFailed => Some((Entry::refund_failed(entry_id, &refund), EventType::RefundFailed)),
        RefundMoved::Corrected => {
            // It is gone whether or not there is enough; yet no other debit may count it as there.
            if matches!(refund.source, Source::Merchant { .. }) {
                balances::lock(tx, scope, refund.amount.currency)?;
            }
            Some((Entry::refund_corrected(entry_id, &refund), EventType::RefundCompleted))
        }
    };
    if let Some((entry, event)) = outcome {
        if !domain::planted!(Defect::RefundNotPosted) {
            ledger::append(tx, scope, &entry, now)?;
        }
        if !domain::planted!(Defect::RefundUntold) {
            publish::refund_event(tx, &mut refund, event)?;
        }
        tx.save(&mut transaction)?;
        if object.refund_moved(transaction.summary(), now) {
            object.save(tx)?;
        }
    }
    if moved != RefundMoved::Nowhere || refund.step() != Step::Settled {
        ask_later(tx, &mut refund)?;
        tx.save(&mut refund)?;
    }
    if let Some(claimed) = claimed {
        jobs::done(tx, claimed)?;
    }
    Ok(refund)
}

/// The rail is asked again, with growing pauses, until the outcome is known.
fn ask_later(tx: &mut Tx<'_>, refund: &mut Refund) -> Result<(), Failure> {
    let job = Job::AskRefund(refund.id);
    let now = tx.now();
    match refund.next_question(now) {
        Some(pause) => jobs::schedule(tx, refund.scope, job, now.plus(pause))?,
        None => jobs::cancel(tx, job)?,
    }
    Ok(())
}
