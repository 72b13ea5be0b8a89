//! The one thread that writes: it runs all waiting closures, commits them together, and only then answers. One sync of the disk
//! is shared by everybody who waited for it.
//!
//! What a closure wrote that said no has to go without its neighbours' writes. A savepoint for each would do that, and SQLite
//! then copies every page before it changes it. Nearly all closures say yes, so a batch begins without savepoints: at the first
//! no, all of it is rolled back and run again with them, and so are the next few batches.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use tokio::sync::watch;

use super::checkpoint;
use super::connection::{Connection, error};
use super::key_index;
use crate::clock::Monotone;
use crate::error::Error;
use crate::job::{self, Job, MAX_RUNS, Verdict};
use crate::store::QUEUE_LIMIT;
use crate::tx::{Access, Conn as _, Tx};

/// Bounds how long the first of a batch waits for the last.
const BATCH: usize = 128;
const LOOK_FOR_CHANGES: Duration = Duration::from_millis(500);
/// After a closure that said no: somebody's requests are wrong, and the next of them comes soon.
const CAREFUL_BATCHES: u32 = 16;

pub(crate) struct Writer {
    connection: Connection,
    clock: Arc<Monotone>,
    shared: Arc<checkpoint::Shared>,
    changes: watch::Sender<u64>,
    data_version: Option<i64>,
    /// So many batches more run with savepoints.
    careful: u32,
    /// Only with a defect on purpose: nothing is written any more.
    is_latched: bool,
    /// Of whoever serves the file.
    lock: Option<Arc<File>>,
    _alive: Sender<()>,
}

const ROLLED_BACK: &str = "the transaction was rolled back by a storage error";

/// How a batch without savepoints went.
enum Together {
    /// It can be committed.
    Yes,
    /// Nothing of it is left; it is to be run again.
    No,
    /// Nothing of it is left, and that was the answer.
    Answered,
}

/// The next batch. Whoever is about to ask for something as well is given the time for it, as long as more come: where this core
/// has other work to do, it does that first, and one commit serves all that comes of it; where it has none, this costs nothing.
fn gather(gathered: &mut VecDeque<Box<dyn Job>>, waiting: &Receiver<Box<dyn Job>>) {
    while gathered.len() < BATCH {
        let before = gathered.len();
        std::thread::yield_now();
        gathered.extend(waiting.try_iter().take(BATCH - before));
        if gathered.len() == before {
            break;
        }
    }
}

