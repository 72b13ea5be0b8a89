//! Example bodies of requests and successes. A test holds them against the schemas that they illustrate.

use serde_json::{Value, json};

use super::SHOWN_URL;

pub(super) struct Example {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) value: Value,
}

fn example(name: &'static str, summary: &'static str, value: Value) -> Example {
    Example { name, summary, value }
}

const CHECKOUT: &str = "cs_01h455vb4pex5vsknk084sn02q";
const SESSION: &str = "ps_01h455vc1nf1ysr3q8s9p3k4mh";
const TRANSACTION: &str = "txn_01h455vc1vfk1rqd3m2e6w8z0b";
const REFUND: &str = "ref_01h455vc8r7t3q5n1k9m2p4s6w";
const ENDPOINT: &str = "we_01h455tz5ge1a8x4kq9g6j2m7d";
const EVENT: &str = "evt_01h455vd9kf8es6v0m5r2t7y1c";
const CREATED: &str = "2026-01-31T12:00:00Z";
const PAID: &str = "2026-01-31T12:01:30Z";
const REFUNDED: &str = "2026-02-02T09:30:00Z";

pub(super) fn requests(operation: &str) -> Vec<Example> {
    match operation {
        "create_access_token" => vec![
            example("default", "An hour, with all scopes of the key", json!({})),
            example("narrow", "Ten minutes, reading only", json!({ "expires_in": 600, "scope": "read:checkouts" })),
        ],
        "create_checkout" => vec![
            example(
                "amount",
                "An amount",
                json!({
                    "amount": "100.00",
                    "description": "Two books",
                    "reference": "order-1042",
                    "success_url": "https://shop.example/thanks",
                    "failure_url": "https://shop.example/basket",
                }),
            ),
            example(
                "items",
                "Line items, for half an hour",
                json!({
                    "items": [
                        { "description": "Atlas", "quantity": 1, "unit_price": "75.00" },
                        { "description": "Pencil", "quantity": 5, "unit_price": "5.00" },
                    ],
                    "expires_in": 1800,
                    "metadata": { "basket": 77 },
                }),
            ),
            example("method", "By Wave only", json!({ "amount": "100.00", "payment_method": "wave" })),
        ],
        "initialize_payment" => vec![
            example(
                "phone",
                "Approve on the phone",
                json!({
                    "client_secret": format!("csec_{}", "0123456789abcdefghjkmnpqrstvwxyz0123456789abcdefghjk"),
                    "payment_method": "afrimoney",
                    "customer_phone": "+2207000000",
                }),
            ),
            example("code", "The second step: the code", json!({ "session_id": SESSION, "customer_pin": "123456" })),
            example(
                "redirect",
                "A page of the method",
                json!({
                    "object_type": "checkout", "object_id": CHECKOUT, "payment_method": "wave",
                }),
            ),
        ],
        "update_payment_settings" => vec![
            example("methods", "Which methods", json!({ "enabled_methods": ["wave", "afrimoney", "qmoney", "card"] })),
            example("look", "What payers see", json!({ "name": "Kairaba Books", "accent_color": "#0b6e4f" })),
        ],
        "create_refund" => vec![
            example("all", "All that is left", json!({})),
            example("part", "A part", json!({ "amount": "40.00", "reason": "One of two books came back" })),
        ],
        "create_webhook_endpoint" => vec![
            example(
                "some",
                "Payments and checkouts",
                json!({
                    "url": "https://shop.example/webhooks",
                    "enabled_events": ["payment.*", "checkout.*"],
                    "description": "Orders",
                }),
            ),
            example("all", "Everything", json!({ "url": "https://shop.example/webhooks", "enabled_events": ["*"] })),
        ],
        "update_webhook_endpoint" | "put_webhook_endpoint" | "patch_webhook_endpoint" => vec![
            example("events", "Other events", json!({ "enabled_events": ["checkout.completed"] })),
            example("on", "Active again", json!({ "status": "active" })),
        ],
        _ => Vec::new(),
    }
}

