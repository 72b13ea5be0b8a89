//! What is paid, or given up, is held by another transaction for a while, on a database with more than one writer.

use super::*;
use crate::cli::place::Place;

/// Its readers have been told so by then, and nobody takes that back.
#[tokio::test(flavor = "multi_thread")]
async fn what_ran_out_while_it_was_waited_for_is_over() {
    let Some(place) = Place::postgres("what ran out while it was waited for is over").await else { return };
    let (world, rail) = behind_on(place.settings(), Trouble::Lost(0), true).await;
    world.rest().await;
    world.clock.stop();
    let merchant = Merchant::of(&world).await;
    let (holder, watcher) = (place.raw_postgres().await, place.raw_postgres().await);
    for pays in [true, false] {
        let checkout = world.create(|new| new.expires_in_s = 5).await.id;
        let path = format!("/v1/checkouts/{checkout}");
        let object = json!({ "object_type": "checkout", "object_id": checkout.to_string() });
        holder.batch_execute("begin; select id from checkouts for update").await.unwrap();
        let asked = async {
            match pays {
                true => merchant.pay(&object, "wave", "+2207000000").await,
                false => merchant.ask("POST", &format!("{path}/cancel"), json!({})).await,
            }
        };
        let runs_out = async {
            let waiting =
                "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
            while watcher.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // Sooner than it would be too late to begin anything.
            world.clock.advance(Duration::from_secs(6));
            let (_, told) = merchant.ask("GET", &path, Value::Null).await;
            assert_eq!(told["data"]["status"], "expired", "{told}");
            holder.batch_execute("rollback").await.unwrap();
        };
        let ((status, refused), released) = tokio::join!(asked, tokio::time::timeout(PATIENCE, runs_out));
        released.expect("it waits for the checkout");
        assert_eq!((status, refused["code"].as_str()), (400, Some("checkout_expired")), "{refused}");
    }
    let (_, attempts) = merchant.ask("GET", "/v1/pay/transactions", Value::Null).await;
    assert_eq!(attempts["data"]["items"], json!([]), "{attempts}");
    assert_eq!(rail.starts.load(Ordering::SeqCst), 0);
    world.app.store().close().await;
    place.end().await;
}
