//! The background check of the books: step by step, while the service goes on between the steps.

mod pages;

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::Request;
use dalasi::app::invariants::Invariants;
use dalasi::app::invoices::{self, NewPayment};
use dalasi::app::ledger;
use dalasi::app::look_up;
use dalasi::app::verify::{self, Check, Progress, Report};
use dalasi::error::Failure;
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self, Api};
use dalasi::jobs::invariants::Walk;
use dalasi::metrics;
use domain::invoice::Invoice;
use domain::payment::Transaction;
use domain::rail::Report as Word;
use domain::refund::Refund;
use domain::{Currency, Id, Method, Money, OfflineMethod, TaxRate};
use http_body_util::BodyExt as _;
use rusqlite::Connection;
use serde_json::Value;
use store::queries::ledger_batches as batches;
use store::queries::verify::{Span, documents_of_part};
use tower::ServiceExt as _;

use crate::cli::place::Place;
use crate::invoices::{create, rice};
use crate::world::{QUIET, World};

/// More than a page of the check.
const CHECKOUTS: usize = 250;
/// More than a page of invoices and what comes with them, of refunds, and of batches.
const BILLS: usize = 230;
const PAID: usize = 8;
/// A page, with what is looked at together with it.
const MOST_ROWS_OF_A_STEP: u64 = 1_300;

