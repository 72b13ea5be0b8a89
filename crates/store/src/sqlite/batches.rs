//! Shared commits: whoever waits is run one after the other, committed together, and only then answered. One sync of the disk is
//! shared by everybody who waited for it.
//!
//! What a closure wrote that said no has to go without its neighbours' writes. A savepoint for each would do that, and SQLite
//! then copies every page before it changes it. Nearly all closures say yes, so a batch begins without savepoints: at the first
//! no, all of it is rolled back and run again with them, and so are the next few batches.

use std::collections::VecDeque;
use std::time::Duration;

use super::sync::mpsc::{Receiver, RecvTimeoutError};
use super::yield_now;
use crate::error::Error;
use crate::job::{BATCH, Job, MAX_RUNS, Verdict};
use crate::store::QUEUE_LIMIT;

/// After a closure that said no: somebody's requests are wrong, and the next of them comes soon.
const CAREFUL_BATCHES: u32 = 16;
const ROLLED_BACK: &str = "the transaction was rolled back by a storage error";

/// What a batch is written to: one transaction at a time.
pub(super) trait Storage {
    /// Begins a transaction, and ends one before it that could not be ended when it failed.
    fn begin(&mut self) -> Result<(), Error>;
    /// Runs the closure in it. Without savepoints no part of what it does can be undone: one that needs that says that it was in
    /// conflict.
    fn run(&mut self, job: &mut dyn Job, has_savepoints: bool) -> Verdict;
    /// Whether the closure that ran last asked for all the time it needs.
    fn is_load(&self) -> bool;
    /// Whether the transaction is still there: a full disk and the like end it, and all that was written goes with it.
    fn is_open(&self) -> bool;
    fn savepoint(&mut self) -> Result<(), Error>;
    fn release(&mut self) -> Result<(), Error>;
    /// Undoes what was written since the savepoint, and forgets it.
    fn roll_back_to_savepoint(&mut self) -> Result<(), Error>;
    fn roll_back(&mut self) -> Result<(), Error>;
    /// On an error nothing of the transaction is kept.
    fn commit(&mut self) -> Result<(), Error>;
    /// A batch was not committed.
    fn note_failure(&mut self) {}
}

#[derive(Default)]
pub(super) struct Batches {
    /// Whoever was taken out of the queue and not into a batch is in the next one.
    gathered: VecDeque<Box<dyn Job>>,
    /// So many batches more run with savepoints.
    careful: u32,
}

/// How a batch without savepoints went.
enum Together {
    /// It can be committed.
    Yes,
    /// Nothing of it is left; it is to be run again.
    No,
    /// Nothing of it is left, and that was the answer.
    Answered,
}

/// What will be said after the commit.
enum Answer {
    Own(Box<dyn Job>),
    Refusal(Box<dyn Job>, Error),
}

impl Batches {
    /// Waits so long at most until somebody asks for something, and writes it with all that waits beside it.
    pub(super) fn next(
        &mut self,
        waiting: &Receiver<Box<dyn Job>>,
        at_most: Duration,
        storage: &mut dyn Storage,
    ) -> Result<(), RecvTimeoutError> {
        if self.gathered.is_empty() {
            self.gathered.push_back(waiting.recv_timeout(at_most)?);
        }
        self.gather(waiting);
        self.write(waiting, storage);
        Ok(())
    }

    /// Whoever is about to ask for something as well is given the time for it, as long as more come: where this core has other
    /// work to do, it does that first, and one commit serves all that comes of it; where it has none, this costs nothing.
    fn gather(&mut self, waiting: &Receiver<Box<dyn Job>>) {
        while self.gathered.len() < BATCH {
            let before = self.gathered.len();
            yield_now();
            self.gathered.extend(waiting.try_iter().take(BATCH - before));
            if self.gathered.len() == before {
                break;
            }
        }
    }

