//! A12: every page of every list is that of a naive scan, whatever is asked for and whatever happens between two pages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::planted::{Defect, plant};
use proof::{Proof, Tier};
use sim::crowd::{Seeds, Setting, play_many};
use sim::history::play_lists;
use sim::world::Template;

use crate::databases::history;

const GATE_COUNT: u64 = 10_000;
const GATE_BUDGET: Duration = Duration::from_secs(60);
const CONTROLS: [Defect; 2] = [Defect::FilterDropped, Defect::ListOfAllModes];
/// A control is missed if it is not found in so many histories.
const MOST_HISTORIES: u64 = 50;

#[expect(clippy::disallowed_methods, reason = "the gate has so much time and no more")]
pub(crate) fn prove(database: &str) {
    let mut proof = Proof::begin("A12", Some(database), GATE_COUNT);
    let url = std::env::var("DALASI_TEST_POSTGRES_URL");
    let (is_kept, setting) = match (database, &url) {
        ("sqlite", _) => (false, Setting::Plain),
        (_, Ok(url)) => (true, Setting::Beside(url)),
        (_, Err(_)) => return proof.not_run("there is no PostgreSQL"),
    };
    let found = Mutex::new(Vec::new());
    let pages = AtomicU64::new(0);
    let note = |seed: u64, compared: &Result<u64, String>| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        match compared {
            Ok(more) => drop(pages.fetch_add(*more, Ordering::Relaxed)),
            Err(what) => found.push(format!("seed {seed}: {what}")),
        }
        found.len()
    };
    let take = || std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));

    for (place, control) in CONTROLS.into_iter().enumerate() {
        let seeds = Seeds { first: proof.seed, count: MOST_HISTORIES, setting };
        // A database that is kept has no place for the same organizations twice.
        let run = (place as u64 + 1) << 60;
        let play =
            async |template: &Template, seed: u64| play_lists(template, &history(seed), is_kept, seed ^ run).await;
        let played = play_many(seeds, || plant(Some(control)), play, |seed, compared| note(seed, compared) > 0);
        plant(None);
        let caught = take();
        let what: String = caught.first().map_or("NOT FOUND", String::as_str).chars().take(300).collect();
        println!("{}: after {played} histories: {what}", control.as_str());
        proof.control(control.as_str(), !caught.is_empty());
    }

    pages.store(0, Ordering::Relaxed);
    let begun = Instant::now();
    let is_over = || proof.tier == Tier::Gate && begun.elapsed() > GATE_BUDGET;
    let seeds = Seeds { first: proof.seed, count: u64::MAX >> 1, setting };
    let play = async |template: &Template, seed: u64| play_lists(template, &history(seed), is_kept, seed).await;
    let histories = play_many(
        seeds,
        || (),
        play,
        |seed, compared| note(seed, compared) >= 20 || pages.load(Ordering::Relaxed) >= proof.count || is_over(),
    );
    let reached = pages.load(Ordering::Relaxed).min(proof.count);
    println!(
        "{reached} pages of {histories} histories, {:.0} a second",
        reached as f64 / begun.elapsed().as_secs_f64()
    );
    take().into_iter().for_each(|violation| proof.violation(violation));
    proof.finish(reached);
}
