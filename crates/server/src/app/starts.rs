//! How often whoever has the address of a page may begin to pay what is on it: each attempt may cost a text message. The
//! pages ask, and the API where it is called with a publishable key; a merchant's own program is trusted.
//!
//! Only an attempt that begins is counted: whoever could have others counted without one could shut them out. Attempts at a
//! checkout or an invoice are counted where they are kept. On pages that many people share nobody's earlier payments are
//! known that could be counted: there each phone is, by merchant, in this process only; what is remembered has a bound.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use domain::organization::Organization;
use domain::payment::{Payable, PaymentSession};
use domain::{Id, Method, Mode, Msisdn, Scope};
use store::Tx;
use store::queries::transactions;
use tokio::time::Instant;

use super::paid_object::PaidObject;
use crate::error::Failure;
use crate::monotonic;

const MOST: usize = 10;
const RECENTLY: Duration = Duration::from_secs(600);
/// Starts that are remembered of a mode. Then the oldest is forgotten, so that nobody is refused for what others began. An
/// address begins a hundred a second at most: it takes more than four of them before a start is forgotten too early.
const MOST_REMEMBERED: usize = 250_000;

/// In the transaction that would begin one more, so that of many at once no more than the rest begin.
pub(super) fn refuse_one_too_many(
    tx: &mut Tx<'_>,
    object: &PaidObject,
    session: &PaymentSession,
    method: Method,
    counted: &Counted,
) -> Result<(), Failure> {
    let payable = object.payable();
    let is_one_too_many = match (payable, &session.payer.phone) {
        (Payable::Checkout(_) | Payable::Invoice(_), _) => {
            let since = tx.now().minus(RECENTLY);
            let attempts = transactions::attempts_since(tx, object.scope(), &payable.object_id(), since)?;
            usize::try_from(attempts).is_ok_and(|attempts| attempts >= MOST)
        }
        // Of the other methods nobody's phone hears anything.
        (Payable::PaymentLink(_), Some(phone)) if method.needs_phone() => !counted.take(object.scope(), phone),
        (Payable::PaymentLink(_), _) => false,
    };
    if is_one_too_many { Err(Failure::TooOften) } else { Ok(()) }
}

/// Who began to pay of late. Test mode takes nothing from those who pay in live mode.
#[derive(Debug, Default)]
pub struct Starts {
    test: Mutex<Recent>,
    live: Mutex<Recent>,
}

/// A request that may begin an attempt: counted once, however often its transaction runs.
#[derive(Debug, Clone)]
pub struct Counted {
    starts: Arc<Starts>,
    at: Instant,
    is_within: Arc<OnceLock<bool>>,
}

impl Counted {
    fn take(&self, scope: Scope, phone: &Msisdn) -> bool {
        *self.is_within.get_or_init(|| self.starts.take(scope, phone, self.at))
    }
}

impl Starts {
    pub fn counted(self: &Arc<Self>) -> Counted {
        Counted { starts: Arc::clone(self), at: monotonic::now(), is_within: Arc::default() }
    }

    /// Counts one more, unless that is too many.
    fn take(&self, scope: Scope, phone: &Msisdn, now: Instant) -> bool {
        let recent = match scope.mode {
            Mode::Test => &self.test,
            Mode::Live => &self.live,
        };
        let payer = (scope.organization, number(phone));
        recent.lock().unwrap_or_else(PoisonError::into_inner).take(payer, now)
    }
}

/// One merchant's payer.
type Payer = (Id<Organization>, u64);

