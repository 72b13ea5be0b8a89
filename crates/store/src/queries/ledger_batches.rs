//! The sealed part of the ledger: places in the log, and the signed batches over them.

use domain::ledger::Entry;
use domain::{Currency, Scope, Timestamp};

use super::{Filter, Page, PageRequest, explained, oldest_of_scopes, scope_of, sum_of};
use crate::entity::key;
use crate::error::Error;
use crate::sql::{Row, Value};
use crate::tx::Tx;

/// The oldest of the next scope in which any waits.
const NEXT_WAITING: &str = "\
select organization_id, mode, entry_id as id
from ledger_unsealed
where (organization_id, mode) > ($1, $2)
order by organization_id, mode, entry_id
limit 1";

const WAITING: &str = "\
select waiting.entry_id as entry_id, ledger_postings.line as line, 0 as log_no, ledger_postings.transaction_id as transaction_id,
    ledger_postings.account as account, ledger_postings.currency as currency,
    ledger_postings.amount_minor as amount_minor, ledger_postings.created_at as created_at
from (
    select organization_id, mode, entry_id
    from ledger_unsealed
    where organization_id = $1 and mode = $2
    order by entry_id
    limit $3) as waiting
join ledger_postings
    on ledger_postings.organization_id = waiting.organization_id
    and ledger_postings.mode = waiting.mode
    and ledger_postings.entry_id = waiting.entry_id
order by waiting.entry_id, ledger_postings.line";

const SEALED: &str = "\
select ledger_log.entry_id as entry_id, ledger_postings.line as line, ledger_log.log_no as log_no,
    ledger_postings.transaction_id as transaction_id, ledger_postings.account as account,
    ledger_postings.currency as currency, ledger_postings.amount_minor as amount_minor,
    ledger_postings.created_at as created_at
from ledger_log
join ledger_postings
    on ledger_postings.organization_id = ledger_log.organization_id
    and ledger_postings.mode = ledger_log.mode
    and ledger_postings.entry_id = ledger_log.entry_id
where ledger_log.organization_id = $1 and ledger_log.mode = $2 and ledger_log.log_no between $3 and $4
order by ledger_log.log_no, ledger_postings.line";

const ENTRY: &str = "\
select ledger_postings.entry_id as entry_id, ledger_postings.line as line, coalesce(ledger_log.log_no, 0) as log_no,
    ledger_postings.transaction_id as transaction_id, ledger_postings.account as account,
    ledger_postings.currency as currency, ledger_postings.amount_minor as amount_minor,
    ledger_postings.created_at as created_at
from ledger_postings
left join ledger_log
    on ledger_log.organization_id = ledger_postings.organization_id
    and ledger_log.mode = ledger_postings.mode
    and ledger_log.entry_id = ledger_postings.entry_id
where ledger_postings.organization_id = $1 and ledger_postings.mode = $2 and ledger_postings.entry_id = $3
order by ledger_postings.line";

/// Each entry has a first line.
const ENTRIES: &str = "\
(select organization_id, mode, entry_id as id, transaction_id, created_at
from ledger_postings
where line = 1) as entries";

const INSERT_LOGGED: &str = "\
insert into ledger_log (organization_id, mode, log_no, entry_id)
values ($1, $2, $3, $4)";

const DELETE_UNSEALED: &str = "\
delete from ledger_unsealed
where organization_id = $1 and mode = $2 and entry_id = $3";

const INSERT_BATCH: &str = "\
insert into ledger_batches (organization_id, mode, batch_no, first_log_no, last_log_no, statement, signature, public_key)
values ($1, $2, $3, $4, $5, $6, $7, $8)";

const LAST_BATCH: &str = "\
select batch_no, first_log_no, last_log_no, statement, signature, public_key
from ledger_batches
where organization_id = $1 and mode = $2
order by batch_no desc
limit 1";

const BATCHES: &str = "\
select batch_no, first_log_no, last_log_no, statement, signature, public_key
from ledger_batches
where organization_id = $1 and mode = $2 and batch_no >= $3
order by batch_no
limit $4";

const BATCH_OF: &str = "\
select batch_no, first_log_no, last_log_no, statement, signature, public_key
from ledger_batches
where organization_id = $1 and mode = $2 and last_log_no >= $3
order by last_log_no
limit 1";

