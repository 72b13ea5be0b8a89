//! Brings the schema up to this program's. Several nodes may start at the same time: one migrates, the others wait.
//!
//! Each migration commits together with its row in `schema_migrations` and with the renewal of the lease, so a node that was
//! killed resumes where it stopped, and one that was overtaken writes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};

use crate::error::{Error, SqlKind};
use crate::lease::{self, Token};
use crate::settings::Dialect;
use crate::sql::text;
use crate::store::Store;
use crate::tx::Tx;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    pub number: i64,
    pub name: &'static str,
    pub text: &'static str,
}

/// The migrations, in order, and the tables that they leave behind.
#[derive(Clone, Debug)]
pub struct Schema {
    pub migrations: &'static [Migration],
    /// What a backup holds: every table there is but those that it leaves out, a referenced one before the one that
    /// refers to it. A table that is missing here makes a backup fail.
    pub tables: &'static [&'static str],
}

/// To be added to, never changed: the checksum of an applied migration is compared at every start.
const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, name: "leases", text: include_str!("../migrations/0001_leases.sql") },
    Migration { number: 2, name: "payments", text: include_str!("../migrations/0002_payments.sql") },
    Migration {
        number: 3,
        name: "customers_and_products",
        text: include_str!("../migrations/0003_customers_and_products.sql"),
    },
    Migration { number: 4, name: "invoices", text: include_str!("../migrations/0004_invoices.sql") },
    Migration { number: 5, name: "documents", text: include_str!("../migrations/0005_documents.sql") },
    Migration { number: 6, name: "payment_links", text: include_str!("../migrations/0006_payment_links.sql") },
    Migration { number: 7, name: "mails", text: include_str!("../migrations/0007_mails.sql") },
    Migration { number: 8, name: "refunds", text: include_str!("../migrations/0008_refunds.sql") },
    Migration { number: 9, name: "ledger_batches", text: include_str!("../migrations/0009_ledger_batches.sql") },
    Migration { number: 10, name: "logos", text: include_str!("../migrations/0010_logos.sql") },
    Migration { number: 11, name: "sealed_answers", text: include_str!("../migrations/0011_sealed_answers.sql") },
    Migration { number: 12, name: "due_deliveries", text: include_str!("../migrations/0012_due_deliveries.sql") },
    Migration { number: 13, name: "lean_keys", text: include_str!("../migrations/0013_lean_keys.sql") },
    Migration { number: 14, name: "lists_and_looks", text: include_str!("../migrations/0014_lists_and_looks.sql") },
    Migration { number: 15, name: "second_money", text: include_str!("../migrations/0015_second_money.sql") },
    Migration {
        number: 16,
        name: "changed_deliveries",
        text: include_str!("../migrations/0016_changed_deliveries.sql"),
    },
    Migration {
        number: 17,
        name: "expiring_transactions",
        text: include_str!("../migrations/0017_expiring_transactions.sql"),
    },
    Migration { number: 18, name: "key_uses", text: include_str!("../migrations/0018_key_uses.sql") },
    Migration { number: 19, name: "mails_by_mode", text: include_str!("../migrations/0019_mails_by_mode.sql") },
    Migration { number: 20, name: "appended_keys", text: include_str!("../migrations/0020_appended_keys.sql") },
    Migration {
        number: 21,
        name: "mails_to_merchants",
        text: include_str!("../migrations/0021_mails_to_merchants.sql"),
    },
    Migration { number: 22, name: "mails_by_merchant", text: include_str!("../migrations/0022_mails_by_merchant.sql") },
    Migration { number: 23, name: "due_in_order", text: include_str!("../migrations/0023_due_in_order.sql") },
    Migration { number: 24, name: "lane_aside", text: include_str!("../migrations/0024_lane_aside.sql") },
    Migration { number: 25, name: "jobs_in_order", text: include_str!("../migrations/0025_jobs_in_order.sql") },
    Migration { number: 26, name: "unanswered_mails", text: include_str!("../migrations/0026_unanswered_mails.sql") },
    Migration { number: 27, name: "doubts", text: include_str!("../migrations/0027_doubts.sql") },
    Migration { number: 28, name: "indexes_apart", text: include_str!("../migrations/0028_indexes_apart.sql") },
    Migration { number: 29, name: "lanes_apart", text: include_str!("../migrations/0029_lanes_apart.sql") },
    Migration { number: 30, name: "event_checksums", text: include_str!("../migrations/0030_event_checksums.sql") },
    Migration { number: 31, name: "recent_credits", text: include_str!("../migrations/0031_recent_credits.sql") },
];

