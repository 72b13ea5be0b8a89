//! One SQLite connection: its settings, its statements, and what its errors mean.

use std::collections::HashMap;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::planted;
use foldhash::fast::FixedState;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, OpenFlags, ffi};

use crate::error::{Error, SqlKind};
use crate::settings::Dialect;
use crate::settled::Settled;
use crate::sql::text::numbered_placeholders;
use crate::sql::{Part, Room, Row, Value};
use crate::sqlite::key_index::KeyIndex;
use crate::totals::{Mark, Totals};
use crate::tx::{Conn, EachRow};

/// Versions before this one can corrupt a database whose connections write and checkpoint at the same time.
const OLDEST_VERSION: i32 = 3_051_003;
pub(super) const BUSY: Duration = Duration::from_secs(5);
const STATEMENTS: usize = 256;
const SYNC_FAILED: &str = "the disk failed to sync; stopping, so that the restart recovers from what is really stored";
const COMMIT_UNTOLD: &str = "a commit failed behind its sync; stopping, because the restart may find it stored";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A commit is on the disk before it is answered.
    Full,
    /// Tests only: the file is gone with the process anyway.
    None,
}

pub(crate) struct Connection {
    pub(crate) sqlite: rusqlite::Connection,
    prepared: Texts,
    /// Without them a part of a transaction can't be undone: whoever needs that gets a conflict, and runs again with them.
    pub(crate) has_savepoints: bool,
    /// The running closure asked for all the time it needs.
    pub(crate) is_load: bool,
    totals: Totals,
    /// Of a connection that writes.
    settled: Option<Settled>,
    key_index: Option<KeyIndex>,
}

/// By the text of the statement: our own, so nobody chooses texts that collide.
type Texts = HashMap<String, Prepared, FixedState>;

/// What is worth keeping beside SQLite's own prepared statement.
struct Prepared {
    spelled: String,
    columns: Option<Arc<[String]>>,
}

pub(crate) fn check_version(number: i32) -> Result<(), Error> {
    if number >= OLDEST_VERSION {
        return Ok(());
    }
    Err(Error::Unusable(format!(
        "this program was built with SQLite {number}, which can corrupt a database: build it with 3.51.3 or newer"
    )))
}

