//! What an endpoint is owed that is made inactive: any number, so that it is given up by parts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, Uri};
use dalasi::app::delivery_outcomes::Ended;
use dalasi::app::delivery_places::{self, PLACES, Places};
use dalasi::app::verify::{self, Progress};
use dalasi::app::webhooks::{self, EndpointChange, NewEndpoint, Posted};
use dalasi::jobs;
use domain::event::{Event, EventType};
use domain::job::Job;
use domain::webhook::{Attempted, Delivery, EndpointStatus, EventFilter, WebhookEndpoint};
use domain::{Id, Metadata};
use store::queries::events::EventsFilter;
use store::queries::{PageRequest, deliveries, endpoints, events};
use store::{Database, Dialect};
use tokio::net::TcpListener;

use crate::cli::place::Place;
use crate::world::World;

/// More than two parts.
const OWED: i64 = 1_200;
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn what_is_owed_to_an_endpoint_is_given_up_by_parts() {
    given_up_by_parts(Database::SqliteMemory).await;
}

#[tokio::test]
async fn what_is_owed_to_an_endpoint_is_given_up_by_parts_on_postgres() {
    let Some(place) = Place::postgres("what is owed to an endpoint is given up by parts").await else { return };
    given_up_by_parts(place.settings()).await;
    place.end().await;
}

async fn given_up_by_parts(database: Database) {
    let world = World::complete(database).await;
    world.rest().await;
    let endpoint = endpoint(&world).await;
    let old = owe(&world, endpoint, OWED).await;

    turn(&world, endpoint, EndpointStatus::Inactive).await;
    assert_eq!(open(&world, endpoint).await, OWED - 500, "a part, in the transaction of the request");
    for event in &old {
        assert_eq!(status(&world, *event).await, "failed", "whether it is marked yet or not");
    }

    // What was given up stays so, and what comes now or is asked for by hand is owed.
    turn(&world, endpoint, EndpointStatus::Active).await;
    world.clock.advance(Duration::from_secs(1));
    let new = owe(&world, endpoint, 1).await[0];
    let by_hand = still_open(&world, endpoint, &old).await;
    let scope = world.scope;
    world.app.commit(move |tx, _| webhooks::retry(tx, scope, by_hand, None)).await.unwrap();
    for event in old.iter().filter(|event| **event != by_hand) {
        assert_eq!(status(&world, *event).await, "failed");
    }
    for event in [new, by_hand] {
        assert_eq!(status(&world, event).await, "pending");
    }
    let claimed = claim(&world).await;
    let sent: Vec<_> = claimed.iter().filter(|(_, is_sent)| *is_sent).map(|(event, _)| *event).collect();
    assert!(sent.iter().all(|event| [new, by_hand].contains(event)), "nothing else is sent: {sent:?}");

    let mut runs = 0;
    while let Some(claimed) = jobs::claim_due(&world.app, 1).await.pop() {
        assert!(jobs::run_one(&world.app, claimed).await);
        runs += 1;
    }
    assert!(runs > 0, "the rest is the worker's");
    assert_eq!(open(&world, endpoint).await, 2);
    let stored = world.app.read(move |tx, _| Ok(tx.find::<WebhookEndpoint>(scope, endpoint)?)).await.unwrap();
    assert!(stored.is_some_and(|endpoint| endpoint.giving_up.is_none()));

    let rest = owe(&world, endpoint, OWED).await;
    world.app.commit(move |tx, _| webhooks::delete(tx, scope, endpoint)).await.unwrap();
    assert_eq!(open(&world, endpoint).await, OWED + 2 - 500);
    assert_eq!(status(&world, rest[0]).await, "failed");
    assert_eq!(status(&world, *rest.last().unwrap()).await, "failed");
    while let Some(claimed) = jobs::claim_due(&world.app, 1).await.pop() {
        assert!(jobs::run_one(&world.app, claimed).await);
    }
    assert_eq!(open(&world, endpoint).await, 0);
    world.app.store().close().await;
}

