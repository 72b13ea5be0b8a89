//! What another transaction holds on PostgreSQL and doesn't let go, as that of a process that went away without a word: who wants
//! it waits, and nobody else does.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use store::{Error, Settings, Store};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::additions::{A_MOMENT, Held};
use crate::postgres_only::PATIENCE;
use crate::totals::Standing;
use crate::world::{System, World, entropy, raw_postgres, schema};
use crate::writes::add_posting;

/// A process that went away without a word holds a key, for as long as the server waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_key_holds_up_nobody_else() {
    let Some(world) = World::postgres("a_held_key_holds_up_nobody_else").await else { return };
    let settings = Settings { connections: 2, ..world.settings.clone() };
    let open = || Store::open_with(settings.clone(), schema(), Arc::new(System), entropy());
    let (first, second) = (open().await.unwrap(), open().await.unwrap());
    let holder = raw_postgres(world.url()).await;
    holder.batch_execute("begin; insert into postings (id, note) values ('held', '')").await.unwrap();

    // As many want it as there are threads, each by itself, and others come behind them.
    let mut waiting: Vec<_> = (0..2).map(|_| add(&first, "held".to_owned())).collect();
    tokio::time::sleep(A_MOMENT).await;
    let others = join_all((0..20).map(|number| add(&first, format!("behind{number}"))));
    let answers = tokio::time::timeout(PATIENCE, others).await.expect("they wait for the key as well");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(())))), "{answers:?}");

    // One wants it in the midst of a transaction that it shares with others.
    let threads = Held::of(&second, 2).await;
    let others: Vec<_> = (0..60)
        .map(|number| {
            if number == 30 {
                waiting.push(add(&second, "held".to_owned()));
            }
            add(&second, format!("beside{number}"))
        })
        .collect();
    threads.let_go().await;
    let answers = tokio::time::timeout(PATIENCE, join_all(others)).await.expect("they wait for the key as well");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(())))), "{answers:?}");
    for store in [&first, &second] {
        let read = store.read(|tx| tx.query("select id from postings", &[]));
        assert_eq!(tokio::time::timeout(PATIENCE, read).await.expect("no thread is free").unwrap().len(), 80);
    }

    // Whoever wants it waits on, and one of them gets it.
    assert!(waiting.iter().all(|add| !add.is_finished()));
    holder.batch_execute("rollback").await.unwrap();
    let answers = tokio::time::timeout(PATIENCE, join_all(waiting)).await.expect("nobody holds it");
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Ok(Ok(())))).count(), 1, "{answers:?}");
    assert_eq!(world.count("postings").await, 81);
    first.close().await;
    second.close().await;
    world.end().await;
}

/// Four connections, two rows, and who holds one of these.
async fn with_a_held_row(world: &World) -> (Store, Client) {
    with_so_many_connections(world, 4).await
}

async fn with_so_many_connections(world: &World, connections: usize) -> (Store, Client) {
    let settings = Settings { connections, ..world.settings.clone() };
    let store = Store::open_with(settings, schema(), Arc::new(System), entropy()).await.unwrap();
    let insert = "insert into counters (name, version, value) values ($1, 1, 0)";
    for name in ["held", "free"] {
        store.write(move |tx| tx.execute(insert, &[name.into()])).await.unwrap();
    }
    let holder = raw_postgres(world.url()).await;
    holder.batch_execute("begin; update counters set value = 100 where name = 'held'").await.unwrap();
    (store, holder)
}

