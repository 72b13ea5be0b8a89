//! Reading for `dalasi verify`: pages of everything, as it is, whatever somebody made of it.
//!
//! A row that does not parse is a finding here and not an error. Nothing is judged but whether a row agrees with its own
//! document; what rows mean together is the caller's. Every page is bounded, so memory is too.

use std::collections::BTreeSet;

use domain::Scope;

use super::{MOST_PAGE_BYTES, explained, listed};
use crate::checksum;
use crate::entity::{Entity, key, values};
use crate::error::Error;
use crate::settings::Dialect;
use crate::sql::{FromValue, Part, Row, Value};
use crate::sqlite::key_index;
use crate::tx::Tx;

/// Rows of a page at most, and ids of a look-up.
pub const PAGE: usize = 200;
/// Further rows of the same kind tell nothing new.
const MOST_STRAYS: i64 = 100;

/// A row with a document.
#[derive(Debug)]
pub struct Stored<E> {
    pub id: String,
    /// Or why it can't be read.
    pub entity: Result<E, String>,
    /// Columns that say something else than the document.
    pub differing: Vec<String>,
}

/// Lifts the time limit of the statements that follow.
pub fn take_time(tx: &mut Tx<'_>) {
    tx.unhurried();
}

/// The documents of one kind behind the id `after`, in the database's order, and whether there may be more.
pub fn documents<E: Entity>(tx: &mut Tx<'_>, scope: Scope, after: &str) -> Result<(Vec<Stored<E>>, bool), Error> {
    let (columns, id) = (columns::<E>().join(", "), id_column::<E>());
    let sql = format!(
        "select {columns}\nfrom {}\nwhere organization_id = $1 and mode = $2 and {id} > $3\norder by {id}\nlimit {PAGE}",
        E::TABLE
    );
    let page = tx.query_part(&sql, &key(scope, after), MOST_PAGE_BYTES)?;
    Ok((page.rows.iter().map(stored).collect(), may_have_more(&page)))
}

fn may_have_more(page: &Part) -> bool {
    page.is_cut || page.rows.len() == PAGE
}

/// The documents with these ids, at most a page.
pub fn documents_with<E: Entity>(tx: &mut Tx<'_>, scope: Scope, ids: &[String]) -> Result<Vec<Stored<E>>, Error> {
    let columns = columns::<E>();
    Ok(rows_with(tx, scope, E::TABLE, &columns, id_column::<E>(), ids)?.iter().map(stored).collect())
}

/// The documents whose column `by` lies behind `span.0` and not behind `span.1`; continues behind `cursor`.
pub fn documents_between<E: Entity>(
    tx: &mut Tx<'_>,
    scope: Scope,
    by: &str,
    span: Span<'_>,
    cursor: &mut Option<Vec<Value>>,
) -> Result<Vec<Stored<E>>, Error> {
    let keys = [by, id_column::<E>()];
    let rows = between(tx, scope, E::TABLE, &columns::<E>(), &keys, span, cursor, &[EMPTY, EMPTY])?;
    Ok(rows.iter().map(stored).collect())
}

/// The same for the first part of a span: about a page, and all of each value of `by` that it has any of. Where the part ends,
/// unless with the span.
pub fn documents_of_part<E: Entity>(
    tx: &mut Tx<'_>,
    scope: Scope,
    by: &str,
    span: Span<'_>,
) -> Result<(Vec<Stored<E>>, Option<String>), Error> {
    let (mut documents, mut end, mut cursor) = (Vec::new(), None::<String>, None);
    loop {
        let part = Span { until: end.as_deref().or(span.until), ..span };
        documents.extend(documents_between::<E>(tx, scope, by, part, &mut cursor)?);
        match cursor.as_deref() {
            None => return Ok((documents, end)),
            Some([Value::Text(value), ..]) => end = Some(value.clone()),
            Some(_) => return Err(Error::Corrupt(format!("a key of {} is no text", E::TABLE))),
        }
    }
}

