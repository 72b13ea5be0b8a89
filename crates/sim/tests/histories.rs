//! Histories that once failed, each as small as it could be made, and a few new ones.

use std::fs;
use std::path::Path;

use sim::history::{note_panics, play};
use sim::operation::{Operation, generate};
use sim::world::Template;

fn with_template(run: impl AsyncFnOnce(&Template)) {
    note_panics();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async { run(&Template::build().await).await });
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
