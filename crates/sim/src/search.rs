//! What many histories show: a planted defect, or what is wrong without one.

use std::sync::{Mutex, PoisonError};

#[cfg(feature = "planted")]
use domain::planted::{Defect, plant};
use proof::Proof;
#[cfg(feature = "planted")]
use sim::crowd::{Seeds, play_many};
use sim::history::Outcome;
#[cfg(feature = "planted")]
use sim::world::Template;

/// After how many histories a planted defect showed, if it did. `shows` says by what, of one history's outcome.
#[cfg(feature = "planted")]
pub(crate) fn find<T>(
    defect: Defect,
    seeds: Seeds<'_>,
    play: impl AsyncFn(&Template, u64) -> T + Sync,
    shows: impl Fn(u64, &T) -> Option<String> + Sync,
) -> Option<u64> {
    let found = Mutex::new(None);
    let played = play_many(
        seeds,
        || plant(Some(defect)),
        play,
        |seed, outcome| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if found.is_none() {
                *found = shows(seed, outcome);
            }
            found.is_some()
        },
    );
    plant(None);
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let what: String = found.as_deref().unwrap_or("NOT FOUND").chars().take(200).collect();
    println!("{}: after {played} histories: {}", defect.as_str(), what.replace('\n', " "));
    found.map(|_| played)
}

/// Where service and model part in a history, if they do.
#[cfg(feature = "planted")]
pub(crate) fn violation(_seed: u64, outcome: &Outcome) -> Option<String> {
    outcome.violation.as_ref().map(|violation| violation.what.clone())
}

/// What was wrong in histories that go on beside each other.
#[derive(Default)]
pub(crate) struct Violations(Mutex<Vec<String>>);

impl Violations {
    pub(crate) fn note(&self, seed: u64, outcome: &Outcome) {
        if let Some(violation) = &outcome.violation {
            self.add(format!("seed {seed}, operation {}: {}", violation.step, violation.what));
        }
    }

    pub(crate) fn add(&self, what: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    pub(crate) fn tell(self, proof: &mut Proof) {
        for violation in self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            proof.violation(violation);
        }
    }
}