/// From an id, excluded, to an id, included, or to the end.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    pub after: &'a str,
    pub until: Option<&'a str>,
}

const EMPTY: Start = Start::Text;

/// What comes before every value of a key column.
#[derive(Debug, Clone, Copy)]
enum Start {
    Text,
    Number,
}

impl Start {
    fn value(self) -> Value {
        match self {
            Start::Text => "".into(),
            Start::Number => i64::MIN.into(),
        }
    }
}

#[derive(Debug)]
pub struct PostingRow {
    pub entry_id: String,
    pub line: i64,
    pub transaction_id: String,
    pub account: String,
    pub currency: String,
    pub amount_minor: i64,
    pub created_at: i64,
    pub refund_id: Option<String>,
}

pub fn postings(
    tx: &mut Tx<'_>,
    scope: Scope,
    span: Span<'_>,
    cursor: &mut Option<Vec<Value>>,
) -> Result<Vec<Result<PostingRow, String>>, Error> {
    let columns =
        ["entry_id", "line", "transaction_id", "account", "currency", "amount_minor", "created_at", "refund_id"];
    let keys = ["transaction_id", "entry_id", "line"];
    let starts = [Start::Text, Start::Text, Start::Number];
    let rows = between(tx, scope, "ledger_postings", &columns, &keys, span, cursor, &starts)?;
    let read = |row: &Row| {
        Ok(PostingRow {
            entry_id: row.get("entry_id")?,
            line: row.get("line")?,
            transaction_id: row.get("transaction_id")?,
            account: row.get("account")?,
            currency: row.get("currency")?,
            amount_minor: row.get("amount_minor")?,
            created_at: row.get("created_at")?,
            refund_id: row.get("refund_id")?,
        })
    };
    Ok(rows.iter().map(|row| read(row).map_err(|error: Error| named(row, &["entry_id", "line"], &error))).collect())
}

#[derive(Debug)]
pub struct EventRow {
    pub id: String,
    pub kind: String,
    pub object_id: String,
    pub sequence: i64,
    pub body: String,
    /// What is wrong with the body, by its checksum.
    pub damage: Option<String>,
    pub created_at: i64,
}

pub fn events(
    tx: &mut Tx<'_>,
    scope: Scope,
    span: Span<'_>,
    cursor: &mut Option<Vec<Value>>,
) -> Result<Vec<Result<EventRow, String>>, Error> {
    let columns = ["id", "type", "object_id", "sequence", "body", "body_crc32", "created_at"];
    let keys = ["object_id", "sequence"];
    let rows = between(tx, scope, "events", &columns, &keys, span, cursor, &[Start::Text, Start::Number])?;
    let read = |row: &Row| {
        let body: String = row.get("body")?;
        let checked = checksum::check_beside(&body, row.get("body_crc32")?, format_args!("its body"));
        Ok(EventRow {
            id: row.get("id")?,
            kind: row.get("type")?,
            object_id: row.get("object_id")?,
            sequence: row.get("sequence")?,
            body,
            damage: checked.err().map(|error| error.to_string()),
            created_at: row.get("created_at")?,
        })
    };
    Ok(rows.iter().map(|row| read(row).map_err(|error: Error| named(row, &["id"], &error))).collect())
}

/// Events of objects whose ids begin otherwise.
pub fn events_of_others(tx: &mut Tx<'_>, scope: Scope, prefixes: &[&str]) -> Result<Vec<String>, Error> {
    let others: String = prefixes
        .iter()
        .map(|prefix| format!("and substr(object_id, 1, {}) <> '{prefix}_'\n", prefix.len() + 1))
        .collect();
    let sql = format!(
        "select id\nfrom events\nwhere organization_id = $1 and mode = $2\n{others}order by id\nlimit {MOST_STRAYS}"
    );
    let [organization, mode, _] = key(scope, "");
    first_column(&tx.query(&sql, &[organization, mode])?)
}

