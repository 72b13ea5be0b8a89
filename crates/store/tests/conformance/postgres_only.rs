//! What only a server does: lose connections, forget statements, run with settings that lose writes, interleave.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::future::join_all;
use store::{Clock, Database, Error, Settings, Store, Tx};

use crate::additions::{A_MOMENT, Held};
use crate::world::{System, World, entropy, raw_postgres, schema};
use crate::writes::add_posting;

/// What is done at once takes, on a machine that has much else to do; far less than a key is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_lose_writes_are_refused() {
    let Some(world) = World::postgres("settings_that_lose_writes_are_refused").await else { return };
    world.alter("synchronous_commit = off").await;
    let settings = world.settings.clone();
    let refused = Store::open_with(settings.clone(), schema(), Arc::new(System), entropy()).await.err();
    assert!(
        matches!(&refused, Some(Error::Unsafe(sentence)) if sentence.contains("synchronous_commit=off")),
        "{refused:?}"
    );
    let allowed = Settings { allow_unsafe: true, ..settings };
    Store::open_with(allowed, schema(), Arc::new(System), entropy()).await.unwrap().close().await;
    world.end().await;
}

/// Another server after a failover may be set otherwise than the one before.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_where_it_can_be_lost_after_the_start_either() {
    let Some(world) = World::postgres("nothing_is_written_where_it_can_be_lost").await else { return };
    let (store, lenient) = (world.open().await, Settings { allow_unsafe: true, ..world.settings.clone() });
    let lenient = Store::open_with(lenient, schema(), Arc::new(System), entropy()).await.unwrap();
    let lose_all = "select pg_terminate_backend(pid, 5000) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()";
    world.alter("synchronous_commit = off").await;
    raw_postgres(world.url()).await.batch_execute(lose_all).await.unwrap();
    let refused = store.write(|tx| add_posting(tx, "refused")).await;
    assert!(matches!(&refused, Err(Error::Unavailable(why)) if why.contains("synchronous_commit=off")), "{refused:?}");
    lenient.write(|tx| add_posting(tx, "allowed")).await.unwrap();
    world.alter("synchronous_commit = on").await;
    let stored = async {
        while store.write(|tx| add_posting(tx, "stored")).await.is_err() {
            tokio::time::sleep(A_MOMENT).await;
        }
    };
    tokio::time::timeout(PATIENCE, stored).await.expect("it is as it was");
    assert_eq!(world.count("postings").await, 2);
    store.close().await;
    lenient.close().await;
    world.end().await;
}

