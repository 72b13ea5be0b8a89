use domain::customer::{Customer, email_key};
use domain::{Id, Scope};

use super::Entity;
use crate::sql::Value;

impl Entity for Customer {
    type Id = Id<Customer>;

    const TABLE: &'static str = "customers";
    const INSERT: &'static str = "\
insert into customers (organization_id, mode, id, version, doc, email_key, phone, deleted_at, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    const UPDATE: &'static str = "\
update customers
set version = $4, doc = $5, email_key = $6, phone = $7, deleted_at = $8, created_at = $9, updated_at = $10
where organization_id = $1 and mode = $2 and id = $3 and version = $11";
    const SELECT: &'static str = "\
select version, doc
from customers
where organization_id = $1 and mode = $2 and id = $3 and deleted_at is null";

    fn id(&self) -> Id<Customer> {
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
        vec![
            self.contact.email().map(email_key).into(),
            self.contact.phone().map(|phone| phone.as_str()).into(),
            self.deleted_at.map(|at| at.micros()).into(),
            self.created_at.micros().into(),
            self.updated_at.micros().into(),
        ]
    }
}
