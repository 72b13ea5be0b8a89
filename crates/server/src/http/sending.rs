//! A large answer keeps its place among those that are being sent until it is sent, or nobody waits for it any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::Method;
use hyper::body::{Body, Frame, SizeHint};

use super::answer::Problem;
use crate::gate::{Gate, Sending};

/// The answer to a request of this method, or that there is no place for one so large. What may have changed something is always
/// told what came of it.
pub(super) fn hold(response: Response, gate: &Gate, method: &Method) -> Response {
    let bytes = response.body().size_hint().lower();
    match gate.send(usize::try_from(bytes).unwrap_or(usize::MAX), !method.is_safe()) {
        Ok(None) => response,
        Ok(Some(sending)) => response.map(|body| axum::body::Body::new(Held { body, _sending: sending })),
        Err(_) => Problem::busy().into_response(),
    }
}

struct Held {
    body: axum::body::Body,
    _sending: Sending,
}

impl Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