/// Nor where they change under a connection that is there already.
#[tokio::test(flavor = "multi_thread")]
async fn settings_that_change_are_seen_within_a_minute() {
    let Some(world) = World::postgres("settings_that_change_are_seen").await else { return };
    let clock = Arc::new(Ahead::default());
    let settings = Settings { connections: 1, ..world.settings.clone() };
    let store = Store::open_with(settings, schema(), Arc::clone(&clock) as Arc<dyn Clock>, entropy()).await.unwrap();
    store.write(|tx| tx.execute("set synchronous_commit = off", &[])).await.unwrap();
    let setting = |tx: &mut Tx<'_>| tx.query_one("select current_setting('synchronous_commit')", &[])?.get::<String>(0);
    assert_eq!(store.write(setting).await.unwrap(), "off", "the connection is told otherwise");
    clock.0.fetch_add(60_000_000, Ordering::SeqCst);
    assert_eq!(store.write(setting).await.unwrap(), "on", "another connection");
    store.close().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_said_so() {
    let settings = Settings::new(Database::Postgres { url: "postgres://nobody@127.0.0.1:1/none".to_owned() });
    let refused = Store::open_with(settings, schema(), Arc::new(System), entropy()).await.err();
    assert!(matches!(refused, Some(Error::Unavailable(_))), "{refused:?}");
}

/// As the system's, and so much later as was said.
#[derive(Default)]
struct Ahead(AtomicI64);

impl Clock for Ahead {
    fn now_us(&self) -> i64 {
        System.now_us() + self.0.load(Ordering::SeqCst)
    }
}

/// Another was faster.
fn conflict(tx: &mut Tx<'_>) -> Result<(), Error> {
    tx.guarded("counters", "update counters set version = version + 1 where name = 'gone'", &[])?;
    tx.query("select name from counters", &[]).map(drop)
}

/// Who asked is told after half a minute that nobody knows, asks again, and would have it twice.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_begun_anew_when_its_caller_may_be_gone() {
    let Some(world) = World::postgres("nothing_is_begun_anew").await else { return };
    let clock = Arc::new(Ahead::default());
    let settings = Settings { connections: 1, ..world.settings.clone() };
    let store = Store::open_with(settings, schema(), Arc::clone(&clock) as Arc<dyn Clock>, entropy()).await.unwrap();
    let longer = 11_000_000;

    // It met another, which took long.
    let (runs, late) = (Arc::new(AtomicU32::new(0)), Arc::clone(&clock));
    let seen = Arc::clone(&runs);
    let met = store.write(move |tx| {
        add_posting(tx, "met")?;
        match seen.fetch_add(1, Ordering::SeqCst) {
            0 => {
                late.0.fetch_add(longer, Ordering::SeqCst);
                conflict(tx)
            }
            _ => Ok(()),
        }
    });
    assert_eq!(met.await, Err(Error::Conflict));
    assert_eq!(runs.load(Ordering::SeqCst), 1);

    // It shared a transaction that failed, and another of those takes long, alone.
    let held = Held::of(&store, 1).await;
    let runs = Arc::new(AtomicU32::new(0));
    let adding: Vec<_> = (0..4)
        .map(|number| {
            let (store, late, seen) = (store.clone(), Arc::clone(&clock), Arc::clone(&runs));
            tokio::spawn(async move {
                let added = store.add(move |tx| {
                    add_posting(tx, &format!("added{number}"))?;
                    match seen.fetch_add(1, Ordering::SeqCst) {
                        0 => conflict(tx),
                        _ => {
                            late.0.fetch_add(longer, Ordering::SeqCst);
                            Ok(())
                        }
                    }
                });
                added.await
            })
        })
        .collect();
    held.let_go().await;
    let mut added: Vec<_> = join_all(adding).await.into_iter().map(Result::unwrap).collect();
    added.sort_by_key(Result::is_err);
    assert_eq!(added, [Ok(()), Err(Error::Conflict), Err(Error::Conflict), Err(Error::Conflict)]);
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert_eq!(world.count("postings").await, 1);
    store.close().await;
    world.end().await;
}

