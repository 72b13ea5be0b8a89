//! The worker: claims what is due, does it outside any transaction, stores what came of it.
//!
//! It wakes by a signal *and* by time, so that a lost signal delays work and never loses it. Any number of workers may
//! run beside one database; a lease keeps them apart, and a job that runs twice does nothing twice.

mod backlog;
mod deliver;
mod housekeeping;
pub mod invariants;
mod mail;
mod payer;
mod queue;
mod seal;
mod sequence;

pub use sequence::number;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

use domain::job::{ClaimedJob, Job, Lane};
use domain::webhook::WebhookEndpoint;
use domain::{Id, Scope, Timestamp};
use store::queries::jobs;
use store::{Tx, Worker};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::queue::{Look, Queue};
use crate::app::documents::Subject;
use crate::app::insist::{put_off, sends_doubtful};
use crate::app::{App, checkouts, invoices, payment_links, sessions, webhooks};
use crate::error::Failure;
use crate::metrics;
use crate::monotonic::Since;

/// After so long a silent worker's job goes to another.
const JOB_LEASE: Duration = Duration::from_secs(30);
/// A job that failed waits so long; by a fault of its own, doubling, up to an hour.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// Of a job that is done by parts: no more than its lease lasts for.
const MOST_PARTS: usize = 20;

/// Runs until `stop` says true, then ends what it has begun.
pub async fn work(app: App, mut stop: watch::Receiver<bool>) {
    let mut loops = JoinSet::new();
    loops.spawn(queue::run(Jobs::<Prompt>::NEW, app.clone(), stop.clone()));
    loops.spawn(queue::run(Jobs::<Timers>::NEW, app.clone(), stop.clone()));
    loops.spawn(queue::run(Jobs::<Test>::NEW, app.clone(), stop.clone()));
    loops.spawn(queue::run(Jobs::<Ahead>::NEW, app.clone(), stop.clone()));
    loops.spawn(queue::run(Jobs::<Aside>::NEW, app.clone(), stop.clone()));
    loops.spawn(queue::run(deliver::Deliveries::default(), app.clone(), stop.clone()));
    // What was owed while there was a mail server waits until there is one again.
    if app.mailer().is_some() {
        loops.spawn(queue::run(mail::Mails::default(), app.clone(), stop.clone()));
    }
    loops.spawn(sequence::run(app.clone(), stop.clone()));
    loops.spawn(seal::run(app.clone(), stop.clone()));
    loops.spawn(housekeeping::run(app.clone(), stop.clone()));
    loops.spawn(backlog::run(app.clone(), stop.clone()));
    loops.spawn(invariants::run(app, stop.clone()));
    // An error means that the other end is gone: stop as well.
    let _ = stop.wait_for(|stop| *stop).await;
    while loops.join_next().await.is_some() {}
}

/// The jobs of a lane, which is all that `L` is for.
struct Jobs<L>(PhantomData<L>);

trait OfLane: Send + Sync + 'static {
    const LANE: Lane;
    const NAME: &'static str;
    /// Under way at a time in one process.
    const CONCURRENCY: usize;
}

struct Prompt;

impl OfLane for Prompt {
    const LANE: Lane = Lane::Prompt;
    const NAME: &'static str = "jobs";
    const CONCURRENCY: usize = 64;
}

struct Timers;

impl OfLane for Timers {
    const LANE: Lane = Lane::Timers;
    const NAME: &'static str = "jobs timers";
    const CONCURRENCY: usize = 32;
}

struct Test;

impl OfLane for Test {
    const LANE: Lane = Lane::Test;
    const NAME: &'static str = "jobs test";
    const CONCURRENCY: usize = 64;
}

struct Ahead;

impl OfLane for Ahead {
    const LANE: Lane = Lane::Ahead;
    const NAME: &'static str = "jobs ahead";
    /// One is made and the next is at hand.
    const CONCURRENCY: usize = 2;
}

struct Aside;

impl OfLane for Aside {
    const LANE: Lane = Lane::Aside;
    const NAME: &'static str = "jobs aside";
    /// Merchants' servers may take their time.
    const CONCURRENCY: usize = 8;
}

impl<L> Jobs<L> {
    const NEW: Self = Self(PhantomData);
}

impl<L> Clone for Jobs<L> {
    fn clone(&self) -> Self {
        Self::NEW
    }
}

/// A job that is held.
struct Held {
    claimed: ClaimedJob,
    /// Not later than its lease.
    since: Since,
}

impl<L: OfLane> Queue for Jobs<L> {
    type Claimed = Held;

    const NAME: &'static str = L::NAME;
    const WORKER: Worker = Worker::Jobs(L::LANE);
    const CONCURRENCY: usize = L::CONCURRENCY;
    const PASSES_OVER: bool = false;

    fn next_due(&self, tx: &mut Tx<'_>) -> Result<Option<Timestamp>, Failure> {
        Ok(jobs::next_due(tx, L::LANE)?)
    }

    async fn claim(&self, app: &App, limit: usize) -> Result<Vec<Held>, Failure> {
        let since = Since::now(app.store());
        let claimed = claim(app, L::LANE, limit).await?;
        Ok(claimed.into_iter().map(|claimed| Held { claimed, since }).collect())
    }

    async fn work(&self, app: &App, held: Held) {
        run(app, held).await;
    }
}

async fn claim(app: &App, lane: Lane, limit: usize) -> Result<Vec<ClaimedJob>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(1);
    let claim = move |tx: &mut Tx<'_>| {
        let now = tx.now();
        let (mut due, mut asked) = (Vec::new(), BTreeMap::new());
        for claimed in jobs::claim(tx, lane, limit, now.plus(JOB_LEASE))? {
            // In one transaction: a refund that was claimed and then put off could be taken for one that its rail was called for.
            match is_of_doubtful(tx, &claimed, &mut asked)? {
                true => put_off(tx, &claimed)?,
                false => due.push(claimed),
            }
        }
        Ok(due)
    };
    app.store().write(claim).await
}

