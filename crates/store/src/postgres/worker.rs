//! A thread with one connection: takes a closure, runs it, commits, and runs it again when another transaction was faster.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::Common;
use super::connect;
use super::connection::{Connection, Patience, State};
use super::pooler;
use crate::error::Error;
use crate::job::{Job, MAX_RUNS, Verdict};
use crate::tx::{Access, Tx};

pub(crate) enum Message {
    One(Access, Box<dyn Job>),
    /// A closure that only adds, with a transaction of its own.
    Addition(Box<dyn Job>),
    /// Closures wait to share a transaction.
    Additions,
    /// Closures that another transaction kept waiting are to be tried again: one of them.
    Blocked,
}

/// A closure that another transaction kept waiting.
pub(crate) struct Again {
    job: Box<dyn Job>,
    /// When it was begun first.
    begun_us: i64,
    /// What it is told if it can't be begun any more.
    error: Error,
    /// Where its thread may; who only adds never does.
    waits_long: bool,
}

impl Again {
    /// One of those that may wait long, where it wants to and one is free.
    fn place<'a>(&self, patient: &'a Semaphore) -> Option<SemaphorePermit<'a>> {
        if self.waits_long { patient.try_acquire().ok() } else { None }
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A broken connection costs a closure this many new starts at most.
const RECONNECTIONS: u32 = 3;
/// After this it isn't started anew: who asked gives up after 30 seconds and may ask again, and then both would be done.
const LAST_START_US: i64 = 10_000_000;
/// A server's settings may change under a connection, and a pooler may have gone to another server: they are looked at so often.
const LOOK_US: i64 = 60_000_000;

pub(crate) struct Worker {
    common: Arc<Common>,
    runtime: Runtime,
}

impl Worker {
    pub(crate) fn new(common: Arc<Common>) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::Unavailable(format!("a runtime can't be started: {error}")))?;
        Ok(Self { common, runtime })
    }

    pub(crate) fn run(self) {
        Running { common: self.common, runtime: Rc::new(self.runtime), connection: None, looked_us: 0 }.run();
    }
}

struct Running {
    common: Arc<Common>,
    runtime: Rc<Runtime>,
    connection: Option<Connection>,
    /// When its server's settings were looked at.
    looked_us: i64,
}