const PUBLIC_KEYS: &str = "\
select public_key
from ledger_batches
where organization_id = $1 and mode = $2
group by public_key
order by min(batch_no)";

/// A cross join, because SQLite takes its tables in the order in which they stand: few wait, and all postings are many.
const UNSEALED_TOTALS: &str = "\
select ledger_postings.account as account, ledger_postings.currency as currency,
    cast(sum(case when amount_minor > 0 then amount_minor >> 32 else 0 end) as bigint) as debits_high,
    cast(sum(case when amount_minor > 0 then amount_minor & 4294967295 else 0 end) as bigint) as debits_low,
    cast(sum(case when amount_minor < 0 then amount_minor >> 32 else 0 end) as bigint) as credits_high,
    cast(sum(case when amount_minor < 0 then amount_minor & 4294967295 else 0 end) as bigint) as credits_low
from ledger_unsealed
cross join ledger_postings
where ledger_unsealed.organization_id = $1 and ledger_unsealed.mode = $2
    and ledger_postings.organization_id = ledger_unsealed.organization_id
    and ledger_postings.mode = ledger_unsealed.mode
    and ledger_postings.entry_id = ledger_unsealed.entry_id
group by ledger_postings.account, ledger_postings.currency
order by ledger_postings.currency, ledger_postings.account";

const COUNT_UNSEALED: &str = "\
select count(*) as entries
from ledger_unsealed
where organization_id = $1 and mode = $2";

const PLACES_OF_TRANSACTION: &str = "\
select ledger_postings.entry_id as entry_id, ledger_log.log_no as log_no
from ledger_postings
left join ledger_log
    on ledger_log.organization_id = ledger_postings.organization_id
    and ledger_log.mode = ledger_postings.mode
    and ledger_log.entry_id = ledger_postings.entry_id
where ledger_postings.organization_id = $1 and ledger_postings.mode = $2 and ledger_postings.transaction_id = $3
    and ledger_postings.line = 1 and ledger_postings.entry_id > $4
order by ledger_postings.entry_id
limit $5";

const PLACED: &str = "\
select page.entry_id as entry_id, coalesce(ledger_log.entry_id, ledger_unsealed.entry_id, '') as placed
from (
    select organization_id, mode, entry_id
    from ledger_postings
    where organization_id = $1 and mode = $2 and line = 1 and entry_id > $3
    order by entry_id
    limit $4) as page
left join ledger_log
    on ledger_log.organization_id = page.organization_id
    and ledger_log.mode = page.mode
    and ledger_log.entry_id = page.entry_id
left join ledger_unsealed
    on ledger_unsealed.organization_id = page.organization_id
    and ledger_unsealed.mode = page.mode
    and ledger_unsealed.entry_id = page.entry_id
order by page.entry_id";

/// Entries of a page that are looked for in the log, or that wait.
const PAGE: i64 = 200;
/// Of a page of places.
const PLACES: usize = 1000;

/// With what each waits for: to be put into the log, where it must not be yet, with its postings.
const WAITING_FOR: &str = "\
select page.entry_id as entry_id, ledger_log.entry_id as logged, ledger_postings.entry_id as posted
from (
    select organization_id, mode, entry_id
    from ledger_unsealed
    where organization_id = $1 and mode = $2 and {begin}
    order by entry_id
    limit $4) as page
left join ledger_log
    on ledger_log.organization_id = page.organization_id
    and ledger_log.mode = page.mode
    and ledger_log.entry_id = page.entry_id
left join ledger_postings
    on ledger_postings.organization_id = page.organization_id
    and ledger_postings.mode = page.mode
    and ledger_postings.entry_id = page.entry_id
    and ledger_postings.line = 1
order by page.entry_id";

#[derive(Debug, Clone, Default)]
pub struct EntryFilter {
    pub transaction_id: Option<String>,
    /// Both ends included.
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// An entry with its postings: (account, minor units), debits positive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRow {
    pub id: String,
    /// 0 while it has no place.
    pub log_no: i64,
    pub transaction_id: String,
    pub currency: Currency,
    pub created_at: Timestamp,
    pub postings: Vec<(String, i64)>,
}

/// A posting that can't be what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    pub row: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRow {
    pub batch_no: i64,
    pub first_log_no: i64,
    pub last_log_no: i64,
    pub statement: String,
    pub signature: String,
    /// In base64url.
    pub public_key: String,
}

