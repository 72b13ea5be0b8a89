//! Events as a merchant reads them.

use dalasi::app::webhooks;
use dalasi::error::Failure;
use domain::Id;
use domain::event::Event;
use serde_json::Value;
use store::Error;
use store::queries::events;

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
