//! An answer that is dear to compute, computed once for all who wait for it: one computation under way for each key, and few
//! in all, so that whoever asks in a loop leaves the connections that read to others.
//!
//! An answer is never older than its question: whoever comes while one is being computed waits for the next, which begins
//! after all who share it have asked. Nothing is kept for those who come later, and too many at once are sent away.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as Turn, Semaphore};

use crate::error::Failure;

/// Of the reading connections, which are four on SQLite.
const MOST_AT_ONCE: usize = 2;
/// For one key, with those for whom it is computed.
const MOST_ASKING: usize = 64;

pub struct SharedAnswers<K, V> {
    /// What was asked and begun, in its order.
    moments: AtomicU64,
    turns: Mutex<HashMap<K, Latest<V>>>,
    places: Arc<Semaphore>,
}

/// What was answered last, held by whoever computes the next.
type Latest<V> = Arc<Turn<Option<Given<V>>>>;

struct Given<V> {
    begun: u64,
    answer: Arc<V>,
}

impl<K, V> Default for SharedAnswers<K, V> {
    fn default() -> Self {
        Self { moments: AtomicU64::new(0), turns: Mutex::default(), places: Arc::new(Semaphore::new(MOST_AT_ONCE)) }
    }
}

impl<K: Hash + Eq + Copy, V: Send + Sync + 'static> SharedAnswers<K, V> {
    /// The answer of a computation that began after this was called. `compute` runs to its end on its own: whoever goes away
    /// leaves no computation that the next would not wait for.
    pub async fn ask(
        &self,
        key: K,
        compute: impl Future<Output = Result<V, Failure>> + Send + 'static,
    ) -> Result<Arc<V>, Failure> {
        let asked = self.moments.fetch_add(1, Ordering::SeqCst);
        let turn = self.turn(key).ok_or(Failure::Store(store::Error::Busy))?;
        let mut given = turn.lock_owned().await;
        if let Some(given) = given.as_ref().filter(|given| given.begun > asked) {
            return Ok(Arc::clone(&given.answer));
        }
        let place = Arc::clone(&self.places).acquire_owned().await;
        let begun = self.moments.fetch_add(1, Ordering::SeqCst);
        let computed = tokio::spawn(async move {
            let _place = place;
            let answer = Arc::new(compute.await?);
            *given = Some(Given { begun, answer: Arc::clone(&answer) });
            Ok(answer)
        });
        computed.await.unwrap_or_else(|_| Err(Failure::Broken("an answer for many was not computed to its end".into())))
    }

    /// Held by whoever asks, until there is an answer; none where too many do.
    fn turn(&self, key: K) -> Option<Latest<V>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // What was answered to those who are gone is older than any question to come.
        turns.retain(|_, latest| Arc::strong_count(latest) > 1);
        let latest = turns.entry(key).or_default();
        (Arc::strong_count(latest) <= MOST_ASKING).then(|| Arc::clone(latest))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::FutureExt as _;
    use tokio::task::JoinHandle;

    use super::*;

    /// Counts what is computed, all told and at once, and answers with the number of the computation, when it is let.
    #[derive(Clone)]
    struct Work {
        begun: Arc<AtomicUsize>,
        under_way: Arc<AtomicUsize>,
        most: Arc<AtomicUsize>,
        let_through: Arc<Semaphore>,
    }

    impl Work {
        fn new() -> Self {
            let let_through = Arc::new(Semaphore::new(0));
            Self { begun: Arc::default(), under_way: Arc::default(), most: Arc::default(), let_through }
        }

        async fn compute(self) -> Result<usize, Failure> {
            let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(under_way, Ordering::SeqCst);
            self.let_through.acquire().await.unwrap().forget();
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            Ok(number)
        }

        fn counts(&self) -> (usize, usize) {
            (self.begun.load(Ordering::SeqCst), self.most.load(Ordering::SeqCst))
        }
    }

    type Answers = Arc<SharedAnswers<u8, usize>>;

    fn ask(answers: &Answers, work: &Work, key: u8) -> JoinHandle<usize> {
        let (answers, work) = (Arc::clone(answers), work.clone());
        tokio::spawn(async move { *answers.ask(key, work.compute()).await.unwrap() })
    }

    /// Everybody has gone as far as they can: there is one thread.
    async fn all_wait() {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn who_comes_meanwhile_shares_the_next() {
        let (answers, work) = (Answers::default(), Work::new());
        let first = ask(&answers, &work, 1);
        all_wait().await;
        let meanwhile: Vec<_> = (1..MOST_ASKING).map(|_| ask(&answers, &work, 1)).collect();
        all_wait().await;
        work.let_through.add_permits(3);
        assert_eq!(first.await.unwrap(), 1);
        for asked in meanwhile {
            assert_eq!(asked.await.unwrap(), 2, "what was under way may have missed what they wrote before they asked");
        }
        assert_eq!(ask(&answers, &work, 1).await.unwrap(), 3, "nothing is kept for those who come later");
        assert_eq!(work.counts(), (3, 1));
    }

    #[tokio::test]
    async fn of_many_keys_few_are_computed_at_once() {
        let (answers, work) = (Answers::default(), Work::new());
        let asked: Vec<_> = (0..20).map(|key| ask(&answers, &work, key)).collect();
        all_wait().await;
        assert_eq!(work.counts(), (MOST_AT_ONCE, MOST_AT_ONCE));
        work.let_through.add_permits(20);
        for asked in asked {
            asked.await.unwrap();
        }
        assert_eq!(work.counts(), (20, MOST_AT_ONCE));
    }

    #[tokio::test]
    async fn who_goes_away_begins_no_second_one() {
        let (answers, work) = (Answers::default(), Work::new());
        for _ in 0..50 {
            let asked = ask(&answers, &work, 1);
            all_wait().await;
            asked.abort();
        }
        all_wait().await;
        work.let_through.add_permits(2);
        assert_eq!(ask(&answers, &work, 1).await.unwrap(), 2);
        assert_eq!(work.counts(), (2, 1));
    }

    #[tokio::test]
    async fn too_many_are_sent_away_and_nothing_is_kept() {
        let (answers, work) = (Answers::default(), Work::new());
        let mut asking: Vec<_> = (0..MOST_ASKING).map(|_| ask(&answers, &work, 1)).collect();
        all_wait().await;
        let refused = answers.ask(1, work.clone().compute()).now_or_never();
        assert!(matches!(refused, Some(Err(Failure::Store(store::Error::Busy)))));
        let other = ask(&answers, &work, 2);
        asking.pop().unwrap().abort();
        all_wait().await;
        asking.push(ask(&answers, &work, 1));
        work.let_through.add_permits(3);
        for asked in asking {
            asked.await.unwrap();
        }
        other.await.unwrap();
        work.let_through.add_permits(1);
        ask(&answers, &work, 3).await.unwrap();
        assert_eq!(answers.turns.lock().unwrap().len(), 1, "only the last key is remembered");
    }

    #[tokio::test]
    async fn a_fault_is_for_whoever_met_it() {
        let answers: SharedAnswers<u8, usize> = SharedAnswers::default();
        assert!(answers.ask(1, async { Err(Failure::Broken("no database".into())) }).await.is_err());
        assert_eq!(*answers.ask(1, async { Ok(7) }).await.unwrap(), 7);
    }
}
