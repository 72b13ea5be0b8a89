//! Rows whose text is not what was written: found a page at a time, and one text put in the place of another.
//!
//! A text is taken only if it can be read as that of its row. Where it comes from, and whether it shall be taken, is the caller's.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use domain::api_key::ApiKey;
use domain::checkout::Checkout;
use domain::customer::Customer;
use domain::event::Event;
use domain::invoice::{Invoice, InvoicePayment};
use domain::organization::Organization;
use domain::payment::{PaymentSession, Transaction};
use domain::payment_link::PaymentLink;
use domain::product::Product;
use domain::receipt::Receipt;
use domain::refund::Refund;
use domain::simulator::{SimulatedPayment, SimulatedRefund};
use domain::webhook::WebhookEndpoint;
use domain::{Id, Mode, Scope, Timestamp};
use serde::Deserialize;
use serde_json::Value as Json;

use super::verify::{self, PAGE, Stored};
use super::{MOST_PAGE_BYTES, limit};
use crate::checksum::{self, Kinship};
use crate::entity::{Entity, key};
use crate::error::Error;
use crate::migrate::latest_applied;
use crate::settings::Dialect;
use crate::sql::{Row, Value};
use crate::tx::Tx;

const EVENTS: &str = "events";
const DOCUMENT: &str = "doc";
const BODY: &str = "body";
const BODY_CHECKSUM: &str = "body_crc32";
const CREATED_AT: &str = "created_at";
const UPDATED_AT: &str = "updated_at";
/// What stands for a checksum that can't be read.
pub const NO_CHECKSUM: &str = "none";
const EVENT_COLUMNS: [&str; 9] =
    ["organization_id", "mode", "id", "type", "object_id", "sequence", BODY, BODY_CHECKSUM, CREATED_AT];

/// Every table that keeps checksums.
pub static KINDS: [Kind; 16] = [
    Kind::of::<Organization>(),
    Kind::of::<ApiKey>(),
    Kind::of::<WebhookEndpoint>(),
    Kind::of::<Customer>(),
    Kind::of::<Product>(),
    Kind::of::<Checkout>(),
    Kind::of::<Invoice>(),
    Kind::of::<InvoicePayment>(),
    Kind::of::<Receipt>(),
    Kind::of::<PaymentLink>(),
    Kind::of::<PaymentSession>(),
    Kind::of::<Transaction>(),
    Kind::of::<Refund>(),
    Kind::of::<SimulatedPayment>(),
    Kind::of::<SimulatedRefund>(),
    Kind {
        table: EVENTS,
        text: BODY,
        columns: event_columns,
        fault: fault_of_event,
        stamped: stamped_event,
        put: PUT_BODY,
    },
];

const ROW: &str = "\
select {columns}
from {table}
where organization_id = $1 and mode = $2 and {id} = $3";

const ROWS: &str = "\
select {columns}
from {table}
where organization_id = $1 and mode = $2 and {id} > $3
order by {id}
limit $4";

/// The version stays: the row says what it said.
const PUT_DOCUMENT: &str = "\
update {table}
set doc = $4
where organization_id = $1 and mode = $2 and {id} = $3";

const PUT_BODY: &str = "\
update {table}
set body = $4, body_crc32 = $5
where organization_id = $1 and mode = $2 and {id} = $3";

/// A row by the names of the columns that are written together with its text.
pub type Columns = BTreeMap<String, Value>;

/// A page of a table.
#[derive(Debug)]
pub struct Page {
    /// The id of each row, and what is wrong with it, if anything is.
    pub rows: Vec<(String, Option<String>)>,
    /// Behind which id there may be more.
    pub next: Option<String>,
}

/// A table whose rows have a text with a checksum: a document, or what an event says.
pub struct Kind {
    pub table: &'static str,
    /// The column of the text.
    pub text: &'static str,
    columns: fn() -> Vec<&'static str>,
    fault: fn(&Columns) -> Option<String>,
    stamped: fn(&Columns) -> Result<Columns, String>,
    put: &'static str,
}

pub fn tables() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.table)
}

#[must_use]
pub fn kind(table: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.table == table)
}

/// Which migration was the last. A backup of another schema may mean something else by the same columns.
pub fn schema(tx: &mut Tx<'_>) -> Result<i64, Error> {
    latest_applied(tx)
}

impl Kind {
    const fn of<E: Entity>() -> Self {
        Self {
            table: E::TABLE,
            text: DOCUMENT,
            columns: verify::columns::<E>,
            fault: fault_of_document::<E>,
            stamped: stamped_document::<E>,
            put: PUT_DOCUMENT,
        }
    }

