//! Idempotency keys: the answer to a request is stored in the transaction of its effect (contract §1.8).
//!
//! On PostgreSQL a unique index finds a key, and makes a second request wait for the first. On SQLite nobody else writes
//! meanwhile: rows are appended, and `sqlite/key_index.rs` tells where a key may stand.

use std::time::Duration;

use domain::{Scope, Timestamp};

use super::{explained, limit};
use crate::error::Error;
use crate::settings::Dialect;
use crate::sql::{Row, Value};
use crate::sqlite::key_index::{self, Place};
use crate::tx::Tx;

const CLAIM: &str = "\
insert into idempotency_keys (organization_id, mode, space, idempotency_key, fingerprint, state, status, body, created_at)
values ($1, $2, $3, $4, $5, 'running', null, null, $6)
on conflict do nothing";

const SELECT: &str = "\
select fingerprint, state, status, body, sealed_body, created_at
from idempotency_keys
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4";

const SELECT_AT: &str = "\
select sequence, fingerprint, state, status, body, sealed_body, created_at
from idempotency_keys
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4 and sequence = $5";

const APPEND: &str = "\
insert into idempotency_keys (organization_id, mode, space, idempotency_key, fingerprint, state, status, body, created_at,
    sealed_body, sequence)
values ($1, $2, $3, $4, $5, $6, $7, null, $8, $9, $10)";

/// What has been there is older than the window, or died with its process.
const REPLACE: &str = "\
update idempotency_keys
set fingerprint = $5, state = $6, status = $7, body = null, created_at = $8, sealed_body = $9
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4 and sequence = $10";

const ADD: &str = "\
insert into idempotency_keys (organization_id, mode, space, idempotency_key, fingerprint, state, status, body, created_at,
    sealed_body)
values ($1, $2, $3, $4, $5, $6, $7, null, $8, $9)
on conflict do nothing";

const RENEW: &str = "\
update idempotency_keys
set fingerprint = $5, state = 'running', status = null, body = null, sealed_body = null, created_at = $6
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4 and created_at = $7";

const FINISH: &str = "\
update idempotency_keys
set state = 'finished', status = $5, sealed_body = $6
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4 and state = 'running'";

const FINISH_AT: &str = "\
update idempotency_keys
set state = 'finished', status = $2, sealed_body = $3
where sequence = $1 and state = 'running'";

/// Of what nobody ends but the request that began it.
const ALONE_NOW: &str = "\
update idempotency_keys
set status = 0
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4 and state = 'running'";

const RELEASE: &str = "\
delete from idempotency_keys
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4 and state = 'running'";

const RELEASE_AT: &str = "\
delete from idempotency_keys
where sequence = $1 and state = 'running'";

/// One that runs stays: what it waits for, however long, is committed together with its answer. But for those that wait for nothing
/// ([`ALONE`]): their process died.
const OLD: &str = "\
select organization_id, mode, space, idempotency_key
from idempotency_keys
where created_at < $1 and (state = 'finished' or status = 0)
order by created_at
limit $2";

const OLD_AT: &str = "\
select sequence
from idempotency_keys
where created_at < $1 and (state = 'finished' or status = 0)
order by created_at
limit $2";

const FORGET_AT: &str = "\
delete from idempotency_keys
where sequence = $1 and created_at < $2 and (state = 'finished' or status = 0)";

const FORGET: &str = "\
delete from idempotency_keys
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4 and created_at < $5
    and (state = 'finished' or status = 0)";

/// The status of a key whose request runs and is ended by nobody but itself. No answer has it.
pub const ALONE: i64 = 0;
/// Keys are kept for 30 days.
const WINDOW: Duration = Duration::from_secs(30 * 24 * 3600);
/// Keys forgotten in one transaction.
const MOST_FORGOTTEN: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub scope: Scope,
    /// Whose keys they are.
    pub space: String,
    pub key: String,
    /// Of verb, path and canonical body without the key. The caller keys it: a body may hold a code of a few digits, which whoever
    /// reads the database could find by trying all of them.
    pub fingerprint: Vec<u8>,
    /// The same as versions stored it that did not key it, to be told from another request's in their rows. It is never stored.
    pub former_fingerprint: Option<Vec<u8>>,
    /// Whether its request, done once more, sets what it has set before. It is never stored.
    pub sets_state: bool,
}

