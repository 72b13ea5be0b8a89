//! Postings: appended, never changed.

use domain::ledger::Entry;
use domain::payment::Transaction;
use domain::{Id, Scope, Timestamp};

use crate::entity::key;
use crate::error::Error;
use crate::tx::Tx;

const INSERT: &str = "\
insert into ledger_postings (organization_id, mode, entry_id, line, transaction_id, account, currency, amount_minor,
    created_at, refund_id)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

const INSERT_UNSEALED: &str = "\
insert into ledger_unsealed (organization_id, mode, entry_id)
values ($1, $2, $3)";

const COUNT_OF_TRANSACTION: &str = "\
select count(*) as postings
from ledger_postings
where organization_id = $1 and mode = $2 and transaction_id = $3";

/// Made `at` the time of the entry's id.
pub fn append(tx: &mut Tx<'_>, scope: Scope, entry: &Entry, at: Timestamp) -> Result<(), Error> {
    for (line, posting) in (1_i64..).zip(entry.postings()) {
        let mut values = Vec::from(key(scope, &entry.id.to_string()));
        values.extend([
            line.into(),
            entry.transaction.to_string().into(),
            posting.account.to_string().into(),
            entry.currency.code().into(),
            posting.amount_minor.into(),
            at.micros().into(),
            entry.refund.map(|refund| refund.to_string()).into(),
        ]);
        tx.append("ledger_postings", INSERT, &values)?;
    }
    tx.append("ledger_unsealed", INSERT_UNSEALED, &key(scope, &entry.id.to_string()))
}

/// How many postings a transaction has.
pub fn postings_of(tx: &mut Tx<'_>, scope: Scope, transaction: Id<Transaction>) -> Result<i64, Error> {
    tx.query_one(COUNT_OF_TRANSACTION, &key(scope, &transaction.to_string()))?.get("postings")
}
