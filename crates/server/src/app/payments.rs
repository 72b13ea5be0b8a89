//! Payments begin: a session is opened, continued or replaced, and an attempt is committed before its rail is called.
//!
//! Rows are locked in one order everywhere: the paid object, its session, its transaction.

use std::time::Duration;

use domain::job::{ClaimedJob, Job};
use domain::organization::Organization;
use domain::payment::{Again, Payable, Payer, PaymentSession, SessionStatus, Transaction};
use domain::{Id, Metadata, Method, Money, Msisdn, Refusal, Scope, Timestamp};
use store::Tx;
use store::queries::jobs;

use super::paid_object::PaidObject;
use super::sessions::{self, Payment};
use super::starts::{self, Counted};
use super::{Context, attempts, customers, look_up, organization_of};
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};

/// Whoever runs a job inline holds it so long; then the worker takes over.
pub const INLINE_LEASE: Duration = Duration::from_secs(30);

/// What a request to pay asks for, each value readable by itself.
#[derive(Debug, Clone)]
pub struct Initialize {
    pub target: Target,
    pub method: Option<Method>,
    pub amount: Option<Money>,
    /// What was sent for it and is none in the object's currency.
    pub amount_fault: Option<Fault>,
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
            amount_fault: None,
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
    let mut faults: Vec<Fault> = request.amount_fault.iter().cloned().collect();
    let customer = customers::named(tx, scope, request.payer.customer, &mut faults)?;
    if request.has_code {
        if !faults.is_empty() {
            return Err(faults.into());
        }
        let payment = current.ok_or(Refusal::CodeNotExpected)?;
        return submit_code(tx, context, &mut object, payment, key);
    }
    let organization = organization_of(tx, scope)?;
    let payer = match &customer {
        Some(customer) => merged(request.payer.clone(), &customer.payer()),
        None => request.payer.clone(),
    };
    let wanted = check_request(&object, context, &organization, request, payer, current.as_ref(), tx.now(), faults)?;
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
/// does nothing.
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
    let organization = organization_of(tx, scope)?;
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
    let payable = match target {
        Target::Object(payable) => payable,
        Target::Session(id) => {
            let session = look_up::<PaymentSession>(tx, scope, id)?;
            session.refuse_if_closed()?;
            session.payable
        }
    };
    let now = tx.now();
    let mut object = PaidObject::load(tx, scope, payable)?;
    let mut current = match object.session_for(target) {
        Some(id) => Some(sessions::load_payment(tx, scope, id)?),
        None => None,
    };
    if let (Target::Session(id), Some(current)) = (target, &current)
        && current.session.id == id
    {
        // Another request may have closed it between the look above and the lock.
        current.session.refuse_if_closed()?;
    }
    let ends_attempt = has_code && current.as_ref().is_some_and(|current| current.transaction.is_some());
    object.refuse_unless_payable(ends_attempt, now)?;
    // One payment of several is over; the next one is another.
    if matches!(target, Target::Object(_)) {
        current = current.filter(|current| current.session.status() != SessionStatus::Succeeded);
    }
    if let Target::Session(id) = target
        && current.as_ref().is_none_or(|current| current.session.id != id || current.session.has_expired(now))
    {
        return Err(Refusal::PaymentSessionClosed.into());
    }
    if let Some(current) = current.as_mut().filter(|current| current.session.has_expired(now)) {
        close(tx, &mut object, current, true)?;
    }
    Ok((object, current))
}

/// What a request comes to.
struct Wanted {
    method: Option<Method>,
    amount: Money,
    /// In the request itself: what is known of a customer replaces no attempt.
    phone: Option<Msisdn>,
    /// What the request says, and what is known of the customer that it names.
    payer: Payer,
    metadata: Metadata,
    success_url: Option<String>,
    failure_url: Option<String>,
    replaces: Option<Id<PaymentSession>>,
}

