//! Events: written in the transaction of what they tell, with a delivery for each endpoint that wants them.

use domain::checkout::Checkout;
use domain::event::{Event, EventType};
use domain::payment::Transaction;
use domain::refund::Refund;
use domain::webhook::Delivery;
use domain::{Id, Scope};
use serde::Serialize;
use store::Tx;
use store::queries::{deliveries, endpoints, events};

use super::Context;
use super::paid_object::PaidObject;
use crate::error::Failure;
use crate::wire::checkouts::{CheckoutView, PaymentEventData};
use crate::wire::refunds::RefundView;
use crate::wire::webhooks::envelope;

/// Something happened to the checkout itself.
pub fn checkout_event(
    tx: &mut Tx<'_>,
    context: &Context,
    checkout: &mut Checkout,
    kind: EventType,
) -> Result<(), Failure> {
    let sequence = checkout.next_sequence();
    let data = CheckoutView::of(checkout, &context.addresses, tx.now());
    publish(tx, checkout.scope, kind, &checkout.id.to_string(), sequence, &data)
}

/// Something happened to what is paid.
pub fn object_event(
    tx: &mut Tx<'_>,
    context: &Context,
    object: &mut PaidObject,
    kind: EventType,
) -> Result<(), Failure> {
    match object {
        PaidObject::Checkout(checkout) => checkout_event(tx, context, checkout, kind),
    }
}

/// An attempt to pay ended.
pub fn payment_event(
    tx: &mut Tx<'_>,
    context: &Context,
    object: &mut PaidObject,
    transaction: &Transaction,
    kind: EventType,
) -> Result<(), Failure> {
    match object {
        PaidObject::Checkout(checkout) => checkout_payment(tx, context, checkout, transaction, kind),
    }
}

fn checkout_payment(
    tx: &mut Tx<'_>,
    context: &Context,
    checkout: &mut Checkout,
    transaction: &Transaction,
    kind: EventType,
) -> Result<(), Failure> {
    let sequence = checkout.next_sequence();
    let mut view = CheckoutView::of(checkout, &context.addresses, tx.now());
    // The attempt that the event is about, which a second payment's checkout does not show.
    view.transaction = Some((&transaction.summary()).into());
    view.payment_session_id = Some(transaction.session.to_string());
    let object_id = checkout.id.to_string();
    let data = PaymentEventData {
        checkout: view,
        checkout_id: object_id.clone(),
        transaction_id: transaction.id.to_string(),
        object_type: transaction.payable.kind().into(),
        object_id: object_id.clone(),
        payment_method: transaction.method.as_str().into(),
        late: transaction.late,
        duplicate: transaction.duplicate,
        failure_reason: transaction.failure_reason.map(|reason| reason.as_str().into()),
    };
    publish(tx, checkout.scope, kind, &object_id, sequence, &data)
}

/// A refund ended.
pub fn refund_event(tx: &mut Tx<'_>, refund: &mut Refund, kind: EventType) -> Result<(), Failure> {
    let sequence = refund.next_sequence();
    publish(tx, refund.scope, kind, &refund.id.to_string(), sequence, &RefundView::of(refund))
}

fn publish<T: Serialize>(
    tx: &mut Tx<'_>,
    scope: Scope,
    kind: EventType,
    object_id: &str,
    sequence: i64,
    data: &T,
) -> Result<(), Failure> {
    let now = tx.now();
    let id: Id<Event> = tx.entropy().id(now);
    let body = envelope(id, kind, scope.mode, object_id, sequence, now, data);
    let event = Event { id, scope, kind, object_id: object_id.to_owned(), sequence, body, created_at: now };
    events::append(tx, &event)?;
    for endpoint in endpoints::active(tx, scope)? {
        if endpoint.wants(kind) {
            deliveries::insert(tx, &Delivery::owed(&event, endpoint.id, now))?;
        }
    }
    Ok(())
}
