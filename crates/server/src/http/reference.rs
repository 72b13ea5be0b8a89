//! The API explained: the OpenAPI document and a reference page that needs no network.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header;

use super::{Api, document_text};

pub(super) fn router() -> Router<Api> {
    Router::new().route("/openapi.json", get(openapi))
}

async fn openapi() -> Response {
    let text = document_text();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
