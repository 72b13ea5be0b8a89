//! Sends webhooks: claim, sign, post, store the outcome. The bytes of an event never change between attempts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::webhook::WebhookEndpoint;
use domain::{Id, Timestamp};
use store::Tx;
use store::queries::deliveries;

use super::queue::Queue;
use crate::app::App;
use crate::app::delivery_places::{PLACES, Places};
use crate::app::webhooks::{self, Dispatch};
use crate::error::Failure;

/// Longer than an attempt can last (15 s).
const LEASE: Duration = Duration::from_secs(30);

#[derive(Clone, Default)]
pub(super) struct Deliveries {
    places: Arc<Mutex<Places>>,
}

impl Deliveries {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue for Deliveries {
    type Claimed = Dispatch;

    const NAME: &'static str = "webhook deliveries";
    const CONCURRENCY: usize = PLACES;

    fn next_due(&self, tx: &mut Tx<'_>) -> Result<Option<Timestamp>, Failure> {
        let nearly_full = self.places().nearly_full();
        let owed = nearly_full.into_iter().map(|mode| Ok((mode, deliveries::owed_in(tx, mode)?)));
        let owed = owed.collect::<Result<BTreeMap<_, _>, Failure>>()?;
        let full = {
            let mut places = self.places();
            places.know(owed);
            places.full()
        };
        Ok(deliveries::next_due(tx, &full)?)
    }

    async fn claim(&self, app: &App, limit: usize) -> Result<Vec<Dispatch>, Failure> {
        let before = self.places().clone();
        let seen = before.clone();
        let claimed = app.store().write(move |tx| {
            let mut places = seen.clone();
            let claimed = webhooks::claim(tx, limit, tx.now().plus(LEASE), &mut places)?;
            Ok::<_, Failure>((claimed, places))
        });
        let (claimed, after) = claimed.await?;
        self.places().add(&before, &after);
        Ok(claimed)
    }

    async fn work(&self, app: &App, dispatch: Dispatch) {
        let place = Place { of: self.clone(), endpoint: dispatch.claimed.delivery.endpoint };
        if let Err(failure) = attempt(app, dispatch, place).await {
            tracing::error!(%failure, "a webhook attempt can't be stored");
        }
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

async fn attempt(app: &App, dispatch: Dispatch, place: Place) -> Result<(), Failure> {
    let Dispatch { claimed, event, endpoint } = dispatch;
    let outcome = match &endpoint {
        None => None,
        Some(endpoint) => Some(app.post_event(endpoint, &event.id.to_string(), event.kind, &event.body).await?),
    };
    // Before the commit, which wakes whoever waits for the place.
    drop(place);
    app.commit(move |tx, _| webhooks::attempted(tx, &claimed, outcome.as_ref())).await
}
