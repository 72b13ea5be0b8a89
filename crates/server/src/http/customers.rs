//! `/v1/pay/customers`: create or retrieve, get, list, update, delete.

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::customer::{Contact, Customer};
use domain::{Id, Metadata, Refusal, Scope};
use serde::{Deserialize, Serialize};
use store::Tx;
use store::queries::customers::{self as queries, CustomerFilter};
use utoipa::ToSchema;

use super::answer::{Answer, Problem};
use super::body::Sent;
use super::caller::Caller;
use super::card_guard;
use super::fault::FaultCode;
use super::fields::{Fields, MetadataValues};
use super::json::Body;
use super::openapi::Data;
use super::path::InPath;
use super::query::Query;
use super::references::Faulty;
use super::{Api, read};
use crate::app::customers::{self, CustomerChange, FoundOrCreated, NewCustomer};
use crate::app::references::Named;
use crate::app::{Context, look_up};
use crate::error::Failure;
use crate::wire::List;
use crate::wire::customers::CustomerView;
use crate::wire::words;

/// Somebody with an e-mail address, a phone, or both.
// For the description only: it is read field by field below.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreateCustomer)]
pub(super) struct CreateBody {
    /// Either this or `phone`, or both.
    #[schema(format = "email", max_length = 254)]
    email: Option<String>,
    #[schema(value_type = Option<words::PhoneIn>)]
    phone: Option<String>,
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    #[schema(value_type = Option<words::MetadataIn>)]
    metadata: Option<serde_json::Value>,
}

/// Only what is given changes.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = UpdateCustomer)]
pub(super) struct UpdateBody {
    /// null clears it, where a phone remains.
    #[schema(format = "email", max_length = 254)]
    email: Option<String>,
    /// null clears it, where an e-mail address remains.
    #[schema(value_type = Option<words::PhoneIn>)]
    phone: Option<String>,
    /// null clears it.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    #[schema(value_type = Option<words::MetadataIn>, nullable = false)]
    metadata: Option<serde_json::Value>,
}

/// Create or retrieve a customer.
#[utoipa::path(
    post, path = "/v1/pay/customers", tag = "Customers", operation_id = "create_customer",
    request_body = CreateBody,
    responses(
        (status = 201, description = "The new customer.", body = Data<CustomerView>),
        (status = 200, description = "The customer who was there already, unchanged.", body = Data<CustomerView>),
    ),
)]
pub(super) async fn create(State(api): State<Api>, caller: Caller, body: Sent) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Customers))?;
    let body = body?;
    let new = parse_new(&body)?;
    refuse_card_number(scope, &body)?;
    let key = caller.merchant_key(&body, None)?;
    let command = move |tx: &mut Tx<'_>, _: &Context| customers::find_or_create(tx, scope, &new);
    let status = |found: &FoundOrCreated| if found.is_new { 201 } else { 200 };
    let render = caller.renderer_by(status, |found: &FoundOrCreated| CustomerView::of(&found.customer));
    Ok(api.app.write(key, command, render).await?.into())
}

fn parse_new(body: &Body) -> Result<NewCustomer, Problem> {
    let mut fields = Fields::new(body);
    let email = fields.text("email").email().optional();
    let phone = fields.text("phone").parse(read::phone).optional();
    let name = fields.text("name").composed().min(1).max(200).optional();
    let metadata = fields.metadata("metadata", MetadataValues::Any).optional();
    if !fields.has("email") && !fields.has("phone") {
        fields.fault("email", FaultCode::Required, "Either `email` or `phone` is required.");
    }
    let checked = fields.finish()?;
    Ok(NewCustomer {
        contact: checked.of(Contact::new(email, phone)),
        name,
        metadata: metadata.map(Metadata::from_canonical).unwrap_or_default(),
    })
}

/// Get a customer.
#[utoipa::path(
    get, path = "/v1/pay/customers/{id}", tag = "Customers", operation_id = "get_customer",
    params(("id" = String, Path)),
    responses((status = 200, description = "The customer.", body = Data<CustomerView>)),
)]
pub(super) async fn get(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Customers))?;
    let id = parse(&id)?;
    let customer = api.app.look(move |tx, _| look_up::<Customer>(tx, scope, id)).await?;
    Ok(Answer::ok(&CustomerView::of(&customer)))
}

