//! `/v1/pay/payment-links`: create, get, list, update, delete.

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::payment_link::{CustomField, FieldType, PaymentLink, Price, Status, Terms};
use domain::{Currency, Id, Metadata, Money, Refusal, Scope};
use serde::{Deserialize, Serialize};
use store::Tx;
use store::queries::payment_links as queries;
use utoipa::ToSchema;

use super::answer::{Answer, Problem};
use super::body::Sent;
use super::caller::Caller;
use super::card_guard;
use super::fault::FaultCode;
use super::fields::{Change, Field, Fields, MetadataValues};
use super::json::Body;
use super::openapi::Data;
use super::path::InPath;
use super::query::Query;
use super::references::Faulty;
use super::{Api, read};
use crate::app::payment_links::{self, LinkChange, NewPaymentLink, Shown};
use crate::app::references::Named;
use crate::app::{Context, look_up};
use crate::error::Failure;
use crate::wire::List;
use crate::wire::payment_links::PaymentLinkView;
use crate::wire::words;

/// What one payer can be asked.
const MOST_FIELDS: usize = 20;
const MOST_OPTIONS: usize = 50;

/// What is to be paid, by anybody who has the link.
// For the description only: it is read field by field below.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreatePaymentLink)]
pub(super) struct CreateBody {
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    /// Of one payment. "0.00": the payer chooses.
    #[schema(value_type = words::LinkAmountIn)]
    amount: String,
    #[schema(value_type = Option<words::CurrencyCode>, default = "GMD")]
    currency: Option<String>,
    /// What the payer sees on the page.
    #[schema(max_length = 2000)]
    description: Option<String>,
    /// The payer chooses; `amount` is what you suggest.
    #[schema(default = false)]
    is_variable_amount: Option<bool>,
    /// Refused where the amount is fixed.
    #[schema(value_type = Option<words::AmountIn>)]
    min_amount: Option<String>,
    /// Refused where the amount is fixed.
    #[schema(value_type = Option<words::AmountIn>)]
    max_amount: Option<String>,
    /// From then on it takes no payments.
    #[schema(value_type = Option<words::DeadlineIn>)]
    expiration_date: Option<String>,
    /// After so many payments it takes no more. Those that are under way count.
    #[schema(minimum = 1)]
    max_usage_count: Option<i64>,
    /// Where a payer goes once paid, with `payment_session_id` added.
    #[schema(value_type = Option<words::Url>)]
    success_url: Option<String>,
    /// Where a payer goes who leaves unpaid.
    #[schema(value_type = Option<words::Url>)]
    failure_url: Option<String>,
    /// The page asks for name, e-mail address and phone.
    #[schema(default = false)]
    collect_customer_info: Option<bool>,
    /// What else each payer is asked. Names are unique.
    #[schema(max_items = 20)]
    custom_fields: Option<Vec<CustomFieldBody>>,
    #[schema(value_type = Option<words::MetadataIn>)]
    metadata: Option<serde_json::Value>,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreateCustomField)]
pub(super) struct CustomFieldBody {
    /// The key in the metadata of the payment's transaction.
    #[schema(min_length = 1, max_length = 40)]
    name: String,
    /// What the payer reads.
    #[schema(min_length = 1, max_length = 200)]
    label: String,
    #[serde(rename = "type")]
    #[schema(value_type = words::CustomFieldType)]
    kind: String,
    #[schema(default = false)]
    required: Option<bool>,
    /// Of a select, and of no other type: what differs in nothing but blanks is one.
    #[schema(max_items = 50)]
    options: Option<Vec<String>>,
}

/// Create a payment link.
#[utoipa::path(
    post, path = "/v1/pay/payment-links", tag = "Payment links", operation_id = "create_payment_link",
    request_body = CreateBody,
    responses((status = 201, description = "The new payment link.", body = Data<PaymentLinkView>)),
)]
pub(super) async fn create(State(api): State<Api>, caller: Caller, body: Sent) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::PaymentLinks))?;
    let body = body?;
    let new = match parse(&body) {
        Ok(new) => new,
        Err(faulty) => return Err(faulty.look_up(&api, scope).await),
    };
    card_guard::refuse(scope, &body, &[])?;
    let key = caller.merchant_key(&body, None)?;
    let command = move |tx: &mut Tx<'_>, context: &Context| payment_links::create(tx, context, scope, &new);
    Ok(api.app.write(key, command, caller.renderer(201, view(&api))).await?.into())
}

