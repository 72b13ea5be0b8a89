//! Rows for every table and every column that a schema ever had. Which of them there are at a schema is asked of the
//! database, so that a table or a column that nobody thought of here is missed at once.

use std::collections::BTreeMap;

use store::queries::transactions::CAME_TWICE;
use store::{Dialect, Error, Tx, Value};

/// What the migrations keep for themselves, and what SQLite's driver derives of the idempotency keys.
const OTHERS: &[&str] = &["schema_migrations", "leases", "idempotency_runs", "idempotency_run_pages"];

/// What a migration took away: it is filled as long as it is there, and not looked for afterwards.
const REMOVED: &[(&str, &str)] = &[("checkouts", "client_secret_digest")];

/// What a migration sets anew in the rows of before, and its number. What has to hold of it then is said in `ADDED`.
const SET_ANEW: &[(&str, &str, usize)] = &[("jobs", "lane", 24), ("jobs", "lane", 29)];

/// What the database gives by itself to the rows that it is not given for.
const GIVEN: &[(&str, &str)] = &[("idempotency_keys", "sequence")];

/// What a migration added to a table that was there, and what has to hold of it in the rows of before.
const ADDED: &[(&str, &str, &str)] = &[
    ("transactions", "refunded_minor", "refunded_minor = 0"),
    ("transactions", "refunding_minor", "refunding_minor = 0"),
    ("transactions", "expires_at", "expires_at is null"),
    ("ledger_postings", "refund_id", "refund_id is null"),
    ("idempotency_keys", "sealed_body", "sealed_body is null"),
    ("idempotency_keys", "sequence", "sequence > 0"),
    ("webhook_deliveries", "updated_at", "updated_at is null"),
    ("api_keys", "last_used_at", "last_used_at is null"),
    ("mails", "unanswered", "unanswered = 0"),
    ("events", "body_crc32", "body_crc32 is null"),
    (
        "jobs",
        "lane",
        "lane = case when kind = 'render_invoice' then 1 when kind <> 'expire_checkout' then 2
            when (select count(*) from schema_migrations) < 29 then 0 when mode = 'test' then 4 else 3 end",
    ),
];

/// Table by table, its columns.
pub(super) type Shape = BTreeMap<String, Vec<String>>;

/// Of one table: the columns that were looked at, and what they held, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    /// But for what was set anew on the way to the schema of the first `schema` migrations.
    fn as_they_stay(&self, table: &str, schema: usize) -> Self {
        let is_set_anew =
            |column: &str| SET_ANEW.iter().any(|(of, it, by)| (*of, *it) == (table, column) && *by <= schema);
        let stays: Vec<bool> = self.columns.iter().map(|column| !is_set_anew(column)).collect();
        let rows = self.rows.iter().map(|row| only(row, &stays)).collect();
        Self { columns: only(&self.columns, &stays), rows }
    }
}

fn only<T: Clone>(all: &[T], which: &[bool]) -> Vec<T> {
    all.iter().zip(which).filter(|(_, is_one)| **is_one).map(|(one, _)| one.clone()).collect()
}

/// Everything that was in a database.
pub(super) type Golden = BTreeMap<String, Rows>;

const COLUMNS_SQLITE: &str = "
select tables.name, columns.name
from sqlite_master as tables, pragma_table_info(tables.name) as columns
where tables.type = 'table'
  and tables.name not like 'sqlite_%'
order by tables.name, columns.cid";

const COLUMNS_POSTGRES: &str = "
select cast(table_name as text), cast(column_name as text)
from information_schema.columns
where table_schema = current_schema()
order by table_name, ordinal_position";

