//! Row B9: a database of every earlier schema, with rows in it, brings itself to the newest one with the same data, also when
//! a migration fails half way or the power goes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use power_cut::{Disk, Recording, Seeded};
use store::queries::transactions::CAME_TWICE;
use store::{Clock as _, Database, Error, Migration, Schema, Settings, Store, Tx, Value};

use crate::on_both;
use crate::world::{System, World, entropy};

on_both!(
    every_earlier_schema_keeps_its_rows,
    a_migration_that_fails_half_way_leaves_nothing_and_resumes,
    a_step_outside_its_transaction_is_seen,
    second_money_of_before_loses_its_fee,
);

/// What was there from the second migration on, with the columns that it had then and has still. The fourth builds
/// `transactions` anew, the thirteenth most of the others.
const TABLES: &[(&str, &str)] = &[
    ("organizations", "organization_id, mode, id, version, doc, name, created_at"),
    (
        "checkouts",
        "id, organization_id, mode, version, doc, status, amount_minor, currency, customer_id, reference, deadline_at,
        created_at, updated_at",
    ),
    (
        "payment_sessions",
        "id, organization_id, mode, version, doc, status, object_type, object_id, amount_minor, currency, created_at,
        updated_at",
    ),
    (
        "transactions",
        "id, organization_id, mode, version, doc, status, step, attention, payment_session_id, object_type, object_id,
        payment_method, rail, rail_reference, amount_minor, fee_minor, currency, created_at, updated_at",
    ),
    (
        "ledger_postings",
        "entry_id, line, organization_id, mode, transaction_id, account, currency, amount_minor, created_at",
    ),
    ("events", "id, organization_id, mode, type, object_id, sequence, body, created_at"),
    ("events_unlogged", "id, organization_id, mode"),
    ("event_log", "event_id, log_no, organization_id, mode"),
    ("jobs", "object_id, kind, organization_id, mode, due_at, attempts, lease_until, lease_token"),
    ("idempotency_keys", "idempotency_key, organization_id, mode, space, fingerprint, state, status, body, created_at"),
];

const OBJECTS: i64 = 60;

/// Every status and step that the tables allow, in turn.
const STATUSES: [(&str, &str); 8] = [
    ("pending", "sending"),
    ("processing", "waiting"),
    ("completed", "settled"),
    ("failed", "settled"),
    ("cancelled", "settled"),
    ("expired", "settled"),
    ("refunded", "settled"),
    ("partially_refunded", "unknown"),
];

fn insert(tx: &mut Tx<'_>, table: &str, values: &[Value]) -> Result<(), Error> {
    let (_, columns) = TABLES.iter().find(|(name, _)| *name == table).unwrap();
    let places: Vec<_> = (1..=values.len()).map(|place| format!("${place}")).collect();
    tx.execute(&format!("insert into {table} ({columns}) values ({})", places.join(", ")), values).map(drop)
}

/// In the schema of the first `count` migrations.
fn fill(tx: &mut Tx<'_>, count: usize) -> Result<(), Error> {
    let (org, mode) = (|| Value::from("org_1"), || Value::from("test"));
    insert(tx, "organizations", &[org(), mode(), org(), 1.into(), "{}".into(), "Kairaba Books".into(), 7.into()])?;
    for number in 0..OBJECTS {
        let id = |prefix: &str| Value::from(format!("{prefix}_{number:04}"));
        let amount = || Value::from(100 + number * 1_000_003);
        let doc = || Value::from(format!("{{\"n\": {number}, \"name\": \"Nd\u{eb}y \u{1f33f}\"}}"));
        let (status, step) = STATUSES[usize::try_from(number).unwrap() % STATUSES.len()];
        let reference = if number % 2 == 0 { Value::Null } else { id("ref") };
        let times = || [Value::from(number), Value::from(number + 1)];

        let mut checkout = vec![id("cs"), org(), mode(), 3.into(), doc(), "completed".into(), amount(), "GMD".into()];
        checkout.extend([Value::Null, reference.clone(), number.into()]);
        checkout.extend(times());
        // A column that had to be there, and went with the thirteenth.
        match count < 13 {
            true => insert_secret_checkout(tx, id("digest"), checkout)?,
            false => insert(tx, "checkouts", &checkout)?,
        }

        let mut session =
            vec![id("ps"), org(), mode(), 2.into(), doc(), "succeeded".into(), "checkout".into(), id("cs")];
        session.extend([amount(), "GMD".into()]);
        session.extend(times());
        insert(tx, "payment_sessions", &session)?;

        let mut transaction = vec![id("txn"), org(), mode(), number.into(), doc(), status.into(), step.into()];
        let attention = number % 3;
        // Nobody takes a fee of what came twice.
        let fee = if attention == CAME_TWICE { 0 } else { number };
        transaction.extend([attention.into(), id("ps"), "checkout".into(), id("cs"), "wave".into()]);
        transaction.extend(["simulator".into(), reference, amount(), fee.into(), "GMD".into()]);
        transaction.extend(times());
        insert(tx, "transactions", &transaction)?;

        for (line, sign) in [(1, 1), (2, -1)] {
            let mut posting = vec![id("le"), line.into(), org(), mode(), id("txn"), "merchant".into(), "GMD".into()];
            posting.extend([(sign * (100 + number)).into(), number.into()]);
            insert(tx, "ledger_postings", &posting)?;
        }
        let event = [id("evt"), org(), mode(), "checkout.completed".into(), id("cs"), 1.into(), doc(), number.into()];
        insert(tx, "events", &event)?;
        match number % 2 {
            0 => insert(tx, "events_unlogged", &[id("evt"), org(), mode()])?,
            _ => insert(tx, "event_log", &[id("evt"), (number + 1).into(), org(), mode()])?,
        }
        let job = vec![id("cs"), "expire".into(), org(), mode(), number.into(), 0.into(), 0.into(), 0.into()];
        // A column that came with the thirteenth, and has to be there.
        match count < 13 {
            true => insert(tx, "jobs", &job)?,
            false => insert_job_in_lane(tx, job)?,
        }
        let mut key = vec![id("key"), org(), mode(), "merchant".into(), vec![0, 255, 7].into(), "finished".into()];
        key.extend([201.into(), doc(), number.into()]);
        insert(tx, "idempotency_keys", &key)?;
    }
    Ok(())
}

