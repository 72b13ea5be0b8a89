//! Row B9: a database of every earlier schema, with rows in it, brings itself to the newest one with the same data, also when
//! a migration fails half way or the power goes.

mod golden;
mod power;

use std::sync::Arc;
use std::time::Duration;

use store::{Error, Migration, Schema, Settings, Store};

use self::golden::Golden;
use crate::on_both;
use crate::world::{System, World, entropy};

on_both!(
    every_earlier_schema_keeps_its_rows,
    a_step_outside_its_transaction_is_seen,
    what_becomes_of_a_row_is_seen,
    second_money_of_before_loses_its_fee,
);

/// How many rows a table has, roughly: each status of each kind is among the fewest.
const SIZES: [i64; 3] = [8, 40, 160];

/// The product's first `count` migrations.
fn until(count: usize) -> Schema {
    Schema { migrations: &Schema::product().migrations[..count], tables: &[] }
}

async fn open(settings: &Settings, schema: Schema) -> Result<Store, Error> {
    Store::open_with(settings.clone(), schema, Arc::new(System), entropy()).await
}

/// With rows in every table that there is after the first `count` migrations. What they are is the answer.
async fn filled(settings: &Settings, count: usize, numbers: i64) -> Golden {
    let store = open(settings, until(count)).await.unwrap();
    store.write(move |tx| golden::fill(tx, count, numbers)).await.unwrap();
    let rows = store.read(|tx| golden::shape(tx).and_then(|shape| golden::read(tx, shape))).await.unwrap();
    store.close().await;
    rows
}

async fn changed(store: &Store, before: &Golden) -> Vec<String> {
    let before = before.clone();
    store.read(move |tx| golden::changed(tx, &before)).await.unwrap()
}

/// Each has rows in every table; the next migration fails half way at first.
async fn every_earlier_schema_keeps_its_rows(world: &World) {
    let product = Schema::product().migrations;
    for count in 1..=product.len() {
        let world = world.another().await;
        let numbers = SIZES[count % SIZES.len()];
        let has_tables = count > 1;
        let before = if has_tables { filled(&world.settings, count, numbers).await } else { Golden::new() };
        let untouched = open(&world.settings, until(count)).await.unwrap();
        if has_tables {
            assert_eq!(untouched.read(golden::unfilled).await, Ok(Vec::new()), "at schema {count}");
        }
        untouched.close().await;
        if let Some(next) = product.get(count) {
            fail_half_way(&world, count, next, &before).await;
            let store = open(&world.settings, Schema::product()).await.unwrap();
            assert_eq!(changed(&store, &before).await, Vec::<String>::new(), "from schema {count}");
            if has_tables {
                is_waiting_and_refuses(&world, &store, count, numbers).await;
            }
            assert_eq!(world.count("schema_migrations").await, i64::try_from(product.len()).unwrap());
            store.close().await;
        }
        world.end().await;
    }
}

/// Does all that the migration does, and then something that can't be done.
async fn fail_half_way(world: &World, count: usize, next: &Migration, before: &Golden) {
    let mut migrations = until(count).migrations.to_vec();
    let text = format!("{}\ninsert into nowhere (id) values (1);\n", next.text);
    migrations.push(Migration { text: text.leak(), ..next.clone() });
    let refused = open(&world.settings, Schema { migrations: migrations.leak(), tables: &[] }).await.err();
    assert!(matches!(refused, Some(Error::Sql { .. })), "{refused:?}");
    assert_eq!(world.count("schema_migrations").await, i64::try_from(count).unwrap());
    let untouched = open(&world.settings, until(count)).await.unwrap();
    assert_eq!(changed(&untouched, before).await, Vec::<String>::new(), "schema {count}");
    untouched.close().await;
}

