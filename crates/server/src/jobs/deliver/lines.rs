//! Things of one kind in a line: whoever does something with one takes along those that have come meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Of one line, at a time.
const MOST: usize = 64;

/// Who is told when it is done: by the end of the channel.
type Told = oneshot::Sender<()>;

type Line<T> = Vec<(T, Option<Told>)>;

/// A line is there as long as somebody has its turn.
pub(super) struct Lines<K, T>(Arc<Mutex<BTreeMap<K, Line<T>>>>);

impl<K, T> Clone for Lines<K, T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, T> Default for Lines<K, T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Ord + Clone, T> Lines<K, T> {
    fn all(&self) -> MutexGuard<'_, BTreeMap<K, Line<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends when `act` has ended for `item`, here or where it was taken along.
    pub(super) async fn take_along<F>(&self, key: K, item: T, act: impl Fn(Vec<T>) -> F)
    where
        F: Future<Output = ()>,
    {
        let done = {
            let mut all = self.all();
            if let Some(line) = all.get_mut(&key) {
                let (tell, done) = oneshot::channel();
                line.push((item, Some(tell)));
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
    of: &'a Lines<K, T>,
    key: K,
    is_over: bool,
}

impl<K: Ord + Clone, T> Turn<'_, K, T> {
    /// Nothing: the turn is over, and the next to come begins another.
    fn next(&mut self) -> Option<Line<T>> {
        let mut all = self.of.all();
        let Some(line) = all.get_mut(&self.key).filter(|line| !line.is_empty()) else {
            all.remove(&self.key);
            self.is_over = true;
            return None;
        };
        let count = line.len().min(MOST);
        Some(line.drain(..count).collect())
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
    async fn what_comes_meanwhile_is_taken_along_and_other_lines_go_on() {
        let (lines, batches, goes_on) = (Lines::default(), Mutex::new(Vec::new()), Semaphore::new(0));
        let act = async |items: Vec<usize>| {
            batches.lock().unwrap().push(items.clone());
            if items[0] < 1_000 {
                goes_on.acquire().await.unwrap().forget();
            }
        };
        let mut ours = Box::pin(join_all((0..=MOST + 1).map(|item| lines.take_along("ours", item, &act))));
        assert!((&mut ours).now_or_never().is_none());
        assert!(lines.take_along("theirs", 1_000, &act).now_or_never().is_some(), "it waits for no other line");
        goes_on.add_permits(1);
        assert!((&mut ours).now_or_never().is_none(), "nobody is told before it is done");
        goes_on.add_permits(2);
        ours.await;
        let along: Vec<usize> = (1..=MOST).collect();
        assert_eq!(*batches.lock().unwrap(), [vec![0], vec![1_000], along, vec![MOST + 1]]);
        assert!(lines.all().is_empty());
    }

    #[tokio::test]
    async fn a_turn_that_breaks_off_leaves_nobody_waiting() {
        let lines = Lines::default();
        let mut first = Box::pin(lines.take_along("ours", 1, |_| pending()));
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(lines.take_along("ours", 2, async |_: Vec<i32>| unreachable!("it waits")));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        second.await;
        let third = Mutex::new(Vec::new());
        lines.take_along("ours", 3, async |items| third.lock().unwrap().extend(items)).await;
        assert_eq!(*third.lock().unwrap(), [3]);
    }
}
