//! A driver without threads, for simulations: a transaction runs where and when it is asked for, over a SQLite database in
//! memory, and whoever drives the simulation decides when the storage says no.
//!
//! A history is one outer transaction that is rolled back at its end, so that the next one begins with the same rows and
//! with statements that are prepared already. What a command commits is a savepoint in it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Monotone;
use crate::error::Error;
use crate::job::{Job, MAX_RUNS, Verdict};
use crate::lease;
use crate::settings::Dialect;
use crate::settled::Settled;
use crate::sql::{Part, Row, Value};
use crate::sqlite::InlineConnection as Connection;
use crate::sqlite::key_index::{self, KeyIndex};
use crate::totals::{Mark, Totals};
use crate::tx::{Access, Conn, EachRow, Tx};

/// When the storage can say no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Begin,
    Statement,
    Commit,
}

/// How it says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strike {
    /// Nothing of the transaction is kept.
    Unavailable,
    /// Another transaction was faster: the closure runs again.
    Conflict,
    /// At a commit: all of it is kept, and nobody is told so.
    UnknownCommit,
}

pub trait Interference: Send + Sync + 'static {
    /// Asked at each moment of a transaction that writes.
    fn strike(&self, moment: Moment) -> Option<Strike>;
}

/// A database that outlives the stores that are opened over it, as a file outlives its processes.
#[derive(Clone)]
pub struct InlineDatabase {
    connection: Arc<Mutex<Connection>>,
}

impl InlineDatabase {
    pub fn in_memory() -> Result<Self, Error> {
        Ok(Self { connection: Arc::new(Mutex::new(Connection::in_memory()?)) })
    }

    pub fn begin_history(&self) -> Result<(), Error> {
        self.lock().command("begin immediate")
    }

    /// Whatever happened since is gone.
    pub fn end_history(&self) -> Result<(), Error> {
        let mut connection = self.lock();
        connection.totals().forget();
        connection.forget();
        connection.command("rollback")
    }

    /// A process begins to serve it, and the one before is dead. As when a file is opened, nothing goes wrong here.
    pub(crate) fn end_leases(&self, now_us: i64) -> Result<(), Error> {
        let mut connection = self.lock();
        connection.forget();
        lease::end_all(&mut Tx::new(&mut *connection, Access::Write, now_us, [0; 32]))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One process over the database.
pub(crate) struct Inline {
    database: InlineDatabase,
    clock: Arc<Monotone>,
    interference: Arc<dyn Interference>,
}

impl Inline {
    pub(crate) fn new(database: InlineDatabase, clock: Arc<Monotone>, interference: Arc<dyn Interference>) -> Self {
        Self { database, clock, interference }
    }

    pub(crate) fn run(&self, access: Access, mut job: Box<dyn Job>) {
        match self.transact(access, job.as_mut()) {
            Ok(()) => job.answer(),
            Err(error) => job.refuse(error),
        }
    }

    fn transact(&self, access: Access, job: &mut dyn Job) -> Result<(), Error> {
        let mut connection = self.database.lock();
        if access == Access::Write {
            build_run(&mut connection)?;
        }
        for _ in 0..MAX_RUNS {
            match self.strike(access, Moment::Begin) {
                Some(Strike::Conflict) => continue,
                Some(Strike::Unavailable | Strike::UnknownCommit) => return Err(unavailable()),
                None => {}
            }
            connection.command("savepoint call")?;
            if let Some(settled) = connection.settled() {
                settled.begin();
            }
            let (now_us, seed) = (self.clock.now_us(), job.seed());
            let mut struck = Struck { connection: &mut connection, inline: self, access };
            let verdict = job.run(&mut Tx::new(&mut struck, access, now_us, seed));
            let strike = match (&verdict, access) {
                (Verdict::Commit, Access::Write) => self.strike(access, Moment::Commit),
                _ => None,
            };
            let is_kept = matches!((&verdict, access), (Verdict::Commit, Access::Write))
                && matches!(strike, None | Some(Strike::UnknownCommit));
            if !is_kept {
                connection.command("rollback to call")?;
            }
            connection.command("release call")?;
            match (verdict, strike) {
                (_, Some(Strike::UnknownCommit)) => return Err(Error::UnknownCommit),
                (_, Some(Strike::Unavailable)) if domain::planted!(Defect::AnswerBeforeCommit) => return Ok(()),
                (_, Some(Strike::Unavailable)) => return Err(unavailable()),
                (_, Some(Strike::Conflict)) | (Verdict::Failed(Error::Conflict), None) => {}
                (Verdict::Commit | Verdict::RollBack, None) => return Ok(()),
                (Verdict::Failed(error), None) => return Err(error),
            }
        }
        Err(Error::Conflict)
    }

    fn strike(&self, access: Access, moment: Moment) -> Option<Strike> {
        match access {
            Access::Write => self.interference.strike(moment),
            Access::Read => None,
        }
    }
}

/// As between two batches of the driver with threads.
fn build_run(connection: &mut Connection) -> Result<(), Error> {
    if connection.key_index().is_some_and(|index| index.is_due()) {
        let built = key_index::build(&mut Tx::new(connection, Access::Write, 0, [0; 32]))?;
        if let Some(index) = connection.key_index() {
            index.built(built);
        }
    }
    Ok(())
}

fn unavailable() -> Error {
    Error::Unavailable("the storage said no".to_owned())
}

/// The connection, as a storage shows it that may fail.
struct Struck<'c> {
    connection: &'c mut Connection,
    inline: &'c Inline,
    access: Access,
}

impl Struck<'_> {
    fn statement(&mut self) -> Result<&mut Connection, Error> {
        match self.inline.strike(self.access, Moment::Statement) {
            None => Ok(self.connection),
            Some(Strike::Conflict) => Err(Error::Conflict),
            Some(Strike::Unavailable | Strike::UnknownCommit) => Err(unavailable()),
        }
    }
}

