//! How often whoever has the address of a page may begin to pay what is on it: each attempt may cost a text message. The
//! pages ask, and the API where it is called with a publishable key; a merchant's own program is trusted.
//!
//! Attempts at a checkout or an invoice are counted where they are kept. On pages that many people share nobody's earlier
//! payments are known that could be counted: there each phone is, in this process only; what is remembered has a bound.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::payment::{Payable, Transaction};
use domain::{Mode, Msisdn, Timestamp};
use store::Tx;
use store::queries::transactions;
use tokio::time::Instant;

use super::paid_object::PaidObject;
use crate::error::Failure;

const MOST: usize = 10;
const RECENTLY: Duration = Duration::from_secs(600);
/// Starts that are remembered of a mode. Then the oldest is forgotten, so that nobody is refused for what others began. An
/// address begins a hundred a second at most: it takes more than four of them before a start is forgotten too early.
const MOST_REMEMBERED: usize = 250_000;

/// Whether so many attempts at one thing are enough for now. What was recorded by hand is no payer's attempt.
pub fn are_too_many(attempts: &[Transaction], now: Timestamp) -> bool {
    let is_recent = |attempt: &&Transaction| !attempt.is_recorded() && now.since(attempt.created_at) < RECENTLY;
    attempts.iter().filter(is_recent).count() >= MOST
}

/// In the transaction that would begin one more, so that of many at once no more than the rest begin.
pub(super) fn refuse_one_too_many(tx: &mut Tx<'_>, object: &PaidObject) -> Result<(), Failure> {
    let payable = object.payable();
    match payable {
        Payable::Checkout(_) | Payable::Invoice(_) => {
            let attempts = transactions::of_object(tx, object.scope(), &payable.object_id())?;
            if are_too_many(&attempts, tx.now()) { Err(Failure::TooOften) } else { Ok(()) }
        }
        Payable::PaymentLink(_) => Ok(()),
    }
}

/// Who began to pay of late. Test mode takes nothing from those who pay in live mode.
#[derive(Default)]
pub struct Starts {
    test: Mutex<Recent>,
    live: Mutex<Recent>,
}

impl Starts {
    /// Counts one more, unless that is too many.
    pub fn take(&self, mode: Mode, phone: &Msisdn, now: Instant) -> bool {
        let recent = match mode {
            Mode::Test => &self.test,
            Mode::Live => &self.live,
        };
        recent.lock().unwrap_or_else(PoisonError::into_inner).take(number(phone), now)
    }
}

/// The digits of an E.164 number, fifteen at most.
fn number(phone: &Msisdn) -> u64 {
    let digits = phone.as_str().bytes().filter(u8::is_ascii_digit);
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

#[derive(Default)]
struct Recent {
    /// The oldest first.
    starts: VecDeque<(u64, Instant)>,
    /// How many of them each phone has.
    of_phone: HashMap<u64, usize>,
}

impl Recent {
    fn take(&mut self, phone: u64, now: Instant) -> bool {
        while self.starts.front().is_some_and(|(_, at)| now.duration_since(*at) >= RECENTLY) {
            self.forget_oldest();
        }
        if self.starts.is_empty() {
            // What a flood had filled is given back.
            *self = Self::default();
        }
        if self.of_phone.get(&phone).is_some_and(|starts| *starts >= MOST) {
            return false;
        }
        if self.starts.len() >= MOST_REMEMBERED {
            self.forget_oldest();
        }
        self.starts.push_back((phone, now));
        *self.of_phone.entry(phone).or_default() += 1;
        true
    }

    fn forget_oldest(&mut self) {
        let Some((phone, _)) = self.starts.pop_front() else { return };
        if let Entry::Occupied(mut starts) = self.of_phone.entry(phone) {
            *starts.get_mut() -= 1;
            if *starts.get() == 0 {
                starts.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monotonic;

    fn phone(number: usize) -> Msisdn {
        Msisdn::parse(&format!("+220{number:07}")).unwrap()
    }

    #[test]
    fn a_phone_is_asked_so_often_and_then_rests() {
        let (starts, now) = (Starts::default(), monotonic::now());
        let take = |number, seconds| starts.take(Mode::Live, &phone(number), now + Duration::from_secs(seconds));
        assert!((0..10).all(|second| take(7_000_000, second)));
        assert!(!take(7_000_000, 599));
        assert!(take(7_000_001, 599));
        assert!(take(7_000_000, 600), "the first one is forgotten");
        assert!(!take(7_000_000, 600));
    }

    #[test]
    fn test_mode_takes_nothing_from_live_mode() {
        let (starts, now) = (Starts::default(), monotonic::now());
        assert!((0..10).all(|_| starts.take(Mode::Test, &phone(7_000_000), now)));
        assert!(!starts.take(Mode::Test, &phone(7_000_000), now));
        assert!(starts.take(Mode::Live, &phone(7_000_000), now));
    }

    /// All that one address can begin in ten minutes, each with a phone of its own.
    #[test]
    fn a_flood_neither_keeps_others_from_paying_nor_opens_the_limit() {
        let (mut recent, now) = (Recent::default(), monotonic::now());
        assert!((0..10).all(|_| recent.take(7, now)));
        for number in 0..60_200_u32 {
            let at = now + Duration::from_millis(10) * number.min(59_000);
            assert!(recent.take(1_000 + u64::from(number), at));
        }
        let at = now + Duration::from_secs(599);
        assert!(!recent.take(7, at), "it is not forgotten");
        assert!(recent.take(8, at), "and a phone that was never seen may pay");
    }

    #[test]
    fn what_is_remembered_has_an_end_and_empties_itself() {
        let (mut recent, now) = (Recent::default(), monotonic::now());
        for phone in 0..MOST_REMEMBERED as u64 + 1_000 {
            assert!(recent.take(phone, now));
        }
        assert_eq!((recent.starts.len(), recent.of_phone.len()), (MOST_REMEMBERED, MOST_REMEMBERED));
        assert!(recent.take(7, now + RECENTLY));
        assert_eq!((recent.starts.len(), recent.of_phone.len()), (1, 1));
        assert!(recent.starts.capacity() < 1_000);
    }
}
