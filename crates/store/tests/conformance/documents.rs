//! Files of documents: one for an object, of one edition, kept for a while.

use domain::organization::Organization;
use domain::{Mode, Scope};
use store::queries::documents::{self, DocumentState};
use store::{Error, Schema, Store};

use crate::on_both;
use crate::world::World;

on_both!(
    a_file_is_of_its_edition,
    a_failure_is_remembered_until_it_works,
    what_is_made_twice_is_what_was_made_first,
    old_files_go_and_what_is_known_of_them_stays,
    nothing_stays_of_a_file_with_masks,
    scopes_share_no_file,
);

const OBJECT: &str = "inv_01jd8zv5k2e9rb4x7q3mwhcg6t";

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

async fn complete(store: &Store, scope: Scope, edition: &'static str, file: &'static [u8]) {
    store.write(move |tx| documents::completed(tx, scope, OBJECT, edition, file)).await.unwrap();
}

async fn fail(store: &Store, scope: Scope, why: &'static str) {
    store.write(move |tx| documents::failed(tx, scope, OBJECT, "of-then", why)).await.unwrap();
}

async fn file(store: &Store, scope: Scope, edition: &'static str) -> Option<Vec<u8>> {
    store.read(move |tx| documents::file(tx, scope, OBJECT, edition)).await.unwrap()
}

async fn state(store: &Store, scope: Scope) -> Option<DocumentState> {
    store.read(move |tx| documents::state(tx, scope, OBJECT)).await.unwrap()
}

async fn a_file_is_of_its_edition(world: &World) {
    let (store, scope) = open(world).await;
    assert_eq!(file(&store, scope, "first").await, None);
    assert_eq!(state(&store, scope).await, None);
    // Bytes, whatever they are.
    complete(&store, scope, "first", b"%PDF\0\xff\xfe").await;
    assert_eq!(file(&store, scope, "first").await.as_deref(), Some(&b"%PDF\0\xff\xfe"[..]));
    assert_eq!(file(&store, scope, "second").await, None);
    complete(&store, scope, "second", b"other").await;
    assert_eq!(file(&store, scope, "first").await, None);
    assert_eq!(file(&store, scope, "second").await.as_deref(), Some(&b"other"[..]));
    assert_eq!(world.count("documents").await, 1);
}

async fn a_failure_is_remembered_until_it_works(world: &World) {
    let (store, scope) = open(world).await;
    fail(&store, scope, "no ink").await;
    fail(&store, scope, "no paper").await;
    let failed = state(&store, scope).await.unwrap();
    assert_eq!(failed, DocumentState { last_error: Some("no paper".into()), failures: 2, generated_at: None });
    assert_eq!(file(&store, scope, "of-then").await, None);
    complete(&store, scope, "of-now", b"file").await;
    let made = state(&store, scope).await.unwrap();
    assert_eq!((made.last_error, made.failures), (None, 2));
    let generated_at = made.generated_at.unwrap();
    // A file that can't be made any more is not given out, and was made once.
    fail(&store, scope, "no ink").await;
    let again = state(&store, scope).await.unwrap();
    assert_eq!((again.failures, again.generated_at), (3, Some(generated_at)));
    assert_eq!(file(&store, scope, "of-now").await, None);
}

async fn what_is_made_twice_is_what_was_made_first(world: &World) {
    let (store, scope) = open(world).await;
    complete(&store, scope, "of-then", b"first").await;
    let earlier = store.read(|tx| Ok::<_, Error>(tx.now_us() - 60_000_000)).await.unwrap();
    let aged = store.write(move |tx| tx.execute("update documents set generated_at = $1", &[earlier.into()]));
    assert_eq!(aged.await.unwrap(), 1);
    let made = state(&store, scope).await;
    complete(&store, scope, "of-then", b"second").await;
    fail(&store, scope, "no ink").await;
    assert_eq!(file(&store, scope, "of-then").await.as_deref(), Some(&b"first"[..]));
    assert_eq!(state(&store, scope).await, made);
}

async fn old_files_go_and_what_is_known_of_them_stays(world: &World) {
    let (store, scope) = open(world).await;
    complete(&store, scope, "only", b"file").await;
    assert!(!store.write(documents::drop_old_files).await.unwrap());
    assert!(file(&store, scope, "only").await.is_some());
    let before = store.read(|tx| Ok::<_, Error>(tx.now_us() - 25 * 3600 * 1_000_000)).await.unwrap();
    let aged = store.write(move |tx| tx.execute("update documents set generated_at = $1", &[before.into()]));
    assert_eq!(aged.await.unwrap(), 1);
    assert!(!store.write(documents::drop_old_files).await.unwrap());
    assert_eq!(file(&store, scope, "only").await, None);
    let state = state(&store, scope).await.unwrap();
    assert_eq!((state.last_error, state.generated_at.unwrap().micros()), (None, before));
    complete(&store, scope, "only", b"file").await;
    assert!(file(&store, scope, "only").await.is_some());
}

/// Whoever has an invoice's address has one made: nobody asks later whether there was one.
async fn nothing_stays_of_a_file_with_masks(world: &World) {
    let (store, scope) = open(world).await;
    complete(&store, scope, "only", b"whole").await;
    let masked = || documents::masked(OBJECT);
    let made = store.write(move |tx| documents::completed(tx, scope, &masked(), "only", b"masked"));
    made.await.unwrap();
    let aged = store.write(move |tx| {
        let before = tx.now_us() - 25 * 3600 * 1_000_000;
        tx.execute("update documents set generated_at = $1", &[before.into()])
    });
    assert_eq!(aged.await.unwrap(), 2);
    assert!(!store.write(documents::drop_old_files).await.unwrap());
    let left = store.read(move |tx| documents::states(tx, scope, &[OBJECT.to_owned(), masked()])).await.unwrap();
    assert_eq!(left.keys().collect::<Vec<_>>(), [OBJECT]);
}

async fn scopes_share_no_file(world: &World) {
    let (store, scope) = open(world).await;
    complete(&store, scope, "only", b"file").await;
    assert_eq!(file(&store, Scope { mode: Mode::Live, ..scope }, "only").await, None);
    assert_eq!(state(&store, Scope { mode: Mode::Live, ..scope }).await, None);
}
