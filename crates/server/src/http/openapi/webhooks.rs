//! What we send: one entry for each type of event that can happen today, with its envelope and headers.

use domain::event::EventType;
use serde_json::{Map, Value, json};

use super::examples;

/// The paid object with the payment, whichever it is.
const PAYMENT: &[&str] = &["PaymentEventData", "InvoiceEventData", "PaymentLinkEventData"];
const CHECKOUT: &[&str] = &["Checkout"];
const PAYMENT_LINK: &[&str] = &["PaymentLink"];
const INVOICE: &[&str] = &["Invoice"];
const REFUND: &[&str] = &["Refund"];

/// Each with the schemas that its `data` may have, and when it is sent.
const SENT: &[(EventType, &[&str], &str)] = &[
    (
        EventType::PaymentSucceeded,
        PAYMENT,
        "A payment arrived. `data` is what was paid. Also when it came too late (`late: true`) or a second time (`duplicate: true`): then nothing else is sent, but `payment_link.deactivated` where late money has used up a payment link.",
    ),
    (
        EventType::PaymentFailed,
        PAYMENT,
        "An attempt to pay failed. What was to be paid stays as it is; the payer may try again.",
    ),
    (EventType::CheckoutCompleted, CHECKOUT, "A checkout is paid. Comes after its `payment.succeeded`."),
    (EventType::CheckoutExpired, CHECKOUT, "A checkout was not paid in time."),
    (EventType::CheckoutCancelled, CHECKOUT, "A checkout was cancelled."),
    (EventType::PaymentLinkCreated, PAYMENT_LINK, "A payment link was created."),
    (EventType::PaymentLinkUpdated, PAYMENT_LINK, "A payment link was changed, or made active again."),
    (
        EventType::PaymentLinkDeactivated,
        PAYMENT_LINK,
        "A payment link takes no more payments: its time ran out, it is used up, or you made it inactive.",
    ),
    (EventType::PaymentLinkDeleted, PAYMENT_LINK, "A payment link was deleted."),
    (EventType::InvoiceCreated, INVOICE, "An invoice has its number. One that is no draft is finalized at once."),
    (EventType::InvoiceFinalized, INVOICE, "An invoice can be paid from now on."),
    (EventType::InvoiceUpdated, INVOICE, "An invoice was changed, and is one version further."),
    (
        EventType::InvoiceSent,
        INVOICE,
        "An invoice goes to its customer by e-mail, as soon as the mail server takes it.",
    ),
    (EventType::InvoicePartiallyPaid, INVOICE, "A part of an invoice was paid, online or recorded by hand."),
    (EventType::InvoicePaid, INVOICE, "The last of an invoice was paid."),
    (
        EventType::InvoicePaymentFailed,
        INVOICE,
        "An attempt to pay an invoice online failed. Comes after its `payment.failed`; the invoice stays as it is.",
    ),
    (EventType::InvoiceOverdue, INVOICE, "An invoice was not paid in time."),
    (EventType::InvoiceCancelled, INVOICE, "An invoice was cancelled."),
    (
        EventType::RefundCompleted,
        REFUND,
        "A refund went through. Rarely it comes after a `refund.failed` of the same refund: then the provider has corrected itself.",
    ),
    (
        EventType::RefundFailed,
        REFUND,
        "A refund did not go through: the money is in your balance again, or, where it was of a payment that came a second time, `unapplied` again.",
    ),
    (
        EventType::WebhookTest,
        &["WebhookEndpoint"],
        "You asked for a test. `data` is the endpoint. It is not kept, and its `sequence` is always 1.",
    ),
];

const HEADERS: [&str; 6] = [
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "X-Jokoor-Signature",
    "X-Jokoor-Event",
    "X-Jokoor-Event-Id",
];

/// The entries; their envelope goes to the components.
pub(super) fn all(components: &mut Value) -> Value {
    components["schemas"]["EventEnvelope"] = envelope();
    components["parameters"] = headers();
    let entries = SENT.iter().map(|(kind, data, when)| (kind.as_str().to_owned(), entry(*kind, data, when)));
    Value::Object(entries.collect::<Map<_, _>>())
}

