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

/// What is no part of the merchant's API.
pub(super) fn router() -> Router<Api> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(State(api): State<Api>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], api.metrics.render()).into_response()
}
