//! The clocks of two processes differ.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use dalasi::app::invoices::{self, NewPayment};
use dalasi::app::keys::{self, Rotation};
use dalasi::app::organizations::{self, SettingsChange};
use dalasi::app::{Context, balance, settlement};
use dalasi::clock::SystemClock;
use dalasi::entropy::SystemEntropy;
use dalasi::tokens::{Grant, LEEWAY_S, LONGEST_LIFETIME_S, TokenFault};
use domain::Timestamp;
use domain::checkout::Checkout;
use domain::event::{Event, EventType};
use domain::invoice::Invoice;
use domain::payment::{PaymentSession, Transaction, TransactionStatus};
use domain::rail::{FailureReason, Report};
use domain::signing_key::SigningKey;
use domain::webhook::{Attempted, Delivery, WebhookEndpoint};
use domain::{Currency, Id, Method, Mode, Money, OfflineMethod, Scope};
use store::queries::PageRequest;
use store::queries::events::{self, EventsFilter};
use store::queries::{deliveries, invoice_payments, signing_keys};
use store::{Database, Settings, Store};
use tokio::net::TcpListener;

use crate::cli::place::Place;
use crate::endpoints::{endpoint_at, receiver};
use crate::invoices::{create, rice};
use crate::world::{PAY_URL, QUIET, World, hold_up};

/// P9: for each object the time goes on, whoever tells it.
#[tokio::test]
async fn an_event_is_dated_behind_what_another_clock_said() {
    let world = World::new().await;
    world.rest().await;
    let checkout = world.create(|_| {}).await;
    let (scope, id) = (world.scope, checkout.id);
    let ahead = world.now().plus(Duration::from_secs(30));
    let changed = world.app.commit(move |tx, _| {
        let mut checkout = tx.find::<Checkout>(scope, id)?.unwrap();
        checkout.updated_at = ahead;
        Ok(tx.save(&mut checkout)?)
    });
    changed.await.unwrap();
    world.cancel(id).await;
    let page = PageRequest { offset: 0, limit: 10, after: None };
    let told = world.app.read(move |tx, _| Ok(events::list(tx, scope, &EventsFilter::default(), &page)?)).await;
    let last = told.unwrap().items.remove(0);
    assert_eq!((last.kind.as_str(), last.created_at), ("checkout.cancelled", ahead));
    world.app.store().close().await;
}

/// Lists go by ids, and print times.
#[tokio::test]
async fn an_attempt_has_one_time_in_its_id_and_in_its_date() {
    let world = World::new().await;
    world.rest().await;
    let checkout = world.create(|new| new.payment_method = Some(Method::Wave)).await;
    let (scope, session) = (world.scope, checkout.payment_session.unwrap());
    let ahead = world.now().plus(Duration::from_secs(30));
    let changed = world.app.commit(move |tx, _| {
        let mut session = tx.find::<PaymentSession>(scope, session)?.unwrap();
        session.updated_at = ahead;
        Ok(tx.save(&mut session)?)
    });
    changed.await.unwrap();
    world.start(checkout.id, Method::Wave, QUIET).await;
    let attempt = world.stored(checkout.id).await.attempts.remove(0);
    assert_eq!(attempt.id.made_at_ms(), ahead.micros() / 1000);
    assert_eq!(attempt.created_at, ahead.floor_to_second());
    world.app.store().close().await;
}

/// A process whose clock is behind that of the one which installed starts, and signs.
#[tokio::test]
async fn the_first_key_signs_for_a_clock_that_is_behind() {
    let world = World::new().await;
    world.rest().await;
    let read = world.app.read(|tx, context| {
        let stored = signing_keys::all(tx)?;
        let behind = Timestamp::from_micros(stored[0].active_from.micros() - 3_600_000_000);
        keys::signing_keys_at(context, &stored, behind)?;
        keys::lasting_keys(context, &stored, behind)
    });
    let (_, public) = read.await.unwrap();
    assert_eq!(public.len(), 1);
    world.app.store().close().await;
}

