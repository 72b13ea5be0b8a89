//! Who is asking, where the matrix of all credentials looks at single requests: what is remembered of a key, how often somebody may
//! guess, and what a key's use leaves behind.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use axum::Router;
use axum::http::{Method, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dalasi::app::keys::{self, CreatedKey};
use dalasi::credentials;
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self as api, Api};
use dalasi::listener::ClientAddress;
use dalasi::metrics;
use dalasi::rate_limit::Rate;
use dalasi::tokens::parse_key_set;
use domain::Mode;
use domain::api_key::{ApiKey, KeyKind, Rights};
use serde_json::{Value, json};
use store::queries::api_keys;
use tower::ServiceExt as _;

use crate::authorization::tenants::{Answered, new_key, request};
use crate::world::World;

/// Longer than a key is remembered without being looked up.
const FORGOTTEN: Duration = Duration::from_millis(1_100);
const BALANCE: &str = "/v1/payouts/balance";

struct Door {
    world: World,
    router: Router,
}

impl Door {
    async fn new(per_second: u32) -> Self {
        let world = World::new().await;
        let api = Api::new(world.app.clone(), Rate::new(per_second), metrics::install());
        let router = envelope::wrap(api::router(api), EdgeSettings::default());
        Self { world, router }
    }

    async fn key(&self, rights: &str) -> CreatedKey {
        new_key(&self.world, self.world.scope, KeyKind::Secret, Rights::parse(rights).unwrap()).await
    }

    async fn ask(&self, from: u8, bearer: &str) -> StatusCode {
        let mut request = request(&Method::GET, BALANCE, Some(bearer), None);
        request.extensions_mut().insert(ClientAddress(IpAddr::V4(Ipv4Addr::new(192, 0, 2, from))));
        self.router.clone().oneshot(request).await.unwrap().status()
    }

    /// With keys that nobody has, until it is stopped: after how many.
    async fn guess(&self, from: u8) -> usize {
        for seed in 0..20 {
            let wrong = credentials::ApiKey::generate(KeyKind::Secret, Mode::Test, &[seed; 32]);
            match self.ask(from, wrong.expose()).await {
                StatusCode::UNAUTHORIZED => {}
                StatusCode::TOO_MANY_REQUESTS => return seed.into(),
                other => panic!("a wrong key is answered {other}"),
            }
        }
        panic!("nobody stops it")
    }

    async fn token(&self, key: &CreatedKey, body: &Value) -> Answered {
        let request = request(&Method::POST, "/v1/auth/token", Some(key.text.expose()), Some(body));
        Answered::of(self.router.clone().oneshot(request).await.unwrap()).await
    }
}

#[tokio::test]
async fn a_key_and_its_tokens_end_together_within_a_second() {
    let door = Door::new(0).await;
    let key = door.key("read:payouts").await;
    let made = door.token(&key, &json!({})).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let token = made.json()["data"]["access_token"].as_str().unwrap().to_owned();
    for bearer in [key.text.expose(), &token] {
        assert_eq!(door.ask(1, bearer).await, 200);
    }
    let (scope, id) = (door.world.scope, key.key.id);
    door.world.app.commit(move |tx, _| keys::revoke(tx, scope, id)).await.unwrap();
    tokio::time::sleep(FORGOTTEN).await;
    for bearer in [key.text.expose(), &token] {
        assert_eq!(door.ask(1, bearer).await, 401);
    }
}

/// Or every other process refuses it as one from the future, and this one takes tokens for too old.
#[tokio::test]
async fn a_token_is_dated_by_the_machine_though_its_clock_was_ahead() {
    let door = Door::new(0).await;
    let key = door.key("read:payouts").await;
    // For longer than it is good for.
    door.world.clock.advance(Duration::from_secs(7_200));
    let made = door.token(&key, &json!({"expires_in": 3_600})).await.json();
    let token = made["data"]["access_token"].as_str().unwrap();
    let claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap()).unwrap();
    let ahead = door.world.now().seconds() - claims["iat"].as_i64().unwrap();
    assert!((7_190..=7_230).contains(&ahead), "{ahead} s behind business time, which is two hours ahead");
    assert_eq!(door.ask(1, token).await, 200);
}

