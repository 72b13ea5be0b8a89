//! What somebody can do to other payers who has the publishable key of a merchant's page, as everybody has who looks at it.

use axum::Router;
use axum::http::Method;
use dalasi::credentials::ClientSecret;
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self as api, Api};
use dalasi::metrics;
use domain::api_key::{KeyKind, Rights};
use domain::checkout::Checkout;
use domain::{Id, Scope};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::authorization::tenants::{Answered, another_merchant, new_key, request};
use crate::world::World;

const MOST_ATTEMPTS: usize = 10;
/// Waits for a click on the simulator's page, and until then is under way.
const VICTIM: &str = "+2207654321";

fn router(world: &World) -> Router {
    let api = Api::new(world.app.clone(), None, metrics::install());
    envelope::wrap(api::router(api), EdgeSettings::default())
}

/// A merchant's program, the key on its page, and a link of its own.
struct Merchant {
    router: Router,
    secret: String,
    publishable: String,
    link: Value,
}

impl Merchant {
    async fn new(world: &World, router: &Router, scope: Scope) -> Self {
        let secret = new_key(world, scope, KeyKind::Secret, Rights::all()).await;
        let publishable = new_key(world, scope, KeyKind::Publishable, Rights::all()).await;
        let text = |key: &dalasi::app::keys::CreatedKey| key.text.expose().to_owned();
        let (secret, publishable) = (text(&secret), text(&publishable));
        let mut merchant = Self { router: router.clone(), secret, publishable, link: Value::Null };
        let link = json!({"title": "Tea", "amount": "5.00"});
        let made = merchant.post(&merchant.secret, "/v1/pay/payment-links", &link).await;
        assert_eq!(made.status, 201, "{}", made.text());
        merchant.link = json!({"object_type": "payment_link", "object_id": made.json()["data"]["id"]});
        merchant
    }

    async fn post(&self, key: &str, path: &str, body: &Value) -> Answered {
        let request = request(&Method::POST, path, Some(key), Some(body));
        Answered::of(self.router.clone().oneshot(request).await.unwrap()).await
    }

    /// Another payment of the link, opened by the merchant's program.
    async fn opened(&self) -> Value {
        let opened = self.post(&self.secret, "/v1/pay/initialize", &self.link).await;
        assert_eq!(opened.status, 200, "{}", opened.text());
        json!({"session_id": opened.json()["data"]["id"], "customer_phone": VICTIM})
    }

    async fn pay(&self, body: &Value) -> u16 {
        self.post(&self.publishable, "/v1/pay/initialize", body).await.status.as_u16()
    }
}

fn by_afrimoney(of: &Value) -> Value {
    let mut body = of.clone();
    body["payment_method"] = "afrimoney".into();
    body
}

#[tokio::test]
async fn a_phone_is_shut_out_by_nothing_that_never_began() {
    let world = World::new().await;
    let router = router(&world);
    let ours = Merchant::new(&world, &router, world.scope).await;
    let named = ours.opened().await;
    for _ in 0..=MOST_ATTEMPTS {
        assert_eq!(ours.pay(&named).await, 200, "no method is named: nothing begins");
    }
    let under_way = by_afrimoney(&named);
    assert_eq!(ours.pay(&under_way).await, 200);
    for _ in 0..=MOST_ATTEMPTS {
        assert_eq!(ours.pay(&under_way).await, 400, "it is under way already");
    }
    for count in 2..=MOST_ATTEMPTS {
        assert_eq!(ours.pay(&by_afrimoney(&ours.opened().await)).await, 200, "attempt {count} of the phone");
    }
    assert_eq!(ours.pay(&by_afrimoney(&ours.opened().await)).await, 429);
    // That is this merchant's phone, and nobody else's.
    let scope = another_merchant(&world).await;
    let theirs = Merchant::new(&world, &router, scope).await;
    assert_eq!(theirs.pay(&by_afrimoney(&theirs.opened().await)).await, 200, "another merchant's link");
}

/// Contract §1.2: what it may not do comes before what is wrong with it.
#[tokio::test]
async fn a_page_is_told_first_of_what_it_may_not_pay() {
    let world = World::new().await;
    let merchant = Merchant::new(&world, &router(&world), world.scope).await;
    let link = &merchant.link["object_id"];
    for body in [
        merchant.link.clone(),
        json!({"object_type": "payment_link", "object_id": link, "amount": 1}),
        json!({"object_type": "teapot", "object_id": link, "colour": "red"}),
        json!({"object_id": 1, "client_secret": null}),
        json!({"plan_id": "plan_1"}),
        json!({}),
    ] {
        let answer = merchant.post(&merchant.publishable, "/v1/pay/initialize", &body).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (403, &json!("secret_key_required")), "{body}");
        let answer = merchant.post(&merchant.secret, "/v1/pay/initialize", &body).await;
        assert_eq!(answer.status.as_u16(), if body == merchant.link { 200 } else { 400 }, "{body}");
    }
    for body in [
        json!({"client_secret": "csec_of_nobody"}),
        json!({"client_secret": 1}),
        json!({"session_id": "", "object_id": link, "colour": "red"}),
    ] {
        let answer = merchant.post(&merchant.publishable, "/v1/pay/initialize", &body).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (400, &json!("validation_failed")), "{body}");
    }
}

/// Such a text is easily had: whoever has one client secret and knows two checkouts' ids changes the id that it hides.
#[tokio::test]
async fn a_client_secret_that_hides_the_right_id_and_is_another_opens_nothing() {
    let world = World::new().await;
    let merchant = Merchant::new(&world, &router(&world), world.scope).await;
    let made = merchant.post(&merchant.secret, "/v1/checkouts", &json!({"amount": "5.00"})).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json()["data"].clone();
    let checkout: Id<Checkout> = made["id"].as_str().unwrap().parse().unwrap();
    let keys = &world.app.context().client_secret_keys;
    let forged = ClientSecret::generate(checkout, [9; 16], keys);
    let nobodys = ClientSecret::generate(Id::from_bytes([9; 16]), [9; 16], keys);
    assert_eq!(ClientSecret::parse(forged.expose(), keys).unwrap().checkout(), checkout, "its digest alone is wrong");
    for key in [&merchant.publishable, &merchant.secret] {
        let initialize = async |secret: &Value| {
            let body = json!({"client_secret": secret});
            let answer = merchant.post(key, "/v1/pay/initialize", &body).await;
            (answer.status.as_u16(), answer.json())
        };
        let mut told = Vec::new();
        for wrong in [forged.expose(), nobodys.expose(), "csec_of_nobody"] {
            let (status, body) = initialize(&json!(wrong)).await;
            assert_eq!((status, &body["code"]), (400, &json!("validation_failed")), "{wrong}: {body}");
            let details = body["details"].clone();
            assert_eq!((&details[0]["field"], &details[0]["code"]), (&json!("client_secret"), &json!("not_found")));
            told.push(details);
        }
        assert!(told.iter().all(|details| *details == told[2]), "{told:?}");
        let (status, body) = initialize(&made["client_secret"]).await;
        assert_eq!((status, &body["data"]["object_id"]), (200, &made["id"]), "{body}");
    }
}