/// What takes a row waits for it long, though not with every thread, and whoever needs nothing of it goes on; however many.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_row_holds_up_nobody_else() {
    let Some(world) = World::postgres("a_held_row_holds_up_nobody_else").await else { return };
    let (store, holder) = with_a_held_row(&world).await;
    let waiting: Vec<_> = (0..40).map(|_| raise(&store, "held")).collect();
    tokio::time::sleep(A_MOMENT).await;
    for _ in 0..3 {
        let reads = join_all((0..20).map(|_| store.read(|tx| tx.query("select id from postings", &[]))));
        let writes = join_all((0..20).map(|_| raise(&store, "free")));
        let others = tokio::time::timeout(PATIENCE, async { tokio::join!(reads, writes) });
        let (reads, writes) = others.await.expect("they wait for the row as well");
        assert!(reads.iter().all(Result::is_ok), "{reads:?}");
        assert!(writes.iter().all(|answer| matches!(answer, Ok(Ok(_)))), "{writes:?}");
    }

    // Nobody was refused for it: all of them have their turn.
    assert!(waiting.iter().all(|write| !write.is_finished()));
    holder.batch_execute("commit").await.unwrap();
    let answers = tokio::time::timeout(PATIENCE, join_all(waiting)).await.expect("nobody holds it");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(_)))), "{answers:?}");
    let values = store.read(|tx| tx.query("select value from counters order by name", &[])).await.unwrap();
    let values: Vec<i64> = values.iter().map(|row| row.get(0).unwrap()).collect();
    assert_eq!(values, [60, 140]);
    store.close().await;
    world.end().await;
}

/// Who comes when half of the threads wait already takes next to nothing of the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_row_holds_up_nobody_else_however_fast_they_come() {
    let Some(world) = World::postgres("a_held_row_however_fast_they_come").await else { return };
    let (store, holder) = with_a_held_row(&world).await;
    let coming = tokio::spawn({
        let store = store.clone();
        async move {
            for _ in 0..500 {
                drop(raise(&store, "held"));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    tokio::time::sleep(Duration::from_secs(3)).await;
    while !coming.is_finished() {
        let read = store.read(|tx| tx.query("select id from postings", &[]));
        tokio::time::timeout(PATIENCE, read).await.expect("they wait for the row as well").unwrap();
    }
    holder.batch_execute("rollback").await.unwrap();
    store.close().await;
    world.end().await;
}

/// Whoever stands in the line has the same chance as who comes, also where a row is always somebody's.
#[tokio::test(flavor = "multi_thread")]
async fn who_stands_in_the_line_has_a_turn_while_others_write() {
    let Some(world) = World::postgres("who_stands_in_the_line_has_a_turn").await else { return };
    let (store, holder) = with_a_held_row(&world).await;
    let waiting: Vec<_> = (0..20).map(|_| raise(&store, "held")).collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut others = Vec::new();
    for _ in 0..3 {
        let other = raw_postgres(world.url()).await;
        others.push(tokio::spawn(async move {
            let write = "begin; update counters set value = value where name = 'held'; select pg_sleep(0.02); commit";
            loop {
                other.batch_execute(write).await.unwrap();
            }
        }));
    }
    tokio::time::sleep(A_MOMENT).await;
    holder.batch_execute("rollback").await.unwrap();
    let answers = tokio::time::timeout(2 * PATIENCE, join_all(waiting)).await.expect("they never have a turn");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(1)))), "{answers:?}");
    others.iter().for_each(JoinHandle::abort);
    store.close().await;
    world.end().await;
}

/// Whose turn it is in the line may wait long; what the others want may be free meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_long_for_one_row_does_not_hold_up_the_line_for_another() {
    let Some(world) = World::postgres("who_waits_long_for_one_row").await else { return };
    let (store, holder) = with_a_held_row(&world).await;
    let insert = "insert into counters (name, version, value) values ('first', 1, 0)";
    store.write(move |tx| tx.execute(insert, &[])).await.unwrap();
    let (of_first, of_free) = (raw_postgres(world.url()).await, raw_postgres(world.url()).await);
    of_first.batch_execute("begin; update counters set value = 0 where name = 'first'").await.unwrap();
    of_free.batch_execute("begin; update counters set value = 0 where name = 'free'").await.unwrap();

    // As many as may wait long do so for the first row; the line behind them is of those that want either of two others.
    let first: Vec<_> = (0..2).map(|_| raise(&store, "first")).collect();
    tokio::time::sleep(5 * A_MOMENT).await;
    let (mut held, mut free) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        held.push(raise(&store, "held"));
        free.push(raise(&store, "free"));
        tokio::time::sleep(A_MOMENT).await;
    }
    of_first.batch_execute("rollback").await.unwrap();
    let answers = tokio::time::timeout(PATIENCE, join_all(first)).await.expect("nobody holds it");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(1)))), "{answers:?}");

    // Their places are taken by those of the line.
    tokio::time::sleep(10 * A_MOMENT).await;
    of_free.batch_execute("rollback").await.unwrap();
    let answers = tokio::time::timeout(PATIENCE, join_all(free)).await.expect("they wait for those of the other row");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(1)))), "{answers:?}");
    assert!(held.iter().all(|write| !write.is_finished()));
    holder.batch_execute("rollback").await.unwrap();
    let answers = tokio::time::timeout(PATIENCE, join_all(held)).await.expect("nobody holds it");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(1)))), "{answers:?}");
    store.close().await;
    world.end().await;
}

