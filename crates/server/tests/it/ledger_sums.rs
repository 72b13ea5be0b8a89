//! What the ledger adds up: sums beyond any number that a database holds, and a scope that can't be sealed beside one that can.

use std::collections::BTreeSet;
use std::time::Duration;

use dalasi::app::balance::{self, Balance};
use dalasi::app::{Context, ledger};
use dalasi::ledger_proof::Chain;
use domain::{Currency, Mode, Money, Scope, Timestamp};
use store::Tx;
use store::queries::ledger_batches;

use crate::cli::place::Place;
use crate::world::World;

/// Of the largest amount that is stored in a currency with four decimals: so many of them are more than 64 bits hold.
const ENTRIES: i128 = 923;
const POSTINGS: &str = "
with recursive numbers (n) as (select cast(1 as bigint) union all select n + 1 from numbers where n < 923)
insert into ledger_postings (organization_id, mode, entry_id, line, transaction_id, account, currency, amount_minor, created_at)
select $1, $2, $3 || (1000 + n), 1, 'txn', 'rail_clearing:offline', 'CLF', 9999999999999999, 5 from numbers
union all
select $1, $2, $3 || (1000 + n), 2, 'txn', 'merchant', 'CLF', -9999999999999999, 5 from numbers";
const UNSEALED: &str = "
insert into ledger_unsealed (organization_id, mode, entry_id)
select organization_id, mode, entry_id
from ledger_postings
where organization_id = $1 and mode = $2 and line = 1 and entry_id like $3 || '%'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_sum_is_too_large_on_sqlite() {
    no_sum_is_too_large(&Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_sum_is_too_large_on_postgres() {
    let Some(place) = Place::postgres("the sums of the ledger").await else { return };
    no_sum_is_too_large(&place).await;
    place.end().await;
}

async fn no_sum_is_too_large(place: &Place) {
    let world = World::on(place.settings()).await;
    world.rest().await;
    let (scope, clf) = (world.scope, Currency::parse("CLF").unwrap());
    let most = i128::from(Money::stored_maximum(clf).minor);
    insert(&world, scope, "first_").await;
    let one = [("merchant", 0, ENTRIES * most), ("rail_clearing:offline", ENTRIES * most, 0)];
    assert_eq!(totals(&world).await, (vec![], named(&one)));
    seal(&world).await;
    assert_eq!(totals(&world).await, (named(&one), vec![]));
    // As it was signed, and read again for the next batch and for the sum of both parts.
    insert(&world, scope, "second").await;
    assert_eq!(totals(&world).await, (named(&one), named(&one)));
    let all = world.app.read(move |tx, _| Ok(ledger::balances(tx, scope)?.all().unwrap().write().unwrap()));
    let shown: Vec<String> =
        all.await.unwrap().into_iter().map(|of| format!("{} {} {}", of.account, of.debits, of.credits)).collect();
    assert_eq!(shown, ["merchant 0.0000 1845999999999999.8154", "rail_clearing:offline 1845999999999999.8154 0.0000"]);
    seal(&world).await;
    let of = move |tx: &mut Tx<'_>, _: &Context| balance::of(tx, scope, clf, Some(Timestamp::from_micros(4)));
    let Balance { total, recent, .. } = world.app.read(of).await.unwrap();
    assert_eq!((total.minor, recent.minor), (2 * ENTRIES * most, 2 * ENTRIES * most));
    assert_eq!(total.to_string(), "1845999999999999.8154");
    world.app.store().close().await;
}

/// More than one page of them, and more than one batch holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proof_leaves_out_no_entry_of_its_transaction() {
    for place in Place::each("a proof of many entries").await {
        let world = World::on(place.settings()).await;
        let paid = world.paid(1_000).await;
        world.rest().await;
        let scope = world.scope;
        for name in ["first_", "second"] {
            insert(&world, scope, name).await;
            let rows = world.app.commit(move |tx, _| {
                let sql = "update ledger_postings set transaction_id = $1 where transaction_id = 'txn'";
                Ok(tx.execute(sql, &[paid.to_string().into()])?)
            });
            assert_eq!(rows.await.map(i128::from), Ok(2 * ENTRIES));
            seal(&world).await;
        }
        let proof = world.app.read(move |tx, context| ledger::proof(tx, context, scope, Some(paid), None, 1));
        // A moment, unless a batch is read for each of its entries.
        let proof = tokio::time::timeout(Duration::from_secs(30), proof).await.expect("in time").unwrap();
        let found = proof.transaction.unwrap();
        assert_eq!((i128::try_from(found.inclusions.len()).unwrap(), found.unsealed_entries), (2 * ENTRIES + 1, 0));
        let chain = Chain::new(proof.keys);
        let batches: BTreeSet<i64> =
            found.inclusions.iter().map(|inclusion| chain.includes(inclusion).unwrap().batch).collect();
        assert!(batches.len() >= 2, "{batches:?}");
        let entries: BTreeSet<i64> = found.inclusions.iter().map(|inclusion| inclusion.entry.log_no).collect();
        assert_eq!(entries.len(), found.inclusions.len(), "each once");
        world.app.store().close().await;
        place.end().await;
    }
}

/// A balance looks for the last batch, and then for what waits: here a batch comes between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missing_while_it_is_sealed() {
    let Some(place) = Place::postgres("a balance beside the sealer").await else { return };
    let world = World::on(place.settings()).await;
    world.rest().await;
    let (scope, clf) = (world.scope, Currency::parse("CLF").unwrap());
    insert(&world, scope, "first_").await;
    let app = world.app.clone();
    let sealed = tokio::spawn(async move {
        let seal = |tx: &mut Tx<'_>, context: &Context| {
            tx.execute("lock table ledger_unsealed in access exclusive mode", &[])?;
            tx.query("select cast(pg_sleep(0.6) as text) as slept", &[])?;
            ledger::seal_next(tx, context, None)
        };
        app.commit(seal).await.unwrap()
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!sealed.is_finished());
    // As a refund looks: in a transaction that writes, where each statement has a snapshot of its own.
    let look = move |tx: &mut Tx<'_>, _: &Context| balance::of(tx, scope, clf, Some(tx.now()));
    let found = world.app.commit(look).await.unwrap();
    assert_eq!(sealed.await.unwrap(), Some((scope, false)));
    assert_eq!(found.total.minor, ENTRIES * i128::from(Money::stored_maximum(clf).minor));
    world.app.store().close().await;
    place.end().await;
}

