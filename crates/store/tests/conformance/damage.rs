//! Rows that are not what was written, as a backup finds them by their checksums.

use std::io::Cursor;
use std::sync::Arc;

use domain::event::{Event, EventType};
use domain::organization::Organization;
use domain::{Id, Mode, Scope};
use store::queries::events;
use store::{Damage, DamagedRow, Error, Schema, Settings, Store, check_backup, restore};

use crate::backups::dump;
use crate::on_both;
use crate::world::{System, World, entropy};

on_both!(
    a_damaged_row_is_named_and_copied_as_it_is,
    what_has_no_checksum_is_not_damaged,
    a_text_without_its_end_is_damaged,
    of_many_damaged_rows_the_first_are_named,
    an_older_schema_has_damage_in_its_documents_alone,
);

/// It ends as a document does, and not with the checksum of what comes before.
const FALSE_SUM: &str = "{\"a\":1,\"crc32\":\"00000000\"}";

/// An organization with so many events; what it is called, and what they are.
async fn fill(store: &Store, count: i64) -> (String, Vec<String>) {
    let filled = store.write(move |tx| {
        let now = tx.now();
        let organization: Id<Organization> = tx.entropy().id(now);
        let scope = Scope { organization, mode: Mode::Test };
        tx.insert(&mut Organization::new(organization, Mode::Test, "Kairaba Books".into(), now))?;
        let mut told = Vec::new();
        for sequence in 1..=count {
            let id: Id<Event> = tx.entropy().id(now);
            let (kind, object_id) = (EventType::CheckoutCancelled.into(), "cs_one".to_owned());
            let body = "{\"status\":\"cancelled\"}".to_owned();
            events::append(tx, &Event { id, scope, kind, object_id, sequence, body, created_at: now })?;
            told.push(id.to_string());
        }
        Ok::<_, Error>((organization.to_string(), told))
    });
    filled.await.unwrap()
}

async fn change(store: &Store, sql: &str) {
    let sql = sql.to_owned();
    assert!(store.write(move |tx| tx.execute(&sql, &[])).await.unwrap() > 0, "something is changed");
}

fn damaged(table: &str, id: &str) -> DamagedRow {
    DamagedRow { table: table.to_owned(), mode: "test".to_owned(), id: id.to_owned() }
}

async fn a_damaged_row_is_named_and_copied_as_it_is(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let (organization, told) = fill(&store, 3).await;
    let (_, right) = dump(&store).await;
    assert_eq!(right.damage, Damage::default());
    change(&store, "update organizations set doc = replace(doc, 'Kairaba', 'Kairabe')").await;
    change(&store, &format!("update events set body = replace(body, 'll', 'lm') where id = '{}'", told[1])).await;
    let (bytes, written) = dump(&store).await;
    store.close().await;
    let rows = vec![damaged("organizations", &organization), damaged("events", &told[1])];
    assert_eq!(written.damage, Damage { count: 2, rows });
    assert_eq!(written.rows, right.rows);
    assert_eq!(check_backup(&*bytes).unwrap(), written);

    // Out of the backup it is neither better nor worse.
    let target = world.another().await;
    let (settings, read) = (target.settings.clone(), Cursor::new(bytes));
    let restored = restore(settings, Schema::product(), Arc::new(System), entropy(), read).await;
    assert_eq!(restored.unwrap(), written);
    let store = target.try_open(Schema::product()).await.unwrap();
    let (_, again) = dump(&store).await;
    assert_eq!((again.damage, again.rows), (written.damage, written.rows));
    store.close().await;
    target.end().await;
}

