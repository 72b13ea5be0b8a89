//! One connection and the transaction on it.
//!
//! Writes that can't miss and guarded updates are collected and go out together, in one round trip with the statement or the
//! COMMIT behind them. A guarded update is wrapped so that touching no row is an *error*, because PostgreSQL would commit
//! what stands beside a miss.

pub(super) mod begin;
mod dump;
mod portions;
mod prepared;

use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::runtime::Runtime;
use tokio_postgres::Client;

use self::portions::Portions;
use self::prepared::Prepared;
use super::connect::Link;
use super::fault::{self, Cause, Fault};
use super::merge;
use super::pipeline::{self, Reply, Step};
use super::shared::Shared;
use super::value;
use crate::clock::Monotone;
use crate::error::{Error, SqlKind};
use crate::job;
use crate::settings::Dialect;
use crate::sql::{Part, Room, Row, Value};
use crate::totals::{Mark, Totals};
use crate::tx::{Access, Conn, EachRow};

/// No answer within this time counts as a lost connection: it covers a network that swallows everything. The server itself
/// gives up before ([`begin`]), so that whoever hears nothing more leaves nothing behind that waits or holds.
const STATEMENT_LIMIT: Duration = Duration::from_secs(25);
const UNHURRIED_LIMIT: Duration = Duration::from_secs(6 * 3600);
/// More than this is sent before the closure ends, so that the memory of a large load is bounded.
const COLLECTED: usize = 256;

/// Whether its snapshots tell of every change. Not so on a standby or where tables lie on other servers; others that speak
/// PostgreSQL's language may mean something else by a snapshot.
const HAS_MARKS: &str = "
select case when version() like 'PostgreSQL %' and version() not like '%-YB-%'
    and cast(current_setting('server_version_num') as bigint) >= 130000
    and not pg_is_in_recovery()
    and not exists (select 1 from pg_extension where extname = 'citus')
    and not exists (select 1 from pg_foreign_table)
    then 1 else 0 end";

/// Which transactions have ended. Another start may be another server, after a failover, that counts them anew.
const MARK: &str = "
select cast(pg_current_snapshot() as text) || ' ' || cast(pg_postmaster_start_time() as text) as mark";

pub(crate) struct Connection {
    runtime: Rc<Runtime>,
    client: Client,
    unconfirmed: Arc<AtomicBool>,
    statements: HashMap<String, Prepared>,
    unprepared: Arc<AtomicBool>,
    is_pooled: bool,
    clock: Arc<Monotone>,
    pub(super) collected: Vec<Collected>,
    access: Access,
    patience: Patience,
    /// While the transaction is one of several closures.
    pub(super) shared: Option<Shared>,
    pub(super) begun: bool,
    pub(super) wrote: bool,
    limit: Duration,
    /// The transaction waited for another as long as its patience lasts.
    pub(crate) is_blocked: bool,
    /// What the worker has to do about this connection.
    pub(crate) state: State,
    /// Asked when it is wanted first.
    has_marks: Option<bool>,
    totals: Totals,
    portions: Portions,
}

/// How long a transaction waits for what another one holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It keeps its place in the server's line for a row, and its thread.
    Long,
    /// Longer than many take to have their turn with a row that all of them write, one after the other.
    Fair,
    /// Others wait for it that need nothing of what is held. Most that wait for a key do so in vain: it is taken then.
    Brief,
    /// The same, while some are held up already.
    Briefest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Sound,
    Stale,
    Lost,
}

pub(super) enum Collected {
    Write { table: String, sql: String, values: Vec<Value>, guarded: bool },
    Savepoint { depth: u32, sql: String },
    Command(String),
}

impl Collected {
    /// Establishes or leaves a savepoint, so that an error before it and one behind it are not the same.
    fn is_boundary(&self) -> bool {
        matches!(self, Self::Savepoint { .. } | Self::Command(_))
    }
}

enum Last<'a> {
    Nothing,
    Query(&'a str, &'a [Value]),
    Part(&'a str, &'a [Value], Room),
    Execute(&'a str, &'a [Value]),
    Commit,
}

