//! Invoices: create, update, finalize, cancel, and the moment from which one is overdue. What is paid of one is in
//! `payments`.

mod payments;

use domain::customer::Customer;
use domain::event::EventType;
use domain::invoice::{Bill, BillTo, Change, Invoice, NotUpdated, Order};
use domain::job::Job;
use domain::mail::MailKind;
use domain::number::Series;
use domain::organization::{Organization, Profile};
use domain::{Currency, Id, Metadata, Method, Msisdn, Refusal, Scope, TaxRate, Timestamp};
use store::Tx;
use store::queries::documents::DocumentStates;
use store::queries::{counters, jobs};

use super::paid_object::PaidObject;
use super::products::NewItem;
use super::{Context, customers, load, mails, organization_of, products, publish, receipts, sessions};
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};
use crate::mail::is_mailable;
use crate::wire::invoices::payment_url;

pub use payments::{NewPayment, record_payment};

/// What a request asks for, each value readable by itself.
#[derive(Debug, Clone)]
pub struct NewInvoice {
    pub customer_id: Option<Id<Customer>>,
    pub customer_email: Option<String>,
    pub customer_name: Option<String>,
    pub customer_address: Option<String>,
    /// Some, none on purpose, or what is known of the customer.
    pub customer_phone: Option<Option<Msisdn>>,
    pub currency: Currency,
    pub tax_rate: TaxRate,
    pub due_date: Timestamp,
    pub notes: String,
    pub items: Vec<NewItem>,
    pub is_draft: bool,
    pub metadata: Metadata,
}

/// What a request wants to be otherwise; `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct InvoiceChange {
    pub email: Option<String>,
    pub name: Option<String>,
    pub address: Option<String>,
    pub phone: Option<Option<Msisdn>>,
    pub tax_rate: Option<TaxRate>,
    pub due_date: Option<Timestamp>,
    pub notes: Option<String>,
    pub items: Option<Vec<NewItem>>,
    pub metadata: Option<Metadata>,
    /// The revision that the change is based on.
    pub based_on: Option<i64>,
}

/// An invoice with the merchant who sends it, and what became of its receipts' files.
#[derive(Debug, Clone)]
pub struct Billed {
    pub invoice: Invoice,
    pub merchant: Profile,
    pub files: DocumentStates,
}

pub fn create(tx: &mut Tx<'_>, context: &Context, scope: Scope, new: &NewInvoice) -> Result<Billed, Failure> {
    let mut faults = Vec::new();
    let named = customers::named(tx, scope, new.customer_id, &mut faults)?;
    let lines = products::price_lines(tx, scope, new.currency, &[], &new.items, &mut faults)?;
    let bill = lines.and_then(|(_, items)| {
        let bill = Bill::new(items, new.tax_rate);
        if bill.is_none() {
            faults.push(total_too_large("tax_rate"));
        }
        bill
    });
    if new.customer_id.is_none() && new.customer_email.is_none() {
        let message = "`customer_email` is required where no `customer_id` names the customer.";
        faults.push(Fault::new("customer_email", FaultCode::Required, message));
    }
    let (Some(bill), true) = (bill, faults.is_empty()) else { return Err(faults.into()) };
    let customer = match (named, &new.customer_email) {
        (Some(customer), _) => customer,
        (None, Some(email)) => {
            let (phone, name) = (new.customer_phone.iter().flatten().next(), new.customer_name.as_deref());
            customers::find_or_create_by_email(tx, scope, email, phone, name)?
        }
        (None, None) => unreachable!("a fault says so"),
    };
    let order = Order {
        customer_id: customer.id,
        customer: bill_to(new, &customer),
        bill,
        due_date: new.due_date,
        notes: new.notes.clone(),
        metadata: new.metadata.clone(),
        subscription_id: None,
    };
    let invoice = issue(tx, context, scope, order, new.is_draft)?;
    billed(tx, invoice)
}

