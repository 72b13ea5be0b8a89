//! Any sequence of actions: no panic, no way out of a final state but the listed ones, one payment, no gap.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use super::world::{Act, World, answered};
use super::*;
use crate::event::EventType;
use crate::ledger::{Account, Entry};
use crate::method::Method;
use crate::payment::SessionStatus;
use crate::rail::{Called, FailureReason, Report};

fn method() -> impl Strategy<Value = Method> {
    prop::sample::select(Method::ALL.to_vec())
}

fn report() -> impl Strategy<Value = Report> {
    let paid = |minor| crate::sample::paid(dalasi(minor));
    prop_oneof![
        1 => Just(Report::Open),
        1 => (0..4_u8).prop_map(|attempts_left| Report::AwaitingCode { attempts_left }),
        1 => Just(Report::Processing),
        4 => Just(paid(AMOUNT)),
        1 => Just(paid(AMOUNT - 1)),
        2 => Just(Report::Failed { reason: FailureReason::Declined }),
        1 => Just(Report::Failed { reason: FailureReason::WrongCode }),
        1 => Just(Report::NotFound),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let started = prop_oneof![
        3 => Just(answered()),
        1 => Just(Called::Refused(FailureReason::ProviderError)),
        1 => Just(Called::Lost("lost".into())),
    ];
    let submitted = prop_oneof![
        3 => report().prop_map(Called::Answered),
        1 => Just(Called::Refused(FailureReason::ProviderError)),
        1 => Just(Called::Lost("lost".into())),
    ];
    prop_oneof![
        6 => method().prop_map(Act::Pay),
        6 => started.prop_map(Act::Start),
        4 => submitted.prop_map(Act::Code),
        8 => report().prop_map(Act::Report),
        2 => Just(Act::Returned),
        1 => Just(Act::Cancel),
        2 => Just(Act::Timer),
        2 => any::<bool>().prop_map(|paid| Act::Resolve { paid }),
    ]
}

/// How far the clock moves before an action: mostly a little, seldom over the expiry, now and then back.
fn step_s() -> impl Strategy<Value = i64> {
    prop_oneof![12 => 0..30_i64, 2 => 500..700_i64, 1 => 80_000..90_000_i64, 2 => -100..0_i64]
}

const AMOUNT: i64 = 10_000;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_only_the_listed_edges_are_taken(
        steps in prop::collection::vec((act(), 0..4_usize, step_s()), 1..60),
        rate in 0..=10_000_u32,
    ) {
        let mut world = World::new(dalasi(AMOUNT), rate);
        let mut now_s = 0;
        for (act, attempt, step_s) in &steps {
            now_s = (now_s + step_s).max(0);
            let before = world.clone();
            world.act(act, *attempt, seconds(now_s));
            check_step(&before, &world, seconds(now_s));
        }
        check_end(&world);
    }

    #[test]
    fn entries_balance_for_every_amount_and_fee(
        minor in 1..=99_999_999_999_999_i64,
        rate in 0..=10_000_u32,
        second in any::<bool>(),
    ) {
        let mut world = World::new(dalasi(minor), rate);
        world.act(&Act::Pay(Method::Wave), 0, seconds(1));
        world.act(&Act::Report(crate::sample::paid(dalasi(minor))), 0, seconds(2));
        let mut transaction = world.payments[0].transaction.clone().expect("it was begun");
        transaction.duplicate = second;
        let entry = if second {
            Entry::second_money(id(1), &transaction)
        } else {
            Entry::payment_completed(id(1), &transaction)
        };
        let of = |account: &Account| {
            let postings = entry.postings().iter().filter(|posting| posting.account == *account);
            postings.map(|posting| posting.amount_minor).sum::<i64>()
        };
        prop_assert_eq!(entry.postings().iter().map(|posting| posting.amount_minor).sum::<i64>(), 0);
        prop_assert_eq!(of(&Account::RailClearing { rail: "simulator".into() }), minor);
        if second {
            prop_assert_eq!(of(&Account::Unapplied), -minor);
        } else {
            prop_assert_eq!(of(&Account::Fees), -transaction.fee().minor);
            prop_assert_eq!(of(&Account::Merchant), -(minor - transaction.fee().minor));
        }
    }
}

/// The sequences reach what is rare: a night of luck that never sees late money proves nothing about it.
#[test]
fn the_rare_states_are_reached() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let steps = prop::collection::vec((act(), 0..4_usize, step_s()), 1..60);
    let mut reached = std::collections::BTreeMap::new();
    for _ in 0..1024 {
        let steps = steps.new_tree(&mut runner).expect("it always yields").current();
        let mut world = World::new(dalasi(AMOUNT), 250);
        let mut now_s = 0;
        for (act, attempt, step_s) in &steps {
            now_s = (now_s + step_s).max(0);
            world.act(act, *attempt, seconds(now_s));
        }
        let transactions = || world.payments.iter().filter_map(|payment| payment.transaction.as_ref());
        let corrected = transactions().any(|transaction| {
            transaction.status() == TransactionStatus::Completed
                && transaction.reached(TransactionStatus::Failed).is_some()
        });
        let states = [
            ("paid", world.settlements.contains(&Settlement::Paid)),
            ("late", world.settlements.contains(&Settlement::Late)),
            ("second", world.settlements.contains(&Settlement::Second)),
            ("expired", world.checkout.stored_status() == Status::Expired),
            ("cancelled", world.checkout.stored_status() == Status::Cancelled),
            ("corrected", corrected),
            ("parked", transactions().any(|transaction| transaction.parked.is_some())),
            ("unknown", world.payments.iter().any(|payment| payment.session.outcome_unknown)),
        ];
        states.into_iter().for_each(|(name, is_reached)| *reached.entry(name).or_insert(0) += i32::from(is_reached));
    }
    assert!(reached.values().all(|times| *times >= 20), "too seldom: {reached:?}");
}