enum Output {
    Nothing,
    Rows(Vec<Row>),
    Part(Vec<Row>, Room),
    Touched(u64),
}

impl Connection {
    /// A connection that is not `is_pooled` was told its [`begin::LIMITS`].
    pub(crate) fn new(
        runtime: Rc<Runtime>,
        link: Link,
        unprepared: Arc<AtomicBool>,
        is_pooled: bool,
        clock: Arc<Monotone>,
    ) -> Self {
        Self {
            runtime,
            client: link.client,
            unconfirmed: link.unconfirmed,
            statements: HashMap::new(),
            unprepared,
            is_pooled,
            clock,
            collected: Vec::new(),
            access: Access::Read,
            patience: Patience::Long,
            shared: None,
            begun: false,
            wrote: false,
            limit: STATEMENT_LIMIT,
            is_blocked: false,
            state: State::Sound,
            has_marks: None,
            totals: Totals::new(),
            portions: Portions::new(),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.state == State::Sound && !self.client.is_closed()
    }

    /// Nothing is sent yet: BEGIN goes out with the first statement.
    pub(crate) fn begin(&mut self, access: Access, patience: Patience) {
        self.collected.clear();
        (self.access, self.begun, self.wrote, self.limit) = (access, false, false, STATEMENT_LIMIT);
        (self.patience, self.is_blocked, self.shared) = (patience, false, None);
    }

    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        if !self.begun && self.collected.is_empty() {
            return Ok(());
        }
        job::wait_where_answered();
        let result = self.round_trip(Last::Commit).map(drop);
        // Without a write there is nothing that could be known or unknown.
        if self.wrote { result } else { Ok(()) }
    }

    /// Ends a read whose answer is known. Nobody waits until it has ended: what comes next goes out behind it.
    pub(crate) fn leave(&mut self) {
        self.collected.clear();
        if !self.begun || !self.is_usable() {
            return;
        }
        self.begun = false;
        // It is handed to the connection when it is asked for the first time. The runtime sends it, at the latest while its thread
        // waits for the next closure.
        if let Some(Err(_)) = self.client.batch_execute("rollback").now_or_never() {
            self.state = State::Lost;
        }
    }

    /// A failure costs the connection and nothing else: the server rolls back what isn't committed.
    pub(crate) fn roll_back(&mut self) {
        self.collected.clear();
        if !self.begun || !self.is_usable() {
            return;
        }
        self.begun = false;
        match self.wait(self.client.batch_execute("rollback")) {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => self.state = State::Lost,
        }
    }

    fn wait<F: Future>(&self, future: F) -> Result<F::Output, Error> {
        self.runtime
            .block_on(async { tokio::time::timeout(self.limit, future).await })
            .map_err(|_| Error::Unavailable("the database gave no answer in time".to_owned()))
    }

    /// Sends what is collected, then `last`, and waits for all answers.
    fn round_trip(&mut self, last: Last<'_>) -> Result<Output, Error> {
        let result = self.send_collected_and(last);
        if let (Err(_), Some(shared)) = (&result, &mut self.shared) {
            shared.has_failed = true;
        }
        result
    }

    fn send_collected_and(&mut self, last: Last<'_>) -> Result<Output, Error> {
        if self.shared.is_some() {
            self.send_together()?;
        }
        let mut collected = std::mem::take(&mut self.collected);
        self.wrote |= collected.iter().any(|item| matches!(item, Collected::Write { .. }));
        let mut sent = 0;
        let result = self.send_parts(&collected, &mut sent, &last);
        if result.is_err() {
            // What was never sent is still there for a savepoint to drop.
            self.collected = collected.split_off(sent);
        }
        result
    }