#[tokio::test]
async fn a_token_may_do_a_part_of_what_its_key_may() {
    let door = Door::new(0).await;
    let key = door.key("read:payouts read:checkouts").await;
    let part = door.token(&key, &json!({"scope": "read:payouts"})).await;
    assert_eq!((part.status, &part.json()["data"]["scope"]), (StatusCode::OK, &json!("read:payouts")));
    for wider in ["write:checkouts", "read:payouts write:checkouts"] {
        let refused = door.token(&key, &json!({"scope": wider})).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
    }
}

#[tokio::test]
async fn what_tokens_and_receipts_are_signed_with_is_published() {
    let door = Door::new(0).await;
    let key = door.key("read:payouts").await;
    let made = door.token(&key, &json!({})).await.json();
    let token = made["data"]["access_token"].as_str().unwrap();
    for path in ["/.well-known/jwks.json", "/.well-known/receipt-keys.json"] {
        let published =
            Answered::of(door.router.clone().oneshot(request(&Method::GET, path, None, None)).await.unwrap());
        let keys = parse_key_set(&published.await.body).unwrap();
        assert!(!keys.is_empty(), "{path}");
        let head = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
        let head: Value = serde_json::from_slice(&head).unwrap();
        assert!(keys.iter().any(|key| head["kid"] == key.id()), "{path} has not the key of {head}");
    }
}

#[tokio::test]
async fn a_key_of_one_mode_is_none_of_the_other() {
    let door = Door::new(0).await;
    let made = door.key("read:payouts").await.key;
    // As nobody can make one, but a database that is not ours alone could hold one.
    let of_live = credentials::ApiKey::generate(KeyKind::Secret, Mode::Live, &[9; 32]);
    let text = of_live.expose().to_owned();
    let stored = door.world.app.commit(move |tx, context| {
        let now = tx.now();
        let digest = of_live.digest(&context.api_key_pepper);
        let mut key = ApiKey { id: tx.entropy().id(now), version: 0, digest, ..made.clone() };
        tx.insert(&mut key)?;
        Ok(())
    });
    stored.await.unwrap();
    assert_eq!(door.ask(1, &text).await, 401);
}

#[tokio::test]
async fn an_address_guesses_so_often_and_keys_that_are_right_are_no_guesses() {
    let door = Door::new(1).await;
    let (first, second) = (door.key("read:payouts").await, door.key("read:payouts").await);
    for known in [&first, &second] {
        assert_eq!(door.ask(1, known.text.expose()).await, 200);
    }
    assert!(door.guess(2).await > 0, "somebody may be wrong once");
    for known in [&first, &second] {
        assert_eq!(door.ask(2, known.text.expose()).await, 200, "who knows them need not guess");
    }
    let mut is_refused = false;
    for _ in 0..5 {
        // Right as it is, it is not even looked up: not within the moment until the next may be.
        let unknown = door.key("read:payouts").await;
        door.guess(2).await;
        is_refused |= door.ask(2, unknown.text.expose()).await == 429;
    }
    assert!(is_refused);
    for _ in 0..10 {
        let right = door.key("read:payouts").await;
        assert_eq!(door.ask(3, right.text.expose()).await, 200);
    }
}

#[tokio::test]
async fn the_use_of_a_key_is_written_down() {
    let door = Door::new(0).await;
    let key = door.key("read:payouts").await;
    assert_eq!(door.ask(1, key.text.expose()).await, 200);
    door.world.app.write_key_uses().await.unwrap();
    let (scope, id) = (door.world.scope, key.key.id);
    let used = door.world.app.read(move |tx, _| Ok(api_keys::last_used(tx, scope, id)?)).await;
    assert!(used.unwrap().is_some());
}