/// The digits of an E.164 number, fifteen at most.
fn number(phone: &Msisdn) -> u64 {
    let digits = phone.as_str().bytes().filter(u8::is_ascii_digit);
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

#[derive(Debug, Default)]
struct Recent {
    /// The oldest first.
    starts: VecDeque<(Payer, Instant)>,
    /// How many of them each payer has.
    of_payer: HashMap<Payer, usize>,
}

impl Recent {
    fn take(&mut self, payer: Payer, now: Instant) -> bool {
        while self.starts.front().is_some_and(|(_, at)| now.duration_since(*at) >= RECENTLY) {
            self.forget_oldest();
        }
        if self.starts.is_empty() {
            // What a flood had filled is given back.
            *self = Self::default();
        }
        if self.of_payer.get(&payer).is_some_and(|starts| *starts >= MOST) {
            return false;
        }
        if self.starts.len() >= MOST_REMEMBERED {
            self.forget_oldest();
        }
        self.starts.push_back((payer, now));
        *self.of_payer.entry(payer).or_default() += 1;
        true
    }

    fn forget_oldest(&mut self) {
        let Some((payer, _)) = self.starts.pop_front() else { return };
        if let Entry::Occupied(mut starts) = self.of_payer.entry(payer) {
            *starts.get_mut() -= 1;
            if *starts.get() == 0 {
                starts.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{Entropy, Timestamp};

    use super::*;

    fn phone(number: usize) -> Msisdn {
        Msisdn::parse(&format!("+220{number:07}")).unwrap()
    }

    fn merchant(seed: u8, mode: Mode) -> Scope {
        let organization = Entropy::from_seed([seed; 32]).id(Timestamp::from_micros(1_790_000_000_000_000));
        Scope { organization, mode }
    }

    fn payer(phone: u64) -> Payer {
        (merchant(1, Mode::Live).organization, phone)
    }

    #[test]
    fn a_phone_is_asked_so_often_and_then_rests() {
        let (starts, now) = (Starts::default(), monotonic::now());
        let scope = merchant(1, Mode::Live);
        let take = |number, seconds| starts.take(scope, &phone(number), now + Duration::from_secs(seconds));
        assert!((0..10).all(|second| take(7_000_000, second)));
        assert!(!take(7_000_000, 599));
        assert!(take(7_000_001, 599));
        assert!(take(7_000_000, 600), "the first one is forgotten");
        assert!(!take(7_000_000, 600));
    }

    #[test]
    fn neither_test_mode_nor_another_merchant_takes_anything() {
        let (starts, now) = (Starts::default(), monotonic::now());
        let take = |scope| starts.take(scope, &phone(7_000_000), now);
        assert!((0..10).all(|_| take(merchant(1, Mode::Test))));
        assert!(!take(merchant(1, Mode::Test)));
        assert!(take(merchant(1, Mode::Live)) && take(merchant(2, Mode::Test)));
    }

    #[test]
    fn a_transaction_that_runs_again_counts_once() {
        let starts = Arc::new(Starts::default());
        let scope = merchant(1, Mode::Live);
        for _ in 0..10 {
            let counted = starts.counted();
            assert!((0..20).all(|_| counted.clone().take(scope, &phone(7_000_000))));
        }
        let counted = starts.counted();
        assert!((0..20).all(|_| !counted.take(scope, &phone(7_000_000))));
    }

    /// All that one address can begin in ten minutes, each with a phone of its own.
    #[test]
    fn a_flood_neither_keeps_others_from_paying_nor_opens_the_limit() {
        let (mut recent, now) = (Recent::default(), monotonic::now());
        assert!((0..10).all(|_| recent.take(payer(7), now)));
        for number in 0..60_200_u32 {
            let at = now + Duration::from_millis(10) * number.min(59_000);
            assert!(recent.take(payer(1_000 + u64::from(number)), at));
        }
        let at = now + Duration::from_secs(599);
        assert!(!recent.take(payer(7), at), "it is not forgotten");
        assert!(recent.take(payer(8), at), "and a phone that was never seen may pay");
    }

    #[test]
    fn what_is_remembered_has_an_end_and_empties_itself() {
        let (mut recent, now) = (Recent::default(), monotonic::now());
        for phone in 0..MOST_REMEMBERED as u64 + 1_000 {
            assert!(recent.take(payer(phone), now));
        }
        assert_eq!((recent.starts.len(), recent.of_payer.len()), (MOST_REMEMBERED, MOST_REMEMBERED));
        assert!(recent.take(payer(7), now + RECENTLY));
        assert_eq!((recent.starts.len(), recent.of_payer.len()), (1, 1));
        assert!(recent.starts.capacity() < 1_000);
    }
}
