//! `dalasi-sim`: histories by their seeds. Without words it is the rows A1 to A3 of the proof programme.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a program for whoever proves something")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[cfg(feature = "planted")]
use domain::planted::{Defect, plant};
use proof::{Proof, Tier};
use sim::history::{Outcome, note_panics, play};
use sim::operation::{Fault, Operation, generate};
use sim::shrink::shrink;
use sim::world::Template;

const OPERATIONS: usize = 250;
const GATE_COUNT: u64 = 1_000;
const GATE_BUDGET: Duration = Duration::from_secs(120);
/// One seed in so many is played twice.
const TWICE: u64 = 100;

/// A defect that is not found in so many histories is missed.
#[cfg(feature = "planted")]
const MOST_HISTORIES: u64 = 2_000;
/// Of the planted defects those that show in a simulation whose disk keeps what it is told; the others are B4's.
#[cfg(feature = "planted")]
const NOT_SIMULATED: [Defect; 2] = [Defect::SynchronousNormal, Defect::SynchronousOff];

fn main() {
    note_panics();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => prove(),
        ["seed", seed] => show(number(seed)),
        ["shrink", seed] => smallest(number(seed)),
        ["replay", file] => replay(Path::new(file)),
        #[cfg(feature = "planted")]
        ["planted"] => planted(),
        #[cfg(feature = "planted")]
        ["defects", most] => defects(&[], number(most)),
        #[cfg(feature = "planted")]
        ["defects", most, ref names @ ..] => defects(names, number(most)),
        _ => println!("dalasi-sim [seed N | shrink N | replay FILE | planted | defects MOST_SEEDS [NAME …]]"),
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// A thread's own world.
fn with_template<T>(run: impl AsyncFnOnce(&Template) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async { run(&Template::build().await).await })
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Plays seeds from `first` on, on all cores, until `look` has seen enough; how many were played. `prepare` is called when the
/// world stands: what it plants should do harm to histories, not to their beginning.
fn play_many(first: u64, count: u64, prepare: impl FnOnce(), look: impl Fn(u64, &Outcome) -> bool + Sync) -> u64 {
    let (next, enough, played) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
    let (built, prepared) = (Barrier::new(threads() + 1), Barrier::new(threads() + 1));
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                with_template(async |template| {
                    built.wait();
                    prepared.wait();
                    while !enough.load(Ordering::Relaxed) {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        if place >= count {
                            break;
                        }
                        let seed = first + place;
                        let outcome = play(template, &generate(seed, OPERATIONS), true).await;
                        if place % TWICE == 0 {
                            let again = play(template, &generate(seed, OPERATIONS), false).await;
                            assert_eq!(outcome.hash, again.hash, "seed {seed} is another history the second time");
                        }
                        played.fetch_add(1, Ordering::Relaxed);
                        if look(seed, &outcome) {
                            enough.store(true, Ordering::Relaxed);
                        }
                    }
                });
            });
        }
        built.wait();
        prepare();
        prepared.wait();
    });
    played.into_inner()
}

/// A1 and A3 in one: each history ends with all that is owed. A2 counts what they reached.
#[expect(clippy::disallowed_methods, reason = "the gate has so much time and no more")]
fn prove() {
    let mut proof = Proof::begin("A1", None, GATE_COUNT);
    let begun = Instant::now();
    let (found, coverage) = (Mutex::new(Vec::new()), Mutex::new(BTreeMap::<(String, Fault), u64>::new()));
    let is_gate = proof.tier == Tier::Gate;
    let reached = play_many(
        proof.seed,
        proof.count,
        || (),
        |seed, outcome| {
            if let Some(violation) = &outcome.violation {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.push(format!("seed {seed}, operation {}: {}", violation.step, violation.what));
            }
            let mut all = coverage.lock().unwrap_or_else(PoisonError::into_inner);
            for (cell, count) in &outcome.coverage {
                *all.entry(cell.clone()).or_default() += count;
            }
            is_gate && begun.elapsed() > GATE_BUDGET
        },
    );
    let seconds = begun.elapsed().as_secs_f64();
    println!("{reached} histories of {OPERATIONS} operations, {:.1} a second", reached as f64 / seconds);
    let coverage = coverage.into_inner().unwrap_or_else(PoisonError::into_inner);
    report_coverage(&coverage);
    for violation in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        proof.violation(violation);
    }
    proof.finish(reached);
}

