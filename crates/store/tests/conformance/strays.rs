//! The check of the books goes through whole tables a page at a time: what belongs to nothing is found wherever it stands, and no
//! statement reads more than a page.

use domain::organization::Organization;
use domain::{Id, Mode, Scope};
use store::queries::ledger_batches;
use store::queries::verify::{self, Span, strays};
use store::{Dialect, Error, Schema, Store, Tx, Value};

use crate::on_both;
use crate::world::World;

on_both!(
    what_names_no_event_is_found_on_every_page,
    what_belongs_to_no_organization_is_found_on_every_page,
    what_is_kept_in_no_order_of_organizations_is_found_on_every_page,
    what_names_no_object_is_found_on_every_page,
    a_hundred_strays_of_a_look_are_told,
    a_log_is_counted_in_pages,
    what_waits_for_a_batch_is_looked_at_in_pages,
    no_page_is_read_from_the_beginning,
);

/// Of an organization `$1` in mode `$2`: events of `$3` objects.
const EVENTS: &str = "
with recursive numbers (n) as (select cast(1 as bigint) union all select n + 1 from numbers where n < $3)
insert into events (organization_id, mode, id, type, object_id, sequence, body, created_at)
select $1, $2, 'evt_' || (100000000 + n), 'checkout.completed', 'cs_' || (100000000 + n), 1, '{}', n
from numbers";
const UNLOGGED: &str = "
insert into events_unlogged (organization_id, mode, id)
select organization_id, mode, id
from events";
const LOGGED: &str = "
insert into event_log (organization_id, mode, log_no, event_id)
select organization_id, mode, created_at, id
from events";
const DELIVERED: &str = "
insert into webhook_deliveries (organization_id, mode, event_id, endpoint_id, object_id, sequence, status, by_hand, attempts,
    round_attempts, lease_until, lease_token)
select organization_id, mode, id, 'we_one', object_id, sequence, 'delivered', 0, 1, 1, 0, 0
from events";
const UNSEALED: &str = "
with recursive numbers (n) as (select cast(1 as bigint) union all select n + 1 from numbers where n < $3)
insert into ledger_unsealed (organization_id, mode, entry_id)
select $1, $2, 'entry_' || (100000000 + n)
from numbers";
const JOBS: &str = "
with recursive numbers (n) as (select cast(1 as bigint) union all select n + 1 from numbers where n < $3)
insert into jobs (kind, object_id, organization_id, mode, due_at, lane, attempts, lease_until, lease_token)
select 'expire_checkout', 'cs_' || (100000000 + n), $1, $2, n, 3, 0, 0, 0
from numbers";
/// One names no customer.
const CHECKOUTS: &str = "
with recursive numbers (n) as (select cast(1 as bigint) union all select n + 1 from numbers where n < $3)
insert into checkouts (organization_id, mode, id, version, doc, status, amount_minor, currency, customer_id, deadline_at,
    created_at, updated_at)
select $1, $2, 'cs_' || (100000000 + n), 1, '{}', 'pending', 100, 'GMD',
    case n when 1 then 'cus_nobody' when 2 then null when $3 then 'cus_unknown' else 'cus_somebody' end, n, n, n
from numbers";

/// More than two pages.
const MANY: i64 = 2_500;
/// In how many steps so many rows of one organization are looked at: the first that are found say whose all of them are, and behind
/// them there are none; or each page of them.
const PAGES_BY_SCOPE: usize = 2;
const PAGES_BY_ROW: usize = 3;

fn organization(tx: &mut Tx<'_>) -> Result<Scope, Error> {
    let now = tx.now();
    let organization: Id<Organization> = tx.entropy().id(now);
    tx.insert(&mut Organization::new(organization, Mode::Test, "Kairaba Books".into(), now))?;
    Ok(Scope { organization, mode: Mode::Test })
}

/// So many rows of each kind, of an organization that is there.
fn fill(tx: &mut Tx<'_>, text: &str, count: i64) -> Result<Scope, Error> {
    let scope = organization(tx)?;
    let [organization, mode] = [Value::from(scope.organization.to_string()), scope.mode.as_str().into()];
    tx.execute(text, &[organization, mode, count.into()])?;
    Ok(scope)
}

