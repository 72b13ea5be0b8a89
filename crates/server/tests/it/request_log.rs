//! Requests as they are answered, as `dalasi logs tail` is told of them: one's own, and nothing that was sent with them.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use dalasi::app::keys::{self, CreatedKey};
use dalasi::http::envelope::EdgeSettings;
use dalasi::http::{self as api, Api};
use dalasi::listener::ClientAddress;
use dalasi::metrics;
use dalasi::rate_limit::Rate;
use domain::api_key::{KeyKind, Rights};
use domain::{Mode, Scope};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::authorization::tenants::{Answered, another_merchant, new_key, request};
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(10);
const ADDRESS: &str = "/v1/requests";
const MOST_READERS: usize = 8;
const MOST_READERS_OF_KEY: usize = 4;
/// Lines that wait for a slow reader.
const KEPT: usize = 256;

struct Service {
    world: World,
    router: Router,
    stop: watch::Sender<bool>,
}

impl Service {
    async fn new() -> Self {
        Self::limited(0).await
    }

    /// To so many requests of a key a second; 0 is no limit.
    async fn limited(per_second: u32) -> Self {
        let world = World::new().await;
        let (stop, stopping) = watch::channel(false);
        let api = Api::new(world.app.clone(), Rate::new(per_second), metrics::install()).stopping_with(stopping);
        let router = api::wrap(api::router(api.clone()), &api, EdgeSettings::default());
        Self { world, router, stop }
    }

    async fn key(&self) -> CreatedKey {
        self.key_of(self.world.scope).await
    }

    async fn key_of(&self, scope: Scope) -> CreatedKey {
        new_key(&self.world, scope, KeyKind::Secret, Rights::all()).await
    }

    async fn response(&self, verb: &Method, path: &str, key: Option<&str>, body: Option<&Value>) -> Response {
        self.router.clone().oneshot(request(verb, path, key, body)).await.unwrap()
    }

    async fn ask(&self, key: &str, verb: Method, path: &str, body: &Value) -> Answered {
        let body = (verb != Method::GET).then_some(body);
        Answered::of(self.response(&verb, path, Some(key), body).await).await
    }

    async fn get(&self, key: &str, path: &str) -> u16 {
        self.ask(key, Method::GET, path, &Value::Null).await.status.as_u16()
    }

    /// Asks until it is too often: what was answered.
    async fn ask_too_often(&self, key: &str) -> Vec<u16> {
        let mut statuses = Vec::new();
        while statuses.last() != Some(&429) {
            let mut request = request(&Method::GET, "/v1/checkouts", Some(key), None);
            request.extensions_mut().insert(ClientAddress(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))));
            statuses.push(self.router.clone().oneshot(request).await.unwrap().status().as_u16());
            assert!(statuses.len() < 20, "nothing is too often: {statuses:?}");
        }
        statuses
    }

    async fn follow(&self, key: &str) -> Tail {
        let response = self.response(&Method::GET, ADDRESS, Some(key), None).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut tail = Tail(response.into_body());
        assert_eq!(tail.piece().await.as_deref(), Some(":\n\n"));
        tail
    }

    /// Of one who may not, or may no more.
    async fn refused(&self, path: &str, key: Option<&str>) -> (u16, String) {
        let answer = Answered::of(self.response(&Method::GET, path, key, None).await).await;
        (answer.status.as_u16(), answer.json()["code"].as_str().unwrap().to_owned())
    }
}

struct Tail(Body);

impl Tail {
    /// Nothing once it has ended.
    async fn piece(&mut self) -> Option<String> {
        let frame = tokio::time::timeout(PATIENCE, self.0.frame()).await.expect("something is told");
        frame.map(|frame| String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap())
    }

    /// All that is told at once.
    async fn told(&mut self) -> Vec<Value> {
        lines(&self.piece().await.expect("it goes on"))
    }
}

