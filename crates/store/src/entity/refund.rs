use domain::payment::Step;
use domain::refund::Refund;
use domain::{Id, Scope};

use super::{Entity, NEEDS_A_PERSON};
use crate::sql::Value;

impl Entity for Refund {
    type Id = Id<Refund>;

    const TABLE: &'static str = "refunds";
    const INSERT: &'static str = "\
insert into refunds (organization_id, mode, id, version, doc, transaction_id, status, step, attention, amount_minor,
    currency, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    const UPDATE: &'static str = "\
update refunds
set version = $4, doc = $5, transaction_id = $6, status = $7, step = $8, attention = $9, amount_minor = $10,
    currency = $11, created_at = $12, updated_at = $13
where organization_id = $1 and mode = $2 and id = $3 and version = $14";
    const SELECT: &'static str = "\
select version, doc
from refunds
where organization_id = $1 and mode = $2 and id = $3";

    fn id(&self) -> Id<Refund> {
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
        let needs_a_person = self.step() == Step::Unknown || self.parked.is_some();
        vec![
            self.transaction.to_string().into(),
            self.status().as_str().into(),
            self.step().as_str().into(),
            if needs_a_person { NEEDS_A_PERSON } else { 0 }.into(),
            self.amount.minor.into(),
            self.amount.currency.code().into(),
            self.created_at.micros().into(),
            self.updated_at.micros().into(),
        ]
    }
}
