//! The call, or that with a one-time code, takes its time: what others do meanwhile, and are told.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dalasi::app::hosted;
use dalasi::error::Failure;
use domain::job::{ClaimedJob, Job};
use domain::payment::{Payable, Transaction};
use domain::rail::{FailureReason, Report};
use domain::{Id, Method, Refusal};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Lossy, Merchant, PATIENCE, Trouble, behind, behind_on, invoice, reaches, starts};
use crate::cli::place::Place;
use crate::world::World;

/// Contract §1.8 and §2.2 rule 6: nobody knows yet whether the rail has it, so nothing takes its place.
#[tokio::test]
async fn what_is_being_handed_over_is_processing_and_is_not_replaced() {
    let (world, rail) = behind(Trouble::Slow(Notify::new()), true).await;
    let merchant = Merchant::of(&world).await;
    let (id, object) = invoice(&merchant).await;
    let others = async {
        starts(&rail, 1).await;
        let refused = |(status, body): (u16, Value)| {
            assert_eq!((status, body["code"].as_str()), (400, Some("payment_in_progress")), "{body}");
        };
        refused(merchant.pay(&object, "card", "+2207654321").await);
        refused(merchant.pay(&object, "wave", "+2207654322").await);
        refused(merchant.ask("PUT", &format!("/v1/pay/invoices/{id}"), json!({ "notes": "later" })).await);
        refused(merchant.ask("POST", &format!("/v1/pay/invoices/{id}/cancel"), json!({})).await);
        let (status, same) = merchant.pay(&object, "wave", "+2207654321").await;
        assert_eq!((status, same["data"]["status"].as_str()), (200, Some("processing")), "{same}");
        let session = same["data"]["id"].as_str().unwrap().to_owned();
        for path in ["session", "status"] {
            let (_, shown) = merchant.ask("GET", &format!("/v1/pay/{path}/{session}"), Value::Null).await;
            assert_eq!(shown["data"]["status"], "processing", "{shown}");
        }
        let Trouble::Slow(go_on) = &rail.trouble else { unreachable!() };
        go_on.notify_one();
        session
    };
    let ((status, first), session) = tokio::join!(merchant.pay(&object, "wave", "+2207654321"), others);
    assert_eq!((status, first["data"]["id"].as_str()), (200, Some(session.as_str())), "{first}");
    assert_eq!(
        (&first["data"]["status"], &first["data"]["next_action"]["type"]),
        (&"pending".into(), &"redirect".into())
    );
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    let (status, card) = merchant.pay(&object, "card", "+2207654321").await;
    assert_eq!(status, 200, "{card}");
    assert_ne!(card["data"]["id"], session, "a redirect that nobody used is replaced");
    world.has_clean_books().await;
    world.close().await;
}

/// Contract §4.2: what is with the provider goes on, and nothing begins beside it.
#[tokio::test]
async fn cash_leaves_what_is_being_handed_over() {
    let (world, rail) = behind(Trouble::Slow(Notify::new()), true).await;
    let merchant = Merchant::of(&world).await;
    let (status, settings) = merchant.ask("PUT", "/v1/pay/settings", json!({ "allow_partial_payments": true })).await;
    assert_eq!(status, 200, "{settings}");
    let (id, mut half) = invoice(&merchant).await;
    half["amount"] = "50.00".into();
    let cash = async {
        starts(&rail, 1).await;
        let cash = json!({ "amount": "50.00", "payment_method": "cash" });
        let (status, paid) = merchant.ask("POST", &format!("/v1/pay/invoices/{id}/payments"), cash).await;
        assert_eq!((status, paid["data"]["remaining_amount"].as_str()), (201, Some("50.00")), "{paid}");
        let (status, second) = merchant.pay(&half, "card", "+2207654321").await;
        assert_eq!((status, second["code"].as_str()), (400, Some("payment_in_progress")), "{second}");
        let Trouble::Slow(go_on) = &rail.trouble else { unreachable!() };
        go_on.notify_one();
    };
    let ((status, payment), ()) = tokio::join!(merchant.pay(&half, "wave", "+2207654321"), cash);
    assert_eq!((status, payment["data"]["status"].as_str()), (200, Some("pending")), "{payment}");
    assert_eq!(payment["data"]["next_action"]["type"], "redirect");
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    world.has_clean_books().await;
    world.close().await;
}

