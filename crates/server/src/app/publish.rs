//! Events: written in the transaction of what they tell, with a delivery for each endpoint that wants them.

use std::time::Duration;

use domain::checkout::Checkout;
use domain::event::{Event, EventType};
use domain::invoice::Invoice;
use domain::organization::Profile;
use domain::payment::{PaymentSession, Transaction};
use domain::payment_link::PaymentLink;
use domain::refund::Refund;
use domain::webhook::Delivery;
use domain::{Id, Scope, Timestamp};
use serde::Serialize;
use store::Tx;
use store::queries::{deliveries, endpoints, events};

use super::paid_object::PaidObject;
use super::{Context, organization_of, receipts};
use crate::error::Failure;
use crate::wire::checkouts::{CheckoutView, PaymentEventData};
use crate::wire::invoices::{InvoiceEventData, InvoiceView};
use crate::wire::payment_links::{PaymentLinkEventData, PaymentLinkView};
use crate::wire::payments::PaymentNames;
use crate::wire::refunds::RefundView;
use crate::wire::webhooks::envelope;

/// What an event's id tells of its time.
const MOMENT: Duration = Duration::from_millis(1);

/// Something happened to the checkout itself.
pub fn checkout_event(
    tx: &mut Tx<'_>,
    context: &Context,
    checkout: &mut Checkout,
    kind: EventType,
) -> Result<(), Failure> {
    let sequence = checkout.next_sequence();
    let data = CheckoutView::of(checkout, &context.addresses, tx.now());
    publish(tx, checkout.scope, kind, &checkout.id.to_string(), (sequence, checkout.updated_at), &data)
}

/// Something happened to the invoice itself.
pub fn invoice_event(
    tx: &mut Tx<'_>,
    context: &Context,
    invoice: &mut Invoice,
    kind: EventType,
) -> Result<(), Failure> {
    let scope = invoice.scope;
    let organization = organization_of(tx, scope)?;
    let merchant = &organization.profile;
    let sequence = invoice.next_sequence();
    let files = receipts::files(tx, scope, [&*invoice])?;
    let data = InvoiceView::of(invoice, merchant, &context.addresses, tx.now()).knowing(&files);
    publish(tx, scope, kind, &invoice.id.to_string(), (sequence, invoice.updated_at), &data)
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
        PaidObject::Invoice(invoice) => invoice_event(tx, context, invoice, kind),
        PaidObject::PaymentLink(link) => {
            let organization = organization_of(tx, link.scope)?;
            let merchant = &organization.profile;
            link_event(tx, context, link, merchant, kind)
        }
    }
}

/// An attempt to pay ended.
pub fn payment_event(
    tx: &mut Tx<'_>,
    context: &Context,
    object: &mut PaidObject,
    session: &mut PaymentSession,
    transaction: &Transaction,
    kind: EventType,
) -> Result<(), Failure> {
    match object {
        PaidObject::Checkout(checkout) => checkout_payment(tx, context, checkout, transaction, kind),
        PaidObject::Invoice(invoice) => invoice_payment(tx, context, invoice, transaction, kind),
        PaidObject::PaymentLink(link) => link_payment(tx, context, link, session, transaction, kind),
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
    view.payment_session_id = Some(transaction.attempt().session.to_string());
    let object_id = checkout.id.to_string();
    let payment = PaymentNames::of(transaction);
    let data = PaymentEventData { checkout: view, checkout_id: object_id.clone(), payment };
    publish(tx, checkout.scope, kind, &object_id, (sequence, checkout.updated_at), &data)
}

fn invoice_payment(
    tx: &mut Tx<'_>,
    context: &Context,
    invoice: &mut Invoice,
    transaction: &Transaction,
    kind: EventType,
) -> Result<(), Failure> {
    let scope = invoice.scope;
    let organization = organization_of(tx, scope)?;
    let merchant = &organization.profile;
    let sequence = invoice.next_sequence();
    let files = receipts::files(tx, scope, [&*invoice])?;
    let view = InvoiceView::of(invoice, merchant, &context.addresses, tx.now()).knowing(&files);
    let data = InvoiceEventData::of(view, transaction);
    publish(tx, scope, kind, &invoice.id.to_string(), (sequence, invoice.updated_at), &data)
}

/// Something happened to the payment link itself.
pub fn link_event(
    tx: &mut Tx<'_>,
    context: &Context,
    link: &mut PaymentLink,
    merchant: &Profile,
    kind: EventType,
) -> Result<(), Failure> {
    let sequence = link.next_sequence();
    let data = PaymentLinkView::of(link, merchant, &context.addresses, tx.now());
    publish(tx, link.scope, kind, &link.id.to_string(), (sequence, link.updated_at), &data)
}

/// The payment counts its events itself, so that a popular link is no bottleneck.
fn link_payment(
    tx: &mut Tx<'_>,
    context: &Context,
    link: &PaymentLink,
    session: &mut PaymentSession,
    transaction: &Transaction,
    kind: EventType,
) -> Result<(), Failure> {
    let sequence = session.next_sequence();
    let organization = organization_of(tx, link.scope)?;
    let merchant = &organization.profile;
    let view = PaymentLinkView::of(link, merchant, &context.addresses, tx.now());
    let data = PaymentLinkEventData::of(view, transaction);
    publish(tx, link.scope, kind, &session.id.to_string(), (sequence, session.updated_at), &data)
}

/// A refund ended.
pub fn refund_event(tx: &mut Tx<'_>, refund: &mut Refund, kind: EventType) -> Result<(), Failure> {
    let sequence = refund.next_sequence();
    publish(tx, refund.scope, kind, &refund.id.to_string(), (sequence, refund.updated_at), &RefundView::of(refund))
}

/// Dated like the object: by no clock that is behind the one which said what came before, of the object or of what an endpoint
/// is not sent any more ([`gave_up`](domain::webhook::WebhookEndpoint::gave_up)).
fn publish<T: Serialize>(
    tx: &mut Tx<'_>,
    scope: Scope,
    kind: EventType,
    object_id: &str,
    (sequence, updated_at): (i64, Timestamp),
    data: &T,
) -> Result<(), Failure> {
    let now = tx.now();
    let active = endpoints::active(tx, scope)?;
    let wanting = active.endpoints.iter().filter(|endpoint| endpoint.wants(kind));
    let given_up = wanting.clone().filter_map(|endpoint| endpoint.giving_up).max();
    let created_at = now.max(updated_at).max(given_up.map_or(now, |until| until.plus(MOMENT)));
    let id: Id<Event> = tx.entropy().id(created_at);
    let body = envelope(id, kind, scope.mode, object_id, sequence, created_at, data);
    let event = Event { id, scope, kind: kind.into(), object_id: object_id.to_owned(), sequence, body, created_at };
    events::append(tx, &event)?;
    for endpoint in wanting {
        if !(domain::planted!(Defect::DeliveryNotOwed) && kind == EventType::PaymentFailed) {
            let delivery = Delivery::owed(&event, endpoint.id, now);
            // What is still to be given up calls nobody when that is written down.
            match endpoint.giving_up {
                Some(_) => deliveries::insert(tx, &delivery)?,
                None => deliveries::insert_behind(tx, &delivery)?,
            }
        }
    }
    // Whether something of theirs is to be given up can't be read.
    for endpoint in active.unreadable.iter().filter(|endpoint| endpoint.wants(kind)) {
        deliveries::insert(tx, &Delivery::owed(&event, endpoint.id, now))?;
    }
    Ok(())
}
