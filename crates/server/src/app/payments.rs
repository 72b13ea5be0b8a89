//! Payment sessions and attempts: begin, and what a rail's word does to session, transaction, checkout and ledger.
//!
//! Rows are locked in one order everywhere: the paid object, its session, its transaction.

use std::time::Duration;

use domain::checkout::{Checkout, Settlement, Status};
use domain::event::EventType;
use domain::job::{ClaimedJob, Job};
use domain::ledger::Entry;
use domain::method::Flow;
use domain::organization::Organization;
use domain::payment::{Again, Moved, Payable, Payer, PaymentSession, SessionStatus, Step, Transaction};
use domain::{Id, Metadata, Method, Money, Refusal, Scope, Timestamp};
use store::Tx;
use store::queries::{jobs, ledger};

use super::{Context, checkouts, load, look_up, publish};
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};

/// Whoever runs a job inline holds it so long; then the worker takes over.
pub const INLINE_LEASE: Duration = Duration::from_secs(30);
/// A submitted code is not stored, so nobody can send it again: the rail is asked what became of it.
const CODE_LEASE: Duration = Duration::from_secs(20);

/// What a request to pay asks for, each value readable by itself.
#[derive(Debug, Clone)]
pub struct Initialize {
    pub target: Target,
    pub method: Option<Method>,
    pub amount: Option<Money>,
    pub payer: Payer,
    pub metadata: Option<Metadata>,
    /// The one-time code of a second step. Handed to the rail, never stored.
    pub has_code: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Checkout(Id<Checkout>),
    Session(Id<PaymentSession>),
}

/// A session with its attempt, if one was handed to a rail.
#[derive(Debug, Clone)]
pub struct Payment {
    pub session: PaymentSession,
    pub transaction: Option<Transaction>,
}

/// What has to be done outside before the request can be answered.
#[derive(Debug, Clone)]
pub enum Begun {
    /// Nothing: the session as it stands is the answer.
    Nothing(Box<Payment>),
    /// Hand the attempt to its rail.
    Start(ClaimedJob, Id<PaymentSession>),
    /// Hand the code to the rail.
    SubmitCode(Scope, Id<Transaction>, Id<PaymentSession>),
}

/// Opens, continues or starts a session. `key` is the idempotency key whose answer waits for the rail.
pub fn begin(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    request: &Initialize,
    key: Option<(String, String)>,
) -> Result<Begun, Failure> {
    let checkout_id = match request.target {
        Target::Checkout(id) => id,
        Target::Session(id) => {
            let session = look_up::<PaymentSession>(tx, scope, id)?;
            session.refuse_if_closed()?;
            let Payable::Checkout(checkout_id) = session.payable;
            checkout_id
        }
    };
    let mut checkout = load::<Checkout>(tx, scope, checkout_id)?;
    checkout.payable(tx.now())?;
    let mut current = match checkout.payment_session {
        Some(id) => Some(load_payment(tx, scope, id)?),
        None => None,
    };
    if let Target::Session(id) = request.target
        && current.as_ref().is_none_or(|current| current.session.id != id)
    {
        return Err(Refusal::PaymentSessionClosed.into());
    }
    if request.has_code {
        let payment = current.as_mut().ok_or(Refusal::CodeNotExpected)?;
        return submit_code(tx, &mut checkout, payment, key);
    }
    check_request(&checkout, request)?;
    let method = request.method.or(checkout.order.fixed_method);
    let mut payment = match current {
        Some(payment) => continue_or_replace(tx, &mut checkout, payment, method, request)?,
        None => open(tx, &mut checkout, method, request)?,
    };
    match method.or(payment.session.method) {
        Some(method) if payment.transaction.is_none() => {
            let job = start(tx, context, &mut checkout, &mut payment.session, method, key)?;
            Ok(Begun::Start(job, payment.session.id))
        }
        _ => {
            tx.save(&mut checkout)?;
            Ok(Begun::Nothing(Box::new(payment)))
        }
    }
}

