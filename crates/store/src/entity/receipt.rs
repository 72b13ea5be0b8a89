use domain::receipt::Receipt;
use domain::{Id, Scope};

use super::Entity;
use crate::sql::Value;

impl Entity for Receipt {
    type Id = Id<Receipt>;

    const TABLE: &'static str = "receipts";
    const INSERT: &'static str = "\
insert into receipts (organization_id, mode, id, version, doc, number, validation_code, invoice_id, transaction_id,
    currency, amount_minor, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    const UPDATE: &'static str = "\
update receipts
set version = $4, doc = $5, number = $6, validation_code = $7, invoice_id = $8, transaction_id = $9, currency = $10,
    amount_minor = $11, created_at = $12, updated_at = $13
where organization_id = $1 and mode = $2 and id = $3 and version = $14";
    const SELECT: &'static str = "\
select version, doc
from receipts
where organization_id = $1 and mode = $2 and id = $3";

    fn id(&self) -> Id<Receipt> {
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
            self.number.as_str().into(),
            self.validation_code.as_str().into(),
            self.invoice.to_string().into(),
            self.transaction.to_string().into(),
            self.amount.currency.code().into(),
            self.amount.minor.into(),
            self.created_at.micros().into(),
            self.updated_at.micros().into(),
        ]
    }
}
