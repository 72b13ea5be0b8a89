//! `/v1/pay/products`: create, get, list, update, delete.

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::product::Product;
use domain::{Currency, Id, Metadata, Refusal, Scope};
use serde::{Deserialize, Serialize};
use store::Tx;
use store::queries::products as queries;
use utoipa::ToSchema;

use super::answer::{Answer, Problem};
use super::body::Sent;
use super::caller::Caller;
use super::card_guard;
use super::fault::FaultCode;
use super::fields::{Field, Fields, MetadataValues};
use super::json::Body;
use super::openapi::Data;
use super::path::InPath;
use super::query::Query;
use super::{Api, read};
use crate::app::products::{self, NewProduct, ProductChange};
use crate::app::{Context, look_up};
use crate::error::Failure;
use crate::wire::List;
use crate::wire::products::ProductView;
use crate::wire::words;

const MOST_IMAGES: usize = 20;

/// What is sold, and its price.
// For the description only: it is read field by field below.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreateProduct)]
pub(super) struct CreateBody {
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// Of one.
    #[schema(value_type = words::AmountIn)]
    price: String,
    /// It does not change afterwards.
    #[schema(value_type = Option<words::CurrencyCode>, default = "GMD")]
    currency: Option<String>,
    #[schema(max_length = 2000)]
    description: Option<String>,
    /// Whether new lines may name it.
    #[schema(default = true)]
    active: Option<bool>,
    /// The same as `active`; send one of them.
    #[schema(default = true)]
    is_active: Option<bool>,
    #[schema(value_type = Option<Vec<words::Url>>, max_items = 20)]
    images: Option<Vec<String>>,
    #[schema(value_type = Option<words::MetadataIn>)]
    metadata: Option<serde_json::Value>,
}

/// Only what is given changes.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = UpdateProduct)]
pub(super) struct UpdateBody {
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    name: Option<String>,
    /// null clears it.
    #[schema(max_length = 2000)]
    description: Option<String>,
    /// In the product's currency. Lines that were made before keep theirs.
    #[schema(value_type = Option<words::AmountIn>, nullable = false)]
    price: Option<String>,
    /// Whether new lines may name it.
    #[schema(nullable = false)]
    active: Option<bool>,
    /// The same as `active`; send one of them.
    #[schema(nullable = false)]
    is_active: Option<bool>,
    /// The whole list; an empty one clears it.
    #[schema(value_type = Option<Vec<words::Url>>, max_items = 20, nullable = false)]
    images: Option<Vec<String>>,
    #[schema(value_type = Option<words::MetadataIn>, nullable = false)]
    metadata: Option<serde_json::Value>,
}

/// Create a product.
#[utoipa::path(
    post, path = "/v1/pay/products", tag = "Products", operation_id = "create_product",
    request_body = CreateBody,
    responses((status = 201, description = "The new product.", body = Data<ProductView>)),
)]
pub(super) async fn create(State(api): State<Api>, caller: Caller, body: Sent) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Products))?;
    let body = body?;
    let mut fields = Fields::new(&body);
    let name = fields.text("name").composed().min(1).max(200).required();
    let currency = read::currency_of(&mut fields);
    let price = fields.amount("price", read::amount_in("price", currency)).required().flatten();
    let description = fields.text("description").max(2000).optional();
    let active = fields.boolean("active").optional();
    let is_active = fields.boolean("is_active").optional();
    let active = agreed(&mut fields, active, is_active);
    let images = images(&mut fields).optional();
    let metadata = fields.metadata("metadata", MetadataValues::Any).optional();
    let checked = fields.finish()?;
    let new = NewProduct {
        name: checked.of(name),
        description,
        price: checked.of(price),
        active: active.unwrap_or(true),
        images: images.unwrap_or_default(),
        metadata: metadata.map(Metadata::from_canonical).unwrap_or_default(),
    };
    refuse_card_number(scope, &body)?;
    let key = caller.merchant_key(&body, None)?;
    let command = move |tx: &mut Tx<'_>, _: &Context| products::create(tx, scope, &new);
    Ok(api.app.add(key, command, caller.renderer(201, ProductView::of)).await?.into())
}

