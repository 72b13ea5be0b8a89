//! What a request names, looked up where its other faults keep it from running: its sender learns of all faults at once.

use domain::checkout::Item;
use domain::customer::Customer;
use domain::{Currency, Id, Scope, Timestamp};
use store::Tx;

use super::checkouts::WantedMethods;
use super::customers::CustomerChange;
use super::products::Lines;
use super::{Context, checkouts, customers, organization_of, payment_links, products};
use crate::error::Failure;
use crate::fault::Fault;

/// As far as it could be read.
#[derive(Debug, Clone, Default)]
pub struct Named {
    pub customer: Option<Id<Customer>>,
    /// A customer who is changed, as far as the change could be read.
    pub change: Option<(Id<Customer>, CustomerChange)>,
    /// Lines with products, and what they are sold in.
    pub lines: Option<(Currency, Lines)>,
    /// The lines of the object that is changed.
    pub held: Vec<Item>,
    /// Of a checkout; none where what was sent for them could not be read.
    pub methods: Option<WantedMethods>,
    /// What a payment link is paid in.
    pub link_currency: Option<Currency>,
    /// When a payment link ends.
    pub expiration_date: Option<Timestamp>,
}

pub fn faults(tx: &mut Tx<'_>, context: &Context, scope: Scope, named: &Named) -> Result<Vec<Fault>, Failure> {
    let mut faults = Vec::new();
    if let Some((currency, lines)) = &named.lines {
        products::refuse_lines(tx, scope, *currency, &named.held, lines, &mut faults)?;
    }
    // Without a rail there is a refusal instead.
    if context.has_rails(scope.mode) {
        let organization = organization_of(tx, scope)?;
        if let Some(wanted) = &named.methods {
            checkouts::available_methods(context, &organization, wanted, &mut faults);
        }
        if let Some(currency) = named.link_currency {
            payment_links::refuse_untaken(context, &organization, currency, &mut faults);
        }
    }
    customers::named(tx, scope, named.customer, &mut faults)?;
    if let Some(change) = &named.change {
        customers::refuse_contact(tx, scope, change, &mut faults)?;
    }
    payment_links::refuse_past(named.expiration_date, tx.now(), &mut faults);
    Ok(faults)
}