pub(super) fn answers(operation: &str) -> Vec<Example> {
    let one = |summary, data: Value| vec![example("success", summary, json!({ "data": data }))];
    match operation {
        "get_health" | "get_versioned_health" => one("It is well", json!({ "status": "ok" })),
        "get_invariants" => vec![
            example(
                "ok",
                "Nothing wrong",
                json!({ "data": {
                "status": "ok", "last_run": CREATED, "checked": ["ledger_sum", "event_sequences"], "faults": 0,
            } }),
            ),
            example(
                "not_run",
                "Not looked yet",
                json!({ "data": {
                "status": "not_run", "last_run": null, "checked": [], "faults": 0,
            } }),
            ),
        ],
        "create_access_token" => one(
            "A token for an hour",
            json!({
                "access_token": "eyJ0eXAiOiJKV1QiLCJhbGciOiJFZERTQSJ9.eyJzdWIiOiJrZXlfMDEifQ.c2lnbmF0dXJl",
                "token_type": "Bearer", "expires_in": 3600, "scope": "read:checkouts write:checkouts",
            }),
        ),
        "get_key_set" => vec![example(
            "success",
            "One key",
            json!({ "keys": [{
            "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            "kid": "7a1c5e0d", "alg": "EdDSA", "use": "sig",
        }] }),
        )],
        "create_checkout" => {
            let mut created = checkout();
            created["client_secret"] =
                format!("csec_{}", "0123456789abcdefghjkmnpqrstvwxyz0123456789abcdefghjk").into();
            one("Ready to be paid", created)
        }
        "list_checkouts" => one("One of one", list(paid())),
        "get_checkout" => vec![
            example("paid", "Paid", json!({ "data": paid() })),
            example("pending", "Not paid yet", json!({ "data": checkout() })),
        ],
        "cancel_checkout" => one("Cancelled", json!({ "id": CHECKOUT, "status": "cancelled", "cancelled_at": PAID })),
        "initialize_payment" | "get_payment_session" => vec![
            example("phone", "The payer approves on the phone", json!({ "data": session() })),
            example("code", "The payer has a code", json!({ "data": with_code() })),
        ],
        "get_payment_status" => one(
            "Paid",
            json!({
                "session_id": SESSION, "status": "succeeded", "object_type": "checkout", "object_id": CHECKOUT,
                "amount": "100.00", "currency": "GMD", "payment_method": "afrimoney", "payment_url": null,
                "transaction_id": TRANSACTION, "transaction": transaction(), "failure_reason": null,
                "livemode": false,
            }),
        ),
        "list_payment_methods" => one("Four methods", methods()),
        "get_payment_dashboard" => one(
            "One payment",
            json!({
                "currency": "GMD", "total_amount": "100.00", "total_fees": "2.50", "total_net": "97.50",
                "refunded_amount": "0.00", "transaction_count": 1, "completed_count": 1, "failed_count": 0,
                "pending_count": 0, "by_method": [{ "payment_method": "afrimoney", "count": 1, "amount": "100.00" }],
                "recent_transactions": [transaction()],
                "period": { "start": "2026-01-01T12:00:00Z", "end": CREATED },
            }),
        ),
        "update_payment_settings" => {
            let mut settings = methods();
            let rest = json!({
                "name": "Kairaba Books", "logo_url": null, "accent_color": "#0b6e4f", "address": null, "phone": null,
                "email": null, "tax_id": null, "locale": "en", "allow_partial_payments": false, "settlement_delay": 0,
                "allow_negative_balance": false,
            });
            settings
                .as_object_mut()
                .into_iter()
                .for_each(|all| all.extend(rest.as_object().cloned().unwrap_or_default()));
            one("The settings as they are now", settings)
        }
        "list_transactions" => one("One of one", list(whole_transaction())),
        "get_transaction" => one("A payment of which a part was refunded", whole_transaction()),
        "create_refund" => one("It is asked for", refund("pending")),
        "list_refunds" => one("One of one", list(refund("completed"))),
        "get_refund" => one("It went through", refund("completed")),
        "get_balance" => one(
            "After a payment and a refund",
            json!({ "available_balance": "57.50", "pending_balance": "0.00", "currency": "GMD" }),
        ),
        "create_webhook_endpoint" | "rotate_webhook_secret" => {
            let mut shown = endpoint();
            shown["secret"] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=".into();
            one("With its secret", shown)
        }
        "list_webhook_endpoints" => one("One of one", list(endpoint())),
        "get_webhook_endpoint" | "update_webhook_endpoint" | "put_webhook_endpoint" | "patch_webhook_endpoint" => {
            one("The endpoint", endpoint())
        }
        "test_webhook_endpoint" => vec![
            example(
                "received",
                "It was received",
                json!({ "data": {
                "success": true, "status_code": 200, "event_id": EVENT, "error": null,
            } }),
            ),
            example(
                "failed",
                "It was not",
                json!({ "data": {
                "success": false, "status_code": 500, "event_id": EVENT, "error": "answered 500",
            } }),
            ),
        ],
        "list_events" => one("One of one", list(event())),
        "get_event" | "retry_event" => one("The event and its delivery", event()),
        _ => Vec::new(),
    }
}

