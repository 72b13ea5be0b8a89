//! Row C7, `cargo xtask soak`: builds the product, the same with a planted defect, and who loads them. What is looked at, and how
//! it is judged, is `bench/src/soak.rs`.

use std::process::Command;
use std::time::Duration;

use crate::prove::{duration, is_database};
use crate::steps::Machine;
use crate::{Result, command, install};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Unless the row says it.
    length: Option<Duration>,
    database: String,
}

impl Options {
    /// `[--for TIME] [--database sqlite|postgres]`
    pub(crate) fn parse(words: &[String]) -> Result<Self> {
        let mut options = Self { length: None, database: "sqlite".to_owned() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            match word.as_str() {
                "--for" => options.length = Some(duration(word, value)?),
                "--database" if is_database(value) => options.database.clone_from(value),
                _ => return Err(format!("unknown option: {word} {value}")),
            }
        }
        Ok(options)
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut machine = Machine::new()?;
    // Each for itself, so that the product has the features that a user's build gives it.
    for package in ["dalasi", "dalasi-bench"] {
        command::run(machine.cargo().args(["build", "--locked", "--release", "--package", package]))?;
    }
    let mut soak = Command::new(machine.target().join("release/dalasi-bench"));
    soak.arg("soak")
        .args(["--database", &options.database])
        .arg("--dalasi")
        .arg(machine.target().join("release/dalasi"))
        .arg("--planted")
        .arg(machine.planted()?)
        .arg("--folder")
        .arg(machine.target().join("soak"));
    if options.database == "postgres" {
        soak.args(["--postgres", &machine.postgres_url()?, "--postgres-programs"]).arg(install::postgresql()?);
    }
    if let Some(length) = options.length {
        soak.env("DALASI_PROOF_COUNT", length.as_secs().to_string());
    }
    command::run(&mut soak)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn any_time_can_be_asked_for() {
        let options = parse("--for 24h --database postgres").expect("a good line");
        assert_eq!((options.length, options.database.as_str()), (Some(Duration::from_secs(86_400)), "postgres"));
        assert_eq!(parse("").expect("a good line").database, "sqlite");
    }

    #[test]
    fn a_wrong_line_is_refused() {
        for line in ["--for", "--for ever", "--database oracle", "--fast yes"] {
            assert!(parse(line).is_err(), "{line} was accepted");
        }
    }
}
