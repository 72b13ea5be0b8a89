//! Closures that only add, waiting to share a transaction. A few threads at most run such transactions; what comes meanwhile
//! is in the next one, so that there are the more together the slower a commit is.

use std::collections::VecDeque;

use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::{Mutex, MutexGuard, PoisonError};
use crate::job::Job;
use crate::store::QUEUE_LIMIT;

/// While one waits for its commit, another sends its rows.
const THREADS: usize = 2;
/// Bounds how long the first waits for the last.
const TOGETHER: usize = 64;
/// After some that could not share a transaction: a key came again, and more of them come soon.
const CAREFUL: usize = 256;

#[derive(Default)]
pub(crate) struct Additions {
    state: Mutex<State>,
    /// So many more run alone.
    careful: AtomicUsize,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Box<dyn Job>>,
    /// That run them, or are called to.
    threads: usize,
}

impl Additions {
    /// `call` asks a thread for help where too few are at it. Whatever it refuses, or a full queue, is this one's refusal.
    pub(crate) fn push<E>(&self, job: Box<dyn Job>, full: E, call: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let mut state = self.state();
        if state.waiting.len() >= QUEUE_LIMIT {
            return Err(full);
        }
        if state.threads < THREADS {
            call()?;
            state.threads += 1;
        }
        state.waiting.push_back(job);
        Ok(())
    }

    /// The next that share a transaction. Empty: nothing waits, and the part of the thread that asks has ended.
    pub(crate) fn next(&self) -> Vec<Box<dyn Job>> {
        let mut state = self.state();
        let count = state.waiting.len().min(TOGETHER);
        let jobs: Vec<_> = state.waiting.drain(..count).collect();
        state.threads -= usize::from(jobs.is_empty());
        jobs
    }

    /// Whether the next one is to run alone.
    pub(crate) fn is_careful(&self) -> bool {
        self.careful.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    pub(crate) fn be_careful(&self) {
        self.careful.store(CAREFUL, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
