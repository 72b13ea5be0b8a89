//! The worker: claims what is due, does it outside any transaction, stores what came of it.
//!
//! It wakes by a signal *and* by time, so that a lost signal delays work and never loses it. Any number of workers may
//! run beside one database; a lease keeps them apart, and a job that runs twice does nothing twice.

mod backlog;
mod deliver;
mod housekeeping;
mod invariants;
mod mail;
mod payer;
mod seal;
mod sequence;

pub use sequence::number;

use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use domain::job::{ClaimedJob, Job};
use store::queries::jobs;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::app::documents::Subject;
use crate::app::{App, checkouts, invoices, payment_links, sessions};
use crate::error::Failure;

/// Work in flight of one process, jobs and deliveries each.
const CONCURRENCY: usize = 64;
const CLAIM_LIMIT: usize = 32;
/// After so long a silent worker's job goes to another.
const JOB_LEASE: Duration = Duration::from_secs(30);
/// Without a signal the worker looks this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);
const FULL_SLEEP: Duration = Duration::from_millis(5);
/// After a signal: one look for the commits of a moment, not one for each.
const MOMENT: Duration = Duration::from_millis(5);
/// A job that failed by a fault of ours waits so long, doubling, up to an hour.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// Runs until `stop` says true, then ends what it has begun.
pub async fn work(app: App, mut stop: watch::Receiver<bool>) {
    let mut loops = JoinSet::new();
    loops.spawn(run_jobs(app.clone(), stop.clone()));
    loops.spawn(deliver::run(app.clone(), stop.clone()));
    loops.spawn(mail::run(app.clone(), stop.clone()));
    loops.spawn(sequence::run(app.clone(), stop.clone()));
    loops.spawn(seal::run(app.clone(), stop.clone()));
    loops.spawn(housekeeping::run(app.clone(), stop.clone()));
    loops.spawn(backlog::run(app.clone(), stop.clone()));
    loops.spawn(invariants::run(app, stop.clone()));
    // An error means that the other end is gone: stop as well.
    let _ = stop.wait_for(|stop| *stop).await;
    while loops.join_next().await.is_some() {}
}

async fn run_jobs(app: App, mut stop: watch::Receiver<bool>) {
    let slots = Arc::new(Semaphore::new(CONCURRENCY));
    let mut running = JoinSet::new();
    let mut bell = app.bell();
    while !*stop.borrow() {
        while running.try_join_next().is_some() {}
        let free = slots.available_permits().min(CLAIM_LIMIT);
        let look = if free == 0 { Look::Later(None) } else { claim(&app, free).await };
        let (claimed, next) = look.parts();
        for job in claimed {
            let permit = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
            let app = app.clone();
            running.spawn(async move {
                run_one(&app, job).await;
                drop(permit);
            });
        }
        let Some(next) = next else { continue };
        rest(next, running.len() >= CONCURRENCY, &mut bell, &mut stop).await;
    }
    while running.join_next().await.is_some() {}
}

/// Up to `limit` jobs that are due, held by the caller.
pub async fn claim_due(app: &App, limit: usize) -> Vec<ClaimedJob> {
    claim(app, limit).await.parts().0
}

async fn claim(app: &App, limit: usize) -> Look<ClaimedJob> {
    let limit = i64::try_from(limit).unwrap_or(1);
    // Looking costs no write: most looks find nothing.
    let next = app.read(|tx, _| Ok(until(tx.now(), jobs::next_due(tx)?))).await;
    let claimed = match next {
        Ok(Some(Duration::ZERO)) => {
            let store = app.store().clone();
            store
                .write(move |tx| {
                    let until = tx.now().plus(JOB_LEASE);
                    jobs::claim(tx, limit, until).map_err(Failure::from)
                })
                .await
        }
        Ok(later) => return Look::Later(later),
        Err(failure) => Err(failure),
    };
    Look::of(claimed, "jobs can't be claimed")
}

/// What a look at the due things gave.
enum Look<T> {
    Claimed(Vec<T>),
    /// Nothing is due before this time has passed; nothing at all without one.
    Later(Option<Duration>),
}

impl<T> Look<T> {
    /// Whoever was slower than another worker looks again soon.
    fn of(claimed: Result<Vec<T>, Failure>, problem: &'static str) -> Self {
        match claimed {
            Ok(claimed) if claimed.is_empty() => Self::Later(Some(Duration::ZERO)),
            Ok(claimed) => Self::Claimed(claimed),
            Err(failure) => {
                tracing::error!(%failure, "{problem}");
                Self::Later(None)
            }
        }
    }

