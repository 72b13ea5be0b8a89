//! Rows as versions left them that kept no checksums: what is altered in one of them is found by what it says, or not at all.

use domain::api_key::ApiKey;
use domain::checkout::Checkout;
use domain::customer::Customer;
use domain::invoice::{Invoice, InvoicePayment};
use domain::organization::Organization;
use domain::payment::{PaymentSession, Transaction};
use domain::payment_link::PaymentLink;
use domain::product::Product;
use domain::receipt::Receipt;
use domain::refund::Refund;
use domain::simulator::{SimulatedPayment, SimulatedRefund};
use domain::webhook::WebhookEndpoint;
use store::Entity;

const DOCUMENTS: [&str; 15] = [
    ApiKey::TABLE,
    Checkout::TABLE,
    Customer::TABLE,
    Invoice::TABLE,
    InvoicePayment::TABLE,
    Organization::TABLE,
    PaymentLink::TABLE,
    PaymentSession::TABLE,
    Product::TABLE,
    Receipt::TABLE,
    Refund::TABLE,
    SimulatedPayment::TABLE,
    SimulatedRefund::TABLE,
    Transaction::TABLE,
    WebhookEndpoint::TABLE,
];

/// What takes the checksums out of every document and from every event, in either database.
pub(crate) fn statements() -> impl Iterator<Item = String> {
    let of_document = |table| {
        format!(
            "update {table} set doc = substr(doc, 1, length(doc) - {}) || '}}' where doc like '%,\"crc32\":\"________\"}}'",
            ",\"crc32\":\"01234567\"}".len()
        )
    };
    DOCUMENTS.into_iter().map(of_document).chain(["update events set body_crc32 = null".to_owned()])
}
