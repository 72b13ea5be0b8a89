//! Any sequence of actions: no panic, only the listed edges, and sums that agree after each step.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::entropy::Entropy;
use crate::receipt::ValidationCode;

#[derive(Debug, Clone)]
enum Act {
    Update {
        unit: i64,
        quantity: i64,
        rate: u32,
        due_s: i64,
    },
    Finalize,
    Send,
    Cancel,
    /// So much, or all that is left.
    Record(Option<i64>),
    /// An attempt of a payer gets to the provider, or only to the choice of method.
    Attempt {
        minor: Option<i64>,
        with_provider: bool,
    },
    Fails(usize),
    Arrives(usize),
    Clock,
}

fn act() -> impl Strategy<Value = Act> {
    let update = (1..20_000_i64, 1..4_i64, 0..=1_000_000_u32, -50..2_000_000_i64)
        .prop_map(|(unit, quantity, rate, due_s)| Act::Update { unit, quantity, rate, due_s });
    prop_oneof![
        2 => update,
        2 => Just(Act::Finalize),
        1 => Just(Act::Send),
        2 => Just(Act::Cancel),
        4 => part().prop_map(Act::Record),
        6 => (part(), prop::bool::weighted(0.3)).prop_map(|(minor, with_provider)| Act::Attempt { minor, with_provider }),
        2 => (0..4_usize).prop_map(Act::Fails),
        4 => (0..4_usize).prop_map(Act::Arrives),
        2 => Just(Act::Clock),
    ]
}

fn part() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![3 => (1..12_000_i64).prop_map(Some), 1 => Just(None)]
}

fn step_s() -> impl Strategy<Value = i64> {
    prop_oneof![12 => 0..30_i64, 2 => 80_000..90_000_i64, 1 => 500_000..1_000_000_i64, 2 => -100..0_i64]
}

struct World {
    invoice: Invoice,
    /// Begun and not over: transaction and amount.
    attempts: Vec<(Id<Transaction>, i64)>,
    entropy: Entropy,
    /// All that came, told apart.
    came: BTreeMap<&'static str, i64>,
    recorded: i64,
    /// Every status that it has had.
    reached: BTreeSet<&'static str>,
}

impl World {
    fn new(is_draft: bool) -> Self {
        let invoice = if is_draft { draft() } else { pending() };
        let entropy = Entropy::from_seed([7; 32]);
        let reached = BTreeSet::from([invoice.stored_status().as_str()]);
        Self { invoice, attempts: Vec::new(), entropy, came: BTreeMap::new(), recorded: 0, reached }
    }

    fn act(&mut self, act: &Act, now: Timestamp) {
        let invoice = &mut self.invoice;
        match act {
            Act::Update { unit, quantity, rate, due_s } => {
                let change = Change {
                    items: Some(vec![Item::new(None, *quantity, dalasi(*unit)).expect("small")]),
                    tax_rate: TaxRate::try_from(*rate).ok(),
                    due_date: Some(seconds(*due_s)),
                    ..Change::default()
                };
                let _ = invoice.update(change, now);
            }
            Act::Finalize => drop(invoice.finalize(now)),
            Act::Send => drop(invoice.sent(now)),
            Act::Cancel => drop(invoice.cancel(now)),
            Act::Record(minor) => {
                invoice.observe(now);
                let amount = minor.map_or(invoice.remaining(), dalasi);
                // Where nothing is left, anything is too much.
                let amount = if amount.minor == 0 { dalasi(1) } else { amount };
                if let Ok(event) = invoice.record(amount, now) {
                    assert_eq!(event, invoice.settled_event());
                    self.recorded += amount.minor;
                    self.receipt(amount.minor, now);
                }
            }
            Act::Attempt { minor, with_provider } => {
                let Ok(amount) = invoice.payable(minor.map(dalasi), true, now) else { return };
                // One open session: as long as an attempt is with the provider, no other begins.
                if invoice.attempt_with_provider() {
                    return;
                }
                let transaction = self.entropy.id(now);
                invoice.session_opened(self.entropy.id(now), now);
                let moved = self.summary(transaction, amount.minor, TransactionStatus::Processing);
                self.invoice.attempt_moved(moved, *with_provider, now);
                self.attempts.push((transaction, amount.minor));
            }
            Act::Fails(number) => {
                if let Some((transaction, minor)) = self.attempts.get(*number).copied() {
                    let moved = self.summary(transaction, minor, TransactionStatus::Failed);
                    self.invoice.attempt_moved(moved, false, now);
                }
            }
            Act::Arrives(number) => {
                if *number >= self.attempts.len() {
                    return;
                }
                let (transaction, minor) = self.attempts.remove(*number);
                let arrived = self.summary(transaction, minor, TransactionStatus::Completed);
                self.invoice.observe(now);
                let word = match self.invoice.money_arrived(arrived, now) {
                    Settlement::Paid => {
                        self.receipt(minor, now);
                        "money in time"
                    }
                    Settlement::Late => "late money",
                    Settlement::Second => "second money",
                };
                *self.came.entry(word).or_insert(0) += minor;
            }
            Act::Clock => drop(invoice.observe(now)),
        }
    }