/// Which of these events have a place in the log, and which wait for one.
pub fn logged(tx: &mut Tx<'_>, scope: Scope, ids: &[String]) -> Result<(Vec<String>, Vec<String>), Error> {
    let logged = rows_with(tx, scope, "event_log", &["event_id"], "event_id", ids)?;
    let waiting = rows_with(tx, scope, "events_unlogged", &["id"], "id", ids)?;
    Ok((first_column(&logged)?, first_column(&waiting)?))
}

const LOG: &str = "\
select count(*) as places, coalesce(min(log_no), 1) as first, coalesce(max(log_no), 0) as last
from event_log
where organization_id = $1 and mode = $2";

/// How many places the log has, its first and its last number.
pub fn log(tx: &mut Tx<'_>, scope: Scope) -> Result<(i64, i64, i64), Error> {
    let [organization, mode, _] = key(scope, "");
    let row = tx.query_one(LOG, &[organization, mode])?;
    Ok((row.get("places")?, row.get("first")?, row.get("last")?))
}

/// The objects among `ids` for which work of one of `kinds` is owed.
pub fn owed(tx: &mut Tx<'_>, scope: Scope, kinds: &[&str], ids: &[String]) -> Result<Vec<String>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (sql, values) = owed_statement(scope, kinds, ids);
    first_column(&tx.query(&sql, &values)?)
}

/// Each kind is named, because the key begins with it.
fn owed_statement(scope: Scope, kinds: &[&str], ids: &[String]) -> (String, Vec<Value>) {
    let (sql, mut values) = statement_with(scope, "jobs", &["object_id"], "object_id", ids);
    let (listed_kinds, kinds) = listed(values.len() + 1, kinds.iter().map(ToString::to_string));
    values.extend(kinds);
    (format!("{sql}\nand kind in ({listed_kinds})"), values)
}

/// How the database would go about [`owed`]: its plan, for whoever checks that it doesn't read all work that is owed.
pub fn plan_of_owed(tx: &mut Tx<'_>, scope: Scope, kinds: &[&str], ids: &[String]) -> Result<String, Error> {
    let (sql, values) = owed_statement(scope, kinds, ids);
    explained(tx, &sql, &values)
}

#[derive(Debug)]
pub struct IdempotencyRow {
    pub fingerprint: Vec<u8>,
    pub state: String,
    pub status: Option<i64>,
    pub body: Option<String>,
    pub sealed_body: Option<Vec<u8>>,
}

/// A key's space and text.
pub type IdempotencyName = (String, String);

const IDEMPOTENCY: &str = "\
select organization_id, mode, space, idempotency_key, fingerprint, state, status, body, sealed_body
from idempotency_keys
where (organization_id, mode, space, idempotency_key) > ($1, $2, $3, $4)
order by organization_id, mode, space, idempotency_key
limit $5";

const IDEMPOTENCY_AT: &str = "\
select organization_id, mode, space, idempotency_key, fingerprint, state, status, body, sealed_body, sequence
from idempotency_keys
where sequence > $1
order by sequence
limit $2";

/// A key, its row as far as it can be read, and whether a request with it finds that row.
pub type ReadKey = (IdempotencyName, Result<IdempotencyRow, Error>, bool);

/// Where the next page of keys begins.
#[derive(Debug, Clone, Default)]
pub struct KeyPlace {
    behind: Vec<Value>,
    /// The last page was the last one.
    pub is_end: bool,
}

