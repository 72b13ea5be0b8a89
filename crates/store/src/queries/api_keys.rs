//! API keys of one organization and mode.

use domain::api_key::ApiKey;
use domain::{Id, Scope, Timestamp};

use super::Filter;
use crate::entity::{key, parse};
use crate::error::Error;
use crate::sql::Row;
use crate::tx::Tx;

/// The latest of several processes wins. The document, and with it the version, is untouched: who changes the key meanwhile
/// is not disturbed.
const USED: &str = "\
update api_keys
set last_used_at = $4
where organization_id = $1 and mode = $2 and id = $3 and (last_used_at is null or last_used_at < $4)";

const LAST_USED: &str = "\
select last_used_at
from api_keys
where organization_id = $1 and mode = $2 and id = $3";

/// A key, and when it was last used, to within an hour.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedKey {
    pub key: ApiKey,
    pub last_used_at: Option<Timestamp>,
}

/// A page, newest first, revoked ones included; the next one begins `before` its last.
pub fn list(tx: &mut Tx<'_>, scope: Scope, before: Option<Id<ApiKey>>) -> Result<Vec<ListedKey>, Error> {
    let mut filter = Filter::within(scope);
    if let Some(before) = before {
        filter.and("id < {}", [before.to_string().into()]);
    }
    let conditions = &filter.conditions;
    let sql =
        format!("select version, doc, last_used_at\nfrom api_keys\nwhere {conditions}\norder by id desc\nlimit 500");
    let listed = |row: &Row| Ok(ListedKey { key: parse(row)?, last_used_at: time(row)? });
    tx.query(&sql, &filter.values)?.iter().map(listed).collect()
}

/// Somebody used it at this time, and perhaps later.
pub fn used(tx: &mut Tx<'_>, scope: Scope, id: Id<ApiKey>, at: Timestamp) -> Result<(), Error> {
    let [organization, mode, id] = key(scope, &id.to_string());
    tx.execute(USED, &[organization, mode, id, at.micros().into()]).map(drop)
}

pub fn last_used(tx: &mut Tx<'_>, scope: Scope, id: Id<ApiKey>) -> Result<Option<Timestamp>, Error> {
    match tx.query_opt(LAST_USED, &key(scope, &id.to_string()))? {
        Some(row) => time(&row),
        None => Ok(None),
    }
}

fn time(row: &Row) -> Result<Option<Timestamp>, Error> {
    row.get("last_used_at")
}
