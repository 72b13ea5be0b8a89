//! A start that was lost is made once more, or by somebody who took over, while a person looks the payment up and finds none.

use dalasi::app::{Context, look_up, settlement};
use dalasi::error::Failure;
use domain::checkout::Checkout;
use domain::payment::{Step, Transaction};
use domain::{Id, Refusal};
use store::Tx;

use super::lost::is_paid;
use super::*;

const FEW_MOMENTS: Duration = Duration::from_millis(500);
const LEASE: Duration = Duration::from_secs(31);

#[tokio::test]
async fn nobody_decides_while_a_lost_start_is_repeated() {
    let (world, rail) = behind(Trouble::LostSlowly { at_once: 1, slowly: 0, go_on: Notify::new() }, true).await;
    let checkout = world.create(|_| {}).await.id;
    world.start(checkout, Method::Wave, "+2207000000").await;
    starts(&rail, 2).await;
    is_paid_by_the_last_call(&world, &rail, checkout, "processing").await;
    assert_eq!(rail.starts.load(Ordering::SeqCst), 2, "lost, and taken");
}

/// The worker that calls is slower than its lease, and another one has begun: what the slow one never heard says nothing. So it
/// is with the first call and with one that is made once more.
#[tokio::test]
async fn nobody_decides_while_another_worker_starts_it() {
    for (at_once, status) in [(0, "pending"), (1, "processing")] {
        let (world, rail) = behind(Trouble::LostSlowly { at_once, slowly: 1, go_on: Notify::new() }, true).await;
        let checkout = world.create(|_| {}).await.id;
        let others = async {
            starts(&rail, at_once + 1).await;
            world.clock.advance(LEASE);
            starts(&rail, at_once + 2).await;
            go_on(&rail);
            tokio::time::sleep(FEW_MOMENTS).await;
            is_paid_by_the_last_call(&world, &rail, checkout, status).await;
        };
        tokio::join!(world.start(checkout, Method::Wave, "+2207000000"), others);
    }
}

/// The process that repeats it died, and nobody waits for the payment any more.
#[tokio::test]
async fn a_person_decides_what_nobody_repeats_any_more() {
    let (world, rail) = behind(Trouble::LostSlowly { at_once: 1, slowly: 0, go_on: Notify::new() }, true).await;
    let checkout = world.create(|_| {}).await.id;
    world.start(checkout, Method::Wave, "+2207000000").await;
    starts(&rail, 2).await;
    world.cancel(checkout).await;
    world.clock.advance(LEASE);
    let id = world.shown(checkout).await.unwrap().id;
    let unknown = async {
        while step(&world, id).await != Step::Unknown {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, unknown).await.expect("nobody says what came of the call");
    reaches(&rail.withdrawals, 1).await;
    assert_eq!(decided_as_failed(&world, id).await, Ok(()));
    world.has_clean_books().await;
}

/// A call for it is under way: nobody decides meanwhile, and then it is paid.
async fn is_paid_by_the_last_call(world: &World, rail: &Lossy, checkout: Id<Checkout>, status: &'static str) {
    let id = world.shown(checkout).await.unwrap().id;
    let transaction = transaction(world, id).await;
    assert_eq!(transaction.step(), Step::Sending);
    // A call that was lost stays lost while it is made once more.
    assert_eq!(transaction.is_outcome_unknown(), status == "processing");
    let decided = decided_as_failed(world, id).await;
    assert_eq!(decided, Err(Failure::Refused(Refusal::AttemptNotUnknown { status })));
    go_on(rail);
    let paid = async {
        while !is_paid(world, checkout).await {
            // Another may have begun by now.
            go_on(rail);
            world.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, paid).await.expect("it is paid");
    world.has_clean_books().await;
}

fn go_on(rail: &Lossy) {
    let Trouble::LostSlowly { go_on, .. } = &rail.trouble else { unreachable!() };
    go_on.notify_one();
}

async fn step(world: &World, id: Id<Transaction>) -> Step {
    transaction(world, id).await.step()
}

async fn transaction(world: &World, id: Id<Transaction>) -> Transaction {
    let scope = world.scope;
    world.app.read(move |tx, _| look_up::<Transaction>(tx, scope, id)).await.unwrap()
}

/// By a person who has looked it up.
async fn decided_as_failed(world: &World, id: Id<Transaction>) -> Result<(), Failure> {
    let scope = world.scope;
    let decide = move |tx: &mut Tx<'_>, context: &Context| {
        settlement::settle(tx, context, scope, id, |_, session, transaction, now| {
            Ok(session.resolved(transaction, false, now)?)
        })
        .map(drop)
    };
    world.app.commit(decide).await
}
