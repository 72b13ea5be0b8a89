//! Writes: durable before they are answered, whole or not at all, and run again when another one was faster.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use store::{Error, SqlKind, Store, Tx};

use crate::on_both;
use crate::world::World;

on_both!(
    answers_come_after_the_commit,
    a_stale_version_runs_again_and_leaves_nothing_behind,
    two_connections_and_a_stale_version,
    a_version_that_stays_stale_is_given_up,
    an_error_rolls_back_only_itself,
    a_panic_is_an_error_and_poisons_nothing,
    collected_rows_keep_their_order_and_are_seen,
    a_violated_constraint_commits_nothing,
    a_swallowed_error_commits_nothing,
    on_conflict_do_nothing_counts,
    many_increments_of_one_guarded_row,
    a_no_among_many_undoes_itself_alone,
    claims_never_overlap,
    the_seed_survives_a_rerun,
    leases_change_hands_with_a_growing_token,
    a_closed_store_refuses,
);

#[derive(Debug, PartialEq)]
enum Failure {
    Domain(&'static str),
    Store(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

pub(crate) fn add_posting(tx: &mut Tx<'_>, id: &str) -> Result<(), Error> {
    tx.append("postings", "insert into postings (id, note) values ($1, $2)", &[id.into(), "".into()])
}

async fn add_counter(store: &Store, name: &'static str) {
    let insert = "insert into counters (name, version, value) values ($1, 1, 0)";
    store.write(move |tx| tx.execute(insert, &[name.into()])).await.unwrap();
}

/// Reads the row and its version, without a lock.
fn counter(tx: &mut Tx<'_>, name: &str) -> Result<(i64, i64), Error> {
    let row = tx.query_one("select version, value from counters where name = $1", &[name.into()])?;
    Ok((row.get("version")?, row.get("value")?))
}

fn save_counter(tx: &mut Tx<'_>, name: &str, version: i64, value: i64) -> Result<(), Error> {
    let update = "update counters set version = version + 1, value = $3 where name = $1 and version = $2";
    tx.guarded("counters", update, &[name.into(), version.into(), value.into()])
}

async fn answers_come_after_the_commit(world: &World) {
    let store = world.open().await;
    for number in 0..100 {
        store.write(move |tx| add_posting(tx, &format!("p{number}"))).await.unwrap();
        assert_eq!(world.count("postings").await, number + 1);
    }
    store.close().await;
}

async fn a_stale_version_runs_again_and_leaves_nothing_behind(world: &World) {
    let store = world.open().await;
    add_counter(&store, "a").await;
    let runs = Arc::new(AtomicI64::new(0));
    let seen = Arc::clone(&runs);
    store
        .write(move |tx| {
            let run = seen.fetch_add(1, Ordering::Relaxed);
            let (version, value) = counter(tx, "a")?;
            add_posting(tx, &format!("run{run}"))?;
            // The first two runs come with a version that was never there.
            let version = if run < 2 { version + 7 } else { version };
            save_counter(tx, "a", version, value + 1)?;
            add_posting(tx, &format!("run{run}, behind the guard"))
        })
        .await
        .unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    assert_eq!(world.count("postings").await, 2);
    assert_eq!(world.count("postings where id like 'run2%'").await, 2);
    assert_eq!(store.read(|tx| counter(tx, "a")).await, Ok((2, 1)));
    store.close().await;
}

async fn two_connections_and_a_stale_version(world: &World) {
    let (first, second) = (world.open().await, world.open_second().await);
    add_counter(&first, "a").await;
    // What the first run believes: on SQLite nobody can come between the reading and the writing inside a transaction.
    let believed = Arc::new(Mutex::new(Some(first.read(|tx| counter(tx, "a")).await.unwrap())));
    second.write(|tx| save_counter(tx, "a", 1, 100)).await.unwrap();
    first
        .write(move |tx| {
            let stale = believed.lock().unwrap().take();
            let (version, value) = match stale {
                Some(stale) => stale,
                None => counter(tx, "a")?,
            };
            add_posting(tx, &format!("on top of {value}"))?;
            save_counter(tx, "a", version, value + 1)
        })
        .await
        .unwrap();
    assert_eq!(world.count("postings").await, 1);
    assert_eq!(world.count("postings where id = 'on top of 100'").await, 1);
    assert_eq!(first.read(|tx| counter(tx, "a")).await, Ok((3, 101)));
    second.close().await;
    first.close().await;
}

async fn a_version_that_stays_stale_is_given_up(world: &World) {
    let store = world.open().await;
    add_counter(&store, "a").await;
    let refused = store
        .write(|tx| {
            add_posting(tx, "never")?;
            save_counter(tx, "a", 99, 1)
        })
        .await;
    assert_eq!(refused, Err(Error::Conflict));
    assert_eq!(world.count("postings").await, 0);
    store.close().await;
}

async fn an_error_rolls_back_only_itself(world: &World) {
    let store = world.open().await;
    let writes = (0..60).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            store
                .write(move |tx| {
                    add_posting(tx, &format!("p{number}"))?;
                    if number % 3 == 0 { Err(Failure::Domain("no")) } else { Ok(number) }
                })
                .await
        })
    });
    for (number, write) in writes.collect::<Vec<_>>().into_iter().enumerate() {
        let expected = if number % 3 == 0 { Err(Failure::Domain("no")) } else { Ok(number) };
        assert_eq!(write.await.unwrap(), expected);
    }
    assert_eq!(world.count("postings").await, 40);
    store.close().await;
}