/// However many of the line take the places of those that waited long before them.
#[tokio::test(flavor = "multi_thread")]
async fn many_who_wait_long_from_now_on_hold_up_the_line_no_longer_than_one() {
    const PLACES: usize = 10;
    let Some(world) = World::postgres("many_who_wait_long_from_now_on").await else { return };
    let (store, holder) = with_so_many_connections(&world, 2 * PLACES).await;
    let insert = "insert into counters (name, version, value) values ('first', 1, 0)";
    store.write(move |tx| tx.execute(insert, &[])).await.unwrap();
    let (of_first, of_free) = (raw_postgres(world.url()).await, raw_postgres(world.url()).await);
    of_first.batch_execute("begin; update counters set value = 0 where name = 'first'").await.unwrap();
    of_free.batch_execute("begin; update counters set value = 0 where name = 'free'").await.unwrap();
    let first: Vec<_> = (0..PLACES).map(|_| raise(&store, "first")).collect();
    tokio::time::sleep(10 * A_MOMENT).await;
    // Each of the line is put behind the others again and again: what it begins with is chance.
    let (mut held, mut free) = (Vec::new(), Vec::new());
    for _ in 0..PLACES {
        held.push(raise(&store, "held"));
        free.push(raise(&store, "free"));
        tokio::time::sleep(A_MOMENT).await;
    }

    // All places are free at one moment, and so is what every other one of the line wants.
    of_first.batch_execute("rollback").await.unwrap();
    of_free.batch_execute("rollback").await.unwrap();
    let answers = tokio::time::timeout(PATIENCE, join_all(first)).await.expect("nobody holds it");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(1)))), "{answers:?}");
    let answers = tokio::time::timeout(Duration::from_secs(2), join_all(free)).await;
    let answers = answers.expect("they wait for those of the other row");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(1)))), "{answers:?}");
    holder.batch_execute("rollback").await.unwrap();
    let answers = tokio::time::timeout(PATIENCE, join_all(held)).await.expect("nobody holds it");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Ok(1)))), "{answers:?}");
    store.close().await;
    world.end().await;
}

/// While it waits others are told by the clock what has run out, and act on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_goes_by_a_time_at_which_it_held_the_row() {
    let Some(world) = World::postgres("a_write_goes_by_a_time_at_which_it_held_the_row").await else { return };
    let clock = Arc::new(Standing(AtomicI64::new(1_790_000_000_000_000)));
    let opened = Store::open_with(world.settings.clone(), schema(), Arc::clone(&clock) as _, entropy()).await;
    let store = opened.unwrap();
    let insert = "insert into counters (name, version, value) values ('held', 1, 0)";
    store.write(move |tx| tx.execute(insert, &[])).await.unwrap();
    let holder = raw_postgres(world.url()).await;
    for passes_us in [50_000, 5_000_000] {
        holder.batch_execute("begin; select name from counters where name = 'held' for update").await.unwrap();
        let written = store.write(move |tx| {
            let sql = format!("select value from counters where name = 'held'{}", tx.lock_suffix());
            tx.query_one(&sql, &[])?;
            let (now, again) = (tx.now(), tx.now());
            assert_eq!(now, again, "one reading for the whole run");
            Ok::<_, Error>(now)
        });
        let passes = async {
            let waiting = "pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
            while world.count(waiting).await == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            clock.0.fetch_add(passes_us, Ordering::SeqCst);
            let told = store.now();
            holder.batch_execute("rollback").await.unwrap();
            told
        };
        let (written, told) = tokio::join!(written, tokio::time::timeout(PATIENCE, passes));
        assert_eq!(written, Ok(told.expect("it waits for the row")), "{passes_us}");
    }
    store.close().await;
    world.end().await;
}