/// What is given on the invoice wins over what is known of the customer.
fn bill_to(new: &NewInvoice, customer: &Customer) -> BillTo {
    let known = customer.payer();
    BillTo {
        email: new.customer_email.clone().or(known.email).unwrap_or_default(),
        name: new.customer_name.clone().or(known.name).unwrap_or_default(),
        address: new.customer_address.clone().unwrap_or_default(),
        phone: new.customer_phone.clone().unwrap_or(known.phone),
    }
}

/// Gives an order its number and tells of it: the one way in which invoices come to be.
pub(super) fn issue(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    order: Order,
    is_draft: bool,
) -> Result<Invoice, Failure> {
    let now = tx.now();
    let id: Id<Invoice> = tx.entropy().id(now);
    let number = counters::next(tx, scope, Series::Invoice, now)?;
    let mut invoice = if is_draft {
        Invoice::create(id, scope, number, order, now)
    } else {
        Invoice::create_issued(id, scope, number, order, now)
    };
    publish::invoice_event(tx, context, &mut invoice, EventType::InvoiceCreated)?;
    if !is_draft {
        publish::invoice_event(tx, context, &mut invoice, EventType::InvoiceFinalized)?;
        jobs::schedule(tx, scope, Job::RenderInvoice(id), now)?;
    }
    tx.insert(&mut invoice)?;
    watch(tx, &invoice)?;
    Ok(invoice)
}

pub fn update(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    id: Id<Invoice>,
    change: &InvoiceChange,
) -> Result<Billed, Failure> {
    let mut invoice = load::<Invoice>(tx, scope, id)?;
    let now = tx.now();
    invoice.updatable(change.based_on, now)?;
    let items = match &change.items {
        None => None,
        Some(requested) => {
            let mut faults = Vec::new();
            let bill = invoice.bill();
            match products::price_lines(tx, scope, bill.currency(), bill.items(), requested, &mut faults)? {
                Some((_, items)) => Some(items),
                None => return Err(faults.into()),
            }
        }
    };
    let field = if change.tax_rate.is_some() { "tax_rate" } else { "items" };
    let change = Change {
        email: change.email.clone(),
        name: change.name.clone(),
        address: change.address.clone(),
        phone: change.phone.clone(),
        tax_rate: change.tax_rate,
        due_date: change.due_date,
        notes: change.notes.clone(),
        metadata: change.metadata.clone(),
        items,
        based_on: change.based_on,
    };
    let remaining = invoice.remaining();
    let event = invoice.update(change, now).map_err(|not_updated| match not_updated {
        NotUpdated::Refused(refusal) => refusal.into(),
        NotUpdated::TotalTooLarge => Failure::from(total_too_large(field)),
    })?;
    if let Some(event) = event {
        if invoice.remaining() != remaining && !domain::planted!(Defect::UpdateKeepsSession) {
            close_session(tx, &mut invoice)?;
        }
        publish::invoice_event(tx, context, &mut invoice, event)?;
        // Its due date may have been moved to where it was missed.
        observe(tx, context, &mut invoice)?;
        watch(tx, &invoice)?;
        tx.save(&mut invoice)?;
    }
    billed(tx, invoice)
}

fn total_too_large(field: &str) -> Fault {
    Fault::new(field, FaultCode::AmountTooLarge, "The total with tax is above the largest amount.")
}

pub fn finalize(tx: &mut Tx<'_>, context: &Context, scope: Scope, id: Id<Invoice>) -> Result<Billed, Failure> {
    let mut invoice = load::<Invoice>(tx, scope, id)?;
    let now = tx.now();
    let event = invoice.finalize(now)?;
    publish::invoice_event(tx, context, &mut invoice, event)?;
    jobs::schedule(tx, scope, Job::RenderInvoice(id), now)?;
    watch(tx, &invoice)?;
    tx.save(&mut invoice)?;
    billed(tx, invoice)
}

