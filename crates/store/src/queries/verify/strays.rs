//! Rows that belong to nothing: to no organization, no event, no transaction, no refund, no customer.
//!
//! A look goes through one table, by a key that an index holds and a page at a time. Where the key that a page ends with can't be asked
//! for, because it is damaged, the look ends with that.

use super::{KEYS, MOST_STRAYS, is_behind, last_key, shown};
use crate::error::Error;
use crate::queries::explained;
use crate::settings::Dialect;
use crate::sql::Value;
use crate::tx::Tx;

/// A row that belongs to nothing.
#[derive(Debug)]
pub struct Stray {
    pub table: &'static str,
    pub row: String,
    pub what: &'static str,
}

/// How far a look has come.
#[derive(Debug, Clone, Default)]
pub struct Place {
    behind: Option<Vec<Value>>,
    found: usize,
    pub is_end: bool,
}

/// Tables whose rows live in a scope, with the column that names a row best, and the one in whose order an index has the rows of
/// a scope.
const SCOPED: &[(&str, &str, &str)] = &[
    ("api_keys", "id", "id"),
    ("customers", "id", "id"),
    ("products", "id", "id"),
    ("checkouts", "id", "id"),
    ("payment_links", "id", "id"),
    ("payment_sessions", "id", "id"),
    ("transactions", "id", "id"),
    ("refunds", "id", "id"),
    ("balance_guards", "currency", "currency"),
    ("invoices", "id", "id"),
    ("invoice_payments", "id", "id"),
    ("receipts", "id", "id"),
    ("counters", "series", "series"),
    ("ledger_postings", "entry_id", "entry_id"),
    ("ledger_unsealed", "entry_id", "entry_id"),
    ("ledger_log", "entry_id", "entry_id"),
    ("ledger_batches", "statement", "batch_no"),
    ("events", "id", "id"),
    ("events_unlogged", "id", "id"),
    ("event_log", "event_id", "event_id"),
    ("webhook_endpoints", "id", "id"),
    ("webhook_deliveries", "event_id", "event_id"),
    ("simulated_payments", "transaction_id", "transaction_id"),
    ("mails", "id", "id"),
    ("simulated_refunds", "refund_id", "refund_id"),
];

const SCOPE: &[&str] = &["organization_id", "mode"];
const OF_NO_SCOPE: &str = "it belongs to no organization and mode";

/// The scopes that a page has rows of: of how many, and whether each is known. The next page begins behind the last of these scopes:
/// the rest of its rows, however many, are passed over.
const SCOPES: &str = "\
select page.organization_id, page.mode, count(*) as seen, count(organizations.mode) as known
from (
    select organization_id, mode
    from {table}
    where {begin}
    order by organization_id, mode
    limit $1) as page
left join organizations
    on organizations.organization_id = page.organization_id
    and organizations.mode = page.mode
group by page.organization_id, page.mode
order by page.organization_id, page.mode";

/// Rows of a table that name what they belong to.
struct Belonging {
    table: &'static str,
    what: &'static str,
    key: &'static [&'static str],
    /// A page of them. A row has the key, what names it best, and null where there is not what it belongs to.
    sql: &'static str,
    /// Where the table has that key, unless it has it everywhere.
    only_on: Option<Dialect>,
}

/// The last three are of tables whose rows live in a scope and are not kept in its order.
const BELONGING: &[Belonging] = &[
    Belonging {
        table: "events_unlogged",
        what: "there is no such event",
        key: &["organization_id", "mode", "id"],
        sql: UNLOGGED,
        only_on: None,
    },
    Belonging {
        table: "event_log",
        what: "there is no such event",
        key: &["organization_id", "mode", "log_no"],
        sql: LOGGED,
        only_on: None,
    },
    Belonging {
        table: "webhook_deliveries",
        what: "there is no such event",
        key: &["organization_id", "mode", "event_id", "endpoint_id"],
        sql: DELIVERED,
        only_on: None,
    },
    Belonging {
        table: "simulated_payments",
        what: "there is no such transaction",
        key: &["organization_id", "mode", "transaction_id"],
        sql: SIMULATED,
        only_on: None,
    },
    Belonging {
        table: "simulated_refunds",
        what: "there is no such refund",
        key: &["organization_id", "mode", "refund_id"],
        sql: SIMULATED_REFUNDS,
        only_on: None,
    },
    Belonging {
        table: "checkouts",
        what: "there is no such customer",
        key: &["organization_id", "mode", "customer_id", "id"],
        sql: FOR_CUSTOMERS,
        only_on: None,
    },
    Belonging { table: "jobs", what: OF_NO_SCOPE, key: &["kind", "object_id"], sql: OWED, only_on: None },
    Belonging {
        table: "idempotency_keys",
        what: OF_NO_SCOPE,
        key: &["organization_id", "mode", "space", "idempotency_key"],
        sql: KEPT,
        only_on: Some(Dialect::Postgres),
    },
    Belonging {
        table: "idempotency_keys",
        what: OF_NO_SCOPE,
        key: &["sequence"],
        sql: KEPT_AS_THEY_CAME,
        only_on: Some(Dialect::Sqlite),
    },
];

