//! Row A9: every state that a few actors can bring about, whatever is lost, doubled, reordered or dies. It is the small
//! exhaustive sibling of the random simulation: the domain's own functions, each transaction of the shell as one step.
//!
//! Of the shell there is a copy here, of the order in which it calls the domain; what it stores and tells is the
//! simulation's to prove. No codes are typed, no invoice is updated, and the rail reports no other amounts.

mod books;
mod guard;
mod jobs;
mod kept;
mod payment;
mod refund;
mod sample;
mod seen;

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use domain::payment::{SessionStatus, Step, TransactionStatus};
use domain::refund::RefundStatus;
use domain::{Method, checkout, invoice};
use proof::Proof;
use stateright::{Checker, HasDiscoveries, Model};

use guard::Guard;
use payment::{CHECKOUT_TIMES, INVOICE_TIMES};
use seen::Seen;

/// The states of all machines together, rounded down.
const STATES: u64 = 301_000;
const PUSH: &[Method] = &[Method::Afrimoney];
const REDIRECT: &[Method] = &[Method::Wave];
const BOTH: &[Method] = &[Method::Wave, Method::Afrimoney];

#[test]
fn every_state_keeps_the_rules() {
    let mut proof = Proof::begin("A9", None, STATES);
    // An assertion that fails is a finding and told as such; that it was raised is noise.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let reached = checkouts(&mut proof) + invoices(&mut proof) + refunds(&mut proof);
    std::panic::set_hook(hook);
    if reached < STATES {
        proof.violation(format!("{reached} states of {STATES} or more: something can't happen any more"));
    }
    proof.finish(reached);
}

fn checkouts(proof: &mut Proof) -> u64 {
    let seen = Arc::new(Seen::default());
    let machine = |methods, times, attempts, runs, faults| payment::Machine {
        begin: payment::World::with_checkout,
        bounds: payment::Bounds { methods, times, attempts, runs, faults },
        without: None,
        seen: Arc::clone(&seen),
    };
    let until_expiry = &CHECKOUT_TIMES[..2];
    let reached = [
        explore(proof, "checkout, redirect", machine(REDIRECT, CHECKOUT_TIMES, 1, 2, 1)),
        explore(proof, "checkout, push, two faults", machine(PUSH, CHECKOUT_TIMES, 1, 2, 2)),
        explore(proof, "checkout, push twice", machine(PUSH, CHECKOUT_TIMES, 2, 2, 0)),
        explore(proof, "checkout, push twice, a fault", machine(PUSH, until_expiry, 2, 2, 1)),
        explore(proof, "checkout, redirect twice", machine(REDIRECT, CHECKOUT_TIMES, 2, 1, 0)),
        explore(proof, "checkout, two methods", machine(BOTH, until_expiry, 2, 1, 0)),
    ];
    expect(proof, &seen, "checkout", checkout::Status::ALL.map(|status| status.as_str()));
    expect(proof, &seen, "checkout", ["held open by an attempt"]);
    expect_payments(proof, &seen);
    for (name, methods, guard, attempts) in [
        ("checkout, stale rows written", PUSH, Guard::FreshRows, 1),
        ("checkout, called again", PUSH, Guard::OneCall, 1),
        ("checkout, second no believed", REDIRECT, Guard::SecondNo, 1),
        ("checkout, no believed beside another's call", REDIRECT, Guard::OthersCall, 1),
        ("checkout, second attempt beside an open one", PUSH, Guard::OpenSession, 2),
        ("checkout, left at the rail", PUSH, Guard::Withdrawal, 1),
    ] {
        let machine = machine(methods, CHECKOUT_TIMES, attempts, 2, 1);
        control(proof, name, payment::Machine { without: Some(guard), seen: Arc::default(), ..machine });
    }
    reached.iter().sum()
}

fn invoices(proof: &mut Proof) -> u64 {
    let seen = Arc::new(Seen::default());
    let machine = |methods, times, attempts, runs, faults| payment::Machine {
        begin: payment::World::with_invoice,
        bounds: payment::Bounds { methods, times, attempts, runs, faults },
        without: None,
        seen: Arc::clone(&seen),
    };
    let draft = payment::Machine { begin: payment::World::with_draft, ..machine(REDIRECT, INVOICE_TIMES, 0, 1, 0) };
    let until_due = &INVOICE_TIMES[..1];
    let reached = [
        explore(proof, "invoice, from draft, nobody pays online", draft.clone()),
        explore(proof, "invoice, redirect", machine(REDIRECT, INVOICE_TIMES, 1, 2, 0)),
        explore(proof, "invoice, redirect, a fault", machine(REDIRECT, until_due, 1, 1, 1)),
        explore(proof, "invoice, push, a fault", machine(PUSH, INVOICE_TIMES, 1, 2, 1)),
        explore(proof, "invoice, push twice", machine(PUSH, until_due, 2, 1, 0)),
    ];
    expect(proof, &seen, "invoice", invoice::Status::ALL.map(|status| status.as_str()));
    expect_payments(proof, &seen);
    let stale = Some(Guard::FreshRows);
    let paid_online = payment::Machine { without: stale, seen: Arc::default(), ..machine(PUSH, until_due, 1, 2, 0) };
    control(proof, "invoice, stale row written", payment::Machine { without: stale, seen: Arc::default(), ..draft });
    control(proof, "invoice, stale rows written after a call", paid_online);
    reached.iter().sum()
}

