//! What is held ends with its holder: by time, by a clock that went back, and where a file is opened anew.

use std::sync::Arc;
use std::time::Duration;

use domain::checkout::Checkout;
use domain::event::{Event, EventType};
use domain::job::{ClaimedJob, Job, Lane};
use domain::mail::{Mail, MailKind};
use domain::organization::Organization;
use domain::webhook::Delivery;
use domain::{Id, Mode, Scope, Timestamp};
use store::lease::{self, Token};
use store::queries::{deliveries, jobs, mails};
use store::{Error, Schema, Settings, Store, Tx};

use crate::on_both;
use crate::world::{System, World, entropy};

on_both!(
    what_a_clock_that_was_ahead_held_is_free,
    a_lease_that_is_given_back_is_free,
    what_is_owed_anew_is_in_nobodys_hands,
    what_is_owed_again_is_in_its_own_lane,
    what_is_put_off_twice_was_put_off_once,
    real_money_waits_for_nothing_that_runs_out_and_for_no_test,
    what_a_later_version_owes_is_left_to_it
);

const HOUR: Duration = Duration::from_secs(3600);
const LEASE: Duration = Duration::from_secs(30);
const LEASE_US: i64 = 30_000_000;

/// A job, a mail and a delivery, owed and held by somebody who says nothing any more, and a lease.
async fn held(store: &Store, ahead: Duration) -> ClaimedJob {
    let held = store.write(move |tx| {
        let now = tx.now();
        let organization = tx.entropy().id(now);
        tx.insert(&mut Organization::new(organization, Mode::Test, "Kairaba Books".into(), now))?;
        let scope = Scope { organization, mode: Mode::Test };
        let until = now.plus(ahead).plus(LEASE);
        let id: Id<Checkout> = tx.entropy().id(now);
        let job = jobs::hold(tx, scope, Job::ExpireCheckout(id), until)?;
        let id = tx.entropy().id(now);
        let recipient = "awa@example.org".to_owned();
        mails::insert(tx, &Mail::owed(id, scope, MailKind::Invoice, "inv_1".into(), recipient, now))?;
        assert_eq!(mails::claim(tx, scope, MailKind::Invoice, 1, until)?.len(), 1);
        let (event, endpoint) = (tx.entropy().id(now), tx.entropy().id(now));
        let (kind, object_id, body) = (EventType::CheckoutExpired, "cs_1".to_owned(), "{}".to_owned());
        let event = Event { id: event, scope, kind: kind.into(), object_id, sequence: 1, body, created_at: now };
        deliveries::insert(tx, &Delivery::owed(&event, endpoint, now))?;
        assert_eq!(claim_deliveries(tx, until)?, 1);
        let ahead_us = i64::try_from(ahead.as_micros()).unwrap();
        assert_eq!(lease::take(tx, "sequencer", "dead", ahead_us + LEASE_US)?, Some(Token(1)));
        Ok::<_, Error>(job)
    });
    held.await.unwrap()
}

fn claim_deliveries(tx: &mut Tx<'_>, until: Timestamp) -> Result<usize, Error> {
    let line = deliveries::endpoints_due(tx)?;
    let due = deliveries::due(tx, 10, &line, &mut Vec::new(), false)?;
    let held: Result<Vec<_>, Error> = due.iter().map(|due| deliveries::lease(tx, due, until)).collect();
    Ok(held?.into_iter().flatten().count())
}

fn claim_mails(tx: &mut Tx<'_>, until: Timestamp) -> Result<usize, Error> {
    let owed = mails::owed(tx, Mode::Test)?;
    let claimed = owed.iter().map(|owed| Ok(mails::claim(tx, owed.scope, owed.kind, 10, until)?.len()));
    claimed.sum()
}

/// How much of it another process gets now: jobs, mails and deliveries, the lease.
async fn free(store: &Store) -> (Vec<ClaimedJob>, [usize; 2], bool) {
    let soon = |tx: &Tx<'_>| tx.now().plus(LEASE);
    let taken = store.write(move |tx| {
        let due =
            [jobs::next_due(tx, Lane::Test)?, mails::next_due(tx, &[Mode::Test])?, deliveries::next_due(tx, &[])?];
        let until = soon(tx);
        let found = (
            jobs::claim(tx, Lane::Test, 10, until)?,
            [claim_mails(tx, until)?, claim_deliveries(tx, until)?],
            lease::take(tx, "sequencer", "alive", LEASE_US)?.is_some(),
        );
        let is_due = |due: &Option<Timestamp>| due.is_some_and(|due| due <= tx.now());
        assert_eq!(due.map(|due| is_due(&due)), [!found.0.is_empty(), found.1[0] > 0, found.1[1] > 0]);
        Ok::<_, Error>(found)
    });
    taken.await.unwrap()
}

