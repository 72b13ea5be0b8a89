//! Events get their places in the log after their commit: in the order of their time, and each object's in theirs.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::event::{Event, EventType};
use domain::ledger::Entry;
use domain::organization::Organization;
use domain::{Id, Mode, Scope};
use store::queries::events::{self, EventsFilter};
use store::queries::verify::{self, Span};
use store::queries::{Page, PageRequest, ledger_batches};
use store::{Error, Schema, Tx};

use crate::broken_commits::Proxy;
use crate::on_both;
use crate::world::{World, raw_postgres};

on_both!(
    an_objects_events_keep_their_order_whatever_the_clocks_said,
    an_event_that_cannot_be_read_keeps_no_other_from_its_place,
    a_page_of_large_events_is_shorter_and_leaves_none_out,
    events_that_cannot_be_read_hide_none_around_them,
    a_log_without_a_place_keeps_no_other_from_its_places,
    the_oldest_of_what_waits_is_found_among_all_organizations,
);

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
                    events::append(tx, &Event { id, scope, kind: kind.into(), object_id, sequence, body, created_at })?;
                }
                Ok::<_, Error>(scope)
            })
            .await
            .unwrap();
        while store.write(move |tx| events::number(tx, limit)).await.unwrap() > 0 {}
        let page = store.read(move |tx| events::follow(tx, scope, None, 100, all)).await.unwrap().unwrap();
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

/// Of a megabyte each, which is as large as they become: no more of them are read at once than four hold.
async fn a_page_of_large_events_is_shorter_and_leaves_none_out(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let appended = store.write(|tx| {
        let now = tx.now();
        let scope = Scope { organization: tx.entropy().id(now), mode: Mode::Test };
        for sequence in 1..=11 {
            let (id, kind, body) = (tx.entropy().id(now), EventType::CheckoutCancelled, "x".repeat(1_000_000));
            let object_id = "cs_one".to_owned();
            events::append(tx, &Event { id, scope, kind: kind.into(), object_id, sequence, body, created_at: now })?;
        }
        Ok::<_, Error>(scope)
    });
    let scope = appended.await.unwrap();
    while store.write(|tx| events::number(tx, 100)).await.unwrap() > 0 {}
    let list = async |offset, after| {
        let request = PageRequest { offset, limit: 10, after };
        let listed = store.read(move |tx| events::list(tx, scope, &EventsFilter::default(), &request));
        listed.await.unwrap()
    };
    let follow = async |after: Option<String>| {
        let followed = store.read(move |tx| events::follow(tx, scope, after.as_deref(), 10, all));
        followed.await.unwrap().unwrap()
    };
    let mut walks: [Vec<String>; 3] = Default::default();
    // So many are on a page, of so many that it has at most, and whether there are more.
    for wanted in [(4, 4, true), (4, 4, true), (3, 10, false)] {
        let [skipped, behind, followed] = &walks;
        let skipped = list(i64::try_from(skipped.len()).unwrap(), None).await;
        let pages = [skipped, list(0, behind.last().cloned()).await, follow(followed.last().cloned()).await];
        for (walk, Page { items, limit, has_more, total, .. }) in walks.iter_mut().zip(pages) {
            assert_eq!((items.len(), limit, has_more), wanted, "{total}");
            walk.extend(items.iter().map(|event| event.id.to_string()));
        }
    }
    for walk in walks {
        assert_eq!(BTreeSet::from_iter(walk).len(), 11);
    }
    // And where the books are checked.
    let walked = store.read(move |tx| {
        let (mut cursor, mut counts) = (None, Vec::new());
        loop {
            let span = Span { after: "", until: None };
            counts.push(verify::events(tx, scope, span, &mut cursor)?.iter().filter(|row| row.is_ok()).count());
            if cursor.is_none() {
                return Ok::<_, Error>(counts);
            }
        }
    });
    assert_eq!(walked.await.unwrap(), [4, 4, 3]);
    store.close().await;
}

