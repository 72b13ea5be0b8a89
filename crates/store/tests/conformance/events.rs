//! Events get their places in the log after their commit: in the order of their time, and each object's in theirs.

use std::time::Duration;

use domain::event::{Event, EventType};
use domain::organization::Organization;
use domain::{Id, Mode, Scope};
use store::queries::events;
use store::{Error, Schema};

use crate::on_both;
use crate::world::World;

on_both!(an_objects_events_keep_their_order_whatever_the_clocks_said);

/// One process said what happened first, and its clock was ahead of that of the process which said what came behind.
async fn an_objects_events_keep_their_order_whatever_the_clocks_said(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    // Object, number among its events, and the second that the clock showed.
    let told = [
        ("cs_one", 1, 50),
        ("cs_two", 1, 1),
        ("cs_one", 2, 2),
        ("cs_one", 3, 60),
        ("cs_two", 2, 3),
        ("cs_three", 1, 4),
    ];
    // So many at once: also with the first of an object behind those that are taken.
    for limit in [1, 2, 3, 4, 100] {
        let scope = store
            .write(move |tx| {
                let now = tx.now();
                let organization: Id<Organization> = tx.entropy().id(now);
                let scope = Scope { organization, mode: Mode::Test };
                for (object, sequence, second) in told {
                    let created_at = now.plus(Duration::from_secs(second));
                    let (kind, body) = (EventType::CheckoutCancelled, "{}".to_owned());
                    let (id, object_id) = (tx.entropy().id(created_at), object.to_owned());
                    events::append(tx, &Event { id, scope, kind, object_id, sequence, body, created_at })?;
                }
                Ok::<_, Error>(scope)
            })
            .await
            .unwrap();
        while store.write(move |tx| events::number(tx, limit)).await.unwrap() > 0 {}
        let page = store.read(move |tx| events::follow(tx, scope, None, 100)).await.unwrap().unwrap();
        let order: Vec<_> = page.items.iter().map(|event| (event.object_id.as_str(), event.sequence)).collect();
        assert_eq!(order.len(), told.len(), "{limit}");
        for object in ["cs_one", "cs_two", "cs_three"] {
            let own: Vec<_> = order.iter().filter(|(of, _)| *of == object).map(|(_, sequence)| *sequence).collect();
            assert!(own.is_sorted(), "{limit}: {order:?}");
        }
        assert!(store.read(events::any_unlogged).await.is_ok_and(|any| !any), "{limit}");
    }
    store.close().await;
}
