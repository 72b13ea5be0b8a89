//! What a request to pay comes to, held against what it is about, and all that is wrong with it. Nothing is done here.

use domain::customer::Customer;
use domain::organization::Organization;
use domain::payment::{Again, Payer, PaymentSession, Told};
use domain::{Id, Metadata, Method, Money, Msisdn, Refusal, Scope, Timestamp};
use store::Tx;

use super::{Initialize, Target, look_up_target};
use crate::app::paid_object::PaidObject;
use crate::app::sessions::Payment;
use crate::app::{Context, customers, organization_of};
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};

/// What a request comes to.
pub(super) struct Wanted {
    pub(super) method: Option<Method>,
    pub(super) amount: Money,
    /// In the request itself: what is known of a customer replaces no attempt.
    pub(super) phone: Option<Msisdn>,
    /// What the request says, and what is known of the customer that it names.
    pub(super) payer: Payer,
    pub(super) metadata: Metadata,
    pub(super) success_url: Option<String>,
    pub(super) failure_url: Option<String>,
    pub(super) replaces: Option<Id<PaymentSession>>,
}

impl Wanted {
    /// The request of this payer, held against what the object takes.
    pub(super) fn of(
        tx: &mut Tx<'_>,
        context: &Context,
        organization: &Organization,
        request: &Initialize,
        object: &PaidObject,
        current: Option<&Payment>,
    ) -> Result<Self, Failure> {
        let mut faults = Vec::new();
        let customer = customers::named(tx, object.scope(), request.payer.customer, &mut faults)?;
        // Of an invoice that is only ever paid by hand there is nothing to choose.
        if !Method::ALL.into_iter().any(|method| object.offers(method, context, organization)) {
            return Err(context.no_method(object.scope().mode, object.currency()).into());
        }
        if let (Some(fixed), Some(wanted)) = (object.fixed_method(), request.method)
            && fixed != wanted
        {
            return Err(Refusal::PaymentMethodFixed { method: fixed.as_str() }.into());
        }
        if let Some(method) = request.method
            && !object.offers(method, context, organization)
        {
            faults.push(not_offered(object, method));
        }
        let session = current.map(|current| &current.session);
        let asked = match request.target {
            // What goes on is for what it was for, unless the request says otherwise.
            Target::Session(_) => request.amount.or(session.map(|session| session.amount)),
            Target::Object(_) => request.amount,
        };
        let amount = match object.amount(asked, organization, tx.now()) {
            // It is said already what is wrong with it.
            _ if request.faults.iter().any(|fault| fault.field == "amount") => None,
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
        let payer = payer_of(request, customer.as_ref());
        match (amount, metadata) {
            (Some(amount), Some(metadata)) if faults.is_empty() && request.faults.is_empty() => Ok(Self {
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
                let mut all = faults.iter().chain(&request.faults);
                let is_certain = !all.any(|fault| ["customer_id", "payment_method"].contains(&&*fault.field));
                if is_certain && lacks_phone(object, current, method, amount, payer) {
                    faults.push(phone_required());
                }
                Err(with_those_as_sent(request, faults).into())
            }
        }
    }

    /// A request with a code goes on with the attempt that asked for it, as that was begun: one that says otherwise is told so
    /// before a try is used up.
    pub(super) fn of_code(
        tx: &mut Tx<'_>,
        request: &Initialize,
        object: &PaidObject,
        current: Option<&Payment>,
    ) -> Result<Self, Failure> {
        let mut faults = Vec::new();
        let customer = customers::named(tx, object.scope(), request.payer.customer, &mut faults)?;
        let session = current.map(|current| &current.session).ok_or(Refusal::CodeNotExpected);
        let session = session.and_then(|session| session.refuse_unless_code_expected().map(|()| session));
        let metadata = match &session {
            Ok(session) => {
                refuse_another_attempt(request, session, &mut faults);
                object.metadata(&session.metadata, request, false, &mut faults)
            }
            Err(_) => None,
        };
        if !faults.is_empty() || !request.faults.is_empty() {
            return Err(with_those_as_sent(request, faults).into());
        }
        let session = session?;
        Ok(Self {
            method: session.method,
            amount: session.amount,
            phone: None,
            payer: payer_of(request, customer.as_ref()),
            metadata: metadata.expect("what is wrong with it is a fault"),
            success_url: request.success_url.clone(),
            failure_url: request.failure_url.clone(),
            replaces: None,
        })
    }

    /// What was told with a session, and what the request tells besides.
    pub(super) fn told(&self, session: &PaymentSession) -> Told {
        let known = session.told();
        Told {
            payer: merged(self.payer.clone(), &known.payer),
            metadata: self.metadata.clone(),
            success_url: self.success_url.clone().or(known.success_url),
            failure_url: self.failure_url.clone().or(known.failure_url),
        }
    }
}

/// All that is wrong with a request that can't run as it was sent. What could be read is held against what it names, as that
/// stands; what would refuse it altogether is told once it can run.
pub fn faults(tx: &mut Tx<'_>, context: &Context, scope: Scope, request: &Initialize) -> Result<Vec<Fault>, Failure> {
    match look_up_wanted(tx, context, scope, request) {
        Err(Failure::Invalid(faults)) => Ok(faults),
        Ok(_) | Err(Failure::Refused(_)) => {
            let mut faults = Vec::new();
            customers::named(tx, scope, request.payer.customer, &mut faults)?;
            Ok(with_those_as_sent(request, faults))
        }
        Err(failure) => Err(failure),
    }
}

fn look_up_wanted(tx: &mut Tx<'_>, context: &Context, scope: Scope, request: &Initialize) -> Result<Wanted, Failure> {
    let (object, current) = look_up_target(tx, scope, request.target, request.has_code)?;
    if request.has_code {
        return Wanted::of_code(tx, request, &object, current.as_ref());
    }
    let organization = organization_of(tx, scope)?;
    Wanted::of(tx, context, &organization, request, &object, current.as_ref())
}

/// What was wrong with a request as it was sent, and what was `found` of the rest: nothing more of a field that could not be read.
fn with_those_as_sent(request: &Initialize, mut found: Vec<Fault>) -> Vec<Fault> {
    fn first_name(fault: &Fault) -> &str {
        fault.field.split('.').next().unwrap_or_default()
    }
    found.retain(|fault| request.faults.iter().all(|as_sent| first_name(as_sent) != first_name(fault)));
    request.faults.iter().cloned().chain(found).collect()
}

/// What would begin another attempt is no part of a code, which is for this one.
fn refuse_another_attempt(request: &Initialize, session: &PaymentSession, faults: &mut Vec<Fault>) {
    let mut refuse = |field: &str, code, message: String| faults.push(Fault::new(field, code, message));
    if request.amount.is_some_and(|amount| amount != session.amount) {
        let amount = session.amount;
        let message = format!("`amount` is {amount} for the attempt that waits for this code; leave it out.");
        refuse("amount", FaultCode::Conflict, message);
    }
    if let (Some(begun), Some(sent)) = (session.method, request.method)
        && begun != sent
    {
        let begun = begun.as_str();
        let message = format!(
            "`payment_method` is {begun} for the attempt that waits for this code; leave it out, or leave `customer_pin` \
             out to begin another."
        );
        refuse("payment_method", FaultCode::Conflict, message);
    }
    match &request.payer.phone {
        // Whether it is the payer's would be an answer to a guess, and cost nothing.
        Some(_) if request.counted.is_some() => {
            let message = "`customer_phone` needs a secret key where a code is sent; leave it out.";
            refuse("customer_phone", FaultCode::NotAllowed, message.into());
        }
        Some(phone) if session.payer.phone.as_ref() != Some(phone) => {
            let message = "`customer_phone` is another for the attempt that waits for this code; leave it out, or leave \
                           `customer_pin` out to begin another.";
            refuse("customer_phone", FaultCode::Conflict, message.into());
        }
        Some(_) | None => {}
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

/// Whether a payment that was begun could begin once more as it is.
pub(super) fn refuse_unless_taken(
    context: &Context,
    organization: &Organization,
    object: &PaidObject,
    session: &PaymentSession,
    method: Method,
    now: Timestamp,
) -> Result<(), Failure> {
    if !object.offers(method, context, organization) {
        return Err(not_offered(object, method).into());
    }
    object.amount(Some(session.amount), organization, now).map(drop)
}

fn not_offered(object: &PaidObject, method: Method) -> Fault {
    let message = format!("`payment_method` {} is not offered by this {}.", method.as_str(), object.payable().noun());
    Fault::new("payment_method", FaultCode::NotAllowed, message)
}

pub(super) fn refuse_without_phone(session: &PaymentSession) -> Result<(), Failure> {
    let lacks_phone = session.method.is_some_and(Method::needs_phone) && session.payer.phone.is_none();
    if lacks_phone { Err(phone_required().into()) } else { Ok(()) }
}

fn phone_required() -> Fault {
    let message = "`customer_phone` is required for this method: the wallet's number, such as \"+2207000000\".";
    Fault::new("customer_phone", FaultCode::Required, message)
}

/// What the request says, and what is known of the customer that it names.
fn payer_of(request: &Initialize, customer: Option<&Customer>) -> Payer {
    match customer {
        Some(customer) => merged(request.payer.clone(), &customer.payer()),
        None => request.payer.clone(),
    }
}

/// What the request says wins over what was known.
pub(super) fn merged(request: Payer, known: &Payer) -> Payer {
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
