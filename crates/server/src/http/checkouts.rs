//! `/v1/checkouts`: create, get, list, cancel.

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::checkout::{Checkout, Customer, Status};
use domain::{Currency, Id, Metadata, Mode, Refusal};
use serde::{Deserialize, Serialize};
use store::queries::checkouts::{self as queries, CheckoutFilter};
use utoipa::ToSchema;

use super::answer::{Answer, Problem};
use super::body::Sent;
use super::caller::Caller;
use super::card_guard;
use super::fault::FaultCode;
use super::fields::{Fields, MetadataValues};
use super::json::{Body, Json};
use super::openapi::Data;
use super::path::InPath;
use super::query::Query;
use super::references::Faulty;
use super::{Api, read};
use crate::app::checkouts::{self, Created, NewCheckout, Price, WantedMethods};
use crate::app::look_up;
use crate::app::products::{Lines, NewItem};
use crate::app::references::Named;
use crate::error::Failure;
use crate::wire::List;
use crate::wire::checkouts::{CancelledCheckout, CheckoutView};
use crate::wire::words;

const MOST_ITEMS: usize = 200;
const SHORTEST_S: i64 = 60;
const LONGEST_S: i64 = 86_400;

/// What is to be paid.
// For the description only: it is read field by field below.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreateCheckout)]
pub(super) struct CreateBody {
    /// Either this or `items`. With `items` it is overruled by their sum, whatever it says.
    #[schema(value_type = Option<words::AmountOrNone>)]
    amount: Option<String>,
    /// Only a currency that an enabled method takes.
    #[schema(value_type = Option<words::CurrencyCode>, default = "GMD")]
    currency: Option<String>,
    /// What is paid for; the amount is the sum. An empty list counts as none.
    #[schema(max_items = 200)]
    items: Option<Vec<ItemBody>>,
    /// Offer only these of the enabled methods.
    #[schema(value_type = Option<Vec<words::MethodName>>, max_items = 4)]
    payment_method_types: Option<Vec<String>>,
    /// Stored and echoed.
    #[schema(default = true)]
    automatic_payment_methods: Option<bool>,
    /// Ready for this method at once, and for no other.
    #[schema(value_type = Option<words::MethodName>)]
    payment_method: Option<String>,
    /// A customer of yours: what you leave out below comes from it. Unknown ones are refused.
    #[schema(value_type = Option<words::CustomerId>)]
    customer_id: Option<String>,
    /// Spares the payer the typing. May be empty.
    #[schema(value_type = Option<words::PhoneIn>)]
    customer_phone: Option<String>,
    /// Spares the payer the typing.
    #[schema(format = "email", max_length = 254)]
    customer_email: Option<String>,
    /// Spares the payer the typing.
    #[schema(min_length = 1, max_length = 200)]
    customer_name: Option<String>,
    /// Seconds until it expires.
    #[schema(minimum = 60, maximum = 86400, default = 86400)]
    expires_in: Option<i64>,
    #[schema(value_type = Option<words::MetadataIn>)]
    metadata: Option<serde_json::Value>,
    /// What the payer sees on the page.
    #[schema(max_length = 2000)]
    description: Option<String>,
    /// Your own number of the order. Lists can be filtered by it.
    #[schema(max_length = 255)]
    reference: Option<String>,
    /// The same as the header `Idempotency-Key`.
    #[schema(min_length = 1, max_length = 255, pattern = "^[ -~]+$")]
    idempotency_key: Option<String>,
    /// Where the payer goes once paid, with `session_id` and `payment_session_id` added.
    #[schema(value_type = Option<words::Url>)]
    success_url: Option<String>,
    /// Where the payer goes who leaves unpaid.
    #[schema(value_type = Option<words::Url>)]
    failure_url: Option<String>,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreateCheckoutItem)]
pub(super) struct ItemBody {
    /// An active product of yours, of the same currency. Others are refused.
    #[schema(value_type = Option<words::ProductId>)]
    product_id: Option<String>,
    /// Without it, the name of the product.
    #[schema(max_length = 2000)]
    description: Option<String>,
    #[schema(minimum = 1, maximum = 1000000)]
    quantity: i64,
    /// Of one; without it, the price of the product.
    #[schema(value_type = Option<words::AmountIn>)]
    unit_price: Option<String>,
    /// Not read: its value is always computed.
    #[schema(value_type = Option<words::Ignored>)]
    amount: Option<serde_json::Value>,
    /// Not read, as `amount`.
    #[schema(value_type = Option<words::Ignored>)]
    total: Option<serde_json::Value>,
}

