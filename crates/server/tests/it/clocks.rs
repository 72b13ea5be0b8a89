//! The clocks of two processes differ.

use std::time::Duration;

use dalasi::app::keys;
use domain::Timestamp;
use domain::checkout::Checkout;
use store::queries::PageRequest;
use store::queries::events::{self, EventsFilter};
use store::queries::signing_keys;

use crate::world::World;

/// P9: for each object the time goes on, whoever tells it.
#[tokio::test]
async fn an_event_is_dated_behind_what_another_clock_said() {
    let world = World::new().await;
    world.rest().await;
    let checkout = world.create(|_| {}).await;
    let (scope, id) = (world.scope, checkout.id);
    let ahead = world.now().plus(Duration::from_secs(30));
    let changed = world.app.commit(move |tx, _| {
        let mut checkout = tx.find::<Checkout>(scope, id)?.unwrap();
        checkout.updated_at = ahead;
        Ok(tx.save(&mut checkout)?)
    });
    changed.await.unwrap();
    world.cancel(id).await;
    let page = PageRequest { offset: 0, limit: 10, after: None };
    let told = world.app.read(move |tx, _| Ok(events::list(tx, scope, &EventsFilter::default(), &page)?)).await;
    let last = told.unwrap().items.remove(0);
    assert_eq!((last.kind.as_str(), last.created_at), ("checkout.cancelled", ahead));
    world.app.store().close().await;
}

/// A process whose clock is behind that of the one which installed starts, and signs.
#[tokio::test]
async fn the_first_key_signs_for_a_clock_that_is_behind() {
    let world = World::new().await;
    world.rest().await;
    let read = world.app.read(|tx, context| {
        let stored = signing_keys::all(tx)?;
        let behind = Timestamp::from_micros(stored[0].active_from.micros() - 3_600_000_000);
        keys::signing_keys_at(context, &stored, behind)?;
        keys::lasting_keys(context, &stored, behind)
    });
    let (_, public) = read.await.unwrap();
    assert_eq!(public.len(), 1);
    world.app.store().close().await;
}