fn in_doubt(report: &Report) -> Vec<Option<domain::Scope>> {
    report.doubts().keys().copied().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_are_not_confused_by_what_happens_between_them_on_sqlite() {
    steps_are_not_confused_by_what_happens_between_them(&Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_are_not_confused_by_what_happens_between_them_on_postgres() {
    let Some(place) = Place::postgres("the check of the books").await else { return };
    steps_are_not_confused_by_what_happens_between_them(&place).await;
    place.end().await;
}

async fn steps_are_not_confused_by_what_happens_between_them(place: &Place) {
    let world = World::on(place.settings()).await;
    for _ in 0..CHECKOUTS {
        world.create(|_| {}).await;
    }
    let mut steps = 0;
    let report = check(&world, async || {
        steps += 1;
        let checkout = world.create(|_| {}).await;
        world.cancel(checkout.id).await;
        if steps % 10 == 0 {
            let transaction = world.paid(1000).await;
            world.refund(transaction, Some(100)).await.unwrap();
        }
    })
    .await;
    assert!(report.is_clean(), "{:#?}", report.faults);
    assert!(report.checked["checkouts"] >= CHECKOUTS as u64 && steps > 50, "{steps} {:?}", report.checked);

    world.rest().await;
    let report = check(&world, async || {}).await;
    let whole = world.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap();
    assert!(report.is_clean() && whole.is_clean());
    assert_eq!(report.checked, whole.checked);
    world.app.store().close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_over_many_pages_hold_while_they_grow_on_sqlite() {
    let place = Place::sqlite();
    let world = sums_over_many_pages_hold_while_they_grow(&place).await;
    let database = Connection::open(place.folder().join("dalasi.db")).unwrap();
    database.execute_batch("pragma foreign_keys = off; pragma ignore_check_constraints = on").unwrap();
    for (table, alter, put_back) in [
        ("invoices", "paid_minor = paid_minor + 1", "paid_minor = paid_minor - 1"),
        ("invoice_payments", "amount_minor = amount_minor + 1", "amount_minor = amount_minor - 1"),
        ("receipts", "amount_minor = amount_minor + 1", "amount_minor = amount_minor - 1"),
        ("refunds", "amount_minor = amount_minor + 1", "amount_minor = amount_minor - 1"),
        ("transactions", "doc = 'x' || doc", "doc = substr(doc, 2)"),
        ("balance_guards", "debits = debits + 1", "debits = debits - 1"),
        ("balance_guards", "debits = debits - 1", "debits = debits + 1"),
        ("counters", "last_number = last_number + 1", "last_number = last_number - 1"),
        ("counters", "last_number = last_number - 1", "last_number = last_number + 1"),
        ("ledger_batches", "statement = statement || ' '", "statement = substr(statement, 1, length(statement) - 1)"),
        ("ledger_log", "entry_id = 'x' || entry_id", "entry_id = substr(entry_id, 2)"),
    ] {
        // The last row, which no first page holds.
        let set = |change: &str| {
            let sql = format!("update {table} set {change} where rowid = (select max(rowid) from {table})");
            assert_eq!(database.execute(&sql, []).unwrap(), 1, "{sql}");
        };
        set(alter);
        let report = check(&world, async || {}).await;
        let by_step = faults(&report);
        let whole = world.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap();
        set(put_back);
        assert_eq!(by_step, faults(&whole), "{table}: {alter}");
        // A place in the log is looked at from both sides: by its batch, and by its entry.
        let told_by = if table == "ledger_log" { "ledger_postings" } else { table };
        assert!(by_step.iter().any(|(of, _)| *of == told_by), "{table}: {alter}: {by_step:?}");
        // Refunds wait where money may be gone, and not where a paper is wrong.
        let is_of_money = !matches!(table, "invoices" | "invoice_payments" | "receipts" | "counters");
        let expected = if is_of_money { vec![Some(world.scope)] } else { Vec::new() };
        assert_eq!(in_doubt(&report), expected, "{table}: {alter}");
    }
    world.has_clean_books().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_over_many_pages_hold_while_they_grow_on_postgres() {
    let Some(place) = Place::postgres("the sums of the books").await else { return };
    sums_over_many_pages_hold_while_they_grow(&place).await.app.store().close().await;
    place.end().await;
}

async fn sums_over_many_pages_hold_while_they_grow(place: &Place) -> World {
    let world = World::on(place.settings()).await;
    // A transaction has no more than a hundred refunds.
    let mut paid = Vec::new();
    for _ in 0..PAID {
        paid.push(world.paid(100_000_000).await);
    }
    // Nobody else seals: as many batches as bills.
    world.rest().await;
    for number in 0..BILLS {
        bill(&world, paid[number % PAID]).await;
    }
    let mut number = 0;
    let growing = check(&world, async || {
        number += 1;
        bill(&world, paid[number % PAID]).await;
    });
    let growing = growing.await;
    assert!(growing.is_clean(), "{:#?}", growing.faults);
    let report = check(&world, async || {}).await;
    let whole = world.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap();
    assert!(report.is_clean() && whole.is_clean(), "{:#?} {:#?}", report.faults, whole.faults);
    assert_eq!(report.checked, whole.checked);
    for table in ["invoices", "invoice_payments", "receipts", "refunds", "ledger_batches"] {
        assert!(report.checked[table] > BILLS as u64, "{table}: {:?}", report.checked);
    }
    refunds_come_in_parts(&world, report.checked["refunds"]).await;
    world
}

/// However many a page of transactions has, a page of them is held at once, with what else its last transaction has.
async fn refunds_come_in_parts(world: &World, count: u64) {
    let scope = world.scope;
    let parts = world.app.read(move |tx, _| {
        let (mut parts, mut after) = (Vec::new(), String::new());
        loop {
            let span = Span { after: &after, until: None };
            let (rows, end) = documents_of_part::<Refund>(tx, scope, "transaction_id", span)?;
            parts.push(rows.into_iter().map(|row| row.entity.unwrap().transaction).collect::<Vec<_>>());
            match end {
                Some(end) => after = end,
                None => return Ok(parts),
            }
        }
    });
    let parts = parts.await.unwrap();
    let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
    assert_eq!(sizes.iter().sum::<usize>() as u64, count);
    assert!(sizes.len() > 1 && sizes.iter().all(|size| *size < 300), "{sizes:?}");
    for two in parts.windows(2) {
        assert!(two[0].iter().max() < two[1].iter().min(), "each transaction is whole: {parts:?}");
    }
}

/// An upgrade leaves processes of the version before running, which know nothing of the newest columns, and their events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_older_process_saved_is_no_fault() {
    for place in Place::each("what an older process saved is no fault").await {
        let world = World::on(place.settings()).await;
        let checkout = world.create(|_| {}).await;
        world.start(checkout.id, Method::Card, "").await;
        let first = world.shown(checkout.id).await.unwrap().id;
        world.start(checkout.id, Method::Wave, QUIET).await;
        let second = world.shown(checkout.id).await.unwrap().id;
        world.rest().await;
        for (number, transaction) in [first, second].into_iter().enumerate() {
            let word = Word::Paid { amount: checkout.order.amount, rail_reference: format!("RAIL-{number}") };
            world.app.report(world.scope, transaction, word, None).await.unwrap();
        }
        world.has_clean_books().await;
        let (id, now) = (second.to_string(), world.now().micros());
        let change = async |sql: &'static str, value: i64| {
            let values = [id.clone().into(), value.into()];
            world.app.commit(move |tx, _| Ok(tx.execute(sql, &values)?)).await
        };
        const FEE: &str = "update transactions set fee_minor = $2 where id = $1";
        const EXPIRY: &str = "update transactions set expires_at = $2 where id = $1";
        const LEFT_OUT: &str = "update transactions set doc = replace(doc, '\"expires_at\":null,', '')
            where id = $1 and fee_minor <= $2";
        const TOLD: &str = "update events
            set body = replace(body, '\"fee\":\"0.00\",\"net_amount\":\"1250.00\"', '\"fee\":\"31.25\",\"net_amount\":\"1218.75\"')
            where type = 'payment.succeeded' and body like '%' || $1 || '%' and created_at > $2";
        let faults = async || {
            let report = world.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap();
            faults(&report).into_iter().map(|(_, what)| what).collect::<Vec<_>>().join("; ")
        };
        world.forget_checksums().await;
        // Whoever knows of the columns writes what is so.
        assert_eq!(change(FEE, 3_125).await, Ok(1));
        assert!(faults().await.contains("fee_minor"));
        assert_eq!(change(FEE, 0).await, Ok(1));
        assert_eq!(change(EXPIRY, now).await, Ok(1));
        assert!(faults().await.contains("expires_at"));
        assert_eq!(change(LEFT_OUT, 0).await, Ok(1));
        assert_eq!(change(FEE, 3_125).await, Ok(1));
        assert_eq!(change(TOLD, 0).await, Ok(1));
        assert_eq!(faults().await, "");
        // What nobody ever wrote is found all the same.
        assert_eq!(change(FEE, 3_124).await, Ok(1));
        assert!(faults().await.contains("fee_minor"));
        world.app.store().close().await;
        place.end().await;
    }
}

/// A currency that is none, a time that is none, and behind them amounts that are others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_read_is_named_and_hides_nothing_behind_it() {
    for place in Place::each("what can't be read is named").await {
        let world = World::on(place.settings()).await;
        let transaction = world.paid(100_000).await;
        world.rest().await;
        for _ in 0..3 {
            bill(&world, transaction).await;
        }
        world.has_clean_books().await;
        let scope = world.scope;
        let last = world.app.read(move |tx, _| Ok(batches::last(tx, scope)?)).await.unwrap().unwrap().batch_no;
        for (batch_no, lines, change) in [
            (last - 2, "1", "currency = 'GMT'"),
            (last - 1, "1", "created_at = 9223372036854775807"),
            (last, "1, 2", "amount_minor = amount_minor * 2"),
        ] {
            let alter = format!(
                "update ledger_postings set {change} where line in ({lines}) and entry_id in (
                    select ledger_log.entry_id
                    from ledger_log
                    join ledger_batches on ledger_batches.last_log_no = ledger_log.log_no
                    where ledger_batches.batch_no = $1)"
            );
            let rows = world.app.commit(move |tx, _| Ok(tx.execute(&alter, &[batch_no.into()])?)).await;
            assert!(rows.as_ref().is_ok_and(|rows| *rows > 0), "{change}: {rows:?}");
        }
        let report = check(&world, async || {}).await;
        let found = faults(&report);
        let whole = world.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap();
        assert_eq!(found, faults(&whole));
        let is_told = |table, row: &str, what: &str| {
            found.iter().any(|(of, said)| *of == table && said.contains(row) && said.contains(what))
        };
        assert!(is_told("ledger_postings", " line 1: ", "\"GMT\" is no currency"), "{found:#?}");
        assert!(is_told("ledger_postings", " line 1: ", "not a time from 1970 to 9999"), "{found:#?}");
        let altered = format!("an entry of batch {last} is not what was sealed");
        assert!(is_told("ledger_batches", &format!("{last}: "), &altered), "{found:#?}");
        assert_eq!(in_doubt(&report), [Some(scope)]);
        world.app.store().close().await;
        place.end().await;
    }
}

/// One page of a table is one of something else: what else there is is looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_contradicts_others_ends_no_check() {
    let place = Place::sqlite();
    let world = World::on(place.settings()).await;
    world.paid(1000).await;
    world.rest().await;
    let database = Connection::open(place.folder().join("dalasi.db")).unwrap();
    let exchanged = "pragma writable_schema = on;
        update sqlite_schema set rootpage = (select rootpage from sqlite_schema where type = 'index' and tbl_name = 'checkouts')
            where name = 'checkouts';
        pragma schema_version = 1000000";
    database.execute_batch(exchanged).unwrap();
    let report = check(&world, async || {}).await;
    let whole = world.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap();
    for report in [&report, &whole] {
        let found = faults(report);
        let what = "the rest of the table was not looked at: database disk image is malformed";
        assert!(found.iter().any(|(of, said)| *of == "checkouts" && said.contains(what)), "{found:#?}");
        for table in ["transactions", "ledger_postings", "event_log"] {
            assert!(report.checked.contains_key(table), "{table}: {:?}", report.checked);
        }
    }
    world.app.store().close().await;
}

