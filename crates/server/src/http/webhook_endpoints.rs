//! `/v1/webhook_endpoints`: create, get, list, update, delete, test, rotate the secret.

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::webhook::{EndpointStatus, EventFilter, WebhookEndpoint};
use domain::{Id, Metadata, Mode, Refusal};
use serde::{Deserialize, Serialize};
use store::Tx;
use store::queries::endpoints;
use store::queries::idempotency::IdempotencyKey;
use utoipa::ToSchema;

use super::answer::{Answer, Problem};
use super::body::Sent;
use super::caller::Caller;
use super::card_guard;
use super::fault::{Fault, FaultCode, shown};
use super::fields::{Field, Fields, MetadataValues};
use super::json::Body;
use super::openapi::Data;
use super::path::InPath;
use super::query::Query;
use super::{Api, read};
use crate::app::endpoint_tests::Tested;
use crate::app::webhooks::{self, EndpointChange, NewEndpoint, WithSecret};
use crate::app::{Context, look_up};
use crate::egress::FailureKind;
use crate::error::Failure;
use crate::metrics;
use crate::wire::List;
use crate::wire::webhooks::{EndpointView, TestResult};
use crate::wire::words;

const MOST_FILTERS: usize = 100;
/// Until a test that is under way has ended for certain.
const LONGEST_TEST_S: u64 = 15;

/// Where to send which events.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreateWebhookEndpoint)]
pub(super) struct CreateBody {
    /// https to a host's name, never to an IP address; in test mode http to this machine too, if the server allows it.
    #[schema(value_type = words::Url)]
    url: String,
    /// Types, `<resource>.*`, or `*`. Those of `sms`, `subscription`, `payout` and `donation` are taken and not sent yet.
    #[schema(value_type = Vec<words::EventFilter>, min_items = 1, max_items = 100)]
    enabled_events: Vec<String>,
    #[schema(max_length = 2000)]
    description: Option<String>,
    #[schema(value_type = Option<words::MetadataIn>)]
    metadata: Option<serde_json::Value>,
}

/// Only what is given changes.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = UpdateWebhookEndpoint)]
pub(super) struct UpdateBody {
    /// https to a host's name, never to an IP address; in test mode http to this machine too, if the server allows it.
    #[schema(value_type = Option<words::Url>, nullable = false)]
    url: Option<String>,
    /// Types, `<resource>.*`, or `*`. Those of `sms`, `subscription`, `payout` and `donation` are taken and not sent yet.
    #[schema(value_type = Option<Vec<words::EventFilter>>, min_items = 1, max_items = 100, nullable = false)]
    enabled_events: Option<Vec<String>>,
    /// null clears it.
    #[schema(max_length = 2000)]
    description: Option<String>,
    /// Making an inactive one `active` clears the counters of failures.
    #[schema(value_type = Option<words::EndpointStatus>, nullable = false)]
    status: Option<String>,
    #[schema(value_type = Option<words::MetadataIn>, nullable = false)]
    metadata: Option<serde_json::Value>,
}

/// Create a webhook endpoint.
#[utoipa::path(
    post, path = "/v1/webhook_endpoints", tag = "Webhook endpoints", operation_id = "create_webhook_endpoint",
    request_body = CreateBody,
    responses((status = 201, description = "The endpoint, with its secret.", body = Data<EndpointView>)),
)]
pub(super) async fn create(State(api): State<Api>, caller: Caller, body: Sent) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Webhooks))?;
    let body = body?;
    let mut fields = Fields::new(&body);
    let url = url(&api, scope.mode, &mut fields).required();
    let enabled_events = enabled_events(&mut fields).required();
    let description = fields.text("description").max(2000).optional();
    let metadata = fields.metadata("metadata", MetadataValues::Any).optional();
    let checked = match fields.finish() {
        Ok(checked) => checked,
        Err(mut faults) => {
            if let Some(url) = &url {
                faults.extend(leads_inside(&api, scope.mode, url).await);
            }
            return refused_unless_answered(&api, key_if_any(&caller, &body).as_ref(), faults).await;
        }
    };
    card_guard::refuse(scope, &body, &[])?;
    let new = NewEndpoint {
        url: checked.of(url),
        enabled_events: checked.of(enabled_events),
        description,
        metadata: metadata.map(Metadata::from_canonical).unwrap_or_default(),
    };
    let key = caller.merchant_key(&body, None)?;
    if let Some(fault) = leads_inside(&api, scope.mode, &new.url).await {
        return refused_unless_answered(&api, key.as_ref(), vec![fault]).await;
    }
    let command = move |tx: &mut Tx<'_>, context: &Context| webhooks::create(tx, context, scope, &new);
    Ok(api.app.write(key, command, caller.renderer(201, WithSecret::view)).await?.into())
}