async fn an_event_that_cannot_be_read_keeps_no_other_from_its_place(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let appended = store.write(|tx| {
        let now = tx.now();
        let scope = Scope { organization: tx.entropy().id(now), mode: Mode::Test };
        let id: Id<Event> = tx.entropy().id(now);
        let (kind, object_id, body) = (EventType::CheckoutCancelled, "cs_one".to_owned(), "{}".to_owned());
        events::append(tx, &Event { id, scope, kind: kind.into(), object_id, sequence: 1, body, created_at: now })?;
        // Before all others, in whatever order.
        tx.execute(
            "insert into events (organization_id, mode, id, type, object_id, sequence, body, created_at)
            values ('org_', 'test', 'evt_damaged', 'checkout.cancelled', 'cs_two', 1, '{}', 0)",
            &[],
        )?;
        let unlogged = "insert into events_unlogged (organization_id, mode, id) values ('org_', 'test', 'evt_damaged')";
        tx.execute(unlogged, &[])?;
        Ok::<_, Error>(scope)
    });
    let scope = appended.await.unwrap();
    assert_eq!(store.write(|tx| events::number(tx, 10)).await.unwrap(), 1);
    let page = store.read(move |tx| events::follow(tx, scope, None, 100, all)).await.unwrap().unwrap();
    assert_eq!(page.items.len(), 1);
    assert_eq!(store.write(|tx| events::number(tx, 10)).await.unwrap(), 0, "and nobody looks again at once");
    store.close().await;
}

async fn a_log_without_a_place_keeps_no_other_from_its_places(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let tell = async |scope: Option<Scope>, object: &'static str| {
        let told = store.write(move |tx| {
            let now = tx.now();
            let (id, organization) = (tx.entropy().id(now), tx.entropy().id(now));
            let scope = scope.unwrap_or(Scope { organization, mode: Mode::Test });
            let (kind, object_id, body) = (EventType::CheckoutCancelled, object.to_owned(), "{}".to_owned());
            events::append(tx, &Event { id, scope, kind: kind.into(), object_id, sequence: 1, body, created_at: now })?;
            Ok::<_, Error>(scope)
        });
        told.await.unwrap()
    };
    let full = tell(None, "cs_one").await;
    assert_eq!(store.write(|tx| events::number(tx, 10)).await.unwrap(), 1);
    let filled = store.write(|tx| tx.execute("update event_log set log_no = 9223372036854775807", &[]));
    assert_eq!(filled.await.unwrap(), 1);
    // More than are looked at together.
    for object in ["cs_1", "cs_2", "cs_3", "cs_4", "cs_5", "cs_6", "cs_7"] {
        tell(Some(full), object).await;
    }
    let other = tell(None, "cs_one").await;
    assert_eq!(store.write(|tx| events::number(tx, 3)).await.unwrap(), 1);
    for scope in [full, other] {
        let page = store.read(move |tx| events::follow(tx, scope, None, 100, all)).await.unwrap().unwrap();
        assert_eq!(page.items.len(), 1);
    }
    store.close().await;
}

async fn events_that_cannot_be_read_hide_none_around_them(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let appended = store.write(|tx| {
        let now = tx.now();
        let scope = Scope { organization: tx.entropy().id(now), mode: Mode::Test };
        for sequence in 1..=4 {
            let (id, kind, body) = (tx.entropy().id(now), EventType::CheckoutCancelled, "{}".to_owned());
            let object_id = "cs_one".to_owned();
            events::append(tx, &Event { id, scope, kind: kind.into(), object_id, sequence, body, created_at: now })?;
        }
        Ok::<_, Error>(scope)
    });
    let scope = appended.await.unwrap();
    assert_eq!(store.write(|tx| events::number(tx, 100)).await.unwrap(), 4);
    let damaged = store.write(|tx| tx.execute("update events set created_at = -1 where sequence in (2, 3)", &[]));
    assert_eq!(damaged.await.unwrap(), 2);
    let request = PageRequest { offset: 0, limit: 10, after: None };
    let listed = store.read(move |tx| events::list(tx, scope, &EventsFilter::default(), &request)).await.unwrap();
    assert_eq!(BTreeSet::from_iter(listed.items.iter().map(|event| event.sequence)), BTreeSet::from([1, 4]));
    // One at a time, so that a page may hold nothing else.
    let mut after: Option<String> = None;
    for wanted in [(Some(1), true), (Some(4), false), (None, false)] {
        let behind = after.clone();
        let page = store.read(move |tx| events::follow(tx, scope, behind.as_deref(), 1, all));
        let Page { items, has_more, .. } = page.await.unwrap().unwrap();
        assert_eq!((items.first().map(|event| event.sequence), has_more), wanted);
        after = items.first().map(|event| event.id.to_string()).or(after);
    }
    let nothing = |_: &mut Tx<'_>, _: Event| Ok::<Option<Event>, Error>(None);
    let page = store.read(move |tx| events::follow(tx, scope, None, 1, nothing)).await.unwrap().unwrap();
    assert!(page.items.is_empty() && !page.has_more);
    store.close().await;
}