/// Two processes' clocks are never the same.
#[tokio::test]
async fn what_happens_after_it_is_active_again_is_owed_whatever_another_clock_said() {
    let world = World::complete(Database::SqliteMemory).await;
    world.rest().await;
    let (scope, endpoint) = (world.scope, endpoint(&world).await);
    let ahead = move |tx: &mut store::Tx<'_>, _: &dalasi::app::Context| {
        let mut endpoint = tx.find::<WebhookEndpoint>(scope, endpoint)?.unwrap();
        endpoint.giving_up = Some(tx.now().plus(Duration::from_secs(2)));
        Ok(tx.save(&mut endpoint)?)
    };
    world.app.commit(ahead).await.unwrap();
    let checkout = world.create(|_| {}).await;
    world.cancel(checkout.id).await;
    let claimed = claim(&world).await;
    assert!(matches!(claimed[..], [(_, true)]), "{claimed:?}");
    world.has_clean_books().await;
    world.app.store().close().await;
}

#[tokio::test]
async fn what_cannot_be_read_keeps_nobody_waiting() {
    nobody_waits_for_what_cannot_be_read(Database::SqliteMemory).await;
}

#[tokio::test]
async fn what_cannot_be_read_keeps_nobody_waiting_on_postgres() {
    let Some(place) = Place::postgres("what cannot be read keeps nobody waiting").await else { return };
    nobody_waits_for_what_cannot_be_read(place.settings()).await;
    place.end().await;
}

/// An upgrade leaves a process of the version before running, which is asked for all events.
#[tokio::test]
async fn an_event_of_a_later_version_is_shown_by_its_name() {
    for place in Place::each("an event of a later version").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        let endpoint = endpoint(&world).await;
        let owed = owe(&world, endpoint, 3).await;
        let (scope, later) = (world.scope, owed[1]);
        let renamed = world.app.commit(move |tx, _| {
            let sql = "update events set type = 'balance.counted' where id = $1";
            Ok(tx.execute(sql, &[later.to_string().into()])?)
        });
        assert_eq!(renamed.await, Ok(1));
        let page = PageRequest { offset: 0, limit: 10, after: None };
        let found = world.app.read(move |tx, _| Ok(events::list(tx, scope, &EventsFilter::default(), &page)?)).await;
        let names: BTreeMap<_, _> =
            found.unwrap().items.iter().map(|event| (event.id, event.kind.as_str().to_owned())).collect();
        assert_eq!(
            owed.iter().map(|id| names[id].as_str()).collect::<Vec<_>>(),
            ["checkout.cancelled", "balance.counted", "checkout.cancelled"]
        );
        let shown = world.app.read(move |tx, _| webhooks::event(tx, scope, later)).await.unwrap();
        assert_eq!(serde_json::to_value(&shown).unwrap()["type"], "balance.counted");
        // It is the later version's to send.
        let claimed = claim(&world).await;
        assert!(claimed.iter().all(|(event, _)| *event != later) && claimed.len() == 2, "{claimed:?}");
        world.app.store().close().await;
        place.end().await;
    }
}