/// Owes the customer a mail with the invoice: whoever is told of the sending can rely on the mail. It leaves as soon as the
/// mail server takes it.
pub fn send(tx: &mut Tx<'_>, context: &Context, scope: Scope, id: Id<Invoice>) -> Result<Billed, Failure> {
    let mut invoice = load::<Invoice>(tx, scope, id)?;
    observe(tx, context, &mut invoice)?;
    let event = invoice.sent(tx.now())?;
    if !context.sends_mail {
        return Err(Refusal::EmailNotConfigured.into());
    }
    if !is_mailable(&invoice.customer.email) {
        return Err(Refusal::CustomerEmailMissing.into());
    }
    mails::refuse_one_too_many(tx, scope, id)?;
    mails::owe(tx, scope, MailKind::Invoice, id.to_string(), &invoice.customer.email)?;
    publish::invoice_event(tx, context, &mut invoice, event)?;
    watch(tx, &invoice)?;
    tx.save(&mut invoice)?;
    billed(tx, invoice)
}

pub fn cancel(tx: &mut Tx<'_>, context: &Context, scope: Scope, id: Id<Invoice>) -> Result<Billed, Failure> {
    let mut invoice = load::<Invoice>(tx, scope, id)?;
    observe(tx, context, &mut invoice)?;
    let event = invoice.cancel(tx.now())?;
    close_session(tx, &mut invoice)?;
    publish::invoice_event(tx, context, &mut invoice, event)?;
    watch(tx, &invoice)?;
    tx.save(&mut invoice)?;
    billed(tx, invoice)
}

/// Where its customer can pay it online; nothing where no method takes it, and the page itself says so. The API names that page
/// all the same (contract §2.4 rule 6).
pub fn pay_address(
    context: &Context,
    organization: &Organization,
    invoice: &Invoice,
    now: Timestamp,
) -> Option<String> {
    let page = payment_url(invoice, &context.addresses, now)?;
    let object = PaidObject::Invoice(invoice.clone());
    Method::ALL.into_iter().any(|method| object.offers(method, context, organization)).then_some(page)
}

/// The timer: stores what readers were told already, or looks again later.
pub fn overdue(tx: &mut Tx<'_>, context: &Context, scope: Scope, id: Id<Invoice>) -> Result<(), Failure> {
    let Some(mut invoice) = tx.find::<Invoice>(scope, id)? else { return Ok(()) };
    if observe(tx, context, &mut invoice)? {
        tx.save(&mut invoice)?;
    } else if let Some(overdue_at) = invoice.overdue_at() {
        jobs::schedule(tx, scope, Job::OverdueInvoice(id), overdue_at)?;
    }
    Ok(())
}

/// Stores and tells what the clock has decided; whether it had.
pub(super) fn observe(tx: &mut Tx<'_>, context: &Context, invoice: &mut Invoice) -> Result<bool, Failure> {
    match invoice.observe(tx.now()) {
        Some(event) => publish::invoice_event(tx, context, invoice, event).map(|()| true),
        None => Ok(false),
    }
}

/// Owes the timer while the invoice waits for its overdue moment, and no longer.
pub(super) fn watch(tx: &mut Tx<'_>, invoice: &Invoice) -> Result<(), Failure> {
    let job = Job::OverdueInvoice(invoice.id);
    match invoice.overdue_at() {
        Some(_) if domain::planted!(Defect::OverdueForgotten) => {}
        Some(overdue_at) => jobs::schedule(tx, invoice.scope, job, overdue_at)?,
        None => jobs::cancel(tx, job)?,
    }
    Ok(())
}

/// Ends the open session of an invoice whose remaining amount is another now, and asks the rail to drop its attempt.
pub(super) fn close_session(tx: &mut Tx<'_>, invoice: &mut Invoice) -> Result<(), Failure> {
    let Some(session) = invoice.payment_session else { return Ok(()) };
    if let Some(attempt) = sessions::close_by_id(tx, invoice.scope, session, false)? {
        invoice.attempt_moved(attempt, false, tx.now());
    }
    Ok(())
}

fn billed(tx: &mut Tx<'_>, invoice: Invoice) -> Result<Billed, Failure> {
    let scope = invoice.scope;
    let merchant = organization_of(tx, scope)?.profile.clone();
    let files = receipts::files(tx, scope, [&invoice])?;
    Ok(Billed { invoice, merchant, files })
}
