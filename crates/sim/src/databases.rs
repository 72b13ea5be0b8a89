//! A4: the same history on SQLite and on PostgreSQL is told the same, byte for byte.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::planted::{Defect, plant};
use proof::{Proof, Tier};
use sim::crowd::{Seeds, Setting, play_many};
use sim::history::play_afresh;
use sim::operation::{Fault, Operation, generate};
use sim::world::Template;

const OPERATIONS: usize = 150;
const GATE_COUNT: u64 = 100;
const GATE_BUDGET: Duration = Duration::from_secs(90);
/// After so many, each core begins a new database: what they leave behind, keys above all, makes each dearer than the one before.
const KEPT_TOGETHER: u64 = 500;
const CONTROL: Defect = Defect::DueLateOnPostgres;
/// The control is missed if it is not found in so many.
const MOST_HISTORIES: u64 = 100;

/// A history without what only one of the two can simulate: a storage that fails, and a process that dies in a call.
pub(crate) fn history(seed: u64) -> Vec<Operation> {
    let mut operations = generate(seed, OPERATIONS);
    for operation in &mut operations {
        operation.fault = match operation.fault {
            fault if fault.is_of_storage() => Fault::None,
            Fault::CallLost | Fault::CrashBeforeCall => Fault::CallLost,
            Fault::AnswerLost | Fault::CrashInCall => Fault::AnswerLost,
            fault => fault,
        };
    }
    operations
}

/// Where the two differ, if they do. `run` makes the organizations of this run others than those of the next.
async fn compare(template: &Template, seed: u64, run: u64) -> Result<(), String> {
    let operations = history(seed);
    let (sqlite, of_sqlite) = play_afresh(template, &operations, false, seed ^ run).await;
    let (postgres, of_postgres) = play_afresh(template, &operations, true, seed ^ run).await;
    let both = sqlite.iter().zip(&postgres);
    if let Some((place, (sqlite, postgres))) = both.enumerate().find(|(_, (sqlite, postgres))| sqlite != postgres) {
        return Err(format!("at place {place} SQLite tells {sqlite:?} and PostgreSQL {postgres:?}"));
    }
    of_sqlite.map_err(|what| format!("SQLite: {what}"))?;
    of_postgres.map_err(|what| format!("PostgreSQL: {what}"))?;
    match sqlite.len() == postgres.len() {
        true => Ok(()),
        false => Err(format!("SQLite tells {} times and PostgreSQL {}", sqlite.len(), postgres.len())),
    }
}

#[expect(clippy::disallowed_methods, reason = "the gate has so much time and no more")]
pub(crate) fn prove() {
    let mut proof = Proof::begin("A4", Some("postgres"), GATE_COUNT);
    let Ok(url) = std::env::var("DALASI_TEST_POSTGRES_URL") else {
        return proof.not_run("there is no PostgreSQL");
    };
    let setting = Setting::Beside(&url);
    let found = Mutex::new(Vec::new());
    let note = |seed: u64, compared: &Result<(), String>| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(compared.as_ref().err().map(|what| format!("seed {seed}: {what}")));
        found.len()
    };
    let take = || std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));

    let seeds = Seeds { first: proof.seed, count: MOST_HISTORIES, setting };
    let play = async |template: &Template, seed: u64| compare(template, seed, 1 << 63).await;
    let played = play_many(seeds, || plant(Some(CONTROL)), play, |seed, compared| note(seed, compared) > 0);
    plant(None);
    let caught = take();
    let what: String = caught.first().map_or("NOT FOUND", String::as_str).chars().take(400).collect();
    println!("{}: after {played} histories: {what}", CONTROL.as_str());
    proof.control(CONTROL.as_str(), !caught.is_empty());

    let begun = Instant::now();
    let is_over = || proof.tier == Tier::Gate && begun.elapsed() > GATE_BUDGET;
    let play = async |template: &Template, seed: u64| compare(template, seed, 0).await;
    let (mut reached, enough) = (0, AtomicBool::new(false));
    while reached < proof.count && !enough.load(Ordering::Relaxed) {
        let seeds = Seeds { first: proof.seed + reached, count: KEPT_TOGETHER.min(proof.count - reached), setting };
        reached += play_many(
            seeds,
            || (),
            play,
            |seed, compared| {
                let is_enough = note(seed, compared) >= 20 || is_over();
                enough.fetch_or(is_enough, Ordering::Relaxed);
                is_enough
            },
        );
    }
    println!("{reached} histories on both, {:.2} a second", reached as f64 / begun.elapsed().as_secs_f64());
    take().into_iter().for_each(|violation| proof.violation(violation));
    proof.finish(reached);
}
