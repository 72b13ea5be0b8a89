//! The clocks of two processes differ.

use dalasi::app::keys;
use domain::Timestamp;
use store::queries::signing_keys;

use crate::world::World;

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
