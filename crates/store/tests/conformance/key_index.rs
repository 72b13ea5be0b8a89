//! However a database finds an idempotency key: each that is kept is found, and no other, whoever stored it and when, and
//! whatever else was undone. On SQLite so many of them that most have left the memory for a run.

use std::sync::Arc;

use domain::{Id, Mode, Scope, Timestamp};
use futures_util::future::join_all;
use store::queries::idempotency::{self, Claimed, IdempotencyKey};
use store::queries::verify::{self, KeyPlace};
use store::{Dialect, Error, Schema, Settings, Store, Tx};

use crate::idempotency::{fill, key};
use crate::on_both;
use crate::world::{System, World, entropy};

on_both!(
    keys_are_found_however_many_there_are,
    what_is_undone_leaves_its_key_free,
    another_process_is_seen,
    runs_go_with_their_keys,
    what_is_forgotten_in_vain_is_known,
    a_key_that_would_not_be_found_is_told,
    large_answers_are_looked_through_in_parts,
);

/// Keys of a run on SQLite, when it is made and when it is long.
const RUN: i64 = 8 * 1024;
const LONG: i64 = 8 * RUN;

/// As the program opens it, so that rows of before are put in order.
async fn open(world: &World) -> Store {
    Store::open(world.settings.clone(), Arc::new(System), entropy()).await.unwrap()
}

/// With rows that nobody has told the index of: restored, or of a schema without it.
async fn open_with(world: &World, name: &'static str, count: i64, days_ago: i64) -> Store {
    let before = world.try_open(Schema::product()).await.unwrap();
    fill(&before, name, count, days_ago).await;
    before.close().await;
    open(world).await
}

fn keep(tx: &mut Tx<'_>, key: &IdempotencyKey) -> Result<Claimed, Error> {
    let claimed = idempotency::claim(tx, key)?;
    if claimed == Claimed::First {
        idempotency::finish(tx, key, 201, Some(vec![1]))?;
    }
    Ok(claimed)
}

/// Undone again.
async fn claim(store: &Store, key: IdempotencyKey) -> Claimed {
    let undone = store.write(move |tx| Err::<(), _>(Looked(idempotency::claim(tx, &key))));
    undone.await.unwrap_err().0.unwrap()
}

struct Looked(Result<Claimed, Error>);

impl From<Error> for Looked {
    fn from(error: Error) -> Self {
        Self(Err(error))
    }
}

fn is_kept(claimed: &Claimed) -> bool {
    matches!(claimed, Claimed::Finished { .. })
}

async fn runs(world: &World) -> i64 {
    if world.dialect() == Dialect::Sqlite { world.count("idempotency_runs").await } else { 0 }
}

async fn keys_are_found_however_many_there_are(world: &World) {
    let on_sqlite = |count| if world.dialect() == Dialect::Sqlite { count } else { 0 };
    open_with(world, "old", LONG, 1).await.close().await;
    for (before, name) in (1..).zip(["a", "b", "c", "d", "e", "f", "g"]) {
        assert_eq!(runs(world).await, on_sqlite(before));
        open_with(world, name, RUN, 1).await.close().await;
    }
    let store = open_with(world, "h", RUN - 50, 1).await;
    assert_eq!(runs(world).await, on_sqlite(8));
    // The eighth short one becomes full under their hands.
    let own: Vec<String> = (0..200).map(|number| format!("own{number}")).collect();
    for claimed in join_all(own.iter().map(|name| {
        store.write({
            let key = key(name);
            move |tx| keep(tx, &key)
        })
    }))
    .await
    {
        assert_eq!(claimed, Ok(Claimed::First));
    }
    for reopened in [false, true] {
        let store = if reopened {
            store.close().await;
            open(world).await
        } else {
            store.clone()
        };
        assert_eq!(runs(world).await, on_sqlite(2));
        let short = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| (name, RUN - 50, 701));
        for (name, count, step) in [("old", LONG, 977)].into_iter().chain(short) {
            for number in (100_001..=100_000 + count).step_by(step).chain([100_000 + count]) {
                assert!(is_kept(&claim(&store, key(&format!("{name}{number}"))).await), "{name}{number}");
                assert_eq!(claim(&store, key(&format!("no {name}{number}"))).await, Claimed::First);
            }
        }
        for name in &own {
            assert!(is_kept(&claim(&store, key(name)).await), "{name}");
        }
        for scope in [
            Scope { mode: Mode::Live, ..key("").scope },
            Scope { organization: Id::new(Timestamp::from_micros(1_700_000_000_000_000), [8; 10]), ..key("").scope },
        ] {
            assert_eq!(claim(&store, IdempotencyKey { scope, ..key("old100001") }).await, Claimed::First);
        }
        let space = IdempotencyKey::page_space("cs_1");
        assert_eq!(claim(&store, IdempotencyKey { space, ..key("old100001") }).await, Claimed::First);
        let fingerprint = vec![8; 32];
        assert_eq!(claim(&store, IdempotencyKey { fingerprint, ..key("old100001") }).await, Claimed::Reused);
        if reopened {
            store.close().await;
        }
    }
    assert_eq!(world.count("idempotency_keys").await, LONG + 8 * RUN - 50 + 200);
}