/// The real interleaving: the other connection commits between the reading and the writing of this transaction.
#[tokio::test(flavor = "multi_thread")]
async fn an_update_in_between_leaves_no_posting() {
    let Some(world) = World::postgres("an_update_in_between_leaves_no_posting").await else { return };
    let (first, second) = (world.open().await, world.open().await);
    let insert = "insert into counters (name, version, value) values ('a', 1, 0)";
    first.write(move |tx| tx.execute(insert, &[])).await.unwrap();
    let (reached, wait_reached) = mpsc::channel();
    let (go_on, wait_go_on) = mpsc::channel::<()>();
    let (reached, wait_go_on) = (Mutex::new(Some(reached)), Mutex::new(wait_go_on));
    let slow = tokio::spawn({
        let first = first.clone();
        async move {
            first
                .write(move |tx| {
                    let row = tx.query_one("select version, value from counters where name = 'a'", &[])?;
                    let (version, value): (i64, i64) = (row.get("version")?, row.get("value")?);
                    if let Some(reached) = reached.lock().unwrap().take() {
                        reached.send(()).unwrap();
                        wait_go_on.lock().unwrap().recv().unwrap();
                    }
                    add_posting(tx, &format!("before the guard, on top of {value}"))?;
                    let update =
                        "update counters set version = version + 1, value = $2 where name = 'a' and version = $1";
                    tx.guarded("counters", update, &[version.into(), (value + 1).into()])?;
                    add_posting(tx, &format!("behind the guard, on top of {value}"))
                })
                .await
        }
    });
    tokio::task::spawn_blocking(move || wait_reached.recv().unwrap()).await.unwrap();
    let update = "update counters set version = 2, value = 100 where name = 'a'";
    second.write(move |tx| tx.execute(update, &[])).await.unwrap();
    go_on.send(()).unwrap();
    slow.await.unwrap().unwrap();
    assert_eq!(world.count("postings").await, 2);
    assert_eq!(world.count("postings where id like '%on top of 100'").await, 2);
    assert_eq!(world.count("counters where value = 101 and version = 3").await, 1);
    first.close().await;
    second.close().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlocks_run_again() {
    let Some(world) = World::postgres("deadlocks_run_again").await else { return };
    // A second otherwise, for each of them.
    world.alter("deadlock_timeout = 20").await;
    let store = world.open().await;
    let insert = "insert into counters (name, version, value) values ('a', 1, 0), ('b', 1, 0)";
    store.write(move |tx| tx.execute(insert, &[])).await.unwrap();
    let writes: Vec<_> = (0..24)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let names = if number % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
                store
                    .write(move |tx| {
                        for name in names {
                            tx.execute("update counters set value = value + 1 where name = $1", &[name.into()])?;
                            tx.query("select pg_sleep(0.005)::text", &[])?;
                        }
                        Ok::<_, Error>(())
                    })
                    .await
            })
        })
        .collect();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    assert_eq!(world.count("counters where value = 24").await, 2);
    store.close().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_runs_again() {
    let Some(world) = World::postgres("a_lost_connection_runs_again").await else { return };
    let store = world.open().await;
    let runs = Arc::new(AtomicU32::new(0));
    let (seen, url) = (Arc::clone(&runs), world.url().to_owned());
    store
        .write(move |tx| {
            let run = seen.fetch_add(1, Ordering::Relaxed);
            add_posting(tx, &format!("run{run}"))?;
            let pid: i64 = tx.query_one("select pg_backend_pid()::bigint from postings", &[])?.get(0)?;
            if run == 0 {
                terminate(&url, pid);
            }
            tx.query("select count(*) from postings", &[]).map(drop)
        })
        .await
        .unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    assert_eq!(world.count("postings").await, 1);

    for number in 0..20 {
        store.write(move |tx| add_posting(tx, &format!("later{number}"))).await.unwrap();
        store.read(|tx| tx.query("select id from postings", &[])).await.unwrap();
    }
    store.close().await;
    world.end().await;
}

