//! Migrations: several nodes at once, older and newer programs, texts that were changed afterwards.

use std::sync::Arc;
use std::time::Duration;

use store::{Clock, Database, Dialect, Error, Migration, Schema, Settings, Store};

use crate::on_both;
use crate::world::{System, TABLES, World, entropy, raw_postgres, schema, schema_of};

on_both!(
    four_nodes_start_at_once,
    a_newer_schema_is_refused,
    a_changed_migration_is_refused,
    a_failed_migration_leaves_nothing_and_resumes,
    the_product_schema_opens,
    a_second_process_never_migrates,
);

async fn four_nodes_start_at_once(world: &World) {
    let slow = (3..12).map(|number| Migration {
        number,
        name: "more",
        text: format!("create table more_{number} (id bigint primary key); insert into more_{number} (id) values (1);")
            .leak(),
    });
    let mut migrations = schema().migrations[1..].to_vec();
    migrations.extend(slow);
    let schema = schema_of(migrations, TABLES);
    let nodes: Vec<_> = (0..4)
        .map(|_| {
            let (settings, schema) = (world.settings.clone(), schema.clone());
            tokio::spawn(async move { Store::open_with(settings, schema, Arc::new(System), entropy()).await })
        })
        .collect();
    let mut opened = Vec::new();
    for node in nodes {
        match (node.await.unwrap(), world.dialect()) {
            (Ok(store), _) => opened.push(store),
            // One process at a time serves a file.
            (Err(Error::InUse(_)), Dialect::Sqlite) => {}
            (Err(error), _) => panic!("{error}"),
        }
    }
    assert_eq!(opened.len(), if world.dialect() == Dialect::Sqlite { 1 } else { 4 });
    assert_eq!(world.count("schema_migrations").await, 11);
    assert_eq!(world.count("more_11").await, 1);
    for store in opened {
        store.close().await;
    }
}

async fn a_newer_schema_is_refused(world: &World) {
    world.open().await.close().await;
    let refused = world.try_open(schema_of(Vec::new(), &[])).await.err();
    assert_eq!(refused, Some(Error::NewerSchema { found: 2, known: 1 }));
    world.open().await.close().await;
}

async fn a_changed_migration_is_refused(world: &World) {
    world.open().await.close().await;
    let changed = Migration { number: 2, name: "test_tables", text: "create table other (id bigint);" };
    let refused = world.try_open(schema_of(vec![changed], TABLES)).await.err();
    assert!(matches!(refused, Some(Error::Schema(_))), "{refused:?}");
}

async fn a_failed_migration_leaves_nothing_and_resumes(world: &World) {
    let wrong =
        Migration { number: 2, name: "wrong", text: "create table half (id bigint); create table half (id bigint);" };
    let refused = world.try_open(schema_of(vec![wrong], TABLES)).await.err();
    assert!(matches!(refused, Some(Error::Sql { .. })), "{refused:?}");
    assert_eq!(world.count("schema_migrations").await, 1);
    let store = world.open().await;
    assert_eq!(world.count("schema_migrations").await, 2);
    store.close().await;
}

async fn a_second_process_never_migrates(world: &World) {
    let second = Settings { secondary: true, ..world.settings.clone() };
    let open = |schema| Store::open_with(second.clone(), schema, Arc::new(System), entropy());
    let refused = open(schema()).await.err();
    assert!(matches!(refused, Some(Error::Unavailable(_) | Error::Schema(_))), "{refused:?}");
    world.open().await.close().await;
    let more = Migration { number: 3, name: "more", text: "create table more (id bigint);" };
    let refused = open(schema_of(vec![schema().migrations[1].clone(), more], TABLES)).await.err();
    assert!(matches!(refused, Some(Error::Schema(_))), "{refused:?}");
    open(schema()).await.unwrap().close().await;
    assert_eq!(world.count("schema_migrations").await, 2);
}

async fn the_product_schema_opens(world: &World) {
    let store = Store::open(world.settings.clone(), Arc::new(System), entropy()).await.unwrap();
    let applied = world.count("schema_migrations").await;
    assert_eq!(applied, i64::try_from(Schema::product().migrations.len()).unwrap());
    store.close().await;
    let numbers: Vec<_> = Schema::product().migrations.iter().map(|migration| migration.number).collect();
    assert!(numbers.is_sorted() && numbers[0] == 1, "{numbers:?}");
}

