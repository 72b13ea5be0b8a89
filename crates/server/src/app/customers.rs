//! Customers: find or create, update, delete; and what other commands take from one.

use domain::customer::{Contact, Customer};
use domain::{Id, Metadata, Msisdn, Scope, checkout};
use store::Tx;
use store::queries::customers as queries;

use super::load;
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};

#[derive(Debug, Clone)]
pub struct NewCustomer {
    pub contact: Contact,
    pub name: Option<String>,
    pub metadata: Metadata,
}

#[derive(Debug, Clone)]
pub struct FoundOrCreated {
    pub customer: Customer,
    pub is_new: bool,
}

/// The customer with this e-mail address, else the one with this phone, unchanged; else a new one (contract §2.8).
///
/// Call it before anything is locked: it may wait for a transaction that is just storing the same customer.
pub fn find_or_create(tx: &mut Tx<'_>, scope: Scope, new: &NewCustomer) -> Result<FoundOrCreated, Failure> {
    if let Some(customer) = find(tx, scope, &new.contact)? {
        return Ok(FoundOrCreated { customer, is_new: false });
    }
    if let Some(customer) = create(tx, scope, new)? {
        return Ok(FoundOrCreated { customer, is_new: true });
    }
    match find(tx, scope, &new.contact)? {
        Some(customer) => Ok(FoundOrCreated { customer, is_new: false }),
        // It was deleted in this very moment.
        None => Err(tx.conflict().into()),
    }
}

/// The customer with this e-mail address, unchanged; else a new one (contract §2.4). A phone belongs to one customer only: a
/// new one has it unless it is another's.
///
/// Call it before anything is locked, as [`find_or_create`].
pub fn find_or_create_by_email(
    tx: &mut Tx<'_>,
    scope: Scope,
    email: &str,
    phone: Option<&Msisdn>,
    name: Option<&str>,
) -> Result<Customer, Failure> {
    if let Some(customer) = queries::by_email(tx, scope, email)? {
        return Ok(customer);
    }
    let phone = match phone {
        Some(phone) if queries::by_phone(tx, scope, phone)?.is_none() => Some(phone.clone()),
        Some(_) | None => None,
    };
    let contact = Contact::new(Some(email.to_owned()), phone).expect("an e-mail address is enough");
    let new = NewCustomer { contact, name: name.map(str::to_owned), metadata: Metadata::default() };
    if let Some(customer) = create(tx, scope, &new)? {
        return Ok(customer);
    }
    match queries::by_email(tx, scope, email)? {
        Some(customer) => Ok(customer),
        // Somebody took the phone in this very moment, or the customer was deleted in it.
        None => Err(tx.conflict().into()),
    }
}