/// Ends a backend from outside, and waits until it is gone. On a thread of its own: closures have no runtime.
fn terminate(url: &str, pid: i64) {
    let url = url.to_owned();
    let ending = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = raw_postgres(&url).await;
            client.batch_execute(&format!("select pg_terminate_backend({pid}, 5000)")).await.unwrap();
        });
    });
    ending.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_connection_may_be_lost_while_idle() {
    let Some(world) = World::postgres("every_connection_may_be_lost_while_idle").await else { return };
    let store = world.open().await;
    for round in 0..5 {
        let others = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
        raw_postgres(world.url()).await.batch_execute(others).await.unwrap();
        for number in 0..8 {
            store.write(move |tx| add_posting(tx, &format!("{round}.{number}"))).await.unwrap();
            store.read(|tx| tx.query("select id from postings", &[])).await.unwrap();
        }
    }
    assert_eq!(world.count("postings").await, 40);
    store.close().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_that_no_longer_fit_are_made_anew() {
    let Some(world) = World::postgres("plans_that_no_longer_fit_are_made_anew").await else { return };
    let store = world.open().await;
    store.write(|tx| add_posting(tx, "a")).await.unwrap();
    let client = raw_postgres(world.url()).await;
    for width in [100, 200, 300] {
        for _ in 0..8 {
            let row = store.read(|tx| tx.query_one("select id, note from postings", &[])).await.unwrap();
            assert_eq!(row.get::<String>("id").unwrap(), "a");
        }
        let sql = format!("alter table postings alter column note type varchar({width})");
        client.batch_execute(&sql).await.unwrap();
    }
    store.close().await;
    world.end().await;
}

/// As behind a pooler that hands out another server connection each time.
#[tokio::test(flavor = "multi_thread")]
async fn forgotten_statements_are_no_obstacle() {
    let Some(world) = World::postgres("forgotten_statements_are_no_obstacle").await else { return };
    let store = world.open().await;
    for round in 0..6 {
        for number in 0..6 {
            store
                .write(move |tx| {
                    add_posting(tx, &format!("{round}.{number}"))?;
                    let update = "update postings set note = $2 where id = $1";
                    tx.guarded("postings", update, &[format!("{round}.{number}").into(), "seen".into()])?;
                    let body =
                        "insert into things (id, number, body, bytes) values ($1, $2, $3, $4) on conflict do nothing";
                    let count = tx.execute(
                        body,
                        &[format!("{round}.{number}").into(), None::<i64>.into(), "b".into(), vec![1_u8].into()],
                    )?;
                    assert_eq!(count, 1);
                    assert!(tx.query("select id from postings where id = $1", &["absent".into()])?.is_empty());
                    Ok::<_, Error>(())
                })
                .await
                .unwrap();
        }
        store.write(|tx| tx.execute("deallocate all", &[])).await.unwrap();
    }
    assert_eq!(world.count("postings where note = 'seen'").await, 36);
    store.close().await;
    world.end().await;
}

/// By the server itself: who vanished without a word can't end anything.
#[tokio::test(flavor = "multi_thread")]
async fn every_transaction_has_limits_on_the_server() {
    let Some(world) = World::postgres("every_transaction_has_limits_on_the_server").await else { return };
    let store = world.open().await;
    const LIMITS: &str = "select current_setting('lock_timeout'), current_setting('statement_timeout'),
        current_setting('idle_in_transaction_session_timeout')";
    let limits = |tx: &mut Tx<'_>| {
        let row = tx.query_one(LIMITS, &[])?;
        Ok::<_, Error>([row.get::<String>(0)?, row.get(1)?, row.get(2)?])
    };
    let (hurried, unhurried) = (["15s", "20s", "1min"], ["10min", "6h", "1h"]);
    let (fair, brief) = (["500ms", "20s", "1min"], ["100ms", "20s", "1min"]);
    for round in 0..2 {
        assert_eq!(store.read(limits).await.unwrap(), hurried, "{round}");
        assert_eq!(store.write(limits).await.unwrap(), fair, "{round}");
        let insert = move |tx: &mut Tx<'_>| {
            add_posting(tx, &format!("{round}"))?;
            limits(tx)
        };
        assert_eq!(store.write(insert).await.unwrap(), fair, "{round}");
        assert_eq!(store.add(limits).await.unwrap(), brief, "{round}");
        let late = move |tx: &mut Tx<'_>| {
            assert_eq!(limits(tx)?, fair);
            tx.unhurried();
            tx.unhurried();
            limits(tx)
        };
        assert_eq!(store.write(late).await.unwrap(), unhurried, "{round}");
        let slow = move |tx: &mut Tx<'_>| {
            tx.unhurried();
            limits(tx)
        };
        assert_eq!(store.read(slow).await.unwrap(), unhurried, "{round}");
    }
    store.close().await;
    world.end().await;
}

