//! The handle that the rest of the program holds: it hands closures to the driver's threads and waits for their answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use domain::Timestamp;
use tokio::sync::watch;

use crate::clock::{Clock, EntropySource, Monotone};
use crate::error::Error;
use crate::job::{Call, Job};
use crate::migrate::{Schema, check, migrate};
use crate::settings::{Database, Dialect, Settings};
#[cfg(feature = "inline")]
use crate::tx::Access;
use crate::tx::Tx;
use crate::{lease, postgres, sqlite};

/// Waiting closures beyond this are refused: a longer queue would only answer later than anybody waits.
pub(crate) const QUEUE_LIMIT: usize = 1024;

#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    dialect: Dialect,
    schema: Schema,
    entropy: Arc<dyn EntropySource>,
    queues: RwLock<Option<Queues>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    changes: watch::Receiver<u64>,
    calls: AtomicUsize,
    _folder: Option<sqlite::TemporaryFolder>,
    clock: Arc<Monotone>,
}

pub(crate) enum Queues {
    Sqlite {
        writes: SyncSender<Box<dyn Job>>,
        reads: sqlite::Reads,
        near: sqlite::Near,
    },
    Postgres(postgres::Queue),
    #[cfg(feature = "inline")]
    Inline(crate::inline::Inline),
}

/// What is asked of a driver with a closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Read,
    /// See [`Store::look`].
    Look,
    Write,
    /// See [`Store::add`].
    Add,
}

impl Order {
    #[cfg(feature = "inline")]
    fn access(self) -> Access {
        match self {
            Self::Read | Self::Look => Access::Read,
            Self::Write | Self::Add => Access::Write,
        }
    }
}

/// What a driver's start returns.
pub(crate) struct Started {
    pub(crate) queues: Queues,
    pub(crate) threads: Vec<JoinHandle<()>>,
    pub(crate) changes: watch::Receiver<u64>,
    pub(crate) folder: Option<sqlite::TemporaryFolder>,
}

impl Store {
    /// Checks the database's settings, starts the threads and migrates. An embedded database has no other process that serves it:
    /// what one held that died is free at once.
    pub async fn open(
        settings: Settings,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn EntropySource>,
    ) -> Result<Self, Error> {
        let is_alone = settings.database.dialect() == Dialect::Sqlite && !settings.secondary;
        let store = Self::open_with(settings, Schema::product(), clock, entropy).await?;
        if is_alone && let Err(error) = begin_alone(&store).await {
            store.close().await;
            return Err(error);
        }
        Ok(store)
    }

    /// With another set of migrations than the product's: tests, and a restore that starts from an older schema.
    pub async fn open_with(
        settings: Settings,
        schema: Schema,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn EntropySource>,
    ) -> Result<Self, Error> {
        let dialect = settings.database.dialect();
        let (secondary, takes_older) = (settings.secondary, settings.takes_older);
        let clock = Arc::new(Monotone::new(clock));
        let started = match settings.database.clone() {
            Database::Postgres { url } => postgres::start(&settings, &url, Arc::clone(&clock)).await?,
            Database::Sqlite { .. } | Database::SqliteMemory => {
                let clock = Arc::clone(&clock);
                let start = tokio::task::spawn_blocking(move || sqlite::start(&settings, &clock));
                start.await.map_err(|error| Error::Panic(error.to_string()))??
            }
        };
        let store = Self {
            shared: Arc::new(Shared {
                dialect,
                schema: schema.clone(),
                entropy,
                queues: RwLock::new(Some(started.queues)),
                threads: Mutex::new(started.threads),
                changes: started.changes,
                calls: AtomicUsize::new(0),
                _folder: started.folder,
                clock,
            }),
        };
        let ready = match secondary {
            true => check(&store, &schema, takes_older).await,
            false => migrate(&store, &schema).await,
        };
        match ready {
            Ok(()) => Ok(store),
            Err(error) => {
                store.close().await;
                Err(error)
            }
        }
    }

    /// Over a database that runs its transactions where they are asked for. `migrates`: the first time over that database.
    #[cfg(feature = "inline")]
    pub async fn open_inline(
        database: &crate::InlineDatabase,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn EntropySource>,
        interference: Arc<dyn crate::Interference>,
        migrates: bool,
    ) -> Result<Self, Error> {
        let clock = Arc::new(Monotone::new(clock));
        let now_us = clock.now_us();
        let inline = crate::inline::Inline::new(database.clone(), Arc::clone(&clock), interference);
        let schema = Schema::product();
        let (_, changes) = watch::channel(0);
        let store = Self {
            shared: Arc::new(Shared {
                dialect: Dialect::Sqlite,
                schema: schema.clone(),
                entropy,
                queues: RwLock::new(Some(Queues::Inline(inline))),
                threads: Mutex::new(Vec::new()),
                changes,
                calls: AtomicUsize::new(0),
                _folder: None,
                clock,
            }),
        };
        if migrates {
            migrate(&store, &schema).await?;
        }
        database.end_leases(now_us)?;
        Ok(store)
    }

