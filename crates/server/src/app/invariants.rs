//! What the background check found last: the shared memory between the loop that looks and those who ask.
//!
//! It does no checking and keeps nothing on disk: after a restart nothing has been looked at yet.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{Scope, Timestamp};

/// The outcome of the latest run, and what the one that is under way has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invariants {
    /// When it ended; nothing while none has.
    pub last_run: Option<Timestamp>,
    /// The names of the checks that ran, in their order.
    pub checked: Vec<&'static str>,
    /// What it found: all of it, also what was not named.
    pub fault_count: u64,
    /// So far.
    pub seen_since: u64,
    pub doubt: Doubt,
}

impl Invariants {
    /// Each run looks at the same rows: what the latest found may be what the next one sees again.
    pub fn known_faults(&self) -> u64 {
        self.fault_count.max(self.seen_since)
    }
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

    /// As soon as it is seen: a check may take hours to its end, and only that end takes a fault or a doubt away. What is new of
    /// the doubt.
    pub fn see(&self, faults: u64, doubt: &Doubt) -> Doubt {
        let mut found = self.lock();
        found.seen_since = faults;
        let known = &mut found.doubt;
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