/// Of all organizations: where keys are kept in the order in which they came, nothing finds those of one.
pub fn idempotency_keys(tx: &mut Tx<'_>, place: &mut KeyPlace) -> Result<Vec<ReadKey>, Error> {
    let dialect = tx.dialect();
    let (sql, start): (_, &[Value]) = match dialect {
        Dialect::Sqlite => (IDEMPOTENCY_AT, &[Value::Integer(0)]),
        Dialect::Postgres => (IDEMPOTENCY, &[const { Value::Text(String::new()) }; 4]),
    };
    let mut values = if place.behind.is_empty() { start.to_vec() } else { place.behind.clone() };
    values.push(i64::try_from(PAGE).unwrap_or(i64::MAX).into());
    let page = tx.query_part(sql, &values, MOST_PAGE_BYTES)?;
    place.is_end = !may_have_more(&page);
    let rows = page.rows;
    let unfound = match dialect {
        Dialect::Sqlite => {
            let named = |row: &Row| Ok((row.values()[..4].to_vec(), row.get("sequence")?));
            key_index::unfound(tx, &rows.iter().map(named).collect::<Result<Vec<_>, Error>>()?)?
        }
        Dialect::Postgres => BTreeSet::new(),
    };
    if let Some(last) = rows.last() {
        place.behind = match dialect {
            Dialect::Sqlite => vec![last.get("sequence")?],
            Dialect::Postgres => last.values()[..4].to_vec(),
        };
    }
    let read = |row: &Row| {
        Ok(IdempotencyRow {
            fingerprint: row.get("fingerprint")?,
            state: row.get("state")?,
            status: row.get("status")?,
            body: row.get("body")?,
            sealed_body: row.get("sealed_body")?,
        })
    };
    let is_found = |row: &Row| Ok::<_, Error>(unfound.is_empty() || !unfound.contains(&row.get("sequence")?));
    rows.iter().map(|row| Ok(((row.get("space")?, row.get("idempotency_key")?), read(row), is_found(row)?))).collect()
}

const JOBS: &str = "\
select kind, object_id
from jobs
where (kind, object_id) > ($1, $2)
order by kind, object_id
limit $3";

/// Kind and object of what is owed, behind `after`.
pub fn jobs(tx: &mut Tx<'_>, after: &(String, String)) -> Result<Vec<(String, String)>, Error> {
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let rows = tx.query(JOBS, &[after.0.as_str().into(), after.1.as_str().into(), limit.into()])?;
    rows.iter().map(|row| Ok((row.get("kind")?, row.get("object_id")?))).collect()
}

/// A row that belongs to nothing.
#[derive(Debug)]
pub struct Stray {
    pub table: &'static str,
    pub row: String,
    pub what: &'static str,
}

/// Tables whose rows live in a scope, with the column that names a row best.
const SCOPED: &[(&str, &str)] = &[
    ("api_keys", "id"),
    ("customers", "id"),
    ("products", "id"),
    ("checkouts", "id"),
    ("payment_links", "id"),
    ("payment_sessions", "id"),
    ("transactions", "id"),
    ("refunds", "id"),
    ("balance_guards", "currency"),
    ("invoices", "id"),
    ("invoice_payments", "id"),
    ("receipts", "id"),
    ("counters", "series"),
    ("ledger_postings", "entry_id"),
    ("ledger_unsealed", "entry_id"),
    ("ledger_log", "entry_id"),
    ("ledger_batches", "statement"),
    ("events", "id"),
    ("events_unlogged", "id"),
    ("event_log", "event_id"),
    ("webhook_endpoints", "id"),
    ("webhook_deliveries", "event_id"),
    ("jobs", "object_id"),
    ("idempotency_keys", "idempotency_key"),
    ("simulated_payments", "transaction_id"),
    ("mails", "id"),
    ("simulated_refunds", "refund_id"),
];

/// Tables that point at events, with the columns that have to agree.
const OF_EVENTS: [(&str, &str, &str); 3] = [
    ("events_unlogged", "id", ""),
    ("event_log", "event_id", ""),
    (
        "webhook_deliveries",
        "event_id",
        " and events.object_id = webhook_deliveries.object_id and events.sequence = webhook_deliveries.sequence",
    ),
];

const OF_OBJECTS: [(&str, &str, &str); 4] = [
    (POSTED_FOR_NOBODY, "ledger_postings", "it is of no transaction"),
    (SIMULATED, "simulated_payments", "there is no such transaction"),
    (SIMULATED_REFUNDS, "simulated_refunds", "there is no such refund"),
    (NAMING_NOBODY, "checkouts", "there is no such customer"),
];

/// Whatever begins behind nothing passes these over.
const POSTED_FOR_NOBODY: &str = "\
select ledger_postings.entry_id
from ledger_postings
where ledger_postings.transaction_id = ''
order by ledger_postings.entry_id";

