//! Events: 1, 2, 3 … for each object without a gap, one for each thing that happened, each told as it happened, and each
//! with one place in the log or waiting for one.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use domain::checkout::{self, Checkout};
use domain::event::{Event, EventType};
use domain::invoice::{self, Invoice};
use domain::payment::{Payable, PaymentSession, SessionStatus, Transaction, TransactionStatus};
use domain::payment_link::{self, PaymentLink};
use domain::refund::{Refund, RefundStatus};
use domain::{Id, Mode, Money, Scope, Timestamp};
use serde::Deserialize;
use store::queries::verify::{self as stored, EventRow, Span};
use store::{Entity, Tx};

use super::Report;
use super::attempts::Attempts;
use super::payments::by_id;
use crate::error::Failure;

const TABLE: &str = "events";
const LOG: &str = "event_log";

/// What an event's bytes say.
#[derive(Deserialize)]
struct Envelope {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    api_version: String,
    created_at: String,
    created: String,
    livemode: bool,
    object_id: String,
    sequence: i64,
    data: Data,
}

/// The part of it that is about money and state.
#[derive(Deserialize)]
struct Data {
    id: String,
    status: String,
    amount: String,
    currency: String,
    /// Of all but refunds.
    livemode: Option<bool>,
    reason: Option<String>,
    tax_amount: Option<String>,
    total_amount: Option<String>,
    paid_amount: Option<String>,
    remaining_amount: Option<String>,
    min_amount: Option<String>,
    max_amount: Option<String>,
    usage_count: Option<i64>,
    transaction: Option<Summary>,
    payment_session_id: Option<String>,
    transaction_id: Option<String>,
    client_secret: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Summary {
    id: String,
    status: String,
    amount: String,
    fee: String,
    net_amount: String,
}

/// What events tell of, with what they have to add up to.
pub(super) enum Subject<'a> {
    Checkout(&'a Checkout, Option<&'a Attempts>),
    Invoice(&'a Invoice, Option<&'a Attempts>),
    PaymentLink(&'a PaymentLink),
    /// A payment of what many people pay at once.
    Session(&'a PaymentSession, Option<&'a Transaction>),
    Refund(&'a Refund),
}

/// The events of one object so far.
#[derive(Default)]
struct Told {
    last: i64,
    by_kind: HashMap<EventType, i64>,
}

/// The events of a span of objects of one kind, which includes those that are not there.
pub(super) fn check(
    tx: &mut Tx<'_>,
    scope: Scope,
    span: Span<'_>,
    report: &mut Report,
    known: &HashMap<String, Subject<'_>>,
) -> Result<(), Failure> {
    let mut told: HashMap<String, Told> = HashMap::new();
    let mut cursor = None;
    loop {
        let rows = stored::events(tx, scope, span, &mut cursor)?;
        report.count(TABLE, rows.len());
        let mut events = Vec::with_capacity(rows.len());
        for row in rows {
            match row {
                Ok(event) => events.push(event),
                Err(why) => report.fault(TABLE, "?", why),
            }
        }
        places(tx, scope, report, &events)?;
        let envelopes: Vec<Option<Envelope>> = events.iter().map(|event| read(report, event)).collect();
        let ids: HashSet<String> = envelopes
            .iter()
            .flatten()
            .filter_map(|envelope| Some(envelope.data.transaction.as_ref()?.id.clone()))
            .collect();
        let transactions = by_id::<Transaction>(tx, scope, &ids.into_iter().collect::<Vec<_>>())?;
        for (event, envelope) in events.iter().zip(&envelopes) {
            let Some(subject) = known.get(&event.object_id) else {
                report.fault(
                    TABLE,
                    event.id.as_str(),
                    format!("it tells of {}, of which nothing can be read", event.object_id),
                );
                continue;
            };
            let told = told.entry(event.object_id.clone()).or_default();
            report.expect(told.last.checked_add(1) == Some(event.sequence), TABLE, &event.id, || {
                format!("it is number {} of {} behind number {}", event.sequence, event.object_id, told.last)
            });
            told.last = event.sequence;
            if let Some(kind) = EventType::parse(&event.kind) {
                *told.by_kind.entry(kind).or_default() += 1;
            }
            if let Some(envelope) = envelope {
                frame(report, scope, event, envelope, subject);
                snapshot(report, event, &envelope.data, subject, &transactions);
            }
        }
        if cursor.is_none() {
            break;
        }
    }
    for (id, subject) in known {
        complete(report, id, subject, told.get(id).unwrap_or(&Told::default()));
    }
    Ok(())
}

/// Each in the log or waiting for its place there, never both.
fn places(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, events: &[EventRow]) -> Result<(), Failure> {
    let ids: Vec<String> = events.iter().map(|event| event.id.clone()).collect();
    let (logged, waiting) = stored::logged(tx, scope, &ids)?;
    let (logged, waiting): (HashSet<_>, HashSet<_>) = (logged.into_iter().collect(), waiting.into_iter().collect());
    for id in &ids {
        match (logged.contains(id), waiting.contains(id)) {
            (true, false) | (false, true) => {}
            (false, false) => report.fault(TABLE, id.as_str(), "it has no place in the log and waits for none"),
            (true, true) => report.fault(LOG, id.as_str(), "it has a place in the log and waits for another"),
        }
    }
    Ok(())
}

fn read(report: &mut Report, event: &EventRow) -> Option<Envelope> {
    if let Some(damage) = &event.damage {
        report.fault(TABLE, event.id.as_str(), damage.as_str());
    }
    match serde_json::from_str(&event.body) {
        Ok(envelope) => Some(envelope),
        Err(error) => {
            report.fault(TABLE, event.id.as_str(), format!("its body does not parse: {error}"));
            None
        }
    }
}

/// Around whatever is told.
fn frame(report: &mut Report, scope: Scope, event: &EventRow, envelope: &Envelope, subject: &Subject<'_>) {
    let second = Timestamp::from_stored(event.created_at).map(Timestamp::floor_to_second);
    // An event's id begins with its time, to the millisecond.
    let made_at_ms = event.id.parse().ok().map(|id: Id<Event>| id.made_at_ms());
    let live = scope.mode == Mode::Live;
    let row_agrees = envelope.id == event.id
        && made_at_ms == Some(event.created_at / 1000)
        && envelope.kind == event.kind
        && envelope.api_version == "v1"
        && envelope.object_id == event.object_id
        && envelope.sequence == event.sequence
        && second.is_ok()
        && Timestamp::parse(&envelope.created_at) == second
        && envelope.created == envelope.created_at
        && envelope.livemode == live
        && envelope.data.livemode == subject.shows_mode().then_some(live);
    report.expect(row_agrees, TABLE, &event.id, || "its columns differ from its body".into());
}

fn snapshot(
    report: &mut Report,
    event: &EventRow,
    data: &Data,
    subject: &Subject<'_>,
    transactions: &HashMap<String, Transaction>,
) {
    let is_shown = subject.is_shown(data) && data.client_secret.is_none();
    report.expect(is_shown, TABLE, &event.id, || format!("its body does not show {}", event.object_id));
    let Some(kind) = EventType::parse(&event.kind) else {
        report.fault(TABLE, event.id.as_str(), format!("{:?} is no event", event.kind));
        return;
    };
    let attempt = data.transaction.as_ref();
    let is_said = match kind {
        EventType::PaymentSucceeded => attempt.is_some_and(|attempt| attempt.status == "completed"),
        EventType::PaymentFailed => attempt.is_some_and(|attempt| attempt.status == "failed"),
        _ => subject.says(kind, &data.status),
    };
    report.expect(is_said, TABLE, &event.id, || format!("its body does not say {}", event.kind));
    if let Some(attempt) = attempt {
        let is_true = transactions.get(&attempt.id).is_some_and(|truth| {
            let amount = truth.amount;
            let tells = |fee: Money| {
                let net = amount.minor.checked_sub(fee.minor).map(|net| Money::new(net, amount.currency).to_string());
                attempt.fee == fee.to_string() && net.as_ref() == Some(&attempt.net_amount)
            };
            attempt.amount == amount.to_string() && fees_told(attempt, truth).any(tells) && subject.is_paid_by(truth)
        });
        let is_named = data.transaction_id.as_ref().is_none_or(|id| *id == attempt.id);
        report.expect(is_true && is_named, TABLE, &event.id, || format!("its body does not show {}", attempt.id));
    }
}

/// What was agreed; of money that came twice the ledger takes nothing. Before it came nobody knew that it would, and older
/// events tell what was agreed of that too.
fn fees_told(attempt: &Summary, truth: &Transaction) -> impl Iterator<Item = Money> {
    let came = TransactionStatus::parse(&attempt.status).is_some_and(TransactionStatus::is_paid);
    let agreed = truth.agreed_fee();
    let nothing = (came && truth.duplicate).then(|| Money::new(0, agreed.currency));
    nothing.into_iter().chain([agreed])
}

impl Subject<'_> {
    fn table(&self) -> &'static str {
        match self {
            Subject::Checkout(..) => Checkout::TABLE,
            Subject::Invoice(..) => Invoice::TABLE,
            Subject::PaymentLink(_) => PaymentLink::TABLE,
            Subject::Session(..) => PaymentSession::TABLE,
            Subject::Refund(_) => Refund::TABLE,
        }
    }