/// A sector that the disk does not give back, and pages that contradict one another, as PostgreSQL tells of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_disk_does_not_give_back_ends_no_check() {
    for (code, failures) in [("58030", 2..=30), ("XX001", 0..=0)] {
        let Some(place) = Place::postgres("what the disk does not give back").await else { return };
        let world = World::on(place.settings()).await;
        world.paid(1000).await;
        world.rest().await;
        let raise = format!("raise exception 'could not read block 7' using errcode = '{code}'");
        let unreadable = format!(
            "create function unreadable() returns text language plpgsql stable as $$ begin {raise}; end $$;
             alter table checkouts rename to checkouts_kept;
             alter table checkouts_kept rename column doc to kept;
             create view checkouts as select checkouts_kept.*, unreadable() as doc from checkouts_kept"
        );
        place.raw_postgres().await.batch_execute(&unreadable).await.unwrap();
        let mut walk = Walk::new(&Progress::default());
        let mut failed = 0;
        while let Err(failure) = walk.end(&world.app).await {
            failed += 1;
            assert!(failed <= *failures.end(), "{code}: {failure}");
        }
        assert!(
            failures.contains(&failed),
            "{code}: {failed} looks failed, of which a database that is away would have made as many"
        );
        let found = faults(walk.report());
        let what = "the rest of the table was not looked at: ";
        assert!(found.iter().any(|(of, said)| *of == "checkouts" && said.contains(what)), "{code}: {found:#?}");
        for table in ["transactions", "ledger_postings", "event_log"] {
            assert!(walk.report().checked.contains_key(table), "{code}: {table}: {:?}", walk.report().checked);
        }
        world.app.store().close().await;
        place.end().await;
    }
}

