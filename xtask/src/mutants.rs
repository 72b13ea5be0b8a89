//! Row D13: code is changed in every way that cargo-mutants knows, one at a time, and its tests have to see it. D13 is the domain;
//! D13.service is what stands around it and moves money, gives rights, and answers what was asked before.
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

/// What is changed, and whose tests have to see it.
pub(crate) struct Subject {
    row: &'static str,
    /// How many, unless it is said.
    few: u64,
    parts: &'static [Part],
    /// What moves money out and who may do something: none may be missed here.
    critical: &'static [&'static str],
    /// What the control empties, and where somebody has to miss it.
    emptied: &'static str,
    untested: &'static str,
    /// Below the target folder; one for each, so that one can run beside the other.
    folder: &'static str,
    /// Longer than all tests take; who needs more goes round and round, which is seen.
    timeout_s: &'static str,
}

/// Of one package.
struct Part {
    package: &'static str,
    /// All of it when there is none.
    files: &'static [&'static str],
    /// Whose tests are run, of which targets (all, when none is named), and what the tests are told.
    packages: &'static str,
    targets: &'static [&'static str],
    arguments: &'static [&'static str],
}

pub(crate) const DOMAIN: Subject = Subject {
    row: "D13",
    few: 20,
    parts: &[Part { package: "dalasi-domain", files: &[], packages: "dalasi-domain", targets: &[], arguments: &[] }],
    critical: &[
        "crates/domain/src/ledger.",
        "crates/domain/src/refund.",
        "crates/domain/src/refund/",
        "crates/domain/src/api_key.",
        "crates/domain/src/scope.",
    ],
    emptied: "crates/domain/src/webhook/tests.rs",
    untested: "crates/domain/src/webhook.rs",
    folder: "mutants",
    timeout_s: "180",
};

/// A mutant of the server takes some 40 seconds on two cores, as one of the domain does. What stands behind requests is also judged
/// by the simulation's tests, which see what only a whole service shows; refunds by those at rails that do what a test says; who is
/// asking, by those that ask over HTTP.
pub(crate) const SERVICE: Subject = Subject {
    row: "D13.service",
    few: 10,
    parts: &[
        Part {
            package: "dalasi",
            files: &[
                "crates/server/src/app/idempotency.rs",
                "crates/server/src/app/idempotency/untold.rs",
                "crates/server/src/app/settlement.rs",
                "crates/server/src/signing.rs",
            ],
            packages: "dalasi,dalasi-sim",
            targets: &["--lib", "--test=histories"],
            arguments: &[],
        },
        Part {
            package: "dalasi",
            files: &["crates/server/src/tokens.rs", "crates/server/src/tokens/keys.rs"],
            packages: "dalasi",
            targets: &["--lib"],
            arguments: &["tokens", "statement"],
        },
        Part {
            package: "dalasi",
            files: &["crates/server/src/app/refunds.rs"],
            packages: "dalasi",
            targets: &["--lib", "--test=it"],
            // It takes as long as all others.
            arguments: &["refund", "--skip", "for_a_small_balance"],
        },
        Part {
            package: "dalasi",
            files: &["crates/server/src/http/auth.rs", "crates/server/src/http/tokens.rs"],
            packages: "dalasi",
            targets: &["--lib", "--test=it"],
            arguments: &["auth"],
        },
        Part {
            package: "dalasi-store",
            files: &["crates/store/src/queries/idempotency.rs"],
            packages: "dalasi-store",
            targets: &["--lib", "--test=conformance"],
            arguments: &["--skip", "postgres"],
        },
    ],
    critical: &[
        "crates/server/src/app/refunds.",
        "crates/server/src/http/auth.",
        "crates/server/src/http/tokens.",
        "crates/server/src/tokens.",
        "crates/server/src/tokens/",
    ],
    emptied: "crates/server/src/tokens/tests.rs",
    untested: "crates/server/src/tokens.rs",
    folder: "mutants-service",
    timeout_s: "300",
};

const PLANTED: &str = "crates/domain/src/planted.rs";
/// Of all of them, in hundredths.
const LEAST_CAUGHT: usize = 95;
/// So many say something of all.
const ENOUGH: usize = 100;
const CONTROL: usize = 5;

struct Mutants<'s> {
    subject: &'s Subject,
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

