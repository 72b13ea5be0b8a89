//! `/v1/pay/transactions/{id}/refund` and `/v1/pay/refunds`: money on its way back.

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::payment::Transaction;
use domain::refund::{Refund, RefundStatus};
use domain::{Currency, Id, Refusal};
use serde::{Deserialize, Serialize};
use store::queries::refunds as queries;
use utoipa::ToSchema;

use super::answer::{Answer, Problem};
use super::body::Sent;
use super::caller::Caller;
use super::card_guard;
use super::fields::Fields;
use super::openapi::Data;
use super::path::InPath;
use super::query::Query;
use super::{Api, read};
use crate::app::refunds::{self, NewRefund};
use crate::app::{Context, look_up};
use crate::error::Failure;
use crate::wire::refunds::RefundView;
use crate::wire::{List, words};

const LONGEST_REASON: usize = 2000;

/// How much goes back, and why.
// For the description only: it is read field by field below.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreateRefund)]
pub(super) struct RefundBody {
    /// Without one, all that is left.
    #[schema(value_type = Option<words::AmountIn>)]
    amount: Option<String>,
    /// For your own books; the payer does not see it.
    #[schema(max_length = 2000)]
    reason: Option<String>,
}

/// Refund a transaction.
#[utoipa::path(
    post, path = "/v1/pay/transactions/{id}/refund", tag = "Refunds", operation_id = "create_refund",
    params(("id" = String, Path)),
    request_body = RefundBody,
    responses((status = 201, description = "It is asked for.", body = Data<RefundView>)),
)]
pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Refunds))?;
    let body = body?;
    let transaction: Option<Id<Transaction>> = id.parse().ok();
    let found = api
        .app
        .read(move |tx, _| Ok(transaction.map(|id| tx.peek::<Transaction>(scope, id)).transpose()?.flatten()))
        .await?;
    // The faults of the body are told whatever it is about.
    let currency = found.map_or_else(Currency::gmd, |transaction| transaction.amount.currency);
    let mut fields = Fields::new(&body);
    let amount = fields.amount("amount", read::amount("amount", currency)).optional();
    let reason = fields.text("reason").max(LONGEST_REASON).optional();
    fields.finish()?;
    if scope.mode.is_live()
        && let Some(field) = card_guard::find(&body.value, &[])
    {
        return Err(Problem::card_data_not_allowed(&field));
    }
    let key = caller.merchant_key(&body, None)?;
    let command = move |tx: &mut store::Tx<'_>, context: &Context| {
        let transaction = transaction.ok_or_else(Refusal::not_found::<Transaction>)?;
        let new = NewRefund { transaction, amount, reason: reason.clone() };
        refunds::ask(tx, context, scope, &new)
    };
    Ok(api.app.write(key, command, caller.renderer(201, RefundView::of)).await?.into())
}

/// Get a refund.
#[utoipa::path(
    get, path = "/v1/pay/refunds/{id}", tag = "Refunds", operation_id = "get_refund",
    params(("id" = String, Path)),
    responses((status = 200, description = "The refund as it stands.", body = Data<RefundView>)),
)]
pub(super) async fn get(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Refunds))?;
    let id = id.parse().map_err(|_| Failure::from(Refusal::not_found::<Refund>()))?;
    let view = api.app.look(move |tx, _| Ok(RefundView::of(&look_up::<Refund>(tx, scope, id)?))).await?;
    Ok(Answer::ok(&view))
}

/// List refunds.
#[utoipa::path(
    get, path = "/v1/pay/refunds", tag = "Refunds", operation_id = "list_refunds",
    params(
        ("offset" = Option<i64>, Query), ("limit" = Option<i64>, Query), ("after" = Option<String>, Query),
        ("status" = Option<String>, Query),
    ),
    responses((status = 200, description = "One part of the list.", body = Data<List<RefundView>>)),
)]
pub(super) async fn list(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Refunds))?;
    let page = read::page::<Refund>(&mut query);
    let status = query.text("status").choice(&RefundStatus::ALL.map(|status| (status.as_str(), status))).optional();
    query.finish()?;
    let list = api
        .app
        .read_list(scope, move |tx, _| {
            let found = queries::list(tx, scope, status, &page)?;
            Ok(List::of(found.map(|refund| RefundView::of(&refund)), &page))
        })
        .await?;
    Ok(Answer::ok(&list))
}
