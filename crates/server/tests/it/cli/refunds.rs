//! Money on its way back: what a person decides, and what a process that is killed leaves to the next one.

use std::time::Duration;

use serde_json::{Value, json};

use super::on_both;
use super::place::{Place, text};
use super::server::Server;

on_both!(a_person_decides_where_the_money_is, nothing_is_paid_back_twice_when_the_server_is_killed);

async fn paid(server: &Server, key: &str) -> String {
    let checkout = server.pay(key, "afrimoney", "+2207000000").await;
    let shown = server.until(key, &checkout, |checkout| checkout["status"] == "completed").await;
    text(&shown, "/transaction/id").to_owned()
}

async fn ask(server: &Server, key: &str, transaction: &str, amount: &str) -> String {
    let path = format!("/v1/pay/transactions/{transaction}/refund");
    let (status, refund) = server.call("POST", &path, key, json!({ "amount": amount })).await;
    assert_eq!((status, text(&refund, "/data/status")), (201, "pending"), "{refund}");
    text(&refund, "/data/id").to_owned()
}

async fn status(server: &Server, key: &str, refund: &str) -> String {
    let (_, shown) = server.call("GET", &format!("/v1/pay/refunds/{refund}"), key, Value::Null).await;
    text(&shown, "/data/status").to_owned()
}

