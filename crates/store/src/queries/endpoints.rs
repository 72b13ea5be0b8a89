//! Webhook endpoints of one organization and mode.

use domain::Scope;
use domain::webhook::WebhookEndpoint;

use super::{Filter, Page, PageRequest};
use crate::entity::{key, parse};
use crate::error::Error;
use crate::tx::Tx;

const SELECT_ACTIVE: &str = "\
select version, doc
from webhook_endpoints
where organization_id = $1 and mode = $2 and status = $3
order by id";

const DELETE: &str = "\
delete from webhook_endpoints
where organization_id = $1 and mode = $2 and id = $3";

const GIVE_UP_OPEN: &str = "\
update webhook_deliveries
set status = 'failed', next_retry_at = null, updated_at = $4
where organization_id = $1 and mode = $2 and endpoint_id = $3 and status = 'pending'";

pub fn active(tx: &mut Tx<'_>, scope: Scope) -> Result<Vec<WebhookEndpoint>, Error> {
    tx.query(SELECT_ACTIVE, &key(scope, "active"))?.iter().map(parse).collect()
}

pub fn list(tx: &mut Tx<'_>, scope: Scope, page: &PageRequest) -> Result<Page<WebhookEndpoint>, Error> {
    Filter::within(scope).entities(tx, page)
}

/// Removes the endpoint; what it was still owed is given up.
pub fn delete(tx: &mut Tx<'_>, endpoint: &WebhookEndpoint) -> Result<(), Error> {
    let key = key(endpoint.scope, &endpoint.id.to_string());
    give_up_open(tx, endpoint)?;
    tx.guarded("webhook_endpoints", DELETE, &key)
}

/// Nothing more is sent to it: contract §4.16, endpoint inactive or deleted.
pub fn give_up_open(tx: &mut Tx<'_>, endpoint: &WebhookEndpoint) -> Result<u64, Error> {
    let [organization, mode, id] = key(endpoint.scope, &endpoint.id.to_string());
    let now = tx.now().micros().into();
    tx.execute(GIVE_UP_OPEN, &[organization, mode, id, now])
}
