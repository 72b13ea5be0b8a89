//! Rows that a disk has made something else of, or doesn't give back: what can be named is named.

use domain::audit::AuditRecord;
use domain::{Id, Mode, Scope};
use serde_json::{Value, json};
use store::queries::audit;

use super::backups::{change, damage};
use super::on_both;
use super::place::{Place, text};

on_both!(a_row_that_the_disk_does_not_give_back_is_named);

/// A key of the installation whose document nobody can read any more; PostgreSQL says so with this code.
async fn unreadable_key(place: &Place, code: &str) -> String {
    let store = place.store_in(0).await;
    let first = store.read(|tx| tx.query_one("select min(id) as id from api_keys", &[])?.get::<String>("id"));
    let id = first.await.unwrap();
    store.close().await;
    let fails = match place.is_postgres() {
        true => {
            let raise = format!("raise exception 'could not read block 7' using errcode = '{code}'");
            let function = "create function unreadable() returns text language plpgsql stable";
            change(place, &format!("{function} as $$ begin {raise}; end $$")).await;
            "unreadable()"
        }
        // The smallest number has no absolute value.
        false => "abs(-9223372036854775807 - length(id) / length(id))",
    };
    let document = format!("case when id = '{id}' then {fails} else kept end as doc");
    let view = format!("create view api_keys as select api_keys_kept.*, {document} from api_keys_kept");
    for statement in [
        "alter table api_keys rename to api_keys_kept",
        "alter table api_keys_kept rename column doc to kept",
        view.as_str(),
    ] {
        change(place, statement).await;
    }
    id
}

async fn a_row_that_the_disk_does_not_give_back_is_named(place: &Place) {
    place.init();
    // As of a sector that can't be read, and of pages that contradict one another.
    let id = unreadable_key(place, "58030").await;
    let listed = place.run(&["repair", "--json"]);
    assert_eq!(listed.code, 1, "{listed:?}");
    let found: Value = serde_json::from_str(&listed.data).unwrap();
    assert_eq!((&found["damaged_count"], &found["is_complete"]), (&json!(1), &json!(true)), "{found}");
    let damaged = &found["damaged"][0];
    assert_eq!([text(damaged, "/table"), text(damaged, "/id")], ["api_keys", id.as_str()]);
    assert!(text(damaged, "/what").starts_with("it can't be read: "), "{damaged}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_found_before_the_look_ended_is_told() {
    let Some(place) = Place::postgres("what_was_found_before_the_look_ended_is_told").await else { return };
    let installed = place.init();
    damage(&place, "test").await;
    // Of no row: the transaction can't be had.
    unreadable_key(&place, "40001").await;
    let listed = place.run(&["repair"]);
    assert_eq!(listed.code, 1, "{listed:?}");
    let row = format!("organizations\t{}\t", text(&installed, "/organization_id"));
    assert!(listed.data.starts_with(&row), "{listed:?}");
    assert!(listed.messages.contains("not every row was looked at"), "{listed:?}");
    let found: Value = serde_json::from_str(&place.run(&["repair", "--json"]).data).unwrap();
    assert_eq!((&found["damaged_count"], &found["is_complete"]), (&json!(1), &json!(false)), "{found}");
    place.end().await;
}

/// The embedded database takes what this program never writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_with_a_zero_byte_is_told_by_backup_and_restore() {
    let place = Place::sqlite();
    let organization = text(&place.init(), "/organization_id").parse().unwrap();
    let scope = Scope { organization, mode: Mode::Test };
    let store = place.store_in(0).await;
    let written = store.write(move |tx| {
        let now = tx.now();
        let (id, reason): (Id<AuditRecord>, _) = (tx.entropy().id(now), Some("zero".into()));
        let (action, object_id, actor) = ("key.created".into(), "key_1".into(), "cli:test".into());
        audit::append(tx, &AuditRecord { id, scope, action, object_id, actor, reason, created_at: now })?;
        Ok::<_, store::Error>(id.to_string())
    });
    let id = written.await.unwrap();
    store.close().await;
    change(&place, "update audit_log set reason = cast(x'610062' as text) where reason = 'zero'").await;
    let made = place.run(&["backup", "kept", "--json"]);
    assert_eq!(made.code, 1, "{made:?}");
    let answer: Value = serde_json::from_str(&made.data).unwrap();
    assert_eq!(answer["damaged"], json!([{ "table": "audit_log", "mode": "test", "id": id }]));

    let other = Place::sqlite();
    let restored = other.run(&["restore", place.folder().join("kept").to_str().unwrap()]);
    assert_eq!(restored.code, 1, "{restored:?}");
    let row = format!("audit_log {id}: ");
    for words in [
        row.as_str(),
        "restored as it is, with 1 damaged row",
        "It holds what was stored by 20",
        "Now put the master key that belongs to it at",
    ] {
        assert!(restored.messages.contains(words), "{words} is not in {restored:?}");
    }
    let kept = "select count(*) from audit_log where reason = cast(x'610062' as text)";
    let kept: i64 = other.raw_sqlite().query_row(kept, [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 1);
}
