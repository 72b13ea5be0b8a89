//! The transaction as the API shows it: one attempt to pay, with everything that became of it.

use domain::Method;
use domain::payment::{Source, Transaction, TransactionStatus};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::words;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Transaction)]
pub struct TransactionView {
    #[schema(value_type = words::TransactionId)]
    pub id: String,
    #[schema(value_type = Option<words::SessionId>)]
    pub payment_session_id: Option<String>,
    #[schema(value_type = words::Payable)]
    pub object_type: String,
    #[schema(value_type = words::PayableId)]
    pub object_id: String,
    #[schema(value_type = words::OrganizationId)]
    pub organization_id: String,
    #[schema(value_type = Option<words::CustomerId>)]
    pub customer_id: Option<String>,
    #[schema(value_type = words::Amount)]
    pub amount: String,
    #[schema(value_type = words::Amount)]
    pub fee: String,
    #[schema(value_type = words::Amount)]
    pub net_amount: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    #[schema(value_type = words::TransactionStatus)]
    pub status: String,
    #[schema(value_type = words::AnyMethodName)]
    pub payment_method: String,
    /// The provider's own name of the payment, or yours of one that you recorded.
    pub payment_method_transaction_id: Option<String>,
    pub customer_email: Option<String>,
    #[schema(value_type = Option<words::Phone>)]
    pub customer_phone: Option<String>,
    pub customer_name: Option<String>,
    /// The wallet that pays; null for cards.
    #[schema(value_type = Option<words::Phone>)]
    pub payment_phone: Option<String>,
    /// Null for what was recorded by hand.
    pub payment_details: Option<PaymentDetails>,
    #[schema(value_type = words::ModeName)]
    pub mode: String,
    pub livemode: bool,
    #[schema(value_type = words::Time)]
    pub initiated_at: String,
    #[schema(value_type = Option<words::Time>)]
    pub processing_at: Option<String>,
    #[schema(value_type = Option<words::Time>)]
    pub completed_at: Option<String>,
    #[schema(value_type = Option<words::Time>)]
    pub failed_at: Option<String>,
    /// Of completed refunds.
    #[schema(value_type = words::Amount)]
    pub refunded_amount: String,
    #[schema(value_type = Option<words::FailureReason>)]
    pub failure_reason: Option<String>,
    /// Every move, from the first to the latest.
    pub state_transitions: Vec<TransitionView>,
    /// Always null: a provider's own words are not kept.
    #[schema(value_type = Option<Object>)]
    pub payment_method_response: Option<Box<RawValue>>,
    /// Which attempt to pay its object this was.
    #[schema(minimum = 1)]
    pub attempt_count: i64,
    #[schema(value_type = words::Metadata)]
    pub metadata: Box<RawValue>,
    #[schema(value_type = Option<words::ProcessingType>)]
    pub processing_type: Option<String>,
    #[schema(value_type = Option<words::RecordingSource>)]
    pub recording_source: Option<String>,
    /// Who wrote down a payment that no provider has seen.
    pub recorded_by: Option<String>,
    #[schema(value_type = words::Time)]
    pub created_at: String,
    #[schema(value_type = words::Time)]
    pub updated_at: String,
}

/// What makes a payment unlike others.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PaymentDetails {
    /// Its object had been paid before. Outside the balance, without a fee, refundable.
    pub duplicate: bool,
    /// It came after its object's expiry or cancel.
    pub late: bool,
    /// The provider's answer was lost: whether the money moved is being found out.
    pub outcome_unknown: bool,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = StateTransition)]
pub struct TransitionView {
    #[schema(value_type = words::TransactionStatus)]
    pub status: String,
    #[schema(value_type = words::Time)]
    pub timestamp: String,
}

impl TransactionView {
    pub fn of(transaction: &Transaction) -> Self {
        let reached = |status| transaction.reached(status).map(|at| at.to_text());
        let (attempt, recording) = match &transaction.source {
            Source::Provider(attempt) => (Some(attempt), None),
            Source::Manual(recording) => (None, Some(recording)),
        };
        let reference = recording.map_or(&transaction.rail_reference, |recording| &recording.reference);
        let phone = transaction.payer.phone.as_ref().map(|phone| phone.as_str().to_owned());
        Self {
            id: transaction.id.to_string(),
            payment_session_id: attempt.map(|attempt| attempt.session.to_string()),
            object_type: transaction.payable.kind().into(),
            object_id: transaction.payable.object_id(),
            organization_id: transaction.scope.organization.to_string(),
            customer_id: transaction.payer.customer.map(|id| id.to_string()),
            amount: transaction.amount.to_string(),
            fee: transaction.fee().to_string(),
            net_amount: transaction.net().to_string(),
            currency: transaction.amount.currency.code().into(),
            status: transaction.status().as_str().into(),
            payment_method: transaction.method().as_str().into(),
            payment_method_transaction_id: reference.clone(),
            customer_email: transaction.payer.email.clone(),
            customer_phone: phone.clone(),
            customer_name: transaction.payer.name.clone(),
            payment_phone: phone.filter(|_| attempt.is_some_and(|attempt| attempt.method != Method::Card)),
            payment_details: attempt.map(|_| PaymentDetails {
                duplicate: transaction.duplicate,
                late: transaction.late,
                outcome_unknown: transaction.is_outcome_unknown(),
            }),
            mode: transaction.scope.mode.as_str().into(),
            livemode: transaction.scope.mode.is_live(),
            initiated_at: transaction.created_at.to_text(),
            processing_at: reached(TransactionStatus::Processing),
            completed_at: reached(TransactionStatus::Completed),
            failed_at: reached(TransactionStatus::Failed),
            refunded_amount: transaction.refunded().to_string(),
            failure_reason: transaction.failure_reason.map(|reason| reason.as_str().into()),
            state_transitions: transaction.transitions.iter().map(TransitionView::of).collect(),
            payment_method_response: None,
            attempt_count: transaction.attempt_count,
            metadata: super::raw(&transaction.metadata),
            processing_type: Some(if attempt.is_some() { "online" } else { "offline" }.into()),
            recording_source: Some(if attempt.is_some() { "provider" } else { "manual" }.into()),
            recorded_by: recording.and_then(|recording| recording.recorded_by.clone()),
            created_at: transaction.created_at.to_text(),
            updated_at: transaction.updated_at.to_text(),
        }
    }
}

impl TransitionView {
    fn of(transition: &domain::payment::Transition) -> Self {
        Self { status: transition.status.as_str().into(), timestamp: transition.at.to_text() }
    }
}
