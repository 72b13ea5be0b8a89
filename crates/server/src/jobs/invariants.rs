//! Checks the books in the background, so that a fault is seen before anybody asks. What it found is at
//! `/health/invariants`, in the log and in a gauge. It changes no row; while it knows of a fault in somebody's money, this worker
//! hands none of theirs to a rail (`app/refund_calls`).
//!
//! It goes in small steps, a few milliseconds of them in one snapshot, and rests after each: whoever pays meanwhile must not feel it, and
//! an old snapshot would keep the database from cleaning up.

use std::time::Duration;

use domain::Timestamp;
use tokio::sync::watch;

use crate::app::App;
use crate::app::invariants::Invariants;
use crate::app::verify::{Check, Progress, Report};
use crate::error::Failure;
use crate::{metrics, monotonic};

/// From the start, when there are more urgent things to do, to the first look.
const FIRST: Duration = Duration::from_secs(5);
const PERIOD: Duration = Duration::from_secs(600);
/// Steps that share a snapshot, because most have little to look at.
const AT_ONCE: Duration = Duration::from_millis(5);
/// A millisecond of work is followed by nineteen of rest: a twentieth of one core at most.
const REST_PER_WORK: u32 = 19;
/// Work that waited for the database says nothing of what it cost.
const LONGEST_REST: Duration = Duration::from_secs(60);

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    let mut pause = FIRST;
    loop {
        let progress = Progress::default();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        tokio::select! {
            checked = look(&app, &progress) => tell(&app, checked),
            // A long step would hold up the end of the process.
            _ = stop.wait_for(|stop| *stop) => return progress.stop(),
        }
        pause = PERIOD;
    }
}

async fn look(app: &App, progress: &Progress) -> Result<(Report, Timestamp), Failure> {
    let mut check = Check::new(progress);
    loop {
        let before = check;
        let steps = app.read(move |tx, _| {
            let begun = monotonic::now();
            let mut check = before.clone();
            while !check.is_done() && begun.elapsed() < AT_ONCE {
                check.step(tx)?;
            }
            Ok((check, tx.now(), begun.elapsed()))
        });
        let (after, now, work) = steps.await?;
        app.invariants().add_doubt(&after.report().doubt);
        if after.is_done() {
            return Ok((after.into_report(), now));
        }
        check = after;
        tokio::time::sleep((work * REST_PER_WORK).min(LONGEST_REST)).await;
    }
}

fn tell(app: &App, checked: Result<(Report, Timestamp), Failure>) {
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
                doubt: report.doubt.clone(),
            });
            for scope in &report.doubt.scopes {
                let (organization, mode) = (scope.organization, scope.mode.as_str());
                tracing::error!(%organization, mode, "refunds wait until these books are right");
            }
            if report.doubt.is_of_all {
                tracing::error!("all refunds wait until the books are right");
            }
        }
        Err(failure) => tracing::error!(%failure, "the books can't be checked"),
    }
}
