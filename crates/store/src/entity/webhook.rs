use domain::webhook::WebhookEndpoint;
use domain::{Id, Scope};

use super::Entity;
use crate::sql::Value;

impl Entity for WebhookEndpoint {
    type Id = Id<WebhookEndpoint>;

    const TABLE: &'static str = "webhook_endpoints";
    const INSERT: &'static str = "\
insert into webhook_endpoints (organization_id, mode, id, version, doc, status, created_at)
values ($1, $2, $3, $4, $5, $6, $7)";
    const UPDATE: &'static str = "\
update webhook_endpoints
set version = $4, doc = $5, status = $6, created_at = $7
where organization_id = $1 and mode = $2 and id = $3 and version = $8";
    const SELECT: &'static str = "\
select version, doc
from webhook_endpoints
where organization_id = $1 and mode = $2 and id = $3";

    fn id(&self) -> Id<WebhookEndpoint> {
        self.id
    }
    fn scope(&self) -> Scope {
        self.scope
    }
    fn version(&self) -> i64 {
        self.version
    }
    fn set_version(&mut self, version: i64) {
        self.version = version;
    }
    fn columns(&self) -> Vec<Value> {
        vec![self.status.as_str().into(), self.created_at.micros().into()]
    }
}
