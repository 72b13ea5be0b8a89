//! What the background check found last: the shared memory between the loop that looks and those who ask.
//!
//! It does no checking and keeps nothing on disk: after a restart nothing has been looked at yet.

use std::sync::{Mutex, PoisonError};

use domain::Timestamp;

/// The outcome of the latest run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invariants {
    /// When it ended; nothing while none has.
    pub last_run: Option<Timestamp>,
    /// The names of the checks that ran, in their order.
    pub checked: Vec<&'static str>,
    /// One sentence each. They may name objects: for the operator's eyes, not for an answer to anybody.
    pub faults: Vec<String>,
}

/// Holds the outcome for whoever asks.
#[derive(Debug, Default)]
pub struct LatestInvariants(Mutex<Invariants>);

impl LatestInvariants {
    pub fn get(&self) -> Invariants {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, found: Invariants) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }
}
