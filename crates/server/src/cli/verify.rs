//! `dalasi verify`: whether what is stored can be what this program wrote.

use std::io::IsTerminal;
use std::time::Duration;

use store::{Store, Tx};

use super::installation::{self, Part};
use super::output::{self, Format};
use super::problem::Problem;
use crate::app::verify::{self, Check, Fault, Progress, Report};
use crate::config::StoreArguments;
use crate::error::Failure;

const EXAMPLES: &str = "\
Examples:
  dalasi verify                     beside the running server, or without one
  dalasi verify --json | jq .faults";

const TELL_AFTER: Duration = Duration::from_secs(1);
/// While one is held no server's log starts over, and no database cleans up.
const SNAPSHOT: Duration = Duration::from_millis(200);

/// Check the books: ledger, payments, states, events, and SQLite's file
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    let settings = arguments.store.check()?;
    let store = installation::open_installed(&settings, Part::Guest).await?;
    let report = check(&store).await;
    let key = installation::check_key_file(&store, &settings).await;
    store.close().await;
    let report = report?;
    // The verdict is said also where nobody reads what it rests on.
    let told = tell(&report, &arguments.format);
    if !report.is_clean() {
        let problem = "the books are not right. Keep a copy of the data as it is before anything is mended, and see the rows named above. \
             `dalasi repair` says which are documents and events that were damaged, and puts one right.";
        return Err(Problem::failed(problem).beside(key.err()));
    }
    if !key? {
        output::message(&format!(
            "There is no master key at {}: whether it belongs to the data was not checked.",
            settings.key_file.display()
        ));
    }
    told
}

fn tell(report: &Report, format: &Format) -> Result<(), Problem> {
    if format.json {
        return output::json(report);
    }
    let row = |fault: &Fault| output::line(&format!("{} {}: {}", fault.table, fault.row, fault.what));
    let told = report.faults.iter().try_for_each(row);
    output::message(&summary(report));
    told
}

/// Read while the server goes on; a person at a terminal sees how far it is.
pub(super) async fn check(store: &Store) -> Result<Report, Problem> {
    let progress = Progress::default();
    let mut checked = std::pin::pin!(look(store, &progress));
    let is_watched = std::io::stderr().is_terminal();
    loop {
        tokio::select! {
            report = &mut checked => {
                if is_watched && progress.rows() > 0 {
                    output::progress_done();
                }
                return Ok(report?);
            }
            () = tokio::time::sleep(TELL_AFTER) => {
                if is_watched {
                    output::progress(&format!("{} rows checked", progress.rows()));
                }
            }
        }
    }
}

async fn look(store: &Store, progress: &Progress) -> Result<Report, Failure> {
    let mut check = Check::new(progress);
    while !check.is_done() {
        let before = check;
        let further = move |tx: &mut Tx<'_>| {
            let mut check = before.clone();
            check.steps(tx, SNAPSHOT).map(|()| check)
        };
        check = store.read(further).await?;
    }
    let report = check.into_report();
    store.read(move |tx| verify::file(tx, report.clone())).await
}

pub(super) fn summary(report: &Report) -> String {
    let rows: u64 = report.checked.values().sum();
    match (report.fault_count, report.unnamed()) {
        (0, _) => format!("{rows} rows checked, no fault; the ledger sums to zero."),
        (faults, None) => format!("{rows} rows checked, {faults} faults."),
        (faults, Some(unnamed)) => format!("{rows} rows checked, {faults} faults; {unnamed} of them are not named."),
    }
}
