//! Which database, and how it is opened.

use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct Settings {
    pub database: Database,
    /// Start although the database's settings can lose acknowledged writes.
    pub allow_unsafe: bool,
    /// PostgreSQL: threads with one connection each. SQLite: reading threads beside the one writer.
    pub connections: usize,
    /// A second process beside the one that serves: it never migrates, and on SQLite neither locks the file nor
    /// checkpoints.
    pub secondary: bool,
    /// A second process that only copies what there is: it takes the schema of an older version, too.
    pub takes_older: bool,
}

impl Settings {
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database, allow_unsafe: false, connections: 4, secondary: false, takes_older: false }
    }
}

#[derive(Clone, Debug)]
pub enum Database {
    Sqlite {
        path: PathBuf,
    },
    /// For tests: a file in a temporary folder, never synced, gone with the store.
    SqliteMemory,
    /// A libpq URL. TLS is used when it says `sslmode=require`, `verify-ca` or `verify-full`, and then the certificate is
    /// always verified, against the system's roots or the file named by `sslrootcert`.
    Postgres {
        url: String,
    },
}

impl Database {
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite { .. } | Self::SqliteMemory => Dialect::Sqlite,
            Self::Postgres { .. } => Dialect::Postgres,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}
