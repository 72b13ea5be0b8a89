//! The SQLite driver: one writing thread that commits waiting closures together, reading threads on snapshots, and a thread
//! for checkpoints, so that none of them ever waits for the copying of pages.

mod batches;
mod checkpoint;
mod connection;
mod file;
pub(crate) mod key_index;
mod near;
mod reader;
mod reads;
#[cfg(test)]
mod reads_tests;
mod writer;

use std::sync::mpsc::sync_channel;
// By name, because a scheduler that tries every order puts its own in its place (`tests/interleavings`).
use std::sync::{self, Arc};
use std::thread::yield_now;

use tokio::sync::watch;

#[cfg(feature = "inline")]
pub(crate) use self::connection::Connection as InlineConnection;
pub(crate) use self::file::TemporaryFolder;
pub(crate) use self::near::Near;
pub(crate) use self::reads::Reads;

use self::connection::{Connection, Durability};
use crate::clock::Monotone;
use crate::error::Error;
use crate::settings::{Database, Settings};
use crate::store::{QUEUE_LIMIT, Queues, Started};
use crate::thread;

/// Connections for reads that run where they are asked for; whoever asks beside so many goes to a reading thread.
const NEAR: usize = 4;

pub(crate) const SIZE: &str = "
select (page_count - freelist_count) * page_size as bytes
from pragma_page_count(), pragma_freelist_count(), pragma_page_size()";

pub(crate) fn product() -> String {
    format!("SQLite {}", rusqlite::version())
}

pub(crate) fn start(settings: &Settings, clock: &Arc<Monotone>) -> Result<Started, Error> {
    connection::check_version(rusqlite::version_number())?;
    let (path, folder, durability) = match &settings.database {
        Database::Sqlite { path } => (path.clone(), None, Durability::Full),
        Database::SqliteMemory => {
            let folder = TemporaryFolder::create()?;
            (folder.file("test.sqlite"), Some(folder), Durability::None)
        }
        Database::Postgres { .. } => {
            return Err(Error::Unsafe("a PostgreSQL address was given to the SQLite driver".to_owned()));
        }
    };
    let lock = if settings.secondary {
        file::require(&path)?;
        None
    } else {
        file::create(&path)?;
        Some(file::lock(&path)?)
    };

    let writing = Connection::writing(&path, durability, settings.allow_unsafe, settings.secondary)?;
    let open = |count: usize| (0..count).map(|_| Connection::reading(&path)).collect::<Result<Vec<_>, _>>();
    let reading = open(settings.connections.max(1))?;
    let near = Near::new(open(NEAR)?, Arc::clone(clock));

    let mut threads = Vec::new();
    let shared = Arc::new(checkpoint::Shared::default());
    let (writes, waiting_writes) = sync_channel(QUEUE_LIMIT);
    let (reads, waiting_reads) = Reads::new();
    let (seen, changes) = watch::channel(0);

    // The checkpointing thread ends when the writer drops its end of this channel, so the last checkpoint comes last.
    let (writer_alive, writer_gone) = std::sync::mpsc::channel();
    if !settings.secondary {
        let checkpoints = checkpoint::Checkpoints::open(&path, durability, Arc::clone(&shared), lock.clone())?;
        threads.push(thread::spawn("sqlite-checkpoint".to_owned(), move || checkpoints.run(&writer_gone))?);
    }
    let writer = writer::Writer::new(writing, Arc::clone(clock), shared, seen, lock, writer_alive);
    threads.push(thread::spawn("sqlite-writer".to_owned(), move || writer.run(&waiting_writes))?);
    for (index, connection) in reading.into_iter().enumerate() {
        let (clock, queue) = (Arc::clone(clock), Arc::clone(&waiting_reads));
        threads.push(thread::spawn(format!("sqlite-reader-{index}"), move || reader::run(connection, &clock, &queue))?);
    }
    Ok(Started { queues: Queues::Sqlite { writes, reads, near }, threads, changes, folder })
}