/// `None` where another has the e-mail address or the phone.
fn create(tx: &mut Tx<'_>, scope: Scope, new: &NewCustomer) -> Result<Option<Customer>, Failure> {
    let now = tx.now();
    let mut customer = Customer {
        id: tx.entropy().id(now),
        scope,
        version: 0,
        contact: new.contact.clone(),
        name: new.name.clone(),
        metadata: new.metadata.clone(),
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    let is_new = queries::insert_if_new(tx, &mut customer)?;
    Ok(is_new.then_some(customer))
}

fn find(tx: &mut Tx<'_>, scope: Scope, contact: &Contact) -> Result<Option<Customer>, Failure> {
    if let Some(email) = contact.email()
        && let Some(customer) = queries::by_email(tx, scope, email)?
    {
        return Ok(Some(customer));
    }
    match contact.phone() {
        Some(phone) => Ok(queries::by_phone(tx, scope, phone)?),
        None => Ok(None),
    }
}

/// What the change would come to. It has a fault where somebody else has an address, and where none is left.
fn changed_contact(
    tx: &mut Tx<'_>,
    customer: &Customer,
    change: &CustomerChange,
    faults: &mut Vec<Fault>,
) -> Result<Option<Contact>, Failure> {
    let email = change.email.clone().unwrap_or_else(|| customer.contact.email().map(str::to_owned));
    let phone = change.phone.clone().unwrap_or_else(|| customer.contact.phone().cloned());
    if let Some(email) = &email
        && queries::by_email(tx, customer.scope, email)?.is_some_and(|other| other.id != customer.id)
    {
        faults.push(taken("email"));
    }
    if let Some(phone) = &phone
        && queries::by_phone(tx, customer.scope, phone)?.is_some_and(|other| other.id != customer.id)
    {
        faults.push(taken("phone"));
    }
    let contact = Contact::new(email, phone);
    if contact.is_none() {
        let field = if change.email.is_some() { "email" } else { "phone" };
        let message = "A customer keeps `email` or `phone`; send one of them with a value.";
        faults.push(Fault::new(field, FaultCode::Required, message));
    }
    Ok(contact)
}

/// What stands against a change of the customer, if it is there.
pub fn refuse_contact(
    tx: &mut Tx<'_>,
    scope: Scope,
    (id, change): &(Id<Customer>, CustomerChange),
    faults: &mut Vec<Fault>,
) -> Result<(), Failure> {
    if let Some(customer) = tx.peek::<Customer>(scope, *id)? {
        changed_contact(tx, &customer, change, faults)?;
    }
    Ok(())
}

/// `None` leaves a field as it is, `Some(None)` clears it.
#[derive(Debug, Clone, Default)]
pub struct CustomerChange {
    pub email: Option<Option<String>>,
    pub phone: Option<Option<Msisdn>>,
    pub name: Option<Option<String>>,
    pub metadata: Option<Metadata>,
}

pub fn update(tx: &mut Tx<'_>, scope: Scope, id: Id<Customer>, change: &CustomerChange) -> Result<Customer, Failure> {
    let mut customer = load::<Customer>(tx, scope, id)?;
    let before = customer.clone();
    let mut faults = Vec::new();
    match changed_contact(tx, &customer, change, &mut faults)? {
        Some(contact) if faults.is_empty() => customer.contact = contact,
        Some(_) | None => return Err(faults.into()),
    }
    if let Some(name) = &change.name {
        customer.name.clone_from(name);
    }
    if let Some(metadata) = &change.metadata {
        customer.metadata.clone_from(metadata);
    }
    if customer != before {
        customer.updated_at = customer.updated_at.max(tx.now());
        queries::save(tx, &mut customer)?;
    }
    Ok(customer)
}

fn taken(field: &str) -> Fault {
    let message = format!("`{field}` belongs to another customer of yours; use that one, or change it first.");
    Fault::new(field, FaultCode::Conflict, message)
}

/// What names the customer keeps its copies; e-mail address and phone are free again.
pub fn delete(tx: &mut Tx<'_>, scope: Scope, id: Id<Customer>) -> Result<(), Failure> {
    let mut customer = load::<Customer>(tx, scope, id)?;
    customer.delete(tx.now());
    Ok(tx.save(&mut customer)?)
}

/// The customer that a request names in `customer_id`. Who is not there is a fault of that field.
pub fn named(
    tx: &mut Tx<'_>,
    scope: Scope,
    id: Option<Id<Customer>>,
    faults: &mut Vec<Fault>,
) -> Result<Option<Customer>, Failure> {
    let Some(id) = id else { return Ok(None) };
    let customer = tx.peek::<Customer>(scope, id)?;
    if customer.is_none() {
        let message = "`customer_id` names no customer of yours.";
        faults.push(Fault::new("customer_id", FaultCode::NotFound, message));
    }
    Ok(customer)
}

/// What the merchant sent wins over what is known of the customer.
pub(super) fn prefill(sent: &checkout::Customer, customer: Option<&Customer>) -> checkout::Customer {
    let Some(customer) = customer else { return sent.clone() };
    let known = customer.payer();
    checkout::Customer {
        id: Some(customer.id),
        phone: sent.phone.clone().or_else(|| known.phone.map(|phone| phone.as_str().to_owned())),
        email: sent.email.clone().or(known.email),
        name: sent.name.clone().or(known.name),
    }
}
