//! A text with a flipped bit is found, and is put right only by what is known to belong there.

use std::collections::BTreeSet;

use domain::customer::{Contact, Customer};
use domain::event::{Event, EventType};
use domain::organization::Organization;
use domain::{Id, Mode, Scope};
use store::queries::events;
use store::queries::repair::{self, Columns, KINDS, Kind};
use store::{Dialect, Error, Schema, Store, Value, find_in_backup};

use crate::backups::dump;
use crate::on_both;
use crate::world::{World, raw_postgres};

on_both!(
    every_column_that_is_written_with_a_text_is_known,
    a_document_is_put_back_as_the_backup_has_it,
    a_row_that_was_seen_otherwise_is_left_alone,
    no_other_state_of_a_row_is_put_in_its_place,
    no_other_state_of_the_same_version_is_put_in_its_place,
    without_a_checksum_a_row_is_known_by_its_last_change,
    a_document_stands_as_it_is_only_if_it_can_be_read_as_its_row,
    what_nobody_would_read_does_not_stand,
    an_event_is_put_back_or_stands_as_it_is,
    what_is_damaged_is_found_on_every_page,
);

const DOCUMENT: &str = "update customers set doc = $1 where id = $2";
const BODY: &str = "update events set body = $1 where id = $2";

async fn open(world: &World) -> (Store, Scope) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let made = store.write(|tx| {
        let now = tx.now();
        let id: Id<Organization> = tx.entropy().id(now);
        tx.insert(&mut Organization::new(id, Mode::Test, "Kairaba Books".into(), now))?;
        Ok::<_, Error>(id)
    });
    let organization = made.await.unwrap();
    (store, Scope { organization, mode: Mode::Test })
}

fn kind(table: &str) -> &'static Kind {
    repair::kind(table).unwrap()
}

/// So many customers, called by their numbers.
async fn customers(store: &Store, scope: Scope, count: usize) -> Vec<String> {
    let made = store.write(move |tx| {
        let (now, mut ids) = (tx.now(), Vec::new());
        for number in 0..count {
            let mut customer = Customer {
                id: tx.entropy().id(now),
                scope,
                version: 0,
                contact: Contact::new(Some(format!("c{number}@example.gm")), None).unwrap(),
                name: Some(format!("Awa {number}")),
                metadata: Default::default(),
                created_at: now,
                updated_at: now,
                deleted_at: None,
            };
            tx.insert(&mut customer)?;
            ids.push(customer.id.to_string());
        }
        Ok::<_, Error>(ids)
    });
    made.await.unwrap()
}

async fn row(store: &Store, kind: &'static Kind, scope: Scope, id: &str) -> Columns {
    let id = id.to_owned();
    store.read(move |tx| kind.find(tx, scope, &id)).await.unwrap().unwrap()
}

async fn put(store: &Store, kind: &'static Kind, (scope, id): (Scope, &str), seen: &Columns, wanted: &Columns) -> bool {
    let (id, seen, wanted) = (id.to_owned(), seen.clone(), wanted.clone());
    store.write(move |tx| kind.put(tx, scope, &id, &seen, &wanted)).await.unwrap()
}

/// Writes a text beside everything that would notice.
async fn write(store: &Store, sql: &'static str, text: impl Into<Value>, id: &str) {
    let values = [text.into(), id.into()];
    assert_eq!(store.write(move |tx| tx.execute(sql, &values)).await.unwrap(), 1);
}

fn text<'r>(row: &'r Columns, column: &str) -> &'r str {
    let Some(Value::Text(text)) = row.get(column) else { panic!("{column} is no text in {row:?}") };
    text
}

/// What is damaged, by its id, and how many pages it took to know.
async fn damaged(store: &Store, scope: Scope, kind: &'static Kind) -> (Vec<(String, String)>, usize) {
    let (mut found, mut pages, mut after) = (Vec::new(), 0, Some(String::new()));
    while let Some(behind) = after {
        let page = store.read(move |tx| kind.page(tx, scope, &behind)).await.unwrap();
        found.extend(page.rows.into_iter().filter_map(|(id, fault)| Some((id, fault?))));
        (pages, after) = (pages + 1, page.next);
    }
    (found, pages)
}

