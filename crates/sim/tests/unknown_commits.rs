//! A commit whose outcome nobody was told, of a request that has no key of its own: it goes on from what was committed.

use dalasi::app::idempotency::Reply;
use dalasi::app::payments::{Initialize, Target};
use dalasi::app::sessions::Payment;
use dalasi::error::Failure;
use domain::payment::{Payable, Payer};
use domain::{Method, Msisdn};
use serde_json::json;
use sim::crowd::{Setting, with_template};
use sim::network::Heard;
use sim::world::World;
use store::queries::idempotency::IdempotencyKey;
use store::{Moment, Strike};

#[test]
fn a_payment_whose_commit_is_unknown_is_handed_over_once_and_answered() {
    with_template(Setting::Plain, async |template| {
        let world = World::begin(template).await;
        let link = json!({ "title": "Tea", "amount": "25.00" });
        let link = world.send(0, "POST", "/v1/pay/payment-links", Some(&link), None).await.expect("an answer").json();
        let id = link["data"]["id"].as_str().expect("an id").parse().expect("an id");
        let phone = Msisdn::parse("+2207654321").ok();
        let request = Initialize {
            method: Some(Method::Afrimoney),
            payer: Payer { phone, ..Payer::default() },
            ..Initialize::of(Target::Object(Payable::PaymentLink(id)))
        };
        let scope = world.scopes[0];
        // As a request without a key is given one where commits can be lost.
        let space = IdempotencyKey::OWN_SPACE.to_owned();
        let key = IdempotencyKey {
            scope,
            space,
            key: "req_1".into(),
            fingerprint: vec![1],
            former_fingerprint: None,
            sets_state: false,
        };
        let render = |result: Result<&Payment, &Failure>| match result {
            Ok(payment) => Reply::new(200, payment.session.id.to_string()),
            Err(failure) => Reply::new(failure.status(), failure.to_string()),
        };
        world.storage.arm(Moment::Commit, 0, Strike::UnknownCommit);
        let reply = world.app.initialize(scope, request, None, Some(key), render).await.expect("an answer");
        assert_eq!(reply.status, 200, "{}", reply.body);
        let heard = world.network.take_heard();
        let [Heard::Started { session, .. }] = heard.as_slice() else { panic!("one call: {heard:?}") };
        assert_eq!(*session, reply.body);
        world.end().await;
    });
}