/// What no query is made for: a key that is no text, and a number behind which there is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_no_query_reads_ends_no_check() {
    let place = Place::sqlite();
    let world = World::on(place.settings()).await;
    let first = world.create(|_| {}).await;
    world.cancel(first.id).await;
    world.paid(1000).await;
    world.rest().await;
    let database = Connection::open(place.folder().join("dalasi.db")).unwrap();
    database.execute_batch("pragma foreign_keys = off; pragma ignore_check_constraints = on").unwrap();
    for sql in [
        "insert into ledger_unsealed (organization_id, mode, entry_id)
            select organization_id, mode, cast(x'ff' as text) from ledger_postings limit 1",
        "update events set sequence = 9223372036854775807 where rowid = (select min(rowid) from events)",
    ] {
        assert_eq!(database.execute(sql, []).unwrap(), 1, "{sql}");
    }
    // A whole page, behind the last of which nobody can ask for more.
    let page = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 200)
        insert into customers (organization_id, mode, id, version, doc, created_at, updated_at)
        select organization_id, mode, 'cus_' || char(0) || n, 1, '{}', 0, 0
        from organizations, numbers
        where mode = 'test'";
    assert_eq!(database.execute(page, []).unwrap(), 200);
    // And one whose last has no name: a page behind that would be the same one.
    let nameless = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 200)
        insert into products (organization_id, mode, id, version, doc, price_minor, currency, active, created_at, updated_at)
        select organization_id, mode, cast(x'ff' as text) || n, 1, '{}', 1, 'GMD', 1, 0, 0
        from organizations, numbers
        where mode = 'test'";
    assert_eq!(database.execute(nameless, []).unwrap(), 200);
    let report = check(&world, async || {}).await;
    let found = faults(&report);
    for (table, what) in [
        ("ledger_postings", "the rest of the table was not looked at"),
        ("events", "behind number 0"),
        ("customers", "the rest of the table was not looked at"),
        ("products", "the rest of the table was not looked at"),
    ] {
        assert!(found.iter().any(|(of, said)| *of == table && said.contains(what)), "{table}: {found:#?}");
    }
    // The parts behind it were walked to their ends.
    assert!(report.checked.contains_key("event_log"), "{:?}", report.checked);
    assert_eq!(in_doubt(&report), [Some(world.scope)]);
    // Money of which nobody knows whose it is may be anybody's.
    let of_nobody = "insert into ledger_postings
        (organization_id, mode, entry_id, line, transaction_id, account, currency, amount_minor, created_at)
        values ('org_nobody', 'test', 'ent_nobody', 1, 'txn_nobody', 'merchant', 'GMD', 5, 5)";
    assert_eq!(database.execute(of_nobody, []).unwrap(), 1);
    let report = check(&world, async || {}).await;
    assert_eq!(in_doubt(&report), [None, Some(world.scope)], "every refund waits");
    world.app.store().close().await;
}