fn view(api: &Api) -> impl Fn(&Shown) -> PaymentLinkView + Send + Sync + Clone + 'static {
    let context = api.app.context().clone();
    move |shown| PaymentLinkView::of(&shown.link, &shown.merchant, &context.addresses, shown.at)
}

fn parse(body: &Body) -> Result<NewPaymentLink, Faulty> {
    let mut fields = Fields::new(body);
    let title = fields.text("title").composed().min(1).max(200).required();
    let currency = read::currency_of(&mut fields);
    let amount = fields.amount("amount", amount_or_nothing(currency)).required();
    let is_variable = fields.boolean("is_variable_amount").or(false) || amount == Some(None);
    let min = fields.amount("min_amount", read::amount_in("min_amount", currency)).optional().flatten();
    let max = fields.amount("max_amount", read::amount_in("max_amount", currency)).optional().flatten();
    for name in ["min_amount", "max_amount"] {
        if !is_variable && amount.is_some() && fields.has(name) {
            let message = format!("`{name}` needs `is_variable_amount`: a fixed amount has no bounds.");
            fields.fault(name, FaultCode::NotAllowed, message);
        }
    }
    let above = |one: Option<Money>, other: Option<Money>| matches!((one, other), (Some(one), Some(other)) if one.minor > other.minor);
    if above(min, max) {
        fields.fault("min_amount", FaultCode::OutOfRange, "`min_amount` must not be above `max_amount`.");
    }
    let suggested = amount.flatten().flatten();
    if is_variable && (above(min, suggested) || above(suggested, max)) {
        let message = "`amount` must be within `min_amount` and `max_amount`; \"0.00\" suggests none.";
        fields.fault("amount", FaultCode::OutOfRange, message);
    }
    let terms = Terms {
        title: String::new(),
        description: fields.text("description").max(2000).optional(),
        expiration_date: fields.text("expiration_date").parse(read::deadline_in_seconds).optional(),
        max_usage_count: fields.integer("max_usage_count", 1..=i64::MAX).optional(),
        success_url: fields.text("success_url").url().optional(),
        failure_url: fields.text("failure_url").url().optional(),
        collect_customer_info: fields.boolean("collect_customer_info").or(false),
        custom_fields: fields.objects("custom_fields", MOST_FIELDS, parse_field).check(unique).optional(),
        metadata: fields.metadata("metadata", MetadataValues::Any).optional().map(Metadata::from_canonical),
    };
    let named = Named { link_currency: currency, expiration_date: terms.expiration_date, ..Named::default() };
    let checked = fields.finish().map_err(|faults| Faulty { faults, named: Box::new(named) })?;
    let price = match (is_variable, suggested) {
        (false, Some(amount)) => Price::Fixed { amount },
        (_, suggested) => Price::Variable { currency: checked.of(currency), min, max, suggested },
    };
    Ok(NewPaymentLink { price, terms: Terms { title: checked.of(title), ..terms } })
}

/// Nothing for "0.00": the payer chooses. How much it is otherwise is known of a known currency.
fn amount_or_nothing(
    currency: Option<Currency>,
) -> impl Fn(&str) -> Result<Option<Option<Money>>, (FaultCode, String)> {
    move |text| match Money::parse(text, currency.unwrap_or(Currency::of_most_decimals())) {
        Ok(nothing) if nothing.minor == 0 => Ok(None),
        // The contract's own words, also where the currency has no decimals.
        Err(_) if text == "0.00" => Ok(None),
        Ok(_) | Err(_) => read::amount_in("amount", currency)(text).map(Some),
    }
}

