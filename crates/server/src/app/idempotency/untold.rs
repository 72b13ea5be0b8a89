//! Answers that did not reach callers who brought no key. Where nobody can tell what became of a commit no answer is given, and
//! common clients then send the same once more (contract §1.8). Of one credential the first request with the same verb, path and
//! body is taken for that: it is told what the one before came to, and is done only where that did not happen (`before`).
//!
//! What became of a commit the row of the key tells where others write as well, and the driver where nobody else does: however long
//! a disk takes for it, this process hears of its end.
//!
//! This process knows it, and no other one: whoever has to be sure sends a key.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::Id;
use domain::payment::PaymentSession;
use store::queries::idempotency::IdempotencyKey;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Reply;
use crate::monotonic;

/// Clients come again within seconds; and each time that they are not told either, it begins anew.
const SOON: Duration = Duration::from_secs(120);
/// Then the oldest is forgotten: what a database that hangs has to do with at once is much less.
const MOST: usize = 2_000;
/// Of their answers.
const MOST_BYTES: usize = 16 << 20;

/// The longest untold first.
#[derive(Debug, Clone, Default)]
pub(in crate::app) struct Untold(Arc<Mutex<VecDeque<Kept>>>);

#[derive(Debug)]
struct Kept {
    key: IdempotencyKey,
    answer: Answer,
    since: Instant,
}

/// What the request is answered, once its transaction has run, and whether that was committed.
#[derive(Debug, Clone, Default)]
pub(in crate::app) struct Answer(Arc<Heard>);

#[derive(Debug, Default)]
struct Heard {
    said: Mutex<Option<Said>>,
    /// Of a key that is not stored, as soon as it is known.
    is_committed: watch::Sender<Option<bool>>,
}

#[derive(Debug, Clone)]
enum Said {
    Reply(Reply),
    /// The session as it stands then.
    Begun(Id<PaymentSession>),
}

/// A request with a key of ours. Dropped before it was told, it is kept.
#[derive(Debug)]
pub(in crate::app) struct Asked {
    of: Untold,
    kept: Option<Kept>,
}

impl Untold {
    pub(in crate::app) fn ask(&self, key: IdempotencyKey) -> Asked {
        let kept = Kept { key, answer: Answer::default(), since: monotonic::now() };
        Asked { of: self.clone(), kept: Some(kept) }
    }

    /// The longest untold one that the request with this key repeats.
    pub(in crate::app) fn take(&self, key: &IdempotencyKey) -> Option<Asked> {
        self.take_at(key, monotonic::now())
    }

    fn take_at(&self, key: &IdempotencyKey, now: Instant) -> Option<Asked> {
        let mut all = self.all();
        forget_old(&mut all, now);
        let is_same = |kept: &Kept| kept.key.scope == key.scope && kept.key.fingerprint == key.fingerprint;
        let place = all.iter().position(is_same)?;
        let kept = all.remove(place);
        Some(Asked { of: self.clone(), kept })
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    pub(super) fn key(&self) -> &IdempotencyKey {
        &self.kept().key
    }

    pub(in crate::app) fn answer(&self) -> &Answer {
        &self.kept().answer
    }

    /// It has its answer.
    pub(in crate::app) fn told(mut self) {
        self.kept = None;
    }

    fn kept(&self) -> &Kept {
        self.kept.as_ref().expect("it is there until it was told or is dropped")
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        let (mut all, now) = (self.of.all(), monotonic::now());
        forget_old(&mut all, now);
        all.push_back(Kept { since: now, ..kept });
        while all.len() > MOST || bytes_of(&all) > MOST_BYTES {
            all.pop_front();
        }
    }
}

fn forget_old(all: &mut VecDeque<Kept>, now: Instant) {
    while all.front().is_some_and(|oldest| now.duration_since(oldest.since) >= SOON) {
        all.pop_front();
    }
}

/// An answer may have come since its caller went.
fn bytes_of(all: &VecDeque<Kept>) -> usize {
    all.iter().map(|kept| kept.answer.length()).sum()
}

impl Answer {
    /// The latest counts: a transaction may run more than once before it is committed.
    pub(super) fn set(&self, reply: Reply) {
        *self.said() = Some(Said::Reply(reply));
    }

    /// The same for a payment; nothing where none was begun after all.
    pub(in crate::app) fn begun(&self, session: Option<Id<PaymentSession>>) {
        *self.said() = session.map(Said::Begun);
    }

    pub(super) fn get(&self) -> Option<Reply> {
        match &*self.said() {
            Some(Said::Reply(reply)) => Some(reply.clone()),
            Some(Said::Begun(_)) | None => None,
        }
    }

    pub(super) fn session(&self) -> Option<Id<PaymentSession>> {
        match &*self.said() {
            Some(Said::Begun(session)) => Some(*session),
            Some(Said::Reply(_)) | None => None,
        }
    }

