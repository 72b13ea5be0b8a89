//! Sends webhooks: claim, sign, post, store the outcome. The bytes of an event never change between attempts.

mod batches;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::webhook::WebhookEndpoint;
use domain::{Id, Timestamp};
use store::queries::deliveries;
use store::{Tx, Worker};

use self::batches::Batches;
use super::queue::Queue;
use crate::app::App;
use crate::app::delivery_outcomes::Ended;
use crate::app::delivery_places::{PLACES, Places, pause_after};
use crate::app::webhooks::{self, Dispatch, Posted};
use crate::error::Failure;
use crate::monotonic::Since;

/// From the claim to the end of an attempt, which lasts up to 15 s.
const LEASE: Duration = Duration::from_secs(30);
/// Where the claim's commit took longer than this, or the machine was suspended meanwhile, an attempt could outlast its lease: another
/// one would begin beside it, and what comes behind it could overtake it.
const LATEST_BEGINNING: Duration = Duration::from_secs(14);

#[derive(Clone, Default)]
pub(super) struct Deliveries {
    places: Arc<Mutex<Places>>,
    /// What attempts brought and is not stored yet.
    ended: Batches<Id<WebhookEndpoint>, Ended>,
}

impl Deliveries {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A delivery that is held.
pub(super) struct Held {
    dispatch: Dispatch,
    /// Not later than its lease.
    since: Since,
}

impl Queue for Deliveries {
    type Claimed = Held;

    const NAME: &'static str = "webhook deliveries";
    const WORKER: Worker = Worker::Deliveries;
    const CONCURRENCY: usize = PLACES;
    const PASSES_OVER: bool = true;

    fn next_due(&self, tx: &mut Tx<'_>) -> Result<Option<Timestamp>, Failure> {
        let nearly_full = self.places().nearly_full();
        let owed = nearly_full.into_iter().map(|mode| Ok((mode, deliveries::owed_in(tx, mode)?)));
        let owed = owed.collect::<Result<BTreeMap<_, _>, Failure>>()?;
        let passed_over = {
            let mut places = self.places();
            places.know(owed);
            places.passed_over(tx.now())
        };
        Ok(deliveries::next_due(tx, &passed_over)?)
    }

    async fn claim(&self, app: &App, limit: usize) -> Result<Vec<Held>, Failure> {
        let since = Since::now(app.store());
        let before = self.places().clone();
        let seen = before.clone();
        let claimed = app.store().write(move |tx| {
            let mut places = seen.clone();
            let claimed = webhooks::claim(tx, limit, tx.now().plus(LEASE), &mut places)?;
            Ok::<_, Failure>((claimed, places))
        });
        let (claimed, after) = claimed.await?;
        self.places().add(&before, &after);
        Ok(claimed.into_iter().map(|dispatch| Held { dispatch, since }).collect())
    }

    async fn work(&self, app: &App, held: Held) {
        let place = Place { of: self.clone(), endpoint: held.dispatch.claimed.delivery.endpoint };
        match attempt(app, held).await {
            Ok(Some((ended, pause))) => {
                self.store(app, ended).await;
                tokio::time::sleep(pause).await;
            }
            Ok(None) => {}
            Err(failure) => tracing::error!(%failure, "a webhook can't be sent"),
        }
        // Not before: what waits for the database takes up as much of the worker as what waits for an endpoint.
        drop(place);
    }
}

impl Deliveries {
    /// With those to the same endpoint that end meanwhile.
    async fn store(&self, app: &App, ended: Ended) {
        let endpoint = ended.claimed.delivery.endpoint;
        let store = async |ended| {
            if let Err(failure) = app.store_attempts(endpoint, ended).await {
                tracing::error!(%failure, %endpoint, "what came of a webhook can't be stored");
            }
        };
        self.ended.join(endpoint, ended, store).await;
    }
}

/// Given back when it is dropped.
struct Place {
    of: Deliveries,
    endpoint: Id<WebhookEndpoint>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.places().give_back(self.endpoint);
    }
}

/// What it brought, and how long its place is kept afterwards; nothing where it was not begun.
async fn attempt(app: &App, held: Held) -> Result<Option<(Ended, Duration)>, Failure> {
    let Held { dispatch: Dispatch { claimed, event, endpoint }, since } = held;
    let Some(endpoint) = endpoint else { return Ok(Some((Ended { claimed, posted: None }, Duration::ZERO))) };
    let now = app.store().now();
    if since.elapsed(app.store()) > LATEST_BEGINNING {
        tracing::warn!(event = %event.id, "its claim is so long ago that this webhook is left to the next one");
        return Ok(None);
    }
    let outcome = app.post_event(&endpoint, &event.id.to_string(), event.kind.as_str(), &event.body, now).await?;
    let pause = pause_after(&endpoint, &outcome);
    Ok(Some((Ended { claimed, posted: Some(Posted { url: endpoint.url, outcome }) }, pause)))
}
