use domain::payment::Transaction;
use domain::simulator::SimulatedPayment;
use domain::{Id, Scope};

use super::Entity;
use crate::sql::Value;

impl Entity for SimulatedPayment {
    type Id = Id<Transaction>;

    const TABLE: &'static str = "simulated_payments";
    const INSERT: &'static str = "\
insert into simulated_payments (organization_id, mode, transaction_id, version, doc, token_digest, created_at)
values ($1, $2, $3, $4, $5, $6, $7)";
    const UPDATE: &'static str = "\
update simulated_payments
set version = $4, doc = $5, token_digest = $6, created_at = $7
where organization_id = $1 and mode = $2 and transaction_id = $3 and version = $8";
    const SELECT: &'static str = "\
select version, doc
from simulated_payments
where organization_id = $1 and mode = $2 and transaction_id = $3";

    fn id(&self) -> Id<Transaction> {
        self.transaction
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
        vec![self.token_digest.as_str().into(), self.created_at.micros().into()]
    }
}
