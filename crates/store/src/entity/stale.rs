//! Objects as they were a moment ago, for defects on purpose: as if they had been read before the transaction, or kept too long.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use domain::Scope;

use super::{Entity, key};
use crate::error::Error;
use crate::sql::Row;
use crate::tx::Tx;

/// Longer than requests that race are apart.
const A_MOMENT_US: i64 = 100_000;

/// By table and name: when it was read.
static READ: Mutex<BTreeMap<String, (i64, Row)>> = Mutex::new(BTreeMap::new());

pub(super) fn of_a_moment_ago<E: Entity>(tx: &mut Tx<'_>, scope: Scope, id: E::Id) -> Result<Option<Row>, Error> {
    let now_us = tx.now_us();
    let name = format!("{} {} {} {id}", E::TABLE, scope.organization, scope.mode.as_str());
    let known = READ.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
    if let Some((read_at_us, row)) = known
        && now_us - read_at_us < A_MOMENT_US
    {
        return Ok(Some(row));
    }
    let row = tx.query_opt(E::SELECT, &key(scope, &id.to_string()))?;
    if let Some(row) = &row {
        READ.lock().unwrap_or_else(PoisonError::into_inner).insert(name, (now_us, row.clone()));
    }
    Ok(row)
}
