//! The API explained: the OpenAPI document and a reference page that needs no network.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header;

use super::{Api, document};

pub(super) fn router() -> Router<Api> {
    Router::new().route("/openapi.json", get(openapi))
}

async fn openapi() -> Response {
    let text = document().to_pretty_json().expect("the document is JSON");
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