async fn what_a_clock_that_was_ahead_held_is_free(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let first = held(&store, HOUR).await;
    let (claimed, others, lease) = free(&store).await;
    assert_eq!((claimed.len(), others, lease), (1, [1, 1], true));
    // As after any lease that ran out: it isn't the first try, and whoever held it can't end it.
    assert!(claimed[0].attempts == 2 && claimed[0].lease_token > first.lease_token, "{claimed:?}");
    assert_eq!(free(&store).await, (vec![], [0, 0], true), "these are held; the lease is its holder's");
    store.close().await;
}

async fn a_lease_that_is_given_back_is_free(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let given = store.write(|tx| {
        assert_eq!(lease::take(tx, "sequencer", "a", LEASE_US)?, Some(Token(1)));
        lease::give_back(tx, "sequencer", "b")?;
        assert_eq!(lease::take(tx, "sequencer", "b", LEASE_US)?, None, "it was not theirs to give");
        lease::give_back(tx, "sequencer", "a")?;
        lease::take(tx, "sequencer", "b", LEASE_US)
    });
    assert_eq!(given.await, Ok(Some(Token(2))));
    store.close().await;
}

/// Of a merchant that is there, and work of theirs that is owed nowhere yet.
fn picture_of_merchant(tx: &mut Tx<'_>) -> Result<(Scope, Job), Error> {
    let now = tx.now();
    let organization: Id<Organization> = tx.entropy().id(now);
    tx.insert(&mut Organization::new(organization, Mode::Test, "Kairaba Books".into(), now))?;
    Ok((Scope { organization, mode: Mode::Test }, Job::FetchLogo(organization, Mode::Test)))
}

async fn what_is_owed_anew_is_in_nobodys_hands(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let ended = store.write(|tx| {
        let now = tx.now();
        let (scope, job) = picture_of_merchant(tx)?;
        let claim = |tx: &mut Tx<'_>| jobs::claim(tx, Lane::Aside, 10, now.plus(LEASE));
        jobs::schedule_anew(tx, scope, job, now)?;
        let first = claim(tx)?.remove(0);
        jobs::schedule_anew(tx, scope, job, now)?;
        // Whoever had it in hand comes to an end, and gets no more time.
        assert!(!jobs::renew(tx, &first, now.plus(HOUR))?);
        jobs::again(tx, &first, now.plus(HOUR))?;
        jobs::done(tx, &first)?;
        let second = claim(tx)?;
        assert!(second.len() == 1 && second[0].attempts == 1, "{second:?}");
        assert!(second[0].lease_token > first.lease_token);
        assert!(jobs::renew(tx, &second[0], now.plus(LEASE))?);
        // It waits for its next try.
        jobs::again(tx, &second[0], now.plus(HOUR))?;
        assert_eq!(claim(tx)?, []);
        jobs::schedule_anew(tx, scope, job, now)?;
        let third = claim(tx)?;
        assert!(third.len() == 1 && third[0].attempts == 1, "{third:?}");
        jobs::done(tx, &third[0])?;
        jobs::is_owed(tx, job)
    });
    assert_eq!(ended.await, Ok(false));
    store.close().await;
}

/// Nobody knew whether the first was stored.
async fn what_is_put_off_twice_was_put_off_once(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let put_off = store.write(|tx| {
        let now = tx.now();
        let (scope, job) = picture_of_merchant(tx)?;
        let claim = |tx: &mut Tx<'_>| Ok::<_, Error>(jobs::claim(tx, Lane::Aside, 10, now.plus(LEASE))?.remove(0));
        jobs::schedule(tx, scope, job, now)?;
        let first = claim(tx)?;
        jobs::put_off(tx, &first, now)?;
        jobs::put_off(tx, &first, now)?;
        assert!(!jobs::renew(tx, &first, now.plus(LEASE))?, "it is in nobody's hands");
        let second = claim(tx)?;
        assert_eq!(second.attempts, 1, "nobody has begun it");
        jobs::put_off(tx, &first, now)?;
        assert!(jobs::renew(tx, &second, now.plus(LEASE))?, "it is in another's");
        Ok::<_, Error>(())
    });
    put_off.await.unwrap();
    store.close().await;
}

