//! When keys were last used, as several processes tell it.

use domain::api_key::{ApiKey, KeyKind, Rights};
use domain::organization::Organization;
use domain::{Id, Mode, Scope, Timestamp};
use store::queries::api_keys;
use store::{Error, Schema, Store};

use crate::on_both;
use crate::world::World;

on_both!(the_latest_use_stays);

async fn a_key(store: &Store) -> ApiKey {
    let made = store.write(|tx| {
        let now = tx.now();
        let organization = tx.entropy().id(now);
        tx.insert(&mut Organization::new(organization, Mode::Test, "Kairaba Books".into(), now))?;
        let mut key = ApiKey {
            id: tx.entropy().id(now),
            scope: Scope { organization, mode: Mode::Test },
            version: 0,
            kind: KeyKind::Secret,
            digest: "digest".into(),
            last4: "0000".into(),
            rights: Rights::all(),
            name: None,
            created_at: now,
            revoked_at: None,
        };
        tx.insert(&mut key)?;
        Ok::<_, Error>(key)
    });
    made.await.unwrap()
}

async fn use_at(store: &Store, scope: Scope, id: Id<ApiKey>, micros: i64) {
    store.write(move |tx| api_keys::used(tx, scope, id, Timestamp::from_micros(micros))).await.unwrap();
}

async fn the_latest_use_stays(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let key = a_key(&store).await;
    let (scope, id) = (key.scope, key.id);
    assert_eq!(store.read(move |tx| api_keys::last_used(tx, scope, id)).await, Ok(None));
    for (told, kept) in [(5, 5), (9, 9), (7, 9)] {
        use_at(&store, scope, id, told).await;
        let listed = store.read(move |tx| api_keys::list(tx, scope, None)).await.unwrap();
        assert_eq!(listed.iter().map(|one| one.last_used_at).collect::<Vec<_>>(), [Some(Timestamp::from_micros(kept))]);
    }
    // Nobody's: of another mode.
    use_at(&store, Scope { mode: Mode::Live, ..scope }, id, 11).await;
    // Who changes the key is not disturbed by its use, and keeps it.
    let revoked = store.write(move |tx| {
        let mut key = key.clone();
        key.revoke(tx.now()).unwrap();
        tx.save(&mut key)?;
        api_keys::last_used(tx, scope, id)
    });
    assert_eq!(revoked.await, Ok(Some(Timestamp::from_micros(9))));
    store.close().await;
}