impl Conn for Struck<'_> {
    fn dialect(&self) -> Dialect {
        self.connection.dialect()
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        self.statement()?.query(sql, values)
    }

    fn query_part(&mut self, sql: &str, values: &[Value], most_bytes: usize) -> Result<Part, Error> {
        self.statement()?.query_part(sql, values, most_bytes)
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, Error> {
        self.statement()?.execute(sql, values)
    }

    fn append(&mut self, table: &str, sql: &str, values: &[Value]) -> Result<(), Error> {
        self.statement()?.append(table, sql, values)
    }

    fn guarded(&mut self, table: &str, sql: &str, values: &[Value]) -> Result<(), Error> {
        self.statement()?.guarded(table, sql, values)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.connection.flush()
    }

    fn define(&mut self, sql: &str) -> Result<(), Error> {
        self.connection.define(sql)
    }

    fn each_row(&mut self, sql: &str, each: &mut EachRow<'_>) -> Result<(), Error> {
        self.connection.each_row(sql, each)
    }

    fn unhurried(&mut self) {
        self.connection.unhurried();
    }

    fn integrity_check(&mut self, most: u32) -> Result<Vec<String>, Error> {
        self.connection.integrity_check(most)
    }

    fn savepoint(&mut self, depth: u32) -> Result<(), Error> {
        self.connection.savepoint(depth)
    }

    fn release(&mut self, depth: u32) -> Result<(), Error> {
        self.connection.release(depth)
    }

    fn rollback_to(&mut self, depth: u32) -> Result<(), Error> {
        self.connection.rollback_to(depth)
    }

    fn mark(&mut self) -> Result<Option<Mark>, Error> {
        self.connection.mark()
    }

    fn totals(&mut self) -> &mut Totals {
        self.connection.totals()
    }

    fn settled(&mut self) -> Option<&mut Settled> {
        self.connection.settled()
    }

    fn key_index(&mut self) -> Option<&mut KeyIndex> {
        self.connection.key_index()
    }
}
