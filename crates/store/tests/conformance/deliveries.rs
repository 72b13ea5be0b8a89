//! Deliveries that are owed: held by one worker at a time, in the order of each object's events.

use std::time::Duration;

use domain::event::{Event, EventType};
use domain::organization::Organization;
use domain::webhook::{Delivery, WebhookEndpoint};
use domain::{Id, Mode, Scope};
use store::queries::deliveries::{self, ClaimedDelivery};
use store::{Error, Schema, Store};

use crate::on_both;
use crate::world::World;

on_both!(a_delivery_is_held_by_one_worker, a_silent_workers_delivery_goes_to_another);

const LEASE: Duration = Duration::from_secs(30);

/// Two events of one object and one of another, owed to one endpoint. Gives the endpoint.
async fn owe(store: &Store) -> Id<WebhookEndpoint> {
    let owed = store.write(|tx| {
        let now = tx.now();
        let organization: Id<Organization> = tx.entropy().id(now);
        let endpoint = tx.entropy().id(now);
        let scope = Scope { organization, mode: Mode::Test };
        for (object, sequence) in [("cs_one", 1), ("cs_one", 2), ("cs_two", 1)] {
            let (id, object_id) = (tx.entropy().id(now), object.to_owned());
            let (kind, body) = (EventType::CheckoutCancelled, "{}".to_owned());
            let event = Event { id, scope, kind, object_id, sequence, body, created_at: now };
            deliveries::insert(tx, &Delivery::owed(&event, endpoint, now))?;
        }
        Ok::<_, Error>(endpoint)
    });
    owed.await.unwrap()
}

async fn claim(store: &Store, lease: Duration) -> Vec<ClaimedDelivery> {
    let claimed = store.write(move |tx| {
        let until = tx.now().plus(lease);
        let due = deliveries::due(tx, 10, &[])?;
        let held: Result<Vec<_>, Error> = due.iter().map(|due| deliveries::lease(tx, due, until)).collect();
        Ok::<_, Error>(held?.into_iter().flatten().collect())
    });
    claimed.await.unwrap()
}

fn names(claimed: &[ClaimedDelivery]) -> Vec<(String, i64)> {
    let mut names: Vec<_> =
        claimed.iter().map(|held| (held.delivery.object_id.clone(), held.delivery.sequence)).collect();
    names.sort();
    names
}

async fn a_delivery_is_held_by_one_worker(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let endpoint = owe(&store).await;
    let first = claim(&store, LEASE).await;
    // The second of an object waits for its first.
    assert_eq!(names(&first), [("cs_one".to_owned(), 1), ("cs_two".to_owned(), 1)]);
    assert!(first.iter().all(|held| held.delivery.endpoint == endpoint && held.lease_token == 1));
    assert_eq!(claim(&store, LEASE).await, []);
    store.close().await;
}

async fn a_silent_workers_delivery_goes_to_another(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    owe(&store).await;
    let silent = claim(&store, Duration::ZERO).await;
    let second = claim(&store, LEASE).await;
    assert_eq!(names(&silent), names(&second));
    assert!(second.iter().all(|held| held.lease_token == 2));
    // Whoever was overtaken stores nothing.
    let overtaken = silent[0].clone();
    assert!(!store.write(move |tx| deliveries::finish(tx, &overtaken)).await.unwrap());
    store.close().await;
}