impl IdempotencyKey {
    /// Of the keys that a request without one is given, so that a commit of unknown outcome can be looked for.
    pub const OWN_SPACE: &'static str = "request";
    /// The same where one process alone commits and hears of the end of each commit. They tell who sends the same once more, and are
    /// never stored.
    pub const UNSTORED_SPACE: &'static str = "unstored";
    /// Of the keys that come with a secret key.
    pub const MERCHANT_SPACE: &'static str = "secret";
    const PAGE_SPACES: &'static str = "page:";

    /// Of the keys of one page's visitors, who have no more than a publishable key.
    #[must_use]
    pub fn page_space(id: &str) -> String {
        format!("{}{id}", Self::PAGE_SPACES)
    }

    #[must_use]
    pub fn is_of_page(&self) -> bool {
        self.space.starts_with(Self::PAGE_SPACES)
    }

    /// Tells it from all others. None of its parts has a line break in it. Stored answers are sealed with it: it never changes.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}\n{}\n{}\n{}", self.scope.organization, self.scope.mode.as_str(), self.space, self.key)
    }

    fn is_of_request(&self, stored: &[u8]) -> bool {
        stored == self.fingerprint || self.former_fingerprint.as_deref() == Some(stored)
    }

    /// Nobody else knows it, so nobody asks for its answer again.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.space == Self::OWN_SPACE || !self.is_stored()
    }

    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.space != Self::UNSTORED_SPACE
    }
}

/// The body of an answer, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptBody {
    /// As [`finish`] was given it.
    Sealed(Vec<u8>),
    /// Of a schema before the eleventh; thirty days after its migration there is none any more.
    Plain(String),
    /// It was not kept.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// First use: execute, then [`finish`] or [`leave`] in the same transaction.
    First,
    Finished {
        status: i64,
        body: KeptBody,
    },
    /// The first request has not ended yet.
    Running,
    /// Another request used this key.
    Reused,
}

/// Where nobody else writes, the key is looked for, and stored once with its answer. Where others do, it is stored at once, so
/// that they wait for it. A shared transaction takes it for new: [`finish`] finds out, and everything runs again alone.
pub fn claim(tx: &mut Tx<'_>, key: &IdempotencyKey) -> Result<Claimed, Error> {
    claim_unless(tx, key, None)
}

/// The same for what nobody ends but the request that began it: one that runs for `longest` died with its process, and whoever
/// comes with its key begins anew.
pub fn claim_after(tx: &mut Tx<'_>, key: &IdempotencyKey, longest: Duration) -> Result<Claimed, Error> {
    claim_unless(tx, key, Some(longest))
}

/// Whether a key that was taken for new, in a transaction that others share, is there after all: only alone its request is told what
/// came of it.
pub fn is_taken(tx: &mut Tx<'_>, key: &IdempotencyKey) -> Result<bool, Error> {
    Ok(tx.is_shared() && tx.query_opt(SELECT, &columns(key))?.is_some())
}

fn claim_unless(tx: &mut Tx<'_>, key: &IdempotencyKey, longest: Option<Duration>) -> Result<Claimed, Error> {
    match tx.dialect() {
        Dialect::Sqlite => match find(tx, key)? {
            Some(row) => claimed(tx, key, &row, longest),
            None => Ok(Claimed::First),
        },
        Dialect::Postgres if tx.is_shared() => Ok(Claimed::First),
        Dialect::Postgres => claim_among_others(tx, key, longest),
    }
}

fn claim_among_others(tx: &mut Tx<'_>, key: &IdempotencyKey, longest: Option<Duration>) -> Result<Claimed, Error> {
    let mut values = columns(key);
    // Whoever claims goes on to lock what it is about, and asks for the time then.
    values.extend([key.fingerprint.as_slice().into(), tx.begun_us().into()]);
    // On PostgreSQL this waits for another holder of the same key to commit or roll back.
    if tx.execute(CLAIM, &values)? == 1 {
        return Ok(Claimed::First);
    }
    let sql = format!("{SELECT}{}", tx.lock_suffix());
    // Whoever had it may have given it back meanwhile.
    let Some(row) = tx.query(&sql, &columns(key))?.into_iter().next() else { return Err(tx.conflict()) };
    let claimed = claimed(tx, key, &row, longest)?;
    if claimed == Claimed::First {
        values.push(row.get("created_at")?);
        tx.guarded("idempotency_keys", RENEW, &values)?;
    }
    Ok(claimed)
}