fn refunds(proof: &mut Proof) -> u64 {
    let seen = Arc::new(Seen::default());
    let machine = |begin, refunds, runs, faults| refund::Machine {
        begin,
        bounds: refund::Bounds { refunds, runs, faults },
        without: None,
        seen: Arc::clone(&seen),
    };
    let reached = [
        explore(proof, "refund, redirect, two faults", machine(refund::World::of_wave, 1, 2, 2)),
        explore(proof, "refund, redirect, two at once", machine(refund::World::of_wave, 2, 2, 1)),
        explore(proof, "refund, push, two at once", machine(refund::World::of_afrimoney, 2, 2, 1)),
        explore(proof, "refund of second money", machine(refund::World::of_second_money, 2, 2, 0)),
        explore(proof, "refund of cash", machine(refund::World::of_cash, 3, 1, 0)),
    ];
    expect(proof, &seen, "refund", RefundStatus::ALL.map(RefundStatus::as_str));
    expect(proof, &seen, "refund", ["two at once", "more than was left", "completed after a failure"]);
    expect(proof, &seen, "step", STEPS.map(Step::as_str));
    expect(proof, &seen, "rail", ["refused"]);
    use TransactionStatus::{Completed, PartiallyRefunded, Refunded};
    expect(proof, &seen, "payment", [Completed, PartiallyRefunded, Refunded].map(TransactionStatus::as_str));
    let (push, redirect) = (machine(refund::World::of_afrimoney, 2, 2, 1), machine(refund::World::of_wave, 2, 2, 1));
    for (name, machine, guard) in [
        ("refund, stale row written", &push, Guard::FreshRows),
        ("refund, called again", &push, Guard::OneCall),
        ("refund, no believed beside another's call", &redirect, Guard::OthersCall),
    ] {
        control(proof, name, refund::Machine { without: Some(guard), seen: Arc::default(), ..machine.clone() });
    }
    reached.iter().sum()
}

const STEPS: [Step; 4] = [Step::Sending, Step::Waiting, Step::Unknown, Step::Settled];

/// What attempts come to, whatever is paid.
fn expect_payments(proof: &mut Proof, seen: &Seen) {
    use SessionStatus::{Cancelled, Failed, Pending, Processing, Succeeded};
    expect(proof, seen, "session", [Pending, Processing, Succeeded, Failed, Cancelled].map(SessionStatus::as_str));
    let is_refund = |status: &TransactionStatus| {
        matches!(status, TransactionStatus::PartiallyRefunded | TransactionStatus::Refunded)
    };
    let statuses = TransactionStatus::ALL.into_iter().filter(|status| !is_refund(status));
    expect(proof, seen, "transaction", statuses.map(TransactionStatus::as_str));
    expect(proof, seen, "step", STEPS.map(Step::as_str));
    expect(proof, seen, "money", ["paid", "late", "second", "after a failure"]);
    expect(proof, seen, "rail", ["refused"]);
    expect(proof, seen, "work", ["done by two"]);
    expect(proof, seen, "call", ["arrives after the end"]);
    expect(proof, seen, "answer", ["overtaken by the outcome"]);
}

/// An exploration that never came there proves nothing of it.
fn expect(proof: &mut Proof, seen: &Seen, object: &'static str, states: impl IntoIterator<Item = &'static str>) {
    for state in states {
        if !seen.has(object, state) {
            proof.violation(format!("never reached: {object} {state}"));
        }
    }
}

/// All states; how many there are.
fn explore<M>(proof: &mut Proof, name: &'static str, machine: M) -> u64
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Debug + Clone + PartialEq,
{
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let checker = machine.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    for (rule, path) in checker.discoveries() {
        proof.violation(format!("{name}: {rule}: {:?}", path.into_actions()));
    }
    let states = u64::try_from(checker.unique_state_count()).expect("it is in memory");
    proof.note(name, states);
    states
}

/// Without a guard something is found.
fn control<M>(proof: &mut Proof, name: &'static str, machine: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Debug + Clone + PartialEq,
{
    let checker = machine.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let found = checker.discoveries().into_iter().map(|(rule, path)| format!("{rule}: {:?}", path.into_actions()));
    let found: Vec<String> = found.collect();
    proof.control(name, !found.is_empty());
    proof.note(name, found.join("; "));
}