/// Create a checkout session.
#[utoipa::path(
    post, path = "/v1/checkouts", tag = "Checkouts", operation_id = "create_checkout",
    request_body = CreateBody,
    responses((status = 201, description = "The new checkout, with its client secret.", body = Data<CheckoutView>)),
)]
pub(super) async fn create(State(api): State<Api>, caller: Caller, body: Sent) -> Result<Answer, Problem> {
    let mut scope = caller.require(Right::write(Area::Checkouts))?;
    let body = body?;
    let (new, body_key) = match parse(&body) {
        Ok(parsed) => parsed,
        Err(faulty) => return Err(faulty.look_up(&api, scope).await),
    };
    if domain::planted!(Defect::LivemodeTaken)
        && let Some(Json::Bool(is_live)) = body.value.get("livemode")
    {
        scope.mode = if *is_live { Mode::Live } else { Mode::Test };
    }
    if scope.mode.is_live()
        && let Some(field) = card_guard::find(&body.value, &["customer_phone"])
    {
        return Err(Problem::card_data_not_allowed(&field));
    }
    let key = caller.merchant_key(&body, body_key)?;
    let context = api.app.context().clone();
    let view = move |created: &Created| {
        let mut view = CheckoutView::of(&created.checkout, &context.addresses, created.checkout.created_at);
        view.client_secret = Some(created.client_secret.expose().to_owned());
        view
    };
    let command =
        move |tx: &mut store::Tx<'_>, context: &crate::app::Context| checkouts::create(tx, context, scope, &new);
    Ok(api.app.add(key, command, caller.renderer(201, view)).await?.into())
}

fn parse(body: &Body) -> Result<(NewCheckout, Option<String>), Faulty> {
    let mut fields = Fields::new(body);
    let currency = read::currency_of(&mut fields);
    // Items overrule it, whatever it says.
    let amount = fields.amount("amount", |text| match has_items(body) {
        true => Ok(None),
        false => read::amount_in("amount", currency)(text),
    });
    let amount = amount.optional().flatten();
    let mut sound = Vec::new();
    let items = fields.objects_keeping("items", MOST_ITEMS, &mut sound, |item| parse_item(item, currency)).optional();
    let items = items.filter(|items| !items.is_empty());
    if !fields.has("amount") && items.is_none() && !has_items(body) {
        fields.fault("amount", FaultCode::Required, "Either `amount` or `items` is required.");
    }
    let payment_method_types =
        fields.texts("payment_method_types", 4, |text| text.parse(read::method).required()).optional();
    let are_types_read = payment_method_types.is_some() || !fields.has("payment_method_types");
    let payment_method_types = payment_method_types.filter(|types| !types.is_empty());
    let automatic_payment_methods = fields.boolean("automatic_payment_methods").or(true);
    let payment_method = fields.text("payment_method").parse(read::method).optional();
    let is_method_read = payment_method.is_some() || !fields.has("payment_method");
    let customer = Customer {
        id: fields.text("customer_id").parse(read::customer).optional(),
        phone: fields.text("customer_phone").parse(read::phone_or_empty).optional(),
        email: fields.text("customer_email").email().optional(),
        name: fields.text("customer_name").composed().min(1).max(200).optional(),
    };
    let expires_in = fields.integer("expires_in", SHORTEST_S..=LONGEST_S).or(LONGEST_S);
    let metadata = fields.metadata("metadata", MetadataValues::Any).optional();
    let description = fields.text("description").max(2000).optional();
    let reference = fields.text("reference").max(255).optional();
    let body_key = read::idempotency_key(&mut fields);
    let success_url = fields.text("success_url").url().optional();
    let failure_url = fields.text("failure_url").url().optional();
    if domain::planted!(Defect::LivemodeTaken) {
        fields.boolean("livemode").optional();
    }
    let checked = match fields.finish() {
        Ok(checked) => checked,
        Err(faults) => {
            let lines = currency.map(|currency| (currency, Lines::of(items, sound)));
            let wanted = WantedMethods { types: payment_method_types, method: payment_method, currency };
            let methods = (are_types_read && is_method_read).then_some(wanted);
            let named = Named { customer: customer.id, lines, methods, ..Named::default() };
            return Err(Faulty { faults, named: Box::new(named) });
        }
    };
    let price = match items {
        Some(items) => Price::Items(items),
        None => Price::Amount(checked.of(amount)),
    };
    let new = NewCheckout {
        price,
        currency: checked.of(currency),
        payment_method_types,
        automatic_payment_methods,
        payment_method,
        customer,
        expires_in_s: u32::try_from(expires_in).expect("within its range"),
        metadata: metadata.map(Metadata::from_canonical).unwrap_or_default(),
        description,
        reference,
        success_url,
        failure_url,
    };
    Ok((new, body_key))
}

