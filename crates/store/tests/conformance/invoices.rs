//! Numbers without a gap, lists by the clock, and the order in which the databases look for them.

use std::collections::HashSet;
use std::sync::Arc;

use domain::checkout::Item;
use domain::invoice::{Bill, BillTo, Invoice, Order, Status};
use domain::number::Series;
use domain::organization::Organization;
use domain::{Currency, Id, Metadata, Mode, Money, Scope, TaxRate, Timestamp};
use store::queries::invoices::{self, InvoiceFilter, StatusFilter};
use store::queries::{PageRequest, counters};
use store::{Clock, Error, Schema, Store, Tx};

use crate::on_both;
use crate::world::{World, entropy};

on_both!(
    numbers_have_no_gap,
    a_month_ends_between_two_numbers,
    modes_and_series_count_by_themselves,
    the_clock_decides_what_a_list_shows,
    lists_take_both_ends_of_a_time,
);

const AT_ONCE: usize = 64;
const DAY_US: i64 = 86_400_000_000;

/// A clock that stands where it is set.
struct Standing(std::sync::atomic::AtomicI64);

impl Standing {
    fn at(text: &str) -> Arc<Self> {
        Arc::new(Self(time(text).micros().into()))
    }

    fn set(&self, now: Timestamp) {
        self.0.store(now.micros(), std::sync::atomic::Ordering::SeqCst);
    }
}

impl Clock for Standing {
    fn now_us(&self) -> i64 {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

async fn open(world: &World, clock: Arc<Standing>) -> (Arc<Store>, Scope) {
    let store = Store::open_with(world.settings.clone(), Schema::product(), clock, entropy()).await.unwrap();
    let organization = store
        .write(|tx| {
            let (now, id) = (tx.now(), id(tx));
            for mode in [Mode::Test, Mode::Live] {
                tx.insert(&mut Organization::new(id, mode, "Kairaba Books".into(), now))?;
            }
            Ok::<_, Error>(id)
        })
        .await
        .unwrap();
    (Arc::new(store), Scope { organization, mode: Mode::Test })
}

fn id<T: domain::Object>(tx: &mut Tx<'_>) -> Id<T> {
    let now = tx.now();
    tx.entropy().id(now)
}

fn order(tx: &mut Tx<'_>, due_date: Timestamp) -> Order {
    let price = Money::new(10_000, Currency::gmd());
    let items = vec![Item::new(Some("Rice".into()), 1, price).unwrap()];
    Order {
        customer_id: id(tx),
        customer: BillTo { email: "awa@example.gm".into(), name: "Awa".into(), ..BillTo::default() },
        bill: Bill::new(items, TaxRate::parse("15").unwrap()).unwrap(),
        due_date,
        notes: String::new(),
        metadata: Metadata::default(),
        subscription_id: None,
    }
}

/// As the product's own command does it: the number last.
fn create(tx: &mut Tx<'_>, scope: Scope, due_in_us: i64) -> Result<Invoice, Error> {
    let now = tx.now();
    let order = order(tx, Timestamp::from_micros(now.micros() + due_in_us));
    let id = id(tx);
    let number = counters::next(tx, scope, Series::Invoice, now)?;
    let mut invoice = Invoice::create_issued(id, scope, number, order, now);
    tx.insert(&mut invoice)?;
    Ok(invoice)
}

/// Many at once, with failures in between of every kind: refused at a savepoint, rolled back as a whole, and a violated
/// constraint.
async fn numbers_have_no_gap(world: &World) {
    let (store, scope) = open(world, Standing::at("2026-11-15T12:00:00Z")).await;
    let runs = (0..AT_ONCE).map(|run| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            store
                .write(move |tx| {
                    let made = tx.savepoint(|tx| match (create(tx, scope, DAY_US)?, run % 4) {
                        (_, 1) => Err(Error::Corrupt("refused".into())),
                        (mut twice, 2) => {
                            twice.version = 0;
                            tx.insert(&mut twice)?;
                            // It is sent at the latest when its table is read.
                            tx.query("select id from invoices where 1 = 0", &[])?;
                            Ok(String::new())
                        }
                        (invoice, _) => Ok(invoice.number),
                    });
                    match (made, run % 4) {
                        (_, 3) => Err(Error::Corrupt("rolled back".into())),
                        (made, _) => Ok::<_, Error>(made.ok()),
                    }
                })
                .await
        })
    });
    let mut numbers = Vec::new();
    for run in runs.collect::<Vec<_>>() {
        if let Ok(Some(number)) = run.await.unwrap() {
            numbers.push(number);
        }
    }
    numbers.sort();
    let expected: Vec<String> = (1..=AT_ONCE / 4).map(|count| format!("INV-2026-11-{count:04}")).collect();
    assert_eq!(numbers, expected);
    assert_eq!(world.count("invoices").await, 16);
    assert_eq!(world.count("counters where last_number = 16").await, 1);
    store.close().await;
}

