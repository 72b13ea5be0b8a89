//! Bodies that can't be read, by callers who may not send any: what a body is like is told to whoever has the right, and to
//! nobody else (contract §1.2).

use axum::body::Body;
use axum::http::{Method, Request, header};
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self as api, Api};
use dalasi::metrics;
use domain::api_key::{KeyKind, Rights};
use serde_json::Value;
use tower::ServiceExt as _;

use super::described;
use super::operations::{self, Who};
use super::tenants::{Answered, new_key};
use crate::world::World;

const SECRET: (u16, &str) = (403, "secret_key_required");
const NARROW: (u16, &str) = (403, "insufficient_scope");

/// Media type, body, and how whoever may send one is answered.
fn unreadable() -> [(&'static str, Vec<u8>, (u16, &'static str)); 3] {
    [
        ("application/json", b"{".to_vec(), (400, "invalid_json")),
        ("text/plain", b"amount=1.00".to_vec(), (415, "unsupported_media_type")),
        ("application/json", vec![b' '; (1 << 20) + 1], (413, "body_too_large")),
    ]
}

#[tokio::test]
async fn the_right_is_judged_before_the_body() {
    let world = World::new().await;
    let api = Api::new(world.app.clone(), None, metrics::install());
    let router = envelope::wrap(api::router(api), EdgeSettings::default());
    let page = new_key(&world, world.scope, KeyKind::Publishable, Rights::all()).await;
    let reader = new_key(&world, world.scope, KeyKind::Secret, Rights::parse("read:checkouts").unwrap()).await;
    let owner = new_key(&world, world.scope, KeyKind::Secret, Rights::all()).await;
    let described = described();
    for row in operations::rows() {
        let (method, template) = &described[row.operation];
        if *method == Method::GET {
            continue;
        }
        let path = match template.split_once('{') {
            Some((start, rest)) => format!("{start}nobody{}", rest.split_once('}').unwrap().1),
            None => template.clone(),
        };
        for (media_type, body, told) in unreadable() {
            let (to_page, to_reader) = match row.who {
                Who::Merchant(_) => (SECRET, NARROW),
                Who::SecretKey => (SECRET, told),
                Who::Page(_) => (told, NARROW),
                Who::Anybody => panic!("{}: nobody writes without a key", row.operation),
            };
            for (key, (status, code)) in [(&page, to_page), (&reader, to_reader), (&owner, told)] {
                let request = Request::builder()
                    .method(method)
                    .uri(path.as_str())
                    .header(header::AUTHORIZATION, format!("Bearer {}", key.text.expose()))
                    .header(header::CONTENT_TYPE, media_type)
                    .body(Body::from(body.clone()))
                    .unwrap();
                let answer = Answered::of(router.clone().oneshot(request).await.unwrap()).await;
                let answered = (answer.status.as_u16(), answer.json()["code"].clone());
                let of = format!("{} of {media_type}: {}", row.operation, answer.text());
                assert_eq!(answered, (status, Value::from(code)), "{of}");
            }
        }
    }
}