async fn until(server: &Server, key: &str, refund: &str, wanted: &str, tenths: u32) {
    for _ in 0..tenths {
        if status(server, key, refund).await == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{refund} is {} and not {wanted}", status(server, key, refund).await);
}

async fn a_person_decides_where_the_money_is(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start(place);
    let transaction = paid(&server, key).await;
    // The network never answers for these two.
    let (gone, kept) = (ask(&server, key, &transaction, "30.73").await, ask(&server, key, &transaction, "20.73").await);
    let known = ask(&server, key, &transaction, "10.00").await;
    for (refund, wanted) in [(&gone, "processing"), (&kept, "processing"), (&known, "completed")] {
        until(&server, key, refund, wanted, 200).await;
    }
    // It is said to have failed, its place is taken, and then it went through after all.
    let parked = ask(&server, key, &transaction, "37.77").await;
    until(&server, key, &parked, "failed", 200).await;
    let instead = ask(&server, key, &transaction, "35.73").await;

    let list = |which: &[&str]| place.json(&[&["refunds", "list"], which].concat()).as_array().unwrap().clone();
    let mut unknown = Vec::new();
    for _ in 0..200 {
        unknown = list(&["--unknown"]);
        if !unknown.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(unknown.len(), 1, "the silent ones have ten minutes: {unknown:?}");
    assert_eq!(text(&unknown[0], "/id"), parked);
    assert!(text(&unknown[0], "/why").starts_with("parked: the rail paid it back after all"), "{unknown:?}");
    let ids = |found: Vec<Value>| found.iter().map(|one| text(one, "/id").to_owned()).collect::<Vec<_>>();
    assert_eq!(ids(list(&[])), [gone.as_str(), &kept, &parked, &instead]);
    assert_eq!(ids(list(&["--live"])), Vec::<String>::new());

    let resolve = |id: &str, outcome: &str| {
        place.run(&["refunds", "resolve", id, "--as", outcome, "--reason", "seen on the statement", "--yes"])
    };
    let unmeant = |id: &str| place.run(&["refunds", "resolve", id, "--as", "completed", "--reason", "seen"]);
    let (of_gone, of_parked) = (unmeant(&gone), unmeant(&parked));
    for (asked, amount) in [(&of_gone, "30.73"), (&of_parked, "37.77")] {
        assert_eq!((asked.code, asked.data.as_str()), (2, ""), "{asked:?}");
        let money = format!("{amount} GMD back, test mode, afrimoney, {transaction} of cs_");
        for words in [money.as_str(), "Decide it as completed, for good?", "give --yes"] {
            assert!(asked.messages.contains(words), "{words:?} is not in {asked:?}");
        }
    }
    let may_come = "It may still be on its way";
    assert!(of_gone.messages.contains(may_come) && !of_parked.messages.contains(may_come), "{of_gone:?} {of_parked:?}");
    assert_eq!(unmeant(&known).code, 5, "there is nothing to ask about");
    assert_eq!(resolve(&parked, "completed").code, 5, "its place is taken");
    assert_eq!(resolve(&gone, "completed").code, 0);
    assert_eq!(resolve(&kept, "failed").code, 0);
    assert_eq!(resolve(&instead, "failed").code, 0);
    assert_eq!(resolve(&parked, "completed").code, 0, "there is room for it now");
    assert_eq!(resolve(&gone, "failed").code, 5, "decided once");
    assert_eq!(resolve(&known, "failed").code, 5, "the rail knew");
    assert_eq!(resolve("ref_01h455vb4pex5vsknk084sn02q", "failed").code, 4);
    assert_eq!(resolve("nonsense", "failed").code, 4);
    assert_eq!(place.run(&["refunds", "resolve", &gone, "--as", "failed", "--reason", " "]).code, 2);
    assert_eq!(place.run(&["refunds", "resolve", &gone, "--as", "failed"]).code, 2);
    for (refund, wanted) in [(&gone, "completed"), (&kept, "failed"), (&parked, "completed"), (&instead, "failed")] {
        assert_eq!(status(&server, key, refund).await, wanted);
    }
    let (_, shown) = server.call("GET", &format!("/v1/pay/transactions/{transaction}"), key, Value::Null).await;
    assert_eq!(text(&shown, "/data/refunded_amount"), "78.50");
    assert_eq!(list(&[]), Vec::<Value>::new());
    assert_eq!(server.stop(), 0);
    place.has_clean_books();
    if !place.is_postgres() {
        let sql =
            "select count(*) from audit_log where action = 'refund.resolved' and reason = 'seen on the statement'";
        let records: i64 = place.raw_sqlite().query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(records, 4, "what was refused is not in the log");
    }
}

/// Killed again and again in the middle of many refunds: each is paid back once, by whichever process comes after.
async fn nothing_is_paid_back_twice_when_the_server_is_killed(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret").to_owned();
    let mut server = Server::start(place);
    let mut transactions = Vec::new();
    for _ in 0..4 {
        transactions.push(paid(&server, &key).await);
    }
    let mut refunds = Vec::new();
    for pause_ms in [0, 3, 10, 30, 100, 250] {
        for transaction in &transactions {
            refunds.push(ask(&server, &key, transaction, "10.00").await);
        }
        refunds.push(ask(&server, &key, &transactions[pause_ms % 4], "1.74").await);
        tokio::time::sleep(Duration::from_millis(u64::try_from(pause_ms).unwrap())).await;
        // SIGKILL.
        drop(server);
        server = Server::start(place);
    }
    for refund in &refunds {
        // What a killed process held is free after half a minute.
        until(&server, &key, refund, "completed", 600).await;
    }
    for transaction in &transactions {
        let path = format!("/v1/pay/transactions/{transaction}");
        let (_, shown) = server.call("GET", &path, &key, Value::Null).await;
        let said = text(&shown, "/data/refunded_amount");
        assert!(said.starts_with("6"), "six of 10.00 and up to two of 1.74: {said}");
    }
    let (_, balance) = server.call("GET", "/v1/payouts/balance", &key, Value::Null).await;
    assert_eq!(text(&balance, "/data/available_balance"), "139.56", "4 × 97.50 − 24 × 10.00 − 6 × 1.74");
    assert_eq!(server.stop(), 0);
    place.has_clean_books();
    if !place.is_postgres() {
        let sql = "select count(*), sum(paid_back_minor) from simulated_refunds";
        let (orders, minor): (i64, i64) =
            place.raw_sqlite().query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!((orders, minor), (30, 25_044), "what left the wallets");
    }
}
