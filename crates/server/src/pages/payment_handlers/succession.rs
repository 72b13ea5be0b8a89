//! Where many pay at once, one payment comes in the place of another: the way from the page of the one to that of the other, and what a
//! form has done on it already.

use axum::response::Response;
use domain::Method;
use store::Tx;

use super::outcomes::{answer, payment_answer, payment_outcome, place_of};
use super::{Action, Call, key_of, once, phone, to_phone, with_phone};
use crate::app::Context;
use crate::app::hosted::Place;
use crate::app::payments::{self, Initialize};
use crate::app::sessions;
use crate::error::Failure;
use crate::pages::answer::{Wrong, see_other};
use crate::pages::form::Form;
use crate::pages::page_path;
use crate::pages::visit::address;

/// Where a form of one of many payments acts: on its own page, or, where that payment is over unpaid, on the one by which its payer
/// goes on. What the form began on the way when it was sent before may be over by now, and was to be one payment: then it has that answer.
pub(super) async fn going_on(
    call: &Call,
    action: Action,
    form: &Form,
    token: &str,
    method: Option<Method>,
) -> Result<Result<Call, Response>, Wrong> {
    let mut call = call.clone();
    for _ in 0..sessions::MOST_REPLACED {
        let Some(request) = call.hosted.anew() else { return Ok(Ok(call)) };
        if let Some(method) = method
            && let Some(answer) = answer_of_before(&call, action, form, token, method).await?
        {
            return Ok(Err(answer));
        }
        call = match call.hosted.successor() {
            Some(place) => call.at(place).await?,
            None => match begin_successor(&call, request).await? {
                Ok(call) => call,
                Err(answer) => return Ok(Err(answer)),
            },
        };
    }
    // Its page leads on.
    Ok(Err(call.to_page()))
}

/// The answer of a form that began something at this place when it was sent before.
pub(super) async fn answer_of_before(
    call: &Call,
    action: Action,
    form: &Form,
    token: &str,
    method: Method,
) -> Result<Option<Response>, Wrong> {
    let asks_for_phone = action == Action::Method && method.needs_phone();
    let key = match action {
        Action::Method if asks_for_phone => Some(once(call, token, "open", &form.whole())),
        Action::Method => Some(once(call, token, "method", &form.whole())),
        Action::Phone => phone(call, form).ok().map(|phone| once(call, token, "phone", &with_phone(form, &phone))),
        Action::Code | Action::Approved | Action::Resend | Action::Other | Action::Leave => None,
    };
    let before = match key {
        Some(key) => call.site.app.stored_answer(&key).await.transpose(),
        None => None,
    };
    match before {
        Some(result) if asks_for_phone => to_phone(call, method, None, result).map(Some),
        Some(result) => payment_answer(call, result, Some(method)).map(Some),
        None => Ok(None),
    }
}

/// One of many payments is over, and its payer goes on: with another one, of which there is only ever one, however many
/// tabs ask for it.
async fn begin_successor(call: &Call, request: Initialize) -> Result<Result<Call, Response>, Wrong> {
    let (scope, key) = (call.hosted.scope(), key_of(call, format!("again:{}", call.place.id())));
    // Whatever refuses it may pass, as where its merchant opens the link again, and this key is kept for long.
    let command = move |tx: &mut Tx<'_>, context: &Context| {
        payments::begin(tx, context, scope, &request, None).map(|begun| begun.payment().clone())
    };
    let result = call.site.app.write_unless_refused(Some(key), command, payment_outcome).await;
    match result {
        Ok(reply) if reply.status == 200 => Ok(Ok(call.clone().at(place_of(call, &reply)).await?)),
        // The link itself says why, or asks once more.
        Ok(_) | Err(Failure::Refused(_) | Failure::Invalid(_)) => {
            let link = Place { session: None, ..call.place };
            Ok(Err(see_other(&address(&page_path::path(link), call.language, &[]))))
        }
        result => answer(call, result, None).map(Err),
    }
}