fn insert_secret_checkout(tx: &mut Tx<'_>, digest: Value, mut values: Vec<Value>) -> Result<(), Error> {
    const INSERT: &str = "\
insert into checkouts (id, organization_id, mode, version, doc, status, amount_minor, currency, customer_id, reference,
    deadline_at, created_at, updated_at, client_secret_digest)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    values.push(digest);
    tx.execute(INSERT, &values).map(drop)
}

fn insert_job_in_lane(tx: &mut Tx<'_>, mut values: Vec<Value>) -> Result<(), Error> {
    const INSERT: &str = "\
insert into jobs (object_id, kind, organization_id, mode, due_at, attempts, lease_until, lease_token, lane)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    values.push(0.into());
    tx.execute(INSERT, &values).map(drop)
}

async fn rows(store: &Store) -> Vec<Vec<Vec<Value>>> {
    let all = |tx: &mut Tx<'_>| {
        let table = |(table, columns): &(&str, &str)| {
            let rows = tx.query(&format!("select {columns} from {table} order by 1, 2"), &[])?;
            Ok(rows.iter().map(|row| row.values().to_vec()).collect())
        };
        TABLES.iter().map(table).collect::<Result<Vec<Vec<Vec<Value>>>, Error>>()
    };
    store.read(all).await.unwrap()
}

/// The product's first `count` migrations.
fn until(count: usize) -> Schema {
    Schema { migrations: &Schema::product().migrations[..count], tables: &[] }
}

async fn open(settings: &Settings, schema: Schema) -> Result<Store, Error> {
    Store::open_with(settings.clone(), schema, Arc::new(System), entropy()).await
}

async fn filled(settings: &Settings, count: usize) -> Vec<Vec<Vec<Value>>> {
    let store = open(settings, until(count)).await.unwrap();
    store.write(move |tx| fill(tx, count)).await.unwrap();
    let rows = rows(&store).await;
    assert_eq!(rows.iter().map(Vec::len).sum::<usize>(), 1 + 9 * usize::try_from(OBJECTS).unwrap());
    store.close().await;
    rows
}

async fn every_earlier_schema_keeps_its_rows(world: &World) {
    let migrations = Schema::product().migrations.len();
    for count in 1..migrations {
        let world = world.another().await;
        let before = if count == 1 { Vec::new() } else { filled(&world.settings, count).await };
        if count == 1 {
            open(&world.settings, until(1)).await.unwrap().close().await;
        }
        let store = open(&world.settings, Schema::product()).await.unwrap();
        if count > 1 {
            assert_eq!(rows(&store).await, before, "from schema {count}");
            // Every entry waits to be sealed, once.
            assert_eq!(
                world.count("ledger_unsealed").await,
                if count < 9 { OBJECTS } else { 0 },
                "from schema {count}"
            );
            // What is built anew still refuses what it refused: an amount of nothing.
            let nothing = "update transactions set amount_minor = 0 where id = 'txn_0002'";
            let refused = store.write(move |tx| tx.execute(nothing, &[])).await;
            assert!(matches!(refused, Err(Error::Sql { .. })), "{refused:?}");
        }
        assert_eq!(world.count("schema_migrations").await, i64::try_from(migrations).unwrap());
        store.close().await;
        world.end().await;
    }
}

