//! Events as a merchant reads them.

use std::time::Duration;

use dalasi::app::delivery_places::Places;
use dalasi::app::webhooks;
use dalasi::error::Failure;
use domain::Id;
use domain::checkout::Checkout;
use domain::event::{Event, EventType};
use domain::webhook::Delivery;
use serde_json::Value;
use store::Error;
use store::queries::{deliveries, events};

use crate::cli::place::Place;
use crate::endpoints::endpoint;
use crate::starts::Merchant;
use crate::world::World;

/// Lost, or altered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_with_a_damaged_body_hides_none_around_it() {
    for place in Place::each("an event with a damaged body").await {
        let world = World::on(place.settings()).await;
        world.rest().await;
        endpoint(&world).await;
        for _ in 0..4 {
            let checkout = world.create(|_| {}).await;
            world.cancel(checkout.id).await;
        }
        while world.app.commit(|tx, _| Ok(events::number(tx, 100)?)).await.unwrap() > 0 {}
        let merchant = Merchant::of(&world).await;
        let listed = async |query: &str| {
            let (status, answer) = merchant.ask("GET", &format!("/v1/events?{query}"), Value::Null).await;
            assert_eq!(status, 200, "{answer}");
            let items = answer["data"]["items"].as_array().unwrap();
            let ids = items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
            (ids, answer["data"]["has_more"].as_bool().unwrap())
        };
        let (all, _) = listed("order=asc").await;
        let [first, damaged, empty, last] = all.as_slice() else { panic!("{all:?}") };
        for (id, body) in [(damaged, "{"), (empty, "")] {
            let values = [id.into(), body.into()];
            let altered =
                world.app.commit(move |tx, _| Ok(tx.execute("update events set body = $2 where id = $1", &values)?));
            assert_eq!(altered.await, Ok(1));
        }

        assert_eq!(listed("").await, (vec![last.clone(), first.clone()], false));
        assert_eq!(listed("order=asc").await, (vec![first.clone(), last.clone()], false));
        // Whoever takes one at a time gets past both.
        assert_eq!(listed(&format!("limit=1&after={last}")).await, (vec![first.clone()], false));
        assert_eq!(listed("order=asc&limit=1").await, (vec![first.clone()], true));
        assert_eq!(listed(&format!("order=asc&limit=1&after={first}")).await, (vec![last.clone()], false));
        assert_eq!(listed(&format!("order=asc&limit=1&after={last}")).await, (Vec::new(), false));

        // Nor does a delivery hide its event.
        let values = [first.into()];
        let altered = world.app.commit(move |tx, _| {
            Ok(tx.execute("update webhook_deliveries set attempts = -1 where event_id = $1", &values)?)
        });
        assert_eq!(altered.await, Ok(1));
        assert_eq!(listed("").await, (vec![last.clone(), first.clone()], false));

        // Who asks for it itself is told that it is our fault, in order.
        let (scope, id): (_, Id<Event>) = (world.scope, damaged.parse().unwrap());
        let shown = world.app.read(move |tx, _| webhooks::event(tx, scope, id)).await;
        assert!(matches!(&shown, Err(Failure::Store(Error::Corrupt(why))) if why.contains(damaged)), "{shown:?}");
        let retried = world.app.commit(move |tx, _| webhooks::retry(tx, scope, id, None)).await;
        assert!(matches!(&retried, Err(Failure::Store(Error::Corrupt(why))) if why.contains(damaged)), "{retried:?}");
        let (status, answer) = merchant.ask("GET", &format!("/v1/events/{damaged}"), Value::Null).await;
        assert_eq!((status, answer["code"].as_str()), (500, Some("internal_error")), "{answer}");
        world.app.store().close().await;
        place.end().await;
    }
}

/// What happens to its object later waits behind it.
#[tokio::test]
async fn a_damaged_event_is_given_up_and_keeps_nothing_behind_it_waiting() {
    for place in Place::each("a damaged event is given up").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        let (scope, endpoint) = (world.scope, endpoint(&world).await);
        let owed = world.app.commit(move |tx, _| {
            let now = tx.now();
            let object = tx.entropy().id::<Checkout>(now).to_string();
            let mut owed = Vec::new();
            for sequence in [1, 2, 3] {
                let (id, object_id) = (tx.entropy().id(now), object.clone());
                let (kind, body) = (EventType::CheckoutCancelled, r#"{"data":{"amount":"1.00"}}"#.to_owned());
                let event = Event { id, scope, kind: kind.into(), object_id, sequence, body, created_at: now };
                events::append(tx, &event)?;
                deliveries::insert(tx, &Delivery::owed(&event, endpoint, now))?;
                owed.push(id);
            }
            let damaged = "update events set body = replace(body, '1.00', '3.00') where id = $1 or id = $2";
            assert_eq!(tx.execute(damaged, &[owed[0].to_string().into(), owed[1].to_string().into()])?, 2);
            Ok(owed)
        });
        let owed = owed.await.unwrap();
        let mut claimed = Vec::new();
        for _ in 0..3 {
            let more = world.app.commit(|tx, _| {
                let until = tx.now().plus(Duration::from_secs(30));
                webhooks::claim(tx, 32, until, &mut Places::default())
            });
            claimed.extend(more.await.unwrap().into_iter().map(|dispatch| dispatch.event.id));
        }
        assert_eq!(claimed, [owed[2]]);
        let ends = world.app.read(move |tx, _| {
            let told = "select status, last_error from webhook_deliveries order by sequence";
            let end = |row: &store::Row| Ok((row.get::<String>("status")?, row.get::<Option<String>>("last_error")?));
            Ok(tx.query(told, &[])?.iter().map(end).collect::<Result<Vec<_>, Error>>()?)
        });
        let why = Some("The event is damaged where it is stored and can't be sent.".to_owned());
        let given_up = ("failed".to_owned(), why);
        assert_eq!(ends.await.unwrap(), [given_up.clone(), given_up, ("pending".to_owned(), None)]);
        world.app.store().close().await;
        place.end().await;
    }
}
