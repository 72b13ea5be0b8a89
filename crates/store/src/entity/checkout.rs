use domain::checkout::Checkout;
use domain::{Id, Scope};

use super::Entity;
use crate::sql::Value;

impl Entity for Checkout {
    type Id = Id<Checkout>;

    const TABLE: &'static str = "checkouts";
    const INSERT: &'static str = "\
insert into checkouts (organization_id, mode, id, version, doc, status, amount_minor, currency, customer_id, reference,
    deadline_at, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    const UPDATE: &'static str = "\
update checkouts
set version = $4, doc = $5, status = $6, amount_minor = $7, currency = $8, customer_id = $9, reference = $10,
    deadline_at = $11, created_at = $12, updated_at = $13
where organization_id = $1 and mode = $2 and id = $3 and version = $14";
    const SELECT: &'static str = "\
select version, doc
from checkouts
where organization_id = $1 and mode = $2 and id = $3";

    fn id(&self) -> Id<Checkout> {
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
            self.order.amount.minor.into(),
            self.order.amount.currency.code().into(),
            self.order.customer.id.map(|id| id.to_string()).into(),
            self.order.reference.clone().into(),
            self.next_deadline().micros().into(),
            self.created_at.micros().into(),
            self.updated_at.micros().into(),
        ]
    }
}
