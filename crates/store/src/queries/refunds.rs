//! Refunds: lists for the merchant and for the operator.

use domain::refund::{Refund, RefundStatus};
use domain::{Scope, Timestamp};

use super::{Filter, Page, PageRequest};
use crate::entity::{NEEDS_A_PERSON, key, parse};
use crate::error::Error;
use crate::tx::Tx;

const UNDECIDED: &str = "\
select version, doc
from refunds
where organization_id = $1 and mode = $2
    and (attention = $3 or status in ('pending', 'processing') and created_at <= $4)
    and id > $5
order by id
limit $6";

pub fn list(
    tx: &mut Tx<'_>,
    scope: Scope,
    status: Option<RefundStatus>,
    page: &PageRequest,
) -> Result<Page<Refund>, Error> {
    let mut conditions = Filter::within(scope);
    if let Some(status) = status {
        conditions.and("status = {}", [status.as_str().into()]);
    }
    conditions.entities(tx, page)
}

/// Whose outcome nobody knows: lost, parked, or open since `before` at least. Oldest first, behind the id `after`.
pub fn undecided(
    tx: &mut Tx<'_>,
    scope: Scope,
    before: Timestamp,
    after: &str,
    limit: i64,
) -> Result<Vec<Refund>, Error> {
    let [organization, mode, _] = key(scope, "");
    let values = [organization, mode, NEEDS_A_PERSON.into(), before.micros().into(), after.into(), limit.into()];
    tx.query(UNDECIDED, &values)?.iter().map(parse).collect()
}
