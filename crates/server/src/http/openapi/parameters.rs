//! What the parameters mean. Their places come from the routes; their words stand here once for all operations.

use serde_json::{Value, json};

use super::schema;
use crate::wire::words;

/// Describes one parameter of an operation, in place.
pub(super) fn describe(operation: &str, parameter: &mut Value) {
    let name = parameter["name"].as_str().expect("parameters have names").to_owned();
    let (schema, description) = meaning(operation, &name);
    parameter["description"] = description.into();
    parameter["schema"] = schema;
    parameter["required"] = (parameter["in"] == "path").into();
}

fn meaning(operation: &str, name: &str) -> (Value, &'static str) {
    let text = |most: u32| json!({ "type": "string", "minLength": 1, "maxLength": most });
    // An empty one finds nothing.
    let filter = |most: u32| json!({ "type": "string", "maxLength": most });
    match name {
        "id" if operation.contains("checkout") => (opaque(schema::<words::CheckoutId>()), "The checkout's id."),
        "id" if operation.contains("payment_link") => {
            (opaque(schema::<words::PaymentLinkId>()), "The payment link's id.")
        }
        "id" if operation.contains("invoice") => (opaque(schema::<words::InvoiceId>()), "The invoice's id."),
        "id" if operation.contains("receipt") => (opaque(schema::<words::ReceiptId>()), "The receipt's id."),
        "id" if operation.contains("webhook") => (opaque(schema::<words::EndpointId>()), "The webhook endpoint's id."),
        "id" if operation == "get_refund" => (opaque(schema::<words::RefundId>()), "The refund's id."),
        "id" if operation == "get_transaction" || operation == "create_refund" => {
            (opaque(schema::<words::TransactionId>()), "The transaction's id.")
        }
        "id" if operation.contains("customer") => (opaque(schema::<words::CustomerId>()), "The customer's id."),
        "id" if operation.contains("product") => (opaque(schema::<words::ProductId>()), "The product's id."),
        "id" => (opaque(schema::<words::EventId>()), "The event's id."),
        "receipt_number" => (text(64), "The receipt's number, such as `RCT-2026-001`."),
        // Any text is answered: what is no code is a receipt that is not valid.
        "validation_code" => (json!({ "type": "string", "minLength": 1 }), "The 32 digits that the receipt shows."),
        "session_id" => (opaque(schema::<words::SessionId>()), "The payment session's id."),
        "offset" => (json!({ "type": "integer", "minimum": 0, "default": 0 }), "How many records to skip."),
        "limit" => (
            json!({ "type": "integer", "minimum": 1, "default": 20 }),
            "How many records to answer. More than 100 is read as 100.",
        ),
        "after" if operation == "list_events" => (
            schema::<words::EventId>(),
            "Continue behind the event with this id. With `order=asc`: follow the log from there.",
        ),
        "after" => {
            (listed(operation), "Continue behind the record with this id, at constant cost. Instead of `offset`.")
        }
        "status" if operation == "list_transactions" => {
            (schema::<words::TransactionStatus>(), "Only transactions in this state.")
        }
        "status" if operation == "list_refunds" => (schema::<words::RefundStatus>(), "Only refunds in this state."),
        "status" if operation == "list_payment_links" => {
            (schema::<words::PaymentLinkFilter>(), "Only payment links in this state now.")
        }
        "email" => (
            json!({ "type": "string", "format": "email", "maxLength": 254 }),
            "Only who has this address, in any case.",
        ),
        "phone" => (schema::<words::PhoneIn>(), "Only who has this phone."),
        "active" => (json!({ "type": "boolean" }), "Only products that are active, or only those that are not."),
        "status" if operation == "list_invoices" => (
            schema::<words::InvoiceFilter>(),
            "Only invoices in this state now. `open` are those that wait for money: pending, partially paid or overdue.",
        ),
        "number" => (filter(64), "Only the invoice with this number."),
        "If-Match" => (
            json!({ "type": "string", "pattern": "^\"[1-9][0-9]*\"$", "examples": ["\"3\""] }),
            "The `version` that the change is based on, in double quotes. The same as `version` in the body.",
        ),
        "status" => (schema::<words::CheckoutStatus>(), "Only checkouts in this state now."),
        "reference" => (filter(255), "Only checkouts with this reference of yours."),
        "customer_id" => (filter(64), "Only those of this customer."),
        "start_date" => (schema::<words::TimeIn>(), "Created at or after this time."),
        "end_date" => (
            schema::<words::TimeIn>(),
            "Created at or before this time, by `created_at` as it is printed. A date means the whole day.",
        ),
        "transaction_id" if operation == "get_ledger_proof" => {
            (text(64), "Prove the entries of this transaction as well.")
        }
        "transaction_id" => (filter(64), "Only the entries of this transaction."),
        "from_batch" => (
            json!({ "type": "integer", "minimum": 1 }),
            "Show the batches from this number on, `limit` of them; without it, the last ones.",
        ),
        "order" => (
            json!({ "type": "string", "enum": ["desc", "asc"], "default": "desc" }),
            "`asc` is the order of the log: nothing that commits late is skipped. It goes with `after` and `limit` only.",
        ),
        "type" => (schema::<words::EventName>(), "Only events of this type."),
        other => unreachable!("{operation} has a parameter {other:?} that is not described"),
    }
}

/// The id of what a list holds.
fn listed(operation: &str) -> Value {
    match operation {
        "list_checkouts" => schema::<words::CheckoutId>(),
        "list_customers" => schema::<words::CustomerId>(),
        "list_invoices" => schema::<words::InvoiceId>(),
        "list_ledger_entries" => schema::<words::EntryId>(),
        "list_payment_links" => schema::<words::PaymentLinkId>(),
        "list_products" => schema::<words::ProductId>(),
        "list_receipts" => schema::<words::ReceiptId>(),
        "list_refunds" => schema::<words::RefundId>(),
        "list_transactions" => schema::<words::TransactionId>(),
        "list_webhook_endpoints" => schema::<words::EndpointId>(),
        other => unreachable!("{other} is no list that goes on behind a record"),
    }
}

/// An id in an address may be anything: what is malformed is not found.
fn opaque(mut id: Value) -> Value {
    let id = id.as_object_mut().expect("a schema");
    id.shift_remove("pattern");
    id.shift_remove("description");
    Value::Object(id.clone())
}

pub(super) fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "required": false,
        "description": "1 to 255 printable ASCII characters of your choice. The same key with the same request gets the \
                        same answer for 30 days, and nothing is done again.",
        "schema": { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$" },
        "example": "order-1042",
    })
}