/// More was given back than came, and more paid than was asked for: whoever reads one is told so, and the check goes on behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn amounts_that_do_not_add_up_are_named_and_end_nothing() {
    for place in Place::each("amounts that do not add up").await {
        let world = World::on(place.settings()).await;
        let transaction = world.paid(1000).await;
        world.rest().await;
        let (scope, invoice) = (world.scope, create(&world, rice(&world)).await.unwrap().id);
        let amount = Money::new(100, Currency::gmd());
        let part = NewPayment { amount, method: OfflineMethod::Cash, transaction_id: None, notes: None };
        let command = move |tx: &mut store::Tx<'_>, context: &dalasi::app::Context| {
            invoices::record_payment(tx, context, scope, invoice, &part, "key").map(|_| ())
        };
        world.app.commit(command).await.unwrap();
        world.forget_checksums().await;
        world.has_clean_books().await;
        for (sql, id) in [
            (
                "update transactions set doc = replace(doc, '\"refunded_minor\":0', '\"refunded_minor\":-1') where id = $1",
                transaction.to_string(),
            ),
            (
                "update invoices set doc = replace(doc, '\"paid\":{\"minor\":', '\"paid\":{\"minor\":99999999') where id = $1",
                invoice.to_string(),
            ),
        ] {
            let altered = world.app.commit(move |tx, _| Ok(tx.execute(sql, &[id.as_str().into()])?)).await;
            assert_eq!(altered, Ok(1), "{sql}");
        }
        let read = world.app.read(move |tx, _| look_up::<Transaction>(tx, scope, transaction)).await.map(drop);
        let message = format!("the amounts of {transaction} in transactions don't add up");
        assert_eq!(read, Err(Failure::Store(store::Error::Corrupt(message))));
        let read = world.app.read(move |tx, _| look_up::<Invoice>(tx, scope, invoice)).await.map(drop);
        let message = format!("the amounts of {invoice} in invoices don't add up");
        assert_eq!(read, Err(Failure::Store(store::Error::Corrupt(message))));
        let found = faults(&check(&world, async || {}).await);
        for (table, what) in [
            ("transactions", format!("{transaction}: it counts -1 refunded")),
            ("invoices", format!("{invoice}: it is partially_paid with 99999999100 of")),
            ("invoices", format!("{invoice}: the column remaining_minor differs from the document")),
        ] {
            assert!(found.iter().any(|(of, said)| *of == table && said.starts_with(&what)), "{what}: {found:#?}");
        }
        assert!(found.iter().all(|(_, said)| !said.contains("was not looked at")), "{found:#?}");
        world.app.store().close().await;
        place.end().await;
    }
}

