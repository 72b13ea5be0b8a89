//! Payment links: create, update, delete, expire. Their payments begin and settle as all payments do.

mod answers;

use domain::event::EventType;
use domain::job::Job;
use domain::organization::{Organization, Profile};
use domain::payment_link::{CustomField, PaymentLink, Price, Status, Terms};
use domain::{Currency, Id, Metadata, Refusal, Scope, Timestamp};
use store::Tx;
use store::queries::jobs;

use super::{Context, load, look_up, organization_of, publish};
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};

pub(super) use answers::join;
pub(crate) use answers::refused_answer;

/// A link with the merchant that it shows.
#[derive(Debug, Clone)]
pub struct Shown {
    pub link: PaymentLink,
    pub merchant: Profile,
    /// The clock reading by which it is shown.
    pub at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct NewPaymentLink {
    pub price: Price,
    pub terms: Terms,
}

pub fn create(tx: &mut Tx<'_>, context: &Context, scope: Scope, new: &NewPaymentLink) -> Result<Shown, Failure> {
    let organization = organization_of(tx, scope)?;
    if !context.has_rails(scope.mode) {
        return Err(Refusal::NoPaymentProvider.into());
    }
    let now = tx.now();
    let mut faults = Vec::new();
    refuse_untaken(context, &organization, new.price.currency(), &mut faults);
    refuse_past(new.terms.expiration_date, now, &mut faults);
    if !faults.is_empty() {
        return Err(faults.into());
    }
    let id = tx.entropy().id(now);
    let mut link = PaymentLink::create(id, scope, new.price, new.terms.clone(), now);
    publish::link_event(tx, context, &mut link, &organization.profile, EventType::PaymentLinkCreated)?;
    tx.insert(&mut link)?;
    watch(tx, &link)?;
    Ok(Shown { link, merchant: organization.profile.clone(), at: now })
}

pub(super) fn refuse_untaken(
    context: &Context,
    organization: &Organization,
    currency: Currency,
    faults: &mut Vec<Fault>,
) {
    let enabled = &organization.payments.enabled_methods;
    if !enabled.iter().any(|method| context.takes(organization.mode, *method, currency)) {
        let message = format!("`currency` {currency} is taken by none of the enabled methods.");
        faults.push(Fault::new("currency", FaultCode::NotAllowed, message));
    }
}

pub(super) fn refuse_past(expiration_date: Option<Timestamp>, now: Timestamp, faults: &mut Vec<Fault>) {
    if expiration_date.is_some_and(|expiration_date| expiration_date <= now) {
        let message = "`expiration_date` has passed already; choose a later one or leave it out.";
        faults.push(Fault::new("expiration_date", FaultCode::OutOfRange, message));
    }
}

/// The timer follows the link's date.
pub(super) fn watch(tx: &mut Tx<'_>, link: &PaymentLink) -> Result<(), Failure> {
    let job = Job::ExpirePaymentLink(link.id);
    match (link.stored_status(), link.terms().expiration_date) {
        (Status::Active, Some(expiration_date)) => jobs::schedule(tx, link.scope, job, expiration_date)?,
        (Status::Active, None) | (Status::Inactive | Status::Deleted, _) => jobs::cancel(tx, job)?,
    }
    Ok(())
}

pub fn find(tx: &mut Tx<'_>, scope: Scope, id: Id<PaymentLink>) -> Result<Shown, Failure> {
    let link = look_up::<PaymentLink>(tx, scope, id)?;
    link.refuse_if_deleted()?;
    let organization = organization_of(tx, scope)?;
    Ok(Shown { link, merchant: organization.profile.clone(), at: tx.now() })
}

/// `None` leaves a field as it is, `Some(None)` clears it.
#[derive(Debug, Clone, Default)]
pub struct LinkChange {
    pub title: Option<String>,
    pub description: Option<Option<String>>,
    pub expiration_date: Option<Option<Timestamp>>,
    pub max_usage_count: Option<Option<i64>>,
    pub success_url: Option<Option<String>>,
    pub failure_url: Option<Option<String>>,
    pub status: Option<Status>,
    pub collect_customer_info: Option<bool>,
    pub custom_fields: Option<Option<Vec<CustomField>>>,
    pub metadata: Option<Option<Metadata>>,
}

impl LinkChange {
    fn of(&self, terms: &Terms) -> Terms {
        fn changed<T: Clone>(wanted: &Option<T>, known: &T) -> T {
            wanted.as_ref().unwrap_or(known).clone()
        }
        Terms {
            title: changed(&self.title, &terms.title),
            description: changed(&self.description, &terms.description),
            expiration_date: changed(&self.expiration_date, &terms.expiration_date),
            max_usage_count: changed(&self.max_usage_count, &terms.max_usage_count),
            success_url: changed(&self.success_url, &terms.success_url),
            failure_url: changed(&self.failure_url, &terms.failure_url),
            collect_customer_info: changed(&self.collect_customer_info, &terms.collect_customer_info),
            custom_fields: changed(&self.custom_fields, &terms.custom_fields),
            metadata: changed(&self.metadata, &terms.metadata),
        }
    }
}

pub fn update(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    id: Id<PaymentLink>,
    change: &LinkChange,
) -> Result<Shown, Failure> {
    let mut link = load::<PaymentLink>(tx, scope, id)?;
    link.refuse_if_deleted()?;
    let organization = organization_of(tx, scope)?;
    let now = tx.now();
    // What the clock has decided came before this, and is told as it was.
    let expired = link.observe(now);
    if let Some(event) = expired {
        publish::link_event(tx, context, &mut link, &organization.profile, event)?;
    }
    let terms = change.of(link.terms());
    if terms.expiration_date != link.terms().expiration_date {
        let mut faults = Vec::new();
        refuse_past(terms.expiration_date, now, &mut faults);
        if !faults.is_empty() {
            return Err(faults.into());
        }
    }
    let told = link.update(terms, change.status, now)?;
    if expired.is_some() || !told.is_empty() {
        for event in told {
            publish::link_event(tx, context, &mut link, &organization.profile, event)?;
        }
        tx.save(&mut link)?;
        watch(tx, &link)?;
    }
    Ok(Shown { link, merchant: organization.profile.clone(), at: now })
}

pub fn delete(tx: &mut Tx<'_>, context: &Context, scope: Scope, id: Id<PaymentLink>) -> Result<(), Failure> {
    let mut link = load::<PaymentLink>(tx, scope, id)?;
    link.refuse_if_deleted()?;
    let organization = organization_of(tx, scope)?;
    let now = tx.now();
    // What the clock has decided came before this, and is told as it was.
    if let Some(event) = link.observe(now) {
        publish::link_event(tx, context, &mut link, &organization.profile, event)?;
    }
    let event = link.delete(now)?;
    publish::link_event(tx, context, &mut link, &organization.profile, event)?;
    tx.save(&mut link)?;
    watch(tx, &link)
}

/// The timer: stores an expiry that readers were told already, or looks again later.
pub fn expire(tx: &mut Tx<'_>, context: &Context, scope: Scope, id: Id<PaymentLink>) -> Result<(), Failure> {
    let Some(mut link) = tx.find::<PaymentLink>(scope, id)? else { return Ok(()) };
    match link.observe(tx.now()) {
        Some(event) => {
            let organization = organization_of(tx, scope)?;
            publish::link_event(tx, context, &mut link, &organization.profile, event)?;
            tx.save(&mut link)?;
            Ok(())
        }
        None => watch(tx, &link),
    }
}
