//! A3: whatever goes wrong stops at a random moment, and ten minutes later nothing is stuck.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::planted::{Defect, plant};
use proof::{Proof, Tier};
use sim::crowd::{Seeds, Setting, play_many};
use sim::history::{Ending, Outcome, play_to};
use sim::operation::{Fault, Operation, generate};
use sim::random::Dice;
use sim::world::Template;

const LONGEST: usize = 250;
const GATE_COUNT: u64 = 500;
const GATE_BUDGET: Duration = Duration::from_secs(60);
/// Each keeps something from ever being done. One that is not found in so many histories is missed.
const CONTROLS: [Defect; 5] = [
    Defect::LeaseNeverEnds,
    Defect::LeaseNeverReleased,
    Defect::JobNeverDone,
    Defect::QuestionForgotten,
    Defect::RefundNotSent,
];
const MOST_HISTORIES: u64 = 300;

/// A history that ends somewhere, often in the middle of what went wrong.
fn cut(seed: u64) -> (Vec<Operation>, u64) {
    let mut dice = Dice::new(seed ^ 0x6c69_7665);
    let mut operations = generate(seed, LONGEST);
    operations.truncate(1 + dice.below(LONGEST as u64) as usize);
    if let Some(last) = operations.last_mut()
        && !dice.one_in(3)
    {
        last.fault = Fault::ALL[dice.below(Fault::ALL.len() as u64) as usize];
    }
    (operations, dice.next())
}

async fn heal(template: &Template, seed: u64) -> Outcome {
    let (operations, dice) = cut(seed);
    play_to(template, &operations, false, Ending::Healed(dice)).await
}

#[expect(clippy::disallowed_methods, reason = "the gate has so much time and no more")]
pub(crate) fn prove() {
    let mut proof = Proof::begin("A3", None, GATE_COUNT);
    for control in CONTROLS {
        let found = find(control, proof.seed);
        proof.control(control.as_str(), found);
    }
    let (begun, found) = (Instant::now(), Mutex::new(Vec::new()));
    let is_gate = proof.tier == Tier::Gate;
    let seeds = Seeds { first: proof.seed, count: proof.count, setting: Setting::SendingMail };
    let reached = play_many(
        seeds,
        || (),
        heal,
        |seed, outcome| {
            if let Some(violation) = &outcome.violation {
                let what = format!("seed {seed}, operation {}: {}", violation.step, violation.what);
                found.lock().unwrap_or_else(PoisonError::into_inner).push(what);
            }
            is_gate && begun.elapsed() > GATE_BUDGET
        },
    );
    println!("{reached} histories that were healed, {:.1} a second", reached as f64 / begun.elapsed().as_secs_f64());
    for violation in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        proof.violation(violation);
    }
    proof.finish(reached);
}

/// Whether the end of a history shows the defect; what the model sees on the way does not count.
fn find(defect: Defect, first: u64) -> bool {
    let found = Mutex::new(None);
    let seeds = Seeds { first, count: MOST_HISTORIES, setting: Setting::SendingMail };
    let played = play_many(
        seeds,
        || plant(Some(defect)),
        heal,
        |seed, outcome| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let at_the_end = outcome.violation.iter().find(|violation| violation.step == cut(seed).0.len());
            if let (Some(violation), None) = (at_the_end, found.as_ref()) {
                *found = Some(violation.what.clone());
            }
            found.is_some()
        },
    );
    plant(None);
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{}: after {played} histories: {}", defect.as_str(), found.as_deref().unwrap_or("NOT FOUND"));
    found.is_some()
}
