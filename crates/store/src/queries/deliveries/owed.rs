//! Whose endpoints are owed something.

use domain::organization::Organization;
use domain::webhook::WebhookEndpoint;
use domain::{Id, Mode};

use crate::error::Error;
use crate::queries::{read_id, unless_damaged};
use crate::sql::Row;
use crate::tx::Tx;

/// Every endpoint of a mode that is owed something: as [`super::OWED`], with one more step for each.
const OWED_IN: &str = "\
with recursive owed (endpoint_id) as (
    select (select first.endpoint_id
        from webhook_deliveries as first
        where first.status = 'pending'
        order by first.endpoint_id
        limit 1)
    union all
    select (select more.endpoint_id
        from webhook_deliveries as more
        where more.status = 'pending' and more.endpoint_id > owed.endpoint_id
        order by more.endpoint_id
        limit 1)
    from owed
    where owed.endpoint_id is not null)
select owed.endpoint_id, (select first.organization_id
    from webhook_deliveries as first
    where first.status = 'pending' and first.endpoint_id = owed.endpoint_id
    order by first.next_retry_at
    limit 1) as organization_id
from owed
where (select first.mode
    from webhook_deliveries as first
    where first.status = 'pending' and first.endpoint_id = owed.endpoint_id
    order by first.next_retry_at
    limit 1) = $1
order by owed.endpoint_id";

/// One that is owed something, and whose it is.
pub type Owed = (Id<WebhookEndpoint>, Id<Organization>);

/// The endpoints of a mode that are owed something, due or not.
pub fn owed_in(tx: &mut Tx<'_>, mode: Mode) -> Result<Vec<Owed>, Error> {
    let owed = |row: &Row| {
        let organization = row.get::<String>("organization_id")?;
        Ok((read_id(&row.get::<String>("endpoint_id")?)?, read_id(&organization)?))
    };
    let rows = tx.query(OWED_IN, &[mode.as_str().into()])?;
    let mut all = Vec::new();
    for row in &rows {
        all.extend(unless_damaged(owed(row), "what is owed to an endpoint")?);
    }
    Ok(all)
}
