//! Who wants what another transaction holds, in a line apart from the queue that all share: however many stand in it, one
//! thread at a time tries one of them, and then the others come first.

use std::collections::VecDeque;

use super::sync::{Mutex, MutexGuard, PoisonError};

/// More are refused. Each is tried again within a second.
const MOST: usize = 64;

pub(crate) struct Blocked<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    waiting: VecDeque<T>,
    /// A thread is called to try one, or tries it.
    is_called: bool,
}

impl<T> Blocked<T> {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { waiting: VecDeque::new(), is_called: false }) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().waiting.is_empty()
    }

    /// `call` asks for a thread where none is called, and says whether one will come. What is refused is given back.
    pub(crate) fn push(&self, blocked: T, call: impl FnOnce() -> bool) -> Result<(), T> {
        let mut state = self.state();
        if state.waiting.len() >= MOST {
            return Err(blocked);
        }
        if !state.is_called && !call() {
            return Err(blocked);
        }
        state.is_called = true;
        state.waiting.push_back(blocked);
        Ok(())
    }

    /// For the thread that was called.
    pub(crate) fn next(&self) -> Option<T> {
        self.state().waiting.pop_front()
    }

    /// Behind the others, by the thread that tried it in vain. Whoever came meanwhile doesn't take its place.
    pub(crate) fn put_back(&self, blocked: T) {
        self.state().waiting.push_back(blocked);
    }

    /// The thread that was called is done with the line, if not with whom it took out, and calls for the next one where more wait.
    /// Who could then only wait in vain is given back.
    pub(crate) fn go_on(&self, call: impl FnOnce() -> bool) -> Vec<T> {
        let mut state = self.state();
        state.is_called = !state.waiting.is_empty() && call();
        if state.is_called { Vec::new() } else { state.waiting.drain(..).collect() }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