/// `(from, to)` where they differ.
fn edge<T: PartialEq + Copy>(from: T, to: T) -> Option<(T, T)> {
    (from != to).then_some((from, to))
}

fn check_step(before: &World, after: &World, now: Timestamp) {
    if let Some((from, to)) = edge(before.checkout.stored_status(), after.checkout.stored_status()) {
        assert_eq!(from, Status::Pending, "{} is final, and became {}", from.as_str(), to.as_str());
    }
    // A reader who was told that it is over is never told otherwise at the same or a later moment.
    if before.checkout.status(now) == Status::Expired {
        assert_eq!(after.checkout.status(now), Status::Expired, "expired is final, stored or not");
    }
    assert!(before.checkout.updated_at <= after.checkout.updated_at, "the checkout's time goes back");
    assert!(before.checkout.attempt_count <= after.checkout.attempt_count, "an attempt is forgotten");
    for (before, after) in before.payments.iter().zip(&after.payments) {
        assert!(before.session.updated_at <= after.session.updated_at, "a session's time goes back");
        if let Some((from, to)) = edge(before.session.status(), after.session.status()) {
            use SessionStatus::{Cancelled, Failed, Pending, Processing, Succeeded};
            let is_listed = match from {
                Pending => matches!(to, Processing | Succeeded | Failed | Cancelled),
                // The code is asked for (again), and at once expired where the time is up.
                Processing => matches!(to, Pending | Succeeded | Failed | Cancelled),
                Failed | Cancelled => to == Succeeded,
                Succeeded => false,
            };
            assert!(is_listed, "session {} → {}", from.as_str(), to.as_str());
        }
        let (before, after) = (before.transaction.as_ref(), after.transaction.as_ref());
        let (before, after) = (before.expect("begun at once"), after.expect("begun at once"));
        assert!(before.updated_at <= after.updated_at, "an attempt's time goes back");
        assert!(after.transitions.starts_with(&before.transitions), "history is rewritten");
        assert!(after.transitions.is_sorted_by_key(|moved| moved.at), "moves are out of order");
        assert_eq!(after.transitions.last().map(|moved| moved.status), Some(after.status()));
        for pair in after.transitions.windows(2) {
            use TransactionStatus::{
                Cancelled, Completed, Expired, Failed, PartiallyRefunded, Pending, Processing, Refunded,
            };
            let (from, to) = (pair[0].status, pair[1].status);
            let is_listed = match from {
                Pending => to != Pending,
                Processing => matches!(to, Completed | Failed),
                Failed | Cancelled | Expired => to == Completed,
                // Nobody asks for a refund here.
                Completed | PartiallyRefunded | Refunded => false,
            };
            assert!(is_listed, "attempt {} → {}", from.as_str(), to.as_str());
        }
    }
}

fn check_end(world: &World) {
    let is_completed = world.checkout.stored_status() == Status::Completed;
    let paid = world.settlements.iter().filter(|settlement| **settlement == Settlement::Paid).count();
    assert_eq!(paid, usize::from(is_completed), "a checkout is paid once, or not");
    let firsts = world.settlements.iter().filter(|settlement| **settlement != Settlement::Second).count();
    assert_eq!(firsts, world.settlements.len().min(1), "all money but the first is second");
    let told = |kind| world.events.iter().filter(|(_, event)| *event == kind).count();
    assert_eq!(told(EventType::CheckoutCompleted), usize::from(is_completed));
    assert_eq!(told(EventType::PaymentSucceeded), world.settlements.len(), "every money is told");
    assert_eq!(world.entries.len(), world.settlements.len(), "every money is posted once");
    assert!(told(EventType::CheckoutExpired) + told(EventType::CheckoutCancelled) <= 1, "one end is told");
    let sequence: Vec<i64> = world.events.iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(sequence, (1..=world.checkout.event_sequence).collect::<Vec<_>>(), "events without a gap");
    let completed = world.payments.iter().filter_map(|payment| payment.transaction.as_ref());
    let completed = completed.filter(|transaction| transaction.status() == TransactionStatus::Completed);
    assert_eq!(completed.count(), world.settlements.len(), "an attempt brings money once");
    if let Some(shown) = world.checkout.transaction.as_ref() {
        assert_eq!(shown.is_completed(), !world.settlements.is_empty(), "money is shown");
    }
    assert_eq!(world.checkout.attempt_count, i64::try_from(world.payments.len()).expect("few"));
    // What is stored is what is read back.
    let again = |text: String| serde_json::from_str::<Checkout>(&text).expect("it was written by us");
    assert_eq!(again(serde_json::to_string(&world.checkout).expect("it is data")), world.checkout);
    for payment in &world.payments {
        let session = serde_json::to_string(&payment.session).expect("it is data");
        assert_eq!(serde_json::from_str::<crate::payment::PaymentSession>(&session).expect("ours"), payment.session);
        let transaction = serde_json::to_string(&payment.transaction).expect("it is data");
        let read: Option<crate::payment::Transaction> = serde_json::from_str(&transaction).expect("ours");
        assert_eq!(read, payment.transaction);
    }
}