fn lines(piece: &str) -> Vec<Value> {
    let data = piece.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn text(key: &CreatedKey) -> &str {
    key.text.expose()
}

#[tokio::test]
async fn requests_are_told_with_what_became_of_them_and_nothing_that_was_sent() {
    let service = Service::new().await;
    let key = service.key().await;
    let mut tail = service.follow(text(&key)).await;
    let order = json!({ "amount": "1.00", "customer_phone": "+2207654321", "customer_name": "Awa Ceesay" });
    let made = service.ask(text(&key), Method::POST, "/v1/checkouts", &order).await;
    let id = made.json()["data"]["id"].as_str().unwrap_or_default().to_owned();
    let cancel = format!("/v1/checkouts/{id}/cancel");
    let mut answers = vec![made];
    for (verb, path, body) in [
        (Method::POST, "/v1/checkouts", json!({ "amount": 1 })),
        (Method::POST, &*cancel, json!({})),
        (Method::POST, &*cancel, json!({})),
        (Method::GET, "/v1/pay/customers?email=awa%40example.gm", Value::Null),
    ] {
        answers.push(service.ask(text(&key), verb, path, &body).await);
    }
    let all = tail.piece().await.unwrap();
    let told = lines(&all);
    assert_eq!(told.len(), answers.len(), "{all}");
    for (line, answer) in told.iter().zip(&answers) {
        assert_eq!(line["status"], answer.status.as_u16());
        assert_eq!(line["request_id"], answer.headers["x-request-id"].to_str().unwrap());
        assert_eq!(line["code"], answer.json()["code"], "{line}");
        assert!(line["duration_ms"].is_number() && line["answered_at"].is_string(), "{line}");
    }
    let shown: Vec<_> =
        told.iter().map(|line| [&line["method"], &line["path"], &line["code"]].map(Value::as_str)).collect();
    let cancelled = [Some("POST"), Some("/v1/checkouts/{id}/cancel")];
    assert_eq!(shown[0], [Some("POST"), Some("/v1/checkouts"), None]);
    assert_eq!(shown[1], [Some("POST"), Some("/v1/checkouts"), Some("validation_failed")]);
    assert_eq!(shown[2], [cancelled[0], cancelled[1], None]);
    assert_eq!(shown[3], [cancelled[0], cancelled[1], Some("checkout_already_cancelled")]);
    assert_eq!(shown[4][..2], [Some("GET"), Some("/v1/pay/customers")]);
    for secret in [text(&key), "Bearer", "2207654321", "Awa", "example", "email", &*id] {
        assert!(!all.contains(secret), "{secret} is in {all}");
    }
}

#[tokio::test]
async fn nobody_is_told_of_what_others_ask() {
    let service = Service::new().await;
    let (ours, live_scope) = (service.key().await, Scope { mode: Mode::Live, ..service.world.scope });
    let live = service.key_of(live_scope).await;
    let theirs = service.key_of(another_merchant(&service.world).await).await;
    let page = new_key(&service.world, service.world.scope, KeyKind::Publishable, Rights::all()).await;
    let mut tail = service.follow(text(&ours)).await;
    let mut theirs_tail = service.follow(text(&theirs)).await;
    // Nor of who follows.
    let _second = service.follow(text(&ours)).await;
    assert_eq!(service.get(text(&live), "/v1/checkouts").await, 200);
    for (path, theirs_get, nobodys_get) in [("/v1/checkouts", 200, 401), ("/v1/nothing", 404, 404)] {
        assert_eq!(service.get(text(&theirs), path).await, theirs_get);
        assert_eq!(service.get("sk_test_nonsense", path).await, nobodys_get);
    }
    for open in ["/health", "/.well-known/jwks.json", "/v1/nothing"] {
        service.response(&Method::GET, open, None, None).await;
    }
    assert_eq!(service.get(text(&page), "/v1/checkouts").await, 403);
    assert_eq!(service.get(text(&ours), "/v1/pay/products").await, 200);
    let told = tail.told().await;
    let shown: Vec<_> = told.iter().map(|line| (line["path"].as_str(), line["status"].as_u64())).collect();
    assert_eq!(shown, [(Some("/v1/checkouts"), Some(403)), (Some("/v1/pay/products"), Some(200))], "{told:?}");
    let told = theirs_tail.told().await;
    let shown: Vec<_> = told.iter().map(|line| line["status"].as_u64()).collect();
    assert_eq!(shown, [Some(200), Some(404)], "{told:?}");
}

#[tokio::test]
async fn a_path_or_a_verb_typed_wrongly_is_told_without_what_was_typed() {
    let service = Service::new().await;
    let key = service.key().await;
    let mut tail = service.follow(text(&key)).await;
    let mut answers = Vec::new();
    for (verb, path) in [(Method::GET, "/v1/chekcouts/cs_secret?email=awa"), (Method::DELETE, "/v1/checkouts")] {
        answers.push(service.ask(text(&key), verb, path, &json!({})).await);
    }
    assert!(answers[1].headers.contains_key("allow"));
    let all = tail.piece().await.unwrap();
    let told = lines(&all);
    let shown: Vec<_> =
        told.iter().map(|line| [&line["method"], &line["path"], &line["code"]].map(Value::as_str)).collect();
    let expected = [["GET", "unmatched", "route_not_found"], ["DELETE", "/v1/checkouts", "method_not_allowed"]];
    assert_eq!(shown, expected.map(|line| line.map(Some)), "{all}");
    for (line, answer) in told.iter().zip(&answers) {
        assert_eq!(line["status"], answer.status.as_u16());
        assert_eq!(line["request_id"], answer.headers["x-request-id"].to_str().unwrap());
    }
    assert!(!all.contains("chekcouts") && !all.contains("cs_secret") && !all.contains("awa"), "{all}");
}

#[tokio::test]
async fn who_may_not_read_events_may_not_follow() {
    let service = Service::new().await;
    let scope = service.world.scope;
    let page = new_key(&service.world, scope, KeyKind::Publishable, Rights::all()).await;
    let narrow = Rights::parse("read:checkouts").unwrap();
    let narrow = new_key(&service.world, scope, KeyKind::Secret, narrow).await;
    let key = service.key().await;
    for (path, key, status, code) in [
        (ADDRESS, None, 401, "authentication_required"),
        (ADDRESS, Some("sk_test_nonsense"), 401, "invalid_api_key"),
        (ADDRESS, Some(text(&page)), 403, "secret_key_required"),
        (ADDRESS, Some(text(&narrow)), 403, "insufficient_scope"),
        ("/v1/requests?limit=1", Some(text(&key)), 400, "validation_failed"),
    ] {
        assert_eq!(service.refused(path, key).await, (status, code.to_owned()), "{path}");
    }
    let enough = Rights::parse("read:webhooks").unwrap();
    let enough = new_key(&service.world, scope, KeyKind::Secret, enough).await;
    service.follow(text(&enough)).await;
}

#[tokio::test]
async fn so_many_follow_at_once_and_no_more() {
    let service = Service::new().await;
    let another = service.key().await;
    let mut tails = Vec::new();
    for _ in 0..MOST_READERS / MOST_READERS_OF_KEY {
        let key = service.key().await;
        for _ in 0..MOST_READERS_OF_KEY {
            tails.push(service.follow(text(&key)).await);
        }
    }
    assert_eq!(service.refused(ADDRESS, Some(text(&another))).await, (429, "rate_limited".to_owned()));
    let theirs = service.key_of(another_merchant(&service.world).await).await;
    service.follow(text(&theirs)).await;
    tails.pop();
    service.follow(text(&another)).await;
}

#[tokio::test]
async fn a_key_and_its_tokens_leave_places_to_others() {
    let service = Service::new().await;
    let (key, another) = (service.key().await, service.key().await);
    let made = service.ask(text(&key), Method::POST, "/v1/auth/token", &json!({})).await;
    let token = made.json()["data"]["access_token"].as_str().unwrap().to_owned();
    let mut tails = vec![service.follow(&token).await];
    while tails.len() < MOST_READERS_OF_KEY {
        tails.push(service.follow(text(&key)).await);
    }
    for credential in [text(&key), &token] {
        assert_eq!(service.refused(ADDRESS, Some(credential)).await, (429, "rate_limited".to_owned()));
    }
    service.follow(text(&another)).await;
    tails.pop();
    service.follow(text(&key)).await;
}

#[tokio::test]
async fn what_is_beyond_a_budget_is_told_of_secret_keys_alone() {
    let service = Service::limited(2).await;
    let key = service.key().await;
    let page = new_key(&service.world, service.world.scope, KeyKind::Publishable, Rights::all()).await;
    let mut tail = service.follow(text(&key)).await;
    for (key, is_told) in [(&page, false), (&key, true)] {
        let mut statuses = service.ask_too_often(text(key)).await;
        if !is_told {
            statuses.pop();
        }
        let told = tail.told().await;
        let shown: Vec<_> = told.iter().map(|line| line["status"].as_u64().unwrap()).collect();
        assert_eq!(shown, statuses.into_iter().map(u64::from).collect::<Vec<_>>(), "{told:?}");
    }
}

#[tokio::test]
async fn a_slow_reader_is_told_how_many_it_missed() {
    const MISSED: usize = 44;
    let service = Service::new().await;
    let key = service.key().await;
    let mut tail = service.follow(text(&key)).await;
    for _ in 0..KEPT + MISSED {
        assert_eq!(service.get(text(&key), "/v1/pay/invoices/nothing").await, 404);
    }
    let mut told = tail.told().await;
    assert_eq!(told[0], json!({ "left_out": MISSED }));
    while told.len() < KEPT + 1 {
        told.extend(tail.told().await);
    }
    assert_eq!(told.len(), KEPT + 1);
    assert!(told[1..].iter().all(|line| line["status"] == 404));
}

#[tokio::test]
async fn it_ends_with_the_server_and_with_the_key() {
    let service = Service::new().await;
    let (key, another, scope) = (service.key().await, service.key().await, service.world.scope);
    let (mut revoked, mut tail) = (service.follow(text(&key)).await, service.follow(text(&another)).await);
    let id = key.key.id;
    service.world.app.commit(move |tx, _| keys::revoke(tx, scope, id)).await.unwrap();
    // As long as a key is remembered.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(service.get(text(&another), "/v1/checkouts").await, 200);
    assert_eq!(revoked.piece().await, None);
    assert_eq!(tail.told().await.len(), 1);
    service.stop.send_replace(true);
    assert_eq!(tail.piece().await, None);
}
