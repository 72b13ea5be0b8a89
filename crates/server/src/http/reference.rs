//! The API explained: the OpenAPI document, a reference page and a quick start, all from inside the binary. Nothing here
//! asks another host for anything, and nothing needs a key until the reader tries an operation.

mod files;
mod quickstart;

use std::sync::LazyLock;

use askama::Template;
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{self, HeaderMap, HeaderValue};

use self::files::File;
use super::answer::Problem;
use super::path::InPath;
use super::{Api, document_text};

static DOCUMENT: LazyLock<File> =
    LazyLock::new(|| File::new("openapi.json", "application/json", document_text().into_bytes()));

pub(super) fn router() -> Router<Api> {
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/docs", get(reference))
        .route("/docs/quickstart", get(quickstart::page))
        .route("/docs/assets/{name}", get(asset))
}

/// Made once, and asked for again by its tag.
async fn openapi(headers: HeaderMap) -> Response {
    DOCUMENT.answer(&headers, "public, no-cache")
}

async fn asset(InPath(name): InPath, headers: HeaderMap) -> Result<Response, Problem> {
    let file = files::find(&name).ok_or_else(|| Problem::route_not_found(&name))?;
    // The name holds the content's hash.
    Ok(file.answer(&headers, "public, max-age=31536000, immutable"))
}

#[derive(Template)]
#[template(path = "reference/docs.html")]
struct Page {
    version: &'static str,
    frame: Frame,
}

async fn reference() -> Response {
    // The tool writes style sheets of its own into its shadow tree; scripts are files of this server only.
    html(&Page { version: env!("CARGO_PKG_VERSION"), frame: Frame::new() }, "'self' 'unsafe-inline'")
}

/// The addresses of the files that both pages load.
struct Frame {
    style: String,
    script: String,
    tool: String,
    icon: String,
}

impl Frame {
    fn new() -> Self {
        let path = |file: &File| format!("/docs/assets/{}", file.name);
        Self {
            style: path(&files::STYLE),
            script: path(&files::SCRIPT),
            tool: path(&files::RAPIDOC),
            icon: path(&files::ICON),
        }
    }
}

fn html(page: &impl Template, styles: &str) -> Response {
    let text = page.render().expect("templates only write to memory");
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src {styles}; img-src 'self' data:; connect-src 'self'; \
         form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    );
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_str(&policy).expect("made of constants")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests;
