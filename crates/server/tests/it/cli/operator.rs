//! Keys, settings and signing keys, beside a running server.

use std::time::Duration;

use serde_json::{Value, json};

use super::on_both;
use super::place::{Place, text};
use super::server::{Server, client};

on_both!(
    keys_begin_and_end_beside_the_server,
    settings_are_per_mode,
    signing_keys_take_turns,
    a_log_that_nobody_reads_holds_up_nobody
);

async fn keys_begin_and_end_beside_the_server(place: &Place) {
    place.init();
    let server = Server::start(place);
    let made = place.json(&["keys", "create", "--scopes", "read:checkouts", "--name", "reports"]);
    let (id, key) = (text(&made, "/id"), text(&made, "/secret"));
    assert_eq!(
        (&made["kind"], &made["mode"], &made["scopes"], &made["name"]),
        (&json!("secret"), &json!("test"), &json!("read:checkouts"), &json!("reports"))
    );
    assert_eq!(server.call("GET", "/v1/checkouts", key, Value::Null).await.0, 200);
    let (status, refused) = server.call("POST", "/v1/checkouts", key, json!({ "amount": "1.00" })).await;
    assert_eq!((status, &refused["code"]), (403, &json!("insufficient_scope")));

    let listed = place.json(&["keys", "list"]);
    let mine = listed.as_array().unwrap().iter().find(|listed| listed["id"] == id).unwrap();
    assert_eq!(mine.get("secret"), None, "a key is shown once");
    assert!(key.ends_with(text(mine, "/last4")));
    assert_eq!(place.json(&["keys", "list", "--live"]).as_array().unwrap().len(), 2);

    let unasked = place.run(&["keys", "revoke", id]);
    assert_eq!((unasked.code, unasked.data.as_str()), (2, ""), "nobody can be asked: {unasked:?}");
    assert!(unasked.messages.contains("--yes"), "{unasked:?}");
    assert_eq!(server.call("GET", "/v1/checkouts", key, Value::Null).await.0, 200);
    assert_eq!(place.run(&["keys", "revoke", id, "--yes"]).code, 0);
    let mut status = 0;
    for _ in 0..60 {
        status = server.call("GET", "/v1/checkouts", key, Value::Null).await.0;
        if status == 401 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(status, 401, "a revoked key ends within a second or two");
    assert_eq!(place.run(&["keys", "revoke", id, "--yes"]).code, 5);
    assert_eq!(place.run(&["keys", "revoke", "key_01h455vb4pex5vsknk084sn02q", "--yes"]).code, 4);

    let live = place.json(&["keys", "create", "--live", "--kind", "publishable"]);
    assert!(text(&live, "/secret").starts_with("pk_live_") && live["scopes"] == "");
    for wrong in [
        &["keys", "create", "--scopes", "read:nothing"] as &[&str],
        &["keys", "create", "--scopes", ""],
        &["keys", "create", "--kind", "publishable", "--scopes", "read:checkouts"],
    ] {
        assert_eq!(place.run(wrong).code, 2, "{wrong:?}");
    }
    if !place.is_postgres() {
        let audit = place.raw_sqlite();
        let count = |action: &str| -> i64 {
            let sql = "select count(*) from audit_log where action = ?1 and object_id = ?2 and actor like 'cli:%'";
            audit.query_row(sql, [action, id], |row| row.get(0)).unwrap()
        };
        assert_eq!((count("key.created"), count("key.revoked")), (1, 1));
    }
    assert_eq!(server.stop(), 0);
    place.has_clean_books();
}

#[test]
fn however_many_keys_there_are_the_newest_are_listed() {
    let place = Place::sqlite();
    place.init();
    let database = place.raw_sqlite();
    // Made at the end of 2023, before those of the installation.
    let add = |from: i64, to: i64| {
        let sql = "\
            with recursive numbers (number) as (select ?1 union all select number + 1 from numbers where number < ?2), \
                model as (select * from api_keys where mode = 'test' order by id desc limit 1), \
                made as (select printf('key_01h455vb4pex5vsknk%08d', number) as made_id from numbers) \
            insert into api_keys (organization_id, mode, id, version, doc, digest, created_at) \
            select organization_id, mode, made_id, version, json_set(json_remove(doc, '$.crc32'), '$.id', made_id), made_id, \
                created_at from made, model";
        assert_eq!(database.execute(sql, [from, to]).unwrap(), usize::try_from(to - from + 1).unwrap());
    };
    let list = || {
        let ran = place.run(&["keys", "list", "--json"]);
        let listed: Vec<Value> = serde_json::from_str(&ran.data).unwrap();
        let ids: Vec<String> = listed.iter().map(|key| text(key, "/id").to_owned()).collect();
        assert!(ids.is_sorted_by(|newer, older| newer > older), "{ids:?}");
        (ids, ran.messages)
    };
    let of_installation = list().0;
    assert_eq!(of_installation.len(), 2);
    add(1, 1200);
    let (ids, said) = list();
    assert_eq!((ids.len(), said.as_str()), (1202, ""));
    add(1201, 10_000);
    let (ids, said) = list();
    assert_eq!((&ids[..2], ids.len()), (of_installation.as_slice(), 10_000));
    assert_eq!(said, "There are more: these are the newest 10000.\n");
}

async fn settings_are_per_mode(place: &Place) {
    let keys = place.init();
    let set = ["organization", "set", "--name", "Bakau Crafts", "--accent-color", "#0B6E4F", "--phone", "7000000"];
    place.json(&set);
    let live = ["--live", "--fee", "wave=1.25%", "--fee", "card=3%", "--settlement-delay", "2d", "--locale", "fr"];
    let shown = place.json(&[&["organization", "set", "--enabled-methods", "card,wave"], &live[..]].concat());
    assert_eq!(shown, place.json(&["organization", "show"]));
    assert_eq!(
        (&shown["test"]["name"], &shown["live"]["name"], &shown["test"]["phone"]),
        (&json!("Bakau Crafts"), &json!("Bakau Crafts"), &json!("+2207000000"))
    );
    assert_eq!(shown["live"]["fees"], json!({ "afrimoney": "2.5", "card": "3", "qmoney": "2.5", "wave": "1.25" }));
    assert_eq!((&shown["live"]["settlement_delay"], &shown["test"]["settlement_delay"]), (&json!(172_800), &json!(0)));
    assert_eq!((&shown["live"]["enabled_methods"], &shown["live"]["locale"]), (&json!(["wave", "card"]), &json!("fr")));
    assert_eq!(shown["test"]["fees"]["wave"], "2.5");
    assert_eq!(place.json(&["organization", "set", "--phone", ""])["test"]["phone"], Value::Null);

    // The fee is what a payment costs.
    place.json(&["organization", "set", "--test", "--fee", "wave=1.5%"]);
    let server = Server::start(place);
    let key = text(&keys, "/keys/test/secret");
    let id = server.pay(key, "wave", "+2207000000").await;
    let paid = server.until(key, &id, |checkout| checkout["status"] == "completed").await;
    assert_eq!((text(&paid, "/transaction/fee"), text(&paid, "/transaction/net_amount")), ("1.50", "98.50"));
    assert_eq!(server.stop(), 0);

    for wrong in [
        &["--fee", "wave=200%"] as &[&str],
        &["--logo-url", "javascript:1"],
        &["--locale", "de"],
        &["--email", "a"],
        &[],
    ] {
        assert_eq!(place.run(&[&["organization", "set"], wrong].concat()).code, 2, "{wrong:?}");
    }
    let refused = place.run(&["organization", "set", "--logo-url", "logo.png"]);
    assert!(refused.messages.contains("PNG, JPEG or WebP file, such as https://shop.example/logo.png"), "{refused:?}");
}

async fn signing_keys_take_turns(place: &Place) {
    place.init();
    let server = Server::start(place);
    let next = place.json(&["signing-keys", "rotate"]);
    assert_eq!(next["state"], "published");
    assert_eq!(place.run(&["signing-keys", "rotate"]).code, 5, "one at a time");
    let listed = place.json(&["signing-keys", "list"]);
    let states: Vec<&str> = listed.as_array().unwrap().iter().map(|key| text(key, "/state")).collect();
    assert_eq!(states, ["signing", "published"]);
    assert_eq!(server.stop(), 0);
}

async fn a_log_that_nobody_reads_holds_up_nobody(place: &Place) {
    // A pipe holds 64 KiB, and as much waits before it; each line has some 200 bytes.
    const REQUESTS: usize = 1500;
    place.init();
    let server = Server::start_unread(place, &[]);
    let client = client();
    let url = format!("{}/v1/checkouts", server.url);
    let asked = async {
        for _ in 0..REQUESTS {
            assert_eq!(client.get(&url).send().await.unwrap().status(), 401);
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asked).await.expect("an answer waits for no log");
    let (code, log) = server.stop_and_read();
    assert_eq!(code, 0);
    assert_eq!(log.lines().filter(|line| line.contains("/v1/checkouts")).count(), REQUESTS, "none was lost");
}
