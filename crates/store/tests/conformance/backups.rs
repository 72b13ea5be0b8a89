//! Backups: taken while the server runs, whole or refused, and readable by the other database.

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex, mpsc};

use store::{
    Damage, DamagedRow, Dialect, Error, Migration, Store, Summary, Value, backup, check_backup,
    organizations_in_backup, restore,
};

use crate::on_both;
use crate::world::{System, World, entropy, raw_postgres, schema, schema_of};
use crate::writes::add_posting;

on_both!(
    a_backup_comes_back,
    a_backup_is_one_snapshot,
    a_damaged_backup_leaves_nothing,
    only_into_an_empty_database,
    what_is_not_empty_is_left_as_it_is,
    the_empty_tables_of_a_newer_backup_are_named,
    a_backup_of_a_newer_version_says_so,
    an_older_schema_is_backed_up_as_it_is,
    a_forgotten_table_is_noticed,
    an_older_backup_is_migrated,
    every_table_of_the_product_is_in_the_backup,
    a_row_that_is_refused_is_named,
    the_organizations_of_a_backup_are_known_as_far_as_it_can_be_read,
);

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Says that something is written, and waits.
struct Held(Buffer, Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>);

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some((began, goes_on)) = self.1.take() {
            began.send(()).unwrap();
            goes_on.recv().unwrap();
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A migration may make a table anew: to a transaction that began before, it would be empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_table_is_made_anew_while_it_is_backed_up() {
    let Some(world) = World::postgres("no_table_is_made_anew_while_it_is_backed_up").await else { return };
    let store = world.open().await;
    fill(&store).await;
    let ((tell, told), (go_on, goes_on)) = (mpsc::channel(), mpsc::channel());
    let backing_up = tokio::spawn({
        let (store, writer) = (store.clone(), Held(Buffer::default(), Some((tell, goes_on))));
        async move { backup(&store, writer).await }
    });
    tokio::task::spawn_blocking(move || told.recv()).await.unwrap().unwrap();
    let anew = "set lock_timeout = '500ms'; begin; create table things_anew as select * from things; drop table things; \
                alter table things_anew rename to things; commit";
    let refused = raw_postgres(world.url()).await.batch_execute(anew).await;
    assert!(refused.is_err(), "its rows are still to be read");
    go_on.send(()).unwrap();
    assert_eq!(backing_up.await.unwrap().unwrap().rows["things"], 3);
    store.close().await;
    world.end().await;
}

pub(crate) async fn dump(store: &Store) -> (Vec<u8>, Summary) {
    let buffer = Buffer::default();
    let summary = backup(store, buffer.clone()).await.unwrap();
    let bytes = buffer.0.lock().unwrap().clone();
    (bytes, summary)
}

async fn load(world: &World, bytes: Vec<u8>) -> Result<Summary, Error> {
    restore(world.settings.clone(), schema(), Arc::new(System), entropy(), Cursor::new(bytes)).await
}

async fn fill(store: &Store) {
    store
        .write(|tx| {
            for number in 0..1200_i64 {
                add_posting(tx, &format!("p{number}"))?;
            }
            tx.append("children", "insert into children (id, posting) values ('c', 'p7')", &[])?;
            let insert = "insert into things (id, number, body, bytes) values ($1, $2, $3, $4)";
            let odd = ["a".into(), i64::MIN.into(), "{\"ñ\": \"\\u0000 '\"}\n".into(), vec![0, 1, 255].into()];
            tx.append("things", insert, &odd)?;
            tx.append("things", insert, &["b".into(), i64::MAX.into(), "".into(), Vec::new().into()])?;
            tx.append("things", insert, &["c".into(), Value::Null, Value::Null, Value::Null])
        })
        .await
        .unwrap();
}

async fn things(store: &Store) -> Vec<Vec<Value>> {
    let sql = "select id, number, body, bytes from things order by id";
    let rows = store.read(move |tx| tx.query(sql, &[])).await.unwrap();
    rows.iter().map(|row| row.values().to_vec()).collect()
}

async fn a_backup_comes_back(world: &World) {
    let store = world.open().await;
    fill(&store).await;
    let expected = things(&store).await;
    let (bytes, written) = dump(&store).await;
    store.close().await;
    assert_eq!(written.rows["postings"], 1200);
    assert_eq!(check_backup(&*bytes).unwrap(), written);

    let mut targets = vec![world.another().await, World::sqlite()];
    targets.extend(World::postgres("a backup of the other database").await);
    for target in targets {
        assert_eq!(load(&target, bytes.clone()).await.unwrap(), written);
        let restored = target.open().await;
        assert_eq!(things(&restored).await, expected);
        let (again, _) = dump(&restored).await;
        assert_eq!(again.len(), bytes.len());
        restored.close().await;
        target.end().await;
    }
}

/// No text of ours has it: a disk has to have made it so, which the embedded database takes.
#[tokio::test]
async fn a_text_with_a_zero_byte_is_damaged_and_comes_back_where_it_can() {
    let world = World::sqlite();
    let store = world.open().await;
    fill(&store).await;
    let insert = "insert into things (id, body) values ('zero', cast(x'610062' as text))";
    store.write(move |tx| tx.execute(insert, &[])).await.unwrap();
    let expected = things(&store).await;
    assert!(expected.iter().any(|row| row[2] == Value::from("a\0b")), "{expected:?}");
    let (bytes, written) = dump(&store).await;
    store.close().await;
    let row = DamagedRow { table: "things".to_owned(), mode: "?".to_owned(), id: "zero".to_owned() };
    assert_eq!(written.damage, Damage { count: 1, rows: vec![row] });
    assert_eq!(check_backup(&*bytes).unwrap(), written);

    let target = World::sqlite();
    assert_eq!(load(&target, bytes.clone()).await.unwrap(), written);
    let restored = target.open().await;
    assert_eq!(things(&restored).await, expected);
    restored.close().await;
    let Some(target) = World::postgres("a_text_with_a_zero_byte_is_damaged").await else { return };
    let refused = load(&target, bytes).await;
    let is_told = |told: &str| told.contains("of things (zero)") && told.contains("PostgreSQL can't store");
    assert!(matches!(&refused, Err(Error::Backup(told)) if is_told(told)), "{refused:?}");
    target.end().await;
}

async fn a_row_that_is_refused_is_named(world: &World) {
    let store = world.open().await;
    fill(&store).await;
    let (bytes, _) = dump(&store).await;
    store.close().await;
    // As whole as any, by its checksum.
    let mut lines: Vec<&str> = std::str::from_utf8(&bytes).unwrap().lines().collect();
    let trailer = lines.pop().unwrap();
    let place = lines.iter().position(|line| *line == "[\"p500\",\"\"]").unwrap();
    lines[place] = "[\"p500\",\"forbidden\"]";
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let target = world.another().await;
    let refused = load(&target, format!("{lines}{trailer}\n").into_bytes()).await;
    let words: &[&str] = match world.dialect() {
        Dialect::Sqlite => &["row ", " of postings (p500)"],
        Dialect::Postgres => &["postings, among the rows as far as number "],
    };
    let is_told = |told: &str| words.iter().all(|words| told.contains(words));
    let is_refused = |refused: &Error| matches!(refused, Error::Sql { message, .. } if is_told(message));
    assert!(refused.as_ref().is_err_and(is_refused), "{refused:?}");
    target.end().await;
}

/// Who plans by it would else read whole tables until the database looks by itself.
#[tokio::test]
async fn a_restored_database_knows_how_many_rows_it_has() {
    let Some(from) = World::postgres("a_restored_database_knows_how_many_rows_it_has").await else { return };
    let store = from.open().await;
    fill(&store).await;
    let (bytes, _) = dump(&store).await;
    store.close().await;
    let to = World::postgres("a_restored_database_that_knows").await.unwrap();
    load(&to, bytes).await.unwrap();
    let known = "select reltuples::bigint from pg_class where relname = 'postings'";
    let known: i64 = raw_postgres(to.url()).await.query_one(known, &[]).await.unwrap().get(0);
    assert_eq!(known, 1_200);
    from.end().await;
    to.end().await;
}

async fn a_backup_is_one_snapshot(world: &World) {
    let store = world.open().await;
    fill(&store).await;
    // Each transaction adds one row to both tables: a backup that is no snapshot would find more in the later one.
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writing = tokio::spawn({
        let (store, stop) = (store.clone(), Arc::clone(&stop));
        async move {
            let mut number = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                store
                    .write(move |tx| {
                        add_posting(tx, &format!("extra{number}"))?;
                        let insert = "insert into things (id) values ($1)";
                        tx.append("things", insert, &[format!("extra{number}").into()])
                    })
                    .await
                    .unwrap();
                number += 1;
            }
            number
        }
    });
    let mut largest = 0;
    for _ in 0..200 {
        let (_, summary) = dump(&store).await;
        assert_eq!(summary.rows["postings"] - 1200, summary.rows["things"] - 3);
        largest = summary.rows["postings"] - 1200;
        // Enough of them began while something was being written.
        if largest > 20 {
            break;
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(writing.await.unwrap() >= largest && largest > 0);
    store.close().await;
}

async fn a_damaged_backup_leaves_nothing(world: &World) {
    let store = world.open().await;
    fill(&store).await;
    let (bytes, _) = dump(&store).await;
    store.close().await;

    let target = world.another().await;
    let mut damaged =
        vec![bytes[..bytes.len() - 1].to_vec(), bytes[..bytes.len() / 2].to_vec(), [&bytes[..], b" "].concat()];
    damaged.push(String::from_utf8(bytes.clone()).unwrap().replacen("[\"p500\",\"\"]\n", "", 1).into_bytes());
    let tail = bytes.len() - 100..bytes.len();
    let positions = (0..bytes.len()).step_by(bytes.len() / 13).chain(tail.step_by(9)).chain([bytes.len() - 1]);
    for position in positions {
        let mut flipped = bytes.clone();
        flipped[position] ^= 1;
        damaged.push(flipped);
    }
    for (index, bytes) in damaged.into_iter().enumerate() {
        assert!(check_backup(&*bytes).is_err(), "damage {index} went unnoticed by the check");
        let refused = load(&target, bytes).await;
        assert!(refused.is_err(), "damage {index} went unnoticed");
        let store = target.open().await;
        for table in ["postings", "things", "children"] {
            assert_eq!(target.count(table).await, 0, "damage {index}: {table}");
        }
        store.close().await;
    }
    load(&target, bytes).await.unwrap();
    target.end().await;
}

async fn only_into_an_empty_database(world: &World) {
    let store = world.open().await;
    fill(&store).await;
    let (bytes, _) = dump(&store).await;
    store.close().await;
    let refused = load(world, bytes).await;
    assert!(matches!(&refused, Err(Error::Backup(sentence)) if sentence.contains("not empty")), "{refused:?}");
    assert_eq!(world.count("postings").await, 1200);
}

async fn what_is_not_empty_is_left_as_it_is(world: &World) {
    let newer = || {
        let later = Migration { number: 3, name: "later", text: "alter table postings add column late text;" };
        schema_of(vec![schema().migrations[1].clone(), later], crate::world::TABLES)
    };
    let source = world.another().await;
    let store = source.try_open(newer()).await.unwrap();
    let (bytes, _) = dump(&store).await;
    store.close().await;
    let refused = async |target: &World, why: &str| {
        let restored =
            restore(target.settings.clone(), newer(), Arc::new(System), entropy(), Cursor::new(bytes.clone())).await;
        let is_told = matches!(&restored, Err(Error::Backup(told)) if told.contains("not empty") && told.contains(why));
        assert!(is_told, "{restored:?}");
    };

    // Data of an older version is not brought to the backup's.
    let older = world.another().await;
    let store = older.open().await;
    fill(&store).await;
    store.close().await;
    refused(&older, " has rows").await;
    assert_eq!(older.count("schema_migrations").await, 2);

    // Nothing is put beside what another program has there, even if it has nothing in it.
    let other = world.another().await;
    let store = other.try_open(store::Schema { migrations: &[], tables: &[] }).await.unwrap();
    store.write(|tx| tx.execute("create table postings (id text not null)", &[])).await.unwrap();
    store.close().await;
    let tables = match other.dialect() {
        Dialect::Sqlite => "sqlite_master where type = 'table'",
        Dialect::Postgres => "information_schema.tables where table_schema = current_schema()",
    };
    refused(&other, "postings of another program").await;
    assert_eq!(other.count(tables).await, 1);
    // Others call theirs so, too.
    let store = other.try_open(store::Schema { migrations: &[], tables: &[] }).await.unwrap();
    let begun = "create table schema_migrations (version text not null)";
    store.write(move |tx| tx.execute(begun, &[])).await.unwrap();
    store.write(|tx| tx.execute("create table visitors (id text not null)", &[])).await.unwrap();
    store.close().await;
    refused(&other, "visitors of another program").await;
    assert_eq!(other.count(tables).await, 3);
    for world in [source, older, other] {
        world.end().await;
    }
}

/// Between two versions, when the program is the new one and nothing is migrated yet.
async fn an_older_schema_is_backed_up_as_it_is(world: &World) {
    let store = world.open().await;
    fill(&store).await;
    let (expected, _) = dump(&store).await;
    store.close().await;
    let text = "alter table postings add column late text; create table more (id text primary key);";
    let later = Migration { number: 3, name: "later", text };
    const TABLES: &[&str] = &["counters", "postings", "children", "chores", "things", "more"];
    let newer = schema_of(vec![schema().migrations[1].clone(), later], TABLES);
    let guest = store::Settings { secondary: true, ..world.settings.clone() };
    let opened = async |settings| Store::open_with(settings, newer.clone(), Arc::new(System), entropy()).await;
    let refused = opened(guest.clone()).await.err();
    assert!(matches!(&refused, Some(Error::Schema(why)) if why.contains("older schema")), "{refused:?}");
    let store = opened(store::Settings { takes_older: true, ..guest }).await.unwrap();
    let (bytes, written) = dump(&store).await;
    store.close().await;
    assert_eq!((written.schema, bytes.len()), (2, expected.len()));
    let target = world.another().await;
    let restored = restore(target.settings.clone(), newer, Arc::new(System), entropy(), Cursor::new(bytes)).await;
    assert_eq!(restored.unwrap(), written);
    assert_eq!(target.count("postings where late is null").await, 1200);
    assert_eq!(target.count("more").await, 0);
    target.end().await;
}

async fn the_empty_tables_of_a_newer_backup_are_named(world: &World) {
    let store = world.open().await;
    fill(&store).await;
    let (older, _) = dump(&store).await;
    store.close().await;
    let later = Migration { number: 3, name: "later", text: "alter table postings add column late text;" };
    let newer = schema_of(vec![schema().migrations[1].clone(), later], crate::world::TABLES);
    let (source, target) = (world.another().await, world.another().await);
    let store = source.try_open(newer.clone()).await.unwrap();
    let (mut damaged, _) = dump(&store).await;
    store.close().await;
    damaged.truncate(damaged.len() - 1);
    let loaded = async |bytes: Vec<u8>| {
        let settings = target.settings.clone();
        restore(settings, newer.clone(), Arc::new(System), entropy(), Cursor::new(bytes)).await
    };
    assert!(loaded(damaged).await.is_err());
    let refused = loaded(older).await;
    let is_told = matches!(&refused, Err(Error::Backup(told)) if told.contains("tables of a newer version"));
    assert!(is_told, "{refused:?}");
    source.end().await;
    target.end().await;
}

async fn a_backup_of_a_newer_version_says_so(world: &World) {
    let later = Migration { number: 3, name: "later", text: "alter table postings add column late text;" };
    let newer = schema_of(vec![schema().migrations[1].clone(), later], crate::world::TABLES);
    let store = world.try_open(newer).await.unwrap();
    let (bytes, _) = dump(&store).await;
    store.close().await;
    let target = world.another().await;
    let refused = load(&target, bytes).await;
    let is_told =
        matches!(&refused, Err(Error::Backup(told)) if told.contains("the backup has schema 3, this program"));
    assert!(is_told, "{refused:?}");
    target.end().await;
}

/// Between the making of the tables and their filling.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_server_that_starts_meanwhile_is_named_and_not_the_backup() {
    let Some(world) = World::postgres("a_newer_server_that_starts_meanwhile").await else { return };
    let store = world.open().await;
    fill(&store).await;
    let (bytes, _) = dump(&store).await;
    store.close().await;
    let target = world.another().await;
    target.open().await.close().await;
    // Whoever loads waits for this row.
    let held = raw_postgres(target.url()).await;
    let lease = "begin; insert into leases (name, holder, token, expires_at) values ('installation', 'test', 1, 0)";
    held.batch_execute(lease).await.unwrap();
    let settings = target.settings.clone();
    let later = Migration { number: 3, name: "later", text: "alter table postings add column late text;" };
    let newer = schema_of(vec![schema().migrations[1].clone(), later], crate::world::TABLES);
    let known = newer.clone();
    let restoring =
        tokio::spawn(async move { restore(settings, known, Arc::new(System), entropy(), Cursor::new(bytes)).await });
    while target.count("pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").await == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    target.try_open(newer).await.unwrap().close().await;
    held.batch_execute("rollback").await.unwrap();
    let refused = restoring.await.unwrap();
    let is_told = matches!(&refused, Err(Error::Backup(told)) if told.contains("were brought to schema 3"));
    assert!(is_told, "{refused:?}");
    world.end().await;
    target.end().await;
}

async fn a_forgotten_table_is_noticed(world: &World) {
    let forgetful = store::Schema { tables: &["counters", "postings", "children", "chores"], ..schema() };
    let store = world.try_open(forgetful).await.unwrap();
    let refused = backup(&store, Buffer::default()).await;
    assert!(matches!(&refused, Err(Error::Backup(sentence)) if sentence.contains("things")), "{refused:?}");
    store.close().await;
}

async fn an_older_backup_is_migrated(world: &World) {
    let store = world.open().await;
    fill(&store).await;
    let (bytes, _) = dump(&store).await;
    store.close().await;

    let later = Migration { number: 3, name: "later", text: "alter table postings add column late text;" };
    let newer = schema_of(vec![schema().migrations[1].clone(), later], crate::world::TABLES);
    let target = world.another().await;
    restore(target.settings.clone(), newer, Arc::new(System), entropy(), Cursor::new(bytes)).await.unwrap();
    assert_eq!(target.count("postings where late is null").await, 1200);
    assert_eq!(target.count("schema_migrations").await, 3);
    target.end().await;
}

async fn the_organizations_of_a_backup_are_known_as_far_as_it_can_be_read(world: &World) {
    let store = world.try_open(store::Schema::product()).await.unwrap();
    let (nobodys, _) = dump(&store).await;
    assert!(organizations_in_backup(&*nobodys).is_empty());
    for id in ["org_1", "org_2"] {
        let insert = "insert into organizations (organization_id, mode, id, version, doc, name, created_at) \
                      values ($1, 'test', $1, 1, '{}', 'Kairaba Books', 1)";
        assert_eq!(store.write(move |tx| tx.execute(insert, &[id.into()])).await, Ok(1));
    }
    let (bytes, _) = dump(&store).await;
    store.close().await;
    let found = |bytes: &[u8]| organizations_in_backup(bytes).into_iter().collect::<Vec<_>>();
    assert_eq!(found(&bytes), ["org_1", "org_2"]);
    let second = bytes.windows(7).position(|bytes| bytes == b"\"org_2\"").unwrap();
    assert_eq!(found(&bytes[..second]), ["org_1"]);
    assert_eq!(found(b"notes"), [""; 0]);
}

async fn every_table_of_the_product_is_in_the_backup(world: &World) {
    let store = world.try_open(store::Schema::product()).await.unwrap();
    let (bytes, written) = dump(&store).await;
    store.close().await;
    let target = world.another().await;
    let restored =
        restore(target.settings.clone(), store::Schema::product(), Arc::new(System), entropy(), Cursor::new(bytes));
    assert_eq!(restored.await.unwrap(), written);
    target.end().await;
}
