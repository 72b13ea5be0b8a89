//! Contract §4.1 as a table, expiry to the microsecond (P8), and money that comes late or twice.

use super::*;
use crate::payment::TransactionStatus;
use crate::sample::{DAY, OPEN_S, at, begin, checkout, dalasi, id, seconds, session};
use crate::table::table;

mod random;
mod world;

const END_US: i64 = OPEN_S as i64 * 1_000_000;

fn summary(number: u8, status: TransactionStatus) -> TransactionSummary {
    let amount = dalasi(10_000);
    TransactionSummary {
        id: id(number),
        status: status.as_str().into(),
        amount,
        fee: dalasi(250),
        net: dalasi(9_750),
        session: None,
    }
}

/// With one attempt that the provider has (or not).
fn attempted(with_provider: bool) -> Checkout {
    let mut checkout = checkout(dalasi(10_000));
    checkout.session_opened(id(20), seconds(1));
    checkout.attempt_moved(summary(1, TransactionStatus::Processing), with_provider, seconds(1));
    checkout
}

fn completed() -> Checkout {
    let mut checkout = attempted(true);
    assert_eq!(checkout.money_arrived(summary(1, TransactionStatus::Completed), seconds(2)), Settlement::Paid);
    checkout
}

fn expired() -> Checkout {
    let mut checkout = attempted(false);
    assert_eq!(checkout.observe(at(END_US)), Some(EventType::CheckoutExpired));
    checkout
}

fn cancelled() -> Checkout {
    let mut checkout = attempted(true);
    assert_eq!(checkout.cancel(seconds(2)), Ok(EventType::CheckoutCancelled));
    checkout
}

struct Row {
    checkout: Checkout,
    now: Timestamp,
}

#[derive(Clone, Copy)]
enum Action {
    Cancel,
    Pay,
    AttemptFails,
    Paid,
    /// Whatever the time is then.
    Clock(Timestamp),
}

fn cell(row: &Row, action: &Action) -> String {
    let Row { checkout: before, now } = row;
    let mut checkout = before.clone();
    let mut now = *now;
    let mut settlement = None;
    let done = match action {
        Action::Cancel => checkout.cancel(now).map(|_| ()),
        Action::Pay => checkout.payable(now).map(|()| checkout.session_opened(id(21), now)),
        Action::AttemptFails => {
            // Where one attempt brought the money already, it is another one that fails.
            let number = if before.stored_status() == Status::Completed { 9 } else { 1 };
            checkout.attempt_moved(summary(number, TransactionStatus::Failed), false, now);
            checkout.observe(now);
            Ok(())
        }
        Action::Paid => {
            checkout.observe(now);
            settlement = Some(checkout.money_arrived(summary(2, TransactionStatus::Completed), now));
            Ok(())
        }
        Action::Clock(later) => {
            now = now.max(*later);
            checkout.observe(now);
            Ok(())
        }
    };
    if let Err(refusal) = done {
        assert_eq!(&checkout, before, "a refusal changes nothing");
        return refusal.code();
    }
    let (was, is) = (before.stored_status(), checkout.stored_status());
    assert_eq!(checkout.status(now), is, "what is stored is what readers are told");
    match (was == is, was, settlement) {
        (false, _, _) => is.as_str().to_owned(),
        (true, Status::Pending, _) => "=".to_owned(),
        (true, Status::Completed | Status::Expired | Status::Cancelled, None) => "–".to_owned(),
        (true, _, Some(Settlement::Second)) => "– (second money)".to_owned(),
        (true, _, Some(Settlement::Late)) => "– (late money)".to_owned(),
        (true, _, Some(Settlement::Paid)) => "paid without a change".to_owned(),
    }
}

