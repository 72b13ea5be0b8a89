//! Requests that come with one key: how they are known again, and how many wait for the first.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use dalasi::app::Context;
use dalasi::app::idempotency::Reply;
use dalasi::error::Failure;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use store::Tx;
use store::queries::idempotency::{self, IdempotencyKey};

use super::{Merchant, invoice};
use crate::cli::place::Place;
use crate::world::World;

/// Contract §2.2 rule 4: a code is never stored. It is in the body, and whoever has the database could hash a body with each of a
/// million codes.
#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_not_found_by_the_fingerprint_of_its_request() {
    for place in Place::each("a code is not found by the fingerprint of its request").await {
        let world = World::on(place.settings()).await;
        let merchant = Merchant::of(&world).await;
        let (_, object) = invoice(&merchant).await;
        let (_, begun) = merchant.pay(&object, "qmoney", "+2207000000").await;
        let body = json!({ "session_id": begun["data"]["id"], "customer_pin": "000000" });
        let submit = || merchant.ask_with_key(Some("once"), "POST", "/v1/pay/initialize", body.clone());
        let first = submit().await;
        assert_eq!((first.0, first.1["data"]["next_action"]["attempts_left"].as_u64()), (200, Some(2)), "{}", first.1);

        let canonical = format!(r#"{{"customer_pin":"000000","session_id":{}}}"#, body["session_id"]);
        let plain = digest(&SHA256, format!("POST\n/v1/pay/initialize\n{canonical}").as_bytes()).as_ref().to_vec();
        let stored = fingerprint(&world).await;
        assert_eq!(stored.len(), plain.len());
        assert_ne!(stored, plain);
        assert_eq!(submit().await, first, "a retry is told from another request all the same");
        // The versions before stored that, and may still do so in a process beside this one.
        store(&world, plain).await;
        assert_eq!(submit().await, first);
        store(&world, vec![7; 32]).await;
        let (status, refused) = submit().await;
        assert_eq!((status, refused["code"].as_str()), (400, Some("idempotency_key_reused")), "{refused}");
        world.has_clean_books().await;
        world.close().await;
        place.end().await;
    }
}

/// Each is a request that is worked on meanwhile. Told by nobody, as where another process ends the first, they look for it; that
/// they need not look within one process `sim/tests/key_waits.rs` shows.
#[tokio::test(flavor = "multi_thread")]
async fn few_wait_for_a_key_that_is_running() {
    const MOST: usize = 8;
    for place in Place::each("few wait for a key that is running").await {
        let world = World::on(place.settings()).await;
        let key = IdempotencyKey {
            scope: world.scope,
            space: IdempotencyKey::MERCHANT_SPACE.to_owned(),
            key: "once".to_owned(),
            fingerprint: vec![7; 32],
            former_fingerprint: None,
            sets_state: false,
        };
        let left = key.clone();
        let left = world.app.store().write(move |tx| {
            idempotency::claim(tx, &left)?;
            idempotency::leave(tx, &left)
        });
        left.await.unwrap();
        let come = |_| {
            let command = |_: &mut Tx<'_>, _: &Context| Ok(());
            world.app.write(Some(key.clone()), command, |_: Result<&(), &Failure>| Reply::new(201, "null".to_owned()))
        };
        let mut all: FuturesUnordered<_> = (0..MOST + 3).map(come).collect();
        for _ in 0..3 {
            let refused = tokio::time::timeout(Duration::from_secs(5), all.next()).await;
            assert_eq!(refused.expect("at once"), Some(Err(Failure::KeyInUse)));
        }
        let freed = key.clone();
        world.app.store().write(move |tx| idempotency::release(tx, &freed)).await.unwrap();
        let mut done = 0;
        for _ in 0..MOST {
            let told = tokio::time::timeout(Duration::from_secs(5), all.next()).await.expect("it looks");
            let reply = told.unwrap().unwrap();
            assert_eq!(reply.status, 201);
            done += usize::from(!reply.replayed);
        }
        assert_eq!(done, 1);
        drop(all);
        world.has_clean_books().await;
        world.close().await;
        place.end().await;
    }
}

async fn fingerprint(world: &World) -> Vec<u8> {
    const READ: &str = "select fingerprint from idempotency_keys where idempotency_key = 'once'";
    world.app.read(|tx, _| Ok(tx.query_one(READ, &[])?.get("fingerprint")?)).await.unwrap()
}

async fn store(world: &World, fingerprint: Vec<u8>) {
    const WRITE: &str = "update idempotency_keys set fingerprint = $1 where idempotency_key = 'once'";
    let written = world.app.commit(move |tx, _| Ok(tx.execute(WRITE, &[fingerprint.as_slice().into()])?)).await;
    assert_eq!(written, Ok(1));
}
