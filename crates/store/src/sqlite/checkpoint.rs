//! Copies the write-ahead log into the database file, in a thread and on a connection of its own: in the committing thread the
//! copying would stall everybody who waits for a commit.
//!
//! Under load the log never comes to rest, because the writer appends while this thread copies. So it copies again and again,
//! each time what was appended meanwhile, and then lets the writer copy the little that is left between two batches: from there
//! on the log is written over from its start. A log that keeps its size is also quicker to sync than one that grows.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::connection::{BUSY, Connection, Durability, error};
use crate::error::Error;

/// The file keeps so much when the log is started over, and in a lull.
pub(crate) const LOG_KEPT_BYTES: i64 = 16 * 1024 * 1024;
/// From here on the log is to be started over.
const LOG_FULL_BYTES: i64 = 8 * 1024 * 1024;
/// So little may be copied by the writer.
const REST_BYTES: i64 = 1024 * 1024;
/// A writer that appends faster than this thread copies is not chased for ever.
const CHASES: usize = 8;
/// Often, because whoever commits meanwhile waits for the disk: many short waits are better than few long ones.
const TICK: Duration = Duration::from_millis(100);
const FRAME_BYTES: i64 = 4096 + 24;

/// What the two threads tell one another.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// So far, of the writer.
    pub(crate) commits: AtomicU64,
    /// The writer is to copy the rest.
    pub(crate) rest_is_small: AtomicBool,
}

pub(crate) struct Checkpoints {
    connection: Connection,
    log: PathBuf,
    shared: Arc<Shared>,
    _lock: Option<Arc<File>>,
}

impl Checkpoints {
    pub(crate) fn open(
        path: &Path,
        durability: Durability,
        shared: Arc<Shared>,
        lock: Option<Arc<File>>,
    ) -> Result<Self, Error> {
        let connection = Connection::writing(path, durability, true, false)?;
        // Whoever waits here holds the lock of the writer meanwhile: a lull comes again.
        connection.sqlite.busy_timeout(Duration::ZERO).map_err(error)?;
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Ok(Self { connection, log: log.into(), shared, _lock: lock })
    }

    pub(crate) fn run(self, writer_gone: &Receiver<()>) {
        let mut copied = 0;
        let mut before = 0;
        while writer_gone.recv_timeout(TICK) != Err(RecvTimeoutError::Disconnected) {
            let commits = self.shared.commits.load(Ordering::Relaxed);
            let lull = commits == before;
            before = commits;
            if commits != copied && self.copy() {
                copied = commits;
            }
            let kept = u64::try_from(LOG_KEPT_BYTES).expect("a size");
            if lull && copied == commits && fs::metadata(&self.log).is_ok_and(|log| log.len() > kept) {
                copy(&self.connection, "truncate");
            }
        }
        if let Err(error) = self.connection.sqlite.busy_timeout(BUSY) {
            tracing::warn!(%error, "the last checkpoint doesn't wait for readers");
        }
        copy(&self.connection, "truncate");
    }

    /// Whether nothing is left to copy.
    fn copy(&self) -> bool {
        let Some(mut state) = copy(&self.connection, "passive") else { return false };
        if state.log_bytes() <= LOG_FULL_BYTES {
            return state.left_bytes() == 0;
        }
        for _ in 0..CHASES {
            if state.left_bytes() <= REST_BYTES {
                break;
            }
            let Some(next) = copy(&self.connection, "passive") else { return false };
            // A reader needs what is left.
            if next.copied == state.copied {
                return false;
            }
            state = next;
        }
        self.shared.rest_is_small.store(true, Ordering::Relaxed);
        state.left_bytes() == 0
    }
}

/// In the writing thread, between two batches. The next batch starts the log over, unless a reader is still in it.
pub(crate) fn copy_rest(connection: &Connection, shared: &Shared) {
    if shared.rest_is_small.load(Ordering::Relaxed) && shared.rest_is_small.swap(false, Ordering::Relaxed) {
        copy(connection, "passive");
    }
}

fn copy(connection: &Connection, mode: &str) -> Option<State> {
    let looked =
        connection.sqlite.prepare_cached(&format!("pragma wal_checkpoint({mode})")).and_then(|mut statement| {
            statement.query_row([], |row| Ok((row.get(0)?, State { frames: row.get(1)?, copied: row.get(2)? })))
        });
    match looked.map_err(error) {
        Ok((false, state)) => Some(state),
        // Another thread is at it, or a reader needs what would be cut off.
        Ok((true, _)) => None,
        Err(error) => {
            tracing::warn!(%error, mode, "a checkpoint failed; the log grows until one succeeds");
            None
        }
    }
}

/// In frames, each a page with its head.
struct State {
    frames: i64,
    copied: i64,
}

impl State {
    fn log_bytes(&self) -> i64 {
        self.frames.saturating_mul(FRAME_BYTES)
    }

    fn left_bytes(&self) -> i64 {
        self.frames.saturating_sub(self.copied).saturating_mul(FRAME_BYTES)
    }
}
