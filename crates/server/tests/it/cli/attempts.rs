//! Money that only a person can judge.

use std::time::Duration;

use serde_json::{Value, json};

use super::on_both;
use super::place::{Place, Ran, text};
use super::server::Server;
use crate::mails::sink::{Script, Sink};

on_both!(a_person_decides_what_nobody_knows, a_payment_decided_by_hand_mails_its_receipt);

async fn a_person_decides_what_nobody_knows(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start_with(place, &["--pay-url", "https://pay.example"]);
    // The network never answers for these two.
    let paid = server.pay(key, "afrimoney", "+2207000003").await;
    let failed = server.pay(key, "afrimoney", "+2207000003").await;
    let settled = server.pay(key, "afrimoney", "+2207000000").await;
    let transaction = async |checkout: &str| {
        let shown = server.until(key, checkout, |checkout| !checkout["transaction"].is_null()).await;
        text(&shown, "/transaction/id").to_owned()
    };
    let (one, other) = (transaction(&paid).await, transaction(&failed).await);
    server.until(key, &settled, |checkout| checkout["status"] == "completed").await;
    let decided = transaction(&settled).await;

    let resolve = |id: &str, outcome: &str| {
        place.run(&[
            "attempts",
            "resolve",
            id,
            "--as",
            outcome,
            "--reason",
            "seen on the statement",
            "--yes",
            "--pay-url",
            "https://pay.example",
        ])
    };
    let unmeant = |id: &str| place.run(&["attempts", "resolve", id, "--as", "completed", "--reason", "seen"]);
    let asked = unmeant(&one);
    assert_eq!((asked.code, asked.data.as_str()), (2, ""), "{asked:?}");
    let money = format!("100.00 GMD, test mode, afrimoney, {paid}");
    for words in [money.as_str(), "Its payer may still be paying", "Decide it as completed, for good?", "give --yes"] {
        assert!(asked.messages.contains(words), "{words:?} is not in {asked:?}");
    }
    assert_eq!(unmeant(&decided).code, 5, "there is nothing to ask about");
    let done = resolve(&one, "completed");
    assert!(done.code == 0 && done.messages.contains(&format!("({money}) is completed now")), "{done:?}");
    assert_eq!(resolve(&other, "failed").code, 0);
    server.until(key, &paid, |checkout| checkout["status"] == "completed").await;
    let still = server.until(key, &failed, |checkout| checkout["transaction"]["status"] == "failed").await;
    assert_eq!(still["status"], "pending", "the payer may try again");
    let (_, events) = server.call("GET", "/v1/events", key, Value::Null).await;
    let of_paid: Vec<&Value> =
        events["data"]["items"].as_array().unwrap().iter().filter(|event| event["object_id"] == *paid).collect();
    assert_eq!(of_paid.len(), 2);
    assert!(text(of_paid[0], "/data/payment_url").starts_with("https://pay.example/checkout/"));

    assert_eq!(resolve(&one, "failed").code, 5, "decided once");
    assert_eq!(resolve(&decided, "failed").code, 5, "the rail knew");
    assert_eq!(resolve("txn_01h455vb4pex5vsknk084sn02q", "failed").code, 4);
    assert_eq!(resolve("nonsense", "failed").code, 4);
    assert_eq!(place.run(&["attempts", "resolve", &one, "--as", "failed", "--reason", " "]).code, 2);
    assert_eq!(place.run(&["attempts", "resolve", &one, "--as", "failed"]).code, 2);
    assert_eq!(server.stop(), 0);
    place.has_clean_books();
    if !place.is_postgres() {
        let sql =
            "select count(*) from audit_log where action = 'attempt.resolved' and reason = 'seen on the statement'";
        let records: i64 = place.raw_sqlite().query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(records, 2, "what was refused is not in the log");
    }
}

