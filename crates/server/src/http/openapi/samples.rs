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
    "get_health" "get_versioned_health" "get_invariants" "get_key_set" "get_receipt_key_set" "create_access_token"
    "create_checkout" "list_checkouts" "get_checkout" "cancel_checkout"
    "initialize_payment" "get_payment_status" "get_payment_session"
    "list_payment_methods" "get_payment_dashboard" "update_payment_settings"
    "create_customer" "list_customers" "get_customer" "update_customer" "delete_customer"
    "create_product" "list_products" "get_product" "update_product" "delete_product"
    "create_payment_link" "list_payment_links" "get_payment_link" "update_payment_link" "delete_payment_link"
    "list_transactions" "get_transaction" "create_refund" "list_refunds" "get_refund" "get_balance"
    "list_ledger_accounts" "list_ledger_entries" "get_ledger_proof"
    "create_webhook_endpoint" "list_webhook_endpoints" "get_webhook_endpoint"
    "update_webhook_endpoint" "put_webhook_endpoint" "patch_webhook_endpoint" "delete_webhook_endpoint"
    "test_webhook_endpoint" "rotate_webhook_secret"
    "list_events" "get_event" "retry_event"
    "create_invoice" "list_invoices" "get_invoice" "update_invoice" "finalize_invoice" "send_invoice"
    "cancel_invoice"
    "record_invoice_payment" "list_invoice_payments" "list_invoice_receipts"
    "list_receipts" "get_receipt" "get_receipt_by_number" "validate_receipt" "download_invoice_pdf" "download_receipt"
};

/// What stands in a sample for what each reader has another of.
const SHOWN: &[(&str, &str)] = &[
    ("{{base_url}}", SHOWN_URL),
    ("{{key}}", "sk_test_YOUR_KEY"),
    ("{{checkout_id}}", "cs_01h455vb4pex5vsknk084sn02q"),
    ("{{client_secret}}", "csec_YOUR_CLIENT_SECRET"),
    ("{{payment_link_id}}", "pl_01h455vb8m3wv9cq2r7t5y1d6n"),
    ("{{session_id}}", "ps_01h455vc1nf1ysr3q8s9p3k4mh"),
    ("{{customer_id}}", "cus_01h455v6q8e2bszk3m7w1x9c4n"),
    ("{{product_id}}", "prod_01h455v8t2fq4r6j0y5d8h3k9p"),
    ("{{transaction_id}}", "txn_01h455vc1vfk1rqd3m2e6w8z0b"),
    ("{{refund_id}}", "ref_01h455vc8r7t3q5n1k9m2p4s6w"),
    ("{{endpoint_id}}", "we_01h455tz5ge1a8x4kq9g6j2m7d"),
    ("{{event_id}}", "evt_01h455vd9kf8es6v0m5r2t7y1c"),
    ("{{webhook_url}}", "https://shop.example/webhooks"),
    ("{{invoice_id}}", "inv_01h455vb4pex5vsknk084sn02q"),
    ("{{draft_id}}", "inv_01h455vb4pex5vsknk084sn02q"),
    ("{{paid_invoice_id}}", "inv_01h455vb4pex5vsknk084sn02q"),
    ("{{receipt_id}}", "rec_01h455vcz6e4w3r2t1y0p9m8n7"),
    ("{{receipt_number}}", "RCT-2026-001"),
    ("{{validation_code}}", "5f0c9a7be1d24386a0f4c2e8b19d7360"),
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
