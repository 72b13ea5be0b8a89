//! Customers by what they are known by. Among those that are not deleted, e-mail address and phone are unique.

use domain::customer::{Customer, email_key};
use domain::{Msisdn, Scope};

use super::{Filter, Page, PageRequest};
use crate::entity::{Entity, key, parse, values};
use crate::error::Error;
use crate::tx::Tx;

const BY_EMAIL: &str = "\
select version, doc
from customers
where organization_id = $1 and mode = $2 and email_key = $3 and deleted_at is null";

const BY_PHONE: &str = "\
select version, doc
from customers
where organization_id = $1 and mode = $2 and phone = $3 and deleted_at is null";

#[derive(Debug, Clone, Default)]
pub struct CustomerFilter {
    /// In any case.
    pub email: Option<String>,
    pub phone: Option<Msisdn>,
}

pub fn list(
    tx: &mut Tx<'_>,
    scope: Scope,
    filter: &CustomerFilter,
    page: &PageRequest,
) -> Result<Page<Customer>, Error> {
    let mut conditions = Filter::within(scope);
    conditions.and("deleted_at is null", []);
    if let Some(email) = &filter.email {
        conditions.and("email_key = {}", [email_key(email).into()]);
    }
    if let Some(phone) = &filter.phone {
        conditions.and("phone = {}", [phone.as_str().into()]);
    }
    conditions.entities(tx, page)
}

/// Without a lock.
pub fn by_email(tx: &mut Tx<'_>, scope: Scope, email: &str) -> Result<Option<Customer>, Error> {
    tx.query_opt(BY_EMAIL, &key(scope, &email_key(email)))?.as_ref().map(parse).transpose()
}

/// Without a lock.
pub fn by_phone(tx: &mut Tx<'_>, scope: Scope, phone: &Msisdn) -> Result<Option<Customer>, Error> {
    tx.query_opt(BY_PHONE, &key(scope, phone.as_str()))?.as_ref().map(parse).transpose()
}

/// `false`, and nothing stored, where another customer has the e-mail address or the phone. On PostgreSQL it waits for a
/// transaction that is just storing such a one.
pub fn insert_if_new(tx: &mut Tx<'_>, customer: &mut Customer) -> Result<bool, Error> {
    assert_eq!(customer.version, 0, "a new customer has not been stored before");
    customer.version = 1;
    let sql = format!("{}\non conflict do nothing", Customer::INSERT);
    Ok(tx.execute(&sql, &values(customer)?)? == 1)
}

/// Whoever took the e-mail address or the phone after it was looked for makes the closure run again, and look again.
pub fn save(tx: &mut Tx<'_>, customer: &mut Customer) -> Result<(), Error> {
    match tx.save(customer).and_then(|()| tx.flush()) {
        Err(error) if error.is_unique_violation() => Err(tx.conflict()),
        saved => saved,
    }
}
