//! Access tokens: minted with a secret key, verified by anybody against the published keys. And the keys of receipts.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::api_key::{ApiKey, Rights};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Api;
use super::answer::{Answer, Problem};
use super::body::Sent;
use super::caller::Caller;
use super::fault::{FaultCode, shown};
use super::fields::Fields;
use super::openapi::Data;
use crate::app::{look_up, receipt_statements};
use crate::tokens::{self, DEFAULT_LIFETIME_S, Grant, LONGEST_LIFETIME_S, SHORTEST_LIFETIME_S};
use crate::wire::words;

/// All of it may be left out.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreateToken)]
pub(super) struct TokenBody {
    /// Seconds.
    #[schema(minimum = 60, maximum = 86400, default = 3600)]
    expires_in: Option<i64>,
    /// Space-separated, a part of the key's own scopes. Without it, all of them.
    #[schema(examples("read:checkouts write:checkouts"))]
    scope: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AccessToken {
    /// A JWT, signed with Ed25519.
    access_token: String,
    #[schema(value_type = words::Bearer)]
    token_type: &'static str,
    /// Seconds.
    expires_in: i64,
    /// What the token may do, space-separated.
    #[schema(examples("read:checkouts write:checkouts"))]
    scope: String,
}

/// Get an access token for a secret key.
#[utoipa::path(
    post, path = "/v1/auth/token", tag = "Authentication", operation_id = "create_access_token",
    request_body = TokenBody,
    responses((status = 200, description = "A JWT, for the header Authorization.", body = Data<AccessToken>)),
)]
pub(super) async fn create(State(api): State<Api>, caller: Caller, body: Sent) -> Result<Answer, Problem> {
    let key_id = caller.secret_key()?;
    let body = body?;
    let scope = caller.scope();
    let key = api.app.look(move |tx, _| look_up::<ApiKey>(tx, scope, key_id)).await?;
    let mut fields = Fields::new(&body);
    let lifetime_s = fields.integer("expires_in", SHORTEST_LIFETIME_S..=LONGEST_LIFETIME_S).or(DEFAULT_LIFETIME_S);
    let wanted = fields.text("scope").min(1).check(|text| {
        let rights = Rights::parse(&text)
            .map_err(|word| (FaultCode::InvalidEnum, format!("`scope`: {:?} is none.", shown(&word))))?;
        if rights.is_empty() || !rights.is_within(&key.rights) {
            return Err((FaultCode::NotAllowed, "`scope` must be a part of the key's own scopes.".to_owned()));
        }
        Ok(rights)
    });
    let rights = wanted.or(key.rights.clone());
    fields.finish()?;
    let signing = api.credentials.signing_keys().await?;
    let token_id = api
        .app
        .commit(|tx, _| {
            let now = tx.now();
            let id: domain::Id<domain::event::Event> = tx.entropy().id(now);
            Ok(id.to_string().replacen("evt", "jti", 1))
        })
        .await?;
    let grant = Grant {
        key_id: key_id.to_string(),
        organization_id: scope.organization.to_string(),
        mode: scope.mode,
        scope: rights.to_string(),
        token_id,
    };
    let issuer = &api.app.context().addresses.public_url;
    // Another process holds it against its own clock, which knows nothing of ours having been ahead.
    let now_s = api.app.store().wall_time().seconds();
    let access_token = signing
        .mint(&grant, issuer, now_s, lifetime_s)
        .map_err(|fault| crate::error::Failure::Broken(fault.to_string()))?;
    Ok(Answer::ok(&AccessToken { access_token, token_type: "Bearer", expires_in: lifetime_s, scope: grant.scope }))
}

/// The keys that verify access tokens.
#[utoipa::path(
    get, path = "/.well-known/jwks.json", tag = "Authentication", operation_id = "get_key_set",
    responses((status = 200, description = "A JSON Web Key Set.", body = inline(Object))),
    security(()),
)]
pub(super) async fn key_set(State(api): State<Api>) -> Result<Response, Problem> {
    let keys = api.credentials.signing_keys().await?;
    let cache = [(http::header::CACHE_CONTROL, "public, max-age=300")];
    Ok((cache, axum::Json(keys.jwks())).into_response())
}

/// The keys that verify receipt statements.
#[utoipa::path(
    get, path = "/.well-known/receipt-keys.json", tag = "Receipts", operation_id = "get_receipt_key_set",
    responses((status = 200, description = "A JSON Web Key Set.", body = inline(Object))),
    security(()),
)]
pub(super) async fn receipt_key_set(State(api): State<Api>) -> Result<Response, Problem> {
    let keys = api.app.read(receipt_statements::verifying_keys).await?;
    let cache = [(http::header::CACHE_CONTROL, "public, max-age=300")];
    Ok((cache, axum::Json(tokens::key_set(&keys))).into_response())
}
