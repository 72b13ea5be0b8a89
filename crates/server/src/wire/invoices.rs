//! The invoice and its payments as the API, its events and lists show them.

use domain::Timestamp;
use domain::checkout::Item;
use domain::invoice::{Invoice, InvoicePayment, Status};
use domain::organization::Profile;
use domain::payment::Transaction;
use domain::receipt::ReceiptSummary;
use serde::Serialize;
use serde_json::value::RawValue;
use store::queries::documents::DocumentStates;
use utoipa::ToSchema;

use super::checkouts::SummaryView;
use super::payments::PaymentNames;
use super::{Addresses, receipts, words};

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Invoice)]
pub struct InvoiceView {
    #[schema(value_type = words::InvoiceId)]
    pub id: String,
    #[schema(value_type = words::OrganizationId)]
    pub organization_id: String,
    #[schema(value_type = words::InvoiceNumber)]
    pub invoice_number: String,
    #[schema(value_type = words::CustomerId)]
    pub customer_id: String,
    /// Empty where there is none, as all texts of the customer.
    pub customer_email: String,
    pub customer_name: String,
    pub customer_address: String,
    pub customer_phone: String,
    /// Before tax: the sum of the items.
    #[schema(value_type = words::Amount)]
    pub amount: String,
    #[schema(value_type = words::TaxRate)]
    pub tax_rate: Box<RawValue>,
    /// Of `amount`, half-up to the minor unit.
    #[schema(value_type = words::Amount)]
    pub tax_amount: String,
    #[schema(value_type = words::Amount)]
    pub total_amount: String,
    #[schema(value_type = words::Amount)]
    pub paid_amount: String,
    #[schema(value_type = words::Amount)]
    pub remaining_amount: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    #[schema(value_type = words::InvoiceStatus)]
    pub status: String,
    #[schema(value_type = words::InvoicePaymentStatus)]
    pub payment_status: String,
    #[schema(value_type = words::MicroTime)]
    pub due_date: String,
    /// When it was finalized; null in a draft.
    #[schema(value_type = Option<words::MicroTime>)]
    pub issued_date: Option<String>,
    /// When the last of it was paid.
    #[schema(value_type = Option<words::MicroTime>)]
    pub paid_date: Option<String>,
    /// When you sent it by e-mail last. The mail was kept for sending then; it may have left later.
    #[schema(value_type = Option<words::MicroTime>)]
    pub sent_at: Option<String>,
    /// How often you sent it.
    #[schema(minimum = 0)]
    pub sent_count: i64,
    pub notes: String,
    pub items: Vec<ItemView>,
    /// Where the customer pays; null in a draft and once it is paid or cancelled.
    #[schema(value_type = Option<words::Url>)]
    pub payment_url: Option<String>,
    /// Needs a key, as every address of the API.
    #[schema(value_type = words::Url)]
    pub pdf_url: String,
    /// One for each payment, in the order in which they came.
    pub receipts: Vec<ReceiptSummaryView>,
    #[schema(value_type = words::MetadataTexts)]
    pub metadata: Box<RawValue>,
    pub subscription_id: Option<String>,
    #[schema(value_type = words::ModeName)]
    pub mode: String,
    pub livemode: bool,
    /// 1 at creation, and one more with every change.
    #[schema(minimum = 1)]
    pub version: i64,
    pub organization: MerchantView,
    #[schema(value_type = words::MicroTime)]
    pub created_at: String,
    #[schema(value_type = words::MicroTime)]
    pub updated_at: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = InvoiceItem)]
pub struct ItemView {
    #[schema(value_type = Option<words::ProductId>)]
    pub product_id: Option<String>,
    pub description: String,
    #[schema(minimum = 1, maximum = 1000000)]
    pub quantity: i64,
    #[schema(value_type = words::Amount)]
    pub unit_price: String,
    #[schema(value_type = words::Amount)]
    pub total: String,
    /// The same as `total`.
    #[schema(value_type = words::Amount)]
    pub amount: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ReceiptSummary)]
pub struct ReceiptSummaryView {
    #[schema(value_type = words::ReceiptId)]
    pub id: String,
    #[schema(value_type = words::ReceiptNumber)]
    pub receipt_number: String,
    #[schema(value_type = words::Url)]
    pub receipt_url: String,
    #[schema(value_type = words::Amount)]
    pub amount: String,
    #[schema(value_type = words::MicroTime)]
    pub payment_date: String,
    #[schema(value_type = words::ReceiptStatus)]
    pub status: String,
}

/// Who sends the invoice.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = InvoiceOrganization)]
pub struct MerchantView {
    #[schema(value_type = words::OrganizationId)]
    pub id: String,
    pub name: String,
    /// Empty where there is none.
    pub logo_url: String,
}