/// Whether `items` was sent with something in it: then its own faults say what is wrong.
fn has_items(body: &Body) -> bool {
    match body.value.get("items") {
        None | Some(Json::Null) => false,
        Some(Json::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}

fn parse_item(item: &mut Fields<'_>, currency: Option<Currency>) -> Option<NewItem> {
    let product_id = item.text("product_id").parse(read::product).optional();
    // Clients with types send an empty text for none: the product's name stands there then.
    let description = item.text("description").max(2000).optional().filter(|text| !text.is_empty());
    let quantity = item.integer("quantity", 1..=1_000_000).required();
    let unit_price = item.amount("unit_price", read::amount_in("unit_price", currency)).optional().flatten();
    if !item.has("product_id") && !item.has("unit_price") {
        item.fault("unit_price", FaultCode::Required, "`unit_price` is required where no product gives the price.");
    }
    read::ignore_value(item);
    Some(NewItem { product_id, description, quantity: quantity?, unit_price })
}

/// Get a checkout session.
#[utoipa::path(
    get, path = "/v1/checkouts/{id}", tag = "Checkouts", operation_id = "get_checkout",
    params(("id" = String, Path)),
    responses((status = 200, description = "The checkout as it stands.", body = Data<CheckoutView>)),
)]
pub(super) async fn get(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Checkouts))?;
    let id = parse_id(&id)?;
    let view = api
        .app
        .look(move |tx, context| {
            let stored = look_up::<Checkout>(tx, scope, id)?;
            let checkout = checkouts::shown(tx, stored)?;
            Ok(CheckoutView::of(&checkout, &context.addresses, tx.now()))
        })
        .await?;
    Ok(Answer::ok(&view))
}

/// List checkout sessions.
#[utoipa::path(
    get, path = "/v1/checkouts", tag = "Checkouts", operation_id = "list_checkouts",
    params(
        ("offset" = Option<i64>, Query), ("limit" = Option<i64>, Query), ("after" = Option<String>, Query),
        ("status" = Option<String>, Query), ("reference" = Option<String>, Query), ("customer_id" = Option<String>, Query),
        ("start_date" = Option<String>, Query), ("end_date" = Option<String>, Query),
    ),
    responses((status = 200, description = "One part of the list.", body = Data<List<CheckoutView>>)),
)]
pub(super) async fn list(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Checkouts))?;
    let page = read::page::<Checkout>(&mut query);
    let filter = CheckoutFilter {
        status: query.text("status").choice(&Status::ALL.map(|status| (status.as_str(), status))).optional(),
        reference: query.text("reference").max(255).optional(),
        customer_id: query.text("customer_id").max(64).optional(),
        from: query.text("start_date").parse(read::from_time).optional(),
        until: query.text("end_date").parse(read::until_time_in_seconds).optional(),
    };
    query.finish()?;
    let list = api
        .app
        .read_list(scope, move |tx, context| {
            let found = queries::list(tx, scope, &filter, &page)?;
            let found = found.try_map(|stored| checkouts::shown(tx, stored))?;
            let now = tx.now();
            Ok(List::of(found.map(|checkout| CheckoutView::of(&checkout, &context.addresses, now)), &page))
        })
        .await?;
    Ok(Answer::ok(&list))
}

/// Cancel a pending checkout session.
#[utoipa::path(
    post, path = "/v1/checkouts/{id}/cancel", tag = "Checkouts", operation_id = "cancel_checkout",
    params(("id" = String, Path)),
    responses((status = 200, description = "It is cancelled.", body = Data<CancelledCheckout>)),
)]
pub(super) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Checkouts))?;
    let body = body?;
    read::nothing(&body)?;
    let key = caller.merchant_key(&body, None)?;
    let named = parse_id(&id);
    let command = move |tx: &mut store::Tx<'_>, context: &crate::app::Context| {
        checkouts::cancel(tx, context, scope, named.clone()?)
    };
    Ok(api.app.write(key, command, caller.renderer(200, CancelledCheckout::of)).await?.into())
}

/// Handed to a command as it is: what names nothing is refused there, and kept under the request's key.
fn parse_id(id: &str) -> Result<Id<Checkout>, Failure> {
    id.parse().map_err(|_| Refusal::not_found::<Checkout>().into())
}
