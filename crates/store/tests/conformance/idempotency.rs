//! Idempotency keys: how long they live, and how they go.

use std::time::Duration;

use domain::{Id, Mode, Scope, Timestamp};
use store::queries::idempotency::{self, Claimed, IdempotencyKey};
use store::{Dialect, Error, Schema, Store, Tx};

use crate::on_both;
use crate::world::{World, count_rows};

on_both!(
    old_keys_go_by_parts_and_what_runs_stays,
    no_look_for_old_keys_reads_others,
    what_died_with_its_process_is_begun_anew,
    what_died_with_its_process_is_forgotten_in_the_end,
    a_request_is_known_by_either_fingerprint,
    whether_a_request_runs_is_seen_and_who_ends_it_says_so
);

/// `$4` keys that ended `$5` microseconds after 1970.
const FILL: &str = "
with recursive numbers (n) as (select cast(1 as bigint) union all select n + 1 from numbers where n < $4)
insert into idempotency_keys (organization_id, mode, space, idempotency_key, fingerprint, state, status, body, created_at,
    sealed_body)
select $1, $2, 'secret', $3 || (100000 + n), $6, 'finished', 200, null, $5 + n, $6
from numbers";

pub(crate) fn scope() -> Scope {
    Scope { organization: Id::new(Timestamp::from_micros(1_700_000_000_000_000), [7; 10]), mode: Mode::Test }
}

pub(crate) fn key(name: &str) -> IdempotencyKey {
    let space = IdempotencyKey::MERCHANT_SPACE.to_owned();
    IdempotencyKey {
        scope: scope(),
        space,
        key: name.to_owned(),
        fingerprint: vec![7; 32],
        former_fingerprint: None,
        sets_state: false,
    }
}

/// Named `name` and the numbers from 100001.
pub(crate) async fn fill(store: &Store, name: &'static str, count: i64, days_ago: i64) {
    let filled = store.write(move |tx| {
        let at = tx.now_us() - days_ago * 86_400_000_000;
        let scope = scope();
        let fingerprint = vec![7_u8; 32];
        let values = [
            scope.organization.to_string().into(),
            scope.mode.as_str().into(),
            name.into(),
            count.into(),
            at.into(),
            fingerprint.into(),
        ];
        tx.execute(FILL, &values)
    });
    assert_eq!(filled.await.map(i64::try_from), Ok(Ok(count)));
}

async fn claim(store: &Store, name: &'static str) -> Claimed {
    store.write(move |tx| idempotency::claim(tx, &key(name))).await.unwrap()
}

async fn old_keys_go_by_parts_and_what_runs_stays(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    fill(&store, "old", 1_200, 31).await;
    fill(&store, "young", 10, 29).await;
    // A payment was begun, and for a month no process came to end it.
    let begun = store.write(|tx| {
        idempotency::claim(tx, &key("begun"))?;
        idempotency::leave(tx, &key("begun"))?;
        let long_ago = tx.now_us() - 31 * 86_400_000_000;
        tx.execute("update idempotency_keys set created_at = $1 where idempotency_key = 'begun'", &[long_ago.into()])
    });
    assert_eq!(begun.await, Ok(1));

    let mut left = Vec::new();
    while store.write(idempotency::forget).await.unwrap() {
        left.push(world.count("idempotency_keys").await);
    }
    left.push(world.count("idempotency_keys").await);
    assert_eq!(left, [711, 211, 11]);
    assert_eq!(claim(&store, "begun").await, Claimed::Running, "whoever uses it again would take its place");
    // Its outcome is stored together with the answer, or not at all.
    store.write(|tx| idempotency::finish_left(tx, &key("begun"), 200, Some(vec![1]))).await.unwrap();
    assert!(!store.write(idempotency::forget).await.unwrap());
    assert_eq!(world.count("idempotency_keys").await, 10);
    assert_eq!(claim(&store, "begun").await, Claimed::First);
    store.close().await;
}

/// Where only the request itself ends what it began.
async fn what_died_with_its_process_is_begun_anew(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let longest = Duration::from_secs(60);
    let claim = async || store.write(move |tx| idempotency::claim_after(tx, &key("test"), longest)).await.unwrap();
    let left = store.write(move |tx| {
        assert_eq!(idempotency::claim_after(tx, &key("test"), longest)?, Claimed::First);
        idempotency::leave(tx, &key("test"))
    });
    left.await.unwrap();
    assert_eq!(claim().await, Claimed::Running);
    let aged = store.write(|tx| {
        let ago = tx.now_us() - 60_000_000;
        tx.execute("update idempotency_keys set created_at = $1 where idempotency_key = 'test'", &[ago.into()])
    });
    assert_eq!(aged.await, Ok(1));
    let other = IdempotencyKey { fingerprint: vec![8; 32], ..key("test") };
    let reused = store.write(move |tx| idempotency::claim_after(tx, &other, longest)).await;
    assert_eq!(reused, Ok(Claimed::Reused));
    let again = store.write(move |tx| {
        assert_eq!(idempotency::claim_after(tx, &key("test"), longest)?, Claimed::First);
        idempotency::leave(tx, &key("test"))
    });
    again.await.unwrap();
    assert_eq!(claim().await, Claimed::Running, "its time begins anew");
    store.close().await;
}

