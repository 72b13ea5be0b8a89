//! How often whoever has the address of a page may begin to pay what is on it: each attempt may cost a text message. The
//! pages ask, and the API where it is called with a publishable key; a merchant's own program is trusted.
//!
//! Attempts at a checkout or an invoice are counted where they are kept. On pages that many people share nobody's earlier
//! payments are known that could be counted: there each phone is, in this process only; the table is bounded.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::payment::{Payable, Transaction};
use domain::{Msisdn, Timestamp};
use store::Tx;
use store::queries::transactions;
use tokio::time::Instant;

use super::paid_object::PaidObject;
use crate::error::Failure;

const MOST: usize = 10;
const RECENTLY: Duration = Duration::from_secs(600);
const MOST_PHONES: usize = 10_000;

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

/// The phones of late.
#[derive(Default)]
pub struct Starts(Mutex<HashMap<String, Vec<Instant>>>);

impl Starts {
    /// Counts one more, unless that is too many.
    pub fn take(&self, phone: &Msisdn, now: Instant) -> bool {
        let mut phones = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: &Instant| now.duration_since(*at) < RECENTLY;
        if phones.len() >= MOST_PHONES {
            phones.retain(|_, starts| starts.iter().any(is_recent));
        }
        // Full of phones that were all just asked: whoever fills it gains nothing by it.
        if phones.len() >= MOST_PHONES && !phones.contains_key(phone.as_str()) {
            return false;
        }
        let starts = phones.entry(phone.as_str().to_owned()).or_default();
        starts.retain(is_recent);
        let has_room = starts.len() < MOST;
        if has_room {
            starts.push(now);
        }
        has_room
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
        let at = |seconds| now + Duration::from_secs(seconds);
        assert!((0..10).all(|second| starts.take(&phone(7_000_000), at(second))));
        assert!(!starts.take(&phone(7_000_000), at(599)));
        assert!(starts.take(&phone(7_000_001), at(599)));
        assert!(starts.take(&phone(7_000_000), at(600)), "the first one is forgotten");
        assert!(!starts.take(&phone(7_000_000), at(600)));
    }

    #[test]
    fn the_table_has_an_end_and_empties_itself() {
        let (starts, now) = (Starts::default(), monotonic::now());
        for number in 0..MOST_PHONES {
            assert!(starts.take(&phone(2_000_000 + number), now));
        }
        assert!(!starts.take(&phone(7_000_000), now));
        assert!(starts.take(&phone(2_000_000), now), "who is in it goes on");
        assert!(starts.take(&phone(7_000_000), now + RECENTLY));
        assert_eq!(starts.0.lock().unwrap().len(), 1);
    }
}