/// A page of the entries that wait for a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitingPage {
    pub count: usize,
    /// Those that can't be sealed, because they have no postings or are in a batch: that can't be.
    pub for_nothing: Vec<String>,
    /// The last of the page, unless there are no more behind it.
    pub last: Option<String>,
}

/// An account's postings that no batch holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsealedTotals {
    pub account: String,
    pub currency: String,
    pub debits_minor: i128,
    pub credits_minor: i128,
}

/// Newest first, sealed or not.
pub fn entries(
    tx: &mut Tx<'_>,
    scope: Scope,
    filter: &EntryFilter,
    request: &PageRequest,
) -> Result<Page<EntryRow>, Error> {
    let page = conditions(scope, filter).page(tx, ENTRIES, "id", request)?;
    let Page { items, total, total_is_capped, limit, has_more } = page;
    let mut found = Vec::with_capacity(items.len());
    for row in &items {
        let id: String = row.get("id")?;
        found.extend(readable(read_entries(&tx.query(ENTRY, &key(scope, &id))?))?);
    }
    Ok(Page { items: found, total, total_is_capped, limit, has_more })
}

fn conditions(scope: Scope, filter: &EntryFilter) -> Filter {
    let mut conditions = Filter::within(scope);
    if let Some(transaction_id) = &filter.transaction_id {
        conditions.and("transaction_id = {}", [transaction_id.as_str().into()]);
    }
    conditions.made_between::<Entry>(filter.from, filter.until);
    conditions
}

/// The next scope behind `after` in which entries wait for a batch.
pub fn next_waiting(tx: &mut Tx<'_>, after: Option<Scope>) -> Result<Option<Scope>, Error> {
    let [organization, mode] = after.map_or(["".into(), "".into()], |scope| {
        [Value::from(scope.organization.to_string()), scope.mode.as_str().into()]
    });
    tx.query_opt(NEXT_WAITING, &[organization, mode])?.as_ref().map(scope_of).transpose()
}

/// Since when the oldest entry that no batch holds waits for one.
pub fn oldest_unsealed(tx: &mut Tx<'_>) -> Result<Option<Timestamp>, Error> {
    oldest_of_scopes::<Entry>(tx, NEXT_WAITING)
}

/// Entries that wait for a batch, oldest first.
pub fn waiting(tx: &mut Tx<'_>, scope: Scope, limit: i64) -> Result<Vec<EntryRow>, Error> {
    let [organization, mode, _] = key(scope, "");
    readable(read_entries(&tx.query(WAITING, &[organization, mode, limit.into()])?))
}

/// The entries with these places, both included. The span of a batch is bounded.
pub fn sealed(tx: &mut Tx<'_>, scope: Scope, first: i64, last: i64) -> Result<Vec<EntryRow>, Error> {
    readable(sealed_as_found(tx, scope, first, last)?)
}

/// The same for whoever checks them, or all of their postings that can't be read.
pub fn sealed_as_found(
    tx: &mut Tx<'_>,
    scope: Scope,
    first: i64,
    last: i64,
) -> Result<Result<Vec<EntryRow>, Vec<Unreadable>>, Error> {
    let [organization, mode, _] = key(scope, "");
    Ok(read_entries(&tx.query(SEALED, &[organization, mode, first.into(), last.into()])?))
}

/// Gives waiting entries their places and keeps the batch over them.
pub fn append(tx: &mut Tx<'_>, scope: Scope, batch: &BatchRow, entry_ids: &[String]) -> Result<(), Error> {
    for (log_no, id) in (batch.first_log_no..=batch.last_log_no).zip(entry_ids) {
        let [organization, mode, id] = key(scope, id);
        tx.append("ledger_log", INSERT_LOGGED, &[organization.clone(), mode.clone(), log_no.into(), id.clone()])?;
        tx.guarded("ledger_unsealed", DELETE_UNSEALED, &[organization, mode, id])?;
    }
    let [organization, mode, _] = key(scope, "");
    let values = [
        organization,
        mode,
        batch.batch_no.into(),
        batch.first_log_no.into(),
        batch.last_log_no.into(),
        batch.statement.as_str().into(),
        batch.signature.as_str().into(),
        batch.public_key.as_str().into(),
    ];
    tx.append("ledger_batches", INSERT_BATCH, &values)
}

