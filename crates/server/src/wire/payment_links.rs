//! The payment link as the API, its events and lists show it.

use domain::Timestamp;
use domain::organization::Profile;
use domain::payment::{Payable, Transaction};
use domain::payment_link::{CustomField, PaymentLink, Price, Status};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::checkouts::SummaryView;
use super::payments::PaymentNames;
use super::{Addresses, words};

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = PaymentLink)]
pub struct PaymentLinkView {
    #[schema(value_type = words::PaymentLinkId)]
    pub id: String,
    #[schema(value_type = words::OrganizationId)]
    pub organization_id: String,
    pub title: String,
    pub description: Option<String>,
    /// Of one payment. Where the payer chooses: what you suggest, or "0.00".
    #[schema(value_type = words::Amount)]
    pub amount: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    /// The payer chooses the amount.
    pub is_variable_amount: bool,
    #[schema(value_type = Option<words::Amount>)]
    pub min_amount: Option<String>,
    #[schema(value_type = Option<words::Amount>)]
    pub max_amount: Option<String>,
    #[schema(value_type = words::PaymentLinkStatus)]
    pub status: String,
    /// The hosted payment page.
    #[schema(value_type = words::Url)]
    pub payment_url: String,
    pub collect_customer_info: bool,
    pub custom_fields: Option<Vec<CustomFieldView>>,
    #[schema(value_type = Option<words::Url>)]
    pub success_url: Option<String>,
    #[schema(value_type = Option<words::Url>)]
    pub failure_url: Option<String>,
    #[schema(value_type = Option<words::Time>)]
    pub expiration_date: Option<String>,
    #[schema(minimum = 1)]
    pub max_usage_count: Option<i64>,
    /// Payments that were completed.
    #[schema(minimum = 0)]
    pub usage_count: i64,
    #[schema(value_type = words::ModeName)]
    pub mode: String,
    pub livemode: bool,
    #[schema(value_type = Option<words::Metadata>)]
    pub metadata: Option<Box<RawValue>>,
    pub organization: LinkMerchantView,
    /// Always null: a link names no products.
    #[schema(value_type = Option<Vec<words::ProductId>>)]
    pub products: Option<Vec<String>>,
    #[schema(value_type = words::Time)]
    pub created_at: String,
    #[schema(value_type = words::Time)]
    pub updated_at: String,
}

/// What the payer is asked.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = CustomField)]
pub struct CustomFieldView {
    pub name: String,
    pub label: String,
    #[serde(rename = "type")]
    #[schema(value_type = words::CustomFieldType)]
    pub kind: String,
    pub required: bool,
    pub options: Vec<String>,
}

impl CustomFieldView {
    fn of(field: &CustomField) -> Self {
        Self {
            name: field.name.clone(),
            label: field.label.clone(),
            kind: field.kind.as_str().into(),
            required: field.required,
            options: field.options.clone(),
        }
    }
}

/// Who is paid.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = PaymentLinkOrganization)]
pub struct LinkMerchantView {
    #[schema(value_type = words::OrganizationId)]
    pub id: String,
    pub name: String,
    #[schema(value_type = Option<words::Url>)]
    pub logo: Option<String>,
}

impl PaymentLinkView {
    pub fn of(link: &PaymentLink, merchant: &Profile, addresses: &Addresses, now: Timestamp) -> Self {
        let (terms, organization_id) = (link.terms(), link.scope.organization.to_string());
        let (amount, min_amount, max_amount) = link.price().shown();
        Self {
            id: link.id.to_string(),
            organization_id: organization_id.clone(),
            title: terms.title.clone(),
            description: terms.description.clone(),
            amount: amount.to_string(),
            currency: amount.currency.code().into(),
            is_variable_amount: matches!(link.price(), Price::Variable { .. }),
            min_amount: min_amount.map(|amount| amount.to_string()),
            max_amount: max_amount.map(|amount| amount.to_string()),
            status: status(link.status(now)).into(),
            payment_url: addresses.page(Payable::PaymentLink(link.id)),
            collect_customer_info: terms.collect_customer_info,
            custom_fields: terms.custom_fields.as_ref().map(|fields| fields.iter().map(CustomFieldView::of).collect()),
            success_url: terms.success_url.clone(),
            failure_url: terms.failure_url.clone(),
            expiration_date: terms.expiration_date.map(Timestamp::to_text),
            max_usage_count: terms.max_usage_count,
            usage_count: link.usage_count(),
            mode: link.scope.mode.as_str().into(),
            livemode: link.scope.mode.is_live(),
            metadata: terms.metadata.as_ref().map(super::raw),
            organization: LinkMerchantView {
                id: organization_id,
                name: merchant.name.clone(),
                logo: merchant.logo_url.clone(),
            },
            products: None,
            created_at: link.created_at.to_text(),
            updated_at: link.updated_at.to_text(),
        }
    }
}

/// Nobody reads a deleted link any more; events that still show one say that it takes no payments.
fn status(status: Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Inactive | Status::Deleted => "inactive",
    }
}

/// The data of a `payment.*` event of a payment link: the link itself with the payment, and flat names beside it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PaymentLinkEventData {
    #[serde(flatten)]
    pub link: PaymentLinkView,
    pub transaction: SummaryView,
    #[schema(value_type = words::SessionId)]
    pub payment_session_id: String,
    #[serde(flatten)]
    pub payment: PaymentNames,
}

impl PaymentLinkEventData {
    pub fn of(link: PaymentLinkView, transaction: &Transaction) -> Self {
        Self {
            link,
            transaction: SummaryView::from(&transaction.summary()),
            payment_session_id: transaction.attempt().session.to_string(),
            payment: PaymentNames::of(transaction),
        }
    }
}
