use domain::invoice::{Invoice, InvoicePayment};
use domain::{Id, Scope};

use super::Entity;
use crate::sql::Value;

impl Entity for Invoice {
    type Id = Id<Invoice>;

    const TABLE: &'static str = "invoices";
    const INSERT: &'static str = "\
insert into invoices (organization_id, mode, id, version, doc, number, status, customer_id, subscription_id, currency,
    amount_minor, tax_minor, total_minor, paid_minor, remaining_minor, overdue_at, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";
    const UPDATE: &'static str = "\
update invoices
set version = $4, doc = $5, number = $6, status = $7, customer_id = $8, subscription_id = $9, currency = $10,
    amount_minor = $11, tax_minor = $12, total_minor = $13, paid_minor = $14, remaining_minor = $15, overdue_at = $16,
    created_at = $17, updated_at = $18
where organization_id = $1 and mode = $2 and id = $3 and version = $19";
    const SELECT: &'static str = "\
select version, doc
from invoices
where organization_id = $1 and mode = $2 and id = $3";

    fn id(&self) -> Id<Invoice> {
        self.id
    }
    fn scope(&self) -> Scope {
        self.scope
    }
    fn version(&self) -> i64 {
        self.version
    }
    fn set_version(&mut self, version: i64) {
        self.version = version;
    }
    fn page(&self) -> Option<String> {
        Some(self.id.to_string())
    }
    fn adds_up(&self) -> bool {
        Invoice::adds_up(self)
    }
    fn columns(&self) -> Vec<Value> {
        let bill = self.bill();
        vec![
            self.number.as_str().into(),
            self.stored_status().as_str().into(),
            self.customer_id.to_string().into(),
            self.subscription_id.clone().into(),
            bill.currency().code().into(),
            bill.amount().minor.into(),
            bill.tax().minor.into(),
            bill.total().minor.into(),
            self.paid().minor.into(),
            // Also of one that does not add up, which whoever checks the books compares with its columns.
            bill.total().minor.saturating_sub(self.paid().minor).into(),
            self.overdue_at().map(|at| at.micros()).into(),
            self.created_at.micros().into(),
            self.updated_at.micros().into(),
        ]
    }
}

impl Entity for InvoicePayment {
    type Id = Id<InvoicePayment>;

    const TABLE: &'static str = "invoice_payments";
    const INSERT: &'static str = "\
insert into invoice_payments (organization_id, mode, id, version, doc, invoice_id, transaction_id, receipt_id, currency,
    amount_minor, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    const UPDATE: &'static str = "\
update invoice_payments
set version = $4, doc = $5, invoice_id = $6, transaction_id = $7, receipt_id = $8, currency = $9, amount_minor = $10,
    created_at = $11
where organization_id = $1 and mode = $2 and id = $3 and version = $12";
    const SELECT: &'static str = "\
select version, doc
from invoice_payments
where organization_id = $1 and mode = $2 and id = $3";

    fn id(&self) -> Id<InvoicePayment> {
        self.id
    }
    fn scope(&self) -> Scope {
        self.scope
    }
    fn version(&self) -> i64 {
        self.version
    }
    fn set_version(&mut self, version: i64) {
        self.version = version;
    }
    fn columns(&self) -> Vec<Value> {
        vec![
            self.invoice.to_string().into(),
            self.transaction.to_string().into(),
            self.receipt.to_string().into(),
            self.amount.currency.code().into(),
            self.amount.minor.into(),
            self.created_at.micros().into(),
        ]
    }
}