    fn shows_mode(&self) -> bool {
        match self {
            Subject::Checkout(..) | Subject::Invoice(..) | Subject::PaymentLink(_) | Subject::Session(..) => true,
            Subject::Refund(_) => false,
        }
    }

    fn sequence(&self) -> i64 {
        match self {
            Subject::Checkout(checkout, _) => checkout.event_sequence,
            Subject::Invoice(invoice, _) => invoice.event_sequence,
            Subject::PaymentLink(link) => link.event_sequence,
            Subject::Session(session, _) => session.event_sequence,
            Subject::Refund(refund) => refund.event_sequence,
        }
    }

    /// What never changes of it, and what has to agree with itself.
    fn is_shown(&self, data: &Data) -> bool {
        match self {
            Subject::Checkout(checkout, _) => {
                let amount = checkout.order.amount;
                data.id == checkout.id.to_string()
                    && data.amount == amount.to_string()
                    && data.currency == amount.currency.code()
            }
            Subject::Invoice(invoice, _) => {
                let currency = invoice.bill().currency();
                let read = |text: &Option<String>| Money::parse_stored(text.as_deref()?, currency).ok();
                let minor = |text: &Option<String>| read(text).map(|money| i128::from(money.minor));
                let lines = Money::parse_stored(&data.amount, currency).ok().map(|money| i128::from(money.minor));
                let total = minor(&data.total_amount);
                let sum = |one: Option<i128>, other: Option<i128>| Some(one? + other?);
                let adds_up = total.is_some()
                    && total == sum(lines, minor(&data.tax_amount))
                    && total == sum(minor(&data.paid_amount), minor(&data.remaining_amount));
                data.id == invoice.id.to_string() && data.currency == currency.code() && adds_up
            }
            Subject::PaymentLink(link) => {
                let (amount, min, max) = link.price().shown();
                let shown = |bound: Option<Money>| bound.map(|bound| bound.to_string());
                data.id == link.id.to_string()
                    && data.currency == amount.currency.code()
                    && data.amount == amount.to_string()
                    && data.min_amount == shown(min)
                    && data.max_amount == shown(max)
                    && data.usage_count.is_some_and(|count| (0..=link.usage_count()).contains(&count))
            }
            Subject::Session(session, _) => {
                data.id == session.payable.object_id()
                    && data.payment_session_id == Some(session.id.to_string())
                    && data.currency == session.amount.currency.code()
            }
            Subject::Refund(refund) => {
                data.id == refund.id.to_string()
                    && data.transaction_id == Some(refund.transaction.to_string())
                    && data.amount == refund.amount.to_string()
                    && data.currency == refund.amount.currency.code()
                    && data.reason == refund.reason
            }
        }
    }

