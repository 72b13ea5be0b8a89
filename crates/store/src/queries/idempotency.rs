//! Idempotency keys: the answer to a request is stored in the transaction of its effect (contract §1.8).

use domain::{Scope, Timestamp};

use crate::error::Error;
use crate::sql::{Row, Value};
use crate::tx::Tx;

const CLAIM: &str = "\
insert into idempotency_keys (organization_id, mode, space, idempotency_key, fingerprint, state, status, body, created_at)
values ($1, $2, $3, $4, $5, 'running', null, null, $6)
on conflict do nothing";

const SELECT: &str = "\
select fingerprint, state, status, body, sealed_body, created_at
from idempotency_keys
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4";

const RENEW: &str = "\
update idempotency_keys
set fingerprint = $5, state = 'running', status = null, body = null, sealed_body = null, created_at = $6
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4 and created_at = $7";

const FINISH: &str = "\
update idempotency_keys
set state = 'finished', status = $5, sealed_body = $6
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4 and state = 'running'";

const RELEASE: &str = "\
delete from idempotency_keys
where organization_id = $1 and mode = $2 and space = $3 and idempotency_key = $4 and state = 'running'";

const FORGET: &str = "\
delete from idempotency_keys
where created_at < $1";

/// Keys are kept for 30 days.
const WINDOW: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub scope: Scope,
    /// Whose keys they are.
    pub space: String,
    pub key: String,
    /// SHA-256 over verb, path and canonical body without the key.
    pub fingerprint: Vec<u8>,
}

impl IdempotencyKey {
    /// Of the keys that a request without one is given, so that a commit of unknown outcome can be looked for.
    pub const OWN_SPACE: &'static str = "request";
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

    /// Nobody else knows it, so nobody asks for its answer again.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.space == Self::OWN_SPACE
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
    /// First use: execute, then [`finish`].
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

pub fn claim(tx: &mut Tx<'_>, key: &IdempotencyKey) -> Result<Claimed, Error> {
    let now = tx.now();
    let mut values = columns(key);
    values.extend([key.fingerprint.as_slice().into(), now.micros().into()]);
    // On PostgreSQL this waits for another holder of the same key to commit or roll back.
    if tx.execute(CLAIM, &values)? == 1 {
        return Ok(Claimed::First);
    }
    let sql = format!("{SELECT}{}", tx.lock_suffix());
    let row = tx.query_one(&sql, &columns(key))?;
    let created_at: i64 = row.get("created_at")?;
    if now.since(Timestamp::from_micros(created_at)) >= WINDOW {
        values.push(created_at.into());
        tx.guarded("idempotency_keys", RENEW, &values)?;
        return Ok(Claimed::First);
    }
    if row.get::<Vec<u8>>("fingerprint")? != key.fingerprint && !domain::planted!(Defect::FingerprintIgnored) {
        return Ok(Claimed::Reused);
    }
    match row.get::<String>("state")?.as_str() {
        "running" => Ok(Claimed::Running),
        _ => finished(&row),
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

/// Stores the answer. Its body is sealed by the caller; without one, nobody can be given it again.
pub fn finish(tx: &mut Tx<'_>, key: &IdempotencyKey, status: i64, sealed: Option<Vec<u8>>) -> Result<(), Error> {
    let mut values = columns(key);
    values.extend([status.into(), sealed.into()]);
    tx.guarded("idempotency_keys", FINISH, &values)
}

/// Frees a key whose request was refused before it did anything.
pub fn release(tx: &mut Tx<'_>, key: &IdempotencyKey) -> Result<(), Error> {
    tx.execute(RELEASE, &columns(key)).map(drop)
}

/// Deletes what is older than the window.
pub fn forget(tx: &mut Tx<'_>) -> Result<u64, Error> {
    let before = tx.now().minus(WINDOW).micros();
    tx.execute(FORGET, &[before.into()])
}

fn columns(key: &IdempotencyKey) -> Vec<Value> {
    vec![
        key.scope.organization.to_string().into(),
        if domain::planted!(Defect::KeysOfAllModes) { "test".into() } else { key.scope.mode.as_str().into() },
        key.space.as_str().into(),
        key.key.as_str().into(),
    ]
}
