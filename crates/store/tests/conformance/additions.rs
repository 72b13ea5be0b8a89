//! Additions: on PostgreSQL several of them share a transaction, and nobody notices.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use store::{Dialect, Error, Store, Tx};
use tokio::task::JoinHandle;

use crate::on_both;
use crate::world::World;
use crate::writes::add_posting;

/// Enough for tasks that were begun to stand where they wait.
pub(crate) const A_MOMENT: Duration = Duration::from_millis(100);

on_both!(
    together_they_are_all_stored,
    what_says_no_undoes_itself_alone,
    what_says_no_too_late_undoes_itself_alone,
    what_the_database_refuses_undoes_itself_alone,
    a_refusal_that_is_taken_takes_nothing_with_it,
    what_is_written_is_read,
    what_comes_second_is_told,
    values_of_every_kind_come_back,
);

/// Threads of a store that are held: what is added meanwhile waits for them and then goes together.
pub(crate) struct Held {
    gate: Arc<(Mutex<bool>, Condvar)>,
    reads: Vec<JoinHandle<Result<(), Error>>>,
}

impl Held {
    pub(crate) async fn of(store: &Store, threads: usize) -> Self {
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let hold = |_| {
            let (store, gate) = (store.clone(), Arc::clone(&gate));
            tokio::spawn(async move {
                let waiting = store.read(move |_| {
                    let (is_open, opened) = &*gate;
                    drop(opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
                    Ok(())
                });
                waiting.await
            })
        };
        let reads = (0..threads).map(hold).collect();
        tokio::time::sleep(A_MOMENT).await;
        Self { gate, reads }
    }

    /// Once what was begun meanwhile is waiting.
    pub(crate) async fn let_go(self) {
        tokio::time::sleep(A_MOMENT).await;
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
        for read in self.reads {
            read.await.unwrap().unwrap();
        }
    }
}

/// All at once; their answers in order.
async fn add_all<T, F>(store: &Store, count: u32, closure: F) -> Vec<Result<T, Error>>
where
    T: Send + 'static,
    F: Fn(&mut Tx<'_>, u32) -> Result<T, Error> + Clone + Send + Sync + 'static,
{
    let held = Held::of(store, 4).await;
    let adding: Vec<_> = (0..count)
        .map(|number| {
            let (store, closure) = (store.clone(), closure.clone());
            tokio::spawn(async move { store.add(move |tx| closure(tx, number)).await })
        })
        .collect();
    held.let_go().await;
    let mut answers = Vec::new();
    for added in adding {
        answers.push(added.await.unwrap());
    }
    answers
}

async fn together_they_are_all_stored(world: &World) {
    let store = world.open().await;
    let runs = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&runs);
    let answers = add_all(&store, 300, move |tx, number| {
        seen.fetch_add(1, Ordering::Relaxed);
        add_posting(tx, &format!("p{number}"))?;
        add_posting(tx, &format!("q{number}"))?;
        Ok(number)
    });
    assert_eq!(answers.await, (0..300).map(Ok).collect::<Vec<_>>());
    assert_eq!(world.count("postings").await, 600);
    assert_eq!(runs.load(Ordering::Relaxed), 300, "each ran once");
    store.close().await;
}

async fn what_says_no_undoes_itself_alone(world: &World) {
    let store = world.open().await;
    let runs = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&runs);
    let answers = add_all(&store, 100, move |tx, number| {
        seen.fetch_add(1, Ordering::Relaxed);
        add_posting(tx, &format!("p{number}"))?;
        match number % 10 {
            3 => Err(Error::Backup("no".to_owned())),
            5 => {
                assert!(says_no(tx, number, |_| Ok(())).is_err());
                add_posting(tx, &format!("after{number}"))
            }
            7 => panic!("planted"),
            _ => Ok(()),
        }
    });
    for (number, answer) in answers.await.into_iter().enumerate() {
        assert_eq!(answer.is_err(), [3, 7].contains(&(number % 10)), "{number}: {answer:?}");
    }
    assert_eq!(world.count("postings where id like 'p%'").await, 80);
    assert_eq!(world.count("postings where id like 'part%'").await, 0);
    assert_eq!(world.count("postings where id like 'after%'").await, 10);
    // The one writer of SQLite runs a batch again instead.
    if store.dialect() == Dialect::Postgres {
        assert_eq!(runs.load(Ordering::Relaxed), 100, "each ran once");
    }
    store.close().await;
}

/// What a closure asks sends what is collected, so that it can't be dropped any more.
async fn what_says_no_too_late_undoes_itself_alone(world: &World) {
    let store = world.open().await;
    let answers = add_all(&store, 60, |tx, number| {
        let count = |tx: &mut Tx<'_>| tx.query_one("select count(*) as count from postings", &[]).map(drop);
        add_posting(tx, &format!("p{number}"))?;
        match number {
            13 => count(tx).and(Err(Error::Backup("no".to_owned()))),
            33 => {
                assert!(says_no(tx, number, count).is_err());
                add_posting(tx, "after")
            }
            _ => Ok(()),
        }
    });
    for (number, answer) in answers.await.into_iter().enumerate() {
        assert_eq!(answer.is_err(), number == 13, "{number}: {answer:?}");
    }
    assert_eq!(world.count("postings where id like 'p%'").await, 59);
    assert_eq!(world.count("postings where id like 'part%'").await, 0);
    assert_eq!(world.count("postings where id = 'after'").await, 1);
    store.close().await;
}

