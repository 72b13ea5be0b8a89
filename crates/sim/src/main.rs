//! `dalasi-sim`: histories by their seeds. Without words it is the rows A1 and A2 of the proof programme, and a word for each of
//! their neighbours.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a program for whoever proves something")]

#[cfg(feature = "planted")]
mod databases;
#[cfg(feature = "planted")]
mod hostile;
#[cfg(feature = "planted")]
mod lists;
#[cfg(feature = "planted")]
mod liveness;
#[cfg(feature = "planted")]
mod pairs;
#[cfg(feature = "planted")]
mod power;
mod search;
mod sometimes;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[cfg(feature = "planted")]
use domain::planted::Defect;
use proof::{Proof, Tier};
use sim::crowd::{Seeds, Setting, play_many, with_template};
use sim::history::{Outcome, note_panics, play};
use sim::operation::{Operation, generate};
use sim::shrink::shrink;
use sim::world::Template;
use tracing_subscriber::EnvFilter;

use crate::search::Violations;

/// As in the binary that is simulated.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const OPERATIONS: usize = 250;
const GATE_COUNT: u64 = 1_000;
const GATE_BUDGET: Duration = Duration::from_secs(120);
/// One seed in so many is played twice.
const TWICE: u64 = 100;

/// A defect that is not found in so many histories is missed. The rarest, two payments that come when their invoice is cancelled,
/// shows in one of some thousands, and once not in 12,000.
#[cfg(feature = "planted")]
const MOST_HISTORIES: u64 = 60_000;
/// What the gate looks for, and in how many histories.
#[cfg(feature = "planted")]
const GATE_DEFECTS: u64 = 10;
#[cfg(feature = "planted")]
const GATE_HISTORIES: u64 = 2_000;
/// The median of them shows in fewer, which so many or more of them tell.
#[cfg(feature = "planted")]
const TOO_MANY: u64 = 2_000;
#[cfg(feature = "planted")]
const TELLING: usize = 30;
/// Of the planted defects those that show in memory, on a disk that keeps what it is told; the others are those of rows that start
/// the real server, and B4's, A4's and A12's.
#[cfg(feature = "planted")]
const NOT_SIMULATED: &[Defect] = &[
    Defect::SynchronousNormal,
    Defect::SynchronousOff,
    Defect::DueLateOnPostgres,
    Defect::FilterDropped,
    Defect::RequestKeepsMemory,
    Defect::VersionUnguarded,
    Defect::StaleRead,
    Defect::KeyOutsideTransaction,
    Defect::LivemodeTaken,
    Defect::RequestLogged,
    Defect::AnswerUncapped,
    Defect::ForwardedBelieved,
    Defect::ListenerDroppedFirst,
    Defect::RegistrationCheckOnly,
    Defect::LatchStaysReadOnly,
    Defect::BodyUncapped,
    Defect::NoHeaderTimer,
    Defect::CursorBreaks,
    Defect::PageUnescaped,
    Defect::ForeignFormTaken,
    Defect::ChecksumIgnored,
];

