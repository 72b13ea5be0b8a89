//! The files of invoices and receipts: `/v1/pay/invoices/{id}/pdf` and `/v1/pay/receipts/{id}/download`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::Refusal;
use domain::api_key::{Area, Right};
use domain::invoice::Invoice;
use domain::receipt::Receipt;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};

use super::Api;
use super::answer::Problem;
use super::caller::Caller;
use super::path::InPath;
use crate::app::documents::{File, Subject};
use crate::error::Failure;

/// With a character set, though bytes have none: a client that reads answers as text has every byte then, each as the
/// character of its number.
const PDF: HeaderValue = HeaderValue::from_static("application/pdf; charset=iso-8859-1");

/// Download an invoice as PDF.
#[utoipa::path(
    get, path = "/v1/pay/invoices/{id}/pdf", tag = "Invoices", operation_id = "download_invoice_pdf",
    params(("id" = String, Path)),
    responses((status = 200, description = "The file.", body = Vec<u8>, content_type = "application/pdf")),
)]
pub(super) async fn invoice(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Response, Problem> {
    let scope = caller.require(Right::read(Area::Invoices))?;
    let id = id.parse().map_err(|_| Failure::from(Refusal::not_found::<Invoice>()))?;
    Ok(answer(api.app.document(scope, Subject::Invoice(id)).await?))
}

/// Download a receipt as PDF.
#[utoipa::path(
    get, path = "/v1/pay/receipts/{id}/download", tag = "Receipts", operation_id = "download_receipt",
    params(("id" = String, Path)),
    responses((status = 200, description = "The file.", body = Vec<u8>, content_type = "application/pdf")),
)]
pub(super) async fn receipt(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Response, Problem> {
    let scope = caller.require(Right::read(Area::Invoices))?;
    let id = id.parse().map_err(|_| Failure::from(Refusal::not_found::<Receipt>()))?;
    Ok(answer(api.app.document(scope, Subject::Receipt(id)).await?))
}

fn answer(file: File) -> Response {
    let name = format!("attachment; filename=\"{}\"", file.name);
    let name = HeaderValue::from_str(&name).expect("a file's name is letters, digits, '-', '_' and '.'");
    ([(CONTENT_TYPE, PDF), (CONTENT_DISPOSITION, name)], file.bytes).into_response()
}
