//! Refunds of one merchant beside each other, on the database that has more than one writer: each looks at the balance, and then
//! waits for its turn to take something out of it.

use std::time::Duration;

use dalasi::app::organizations::{self, SettingsChange};
use dalasi::error::Failure;
use domain::payment::Transaction;
use domain::rail::{FailureReason, RefundReport};
use domain::refund::Refund;
use domain::{Currency, Id, Money, Refusal, Sum};

use super::{is_over, until};
use crate::cli::place::Place;
use crate::world::World;

const DELAY_S: u32 = 3_600;
const PATIENCE: Duration = Duration::from_secs(20);
/// Whoever waits so long goes on to wait, and does not begin anew meanwhile.
const WAITING: &str =
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
    and clock_timestamp() - query_start > interval '600 ms'";

/// So many payments of 100.00, each of which left 97.50, with 1.00 of the first refunded; the delay is over for all of them.
async fn settled(place: &Place, payments: usize) -> (World, Vec<Id<Transaction>>) {
    let world = World::on(place.settings()).await;
    let change = SettingsChange {
        allow_negative_balance: Some(false),
        settlement_delay_s: Some(DELAY_S),
        ..SettingsChange::default()
    };
    let scope = world.scope;
    world.app.commit(move |tx, context| organizations::change_settings(tx, context, scope, &change)).await.unwrap();
    let mut paid = Vec::new();
    for _ in 0..payments {
        paid.push(world.paid(10_000).await);
    }
    world.clock.advance(Duration::from_secs(DELAY_S.into()));
    // The first one makes the guard.
    let first = world.refund(paid[0], Some(100)).await.unwrap().id;
    until(&world, first, is_over).await;
    (world, paid)
}

async fn wait(watcher: &tokio_postgres::Client, count: i64) {
    while watcher.query_one(WAITING, &[]).await.unwrap().get::<_, i64>(0) < count {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What is left of two payments is asked back at once: both have looked at the balance, and wait for its guard until `meanwhile`
/// is over.
async fn both_wait(
    place: &Place,
    world: &World,
    paid: &[Id<Transaction>],
    meanwhile: impl Future<Output = ()>,
) -> [Result<Refund, Failure>; 2] {
    let (holder, watcher) = (place.raw_postgres().await, place.raw_postgres().await);
    holder.batch_execute("begin; select debits from balance_guards for update").await.unwrap();
    let released = async {
        wait(&watcher, 2).await;
        meanwhile.await;
        holder.batch_execute("rollback").await.unwrap();
    };
    let (one, other, released) = tokio::join!(
        world.refund(paid[0], None),
        world.refund(paid[1], None),
        tokio::time::timeout(PATIENCE, released),
    );
    released.expect("both wait");
    [one, other]
}

/// It may be millions of postings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_while_what_was_paid_lately_is_added_up() {
    let Some(place) = Place::postgres("nobody waits while a balance is added up").await else { return };
    let (world, paid) = settled(&place, 1).await;
    world.rest().await;
    let (table, watcher) = (place.raw_postgres().await, place.raw_postgres().await);
    table.batch_execute("begin; lock table ledger_postings in access exclusive mode").await.unwrap();
    let adding_up = async {
        wait(&watcher, 1).await;
        let guard = watcher.batch_execute("select debits from balance_guards for update nowait").await;
        table.batch_execute("rollback").await.unwrap();
        guard
    };
    let (refund, guard) = tokio::join!(world.refund(paid[0], Some(100)), tokio::time::timeout(PATIENCE, adding_up));
    guard.expect("the postings are waited for").expect("another refund would have its turn");
    refund.unwrap();
    world.has_clean_books().await;
    world.app.store().close().await;
    place.end().await;
}

/// What each of them added up before is no longer all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_paid_while_refunds_wait_is_not_available_yet() {
    let Some(place) = Place::postgres("what is paid while refunds wait is not available yet").await else { return };
    let (world, paid) = settled(&place, 2).await;
    let more = async {
        world.paid(10_000).await;
    };
    let (taken, refused) = match both_wait(&place, &world, &paid, more).await {
        [Ok(taken), Err(refused)] | [Err(refused), Ok(taken)] => (taken.amount.minor, refused),
        both => panic!("{both:?}"),
    };
    // Of 194.00 one wanted 99.00 and the other 100.00.
    let available = Sum::new((19_400 - taken).into(), Currency::gmd());
    let required = Money::new(19_900 - taken, Currency::gmd());
    assert_eq!(refused, Failure::Refused(Refusal::InsufficientBalance { available, required }));
    world.has_clean_books().await;
    world.close().await;
    place.end().await;
}

/// Without it there was too little for both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_refund_gives_back_while_others_wait_is_available_to_them() {
    let Some(place) = Place::postgres("what a refund gives back while others wait").await else { return };
    let (world, paid) = settled(&place, 3).await;
    world.rest().await;
    let asked = world.refund(paid[2], None).await.unwrap().id;
    let fails = async {
        let failed = RefundReport::Failed { reason: FailureReason::Declined };
        world.app.report_refund(world.scope, asked, failed).await.unwrap();
    };
    for refund in both_wait(&place, &world, &paid, fails).await {
        refund.unwrap();
    }
    world.has_clean_books().await;
    world.app.store().close().await;
    place.end().await;
}
