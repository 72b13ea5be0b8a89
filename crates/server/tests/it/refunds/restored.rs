//! Refunds of a server that was made of a backup.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;

use dalasi::clock::SystemClock;
use dalasi::entropy::SystemEntropy;
use domain::refund::RefundStatus;

use super::{TestRail, behind, is_over, stored, until};
use crate::cli::place::Place;
use crate::world::World;

/// The server that a backup was made of went on, and sent what the backup holds as not begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_out_of_a_backup_is_asked_for_and_not_sent_once_more() {
    let (world, rail) = behind(|simulator| TestRail::made_of(simulator, false, &[])).await;
    let paid = world.paid(10_000).await;
    world.rest().await;
    let refund = world.refund(paid, Some(4_000)).await.unwrap();
    let folder = Place::sqlite();
    let copy = folder.folder().join("copy");
    store::backup(world.app.store(), File::create(&copy).unwrap()).await.unwrap();
    for claimed in dalasi::jobs::claim_due(&world.app, 9).await {
        dalasi::jobs::run_one(&world.app, claimed).await;
    }
    assert_eq!((stored(&world, refund.id).await.status(), rail.times(refund.id)), (RefundStatus::Completed, 1));
    world.app.store().close().await;

    for place in Place::each("a refund out of a backup").await {
        let (settings, clock) = (store::Settings::new(place.settings()), Arc::new(SystemClock::new()));
        let file = BufReader::new(File::open(&copy).unwrap());
        store::restore(settings, store::Schema::product(), clock, Arc::new(SystemEntropy), file).await.unwrap();
        let restored = World::behind_on(place.settings(), |_| Arc::clone(&rail) as _).await;
        let refund = until(&restored, refund.id, is_over).await;
        assert_eq!((refund.status(), rail.times(refund.id)), (RefundStatus::Completed, 1));
        restored.has_clean_books().await;
        restored.close().await;
        place.end().await;
    }
}