fn list(item: Value) -> Value {
    json!({ "items": [item], "count": 1, "total": 1, "offset": 0, "limit": 20, "has_more": false })
}

fn checkout() -> Value {
    json!({
        "id": CHECKOUT, "amount": "100.00", "currency": "GMD", "status": "pending",
        "payment_url": format!("{SHOWN_URL}/checkout/{CHECKOUT}"),
        "available_payment_methods": ["wave", "afrimoney", "qmoney", "card"], "automatic_payment_methods": true,
        "customer_id": null, "customer_phone": null, "customer_email": null, "customer_name": null,
        "expires_at": "2026-02-01T12:00:00Z", "description": "Two books", "reference": "order-1042", "items": null,
        "metadata": {}, "livemode": false, "transaction": null, "payment_session_id": null,
        "success_url": "https://shop.example/thanks", "failure_url": "https://shop.example/basket",
        "cancel_url": "https://shop.example/basket", "created_at": CREATED, "updated_at": CREATED,
    })
}

pub(super) fn paid() -> Value {
    let mut paid = checkout();
    paid["status"] = "completed".into();
    paid["transaction"] = transaction();
    paid["payment_session_id"] = SESSION.into();
    paid["updated_at"] = PAID.into();
    paid
}

fn transaction() -> Value {
    json!({ "id": TRANSACTION, "status": "completed", "amount": "100.00", "fee": "2.50", "net_amount": "97.50" })
}

fn whole_transaction() -> Value {
    json!({
        "id": TRANSACTION, "payment_session_id": SESSION, "object_type": "checkout", "object_id": CHECKOUT,
        "organization_id": "org_01h455tx3w5b7d9f1h3k5m7p9r", "customer_id": null, "amount": "100.00", "fee": "2.50",
        "net_amount": "97.50", "currency": "GMD", "status": "partially_refunded", "payment_method": "afrimoney",
        "payment_method_transaction_id": format!("SIM-{TRANSACTION}"), "customer_email": null,
        "customer_phone": "+2207000000", "customer_name": null, "payment_phone": "+2207000000",
        "payment_details": { "duplicate": false, "late": false, "outcome_unknown": false }, "mode": "test",
        "livemode": false, "initiated_at": CREATED, "processing_at": CREATED, "completed_at": PAID, "failed_at": null,
        "refunded_amount": "40.00", "failure_reason": null,
        "state_transitions": [
            { "status": "pending", "timestamp": CREATED }, { "status": "processing", "timestamp": CREATED },
            { "status": "completed", "timestamp": PAID }, { "status": "partially_refunded", "timestamp": REFUNDED },
        ],
        "payment_method_response": null, "attempt_count": 1, "metadata": {}, "processing_type": "online",
        "recording_source": "provider", "recorded_by": null, "created_at": CREATED, "updated_at": REFUNDED,
    })
}

fn refund(status: &str) -> Value {
    json!({
        "id": REFUND, "transaction_id": TRANSACTION, "amount": "40.00", "currency": "GMD",
        "reason": "One of two books came back", "status": status, "created_at": REFUNDED, "updated_at": REFUNDED,
    })
}