/// What is not written with the document is its own to change.
async fn every_column_that_is_written_with_a_text_is_known(world: &World) {
    let (store, _) = open(world).await;
    let catalogue = match world.dialect() {
        Dialect::Sqlite => {
            "select tables.name, columns.name from sqlite_master as tables \
             join pragma_table_info(tables.name) as columns where tables.type = 'table'"
        }
        Dialect::Postgres => {
            "select table_name, column_name from information_schema.columns where table_schema = current_schema()"
        }
    };
    let columns = store.read(move |tx| tx.query(catalogue, &[])).await.unwrap();
    let columns: Vec<(String, String)> = columns.iter().map(|row| (row.get(0).unwrap(), row.get(1).unwrap())).collect();
    let with_documents: BTreeSet<&str> =
        columns.iter().filter(|(_, column)| column == "doc").map(|(table, _)| table.as_str()).collect();
    let known: BTreeSet<&str> = repair::tables().collect();
    assert!(known.contains("events") && !with_documents.contains("events"));
    assert_eq!(known.difference(&with_documents).collect::<Vec<_>>(), [&"events"]);
    assert_eq!(with_documents.difference(&known).collect::<Vec<_>>(), [&""; 0]);
    let mut beside = Vec::new();
    for kind in &KINDS {
        let written = kind.columns();
        let of_it = columns.iter().filter(|(table, _)| table == kind.table);
        assert_eq!(of_it.clone().filter(|(_, column)| written.contains(&column.as_str())).count(), written.len());
        beside.extend(of_it.filter(|(_, column)| !written.contains(&column.as_str())).cloned());
    }
    assert_eq!(beside, [("api_keys".to_owned(), "last_used_at".to_owned())]);
}

async fn a_document_is_put_back_as_the_backup_has_it(world: &World) {
    let (store, scope) = open(world).await;
    let (kind, ids) = (kind("customers"), customers(&store, scope, 2).await);
    assert!(damaged(&store, scope, kind).await.0.is_empty());
    let (backup, made) = dump(&store).await;
    let before = row(&store, kind, scope, &ids[1]).await;
    write(&store, DOCUMENT, text(&before, "doc").replace("Awa 1", "Cwa 1"), &ids[1]).await;

    let (found, _) = damaged(&store, scope, kind).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == ids[1] && found[0].1.contains("its checksum is another"), "{found:?}");
    let seen = row(&store, kind, scope, &ids[1]).await;
    assert_eq!(kind.fault(&seen).as_ref(), Some(&found[0].1));
    let (summary, kept) = find_in_backup(&*backup, "customers", &kind.key(scope, &ids[1])).unwrap();
    assert_eq!(summary, made);
    assert_eq!(store.read(repair::schema).await, Ok(summary.schema));
    let wanted = kind.restored(&seen, &kept.unwrap()).unwrap();
    assert!(put(&store, kind, (scope, &ids[1]), &seen, &wanted).await);
    assert_eq!(row(&store, kind, scope, &ids[1]).await, before);
    assert!(damaged(&store, scope, kind).await.0.is_empty());

    let (_, absent) = find_in_backup(&*backup, "customers", &kind.key(scope, "cus_nobody")).unwrap();
    assert_eq!(absent, None);
    let torn = find_in_backup(&backup[..backup.len() - 2], "customers", &kind.key(scope, &ids[1]));
    assert!(matches!(torn, Err(Error::Backup(_))), "nothing of what is not whole: {torn:?}");
}

