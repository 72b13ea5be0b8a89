//! B4.history: a loss of power in the midst of histories, whatever the disk then keeps of what it was not made to sync.
//!
//! The real service over the driver that serves, with its threads and its log: what somebody was told is there when the power
//! is back, the request that nobody heard of happened once or not at all, and the history goes on from what is left. Threads
//! take their time, so a seed tells which operations there were and which were cut, and nearly where.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::planted::{Defect, plant};
use proof::{Proof, Tier};
use sim::crowd::{Seeds, Setting, play_many};
use sim::history::{Outcome, play};
use sim::operation::{Fault, Operation, generate};
use sim::world::Template;

const OPERATIONS: usize = 250;
const GATE_COUNT: u64 = 2_000;
const GATE_BUDGET: Duration = Duration::from_secs(40);
/// The settings that are often advised, and an answer that comes too early. One that is not found in so many histories is missed.
const CONTROLS: [Defect; 3] = [Defect::SynchronousNormal, Defect::SynchronousOff, Defect::AnswerBeforeCommit];
const MOST_HISTORIES: u64 = 60;

/// A history whose storage fails in no other way.
fn history(seed: u64) -> Vec<Operation> {
    let mut operations = generate(seed, OPERATIONS);
    for operation in &mut operations {
        operation.fault = match operation.fault {
            Fault::StoreBegin
            | Fault::StoreStatement
            | Fault::StoreCommit
            | Fault::StoreConflict
            | Fault::UnknownCommit => Fault::None,
            other => other,
        };
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
        let found = find(control, proof.seed);
        proof.control(control.as_str(), found);
    }
    let (begun, found, losses) = (Instant::now(), Mutex::new(Vec::new()), AtomicU64::new(0));
    let (is_gate, wanted) = (proof.tier == Tier::Gate, proof.count);
    let played = play_many(
        Seeds { first: proof.seed, count: wanted, setting: Setting::OnDisk },
        || (),
        play_powered,
        |seed, outcome| {
            if let Some(violation) = &outcome.violation {
                let what = format!("seed {seed}, operation {}: {}", violation.step, violation.what);
                found.lock().unwrap_or_else(PoisonError::into_inner).push(what);
            }
            let lost = losses.fetch_add(outcome.losses, Ordering::Relaxed) + outcome.losses;
            lost >= wanted || (is_gate && begun.elapsed() > GATE_BUDGET)
        },
    );
    let losses = losses.into_inner();
    let seconds = begun.elapsed().as_secs_f64();
    println!("{losses} losses of power in {played} histories, {:.1} a second", losses as f64 / seconds);
    for violation in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        proof.violation(violation);
    }
    proof.finish(losses);
}

/// Whether some history shows the defect.
fn find(defect: Defect, first: u64) -> bool {
    let found = Mutex::new(None);
    let seeds = Seeds { first, count: MOST_HISTORIES, setting: Setting::OnDisk };
    let played = play_many(
        seeds,
        || plant(Some(defect)),
        play_powered,
        |_, outcome| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if let (Some(violation), None) = (&outcome.violation, found.as_ref()) {
                *found = Some(violation.what.clone());
            }
            found.is_some()
        },
    );
    plant(None);
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let what: String = found.as_deref().unwrap_or("NOT FOUND").chars().take(200).collect();
    println!("{}: after {played} histories: {}", defect.as_str(), what.replace('\n', " "));
    found.is_some()
}
