use domain::payment_link::PaymentLink;
use domain::{Id, Scope};

use super::Entity;
use crate::sql::Value;

impl Entity for PaymentLink {
    type Id = Id<PaymentLink>;

    const TABLE: &'static str = "payment_links";
    const INSERT: &'static str = "\
insert into payment_links (organization_id, mode, id, version, doc, status, currency, expiration_at, usage_count, created_at,
    updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    const UPDATE: &'static str = "\
update payment_links
set version = $4, doc = $5, status = $6, currency = $7, expiration_at = $8, usage_count = $9, created_at = $10,
    updated_at = $11
where organization_id = $1 and mode = $2 and id = $3 and version = $12";
    const SELECT: &'static str = "\
select version, doc
from payment_links
where organization_id = $1 and mode = $2 and id = $3";

    fn id(&self) -> Id<PaymentLink> {
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
    fn page(&self) -> Option<String> {
        Some(self.id.to_string())
    }
    fn columns(&self) -> Vec<Value> {
        vec![
            self.stored_status().as_str().into(),
            self.price().currency().code().into(),
            self.terms().expiration_date.map(|at| at.micros()).into(),
            self.usage_count().into(),
            self.created_at.micros().into(),
            self.updated_at.micros().into(),
        ]
    }
}
