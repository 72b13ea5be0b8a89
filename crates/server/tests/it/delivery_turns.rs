//! Whose webhooks are claimed, where more are due than a claim takes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dalasi::app::delivery_places::Places;
use dalasi::app::webhooks;
use domain::Id;
use domain::checkout::Checkout;
use domain::event::{Event, EventType};
use domain::webhook::{Delivery, WebhookEndpoint};
use store::queries::{deliveries, events};

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
        assert_eq!(second.values().sum::<usize>(), CLAIM);
        assert_eq!(late.map(|one| second.get(&one).copied()), [Some(1); 2], "two are before them now: {second:?}");
        let served: BTreeSet<_> = first.keys().chain(second.keys()).collect();
        assert_eq!(served.len(), 8, "and so have those two: {second:?}");
        world.app.store().close().await;
        place.end().await;
    }
}

/// More endpoints than a claim asks in vain: of one object's two events each has the first under way, and the second waits for it.
#[tokio::test]
async fn many_that_could_get_nothing_cost_each_claim_little_and_keep_nobody_waiting() {
    for place in Place::each("many that could get nothing cost each claim little").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        owe_in_order(&world, WAITING).await;
        let mut places = Places::default();
        assert_eq!(claim(&world, &mut places).await.len(), CLAIM, "as many as a claim takes");
        assert_eq!(claim(&world, &mut places).await.len(), WAITING - CLAIM);
        let mut places = Places::default();
        world.clock.advance(Duration::from_secs(1));
        let [quick, late] = [endpoint(&world).await, endpoint(&world).await];
        owe(&world, quick, 1).await;
        assert_eq!(claim(&world, &mut places).await, BTreeMap::from([(quick, 1)]), "all of them stood before it");
        assert_eq!(places.in_turn(&[]).first(), Some(&quick), "and none does now");
        owe(&world, quick, 1).await;
        owe(&world, late, 1).await;
        assert_eq!(claim(&world, &mut places).await, BTreeMap::from([(quick, 1)]), "it asks no more of them");
        assert_eq!(claim(&world, &mut places).await, BTreeMap::from([(late, 1)]), "it begins with the others");
        world.app.store().close().await;
        place.end().await;
    }
}

const WAITING: usize = CLAIM + 8;

/// To each of so many endpoints, which are gone by now, two events of one object.
async fn owe_in_order(world: &World, count: usize) {
    let scope = world.scope;
    let owed = world.app.commit(move |tx, _| {
        let now = tx.now();
        for _ in 0..count {
            let endpoint = tx.entropy().id(now);
            let object_id = tx.entropy().id::<Checkout>(now).to_string();
            for sequence in [1, 2] {
                let (id, object_id) = (tx.entropy().id(now), object_id.clone());
                let (kind, body) = (EventType::CheckoutCancelled, r#"{"data":{}}"#.to_owned());
                let event = Event { id, scope, kind: kind.into(), object_id, sequence, body, created_at: now };
                events::append(tx, &event)?;
                deliveries::insert(tx, &Delivery::owed(&event, endpoint, now))?;
            }
        }
        Ok(())
    });
    owed.await.unwrap();
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
    counts
}
