//! Refunds: lists for the merchant and for the operator.

use domain::payment::Transaction;
use domain::refund::{Earlier, Refund, RefundStatus};
use domain::{Id, Scope, Timestamp};

use super::{Filter, Page, PageRequest};
use crate::entity::{NEEDS_A_PERSON, key, parse};
use crate::error::Error;
use crate::tx::Tx;

/// Each part by an index of its own: one condition for all goes along all that there are.
const UNDECIDED: &str = "\
select version, doc
from (
    select id, version, doc
    from (
        select id, version, doc
        from refunds
        where organization_id = $1 and mode = $2 and attention = $3 and attention > 0 and id > $5
        order by id
        limit $6) as parked
    union
    select id, version, doc
    from (
        select id, version, doc
        from refunds
        where organization_id = $1 and mode = $2 and status = 'pending' and created_at <= $4 and id > $5
        order by id
        limit $6) as pending
    union
    select id, version, doc
    from (
        select id, version, doc
        from refunds
        where organization_id = $1 and mode = $2 and status = 'processing' and created_at <= $4 and id > $5
        order by id
        limit $6) as processing) as undecided
order by id
limit $6";

const OF_TRANSACTION: &str = "\
select count(*) as asked, count(case when status = 'failed' then 1 end) as failed
from refunds
where organization_id = $1 and mode = $2 and transaction_id = $3";

/// How many there are of a transaction. While that is locked there come no others.
pub fn of_transaction(tx: &mut Tx<'_>, scope: Scope, transaction: Id<Transaction>) -> Result<Earlier, Error> {
    let row = tx.query_one(OF_TRANSACTION, &key(scope, &transaction.to_string()))?;
    Ok(Earlier { asked: row.get("asked")?, failed: row.get("failed")? })
}

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
