//! All that is wrong with a request is told at once, and nothing that isn't (contract §1.4).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::{HeaderValue, Method};
use dalasi::app::App;
use dalasi::egress::{Egress, EgressSettings, Resolver, Resolving};
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self as api, Api};
use dalasi::metrics;
use dalasi::rails::Rails;
use domain::api_key::{KeyKind, Rights};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::authorization::tenants::{Answered, new_key, request};
use crate::world::World;

const ENDPOINTS: &str = "/v1/webhook_endpoints";

/// Leads to a public address, until it leads inside.
#[derive(Default)]
struct Name {
    is_inside: AtomicBool,
}

impl Resolver for Name {
    fn resolve(&self, _: &str) -> Resolving {
        let address = if self.is_inside.load(Ordering::SeqCst) { "10.0.0.1" } else { "93.184.215.14" };
        Box::pin(std::future::ready(Ok(vec![address.parse().unwrap()])))
    }
}

/// A merchant's program.
struct Merchant {
    world: World,
    router: Router,
    key: String,
    name: Arc<Name>,
}

impl Merchant {
    async fn new() -> Self {
        let world = World::new().await;
        let name = Arc::new(Name::default());
        let settings = EgressSettings { resolver: Arc::clone(&name) as _, ..EgressSettings::default() };
        let (store, context) = (world.app.store().clone(), Arc::clone(world.app.context()));
        let app = App::new(store, context, Rails::new(Vec::new()), Egress::new(settings), None);
        let router = envelope::wrap(api::router(Api::new(app, None, metrics::install())), EdgeSettings::default());
        let key = new_key(&world, world.scope, KeyKind::Secret, Rights::all()).await.text.expose().to_owned();
        Self { world, router, key, name }
    }

    async fn send(&self, path: &str, body: &Value, key: Option<&'static str>) -> Answered {
        let mut request = request(&Method::POST, path, Some(&self.key), Some(body));
        if let Some(key) = key {
            request.headers_mut().insert("idempotency-key", HeaderValue::from_static(key));
        }
        Answered::of(self.router.clone().oneshot(request).await.unwrap()).await
    }

    /// Each field that is refused, with its code; each once.
    async fn check(&self, path: &str, body: Value, expected: &[(&str, &str)]) {
        let answer = self.send(path, &body, None).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (400, &json!("validation_failed")), "{body}");
        let details = answer.json()["details"].as_array().unwrap().clone();
        let text = |fault: &Value, name: &str| fault[name].as_str().unwrap().to_owned();
        let told: BTreeMap<_, _> = details.iter().map(|fault| (text(fault, "field"), text(fault, "code"))).collect();
        assert_eq!(told.len(), details.len(), "{body}: {details:?}");
        let expected: BTreeMap<_, _> = expected.iter().map(|(f, code)| ((*f).to_owned(), (*code).to_owned())).collect();
        assert_eq!(told, expected, "{path} {body}");
    }
}

/// Whose name leads inside meanwhile.
#[tokio::test]
async fn an_endpoint_that_was_made_is_answered_so_again() {
    let merchant = Merchant::new().await;
    let body = json!({"url": "https://shop.example/hook", "enabled_events": ["*"]});
    let first = merchant.send(ENDPOINTS, &body, Some("endpoint-1")).await;
    assert_eq!(first.status.as_u16(), 201, "{}", first.text());
    let path = format!("{ENDPOINTS}/{}", first.json()["data"]["id"].as_str().unwrap());
    let change = json!({"url": "https://shop.example/other"});
    let changed = merchant.send(&path, &change, Some("endpoint-2")).await;
    assert_eq!(changed.status.as_u16(), 200, "{}", changed.text());
    merchant.name.is_inside.store(true, Ordering::SeqCst);
    for (path, body, key, before) in
        [(ENDPOINTS, &body, "endpoint-1", &first), (path.as_str(), &change, "endpoint-2", &changed)]
    {
        let again = merchant.send(path, body, Some(key)).await;
        assert_eq!((again.status, &again.body), (before.status, &before.body));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        merchant.check(path, body.clone(), &[("url", "not_allowed")]).await;
        // Nothing was kept of what was refused.
        let fresh = merchant.send(path, body, Some("endpoint-3")).await;
        assert_eq!(fresh.json()["code"], "validation_failed", "{}", fresh.text());
    }
}
