//! The loop of every queue: look, claim, hand out, rest.

use std::time::Duration;

use domain::Timestamp;
use store::{LONGEST_SLEEP, Tx, Worker};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::app::App;
use crate::error::Failure;
use crate::monotonic;

const CLAIM_LIMIT: usize = 32;
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);
/// One look for the commits of a moment, or for what ended in it, not one for each.
const MOMENT: Duration = Duration::from_millis(5);

/// Work that falls due at a time, is claimed for a while, and is done outside any transaction.
pub(super) trait Queue: Clone + Send + Sync + 'static {
    type Claimed: Send + 'static;

    const NAME: &'static str;
    const WORKER: Worker;
    /// Under way at a time in one process.
    const CONCURRENCY: usize;
    /// Whether what is under way takes places without which others are passed over: each end is a reason to look.
    const PASSES_OVER: bool;

    /// When there is something to claim.
    fn next_due(&self, tx: &mut Tx<'_>) -> Result<Option<Timestamp>, Failure>;

    fn claim(&self, app: &App, limit: usize) -> impl Future<Output = Result<Vec<Self::Claimed>, Failure>> + Send;

    /// Ends by storing what came of it; a fault of ours is logged here, and the claim runs out.
    fn work(&self, app: &App, claimed: Self::Claimed) -> impl Future<Output = ()> + Send;
}

/// Until `stop` says true; then it ends what it has begun.
pub(super) async fn run<Q: Queue>(queue: Q, app: App, mut stop: watch::Receiver<bool>) {
    let mut running = JoinSet::new();
    let mut bell = app.bell(Q::WORKER);
    let mut earliest = Earliest::default();
    while !*stop.borrow() {
        while running.try_join_next().is_some() {}
        let free = Q::CONCURRENCY.saturating_sub(running.len());
        if free == 0 {
            // There is nothing to look for before a place is free.
            tokio::select! {
                _ = running.join_next() => {}
                _ = stop.changed() => {}
            }
            continue;
        }
        // What was committed before a look is seen by it.
        bell.mark_unchanged();
        match look(&queue, &app, free.min(CLAIM_LIMIT)).await {
            Look::Claimed(claimed) => {
                for claimed in claimed {
                    let (queue, app) = (queue.clone(), app.clone());
                    running.spawn(async move { queue.work(&app, claimed).await });
                }
            }
            Look::Later(next) => {
                let moment = monotonic::now() + MOMENT;
                tokio::select! {
                    () = rest(next, &mut earliest, &mut bell, &mut stop) => {}
                    () = ended(&mut running, moment), if Q::PASSES_OVER => {}
                }
            }
        }
    }
    while running.join_next().await.is_some() {}
}

/// What a look at the due things gave.
pub(super) enum Look<T> {
    Claimed(Vec<T>),
    /// Nothing is due before this time has passed; nothing at all without one.
    Later(Option<Duration>),
}

pub(super) async fn look<Q: Queue>(queue: &Q, app: &App, limit: usize) -> Look<Q::Claimed> {
    // Looking costs no write: most looks find nothing.
    let shared = queue.clone();
    let next = app.read(move |tx, _| Ok(shared.next_due(tx)?.map(|due_at| due_at.since(tx.now())))).await;
    let claimed = match next {
        Ok(Some(Duration::ZERO)) => queue.claim(app, limit).await,
        Ok(later) => return Look::Later(later),
        Err(failure) => Err(failure),
    };
    match claimed {
        // Whoever was slower than another worker looks again soon.
        Ok(claimed) if claimed.is_empty() => Look::Later(Some(Duration::ZERO)),
        Ok(claimed) => Look::Claimed(claimed),
        Err(failure) => {
            tracing::error!(%failure, "{} can't be claimed", Q::NAME);
            Look::Later(None)
        }
    }
}

/// When there may be the next look for what was committed. It has nothing to do with other looks: who ends one thing after the other
/// lets what is committed meanwhile wait no longer.
#[derive(Default)]
struct Earliest(Option<Instant>);

impl Earliest {
    async fn come(&mut self) {
        if let Some(earliest) = self.0 {
            tokio::time::sleep_until(earliest).await;
        }
        self.0 = Some(monotonic::now() + MOMENT);
    }
}

/// Until the next thing is due, something was committed, or the worker stops.
async fn rest(
    next: Option<Duration>,
    earliest: &mut Earliest,
    bell: &mut watch::Receiver<u64>,
    stop: &mut watch::Receiver<bool>,
) {
    let sleep = next.unwrap_or(LONGEST_SLEEP).clamp(SHORTEST_SLEEP, LONGEST_SLEEP);
    tokio::select! {
        () = tokio::time::sleep(sleep) => {}
        // An error means that the service is gone; `stop` says so too.
        Ok(()) = bell.changed() => earliest.come().await,
        _ = stop.changed() => {}
    }
}

/// Until as many have ended as a claim takes, or fewer and a moment has passed.
async fn ended(running: &mut JoinSet<()>, moment: Instant) {
    ends(running, 1).await;
    tokio::select! {
        () = ends(running, CLAIM_LIMIT - 1) => {}
        () = tokio::time::sleep_until(moment) => {}
    }
}

/// So many of them: never, where fewer are left.
async fn ends(running: &mut JoinSet<()>, count: usize) {
    for _ in 0..count {
        if running.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(100);

    /// Whether a worker whose bell is rung looks soon.
    async fn looks(earliest: &mut Earliest) -> bool {
        let ((ring, mut bell), (_stop, mut stopped)) = (watch::channel(0), watch::channel(false));
        ring.send_modify(|rings| *rings += 1);
        tokio::time::timeout(SOON, rest(None, earliest, &mut bell, &mut stopped)).await.is_ok()
    }

    #[tokio::test]
    async fn whoever_has_not_looked_for_commits_for_a_moment_looks_at_once() {
        let (mut earliest, began) = (Earliest::default(), monotonic::now());
        assert!(looks(&mut earliest).await);
        assert!(earliest.0.is_some_and(|next| next >= began + MOMENT), "one look for the commits of a moment");
        earliest.0 = Some(began + Duration::from_secs(3600));
        assert!(!looks(&mut earliest).await);
    }

    #[tokio::test]
    async fn as_many_as_a_claim_takes_are_looked_for_at_once_and_fewer_after_a_moment() {
        let (now, later) = (monotonic::now(), monotonic::now() + Duration::from_secs(3600));
        for (count, moment, is_looked_for) in
            [(CLAIM_LIMIT, later, true), (CLAIM_LIMIT - 1, later, false), (1, now, true), (0, now, false)]
        {
            let mut running = JoinSet::new();
            (0..count).for_each(|_| drop(running.spawn(async {})));
            let found = tokio::time::timeout(SOON, ended(&mut running, moment)).await.is_ok();
            assert_eq!(found, is_looked_for, "{count} have ended");
        }
    }
}
