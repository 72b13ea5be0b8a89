//! The OpenAPI document. Routes, parameters and schemas come from the handlers' own annotations; what those can't say
//! (which codes an operation refuses with, examples, samples, webhooks) is added here, from the same constructors that
//! make the real answers where there are such.
//!
//! The text is kept in the tree as `openapi.json`; a test holds the two together.

mod answers;
mod examples;
mod operations;
mod parameters;
mod problems;
mod samples;
mod schemas;
mod webhooks;

use std::sync::LazyLock;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::operations as routes;
use crate::fault::FaultCode;
use crate::wire::checkouts::PaymentEventData;
use crate::wire::invoices::{self, InvoiceEventData, InvoiceView};
use crate::wire::payment_links::PaymentLinkEventData;
use crate::wire::payments::PaymentNames;
use crate::wire::words;

/// Every success: one key, `data`.
#[derive(Serialize, ToSchema)]
pub(super) struct Data<T: ToSchema> {
    data: T,
}

/// Every refusal and failure.
#[derive(Serialize, ToSchema)]
pub(super) struct Error {
    /// A sentence that says what to do. It may change.
    error: String,
    /// Stable: branch on this.
    code: String,
    /// Only with `validation_failed`: every fault at once.
    #[schema(required = false, nullable = false)]
    details: Option<Vec<ErrorDetail>>,
    #[schema(value_type = words::RequestId)]
    request_id: String,
}

/// One fault of a request.
#[derive(Serialize, ToSchema)]
pub(super) struct ErrorDetail {
    /// Where: `items[0].quantity`, or the name of a query parameter.
    #[schema(examples("items[0].quantity"))]
    field: String,
    /// Stable: branch on this.
    code: FaultCode,
    message: String,
}

/// The address that samples show; `/docs` and the quick start put the real one in its place.
pub(super) const SHOWN_URL: &str = "http://127.0.0.1:8080";

/// The document as it is served at `/openapi.json` and kept in the tree: indented, with a last line feed.
pub fn document_text() -> String {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut text = serde_json::to_string_pretty(&document()).expect("the document is JSON");
        text.push('\n');
        text
    });
    TEXT.clone()
}

fn document() -> Value {
    let (_, routes) = routes().split_for_parts();
    let mut document = serde_json::to_value(routes).expect("the document is JSON");
    let mut components = document["components"].take();
    let named = &mut components["schemas"];
    named["Error"] = schema::<Error>();
    named["ErrorDetail"] = schema::<ErrorDetail>();
    named["RequestId"] = schema::<words::RequestId>();
    named["FaultCode"] = schema::<FaultCode>();
    named["KeySet"] = key_set();
    named["PaymentEventData"] = schema::<PaymentEventData>();
    named["Invoice"] = schema::<InvoiceView>();
    named["InvoiceItem"] = schema::<invoices::ItemView>();
    named["InvoiceOrganization"] = schema::<invoices::MerchantView>();
    named["ReceiptSummary"] = schema::<invoices::ReceiptSummaryView>();
    named["InvoiceEventData"] = schema::<InvoiceEventData>();
    named["PaymentLinkEventData"] = schema::<PaymentLinkEventData>();
    named["PaymentNames"] = schema::<PaymentNames>();
    let mut paths = document["paths"].take();
    schemas::finish(&mut paths, named);
    operations::finish(&mut paths, &mut components);
    let webhooks = webhooks::all(&mut components);
    components["headers"] = answers::headers();
    components["securitySchemes"] = security();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Dalasi",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Payments for merchants in The Gambia and West Africa.",
            "description": include_str!("openapi/introduction.md"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "This server: test mode with a test key, live mode with a live key." }],
        "security": [{ "secret_key": [] }, { "access_token": [] }],
        "tags": [
            { "name": "Checkouts", "description": "A checkout session is one thing to be paid: an amount, a hosted page to pay it on, and a time when it expires." },
            { "name": "Payments", "description": "The embedded flow, for a payment page of your own; and how your payments are set up and doing." },
            { "name": "Transactions", "description": "Every attempt to pay, with each of its moves." },
            { "name": "Refunds", "description": "Money on its way back to who paid it." },
            { "name": "Payouts", "description": "What you have." },
            { "name": "Payment links", "description": "One address that many people pay." },
            { "name": "Customers", "description": "Who pays you: found again by e-mail address or phone, named by `customer_id`." },
            { "name": "Products", "description": "What you sell again and again: a line that names one takes its name and price." },
            { "name": "Invoices", "description": "What a customer owes you, numbered, with tax: from a draft to the last dalasi." },
            { "name": "Receipts", "description": "The proof that money for an invoice was taken. Every payment issues one." },
            { "name": "Ledger", "description": "Every movement of money as balanced postings, sealed in signed batches that anybody with a copy can check." },
            { "name": "Webhook endpoints", "description": "Where events are sent, signed as Standard Webhooks say." },
            { "name": "Webhook events", "description": "What happened, in order, and how its deliveries stand." },
            { "name": "Authentication", "description": "Short-lived access tokens, and the keys that verify them." },
            { "name": "Service", "description": "Whether the service is well. Needs no key." },
        ],
        "paths": paths,
        "webhooks": webhooks,
        "components": components,
    })
}

fn schema<T: PartialSchema>() -> Value {
    serde_json::to_value(T::schema()).expect("a schema is JSON")
}

/// The only answer that is no envelope of ours: its shape is RFC 7517's.
fn key_set() -> Value {
    let text = json!({ "type": "string" });
    let word = |word: &str| json!({ "type": "string", "enum": [word] });
    let key = json!({
        "type": "object",
        "required": ["kty", "crv", "x", "kid", "alg", "use"],
        "properties": {
            "kty": word("OKP"), "crv": word("Ed25519"), "x": text, "kid": text, "alg": word("EdDSA"), "use": word("sig"),
        },
    });
    let keys = json!({ "type": "array", "items": key });
    json!({ "type": "object", "required": ["keys"], "properties": { "keys": keys } })
}

fn security() -> Value {
    let bearer = |description: &str| json!({ "type": "http", "scheme": "bearer", "description": description });
    let mut token = bearer("An access token from `POST /v1/auth/token`, with all or some of the scopes of its key.");
    token["bearerFormat"] = "JWT".into();
    json!({
        "secret_key": bearer(
            "A secret key, `sk_test_…` or `sk_live_…`. It stays on your server. One that was made with scopes may do no more than \
             they say, but events hold the objects that they tell of: `read:webhooks` reads all of them by `/v1/events`, and \
             `write:webhooks` can have all of them sent to an address of its choice. And who writes is answered with what was \
             written, with customers' data in it: `write:customers` is given the customer who has an e-mail address or a phone \
             already, and `write:checkouts`, `write:payments` and `write:invoices` are shown name, e-mail address and phone of the \
             customer whom they name."
        ),
        "publishable_key": bearer("A publishable key, `pk_test_…` or `pk_live_…`: for pages in a payer's browser, from any origin."),
        "access_token": token,
    })
}

#[cfg(test)]
mod tests;
