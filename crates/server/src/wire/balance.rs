//! What a merchant can pay out.

use domain::Sum;
use serde::Serialize;
use utoipa::ToSchema;

use super::words;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Balance)]
pub struct BalanceView {
    /// Below zero where more was refunded than was there.
    #[schema(value_type = words::SignedAmount)]
    pub available_balance: String,
    /// Paid, and not available before the settlement delay is over.
    #[schema(value_type = words::Amount)]
    pub pending_balance: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
}

impl BalanceView {
    pub fn of(available: Sum, pending: Sum) -> Self {
        Self {
            available_balance: available.to_string(),
            pending_balance: pending.to_string(),
            currency: available.currency.code().into(),
        }
    }
}