fn envelope() -> Value {
    let id = json!({ "type": "string", "pattern": "^evt_[0-9a-hjkmnp-tv-z]{26}$" });
    let time = json!({ "type": "string", "format": "date-time" });
    json!({
        "type": "object",
        "description": "A fact, as it was when it happened. Every attempt to deliver it sends the same bytes.",
        "required": ["id", "type", "api_version", "created_at", "created", "livemode", "object_id", "sequence", "data"],
        "properties": {
            "id": id,
            "type": { "type": "string", "enum": EventType::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>() },
            "api_version": { "type": "string", "enum": ["v1"] },
            "created_at": time,
            "created": time,
            "livemode": { "type": "boolean" },
            "object_id": { "type": "string", "description": "The object that changed; for a payment of a payment link, its payment session." },
            "sequence": { "type": "integer", "minimum": 1, "description": "Counts the events of the object: 1, 2, 3 … without a gap. `webhook.test` stands outside that count and always has 1." },
            "data": { "type": "object" },
        },
        "additionalProperties": false,
    })
}

fn entry(kind: EventType, data: &[&str], when: &str) -> Value {
    let kind = kind.as_str();
    let named = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let data = match data {
        [one] => named(one),
        several => json!({ "oneOf": several.iter().map(|name| named(name)).collect::<Vec<_>>() }),
    };
    let headers = HEADERS.map(|name| json!({ "$ref": format!("#/components/parameters/{name}") }));
    json!({ "post": {
        "operationId": format!("on_{}", kind.replace('.', "_")),
        "summary": kind,
        "description": format!(
            "{when}\n\nVerify the signature over the raw body, answer any 2xx within 15 seconds, and expect the same \
             `webhook-id` more than once. Anything else is tried again, ten times over about three days; 410 ends it."
        ),
        "security": [],
        "parameters": headers,
        "requestBody": { "required": true, "content": { "application/json": {
            "schema": { "allOf": [
                { "$ref": "#/components/schemas/EventEnvelope" },
                { "type": "object", "properties": {
                    "type": { "type": "string", "enum": [kind] },
                    "data": data,
                } },
            ] },
            "examples": { "delivery": { "summary": kind, "value": examples::delivery(kind) } },
        } } },
        "responses": {
            "2XX": { "description": "Received. The body is not read." },
            "410": { "description": "Send nothing here any more: the endpoint is made inactive." },
            "default": { "description": "Not received: it is tried again. Redirects are not followed." },
        },
    } })
}

fn headers() -> Value {
    let header = |name: &str, description: &str, example: &str| {
        json!({
            "name": name, "in": "header", "required": true, "description": description,
            "schema": { "type": "string" }, "example": example,
        })
    };
    json!({
        "webhook-id": header("webhook-id", "The event's id, the same on every attempt: your key against duplicates.", "evt_01h455vd9kf8es6v0m5r2t7y1c"),
        "webhook-timestamp": header("webhook-timestamp", "Unix seconds of the attempt. Refuse what is older than five minutes.", "1769860890"),
        "webhook-signature": header(
            "webhook-signature",
            "Standard Webhooks: `v1,` and base64 of HMAC-SHA256 over `{id}.{timestamp}.{raw body}`, with the decoded base64 behind `whsec_` as key. For a day after a rotation there is one by the old secret before it, with a space between; after several rotations, one by each.",
            "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        ),
        "X-Jokoor-Signature": header(
            "X-Jokoor-Signature",
            "`sha256=` and hex of HMAC-SHA256 over the raw body, with the whole secret text as key; for a day after a rotation, the old one. It signs no time: prefer `webhook-signature`.",
            "sha256=2b9a8c0f5b1f7f4c0d7d5f5b7a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
        ),
        "X-Jokoor-Event": header("X-Jokoor-Event", "The event's type.", "checkout.completed"),
        "X-Jokoor-Event-Id": header("X-Jokoor-Event-Id", "The event's id.", "evt_01h455vd9kf8es6v0m5r2t7y1c"),
    })
}
