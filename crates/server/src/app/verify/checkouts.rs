//! A checkout is completed if and only if money paid it; what it shows of its latest attempt is that attempt.

use std::collections::{HashMap, HashSet};

use domain::checkout::{self, Checkout, Status};
use domain::payment::{Payable, PaymentSession, Transaction, TransactionStatus, TransactionSummary};
use domain::{Money, Scope};
use store::queries::verify as stored;
use store::{Entity, Tx};

use super::attempts::{self, Attempts, Paid};
use super::events::Subject;
use super::payments::by_id;
use super::{Ends, Place, Report, events, page};
use crate::error::Failure;

const TABLE: &str = Checkout::TABLE;

pub(super) fn check(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    let ends = Ends::of::<Checkout>();
    page::<Checkout>(tx, scope, report, place, |tx, report, checkouts, span| {
        let span = ends.cut(span);
        let amounts: HashMap<String, Money> =
            checkouts.iter().map(|checkout| (checkout.id.to_string(), checkout.order.amount)).collect();
        let known = checkouts.iter().map(|checkout| (checkout.id.to_string(), known(checkout))).collect();
        let attempts = attempts::of(tx, scope, span, report, &known, |report, transaction| {
            let object = transaction.payable.object_id();
            let same = amounts.get(&object) == Some(&transaction.amount);
            report.expect(same, Transaction::TABLE, &transaction.id.to_string(), || {
                format!("its amount is not that of {object}")
            });
        })?;
        let sessions = checkouts.iter().filter_map(|checkout| checkout.payment_session);
        let sessions: Vec<String> = sessions.map(|id| id.to_string()).collect();
        let sessions = by_id::<PaymentSession>(tx, scope, &sessions)?;
        let pending = checkouts.iter().filter(|checkout| checkout.stored_status() == Status::Pending);
        let pending: Vec<String> = pending.map(|checkout| checkout.id.to_string()).collect();
        let owed: HashSet<String> = stored::owed(tx, scope, &["expire_checkout"], &pending)?.into_iter().collect();
        for checkout in &checkouts {
            let id = checkout.id.to_string();
            order(report, checkout);
            if let Some(named) = checkout.payment_session {
                let session = sessions.get(&named.to_string());
                let is_its_own = session.is_some_and(|session| session.payable == Payable::Checkout(checkout.id));
                report.expect(is_its_own, TABLE, &id, || format!("{named} is no session of it"));
            }
            paid(report, checkout, attempts.get(&id).unwrap_or(&Attempts::default()));
            report.expect(checkout.stored_status() != Status::Pending || owed.contains(&id), TABLE, &id, || {
                "it is pending and no timer will expire it".into()
            });
        }
        let subject = |checkout| {
            let id = Checkout::id(checkout).to_string();
            let attempts = attempts.get(&id);
            (id, Subject::Checkout(checkout, attempts))
        };
        events::check(tx, scope, span, report, &checkouts.iter().map(subject).collect())
    })
}

fn known(checkout: &Checkout) -> Paid {
    Paid {
        shown: checkout.transaction.as_ref().map(|shown| shown.id),
        is_open: match checkout.stored_status() {
            Status::Pending | Status::Completed => true,
            Status::Expired | Status::Cancelled => false,
        },
    }
}

fn order(report: &mut Report, checkout: &Checkout) {
    let (id, order) = (checkout.id.to_string(), &checkout.order);
    report.expect(order.amount.minor > 0, TABLE, &id, || "it costs nothing".into());
    if let Some(items) = &order.items {
        let adds_up = items.iter().all(|item| {
            item.unit_price.currency == order.amount.currency
                && item.total.currency == order.amount.currency
                && item.quantity > 0
                && item.unit_price.checked_times(item.quantity) == Some(item.total)
        });
        report.expect(adds_up && checkout::stored_sum(items) == Some(order.amount), TABLE, &id, || {
            "its items don't add up to its amount".into()
        });
    }
}

fn paid(report: &mut Report, checkout: &Checkout, attempts: &Attempts) {
    let id = checkout.id.to_string();
    let status = checkout.stored_status();
    let decisive = match status {
        Status::Completed => Some(&attempts.paid),
        Status::Expired | Status::Cancelled => Some(&attempts.late),
        Status::Pending => None,
    };
    report.expect(attempts.paid.len() == usize::from(status == Status::Completed), TABLE, &id, || {
        format!("it is {} and was paid {} times", status.as_str(), attempts.paid.len())
    });
    let takes_late = matches!(status, Status::Expired | Status::Cancelled);
    report.expect(attempts.late.len() <= usize::from(takes_late), TABLE, &id, || {
        format!("it is {} and got late money {} times", status.as_str(), attempts.late.len())
    });
    report.expect(status != Status::Pending || attempts.completed == 0, TABLE, &id, || {
        "it is pending although money came".into()
    });
    // An older attempt that moves again counts again, so it may be more than there are.
    report.expect(checkout.attempt_count >= attempts.count, TABLE, &id, || {
        format!("it counts {} attempts and has {}", checkout.attempt_count, attempts.count)
    });
    match (&checkout.transaction, &attempts.shown) {
        (None, _) => report.expect(attempts.count == 0, TABLE, &id, || "it shows none of its attempts".into()),
        (Some(shown), None) => {
            report.fault(TABLE, id.as_str(), format!("it shows {}, which is no attempt of it", shown.id))
        }
        (Some(shown), Some((truth, status))) => report.expect(shows(shown, truth, *status), TABLE, &id, || {
            format!("what it shows of {} is not what that is", shown.id)
        }),
    }
    if let Some([only]) = decisive.map(Vec::as_slice) {
        let shown = checkout.transaction.as_ref().map(|shown| shown.id);
        report.expect(shown == Some(*only), TABLE, &id, || format!("it was paid by {only} and shows another attempt"));
    }
}

/// An attempt that is closed together with its session may be shown as it was before.
fn shows(shown: &TransactionSummary, truth: &TransactionSummary, status: TransactionStatus) -> bool {
    let is_closed = matches!(status, TransactionStatus::Cancelled | TransactionStatus::Expired);
    let was_open = matches!(shown.status.as_str(), "pending" | "processing");
    let same_money = shown.amount == truth.amount && shown.fee == truth.fee && shown.net == truth.net;
    same_money && (shown.status == truth.status || is_closed && was_open)
}