    /// Those of scope and id, and all that is written together with the text. What is kept beside that is no part of the row here.
    #[must_use]
    pub fn columns(&self) -> Vec<&'static str> {
        (self.columns)()
    }

    /// The rows behind the id `after`, in the order of their ids.
    pub fn page(&self, tx: &mut Tx<'_>, scope: Scope, after: &str) -> Result<Page, Error> {
        let dialect = tx.dialect();
        let sql = self.named(ROWS).replace("{columns}", &self.asked(dialect));
        let page = tx.query_part(&sql, &behind(scope, after), MOST_PAGE_BYTES)?;
        let more = verify::may_have_more(&page);
        if let Some(last) = page.rows.last().filter(|_| more) {
            // The next page would begin elsewhere.
            verify::last_key(self.table, &last.values()[2..3])?;
        }
        let judged = |row: &Row| (verify::shown(&row.values()[2]), self.fault(&self.read(dialect, row)));
        let rows: Vec<(String, Option<String>)> = page.rows.iter().map(judged).collect();
        let next = rows.last().filter(|_| more).map(|(id, _)| id.clone());
        Ok(Page { rows, next })
    }

    /// The ids of the rows of such a page, for where one of them lets nobody read it, and behind which there may be more.
    pub fn ids(&self, tx: &mut Tx<'_>, scope: Scope, after: &str) -> Result<(Vec<String>, Option<String>), Error> {
        let sql = self.named(ROWS).replace("{columns}", self.columns()[2]);
        let ids: Result<Vec<String>, Error> =
            tx.query(&sql, &behind(scope, after))?.iter().map(|row| row.get(0)).collect();
        let ids = ids?;
        let next = ids.last().filter(|_| ids.len() == PAGE).cloned();
        Ok((ids, next))
    }

    /// The row as it stands; inside a write it is locked until the end.
    pub fn find(&self, tx: &mut Tx<'_>, scope: Scope, id: &str) -> Result<Option<Columns>, Error> {
        let dialect = tx.dialect();
        let sql = format!("{}{}", self.named(ROW), tx.lock_suffix()).replace("{columns}", &self.asked(dialect));
        let found = tx.query_opt(&sql, &key(scope, id))?;
        Ok(found.map(|row| self.read(dialect, &row)))
    }

    /// The columns, for a `select`. Of a text that is no UTF-8 any more, PostgreSQL's driver gives nothing but the bytes.
    fn asked(&self, dialect: Dialect) -> String {
        let asked = |column: &&str| match dialect {
            Dialect::Postgres if *column == self.text => format!("textsend({column}) as {column}"),
            Dialect::Postgres | Dialect::Sqlite => (*column).to_owned(),
        };
        self.columns().iter().map(asked).collect::<Vec<_>>().join(", ")
    }

    /// A row of what was asked for so.
    fn read(&self, dialect: Dialect, row: &Row) -> Columns {
        let mut columns = by_name(&self.columns(), row.values());
        if dialect == Dialect::Postgres
            && let Some(Value::Blob(bytes)) = columns.get(self.text)
            && let Ok(text) = String::from_utf8(bytes.clone())
        {
            columns.insert(self.text.to_owned(), text.into());
        }
        columns
    }

    /// What names the row.
    #[must_use]
    pub fn key(&self, scope: Scope, id: &str) -> Columns {
        by_name(&self.columns()[..3], &key(scope, id))
    }

    /// Why the row can't be read as it was written, if it can't.
    #[must_use]
    pub fn fault(&self, row: &Columns) -> Option<String> {
        caught(|| (self.fault)(row)).unwrap_or_else(Some)
    }

    /// The row with its text as it stands and the checksum of that, or why that can't be what was written.
    pub fn stamped(&self, row: &Columns) -> Result<Columns, String> {
        caught(|| (self.stamped)(row)).unwrap_or_else(Err)
    }

    /// The row with the text that a backup holds of the very same one, or why it can't be had from there.
    pub fn restored(&self, row: &Columns, kept: &Columns) -> Result<Columns, String> {
        let is_beside = |column: &&str| *column != self.text && *column != BODY_CHECKSUM;
        let columns = self.columns();
        let differing: Vec<&str> =
            columns.into_iter().filter(is_beside).filter(|column| row.get(*column) != kept.get(*column)).collect();
        if !differing.is_empty() {
            return Err(format!(
                "its row is another than in that backup ({}), so that the text there is not the one that belongs here",
                differing.join(", ")
            ));
        }
        if let Some(why) = self.fault(kept) {
            return Err(format!("it is damaged in that backup too: {why}"));
        }
        let why = match self.kinship(row, kept) {
            Kinship::Same => return Ok(kept.clone()),
            // The time of its last change is there as it is here.
            Kinship::Unknown if self.columns().contains(&UPDATED_AT) => return Ok(kept.clone()),
            Kinship::Unknown => {
                "nothing that is left of it says which state it is of: its checksum can't be read, and the text in that backup may be \
                 of another state of it"
            }
            Kinship::Other => {
                "its checksum is that of neither text: the text in that backup is of another state of it, or its checksum is damaged too"
            }
        };
        Err(why.to_owned())
    }

    /// Whether the row had the text of `kept` before it was damaged, as far as what is left of it tells.
    fn kinship(&self, row: &Columns, kept: &Columns) -> Kinship {
        let (damaged, whole) = (as_text(row.get(self.text)), as_text(kept.get(self.text)));
        match (self.text, row.get(BODY_CHECKSUM)) {
            (DOCUMENT, _) => checksum::kinship(&damaged, &whole),
            (_, Some(Value::Integer(sum))) => checksum::kinship_beside(&damaged, *sum, &whole),
            // What an event says never changes.
            (_, _) => Kinship::Same,
        }
    }

    /// The checksum that a row has, for whoever writes down what was done.
    #[must_use]
    pub fn checksum(&self, row: &Columns) -> String {
        let text = as_text(row.get(self.text));
        let found = match (self.text, row.get(BODY_CHECKSUM)) {
            (DOCUMENT, _) => checksum::split(&text).map(|(_, sum)| sum.to_owned()),
            (_, Some(Value::Integer(sum))) => Some(format!("{sum:08x}")),
            (_, _) => None,
        };
        let readable = found.filter(|sum| sum.bytes().all(|digit| digit.is_ascii_hexdigit()));
        readable.unwrap_or_else(|| NO_CHECKSUM.to_owned())
    }

    /// Puts the text of `wanted`, with its checksum, in the place of that of `seen`; `false` if the row is not as it was seen.
    pub fn put(
        &self,
        tx: &mut Tx<'_>,
        scope: Scope,
        id: &str,
        seen: &Columns,
        wanted: &Columns,
    ) -> Result<bool, Error> {
        if self.find(tx, scope, id)?.as_ref() != Some(seen) {
            return Ok(false);
        }
        let value = |column: &str| wanted.get(column).cloned().unwrap_or(Value::Null);
        let mut values = Vec::from(key(scope, id));
        values.push(value(self.text));
        if self.text == BODY {
            values.push(value(BODY_CHECKSUM));
        }
        Ok(tx.execute(&self.named(self.put), &values)? == 1)
    }

    /// With the names of the table and of its column for the id.
    fn named(&self, sql: &str) -> String {
        sql.replace("{table}", self.table).replace("{id}", self.columns()[2])
    }
}

