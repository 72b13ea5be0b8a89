//! Values come back as they went in, and what one database could not keep is refused by both.

use store::{Error, SqlKind, Value};

use crate::on_both;
use crate::world::World;

on_both!(values_come_back, wrong_types_and_counts_are_refused, text_is_ordered_by_bytes);

async fn values_come_back(world: &World) {
    let store = world.open().await;
    let rows: Vec<[Value; 3]> = vec![
        [i64::MIN.into(), "".into(), Vec::new().into()],
        [i64::MAX.into(), "Ɓanjul, Sérékunda, 日本, 🦁, e\u{301}".into(), vec![0, 255, 10, 0].into()],
        [Value::Null, Value::Null, Value::Null],
        [0.into(), "'quotes' \"and\" \\ $1 ?1 -- ;\n\t\u{1}".into(), (0..=255).collect::<Vec<u8>>().into()],
        [true.into(), "x".repeat(200_000).into(), vec![7; 300_000].into()],
    ];
    let insert = "insert into things (id, number, body, bytes) values ($1, $2, $3, $4)";
    let select = "select number, body, bytes from things where id = $1";
    for (index, row) in rows.into_iter().enumerate() {
        for at_once in [true, false] {
            let id = format!("{index}{at_once}");
            let (written, asked) = (row.clone(), id.clone());
            store
                .write(move |tx| {
                    let [number, body, bytes] = written.clone();
                    let values = [id.as_str().into(), number, body, bytes];
                    if at_once { tx.execute(insert, &values).map(drop) } else { tx.append("things", insert, &values) }
                })
                .await
                .unwrap();
            let found = store.read(move |tx| tx.query_one(select, &[asked.as_str().into()])).await.unwrap();
            assert_eq!(found.values(), row);
        }
    }
    store.close().await;
}

async fn wrong_types_and_counts_are_refused(world: &World) {
    let store = world.open().await;
    let insert = "insert into things (id, number, body, bytes) values ($1, $2, $3, $4)";
    for values in [
        vec!["a".into(), "not a number".into(), Value::Null, Value::Null],
        vec!["a".into(), vec![1_u8].into(), Value::Null, Value::Null],
        vec!["a".into(), Value::Null, "a\0b".into(), Value::Null],
        vec!["a".into(), Value::Null, Value::Null],
    ] {
        for at_once in [true, false] {
            let values = values.clone();
            let refused = store
                .write(move |tx| {
                    tx.append("postings", "insert into postings (id, note) values ('p', '')", &[])?;
                    if at_once { tx.execute(insert, &values).map(drop) } else { tx.append("things", insert, &values) }
                })
                .await;
            assert!(matches!(refused, Err(Error::Sql { kind: SqlKind::Type, .. })), "{refused:?}");
        }
    }
    assert_eq!(world.count("things").await + world.count("postings").await, 0);
    store.close().await;
}

async fn text_is_ordered_by_bytes(world: &World) {
    let store = world.open().await;
    let insert = "insert into postings (id, note) values ($1, '')";
    store
        .write(move |tx| {
            for id in ["b", "A", "a", "B", "_", "é", "Z", "a-b", "aB"] {
                tx.append("postings", insert, &[id.into()])?;
            }
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    let ids = store.read(|tx| tx.query("select id from postings order by id", &[])).await.unwrap();
    let ids: Vec<String> = ids.iter().map(|row| row.get(0).unwrap()).collect();
    assert_eq!(ids, ["A", "B", "Z", "_", "a", "a-b", "aB", "b", "é"]);
    store.close().await;
}
