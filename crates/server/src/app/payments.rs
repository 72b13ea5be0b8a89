//! Payments begin: a session is opened, continued or replaced, and an attempt is committed before its rail is called. What a
//! request comes to, and what is wrong with it, is `wanted`'s to say.
//!
//! Rows are locked in one order everywhere: the paid object, its session, its transaction.

mod wanted;

use std::time::Duration;

use domain::job::{ClaimedJob, Job};
use domain::organization::Organization;
use domain::payment::{Again, Payable, Payer, PaymentSession, SessionStatus, Transaction};
use domain::{Id, Metadata, Method, Money, Refusal, Scope, Timestamp};
use store::Tx;
use store::queries::jobs;

use super::paid_object::PaidObject;
use super::sessions::{self, Payment};
use super::starts::{self, Counted};
use super::{Context, attempts, load, look_up, organization_of};
use crate::error::Failure;
use crate::fault::Fault;

pub use wanted::faults;
use wanted::{Wanted, merged, refuse_unless_taken, refuse_without_phone};

/// Whoever runs a job inline holds it so long; then the worker takes over.
pub const INLINE_LEASE: Duration = Duration::from_secs(30);

/// What a request to pay asks for, each value readable by itself.
#[derive(Debug, Clone)]
pub struct Initialize {
    pub target: Target,
    pub method: Option<Method>,
    pub amount: Option<Money>,
    /// What is wrong with it as it was sent. What of it could be read is held against what it is about all the same, so that its
    /// sender learns of all faults at once.
    pub faults: Vec<Fault>,
    pub payer: Payer,
    pub metadata: Option<Metadata>,
    /// To the questions of a payment link, as they were sent.
    pub answers: Metadata,
    pub success_url: Option<String>,
    pub failure_url: Option<String>,
    /// The payment on whose page it was asked for, where another may take its place. Only such a page says so, so that nobody is
    /// shown what somebody else has paid.
    pub replaces: Option<Id<PaymentSession>>,
    /// The one-time code of a second step. Handed to the rail, never stored.
    pub has_code: bool,
    /// It comes from whoever has a page's address, so an attempt that it begins is counted.
    pub counted: Option<Counted>,
}

