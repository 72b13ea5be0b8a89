//! `/v1/payouts/balance`: what a merchant has.

use axum::extract::State;
use domain::api_key::{Area, Right};

use super::Api;
use super::answer::{Answer, Problem};
use super::caller::Caller;
use super::openapi::Data;
use crate::app::balance;
use crate::wire::balance::BalanceView;

/// Get the balance.
#[utoipa::path(
    get, path = "/v1/payouts/balance", tag = "Payouts", operation_id = "get_balance",
    responses((status = 200, description = "What the ledger says.", body = Data<BalanceView>)),
)]
pub(super) async fn get(State(api): State<Api>, caller: Caller) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Payouts))?;
    let balance = api.app.read(move |tx, _| balance::look_up_balance(tx, scope)).await?;
    Ok(Answer::ok(&balance))
}
