//! `/v1/pay/invoices`: create, get, list, update, finalize, send, cancel. What was paid of one is in `payments`.

mod body;
mod payments;

pub(super) use payments::*;

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::invoice::{Bill, Invoice};
use domain::{Id, Refusal, Scope};
use http::HeaderMap;
use store::Tx;
use store::queries::invoices::{self as queries, InvoiceFilter, StatusFilter};

use super::answer::{Answer, Problem};
use super::body::Sent;
use super::caller::Caller;
use super::json::Body;
use super::openapi::Data;
use super::path::InPath;
use super::query::Query;
use super::{Api, card_guard, read};
use crate::app::invoices::{self, Billed};
use crate::app::{Context, look_up, organization_of, receipts};
use crate::error::Failure;
use crate::wire::List;
use crate::wire::invoices::InvoiceView;
use body::{CreateBody, UpdateBody};

/// Create an invoice.
#[utoipa::path(
    post, path = "/v1/pay/invoices", tag = "Invoices", operation_id = "create_invoice",
    request_body = CreateBody,
    responses((status = 201, description = "The new invoice, with its number.", body = Data<InvoiceView>)),
)]
pub(super) async fn create(State(api): State<Api>, caller: Caller, body: Sent) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Invoices))?;
    let body = body?;
    let new = match body::create(&body) {
        Ok(new) => new,
        Err(faulty) => return Err(faulty.look_up(&api, scope).await),
    };
    refuse_card_numbers(scope, &body)?;
    let key = caller.merchant_key(&body, None)?;
    let command = move |tx: &mut Tx<'_>, context: &Context| invoices::create(tx, context, scope, &new);
    Ok(api.app.write(key, command, caller.renderer(201, view(&api))).await?.into())
}

/// Get an invoice.
#[utoipa::path(
    get, path = "/v1/pay/invoices/{id}", tag = "Invoices", operation_id = "get_invoice",
    params(("id" = String, Path)),
    responses((status = 200, description = "The invoice as it stands.", body = Data<InvoiceView>)),
)]
pub(super) async fn get(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Invoices))?;
    let id = parse(&id)?;
    let view = api.app.read(move |tx, context| {
        let invoice = look_up::<Invoice>(tx, scope, id)?;
        let organization = organization_of(tx, scope)?;
        let merchant = &organization.profile;
        let files = receipts::files(tx, scope, [&invoice])?;
        Ok(InvoiceView::of(&invoice, merchant, &context.addresses, tx.now()).knowing(&files))
    });
    Ok(Answer::ok(&view.await?))
}

/// List invoices.
#[utoipa::path(
    get, path = "/v1/pay/invoices", tag = "Invoices", operation_id = "list_invoices",
    params(
        ("offset" = Option<i64>, Query), ("limit" = Option<i64>, Query), ("after" = Option<String>, Query),
        ("status" = Option<String>, Query), ("customer_id" = Option<String>, Query), ("number" = Option<String>, Query),
        ("start_date" = Option<String>, Query), ("end_date" = Option<String>, Query),
    ),
    responses((status = 200, description = "One part of the list.", body = Data<List<InvoiceView>>)),
)]
pub(super) async fn list(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Invoices))?;
    let page = read::page::<Invoice>(&mut query);
    let filter = InvoiceFilter {
        status: query.text("status").choice(&StatusFilter::WORDS).optional(),
        customer_id: query.text("customer_id").max(64).optional(),
        number: query.text("number").max(64).optional(),
        from: query.text("start_date").parse(read::from_time).optional(),
        until: query.text("end_date").parse(read::until_time).optional(),
        ..InvoiceFilter::default()
    };
    query.finish()?;
    let list = api.app.read_list(scope, move |tx, context| {
        let found = queries::list(tx, scope, &filter, &page)?;
        let organization = organization_of(tx, scope)?;
        let merchant = &organization.profile;
        let now = tx.now();
        let files = receipts::files(tx, scope, &found.items)?;
        let view = |invoice| InvoiceView::of(&invoice, merchant, &context.addresses, now).knowing(&files);
        Ok(List::of(found.map(view), &page))
    });
    Ok(Answer::ok(&list.await?))
}