    /// A statement that the server refuses to prepare ends the transaction as any other does, so the savepoint around it has
    /// to be there before. That splits the round trip, but only when a statement is used for the first time.
    fn send_parts(&mut self, collected: &[Collected], sent: &mut usize, last: &Last<'_>) -> Result<Output, Error> {
        let writes = collected.iter().enumerate().filter_map(|(index, item)| match item {
            Collected::Write { sql, values, .. } => Some((index, sql.as_str(), values.as_slice())),
            Collected::Savepoint { .. } | Collected::Command(_) => None,
        });
        let last_statement = match last {
            Last::Query(sql, values) | Last::Part(sql, values, _) | Last::Execute(sql, values) => {
                Some((collected.len(), *sql, *values))
            }
            Last::Nothing | Last::Commit => None,
        };
        let mut columns = None;
        for (index, sql, values) in writes.chain(last_statement) {
            let part = &collected[*sent..index];
            if !self.statements.contains_key(sql) && part.iter().any(Collected::is_boundary) {
                *sent = index;
                self.send_part(part, &Last::Nothing, None)?;
            }
            columns = self.prepare(sql, values)?;
        }
        let part = &collected[*sent..];
        *sent = collected.len();
        self.send_part(part, last, columns)
    }

    fn send_part(
        &mut self,
        collected: &[Collected],
        last: &Last<'_>,
        columns: Option<Arc<[String]>>,
    ) -> Result<Output, Error> {
        // Were BEGIN refused, everything behind it would commit piece by piece. So writes wait for its answer; a query needn't.
        let pipelined =
            collected.is_empty() && matches!(last, Last::Query(sql, _) | Last::Part(sql, ..) if only_reads(sql));
        if !self.begun && !pipelined {
            self.send_begin()?;
        }
        let mut steps = Vec::with_capacity(collected.len() + 2);
        let mut guards = Vec::new();
        if !self.begun {
            steps.push(Step::Command(self.begin_text()));
        }
        for item in collected {
            match item {
                Collected::Write { sql, values, guarded: true, .. } => {
                    guards.push(steps.len());
                    steps.push(Step::Query(self.text(sql), values));
                }
                Collected::Write { sql, values, guarded: false, .. } => {
                    steps.push(Step::Execute(self.text(sql), values))
                }
                Collected::Savepoint { sql, .. } | Collected::Command(sql) => steps.push(Step::Command(sql)),
            }
        }
        match last {
            Last::Query(sql, values) => steps.push(Step::Query(self.text(sql), values)),
            Last::Part(sql, values, room) => steps.push(Step::Part(self.text(sql), values, *room)),
            Last::Execute(sql, values) => steps.push(Step::Execute(self.text(sql), values)),
            Last::Commit => steps.push(Step::Command("commit")),
            Last::Nothing => {}
        }
        let replied = self.send_ending(&steps, &guards, matches!(last, Last::Commit));
        self.begun = !matches!(last, Last::Commit);
        let read = |found: Vec<tokio_postgres::Row>| {
            let columns =
                columns.unwrap_or_else(|| found.first().map_or([].into(), |row| value::columns_of(row.columns())));
            value::rows(&found, &columns)
        };
        match replied? {
            Some(Reply::Rows(found)) => Ok(Output::Rows(read(found)?)),
            Some(Reply::Part(found, room)) => Ok(Output::Part(read(found)?, room)),
            Some(Reply::Touched(count)) => Ok(Output::Touched(count)),
            Some(Reply::Done) | None => Ok(Output::Nothing),
        }
    }

