//! Deliveries that are owed: held by one worker at a time, in the order of each object's events.

use std::time::Duration;

use domain::event::{Event, EventType};
use domain::organization::Organization;
use domain::webhook::{Attempted, Delivery, DeliveryStatus, WebhookEndpoint};
use domain::{Id, Mode, Scope, Timestamp};
use store::queries::deliveries::{self, ClaimedDelivery, Due};
use store::queries::endpoints;
use store::{Error, Schema, Store, Tx};

use crate::deliveries_ahead::endpoint;
use crate::on_both;
use crate::world::{World, raw_postgres};

on_both!(
    a_delivery_is_held_by_one_worker,
    a_silent_workers_delivery_goes_to_another,
    what_arrived_together_is_stored_together,
    what_arrived_at_a_later_try_is_stored_with_the_others,
    what_was_given_up_under_way_is_not_open_again,
    what_is_sent_by_hand_holds_up_nothing,
    a_retry_leaves_the_order_only_where_it_waits,
    the_others_are_found_behind_a_full_endpoint,
    who_is_owed_much_leaves_the_others_a_share,
    what_is_given_up_is_looked_for_by_parts,
    a_count_of_attempts_that_cannot_be_is_passed_over,
);

pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Two events of one object and one of another, owed to one endpoint. Gives the endpoint.
pub(crate) async fn owe(store: &Store) -> Id<WebhookEndpoint> {
    let owed = store.write(|tx| {
        let now = tx.now();
        let organization: Id<Organization> = tx.entropy().id(now);
        let endpoint = tx.entropy().id(now);
        let scope = Scope { organization, mode: Mode::Test };
        for (object, sequence) in [("cs_one", 1), ("cs_one", 2), ("cs_two", 1)] {
            let (id, object_id) = (tx.entropy().id(now), object.to_owned());
            let (kind, body) = (EventType::CheckoutCancelled, "{}".to_owned());
            let event = Event { id, scope, kind: kind.into(), object_id, sequence, body, created_at: now };
            deliveries::insert_behind(tx, &Delivery::owed(&event, endpoint, now))?;
        }
        Ok::<_, Error>(endpoint)
    });
    owed.await.unwrap()
}

/// What a worker finds that passes over the endpoints of `but`, and gave nobody a turn before.
fn due(tx: &mut Tx<'_>, limit: usize, but: &[Id<WebhookEndpoint>]) -> Result<Vec<Due>, Error> {
    let mut line = deliveries::endpoints_due(tx)?;
    line.retain(|one| !but.contains(one));
    deliveries::due(tx, limit, &line, &mut Vec::new(), false)
}

pub(crate) async fn claim(store: &Store, lease: Duration) -> Vec<ClaimedDelivery> {
    let claimed = store.write(move |tx| {
        let until = tx.now().plus(lease);
        let due = due(tx, 10, &[])?;
        let held: Result<Vec<_>, Error> = due.iter().map(|due| deliveries::lease(tx, due, until)).collect();
        Ok::<_, Error>(held?.into_iter().flatten().collect())
    });
    claimed.await.unwrap()
}

