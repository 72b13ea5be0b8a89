//! `verify` finds what somebody did to invoices, their payments, receipts and numbers.

use serde_json::{Value, json};

use super::books::{altered, columns, faults};
use super::on_both;
use super::place::{Place, text};
use super::server::Server;

on_both!(invoice_books_that_nobody_touched_are_clean);

const KEEP_ALL: &str = "pragma foreign_keys = off; pragma ignore_check_constraints = on";

/// One of each state, paid by hand, and one paid online.
async fn billed_day(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start(place);
    let create = async |due: &str, is_draft: bool| {
        let body = json!({
            "customer_email": "awa@example.gm", "customer_name": "Awa", "due_date": due, "tax_rate": 15, "is_draft": is_draft,
            "items": [{ "description": "Rice", "quantity": 1, "unit_price": "100.00" }]
        });
        let (status, invoice) = server.call("POST", "/v1/pay/invoices", key, body).await;
        assert_eq!(status, 201, "{invoice}");
        text(&invoice, "/data/id").to_owned()
    };
    let act = async |id: &str, action: &str, body: Value| {
        let path = format!("/v1/pay/invoices/{id}/{action}");
        let (status, answer) = server.call("POST", &path, key, body).await;
        assert!(matches!(status, 200 | 201), "{answer}");
        answer
    };
    let far = "2100-01-01T00:00:00Z";
    let cash = |amount: &str| json!({ "amount": amount, "payment_method": "cash" });
    let draft = create(far, true).await;
    let pending = create(far, false).await;
    let part = create(far, false).await;
    act(&part, "payments", cash("100.00")).await;
    let paid = create(far, true).await;
    act(&paid, "finalize", json!({})).await;
    act(&paid, "payments", cash("15.00")).await;
    act(&paid, "payments", cash("100.00")).await;
    let cancelled = create(far, false).await;
    act(&cancelled, "cancel", json!({})).await;
    let path = format!("/v1/pay/invoices/{pending}");
    assert_eq!(server.call("PUT", &path, key, json!({ "notes": "By the end of the century" })).await.0, 200);
    let online = create(far, false).await;
    let pay = json!({ "object_type": "invoice", "object_id": online, "payment_method": "wave", "customer_phone": "+2207000000" });
    assert_eq!(server.call("POST", "/v1/pay/initialize", key, pay).await.0, 200);
    let path = format!("/v1/pay/invoices/{online}");
    for _ in 0..400 {
        if server.call("GET", &path, key, Value::Null).await.1["data"]["status"] == "paid" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert_eq!(server.call("GET", &path, key, Value::Null).await.1["data"]["status"], "paid");
    assert_ne!(draft, pending);
    assert_eq!(server.stop(), 0);
}

async fn invoice_books_that_nobody_touched_are_clean(place: &Place) {
    billed_day(place).await;
    let report = place.json(&["verify"]);
    assert_eq!((&report["fault_count"], &report["ledger"]), (&0.into(), &json!({ "test GMD": 0 })), "{report}");
    for (table, rows) in
        [("invoices", 6), ("invoice_payments", 4), ("receipts", 4), ("counters", 2), ("transactions", 4)]
    {
        assert_eq!(report["checked"][table], rows, "{table}: {report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_altered_column_of_an_invoice_is_found() {
    let place = Place::sqlite();
    billed_day(&place).await;
    assert_eq!(faults(&place).0, 0);
    let database = place.raw_sqlite_without_checksums();
    database.execute_batch(KEEP_ALL).unwrap();
    let (mut missed, mut tried) = (Vec::new(), 0);
    for (table, which) in [
        ("invoices", "status = 'paid'"),
        ("invoices", "status = 'partially_paid'"),
        ("invoices", "status = 'pending'"),
        ("invoices", "status = 'draft'"),
        ("invoice_payments", "amount_minor = 10000"),
        ("receipts", "amount_minor = 10000"),
        ("counters", "series = 'invoice'"),
        ("counters", "series = 'receipt'"),
        ("transactions", "payment_method = 'cash' and amount_minor = 10000"),
        ("ledger_postings", "account = 'offline_received'"),
        ("events", "type = 'invoice.paid'"),
    ] {
        let rowid: i64 = database
            .query_row(&format!("select rowid from {table} where {which} order by rowid limit 1"), [], |row| row.get(0))
            .unwrap_or_else(|error| panic!("{table} where {which}: {error}"));
        for column in columns(&database, table) {
            let select = format!("select {column} from {table} where rowid = {rowid}");
            let now = database.query_row(&select, [], |row| row.get(0)).unwrap();
            let other = altered(&column, &now);
            assert_ne!(now, other, "{table}.{column} was not altered");
            let set = format!("update {table} set {column} = ?1 where rowid = {rowid}");
            match database.execute(&set, [&other]) {
                Ok(_) => tried += 1,
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => continue,
                Err(error) => panic!("{set}: {error}"),
            }
            if faults(&place).0 != 1 {
                missed.push(format!("{table}.{column} where {which}: {now:?} became {other:?}"));
            }
            database.execute(&set, [&now]).unwrap();
        }
    }
    assert_eq!(missed, Vec::<String>::new(), "of {tried}");
    assert_eq!(faults(&place).0, 0, "everything was put back");
    assert!(tried > 100, "{tried}");
}

/// Rows that are gone, and changes in which columns and documents agree.
#[tokio::test(flavor = "multi_thread")]
async fn invoice_rows_that_are_gone_or_agree_in_a_lie_are_found() {
    let place = Place::sqlite();
    billed_day(&place).await;
    let database = place.raw_sqlite_without_checksums();
    let mut alterations: Vec<String> = Vec::new();
    for table in ["invoices", "invoice_payments", "receipts", "counters"] {
        let mut statement = database.prepare(&format!("select rowid from {table}")).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
        alterations.extend(rows.map(|rowid| format!("delete from {table} where rowid = {}", rowid.unwrap())));
    }
    alterations.extend(
        [
            "delete from jobs where kind = 'overdue_invoice'",
            "delete from customers",
            "delete from transactions where payment_method = 'cash'",
            "delete from ledger_postings where account like 'offline%'",
            "update counters set last_number = last_number - 1",
            "insert into counters select organization_id, mode, series, '1999', 1 from counters where series = 'receipt'",
            // A number that was skipped.
            "update invoices set number = replace(number, '-0006', '-0007'), doc = replace(doc, '-0006\"', '-0007\"')",
            // A number of another month.
            "update receipts set number = 'RCT-1999-001', doc = replace(doc, number, 'RCT-1999-001') where number like '%-001'",
            // Less tax than the lines bear.
            "update invoices set doc = replace(doc, '\"tax_rate\":150000', '\"tax_rate\":140000'), tax_minor = 1400, \
             total_minor = 11400, remaining_minor = 11400 - paid_minor where status = 'paid'",
            // Paid without a payment.
            "update invoices set status = 'paid', paid_minor = 11500, remaining_minor = 0, overdue_at = null, \
             doc = replace(replace(doc, '\"status\":\"pending\"', '\"status\":\"paid\"'), '\"overdue_at\"', '\"at\"') \
             where status = 'pending'",
            // Money that came and is forgotten.
            "update invoices set status = 'overdue', paid_minor = 0, remaining_minor = total_minor, \
             doc = replace(doc, '\"status\":\"paid\"', '\"status\":\"overdue\"') where status = 'paid'",
            // A receipt for more than what was paid.
            "update receipts set amount_minor = 9000, doc = replace(doc, '\"minor\":10000', '\"minor\":9000')",
            "update invoice_payments set amount_minor = 9000, doc = replace(doc, '\"minor\":10000', '\"minor\":9000')",
            // Recorded as if it had come another way.
            "update transactions set payment_method = 'check', doc = replace(doc, '\"method\":\"cash\"', '\"method\":\"check\"') \
             where payment_method = 'cash'",
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
        database.execute_batch(KEEP_ALL).unwrap();
        let before: Vec<String> = documents(&database);
        assert!(database.execute(&alteration, []).unwrap() > 0, "{alteration} did nothing");
        let changes_documents = alteration.contains("doc = ");
        assert!(!changes_documents || before != documents(&database), "{alteration} left the documents alone");
        drop(database);
        let (code, found) = faults(&place);
        assert!(code == 1 && !found.is_empty(), "{alteration} was not found");
    }
}

fn documents(database: &rusqlite::Connection) -> Vec<String> {
    let all = ["invoices", "receipts", "invoice_payments", "transactions"];
    let sql = all.map(|table| format!("select id, doc from {table}")).join(" union all ");
    let mut statement = database.prepare(&format!("select doc from ({sql}) order by id")).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}