/// Recorded by hand, in parts, by two processes: receipts and payments are listed in the order in which they came, each behind the
/// one before.
#[tokio::test]
async fn payments_of_an_invoice_are_dated_in_the_order_in_which_they_came() {
    for place in Place::each("payments of an invoice").await {
        let world = World::on(place.settings()).await;
        world.rest().await;
        let invoice = create(&world, rice(&world)).await.unwrap();
        let (scope, id, ahead) = (world.scope, invoice.id, beside(&place, 2).await);
        for (store, minor) in [(&ahead, 4_000), (world.app.store(), 2_000)] {
            let (context, amount) = (Arc::clone(world.app.context()), Money::new(minor, Currency::gmd()));
            let recorded = store.write(move |tx| {
                let paid = NewPayment { amount, method: OfflineMethod::Cash, transaction_id: None, notes: None };
                invoices::record_payment(tx, &context, scope, id, &paid, "key").map(drop)
            });
            recorded.await.unwrap();
        }
        let read = world.app.read(move |tx, _| {
            let invoice = tx.find::<Invoice>(scope, id)?.unwrap();
            Ok((invoice_payments::of_invoice(tx, scope, id)?, invoice.receipts().to_vec()))
        });
        let (payments, receipts) = read.await.unwrap();
        assert_eq!(payments.iter().map(|payment| payment.amount.minor).collect::<Vec<_>>(), [4_000, 2_000]);
        assert!(payments[0].payment_date <= payments[1].payment_date, "{payments:?}");
        assert_eq!(
            payments.iter().map(|payment| payment.receipt).collect::<Vec<_>>(),
            receipts.iter().map(|receipt| receipt.id).collect::<Vec<_>>(),
        );
        world.has_clean_books().await;
        ahead.close().await;
        world.app.store().close().await;
        place.end().await;
    }
}

