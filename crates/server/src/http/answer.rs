//! The two shapes of an answer's body: `{"data": …}` and the error envelope. Both can be made into bytes before they
//! are sent, because an idempotent answer is stored in the transaction of its effect and replayed byte for byte.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::json::InvalidJson;
use super::request_id::RequestId;
use crate::error::Failure;

/// What `Retry-After` says at most with 503.
pub const LONGEST_RETRY_S: u64 = 10;
/// As long as contract §1.4 lets anybody be sent away with 429.
pub const LONGEST_RATE_RETRY_S: u64 = 5;

/// A finished answer: its status and the exact bytes of its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    /// JSON, or empty with 204.
    pub body: Bytes,
    replayed: bool,
}

impl Answer {
    /// `{"data": value}`.
    pub fn data(status: StatusCode, value: &impl Serialize) -> Self {
        #[derive(Serialize)]
        struct Data<'v, T> {
            data: &'v T,
        }
        let body = serde_json::to_vec(&Data { data: value }).expect("our views have nothing that JSON can't say");
        Self::stored(status, body)
    }

    pub fn ok(value: &impl Serialize) -> Self {
        Self::data(StatusCode::OK, value)
    }

    pub fn created(value: &impl Serialize) -> Self {
        Self::data(StatusCode::CREATED, value)
    }

    pub fn no_content() -> Self {
        Self::stored(StatusCode::NO_CONTENT, Bytes::new())
    }

    /// An answer from its stored parts.
    pub fn stored(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { status, body: body.into(), replayed: false }
    }

    /// Says in a header that this answer was given before.
    pub fn replayed(mut self) -> Self {
        self.replayed = true;
        self
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let has_body = !self.body.is_empty();
        let refused = (self.status.as_u16() >= 400).then(|| Refused(self.body.clone()));
        let mut response = (self.status, self.body).into_response();
        let headers = response.headers_mut();
        headers.remove(CONTENT_TYPE);
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if self.replayed {
            let name = HeaderName::from_static("idempotent-replayed");
            headers.insert(name, HeaderValue::from_static("true"));
        }
        if let Some(refused) = refused {
            response.extensions_mut().insert(refused);
        }
        response
    }
}

/// On a response that refuses something: its body, in which the code stands.
#[derive(Clone)]
pub(super) struct Refused(Bytes);

impl Refused {
    pub(super) fn code(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Envelope {
            code: String,
        }
        serde_json::from_slice::<Envelope>(&self.0).ok().map(|envelope| envelope.code)
    }
}

/// A refusal or a failure on its way to the client. Returned from a handler, it is rendered by `envelope::close`,
/// which knows the request's id; `answer` renders it earlier, to be stored.
#[derive(Debug, Clone)]
pub struct Problem {
    pub status: StatusCode,
    pub code: Cow<'static, str>,
    /// A sentence that says what to do.
    pub error: Cow<'static, str>,
    pub details: Vec<Fault>,
    /// Sent with the answer; not part of what is stored.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What went wrong on our side: for the log, never for the client.
    pub cause: Option<Box<Failure>>,
}

/// Where the published SDK has more than this server, and what that is.
const NOT_THERE_YET: [(&str, &str); 4] = [
    ("/v1/sms", "SMS yet"),
    ("/v1/payouts", "payouts yet, only their balance (`GET /v1/payouts/balance`)"),
    ("/v1/pay/subscriptions", "subscriptions yet"),
    ("/v1/pay/donations", "donations yet"),
];

