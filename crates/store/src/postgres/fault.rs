//! What an error of PostgreSQL means: run again, go elsewhere, or tell the caller.

use std::error::Error as _;

use tokio_postgres::error::{DbError, SqlState};

use crate::error::{Error, SqlKind};

#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) error: Error,
    pub(crate) cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The server refused one statement and the transaction with it; the connection is fine.
    Statement,
    /// The same, because another transaction held for too long what it needs.
    Blocked,
    /// The server had refused an earlier statement.
    Consequence,
    /// The server forgot a prepared statement, or its plan no longer fits: another connection is needed.
    Stale,
    /// The server answered, and ended the connection.
    Ended,
    /// No answer: nobody knows what the server did.
    Lost,
}

pub(crate) fn classify(error: &tokio_postgres::Error) -> Fault {
    let message = describe(error);
    let Some(code) = error.code() else {
        return Fault { error: Error::Unavailable(message), cause: Cause::Lost };
    };
    let (error, cause) = match code.code() {
        "40001" | "40P01" => (Error::Conflict, Cause::Statement),
        "25P02" => (Error::sql(SqlKind::Other, message), Cause::Consequence),
        "26000" | "42P05" => (Error::Unavailable(message), Cause::Stale),
        "0A000" if message.contains("cached plan") => (Error::Unavailable(message), Cause::Stale),
        "0A000" if is_of_a_standby(error) => (Error::Unavailable(message), Cause::Ended),
        "23505" => (Error::sql(SqlKind::Unique, message), Cause::Statement),
        "23514" => (Error::sql(SqlKind::Check, message), Cause::Statement),
        "23503" => (Error::sql(SqlKind::ForeignKey, message), Cause::Statement),
        "23502" => (Error::sql(SqlKind::NotNull, message), Cause::Statement),
        "08P01" if !is_fatal(error) => (Error::sql(SqlKind::Type, message), Cause::Statement),
        "42804" | "42P08" | "42P18" => (Error::sql(SqlKind::Type, message), Cause::Statement),
        "XX001" | "XX002" => (Error::Corrupt(message), Cause::Statement),
        // A statement that took too long, and whoever asks again at once makes it longer; the connection is fine.
        "57014" => (Error::Unavailable(message), Cause::Statement),
        "55P03" => (Error::Unavailable(message), Cause::Blocked),
        // A server that became a standby: the next connection may find the new primary. And a transaction that took too long.
        "25006" | "25P03" | "25P04" => (Error::Unavailable(message), Cause::Ended),
        other => match &other[..2] {
            // Said by whoever is in between and lost the server, or never had one.
            "08" => (Error::Unavailable(message), Cause::Lost),
            "57" => (Error::Unavailable(message), Cause::Ended),
            // So is what ends the connection and is not about ending it.
            "53" | "55" | "58" | "XX" if is_fatal(error) => (Error::Unavailable(message), Cause::Lost),
            "53" | "55" | "58" => (Error::Unavailable(message), Cause::Statement),
            "22" => (Error::sql(SqlKind::Type, message), Cause::Statement),
            _ => (Error::sql(SqlKind::Other, message), Cause::Statement),
        },
    };
    Fault { error, cause }
}

/// BEGIN of a transaction that writes, refused by a server that has become a standby. Told by the server's own name for the
/// place: the sentence is in the server's language, and the code is that of all that isn't supported.
fn is_of_a_standby(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().and_then(DbError::routine) == Some("call_bool_check_hook")
}

/// Division by zero in the wrapper of a guarded update: it touched no row.
pub(crate) fn is_missed_guard(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::DIVISION_BY_ZERO)
}

/// A pooler says most of what ails it with the code of a broken protocol, and then ends the connection. PostgreSQL itself
/// refuses a statement with it and goes on.
fn is_fatal(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|refusal| matches!(refusal.severity(), "FATAL" | "PANIC"))
}

/// Of the connection, and perhaps not said by the server: what it made of what was sent behind this is not known.
pub(crate) fn is_of_the_way(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| code.code().starts_with("08"))
}

/// COMMIT was answered by an error. Most of them could have come before or after the commit became durable; these can't.
pub(crate) fn is_certain_refusal(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        let code = code.code();
        code != "40003" && code != "25P04" && matches!(&code[..2], "22" | "23" | "25" | "40")
    })
}

/// Said beside a COMMIT that then is answered as done: its wait for the standby was cancelled (`pg_cancel_backend`), so that it
/// is on this server's disk and perhaps on no other. Told by the server's own name for the place, because the sentence is
/// in the server's language and its code is that of all warnings.
pub(crate) fn is_unconfirmed_commit(notice: &DbError) -> bool {
    notice.routine() == Some("SyncRepWaitForLSN")
}

/// Without the statement's values, which may be secrets.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(refusal), _) => format!("{} ({})", refusal.message(), refusal.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}
