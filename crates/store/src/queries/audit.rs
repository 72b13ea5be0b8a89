//! What operators did by hand. Rows are added, never changed.

use domain::audit::AuditRecord;
use domain::{Scope, Timestamp};

use crate::error::Error;
use crate::tx::Tx;

const INSERT: &str = "\
insert into audit_log (organization_id, mode, id, action, object_id, actor, reason, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)";

const NEWEST: &str = "\
select created_at
from audit_log
where organization_id = $1 and mode = $2
order by id desc
limit 1";

/// When something was last done by hand.
pub fn newest_at(tx: &mut Tx<'_>, scope: Scope) -> Result<Option<Timestamp>, Error> {
    let values = [scope.organization.to_string().into(), scope.mode.as_str().into()];
    let newest = tx.query_opt(NEWEST, &values)?;
    newest.map(|row| row.get("created_at")).transpose()
}

pub fn append(tx: &mut Tx<'_>, record: &AuditRecord) -> Result<(), Error> {
    let values = [
        record.scope.organization.to_string().into(),
        record.scope.mode.as_str().into(),
        record.id.to_string().into(),
        record.action.as_str().into(),
        record.object_id.as_str().into(),
        record.actor.as_str().into(),
        record.reason.clone().into(),
        record.created_at.micros().into(),
    ];
    tx.append("audit_log", INSERT, &values)
}
