//! `/v1/ledger`: accounts, entries, the proof.

use axum::extract::State;
use domain::Id;
use domain::api_key::{Area, Right};
use domain::ledger::Entry;
use domain::payment::Transaction;
use serde::Serialize;
use store::queries::ledger_batches::{self, EntryFilter};
use utoipa::ToSchema;

use super::answer::{Answer, Problem};
use super::caller::Caller;
use super::fault::FaultCode;
use super::openapi::Data;
use super::query::Query;
use super::{Api, read};
use crate::app::ledger;
use crate::error::Failure;
use crate::wire::List;
use crate::wire::ledger::{AccountView, EntryView, ProofView};

const MOST_BATCHES: i64 = 100;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LedgerAccounts)]
pub(super) struct AccountsView {
    /// By currency and account. Over all accounts of a currency, the balances sum to zero.
    accounts: Vec<AccountView>,
}

/// List the accounts of the ledger.
#[utoipa::path(
    get, path = "/v1/ledger/accounts", tag = "Ledger", operation_id = "list_ledger_accounts",
    responses((status = 200, description = "All accounts with a posting.", body = Data<AccountsView>)),
)]
pub(super) async fn accounts(State(api): State<Api>, caller: Caller) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Transactions))?;
    let accounts = api
        .app
        .read(move |tx, _| {
            let totals = ledger::balances(tx, scope)?.all().map_err(Failure::Broken)?;
            AccountView::all(&totals).map_err(Failure::Broken)
        })
        .await?;
    Ok(Answer::ok(&AccountsView { accounts }))
}

/// List the entries of the ledger.
#[utoipa::path(
    get, path = "/v1/ledger/entries", tag = "Ledger", operation_id = "list_ledger_entries",
    params(
        ("offset" = Option<i64>, Query), ("limit" = Option<i64>, Query), ("after" = Option<String>, Query),
        ("transaction_id" = Option<String>, Query, description = "Only the entries of this transaction."),
        ("start_date" = Option<String>, Query), ("end_date" = Option<String>, Query),
    ),
    responses((status = 200, description = "One part of the list.", body = Data<List<EntryView>>)),
)]
pub(super) async fn list(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Transactions))?;
    let page = read::page::<Entry>(&mut query);
    let filter = EntryFilter {
        transaction_id: query.text("transaction_id").max(64).optional(),
        from: query.text("start_date").parse(read::from_time).optional(),
        until: query.text("end_date").parse(read::until_time).optional(),
    };
    query.finish()?;
    let list = api
        .app
        .read_list(scope, move |tx, _| {
            let found = ledger_batches::entries(tx, scope, &filter, &page)?;
            Ok(List::of(found.map(|row| EntryView::of(&row)), &page))
        })
        .await?;
    Ok(Answer::ok(&list))
}

/// Prove the ledger, or a transaction's entries in it.
#[utoipa::path(
    get, path = "/v1/ledger/proof", tag = "Ledger", operation_id = "get_ledger_proof",
    params(
        ("transaction_id" = Option<String>, Query, description = "Prove the entries of this transaction as well."),
        ("from_batch" = Option<i64>, Query, minimum = 1, description = "Show the batches from this number on; without it, the last ones."),
        ("limit" = Option<i64>, Query),
    ),
    responses((status = 200, description = "Trial balance, signed batches, keys.", body = Data<ProofView>)),
)]
pub(super) async fn proof(State(api): State<Api>, caller: Caller, mut query: Query) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Transactions))?;
    let transaction = query.text("transaction_id").parse(|text| {
        let message = || "`transaction_id` names no transaction of yours.".to_owned();
        text.parse::<Id<Transaction>>().map_err(|_| (FaultCode::NotFound, message()))
    });
    let transaction = transaction.optional();
    let from = query.integer("from_batch", 1..=i64::MAX).optional();
    let limit = query.page().limit.min(MOST_BATCHES);
    query.finish_ignoring_unknown()?;
    let view = api
        .app
        .read(move |tx, context| {
            let proof = ledger::proof(tx, context, scope, transaction, from, limit)?;
            ProofView::of(&proof).map_err(Failure::Broken)
        })
        .await?;
    Ok(Answer::ok(&view))
}
