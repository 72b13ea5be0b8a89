//! Checkout sessions: create, cancel, expire.

use domain::checkout::{self, Checkout, Customer, Order};
use domain::job::Job;
use domain::organization::Organization;
use domain::payment::{Payable, Payer, PaymentSession, Transaction};
use domain::{Currency, Id, Metadata, Method, Money, Msisdn, Refusal, Scope};
use store::Tx;
use store::queries::jobs;

use super::products::NewItem;
use super::{Context, customers, load, look_up, organization_of, products, publish, sessions};
use crate::credentials::ClientSecret;
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};

/// What a request asks for, each value readable by itself.
#[derive(Debug, Clone)]
pub struct NewCheckout {
    pub price: Price,
    pub currency: Currency,
    pub payment_method_types: Option<Vec<Method>>,
    pub automatic_payment_methods: bool,
    pub payment_method: Option<Method>,
    pub customer: Customer,
    pub expires_in_s: u32,
    pub metadata: Metadata,
    pub description: Option<String>,
    pub reference: Option<String>,
    pub success_url: Option<String>,
    pub failure_url: Option<String>,
}

/// How a checkout may be paid, as far as the request could be read.
#[derive(Debug, Clone)]
pub struct WantedMethods {
    pub types: Option<Vec<Method>>,
    pub method: Option<Method>,
    pub currency: Option<Currency>,
}

#[derive(Debug, Clone)]
pub enum Price {
    Amount(Money),
    Items(Vec<NewItem>),
}

/// A checkout with the secret that is shown this once.
#[derive(Debug, Clone)]
pub struct Created {
    pub checkout: Checkout,
    pub client_secret: ClientSecret,
}

pub fn create(tx: &mut Tx<'_>, context: &Context, scope: Scope, new: &NewCheckout) -> Result<Created, Failure> {
    let organization = organization_of(tx, scope)?;
    if !context.has_rails(scope.mode) {
        return Err(Refusal::NoPaymentProvider.into());
    }
    let mut faults = Vec::new();
    let price = match &new.price {
        Price::Amount(amount) => Some((*amount, None)),
        Price::Items(items) => products::price_lines(tx, scope, new.currency, &[], items, &mut faults)?
            .map(|(total, items)| (total, Some(items))),
    };
    let wanted = WantedMethods {
        types: new.payment_method_types.clone(),
        method: new.payment_method,
        currency: Some(new.currency),
    };
    let available_methods = available_methods(context, &organization, &wanted, &mut faults);
    let customer = customers::named(tx, scope, new.customer.id, &mut faults)?;
    let (Some((amount, items)), true) = (price, faults.is_empty()) else {
        return Err(faults.into());
    };

    let now = tx.now();
    let id: Id<Checkout> = tx.entropy().id(now);
    let client_secret = ClientSecret::generate(id, tx.entropy().nonce(), &context.client_secret_keys);
    let order = Order {
        amount,
        items,
        available_methods,
        automatic_payment_methods: new.automatic_payment_methods,
        fixed_method: new.payment_method,
        customer: customers::prefill(&new.customer, customer.as_ref()),
        description: new.description.clone(),
        reference: new.reference.clone(),
        metadata: new.metadata.clone(),
        success_url: new.success_url.clone(),
        failure_url: new.failure_url.clone(),
    };
    let digest = client_secret.digest(&context.client_secret_keys);
    let mut checkout = Checkout::create(id, scope, order, digest, new.expires_in_s, now);
    if let Some(method) = new.payment_method {
        let session_id = tx.entropy().id(now);
        let payer = payer_of(&checkout);
        let payable = Payable::Checkout(id);
        let (amount, expires_at) = (checkout.order.amount, checkout.expires_at);
        let mut session =
            PaymentSession::open(session_id, scope, payable, amount, Some(method), payer, expires_at, now);
        tx.insert(&mut session)?;
        checkout.session_opened(session.id, now);
    }
    tx.insert(&mut checkout)?;
    if !domain::planted!(Defect::TimerForgotten) {
        jobs::schedule(tx, scope, Job::ExpireCheckout(id), checkout.next_deadline())?;
    }
    Ok(Created { checkout, client_secret })
}

