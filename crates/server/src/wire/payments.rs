//! Payment sessions and their status as the API shows them.

use domain::payment::{PaymentSession, SessionStatus, Transaction};
use domain::rail::NextAction;
use serde::Serialize;
use utoipa::ToSchema;

use super::checkouts::SummaryView;
use super::{Addresses, words};

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = PaymentSession)]
pub struct PaymentSessionView {
    #[schema(value_type = words::SessionId)]
    pub id: String,
    /// The same as `id`.
    #[schema(value_type = words::SessionId)]
    pub session_id: String,
    #[schema(value_type = words::Payable)]
    pub object_type: String,
    #[schema(value_type = words::PayableId)]
    pub object_id: String,
    #[schema(value_type = Option<words::MethodName>)]
    pub payment_method: Option<String>,
    #[schema(value_type = words::Amount)]
    pub amount: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    #[schema(value_type = words::SessionStatus)]
    pub status: String,
    pub customer_email: Option<String>,
    #[schema(value_type = Option<words::Phone>)]
    pub customer_phone: Option<String>,
    pub customer_name: Option<String>,
    /// Where to send the payer; null when there is nothing to do there.
    #[schema(value_type = Option<words::Url>)]
    pub payment_url: Option<String>,
    pub provider_session_id: Option<String>,
    #[schema(value_type = Option<words::Time>)]
    pub expires_at: Option<String>,
    pub next_action: Option<NextActionView>,
    #[schema(value_type = Option<words::FailureReason>)]
    pub failure_reason: Option<String>,
    /// The provider's answer was lost: whether the money moved is being found out.
    pub outcome_unknown: bool,
    pub livemode: bool,
    #[schema(value_type = words::Time)]
    pub created_at: String,
    #[schema(value_type = words::Time)]
    pub updated_at: String,
}

/// What the payer does next.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = NextAction)]
pub enum NextActionView {
    Redirect { url: String },
    ApproveOnPhone { instructions: String, poll_after: u32 },
    Otp { length: u8, resend_after: u32, attempts_left: u8 },
    ConfirmDone {},
    DialUssd { code: String },
    ShowQr { data: String },
}

impl From<&NextAction> for NextActionView {
    fn from(action: &NextAction) -> Self {
        match action.clone() {
            NextAction::Redirect { url } => Self::Redirect { url },
            NextAction::ApproveOnPhone { instructions, poll_after_s } => {
                Self::ApproveOnPhone { instructions, poll_after: poll_after_s }
            }
            NextAction::Otp { length, resend_after_s, attempts_left } => {
                Self::Otp { length, resend_after: resend_after_s, attempts_left }
            }
            NextAction::ConfirmDone {} => Self::ConfirmDone {},
            NextAction::DialUssd { code } => Self::DialUssd { code },
            NextAction::ShowQr { data } => Self::ShowQr { data },
        }
    }
}

impl PaymentSessionView {
    pub fn of(session: &PaymentSession, transaction: Option<&Transaction>, addresses: &Addresses) -> Self {
        Self {
            id: session.id.to_string(),
            session_id: session.id.to_string(),
            object_type: session.payable.kind().into(),
            object_id: session.payable.object_id(),
            payment_method: session.method.map(|method| method.as_str().into()),
            amount: session.amount.to_string(),
            currency: session.amount.currency.code().into(),
            status: session.status().as_str().into(),
            customer_email: session.payer.email.clone(),
            customer_phone: session.payer.phone.as_ref().map(|phone| phone.as_str().into()),
            customer_name: session.payer.name.clone(),
            payment_url: payment_url(session, addresses),
            provider_session_id: transaction.and_then(|transaction| transaction.rail_reference.clone()),
            expires_at: Some(session.expires_at.to_text()),
            next_action: session.next_action.as_ref().map(NextActionView::from),
            failure_reason: session.failure_reason.map(|reason| reason.as_str().into()),
            outcome_unknown: session.outcome_unknown,
            livemode: session.scope.mode.is_live(),
            created_at: session.created_at.to_text(),
            updated_at: session.updated_at.to_text(),
        }
    }
}

impl PaymentSessionView {
    /// For whoever has no more than a publishable key.
    #[must_use]
    pub fn without_payer(self) -> Self {
        Self { customer_email: None, customer_phone: None, customer_name: None, ..self }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = PaymentStatus)]
pub struct PaymentStatusView {
    #[schema(value_type = words::SessionId)]
    pub session_id: String,
    #[schema(value_type = words::SessionStatus)]
    pub status: String,
    #[schema(value_type = words::Payable)]
    pub object_type: String,
    #[schema(value_type = words::PayableId)]
    pub object_id: String,
    #[schema(value_type = words::Amount)]
    pub amount: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    #[schema(value_type = Option<words::MethodName>)]
    pub payment_method: Option<String>,
    #[schema(value_type = Option<words::Url>)]
    pub payment_url: Option<String>,
    #[schema(value_type = Option<words::TransactionId>)]
    pub transaction_id: Option<String>,
    pub transaction: Option<SummaryView>,
    #[schema(value_type = Option<words::FailureReason>)]
    pub failure_reason: Option<String>,
    pub livemode: bool,
}

impl PaymentStatusView {
    pub fn of(session: &PaymentSession, transaction: Option<&Transaction>, addresses: &Addresses) -> Self {
        Self {
            session_id: session.id.to_string(),
            status: session.status().as_str().into(),
            object_type: session.payable.kind().into(),
            object_id: session.payable.object_id(),
            amount: session.amount.to_string(),
            currency: session.amount.currency.code().into(),
            payment_method: session.method.map(|method| method.as_str().into()),
            payment_url: payment_url(session, addresses),
            transaction_id: session.transaction.map(|id| id.to_string()),
            transaction: transaction.map(|transaction| SummaryView::from(&transaction.summary())),
            failure_reason: session.failure_reason.map(|reason| reason.as_str().into()),
            livemode: session.scope.mode.is_live(),
        }
    }
}

/// The rail's page where the payer goes on there; our page while there is something to do here.
fn payment_url(session: &PaymentSession, addresses: &Addresses) -> Option<String> {
    match session.status() {
        SessionStatus::Pending | SessionStatus::Processing => {}
        SessionStatus::Succeeded | SessionStatus::Failed | SessionStatus::Cancelled => return None,
    }
    match &session.next_action {
        Some(NextAction::Redirect { url }) => Some(url.clone()),
        Some(_) | None => Some(addresses.payment_page(session.payable, session.id)),
    }
}

/// What an event about a payment names beside the paid object.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PaymentNames {
    #[schema(value_type = words::TransactionId)]
    pub transaction_id: String,
    #[schema(value_type = words::Payable)]
    pub object_type: String,
    #[schema(value_type = words::PayableId)]
    pub object_id: String,
    #[schema(value_type = words::MethodName)]
    pub payment_method: String,
    /// The money came after the object's expiry or cancel.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The object had been paid before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
    #[schema(value_type = Option<words::FailureReason>)]
    pub failure_reason: Option<String>,
}

impl PaymentNames {
    pub fn of(transaction: &Transaction) -> Self {
        Self {
            transaction_id: transaction.id.to_string(),
            object_type: transaction.payable.kind().into(),
            object_id: transaction.payable.object_id(),
            payment_method: transaction.method().as_str().into(),
            late: transaction.late,
            duplicate: transaction.duplicate,
            failure_reason: transaction.failure_reason.map(|reason| reason.as_str().into()),
        }
    }
}
