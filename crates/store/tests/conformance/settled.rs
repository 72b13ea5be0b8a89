//! What seldom changes is read as it stands, although it isn't read each time: whoever changes it, and whether that is kept.

use std::sync::Arc;

use domain::organization::Organization;
use domain::{Mode, Scope};
use store::{Error, Schema, Settings, Store, Tx};

use crate::on_both;
use crate::world::{System, World, entropy};

on_both!(a_change_is_seen_at_once, what_is_undone_was_never_there, another_process_is_seen);

async fn open(world: &World) -> (Store, Scope) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let made = store.write(|tx| {
        let now = tx.now();
        let organization = tx.entropy().id(now);
        tx.insert(&mut Organization::new(organization, Mode::Test, "first".into(), now))?;
        Ok::<_, Error>(organization)
    });
    let scope = Scope { organization: made.await.unwrap(), mode: Mode::Test };
    // Once to have its table known, once to have it kept.
    for _ in 0..3 {
        assert_eq!(name(&store, scope).await, "first");
    }
    (store, scope)
}

fn settled(tx: &mut Tx<'_>, scope: Scope) -> Result<String, Error> {
    Ok(tx.settled::<Organization>(scope, scope.organization)?.unwrap().profile.name.clone())
}

/// As a command sees it that changes something else.
async fn name(store: &Store, scope: Scope) -> String {
    store.write(move |tx| settled(tx, scope)).await.unwrap()
}

fn rename(tx: &mut Tx<'_>, scope: Scope, name: &str) -> Result<(), Error> {
    let mut organization = tx.find::<Organization>(scope, scope.organization)?.unwrap();
    organization.profile.name = name.into();
    tx.save(&mut organization)
}

async fn a_change_is_seen_at_once(world: &World) {
    let (store, scope) = open(world).await;
    let renamed = store.write(move |tx| {
        let before = settled(tx, scope)?;
        rename(tx, scope, "second")?;
        Ok::<_, Error>([before, settled(tx, scope)?, settled(tx, scope)?])
    });
    assert_eq!(renamed.await.unwrap(), ["first", "second", "second"]);
    assert_eq!(name(&store, scope).await, "second");
    assert_eq!(store.read(move |tx| settled(tx, scope)).await.unwrap(), "second");
    // By a statement of its own, of which nothing is known but its text; the checksum is taken out.
    let raw = "update organizations set doc = replace(substr(doc, 1, length(doc) - 20) || '}', 'second', 'third') \
        where mode = 'test'";
    store.write(move |tx| tx.execute(raw, &[]).map(drop)).await.unwrap();
    for _ in 0..3 {
        assert_eq!(name(&store, scope).await, "third");
    }
    store.close().await;
}

async fn what_is_undone_was_never_there(world: &World) {
    let (store, scope) = open(world).await;
    let refused = store.write(move |tx| {
        rename(tx, scope, "undone")?;
        assert_eq!(settled(tx, scope)?, "undone");
        Err::<(), _>(Error::Busy)
    });
    assert_eq!(refused.await, Err(Error::Busy));
    assert_eq!(name(&store, scope).await, "first");
    // And what a savepoint undoes, in a transaction that goes on.
    let seen = store.write(move |tx| {
        let undone = tx.savepoint(|tx| {
            rename(tx, scope, "undone")?;
            assert_eq!(settled(tx, scope)?, "undone");
            Err::<(), _>(Error::Busy)
        });
        assert_eq!(undone, Err(Error::Busy));
        settled(tx, scope)
    });
    assert_eq!(seen.await.unwrap(), "first");
    assert_eq!(name(&store, scope).await, "first");
    store.close().await;
}

async fn another_process_is_seen(world: &World) {
    let (store, scope) = open(world).await;
    let settings = Settings { secondary: true, ..world.settings.clone() };
    let other = Store::open_with(settings, Schema::product(), Arc::new(System), entropy()).await.unwrap();
    for round in 0..5 {
        let next = format!("round {round}");
        let theirs = next.clone();
        other.write(move |tx| rename(tx, scope, &theirs)).await.unwrap();
        for _ in 0..2 {
            assert_eq!(name(&store, scope).await, next);
        }
    }
    other.close().await;
    store.close().await;
}