#[test]
fn checkouts_go_as_the_contract_says() {
    let row = |checkout, now_us| Row { checkout, now: at(now_us) };
    let states = [
        ("pending", row(attempted(false), END_US - 1)),
        ("pending, attempt with provider", row(attempted(true), END_US - 1)),
        ("pending, past expires_at", row(attempted(true), END_US)),
        ("completed", row(completed(), 3_000_000)),
        ("expired", row(expired(), END_US)),
        ("cancelled", row(cancelled(), 3_000_000)),
    ];
    let end = at(END_US);
    let actions = [
        ("cancel", Action::Cancel),
        ("pay", Action::Pay),
        ("attempt fails", Action::AttemptFails),
        ("paid", Action::Paid),
        ("now = expires_at", Action::Clock(end)),
        ("… + 24 h − 1 µs", Action::Clock(end.plus(DAY).minus(Duration::from_micros(1)))),
        ("… + 24 h", Action::Clock(end.plus(DAY))),
    ];
    insta::assert_snapshot!(table(&states, &actions, cell), @r"
                                   | cancel                     | pay                        | attempt fails | paid             | now = expires_at | … + 24 h − 1 µs | … + 24 h
    pending                        | cancelled                  | =                          | =             | completed        | expired          | expired         | expired
    pending, attempt with provider | cancelled                  | =                          | =             | completed        | =                | =               | expired
    pending, past expires_at       | cancelled                  | checkout_expired           | expired       | completed        | =                | =               | expired
    completed                      | checkout_already_completed | checkout_already_completed | –             | – (second money) | –                | –               | –
    expired                        | checkout_expired           | checkout_expired           | –             | – (late money)   | –                | –               | –
    cancelled                      | checkout_already_cancelled | checkout_already_cancelled | –             | – (late money)   | –                | –               | –
    ");
}

/// One reading of the clock decides for readers, payers and cancellers alike, whether or not the timer ran.
#[test]
fn expiry_is_exact() {
    let states = [("nobody pays", attempted(false)), ("attempt with provider", attempted(true))];
    let moments = [("t − 1 µs", at(END_US - 1)), ("t", at(END_US)), ("t + 1 µs", at(END_US + 1))];
    let cell = |checkout: &Checkout, now: &Timestamp| {
        let read = checkout.status(*now).as_str();
        let pay = checkout.payable(*now).map_or_else(|refusal| refusal.code(), |()| "ok".into());
        let cancel = checkout.clone().cancel(*now).map_or_else(|refusal| refusal.code(), |_| "ok".into());
        let timer = checkout.clone().observe(*now).map_or("–", EventType::as_str);
        format!("{read}, pay {pay}, cancel {cancel}, timer {timer}")
    };
    insta::assert_snapshot!(table(&states, &moments, cell), @r"
                          | t − 1 µs                            | t                                                                              | t + 1 µs
    nobody pays           | pending, pay ok, cancel ok, timer – | expired, pay checkout_expired, cancel checkout_expired, timer checkout.expired | expired, pay checkout_expired, cancel checkout_expired, timer checkout.expired
    attempt with provider | pending, pay ok, cancel ok, timer – | pending, pay checkout_expired, cancel ok, timer –                              | pending, pay checkout_expired, cancel ok, timer –
    ");
}

#[test]
fn the_timer_stores_and_tells_an_expiry_once() {
    let mut checkout = attempted(false);
    assert_eq!(checkout.observe(at(END_US - 1)), None);
    assert_eq!(checkout.observe(at(END_US)), Some(EventType::CheckoutExpired));
    let before = checkout.clone();
    assert_eq!(checkout.observe(at(END_US + 1)), None);
    assert_eq!(checkout, before);
}

/// Readers were told `expired` already: an attempt that reaches the provider afterwards does not revive it.
#[test]
fn nothing_holds_a_checkout_open_after_its_time_ran_out() {
    for (now, status) in [(at(END_US - 1), Status::Pending), (at(END_US), Status::Expired)] {
        let mut checkout = attempted(false);
        checkout.attempt_moved(summary(1, TransactionStatus::Processing), true, now);
        assert_eq!(checkout.status(at(END_US)), status, "handed over at {now:?}");
        assert_eq!(checkout.attempt_with_provider(), status == Status::Pending);
    }
}

#[test]
fn a_clock_that_goes_back_revives_nothing() {
    let mut checkout = attempted(true);
    checkout.attempt_moved(summary(1, TransactionStatus::Failed), false, at(END_US + 5));
    assert_eq!(checkout.status(at(END_US - 5)), Status::Expired);
    assert_eq!(checkout.payable(at(END_US - 5)), Err(Refusal::CheckoutExpired));
    assert_eq!(checkout.observe(at(END_US - 5)), Some(EventType::CheckoutExpired));
    assert_eq!(checkout.updated_at, at(END_US + 5));
}

/// The timer looked while an attempt held it. Whoever ends that hold began before, and waited for the row.
#[test]
fn what_the_timer_saw_is_known_to_whoever_began_before() {
    let mut checkout = attempted(true);
    assert_eq!(checkout.observe(at(END_US)), None);
    checkout.attempt_moved(summary(1, TransactionStatus::Pending), false, at(END_US - 1));
    assert_eq!(checkout.observe(at(END_US - 1)), Some(EventType::CheckoutExpired));
}

/// Late or twice: every money is told apart, and what is shown stays the first one.
#[test]
fn money_is_never_dropped() {
    let arrivals = |checkout: &Checkout| {
        let mut checkout = checkout.clone();
        let words = [2, 3, 4].map(|number| {
            let settlement = checkout.money_arrived(summary(number, TransactionStatus::Completed), at(END_US + 1));
            let shown = checkout.transaction.as_ref().map(|shown| shown.id);
            assert!(shown == Some(id(1)) || shown == Some(id(2)), "the first money stays shown");
            format!("{settlement:?}")
        });
        format!("{} → {}", words.join(", "), checkout.stored_status().as_str())
    };
    let held = attempted(true);
    let lines = [("held", &held), ("completed", &completed()), ("expired", &expired()), ("cancelled", &cancelled())];
    let text = lines.map(|(name, checkout)| format!("{name}: {}", arrivals(checkout)));
    insta::assert_snapshot!(text.join("\n"), @r"
    held: Paid, Second, Second → completed
    completed: Second, Second, Second → completed
    expired: Late, Second, Second → expired
    cancelled: Late, Second, Second → cancelled
    ");
}

/// The loser of a correction ends after the money came: the checkout goes on showing what paid it.
#[test]
fn an_attempt_that_ends_later_does_not_hide_the_money() {
    for mut checkout in [completed(), {
        let mut late = expired();
        late.money_arrived(summary(1, TransactionStatus::Completed), at(END_US + 1));
        late
    }] {
        let (shown, count) = (checkout.transaction.clone(), checkout.attempt_count);
        for status in [TransactionStatus::Processing, TransactionStatus::Failed, TransactionStatus::Cancelled] {
            checkout.attempt_moved(summary(9, status), true, at(END_US + 2));
        }
        assert_eq!((checkout.transaction.clone(), checkout.attempt_count), (shown, count));
        assert!(!checkout.attempt_with_provider());
    }
}

#[test]
fn attempts_are_counted_once_each() {
    let mut checkout = attempted(false);
    assert_eq!(checkout.attempt_count, 1);
    checkout.attempt_moved(summary(1, TransactionStatus::Failed), false, seconds(2));
    checkout.attempt_moved(summary(2, TransactionStatus::Pending), false, seconds(3));
    assert_eq!(checkout.attempt_count, 2);
    // The provider corrects the first one: an old attempt, not a third.
    assert_eq!(checkout.money_arrived(summary(1, TransactionStatus::Completed), seconds(4)), Settlement::Paid);
    assert_eq!(checkout.attempt_count, 2);
}

#[test]
fn one_attempt_never_pays_twice() {
    let mut checkout = completed();
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        checkout.money_arrived(summary(1, TransactionStatus::Completed), seconds(3))
    }));
    assert!(again.is_err(), "the same money again is a bug of ours, never a second settlement");
}

