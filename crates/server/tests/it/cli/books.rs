//! `verify` finds every row that somebody altered, moved or removed, and nothing where nobody did.

use std::collections::BTreeSet;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, ErrorCode};
use serde_json::Value;

use super::on_both;
use super::place::{Place, text};
use super::server::{Receiver, Server, client};

on_both!(
    books_that_nobody_touched_are_clean,
    books_of_many_pages_are_read_to_the_end,
    books_are_checked_while_the_service_runs,
);

/// More than a page of everything (200 rows).
const MANY: usize = 230;

/// Something of everything that is kept.
async fn busy_day(place: &Place) -> Receiver {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start_with(place, &["--allow-loopback-webhooks"]);
    let endpoint = Receiver::start().await;
    let body = serde_json::json!({ "url": endpoint.url, "enabled_events": ["*"] });
    server.call("POST", "/v1/webhook_endpoints", key, body).await;
    for (method, phone, status) in [
        ("wave", "+2207000000", "completed"),
        ("afrimoney", "+2207000001", "pending"),
        ("afrimoney", "+2207000003", "pending"),
        ("afrimoney", "+2207000006", "completed"),
    ] {
        let id = server.pay(key, method, phone).await;
        server
            .until(key, &id, |checkout| {
                let open = phone == "+2207000003" || checkout["transaction"]["status"] != "processing";
                checkout["status"] == status && open && !checkout["transaction"].is_null()
            })
            .await;
    }
    let awa = serde_json::json!({ "email": "awa@example.gm", "phone": "+2207000000" });
    let (_, customer) = server.call("POST", "/v1/pay/customers", key, awa).await;
    let map = serde_json::json!({ "name": "Map", "price": "100.00" });
    let (_, product) = server.call("POST", "/v1/pay/products", key, map).await;
    let items = serde_json::json!({
        "customer_id": text(&customer, "/data/id"),
        "items": [{ "product_id": text(&product, "/data/id"), "quantity": 2, "unit_price": "12.50" }],
        "idempotency_key": "order-1", "payment_method": "wave"
    });
    let (_, cancelled) = server.call("POST", "/v1/checkouts", key, items).await;
    let path = format!("/v1/checkouts/{}/cancel", text(&cancelled, "/data/id"));
    assert_eq!(server.call("POST", &path, key, serde_json::json!({})).await.0, 200);
    // Two completed, one failed, one cancelled.
    endpoint.until(6).await;
    give_back(&server, key).await;
    endpoint.until(10).await;
    assert_eq!(server.stop(), 0);
    endpoint
}

/// Of one payment: a part, one that fails, one that is corrected, and one that stays open.
async fn give_back(server: &Server, key: &str) {
    let (_, list) = server.call("GET", "/v1/pay/transactions?status=completed", key, Value::Null).await;
    let path = format!("/v1/pay/transactions/{}/refund", text(&list, "/data/items/0/id"));
    for (amount, wanted) in
        [("10.00", "completed"), ("30.71", "failed"), ("20.77", "completed"), ("5.73", "processing")]
    {
        let (status, refund) = server.call("POST", &path, key, serde_json::json!({ "amount": amount })).await;
        assert_eq!(status, 201, "{refund}");
        let path = format!("/v1/pay/refunds/{}", text(&refund, "/data/id"));
        let mut shown = refund;
        while shown["data"]["status"] != wanted {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            shown = server.call("GET", &path, key, Value::Null).await.1;
        }
    }
}

async fn books_that_nobody_touched_are_clean(place: &Place) {
    busy_day(place).await;
    let report = place.json(&["verify"]);
    assert_eq!((&report["fault_count"], &report["ledger"]), (&0.into(), &serde_json::json!({ "test GMD": 0 })));
    for (table, rows) in [
        ("checkouts", 5),
        ("transactions", 4),
        ("refunds", 4),
        ("balance_guards", 1),
        ("ledger_postings", 22),
        ("events", 10),
        ("customers", 1),
        ("products", 1),
    ] {
        assert_eq!(report["checked"][table], rows, "{table}: {report}");
    }
    // One of the caller's; on PostgreSQL every other write has one of ours.
    let least = if place.is_postgres() { 10 } else { 1 };
    assert!(report["checked"]["idempotency_keys"].as_u64() >= Some(least), "{report}");
    let said = place.run(&["verify"]);
    assert_eq!((said.code, said.data.as_str()), (0, ""));
    assert!(said.messages.contains("no fault"), "{said:?}");
}

