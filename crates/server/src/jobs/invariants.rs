//! Checks the books in the background, so that a fault is seen before anybody asks. What it found is at
//! `/health/invariants`, in the log and in a gauge. It changes no row; while it knows of a fault in somebody's money, this worker
//! hands none of theirs to a rail (`jobs::claim`).
//!
//! It goes in small steps, a few milliseconds of them in one snapshot, and rests after each: whoever pays meanwhile must not feel it, and
//! an old snapshot would keep the database from cleaning up.

use std::time::Duration;

use domain::Timestamp;
use tokio::sync::watch;

use crate::app::App;
use crate::app::invariants::{Doubt, Invariants};
use crate::app::verify::{Check, Progress, Report};
use crate::error::Failure;
use crate::{metrics, monotonic};

/// From the start, when there are more urgent things to do, to the first look.
const FIRST: Duration = Duration::from_secs(5);
const PERIOD: Duration = Duration::from_secs(600);
/// Steps that share a snapshot, because most have little to look at.
const AT_ONCE: Duration = Duration::from_millis(5);
/// A millisecond of work is followed by so many of rest. Few books are looked through in a minute or two; whoever has many must not feel
/// it for hours. In any ten minutes it works for less than six seconds: a hundredth of one core.
const REST_AT_FIRST: u32 = 19;
const AT_FIRST: Duration = Duration::from_secs(2);
const REST_LATER: u32 = 149;
/// Work that waited for the database says nothing of what it cost.
const LONGEST_REST: Duration = PERIOD;

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    let mut pause = FIRST;
    let progress = Progress::default();
    let mut walk = Walk::new(&progress);
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        tokio::select! {
            checked = walk.end(&app) => match checked {
                Ok(now) => {
                    let ended = std::mem::replace(&mut walk, Walk::new(&progress));
                    tell(&app, ended.check.into_report(), now);
                }
                // What was looked at stands: a database that is away once an hour would never be looked through.
                Err(failure) => tracing::error!(%failure, "the books can't be checked"),
            },
            // A long step would hold up the end of the process.
            _ = stop.wait_for(|stop| *stop) => return progress.stop(),
        }
        pause = PERIOD;
    }
}

/// One look at everything.
struct Walk {
    check: Check,
    work: Duration,
}

impl Walk {
    fn new(progress: &Progress) -> Self {
        Self { check: Check::new(progress), work: Duration::ZERO }
    }

    /// Goes on to its end, and says when that was. After a failure it can be asked again.
    async fn end(&mut self, app: &App) -> Result<Timestamp, Failure> {
        loop {
            let before = self.check.clone();
            let steps = app.read(move |tx, _| {
                let begun = monotonic::now();
                let mut check = before.clone();
                while !check.is_done() && begun.elapsed() < AT_ONCE {
                    check.step(tx)?;
                }
                Ok((check, tx.now(), begun.elapsed()))
            });
            let (check, now, work) = steps.await?;
            // It is shown and refunds wait from now on, and the end may be hours away.
            let report = check.report();
            let new = app.invariants().see(report.fault_count, &report.doubt);
            if report.fault_count > self.check.report().fault_count {
                metrics::invariants_checked(app.invariants().get().known_faults());
                say_what_waits(&new);
            }
            self.check = check;
            if self.check.is_done() {
                return Ok(now);
            }
            tokio::time::sleep(self.rest(work)).await;
        }
    }

    /// After so much more work.
    fn rest(&mut self, work: Duration) -> Duration {
        self.work += work;
        let share = if self.work < AT_FIRST { REST_AT_FIRST } else { REST_LATER };
        (work * share).min(LONGEST_REST)
    }
}

fn tell(app: &App, report: Report, now: Timestamp) {
    metrics::invariants_checked(report.fault_count);
    for fault in &report.faults {
        tracing::error!(table = fault.table, row = fault.row, what = fault.what, "the books are not right");
    }
    if let Some(unnamed) = report.unnamed() {
        tracing::error!(unnamed, "more faults were found than are named");
    }
    app.invariants().set(Invariants {
        last_run: Some(now),
        checked: report.checked.keys().copied().collect(),
        fault_count: report.fault_count,
        seen_since: 0,
        doubt: report.doubt.clone(),
    });
    say_what_waits(&report.doubt);
}

fn say_what_waits(doubt: &Doubt) {
    for scope in &doubt.scopes {
        let (organization, mode) = (scope.organization, scope.mode.as_str());
        tracing::error!(%organization, mode, "refunds wait until these books are right");
    }
    if doubt.is_of_all {
        tracing::error!("all refunds wait until the books are right");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_costs_a_hundredth_of_a_core_at_most() {
        for step in [1, 5, 40, 700].map(Duration::from_millis) {
            let mut walk = Walk::new(&Progress::default());
            let mut time = Duration::ZERO;
            let mut quick = None;
            while time < PERIOD {
                time += step + walk.rest(step);
                if walk.work >= AT_FIRST {
                    quick.get_or_insert(time);
                }
            }
            assert!(walk.work * 100 < time, "{:?} of {time:?} in steps of {step:?}", walk.work);
            assert!(quick.is_some_and(|time| time < PERIOD / 4), "what is soon looked at does not wait: {quick:?}");
        }
    }
}
