//! The one thread that writes: it takes what waits, batch after batch, and between two of them does what only it may do.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use tokio::sync::watch;

use super::batches::{Batches, Storage};
use super::checkpoint;
use super::connection::{Connection, error};
use super::key_index;
use crate::clock::Monotone;
use crate::error::Error;
use crate::job::{self, Job, Verdict};
use crate::tx::{Access, Conn as _, Tx};

const LOOK_FOR_CHANGES: Duration = Duration::from_millis(500);

pub(crate) struct Writer {
    connection: Connection,
    clock: Arc<Monotone>,
    shared: Arc<checkpoint::Shared>,
    changes: watch::Sender<u64>,
    data_version: Option<i64>,
    /// Only with a defect on purpose: nothing is written any more.
    is_latched: bool,
    /// Of whoever serves the file.
    lock: Option<Arc<File>>,
    _alive: Sender<()>,
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
        Self { connection, clock, shared, changes, data_version: None, is_latched: false, lock, _alive: alive }
    }

    pub(crate) fn run(mut self, waiting: &Receiver<Box<dyn Job>>) {
        self.look_for_changes();
        let mut batches = Batches::default();
        loop {
            match batches.next(waiting, LOOK_FOR_CHANGES, &mut self) {
                Ok(()) => {
                    self.build_run();
                    checkpoint::copy_rest(&self.connection, &self.shared);
                }
                Err(RecvTimeoutError::Timeout) => self.look_for_changes(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
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
                    if self.is_open() {
                        self.roll_back()?;
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

impl Storage for Writer {
    /// From here on nobody else writes, so that what others have changed before is seen.
    fn begin(&mut self) -> Result<(), Error> {
        if self.is_latched {
            return Err(Error::Unavailable("nothing is written any more".to_owned()));
        }
        if self.is_open() {
            self.roll_back()?;
        }
        self.connection.command("begin immediate")?;
        self.look_for_changes();
        self.connection.settled_begins();
        Ok(())
    }

    fn run(&mut self, job: &mut dyn Job, has_savepoints: bool) -> Verdict {
        self.connection.has_savepoints = has_savepoints;
        self.connection.is_load = false;
        let (now_us, seed) = (self.clock.now_us(), job.seed());
        let verdict = job.run(&mut Tx::new(&mut self.connection, Access::Write, now_us, seed));
        self.connection.has_savepoints = true;
        verdict
    }

    fn is_load(&self) -> bool {
        self.connection.is_load
    }

    fn is_open(&self) -> bool {
        !self.connection.sqlite.is_autocommit()
    }

    fn savepoint(&mut self) -> Result<(), Error> {
        self.connection.command("savepoint call")
    }

    fn release(&mut self) -> Result<(), Error> {
        self.connection.command("release call")
    }

    fn roll_back_to_savepoint(&mut self) -> Result<(), Error> {
        self.connection.command("rollback to call")?;
        self.release()
    }

    fn roll_back(&mut self) -> Result<(), Error> {
        self.connection.command("rollback")
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
                if self.is_open()
                    && let Err(error) = self.roll_back()
                {
                    // The next batch can't begin either, and will say so to whoever waits for it.
                    tracing::error!(%error, "a failed commit could not be rolled back");
                }
            }
        }
        committed
    }

    fn note_failure(&mut self) {
        self.is_latched = domain::planted!(Defect::LatchStaysReadOnly);
    }
}