async fn a_panic_is_an_error_and_poisons_nothing(world: &World) {
    let store = world.open().await;
    for round in 0..10 {
        let panicked = store
            .write(move |tx| -> Result<(), Error> {
                add_posting(tx, "never")?;
                tx.query("select count(*) from postings", &[])?;
                panic!("on purpose, round {round}")
            })
            .await;
        // A text that was put together may hold what somebody sent.
        assert_eq!(panicked, Err(Error::Panic("with a text of its own".to_owned())));
        let panicked = store.read(|_| -> Result<(), Error> { panic!("while reading") }).await;
        assert_eq!(panicked, Err(Error::Panic("while reading".to_owned())));
    }
    store.write(|tx| add_posting(tx, "after")).await.unwrap();
    assert_eq!(world.count("postings").await, 1);
    store.close().await;
}

async fn collected_rows_keep_their_order_and_are_seen(world: &World) {
    let store = world.open().await;
    let child = "insert into children (id, posting) values ($1, $2)";
    store
        .write(move |tx| {
            add_posting(tx, "parent")?;
            tx.append("children", child, &["c1".into(), "parent".into()])?;
            assert_eq!(tx.query_one("select count(*) from children", &[])?.get::<i64>(0)?, 1);
            add_posting(tx, "other parent")?;
            // At once, and behind what was collected: its parent must be there.
            assert_eq!(tx.execute(child, &["c2".into(), "other parent".into()])?, 1);
            add_posting(tx, "third")?;
            let others = tx.query("select name from counters", &[])?;
            assert!(others.is_empty());
            let ids = tx.query("select id from postings order by id", &[])?;
            let ids: Vec<String> = ids.iter().map(|row| row.get("id")).collect::<Result<_, _>>()?;
            assert_eq!(ids, ["other parent", "parent", "third"]);
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    assert_eq!(world.count("children").await, 2);
    assert_eq!(world.count("postings").await, 3);
    store.close().await;
}

async fn a_violated_constraint_commits_nothing(world: &World) {
    let store = world.open().await;
    store.write(|tx| add_posting(tx, "taken")).await.unwrap();
    let twice = store
        .write(|tx| {
            add_posting(tx, "before")?;
            add_posting(tx, "taken")?;
            add_posting(tx, "behind")
        })
        .await;
    assert!(twice.as_ref().is_err_and(Error::is_unique_violation), "{twice:?}");
    for (sql, expected) in [
        ("insert into postings (id, note) values ('x', 'forbidden')", SqlKind::Check),
        ("insert into children (id, posting) values ('x', 'absent')", SqlKind::ForeignKey),
        ("insert into postings (id) values ('x')", SqlKind::NotNull),
        ("insert into nowhere (id) values ('x')", SqlKind::Other),
        ("insert into children (id, posting, late) values ('x', 'taken', 'absent')", SqlKind::ForeignKey),
    ] {
        let refused = store
            .write(move |tx| {
                add_posting(tx, "before")?;
                tx.append("postings", sql, &[])
            })
            .await;
        assert!(matches!(&refused, Err(Error::Sql { kind, .. }) if *kind == expected), "{sql}: {refused:?}");
    }
    assert_eq!(world.count("postings").await, 1);
    store.close().await;
}

async fn a_swallowed_error_commits_nothing(world: &World) {
    let store = world.open().await;
    let swallowed = store
        .write(|tx| {
            add_posting(tx, "before")?;
            let _ = tx.execute("insert into postings (id, note) values ('x', 'forbidden')", &[]);
            let _ = add_posting(tx, "behind");
            Ok::<_, Error>(())
        })
        .await;
    assert!(matches!(swallowed, Err(Error::Sql { kind: SqlKind::Check, .. })), "{swallowed:?}");
    let turned = store
        .write(|tx| {
            let insert = "insert into postings (id, note) values ('x', 'forbidden')";
            tx.execute(insert, &[]).map_err(|_| Failure::Domain("forbidden"))
        })
        .await;
    assert_eq!(turned, Err(Failure::Domain("forbidden")));
    assert_eq!(world.count("postings").await, 0);
    store.close().await;
}

async fn on_conflict_do_nothing_counts(world: &World) {
    let store = world.open().await;
    let insert = "insert into postings (id, note) values ($1, '') on conflict do nothing";
    for expected in [1, 0] {
        assert_eq!(store.write(move |tx| tx.execute(insert, &["a".into()])).await, Ok(expected));
    }
    store.close().await;
}

async fn many_increments_of_one_guarded_row(world: &World) {
    let store = world.open().await;
    add_counter(&store, "a").await;
    let increments: Vec<_> = (0..64)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                store
                    .write(move |tx| {
                        // Half of them without a lock, so that guards are missed.
                        let lock = if number % 2 == 0 { tx.lock_suffix() } else { "" };
                        let sql = format!("select version, value from counters where name = $1{lock}");
                        let row = tx.query_one(&sql, &["a".into()])?;
                        add_posting(tx, &format!("p{number}"))?;
                        save_counter(tx, "a", row.get("version")?, row.get::<i64>("value")? + 1)
                    })
                    .await
            })
        })
        .collect();
    for increment in increments {
        increment.await.unwrap().unwrap();
    }
    assert_eq!(store.read(|tx| counter(tx, "a")).await, Ok((65, 64)));
    assert_eq!(world.count("postings").await, 64);
    store.close().await;
}