pub fn last(tx: &mut Tx<'_>, scope: Scope) -> Result<Option<BatchRow>, Error> {
    let [organization, mode, _] = key(scope, "");
    tx.query_opt(LAST_BATCH, &[organization, mode])?.as_ref().map(batch).transpose()
}

/// In their order, from the number `from` on.
pub fn list(tx: &mut Tx<'_>, scope: Scope, from: i64, limit: i64) -> Result<Vec<BatchRow>, Error> {
    let [organization, mode, _] = key(scope, "");
    tx.query(BATCHES, &[organization, mode, from.into(), limit.into()])?.iter().map(batch).collect()
}

/// The batch that holds a place in the log.
pub fn of_place(tx: &mut Tx<'_>, scope: Scope, log_no: i64) -> Result<Option<BatchRow>, Error> {
    let [organization, mode, _] = key(scope, "");
    tx.query_opt(BATCH_OF, &[organization, mode, log_no.into()])?.as_ref().map(batch).transpose()
}

/// Of all keys that signed a batch, the oldest first.
pub fn public_keys(tx: &mut Tx<'_>, scope: Scope) -> Result<Vec<String>, Error> {
    let [organization, mode, _] = key(scope, "");
    tx.query(PUBLIC_KEYS, &[organization, mode])?.iter().map(|row| row.get("public_key")).collect()
}

/// By currency and account.
pub fn unsealed_totals(tx: &mut Tx<'_>, scope: Scope) -> Result<Vec<UnsealedTotals>, Error> {
    let [organization, mode, _] = key(scope, "");
    let rows = tx.query(UNSEALED_TOTALS, &[organization, mode])?;
    let read = |row: &Row| {
        Ok(UnsealedTotals {
            account: row.get("account")?,
            currency: row.get("currency")?,
            debits_minor: sum_of(row, "debits_high", "debits_low")?,
            // Negative in the ledger.
            credits_minor: -sum_of(row, "credits_high", "credits_low")?,
        })
    };
    rows.iter().map(read).collect()
}

pub fn count_unsealed(tx: &mut Tx<'_>, scope: Scope) -> Result<i64, Error> {
    let [organization, mode, _] = key(scope, "");
    tx.query_one(COUNT_UNSEALED, &[organization, mode])?.get("entries")
}

/// All entries of a transaction, each with its place, if it has one. The domain says how many there can be.
pub fn places(tx: &mut Tx<'_>, scope: Scope, transaction_id: &str) -> Result<Vec<(String, Option<i64>)>, Error> {
    let mut places: Vec<(String, Option<i64>)> = Vec::new();
    loop {
        let after = places.last().map_or("", |(entry, _)| entry);
        let rows = tx.query(PLACES_OF_TRANSACTION, &page_of_places(scope, transaction_id, after))?;
        for row in &rows {
            places.push((row.get("entry_id")?, row.get("log_no")?));
        }
        if rows.len() < PLACES {
            return Ok(places);
        }
    }
}

fn page_of_places(scope: Scope, transaction_id: &str, after: &str) -> [Value; 5] {
    let [organization, mode, transaction] = key(scope, transaction_id);
    [organization, mode, transaction, after.into(), i64::try_from(PLACES).unwrap_or(i64::MAX).into()]
}

/// Of a page of entries behind `after`: those that neither have a place nor wait for one, which can't be; and the last of the
/// page, unless there are no more behind it.
pub fn unplaced(tx: &mut Tx<'_>, scope: Scope, after: &str) -> Result<(Vec<String>, Option<String>), Error> {
    let [organization, mode, after] = key(scope, after);
    let rows = tx.query(PLACED, &[organization, mode, after, PAGE.into()])?;
    let (mut unplaced, mut last) = (Vec::new(), None);
    for row in &rows {
        let entry: String = row.get("entry_id")?;
        if row.get::<String>("placed")?.is_empty() {
            unplaced.push(entry.clone());
        }
        last = Some(entry);
    }
    Ok((unplaced, last.filter(|_| i64::try_from(rows.len()).is_ok_and(|rows| rows == PAGE))))
}