/// Written by a later version beside this one, in an upgrade; or lost.
async fn nobody_waits_for_what_cannot_be_read(database: Database) {
    let world = World::complete(database).await;
    world.rest().await;
    let (endpoint, other) = (endpoint(&world).await, endpoint(&world).await);
    let checkout = world.create(|_| {}).await;
    let owed = owe(&world, endpoint, 4).await;
    let of_damaged = owe(&world, other, 1).await;
    let [later, lost, damaged] = [0, 1, 2].map(|index: usize| owed[index].to_string());
    let changed = world.app.commit(move |tx, _| {
        tx.execute("update events set type = 'balance.counted' where id = $1", &[later.as_str().into()])?;
        tx.execute("delete from events where id = $1", &[lost.as_str().into()])?;
        let damage = match tx.dialect() {
            // SQLite doesn't look whether it is UTF-8.
            Dialect::Sqlite => "update events set body = cast(x'7bff7d' as text) where id = $1",
            Dialect::Postgres => "delete from events where id = $1",
        };
        tx.execute(damage, &[damaged.as_str().into()])?;
        tx.execute("update webhook_endpoints set doc = '{}' where id = $1", &[other.to_string().into()])?;
        let mut jobs = vec![
            "select 'count_balance', object_id, organization_id, mode, due_at, lane, 0, 0, 0",
            "select 'expire_session', object_id, organization_id, 'neither', due_at, lane, 0, 0, 0",
        ];
        if tx.dialect() == Dialect::Sqlite {
            jobs.push("select kind, cast(x'ff' as text), organization_id, mode, due_at, lane, 0, 0, 0");
        }
        for job in &jobs {
            let insert = "insert into jobs (kind, object_id, organization_id, mode, due_at, lane, attempts, lease_until, lease_token)";
            assert_eq!(tx.execute(&format!("{insert} {job} from jobs where kind = 'expire_checkout'"), &[])?, 1);
        }
        Ok(())
    });
    changed.await.unwrap();
    assert_eq!(claim(&world).await, [(owed[3], true)], "and not {of_damaged:?}");

    world.clock.advance(Duration::from_secs(90_000));
    let mut ran = Vec::new();
    while let Some(claimed) = jobs::claim_due(&world.app, 32).await.pop() {
        ran.push(claimed.job);
        assert!(jobs::run_one(&world.app, claimed).await);
    }
    assert_eq!(ran, [Job::ExpireCheckout(checkout.id)]);
    world.app.store().close().await;
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_read_is_owed_what_it_wants() {
    for place in Place::each("an endpoint that cannot be read is owed what it wants").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        let (lost, later, other) = (endpoint(&world).await, endpoint(&world).await, endpoint(&world).await);
        let before = owe(&world, lost, 40).await;
        let kept = world.app.commit(move |tx, _| {
            let kept = tx.query_one("select doc from webhook_endpoints where id = $1", &[lost.to_string().into()])?;
            let damaged = "update webhook_endpoints set doc = replace(doc, '\"*\"', '\"j\"') where id = $1";
            assert_eq!(tx.execute(damaged, &[lost.to_string().into()])?, 1);
            // As a later version may write it.
            let changed = "update webhook_endpoints set doc = \
                replace(replace(substr(doc, 1, length(doc) - 20) || '}', '\"*\"', '\"invoice.*\"'), \
                '\"status\":\"active\"', '\"status\":\"resting\"') where id = $1";
            assert_eq!(tx.execute(changed, &[later.to_string().into()])?, 1);
            Ok(kept.get::<String>("doc")?)
        });
        let kept = kept.await.unwrap();
        world.clock.advance(Duration::from_secs(1));
        let checkout = world.create(|_| {}).await;
        world.cancel(checkout.id).await;
        let owed = [open(&world, lost).await, open(&world, later).await, open(&world, other).await];
        assert_eq!(owed, [41, 0, 1], "rather too much than nothing, where what it wants can't be read either");
        let scope = world.scope;
        let listed = world.app.read(move |tx, _| Ok(endpoints::active(tx, scope)?.count())).await.unwrap();
        assert_eq!(listed, 3);
        assert_eq!(status(&world, before[0]).await, "pending");
        let again = before[0];
        world.app.commit(move |tx, _| webhooks::retry(tx, scope, again, None)).await.unwrap();
        let report = world.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap();
        let faults = format!("{:?}", report.faults);
        assert!([lost, later].iter().all(|one| faults.contains(&one.to_string())), "{faults}");

        // What is owed to it for longer takes nobody's turn.
        let claimed = world.app.commit(|tx, _| {
            let until = tx.now().plus(Duration::from_millis(1));
            Ok(webhooks::claim(tx, 32, until, &mut Places::default())?.len())
        });
        assert_eq!(claimed.await.unwrap(), 1 + 1, "the other's, and the retry to the other");
        world.clock.advance(Duration::from_secs(1));
        let mend = move |tx: &mut store::Tx<'_>, _: &dalasi::app::Context| {
            let values = [lost.to_string().into(), kept.as_str().into()];
            Ok(tx.execute("update webhook_endpoints set doc = $2 where id = $1", &values)?)
        };
        assert_eq!(world.app.commit(mend).await.unwrap(), 1);
        assert_eq!(claim(&world).await.len(), 41 + 2, "nothing is lost");
        world.app.store().close().await;
        place.end().await;
    }
}

