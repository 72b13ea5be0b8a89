//! Refunds wait while the books are in doubt: in every process, whichever of them has seen it, and behind a restart.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::time::Duration;

use dalasi::app::App;
use dalasi::clock::SystemClock;
use dalasi::entropy::SystemEntropy;
use dalasi::monotonic::{self, Since};
use domain::job::Job;
use domain::payment::Step;
use domain::refund::RefundStatus;
use domain::{Mode, Scope};
use store::queries::doubts::{self, Standing};

use super::{Fault, HALF_A_MINUTE, TestRail, behind, is_over, stored, until};
use crate::cli::place::Place;
use crate::world::World;

async fn standing(app: &App) -> Vec<Standing> {
    app.read(|tx, _| Ok(doubts::standing(tx)?)).await.unwrap()
}

async fn are_in_doubt(app: &App, scope: Scope) -> bool {
    app.read(move |tx, _| Ok(doubts::are_of(tx, scope)?)).await.unwrap()
}

async fn none_stands(app: &App) {
    let mended = async {
        while !standing(app).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), mended).await.expect("a check sees that nothing is wrong");
}

/// What is due, as a worker does it.
async fn work(app: &App) {
    for claimed in dalasi::jobs::claim_due(app, 9).await {
        dalasi::jobs::run_one(app, claimed).await;
    }
}

/// To how often it is said that money was taken out of the balance.
async fn add(world: &World, debits: i64) {
    let added = world.app.commit(move |tx, _| {
        let sql = "update balance_guards set debits = debits + cast($1 as bigint)";
        Ok(tx.execute(sql, &[debits.into()])?)
    });
    assert_eq!(added.await, Ok(1));
}

/// A rail that would take a second call for another refund: nothing was called, so the wait is no first call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_goes_out_while_the_books_are_in_doubt() {
    for place in Place::each("nothing goes out while the books are in doubt").await {
        let mut kept = None;
        let first = World::behind_on(place.settings(), |simulator| {
            let rail = Arc::new(TestRail::made_of(simulator, false, &[]));
            kept = Some(Arc::clone(&rail));
            rail
        });
        let first = first.await;
        let rail = kept.unwrap();
        let transaction = first.paid(1000).await;
        let before = first.refund(transaction, Some(100)).await.unwrap().id;
        until(&first, before, is_over).await;
        add(&first, 1).await;
        let checked = async {
            while first.app.invariants().get().last_run.is_none() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), checked).await.expect("the worker looks at the books by itself");
        let found = standing(&first.app).await;
        assert_eq!(found.iter().map(|doubt| doubt.whose).collect::<Vec<_>>(), [Some(first.scope)], "nobody else's");
        assert!(found[0].found.contains(' ') && found[0].since <= first.now(), "{found:?}");
        let id = first.refund(transaction, Some(100)).await.unwrap().id;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!((stored(&first, id).await.step(), rail.times(id)), (Step::Sending, 0));

        // Another process, which has looked at nothing.
        first.rest().await;
        first.clock.advance(HALF_A_MINUTE);
        let app = &first.app;
        let (context, rails, egress) = (Arc::clone(app.context()), app.rails().clone(), app.egress().clone());
        work(&App::new(app.store().clone(), context, rails, egress, None)).await;
        assert_eq!((stored(&first, id).await.step(), rail.times(id)), (Step::Sending, 0), "another process");
        app.store().close().await;

        // The same one, started anew.
        let again = World::behind_on(place.settings(), |_| Arc::clone(&rail) as _).await;
        again.clock.advance(HALF_A_MINUTE * 3);
        work(&again.app).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!((stored(&again, id).await.step(), rail.times(id)), (Step::Sending, 0), "behind a restart");

        // Before it looks, in the fifth second.
        add(&again, -1).await;
        none_stands(&again.app).await;
        again.clock.advance(HALF_A_MINUTE);
        let refund = until(&again, id, is_over).await;
        assert_eq!((refund.status(), rail.times(id)), (RefundStatus::Completed, 1));
        again.has_clean_books().await;
        again.close().await;
        place.end().await;
    }
}

/// A rail that would take a second call for the first is not called again either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_lost_on_its_way_is_not_sent_again_while_the_books_are_in_doubt() {
    let (world, rail) = behind(|simulator| TestRail::made_of(simulator, true, &[Fault::LostBefore])).await;
    let paid = world.paid(1000).await;
    world.rest().await;
    let id = world.refund(paid, Some(100)).await.unwrap().id;
    work(&world.app).await;
    assert_eq!(stored(&world, id).await.step(), Step::Unknown);
    world.app.doubt(vec![(Some(world.scope), "a posting is gone".to_owned())]).await.unwrap();
    for _ in 0..3 {
        world.clock.advance(Duration::from_secs(3600));
        work(&world.app).await;
    }
    assert_eq!((stored(&world, id).await.step(), rail.times(id)), (Step::Unknown, 0));
    world.app.end_doubts(standing(&world.app).await).await.unwrap();
    for _ in 0..3 {
        world.clock.advance(Duration::from_secs(3600));
        work(&world.app).await;
    }
    assert_eq!((stored(&world, id).await.status(), rail.times(id)), (RefundStatus::Completed, 1));
    world.app.store().close().await;
}

