//! What a request to pay names: by client secret, by object, by session.

use domain::checkout::Checkout;
use domain::invoice::Invoice;
use domain::payment::{Payable, PaymentSession};
use domain::payment_link::PaymentLink;
use domain::{Currency, Id, Scope};
use store::{Entity, Tx};

use crate::app::payments::Target;
use crate::app::{Context, look_up};
use crate::credentials::{ClientSecret, digests_match};
use crate::error::Failure;
use crate::http::Api;
use crate::http::answer::Problem;
use crate::http::fault::{Fault, FaultCode};

#[derive(Clone)]
pub(super) struct Names {
    pub(super) session_id: Option<String>,
    pub(super) client_secret: Option<String>,
    pub(super) object_type: Option<String>,
    pub(super) object_id: Option<String>,
}

/// What a request names.
pub(super) struct Found {
    pub(super) target: Target,
    pub(super) payable: Payable,
    pub(super) currency: Currency,
}

/// What is paid, by whichever name the request gives, and what is wrong with its names: two that disagree are a fault, too. Nothing
/// is found with a fault among them, or without any that could be read.
pub(super) async fn find(api: &Api, scope: Scope, names: &Names) -> Result<(Option<Found>, Vec<Fault>), Problem> {
    let names = names.clone();
    let found = api.app.read(move |tx, context| {
        let mut faults = Vec::new();
        let found = look_up_named(tx, context, scope, &names, &mut faults)?;
        Ok((found, faults))
    });
    Ok(found.await?)
}

fn look_up_named(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    names: &Names,
    faults: &mut Vec<Fault>,
) -> Result<Option<Found>, Failure> {
    let mut named: Vec<(&'static str, Payable)> = Vec::new();
    if let Some(text) = &names.client_secret {
        let secret = ClientSecret::parse(text, &context.client_secret_keys).ok();
        let found = secret.as_ref().map(|secret| tx.peek::<Checkout>(scope, secret.checkout())).transpose()?.flatten();
        match (found, secret.map(|secret| secret.digest(&context.client_secret_keys))) {
            (Some(checkout), Some(digest)) if digests_match(&checkout.client_secret_digest, &digest) => {
                named.push(("client_secret", Payable::Checkout(checkout.id)));
            }
            _ => faults.push(unknown("client_secret")),
        }
    }
    // Without its kind an id may be that of anything.
    if let (Some(kind), Some(text)) = (&names.object_type, &names.object_id) {
        match object(tx, scope, kind, text)? {
            Some(payable) => named.push(("object_id", payable)),
            None => faults.push(unknown("object_id")),
        }
    }
    let mut session = None;
    if let Some(text) = &names.session_id {
        let id = text.parse::<Id<PaymentSession>>().ok();
        match id.map(|id| tx.peek::<PaymentSession>(scope, id)).transpose()?.flatten() {
            Some(found) => {
                session = Some(found.id);
                named.push(("session_id", found.payable));
            }
            None => faults.push(unknown("session_id")),
        }
    }
    let (Some((_, first)), true) = (named.first().copied(), faults.is_empty()) else { return Ok(None) };
    if let Some((field, _)) = named.iter().find(|(_, payable)| *payable != first) {
        let message = format!("`{field}` belongs to another payment; send only one of the names.");
        faults.push(Fault::new(*field, FaultCode::Conflict, message));
        return Ok(None);
    }
    if names.object_type.as_deref().is_some_and(|kind| kind != first.kind()) {
        let message = format!("`object_type` contradicts the other name, which is that of: {}.", first.kind());
        faults.push(Fault::new("object_type", FaultCode::Conflict, message));
        return Ok(None);
    }
    let currency = match first {
        Payable::Checkout(id) => look_up::<Checkout>(tx, scope, id)?.order.amount.currency,
        Payable::Invoice(id) => look_up::<Invoice>(tx, scope, id)?.bill().currency(),
        Payable::PaymentLink(id) => look_up::<PaymentLink>(tx, scope, id)?.price().currency(),
    };
    let target = session.map_or(Target::Object(first), Target::Session);
    Ok(Some(Found { target, payable: first, currency }))
}

/// An object of that kind that is there. Those that were deleted say so themselves.
fn object(tx: &mut Tx<'_>, scope: Scope, kind: &str, id: &str) -> Result<Option<Payable>, Failure> {
    fn there<E: Entity<Id = Id<E>> + domain::Object>(
        tx: &mut Tx<'_>,
        scope: Scope,
        id: &str,
        payable: fn(Id<E>) -> Payable,
    ) -> Result<Option<Payable>, Failure> {
        let Ok(id) = id.parse::<Id<E>>() else { return Ok(None) };
        Ok(tx.peek::<E>(scope, id)?.map(|_| payable(id)))
    }
    match kind {
        "checkout" => there::<Checkout>(tx, scope, id, Payable::Checkout),
        "invoice" => there::<Invoice>(tx, scope, id, Payable::Invoice),
        "payment_link" => there::<PaymentLink>(tx, scope, id, Payable::PaymentLink),
        _ => Ok(None),
    }
}

fn unknown(field: &'static str) -> Fault {
    Fault::new(field, FaultCode::NotFound, format!("`{field}` names nothing that can be paid here."))
}