pub(crate) fn run(subject: &Subject) -> Result<()> {
    let mut proof = Proof::begin(subject.row, None, subject.few);
    let mutants = match Mutants::prepare(subject, &Machine::new()?) {
        Ok(mutants) => mutants,
        Err(why) => {
            proof.not_run(&why);
            return Ok(());
        }
    };
    let judged: BTreeSet<String> = noted(&proof, "judged").collect();
    let mut all = mutants.list()?;
    all.sort_by_cached_key(|name| (!subject.is_critical(name), shuffled(name)));
    let left = all.iter().filter(|name| !judged.contains(*name)).cloned();
    let chosen: Vec<String> = left.take(usize::try_from(proof.count).unwrap_or(usize::MAX)).collect();
    let found = mutants.judge(&chosen)?;
    for name in found.missed.iter().filter(|name| subject.is_critical(name)) {
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

impl Subject {
    fn is_critical(&self, name: &str) -> bool {
        self.critical.iter().any(|critical| name.starts_with(critical))
    }
}

impl Part {
    fn has(&self, name: &str) -> bool {
        self.files.is_empty() || self.files.iter().any(|file| name.split(':').next() == Some(file))
    }
}

/// The same for the same name, and nothing to do with where it stands: a few are a sample of all.
fn shuffled(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

impl<'s> Mutants<'s> {
    fn prepare(subject: &'s Subject, machine: &Machine) -> Result<Self> {
        let mut diff = Command::new("git");
        diff.args(["diff", "--quiet", "HEAD", "--", "crates"]).current_dir(machine.root());
        if !command::succeeds(&mut diff) {
            return Err("crates has changes: what is judged is what is committed".to_owned());
        }
        let program = install::cargo_mutants(machine.root(), machine.target())?;
        let folder = machine.target().join(subject.folder);
        let tree = checkout::of_commit(machine, &folder)?;
        Ok(Self { subject, program, tree, output: folder })
    }

    fn command(&self, part: &Part) -> Command {
        let mut mutants = Command::new(&self.program);
        mutants.args(["mutants", "--package", part.package, "--colors=never"]);
        self.here(&mut mutants);
        mutants
    }

    fn here(&self, command: &mut Command) {
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", self.output.join("build")).stdin(Stdio::null());
        command::without_proofs(command);
    }

    fn list(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for part in self.subject.parts {
            let mut list = self.command(part);
            list.arg("--list").args(part.files.iter().flat_map(|file| ["--file", file]));
            for name in command::output(&mut list)?.lines() {
                if !self.is_planted(name)? {
                    names.push(name.to_owned());
                }
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
        for part in self.subject.parts {
            let names: Vec<&String> = names.iter().filter(|name| part.has(name)).collect();
            if !names.is_empty() {
                self.judge_of(part, &names, &mut verdicts)?;
            }
        }
        Ok(verdicts)
    }

    fn judge_of(&self, part: &Part, names: &[&String], verdicts: &mut Verdicts) -> Result<()> {
        let only: Vec<String> = names.iter().map(|name| format!("^{}$", escaped(name))).collect();
        let files: BTreeSet<&str> = names.iter().filter_map(|name| name.split(':').next()).collect();
        let mut mutants = self.command(part);
        mutants
            .args(["--in-place", "--no-shuffle", "--timeout", self.subject.timeout_s, "--output"])
            .arg(&self.output)
            // Mutants of one kind (a field that is left out) pass its `--re`; by file they are few.
            .args(files.into_iter().flat_map(|file| ["--file", file]))
            .args(["--re", &only.join("|"), "--test-package", part.packages]);
        if !part.targets.is_empty() {
            self.tests_pass(part)?;
            mutants.arg("--baseline=skip").args(part.targets.iter().map(|target| format!("--cargo-arg={target}")));
            mutants.args(["--", "--"]).args(part.arguments);
        }
        let status = mutants.status().map_err(|error| format!("cargo-mutants: {error}"))?;
        // 2: some were missed; 3: some never ended.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            return Err(format!("cargo-mutants: {status}"));
        }
        let said = |file: &str| -> Result<Vec<String>> {
            let path = self.output.join("mutants.out").join(file);
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(text.lines().filter(|line| names.iter().any(|name| *name == line)).map(str::to_owned).collect())
        };
        verdicts.caught.extend([said("caught.txt")?, said("timeout.txt")?].concat());
        verdicts.missed.extend(said("missed.txt")?);
        verdicts.unviable.extend(said("unviable.txt")?);
        Ok(())
    }

    /// Of what is not changed. cargo-mutants would look for all targets in the one package.
    fn tests_pass(&self, part: &Part) -> Result<()> {
        let mut cargo = command::cargo(&self.tree);
        cargo.args(["test", "--quiet", "--locked"]);
        cargo.args(part.packages.split(',').map(|package| format!("--package={package}"))).args(part.targets);
        self.here(cargo.arg("--").args(part.arguments));
        command::run(&mut cargo)
    }

    /// Whether mutants that are seen are missed once the file that tests their code has no test.
    fn is_an_empty_file_seen(&self, all: &[String]) -> Result<bool> {
        let some: Vec<String> =
            all.iter().filter(|name| name.starts_with(self.subject.untested)).take(CONTROL).cloned().collect();
        let seen = self.judge(&some)?.caught;
        let path = self.tree.join(self.subject.emptied);
        let fault = |error: std::io::Error| format!("{}: {error}", path.display());
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
            assert!(DOMAIN.is_critical(&format!("crates/domain/src/{name}")), "{name}");
        }
        assert!(!DOMAIN.is_critical("crates/domain/src/simulator/refund.rs:1:1: x"));
        assert!(SERVICE.is_critical("crates/server/src/http/auth.rs:1:1: x"));
        assert!(!SERVICE.is_critical("crates/server/src/app/settlement.rs:1:1: x"));
    }

    #[test]
    fn what_is_named_is_there() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
        for subject in [DOMAIN, SERVICE] {
            let files = subject.parts.iter().flat_map(|part| part.files).chain([&subject.emptied, &subject.untested]);
            for file in files {
                assert!(root.join(file).is_file(), "{}: {file}", subject.row);
            }
            let is_of_one = |file: &str| subject.parts.iter().filter(|part| part.has(file)).count() == 1;
            assert!(is_of_one(&format!("{}:1:1: x", subject.untested)), "{}", subject.row);
        }
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
