//! Invoices and receipts.

use serde_json::{Value, json};

use super::{Example, TRANSACTION, example, list};
use crate::http::openapi::SHOWN_URL;

const INVOICE: &str = "inv_01h455vb4pex5vsknk084sn02q";
const CUSTOMER: &str = "cus_01h455v9a1f0g2h3j4k5m6n7p8";
const RECEIPT: &str = "rec_01h455vcz6e4w3r2t1y0p9m8n7";
const PAYMENT: &str = "invpay_01h455vcz5d8s7a6f5g4h3j2k1";
const ORGANIZATION: &str = "org_01h455t0q9w8e7r6t5y4m3n2p1";
const KEY: &str = "key_01h455t1a2s3d4f5g6h7j8k9m0";
const CODE: &str = "5f0c9a7be1d24386a0f4c2e8b19d7360";
const CREATED: &str = "2026-01-31T12:00:00.250000Z";
const PAID: &str = "2026-01-31T12:01:30.500000Z";

/// Nothing for an operation of another resource.
pub(super) fn requests(operation: &str) -> Vec<Example> {
    match operation {
        "create_invoice" => vec![
            example(
                "new_customer",
                "For somebody by name and address",
                json!({
                    "customer_email": "awa@example.gm",
                    "customer_name": "Awa Ceesay",
                    "due_date": "2026-02-28",
                    "tax_rate": 15,
                    "items": [{ "description": "Rice, 50 kg", "quantity": 2, "unit_price": "1450.00" }],
                }),
            ),
            example(
                "known_customer",
                "A draft for a customer of yours",
                json!({
                    "customer_id": CUSTOMER,
                    "due_date": "2026-02-28T12:00:00Z",
                    "items": [{ "description": "Rice, 50 kg", "quantity": 2, "unit_price": "1450.00" }],
                    "is_draft": true,
                    "metadata": { "order": "1042" },
                }),
            ),
        ],
        "update_invoice" => vec![
            example("texts", "Another note", json!({ "notes": "Thank you!" })),
            example("guarded", "A rate, if nobody changed it meanwhile", json!({ "tax_rate": 7.25, "version": 1 })),
        ],
        "record_invoice_payment" => vec![example(
            "transfer",
            "A part, by bank transfer",
            json!({ "amount": "1000.00", "payment_method": "bank_transfer", "transaction_id": "31/7" }),
        )],
        _ => Vec::new(),
    }
}

/// Nothing for an operation of another resource.
pub(super) fn answers(operation: &str) -> Vec<Example> {
    let one = |summary, data: Value| vec![example("success", summary, json!({ "data": data }))];
    match operation {
        "create_invoice" | "finalize_invoice" => one("To be paid", invoice()),
        "list_invoices" => one("One of one", list(partially_paid())),
        "get_invoice" => vec![
            example("partially_paid", "Paid in part", json!({ "data": partially_paid() })),
            example("draft", "A draft", json!({ "data": draft() })),
        ],
        "update_invoice" => {
            let mut updated = draft();
            updated["notes"] = "Thank you!".into();
            updated["version"] = 2.into();
            updated["updated_at"] = PAID.into();
            one("A draft with another note", updated)
        }
        "send_invoice" => {
            let mut sent = invoice();
            sent["sent_at"] = PAID.into();
            sent["sent_count"] = 1.into();
            sent["version"] = 2.into();
            sent["updated_at"] = PAID.into();
            one("Sent once", sent)
        }
        "cancel_invoice" => {
            let mut cancelled = invoice();
            cancelled["status"] = "cancelled".into();
            cancelled["payment_status"] = "cancelled".into();
            cancelled["payment_url"] = Value::Null;
            cancelled["version"] = 2.into();
            cancelled["updated_at"] = PAID.into();
            one("Cancelled", cancelled)
        }
        "record_invoice_payment" => one("Paid in part", partially_paid()),
        "list_invoice_payments" => one("One", json!([payment()])),
        "list_invoice_receipts" => one("One", json!([receipt()])),
        "list_receipts" => {
            let mut receipts = list(receipt());
            receipts["receipts"] = receipts["items"].clone();
            one("One of one", receipts)
        }
        "get_receipt" | "get_receipt_by_number" => one("The receipt", receipt()),
        "validate_receipt" => vec![
            example(
                "valid",
                "It is real",
                json!({ "data": {
                    "valid": true, "livemode": false, "receipt_number": "RCT-2026-001", "amount": "1000.00",
                    "refunded_amount": "0.00", "currency": "GMD", "payment_date": "2026-01-31T12:01:30Z",
                    "org_name": "Kairaba Books",
                } }),
            ),
            example("unknown", "It is not", json!({ "data": { "valid": false } })),
        ],
        _ => Vec::new(),
    }
}