/// Update an invoice.
#[utoipa::path(
    put, path = "/v1/pay/invoices/{id}", tag = "Invoices", operation_id = "update_invoice",
    params(("id" = String, Path), ("If-Match" = Option<String>, Header)), request_body = UpdateBody,
    responses((status = 200, description = "The invoice as it is now.", body = Data<InvoiceView>)),
)]
pub(super) async fn update(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    headers: HeaderMap,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Invoices))?;
    let body = body?;
    let named = parse(&id);
    let bill = bill_of(&api, scope, &named).await?;
    let change = match body::update(&body, &headers, bill.as_ref()) {
        Ok(change) => change,
        Err(faulty) => return Err(faulty.look_up(&api, scope).await),
    };
    refuse_card_numbers(scope, &body)?;
    let key = caller.merchant_key(&body, None)?;
    let command =
        move |tx: &mut Tx<'_>, context: &Context| invoices::update(tx, context, scope, named.clone()?, &change);
    Ok(api.app.write(key, command, caller.renderer(200, view(&api))).await?.into())
}

/// Finalize a draft.
#[utoipa::path(
    post, path = "/v1/pay/invoices/{id}/finalize", tag = "Invoices", operation_id = "finalize_invoice",
    params(("id" = String, Path)),
    responses((status = 200, description = "The invoice, pending.", body = Data<InvoiceView>)),
)]
pub(super) async fn finalize(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Invoices))?;
    let body = body?;
    read::nothing(&body)?;
    let key = caller.merchant_key(&body, None)?;
    let named = parse(&id);
    let command = move |tx: &mut Tx<'_>, context: &Context| invoices::finalize(tx, context, scope, named.clone()?);
    Ok(api.app.write(key, command, caller.renderer(200, view(&api))).await?.into())
}

/// Send an invoice by e-mail.
#[utoipa::path(
    post, path = "/v1/pay/invoices/{id}/send", tag = "Invoices", operation_id = "send_invoice",
    params(("id" = String, Path)),
    responses((status = 200, description = "The invoice, with `sent_at` and one more in `sent_count`.", body = Data<InvoiceView>)),
)]
pub(super) async fn send(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Invoices))?;
    let body = body?;
    read::nothing(&body)?;
    let key = caller.merchant_key(&body, None)?;
    let id = parse(&id);
    let command = move |tx: &mut Tx<'_>, context: &Context| invoices::send(tx, context, scope, id.clone()?);
    Ok(api.app.write(key, command, caller.renderer(200, view(&api))).await?.into())
}

/// Cancel an invoice.
#[utoipa::path(
    post, path = "/v1/pay/invoices/{id}/cancel", tag = "Invoices", operation_id = "cancel_invoice",
    params(("id" = String, Path)),
    responses((status = 200, description = "The invoice, cancelled.", body = Data<InvoiceView>)),
)]
pub(super) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Invoices))?;
    let body = body?;
    read::nothing(&body)?;
    let key = caller.merchant_key(&body, None)?;
    let named = parse(&id);
    let command = move |tx: &mut Tx<'_>, context: &Context| invoices::cancel(tx, context, scope, named.clone()?);
    Ok(api.app.write(key, command, caller.renderer(200, view(&api))).await?.into())
}

/// How the answer to a command shows its invoice: as the command left it.
fn view(api: &Api) -> impl Fn(&Billed) -> InvoiceView + Send + Sync + Clone + 'static {
    let context = api.app.context().clone();
    move |billed| {
        let view = InvoiceView::of(&billed.invoice, &billed.merchant, &context.addresses, billed.invoice.updated_at);
        view.knowing(&billed.files)
    }
}

/// An invoice keeps its currency, so that it can be read before the command. What is not there is the command's to say.
async fn bill_of(api: &Api, scope: Scope, id: &Result<Id<Invoice>, Failure>) -> Result<Option<Bill>, Problem> {
    let Ok(id) = id.clone() else { return Ok(None) };
    let invoice = api.app.read(move |tx, _| Ok(tx.peek::<Invoice>(scope, id)?)).await?;
    Ok(invoice.map(|invoice| invoice.bill().clone()))
}

fn refuse_card_numbers(scope: Scope, body: &Body) -> Result<(), Problem> {
    card_guard::refuse(scope, body, &["customer_phone"])
}

/// Handed to a command as it is: what names nothing is refused there, and kept under the request's key.
fn parse(id: &str) -> Result<Id<Invoice>, Failure> {
    id.parse().map_err(|_| Refusal::not_found::<Invoice>().into())
}
