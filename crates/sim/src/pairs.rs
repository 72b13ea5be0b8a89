//! A5: what one organization sees is the same alone and beside a hostile one, and what live sees the same with test beside it.

use std::time::{Duration, Instant};

use domain::planted::Defect;
use proof::{Proof, Tier};
use sim::crowd::{Seeds, Setting, play_many};
use sim::history::{Sides, play_apart};
use sim::operation::generate;
use sim::world::Template;

use crate::search::{Violations, find};

const OPERATIONS: usize = 100;
const GATE_COUNT: u64 = 250;
const GATE_BUDGET: Duration = Duration::from_secs(60);
/// Each lets something through between organizations or modes. One that is not found in so many pairs is missed.
const CONTROLS: [Defect; 6] = [
    Defect::OrganizationIgnored,
    Defect::ChangeOfAllOrganizations,
    Defect::ListOfAllOrganizations,
    Defect::ListOfAllModes,
    Defect::KeysOfAllModes,
    Defect::NumberOfOtherMode,
];
const MOST_PAIRS: u64 = 100;

/// Where the two differ, if they do. What goes wrong alone as well is a fault, but none that a control may be caught by.
async fn play_pair(template: &Template, seed: u64, counts_alone: bool) -> Result<(), String> {
    let sides = match seed.is_multiple_of(2) {
        true => Sides { ours: vec![0, 1], theirs: vec![2, 3] },
        false => Sides { ours: vec![1], theirs: vec![0] },
    };
    let (ours, theirs) = (generate(seed, OPERATIONS), generate(!seed, 2 * OPERATIONS));
    let (alone, of_alone) = play_apart(template, &sides, &ours, None).await;
    let (beside, of_beside) = play_apart(template, &sides, &ours, Some(&theirs)).await;
    let both = alone.iter().zip(&beside);
    if let Some((place, (alone, beside))) = both.enumerate().find(|(_, (alone, beside))| alone != beside) {
        return Err(format!("{sides:?} see at place {place} {alone:?} alone and {beside:?} beside the others"));
    }
    if of_alone.is_ok() && of_beside.is_ok() && alone.len() != beside.len() {
        return Err(format!("{sides:?} see {} answers alone and {} beside the others", alone.len(), beside.len()));
    }
    match of_alone {
        // Nobody else is needed for that.
        Err(_) if !counts_alone => Ok(()),
        of_alone => of_alone.and(of_beside),
    }
}

#[expect(clippy::disallowed_methods, reason = "the gate has so much time and no more")]
pub(crate) fn prove() {
    let mut proof = Proof::begin("A5", None, GATE_COUNT);
    for control in CONTROLS {
        let seeds = Seeds { first: proof.seed, count: MOST_PAIRS, setting: Setting::Plain };
        let play = async |template: &Template, seed: u64| play_pair(template, seed, false).await;
        let found = find(control, seeds, play, |_, compared| compared.as_ref().err().cloned());
        proof.control(control.as_str(), found.is_some());
    }
    let (begun, violations) = (Instant::now(), Violations::default());
    let is_gate = proof.tier == Tier::Gate;
    let seeds = Seeds { first: proof.seed, count: proof.count, setting: Setting::Plain };
    let reached = play_many(
        seeds,
        || (),
        async |template, seed| play_pair(template, seed, true).await,
        |seed, compared| {
            if let Err(what) = compared {
                violations.add(format!("seed {seed}: {what}"));
            }
            is_gate && begun.elapsed() > GATE_BUDGET
        },
    );
    println!("{reached} pairs of histories, {:.1} a second", reached as f64 / begun.elapsed().as_secs_f64());
    violations.tell(&mut proof);
    proof.finish(reached);
}