async fn insert(world: &World, scope: Scope, name: &'static str) {
    let inserted = world.app.commit(move |tx, _| {
        let values = [scope.organization.to_string().into(), scope.mode.as_str().into(), name.into()];
        tx.execute(POSTINGS, &values)?;
        Ok(tx.execute(UNSEALED, &values)?)
    });
    assert_eq!(i128::from(inserted.await.unwrap()), ENTRIES);
}

async fn seal(world: &World) {
    let sealed = world.app.commit(|tx, context| ledger::seal_next(tx, context, None)).await.unwrap();
    assert_eq!(sealed, Some((world.scope, false)));
}

type Totals = Vec<(String, i128, i128)>;

fn named(totals: &[(&str, i128, i128)]) -> Totals {
    totals.iter().map(|(account, debits, credits)| ((*account).to_owned(), *debits, *credits)).collect()
}

/// Sealed and unsealed.
async fn totals(world: &World) -> (Totals, Totals) {
    let scope = world.scope;
    let read = world.app.read(move |tx, _| {
        let balances = ledger::balances(tx, scope)?;
        let of = |totals: &dalasi::ledger_proof::Totals| -> Totals {
            totals.iter().map(|(_, account, debits, credits)| (account.to_owned(), debits, credits)).collect()
        };
        Ok((of(&balances.sealed), of(&balances.unsealed)))
    });
    read.await.unwrap()
}

/// Live mode comes first.
#[tokio::test]
async fn a_mode_that_cant_be_sealed_keeps_no_other_waiting() {
    let world = World::new().await;
    let test = world.scope;
    let live = Scope { mode: Mode::Live, ..test };
    let unbalanced = "
insert into ledger_postings (organization_id, mode, entry_id, line, transaction_id, account, currency, amount_minor, created_at)
values ($1, $2, $3, 1, 'txn', 'merchant', 'GMD', 5, 5)";
    let waiting = world.app.commit(move |tx, _| {
        let values = [live.organization.to_string().into(), live.mode.as_str().into(), "broken".into()];
        tx.execute(unbalanced, &values)?;
        tx.execute(UNSEALED, &values)?;
        Ok(())
    });
    waiting.await.unwrap();
    insert(&world, test, "first_").await;
    let mut sealed = 0;
    for _ in 0..100 {
        let last = world.app.read(move |tx, _| Ok(ledger_batches::last(tx, test)?)).await.unwrap();
        sealed = last.map_or(0, |last| last.last_log_no);
        if sealed > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(i128::from(sealed), ENTRIES);
    let left = world.app.read(move |tx, _| Ok(ledger_batches::count_unsealed(tx, live)?)).await.unwrap();
    assert_eq!(left, 1);
}
