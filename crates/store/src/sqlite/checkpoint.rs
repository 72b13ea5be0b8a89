//! Copies the write-ahead log into the database file, in a thread and on a connection of its own: in the committing thread a
//! checkpoint would stall everybody who waits for a commit.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::connection::{Connection, Durability, error};
use crate::error::Error;

/// Above this the writer is made to start the log over, although it has to wait for that.
pub(crate) const LOG_CAP_BYTES: i64 = 64 * 1024 * 1024;
/// A log larger than this is looked after at every tick, a smaller one at every fourth.
const HURRY_BYTES: u64 = 16 * 1024 * 1024;
/// What a lull leaves behind.
const LULL_BYTES: u64 = 1024 * 1024;
const TICK: Duration = Duration::from_millis(250);
/// While the log is started over the writer waits, so readers are not waited for much longer than a commit takes.
const PATIENCE: Duration = Duration::from_millis(20);

pub(crate) struct Checkpoints {
    connection: Connection,
    log: PathBuf,
    commits: Arc<AtomicU64>,
    _lock: Option<Arc<File>>,
}

impl Checkpoints {
    pub(crate) fn open(
        path: &Path,
        durability: Durability,
        commits: Arc<AtomicU64>,
        lock: Option<Arc<File>>,
    ) -> Result<Self, Error> {
        let connection = Connection::writing(path, durability, true, false)?;
        connection.sqlite.busy_timeout(PATIENCE).map_err(error)?;
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Ok(Self { connection, log: log.into(), commits, _lock: lock })
    }

    pub(crate) fn run(self, writer_gone: &Receiver<()>) {
        let mut copied = 0;
        let mut before = 0;
        for tick in 1_u64.. {
            if writer_gone.recv_timeout(TICK) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
            let commits = self.commits.load(Ordering::Relaxed);
            let lull = commits == before;
            before = commits;
            let bytes = fs::metadata(&self.log).map_or(0, |metadata| metadata.len());
            if commits != copied && (lull || bytes > HURRY_BYTES || tick.is_multiple_of(4)) {
                match self.checkpoint("passive") {
                    Some(state) if state.is_complete() => copied = commits,
                    Some(state) if state.log_bytes() > LOG_CAP_BYTES => {
                        self.checkpoint("restart");
                    }
                    Some(_) | None => {}
                }
            }
            if lull && copied == commits && bytes > LULL_BYTES {
                self.checkpoint("truncate");
            }
        }
        self.checkpoint("truncate");
    }

    fn checkpoint(&self, mode: &str) -> Option<State> {
        let looked = self.connection.sqlite.prepare_cached(&format!("pragma wal_checkpoint({mode})")).and_then(
            |mut statement| statement.query_row([], |row| Ok(State { frames: row.get(1)?, copied: row.get(2)? })),
        );
        match looked.map_err(error) {
            Ok(state) => Some(state),
            Err(error) => {
                tracing::warn!(%error, mode, "a checkpoint failed; the log grows until one succeeds");
                None
            }
        }
    }
}

struct State {
    frames: i64,
    copied: i64,
}

impl State {
    fn is_complete(&self) -> bool {
        self.frames == self.copied
    }

    fn log_bytes(&self) -> i64 {
        const FRAME_BYTES: i64 = 4096 + 24;
        self.frames.saturating_mul(FRAME_BYTES)
    }
}