/// What will be said after the commit.
enum Answer {
    Own(Box<dyn Job>),
    Refusal(Box<dyn Job>, Error),
}

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        clock: Arc<Monotone>,
        shared: Arc<checkpoint::Shared>,
        changes: watch::Sender<u64>,
        lock: Option<Arc<File>>,
        alive: Sender<()>,
    ) -> Self {
        Self {
            connection,
            clock,
            shared,
            changes,
            data_version: None,
            careful: 0,
            is_latched: false,
            lock,
            _alive: alive,
        }
    }

    pub(crate) fn run(mut self, waiting: &Receiver<Box<dyn Job>>) {
        self.look_for_changes();
        // Whoever is taken out of the queue and not into a batch is in the next one.
        let mut gathered = VecDeque::with_capacity(BATCH);
        loop {
            let first = gathered.pop_front().map_or_else(|| waiting.recv_timeout(LOOK_FOR_CHANGES), Ok);
            match first {
                Ok(first) => {
                    gathered.push_front(first);
                    gather(&mut gathered, waiting);
                    self.batch(&mut gathered, waiting);
                    self.build_run();
                    checkpoint::copy_rest(&self.connection, &self.shared);
                }
                Err(RecvTimeoutError::Timeout) => self.look_for_changes(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn batch(&mut self, gathered: &mut VecDeque<Box<dyn Job>>, waiting: &Receiver<Box<dyn Job>>) {
        // Whoever comes while it runs is taken along.
        let jobs = std::iter::from_fn(|| gathered.pop_front().or_else(|| waiting.try_recv().ok()));
        let mut jobs = jobs.filter(|job| !job.abandoned()).take(BATCH);
        let mut ran = Vec::new();
        let mut begun = self.begin();
        if self.careful == 0 && begun.is_ok() {
            match self.run_together(&mut jobs, &mut ran) {
                Together::Yes => {
                    let answers = ran.into_iter().map(Answer::Own).collect();
                    return self.end(answers, None);
                }
                Together::Answered => return,
                Together::No => begun = self.begin(),
            }
        }
        self.careful = self.careful.saturating_sub(1);
        let mut ran = ran.into_iter();
        let jobs = ran.by_ref().chain(jobs);
        if let Err(error) = begun {
            // The others would only wait for the same refusal, one busy timeout after the other.
            for job in jobs.chain(waiting.try_iter().take(QUEUE_LIMIT)) {
                job.refuse(error.clone());
            }
            return;
        }
        let mut answers = Vec::new();
        let mut broken = None;
        for job in jobs {
            // Undone with the others: who has been told by now that nobody knows may have asked again.
            if job.abandoned() {
                continue;
            }
            answers.push(self.run_one(job));
            // A full disk and the like make SQLite roll back everything, the neighbours' writes as well.
            if self.connection.sqlite.is_autocommit() {
                broken = Some(Error::Unavailable(ROLLED_BACK.to_owned()));
                break;
            }
        }
        // Of a batch that broke; whoever was not taken yet is in the next one.
        for job in ran {
            job.refuse(Error::Unavailable(ROLLED_BACK.to_owned()));
        }
        self.end(answers, broken);
    }

    /// Between two batches, when the index of idempotency keys has grown by so much. Who serves the file does so, and nobody beside.
    fn build_run(&mut self) {
        let is_due = self.connection.key_index().is_some_and(|index| index.is_due());
        if !is_due || self.lock.is_none() {
            return;
        }
        let now_us = self.clock.now_us();
        let built = self.begin().and_then(|()| {
            let built = key_index::build(&mut Tx::new(&mut self.connection, Access::Write, now_us, [0; 32]));
            match built {
                Ok(built) => self.commit().map(|()| built),
                Err(error) => {
                    if !self.connection.sqlite.is_autocommit() {
                        self.connection.command("rollback")?;
                    }
                    Err(error)
                }
            }
        });
        let Some(index) = self.connection.key_index() else { return };
        match built {
            Ok(built) => index.built(built),
            Err(error) => {
                tracing::warn!(%error, "a run of idempotency keys could not be stored; it is tried again later");
                index.not_built();
            }
        }
    }

    /// From here on nobody else writes, so that what others have changed before is seen.
    fn begin(&mut self) -> Result<(), Error> {
        if self.is_latched {
            return Err(Error::Unavailable(ROLLED_BACK.to_owned()));
        }
        // What could not be rolled back when it failed.
        if !self.connection.sqlite.is_autocommit() {
            self.connection.command("rollback")?;
        }
        self.connection.command("begin immediate")?;
        self.look_for_changes();
        self.connection.settled_begins();
        Ok(())
    }

    /// Without savepoints.
    fn run_together(&mut self, jobs: &mut dyn Iterator<Item = Box<dyn Job>>, ran: &mut Vec<Box<dyn Job>>) -> Together {
        self.connection.has_savepoints = false;
        let mut said_no = None;
        for mut job in jobs {
            self.connection.is_load = false;
            let (now_us, seed) = (self.clock.now_us(), job.seed());
            let verdict = job.run(&mut Tx::new(&mut self.connection, Access::Write, now_us, seed));
            if !matches!(verdict, Verdict::Commit) || self.connection.sqlite.is_autocommit() {
                said_no = Some((job, verdict));
                break;
            }
            ran.push(job);
        }
        self.connection.has_savepoints = true;
        let Some((job, verdict)) = said_no else { return Together::Yes };
        if !self.connection.sqlite.is_autocommit()
            && let Err(error) = self.connection.command("rollback")
        {
            tracing::error!(%error, "a batch could not be rolled back");
        }
        // What takes long has no neighbours, and once is enough.
        if self.connection.is_load && ran.is_empty() {
            match verdict {
                Verdict::Commit => job.refuse(Error::Unavailable(ROLLED_BACK.to_owned())),
                Verdict::RollBack => job.answer(),
                Verdict::Failed(error) => job.refuse(error),
            }
            return Together::Answered;
        }
        self.careful = CAREFUL_BATCHES;
        ran.push(job);
        Together::No
    }

    fn end(&mut self, answers: Vec<Answer>, broken: Option<Error>) {
        let committed = match broken {
            Some(error) => Err(error),
            None => self.commit(),
        };
        self.is_latched = domain::planted!(Defect::LatchStaysReadOnly) && committed.is_err();
        for answer in answers {
            match (answer, &committed) {
                (Answer::Own(job), Ok(())) => job.answer(),
                (Answer::Own(job), Err(error)) => job.refuse(error.clone()),
                (Answer::Refusal(job, error), _) => job.refuse(error),
            }
        }
    }

    fn run_one(&mut self, mut job: Box<dyn Job>) -> Answer {
        for _ in 0..MAX_RUNS {
            if let Err(error) = self.connection.command("savepoint call") {
                return Answer::Refusal(job, error);
            }
            let (now_us, seed) = (self.clock.now_us(), job.seed());
            let verdict = job.run(&mut Tx::new(&mut self.connection, Access::Write, now_us, seed));
            let ended = match verdict {
                Verdict::Commit => self.connection.command("release call"),
                Verdict::RollBack | Verdict::Failed(_) => self.roll_back_one(),
            };
            match (verdict, ended) {
                (Verdict::Commit | Verdict::RollBack, Ok(())) => return Answer::Own(job),
                (Verdict::Failed(Error::Conflict), Ok(())) if !job.abandoned() => {}
                (Verdict::Failed(error), _) | (_, Err(error)) => return Answer::Refusal(job, error),
            }
        }
        Answer::Refusal(job, Error::Conflict)
    }

    fn roll_back_one(&self) -> Result<(), Error> {
        if self.connection.sqlite.is_autocommit() {
            return Ok(());
        }
        self.connection.command("rollback to call")?;
        self.connection.command("release call")
    }

    fn commit(&mut self) -> Result<(), Error> {
        job::wait_where_answered();
        let committed = self.connection.commit();
        match &committed {
            Ok(()) => {
                self.shared.commits.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::error!(%error, "a commit failed");
                if !self.connection.sqlite.is_autocommit()
                    && let Err(error) = self.connection.command("rollback")
                {
                    // The next batch can't begin either, and will say so to whoever waits for it.
                    tracing::error!(%error, "a failed commit could not be rolled back");
                }
            }
        }
        committed
    }

    /// `pragma data_version` changes when another connection has written; ours is the only one in this process that does.
    fn look_for_changes(&mut self) {
        let looked = self
            .connection
            .sqlite
            .prepare_cached("pragma data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)));
        match looked {
            Ok(version) => {
                if self.data_version.is_some_and(|known| known != version) {
                    self.connection.forget();
                    self.changes.send_modify(|count| *count += 1);
                }
                self.data_version = Some(version);
            }
            Err(failed) => {
                self.connection.forget();
                tracing::warn!(error = %error(failed), "data_version could not be read");
            }
        }
    }
}
