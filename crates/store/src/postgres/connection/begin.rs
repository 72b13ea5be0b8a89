//! How a transaction begins: with what ends a wait for a lock, a statement, or a transaction whose client is gone without a word.
//!
//! A session of the server's own is told once, and a transaction only what differs. A pooler doesn't keep what a session was told,
//! so behind one each transaction is told all of it, for itself alone. No COMMIT is cut short by any of this: it is no statement any
//! more when it waits for a standby.

use super::Patience;
use crate::tx::Access;

macro_rules! hurried {
    ($set:literal, $lock:literal) => {
        concat!(
            $set,
            " lock_timeout = '",
            $lock,
            "'; ",
            $set,
            " statement_timeout = '20s'; ",
            $set,
            " idle_in_transaction_session_timeout = '60s'"
        )
    };
}

/// A backup's reader or a restore's writer may take its time.
macro_rules! unhurried {
    () => {
        "set local lock_timeout = '10min'; set local statement_timeout = '6h'; \
         set local idle_in_transaction_session_timeout = '1h'"
    };
}

macro_rules! begin_write {
    ($limits:expr) => {
        concat!("begin isolation level read committed read write; ", $limits)
    };
}

macro_rules! begin_read {
    ($limits:expr) => {
        concat!("begin isolation level repeatable read read only; ", $limits)
    };
}

/// Of a session that keeps them.
pub(in crate::postgres) const LIMITS: &str = hurried!("set", "15s");
/// From the middle of a transaction on.
pub(super) const UNHURRIED: &str = unhurried!();

/// `is_told`: the session keeps [`LIMITS`].
pub(super) fn text(access: Access, patience: Patience, is_unhurried: bool, is_told: bool) -> &'static str {
    match (access, patience, is_unhurried, is_told) {
        (Access::Write, _, true, _) => begin_write!(unhurried!()),
        (Access::Read, _, true, _) => begin_read!(unhurried!()),
        (Access::Write, Patience::Long, false, true) => begin_write!(""),
        (Access::Write, Patience::Fair, false, true) => begin_write!("set local lock_timeout = '500ms'"),
        (Access::Write, Patience::Brief, false, true) => begin_write!("set local lock_timeout = '100ms'"),
        (Access::Write, Patience::Briefest, false, true) => begin_write!("set local lock_timeout = '5ms'"),
        (Access::Read, _, false, true) => begin_read!(""),
        (Access::Write, Patience::Long, false, false) => begin_write!(hurried!("set local", "15s")),
        (Access::Write, Patience::Fair, false, false) => begin_write!(hurried!("set local", "500ms")),
        (Access::Write, Patience::Brief, false, false) => begin_write!(hurried!("set local", "100ms")),
        (Access::Write, Patience::Briefest, false, false) => begin_write!(hurried!("set local", "5ms")),
        (Access::Read, _, false, false) => begin_read!(hurried!("set local", "15s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_session_keeps_nothing_each_transaction_is_told_everything() {
        for patience in [Patience::Long, Patience::Fair, Patience::Brief, Patience::Briefest] {
            for (access, is_unhurried) in
                [(Access::Write, false), (Access::Write, true), (Access::Read, false), (Access::Read, true)]
            {
                let text = text(access, patience, is_unhurried, false);
                for limit in ["lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"] {
                    assert!(text.contains(&format!("set local {limit} = ")), "{text}");
                }
            }
        }
    }
}
