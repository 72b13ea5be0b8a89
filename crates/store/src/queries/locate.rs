//! The one exception to "every query takes the scope": from a public name or a digest to the scope that it lives in,
//! over unique single-column indexes. For hosted pages, bearer credentials and rail callbacks.

use domain::api_key::ApiKey;
use domain::checkout::Checkout;
use domain::invoice::Invoice;
use domain::payment::{PaymentSession, Transaction};
use domain::payment_link::PaymentLink;
use domain::receipt::{Receipt, ValidationCode};
use domain::refund::Refund;
use domain::simulator::SimulatedPayment;
use domain::webhook::WebhookEndpoint;
use domain::{Id, Scope};

use super::scope_of;
use crate::entity::parse;
use crate::error::Error;
use crate::tx::Tx;

const KEY: &str = "\
select version, doc
from api_keys
where digest = $1";

const KEY_BY_ID: &str = "\
select version, doc
from api_keys
where organization_id = $1 and mode = $2 and id = $3";

const SIMULATED_PAYMENT: &str = "\
select version, doc
from simulated_payments
where token_digest = $1";

const RECEIPT: &str = "\
select version, doc
from receipts
where validation_code = $1";

/// The key with this digest, revoked or not.
pub fn key(tx: &mut Tx<'_>, digest: &str) -> Result<Option<ApiKey>, Error> {
    tx.query_opt(KEY, &[digest.into()])?.as_ref().map(parse).transpose()
}

/// The key that a token names.
pub fn key_by_id(tx: &mut Tx<'_>, scope: Scope, id: &str) -> Result<Option<ApiKey>, Error> {
    tx.query_opt(KEY_BY_ID, &crate::entity::key(scope, id))?.as_ref().map(parse).transpose()
}

pub fn simulated_payment(tx: &mut Tx<'_>, token_digest: &str) -> Result<Option<SimulatedPayment>, Error> {
    tx.query_opt(SIMULATED_PAYMENT, &[token_digest.into()])?.as_ref().map(parse).transpose()
}

pub fn receipt(tx: &mut Tx<'_>, code: &ValidationCode) -> Result<Option<Receipt>, Error> {
    tx.query_opt(RECEIPT, &[code.as_str().into()])?.as_ref().map(parse).transpose()
}

pub fn invoice(tx: &mut Tx<'_>, id: Id<Invoice>) -> Result<Option<Scope>, Error> {
    scope_by_id(tx, "invoices", &id.to_string())
}

pub fn payment_link(tx: &mut Tx<'_>, id: Id<PaymentLink>) -> Result<Option<Scope>, Error> {
    scope_by_id(tx, "payment_links", &id.to_string())
}

pub fn checkout(tx: &mut Tx<'_>, id: Id<Checkout>) -> Result<Option<Scope>, Error> {
    scope_by_id(tx, "checkouts", &id.to_string())
}

pub fn payment_session(tx: &mut Tx<'_>, id: Id<PaymentSession>) -> Result<Option<Scope>, Error> {
    scope_by_id(tx, "payment_sessions", &id.to_string())
}

pub fn transaction(tx: &mut Tx<'_>, id: Id<Transaction>) -> Result<Option<Scope>, Error> {
    scope_by_id(tx, "transactions", &id.to_string())
}

pub fn refund(tx: &mut Tx<'_>, id: Id<Refund>) -> Result<Option<Scope>, Error> {
    scope_by_id(tx, "refunds", &id.to_string())
}

pub fn webhook_endpoint(tx: &mut Tx<'_>, id: Id<WebhookEndpoint>) -> Result<Option<Scope>, Error> {
    scope_by_id(tx, "webhook_endpoints", &id.to_string())
}

fn scope_by_id(tx: &mut Tx<'_>, table: &str, id: &str) -> Result<Option<Scope>, Error> {
    let sql = format!("select organization_id, mode\nfrom {table}\nwhere id = $1");
    tx.query_opt(&sql, &[id.into()])?.as_ref().map(scope_of).transpose()
}
