//! Checks the books in the background, so that a fault is seen before anybody asks. What it found is at
//! `/health/invariants`, in the log and in a gauge; it changes nothing.

use std::time::Duration;

use tokio::sync::watch;

use crate::app::App;
use crate::app::invariants::Invariants;
use crate::app::verify::{self, Progress};
use crate::{metrics, monotonic};

/// From the start, when there are more urgent things to do, to the first look.
const FIRST: Duration = Duration::from_secs(5);
const SHORTEST_PERIOD: Duration = Duration::from_secs(600);
/// A look that takes a second is repeated after a hundred: one percent of the time at most.
const REST_PER_WORK: u32 = 100;

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    let mut pause = FIRST;
    // Asked each time: a look that was broken off has seen the signal, and it would not be told again.
    while !*stop.borrow() {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.changed() => return,
        }
        let begun = monotonic::now();
        look(&app, &mut stop).await;
        pause = (monotonic::now().duration_since(begun) * REST_PER_WORK).max(SHORTEST_PERIOD);
    }
}

async fn look(app: &App, stop: &mut watch::Receiver<bool>) {
    let progress = Progress::default();
    let shared = progress.clone();
    let mut checked = std::pin::pin!(app.read(move |tx, _| Ok((verify::everything(tx, &shared)?, tx.now()))));
    let checked = tokio::select! {
        checked = &mut checked => checked,
        // A long look would hold up the end of the process.
        _ = stop.wait_for(|stop| *stop) => {
            progress.stop();
            return;
        }
    };
    match checked {
        Ok((report, now)) => {
            metrics::invariants_checked(report.fault_count);
            for fault in &report.faults {
                tracing::error!(table = fault.table, row = fault.row, what = fault.what, "the books are not right");
            }
            let faults = report.faults.iter().map(|fault| format!("{} {}: {}", fault.table, fault.row, fault.what));
            app.invariants().set(Invariants {
                last_run: Some(now),
                checked: report.checked.keys().copied().collect(),
                faults: faults.collect(),
            });
        }
        Err(failure) => tracing::error!(%failure, "the books can't be checked"),
    }
}