/// Without a settlement delay all that was paid can be paid back, whoever dated it.
#[tokio::test]
async fn what_a_clock_that_is_ahead_was_paid_is_there_at_once() {
    for place in Place::each("what was paid is there at once").await {
        let world = World::on(place.settings()).await;
        world.rest().await;
        let (scope, ahead) = (world.scope, beside(&place, 3_600).await);
        let change = SettingsChange { allow_negative_balance: Some(false), ..SettingsChange::default() };
        world.app.commit(move |tx, context| organizations::change_settings(tx, context, scope, &change)).await.unwrap();
        let checkout = world.create(|_| {}).await;
        world.start(checkout.id, Method::Wave, QUIET).await;
        let attempt = world.shown(checkout.id).await.unwrap().id;
        let paid = Report::Paid { amount: checkout.order.amount, rail_reference: "R-1".into() };
        hears(&ahead, world.app.context(), scope, attempt, paid).await;
        let view = world.app.read(move |tx, _| balance::look_up_balance(tx, scope)).await.unwrap();
        assert_eq!(view.pending_balance, "0.00");
        world.refund(attempt, Some(100)).await.unwrap();
        ahead.close().await;
        world.app.store().close().await;
        place.end().await;
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);
const DAY_S: i64 = 24 * 3600;

/// A clock that differs by so many seconds from that of the others.
struct Apart(SystemClock, i64);

impl store::Clock for Apart {
    fn now_us(&self) -> i64 {
        self.0.now_us() + self.1 * 1_000_000
    }
}

/// Another process with that clock, beside the one that serves.
async fn beside(place: &Place, seconds: i64) -> Store {
    let settings = Settings { secondary: true, ..Settings::new(place.settings()) };
    Store::open(settings, Arc::new(Apart(SystemClock::new(), seconds)), Arc::new(SystemEntropy)).await.unwrap()
}

/// As the command does it, on a machine with that clock. The keys that are there afterwards, too.
async fn rotate(place: &Place, world: &World, days: i64) -> (Rotation, Vec<SigningKey>) {
    let store = beside(place, days * DAY_S).await;
    let context = Arc::clone(world.app.context());
    let rotation = store.write(move |tx| keys::rotate_signing_key(tx, &context)).await.unwrap();
    let stored = store.read(signing_keys::all).await.unwrap();
    store.close().await;
    (rotation, stored)
}

/// Operators on two machines, or a timer on both, of a database with more than one writer.
#[tokio::test(flavor = "multi_thread")]
async fn two_rotations_at_once_make_one_key() {
    let Some(place) = Place::postgres("two rotations at once make one key").await else { return };
    let world = World::on(place.settings()).await;
    let before = world.app.store().read(signing_keys::all).await.unwrap().len();
    let rotate = || {
        let context = Arc::clone(world.app.context());
        world.app.store().write(move |tx| {
            let rotation = keys::rotate_signing_key(tx, &context)?;
            // Until the other one has looked as well, if nothing holds it back.
            hold_up(Duration::from_millis(500));
            let (Rotation::Published(key) | Rotation::Waits(key)) = rotation;
            Ok::<_, dalasi::error::Failure>(key.kid)
        })
    };
    let (one, two) = tokio::join!(rotate(), rotate());
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(world.app.store().read(signing_keys::all).await.unwrap().len(), before + 1);
    world.app.store().close().await;
    place.end().await;
}

/// Something happens, by that clock, and has its place in the log.
async fn happens(place: &Place, world: &World, days: i64) {
    let store = beside(place, days * DAY_S).await;
    let scope = world.scope;
    let told = store.write(move |tx| {
        let now = tx.now();
        let (id, object_id) = (tx.entropy().id(now), tx.entropy().id::<Checkout>(now).to_string());
        let (kind, body) = (EventType::CheckoutCancelled.into(), "{}".to_owned());
        events::append(tx, &Event { id, scope, kind, object_id, sequence: 1, body, created_at: now })?;
        events::number(tx, 10)
    });
    assert_eq!(told.await.unwrap(), 1);
    store.close().await;
}

/// Or tokens are signed by a key that nobody has heard of, and those of the key before are not taken any more.
#[tokio::test]
async fn a_clock_that_is_behind_lets_no_key_sign_before_it_was_published() {
    let place = Place::sqlite();
    let world = World::on(place.settings()).await;
    world.rest().await;
    let before = world.now();
    happens(&place, &world, 0).await;
    let (rotation, stored) = rotate(&place, &world, -2).await;
    let Rotation::Published(next) = rotation else { panic!("{rotation:?}") };
    assert!(before.plus(DAY) <= next.active_from && next.active_from <= world.now().plus(DAY), "{next:?}");
    assert_eq!((stored.len(), stored[0].retired_at), (2, Some(next.active_from)));
    for days in [-2, 0] {
        let (rotation, stored) = rotate(&place, &world, days).await;
        assert!(matches!(&rotation, Rotation::Waits(waits) if waits.kid == next.kid), "{days}: {rotation:?}");
        assert_eq!(stored.len(), 2);
    }
    world.app.store().close().await;
}

#[tokio::test]
async fn a_key_published_by_a_clock_that_was_ahead_blocks_no_rotation() {
    let place = Place::sqlite();
    let world = World::on(place.settings()).await;
    world.rest().await;
    // What happened while the clock was ahead is the newest by its id for years.
    for days in [3650, 0] {
        happens(&place, &world, days).await;
    }
    let (rotation, _) = rotate(&place, &world, 3650).await;
    let Rotation::Published(far) = rotation else { panic!("{rotation:?}") };
    assert!(far.active_from > world.now().plus(DAY * 3000), "{far:?}");
    let before = world.now();
    let (rotation, stored) = rotate(&place, &world, 0).await;
    let Rotation::Published(next) = rotation else { panic!("{rotation:?}") };
    assert_eq!((stored.len(), &next.kid), (2, &far.kid));
    assert!(before.plus(DAY) <= next.active_from && next.active_from <= world.now().plus(DAY), "{next:?}");
    assert_eq!(stored[0].retired_at, Some(next.active_from));
    assert_eq!(stored[1].active_from, next.active_from);
    assert!(matches!(rotate(&place, &world, 0).await.0, Rotation::Waits(_)));
    world.app.store().close().await;
}

/// Who signs and who checks look at the keys once a second, and their clocks differ.
#[tokio::test]
async fn a_retired_key_is_known_until_the_last_of_its_tokens_is_taken_no_more() {
    let place = Place::sqlite();
    let world = World::on(place.settings()).await;
    world.rest().await;
    let (rotation, stored) = rotate(&place, &world, 0).await;
    let Rotation::Published(next) = rotation else { panic!("{rotation:?}") };
    let known_at = |at: Timestamp| keys::signing_keys_at(world.app.context(), &stored, at).unwrap();
    let grant = Grant {
        key_id: "key_1".to_owned(),
        organization_id: world.scope.organization.to_string(),
        mode: Mode::Test,
        scope: String::new(),
        token_id: "tok_1".to_owned(),
    };
    let before = known_at(next.active_from.minus(Duration::from_micros(1)));
    let last_s = next.active_from.seconds() + 1;
    let token = before.mint(&grant, PAY_URL, last_s, LONGEST_LIFETIME_S).unwrap();
    let end_s = last_s + LONGEST_LIFETIME_S + LEEWAY_S;
    for (checked_s, is_taken) in [(end_s - 1, Ok(())), (end_s, Err(TokenFault::Expired))] {
        let checked_at = Timestamp::from_micros(checked_s * 1_000_000);
        assert_eq!(known_at(checked_at).verify(&token, checked_s, PAY_URL).map(drop), is_taken);
    }
    let later = known_at(Timestamp::from_micros((end_s + 3) * 1_000_000));
    assert_eq!(later.verify(&token, end_s - 1, PAY_URL).map(drop), Err(TokenFault::Invalid), "then it is forgotten");
    world.app.store().close().await;
}

/// What a rail says, heard by a process with that clock.
async fn hears(store: &Store, context: &Arc<Context>, scope: Scope, attempt: Id<Transaction>, report: Report) {
    let context = Arc::clone(context);
    let settled = store.write(move |tx| {
        settlement::settle(tx, &context, scope, attempt, |_, session, transaction, now| {
            Ok(session.reported(transaction, &report, now))
        })
    });
    settled.await.unwrap();
}

/// The payer pays by the attempt that was given up, while the next one is with its network, which says no afterwards: by the
/// time of the process that hears it, before.
#[tokio::test]
async fn what_another_clock_heard_last_is_dated_last() {
    for place in Place::each("clocks").await {
        let world = World::on(place.settings()).await;
        world.rest().await;
        let checkout = world.create(|_| {}).await;
        let scope = world.scope;
        let mut attempts = Vec::new();
        for method in [Method::Wave, Method::Card] {
            world.start(checkout.id, method, QUIET).await;
            attempts.push(world.shown(checkout.id).await.unwrap().id);
        }
        let [first, second] = attempts[..] else { panic!("{attempts:?}") };
        let (behind, context) = (beside(&place, -2).await, world.app.context());
        let paid = Report::Paid { amount: checkout.order.amount, rail_reference: "R-9".into() };
        hears(world.app.store(), context, scope, second, Report::Processing).await;
        hears(world.app.store(), context, scope, first, paid).await;
        hears(&behind, context, scope, second, Report::Failed { reason: FailureReason::Declined }).await;
        let dated = world.app.read(move |tx, _| {
            let (first, second) = (tx.find::<Transaction>(scope, first)?, tx.find::<Transaction>(scope, second)?);
            let session = tx.find::<PaymentSession>(scope, second.as_ref().unwrap().attempt().session)?;
            let paid_at = first.unwrap().reached(TransactionStatus::Completed);
            Ok((paid_at, second.unwrap().reached(TransactionStatus::Failed), session.unwrap().updated_at))
        });
        let (paid_at, failed_at, ended_at) = dated.await.unwrap();
        assert!(paid_at.is_some() && paid_at <= failed_at, "{paid_at:?} {failed_at:?}");
        assert_eq!(failed_at, Some(ended_at));
        world.has_clean_books().await;
        behind.close().await;
        world.app.store().close().await;
    }
}

/// Or receivers take it for one of tomorrow, which nobody signed, for as long as business time is ahead.
#[tokio::test]
async fn a_webhook_is_dated_by_the_machine_though_its_clock_was_ahead() {
    let world = World::complete(Database::SqliteMemory).await;
    world.rest().await;
    world.clock.advance(Duration::from_secs(3600));
    let (dated, mut dates) = tokio::sync::mpsc::unbounded_channel();
    let take = move |headers: HeaderMap| async move {
        let date: i64 = headers["webhook-timestamp"].to_str().unwrap().parse().unwrap();
        dated.send(date).unwrap();
        StatusCode::NO_CONTENT
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(take)).await });
    let (scope, id) = (world.scope, endpoint_at(&world, address).await);
    let endpoint = world.app.read(move |tx, _| Ok(tx.peek::<WebhookEndpoint>(scope, id)?.unwrap())).await.unwrap();
    let now = world.now();
    let outcome = world.app.post_event(&endpoint, "evt_1", "webhook.test", "{}", now).await.unwrap();
    assert_eq!(outcome, Attempted::Succeeded { status: 204 });
    let ahead = now.seconds() - dates.recv().await.unwrap();
    assert!((3_590..=3_601).contains(&ahead), "{ahead} s behind business time, which is an hour ahead");
    world.app.store().close().await;
}