/// A2: each transition by each kind of fault.
fn report_coverage(coverage: &BTreeMap<(String, Fault), u64>) {
    let mut by_transition = BTreeMap::<&str, BTreeMap<&str, u64>>::new();
    for ((transition, fault), count) in coverage {
        by_transition.entry(transition).or_default().insert(fault.as_str(), *count);
    }
    for (transition, faults) in &by_transition {
        let cells: Vec<String> = faults.iter().map(|(fault, count)| format!("{fault} {count}")).collect();
        println!("{transition}: {}", cells.join(", "));
    }
    for transition in sim::history::TRANSITIONS.iter().filter(|known| !by_transition.contains_key(*known)) {
        println!("never reached: {transition}");
    }
}

fn show(seed: u64) {
    let operations = generate(seed, OPERATIONS);
    let outcome = with_template(async |template| play(template, &operations, false).await);
    match outcome.violation {
        None => println!("seed {seed}: right, trace {:016x}", outcome.hash),
        Some(violation) => {
            println!("seed {seed}, operation {} of {}: {}", violation.step, operations.len(), violation.what);
        }
    }
}

fn smallest(seed: u64) {
    let (operations, violation) = with_template(async |template| shrink(template, &generate(seed, OPERATIONS)).await);
    match violation {
        None => println!("# seed {seed} is right"),
        Some(violation) => {
            println!("# {}", violation.what.replace('\n', " "));
            operations.iter().for_each(|operation| println!("{operation}"));
        }
    }
}

fn replay(file: &Path) {
    let text = std::fs::read_to_string(file).expect("a readable history");
    let operations: Vec<Operation> = text.lines().filter_map(Operation::parse).collect();
    let outcome = with_template(async |template| play(template, &operations, false).await);
    println!("{}: {:?}", file.display(), outcome.violation);
}

/// A1's own controls: each planted defect, in new histories.
#[cfg(feature = "planted")]
fn planted() {
    let all: Vec<Defect> = Defect::ALL.iter().copied().filter(|one| !NOT_SIMULATED.contains(one)).collect();
    let mut proof = Proof::begin("A1.planted", None, all.len() as u64);
    let wanted = usize::try_from(proof.count).expect("some dozen");
    assert!(wanted <= all.len(), "the row asks for {wanted} defects, and there are {}", all.len());
    let mut histories = Vec::new();
    for defect in &all[..wanted] {
        let found = find(*defect, proof.seed, MOST_HISTORIES);
        proof.control(defect.as_str(), found.is_some());
        histories.extend(found);
    }
    histories.sort_unstable();
    println!("the median was found in {} histories", histories.get(histories.len() / 2).copied().unwrap_or_default());
    proof.finish(wanted as u64);
}

/// Some defects by name, or all of them, in the histories of seeds 1 to `most`.
#[cfg(feature = "planted")]
fn defects(names: &[&str], most: u64) {
    for defect in Defect::ALL.iter().filter(|one| names.is_empty() || names.contains(&one.as_str())) {
        find(*defect, 1, most);
    }
}

/// After how many histories the defect was found, if it was.
#[cfg(feature = "planted")]
fn find(defect: Defect, first: u64, most: u64) -> Option<u64> {
    let found = Mutex::new(None);
    let prepare = || plant(Some(defect));
    let played = play_many(first, most, prepare, |_, outcome| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(violation), None) = (&outcome.violation, found.as_ref()) {
            *found = Some(violation.what.clone());
        }
        found.is_some()
    });
    plant(None);
    match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(what) => {
            let what: String = what.chars().take(140).collect();
            println!("{}: found in {played} histories ({})", defect.as_str(), what.replace('\n', " "));
            Some(played)
        }
        None => {
            println!("{}: NOT FOUND in {most} histories", defect.as_str());
            None
        }
    }
}
