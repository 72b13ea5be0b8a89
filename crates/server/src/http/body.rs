//! Reads the whole body of a request, within limits, before any handler runs; and hands it to handlers as our JSON tree.
//! The time that a body may take is the listener's to watch; its error is answered here.

use std::error::Error;
use std::io;

use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;

use super::answer::Problem;
use super::json::Body;
use super::query::Query;
use crate::gate::Full;
use crate::whole_body::{self, Unread};

/// What bodies a group of routes takes.
#[derive(Debug, Clone, Copy)]
pub struct BodyRules {
    pub most_bytes: usize,
    pub media: Media,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// JSON; a missing media type is read as JSON.
    Json,
    /// What an HTML form posts.
    Form,
    /// Whatever the label says; the handler looks at the bytes.
    Any,
}

impl BodyRules {
    pub const JSON: Self = Self { most_bytes: 1024 * 1024, media: Media::Json };
    pub const FORM: Self = Self { most_bytes: 64 * 1024, media: Media::Form };
    pub const UPLOAD: Self = Self { most_bytes: 5 * 1024 * 1024, media: Media::Any };
}

/// A layer: `router.layer(middleware::from_fn_with_state(BodyRules::JSON, read_body))`.
pub async fn read_body(State(rules): State<BodyRules>, request: Request, next: Next) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let bytes = read(rules, &parts.headers, body).await?;
    parts.extensions.insert(BodyWasRead);
    Ok(next.run(Request::from_parts(parts, bytes.into())).await)
}

#[derive(Clone, Copy)]
struct BodyWasRead;

async fn read(mut rules: BodyRules, headers: &HeaderMap, body: axum::body::Body) -> Result<Bytes, Problem> {
    if domain::planted!(Defect::BodyUncapped) {
        rules.most_bytes = usize::MAX;
    }
    let encoding = headers.get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Problem::unsupported_media_type(
            "Compressed bodies are not read; send the body without `Content-Encoding`.",
        ));
    }
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > rules.most_bytes as u64) {
        return Err(Problem::body_too_large(rules.most_bytes));
    }
    let bytes = whole_body::read(body, rules.most_bytes).await.map_err(|why| match why {
        Unread::TooLarge => Problem::body_too_large(rules.most_bytes),
        Unread::Broken(error) => broken(&error),
    })?;
    if !bytes.is_empty() {
        check_media(rules.media, headers)?;
    }
    Ok(bytes)
}

fn broken(error: &(dyn Error + 'static)) -> Problem {
    let is_timeout = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    if Full::is_cause_of(error) {
        Problem::busy()
    } else if causes.any(|cause| cause.downcast_ref().is_some_and(is_timeout)) {
        timed_out()
    } else {
        incomplete()
    }
}

pub(super) fn timed_out() -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "request_timeout",
        "The body took too long to arrive; send it again, faster.",
    )
}

fn incomplete() -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "invalid_json",
        "The body ended before its end or is not framed as HTTP asks; send it again.",
    )
}

fn check_media(media: Media, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(sent) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let sent = String::from_utf8_lossy(sent.as_bytes()).to_ascii_lowercase();
    let sent = sent.split(';').next().unwrap_or("").trim();
    match media {
        Media::Json if sent == "application/json" => Ok(()),
        Media::Json if sent.starts_with("application/") && sent.ends_with("+json") => Ok(()),
        Media::Json => Err(Problem::unsupported_media_type(
            "The body must be JSON; send it with `Content-Type: application/json`.",
        )),
        Media::Form if sent == "application/x-www-form-urlencoded" => Ok(()),
        Media::Form => Err(Problem::unsupported_media_type(
            "The body must be a form; send it with `Content-Type: application/x-www-form-urlencoded`.",
        )),
        Media::Any => Ok(()),
    }
}

/// A body as a handler takes it. What is wrong with it is told once the caller's right is known, and not before.
pub type Sent = Result<Body, Problem>;

/// The body as a JSON object. A route that has no `read_body` layer still gets the limits of `BodyRules::JSON`.
impl<S: Sync> FromRequest<S> for Body {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = match parts.extensions.get::<BodyWasRead>() {
            Some(BodyWasRead) => body.collect().await.map_err(|_| Problem::internal_error())?.to_bytes(),
            None => read(BodyRules::JSON, &parts.headers, body).await?,
        };
        Ok(Body::parse(&bytes)?)
    }
}

/// The query string; never refused here, because its faults are reported together.
impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Query::parse(parts.uri.query()))
    }
}
