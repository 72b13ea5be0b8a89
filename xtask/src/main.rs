//! Everything a developer runs: `cargo xtask <command>`.
//!
//! Nothing of the product is in here, and hardly anything is needed to build it, so that the first check starts within
//! seconds of a fresh clone.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool speaks on its streams")]

mod bench;
mod builds;
mod checkout;
mod command;
mod install;
mod mutants;
mod postgres;
mod prove;
mod sanitize;
mod soak;
mod steps;
mod supply_chain;
mod test;

use std::process::ExitCode;

/// Why something could not be done, in a sentence for the person at the terminal.
type Result<T> = std::result::Result<T, String>;

const HELP: &str = "\
Examples:
  cargo xtask test                        every check, as the integration server runs them
  cargo xtask test --only clippy,test     two of them
  cargo xtask test --only sdk -- -k webhooks
  cargo xtask prove --tier nightly --budget 120m --jobs 2 --resume docs/proof/nightly.jsonl --write
  cargo xtask prove --tier nightly --only A7.refunds --database sqlite --resume reached.jsonl
  cargo xtask prove --tier nightly --only C8.failover --slice all
  cargo xtask prove --tier nightly --only 'C8.*' --budget 120m
  cargo xtask soak --for 24h              whether it needs more with the time, on a release build
  cargo xtask bench --quick               how fast it is, as ratios to references, in about five minutes
  cargo xtask postgres                    a PostgreSQL cluster for development, until Ctrl-C

Commands:
  test [--only STEP,…] [--skip STEP,…] [-- ARGUMENTS]
                 runs the steps in order and goes on after a failure; ARGUMENTS go to the one chosen step's runner
  prepare STEP,…
                 installs and builds what steps need, and runs none of them
  prove [--tier gate|nightly|release] [--budget TIME] [--resume FILE] [--only ROW,…] [--database sqlite|postgres] [--slice TIME|all]
        [--jobs N] [--write]
                 runs the rows of the proof programme in turns until their tier's counts or the budget (90s, 120m, 8h)
                 are reached; FILE keeps what was reached for one program and each row's own test, so that the next run
                 goes on, also after commits that change documents or another row's test; ROW is one row (C8), or it and its
                 parts ('C8.*'); with --slice all a row has one turn for everything; N rows run beside each other, but for
                 those that look at the time; ends with a table, and --write writes it to docs/proof.md
  bench [--quick|--full] [--only G1,…] [--profile release|dist] [--resume FILE] [--peers] [--write]
                 measures the goals of docs/performance.md; FILE keeps what was measured and filled, so that the next run
                 goes on; --peers installs what G10 runs beside, for this run and the later ones; --write writes that page
                 and its pictures
  soak [--for TIME] [--database sqlite|postgres]
                 loads a server at half of what it can do for an hour, or as long as is said, while receivers fail, payers leave and
                 somebody reads; says whether memory, descriptors, the log and the waits grow: what `prove --only C7` runs
  mutants [service]
                 changes the domain in twenty of the ways that cargo-mutants knows and says which of them no test sees; or, in ten, what
                 stands around it and moves money, gives rights or answers again: what `prove --only 'D13.*'` runs
  sanitize       runs the store's tests with AddressSanitizer: what `prove --only D7` runs
  supply-chain   holds the bill of materials against what goes into the program, and looks for bans, licences and sources: what
                 `prove --only D14` runs
  advisories     asks the public database what is known against our dependencies
  release        builds the program as anybody can build it again, byte for byte, from the same commit by the same compilers
  builds         does so in two folders, and compares: what `prove --only D14.builds` runs
  sbom           writes the bill of materials of the commit (CycloneDX) below the target folder
  postgres       starts a throw-away PostgreSQL cluster on a free port and prints its address

Exit codes: 0 all passed, 1 a step failed, 2 wrong usage.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    match command {
        "test" => match test::Options::parse(rest) {
            Ok(options) => test::run(&options),
            Err(message) => usage(&message),
        },
        "prepare" if let [steps] = rest => ended(steps::prepare(steps)),
        "prove" => match prove::Options::parse(rest) {
            Ok(options) => ended(prove::run(&options)),
            Err(message) => usage(&message),
        },
        "bench" => match bench::Options::parse(rest) {
            Ok(options) => ended(bench::run(&options)),
            Err(message) => usage(&message),
        },
        "soak" => match soak::Options::parse(rest) {
            Ok(options) => ended(soak::run(&options)),
            Err(message) => usage(&message),
        },
        "mutants" if rest.is_empty() => ended(mutants::run(&mutants::DOMAIN)),
        "mutants" if rest == ["service"] => ended(mutants::run(&mutants::SERVICE)),
        "sanitize" if rest.is_empty() => ended(sanitize::run()),
        "supply-chain" if rest.is_empty() => ended(supply_chain::run()),
        "advisories" if rest.is_empty() => ended(supply_chain::advisories()),
        "release" if rest.is_empty() => ended(builds::release()),
        "builds" if rest.is_empty() => ended(builds::run()),
        "sbom" if rest.is_empty() => ended(supply_chain::bill()),
        "postgres" if rest.is_empty() => ended(postgres::foreground()),
        "help" | "--help" | "-h" => {
            println!("{HELP}\n\nSteps: {}", steps::names());
            ExitCode::SUCCESS
        }
        _ => usage(&format!("unknown: {}", arguments.join(" "))),
    }
}

fn ended(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn usage(message: &str) -> ExitCode {
    eprintln!("{message}\n\n{HELP}\n\nSteps: {}", steps::names());
    ExitCode::from(2)
}
