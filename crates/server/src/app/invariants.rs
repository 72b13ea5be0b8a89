//! What the background check found: what it found last, which the loop that looks shares in memory with those who ask, and whose money
//! it put in doubt, which every process has to know and a restart must not forget (`store::queries::doubts`).
//!
//! It does no checking.

use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{Scope, Timestamp};
use store::queries::doubts::{self, Standing};

use super::App;
use crate::error::Failure;

/// The outcome of the latest run of this process, and what the one that is under way has seen.
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
}

impl Invariants {
    /// Each run looks at the same rows: what the latest found may be what the next one sees again.
    pub fn known_faults(&self) -> u64 {
        self.fault_count.max(self.seen_since)
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

    /// As soon as it is seen: a check may take hours to its end, and only that end takes a fault away.
    pub fn see(&self, faults: u64) {
        self.lock().seen_since = faults;
    }

    fn lock(&self) -> MutexGuard<'_, Invariants> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the end of a check left of the doubts that stood at its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    pub whose: Vec<Option<Scope>>,
    /// How many stand yet, of which others may have seen some since.
    pub standing: u64,
}

impl App {
    /// A fault was seen in the money of each of these: from now on nothing of it goes out, by whichever process. Those of whom it was
    /// not known before.
    pub async fn doubt(&self, found: Vec<(Option<Scope>, String)>) -> Result<Vec<Option<Scope>>, Failure> {
        if found.is_empty() {
            return Ok(Vec::new());
        }
        self.commit_until(None, move |tx, _| {
            let mut new = Vec::new();
            for (whose, what) in &found {
                if doubts::see(tx, *whose, what)? {
                    new.push(*whose);
                }
            }
            Ok(new)
        })
        .await
    }

    /// A check that began when these stood has looked at all of theirs and seen no fault. What somebody has seen again since stays.
    pub async fn end_doubts(&self, mended: Vec<Standing>) -> Result<Ended, Failure> {
        if mended.is_empty() {
            return Ok(Ended { standing: self.standing_doubts().await?, ..Ended::default() });
        }
        self.commit_until(None, move |tx, _| {
            let mut whose = Vec::new();
            for doubt in &mended {
                if doubts::end(tx, doubt)? {
                    whose.push(doubt.whose);
                }
            }
            Ok(Ended { whose, standing: doubts::count(tx)? })
        })
        .await
    }

    /// How many doubts stand, by the word of any process.
    pub async fn standing_doubts(&self) -> Result<u64, Failure> {
        self.read(|tx, _| Ok(doubts::count(tx)?)).await
    }
}