pub(super) fn shape(tx: &mut Tx<'_>) -> Result<Shape, Error> {
    let sql = match tx.dialect() {
        Dialect::Sqlite => COLUMNS_SQLITE,
        Dialect::Postgres => COLUMNS_POSTGRES,
    };
    let mut shape = Shape::new();
    for row in tx.query(sql, &[])? {
        let (table, column) = (row.get::<String>(0)?, row.get::<String>(1)?);
        if !OTHERS.contains(&table.as_str()) {
            shape.entry(table).or_default().push(column);
        }
    }
    Ok(shape)
}

/// Fills every table of the schema of the first `schema` migrations, each with rows made of so many numbers.
pub(super) fn fill(tx: &mut Tx<'_>, schema: usize, numbers: i64) -> Result<(), Error> {
    let mut shape = shape(tx)?;
    // They are referred to.
    for table in ["organizations", "transactions"] {
        let columns = shape.remove(table).unwrap();
        fill_table(tx, table, &columns, schema, numbers)?;
    }
    for (table, columns) in shape {
        fill_table(tx, &table, &columns, schema, numbers)?;
    }
    Ok(())
}

fn fill_table(tx: &mut Tx<'_>, table: &str, columns: &[String], schema: usize, numbers: i64) -> Result<(), Error> {
    let is_given = |column: &&String| !GIVEN.contains(&(table, column.as_str()));
    let columns: Vec<&str> = columns.iter().filter(is_given).map(String::as_str).collect();
    let (mut values, mut rows) = (Vec::new(), Vec::new());
    for of in (0..numbers).map(|number| Of { number, schema }).filter(|of| of.is_in(table)) {
        let places: Vec<_> = (1..=columns.len()).map(|place| format!("${}", values.len() + place)).collect();
        rows.push(format!("({})", places.join(", ")));
        values.extend(columns.iter().map(|column| of.value(table, column)));
    }
    tx.execute(&format!("insert into {table} ({}) values {}", columns.join(", "), rows.join(", ")), &values).map(drop)
}

/// All that stands in these tables, but for what a later migration removes.
pub(super) fn read(tx: &mut Tx<'_>, shape: Shape) -> Result<Golden, Error> {
    let mut golden = Golden::new();
    for (table, mut columns) in shape {
        columns.retain(|column| !REMOVED.contains(&(table.as_str(), column.as_str())));
        let (listed, order) = (columns.join(", "), (1..=columns.len()).map(|place| place.to_string()));
        let sql = format!("select {listed} from {table} order by {}", order.collect::<Vec<_>>().join(", "));
        let rows = tx.query(&sql, &[])?.iter().map(|row| row.values().to_vec()).collect();
        golden.insert(table, Rows { columns, rows });
    }
    Ok(golden)
}

/// What became of a database that held `before`, table by table: where something is missing, different or too much.
pub(super) fn changed(tx: &mut Tx<'_>, before: &Golden) -> Result<Vec<String>, Error> {
    let shape = shape(tx)?;
    let schema =
        usize::try_from(tx.query_one("select max(number) from schema_migrations", &[])?.get::<i64>(0)?).unwrap();
    let mut found = Vec::new();
    for (table, rows) in before {
        let rows = &rows.as_they_stay(table, schema);
        let Some(columns) = shape.get(table) else {
            found.push(format!("{table} is gone"));
            continue;
        };
        if let Some(gone) = rows.columns.iter().find(|column| !columns.contains(column)) {
            found.push(format!("{table}.{gone} is gone"));
            continue;
        }
        let kept = Shape::from([(table.clone(), rows.columns.clone())]);
        if read(tx, kept)?.get(table) != Some(rows) {
            found.push(format!("{table} has other rows"));
        }
        let is_removed = |column: &str| REMOVED.contains(&(table.as_str(), column));
        for column in columns.iter().filter(|column| !rows.columns.contains(column) && !is_removed(column)) {
            found.extend(wrongly_added(tx, table, column)?);
        }
    }
    Ok(found)
}

