//! What the background check found last: the shared memory between the loop that looks and those who ask.
//!
//! It does no checking and keeps nothing on disk: after a restart nothing has been looked at yet.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{Scope, Timestamp};

/// The outcome of the latest run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invariants {
    /// When it ended; nothing while none has.
    pub last_run: Option<Timestamp>,
    /// The names of the checks that ran, in their order.
    pub checked: Vec<&'static str>,
    /// One sentence each. They may name objects: for the operator's eyes, not for an answer to anybody.
    pub faults: Vec<String>,
    pub doubt: Doubt,
}

/// Whose money is not where the books say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubt {
    pub scopes: BTreeSet<Scope>,
    /// Nobody knows whose: everybody's.
    pub is_of_all: bool,
}

impl Doubt {
    pub fn is_of(&self, scope: Scope) -> bool {
        self.is_of_all || self.scopes.contains(&scope)
    }
}

/// Holds the outcome for whoever asks.
#[derive(Debug, Default)]
pub struct LatestInvariants(Mutex<Invariants>);

impl LatestInvariants {
    pub fn get(&self) -> Invariants {
        self.lock().clone()
    }

    pub fn set(&self, found: Invariants) {
        *self.lock() = found;
    }

    /// As soon as it is seen: a check may take hours to its end, and only that end takes a doubt away. What is new of it.
    pub fn add_doubt(&self, doubt: &Doubt) -> Doubt {
        let known = &mut self.lock().doubt;
        let is_of_all = doubt.is_of_all && !known.is_of_all;
        let scopes = doubt.scopes.difference(&known.scopes).copied().collect();
        known.is_of_all |= doubt.is_of_all;
        known.scopes.extend(&doubt.scopes);
        Doubt { scopes, is_of_all }
    }

    /// Then no money of this scope goes out.
    pub fn are_in_doubt(&self, scope: Scope) -> bool {
        self.lock().doubt.is_of(scope)
    }

    fn lock(&self) -> MutexGuard<'_, Invariants> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
