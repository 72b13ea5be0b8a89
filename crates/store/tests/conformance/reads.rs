//! Reads: one snapshot, no writing.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use store::{Error, SqlKind, Store, Tx};

use crate::on_both;
use crate::totals::Standing;
use crate::world::{World, entropy, schema};
use crate::writes::add_posting;

on_both!(
    a_read_sees_one_snapshot,
    a_read_cannot_write,
    a_read_sees_what_was_answered,
    a_read_goes_on_behind_what_cannot_be_asked_for,
    the_time_is_told_without_a_transaction,
    a_read_goes_by_a_time_before_its_snapshot,
    a_database_tells_about_how_large_it_is,
);

async fn a_read_sees_one_snapshot(world: &World) {
    let store = world.open().await;
    store.write(|tx| add_posting(tx, "a")).await.unwrap();
    let (reached, wait_reached) = mpsc::channel();
    let (go_on, wait_go_on) = mpsc::channel();
    let wait_go_on = Arc::new(Mutex::new(wait_go_on));
    let reading = tokio::spawn({
        let store = store.clone();
        async move {
            store
                .read(move |tx| {
                    let before = tx.query("select id from postings", &[])?.len();
                    reached.send(()).unwrap();
                    wait_go_on.lock().unwrap().recv().unwrap();
                    Ok::<_, Error>((before, tx.query("select id, note from postings", &[])?.len()))
                })
                .await
        }
    });
    tokio::task::spawn_blocking(move || wait_reached.recv().unwrap()).await.unwrap();
    assert_eq!(store.calls(), 1, "somebody waits for it");
    store.write(|tx| add_posting(tx, "b")).await.unwrap();
    go_on.send(()).unwrap();
    assert_eq!(reading.await.unwrap(), Ok((1, 1)));
    assert_eq!(store.calls(), 0);
    assert_eq!(world.count("postings").await, 2);
    store.close().await;
}

async fn a_read_cannot_write(world: &World) {
    let store = world.open().await;
    let refused = store.read(|tx| tx.execute("insert into postings (id, note) values ('a', '')", &[])).await;
    assert!(matches!(refused, Err(Error::Sql { kind: SqlKind::Other, .. })), "{refused:?}");
    let returning = "insert into postings (id, note) values ('a', '') returning id";
    let refused = store.read(move |tx| tx.query(returning, &[])).await;
    assert!(matches!(&refused, Err(Error::Sql { .. } | Error::Unavailable(_))), "{refused:?}");
    assert_eq!(store.read(|tx| Ok::<_, Error>(tx.lock_suffix())).await, Ok(""));
    assert_eq!(world.count("postings").await, 0);
    store.close().await;
}

async fn a_read_goes_on_behind_what_cannot_be_asked_for(world: &World) {
    let store = world.open().await;
    store.write(|tx| add_posting(tx, "a")).await.unwrap();
    let find = |tx: &mut Tx<'_>, id: &str| tx.query("select note from postings where id = $1", &[id.into()]);
    let seen = store.read(move |tx| {
        let refused = find(tx, "\0");
        assert!(matches!(refused, Err(Error::Sql { kind: SqlKind::Type, .. })), "{refused:?}");
        assert!(!tx.has_failed());
        Ok::<_, Error>(find(tx, "a")?.len())
    });
    assert_eq!(seen.await, Ok(1));
    // Of a write nothing is kept, whatever it makes of that.
    let written = store.write(move |tx| {
        let _ = find(tx, "\0");
        assert!(tx.has_failed());
        Ok::<_, Error>(())
    });
    let written = written.await;
    assert!(matches!(written, Err(Error::Sql { kind: SqlKind::Type, .. })), "{written:?}");
    store.close().await;
}

async fn a_read_sees_what_was_answered(world: &World) {
    let store = world.open().await;
    for number in 1..=50 {
        store.write(move |tx| add_posting(tx, &format!("p{number}"))).await.unwrap();
        let seen = store.read(|tx| tx.query_one("select count(*) from postings", &[])?.get::<i64>(0)).await;
        assert_eq!(seen, Ok(number));
    }
    store.close().await;
}

async fn the_time_is_told_without_a_transaction(world: &World) {
    let clock = Arc::new(Standing(AtomicI64::new(1_790_000_000_000_000)));
    let opened = Store::open_with(world.settings.clone(), schema(), Arc::clone(&clock) as _, entropy()).await;
    let store = opened.unwrap();
    let by_transaction = |tx: &mut Tx<'_>| Ok::<_, Error>(tx.now());
    let seen = store.read(by_transaction).await.unwrap();
    clock.0.fetch_sub(1_000_000, Ordering::SeqCst);
    assert_eq!(store.now(), seen, "it runs backwards no more than that of transactions");
    clock.0.fetch_add(3_000_000, Ordering::SeqCst);
    let later = seen.plus(Duration::from_secs(2));
    assert_eq!((store.now(), store.read(by_transaction).await.unwrap()), (later, later));
    store.close().await;
    assert_eq!(store.now(), later, "no database is asked");
}

/// What changed since it does not see: by a later time it would tell that something ran out which was paid before that.
async fn a_read_goes_by_a_time_before_its_snapshot(world: &World) {
    let clock = Arc::new(Standing(AtomicI64::new(1_790_000_000_000_000)));
    let opened = Store::open_with(world.settings.clone(), schema(), Arc::clone(&clock) as _, entropy()).await;
    let (store, ahead) = (opened.unwrap(), Arc::clone(&clock));
    let before = store.now();
    let told = store.read(move |tx| {
        tx.query("select id from postings", &[])?;
        ahead.0.fetch_add(1_000_000, Ordering::SeqCst);
        Ok::<_, Error>(tx.now())
    });
    assert_eq!(told.await, Ok(before));
    store.close().await;
}

async fn a_database_tells_about_how_large_it_is(world: &World) {
    let store = world.open().await;
    let before = store.read(store::size).await.unwrap();
    let add = |tx: &mut Tx<'_>| (0..1_000).try_for_each(|number| add_posting(tx, &format!("{number:-<1000}")));
    store.write(add).await.unwrap();
    let after = store.read(store::size).await.unwrap();
    assert!(after > before + 500_000, "{before}, {after}");
    store.close().await;
}