/// Of a currency with three decimals older versions took up to 999 999 999 999.999.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_amount_that_only_an_older_version_took_is_no_fault() {
    for place in Place::each("an amount of an older version").await {
        let world = World::on(place.settings()).await;
        world.rest().await;
        let dinar = Currency::parse("TND").unwrap();
        let mut new = rice(&world);
        (new.currency, new.tax_rate) = (dinar, TaxRate::ZERO);
        (new.items[0].quantity, new.items[0].unit_price) = (1, Some(Money::maximum(dinar)));
        let (scope, invoice) = (world.scope, create(&world, new).await.unwrap().id);
        let id = invoice.to_string();
        world.forget_checksums().await;
        let altered = world.app.commit(move |tx, _| {
            let stored = "update invoices
                set doc = replace(doc, '999999999999990', '999999999999999'), amount_minor = 999999999999999,
                    total_minor = 999999999999999, remaining_minor = 999999999999999
                where id = $1";
            let told = "update events
                set body = replace(body, '999999999999.990', '999999999999.999')
                where object_id = $1";
            Ok([tx.execute(stored, &[id.as_str().into()])?, tx.execute(told, &[id.as_str().into()])?])
        });
        assert_eq!(altered.await, Ok([1, 2]));
        let read = world.app.read(move |tx, _| look_up::<Invoice>(tx, scope, invoice)).await.unwrap();
        assert_eq!(read.total(), Money::stored_maximum(dinar));
        world.has_clean_books().await;
        world.app.store().close().await;
        place.end().await;
    }
}

/// JSON can say U+0000 on both databases, and neither can be asked for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_names_what_nobody_can_ask_for_is_named_itself() {
    for place in Place::each("an event that names what nobody can ask for").await {
        let world = World::on(place.settings()).await;
        let transaction = world.paid(1000).await.to_string();
        world.rest().await;
        world.forget_checksums().await;
        world.has_clean_books().await;
        let altered = world.app.commit(move |tx, _| {
            let sql = r#"update events
                set body = replace(body, '"id":"' || $1 || '"', '"id":"\u0000"')
                where body like '%"id":"' || $1 || '"%'"#;
            Ok(tx.execute(sql, &[transaction.as_str().into()])?)
        });
        let altered = altered.await.unwrap();
        assert!(altered > 0);
        let report = check(&world, async || {}).await;
        let whole = world.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap();
        assert_eq!(faults(&report), faults(&whole));
        assert_eq!(report.fault_count, altered, "{:#?}", report.faults);
        for fault in &report.faults {
            assert!(fault.table == "events" && fault.row.starts_with("evt_"), "{fault:?}");
            assert_eq!(fault.what, "its body does not show \0");
        }
        assert!(report.checked.contains_key("event_log"), "{:?}", report.checked);
        world.app.store().close().await;
        place.end().await;
    }
}