    /// One transaction, committed before this returns `Ok`. The closure may run several times, so it must not do anything
    /// that can't be done again; the bytes of [`Tx::seed`] are the same each time.
    pub async fn write<T, E, F>(&self, closure: F) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        // A thread that ended with the closure in its hands may have been inside COMMIT.
        self.call(Order::Write, closure, Error::UnknownCommit).await
    }

    /// The same, for a closure that locks no row and adds none that others may be adding, its idempotency key aside.
    /// PostgreSQL commits several of them together: no two of them wait for one another, so none can stand in a circle.
    pub async fn add<T, E, F>(&self, closure: F) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.call(Order::Add, closure, Error::UnknownCommit).await
    }

    /// One snapshot, read-only.
    pub async fn read<T, E, F>(&self, closure: F) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.call(Order::Read, closure, Error::Unavailable("the store has stopped".to_owned())).await
    }

    /// The same, for a closure that looks at a few rows by their keys. It holds up its caller's thread for as long as that
    /// takes where the database is in this process.
    pub async fn look<T, E, F>(&self, closure: F) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.call(Order::Look, closure, Error::Unavailable("the store has stopped".to_owned())).await
    }

    async fn call<T, E, F>(&self, order: Order, closure: F, unanswered: Error) -> Result<T, E>
    where
        F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        // A read makes nothing, so what is made does not depend on how often somebody looked.
        let mut seed = [0; 32];
        if !matches!(order, Order::Read | Order::Look) {
            self.shared.entropy.fill(&mut seed);
        }
        let (call, answer) = Call::new(closure, seed);
        let _awaited = Awaited::among(&self.shared.calls);
        self.submit(order, Box::new(call))?;
        answer.await.unwrap_or_else(|_| Err(E::from(unanswered)))
    }

    fn submit(&self, order: Order, job: Box<dyn Job>) -> Result<(), Error> {
        let queues = self.shared.queues.read().unwrap_or_else(PoisonError::into_inner);
        let busy = || Error::Busy;
        let stopped = || Error::Unavailable("the store is closed".to_owned());
        match (queues.as_ref().ok_or_else(stopped)?, order) {
            (Queues::Sqlite { reads, .. }, Order::Read) => reads.push(job).map_err(|_| busy()),
            (Queues::Sqlite { reads, near, .. }, Order::Look) => {
                near.run(job).or_else(|job| reads.push(job)).map_err(|_| busy())
            }
            (Queues::Sqlite { writes, .. }, Order::Write | Order::Add) => {
                writes.try_send(job).map_err(|error| match error {
                    std::sync::mpsc::TrySendError::Full(_) => busy(),
                    std::sync::mpsc::TrySendError::Disconnected(_) => stopped(),
                })
            }
            #[cfg(feature = "inline")]
            (Queues::Inline(inline), order) => {
                inline.run(order.access(), job);
                Ok(())
            }
            (Queues::Postgres(queue), order) => queue.push(order, job),
        }
    }

    /// What a transaction that began now would read, for whoever needs no more of one than its time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.shared.clock.now_us())
    }

    /// The machine's own time, for what others hold against theirs. Business time is behind it or ahead of it for a while after
    /// the clock was set.
    #[must_use]
    pub fn wall_time(&self) -> Timestamp {
        Timestamp::from_micros(self.shared.clock.wall_us())
    }

    /// For the next history that is simulated over this store: its time may be before that of the last.
    #[cfg(feature = "inline")]
    pub fn forget_time(&self) {
        self.shared.clock.forget();
    }

    /// Finishes what is queued, writes the last checkpoint and ends the threads. Later calls are refused.
    pub async fn close(&self) {
        self.shared.queues.write().unwrap_or_else(PoisonError::into_inner).take();
        let threads = std::mem::take(&mut *self.shared.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let joined =
            tokio::task::spawn_blocking(move || threads.into_iter().filter_map(|thread| thread.join().err()).count());
        match joined.await {
            Ok(0) => {}
            Ok(panicked) => tracing::error!(panicked, "store threads ended by a panic"),
            Err(error) => tracing::error!(%error, "closing the store was interrupted"),
        }
    }

    /// How often a *second process* was seen to have changed this SQLite file. Whoever caches rows drops them when it
    /// grows. On PostgreSQL it stays 0: several nodes write there as a matter of course.
    #[must_use]
    pub fn data_version(&self) -> u64 {
        *self.shared.changes.borrow()
    }

    /// Wakes when [`Store::data_version`] grows, at most a second after the other process committed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.clone()
    }

    /// How many transactions somebody waits for now, under way or in line.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::Relaxed)
    }

    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.shared.dialect
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.shared.schema
    }
}

/// Counts a call for as long as its caller waits.
struct Awaited<'a>(&'a AtomicUsize);

impl<'a> Awaited<'a> {
    fn among(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::Relaxed);
        Self(calls)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Nobody else serves this file, and nobody asks yet.
async fn begin_alone(store: &Store) -> Result<(), Error> {
    store.write(lease::end_all).await?;
    while store.write(sqlite::key_index::catch_up).await? {}
    Ok(())
}