fn url<'f>(api: &Api, mode: Mode, fields: &'f mut Fields<'_>) -> Field<'f, String> {
    let egress = api.app.egress().clone();
    fields.text("url").url().check(move |text| match egress.check_url(&text, mode.is_live()) {
        Ok(_) => Ok(text),
        Err(fault) => {
            let code = match fault.code {
                "not_allowed" => FaultCode::NotAllowed,
                "too_long" => FaultCode::TooLong,
                _ => FaultCode::InvalidFormat,
            };
            Err((code, format!("`url`: {}", fault.message)))
        }
    })
}

fn enabled_events<'f>(fields: &'f mut Fields<'_>) -> Field<'f, Vec<EventFilter>> {
    let filters = fields.texts("enabled_events", MOST_FILTERS, |text| {
        let filter = text.parse(|text| {
            let message = format!("{:?} is no event type, `<resource>.*` or `*`.", shown(text));
            EventFilter::parse(text).ok_or((FaultCode::InvalidEnum, message))
        });
        filter.required()
    });
    filters.check(|filters| match filters.is_empty() {
        true => Err((FaultCode::TooShort, "`enabled_events` must name at least one event.".to_owned())),
        false => Ok(filters),
    })
}

/// Where the name leads today. A name that does not resolve says nothing against the address.
async fn leads_inside(api: &Api, mode: Mode, url: &str) -> Option<Fault> {
    let url = api.app.egress().check_url(url, mode.is_live()).ok()?;
    match api.app.egress().check_destination(&url, mode.is_live()).await {
        Err(failure) if failure.kind == FailureKind::Forbidden => {
            let message = "`url` leads to a private or reserved address; webhooks go to public ones.";
            Some(Fault::new("url", FaultCode::NotAllowed, message))
        }
        Ok(()) | Err(_) => None,
    }
}

/// A request that was answered is answered so again, wherever the name leads by now, and wherever the server lets webhooks go. One with
/// any other fault was never taken.
async fn refused_unless_answered(
    api: &Api,
    key: Option<&IdempotencyKey>,
    faults: Vec<Fault>,
) -> Result<Answer, Problem> {
    let may_pass = faults.iter().all(|fault| fault.field == "url" && fault.code == FaultCode::NotAllowed);
    if let Some(key) = key.filter(|_| may_pass)
        && let Some(kept) = api.app.stored_answer(key).await?
    {
        return Ok(kept.into());
    }
    Err(faults.into())
}

/// The fault that there is already comes before one of the key. Whoever sent none asks for no answer of before.
fn key_if_any(caller: &Caller, body: &Body) -> Option<IdempotencyKey> {
    caller.merchant_key(body, None).ok().flatten().filter(|key| !key.is_own())
}

/// Get a webhook endpoint.
#[utoipa::path(
    get, path = "/v1/webhook_endpoints/{id}", tag = "Webhook endpoints", operation_id = "get_webhook_endpoint",
    params(("id" = String, Path)),
    responses((status = 200, description = "The endpoint.", body = Data<EndpointView>)),
)]
pub(super) async fn get(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Webhooks))?;
    let id = parse(&id)?;
    let endpoint = api.app.look(move |tx, _| look_up::<WebhookEndpoint>(tx, scope, id)).await?;
    Ok(Answer::ok(&EndpointView::of(&endpoint)))
}

/// List webhook endpoints.
#[utoipa::path(
    get, path = "/v1/webhook_endpoints", tag = "Webhook endpoints", operation_id = "list_webhook_endpoints",
    params(("offset" = Option<i64>, Query), ("limit" = Option<i64>, Query), ("after" = Option<String>, Query)),
    responses((status = 200, description = "One part of the list.", body = Data<List<EndpointView>>)),
)]
pub(super) async fn list(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Webhooks))?;
    let page = read::page::<WebhookEndpoint>(&mut query);
    query.finish()?;
    let list = api
        .app
        .read_list(scope, move |tx, _| {
            let found = endpoints::list(tx, scope, &page)?;
            Ok(List::of(found.map(|endpoint| EndpointView::of(&endpoint)), &page))
        })
        .await?;
    Ok(Answer::ok(&list))
}

/// Update a webhook endpoint.
#[utoipa::path(
    post, path = "/v1/webhook_endpoints/{id}", tag = "Webhook endpoints", operation_id = "update_webhook_endpoint",
    params(("id" = String, Path)), request_body = UpdateBody,
    responses((status = 200, description = "The endpoint as it is now.", body = Data<EndpointView>)),
)]
pub(super) async fn update(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    change(&api, &caller.setting_state(), &id, body).await
}

/// Update a webhook endpoint, by PUT.
#[utoipa::path(
    put, path = "/v1/webhook_endpoints/{id}", tag = "Webhook endpoints", operation_id = "put_webhook_endpoint",
    params(("id" = String, Path)), request_body = UpdateBody,
    responses((status = 200, description = "The endpoint as it is now.", body = Data<EndpointView>)),
)]
pub(super) async fn replace(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    change(&api, &caller, &id, body).await
}