impl Initialize {
    /// Asks for nothing but the payment itself.
    pub fn of(target: Target) -> Self {
        Self {
            target,
            method: None,
            amount: None,
            faults: Vec::new(),
            payer: Payer::default(),
            metadata: None,
            answers: Metadata::default(),
            success_url: None,
            failure_url: None,
            replaces: None,
            has_code: false,
            counted: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Object(Payable),
    Session(Id<PaymentSession>),
}

/// What has to be done outside before the request can be answered.
#[derive(Debug, Clone)]
pub enum Begun {
    /// Nothing: the session as it stands is the answer.
    Nothing(Box<Payment>),
    /// Hand the attempt of this payment to its rail.
    Start(ClaimedJob, Box<Payment>),
    /// Hand the code to the rail.
    SubmitCode(Id<Transaction>, Box<Payment>),
}

impl Begun {
    /// As it is committed before anything is done outside.
    pub fn payment(&self) -> &Payment {
        match self {
            Begun::Nothing(payment) | Begun::Start(_, payment) | Begun::SubmitCode(_, payment) => payment,
        }
    }
}

/// Opens, continues or starts a session. `key` is the idempotency key whose answer waits for the rail.
pub fn begin(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    request: &Initialize,
    key: Option<(String, String)>,
) -> Result<Begun, Failure> {
    let (mut object, current) = load_target(tx, scope, request.target, request.has_code)?;
    if request.has_code {
        let wanted = Wanted::of_code(tx, request, &object, current.as_ref())?;
        let payment = current.ok_or(Refusal::CodeNotExpected)?;
        return submit_code(tx, context, &mut object, payment, &wanted, key);
    }
    let organization = organization_of(tx, scope)?;
    let wanted = Wanted::of(tx, context, &organization, request, &object, current.as_ref())?;
    let mut payment = match current {
        Some(payment) => continue_or_replace(tx, &mut object, payment, &wanted)?,
        None => open(tx, &mut object, None, &wanted)?,
    };
    match wanted.method.or(payment.session.method) {
        Some(method) if payment.transaction.is_none() => {
            object.refuse_unless_room(tx)?;
            if let Some(counted) = &request.counted {
                starts::refuse_one_too_many(tx, &object, &payment.session, method, counted)?;
            }
            let job = start(tx, context, &organization, &mut object, &mut payment, method, key)?;
            Ok(Begun::Start(job, Box::new(payment)))
        }
        _ => {
            object.save(tx)?;
            Ok(Begun::Nothing(Box::new(payment)))
        }
    }
}

/// Closes a session that waits for a code and starts the same once more, for a payer whose code never came.
///
/// It is safe there and nowhere else: without its code the attempt before can't take money. Before its pause is over it
/// does nothing; and what its merchant takes no more stays as it is.
pub fn begin_again(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    target: Target,
    counted: &Counted,
    key: Option<(String, String)>,
) -> Result<Begun, Failure> {
    let (mut object, current) = load_target(tx, scope, target, false)?;
    let mut current = current.ok_or(Refusal::CodeNotExpected)?;
    if current.session.is_with_provider() {
        return Err(Refusal::PaymentInProgress.into());
    }
    let (Some(method), Some(transaction)) = (current.session.method, &current.transaction) else {
        return Err(Refusal::CodeNotExpected.into());
    };
    let again_at = current.session.code_again_at(transaction).ok_or(Refusal::CodeNotExpected)?;
    if tx.now() < again_at {
        return Ok(Begun::Nothing(Box::new(current)));
    }
    let organization = organization_of(tx, scope)?;
    refuse_unless_taken(context, &organization, &object, &current.session, method, tx.now())?;
    close(tx, &mut object, &mut current, false)?;
    let session = current.session;
    let wanted = Wanted {
        method: Some(method),
        amount: session.amount,
        phone: None,
        payer: session.payer.clone(),
        metadata: session.metadata.clone(),
        success_url: None,
        failure_url: None,
        replaces: Some(session.id),
    };
    let mut payment = open(tx, &mut object, Some(&session), &wanted)?;
    object.refuse_unless_room(tx)?;
    starts::refuse_one_too_many(tx, &object, &payment.session, method, counted)?;
    let job = start(tx, context, &organization, &mut object, &mut payment, method, key)?;
    Ok(Begun::Start(job, Box::new(payment)))
}

/// What is to be paid, locked, and the payment of it that goes on, if one does.
fn load_target(
    tx: &mut Tx<'_>,
    scope: Scope,
    target: Target,
    has_code: bool,
) -> Result<(PaidObject, Option<Payment>), Failure> {
    let payable = payable_of(tx, scope, target)?;
    let mut object = PaidObject::load(tx, scope, payable)?;
    let current = match object.session_for(target) {
        Some(id) => Some(sessions::load_payment(tx, scope, id)?),
        None => None,
    };
    // Behind the locks: what ran out while they were waited for is over.
    let now = tx.now();
    let mut current = going_on(&object, current, target, has_code, now)?;
    if let Some(current) = current.as_mut().filter(|current| current.session.has_expired(now)) {
        close(tx, &mut object, current, true)?;
    }
    Ok((object, current))
}

/// The same for reading: nothing is locked, and what ran out is shown as closed.
fn look_up_target(
    tx: &mut Tx<'_>,
    scope: Scope,
    target: Target,
    has_code: bool,
) -> Result<(PaidObject, Option<Payment>), Failure> {
    let payable = payable_of(tx, scope, target)?;
    let object = PaidObject::look_up(tx, scope, payable)?;
    let current = match object.session_for(target) {
        Some(id) => Some(sessions::look_up_payment(tx, scope, id)?),
        None => None,
    };
    let current = going_on(&object, current, target, has_code, tx.now())?;
    Ok((object, current))
}

fn payable_of(tx: &mut Tx<'_>, scope: Scope, target: Target) -> Result<Payable, Failure> {
    match target {
        Target::Object(payable) => Ok(payable),
        Target::Session(id) => {
            let session = look_up::<PaymentSession>(tx, scope, id)?;
            session.refuse_if_closed()?;
            Ok(session.payable)
        }
    }
}

/// The payment that goes on, if one does, unless nothing that is named takes a further step.
fn going_on(
    object: &PaidObject,
    current: Option<Payment>,
    target: Target,
    has_code: bool,
    now: Timestamp,
) -> Result<Option<Payment>, Refusal> {
    if let (Target::Session(id), Some(current)) = (target, &current)
        && current.session.id == id
    {
        // Another request may have closed it between the look at it and the lock, and its time closes it before anybody says so.
        current.session.refuse_if_closed()?;
        if current.session.has_expired(now) {
            return Err(Refusal::PaymentSessionClosed);
        }
    }
    let ends_attempt = has_code && current.as_ref().is_some_and(|current| current.transaction.is_some());
    object.refuse_unless_payable(ends_attempt, now)?;
    match target {
        // One payment of several is over; the next one is another.
        Target::Object(_) => Ok(current.filter(|current| current.session.status() != SessionStatus::Succeeded)),
        Target::Session(id) if current.as_ref().is_none_or(|current| current.session.id != id) => {
            Err(Refusal::PaymentSessionClosed)
        }
        Target::Session(_) => Ok(current),
    }
}

/// `before` is the session in whose place it comes.
fn open(
    tx: &mut Tx<'_>,
    object: &mut PaidObject,
    before: Option<&PaymentSession>,
    wanted: &Wanted,
) -> Result<Payment, Failure> {
    let now = tx.now();
    let id = tx.entropy().id(now);
    let payer = merged(wanted.payer.clone(), &object.payer(before));
    let expires_at = object.session_expires_at(now);
    let (amount, method) = (wanted.amount, wanted.method);
    let mut session =
        PaymentSession::open(id, object.scope(), object.payable(), amount, method, payer, expires_at, now);
    session.metadata = wanted.metadata.clone();
    session.replaces = wanted.replaces;
    session.success_url = wanted.success_url.clone().or_else(|| before.and_then(|before| before.success_url.clone()));
    session.failure_url = wanted.failure_url.clone().or_else(|| before.and_then(|before| before.failure_url.clone()));
    refuse_without_phone(&session)?;
    object.session_opened(id, now);
    tx.insert(&mut session)?;
    sessions::watch(tx, &session)?;
    if let Some(replaced) = wanted.replaces {
        let mut replaced = load::<PaymentSession>(tx, object.scope(), replaced)?;
        // One payment comes in the place of another, whichever form asked first.
        if replaced.replaced_by.is_some() {
            return Err(Refusal::PaymentSessionClosed.into());
        }
        replaced.replaced_by = Some(id);
        tx.save(&mut replaced)?;
    }
    Ok(Payment { session, transaction: None })
}

/// Contract §2.2 rule 6: the same method and amount go on with a session, others replace it.
fn continue_or_replace(
    tx: &mut Tx<'_>,
    object: &mut PaidObject,
    mut current: Payment,
    wanted: &Wanted,
) -> Result<Payment, Failure> {
    let again = current.session.again(current.transaction.as_ref(), wanted.method, wanted.amount)?;
    if again == Again::New {
        return open(tx, object, Some(&current.session), wanted);
    }
    let other_phone = wanted.phone.is_some() && wanted.phone != current.session.payer.phone;
    if other_phone && current.session.is_being_handed_over(current.transaction.as_ref()) {
        return Err(Refusal::PaymentInProgress.into());
    }
    // A phone that was handed to a rail can't be changed there.
    if again == Again::Replace || (other_phone && current.transaction.is_some()) {
        // As it was while it was open.
        let before = current.session.clone();
        close(tx, object, &mut current, false)?;
        return open(tx, object, Some(&before), wanted);
    }
    let told = wanted.told(&current.session);
    let session = &mut current.session;
    match &mut current.transaction {
        Some(transaction) => {
            if session.tell(transaction, told, tx.now()) {
                tx.save(session)?;
                tx.save(transaction)?;
            }
        }
        None => {
            session.method = wanted.method.or(session.method);
            session.payer = told.payer;
            session.metadata = told.metadata;
            session.success_url = told.success_url;
            session.failure_url = told.failure_url;
            session.updated_at = session.updated_at.max(tx.now());
            refuse_without_phone(session)?;
            tx.save(session)?;
        }
    }
    Ok(current)
}

/// Ends a session for another. A closed attempt is what the object shows until the next one begins.
pub(super) fn close(
    tx: &mut Tx<'_>,
    object: &mut PaidObject,
    current: &mut Payment,
    expired: bool,
) -> Result<(), Failure> {
    sessions::close(tx, &mut current.session, current.transaction.as_mut(), expired)?;
    if let Some(transaction) = &current.transaction {
        object.attempt_moved(current.session.id, transaction.summary(), false, tx.now());
    }
    Ok(())
}

/// Commits the intent: the transaction and the job that hands it to the rail, held by whoever asked.
fn start(
    tx: &mut Tx<'_>,
    context: &Context,
    organization: &Organization,
    object: &mut PaidObject,
    payment: &mut Payment,
    method: Method,
    key: Option<(String, String)>,
) -> Result<ClaimedJob, Failure> {
    let (scope, session) = (object.scope(), &mut payment.session);
    let refused = || context.no_method(scope.mode, session.amount.currency);
    let offer = context.offer(scope.mode, method).ok_or_else(refused)?;
    let fee = organization.payments.fees.fee(method, session.amount);
    let now = tx.now();
    // The session may be of a process whose clock is ahead: the attempt has one time, in its id as in what is printed of it.
    let id = tx.entropy().id(now.max(session.updated_at));
    let mut transaction = session.begin(id, method, offer.rail.to_owned(), fee, now);
    transaction.attempt_count = object.next_attempt(tx)?;
    session.unanswered_key = key;
    object.attempt_moved(session.id, transaction.summary(), session.is_with_provider(), now);
    object.save(tx)?;
    tx.save(session)?;
    tx.insert(&mut transaction)?;
    payment.transaction = Some(transaction);
    Ok(jobs::hold(tx, scope, Job::StartAttempt(id), now.plus(INLINE_LEASE))?)
}

fn submit_code(
    tx: &mut Tx<'_>,
    context: &Context,
    object: &mut PaidObject,
    mut payment: Payment,
    wanted: &Wanted,
    key: Option<(String, String)>,
) -> Result<Begun, Failure> {
    let now = tx.now();
    // What became of a code of before was heard, and not yet answered.
    attempts::finish_key(tx, context, &mut payment)?;
    payment.session.submit_code(payment.transaction.as_mut(), now)?;
    let Some(transaction) = &mut payment.transaction else { return Err(Refusal::CodeNotExpected.into()) };
    let told = wanted.told(&payment.session);
    payment.session.tell(transaction, told, now);
    payment.session.unanswered_key = key;
    object.attempt_moved(payment.session.id, transaction.summary(), true, now);
    let id = transaction.id;
    // The code is not stored, so nobody can send it again: the rail is asked what became of it.
    jobs::schedule(tx, object.scope(), Job::AskRail(id), transaction.code_on_its_way_until().unwrap_or(now))?;
    object.save(tx)?;
    tx.save(&mut payment.session)?;
    tx.save(transaction)?;
    Ok(Begun::SubmitCode(id, Box::new(payment)))
}
