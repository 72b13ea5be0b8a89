//! Lists of checkouts.

use domain::checkout::{Checkout, Status};
use domain::{Scope, Timestamp};

use super::{Filter, Page, PageRequest};
use crate::error::Error;
use crate::tx::Tx;

#[derive(Debug, Clone, Default)]
pub struct CheckoutFilter {
    pub status: Option<Status>,
    pub reference: Option<String>,
    pub customer_id: Option<String>,
    /// Both ends included, by creation.
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// Newest first.
pub fn list(
    tx: &mut Tx<'_>,
    scope: Scope,
    filter: &CheckoutFilter,
    page: &PageRequest,
) -> Result<Page<Checkout>, Error> {
    conditions(scope, filter, tx.now()).entities(tx, page)
}

/// How the database would go about a list, for whoever checks that no index is missing.
pub fn plans(tx: &mut Tx<'_>, scope: Scope, filter: &CheckoutFilter, page: &PageRequest) -> Result<[String; 2], Error> {
    conditions(scope, filter, tx.now()).plans::<Checkout>(tx, page)
}

fn conditions(scope: Scope, filter: &CheckoutFilter, now: Timestamp) -> Filter {
    let mut conditions = Filter::within(scope);
    // The clock decides what is expired, whether or not the timer ran.
    match filter.status {
        Some(Status::Pending) => {
            conditions.ends_by_clock("status = 'pending' and deadline_at > {}", "deadline_at", now);
        }
        Some(Status::Expired) => {
            let expired = "status in ('pending', 'expired') and (status = 'expired' or deadline_at <= {})";
            conditions.begins_by_clock(expired, now);
        }
        Some(status @ (Status::Completed | Status::Cancelled)) => {
            conditions.and("status = {}", [status.as_str().into()]);
        }
        None => {}
    }
    let is_dropped = filter.status.is_some() && domain::planted!(Defect::FilterDropped);
    if let Some(reference) = &filter.reference.clone().filter(|_| !is_dropped) {
        conditions.and("reference = {}", [reference.as_str().into()]);
    }
    if let Some(customer_id) = &filter.customer_id {
        conditions.and("customer_id = {}", [customer_id.as_str().into()]);
    }
    conditions.made_between::<Checkout>(filter.from, filter.until);
    conditions
}
