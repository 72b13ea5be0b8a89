//! Reading for `dalasi verify`: pages of everything, as it is, whatever somebody made of it.
//!
//! A row that does not parse is a finding here and not an error. Nothing is judged but whether a row agrees with its own
//! document; what rows mean together is the caller's. Every page is bounded, so memory is too; and a page is found by a key
//! that an index holds, so that no statement reads more than its page, however large the table is.

pub mod strays;

use std::collections::BTreeSet;

use domain::Scope;

use super::{MOST_PAGE_BYTES, explained, limit, listed};
use crate::checksum;
use crate::entity::{Entity, key, values};
use crate::error::Error;
use crate::settings::Dialect;
use crate::sql::{FromValue, Part, Row, Value};
use crate::sqlite::key_index;
use crate::tx::Tx;

/// Rows of a page at most, and ids of a look-up.
pub const PAGE: usize = 200;
/// Rows of a page at most of which little but the key is read.
pub const KEYS: i64 = 1000;
/// Further rows of the same kind tell nothing new.
const MOST_STRAYS: usize = 100;

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
    let more = may_have_more(&page);
    if let Some(last) = page.rows.last().filter(|_| more) {
        // The next page would begin elsewhere.
        last_key(E::TABLE, &last.values()[2..3])?;
    }
    Ok((page.rows.iter().map(stored).collect(), more))
}

pub(super) fn may_have_more(page: &Part) -> bool {
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
    let rows = between(tx, scope, E::TABLE, &columns::<E>(), &keys, span, cursor)?;
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
    let rows = between(tx, scope, "ledger_postings", &columns, &keys, span, cursor)?;
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

const POSTED_FOR_NOBODY: &str = "\
select entry_id
from ledger_postings
where organization_id = $1 and mode = $2 and transaction_id = ''
order by entry_id
limit $3";

/// Entries of no transaction: whatever begins behind nothing passes them over.
pub fn posted_for_nobody(tx: &mut Tx<'_>, scope: Scope) -> Result<Vec<String>, Error> {
    let [organization, mode, _] = key(scope, "");
    let limit = i64::try_from(MOST_STRAYS).unwrap_or(i64::MAX);
    let rows = tx.query(POSTED_FOR_NOBODY, &[organization, mode, limit.into()])?;
    Ok(rows.iter().map(|row| shown(&row.values()[0])).collect())
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

const EVENT_COLUMNS: [&str; 7] = ["id", "type", "object_id", "sequence", "body", "body_crc32", "created_at"];
const EVENT_KEYS: [&str; 2] = ["object_id", "sequence"];

pub fn events(
    tx: &mut Tx<'_>,
    scope: Scope,
    span: Span<'_>,
    cursor: &mut Option<Vec<Value>>,
) -> Result<Vec<Result<EventRow, String>>, Error> {
    let rows = between(tx, scope, "events", &EVENT_COLUMNS, &EVENT_KEYS, span, cursor)?;
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

/// How the database would go about a page of [`events`] that is not the first: its plan, for whoever checks that it doesn't begin
/// with the first once more.
pub fn plan_of_events(tx: &mut Tx<'_>, scope: Scope, span: Span<'_>, behind: (&str, i64)) -> Result<String, Error> {
    let behind = vec![behind.0.into(), behind.1.into()];
    let (sql, values) = page_between(scope, "events", &EVENT_COLUMNS, &EVENT_KEYS, span, Some(behind));
    explained(tx, &sql, &values)
}

/// Events of objects whose ids lie behind `after`, where there is such a bound, and not behind `until`, where there is one.
pub fn events_within(
    tx: &mut Tx<'_>,
    scope: Scope,
    after: Option<&str>,
    until: Option<&str>,
) -> Result<Vec<String>, Error> {
    let [organization, mode, _] = key(scope, "");
    let (mut values, mut bounds) = (vec![organization, mode], String::new());
    for (than, bound) in [(">", after), ("<=", until)] {
        if let Some(bound) = bound {
            values.push(bound.into());
            bounds.push_str(&format!("and object_id {than} ${}\n", values.len()));
        }
    }
    let sql = format!(
        "select id\nfrom events\nwhere organization_id = $1 and mode = $2\n{bounds}order by object_id, sequence\n\
         limit {MOST_STRAYS}"
    );
    first_column(&tx.query(&sql, &values)?)
}

/// Which of these events have a place in the log, and which wait for one.
pub fn logged(tx: &mut Tx<'_>, scope: Scope, ids: &[String]) -> Result<(Vec<String>, Vec<String>), Error> {
    let logged = rows_with(tx, scope, "event_log", &["event_id"], "event_id", ids)?;
    let waiting = rows_with(tx, scope, "events_unlogged", &["id"], "id", ids)?;
    Ok((first_column(&logged)?, first_column(&waiting)?))
}

const PLACES: &str = "\
select count(*) as places, min(log_no) as first, max(log_no) as last
from (
    select log_no
    from {log}
    where organization_id = $1 and mode = $2 and log_no >= $3
    order by log_no
    limit $4) as page";

/// Some of a log: how many, and the first and the last number of them, if there are any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    pub count: i64,
    pub first: Option<i64>,
    pub last: Option<i64>,
}

/// The places of a log from the number `from` on: a page of [`KEYS`], or less where there are no more.
pub fn places(tx: &mut Tx<'_>, scope: Scope, log: &str, from: i64) -> Result<Places, Error> {
    let [organization, mode, _] = key(scope, "");
    let row = tx.query_one(&PLACES.replace("{log}", log), &[organization, mode, from.into(), KEYS.into()])?;
    Ok(Places { count: row.get("places")?, first: row.get("first")?, last: row.get("last")? })
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
    values.push(limit(PAGE));
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
    let rows = tx.query(JOBS, &[after.0.as_str().into(), after.1.as_str().into(), limit(PAGE)])?;
    rows.iter().map(|row| Ok((row.get("kind")?, row.get("object_id")?))).collect()
}

/// The columns of a table with documents, as its `insert` names them: the scope, the id, the version, the document, and
/// what is promoted.
pub(super) fn columns<E: Entity>() -> Vec<&'static str> {
    let list = E::INSERT.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(list, _)| list);
    list.expect("an insert names its columns").split(',').map(str::trim).collect()
}

