//! Whether a request's body was read to its end. What is left of one is not worth reading only to keep the connection, so
//! that the connection ends with the answer; and a client that is not told would send its next request into it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::Version;
use http::header::{CONNECTION, HeaderValue};
use hyper::body::{Body, Frame, SizeHint};

use crate::gate::Pass;

/// Ask it once there is an answer.
pub(super) struct Unread {
    is_left: Arc<AtomicBool>,
    is_http1: bool,
}

/// The same request, whose body tells how far it was read, comes only as far as it can be held, and takes the request's place
/// once it was read to the end.
pub(super) fn watch(request: Request, pass: Option<Pass>) -> (Request, Unread) {
    let is_left = Arc::new(AtomicBool::new(!request.body().is_end_stream()));
    let unread = Unread { is_left: Arc::clone(&is_left), is_http1: request.version() <= Version::HTTP_11 };
    if request.body().is_end_stream() {
        return (request, unread);
    }
    (request.map(|body| axum::body::Body::new(Watched { body, is_left, pass })), unread)
}

impl Unread {
    /// HTTP/2 ends a single stream, without a word in the headers.
    pub(super) fn announce(&self, response: &mut Response) {
        if self.is_http1 && self.is_left.load(Ordering::Relaxed) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

struct Watched {
    body: axum::body::Body,
    is_left: Arc<AtomicBool>,
    pass: Option<Pass>,
}

impl Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let (Some(Ok(frame)), Some(pass)) = (&frame, &self.pass)
            && let Some(part) = frame.data_ref()
            && let Err(full) = pass.hold(part.len())
        {
            return Poll::Ready(Some(Err(axum::Error::new(full))));
        }
        if frame.is_none() || self.body.is_end_stream() {
            self.is_left.store(false, Ordering::Relaxed);
            if let Some(Err(full)) = self.pass.as_ref().map(Pass::begin) {
                return Poll::Ready(Some(Err(axum::Error::new(full))));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
