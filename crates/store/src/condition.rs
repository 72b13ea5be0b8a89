//! What a database says of itself, for whoever looks after it. What follows from it is decided there.

use crate::error::Error;
use crate::settings::Dialect;
use crate::tx::Tx;
use crate::{postgres, sqlite};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The program that keeps it, with its version.
    pub product: String,
    /// The number of the last migration.
    pub schema: i64,
    /// Nothing: it is embedded.
    pub server: Option<Server>,
}

/// A PostgreSQL server as this connection finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Microseconds since the epoch, by its own clock.
    pub clock_us: i64,
    /// It follows another, and takes no writes.
    pub is_standby: bool,
    pub is_read_only: bool,
    pub synchronous_commit: String,
    /// For whom a commit waits, in the server's own notation; empty: for nobody.
    pub synchronous_standby_names: String,
    /// How many follow it now.
    pub standbys: i64,
    /// How many of these a commit may wait for.
    pub synchronous_standbys: i64,
    /// Of how many that is not told, because the role may not see it.
    pub unseen_standbys: i64,
}

const SCHEMA: &str = "
select max(number) as schema_number
from schema_migrations";

/// About how many bytes it takes on its disk, with its indexes.
pub fn size(tx: &mut Tx<'_>) -> Result<u64, Error> {
    let sql = match tx.dialect() {
        Dialect::Sqlite => sqlite::SIZE,
        Dialect::Postgres => postgres::SIZE,
    };
    let bytes: i64 = tx.query_one(sql, &[])?.get("bytes")?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

impl Condition {
    pub fn of(tx: &mut Tx<'_>) -> Result<Self, Error> {
        let schema = tx.query_one(SCHEMA, &[])?.get("schema_number")?;
        match tx.dialect() {
            Dialect::Sqlite => Ok(Self { product: sqlite::product(), schema, server: None }),
            Dialect::Postgres => {
                let (product, server) = postgres::condition(tx)?;
                Ok(Self { product, schema, server: Some(server) })
            }
        }
    }
}