/// Contract §2.1 rule 3.
pub(super) fn available_methods(
    context: &Context,
    organization: &Organization,
    wanted: &WantedMethods,
    faults: &mut Vec<Fault>,
) -> Vec<Method> {
    let mode = organization.mode;
    let enabled = |method: Method| {
        organization.payments.enabled_methods.contains(&method) && context.offer(mode, method).is_some()
    };
    let mut refuse = |field: &str, code, message: String| faults.push(Fault::new(field, code, message));
    let chosen: Vec<Method> = if let Some(method) = wanted.method {
        if !enabled(method) {
            let message = format!("`payment_method` {} is not enabled for you.", method.as_str());
            refuse("payment_method", FaultCode::NotAllowed, message);
            return Vec::new();
        }
        vec![method]
    } else {
        let is_wanted = |method: &Method| wanted.types.as_ref().is_none_or(|types| types.contains(method));
        Method::ALL.into_iter().filter(|method| enabled(*method) && is_wanted(method)).collect()
    };
    if chosen.is_empty() {
        let field = if wanted.types.is_some() { "payment_method_types" } else { "payment_method" };
        refuse(field, FaultCode::NotAllowed, format!("`{field}` leaves no method that is enabled for you."));
        return Vec::new();
    }
    let Some(currency) = wanted.currency else { return chosen };
    let code = currency.code();
    let usable: Vec<Method> = chosen.into_iter().filter(|method| context.takes(mode, *method, currency)).collect();
    if usable.is_empty() {
        refuse("currency", FaultCode::NotAllowed, format!("`currency` {code} is taken by none of the methods."));
    }
    usable
}

/// Who pays, as far as the merchant told.
pub(super) fn payer_of(checkout: &Checkout) -> Payer {
    let customer = &checkout.order.customer;
    Payer {
        customer: customer.id,
        phone: customer.phone.as_deref().and_then(|phone| Msisdn::parse(phone).ok()),
        email: customer.email.clone(),
        name: customer.name.clone(),
    }
}

pub fn cancel(tx: &mut Tx<'_>, context: &Context, scope: Scope, id: Id<Checkout>) -> Result<Checkout, Failure> {
    let mut checkout = load::<Checkout>(tx, scope, id)?;
    let event = checkout.cancel(tx.now())?;
    if !domain::planted!(Defect::CancelKeepsSession) {
        close_session(tx, &mut checkout, false)?;
    }
    if !domain::planted!(Defect::CancelUntold) {
        publish::checkout_event(tx, context, &mut checkout, event)?;
    }
    jobs::cancel(tx, Job::ExpireCheckout(id))?;
    tx.save(&mut checkout)?;
    Ok(checkout)
}

/// A checkout as a reader is told at this moment: what waited for a payer whose time ran out is expired with it, whether or not
/// the timer ran.
pub fn shown(tx: &mut Tx<'_>, mut stored: Checkout) -> Result<Checkout, Failure> {
    if let Some(known) = stored.transaction.as_ref().filter(|known| known.is_pending())
        && stored.status(tx.now()) == checkout::Status::Expired
    {
        let transaction = look_up::<Transaction>(tx, stored.scope, known.id)?;
        stored.transaction = Some(sessions::shown(tx, transaction)?.summary());
    }
    Ok(stored)
}

/// The timer: stores an expiry that readers were told already, or looks again later.
pub fn expire(tx: &mut Tx<'_>, context: &Context, scope: Scope, id: Id<Checkout>) -> Result<(), Failure> {
    let Some(mut checkout) = tx.find::<Checkout>(scope, id)? else { return Ok(()) };
    let now = tx.now();
    match checkout.observe(now) {
        Some(event) => {
            close_session(tx, &mut checkout, true)?;
            if !domain::planted!(Defect::ExpiryUntold) {
                publish::checkout_event(tx, context, &mut checkout, event)?;
            }
            tx.save(&mut checkout)?;
        }
        None if checkout.status(now) == checkout::Status::Pending => {
            jobs::schedule(tx, scope, Job::ExpireCheckout(id), checkout.next_deadline())?;
            tx.save(&mut checkout)?;
        }
        None => {}
    }
    Ok(())
}

/// Ends the open session of a checkout that takes no more payments, and asks the rail to drop its attempt.
pub(super) fn close_session(tx: &mut Tx<'_>, checkout: &mut Checkout, expired: bool) -> Result<(), Failure> {
    let Some(session) = checkout.payment_session else { return Ok(()) };
    match sessions::close_by_id(tx, checkout.scope, session, expired)? {
        Some(attempt) => checkout.attempt_moved(attempt, false, tx.now()),
        None => {
            let held = sessions::load_payment(tx, checkout.scope, session)?;
            sessions::withdraw(tx, &held, tx.now())?;
        }
    }
    Ok(())
}
