//! The attempts to pay invoices online, and what invoices tell.

use domain::Scope;
use domain::invoice::{Invoice, Status};
use domain::payment::Transaction;
use store::queries::verify::Span;
use store::{Entity, Tx};

use super::attempts::{self, Paid};
use super::events::Subject;
use super::{Report, events};
use crate::error::Failure;

const TABLE: &str = Invoice::TABLE;

pub(super) fn check(
    tx: &mut Tx<'_>,
    scope: Scope,
    span: Span<'_>,
    report: &mut Report,
    invoices: &[Invoice],
) -> Result<(), Failure> {
    let known = invoices.iter().map(|invoice| (invoice.id.to_string(), known(invoice))).collect();
    let attempts = attempts::of(tx, scope, span, report, &known, |report, transaction| {
        let is_part = transaction.amount.minor > 0;
        report.expect(is_part, Transaction::TABLE, &transaction.id.to_string(), || "it is of nothing".into());
    })?;
    for invoice in invoices {
        let id = invoice.id.to_string();
        let attempts = attempts.get(&id);
        let (paid, late) = attempts.map_or((0, 0), |attempts| (attempts.paid.len(), attempts.late.len()));
        let takes = !matches!(invoice.stored_status(), Status::Draft | Status::Cancelled);
        report.expect(paid == 0 || takes, TABLE, &id, || {
            format!("it is {} and was paid {paid} times online", invoice.stored_status().as_str())
        });
        let takes_late = invoice.stored_status() == Status::Cancelled;
        report.expect(late == 0 || takes_late, TABLE, &id, || {
            format!("it is {} and got late money {late} times", invoice.stored_status().as_str())
        });
    }
    let subject = |invoice| {
        let id = Invoice::id(invoice).to_string();
        let attempts = attempts.get(&id);
        (id, Subject::Invoice(invoice, attempts))
    };
    events::check(tx, scope, span, report, &invoices.iter().map(subject).collect())
}

fn known(invoice: &Invoice) -> Paid {
    Paid {
        shown: invoice.transaction.as_ref().map(|shown| shown.id),
        // Failures after the last payment are nobody's any more.
        is_open: match invoice.stored_status() {
            Status::Draft | Status::Pending | Status::PartiallyPaid | Status::Overdue => true,
            Status::Paid | Status::Cancelled => false,
        },
    }
}
