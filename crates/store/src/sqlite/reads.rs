//! What waits to be read. Any reading thread takes the next of them; a thread is woken only while one sleeps, so that
//! under load a read costs no wake of its own.

use std::collections::VecDeque;

use super::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use crate::job::Job;
use crate::store::QUEUE_LIMIT;

/// The end that the store holds. The threads end when it is dropped and nothing waits any more.
pub(crate) struct Reads(Arc<Waiting>);

pub(super) struct Waiting {
    state: Mutex<State>,
    more: Condvar,
}

struct State {
    jobs: VecDeque<Box<dyn Job>>,
    sleeping: usize,
    closed: bool,
}

impl Reads {
    pub(super) fn new() -> (Self, Arc<Waiting>) {
        let state = State { jobs: VecDeque::with_capacity(QUEUE_LIMIT), sleeping: 0, closed: false };
        let waiting = Arc::new(Waiting { state: Mutex::new(state), more: Condvar::new() });
        (Self(Arc::clone(&waiting)), waiting)
    }

    /// Gives the job back when too many wait.
    pub(crate) fn push(&self, job: Box<dyn Job>) -> Result<(), Box<dyn Job>> {
        let mut state = self.0.state();
        if state.jobs.len() >= QUEUE_LIMIT {
            return Err(job);
        }
        state.jobs.push_back(job);
        let wakes = state.sleeping > 0;
        drop(state);
        if wakes {
            self.0.more.notify_one();
        }
        Ok(())
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.more.notify_all();
    }
}

impl Waiting {
    /// The next job; nothing once there will be none.
    pub(super) fn next(&self) -> Option<Box<dyn Job>> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state.sleeping += 1;
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.sleeping -= 1;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
