//! Histories that once failed, each as small as it could be made, and a few new ones.

use std::fs;
use std::path::Path;

use sim::crowd::{self, Setting};
use sim::history::{Ending, Sides, note_panics, play, play_apart, play_to};
use sim::operation::{Operation, generate};
use sim::world::Template;

fn with_template(run: impl AsyncFnOnce(&Template)) {
    note_panics();
    crowd::with_template(Setting::Plain, run);
}

#[test]
fn what_failed_once_never_fails_again() {
    with_template(async |template| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/histories");
        let mut files: Vec<_> =
            fs::read_dir(folder).expect("a folder of histories").map(|file| file.expect("a file").path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "history"));
        files.sort();
        for file in files {
            let text = fs::read_to_string(&file).expect("a readable history");
            let operations: Vec<Operation> = text.lines().filter_map(Operation::parse).collect();
            let violation = play(template, &operations, false).await.violation;
            assert_eq!(violation, None, "{}", file.display());
        }
    });
}

#[test]
fn a_seed_is_the_same_history_for_ever() {
    with_template(async |template| {
        for seed in 1..=5 {
            let operations = generate(seed, 120);
            let (once, twice) = (play(template, &operations, false).await, play(template, &operations, false).await);
            assert_eq!(once.violation, None, "seed {seed}");
            assert_eq!(once.hash, twice.hash, "seed {seed}");
        }
    });
}

#[test]
fn what_went_wrong_heals() {
    note_panics();
    crowd::with_template(Setting::SendingMail, async |template| {
        for seed in 1..=5 {
            let violation = play_to(template, &generate(seed, 80), false, Ending::Healed(seed)).await.violation;
            assert_eq!(violation, None, "seed {seed}");
        }
    });
}

#[test]
fn others_are_not_seen() {
    with_template(async |template| {
        let organizations = Sides { ours: vec![0, 1], theirs: vec![2, 3] };
        let modes = Sides { ours: vec![1], theirs: vec![0] };
        for (seed, sides) in [(1, &organizations), (2, &modes), (3, &organizations)] {
            let (ours, theirs) = (generate(seed, 60), generate(!seed, 120));
            let alone = play_apart(template, sides, &ours, None).await;
            assert!(alone.0.len() > 30, "seed {seed}: little was seen, {}", alone.0.len());
            assert_eq!(alone, play_apart(template, sides, &ours, Some(&theirs)).await, "seed {seed}");
            assert_eq!(alone.1, Ok(()), "seed {seed}");
        }
    });
}
