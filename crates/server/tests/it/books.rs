//! The background check of the books: step by step, while the service goes on between the steps.

use dalasi::app::verify::{self, Check, Progress, Report};

use crate::cli::place::Place;
use crate::world::World;

/// More than a page of the check.
const CHECKOUTS: usize = 250;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_are_not_confused_by_what_happens_between_them_on_sqlite() {
    steps_are_not_confused_by_what_happens_between_them(&Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_are_not_confused_by_what_happens_between_them_on_postgres() {
    let Some(place) = Place::postgres("the check of the books").await else { return };
    steps_are_not_confused_by_what_happens_between_them(&place).await;
    place.end().await;
}

async fn steps_are_not_confused_by_what_happens_between_them(place: &Place) {
    let world = World::on(place.settings()).await;
    for _ in 0..CHECKOUTS {
        world.create(|_| {}).await;
    }
    let mut steps = 0;
    let report = check(&world, async || {
        steps += 1;
        let checkout = world.create(|_| {}).await;
        world.cancel(checkout.id).await;
        if steps % 10 == 0 {
            let transaction = world.paid(1000).await;
            world.refund(transaction, Some(100)).await.unwrap();
        }
    })
    .await;
    assert!(report.is_clean(), "{:#?}", report.faults);
    assert!(report.checked["checkouts"] >= CHECKOUTS as u64 && steps > 50, "{steps} {:?}", report.checked);

    world.rest().await;
    let report = check(&world, async || {}).await;
    let whole = world.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap();
    assert!(report.is_clean() && whole.is_clean());
    assert_eq!(report.checked, whole.checked);
    world.app.store().close().await;
}

async fn check(world: &World, mut between: impl AsyncFnMut()) -> Report {
    let mut check = Check::new(&Progress::default());
    while !check.is_done() {
        let before = check;
        check = world
            .app
            .read(move |tx, _| {
                let mut check = before.clone();
                check.step(tx)?;
                Ok(check)
            })
            .await
            .unwrap();
        between().await;
    }
    check.into_report()
}