async fn is_waiting_and_refuses(world: &World, store: &Store, count: usize, numbers: i64) {
    // Every entry of before the ninth waits to be sealed, once; of those of later ones, what waited.
    assert_eq!(world.count("ledger_unsealed").await, numbers / 2, "from schema {count}");
    // What is built anew still refuses what it refused: an amount of nothing.
    let nothing = "update transactions set amount_minor = 0 where id = 'txn_0002'";
    let refused = store.write(move |tx| tx.execute(nothing, &[])).await;
    assert!(matches!(refused, Err(Error::Sql { .. })), "{refused:?}");
}

/// The control: a row less, a value changed, and a row more.
async fn what_becomes_of_a_row_is_seen(world: &World) {
    let before = filled(&world.settings, 12, SIZES[0]).await;
    let store = open(&world.settings, Schema::product()).await.unwrap();
    for (table, sql) in [
        ("customers", "delete from customers where id = 'cus_0003'"),
        ("products", "update products set price_minor = price_minor + 1 where id = 'products_0003'"),
        ("event_log", "update event_log set log_no = log_no + 1000 where log_no = 2"),
        ("signing_keys", "insert into signing_keys (kid, wrapped, created_at, active_from) values ('a', 'b', 1, 1)"),
    ] {
        store.write(move |tx| tx.execute(sql, &[])).await.unwrap();
        let found = changed(&store, &before).await;
        assert!(found.contains(&format!("{table} has other rows")), "{sql}: {found:?}");
    }
    let lane = "update jobs set lane = 1 where kind = 'expire_checkout'";
    store.write(move |tx| tx.execute(lane, &[])).await.unwrap();
    let found = changed(&store, &before).await;
    assert!(found.contains(&"jobs.lane is wrong in 2 rows".to_owned()), "{found:?}");
    store.close().await;
}

/// The fifteenth says what the ledger said before.
async fn second_money_of_before_loses_its_fee(world: &World) {
    const FEES: &str = "select count(*) from transactions where attention = 2 and fee_minor > 0";
    filled(&world.settings, 14, SIZES[0]).await;
    let store = open(&world.settings, until(14)).await.unwrap();
    store.write(|tx| tx.execute("update transactions set fee_minor = 3 where attention = 2", &[])).await.unwrap();
    assert!(store.read(|tx| tx.query_one(FEES, &[])?.get::<i64>(0)).await.unwrap() > 0);
    store.close().await;
    let store = open(&world.settings, Schema::product()).await.unwrap();
    assert_eq!(store.read(|tx| tx.query_one(FEES, &[])?.get::<i64>(0)).await, Ok(0));
    store.close().await;
}

/// The control: had the first step of the fourth migration committed by itself, opening would not end well.
async fn a_step_outside_its_transaction_is_seen(world: &World) {
    filled(&world.settings, 3, SIZES[0]).await;
    let store = open(&world.settings, until(3)).await.unwrap();
    store.write(|tx| tx.execute("create table transactions_rebuilt (id text not null)", &[])).await.unwrap();
    store.close().await;
    let refused = open(&world.settings, Schema::product()).await.err();
    assert!(matches!(refused, Some(Error::Sql { .. })), "{refused:?}");
}

/// Where the power went the lease is still held; the file's lock says that nobody is there any more.
#[tokio::test(flavor = "multi_thread")]
async fn who_died_while_migrating_a_file_is_not_waited_for() {
    let world = World::sqlite();
    let before = filled(&world.settings, 3, SIZES[0]).await;
    let store = open(&world.settings, until(3)).await.unwrap();
    let held = store.write(|tx| tx.execute("update leases set expires_at = 9000000000000000000", &[])).await;
    assert_eq!(held, Ok(1));
    store.close().await;
    let opened = tokio::time::timeout(Duration::from_secs(10), open(&world.settings, Schema::product())).await;
    let store = opened.expect("it waits for nobody").unwrap();
    assert_eq!(changed(&store, &before).await, Vec::<String>::new());
    store.close().await;
    world.end().await;
}
