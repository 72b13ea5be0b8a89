//! Loads a backup into an empty database: everything in one transaction that commits only when the counts and the checksum
//! are right, so a damaged backup leaves nothing behind. Migrations newer than the backup run afterwards.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{Context, SHA256};

use crate::backup::{FORMAT, Header, LEFT_OUT, Summary, TableHeader, Trailer, VERSION, columns_of, from_json};
use crate::clock::{Clock, EntropySource};
use crate::damage::{Damage, Watched, holds_nul};
use crate::error::{Error, SqlKind};
use crate::lease;
use crate::migrate::{BEGUN, Schema, hex, latest_applied, table_names};
use crate::queries::jobs;
use crate::settings::{Dialect, Settings};
use crate::sql::Value;
use crate::store::Store;
use crate::tx::Tx;

/// No row that this program writes comes near it; a damaged file must not fill the memory.
const LINE_LIMIT: u64 = 64 * 1024 * 1024;
/// What is collected before it is sent: so many rows, or about so many bytes.
const BATCH: usize = 200;
const BATCH_BYTES: usize = 4 << 20;
/// How the last line begins, which holds the checksum of the lines before it.
const TRAILER: &[u8] = b"{\"rows\":";

/// The database must not be in use and must hold nothing: what holds something is left as it is. Afterwards it has the newest
/// schema.
pub async fn restore(
    settings: Settings,
    schema: Schema,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn EntropySource>,
    reader: impl BufRead + Send + 'static,
) -> Result<Summary, Error> {
    let mut input = Input::new(reader);
    let header = input.header()?;
    let known = schema.migrations.iter().position(|migration| migration.number == header.schema);
    let position = known.ok_or_else(|| unknown_schema(header.schema, schema.latest()))?;
    require_empty(&settings, &schema, &clock, &entropy).await?;
    let at_the_time = Schema { migrations: &schema.migrations[..=position], tables: schema.tables };

    let opened = Store::open_with(settings.clone(), at_the_time, Arc::clone(&clock), Arc::clone(&entropy)).await;
    let store = opened.map_err(|error| match error {
        Error::NewerSchema { .. } => not_empty("a restore that failed has left the tables of a newer version in it"),
        other => other,
    })?;
    let loaded = load(&store, header, input).await;
    store.close().await;
    let summary = loaded?;

    let migrated = Store::open_with(settings, schema, clock, entropy).await.map_err(|error| {
        let what = "everything was restored, but its tables can't be brought to this version yet";
        Error::Backup(format!("{what}: {error}. `dalasi serve` will do so"))
    });
    migrated?.close().await;
    Ok(summary)
}

/// Looks before anything is made or migrated. Tables of this program without a row are what a restore leaves that failed: the
/// next one may have them.
async fn require_empty(
    settings: &Settings,
    schema: &Schema,
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn EntropySource>,
) -> Result<(), Error> {
    let as_it_is = Schema { migrations: &[], tables: &[] };
    let store = Store::open_with(settings.clone(), as_it_is, Arc::clone(clock), Arc::clone(entropy)).await?;
    let tables = schema.tables;
    let looked = store.read(move |tx| {
        let present = table_names(tx)?;
        let is_ours = |name: &str| tables.contains(&name) || LEFT_OUT.contains(&name);
        let is_begun = present.iter().any(|name| name == BEGUN);
        match present.iter().find(|name| !is_begun || !is_ours(name)) {
            Some(another) => Err(not_empty(&format!("there is a table {another} of another program"))),
            None => require_no_rows(tx, present.iter().filter(|name| tables.contains(&name.as_str()))),
        }
    });
    let looked = looked.await;
    store.close().await;
    looked
}

fn require_no_rows<'n>(tx: &mut Tx<'_>, tables: impl IntoIterator<Item = &'n String>) -> Result<(), Error> {
    for table in tables {
        if count_rows(tx, table)? > 0 {
            return Err(not_empty(&format!("{table} has rows")));
        }
    }
    Ok(())
}

fn not_empty(what: &str) -> Error {
    Error::Backup(format!("the database is not empty: {what}"))
}

async fn load<R: BufRead + Send + 'static>(store: &Store, header: Header, input: Input<R>) -> Result<Summary, Error> {
    let input = Mutex::new(Some(input));
    store
        .write(move |tx| {
            tx.unhurried();
            let input = input.lock().unwrap_or_else(PoisonError::into_inner).take();
            let input =
                input.ok_or_else(|| Error::Unavailable("the connection broke; nothing was restored".to_owned()))?;
            load_tables(tx, &header, input)
        })
        .await
}