fn all(_: &mut Tx<'_>, event: Event) -> Result<Option<Event>, Error> {
    Ok(Some(event))
}

/// The server sends whatever a statement asks for, however little of it is kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_large_events_asks_for_little_more_than_it_shows() {
    let Some(world) = World::postgres("a_page_of_large_events_asks_for_little").await else { return };
    let proxy = Proxy::start(world.url()).await;
    let store = proxy.open_with(Schema::product()).await;
    let append = async |count, bytes| {
        let appended = store.write(move |tx| {
            let now = tx.now();
            let scope = Scope { organization: tx.entropy().id(now), mode: Mode::Test };
            for sequence in 1..=count {
                let (id, kind, body) = (tx.entropy().id(now), EventType::CheckoutCancelled, "x".repeat(bytes));
                let object_id = "cs_one".to_owned();
                events::append(
                    tx,
                    &Event { id, scope, kind: kind.into(), object_id, sequence, body, created_at: now },
                )?;
            }
            Ok::<_, Error>(scope)
        });
        appended.await.unwrap()
    };
    let (small, medium, large) = (append(40, 1000).await, append(40, 150_000).await, append(101, 1_000_000).await);
    // What is on the page, and what it cost.
    let list = async |scope, limit, after| {
        let before = proxy.answered.load(Ordering::SeqCst);
        let request = PageRequest { offset: 0, limit, after };
        let listed = store.read(move |tx| events::list(tx, scope, &EventsFilter::default(), &request)).await.unwrap();
        let ids: Vec<_> = listed.items.iter().map(|event| event.id.to_string()).collect();
        // On the same connection, behind all that is still on its way.
        store.read(|tx| tx.query("select 1 as one", &[])).await.unwrap();
        (ids, listed.has_more, proxy.answered.load(Ordering::SeqCst) - before)
    };
    let most_bytes = 12 << 20;
    let (ids, has_more, bytes) = list(large, 100, None).await;
    assert_eq!((ids.len(), has_more), (4, true));
    assert!(bytes < most_bytes, "{bytes}");

    // Whatever their size, none is left out and none comes twice, on pages of several portions and of one.
    for (scope, limit) in [(small, 7), (small, 8), (small, 39), (small, 40), (small, 100), (medium, 7), (medium, 100)] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let (ids, has_more, bytes) = list(scope, limit, after).await;
            assert!(bytes < most_bytes, "{bytes}");
            after = ids.last().cloned();
            seen.extend(ids);
            if !has_more {
                break;
            }
        }
        assert!(seen.is_sorted_by(|one, next| one > next), "{seen:?}");
        assert_eq!(seen.len(), 40, "{limit}");
    }

    // After very many small ones their pages are asked for at once, until large ones come again.
    for _ in 0..100 {
        let (ids, has_more, _) = list(small, 20, None).await;
        assert_eq!((ids.len(), has_more), (20, true));
    }
    let mut costs = Vec::new();
    for _ in 0..3 {
        let (ids, has_more, bytes) = list(large, 100, None).await;
        assert_eq!((ids.len(), has_more), (4, true));
        costs.push(bytes);
    }
    assert!(costs.iter().skip(1).all(|bytes| *bytes < most_bytes), "{costs:?}");
    store.close().await;
    world.end().await;
}

