//! Who looks at a page, and how: the language, the address, what the query carries. Reads a request and judges nothing.

use std::convert::Infallible;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::header::ACCEPT_LANGUAGE;
use axum::http::request::Parts;
use domain::Method;
use url::form_urlencoded;

use super::text::Language;
use crate::request_id::RequestId;

/// What an address names. One that is malformed names nothing, and gets our page for that.
pub(super) type InPath<T> = Result<Path<T>, PathRejection>;

#[derive(Debug, Clone)]
pub(super) struct Visit {
    /// As the browser asked for it.
    pub(super) path: String,
    pub(super) request_id: RequestId,
    /// How often a page without script has asked already.
    pub(super) reads: u32,
    pub(super) note: Option<String>,
    /// A method was chosen that asks for a phone first.
    pub(super) method: Option<Method>,
    /// The part of an invoice that was chosen with it, as it was typed.
    pub(super) part: Option<String>,
    /// What the simulator's card page has against a choice.
    pub(super) problem: Option<String>,
    /// The validation code of a receipt that is asked about, as it was typed.
    pub(super) code: Option<String>,
    lang: Option<String>,
    accept_language: Option<String>,
}

impl Visit {
    pub(super) fn language(&self, organization: Option<&str>) -> Language {
        Language::choose(self.lang.as_deref(), self.accept_language.as_deref(), organization)
    }
}

impl<S: Sync> FromRequestParts<S> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        let value = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        Ok(Self {
            path: parts.uri.path().to_owned(),
            request_id: parts.extensions.get::<RequestId>().cloned().unwrap_or_default(),
            reads: value("reads").and_then(|reads| reads.parse().ok()).unwrap_or(0),
            note: value("note"),
            method: value("method").and_then(|method| Method::parse(&method)),
            part: value("amount"),
            problem: value("problem"),
            code: value("code"),
            lang: value("lang"),
            accept_language: parts.headers.get(ACCEPT_LANGUAGE).and_then(|it| it.to_str().ok()).map(String::from),
        })
    }
}

/// An address of ours, with the language that the payer chose and whatever else a page needs.
pub(super) fn address(path: &str, language: Language, parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if language.chosen {
        query.append_pair("lang", language.locale.code());
    }
    query.extend_pairs(parameters);
    match query.finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}
