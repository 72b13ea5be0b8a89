//! `cargo xtask prove`: programs that run for as long as somebody likes and go on where they stopped.

use std::path::PathBuf;

use crate::postgres::Cluster;
use crate::steps::Machine;
use crate::{Result, command};

/// Every database, in the order of the checks.
const DATABASES: [&str; 2] = ["sqlite", "postgres"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    rounds: u64,
    resume: Option<PathBuf>,
    database: String,
    is_debug: bool,
}

impl Options {
    /// `refund-race --rounds N --database NAME [--resume FILE] [--debug]`
    pub(crate) fn parse(words: &[String]) -> Result<Self> {
        let (program, words) = words.split_first().ok_or("name what to prove: refund-race")?;
        if program != "refund-race" {
            return Err(format!("there is no proof called {program:?}; there is refund-race"));
        }
        let (mut rounds, mut resume, mut database, mut is_debug) = (None, None, None, false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--debug" {
                is_debug = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            match word.as_str() {
                "--rounds" => {
                    rounds = Some(value.parse().map_err(|_| format!("--rounds: {value:?} is no number"))?);
                }
                "--resume" => resume = Some(std::path::absolute(value).map_err(|error| error.to_string())?),
                "--database" if DATABASES.contains(&value.as_str()) => database = Some(value.clone()),
                "--database" => return Err(format!("--database: {value:?} is none of {}", DATABASES.join(", "))),
                _ => return Err(format!("unknown option: {word}")),
            }
        }
        let missing = |name: &str| format!("{name} is missing");
        Ok(Self {
            rounds: rounds.ok_or_else(|| missing("--rounds"))?,
            resume,
            database: database.ok_or_else(|| missing("--database"))?,
            is_debug,
        })
    }
}

/// The test that the gate runs, with more rounds. It prints how many it has reached.
pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::new()?;
    let cluster = match (options.database.as_str(), std::env::var("DALASI_TEST_POSTGRES_URL")) {
        ("postgres", Err(_)) => Some(Cluster::start()?),
        _ => None,
    };
    let test = format!("refund_race::on_{}", options.database);
    let mut cargo = machine.cargo();
    cargo.args(["test", "--locked", "--package", "dalasi", "--test", "it"]);
    if !options.is_debug {
        cargo.arg("--release");
    }
    cargo
        .args(["--", "--exact", &test, "--nocapture"])
        .env("DALASI_RACE_DATABASE", &options.database)
        .env("DALASI_RACE_ROUNDS", options.rounds.to_string());
    if let Some(file) = &options.resume {
        cargo.env("DALASI_RACE_RESUME", file);
    }
    if let Some(cluster) = &cluster {
        cargo.env("DALASI_TEST_POSTGRES_URL", cluster.url());
    }
    command::run(&mut cargo)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn a_proof_says_how_much_and_where() {
        let options =
            parse("refund-race --rounds 100000 --database postgres --resume /tmp/reached").expect("a good line");
        assert_eq!((options.rounds, options.database.as_str(), options.is_debug), (100_000, "postgres", false));
        assert_eq!(options.resume, Some(PathBuf::from("/tmp/reached")));
    }

    #[test]
    fn a_wrong_line_is_refused() {
        for line in [
            "",
            "payout-race --rounds 1 --database sqlite",
            "refund-race",
            "refund-race --rounds many --database sqlite",
            "refund-race --rounds 1 --database oracle",
            "refund-race --rounds 1 --database",
            "refund-race --rounds 1 --database sqlite --fast yes",
        ] {
            assert!(parse(line).is_err(), "{line} was accepted");
        }
    }
}