fn main() {
    note_panics();
    // What the service logs is nobody's concern while it is as its model says; whoever looks for a reason sets DALASI_LOG.
    if let Ok(filter) = EnvFilter::try_from_env("DALASI_LOG") {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
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
        ["liveness"] => liveness::prove(),
        #[cfg(feature = "planted")]
        ["hostile"] => hostile::prove(),
        #[cfg(feature = "planted")]
        ["pairs"] => pairs::prove(),
        #[cfg(feature = "planted")]
        ["databases"] => databases::prove(),
        #[cfg(feature = "planted")]
        ["power"] => power::prove(),
        #[cfg(feature = "planted")]
        ["lists", database] => lists::prove(database),
        #[cfg(feature = "planted")]
        ["defects", most] => defects(&[], number(most)),
        #[cfg(feature = "planted")]
        ["defects", most, ref names @ ..] => defects(names, number(most)),
        _ => println!(
            "dalasi-sim [seed N | shrink N | replay FILE | liveness | hostile | pairs | databases | power | lists DATABASE | planted | defects MOST_SEEDS [NAME …]]"
        ),
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// A whole history of a seed. One in so many is played twice.
async fn play_seed(template: &Template, seed: u64) -> Outcome {
    let outcome = play(template, &generate(seed, OPERATIONS), true).await;
    if seed.is_multiple_of(TWICE) {
        let again = play(template, &generate(seed, OPERATIONS), false).await;
        assert_eq!(outcome.hash, again.hash, "seed {seed} is another history the second time");
    }
    outcome
}

/// A1: each history ends with all that is owed. A2: together they reach every transition.
#[expect(clippy::disallowed_methods, reason = "the gate has so much time and no more")]
fn prove() {
    let mut proof = Proof::begin("A1", None, GATE_COUNT);
    let mut reaching = Proof::begin("A2", None, GATE_COUNT);
    sometimes::controls(&mut reaching);
    let begun = Instant::now();
    let (violations, coverage) = (Violations::default(), Mutex::new(sometimes::Reached::new()));
    let (is_gate, least, looked_at) = (proof.tier == Tier::Gate, proof.least.max(reaching.least), AtomicU64::new(0));
    let played = play_many(
        Seeds { first: proof.seed, count: proof.count, setting: Setting::Plain },
        || (),
        play_seed,
        |seed, outcome| {
            violations.note(seed, outcome);
            sometimes::add(&mut coverage.lock().unwrap_or_else(PoisonError::into_inner), outcome);
            let is_telling = looked_at.fetch_add(1, Ordering::Relaxed) + 1 >= least;
            is_gate && is_telling && begun.elapsed() > GATE_BUDGET
        },
    );
    let seconds = begun.elapsed().as_secs_f64();
    println!("{played} histories of {OPERATIONS} operations, {:.1} a second", played as f64 / seconds);
    sometimes::judge(&mut reaching, &coverage.into_inner().unwrap_or_else(PoisonError::into_inner), played);
    violations.tell(&mut proof);
    let faults: Vec<String> = [proof.end(played), reaching.end(played)].into_iter().filter_map(Result::err).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn show(seed: u64) {
    let operations = generate(seed, OPERATIONS);
    let outcome = with_template(Setting::Plain, async |template| play(template, &operations, false).await);
    match outcome.violation {
        None => println!("seed {seed}: right, trace {:016x}", outcome.hash),
        Some(violation) => {
            println!("seed {seed}, operation {} of {}: {}", violation.step, operations.len(), violation.what);
        }
    }
}

fn smallest(seed: u64) {
    let (operations, violation) =
        with_template(Setting::Plain, async |template| shrink(template, &generate(seed, OPERATIONS)).await);
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
    let outcome = with_template(Setting::Plain, async |template| play(template, &operations, false).await);
    println!("{}: {:?}", file.display(), outcome.violation);
}

/// A1's own controls: planted defects, in new histories. The gate takes turns from commit to commit, and gives up soon on those
/// that are rare; the longer tiers take what is left, and all the time it needs.
#[cfg(feature = "planted")]
fn planted() {
    let all: Vec<Defect> = Defect::ALL.iter().copied().filter(|one| !NOT_SIMULATED.contains(one)).collect();
    let mut proof = Proof::begin("A1.planted", None, GATE_DEFECTS);
    let wanted = usize::try_from(proof.count).expect("some dozen");
    assert!(wanted <= all.len(), "the row asks for {wanted} defects, and there are {}", all.len());
    let is_gate = proof.tier == Tier::Gate;
    let caught = proof.earlier("controls_caught");
    let is_caught = |one: &Defect| {
        caught.iter().flat_map(|line| line["controls_caught"].as_array()).flatten().any(|name| name == one.as_str())
    };
    let turn = usize::try_from(proof.seed % all.len() as u64).expect("some dozen");
    let chosen = all[turn..].iter().chain(&all[..turn]).filter(|one| !is_caught(one)).take(wanted);
    let most = if is_gate { GATE_HISTORIES } else { MOST_HISTORIES };
    let mut histories = Vec::new();
    for defect in chosen {
        let found = find(*defect, proof.seed, most);
        if found.is_some() || !is_gate {
            proof.control(defect.as_str(), found.is_some());
        }
        histories.extend(found);
    }
    histories.sort_unstable();
    let median = histories.get(histories.len() / 2).copied().unwrap_or_default();
    println!("the median was found in {median} histories");
    if histories.len() >= TELLING && median >= TOO_MANY {
        proof.violation(format!("the median of the defects takes {median} histories to be found"));
    }
    proof.finish(histories.len() as u64);
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
    search::find(defect, Seeds { first, count: most, setting: Setting::Plain }, play_seed, search::violation)
}
