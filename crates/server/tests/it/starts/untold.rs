//! A payment that was begun, and nobody was told so: whoever asks for the same again without a key is told of that one. A link, which
//! many pay, would take a second payment of the same payer.

use super::*;
use crate::cli::place::Place;
use crate::repeated::{given_up, in_a_commit, in_line};

const LEASE: Duration = Duration::from_secs(31);

/// A link, and what its payer asks for.
async fn tea(merchant: &Merchant) -> Value {
    let (_, link) = merchant.ask("POST", "/v1/pay/payment-links", json!({ "title": "Tea", "amount": "25.00" })).await;
    json!({
        "object_type": "payment_link",
        "object_id": link["data"]["id"],
        "payment_method": "afrimoney",
        "customer_phone": "+2207654321",
    })
}

fn pay(merchant: &Arc<Merchant>, body: &Value) -> impl Future<Output = (u16, bool, Value)> + Send + use<> {
    let (merchant, body) = (Arc::clone(merchant), body.clone());
    async move { merchant.told(None, "POST", "/v1/pay/initialize", body).await }
}

async fn attempts(merchant: &Merchant) -> Vec<Value> {
    let (_, list) = merchant.ask("GET", "/v1/pay/transactions", Value::Null).await;
    list["data"]["items"].as_array().unwrap().clone()
}

/// A disk takes longer for the commit than anybody waits; the worker calls when the lease of whoever was to call is over.
#[tokio::test]
async fn a_payment_whose_commit_outlasts_its_payer_is_begun_once() {
    let (world, rail) = behind(Trouble::Lost(0), true).await;
    world.rest().await;
    let merchant = Arc::new(Merchant::of(&world).await);
    let body = tea(&merchant).await;
    let (first, disk) = in_a_commit(&world, pay(&merchant, &body)).await;
    assert_eq!(given_up(first).await.0, 500, "nothing true can be said");
    let again = tokio::spawn(pay(&merchant, &body));
    tokio::time::sleep(Duration::from_millis(200)).await;
    disk.open();
    let worker = async {
        while !again.is_finished() {
            world.clock.advance(LEASE);
            for claimed in dalasi::jobs::claim_due(&world.app, 9).await {
                dalasi::jobs::run_one(&world.app, claimed).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, worker).await.expect("it is told how the payment stands");
    let (status, is_replayed, told) = again.await.unwrap();
    assert_eq!((status, is_replayed), (200, true), "{told}");
    let attempts = attempts(&merchant).await;
    assert_eq!((attempts.len(), rail.starts.load(Ordering::SeqCst)), (1, 1), "{attempts:?}");
    world.has_clean_books().await;
    world.app.store().close().await;
}

/// The first one's call goes on, and is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_payer_who_went_away_and_asks_again_begins_no_other_payment() {
    for place in Place::each("a payer who went away and asks again begins no other payment").await {
        let (world, rail) = behind_on(place.settings(), Trouble::Lost(0), true).await;
        world.rest().await;
        let merchant = Arc::new(Merchant::of(&world).await);
        let body = tea(&merchant).await;
        let (first, disk, holder) = if place.is_postgres() {
            let (holder, watcher) = (place.raw_postgres().await, place.raw_postgres().await);
            holder.batch_execute("begin; select id from payment_links for update").await.unwrap();
            let first = tokio::spawn(pay(&merchant, &body));
            // Who goes away before is dropped when it would be tried once more.
            let waiting = "select count(*) from pg_stat_activity where datname = current_database()
                and wait_event_type = 'Lock' and clock_timestamp() - query_start > interval '600 ms'";
            while watcher.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            (first, None, Some(holder))
        } else {
            let (first, disk) = in_line(&world, pay(&merchant, &body)).await;
            (first, Some(disk), None)
        };
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        let again = tokio::spawn(pay(&merchant, &body));
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!again.is_finished(), "nobody knows yet");
        if let Some(disk) = disk {
            disk.open();
        }
        if let Some(holder) = holder {
            holder.batch_execute("rollback").await.unwrap();
        }
        let (status, is_replayed, told) = again.await.unwrap();
        assert_eq!((status, is_replayed), (200, true), "{told}");
        let attempts = attempts(&merchant).await;
        assert_eq!((attempts.len(), rail.starts.load(Ordering::SeqCst)), (1, 1), "{attempts:?}");
        // Whoever wants to pay once more may.
        let (status, is_replayed, other) = pay(&merchant, &body).await;
        assert_eq!((status, is_replayed), (200, false));
        assert_ne!(other["data"]["id"], told["data"]["id"]);
        world.has_clean_books().await;
        world.app.store().close().await;
        place.end().await;
    }
}

