//! Mails that are owed: held by one worker at a time, and by another when that one falls silent.

use std::sync::Arc;
use std::time::Duration;

use domain::checkout::Checkout;
use domain::job::{Job, Lane};
use domain::mail::{Mail, MailAttempted, MailKind, MailStatus};
use domain::organization::Organization;
use domain::{Entropy, Id, Mode, Scope, Timestamp};
use store::queries::jobs;
use store::queries::mails::{self, ClaimedMail};
use store::{Dialect, Error, Schema, Store, Tx};

use crate::on_both;
use crate::world::{Known, World, count_rows};

on_both!(
    a_mail_is_held_by_one_worker,
    a_silent_workers_mail_goes_to_another_who_answers_for_it,
    what_is_in_hand_stays_with_its_holder,
    what_is_over_or_not_due_is_not_claimed,
    the_modes_are_claimed_apart,
    a_row_can_not_contradict_itself,
    a_mail_that_cannot_be_read_keeps_nobody_waiting,
    what_is_due_at_the_same_moment_is_claimed_by_its_name,
    each_is_found_behind_what_the_others_are_owed,
    a_look_passes_over_no_other_mail,
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

/// Up to ten of everybody who is owed some in test mode.
async fn claim(store: &Store, lease: Duration) -> Vec<ClaimedMail> {
    let claimed = store.write(move |tx| {
        let mut claimed = Vec::new();
        for owed in mails::owed(tx, Mode::Test)? {
            claimed.extend(mails::claim(tx, owed.scope, owed.kind, 10, tx.now().plus(lease))?);
        }
        Ok::<_, Error>(claimed)
    });
    claimed.await.unwrap()
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
    assert_eq!((mail.status, mail.attempts, mail.last_error.as_deref()), (MailStatus::Sent, 1, None));
    // That was the last word, though its commit was lost and it is said again.
    for outcome in [MailAttempted::Accepted, MailAttempted::Failed { error: "421".into(), may_have_arrived: true }] {
        assert!(!finish(&store, &second, outcome).await);
        assert_eq!(all(&store, scope).await, std::slice::from_ref(&mail));
    }

    // What the mail server has is sent, whoever holds it by now.
    owe(&store, scope).await;
    let first = claim(&store, Duration::ZERO).await.remove(0);
    let second = claim(&store, LEASE).await.remove(0);
    assert!(finish(&store, &first, MailAttempted::Accepted).await);
    assert!(!renew(&second).await.unwrap(), "there is nothing to send any more");
    assert!(!finish(&store, &second, MailAttempted::Failed { error: "421".into(), may_have_arrived: true }).await);
    assert!(all(&store, scope).await.iter().all(|mail| mail.status == MailStatus::Sent));
}

async fn what_is_in_hand_stays_with_its_holder(world: &World) {
    let (store, scope) = open(world).await;
    owe(&store, scope).await;
    let held = claim(&store, Duration::ZERO).await.remove(0);
    let id = held.mail.id.to_string();
    let beside = store
        .write(move |tx| mails::claim_beside(tx, scope, MailKind::Invoice, 4, tx.now().plus(LEASE), |one| one == id));
    assert_eq!(beside.await, Ok((vec![], 1)));
    assert!(claim(&store, LEASE).await.is_empty(), "its lease is another one");
    // Its token is the same: its holder says that it begins, and then what came of it.
    let begins = held.clone();
    let begun = store.write(move |tx| {
        let mail = begins.mail.begun(tx.now(), 1000);
        mails::begin(tx, &begins, &mail, tx.now().plus(LEASE))
    });
    assert_eq!(begun.await, Ok(true));
    let counted = async || {
        let mail = all(&store, scope).await.remove(0);
        (mail.status, mail.attempts, mail.unanswered)
    };
    assert_eq!(counted().await, (MailStatus::Pending, 1, 1));
    assert!(finish(&store, &held, MailAttempted::Accepted).await);
    assert_eq!(counted().await, (MailStatus::Sent, 1, 0));
    store.close().await;
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
        MailAttempted::Failed { error: "451".into(), may_have_arrived: true },
    ];
    for (claimed, outcome) in held.iter().zip(outcomes) {
        assert!(finish(&store, claimed, outcome).await);
    }
    assert!(claim(&store, LEASE).await.is_empty());
    let waits =
        store.read(|tx| Ok::<_, Error>(mails::next_due(tx, &[Mode::Test])?.map(|due_at| due_at.since(tx.now()))));
    let wait = waits.await.unwrap().unwrap();
    assert!(wait > Duration::ZERO && wait < Duration::from_secs(10), "{wait:?}");
    let mut known: Vec<_> = all(&store, scope)
        .await
        .into_iter()
        .map(|mail| (mail.status.as_str(), mail.attempts, mail.unanswered))
        .collect();
    known.sort_unstable();
    assert_eq!(known, [("failed", 1, 0), ("pending", 1, 1), ("sent", 1, 0)]);
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
    let claim = |scope: Scope| {
        store.write(move |tx| {
            let owed: Vec<_> = mails::owed(tx, scope.mode)?.iter().map(|owed| (owed.scope, owed.kind)).collect();
            assert_eq!(owed, [(scope, MailKind::Invoice)]);
            mails::claim(tx, scope, MailKind::Invoice, 4, tx.now().plus(LEASE))
        })
    };
    let of_live = claim(live).await.unwrap();
    assert_eq!(of_live.iter().map(|claimed| claimed.mail.scope).collect::<Vec<_>>(), [live]);
    let due =
        store.read(|tx| Ok::<_, Error>([Mode::Live, Mode::Test].map(|mode| mails::next_due(tx, &[mode]).unwrap())));
    assert!(matches!(due.await.unwrap(), [None, Some(_)]));
    assert_eq!(claim(scope).await.unwrap().len(), 4);
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
    let claimed = store.write(move |tx| {
        let lease = tx.now().plus(LEASE);
        let mails = mails::claim(tx, scope, MailKind::Invoice, 4, lease)?;
        let mails: Vec<String> = mails.iter().map(|one| one.mail.id.to_string()).collect();
        let jobs: Vec<String> = jobs::claim(tx, Lane::Test, 4, lease)?.iter().map(|one| one.job.object_id()).collect();
        Ok::<_, Error>([mails, jobs])
    });
    for names in claimed.await.unwrap() {
        assert_eq!(names.len(), 4);
        assert!(names.is_sorted(), "{names:?}");
    }
    store.close().await;
}

