//! Mails that are owed: held by one worker at a time, and by another when that one falls silent.

use std::time::Duration;

use domain::checkout::Checkout;
use domain::job::{Job, Lane};
use domain::mail::{Mail, MailAttempted, MailKind, MailStatus};
use domain::organization::Organization;
use domain::{Id, Mode, Scope};
use store::queries::jobs;
use store::queries::mails::{self, ClaimedMail};
use store::{Dialect, Error, Schema, Store};

use crate::on_both;
use crate::world::World;

on_both!(
    a_mail_is_held_by_one_worker,
    a_silent_workers_mail_goes_to_another_who_answers_for_it,
    what_is_over_or_not_due_is_not_claimed,
    the_modes_are_claimed_apart,
    a_row_can_not_contradict_itself,
    a_mail_that_cannot_be_read_keeps_nobody_waiting,
    what_is_due_at_the_same_moment_is_claimed_by_its_name,
);

const OBJECT: &str = "inv_01jd8zv5k2e9rb4x7q3mwhcg6t";
/// As the worker takes it: one twice as long counts as taken by a clock that was ahead, which one of these may be by a little.
const LEASE: Duration = Duration::from_secs(30);

async fn open(world: &World) -> (Store, Scope) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let made = store.write(|tx| {
        let now = tx.now();
        let id = tx.entropy().id(now);
        tx.insert(&mut Organization::new(id, Mode::Test, "Kairaba Books".into(), now))?;
        Ok::<_, Error>(id)
    });
    let organization = made.await.unwrap();
    (store, Scope { organization, mode: Mode::Test })
}

async fn owe(store: &Store, scope: Scope) {
    let owed = store.write(move |tx| {
        let now = tx.now();
        let id = tx.entropy().id(now);
        mails::insert(tx, &Mail::owed(id, scope, MailKind::Invoice, OBJECT.into(), "awa@example.org".into(), now))
    });
    owed.await.unwrap();
}

async fn claim(store: &Store, lease: Duration) -> Vec<ClaimedMail> {
    store.write(move |tx| mails::claim(tx, Mode::Test, 10, tx.now().plus(lease))).await.unwrap()
}

async fn finish(store: &Store, claimed: &ClaimedMail, outcome: MailAttempted) -> bool {
    let claimed = claimed.clone();
    let finished = store.write(move |tx| {
        let mut claimed = claimed.clone();
        claimed.mail.attempted(&outcome, tx.now(), 1000);
        mails::finish(tx, &claimed)
    });
    finished.await.unwrap()
}

async fn all(store: &Store, scope: Scope) -> Vec<Mail> {
    store.read(move |tx| mails::of_object(tx, scope, OBJECT)).await.unwrap()
}

async fn a_mail_is_held_by_one_worker(world: &World) {
    let (store, scope) = open(world).await;
    for _ in 0..20 {
        owe(&store, scope).await;
    }
    let mut claims = Vec::new();
    for _ in 0..8 {
        let store = store.clone();
        claims.push(tokio::spawn(async move { claim(&store, LEASE).await }));
    }
    let mut held = Vec::new();
    for claims in claims {
        held.extend(claims.await.unwrap().into_iter().map(|claimed| claimed.mail.id));
    }
    // Some may have met a lock that was about to go.
    held.extend(claim(&store, LEASE).await.into_iter().map(|claimed| claimed.mail.id));
    held.sort();
    let count = held.len();
    held.dedup();
    assert_eq!((held.len(), count), (20, 20), "each once");
}

async fn a_silent_workers_mail_goes_to_another_who_answers_for_it(world: &World) {
    let (store, scope) = open(world).await;
    owe(&store, scope).await;
    let first = claim(&store, Duration::ZERO).await.remove(0);
    let second = claim(&store, LEASE).await.remove(0);
    assert_eq!(first.mail, second.mail);
    let renew = |claimed: &ClaimedMail| {
        let claimed = claimed.clone();
        store.write(move |tx| mails::renew(tx, &claimed, tx.now().plus(LEASE)))
    };
    assert!(!renew(&first).await.unwrap(), "it was overtaken");
    assert!(renew(&second).await.unwrap());
    assert!(!finish(&store, &first, MailAttempted::Refused { error: "too late to say".into() }).await);
    assert_eq!(all(&store, scope).await[0].status, MailStatus::Pending);
    assert!(finish(&store, &second, MailAttempted::Accepted).await);
    let mail = all(&store, scope).await.remove(0);
    assert_eq!((mail.status, mail.attempts, mail.last_error), (MailStatus::Sent, 1, None));
}

