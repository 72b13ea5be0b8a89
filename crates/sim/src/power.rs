//! B4.history: a loss of power in the midst of histories, whatever the disk then keeps of what it was not made to sync.
//!
//! The real service over the driver that serves, with its threads and its log: what somebody was told is there when the power
//! is back, the request that nobody heard of happened once or not at all, and the history goes on from what is left. Threads
//! take their time, so a seed tells which operations there were and which were cut, and nearly where.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use domain::planted::Defect;
use proof::{Proof, Tier};
use sim::crowd::{Seeds, Setting, play_many};
use sim::history::{Outcome, play};
use sim::operation::{Fault, Operation, generate};
use sim::world::Template;

use crate::search::{Violations, find, violation};

const OPERATIONS: usize = 250;
const GATE_COUNT: u64 = 2_000;
const GATE_BUDGET: Duration = Duration::from_secs(40);
/// The settings that are often advised, and an answer that comes too early. One that is not found in so many histories is missed.
const CONTROLS: [Defect; 3] = [Defect::SynchronousNormal, Defect::SynchronousOff, Defect::AnswerBeforeCommit];
const MOST_HISTORIES: u64 = 60;

/// A history whose storage fails in no other way.
fn history(seed: u64) -> Vec<Operation> {
    let mut operations = generate(seed, OPERATIONS);
    for operation in operations.iter_mut().filter(|operation| operation.fault.is_of_storage()) {
        operation.fault = Fault::None;
    }
    operations
}

async fn play_powered(template: &Template, seed: u64) -> Outcome {
    play(template, &history(seed), false).await
}

#[expect(clippy::disallowed_methods, reason = "the gate has so much time and no more")]
pub(crate) fn prove() {
    let mut proof = Proof::begin("B4.history", Some("sqlite"), GATE_COUNT);
    for control in CONTROLS {
        let seeds = Seeds { first: proof.seed, count: MOST_HISTORIES, setting: Setting::OnDisk };
        let found = find(control, seeds, play_powered, violation);
        proof.control(control.as_str(), found.is_some());
    }
    let (begun, violations, losses) = (Instant::now(), Violations::default(), AtomicU64::new(0));
    let (is_gate, wanted) = (proof.tier == Tier::Gate, proof.count);
    let played = play_many(
        Seeds { first: proof.seed, count: wanted, setting: Setting::OnDisk },
        || (),
        play_powered,
        |seed, outcome| {
            violations.note(seed, outcome);
            let lost = losses.fetch_add(outcome.losses, Ordering::Relaxed) + outcome.losses;
            lost >= wanted || (is_gate && begun.elapsed() > GATE_BUDGET)
        },
    );
    let losses = losses.into_inner();
    let seconds = begun.elapsed().as_secs_f64();
    println!("{losses} losses of power in {played} histories, {:.1} a second", losses as f64 / seconds);
    violations.tell(&mut proof);
    proof.finish(losses);
}