/// The request of this payer, held against what the object takes.
#[expect(clippy::too_many_arguments, reason = "all of it decides what a request comes to")]
fn check_request(
    object: &PaidObject,
    context: &Context,
    organization: &Organization,
    request: &Initialize,
    payer: Payer,
    current: Option<&Payment>,
    now: Timestamp,
    mut faults: Vec<Fault>,
) -> Result<Wanted, Failure> {
    // Of an invoice that is only ever paid by hand there is nothing to choose.
    if !Method::ALL.into_iter().any(|method| object.offers(method, context, organization)) {
        return Err(Refusal::NoPaymentMethodAvailable.into());
    }
    if let (Some(fixed), Some(wanted)) = (object.fixed_method(), request.method)
        && fixed != wanted
    {
        return Err(Refusal::PaymentMethodFixed { method: fixed.as_str() }.into());
    }
    if let Some(method) = request.method
        && !object.offers(method, context, organization)
    {
        let noun = object.payable().noun();
        let message = format!("`payment_method` {} is not offered by this {noun}.", method.as_str());
        faults.push(Fault::new("payment_method", FaultCode::NotAllowed, message));
    }
    let session = current.map(|current| &current.session);
    let asked = match request.target {
        // What goes on is for what it was for, unless the request says otherwise.
        Target::Session(_) => request.amount.or(session.map(|session| session.amount)),
        Target::Object(_) => request.amount,
    };
    let amount = match object.amount(asked, organization, now) {
        // It is said already what is wrong with it.
        _ if request.amount_fault.is_some() => None,
        Ok(amount) => Some(amount),
        Err(Failure::Invalid(more)) => {
            faults.extend(more);
            None
        }
        Err(refused) => return Err(refused),
    };
    let method = request.method.or(object.fixed_method());
    let known = session.map(|session| session.metadata.clone()).unwrap_or_default();
    let begins = method.or(session.and_then(|session| session.method)).is_some();
    let metadata = object.metadata(&known, request, begins, &mut faults);
    match (amount, metadata) {
        (Some(amount), Some(metadata)) if faults.is_empty() => Ok(Wanted {
            method,
            amount,
            phone: request.payer.phone.clone(),
            payer,
            metadata,
            success_url: request.success_url.clone(),
            failure_url: request.failure_url.clone(),
            replaces: request.replaces,
        }),
        _ => {
            // With another customer or method than the one that is refused it may not be missing.
            let is_certain = !faults.iter().any(|fault| ["customer_id", "payment_method"].contains(&&*fault.field));
            if is_certain && lacks_phone(object, current, method, amount, payer) {
                faults.push(phone_required());
            }
            Err(faults.into())
        }
    }
}

/// Whether the session that a request leads to would lack the phone that its method needs.
fn lacks_phone(
    object: &PaidObject,
    current: Option<&Payment>,
    method: Option<Method>,
    amount: Option<Money>,
    payer: Payer,
) -> bool {
    let (method, known) = match current {
        None => (method, object.payer(None)),
        Some(Payment { session, transaction }) => {
            match session.again(transaction.as_ref(), method, amount.unwrap_or(session.amount)) {
                Ok(Again::Same) if transaction.is_none() => (method.or(session.method), session.payer.clone()),
                Ok(Again::Replace | Again::New) => (method, object.payer(Some(session))),
                Ok(Again::Same) | Err(_) => return false,
            }
        }
    };
    method.is_some_and(Method::needs_phone) && merged(payer, &known).phone.is_none()
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
        close(tx, object, &mut current, false)?;
        return open(tx, object, Some(&current.session), wanted);
    }
    if current.transaction.is_none() {
        let session = &mut current.session;
        session.method = wanted.method.or(session.method);
        session.payer = merged(wanted.payer.clone(), &session.payer);
        session.metadata = wanted.metadata.clone();
        session.success_url = wanted.success_url.clone().or(session.success_url.take());
        session.failure_url = wanted.failure_url.clone().or(session.failure_url.take());
        session.updated_at = session.updated_at.max(tx.now());
        refuse_without_phone(session)?;
        tx.save(session)?;
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

fn refuse_without_phone(session: &PaymentSession) -> Result<(), Failure> {
    let lacks_phone = session.method.is_some_and(Method::needs_phone) && session.payer.phone.is_none();
    if lacks_phone { Err(phone_required().into()) } else { Ok(()) }
}

fn phone_required() -> Fault {
    let message = "`customer_phone` is required for this method: the wallet's number, such as \"+2207000000\".";
    Fault::new("customer_phone", FaultCode::Required, message)
}

/// What the request says wins over what was known.
fn merged(request: Payer, known: &Payer) -> Payer {
    // One customer's name never stands beside another's address.
    if request.customer.is_some() && known.customer.is_some() && request.customer != known.customer {
        return request;
    }
    Payer {
        customer: request.customer.or(known.customer),
        phone: request.phone.or_else(|| known.phone.clone()),
        email: request.email.or_else(|| known.email.clone()),
        name: request.name.or_else(|| known.name.clone()),
    }
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
    let offer = context.offer(scope.mode, method).ok_or(Refusal::NoPaymentMethodAvailable)?;
    let fee = organization.payments.fees.fee(method, session.amount);
    let now = tx.now();
    let id = tx.entropy().id(now);
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
    key: Option<(String, String)>,
) -> Result<Begun, Failure> {
    let now = tx.now();
    // What became of a code of before was heard, and not yet answered.
    attempts::finish_key(tx, context, &mut payment)?;
    payment.session.submit_code(payment.transaction.as_mut(), now)?;
    let Some(transaction) = &mut payment.transaction else { return Err(Refusal::CodeNotExpected.into()) };
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
