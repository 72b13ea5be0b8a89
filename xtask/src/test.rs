//! `cargo xtask test`: runs the steps one after another, goes on after a failure, and ends with a table and one line
//! that counts them.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::Result;
use crate::steps::{Machine, STEPS, Step, names};

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    only: Vec<String>,
    skip: Vec<String>,
    arguments: Vec<String>,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let list = match name {
                "--only" => &mut options.only,
                "--skip" => &mut options.skip,
                "--" => {
                    options.arguments = words.cloned().collect();
                    break;
                }
                _ => return Err(format!("unknown option: {word}")),
            };
            let value =
                value.or_else(|| words.next().cloned()).ok_or_else(|| format!("{name} needs a list of steps"))?;
            list.extend(value.split(',').map(str::to_owned));
        }
        let known = |name: &&String| STEPS.iter().any(|step| step.name == name.as_str());
        if let Some(name) = options.only.iter().chain(&options.skip).find(|name| !known(name)) {
            return Err(format!("no step is called {name:?}; there are {}", names()));
        }
        if !options.arguments.is_empty() && options.chosen().count() != 1 {
            return Err("arguments after -- are for one step: choose it with --only".to_owned());
        }
        Ok(options)
    }

    fn chosen(&self) -> impl Iterator<Item = &'static Step> {
        STEPS.iter().filter(|step| {
            let named = |list: &[String]| list.iter().any(|name| name == step.name);
            (self.only.is_empty() || named(&self.only)) && !named(&self.skip)
        })
    }
}

enum Outcome {
    Passed,
    Failed(String),
    NothingThere,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let mut machine = match Machine::new() {
        Ok(machine) => machine,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    let start = now();
    let mut results = Vec::new();
    let chosen: Vec<_> = options.chosen().collect();
    for (place, step) in chosen.iter().enumerate() {
        machine.later = chosen[place + 1..].iter().map(|step| step.name).collect();
        println!("\n── {} · {} ──", step.name, step.title);
        let start = now();
        let outcome = if !step.has_subject(&machine) {
            Outcome::NothingThere
        } else {
            match step.run(&mut machine, &options.arguments) {
                Ok(()) => Outcome::Passed,
                Err(message) => Outcome::Failed(message),
            }
        };
        let took = start.elapsed();
        println!("{} in {}", outcome.describe(), shown(took));
        results.push((*step, outcome, took));
    }
    drop(machine);
    print_table(&results, start.elapsed())
}

impl Outcome {
    fn describe(&self) -> String {
        match self {
            Self::Passed => "passed".to_owned(),
            Self::Failed(message) => format!("FAILED: {message}"),
            Self::NothingThere => "nothing there to check".to_owned(),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
            Self::NothingThere => "nothing there",
        }
    }
}

fn print_table(results: &[(&Step, Outcome, Duration)], total: Duration) -> ExitCode {
    println!();
    for (step, outcome, took) in results {
        println!("{:<8} {:<13} {:>9}  {}", step.name, outcome.word(), shown(*took), step.title);
    }
    println!("{:<22} {:>9}\n", "all", shown(total));
    let count = |wanted: fn(&Outcome) -> bool| results.iter().filter(|(_, outcome, _)| wanted(outcome)).count();
    let passed = count(|outcome| matches!(outcome, Outcome::Passed));
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    println!("{passed} passed, {failed} failed");
    // A run that checked nothing must not look like a good one.
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds >= 60 {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    } else {
        format!("{}.{} s", seconds, time.subsec_millis() / 100)
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a step took is shown to a person and decides nothing")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    fn chosen(line: &str) -> Vec<&'static str> {
        let options = parse(line).expect("a good line");
        options.chosen().map(|step| step.name).collect()
    }

    #[test]
    fn steps_are_chosen_in_their_own_order() {
        assert_eq!(chosen("").len(), STEPS.len());
        assert_eq!(chosen("--only test,clippy"), ["clippy", "test"]);
        assert_eq!(chosen("--only=sdk,browser --skip sdk"), ["browser"]);
        assert_eq!(chosen("--only sdk -- -k webhooks"), ["sdk"]);
    }

    #[test]
    fn a_wrong_line_is_refused() {
        for line in ["--only", "--only tset", "--fast", "-- -k x", "--skip nothing"] {
            assert!(parse(line).is_err(), "{line} was accepted");
        }
    }

    #[test]
    fn times_are_short() {
        assert_eq!(shown(Duration::from_millis(1_250)), "1.2 s");
        assert_eq!(shown(Duration::from_secs(125)), "2 min 05 s");
    }
}
