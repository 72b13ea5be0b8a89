//! A request without a key that is sent again, because its caller heard nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use dalasi::app::Context;
use dalasi::app::idempotency::Reply;
use dalasi::app::products::{self, NewProduct};
use dalasi::error::Failure;
use domain::product::Product;
use domain::{Currency, Metadata, Money};
use store::Tx;
use store::queries::idempotency::IdempotencyKey;

use crate::cli::place::Place;
use crate::world::World;

fn key(world: &World, name: &str) -> IdempotencyKey {
    let space = IdempotencyKey::OWN_SPACE.to_owned();
    IdempotencyKey {
        scope: world.scope,
        space,
        key: name.into(),
        fingerprint: vec![7; 32],
        former_fingerprint: None,
        sets_state: false,
    }
}

fn rendered(result: Result<&Product, &Failure>) -> Reply {
    match result {
        Ok(product) => Reply::new(201, product.id.to_string()),
        Err(failure) => Reply::new(failure.status(), failure.code().into_owned()),
    }
}

/// Shut, a command that comes there waits.
#[derive(Default)]
struct Turnstile {
    is_open: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
    passed: AtomicUsize,
}

impl Turnstile {
    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let shut = self.is_open.lock().unwrap();
        drop(self.opened.wait_while(shut, |is_open| !*is_open).unwrap());
        self.passed.fetch_add(1, Ordering::SeqCst);
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Adds nothing, once it has passed.
fn refused(
    world: &World,
    number: u8,
    turnstile: Arc<Turnstile>,
) -> impl Future<Output = Result<Reply, Failure>> + use<> {
    let other = IdempotencyKey { fingerprint: vec![number; 32], ..key(world, &format!("req_other_{number}")) };
    let app = world.app.clone();
    let command = move |_: &mut Tx<'_>, _: &Context| {
        turnstile.pass();
        Err::<Product, _>(Failure::TooOften)
    };
    async move { app.add(Some(other), command, rendered).await }
}

/// Its transaction is held up before its key is sent, the caller gives up and repeats it: one of the two is done.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_by_its_repetition_is_not_done_late() {
    let Some(place) = Place::postgres("what was done by its repetition is not done late").await else { return };
    let world = World::on(place.settings()).await;
    let new = NewProduct {
        name: "Tea".into(),
        description: None,
        price: Money::new(100, Currency::gmd()),
        active: true,
        images: Vec::new(),
        metadata: Metadata::default(),
    };
    let (scope, turnstile) = (world.scope, Arc::new(Turnstile::default()));
    let create = move |tx: &mut Tx<'_>, _: &Context| products::create(tx, scope, &new);
    let held_up = {
        let (create, turnstile) = (create.clone(), Arc::clone(&turnstile));
        move |tx: &mut Tx<'_>, context: &Context| {
            turnstile.pass();
            create(tx, context)
        }
    };
    // Both threads that add are busy, so that what comes meanwhile shares a transaction.
    let busy = Arc::new(Turnstile::default());
    let mut others = Vec::new();
    for number in 1..=2 {
        others.push(tokio::spawn(refused(&world, number, Arc::clone(&busy))));
        until("it is busy", || busy.waiting.load(Ordering::SeqCst) == usize::from(number)).await;
    }
    let (app, first) = (world.app.clone(), key(&world, "req_1"));
    let caller = tokio::spawn(async move { app.add(Some(first), held_up, rendered).await });
    others.push(tokio::spawn(refused(&world, 3, Arc::clone(&busy))));
    tokio::time::sleep(Duration::from_millis(200)).await;
    busy.open();
    until("it begins", || turnstile.waiting.load(Ordering::SeqCst) == 1).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());

    let again = world.app.add(Some(key(&world, "req_2")), create.clone(), rendered).await.unwrap();
    assert_eq!((again.status, again.replayed), (201, false), "{again:?}");
    turnstile.open();
    until("it goes on", || turnstile.passed.load(Ordering::SeqCst) >= 1).await;
    // It has ended when its connection takes another, and this one is no repetition.
    for number in 0..20 {
        let other = IdempotencyKey { fingerprint: vec![number; 32], ..key(&world, &format!("req_other_{number}")) };
        world
            .app
            .add(Some(other), |_: &mut Tx<'_>, _: &Context| Err::<Product, _>(Failure::TooOften), rendered)
            .await
            .ok();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let raw = place.raw_postgres().await;
    let count: i64 = raw.query_one("select count(*) from products", &[]).await.unwrap().get(0);
    assert_eq!(count, 1, "done by the repetition alone");
    place.end().await;
}
