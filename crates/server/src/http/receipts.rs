//! `/v1/pay/receipts`: list, get, by number, and the check that anybody may make. They are issued by payments.

use axum::Extension;
use axum::extract::State;
use domain::Refusal;
use domain::api_key::{Area, Right};
use domain::receipt::{Receipt, ValidationCode};
use store::Tx;
use store::queries::{documents, receipts as queries};

use super::answer::{Answer, Problem};
use super::caller::Caller;
use super::openapi::Data;
use super::path::InPath;
use super::query::Query;
use super::{Api, read};
use crate::app::{Context, look_up, receipts};
use crate::error::Failure;
use crate::listener::ClientAddress;
use crate::wire::List;
use crate::wire::receipts::{ReceiptList, ReceiptValidation, ReceiptView};

/// List receipts.
#[utoipa::path(
    get, path = "/v1/pay/receipts", tag = "Receipts", operation_id = "list_receipts",
    params(("offset" = Option<i64>, Query), ("limit" = Option<i64>, Query), ("after" = Option<String>, Query)),
    responses((status = 200, description = "One part of the list.", body = Data<ReceiptList>)),
)]
pub(super) async fn list(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Invoices))?;
    let page = read::page::<Receipt>(&mut query);
    query.finish()?;
    let list = api.app.read_list(scope, move |tx, context| {
        let found = queries::list(tx, scope, &page)?;
        let ids: Vec<String> = found.items.iter().map(|receipt| receipt.id.to_string()).collect();
        let files = documents::states(tx, scope, &ids)?;
        Ok(List::of(found.map(|receipt| ReceiptView::of(&receipt, &context.addresses).knowing(&files)), &page))
    });
    Ok(Answer::ok(&ReceiptList::from(list.await?)))
}

/// Get a receipt.
#[utoipa::path(
    get, path = "/v1/pay/receipts/{id}", tag = "Receipts", operation_id = "get_receipt",
    params(("id" = String, Path)),
    responses((status = 200, description = "The receipt.", body = Data<ReceiptView>)),
)]
pub(super) async fn get(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Invoices))?;
    let id = id.parse().map_err(|_| Failure::from(Refusal::not_found::<Receipt>()))?;
    let view = api.app.read(move |tx, context| {
        let receipt = look_up::<Receipt>(tx, scope, id)?;
        shown(tx, context, &receipt)
    });
    Ok(Answer::ok(&view.await?))
}

/// Get a receipt by its number.
#[utoipa::path(
    get, path = "/v1/pay/receipts/number/{receipt_number}", tag = "Receipts", operation_id = "get_receipt_by_number",
    params(("receipt_number" = String, Path)),
    responses((status = 200, description = "The receipt.", body = Data<ReceiptView>)),
)]
pub(super) async fn get_by_number(
    State(api): State<Api>,
    caller: Caller,
    InPath(number): InPath,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Invoices))?;
    // What no number can look like is not asked for: a database refuses some of it.
    let is_plausible = number.len() <= 64 && number.bytes().all(|byte| byte.is_ascii_graphic());
    let view = api.app.read(move |tx, context| {
        let found = if is_plausible { queries::by_number(tx, scope, &number)? } else { None };
        let receipt = found.ok_or_else(Refusal::not_found::<Receipt>)?;
        shown(tx, context, &receipt)
    });
    Ok(Answer::ok(&view.await?))
}

/// Check a receipt.
#[utoipa::path(
    get, path = "/v1/pay/receipts/validate/{validation_code}", tag = "Receipts", operation_id = "validate_receipt",
    params(("validation_code" = String, Path)),
    responses((status = 200, description = "Whether it is real, and what it says.", body = Data<ReceiptValidation>)),
)]
pub(super) async fn validate(
    State(api): State<Api>,
    address: Option<Extension<ClientAddress>>,
    InPath(code): InPath,
) -> Result<Answer, Problem> {
    if let Some(Extension(address)) = address {
        api.limits.of_address(address)?;
    }
    let Some(code) = ValidationCode::typed(&code) else { return Ok(Answer::ok(&ReceiptValidation::unknown())) };
    let found = api.app.read(move |tx, _| receipts::validate(tx, &code)).await?;
    let view = found.map(|(receipt, refunded)| ReceiptValidation::of(&receipt, refunded));
    Ok(Answer::ok(&view.unwrap_or_else(ReceiptValidation::unknown)))
}

/// With what became of its file.
fn shown(tx: &mut Tx<'_>, context: &Context, receipt: &Receipt) -> Result<ReceiptView, Failure> {
    let files = documents::states(tx, receipt.scope, &[receipt.id.to_string()])?;
    Ok(ReceiptView::of(receipt, &context.addresses).knowing(&files))
}
