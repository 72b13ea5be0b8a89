//! Row D13: the domain is changed in every way that cargo-mutants knows, one at a time, and its tests have to see it.
//!
//! What is changed is a clone of the commit, below the target folder: its build is kept from run to run.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use proof::Proof;
use serde_json::Value;

use crate::steps::Machine;
use crate::{Result, checkout, command, install};

/// How many, unless it is said.
const FEW: u64 = 20;
const SOURCES: &str = "crates/domain/src/";
const PLANTED: &str = "crates/domain/src/planted.rs";
/// What moves money out and who may do something: none may be missed here.
const CRITICAL: &[&str] = &["ledger.", "refund.", "refund/", "api_key.", "scope."];
/// Of all of them, in hundredths.
const LEAST_CAUGHT: usize = 95;
/// So many say something of all.
const ENOUGH: usize = 100;
/// Longer than all tests take; who needs more goes round and round, which is seen.
const TIMEOUT_S: &str = "180";
/// What the control empties, and where somebody has to miss it.
const EMPTIED: &str = "crates/domain/src/webhook/tests.rs";
const UNTESTED: &str = "crates/domain/src/webhook.rs";
const CONTROL: usize = 5;

struct Mutants {
    program: PathBuf,
    tree: PathBuf,
    /// For what it says of each.
    output: PathBuf,
}

/// What became of them, by name.
#[derive(Default)]
struct Verdicts {
    caught: Vec<String>,
    missed: Vec<String>,
    /// They don't compile.
    unviable: Vec<String>,
}

pub(crate) fn run() -> Result<()> {
    let mut proof = Proof::begin("D13", None, FEW);
    let mutants = match Mutants::prepare(&Machine::new()?) {
        Ok(mutants) => mutants,
        Err(why) => {
            proof.not_run(&why);
            return Ok(());
        }
    };
    let judged: BTreeSet<String> = noted(&proof, "judged").collect();
    let mut all = mutants.list()?;
    all.sort_by_cached_key(|name| (!is_critical(name), shuffled(name)));
    let left = all.iter().filter(|name| !judged.contains(*name)).cloned();
    let chosen: Vec<String> = left.take(usize::try_from(proof.count).unwrap_or(usize::MAX)).collect();
    let found = mutants.judge(&chosen)?;
    for name in found.missed.iter().filter(|name| is_critical(name)) {
        proof.violation(format!("no test sees it: {name}"));
    }
    let missed: Vec<String> = noted(&proof, "missed").chain(found.missed.iter().cloned()).collect();
    let caught = noted(&proof, "caught").count() + found.caught.len();
    let viable = caught + missed.len();
    if viable >= ENOUGH && caught * 100 < viable * LEAST_CAUGHT {
        proof.violation(format!("{caught} of {viable} are seen; not these: {}", missed.join(", ")));
    }
    if judged.is_empty() {
        proof.control("a_test_file_emptied", mutants.is_an_empty_file_seen(&all)?);
    }
    let reached = found.caught.len() + found.missed.len() + found.unviable.len();
    let these = [&found.caught, &found.missed, &found.unviable];
    proof.note("judged", these.into_iter().flatten().cloned().collect::<Vec<_>>());
    proof.note("missed", found.missed);
    proof.note("caught", found.caught);
    proof.end(u64::try_from(reached).unwrap_or(u64::MAX))
}

/// All that earlier runs for the same commit said under a name.
fn noted(proof: &Proof, note: &str) -> impl Iterator<Item = String> {
    let lines = proof.earlier(note);
    let values = lines.into_iter().map(|line| line[note].clone()).collect::<Vec<Value>>();
    values.into_iter().filter_map(|value| serde_json::from_value::<Vec<String>>(value).ok()).flatten()
}

fn is_critical(name: &str) -> bool {
    name.strip_prefix(SOURCES).is_some_and(|path| CRITICAL.iter().any(|critical| path.starts_with(critical)))
}