    /// Whether a state is one that an event can tell.
    fn says(&self, kind: EventType, status: &str) -> bool {
        match (self, kind) {
            (Subject::Checkout(..), EventType::CheckoutCompleted) => status == "completed",
            (Subject::Checkout(..), EventType::CheckoutExpired) => status == "expired",
            (Subject::Checkout(..), EventType::CheckoutCancelled) => status == "cancelled",
            (Subject::Invoice(..), EventType::InvoiceCreated | EventType::InvoiceUpdated) => {
                matches!(status, "draft" | "pending" | "overdue")
            }
            (Subject::Invoice(..), EventType::InvoiceFinalized) => status == "pending",
            (Subject::Invoice(..), EventType::InvoiceSent | EventType::InvoicePaymentFailed) => {
                matches!(status, "pending" | "partially_paid" | "overdue")
            }
            (Subject::Invoice(..), EventType::InvoiceOverdue) => status == "overdue",
            (Subject::Invoice(..), EventType::InvoicePartiallyPaid) => status == "partially_paid",
            (Subject::Invoice(..), EventType::InvoicePaid) => status == "paid",
            (Subject::Invoice(..), EventType::InvoiceCancelled) => status == "cancelled",
            (Subject::PaymentLink(_), EventType::PaymentLinkCreated) => status == "active",
            (Subject::PaymentLink(_), EventType::PaymentLinkUpdated) => matches!(status, "active" | "inactive"),
            (Subject::PaymentLink(_), EventType::PaymentLinkDeactivated) => status == "inactive",
            // Older ones say `deleted`.
            (Subject::PaymentLink(_), EventType::PaymentLinkDeleted) => matches!(status, "inactive" | "deleted"),
            (Subject::Refund(_), EventType::RefundCompleted) => status == "completed",
            (Subject::Refund(_), EventType::RefundFailed) => status == "failed",
            _ => false,
        }
    }