impl Connection {
    pub(crate) fn writing(
        path: &Path,
        durability: Durability,
        allow_unsafe: bool,
        secondary: bool,
    ) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Self::open(path, flags, 16 * 1024)?;
        connection.settled = Some(Settled::default());
        connection.key_index = Some(KeyIndex::new());
        if durability == Durability::Full {
            keep_temporary_files_beside(path, &connection.sqlite);
        }
        let (sqlite, synchronous) = (&connection.sqlite, synchronous(durability));
        let configure = || -> rusqlite::Result<(String, i64)> {
            // Checkpoints belong to a thread of their own, and in a second process to nobody.
            sqlite.pragma_update(None, "wal_autocheckpoint", 0)?;
            if secondary {
                sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            }
            let journal = sqlite.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))?;
            sqlite.pragma_update(None, "synchronous", synchronous)?;
            sqlite.pragma_update(None, "foreign_keys", true)?;
            sqlite.pragma_update(None, "journal_size_limit", super::checkpoint::LOG_KEPT_BYTES)?;
            Ok((journal, sqlite.pragma_query_value(None, "synchronous", |row| row.get(0))?))
        };
        let found = configure().map_err(error)?;
        check_durability((&found.0, found.1), synchronous, allow_unsafe)?;
        Ok(connection)
    }

    pub(crate) fn reading(path: &Path) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Self::open(path, flags, 4 * 1024)?;
        connection.sqlite.pragma_update(None, "query_only", true).map_err(error)?;
        Ok(connection)
    }

    #[cfg(feature = "inline")]
    pub(crate) fn in_memory() -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Self::open(Path::new(":memory:"), flags, 64 * 1024)?;
        connection.totals = Totals::of_short_lists();
        connection.settled = Some(Settled::default());
        connection.key_index = Some(KeyIndex::of_short_runs());
        connection.sqlite.pragma_update(None, "foreign_keys", true).map_err(error)?;
        Ok(connection)
    }

    fn open(path: &Path, flags: OpenFlags, cache_kib: i64) -> Result<Self, Error> {
        let open = || -> rusqlite::Result<rusqlite::Connection> {
            let sqlite = rusqlite::Connection::open_with_flags(path, flags)?;
            sqlite.busy_timeout(BUSY)?;
            // Otherwise whatever has a parameter behind `limit` is compiled anew each time it is given one.
            sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            sqlite.pragma_update(None, "cache_size", -cache_kib)?;
            sqlite.set_prepared_statement_cache_capacity(STATEMENTS);
            Ok(sqlite)
        };
        let sqlite = open().map_err(|fault| match fault.sqlite_error_code() {
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                Error::Unavailable(format!("{} can't be opened ({fault}). {}", path.display(), super::file::WHOSE))
            }
            _ => error(fault),
        })?;
        let (prepared, totals) = (Texts::default(), Totals::new());
        Ok(Self { sqlite, prepared, has_savepoints: true, is_load: false, totals, settled: None, key_index: None })
    }

    /// One of the driver's own statements: begin, commit, savepoints.
    pub(crate) fn command(&self, sql: &str) -> Result<(), Error> {
        self.sqlite.prepare_cached(sql).and_then(|mut statement| statement.execute([])).map_err(error)?;
        Ok(())
    }

    /// Ends the transaction that writes. What SQLite does when the log is synced, in the log's shared index and in memory, can fail a
    /// commit that the disk has: the next process would play it again from the log. Nobody can be told that nothing was stored.
    pub(super) fn commit(&self) -> Result<(), Error> {
        let committed = self.sqlite.prepare_cached("commit").and_then(|mut statement| statement.execute([]));
        committed.map(drop).map_err(|failed| match failed.sqlite_error() {
            Some(code) if comes_behind_the_sync(code.extended_code) => end(COMMIT_UNTOLD, &failed.to_string()),
            Some(_) | None => error(failed),
        })
    }

    /// See [`Settled::begin`].
    pub(super) fn settled_begins(&mut self) {
        if let Some(settled) = &mut self.settled {
            settled.begin();
        }
    }

    /// What is known of rows that somebody else may have written.
    pub(crate) fn forget(&mut self) {
        if let Some(settled) = &mut self.settled {
            settled.forget();
        }
        if let Some(key_index) = &mut self.key_index {
            key_index.forget();
        }
    }

    /// A statement is about to be run that may change rows.
    fn changes(&mut self, sql: &str) {
        if let Some(settled) = &mut self.settled {
            settled.changed(sql);
        }
    }

    fn rows(
        &mut self,
        sql: &str,
        values: &[Value],
        damaged: Damaged,
        page: usize,
        each: &mut dyn FnMut(Vec<Row>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        // Some give back what they have changed.
        if !sql.starts_with("select") {
            self.changes(sql);
        }
        let prepared = prepared(&mut self.prepared, sql);
        let mut statement = self.sqlite.prepare_cached(&prepared.spelled).map_err(error)?;
        let count = statement.column_count();
        let columns = match &prepared.columns {
            Some(columns) if columns.len() == count => Arc::clone(columns),
            _ => {
                let columns: Arc<[String]> = statement.column_names().into_iter().map(str::to_owned).collect();
                prepared.columns = Some(Arc::clone(&columns));
                columns
            }
        };
        let mut cursor = statement.query(rusqlite::params_from_iter(values)).map_err(error)?;
        let mut rows = Vec::new();
        while let Some(found) = cursor.next().map_err(error)? {
            let values = (0..count)
                .map(|index| value(found.get_ref(index).map_err(error)?, damaged))
                .collect::<Result<_, _>>()?;
            rows.push(Row::new(Arc::clone(&columns), values));
            if rows.len() == page && each(std::mem::take(&mut rows))?.is_break() {
                return Ok(());
            }
        }
        if rows.is_empty() { Ok(()) } else { each(rows).map(drop) }
    }
}

fn prepared<'t>(texts: &'t mut Texts, sql: &str) -> &'t mut Prepared {
    // Texts are constants, so this is a net under the case that somebody builds them.
    if texts.len() > 4 * STATEMENTS {
        texts.clear();
    }
    if !texts.contains_key(sql) {
        let spelled = numbered_placeholders(sql).into_owned();
        texts.insert(sql.to_owned(), Prepared { spelled, columns: None });
    }
    texts.get_mut(sql).expect("it was inserted a line above")
}

