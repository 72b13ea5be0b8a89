//! What an answer takes of memory is counted until that is free again: until its last byte is written, however slowly the other
//! side takes it, or nobody waits for it any more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{Method, StatusCode, header};
use hyper::body::{Body, Frame, SizeHint};

use super::answer::Problem;
use crate::gate::{Gate, KeptAnyway, Receiver, Sending, WhenFull};

/// The answer to a request of this method, as it is sent, or that there is no place for one so large.
///
/// What may have changed something is always told what came of it, also beyond the bound: whoever is not told has to guess. Its
/// connection bounds those: a hundred requests at most are begun there before their answers are taken, and an answer that nobody
/// takes ends it. But a request that is refused as it was sent (400) has changed nothing, and can be refused later as well.
pub(super) fn hold(response: Response, gate: &Gate, to: Receiver, method: &Method) -> Response {
    if response.extensions().get::<KeptAnyway>().is_some() {
        return response;
    }
    let is_done = !method.is_safe() && response.status() != StatusCode::BAD_REQUEST;
    match gate.send(length(&response), if is_done { to.of_what_is_done() } else { to }) {
        Ok(sending) => counted(response, sending),
        Err(_) => busy_instead_of(&response, gate, to),
    }
}

fn length(response: &Response) -> usize {
    usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX)
}

fn counted(response: Response, sending: Option<Sending>) -> Response {
    let Some(sending) = sending.map(Arc::new) else { return response };
    response.map(|body| axum::body::Body::new(Counted { body, sending }))
}

/// A page says it in its own way, as long as there is a place for that. What its headers say of the connection, and of who may
/// read the answer, is as true of this one.
fn busy_instead_of(response: &Response, gate: &Gate, to: Receiver) -> Response {
    let page = response.extensions().get::<WhenFull>().map(WhenFull::page);
    let page = page.and_then(|page| {
        let sending = gate.send_refusal(length(&page), to).ok()?;
        Some(counted(page, sending))
    });
    let mut busy = page.unwrap_or_else(|| Problem::busy().into_response());
    for (name, value) in response.headers() {
        if matches!(*name, header::CONNECTION | header::VARY) || name.as_str().starts_with("access-control-") {
            busy.headers_mut().append(name.clone(), value.clone());
        }
    }
    busy
}

struct Counted {
    body: axum::body::Body,
    sending: Arc<Sending>,
}

/// A part of it, which is given back with the last byte: parts of one piece of memory free it together.
struct Part {
    bytes: Bytes,
    _sending: Arc<Sending>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let counted = |bytes| Bytes::from_owner(Part { bytes, _sending: self.sending.clone() });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(counted))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
