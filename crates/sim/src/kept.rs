//! A PostgreSQL database that keeps what earlier histories left in it.

use std::sync::atomic::{AtomicU64, Ordering};

use store::{Database, Settings};

pub struct KeptDatabase {
    admin_url: String,
    name: String,
}

impl KeptDatabase {
    /// By a role that may create databases.
    pub(crate) async fn create(admin_url: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("sim_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let kept = Self { admin_url: admin_url.to_owned(), name };
        kept.run(&format!("create database {} template template0 encoding 'UTF8'", kept.name)).await;
        kept
    }

    pub(crate) async fn drop(self) {
        self.run(&format!("drop database {} with (force)", self.name)).await;
    }

    pub(crate) fn settings(&self) -> Settings {
        let (server, _) = self.admin_url.rsplit_once('/').expect("the address names a database");
        let settings = Settings::new(Database::Postgres { url: format!("{server}/{}", self.name) });
        // A history does one thing at a time.
        Settings { connections: 1, ..settings }
    }

    async fn run(&self, sql: &str) {
        let (client, connection) =
            tokio_postgres::connect(&self.admin_url, tokio_postgres::NoTls).await.expect("PostgreSQL answers");
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await.expect("a database is made, and dropped");
        drop(client);
        connection.await.expect("a connection ends").expect("a connection ends well");
    }
}