/// However much of that is due, and since when.
async fn real_money_waits_for_nothing_that_runs_out_and_for_no_test(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let claimed = store.write(|tx| {
        let now = tx.now();
        let organization: Id<Organization> = tx.entropy().id(now);
        let [live, test] = [Mode::Live, Mode::Test].map(|mode| Scope { organization, mode });
        for _ in 0..100 {
            let (checkout, refund) = (tx.entropy().id(now), tx.entropy().id(now));
            jobs::schedule(tx, live, Job::ExpireCheckout(checkout), now.minus(HOUR))?;
            jobs::schedule(tx, test, Job::SendRefund(refund), now.minus(HOUR))?;
        }
        let refund = tx.entropy().id(now);
        jobs::schedule(tx, live, Job::SendRefund(refund), now)?;
        assert_eq!(jobs::next_due(tx, Lane::Prompt)?, Some(now));
        let claimed = jobs::claim(tx, Lane::Prompt, 32, now.plus(LEASE))?;
        assert_eq!(claimed.iter().map(|claimed| claimed.job).collect::<Vec<_>>(), [Job::SendRefund(refund)]);
        let timers = jobs::claim(tx, Lane::Timers, 200, now.plus(LEASE))?;
        let tests = jobs::claim(tx, Lane::Test, 200, now.plus(LEASE))?;
        Ok::<_, Error>([timers.len(), tests.len()])
    });
    assert_eq!(claimed.await, Ok([100, 100]));
    store.close().await;
}

type Owe = fn(&mut Tx<'_>, Scope, Job) -> Result<(), Error>;

/// A lease that ends at once leaves it to whoever looks.
const EACH_WAY: [Owe; 3] = [
    |tx, scope, job| jobs::schedule(tx, scope, job, tx.now()),
    |tx, scope, job| jobs::schedule_anew(tx, scope, job, tx.now()),
    |tx, scope, job| jobs::hold(tx, scope, job, tx.now()).map(drop),
];

/// A process of the version before, in an upgrade, has written it into another.
async fn what_is_owed_again_is_in_its_own_lane(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let ended = store.write(|tx| {
        let now = tx.now();
        let (scope, job) = picture_of_merchant(tx)?;
        for (way, owe) in EACH_WAY.into_iter().enumerate() {
            jobs::schedule(tx, scope, job, now)?;
            let other = Lane::Ahead.number().into();
            assert_eq!(tx.execute("update jobs set lane = $1", &[other])?, 1);
            owe(tx, scope, job)?;
            assert_eq!(jobs::next_due(tx, Lane::Ahead)?, None, "way {way}");
            assert_eq!(jobs::claim(tx, Lane::Ahead, 10, now.plus(LEASE))?, [], "way {way}");
            let claimed = jobs::claim(tx, Lane::Aside, 10, now.plus(LEASE))?;
            assert!(claimed.len() == 1 && claimed[0].job == job, "way {way}: {claimed:?}");
            jobs::cancel(tx, job)?;
        }
        jobs::is_owed(tx, job)
    });
    assert_eq!(ended.await, Ok(false));
    store.close().await;
}

/// A process of a later version owes it, in an upgrade, and does it.
async fn what_a_later_version_owes_is_left_to_it(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let claimed = store.write(|tx| {
        let now = tx.now();
        let (scope, job) = picture_of_merchant(tx)?;
        jobs::schedule(tx, scope, job, now)?;
        assert_eq!(tx.execute("update jobs set kind = 'fetch_film'", &[])?, 1);
        assert_eq!(jobs::next_due(tx, Lane::Aside)?, None);
        assert_eq!(jobs::claim(tx, Lane::Aside, 10, now.plus(LEASE))?, []);
        let row = tx.query_one("select attempts, lease_until from jobs", &[])?;
        Ok::<_, Error>((row.get::<i64>("attempts")?, row.get::<i64>("lease_until")?))
    });
    assert_eq!(claimed.await, Ok((0, 0)), "nobody has had it in hand");
    store.close().await;
}

/// A guest beside a server ends nothing; who serves the file next ends all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_held_in_a_file_is_free_when_it_is_opened_to_be_served() {
    let world = World::sqlite();
    let open = |secondary| {
        let settings = Settings { secondary, ..world.settings.clone() };
        async move { Store::open(settings, Arc::new(System), entropy()).await.unwrap() }
    };
    let server = open(false).await;
    let first = held(&server, Duration::ZERO).await;
    let guest = open(true).await;
    assert_eq!(free(&guest).await, (vec![], [0, 0], false));
    guest.close().await;
    assert_eq!(free(&server).await, (vec![], [0, 0], false));
    // It dies with everything in its hands.
    server.close().await;
    let server = open(false).await;
    let (claimed, others, lease) = free(&server).await;
    assert_eq!((claimed.len(), others, lease), (1, [1, 1], true));
    assert!(claimed[0].attempts == 2 && claimed[0].lease_token > first.lease_token, "{claimed:?}");
    server.close().await;
    world.end().await;
}
