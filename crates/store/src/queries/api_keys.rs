//! API keys of one organization and mode.

use domain::Scope;
use domain::api_key::ApiKey;

use super::Filter;
use crate::entity::parse;
use crate::error::Error;
use crate::tx::Tx;

/// Oldest first, revoked ones included.
pub fn list(tx: &mut Tx<'_>, scope: Scope) -> Result<Vec<ApiKey>, Error> {
    let filter = Filter::within(scope);
    let sql = format!("select version, doc\nfrom api_keys\nwhere {}\norder by id\nlimit 1000", filter.conditions);
    tx.query(&sql, &filter.values)?.iter().map(parse).collect()
}
