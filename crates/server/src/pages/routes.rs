//! Every address that a payer's browser asks for, and what is watched over all of them: how often one address may ask,
//! and that even a defect of ours answers with a page.

use std::any::Any;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use futures_util::FutureExt;
use tokio::sync::watch;

use super::answer::Wrong;
use super::note::Notes;
use super::streams::Streams;
use super::visit::{InPath, Visit};
use super::{assets, documents, follow, headers, logos, payment_handlers, simulator_handlers, verify_handlers};
use crate::app::App;
use crate::gate::{Full, KeptAnyway, WhenFull};
use crate::listener::ClientAddress;
use crate::rate_limit::{Rate, RateLimits};

pub struct PageSettings {
    /// Payers reach us by TLS.
    pub is_https: bool,
    /// For one client address, over all pages; `None` is no limit.
    pub rate: Option<Rate>,
    /// Says true when the server stops: open streams end, so that nobody waits for them.
    pub stopping: watch::Receiver<bool>,
}

/// What the handlers share.
pub(super) struct Site {
    pub(super) app: App,
    pub(super) is_https: bool,
    pub(super) notes: Notes,
    pub(super) streams: Streams,
    pub(super) stopping: watch::Receiver<bool>,
    limits: RateLimits,
}

impl Site {
    pub(super) fn pay_url(&self) -> &str {
        &self.app.context().addresses.pay_url
    }
}

pub fn router(app: App, settings: PageSettings) -> Router {
    let site = Arc::new(Site {
        is_https: settings.is_https,
        notes: Notes::new(&app.context().form_token_key),
        streams: Streams::default(),
        stopping: settings.stopping,
        limits: RateLimits::new(settings.rate),
        app,
    });
    payment_pages("/checkout/{id}")
        .merge(payment_pages("/invoice/{id}"))
        .merge(payment_pages("/pay/{id}"))
        // The page of one of many payments is shown where other pages have their actions.
        .merge(payment_actions("/pay/{id}/{session}"))
        .route("/invoice/{id}/pdf", get(documents::invoice))
        .route("/receipts/{file}", get(documents::receipt))
        .route("/simulator/{token}", get(simulator_handlers::show).post(simulator_handlers::act))
        .route("/verify", get(verify_handlers::show))
        .layer(middleware::from_fn_with_state(Arc::clone(&site), watch_over))
        .merge(pictures(&site))
        // Kept by browsers for ever, and the same for everybody.
        .route("/assets/{file}", get(asset))
        .with_state(site)
}

/// Looked up for each request; a page shows one of them, so they are counted apart from pages.
fn pictures(site: &Arc<Site>) -> Router<Arc<Site>> {
    let limited = middleware::from_fn_with_state(Arc::clone(site), limit_pictures);
    Router::new().route("/logos/{organization}/{mode}/{file}", get(logos::show)).layer(limited)
}

/// One page for each kind of thing that is paid; which one, its handlers read from the path.
fn payment_pages(page: &str) -> Router<Arc<Site>> {
    payment_actions(page).route(page, get(payment_handlers::show))
}

fn payment_actions(page: &str) -> Router<Arc<Site>> {
    Router::new()
        .route(&format!("{page}/returned"), get(payment_handlers::returned))
        .route(&format!("{page}/returned/{{way}}"), get(payment_handlers::returned))
        .route(&format!("{page}/status"), get(follow::status))
        .route(&format!("{page}/events"), get(follow::events))
        .route(&format!("{page}/{{action}}"), get(payment_handlers::show_instead).post(payment_handlers::act))
}

/// The client's address, set by the listener; without one all share a limit.
pub(super) fn client(request: &Request) -> ClientAddress {
    let known = request.extensions().get::<ClientAddress>().copied();
    known.unwrap_or(ClientAddress(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
}

async fn watch_over(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let client = client(&request);
    let (mut parts, body) = request.into_parts();
    let Ok(visit) = Visit::from_request_parts(&mut parts, &()).await;
    let response = match site.limits.of_address(client) {
        Ok(_) if parts.extensions.get::<Full>().is_some() => Err(Wrong::TooBusy),
        Err(problem) => Err(Wrong::TooMany(HeaderMap::from_iter(problem.headers))),
        Ok(_) => {
            let response = AssertUnwindSafe(next.run(Request::from_parts(parts, body))).catch_unwind().await;
            response.map_err(|panic| panicked(panic, &visit))
        }
    };
    let is_https = site.is_https;
    let say = move |wrong: Wrong| wrong.answer(&visit, visit.language(None), is_https);
    let mut response = response.unwrap_or_else(&say);
    response.extensions_mut().insert(WhenFull::new(move || say(Wrong::TooBusy)));
    response
}

async fn limit_pictures(State(site): State<Arc<Site>>, visit: Visit, request: Request, next: Next) -> Response {
    match site.limits.of_open(client(&request)) {
        Ok(_) => next.run(request).await,
        Err(problem) => {
            let wrong = Wrong::TooMany(HeaderMap::from_iter(problem.headers));
            wrong.answer(&visit, visit.language(None), site.is_https)
        }
    }
}

/// The panic's message stays out of the page and the log: it may hold what a payer has sent. The panic hook says where.
fn panicked(_: Box<dyn Any + Send>, visit: &Visit) -> Wrong {
    tracing::error!(request_id = %visit.request_id, "a page's handler panicked");
    Wrong::Panicked
}

async fn asset(State(site): State<Arc<Site>>, visit: Visit, file: InPath<String>) -> Response {
    match file.ok().and_then(|file| assets::find(&format!("/assets/{}", file.0))) {
        Some(asset) => (headers::for_asset(asset), Extension(KeptAnyway), asset.body.as_str()).into_response(),
        None => Wrong::NotFound.answer(&visit, visit.language(None), site.is_https),
    }
}