    fn is_paid_by(&self, transaction: &Transaction) -> bool {
        match self {
            Subject::Checkout(checkout, _) => transaction.payable == Payable::Checkout(checkout.id),
            Subject::Invoice(invoice, _) => transaction.payable == Payable::Invoice(invoice.id),
            Subject::PaymentLink(link) => transaction.payable == Payable::PaymentLink(link.id),
            Subject::Session(session, _) => session.transaction == Some(transaction.id),
            Subject::Refund(_) => false,
        }
    }

    /// How often each thing happened, at least and at most.
    fn happened(&self) -> Vec<(EventType, RangeInclusive<i64>)> {
        let exactly = |count: i64| count..=count;
        let once = |happened: bool| exactly(i64::from(happened));
        let nothing = Attempts::default();
        match self {
            Subject::Checkout(checkout, attempts) => {
                let (status, attempts) = (checkout.stored_status(), attempts.unwrap_or(&nothing));
                vec![
                    (EventType::CheckoutCompleted, once(status == checkout::Status::Completed)),
                    (EventType::CheckoutExpired, once(status == checkout::Status::Expired)),
                    (EventType::CheckoutCancelled, once(status == checkout::Status::Cancelled)),
                    (EventType::PaymentSucceeded, exactly(attempts.completed)),
                    (
                        EventType::PaymentFailed,
                        attempts.failures(attempts.paid_at.filter(|_| status == checkout::Status::Completed)),
                    ),
                ]
            }
            Subject::Invoice(invoice, attempts) => {
                let (status, attempts) = (invoice.stored_status(), attempts.unwrap_or(&nothing));
                let parts = i64::try_from(invoice.receipts().len()).unwrap_or(i64::MAX);
                let is_paid = status == invoice::Status::Paid;
                let is_cancelled = status == invoice::Status::Cancelled;
                let overdue = match status {
                    invoice::Status::Draft | invoice::Status::Pending => 0..=0,
                    invoice::Status::Overdue => 1..=1,
                    invoice::Status::PartiallyPaid | invoice::Status::Paid | invoice::Status::Cancelled => 0..=1,
                };
                // Each revision behind the first is a change that was told; a draft that was finalized has one more.
                let changes = invoice.revision() - 1 - invoice.sent_count - parts - i64::from(is_cancelled);
                let finalized_later = i64::from(invoice.issued_date().is_some());
                vec![
                    (EventType::InvoiceCreated, exactly(1)),
                    (EventType::InvoiceFinalized, once(invoice.issued_date().is_some())),
                    (EventType::InvoiceUpdated, changes - overdue.end() - finalized_later..=changes - overdue.start()),
                    (EventType::InvoiceSent, exactly(invoice.sent_count)),
                    (EventType::InvoiceOverdue, overdue),
                    (EventType::InvoicePartiallyPaid, exactly(parts - i64::from(is_paid))),
                    (EventType::InvoicePaid, once(is_paid)),
                    (EventType::InvoiceCancelled, once(is_cancelled)),
                    (EventType::PaymentSucceeded, exactly(attempts.completed)),
                    (EventType::PaymentFailed, attempts.failures(invoice.paid_date())),
                    (EventType::InvoicePaymentFailed, attempts.failures(invoice.paid_date())),
                ]
            }
            Subject::PaymentLink(link) => {
                let is_deleted = link.stored_status() == payment_link::Status::Deleted;
                vec![(EventType::PaymentLinkCreated, exactly(1)), (EventType::PaymentLinkDeleted, once(is_deleted))]
            }
            Subject::Session(session, transaction) => {
                let is_paid = session.status() == SessionStatus::Succeeded;
                let failed =
                    transaction.is_some_and(|transaction| transaction.reached(TransactionStatus::Failed).is_some());
                let is_failed = session.status() == SessionStatus::Failed;
                vec![
                    (EventType::PaymentSucceeded, once(is_paid)),
                    (EventType::PaymentFailed, i64::from(is_failed)..=i64::from(failed)),
                ]
            }
            Subject::Refund(refund) => {
                let reached = |status| once(refund.reached(status).is_some());
                vec![
                    (EventType::RefundCompleted, reached(RefundStatus::Completed)),
                    (EventType::RefundFailed, reached(RefundStatus::Failed)),
                ]
            }
        }
    }
}

/// One event for each thing that happened, and none for what did not.
fn complete(report: &mut Report, id: &str, subject: &Subject<'_>, told: &Told) {
    let (table, sequence) = (subject.table(), subject.sequence());
    report.expect(told.last == sequence, table, id, || format!("it counts {sequence} events and has {}", told.last));
    for (kind, expected) in subject.happened() {
        let found = told.by_kind.get(&kind).copied().unwrap_or(0);
        report.expect(expected.contains(&found), table, id, || {
            let (least, most) = (expected.start(), expected.end());
            let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
            format!("{} was told {found} times and happened {expected} times", kind.as_str())
        });
    }
}
