//! Example bodies of requests and successes. A test holds them against the schemas that they illustrate.

mod invoices;
mod refunds;

use serde_json::{Value, json};

use super::SHOWN_URL;

#[derive(Clone)]
pub(super) struct Example {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) value: Value,
}

fn example(name: &'static str, summary: &'static str, value: Value) -> Example {
    Example { name, summary, value }
}

const ORGANIZATION: &str = "org_01h455tw3c8r1d4n6k9g2m7x5e";
const CHECKOUT: &str = "cs_01h455vb4pex5vsknk084sn02q";
const LINK: &str = "pl_01h455vb8m3wv9cq2r7t5y1d6n";
const SESSION: &str = "ps_01h455vc1nf1ysr3q8s9p3k4mh";
const TRANSACTION: &str = "txn_01h455vc1vfk1rqd3m2e6w8z0b";
const CUSTOMER: &str = "cus_01h455v6q8e2bszk3m7w1x9c4n";
const PRODUCT: &str = "prod_01h455v8t2fq4r6j0y5d8h3k9p";
const ENDPOINT: &str = "we_01h455tz5ge1a8x4kq9g6j2m7d";
const EVENT: &str = "evt_01h455vd9kf8es6v0m5r2t7y1c";
const ENTRY: &str = "entry_01h455vc2bfqks0y4d1n7g5w9e";
const CREATED: &str = "2026-01-31T12:00:00Z";
const PAID: &str = "2026-01-31T12:01:30Z";

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
            example(
                "named",
                "Products, for a customer",
                json!({ "customer_id": CUSTOMER, "items": [{ "product_id": PRODUCT, "quantity": 2 }] }),
            ),
            example("method", "By Wave only", json!({ "amount": "100.00", "payment_method": "wave" })),
        ],
        "initialize_payment" => vec![
            example(
                "phone",
                "Approve on the phone",
                json!({
                    "client_secret": "csec_0123456789abcdefghjkmnpqrstvwxyz0123456789abcdefghjg",
                    "payment_method": "afrimoney",
                    "customer_phone": "+2207000000",
                }),
            ),
            example("code", "The second step: the code", json!({ "session_id": SESSION, "customer_pin": "123456" })),
            example(
                "link",
                "A payment link whose payer chooses",
                json!({
                    "object_type": "payment_link", "object_id": LINK, "amount": "150.00", "payment_method": "wave",
                    "custom_field_values": { "pupil": "Awa Ceesay", "form": "2" },
                }),
            ),
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
        "create_customer" => vec![
            example(
                "default",
                "By e-mail address and phone",
                json!({ "email": "awa@example.gm", "phone": "+2207000000", "name": "Awa Ceesay" }),
            ),
            example("phone", "By phone only", json!({ "phone": "7000000" })),
        ],
        "update_customer" => vec![
            example("name", "Another name", json!({ "name": "Awa Ceesay-Jallow" })),
            example("clear", "Without a phone", json!({ "phone": null })),
        ],
        "create_product" => vec![example(
            "default",
            "An atlas",
            json!({
                "name": "Atlas", "price": "75.00", "description": "Maps of West Africa",
                "images": ["https://shop.example/atlas.jpg"],
            }),
        )],
        "update_product" => vec![
            example("price", "Another price", json!({ "price": "80.00" })),
            example("off", "Not sold any more", json!({ "active": false })),
        ],
        "create_payment_link" => vec![
            example(
                "fixed",
                "A price",
                json!({
                    "title": "Concert, 14 February", "amount": "250.00", "max_usage_count": 300,
                    "expiration_date": "2026-02-14",
                }),
            ),
            example(
                "variable",
                "The payer chooses",
                json!({
                    "title": "School fees", "amount": "0.00", "min_amount": "100.00",
                    "custom_fields": [
                        { "name": "pupil", "label": "Name of the pupil", "type": "text", "required": true },
                        { "name": "form", "label": "Form", "type": "select", "options": ["1", "2", "3"] },
                    ],
                }),
            ),
        ],
        "update_payment_link" => vec![
            example("more", "More uses", json!({ "max_usage_count": 400, "status": "active" })),
            example("stop", "No more payments", json!({ "status": "inactive" })),
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
        "retry_event" => vec![
            example("all", "To all that want it", json!({})),
            example("one", "To one of them", json!({ "webhook_endpoint_id": ENDPOINT })),
        ],
        other => [invoices::requests(other), refunds::requests(other)].concat(),
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
        "get_key_set" | "get_receipt_key_set" => vec![example(
            "success",
            "One key",
            json!({ "keys": [{
            "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            "kid": "7a1c5e0d", "alg": "EdDSA", "use": "sig",
        }] }),
        )],
        "create_checkout" => {
            let mut created = checkout();
            created["client_secret"] = "csec_0123456789abcdefghjkmnpqrstvwxyz0123456789abcdefghjg".into();
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
        "create_customer" | "get_customer" | "update_customer" => one("The customer", customer()),
        "list_customers" => one("One of one", list(customer())),
        "create_product" | "get_product" | "update_product" => one("The product", product()),
        "list_products" => one("One of one", list(product())),
        "create_payment_link" | "get_payment_link" | "update_payment_link" => one("The payment link", link()),
        "list_payment_links" => one("One of one", list(link())),
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
        "list_ledger_accounts" => one(
            "After one payment",
            json!({ "accounts": [
                account("fees", "0.00", "2.50", "-2.50"), account("merchant", "0.00", "97.50", "-97.50"),
                account("rail_clearing:simulator", "100.00", "0.00", "100.00"),
            ] }),
        ),
        "list_ledger_entries" => one("One of one", list(ledger_entry())),
        "get_ledger_proof" => one("After one payment", ledger_proof()),
        "list_events" => one("One of one", list(event())),
        "get_event" | "retry_event" => one("The event and its delivery", event()),
        other => [invoices::answers(other), refunds::answers(other)].concat(),
    }
}

fn account(name: &str, debits: &str, credits: &str, balance: &str) -> Value {
    json!({ "account": name, "currency": "GMD", "debits": debits, "credits": credits, "balance": balance })
}

fn ledger_entry() -> Value {
    let posting = |account, side, amount| json!({ "account": account, "side": side, "amount": amount });
    json!({
        "id": ENTRY, "transaction_id": TRANSACTION, "currency": "GMD",
        "postings": [
            posting("rail_clearing:simulator", "debit", "100.00"), posting("merchant", "credit", "97.50"),
            posting("fees", "credit", "2.50"),
        ],
        "log_no": 1, "created_at": "2026-01-31T12:01:30.120034Z",
    })
}

/// Made by the code that makes the real one, so that it can be checked.
fn ledger_proof() -> Value {
    let entry: crate::ledger_proof::SealedEntry = serde_json::from_value(ledger_entry()).expect("an entry");
    let key = crate::tokens::SigningKey::generate(&[7; 32]);
    let organization = "org_01h455tz1gfq4v4n0y6c2b8x3s".parse().expect("an id");
    let scope = domain::Scope { organization, mode: domain::Mode::Test };
    let sealed_at = domain::Timestamp::parse("2026-01-31T12:01:31Z").expect("a time");
    let entries = [entry];
    let batch = crate::ledger_proof::seal(scope, None, &entries, &key, sealed_at).expect("it balances");
    let totals = batch.statement().expect("a statement").balances;
    let inclusion = crate::ledger_proof::include(&entries, 0, &batch);
    json!({
        "trial_balance": { "sealed": totals, "unsealed": [] },
        "batch_count": 1, "sealed_entries": 1, "unsealed_entries": 0, "batches": [batch],
        "keys": crate::wire::ledger::key_set(&[key.public().clone()]),
        "transaction": { "transaction_id": TRANSACTION, "entries": [inclusion], "unsealed_entries": 0 },
        "not_covered": crate::wire::ledger::NOT_COVERED,
    })
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

fn link() -> Value {
    json!({
        "id": LINK, "organization_id": ORGANIZATION, "title": "Concert, 14 February", "description": null,
        "amount": "250.00", "currency": "GMD", "is_variable_amount": false, "min_amount": null, "max_amount": null,
        "status": "active", "payment_url": format!("{SHOWN_URL}/pay/{LINK}"), "collect_customer_info": false,
        "custom_fields": null, "success_url": null, "failure_url": null, "expiration_date": "2026-02-14T23:59:59Z",
        "max_usage_count": 300, "usage_count": 1, "mode": "test", "livemode": false, "metadata": null,
        "organization": { "id": ORGANIZATION, "name": "Kairaba Books", "logo": null }, "products": null,
        "created_at": CREATED, "updated_at": PAID,
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

fn customer() -> Value {
    json!({
        "id": CUSTOMER, "email": "awa@example.gm", "phone": "+2207000000", "name": "Awa Ceesay", "metadata": {},
        "livemode": false, "created_at": CREATED, "updated_at": CREATED,
    })
}

fn product() -> Value {
    json!({
        "id": PRODUCT, "name": "Atlas", "description": "Maps of West Africa", "price": "75.00", "currency": "GMD",
        "active": true, "is_active": true, "images": ["https://shop.example/atlas.jpg"], "metadata": {},
        "livemode": false, "created_at": CREATED, "updated_at": CREATED,
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
        "webhook.test" => (1, endpoint()),
        "refund.completed" => (1, refunds::refund("completed")),
        "refund.failed" => (1, refunds::refund("failed")),
        kind if kind.starts_with("invoice.") => (1, invoices::delivery(kind)),
        other if other.starts_with("payment_link.") => {
            let mut told = link();
            if matches!(other, "payment_link.deactivated" | "payment_link.deleted") {
                told["status"] = "inactive".into();
            }
            (1, told)
        }
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