fn wrongly_added(tx: &mut Tx<'_>, table: &str, column: &str) -> Result<Option<String>, Error> {
    let Some((.., condition)) = ADDED.iter().find(|(of, name, _)| (*of, *name) == (table, column)) else {
        return Ok(Some(format!("nobody says what {table}.{column} is in the rows of before")));
    };
    let wrong = format!("select count(*) from {table} where not coalesce({condition}, false)");
    let count = tx.query_one(&wrong, &[])?.get::<i64>(0)?;
    Ok((count > 0).then(|| format!("{table}.{column} is wrong in {count} rows")))
}

/// The tables without a row, and the columns in which nothing ever stands.
pub(super) fn unfilled(tx: &mut Tx<'_>) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for (table, columns) in shape(tx)? {
        let counts: Vec<_> = columns.iter().map(|column| format!("count({column})")).collect();
        let row = tx.query_one(&format!("select {} from {table}", counts.join(", ")), &[])?;
        let is_empty = |(_, count): &(&String, &Value)| **count == Value::Integer(0);
        let empty = columns.iter().zip(row.values()).filter(is_empty);
        found.extend(empty.map(|(column, _)| format!("{table}.{column}")));
    }
    Ok(found)
}

/// Every status and step that `transactions` allows, in turn. The fifth of them may be recorded by hand.
const TRANSACTIONS: [(&str, &str); 8] = [
    ("pending", "sending"),
    ("processing", "waiting"),
    ("completed", "settled"),
    ("failed", "settled"),
    ("cancelled", "settled"),
    ("expired", "settled"),
    ("refunded", "settled"),
    ("partially_refunded", "unknown"),
];

/// Of the names of what is referred to; of others anything.
fn prefix(table: &str) -> &str {
    match table {
        "checkouts" => "cs",
        "customers" => "cus",
        "events" | "events_unlogged" => "evt",
        "invoices" => "inv",
        "payment_sessions" => "ps",
        "transactions" => "txn",
        "webhook_endpoints" => "we",
        other => other,
    }
}

/// The number of a row of each table, in the schema of the first so many migrations.
#[derive(Clone, Copy)]
struct Of {
    number: i64,
    schema: usize,
}

impl Of {
    fn one(self, of: &[&str]) -> Value {
        let place = usize::try_from(self.number).unwrap() % of.len();
        of[place].into()
    }

    fn id(self, prefix: &str) -> Value {
        format!("{prefix}_{:04}", self.number).into()
    }

    /// Of every third row nothing.
    fn sometimes(self, value: Value) -> Value {
        if self.number % 3 == 0 { Value::Null } else { value }
    }

    fn text(self) -> Value {
        format!("{{\"n\": {}, \"name\": \"Nd\u{eb}y \u{1f33f} O'Neill;\\u0000\"}}", self.number).into()
    }

    fn amount(self) -> i64 {
        100 + self.number * 1_000_000_000_003
    }

    /// What is committed has a place in the log or waits for one.
    fn is_in(self, table: &str) -> bool {
        match table {
            // Two of them, in both modes.
            "organizations" => self.number < 4,
            // One for each of them.
            "doubts" => self.number < 8 && self.number % 2 == 0,
            "events_unlogged" | "ledger_unsealed" => self.number % 2 == 0,
            "event_log" | "ledger_log" => self.number % 2 == 1,
            _ => true,
        }
    }

    fn is_by_hand(self) -> bool {
        4 <= self.schema && self.number % 8 == 4
    }

