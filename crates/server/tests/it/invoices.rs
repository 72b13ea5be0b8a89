//! Invoices as commands: numbers, races, the timer, and books that agree whatever happened, on both databases.

mod documents;
mod races;
mod stories;

use std::time::Duration;

use dalasi::app::invoices::{self, Billed, NewInvoice};
use dalasi::app::products::NewItem;
use dalasi::app::verify::{self, Progress};
use dalasi::error::Failure;
use domain::event::EventType;
use domain::invoice::Invoice;
use domain::{Currency, Id, Metadata, Money, TaxRate};
use store::queries::PageRequest;
use store::queries::events::{self, EventsFilter};

use crate::world::World;

/// Each named test once for each database.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let place = crate::cli::place::Place::sqlite();
                super::$name(&crate::world::World::on(place.settings()).await).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let Some(place) = crate::cli::place::Place::postgres(stringify!($name)).await else { return };
                super::$name(&crate::world::World::on(place.settings()).await).await;
                place.end().await;
            })+
        }
    };
}
use on_both;

const DAY: Duration = Duration::from_secs(86_400);

fn gmd(minor: i64) -> Money {
    Money::new(minor, Currency::gmd())
}

/// 100.00 before and 115.00 after tax, due in ten days.
pub(crate) fn rice(world: &World) -> NewInvoice {
    let item =
        NewItem { product_id: None, description: Some("Rice".into()), quantity: 4, unit_price: Some(gmd(2_500)) };
    NewInvoice {
        customer_id: None,
        customer_email: Some("awa@example.gm".into()),
        customer_name: Some("Awa Ceesay".into()),
        customer_address: None,
        customer_phone: None,
        currency: Currency::gmd(),
        tax_rate: TaxRate::parse("15").unwrap(),
        due_date: world.now().plus(DAY * 10),
        notes: String::new(),
        items: vec![item],
        is_draft: false,
        metadata: Metadata::default(),
    }
}

/// The same figures in another currency.
pub(crate) fn rice_in(world: &World, currency: &str) -> NewInvoice {
    let currency = Currency::parse(currency).unwrap();
    let mut new = NewInvoice { currency, ..rice(world) };
    new.items[0].unit_price = Some(Money::new(2_500, currency));
    new
}

pub(crate) async fn create(world: &World, new: NewInvoice) -> Result<Invoice, Failure> {
    let scope = world.scope;
    let billed = world.app.commit(move |tx, context| invoices::create(tx, context, scope, &new)).await;
    billed.map(|Billed { invoice, .. }| invoice)
}

async fn stored(world: &World, id: Id<Invoice>) -> Invoice {
    let scope = world.scope;
    world.app.read(move |tx, _| Ok(tx.peek::<Invoice>(scope, id)?)).await.unwrap().unwrap()
}

/// What was told of an invoice, in its order.
async fn told(world: &World, id: Id<Invoice>) -> Vec<&'static str> {
    let scope = world.scope;
    let page = PageRequest { offset: 0, limit: 1000, after: None };
    let all = world.app.read(move |tx, _| Ok(events::list(tx, scope, &EventsFilter::default(), &page)?)).await;
    let all = all.unwrap().items;
    let of_it = all.iter().filter(|event| event.object_id == id.to_string());
    let mut events: Vec<(i64, EventType)> = of_it.map(|event| (event.sequence, event.kind.known().unwrap())).collect();
    events.sort_unstable();
    assert!(events.iter().zip(1..).all(|((sequence, _), expected)| *sequence == expected), "{events:?}");
    events.into_iter().map(|(_, kind)| kind.as_str()).collect()
}

/// Nothing in the books contradicts anything else.
async fn assert_clean(world: &World) -> verify::Report {
    let report = world.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.faults);
    report
}

async fn eventually(world: &World, id: Id<Invoice>, holds: impl Fn(&Invoice) -> bool) -> Invoice {
    for _ in 0..400 {
        let invoice = stored(world, id).await;
        if holds(&invoice) {
            return invoice;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("waited in vain for {:#?}", stored(world, id).await);
}
