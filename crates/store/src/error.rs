//! What can go wrong between a command and its database. Values never appear in a message: they may be secrets.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Another transaction was faster. The driver runs the closure again; a caller sees this only after many tries.
    Conflict,
    /// Nothing was written; the same call may succeed later.
    Unavailable(String),
    /// Nothing was written, because too many others wait. The same call may succeed in a moment.
    Busy,
    /// The connection broke during COMMIT: the write may or may not be there. Read it back to find out.
    UnknownCommit,
    /// The database holds what this program could not have written.
    Corrupt(String),
    /// The database's settings can lose acknowledged writes. The sentence says how to mend it.
    Unsafe(String),
    /// What was set can't be used whatever else is set, and trying again changes nothing. The sentence says how to mend it.
    Unusable(String),
    /// Another process serves this file.
    InUse(String),
    /// A newer program has migrated this database.
    NewerSchema {
        found: i64,
        known: i64,
    },
    /// The schema is not the one that this program's migrations produce.
    Schema(String),
    /// A backup that can't be read or loaded; nothing of it was kept.
    Backup(String),
    Sql {
        kind: SqlKind,
        message: String,
    },
    /// The closure panicked; its transaction was rolled back.
    Panic(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlKind {
    Unique,
    Check,
    ForeignKey,
    NotNull,
    /// A value that doesn't fit its column or placeholder, or a text with U+0000.
    Type,
    Other,
}

impl Error {
    pub(crate) fn sql(kind: SqlKind, message: impl Into<String>) -> Self {
        Self::Sql { kind, message: message.into() }
    }

    #[must_use]
    pub fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Sql { kind: SqlKind::Unique, .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict => write!(f, "other transactions were faster every time"),
            Self::Unavailable(why) => write!(f, "the database is not available: {why}"),
            Self::Busy => write!(f, "too many transactions are waiting"),
            Self::UnknownCommit => write!(f, "the connection broke during commit: the write may or may not be stored"),
            Self::Corrupt(what) => write!(f, "the database holds something unexpected: {what}"),
            Self::Unsafe(sentence)
            | Self::Unusable(sentence)
            | Self::InUse(sentence)
            | Self::Schema(sentence)
            | Self::Backup(sentence) => f.write_str(sentence),
            Self::NewerSchema { found, known } => write!(
                f,
                "the database has schema {found}, this program knows schemas up to {known}: start the newer program, or restore a backup made before the upgrade"
            ),
            Self::Sql { kind: SqlKind::Other, message } => write!(f, "sql: {message}"),
            Self::Sql { kind, message } => write!(f, "sql ({kind:?}): {message}"),
            Self::Panic(message) => write!(f, "a command panicked: {message}"),
        }
    }
}

impl std::error::Error for Error {}