/// The strays of a table, and in how many steps they are found.
async fn found(store: &Store, table: &'static str) -> (Vec<String>, usize) {
    let walked = store.read(move |tx| {
        let (mut found, mut steps) = (Vec::new(), 0);
        for look in (0..strays::LOOKS).filter(|look| strays::table(*look) == table) {
            let mut place = strays::Place::default();
            while !place.is_end {
                let strays = strays::find(tx, look, &mut place)?;
                found.extend(strays.iter().map(|stray| format!("{}: {}", stray.row, stray.what)));
                steps += 1;
            }
        }
        Ok::<_, Error>((found, steps))
    });
    walked.await.unwrap()
}

fn told(rows: &[&str], what: &str) -> Vec<String> {
    rows.iter().map(|row| format!("{row}: {what}")).collect()
}

async fn run(store: &Store, sql: &'static str) -> u64 {
    store.write(move |tx| tx.execute(sql, &[])).await.unwrap()
}

async fn what_names_no_event_is_found_on_every_page(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    store.write(|tx| fill(tx, EVENTS, MANY)).await.unwrap();
    for text in [UNLOGGED, LOGGED, DELIVERED] {
        assert_eq!(run(&store, text).await, 2_500);
    }
    let tables = ["events_unlogged", "event_log", "webhook_deliveries"];
    for table in tables {
        assert_eq!(found(&store, table).await, (vec![], PAGES_BY_SCOPE + PAGES_BY_ROW), "{table}");
    }
    let gone = "delete from events where id in ('evt_100000001', 'evt_100001700', 'evt_100002500')";
    assert_eq!(run(&store, gone).await, 3);
    let strays = told(&["evt_100000001", "evt_100001700", "evt_100002500"], "there is no such event");
    for table in tables {
        assert_eq!(found(&store, table).await.0, strays, "{table}");
    }
    // Another of the same object.
    let altered = "update webhook_deliveries set sequence = 2 where event_id = 'evt_100002400'";
    assert_eq!(run(&store, altered).await, 1);
    assert_eq!(found(&store, "webhook_deliveries").await.0.len(), 4);
    store.close().await;
}

async fn what_belongs_to_no_organization_is_found_on_every_page(world: &World) {
    const WHAT: &str = "it belongs to no organization and mode";
    let store = world.try_open(Schema::product()).await.unwrap();
    store.write(|tx| fill(tx, UNSEALED, MANY)).await.unwrap();
    assert_eq!(found(&store, "ledger_unsealed").await, (vec![], PAGES_BY_SCOPE));
    // The next page begins behind the rest of the first one's rows.
    store.write(|tx| fill(tx, UNSEALED, MANY)).await.unwrap();
    assert_eq!(found(&store, "ledger_unsealed").await, (vec![], PAGES_BY_SCOPE + 1));
    // Before all others, and behind them.
    let strays = "insert into ledger_unsealed (organization_id, mode, entry_id)
        values ('', '', ''), ('zzz', 'live', 'z_1'), ('zzz', 'test', 'z_2'), ('zzz', 'test', 'z_3')";
    assert_eq!(run(&store, strays).await, 4);
    let rows = told(&["", "z_1", "z_2", "z_3"], WHAT);
    assert_eq!(found(&store, "ledger_unsealed").await, (rows, PAGES_BY_SCOPE + 1));
    let batches = "insert into ledger_batches
            (organization_id, mode, batch_no, first_log_no, last_log_no, statement, signature, public_key)
        values ('zzz', 'test', 2, 2, 2, 'second', '', ''), ('zzz', 'test', 1, 1, 1, 'the one before', '', '')";
    assert_eq!(run(&store, batches).await, 2);
    assert_eq!(found(&store, "ledger_batches").await, (told(&["the one before", "second"], WHAT), 1));
    if world.dialect() == Dialect::Sqlite {
        // Nobody can ask for its rows.
        let nameless = "insert into ledger_unsealed (organization_id, mode, entry_id)
            values ('a' || char(0), 'test', 'a_1')";
        assert_eq!(run(&store, nameless).await, 1);
        let rows = told(&["", "a\0 test", "z_1", "z_2", "z_3"], WHAT);
        assert_eq!(found(&store, "ledger_unsealed").await, (rows, PAGES_BY_SCOPE + 1));
    }
    store.close().await;
}