async fn books_are_checked_while_the_service_runs(place: &Place) {
    let keys = place.init();
    let server = Server::start(place);
    assert_eq!(shown(&server).await, ("not_run".to_owned(), "NaN".to_owned()));
    let key = text(&keys, "/keys/test/secret");
    let id = server.pay(key, "wave", "+2207000000").await;
    server.until(key, &id, |checkout| checkout["status"] == "completed").await;
    assert_eq!(checked(&server).await, ("ok".to_owned(), "0".to_owned()));
    assert_eq!(server.stop(), 0);
    if place.is_postgres() {
        return;
    }
    place.raw_sqlite().execute("delete from ledger_postings where amount_minor > 0", []).unwrap();
    let server = Server::start(place);
    let (status, faults) = checked(&server).await;
    assert_eq!(status, "faults");
    assert!(faults.parse::<u32>().unwrap() > 0, "{faults}");
    // It is written down as soon as it is seen.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(server.stop(), 0);
    let server = Server::start(place);
    assert_eq!(shown(&server).await.0, "faults", "it knows before it has looked");
    assert_eq!(server.stop(), 0);
}

/// What the first background check after the start says.
async fn checked(server: &Server) -> (String, String) {
    for _ in 0..600 {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let (status, faults) = shown(server).await;
        if status != "not_run" {
            return (status, faults);
        }
    }
    panic!("the books were not checked");
}

/// The state and the number of faults, from the two places that show them.
async fn shown(server: &Server) -> (String, String) {
    let health = server.call("GET", "/health/invariants", "", Value::Null).await.1;
    let metrics = client().get(format!("{}/metrics", server.url)).send().await.unwrap().text().await.unwrap();
    let gauge = metrics.lines().find_map(|line| line.strip_prefix("dalasi_invariant_faults ")).unwrap();
    (text(&health, "/data/status").to_owned(), gauge.to_owned())
}

async fn books_of_many_pages_are_read_to_the_end(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start(place);
    let mut paid = Vec::new();
    for batch in 0..MANY / 10 {
        let pays = (0..10).map(|number| {
            let phone = if (batch + number) % 3 == 0 { "+2207000001" } else { "+2207000000" };
            server.pay(key, "wave", phone)
        });
        paid.extend(futures_util::future::join_all(pays).await);
    }
    for id in &paid {
        server
            .until(key, id, |checkout| {
                matches!(checkout["transaction"]["status"].as_str(), Some("completed" | "failed"))
            })
            .await;
    }
    assert_eq!(server.stop(), 0);
    let report = place.json(&["verify"]);
    for (table, rows) in [("checkouts", MANY), ("transactions", MANY), ("payment_sessions", MANY)] {
        assert_eq!(report["checked"][table], rows, "{table}");
    }
    assert!(report["checked"]["ledger_postings"].as_u64() > Some(400), "{report}");
    if place.is_postgres() {
        return;
    }
    let database = place.raw_sqlite();
    database.execute_batch("pragma foreign_keys = off; pragma ignore_check_constraints = on").unwrap();
    for (table, column) in [("ledger_postings", "amount_minor"), ("transactions", "fee_minor"), ("events", "sequence")]
    {
        for end in ["min", "max"] {
            let row: i64 =
                database.query_row(&format!("select {end}(rowid) from {table}"), [], |row| row.get(0)).unwrap();
            let shift = |by: i64| {
                let sql = format!("update {table} set {column} = {column} + {by} where rowid = {row}");
                assert_eq!(database.execute(&sql, []).unwrap(), 1);
            };
            shift(1000);
            assert_eq!(faults(place).0, 1, "{table}.{column} of the {end} row");
            shift(-1000);
        }
    }
    // Behind the last transaction.
    let orphan = "insert into ledger_postings select organization_id, mode, entry_id, line + 9, \
                  'txn_7zzzzzzzzzzzzzzzzzzzzzzzzz', account, currency, amount_minor, created_at, refund_id \
                  from ledger_postings limit 1";
    assert_eq!(database.execute(orphan, []).unwrap(), 1);
    assert_eq!(faults(place).0, 1);
}

