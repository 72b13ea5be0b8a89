//! `/v1/events`: get, list, follow, retry.

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::event::{Event, EventType};
use domain::webhook::WebhookEndpoint;
use domain::{Id, Refusal};
use serde::{Deserialize, Serialize};
use store::Tx;
use store::queries::endpoints;
use store::queries::events::{self, EventsFilter};
use utoipa::ToSchema;

use super::answer::{Answer, Problem};
use super::body::Sent;
use super::caller::Caller;
use super::fault::{Fault, FaultCode, shown};
use super::fields::Fields;
use super::openapi::Data;
use super::path::InPath;
use super::query::Query;
use super::{Api, read};
use crate::app::webhooks;
use crate::error::Failure;
use crate::wire::webhooks::EventView;
use crate::wire::{List, words};

/// Get an event.
#[utoipa::path(
    get, path = "/v1/events/{id}", tag = "Webhook events", operation_id = "get_event",
    params(("id" = String, Path)),
    responses((status = 200, description = "The event and its deliveries.", body = Data<EventView>)),
)]
pub(super) async fn get(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Webhooks))?;
    let id = parse(&id)?;
    let view = api.app.read(move |tx, _| webhooks::event(tx, scope, id)).await?;
    Ok(Answer::ok(&view))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    NewestFirst,
    /// As they were committed: nothing that commits late is skipped.
    Log,
}

/// List events, or follow them.
#[utoipa::path(
    get, path = "/v1/events", tag = "Webhook events", operation_id = "list_events",
    params(
        ("offset" = Option<i64>, Query), ("limit" = Option<i64>, Query), ("after" = Option<String>, Query),
        ("order" = Option<String>, Query, description = "`desc` (default) or `asc`: the order of the log."),
        ("type" = Option<String>, Query), ("start_date" = Option<String>, Query), ("end_date" = Option<String>, Query),
    ),
    responses((status = 200, description = "One part of the list.", body = Data<List<EventView>>)),
)]
pub(super) async fn list(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Webhooks))?;
    let page = read::page::<Event>(&mut query);
    let order = query.text("order").choice(&[("desc", Order::NewestFirst), ("asc", Order::Log)]).or(Order::NewestFirst);
    let kind = query.text("type").parse(|text| {
        let message = || format!("`type` {:?} is no event type; leave it out to see all.", shown(text));
        EventType::parse(text).ok_or_else(|| (FaultCode::InvalidEnum, message()))
    });
    let filter = EventsFilter {
        kind: kind.optional(),
        from: query.text("start_date").parse(read::from_time).optional(),
        until: query.text("end_date").parse(read::until_time_in_seconds).optional(),
    };
    let is_filtered = filter.kind.is_some() || filter.from.is_some() || filter.until.is_some();
    if order == Order::Log && (is_filtered || page.offset > 0) {
        let message = "`order=asc` follows the whole log: use it with `after` and `limit` only.";
        query.fault("order", FaultCode::Conflict, message);
    }
    query.finish()?;
    let list = api
        .app
        .read_list(scope, move |tx, _| {
            let active = endpoints::active(tx, scope)?;
            let show = |tx: &mut Tx<'_>, event: Event| webhooks::shown_unless_damaged(tx, &event, &active);
            let found = match order {
                Order::NewestFirst => {
                    events::list(tx, scope, &filter, &page)?.try_filter_map(|event| show(tx, event))?
                }
                Order::Log => {
                    events::follow(tx, scope, page.after.as_deref(), page.limit, show)?.ok_or_else(no_such_event)?
                }
            };
            Ok(List::of(found, &page))
        })
        .await?;
    Ok(Answer::ok(&list))
}

fn no_such_event() -> Fault {
    let (code, message) = read::nothing_behind();
    Fault::new("after", code, message)
}

/// Which endpoint, where it is one.
// For the description only: it is read field by field below.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = RetryEvent)]
pub(super) struct RetryBody {
    /// To this endpoint and to no other.
    #[schema(value_type = Option<words::EndpointId>)]
    webhook_endpoint_id: Option<String>,
}

/// Deliver an event again.
#[utoipa::path(
    post, path = "/v1/events/{id}/retry", tag = "Webhook events", operation_id = "retry_event",
    params(("id" = String, Path)),
    request_body = RetryBody,
    responses((status = 200, description = "It is due now.", body = Data<EventView>)),
)]
pub(super) async fn retry(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Webhooks))?;
    let body = body?;
    let mut fields = Fields::new(&body);
    let endpoint = fields.text("webhook_endpoint_id").parse(endpoint).optional();
    fields.finish()?;
    let key = caller.merchant_key(&body, None)?;
    let id = parse(&id);
    let command = move |tx: &mut Tx<'_>, _: &crate::app::Context| webhooks::retry(tx, scope, id.clone()?, endpoint);
    Ok(api.app.write(key, command, caller.renderer(200, EventView::clone)).await?.into())
}

fn endpoint(text: &str) -> Result<Id<WebhookEndpoint>, (FaultCode, String)> {
    text.parse().map_err(|_| {
        let fault = webhooks::no_such_endpoint();
        (fault.code, fault.message)
    })
}

/// Handed to a command as it is: what names nothing is refused there, and kept under the request's key.
fn parse(id: &str) -> Result<Id<Event>, Failure> {
    id.parse().map_err(|_| Refusal::not_found::<Event>().into())
}
