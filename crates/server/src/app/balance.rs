//! The merchant's balance, as the ledger has it (contract §2.9).

use domain::ledger::Account;
use domain::{Currency, Scope, Sum, Timestamp};
use store::Tx;
use store::queries::balances;

use super::{ledger, organization_of, refunds};
use crate::error::Failure;
use crate::wire::balance::BalanceView;

/// In dalasi: what can be paid out, and what is paid and still in the settlement delay.
pub fn look_up_balance(tx: &mut Tx<'_>, scope: Scope) -> Result<BalanceView, Failure> {
    let organization = organization_of(tx, scope)?;
    let currency = Currency::gmd();
    let Balance { total, recent } = of(tx, scope, currency, refunds::settled_until(&organization, tx.now()))?;
    let available = Sum::new(total.minor - recent.minor, currency);
    Ok(BalanceView::of(available, recent))
}

/// What a merchant has in one currency.
#[derive(Debug, Clone, Copy)]
pub struct Balance {
    pub total: Sum,
    /// Of that, what was paid lately.
    pub recent: Sum,
}

/// With what was paid after `settled` apart. Nothing but the entries since the last sealed batch is added up, and since then.
pub fn of(tx: &mut Tx<'_>, scope: Scope, currency: Currency, settled: Timestamp) -> Result<Balance, Failure> {
    // Before the recent part: a payment between the two looks then makes less available, never more.
    let (debits, credits) = ledger::account(tx, scope, &Account::Merchant, currency)?;
    let recent = balances::paid_since(tx, scope, currency, settled)?;
    Ok(Balance { total: Sum::new(credits - debits, currency), recent })
}
