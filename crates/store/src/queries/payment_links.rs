//! Lists of payment links, and the attempts that hold a use of one.

use domain::payment_link::{PaymentLink, Status};
use domain::{Id, Scope};

use super::{Filter, Page, PageRequest};
use crate::entity::key;
use crate::error::Error;
use crate::tx::Tx;

const OPEN_ATTEMPTS: &str = "\
select count(*) as attempts
from transactions
where organization_id = $1 and mode = $2 and object_id = $3 and status in ('pending', 'processing')
    and (status = 'processing' or expires_at is null or expires_at > $4)";

pub fn list(
    tx: &mut Tx<'_>,
    scope: Scope,
    status: Option<Status>,
    page: &PageRequest,
) -> Result<Page<PaymentLink>, Error> {
    let now = tx.now();
    let mut conditions = Filter::within(scope);
    // The clock decides what is expired, whether or not the timer ran.
    match status {
        None => conditions.and("status <> 'deleted'", []),
        Some(Status::Active) => {
            let active = "status = 'active' and (expiration_at is null or expiration_at > {})";
            conditions.ends_by_clock(active, "expiration_at", now);
        }
        Some(Status::Inactive) => {
            let inactive = "status in ('active', 'inactive') and (status = 'inactive' or expiration_at <= {})";
            conditions.begins_by_clock(inactive, now);
        }
        Some(Status::Deleted) => conditions.and("status = 'deleted'", []),
    }
    conditions.entities(tx, page)
}

/// How many attempts to pay a link have no outcome yet, by the clock: who waits for a payer whose time ran out has expired, whether
/// or not the timer ran. Exact while the link's row is locked, because an attempt begins under that lock.
pub fn open_attempts(tx: &mut Tx<'_>, scope: Scope, id: Id<PaymentLink>) -> Result<i64, Error> {
    let [organization, mode, id] = key(scope, &id.to_string());
    let now = tx.now_us().into();
    tx.query_one(OPEN_ATTEMPTS, &[organization, mode, id, now])?.get("attempts")
}