async fn a_row_that_was_seen_otherwise_is_left_alone(world: &World) {
    let (store, scope) = open(world).await;
    let (kind, ids) = (kind("customers"), customers(&store, scope, 1).await);
    let before = row(&store, kind, scope, &ids[0]).await;
    write(&store, DOCUMENT, text(&before, "doc").replace("Awa", "Cwa"), &ids[0]).await;
    let seen = row(&store, kind, scope, &ids[0]).await;
    write(&store, DOCUMENT, text(&before, "doc").replace("Awa", "Ewa"), &ids[0]).await;
    let is_now = row(&store, kind, scope, &ids[0]).await;
    assert!(!put(&store, kind, (scope, &ids[0]), &seen, &before).await, "its text is another");
    let renamed = store.write(|tx| tx.execute("update customers set phone = '+2207000001'", &[]));
    assert_eq!(renamed.await.unwrap(), 1);
    assert!(!put(&store, kind, (scope, &ids[0]), &is_now, &before).await, "another column is another");
    assert!(!put(&store, kind, (Scope { mode: Mode::Live, ..scope }, &ids[0]), &is_now, &before).await);
    assert_eq!(text(&row(&store, kind, scope, &ids[0]).await, "doc"), text(&is_now, "doc"));
}

async fn no_other_state_of_a_row_is_put_in_its_place(world: &World) {
    let (store, scope) = open(world).await;
    let (kind, ids) = (kind("customers"), customers(&store, scope, 1).await);
    let (earlier, _) = dump(&store).await;
    let id: Id<Customer> = ids[0].parse().unwrap();
    let saved = store.write(move |tx| {
        let mut customer = tx.find::<Customer>(scope, id)?.unwrap();
        customer.name = Some("Binta".into());
        tx.save(&mut customer)
    });
    saved.await.unwrap();
    let (later, _) = dump(&store).await;
    let before = row(&store, kind, scope, &ids[0]).await;
    write(&store, DOCUMENT, text(&before, "doc").replace("Binta", "Cinta"), &ids[0]).await;
    let (damaged, _) = dump(&store).await;

    let seen = row(&store, kind, scope, &ids[0]).await;
    let restored = |backup: &[u8]| {
        let (_, kept) = find_in_backup(backup, "customers", &kind.key(scope, &ids[0])).unwrap();
        kind.restored(&seen, &kept.unwrap())
    };
    let refused = restored(&earlier).unwrap_err();
    assert!(refused.contains("(version)"), "{refused}");
    let refused = restored(&damaged).unwrap_err();
    assert!(refused.contains("damaged in that backup too"), "{refused}");
    assert_eq!(restored(&later), Ok(before));
}

/// As where an earlier backup was restored, and what was changed since reached the same version once more.
async fn no_other_state_of_the_same_version_is_put_in_its_place(world: &World) {
    let (store, scope) = open(world).await;
    let (kind, ids) = (kind("customers"), customers(&store, scope, 1).await);
    let before = row(&store, kind, scope, &ids[0]).await;
    let mut another = before.clone();
    another.insert("doc".to_owned(), text(&before, "doc").replace("Awa", "Binta").into());
    let another = kind.stamped(&another).unwrap();
    assert!(put(&store, kind, (scope, &ids[0]), &before, &another).await);

    let document = text(&another, "doc");
    write(&store, DOCUMENT, document.replace("Binta", "Cinta"), &ids[0]).await;
    let seen = row(&store, kind, scope, &ids[0]).await;
    let refused = kind.restored(&seen, &before).unwrap_err();
    assert!(refused.contains("of another state of it"), "{refused}");
    assert_eq!(kind.restored(&seen, &another), Ok(another.clone()));
    assert_ne!(kind.checksum(&before), kind.checksum(&another));
    assert_eq!(kind.checksum(&seen), kind.checksum(&another));

    // The checksum alone is damaged.
    write(&store, DOCUMENT, format!("{}x\"}}", &document[..document.len() - 3]), &ids[0]).await;
    let seen = row(&store, kind, scope, &ids[0]).await;
    assert!(kind.fault(&seen).is_some());
    assert!(kind.restored(&seen, &before).is_err());
    assert_eq!(kind.restored(&seen, &another), Ok(another.clone()));
    assert_eq!(kind.checksum(&seen), "none");

    // Damaged in the text as well, which the rest of its digits still tell.
    let both = format!("{}x\"}}", &document[..document.len() - 3]).replace("Binta", "Cinta");
    write(&store, DOCUMENT, both, &ids[0]).await;
    let seen = row(&store, kind, scope, &ids[0]).await;
    assert!(kind.restored(&seen, &before).is_err());
    assert_eq!(kind.restored(&seen, &another), Ok(another.clone()));
    let none = document[..document.len() - 10].replace("Binta", "Cinta") + "zzzzzzzz\"}";
    write(&store, DOCUMENT, none, &ids[0]).await;
    let refused = kind.restored(&row(&store, kind, scope, &ids[0]).await, &another).unwrap_err();
    assert!(refused.contains("damaged too"), "{refused}");
}

