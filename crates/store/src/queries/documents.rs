//! Files made of invoices and receipts, and how making them went.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::{Scope, Timestamp};

use crate::error::Error;
use crate::sql::{Row, Value};
use crate::tx::Tx;

/// So long a file is kept for those who ask for it again.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Objects asked for in one statement.
const MOST_ASKED: usize = 200;
/// Files dropped in one transaction.
const MOST_DROPPED: i64 = 500;

const FILE: &str = "\
select file
from documents
where organization_id = $1 and mode = $2 and object_id = $3 and edition = $4 and file is not null";

const STATE: &str = "\
select object_id, status, failures, last_error, generated_at
from documents
where organization_id = $1 and mode = $2 and object_id in ";

const COMPLETED: &str = "\
insert into documents (organization_id, mode, object_id, edition, status, file, failures, last_error, generated_at)
values ($1, $2, $3, $4, 'completed', $5, 0, null, $6)
on conflict (organization_id, mode, object_id) do update
set edition = excluded.edition, status = 'completed', file = excluded.file, last_error = null,
    generated_at = excluded.generated_at
where documents.edition <> excluded.edition or documents.file is null";

const FAILED: &str = "\
insert into documents (organization_id, mode, object_id, edition, status, file, failures, last_error, generated_at)
values ($1, $2, $3, $4, 'failed', null, 1, $5, null)
on conflict (organization_id, mode, object_id) do update
set edition = excluded.edition, status = 'failed', file = null, failures = documents.failures + 1,
    last_error = excluded.last_error
where documents.edition <> excluded.edition or documents.file is null";

/// Behind the object's id, for its file with masks. Nobody asks how making that went: nothing of it stays when it is dropped.
const MASKED: &str = " masked";

const OLD: &str = "\
select organization_id, mode, object_id
from documents
where file is not null and generated_at < $1
order by generated_at
limit $2";

const DROP: &str = "\
update documents
set file = null
where organization_id = $1 and mode = $2 and object_id = $3 and generated_at < $4";

const DELETE: &str = "\
delete from documents
where organization_id = $1 and mode = $2 and object_id = $3 and generated_at < $4";

/// How making an object's file went. Nothing is known of one that nobody tried to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentState {
    /// Why there is none, where the last try failed.
    pub last_error: Option<String>,
    /// How often making it failed, ever.
    pub failures: i64,
    /// When it was made last.
    pub generated_at: Option<Timestamp>,
}

/// By the object's id.
pub type DocumentStates = BTreeMap<String, DocumentState>;

/// As what the file is kept that shows an object to whoever has its address.
pub fn masked(object_id: &str) -> String {
    format!("{object_id}{MASKED}")
}

/// The file of exactly this edition, while it is kept.
pub fn file(tx: &mut Tx<'_>, scope: Scope, object_id: &str, edition: &str) -> Result<Option<Vec<u8>>, Error> {
    let mut values = key(scope, object_id);
    values.push(edition.into());
    tx.query_opt(FILE, &values)?.map(|row| row.get("file")).transpose()
}

pub fn state(tx: &mut Tx<'_>, scope: Scope, object_id: &str) -> Result<Option<DocumentState>, Error> {
    Ok(states(tx, scope, &[object_id.to_owned()])?.remove(object_id))
}

/// Of those of these objects that somebody tried to make.
pub fn states(tx: &mut Tx<'_>, scope: Scope, object_ids: &[String]) -> Result<DocumentStates, Error> {
    let mut states = DocumentStates::new();
    for object_ids in object_ids.chunks(MOST_ASKED) {
        let mut values: Vec<Value> = vec![scope.organization.to_string().into(), scope.mode.as_str().into()];
        values.extend(object_ids.iter().map(Value::from));
        let places: Vec<String> = (3..=values.len()).map(|number| format!("${number}")).collect();
        for row in &tx.query(&format!("{STATE}({})", places.join(", ")), &values)? {
            states.insert(row.get("object_id")?, state_of(row)?);
        }
    }
    Ok(states)
}

fn state_of(row: &Row) -> Result<DocumentState, Error> {
    Ok(DocumentState {
        last_error: row.get("last_error")?,
        failures: row.get("failures")?,
        generated_at: row.get("generated_at")?,
    })
}

/// The same edition may be made twice at once, for a reader and ahead: what came first stays, and when it was made.
pub fn completed(tx: &mut Tx<'_>, scope: Scope, object_id: &str, edition: &str, file: &[u8]) -> Result<(), Error> {
    let mut values = key(scope, object_id);
    values.extend([edition.into(), file.into(), tx.now().micros().into()]);
    tx.execute(COMPLETED, &values).map(drop)
}

/// A file of the same edition stays.
pub fn failed(tx: &mut Tx<'_>, scope: Scope, object_id: &str, edition: &str, why: &str) -> Result<(), Error> {
    let mut values = key(scope, object_id);
    values.extend([edition.into(), why.into()]);
    tx.execute(FAILED, &values).map(drop)
}

/// Drops files that were made long ago; true while there are more. That they were made stays known of those
/// without masks.
pub fn drop_old_files(tx: &mut Tx<'_>) -> Result<bool, Error> {
    let before = tx.now().minus(KEPT).micros();
    let old = tx.query(OLD, &[before.into(), MOST_DROPPED.into()])?;
    for row in &old {
        let (organization, mode, object_id): (String, String, String) =
            (row.get("organization_id")?, row.get("mode")?, row.get("object_id")?);
        let statement = if object_id.ends_with(MASKED) { DELETE } else { DROP };
        tx.execute(statement, &[organization.into(), mode.into(), object_id.into(), before.into()])?;
    }
    Ok(old.len() == usize::try_from(MOST_DROPPED).unwrap_or(usize::MAX))
}

fn key(scope: Scope, object_id: &str) -> Vec<Value> {
    vec![scope.organization.to_string().into(), scope.mode.as_str().into(), object_id.into()]
}
