use domain::payment::Transaction;
use domain::refund::Refund;
use domain::simulator::{SimulatedPayment, SimulatedRefund};
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

impl Entity for SimulatedRefund {
    type Id = Id<Refund>;

    const TABLE: &'static str = "simulated_refunds";
    const INSERT: &'static str = "\
insert into simulated_refunds (organization_id, mode, refund_id, version, doc, transaction_id, paid_back_minor, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)";
    const UPDATE: &'static str = "\
update simulated_refunds
set version = $4, doc = $5, transaction_id = $6, paid_back_minor = $7, created_at = $8
where organization_id = $1 and mode = $2 and refund_id = $3 and version = $9";
    const SELECT: &'static str = "\
select version, doc
from simulated_refunds
where organization_id = $1 and mode = $2 and refund_id = $3";

    fn id(&self) -> Id<Refund> {
        self.refund
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
            self.transaction.to_string().into(),
            if self.paid_back { self.amount.minor } else { 0 }.into(),
            self.created_at.micros().into(),
        ]
    }
}
