//! What waits behind another of its object is looked for by nobody, and is called when its turn comes.

use std::time::Duration;

use domain::webhook::{Delivery, WebhookEndpoint};
use domain::{Id, Scope, Timestamp};
use store::queries::deliveries;
use store::{Error, Schema, Store};

use crate::deliveries::{LEASE, SUCCEEDED, claim, event, failed, finish, names, of_one, owe, retry, sequences};
use crate::on_both;
use crate::world::{World, raw_postgres};

on_both!(
    who_waits_for_one_that_fails_is_passed_over_no_more,
    those_that_waited_are_called_one_after_the_other,
    what_comes_behind_another_waits_to_be_called,
    however_many_wait_the_first_alone_is_written,
    what_nobody_called_is_found,
);

/// When what waits to be called is due.
const WAITS: i64 = 253_402_207_199_000_000;

async fn due_times(store: &Store) -> Vec<i64> {
    let times = store.read(|tx| {
        let sql = "select next_retry_at from webhook_deliveries \
            where object_id = 'cs_one' and status = 'pending' order by sequence";
        tx.query(sql, &[])?.iter().map(|row| row.get(0)).collect::<Result<Vec<i64>, Error>>()
    });
    times.await.unwrap()
}

async fn who_waits_for_one_that_fails_is_passed_over_no_more(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    owe(&store).await;
    let first = of_one(claim(&store, LEASE).await).remove(0);
    assert!(finish(&store, first.clone(), failed()).await);
    // Nothing of the object is due before the next try.
    let due = due_times(&store).await;
    assert!(due.len() == 2 && due[0] < WAITS && due[1] == WAITS, "{due:?}");
    assert_eq!(sequences(&of_one(claim(&store, LEASE).await)), [] as [i64; 0]);
    // By hand it is tried at once; what waited for it comes as soon as it has arrived.
    retry(&store, &first.delivery).await;
    let again = of_one(claim(&store, LEASE).await);
    assert_eq!(sequences(&again), [1]);
    assert!(finish(&store, again[0].clone(), SUCCEEDED).await);
    let second = of_one(claim(&store, LEASE).await);
    assert_eq!(sequences(&second), [2]);
    // One that has failed by itself is not called before its time.
    assert!(finish(&store, second[0].clone(), failed()).await);
    assert_eq!(sequences(&of_one(claim(&store, LEASE).await)), [] as [i64; 0]);
    store.close().await;
}

async fn those_that_waited_are_called_one_after_the_other(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let endpoint = owe(&store).await;
    let first = of_one(claim(&store, LEASE).await).remove(0);
    publish(&store, endpoint, first.delivery.scope, "cs_one", 3).await;
    assert!(finish(&store, first.clone(), failed()).await);
    let (due, put_off) = (due_times(&store).await, changes(&store).await);
    assert!(due.len() == 3 && due[0] < WAITS && due[1..] == [WAITS; 2], "{due:?}");
    retry(&store, &first.delivery).await;
    let again = of_one(claim(&store, LEASE).await).remove(0);
    assert!(finish(&store, again, SUCCEEDED).await);
    let called = due_times(&store).await;
    assert!(called.len() == 2 && called[0] < due[0] && called[1] == WAITS, "{called:?} {due:?}");
    assert!(changes(&store).await > put_off, "who looks for what has changed finds it");
    // One that fails keeps the next waiting.
    let second = of_one(claim(&store, LEASE).await);
    assert_eq!(sequences(&second), [2]);
    assert!(finish(&store, second[0].clone(), failed()).await);
    assert_eq!(sequences(&of_one(claim(&store, LEASE).await)), [] as [i64; 0]);
    retry(&store, &second[0].delivery).await;
    let second = of_one(claim(&store, LEASE).await).remove(0);
    assert!(finish(&store, second, SUCCEEDED).await);
    let third = of_one(claim(&store, LEASE).await);
    assert_eq!(sequences(&third), [3]);
    store.close().await;
}

/// A look would pass over it otherwise, and over all that come after it.
async fn what_comes_behind_another_waits_to_be_called(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let endpoint = owe(&store).await;
    let first = of_one(claim(&store, LEASE).await).remove(0);
    let scope = first.delivery.scope;
    publish(&store, endpoint, scope, "cs_one", 3).await;
    assert_eq!(due_times(&store).await[1..], [WAITS; 2]);
    assert!(finish(&store, first.clone(), failed()).await);
    publish(&store, endpoint, scope, "cs_one", 4).await;
    let due = due_times(&store).await;
    assert_eq!(due[1..], [WAITS; 3]);
    // Shown is when its object is tried again.
    let shown = store.read(move |tx| {
        let sql = "select event_id from webhook_deliveries where object_id = 'cs_one' and sequence = 4";
        let event = tx.query_one(sql, &[])?.get::<String>(0)?.parse().unwrap();
        Ok::<_, Error>(deliveries::of_event(tx, scope, event)?.remove(0).next_retry_at.map(Timestamp::micros))
    });
    assert_eq!(shown.await.unwrap(), Some(due[0]));
    // Another object's waits for none of them, nor does the first of one.
    publish(&store, endpoint, scope, "cs_three", 1).await;
    let held = claim(&store, LEASE).await;
    assert!(names(&held).contains(&("cs_three".into(), 1)), "{held:?}");
    assert_eq!(sequences(&of_one(held)), [] as [i64; 0]);
    let next = store.read(move |tx| deliveries::next_due(tx, &[])).await.unwrap();
    assert_eq!(next.map(Timestamp::micros), Some(due[0]), "nobody looks for what waits to be called");
    store.close().await;
}

