//! An open page hears at once of what its merchant does by the API.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use dalasi::app::invoices::NewInvoice;
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self as api, Api};
use dalasi::metrics;
use domain::api_key::{KeyKind, Rights};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::authorization::tenants::{Answered, new_key, request};
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
        let api = Api::new(world.app.clone(), None, metrics::install());
        let key = new_key(world, world.scope, KeyKind::Secret, Rights::all()).await;
        let router = envelope::wrap(api::router(api), EdgeSettings::default());
        Self { router, key: key.text.expose().to_owned() }
    }

    async fn ask(&self, verb: Method, path: &str, body: Value) {
        let request = request(&verb, path, Some(&self.key), Some(&body));
        let answer = Answered::of(self.router.clone().oneshot(request).await.unwrap()).await;
        assert_eq!(answer.status.as_u16(), 200, "{}", answer.text());
    }
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