/// The entries behind `after` that wait for a batch; the first page begins with the first, whatever its name is.
pub fn waiting_behind(tx: &mut Tx<'_>, scope: Scope, after: &str) -> Result<WaitingPage, Error> {
    let (sql, values) = page_of_waiting(scope, after);
    let rows = tx.query(&sql, &values)?;
    let mut page = WaitingPage { count: rows.len(), ..WaitingPage::default() };
    for row in &rows {
        let entry: String = row.get("entry_id")?;
        let (logged, posted): (Option<String>, Option<String>) = (row.get("logged")?, row.get("posted")?);
        if logged.is_some() || posted.is_none() {
            page.for_nothing.push(entry.clone());
        }
        page.last = Some(entry);
    }
    page.last = page.last.filter(|_| i64::try_from(rows.len()).is_ok_and(|rows| rows == PAGE));
    Ok(page)
}

fn page_of_waiting(scope: Scope, after: &str) -> (String, [Value; 4]) {
    let [organization, mode, entry] = key(scope, after);
    let begin = if after.is_empty() { "entry_id >= $3" } else { "entry_id > $3" };
    (WAITING_FOR.replace("{begin}", begin), [organization, mode, entry, PAGE.into()])
}

/// How the database would go about [`entries`]: its plan for each of the two statements.
pub fn plans_of_list(
    tx: &mut Tx<'_>,
    scope: Scope,
    filter: &EntryFilter,
    request: &PageRequest,
) -> Result<[String; 2], Error> {
    let [(count, of_count), (page, of_page)] =
        conditions(scope, filter).statements(tx.dialect(), ENTRIES, "id", request);
    Ok([explained(tx, &count, &of_count)?, explained(tx, &page, &of_page)?])
}

/// How the database would go about finding the places of entries: its plan for each statement, for whoever checks that none
/// reads the whole log.
pub fn plans(tx: &mut Tx<'_>, scope: Scope, entry: &str, transaction_id: &str) -> Result<[String; 5], Error> {
    let [organization, mode, after] = key(scope, "");
    let (waiting_for, of_waiting) = page_of_waiting(scope, entry);
    Ok([
        explained(tx, ENTRY, &key(scope, entry))?,
        explained(tx, PLACES_OF_TRANSACTION, &page_of_places(scope, transaction_id, ""))?,
        explained(tx, PLACED, &[organization.clone(), mode.clone(), after, PAGE.into()])?,
        explained(tx, &waiting_for, &of_waiting)?,
        explained(tx, UNSEALED_TOTALS, &[organization, mode])?,
    ])
}

/// Rows of postings, in the order of their entries, as entries.
fn read_entries(rows: &[Row]) -> Result<Vec<EntryRow>, Vec<Unreadable>> {
    let (mut entries, mut unreadable) = (Vec::new(), Vec::new());
    for row in rows {
        if let Err(why) = read_posting(row, &mut entries) {
            unreadable.push(Unreadable { row: name_of(row), why: why.to_string() });
        }
    }
    if unreadable.is_empty() { Ok(entries) } else { Err(unreadable) }
}

/// Into its entry, which its first line begins.
fn read_posting(row: &Row, entries: &mut Vec<EntryRow>) -> Result<(), Error> {
    let id: String = row.get("entry_id")?;
    let posting = (row.get("account")?, row.get("amount_minor")?);
    match entries.last_mut() {
        Some(entry) if entry.id == id => entry.postings.push(posting),
        Some(_) | None => {
            let code: String = row.get("currency")?;
            entries.push(EntryRow {
                id,
                log_no: row.get("log_no")?,
                transaction_id: row.get("transaction_id")?,
                currency: Currency::parse(&code).ok_or_else(|| Error::Corrupt(format!("{code:?} is no currency")))?,
                created_at: row.get("created_at")?,
                postings: vec![posting],
            });
        }
    }
    Ok(())
}

fn name_of(row: &Row) -> String {
    let entry = row.get("entry_id").unwrap_or_else(|_| "?".to_owned());
    row.get::<i64>("line").map_or_else(|_| entry.clone(), |line| format!("{entry} line {line}"))
}

fn readable<T>(read: Result<T, Vec<Unreadable>>) -> Result<T, Error> {
    let named = |Unreadable { row, why }: &Unreadable| format!("ledger_postings {row}: {why}");
    read.map_err(|all| Error::Corrupt(all.first().map(named).unwrap_or_default()))
}

fn batch(row: &Row) -> Result<BatchRow, Error> {
    Ok(BatchRow {
        batch_no: row.get("batch_no")?,
        first_log_no: row.get("first_log_no")?,
        last_log_no: row.get("last_log_no")?,
        statement: row.get("statement")?,
        signature: row.get("signature")?,
        public_key: row.get("public_key")?,
    })
}
