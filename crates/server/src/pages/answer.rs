//! How a page leaves: with its headers, as a redirect to another page of ours, or as the page that says what is wrong.

use axum::http::header::{HeaderValue, LOCATION, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::Refusal;

use super::headers::{Nonce, for_page};
use super::message;
use super::page_path::{self, PagePath};
use super::text::Language;
use super::view::{Message, MessagePage};
use super::visit::Visit;
use crate::entropy::{EntropySource, SystemEntropy};
use crate::error::Failure;

/// Fresh for one answer.
pub(super) fn nonce() -> Nonce {
    let bytes = random();
    Nonce::from_random(std::array::from_fn(|index| bytes[index]))
}

pub(super) fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    SystemEntropy.fill(&mut bytes);
    bytes
}

pub(super) fn html(status: StatusCode, nonce: &Nonce, is_https: bool, body: String) -> Response {
    let body =
        if domain::planted!(Defect::PageUnescaped) { body.replace("&#60;", "<").replace("&#62;", ">") } else { body };
    (status, for_page(nonce, is_https), body).into_response()
}

/// Always to an address of ours, so that a form never leads to another host.
pub(super) fn see_other(address: &str) -> Response {
    let location = HeaderValue::from_str(address).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

/// Why there is no page.
#[derive(Debug)]
pub(super) enum Wrong {
    NotFound,
    /// A form from elsewhere, one without its token, or one that no browser sends.
    ForeignForm,
    TooLarge,
    /// A form did not come to its end.
    TooSlow,
    TooMany(HeaderMap),
    /// There is more to do than can be done at once.
    TooBusy,
    Failed(Failure),
    Panicked,
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(Refusal::NotFound { .. }) => Self::NotFound,
            failure => Self::Failed(failure),
        }
    }
}

impl Wrong {
    pub(super) fn answer(self, visit: &Visit, language: Language, is_https: bool) -> Response {
        let wait = |seconds| HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(seconds))]);
        let fault = || Message::Fault { request_id: visit.request_id.to_string() };
        let (status, message, more) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, Message::NotFound, HeaderMap::new()),
            Self::ForeignForm => (StatusCode::FORBIDDEN, Message::ForeignForm, HeaderMap::new()),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, Message::TooLarge, HeaderMap::new()),
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, Message::Unavailable, HeaderMap::new()),
            Self::TooMany(headers) => (StatusCode::TOO_MANY_REQUESTS, Message::TooMany, headers),
            Self::TooBusy => (StatusCode::SERVICE_UNAVAILABLE, Message::Unavailable, wait("1")),
            Self::Failed(failure) if failure.status() == 503 => {
                tracing::error!(request_id = %visit.request_id, %failure, "a page can't be served");
                (StatusCode::SERVICE_UNAVAILABLE, Message::Unavailable, wait("2"))
            }
            Self::Failed(failure) => {
                tracing::error!(request_id = %visit.request_id, %failure, "a page failed");
                (StatusCode::INTERNAL_SERVER_ERROR, fault(), HeaderMap::new())
            }
            Self::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, fault(), HeaderMap::new()),
        };
        // "Look again" leads to the page and never to a form's own address, which only takes forms.
        let page = MessagePage { language, path: page_of(&visit.path), message };
        let nonce = nonce();
        let mut response = html(status, &nonce, is_https, message::render(&page, &nonce));
        response.headers_mut().extend(more);
        response
    }
}

/// `/checkout/cs_…/method` is an action of `/checkout/cs_…`, and `/pay/pl_…/ps_…` a page of its own: the link's is the
/// beginning of another payment.
fn page_of(path: &str) -> String {
    match PagePath::of(path) {
        Some(page) => page_path::path(page.place),
        None => path.split('/').take(3).collect::<Vec<_>>().join("/"),
    }
}
