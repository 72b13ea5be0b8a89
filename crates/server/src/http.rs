//! The wire: how a request is read, and how an answer leaves.
//! Decides nothing about money; handlers parse, call a command, render.

pub mod answer;
pub mod auth;
mod balance;
pub mod body;
pub mod caller;
pub mod card_guard;
mod checkouts;
mod customers;
mod documents;
pub mod envelope;
mod events;
pub mod fields;
mod invoices;
pub mod json;
mod ledger;
mod openapi;
mod path;
mod payment_links;
mod payment_settings;
mod payments;
mod products;
pub mod query;
mod read;
mod receipts;
mod reference;
mod references;
mod refunds;
mod request_log;
mod requests;
mod sending;
mod service;
mod tokens;
mod transactions;
mod unread;
mod webhook_endpoints;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::http::request::Parts;
use axum::http::{HeaderName, Method, header};
use tokio::sync::watch;
use tower_http::cors::{Any, CorsLayer};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::answer::Problem;
use self::envelope::EdgeSettings;
use crate::app::App;
use crate::metrics::Metrics;
use crate::rate_limit::{Rate, RateLimits};

pub use crate::{fault, request_id};
pub use openapi::document_text;

/// What the API needs beside the commands.
#[derive(Clone)]
pub struct Api {
    pub app: App,
    pub limits: Arc<RateLimits>,
    pub credentials: Arc<auth::Credentials>,
    pub metrics: &'static Metrics,
    request_log: request_log::RequestLog,
    /// Says true when the server stops: open streams end, so that nobody waits for them.
    stopping: watch::Receiver<bool>,
}

impl Api {
    pub fn new(app: App, rate: Option<Rate>, metrics: &'static Metrics) -> Self {
        let credentials = Arc::new(auth::Credentials::new(app.clone()));
        Self {
            app,
            limits: Arc::new(RateLimits::new(rate)),
            credentials,
            metrics,
            request_log: request_log::RequestLog::default(),
            stopping: watch::Sender::new(false).subscribe(),
        }
    }

    /// Which ends with the server.
    pub fn stopping_with(self, stopping: watch::Receiver<bool>) -> Self {
        Self { stopping, ..self }
    }
}

/// Every address of the API, on one page.
fn operations() -> OpenApiRouter<Api> {
    OpenApiRouter::new().merge(of_health()).merge(for_everybody()).merge(for_merchants())
}

/// Whether the service is well.
fn of_health() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(service::health))
        .routes(routes!(service::versioned_health))
        .routes(routes!(service::invariants))
}

/// What needs no key and costs next to nothing.
fn for_everybody() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(tokens::key_set)).routes(routes!(tokens::receipt_key_set))
}

fn for_merchants() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(tokens::create))
        .routes(routes!(checkouts::create, checkouts::list))
        .routes(routes!(checkouts::get))
        .routes(routes!(checkouts::cancel))
        .merge(from_browsers())
        .routes(routes!(transactions::list))
        .routes(routes!(transactions::get))
        .routes(routes!(refunds::create))
        .routes(routes!(refunds::list))
        .routes(routes!(refunds::get))
        .routes(routes!(balance::get))
        .routes(routes!(ledger::accounts))
        .routes(routes!(ledger::list))
        .routes(routes!(ledger::proof))
        .routes(routes!(payment_settings::settings))
        .routes(routes!(payment_settings::dashboard))
        .routes(routes!(payment_links::create, payment_links::list))
        .routes(routes!(payment_links::get, payment_links::update, payment_links::delete))
        .routes(routes!(customers::create, customers::list))
        .routes(routes!(customers::get, customers::update, customers::delete))
        .routes(routes!(products::create, products::list))
        .routes(routes!(products::get, products::update, products::delete))
        .routes(routes!(invoices::create, invoices::list))
        .routes(routes!(invoices::get, invoices::update))
        .routes(routes!(invoices::finalize))
        .routes(routes!(invoices::send))
        .routes(routes!(invoices::cancel))
        .routes(routes!(invoices::record_payment, invoices::list_payments))
        .routes(routes!(invoices::list_receipts))
        .routes(routes!(receipts::list))
        .routes(routes!(receipts::get))
        .routes(routes!(receipts::get_by_number))
        .routes(routes!(receipts::validate))
        .routes(routes!(documents::invoice))
        .routes(routes!(documents::receipt))
        .routes(routes!(webhook_endpoints::create, webhook_endpoints::list))
        .routes(routes!(
            webhook_endpoints::get,
            webhook_endpoints::update,
            webhook_endpoints::replace,
            webhook_endpoints::patch,
            webhook_endpoints::delete
        ))
        .routes(routes!(webhook_endpoints::test))
        .routes(routes!(webhook_endpoints::rotate_secret))
        .routes(routes!(events::list))
        .routes(routes!(events::get))
        .routes(routes!(events::retry))
}

