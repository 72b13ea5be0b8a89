//! A request without a key that is sent again, because its caller heard nothing: of a database that others write to as well, and of
//! a disk that takes longer for a commit than anybody waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use dalasi::app::Context;
use dalasi::app::idempotency::Reply;
use dalasi::app::products::{self, NewProduct};
use dalasi::error::Failure;
use dalasi::monotonic;
use domain::product::Product;
use domain::{Currency, Metadata, Money};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use store::Tx;
use store::queries::idempotency::IdempotencyKey;
use tokio::task::JoinHandle;

use crate::cli::place::Place;
use crate::starts::Merchant;
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
pub(crate) struct Turnstile {
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

    pub(crate) fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// Keeps the one thread that writes to SQLite from its commit, until the turnstile is opened.
fn occupy(world: &World, turnstile: &Arc<Turnstile>) {
    let (store, held) = (world.app.store().clone(), Arc::clone(turnstile));
    tokio::spawn(async move {
        let write = store.write(move |_| {
            held.pass();
            Ok::<_, store::Error>(())
        });
        write.await
    });
}

/// What writes waits in line behind what occupies the writer, until that is opened.
pub(crate) async fn in_line<T: Send + 'static>(
    world: &World,
    ask: impl Future<Output = T> + Send + 'static,
) -> (JoinHandle<T>, Arc<Turnstile>) {
    let turnstile = Arc::new(Turnstile::default());
    occupy(world, &turnstile);
    until("the writer is busy", || turnstile.waiting.load(Ordering::SeqCst) == 1).await;
    let before = world.app.store().calls();
    let asked = tokio::spawn(ask);
    // What it reads before takes no time.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(world.app.store().calls(), before + 1, "it waits in line");
    (asked, turnstile)
}

/// What writes has run, in one batch with what keeps it from its commit, until that is opened.
pub(crate) async fn in_a_commit<T: Send + 'static>(
    world: &World,
    ask: impl Future<Output = T> + Send + 'static,
) -> (JoinHandle<T>, Arc<Turnstile>) {
    let (asked, first) = in_line(world, ask).await;
    let (before, last) = (world.app.store().calls(), Arc::new(Turnstile::default()));
    occupy(world, &last);
    until("it is in line as well", || world.app.store().calls() > before).await;
    first.open();
    until("the commit is held up", || last.waiting.load(Ordering::SeqCst) == 1).await;
    (asked, last)
}

/// What becomes of it when so much time has passed that nobody waits any longer. Nothing else is under way, so that no time passes.
pub(crate) async fn given_up<T>(asked: JoinHandle<T>) -> T {
    tokio::time::pause();
    let told = asked.await.unwrap();
    tokio::time::resume();
    told
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

/// Status, whether it was the answer before, and body.
type Told = (u16, bool, Value);

/// One that is asked without a key, as often as it is called for.
fn asking(
    merchant: Arc<Merchant>,
    verb: &'static str,
    path: String,
    body: Value,
) -> impl Fn() -> BoxFuture<'static, Told> {
    move || {
        let (merchant, path, body) = (Arc::clone(&merchant), path.clone(), body.clone());
        async move { merchant.told(None, verb, &path, body).await }.boxed()
    }
}

/// A payment, whose merchant asks for a part of it back.
async fn paid() -> (World, Arc<Merchant>, impl Fn() -> BoxFuture<'static, Told>) {
    let world = World::new().await;
    let path = format!("/v1/pay/transactions/{}/refund", world.paid(10_000).await);
    world.rest().await;
    let merchant = Arc::new(Merchant::of(&world).await);
    let ask = asking(Arc::clone(&merchant), "POST", path, json!({ "amount": "30.00", "reason": "torn" }));
    (world, merchant, ask)
}

async fn refunds(merchant: &Merchant) -> Vec<Value> {
    let (_, list) = merchant.ask("GET", "/v1/pay/refunds", Value::Null).await;
    list["data"]["items"].as_array().unwrap().iter().map(|refund| refund["id"].clone()).collect()
}

