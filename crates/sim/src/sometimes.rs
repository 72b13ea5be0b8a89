//! A2: every transition of the contract's tables is reached, and in the long run with everything that can go wrong for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use proof::Proof;
use serde_json::{Value, json};
use sim::crowd::{Seeds, Setting, play_many};
use sim::history::{Outcome, TRANSITIONS, cells, play};
use sim::operation::{Fault, Kind, generate_without};

use crate::OPERATIONS;

/// Fewer histories may not have come to everything.
const ENOUGH: u64 = 300;
/// After so many every cell has to be reached as often as `WANTED` says.
const MANY: u64 = 1_000_000;
const WANTED: u64 = 100;

/// What is never reached when nobody does this.
const CONTROLS: [(Kind, &[&str]); 3] = [
    (Kind::DeleteLink, &["payment_link active deleted", "payment_link inactive deleted"]),
    (Kind::CancelInvoice, &["invoice draft cancelled", "invoice pending cancelled", "invoice overdue cancelled"]),
    (Kind::FinalizeInvoice, &["invoice draft pending"]),
];
const MOST_HISTORIES: u64 = 2_000;

/// How often each transition was reached by what had gone wrong.
pub(crate) type Reached = BTreeMap<(String, Fault), u64>;

/// Once for a commit.
pub(crate) fn controls(proof: &mut Proof) {
    let is_caught =
        |line: &Value| line["controls_caught"].as_array().is_some_and(|caught| caught.len() == CONTROLS.len());
    if proof.earlier("controls_caught").iter().any(is_caught) {
        return;
    }
    for (never, lost) in CONTROLS {
        let mut others: BTreeSet<&str> = TRANSITIONS.iter().copied().collect();
        others.retain(|transition| !lost.contains(transition));
        let seeds = Seeds { first: proof.seed, count: MOST_HISTORIES, setting: Setting::Plain };
        let has_others = |reached: &Reached| missing(reached).iter().all(|one| !others.contains(one));
        let (reached, played) = reach_without(seeds, never, has_others);
        let missed = missing(&reached);
        println!("without {}: {played} histories never reach {missed:?}", never.as_str());
        proof.control(format!("without {}", never.as_str()), missed == lost);
    }
}

/// With what earlier runs reached.
pub(crate) fn judge(proof: &mut Proof, here: &Reached, played: u64) {
    let (mut reached, mut all) = (here.clone(), played);
    for line in proof.earlier("cells") {
        all += line["count"].as_u64().unwrap_or(0);
        for (transition, fault) in cells() {
            if let Some(count) = line["cells"][transition][fault.as_str()].as_u64() {
                *reached.entry((transition.to_owned(), fault)).or_default() += count;
            }
        }
    }
    report(&reached);
    let mut noted = json!({});
    for ((transition, fault), count) in here {
        noted[transition][fault.as_str()] = json!(count);
    }
    proof.note("cells", noted);
    if all >= ENOUGH {
        missing(&reached).iter().for_each(|one| proof.violation(format!("{all} histories never reach: {one}")));
    }
    if all >= MANY {
        for (transition, fault) in cells() {
            let count = reached.get(&(transition.to_owned(), fault)).copied().unwrap_or(0);
            if count < WANTED {
                proof.violation(format!("{all} histories reach {transition} with {} {count} times", fault.as_str()));
            }
        }
    }
}

pub(crate) fn add(all: &mut Reached, outcome: &Outcome) {
    for (cell, count) in &outcome.coverage {
        *all.entry(cell.clone()).or_default() += count;
    }
}

/// What histories without one kind of operation reach until it is enough, and how many they were.
fn reach_without(seeds: Seeds<'_>, never: Kind, is_enough: impl Fn(&Reached) -> bool + Sync) -> (Reached, u64) {
    let all = Mutex::new(Reached::new());
    let played = play_many(
        seeds,
        || (),
        async |template, seed| play(template, &generate_without(seed, OPERATIONS, Some(never)), true).await,
        |_, outcome| {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            add(&mut all, outcome);
            is_enough(&all)
        },
    );
    (all.into_inner().unwrap_or_else(PoisonError::into_inner), played)
}

fn missing(reached: &Reached) -> Vec<&'static str> {
    let seen: BTreeSet<&str> = reached.keys().map(|(transition, _)| transition.as_str()).collect();
    TRANSITIONS.iter().copied().filter(|transition| !seen.contains(transition)).collect()
}

/// Each transition with how often it was reached by what had gone wrong.
fn report(reached: &Reached) {
    let mut by_transition = BTreeMap::<&str, BTreeMap<&str, u64>>::new();
    for ((transition, fault), count) in reached {
        by_transition.entry(transition).or_default().insert(fault.as_str(), *count);
    }
    for (transition, faults) in &by_transition {
        let cells: Vec<String> = faults.iter().map(|(fault, count)| format!("{fault} {count}")).collect();
        println!("{transition}: {}", cells.join(", "));
    }
    let wanted: Vec<_> = cells().collect();
    let never = wanted.iter().filter(|(transition, fault)| !reached.contains_key(&((*transition).to_owned(), *fault)));
    let never: Vec<String> = never.map(|(transition, fault)| format!("{transition} with {}", fault.as_str())).collect();
    println!("of {} cells {} were never reached: {}", wanted.len(), never.len(), never.join(", "));
}
