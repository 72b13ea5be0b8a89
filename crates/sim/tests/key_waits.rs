//! Who comes with the key of a request that is running, on one thread and without any time passing: told when it ends, and by
//! nobody's looking.

use dalasi::app::Context;
use dalasi::app::idempotency::Reply;
use dalasi::error::Failure;
use sim::crowd::{Setting, with_template};
use sim::world::World;
use store::Tx;
use store::queries::idempotency::{self, IdempotencyKey};
use tokio::task::JoinHandle;

/// What the contract's "few" is (ARCHITECTURE.md).
const MOST: usize = 8;

#[test]
fn few_wait_for_a_key_and_are_told_when_it_is_free() {
    with_template(Setting::Plain, async |template| {
        let world = World::begin(template).await;
        let key = left_running(&world).await;
        for _ in 0..2 {
            let waiting: Vec<_> = (0..MOST).map(|_| come(&world, &key)).collect();
            turns().await;
            assert!(waiting.iter().all(|one| !one.is_finished()), "each waits");
            let further = come(&world, &key);
            turns().await;
            assert!(further.is_finished(), "one more is told at once");
            assert_eq!(further.await.expect("no panic"), Err(Failure::KeyInUse));

            // Who gives up leaves a place.
            waiting[0].abort();
            turns().await;
            let late = come(&world, &key);
            turns().await;
            assert!(!late.is_finished());

            let freed = key.clone();
            world.app.commit(move |tx, _| Ok(idempotency::release(tx, &freed)?)).await.expect("it is free");
            turns().await;
            let mut replies = Vec::new();
            for one in waiting.into_iter().skip(1).chain([late]) {
                assert!(one.is_finished(), "nobody had to look for it");
                replies.push(one.await.expect("no panic").expect("an answer"));
            }
            let done: Vec<_> = replies.iter().filter(|reply| !reply.replayed).collect();
            assert_eq!((replies.len(), done.len()), (MOST, 1), "one of them did it, and the others are told so");
            let freed = key.clone();
            let again = world.app.commit(move |tx, _| Ok(tx.execute(RUNS_AGAIN, &[freed.key.as_str().into()])?));
            assert_eq!(again.await, Ok(1));
        }
        world.end().await;
    });
}

/// Another process's commit is not heard of.
#[test]
fn what_nobody_tells_is_looked_for() {
    with_template(Setting::Plain, async |template| {
        let world = World::begin(template).await;
        let key = left_running(&world).await;
        let waiting = come(&world, &key);
        turns().await;
        let freed = key.clone();
        world.app.store().write(move |tx| idempotency::release(tx, &freed)).await.expect("it is free");
        let reply = tokio::time::timeout(std::time::Duration::from_secs(5), waiting).await.expect("it looks");
        assert_eq!(reply.expect("no panic"), Ok(done()));
        world.end().await;
    });
}

const RUNS_AGAIN: &str = "
update idempotency_keys set state = 'running', status = null, sealed_body = null where idempotency_key = $1";

/// As a call to a rail leaves it.
async fn left_running(world: &World) -> IdempotencyKey {
    let key = IdempotencyKey {
        scope: world.scopes[0],
        space: IdempotencyKey::MERCHANT_SPACE.to_owned(),
        key: "once".to_owned(),
        fingerprint: vec![7; 32],
        former_fingerprint: None,
        sets_state: false,
    };
    let left = key.clone();
    let left = world.app.store().write(move |tx| {
        idempotency::claim(tx, &left)?;
        idempotency::leave(tx, &left)
    });
    left.await.expect("it is left");
    key
}

fn done() -> Reply {
    Reply::new(201, "null".to_owned())
}

fn come(world: &World, key: &IdempotencyKey) -> JoinHandle<Result<Reply, Failure>> {
    let (app, key) = (world.app.clone(), key.clone());
    let command = |_: &mut Tx<'_>, _: &Context| Ok(());
    tokio::spawn(async move { app.write(Some(key), command, |_: Result<&(), &Failure>| done()).await })
}

/// As often as it takes until everybody waits for somebody.
async fn turns() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}