/// What ended meanwhile without a payment is no answer to who asks to pay.
#[tokio::test]
async fn a_payment_that_failed_meanwhile_is_begun_anew() {
    let (world, rail) = behind(Trouble::Lost(0), true).await;
    world.rest().await;
    let merchant = Arc::new(Merchant::of(&world).await);
    let mut body = tea(&merchant).await;
    body["customer_phone"] = json!("+2207000001");
    fails_untold(&world, &merchant, &body).await;
    let (status, is_replayed, told) = pay(&merchant, &body).await;
    assert_eq!((status, is_replayed), (200, false), "{told}");
    assert_eq!((attempts(&merchant).await.len(), rail.starts.load(Ordering::SeqCst)), (2, 2));
    world.has_clean_books().await;
    world.app.store().close().await;
}

/// Who asks goes away before it is begun; the payer has no money, and the worker finds out.
async fn fails_untold(world: &World, merchant: &Arc<Merchant>, body: &Value) {
    let (asked, disk) = in_line(world, pay(merchant, body)).await;
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    disk.open();
    let failed = async {
        while attempts(merchant).await.first().is_none_or(|attempt| attempt["status"] != "failed") {
            work(world).await;
        }
    };
    tokio::time::timeout(PATIENCE, failed).await.expect("its payer has no money");
}

async fn work(world: &World) {
    world.clock.advance(Duration::from_secs(1));
    for claimed in dalasi::jobs::claim_due(&world.app, 9).await {
        dalasi::jobs::run_one(&world.app, claimed).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// Nothing else can be begun by such a request, and to go on with what ended is refused.
#[tokio::test]
async fn who_goes_on_with_a_session_is_told_how_it_failed() {
    let (world, rail) = behind(Trouble::Lost(0), true).await;
    world.rest().await;
    let merchant = Arc::new(Merchant::of(&world).await);
    let tea = tea(&merchant).await;
    let only_opened = json!({ "object_type": tea["object_type"], "object_id": tea["object_id"] });
    let (status, opened) = merchant.ask("POST", "/v1/pay/initialize", only_opened).await;
    assert_eq!(status, 200, "{opened}");
    let session = opened["data"]["session_id"].clone();
    let body = json!({ "session_id": session, "payment_method": "afrimoney", "customer_phone": "+2207000001" });
    fails_untold(&world, &merchant, &body).await;
    let (status, is_replayed, told) = pay(&merchant, &body).await;
    assert_eq!((status, is_replayed), (200, true), "{told}");
    assert_eq!((&told["data"]["session_id"], &told["data"]["status"]), (&session, &json!("failed")), "{told}");
    assert_eq!((attempts(&merchant).await.len(), rail.starts.load(Ordering::SeqCst)), (1, 1));
    world.app.store().close().await;
}

/// Two who asked for the same at once were not told, and of one of their payments nothing is to be had.
#[tokio::test]
async fn a_payment_that_goes_on_is_told_where_another_one_failed() {
    for failed in 0..2 {
        let (world, rail) = behind(Trouble::Lost(0), true).await;
        world.rest().await;
        let merchant = Arc::new(Merchant::of(&world).await);
        let body = tea(&merchant).await;
        let (first, disk) = in_line(&world, pay(&merchant, &body)).await;
        let second = tokio::spawn(pay(&merchant, &body));
        tokio::time::sleep(Duration::from_millis(300)).await;
        for asked in [first, second] {
            asked.abort();
            assert!(asked.await.unwrap_err().is_cancelled());
        }
        disk.open();
        let started = async {
            while rail.starts.load(Ordering::SeqCst) < 2 {
                work(&world).await;
            }
        };
        tokio::time::timeout(PATIENCE, started).await.expect("both were begun");
        let begun = attempts(&merchant).await;
        let attempt = begun[failed]["id"].as_str().unwrap().parse().unwrap();
        world.app.report(world.scope, attempt, Report::Failed { reason: FailureReason::Declined }, None).await.unwrap();
        let (status, is_replayed, told) = pay(&merchant, &body).await;
        assert_eq!((status, is_replayed), (200, true), "{told}");
        let other = &begun[1 - failed]["id"];
        assert!(told.to_string().contains(other.as_str().unwrap()), "{other} is not in {told}");
        assert_eq!((attempts(&merchant).await.len(), rail.starts.load(Ordering::SeqCst)), (2, 2));
        world.app.store().close().await;
    }
}
