//! Among many invoices, each list is found by an index that gives it in its order: nothing is read but what is shown and
//! counted; and counting checkouts reads none of them. `cargo xtask prove --only A12.plans` shows it among more of them.

use domain::checkout::Status;
use domain::job::Lane;
use domain::organization::Organization;
use domain::payment::TransactionStatus;
use domain::{Currency, Id, Mode, Scope, Sum, Timestamp};
use store::lease;
use store::queries::PageRequest;
use store::queries::balances;
use store::queries::checkouts::{self, CheckoutFilter};
use store::queries::events;
use store::queries::invoices::{self, InvoiceFilter, StatusFilter};
use store::queries::jobs;
use store::queries::ledger_batches::{self, EntryFilter};
use store::queries::transactions::{self, TransactionFilter};
use store::queries::verify;
use store::{Dialect, Error, Schema, Tx};

use proof::Proof;

use crate::on_both;
use crate::world::{World, count_rows, raw_postgres};

on_both!(
    no_list_of_invoices_reads_others,
    no_checkout_is_read_to_be_counted,
    no_entry_of_the_ledger_is_looked_for_among_all,
    no_posting_is_read_to_be_added_up,
    no_work_is_looked_for_among_all_that_is_owed,
    no_event_is_looked_for_among_those_that_have_their_place,
    no_transaction_is_read_to_be_counted,
);

/// Nearly all are paid, as in the books of a merchant of some years. `$4` is the first number of those 10 000.
const FILL: &str = "
with recursive numbers (n) as (select cast($4 as bigint) union all select n + 1 from numbers where n < $4 + 9999)
insert into invoices (organization_id, mode, id, version, doc, number, status, customer_id, currency,
    amount_minor, tax_minor, total_minor, paid_minor, remaining_minor, overdue_at, created_at, updated_at)
select $1, $2, $3 || (100000000 + n), 1, '{}', 'INV-' || n,
    case n % 50 when 1 then 'pending' when 2 then 'overdue' when 3 then 'partially_paid' when 4 then 'draft' else 'paid' end,
    'cus_' || (n % 2000), 'GMD', 100, 0, 100,
    case n % 50 when 1 then 0 when 2 then 0 when 3 then 50 when 4 then 0 else 100 end,
    case n % 50 when 1 then 100 when 2 then 100 when 3 then 50 when 4 then 100 else 0 end,
    case n % 50 when 1 then 2000000000000000 + n end, n, n
from numbers";

/// Invoices in the gate, of five merchants.
const GATE_INVOICES: u64 = 5 * INVOICES_OF_A_MERCHANT;
const INVOICES_OF_A_MERCHANT: u64 = 10_000;