    pub(super) fn ended(&self, is_committed: bool) {
        self.0.is_committed.send_replace(Some(is_committed));
    }

    /// As soon as it is known.
    pub(super) async fn is_committed(&self) -> bool {
        let mut ended = self.0.is_committed.subscribe();
        let ended = ended.wait_for(Option::is_some).await;
        ended.is_ok_and(|is_committed| *is_committed == Some(true))
    }

    fn length(&self) -> usize {
        match &*self.said() {
            Some(Said::Reply(reply)) => reply.body.len(),
            Some(Said::Begun(_)) | None => 0,
        }
    }

    fn said(&self) -> MutexGuard<'_, Option<Said>> {
        self.0.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use domain::{Entropy, Mode, Scope, Timestamp};
    use futures_util::FutureExt as _;

    use super::*;

    fn key(number: u8, mode: Mode, fingerprint: u8) -> IdempotencyKey {
        let organization = Entropy::from_seed([1; 32]).id(Timestamp::from_micros(1_790_000_000_000_000));
        IdempotencyKey {
            scope: Scope { organization, mode },
            space: IdempotencyKey::OWN_SPACE.to_owned(),
            key: format!("req_{number}"),
            fingerprint: vec![fingerprint],
            former_fingerprint: None,
            sets_state: false,
        }
    }

    fn test(number: u8, fingerprint: u8) -> IdempotencyKey {
        key(number, Mode::Test, fingerprint)
    }

    fn taken(untold: &Untold, fingerprint: u8) -> Option<String> {
        let asked = untold.take(&test(99, fingerprint))?;
        let name = asked.key().key.clone();
        asked.told();
        Some(name)
    }

    #[test]
    fn who_was_told_is_forgotten_and_who_was_not_is_found_once() {
        let untold = Untold::default();
        untold.ask(test(1, 7)).told();
        assert_eq!(taken(&untold, 7), None);
        drop(untold.ask(test(2, 7)));
        drop(untold.ask(test(3, 7)));
        assert_eq!(taken(&untold, 8), None, "another request");
        assert!(untold.take(&key(99, Mode::Live, 7)).is_none(), "of another mode");
        assert_eq!(taken(&untold, 7).as_deref(), Some("req_2"));
        assert_eq!(taken(&untold, 7).as_deref(), Some("req_3"));
        assert_eq!(taken(&untold, 7), None);
    }

    #[test]
    fn whose_repetition_is_not_told_either_is_kept_with_its_answer() {
        let untold = Untold::default();
        let asked = untold.ask(test(1, 7));
        let reply = Reply::new(201, "one".to_owned());
        asked.answer().set(Reply::new(201, "none".to_owned()));
        asked.answer().set(reply.clone());
        drop(asked);
        drop(untold.take(&test(2, 7)).expect("it is there"));
        assert_eq!(untold.take(&test(3, 7)).expect("it is there again").answer().get(), Some(reply));
    }

    #[tokio::test]
    async fn whoever_asks_again_waits_for_the_end_of_a_commit() {
        for is_committed in [true, false] {
            let untold = Untold::default();
            let asked = untold.ask(test(1, 7));
            let answer = asked.answer().clone();
            drop(asked);
            let again = untold.take(&test(2, 7)).expect("it is there");
            assert!(again.answer().is_committed().now_or_never().is_none(), "nobody knows yet");
            answer.ended(is_committed);
            assert_eq!(again.answer().is_committed().now_or_never(), Some(is_committed));
        }
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let untold = Untold::default();
        drop(untold.ask(test(1, 7)));
        let since = untold.all()[0].since;
        let at = |seconds| untold.take_at(&test(9, 7), since + Duration::from_secs(seconds));
        drop(at(119).expect("it is there"));
        untold.all()[0].since = since;
        assert!(at(120).is_none());
        for number in 0..=MOST {
            drop(untold.ask(test(0, if number == 0 { 7 } else { 8 })));
        }
        assert_eq!(untold.all().len(), MOST);
        assert_eq!(taken(&untold, 7), None, "the oldest went");
    }

    #[test]
    fn so_many_bytes_of_answers_are_kept_and_no_more() {
        let untold = Untold::default();
        let large = Reply::new(201, "x".repeat(MOST_BYTES / 8));
        for number in 0..20 {
            let asked = untold.ask(test(number, number));
            let answer = asked.answer().clone();
            // Every other one has its answer only when its caller is gone.
            if number % 2 == 0 {
                answer.set(large.clone());
            }
            drop(asked);
            answer.set(large.clone());
        }
        let kept = untold.all().len();
        assert!((8..=9).contains(&kept), "{kept} of them");
        assert_eq!(taken(&untold, 19).as_deref(), Some("req_19"), "the latest is among them");
        assert_eq!(taken(&untold, 5), None, "the oldest went");
    }
}
