//! What only a file has: a lock, permissions, a second process, neighbours in one commit.

use std::future::poll_fn;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::task::Poll;
use std::time::Duration;

use store::{Database, Error, Settings, Store, Tx};
use tokio::task::JoinHandle;

use crate::additions::A_MOMENT;
use crate::totals::Standing;
use crate::world::{System, World, entropy, schema};
use crate::writes::add_posting;

#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// A write that is in the queue, behind those that are.
async fn begun<F>(store: &Store, closure: F) -> JoinHandle<Result<(), Error>>
where
    F: Fn(&mut Tx<'_>) -> Result<(), Error> + Send + Sync + 'static,
{
    let store = store.clone();
    let mut writing = Box::pin(async move { store.write(closure).await });
    let ended = poll_fn(|context| Poll::Ready(writing.as_mut().poll(context))).await;
    assert!(ended.is_pending(), "somebody holds the batch");
    tokio::spawn(writing)
}

/// Who asked is told after half a minute that nobody knows, asks again, and would have it twice.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_undone_is_not_begun_anew_when_nobody_waits() {
    let world = World::sqlite();
    let store = world.open().await;
    let (before, behind) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
    let (ran, wait_ran) = mpsc::channel();
    let holding = begun(&store, {
        let before = Arc::clone(&before);
        move |_| {
            before.pass();
            Ok(())
        }
    })
    .await;
    let first = begun(&store, move |tx| {
        add_posting(tx, "first")?;
        ran.send(()).unwrap();
        Ok(())
    })
    .await;
    // In the same batch, which is undone for it.
    let second = begun(&store, {
        let behind = Arc::clone(&behind);
        move |_| {
            behind.pass();
            Err(Error::Busy)
        }
    })
    .await;
    before.open();
    let _wait_ran = tokio::task::spawn_blocking(move || wait_ran.recv().map(|()| wait_ran)).await.unwrap().unwrap();
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    behind.open();
    assert_eq!(holding.await.unwrap(), Ok(()));
    assert_eq!(second.await.unwrap(), Err(Error::Busy));
    assert_eq!(world.count("postings").await, 0);
    store.close().await;
}