async fn no_list_of_invoices_reads_others(world: &World) {
    let database = match world.dialect() {
        Dialect::Sqlite => "sqlite",
        Dialect::Postgres => "postgres",
    };
    let mut proof = Proof::begin("A12.plans", Some(database), GATE_INVOICES);
    let merchants = i64::try_from(proof.count.div_ceil(INVOICES_OF_A_MERCHANT)).unwrap();
    let store = world.try_open(Schema::product()).await.unwrap();
    let scope = store.write(move |tx| fill(tx, FILL, "inv_", merchants)).await.unwrap();
    // The last merchant's invoice in the middle of theirs.
    let middle = merchants * 10_000 - 5_000;
    let status = |word: &str| {
        let filter = StatusFilter::WORDS.iter().find(|(known, _)| *known == word).unwrap().1;
        InvoiceFilter { status: Some(filter), ..InvoiceFilter::default() }
    };
    let all = InvoiceFilter::default;
    let moment = |micros| Some(Timestamp::from_micros(micros));
    let customer_id = Some("cus_7".to_owned());
    // With what each of its plans has to say.
    let lists = [
        ("all", all(), ""),
        ("draft", status("draft"), "status"),
        ("pending", status("pending"), "status"),
        // Nearly all are: any index in the order of the ids will do.
        ("paid", status("paid"), ""),
        ("partially_paid", status("partially_paid"), "status"),
        ("open", status("open"), "invoices_open"),
        ("overdue", status("overdue"), "invoices_open"),
        ("customer", InvoiceFilter { customer_id: customer_id.clone(), ..all() }, "customer_id"),
        ("number", InvoiceFilter { number: Some(format!("INV-{middle}")), ..all() }, "number"),
        ("customer's open", InvoiceFilter { customer_id, ..status("open") }, "customer_id"),
        ("time", InvoiceFilter { from: moment(1), until: moment(9_000_000), ..all() }, "id"),
    ];
    for (name, filter, by) in lists {
        for after in [None, Some(format!("inv_{}", 100_000_000 + middle))] {
            let (filter, page) = (filter.clone(), PageRequest { offset: 0, limit: 20, after });
            let plans = store.read(move |tx| invoices::plans(tx, scope, &filter, &page)).await.unwrap();
            for (what, plan) in ["count", "page"].into_iter().zip(&plans) {
                let by = match (what, name) {
                    // It has no order: by status it reads matches only, too.
                    ("count", "open" | "overdue") => "invoices_",
                    _ => by,
                };
                let fault = match fault(world.dialect(), plan, by) {
                    // A few matches of two indexes, brought together; and the one that a number can have.
                    Some("it sorts") if name == "overdue" && plan.contains("BitmapOr") => None,
                    Some("it sorts") if name == "number" && plan.contains("rows=1 ") => None,
                    fault => fault,
                };
                assert_eq!(fault, None, "{name}, {what}:\n{plan}");
            }
        }
    }
    let (open, page) = (status("open"), PageRequest { offset: 0, limit: 20, after: None });
    let without_index = store.write(move |tx| {
        tx.execute("drop index invoices_open", &[])?;
        invoices::plans(tx, scope, &open, &page)
    });
    let is_seen = match without_index.await {
        Ok(plans) => plans.iter().any(|plan| fault(world.dialect(), plan, "invoices_open").is_some()),
        // SQLite is told the index by its name.
        Err(error) => error.to_string().contains("no such index: invoices_open"),
    };
    proof.control("without_its_index", is_seen);
    store.close().await;
    proof.finish(u64::try_from(merchants).unwrap() * INVOICES_OF_A_MERCHANT);
}

/// Three quarters are pending. `$4` is the first number of those 10 000.
const FILL_CHECKOUTS: &str = "
with recursive numbers (n) as (select cast($4 as bigint) union all select n + 1 from numbers where n < $4 + 9999)
insert into checkouts (organization_id, mode, id, version, doc, status, amount_minor, currency, deadline_at, created_at,
    updated_at)
select $1, $2, $3 || (100000000 + n), 1, '{}',
    case n % 12 when 1 then 'completed' when 2 then 'expired' when 3 then 'cancelled' else 'pending' end,
    100, 'GMD', 2000000000000000 + n, n, n
from numbers";

/// A row is a kilobyte, and its entry in an index a tenth of that.
async fn no_checkout_is_read_to_be_counted(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let scope = store.write(|tx| fill(tx, FILL_CHECKOUTS, "cs_", 5)).await.unwrap();
    if world.dialect() == Dialect::Postgres {
        // As it does by itself after a while.
        raw_postgres(world.url()).await.batch_execute("vacuum checkouts").await.unwrap();
    }
    let all = CheckoutFilter::default;
    let status = |status| CheckoutFilter { status: Some(status), ..all() };
    let moment = |micros| Some(Timestamp::from_micros(micros));
    for (name, filter) in [
        ("all", all()),
        ("pending", status(Status::Pending)),
        ("completed", status(Status::Completed)),
        ("cancelled", status(Status::Cancelled)),
        ("expired", status(Status::Expired)),
        ("since a day", CheckoutFilter { from: moment(0), ..all() }),
        ("a day", CheckoutFilter { from: moment(0), until: moment(86_399_999_999), ..all() }),
    ] {
        let page = PageRequest { offset: 0, limit: 20, after: None };
        let plans = store.read(move |tx| checkouts::plans(tx, scope, &filter, &page)).await.unwrap();
        let [count, _] = plans;
        let is_of_index = match world.dialect() {
            Dialect::Sqlite => count.contains("SEARCH checkouts USING COVERING INDEX"),
            Dialect::Postgres => count.contains("Index Only Scan"),
        };
        // Those that a clock decides are brought together from two statuses, there.
        let is_together = name == "expired" && world.dialect() == Dialect::Postgres && count.contains("BitmapOr");
        assert!(is_of_index || is_together, "{name}:\n{count}");
    }
    store.close().await;
}