async fn a_month_ends_between_two_numbers(world: &World) {
    let clock = Standing::at("2026-11-30T23:59:59.999999Z");
    let (store, scope) = open(world, Arc::clone(&clock)).await;
    let next = || async {
        let numbers = store.write(move |tx| {
            let now = tx.now();
            let invoice = counters::next(tx, scope, Series::Invoice, now)?;
            Ok::<_, Error>([invoice, counters::next(tx, scope, Series::Receipt, now)?])
        });
        numbers.await.unwrap()
    };
    assert_eq!(next().await, ["INV-2026-11-0001", "RCT-2026-001"]);
    assert_eq!(next().await, ["INV-2026-11-0002", "RCT-2026-002"]);
    clock.set(time("2026-12-01T00:00:00Z"));
    assert_eq!(next().await, ["INV-2026-12-0001", "RCT-2026-003"]);
    clock.set(time("2027-01-01T00:00:00Z"));
    assert_eq!(next().await, ["INV-2027-01-0001", "RCT-2027-001"]);
    store.close().await;
}

async fn modes_and_series_count_by_themselves(world: &World) {
    let (store, test) = open(world, Standing::at("2026-11-15T12:00:00Z")).await;
    for scope in [test, Scope { mode: Mode::Live, ..test }] {
        for count in 1..=2 {
            let number = store
                .write(move |tx| {
                    let now = tx.now();
                    counters::next(tx, scope, Series::Invoice, now)
                })
                .await
                .unwrap();
            assert_eq!(number, format!("INV-2026-11-{count:04}"));
        }
    }
    assert_eq!(world.count("counters").await, 2);
    store.close().await;
}

fn page() -> PageRequest {
    PageRequest { offset: 0, limit: 100, after: None }
}

async fn the_clock_decides_what_a_list_shows(world: &World) {
    let clock = Standing::at("2026-11-15T12:00:00Z");
    let (store, scope) = open(world, Arc::clone(&clock)).await;
    let start = clock.now_us();
    // Due in one, two and three days; the first is paid in part, and of the others no timer runs.
    store
        .write(move |tx| {
            let now = tx.now();
            for days in 1..=3 {
                let mut invoice = create(tx, scope, days * DAY_US)?;
                if days == 1 {
                    invoice.record(Money::new(1, Currency::gmd()), now).unwrap();
                    tx.save(&mut invoice)?;
                }
            }
            let mut draft = Invoice::create(id(tx), scope, "draft".into(), order(tx, now), now);
            tx.insert(&mut draft)
        })
        .await
        .unwrap();
    let counts = || async {
        let mut counts = Vec::new();
        for (_, status) in StatusFilter::WORDS {
            let filter = InvoiceFilter { status: Some(status), ..InvoiceFilter::default() };
            let found = store
                .read(move |tx| {
                    let found = invoices::list(tx, scope, &filter, &page())?;
                    let now = tx.now();
                    for invoice in &found.items {
                        let shown = invoice.status(now);
                        let fits = match status {
                            StatusFilter::Is(status) => shown == status,
                            StatusFilter::Open => {
                                [Status::Pending, Status::PartiallyPaid, Status::Overdue].contains(&shown)
                            }
                            StatusFilter::Uncollectible => false,
                        };
                        assert!(fits, "{status:?} lists one that is shown as {shown:?}");
                    }
                    Ok::<_, Error>(found.total)
                })
                .await
                .unwrap();
            counts.push(found);
        }
        counts
    };
    // draft, pending, partially_paid, overdue, paid, cancelled, open, uncollectible
    assert_eq!(counts().await, [1, 2, 1, 0, 0, 0, 3, 0]);
    clock.set(Timestamp::from_micros(start + 2 * DAY_US - 1));
    assert_eq!(counts().await, [1, 2, 1, 0, 0, 0, 3, 0]);
    clock.set(Timestamp::from_micros(start + 2 * DAY_US));
    assert_eq!(counts().await, [1, 1, 1, 1, 0, 0, 3, 0]);
    clock.set(Timestamp::from_micros(start + 3 * DAY_US));
    assert_eq!(counts().await, [1, 0, 1, 2, 0, 0, 3, 0]);
    store.close().await;
}

async fn lists_take_both_ends_of_a_time(world: &World) {
    let clock = Standing::at("2026-11-15T12:00:00Z");
    let (store, scope) = open(world, Arc::clone(&clock)).await;
    let start = clock.now_us();
    let mut made = Vec::new();
    // Within one millisecond, too.
    for offset_us in [0, 1, 999, 1000, 1001, DAY_US] {
        clock.set(Timestamp::from_micros(start + offset_us));
        made.push((offset_us, store.write(move |tx| create(tx, scope, DAY_US)).await.unwrap().id));
    }
    let ends: Vec<Option<i64>> = [None].into_iter().chain([-1, 0, 1, 999, 1000, DAY_US].map(Some)).collect();
    for from in &ends {
        for until in &ends {
            let moment = |offset_us: i64| Timestamp::from_micros(start + offset_us);
            let filter = InvoiceFilter { from: from.map(moment), until: until.map(moment), ..InvoiceFilter::default() };
            let found = store.read(move |tx| invoices::list(tx, scope, &filter, &page())).await.unwrap();
            let found: HashSet<_> = found.items.iter().map(|invoice| invoice.id).collect();
            let within = |offset_us: i64| {
                from.is_none_or(|from| from <= offset_us) && until.is_none_or(|until| offset_us <= until)
            };
            let expected = made.iter().filter(|(offset_us, _)| within(*offset_us)).map(|(_, id)| *id).collect();
            assert_eq!(found, expected, "{from:?} to {until:?}");
        }
    }
    store.close().await;
}
