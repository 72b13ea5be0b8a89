//! The PostgreSQL driver: N threads, each with one connection and a small runtime of its own, that take closures from one
//! queue. Correct at READ COMMITTED and through a pooler in transaction mode: no session state, no advisory locks, no LISTEN.

mod additions;
mod blocked;
mod condition;
mod connect;
mod connection;
mod fault;
mod merge;
mod pipeline;
mod pooler;
mod shared;
mod value;
mod worker;

use std::sync::atomic::{AtomicBool, AtomicUsize};
// By name, because a scheduler that tries every order puts its own in its place (`tests/interleavings`).
use std::sync::{self, Arc};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, Semaphore, mpsc, watch};

pub(crate) use self::condition::{SIZE, condition};

use self::additions::Additions;
use self::blocked::Blocked;
use self::worker::{Again, Message};

use crate::clock::Monotone;
use crate::error::Error;
use crate::job::Job;
use crate::settings::Settings;
use crate::store::{Order, QUEUE_LIMIT, Queues, Started};
use crate::thread;
use crate::tx::Access;

/// What the threads know of one another.
pub(crate) struct Common {
    pub(crate) target: connect::Target,
    pub(crate) allow_unsafe: bool,
    pub(crate) clock: Arc<Monotone>,
    pub(crate) waiting: Mutex<mpsc::Receiver<Message>>,
    /// To the end of what is waiting, until the store is closed.
    pub(crate) messages: mpsc::WeakSender<Message>,
    pub(crate) connected: AtomicUsize,
    /// There is a pooler in between, or prepared statements got lost as if there were: go on without.
    pub(crate) unprepared: Arc<AtomicBool>,
    pub(crate) stale: AtomicUsize,
    pub(crate) additions: Arc<Additions>,
    pub(crate) blocked: Blocked<Again>,
    /// So many threads more may wait long for what another transaction holds.
    pub(crate) patient: Semaphore,
}

/// What the store hands its closures to.
pub(crate) struct Queue {
    messages: mpsc::Sender<Message>,
    additions: Arc<Additions>,
}

impl Queue {
    pub(crate) fn push(&self, order: Order, job: Box<dyn Job>) -> Result<(), Error> {
        let send = |message| {
            self.messages.try_send(message).map_err(|error| match error {
                TrySendError::Full(_) => Error::Busy,
                TrySendError::Closed(_) => Error::Unavailable("the store is closed".to_owned()),
            })
        };
        match order {
            Order::Read | Order::Look => send(Message::One(Access::Read, job)),
            Order::Add if !self.additions.is_careful() => {
                self.additions.push(job, Error::Busy, || send(Message::Additions))
            }
            Order::Add => send(Message::Addition(job)),
            Order::Write => send(Message::One(Access::Write, job)),
        }
    }
}

pub(crate) async fn start(settings: &Settings, url: &str, clock: Arc<Monotone>) -> Result<Started, Error> {
    let target = connect::Target::parse(url)?;
    // Said before anything is written, and with the reason why it can't connect if it can't.
    let link = target.connect().await?;
    connect::answered(connect::check_settings(&link.client, settings.allow_unsafe)).await?;
    drop(link);

    let connections = settings.connections.max(1);
    let (messages, waiting) = mpsc::channel(QUEUE_LIMIT);
    let additions = Arc::new(Additions::default());
    let common = Arc::new(Common {
        target,
        allow_unsafe: settings.allow_unsafe,
        clock,
        waiting: Mutex::new(waiting),
        messages: messages.downgrade(),
        connected: AtomicUsize::new(0),
        unprepared: Arc::new(AtomicBool::new(false)),
        stale: AtomicUsize::new(0),
        additions: Arc::clone(&additions),
        blocked: Blocked::new(),
        patient: Semaphore::new((connections / 2).max(1)),
    });
    let mut threads = Vec::new();
    for index in 0..connections {
        let worker = worker::Worker::new(Arc::clone(&common))?;
        threads.push(thread::spawn(format!("postgres-{index}"), move || worker.run())?);
    }
    let (_, changes) = watch::channel(0);
    Ok(Started { queues: Queues::Postgres(Queue { messages, additions }), threads, changes, folder: None })
}