    fn write(&mut self, waiting: &Receiver<Box<dyn Job>>, storage: &mut dyn Storage) {
        let Self { gathered, careful } = self;
        // Whoever comes while it runs is taken along.
        let jobs = std::iter::from_fn(|| gathered.pop_front().or_else(|| waiting.try_recv().ok()));
        let mut jobs = jobs.filter(|job| !job.abandoned()).take(BATCH);
        let mut ran = Vec::new();
        let mut begun = storage.begin();
        if *careful == 0 && begun.is_ok() {
            match run_together(&mut jobs, &mut ran, storage) {
                Together::Yes => return end(ran.into_iter().map(Answer::Own).collect(), None, storage),
                Together::Answered => return,
                Together::No => {
                    *careful = CAREFUL_BATCHES;
                    begun = storage.begin();
                }
            }
        }
        *careful = careful.saturating_sub(1);
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
            answers.push(run_one(job, storage));
            // The neighbours' writes are gone as well.
            if !storage.is_open() {
                broken = Some(Error::Unavailable(ROLLED_BACK.to_owned()));
                break;
            }
        }
        // Of a batch that broke; whoever was not taken yet is in the next one.
        for job in ran {
            job.refuse(Error::Unavailable(ROLLED_BACK.to_owned()));
        }
        end(answers, broken, storage);
    }
}

/// Without savepoints.
fn run_together(
    jobs: &mut dyn Iterator<Item = Box<dyn Job>>,
    ran: &mut Vec<Box<dyn Job>>,
    storage: &mut dyn Storage,
) -> Together {
    let mut said_no = None;
    for mut job in jobs {
        let verdict = storage.run(job.as_mut(), false);
        if !matches!(verdict, Verdict::Commit) || !storage.is_open() {
            said_no = Some((job, verdict));
            break;
        }
        ran.push(job);
    }
    let Some((job, verdict)) = said_no else { return Together::Yes };
    if storage.is_open()
        && let Err(error) = storage.roll_back()
    {
        tracing::error!(%error, "a batch could not be rolled back");
    }
    // What takes long has no neighbours, and once is enough.
    if storage.is_load() && ran.is_empty() {
        match verdict {
            Verdict::Commit => job.refuse(Error::Unavailable(ROLLED_BACK.to_owned())),
            Verdict::RollBack => job.answer(),
            Verdict::Failed(error) => job.refuse(error),
        }
        return Together::Answered;
    }
    ran.push(job);
    Together::No
}

fn run_one(mut job: Box<dyn Job>, storage: &mut dyn Storage) -> Answer {
    for _ in 0..MAX_RUNS {
        if let Err(error) = storage.savepoint() {
            return Answer::Refusal(job, error);
        }
        let verdict = storage.run(job.as_mut(), true);
        let ended = match verdict {
            Verdict::Commit => storage.release(),
            Verdict::RollBack | Verdict::Failed(_) if storage.is_open() => storage.roll_back_to_savepoint(),
            Verdict::RollBack | Verdict::Failed(_) => Ok(()),
        };
        match (verdict, ended) {
            (Verdict::Commit | Verdict::RollBack, Ok(())) => return Answer::Own(job),
            (Verdict::Failed(Error::Conflict), Ok(())) if !job.abandoned() => {}
            (Verdict::Failed(error), _) | (_, Err(error)) => return Answer::Refusal(job, error),
        }
    }
    Answer::Refusal(job, Error::Conflict)
}

fn end(answers: Vec<Answer>, broken: Option<Error>, storage: &mut dyn Storage) {
    let committed = match broken {
        Some(error) => Err(error),
        None => storage.commit(),
    };
    if committed.is_err() {
        storage.note_failure();
    }
    for answer in answers {
        match (answer, &committed) {
            (Answer::Own(job), Ok(())) => job.answer(),
            (Answer::Own(job), Err(error)) => job.refuse(error.clone()),
            (Answer::Refusal(job, error), _) => job.refuse(error),
        }
    }
}