    pub(super) fn send(&mut self, steps: &[Step<'_>], guards: &[usize]) -> Result<Option<Reply>, Error> {
        self.send_ending(steps, guards, false)
    }

    /// The last reply, or what the first failure means.
    fn send_ending(&mut self, steps: &[Step<'_>], guards: &[usize], commits: bool) -> Result<Option<Reply>, Error> {
        let unknown = commits && self.wrote;
        self.unconfirmed.store(false, Ordering::Relaxed);
        let replies = match self.wait(pipeline::send(&self.client, steps)) {
            Ok(replies) => replies,
            Err(error) => {
                self.state = State::Lost;
                return Err(if unknown { Error::UnknownCommit } else { error });
            }
        };
        let count = replies.len();
        let mut last = None;
        let mut first_fault: Option<Fault> = None;
        for (index, reply) in replies.into_iter().enumerate() {
            let error = match reply {
                Ok(reply) => {
                    last = Some(reply);
                    continue;
                }
                Err(error) => error,
            };
            let fault = if guards.contains(&index) && fault::is_missed_guard(&error) {
                Fault { error: Error::Conflict, cause: Cause::Statement }
            } else {
                fault::classify(&error)
            };
            self.note(fault.cause);
            // A statement that the server answered with an error ended the transaction before COMMIT was reached.
            let is_commit = commits && index + 1 == count;
            let certain = if is_commit {
                fault::is_certain_refusal(&error)
            } else {
                fault.cause != Cause::Lost && !fault::is_of_the_way(&error)
            };
            if first_fault.is_none() {
                let error = if unknown && !certain { Error::UnknownCommit } else { fault.error };
                first_fault = Some(Fault { error, cause: fault.cause });
            }
        }
        match first_fault {
            None if unknown && self.unconfirmed.load(Ordering::Relaxed) => Err(Error::UnknownCommit),
            None => Ok(last),
            Some(fault) => Err(fault.error),
        }
    }

    fn note(&mut self, cause: Cause) {
        match cause {
            Cause::Statement | Cause::Consequence => {}
            // Who says itself how long it waits has also its own answer to having waited in vain.
            Cause::Blocked => self.is_blocked = self.limit != UNHURRIED_LIMIT,
            Cause::Stale => self.state = State::Stale,
            Cause::Ended | Cause::Lost => self.state = State::Lost,
        }
    }

    fn begin_text(&self) -> &'static str {
        // Where prepared statements get lost, so may what the session was told.
        let is_told = !self.is_pooled && !self.unprepared.load(Ordering::Relaxed);
        begin::text(self.access, self.patience, self.limit == UNHURRIED_LIMIT, is_told)
    }

    pub(super) fn send_begin(&mut self) -> Result<(), Error> {
        let text = self.begin_text();
        // Also when it fails: it may have begun and be refused what comes behind.
        self.begun = true;
        self.send(&[Step::Command(text)], &[]).map(drop)
    }

    fn collect(&mut self, table: &str, sql: String, values: &[Value], guarded: bool) -> Result<(), Error> {
        self.forget_reads_of(table);
        self.collected.push(Collected::Write { table: table.to_owned(), sql, values: values.to_vec(), guarded });
        if self.collected.len() >= COLLECTED { self.flush() } else { Ok(()) }
    }

    fn mentions_collected(&self, sql: &str) -> bool {
        self.collected.iter().any(|item| matches!(item, Collected::Write { table, .. } if sql.contains(table.as_str())))
    }
}

impl Conn for Connection {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    /// A snapshot waits for nobody.
    fn clock_us(&self) -> Option<i64> {
        (self.access == Access::Write).then(|| self.clock.now_us())
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        let reads = only_reads(sql);
        if reads && let Some(rows) = self.recall(sql, values) {
            return Ok(rows);
        }
        self.wrote |= !reads;
        // What is collected may stay so while it can't be seen: then its row locks are taken later and held shorter.
        let held_back = if reads && !self.mentions_collected(sql) && !self.has_unsent_savepoint() {
            std::mem::take(&mut self.collected)
        } else {
            Vec::new()
        };
        let output = self.round_trip(Last::Query(sql, values));
        if !held_back.is_empty() {
            self.collected = held_back;
        }
        match output? {
            Output::Rows(rows) => {
                if reads {
                    self.remember(sql, values, &rows);
                } else {
                    self.changed_rows();
                }
                Ok(rows)
            }
            Output::Nothing | Output::Part(..) | Output::Touched(_) => {
                Err(Error::sql(SqlKind::Other, format!("no rows came from: {sql}")))
            }
        }
    }