async fn what_is_undone_leaves_its_key_free(world: &World) {
    let store = open(world).await;
    for _ in 0..3 {
        let undone = store.write(|tx| {
            assert_eq!(keep(tx, &key("undone"))?, Claimed::First);
            assert!(is_kept(&keep(tx, &key("undone"))?));
            Err::<(), _>(Error::Conflict)
        });
        assert!(undone.await.is_err());
    }
    let inside = store.write(|tx| {
        let part = tx.savepoint(|tx| {
            assert_eq!(keep(tx, &key("inside"))?, Claimed::First);
            Err::<(), _>(Error::Busy)
        });
        assert_eq!(part, Err(Error::Busy));
        keep(tx, &key("after"))?;
        keep(tx, &key("inside"))
    });
    assert_eq!(inside.await, Ok(Claimed::First));
    for name in ["inside", "after"] {
        assert!(is_kept(&claim(&store, key(name)).await), "{name}");
    }
    // What was freed is free, also for what is freed in vain.
    let freed = store.write(|tx| {
        idempotency::claim(tx, &key("freed"))?;
        idempotency::leave(tx, &key("freed"))?;
        idempotency::release(tx, &key("freed"))?;
        keep(tx, &key("freed"))
    });
    assert_eq!(freed.await, Ok(Claimed::First));
    let in_vain = store.write(|tx| {
        idempotency::release(tx, &key("freed"))?;
        idempotency::release(tx, &key("never"))
    });
    in_vain.await.unwrap();
    assert!(is_kept(&claim(&store, key("freed")).await));
    let twice = ["one", "two"].map(|part| store.write(move |tx| Ok::<_, Error>((part, keep(tx, &key("undone"))?))));
    let twice = join_all(twice).await;
    assert_eq!(twice.iter().filter(|done| matches!(done, Ok((_, Claimed::First)))).count(), 1, "{twice:?}");
    assert_eq!(world.count("idempotency_keys").await, 4);
    store.close().await;
}

async fn another_process_is_seen(world: &World) {
    let store = open_with(world, "old", RUN + 10, 1).await;
    let second = Settings { secondary: true, ..world.settings.clone() };
    let second = Store::open(second, Arc::new(System), entropy()).await.unwrap();
    let sides = [&store, &second];
    for round in 0..12 {
        let (here, there) = (sides[round % 2], sides[(round + 1) % 2]);
        // What is undone here must not hide what is stored there in its place.
        let name = format!("undone{round}");
        let undone = here.write(move |tx| {
            keep(tx, &key(&name))?;
            Err::<(), _>(Error::Busy)
        });
        assert_eq!(undone.await, Err(Error::Busy));
        let name = format!("kept{round}");
        assert_eq!(there.write(move |tx| keep(tx, &key(&name))).await, Ok(Claimed::First));
        for side in sides {
            for before in 0..=round {
                assert!(is_kept(&claim(side, key(&format!("kept{before}"))).await), "{round} {before}");
                assert_eq!(claim(side, key(&format!("undone{before}"))).await, Claimed::First);
            }
            assert!(is_kept(&claim(side, key("old100007")).await));
        }
    }
    assert_eq!(world.count("idempotency_keys").await, RUN + 10 + 12);
    second.close().await;
    store.close().await;
}

