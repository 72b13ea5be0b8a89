//! How long a list is, is exact at every moment, although it isn't counted for each page: whoever writes, from whichever
//! process, and when the clock alone takes something out.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use domain::checkout::{Checkout, Order, Status};
use domain::organization::Organization;
use domain::{Currency, Id, Metadata, Method, Mode, Money, Scope, Timestamp};
use store::queries::PageRequest;
use store::queries::checkouts::{self, CheckoutFilter};
use store::{Clock, Error, Schema, Settings, Store, Tx};

use crate::on_both;
use crate::world::{World, entropy};

on_both!(
    every_commit_is_counted,
    what_commits_late_is_counted,
    the_clock_takes_out_what_has_expired,
    lists_of_a_time_end_with_their_second,
);

/// So many that it is worth knowing how many they are.
const MANY: i64 = 1200;
const HOUR_S: u32 = 3600;

pub(crate) struct Standing(pub(crate) AtomicI64);

impl Clock for Standing {
    fn now_us(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

fn clock() -> Arc<Standing> {
    Arc::new(Standing(AtomicI64::new(time("2026-11-02T12:00:00.250Z").micros())))
}

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

async fn open(world: &World, clock: &Arc<Standing>) -> (Store, Scope) {
    let store =
        Store::open_with(world.settings.clone(), Schema::product(), Arc::<Standing>::clone(clock), entropy()).await;
    let store = store.unwrap();
    let organization = store.write(|tx| {
        let now = tx.now();
        let id: Id<Organization> = tx.entropy().id(now);
        tx.insert(&mut Organization::new(id, Mode::Test, "Kairaba Books".into(), now))?;
        Ok::<_, Error>(id)
    });
    let scope = Scope { organization: organization.await.unwrap(), mode: Mode::Test };
    store.write(move |tx| (0..MANY).try_for_each(|_| add(tx, scope).map(drop))).await.unwrap();
    (store, scope)
}

/// Another process.
async fn open_second(world: &World, clock: &Arc<Standing>) -> Store {
    let settings = Settings { secondary: true, ..world.settings.clone() };
    Store::open_with(settings, Schema::product(), Arc::<Standing>::clone(clock), entropy()).await.unwrap()
}

/// A checkout of an hour.
fn add(tx: &mut Tx<'_>, scope: Scope) -> Result<Checkout, Error> {
    let now = tx.now();
    let order = Order {
        amount: Money::new(10_000, Currency::gmd()),
        items: None,
        available_methods: vec![Method::Wave],
        automatic_payment_methods: true,
        fixed_method: None,
        customer: domain::checkout::Customer::default(),
        description: None,
        reference: None,
        metadata: Metadata::default(),
        success_url: None,
        failure_url: None,
    };
    let mut checkout = Checkout::create(tx.entropy().id(now), scope, order, "digest".into(), HOUR_S, now);
    tx.insert(&mut checkout)?;
    Ok(checkout)
}

async fn total_of(store: &Store, scope: Scope, filter: CheckoutFilter) -> i64 {
    let page = PageRequest { offset: 0, limit: 1, after: None };
    let list = move |tx: &mut Tx<'_>| Ok::<_, Error>(checkouts::list(tx, scope, &filter, &page)?.total);
    store.read(list).await.unwrap()
}

fn of(status: Status) -> CheckoutFilter {
    CheckoutFilter { status: Some(status), ..CheckoutFilter::default() }
}

/// All, pending, cancelled: asked so often that every connection has been asked.
async fn are(store: &Store, scope: Scope, expected: [i64; 3]) {
    for round in 0..12 {
        let filters = [CheckoutFilter::default(), of(Status::Pending), of(Status::Cancelled)];
        let mut totals = Vec::new();
        for filter in filters {
            totals.push(total_of(store, scope, filter).await);
        }
        assert_eq!(totals, expected, "round {round}");
    }
}

async fn every_commit_is_counted(world: &World) {
    let clock = clock();
    let (store, scope) = open(world, &clock).await;
    are(&store, scope, [MANY, MANY, 0]).await;
    let added = store.write(move |tx| add(tx, scope)).await.unwrap();
    are(&store, scope, [MANY + 1, MANY + 1, 0]).await;
    // As many rows as before, and another list.
    let cancel = move |tx: &mut Tx<'_>| {
        let mut checkout = tx.find::<Checkout>(scope, added.id)?.unwrap();
        checkout.cancel(tx.now()).unwrap();
        tx.save(&mut checkout)
    };
    store.write(cancel).await.unwrap();
    are(&store, scope, [MANY + 1, MANY, 1]).await;
    let second = open_second(world, &clock).await;
    second.write(move |tx| add(tx, scope)).await.unwrap();
    are(&store, scope, [MANY + 2, MANY + 1, 1]).await;
    are(&second, scope, [MANY + 2, MANY + 1, 1]).await;
    // What a write has added it counts itself.
    let page = PageRequest { offset: 0, limit: 1, after: None };
    let counted = store.write(move |tx| {
        add(tx, scope)?;
        Ok::<_, Error>(checkouts::list(tx, scope, &CheckoutFilter::default(), &page)?.total)
    });
    assert_eq!(counted.await.unwrap(), MANY + 3);
    second.close().await;
    store.close().await;
}

/// Begun before a total was known, and committed after it.
async fn what_commits_late_is_counted(world: &World) {
    let clock = clock();
    let (store, scope) = open(world, &clock).await;
    let second = open_second(world, &clock).await;
    let (written, is_written): (Sender<()>, Receiver<()>) = channel();
    let (go, goes): (Sender<()>, Receiver<()>) = channel();
    let goes = std::sync::Mutex::new(goes);
    let late = tokio::spawn(async move {
        let write = second.write(move |tx| {
            add(tx, scope)?;
            // Sends what was only collected.
            tx.query("select id from checkouts where 1 = 0", &[])?;
            written.send(()).unwrap();
            goes.lock().unwrap().recv_timeout(Duration::from_secs(20)).unwrap();
            Ok::<_, Error>(())
        });
        write.await.unwrap();
        second.close().await;
    });
    tokio::task::spawn_blocking(move || is_written.recv().unwrap()).await.unwrap();
    are(&store, scope, [MANY, MANY, 0]).await;
    go.send(()).unwrap();
    late.await.unwrap();
    are(&store, scope, [MANY + 1, MANY + 1, 0]).await;
    store.close().await;
}

async fn the_clock_takes_out_what_has_expired(world: &World) {
    let clock = clock();
    let begun = clock.now_us();
    let (store, scope) = open(world, &clock).await;
    // One that ends a minute later.
    clock.0.store(begun + 60_000_000, Ordering::SeqCst);
    store.write(move |tx| add(tx, scope)).await.unwrap();
    let hour = i64::from(HOUR_S) * 1_000_000;
    // The first ones end at the whole second: a quarter of one before an hour has passed.
    let end = begun - 250_000 + hour;
    for (now, pending) in [(end - 1, MANY + 1), (end, 1), (end + 59_999_999, 1), (end + 60_000_000, 0)] {
        clock.0.store(now, Ordering::SeqCst);
        are(&store, scope, [MANY + 1, pending, 0]).await;
        assert_eq!(total_of(&store, scope, of(Status::Expired)).await, MANY + 1 - pending, "{now}");
    }
    store.close().await;
}

/// A checkout says the second in which it was made: its id knows it more exactly.
async fn lists_of_a_time_end_with_their_second(world: &World) {
    let clock = clock();
    let (store, scope) = open(world, &clock).await;
    let made = time("2026-11-02T12:00:00Z").micros();
    for (from, until, expected) in [
        (Some(0), None, MANY),
        (Some(1), None, 0),
        (Some(1_000_000), None, 0),
        (None, Some(0), MANY),
        (None, Some(100_000), MANY),
        (None, Some(999_999), MANY),
        (None, Some(-1), 0),
        (Some(-1), Some(0), MANY),
        (Some(0), Some(0), MANY),
    ] {
        let moment = |offset: Option<i64>| offset.map(|offset| Timestamp::from_micros(made + offset));
        let filter = CheckoutFilter { from: moment(from), until: moment(until), ..CheckoutFilter::default() };
        assert_eq!(total_of(&store, scope, filter).await, expected, "{from:?} to {until:?}");
    }
    store.close().await;
}
