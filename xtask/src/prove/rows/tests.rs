//! What holds of every row.

use std::collections::BTreeSet;

use super::*;
use crate::prove::row::{ALONE, PROMISED};
use crate::prove::table::NOT_BUILT;

#[test]
fn every_row_has_a_name_of_its_own_and_grows_with_the_tiers() {
    let mut names = BTreeSet::new();
    for row in all() {
        // What is asked for may be another number for each database.
        for database in if row.databases.is_empty() { &[""] } else { row.databases } {
            assert!(names.insert((row.id, *database)), "{} stands twice", row.id);
        }
        let [gate, nightly, release] = row.counts;
        assert!(gate <= nightly && nightly <= release && 0 < release, "{}", row.id);
        assert!(0 < gate || !row.is_gate_step, "{}", row.id);
        assert!(row.least() <= gate, "{}: the gate runs fewer than it may", row.id);
    }
    for id in PROMISED.iter().map(|(id, _)| id).chain(ALONE) {
        assert!(all().any(|row| row.id == *id), "no row is called {id}");
    }
    for (id, reason) in NOT_BUILT {
        assert!(all().all(|row| row.id != *id), "{id} is built");
        assert!(!reason.is_empty(), "{id}");
    }
}

/// A number that is too small would leave the last of them out.
#[test]
fn every_defect_that_the_simulation_can_see_is_asked_for() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let (defects, program) = (text("crates/domain/src/planted.rs"), text("crates/sim/src/main.rs"));
    let (_, list) = defects.split_once("\ndefects! {").expect("the list of defects");
    let (list, _) = list.split_once("\n}").expect("its end");
    let all = list.lines().filter(|line| line.contains(" => \"")).count();
    let (_, left_out) = program.split_once("const NOT_SIMULATED: &[Defect] = &[").expect("what is left out");
    let (left_out, _) = left_out.split_once("];").expect("its end");
    let left_out = left_out.lines().filter(|line| line.contains("Defect::")).count();
    assert_eq!(DEFECTS, (all - left_out) as u64);
}
