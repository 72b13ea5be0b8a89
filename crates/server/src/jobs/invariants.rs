//! Checks the books in the background, so that a fault is seen before anybody asks. What it found is at
//! `/health/invariants`, in the log and in a gauge. It changes none of the rows that it looks at. From the moment it sees a fault in
//! somebody's money until a check, of whichever process, that sees none, no worker hands any of theirs to a rail: what it doubts is
//! written down beside the books (`App::doubt`, `jobs::claim`).
//!
//! It goes in small steps, a few milliseconds of them in one snapshot, and rests after each: whoever pays meanwhile must not feel it, and
//! an old snapshot would keep the database from cleaning up.

use std::time::Duration;

use domain::{Scope, Timestamp};
use store::Error;
use store::queries::doubts::{self, Standing};
use store::queries::repair;
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
/// A millisecond of work is followed by so many of rest. Few books are looked through in a minute or two; whoever has many must not feel
/// it for hours. In any ten minutes it works for less than six seconds: a hundredth of one core.
const REST_AT_FIRST: u32 = 19;
const AT_FIRST: Duration = Duration::from_secs(2);
const REST_LATER: u32 = 149;
/// A disk that can't read a sector is told in the words of a database that is away. It is one where so many looks at one place have
/// failed, [`PERIOD`] apart, and the database answers what else it is asked.
const LOOKS_AT_A_PLACE: u32 = 3;
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
                    tell(&app, ended.check.into_report(), ended.standing, now);
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
pub struct Walk {
    check: Check,
    work: Duration,
    /// The doubts that stood when it began, by whosever word.
    stood: Option<Vec<Standing>>,
    /// How many are left at its end.
    standing: u64,
    /// The latest looks at this place, for which the database was away.
    failed: u32,
    /// Since one has failed, each step is in a transaction of its own, so that what fails is known.
    is_careful: bool,
}

impl Walk {
    pub fn new(progress: &Progress) -> Self {
        Self {
            check: Check::new(progress),
            work: Duration::ZERO,
            stood: None,
            standing: 0,
            failed: 0,
            is_careful: false,
        }
    }

    /// Goes on to its end, and says when that was.
    ///
    /// # Errors
    ///
    /// What keeps it from going on. It can be asked again.
    pub async fn end(&mut self, app: &App) -> Result<Timestamp, Failure> {
        if self.stood.is_none() {
            let stood = app.read(|tx, _| Ok(doubts::standing(tx)?)).await?;
            let is_in_doubt = !stood.is_empty();
            self.stood = Some(stood);
            if is_in_doubt {
                metrics::invariants_checked(self.known_faults(app));
            }
        }
        loop {
            let (check, now, work) = match self.steps(app).await {
                Err(Failure::Store(Error::Unavailable(why))) => self.unless_unreadable(app, why).await?,
                looked => looked?,
            };
            self.failed = 0;
            // It is shown and refunds wait from now on, and the end may be hours away.
            let (report, before) = (check.report(), self.check.report());
            app.invariants().see(report.fault_count);
            if report.fault_count > before.fault_count {
                metrics::invariants_checked(self.known_faults(app));
                say_what_waits(&app.doubt(found_since(before, report)).await?);
            }
            self.check = check;
            if self.check.is_done() {
                self.end_doubts(app).await?;
                return Ok(now);
            }
            tokio::time::sleep(self.rest(work)).await;
        }
    }

    /// What it has found so far.
    pub fn report(&self) -> &Report {
        self.check.report()
    }

    /// How far it is then, when that was and what it took.
    async fn steps(&self, app: &App) -> Result<(Check, Timestamp, Duration), Failure> {
        let (before, at_once) = (self.check.clone(), if self.is_careful { Duration::ZERO } else { AT_ONCE });
        let steps = app.read(move |tx, _| {
            let begun = monotonic::now();
            let mut check = before.clone();
            check.steps(tx, at_once)?;
            Ok((check, tx.now(), begun.elapsed()))
        });
        steps.await
    }

    /// After a failed look; `why` it failed. Behind what is sure to be read by nobody.
    async fn unless_unreadable(&mut self, app: &App, why: String) -> Result<(Check, Timestamp, Duration), Failure> {
        self.failed += 1;
        self.is_careful = true;
        if self.failed < LOOKS_AT_A_PLACE {
            return Err(Error::Unavailable(why).into());
        }
        app.read(|tx, _| Ok(repair::schema(tx)?)).await?;
        // It may have come back between the two.
        match self.steps(app).await {
            Err(Failure::Store(Error::Unavailable(why))) => {
                let mut check = self.check.clone();
                check.pass_over(&why);
                self.is_careful = false;
                Ok((check, app.store().now(), Duration::ZERO))
            }
            looked => looked,
        }
    }

    /// One at least for each doubt that stood when it began.
    fn known_faults(&self, app: &App) -> u64 {
        let stood = self.stood.as_ref().map_or(0, Vec::len);
        app.invariants().get().known_faults().max(u64::try_from(stood).unwrap_or(u64::MAX))
    }

    /// Of those that stood when it began, all of whose money it has looked at and found right.
    async fn end_doubts(&mut self, app: &App) -> Result<(), Failure> {
        let report = self.check.report();
        let stood = self.stood.iter().flatten();
        let mended = stood.filter(|doubt| report.clears(doubt.whose)).cloned().collect();
        let ended = app.end_doubts(mended).await?;
        for whose in &ended.whose {
            tracing::info!(whose = named(*whose), "the books are right again: refunds go out");
        }
        self.standing = ended.standing;
        Ok(())
    }

    /// After so much more work.
    fn rest(&mut self, work: Duration) -> Duration {
        self.work += work;
        let share = if self.work < AT_FIRST { REST_AT_FIRST } else { REST_LATER };
        (work * share).min(LONGEST_REST)
    }
}

/// In whose money faults were seen since `before`, with the first of each.
fn found_since(before: &Report, after: &Report) -> Vec<(Option<Scope>, String)> {
    let known = |whose: &Option<Scope>| before.doubts().get(whose).map_or(0, |doubt| doubt.faults);
    let new = after.doubts().iter().filter(|(whose, doubt)| doubt.faults > known(whose));
    new.map(|(whose, doubt)| (*whose, doubt.first.clone())).collect()
}

/// `standing`: the doubts that are left, of which others may have seen some.
fn tell(app: &App, report: Report, standing: u64, now: Timestamp) {
    metrics::invariants_checked(report.fault_count.max(standing));
    metrics::invariants_ended(app.store().wall_time());
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
    });
    say_what_waits(report.doubts().keys());
}

fn say_what_waits<'w>(whose: impl IntoIterator<Item = &'w Option<Scope>>) {
    for whose in whose {
        tracing::error!(whose = named(*whose), "refunds wait until these books are right");
    }
}

fn named(whose: Option<Scope>) -> String {
    whose.map_or_else(|| "everybody's".to_owned(), |scope| format!("{} {}", scope.organization, scope.mode))
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