fn load_tables(tx: &mut Tx<'_>, header: &Header, mut input: Input<impl BufRead>) -> Result<Summary, Error> {
    // A server that starts meanwhile would install itself beside what is loaded; so it waits, and finds an installation.
    lease::take(tx, lease::INSTALLATION, lease::INSTALLATION, 0)?;
    let present: Vec<_> = table_names(tx)?.into_iter().filter(|name| !LEFT_OUT.contains(&name.as_str())).collect();
    require_no_rows(tx, &present)?;
    require_schema(tx, header)?;
    let mut loading: Option<Loading> = None;
    let (mut rows, mut damage) = (BTreeMap::new(), Damage::default());
    let (mut unflushed, mut unflushed_bytes) = (0, 0);
    loop {
        let line = input.line()?;
        if line.starts_with(b"[") {
            let loading = loading.as_mut().ok_or_else(|| damaged("a row before its table"))?;
            loading.insert(tx, &line, &mut damage)?;
            (unflushed, unflushed_bytes) = (unflushed + 1, unflushed_bytes + line.len());
            if unflushed == BATCH || unflushed_bytes >= BATCH_BYTES {
                tx.flush().map_err(|error| loading.refused(error, None))?;
                (unflushed, unflushed_bytes) = (0, 0);
            }
            continue;
        }
        if let Some(done) = loading.take() {
            tx.flush().map_err(|error| done.refused(error, None))?;
            (unflushed, unflushed_bytes) = (0, 0);
            rows.insert(done.table, done.count);
        }
        if line.starts_with(b"{\"table\":") {
            let table: TableHeader = serde_json::from_slice(&line).map_err(|_| damaged("a table's header"))?;
            if !present.contains(&table.table) || rows.contains_key(&table.table) {
                return Err(damaged(&format!("the table {}", table.table)));
            }
            loading = Some(Loading::start(tx, table)?);
            continue;
        }
        let sha256 = input.sha256();
        let mut trailer =
            serde_json::to_vec(&Trailer { rows: &rows, sha256: &sha256 }).map_err(|_| damaged("the trailer"))?;
        trailer.push(b'\n');
        if line != trailer || !input.is_at_end()? {
            return Err(damaged("its counts or its checksum"));
        }
        for table in &present {
            let (found, expected) = (count_rows(tx, table)?, rows.get(table));
            match expected {
                Some(expected) if found == *expected => {}
                Some(expected) if found > *expected => {
                    return Err(written_beside(&format!("{table} has more rows than the backup")));
                }
                _ => return Err(damaged(&format!("the number of rows of {table}"))),
            }
        }
        require_schema(tx, header)?;
        if present.iter().any(|table| table == "jobs") {
            jobs::count_as_begun(tx)?;
        }
        sample(tx, &present)?;
        return Ok(Summary { schema: header.schema, created_at: header.created_at, rows, sha256, damage });
    }
}

/// PostgreSQL would go by tables without a row until it looks by itself, which it does after a minute or never.
fn sample(tx: &mut Tx<'_>, tables: &[String]) -> Result<(), Error> {
    if tx.dialect() == Dialect::Postgres {
        for table in tables {
            tx.execute(&format!("analyze {table}"), &[])?;
        }
    }
    Ok(())
}

struct Loading {
    table: String,
    insert: String,
    columns: usize,
    watched: Watched,
    count: u64,
}

impl Loading {
    fn start(tx: &mut Tx<'_>, header: TableHeader) -> Result<Self, Error> {
        let known = columns_of(tx, &header.table)?;
        if known != header.columns {
            return Err(damaged(&format!("the columns of {}", header.table)));
        }
        let placeholders: Vec<_> = (1..=known.len()).map(|number| format!("${number}")).collect();
        let insert =
            format!("insert into {} ({}) values ({})", header.table, known.join(", "), placeholders.join(", "));
        let watched = Watched::of(&known);
        Ok(Self { table: header.table, insert, columns: known.len(), watched, count: 0 })
    }