/// The fifteenth says what the ledger said before.
async fn second_money_of_before_loses_its_fee(world: &World) {
    const FEES: &str = "select count(*) from transactions where attention = 2 and fee_minor > 0";
    filled(&world.settings, 14).await;
    let store = open(&world.settings, until(14)).await.unwrap();
    store.write(|tx| tx.execute("update transactions set fee_minor = 3 where attention = 2", &[])).await.unwrap();
    assert!(store.read(|tx| tx.query_one(FEES, &[])?.get::<i64>(0)).await.unwrap() > 0);
    store.close().await;
    let store = open(&world.settings, Schema::product()).await.unwrap();
    assert_eq!(store.read(|tx| tx.query_one(FEES, &[])?.get::<i64>(0)).await, Ok(0));
    store.close().await;
}

async fn a_migration_that_fails_half_way_leaves_nothing_and_resumes(world: &World) {
    let product = Schema::product().migrations;
    for count in 2..product.len() {
        let world = world.another().await;
        let before = filled(&world.settings, count).await;
        let mut migrations = product[..count].to_vec();
        // All that the next one does, and then something that can't be done.
        let text = format!("{}\ninsert into nowhere (id) values (1);\n", product[count].text);
        migrations.push(Migration { text: text.leak(), ..product[count].clone() });
        let refused = open(&world.settings, Schema { migrations: migrations.leak(), tables: &[] }).await.err();
        assert!(matches!(refused, Some(Error::Sql { .. })), "{refused:?}");
        assert_eq!(world.count("schema_migrations").await, i64::try_from(count).unwrap());

        let untouched = open(&world.settings, until(count)).await.unwrap();
        assert_eq!(rows(&untouched).await, before, "schema {count}");
        untouched.close().await;
        let store = open(&world.settings, Schema::product()).await.unwrap();
        assert_eq!(rows(&store).await, before, "from schema {count}");
        store.close().await;
        world.end().await;
    }
}

/// The control: had the first step of the fourth migration committed by itself, opening would not end well.
async fn a_step_outside_its_transaction_is_seen(world: &World) {
    filled(&world.settings, 3).await;
    let store = open(&world.settings, until(3)).await.unwrap();
    store.write(|tx| tx.execute("create table transactions_rebuilt (id text not null)", &[])).await.unwrap();
    store.close().await;
    let refused = open(&world.settings, Schema::product()).await.err();
    assert!(matches!(refused, Some(Error::Sql { .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_while_migrating_loses_no_row() {
    const CUTS: usize = 30;
    let world = World::sqlite();
    let before = filled(&world.settings, 2).await;
    let folder = world.path().parent().unwrap();
    let recording = Recording::start(folder);
    open(&world.settings, Schema::product()).await.unwrap().close().await;
    let steps = recording.steps();
    drop(recording);

    let mut seeded = Seeded::new(u64::from_ne_bytes(System.now_us().to_ne_bytes()));
    // The first step finds the file that is there; before it, the record knows of none.
    let mut cuts: Vec<_> = (0..CUTS).map(|_| 1 + seeded.below(steps.len())).collect();
    cuts.sort_unstable();
    let mut disk = Disk::new(&steps);
    for cut in cuts {
        disk.advance(cut);
        let seed = seeded.number();
        let image = World::sqlite();
        power_cut::write(&disk.image(seed), folder_of(&image)).unwrap();
        let store =
            open(&image.settings, Schema::product()).await.unwrap_or_else(|error| panic!("{cut} {seed}: {error}"));
        assert_eq!(rows(&store).await, before, "cut at {cut}, image {seed}");
        store.close().await;
        image.end().await;
    }
    world.end().await;
}

/// Where the power went the lease is still held; the file's lock says that nobody is there any more.
#[tokio::test(flavor = "multi_thread")]
async fn who_died_while_migrating_a_file_is_not_waited_for() {
    let world = World::sqlite();
    let before = filled(&world.settings, 3).await;
    let store = open(&world.settings, until(3)).await.unwrap();
    let held = store.write(|tx| tx.execute("update leases set expires_at = 9000000000000000000", &[])).await;
    assert_eq!(held, Ok(1));
    store.close().await;
    let opened = tokio::time::timeout(Duration::from_secs(10), open(&world.settings, Schema::product())).await;
    let store = opened.expect("it waits for nobody").unwrap();
    assert_eq!(rows(&store).await, before);
    store.close().await;
    world.end().await;
}

fn folder_of(world: &World) -> &Path {
    let Database::Sqlite { path } = &world.settings.database else { panic!("not SQLite") };
    path.parent().unwrap()
}
