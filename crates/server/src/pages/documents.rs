//! The files that a payer may keep: an invoice's beside its page, and a receipt's by its validation code, which nobody
//! can guess. Not here: what they show.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use domain::Id;
use domain::invoice::Invoice;
use domain::receipt::ValidationCode;

use super::answer::Wrong;
use super::routes::Site;
use super::visit::{InPath, Visit};
use crate::app::documents::File;

/// `/invoice/{id}/pdf`: as a file, with the masks of its page, and with the postal address, which an invoice has to name.
pub(super) async fn invoice(State(site): State<Arc<Site>>, visit: Visit, id: InPath<Id<Invoice>>) -> Response {
    let found = match id {
        Ok(id) => site.app.issued_invoice_document(id.0).await.map_err(Wrong::from),
        Err(_) => Err(Wrong::NotFound),
    };
    answer(&site, &visit, found)
}

/// `/receipts/{validation_code}.pdf`
pub(super) async fn receipt(State(site): State<Arc<Site>>, visit: Visit, file: InPath<String>) -> Response {
    let code = file.ok().and_then(|file| ValidationCode::typed(file.0.strip_suffix(".pdf")?));
    let found = match code {
        Some(code) => site.app.receipt_document(code).await.map_err(Wrong::from),
        None => Err(Wrong::NotFound),
    };
    answer(&site, &visit, found)
}

fn answer(site: &Site, visit: &Visit, found: Result<File, Wrong>) -> Response {
    match found {
        Ok(file) => (headers(&file.name), file.bytes).into_response(),
        Err(wrong) => wrong.answer(visit, visit.language(None), site.is_https),
    }
}

/// Shown in the browser where it can. What it shows changes with the invoice, and is not for caches between.
fn headers(name: &str) -> HeaderMap {
    let name = format!("inline; filename=\"{name}\"");
    let name = HeaderValue::from_str(&name).expect("a file's name is letters, digits, '-', '_' and '.'");
    HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/pdf")),
        (CONTENT_DISPOSITION, name),
        (CACHE_CONTROL, HeaderValue::from_static("private, no-store")),
        // A browser's own viewer is a page with a style of its own.
        (
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
            ),
        ),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ])
}