/// Each statement sees what was committed before it.
#[tokio::test(flavor = "multi_thread")]
async fn who_commits_between_two_looks_changes_no_order() {
    let Some(world) = World::postgres("who_commits_between_two_looks").await else { return };
    let store = world.try_open(Schema::product()).await.unwrap();
    let told = [("cs_one", 1, 50), ("cs_two", 1, 2), ("cs_one", 2, 3)];
    let (scope, between) = store
        .write(move |tx| {
            let now = tx.now();
            let organization: Id<Organization> = tx.entropy().id(now);
            let scope = Scope { organization, mode: Mode::Test };
            for (object, sequence, second) in told {
                let created_at = now.plus(Duration::from_secs(second));
                let (kind, body) = (EventType::CheckoutCancelled, "{}".to_owned());
                let (id, object_id) = (tx.entropy().id(created_at), object.to_owned());
                events::append(tx, &Event { id, scope, kind: kind.into(), object_id, sequence, body, created_at })?;
            }
            let between: Id<Event> = tx.entropy().id(now.plus(Duration::from_secs(1)));
            Ok::<_, Error>((scope, between))
        })
        .await
        .unwrap();
    // As soon as somebody looks, another is there for whoever looks next.
    let organization = scope.organization;
    let meanwhile = format!(
        "alter table events_unlogged rename to told;
        create function meanwhile() returns boolean language sql volatile as $$
            insert into events (organization_id, mode, id, type, object_id, sequence, body, created_at)
            values ('{organization}', 'test', '{between}', 'checkout.cancelled', 'cs_three', 1, '{{}}', 1)
            on conflict do nothing;
            insert into told (organization_id, mode, id)
            select '{organization}', 'test', '{between}'
            where not exists (select 1 from event_log where event_id = '{between}')
            on conflict do nothing;
            select true
        $$;
        create view events_unlogged as select organization_id, mode, id from told where meanwhile()"
    );
    raw_postgres(world.url()).await.batch_execute(&meanwhile).await.unwrap();
    while store.write(|tx| events::number(tx, 2)).await.unwrap() > 0 {}
    let page = store.read(move |tx| events::follow(tx, scope, None, 100, all)).await.unwrap().unwrap();
    let order: Vec<_> = page.items.iter().map(|event| (event.object_id.as_str(), event.sequence)).collect();
    let own: Vec<_> = order.iter().filter(|(of, _)| *of == "cs_one").map(|(_, sequence)| *sequence).collect();
    assert_eq!((own, order.len()), (vec![1, 2], 4), "{order:?}");
    store.close().await;
    world.end().await;
}

/// What waits for its place in the log, and what waits for a batch, tell how late whoever gives them is.
async fn the_oldest_of_what_waits_is_found_among_all_organizations(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    for oldest in [events::oldest_unlogged, ledger_batches::oldest_unsealed] {
        assert_eq!(store.read(oldest).await.unwrap(), None);
    }
    let began = store.write(|tx| {
        let now = tx.now();
        // Of each organization, when its events happened.
        for seconds in [&[50, 60][..], &[30, 20], &[40]] {
            let organization: Id<Organization> = tx.entropy().id(now);
            let scope = Scope { organization, mode: Mode::Live };
            for (sequence, second) in (1..).zip(seconds) {
                let created_at = now.plus(Duration::from_secs(*second));
                let (id, kind, body) =
                    (tx.entropy().id(created_at), EventType::CheckoutCancelled.into(), "{}".to_owned());
                let object_id = "cs_one".to_owned();
                events::append(tx, &Event { id, scope, kind, object_id, sequence, body, created_at })?;
                let entry: Id<Entry> = tx.entropy().id(created_at.plus(Duration::from_secs(1)));
                let waits = "insert into ledger_unsealed (organization_id, mode, entry_id) values ($1, 'live', $2)";
                tx.execute(waits, &[organization.to_string().into(), entry.to_string().into()])?;
            }
        }
        Ok::<_, Error>(now)
    });
    let began = began.await.unwrap();
    let second = |second| Some(began.plus(Duration::from_secs(second)).micros() / 1000);
    let event = store.read(events::oldest_unlogged).await.unwrap();
    let entry = store.read(ledger_batches::oldest_unsealed).await.unwrap();
    assert_eq!([event, entry].map(|at| at.map(|at| at.micros() / 1000)), [second(20), second(21)]);
    while store.write(|tx| events::number(tx, 100)).await.unwrap() > 0 {}
    assert_eq!(store.read(events::oldest_unlogged).await.unwrap(), None);
    store.close().await;
}