    fn insert(&mut self, tx: &mut Tx<'_>, line: &[u8], damage: &mut Damage) -> Result<(), Error> {
        let fields: Vec<serde_json::Value> = serde_json::from_slice(line).map_err(|_| damaged("a row"))?;
        if fields.len() != self.columns {
            return Err(damaged("the length of a row"));
        }
        let values = fields.into_iter().map(from_json).collect::<Result<Vec<Value>, _>>()?;
        damage.look_at(&self.table, &self.watched, &values);
        self.count += 1;
        // PostgreSQL is sent several together, but for what it is known to refuse.
        let is_alone = tx.dialect() == Dialect::Sqlite || values.iter().any(holds_nul);
        let appended = tx.append_as_found(&self.table, &self.insert, &values);
        appended.map_err(|error| self.refused(error, is_alone.then_some(values.as_slice())))
    }

    /// What the database says no to, with the row it says that of; where several were sent together, with the last of them. Anything
    /// else that goes wrong is of no row.
    fn refused(&self, error: Error, row: Option<&[Value]>) -> Error {
        let Error::Sql { kind, message } = error else { return error };
        let (table, count) = (&self.table, self.count);
        let Some(row) = row else {
            return Error::Sql {
                kind,
                message: format!("{table}, among the rows as far as number {count}: {message}"),
            };
        };
        let id = match self.watched.id.and_then(|id| row.get(id)) {
            Some(Value::Text(id)) if id.bytes().all(|letter| letter.is_ascii_graphic()) => format!(" ({id})"),
            Some(_) | None => String::new(),
        };
        let what = format!("row {count} of {table}{id}: {message}");
        match kind {
            SqlKind::Type if row.iter().any(holds_nul) => {
                Error::Backup(format!("{what}, which PostgreSQL can't store; the embedded database can"))
            }
            _ => Error::Sql { kind, message: what },
        }
    }
}

fn count_rows(tx: &mut Tx<'_>, table: &str) -> Result<u64, Error> {
    let count: i64 = tx.query_one(&format!("select count(*) from {table}"), &[])?.get(0)?;
    u64::try_from(count).map_err(|_| Error::Corrupt("a negative count".to_owned()))
}

fn unknown_schema(found: i64, known: i64) -> Error {
    if found < known {
        return damaged("its schema");
    }
    let what = format!("the backup has schema {found}, this program knows schemas up to {known}");
    Error::Backup(format!("{what}: it was made by a newer version, so restore it with that one"))
}

fn damaged(what: &str) -> Error {
    Error::Backup(format!("the backup is damaged or incomplete ({what}); nothing was restored"))
}

fn written_beside(what: &str) -> Error {
    Error::Backup(format!(
        "somebody else writes into this database ({what}): stop every server on it first; nothing was restored"
    ))
}

/// A server of a newer version that starts meanwhile brings the empty tables to its own; from here on nobody changes one of them, but
/// may make others.
fn require_schema(tx: &mut Tx<'_>, header: &Header) -> Result<(), Error> {
    match latest_applied(tx)? {
        latest if latest == header.schema => Ok(()),
        latest => Err(written_beside(&format!("its tables were brought to schema {latest}"))),
    }
}

pub(crate) struct Input<R: BufRead> {
    reader: R,
    digest: Context,
}

impl<R: BufRead> Input<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, digest: Context::new(&SHA256) }
    }

    /// The SHA-256 of the lines so far, but for a trailer, in hex.
    pub(crate) fn sha256(&self) -> String {
        hex(self.digest.clone().finish().as_ref())
    }

    pub(crate) fn header(&mut self) -> Result<Header, Error> {
        let header: Header = self.parse_line("header")?;
        if header.format != FORMAT || header.version != VERSION {
            return Err(Error::Backup(format!("this is not a {FORMAT} of version {VERSION}")));
        }
        Ok(header)
    }

    pub(crate) fn line(&mut self) -> Result<Vec<u8>, Error> {
        let mut line = Vec::new();
        let read = self.reader.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut line);
        read.map_err(|error| Error::Backup(format!("the backup can't be read: {error}")))?;
        if line.last() != Some(&b'\n') {
            return Err(damaged("its end is missing"));
        }
        if !line.starts_with(TRAILER) {
            self.digest.update(&line);
        }
        Ok(line)
    }

    fn parse_line<T: serde::de::DeserializeOwned>(&mut self, what: &str) -> Result<T, Error> {
        serde_json::from_slice(&self.line()?).map_err(|_| damaged(what))
    }

    pub(crate) fn is_at_end(&mut self) -> Result<bool, Error> {
        let rest =
            self.reader.fill_buf().map_err(|error| Error::Backup(format!("the backup can't be read: {error}")))?;
        Ok(rest.is_empty())
    }
}
