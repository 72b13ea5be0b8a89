//! A3: whatever goes wrong stops at a random moment, and ten minutes later nothing is stuck.

use std::time::{Duration, Instant};

use domain::planted::Defect;
use proof::{Proof, Tier};
use sim::crowd::{Seeds, Setting, play_many};
use sim::history::{Ending, Outcome, play_to};
use sim::operation::{Fault, Operation, generate};
use sim::random::Dice;
use sim::world::Template;

use crate::search::{Violations, find, violation};

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
        let seeds = Seeds { first: proof.seed, count: MOST_HISTORIES, setting: Setting::SendingMail };
        let found = find(control, seeds, heal, at_the_end);
        proof.control(control.as_str(), found.is_some());
    }
    let (begun, violations) = (Instant::now(), Violations::default());
    let is_gate = proof.tier == Tier::Gate;
    let seeds = Seeds { first: proof.seed, count: proof.count, setting: Setting::SendingMail };
    let reached = play_many(
        seeds,
        || (),
        heal,
        |seed, outcome| {
            violations.note(seed, outcome);
            is_gate && begun.elapsed() > GATE_BUDGET
        },
    );
    println!("{reached} histories that were healed, {:.1} a second", reached as f64 / begun.elapsed().as_secs_f64());
    violations.tell(&mut proof);
    proof.finish(reached);
}

/// What the end of a history shows; what the model sees on the way does not count.
fn at_the_end(seed: u64, outcome: &Outcome) -> Option<String> {
    let is_end = outcome.violation.as_ref().is_some_and(|violation| violation.step == cut(seed).0.len());
    violation(seed, outcome).filter(|_| is_end)
}