/// The values of [`ROWS`].
fn behind(scope: Scope, after: &str) -> Vec<Value> {
    let mut values = Vec::from(key(scope, after));
    values.push(limit(PAGE));
    values
}

fn fault_of<E: Entity>(row: &Stored<E>) -> Option<String> {
    match &row.entity {
        Err(why) => Some(why.clone()),
        Ok(_) if !row.differing.is_empty() => Some(differs("its document", &row.differing)),
        Ok(entity) if !entity.adds_up() => Some("its amounts don't add up".to_owned()),
        Ok(_) => None,
    }
}

fn differs(text: &str, columns: &[String]) -> String {
    format!("{text} says something else than the columns beside it ({})", columns.join(", "))
}

fn fault_of_document<E: Entity>(row: &Columns) -> Option<String> {
    fault_of(&stored::<E>(row))
}

fn stored<E: Entity>(row: &Columns) -> Stored<E> {
    let names = verify::columns::<E>();
    let values = names.iter().map(|name| row.get(*name).cloned().unwrap_or(Value::Null)).collect();
    let names: Arc<[String]> = names.iter().map(|name| (*name).to_owned()).collect();
    verify::stored(&Row::new(names, values))
}

fn stamped_document<E: Entity>(row: &Columns) -> Result<Columns, String> {
    let Some(Value::Text(document)) = row.get(DOCUMENT) else { return Err("its document is no text".to_owned()) };
    let renewed = checksum::renewed(document).ok_or("its document does not parse: its end is missing")?;
    let mut stamped = row.clone();
    stamped.insert(DOCUMENT.to_owned(), renewed.as_str().into());
    let stored = stored::<E>(&stamped);
    if let Some(why) = fault_of(&stored) {
        return Err(why);
    }
    match unread_of(&renewed, &stored.entity?) {
        Ok(None) => Ok(stamped),
        Ok(Some(name)) => Err(format!("its document says something as {name:?} that is not read, or read otherwise")),
        Err(error) => Err(format!("its document does not parse: {error}")),
    }
}