/// Closes a session that waits for a code and starts the same once more, for a payer whose code never came.
///
/// It is safe there and nowhere else: without its code the attempt before can't take money. Before its pause is over it
/// does nothing.
pub fn begin_again(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    id: Id<Checkout>,
    key: Option<(String, String)>,
) -> Result<Begun, Failure> {
    let mut checkout = load::<Checkout>(tx, scope, id)?;
    checkout.payable(tx.now())?;
    let session = checkout.payment_session.ok_or(Refusal::CodeNotExpected)?;
    let mut current = load_payment(tx, scope, session)?;
    if current.session.is_with_provider() {
        return Err(Refusal::PaymentInProgress.into());
    }
    let (Some(method), Some(transaction)) = (current.session.method, &mut current.transaction) else {
        return Err(Refusal::CodeNotExpected.into());
    };
    let again_at = current.session.code_again_at(transaction).ok_or(Refusal::CodeNotExpected)?;
    if tx.now() < again_at {
        return Ok(Begun::Nothing(Box::new(current)));
    }
    checkouts::close(tx, &mut current.session, Some(transaction), false)?;
    show_latest(&mut checkout, Some(transaction), tx.now());
    let request = Initialize {
        target: Target::Checkout(id),
        method: Some(method),
        amount: None,
        payer: current.session.payer.clone(),
        metadata: Some(current.session.metadata.clone()),
        has_code: false,
    };
    let mut payment = open(tx, &mut checkout, Some(method), &request)?;
    let job = start(tx, context, &mut checkout, &mut payment.session, method, key)?;
    Ok(Begun::Start(job, payment.session.id))
}

fn check_request(checkout: &Checkout, request: &Initialize) -> Result<(), Failure> {
    let order = &checkout.order;
    if let (Some(fixed), Some(wanted)) = (order.fixed_method, request.method)
        && fixed != wanted
    {
        return Err(Refusal::PaymentMethodFixed { method: fixed.as_str() }.into());
    }
    let mut faults = Vec::new();
    if let Some(method) = request.method
        && !order.available_methods.contains(&method)
    {
        let message = format!("`payment_method` {} is not offered by this checkout.", method.as_str());
        faults.push(Fault::new("payment_method", FaultCode::NotAllowed, message));
    }
    if request.amount.is_some_and(|amount| amount != order.amount) {
        let message = format!("`amount` is {} for this checkout; leave it out.", order.amount);
        faults.push(Fault::new("amount", FaultCode::Conflict, message));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.into()) }
}

fn open(
    tx: &mut Tx<'_>,
    checkout: &mut Checkout,
    method: Option<Method>,
    request: &Initialize,
) -> Result<Payment, Failure> {
    let now = tx.now();
    let id = tx.entropy().id(now);
    let payer = merged(request.payer.clone(), &checkouts::payer_of(checkout));
    let mut session = PaymentSession::open(
        id,
        checkout.scope,
        Payable::Checkout(checkout.id),
        checkout.order.amount,
        method,
        payer,
        checkout.expires_at,
        now,
    );
    session.metadata = request.metadata.clone().unwrap_or_default();
    refuse_without_phone(&session)?;
    checkout.session_opened(id, now);
    tx.insert(&mut session)?;
    Ok(Payment { session, transaction: None })
}

/// Contract §2.2 rule 6: one open session; the same method goes on with it, another replaces it.
fn continue_or_replace(
    tx: &mut Tx<'_>,
    checkout: &mut Checkout,
    mut current: Payment,
    method: Option<Method>,
    request: &Initialize,
) -> Result<Payment, Failure> {
    let again = current.session.again(method)?;
    if again == Again::New {
        return open(tx, checkout, method, request);
    }
    let other_phone = request.payer.phone.is_some() && request.payer.phone != current.session.payer.phone;
    // A phone that was handed to a rail can't be changed there.
    if again == Again::Replace || (other_phone && current.transaction.is_some()) {
        checkouts::close(tx, &mut current.session, current.transaction.as_mut(), false)?;
        show_latest(checkout, current.transaction.as_ref(), tx.now());
        return open(tx, checkout, method, request);
    }
    if current.transaction.is_none() {
        let session = &mut current.session;
        session.method = method.or(session.method);
        session.payer = merged(request.payer.clone(), &session.payer);
        if let Some(metadata) = &request.metadata {
            session.metadata = metadata.clone();
        }
        session.updated_at = session.updated_at.max(tx.now());
        refuse_without_phone(session)?;
        tx.save(session)?;
    }
    Ok(current)
}