/// Nothing is written for it, however much it is owed, and nobody is woken for it again and again.
#[tokio::test]
async fn an_endpoint_that_cannot_be_read_is_left_alone_for_a_while() {
    for place in Place::each("an endpoint that cannot be read is left alone for a while").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        let lost = endpoint(&world).await;
        owe(&world, lost, 200).await;
        let looked = world.app.commit(move |tx, _| {
            tx.execute("update webhook_endpoints set doc = '{}' where id = $1", &[lost.to_string().into()])?;
            let (until, mut places) = (tx.now().plus(Duration::from_secs(30)), Places::default());
            let claimed = webhooks::claim(tx, 32, until, &mut places)?.len();
            let held = tx.query_one("select count(*) as held from webhook_deliveries where lease_until > 0", &[])?;
            let passed_over = places.passed_over(tx.now());
            Ok((claimed, held.get::<i64>("held")?, deliveries::next_due(tx, &passed_over)?, places))
        });
        let (claimed, held, next_due, places) = looked.await.unwrap();
        assert_eq!((claimed, held, next_due), (0, 0, None));
        world.clock.advance(Duration::from_secs(30));
        let next_due = world.app.read(move |tx, _| {
            let passed_over = places.passed_over(tx.now());
            Ok(deliveries::next_due(tx, &passed_over)?)
        });
        assert!(next_due.await.unwrap().is_some(), "somebody may have mended it");
        world.app.store().close().await;
        place.end().await;
    }
}

/// There may be any number of merchants: how late the work is, is asked of those that are owed something.
#[tokio::test]
async fn who_is_owed_nothing_is_not_asked_whether_it_fails() {
    for place in Place::each("who is owed nothing is not asked whether it fails").await {
        let mut world = World::complete(place.settings()).await;
        world.rest().await;
        let idle = endpoint(&world).await;
        world.scope.organization = world.another().await;
        let failing = endpoint(&world).await;
        world.forget_checksums().await;
        let fail = "update webhook_endpoints set doc = \
            replace(doc, '\"consecutive_failures\":0', '\"consecutive_failures\":9')";
        assert_eq!(world.app.commit(move |tx, _| Ok(tx.execute(fail, &[])?)).await, Ok(2));
        let well = endpoint(&world).await;
        for (owed, is_late) in [(failing, false), (well, true)] {
            owe(&world, owed, 1).await;
            let found = world.app.read(|tx, _| {
                let failing = delivery_places::failing(tx)?;
                Ok((deliveries::next_due(tx, &failing)?.is_some(), failing))
            });
            assert_eq!(found.await.unwrap(), (is_late, vec![failing]), "{owed}, and not {idle}");
        }
        world.app.store().close().await;
        place.end().await;
    }
}

