//! Who is installed here.

use domain::Scope;
use domain::organization::Organization;

use crate::entity::parse;
use crate::error::Error;
use crate::sql::Row;
use crate::tx::Tx;

use super::scope_of;

const SCOPES: &str = "\
select organization_id, mode
from organizations
order by organization_id, mode desc";

const ALL: &str = "\
select version, doc
from organizations
order by organization_id, mode desc";

const ANY: &str = "\
select 1 as found
from organizations
limit 1";

/// One more than the first, if there is one.
const ANOTHER: &str = "\
select organization_id
from organizations
where organization_id > (select min(organization_id) from organizations)
limit 1";

/// Every organization in every mode: for the operator's commands and the background checks.
pub fn scopes(tx: &mut Tx<'_>) -> Result<Vec<Scope>, Error> {
    tx.query(SCOPES, &[])?.iter().map(scope_of).collect()
}

/// Whether there is any row, whatever somebody made of it.
pub fn are_any(tx: &mut Tx<'_>) -> Result<bool, Error> {
    Ok(tx.query_opt(ANY, &[])?.is_some())
}

/// Whether there is more than one organization: a step or two in the index, however many there are.
pub fn are_several(tx: &mut Tx<'_>) -> Result<bool, Error> {
    Ok(tx.query_opt(ANOTHER, &[])?.is_some())
}

/// A scope, or what is named there instead and why it is none.
pub type FoundScope = Result<Scope, (String, Error)>;

/// The same for whoever checks them.
pub fn scopes_as_found(tx: &mut Tx<'_>) -> Result<Vec<FoundScope>, Error> {
    let named = |row: &Row| row.get("organization_id").unwrap_or_else(|_| "?".to_owned());
    Ok(tx.query(SCOPES, &[])?.iter().map(|row| scope_of(row).map_err(|why| (named(row), why))).collect())
}

pub fn all(tx: &mut Tx<'_>) -> Result<Vec<Organization>, Error> {
    tx.query(ALL, &[])?.iter().map(parse).collect()
}
