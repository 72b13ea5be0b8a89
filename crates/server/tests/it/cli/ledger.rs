//! The ledger as a file: exported beside the server, checked without it, broken by one byte.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::on_both;
use super::place::{Place, text};
use super::server::Server;

on_both!(
    what_an_answer_says_in_clear_is_what_was_signed,
    where_nothing_is_sealed_yet_there_is_nothing_to_check,
    an_export_is_checked_without_the_server_and_one_byte_breaks_it,
    keys_that_retired_still_prove,
    what_is_sealed_while_it_is_exported_is_left_to_the_next_export,
);

async fn paid(server: &Server, key: &str, count: usize) {
    for _ in 0..count {
        let id = server.pay(key, "wave", "+2207000000").await;
        server.until(key, &id, |checkout| checkout["status"] == "completed").await;
    }
}

/// Until every entry is in a batch: the proof as the API shows it.
async fn sealed(server: &Server, key: &str, entries: u64) -> Value {
    for _ in 0..100 {
        let (status, proof) = server.call("GET", "/v1/ledger/proof", key, Value::Null).await;
        assert_eq!(status, 200, "{proof}");
        if proof["data"]["sealed_entries"].as_u64() >= Some(entries) {
            return proof;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nothing is sealed within ten seconds");
}

async fn what_an_answer_says_in_clear_is_what_was_signed(place: &Place) {
    let installed = place.init();
    let key = text(&installed, "/keys/test/secret");
    let server = Server::start(place);
    for entries in 1..=3 {
        paid(&server, key, 1).await;
        sealed(&server, key, entries).await;
    }
    let asked = async |query: &str| {
        let (status, proof) = server.call("GET", &format!("/v1/ledger/proof{query}"), key, Value::Null).await;
        assert_eq!(status, 200, "{proof}");
        proof
    };
    let (_, list) = server.call("GET", "/v1/pay/transactions", key, Value::Null).await;
    let whole = asked("").await;
    let part = asked("?from_batch=1&limit=1").await;
    let beyond = asked("?from_batch=1000").await;
    let one = asked(&format!("?from_batch=1000&transaction_id={}", text(&list, "/data/items/0/id"))).await;
    assert!(whole["data"]["batch_count"].as_i64() > Some(1), "{whole}");
    assert_eq!(server.stop(), 0);
    let verify = |answer: &Value, format: &[&str]| {
        std::fs::write(place.folder().join("proof.json"), answer.to_string()).unwrap();
        place.run(&[&["ledger", "verify", "proof.json"], format].concat())
    };
    let has_the_end = |answer: &Value| {
        let checked = verify(answer, &["--json"]);
        assert_eq!(checked.code, 0, "{checked:?}");
        let checked: Value = serde_json::from_str(&checked.data).unwrap();
        let has_the_end = checked["has_the_end"] == true;
        assert_eq!(checked["not_covered"].as_array().map(Vec::len), Some(if has_the_end { 3 } else { 4 }));
        has_the_end
    };
    assert!(has_the_end(&whole) && has_the_end(&one) && !has_the_end(&part));
    let said = verify(&part, &[]);
    assert!(said.code == 0 && said.messages.contains("the last batch is not in this answer"), "{said:?}");
    let said = verify(&beyond, &[]);
    assert!(said.code == 1 && said.messages.contains("nothing to check. Ask without `from_batch`"), "{said:?}");

    type Alteration = fn(&mut Value);
    let alterations: [(&str, Alteration); 6] = [
        ("are not those of batch", |data| data["trial_balance"]["sealed"][0]["credits"] = "1.00".into()),
        ("are not those of batch", |data| data["trial_balance"]["sealed"] = json!([])),
        ("entries are sealed", |data| data["sealed_entries"] = 4.into()),
        ("there are 1 batches", |data| data["batch_count"] = 1.into()),
        ("entries are sealed", |data| data["batch_count"] = 1000.into()),
        ("entries are sealed", |data| (data["batches"], data["batch_count"]) = (json!([]), 0.into())),
    ];
    for (why, alter) in alterations {
        let mut altered = whole.clone();
        alter(&mut altered["data"]);
        let said = verify(&altered, &[]);
        assert!(said.code == 1 && said.messages.contains(why), "{why}: {said:?}");
        assert!(said.messages.contains("not the ledger that was sealed"), "{why}: {said:?}");
    }
}

async fn where_nothing_is_sealed_yet_there_is_nothing_to_check(place: &Place) {
    let installed = place.init();
    let server = Server::start(place);
    let proof = sealed(&server, text(&installed, "/keys/test/secret"), 0).await;
    assert_eq!(server.stop(), 0);
    std::fs::write(place.folder().join("proof.json"), proof.to_string()).unwrap();
    assert_eq!(place.run(&["ledger", "export", "ledger.jsonl"]).code, 0);
    for file in ["ledger.jsonl", "proof.json"] {
        let said = place.run(&["ledger", "verify", file]);
        assert_eq!((said.code, said.data.as_str()), (0, ""), "{file}: {said:?}");
        assert!(said.messages.starts_with("Nothing is sealed yet: there is nothing to check.\n"), "{file}: {said:?}");
        assert!(!said.messages.contains("Sound") && said.messages.contains("Not covered"), "{file}: {said:?}");
        let checked = place.json(&["ledger", "verify", file]);
        assert_eq!(
            (&checked["sound"], &checked["entries"], &checked["last_batch"], &checked["last_sealed_at"]),
            (&true.into(), &0.into(), &0.into(), &Value::Null)
        );
    }
}

#[test]
fn what_can_not_be_read_is_no_forgery() {
    let place = Place::sqlite();
    std::fs::create_dir(place.folder().join("folder")).unwrap();
    std::fs::write(place.folder().join("file"), "").unwrap();
    std::fs::write(place.folder().join("bytes"), [0xff, 0xfe]).unwrap();
    let long = "n".repeat(300);
    for (file, keys, code, said) in [
        ("none", None, 4, "there is no file none"),
        ("folder", None, 1, "Is a directory"),
        ("file/file", None, 1, "Not a directory"),
        (long.as_str(), None, 1, "File name too long"),
        ("file", Some("none"), 4, "there is no file none"),
        ("file", Some("folder"), 1, "Is a directory"),
        ("file", Some("file/file"), 1, "Not a directory"),
        ("file", Some("file"), 2, "no JSON Web Key Set"),
    ] {
        for format in [&[] as &[&str], &["--json"]] {
            let keys = keys.map_or(Vec::new(), |keys| vec!["--keys", keys]);
            let refused = place.run(&[&["ledger", "verify", file], keys.as_slice(), format].concat());
            assert_eq!((refused.code, refused.data.as_str()), (code, ""), "{file}: {refused:?}");
            assert!(refused.messages.contains(said) && !refused.messages.contains("sealed"), "{file}: {refused:?}");
        }
    }
    let altered = place.run(&["ledger", "verify", "bytes"]);
    assert!(altered.code == 1 && altered.messages.contains("not the ledger that was sealed"), "{altered:?}");
}

async fn an_export_is_checked_without_the_server_and_one_byte_breaks_it(place: &Place) {
    let installed = place.init();
    let key = text(&installed, "/keys/test/secret");
    let server = Server::start(place);
    paid(&server, key, 3).await;
    let proof = sealed(&server, key, 3).await;
    let file = |name: &str| place.folder().join(name).display().to_string();
    let (export, keys, answer) = (file("ledger.jsonl"), file("keys.json"), file("proof.json"));
    std::fs::write(&answer, proof.to_string()).unwrap();
    let exported = place.json(&["ledger", "export", &export]);
    let expected = json!({
        "file": export, "mode": "test", "batches": exported["batches"], "entries": 3, "unsealed_entries": 0
    });
    assert_eq!(exported, expected);
    assert!(exported["batches"].as_i64() >= Some(1), "{exported}");
    let piped = place.run(&["ledger", "export", "-", "--json"]);
    assert_eq!(piped.data.lines().count(), std::fs::read_to_string(&export).unwrap().lines().count(), "{piped:?}");
    assert_eq!(server.stop(), 0);
    let again = place.run(&["ledger", "export", &export]);
    assert_eq!(again.code, 5, "no file is written over: {again:?}");
    assert!(again.messages.contains("name a new file"), "{again:?}");
    std::fs::write(&keys, place.run(&["ledger", "keys"]).data).unwrap();
    assert_eq!(
        place.json(&["ledger", "keys"]),
        serde_json::from_slice::<Value>(&std::fs::read(&keys).unwrap()).unwrap()
    );

    let checked = place.json(&["ledger", "verify", &export, "--keys", &keys]);
    assert_eq!((&checked["sound"], &checked["entries"], &checked["is_whole"]), (&true.into(), &3.into(), &true.into()));
    assert_eq!(checked["trusts_its_own_keys"], false);
    let said = place.run(&["ledger", "verify", &export]);
    assert!(said.code == 0 && said.messages.contains("--keys") && said.messages.contains("Not covered"), "{said:?}");
    let one = place.json(&["ledger", "verify", &answer, "--keys", &keys]);
    assert_eq!((&one["sound"], &one["is_whole"]), (&true.into(), &false.into()));

    let whole = std::fs::read(&export).unwrap();
    let posting = whole.windows(5).position(|window| window == b"97.50").expect("a posting");
    let mut altered = whole.clone();
    altered[posting] = b'8';
    let broken = file("broken.jsonl");
    std::fs::write(&broken, &altered).unwrap();
    let said = place.run(&["ledger", "verify", &broken, "--keys", &keys]);
    assert_eq!(said.code, 1);
    assert!(said.messages.contains("not what was sealed"), "{said:?}");
    let empty = file("empty.json");
    std::fs::write(&empty, "{\"keys\":[]}").unwrap();
    assert_eq!(place.run(&["ledger", "verify", &export, "--keys", &empty]).code, 1, "no key is trusted");
    assert_eq!(place.run(&["ledger", "verify", &file("none")]).code, 4);

    place.has_clean_books();
    if place.is_postgres() {
        return;
    }
    // Somebody with the database alters a posting and its counterpart: the sum stays zero.
    let database = place.raw_sqlite();
    let shift = "update ledger_postings set amount_minor = amount_minor + case line when 2 then 50 else -50 end \
                 where line in (2, 3) and entry_id = (select min(entry_id) from ledger_postings)";
    assert_eq!(database.execute(shift, []).unwrap(), 2);
    let stolen = file("stolen.jsonl");
    assert_eq!(place.run(&["ledger", "export", &stolen]).code, 0);
    assert_eq!(place.run(&["ledger", "verify", &stolen, "--keys", &keys]).code, 1);
    let report = place.run(&["verify", "--json"]);
    assert!(report.code == 1 && report.data.contains("not what was sealed"), "{report:?}");
}

/// The first batch ever brings a key that the header does not know.
async fn what_is_sealed_while_it_is_exported_is_left_to_the_next_export(place: &Place) {
    let installed = place.init();
    let key = text(&installed, "/keys/test/secret");
    let server = Server::start(place);
    // Full from the start: it waits behind its first line.
    let (mut full, mut rest) = UnixStream::pair().unwrap();
    full.set_nonblocking(true).unwrap();
    while full.write(&[0; 65536]).is_ok() {}
    full.set_nonblocking(false).unwrap();
    let mut command = place.command(&["ledger", "export", "-"]);
    let exporting = command.stdout(OwnedFd::from(full)).stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    tokio::time::sleep(Duration::from_secs(2)).await;
    paid(&server, key, 1).await;
    sealed(&server, key, 1).await;
    let mut read = Vec::new();
    rest.read_to_end(&mut read).unwrap();
    assert!(exporting.wait_with_output().unwrap().status.success());
    assert_eq!(server.stop(), 0);
    let filling = read.iter().take_while(|byte| **byte == 0).count();
    std::fs::write(place.folder().join("ledger.jsonl"), &read[filling..]).unwrap();
    let checked = place.json(&["ledger", "verify", "ledger.jsonl"]);
    assert_eq!((&checked["last_batch"], &checked["unsealed_entries"]), (&0.into(), &0.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_whole_or_is_none() {
    let place = Place::sqlite();
    let installed = place.init();
    let server = Server::start(&place);
    paid(&server, text(&installed, "/keys/test/secret"), 1).await;
    sealed(&server, text(&installed, "/keys/test/secret"), 1).await;
    assert_eq!(server.stop(), 0);
    let set_currency = |currency: &str| {
        let altered =
            format!("pragma ignore_check_constraints = on; update ledger_postings set currency = '{currency}'");
        place.raw_sqlite().execute_batch(&altered).unwrap();
    };
    let names = || std::fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let before: Vec<_> = names().collect();
    set_currency("ABC");
    let broken = place.run(&["ledger", "export", "ledger.jsonl"]);
    assert!(broken.code == 1 && broken.messages.contains("is no currency"), "{broken:?}");
    assert_eq!(names().collect::<Vec<_>>(), before, "nothing is left of it");
    set_currency("GMD");
    assert_eq!(place.run(&["ledger", "export", "ledger.jsonl"]).code, 0);
    assert_eq!(names().count(), before.len() + 1);
    let file = place.folder().join("ledger.jsonl");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(place.json(&["ledger", "verify", "ledger.jsonl"])["entries"], 1);
    std::os::unix::fs::symlink("nowhere", place.folder().join("link")).unwrap();
    for there in ["ledger.jsonl", "link", "data"] {
        assert_eq!(place.run(&["ledger", "export", there]).code, 5, "{there}");
    }
    assert_eq!(place.run(&["ledger", "export", "no/such/folder/file"]).code, 1);
    assert_eq!(names().count(), before.len() + 2);
}

async fn keys_that_retired_still_prove(place: &Place) {
    let installed = place.init();
    let key = text(&installed, "/keys/test/secret");
    let server = Server::start(place);
    paid(&server, key, 1).await;
    sealed(&server, key, 1).await;
    place.json(&["signing-keys", "rotate"]);
    paid(&server, key, 1).await;
    let proof = sealed(&server, key, 2).await;
    assert_eq!(proof["data"]["keys"]["keys"].as_array().map(Vec::len), Some(2), "the next key is known already");
    assert_eq!(server.stop(), 0);
    let export = place.folder().join("ledger.jsonl").display().to_string();
    assert_eq!(place.run(&["ledger", "export", &export]).code, 0);
    assert_eq!(place.json(&["ledger", "verify", &export])["entries"], 2);
    place.has_clean_books();
}