async fn what_is_over_or_not_due_is_not_claimed(world: &World) {
    let (store, scope) = open(world).await;
    for _ in 0..3 {
        owe(&store, scope).await;
    }
    let held = claim(&store, LEASE).await;
    let outcomes = [
        MailAttempted::Accepted,
        MailAttempted::Refused { error: "550".into() },
        MailAttempted::Failed { error: "451".into() },
    ];
    for (claimed, outcome) in held.iter().zip(outcomes) {
        assert!(finish(&store, claimed, outcome).await);
    }
    assert!(claim(&store, LEASE).await.is_empty());
    let waits =
        store.read(|tx| Ok::<_, Error>(mails::next_due(tx, &[Mode::Test])?.map(|due_at| due_at.since(tx.now()))));
    let wait = waits.await.unwrap().unwrap();
    assert!(wait > Duration::ZERO && wait < Duration::from_secs(10), "{wait:?}");
    let mut known: Vec<_> = all(&store, scope).await.into_iter().map(|mail| mail.status.as_str()).collect();
    known.sort_unstable();
    assert_eq!(known, ["failed", "pending", "sent"]);
    let elsewhere = Scope { mode: Mode::Live, ..scope };
    assert!(all(&store, elsewhere).await.is_empty());
}

async fn the_modes_are_claimed_apart(world: &World) {
    let (store, scope) = open(world).await;
    for _ in 0..20 {
        owe(&store, scope).await;
    }
    let live = Scope { mode: Mode::Live, ..scope };
    owe(&store, live).await;
    let claim = |mode, limit| store.write(move |tx| mails::claim(tx, mode, limit, tx.now().plus(LEASE)));
    let of_live = claim(Mode::Live, 4).await.unwrap();
    assert_eq!(of_live.iter().map(|claimed| claimed.mail.scope).collect::<Vec<_>>(), [live]);
    let due =
        store.read(|tx| Ok::<_, Error>([Mode::Live, Mode::Test].map(|mode| mails::next_due(tx, &[mode]).unwrap())));
    assert!(matches!(due.await.unwrap(), [None, Some(_)]));
    assert_eq!(claim(Mode::Test, 4).await.unwrap().len(), 4);
}

async fn a_row_can_not_contradict_itself(world: &World) {
    let (store, scope) = open(world).await;
    owe(&store, scope).await;
    for wrong in [
        "update mails set status = 'sent'",
        "update mails set next_try_at = null",
        "update mails set sent_at = 1",
        "update mails set status = 'lost'",
    ] {
        let refused = store.write(move |tx| tx.execute(wrong, &[])).await;
        assert!(refused.is_err(), "{wrong}");
    }
}

/// Damaged, or of a later version beside this one.
async fn a_mail_that_cannot_be_read_keeps_nobody_waiting(world: &World) {
    let (store, scope) = open(world).await;
    owe(&store, scope).await;
    let later = store.write(|tx| tx.execute("update mails set id = 'a'", &[]));
    assert_eq!(later.await, Ok(1));
    if world.dialect() == Dialect::Sqlite {
        owe(&store, scope).await;
        // SQLite doesn't look whether it is UTF-8.
        let damage = "update mails set recipient = cast(x'ff' as text) where id <> 'a'";
        assert_eq!(store.write(|tx| tx.execute(damage, &[])).await, Ok(1));
    }
    owe(&store, scope).await;
    assert_eq!(claim(&store, LEASE).await.len(), 1);
    store.close().await;
}

/// On both databases the same ones come first, so that a history is the same on both.
async fn what_is_due_at_the_same_moment_is_claimed_by_its_name(world: &World) {
    let (store, scope) = open(world).await;
    let stored = store.write(move |tx| {
        let now = tx.now();
        let made_at = |minute: u64| now.plus(Duration::from_secs(60 * minute));
        for minute in [4, 1, 3, 0, 2] {
            let id = tx.entropy().id(made_at(minute));
            mails::insert(tx, &Mail::owed(id, scope, MailKind::Invoice, OBJECT.into(), "awa@example.org".into(), now))?;
            let id: Id<Checkout> = tx.entropy().id(made_at(minute));
            jobs::schedule(tx, scope, Job::ExpireCheckout(id), now)?;
        }
        Ok::<_, Error>(())
    });
    stored.await.unwrap();
    let claimed = store.write(|tx| {
        let lease = tx.now().plus(LEASE);
        let mails: Vec<String> =
            mails::claim(tx, Mode::Test, 4, lease)?.iter().map(|one| one.mail.id.to_string()).collect();
        let jobs: Vec<String> =
            jobs::claim(tx, Lane::Prompt, 4, lease)?.iter().map(|one| one.job.object_id()).collect();
        Ok::<_, Error>([mails, jobs])
    });
    for names in claimed.await.unwrap() {
        assert_eq!(names.len(), 4);
        assert!(names.is_sorted(), "{names:?}");
    }
    store.close().await;
}