/// Contract §1.8: the word knows of no way on, and who asks again is told what was told first.
#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_overtakes_the_call_does_not_answer_for_it() {
    for place in Place::each("a word that overtakes the call does not answer for it").await {
        let (world, rail) = behind_on(place.settings(), Trouble::Slow(Notify::new()), true).await;
        let merchant = Merchant::of(&world).await;
        let (_, mut order) = invoice(&merchant).await;
        order["payment_method"] = "wave".into();
        let pay = || merchant.ask_with_key(Some("once"), "POST", "/v1/pay/initialize", order.clone());
        let overtaken = async {
            starts(&rail, 1).await;
            let (_, attempts) = merchant.ask("GET", "/v1/pay/transactions", Value::Null).await;
            let attempt: Id<_> = attempts["data"]["items"][0]["id"].as_str().unwrap().parse().unwrap();
            world.app.report(world.scope, attempt, Report::Open, None).await.unwrap();
            let Trouble::Slow(go_on) = &rail.trouble else { unreachable!() };
            go_on.notify_one();
        };
        let (first, ()) = tokio::join!(pay(), overtaken);
        assert_eq!((first.0, &first.1["data"]["next_action"]["type"]), (200, &"redirect".into()), "{}", first.1);
        assert_eq!(pay().await, first);
        world.has_clean_books().await;
        world.close().await;
        place.end().await;
    }
}

/// Contract §4.2: it is with its rail until its call is over, and the payer who typed it is told what became of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_word_from_before_a_code_does_not_answer_for_it() {
    for place in Place::each("a word from before a code does not answer for it").await {
        let trouble = Trouble::SlowCode { go_on: Notify::new(), is_refused: false };
        let (world, rail) = behind_on(place.settings(), trouble, true).await;
        let merchant = Merchant::of(&world).await;
        let (_, object) = invoice(&merchant).await;
        let (_, begun) = merchant.pay(&object, "qmoney", "+2207000000").await;
        assert_eq!(begun["data"]["next_action"]["type"], "otp", "{begun}");
        let submit = || submit(&merchant, &object, "once");
        let overtaken = async {
            reaches(&rail.codes, 1).await;
            let attempt = latest_attempt(&merchant).await;
            // An answer to a question of the worker's, and one to nobody's.
            let job = Job::AskRail(attempt);
            let claimed = ClaimedJob { job, scope: world.scope, due_at: world.now(), attempts: 1, lease_token: 1 };
            for claimed in [Some(claimed), None] {
                let old = Report::AwaitingCode { attempts_left: 3 };
                world.app.report(world.scope, attempt, old, claimed).await.unwrap();
            }
            let (status, refused) = merchant.pay(&object, "card", "+2207000000").await;
            assert_eq!((status, refused["code"].as_str()), (400, Some("payment_in_progress")), "{refused}");
            let Trouble::SlowCode { go_on, .. } = &rail.trouble else { unreachable!() };
            go_on.notify_one();
        };
        let (first, ()) = tokio::join!(submit(), overtaken);
        assert!(["processing", "succeeded"].contains(&first.1["data"]["status"].as_str().unwrap()), "{}", first.1);
        assert_eq!(submit().await, first);
        world.has_clean_books().await;
        world.close().await;
        place.end().await;
    }
}

