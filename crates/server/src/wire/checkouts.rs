//! The checkout as the API, its events and lists show it.

use domain::Timestamp;
use domain::checkout::Checkout;
use domain::payment::TransactionSummary;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::payments::PaymentNames;
use super::{Addresses, words};

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Checkout)]
pub struct CheckoutView {
    #[schema(value_type = words::CheckoutId)]
    pub id: String,
    /// Decimal amount with the currency's minor digits.
    #[schema(value_type = words::Amount)]
    pub amount: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    #[schema(value_type = words::CheckoutStatus)]
    pub status: String,
    /// The hosted payment page.
    #[schema(value_type = words::Url)]
    pub payment_url: String,
    /// Only in the answer to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<words::ClientSecret>, required = false, nullable = false)]
    pub client_secret: Option<String>,
    #[schema(value_type = Vec<words::MethodName>)]
    pub available_payment_methods: Vec<String>,
    pub automatic_payment_methods: bool,
    #[schema(value_type = Option<words::CustomerId>)]
    pub customer_id: Option<String>,
    pub customer_phone: Option<String>,
    pub customer_email: Option<String>,
    pub customer_name: Option<String>,
    #[schema(value_type = words::Time)]
    pub expires_at: String,
    pub description: Option<String>,
    pub reference: Option<String>,
    pub items: Option<Vec<ItemView>>,
    #[schema(value_type = words::Metadata)]
    pub metadata: Box<RawValue>,
    pub livemode: bool,
    /// The latest attempt to pay; null while there is none.
    pub transaction: Option<SummaryView>,
    #[schema(value_type = Option<words::SessionId>)]
    pub payment_session_id: Option<String>,
    #[schema(value_type = Option<words::Url>)]
    pub success_url: Option<String>,
    #[schema(value_type = Option<words::Url>)]
    pub failure_url: Option<String>,
    /// The same as `failure_url`.
    #[schema(value_type = Option<words::Url>)]
    pub cancel_url: Option<String>,
    #[schema(value_type = words::Time)]
    pub created_at: String,
    #[schema(value_type = words::Time)]
    pub updated_at: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = CheckoutItem)]
pub struct ItemView {
    #[schema(value_type = Option<words::ProductId>)]
    pub product_id: Option<String>,
    pub description: Option<String>,
    #[schema(minimum = 1, maximum = 1000000)]
    pub quantity: i64,
    #[schema(value_type = words::Amount)]
    pub unit_price: String,
    #[schema(value_type = words::Amount)]
    pub total: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TransactionSummary)]
pub struct SummaryView {
    #[schema(value_type = words::TransactionId)]
    pub id: String,
    #[schema(value_type = words::TransactionStatus)]
    pub status: String,
    #[schema(value_type = words::Amount)]
    pub amount: String,
    #[schema(value_type = words::Amount)]
    pub fee: String,
    #[schema(value_type = words::Amount)]
    pub net_amount: String,
}

impl From<&TransactionSummary> for SummaryView {
    fn from(summary: &TransactionSummary) -> Self {
        Self {
            id: summary.id.to_string(),
            status: summary.status.clone(),
            amount: summary.amount.to_string(),
            fee: summary.fee.to_string(),
            net_amount: summary.net.to_string(),
        }
    }
}

impl CheckoutView {
    pub fn of(checkout: &Checkout, addresses: &Addresses, now: Timestamp) -> Self {
        let order = &checkout.order;
        let items = order.items.as_ref().map(|items| {
            let view = |item: &domain::checkout::Item| ItemView {
                product_id: item.product_id.map(|id| id.to_string()),
                description: item.description.clone(),
                quantity: item.quantity,
                unit_price: item.unit_price.to_string(),
                total: item.total.to_string(),
            };
            items.iter().map(view).collect()
        });
        Self {
            id: checkout.id.to_string(),
            amount: order.amount.to_string(),
            currency: order.amount.currency.code().into(),
            status: checkout.status(now).as_str().into(),
            payment_url: format!("{}/checkout/{}", addresses.pay_url, checkout.id),
            client_secret: None,
            available_payment_methods: order.available_methods.iter().map(|method| method.as_str().into()).collect(),
            automatic_payment_methods: order.automatic_payment_methods,
            customer_id: order.customer.id.map(|id| id.to_string()),
            customer_phone: order.customer.phone.clone(),
            customer_email: order.customer.email.clone(),
            customer_name: order.customer.name.clone(),
            expires_at: checkout.expires_at.to_text(),
            description: order.description.clone(),
            reference: order.reference.clone(),
            items,
            metadata: super::raw(&order.metadata),
            livemode: checkout.scope.mode.is_live(),
            transaction: checkout.transaction.as_ref().map(SummaryView::from),
            payment_session_id: checkout.shown_session().map(|id| id.to_string()),
            success_url: order.success_url.clone(),
            failure_url: order.failure_url.clone(),
            cancel_url: order.failure_url.clone(),
            created_at: checkout.created_at.to_text(),
            updated_at: checkout.updated_at.to_text(),
        }
    }
}

/// The answer to a cancel: these three fields and no other.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CancelledCheckout {
    #[schema(value_type = words::CheckoutId)]
    pub id: String,
    #[schema(pattern = "^cancelled$")]
    pub status: String,
    #[schema(value_type = words::Time)]
    pub cancelled_at: String,
}

impl CancelledCheckout {
    pub fn of(checkout: &Checkout) -> Self {
        let cancelled_at = checkout.cancelled_at().expect("shown after a cancel");
        Self { id: checkout.id.to_string(), status: "cancelled".into(), cancelled_at: cancelled_at.to_text() }
    }
}

/// The data of a `payment.*` event of a checkout: the checkout itself, and flat names for receivers that look there.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PaymentEventData {
    #[serde(flatten)]
    pub checkout: CheckoutView,
    #[schema(value_type = words::CheckoutId)]
    pub checkout_id: String,
    #[serde(flatten)]
    pub payment: PaymentNames,
}
