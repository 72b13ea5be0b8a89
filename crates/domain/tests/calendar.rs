//! Times as they are read and printed, against a calendar that shares nothing with ours: Python's.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use domain::Timestamp;
use domain::number::Series;
use proof::Proof;

const GATE_CASES: u64 = 10_000;
// A 31st, which the wrong months leave out, is one case in some 400: with this many, one is always among them.
const CONTROL_CASES: u64 = 20_000;
const MOST_TOLD: usize = 10;

#[test]
fn an_independent_calendar_agrees() {
    let mut proof = Proof::begin("A11", None, GATE_CASES);
    if let Err(reason) = differences(0, 1, None) {
        return proof.not_run(&reason);
    }
    for wrong in ["summer", "months"] {
        let found = differences(proof.seed, CONTROL_CASES, Some(wrong)).expect("it ran a moment ago");
        proof.control(wrong, !found.is_empty());
    }
    let found = differences(proof.seed, proof.count, None).expect("it ran a moment ago");
    found.into_iter().for_each(|difference| proof.violation(difference));
    let reached = proof.count;
    proof.finish(reached);
}

/// Where ours and the other one differ; an error where there is no other one.
fn differences(seed: u64, count: u64, wrong: Option<&str>) -> Result<Vec<String>, String> {
    let oracle = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/calendar_oracle.py");
    let mut command = Command::new("python3");
    command.arg(oracle).args([seed.to_string(), count.to_string()]).args(wrong);
    let mut oracle = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("python3 can't be run: {error}"))?;
    let cases = BufReader::new(oracle.stdout.take().expect("it is piped"));
    let (mut found, mut cases_seen) = (Vec::new(), 0);
    for case in cases.lines() {
        let case = case.map_err(|error| error.to_string())?;
        cases_seen += 1;
        if found.len() < MOST_TOLD
            && let Err(difference) = compare(&case)
        {
            found.push(difference);
        }
    }
    let ended = oracle.wait().map_err(|error| error.to_string())?;
    if !ended.success() || cases_seen != count {
        return Err(format!("the oracle gave {cases_seen} of {count} cases: it needs Python 3.9 with time zones"));
    }
    Ok(found)
}

fn compare(case: &str) -> Result<(), String> {
    let parts: Vec<&str> = case.split('\t').collect();
    let ours = match parts.as_slice() {
        ["read", text, ..] => match Timestamp::parse(text) {
            Ok(read) => read.micros().to_string(),
            Err(_) => "refused".to_owned(),
        },
        ["day", text, ..] => match Timestamp::parse_day(text) {
            Ok((first, last)) => format!("{}\t{}", first.micros(), last.micros()),
            Err(_) => "refused".to_owned(),
        },
        ["print", micros, ..] => {
            let time = Timestamp::from_micros(micros.parse().map_err(|_| format!("no number: {case}"))?);
            let [month, year] = [Series::Invoice, Series::Receipt].map(|series| series.period(time));
            format!("{}\t{}\t{month}\t{year}", time.to_text(), time.to_text_micros())
        }
        _ => return Err(format!("no case: {case}")),
    };
    let theirs = parts[2..].join("\t");
    if ours == theirs { Ok(()) } else { Err(format!("{} {:?}: {ours:?}, and not {theirs:?}", parts[0], parts[1])) }
}
