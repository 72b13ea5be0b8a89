//! The command line: what an operator and a developer type.
//!
//! Data goes to standard output, messages to standard error; an error names the cause and the next step, and its kind
//! is the exit code. The commands themselves are `app`'s; nothing here decides about money.

mod attempts;
mod backup;
mod client;
mod completions;
mod doctor;
mod events;
mod init;
mod installation;
mod keys;
mod ledger;
mod listen;
mod logs;
mod mail;
mod man;
mod organization;
mod output;
mod problem;
mod receipt;
mod refunds;
mod repair;
mod restore;
mod serve;
mod signing_keys;
mod stop;
mod trigger;
mod verify;

use std::future::Future;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use problem::Problem;

const EXAMPLES: &str = "\
Examples:
  dalasi serve                                      start on http://127.0.0.1:8080, data in ./dalasi-data
  dalasi keys create --name shop                    a secret key for test mode, shown once
  dalasi listen --forward-to http://localhost:3000  see webhooks arrive while you develop
  dalasi trigger checkout.completed                 make some happen
  dalasi backup dalasi.backup                       while the server runs
  dalasi doctor                                     what is wrong, and what to do about it";

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 not authorized, 4 not found, 5 conflict with what is there,
74 a sync to the disk failed, or a commit behind it: `serve` ends at once, and the next start recovers.
Test mode unless --live is given; `revoke`, `resolve` and `repair` take an id of either mode, `organization set` changes both unless
one is named. Flags win over DALASI_* variables, those over the settings file (--config).";

const TEMPLATE: &str = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Take payments with one program: checkout sessions, hosted pages, webhooks
#[derive(Parser)]
#[command(name = "dalasi", version, before_help = EXAMPLES, after_help = EXIT_CODES, help_template = TEMPLATE)]
#[command(disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service
    Serve(serve::Arguments),
    /// Make a new installation: an organization with its keys
    Init(init::Arguments),
    Organization(organization::Arguments),
    Keys(keys::Arguments),
    SigningKeys(signing_keys::Arguments),
    Attempts(attempts::Arguments),
    Refunds(refunds::Arguments),
    Receipt(receipt::Arguments),
    Listen(listen::Arguments),
    Trigger(trigger::Arguments),
    Events(events::Arguments),
    Logs(logs::Arguments),
    Mail(mail::Arguments),
    Doctor(Box<doctor::Arguments>),
    Verify(verify::Arguments),
    Repair(repair::Arguments),
    Ledger(ledger::Arguments),
    Backup(backup::Arguments),
    Restore(restore::Arguments),
    /// Print the OpenAPI document of this version
    Openapi(Openapi),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

// It is JSON anyway; a program that asks for that is not refused.
#[derive(clap::Args)]
struct Openapi {
    #[command(flatten)]
    _format: output::Format,
}

pub fn main() -> ExitCode {
    let matches = without_empty_variables(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match cli.command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Init(arguments) => block_on(init::run(arguments)),
        Command::Organization(arguments) => block_on(organization::run(arguments)),
        Command::Keys(arguments) => block_on(keys::run(arguments)),
        Command::SigningKeys(arguments) => block_on(signing_keys::run(arguments)),
        Command::Attempts(arguments) => block_on(attempts::run(arguments)),
        Command::Refunds(arguments) => block_on(refunds::run(arguments)),
        Command::Receipt(arguments) => block_on(receipt::run(arguments)),
        Command::Listen(arguments) => block_on(listen::run(arguments)),
        Command::Trigger(arguments) => block_on(trigger::run(arguments)),
        Command::Events(arguments) => block_on(events::run(arguments)),
        Command::Logs(arguments) => block_on(logs::run(arguments)),
        Command::Mail(arguments) => block_on(mail::run(arguments)),
        Command::Doctor(arguments) => block_on(doctor::run(*arguments)),
        Command::Ledger(arguments) => block_on(ledger::run(arguments)),
        Command::Verify(arguments) => block_on(verify::run(arguments)),
        Command::Repair(arguments) => block_on(repair::run(arguments)),
        Command::Backup(arguments) => block_on(backup::run(arguments)),
        Command::Restore(arguments) => block_on(restore::run(arguments)),
        Command::Man(arguments) => man::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Openapi(_) => output::line(crate::http::document_text().trim_end()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => problem.report(),
    }
}

/// An empty variable is as one that is not set: that is how it is unset in many a deployment.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &std::ffi::OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let read = |argument: clap::Arg| match argument.get_env().is_some_and(is_empty) {
        true => argument.env(clap::builder::Resettable::Reset),
        false => argument,
    };
    command.mut_args(read).mut_subcommands(without_empty_variables)
}

/// Commands other than `serve` do one thing and need one thread for it.
fn block_on(command: impl Future<Output = Result<(), Problem>>) -> Result<(), Problem> {
    let no_start = |error| Problem::failed(format!("the program can't start: {error}"));
    // Asked for by name: a command's own words are enough otherwise.
    if std::env::var_os(crate::logging::FILTER_VARIABLE).is_some() {
        crate::logging::install(crate::logging::LogFormat::Text).map_err(no_start)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_start)?;
    let done = runtime.block_on(command);
    // A look-up of a name or a disk that hangs is waited for no longer.
    runtime.shutdown_background();
    done
}