/// Whoever changes an object again and again beside a receiver that is away must not make each attempt dearer than the one before.
async fn however_many_wait_the_first_alone_is_written(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let endpoint = owe(&store).await;
    let mut held = of_one(claim(&store, LEASE).await).remove(0);
    let scope = held.delivery.scope;
    for sequence in 3..40 {
        publish(&store, endpoint, scope, "cs_one", sequence).await;
    }
    let written = async || {
        let sql = "select count(*) as written from webhook_deliveries where updated_at is not null";
        store.read(|tx| tx.query_one(sql, &[])?.get::<i64>(0)).await.unwrap()
    };
    assert!(finish(&store, held.clone(), failed()).await);
    assert_eq!(written().await, 1, "the one that failed");
    retry(&store, &held.delivery).await;
    held = of_one(claim(&store, LEASE).await).remove(0);
    assert!(finish(&store, held, SUCCEEDED).await);
    assert_eq!(written().await, 2, "and the one that is called");
    store.close().await;
}

/// However many objects are owed something, and whatever else was asked for by hand.
async fn what_nobody_called_is_found(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let endpoint = owe(&store).await;
    let scope = claim(&store, Duration::ZERO).await.remove(0).delivery.scope;
    let many = store.write(move |tx| {
        for number in 0..700 {
            let (now, event) = (tx.now(), event(tx, scope, &format!("cs_{number:03}"), 1));
            deliveries::insert_behind(tx, &Delivery::owed(&event, endpoint, now))?;
        }
        Ok::<_, Error>(())
    });
    many.await.unwrap();
    let uncalled = async || {
        let (mut after, mut all, mut parts) = (Some(deliveries::LookedAt::nothing()), Vec::new(), 0);
        while let Some(from) = after {
            let part = store.read(move |tx| deliveries::uncalled(tx, from.clone())).await.unwrap();
            all.extend(part.0.into_iter().map(|object| object.id));
            (after, parts) = (part.1, parts + 1);
        }
        (all, parts)
    };
    let call = async || {
        let object = deliveries::Object { scope, endpoint, id: "cs_one".to_owned() };
        store.write(move |tx| deliveries::call_forgotten(tx, &object)).await.unwrap()
    };
    assert_eq!(uncalled().await, (vec![], 2));
    assert!(!call().await);
    assert_eq!(due_times(&store).await[1], WAITS, "its turn has not come");
    let end = "update webhook_deliveries set status = 'delivered', next_retry_at = null where object_id = 'cs_one' and sequence = 1";
    store.write(|tx| tx.execute(end, &[])).await.unwrap();
    assert_eq!(uncalled().await, (vec!["cs_one".to_owned()], 2));
    assert!(call().await && !call().await);
    assert_eq!(uncalled().await, (vec![], 2));
    let due = due_times(&store).await;
    assert!(due.len() == 1 && due[0] < WAITS, "{due:?}");
    store.close().await;
}

async fn publish(store: &Store, endpoint: Id<WebhookEndpoint>, scope: Scope, object: &'static str, sequence: i64) {
    let published = store.write(move |tx| {
        let (now, event) = (tx.now(), event(tx, scope, object, sequence));
        deliveries::insert_behind(tx, &Delivery::owed(&event, endpoint, now))
    });
    published.await.unwrap();
}

/// It waits for the one before it, which is just being called.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_published_is_called_with_the_one_before_it() {
    let Some(world) = World::postgres("what_is_being_published_is_called_with_the_one_before_it").await else { return };
    let store = world.try_open(Schema::product()).await.unwrap();
    let endpoint = owe(&store).await;
    let first = of_one(claim(&store, LEASE).await).remove(0);
    assert!(finish(&store, first.clone(), failed()).await);
    let put_off = due_times(&store).await[0];
    retry(&store, &first.delivery).await;
    let again = of_one(claim(&store, LEASE).await).remove(0);

    let (holder, watcher) = (raw_postgres(world.url()).await, raw_postgres(world.url()).await);
    holder
        .batch_execute("begin; select 1 from webhook_deliveries where object_id = 'cs_two' for update")
        .await
        .unwrap();
    let waiting = async |count: i64| {
        let sql =
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        while watcher.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let scope = first.delivery.scope;
    let published = store.write(move |tx| {
        let (now, third) = (tx.now(), event(tx, scope, "cs_one", 3));
        deliveries::insert_behind(tx, &Delivery::owed(&third, endpoint, now))?;
        // It is there, and its transaction goes on for a while.
        tx.execute("update webhook_deliveries set sequence = 1 where object_id = 'cs_two'", &[])
    });
    let finished = async {
        waiting(1).await;
        finish(&store, again, SUCCEEDED).await
    };
    let released = async {
        waiting(2).await;
        holder.batch_execute("rollback").await.unwrap();
    };
    let all = async { tokio::join!(published, finished, released) };
    let (published, is_finished, ()) =
        tokio::time::timeout(Duration::from_secs(14), all).await.expect("each has waited");
    assert_eq!((published.unwrap(), is_finished), (1, true));
    let due = due_times(&store).await;
    assert!(
        due.len() == 2 && due[0] < put_off && due[1] == WAITS,
        "the first is called: {due:?}, put off to {put_off}"
    );
    drop((holder, watcher));
    store.close().await;
    world.end().await;
}

/// When the second of the object's deliveries was changed.
async fn changes(store: &Store) -> i64 {
    let changed = store.read(|tx| {
        let sql = "select coalesce(updated_at, 0) as changed_at from webhook_deliveries \
            where object_id = 'cs_one' and sequence = 2";
        tx.query_one(sql, &[])?.get("changed_at")
    });
    changed.await.unwrap()
}