#[tokio::test]
async fn the_memory_store_opens_and_leaves_no_file() {
    let settings = Settings::new(Database::SqliteMemory);
    let store = Store::open_with(settings, schema(), Arc::new(System), entropy()).await.unwrap();
    store.write(|tx| crate::writes::add_posting(tx, "a")).await.unwrap();
    let rows = store.read(|tx| tx.query("select id from postings", &[])).await.unwrap();
    assert_eq!(rows.len(), 1);
    store.close().await;
}

const REBUILT: &str = "
create table things_rebuilt (
    id text primary key,
    number bigint,
    body text,
    bytes blob
);
insert into things_rebuilt (id, number, body, bytes)
select id, number, body, bytes
from things;
drop table things;
alter table things_rebuilt rename to things;
";

/// An older process goes on while a newer one migrates.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_commit_while_a_table_is_rebuilt_is_kept() {
    let Some(world) = World::postgres("what_others_commit_while_a_table_is_rebuilt").await else { return };
    world.open().await.close().await;
    let (older, other) = (raw_postgres(world.url()).await, raw_postgres(world.url()).await);
    older.batch_execute("begin; insert into things (id) values ('late')").await.unwrap();
    let mut migrations = schema().migrations[1..].to_vec();
    migrations.push(Migration { number: 3, name: "rebuilt", text: REBUILT });
    let (settings, schema) = (world.settings.clone(), schema_of(migrations, TABLES));
    let opening = tokio::spawn(async move { Store::open_with(settings, schema, Arc::new(System), entropy()).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    // Who comes behind the migration waits for it, but not for as long as it does.
    let count = other.query_typed_one("select count(*) from things", &[]);
    tokio::time::timeout(Duration::from_secs(4), count).await.expect("it has its turn").unwrap();
    older.batch_execute("commit").await.unwrap();
    opening.await.unwrap().unwrap().close().await;
    assert_eq!(world.count("things where id = 'late'").await, 1);
    world.end().await;
}

/// Whatever a migration does to a table: nobody waits for the long reader before it longer than for one try.
#[tokio::test(flavor = "multi_thread")]
async fn who_comes_behind_a_migration_does_not_wait_for_who_was_before_it() {
    let Some(world) = World::postgres("who_comes_behind_a_migration").await else { return };
    let mut migrations = schema().migrations[1..].to_vec();
    migrations.push(Migration { number: 3, name: "index", text: "create index things_by_body on things (body);" });
    world.try_open(schema_of(migrations.clone(), TABLES)).await.unwrap().close().await;
    let (reader, other) = (raw_postgres(world.url()).await, raw_postgres(world.url()).await);
    for (number, text) in [
        (4, "alter table things add column more bigint;"),
        (5, "create index things_by_number on things (number);"),
        (6, "drop index things_by_body;"),
    ] {
        migrations.push(Migration { number, name: "more", text });
        // Holds the indexes of the table as well.
        reader.batch_execute("begin; select count(*) from things; insert into things (id) values ('a')").await.unwrap();
        let (settings, schema) = (world.settings.clone(), schema_of(migrations.clone(), TABLES));
        let opening =
            tokio::spawn(async move { Store::open_with(settings, schema, Arc::new(System), entropy()).await });
        tokio::time::sleep(Duration::from_millis(500)).await;
        let write = other.batch_execute("begin; insert into things (id) values ('b'); rollback");
        tokio::time::timeout(Duration::from_secs(4), write).await.expect(text).unwrap();
        reader.batch_execute("rollback").await.unwrap();
        opening.await.unwrap().unwrap().close().await;
    }
    world.end().await;
}

/// Another's clock says that the lease has run out while its holder migrates.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_overtaken_while_it_migrates_waits_for_the_rest() {
    let Some(world) = World::postgres("who_is_overtaken_while_it_migrates").await else { return };
    let mut migrations = schema().migrations[1..].to_vec();
    migrations.extend((3..9).map(|number| Migration { number, name: "slow", text: "select pg_sleep(0.3);" }));
    let schema = schema_of(migrations, TABLES);
    let open = |clock: Arc<dyn Clock>| {
        let (settings, schema) = (world.settings.clone(), schema.clone());
        tokio::spawn(async move { Store::open_with(settings, schema, clock, entropy()).await })
    };
    let first = open(Arc::new(System));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let second = open(Arc::new(Ahead));
    for opened in [first, second] {
        opened.await.unwrap().unwrap().close().await;
    }
    assert_eq!(world.count("schema_migrations").await, 8);
    assert_ne!(world.count("leases where name = 'migrate' and token > 1").await, 0, "it was overtaken");
    world.end().await;
}

/// By a little more than a lease lasts.
struct Ahead;

impl Clock for Ahead {
    fn now_us(&self) -> i64 {
        System.now_us() + 31_000_000
    }
}