async fn what_is_kept_in_no_order_of_organizations_is_found_on_every_page(world: &World) {
    const WHAT: &str = "it belongs to no organization and mode";
    let store = world.try_open(Schema::product()).await.unwrap();
    let scope = store.write(|tx| fill(tx, JOBS, MANY)).await.unwrap();
    assert_eq!(found(&store, "jobs").await, (vec![], PAGES_BY_ROW));
    let strays = "insert into jobs
            (kind, object_id, organization_id, mode, due_at, lane, attempts, lease_until, lease_token)
        values ('', '', 'zzz', 'test', 0, 0, 0, 0, 0), ('z', 'z_1', 'zzz', 'test', 0, 0, 0, 0, 0)";
    assert_eq!(run(&store, strays).await, 2);
    assert_eq!(found(&store, "jobs").await, (told(&["", "z_1"], WHAT), PAGES_BY_ROW));
    let kept = store.write(move |tx| {
        let ours = scope.organization.to_string();
        for (organization, name) in [("", "first"), (ours.as_str(), "ours"), ("zzz", "last")] {
            let insert = "insert into idempotency_keys
                    (organization_id, mode, space, idempotency_key, fingerprint, state, created_at)
                values ($1, 'test', '', $2, $3, 'running', 0)";
            tx.execute(insert, &[organization.into(), name.into(), vec![7_u8; 32].into()])?;
        }
        Ok::<_, Error>(())
    });
    kept.await.unwrap();
    assert_eq!(found(&store, "idempotency_keys").await.0, told(&["first", "last"], WHAT));
    store.close().await;
}

async fn what_names_no_object_is_found_on_every_page(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let filled = store.write(|tx| {
        let scope = fill(tx, CHECKOUTS, MANY)?;
        let key = [Value::from(scope.organization.to_string()), scope.mode.as_str().into()];
        for insert in [
            "insert into customers (organization_id, mode, id, version, doc, email_key, created_at, updated_at)
                values ($1, $2, 'cus_somebody', 1, '{}', 'awa@example.gm', 0, 0)",
            "insert into simulated_payments (organization_id, mode, transaction_id, version, doc, token_digest, created_at)
                values ($1, $2, 'txn_none', 1, '{}', '', 0)",
            "insert into simulated_refunds
                    (organization_id, mode, refund_id, version, doc, transaction_id, paid_back_minor, created_at)
                values ($1, $2, 'ref_none', 1, '{}', 'txn_none', 0, 0)",
        ] {
            assert_eq!(tx.execute(insert, &key)?, 1);
        }
        Ok::<_, Error>(())
    });
    filled.await.unwrap();
    let strays = told(&["cs_100000001", "cs_100002500"], "there is no such customer");
    assert_eq!(found(&store, "checkouts").await, (strays, PAGES_BY_SCOPE + PAGES_BY_ROW));
    let strays = told(&["txn_none"], "there is no such transaction");
    assert_eq!(found(&store, "simulated_payments").await.0, strays);
    assert_eq!(found(&store, "simulated_refunds").await.0, told(&["ref_none"], "there is no such refund"));
    store.close().await;
}

async fn a_hundred_strays_of_a_look_are_told(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    store.write(|tx| fill(tx, UNSEALED, MANY)).await.unwrap();
    store.write(|tx| fill(tx, EVENTS, MANY)).await.unwrap();
    run(&store, LOGGED).await;
    run(&store, "update ledger_unsealed set organization_id = 'zzz'").await;
    run(&store, "delete from events where created_at > 980").await;
    assert_eq!(found(&store, "ledger_unsealed").await.0.len(), 100);
    let (strays, _) = found(&store, "event_log").await;
    assert_eq!(strays.len(), 100);
    assert!(strays[0].starts_with("evt_100000981: ") && strays[99].starts_with("evt_100001080: "), "{strays:?}");
    store.close().await;
}

async fn a_log_is_counted_in_pages(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let scope = store.write(|tx| fill(tx, EVENTS, MANY)).await.unwrap();
    run(&store, LOGGED).await;
    run(&store, "update event_log set log_no = -5 where log_no = 1").await;
    let pages = async |log: &'static str| {
        let walked = store.read(move |tx| {
            let (mut pages, mut from) = (Vec::new(), i64::MIN);
            loop {
                let page = verify::places(tx, scope, log, from)?;
                pages.push((page.count, page.first, page.last));
                if page.count < verify::KEYS {
                    return Ok::<_, Error>(pages);
                }
                from = page.last.unwrap() + 1;
            }
        });
        walked.await.unwrap()
    };
    let expected = [(1000, Some(-5), Some(1000)), (1000, Some(1001), Some(2000)), (500, Some(2001), Some(2500))];
    assert_eq!(pages("event_log").await, expected);
    assert_eq!(pages("ledger_log").await, [(0, None, None)]);
    store.close().await;
}