/// Or it is sent when that clock was right, and all that happens to its object waits behind it.
#[tokio::test]
async fn a_webhook_owed_by_a_clock_that_was_ahead_is_sent_after_the_next_start() {
    for place in Place::each("a webhook owed by a clock that was ahead").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        let (address, heard) = receiver().await;
        let (scope, endpoint) = (world.scope, endpoint_at(&world, address).await);
        let ahead = beside(&place, 3650 * DAY_S).await;
        let owed = ahead.write(move |tx| {
            let now = tx.now();
            let (id, object_id) = (tx.entropy().id(now), tx.entropy().id::<Checkout>(now).to_string());
            let (kind, body) = (EventType::CheckoutCancelled.into(), r#"{"data":{}}"#.to_owned());
            let event = Event { id, scope, kind, object_id, sequence: 1, body, created_at: now };
            events::append(tx, &event)?;
            deliveries::insert(tx, &Delivery::owed(&event, endpoint, now))
        });
        owed.await.unwrap();
        ahead.close().await;
        world.app.store().close().await;

        let world = World::complete(place.settings()).await;
        let arrives = async {
            while heard.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), arrives).await.expect("it is due now");
        world.close().await;
        place.end().await;
    }
}

/// By then another process may be sending it, and what comes behind it. The clock that measures waits has seen nothing of that.
#[tokio::test]
async fn a_webhook_is_not_sent_by_a_machine_that_was_suspended_since_its_claim() {
    let world = World::complete(Database::SqliteMemory).await;
    let (address, heard) = receiver().await;
    let count = || heard.lock().unwrap().values().sum::<usize>();
    endpoint_at(&world, address).await;
    world.clock.doze(Duration::from_secs(15));
    let checkout = world.create(|_| {}).await;
    world.cancel(checkout.id).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(count(), 0);
    world.clock.doze(Duration::ZERO);
    let arrives = async {
        while count() == 0 {
            // Its claim ends.
            world.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), arrives).await.expect("the next claim sends it");
    world.close().await;
}