fn parse_field(field: &mut Fields<'_>) -> Option<CustomField> {
    let name = field.text("name").min(1).max(40).required();
    let label = field.text("label").min(1).max(200).required();
    let kind = field.text("type").choice(&FieldType::ALL.map(|kind| (kind.as_str(), kind))).required();
    let required = field.boolean("required").or(false);
    let option = |text: Field<'_, String>| {
        let kept = text.check(|text| Ok::<_, (FaultCode, String)>(CustomField::option_text(&text)));
        kept.min(1).max(200).required()
    };
    let options = field.texts("options", MOST_OPTIONS, option).check(distinct).optional();
    let has_options = field.has("options");
    match kind {
        Some(FieldType::Select) if !has_options || options.as_ref().is_some_and(Vec::is_empty) => {
            field.fault("options", FaultCode::Required, "`options` must name what can be selected.");
        }
        Some(FieldType::Select) | None => {}
        Some(kind) if options.as_ref().is_some_and(|options| !options.is_empty()) => {
            let message = format!("`options` belong to a select; leave them out of a {}.", kind.as_str());
            field.fault("options", FaultCode::NotAllowed, message);
        }
        Some(_) => {}
    }
    Some(CustomField { name: name?, label: label?, kind: kind?, required, options: options.unwrap_or_default() })
}

fn distinct(texts: Vec<String>) -> Result<Vec<String>, (FaultCode, &'static str)> {
    let mut seen: Vec<&String> = texts.iter().collect();
    seen.sort_unstable();
    seen.dedup();
    if seen.len() < texts.len() { Err((FaultCode::Conflict, "An option is named twice.")) } else { Ok(texts) }
}

fn unique(fields: Vec<CustomField>) -> Result<Vec<CustomField>, (FaultCode, &'static str)> {
    let mut seen: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    seen.sort_unstable();
    seen.dedup();
    if seen.len() < fields.len() {
        Err((FaultCode::Conflict, "Two of the `custom_fields` have the same name."))
    } else {
        Ok(fields)
    }
}

/// Get a payment link.
#[utoipa::path(
    get, path = "/v1/pay/payment-links/{id}", tag = "Payment links", operation_id = "get_payment_link",
    params(("id" = String, Path)),
    responses((status = 200, description = "The payment link as it stands.", body = Data<PaymentLinkView>)),
)]
pub(super) async fn get(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::PaymentLinks))?;
    let id = parse_id(&id)?;
    let shown = api.app.look(move |tx, _| payment_links::find(tx, scope, id)).await?;
    Ok(Answer::ok(&view(&api)(&shown)))
}

/// List payment links.
#[utoipa::path(
    get, path = "/v1/pay/payment-links", tag = "Payment links", operation_id = "list_payment_links",
    params(
        ("offset" = Option<i64>, Query), ("limit" = Option<i64>, Query), ("after" = Option<String>, Query),
        ("status" = Option<String>, Query),
    ),
    responses((status = 200, description = "One part of the list.", body = Data<List<PaymentLinkView>>)),
)]
pub(super) async fn list(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::PaymentLinks))?;
    let page = read::page::<PaymentLink>(&mut query);
    let status = query.text("status").choice(&STATUSES).optional();
    query.finish()?;
    let list = api
        .app
        .read_list(scope, move |tx, context| {
            let found = queries::list(tx, scope, status, &page)?;
            let organization = look_up::<domain::organization::Organization>(tx, scope, scope.organization)?;
            let now = tx.now();
            let view = |link| PaymentLinkView::of(&link, &organization.profile, &context.addresses, now);
            Ok(List::of(found.map(view), &page))
        })
        .await?;
    Ok(Answer::ok(&list))
}

const STATUSES: [(&str, Status); 2] = [("active", Status::Active), ("inactive", Status::Inactive)];

/// Only what is given changes. Amount and currency never do.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = UpdatePaymentLink)]
pub(super) struct UpdateBody {
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    title: Option<String>,
    /// null clears it.
    #[schema(max_length = 2000)]
    description: Option<String>,
    /// null clears it.
    #[schema(value_type = Option<words::DeadlineIn>)]
    expiration_date: Option<String>,
    /// null clears it. Not more than were paid already: it becomes inactive.
    #[schema(minimum = 1)]
    max_usage_count: Option<i64>,
    /// null clears it.
    #[schema(value_type = Option<words::Url>)]
    success_url: Option<String>,
    /// null clears it.
    #[schema(value_type = Option<words::Url>)]
    failure_url: Option<String>,
    #[schema(value_type = Option<words::PaymentLinkFilter>, nullable = false)]
    status: Option<String>,
    #[schema(nullable = false)]
    collect_customer_info: Option<bool>,
    /// Replaces all; null clears them.
    #[schema(max_items = 20)]
    custom_fields: Option<Vec<CustomFieldBody>>,
    /// Replaces the whole map; null clears it.
    #[schema(value_type = Option<words::MetadataIn>)]
    metadata: Option<serde_json::Value>,
}

