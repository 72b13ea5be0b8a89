//! Who waits in this process for the end of another request with the same key. Each is a request that is worked on meanwhile, so
//! there are few for a key; and all of them are told when it ends, so that none has to look again and again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// For one key. More than the retries of a client that gives up early.
const MOST: usize = 8;

/// By [`store::queries::idempotency::IdempotencyKey::name`].
#[derive(Debug, Clone, Default)]
pub(in crate::app) struct KeyWaits(Arc<Mutex<BTreeMap<String, Awaited>>>);

#[derive(Debug, Default)]
struct Awaited {
    waiting: usize,
    end: Arc<Notify>,
}

/// One who waits, until it is dropped.
#[derive(Debug)]
pub(super) struct Wait {
    of: KeyWaits,
    name: String,
    end: Arc<Notify>,
}

impl KeyWaits {
    /// One more, unless there are too many.
    pub(super) fn begin(&self, name: String) -> Option<Wait> {
        let mut all = self.all();
        let awaited = all.entry(name.clone()).or_default();
        if awaited.waiting >= MOST {
            return None;
        }
        awaited.waiting += 1;
        Some(Wait { of: self.clone(), name, end: Arc::clone(&awaited.end) })
    }

    /// The requests with these keys ended.
    pub(in crate::app) fn tell(&self, ended: &[String]) {
        if ended.is_empty() {
            return;
        }
        let all = self.all();
        for awaited in ended.iter().filter_map(|name| all.get(name)) {
            awaited.end.notify_waiters();
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Awaited>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wait {
    /// The next end from now on, whenever it is waited for.
    pub(super) fn end(&self) -> Notified<'_> {
        self.end.notified()
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut all = self.of.all();
        let awaited = all.get_mut(&self.name).expect("a wait ends once");
        awaited.waiting -= 1;
        if awaited.waiting == 0 {
            all.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn few_wait_for_a_key_and_none_is_remembered() {
        let waits = KeyWaits::default();
        let begin = |name: &str| std::iter::from_fn(|| waits.begin(name.to_owned())).collect::<Vec<_>>();
        let mut of_one = begin("one");
        assert_eq!((of_one.len(), begin("other").len()), (MOST, MOST));
        of_one.pop();
        assert_eq!(begin("one").len(), 1);
        assert!(!waits.all().contains_key("other"));
        drop(of_one);
        assert!(waits.all().is_empty());
    }

    #[test]
    fn each_is_told_of_its_own_key_and_misses_nothing() {
        let waits = KeyWaits::default();
        let [one, again, other] = ["one", "one", "other"].map(|name| waits.begin(name.to_owned()).unwrap());
        let ends = [one.end(), again.end(), other.end()];
        // Nobody waits yet, and nobody knows the third.
        waits.tell(&["one".to_owned(), "nobody's".to_owned()]);
        assert_eq!(ends.map(|end| end.now_or_never().is_some()), [true, true, false]);
        assert!(one.end().now_or_never().is_none(), "what is over is not told again");
    }
}
