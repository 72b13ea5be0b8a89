//! What was owed while a clock was ahead is not lost until then.

use std::time::Duration;

use domain::event::{Event, EventType};
use domain::webhook::{Delivery, EndpointStatus, EventFilter, WebhookEndpoint, longest_wait};
use domain::{Id, Metadata, Mode, Scope, Timestamp};
use store::queries::deliveries;
use store::{Error, Schema, Tx};

use crate::on_both;
use crate::world::World;

on_both!(
    what_a_clock_that_was_ahead_put_off_is_due_again,
    what_was_put_off_too_far_is_brought_back_by_parts,
    what_is_being_given_up_stays_where_it_is_looked_for,
);

const YEARS: Duration = Duration::from_secs(20 * 365 * 24 * 3600);

fn scope(tx: &mut Tx<'_>) -> Scope {
    let now = tx.now();
    Scope { organization: tx.entropy().id(now), mode: Mode::Test }
}

/// An event of an object, owed to an endpoint at that time.
fn owe(
    tx: &mut Tx<'_>,
    scope: Scope,
    endpoint: Id<WebhookEndpoint>,
    (object, sequence): (&str, i64),
    due_at: Timestamp,
) -> Result<Id<Event>, Error> {
    let now = tx.now();
    let (id, kind, body) = (tx.entropy().id(now), EventType::CheckoutCancelled.into(), "{}".to_owned());
    let event = Event { id, scope, kind, object_id: object.to_owned(), sequence, body, created_at: now };
    deliveries::insert(tx, &Delivery::owed(&event, endpoint, due_at))?;
    Ok(id)
}

fn due_at(tx: &mut Tx<'_>, scope: Scope, event: Id<Event>) -> Result<Option<Timestamp>, Error> {
    Ok(deliveries::of_event(tx, scope, event)?.remove(0).next_retry_at)
}

/// All that comes of its object waits behind it, and it is no more than what it was put off for.
async fn what_a_clock_that_was_ahead_put_off_is_due_again(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let looked = store.write(|tx| {
        let (now, scope) = (tx.now(), scope(tx));
        let [one, other, well]: [Id<WebhookEndpoint>; 3] = std::array::from_fn(|_| tx.entropy().id(now));
        let far = now.plus(YEARS);
        let put_off = owe(tx, scope, one, ("cs_one", 1), far)?;
        let behind = owe(tx, scope, one, ("cs_one", 2), far)?;
        let others = owe(tx, scope, other, ("cs_one", 1), far)?;
        let latest = now.plus(longest_wait() * 2);
        let waits = owe(tx, scope, one, ("cs_two", 1), latest)?;
        let of_well = owe(tx, scope, well, ("cs_three", 1), now.plus(longest_wait()))?;
        assert_eq!(deliveries::endpoints_due(tx)?, []);

        assert!(!deliveries::bring_back(tx)?, "all of it was one part");
        for event in [put_off, behind, others] {
            let brought = deliveries::of_event(tx, scope, event)?.remove(0);
            assert_eq!((brought.next_retry_at, brought.updated_at, brought.attempts), (Some(now), Some(now), 0));
        }
        assert_eq!(
            due_at(tx, scope, waits)?,
            Some(latest),
            "a clock that is a little behind takes nothing for too late"
        );
        assert_eq!(due_at(tx, scope, of_well)?, Some(now.plus(longest_wait())));
        let mut due = deliveries::endpoints_due(tx)?;
        due.sort_unstable();
        let mut expected = [one, other];
        expected.sort_unstable();
        assert_eq!(due, expected);
        // The first of each object, as ever.
        let found = deliveries::due(tx, 10, &expected, &mut Vec::new(), false)?;
        let mut events: Vec<_> = found.into_iter().flat_map(|due| due.events).collect();
        events.sort_unstable();
        let mut firsts = [put_off, others];
        firsts.sort_unstable();
        assert_eq!(events, firsts);
        Ok::<_, Error>(())
    });
    looked.await.unwrap();
    let arrived = "update webhook_deliveries set status = 'delivered', updated_at = 9, next_retry_at = $1";
    let looked = store.write(move |tx| {
        tx.execute(arrived, &[tx.now().plus(YEARS).micros().into()])?;
        deliveries::bring_back(tx)?;
        let changed = tx.query_one("select max(updated_at) as changed from webhook_deliveries", &[])?;
        changed.get::<i64>("changed")
    });
    assert_eq!(looked.await, Ok(9), "what has ended is over");
    store.close().await;
}

async fn what_was_put_off_too_far_is_brought_back_by_parts(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let owed = store.write(|tx| {
        let (now, scope) = (tx.now(), scope(tx));
        let endpoints: [Id<WebhookEndpoint>; 2] = std::array::from_fn(|_| tx.entropy().id(now));
        for number in 0..600 {
            let object = format!("cs_{number}");
            for endpoint in endpoints {
                owe(tx, scope, endpoint, (&object, 1), now.plus(YEARS))?;
            }
        }
        Ok::<_, Error>(())
    });
    owed.await.unwrap();
    let mut left = Vec::new();
    loop {
        let goes_on = store.write(deliveries::bring_back).await.unwrap();
        let count = store.read(|tx| {
            let sql = "select count(*) as far from webhook_deliveries where next_retry_at > $1";
            tx.query_one(sql, &[tx.now().plus(YEARS / 2).micros().into()])?.get::<i64>("far")
        });
        left.push(count.await.unwrap());
        if !goes_on {
            break;
        }
    }
    assert_eq!(left, [700, 200, 0]);
    store.close().await;
}

/// By the times of its next tries; or it would be sent after its merchant was told that it is not.
async fn what_is_being_given_up_stays_where_it_is_looked_for(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let looked = store.write(|tx| {
        let (now, scope) = (tx.now(), scope(tx));
        let mut endpoint = endpoint(scope, tx.entropy().id(now), now);
        tx.insert(&mut endpoint)?;
        let far = now.plus(YEARS);
        let event = owe(tx, scope, endpoint.id, ("cs_one", 1), far)?;
        deliveries::bring_back(tx)?;
        assert_eq!(due_at(tx, scope, event)?, Some(far));
        let mut endpoint = tx.find::<WebhookEndpoint>(scope, endpoint.id)?.unwrap();
        endpoint.giving_up = None;
        tx.save(&mut endpoint)?;
        deliveries::bring_back(tx)?;
        assert_eq!(due_at(tx, scope, event)?, Some(now));
        Ok::<_, Error>(())
    });
    looked.await.unwrap();
    store.close().await;
}

/// Active again, before all of what it was owed is marked as given up.
pub(crate) fn endpoint(scope: Scope, id: Id<WebhookEndpoint>, now: Timestamp) -> WebhookEndpoint {
    WebhookEndpoint {
        id,
        scope,
        version: 0,
        url: "https://shop.example/hook".into(),
        description: None,
        enabled_events: vec![EventFilter::parse("*").unwrap()],
        status: EndpointStatus::Active,
        secret: "1:2:3".into(),
        previous_secret: None,
        later_secrets: Vec::new(),
        metadata: Metadata::default(),
        consecutive_failures: 0,
        failing_since: None,
        last_success_at: None,
        last_failure_at: None,
        disabled_at: None,
        disable_reason: None,
        giving_up: Some(now),
        given_up_to: None,
        created_at: now,
        updated_at: now,
    }
}
