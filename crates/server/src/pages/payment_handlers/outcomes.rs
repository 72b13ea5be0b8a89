//! What came of a form: the answer that is kept under its key, and the page to which it leads.

use axum::response::Response;
use domain::payment::Payable;
use domain::payment_link::PaymentLink;
use domain::{Method, Refusal};

use super::Call;
use crate::app::hosted::Place;
use crate::app::idempotency::Reply;
use crate::app::sessions::Payment;
use crate::error::Failure;
use crate::pages::answer::{Wrong, see_other};
use crate::pages::note::{Note, PhoneFault};
use crate::pages::visit::address;
use crate::pages::{page_path, questions, shown, state};

/// The API has one code for a payment that is under way, whoever began it; a payer is told whose it is.
const HELD_BY_OTHERS: &str = "payment_link_held";

/// What is kept of an answer, as JSON like every kept answer: the page is drawn from the state in any case.
pub(super) fn outcome<T>(result: Result<&T, &Failure>) -> Reply {
    match result {
        Ok(_) => Reply::new(200, "null".to_owned()),
        Err(failure @ Failure::Refused(Refusal::PaymentLinkHeld)) => Reply::new(failure.status(), kept(HELD_BY_OTHERS)),
        Err(failure) => Reply::new(failure.status(), kept(&failure.code())),
    }
}

/// Where many pay at once, the answer names the payment, so that the same form sent again leads to the same page.
pub(super) fn payment_outcome(result: Result<&Payment, &Failure>) -> Reply {
    match result {
        Ok(payment) => Reply::new(200, kept(&payment.session.id.to_string())),
        Err(failure) => outcome::<Payment>(Err(failure)),
    }
}

/// The page of the payment that an answer names. The worker's answer is that of the API.
pub(super) fn place_of(call: &Call, reply: &Reply) -> Place {
    let named = serde_json::from_str::<serde_json::Value>(&reply.body).unwrap_or_default();
    let named = named.as_str().or(named.pointer("/data/id").and_then(|id| id.as_str()));
    let session = named.and_then(|id| id.parse().ok());
    match call.place.payable {
        Payable::PaymentLink(_) => Place { session: session.or(call.place.session), ..call.place },
        Payable::Checkout(_) | Payable::Invoice(_) => call.place,
    }
}

/// While what was begun goes on, the page shows that and not the end of its link.
fn is_of_ended_link(reply: &Reply) -> bool {
    let refusals = [Refusal::PaymentLinkInactive, Refusal::not_found::<PaymentLink>()];
    refusals.iter().any(|refusal| reply.body == kept(&refusal.code()))
}

fn kept(code: &str) -> String {
    serde_json::Value::from(code).to_string()
}

/// Back to the page, with the reason where nothing else there would tell it.
pub(super) fn answer(call: &Call, result: Result<Reply, Failure>, method: Option<Method>) -> Result<Response, Wrong> {
    let note = match result {
        Ok(reply) if reply.status == 200 => None,
        Ok(reply) if reply.body == kept(&Refusal::PaymentInProgress.code()) => Some(Note::InProgress {}),
        Ok(reply) if reply.body == kept(HELD_BY_OTHERS) => Some(held_by_others(call)),
        Ok(reply) if shown::REFUSALS.iter().any(|code| reply.body == kept(code)) => Some(Note::AmountChanged {}),
        Ok(reply) if reply.body == kept(&Refusal::NoPaymentProvider.code()) => {
            method.map(|method| match call.phone_of {
                Some(method) => Note::Phone { method, fault: PhoneFault::NotStarted },
                None => Note::NotStarted { method },
            })
        }
        Ok(reply) if is_of_ended_link(&reply) => Some(Note::NoNewPayment {}),
        // The state on the page says why: paid, expired, cancelled.
        Ok(_) => None,
        // Another tab was faster with the last attempt.
        Err(Failure::TooOften) => Some(Note::TooOften {}),
        // The first press is still at work, or the form was altered: nothing was begun.
        Err(Failure::KeyInUse | Failure::Invalid(_)) => None,
        Err(failure) => return Err(failure.into()),
    };
    Ok(note.map_or_else(|| call.to_page(), |note| call.to_page_with(&note)))
}

/// Whoever has begun nothing waits for nobody's answer. What somebody gave up for another method may still take money.
fn held_by_others(call: &Call) -> Note {
    match call.hosted.unsettled() {
        Some(_) => Note::InProgress {},
        None => Note::LastPlaceHeld {},
    }
}

/// After what was asked of the payment that the page showed, which may be there no more.
pub(super) fn answer_of_shown(call: &Call, result: Result<Reply, Failure>) -> Result<Response, Wrong> {
    match result {
        Ok(reply) if reply.body == kept(&Refusal::PaymentSessionClosed.code()) => {
            Ok(call.to_page_with(&Note::StaleForm {}))
        }
        result => answer(call, result, None),
    }
}

/// After a payment began or went on: to its page, or back to what the payer has to fill in otherwise.
pub(super) fn payment_answer(
    call: &Call,
    result: Result<Reply, Failure>,
    method: Option<Method>,
) -> Result<Response, Wrong> {
    match result {
        Ok(reply) if reply.status == 200 => {
            let place = place_of(call, &reply);
            Ok(match method {
                Some(method) if state::leads_outward(method) => call.to_place_with(place, &Note::Go {}),
                Some(_) | None => see_other(&address(&page_path::path(place), call.language, &[])),
            })
        }
        Err(Failure::Invalid(faults)) => match questions::refused(&call.hosted, &faults) {
            Some(note) if questions::can_be_mended(&call.hosted, call.place, &note) => Ok(call.to_page_with(&note)),
            Some(note) => Ok(call.to_place_with(Place { session: None, ..call.place }, &note)),
            None => answer(call, Err(Failure::Invalid(faults)), method),
        },
        result => answer(call, result, method),
    }
}
