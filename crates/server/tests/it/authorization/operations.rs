//! Who may do what: one row for each operation of `openapi.json`, written from the contract and not from the code.

use serde_json::{Value, json};

use super::tenants::{Objects, Renewed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Anybody,
    /// A secret key itself, whatever its scopes.
    SecretKey,
    /// A secret key or a token with this scope.
    Merchant(&'static str),
    /// As `Merchant`, and a publishable key.
    Page(&'static str),
}

/// How a name that is not the caller's is answered, by a caller who may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// The operation names no object.
    NotNamed,
    Refused(u16, &'static str),
    /// A list that has nothing of it.
    Nothing,
}

pub(crate) struct Row {
    pub(crate) operation: &'static str,
    pub(crate) who: Who,
    pub(crate) success: u16,
    /// In live mode there is no rail, so that some answers are others.
    pub(crate) success_in_live: u16,
    pub(crate) foreign: Foreign,
    pub(crate) renewed: Renewed,
    /// What stands in the path.
    pub(crate) name: fn(&Objects) -> String,
    pub(crate) query: fn(&Objects) -> Option<String>,
    pub(crate) body: fn(&Objects) -> Option<Value>,
    /// What an answer to its owner shows.
    pub(crate) shows: fn(&Objects) -> Option<String>,
    /// This way of naming an object is closed to pages, whatever the operation allows.
    pub(crate) needs_secret: bool,
}

fn row(operation: &'static str, who: Who, success: u16) -> Row {
    Row {
        operation,
        who,
        success,
        success_in_live: success,
        foreign: Foreign::NotNamed,
        renewed: Renewed::Nothing,
        name: |_| String::new(),
        query: |_| None,
        body: |_| None,
        shows: |_| None,
        needs_secret: false,
    }
}

impl Row {
    /// The object in the path; somebody else's is not found.
    fn of(self, name: fn(&Objects) -> String, missing: &'static str) -> Self {
        Self { name, foreign: Foreign::Refused(404, missing), ..self }
    }

    fn with(self, body: fn(&Objects) -> Option<Value>) -> Self {
        Self { body, ..self }
    }

    fn renewing(self, renewed: Renewed) -> Self {
        Self { renewed, ..self }
    }

    fn in_live(self, success_in_live: u16) -> Self {
        Self { success_in_live, ..self }
    }

    /// The body names objects; somebody else's are faults of the request.
    fn naming(self, body: fn(&Objects) -> Option<Value>) -> Self {
        Self { body, foreign: Foreign::Refused(400, "validation_failed"), ..self }
    }

    /// A list in which the owner's object stands, and a filter that finds it.
    fn listing(self, query: fn(&Objects) -> Option<String>, shows: fn(&Objects) -> Option<String>) -> Self {
        Self { query, shows, foreign: Foreign::Nothing, ..self }
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = open();
    rows.extend(checkouts());
    rows.extend(payments());
    rows.extend(links_customers_products());
    rows.extend(invoices());
    rows.extend(webhooks());
    rows
}

fn open() -> Vec<Row> {
    vec![
        row("get_health", Who::Anybody, 200),
        row("get_versioned_health", Who::Anybody, 200),
        row("get_invariants", Who::Anybody, 200),
        row("get_key_set", Who::Anybody, 200),
        row("get_receipt_key_set", Who::Anybody, 200),
        Row { name: |it| it.validation_code.clone(), ..row("validate_receipt", Who::Anybody, 200) },
        row("create_access_token", Who::SecretKey, 200).with(|_| Some(json!({"expires_in": 60}))),
    ]
}

fn checkouts() -> Vec<Row> {
    let (read, write) = (Who::Merchant("read:checkouts"), Who::Merchant("write:checkouts"));
    let missing = "checkout_not_found";
    vec![
        row("list_checkouts", read, 200).listing(|_| None, |it| Some(it.checkout.clone())),
        row("list_checkouts", read, 200).listing(|it| Some(format!("customer_id={}", it.customer)), |_| None),
        row("list_checkouts", read, 200).listing(|it| Some(format!("after={}", it.checkout)), |_| None),
        row("create_checkout", write, 201).in_live(400).with(|_| Some(json!({"amount": "1.00"}))),
        row("create_checkout", write, 201)
            .in_live(400)
            .naming(|it| Some(json!({"amount": "1.00", "customer_id": it.customer}))),
        row("create_checkout", write, 201)
            .in_live(400)
            .naming(|it| Some(json!({"items": [{"product_id": it.product, "quantity": 1}]}))),
        row("get_checkout", read, 200).of(|it| it.checkout.clone(), missing),
        row("cancel_checkout", write, 200).of(|it| it.checkout.clone(), missing).renewing(Renewed::Checkout),
    ]
}

fn payments() -> Vec<Row> {
    let (read, write) = (Who::Page("read:payments"), Who::Page("write:payments"));
    let transactions = Who::Merchant("read:transactions");
    let refunds = Who::Merchant("read:refunds");
    let by_id = |row: Row| Row { needs_secret: true, ..row };
    let no_session = "payment_session_not_found";
    let no_transaction = "transaction_not_found";
    vec![
        row("initialize_payment", write, 200).naming(|it| Some(json!({"client_secret": it.client_secret}))),
        row("initialize_payment", write, 200).naming(|it| Some(json!({"session_id": it.session}))),
        by_id(row("initialize_payment", write, 200))
            .naming(|it| Some(json!({"object_type": "checkout", "object_id": it.checkout}))),
        by_id(row("initialize_payment", write, 200))
            .naming(|it| Some(json!({"object_type": "invoice", "object_id": it.invoice})))
            .renewing(Renewed::Invoice),
        by_id(row("initialize_payment", write, 200))
            .naming(|it| Some(json!({"object_type": "payment_link", "object_id": it.link}))),
        row("get_payment_status", read, 200).of(|it| it.session.clone(), no_session),
        row("get_payment_session", read, 200).of(|it| it.session.clone(), no_session),
        row("list_payment_methods", read, 200),
        row("get_payment_dashboard", Who::Merchant("read:payments"), 200),
        row("update_payment_settings", Who::Merchant("write:payments"), 200).with(|_| Some(json!({"locale": "en"}))),
        row("list_transactions", transactions, 200).listing(|_| None, |it| Some(it.transaction.clone())),
        row("list_transactions", transactions, 200).listing(|it| Some(format!("after={}", it.transaction)), |_| None),
        row("get_transaction", transactions, 200).of(|it| it.transaction.clone(), no_transaction),
        row("create_refund", Who::Merchant("write:refunds"), 201)
            .of(|it| it.transaction.clone(), no_transaction)
            .with(|_| Some(json!({"amount": "0.01"}))),
        row("list_refunds", refunds, 200).listing(|_| None, |_| Some("ref_".into())),
        row("list_refunds", refunds, 200).listing(|it| Some(format!("after={}", it.refund)), |_| None),
        row("get_refund", refunds, 200).of(|it| it.refund.clone(), "refund_not_found"),
        row("get_balance", Who::Merchant("read:payouts"), 200),
        row("list_ledger_accounts", transactions, 200),
        row("list_ledger_entries", transactions, 200)
            .listing(|it| Some(format!("transaction_id={}", it.transaction)), |it| Some(it.transaction.clone())),
        row("get_ledger_proof", transactions, 200),
        Row {
            query: |it| Some(format!("transaction_id={}", it.transaction)),
            foreign: Foreign::Refused(400, "validation_failed"),
            shows: |it| Some(it.transaction.clone()),
            ..row("get_ledger_proof", transactions, 200)
        },
    ]
}

fn links_customers_products() -> Vec<Row> {
    let read = |area| {
        Who::Merchant(match area {
            0 => "read:payment_links",
            1 => "read:customers",
            _ => "read:products",
        })
    };
    let write = |area| {
        Who::Merchant(match area {
            0 => "write:payment_links",
            1 => "write:customers",
            _ => "write:products",
        })
    };
    let [no_link, no_customer, no_product] = ["payment_link_not_found", "customer_not_found", "product_not_found"];
    vec![
        row("list_payment_links", read(0), 200).listing(|_| None, |it| Some(it.link.clone())),
        row("list_payment_links", read(0), 200).listing(|it| Some(format!("after={}", it.link)), |_| None),
        row("create_payment_link", write(0), 201)
            .in_live(400)
            .with(|_| Some(json!({"title": "Tea", "amount": "1.00"}))),
        row("get_payment_link", read(0), 200).of(|it| it.link.clone(), no_link),
        row("update_payment_link", write(0), 200)
            .of(|it| it.link.clone(), no_link)
            .with(|_| Some(json!({"description": "Changed"}))),
        row("delete_payment_link", write(0), 204).of(|it| it.link.clone(), no_link).renewing(Renewed::Link),
        row("list_customers", read(1), 200).listing(|_| None, |it| Some(it.customer.clone())),
        row("list_customers", read(1), 200)
            .listing(|it| Some(format!("email={}", it.email)), |it| Some(it.customer.clone())),
        // Another address each time, or it would only be found.
        row("create_customer", write(1), 201)
            .with(|it| Some(json!({"email": format!("{}@new.example", it.customer)})))
            .renewing(Renewed::Customer),
        row("get_customer", read(1), 200).of(|it| it.customer.clone(), no_customer),
        row("update_customer", write(1), 200)
            .of(|it| it.customer.clone(), no_customer)
            .with(|_| Some(json!({"metadata": {"colour": "red"}}))),
        row("delete_customer", write(1), 204).of(|it| it.customer.clone(), no_customer).renewing(Renewed::Customer),
        row("list_products", read(2), 200).listing(|_| None, |it| Some(it.product.clone())),
        row("list_products", read(2), 200).listing(|it| Some(format!("after={}", it.product)), |_| None),
        row("create_product", write(2), 201).with(|_| Some(json!({"name": "Pen", "price": "1.00"}))),
        row("get_product", read(2), 200).of(|it| it.product.clone(), no_product),
        row("update_product", write(2), 200)
            .of(|it| it.product.clone(), no_product)
            .with(|_| Some(json!({"description": "Changed"}))),
        row("delete_product", write(2), 204).of(|it| it.product.clone(), no_product).renewing(Renewed::Product),
    ]
}

fn invoices() -> Vec<Row> {
    let (read, write) = (Who::Merchant("read:invoices"), Who::Merchant("write:invoices"));
    let (missing, no_receipt) = ("invoice_not_found", "receipt_not_found");
    let order = |it: &Objects| {
        let items = json!([{"description": "Pen", "quantity": 1, "unit_price": "1.00"}]);
        Some(json!({"customer_id": it.customer, "due_date": "2099-01-31", "items": items}))
    };
    vec![
        row("list_invoices", read, 200).listing(|_| None, |it| Some(it.invoice.clone())),
        row("list_invoices", read, 200)
            .listing(|it| Some(format!("customer_id={}", it.customer)), |it| Some(it.invoice.clone())),
        row("create_invoice", write, 201).naming(order),
        row("create_invoice", write, 201).naming(|it| {
            let items = json!([{"product_id": it.product, "quantity": 1}]);
            let (email, name) = ("awa@shop.example", "Awa");
            Some(json!({"customer_email": email, "customer_name": name, "due_date": "2099-01-31", "items": items}))
        }),
        row("get_invoice", read, 200).of(|it| it.invoice.clone(), missing),
        row("update_invoice", write, 200)
            .of(|it| it.invoice.clone(), missing)
            .with(|_| Some(json!({"notes": "Changed"})))
            .renewing(Renewed::Invoice),
        row("finalize_invoice", write, 200).of(|it| it.draft.clone(), missing).renewing(Renewed::Draft),
        row("send_invoice", write, 200).of(|it| it.invoice.clone(), missing).renewing(Renewed::Invoice),
        row("cancel_invoice", write, 200).of(|it| it.invoice.clone(), missing).renewing(Renewed::Invoice),
        row("record_invoice_payment", write, 201)
            .of(|it| it.bill.clone(), missing)
            .with(|_| Some(json!({"amount": "0.01", "payment_method": "cash"}))),
        row("list_invoice_payments", read, 200).of(|it| it.bill.clone(), missing),
        row("list_invoice_receipts", read, 200).of(|it| it.bill.clone(), missing),
        row("download_invoice_pdf", read, 200).of(|it| it.invoice.clone(), missing),
        row("list_receipts", read, 200).listing(|_| Some("limit=100".into()), |it| Some(it.receipt.clone())),
        row("list_receipts", read, 200).listing(|it| Some(format!("after={}", it.receipt)), |_| None),
        row("get_receipt", read, 200).of(|it| it.receipt.clone(), no_receipt),
        row("get_receipt_by_number", read, 200).of(|it| it.receipt_number.clone(), no_receipt),
        row("download_receipt", read, 200).of(|it| it.receipt.clone(), no_receipt),
    ]
}

fn webhooks() -> Vec<Row> {
    let (read, write) = (Who::Merchant("read:webhooks"), Who::Merchant("write:webhooks"));
    let (missing, no_event) = ("webhook_endpoint_not_found", "event_not_found");
    let change = |operation| {
        row(operation, write, 200)
            .of(|it| it.endpoint.clone(), missing)
            .with(|_| Some(json!({"description": "Changed"})))
    };
    vec![
        row("list_webhook_endpoints", read, 200).listing(|_| Some("limit=100".into()), |it| Some(it.endpoint.clone())),
        row("list_webhook_endpoints", read, 200).listing(|it| Some(format!("after={}", it.endpoint)), |_| None),
        row("create_webhook_endpoint", write, 201)
            .with(|_| Some(json!({"url": "https://hooks.shop.example/", "enabled_events": ["refund.failed"]}))),
        row("get_webhook_endpoint", read, 200).of(|it| it.endpoint.clone(), missing),
        change("put_webhook_endpoint"),
        change("update_webhook_endpoint"),
        change("patch_webhook_endpoint"),
        row("delete_webhook_endpoint", write, 204).of(|it| it.endpoint.clone(), missing).renewing(Renewed::Endpoint),
        row("test_webhook_endpoint", write, 200).of(|it| it.endpoint.clone(), missing),
        row("rotate_webhook_secret", write, 200).of(|it| it.endpoint.clone(), missing).renewing(Renewed::Endpoint),
        row("list_events", read, 200).listing(|_| None, |_| Some("evt_".into())),
        row("list_events", read, 200).listing(|it| Some(format!("after={}", it.event)), |_| None),
        row("get_event", read, 200).of(|it| it.event.clone(), no_event),
        row("retry_event", write, 200).of(|it| it.event.clone(), no_event),
    ]
}