const SIMULATED: &str = "\
select simulated_payments.transaction_id
from simulated_payments
where not exists (
    select 1
    from transactions
    where transactions.organization_id = simulated_payments.organization_id
    and transactions.mode = simulated_payments.mode
    and transactions.id = simulated_payments.transaction_id)
order by simulated_payments.transaction_id";

const SIMULATED_REFUNDS: &str = "\
select simulated_refunds.refund_id
from simulated_refunds
where not exists (
    select 1
    from refunds
    where refunds.organization_id = simulated_refunds.organization_id
    and refunds.mode = simulated_refunds.mode
    and refunds.id = simulated_refunds.refund_id)
order by simulated_refunds.refund_id";

/// A deleted customer is still there.
const NAMING_NOBODY: &str = "\
select checkouts.id
from checkouts
where checkouts.customer_id is not null
and not exists (
    select 1
    from customers
    where customers.organization_id = checkouts.organization_id
    and customers.mode = checkouts.mode
    and customers.id = checkouts.customer_id)
order by checkouts.id";

/// Rows of no organization, of no event, of no transaction, of no refund, of no customer: what one of several looks finds,
/// or nothing where there is no look of that number.
pub fn strays(tx: &mut Tx<'_>, number: usize) -> Result<Option<Vec<Stray>>, Error> {
    let (scoped, events) = (SCOPED.len(), SCOPED.len() + OF_EVENTS.len());
    let found = if let Some((table, id)) = SCOPED.get(number) {
        let sql = format!(
            "select {id}\nfrom {table}\nwhere not exists (\n    select 1\n    from organizations\n    \
             where organizations.organization_id = {table}.organization_id\n    \
             and organizations.mode = {table}.mode)\norder by {id}"
        );
        collect(tx, &sql, table, "it belongs to no organization and mode")
    } else if let Some((table, id, more)) = OF_EVENTS.get(number - scoped) {
        let sql = format!(
            "select {id}\nfrom {table}\nwhere not exists (\n    select 1\n    from events\n    \
             where events.organization_id = {table}.organization_id\n    and events.mode = {table}.mode\n    \
             and events.id = {table}.{id}{more})\norder by {id}"
        );
        collect(tx, &sql, table, "there is no such event")
    } else if let Some((sql, table, what)) = OF_OBJECTS.get(number - events) {
        collect(tx, sql, table, what)
    } else {
        return Ok(None);
    };
    found.map(Some)
}

fn collect(tx: &mut Tx<'_>, sql: &str, table: &'static str, what: &'static str) -> Result<Vec<Stray>, Error> {
    let rows = tx.query(&format!("{sql}\nlimit $1"), &[MOST_STRAYS.into()])?;
    Ok(rows.iter().map(|row| Stray { table, row: shown(&row.values()[0]), what }).collect())
}

/// The columns of a table with documents, as its `insert` names them: the scope, the id, the version, the document, and
/// what is promoted.
fn columns<E: Entity>() -> Vec<&'static str> {
    let list = E::INSERT.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(list, _)| list);
    list.expect("an insert names its columns").split(',').map(str::trim).collect()
}

fn id_column<E: Entity>() -> &'static str {
    columns::<E>()[2]
}

/// A row of [`columns`], against what its document would write today.
fn stored<E: Entity>(row: &Row) -> Stored<E> {
    let found = row.values();
    let id = shown(&found[2]);
    let unreadable = |why: String| Stored { id: id.clone(), entity: Err(why), differing: Vec::new() };
    let Value::Text(document) = &found[4] else {
        return unreadable("its document is no text".into());
    };
    if let Err(error) = checksum::check(document, format_args!("its document")) {
        return unreadable(error.to_string());
    }
    let entity: E = match serde_json::from_str(document) {
        Ok(entity) => entity,
        Err(error) => return unreadable(format!("its document does not parse: {error}")),
    };
    match values(&entity) {
        Err(error) => unreadable(error.to_string()),
        Ok(expected) => {
            let names = columns::<E>();
            let differs = |index: &usize| {
                let (found, expected) = (&found[*index], &expected[*index]);
                *index != 4 && found != expected && !entity.is_of_before(document, names[*index], found)
            };
            let differing = (0..names.len()).filter(differs).map(|index| names[index].to_owned()).collect();
            Stored { id, entity: Ok(entity), differing }
        }
    }
}