/// Entries of one posting each, as far as a look for their places cares. `$4` is the first number of those 10 000.
const FILL_POSTINGS: &str = "
with recursive numbers (n) as (select cast($4 as bigint) union all select n + 1 from numbers where n < $4 + 9999)
insert into ledger_postings (organization_id, mode, entry_id, line, transaction_id, account, currency, amount_minor,
    created_at)
select $1, $2, $3 || (100000000 + n), 1, 'tx_' || n, 'cash', 'GMD', 100, n
from numbers";

const FILL_LOG: &str = "
with recursive numbers (n) as (select cast($4 as bigint) union all select n + 1 from numbers where n < $4 + 9999)
insert into ledger_log (organization_id, mode, log_no, entry_id)
select $1, $2, n, $3 || (100000000 + n)
from numbers";

/// A few that wait.
const FILL_UNSEALED: &str = "
with recursive numbers (n) as (select cast($4 as bigint) union all select n + 1 from numbers where n < $4 + 9)
insert into ledger_unsealed (organization_id, mode, entry_id)
select $1, $2, $3 || (300000000 + n)
from numbers";

async fn no_entry_of_the_ledger_is_looked_for_among_all(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let texts = [FILL_POSTINGS, FILL_LOG, FILL_UNSEALED];
    let scope = store.write(move |tx| fill_with(tx, &texts, "entry_", 5)).await.unwrap();
    let plans = store.read(move |tx| ledger_batches::plans(tx, scope, "entry_100045000", "tx_45000")).await.unwrap();
    for (what, plan) in ["entry", "transaction", "placed", "waiting", "sums of what waits"].into_iter().zip(&plans) {
        let everything = match world.dialect() {
            Dialect::Sqlite => {
                ["SCAN ledger_log", "ledger_postings_by_transaction (organization_id=? AND mode=?)", "AUTOMATIC"]
            }
            Dialect::Postgres => ["Seq Scan on ledger_log", "Seq Scan on ledger_postings", "Hash"],
        };
        assert!(everything.iter().all(|words| !plan.contains(words)), "{what}:\n{plan}");
    }
    let day = EntryFilter {
        from: Some(Timestamp::from_micros(0)),
        until: Some(Timestamp::from_micros(86_399_999_999)),
        ..EntryFilter::default()
    };
    let page = PageRequest { offset: 0, limit: 20, after: None };
    let plans = store.read(move |tx| ledger_batches::plans_of_list(tx, scope, &day, &page)).await.unwrap();
    for plan in plans {
        let is_bounded = match world.dialect() {
            Dialect::Sqlite => plan.contains("entry_id>? AND entry_id<?"),
            Dialect::Postgres => plan.contains("entry_id >= ") && plan.contains("Index Cond"),
        };
        assert!(is_bounded, "{plan}");
    }
    store.close().await;
}

/// What each of these entries brings the merchant.
const FILL_CREDITS: &str = "
with recursive numbers (n) as (select cast($4 as bigint) union all select n + 1 from numbers where n < $4 + 9999)
insert into ledger_postings (organization_id, mode, entry_id, line, transaction_id, account, currency, amount_minor,
    created_at)
select $1, $2, $3 || (100000000 + n), 2, 'tx_' || n, 'merchant', 'GMD', -100, n
from numbers";

/// Of a settlement delay in which much is paid there may be millions.
async fn no_posting_is_read_to_be_added_up(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let scope = store.write(|tx| fill_with(tx, &[FILL_POSTINGS, FILL_CREDITS], "entry_", 5)).await.unwrap();
    if world.dialect() == Dialect::Postgres {
        raw_postgres(world.url()).await.batch_execute("vacuum ledger_postings").await.unwrap();
    }
    // The later half of the last merchant's.
    let (gmd, settled) = (Currency::gmd(), Timestamp::from_micros(45_000));
    let (plan, paid) = store
        .read(move |tx| {
            let plan = balances::plan_of_recent(tx, scope, gmd, settled)?;
            Ok::<_, Error>((plan, balances::paid_since(tx, scope, gmd, settled)?))
        })
        .await
        .unwrap();
    assert_eq!(paid, Sum::new(500_000, gmd));
    let of_index = match world.dialect() {
        Dialect::Sqlite => "SEARCH ledger_postings USING COVERING INDEX ledger_postings_of_merchant",
        Dialect::Postgres => "Index Only Scan using ledger_postings_of_merchant",
    };
    assert!(plan.contains(of_index), "{plan}");
    store.close().await;
}