pub(crate) fn names(claimed: &[ClaimedDelivery]) -> Vec<(String, i64)> {
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

/// What comes of another attempt could never be stored: it would be sent again whenever its lease ran out.
async fn a_count_of_attempts_that_cannot_be_is_passed_over(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    owe(&store).await;
    for counts in
        ["attempts = 0, round_attempts = -1", "attempts = 0, round_attempts = 1", "attempts = 9223372036854775807"]
    {
        let alter = format!("update webhook_deliveries set {counts} where object_id = 'cs_one' and sequence = 1");
        store.write(move |tx| tx.execute(&alter, &[])).await.unwrap();
        assert_eq!(names(&claim(&store, Duration::ZERO).await), [("cs_two".to_owned(), 1)], "{counts}");
    }
    store.close().await;
}

/// Of one endpoint; gives the objects for which it was stored.
async fn delivered(store: &Store, held: Vec<ClaimedDelivery>) -> Vec<String> {
    let stored = store.write(move |tx| {
        let endpoint = endpoint(held[0].delivery.scope, held[0].delivery.endpoint, tx.now());
        let endpoint = WebhookEndpoint { giving_up: None, ..endpoint };
        let stored = deliveries::delivered(tx, &endpoint, 204, &held.iter().collect::<Vec<_>>())?;
        let of = |event: &Id<Event>| held.iter().find(|held| held.delivery.event == *event).unwrap();
        Ok::<_, Error>(stored.iter().map(|event| of(event).delivery.object_id.clone()).collect::<Vec<_>>())
    });
    let mut stored = stored.await.unwrap();
    stored.sort();
    stored
}

async fn what_arrived_together_is_stored_together(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    owe(&store).await;
    let silent = claim(&store, Duration::ZERO).await;
    let held = claim(&store, LEASE).await;
    assert_eq!(delivered(&store, silent).await, [""; 0], "whoever was overtaken stores nothing");
    assert_eq!(delivered(&store, held.clone()).await, ["cs_one", "cs_two"]);
    for held in &held {
        let (scope, event) = (held.delivery.scope, held.delivery.event);
        let stored = store.read(move |tx| deliveries::of_event(tx, scope, event)).await.unwrap().remove(0);
        let mut expected = held.delivery.clone();
        expected.attempted(&SUCCEEDED, stored.updated_at.expect("it has changed"), 1000);
        assert_eq!(stored, expected, "as if it had been stored alone");
    }
    assert_eq!(delivered(&store, held).await, [""; 0], "once");
    let second = claim(&store, LEASE).await;
    assert_eq!(names(&second), [("cs_one".to_owned(), 2)]);
    store.write(|tx| tx.execute(GIVE_UP, &[])).await.unwrap();
    assert_eq!(delivered(&store, second).await, [""; 0], "what was given up meanwhile is somebody else's to decide");
    store.close().await;
}

async fn what_arrived_at_a_later_try_is_stored_with_the_others(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    owe(&store).await;
    for held in claim(&store, LEASE).await {
        assert!(finish(&store, held.clone(), failed()).await);
        retry(&store, &held.delivery).await;
    }
    let again = claim(&store, LEASE).await;
    assert_eq!(names(&again), [("cs_one".to_owned(), 1), ("cs_two".to_owned(), 1)]);
    assert!(again.iter().all(|held| held.delivery.attempts == 1), "{again:?}");
    assert_eq!(delivered(&store, again).await, ["cs_one", "cs_two"]);
    assert_eq!(names(&claim(&store, LEASE).await), [("cs_one".to_owned(), 2)]);
    store.close().await;
}

/// It may be waiting for what this one holds.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_is_changing_is_not_waited_for() {
    let Some(world) = World::postgres("what_another_is_changing_is_not_waited_for").await else { return };
    let store = world.try_open(Schema::product()).await.unwrap();
    owe(&store).await;
    let held = claim(&store, LEASE).await;
    let other = raw_postgres(world.url()).await;
    let change = async |which: &str| {
        let sql = format!("begin; update webhook_deliveries set by_hand = 0 where object_id = 'cs_one' and {which}");
        other.batch_execute(&sql).await.unwrap();
    };
    change("sequence = 2").await;
    assert_eq!(delivered(&store, held.clone()).await, ["cs_two"], "what is to be called is being changed");
    other.batch_execute("commit").await.unwrap();
    change("sequence = 1").await;
    assert_eq!(delivered(&store, held.clone()).await, [""; 0]);
    other.batch_execute("commit").await.unwrap();
    assert_eq!(delivered(&store, held).await, ["cs_one"]);
    drop(other);
    store.close().await;
    world.end().await;
}

pub(crate) const SUCCEEDED: Attempted = Attempted::Succeeded { status: 204 };

pub(crate) fn failed() -> Attempted {
    Attempted::Failed { status: Some(500), error: "no".into(), retry_after: None, gone: false }
}

pub(crate) async fn finish(store: &Store, held: ClaimedDelivery, outcome: Attempted) -> bool {
    let finished = store.write(move |tx| {
        let (mut held, now) = (held.clone(), tx.now());
        held.delivery.attempted(&outcome, now, 1000);
        let is_finished = deliveries::finish(tx, &held)?;
        if held.delivery.status != DeliveryStatus::Pending {
            deliveries::call_next(tx, &held.delivery)?;
        }
        Ok::<_, Error>(is_finished)
    });
    finished.await.unwrap()
}