    /// What was claimed; and how long to rest, unless there may be more at once.
    fn parts(self) -> (Vec<T>, Option<Option<Duration>>) {
        match self {
            Self::Claimed(claimed) => (claimed, None),
            Self::Later(next) => (Vec::new(), Some(next)),
        }
    }
}

/// Whether it was done; if not, it is owed again.
pub async fn run_one(app: &App, claimed: ClaimedJob) -> bool {
    let Err(failure) = dispatch(app, &claimed).await else { return true };
    tracing::error!(job = claimed.job.kind(), object = claimed.job.object_id(), attempts = claimed.attempts, %failure, "a job failed");
    let doublings = u32::try_from(claimed.attempts).unwrap_or(u32::MAX).min(12);
    let pause = (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE);
    let later = app.commit(move |tx, _| Ok(jobs::again(tx, &claimed, tx.now().plus(pause))?)).await;
    if let Err(failure) = later {
        // Its lease runs out, and it is claimed again.
        tracing::error!(%failure, "a failed job can't be put off");
    }
    false
}

/// What to do for each kind of job. Each ends by letting go of its claim in the transaction of its outcome.
async fn dispatch(app: &App, claimed: &ClaimedJob) -> Result<(), Failure> {
    match claimed.job {
        Job::ExpireCheckout(id) => {
            let claimed = claimed.clone();
            app.commit(move |tx, context| {
                checkouts::expire(tx, context, claimed.scope, id)?;
                Ok(jobs::done(tx, &claimed)?)
            })
            .await?;
            app.tell(id.to_string());
            Ok(())
        }
        Job::OverdueInvoice(id) => {
            let claimed = claimed.clone();
            app.commit(move |tx, context| {
                invoices::overdue(tx, context, claimed.scope, id)?;
                Ok(jobs::done(tx, &claimed)?)
            })
            .await?;
            app.tell(id.to_string());
            Ok(())
        }
        Job::ExpireSession(id) => {
            let claimed = claimed.clone();
            app.commit(move |tx, _| {
                sessions::expire(tx, claimed.scope, id)?;
                Ok(jobs::done(tx, &claimed)?)
            })
            .await?;
            app.tell(id.to_string());
            Ok(())
        }
        Job::ExpirePaymentLink(id) => {
            let claimed = claimed.clone();
            app.commit(move |tx, context| {
                payment_links::expire(tx, context, claimed.scope, id)?;
                Ok(jobs::done(tx, &claimed)?)
            })
            .await?;
            app.tell(id.to_string());
            Ok(())
        }
        Job::RenderInvoice(id) => app.prepare_document(claimed, Subject::Invoice(id)).await,
        Job::RenderReceipt(id) => app.prepare_document(claimed, Subject::Receipt(id)).await,
        Job::FetchLogo(..) => app.fetch_logo(claimed).await,
        Job::StartAttempt(_) => app.start_attempt(claimed).await,
        Job::AskRail(id) => app.ask_rail(claimed.scope, id, Some(claimed.clone())).await,
        Job::WithdrawAttempt(_) => app.withdraw_attempt(claimed).await,
        Job::SimulatePayer(_) => payer::simulate(app, claimed).await,
        Job::SendRefund(_) => app.send_refund(claimed).await,
        Job::AskRefund(_) => app.ask_refund(claimed).await,
        Job::SimulateRefund(id) => payer::simulate_refund(app, claimed, id).await,
    }
}

fn until(now: Timestamp, due_at: Option<Timestamp>) -> Option<Duration> {
    due_at.map(|due_at| due_at.since(now))
}

/// Until the next thing is due, something was committed, or the worker stops.
async fn rest(
    next: Option<Duration>,
    is_full: bool,
    bell: &mut watch::Receiver<u64>,
    stop: &mut watch::Receiver<bool>,
) {
    // A full worker has nothing to look for; it waits for a place.
    let sleep = if is_full { FULL_SLEEP } else { next.unwrap_or(LONGEST_SLEEP) };
    tokio::select! {
        () = tokio::time::sleep(sleep.clamp(SHORTEST_SLEEP, LONGEST_SLEEP)) => {}
        // An error means that the service is gone; `stop` says so too.
        Ok(()) = bell.changed(), if !is_full => tokio::time::sleep(MOMENT).await,
        _ = stop.changed() => {}
    }
}