    fn value(self, table: &str, column: &str) -> Value {
        let number = self.number;
        match (table, column) {
            ("organizations", "organization_id" | "id") => format!("org_{}", number % 2).into(),
            ("organizations", "mode") => if number < 2 { "test" } else { "live" }.into(),
            (_, "id") => self.id(prefix(table)),
            // There is no simulated money but in test mode.
            ("simulated_payments" | "simulated_refunds", "mode") => "test".into(),
            (_, "organization_id") => format!("org_{}", number / 2 % 2).into(),
            (_, "mode") => if number / 4 % 2 == 0 { "test" } else { "live" }.into(),
            (_, "version" | "attempts" | "round_attempts" | "usage_count" | "debits" | "failures") => number.into(),
            (_, "created_at" | "deadline_at" | "due_at") => number.into(),
            (_, "updated_at" | "active_from" | "lease_until" | "lease_token") => (number + 1).into(),
            (_, "doc" | "body" | "statement" | "name") => self.text(),
            (_, "currency") => {
                if table == "balance_guards" {
                    self.id("C")
                } else {
                    self.one(&["GMD", "XOF"])
                }
            }
            (_, "reference" | "rail_reference") if self.is_by_hand() => Value::Null,
            (_, "reference" | "rail_reference" | "reason" | "subscription_id" | "phone") => {
                self.sometimes(self.id("ref"))
            }
            (_, "revoked_at" | "retired_at" | "deleted_at" | "expires_at" | "expiration_at" | "last_used_at") => {
                self.sometimes(number.into())
            }
            ("transactions", _) => self.of_transaction(column),
            ("invoices", _) => self.of_invoice(column),
            ("mails", _) => self.of_mail(column),
            ("documents", _) => self.of_document(column),
            ("webhook_deliveries", _) => self.of_delivery(column),
            ("jobs", "kind") => self.one(&["expire_checkout", "render_invoice", "fetch_logo", "give_up_deliveries"]),
            ("jobs", "lane") if self.schema < 24 => (number % 4 != 0).into(),
            ("jobs", "lane") if self.schema >= 29 && number % 4 == 0 => if number / 4 % 2 == 0 { 4 } else { 3 }.into(),
            ("jobs", "lane") => (number % 4).min(2).into(),
            ("idempotency_keys", "state") => self.one(&["finished", "finished", "running"]),
            ("idempotency_keys", "status") => {
                if number % 3 == 2 {
                    Value::Null
                } else {
                    201.into()
                }
            }
            ("idempotency_keys", "sealed_body") => self.sometimes(vec![255, 0, 13].into()),
            ("events", "body_crc32") => self.sometimes(number.into()),
            ("refunds", "attention") => (number % 2).into(),
            ("doubts", "found") => self.text(),
            ("doubts", "since" | "seen_at") => number.into(),
            // Two lines to an entry.
            ("ledger_postings", "entry_id") => format!("le_{:04}", number / 2).into(),
            ("ledger_postings", "line") => (1 + number % 2).into(),
            ("ledger_postings", "refund_id") => self.sometimes(self.id("ref")),
            (_, "status") => self.one(match table {
                "checkouts" => &["pending", "completed", "expired", "cancelled"],
                "payment_sessions" => &["pending", "processing", "succeeded", "failed", "cancelled"],
                "webhook_endpoints" => &["active", "inactive"],
                "payment_links" => &["active", "inactive", "deleted"],
                _ => &["pending", "processing", "completed", "failed"],
            }),
            _ => self.of_any(column),
        }
    }

    /// What is the same wherever it stands.
    fn of_any(self, column: &str) -> Value {
        let number = self.number;
        match column {
            "amount_minor" | "price_minor" | "paid_back_minor" => self.amount().into(),
            "step" => self.one(&["sending", "waiting", "unknown", "settled"]),
            "object_type" => "checkout".into(),
            "object_id" => self.id("cs"),
            "customer_id" => self.sometimes(self.id("cus")),
            "invoice_id" => self.id("inv"),
            "transaction_id" => self.id("txn"),
            "event_id" => self.id("evt"),
            "entry_id" => self.id("le"),
            "email_key" => format!("{number}@example.gm").into(),
            "active" => (number % 2).into(),
            "sequence" | "log_no" | "batch_no" | "first_log_no" | "last_log_no" | "last_number" => (number + 1).into(),
            "series" => self.one(&["invoice", "receipt"]),
            "space" => "merchant".into(),
            "fingerprint" | "file" => vec![0, 255, u8::try_from(number % 256).unwrap()].into(),
            "id"
            | "kid"
            | "wrapped"
            | "digest"
            | "client_secret_digest"
            | "token_digest"
            | "type"
            | "account"
            | "idempotency_key"
            | "action"
            | "actor"
            | "number"
            | "receipt_id"
            | "validation_code"
            | "period"
            | "signature"
            | "public_key"
            | "refund_id" => self.id(column),
            _ => panic!("nobody says what stands in a column {column}"),
        }
    }