/// The SDK sends the same again as soon as the connection is cut.
#[tokio::test]
async fn a_commit_that_outlasts_its_caller_is_told_to_whoever_asks_again() {
    let (world, merchant, ask) = paid().await;
    let (first, disk) = in_a_commit(&world, ask()).await;
    assert_eq!(given_up(first).await.0, 500, "nothing true can be said");
    let again = tokio::spawn(ask());
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!again.is_finished(), "it waits for the disk");
    disk.open();
    let (status, is_replayed, told) = again.await.unwrap();
    assert_eq!((status, is_replayed), (201, true), "{told}");
    assert_eq!(refunds(&merchant).await, [told["data"]["id"].clone()]);
    // Whoever wants it once more gets it.
    let (status, is_replayed, _) = ask().await;
    assert_eq!((status, is_replayed), (201, false));
    assert_eq!(refunds(&merchant).await.len(), 2);
    world.has_clean_books().await;
    world.app.store().close().await;
}

#[tokio::test]
async fn whoever_went_away_during_a_commit_is_told_of_it() {
    let (world, merchant, ask) = paid().await;
    let (first, disk) = in_a_commit(&world, ask()).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let again = tokio::spawn(ask());
    tokio::time::sleep(Duration::from_millis(200)).await;
    disk.open();
    let (status, is_replayed, told) = again.await.unwrap();
    assert_eq!((status, is_replayed), (201, true), "{told}");
    assert_eq!(refunds(&merchant).await, [told["data"]["id"].clone()]);
    world.app.store().close().await;
}

#[tokio::test]
async fn what_had_not_begun_when_its_caller_gave_up_is_done_by_the_repetition() {
    let (world, merchant, ask) = paid().await;
    let (first, disk) = in_line(&world, ask()).await;
    assert_eq!(given_up(first).await.0, 500, "nothing true can be said");
    let again = tokio::spawn(ask());
    tokio::time::sleep(Duration::from_millis(200)).await;
    disk.open();
    let (status, is_replayed, told) = again.await.unwrap();
    assert_eq!((status, is_replayed), (201, false), "{told}");
    assert_eq!(refunds(&merchant).await, [told["data"]["id"].clone()]);
    world.app.store().close().await;
}

/// Their patience began with the request, and not when it was known who they are.
#[tokio::test]
async fn whoever_was_long_in_being_let_in_is_answered_no_later() {
    let world = World::new().await;
    world.rest().await;
    let (app, key) = (world.app.clone(), key(&world, "req_1"));
    let nothing = |_: &mut Tx<'_>, _: &Context| Err::<Product, _>(Failure::TooOften);
    let asked_for = async move {
        let began_at = monotonic::now();
        let answer = monotonic::answering(async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            app.write(Some(key), nothing, rendered).await
        });
        let is_answered = answer.await.is_ok();
        (is_answered, monotonic::now() - began_at)
    };
    let (asked, held) = in_line(&world, asked_for).await;
    let (is_answered, waited) = given_up(asked).await;
    assert!(!is_answered && waited < Duration::from_millis(28_100), "{waited:?}");
    held.open();
    world.app.store().close().await;
}

/// What sets a state is set anew; that it is refused because it was done is not told to whoever did it.
#[tokio::test]
async fn what_was_deleted_and_not_told_is_not_refused_to_whoever_asks_again() {
    let world = World::new().await;
    world.rest().await;
    let merchant = Arc::new(Merchant::of(&world).await);
    let (_, product) = merchant.ask("POST", "/v1/pay/products", json!({ "name": "Tea", "price": "10.00" })).await;
    let path = format!("/v1/pay/products/{}", product["data"]["id"].as_str().unwrap());
    let delete = asking(Arc::clone(&merchant), "DELETE", path, json!({}));
    let (first, disk) = in_a_commit(&world, delete()).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    disk.open();
    let (status, is_replayed, told) = delete().await;
    assert_eq!((status, is_replayed), (204, true), "{told}");
    let (status, is_replayed, told) = delete().await;
    assert_eq!((status, is_replayed, told["code"].as_str()), (404, false, Some("product_not_found")), "{told}");
    world.app.store().close().await;
}