/// The merchant has moved it since the attempt began: what the address of before answers says nothing of the endpoint.
#[tokio::test]
async fn what_the_address_of_before_answers_disables_nothing() {
    let world = World::complete(Database::SqliteMemory).await;
    world.rest().await;
    let (scope, endpoint) = (world.scope, endpoint(&world).await);
    let event = owe(&world, endpoint, 1).await[0];
    let gone = Attempted::Failed { status: Some(410), error: "gone".into(), retry_after: None, gone: true };
    let claimed = world.app.commit(|tx, _| {
        let until = tx.now().plus(Duration::from_secs(30));
        webhooks::claim(tx, 10, until, &mut Places::default())
    });
    let claimed = claimed.await.unwrap().remove(0);
    let posted = Posted { url: claimed.endpoint.unwrap().url, outcome: gone };
    let outcome = Attempted::Failed { status: Some(500), error: "no".into(), retry_after: None, gone: false };
    let failed = Posted { outcome, ..posted.clone() };
    world.app.commit(move |tx, context| webhooks::standing(tx, context, scope, endpoint, &failed)).await.unwrap();
    let change = EndpointChange { url: Some("https://hooks.shop.example/new".into()), ..EndpointChange::default() };
    world.app.commit(move |tx, _| webhooks::update(tx, scope, endpoint, &change)).await.unwrap();
    let ended = Ended { claimed: claimed.claimed.clone(), posted: Some(posted.clone()) };
    world.app.store_attempts(endpoint, vec![ended]).await.unwrap();
    let tested = posted.clone();
    world.app.commit(move |tx, context| webhooks::standing(tx, context, scope, endpoint, &tested)).await.unwrap();
    let stored = async || {
        let found = world.app.read(move |tx, _| Ok(tx.find::<WebhookEndpoint>(scope, endpoint)?)).await;
        found.unwrap().expect("it is there")
    };
    let moved = stored().await;
    assert_eq!((moved.status, moved.consecutive_failures, moved.failing_since), (EndpointStatus::Active, 0, None));
    assert_eq!(status(&world, event).await, "pending", "the new address hears of it");
    // The new one is gone as well.
    let posted = Posted { url: moved.url.clone(), ..posted };
    world.clock.advance(Duration::from_secs(1));
    world.app.commit(move |tx, context| webhooks::standing(tx, context, scope, endpoint, &posted)).await.unwrap();
    let disabled = stored().await;
    assert_eq!(disabled.status, EndpointStatus::Inactive);
    assert!(disabled.updated_at > moved.updated_at, "it is another one by now");
    assert_eq!(status(&world, event).await, "failed");
    world.app.store().close().await;
}

/// What arrived at once changes its endpoint once; what failed, and what arrived at an address of before, each for itself.
#[tokio::test]
async fn what_arrived_at_one_endpoint_is_stored_together() {
    for place in Place::each("what arrived at one endpoint is stored together").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        let (scope, id) = (world.scope, endpoint(&world).await);
        let owed = owe(&world, id, 9).await;
        let claimed = world.app.commit(|tx, _| {
            let until = tx.now().plus(Duration::from_secs(30));
            webhooks::claim(tx, 10, until, &mut Places::default())
        });
        let mut statuses = [200, 204, 200, 204, 200, 200, 200, 500, 410].into_iter();
        let ended = claimed.await.unwrap().into_iter().map(|dispatch| {
            let outcome = match statuses.next().unwrap() {
                status @ (200 | 204) => Attempted::Succeeded { status },
                status => Attempted::Failed {
                    status: Some(status),
                    error: "no".into(),
                    retry_after: None,
                    gone: status == 410,
                },
            };
            let url = dispatch.endpoint.unwrap().url;
            Ended { claimed: dispatch.claimed, posted: Some(Posted { url, outcome }) }
        });
        let mut ended: Vec<_> = ended.collect();
        ended[6].posted.as_mut().unwrap().url = "https://hooks.shop.example/before".into();
        world.app.store_attempts(id, ended).await.unwrap();
        let stored = world.app.read(move |tx, _| Ok(tx.find::<WebhookEndpoint>(scope, id)?)).await.unwrap().unwrap();
        assert_eq!((stored.version, stored.status), (4, EndpointStatus::Inactive), "made, arrived, failed, gone");
        let mut told = Vec::new();
        for event in owed {
            told.push(status(&world, event).await);
        }
        let delivered = "delivered".to_owned();
        assert_eq!(
            (&told[..7], &told[7..]),
            (&vec![delivered; 7][..], &["failed".to_owned(), "failed".to_owned()][..])
        );
        world.app.store().close().await;
        place.end().await;
    }
}