impl Problem {
    pub fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, error: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code: code.into(), error: error.into(), details: Vec::new(), headers: Vec::new(), cause: None }
    }

    /// Clients of the published SDK see only the sentence, so it holds the first fault.
    pub fn validation(faults: Vec<Fault>) -> Self {
        let error = match faults.as_slice() {
            [] => "The request is not valid.".to_owned(),
            [only] => only.message.clone(),
            [first, rest @ ..] => {
                let s = if rest.len() == 1 { "" } else { "s" };
                format!("{} ({} more fault{s} in `details`)", first.message, rest.len())
            }
        };
        Self { details: faults, ..Self::new(StatusCode::BAD_REQUEST, "validation_failed", error) }
    }

    pub fn card_data_not_allowed(field: &str) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "card_data_not_allowed",
            format!("`{field}` holds a card number. Never send card numbers here; leave it out."),
        )
    }

    /// Whoever comes with the published SDK has no address to check: it knows more than there is here.
    pub fn route_not_found(path: &str) -> Self {
        let begins = |area: &str| path.strip_prefix(area).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let error = match NOT_THERE_YET.iter().find(|(area, _)| begins(area)) {
            Some((_, what)) => format!("This server has no {what}."),
            None => "There is nothing at this address; check the path (a trailing slash counts).".to_owned(),
        };
        Self::new(StatusCode::NOT_FOUND, "route_not_found", error)
    }

    pub fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "This address does not take this method; the `Allow` header names those that it takes.",
        )
    }

    /// Never with `Retry-After`: the same body would only be sent again.
    pub fn body_too_large(most_bytes: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("The body is too large; at most {most_bytes} bytes are read here."),
        )
    }

    pub fn unsupported_media_type(error: &'static str) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", error)
    }

    pub fn rate_limited(retry_after_seconds: u64) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limited",
            "Too many requests; wait as long as the `Retry-After` header says.",
        )
        .retry_after(retry_after_seconds)
    }

    /// Says nothing about the cause: that is in the log, under the request's id.
    pub fn internal_error() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "Something went wrong on the server.")
    }

    pub fn unavailable() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "The service is not available at the moment.")
            .after_a_failover()
    }

    /// There is more to do than can be done at once.
    pub fn busy() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "The service has more to do than it can at the moment. Nothing was changed; try again.",
        )
        .retry_after(1)
    }

    /// The published SDK tries three times more: together that is longer than another database takes to become the leader.
    fn after_a_failover(self) -> Self {
        self.header(RETRY_AFTER, HeaderValue::from(LONGEST_RETRY_S))
    }

    /// 1 to 5 seconds: the published SDK sleeps them in full.
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header(RETRY_AFTER, HeaderValue::from(seconds.clamp(1, LONGEST_RATE_RETRY_S)))
    }

    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The error envelope as bytes. Its headers are not part of it.
    pub fn answer(&self, request_id: &RequestId) -> Answer {
        #[derive(Serialize)]
        struct Envelope<'p> {
            error: &'p str,
            code: &'p str,
            #[serde(skip_serializing_if = "<[Fault]>::is_empty")]
            details: &'p [Fault],
            request_id: &'p str,
        }
        let envelope =
            Envelope { error: &self.error, code: &self.code, details: &self.details, request_id: request_id.as_str() };
        let body = serde_json::to_vec(&envelope).expect("an envelope holds only texts");
        Answer::stored(self.status, body)
    }
}

impl From<Vec<Fault>> for Problem {
    fn from(faults: Vec<Fault>) -> Self {
        Self::validation(faults)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let is_too_often = matches!(failure, Failure::TooOften);
        let cause = failure.is_fault().then(|| Box::new(failure.clone()));
        let status = StatusCode::from_u16(failure.status()).expect("the map of failures holds statuses");
        let is_gone = matches!(failure, Failure::Store(store::Error::Unavailable(_)));
        let problem = match failure {
            Failure::Invalid(faults) => Self::validation(faults),
            failure => Self { cause, ..Self::new(status, failure.code(), failure.sentence()) },
        };
        match status {
            _ if is_gone => problem.after_a_failover(),
            StatusCode::TOO_MANY_REQUESTS if is_too_often => problem.retry_after(LONGEST_RATE_RETRY_S),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => problem.retry_after(1),
            _ => problem,
        }
    }
}

impl From<InvalidJson> for Problem {
    fn from(error: InvalidJson) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_json", error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        for (name, value) in &self.headers {
            response.headers_mut().append(name, value.clone());
        }
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::fault::FaultCode;

    #[test]
    fn success_has_one_key() {
        let answer = Answer::created(&serde_json::json!({"id": "cs_1"}));
        assert_eq!(answer.status, 201);
        assert_eq!(&answer.body[..], br#"{"data":{"id":"cs_1"}}"#);
    }

    #[test]
    fn the_sentence_holds_the_first_fault() {
        let fault = |field: &str| Fault::new(field, FaultCode::Required, format!("`{field}` is required."));
        let id = RequestId::new();
        let answer = Problem::validation(vec![fault("a"), fault("b")]).answer(&id);
        let expected = format!(
            r#"{{"error":"`a` is required. (1 more fault in `details`)","code":"validation_failed","details":[{{"field":"a","code":"required","message":"`a` is required."}},{{"field":"b","code":"required","message":"`b` is required."}}],"request_id":"{id}"}}"#
        );
        assert_eq!(answer.body, expected);
        let only = Problem::validation(vec![fault("a")]);
        assert_eq!(only.error, "`a` is required.");
    }

    #[test]
    fn without_faults_there_are_no_details() {
        let answer = Problem::internal_error().answer(&RequestId::new());
        assert!(!String::from_utf8_lossy(&answer.body).contains("details"));
    }

    #[test]
    fn a_wait_is_one_to_five_seconds() {
        for (asked, sent) in [(0, "1"), (3, "3"), (900, "5")] {
            let headers = Problem::rate_limited(asked).headers;
            assert_eq!(headers, [(RETRY_AFTER, HeaderValue::from_static(sent))]);
        }
        assert!(Problem::body_too_large(1).headers.is_empty());
        let wait = |error| Problem::from(Failure::Store(error)).headers[0].1.clone();
        assert_eq!(wait(store::Error::Unavailable(String::new())), "10", "the database is gone");
        assert_eq!(wait(store::Error::Conflict), "1", "others were faster");
        assert_eq!(wait(store::Error::Busy), "1", "others were first");
    }
}
