//! The installation's token-signing keys.

use domain::Timestamp;
use domain::signing_key::SigningKey;

use crate::error::Error;
use crate::sql::Row;
use crate::tx::Tx;

const INSERT: &str = "\
insert into signing_keys (kid, wrapped, created_at, active_from, retired_at)
values ($1, $2, $3, $4, null)";

const ALL: &str = "\
select kid, wrapped, created_at, active_from, retired_at
from signing_keys
order by created_at, kid";

const RETIRE: &str = "\
update signing_keys
set retired_at = $2
where kid = $1 and (retired_at is null or retired_at > $2)";

const SIGN_FROM: &str = "\
update signing_keys
set active_from = $2
where kid = $1";

pub fn insert(tx: &mut Tx<'_>, key: &SigningKey) -> Result<(), Error> {
    let values = [
        key.kid.as_str().into(),
        key.wrapped.as_str().into(),
        key.created_at.micros().into(),
        key.active_from.micros().into(),
    ];
    tx.append("signing_keys", INSERT, &values)
}

/// Oldest first.
pub fn all(tx: &mut Tx<'_>) -> Result<Vec<SigningKey>, Error> {
    tx.query(ALL, &[])?.iter().map(read).collect()
}

/// The key signs from `at` on, and not when it was said first.
pub fn sign_from(tx: &mut Tx<'_>, kid: &str, at: Timestamp) -> Result<(), Error> {
    tx.execute(SIGN_FROM, &[kid.into(), at.micros().into()]).map(drop)
}

/// The key signs no more from `at` on, or from earlier on if that was said.
pub fn retire(tx: &mut Tx<'_>, kid: &str, at: Timestamp) -> Result<(), Error> {
    tx.execute(RETIRE, &[kid.into(), at.micros().into()]).map(drop)
}

fn read(row: &Row) -> Result<SigningKey, Error> {
    Ok(SigningKey {
        kid: row.get("kid")?,
        wrapped: row.get("wrapped")?,
        created_at: row.get("created_at")?,
        active_from: row.get("active_from")?,
        retired_at: row.get("retired_at")?,
    })
}