/// Many at once, so that they share commits: those that say no, as a whole or in a part of theirs, take nothing of the others
/// with them and leave nothing behind.
async fn a_no_among_many_undoes_itself_alone(world: &World) {
    let store = world.open().await;
    let writes: Vec<_> = (0..200)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                store
                    .write(move |tx| {
                        add_posting(tx, &format!("p{number}"))?;
                        match number % 20 {
                            7 => Err(Error::Backup("no".to_owned())),
                            13 => {
                                let part = tx.savepoint(|tx| {
                                    add_posting(tx, &format!("part{number}"))?;
                                    Err::<(), _>(Error::Backup("no".to_owned()))
                                });
                                assert!(part.is_err());
                                add_posting(tx, &format!("after{number}"))
                            }
                            _ => Ok(()),
                        }
                    })
                    .await
            })
        })
        .collect();
    let mut refused = 0;
    for write in writes {
        refused += usize::from(write.await.unwrap().is_err());
    }
    assert_eq!(refused, 10);
    assert_eq!(world.count("postings").await, 190 + 10);
    assert_eq!(world.count("postings where id like 'part%'").await, 0);
    store.close().await;
}

const CLAIMABLE: &str = "
select id
from chores
where lease_until <= $1
order by id
limit 3";

const CLAIM: &str = "
update chores
set lease_until = $2, holder = $3, runs = runs + 1
where id = $1
  and lease_until <= $4";

