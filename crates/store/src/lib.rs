//! The only crate that contains SQL or knows which database runs.
//!
//! A command is an ordinary synchronous closure over a [`Tx`]: it can't await, so nothing outside the database is ever
//! called inside a transaction, and it may run again, so a lost race never reaches the caller.
//!
//! Not here: rules. What a row means is decided in `domain`; this crate remembers it, whole or not at all.

mod backup;
mod check;
mod checksum;
mod clock;
mod condition;
mod damage;
mod entity;
mod error;
#[cfg(feature = "inline")]
mod inline;
mod job;
pub mod lease;
mod migrate;
mod postgres;
pub mod queries;
mod restore;
mod settings;
mod settled;
mod sql;
mod sqlite;
mod store;
mod thread;
mod totals;
mod tx;
mod wakes;

/// The exit code of a process whose disk failed to sync, or failed a commit behind its sync: what it holds in memory is no longer
/// known to be what is on the disk, and the restart recovers. The customary one for errors of input and output.
pub const EXIT_SYNC_FAILED: i32 = 74;

pub use backup::{Summary, backup};
pub use check::{check_backup, find_in_backup, is_backup, organizations_in_backup};
pub use clock::{Clock, EntropySource};
pub use condition::{Condition, Server, size};
pub use damage::{Damage, DamagedRow};
pub use entity::Entity;
pub use error::{Error, SqlKind};
#[cfg(feature = "inline")]
pub use inline::{InlineDatabase, Interference, Moment, Strike};
pub use migrate::{Migration, Schema};
pub use restore::restore;
pub use settings::{Database, Dialect, Settings};
pub use sql::{ColumnName, FromValue, Row, Value};
pub use store::Store;
pub use tx::Tx;
pub use wakes::{LONGEST_SLEEP, Wakes, Worker};