fn invoice() -> Value {
    json!({
        "id": INVOICE, "organization_id": ORGANIZATION, "invoice_number": "INV-2026-01-0001", "customer_id": CUSTOMER,
        "customer_email": "awa@example.gm", "customer_name": "Awa Ceesay", "customer_address": "",
        "customer_phone": "+2203001234", "amount": "2900.00", "tax_rate": 15, "tax_amount": "435.00",
        "total_amount": "3335.00", "paid_amount": "0.00", "remaining_amount": "3335.00", "currency": "GMD",
        "status": "pending", "payment_status": "unpaid", "due_date": "2026-02-28T23:59:59.000000Z",
        "issued_date": CREATED, "paid_date": null, "sent_at": null, "sent_count": 0, "notes": "",
        "items": [{
            "product_id": null, "description": "Rice, 50 kg", "quantity": 2, "unit_price": "1450.00", "total": "2900.00",
            "amount": "2900.00",
        }],
        "payment_url": format!("{SHOWN_URL}/invoice/{INVOICE}"),
        "pdf_url": format!("{SHOWN_URL}/v1/pay/invoices/{INVOICE}/pdf"),
        "receipts": [], "metadata": { "order": "1042" }, "subscription_id": null, "mode": "test", "livemode": false,
        "version": 1, "organization": { "id": ORGANIZATION, "name": "Kairaba Books", "logo_url": "" },
        "created_at": CREATED, "updated_at": CREATED,
    })
}

fn draft() -> Value {
    let mut draft = invoice();
    draft["status"] = "draft".into();
    draft["issued_date"] = Value::Null;
    draft["payment_url"] = Value::Null;
    draft
}

fn partially_paid() -> Value {
    let mut part = invoice();
    part["status"] = "partially_paid".into();
    part["payment_status"] = "partial".into();
    part["paid_amount"] = "1000.00".into();
    part["remaining_amount"] = "2335.00".into();
    part["receipts"] = json!([{
        "id": RECEIPT, "receipt_number": "RCT-2026-001", "receipt_url": receipt_url(), "amount": "1000.00",
        "payment_date": PAID, "status": "completed",
    }]);
    part["version"] = 2.into();
    part["updated_at"] = PAID.into();
    part
}

fn payment() -> Value {
    json!({
        "id": PAYMENT, "invoice_id": INVOICE, "amount": "1000.00", "currency": "GMD", "payment_method": "bank_transfer",
        "transaction_id": TRANSACTION, "receipt_id": RECEIPT, "notes": null, "payment_date": "2026-01-31T12:01:30Z",
        "recorded_by": KEY, "created_at": "2026-01-31T12:01:30Z",
    })
}

fn receipt() -> Value {
    let at = "2026-01-31T12:01:30Z";
    json!({
        "id": RECEIPT, "receipt_number": "RCT-2026-001", "invoice_id": INVOICE, "invoice_payment_id": PAYMENT,
        "organization_id": ORGANIZATION, "amount": "1000.00", "currency": "GMD", "payment_method": "bank_transfer",
        "payment_date": at, "transaction_id": TRANSACTION, "receipt_url": receipt_url(), "validation_code": CODE,
        "customer_name": "Awa Ceesay", "customer_email": "awa@example.gm", "customer_phone": "+2203001234",
        "customer_address": null, "org_name": "Kairaba Books", "org_address": "12 Kairaba Avenue", "org_phone": null,
        "org_email": null, "org_logo_url": null, "org_tax_id": null, "metadata": {}, "status": "completed",
        "error_message": null, "retry_count": 0, "generated_at": at, "email_sent_at": null, "email_status": "pending",
        "created_at": at, "created_by": KEY, "updated_at": at, "mode": "test", "livemode": false,
    })
}

fn receipt_url() -> String {
    format!("{SHOWN_URL}/receipts/{CODE}.pdf")
}

/// What an invoice is like when one of its events happens.
pub(super) fn delivery(kind: &str) -> Value {
    match kind {
        "invoice.created" => draft(),
        "invoice.updated" => answers("update_invoice").remove(0).value["data"].take(),
        "invoice.sent" => answers("send_invoice").remove(0).value["data"].take(),
        "invoice.cancelled" => answers("cancel_invoice").remove(0).value["data"].take(),
        "invoice.partially_paid" => partially_paid(),
        "invoice.overdue" => {
            let mut overdue = invoice();
            overdue["status"] = "overdue".into();
            overdue["version"] = 2.into();
            overdue
        }
        "invoice.paid" => {
            let mut paid = partially_paid();
            paid["status"] = "paid".into();
            paid["payment_status"] = "paid".into();
            paid["paid_amount"] = "3335.00".into();
            paid["remaining_amount"] = "0.00".into();
            paid["receipts"][0]["amount"] = "3335.00".into();
            paid["paid_date"] = PAID.into();
            paid["payment_url"] = Value::Null;
            paid
        }
        _ => invoice(),
    }
}
