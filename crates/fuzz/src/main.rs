//! `dalasi-fuzz`: row D6 of the proof programme. The gate runs what is stored; the longer tiers look for more.

#![expect(clippy::print_stdout, reason = "a program for whoever proves something")]

use fuzz::campaign::{Campaign, Turn};
use fuzz::{CONTROLS, TARGETS, Target, find, replay};
use proof::{Proof, Tier};

/// Of a target in a campaign.
const TURN_S: u64 = 15;
/// A control that is not found in so long is missed.
const CONTROL_S: u64 = 60;
const GATE_COUNT: u64 = 500;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        [] => prove(),
        ["look", seconds, ref names @ ..] => look(seconds, names),
        ["keep", ref names @ ..] => keep(names),
        _ => {
            println!("dalasi-fuzz [look SECONDS [TARGET …] | keep [TARGET …]]");
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            println!("The targets: {}", names.join(", "));
            Ok(())
        }
    };
    if let Err(fault) = done {
        println!("{fault}");
        std::process::exit(1);
    }
}

fn prove() -> Result<(), String> {
    let mut proof = Proof::begin("D6", None, GATE_COUNT);
    if proof.tier == Tier::Gate {
        let replayed = replay::replay();
        for (name, is_seen) in replayed.controls {
            proof.control(name, is_seen);
        }
        for found in replayed.found {
            proof.violation(found);
        }
        proof.finish(replayed.inputs);
        return Ok(());
    }
    let campaign = Campaign::build()?;
    for control in CONTROLS {
        proof.control(control.name, !campaign.turn(control, CONTROL_S, proof.seed)?.found.is_empty());
    }
    let (mut executions, mut place) = (0, proof.seed);
    while executions < proof.count {
        let target = &TARGETS[usize::try_from(place).unwrap_or(0) % TARGETS.len()];
        let turn = campaign.turn(target, TURN_S, place)?;
        executions += turn.executions;
        for found in turn.found {
            proof.violation(found);
        }
        place += 1;
    }
    proof.finish(executions);
    Ok(())
}

fn chosen(names: &[&str]) -> Result<Vec<&'static Target>, String> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    names.iter().map(|name| find(name).ok_or_else(|| format!("no target is called {name:?}"))).collect()
}

/// So many seconds for each.
fn look(seconds: &str, names: &[&str]) -> Result<(), String> {
    let seconds = seconds.parse().map_err(|_| format!("{seconds:?} is no number of seconds"))?;
    let targets = chosen(names)?;
    let campaign = Campaign::build()?;
    for target in targets {
        let Turn { executions, found } = campaign.turn(target, seconds, 0)?;
        println!("{}: {executions} executions", target.name);
        for found in found {
            println!("  {found}");
        }
    }
    Ok(())
}

/// What was found is stored with the code.
fn keep(names: &[&str]) -> Result<(), String> {
    let targets = chosen(names)?;
    let campaign = Campaign::build()?;
    for target in targets {
        println!("{}: {} inputs", target.name, campaign.keep(target)?);
    }
    Ok(())
}