/// However much that is, and however long it has been due.
async fn each_is_found_behind_what_the_others_are_owed(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let [bulk, other] = [1, 2].map(|seed| {
        let organization = Entropy::from_seed([seed; 32]).id(Timestamp::from_micros(1_790_000_000_000_000));
        Scope { organization, mode: Mode::Live }
    });
    let stored = store.write(move |tx| {
        let now = tx.now();
        let due_at = |seconds: i64| Timestamp::from_micros(now.micros() + seconds * 1_000_000);
        let mut owe = |scope, kind, seconds| {
            let id = tx.entropy().id(due_at(seconds));
            let mail = Mail::owed(id, scope, kind, OBJECT.into(), "awa@example.org".into(), due_at(seconds));
            mails::insert(tx, &mail)
        };
        (0..300).try_for_each(|number| owe(bulk, MailKind::Invoice, number - 900))?;
        owe(bulk, MailKind::Receipt, -2)?;
        owe(other, MailKind::Invoice, 3600)?;
        owe(other, MailKind::Receipt, -1)?;
        Ok::<_, Error>(now)
    });
    let now = stored.await.unwrap();
    let owed = async || {
        let owed = store.read(|tx| {
            let first = mails::next_due(tx, &[Mode::Live])?;
            Ok::<_, Error>((mails::owed(tx, Mode::Live)?, first))
        });
        let (mut owed, first) = owed.await.unwrap();
        assert_eq!(owed.iter().map(|owed| owed.due_at).min(), first, "the first of all is the first of somebody");
        owed.sort_by_key(|owed| (owed.scope != bulk, owed.kind));
        let seconds = |at: Timestamp| (at.micros() - now.micros()) / 1_000_000;
        owed.iter().map(|owed| (owed.scope == bulk, owed.kind, seconds(owed.due_at))).collect::<Vec<_>>()
    };
    use MailKind::{Invoice, Receipt};
    assert_eq!(
        owed().await,
        [(true, Invoice, -900), (true, Receipt, -2), (false, Invoice, 3600), (false, Receipt, -1)]
    );
    let claim = async |scope, kind| {
        let claimed = store.write(move |tx| mails::claim(tx, scope, kind, 3, tx.now().plus(LEASE)));
        claimed.await.unwrap().len()
    };
    assert_eq!((claim(bulk, Receipt).await, claim(other, Receipt).await, claim(other, Invoice).await), (1, 1, 0));
    assert_eq!(claim(bulk, Invoice).await, 3);
    // What is held is looked for no more, and the rest is as before.
    assert_eq!(owed().await, [(true, Invoice, -897), (false, Invoice, 3600)]);
    store.close().await;
}