async fn what_waits_for_a_batch_is_looked_at_in_pages(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let scope = store.write(|tx| fill(tx, UNSEALED, 450)).await.unwrap();
    let posted = "insert into ledger_postings
            (organization_id, mode, entry_id, line, transaction_id, account, currency, amount_minor, created_at)
        select organization_id, mode, entry_id, 1, 'txn_one', 'fees', 'GMD', 5, 5
        from ledger_unsealed
        where entry_id <> 'entry_100000450'";
    assert_eq!(run(&store, posted).await, 449);
    let logged = "insert into ledger_log (organization_id, mode, log_no, entry_id)
        select organization_id, mode, 1, entry_id
        from ledger_unsealed
        where entry_id = 'entry_100000201'";
    assert_eq!(run(&store, logged).await, 1);
    let nameless = "insert into ledger_unsealed (organization_id, mode, entry_id)
        select organization_id, mode, ''
        from ledger_log";
    assert_eq!(run(&store, nameless).await, 1);
    let walked = store.read(move |tx| {
        let (mut counts, mut for_nothing, mut after) = (Vec::new(), Vec::new(), String::new());
        loop {
            let page = ledger_batches::waiting_behind(tx, scope, &after)?;
            counts.push(page.count);
            for_nothing.extend(page.for_nothing);
            match page.last {
                Some(last) => after = last,
                None => return Ok::<_, Error>((counts, for_nothing)),
            }
        }
    });
    let (counts, for_nothing) = walked.await.unwrap();
    assert_eq!(counts, [200, 200, 51]);
    assert_eq!(for_nothing, ["", "entry_100000201", "entry_100000450"]);
    store.close().await;
}

/// A page that is not the first begins where the one before it ended, by an index that has its rows in that order.
async fn no_page_is_read_from_the_beginning(world: &World) {
    if world.dialect() == Dialect::Postgres {
        // As among many rows: of a table that is empty it reads all there is.
        world.alter("enable_seqscan = off").await;
        world.alter("enable_bitmapscan = off").await;
    }
    let store = world.try_open(Schema::product()).await.unwrap();
    let scope = store.write(organization).await.unwrap();
    let plans = store.read(|tx| {
        let plan = |look| Ok::<_, Error>((strays::table(look), strays::plan(tx, look)?));
        (0..strays::LOOKS).map(plan).collect::<Result<Vec<_>, Error>>()
    });
    let (mut seen, mut by) = (0, String::new());
    for (table, plan) in plans.await.unwrap() {
        let Some(plan) = plan else { continue };
        let begins = match world.dialect() {
            Dialect::Sqlite => {
                plan.lines().any(|line| line.starts_with(&format!("SEARCH {table} ")) && line.contains('>'))
            }
            Dialect::Postgres => plan.contains("Index Cond: (ROW("),
        };
        let reads_all = [format!("SCAN {table}"), "Seq Scan".to_owned()];
        assert!(begins && reads_all.iter().all(|words| !plan.contains(words)), "{table}:\n{plan}");
        seen += 1;
        by.push_str(&plan);
    }
    // Neither through the rows themselves, nor by an index that has not their order.
    let indexes = match world.dialect() {
        Dialect::Sqlite => ["checkouts_by_customer", "(organization_id,mode,log_no)>(?,?,?)"],
        Dialect::Postgres => ["checkouts_by_customer", "ROW(organization_id, mode, log_no) > ROW("],
    };
    for index in indexes {
        assert!(by.contains(index), "{index}: {by}");
    }
    assert_eq!(seen, strays::LOOKS - 1, "one is of the other database");
    let span = Span { after: "cs_", until: Some("cs_~") };
    let plan = store.read(move |tx| verify::plan_of_events(tx, scope, span, ("cs_5", 1))).await.unwrap();
    let behind = match world.dialect() {
        Dialect::Sqlite => "(object_id,sequence)>(?,?)",
        Dialect::Postgres => "ROW(object_id, sequence) > ROW(",
    };
    assert!(plan.contains(behind), "{plan}");
    store.close().await;
}