    fn receipt(&mut self, minor: i64, now: Timestamp) {
        let id = self.entropy.id(now);
        let (number, validation_code) = (String::new(), ValidationCode::new([0; 16]));
        let amount = dalasi(minor);
        self.invoice.receipt_issued(ReceiptSummary { id, number, amount, payment_date: now, validation_code });
    }

    fn summary(&self, id: Id<Transaction>, minor: i64, status: TransactionStatus) -> TransactionSummary {
        let status = status.as_str().into();
        TransactionSummary { id, status, amount: dalasi(minor), fee: dalasi(0), net: dalasi(minor), session: None }
    }

    fn check(&mut self, before: &Invoice, now: Timestamp) {
        let invoice = &self.invoice;
        let bill = invoice.bill();
        let lines: i64 = bill.items().iter().map(|item| item.total.minor).sum();
        assert_eq!(bill.amount().minor, lines, "the lines are the amount");
        assert_eq!(bill.total().minor, lines + bill.tax().minor, "amount and tax are the total");
        assert_eq!(invoice.paid().minor + invoice.remaining().minor, bill.total().minor, "paid and left are the total");
        assert!(invoice.remaining().minor >= 0, "less than nothing is left");
        let online = self.came.get("money in time").copied().unwrap_or_default();
        assert_eq!(invoice.paid().minor, online + self.recorded, "all that was taken counts, and nothing else");
        let receipts: i64 = invoice.receipts().iter().map(|receipt| receipt.amount.minor).sum();
        assert_eq!(receipts, invoice.paid().minor, "every payment has its receipt");
        self.reached.insert(invoice.stored_status().as_str());
        let (from, to) = (before.stored_status(), invoice.stored_status());
        assert!(is_listed(from, to), "{} → {}", from.as_str(), to.as_str());
        if before.status(now) == Status::Overdue {
            assert_ne!(invoice.status(now), Status::Pending, "what readers were told is not taken back");
        }
        assert_eq!(invoice.paid_date().is_some(), to == Status::Paid);
        assert_eq!(invoice.overdue_at().is_some(), to == Status::Pending);
        assert!(before.updated_at <= invoice.updated_at, "the invoice's time goes back");
        assert!(before.revision() <= invoice.revision(), "a revision is taken back");
        let shown = |invoice: &Invoice| {
            (invoice.stored_status(), invoice.bill().clone(), invoice.due_date, invoice.sent_count, invoice.paid())
        };
        if shown(before) != shown(invoice) {
            assert!(before.revision() < invoice.revision(), "a change without a revision");
        }
        let text = serde_json::to_string(invoice).expect("it is data");
        assert_eq!(serde_json::from_str::<Invoice>(&text).expect("ours"), *invoice);
    }
}

fn is_listed(from: Status, to: Status) -> bool {
    use Status::{Cancelled, Draft, Overdue, Paid, PartiallyPaid, Pending};
    from == to
        || match from {
            Draft => matches!(to, Pending | Cancelled),
            // Recorded after the moment: overdue and paid in one step.
            Pending => matches!(to, Overdue | PartiallyPaid | Paid | Cancelled),
            Overdue => matches!(to, PartiallyPaid | Paid | Cancelled),
            PartiallyPaid => to == Paid,
            Paid | Cancelled => false,
        }
}

fn run(is_draft: bool, steps: &[(Act, i64)]) -> World {
    let mut world = World::new(is_draft);
    let mut now_s = 0;
    for (act, step_s) in steps {
        now_s = (now_s + step_s).max(0);
        let before = world.invoice.clone();
        world.act(act, seconds(now_s));
        world.check(&before, seconds(now_s));
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_sums_agree(
        is_draft in any::<bool>(),
        steps in prop::collection::vec((act(), step_s()), 1..60),
    ) {
        run(is_draft, &steps);
    }
}

/// The sequences reach what is rare.
#[test]
fn the_rare_states_are_reached() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let sequences = (any::<bool>(), prop::collection::vec((act(), step_s()), 1..60));
    let mut reached = BTreeMap::new();
    for _ in 0..1024 {
        let (is_draft, steps) = sequences.new_tree(&mut runner).expect("it always yields").current();
        let world = run(is_draft, &steps);
        for name in world.came.keys().chain(&world.reached).copied() {
            *reached.entry(name).or_insert(0) += 1;
        }
    }
    assert_eq!(reached.len(), 3 + Status::ALL.len(), "not all are reached: {reached:?}");
    assert!(reached.values().all(|times| *times >= 20), "too seldom: {reached:?}");
}
