//! Receipts: lists, and by what is printed on them. By validation code: [`super::locate`].

use domain::invoice::Invoice;
use domain::receipt::Receipt;
use domain::{Id, Scope};

use super::{Filter, Page, PageRequest};
use crate::entity::{key, parse};
use crate::error::Error;
use crate::tx::Tx;

const BY_NUMBER: &str = "\
select version, doc
from receipts
where organization_id = $1 and mode = $2 and number = $3";

const OF_INVOICE: &str = "\
select version, doc
from receipts
where organization_id = $1 and mode = $2 and invoice_id = $3
order by id";

pub fn list(tx: &mut Tx<'_>, scope: Scope, page: &PageRequest) -> Result<Page<Receipt>, Error> {
    Filter::within(scope).entities(tx, page)
}

pub fn by_number(tx: &mut Tx<'_>, scope: Scope, number: &str) -> Result<Option<Receipt>, Error> {
    tx.query_opt(BY_NUMBER, &key(scope, number))?.as_ref().map(parse).transpose()
}

/// In the order of the payments.
pub fn of_invoice(tx: &mut Tx<'_>, scope: Scope, invoice: Id<Invoice>) -> Result<Vec<Receipt>, Error> {
    tx.query(OF_INVOICE, &key(scope, &invoice.to_string()))?.iter().map(parse).collect()
}
