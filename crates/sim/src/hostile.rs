//! C2: a rail that speaks early, late, twice, of another amount or currency and about what nobody began: nothing happens twice,
//! and what does not fit waits for a person.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use domain::planted::Defect;
use proof::{Proof, Tier};
use sim::crowd::{Seeds, Setting, play_many};
use sim::history::{Outcome, play};
use sim::operation::generate_hostile;
use sim::world::Template;

use crate::OPERATIONS;
use crate::search::{Violations, find, violation};

const GATE_COUNT: u64 = 10_000;
const GATE_BUDGET: Duration = Duration::from_secs(60);
/// Each believes such a rail. One that is not found in so many histories is missed: the rarest, whose word has to come during a call
/// that is lost, needs some 400 of them, and now and then five times as many.
const CONTROLS: [Defect; 8] = [
    Defect::WrongAmountTaken,
    Defect::WrongCurrencyTaken,
    Defect::RefundWrongAmountTaken,
    Defect::RefundWrongCurrencyTaken,
    Defect::WordAnswersForCall,
    Defect::LostAnswerHidesWord,
    Defect::ChargedAgain,
    Defect::RefundSentAgain,
];
const MOST_HISTORIES: u64 = 10_000;

async fn play_hostile(template: &Template, seed: u64) -> Outcome {
    play(template, &generate_hostile(seed, OPERATIONS), false).await
}

#[expect(clippy::disallowed_methods, reason = "the gate has so much time and no more")]
pub(crate) fn prove() {
    let mut proof = Proof::begin("C2", None, GATE_COUNT);
    for control in CONTROLS {
        let seeds = Seeds { first: proof.seed, count: MOST_HISTORIES, setting: Setting::Plain };
        let found = find(control, seeds, play_hostile, violation);
        proof.control(control.as_str(), found.is_some());
    }
    let (begun, violations, words) = (Instant::now(), Violations::default(), AtomicU64::new(0));
    let is_gate = proof.tier == Tier::Gate;
    // Each history has many words: there are never as many histories.
    let seeds = Seeds { first: proof.seed, count: proof.count, setting: Setting::Plain };
    let played = play_many(
        seeds,
        || (),
        play_hostile,
        |seed, outcome| {
            violations.note(seed, outcome);
            let here = outcome.hostile_words;
            let is_enough = words.fetch_add(here, Ordering::Relaxed) + here >= proof.count;
            is_enough || (is_gate && begun.elapsed() > GATE_BUDGET)
        },
    );
    let (words, seconds) = (words.into_inner(), begun.elapsed().as_secs_f64());
    println!("{words} hostile words in {played} histories, {:.1} words a second", words as f64 / seconds);
    violations.tell(&mut proof);
    proof.finish(words);
}