fn rows_with(
    tx: &mut Tx<'_>,
    scope: Scope,
    table: &str,
    columns: &[&str],
    id: &str,
    ids: &[String],
) -> Result<Vec<Row>, Error> {
    // Whoever names an id with U+0000 names nothing: it can't be asked for.
    let ids: Vec<String> = ids.iter().filter(|id| !id.contains('\0')).cloned().collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (sql, values) = statement_with(scope, table, columns, id, &ids);
    tx.query(&sql, &values)
}

fn statement_with(scope: Scope, table: &str, columns: &[&str], id: &str, ids: &[String]) -> (String, Vec<Value>) {
    assert!(ids.len() <= PAGE, "a look-up is bounded");
    let [organization, mode, _] = key(scope, "");
    let (listed_ids, ids) = listed(3, ids.iter().cloned());
    let sql = format!(
        "select {}\nfrom {table}\nwhere organization_id = $1 and mode = $2 and {id} in ({listed_ids})",
        columns.join(", ")
    );
    (sql, [vec![organization, mode], ids].concat())
}

/// A page in the order of `keys`, the first of which is bounded by the span. `cursor` is where the last page ended.
#[expect(clippy::too_many_arguments, reason = "one place that writes this statement for three tables")]
fn between(
    tx: &mut Tx<'_>,
    scope: Scope,
    table: &str,
    columns: &[&str],
    keys: &[&str],
    span: Span<'_>,
    cursor: &mut Option<Vec<Value>>,
    starts: &[Start],
) -> Result<Vec<Row>, Error> {
    let [organization, mode, after] = key(scope, span.after);
    let mut values = vec![organization, mode, after];
    values.extend(cursor.take().unwrap_or_else(|| starts.iter().map(|start| start.value()).collect()));
    let placeholders: Vec<String> = (4..keys.len() + 4).map(|number| format!("${number}")).collect();
    let (by, order) = (keys[0], keys.join(", "));
    let mut sql = format!(
        "select {}, {}\nfrom {table}\nwhere organization_id = $1 and mode = $2 and {by} > $3 and ({order}) > ({})",
        columns.join(", "),
        keys.join(", "),
        placeholders.join(", ")
    );
    if let Some(until) = span.until {
        values.push(until.into());
        sql.push_str(&format!(" and {by} <= ${}", values.len()));
    }
    sql.push_str(&format!("\norder by {order}\nlimit {PAGE}"));
    let page = tx.query_part(&sql, &values, MOST_PAGE_BYTES)?;
    if let (true, Some(last)) = (may_have_more(&page), page.rows.last()) {
        let behind = last.values()[columns.len()..].to_vec();
        // Bytes come behind every text: the walk would end there.
        if behind.iter().any(|value| matches!(value, Value::Blob(_))) {
            return Err(Error::Corrupt(format!("a key of {table} is not UTF-8")));
        }
        *cursor = Some(behind);
    }
    Ok(page.rows)
}

fn first_column(rows: &[Row]) -> Result<Vec<String>, Error> {
    rows.iter().map(|row| row.get(0)).collect()
}

fn named(row: &Row, columns: &[&str], error: &Error) -> String {
    let names: Vec<String> =
        columns.iter().filter_map(|column| row.get::<Value>(*column).ok()).map(|value| shown(&value)).collect();
    format!("{}: {error}", names.join(" "))
}

fn shown(value: &Value) -> String {
    String::from_value(value)
        .or_else(|_| i64::from_value(value).map(|number| number.to_string()))
        .unwrap_or_else(|_| "?".into())
}
