//! C2: a rail that speaks early, late, twice, of another amount or currency and about what nobody began: nothing happens twice,
//! and what does not fit waits for a person.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::planted::{Defect, plant};
use proof::{Proof, Tier};
use sim::crowd::{Seeds, Setting, play_many};
use sim::history::{Outcome, play};
use sim::operation::generate_hostile;
use sim::world::Template;

use crate::OPERATIONS;

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
        let found = find(control, proof.seed);
        proof.control(control.as_str(), found);
    }
    let (begun, found, words) = (Instant::now(), Mutex::new(Vec::new()), AtomicU64::new(0));
    let is_gate = proof.tier == Tier::Gate;
    // Each history has many words: there are never as many histories.
    let seeds = Seeds { first: proof.seed, count: proof.count, setting: Setting::Plain };
    let played = play_many(
        seeds,
        || (),
        play_hostile,
        |seed, outcome| {
            if let Some(violation) = &outcome.violation {
                let what = format!("seed {seed}, operation {}: {}", violation.step, violation.what);
                found.lock().unwrap_or_else(PoisonError::into_inner).push(what);
            }
            let here = outcome.hostile_words;
            let is_enough = words.fetch_add(here, Ordering::Relaxed) + here >= proof.count;
            is_enough || (is_gate && begun.elapsed() > GATE_BUDGET)
        },
    );
    let (words, seconds) = (words.into_inner(), begun.elapsed().as_secs_f64());
    println!("{words} hostile words in {played} histories, {:.1} words a second", words as f64 / seconds);
    for violation in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        proof.violation(violation);
    }
    proof.finish(words);
}

fn find(defect: Defect, first: u64) -> bool {
    let found = Mutex::new(None);
    let seeds = Seeds { first, count: MOST_HISTORIES, setting: Setting::Plain };
    let played = play_many(
        seeds,
        || plant(Some(defect)),
        play_hostile,
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
    println!("{}: after {played} histories: {}", defect.as_str(), found.as_deref().unwrap_or("NOT FOUND"));
    found.is_some()
}
