//! The receipt as the API shows it, and what anybody may learn of one.

use domain::receipt::{Receipt, ValidationCode};
use domain::{Metadata, Money};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Addresses, List, words};

/// Of the document: it is made whenever somebody asks for it, so it is always there.
pub(super) const STATUS: &str = "completed";

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Receipt)]
pub struct ReceiptView {
    #[schema(value_type = words::ReceiptId)]
    pub id: String,
    #[schema(value_type = words::ReceiptNumber)]
    pub receipt_number: String,
    #[schema(value_type = Option<words::InvoiceId>)]
    pub invoice_id: Option<String>,
    #[schema(value_type = Option<words::InvoicePaymentId>)]
    pub invoice_payment_id: Option<String>,
    #[schema(value_type = words::OrganizationId)]
    pub organization_id: String,
    #[schema(value_type = words::Amount)]
    pub amount: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    #[schema(value_type = words::AnyMethodName)]
    pub payment_method: String,
    #[schema(value_type = words::Time)]
    pub payment_date: String,
    #[schema(value_type = Option<words::TransactionId>)]
    pub transaction_id: Option<String>,
    /// The file, for whoever knows this address.
    #[schema(value_type = Option<words::Url>)]
    pub receipt_url: Option<String>,
    #[schema(value_type = words::ValidationCode)]
    pub validation_code: String,
    /// The customer and the merchant as they were when it was issued.
    pub customer_name: Option<String>,
    pub customer_email: Option<String>,
    pub customer_phone: Option<String>,
    pub customer_address: Option<String>,
    pub org_name: String,
    pub org_address: Option<String>,
    pub org_phone: Option<String>,
    pub org_email: Option<String>,
    #[schema(value_type = Option<words::Url>)]
    pub org_logo_url: Option<String>,
    pub org_tax_id: Option<String>,
    #[schema(value_type = words::Metadata)]
    pub metadata: Box<RawValue>,
    /// Of its file.
    #[schema(value_type = words::ReceiptStatus)]
    pub status: String,
    pub error_message: Option<String>,
    #[schema(minimum = 0)]
    pub retry_count: i64,
    #[schema(value_type = Option<words::Time>)]
    pub generated_at: Option<String>,
    #[schema(value_type = Option<words::Time>)]
    pub email_sent_at: Option<String>,
    #[schema(value_type = words::EmailStatus)]
    pub email_status: String,
    #[schema(value_type = words::Time)]
    pub created_at: String,
    /// The key that recorded the payment; null where a payment provider confirmed it.
    pub created_by: Option<String>,
    #[schema(value_type = words::Time)]
    pub updated_at: String,
    #[schema(value_type = words::ModeName)]
    pub mode: String,
    pub livemode: bool,
}

impl ReceiptView {
    pub fn of(receipt: &Receipt, addresses: &Addresses) -> Self {
        let (customer, merchant) = (&receipt.customer, &receipt.merchant);
        Self {
            id: receipt.id.to_string(),
            receipt_number: receipt.number.clone(),
            invoice_id: Some(receipt.invoice.to_string()),
            invoice_payment_id: Some(receipt.payment.to_string()),
            organization_id: receipt.scope.organization.to_string(),
            amount: receipt.amount.to_string(),
            currency: receipt.amount.currency.code().into(),
            payment_method: receipt.method.as_str().into(),
            payment_date: receipt.payment_date.to_text(),
            transaction_id: Some(receipt.transaction.to_string()),
            receipt_url: Some(file_url(&receipt.validation_code, addresses)),
            validation_code: receipt.validation_code.as_str().into(),
            customer_name: given(&customer.name),
            customer_email: given(&customer.email),
            customer_phone: customer.phone.as_ref().map(|phone| phone.as_str().to_owned()),
            customer_address: given(&customer.address),
            org_name: merchant.name.clone(),
            org_address: merchant.address.clone(),
            org_phone: merchant.phone.clone(),
            org_email: merchant.email.clone(),
            org_logo_url: merchant.logo_url.clone(),
            org_tax_id: merchant.tax_id.clone(),
            metadata: super::raw(&Metadata::default()),
            status: STATUS.into(),
            error_message: None,
            retry_count: 0,
            generated_at: Some(receipt.created_at.to_text()),
            email_sent_at: receipt.email_sent_at().map(domain::Timestamp::to_text),
            email_status: receipt.email_status().as_str().into(),
            created_at: receipt.created_at.to_text(),
            created_by: receipt.created_by.clone(),
            updated_at: receipt.updated_at.to_text(),
            mode: receipt.scope.mode.as_str().into(),
            livemode: receipt.scope.mode.is_live(),
        }
    }
}

fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Unguessable, as the code is: a receipt is never found by its number.
pub fn file_url(code: &ValidationCode, addresses: &Addresses) -> String {
    format!("{}/receipts/{}.pdf", addresses.pay_url, code.as_str())
}

/// As any list, with its records under a second name.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReceiptList {
    pub items: Vec<ReceiptView>,
    /// The same as `items`.
    pub receipts: Vec<ReceiptView>,
    /// The number of matching records, as `total`.
    pub count: i64,
    /// Exact up to 100 000.
    pub total: i64,
    pub offset: i64,
    pub limit: i64,
    pub has_more: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub total_is_capped: bool,
}

impl From<List<ReceiptView>> for ReceiptList {
    fn from(list: List<ReceiptView>) -> Self {
        let List { items, count, total, offset, limit, has_more, total_is_capped } = list;
        Self { receipts: items.clone(), items, count, total, offset, limit, has_more, total_is_capped }
    }
}

/// Whether a receipt is real, and if so what it says.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct ReceiptValidation {
    /// Whether we issued it. The other fields are there only then.
    pub valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<words::ReceiptNumber>, required = false, nullable = false)]
    pub receipt_number: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<words::Amount>, required = false, nullable = false)]
    pub amount: Option<String>,
    /// What of it was given back since.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<words::Amount>, required = false, nullable = false)]
    pub refunded_amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<words::CurrencyCode>, required = false, nullable = false)]
    pub currency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<words::Time>, required = false, nullable = false)]
    pub payment_date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub org_name: Option<String>,
}

impl ReceiptValidation {
    pub fn of(receipt: &Receipt, refunded: Money) -> Self {
        assert_eq!(refunded.currency, receipt.amount.currency, "a refund is in the currency of its payment");
        Self {
            valid: true,
            receipt_number: Some(receipt.number.clone()),
            amount: Some(receipt.amount.to_string()),
            refunded_amount: Some(refunded.to_string()),
            currency: Some(receipt.amount.currency.code().into()),
            payment_date: Some(receipt.payment_date.to_text()),
            org_name: Some(receipt.merchant.name.clone()),
        }
    }

    /// Nobody's code: that is all there is to say.
    pub fn unknown() -> Self {
        Self::default()
    }
}