/// Ten thousand are due for each of five merchants, and as many have been sent.
const FILL: &str = "
with recursive numbers (n) as (select cast(1 as bigint) union all select n + 1 from numbers where n < 100000)
insert into mails (organization_id, mode, id, kind, object_id, recipient, status, attempts, next_try_at, sent_at,
    lease_until, lease_token, created_at)
select $1 || (n % 5), 'live', 'mail_' || n, case n % 10 when 1 then 'receipt' else 'invoice' end, 'inv_' || n,
    'awa@example.org', case when n > 50000 then 'pending' else 'sent' end, 0, case when n > 50000 then n end,
    case when n > 50000 then null else n end, 0, 0, n
from numbers";

fn fill(tx: &mut Tx<'_>, known: Known) -> Result<(), Error> {
    let anew = |tx: &mut Tx<'_>| {
        tx.execute("delete from mails", &[])?;
        tx.execute(FILL, &["org_".into()])
    };
    if known == Known::NothingWaited {
        anew(tx)?;
        tx.execute("update mails set status = 'sent', next_try_at = null, sent_at = 0", &[])?;
        count_rows(tx)?;
    }
    anew(tx)?;
    if known == Known::Everything { count_rows(tx) } else { Ok(()) }
}

async fn a_look_passes_over_no_other_mail(world: &World) {
    let (store, scope) = open(world).await;
    owe(&store, scope).await;
    let claimed = Arc::new(claim(&store, LEASE).await.remove(0));
    for &known in Known::of(world.dialect()) {
        let claimed = Arc::clone(&claimed);
        let plans = store.write(move |tx| {
            fill(tx, known)?;
            let scope = Scope { mode: Mode::Live, ..scope };
            Ok::<_, Error>((mails::plans(tx, scope, MailKind::Receipt)?, mails::plans_of_one(tx, &claimed)?))
        });
        let (looks, of_one) = plans.await.unwrap();
        goes_by_its_index(world, known, &looks);
        for (what, plan) in of_one {
            let reads_others = ["mails_due", "Seq Scan", "SCAN"].iter().any(|word| plan.contains(word));
            assert!(!reads_others, "{what}, where it knows {known:?}:\n{plan}");
        }
    }
    store.close().await;
}

fn goes_by_its_index(world: &World, known: Known, plans: &[String; 3]) {
    let ways = [
        ("next due", "mails_due_of_mode", "(mode=?"),
        ("owed", "mails_due_of_merchant", "(mode=? AND kind=? AND organization_id"),
        ("due", "mails_due_of_merchant", "(mode=? AND kind=? AND organization_id=? AND next_try_at<?)"),
    ];
    for ((what, index, by), plan) in ways.into_iter().zip(plans) {
        let (way, is_read_whole) = match world.dialect() {
            Dialect::Sqlite => {
                (format!("INDEX {index} {by}"), plan.contains("SCAN mails") || plan.contains("TEMP B-TREE"))
            }
            Dialect::Postgres => (
                format!("using {index} on mails"),
                ["Seq Scan", "Bitmap", "Sort"].iter().any(|word| plan.contains(word)),
            ),
        };
        // The few that are owed something are put in order.
        let is_read_whole =
            is_read_whole && what != "owed" || plan.contains("mails_pkey") || plan.contains("autoindex");
        assert!(plan.contains(&way) && !is_read_whole, "{what}, where it knows {known:?}:\n{plan}");
    }
}
