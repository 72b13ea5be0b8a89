//! Sends webhooks: claim, sign, post, store the outcome. The bytes of an event never change between attempts.

use std::sync::Arc;
use std::time::Duration;

use store::queries::deliveries;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::{CLAIM_LIMIT, CONCURRENCY, Look, rest, until};
use crate::app::App;
use crate::app::webhooks::{self, Dispatch};
use crate::error::Failure;

/// Longer than an attempt can last (15 s).
const LEASE: Duration = Duration::from_secs(30);

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    let slots = Arc::new(Semaphore::new(CONCURRENCY));
    let mut running = JoinSet::new();
    let mut bell = app.bell();
    while !*stop.borrow() {
        while running.try_join_next().is_some() {}
        let free = slots.available_permits().min(CLAIM_LIMIT);
        let look = if free == 0 { Look::Later(None) } else { claim(&app, free).await };
        let (claimed, next) = look.parts();
        for dispatch in claimed {
            let permit = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
            let app = app.clone();
            running.spawn(async move {
                if let Err(failure) = attempt(&app, dispatch).await {
                    tracing::error!(%failure, "a webhook attempt can't be stored");
                }
                drop(permit);
            });
        }
        let Some(next) = next else { continue };
        rest(next, running.len() >= CONCURRENCY, &mut bell, &mut stop).await;
    }
    while running.join_next().await.is_some() {}
}

async fn claim(app: &App, limit: usize) -> Look<Dispatch> {
    let limit = i64::try_from(limit).unwrap_or(1);
    let next = app.read(|tx, _| Ok(until(tx.now(), deliveries::next_due(tx)?))).await;
    let claimed = match next {
        Ok(Some(Duration::ZERO)) => {
            let store = app.store().clone();
            store.write(move |tx| webhooks::claim(tx, limit, tx.now().plus(LEASE))).await
        }
        Ok(later) => return Look::Later(later),
        Err(failure) => Err(failure),
    };
    Look::of(claimed, "webhook deliveries can't be claimed")
}

async fn attempt(app: &App, dispatch: Dispatch) -> Result<(), Failure> {
    let Dispatch { claimed, event, endpoint } = dispatch;
    let outcome = match &endpoint {
        None => None,
        Some(endpoint) => Some(app.post_event(endpoint, &event.id.to_string(), event.kind, &event.body).await?),
    };
    app.commit(move |tx, _| webhooks::attempted(tx, &claimed, outcome.as_ref())).await
}