/// Nobody waits for the end of a read. Whatever became of it, the next one on its connection sees what was committed meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_leaves_nothing_behind_on_its_connection() {
    let Some(world) = World::postgres("a_read_leaves_nothing_behind").await else { return };
    let other = world.open().await;
    let one = Settings { connections: 1, ..world.settings.clone() };
    let store = Store::open_with(one, schema(), Arc::new(System), entropy()).await.unwrap();
    let seen = |tx: &mut Tx<'_>| tx.query_one("select count(*) as seen from postings", &[])?.get::<i64>("seen");
    for round in 0..20 {
        assert_eq!(store.read(seen).await.unwrap(), 2 * round);
        other.write(move |tx| add_posting(tx, &format!("theirs {round}"))).await.unwrap();
        assert_eq!(store.read(seen).await.unwrap(), 2 * round + 1);
        if round % 2 == 0 {
            let refused = store.read(|tx| tx.query("select 1 / 0 as one", &[]).map(drop)).await;
            assert!(refused.is_err());
        }
        store.write(move |tx| add_posting(tx, &format!("ours {round}"))).await.unwrap();
    }
    assert_eq!(store.read(seen).await.unwrap(), 40);
    let watcher = raw_postgres(world.url()).await;
    let in_transactions = "select 1 from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null";
    let ended = async {
        while !watcher.query(in_transactions, &[]).await.unwrap().is_empty() {
            tokio::time::sleep(A_MOMENT).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("it ends though nobody asks for anything more");
    store.close().await;
    other.close().await;
    world.end().await;
}

/// None is run again then, and none leaves anything behind that waits.
#[tokio::test(flavor = "multi_thread")]
async fn what_takes_too_long_ends_on_the_server() {
    let Some(world) = World::postgres("what_takes_too_long_ends_on_the_server").await else { return };
    let store = world.open().await;
    store.write(|tx| add_posting(tx, "a")).await.unwrap();
    let holder = raw_postgres(world.url()).await;
    holder.batch_execute("begin; lock table postings in access exclusive mode").await.unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let count = |runs: &Arc<AtomicU32>| {
        let runs = Arc::clone(runs);
        move || runs.fetch_add(1, Ordering::Relaxed)
    };
    let (first, second, third) = (count(&runs), count(&runs), count(&runs));
    let sleeping = store.read(move |tx| {
        first();
        tx.query("select pg_sleep(60)::text", &[])
    });
    // A statement that is new to the connection waits when it is prepared, and one that isn't when it runs.
    let waiting = store.write(move |tx| {
        second();
        tx.execute("update postings set note = 'b'", &[])
    });
    let reading = store.read(move |tx| {
        third();
        tx.query("select id from postings", &[])
    });
    let (sleeping, waiting, reading) = tokio::join!(sleeping, waiting, reading);
    let code = |answer: Result<(), Error>| match answer {
        Err(Error::Unavailable(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(code(sleeping.map(drop)).contains("57014"));
    assert!(code(waiting.map(drop)).contains("55P03"));
    assert!(code(reading.map(drop)).contains("55P03"));
    // The write waits a while where many may stand in line, and then once more, long.
    assert_eq!(runs.load(Ordering::Relaxed), 4);
    let busy = "select count(*) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'";
    let left: i64 = holder.query_typed_one(busy, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
    holder.batch_execute("rollback").await.unwrap();
    store.close().await;
    world.end().await;
}

/// What a server says that ends a transaction itself, and what it says of a statement.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_the_server_ended_runs_again() {
    let Some(world) = World::postgres("a_transaction_that_the_server_ended_runs_again").await else { return };
    let store = world.open().await;
    for (code, runs_wanted) in [("25P03", 2), ("08006", 2), ("55P03", 2), ("57014", 1)] {
        let runs = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&runs);
        let answer = store
            .write(move |tx| {
                if seen.fetch_add(1, Ordering::Relaxed) == 0 {
                    let raise = format!("do $$ begin raise exception 'no' using errcode = '{code}'; end $$");
                    tx.execute(&raise, &[])?;
                }
                add_posting(tx, code)
            })
            .await;
        assert_eq!(runs.load(Ordering::Relaxed), runs_wanted, "{code}");
        match runs_wanted {
            1 => assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}"),
            _ => assert_eq!(answer, Ok(()), "{code}"),
        }
    }
    assert_eq!(world.count("postings").await, 3);
    store.close().await;
    world.end().await;
}