pub(crate) async fn retry(store: &Store, delivery: &Delivery) {
    let delivery = delivery.clone();
    let retried = store.write(move |tx| {
        let mut delivery = delivery.clone();
        delivery.retry(tx.now());
        deliveries::retry(tx, &delivery)
    });
    retried.await.unwrap();
}

/// Of the object with two events.
pub(crate) fn of_one(claimed: Vec<ClaimedDelivery>) -> Vec<ClaimedDelivery> {
    claimed.into_iter().filter(|held| held.delivery.object_id == "cs_one").collect()
}

pub(crate) fn sequences(claimed: &[ClaimedDelivery]) -> Vec<i64> {
    let mut sequences: Vec<_> = claimed.iter().map(|held| held.delivery.sequence).collect();
    sequences.sort_unstable();
    sequences
}

async fn what_was_given_up_under_way_is_not_open_again(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    owe(&store).await;
    let [first, other] = <[_; 2]>::try_from(claim(&store, LEASE).await).unwrap();
    store.write(|tx| tx.execute(GIVE_UP, &[])).await.unwrap();
    assert!(!finish(&store, first.clone(), failed()).await, "it is to be tried again, and was given up");
    let mut over = first;
    over.delivery.give_up(Timestamp::from_micros(9));
    let (scope, event) = (over.delivery.scope, over.delivery.event);
    assert!(store.write(move |tx| deliveries::finish(tx, &over)).await.unwrap());
    let kept = store.read(move |tx| deliveries::of_event(tx, scope, event)).await.unwrap();
    assert_eq!(kept[0].updated_at, Some(Timestamp::from_micros(9)));
    assert!(finish(&store, other, SUCCEEDED).await, "what arrived was delivered");
    store.close().await;
}

const GIVE_UP: &str = "update webhook_deliveries set status = 'failed', next_retry_at = null";

async fn what_is_sent_by_hand_holds_up_nothing(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let endpoint = owe(&store).await;
    let first = of_one(claim(&store, LEASE).await).remove(0);
    assert!(finish(&store, first.clone(), SUCCEEDED).await);
    // It was delivered, is sent again and fails: the second of its object doesn't wait for its next try.
    retry(&store, &Delivery { status: DeliveryStatus::Delivered, ..first.delivery }).await;
    let mut both = of_one(claim(&store, Duration::ZERO).await);
    assert_eq!(sequences(&both), [1, 2]);
    both.retain(|held| held.delivery.sequence == 1);
    assert!(finish(&store, both.remove(0), failed()).await);
    let second = of_one(claim(&store, Duration::ZERO).await);
    assert_eq!(sequences(&second), [2]);
    // Nor does it for one that the endpoint was never owed until somebody asked.
    let scope = second[0].delivery.scope;
    let added = store.write(move |tx| {
        let (now, early) = (tx.now(), event(tx, scope, "cs_one", 0));
        deliveries::insert_by_hand(tx, &Delivery::owed(&early, endpoint, now))
    });
    added.await.unwrap();
    let mut both = of_one(claim(&store, Duration::ZERO).await);
    assert_eq!(sequences(&both), [0, 2]);
    both.retain(|held| held.delivery.sequence == 0);
    assert!(finish(&store, both.remove(0), failed()).await);
    assert_eq!(sequences(&of_one(claim(&store, LEASE).await)), [2]);
    store.close().await;
}

const SECOND: &str = "select event_id from webhook_deliveries where object_id = 'cs_one' and sequence = 2";
const SECOND_IS_DUE: &str =
    "update webhook_deliveries set next_retry_at = 1 where object_id = 'cs_one' and sequence = 2";

