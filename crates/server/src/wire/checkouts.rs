//! The checkout as the API, its events and lists show it.

use domain::Timestamp;
use domain::checkout::Checkout;
use domain::payment::TransactionSummary;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::Addresses;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Checkout)]
pub struct CheckoutView {
    #[schema(examples("cs_01h455vb4pex5vsknk084sn02q"))]
    pub id: String,
    /// Decimal amount with the currency's minor digits.
    #[schema(examples("100.00"))]
    pub amount: String,
    #[schema(examples("GMD"))]
    pub currency: String,
    #[schema(pattern = "^(pending|completed|expired|cancelled)$")]
    pub status: String,
    /// The hosted payment page.
    pub payment_url: String,
    /// Only in the answer to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub client_secret: Option<String>,
    pub available_payment_methods: Vec<String>,
    pub automatic_payment_methods: bool,
    pub customer_id: Option<String>,
    pub customer_phone: Option<String>,
    pub customer_email: Option<String>,
    pub customer_name: Option<String>,
    #[schema(format = DateTime)]
    pub expires_at: String,
    pub description: Option<String>,
    pub reference: Option<String>,
    pub items: Option<Vec<ItemView>>,
    #[schema(value_type = Object)]
    pub metadata: Box<RawValue>,
    pub livemode: bool,
    /// The latest attempt to pay; null while there is none.
    pub transaction: Option<SummaryView>,
    pub payment_session_id: Option<String>,
    pub success_url: Option<String>,
    pub failure_url: Option<String>,
    /// The same as `failure_url`.
    pub cancel_url: Option<String>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = CheckoutItem)]
pub struct ItemView {
    pub product_id: Option<String>,
    pub description: Option<String>,
    pub quantity: i64,
    #[schema(examples("50.00"))]
    pub unit_price: String,
    #[schema(examples("100.00"))]
    pub total: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TransactionSummary)]
pub struct SummaryView {
    pub id: String,
    pub status: String,
    pub amount: String,
    pub fee: String,
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
                product_id: item.product_id.clone(),
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
            customer_id: order.customer.id.clone(),
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
            payment_session_id: checkout.payment_session.map(|id| id.to_string()),
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
    pub id: String,
    pub status: String,
    #[schema(format = DateTime)]
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
    pub checkout_id: String,
    pub transaction_id: String,
    pub object_type: String,
    pub object_id: String,
    pub payment_method: String,
    /// The money came after the checkout's expiry or cancel.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The checkout had been paid before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
    pub failure_reason: Option<String>,
}
