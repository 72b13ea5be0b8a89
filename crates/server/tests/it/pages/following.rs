//! An open page hears at once of what its merchant does by the API, and nothing of what is done to others.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request};
use dalasi::app::invoices::NewInvoice;
use dalasi::app::object_bells::Following;
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self as api, Api};
use dalasi::metrics;
use domain::api_key::{KeyKind, Rights};
use domain::payment_link::Price;
use domain::{Currency, Method as PaymentMethod, Money, Scope};
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use store::Database;
use tower::ServiceExt as _;

use super::changes::link_of;
use crate::authorization::tenants::{Answered, another_merchant, new_key, request};
use crate::cli::place::Place;
use crate::invoices::{create, rice};
use crate::world::World;

/// Shorter than the pause after which a page that waits looks by itself.
const AT_ONCE: Duration = Duration::from_secs(8);

struct Merchant {
    router: Router,
    key: String,
}

impl Merchant {
    async fn of(world: &World) -> Self {
        Self::with_key_of(world, world.scope).await
    }

    async fn with_key_of(world: &World, scope: Scope) -> Self {
        let api = Api::new(world.app.clone(), None, metrics::install());
        let key = new_key(world, scope, KeyKind::Secret, Rights::all()).await;
        let router = envelope::wrap(api::router(api), EdgeSettings::default());
        Self { router, key: key.text.expose().to_owned() }
    }

    async fn ask(&self, verb: Method, path: &str, body: Value) {
        assert_eq!(self.answered(verb, path, body, None).await, 200, "{path}");
    }

    async fn answered(&self, verb: Method, path: &str, body: Value, key: Option<&'static str>) -> u16 {
        let mut request = request(&verb, path, Some(&self.key), Some(&body));
        let key = key.map(HeaderValue::from_static);
        request.headers_mut().extend(key.map(|key| (HeaderName::from_static("idempotency-key"), key)));
        Answered::of(self.router.clone().oneshot(request).await.unwrap()).await.status.as_u16()
    }
}

fn has_rung(following: &mut Following) -> bool {
    following.rung().now_or_never().is_some()
}

/// What a page is told next.
async fn next(stream: &mut Body) -> String {
    let frame = tokio::time::timeout(AT_ONCE, stream.frame()).await.expect("the page is told").unwrap().unwrap();
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn a_page_hears_that_its_invoice_was_finalized_and_changed() {
    let world = World::new().await;
    let merchant = Merchant::of(&world).await;
    let draft = create(&world, NewInvoice { is_draft: true, ..rice(&world) }).await.unwrap();
    let (page, path) = (format!("/invoice/{}", draft.id), format!("/v1/pay/invoices/{}", draft.id));
    let events = Request::get(format!("{page}/events")).body(Body::empty()).unwrap();
    let mut stream = world.router.clone().oneshot(events).await.unwrap().into_body();
    let revision = async || world.get(&page).await.revision().to_owned();
    assert!(next(&mut stream).await.contains(&revision().await));
    merchant.ask(Method::POST, &format!("{path}/finalize"), json!({})).await;
    assert!(next(&mut stream).await.contains(&revision().await));
    merchant.ask(Method::PUT, &path, json!({ "tax_rate": 20 })).await;
    assert!(next(&mut stream).await.contains(&revision().await));
}

#[tokio::test]
async fn who_follows_an_object_is_woken_by_its_changes_alone() {
    woken_by_changes_alone(Database::SqliteMemory).await;
}

#[tokio::test]
async fn who_follows_an_object_is_woken_by_its_changes_alone_on_postgres() {
    let Some(place) = Place::postgres("who follows an object is woken by its changes alone").await else { return };
    woken_by_changes_alone(place.settings()).await;
    place.end().await;
}

async fn woken_by_changes_alone(database: Database) {
    let world = World::on(database).await;
    world.rest().await;
    let merchant = Merchant::of(&world).await;
    let another = Merchant::with_key_of(&world, another_merchant(&world).await).await;
    let (own, other) = (world.create(|_| {}).await.id, world.create(|_| {}).await.id);
    let cancel = |id: &str| format!("/v1/checkouts/{id}/cancel");
    let mut following = world.app.follow(own.to_string());

    merchant.ask(Method::POST, &cancel(&other.to_string()), json!({})).await;
    merchant.ask(Method::GET, &format!("/v1/checkouts/{own}"), json!({})).await;
    world.get(&format!("/checkout/{own}")).await;
    let path = cancel(&own.to_string());
    assert_eq!(another.answered(Method::POST, &path, json!({}), None).await, 404);
    assert!(!has_rung(&mut following), "others, looks, and another merchant");
    let cancels = async |key: Option<&'static str>| merchant.answered(Method::POST, &path, json!({}), key).await;
    assert_eq!(cancels(Some("once")).await, 200);
    assert!(has_rung(&mut following));
    assert_eq!((cancels(Some("once")).await, cancels(None).await), (200, 400));
    assert!(!has_rung(&mut following), "what was done before, and what is refused");

    let paid = world.create(|_| {}).await.id;
    let mut following = world.app.follow(paid.to_string());
    world.start(paid, PaymentMethod::Wave, "+2207000000").await;
    assert!(has_rung(&mut following), "a payer began");

    let draft = create(&world, NewInvoice { is_draft: true, ..rice(&world) }).await.unwrap().id;
    let path = format!("/v1/pay/invoices/{draft}");
    let mut following = world.app.follow(draft.to_string());
    for (verb, to, body, is_change) in [
        (Method::POST, "/finalize", json!({}), true),
        (Method::PUT, "", json!({ "tax_rate": 20 }), true),
        // It is so already.
        (Method::PUT, "", json!({ "tax_rate": 20 }), false),
        (Method::POST, "/payments", json!({ "amount": "1.00", "payment_method": "cash" }), true),
    ] {
        let status = merchant.answered(verb, &format!("{path}{to}"), body, None).await;
        assert!(matches!(status, 200 | 201), "{to}: {status}");
        assert_eq!(has_rung(&mut following), is_change, "{to}");
    }

    let link = link_of(&world, Price::Fixed { amount: Money::new(500, Currency::gmd()) }, false, Vec::new()).await;
    let path = format!("/v1/pay/payment-links/{link}");
    let mut following = world.app.follow(link.to_string());
    merchant.ask(Method::PUT, &path, json!({ "title": "Coffee" })).await;
    assert!(has_rung(&mut following));
    assert_eq!(merchant.answered(Method::DELETE, &path, json!({}), None).await, 204);
    assert!(has_rung(&mut following));
}
