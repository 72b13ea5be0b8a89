//! What merchants ask of their webhook endpoints once more, and at once.

use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use dalasi::app::webhooks::{self, MOST_ACTIVE, NewEndpoint};
use dalasi::error::Failure;
use domain::webhook::EventFilter;
use domain::{Metadata, Refusal};
use serde_json::json;
use store::queries::endpoints;
use store::queries::idempotency::ALONE;
use tokio::net::TcpListener;

use crate::cli::place::Place;
use crate::endpoints::endpoint_at;
use crate::starts::Merchant;
use crate::world::{World, hold_up};

/// The server lets no webhooks go to its own machine any more. What was done before that, and whose answer was lost, is done.
#[tokio::test]
async fn an_address_that_is_refused_by_now_is_answered_as_it_was() {
    for place in Place::each("an address that is refused by now").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        let merchant = Merchant::of(&world).await;
        let path = "/v1/webhook_endpoints";
        let new = json!({ "url": "http://127.0.0.1:9/hook", "enabled_events": ["*"] });
        let change = json!({ "url": "http://127.0.0.1:9/other" });
        let (status, _, created) = merchant.told(Some("new"), "POST", path, new.clone()).await;
        assert_eq!(status, 201, "{created}");
        let of_one = format!("{path}/{}", created["data"]["id"].as_str().unwrap());
        let (status, _, changed) = merchant.told(Some("change"), "PATCH", &of_one, change.clone()).await;
        assert_eq!(status, 200, "{changed}");
        world.app.store().close().await;

        let world = World::on(place.settings()).await;
        world.rest().await;
        let merchant = Merchant::of(&world).await;
        let again = merchant.told(Some("new"), "POST", path, new.clone()).await;
        assert_eq!(again, (201, true, created), "with the secret that nobody has yet");
        assert_eq!(merchant.told(Some("change"), "PATCH", &of_one, change.clone()).await, (200, true, changed));
        for key in [None, Some("another")] {
            for (verb, path, body) in [("POST", path, &new), ("PATCH", &*of_one, &change)] {
                let (status, _, refused) = merchant.told(key, verb, path, body.clone()).await;
                assert_eq!((status, refused["details"][0]["code"].as_str()), (400, Some("not_allowed")), "{refused}");
            }
        }
        // It was never taken, whatever is at its key.
        let mut wrong = new.clone();
        wrong["description"] = json!(5);
        let (status, _, refused) = merchant.told(Some("new"), "POST", path, wrong).await;
        assert_eq!((status, refused["details"].as_array().map(Vec::len)), (400, Some(2)), "{refused}");
        world.app.store().close().await;
        place.end().await;
    }
}

/// The process that sent it died before it could say what came of it.
#[tokio::test]
async fn a_test_that_is_sent_once_more_under_its_key_is_the_same_event() {
    for place in Place::each("a test that is sent once more under its key").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        let (named, mut names) = tokio::sync::mpsc::unbounded_channel();
        let app = world.app.clone();
        let take = move |headers: HeaderMap| async move {
            let under_way = app.read(|tx, _| {
                let sql = "select status from idempotency_keys where state = 'running'";
                Ok(tx.query_opt(sql, &[])?.map(|row| row.get::<Option<i64>>("status")).transpose()?)
            });
            named.send((headers["webhook-id"].to_str().unwrap().to_owned(), under_way.await.unwrap())).unwrap();
            StatusCode::NO_CONTENT
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(take)).await });
        let merchant = Merchant::of(&world).await;
        let path = format!("/v1/webhook_endpoints/{}/test", endpoint_at(&world, address).await);
        let mut test = async |key: Option<&str>| {
            let (status, is_replayed, answer) = merchant.told(key, "POST", &path, json!({})).await;
            assert_eq!((status, is_replayed), (200, false), "{answer}");
            let (name, under_way) = names.recv().await.unwrap();
            assert_eq!(under_way, key.map(|_| Some(ALONE)), "so that its key is forgotten if its process dies");
            name
        };
        let first = test(Some("test")).await;
        let died = world.app.commit(|tx, _| {
            let sql = "update idempotency_keys \
                set state = 'running', status = 0, sealed_body = null, created_at = created_at - 61000000 \
                where idempotency_key = 'test'";
            Ok(tx.execute(sql, &[])?)
        });
        assert_eq!(died.await, Ok(1));
        world.has_clean_books().await;
        assert_eq!(test(Some("test")).await, first);
        let others = [test(Some("another")).await, test(None).await, test(None).await];
        assert!(!others.contains(&first) && others[1] != others[2], "{first} {others:?}");
        world.app.store().close().await;
        place.end().await;
    }
}

/// Each counts those that are there, and the other's is not there yet.
#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_are_not_one_too_many() {
    let Some(place) = Place::postgres("two at once are not one too many").await else { return };
    let world = World::complete(place.settings()).await;
    world.rest().await;
    let scope = world.scope;
    let new = NewEndpoint {
        url: "http://127.0.0.1:9/hook".into(),
        enabled_events: vec![EventFilter::parse("*").unwrap()],
        description: None,
        metadata: Metadata::default(),
    };
    let fill = new.clone();
    let filled = world.app.commit(move |tx, context| {
        for _ in 1..MOST_ACTIVE {
            webhooks::create(tx, context, scope, &fill)?;
        }
        Ok(())
    });
    filled.await.unwrap();
    let create = || {
        let new = new.clone();
        world.app.commit(move |tx, context| {
            webhooks::create(tx, context, scope, &new)?;
            // Until the other one has counted as well, if nothing holds it back.
            hold_up(Duration::from_millis(300));
            Ok(())
        })
    };
    let (one, two) = tokio::join!(create(), create());
    let refused = Err(Failure::Refused(Refusal::TooManyActiveEndpoints { most: MOST_ACTIVE }));
    assert!([&one, &two].contains(&&Ok(())) && [&one, &two].contains(&&refused), "{one:?} {two:?}");
    let active = world.app.read(move |tx, _| Ok(endpoints::active(tx, scope)?.count())).await;
    assert_eq!(active, Ok(MOST_ACTIVE));
    world.app.store().close().await;
    place.end().await;
}
