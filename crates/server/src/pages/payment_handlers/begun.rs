//! What a payer asks of the payment that a page shows: to take a code, to send another one, another method, to leave. Each
//! is for that payment alone, whatever another tab has begun since.

use axum::response::Response;
use domain::Id;
use domain::Refusal;
use domain::payment::PaymentSession;
use domain::rail::NextAction;
use store::Tx;
use store::queries::idempotency::IdempotencyKey;

use super::Call;
use super::outcomes::{answer, answer_of_shown, outcome, payment_outcome, place_of};
use crate::app::Context;
use crate::app::hosted;
use crate::app::idempotency::Reply;
use crate::app::payments::{Initialize, Target};
use crate::error::Failure;
use crate::fault::Fault;
use crate::pages::answer::{Wrong, see_other};
use crate::pages::form::Form;
use crate::pages::note::{CodeFault, Note};
use crate::pages::visit::address;
use crate::pages::{page_path, shown};

pub(super) async fn submit_code(
    call: &Call,
    form: &Form,
    once: impl Fn(&str) -> IdempotencyKey,
) -> Result<Response, Wrong> {
    let code: String = form.get("code").unwrap_or_default().chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    let session = call.hosted.session();
    if session.is_some_and(|session| !shown::is_due(form, &call.hosted, session.amount)) {
        return match call.site.app.stored_answer(&once(&code)).await.transpose() {
            Some(result) => answer(call, result, None),
            None => Ok(call.to_page_with(&Note::AmountChanged {})),
        };
    }
    if let Some(result) = overtaken(call, form, &once(&code)).await {
        return answer_of_shown(call, result);
    }
    let asked = session.and_then(|session| session.next_action.as_ref());
    let Some(NextAction::Otp { length, .. }) = asked else { return Ok(call.to_page()) };
    if code.is_empty() {
        return Ok(call.to_page_with(&Note::Code { fault: CodeFault::Missing }));
    }
    if code.len() != usize::from(*length) || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(call.to_page_with(&Note::Code { fault: CodeFault::Format }));
    }
    let request = Initialize { has_code: true, ..Initialize::of(target(call, form)) };
    let key = once(&code);
    let result = call.site.app.initialize(call.hosted.scope(), request, Some(code), Some(key), outcome).await;
    // What a code that came too late or twice has met shows in the state.
    answer(call, result, None)
}

pub(super) async fn resend(call: &Call, form: &Form, key: IdempotencyKey) -> Result<Response, Wrong> {
    if let Some(result) = overtaken(call, form, &key).await {
        return answer_of_shown(call, result);
    }
    let target = target(call, form);
    let result = call.site.app.start_again(call.hosted.scope(), target, Some(key), payment_outcome).await;
    match result {
        Ok(reply) if reply.status == 200 => {
            Ok(see_other(&address(&page_path::path(place_of(call, &reply)), call.language, &[])))
        }
        Err(Failure::TooOften) => Ok(call.to_page_with(&Note::Code { fault: CodeFault::TooOften })),
        // The code that was sent is still good.
        Err(Failure::Invalid(faults)) => Ok(call.to_page_with(&taken_no_more(&faults))),
        result => answer(call, result, None),
    }
}

/// What a merchant takes no more of a payment that would begin anew: its amount, or its method.
fn taken_no_more(faults: &[Fault]) -> Note {
    match faults.iter().any(|fault| fault.field == "amount") {
        true => Note::AmountChanged {},
        false => Note::Code { fault: CodeFault::NotSentAgain },
    }
}

pub(super) async fn other(call: &Call, form: &Form, key: IdempotencyKey) -> Result<Response, Wrong> {
    let result = match overtaken(call, form, &key).await {
        Some(result) => result,
        None => choose_again(call, shown::session(form, &call.hosted), key).await,
    };
    answer_of_shown(call, result)
}

pub(super) async fn leave(call: &Call, form: &Form, key: IdempotencyKey) -> Result<Response, Wrong> {
    let result = match overtaken(call, form, &key).await {
        Some(result) => result,
        None => leave_shown(call, shown::session(form, &call.hosted), key).await,
    };
    match result {
        Ok(reply) if reply.status == 200 && call.hosted.failure_address().is_some() => {
            Ok(call.to_page_with(&Note::Leaving {}))
        }
        result => answer_of_shown(call, result),
    }
}

pub(super) async fn choose_again(
    call: &Call,
    shown: Option<Id<PaymentSession>>,
    key: IdempotencyKey,
) -> Result<Reply, Failure> {
    let (scope, place) = (call.hosted.scope(), call.place);
    let command = move |tx: &mut Tx<'_>, _: &Context| hosted::choose_again(tx, scope, place, shown);
    call.site.app.write(Some(key), command, outcome).await
}

async fn leave_shown(call: &Call, shown: Option<Id<PaymentSession>>, key: IdempotencyKey) -> Result<Reply, Failure> {
    let (scope, place) = (call.hosted.scope(), call.place);
    let command = move |tx: &mut Tx<'_>, context: &Context| hosted::leave(tx, context, scope, place, shown);
    call.site.app.write(Some(key), command, outcome).await
}

/// What is asked of the payment that a page showed is asked of no other, which another tab has begun since. A form that
/// did something when it was sent before has that answer.
async fn overtaken(call: &Call, form: &Form, key: &IdempotencyKey) -> Option<Result<Reply, Failure>> {
    if !shown::is_of_another_session(form, &call.hosted) {
        return None;
    }
    let before = call.site.app.stored_answer(key).await.transpose();
    Some(before.unwrap_or_else(|| Ok(outcome::<()>(Err(&Refusal::PaymentSessionClosed.into())))))
}

/// The payment that a form goes on with.
fn target(call: &Call, form: &Form) -> Target {
    shown::session(form, &call.hosted).map_or(call.place.target(), Target::Session)
}