/// Contract §1.8: nobody asks about what is over, so that its end is the answer to whoever waits.
#[tokio::test]
async fn the_end_of_a_payment_answers_the_code_that_waits() {
    let (world, rail) = behind(Trouble::SlowCode { go_on: Notify::new(), is_refused: true }, true).await;
    let merchant = Merchant::of(&world).await;
    let (_, object) = invoice(&merchant).await;
    merchant.pay(&object, "qmoney", "+2207000000").await;
    let others = async {
        reaches(&rail.codes, 1).await;
        let attempt = latest_attempt(&merchant).await;
        let wrong = Report::AwaitingCode { attempts_left: 2 };
        world.app.report(world.scope, attempt, wrong, None).await.unwrap();
        let waits = async {
            reaches(&rail.codes, 2).await;
            let Trouble::SlowCode { go_on, .. } = &rail.trouble else { unreachable!() };
            go_on.notify_one();
            // That the first one was refused says nothing about the second, which is on its way.
            tokio::time::sleep(Duration::from_millis(200)).await;
            let (_, told) = merchant.ask("GET", &format!("/v1/pay/transactions/{attempt}"), Value::Null).await;
            assert_eq!(told["data"]["status"], "pending", "{told}");
            let over = Report::Failed { reason: FailureReason::Declined };
            world.app.report(world.scope, attempt, over, None).await.unwrap();
            let answered = async {
                loop {
                    let (status, told) = submit(&merchant, &object, "second").await;
                    if status != 429 {
                        return (status, told);
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(4), answered).await.expect("nobody waits for what is over")
        };
        // Its process dies: nobody hears what its own call brings.
        tokio::select! {
            told = waits => told,
            _ = submit(&merchant, &object, "second") => panic!("the second code is answered by its own call"),
        }
    };
    let (first, second) = tokio::join!(submit(&merchant, &object, "first"), others);
    assert_eq!((second.0, second.1["data"]["status"].as_str()), (200, Some("failed")), "{}", second.1);
    assert_eq!(first.1["data"]["id"], second.1["data"]["id"]);
}

/// Contract §4.1, §4.2: whoever was told `processing` is told of an end only when the rail's answer has decided it, or does not for
/// a day. Then what nobody waits for any more is ended at the rail as well.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_handed_over_outlives_the_end_of_its_checkout() {
    let mut places = vec![Place::sqlite(), Place::sqlite(), Place::sqlite(), Place::sqlite()];
    places.extend(Place::postgres("what is being handed over outlives the end of its checkout").await);
    let ends = [
        (Method::Wave, false, ["cancelled", "expired", "expired"]),
        (Method::Wave, true, ["cancelled", "cancelled", "cancelled"]),
        (Method::Afrimoney, false, ["processing", "failed", "expired"]),
        (Method::Afrimoney, true, ["processing", "failed", "cancelled"]),
        (Method::Wave, false, ["cancelled", "expired", "expired"]),
    ];
    for (place, (method, is_cancelled, told)) in places.into_iter().zip(ends) {
        let (world, rail) = behind_on(place.settings(), Trouble::Slow(Notify::new()), true).await;
        outlives(&world, &rail, method, is_cancelled, told).await;
        world.close().await;
        place.end().await;
    }
}

async fn outlives(world: &World, rail: &Lossy, method: Method, is_cancelled: bool, told: [&str; 3]) {
    let merchant = Merchant::of(world).await;
    let checkout = world.create(|new| new.expires_in_s = 60).await.id;
    let path = format!("/v1/checkouts/{checkout}");
    let object = json!({ "object_type": "checkout", "object_id": checkout.to_string() });
    let status = |shown: &(u16, Value)| shown.1["data"]["status"].as_str().map(str::to_owned);
    world.clock.advance(Duration::from_secs(40));
    let ended = async {
        starts(rail, 1).await;
        let place = hosted::Place { payable: Payable::Checkout(checkout), session: None };
        let scope = world.scope;
        let left = world.app.commit(move |tx, context| hosted::leave(tx, context, scope, place, None)).await;
        assert!(matches!(left, Err(Failure::Refused(Refusal::PaymentInProgress))), "only the merchant may: {left:?}");
        let meanwhile = if is_cancelled {
            world.cancel(checkout).await;
            "cancelled"
        } else {
            world.clock.advance(Duration::from_secs(25));
            // The timer comes, and another attempt does not begin.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let (status, other) = merchant.pay(&object, "card", "+2207654321").await;
            assert_eq!((status, other["code"].as_str()), (400, Some("checkout_expired")), "{other}");
            "pending"
        };
        let shown = merchant.ask("GET", &path, Value::Null).await;
        assert_eq!(status(&shown).as_deref(), Some(meanwhile), "{shown:?}");
        let session = shown.1["data"]["payment_session_id"].as_str().expect("a session").to_owned();
        let shown = merchant.ask("GET", &format!("/v1/pay/session/{session}"), Value::Null).await;
        assert_eq!(status(&shown).as_deref(), Some("processing"), "{shown:?}");
        assert_eq!(rail.withdrawals.load(Ordering::SeqCst), 0, "there is nothing to withdraw yet");
        let Trouble::Slow(go_on) = &rail.trouble else { unreachable!() };
        go_on.notify_one();
    };
    let (answered, ()) = tokio::join!(merchant.pay(&object, method.as_str(), "+2207000009"), ended);
    let [session, attempt, end] = told.map(str::to_owned);
    let is_held = !is_cancelled && session == "processing";
    assert_eq!(status(&answered), Some(session), "{answered:?}");
    if is_held {
        // The rail's word decides, for a day at most.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(rail.withdrawals.load(Ordering::SeqCst), 0, "its payer is waited for");
        assert_eq!(status(&merchant.ask("GET", &path, Value::Null).await).as_deref(), Some("pending"));
        world.clock.advance(Duration::from_secs(24 * 3600));
    }
    reaches(&rail.withdrawals, 1).await;
    let ended = async {
        loop {
            let attempts = merchant.ask("GET", "/v1/pay/transactions", Value::Null).await;
            if attempts.1["data"]["items"][0]["status"] != "processing" {
                return attempts;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let attempts = tokio::time::timeout(PATIENCE, ended).await.expect("the rail has let go of it");
    assert_eq!(attempts.1["data"]["items"][0]["status"], attempt, "{attempts:?}");
    let shown = merchant.ask("GET", &path, Value::Null).await;
    assert_eq!(status(&shown), Some(end), "{shown:?}");
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    world.has_clean_books().await;
}

async fn submit(merchant: &Merchant, object: &Value, key: &str) -> (u16, Value) {
    let mut body = object.clone();
    body["customer_pin"] = "123456".into();
    merchant.ask_with_key(Some(key), "POST", "/v1/pay/initialize", body).await
}

async fn latest_attempt(merchant: &Merchant) -> Id<Transaction> {
    let (_, attempts) = merchant.ask("GET", "/v1/pay/transactions", Value::Null).await;
    attempts["data"]["items"][0]["id"].as_str().unwrap().parse().unwrap()
}