/// A process that stood still, or waited for its database, since it claimed the refund.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_claimed_before_the_books_came_into_doubt_does_not_go_out_either() {
    let (world, rail) = behind(|simulator| TestRail::made_of(simulator, false, &[])).await;
    let paid = world.paid(1000).await;
    world.rest().await;
    let id = world.refund(paid, Some(100)).await.unwrap().id;
    let due = dalasi::jobs::claim_due(&world.app, 9).await;
    let claimed = due.iter().find(|claimed| claimed.job == Job::SendRefund(id)).expect("it is due");
    world.app.doubt(vec![(Some(world.scope), "a posting is gone".to_owned())]).await.unwrap();
    let long_ago = monotonic::now() - Duration::from_secs(6);
    let long_ago = Since { at: long_ago, ..Since::now(world.app.store()) };
    world.app.send_refund(claimed, long_ago).await.unwrap();
    assert_eq!((stored(&world, id).await.step(), rail.times(id)), (Step::Sending, 0));

    // It was not begun, so that this is the first call, of which this rail takes one.
    world.app.end_doubts(standing(&world.app).await).await.unwrap();
    world.clock.advance(Duration::from_secs(3600));
    work(&world.app).await;
    assert_eq!((stored(&world, id).await.status(), rail.times(id)), (RefundStatus::Completed, 1));
    world.app.store().close().await;
}

/// What a check found right that began before somebody saw a fault may have been looked at before that fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_doubt_is_ended_by_a_check_that_began_behind_it() {
    for place in Place::each("a doubt is ended by a check that began behind it").await {
        let world = World::on(place.settings()).await;
        world.rest().await;
        let (app, whose, live) = (&world.app, Some(world.scope), Scope { mode: Mode::Live, ..world.scope });
        let seen = || vec![(whose, "a posting\0 is gone".to_owned())];
        assert_eq!(app.doubt(seen()).await, Ok(vec![whose]));
        let before = standing(app).await;
        assert_eq!((before.len(), before[0].found.as_str()), (1, "a posting is gone"));
        assert_eq!(app.doubt(seen()).await, Ok(Vec::new()), "it is known");

        let ended = app.end_doubts(before.clone()).await.unwrap();
        assert_eq!((ended.whose, ended.standing), (Vec::new(), 1));
        let since = standing(app).await;
        assert_eq!((since[0].since, &since[0].found), (before[0].since, &before[0].found));
        assert_eq!((are_in_doubt(app, world.scope).await, are_in_doubt(app, live).await), (true, false));

        // Of nobody knows whom.
        assert_eq!(app.doubt(vec![(None, "a posting of nobody's".to_owned())]).await, Ok(vec![None]));
        assert!(are_in_doubt(app, live).await);
        let ended = app.end_doubts(standing(app).await).await.unwrap();
        assert_eq!((ended.whose, ended.standing), (vec![None, whose], 0));
        assert_eq!((are_in_doubt(app, world.scope).await, are_in_doubt(app, live).await), (false, false));
        app.store().close().await;
        place.end().await;
    }
}

/// Whether the books that a backup holds are right its server has not seen, and neither has the one that is made of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doubts_out_of_a_backup_stand_until_its_books_were_looked_at() {
    let world = World::new().await;
    world.rest().await;
    world.app.doubt(vec![(Some(world.scope), "a posting is gone".to_owned())]).await.unwrap();
    let stood = standing(&world.app).await;
    let folder = Place::sqlite();
    let copy = folder.folder().join("copy");
    store::backup(world.app.store(), File::create(&copy).unwrap()).await.unwrap();
    world.app.store().close().await;
    for place in Place::each("doubts out of a backup").await {
        let (settings, clock) = (store::Settings::new(place.settings()), Arc::new(SystemClock::new()));
        let file = BufReader::new(File::open(&copy).unwrap());
        store::restore(settings, store::Schema::product(), clock, Arc::new(SystemEntropy), file).await.unwrap();
        let restored = World::on(place.settings()).await;
        assert_eq!(standing(&restored.app).await, stood);
        none_stands(&restored.app).await;
        restored.close().await;
        place.end().await;
    }
}
