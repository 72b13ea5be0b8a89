use domain::product::Product;
use domain::{Id, Scope};

use super::Entity;
use crate::sql::Value;

impl Entity for Product {
    type Id = Id<Product>;

    const TABLE: &'static str = "products";
    const INSERT: &'static str = "\
insert into products (organization_id, mode, id, version, doc, price_minor, currency, active, deleted_at, created_at,
    updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    const UPDATE: &'static str = "\
update products
set version = $4, doc = $5, price_minor = $6, currency = $7, active = $8, deleted_at = $9, created_at = $10,
    updated_at = $11
where organization_id = $1 and mode = $2 and id = $3 and version = $12";
    const SELECT: &'static str = "\
select version, doc
from products
where organization_id = $1 and mode = $2 and id = $3 and deleted_at is null";

    fn id(&self) -> Id<Product> {
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
            self.price.minor.into(),
            self.price.currency.code().into(),
            self.active.into(),
            self.deleted_at.map(|at| at.micros()).into(),
            self.created_at.micros().into(),
            self.updated_at.micros().into(),
        ]
    }
}