/// What the stored row makes of a request with this key.
fn claimed(tx: &Tx<'_>, key: &IdempotencyKey, row: &Row, longest: Option<Duration>) -> Result<Claimed, Error> {
    let age = tx.now().since(Timestamp::from_micros(row.get("created_at")?));
    let is_running = row.get::<String>("state")? == "running";
    // What runs is not forgotten, so that its answer finds its place.
    if age >= WINDOW && !is_running {
        return Ok(Claimed::First);
    }
    if !key.is_of_request(&row.get::<Vec<u8>>("fingerprint")?) && !domain::planted!(Defect::FingerprintIgnored) {
        return Ok(Claimed::Reused);
    }
    match is_running {
        true if longest.is_some_and(|longest| age >= longest) => Ok(Claimed::First),
        true => Ok(Claimed::Running),
        false => finished(row),
    }
}

fn finished(row: &Row) -> Result<Claimed, Error> {
    let body = match (row.get("sealed_body")?, row.get("body")?) {
        (Some(sealed), _) => KeptBody::Sealed(sealed),
        (None, Some(plain)) => KeptBody::Plain(plain),
        (None, None) => KeptBody::Gone,
    };
    Ok(Claimed::Finished { status: row.get("status")?, body })
}

/// Stores the answer to a request whose key was claimed in this transaction. Its body is sealed by the caller; without one,
/// nobody can be given it again.
pub fn finish(tx: &mut Tx<'_>, key: &IdempotencyKey, status: i64, sealed: Option<Vec<u8>>) -> Result<(), Error> {
    match tx.dialect() {
        Dialect::Sqlite => keep(tx, key, "finished", Some((status, sealed))),
        Dialect::Postgres if tx.is_shared() => {
            let values = kept(tx, key, "finished", Some((status, sealed)));
            tx.guarded("idempotency_keys", ADD, &values)
        }
        Dialect::Postgres => finish_running(tx, key, status, sealed),
    }
}

/// The answer comes in a later transaction, by [`finish_left`]; until then the request is running.
pub fn leave(tx: &mut Tx<'_>, key: &IdempotencyKey) -> Result<(), Error> {
    match tx.dialect() {
        Dialect::Sqlite => keep(tx, key, "running", None),
        Dialect::Postgres if tx.is_shared() => Err(tx.conflict()),
        // It has been stored so already.
        Dialect::Postgres => Ok(()),
    }
}

/// The same for what nobody ends but the request that began it, as [`claim_after`] takes it to be.
pub fn leave_alone(tx: &mut Tx<'_>, key: &IdempotencyKey) -> Result<(), Error> {
    match tx.dialect() {
        Dialect::Sqlite => keep(tx, key, "running", Some((ALONE, None))),
        Dialect::Postgres if tx.is_shared() => Err(tx.conflict()),
        // It has been stored as running already.
        Dialect::Postgres => tx.guarded("idempotency_keys", ALONE_NOW, &columns(key)),
    }
}

/// Stores the answer to a request that is running.
pub fn finish_left(tx: &mut Tx<'_>, key: &IdempotencyKey, status: i64, sealed: Option<Vec<u8>>) -> Result<(), Error> {
    tx.end_key(key.name());
    finish_running(tx, key, status, sealed)
}

fn finish_running(tx: &mut Tx<'_>, key: &IdempotencyKey, status: i64, sealed: Option<Vec<u8>>) -> Result<(), Error> {
    if tx.dialect() == Dialect::Sqlite {
        let Some(row) = find(tx, key)? else { return Err(tx.conflict()) };
        return tx.guarded("idempotency_keys", FINISH_AT, &[row.get("sequence")?, status.into(), sealed.into()]);
    }
    let mut values = columns(key);
    values.extend([status.into(), sealed.into()]);
    tx.guarded("idempotency_keys", FINISH, &values)
}

/// Frees a key whose request was refused before it did anything.
pub fn release(tx: &mut Tx<'_>, key: &IdempotencyKey) -> Result<(), Error> {
    tx.end_key(key.name());
    if tx.dialect() == Dialect::Sqlite {
        let Some(row) = find(tx, key)? else { return Ok(()) };
        return tx.execute(RELEASE_AT, &[row.get("sequence")?]).map(drop);
    }
    tx.execute(RELEASE, &columns(key)).map(drop)
}

