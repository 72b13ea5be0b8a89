//! The address of the page that checks receipts. What it is to check never gets here.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use url::Url;

use super::answer::{Wrong, html, nonce};
use super::routes::Site;
use super::verify;
use super::view::{ReceiptKey, VerifyPage};
use super::visit::Visit;
use crate::app::receipt_statements;
use crate::receipt_statement::short_id;

pub(super) async fn show(State(site): State<Arc<Site>>, visit: Visit) -> Response {
    let language = visit.language(None);
    let keys = match site.app.read(receipt_statements::verifying_keys).await {
        Ok(keys) => keys,
        Err(failure) => return Wrong::from(failure).answer(&visit, language, site.is_https),
    };
    let page = VerifyPage {
        language,
        path: "/verify".to_owned(),
        keys: keys.iter().map(|key| ReceiptKey { id: short_id(key), bytes: *key.bytes() }).collect(),
        host: host(site.pay_url()),
    };
    let nonce = nonce();
    html(StatusCode::OK, &nonce, site.is_https, verify::render(&page, &nonce))
}

/// What the address bar has to show; with a port where it isn't the usual one.
fn host(pay_url: &str) -> String {
    let url = Url::parse(pay_url).ok();
    let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
    match host {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host.to_owned(),
        None => pay_url.to_owned(),
    }
}
