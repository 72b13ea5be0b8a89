//! What payers ask of rails. Whoever has the address of a page may ask as often as they like: one question about an attempt is under
//! way at a time, and so many in all, however long a rail takes to answer.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use domain::Id;
use domain::payment::Transaction;
use tokio::sync::Notify;

use super::App;

/// The worker asks in any case.
const MOST: usize = 256;

#[derive(Debug, Clone, Default)]
pub(super) struct Questions(Arc<UnderWay>);

#[derive(Debug, Default)]
struct UnderWay {
    asked: Mutex<HashSet<Id<Transaction>>>,
    ended: Notify,
}

/// A turn to ask, given back when there is an answer.
#[derive(Debug)]
pub struct Question {
    of: Id<Transaction>,
    among: Questions,
}

impl Questions {
    fn begin(&self, of: Id<Transaction>) -> Option<Question> {
        let mut asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = asked.len() < MOST && asked.insert(of);
        is_new.then(|| Question { of, among: self.clone() })
    }
}

impl App {
    /// A turn to ask about an attempt for a payer, once nobody else has it: what they were told may be of before.
    pub async fn begin_question(&self, of: Id<Transaction>) -> Question {
        let questions = &self.inner.questions;
        loop {
            let mut ended = pin!(questions.0.ended.notified());
            ended.as_mut().enable();
            if let Some(question) = questions.begin(of) {
                return question;
            }
            ended.await;
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.among.0.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.of);
        self.among.0.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use domain::{Entropy, Timestamp};

    use super::*;

    #[test]
    fn an_attempt_is_asked_about_once_at_a_time_and_so_many_are_in_all() {
        let mut entropy = Entropy::from_seed([1; 32]);
        let mut id = || entropy.id(Timestamp::from_micros(1_790_000_000_000_000));
        let (questions, one) = (Questions::default(), id());
        let asked = questions.begin(one);
        assert!(asked.is_some() && questions.begin(one).is_none());
        let others: Vec<_> = (1..MOST).map(|_| questions.begin(id())).collect();
        assert!(others.iter().all(Option::is_some) && questions.begin(id()).is_none());
        drop(asked);
        assert!(questions.begin(one).is_some());
    }
}
