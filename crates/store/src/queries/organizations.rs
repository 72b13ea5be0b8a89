//! Who is installed here.

use domain::Scope;
use domain::organization::Organization;

use crate::entity::parse;
use crate::error::Error;
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

/// Every organization in every mode: for the operator's commands and the background checks.
pub fn scopes(tx: &mut Tx<'_>) -> Result<Vec<Scope>, Error> {
    tx.query(SCOPES, &[])?.iter().map(scope_of).collect()
}

pub fn all(tx: &mut Tx<'_>) -> Result<Vec<Organization>, Error> {
    tx.query(ALL, &[])?.iter().map(parse).collect()
}
