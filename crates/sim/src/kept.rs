//! A PostgreSQL database that keeps what earlier histories left in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use store::{Database, Settings, Store};

use crate::world::{SimClock, SimEntropy};

/// With one open store for all histories: to plan all its statements anew takes longer than a history.
pub struct KeptDatabase {
    admin_url: String,
    name: String,
    pub(crate) store: Store,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) entropy: Arc<SimEntropy>,
}

impl KeptDatabase {
    /// By a role that may create databases.
    pub(crate) async fn create(admin_url: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("sim_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        run(admin_url, &format!("create database {name} template template0 encoding 'UTF8'")).await;
        // What is compared is what is told, and nobody cuts the power: a commit needs not wait for the disk.
        run(admin_url, &format!("alter database {name} set synchronous_commit = off")).await;
        let (server, _) = admin_url.rsplit_once('/').expect("the address names a database");
        let settings = Settings::new(Database::Postgres { url: format!("{server}/{name}") });
        // A history does one thing at a time.
        let settings = Settings { connections: 1, allow_unsafe: true, ..settings };
        let (clock, entropy) = (Arc::new(SimClock::new()), Arc::new(SimEntropy::default()));
        let store = Store::open(settings, Arc::clone(&clock) as _, Arc::clone(&entropy) as _);
        let store = store.await.expect("an empty database is migrated");
        Self { admin_url: admin_url.to_owned(), name, store, clock, entropy }
    }

    pub(crate) async fn drop(self) {
        self.store.close().await;
        run(&self.admin_url, &format!("drop database {} with (force)", self.name)).await;
    }
}

async fn run(admin_url: &str, sql: &str) {
    let (client, connection) =
        tokio_postgres::connect(admin_url, tokio_postgres::NoTls).await.expect("PostgreSQL answers");
    let connection = tokio::spawn(connection);
    client.batch_execute(sql).await.expect("a database is made, and dropped");
    drop(client);
    connection.await.expect("a connection ends").expect("a connection ends well");
}