impl InvoiceView {
    /// `merchant` as it is shown today: an invoice is the merchant's letter until it is paid.
    pub fn of(invoice: &Invoice, merchant: &Profile, addresses: &Addresses, now: Timestamp) -> Self {
        let (customer, bill) = (&invoice.customer, invoice.bill());
        let organization_id = invoice.scope.organization.to_string();
        let status = invoice.status(now);
        Self {
            id: invoice.id.to_string(),
            organization_id: organization_id.clone(),
            invoice_number: invoice.number.clone(),
            customer_id: invoice.customer_id.to_string(),
            customer_email: customer.email.clone(),
            customer_name: customer.name.clone(),
            customer_address: customer.address.clone(),
            customer_phone: customer.phone.as_ref().map(|phone| phone.as_str().to_owned()).unwrap_or_default(),
            amount: bill.amount().to_string(),
            tax_rate: RawValue::from_string(bill.tax_rate().to_string()).expect("a rate is printed as a JSON number"),
            tax_amount: bill.tax().to_string(),
            total_amount: invoice.total().to_string(),
            paid_amount: invoice.paid().to_string(),
            remaining_amount: invoice.remaining().to_string(),
            currency: bill.currency().code().into(),
            status: status.as_str().into(),
            payment_status: invoice.payment_status().as_str().into(),
            due_date: invoice.due_date.to_text_micros(),
            issued_date: invoice.issued_date().map(Timestamp::to_text_micros),
            paid_date: invoice.paid_date().map(Timestamp::to_text_micros),
            sent_at: invoice.sent_at.map(Timestamp::to_text_micros),
            sent_count: invoice.sent_count,
            notes: invoice.notes.clone(),
            items: bill.items().iter().map(ItemView::of).collect(),
            payment_url: payment_url(invoice, addresses, now),
            pdf_url: format!("{}/v1/pay/invoices/{}/pdf", addresses.public_url, invoice.id),
            receipts: invoice.receipts().iter().map(|receipt| ReceiptSummaryView::of(receipt, addresses)).collect(),
            metadata: super::raw(&invoice.metadata),
            subscription_id: invoice.subscription_id.clone(),
            mode: invoice.scope.mode.as_str().into(),
            livemode: invoice.scope.mode.is_live(),
            version: invoice.revision(),
            organization: MerchantView {
                id: organization_id,
                name: merchant.name.clone(),
                logo_url: merchant.logo_url.clone().unwrap_or_default(),
            },
            created_at: invoice.created_at.to_text_micros(),
            updated_at: invoice.updated_at.to_text_micros(),
        }
    }
}

impl InvoiceView {
    /// With what became of the files of its receipts.
    pub fn knowing(mut self, files: &DocumentStates) -> Self {
        for receipt in &mut self.receipts {
            if let Some(file) = files.get(&receipt.id) {
                receipt.status = receipts::status(file).into();
            }
        }
        self
    }
}

/// Where it is paid, while it can be.
pub fn payment_url(invoice: &Invoice, addresses: &Addresses, now: Timestamp) -> Option<String> {
    takes_payments(invoice.status(now)).then(|| format!("{}/invoice/{}", addresses.pay_url, invoice.id))
}

fn takes_payments(status: Status) -> bool {
    match status {
        Status::Pending | Status::PartiallyPaid | Status::Overdue => true,
        Status::Draft | Status::Paid | Status::Cancelled => false,
    }
}

impl ItemView {
    fn of(item: &Item) -> Self {
        let total = item.total.to_string();
        Self {
            product_id: item.product_id.map(|id| id.to_string()),
            description: item.description.clone().unwrap_or_default(),
            quantity: item.quantity,
            unit_price: item.unit_price.to_string(),
            total: total.clone(),
            amount: total,
        }
    }
}

impl ReceiptSummaryView {
    fn of(receipt: &ReceiptSummary, addresses: &Addresses) -> Self {
        Self {
            id: receipt.id.to_string(),
            receipt_number: receipt.number.clone(),
            receipt_url: receipts::file_url(&receipt.validation_code, addresses),
            amount: receipt.amount.to_string(),
            payment_date: receipt.payment_date.to_text_micros(),
            status: receipts::NOT_MADE_YET.into(),
        }
    }
}

/// The data of a `payment.*` event of an invoice: the invoice itself with the payment, and flat names beside it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct InvoiceEventData {
    #[serde(flatten)]
    pub invoice: InvoiceView,
    pub transaction: SummaryView,
    #[schema(value_type = words::SessionId)]
    pub payment_session_id: String,
    #[serde(flatten)]
    pub payment: PaymentNames,
}

impl InvoiceEventData {
    pub fn of(invoice: InvoiceView, transaction: &Transaction) -> Self {
        Self {
            invoice,
            transaction: SummaryView::from(&transaction.summary()),
            payment_session_id: transaction.attempt().session.to_string(),
            payment: PaymentNames::of(transaction),
        }
    }
}

/// One payment of an invoice.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = InvoicePayment)]
pub struct InvoicePaymentView {
    #[schema(value_type = words::InvoicePaymentId)]
    pub id: String,
    #[schema(value_type = words::InvoiceId)]
    pub invoice_id: String,
    #[schema(value_type = words::Amount)]
    pub amount: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    #[schema(value_type = words::AnyMethodName)]
    pub payment_method: String,
    /// Of the transaction that was made of it. Your own number for the payment is kept there.
    #[schema(value_type = words::TransactionId)]
    pub transaction_id: String,
    #[schema(value_type = words::ReceiptId)]
    pub receipt_id: String,
    pub notes: Option<String>,
    #[schema(value_type = words::Time)]
    pub payment_date: String,
    /// The key that recorded it; null where a payment provider confirmed it.
    pub recorded_by: Option<String>,
    #[schema(value_type = words::Time)]
    pub created_at: String,
}

impl InvoicePaymentView {
    pub fn of(payment: &InvoicePayment) -> Self {
        Self {
            id: payment.id.to_string(),
            invoice_id: payment.invoice.to_string(),
            amount: payment.amount.to_string(),
            currency: payment.amount.currency.code().into(),
            payment_method: payment.method.as_str().into(),
            transaction_id: payment.transaction.to_string(),
            receipt_id: payment.receipt.to_string(),
            notes: payment.notes.clone(),
            payment_date: payment.payment_date.to_text(),
            recorded_by: payment.recorded_by.clone(),
            created_at: payment.created_at.to_text(),
        }
    }
}
