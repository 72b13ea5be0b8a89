//! Batches of what comes together, by key: whoever does something with the first takes along those that come meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Of a batch.
const MOST: usize = 64;

/// Who is told when it is done: by the end of the channel.
type Told = oneshot::Sender<()>;

type Waiting<T> = Vec<(T, Option<Told>)>;

/// What comes is grouped by key: one has an entry as long as somebody has its turn.
pub(super) struct Batches<K, T>(Arc<Mutex<BTreeMap<K, Waiting<T>>>>);

impl<K, T> Clone for Batches<K, T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, T> Default for Batches<K, T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Ord + Clone, T> Batches<K, T> {
    fn all(&self) -> MutexGuard<'_, BTreeMap<K, Waiting<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends when `act` has ended for `item`, here or where it was taken along.
    pub(super) async fn join<F>(&self, key: K, item: T, act: impl Fn(Vec<T>) -> F)
    where
        F: Future<Output = ()>,
    {
        let done = {
            let mut all = self.all();
            if let Some(waiting) = all.get_mut(&key) {
                let (tell, done) = oneshot::channel();
                waiting.push((item, Some(tell)));
                Some(done)
            } else {
                all.insert(key.clone(), vec![(item, None)]);
                None
            }
        };
        if let Some(done) = done {
            // An error is how it ends.
            return drop(done.await);
        }
        let mut turn = Turn { of: self, key, is_over: false };
        while let Some(next) = turn.next() {
            let (items, _told): (Vec<_>, Vec<_>) = next.into_iter().unzip();
            act(items).await;
        }
    }
}

struct Turn<'a, K: Ord + Clone, T> {
    of: &'a Batches<K, T>,
    key: K,
    is_over: bool,
}

impl<K: Ord + Clone, T> Turn<'_, K, T> {
    /// Nothing: the turn is over, and the next to come begins another.
    fn next(&mut self) -> Option<Waiting<T>> {
        let mut all = self.of.all();
        let Some(waiting) = all.get_mut(&self.key).filter(|waiting| !waiting.is_empty()) else {
            all.remove(&self.key);
            self.is_over = true;
            return None;
        };
        let count = waiting.len().min(MOST);
        Some(waiting.drain(..count).collect())
    }
}

impl<K: Ord + Clone, T> Drop for Turn<'_, K, T> {
    /// Where it broke off nobody is left waiting.
    fn drop(&mut self) {
        if !self.is_over {
            self.of.all().remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt as _;
    use futures_util::future::{join_all, pending};
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn what_comes_meanwhile_is_taken_along_and_other_keys_go_on() {
        let (batches, seen, goes_on) = (Batches::default(), Mutex::new(Vec::new()), Semaphore::new(0));
        let act = async |items: Vec<usize>| {
            seen.lock().unwrap().push(items.clone());
            if items[0] < 1_000 {
                goes_on.acquire().await.unwrap().forget();
            }
        };
        let mut ours = Box::pin(join_all((0..=MOST + 1).map(|item| batches.join("ours", item, &act))));
        assert!((&mut ours).now_or_never().is_none());
        assert!(batches.join("theirs", 1_000, &act).now_or_never().is_some(), "it waits for no other key");
        goes_on.add_permits(1);
        assert!((&mut ours).now_or_never().is_none(), "nobody is told before it is done");
        goes_on.add_permits(2);
        ours.await;
        let along: Vec<usize> = (1..=MOST).collect();
        assert_eq!(*seen.lock().unwrap(), [vec![0], vec![1_000], along, vec![MOST + 1]]);
        assert!(batches.all().is_empty());
    }

    #[tokio::test]
    async fn a_turn_that_breaks_off_leaves_nobody_waiting() {
        let batches = Batches::default();
        let mut first = Box::pin(batches.join("ours", 1, |_| pending()));
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(batches.join("ours", 2, async |_: Vec<i32>| unreachable!("it waits")));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        second.await;
        let third = Mutex::new(Vec::new());
        batches.join("ours", 3, async |items| third.lock().unwrap().extend(items)).await;
        assert_eq!(*third.lock().unwrap(), [3]);
    }
}