async fn what_has_no_checksum_is_not_damaged(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    fill(&store, 1).await;
    // As a version left them that kept none, and a text that is no document.
    change(&store, "update organizations set doc = '{\"a\":1}'").await;
    change(&store, &format!("update organizations set name = '{FALSE_SUM}'")).await;
    change(&store, &format!("update events set body = '{FALSE_SUM}', body_crc32 = null")).await;
    let (_, right) = dump(&store).await;
    assert_eq!(right.damage, Damage::default());
    // As a document the same is.
    change(&store, &format!("update organizations set doc = '{FALSE_SUM}'")).await;
    let (_, written) = dump(&store).await;
    assert_eq!(written.damage.count, 1);
    store.close().await;
}

/// It has no checksum either, and nobody can read it.
async fn a_text_without_its_end_is_damaged(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let (organization, told) = fill(&store, 1).await;
    let whole = store.read(|tx| tx.query_one("select doc from organizations", &[])?.get::<String>(0)).await.unwrap();
    let events = "update events set body = '{\"status\":\"cancelled\"}', body_crc32 = null";
    for end in ["substr({}, 1, length({}) - 1) || '|'", "substr({}, 1, length({}) - 10)", "substr({}, 1, 4) || 'xx\"}'"]
    {
        change(&store, &format!("update organizations set doc = {}", end.replace("{}", "doc"))).await;
        let (bytes, written) = dump(&store).await;
        let rows = vec![damaged("organizations", &organization)];
        assert_eq!(written.damage, Damage { count: 1, rows }, "{end}");
        assert_eq!(check_backup(&*bytes).unwrap(), written);
        change(&store, &format!("update organizations set doc = '{whole}'")).await;

        change(&store, events).await;
        assert_eq!(dump(&store).await.1.damage, Damage::default());
        change(&store, &format!("update events set body = {}", end.replace("{}", "body"))).await;
        let rows = vec![damaged("events", &told[0])];
        assert_eq!(dump(&store).await.1.damage, Damage { count: 1, rows }, "{end}");
        change(&store, events).await;
    }
    store.close().await;
}

async fn of_many_damaged_rows_the_first_are_named(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    fill(&store, 103).await;
    change(&store, "update events set body_crc32 = body_crc32 + 1").await;
    let (bytes, written) = dump(&store).await;
    store.close().await;
    assert_eq!((written.damage.count, written.damage.rows.len(), written.damage.unnamed()), (103, 100, 3));
    assert_eq!(check_backup(&*bytes).unwrap(), written);
}

/// Between two versions, when the program is the new one: its events have no place for a checksum yet.
async fn an_older_schema_has_damage_in_its_documents_alone(world: &World) {
    let product = Schema::product().migrations;
    let before = product.iter().position(|migration| migration.name == "event_checksums").unwrap();
    let store = world.try_open(Schema { migrations: &product[..before], tables: &[] }).await.unwrap();
    let organization = format!(
        "insert into organizations (organization_id, mode, id, version, doc, name, created_at) \
         values ('org_1', 'test', 'org_1', 1, '{FALSE_SUM}', 'Kairaba Books', 1)"
    );
    let event = format!(
        "insert into events (organization_id, mode, id, type, object_id, sequence, body, created_at) \
         values ('org_1', 'test', 'evt_1', 'checkout.cancelled', 'cs_1', 1, '{FALSE_SUM}', 1)"
    );
    for insert in [organization, event] {
        change(&store, &insert).await;
    }
    store.close().await;

    let settings = Settings { secondary: true, takes_older: true, ..world.settings.clone() };
    let store = Store::open_with(settings, Schema::product(), Arc::new(System), entropy()).await.unwrap();
    let (bytes, written) = dump(&store).await;
    store.close().await;
    assert_eq!((written.schema, written.rows["events"]), (product[before - 1].number, 1));
    assert_eq!(written.damage, Damage { count: 1, rows: vec![damaged("organizations", "org_1")] });
    let target = world.another().await;
    let (settings, read) = (target.settings.clone(), Cursor::new(bytes));
    let restored = restore(settings, Schema::product(), Arc::new(System), entropy(), read).await;
    assert_eq!(restored.unwrap(), written);
    target.end().await;
}
