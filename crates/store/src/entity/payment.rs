use std::collections::BTreeMap;

use domain::payment::{PaymentSession, Source, Step, Transaction};
use domain::{Id, Scope};
use serde::de::IgnoredAny;

use super::Entity;
use crate::sql::Value;

impl Entity for PaymentSession {
    type Id = Id<PaymentSession>;

    const TABLE: &'static str = "payment_sessions";
    const INSERT: &'static str = "\
insert into payment_sessions (organization_id, mode, id, version, doc, status, object_type, object_id, amount_minor,
    currency, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    const UPDATE: &'static str = "\
update payment_sessions
set version = $4, doc = $5, status = $6, object_type = $7, object_id = $8, amount_minor = $9, currency = $10,
    created_at = $11, updated_at = $12
where organization_id = $1 and mode = $2 and id = $3 and version = $13";
    const SELECT: &'static str = "\
select version, doc
from payment_sessions
where organization_id = $1 and mode = $2 and id = $3";

    fn id(&self) -> Id<PaymentSession> {
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
        Some(self.payable.object_id())
    }
    fn columns(&self) -> Vec<Value> {
        vec![
            self.status().as_str().into(),
            self.payable.kind().into(),
            self.payable.object_id().into(),
            self.amount.minor.into(),
            self.amount.currency.code().into(),
            self.created_at.micros().into(),
            self.updated_at.micros().into(),
        ]
    }
}

/// What the column `attention` says.
pub const NEEDS_A_PERSON: i64 = 1;
pub const CAME_TWICE: i64 = 2;

impl Entity for Transaction {
    type Id = Id<Transaction>;

    const TABLE: &'static str = "transactions";
    const INSERT: &'static str = "\
insert into transactions (organization_id, mode, id, version, doc, status, step, attention, payment_session_id,
    object_type, object_id, payment_method, rail, rail_reference, amount_minor, fee_minor, currency, created_at, updated_at,
    refunded_minor, refunding_minor, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)";
    const UPDATE: &'static str = "\
update transactions
set version = $4, doc = $5, status = $6, step = $7, attention = $8, payment_session_id = $9, object_type = $10,
    object_id = $11, payment_method = $12, rail = $13, rail_reference = $14, amount_minor = $15, fee_minor = $16,
    currency = $17, created_at = $18, updated_at = $19, refunded_minor = $20, refunding_minor = $21,
    expires_at = $22
where organization_id = $1 and mode = $2 and id = $3 and version = $23";
    const SELECT: &'static str = "\
select version, doc
from transactions
where organization_id = $1 and mode = $2 and id = $3";

    fn id(&self) -> Id<Transaction> {
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
        Some(self.payable.object_id())
    }
    fn adds_up(&self) -> bool {
        Transaction::adds_up(self)
    }
    fn columns(&self) -> Vec<Value> {
        let attention = match (self.step(), self.duplicate) {
            (_, true) => CAME_TWICE,
            (Step::Unknown, false) => NEEDS_A_PERSON,
            // The rail took its word back, and what it said before is still to be looked at.
            (Step::Settled, false) if is_left_parked(self) => NEEDS_A_PERSON,
            (Step::Sending | Step::Waiting | Step::Settled, false) => 0,
        };
        let attempt = match &self.source {
            Source::Provider(attempt) => Some(attempt),
            Source::Manual(_) => None,
        };
        vec![
            self.status().as_str().into(),
            self.step().as_str().into(),
            attention.into(),
            attempt.map(|attempt| attempt.session.to_string()).into(),
            self.payable.kind().into(),
            self.payable.object_id().into(),
            self.method().as_str().into(),
            attempt.map(|attempt| attempt.rail.as_str()).into(),
            self.rail_reference.clone().into(),
            self.amount.minor.into(),
            self.fee().minor.into(),
            self.amount.currency.code().into(),
            self.created_at.micros().into(),
            self.updated_at.micros().into(),
            self.refunded().minor.into(),
            self.refunding().minor.into(),
            self.expires_at().map(|at| at.micros()).into(),
        ]
    }

    /// Whoever knows nothing of the column writes no such field; its next save by this version sets both right.
    fn is_of_before(&self, document: &str, column: &str, found: &Value) -> bool {
        // What had failed was left aside.
        if column == "attention" {
            return is_left_parked(self) && *found == Value::from(0_i64);
        }
        let fields: Result<BTreeMap<String, IgnoredAny>, _> = serde_json::from_str(document);
        if fields.is_ok_and(|fields| fields.contains_key("expires_at")) {
            return false;
        }
        match column {
            "expires_at" => true,
            // Of what came twice the agreed fee was kept.
            "fee_minor" => self.duplicate && *found == self.agreed_fee().minor.into(),
            _ => false,
        }
    }
}

/// It failed after the rail had said something else, and no person has decided yet.
fn is_left_parked(transaction: &Transaction) -> bool {
    transaction.step() == Step::Settled && transaction.parked.is_some() && !transaction.status().is_paid()
}
