//! One transaction as a command sees it, and the interface that a database driver fills.
//!
//! The first failed statement dooms the transaction: whatever the closure makes of the error, nothing of it is committed
//! (PostgreSQL would refuse anyway; SQLite must not differ). Only a savepoint confines a failure. Whoever only reads may go on
//! behind a question that was never sent.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use domain::Entropy;

use crate::damage::holds_nul;
use crate::error::{Error, SqlKind};
use crate::settings::Dialect;
use crate::settled::Settled;
use crate::sql::{Part, Row, Value};
use crate::sqlite::key_index::KeyIndex;
use crate::totals::{Mark, Total, Totals};
use crate::wakes::{Wakes, Worker};

pub(crate) type EachRow<'e> = dyn FnMut(Row) -> Result<(), Error> + 'e;

/// The whole driver interface. Begin and commit belong to the driver's own thread.
pub(crate) trait Conn {
    fn dialect(&self) -> Dialect;
    /// The business time, in a transaction that may wait for others after it has begun.
    fn clock_us(&self) -> Option<i64> {
        None
    }
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error>;
    /// A `select`, of which no more is read than rows of so many bytes.
    fn query_part(&mut self, sql: &str, values: &[Value], most_bytes: usize) -> Result<Part, Error>;
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, Error>;
    fn append(&mut self, table: &str, sql: &str, values: &[Value]) -> Result<(), Error>;
    fn guarded(&mut self, table: &str, sql: &str, values: &[Value]) -> Result<(), Error>;
    /// Sends what `append` and `guarded` collected.
    fn flush(&mut self) -> Result<(), Error>;
    /// One statement without values that is run once and not kept: a migration's.
    fn define(&mut self, sql: &str) -> Result<(), Error>;
    /// All rows of a query without holding them all.
    fn each_row(&mut self, sql: &str, each: &mut EachRow<'_>) -> Result<(), Error>;
    /// No time limit on the statements of this transaction: migrations, backup and restore.
    fn unhurried(&mut self);
    /// What is wrong with the database's own files, where they are ours to look at.
    fn integrity_check(&mut self, _most: u32) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }
    /// Other closures write in the same transaction of a database that has other writers as well.
    fn is_shared(&self) -> bool {
        false
    }
    fn savepoint(&mut self, depth: u32) -> Result<(), Error>;
    fn release(&mut self, depth: u32) -> Result<(), Error>;
    fn rollback_to(&mut self, depth: u32) -> Result<(), Error>;
    /// Of the snapshot of a transaction that reads; `None` where none can be told from another.
    fn mark(&mut self) -> Result<Option<Mark>, Error>;
    fn totals(&mut self) -> &mut Totals;
    /// Where nobody else writes, or it can be told when they have.
    fn settled(&mut self) -> Option<&mut Settled> {
        None
    }
    /// Of a connection that writes to SQLite.
    fn key_index(&mut self) -> Option<&mut KeyIndex> {
        None
    }
}