/// The columns of a table.
pub(super) fn columns(database: &Connection, table: &str) -> Vec<String> {
    let mut statement = database.prepare(&format!("select name from pragma_table_info('{table}')")).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// With another last digit of the first number behind `mark`, if there is one.
fn one_more(text: &str, mark: &str) -> String {
    let Some(start) = text.find(mark).map(|at| at + mark.len()) else { return text.to_owned() };
    let length = text[start..].find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap();
    let last = start + length - 1;
    let digit = if &text[last..=last] == "1" { "2" } else { "1" };
    format!("{}{digit}{}", &text[..last], &text[last + 1..])
}

/// Another value that the column could have had.
pub(super) fn altered(column: &str, value: &Sql) -> Sql {
    let other = |choices: [&str; 2], now: &str| if now == choices[0] { choices[1] } else { choices[0] }.to_owned();
    match (column, value) {
        // Far enough to meet no neighbour of a unique column.
        (_, Sql::Integer(number)) => Sql::Integer(number + 1000),
        (_, Sql::Null) => Sql::Text("7".into()),
        ("status", Sql::Text(now)) => Sql::Text(other(["completed", "cancelled"], now)),
        ("mode", Sql::Text(now)) => Sql::Text(other(["test", "live"], now)),
        ("currency", Sql::Text(now)) => Sql::Text(other(["GMD", "USD"], now)),
        ("step", Sql::Text(now)) => Sql::Text(other(["settled", "waiting"], now)),
        ("type", Sql::Text(now)) => Sql::Text(other(["checkout.completed", "payment.failed"], now)),
        ("payment_method", Sql::Text(now)) => Sql::Text(other(["wave", "card"], now)),
        ("account", Sql::Text(now)) => Sql::Text(other(["merchant", "fees"], now)),
        ("doc", Sql::Text(now)) => Sql::Text(one_more(now, "\"minor\":")),
        ("body", Sql::Text(now)) => Sql::Text(one_more(now, "\"amount\":\"")),
        (_, Sql::Text(now)) => {
            let end = if now.ends_with('7') { '8' } else { '7' };
            Sql::Text(format!("{}{end}", &now[..now.len() - 1]))
        }
        (_, other) => other.clone(),
    }
}

/// Faults that `verify` finds, as `table row`.
pub(super) fn faults(place: &Place) -> (i32, BTreeSet<String>) {
    let ran = place.run(&["verify", "--json"]);
    let Ok(report) = serde_json::from_str::<Value>(&ran.data) else { return (ran.code, BTreeSet::new()) };
    let faults = report["faults"].as_array().unwrap().iter();
    (ran.code, faults.map(|fault| format!("{} {}", text(fault, "/table"), text(fault, "/row"))).collect())
}

/// Every column of a row of each of these tables, one at a time.
#[tokio::test(flavor = "multi_thread")]
async fn every_altered_column_is_found() {
    let place = Place::sqlite();
    busy_day(&place).await;
    assert_eq!(faults(&place), (0, BTreeSet::new()));
    let database = place.raw_sqlite_without_checksums();
    database.execute_batch("pragma foreign_keys = off; pragma ignore_check_constraints = on").unwrap();
    let mut missed = Vec::new();
    let mut tried = 0;
    for (table, which) in [
        ("ledger_postings", "line = 2"),
        ("ledger_postings", "line = 1"),
        ("ledger_postings", "refund_id is not null"),
        ("refunds", "status = 'completed'"),
        ("refunds", "status = 'processing'"),
        ("refunds", "status = 'failed'"),
        ("balance_guards", "true"),
        ("simulated_refunds", "true"),
        ("checkouts", "status = 'completed'"),
        ("checkouts", "status = 'pending'"),
        ("transactions", "status = 'completed'"),
        ("transactions", "status = 'partially_refunded'"),
        ("transactions", "status = 'processing'"),
        ("transactions", "status = 'failed'"),
        ("events", "type = 'payment.succeeded'"),
        ("events", "type = 'checkout.completed'"),
        ("events", "type = 'refund.completed'"),
        ("events", "type = 'refund.failed'"),
        ("payment_sessions", "status = 'succeeded'"),
        ("event_log", "log_no = 3"),
        ("organizations", "mode = 'test'"),
        ("webhook_endpoints", "true"),
        ("customers", "true"),
        ("products", "true"),
    ] {
        let rowid: i64 = database
            .query_row(&format!("select rowid from {table} where {which} order by rowid limit 1"), [], |row| row.get(0))
            .unwrap_or_else(|error| panic!("{table} where {which}: {error}"));
        for column in columns(&database, table) {
            let now: Sql = database
                .query_row(&format!("select {column} from {table} where rowid = {rowid}"), [], |row| row.get(0))
                .unwrap();
            let other = altered(&column, &now);
            if now == other {
                // A document without such an amount.
                assert!(
                    matches!(table, "organizations" | "webhook_endpoints" | "customers"),
                    "{table}.{column} was not altered"
                );
                continue;
            }
            let set = format!("update {table} set {column} = ?1 where rowid = {rowid}");
            match database.execute(&set, [&other]) {
                Ok(_) => tried += 1,
                // The database itself does not take it.
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => continue,
                Err(error) => panic!("{set}: {error}"),
            }
            if faults(&place).0 != 1 {
                missed.push(format!("{table}.{column} where {which}: {now:?} became {other:?}"));
            }
            database.execute(&set, [&now]).unwrap();
        }
    }
    assert_eq!(faults(&place), (0, BTreeSet::new()), "everything was put back");
    assert_eq!(missed, Vec::<String>::new(), "of {tried}");
    assert!(tried > 100, "{tried}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_gone_or_too_many_are_found() {
    let place = Place::sqlite();
    busy_day(&place).await;
    let database = place.raw_sqlite_without_checksums();
    database.execute_batch("pragma foreign_keys = off; pragma ignore_check_constraints = on").unwrap();
    let mut alterations: Vec<String> = Vec::new();
    let tables = ["ledger_postings", "checkouts", "transactions", "payment_sessions", "refunds", "events", "event_log"];
    for table in tables.into_iter().chain(["balance_guards"]) {
        let mut statement = database.prepare(&format!("select rowid from {table}")).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
        alterations.extend(rows.map(|rowid| format!("delete from {table} where rowid = {}", rowid.unwrap())));
    }
    alterations.extend(
        [
            "delete from jobs where kind = 'expire_checkout'",
            "delete from jobs where kind = 'ask_rail'",
            "update jobs set kind = 'dance'",
            "update idempotency_keys set body = 'nonsense'",
            "update idempotency_keys set sealed_body = x'00'",
            "update idempotency_keys set sealed_body = null",
            "update idempotency_keys set status = null",
            "update webhook_deliveries set sequence = sequence + 1",
            "delete from organizations where mode = 'live'",
            "delete from customers",
            // A whole entry more: balanced, and of a payment that failed.
            "insert into ledger_postings select organization_id, mode, 'entry_01h455vb4pex5vsknk084sn02q', line, \
             (select id from transactions where status = 'failed'), account, currency, amount_minor, created_at, refund_id \
             from ledger_postings where entry_id = (select min(entry_id) from ledger_postings)",
            // A whole entry of no payment, that waits to be sealed as any does: it would be the merchant's to spend.
            "insert into ledger_postings select organization_id, mode, 'entry_01h455vb4pex5vsknk084sn02q', line, '', account, \
             currency, amount_minor, created_at, refund_id \
             from ledger_postings where entry_id = (select min(entry_id) from ledger_postings); \
             insert into ledger_unsealed select organization_id, mode, entry_id from ledger_postings \
             where transaction_id = '' and line = 1",
            // The same payment posted twice.
            "insert into ledger_postings select organization_id, mode, 'entry_01h455vb4pex5vsknk084sn02q', line, \
             transaction_id, account, currency, amount_minor, created_at, refund_id \
             from ledger_postings where entry_id = (select min(entry_id) from ledger_postings)",
            // Column and document agree, and both are wrong.
            "update checkouts set status = 'pending', doc = replace(doc, '\"completed\"', '\"pending\"') \
             where status = 'completed'",
            "update transactions set fee_minor = 240, doc = replace(doc, '\"minor\":250', '\"minor\":240') \
             where status = 'completed'",
            "update transactions set amount_minor = 9000, doc = replace(doc, '\"minor\":10000', '\"minor\":9000')",
            "update ledger_postings set amount_minor = amount_minor * 2",
            "delete from jobs where kind = 'ask_refund'",
            "update balance_guards set debits = debits + 1",
            // A refund that is worth more, wherever it is written.
            "update refunds set amount_minor = 1001, doc = replace(doc, '\"minor\":1000,', '\"minor\":1001,') \
             where amount_minor = 1000",
            // A refund that nobody counts.
            "update transactions set refunding_minor = 0, doc = replace(doc, '\"refunding_minor\":573', '\"refunding_minor\":0') \
             where refunding_minor = 573",
            // What failed is said to have gone through.
            "update refunds set status = 'completed', doc = replace(doc, '\"failed\"', '\"completed\"') \
             where status = 'failed'",
            // A refund posted twice.
            "insert into ledger_postings select organization_id, mode, 'entry_01h455vb4pex5vsknk084sn02q', line, \
             transaction_id, account, currency, amount_minor, created_at, refund_id \
             from ledger_postings where entry_id = (select max(entry_id) from ledger_postings)",
        ]
        .map(str::to_owned),
    );
    let pristine = place.folder().join("pristine.db");
    database.execute("vacuum into ?1", [pristine.to_str().unwrap()]).unwrap();
    drop(database);
    for alteration in alterations {
        for beside in ["data/dalasi.db-wal", "data/dalasi.db-shm"] {
            // There is none after the last connection was closed.
            let _ = std::fs::remove_file(place.folder().join(beside));
        }
        std::fs::copy(&pristine, place.file()).unwrap();
        let database = place.raw_sqlite();
        database.execute_batch("pragma foreign_keys = off; pragma ignore_check_constraints = on").unwrap();
        database.execute_batch(&alteration).unwrap();
        assert!(database.total_changes() > 0, "{alteration} did nothing");
        drop(database);
        let (code, found) = faults(&place);
        assert!(code == 1 && !found.is_empty(), "{alteration} was not found");
    }
}