async fn a_retry_leaves_the_order_only_where_it_waits(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    owe(&store).await;
    let first = of_one(claim(&store, LEASE).await).remove(0);
    assert!(finish(&store, first.clone(), failed()).await);
    assert_eq!(sequences(&of_one(claim(&store, LEASE).await)), [0; 0], "the first is due later, the second waits");
    // It was never delivered: sent again by hand it is due, and the second still comes after it.
    retry(&store, &first.delivery).await;
    let again = of_one(claim(&store, LEASE).await);
    assert_eq!(sequences(&again), [1]);
    assert!(finish(&store, again[0].clone(), failed()).await);
    // The second waits for nobody any more when somebody says so, however often it fails.
    let scope = first.delivery.scope;
    let second = store.write(move |tx| {
        let row = tx.query_one(SECOND, &[])?;
        Ok::<_, Error>(deliveries::of_event(tx, scope, row.get::<String>("event_id")?.parse().unwrap())?.remove(0))
    });
    retry(&store, &second.await.unwrap()).await;
    let second = of_one(claim(&store, Duration::ZERO).await);
    assert_eq!(sequences(&second), [2]);
    assert!(finish(&store, second[0].clone(), failed()).await);
    store.write(|tx| tx.execute(SECOND_IS_DUE, &[])).await.unwrap();
    assert_eq!(sequences(&of_one(claim(&store, LEASE).await)), [2]);
    store.close().await;
}

pub(crate) fn event(tx: &mut Tx<'_>, scope: Scope, object: &str, sequence: i64) -> Event {
    let now = tx.now();
    let (id, kind, body) = (tx.entropy().id(now), EventType::CheckoutCancelled, "{}".to_owned());
    Event { id, scope, kind: kind.into(), object_id: object.to_owned(), sequence, body, created_at: now }
}

/// An endpoint that hangs is owed the most, and for the longest time.
async fn the_others_are_found_behind_a_full_endpoint(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let owed = store.write(|tx| {
        let now = tx.now();
        let scope = Scope { organization: tx.entropy().id(now), mode: Mode::Test };
        let [dead, well, later]: [Id<WebhookEndpoint>; 3] = std::array::from_fn(|_| tx.entropy().id(now));
        let before = |seconds: i64| Timestamp::from_micros(now.micros() - seconds * 1_000_000);
        for number in 0..300 {
            let event = event(tx, scope, &format!("cs_dead_{number}"), 1);
            deliveries::insert(tx, &Delivery::owed(&event, dead, before(500 - number)))?;
        }
        // The second of an object is due for longer than its first, which was put off, and waits for it all the same.
        for (object, sequence, seconds) in [("cs_a", 1, 90), ("cs_b", 2, 120), ("cs_b", 1, 60), ("cs_c", 1, -7)] {
            let event = event(tx, scope, object, sequence);
            deliveries::insert(tx, &Delivery::owed(&event, well, before(seconds)))?;
        }
        let event = event(tx, scope, "cs_d", 1);
        deliveries::insert(tx, &Delivery::owed(&event, later, before(-5)))?;
        Ok::<_, Error>(([dead, well, later], [before(500), before(90), before(-5)]))
    });
    let ([dead, well, later], [first, ninety, soon]) = owed.await.unwrap();
    let look = async |but: Vec<Id<WebhookEndpoint>>| {
        let look = store.write(move |tx| Ok::<_, Error>((deliveries::next_due(tx, &but)?, due(tx, 32, &but)?)));
        let (next, due) = look.await.unwrap();
        (next, due.into_iter().flat_map(|due| vec![due.endpoint; due.events.len()]).collect::<Vec<_>>())
    };
    assert_eq!(look(Vec::new()).await, (Some(first), [vec![dead; 30], vec![well; 2]].concat()));
    assert_eq!(look(vec![dead]).await, (Some(ninety), vec![well; 2]));
    assert_eq!(look(vec![dead, well]).await, (Some(soon), Vec::new()));
    assert_eq!(look(vec![dead, well, later]).await, (None, Vec::new()));
    // What is left of the well one is due after the other's.
    let held = store.write(move |tx| {
        let until = tx.now().plus(LEASE);
        let due = due(tx, 32, &[dead])?;
        due.iter().map(|due| deliveries::lease(tx, due, until)).collect::<Result<Vec<_>, Error>>()
    });
    let objects: Vec<_> = held.await.unwrap().into_iter().flatten().map(|held| held.delivery.object_id).collect();
    assert_eq!(objects, ["cs_a", "cs_b"]);
    assert_eq!(look(vec![dead]).await, (Some(soon), Vec::new()));
    store.close().await;
}