/// Refunds wait from the moment that a fault is seen, hours before the check has ended perhaps.
#[tokio::test]
async fn what_is_seen_is_shown_before_the_check_has_ended() {
    let world = World::new().await;
    world.rest().await;
    let api = Api::new(world.app.clone(), None, metrics::install());
    let router = envelope::wrap(http::router(api), EdgeSettings::default());
    let shown = async || {
        let request = Request::get("/health/invariants").body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let answer: Value = serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
        let data = &answer["data"];
        (data["status"].as_str().unwrap().to_owned(), data["faults"].as_u64(), !data["last_run"].is_null())
    };
    let expected = |status: &str, faults, has_run| (status.to_owned(), Some(faults), has_run);
    let latest = world.app.invariants();
    assert_eq!(shown().await, expected("not_run", 0, false));
    latest.see(1);
    assert_eq!(shown().await, expected("faults", 1, false));
    // More than are named.
    latest.set(Invariants { last_run: Some(world.now()), fault_count: 1_234, ..Invariants::default() });
    assert_eq!(shown().await, expected("faults", 1_234, true));
    latest.see(3);
    assert_eq!(shown().await, expected("faults", 1_234, true));
    latest.set(Invariants { last_run: Some(world.now()), ..Invariants::default() });
    assert_eq!(shown().await, expected("ok", 0, true));
    latest.see(2);
    assert_eq!(shown().await, expected("faults", 2, true));
    // By another process, or by this one before it was started anew.
    latest.set(Invariants::default());
    world.app.doubt(vec![(Some(world.scope), "a posting is gone".into()), (None, "another's".into())]).await.unwrap();
    assert_eq!(shown().await, expected("faults", 2, false));
    world.app.store().close().await;
    let request = Request::get("/health/invariants").body(Body::empty()).unwrap();
    assert_eq!(router.clone().oneshot(request).await.unwrap().status(), 503, "nobody knows");
}

/// An invoice that is paid by hand, a refund of what was paid online, and a batch over both.
async fn bill(world: &World, transaction: Id<Transaction>) {
    let scope = world.scope;
    let invoice = create(world, rice(world)).await.unwrap();
    let paid = NewPayment { amount: invoice.total(), method: OfflineMethod::Cash, transaction_id: None, notes: None };
    let command = move |tx: &mut store::Tx<'_>, context: &dalasi::app::Context| {
        invoices::record_payment(tx, context, scope, invoice.id, &paid, "key").map(|_| ())
    };
    world.app.commit(command).await.unwrap();
    world.refund(transaction, Some(100)).await.unwrap();
    world.app.commit(|tx, context| ledger::seal_next(tx, context, None)).await.unwrap();
}

fn faults(report: &Report) -> BTreeSet<(&'static str, String)> {
    report.faults.iter().map(|fault| (fault.table, format!("{}: {}", fault.row, fault.what))).collect()
}

async fn check(world: &World, mut between: impl AsyncFnMut()) -> Report {
    let progress = Progress::default();
    let mut check = Check::new(&progress);
    let mut rows = 0;
    while !check.is_done() {
        let before = check;
        check = world
            .app
            .read(move |tx, _| {
                let mut check = before.clone();
                check.step(tx)?;
                Ok(check)
            })
            .await
            .unwrap();
        let looked_at = progress.rows() - rows;
        assert!(looked_at <= MOST_ROWS_OF_A_STEP, "{looked_at} rows in one snapshot: {check:?}");
        rows = progress.rows();
        between().await;
    }
    check.into_report()
}
