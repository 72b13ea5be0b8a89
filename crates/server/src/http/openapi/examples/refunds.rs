//! Transactions, refunds and the balance.

use serde_json::{Value, json};

use super::{CHECKOUT, CREATED, Example, ORGANIZATION, PAID, SESSION, TRANSACTION, example, list};

const REFUND: &str = "ref_01h455vc8r7t3q5n1k9m2p4s6w";
const REFUNDED: &str = "2026-02-02T09:30:00Z";

/// Nothing for an operation of another resource.
pub(super) fn requests(operation: &str) -> Vec<Example> {
    match operation {
        "create_refund" => vec![
            example("all", "All that is left", json!({})),
            example("part", "A part", json!({ "amount": "40.00", "reason": "One of two books came back" })),
        ],
        _ => Vec::new(),
    }
}

/// Nothing for an operation of another resource.
pub(super) fn answers(operation: &str) -> Vec<Example> {
    let one = |summary, data: Value| vec![example("success", summary, json!({ "data": data }))];
    match operation {
        "list_transactions" => one("One of one", list(transaction())),
        "get_transaction" => one("A payment of which a part was refunded", transaction()),
        "create_refund" => one("It is asked for", refund("pending")),
        "list_refunds" => one("One of one", list(refund("completed"))),
        "get_refund" => one("It went through", refund("completed")),
        "get_balance" => one(
            "After a payment and a refund",
            json!({ "available_balance": "57.50", "pending_balance": "0.00", "currency": "GMD" }),
        ),
        _ => Vec::new(),
    }
}

fn transaction() -> Value {
    json!({
        "id": TRANSACTION, "payment_session_id": SESSION, "object_type": "checkout", "object_id": CHECKOUT,
        "organization_id": ORGANIZATION, "customer_id": null, "amount": "100.00", "fee": "2.50",
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

/// In a state.
pub(super) fn refund(status: &str) -> Value {
    json!({
        "id": REFUND, "transaction_id": TRANSACTION, "amount": "40.00", "currency": "GMD",
        "reason": "One of two books came back", "status": status, "created_at": REFUNDED, "updated_at": REFUNDED,
    })
}