/// Update a payment link.
#[utoipa::path(
    put, path = "/v1/pay/payment-links/{id}", tag = "Payment links", operation_id = "update_payment_link",
    params(("id" = String, Path)),
    request_body = UpdateBody,
    responses((status = 200, description = "The payment link as it is now.", body = Data<PaymentLinkView>)),
)]
pub(super) async fn update(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::PaymentLinks))?;
    let body = body?;
    let named = parse_id(&id);
    let change = match parse_change(&body) {
        Ok(change) => change,
        Err(faulty) => return Err(but_its_own_date(faulty, &api, scope, &named).await?.look_up(&api, scope).await),
    };
    card_guard::refuse(scope, &body, &[])?;
    let key = caller.merchant_key(&body, None)?;
    let command =
        move |tx: &mut Tx<'_>, context: &Context| payment_links::update(tx, context, scope, named.clone()?, &change);
    Ok(api.app.write(key, command, caller.renderer(200, view(&api))).await?.into())
}

fn parse_change(body: &Body) -> Result<LinkChange, Faulty> {
    let mut fields = Fields::new(body);
    let change = LinkChange {
        title: fields.text("title").composed().min(1).max(200).change(),
        description: cleared(fields.text("description").max(2000).clearable()),
        expiration_date: cleared(fields.text("expiration_date").parse(read::deadline_in_seconds).clearable()),
        max_usage_count: cleared(fields.integer("max_usage_count", 1..=i64::MAX).clearable()),
        success_url: cleared(fields.text("success_url").url().clearable()),
        failure_url: cleared(fields.text("failure_url").url().clearable()),
        status: fields.text("status").choice(&STATUSES).change(),
        collect_customer_info: fields.boolean("collect_customer_info").change(),
        custom_fields: cleared(fields.objects("custom_fields", MOST_FIELDS, parse_field).check(unique).clearable()),
        metadata: cleared(fields.metadata("metadata", MetadataValues::Any).clearable())
            .map(|metadata| metadata.map(Metadata::from_canonical)),
    };
    for name in ["amount", "currency"] {
        if fields.has(name) {
            let message = format!("`{name}` of a payment link can't change; create another link.");
            fields.fault(name, FaultCode::NotAllowed, message);
            fields.ignore(name);
        }
    }
    let named = Named { expiration_date: change.expiration_date.flatten(), ..Named::default() };
    fields.finish().map_err(|faults| Faulty { faults, named: Box::new(named) })?;
    Ok(change)
}

/// The date that a link has already may be sent again, passed or not.
async fn but_its_own_date(
    mut faulty: Faulty,
    api: &Api,
    scope: Scope,
    id: &Result<Id<PaymentLink>, Failure>,
) -> Result<Faulty, Problem> {
    let Ok(id) = id.clone() else { return Ok(faulty) };
    let link = api.app.read(move |tx, _| Ok(tx.peek::<PaymentLink>(scope, id)?)).await?;
    let known = link.and_then(|link| link.terms().expiration_date);
    faulty.named.expiration_date = faulty.named.expiration_date.filter(|date| Some(*date) != known);
    Ok(faulty)
}

fn cleared<T>(change: Change<T>) -> Option<Option<T>> {
    match change {
        Change::Keep => None,
        Change::Clear => Some(None),
        Change::Set(value) => Some(Some(value)),
    }
}

/// Delete a payment link.
#[utoipa::path(
    delete, path = "/v1/pay/payment-links/{id}", tag = "Payment links", operation_id = "delete_payment_link",
    params(("id" = String, Path)),
    responses((status = 204, description = "It is gone.")),
)]
pub(super) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::PaymentLinks))?;
    let body = body?;
    read::nothing(&body)?;
    let key = caller.merchant_key(&body, None)?;
    let named = parse_id(&id);
    let command = move |tx: &mut Tx<'_>, context: &Context| payment_links::delete(tx, context, scope, named.clone()?);
    Ok(api.app.write(key, command, caller.empty_renderer()).await?.into())
}

/// Handed to a command as it is: what names nothing is refused there, and kept under the request's key.
fn parse_id(id: &str) -> Result<Id<PaymentLink>, Failure> {
    id.parse().map_err(|_| Refusal::not_found::<PaymentLink>().into())
}
