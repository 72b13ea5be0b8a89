//! A logical dump that both databases write and read, taken from one snapshot while the server runs.
//!
//! One JSON value a line: a header, then for each table its columns and its rows (bytes as `{"base64": …}`), and a trailer
//! with the row counts and the SHA-256 of everything before it. Keys and secrets that live outside the database are not in it.
//! What is damaged in the database is in it as it is, and told.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::damage::{Damage, Watched};
use crate::error::Error;
use crate::migrate::{hex, latest_applied, table_names};
use crate::settings::Dialect;
use crate::sql::Value;
use crate::store::Store;
use crate::tx::Tx;

pub(crate) const FORMAT: &str = "dalasi-backup";
pub(crate) const VERSION: i64 = 1;
/// They describe the running installation and not what it holds, or are made anew from what it holds.
pub(crate) const LEFT_OUT: [&str; 4] = ["schema_migrations", "leases", "idempotency_runs", "idempotency_run_pages"];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub schema: i64,
    /// Microseconds since the epoch.
    pub created_at: i64,
    /// Rows of each table.
    pub rows: BTreeMap<String, u64>,
    pub sha256: String,
    /// What it holds that is not what was once written.
    pub damage: Damage,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) version: i64,
    pub(crate) schema: i64,
    pub(crate) created_at: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableHeader {
    pub(crate) table: String,
    pub(crate) columns: Vec<String>,
}

#[derive(Serialize)]
pub(crate) struct Trailer<'a> {
    pub(crate) rows: &'a BTreeMap<String, u64>,
    pub(crate) sha256: &'a str,
}

/// Writes and flushes; to have it on the disk, the caller syncs the file.
pub async fn backup(store: &Store, writer: impl Write + Send + 'static) -> Result<Summary, Error> {
    let (latest, tables) = (store.schema().latest(), store.schema().tables);
    let writer = Mutex::new(Some(writer));
    let names = store.read(table_names).await?;
    store
        .read(move |tx| {
            tx.unhurried();
            keep_tables(tx, &names)?;
            // A second run would write behind the first one's half.
            let writer = writer.lock().unwrap_or_else(PoisonError::into_inner).take();
            let writer =
                writer.ok_or_else(|| Error::Unavailable("the connection broke during the backup".to_owned()))?;
            dump(tx, latest, tables, writer)
        })
        .await
}

fn dump(tx: &mut Tx<'_>, latest: i64, tables: &[&str], writer: impl Write) -> Result<Summary, Error> {
    let present = table_names(tx)?;
    check_complete(&present, tables)?;
    // Of an older version it is what that version would write; a server may migrate it later.
    let schema = latest_applied(tx)?;
    let is_there = |table: &str| schema == latest || present.iter().any(|name| name == table);
    let created_at = tx.now_us();
    let mut out = Output { writer: io::BufWriter::new(writer), digest: Context::new(&SHA256) };
    out.line(&Header { format: FORMAT.to_owned(), version: VERSION, schema, created_at })?;
    let (mut rows, mut damage) = (BTreeMap::new(), Damage::default());
    for table in tables.iter().filter(|table| is_there(table)) {
        let columns = columns_of(tx, table)?;
        let watched = Watched::of(&columns);
        out.line(&TableHeader { table: (*table).to_owned(), columns: columns.clone() })?;
        let mut count = 0;
        tx.each_row(&format!("select {} from {table}", columns.join(", ")), &mut |row| {
            count += 1;
            damage.look_at(table, &watched, row.values());
            out.line(&row.values().iter().map(to_json).collect::<Vec<_>>())
        })?;
        rows.insert((*table).to_owned(), count);
    }
    let sha256 = hex(out.digest.clone().finish().as_ref());
    out.line(&Trailer { rows: &rows, sha256: &sha256 })?;
    out.writer.flush().map_err(|error| unwritable(&error))?;
    Ok(Summary { schema, created_at, rows, sha256, damage })
}

/// Before the transaction sees anything: a table that a migration makes anew meanwhile would look empty to it.
fn keep_tables(tx: &mut Tx<'_>, names: &[String]) -> Result<(), Error> {
    if tx.dialect() == Dialect::Postgres && !names.is_empty() {
        tx.query(&format!("lock table {} in access share mode", names.join(", ")), &[])?;
    }
    if table_names(tx)? == names {
        Ok(())
    } else {
        Err(Error::Backup("the tables were changed meanwhile by another version; make it again".to_owned()))
    }
}

/// The list is written by hand, the catalogue isn't.
fn check_complete(present: &[String], tables: &[&str]) -> Result<(), Error> {
    let forgotten: Vec<_> =
        present.iter().map(String::as_str).filter(|name| !tables.contains(name) && !LEFT_OUT.contains(name)).collect();
    if forgotten.is_empty() {
        return Ok(());
    }
    Err(Error::Backup(format!("the backup would leave out {}", forgotten.join(", "))))
}

/// Without the sequence of idempotency keys, which PostgreSQL doesn't have and a restore gives anew.
const COLUMNS_SQLITE: &str = "
select name
from pragma_table_info($1)
where not ($1 = 'idempotency_keys' and name = 'sequence')
order by cid";

const COLUMNS_POSTGRES: &str = "
select column_name
from information_schema.columns
where table_schema = current_schema()
  and table_name = $1
order by ordinal_position";

pub(crate) fn columns_of(tx: &mut Tx<'_>, table: &str) -> Result<Vec<String>, Error> {
    let sql = match tx.dialect() {
        Dialect::Sqlite => COLUMNS_SQLITE,
        Dialect::Postgres => COLUMNS_POSTGRES,
    };
    tx.query(sql, &[table.into()])?.iter().map(|row| row.get(0)).collect()
}

struct Output<W: Write> {
    writer: io::BufWriter<W>,
    digest: Context,
}

impl<W: Write> Output<W> {
    fn line(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_vec(value).map_err(|error| Error::Backup(error.to_string()))?;
        line.push(b'\n');
        self.digest.update(&line);
        self.writer.write_all(&line).map_err(|error| unwritable(&error))
    }
}

fn unwritable(error: &io::Error) -> Error {
    Error::Backup(format!("the backup can't be written: {error}"))
}

fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Integer(integer) => (*integer).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Blob(bytes) => serde_json::json!({ "base64": STANDARD.encode(bytes) }),
    }
}

pub(crate) fn from_json(value: serde_json::Value) -> Result<Value, Error> {
    let strange = || Error::Backup("the backup holds a value of no known kind".to_owned());
    match value {
        serde_json::Value::Null => Ok(Value::Null),
        serde_json::Value::Number(number) => number.as_i64().map(Value::Integer).ok_or_else(strange),
        serde_json::Value::String(text) => Ok(Value::Text(text)),
        serde_json::Value::Object(object) => {
            let encoded = object.get("base64").and_then(|encoded| encoded.as_str()).ok_or_else(strange)?;
            STANDARD.decode(encoded).map(Value::Blob).map_err(|_| strange())
        }
        serde_json::Value::Bool(_) | serde_json::Value::Array(_) => Err(strange()),
    }
}