/// Somebody reads for long what is to be copied: the log can't be cut off, and nobody waits for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_read_holds_up_no_write() {
    let world = World::sqlite();
    let store = world.open().await;
    let (go_on, wait_go_on) = mpsc::channel::<()>();
    let wait_go_on = Arc::new(Mutex::new(wait_go_on));
    let large = store.write(|tx| {
        let note = "n".repeat(1 << 20);
        (0..20).try_for_each(|number| {
            let values = [format!("large{number}").into(), note.as_str().into()];
            tx.execute("insert into postings (id, note) values ($1, $2)", &values).map(drop)
        })
    });
    large.await.unwrap();
    let reading = tokio::spawn({
        let store = store.clone();
        async move {
            store
                .read(move |tx| {
                    tx.query("select count(*) as count from postings", &[])?;
                    wait_go_on.lock().unwrap().recv().unwrap();
                    Ok::<_, Error>(())
                })
                .await
        }
    });
    // Time for the log to be copied, and for the lull after it.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let write = tokio::time::timeout(Duration::from_secs(2), store.write(|tx| add_posting(tx, "small")));
    assert_eq!(write.await, Ok(Ok(())));
    go_on.send(()).unwrap();
    reading.await.unwrap().unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_is_told_to_all_its_neighbours() {
    let world = World::sqlite();
    let store = world.open().await;
    let (reached, wait_reached) = mpsc::channel();
    let (go_on, wait_go_on) = mpsc::channel();
    let wait_go_on = Arc::new(Mutex::new(wait_go_on));
    let holding = tokio::spawn({
        let store = store.clone();
        async move {
            store
                .write(move |tx| {
                    add_posting(tx, "first")?;
                    reached.send(()).unwrap();
                    wait_go_on.lock().unwrap().recv().unwrap();
                    Ok::<_, Error>(())
                })
                .await
        }
    });
    tokio::task::spawn_blocking(move || wait_reached.recv().unwrap()).await.unwrap();
    // The writer is busy, so these three will be in its batch. The second one makes the commit fail.
    let neighbours = ["a", "b", "c"].map(|id| {
        let store = store.clone();
        tokio::spawn(async move {
            store
                .write(move |tx| {
                    add_posting(tx, id)?;
                    if id == "b" {
                        let late = "insert into children (id, posting, late) values ('c', 'b', 'absent')";
                        tx.append("children", late, &[])?;
                    }
                    Ok::<_, Error>(())
                })
                .await
        })
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    go_on.send(()).unwrap();
    assert!(holding.await.unwrap().is_err());
    for neighbour in neighbours {
        assert!(neighbour.await.unwrap().is_err());
    }
    assert_eq!(world.count("postings").await, 0);
    store.write(|tx| add_posting(tx, "later")).await.unwrap();
    assert_eq!(world.count("postings").await, 1);
    store.close().await;
    world.end().await;
}

/// In the order in which they are asked for: on one thread, tasks begin one after the other.
#[tokio::test]
async fn nobody_is_forgotten_behind_what_ends_a_batch_alone() {
    let world = World::sqlite();
    let store = world.open().await;
    let (reached, wait_reached) = mpsc::channel();
    let (go_on, wait_go_on) = mpsc::channel();
    let wait_go_on = Arc::new(Mutex::new(wait_go_on));
    let add = |id: String| {
        let store = store.clone();
        tokio::spawn(async move { store.write(move |tx| add_posting(tx, &id)).await })
    };
    let holding = tokio::spawn({
        let store = store.clone();
        async move {
            store
                .write(move |_| {
                    reached.send(()).unwrap();
                    wait_go_on.lock().unwrap().recv().unwrap();
                    Ok::<_, Error>(())
                })
                .await
        }
    });
    tokio::task::spawn_blocking(move || wait_reached.recv().unwrap()).await.unwrap();
    // As many as a batch has, so that what comes next is the first of the one behind it.
    let mut others: Vec<_> = (0..127).map(|number| add(format!("full{number}"))).collect();
    let alone = tokio::spawn({
        let store = store.clone();
        async move {
            store
                .write(move |tx| {
                    tx.unhurried();
                    Err::<(), _>(Error::Busy)
                })
                .await
        }
    });
    others.extend((0..3).map(|number| add(format!("behind{number}"))));
    tokio::time::sleep(Duration::from_millis(50)).await;
    go_on.send(()).unwrap();
    assert_eq!(holding.await.unwrap(), Ok(()));
    assert_eq!(alone.await.unwrap(), Err(Error::Busy));
    for other in others {
        assert_eq!(other.await.unwrap(), Ok(()));
    }
    assert_eq!(world.count("postings").await, 130);
    store.close().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_serves_a_file() {
    let world = World::sqlite();
    let store = world.open().await;
    let refused = world.try_open(schema()).await.err();
    assert!(matches!(&refused, Some(Error::InUse(_))), "{refused:?}");
    // By another name: what a second one believed to be served by nobody it would take out of the first one's hands.
    let link = world.path().with_file_name("link.sqlite");
    std::os::unix::fs::symlink(world.path(), &link).unwrap();
    let settings = Settings::new(Database::Sqlite { path: link });
    let refused = Store::open_with(settings, schema(), Arc::new(System), entropy()).await.err();
    assert!(matches!(&refused, Some(Error::InUse(_))), "{refused:?}");
    store.close().await;
    world.open().await.close().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_is_seen() {
    let world = World::sqlite();
    let serving = world.open().await;
    let mut changes = serving.changes();
    for number in 0..50 {
        serving.write(move |tx| add_posting(tx, &format!("own{number}"))).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let before = serving.data_version();
    changes.mark_unchanged();

    let second = world.open_second().await;
    second.write(|tx| add_posting(tx, "foreign")).await.unwrap();
    tokio::time::timeout(Duration::from_secs(1), changes.changed()).await.unwrap().unwrap();
    assert!(serving.data_version() > before);
    let rows = serving.read(|tx| tx.query("select id from postings where id = 'foreign'", &[])).await.unwrap();
    assert_eq!(rows.len(), 1);
    second.close().await;
    serving.close().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn own_writes_are_no_foreign_change() {
    let world = World::sqlite();
    let store = world.open().await;
    let before = store.data_version();
    for number in 0..20 {
        store.write(move |tx| add_posting(tx, &format!("own{number}"))).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(store.data_version(), before);
    store.close().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_needs_a_database() {
    let world = World::sqlite();
    let settings = Settings { secondary: true, ..world.settings.clone() };
    let refused = Store::open_with(settings, schema(), Arc::new(System), entropy()).await.err();
    assert!(matches!(refused, Some(Error::Unavailable(_))), "{refused:?}");
    assert!(!world.path().exists());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_may_read_the_file() {
    let world = World::sqlite();
    std::fs::write(world.path(), "").unwrap();
    std::fs::set_permissions(world.path(), PermissionsExt::from_mode(0o644)).unwrap();
    let store = world.open().await;
    store.write(|tx| add_posting(tx, "a")).await.unwrap();
    let folder = world.path().parent().unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
        seen += 1;
    }
    assert_eq!(seen, 4, "the database, its log, the log's index, the lock");
    store.close().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_copied_in_a_lull_kept_small_under_load_and_emptied_at_the_end() {
    let world = World::sqlite();
    let store = world.open().await;
    let log = world.path().with_extension("sqlite-wal");
    let write = async |number: usize, bytes: usize| {
        let insert = move |tx: &mut Tx<'_>| {
            let insert = "insert into things (id, bytes) values ($1, $2)";
            tx.execute(insert, &[format!("t{number}").into(), vec![7; bytes].into()])
        };
        store.write(insert).await.unwrap();
    };
    // Without a lull, 320 MB: twenty times as much as the log is to hold.
    let mut number = 0;
    while number < 1_600 {
        write(number, 200_000).await;
        number += 1;
    }
    let length = || std::fs::metadata(&log).unwrap().len();
    assert!(length() < 256 * 1024 * 1024, "after {number} writes the log has {} bytes", length());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(length() <= 16 * 1024 * 1024, "{}", length());
    // Everything is in the database file: a copy of it alone has the rows.
    let copy = world.path().with_extension("copy");
    std::fs::copy(world.path(), &copy).unwrap();
    let alone = rusqlite::Connection::open(&copy).unwrap();
    let rows: i64 = alone.query_row("select count(*) from things", [], |row| row.get(0)).unwrap();
    assert_eq!(usize::try_from(rows), Ok(number));
    store.write(|tx| add_posting(tx, "a")).await.unwrap();
    store.close().await;
    assert!(std::fs::metadata(&log).map_or(0, |metadata| metadata.len()) == 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_database_is_refused() {
    let world = World::sqlite();
    std::fs::write(world.path(), "x".repeat(10_000)).unwrap();
    let refused = world.try_open(schema()).await.err();
    assert!(matches!(refused, Some(Error::Corrupt(_))), "{refused:?}");
    let nowhere = Settings::new(Database::Sqlite { path: "/nowhere/at/all".into() });
    let refused = Store::open_with(nowhere, schema(), Arc::new(System), entropy()).await.err();
    assert!(matches!(refused, Some(Error::Unavailable(_))), "{refused:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_until_there_is_space() {
    let world = World::sqlite();
    let store = world.open().await;
    store.write(|tx| add_posting(tx, "before")).await.unwrap();
    let pages = store.write(|tx| tx.query_one("pragma page_count", &[])?.get::<i64>(0)).await.unwrap();
    let limit = format!("pragma max_page_count = {}", pages + 4);
    store.write(move |tx| tx.query(&limit, &[])).await.unwrap();
    for round in 0..5 {
        let refused = store
            .write(move |tx| {
                add_posting(tx, &format!("lost{round}"))?;
                let insert = "insert into things (id, bytes) values ($1, $2)";
                tx.execute(insert, &["large".into(), vec![7; 100_000].into()])
            })
            .await;
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
        let rows = store.read(|tx| tx.query("select id from postings", &[])).await.unwrap();
        assert_eq!(rows.len(), 1);
    }
    store.write(|tx| tx.query("pragma max_page_count = 1000000", &[])).await.unwrap();
    store.write(|tx| add_posting(tx, "after")).await.unwrap();
    assert_eq!(world.count("postings").await, 2);
    store.close().await;
    world.end().await;
}

/// As by what another process wrote meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_goes_by_a_time_at_which_nobody_else_writes() {
    let world = World::sqlite();
    let clock = Arc::new(Standing(AtomicI64::new(1_790_000_000_000_000)));
    let opened = Store::open_with(world.settings.clone(), schema(), Arc::clone(&clock) as _, entropy()).await;
    let store = opened.unwrap();
    let other = rusqlite::Connection::open(world.path()).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let writing = tokio::spawn({
        let store = store.clone();
        async move { store.write(|tx| Ok::<_, Error>(tx.now())).await }
    });
    tokio::time::sleep(A_MOMENT).await;
    assert!(!writing.is_finished(), "another process writes");
    clock.0.fetch_add(1_000_000, Ordering::SeqCst);
    let told = store.now();
    other.execute_batch("rollback").unwrap();
    assert_eq!(writing.await.unwrap(), Ok(told));
    drop(other);
    store.close().await;
    world.end().await;
}