async fn what_the_database_refuses_undoes_itself_alone(world: &World) {
    let store = world.open().await;
    let answers = add_all(&store, 60, |tx, number| {
        add_posting(tx, &format!("p{number}"))?;
        let note = if number == 23 { "forbidden" } else { "" };
        tx.append(
            "postings",
            "insert into postings (id, note) values ($1, $2)",
            &[format!("q{number}").into(), note.into()],
        )
    });
    for (number, answer) in answers.await.into_iter().enumerate() {
        assert_eq!(answer.is_err(), number == 23, "{number}: {answer:?}");
    }
    assert_eq!(world.count("postings").await, 118);
    store.close().await;
}

/// PostgreSQL ends a transaction with the statement that it refuses, and answers a COMMIT behind it as if it had been one.
async fn a_refusal_that_is_taken_takes_nothing_with_it(world: &World) {
    let store = world.open().await;
    let held = Held::of(&store, 4).await;
    // Begun in this order: the last one finds everything sent, and sends nothing more.
    let adding = (0..10).map(|number| {
        store.add(move |tx| {
            if number < 9 {
                add_posting(tx, &format!("p{number}"))?;
                return tx.query_one("select count(*) as count from postings", &[]).map(drop);
            }
            let refused = tx.savepoint(|tx| tx.query("select nothing from nowhere", &[]));
            assert!(matches!(refused, Err(Error::Sql { .. })), "{refused:?}");
            Ok(())
        })
    });
    let (answers, ()) = tokio::join!(futures_util::future::join_all(adding), held.let_go());
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(world.count("postings").await, 9);
    store.close().await;
}

fn says_no(tx: &mut Tx<'_>, number: u32, then: impl FnOnce(&mut Tx<'_>) -> Result<(), Error>) -> Result<(), Error> {
    tx.savepoint(|tx| {
        add_posting(tx, &format!("part{number}"))?;
        then(tx)?;
        Err(Error::Backup("no".to_owned()))
    })
}

async fn what_is_written_is_read(world: &World) {
    let store = world.open().await;
    let answers = add_all(&store, 50, |tx, number| {
        let count = |tx: &mut Tx<'_>| {
            let row = tx.query_one("select count(*) as count from postings where note = $1", &["".into()])?;
            row.get::<i64>("count")
        };
        let before = count(tx)?;
        add_posting(tx, &format!("p{number}"))?;
        let between = count(tx)?;
        let sql = "insert into postings (id, note) values ($1, '') on conflict do nothing";
        let touched = tx.execute(sql, &[format!("q{number}").into()])?;
        Ok((between - before, count(tx)? - between, touched))
    });
    assert!(answers.await.into_iter().all(|answer| answer == Ok((1, 1, 1))));
    assert_eq!(world.count("postings").await, 100);
    store.close().await;
}

/// A guarded insert, as an idempotency key's: its neighbours don't suffer from the miss.
async fn what_comes_second_is_told(world: &World) {
    let store = world.open().await;
    store.write(|tx| add_posting(tx, "key3")).await.unwrap();
    let answers = add_all(&store, 24, |tx, number| {
        let key = format!("key{}", number % 20);
        let sql = "insert into postings (id, note) values ($1, $2) on conflict do nothing";
        add_posting(tx, &format!("p{number}"))?;
        tx.guarded("postings", sql, &[key.into(), "".into()])
    });
    let mut keys = BTreeSet::from([3]);
    let answers = answers.await;
    let stored = answers.iter().filter(|answer| answer.is_ok()).count();
    for (number, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(()) => assert!(keys.insert(number % 20), "key{} was stored twice", number % 20),
            Err(error) => assert_eq!(error, Error::Conflict, "given up, because it stays so"),
        }
    }
    assert_eq!((keys.len(), stored), (20, 19));
    assert_eq!(world.count("postings where id like 'p%'").await, 19);
    store.close().await;
}

async fn values_of_every_kind_come_back(world: &World) {
    let store = world.open().await;
    let answers = add_all(&store, 30, |tx, number| {
        let (blob, text) = (vec![0, 255, u8::try_from(number).unwrap()], format!("Ndëy 🌿 {{\"{number}\", null}}\\"));
        let values = [
            format!("{number:02}").into(),
            (number % 3 > 0).then_some(blob).into(),
            (number % 2 > 0).then_some(text).into(),
            (number % 5 > 0).then_some(i64::MIN + i64::from(number)).into(),
        ];
        tx.append("things", "insert into things (id, bytes, body, number) values ($1, $2, $3, $4)", &values)
    });
    assert!(answers.await.iter().all(Result::is_ok));
    let sql = "select id, bytes, body, number from things order by id";
    let rows = store.read(move |tx| tx.query(sql, &[])).await.unwrap();
    assert_eq!(rows.len(), 30);
    for (number, row) in (0_u8..).zip(rows) {
        let (blob, text) = (vec![0, 255, number], format!("Ndëy 🌿 {{\"{number}\", null}}\\"));
        assert_eq!(row.get("id"), Ok(format!("{number:02}")));
        assert_eq!(row.get("bytes"), Ok((number % 3 > 0).then_some(blob)));
        assert_eq!(row.get("body"), Ok((number % 2 > 0).then_some(text)));
        assert_eq!(row.get("number"), Ok((number % 5 > 0).then_some(i64::MIN + i64::from(number))));
    }
    store.close().await;
}
