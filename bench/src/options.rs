//! What is to be measured, as `cargo xtask bench` hands it on.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::resume::Measured;

pub(crate) const GOALS: [&str; 11] = ["G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// The product's binary.
    pub(crate) dalasi: PathBuf,
    /// A cluster in which databases may be created, and the folder of its programs.
    pub(crate) postgres: Option<(String, PathBuf)>,
    /// Where the data of a run lies; emptied before.
    pub(crate) folder: PathBuf,
    /// Where what G10 runs beside is installed.
    pub(crate) peers: Option<PathBuf>,
    pub(crate) measured: Measured,
    /// Of this run.
    pub(crate) date: String,
    pub(crate) only: Vec<String>,
    /// What is measured is written here and not measured again.
    pub(crate) resume: Option<PathBuf>,
    /// Where `performance.md` and its pictures are written.
    pub(crate) write: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Scale {
    Quick,
    Full,
}

impl Scale {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Quick => "--quick",
            Self::Full => "--full",
        }
    }
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Result<Self> {
        let (mut dalasi, mut url, mut programs, mut folder) = (None, None, None, None);
        let mut options = Self {
            dalasi: PathBuf::new(),
            postgres: None,
            folder: PathBuf::new(),
            peers: None,
            measured: Measured { commit: String::new(), profile: String::new(), scale: Scale::Quick },
            date: String::new(),
            only: Vec::new(),
            resume: None,
            write: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => options.measured.scale = Scale::Quick,
                "--full" => options.measured.scale = Scale::Full,
                _ => {
                    let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
                    match word.as_str() {
                        "--dalasi" => dalasi = Some(value.into()),
                        "--postgres" => url = Some(value.clone()),
                        "--postgres-programs" => programs = Some(value.into()),
                        "--folder" => folder = Some(value.into()),
                        "--peers" => options.peers = Some(value.into()),
                        "--profile" => options.measured.profile.clone_from(value),
                        "--commit" => options.measured.commit.clone_from(value),
                        "--date" => options.date.clone_from(value),
                        "--only" => options.only.extend(value.split(',').map(str::to_uppercase)),
                        "--resume" => options.resume = Some(value.into()),
                        "--write" => options.write = Some(value.into()),
                        _ => return Err(format!("unknown option: {word}")),
                    }
                }
            }
        }
        if let Some(unknown) = options.only.iter().find(|goal| !GOALS.contains(&goal.as_str())) {
            return Err(format!("no goal is called {unknown:?}; there are {}", GOALS.join(", ")));
        }
        options.dalasi = dalasi.ok_or("--dalasi is missing")?;
        options.folder = folder.ok_or("--folder is missing")?;
        options.postgres = url.zip(programs);
        Ok(options)
    }

    pub(crate) fn wants(&self, goal: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|chosen| chosen == goal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn goals_are_chosen_by_name() {
        let options = parse("--dalasi d --folder f --only g1,G3 --full").expect("a good line");
        assert!(options.wants("G1") && options.wants("G3") && !options.wants("G11"));
        assert_eq!(options.measured.scale, Scale::Full);
        assert!(parse("--dalasi d --folder f").expect("a good line").wants("G11"));
    }

    #[test]
    fn a_wrong_line_is_refused() {
        for line in ["", "--dalasi d", "--dalasi d --folder f --only G12", "--dalasi d --folder f --fast yes", "--only"]
        {
            assert!(parse(line).is_err(), "{line} was accepted");
        }
    }
}
