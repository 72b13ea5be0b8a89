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

pub fn list(
    tx: &mut Tx<'_>,
    scope: Scope,
    filter: &CheckoutFilter,
    page: &PageRequest,
) -> Result<Page<Checkout>, Error> {
    let now = tx.now().micros();
    let mut conditions = Filter::within(scope);
    // The clock decides what is expired, whether or not the timer ran.
    match filter.status {
        Some(Status::Pending) => conditions.and("status = 'pending' and deadline_at > {}", [now.into()]),
        Some(Status::Expired) => {
            conditions.and("(status = 'expired' or status = 'pending' and deadline_at <= {})", [now.into()]);
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
    if let Some(from) = filter.from {
        conditions.and("created_at >= {}", [from.micros().into()]);
    }
    if let Some(until) = filter.until {
        conditions.and("created_at <= {}", [until.micros().into()]);
    }
    conditions.entities(tx, page)
}