async fn without_a_checksum_a_row_is_known_by_its_last_change(world: &World) {
    let (store, scope) = open(world).await;
    // Beside a customer's document stands when it was changed, and nothing of that kind beside an organization's.
    let customer = customers(&store, scope, 1).await.remove(0);
    let organization = scope.organization.to_string();
    for (table, id, is_beside) in [("customers", &customer, true), ("organizations", &organization, false)] {
        let kind = kind(table);
        let before = row(&store, kind, scope, id).await;
        let document = text(&before, "doc");
        let restored = |torn: String| {
            let seen = Columns::from_iter([("doc".to_owned(), torn.into())]);
            let seen = before.clone().into_iter().chain(seen).collect::<Columns>();
            assert!(kind.fault(&seen).is_some(), "{seen:?}");
            assert_eq!(kind.checksum(&seen), "none");
            kind.restored(&seen, &before)
        };
        let (members, _) = document.rsplit_once(",\"crc32\"").unwrap();
        for left in [&document[..document.len() - 1], &document[..document.len() - 9], members] {
            assert_eq!(restored(format!("{left}|")), Ok(before.clone()), "{left}");
            // What comes before is otherwise: then that column alone tells.
            let another = format!("{left}|").replacen("\"version\":1", "\"version\":2", 1);
            assert_eq!(restored(another).is_ok(), is_beside, "{left}");
        }
        let torn = restored(document[..document.len() / 3].to_owned());
        match is_beside {
            true => assert_eq!(torn, Ok(before.clone())),
            false => assert!(torn.unwrap_err().contains("nothing that is left of it")),
        }
    }
}

async fn a_document_stands_as_it_is_only_if_it_can_be_read_as_its_row(world: &World) {
    let (store, scope) = open(world).await;
    let (kind, ids) = (kind("customers"), customers(&store, scope, 1).await);
    let before = row(&store, kind, scope, &ids[0]).await;
    let document = text(&before, "doc");
    let stamped = async |text: String| {
        write(&store, DOCUMENT, text, &ids[0]).await;
        let seen = row(&store, kind, scope, &ids[0]).await;
        assert!(kind.fault(&seen).is_some());
        kind.stamped(&seen)
    };
    for (old, new, why) in [
        ("{\"id\"", "{\"hd\"", "does not parse"),
        (",\"contact\"", ";\"contact\"", "does not parse"),
        ("c0@example", "c1@example", "(email_key)"),
        ("\"version\":1", "\"version\":3", "(version)"),
        (&*ids[0], "cus_01h455vb4pex5vsknk084sn02q", "(id)"),
    ] {
        let refused = stamped(document.replacen(old, new, 1)).await.unwrap_err();
        assert!(refused.contains(why), "{old}: {refused}");
    }
    let refused = stamped(format!("{}]", &document[..document.len() - 1])).await.unwrap_err();
    assert!(refused.contains("its end is missing"), "{refused}");
    // The checksum alone, and what no column knows.
    let (head, sum) = document.split_at(document.len() - "01234567\"}".len());
    let other = if sum.starts_with('0') { "1" } else { "0" };
    let stands = stamped(format!("{head}{other}{}", &sum[1..])).await.unwrap();
    assert_eq!(stands, before);
    let stands = stamped(document.replace("Awa 0", "Cwa 0")).await.unwrap();
    let seen = row(&store, kind, scope, &ids[0]).await;
    assert!(put(&store, kind, (scope, &ids[0]), &seen, &stands).await);
    assert!(damaged(&store, scope, kind).await.0.is_empty());
    let id: Id<Customer> = ids[0].parse().unwrap();
    let read = store.read(move |tx| tx.peek::<Customer>(scope, id)).await.unwrap().unwrap();
    assert_eq!(read.name.as_deref(), Some("Cwa 0"));
}