/// The name of something that a document says, and what was read of it doesn't. Whoever doesn't know a member's name passes over it, and
/// takes for granted what is said where the member is missing.
fn unread_of<E: Entity>(document: &str, entity: &E) -> Result<Option<String>, serde_json::Error> {
    let found: Json = serde_json::from_str(&checksum::without(document))?;
    let read: Json = serde_json::from_str(&serde_json::to_string(entity)?)?;
    Ok(unread("", &found, Some(&read)))
}

fn unread(name: &str, found: &Json, read: Option<&Json>) -> Option<String> {
    match (found, read) {
        (Json::Object(found), Some(Json::Object(read))) => {
            found.iter().find_map(|(name, value)| unread(name, value, read.get(name)))
        }
        (Json::Array(found), Some(Json::Array(read))) if found.len() == read.len() => {
            found.iter().zip(read).find_map(|(value, read)| unread(name, value, Some(read)))
        }
        (found, read) => (read != Some(found)).then(|| name.to_owned()),
    }
}

fn event_columns() -> Vec<&'static str> {
    EVENT_COLUMNS.to_vec()
}

/// What an event says of the row that it stands in.
#[derive(Deserialize)]
struct Told {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    object_id: String,
    sequence: i64,
    livemode: bool,
    created_at: String,
    created: String,
}

impl Told {
    /// In a body to the second, in the id to the millisecond.
    fn is_of(&self, time: Option<&Value>) -> bool {
        let Some(Value::Integer(micros)) = time else { return false };
        let Ok(second) = Timestamp::from_stored(*micros).map(Timestamp::floor_to_second) else { return false };
        let is_second = Timestamp::parse(&self.created_at) == Ok(second) && self.created == self.created_at;
        is_second && self.id.parse::<Id<Event>>().is_ok_and(|id| id.made_at_ms() == micros / 1000)
    }
}

fn fault_of_event(row: &Columns) -> Option<String> {
    let Some(Value::Text(body)) = row.get(BODY) else { return Some("its body is no text".to_owned()) };
    let sum = match row.get(BODY_CHECKSUM) {
        Some(Value::Integer(sum)) => Some(*sum),
        Some(Value::Null) | None => None,
        Some(Value::Text(_) | Value::Blob(_)) => return Some("its checksum is no number".to_owned()),
    };
    if let Err(error) = checksum::check_beside(body, sum, format_args!("its body")) {
        return Some(error.to_string());
    }
    let told: Told = match serde_json::from_str(body) {
        Ok(told) => told,
        Err(error) => return Some(format!("its body does not parse: {error}")),
    };
    let is_of_its_time = told.is_of(row.get(CREATED_AT));
    let mode = if told.livemode { Mode::Live } else { Mode::Test };
    let said: [(&str, Value); 5] = [
        ("mode", mode.as_str().into()),
        ("id", told.id.into()),
        ("type", told.kind.into()),
        ("object_id", told.object_id.into()),
        ("sequence", told.sequence.into()),
    ];
    let differing = said.iter().filter(|(column, value)| row.get(*column) != Some(value));
    let mut differing: Vec<String> = differing.map(|(column, _)| (*column).to_owned()).collect();
    if !is_of_its_time {
        differing.push(CREATED_AT.to_owned());
    }
    (!differing.is_empty()).then(|| differs("its body", &differing))
}

fn stamped_event(row: &Columns) -> Result<Columns, String> {
    let Some(Value::Text(body)) = row.get(BODY) else { return Err("its body is no text".to_owned()) };
    let mut stamped = row.clone();
    stamped.insert(BODY_CHECKSUM.to_owned(), i64::from(checksum::of(body)).into());
    fault_of_event(&stamped).map_or(Ok(stamped), Err)
}

fn by_name(columns: &[&str], values: &[Value]) -> Columns {
    columns.iter().map(|column| (*column).to_owned()).zip(values.iter().cloned()).collect()
}

/// What of it is UTF-8.
fn as_text(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        Some(Value::Text(text)) => text.into(),
        Some(Value::Blob(bytes)) => String::from_utf8_lossy(bytes),
        Some(Value::Null | Value::Integer(_)) | None => "".into(),
    }
}

/// Whatever somebody made of a row ends nobody's look at it.
fn caught<T>(look: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(look)).map_err(|_| "it makes this program panic".to_owned())
}