/// Most were given up; a third waits for a payer whose time is not over.
const FILL_TRANSACTIONS: &str = "
with recursive numbers (n) as (select cast($4 as bigint) union all select n + 1 from numbers where n < $4 + 9999)
insert into transactions (organization_id, mode, id, version, doc, status, step, attention, payment_session_id,
    object_type, object_id, payment_method, rail, amount_minor, fee_minor, currency, expires_at, created_at, updated_at)
select $1, $2, $3 || (100000000 + n), 1, '{}',
    case n % 12 when 1 then 'completed' when 2 then 'failed' when 3 then 'cancelled' when 4 then 'processing'
        when 5 then 'pending' when 6 then 'pending' when 7 then 'pending' when 8 then 'pending' else 'expired' end,
    'settled', 0, 'ps_' || n, 'checkout', 'cs_' || n, 'wave', 'simulator', 100, 0, 'GMD',
    case n % 12 when 5 then 2000000000000000 + n when 6 then 2000000000000000 + n when 7 then 2000000000000000 + n
        when 8 then 2000000000000000 + n end, n, n
from numbers";

async fn no_transaction_is_read_to_be_counted(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let scope = store.write(|tx| fill(tx, FILL_TRANSACTIONS, "txn_", 5)).await.unwrap();
    if world.dialect() == Dialect::Postgres {
        raw_postgres(world.url()).await.batch_execute("vacuum transactions").await.unwrap();
    }
    for status in TransactionStatus::ALL {
        let filter = TransactionFilter { status: Some(status), ..TransactionFilter::default() };
        let after = Some(format!("txn_{}", 100_045_000));
        let page = PageRequest { offset: 0, limit: 20, after };
        let plans = store.read(move |tx| transactions::plans(tx, scope, &filter, &page)).await.unwrap();
        let [count, page] = plans;
        let (is_of_index, everything) = match world.dialect() {
            Dialect::Sqlite => (count.contains("SEARCH transactions USING COVERING INDEX"), "SCAN transactions"),
            Dialect::Postgres => (count.contains("Index Only Scan"), "Seq Scan"),
        };
        let is_together = status == TransactionStatus::Expired && count.contains("BitmapOr");
        assert!(is_of_index || is_together, "{status:?}:\n{count}");
        assert!(!page.contains(everything), "{status:?}:\n{page}");
    }
    store.close().await;
}

const FILL_JOBS: &str = "
with recursive numbers (n) as (select cast($4 as bigint) union all select n + 1 from numbers where n < $4 + 9999)
insert into jobs (kind, object_id, organization_id, mode, due_at, lane, attempts, lease_until, lease_token)
select 'expire_checkout', $3 || (100000000 + n), $1, $2, n, 0, 0, 0, 0
from numbers";

/// The background check does so for each page of objects.
async fn no_work_is_looked_for_among_all_that_is_owed(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let scope = store.write(|tx| fill(tx, FILL_JOBS, "cs_", 5)).await.unwrap();
    let (plan, owed) = store
        .read(move |tx| {
            let ids: Vec<String> = (0..200).map(|number| format!("cs_{}", 100_049_900 + number)).collect();
            let plan = verify::plan_of_owed(tx, scope, &["start_attempt", "expire_checkout"], &ids)?;
            Ok::<_, Error>((plan, verify::owed(tx, scope, &["start_attempt", "expire_checkout"], &ids)?))
        })
        .await
        .unwrap();
    assert_eq!(owed.len(), 101, "of these ids");
    let is_by_key = match world.dialect() {
        Dialect::Sqlite => plan.contains("(kind=? AND object_id=?)"),
        Dialect::Postgres => plan.contains("Index Cond: ((kind = ANY") && plan.contains("object_id = ANY"),
    };
    assert!(is_by_key, "{plan}");
    let plan = store.read(|tx| jobs::plan_of_due(tx, Lane::Prompt)).await.unwrap();
    assert!(plan.contains("jobs_due") && !plan.contains("TEMP B-TREE") && !plan.contains("Sort"), "{plan}");
    if world.dialect() == Dialect::Sqlite {
        // Whoever opens a file alone ends what the dead held, before anybody is answered.
        let plan = store.read(lease::plan_of_ending).await.unwrap();
        assert!(plan.contains("jobs_due (lane=? AND due_at<?)"), "{plan}");
    }
    store.close().await;
}