/// The four operations that a publishable key may call, from any page.
fn from_browsers() -> OpenApiRouter<Api> {
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE, HeaderName::from_static("idempotency-key")])
        .expose_headers([
            HeaderName::from_static("x-request-id"),
            HeaderName::from_static("idempotent-replayed"),
            header::RETRY_AFTER,
        ]);
    // The preflight needs a route of its own, or it would meet the 405 of the envelope.
    let preflight = || axum::routing::options(async || http::StatusCode::NO_CONTENT);
    OpenApiRouter::new()
        .route("/v1/pay/initialize", preflight())
        .route("/v1/pay/status/{session_id}", preflight())
        .route("/v1/pay/session/{session_id}", preflight())
        .route("/v1/pay/methods", preflight())
        .routes(routes!(payments::initialize))
        .routes(routes!(payments::status))
        .routes(routes!(payments::session))
        .routes(routes!(payment_settings::methods))
        .layer(cors)
}

/// The operations without their descriptions, which take longer to compose than a server takes to start: once for all routers.
struct Plain {
    of_health: Router<Api>,
    for_everybody: Router<Api>,
    for_merchants: Router<Api>,
}

static PLAIN: LazyLock<Plain> = LazyLock::new(|| {
    let plain = |operations: OpenApiRouter<Api>| operations.split_for_parts().0;
    Plain {
        of_health: plain(of_health()),
        for_everybody: plain(for_everybody()),
        for_merchants: plain(for_merchants()),
    }
});

/// Closes a router that this API is in: as [`envelope::wrap`] does, but whoever follows their requests is told of those, too, that no
/// route takes.
pub fn wrap(router: Router, api: &Api, settings: EdgeSettings) -> Router {
    let (of_path, of_verb) = (api.clone(), api.clone());
    let router = router
        .fallback(move |parts: Parts| async move {
            let problem = Problem::route_not_found(parts.uri.path());
            caller::note_untaken(&of_path, parts).await;
            problem
        })
        .method_not_allowed_fallback(move |parts: Parts| async move {
            caller::note_untaken(&of_verb, parts).await;
            Problem::method_not_allowed()
        });
    envelope::close(router, settings)
}

/// All of it, with the pages that explain it. Unknown paths and the envelope are [`wrap`]'s to add.
pub fn router(api: Api) -> Router {
    let Plain { of_health, for_everybody, for_merchants } = &*PLAIN;
    let limited = |limit: caller::OfAddress| {
        axum::middleware::from_fn_with_state((Arc::clone(&api.limits), limit), caller::limit_address)
    };
    let of_health = of_health.clone().merge(service::router()).layer(limited(RateLimits::of_health));
    let for_everybody = for_everybody.clone().merge(reference::router()).layer(limited(RateLimits::of_open));
    for_merchants
        .clone()
        .merge(of_health)
        .merge(for_everybody)
        .merge(requests::router())
        .layer(axum::middleware::from_fn(caller::show_budget))
        .with_state(api)
}
