//! `/v1/pay/invoices/{id}/payments` and `…/receipts`: what was paid of an invoice, and what was written about it.

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::invoice::Invoice;
use domain::{Currency, Method, OfflineMethod};
use serde::{Deserialize, Serialize};
use store::Tx;
use store::queries::{documents, invoice_payments, receipts};
use utoipa::ToSchema;

use super::{bill_of, parse, refuse_card_numbers, view};
use crate::app::invoices::{self, NewPayment};
use crate::app::{Context, look_up};
use crate::http::answer::{Answer, Problem};
use crate::http::body::Sent;
use crate::http::caller::Caller;
use crate::http::fault::FaultCode;
use crate::http::fields::Fields;
use crate::http::openapi::Data;
use crate::http::path::InPath;
use crate::http::{Api, read};
use crate::wire::invoices::{InvoicePaymentView, InvoiceView};
use crate::wire::receipts::ReceiptView;
use crate::wire::words;

/// Money that you took outside of this service.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreateInvoicePayment)]
pub(in crate::http) struct PaymentBody {
    /// At most what is left to pay.
    #[schema(value_type = words::AmountIn)]
    amount: String,
    /// Payments by wave, afrimoney, qmoney and card record themselves.
    #[schema(value_type = words::OfflineMethodName)]
    payment_method: String,
    /// Your own number for it.
    #[schema(min_length = 1, max_length = 255)]
    transaction_id: Option<String>,
    #[schema(max_length = 2000)]
    notes: Option<String>,
}

/// Record a payment.
#[utoipa::path(
    post, path = "/v1/pay/invoices/{id}/payments", tag = "Invoices", operation_id = "record_invoice_payment",
    params(("id" = String, Path)), request_body = PaymentBody,
    responses((status = 201, description = "The invoice, with the payment and its receipt.", body = Data<InvoiceView>)),
)]
pub(in crate::http) async fn record_payment(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
    body: Sent,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Invoices))?;
    let body = body?;
    let named = parse(&id);
    let currency = bill_of(&api, scope, &named).await?.map_or(Currency::gmd(), |bill| bill.currency());
    let mut fields = Fields::new(&body);
    let amount = fields.amount("amount", read::amount("amount", currency)).required();
    let method = fields.text("payment_method").parse(offline_method).required();
    let transaction_id = fields.text("transaction_id").min(1).max(255).optional();
    let notes = fields.text("notes").max(2000).optional();
    let checked = fields.finish()?;
    let payment = NewPayment { amount: checked.of(amount), method: checked.of(method), transaction_id, notes };
    refuse_card_numbers(scope, &body)?;
    let key = caller.merchant_key(&body, None)?;
    let recorded_by = caller.actor.key().to_string();
    let command = move |tx: &mut Tx<'_>, context: &Context| {
        invoices::record_payment(tx, context, scope, named.clone()?, &payment, &recorded_by)
    };
    Ok(api.app.write(key, command, caller.renderer(201, view(&api))).await?.into())
}

fn offline_method(text: &str) -> Result<OfflineMethod, (FaultCode, String)> {
    OfflineMethod::parse(text).ok_or_else(|| match Method::parse(text) {
        Some(_) => {
            let message = format!("Payments by {text} are made online and record themselves; `payment_method` is one of those made elsewhere.");
            (FaultCode::NotAllowed, message)
        }
        None => {
            let words = OfflineMethod::ALL.map(OfflineMethod::as_str).join(", ");
            (FaultCode::InvalidEnum, format!("`payment_method` must be one of: {words}."))
        }
    })
}

/// List the payments of an invoice.
#[utoipa::path(
    get, path = "/v1/pay/invoices/{id}/payments", tag = "Invoices", operation_id = "list_invoice_payments",
    params(("id" = String, Path)),
    responses((status = 200, description = "All of them, in the order in which they came.", body = Data<Vec<InvoicePaymentView>>)),
)]
pub(in crate::http) async fn list_payments(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Invoices))?;
    let id = parse(&id)?;
    let payments = api.app.read(move |tx, _| {
        look_up::<Invoice>(tx, scope, id)?;
        let payments = invoice_payments::of_invoice(tx, scope, id)?;
        Ok(payments.iter().map(InvoicePaymentView::of).collect::<Vec<_>>())
    });
    Ok(Answer::ok(&payments.await?))
}

/// List the receipts of an invoice.
#[utoipa::path(
    get, path = "/v1/pay/invoices/{id}/receipts", tag = "Invoices", operation_id = "list_invoice_receipts",
    params(("id" = String, Path)),
    responses((status = 200, description = "All of them, in the order of the payments.", body = Data<Vec<ReceiptView>>)),
)]
pub(in crate::http) async fn list_receipts(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath,
) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Invoices))?;
    let id = parse(&id)?;
    let receipts = api.app.read(move |tx, context| {
        look_up::<Invoice>(tx, scope, id)?;
        let receipts = receipts::of_invoice(tx, scope, id)?;
        let ids: Vec<String> = receipts.iter().map(|receipt| receipt.id.to_string()).collect();
        let files = documents::states(tx, scope, &ids)?;
        let views = receipts.iter().map(|receipt| ReceiptView::of(receipt, &context.addresses).knowing(&files));
        Ok(views.collect::<Vec<_>>())
    });
    Ok(Answer::ok(&receipts.await?))
}