/// A closed attempt is what the checkout shows until the next one begins.
fn show_latest(checkout: &mut Checkout, transaction: Option<&Transaction>, now: Timestamp) {
    if let Some(transaction) = transaction {
        checkout.attempt_moved(transaction.summary(), false, now);
    }
}

fn refuse_without_phone(session: &PaymentSession) -> Result<(), Failure> {
    let lacks_phone = session.method.is_some_and(Method::needs_phone) && session.payer.phone.is_none();
    if !lacks_phone {
        return Ok(());
    }
    let message = "`customer_phone` is required for this method: the wallet's number, such as \"+2207000000\".";
    Err(Fault::new("customer_phone", FaultCode::Required, message).into())
}

/// What the request says wins over what was known.
fn merged(request: Payer, known: &Payer) -> Payer {
    Payer {
        phone: request.phone.or_else(|| known.phone.clone()),
        email: request.email.or_else(|| known.email.clone()),
        name: request.name.or_else(|| known.name.clone()),
    }
}

/// Commits the intent: the transaction and the job that hands it to the rail, held by whoever asked.
fn start(
    tx: &mut Tx<'_>,
    context: &Context,
    checkout: &mut Checkout,
    session: &mut PaymentSession,
    method: Method,
    key: Option<(String, String)>,
) -> Result<ClaimedJob, Failure> {
    let scope = checkout.scope;
    let offer = context.offer(scope.mode, method).ok_or(Refusal::NoPaymentMethodAvailable)?;
    let organization = look_up::<Organization>(tx, scope, scope.organization)?;
    let fee = organization.payments.fees.fee(method, session.amount);
    let now = tx.now();
    let id = tx.entropy().id(now);
    let mut transaction = session.begin(id, method, offer.rail.to_owned(), fee, now);
    session.unanswered_key = key;
    checkout.attempt_moved(transaction.summary(), false, now);
    transaction.attempt_count = checkout.attempt_count;
    tx.save(checkout)?;
    tx.save(session)?;
    tx.insert(&mut transaction)?;
    Ok(jobs::hold(tx, scope, Job::StartAttempt(id), now.plus(INLINE_LEASE))?)
}

fn submit_code(
    tx: &mut Tx<'_>,
    checkout: &mut Checkout,
    payment: &mut Payment,
    key: Option<(String, String)>,
) -> Result<Begun, Failure> {
    let now = tx.now();
    payment.session.submit_code(payment.transaction.as_ref(), now)?;
    let Some(transaction) = &payment.transaction else { return Err(Refusal::CodeNotExpected.into()) };
    payment.session.unanswered_key = key;
    checkout.attempt_moved(transaction.summary(), true, now);
    let scope = checkout.scope;
    jobs::schedule(tx, scope, Job::AskRail(transaction.id), now.plus(CODE_LEASE))?;
    tx.save(checkout)?;
    tx.save(&mut payment.session)?;
    Ok(Begun::SubmitCode(scope, transaction.id, payment.session.id))
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
    let Payable::Checkout(checkout_id) = session.payable;
    let now = tx.now();
    if session.status() == SessionStatus::Pending
        && look_up::<Checkout>(tx, scope, checkout_id)?.status(now) == Status::Expired
    {
        session.close(transaction.as_mut(), true, now);
    }
    Ok(Payment { session, transaction })
}