/// List customers.
#[utoipa::path(
    get, path = "/v1/pay/customers", tag = "Customers", operation_id = "list_customers",
    params(
        ("offset" = Option<i64>, Query), ("limit" = Option<i64>, Query), ("after" = Option<String>, Query),
        ("email" = Option<String>, Query), ("phone" = Option<String>, Query),
    ),
    responses((status = 200, description = "One part of the list.", body = Data<List<CustomerView>>)),
)]
pub(super) async fn list(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Customers))?;
    let page = read::page::<Customer>(&mut query);
    let filter = CustomerFilter {
        email: query.text("email").email().optional(),
        phone: query.text("phone").parse(read::phone_in_query).optional(),
    };
    query.finish()?;
    let list = api
        .app
        .read_list(scope, move |tx, _| {
            let found = queries::list(tx, scope, &filter, &page)?;
            Ok(List::of(found.map(|customer| CustomerView::of(&customer)), &page))
        })
        .await?;
    Ok(Answer::ok(&list))
}

/// Update a customer.
#[utoipa::path(
    put, path = "/v1/pay/customers/{id}", tag = "Customers", operation_id = "update_customer",
    params(("id" = String, Path)), request_body = UpdateBody,
    responses((status = 200, description = "The customer as it is now.", body = Data<CustomerView>)),
)]
pub(super) async fn update(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Customers))?;
    let body = body?;
    let mut fields = Fields::new(&body);
    let email = fields.text("email").email().clearable();
    let phone = fields.text("phone").parse(read::phone).clearable();
    let name = fields.text("name").composed().min(1).max(200).clearable();
    let metadata = fields.metadata("metadata", MetadataValues::Any).change();
    let mut change = CustomerChange {
        email: read::cleared(email),
        phone: read::cleared(phone),
        name: read::cleared(name),
        metadata: metadata.map(Metadata::from_canonical),
    };
    let id = parse(&id);
    let is_unread = [("email", change.email.is_none()), ("phone", change.phone.is_none())]
        .map(|(name, is_kept)| is_kept && fields.has(name));
    if let Err(faults) = fields.finish() {
        // What could not be read may be what is left when the other is cleared.
        let [is_email_unread, is_phone_unread] = is_unread;
        change.phone = change.phone.filter(|phone| phone.is_some() || !is_email_unread);
        change.email = change.email.filter(|email| email.is_some() || !is_phone_unread);
        let named = Named { change: id.ok().map(|id| (id, change)), ..Named::default() };
        return Err(Faulty { faults, named: Box::new(named) }.look_up(&api, scope).await);
    }
    refuse_card_number(scope, &body)?;
    let key = caller.merchant_key(&body, None)?;
    let command = move |tx: &mut Tx<'_>, _: &Context| customers::update(tx, scope, id.clone()?, &change);
    Ok(api.app.write(key, command, caller.renderer(200, CustomerView::of)).await?.into())
}

/// Delete a customer.
#[utoipa::path(
    delete, path = "/v1/pay/customers/{id}", tag = "Customers", operation_id = "delete_customer",
    params(("id" = String, Path)),
    responses((status = 204, description = "It is gone.")),
)]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Customers))?;
    let body = body?;
    read::nothing(&body)?;
    let key = caller.merchant_key(&body, None)?;
    let id = parse(&id);
    let command = move |tx: &mut Tx<'_>, _: &Context| customers::delete(tx, scope, id.clone()?);
    Ok(api.app.write(key, command, caller.empty_renderer()).await?.into())
}

fn refuse_card_number(scope: Scope, body: &Body) -> Result<(), Problem> {
    card_guard::refuse(scope, body, &["phone"])
}

/// Handed to a command as it is: what names nothing is refused there, and kept under the request's key.
fn parse(id: &str) -> Result<Id<Customer>, Failure> {
    id.parse().map_err(|_| Refusal::not_found::<Customer>().into())
}
