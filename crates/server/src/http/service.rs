//! Whether the service is well, for people and machines that watch it.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::answer::{Answer, Problem};
use super::openapi::Data;
use crate::wire::words;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    #[schema(pattern = "^ok$")]
    status: &'static str,
}

/// Whether the service can answer.
#[utoipa::path(
    get, path = "/health", tag = "Service", operation_id = "get_health",
    responses((status = 200, description = "It can.", body = Data<Health>), (status = 503, description = "The store is down.")),
    security(()),
)]
pub(super) async fn health(State(api): State<Api>) -> Result<Answer, Problem> {
    api.app.read(|tx, _| Ok(tx.query("select 1 as one", &[]).map(drop)?)).await.map_err(|_| Problem::unavailable())?;
    Ok(Answer::ok(&Health { status: "ok" }))
}

/// The same, under the prefix of the API.
#[utoipa::path(
    get, path = "/v1/health", tag = "Service", operation_id = "get_versioned_health",
    responses((status = 200, description = "It can.", body = Data<Health>), (status = 503, description = "The store is down.")),
    security(()),
)]
pub(super) async fn versioned_health(state: State<Api>) -> Result<Answer, Problem> {
    health(state).await
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Invariants)]
pub(super) struct InvariantsView {
    /// `faults` as soon as one was found, by the latest check or by one that has not ended, or while refunds wait because of one that
    /// any process has found: look into the log.
    #[schema(value_type = words::InvariantsStatus)]
    status: &'static str,
    /// When the check ended; null while it has not run since the start.
    #[schema(value_type = Option<words::Time>)]
    last_run: Option<String>,
    /// The names of the checks that ran.
    checked: Vec<&'static str>,
    /// How many faults it found, or the check after it has found so far, if those are more: each of them, also where the log
    /// names only the first 1,000. One at least for each merchant and mode whose refunds wait.
    #[schema(minimum = 0)]
    faults: u64,
}

/// What the background check found.
#[utoipa::path(
    get, path = "/health/invariants", tag = "Service", operation_id = "get_invariants",
    responses(
        (status = 200, description = "The latest run.", body = Data<InvariantsView>),
        (status = 503, description = "The store is down."),
    ),
    security(()),
)]
pub(super) async fn invariants(State(api): State<Api>) -> Result<Answer, Problem> {
    let standing = api.app.standing_doubts().await.map_err(|_| Problem::unavailable())?;
    let found = api.app.invariants().get();
    let faults = found.known_faults().max(standing);
    let status = match (faults, found.last_run) {
        (0, None) => "not_run",
        (0, Some(_)) => "ok",
        (_, None | Some(_)) => "faults",
    };
    let last_run = found.last_run.map(domain::Timestamp::to_text);
    Ok(Answer::ok(&InvariantsView { status, last_run, faults, checked: found.checked }))
}

/// What is no part of the merchant's API.
pub(super) fn router() -> Router<Api> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(State(api): State<Api>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], api.metrics.render(api.app.store()))
        .into_response()
}
