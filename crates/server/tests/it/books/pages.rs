//! What the check goes through as a whole, and not with the objects of a page: logs, and rows that belong to nothing.

use dalasi::app::verify::{self, Progress, Report};
use domain::Scope;
use store::Value;

use super::{check, faults, in_doubt};
use crate::cli::place::Place;
use crate::world::World;

/// More than a step looks at.
const PLACES: i64 = 3_000;

const LAST_OF_EVENTS: &str = "
select coalesce(max(log_no), 0)
from event_log
where organization_id = $1 and mode = $2";
/// Places of nothing, from the number `$3` on to `$4`.
const PLACES_OF_EVENTS: &str = "
with recursive numbers (n) as (select cast($3 as bigint) union all select n + 1 from numbers where n < $4)
insert into event_log (organization_id, mode, log_no, event_id)
select $1, $2, n, 'evt_' || n
from numbers";
const PLACES_OF_ENTRIES: &str = "
with recursive numbers (n) as (select cast($3 as bigint) union all select n + 1 from numbers where n < $4)
insert into ledger_log (organization_id, mode, log_no, entry_id)
select $1, $2, n, 'entry_' || n
from numbers";

fn key(scope: Scope) -> [Value; 2] {
    [scope.organization.to_string().into(), scope.mode.as_str().into()]
}

/// So many more places in the log of events, and in that of the ledger.
async fn give_places(world: &World, count: i64) {
    let scope = world.scope;
    let given = world.app.commit(move |tx, _| {
        let last: i64 = tx.query_one(LAST_OF_EVENTS, &key(scope))?.get(0)?;
        let [organization, mode] = key(scope);
        let values = [organization, mode, (last + 1).into(), (last + count).into()];
        Ok([tx.execute(PLACES_OF_EVENTS, &values)?, tx.execute(PLACES_OF_ENTRIES, &values)?])
    });
    let count = u64::try_from(count).unwrap();
    assert_eq!(given.await, Ok([count, count]));
}

async fn whole(world: &World) -> Report {
    world.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_log_is_counted_in_parts_while_it_grows() {
    for place in Place::each("a long log is counted in parts").await {
        let world = World::on(place.settings()).await;
        world.rest().await;
        give_places(&world, PLACES).await;
        let of_logs = |report: &Report| {
            let told = faults(report).into_iter();
            told.filter(|(_, what)| what.contains(" places ")).collect::<Vec<_>>()
        };
        // No step looks at more than a step may.
        let growing = check(&world, async || give_places(&world, 7).await).await;
        assert!(growing.checked["event_log"] > PLACES.unsigned_abs(), "{:?}", growing.checked);
        assert!(of_logs(&growing).iter().all(|(table, _)| *table != "event_log"), "{:#?}", of_logs(&growing));

        let (steps, all) = (check(&world, async || {}).await, whole(&world).await);
        assert_eq!((&steps.checked, faults(&steps)), (&all.checked, faults(&all)));
        let count = steps.checked["event_log"];
        assert_eq!(steps.checked["ledger_log"], count);
        let unsealed = ("ledger_log", format!("all: {count} places were given, and 0 are in batches"));
        assert_eq!(of_logs(&steps), std::slice::from_ref(&unsealed));
        assert_eq!(in_doubt(&steps), [Some(world.scope)]);

        // Behind the first page.
        let gap = "delete from event_log where log_no = $1";
        let removed = world.app.commit(move |tx, _| Ok(tx.execute(gap, &[(PLACES / 2).into()])?));
        assert_eq!(removed.await, Ok(1));
        let (steps, all) = (check(&world, async || {}).await, whole(&world).await);
        assert_eq!(faults(&steps), faults(&all));
        let whose = format!("{} {}", world.scope.organization, world.scope.mode);
        let gap = format!("{whose}: {} places are numbered from 1 to {count}", count - 1);
        assert_eq!(of_logs(&steps), [("event_log", gap), unsealed]);
        world.app.store().close().await;
        place.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_nothing_that_tells_is_found_wherever_its_object_stands() {
    // Before, between and behind the ids of all that tell, as near to them as can be.
    const OBJECTS: [&str; 12] =
        ["", "a_1", "cs", "cs_", "cs_~~", "cs`", "inv", "invpay_1", "ps_~1", "ref_~~", "refs_1", "zzz"];
    for place in Place::each("an event of nothing that tells").await {
        let world = World::on(place.settings()).await;
        world.rest().await;
        let scope = world.scope;
        let told = world.app.commit(move |tx, _| {
            for (number, object) in OBJECTS.into_iter().chain(["cs_1"]).enumerate() {
                let [organization, mode] = key(scope);
                let insert =
                    "insert into events (organization_id, mode, id, type, object_id, sequence, body, created_at)
                    values ($1, $2, $3, 'checkout.completed', $4, 1, '{}', 0)";
                tx.execute(insert, &[organization, mode, format!("evt_{number}").into(), object.into()])?;
            }
            Ok(())
        });
        told.await.unwrap();
        let report = check(&world, async || {}).await;
        let found = faults(&report);
        assert_eq!(found, faults(&whole(&world).await));
        for (number, object) in OBJECTS.into_iter().enumerate() {
            let fault = ("events", format!("evt_{number}: it tells of nothing that tells"));
            assert!(found.contains(&fault), "{object:?}: {found:#?}");
        }
        let of_others = found.iter().filter(|(_, what)| what.ends_with("it tells of nothing that tells"));
        assert_eq!(of_others.count(), OBJECTS.len(), "the last one tells of a checkout: {found:#?}");
        world.app.store().close().await;
        place.end().await;
    }
}

/// A row that says whose it is puts nobody else's money in doubt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_posting_of_no_transaction_is_its_merchants_fault() {
    for place in Place::each("a posting of no transaction").await {
        let world = World::on(place.settings()).await;
        world.rest().await;
        world.has_clean_books().await;
        let scope = world.scope;
        let posted = world.app.commit(move |tx, _| {
            let insert = "insert into ledger_postings
                    (organization_id, mode, entry_id, line, transaction_id, account, currency, amount_minor, created_at)
                values ($1, $2, 'entry_nobody', 2, '', 'fees', 'GMD', 5, 5)";
            Ok(tx.execute(insert, &key(scope))?)
        });
        assert_eq!(posted.await, Ok(1));
        let report = check(&world, async || {}).await;
        let fault = ("ledger_postings", "entry_nobody: it is of no transaction".to_owned());
        assert_eq!(faults(&report).into_iter().collect::<Vec<_>>(), [fault]);
        assert_eq!(in_doubt(&report), [Some(scope)]);
        world.app.store().close().await;
        place.end().await;
    }
}