/// Merged from several sides, they may come out of order.
const _: () = {
    let mut next = 1;
    while next < MIGRATIONS.len() {
        assert!(MIGRATIONS[next - 1].number < MIGRATIONS[next].number, "migrations stand in their order");
        next += 1;
    }
};

const TABLES: &[&str] = &[
    "organizations",
    "api_keys",
    "signing_keys",
    "customers",
    "products",
    "checkouts",
    "payment_links",
    "payment_sessions",
    "transactions",
    "refunds",
    "balance_guards",
    "invoices",
    "invoice_payments",
    "receipts",
    "counters",
    "ledger_postings",
    "ledger_unsealed",
    "ledger_log",
    "ledger_batches",
    "doubts",
    "events",
    "events_unlogged",
    "event_log",
    "webhook_endpoints",
    "webhook_deliveries",
    "jobs",
    "idempotency_keys",
    "simulated_payments",
    "simulated_refunds",
    "documents",
    "logos",
    "audit_log",
    "mails",
];

/// Where it is missing, nothing of this program is there.
pub(crate) const BEGUN: &str = "schema_migrations";
const LEASE: &str = "migrate";
const OWNER: &str = "owner of the file";
const LEASE_US: i64 = 30_000_000;
const RETRY: Duration = Duration::from_millis(100);
const RETRIES: u32 = 3000;
/// How often the tables of a migration are asked for, while others work with them: for ten minutes.
const LOCK_TRIES: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_secs(1);

impl Schema {
    #[must_use]
    pub fn product() -> Self {
        Self { migrations: MIGRATIONS, tables: TABLES }
    }

    #[must_use]
    pub fn latest(&self) -> i64 {
        self.migrations.last().map_or(0, |migration| migration.number)
    }
}

struct Applied {
    number: i64,
    checksum: String,
}

const APPLIED: &str = "
select number, checksum
from schema_migrations
order by number";

const RECORD: &str = "
insert into schema_migrations (number, name, checksum, applied_at)
values ($1, $2, $3, $4)
on conflict do nothing";

pub(crate) async fn migrate(store: &Store, schema: &Schema) -> Result<(), Error> {
    let Some((first, rest)) = schema.migrations.split_first() else { return Ok(()) };
    bootstrap(store, first).await?;
    let applied = store.read(applied).await?;
    if pending(schema, &applied)?.is_empty() {
        return Ok(());
    }
    // Nobody asks how the tables of a new installation came about.
    let is_told = applied.len() > 1;
    let holder = match store.dialect() {
        // Whoever has the lock of the file is alone: one that died while it migrated isn't waited for.
        Dialect::Sqlite => OWNER.to_owned(),
        Dialect::Postgres => store.write(|tx| Ok::<_, Error>(hex(&tx.seed()[..16]))).await?,
    };
    // Overtaken: a migration took longer than the lease. What is left is the other's, or its turn comes again.
    while let Some(token) = take_lease(store, schema, &holder).await? {
        let migrated = apply_all(store, rest, &holder, token, is_told.then(|| schema.latest())).await;
        // Also after a failure: the next one to try needn't wait for the lease to run out.
        let holder = holder.clone();
        let released = store.write(move |tx| lease::release(tx, LEASE, &holder, token)).await;
        match migrated? {
            Ended::Done => return released,
            Ended::Overtaken => tokio::time::sleep(RETRY).await,
        }
    }
    Ok(())
}

enum Ended {
    Done,
    /// Somebody else has the lease; nothing was written.
    Overtaken,
}

async fn apply_all(
    store: &Store,
    migrations: &'static [Migration],
    holder: &str,
    token: Token,
    told_of: Option<i64>,
) -> Result<Ended, Error> {
    for migration in migrations {
        if let Ended::Overtaken = apply(store, migration, holder, token, told_of).await? {
            return Ok(Ended::Overtaken);
        }
    }
    Ok(Ended::Done)
}