async fn claims_never_overlap(world: &World) {
    let (first, second) = (world.open().await, world.open_second().await);
    let insert = "insert into chores (id, lease_until, runs) values ($1, 0, 0)";
    first
        .write(move |tx| {
            for id in 0..100_i64 {
                tx.append("chores", insert, &[id.into()])?;
            }
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    let claimed = Arc::new(AtomicU32::new(0));
    // The last one doesn't skip locked rows, so that the predicate in the update has to hold.
    let workers = [(&first, "a", true), (&second, "b", true), (&first, "c", true), (&second, "d", false)];
    let workers = workers.map(|(store, name, skips)| {
        let (store, claimed) = (store.clone(), Arc::clone(&claimed));
        tokio::spawn(async move {
            loop {
                let claims = store.write(move |tx| {
                    let now = tx.now_us();
                    let lock = if skips { tx.skip_locked_suffix() } else { "" };
                    let mut count = 0;
                    let rows = tx.query(&format!("{CLAIMABLE}{lock}"), &[now.into()])?;
                    for row in &rows {
                        let values = [row.get::<i64>("id")?.into(), (now + 60_000_000).into(), name.into(), now.into()];
                        count += u32::try_from(tx.execute(CLAIM, &values)?).unwrap();
                    }
                    Ok::<_, Error>((rows.len(), count))
                });
                let (found, count) = claims.await.unwrap();
                claimed.fetch_add(count, Ordering::Relaxed);
                if found == 0 && count == 0 {
                    return;
                }
            }
        })
    });
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(claimed.load(Ordering::Relaxed), 100);
    assert_eq!(world.count("chores where runs = 1").await, 100);
    second.close().await;
    first.close().await;
}

async fn the_seed_survives_a_rerun(world: &World) {
    let store = world.open().await;
    add_counter(&store, "a").await;
    let mut all = Vec::new();
    for _ in 0..2 {
        let seeds = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seeds);
        store
            .write(move |tx| {
                let mut kept = kept.lock().unwrap();
                kept.push(tx.seed());
                let (version, value) = counter(tx, "a")?;
                save_counter(tx, "a", if kept.len() < 3 { 99 } else { version }, value)
            })
            .await
            .unwrap();
        let seeds = seeds.lock().unwrap().clone();
        assert_eq!(seeds.len(), 3);
        assert!(seeds.iter().all(|seed| *seed == seeds[0]));
        all.push(seeds[0]);
    }
    assert_ne!(all[0], all[1]);
    store.close().await;
}

async fn leases_change_hands_with_a_growing_token(world: &World) {
    use store::lease::{Token, release, renew, take};
    let store = world.open().await;
    store
        .write(|tx| {
            assert_eq!(take(tx, "sequencer", "a", 60_000_000)?, Some(Token(1)));
            assert_eq!(take(tx, "sequencer", "b", 60_000_000)?, None);
            assert!(renew(tx, "sequencer", "a", Token(1), 60_000_000)?);
            release(tx, "sequencer", "a", Token(1))?;
            assert_eq!(take(tx, "sequencer", "b", 60_000_000)?, Some(Token(2)));
            assert!(!renew(tx, "sequencer", "a", Token(1), 60_000_000)?);
            release(tx, "sequencer", "a", Token(1))?;
            assert_eq!(take(tx, "sequencer", "c", 60_000_000)?, None);
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    store.close().await;
}

async fn a_closed_store_refuses(world: &World) {
    let store = world.open().await;
    let writes: Vec<_> = (0..20)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.write(move |tx| add_posting(tx, &format!("p{number}"))).await })
        })
        .collect();
    tokio::task::yield_now().await;
    store.close().await;
    let mut written = 0;
    for write in writes {
        match write.await.unwrap() {
            Ok(()) => written += 1,
            Err(Error::Unavailable(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(world.count("postings").await, written);
    assert!(matches!(store.write(|tx| add_posting(tx, "late")).await, Err(Error::Unavailable(_))));
    assert!(matches!(store.read(|tx| counter(tx, "a")).await, Err(Error::Unavailable(_))));
}
