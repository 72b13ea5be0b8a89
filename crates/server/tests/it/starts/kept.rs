//! What a rail keeps though it was asked to drop it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dalasi::app::idempotency::Reply;
use dalasi::app::payments::{Initialize, Target};
use dalasi::app::sessions::Payment;
use dalasi::error::Failure;
use domain::payment::{Payable, Payer, PaymentSession};
use domain::rail::{FailureReason, Report};
use domain::{Id, Method, Msisdn};
use serde_json::json;

use super::{Lossy, Merchant, Trouble, behind};
use crate::world::World;

/// A handset that keeps its request, whatever the rail is told.
const SILENT: &str = "7000003";

async fn begin(world: &World, method: Method, request: Initialize) -> Payment {
    let payer = Payer { phone: Some(Msisdn::parse(SILENT).unwrap()), ..Payer::default() };
    let request = Initialize { method: Some(method), payer, ..request };
    let render = |result: Result<&Payment, &Failure>| Reply::new(200, result.unwrap().session.id.to_string());
    let begun = world.app.initialize(world.scope, request, None, None, render).await.unwrap();
    let (scope, session) = (world.scope, begun.body.parse::<Id<PaymentSession>>().unwrap());
    world.app.read(move |tx, _| dalasi::app::sessions::look_up_payment(tx, scope, session)).await.unwrap()
}

/// As often as its rail is asked what became of it, and no more often.
async fn is_withdrawn_again(world: &World, rail: &Lossy) {
    for count in 1..=3 {
        world.work().await;
        assert_eq!(rail.withdrawals.load(Ordering::SeqCst), count);
        world.clock.advance(Duration::from_secs(2 * 3600));
    }
}

#[tokio::test]
async fn what_its_rail_keeps_is_withdrawn_with_each_question() {
    let (world, rail) = behind(Trouble::Lost(0), false).await;
    world.rest().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await.id;
    begin(&world, Method::Afrimoney, Initialize::of(Target::Object(Payable::Checkout(checkout)))).await;
    world.clock.advance(Duration::from_secs(2 * 3600));
    world.work().await;
    assert_eq!(rail.withdrawals.load(Ordering::SeqCst), 0, "its payer is waited for");
    world.cancel(checkout).await;
    is_withdrawn_again(&world, &rail).await;
    world.has_clean_books().await;
}

/// However often its payer has changed the method meanwhile.
#[tokio::test]
async fn what_came_in_the_place_of_a_payment_that_brought_money_is_withdrawn_as_often() {
    for between in [0, 9] {
        let (world, rail) = behind(Trouble::Lost(0), false).await;
        world.rest().await;
        world.clock.stop();
        let merchant = Merchant::of(&world).await;
        let order = json!({ "title": "Rice", "amount": "5.00" });
        let (status, link) = merchant.ask("POST", "/v1/pay/payment-links", order).await;
        assert_eq!(status, 201, "{link}");
        let link = Payable::PaymentLink(link["data"]["id"].as_str().unwrap().parse().unwrap());
        let begun = async |method, replaces| {
            begin(&world, method, Initialize { replaces, ..Initialize::of(Target::Object(link)) }).await
        };
        let given_up = begun(Method::Wave, None).await;
        let mut replaced = given_up.session.id;
        for _ in 0..between {
            let card = begun(Method::Card, Some(replaced)).await;
            replaced = card.session.id;
            let over = Report::Failed { reason: FailureReason::Declined };
            world.app.report(world.scope, card.transaction.unwrap().id, over, None).await.unwrap();
        }
        begun(Method::Afrimoney, Some(replaced)).await;
        let given_up = given_up.transaction.unwrap();
        let paid = Report::Paid { amount: given_up.amount, rail_reference: "R-1".into() };
        world.app.report(world.scope, given_up.id, paid, None).await.unwrap();
        is_withdrawn_again(&world, &rail).await;
        world.has_clean_books().await;
    }
}
