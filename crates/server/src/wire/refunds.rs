//! The refund as the API, its events and lists show it.

use domain::refund::Refund;
use serde::Serialize;
use utoipa::ToSchema;

use super::words;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Refund)]
pub struct RefundView {
    #[schema(value_type = words::RefundId)]
    pub id: String,
    #[schema(value_type = words::TransactionId)]
    pub transaction_id: String,
    #[schema(value_type = words::Amount)]
    pub amount: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    pub reason: Option<String>,
    #[schema(value_type = words::RefundStatus)]
    pub status: String,
    #[schema(value_type = words::Time)]
    pub created_at: String,
    #[schema(value_type = words::Time)]
    pub updated_at: String,
}

impl RefundView {
    pub fn of(refund: &Refund) -> Self {
        Self {
            id: refund.id.to_string(),
            transaction_id: refund.transaction.to_string(),
            amount: refund.amount.to_string(),
            currency: refund.amount.currency.code().into(),
            reason: refund.reason.clone(),
            status: refund.status().as_str().into(),
            created_at: refund.created_at.to_text(),
            updated_at: refund.updated_at.to_text(),
        }
    }
}
