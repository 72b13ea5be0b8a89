//! What an exploration has reached, so that an empty one can't pass, and assertions of the domain as findings.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// Pairs of an object and its state.
#[derive(Default)]
pub(crate) struct Seen(Mutex<BTreeSet<(&'static str, &'static str)>>);

impl Seen {
    pub(crate) fn mark(&self, marks: impl IntoIterator<Item = (&'static str, &'static str)>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(marks);
    }

    pub(crate) fn has(&self, object: &'static str, state: &'static str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&(object, state))
    }
}

/// What a transition gives; an assertion that fails in it is an error.
pub(crate) fn guarded<T>(transition: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(transition)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}
