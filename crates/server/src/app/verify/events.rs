//! Events: 1, 2, 3 … for each object without a gap, one for each thing that happened, each told as it happened, and each
//! with one place in the log or waiting for one.

use std::collections::{HashMap, HashSet};

use domain::checkout::{Checkout, Status};
use domain::event::{Event, EventType};
use domain::payment::Transaction;
use domain::refund::{Refund, RefundStatus};
use domain::{Id, Mode, Object, Scope, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::queries::verify::{self as stored, EventRow, Span};
use store::{Entity, Tx};

use super::Report;
use super::checkouts::Attempts;
use super::payments::by_id;
use crate::error::Failure;

const TABLE: &str = "events";
const LOG: &str = "event_log";

/// What an event's bytes say.
#[derive(Deserialize)]
struct Envelope<D> {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    api_version: String,
    created_at: String,
    created: String,
    livemode: bool,
    object_id: String,
    sequence: i64,
    data: D,
}

/// The part of a checkout's that is about money and state.
#[derive(Deserialize)]
struct Data {
    id: String,
    status: String,
    amount: String,
    currency: String,
    livemode: bool,
    transaction: Option<Summary>,
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

/// All that a refund's says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefundData {
    id: String,
    transaction_id: String,
    amount: String,
    currency: String,
    reason: Option<String>,
    status: String,
    #[serde(rename = "created_at")]
    _created_at: String,
    #[serde(rename = "updated_at")]
    _updated_at: String,
}

/// The events of one object so far.
#[derive(Default)]
struct Told {
    last: i64,
    by_kind: HashMap<EventType, i64>,
}

pub(super) fn of_checkouts(
    tx: &mut Tx<'_>,
    scope: Scope,
    span: Span<'_>,
    report: &mut Report,
    checkouts: &[Checkout],
    attempts: &HashMap<String, Attempts>,
) -> Result<(), Failure> {
    let known: HashMap<String, &Checkout> =
        checkouts.iter().map(|checkout| (checkout.id.to_string(), checkout)).collect();
    let mut told: HashMap<String, Told> = HashMap::new();
    let mut cursor = None;
    loop {
        let rows = stored::events(tx, scope, span, &mut cursor)?;
        let mut events = Vec::with_capacity(rows.len());
        for row in rows {
            match row {
                Ok(event) if is_of::<Refund>(&event.object_id) => {}
                Ok(event) => events.push(event),
                Err(why) => report.fault(TABLE, "?", why),
            }
        }
        report.count(TABLE, events.len());
        places(tx, scope, report, &events)?;
        let envelopes: Vec<Option<Envelope<Data>>> = events.iter().map(|event| read(report, event)).collect();
        let ids: HashSet<String> = envelopes
            .iter()
            .flatten()
            .filter_map(|envelope| Some(envelope.data.transaction.as_ref()?.id.clone()))
            .collect();
        let transactions = by_id::<Transaction>(tx, scope, &ids.into_iter().collect::<Vec<_>>())?;
        for (event, envelope) in events.iter().zip(&envelopes) {
            let Some(checkout) = known.get(&event.object_id) else {
                report.fault(
                    TABLE,
                    event.id.as_str(),
                    format!("it tells of {}, of which nothing can be read", event.object_id),
                );
                continue;
            };
            told.entry(event.object_id.clone()).or_default().add(report, event);
            if let Some(envelope) = envelope {
                snapshot(report, scope, event, envelope, checkout, &transactions);
            }
        }
        if cursor.is_none() {
            break;
        }
    }
    for (id, checkout) in known {
        complete(report, checkout, told.get(&id).unwrap_or(&Told::default()), attempts.get(&id));
    }
    Ok(())
}

impl Told {
    fn add(&mut self, report: &mut Report, event: &EventRow) {
        report.expect(event.sequence == self.last + 1, TABLE, &event.id, || {
            format!("it is number {} of {} behind number {}", event.sequence, event.object_id, self.last)
        });
        self.last = event.sequence;
        if let Some(kind) = EventType::parse(&event.kind) {
            *self.by_kind.entry(kind).or_default() += 1;
        }
    }

    fn of(&self, kind: EventType) -> i64 {
        self.by_kind.get(&kind).copied().unwrap_or(0)
    }
}

/// By its id; whose event none of the known kinds is, is told where checkouts are walked.
fn is_of<O: Object>(object_id: &str) -> bool {
    object_id.split_once('_').is_some_and(|(prefix, _)| prefix == O::PREFIX)
}

/// A refund tells once that it failed and once that it went through, if it did.
pub(super) fn of_refunds(
    tx: &mut Tx<'_>,
    scope: Scope,
    span: Span<'_>,
    report: &mut Report,
    refunds: &[Refund],
) -> Result<(), Failure> {
    let known: HashMap<String, &Refund> = refunds.iter().map(|refund| (refund.id.to_string(), refund)).collect();
    let mut told: HashMap<String, Told> = HashMap::new();
    let mut cursor = None;
    loop {
        let mut events = Vec::new();
        // What can't be read is reported where checkouts are walked.
        for event in stored::events(tx, scope, span, &mut cursor)?.into_iter().flatten() {
            if is_of::<Refund>(&event.object_id) {
                events.push(event);
            }
        }
        report.count(TABLE, events.len());
        places(tx, scope, report, &events)?;
        for event in &events {
            let Some(refund) = known.get(&event.object_id) else {
                let what = format!("it tells of {}, of which nothing can be read", event.object_id);
                report.fault(TABLE, event.id.as_str(), what);
                continue;
            };
            told.entry(event.object_id.clone()).or_default().add(report, event);
            let Some(envelope) = read::<RefundData>(report, event) else { continue };
            frame(report, scope, event, &envelope);
            let data = &envelope.data;
            let is_it = data.id == event.object_id
                && data.transaction_id == refund.transaction.to_string()
                && data.amount == refund.amount.to_string()
                && data.currency == refund.amount.currency.code()
                && data.reason == refund.reason
                && event.kind.split_once('.') == Some(("refund", data.status.as_str()));
            report.expect(is_it, TABLE, &event.id, || format!("its body does not show {}", event.object_id));
        }
        if cursor.is_none() {
            break;
        }
    }
    for (id, refund) in known {
        let nothing = Told::default();
        let told = told.get(&id).unwrap_or(&nothing);
        let moves = |status| refund.moves.iter().filter(|one| one.status == status).count();
        let (completed, failed) = (moves(RefundStatus::Completed), moves(RefundStatus::Failed));
        let right = told.last == refund.event_sequence
            && usize::try_from(told.of(EventType::RefundCompleted)) == Ok(completed)
            && usize::try_from(told.of(EventType::RefundFailed)) == Ok(failed)
            && usize::try_from(told.last) == Ok(completed + failed);
        report.expect(right, Refund::TABLE, &id, || {
            format!("{} events tell of {completed} completions and {failed} failures", told.last)
        });
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

fn read<D: DeserializeOwned>(report: &mut Report, event: &EventRow) -> Option<Envelope<D>> {
    match serde_json::from_str(&event.body) {
        Ok(envelope) => Some(envelope),
        Err(error) => {
            report.fault(TABLE, event.id.as_str(), format!("its body does not parse: {error}"));
            None
        }
    }
}

/// Around whatever is told.
fn frame<D>(report: &mut Report, scope: Scope, event: &EventRow, envelope: &Envelope<D>) {
    let second = Ok(Timestamp::from_micros(event.created_at).floor_to_second());
    // An event's id begins with its time, to the millisecond.
    let made_at_ms = event.id.parse().ok().map(|id: Id<Event>| id.made_at_ms());
    let row_agrees = envelope.id == event.id
        && made_at_ms == Some(event.created_at / 1000)
        && envelope.kind == event.kind
        && envelope.api_version == "v1"
        && envelope.object_id == event.object_id
        && envelope.sequence == event.sequence
        && Timestamp::parse(&envelope.created_at) == second
        && envelope.created == envelope.created_at
        && envelope.livemode == (scope.mode == Mode::Live);
    report.expect(row_agrees, TABLE, &event.id, || "its columns differ from its body".into());
}

fn snapshot(
    report: &mut Report,
    scope: Scope,
    event: &EventRow,
    envelope: &Envelope<Data>,
    checkout: &Checkout,
    transactions: &HashMap<String, Transaction>,
) {
    frame(report, scope, event, envelope);
    let data = &envelope.data;
    let is_its_checkout = data.id == event.object_id
        && data.amount == checkout.order.amount.to_string()
        && data.currency == checkout.order.amount.currency.code()
        && data.livemode == (scope.mode == Mode::Live)
        && data.client_secret.is_none();
    report.expect(is_its_checkout, TABLE, &event.id, || format!("its body does not show {}", event.object_id));
    let Some(kind) = EventType::parse(&event.kind) else {
        report.fault(TABLE, event.id.as_str(), format!("{:?} is no event", event.kind));
        return;
    };
    let attempt = data.transaction.as_ref();
    let said = match kind {
        EventType::CheckoutCompleted => data.status == "completed",
        EventType::CheckoutExpired => data.status == "expired",
        EventType::CheckoutCancelled => data.status == "cancelled",
        EventType::PaymentSucceeded => attempt.is_some_and(|attempt| attempt.status == "completed"),
        EventType::PaymentFailed => attempt.is_some_and(|attempt| attempt.status == "failed"),
        _ => false,
    };
    report.expect(said, TABLE, &event.id, || format!("its body does not say {}", event.kind));
    if let Some(attempt) = attempt {
        let is_true = transactions.get(&attempt.id).is_some_and(|truth| {
            let net = truth.amount.minor.checked_sub(truth.fee.minor);
            attempt.amount == truth.amount.to_string()
                && attempt.fee == truth.fee.to_string()
                && net
                    .is_some_and(|net| attempt.net_amount == domain::Money::new(net, truth.amount.currency).to_string())
        });
        let is_named = data.transaction_id.as_ref().is_none_or(|id| *id == attempt.id);
        report.expect(is_true && is_named, TABLE, &event.id, || format!("its body does not show {}", attempt.id));
    }
}

/// One event for each thing that happened, and none for what did not.
fn complete(report: &mut Report, checkout: &Checkout, told: &Told, attempts: Option<&Attempts>) {
    let id = checkout.id.to_string();
    report.expect(told.last == checkout.event_sequence, Checkout::TABLE, &id, || {
        format!("it counts {} events and has {}", checkout.event_sequence, told.last)
    });
    let status = checkout.stored_status();
    let (completed, failed) = attempts.map_or((0, 0), |attempts| (attempts.completed, attempts.failed));
    let expected = [
        (EventType::CheckoutCompleted, i64::from(status == Status::Completed)),
        (EventType::CheckoutExpired, i64::from(status == Status::Expired)),
        (EventType::CheckoutCancelled, i64::from(status == Status::Cancelled)),
        (EventType::PaymentSucceeded, completed),
        (EventType::PaymentFailed, failed),
    ];
    for (kind, expected) in expected {
        let found = told.of(kind);
        report.expect(found == expected, Checkout::TABLE, &id, || {
            format!("{} was told {found} times and happened {expected} times", kind.as_str())
        });
    }
}

/// The log's numbers have no gap.
pub(super) fn log(tx: &mut Tx<'_>, scope: Scope, report: &mut Report) -> Result<(), Failure> {
    let (places, first, last) = stored::log(tx, scope)?;
    report.count(LOG, usize::try_from(places).unwrap_or(0));
    let name = format!("{} {}", scope.organization, scope.mode);
    report.expect(first == 1 && last == places, LOG, &name, || {
        format!("{places} places are numbered from {first} to {last}")
    });
    Ok(())
}