fn id_column<E: Entity>() -> &'static str {
    columns::<E>()[2]
}

/// A row of [`columns`], against what its document would write today.
pub(super) fn stored<E: Entity>(row: &Row) -> Stored<E> {
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
fn between(
    tx: &mut Tx<'_>,
    scope: Scope,
    table: &str,
    columns: &[&str],
    keys: &[&str],
    span: Span<'_>,
    cursor: &mut Option<Vec<Value>>,
) -> Result<Vec<Row>, Error> {
    let (sql, values) = page_between(scope, table, columns, keys, span, cursor.take());
    let page = tx.query_part(&sql, &values, MOST_PAGE_BYTES)?;
    if let (true, Some(last)) = (may_have_more(&page), page.rows.last()) {
        *cursor = Some(last_key(table, &last.values()[columns.len()..])?);
    }
    Ok(page.rows)
}

/// It begins with the span, or behind the cursor, which lies in it. Of both bounds SQLite would go by the first, and read all that lies
/// before the page once more for each.
fn page_between(
    scope: Scope,
    table: &str,
    columns: &[&str],
    keys: &[&str],
    span: Span<'_>,
    cursor: Option<Vec<Value>>,
) -> (String, Vec<Value>) {
    let [organization, mode, after] = key(scope, span.after);
    let (by, order) = (keys[0], keys.join(", "));
    let mut values = vec![organization, mode];
    let begin = match cursor {
        None => {
            values.push(after);
            format!("{by} > $3")
        }
        Some(behind) => {
            values.extend(behind);
            is_behind(keys, 3)
        }
    };
    let mut sql = format!(
        "select {}, {order}\nfrom {table}\nwhere organization_id = $1 and mode = $2 and {begin}",
        columns.join(", ")
    );
    if let Some(until) = span.until {
        values.push(until.into());
        sql.push_str(&format!(" and {by} <= ${}", values.len()));
    }
    sql.push_str(&format!("\norder by {order}\nlimit {PAGE}"));
    (sql, values)
}

/// That a row comes behind a key, the values of which are given from this placeholder on.
fn is_behind(keys: &[&str], first: usize) -> String {
    let placeholders: Vec<String> = (first..first + keys.len()).map(|number| format!("${number}")).collect();
    format!("({}) > ({})", keys.join(", "), placeholders.join(", "))
}

/// The key behind which a walk goes on.
pub(super) fn last_key(table: &str, key: &[Value]) -> Result<Vec<Value>, Error> {
    // Bytes come behind every text: the walk would end there.
    if key.iter().any(|value| matches!(value, Value::Blob(_))) {
        return Err(Error::Corrupt(format!("a key of {table} is not UTF-8")));
    }
    Ok(key.to_vec())
}

fn first_column(rows: &[Row]) -> Result<Vec<String>, Error> {
    rows.iter().map(|row| row.get(0)).collect()
}

fn named(row: &Row, columns: &[&str], error: &Error) -> String {
    let names: Vec<String> =
        columns.iter().filter_map(|column| row.get::<Value>(*column).ok()).map(|value| shown(&value)).collect();
    format!("{}: {error}", names.join(" "))
}

pub(super) fn shown(value: &Value) -> String {
    String::from_value(value)
        .or_else(|_| i64::from_value(value).map(|number| number.to_string()))
        .unwrap_or_else(|_| "?".into())
}