pub struct Tx<'c> {
    conn: &'c mut dyn Conn,
    access: Access,
    begun_us: i64,
    /// Once it was told.
    now_us: OnceCell<i64>,
    seed: [u8; 32],
    entropy: Entropy,
    doom: Option<Error>,
    depth: u32,
    wakes: Wakes,
    ended_keys: Vec<String>,
    changed_pages: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(conn: &'c mut dyn Conn, access: Access, begun_us: i64, seed: [u8; 32]) -> Self {
        Self {
            conn,
            access,
            begun_us,
            now_us: OnceCell::new(),
            seed,
            entropy: Entropy::from_seed(seed),
            doom: None,
            depth: 0,
            wakes: Wakes::default(),
            ended_keys: Vec::new(),
            changed_pages: BTreeSet::new(),
        }
    }

    /// Business time in microseconds since the epoch: one reading for the whole run of the closure, when it is asked for first. Ask
    /// behind the locks: it is then no older than they are, and what readers were told while they were waited for holds.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        *self.now_us.get_or_init(|| self.conn.clock_us().unwrap_or(self.begun_us))
    }

    /// When this run began, for what is written down before any lock. Nothing is judged by it.
    pub(crate) fn begun_us(&self) -> i64 {
        self.begun_us
    }

    /// 32 random bytes that belong to this call: the same each time its closure runs again.
    #[must_use]
    pub fn seed(&self) -> [u8; 32] {
        self.seed
    }

    /// Where ids, secrets and jitter of this call come from: each run of the closure draws the same.
    ///
    /// # Panics
    /// In a read, which makes nothing and has nothing to draw from.
    pub fn entropy(&mut self) -> &mut Entropy {
        assert_eq!(self.access, Access::Write, "a read makes nothing");
        &mut self.entropy
    }

    /// There is something to do for `worker`, if this is committed.
    pub(crate) fn wake(&mut self, worker: Worker) {
        self.wakes.add(worker);
    }

    /// For whom this transaction left something to do, or undid it.
    #[must_use]
    pub fn wakes(&self) -> Wakes {
        self.wakes
    }

    /// The request that ran under the idempotency key of this name has ended, if this is committed.
    pub(crate) fn end_key(&mut self, name: String) {
        self.ended_keys.push(name);
    }

    /// The keys whose requests this transaction ended, or undid that: who waits for one looks again.
    pub fn take_ended_keys(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ended_keys)
    }

    /// The page of this public id shows something else, if this is committed.
    pub(crate) fn change_page(&mut self, id: String) {
        self.changed_pages.insert(id);
    }

    /// By their public ids, the objects whose pages show something else after this transaction, or would have if it did not undo
    /// that: who follows one looks again.
    pub fn take_changed_pages(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.changed_pages)
    }

    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.conn.dialect()
    }

    /// Nothing is asked of the database that it can be told with its neighbours' writes: what turns out to be otherwise is
    /// undone, and this closure runs again with a transaction of its own.
    pub(crate) fn is_shared(&self) -> bool {
        self.conn.is_shared()
    }

    pub(crate) fn is_write(&self) -> bool {
        self.access == Access::Write
    }

    /// To be put behind a `select` whose rows this transaction is about to change.
    #[must_use]
    pub fn lock_suffix(&self) -> &'static str {
        match (self.conn.dialect(), self.access) {
            (Dialect::Postgres, Access::Write) => " for update",
            _ => "",
        }
    }

    /// Like [`Tx::lock_suffix`], passing over rows that another transaction holds. Only an optimisation of a claim: the
    /// lease predicate belongs into the `update` as well.
    #[must_use]
    pub fn skip_locked_suffix(&self) -> &'static str {
        match (self.conn.dialect(), self.access) {
            (Dialect::Postgres, Access::Write) => " for update skip locked",
            _ => "",
        }
    }

    pub fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        self.attempt(values, |conn| conn.query(sql, values))
    }

    /// The first rows of a `select`, at least one and as many as so many bytes hold: what is behind them is never in memory.
    pub(crate) fn query_part(&mut self, sql: &str, values: &[Value], most_bytes: usize) -> Result<Part, Error> {
        self.attempt(values, |conn| conn.query_part(sql, values, most_bytes))
    }

    pub fn query_opt(&mut self, sql: &str, values: &[Value]) -> Result<Option<Row>, Error> {
        let mut rows = self.query(sql, values)?;
        match rows.len() {
            0 | 1 => Ok(rows.pop()),
            count => Err(Error::Corrupt(format!("{count} rows where at most one can be: {sql}"))),
        }
    }

    pub fn query_one(&mut self, sql: &str, values: &[Value]) -> Result<Row, Error> {
        self.query_opt(sql, values)?.ok_or_else(|| Error::Corrupt(format!("no row where one must be: {sql}")))
    }

    /// Runs at once and returns the number of rows touched.
    pub fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, Error> {
        self.attempt_write(values, |conn| conn.execute(sql, values))
    }

    /// A write that can't miss: the insert of a fresh id. It may be sent as late as with COMMIT.
    pub fn append(&mut self, table: &str, sql: &str, values: &[Value]) -> Result<(), Error> {
        self.attempt_write(values, |conn| conn.append(table, sql, values))
    }

    /// The same with what a backup holds, whatever somebody made of it: a text with U+0000 too, where the database can store one.
    pub(crate) fn append_as_found(&mut self, table: &str, sql: &str, values: &[Value]) -> Result<(), Error> {
        match self.conn.dialect() {
            Dialect::Sqlite => self.attempt_write(&[], |conn| conn.append(table, sql, values)),
            Dialect::Postgres => self.append(table, sql, values),
        }
    }

    /// A write that must touch exactly one row. A miss means that another transaction was faster: nothing is committed
    /// and the whole closure runs again.
    pub fn guarded(&mut self, table: &str, sql: &str, values: &[Value]) -> Result<(), Error> {
        self.attempt_write(values, |conn| conn.guarded(table, sql, values))
    }

    /// Runs `part` so that its failure undoes only itself, also where a read finds something damaged. A conflict or an outage is never
    /// confined.
    pub fn savepoint<T, E: From<Error>>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let depth = self.depth + 1;
        self.attempt(&[], |conn| conn.savepoint(depth))?;
        self.depth = depth;
        let result = part(self);
        self.depth = depth - 1;
        match (result, self.doom.take()) {
            (Ok(value), None) => {
                self.attempt(&[], |conn| conn.release(depth))?;
                Ok(value)
            }
            (Err(error), None) => {
                match domain::planted!(Defect::SavepointKept) {
                    true => self.attempt(&[], |conn| conn.release(depth))?,
                    false => self.attempt(&[], |conn| conn.rollback_to(depth))?,
                }
                Err(error)
            }
            (result, Some(doom)) if self.is_confined(&doom) => {
                self.attempt(&[], |conn| conn.rollback_to(depth))?;
                result.and(Err(E::from(doom)))
            }
            (_, Some(doom)) => {
                self.doom = Some(doom.clone());
                Err(E::from(doom))
            }
        }
    }

    fn is_confined(&self, doom: &Error) -> bool {
        match doom {
            Error::Sql { .. } => true,
            Error::Corrupt(_) => self.access == Access::Read,
            _ => false,
        }
    }

    /// Another transaction was faster in a way that the database did not call a conflict: nothing is committed and the
    /// whole closure runs again.
    pub fn conflict(&mut self) -> Error {
        self.doom = Some(Error::Conflict);
        Error::Conflict
    }

    /// What `count` brings, unless it is known from before and nothing has changed since. `sql` and `values` name it: they
    /// leave nothing out that it depends on, but for the clock.
    pub(crate) fn total(
        &mut self,
        sql: &str,
        values: &[Value],
        count: impl FnOnce(&mut Self) -> Result<Total, Error>,
    ) -> Result<Total, Error> {
        // A write sees what it has written itself.
        if self.access == Access::Write {
            return count(self);
        }
        let now = self.now_us();
        let mut mark = None;
        if self.conn.totals().may_know(sql, values, now) {
            mark = self.attempt(&[], |conn| conn.mark())?;
            if let Some(known) = mark.as_ref().and_then(|mark| self.conn.totals().known(mark, sql, values, now)) {
                return Ok(known);
            }
        }
        let total = count(self)?;
        if self.conn.totals().is_worth_keeping(total) {
            if mark.is_none() {
                mark = self.attempt(&[], |conn| conn.mark())?;
            }
            if let Some(mark) = mark {
                self.conn.totals().keep(mark, sql, values, total);
            }
        }
        Ok(total)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.attempt(&[], |conn| conn.flush())
    }

    pub(crate) fn define(&mut self, sql: &str) -> Result<(), Error> {
        self.attempt_write(&[], |conn| conn.define(sql))
    }

    /// Takes the time limit off this transaction's statements, for what looks at everything there is.
    pub fn unhurried(&mut self) {
        self.conn.unhurried();
    }

    /// What is wrong with SQLite's file, `most` sentences of it: pages that can't be read, and indexes that hold something else than
    /// their tables. Questions are answered by an index or by a table as it suits, so that they alone don't tell. PostgreSQL's files
    /// are its own to look after: nothing is said of them.
    pub fn integrity_check(&mut self, most: u32) -> Result<Vec<String>, Error> {
        self.attempt(&[], |conn| conn.integrity_check(most))
    }

    /// All rows of a `select` without values, one after the other, so that they are never held together however large they are.
    /// `each` can't use this transaction meanwhile; its error ends it.
    pub fn each_row(&mut self, sql: &str, each: &mut EachRow<'_>) -> Result<(), Error> {
        self.attempt(&[], |conn| conn.each_row(sql, each))
    }

    /// Nothing in a transaction that has failed: whoever reads on is told so by the database's own way.
    pub(crate) fn settled_objects(&mut self) -> Option<&mut Settled> {
        if self.doom.is_some() { None } else { self.conn.settled() }
    }

    pub(crate) fn key_index(&mut self) -> Option<&mut KeyIndex> {
        self.conn.key_index()
    }

    /// Whether a statement of it failed: whatever follows, nothing comes of it.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.doom.is_some()
    }

    pub(crate) fn take_doom(&mut self) -> Option<Error> {
        self.doom.take()
    }

    fn attempt_write<T>(
        &mut self,
        values: &[Value],
        act: impl FnOnce(&mut dyn Conn) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let access = self.access;
        self.attempt(values, |conn| match access {
            Access::Write => act(conn),
            Access::Read => Err(Error::sql(SqlKind::Other, "a read transaction can't write")),
        })
    }

    fn attempt<T>(
        &mut self,
        values: &[Value],
        act: impl FnOnce(&mut dyn Conn) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(doom) = &self.doom {
            return Err(doom.clone());
        }
        // PostgreSQL can't store U+0000 and SQLite would: refused alike, before either sees it.
        let is_refused = values.iter().any(holds_nul);
        let result = match is_refused {
            true => Err(Error::sql(SqlKind::Type, "a text contains U+0000")),
            false => act(self.conn),
        };
        // A refused question has changed nothing, and whoever reads may have it from what somebody else stored.
        if let Err(error) = &result
            && !(is_refused && self.access == Access::Read)
        {
            self.doom = Some(error.clone());
        }
        result
    }
}