    fn of_transaction(self, column: &str) -> Value {
        let (status, step) = TRANSACTIONS[usize::try_from(self.number).unwrap() % TRANSACTIONS.len()];
        let attention = self.number % 3;
        match column {
            "status" => status.into(),
            "step" => step.into(),
            "attention" => attention.into(),
            "payment_session_id" | "rail" if self.is_by_hand() => Value::Null,
            "payment_session_id" => self.id("ps"),
            "rail" => "simulator".into(),
            "payment_method" => "wave".into(),
            // Nobody takes a fee of what came twice.
            "fee_minor" if attention == CAME_TWICE || self.is_by_hand() => 0.into(),
            "fee_minor" => self.number.into(),
            "refunded_minor" => (self.number % 50).into(),
            "refunding_minor" => (self.number % 7).into(),
            _ => self.of_any(column),
        }
    }

    fn of_invoice(self, column: &str) -> Value {
        const STATUSES: [&str; 6] = ["draft", "pending", "partially_paid", "overdue", "paid", "cancelled"];
        let status = STATUSES[usize::try_from(self.number).unwrap() % STATUSES.len()];
        let total = self.amount() + 7;
        let paid = match status {
            "paid" => total,
            "partially_paid" => 50,
            _ => 0,
        };
        match column {
            "status" => status.into(),
            "customer_id" => self.id("cus"),
            "tax_minor" => 7.into(),
            "total_minor" => total.into(),
            "paid_minor" => paid.into(),
            "remaining_minor" => (total - paid).into(),
            "overdue_at" if status == "pending" => self.number.into(),
            "overdue_at" => Value::Null,
            _ => self.of_any(column),
        }
    }

    fn of_mail(self, column: &str) -> Value {
        let kinds: &[&str] =
            if self.schema < 21 { &["invoice", "receipt"] } else { &["invoice", "receipt", "endpoint_disabled"] };
        let status = ["pending", "sent", "failed"][usize::try_from(self.number).unwrap() % 3];
        match column {
            "kind" => self.one(kinds),
            "status" => status.into(),
            "recipient" => "Nd\u{eb}y <ndey@example.gm>".into(),
            "next_try_at" if status == "pending" => self.number.into(),
            "sent_at" if status == "sent" => self.number.into(),
            "next_try_at" | "sent_at" => Value::Null,
            "last_error" => self.sometimes("451 not now".into()),
            "unanswered" => (self.number % 2).into(),
            _ => self.of_any(column),
        }
    }

    fn of_document(self, column: &str) -> Value {
        let is_made = self.number % 2 == 0;
        match column {
            "status" => if is_made { "completed" } else { "failed" }.into(),
            "edition" => self.id("edition"),
            "file" if is_made => self.of_any(column),
            "generated_at" if is_made => self.number.into(),
            "last_error" if !is_made => "no such font".into(),
            "file" | "generated_at" | "last_error" => Value::Null,
            _ => self.of_any(column),
        }
    }

    fn of_delivery(self, column: &str) -> Value {
        match column {
            "status" => self.one(&["pending", "delivered", "failed"]),
            "endpoint_id" => self.id("we"),
            "by_hand" => (self.number % 2).into(),
            "next_retry_at" | "last_status_code" => self.sometimes(self.number.into()),
            "last_error" => self.sometimes("refused".into()),
            _ => self.of_any(column),
        }
    }
}
