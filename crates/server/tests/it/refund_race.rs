//! Refunds of one transaction race each other, and those of one merchant race for a small balance: together never more
//! than was paid, and where the balance may not go below zero, it does not.
//!
//! The gate runs a few rounds; `cargo xtask prove --only A7.refunds` runs as many as are asked for.

use std::sync::Arc;

use dalasi::app::organizations::SettingsChange;
use dalasi::app::{balance, look_up, organizations};
use dalasi::error::Failure;
use domain::payment::Transaction;
use domain::refund::{Refund, RefundStatus};
use domain::simulator::SimulatedRefund;
use domain::{Currency, Entropy, Id, Refusal};
use futures_util::future::join_all;
use proof::Proof;
use tokio::sync::Semaphore;

use crate::cli::place::Place;
use crate::world::World;

const GATE_ROUNDS: u64 = 200;
/// Rounds of one database; then its books are read as a whole, and the next has a fresh one.
const ROUNDS_OF_A_STORE: u64 = 1_000;
/// Rounds of one merchant at the same time.
const ROUNDS_AT_ONCE: usize = 64;
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite() {
    race("sqlite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres() {
    race("postgres").await;
}

async fn race(database: &'static str) {
    let mut proof = Proof::begin("A7.refunds", Some(database), GATE_ROUNDS);
    let mut reached = 0;
    while reached < proof.count {
        let place = match database {
            "sqlite" => Place::sqlite(),
            _ => match Place::postgres("the refund race").await {
                Some(place) => place,
                None => return proof.not_run("there is no PostgreSQL"),
            },
        };
        reached += on_a_fresh_store(&place, &mut proof, reached).await;
        place.end().await;
    }
    proof.finish(reached);
}

/// Payments of which all but one or two can be refunded from what there is, asked for at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn for_a_small_balance_on_sqlite() {
    for_a_small_balance(&Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn for_a_small_balance_on_postgres() {
    let Some(place) = Place::postgres("the race for a small balance").await else { return };
    for_a_small_balance(&place).await;
    place.end().await;
}

async fn for_a_small_balance(place: &Place) {
    let world = World::on(place.settings()).await;
    may_owe(&world, false).await;
    for round in 0..20 {
        let payments = join_all((0..6).map(|_| world.paid(10_000))).await;
        let before = balance(&world).await;
        let answers = join_all(payments.iter().map(|payment| world.refund(*payment, None))).await;
        let (taken, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        let is_short = |answer: &_| matches!(answer, &Err(Failure::Refused(Refusal::InsufficientBalance { .. })));
        assert!(refused.iter().all(is_short), "round {round}: {refused:?}");
        let fit = usize::try_from(before / 10_000).unwrap().min(payments.len());
        assert_eq!(taken.len(), fit, "round {round}: {before} is there, and each takes 10000");
        for refund in taken {
            settled(&world, refund.as_ref().unwrap().transaction, &[refund.as_ref().unwrap().id]).await;
        }
        assert!(balance(&world).await >= 0, "round {round}");
    }
    world.has_clean_books().await;
    world.close().await;
}

async fn may_owe(world: &World, allowed: bool) {
    let (scope, change) =
        (world.scope, SettingsChange { allow_negative_balance: Some(allowed), ..SettingsChange::default() });
    world.app.commit(move |tx, context| organizations::change_settings(tx, context, scope, &change)).await.unwrap();
}

async fn balance(world: &World) -> i64 {
    let scope = world.scope;
    let found = world.app.read(move |tx, _| balance::of(tx, scope, Currency::gmd(), None)).await;
    i64::try_from(found.unwrap().total.minor).unwrap()
}

/// The next rounds, at most as many as one store holds: how many there were.
async fn on_a_fresh_store(place: &Place, proof: &mut Proof, reached: u64) -> u64 {
    let (first, rounds) = (proof.seed + reached, ROUNDS_OF_A_STORE.min(proof.count - reached));
    let world = Arc::new(World::on(place.settings()).await);
    // Every other store belongs to a merchant who may not owe anything.
    let may_go_below_zero = !(first / ROUNDS_OF_A_STORE).is_multiple_of(2);
    may_owe(&world, may_go_below_zero).await;
    let slots = Arc::new(Semaphore::new(ROUNDS_AT_ONCE));
    let running = (0..rounds).map(|round| {
        let (world, slots) = (Arc::clone(&world), Arc::clone(&slots));
        tokio::spawn(async move {
            let _slot = slots.acquire_owned().await.unwrap();
            tokio::time::timeout(PATIENCE, one_round(&world, first + round, may_go_below_zero)).await.unwrap();
        })
    });
    for round in join_all(running).await {
        round.unwrap();
    }
    if reached == 0 {
        controls(proof, &world).await;
    }
    let left = balance(&world).await;
    assert!(may_go_below_zero || left >= 0, "the balance is {left}");
    world.has_clean_books().await;
    world.close().await;
    rounds
}

/// One payment, and several who want it back at once: parts, the whole, in amounts that fail, get lost or stay open.
async fn one_round(world: &World, round: u64, may_go_below_zero: bool) {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&round.to_le_bytes());
    let mut random = Entropy::from_seed(seed);
    let mut below = |bound: i64| i64::try_from(random.below(bound.unsigned_abs())).unwrap();
    let paid = 1 + below(20_000);
    let transaction = world.paid(paid).await;
    let contenders = 2 + below(7);
    let wanted: Vec<Option<i64>> = (0..contenders).map(|_| (below(4) > 0).then(|| 1 + below(paid))).collect();

    let answers = join_all(wanted.iter().map(|minor| world.refund(transaction, *minor))).await;
    let mut refunds = Vec::new();
    for (minor, answer) in wanted.iter().zip(answers) {
        match answer {
            Ok(refund) => refunds.push(refund.id),
            Err(Failure::Refused(Refusal::RefundExceedsAmount { left })) => {
                assert!(minor.is_none_or(|minor| minor > left.minor), "{minor:?} of {left} was refused");
            }
            Err(Failure::Refused(Refusal::TransactionAlreadyRefunded)) => {}
            Err(Failure::Refused(Refusal::InsufficientBalance { available, required })) => {
                assert!(!may_go_below_zero && available.minor < i128::from(required.minor));
            }
            Err(other) => panic!("round {round}: {other}"),
        }
    }
    settled(world, transaction, &refunds).await;
    check(world, round, transaction, &refunds).await;
}

/// Until the network has said what it says by itself soon: the silent and the slow stay open.
async fn settled(world: &World, transaction: Id<Transaction>, refunds: &[Id<Refund>]) {
    loop {
        let (_, found) = look(world, transaction, refunds).await;
        let is_slow = |refund: &Refund| matches!(refund.amount.minor % 100, 73 | 75);
        let is_over = |refund: &Refund| matches!(refund.status(), RefundStatus::Completed | RefundStatus::Failed);
        if found.iter().all(|(refund, _)| is_over(refund) || is_slow(refund)) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

type Found = (Transaction, Vec<(Refund, Option<SimulatedRefund>)>);

async fn look(world: &World, transaction: Id<Transaction>, refunds: &[Id<Refund>]) -> Found {
    let (scope, refunds) = (world.scope, refunds.to_vec());
    let found = world.app.read(move |tx, _| {
        let transaction = look_up::<Transaction>(tx, scope, transaction)?;
        let pair = |id: &Id<Refund>| -> Result<_, Failure> {
            Ok((look_up::<Refund>(tx, scope, *id)?, tx.peek::<SimulatedRefund>(scope, *id)?))
        };
        Ok((transaction, refunds.iter().map(pair).collect::<Result<Vec<_>, _>>()?))
    });
    found.await.unwrap()
}

/// Our books, and the simulated wallet's, which knows nothing of ours.
async fn check(world: &World, round: u64, transaction: Id<Transaction>, refunds: &[Id<Refund>]) {
    let found = look(world, transaction, refunds).await;
    assert_eq!(wrong(&found), Vec::<String>::new(), "round {round}");
}

/// What can't be so after a race.
fn wrong((transaction, found): &Found) -> Vec<String> {
    let mut wrong = Vec::new();
    let sum = |status: &[RefundStatus]| -> i64 {
        found.iter().filter(|(one, _)| status.contains(&one.status())).map(|(one, _)| one.amount.minor).sum()
    };
    let gone = sum(&[RefundStatus::Completed]);
    let open = sum(&[RefundStatus::Pending, RefundStatus::Processing]);
    if gone + open > transaction.amount.minor {
        wrong.push(format!("{gone} + {open} of {}", transaction.amount));
    }
    let said = (transaction.refunded().minor, transaction.refunding().minor);
    if said != (gone, open) {
        wrong.push(format!("the transaction says {said:?} of its refunds, and they say {:?}", (gone, open)));
    }
    let paid_back: i64 =
        found.iter().filter_map(|(_, order)| order.as_ref()).filter(|it| it.paid_back).map(|it| it.amount.minor).sum();
    if paid_back > transaction.amount.minor {
        wrong.push(format!("the wallet gave {paid_back} of {}", transaction.amount));
    }
    for (refund, order) in found {
        let truth = order.as_ref().is_some_and(|order| order.paid_back);
        if refund.status() == RefundStatus::Completed && !truth {
            wrong.push(format!("{} is completed and never left the wallet", refund.id));
        }
    }
    wrong
}

/// What the check has to see, put in front of it: a refund too many in our books, one that the wallet never gave, and one
/// that it gave twice.
async fn controls(proof: &mut Proof, world: &World) {
    let transaction = world.paid(10_000).await;
    let refund = world.refund(transaction, Some(6_000)).await.unwrap().id;
    settled(world, transaction, &[refund]).await;
    let found = look(world, transaction, &[refund]).await;
    proof.control("nothing is wrong", wrong(&found).is_empty());
    let (mut twice, mut kept) = (found.clone(), found.clone());
    twice.1.push(found.1[0].clone());
    proof.control("a refund too many", wrong(&twice).len() >= 3);
    kept.1[0].1 = None;
    proof.control("a refund that never left", wrong(&kept).len() == 1);
}
