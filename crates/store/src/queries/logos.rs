//! Merchants' pictures, by the digest of their files.

use domain::Scope;

use crate::error::Error;
use crate::sql::Value;
use crate::tx::Tx;

const ADD: &str = "\
insert into logos (organization_id, mode, digest, file, created_at)
values ($1, $2, $3, $4, $5)
on conflict (organization_id, mode, digest) do nothing";

const FILE: &str = "\
select file
from logos
where organization_id = $1 and mode = $2 and digest = $3";

/// Keeps a picture; one that is there already stays.
pub fn add(tx: &mut Tx<'_>, scope: Scope, digest: &str, file: &[u8]) -> Result<(), Error> {
    let mut values = key(scope, digest);
    values.extend([file.into(), tx.now().micros().into()]);
    tx.execute(ADD, &values).map(drop)
}

pub fn file(tx: &mut Tx<'_>, scope: Scope, digest: &str) -> Result<Option<Vec<u8>>, Error> {
    tx.query_opt(FILE, &key(scope, digest))?.map(|row| row.get("file")).transpose()
}

fn key(scope: Scope, digest: &str) -> Vec<Value> {
    vec![scope.organization.to_string().into(), scope.mode.as_str().into(), digest.into()]
}