/// Two names of one thing.
fn agreed(fields: &mut Fields<'_>, active: Option<bool>, is_active: Option<bool>) -> Option<bool> {
    if active.is_some() && is_active.is_some() && active != is_active {
        let message = "`is_active` is another name of `active`, and they differ; send one of them.";
        fields.fault("is_active", FaultCode::Conflict, message);
    }
    active.or(is_active)
}

fn images<'f>(fields: &'f mut Fields<'_>) -> Field<'f, Vec<String>> {
    fields.texts("images", MOST_IMAGES, |text| text.url().required())
}

/// Get a product.
#[utoipa::path(
    get, path = "/v1/pay/products/{id}", tag = "Products", operation_id = "get_product",
    params(("id" = String, Path)),
    responses((status = 200, description = "The product.", body = Data<ProductView>)),
)]
pub(super) async fn get(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Products))?;
    let id = parse(&id)?;
    let product = api.app.look(move |tx, _| look_up::<Product>(tx, scope, id)).await?;
    Ok(Answer::ok(&ProductView::of(&product)))
}

/// List products.
#[utoipa::path(
    get, path = "/v1/pay/products", tag = "Products", operation_id = "list_products",
    params(
        ("offset" = Option<i64>, Query), ("limit" = Option<i64>, Query), ("after" = Option<String>, Query),
        ("active" = Option<bool>, Query),
    ),
    responses((status = 200, description = "One part of the list.", body = Data<List<ProductView>>)),
)]
pub(super) async fn list(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Products))?;
    let page = read::page::<Product>(&mut query);
    let active = query.boolean("active").optional();
    query.finish()?;
    let list = api
        .app
        .read_list(scope, move |tx, _| {
            let found = queries::list(tx, scope, active, &page)?;
            Ok(List::of(found.map(|product| ProductView::of(&product)), &page))
        })
        .await?;
    Ok(Answer::ok(&list))
}

/// Update a product.
#[utoipa::path(
    put, path = "/v1/pay/products/{id}", tag = "Products", operation_id = "update_product",
    params(("id" = String, Path)), request_body = UpdateBody,
    responses((status = 200, description = "The product as it is now.", body = Data<ProductView>)),
)]
pub(super) async fn update(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Products))?;
    let body = body?;
    let id = parse(&id);
    // Where there was never such a product, the command says so, and it is remembered under the key.
    let currency = match id.clone() {
        Ok(id) => api.app.look(move |tx, _| Ok(queries::currency(tx, scope, id)?)).await?,
        Err(_) => None,
    };
    let currency = currency.unwrap_or(Currency::gmd());
    let mut fields = Fields::new(&body);
    let name = fields.text("name").composed().min(1).max(200).change();
    let description = fields.text("description").max(2000).clearable();
    let price = fields.amount("price", read::amount("price", currency)).change();
    let active = fields.boolean("active").change();
    let is_active = fields.boolean("is_active").change();
    let active = agreed(&mut fields, active, is_active);
    let images = images(&mut fields).change();
    let metadata = fields.metadata("metadata", MetadataValues::Any).change();
    fields.finish()?;
    let description = read::cleared(description);
    let metadata = metadata.map(Metadata::from_canonical);
    let change = ProductChange { name, description, price, active, images, metadata };
    refuse_card_number(scope, &body)?;
    let key = caller.merchant_key(&body, None)?;
    let command = move |tx: &mut Tx<'_>, _: &Context| products::update(tx, scope, id.clone()?, &change);
    Ok(api.app.write(key, command, caller.renderer(200, ProductView::of)).await?.into())
}

/// Delete a product.
#[utoipa::path(
    delete, path = "/v1/pay/products/{id}", tag = "Products", operation_id = "delete_product",
    params(("id" = String, Path)),
    responses((status = 204, description = "It is gone.")),
)]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Products))?;
    let body = body?;
    read::nothing(&body)?;
    let key = caller.merchant_key(&body, None)?;
    let id = parse(&id);
    let command = move |tx: &mut Tx<'_>, _: &Context| products::delete(tx, scope, id.clone()?);
    Ok(api.app.write(key, command, caller.empty_renderer()).await?.into())
}

fn refuse_card_number(scope: Scope, body: &Body) -> Result<(), Problem> {
    card_guard::refuse(scope, body, &[])
}

/// Handed to a command as it is: what names nothing is refused there, and kept under the request's key.
fn parse(id: &str) -> Result<Id<Product>, Failure> {
    id.parse().map_err(|_| Refusal::not_found::<Product>().into())
}
