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
/// After a look that found nothing: one for the commits of a moment, not one for each.
const MOMENT: Duration = Duration::from_millis(5);

/// Work that falls due at a time, is claimed for a while, and is done outside any transaction.
pub(super) trait Queue: Clone + Send + Sync + 'static {
    type Claimed: Send + 'static;

    const NAME: &'static str;
    const WORKER: Worker;
    /// Under way at a time in one process.
    const CONCURRENCY: usize;

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
        match look(&queue, &app, free.min(CLAIM_LIMIT)).await {
            Look::Claimed(claimed) => {
                for claimed in claimed {
                    let (queue, app) = (queue.clone(), app.clone());
                    running.spawn(async move { queue.work(&app, claimed).await });
                }
            }
            Look::Later(next) => {
                let earliest = monotonic::now() + MOMENT;
                tokio::select! {
                    () = rest(next, earliest, &mut bell, &mut stop) => {}
                    () = ended(&mut running, CLAIM_LIMIT) => {}
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

/// Until the next thing is due, something was committed, or the worker stops; for what was committed not before `earliest`.
async fn rest(
    next: Option<Duration>,
    earliest: Instant,
    bell: &mut watch::Receiver<u64>,
    stop: &mut watch::Receiver<bool>,
) {
    let sleep = next.unwrap_or(LONGEST_SLEEP).clamp(SHORTEST_SLEEP, LONGEST_SLEEP);
    tokio::select! {
        () = tokio::time::sleep(sleep) => {}
        // An error means that the service is gone; `stop` says so too.
        Ok(()) = bell.changed() => tokio::time::sleep_until(earliest).await,
        _ = stop.changed() => {}
    }
}

/// Until so many have ended: what was not due because they held its places can be claimed by now.
async fn ended(running: &mut JoinSet<()>, count: usize) {
    for _ in 0..count {
        if running.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    /// Whether a queue whose bell is rung looks at once.
    async fn looks(earliest: Instant) -> bool {
        let ((ring, mut bell), (_stop, mut stopped)) = (watch::channel(0), watch::channel(false));
        ring.send_modify(|rings| *rings += 1);
        let rested = rest(None, earliest, &mut bell, &mut stopped);
        tokio::time::timeout(Duration::from_millis(100), rested).await.is_ok()
    }

    #[tokio::test]
    async fn whoever_has_not_looked_for_a_moment_looks_at_once_for_what_is_committed() {
        let now = monotonic::now();
        assert!(looks(now).await);
        assert!(!looks(now + Duration::from_secs(3600)).await, "one look for the commits of a moment");
    }

    #[tokio::test]
    async fn whoever_rests_looks_again_when_as_many_as_a_claim_takes_have_ended() {
        let (mut running, end) = (JoinSet::new(), Arc::new(Semaphore::new(0)));
        for _ in 0..CLAIM_LIMIT + 1 {
            let end = Arc::clone(&end);
            running.spawn(async move { end.acquire().await.expect("it stays open").forget() });
        }
        end.add_permits(CLAIM_LIMIT);
        ended(&mut running, CLAIM_LIMIT).await;
        assert_eq!(running.len(), 1);
        end.add_permits(1);
        let none_left = tokio::time::timeout(Duration::from_millis(100), ended(&mut running, 2)).await;
        assert!(none_left.is_err(), "fewer than that are no reason to look");
    }
}
