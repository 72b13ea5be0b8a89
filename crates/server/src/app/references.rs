//! What a request names, looked up where its other faults keep it from running: its sender learns of all faults at once.

use domain::customer::Customer;
use domain::{Currency, Id, Scope, Timestamp};
use store::Tx;

use super::products::NewItem;
use super::{customers, payment_links, products};
use crate::error::Failure;
use crate::fault::Fault;

/// As far as it could be read.
#[derive(Debug, Clone, Default)]
pub struct Named {
    pub customer: Option<Id<Customer>>,
    /// Lines with products, and what they are sold in.
    pub lines: Option<(Currency, Vec<NewItem>)>,
    /// When a payment link ends.
    pub expiration_date: Option<Timestamp>,
}

pub fn faults(tx: &mut Tx<'_>, scope: Scope, named: &Named) -> Result<Vec<Fault>, Failure> {
    let mut faults = Vec::new();
    if let Some((currency, items)) = &named.lines {
        products::price_lines(tx, scope, *currency, items, &mut faults)?;
    }
    customers::named(tx, scope, named.customer, &mut faults)?;
    payment_links::refuse_past(named.expiration_date, tx.now(), &mut faults);
    Ok(faults)
}
