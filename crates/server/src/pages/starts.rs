//! How often one phone is asked to pay from pages that many people share: there nobody's earlier payments are known that
//! could be counted, and each attempt may cost a text message. Counted in this process only; the table is bounded.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::Msisdn;
use tokio::time::Instant;

const MOST: usize = 10;
const RECENTLY: Duration = Duration::from_secs(600);
const MOST_PHONES: usize = 10_000;

#[derive(Default)]
pub(super) struct Starts(Mutex<HashMap<String, Vec<Instant>>>);

impl Starts {
    /// Counts one more, unless that is too many.
    pub(super) fn take(&self, phone: &Msisdn, now: Instant) -> bool {
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