/// A member of another name is missing, and what it says is taken for what it is by default.
async fn what_nobody_would_read_does_not_stand(world: &World) {
    let (store, scope) = open(world).await;
    let (customers_kind, ids) = (kind("customers"), customers(&store, scope, 1).await);
    let organization = scope.organization.to_string();
    for (kind, id, old, new) in [
        (customers_kind, &ids[0], "\"name\":", "\"nbme\":"),
        (kind("organizations"), &organization, "\"locale\":", "\"locame\":"),
    ] {
        let before = row(&store, kind, scope, id).await;
        let mut damaged = before.clone();
        assert!(text(&before, "doc").contains(old), "{before:?}");
        damaged.insert("doc".to_owned(), text(&before, "doc").replace(old, new).into());
        let refused = kind.stamped(&damaged).unwrap_err();
        assert!(refused.contains(new.trim_end_matches(':')), "{refused}");
        assert_eq!(kind.stamped(&before), Ok(before));
    }
}

async fn an_event_is_put_back_or_stands_as_it_is(world: &World) {
    let (store, scope) = open(world).await;
    let kind = kind("events");
    let told = store.write(move |tx| {
        let now = tx.now();
        let id: Id<Event> = tx.entropy().id(now);
        let (name, object_id) = (EventType::CheckoutCancelled, "cs_one".to_owned());
        let second = now.to_text();
        let when = format!(r#""created_at":"{second}","created":"{second}","livemode":false"#);
        let body = format!(
            r#"{{"id":"{id}","type":"{}",{when},"object_id":"cs_one","sequence":1,"data":{{"amount":"10.00"}}}}"#,
            name.as_str()
        );
        events::append(tx, &Event { id, scope, kind: name.into(), object_id, sequence: 1, body, created_at: now })?;
        Ok::<_, Error>(id.to_string())
    });
    let id = told.await.unwrap();
    assert!(damaged(&store, scope, kind).await.0.is_empty());
    let before = row(&store, kind, scope, &id).await;
    let (backup, _) = dump(&store).await;
    for (old, new, why) in [
        ("cs_one", "cs_onf", "(object_id)"),
        ("{\"id\"", "{;id\"", "does not parse"),
        ("\"livemode\":false", "\"livemode\":true", "(mode)"),
        ("\"created_at\":\"20", "\"created_at\":\"21", "(created_at)"),
        ("\"created\":\"20", "\"created\":\"21", "(created_at)"),
    ] {
        write(&store, BODY, text(&before, "body").replacen(old, new, 1), &id).await;
        let refused = kind.stamped(&row(&store, kind, scope, &id).await).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    let (found, _) = damaged(&store, scope, kind).await;
    assert!(found.len() == 1 && found[0].0 == id, "{found:?}");
    let seen = row(&store, kind, scope, &id).await;
    let (_, kept) = find_in_backup(&*backup, "events", &kind.key(scope, &id)).unwrap();
    let wanted = kind.restored(&seen, &kept.unwrap()).unwrap();
    assert!(put(&store, kind, (scope, &id), &seen, &wanted).await);
    assert_eq!(row(&store, kind, scope, &id).await, before);
    let mut another = before.clone();
    another.insert("body".to_owned(), text(&before, "body").replace("10.00", "12.00").into());
    let another = kind.stamped(&another).unwrap();
    assert!(kind.restored(&seen, &another).unwrap_err().contains("of another state of it"));

    write(&store, BODY, text(&before, "body").replace("10.00", "11.00"), &id).await;
    let seen = row(&store, kind, scope, &id).await;
    assert!(kind.fault(&seen).is_some_and(|why| why.contains("its checksum is another")));
    let wanted = kind.stamped(&seen).unwrap();
    assert!(put(&store, kind, (scope, &id), &seen, &wanted).await);
    assert!(damaged(&store, scope, kind).await.0.is_empty());
    let event: Id<Event> = id.parse().unwrap();
    let read = store.read(move |tx| events::find(tx, scope, event)).await.unwrap().unwrap();
    assert!(read.body.contains("11.00"), "{read:?}");
}

async fn what_is_damaged_is_found_on_every_page(world: &World) {
    let (store, scope) = open(world).await;
    let (kind, mut ids) = (kind("customers"), customers(&store, scope, 450).await);
    ids.sort();
    let wrong = [&ids[0], &ids[199], &ids[200], &ids[449]];
    for id in wrong {
        write(&store, DOCUMENT, "{}", id).await;
    }
    let (found, pages) = damaged(&store, scope, kind).await;
    assert_eq!(found.iter().map(|(id, _)| id).collect::<Vec<_>>(), wrong);
    assert_eq!(pages, 3);
}

/// PostgreSQL takes neither: there a disk has to have made it so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_text_any_more_is_put_back() {
    let world = World::sqlite();
    let (store, scope) = open(&world).await;
    let (kind, ids) = (kind("customers"), customers(&store, scope, 1).await);
    let before = row(&store, kind, scope, &ids[0]).await;
    let of_bytes = "update customers set doc = cast($1 as text) where id = $2";
    for letter in [0xc1, 0x00] {
        let mut bytes = text(&before, "doc").as_bytes().to_vec();
        let place = text(&before, "doc").find("Awa").unwrap();
        bytes[place] = letter;
        write(&store, of_bytes, bytes, &ids[0]).await;
        let seen = row(&store, kind, scope, &ids[0]).await;
        assert!(kind.fault(&seen).is_some() && kind.stamped(&seen).is_err(), "{letter}");
        assert_eq!(kind.restored(&seen, &before), Ok(before.clone()));
        assert!(put(&store, kind, (scope, &ids[0]), &seen, &before).await, "{letter}");
        assert_eq!(row(&store, kind, scope, &ids[0]).await, before);
    }
    store.close().await;
}

/// As a disk may leave it. A superuser alone can make it so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_postgres_can_not_tell_is_put_back_or_named() {
    let Some(world) = World::postgres("what_postgres_can_not_tell_is_put_back_or_named").await else { return };
    let (store, scope) = open(&world).await;
    let client = raw_postgres(world.url()).await;
    if client.batch_execute("create cast (bytea as text) without function").await.is_err() {
        world.end().await;
        return;
    }
    let (kind, mut ids) = (kind("customers"), customers(&store, scope, 3).await);
    ids.sort();
    let before = row(&store, kind, scope, &ids[0]).await;
    let bytes = "overlay(convert_to(doc, 'UTF8') placing '\\xc1'::bytea from position('Awa' in doc))";
    let flip = format!("update customers set doc = cast({bytes} as text) where id = '{}'", ids[0]);
    client.batch_execute(&flip).await.unwrap();

    let (found, _) = damaged(&store, scope, kind).await;
    assert!(found.len() == 1 && found[0] == (ids[0].clone(), "its document is no text".to_owned()), "{found:?}");
    let seen = row(&store, kind, scope, &ids[0]).await;
    assert!(kind.stamped(&seen).is_err());
    assert_eq!(kind.restored(&seen, &before), Ok(before.clone()));
    assert!(put(&store, kind, (scope, &ids[0]), &seen, &before).await);
    assert_eq!(row(&store, kind, scope, &ids[0]).await, before);

    // Beside the text it can't be had in another way: the row is known by its id.
    let flip = format!("update customers set phone = cast('\\xc1'::bytea as text) where id = '{}'", ids[1]);
    client.batch_execute(&flip).await.unwrap();
    let page = store.read(move |tx| kind.page(tx, scope, "")).await;
    assert!(matches!(page, Err(Error::Corrupt(_))), "{page:?}");
    let listed = store.read(move |tx| kind.ids(tx, scope, "")).await;
    assert_eq!(listed, Ok((ids.clone(), None)));
    for (id, is_readable) in ids.into_iter().zip([true, false, true]) {
        let found = store.read(move |tx| kind.find(tx, scope, &id)).await;
        assert_eq!(found.is_ok(), is_readable, "{found:?}");
    }
    store.close().await;
    world.end().await;
}