/// Nothing is to come of it, unlike of a payment that was begun.
async fn what_died_with_its_process_is_forgotten_in_the_end(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let longest = Duration::from_secs(60);
    let left = store.write(move |tx| {
        for name in ["died", "ended", "young"] {
            assert_eq!(idempotency::claim_after(tx, &key(name), longest)?, Claimed::First);
            idempotency::leave_alone(tx, &key(name))?;
        }
        Ok::<_, Error>(())
    });
    left.await.unwrap();
    assert_eq!(claim(&store, "died").await, Claimed::Running);
    store.write(|tx| idempotency::finish_left(tx, &key("ended"), 200, Some(vec![1]))).await.unwrap();
    assert!(matches!(claim(&store, "ended").await, Claimed::Finished { status: 200, .. }), "its own request ends it");
    let aged = store.write(|tx| {
        let long_ago = tx.now_us() - 31 * 86_400_000_000;
        tx.execute("update idempotency_keys set created_at = $1 where idempotency_key <> 'young'", &[long_ago.into()])
    });
    assert_eq!(aged.await, Ok(2));
    assert!(!store.write(idempotency::forget).await.unwrap());
    assert_eq!((world.count("idempotency_keys").await, claim(&store, "young").await), (1, Claimed::Running));
    assert_eq!(claim(&store, "died").await, Claimed::First);
    store.close().await;
}

/// Rows of versions before hold the former one, and what is stored now is the other.
async fn a_request_is_known_by_either_fingerprint(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let former = IdempotencyKey { fingerprint: vec![8; 32], ..key("upgraded") };
    let keyed = IdempotencyKey { fingerprint: vec![9; 32], former_fingerprint: Some(vec![8; 32]), ..key("upgraded") };
    let claim = async |key: &IdempotencyKey| {
        let key = key.clone();
        let claimed = store.write(move |tx| {
            let claimed = idempotency::claim(tx, &key)?;
            if claimed == Claimed::First {
                idempotency::finish(tx, &key, 200, Some(vec![1]))?;
            }
            Ok::<_, Error>(claimed)
        });
        claimed.await.unwrap()
    };
    assert_eq!(claim(&former).await, Claimed::First);
    assert!(matches!(claim(&keyed).await, Claimed::Finished { .. }));
    let other = IdempotencyKey { former_fingerprint: Some(vec![7; 32]), ..keyed.clone() };
    assert_eq!(claim(&other).await, Claimed::Reused);
    let new = |key: &IdempotencyKey| IdempotencyKey { key: "new".to_owned(), ..key.clone() };
    assert_eq!(claim(&new(&keyed)).await, Claimed::First);
    assert!(matches!(claim(&new(&other)).await, Claimed::Finished { .. }));
    assert_eq!(claim(&new(&former)).await, Claimed::Reused, "the former one is never stored");
    store.close().await;
}

/// PostgreSQL is asked without a write.
async fn whether_a_request_runs_is_seen_and_who_ends_it_says_so(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let is_running = async || {
        let look = |tx: &mut Tx<'_>| idempotency::is_running(tx, &key("left"));
        let looked =
            if store.dialect() == Dialect::Postgres { store.look(look).await } else { store.write(look).await };
        looked.unwrap()
    };
    type Command = fn(&mut Tx<'_>) -> Result<(), Error>;
    let left: Command = |tx| {
        assert_eq!(idempotency::claim(tx, &key("left"))?, Claimed::First);
        idempotency::leave(tx, &key("left"))
    };
    let steps: [(Command, bool, &[&str]); 5] = [
        (
            |tx| idempotency::claim(tx, &key("other")).and_then(|_| idempotency::finish(tx, &key("other"), 200, None)),
            false,
            &[],
        ),
        (left, true, &[]),
        (|tx| idempotency::release(tx, &key("left")), false, &["left"]),
        (left, true, &[]),
        (|tx| idempotency::finish_left(tx, &key("left"), 200, Some(vec![1])), false, &["left"]),
    ];
    for (command, runs, ended) in steps {
        let told = store.write(move |tx| command(tx).map(|()| tx.take_ended_keys())).await.unwrap();
        let names: Vec<String> = ended.iter().map(|name| key(name).name()).collect();
        assert_eq!((told, is_running().await), (names, runs));
    }
    store.close().await;
}

async fn plans(store: &Store) -> [String; 2] {
    let plans = store.write(|tx| {
        count_rows(tx)?;
        idempotency::plans(tx, &key("old100001"))
    });
    plans.await.unwrap()
}

async fn no_look_for_old_keys_reads_others(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    fill(&store, "old", 10_000, 31).await;
    fill(&store, "young", 30_000, 1).await;
    let [look, forget] = plans(&store).await;
    for (plan, by) in [(&look, "idempotency_keys_by_age"), (&forget, "idempotency_key")] {
        let wrong = ["SCAN ", "TEMP B-TREE", "Seq Scan", "Sort"];
        assert!(wrong.iter().all(|wrong| !plan.contains(wrong)) && plan.contains(by), "{plan}");
    }
    store.close().await;
}
