//! Payments begin: a session is opened, continued or replaced, and an attempt is committed before its rail is called.
//!
//! Rows are locked in one order everywhere: the paid object, its session, its transaction.

use std::time::Duration;

use domain::job::{ClaimedJob, Job};
use domain::organization::Organization;
use domain::payment::{Again, Payable, Payer, PaymentSession, Transaction};
use domain::{Id, Metadata, Method, Money, Refusal, Scope};
use store::Tx;
use store::queries::jobs;

use super::paid_object::PaidObject;
use super::sessions::{self, Payment};
use super::{Context, customers, look_up};
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
    Object(Payable),
    Session(Id<PaymentSession>),
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
    let (mut object, mut current) = load_target(tx, scope, request.target)?;
    let mut faults = Vec::new();
    let customer = customers::named(tx, scope, request.payer.customer, &mut faults)?;
    if request.has_code {
        if !faults.is_empty() {
            return Err(faults.into());
        }
        let payment = current.as_mut().ok_or(Refusal::CodeNotExpected)?;
        return submit_code(tx, &mut object, payment, key);
    }
    let amount = check_request(&object, request, faults)?;
    let payer = match customer {
        Some(customer) => merged(request.payer.clone(), &customer.payer()),
        None => request.payer.clone(),
    };
    let method = request.method.or(object.fixed_method());
    let mut payment = match current {
        Some(payment) => continue_or_replace(tx, &mut object, payment, method, amount, request, &payer)?,
        None => open(tx, &mut object, method, amount, request, &payer)?,
    };
    match method.or(payment.session.method) {
        Some(method) if payment.transaction.is_none() => {
            let job = start(tx, context, &mut object, &mut payment.session, method, key)?;
            Ok(Begun::Start(job, payment.session.id))
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
    key: Option<(String, String)>,
) -> Result<Begun, Failure> {
    let (mut object, current) = load_target(tx, scope, target)?;
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
    close(tx, &mut object, &mut current)?;
    let amount = current.session.amount;
    let request = Initialize {
        target,
        method: Some(method),
        amount: None,
        payer: current.session.payer.clone(),
        metadata: Some(current.session.metadata.clone()),
        has_code: false,
    };
    let mut payment = open(tx, &mut object, Some(method), amount, &request, &request.payer)?;
    let job = start(tx, context, &mut object, &mut payment.session, method, key)?;
    Ok(Begun::Start(job, payment.session.id))
}

/// What is to be paid, locked, and the payment of it that goes on, if one does.
fn load_target(tx: &mut Tx<'_>, scope: Scope, target: Target) -> Result<(PaidObject, Option<Payment>), Failure> {
    let payable = match target {
        Target::Object(payable) => payable,
        Target::Session(id) => {
            let session = look_up::<PaymentSession>(tx, scope, id)?;
            session.refuse_if_closed()?;
            session.payable
        }
    };
    let object = PaidObject::load(tx, scope, payable)?;
    object.refuse_unless_payable(tx.now())?;
    let current = match object.session() {
        Some(id) => Some(sessions::load_payment(tx, scope, id)?),
        None => None,
    };
    if let Target::Session(id) = target
        && current.as_ref().is_none_or(|current| current.session.id != id)
    {
        return Err(Refusal::PaymentSessionClosed.into());
    }
    Ok((object, current))
}

/// What is asked for, held against what the object takes; gives the amount of the payment.
fn check_request(object: &PaidObject, request: &Initialize, mut faults: Vec<Fault>) -> Result<Money, Failure> {
    if let (Some(fixed), Some(wanted)) = (object.fixed_method(), request.method)
        && fixed != wanted
    {
        return Err(Refusal::PaymentMethodFixed { method: fixed.as_str() }.into());
    }
    if let Some(method) = request.method
        && !object.offers(method)
    {
        let kind = object.payable().kind();
        let message = format!("`payment_method` {} is not offered by this {kind}.", method.as_str());
        faults.push(Fault::new("payment_method", FaultCode::NotAllowed, message));
    }
    match object.amount(request.amount) {
        Ok(amount) if faults.is_empty() => return Ok(amount),
        Ok(_) => {}
        Err(fault) => faults.push(fault),
    }
    Err(faults.into())
}

/// `payer`: what the request says, and what is known of the customer that it names.
fn open(
    tx: &mut Tx<'_>,
    object: &mut PaidObject,
    method: Option<Method>,
    amount: Money,
    request: &Initialize,
    payer: &Payer,
) -> Result<Payment, Failure> {
    let now = tx.now();
    let id = tx.entropy().id(now);
    let payer = merged(payer.clone(), &object.payer());
    let expires_at = object.session_expires_at();
    let mut session =
        PaymentSession::open(id, object.scope(), object.payable(), amount, method, payer, expires_at, now);
    session.metadata = request.metadata.clone().unwrap_or_default();
    refuse_without_phone(&session)?;
    object.session_opened(id, now);
    tx.insert(&mut session)?;
    Ok(Payment { session, transaction: None })
}

/// Contract §2.2 rule 6: one open session; the same method goes on with it, another replaces it.
fn continue_or_replace(
    tx: &mut Tx<'_>,
    object: &mut PaidObject,
    mut current: Payment,
    method: Option<Method>,
    amount: Money,
    request: &Initialize,
    payer: &Payer,
) -> Result<Payment, Failure> {
    let again = current.session.again(method, amount)?;
    if again == Again::New {
        return open(tx, object, method, amount, request, payer);
    }
    // Only a phone that was sent: what is known of a customer replaces no attempt.
    let other_phone = request.payer.phone.is_some() && request.payer.phone != current.session.payer.phone;
    // A phone that was handed to a rail can't be changed there.
    if again == Again::Replace || (other_phone && current.transaction.is_some()) {
        close(tx, object, &mut current)?;
        return open(tx, object, method, amount, request, payer);
    }
    if current.transaction.is_none() {
        let session = &mut current.session;
        session.method = method.or(session.method);
        session.payer = merged(payer.clone(), &session.payer);
        if let Some(metadata) = &request.metadata {
            session.metadata = metadata.clone();
        }
        session.updated_at = session.updated_at.max(tx.now());
        refuse_without_phone(session)?;
        tx.save(session)?;
    }
    Ok(current)
}

/// Ends a session for another. A closed attempt is what the object shows until the next one begins.
fn close(tx: &mut Tx<'_>, object: &mut PaidObject, current: &mut Payment) -> Result<(), Failure> {
    sessions::close(tx, &mut current.session, current.transaction.as_mut(), false)?;
    if let Some(transaction) = &current.transaction {
        object.attempt_moved(current.session.id, transaction.summary(), false, tx.now());
    }
    Ok(())
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
    object: &mut PaidObject,
    session: &mut PaymentSession,
    method: Method,
    key: Option<(String, String)>,
) -> Result<ClaimedJob, Failure> {
    let scope = object.scope();
    let offer = context.offer(scope.mode, method).ok_or(Refusal::NoPaymentMethodAvailable)?;
    let organization = look_up::<Organization>(tx, scope, scope.organization)?;
    let fee = organization.payments.fees.fee(method, session.amount);
    let now = tx.now();
    let id = tx.entropy().id(now);
    let mut transaction = session.begin(id, method, offer.rail.to_owned(), fee, now);
    session.unanswered_key = key;
    object.attempt_moved(session.id, transaction.summary(), false, now);
    transaction.attempt_count = object.attempt_count();
    object.save(tx)?;
    tx.save(session)?;
    tx.insert(&mut transaction)?;
    Ok(jobs::hold(tx, scope, Job::StartAttempt(id), now.plus(INLINE_LEASE))?)
}

fn submit_code(
    tx: &mut Tx<'_>,
    object: &mut PaidObject,
    payment: &mut Payment,
    key: Option<(String, String)>,
) -> Result<Begun, Failure> {
    let now = tx.now();
    payment.session.submit_code(payment.transaction.as_ref(), now)?;
    let Some(transaction) = &payment.transaction else { return Err(Refusal::CodeNotExpected.into()) };
    payment.session.unanswered_key = key;
    object.attempt_moved(payment.session.id, transaction.summary(), true, now);
    let scope = object.scope();
    jobs::schedule(tx, scope, Job::AskRail(transaction.id), now.plus(CODE_LEASE))?;
    object.save(tx)?;
    tx.save(&mut payment.session)?;
    Ok(Begun::SubmitCode(scope, transaction.id, payment.session.id))
}