fn session() -> Value {
    json!({
        "id": SESSION, "session_id": SESSION, "object_type": "checkout", "object_id": CHECKOUT,
        "payment_method": "afrimoney", "amount": "100.00", "currency": "GMD", "status": "processing",
        "customer_email": null, "customer_phone": "+2207000000", "customer_name": null,
        "payment_url": format!("{SHOWN_URL}/checkout/{CHECKOUT}"), "provider_session_id": null,
        "expires_at": "2026-02-01T12:00:00Z",
        "next_action": {
            "type": "approve_on_phone", "instructions": "Approve the payment on your phone.", "poll_after": 2,
        },
        "failure_reason": null, "outcome_unknown": false, "livemode": false, "created_at": CREATED, "updated_at": CREATED,
    })
}

fn with_code() -> Value {
    let mut session = session();
    session["payment_method"] = "qmoney".into();
    session["status"] = "pending".into();
    session["next_action"] = json!({ "type": "otp", "length": 6, "resend_after": 30, "attempts_left": 3 });
    session
}

fn methods() -> Value {
    let method = |id: &str, name: &str, flow: &str| json!({ "id": id, "name": name, "enabled": true, "flow": flow, "currencies": ["GMD"] });
    json!({
        "methods": [
            method("wave", "Wave", "redirect"), method("afrimoney", "Afrimoney", "push"),
            method("qmoney", "QMoney", "otp"), method("card", "Card", "redirect"),
        ],
        "enabled_methods": ["wave", "afrimoney", "qmoney", "card"],
    })
}

fn endpoint() -> Value {
    json!({
        "id": ENDPOINT, "url": "https://shop.example/webhooks", "description": "Orders", "api_version": "v1",
        "enabled_events": ["payment.*", "checkout.*"], "status": "active", "metadata": {}, "consecutive_failures": 0,
        "last_success_at": PAID, "last_failure_at": null, "disabled_at": null, "disable_reason": null,
        "created": CREATED, "created_at": CREATED, "updated_at": PAID,
    })
}

fn event() -> Value {
    json!({
        "id": EVENT, "type": "checkout.completed", "data": paid(), "webhook_endpoint_id": ENDPOINT,
        "status": "delivered", "attempts": 1, "next_retry_at": null, "livemode": false, "object_id": CHECKOUT,
        "sequence": 2, "created_at": PAID, "updated_at": PAID,
        "deliveries": [{
            "webhook_endpoint_id": ENDPOINT, "status": "delivered", "attempts": 1, "next_retry_at": null,
            "last_status_code": 200, "last_error": null,
        }],
    })
}

/// What a receiver gets.
pub(super) fn delivery(kind: &str) -> Value {
    let (sequence, data) = match kind {
        "payment.succeeded" => (1, payment(paid(), Value::Null)),
        "payment.failed" => {
            let mut failed = checkout();
            failed["transaction"] = transaction();
            failed["transaction"]["status"] = "failed".into();
            failed["payment_session_id"] = SESSION.into();
            (1, payment(failed, "insufficient_funds".into()))
        }
        "checkout.completed" => (2, paid()),
        "refund.completed" => (1, refund("completed")),
        "refund.failed" => (1, refund("failed")),
        "webhook.test" => (1, endpoint()),
        other => {
            let mut ended = checkout();
            ended["status"] = other.trim_start_matches("checkout.").into();
            (1, ended)
        }
    };
    let object_id = data["id"].clone();
    json!({
        "id": EVENT, "type": kind, "api_version": "v1", "created_at": PAID, "created": PAID, "livemode": false,
        "object_id": object_id, "sequence": sequence, "data": data,
    })
}

fn payment(mut data: Value, failure_reason: Value) -> Value {
    data["checkout_id"] = CHECKOUT.into();
    data["transaction_id"] = TRANSACTION.into();
    data["object_type"] = "checkout".into();
    data["object_id"] = CHECKOUT.into();
    data["payment_method"] = "afrimoney".into();
    data["failure_reason"] = failure_reason;
    data
}
