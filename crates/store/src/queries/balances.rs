//! What was paid lately of a merchant's balance, and the row that every debit of it locks. The whole of it is what
//! [`super::ledger_batches`] has.

use domain::{Currency, Scope, Sum, Timestamp};

use super::{explained, sum_of};
use crate::entity::key;
use crate::error::Error;
use crate::sql::Value;
use crate::tx::Tx;

const MAKE_GUARD: &str = "\
insert into balance_guards (organization_id, mode, currency, debits)
values ($1, $2, $3, 0)
on conflict do nothing";

const LOCK_GUARD: &str = "\
select debits
from balance_guards
where organization_id = $1 and mode = $2 and currency = $3";

const COUNT_DEBIT: &str = "\
update balance_guards
set debits = debits + 1
where organization_id = $1 and mode = $2 and currency = $3";

/// Of payments alone: what a refund releases was available before. All that it reads stands in `ledger_postings_of_merchant`.
const RECENT_CREDITS: &str = "\
select cast(coalesce(sum(amount_minor >> 32), 0) as bigint) as total_high,
    cast(coalesce(sum(amount_minor & 4294967295), 0) as bigint) as total_low
from ledger_postings
where organization_id = $1 and mode = $2 and currency = $3 and account = 'merchant' and created_at > $4
    and amount_minor < 0 and refund_id is null";

const GUARDS: &str = "\
select currency, debits
from balance_guards
where organization_id = $1 and mode = $2
order by currency";

/// Keeps every other debit of this balance waiting until the end of this transaction.
pub fn lock(tx: &mut Tx<'_>, scope: Scope, currency: Currency) -> Result<(), Error> {
    let key = key(scope, currency.code());
    tx.execute(MAKE_GUARD, &key)?;
    let sql = format!("{LOCK_GUARD}{}", tx.lock_suffix());
    tx.query_one(&sql, &key)?;
    tx.guarded("balance_guards", COUNT_DEBIT, &key)
}

/// What the merchant was paid after `settled`.
pub fn paid_since(tx: &mut Tx<'_>, scope: Scope, currency: Currency, settled: Timestamp) -> Result<Sum, Error> {
    let row = tx.query_one(RECENT_CREDITS, &recent(scope, currency, settled))?;
    // Credits are negative in the ledger, and what a merchant has is what is owed to them.
    Ok(Sum::new(-sum_of(&row, "total_high", "total_low")?, currency))
}

fn recent(scope: Scope, currency: Currency, settled: Timestamp) -> [Value; 4] {
    let [organization, mode, code] = key(scope, currency.code());
    [organization, mode, code, settled.micros().into()]
}

/// How the database would go about [`paid_since`], for whoever checks that it reads no posting.
pub fn plan_of_recent(tx: &mut Tx<'_>, scope: Scope, currency: Currency, settled: Timestamp) -> Result<String, Error> {
    explained(tx, RECENT_CREDITS, &recent(scope, currency, settled))
}

/// Currency and number of debits of each guard.
pub fn guards(tx: &mut Tx<'_>, scope: Scope) -> Result<Vec<(String, i64)>, Error> {
    let [organization, mode, _] = key(scope, "");
    let rows = tx.query(GUARDS, &[organization, mode])?;
    rows.iter().map(|row| Ok((row.get("currency")?, row.get("debits")?))).collect()
}
