//! The merchant's balance, as the ledger has it (contract §2.9).

use domain::organization::Organization;
use domain::{Currency, Scope, Sum};
use store::Tx;
use store::queries::balances;

use super::{look_up, refunds};
use crate::error::Failure;
use crate::wire::balance::BalanceView;

/// In dalasi: what can be paid out, and what is paid and still in the settlement delay.
pub fn look_up_balance(tx: &mut Tx<'_>, scope: Scope) -> Result<BalanceView, Failure> {
    let organization = look_up::<Organization>(tx, scope, scope.organization)?;
    let currency = Currency::gmd();
    let (total, pending) = balances::of(tx, scope, currency, refunds::settled_until(&organization, tx.now()))?;
    let available = Sum::new(total.minor - pending.minor, currency);
    Ok(BalanceView::of(available, pending))
}
