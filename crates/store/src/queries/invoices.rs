//! Lists of invoices.

use domain::invoice::{Invoice, Status};
use domain::{Scope, Timestamp};

use super::{Filter, Page, PageRequest};
use crate::error::Error;
use crate::tx::Tx;

/// What a list can be narrowed to: a status, or a word for several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusFilter {
    Is(Status),
    /// Issued, and not paid in full.
    Open,
    /// Nothing is: invoices are not written off.
    Uncollectible,
}

impl StatusFilter {
    pub const WORDS: [(&'static str, StatusFilter); 8] = [
        ("draft", StatusFilter::Is(Status::Draft)),
        ("pending", StatusFilter::Is(Status::Pending)),
        ("partially_paid", StatusFilter::Is(Status::PartiallyPaid)),
        ("overdue", StatusFilter::Is(Status::Overdue)),
        ("paid", StatusFilter::Is(Status::Paid)),
        ("cancelled", StatusFilter::Is(Status::Cancelled)),
        ("open", StatusFilter::Open),
        ("uncollectible", StatusFilter::Uncollectible),
    ];
}

#[derive(Debug, Clone, Default)]
pub struct InvoiceFilter {
    pub status: Option<StatusFilter>,
    pub customer_id: Option<String>,
    pub number: Option<String>,
    pub subscription_id: Option<String>,
    /// Both ends included, by creation.
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// As the index `invoices_open` says it, word for word: so the databases see that it serves.
const OPEN: &str = "status in ('pending', 'partially_paid', 'overdue')";

pub fn list(tx: &mut Tx<'_>, scope: Scope, filter: &InvoiceFilter, page: &PageRequest) -> Result<Page<Invoice>, Error> {
    conditions(scope, filter, tx.now()).entities(tx, page)
}

/// How the database would go about a list, for whoever checks that no index is missing.
pub fn plans(tx: &mut Tx<'_>, scope: Scope, filter: &InvoiceFilter, page: &PageRequest) -> Result<[String; 2], Error> {
    conditions(scope, filter, tx.now()).plans::<Invoice>(tx, page)
}

fn conditions(scope: Scope, filter: &InvoiceFilter, now: Timestamp) -> Filter {
    let mut conditions = Filter::within(scope);
    // The clock decides what is overdue, whether or not the timer ran.
    match filter.status {
        Some(StatusFilter::Is(Status::Pending)) => {
            conditions.ends_by_clock("status = 'pending' and overdue_at > {}", "overdue_at", now);
        }
        Some(StatusFilter::Is(Status::Overdue)) => {
            let by_clock = format!("{OPEN} and (status = 'overdue' or overdue_at <= {{}})");
            conditions.begins_by_clock(&by_clock, now);
        }
        Some(StatusFilter::Is(status @ (Status::Draft | Status::PartiallyPaid | Status::Paid | Status::Cancelled))) => {
            conditions.and("status = {}", [status.as_str().into()]);
        }
        Some(StatusFilter::Open) => conditions.and(OPEN, []),
        Some(StatusFilter::Uncollectible) => conditions.and("1 = 0", []),
        None => {}
    }
    if let Some(customer_id) = &filter.customer_id {
        conditions.and("customer_id = {}", [customer_id.as_str().into()]);
    }
    if let Some(number) = &filter.number {
        conditions.and("number = {}", [number.as_str().into()]);
    }
    if let Some(subscription_id) = &filter.subscription_id {
        conditions.and("subscription_id = {}", [subscription_id.as_str().into()]);
    }
    conditions.made_between::<Invoice>(filter.from, filter.until);
    let is_of_few = [&filter.customer_id, &filter.number, &filter.subscription_id].iter().any(|part| part.is_some());
    let is_open = matches!(filter.status, Some(StatusFilter::Open | StatusFilter::Is(Status::Overdue)));
    if is_open && !is_of_few {
        conditions.by_index("invoices_open");
    }
    conditions
}