async fn runs_go_with_their_keys(world: &World) {
    open_with(world, "older", RUN, 32).await.close().await;
    let store = open_with(world, "old", RUN + 10, 31).await;
    assert_eq!(runs(world).await, if world.dialect() == Dialect::Sqlite { 2 } else { 0 });
    let young = store.write(|tx| keep(tx, &key("young")));
    assert_eq!(young.await, Ok(Claimed::First));
    while store.write(idempotency::forget).await.unwrap() {}
    assert_eq!(world.count("idempotency_keys").await, 1);
    if world.dialect() == Dialect::Sqlite {
        assert_eq!(runs(world).await, 0);
        assert_eq!(world.count("idempotency_run_pages").await, 0);
    }
    for reopened in [false, true] {
        let store = if reopened { open(world).await } else { store.clone() };
        assert_eq!(claim(&store, key("old100007")).await, Claimed::First);
        assert!(is_kept(&claim(&store, key("young")).await));
        let next = store.write(move |tx| keep(tx, &key(if reopened { "second" } else { "first" })));
        assert_eq!(next.await, Ok(Claimed::First));
        assert!(is_kept(&claim(&store, key("first")).await));
        store.close().await;
    }
    assert_eq!(world.count("idempotency_keys").await, 3);
}

/// A batch whose commit fails, right after a start: the last keys go with their run, one is looked for, and all are back.
async fn what_is_forgotten_in_vain_is_known(world: &World) {
    let store = open_with(world, "old", RUN, 31).await;
    while store.write(idempotency::forget).await.unwrap() && world.count("idempotency_keys").await > 500 {}
    store.close().await;
    let store = open(world).await;
    let in_vain = store.write(|tx| {
        while idempotency::forget(tx)? {}
        keep(tx, &key("in vain"))?;
        Err::<(), _>(Error::Busy)
    });
    assert_eq!(in_vain.await, Err(Error::Busy));
    assert_eq!(store.write(|tx| keep(tx, &key("kept"))).await, Ok(Claimed::First));
    while store.write(idempotency::forget).await.unwrap() {}
    assert_eq!(unfound(&store).await, Vec::<String>::new());
    store.close().await;
    let store = open(world).await;
    assert!(is_kept(&claim(&store, key("kept")).await));
    store.close().await;
}

async fn unfound(store: &Store) -> Vec<String> {
    let walked = store.read(|tx| {
        let (mut place, mut unfound) = (KeyPlace::default(), Vec::new());
        loop {
            let rows = verify::idempotency_keys(tx, &mut place)?;
            if rows.is_empty() {
                return Ok::<_, Error>(unfound);
            }
            unfound.extend(rows.into_iter().filter(|(_, _, is_found)| !is_found).map(|(name, _, _)| name.1));
        }
    });
    walked.await.unwrap()
}

/// Of a megabyte each: no more of them are read at once than four hold.
async fn large_answers_are_looked_through_in_parts(world: &World) {
    let store = open(world).await;
    let counts = async || {
        let walked = store.read(|tx| {
            let (mut place, mut counts) = (KeyPlace::default(), Vec::new());
            while !place.is_end {
                counts.push(verify::idempotency_keys(tx, &mut place)?.len());
            }
            Ok::<_, Error>(counts)
        });
        walked.await.unwrap()
    };
    assert_eq!(counts().await, [0]);
    let kept = store.write(|tx| {
        for number in 0..6 {
            let key = key(&format!("large{number}"));
            assert_eq!(idempotency::claim(tx, &key)?, Claimed::First);
            idempotency::finish(tx, &key, 201, Some(vec![1; 1_000_000]))?;
        }
        Ok::<_, Error>(())
    });
    kept.await.unwrap();
    assert_eq!(counts().await, [4, 2]);
    store.close().await;
}

async fn a_key_that_would_not_be_found_is_told(world: &World) {
    open_with(world, "old", RUN + 10, 1).await.close().await;
    let store = open_with(world, "next", RUN, 1).await;
    assert_eq!(unfound(&store).await, Vec::<String>::new());
    if world.dialect() == Dialect::Sqlite {
        let lost = "delete from idempotency_run_pages where first_digest in (
            select first_digest from idempotency_run_pages order by first_digest limit 1)";
        assert_eq!(store.write(move |tx| tx.execute(lost, &[])).await, Ok(1));
        let unfound = unfound(&store).await;
        assert!((1..=100).contains(&unfound.len()), "{}", unfound.len());
        assert_eq!(claim(&store, key(&unfound[0])).await, Claimed::First, "that is what it tells of");
        // A whole run, which no other covers.
        let lost = "delete from idempotency_runs where first_sequence = 1";
        assert_eq!(store.write(move |tx| tx.execute(lost, &[])).await, Ok(1));
        let all = self::unfound(&store).await;
        assert_eq!(all.iter().filter(|name| name.starts_with("old")).count() as i64, RUN + 10);
    }
    store.close().await;
}
