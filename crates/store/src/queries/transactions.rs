//! Transactions: lists for the merchant and the operator, sums for the dashboard.

use domain::payment::{Transaction, TransactionStatus};
use domain::{Currency, Id, Scope, Timestamp};

use super::{Filter, Page, PageRequest, sum_of};
use crate::entity::{key, parse};
use crate::error::Error;
use crate::tx::Tx;

pub use crate::entity::{CAME_TWICE, NEEDS_A_PERSON};

/// It says twice that it is more than 0, because the index holds those alone. What was given back whole waits for nobody.
const FOR_ATTENTION: &str = "\
select version, doc
from transactions
where organization_id = $1 and mode = $2 and attention = $3 and attention > 0 and status <> 'refunded'
    and id > $4
order by id
limit $5";

/// Each part by an index of its own: one condition for both goes along all that there are.
const UNDECIDED: &str = "\
select version, doc
from (
    select id, version, doc
    from (
        select id, version, doc
        from transactions
        where organization_id = $1 and mode = $2 and attention = $3 and attention > 0 and id > $5
        order by id
        limit $6) as parked
    union
    select id, version, doc
    from (
        select id, version, doc
        from transactions
        where organization_id = $1 and mode = $2 and status = 'processing' and step <> 'settled' and created_at < $4
            and id > $5
        order by id
        limit $6) as processing) as undecided
order by id
limit $6";

const MOST_OF_OBJECT: usize = 1000;
const OF_OBJECT: &str = "\
select version, doc
from transactions
where organization_id = $1 and mode = $2 and object_id = $3
order by id desc
limit 1000";

const OPEN_OR_PAID_OF_OBJECT: &str = "\
select version, doc
from transactions
where organization_id = $1 and mode = $2 and object_id = $3 and id < $4
    and (step <> 'settled' or status in ('completed', 'partially_refunded', 'refunded'))
order by id desc
limit 1000";

const PAID_BACK_OF_OBJECT: &str = "\
select version, doc
from transactions
where organization_id = $1 and mode = $2 and object_id = $3 and refunded_minor > 0
order by id desc
limit 1000";

const ATTEMPTS_OF_OBJECT: &str = "\
select count(*) as attempts
from transactions
where organization_id = $1 and mode = $2 and object_id = $3 and payment_session_id is not null";

const ATTEMPTS_SINCE: &str = "\
select count(*) as attempts
from transactions
where organization_id = $1 and mode = $2 and object_id = $3 and payment_session_id is not null and created_at > $4
    and id >= $5";

/// The clock decides what is expired, as in the lists.
const TOTALS: &str = "\
select payment_method, case when status = 'pending' and expires_at <= $5 then 'expired' else status end as shown_status,
    count(*) as transactions,
    cast(sum(amount_minor >> 32) as bigint) as amount_high,
    cast(sum(amount_minor & 4294967295) as bigint) as amount_low,
    cast(sum(fee_minor >> 32) as bigint) as fee_high,
    cast(sum(fee_minor & 4294967295) as bigint) as fee_low,
    cast(sum(refunded_minor >> 32) as bigint) as refunded_high,
    cast(sum(refunded_minor & 4294967295) as bigint) as refunded_low
from transactions
where organization_id = $1 and mode = $2 and currency = $3 and created_at >= $4 and id >= $6
group by payment_method, shown_status
order by payment_method, shown_status";

const RECENT: &str = "\
select version, doc
from transactions
where organization_id = $1 and mode = $2 and currency = $3 and created_at >= $4 and id >= $5
order by id desc
limit $6";

