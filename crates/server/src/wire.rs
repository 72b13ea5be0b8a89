//! The shapes of answers and of event data (contract §3). Pure: an object in, a serializable view out.
//!
//! They stand apart from `http`, because an event's snapshot is taken inside the command's transaction.

pub mod balance;
pub mod checkouts;
pub mod customers;
pub mod invoices;
pub mod ledger;
pub mod payment_links;
pub mod payments;
pub mod products;
pub mod receipts;
pub mod refunds;
pub mod settings;
pub mod transactions;
pub mod webhooks;
pub mod words;

use domain::Id;
use domain::payment::{Payable, PaymentSession};
use serde::Serialize;
use store::queries::{Page, PageRequest};
use utoipa::ToSchema;

/// Where the API of a server is that was told no address, and where a command looks for it that was told none either.
pub const DEFAULT_API_URL: &str = "http://127.0.0.1:8080";

/// The two public addresses that answers mention, without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// Where the API is: also issuer and audience of access tokens.
    pub public_url: String,
    /// Where the hosted pages are.
    pub pay_url: String,
}

impl Addresses {
    /// The hosted page of what is paid.
    pub fn page(&self, payable: Payable) -> String {
        match payable {
            Payable::Checkout(id) => format!("{}/checkout/{id}", self.pay_url),
            Payable::Invoice(id) => format!("{}/invoice/{id}", self.pay_url),
            Payable::PaymentLink(id) => format!("{}/pay/{id}", self.pay_url),
        }
    }

    /// The hosted page of one payment: that of its object, unless many pay it at once.
    pub fn payment_page(&self, payable: Payable, session: Id<PaymentSession>) -> String {
        match payable {
            Payable::Checkout(_) | Payable::Invoice(_) => self.page(payable),
            Payable::PaymentLink(_) => format!("{}/{session}", self.page(payable)),
        }
    }

    /// Where a rail's own page sends the payer back to; `way` is of [`crate::way_back`].
    pub fn returned(&self, payable: Payable, session: Id<PaymentSession>, way: &str) -> String {
        format!("{}/returned/{way}", self.payment_page(payable, session))
    }
}

/// Every success: one key, `data`.
#[derive(Serialize)]
struct Data<'v, T> {
    data: &'v T,
}

/// `{"data": value}` as text.
pub fn data<T: Serialize>(value: &T) -> String {
    serde_json::to_string(&Data { data: value }).expect("views have nothing that JSON can't say")
}

/// One part of a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct List<T> {
    pub items: Vec<T>,
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

impl<T> List<T> {
    pub fn of(page: Page<T>, request: &PageRequest) -> Self {
        Self {
            items: page.items,
            count: page.total,
            total: page.total,
            offset: request.offset,
            limit: page.limit,
            has_more: page.has_more,
            total_is_capped: page.total_is_capped,
        }
    }
}

/// A merchant's data as it was sent.
pub(crate) fn raw(metadata: &domain::Metadata) -> Box<serde_json::value::RawValue> {
    serde_json::value::RawValue::from_string(metadata.as_json().to_owned()).expect("metadata was read as JSON")
}