/// A second process takes the schema as it is, or leaves it alone.
pub(crate) async fn check(store: &Store, schema: &Schema, takes_older: bool) -> Result<(), Error> {
    if !is_begun(store).await? {
        return Err(Error::Schema("the database is empty: start the server, or run `init`".to_owned()));
    }
    match pending(schema, &store.read(applied).await?)? {
        [] => Ok(()),
        _ if takes_older => Ok(()),
        _ => Err(Error::Schema(
            "the database has an older schema: start the server of this version first (a backup can be made before that)"
                .to_owned(),
        )),
    }
}

async fn is_begun(store: &Store) -> Result<bool, Error> {
    store.read(|tx| Ok(table_names(tx)?.iter().any(|name| name == BEGUN))).await
}

/// The first migration makes the tables that the others are guarded by, so nothing guards it but `if not exists`. On
/// PostgreSQL that isn't safe against itself: the loser of a race gets an error and tries again.
async fn bootstrap(store: &Store, first: &'static Migration) -> Result<(), Error> {
    if is_begun(store).await? {
        return Ok(());
    }
    let mut tries = 0;
    loop {
        let made = store
            .write(move |tx| {
                for statement in text::migration(first.text, tx.dialect()) {
                    tx.define(&statement)?;
                }
                record(tx, first)
            })
            .await;
        match made {
            Err(Error::Sql { kind: SqlKind::Unique | SqlKind::Other, .. }) if tries < 20 => tries += 1,
            made => return made,
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// `None` when another node has applied everything in the meantime.
async fn take_lease(store: &Store, schema: &Schema, holder: &str) -> Result<Option<Token>, Error> {
    for _ in 0..RETRIES {
        let name = holder.to_owned();
        match store.write(move |tx| lease::take(tx, LEASE, &name, LEASE_US)).await {
            Ok(Some(token)) => return Ok(Some(token)),
            // Unavailable: the holder's migration keeps the row locked for longer than a statement may wait.
            Ok(None) | Err(Error::Unavailable(_) | Error::Conflict) => {}
            Err(error) => return Err(error),
        }
        if pending(schema, &store.read(applied).await?)?.is_empty() {
            return Ok(None);
        }
        tokio::time::sleep(RETRY).await;
    }
    Err(Error::Unavailable("another node has been migrating this database for too long".to_owned()))
}

/// `told_of`: how many there are in all, where the operator is told of each.
async fn apply(
    store: &Store,
    migration: &'static Migration,
    holder: &str,
    token: Token,
    told_of: Option<i64>,
) -> Result<Ended, Error> {
    let mut tries = 0;
    loop {
        let waits_for_locks = Arc::new(AtomicBool::new(false));
        let (holder, waits) = (holder.to_owned(), Arc::clone(&waits_for_locks));
        let told_of_first = told_of.filter(|_| tries == 0);
        // A vacuum that runs by itself gives way only to who has waited for longer than `deadlock_timeout`.
        let patience = if tries % 10 == 9 { "2s" } else { "200ms" };
        let locks = Locks { patience, are_awaited: waits };
        let applied = store.write(move |tx| apply_once(tx, migration, &holder, token, told_of_first, &locks)).await;
        match applied {
            Ok(Some(true)) if told_of.is_some() => {
                tracing::info!(number = migration.number, name = migration.name, "migrated");
            }
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Ended::Overtaken),
            // Somebody works with them. Those who came behind have their turn, before it is tried again.
            Err(Error::Unavailable(_) | Error::Conflict)
                if waits_for_locks.load(Ordering::Relaxed) && tries < LOCK_TRIES =>
            {
                tries += 1;
                tokio::time::sleep(LOCK_PAUSE).await;
                continue;
            }
            Err(error) => return Err(error),
        }
        return Ok(Ended::Done);
    }
}

/// Whether it was still to be applied, or `None` when another node took over.
/// Of the tables that a migration works with.
struct Locks {
    /// How long they are waited for, as PostgreSQL says it.
    patience: &'static str,
    are_awaited: Arc<AtomicBool>,
}

fn apply_once(
    tx: &mut Tx<'_>,
    migration: &Migration,
    holder: &str,
    token: Token,
    told_of: Option<i64>,
    locks: &Locks,
) -> Result<Option<bool>, Error> {
    tx.unhurried();
    if !lease::renew(tx, LEASE, holder, token, LEASE_US)? {
        return Ok(None);
    }
    if applied(tx)?.iter().any(|applied| applied.number == migration.number) {
        return Ok(Some(false));
    }
    if let Some(latest) = told_of {
        tracing::info!("migrating {}/{latest} {}; do not stop the server", migration.number, migration.name);
    }
    let statements = text::migration(migration.text, tx.dialect());
    if tx.dialect() == Dialect::Postgres {
        lock(tx, &statements, locks)?;
    }
    for statement in statements {
        tx.define(&statement)?;
    }
    record(tx, migration)?;
    Ok(Some(true))
}

const TABLE_OF_INDEX: &str = "
select cast(tablename as text)
from pg_indexes
where schemaname = current_schema()
  and indexname = $1";

/// Takes every table that a migration touches, before its first statement. What others commit between a copy and the end of
/// what was copied would be lost; and whoever comes behind a statement that waits for a long reader (a backup, a check of the
/// books) waits with it, so it is not waited for long.
fn lock(tx: &mut Tx<'_>, statements: &[String], locks: &Locks) -> Result<(), Error> {
    let mut tables: BTreeSet<String> = text::tables_touched(statements).into_iter().map(str::to_owned).collect();
    for index in text::indexes_dropped(statements) {
        for row in tx.query(TABLE_OF_INDEX, &[index.into()])? {
            tables.insert(row.get(0)?);
        }
    }
    if tables.is_empty() {
        return Ok(());
    }
    let tables: Vec<String> = tables.into_iter().collect();
    locks.are_awaited.store(true, Ordering::Relaxed);
    // Whoever wants these tables waits behind us meanwhile.
    tx.define(&format!("set local lock_timeout = '{}'", locks.patience))?;
    tx.define(&format!("lock table {} in access exclusive mode", tables.join(", ")))?;
    tx.define("set local lock_timeout = '10min'")?;
    // One statement follows the other. A machine that is lost between two holds these tables no longer than any other would.
    tx.define("set local idle_in_transaction_session_timeout = '60s'")?;
    locks.are_awaited.store(false, Ordering::Relaxed);
    Ok(())
}

fn record(tx: &mut Tx<'_>, migration: &Migration) -> Result<(), Error> {
    let now = tx.now_us();
    let values = [migration.number.into(), migration.name.into(), checksum(migration).into(), now.into()];
    tx.execute(RECORD, &values).map(drop)
}

/// What is still to be applied, once it is certain that what was applied is what this program knows.
fn pending(schema: &Schema, applied: &[Applied]) -> Result<&'static [Migration], Error> {
    if let Some(newest) = applied.last().filter(|newest| newest.number > schema.latest()) {
        return Err(Error::NewerSchema { found: newest.number, known: schema.latest() });
    }
    for (migration, applied) in schema.migrations.iter().zip(applied) {
        if migration.number != applied.number {
            return Err(Error::Schema(format!(
                "the database has migration {} where this program has {}",
                applied.number, migration.number
            )));
        }
        if checksum(migration) != applied.checksum {
            return Err(Error::Schema(format!(
                "migration {} ({}) is not the one that was applied to this database",
                migration.number, migration.name
            )));
        }
    }
    Ok(&schema.migrations[applied.len()..])
}

/// The newest migration that was applied.
pub(crate) fn latest_applied(tx: &mut Tx<'_>) -> Result<i64, Error> {
    Ok(applied(tx)?.last().map_or(0, |newest| newest.number))
}

fn applied(tx: &mut Tx<'_>) -> Result<Vec<Applied>, Error> {
    let row = |row: &crate::sql::Row| Ok(Applied { number: row.get("number")?, checksum: row.get("checksum")? });
    tx.query(APPLIED, &[])?.iter().map(row).collect()
}

const TABLE_NAMES_SQLITE: &str = "
select name
from sqlite_master
where type = 'table'
  and name not like 'sqlite_%'
order by name";

const TABLE_NAMES_POSTGRES: &str = "
select table_name
from information_schema.tables
where table_schema = current_schema()
  and table_type = 'BASE TABLE'
order by table_name";

pub(crate) fn table_names(tx: &mut Tx<'_>) -> Result<Vec<String>, Error> {
    let sql = match tx.dialect() {
        Dialect::Sqlite => TABLE_NAMES_SQLITE,
        Dialect::Postgres => TABLE_NAMES_POSTGRES,
    };
    tx.query(sql, &[])?.iter().map(|row| row.get(0)).collect()
}

fn checksum(migration: &Migration) -> String {
    hex(digest(&SHA256, migration.text.as_bytes()).as_ref())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