/// Whether a request with this key is running. PostgreSQL is asked in a read; on SQLite only what writes can find a key.
pub fn is_running(tx: &mut Tx<'_>, key: &IdempotencyKey) -> Result<bool, Error> {
    let row = match tx.dialect() {
        Dialect::Sqlite => find(tx, key)?,
        Dialect::Postgres => tx.query_opt(SELECT, &columns(key))?,
    };
    Ok(row.map(|row| row.get::<String>("state")).transpose()?.is_some_and(|state| state == "running"))
}

fn find(tx: &mut Tx<'_>, key: &IdempotencyKey) -> Result<Option<Row>, Error> {
    key_index::find(tx, SELECT_AT, &columns(key))
}

/// Behind a claim in the same transaction, which found nothing there that counts.
fn keep(
    tx: &mut Tx<'_>,
    key: &IdempotencyKey,
    state: &str,
    answer: Option<(i64, Option<Vec<u8>>)>,
) -> Result<(), Error> {
    let mut values = kept(tx, key, state, answer);
    let (sql, sequence) = match key_index::place(tx, SELECT_AT, &values[..4])? {
        Place::Taken(sequence) => (REPLACE, sequence),
        Place::Free(sequence) => (APPEND, sequence),
    };
    values.push(sequence.into());
    tx.guarded("idempotency_keys", sql, &values)
}

/// Deletes keys that are older than the window and whose request has ended; true while there may be more.
pub fn forget(tx: &mut Tx<'_>) -> Result<bool, Error> {
    let before = tx.now().minus(WINDOW).micros();
    match tx.dialect() {
        Dialect::Sqlite => forget_alone(tx, before),
        Dialect::Postgres => forget_among_others(tx, before),
    }
}

fn forget_alone(tx: &mut Tx<'_>, before: i64) -> Result<bool, Error> {
    key_index::read_before_forgetting(tx)?;
    let old = tx.query(OLD_AT, &[before.into(), limit(MOST_FORGOTTEN)])?;
    for row in &old {
        tx.append("idempotency_keys", FORGET_AT, &[row.get("sequence")?, before.into()])?;
    }
    if old.len() == MOST_FORGOTTEN {
        return Ok(true);
    }
    key_index::drop_emptied(tx)
}

fn forget_among_others(tx: &mut Tx<'_>, before: i64) -> Result<bool, Error> {
    let sql = format!("{OLD}{}", tx.skip_locked_suffix());
    let old = tx.query(&sql, &[before.into(), limit(MOST_FORGOTTEN)])?;
    for row in &old {
        let mut values = Vec::with_capacity(5);
        for column in ["organization_id", "mode", "space", "idempotency_key"] {
            values.push(row.get::<String>(column)?.into());
        }
        values.push(before.into());
        // The row is held since it was read, so that this can't miss.
        tx.append("idempotency_keys", FORGET, &values)?;
    }
    Ok(old.len() == MOST_FORGOTTEN)
}

/// The database's plans for both steps of [`forget`], for whoever checks that no index is missing.
pub fn plans(tx: &mut Tx<'_>, key: &IdempotencyKey) -> Result<[String; 2], Error> {
    let before = Value::from(tx.now().minus(WINDOW).micros());
    let mut of_key = columns(key);
    of_key.push(before.clone());
    let most = limit(MOST_FORGOTTEN);
    match tx.dialect() {
        Dialect::Sqlite => {
            Ok([explained(tx, OLD_AT, &[before.clone(), most])?, explained(tx, FORGET_AT, &[1.into(), before])?])
        }
        Dialect::Postgres => Ok([explained(tx, OLD, &[before, most])?, explained(tx, FORGET, &of_key)?]),
    }
}

fn kept(tx: &Tx<'_>, key: &IdempotencyKey, state: &str, answer: Option<(i64, Option<Vec<u8>>)>) -> Vec<Value> {
    let (status, sealed) = answer.map_or((None, None), |(status, sealed)| (Some(status), sealed));
    let mut values = columns(key);
    values.extend([
        key.fingerprint.as_slice().into(),
        state.into(),
        status.into(),
        tx.now().micros().into(),
        sealed.into(),
    ]);
    values
}

fn columns(key: &IdempotencyKey) -> Vec<Value> {
    vec![
        key.scope.organization.to_string().into(),
        if domain::planted!(Defect::KeysOfAllModes) { "test".into() } else { key.scope.mode.as_str().into() },
        key.space.as_str().into(),
        key.key.as_str().into(),
    ]
}
