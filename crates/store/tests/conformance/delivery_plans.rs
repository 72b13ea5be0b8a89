//! What is owed to one endpoint is found without reading what else is owed to it, whatever the database believes of its rows.

use domain::event::{Event, EventType};
use domain::webhook::Delivery;
use domain::{Mode, Scope};
use store::queries::{deliveries, endpoints};
use store::{Dialect, Error, Schema, Tx};

use crate::on_both;
use crate::world::{Known, World, count_rows};

on_both!(a_look_passes_over_no_other_endpoint, who_calls_the_next_reads_no_other);

/// Of the organization `$1` ten thousand wait for each of five endpoints, one of which is `$2`; `$3` is the first number of those.
const FILL: &str = "
with recursive numbers (n) as (select cast($3 as bigint) union all select n + 1 from numbers where n < $3 + 49999)
insert into webhook_deliveries (organization_id, mode, event_id, endpoint_id, object_id, sequence, status, by_hand,
    attempts, round_attempts, next_retry_at, lease_until, lease_token)
select $1, 'test', 'evt_' || n, case n % 5 when 0 then $2 else $2 || (n % 5) end, 'cs_' || n, 1, 'pending', 0, 0, 0, n, 0, 0
from numbers";

const ALL_ARRIVED: &str = "update webhook_deliveries set status = 'delivered', next_retry_at = null";

/// An event of its own, owed to one of them.
fn fill(tx: &mut Tx<'_>, known: Known) -> Result<Delivery, Error> {
    let now = tx.now();
    let scope = Scope { organization: tx.entropy().id(now), mode: Mode::Test };
    let (id, kind, body) = (tx.entropy().id(now), EventType::CheckoutCancelled.into(), "{}".to_owned());
    let event = Event { id, scope, kind, object_id: "cs_one".to_owned(), sequence: 1, body, created_at: now };
    let delivery = Delivery::owed(&event, tx.entropy().id(now), now);
    let (organization, endpoint) = (scope.organization.to_string(), delivery.endpoint.to_string());
    let fill = |tx: &mut Tx<'_>, first: i64| {
        tx.execute(FILL, &[organization.as_str().into(), endpoint.as_str().into(), first.into()])
    };
    if known == Known::NothingWaited {
        fill(tx, 0)?;
        tx.execute(ALL_ARRIVED, &[])?;
        count_rows(tx)?;
    }
    fill(tx, 50_000)?;
    if known == Known::Everything {
        count_rows(tx)?;
    }
    Ok(delivery)
}

async fn a_look_passes_over_no_other_endpoint(world: &World) {
    for &known in Known::of(world.dialect()) {
        let store = world.try_open(Schema::product()).await.unwrap();
        let plans = store.write(move |tx| {
            let delivery = fill(tx, known)?;
            let mut plans = Vec::from(deliveries::plans(tx, &delivery)?);
            plans.extend(endpoints::plans_of_giving_up(tx, &delivery)?);
            plans.extend(deliveries::plans_of_bringing_back(tx, &delivery)?);
            plans.extend(deliveries::plans_of_looking(tx, &delivery)?);
            tx.execute("delete from webhook_deliveries", &[])?;
            Ok::<_, Error>(plans)
        });
        for (what, plan) in plans.await.unwrap() {
            let told = format!("{what}, where it knows {known:?}:\n{plan}");
            assert!(
                !plan.contains("Seq Scan") && !plan.contains("SCAN due") && !plan.contains("SCAN webhook"),
                "{told}"
            );
            let count = |index: &str| plan.matches(index).count();
            let (due, open) = (count("webhook_deliveries_due"), count("webhook_deliveries_open"));
            match what {
                // A step for each endpoint, and the first that each is owed.
                "owed" => assert!(due >= 2 && open == 0, "{told}"),
                // The part that belongs to an endpoint, in the order of time; and those before it by its object.
                "due" | "next due" => assert!(due == 1 && open == 1, "{told}"),
                "open" => assert!(due == 1 && open == 0, "{told}"),
                "next" | "next object" | "next endpoint" => assert!(due == 0 && open == 1, "{told}"),
                // Some of all, each by its key.
                _ => assert!(due == 0 && open == 0, "{told}"),
            }
            // Many may be due since the same moment: all that happened to many objects at once. A look that is made once for each
            // endpoint may sort where nobody has counted yet.
            let sorts = plan.contains("TEMP B-TREE") || plan.contains("Sort");
            assert!(matches!(what, "owed" | "next endpoint") || !sorts, "{told}");
        }
        store.close().await;
    }
}

/// However many there are: in the one transaction that writes.
async fn who_calls_the_next_reads_no_other(world: &World) {
    for &known in Known::of(world.dialect()) {
        let store = world.try_open(Schema::product()).await.unwrap();
        let plans = store.write(move |tx| {
            let delivery = fill(tx, known)?;
            let plans = deliveries::plans_behind(tx, &delivery)?;
            tx.execute("delete from webhook_deliveries", &[])?;
            Ok::<_, Error>(plans)
        });
        for (what, plan) in plans.await.unwrap() {
            let once_for_each = match world.dialect() {
                Dialect::Sqlite => "CORRELATED",
                Dialect::Postgres => "SubPlan",
            };
            let told = format!("{what}, where it knows {known:?}:\n{plan}");
            assert!(!plan.contains(once_for_each), "{told}");
            assert!(plan.contains("webhook_deliveries_open") && !plan.contains("webhook_deliveries_due"), "{told}");
        }
        store.close().await;
    }
}