/// An endpoint that comes back takes what it missed: one transaction for each would wait for the one before it.
#[tokio::test]
async fn what_arrives_at_a_later_try_is_stored_together_too() {
    for place in Place::each("what arrives at a later try is stored together too").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        let (scope, id) = (world.scope, endpoint(&world).await);
        let owed = owe(&world, id, 4).await;
        let version = async || {
            let found = world.app.read(move |tx, _| Ok(tx.find::<WebhookEndpoint>(scope, id)?)).await;
            found.unwrap().unwrap().version
        };
        let attempt = async |outcome: Attempted| {
            let claimed = world.app.commit(|tx, _| {
                let until = tx.now().plus(Duration::from_secs(30));
                webhooks::claim(tx, 10, until, &mut Places::default())
            });
            let ended = claimed.await.unwrap().into_iter().map(|dispatch| {
                let posted = Posted { url: dispatch.endpoint.unwrap().url, outcome: outcome.clone() };
                Ended { claimed: dispatch.claimed, posted: Some(posted) }
            });
            let ended: Vec<_> = ended.collect();
            assert_eq!(ended.len(), owed.len());
            let before = version().await;
            world.app.store_attempts(id, ended).await.unwrap();
            version().await - before
        };
        let failed = Attempted::Failed { status: Some(503), error: "no".into(), retry_after: None, gone: false };
        assert_eq!(attempt(failed).await, 4);
        world.clock.advance(Duration::from_secs(10));
        assert_eq!(attempt(Attempted::Succeeded { status: 204 }).await, 1);
        for event in &owed {
            assert_eq!(status(&world, *event).await, "delivered");
        }
        world.app.store().close().await;
        place.end().await;
    }
}

/// Takes everything; gives its address, and how often each path was asked.
pub(crate) async fn receiver() -> (String, Arc<Mutex<BTreeMap<String, usize>>>) {
    let heard: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let counted = Arc::clone(&heard);
    let take = move |uri: Uri| async move {
        *counted.lock().unwrap().entry(uri.path().to_owned()).or_default() += 1;
        StatusCode::NO_CONTENT
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(take)).await });
    (address, heard)
}