/// The server's settings stand partly in a file and partly in its environment.
async fn a_payment_decided_by_hand_mails_its_receipt(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let sink = Sink::start(Script::default()).await;
    let settings = "mail-from = 'Bills <bills@shop.example>'\npay-url = 'https://pay.example'";
    std::fs::write(place.folder().join("dalasi.toml"), settings).unwrap();
    let server = Server::start_with(place, &["--config", "dalasi.toml", "--smtp-url", &sink.url()]);
    let bill = json!({
        "customer_email": "awa@example.org", "customer_name": "Awa", "due_date": "2100-01-01T00:00:00Z",
        "items": [{ "description": "Rice", "quantity": 1, "unit_price": "100.00" }]
    });
    let (status, invoice) = server.call("POST", "/v1/pay/invoices", key, bill).await;
    assert_eq!(status, 201, "{invoice}");
    let id = text(&invoice, "/data/id");
    // The network never answers.
    let pay = json!({
        "object_type": "invoice", "object_id": id, "payment_method": "afrimoney", "customer_phone": "+2207000003"
    });
    assert_eq!(server.call("POST", "/v1/pay/initialize", key, pay).await.0, 200);
    let (_, begun) = server.call("GET", "/v1/pay/transactions", key, Value::Null).await;
    let attempt = text(&begun, "/data/items/0/id");

    let beside = |arguments: &[&str], url: &str| {
        let mut command = place.command(&[arguments, &["--config", "dalasi.toml"]].concat());
        Ran::of(command.env("DALASI_SMTP_URL", url).output().unwrap())
    };
    let resolve = ["attempts", "resolve", attempt, "--as", "completed", "--reason", "seen on the statement", "--yes"];
    let resolved = beside(&resolve, &sink.url());
    assert_eq!(resolved.code, 0, "{resolved:?}");
    let mailed = async {
        while sink.heard(|heard| heard.messages.is_empty()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        sink.heard(|heard| heard.messages.concat())
    };
    let message = tokio::time::timeout(Duration::from_secs(20), mailed).await.expect("a receipt is mailed");
    assert!(message.contains("<awa@example.org>") && message.contains("Subject: TEST: Receipt"), "{message}");

    // Where the address of the mail server is known to the unit alone, the other commands still do their work.
    let (_, paid) = server.call("GET", &format!("/v1/pay/invoices/{id}"), key, Value::Null).await;
    let address = beside(&["receipt", "address", text(&paid, "/data/receipts/0/receipt_number")], "");
    assert!(address.data.starts_with("https://pay.example/verify#"), "{address:?}");
    let unknown = ["refunds", "resolve", "ref_01h455vb4pex5vsknk084sn02q", "--as", "failed", "--reason", "seen"];
    assert_eq!(beside(&unknown, "").code, 4);
    assert_eq!(server.stop(), 0);
    place.has_clean_books();
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_say_what_waits_for_a_person() {
    let place = Place::sqlite();
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start(&place);
    let silent = server.pay(key, "afrimoney", "+2207000003").await;
    let paid = server.pay(key, "afrimoney", "+2207000000").await;
    server.until(key, &paid, |checkout| checkout["status"] == "completed").await;
    assert_eq!(server.stop(), 0);
    let list = |which: &[&str]| place.json(&[&["attempts", "list"], which].concat()).as_array().unwrap().clone();
    assert_eq!(list(&["--unknown"]), Vec::<Value>::new(), "a rail has ten minutes");

    let set = |column: &str, value: &str, object: &str| {
        let sql = format!("update transactions set {column} = {value} where object_id = '{object}'");
        assert_eq!(place.raw_sqlite().execute(&sql, []).unwrap(), 1);
    };
    set("created_at", "created_at - 601000000", &silent);
    set("attention", "2", &paid);
    let objects = |which: &[&str]| list(which).iter().map(|one| text(one, "/object_id").to_owned()).collect::<Vec<_>>();
    assert_eq!(objects(&["--unknown"]), [silent.as_str()]);
    assert_eq!(objects(&["--duplicate"]), [paid.as_str()]);
    assert_eq!(objects(&[]), [silent.as_str(), paid.as_str()]);
    assert_eq!(objects(&["--live"]), Vec::<String>::new());
    set("status", "'partially_refunded'", &paid);
    assert_eq!(objects(&["--duplicate"]), [paid.as_str()]);
    set("status", "'refunded'", &paid);
    assert_eq!(objects(&["--duplicate"]), Vec::<String>::new(), "nothing of it is left to give back");
    set("created_at", "created_at + 601000000", &silent);
    set("attention", "1", &silent);
    assert_eq!(objects(&["--unknown"]), [silent.as_str()]);
    let plain = place.run(&["attempts", "list", "--unknown"]).data;
    assert_eq!(plain.lines().count(), 1, "plain when piped: {plain}");
    assert_eq!(place.run(&["attempts", "list", "--unknown", "--duplicate"]).code, 2);
}