/// Applies what became known of an attempt, with everything that follows from it, in one transaction.
pub fn settle(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    id: Id<Transaction>,
    apply: impl Fn(&mut PaymentSession, &mut Transaction, Timestamp) -> Result<Moved, Failure>,
) -> Result<Payment, Failure> {
    let Payable::Checkout(checkout_id) = look_up::<Transaction>(tx, scope, id)?.payable;
    let mut checkout = load::<Checkout>(tx, scope, checkout_id)?;
    let session_id = look_up::<Transaction>(tx, scope, id)?.session;
    let mut session = load::<PaymentSession>(tx, scope, session_id)?;
    let mut transaction = load::<Transaction>(tx, scope, id)?;
    let now = tx.now();
    let is_current = checkout.payment_session == Some(session_id);
    match apply(&mut session, &mut transaction, now)? {
        Moved::Nowhere => {
            if transaction.step() != Step::Settled {
                ask_later(tx, &mut transaction)?;
                tx.save(&mut transaction)?;
            }
            return Ok(Payment { session, transaction: Some(transaction) });
        }
        Moved::On => {
            if is_current {
                checkout.attempt_moved(transaction.summary(), session.is_with_provider(), now);
            }
        }
        Moved::ToFailed => {
            if is_current {
                checkout.attempt_moved(transaction.summary(), false, now);
            }
            // Nobody waits for an attempt at what is paid, expired or cancelled.
            if checkout.stored_status() == Status::Pending {
                publish::payment_event(tx, context, &mut checkout, &transaction, EventType::PaymentFailed)?;
            }
        }
        Moved::ToPaid => money_arrived(tx, context, &mut checkout, &session, &mut transaction)?,
    }
    // The rail has it, but its answer with the way on was lost: a rail that knows the reference gives it again.
    if transaction.step() == Step::Waiting && session.next_action.is_none() && restarts(context, &transaction) {
        jobs::schedule(tx, scope, Job::StartAttempt(id), now)?;
    }
    // What held an outdated checkout open may be over now.
    if let Some(event) = checkout.observe(now) {
        if is_current {
            checkouts::close(tx, &mut session, Some(&mut transaction), true)?;
            if !transaction.status().is_paid() {
                show_latest(&mut checkout, Some(&transaction), now);
            }
        }
        publish::checkout_event(tx, context, &mut checkout, event)?;
    }
    ask_later(tx, &mut transaction)?;
    tx.save(&mut checkout)?;
    tx.save(&mut session)?;
    tx.save(&mut transaction)?;
    Ok(Payment { session, transaction: Some(transaction) })
}

/// Whether starting again would give the same payment, with the way on that the payer needs.
fn restarts(context: &Context, transaction: &Transaction) -> bool {
    transaction.method.flow() == Flow::Redirect
        && !transaction.status().is_paid()
        && context
            .offer(transaction.scope.mode, transaction.method)
            .is_some_and(|offer| offer.capability.start_is_idempotent)
}

fn money_arrived(
    tx: &mut Tx<'_>,
    context: &Context,
    checkout: &mut Checkout,
    session: &PaymentSession,
    transaction: &mut Transaction,
) -> Result<(), Failure> {
    let now = tx.now();
    if let Some(event) = checkout.observe(now) {
        publish::checkout_event(tx, context, checkout, event)?;
    }
    // Another attempt that waits for a payer would only take money twice.
    if checkout.payment_session != Some(session.id) && checkout.status(now) == Status::Pending {
        checkouts::close_session(tx, checkout, false)?;
    }
    let settlement = checkout.money_arrived(transaction.summary(), now);
    transaction.late = settlement == Settlement::Late;
    transaction.duplicate = settlement == Settlement::Second;
    let entry_id = tx.entropy().id(now);
    let entry = match settlement {
        Settlement::Paid | Settlement::Late => Entry::payment_completed(entry_id, transaction),
        Settlement::Second => Entry::second_money(entry_id, transaction),
    };
    ledger::append(tx, checkout.scope, &entry)?;
    publish::payment_event(tx, context, checkout, transaction, EventType::PaymentSucceeded)?;
    if settlement == Settlement::Paid {
        publish::checkout_event(tx, context, checkout, EventType::CheckoutCompleted)?;
        jobs::cancel(tx, Job::ExpireCheckout(checkout.id))?;
    }
    Ok(())
}

/// The rail is asked again, with growing pauses, until the outcome is known.
fn ask_later(tx: &mut Tx<'_>, transaction: &mut Transaction) -> Result<(), Failure> {
    let job = Job::AskRail(transaction.id);
    match transaction.next_question() {
        Some(pause) => jobs::schedule(tx, transaction.scope, job, tx.now().plus(pause))?,
        None => jobs::cancel(tx, job)?,
    }
    Ok(())
}