#[test]
fn created_on_whole_seconds() {
    let order = checkout(dalasi(1)).order;
    let checkout = Checkout::create(id(2), crate::sample::scope(), order, String::new(), 60, at(999_999));
    assert_eq!((checkout.created_at, checkout.expires_at), (at(0), seconds(60)));
    assert!(checkout.updated_at <= at(999_999));
}

#[test]
fn lines_add_up_within_bounds() {
    let maximum = Money::maximum(dalasi(1).currency);
    let line = |quantity, price| Item::new(None, quantity, dalasi(price));
    assert_eq!(line(3, 250).map(|item| item.total), Some(dalasi(750)));
    assert_eq!(line(1, maximum.minor).map(|item| item.total), Some(maximum));
    assert_eq!(line(2, maximum.minor), None, "above what one object may cost");
    assert_eq!(line(1_000_000, i64::MAX), None, "more than a number can hold");
    let items = [line(1, maximum.minor - 1).expect("fits"), line(1, 1).expect("fits")];
    assert_eq!(sum(&items), Some(maximum));
    let items = [line(1, maximum.minor).expect("fits"), line(1, 1).expect("fits")];
    assert_eq!(sum(&items), None);
    assert_eq!(sum(&[]), None);
    // Older versions took more of a currency with three decimals.
    let dinar = crate::money::Currency::parse("TND").expect("ISO 4217 has it");
    let once = Money::stored_maximum(dinar);
    let stored = [Item { product_id: None, description: None, quantity: 1, unit_price: once, total: once }];
    assert_eq!((Item::new(None, 1, once), sum(&stored)), (None, None));
    assert_eq!(stored_sum(&stored), Some(once));
    assert_eq!(stored_sum(&[stored.clone(), stored].concat()), None, "no version took it");
}

#[test]
fn every_status_has_one_spelling() {
    for status in Status::ALL {
        assert_eq!(Status::parse(status.as_str()), Some(status));
    }
    assert_eq!(Status::parse("Pending"), None);
}