/// It would take up all of the worker, which has to wait for the database with each.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stored_yet_keeps_no_other_endpoint_waiting() {
    let Some(place) = Place::postgres("what cannot be stored yet keeps no other endpoint waiting").await else {
        return;
    };
    let world = World::complete(place.settings()).await;
    let (address, heard) = receiver().await;
    let count = |path: &str| heard.lock().unwrap().get(path).copied().unwrap_or_default();
    let stuck = endpoint_at(&world, format!("{address}/stuck")).await;
    let other = endpoint_at(&world, format!("{address}/other")).await;
    let holder = place.raw_postgres().await;
    let lock = format!("begin; select id from webhook_endpoints where id = '{stuck}' for update");
    holder.batch_execute(&lock).await.unwrap();
    owe(&world, stuck, 300).await;
    // As many as it gets: no more come for a while.
    let all = async {
        let mut before = 0;
        while before == 0 || count("/stuck") > before {
            before = count("/stuck");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("they are sent");
    assert!(count("/stuck") < PLACES / 2, "one endpoint has taken {} of {PLACES}", count("/stuck"));
    owe(&world, other, 1).await;
    let arrives = async {
        while count("/other") == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // Sooner than the wait for the lock is given up.
    tokio::time::timeout(Duration::from_secs(5), arrives).await.expect("there is a place for it");
    holder.batch_execute("rollback").await.unwrap();
    let stored = async {
        while open(&world, stuck).await + open(&world, other).await > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, stored).await.expect("all of it is stored");
    assert_eq!((count("/stuck"), count("/other")), (300, 1), "each once");
    world.close().await;
    place.end().await;
}

/// Each has its place from the one before it, and is looked for as soon as that one is stored.
#[tokio::test(flavor = "multi_thread")]
async fn one_objects_events_follow_each_other_without_a_pause() {
    for place in Place::each("one object's events follow each other without a pause").await {
        let world = World::complete(place.settings()).await;
        let (address, _) = receiver().await;
        let id = endpoint_at(&world, address).await;
        let scope = world.scope;
        let owed = world.app.commit(move |tx, _| {
            let now = tx.now();
            let object_id = tx.entropy().id::<domain::checkout::Checkout>(now).to_string();
            for sequence in 1..=30 {
                let (event, object_id) = (tx.entropy().id(now), object_id.clone());
                let (kind, body) = (EventType::CheckoutCancelled, r#"{"data":{}}"#.to_owned());
                let event = Event { id: event, scope, kind: kind.into(), object_id, sequence, body, created_at: now };
                events::append(tx, &event)?;
                deliveries::insert(tx, &Delivery::owed(&event, id, now))?;
            }
            Ok(())
        });
        owed.await.unwrap();
        let all = async {
            while open(&world, id).await > 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        // A worker that nobody wakes looks once in a second.
        tokio::time::timeout(Duration::from_secs(15), all)
            .await
            .expect("each is sent when the one before it has arrived");
        world.close().await;
        place.end().await;
    }
}

pub(crate) async fn endpoint(world: &World) -> Id<WebhookEndpoint> {
    endpoint_at(world, "http://127.0.0.1:9/hook".into()).await
}

pub(crate) async fn endpoint_at(world: &World, url: String) -> Id<WebhookEndpoint> {
    let scope = world.scope;
    let new = NewEndpoint {
        url,
        enabled_events: vec![EventFilter::parse("*").unwrap()],
        description: None,
        metadata: Metadata::default(),
    };
    world.app.commit(move |tx, context| webhooks::create(tx, context, scope, &new)).await.unwrap().endpoint.id
}

pub(crate) async fn owe(world: &World, endpoint: Id<WebhookEndpoint>, count: i64) -> Vec<Id<Event>> {
    let scope = world.scope;
    let owed = world.app.commit(move |tx, _| {
        let now = tx.now();
        let mut all = Vec::new();
        for _ in 0..count {
            let (id, object_id) =
                (tx.entropy().id(now), tx.entropy().id::<domain::checkout::Checkout>(now).to_string());
            let (kind, body) = (EventType::CheckoutCancelled, r#"{"data":{}}"#.to_owned());
            let event = Event { id, scope, kind: kind.into(), object_id, sequence: 1, body, created_at: now };
            events::append(tx, &event)?;
            deliveries::insert(tx, &Delivery::owed(&event, endpoint, now))?;
            all.push(id);
        }
        Ok(all)
    });
    owed.await.unwrap()
}

async fn turn(world: &World, endpoint: Id<WebhookEndpoint>, status: EndpointStatus) {
    let (scope, change) = (world.scope, EndpointChange { status: Some(status), ..EndpointChange::default() });
    world.app.commit(move |tx, _| webhooks::update(tx, scope, endpoint, &change)).await.unwrap();
}

async fn open(world: &World, endpoint: Id<WebhookEndpoint>) -> i64 {
    const OPEN: &str = "select count(*) as open from webhook_deliveries where endpoint_id = $1 and status = 'pending'";
    let read = world.app.read(move |tx, _| Ok(tx.query_one(OPEN, &[endpoint.to_string().into()])?.get("open")?));
    read.await.unwrap()
}

/// One that nobody has marked yet.
async fn still_open(world: &World, endpoint: Id<WebhookEndpoint>, of: &[Id<Event>]) -> Id<Event> {
    const OPEN: &str = "select event_id from webhook_deliveries where endpoint_id = $1 and status = 'pending'";
    let read = world.app.read(move |tx, _| {
        let rows = tx.query(OPEN, &[endpoint.to_string().into()])?;
        Ok(rows.iter().map(|row| row.get::<String>("event_id")).collect::<Result<Vec<_>, _>>()?)
    });
    let open = read.await.unwrap();
    *of.iter().find(|event| open.contains(&event.to_string())).unwrap()
}

async fn status(world: &World, event: Id<Event>) -> String {
    let scope = world.scope;
    let view = world.app.read(move |tx, _| webhooks::event(tx, scope, event)).await.unwrap();
    serde_json::to_value(view).unwrap()["status"].as_str().unwrap().to_owned()
}

/// Everything that is due, and whether it would be sent.
async fn claim(world: &World) -> Vec<(Id<Event>, bool)> {
    let claimed = world.app.commit(|tx, _| {
        let until = tx.now().plus(Duration::from_millis(1));
        let claimed = webhooks::claim(tx, 2_000, until, &mut Default::default())?;
        Ok(claimed.iter().map(|one| (one.event.id, one.endpoint.is_some())).collect::<Vec<_>>())
    });
    claimed.await.unwrap()
}
