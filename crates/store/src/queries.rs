//! Every named query, by the table it reads. All of them take the scope, but for [`locate`] (public names into scopes)
//! and the worker's claims, which serve every organization.

pub mod api_keys;
pub mod audit;
pub mod balances;
pub mod checkouts;
pub mod counters;
pub mod customers;
pub mod deliveries;
pub mod documents;
pub mod doubts;
pub mod endpoints;
pub mod events;
pub mod idempotency;
pub mod invoice_payments;
pub mod invoices;
pub mod jobs;
pub mod ledger;
pub mod ledger_batches;
pub mod locate;
pub mod logos;
pub mod mails;
pub mod organizations;
pub mod payment_links;
pub mod products;
pub mod receipts;
pub mod refunds;
pub mod repair;
pub mod signing_keys;
pub mod transactions;
pub mod verify;

use std::borrow::Cow;
use std::time::Duration;

use domain::{Scope, Timestamp};

use crate::entity::{Entity, parse};
use crate::error::Error;
use crate::settings::Dialect;
use crate::sql::{Part, Row, Value};
use crate::totals::Total;
use crate::tx::Tx;

/// Totals are exact up to here (contract §1.5).
const MAX_TOTAL: i64 = 100_000;
/// A page has no more rows than so many bytes hold, and at least one. A row is a megabyte at most and seldom a thousandth of it;
/// a hundred of the largest, read, understood and written out, would be more memory than the service has.
const MOST_PAGE_BYTES: usize = 4 << 20;

/// Which part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    pub offset: i64,
    pub limit: i64,
    /// Continue behind this id instead of skipping `offset`.
    pub after: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Matching records, at most 100 000.
    pub total: i64,
    pub total_is_capped: bool,
    /// As many were asked for, or fewer where their size is the limit.
    pub limit: i64,
    pub has_more: bool,
}

impl<T> Page<T> {
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Page<U> {
        let Page { items, total, total_is_capped, limit, has_more } = self;
        Page { items: items.into_iter().map(f).collect(), total, total_is_capped, limit, has_more }
    }

    pub fn try_map<U, E>(self, f: impl FnMut(T) -> Result<U, E>) -> Result<Page<U>, E> {
        let Page { items, total, total_is_capped, limit, has_more } = self;
        let items = items.into_iter().map(f).collect::<Result<_, E>>()?;
        Ok(Page { items, total, total_is_capped, limit, has_more })
    }

    /// Without those that can't be shown.
    pub fn try_filter_map<U, E>(self, mut f: impl FnMut(T) -> Result<Option<U>, E>) -> Result<Page<U>, E> {
        let Page { items, total, total_is_capped, limit, has_more } = self;
        let items = items.into_iter().filter_map(|item| f(item).transpose()).collect::<Result<_, E>>()?;
        Ok(Page { items, total, total_is_capped, limit, has_more })
    }
}

/// The conditions of a list, with their values: always within one scope.
pub(crate) struct Filter {
    conditions: String,
    values: Vec<Value>,
    by_clock: ByClock,
    /// On SQLite, which doesn't know how few it holds ([`joined_in_order`]).
    index: Option<&'static str>,
}

/// How long a list is the same while no row changes.
#[derive(Debug, Clone, Copy)]
enum ByClock {
    Always,
    /// Until the clock comes to the first of these times. Where `now` stands among the values.
    UntilFirst {
        column: &'static str,
        now: usize,
    },
    /// Something may be added at any time.
    Never,
}

impl Filter {
    pub(crate) fn within(scope: Scope) -> Self {
        Self {
            conditions: match domain::planted!(Defect::ListOfAllModes) {
                true => "organization_id = $1 and $2 = $2".into(),
                false if domain::planted!(Defect::ListOfAllOrganizations) => "$1 = $1 and mode = $2".into(),
                false => "organization_id = $1 and mode = $2".into(),
            },
            values: vec![scope.organization.to_string().into(), scope.mode.as_str().into()],
            by_clock: ByClock::Always,
            index: None,
        }
    }

    /// By the index that holds nothing but what the conditions let through, or little else.
    pub(crate) fn by_index(&mut self, index: &'static str) {
        self.index = Some(index);
    }

    /// `condition`, and it ends for each row at the time in this column: null is never. At most once in a list.
    pub(crate) fn ends_by_clock(&mut self, condition: &str, column: &'static str, now: Timestamp) {
        self.and(condition, [now.micros().into()]);
        self.by_clock = ByClock::UntilFirst { column, now: self.values.len() - 1 };
    }

    /// `condition`, which begins for a row at some time.
    pub(crate) fn begins_by_clock(&mut self, condition: &str, now: Timestamp) {
        self.and(condition, [now.micros().into()]);
        self.by_clock = ByClock::Never;
    }