/// The same for the same name, and nothing to do with where it stands: a few are a sample of all.
fn shuffled(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

impl Mutants {
    fn prepare(machine: &Machine) -> Result<Self> {
        let mut diff = Command::new("git");
        diff.args(["diff", "--quiet", "HEAD", "--", "crates/domain"]).current_dir(machine.root());
        if !command::succeeds(&mut diff) {
            return Err("crates/domain has changes: what is judged is what is committed".to_owned());
        }
        let program = install::cargo_mutants(machine.root(), machine.target())?;
        let folder = machine.target().join("mutants");
        let tree = checkout::of_commit(machine, &folder)?;
        Ok(Self { program, tree, output: folder })
    }

    fn command(&self) -> Command {
        let mut mutants = Command::new(&self.program);
        mutants
            .args(["mutants", "--package", "dalasi-domain", "--colors=never"])
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", self.output.join("build"))
            .stdin(Stdio::null());
        command::without_proofs(&mut mutants);
        mutants
    }

    fn list(&self) -> Result<Vec<String>> {
        let listed = command::output(self.command().arg("--list"))?;
        let mut names = Vec::new();
        for name in listed.lines() {
            if !self.is_planted(name)? {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// What is compiled in for the simulation alone is false in the build that the tests are of, whatever is changed in it;
    /// where it guards something, true is another matter.
    fn is_planted(&self, name: &str) -> Result<bool> {
        let mut words = name.splitn(3, ':');
        let (Some(path), Some(Ok(line))) = (words.next(), words.next().map(str::parse::<usize>)) else {
            return Err(format!("cargo-mutants names no line: {name}"));
        };
        let text = fs::read_to_string(self.tree.join(path)).map_err(|error| format!("{path}: {error}"))?;
        let is_on_such_a_line = text.lines().nth(line - 1).is_some_and(|line| line.contains("planted!("));
        Ok(path == PLANTED || (is_on_such_a_line && !name.contains(" with true in ")))
    }

    fn judge(&self, names: &[String]) -> Result<Verdicts> {
        let mut verdicts = Verdicts::default();
        if names.is_empty() {
            return Ok(verdicts);
        }
        let only: Vec<String> = names.iter().map(|name| format!("^{}$", escaped(name))).collect();
        let files: BTreeSet<&str> = names.iter().filter_map(|name| name.split(':').next()).collect();
        let status = self
            .command()
            .args(["--in-place", "--no-shuffle", "--timeout", TIMEOUT_S, "--output"])
            .arg(&self.output)
            // Mutants of one kind (a field that is left out) pass its `--re`; by file they are few.
            .args(files.into_iter().flat_map(|file| ["--file", file]))
            .args(["--re", &only.join("|")])
            .status()
            .map_err(|error| format!("cargo-mutants: {error}"))?;
        // 2: some were missed; 3: some never ended.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            return Err(format!("cargo-mutants: {status}"));
        }
        let said = |file: &str| -> Result<Vec<String>> {
            let path = self.output.join("mutants.out").join(file);
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(text.lines().filter(|line| names.iter().any(|name| name == line)).map(str::to_owned).collect())
        };
        verdicts.caught = [said("caught.txt")?, said("timeout.txt")?].concat();
        verdicts.missed = said("missed.txt")?;
        verdicts.unviable = said("unviable.txt")?;
        Ok(verdicts)
    }

    /// Whether mutants that are seen are missed once the file that tests their code has no test.
    fn is_an_empty_file_seen(&self, all: &[String]) -> Result<bool> {
        let some: Vec<String> = all.iter().filter(|name| name.starts_with(UNTESTED)).take(CONTROL).cloned().collect();
        let seen = self.judge(&some)?.caught;
        let path = self.tree.join(EMPTIED);
        let fault = |error: std::io::Error| format!("{EMPTIED}: {error}");
        let tests = fs::read(&path).map_err(fault)?;
        fs::write(&path, "").map_err(fault)?;
        let found = self.judge(&seen);
        fs::write(&path, tests).map_err(fault)?;
        Ok(!found?.missed.is_empty())
    }
}

/// As a regular expression that means the text.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, letter| {
        if r"\.+*?()|[]{}^$".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_and_rights_are_critical() {
        for name in ["ledger.rs:3:1: replace", "refund.rs:1:1: x", "refund/tests.rs:1:1: x", "scope.rs:1:1: x"] {
            assert!(is_critical(&format!("{SOURCES}{name}")), "{name}");
        }
        assert!(!is_critical("crates/domain/src/simulator/refund.rs:1:1: x"));
    }

    #[test]
    fn a_name_is_taken_as_it_is() {
        assert_eq!(
            escaped("a.rs:1:2: replace f -> Option<T> with None"),
            r"a\.rs:1:2: replace f -> Option<T> with None"
        );
        assert_eq!(escaped("with (0, [1])"), r"with \(0, \[1\]\)");
    }
}