const UNLOGGED: &str = "\
select page.organization_id, page.mode, page.id, page.id as name, events.id as found
from (
    select organization_id, mode, id
    from events_unlogged
    where {begin}
    order by organization_id, mode, id
    limit $1) as page
left join events
    on events.organization_id = page.organization_id
    and events.mode = page.mode
    and events.id = page.id
order by page.organization_id, page.mode, page.id";

const LOGGED: &str = "\
select page.organization_id, page.mode, page.log_no, page.event_id as name, events.id as found
from (
    select organization_id, mode, log_no, event_id
    from event_log
    where {begin}
    order by organization_id, mode, log_no
    limit $1) as page
left join events
    on events.organization_id = page.organization_id
    and events.mode = page.mode
    and events.id = page.event_id
order by page.organization_id, page.mode, page.log_no";

const DELIVERED: &str = "\
select page.organization_id, page.mode, page.event_id, page.endpoint_id, page.event_id as name, events.id as found
from (
    select organization_id, mode, event_id, endpoint_id, object_id, sequence
    from webhook_deliveries
    where {begin}
    order by organization_id, mode, event_id, endpoint_id
    limit $1) as page
left join events
    on events.organization_id = page.organization_id
    and events.mode = page.mode
    and events.id = page.event_id
    and events.object_id = page.object_id
    and events.sequence = page.sequence
order by page.organization_id, page.mode, page.event_id, page.endpoint_id";

const SIMULATED: &str = "\
select page.organization_id, page.mode, page.transaction_id, page.transaction_id as name, transactions.id as found
from (
    select organization_id, mode, transaction_id
    from simulated_payments
    where {begin}
    order by organization_id, mode, transaction_id
    limit $1) as page
left join transactions
    on transactions.organization_id = page.organization_id
    and transactions.mode = page.mode
    and transactions.id = page.transaction_id
order by page.organization_id, page.mode, page.transaction_id";

const SIMULATED_REFUNDS: &str = "\
select page.organization_id, page.mode, page.refund_id, page.refund_id as name, refunds.id as found
from (
    select organization_id, mode, refund_id
    from simulated_refunds
    where {begin}
    order by organization_id, mode, refund_id
    limit $1) as page
left join refunds
    on refunds.organization_id = page.organization_id
    and refunds.mode = page.mode
    and refunds.id = page.refund_id
order by page.organization_id, page.mode, page.refund_id";

/// A deleted customer is still there.
const FOR_CUSTOMERS: &str = "\
select page.organization_id, page.mode, page.customer_id, page.id, page.id as name, customers.id as found
from (
    select organization_id, mode, customer_id, id
    from checkouts
    where customer_id is not null and {begin}
    order by organization_id, mode, customer_id, id
    limit $1) as page
left join customers
    on customers.organization_id = page.organization_id
    and customers.mode = page.mode
    and customers.id = page.customer_id
order by page.organization_id, page.mode, page.customer_id, page.id";

const OWED: &str = "\
select page.kind, page.object_id, page.object_id as name, organizations.mode as found
from (
    select kind, object_id, organization_id, mode
    from jobs
    where {begin}
    order by kind, object_id
    limit $1) as page
left join organizations
    on organizations.organization_id = page.organization_id
    and organizations.mode = page.mode
order by page.kind, page.object_id";

const KEPT: &str = "\
select page.organization_id, page.mode, page.space, page.idempotency_key, page.idempotency_key as name,
    organizations.mode as found
from (
    select organization_id, mode, space, idempotency_key
    from idempotency_keys
    where {begin}
    order by organization_id, mode, space, idempotency_key
    limit $1) as page
left join organizations
    on organizations.organization_id = page.organization_id
    and organizations.mode = page.mode
order by page.organization_id, page.mode, page.space, page.idempotency_key";

const KEPT_AS_THEY_CAME: &str = "\
select page.sequence, page.idempotency_key as name, organizations.mode as found
from (
    select sequence, organization_id, mode, idempotency_key
    from idempotency_keys
    where {begin}
    order by sequence
    limit $1) as page
left join organizations
    on organizations.organization_id = page.organization_id
    and organizations.mode = page.mode
order by page.sequence";

/// So many there are, numbered from 0 on.
pub const LOOKS: usize = SCOPED.len() + BELONGING.len();
/// So many of them, the first, go through a table for the rows of no organization and mode.
pub const SCOPE_LOOKS: usize = SCOPED.len();