/// [`sends_doubtful`] of many: each merchant's books are asked for once.
fn is_of_doubtful(
    tx: &mut Tx<'_>,
    claimed: &ClaimedJob,
    asked: &mut BTreeMap<Scope, bool>,
) -> Result<bool, store::Error> {
    if !matches!(claimed.job, Job::SendRefund(_)) {
        return Ok(false);
    }
    if let Some(are) = asked.get(&claimed.scope) {
        return Ok(*are);
    }
    let are = sends_doubtful(tx, claimed)?;
    asked.insert(claimed.scope, are);
    Ok(are)
}

/// Up to `limit` jobs that are due, held by the caller.
pub async fn claim_due(app: &App, limit: usize) -> Vec<ClaimedJob> {
    for lane in [Lane::Prompt, Lane::Timers, Lane::Test, Lane::Aside, Lane::Ahead] {
        let due = match lane {
            Lane::Prompt => due::<Prompt>(app, limit).await,
            Lane::Timers => due::<Timers>(app, limit).await,
            Lane::Test => due::<Test>(app, limit).await,
            Lane::Aside => due::<Aside>(app, limit).await,
            Lane::Ahead => due::<Ahead>(app, limit).await,
        };
        if !due.is_empty() {
            return due;
        }
    }
    Vec::new()
}

async fn due<L: OfLane>(app: &App, limit: usize) -> Vec<ClaimedJob> {
    match queue::look(&Jobs::<L>::NEW, app, limit).await {
        Look::Claimed(held) => held.into_iter().map(|held| held.claimed).collect(),
        Look::Later(_) => Vec::new(),
    }
}

/// One that was claimed just now. Whether it was done; if not, it is owed again.
pub async fn run_one(app: &App, claimed: ClaimedJob) -> bool {
    run(app, Held { claimed, since: Since::now(app.store()) }).await
}

async fn run(app: &App, Held { claimed, since }: Held) -> bool {
    let Err(failure) = dispatch(app, &claimed, since).await else { return true };
    tracing::error!(job = claimed.job.kind(), object = claimed.job.object_id(), attempts = claimed.attempts, %failure, "a job failed");
    let pause = match failure.passes() {
        true => FIRST_PAUSE,
        false => {
            metrics::job_failed();
            let doublings = u32::try_from(claimed.attempts).unwrap_or(u32::MAX).min(12);
            (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
        }
    };
    let later = app.commit(move |tx, _| Ok(jobs::again(tx, &claimed, tx.now().plus(pause))?)).await;
    if let Err(failure) = later {
        // Its lease runs out, and it is claimed again.
        tracing::error!(%failure, "a failed job can't be put off");
    }
    false
}

/// By parts, each in a short transaction of its own: whoever makes an endpoint inactive may be owed any number.
async fn give_up(app: &App, claimed: &ClaimedJob, id: Id<WebhookEndpoint>) -> Result<(), Failure> {
    for _ in 0..MOST_PARTS {
        let part = claimed.clone();
        if !app.commit(move |tx, _| webhooks::give_up_part(tx, &part, id)).await? {
            return Ok(());
        }
    }
    let claimed = claimed.clone();
    app.commit(move |tx, _| Ok(jobs::again(tx, &claimed, tx.now())?)).await
}

/// What to do for each kind of job. Each ends by letting go of its claim in the transaction of its outcome.
async fn dispatch(app: &App, claimed: &ClaimedJob, since: Since) -> Result<(), Failure> {
    match claimed.job {
        Job::ExpireCheckout(id) => {
            let claimed = claimed.clone();
            app.commit(move |tx, context| {
                checkouts::expire(tx, context, claimed.scope, id)?;
                Ok(jobs::done(tx, &claimed)?)
            })
            .await
        }
        Job::OverdueInvoice(id) => {
            let claimed = claimed.clone();
            app.commit(move |tx, context| {
                invoices::overdue(tx, context, claimed.scope, id)?;
                Ok(jobs::done(tx, &claimed)?)
            })
            .await
        }
        Job::ExpireSession(id) => {
            let claimed = claimed.clone();
            app.commit(move |tx, _| {
                sessions::expire(tx, claimed.scope, id)?;
                Ok(jobs::done(tx, &claimed)?)
            })
            .await
        }
        Job::ExpirePaymentLink(id) => {
            let claimed = claimed.clone();
            app.commit(move |tx, context| {
                payment_links::expire(tx, context, claimed.scope, id)?;
                Ok(jobs::done(tx, &claimed)?)
            })
            .await
        }
        Job::RenderInvoice(id) => app.prepare_document(claimed, Subject::Invoice(id)).await,
        Job::RenderReceipt(id) => app.prepare_document(claimed, Subject::Receipt(id)).await,
        Job::FetchLogo(..) => app.fetch_logo(claimed).await,
        Job::GiveUpDeliveries(id) => give_up(app, claimed, id).await,
        Job::StartAttempt(_) => app.start_attempt(claimed, since).await.map(drop),
        Job::AskRail(id) => app.ask_rail(claimed.scope, id, Some(claimed.clone())).await,
        Job::WithdrawAttempt(_) => app.withdraw_attempt(claimed, since).await,
        Job::SimulatePayer(_) => payer::simulate(app, claimed).await,
        Job::SendRefund(_) => app.send_refund(claimed, since).await,
        Job::AskRefund(_) => app.ask_refund(claimed).await,
        Job::SimulateRefund(id) => payer::simulate_refund(app, claimed, id).await,
    }
}