impl Conn for Connection {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        let mut all = Vec::new();
        self.rows(sql, values, Damaged::AsBytes, usize::MAX, &mut |rows| {
            all = rows;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    fn query_part(&mut self, sql: &str, values: &[Value], most_bytes: usize) -> Result<Part, Error> {
        let (mut part, mut room) = (Part::default(), Room::of(most_bytes));
        self.rows(sql, values, Damaged::AsBytes, 1, &mut |mut rows| {
            part.is_cut = !rows.iter().all(|row| room.takes(row.bytes()));
            if part.is_cut {
                return Ok(ControlFlow::Break(()));
            }
            part.rows.append(&mut rows);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(part)
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, Error> {
        self.changes(sql);
        let prepared = prepared(&mut self.prepared, sql);
        let touched = self
            .sqlite
            .prepare_cached(&prepared.spelled)
            .and_then(|mut statement| statement.execute(rusqlite::params_from_iter(values)))
            .map_err(error)?;
        Ok(touched as u64)
    }

    fn append(&mut self, _table: &str, sql: &str, values: &[Value]) -> Result<(), Error> {
        self.execute(sql, values).map(drop)
    }

    fn guarded(&mut self, _table: &str, sql: &str, values: &[Value]) -> Result<(), Error> {
        if self.execute(sql, values)? == 1 { Ok(()) } else { Err(Error::Conflict) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn define(&mut self, sql: &str) -> Result<(), Error> {
        self.changes(sql);
        self.sqlite.execute_batch(sql).map_err(error)
    }

    fn each_row(&mut self, sql: &str, each: &mut EachRow<'_>) -> Result<(), Error> {
        self.rows(sql, &[], Damaged::IsError, 1, &mut |rows| {
            rows.into_iter().try_for_each(&mut *each).map(ControlFlow::Continue)
        })
    }

    fn unhurried(&mut self) {
        self.is_load = true;
    }

    fn integrity_check(&mut self, most: u32) -> Result<Vec<String>, Error> {
        let mut statement = self.sqlite.prepare(&format!("pragma integrity_check({most})")).map_err(error)?;
        let found = statement.query_map([], |row| row.get(0)).map_err(error)?;
        let found = found.collect::<rusqlite::Result<Vec<String>>>().map_err(error)?;
        Ok(if found == ["ok"] { Vec::new() } else { found })
    }

    fn savepoint(&mut self, depth: u32) -> Result<(), Error> {
        if self.has_savepoints { self.command(&format!("savepoint part_{depth}")) } else { Ok(()) }
    }

    fn release(&mut self, depth: u32) -> Result<(), Error> {
        if self.has_savepoints { self.command(&format!("release part_{depth}")) } else { Ok(()) }
    }

    fn rollback_to(&mut self, depth: u32) -> Result<(), Error> {
        if !self.has_savepoints {
            return Err(Error::Conflict);
        }
        self.command(&format!("rollback to part_{depth}"))?;
        self.release(depth)
    }

    /// One number grows with the commits of others, the other with rows that this connection has touched itself.
    fn mark(&mut self) -> Result<Option<Mark>, Error> {
        let mut number = |sql| self.query(sql, &[])?.first().map_or(Ok(0), |row| row.get::<i64>(0));
        let (others, own) = (number("pragma data_version")?, number("select total_changes()")?);
        Ok(Some(Mark(format!("{others} {own}"))))
    }

    fn totals(&mut self) -> &mut Totals {
        &mut self.totals
    }

    fn settled(&mut self) -> Option<&mut Settled> {
        self.settled.as_mut()
    }

    fn key_index(&mut self) -> Option<&mut KeyIndex> {
        self.key_index.as_mut()
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(integer) => ValueRef::Integer(*integer),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A text that isn't UTF-8: SQLite doesn't look, and here it can be nothing but damage.
#[derive(Clone, Copy)]
enum Damaged {
    /// Whoever reads that column is told, and the other rows can be read.
    AsBytes,
    /// For copies, which it would go into.
    IsError,
}

fn value(found: ValueRef<'_>, damaged: Damaged) -> Result<Value, Error> {
    match found {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(integer) => Ok(Value::Integer(integer)),
        ValueRef::Text(bytes) => match (String::from_utf8(bytes.to_vec()), damaged) {
            (Ok(text), _) => Ok(Value::Text(text)),
            (Err(not_utf8), Damaged::AsBytes) => Ok(Value::Blob(not_utf8.into_bytes())),
            (Err(_), Damaged::IsError) => Err(Error::Corrupt("a text that is not UTF-8".to_owned())),
        },
        ValueRef::Blob(bytes) => Ok(Value::Blob(bytes.to_vec())),
        ValueRef::Real(_) => Err(Error::sql(SqlKind::Type, "a statement returned a floating-point number")),
    }
}

/// What a savepoint undoes and a large sort go to a file, which SQLite unlinks as soon as it is open; and the folder of the
/// database may be the only one that can be written to. It holds for the whole process.
fn keep_temporary_files_beside(path: &Path, sqlite: &rusqlite::Connection) {
    let folder = path.parent().map_or(Path::new("."), |folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    // A folder that can't be written to can't hold the log either, which says so itself.
    if let Some(folder) = folder.to_str() {
        let _ = sqlite.pragma_update(None, "temp_store_directory", folder);
    }
}

fn synchronous(durability: Durability) -> i64 {
    match durability {
        Durability::Full if planted!(Defect::SynchronousNormal) => 1,
        Durability::Full if planted!(Defect::SynchronousOff) => 0,
        Durability::Full => 2,
        Durability::None => 0,
    }
}

/// Asked back, because SQLite answers a setting that it can't take with the one that it kept.
fn check_durability(found: (&str, i64), synchronous: i64, allow_unsafe: bool) -> Result<(), Error> {
    if allow_unsafe || (found.0 == "wal" && found.1 >= synchronous) {
        return Ok(());
    }
    Err(Error::Unsafe(format!(
        "SQLite runs with journal_mode={} and synchronous={}, so that acknowledged writes can be lost: move the data folder to a local disk, or start with --unsafe",
        found.0, found.1
    )))
}

/// How a commit can fail whose frames and mark are in the log and synced. It may have failed before: then nothing is found.
fn comes_behind_the_sync(extended_code: i32) -> bool {
    matches!(
        extended_code,
        ffi::SQLITE_IOERR_SHMOPEN
            | ffi::SQLITE_IOERR_SHMSIZE
            | ffi::SQLITE_IOERR_SHMMAP
            | ffi::SQLITE_IOERR_SHMLOCK
            | ffi::SQLITE_IOERR_NOMEM
            | ffi::SQLITE_NOMEM
    )
}

/// Nobody who waits is answered.
fn end(why: &str, message: &str) -> ! {
    tracing::error!(message, "{why}");
    // A command has no log: nobody else would say why it ended.
    if !tracing::event_enabled!(tracing::Level::ERROR) {
        let _ = writeln!(std::io::stderr(), "dalasi: {why} ({message})");
    }
    std::process::exit(crate::EXIT_SYNC_FAILED)
}

/// Ends the process on a failed sync: the kernel may have dropped the pages, and trying again would report success.
pub(crate) fn error(error: rusqlite::Error) -> Error {
    let message = error.to_string();
    let Some(code) = error.sqlite_error() else {
        return match error {
            rusqlite::Error::InvalidParameterCount(..) => Error::sql(SqlKind::Type, message),
            _ => Error::sql(SqlKind::Other, message),
        };
    };
    if matches!(code.extended_code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) {
        end(SYNC_FAILED, &message);
    }
    let kind = match code.extended_code {
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => {
            SqlKind::Unique
        }
        ffi::SQLITE_CONSTRAINT_CHECK => SqlKind::Check,
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => SqlKind::ForeignKey,
        ffi::SQLITE_CONSTRAINT_NOTNULL => SqlKind::NotNull,
        ffi::SQLITE_CONSTRAINT_DATATYPE => SqlKind::Type,
        _ => SqlKind::Other,
    };
    match code.code {
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::DiskFull
        | ErrorCode::SystemIoFailure
        | ErrorCode::OutOfMemory
        | ErrorCode::CannotOpen
        | ErrorCode::PermissionDenied => Error::Unavailable(message),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Error::Corrupt(message),
        ErrorCode::TypeMismatch | ErrorCode::ParameterOutOfRange => Error::sql(SqlKind::Type, message),
        _ => Error::sql(kind, message),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::totals::Total;
    use crate::tx::{Access, Tx};

    #[test]
    fn versions_that_corrupt_are_refused() {
        assert!(matches!(check_version(3_051_002), Err(Error::Unusable(_))));
        assert!(check_version(3_051_003).is_ok());
        assert!(check_version(rusqlite::version_number()).is_ok());
    }

    #[test]
    fn what_nobody_has_changed_is_counted_once() {
        let folder = std::env::temp_dir().join(format!("dalasi-totals-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let writing = rusqlite::Connection::open(folder.join("file")).unwrap();
        writing.execute_batch("pragma journal_mode = wal; create table things (id bigint)").unwrap();
        let mut reading = Connection::reading(&folder.join("file")).unwrap();
        let mut counted = 0;
        let mut total = || {
            reading.command("begin").unwrap();
            let count = |tx: &mut Tx<'_>| {
                counted += 1;
                let row = tx.query_one("select 5000 + count(*) as total from things", &[])?;
                Ok(Total { count: row.get("total")?, from: 0, until: None })
            };
            let total = Tx::new(&mut reading, Access::Read, 0, [0; 32]).total("things", &[], count).unwrap();
            reading.command("rollback").unwrap();
            (total.count, counted)
        };
        assert_eq!([total(), total(), total()], [(5000, 1); 3]);
        writing.execute_batch("insert into things (id) values (1)").unwrap();
        assert_eq!([total(), total()], [(5001, 2); 2]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_statement_is_compiled_once_whatever_it_is_given() {
        let folder = std::env::temp_dir().join(format!("dalasi-plans-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let writing = rusqlite::Connection::open(folder.join("file")).unwrap();
        let schema = "create table things (id bigint, kind text); create index red on things (id) where kind = 'red'";
        writing.execute_batch(schema).unwrap();
        let mut reading = Connection::reading(&folder.join("file")).unwrap();
        let text = "select id from things where kind = $1 and id > $2 order by id limit $3";
        for (kind, number) in [("red", 1), ("blue", 2), ("red", 3)] {
            reading.query(text, &[kind.into(), number.into(), number.into()]).unwrap();
        }
        let spelled = prepared(&mut reading.prepared, text).spelled.clone();
        let statement = reading.sqlite.prepare_cached(&spelled).unwrap();
        assert_eq!(statement.get_status(StatementStatus::Run), 3);
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        drop(statement);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn temporary_files_stand_beside_the_database() {
        let folder = std::env::temp_dir().join(format!("dalasi-beside-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let folder = folder.canonicalize().unwrap();
        crate::sqlite::file::create(&folder.join("file")).unwrap();
        let writing = Connection::writing(&folder.join("file"), Durability::Full, false, false).unwrap();
        let fill = "create table things (id integer primary key, body text);
            with recursive ids (id) as (select 1 union all select id + 1 from ids where id < 200)
            insert into things select id, printf('%4000d', id) from ids";
        writing.sqlite.execute_batch(fill).unwrap();
        // More pages to be put back than are kept in memory.
        writing.sqlite.execute_batch("begin; savepoint part_1; update things set body = body || 'a'").unwrap();
        let opened = std::fs::read_dir("/proc/self/fd").unwrap();
        let mut opened = opened.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
        let is_temporary = |name: &Path| name.to_string_lossy().contains("/etilqs_");
        assert!(opened.any(|file| file.starts_with(&folder) && is_temporary(&file)));
        let left = std::fs::read_dir(&folder).unwrap().any(|entry| is_temporary(&entry.unwrap().path()));
        assert!(!left, "it goes with the process, however that ends");
        drop(writing);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn settings_that_lose_writes_are_refused() {
        assert!(check_durability(("wal", 2), 2, false).is_ok());
        assert!(matches!(check_durability(("delete", 2), 2, false), Err(Error::Unsafe(_))));
        assert!(matches!(check_durability(("wal", 1), 2, false), Err(Error::Unsafe(_))));
        assert!(check_durability(("wal", 1), 2, true).is_ok());
    }
}
