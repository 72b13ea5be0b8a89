//! Savepoints: what fails inside is undone alone, what is around goes on.

use store::{Error, SqlKind};

use crate::on_both;
use crate::world::World;
use crate::writes::add_posting;

on_both!(
    what_failed_inside_is_undone_alone,
    a_refused_statement_inside_is_confined,
    an_unknown_statement_inside_is_confined,
    savepoints_nest,
    a_conflict_inside_runs_everything_again,
);

async fn ids(world: &World, expected: &[&str]) {
    assert_eq!(world.count("postings").await, i64::try_from(expected.len()).unwrap());
    for id in expected {
        assert_eq!(world.count(&format!("postings where id = '{id}'")).await, 1, "{id}");
    }
}

async fn what_failed_inside_is_undone_alone(world: &World) {
    let store = world.open().await;
    store
        .write(|tx| {
            add_posting(tx, "before")?;
            // Nothing was sent yet when this one fails.
            let failed = tx.savepoint(|tx| {
                add_posting(tx, "inside, collected")?;
                Err::<(), _>(Error::Backup("no".to_owned()))
            });
            assert_eq!(failed, Err(Error::Backup("no".to_owned())));
            // Here it was.
            let failed = tx.savepoint(|tx| {
                add_posting(tx, "inside, sent")?;
                assert_eq!(tx.query("select id from postings", &[])?.len(), 2);
                Err::<(), _>(Error::Backup("no".to_owned()))
            });
            assert_eq!(failed, Err(Error::Backup("no".to_owned())));
            assert_eq!(tx.query("select id from postings", &[])?.len(), 1);
            tx.savepoint(|tx| add_posting(tx, "kept, collected"))?;
            tx.savepoint(|tx| {
                add_posting(tx, "kept, sent")?;
                tx.query("select id from postings", &[]).map(drop)
            })?;
            add_posting(tx, "behind")
        })
        .await
        .unwrap();
    ids(world, &["before", "kept, collected", "kept, sent", "behind"]).await;
    store.close().await;
}

async fn a_refused_statement_inside_is_confined(world: &World) {
    let store = world.open().await;
    store.write(|tx| add_posting(tx, "taken")).await.unwrap();
    store
        .write(|tx| {
            add_posting(tx, "before")?;
            let refused = tx.savepoint(|tx| {
                add_posting(tx, "inside")?;
                tx.execute("insert into postings (id, note) values ($1, '')", &["taken".into()])
            });
            assert!(refused.is_err_and(|error| error.is_unique_violation()));
            // Swallowed inside: it is refused all the same.
            let swallowed = tx.savepoint(|tx| {
                let _ = tx.execute("insert into postings (id, note) values ($1, '')", &["taken".into()]);
                Ok::<_, Error>(())
            });
            assert!(swallowed.is_err_and(|error| error.is_unique_violation()));
            add_posting(tx, "behind")
        })
        .await
        .unwrap();
    ids(world, &["taken", "before", "behind"]).await;
    store.close().await;
}

async fn an_unknown_statement_inside_is_confined(world: &World) {
    let store = world.open().await;
    store
        .write(|tx| {
            tx.query("select count(*) from postings", &[])?;
            add_posting(tx, "before")?;
            let refused = tx.savepoint(|tx| {
                add_posting(tx, "inside")?;
                tx.query("select nothing from nowhere", &[]).map(drop)
            });
            assert!(matches!(refused, Err(Error::Sql { kind: SqlKind::Other, .. })), "{refused:?}");
            let refused = tx.savepoint(|tx| tx.execute("update nowhere set a = $1", &["\0".into()]).map(drop));
            assert!(matches!(refused, Err(Error::Sql { kind: SqlKind::Type, .. })), "{refused:?}");
            add_posting(tx, "behind")
        })
        .await
        .unwrap();
    ids(world, &["before", "behind"]).await;
    store.close().await;
}

async fn savepoints_nest(world: &World) {
    let store = world.open().await;
    store
        .write(|tx| {
            tx.savepoint(|tx| {
                add_posting(tx, "outer")?;
                let failed = tx.savepoint(|tx| {
                    add_posting(tx, "inner, undone")?;
                    tx.query("select id from postings", &[])?;
                    tx.savepoint(|tx| add_posting(tx, "innermost, undone with it"))?;
                    Err::<(), _>(Error::Backup("no".to_owned()))
                });
                assert!(failed.is_err());
                tx.savepoint(|tx| add_posting(tx, "inner"))
            })?;
            let failed = tx.savepoint(|tx| {
                tx.savepoint(|tx| add_posting(tx, "released, then undone"))?;
                tx.query("select id from postings", &[])?;
                Err::<(), _>(Error::Backup("no".to_owned()))
            });
            assert!(failed.is_err());
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    ids(world, &["outer", "inner"]).await;
    store.close().await;
}

async fn a_conflict_inside_runs_everything_again(world: &World) {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    let store = world.open().await;
    let runs = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&runs);
    store
        .write(move |tx| {
            let run = seen.fetch_add(1, Ordering::Relaxed);
            add_posting(tx, &format!("run{run}"))?;
            let _ = tx.savepoint(|tx| {
                if run == 0 {
                    tx.guarded("counters", "update counters set value = 1 where name = 'absent'", &[])?;
                }
                tx.query("select name from counters", &[])
            });
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    ids(world, &["run1"]).await;
    store.close().await;
}