    /// `condition` has one `{}` for each of the values.
    pub(crate) fn and(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        let mut parts = condition.split("{}");
        self.conditions.push_str("\nand ");
        self.conditions.push_str(parts.next().unwrap_or_default());
        for (part, value) in parts.zip(values) {
            self.values.push(value);
            self.conditions.push_str(&format!("${}{part}", self.values.len()));
        }
    }

    /// Made in this time, both ends included. An object is made at the time that its id begins with, or at the beginning of
    /// that second: but for those of a second that is asked for in part the ids decide, so that an index alone is read.
    pub(crate) fn made_between<T: domain::Object>(&mut self, from: Option<Timestamp>, until: Option<Timestamp>) {
        const LAST_OF_SECOND: Duration = Duration::from_micros(999_999);
        if let Some(from) = from {
            let first = domain::Id::<T>::new(from, [0; 10]).to_string();
            self.and("id >= {}", [first.into()]);
            if from != from.floor_to_second() {
                let last = domain::Id::<T>::new(from.floor_to_second().plus(LAST_OF_SECOND), [0xff; 10]).to_string();
                self.and("(id > {} or created_at >= {})", [last.into(), from.micros().into()]);
            }
        }
        if let Some(until) = until {
            let end = until.floor_to_second().plus(LAST_OF_SECOND);
            let last = domain::Id::<T>::new(end, [0xff; 10]).to_string();
            self.and("id <= {}", [last.into()]);
            if until != end {
                let first = domain::Id::<T>::new(until.floor_to_second(), [0; 10]).to_string();
                self.and("(id < {} or created_at <= {})", [first.into(), until.micros().into()]);
            }
        }
    }

    /// Newest first: ids begin with their time.
    pub(crate) fn page(
        self,
        tx: &mut Tx<'_>,
        table: &str,
        columns: &str,
        request: &PageRequest,
    ) -> Result<Page<Row>, Error> {
        let by_clock = self.by_clock;
        let [(count, of_count), (sql, values)] = self.statements(tx.dialect(), table, columns, request);
        let total = total(tx, by_clock, &count, &of_count)?;
        let Part { rows: mut items, is_cut } = tx.query_part(&sql, &values, MOST_PAGE_BYTES)?;
        let limit = limit_of(request.limit, &items, is_cut);
        let has_more = is_cut || items.len() > usize::try_from(limit).unwrap_or(0);
        items.truncate(usize::try_from(limit).unwrap_or(0));
        Ok(Page { items, total: total.min(MAX_TOTAL), total_is_capped: total > MAX_TOTAL, limit, has_more })
    }

    /// What counts the matches, and what reads a part of them, with their values.
    fn statements(
        mut self,
        dialect: Dialect,
        table: &str,
        columns: &str,
        request: &PageRequest,
    ) -> [(String, Vec<Value>); 2] {
        let table = match (dialect, self.index) {
            (Dialect::Sqlite, Some(index)) => format!("{table} indexed by {index}"),
            (Dialect::Sqlite, None) | (Dialect::Postgres, _) => table.to_owned(),
        };
        let (column, until) = match self.by_clock {
            ByClock::UntilFirst { column, .. } => (column, "min(until)"),
            ByClock::Always | ByClock::Never => ("1", "cast(null as bigint)"),
        };
        let count = format!(
            "select count(*) as total, {until} as until\n\
             from (select {column} as until from {table} where {} limit {}) as matching",
            self.conditions,
            MAX_TOTAL + 1
        );
        let count = (count, self.values.clone());
        if let Some(after) = &request.after {
            self.and("id < {}", [after.as_str().into()]);
        }
        let offset = if request.after.is_some() { 0 } else { request.offset };
        let (limit_at, offset_at) = (self.values.len() + 1, self.values.len() + 2);
        self.values.extend([(request.limit + 1).into(), offset.into()]);
        let sql = format!(
            "select {columns}\nfrom {table}\nwhere {}\norder by id desc\nlimit ${limit_at} offset ${offset_at}",
            self.conditions
        );
        [count, (sql, self.values)]
    }

    /// How the database would go about [`Filter::entities`]: its plan for each of the two statements.
    pub(crate) fn plans<E: Entity>(self, tx: &mut Tx<'_>, request: &PageRequest) -> Result<[String; 2], Error> {
        let [(count, of_count), (page, of_page)] = self.statements(tx.dialect(), E::TABLE, "version, doc", request);
        Ok([explained(tx, &count, &of_count)?, explained(tx, &page, &of_page)?])
    }

    pub(crate) fn entities<E: Entity>(self, tx: &mut Tx<'_>, request: &PageRequest) -> Result<Page<E>, Error> {
        self.page(tx, E::TABLE, "version, doc", request)?.try_map(|row| parse(&row))
    }
}

/// So many rows at most.
fn limit(rows: usize) -> Value {
    i64::try_from(rows).unwrap_or(i64::MAX).into()
}

