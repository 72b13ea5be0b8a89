//! The outermost layer around every route: a request id, the error envelope for whatever goes wrong, security headers,
//! one access line, one count. It knows no route, no key and no object.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};

use super::answer::{Problem, Refused};
use super::request_id::RequestId;
use super::request_log::{self, AnsweredRequest, Whose};
use super::{sending, unread};
use crate::error::Failure;
use crate::gate::{self, Full, Gate, Pass, Receiver};
use crate::listener::Unsayable;
use crate::{metrics, monotonic};

#[derive(Debug, Clone, Copy, Default)]
pub struct EdgeSettings {
    /// The public address is https: browsers are told to stay with it for two years.
    pub is_https: bool,
}

const LONGEST_ADDRESS: usize = 8 * 1024;
const MOST_HEADER_BYTES: usize = 16 * 1024;

/// Closes a router: call it last, after all routes. Sets its answers to unknown paths and verbs.
pub fn wrap(router: Router, settings: EdgeSettings) -> Router {
    let router = router
        .fallback(async |address: Uri| Problem::route_not_found(address.path()))
        .method_not_allowed_fallback(async || Problem::method_not_allowed());
    close(router, settings)
}

/// The same for a router that answers unknown paths and verbs itself.
pub(super) fn close(router: Router, settings: EdgeSettings) -> Router {
    router.layer(middleware::from_fn_with_state((settings, Gate::default()), edge))
}

async fn edge(State((settings, gate)): State<(EdgeSettings, Gate)>, request: Request, next: Next) -> Response {
    let started = monotonic::now();
    if domain::planted!(Defect::RequestKeepsMemory) {
        let _ = Box::leak(Box::new([1_u8; 1024]));
    }
    if domain::planted!(Defect::RequestLogged) {
        tracing::debug!(?request);
    }
    let id = RequestId::new();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    let whose = Whose::default();

    let receiver = Receiver::of(&request);
    let pass = gate.enter(&request);
    let is_let_in = pass.is_ok();
    let response = match pass {
        Err(_) if gate::is_of_programs(&request) => refuse(request),
        pass => work_on(request, pass, next, &id, &whose).await,
    };
    let response = in_envelope(response, &id);
    // Which may be refused in its turn.
    let mut response = in_envelope(sending::hold(response, &gate, receiver, &method), &id);
    set_headers(&mut response, &id, settings);

    let status = response.status().as_u16();
    let elapsed = started.elapsed();
    metrics::request_answered(route, &method, status, elapsed);
    let duration_ms = (elapsed.as_secs_f64() * 1_000_000.0).round() / 1000.0;
    // A line for each request of a flood would be one more flood; the gate says how many were refused.
    if is_let_in {
        log(&method, route, status, duration_ms, &id);
    }
    // Otherwise the connection is cut, and the client sees neither status nor code.
    let is_sent = response.extensions().get::<Unsayable>().is_none();
    whose.tell(|| AnsweredRequest {
        answered_at: request_log::now(),
        method: metrics::known(&method),
        path: route,
        status: is_sent.then_some(status),
        duration_ms,
        request_id: id.as_str(),
        code: response.extensions().get::<Refused>().filter(|_| is_sent).and_then(Refused::code),
    });
    response
}

async fn work_on(
    mut request: Request,
    pass: Result<Pass, Full>,
    next: Next,
    id: &RequestId,
    whose: &Whose,
) -> Response {
    request.extensions_mut().insert(id.clone());
    request.extensions_mut().insert(whose.clone());
    if let Err(full) = pass {
        request.extensions_mut().insert(full);
    }
    // A clone is held here, for as long as it takes.
    let (request, unread) = unread::watch(request, pass.as_ref().ok().cloned());
    let mut response = match refuse_oversized(&request) {
        Some(problem) => problem.into_response(),
        None => AssertUnwindSafe(monotonic::answering(next.run(request)))
            .catch_unwind()
            .await
            .unwrap_or_else(|panic| panicked(panic, id)),
    };
    unread.announce(&mut response);
    response
}

/// Nothing of it is read but what is here already: if that is all, the connection goes on. It does not come as far as the route
/// that says whether a page of another origin may read the answer: everybody may read this one, which tells nothing of anybody.
fn refuse(request: Request) -> Response {
    let (request, unread) = unread::watch(request, None);
    gate::discard(request);
    let mut response = Problem::busy().into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("x-request-id,retry-after"));
    unread.announce(&mut response);
    response
}

/// The listener reads a little more than we accept, so that most oversized requests get a proper answer.
fn refuse_oversized(request: &Request) -> Option<Problem> {
    let uri = request.uri();
    let address = uri.path().len() + uri.query().map_or(0, |query| query.len() + 1);
    if address > LONGEST_ADDRESS {
        return Some(Problem::new(
            StatusCode::URI_TOO_LONG,
            "address_too_long",
            format!("The address is too long; at most {LONGEST_ADDRESS} bytes are read."),
        ));
    }
    let headers: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    (headers > MOST_HEADER_BYTES).then(|| {
        Problem::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "headers_too_large",
            format!("The headers are too large; at most {MOST_HEADER_BYTES} bytes are read."),
        )
    })
}

/// The panic's message stays out of answer and log: it may hold what a client has sent. The panic hook says where.
fn panicked(_: Box<dyn Any + Send>, id: &RequestId) -> Response {
    tracing::error!(request_id = %id, "a handler panicked");
    Problem::internal_error().into_response()
}

fn in_envelope(mut response: Response, id: &RequestId) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else {
        return response;
    };
    if let Some(failure) = &problem.cause {
        tracing::error!(%failure, request_id = %id, "a request failed");
    }
    // Headers that were added on the way out (`Allow`) are kept.
    let (parts, _) = response.into_parts();
    let mut rendered = problem.answer(id).into_response();
    for (name, value) in &parts.headers {
        if !matches!(*name, header::CONTENT_TYPE | header::CONTENT_LENGTH) {
            rendered.headers_mut().append(name, value.clone());
        }
    }
    rendered.extensions_mut().extend(parts.extensions);
    if matches!(problem.cause.as_deref(), Some(Failure::Store(store::Error::UnknownCommit))) {
        rendered.extensions_mut().insert(Unsayable);
    }
    rendered
}

fn set_headers(response: &mut Response, id: &RequestId, settings: EdgeSettings) {
    let headers = response.headers_mut();
    let id = HeaderValue::from_str(id.as_str()).expect("a request id is letters and digits");
    headers.insert(HeaderName::from_static("x-request-id"), id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if settings.is_https {
        headers
            .insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=63072000; includeSubDomains"));
    }
    // Pages bring their own, wider ones.
    let defaults = [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in defaults {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// The route's template, because an address may hold a token.
fn log(method: &Method, route: &str, status: u16, duration_ms: f64, id: &RequestId) {
    let method = metrics::known(method);
    if status >= 500 {
        tracing::error!(method, route, status, duration_ms, request_id = %id, "request");
    } else {
        tracing::info!(method, route, status, duration_ms, request_id = %id, "request");
    }
}

#[cfg(test)]
mod tests;