/// It takes webhooks again, and quickly: what others are owed just now doesn't wait until it has them all.
async fn who_is_owed_much_leaves_the_others_a_share(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let owed = store.write(|tx| {
        let now = tx.now();
        let scope = Scope { organization: tx.entropy().id(now), mode: Mode::Test };
        let [much, others @ ..]: [Id<WebhookEndpoint>; 6] = std::array::from_fn(|_| tx.entropy().id(now));
        for number in 0..200 {
            let event = event(tx, scope, &format!("cs_{number}"), 1);
            let due_at = Timestamp::from_micros(now.micros() - (200 - number) * 1_000_000);
            deliveries::insert(tx, &Delivery::owed(&event, much, due_at))?;
        }
        for other in others {
            let event = event(tx, scope, "cs_now", 1);
            deliveries::insert(tx, &Delivery::owed(&event, other, now))?;
        }
        Ok::<_, Error>((much, others))
    });
    let (much, others) = owed.await.unwrap();
    let found = async |limit: usize, line: Vec<Id<WebhookEndpoint>>| {
        store.write(move |tx| deliveries::due(tx, limit, &line, &mut Vec::new(), false)).await.unwrap()
    };
    let counts = |found: &[Due]| found.iter().map(|due| (due.endpoint, due.events.len())).collect::<Vec<_>>();
    let mut line = store.read(deliveries::endpoints_due).await.unwrap();
    assert_eq!((line.len(), line[0]), (6, much));
    let shared = found(32, line.clone()).await;
    let mut claimed = counts(&shared);
    assert_eq!(claimed[0], (much, 27), "what the others leave");
    claimed[1..].sort_unstable();
    let mut ones = others.map(|other| (other, 1_usize));
    ones.sort_unstable();
    assert_eq!(claimed[1..], ones);
    // In its own order, and all of it where nobody else is in line.
    let alone = found(32, vec![much]).await;
    assert_eq!(counts(&alone), [(much, 32)]);
    assert_eq!(alone[0].events[..27], shared[0].events);
    // Where there is less room, the line decides.
    assert_eq!(counts(&found(9, line.clone()).await), [(much, 8), (line[1], 1)]);
    line.rotate_left(1);
    assert_eq!(counts(&found(2, line.clone()).await), [(line[0], 1), (line[1], 1)]);
    store.close().await;
}

/// When the deliveries of the object with two events are due.
/// Whatever else is open: no look is longer than a part.
async fn what_is_given_up_is_looked_for_by_parts(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let (scope, endpoint, until) = store
        .write(|tx| {
            let now = tx.now();
            let organization: Id<Organization> = tx.entropy().id(now);
            let (scope, endpoint) = (Scope { organization, mode: Mode::Test }, tx.entropy().id(now));
            // Those of before are due last.
            for number in 0..1_210_u64 {
                let is_of_before = number >= 1_200;
                let created_at = now.plus(Duration::from_secs(if is_of_before { 0 } else { 60 }));
                let due_at = now.plus(Duration::from_secs(number / 100));
                let (id, object_id) = (tx.entropy().id(created_at), format!("cs_{number}"));
                let (kind, body) = (EventType::CheckoutCancelled, "{}".to_owned());
                let event = Event { id, scope, kind: kind.into(), object_id, sequence: 1, body, created_at };
                deliveries::insert(tx, &Delivery::owed(&event, endpoint, due_at))?;
            }
            Ok::<_, Error>((scope, endpoint, now))
        })
        .await
        .unwrap();
    let (mut after, mut open) = (None, Vec::new());
    loop {
        let from = after.clone();
        let part = move |tx: &mut Tx<'_>| endpoints::give_up_part(tx, scope, endpoint, Some(until), from.as_ref());
        after = store.write(part).await.unwrap();
        open.push(world.count("webhook_deliveries where status = 'pending'").await);
        if after.is_none() {
            break;
        }
    }
    assert_eq!(open, [1_210, 1_210, 1_200]);
    // Of one that is inactive everything is, and so the next part is what is left.
    let part = move |tx: &mut Tx<'_>| endpoints::give_up_part(tx, scope, endpoint, None, None);
    for left in [700, 200, 0] {
        assert_eq!(store.write(part).await.unwrap().is_some(), left > 0);
        assert_eq!(world.count("webhook_deliveries where status = 'pending'").await, left);
    }
    store.close().await;
}