#[derive(Debug, Clone, Default)]
pub struct TransactionFilter {
    pub status: Option<TransactionStatus>,
    /// Both ends included, by creation.
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// Newest first.
pub fn list(
    tx: &mut Tx<'_>,
    scope: Scope,
    filter: &TransactionFilter,
    page: &PageRequest,
) -> Result<Page<Transaction>, Error> {
    conditions(scope, filter, tx.now()).entities(tx, page)
}

/// How the database would go about a list, for whoever checks that no index is missing.
pub fn plans(
    tx: &mut Tx<'_>,
    scope: Scope,
    filter: &TransactionFilter,
    page: &PageRequest,
) -> Result<[String; 2], Error> {
    conditions(scope, filter, tx.now()).plans::<Transaction>(tx, page)
}

fn conditions(scope: Scope, filter: &TransactionFilter, now: Timestamp) -> Filter {
    let mut conditions = Filter::within(scope);
    // The clock decides what is expired, whether or not the timer ran.
    match filter.status {
        Some(TransactionStatus::Pending) => {
            let pending = "status = 'pending' and (expires_at is null or expires_at > {})";
            conditions.ends_by_clock(pending, "expires_at", now);
        }
        Some(TransactionStatus::Expired) => {
            let expired = "status in ('pending', 'expired') and (status = 'expired' or expires_at <= {})";
            conditions.begins_by_clock(expired, now);
        }
        Some(
            status @ (TransactionStatus::Processing
            | TransactionStatus::Completed
            | TransactionStatus::Failed
            | TransactionStatus::Cancelled
            | TransactionStatus::PartiallyRefunded
            | TransactionStatus::Refunded),
        ) => conditions.and("status = {}", [status.as_str().into()]),
        None => {}
    }
    conditions.made_between::<Transaction>(filter.from, filter.until);
    conditions
}

/// Unknown ones, or money that came twice, oldest first, behind the id `after`.
pub fn for_attention(
    tx: &mut Tx<'_>,
    scope: Scope,
    attention: i64,
    after: &str,
    limit: i64,
) -> Result<Vec<Transaction>, Error> {
    let [organization, mode, _] = key(scope, "");
    tx.query(FOR_ATTENTION, &[organization, mode, attention.into(), after.into(), limit.into()])?
        .iter()
        .map(parse)
        .collect()
}

/// Of which a person has to say what became of them: lost, parked (whatever the rail said since), or with a rail that has been silent since `before`.
pub fn undecided(
    tx: &mut Tx<'_>,
    scope: Scope,
    before: Timestamp,
    after: &str,
    limit: i64,
) -> Result<Vec<Transaction>, Error> {
    let [organization, mode, _] = key(scope, "");
    let values = [organization, mode, NEEDS_A_PERSON.into(), before.micros().into(), after.into(), limit.into()];
    tx.query(UNDECIDED, &values)?.iter().map(parse).collect()
}

/// The oldest first; of very many, the newest, and of the others those by which money came or may still come.
pub fn of_object(tx: &mut Tx<'_>, scope: Scope, object_id: &str) -> Result<Vec<Transaction>, Error> {
    let newest = tx.query(OF_OBJECT, &key(scope, object_id))?;
    let mut found: Vec<Transaction> = newest.iter().map(parse).collect::<Result<_, _>>()?;
    if let Some(oldest) = found.last().filter(|_| found.len() == MOST_OF_OBJECT) {
        let [organization, mode, object] = key(scope, object_id);
        let values = [organization, mode, object, oldest.id.to_string().into()];
        for row in &tx.query(OPEN_OR_PAID_OF_OBJECT, &values)? {
            found.push(parse(row)?);
        }
    }
    found.reverse();
    Ok(found)
}

/// Those of which something went back, however many failed beside them.
pub fn paid_back_of_object(tx: &mut Tx<'_>, scope: Scope, object_id: &str) -> Result<Vec<Transaction>, Error> {
    tx.query(PAID_BACK_OF_OBJECT, &key(scope, object_id))?.iter().rev().map(parse).collect()
}

/// Those that went to a rail and were made after `since`.
pub fn attempts_since(tx: &mut Tx<'_>, scope: Scope, object_id: &str, since: Timestamp) -> Result<i64, Error> {
    let [organization, mode, object] = key(scope, object_id);
    let values = [organization, mode, object, since.micros().into(), first_id(since).into()];
    tx.query_one(ATTEMPTS_SINCE, &values)?.get("attempts")
}

/// What is made from then on has no smaller one: an index by ids leads to it.
fn first_id(since: Timestamp) -> String {
    Id::<Transaction>::new(since, [0; 10]).to_string()
}

/// Those that went to a rail.
pub fn attempts_of_object(tx: &mut Tx<'_>, scope: Scope, object_id: &str) -> Result<i64, Error> {
    tx.query_one(ATTEMPTS_OF_OBJECT, &key(scope, object_id))?.get("attempts")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    pub payment_method: String,
    pub status: String,
    pub transactions: i64,
    pub amount_minor: i128,
    pub fee_minor: i128,
    pub refunded_minor: i128,
}

/// By method and status, since a moment.
pub fn totals(tx: &mut Tx<'_>, scope: Scope, currency: Currency, since: Timestamp) -> Result<Vec<Totals>, Error> {
    let [organization, mode, _] = key(scope, "");
    let now = tx.now().micros();
    let since_id = first_id(since).into();
    let values = [organization, mode, currency.code().into(), since.micros().into(), now.into(), since_id];
    let rows = tx.query(TOTALS, &values)?;
    rows.iter()
        .map(|row| {
            Ok(Totals {
                payment_method: row.get("payment_method")?,
                status: row.get("shown_status")?,
                transactions: row.get("transactions")?,
                amount_minor: sum_of(row, "amount_high", "amount_low")?,
                fee_minor: sum_of(row, "fee_high", "fee_low")?,
                refunded_minor: sum_of(row, "refunded_high", "refunded_low")?,
            })
        })
        .collect()
}

/// Newest first.
pub fn recent(
    tx: &mut Tx<'_>,
    scope: Scope,
    currency: Currency,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Transaction>, Error> {
    let [organization, mode, _] = key(scope, "");
    let values =
        [organization, mode, currency.code().into(), since.micros().into(), first_id(since).into(), limit.into()];
    tx.query(RECENT, &values)?.iter().map(parse).collect()
}
