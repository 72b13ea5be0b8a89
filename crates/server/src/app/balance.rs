//! The merchant's balance, as the ledger has it (contract §2.9).

use domain::ledger::Account;
use domain::{Currency, Money, Scope, Sum, Timestamp};
use store::Tx;
use store::queries::balances;

use super::{ledger, organization_of, refunds};
use crate::error::Failure;
use crate::wire::balance::BalanceView;

/// In dalasi: what can be paid out, and what is paid and still in the settlement delay.
pub fn look_up_balance(tx: &mut Tx<'_>, scope: Scope) -> Result<BalanceView, Failure> {
    let organization = organization_of(tx, scope)?;
    let currency = Currency::gmd();
    let balance = of(tx, scope, currency, refunds::settled_until(&organization, tx.now()))?;
    Ok(BalanceView::of(balance.available(), balance.recent))
}

/// What a merchant has in one currency.
#[derive(Debug, Clone, Copy)]
pub struct Balance {
    pub total: Sum,
    /// Of that, what was paid lately.
    pub recent: Sum,
    /// All that the merchant was ever credited. It only grows.
    credits: i128,
}

impl Balance {
    pub fn available(&self) -> Sum {
        Sum::new(self.total.minor - self.recent.minor, self.total.currency)
    }
}

/// With what was paid after `settled` apart; `None`: nothing is. Nothing but the entries since the last sealed batch is added up, and
/// since then.
pub fn of(tx: &mut Tx<'_>, scope: Scope, currency: Currency, settled: Option<Timestamp>) -> Result<Balance, Failure> {
    // Before the recent part: a payment between the two looks then makes less available, never more.
    let (debits, credits) = ledger::account(tx, scope, &Account::Merchant, currency)?;
    let recent = match settled {
        Some(settled) => balances::paid_since(tx, scope, currency, settled)?,
        None => Sum::new(0, currency),
    };
    Ok(Balance { total: Sum::new(credits - debits, currency), recent, credits })
}

/// What is available, for whoever holds the balance's guard and looked at it `before` they had it. It may be less than there is only
/// where there is enough all the same: what was paid lately is added up again, while others wait, only where that can matter.
pub fn still_available(
    tx: &mut Tx<'_>,
    scope: Scope,
    before: &Balance,
    settled: Option<Timestamp>,
    required: Money,
) -> Result<Sum, Failure> {
    let currency = required.currency;
    let (debits, credits) = ledger::account(tx, scope, &Account::Merchant, currency)?;
    // What was credited meanwhile doesn't count: it may have been paid just now, and `recent` knows nothing of that.
    let at_least = Sum::new(before.credits - debits - before.recent.minor, currency);
    if credits == before.credits || at_least.minor >= i128::from(required.minor) {
        return Ok(at_least);
    }
    // A refund that failed may have given back what is missing.
    Ok(of(tx, scope, currency, settled)?.available())
}