fn raise(store: &Store, name: &'static str) -> JoinHandle<Result<u64, Error>> {
    let store = store.clone();
    let raise = "update counters set value = value + 1 where name = $1";
    tokio::spawn(async move { store.write(move |tx| tx.execute(raise, &[name.into()])).await })
}

/// As when a merchant's row is held, and every create of theirs waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_key_holds_up_nobody_else_however_many_want_it() {
    let Some(world) = World::postgres("a_held_key_however_many_want_it").await else { return };
    let settings = Settings { connections: 2, ..world.settings.clone() };
    let store = Store::open_with(settings, schema(), Arc::new(System), entropy()).await.unwrap();
    let holder = raw_postgres(world.url()).await;
    holder.batch_execute("begin; insert into postings (id, note) values ('held', '')").await.unwrap();
    let waiting: Vec<_> = (0..200).map(|_| add(&store, "held".to_owned())).collect();
    tokio::time::sleep(A_MOMENT).await;
    for round in 0..3 {
        let reads = join_all((0..20).map(|_| store.read(|tx| tx.query("select id from postings", &[]))));
        let adds = join_all((0..20).map(|number| add(&store, format!("other{round}.{number}"))));
        let others = tokio::time::timeout(Duration::from_secs(2), async { tokio::join!(reads, adds) });
        let (reads, adds) = others.await.expect("they wait for the key as well");
        assert!(reads.iter().all(Result::is_ok), "{reads:?}");
        assert!(adds.iter().all(|answer| matches!(answer, Ok(Ok(())))), "{adds:?}");
    }

    // Few of them wait on, and one of those gets it.
    assert!(waiting.iter().any(|add| !add.is_finished()));
    holder.batch_execute("rollback").await.unwrap();
    let answers = tokio::time::timeout(PATIENCE, join_all(waiting)).await.expect("nobody holds it");
    let count = |wanted: &Result<(), Error>| answers.iter().filter(|answer| answer.as_ref().unwrap() == wanted).count();
    assert_eq!(count(&Ok(())), 1, "{answers:?}");
    assert!(count(&Err(Error::Busy)) > 0, "{answers:?}");
    assert_eq!(world.count("postings").await, 61);
    store.close().await;
    world.end().await;
}

/// Nobody waits for an answer that never comes.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_up_while_the_store_closes_is_refused() {
    let Some(world) = World::postgres("what_is_held_up_while_the_store_closes").await else { return };
    let store = world.open().await;
    let holder = raw_postgres(world.url()).await;
    holder.batch_execute("begin; insert into postings (id, note) values ('held', '')").await.unwrap();
    let waiting: Vec<_> = (0..10).map(|_| add(&store, "held".to_owned())).collect();
    tokio::time::sleep(5 * A_MOMENT).await;
    assert!(waiting.iter().all(|add| !add.is_finished()));
    tokio::time::timeout(PATIENCE, store.close()).await.expect("it waits for the key");
    let answers = tokio::time::timeout(PATIENCE, join_all(waiting)).await.expect("somebody was forgotten");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Err(_)))), "{answers:?}");
    holder.batch_execute("rollback").await.unwrap();
    assert_eq!(world.count("postings").await, 0);
    world.end().await;
}

/// Who gets nothing is told so in time, and nothing of it is left waiting.
#[tokio::test(flavor = "multi_thread")]
async fn what_stays_held_is_refused() {
    let Some(world) = World::postgres("what_stays_held_is_refused").await else { return };
    let store = world.open().await;
    let holder = raw_postgres(world.url()).await;
    holder.batch_execute("begin; insert into postings (id, note) values ('held', '')").await.unwrap();
    let answer = tokio::time::timeout(3 * PATIENCE, add(&store, "held".to_owned())).await.expect("an answer").unwrap();
    assert!(matches!(&answer, Err(Error::Unavailable(why)) if why.contains("55P03")), "{answer:?}");
    holder.batch_execute("rollback").await.unwrap();
    store.close().await;
    assert_eq!(world.count("postings").await, 0);
    world.end().await;
}

fn add(store: &Store, id: String) -> JoinHandle<Result<(), Error>> {
    let store = store.clone();
    tokio::spawn(async move { store.add(move |tx| add_posting(tx, &id)).await })
}
