//! Whose webhooks are claimed, where more are due than a claim takes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dalasi::app::delivery_places::Places;
use dalasi::app::webhooks;
use domain::Id;
use domain::webhook::WebhookEndpoint;

use crate::cli::place::Place;
use crate::endpoints::{endpoint, owe};
use crate::world::World;

/// As many as the worker claims at once.
const CLAIM: usize = 32;

/// More endpoints than a claim has something for, each owed more than a claim for a minute, and all of them quick.
#[tokio::test]
async fn who_is_owed_one_webhook_has_its_turn_whatever_others_are_owed() {
    for place in Place::each("who is owed one webhook has its turn whatever others are owed").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        for _ in 0..6 {
            let much = endpoint(&world).await;
            owe(&world, much, 40).await;
        }
        world.clock.advance(Duration::from_secs(60));
        let late = [endpoint(&world).await, endpoint(&world).await];
        for one in late {
            owe(&world, one, 1).await;
        }
        let mut places = Places::default();
        let first = claim(&world, &mut places).await;
        assert_eq!(first.values().copied().collect::<Vec<_>>(), [8; 4], "a share each, and nobody has all of it");
        let second = claim(&world, &mut places).await;
        assert_eq!(late.map(|one| second.get(&one).copied()), [Some(1); 2], "two are before them now: {second:?}");
        let served: BTreeSet<_> = first.keys().chain(second.keys()).collect();
        assert_eq!(served.len(), 8, "and so have those two: {second:?}");
        world.app.store().close().await;
        place.end().await;
    }
}

/// How many each gets. All of them end before the next claim.
async fn claim(world: &World, places: &mut Places) -> BTreeMap<Id<WebhookEndpoint>, usize> {
    let before = places.clone();
    let claimed = world.app.commit(move |tx, _| {
        let (until, mut places) = (tx.now().plus(Duration::from_secs(30)), before.clone());
        let claimed = webhooks::claim(tx, CLAIM, until, &mut places)?;
        let endpoints: Vec<_> = claimed.iter().map(|one| one.claimed.delivery.endpoint).collect();
        Ok((endpoints, places))
    });
    let (endpoints, after) = claimed.await.unwrap();
    *places = after;
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for one in endpoints {
        places.give_back(one);
        *counts.entry(one).or_default() += 1;
    }
    assert_eq!(counts.values().sum::<usize>(), CLAIM);
    counts
}
