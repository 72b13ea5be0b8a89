//! The receipt as the API shows it, and what anybody may learn of one.

use domain::receipt::{Receipt, ValidationCode};
use domain::{Metadata, Money};
use serde::Serialize;
use serde_json::value::RawValue;
use store::queries::documents::{DocumentState, DocumentStates};
use utoipa::ToSchema;

use super::{Addresses, List, words};

/// Of a file that nobody has tried to make yet; it is owed with the receipt.
pub(super) const NOT_MADE_YET: &str = "pending";

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
    /// When the mail server took it for the customer.
    #[schema(value_type = Option<words::Time>)]
    pub email_sent_at: Option<String>,
    /// `pending` too where it is not sent: without a mail server, or without an e-mail address of the customer.
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
            status: NOT_MADE_YET.into(),
            error_message: None,
            retry_count: 0,
            generated_at: None,
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

impl ReceiptView {
    /// With what became of its file.
    pub fn knowing(mut self, files: &DocumentStates) -> Self {
        if let Some(file) = files.get(&self.id) {
            self.status = status(file).into();
            self.error_message = file.last_error.as_ref().map(|_| NOT_MADE.to_owned());
            self.retry_count = retries(file);
            self.generated_at = file.generated_at.map(|at| at.floor_to_second().to_text());
        }
        self
    }
}

/// What went wrong inside is for the log.
const NOT_MADE: &str = "The file could not be made. It is tried again, also whenever you download it.";

pub(super) fn status(file: &DocumentState) -> &'static str {
    if file.last_error.is_some() { "failed" } else { "completed" }
}

/// The last of the failures was not tried again yet.
fn retries(file: &DocumentState) -> i64 {
    if file.last_error.is_some() { file.failures - 1 } else { file.failures }
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
    /// As many records as were asked for, at most 100; fewer where they are so large that one answer does not hold them. The next
    /// page begins `limit` records further, or behind the last one of these (`after`).
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
    /// False for a receipt of test mode, behind which is no real money.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub livemode: Option<bool>,
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
            livemode: Some(receipt.scope.mode.is_live()),
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

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    #[test]
    fn a_file_is_pending_completed_or_failed() {
        let made = |failures| DocumentState {
            last_error: None,
            failures,
            generated_at: Some(Timestamp::from_micros(1_773_500_700_999_999)),
        };
        let failed = |failures| DocumentState { last_error: Some("no ink".into()), failures, generated_at: None };
        let table =
            [(made(0), "completed", 0), (made(2), "completed", 2), (failed(1), "failed", 0), (failed(3), "failed", 2)];
        for (state, word, retry_count) in table {
            assert_eq!((status(&state), retries(&state)), (word, retry_count), "{state:?}");
        }
    }
}