/// Of each object two.
const FILL_EVENTS: &str = "
with recursive numbers (n) as (select cast($4 as bigint) union all select n + 1 from numbers where n < $4 + 9999)
insert into events (organization_id, mode, id, type, object_id, sequence, body, created_at)
select $1, $2, $3 || (100000000 + n), 'checkout.completed', 'cs_' || (n / 2), 1 + n % 2, '{}', n
from numbers";
const FILL_UNLOGGED: &str = "
insert into events_unlogged (organization_id, mode, id)
select organization_id, mode, id
from events
where organization_id = $1 and mode = $2 and id > $3 and created_at > cast($4 as bigint) + 9899";

/// The sequencer does so for each batch, in the thread that writes.
async fn no_event_is_looked_for_among_those_that_have_their_place(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let scope = store.write(|tx| fill_with(tx, &[FILL_EVENTS, FILL_UNLOGGED], "evt_", 5)).await.unwrap();
    let plans = store.read(move |tx| events::plans(tx, scope, "evt_100049950")).await.unwrap();
    // Of the table of all events, each step, and in how many of its lines it says what it looks by.
    let (of_events, length): (&[&str], _) = match world.dialect() {
        Dialect::Sqlite => (&[" events USING", " earlier USING"], 1),
        Dialect::Postgres => (&[" on events "], 2),
    };
    for plan in plans {
        let lines: Vec<&str> = plan.lines().collect();
        let steps = lines.windows(length).filter(|step| of_events.iter().any(|name| step[0].contains(name)));
        let steps: Vec<String> = steps.map(<[&str]>::concat).collect();
        assert!(!steps.is_empty(), "{plan}");
        let is_narrow = |step: &String| {
            ["id=?", "(id = ", "object_id = "].iter().any(|by| step.replace("organization_id", "").contains(by))
        };
        assert!(steps.iter().all(is_narrow), "{plan}");
    }
    store.close().await;
}

fn fill(tx: &mut Tx<'_>, text: &str, prefix: &str, merchants: i64) -> Result<Scope, Error> {
    fill_with(tx, &[text], prefix, merchants)
}

fn fill_with(tx: &mut Tx<'_>, texts: &[&str], prefix: &str, merchants: i64) -> Result<Scope, Error> {
    tx.unhurried();
    let now = tx.now();
    let mut last: Id<Organization> = tx.entropy().id(now);
    for first in (0..merchants).map(|merchant| merchant * 10_000 + 1) {
        last = tx.entropy().id(now);
        tx.insert(&mut Organization::new(last, Mode::Test, "Kairaba Books".into(), now))?;
        tx.query("select id from organizations where 1 = 0", &[])?;
        for text in texts {
            tx.execute(text, &[last.to_string().into(), "test".into(), prefix.into(), first.into()])?;
        }
    }
    count_rows(tx)?;
    Ok(Scope { organization: last, mode: Mode::Test })
}

/// What a plan does that it need not.
fn fault(dialect: Dialect, plan: &str, by: &str) -> Option<&'static str> {
    let (everything, sort, way) = match dialect {
        Dialect::Sqlite => ("SCAN invoices", "TEMP B-TREE", "SEARCH invoices"),
        Dialect::Postgres => ("Seq Scan", "Sort", "Index"),
    };
    if plan.contains(everything) {
        return Some("it reads everything");
    }
    if plan.contains(sort) {
        return Some("it sorts");
    }
    let is_by = plan.lines().any(|line| line.contains(way) && line.contains(by));
    (!is_by).then_some("it looks by something else")
}