impl Running {
    fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            // Without a connection it takes no closure that another thread could serve.
            if let Err(error) = self.connect() {
                tracing::warn!(%error, pause_ms = pause.as_millis(), "no database connection");
                if self.refuse_waiting(&error) {
                    return;
                }
                self.sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
            pause = FIRST_PAUSE;
            // While it waits for a closure the runtime also looks after the connection.
            let next = self.runtime.block_on(async { self.common.waiting.lock().await.recv().await });
            match next {
                None => return,
                Some(Message::One(_, job) | Message::Addition(job)) if job.abandoned() => {}
                Some(Message::One(Access::Write, job)) => self.write(job, true),
                Some(Message::One(Access::Read, job)) => self.read(job),
                Some(Message::Addition(job)) => self.write(job, false),
                Some(Message::Additions) => self.add(),
                Some(Message::Blocked) => self.try_blocked(),
            }
        }
    }

    fn connect(&mut self) -> Result<&mut Connection, Error> {
        let now_us = self.common.clock.now_us();
        if let Some(connection) = &self.connection {
            let is_looked_at = now_us - self.looked_us >= LOOK_US;
            let is_sound = connection.is_usable() && (!is_looked_at || self.is_safe(connection));
            if is_looked_at {
                self.looked_us = now_us;
            }
            if !is_sound {
                self.connection = None;
                self.common.connected.fetch_sub(1, Ordering::Relaxed);
            }
        }
        if self.connection.is_none() {
            let connecting = async {
                let link = self.common.target.connect().await?;
                let asking = async {
                    connect::check_settings(&link.client, self.common.allow_unsafe).await?;
                    let pooled = pooler::is_between(&link.client).await?;
                    if !pooled {
                        connect::limit(&link.client).await?;
                    }
                    Ok(pooled)
                };
                let pooled = connect::answered(asking).await?;
                Ok::<_, Error>((link, pooled))
            };
            // What was there at the start may be mended, and is looked for again.
            let (link, pooled) = self.runtime.block_on(connecting).map_err(|error| match error {
                Error::Unsafe(sentence) => Error::Unavailable(sentence),
                error => error,
            })?;
            if pooled && !self.common.unprepared.swap(true, Ordering::Relaxed) {
                tracing::info!(
                    "a connection pooler is in between: statements are not prepared, which costs some speed"
                );
            }
            let (unprepared, clock) = (Arc::clone(&self.common.unprepared), Arc::clone(&self.common.clock));
            self.connection = Some(Connection::new(Rc::clone(&self.runtime), link, unprepared, pooled, clock));
            self.common.connected.fetch_add(1, Ordering::Relaxed);
            self.looked_us = now_us;
        }
        Ok(self.connection.as_mut().expect("it was made a line above"))
    }

    fn is_safe(&self, connection: &Connection) -> bool {
        let looking = connect::check_settings(connection.client(), self.common.allow_unsafe);
        self.runtime.block_on(connect::answered(looking)).is_ok()
    }

    /// When nobody has a connection, whoever waits is told so now. `true` when the store is closed.
    fn refuse_waiting(&self, error: &Error) -> bool {
        let Ok(mut waiting) = self.common.waiting.try_lock() else { return false };
        loop {
            if self.common.connected.load(Ordering::Relaxed) > 0 && !waiting.is_closed() {
                return false;
            }
            match waiting.try_recv() {
                Ok(Message::One(_, job) | Message::Addition(job)) => job.refuse(error.clone()),
                Ok(Message::Additions) => loop {
                    let jobs = self.common.additions.next();
                    if jobs.is_empty() {
                        break;
                    }
                    jobs.into_iter().for_each(|job| job.refuse(error.clone()));
                },
                Ok(Message::Blocked) => {
                    self.common.blocked.go_on(|| false).into_iter().for_each(|again| again.job.refuse(error.clone()));
                }
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
    }

    fn write(&mut self, job: Box<dyn Job>, waits_long: bool) {
        self.write_since(job, self.common.clock.now_us(), waits_long);
    }

    /// Begun at `begun_us`, perhaps together with others. Who is held up by another transaction longer than its patience lasts
    /// gets in line, unless it wants to wait long and its thread may.
    fn write_since(&mut self, job: Box<dyn Job>, begun_us: i64, waits_long: bool) {
        let Some(again) = self.write_soon(job, begun_us, waits_long) else { return };
        let common = Arc::clone(&self.common);
        match again.place(&common.patient) {
            Some(_place) => self.write_at_last(again),
            None => self.line_up(again),
        }
    }

    /// Given back where it is held up.
    fn write_soon(&mut self, job: Box<dyn Job>, begun_us: i64, waits_long: bool) -> Option<Again> {
        let patience = if waits_long { self.fair() } else { self.brief() };
        let (job, error) = self.write_with(job, begun_us, patience)?;
        Some(Again { job, begun_us, error, waits_long })
    }

    fn write_at_last(&mut self, again: Again) {
        let held_up = self.write_with(again.job, again.begun_us, Patience::Long);
        assert!(held_up.is_none(), "who waits long is told what came of it");
    }

    /// What is held up longer than that is given back, with what it would be told; where patience is long, nothing is.
    fn write_with(
        &mut self,
        mut job: Box<dyn Job>,
        begun_us: i64,
        patience: Patience,
    ) -> Option<(Box<dyn Job>, Error)> {
        let mut reconnections = 0;
        let mut conflicts = 0;
        loop {
            let error = match self.run_once(job.as_mut(), Access::Write, patience) {
                Ok(Ended::Answer) => {
                    job.answer();
                    return None;
                }
                Ok(Ended::Failed(error)) | Err(error) => error,
            };
            let sound = self.connection.as_ref().is_some_and(Connection::is_usable);
            let is_late = self.is_late(begun_us) || job.abandoned();
            if error == Error::Conflict {
                conflicts += 1;
                if conflicts == MAX_RUNS || is_late {
                    job.refuse(error);
                    return None;
                }
                self.sleep(pause_after(conflicts, job.seed()));
            } else if patience != Patience::Long && self.was_blocked() && error != Error::UnknownCommit && !is_late {
                return Some((job, error));
            } else if error == Error::UnknownCommit || sound || is_late || reconnections == RECONNECTIONS {
                job.refuse(error);
                return None;
            } else {
                reconnections += 1;
            }
        }
    }

    /// A newcomer among those that are held up.
    fn line_up(&self, again: Again) {
        if let Err(Again { job, .. }) = self.common.blocked.push(again, || self.call_for_blocked()) {
            job.refuse(Error::Busy);
        }
    }

    /// Behind whoever waits for a thread already, so that those who hold nothing up never wait long for one that is held up.
    fn call_for_blocked(&self) -> bool {
        self.common.messages.upgrade().is_some_and(|messages| messages.try_send(Message::Blocked).is_ok())
    }

    /// The first that can still be begun. Where it may wait long the line goes on meanwhile: the others may want something else.
    fn try_blocked(&mut self) {
        while let Some(again) = self.common.blocked.next() {
            if again.job.abandoned() {
                continue;
            }
            if self.is_late(again.begun_us) {
                again.job.refuse(again.error);
                continue;
            }
            let common = Arc::clone(&self.common);
            if let Some(_place) = again.place(&common.patient) {
                self.go_on();
                return self.write_at_last(again);
            }
            if let Some(again) = self.write_soon(again.job, again.begun_us, again.waits_long) {
                self.common.blocked.put_back(again);
            }
            break;
        }
        self.go_on();
    }

    /// The next of the line is another thread's.
    fn go_on(&self) {
        // The store is closed, or refuses whoever comes.
        for Again { job, error, .. } in self.common.blocked.go_on(|| self.call_for_blocked()) {
            job.refuse(error);
        }
    }

    /// A row that many write at once has them stand in line, and none of them is refused for that. Where half of the threads wait
    /// already, something is held that nobody lets go (by a process that is gone, say): the other half is for everything else.
    fn fair(&self) -> Patience {
        if self.common.patient.available_permits() > 0 { Patience::Fair } else { self.brief() }
    }

    /// What holds up some will hold up more: none of them keeps a thread for long.
    fn brief(&self) -> Patience {
        if self.common.blocked.is_empty() { Patience::Brief } else { Patience::Briefest }
    }

    fn is_late(&self, begun_us: i64) -> bool {
        self.common.clock.now_us() - begun_us > LAST_START_US
    }

    fn was_blocked(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.is_blocked)
    }

    fn add(&mut self) {
        loop {
            let mut jobs = self.common.additions.next();
            if jobs.is_empty() {
                return;
            }
            jobs.retain(|job| !job.abandoned());
            match jobs.len() {
                0 => {}
                1 => jobs.into_iter().for_each(|job| self.write(job, false)),
                _ => self.write_together(jobs),
            }
        }
    }

    /// All of them commit, or each runs again alone.
    fn write_together(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        let begun_us = self.common.clock.now_us();
        let error = match self.run_together(&mut jobs) {
            Ok(()) => return jobs.into_iter().for_each(|job| job.answer()),
            Err(error) => error,
        };
        self.common.additions.be_careful();
        let mut refusal = None;
        for job in jobs {
            // Those before it may have taken as long as anybody waits.
            if self.is_late(begun_us) || error == Error::UnknownCommit {
                refusal = Some(error.clone());
            }
            // Without a connection each of them would wait for one in vain, and the last the longest.
            refusal = refusal.or_else(|| self.connect().err());
            match &refusal {
                Some(error) => job.refuse(error.clone()),
                None if job.abandoned() => {}
                None => self.write_since(job, begun_us, false),
            }
        }
    }

    fn run_together(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Error> {
        let (clock, patience) = (Arc::clone(&self.common.clock), self.brief());
        let connection = self.connect()?;
        connection.trim();
        connection.begin_shared(patience);
        let ended = jobs.iter_mut().try_for_each(|job| {
            let (now_us, seed, before) = (clock.now_us(), job.seed(), connection.moment());
            match job.run(&mut Tx::new(connection, Access::Write, now_us, seed)) {
                Verdict::Commit => Ok(()),
                Verdict::RollBack => connection.back_to(before),
                Verdict::Failed(error) => Err(error),
            }
        });
        // Everything is there before COMMIT is sent: who asks later for a key of a commit of unknown outcome waits for it.
        let ended = ended.and_then(|()| connection.send_together()).and_then(|()| connection.commit());
        self.leave();
        ended
    }

    fn read(&mut self, mut job: Box<dyn Job>) {
        let begun_us = self.common.clock.now_us();
        for reconnections in 0..=RECONNECTIONS {
            let error = match self.run_once(job.as_mut(), Access::Read, Patience::Long) {
                Ok(Ended::Answer) => {
                    // The answer doesn't depend on how the snapshot ends.
                    job.answer();
                    if let Some(connection) = &mut self.connection {
                        connection.leave();
                    }
                    return;
                }
                Ok(Ended::Failed(error)) | Err(error) => error,
            };
            let is_late = self.is_late(begun_us) || job.abandoned();
            let sound = self.connection.as_ref().is_some_and(Connection::is_usable);
            if reconnections == RECONNECTIONS || is_late || sound {
                return job.refuse(error);
            }
        }
    }

    fn run_once(&mut self, job: &mut dyn Job, access: Access, patience: Patience) -> Result<Ended, Error> {
        let clock = Arc::clone(&self.common.clock);
        let connection = self.connect()?;
        // A new connection may take seconds, and what others did meanwhile comes before this.
        let (now_us, seed) = (clock.now_us(), job.seed());
        connection.trim();
        connection.begin(access, patience);
        let verdict = job.run(&mut Tx::new(connection, access, now_us, seed));
        let ended = match (verdict, access) {
            (Verdict::Commit | Verdict::RollBack, Access::Read) => return Ok(Ended::Answer),
            (Verdict::Commit, Access::Write) => match connection.commit() {
                Ok(()) => Ended::Answer,
                Err(error) => Ended::Failed(error),
            },
            (Verdict::RollBack, Access::Write) => Ended::Answer,
            (Verdict::Failed(error), _) => Ended::Failed(error),
        };
        self.leave();
        Ok(ended)
    }

    /// Ends the transaction, if it hasn't ended.
    fn leave(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        connection.roll_back();
        if connection.state == State::Stale && self.common.stale.fetch_add(1, Ordering::Relaxed) > 0 {
            tracing::warn!("prepared statements get lost, probably in a pooler; going on without them");
            self.common.unprepared.store(true, Ordering::Relaxed);
        }
    }

    fn sleep(&self, pause: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(pause).await });
    }
}

enum Ended {
    /// The closure's own answer stands, and so does what it wrote, if it said yes.
    Answer,
    Failed(Error),
}

/// Grows, and differs from call to call, so that two closures that collided don't do so again.
fn pause_after(conflicts: u32, seed: [u8; 32]) -> Duration {
    let jitter = u64::from(seed[conflicts as usize % seed.len()]);
    let base_us = 500 << conflicts.min(6);
    Duration::from_micros(base_us / 2 + base_us * jitter / 256)
}
