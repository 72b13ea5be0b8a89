//! What was paid of invoices.

use domain::invoice::{Invoice, InvoicePayment};
use domain::{Id, Scope};

use crate::entity::{key, parse};
use crate::error::Error;
use crate::tx::Tx;

const OF_INVOICE: &str = "\
select version, doc
from invoice_payments
where organization_id = $1 and mode = $2 and invoice_id = $3
order by id";

/// In the order in which they came.
pub fn of_invoice(tx: &mut Tx<'_>, scope: Scope, invoice: Id<Invoice>) -> Result<Vec<InvoicePayment>, Error> {
    tx.query(OF_INVOICE, &key(scope, &invoice.to_string()))?.iter().map(parse).collect()
}
