//! `cargo xtask bench`: builds the product and the benchmark in one profile and lets them run. What is measured, and how,
//! is `bench/`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::postgres::{Cluster, Storage};
use crate::steps::Machine;
use crate::{Result, command, install};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    profile: String,
    /// For the benchmark itself.
    words: Vec<String>,
    resume: Option<PathBuf>,
    writes: bool,
    /// What G10 runs beside is installed first.
    peers: bool,
}

impl Options {
    /// `[--quick|--full] [--only GOAL,…] [--profile release|dist] [--resume FILE] [--peers] [--write]`
    pub(crate) fn parse(words: &[String]) -> Result<Self> {
        let mut options =
            Self { profile: "release".to_owned(), words: Vec::new(), resume: None, writes: false, peers: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            match name {
                "--quick" | "--full" => options.words.push(name.to_owned()),
                "--write" => options.writes = true,
                "--peers" => options.peers = true,
                _ => {
                    let value =
                        value.or_else(|| words.next().cloned()).ok_or_else(|| format!("{name} needs a value"))?;
                    options.set(name, value)?;
                }
            }
        }
        if options.writes && options.words.iter().any(|word| word == "--only") {
            return Err("--write: the page has all goals, so leave --only away".to_owned());
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: String) -> Result<()> {
        match name {
            "--only" => self.words.extend([name.to_owned(), value]),
            "--profile" if ["release", "dist", "dev"].contains(&value.as_str()) => self.profile = value,
            "--profile" => return Err(format!("--profile: {value:?} is none of release, dist, dev")),
            "--resume" => self.resume = Some(std::path::absolute(value).map_err(|error| error.to_string())?),
            _ => return Err(format!("unknown option: {name}")),
        }
        Ok(())
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::new()?;
    let peers = machine.target().join("peers");
    if options.peers {
        install_peers(machine.root(), &peers);
    }
    // Each for itself, so that the product has the features that a user's build gives it.
    for package in ["dalasi", "dalasi-bench"] {
        command::run(machine.cargo().args(["build", "--locked", "--profile", &options.profile, "--package", package]))?;
    }
    let built = machine.target().join(match options.profile.as_str() {
        "dev" => "debug",
        profile => profile,
    });
    // The data of a run that goes on must outlive this one.
    let folder = match &options.resume {
        Some(file) => file.with_extension("data"),
        None => machine.target().join("bench"),
    };
    let mut bench = std::process::Command::new(built.join("dalasi-bench"));
    bench.arg("run").args(&options.words).args(["--profile", &options.profile]);
    bench.args(["--commit", &commit(machine.root())?, "--date", &today()?]);
    bench.arg("--dalasi").arg(built.join("dalasi")).arg("--folder").arg(folder);
    bench.arg("--peers").arg(peers);
    if let Some(file) = &options.resume {
        bench.arg("--resume").arg(file);
    }
    if options.writes {
        bench.arg("--write").arg(machine.root().join("docs"));
    }
    // What needs PostgreSQL says so where there is none.
    let cluster = match (install::postgresql(), Cluster::start(Storage::Disk)) {
        (Ok(programs), Ok(cluster)) => {
            bench.args(["--postgres", cluster.url(), "--postgres-programs"]).arg(programs);
            Some(cluster)
        }
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("without PostgreSQL: {error}");
            None
        }
    };
    let measured = command::run(&mut bench);
    drop(cluster);
    measured
}

/// What is built, as far as git knows.
fn commit(root: &Path) -> Result<String> {
    let git = |words: &[&str]| command::output(std::process::Command::new("git").args(words).current_dir(root));
    let Ok(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return Ok("unknown".to_owned()) };
    let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.trim().is_empty();
    Ok(format!("{}{}", commit.trim(), if is_changed { "-changed" } else { "" }))
}

fn today() -> Result<String> {
    let date = command::output(std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    Ok(date.trim().to_owned())
}

/// In versions that `bench/peers` pins. What can't be installed is not run, and the others are.
fn install_peers(root: &Path, folder: &Path) {
    let pinned = root.join("bench/peers");
    let python = |name: &str| install::python(&folder.join(name), &pinned.join(format!("{name}.txt"))).map(drop);
    let npm = || {
        let folder = folder.join("npm");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for file in ["package.json", "package-lock.json"] {
            fs::copy(pinned.join(file), folder.join(file)).map_err(|error| format!("{file}: {error}"))?;
        }
        install::node_modules(&folder)
    };
    let installed = [
        ("localstripe", python("localstripe")),
        ("LNbits", python("lnbits")),
        ("Vendure and stripe-stateful-mock", npm()),
    ];
    for (name, done) in installed {
        if let Err(fault) = done {
            eprintln!("without {name}: {fault}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_measured_is_the_benchmarks_to_read() {
        let options = parse("--quick --only G1,G3 --profile=dist").expect("a good line");
        assert_eq!(options.words, ["--quick", "--only", "G1,G3"]);
        assert_eq!((options.profile.as_str(), options.writes, options.resume), ("dist", false, None));
        assert!(parse("--full --write").expect("a good line").writes);
        let options = parse("").expect("a good line");
        assert_eq!((options.profile.as_str(), options.peers), ("release", false));
        assert!(parse("--peers --only G10").expect("a good line").peers);
    }

    #[test]
    fn a_wrong_line_is_refused() {
        for line in ["--fast 1", "--only", "--profile debug", "--resume", "--write --only G1"] {
            assert!(parse(line).is_err(), "{line} was accepted");
        }
    }
}