    fn query_part(&mut self, sql: &str, values: &[Value], most_bytes: usize) -> Result<Part, Error> {
        self.first_rows(sql, values, most_bytes)
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, Error> {
        self.wrote = true;
        self.changed_rows();
        match self.round_trip(Last::Execute(sql, values))? {
            Output::Touched(count) => Ok(count),
            Output::Nothing | Output::Rows(_) | Output::Part(..) => {
                Err(Error::sql(SqlKind::Other, format!("no count came from: {sql}")))
            }
        }
    }

    fn append(&mut self, table: &str, sql: &str, values: &[Value]) -> Result<(), Error> {
        self.collect(table, sql.to_owned(), values, false)
    }

    fn guarded(&mut self, table: &str, sql: &str, values: &[Value]) -> Result<(), Error> {
        self.collect(table, merge::exactly_one(sql), values, true)
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.collected.is_empty() { Ok(()) } else { self.round_trip(Last::Nothing).map(drop) }
    }

    fn define(&mut self, sql: &str) -> Result<(), Error> {
        self.flush()?;
        if !self.begun {
            self.send_begin()?;
        }
        self.wrote = true;
        self.send(&[Step::Command(sql)], &[]).map(drop)
    }

    fn each_row(&mut self, sql: &str, each: &mut EachRow<'_>) -> Result<(), Error> {
        self.dump(sql, each)
    }

    fn unhurried(&mut self) {
        if self.limit == UNHURRIED_LIMIT {
            return;
        }
        self.limit = UNHURRIED_LIMIT;
        if self.begun {
            self.collected.push(Collected::Command(begin::UNHURRIED.to_owned()));
        }
    }

    fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    fn savepoint(&mut self, depth: u32) -> Result<(), Error> {
        if self.is_shared() {
            self.mark_savepoint();
            return Ok(());
        }
        self.collected.push(Collected::Savepoint { depth, sql: format!("savepoint part_{depth}") });
        Ok(())
    }

    fn release(&mut self, depth: u32) -> Result<(), Error> {
        if self.is_shared() {
            return self.leave_savepoint().map(drop);
        }
        match self.unsent_savepoint(depth) {
            Some(position) => drop(self.collected.remove(position)),
            None => self.collected.push(Collected::Command(format!("release savepoint part_{depth}"))),
        }
        Ok(())
    }

    fn rollback_to(&mut self, depth: u32) -> Result<(), Error> {
        if self.is_shared() {
            let moment = self.leave_savepoint()?;
            return self.back_to(moment);
        }
        match self.unsent_savepoint(depth) {
            Some(position) => self.collected.truncate(position),
            None => {
                // Whatever is collected was collected inside.
                self.collected.clear();
                let sql = format!("rollback to savepoint part_{depth}; release savepoint part_{depth}");
                self.collected.push(Collected::Command(sql));
            }
        }
        Ok(())
    }

    fn mark(&mut self) -> Result<Option<Mark>, Error> {
        let has_marks = match self.has_marks {
            Some(known) => known,
            None => self.query(HAS_MARKS, &[])?.first().map_or(Ok(false), |row| row.get(0))?,
        };
        self.has_marks = Some(has_marks);
        if !has_marks {
            return Ok(None);
        }
        self.query(MARK, &[])?.first().map(|row| Ok(Mark(row.get(0)?))).transpose()
    }

    fn totals(&mut self) -> &mut Totals {
        &mut self.totals
    }
}

impl Connection {
    fn unsent_savepoint(&self, depth: u32) -> Option<usize> {
        self.collected
            .iter()
            .position(|item| matches!(item, Collected::Savepoint { depth: unsent, .. } if *unsent == depth))
    }

    /// A query inside an unsent savepoint may fail, so the savepoint has to be there before it.
    fn has_unsent_savepoint(&self) -> bool {
        self.collected.iter().any(Collected::is_boundary)
    }
}

/// Locks aside: `select … for update` changes nothing that a missing BEGIN would keep.
fn only_reads(sql: &str) -> bool {
    sql.trim_start().starts_with("select")
}