/// How many rows a page has at most for which `limit` were asked for and these were read, all or a part.
fn limit_of(limit: i64, rows: &[Row], is_cut: bool) -> i64 {
    if is_cut { limit.min(i64::try_from(rows.len()).unwrap_or(i64::MAX)) } else { limit }
}

/// Counts, or knows from before.
fn total(tx: &mut Tx<'_>, by_clock: ByClock, sql: &str, values: &[Value]) -> Result<i64, Error> {
    let from = tx.now_us();
    let counted = |tx: &mut Tx<'_>| {
        let row = tx.query_one(sql, values)?;
        Ok(Total { count: row.get("total")?, from, until: row.get("until")? })
    };
    let mut named = values.to_vec();
    match by_clock {
        ByClock::Always => {}
        // The total says itself from when to when it holds.
        ByClock::UntilFirst { now, .. } => named[now] = Value::Null,
        ByClock::Never => return Ok(counted(tx)?.count),
    }
    Ok(tx.total(sql, &named, counted)?.count)
}

/// A sum that may be more than a `bigint` holds. Its statement adds up two parts, which no number of rows overflows: `high` of
/// `amount >> 32`, rounded down, and `low` of `amount & 4294967295`, the rest.
fn sum_of(row: &Row, high: &str, low: &str) -> Result<i128, Error> {
    let (high, low): (i64, i64) = (row.get(high)?, row.get(low)?);
    Ok((i128::from(high) << 32) + i128::from(low))
}

/// The same statement, whose tables SQLite looks into in the order in which they are written. It is never told how many rows
/// they have, takes a few for very many, and would begin with all events to find those few that wait. PostgreSQL counts.
fn joined_in_order<'s>(tx: &Tx<'_>, sql: &'s str) -> Cow<'s, str> {
    match tx.dialect() {
        Dialect::Sqlite => sql.replace("\njoin ", "\ncross join ").into(),
        Dialect::Postgres => sql.into(),
    }
}

/// What can't be read keeps nobody else's waiting: it was written by a later version that runs beside this one, or is damaged.
pub fn unless_damaged<T>(read: Result<T, Error>, what: &str) -> Result<Option<T>, Error> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Error::Corrupt(why)) => {
            tracing::error!(why, "{what} can't be read and is passed over");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Placeholders from `$first` on for a list that is not empty, and its values. The last is repeated up to a power of two, so that
/// lists of many lengths are few statements.
pub(crate) fn listed(first: usize, values: impl ExactSizeIterator<Item = String>) -> (String, Vec<Value>) {
    let count = values.len().next_power_of_two();
    let mut values: Vec<Value> = values.map(Value::from).collect();
    let last = values.last().expect("a list of something").clone();
    values.resize(count, last);
    let placeholders: Vec<String> = (first..first + count).map(|number| format!("${number}")).collect();
    (placeholders.join(", "), values)
}

/// The database's plan for a statement.
pub(crate) fn explained(tx: &mut Tx<'_>, sql: &str, values: &[Value]) -> Result<String, Error> {
    let (explain, column) = match tx.dialect() {
        Dialect::Sqlite => ("explain query plan", "detail"),
        Dialect::Postgres => ("explain", "QUERY PLAN"),
    };
    let rows = tx.query(&format!("{explain} {sql}"), values)?;
    let lines = rows.iter().map(|row| row.get::<String>(column)).collect::<Result<Vec<_>, Error>>()?;
    Ok(lines.join("\n"))
}

/// Of such a walk. Where more wait, the oldest of these is late enough to be seen.
const MOST_SCOPES: usize = 1_000;

/// When the oldest row was made of a table that is walked from scope to scope: `next` finds the first row of the next one, by its
/// id, which begins with its time.
fn oldest_of_scopes<T: domain::Object>(tx: &mut Tx<'_>, next: &str) -> Result<Option<Timestamp>, Error> {
    let (mut behind, mut oldest) = (["", ""].map(Value::from), None);
    for _ in 0..MOST_SCOPES {
        let Some(row) = tx.query_opt(next, &behind)? else { break };
        behind = [row.get("organization_id")?, row.get("mode")?];
        let id = unless_damaged(read_id::<T>(&row.get::<String>("id")?), "the oldest of what waits")?;
        let made_at = id.map(|id| Timestamp::from_micros(id.made_at_ms() * 1000));
        oldest = oldest.into_iter().chain(made_at).min();
    }
    Ok(oldest)
}

pub(crate) fn scope_of(row: &Row) -> Result<Scope, Error> {
    let organization: String = row.get("organization_id")?;
    let mode: String = row.get("mode")?;
    Ok(Scope {
        organization: read_id(&organization)?,
        mode: domain::Mode::parse(&mode).ok_or_else(|| Error::Corrupt(format!("{mode:?} is no mode")))?,
    })
}

pub(crate) fn read_id<T: domain::Object>(text: &str) -> Result<domain::Id<T>, Error> {
    text.parse().map_err(|_| Error::Corrupt(format!("{text:?} is not a {} id", T::NOUN)))
}
