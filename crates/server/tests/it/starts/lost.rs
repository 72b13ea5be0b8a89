//! The call is lost on its way, so that the rail has never heard of it, or it comes late, behind that of somebody who took
//! over, or its answer can't be stored; and the payer waits.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dalasi::monotonic::Since;
use domain::job::{ClaimedJob, Job};
use domain::payment::TransactionSummary;
use domain::rail::Report;
use domain::{Id, Method};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Merchant, PATIENCE, Trouble, behind, behind_on, invoice, reaches, starts};
use crate::cli::place::Place;
use crate::world::World;

#[tokio::test]
async fn a_rail_that_knows_the_call_again_gets_it_again() {
    let (world, rail) = behind(Trouble::Lost(2), true).await;
    let checkout = world.create(|_| {}).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    let paid = async {
        while !is_paid(&world, checkout.id).await {
            world.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, paid).await.expect("it was started again");
    assert_eq!(rail.starts.load(Ordering::SeqCst), 3, "lost, lost again, and taken");
    world.has_clean_books().await;
    world.close().await;
}

#[tokio::test]
async fn a_rail_that_would_charge_again_is_only_asked() {
    let (world, rail) = behind(Trouble::Lost(1), false).await;
    let checkout = world.create(|_| {}).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    for _ in 0..100 {
        world.clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    assert!(!is_paid(&world, checkout.id).await, "nobody knows");
    world.close().await;
}

#[tokio::test]
async fn nothing_is_started_for_a_payer_who_has_gone() {
    let (world, rail) = behind(Trouble::Lost(1), true).await;
    let checkout = world.create(|new| new.expires_in_s = 60).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    world.clock.advance(Duration::from_secs(61));
    for _ in 0..100 {
        world.clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    world.close().await;
}

#[tokio::test]
async fn a_no_to_a_call_that_was_overtaken_is_not_believed() {
    let (world, rail) = behind(Trouble::Late(Notify::new()), true).await;
    let checkout = world.create(|_| {}).await;
    let overtaken = async {
        while rail.starts.load(Ordering::SeqCst) < 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        world.clock.advance(Duration::from_secs(31));
    };
    tokio::join!(world.start(checkout.id, Method::Wave, "+2207000000"), overtaken);
    assert_eq!(rail.starts.load(Ordering::SeqCst), 2, "the worker took over");
    let shown = world.shown(checkout.id).await.expect("an attempt");
    assert_ne!(shown.status, "failed", "the rail has taken it");
    let paid = async {
        while !is_paid(&world, checkout.id).await {
            world.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, paid).await.expect("it is paid");
    world.has_clean_books().await;
    world.close().await;
}

/// Without it nobody can pay, and nothing else takes the payment's place. So it is where the rail's own word overtakes the call.
#[tokio::test(flavor = "multi_thread")]
async fn a_way_on_that_is_lost_twice_is_asked_for_again() {
    for place in Place::each("a way on that is lost twice is asked for again").await {
        let (world, rail) = behind_on(place.settings(), Trouble::AnswersLost(2, Notify::new()), true).await;
        let Trouble::AnswersLost(_, go_on) = &rail.trouble else { unreachable!() };
        let merchant = Merchant::of(&world).await;
        for is_overtaken in [false, true] {
            rail.starts.store(0, Ordering::SeqCst);
            let (_, object) = invoice(&merchant).await;
            let lost = async {
                starts(&rail, 1).await;
                if is_overtaken {
                    let (_, attempts) = merchant.ask("GET", "/v1/pay/transactions", Value::Null).await;
                    let attempt: Id<_> = attempts["data"]["items"][0]["id"].as_str().unwrap().parse().unwrap();
                    world.app.report(world.scope, attempt, Report::Open, None).await.unwrap();
                }
                go_on.notify_one();
            };
            let ((status, begun), ()) = tokio::join!(merchant.pay(&object, "wave", "+2207654321"), lost);
            assert_eq!((status, &begun["data"]["next_action"]), (200, &Value::Null), "{begun}");
            let path = format!("/v1/pay/session/{}", begun["data"]["id"].as_str().unwrap());
            let shown = async {
                while merchant.ask("GET", &path, Value::Null).await.1["data"]["next_action"]["type"] != "redirect" {
                    world.clock.advance(Duration::from_secs(1));
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(PATIENCE, shown).await.expect("the payer is told where to go");
            assert_eq!(rail.starts.load(Ordering::SeqCst), 3, "lost, lost again, and told");
        }
        world.has_clean_books().await;
        world.close().await;
        place.end().await;
    }
}

/// It would keep a place of the worker's for ever.
#[tokio::test]
async fn a_rail_that_never_answers_a_withdrawal_is_not_waited_for() {
    let (world, _) = behind(Trouble::Deaf, true).await;
    world.rest().await;
    let checkout = world.create(|_| {}).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    let attempt = world.shown(checkout.id).await.unwrap();
    let job = Job::WithdrawAttempt(attempt.id);
    let claimed = ClaimedJob { job, scope: world.scope, due_at: world.now(), attempts: 1, lease_token: 1 };
    let since = Since::now(world.app.store());
    let withdrawn = tokio::time::timeout(Duration::from_secs(25), world.app.withdraw_attempt(&claimed, since)).await;
    assert!(withdrawn.expect("it ends").is_err());
    world.app.store().close().await;
}

#[tokio::test]
async fn what_is_over_is_not_started_in_place_of_a_call_that_died() {
    let (world, rail) = behind(Trouble::Slow(Notify::new()), true).await;
    let checkout = world.create(|_| {}).await;
    let dies = async {
        starts(&rail, 1).await;
        world.cancel(checkout.id).await;
        for _ in 0..50 {
            world.clock.advance(Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = world.start(checkout.id, Method::Wave, "+2207000000") => panic!("nobody answers it"),
        () = dies => {}
    }
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    // The call may have arrived all the same.
    reaches(&rail.withdrawals, 1).await;
}

/// A client gives up after 30 seconds, and asks again without a key.
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_answered_in_time_though_the_database_hangs() {
    let Some(place) = Place::postgres("a payment is answered in time though the database hangs").await else { return };
    let (world, rail) = behind_on(place.settings(), Trouble::Slow(Notify::new()), true).await;
    world.rest().await;
    let merchant = Merchant::of(&world).await;
    let (_, object) = invoice(&merchant).await;
    let (table, row) = (place.raw_postgres().await, place.raw_postgres().await);
    let hanging = async {
        starts(&rail, 1).await;
        table.batch_execute("begin; lock table payment_sessions in access exclusive mode").await.unwrap();
        // The look gets through, late, and behind it the commit waits anew.
        let held = row.batch_execute("begin; select id from payment_sessions for update");
        let freed = async {
            tokio::time::sleep(Duration::from_secs(21)).await;
            table.batch_execute("rollback").await.unwrap();
        };
        let (held, ()) = tokio::join!(held, freed);
        held.unwrap();
    };
    let asked = tokio::time::timeout(Duration::from_secs(30), merchant.pay(&object, "wave", "+2207654321"));
    let (answered, ()) = tokio::join!(asked, hanging);
    let (status, begun) = answered.expect("the client still waits");
    assert_eq!((status, begun["data"]["status"].as_str()), (200, Some("processing")), "{begun}");
    row.batch_execute("rollback").await.unwrap();
    let Trouble::Slow(go_on) = &rail.trouble else { unreachable!() };
    go_on.notify_one();
    world.app.store().close().await;
    place.end().await;
}

/// On a database with more than one writer a session may be closed between the look at it and the lock of what is paid.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_another_request_just_closed_opens_no_other() {
    let Some(place) = Place::postgres("a session that another request just closed opens no other").await else {
        return;
    };
    let (world, rail) = behind_on(place.settings(), Trouble::Lost(0), true).await;
    let merchant = Merchant::of(&world).await;
    let (_, link) = merchant.ask("POST", "/v1/pay/payment-links", json!({ "title": "Tea", "amount": "25.00" })).await;
    let object = json!({ "object_type": "payment_link", "object_id": link["data"]["id"] });
    let (_, open) = merchant.pay(&object, "wave", "+2207000000").await;
    let session = json!({ "session_id": open["data"]["id"] });
    let (holder, watcher) = (place.raw_postgres().await, place.raw_postgres().await);
    holder.batch_execute("begin; select id from payment_links for update").await.unwrap();
    let both_wait = async {
        let waiting =
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        while watcher.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        holder.batch_execute("rollback").await.unwrap();
    };
    let (first, second, released) = tokio::join!(
        merchant.pay(&session, "afrimoney", "+2207654321"),
        merchant.pay(&session, "afrimoney", "+2207654321"),
        tokio::time::timeout(PATIENCE, both_wait),
    );
    released.expect("both have seen the session open");
    let (begun, refused) = if first.0 == 200 { (first, second) } else { (second, first) };
    assert_eq!((begun.0, refused.0), (200, 400), "{begun:?} {refused:?}");
    assert_eq!(refused.1["code"], "payment_session_closed", "{refused:?}");
    assert_eq!(rail.starts.load(Ordering::SeqCst), 2, "by Wave, and once by Afrimoney");
    world.app.store().close().await;
    place.end().await;
}

/// Without a key nobody can ask again: whoever was told of a fault would begin a second payment.
#[tokio::test]
async fn a_payment_that_is_committed_is_answered_as_it_stands() {
    for place in Place::each("a payment that is committed is answered as it stands").await {
        let (world, rail) = behind_on(place.settings(), Trouble::StoreGone(OnceLock::new()), true).await;
        let Trouble::StoreGone(app) = &rail.trouble else { unreachable!() };
        app.set(world.app.clone()).ok().unwrap();
        let merchant = Merchant::of(&world).await;
        let (_, link) =
            merchant.ask("POST", "/v1/pay/payment-links", json!({ "title": "Tea", "amount": "25.00" })).await;
        let object = json!({ "object_type": "payment_link", "object_id": link["data"]["id"] });
        let (status, begun) = merchant.pay(&object, "afrimoney", "+2207654321").await;
        assert_eq!((status, begun["data"]["status"].as_str()), (200, Some("processing")), "{begun}");
        assert_eq!(begun["data"]["amount"], "25.00");
        assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
        drop(world);
        place.end().await;
    }
}

pub(super) async fn is_paid(world: &World, checkout: Id<domain::checkout::Checkout>) -> bool {
    world.shown(checkout).await.is_some_and(|shown: TransactionSummary| shown.is_paid())
}
