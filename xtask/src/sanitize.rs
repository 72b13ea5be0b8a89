//! Row D7: the store's tests while AddressSanitizer watches every access to memory, of our Rust and of SQLite's C.
//!
//! The rest of our code can't even ask for unsafe access (`unsafe_code = "forbid"`), and calls no C of its own.

use std::path::PathBuf;
use std::process::Command;

use proof::Proof;

use crate::steps::Machine;
use crate::{Result, command};

/// The tests of the store on SQLite.
const TESTS: u64 = 90;

pub(crate) fn run() -> Result<()> {
    let proof = Proof::begin("D7", None, TESTS);
    let build = Build { machine: Machine::new()?, host: host()? };
    if !command::succeeds(&mut build.defect("build")) {
        proof.not_run("this compiler has no AddressSanitizer");
        return Ok(());
    }
    judge(proof, &build)
}

fn judge(mut proof: Proof, build: &Build) -> Result<()> {
    let (is_well, said) = command::heard(&mut build.tests())?;
    let passed = passed(&said);
    if !is_well {
        let wrong = |line: &&str| line.contains("AddressSanitizer") || line.ends_with("... FAILED");
        let found = said.lines().find(wrong).unwrap_or("the tests failed");
        println!("{said}");
        proof.violation(found.to_owned());
    }
    let (is_well, said) = command::heard(&mut build.defect("run"))?;
    proof.control("a_read_behind_the_end", !is_well && said.contains("heap-buffer-overflow"));
    let mut release = build.machine.cargo();
    release.args(["run", "--quiet", "--locked", "--release", "--package=dalasi-proof", "--example=adds_too_much"]);
    let (is_well, said) = command::heard(&mut release)?;
    proof.control("an_unchecked_sum_in_a_release_build", !is_well && said.contains("attempt to add with overflow"));
    proof.end(passed)
}

struct Build {
    machine: Machine,
    /// Named, so that what runs while it builds is not watched.
    host: String,
}

impl Build {
    fn cargo(&self) -> Command {
        let mut cargo = self.machine.cargo();
        // The option is one of the unstable ones of any compiler.
        cargo
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .env("CFLAGS", "-fsanitize=address")
            .env("CARGO_TARGET_DIR", self.folder())
            // Tests leave for good what they make once.
            .env("ASAN_OPTIONS", "detect_leaks=0");
        command::without_proofs(&mut cargo);
        cargo
    }

    fn folder(&self) -> PathBuf {
        self.machine.target().join("asan")
    }

    fn tests(&self) -> Command {
        let mut cargo = self.cargo();
        cargo
            .args(["test", "--locked", "--package=dalasi-store", "--test=conformance", "--target", &self.host])
            .args(["--", "--skip", "postgres"]);
        cargo
    }

    /// The planted defect, by `cargo build` or `cargo run`.
    fn defect(&self, word: &str) -> Command {
        let mut cargo = self.cargo();
        cargo
            .args([word, "--quiet", "--locked", "--package=dalasi-power-cut", "--example=reads_behind_the_end"])
            .args(["--target", &self.host]);
        cargo
    }
}

fn passed(said: &str) -> u64 {
    let results = said.lines().filter_map(|line| line.strip_prefix("test result: "));
    let counts = results.filter_map(|line| line.split("; ").next()?.split(' ').nth_back(1)?.parse::<u64>().ok());
    counts.sum()
}

fn host() -> Result<String> {
    let told = command::output(Command::new("rustc").arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc names no host".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_passed_are_counted() {
        let said = "running 2 tests\ntest result: ok. 96 passed; 0 failed; 0 ignored; finished in 3s\n\
                    test result: FAILED. 4 passed; 1 failed; 0 ignored\n";
        assert_eq!(passed(said), 100);
    }
}
