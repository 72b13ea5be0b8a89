//! `/v1/pay/transactions`: attempts to pay, and what became of them.

use axum::extract::State;
use domain::Refusal;
use domain::api_key::{Area, Right};
use domain::payment::{Transaction, TransactionStatus};
use store::queries::transactions::{self as queries, TransactionFilter};

use super::answer::{Answer, Problem};
use super::caller::Caller;
use super::openapi::Data;
use super::path::InPath;
use super::query::Query;
use super::{Api, read};
use crate::app::{look_up, sessions};
use crate::error::Failure;
use crate::wire::List;
use crate::wire::transactions::TransactionView;

/// Get a transaction.
#[utoipa::path(
    get, path = "/v1/pay/transactions/{id}", tag = "Transactions", operation_id = "get_transaction",
    params(("id" = String, Path)),
    responses((status = 200, description = "The transaction as it stands.", body = Data<TransactionView>)),
)]
pub(super) async fn get(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Transactions))?;
    let id = id.parse().map_err(|_| Failure::from(Refusal::not_found::<Transaction>()))?;
    let view = api
        .app
        .look(move |tx, _| {
            let stored = look_up::<Transaction>(tx, scope, id)?;
            Ok(TransactionView::of(&sessions::shown(tx, stored)?))
        })
        .await?;
    Ok(Answer::ok(&view))
}

/// List transactions.
#[utoipa::path(
    get, path = "/v1/pay/transactions", tag = "Transactions", operation_id = "list_transactions",
    params(
        ("offset" = Option<i64>, Query), ("limit" = Option<i64>, Query), ("after" = Option<String>, Query),
        ("status" = Option<String>, Query), ("start_date" = Option<String>, Query), ("end_date" = Option<String>, Query),
    ),
    responses((status = 200, description = "One part of the list.", body = Data<List<TransactionView>>)),
)]
pub(super) async fn list(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Transactions))?;
    let page = read::page::<Transaction>(&mut query);
    let filter = TransactionFilter {
        status: query.text("status").choice(&TransactionStatus::ALL.map(|status| (status.as_str(), status))).optional(),
        from: query.text("start_date").parse(read::from_time).optional(),
        until: query.text("end_date").parse(read::until_time_in_seconds).optional(),
    };
    query.finish()?;
    let list = api
        .app
        .read_list(scope, move |tx, _| {
            let found = queries::list(tx, scope, &filter, &page)?;
            let views = found.try_map(|stored| Ok::<_, Failure>(TransactionView::of(&sessions::shown(tx, stored)?)))?;
            Ok(List::of(views, &page))
        })
        .await?;
    Ok(Answer::ok(&list))
}
