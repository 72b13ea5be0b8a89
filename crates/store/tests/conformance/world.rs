//! A database of its own for each test, and a way to look into it that does not go through the store.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::{SystemTime, UNIX_EPOCH};

use store::{Clock, Database, Dialect, EntropySource, Error, Migration, Schema, Settings, Store, Tx};

pub(crate) const TABLES: &[&str] = &["counters", "postings", "children", "chores", "things"];

const TEST_TABLES: &str = "
create table counters (
    name text primary key,
    version bigint not null,
    value bigint not null
);
create table postings (
    id text primary key,
    note text not null check (note <> 'forbidden')
);
create table children (
    id text primary key,
    posting text not null references postings (id),
    late text references postings (id) deferrable initially deferred
);
create table chores (
    id bigint primary key,
    lease_until bigint not null,
    holder text,
    runs bigint not null
);
create table things (
    id text primary key,
    number bigint,
    body text,
    bytes blob
);
";

pub(crate) struct System;

#[expect(clippy::disallowed_methods, reason = "a clock has to take its time from somewhere")]
impl Clock for System {
    fn now_us(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(since.as_micros()).unwrap()
    }
}

/// A different seed for each call, in this process and in others.
pub(crate) struct Counting(AtomicU64);

impl EntropySource for Counting {
    fn fill(&self, bytes: &mut [u8; 32]) {
        bytes[..8].copy_from_slice(&self.0.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        bytes[8..16].copy_from_slice(&System.now_us().to_le_bytes());
    }
}

pub(crate) fn entropy() -> Arc<Counting> {
    Arc::new(Counting(AtomicU64::new(1)))
}

/// The product's own first migration and the tables of these tests.
pub(crate) fn schema() -> Schema {
    schema_of(vec![Migration { number: 2, name: "test_tables", text: TEST_TABLES }], TABLES)
}

pub(crate) fn schema_of(more: Vec<Migration>, tables: &'static [&'static str]) -> Schema {
    let mut migrations = vec![Schema::product().migrations[0].clone()];
    migrations.extend(more);
    Schema { migrations: migrations.leak(), tables }
}

pub(crate) struct World {
    pub(crate) settings: Settings,
    place: Place,
}

enum Place {
    Folder(PathBuf),
    Database { admin: String, name: String },
}

impl World {
    pub(crate) fn sqlite() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("dalasi-conformance-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let settings = Settings::new(Database::Sqlite { path: folder.join("dalasi.sqlite") });
        Self { settings, place: Place::Folder(folder) }
    }

    pub(crate) async fn postgres(test: &str) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let Ok(admin) = std::env::var("DALASI_TEST_POSTGRES_URL") else {
            // Not `eprintln`: the harness swallows what a test prints that passes.
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                let text = "\nNOT RUN: the PostgreSQL half (DALASI_TEST_POSTGRES_URL is not set), beginning with";
                std::io::stderr().write_all(format!("{text} {test}\n").as_bytes()).unwrap();
            });
            return None;
        };
        let name = format!("conformance_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // A database that sorts text as people do, where it can be had: the store must not.
        let client = raw_postgres(&admin).await;
        let create = format!("create database {name} template template0 encoding 'UTF8'");
        let sorting = format!("{create} locale_provider icu icu_locale 'en-US'");
        if client.batch_execute(&sorting).await.is_err() {
            client.batch_execute(&create).await.unwrap();
        }
        let settings = Settings::new(Database::Postgres { url: with_database(&admin, &name) });
        Some(Self { settings, place: Place::Database { admin, name } })
    }

    /// An empty database of the same kind.
    pub(crate) async fn another(&self) -> Self {
        match &self.place {
            Place::Folder(_) => Self::sqlite(),
            Place::Database { .. } => Self::postgres("another").await.unwrap(),
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.settings.database.dialect()
    }

    pub(crate) async fn open(&self) -> Store {
        self.try_open(schema()).await.unwrap()
    }

    pub(crate) async fn try_open(&self, schema: Schema) -> Result<Store, Error> {
        Store::open_with(self.settings.clone(), schema, Arc::new(System), entropy()).await
    }

    /// A second one on the same database, as another process would have it.
    pub(crate) async fn open_second(&self) -> Store {
        let settings = Settings { secondary: true, ..self.settings.clone() };
        Store::open_with(settings, schema(), Arc::new(System), entropy()).await.unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        let Database::Sqlite { path } = &self.settings.database else { panic!("not SQLite") };
        path
    }

    pub(crate) fn url(&self) -> &str {
        let Database::Postgres { url } = &self.settings.database else { panic!("not PostgreSQL") };
        url
    }

    /// Changes a setting of the database, for connections that are made afterwards.
    pub(crate) async fn alter(&self, setting: &str) {
        let Place::Database { admin, name } = &self.place else { panic!("not PostgreSQL") };
        let sql = format!("alter database {name} set {setting}");
        raw_postgres(admin).await.batch_execute(&sql).await.unwrap();
    }

    /// Asked on a connection that the store knows nothing of: only what is committed is seen.
    pub(crate) async fn count(&self, from: &str) -> i64 {
        let sql = format!("select count(*) from {from}");
        match &self.place {
            Place::Folder(_) => {
                rusqlite::Connection::open(self.path()).unwrap().query_row(&sql, [], |row| row.get(0)).unwrap()
            }
            Place::Database { .. } => raw_postgres(self.url()).await.query_typed_one(&sql, &[]).await.unwrap().get(0),
        }
    }

    pub(crate) async fn end(self) {
        match &self.place {
            Place::Folder(_) => {}
            Place::Database { admin, name } => {
                let sql = format!("drop database {name} with (force)");
                raw_postgres(admin).await.batch_execute(&sql).await.unwrap();
            }
        }
    }
}

/// Also after a test that failed.
impl Drop for World {
    fn drop(&mut self) {
        if let Place::Folder(folder) = &self.place {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

pub(crate) async fn raw_postgres(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The same address with another database.
fn with_database(url: &str, name: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, None), |(address, query)| (address, Some(query)));
    let scheme = address.find("://").unwrap() + 3;
    let end = address[scheme..].find('/').map_or(address.len(), |slash| scheme + slash);
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    format!("{}/{name}{query}", &address[..end])
}

/// What a database knows of its rows when it plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// As in a store that is new.
    Nothing,
    /// As when something begins to wait that never waited long: it counted last when there was nothing.
    NothingWaited,
    Everything,
}

impl Known {
    /// All that it may: SQLite, which never counts, nothing.
    pub(crate) fn of(dialect: Dialect) -> &'static [Self] {
        match dialect {
            Dialect::Sqlite => &[Self::Nothing],
            Dialect::Postgres => &[Self::Nothing, Self::NothingWaited, Self::Everything],
        }
    }
}

/// As it is in use: PostgreSQL counts by itself after a while, SQLite never does.
pub(crate) fn count_rows(tx: &mut Tx<'_>) -> Result<(), Error> {
    if tx.dialect() == Dialect::Postgres {
        tx.execute("analyze", &[])?;
    }
    Ok(())
}