/// Update a webhook endpoint, by PATCH.
#[utoipa::path(
    patch, path = "/v1/webhook_endpoints/{id}", tag = "Webhook endpoints", operation_id = "patch_webhook_endpoint",
    params(("id" = String, Path)), request_body = UpdateBody,
    responses((status = 200, description = "The endpoint as it is now.", body = Data<EndpointView>)),
)]
pub(super) async fn patch(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    change(&api, &caller, &id, body).await
}

async fn change(api: &Api, caller: &Caller, id: &str, body: Sent) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Webhooks))?;
    let body = body?;
    let mut fields = Fields::new(&body);
    let url = url(api, scope.mode, &mut fields).change();
    let enabled_events = enabled_events(&mut fields).change();
    let description = fields.text("description").max(2000).clearable();
    let statuses = [("active", EndpointStatus::Active), ("inactive", EndpointStatus::Inactive)];
    let status = fields.text("status").choice(&statuses).change();
    let metadata = fields.metadata("metadata", MetadataValues::Any).change();
    if let Err(mut faults) = fields.finish() {
        if let Some(url) = &url {
            faults.extend(leads_inside(api, scope.mode, url).await);
        }
        return refused_unless_answered(api, key_if_any(caller, &body).as_ref(), faults).await;
    }
    card_guard::refuse(scope, &body, &[])?;
    let change = EndpointChange {
        url,
        enabled_events,
        description: read::cleared(description),
        status,
        metadata: metadata.map(Metadata::from_canonical),
    };
    let key = caller.merchant_key(&body, None)?;
    if let Some(url) = &change.url
        && let Some(fault) = leads_inside(api, scope.mode, url).await
    {
        return refused_unless_answered(api, key.as_ref(), vec![fault]).await;
    }
    let id = parse(id);
    let command = move |tx: &mut Tx<'_>, _: &Context| webhooks::update(tx, scope, id.clone()?, &change);
    Ok(api.app.write(key, command, caller.renderer(200, EndpointView::of)).await?.into())
}

/// Delete a webhook endpoint.
#[utoipa::path(
    delete, path = "/v1/webhook_endpoints/{id}", tag = "Webhook endpoints", operation_id = "delete_webhook_endpoint",
    params(("id" = String, Path)),
    responses((status = 204, description = "It is gone.")),
)]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Webhooks))?;
    let body = body?;
    read::nothing(&body)?;
    let key = caller.merchant_key(&body, None)?;
    let id = parse(&id);
    let command = move |tx: &mut Tx<'_>, _: &Context| webhooks::delete(tx, scope, id.clone()?);
    Ok(api.app.write(key, command, caller.empty_renderer()).await?.into())
}

/// Send a test event.
#[utoipa::path(
    post, path = "/v1/webhook_endpoints/{id}/test", tag = "Webhook endpoints", operation_id = "test_webhook_endpoint",
    params(("id" = String, Path)),
    responses((status = 200, description = "What the endpoint answered.", body = Data<TestResult>)),
)]
pub(super) async fn test(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Webhooks))?;
    let body = body?;
    read::nothing(&body)?;
    let key = caller.merchant_key(&body, None)?;
    let view = |tested: &Tested| TestResult::of(&tested.outcome, &tested.event_id);
    match api.app.test_endpoint(scope, parse(&id), key, caller.renderer(200, view)).await? {
        Some(reply) => Ok(reply.into()),
        None => {
            metrics::rate_limited("endpoint_test");
            Err(Problem::rate_limited(LONGEST_TEST_S))
        }
    }
}

/// Replace the secret.
#[utoipa::path(
    post, path = "/v1/webhook_endpoints/{id}/rotate-secret", tag = "Webhook endpoints",
    operation_id = "rotate_webhook_secret",
    params(("id" = String, Path)),
    responses((status = 200, description = "The endpoint, with its new secret.", body = Data<EndpointView>)),
)]
pub(super) async fn rotate_secret(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Webhooks))?;
    let body = body?;
    read::nothing(&body)?;
    let key = caller.merchant_key(&body, None)?;
    let id = parse(&id);
    let command = move |tx: &mut Tx<'_>, context: &Context| webhooks::rotate_secret(tx, context, scope, id.clone()?);
    Ok(api.app.write(key, command, caller.renderer(200, WithSecret::view)).await?.into())
}

/// Handed to a command as it is: what names nothing is refused there, and kept under the request's key.
fn parse(id: &str) -> Result<Id<WebhookEndpoint>, Failure> {
    id.parse().map_err(|_| Refusal::not_found::<WebhookEndpoint>().into())
}
