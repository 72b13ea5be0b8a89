//! How to call each operation, with curl and in Python. The texts are files, so that the tests run the very same ones.

use serde_json::{Value, json};

use super::SHOWN_URL;

macro_rules! samples {
    ($($operation:literal)+) => {
        &[$((
            $operation,
            include_str!(concat!("../../../../../docs/samples/", $operation, ".sh")),
            include_str!(concat!("../../../../../docs/samples/", $operation, ".py")),
        )),+]
    };
}

/// Operation, curl, Python.
const SAMPLES: &[(&str, &str, &str)] = samples! {
    "get_health" "get_versioned_health" "get_invariants" "get_key_set" "create_access_token"
    "create_checkout" "list_checkouts" "get_checkout" "cancel_checkout"
    "initialize_payment" "get_payment_status" "get_payment_session"
    "list_payment_methods" "get_payment_dashboard" "update_payment_settings"
    "list_transactions" "get_transaction" "create_refund" "list_refunds" "get_refund" "get_balance"
    "create_webhook_endpoint" "list_webhook_endpoints" "get_webhook_endpoint"
    "update_webhook_endpoint" "put_webhook_endpoint" "patch_webhook_endpoint" "delete_webhook_endpoint"
    "test_webhook_endpoint" "rotate_webhook_secret"
    "list_events" "get_event" "retry_event"
};

/// What stands in a sample for what each reader has another of.
const SHOWN: [(&str, &str); 10] = [
    ("{{base_url}}", SHOWN_URL),
    ("{{key}}", "sk_test_YOUR_KEY"),
    ("{{checkout_id}}", "cs_01h455vb4pex5vsknk084sn02q"),
    ("{{client_secret}}", "csec_YOUR_CLIENT_SECRET"),
    ("{{session_id}}", "ps_01h455vc1nf1ysr3q8s9p3k4mh"),
    ("{{transaction_id}}", "txn_01h455vc1vfk1rqd3m2e6w8z0b"),
    ("{{refund_id}}", "ref_01h455vc8r7t3q5n1k9m2p4s6w"),
    ("{{endpoint_id}}", "we_01h455tz5ge1a8x4kq9g6j2m7d"),
    ("{{event_id}}", "evt_01h455vd9kf8es6v0m5r2t7y1c"),
    ("{{webhook_url}}", "https://shop.example/webhooks"),
];

pub(super) fn of(operation: &str) -> Value {
    let sample = SAMPLES.iter().find(|(id, ..)| *id == operation);
    let (_, curl, python) = sample.expect("every operation has its samples; a test builds the document");
    json!([
        { "lang": "shell", "label": "curl", "source": shown(curl) },
        { "lang": "python", "label": "Python", "source": shown(python) },
    ])
}

fn shown(sample: &str) -> String {
    SHOWN.iter().fold(sample.trim_end().to_owned(), |text, (name, value)| text.replace(name, value))
}