/// The table that a look goes through.
#[must_use]
pub fn table(look: usize) -> &'static str {
    SCOPED.get(look).map_or_else(|| belonging(look).table, |(table, ..)| *table)
}

fn belonging(look: usize) -> &'static Belonging {
    &BELONGING[look - SCOPED.len()]
}

/// Whether the table has that key on the other database.
fn is_elsewhere(tx: &Tx<'_>, look: usize) -> bool {
    belonging(look).only_on.is_some_and(|dialect| dialect != tx.dialect())
}

/// The strays of the next page of a look. Of each look a hundred are told at most.
pub fn find(tx: &mut Tx<'_>, look: usize, place: &mut Place) -> Result<Vec<Stray>, Error> {
    let (mut rows, what) = match SCOPED.get(look) {
        Some(_) => (of_no_scope(tx, look, place)?, OF_NO_SCOPE),
        None => (of_nothing(tx, look, place)?, belonging(look).what),
    };
    rows.truncate(MOST_STRAYS - place.found);
    place.found += rows.len();
    place.is_end |= place.found == MOST_STRAYS;
    Ok(rows.into_iter().map(|row| Stray { table: table(look), row, what }).collect())
}

fn of_no_scope(tx: &mut Tx<'_>, look: usize, place: &mut Place) -> Result<Vec<String>, Error> {
    let (sql, values) = page(look, place)?;
    let (mut seen, mut strays) = (0, Vec::new());
    for row in tx.query(&sql, &values)? {
        let scope = &row.values()[..SCOPE.len()];
        if row.get::<i64>("known")? == 0 && place.found + strays.len() < MOST_STRAYS {
            strays.extend(rows_of(tx, look, scope)?);
        }
        seen += row.get::<i64>("seen")?;
        place.behind = Some(scope.to_vec());
    }
    place.is_end = seen < KEYS;
    Ok(strays)
}

/// The first rows of a scope that nobody has, which names itself where it can't be asked for.
fn rows_of(tx: &mut Tx<'_>, look: usize, scope: &[Value]) -> Result<Vec<String>, Error> {
    let can_be_asked_for = |value: &Value| matches!(value, Value::Text(text) if !text.contains('\0'));
    if !scope.iter().all(can_be_asked_for) {
        return Ok(vec![scope.iter().map(shown).collect::<Vec<_>>().join(" ")]);
    }
    let (table, name, order) = SCOPED[look];
    let sql = format!(
        "select {name}\nfrom {table}\nwhere organization_id = $1 and mode = $2\norder by {order}\nlimit {MOST_STRAYS}"
    );
    Ok(tx.query(&sql, scope)?.iter().map(|row| shown(&row.values()[0])).collect())
}

fn of_nothing(tx: &mut Tx<'_>, look: usize, place: &mut Place) -> Result<Vec<String>, Error> {
    if is_elsewhere(tx, look) {
        place.is_end = true;
        return Ok(Vec::new());
    }
    let (sql, values) = page(look, place)?;
    let rows = tx.query(&sql, &values)?;
    let (name, found) = (belonging(look).key.len(), belonging(look).key.len() + 1);
    if let Some(last) = rows.last() {
        place.behind = Some(last.values()[..name].to_vec());
    }
    place.is_end = i64::try_from(rows.len()).is_ok_and(|rows| rows < KEYS);
    let strays = rows.iter().filter(|row| row.values()[found] == Value::Null);
    Ok(strays.map(|row| shown(&row.values()[name])).collect())
}

/// The statement of the next page, with its values.
fn page(look: usize, place: &Place) -> Result<(String, Vec<Value>), Error> {
    let (sql, key) = match SCOPED.get(look) {
        Some((table, ..)) => (SCOPES.replace("{table}", table), SCOPE),
        None => (belonging(look).sql.to_owned(), belonging(look).key),
    };
    let mut values = vec![Value::from(KEYS)];
    let begin = match &place.behind {
        // With the first row, whatever its key is.
        None => "1 = 1".to_owned(),
        Some(behind) => {
            values.extend(last_key(table(look), behind)?);
            is_behind(key, 2)
        }
    };
    Ok((sql.replace("{begin}", &begin), values))
}

/// How the database would go about a page that is not the first, if that look is one of this database's: its plan, for whoever checks
/// that no look reads a whole table.
pub fn plan(tx: &mut Tx<'_>, look: usize) -> Result<Option<String>, Error> {
    let key = match SCOPED.get(look) {
        Some(_) => SCOPE,
        None if is_elsewhere(tx, look) => return Ok(None),
        None => belonging(look).key,
    };
    let first = |column: &&str| if matches!(*column, "log_no" | "sequence") { 0.into() } else { "".into() };
    let behind = Some(key.iter().map(first).collect());
    let (sql, values) = page(look, &Place { behind, ..Place::default() })?;
    explained(tx, &sql, &values).map(Some)
}
