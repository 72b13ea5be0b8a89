//! The address of the page that checks receipts. The statement of a QR code never gets here; a validation code does.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::Money;
use domain::receipt::{Receipt, ValidationCode, without_groups};
use url::Url;

use super::answer::{Wrong, html, nonce};
use super::routes::Site;
use super::view::{AskedReceipt, IssuedReceipt, ReceiptAnswer, ReceiptKey, VerifyPage};
use super::visit::Visit;
use super::{state, verify};
use crate::app::{receipt_statements, receipts};
use crate::receipt_statement::short_id;

const LONGEST_TYPED: usize = 64;
/// So many of its 32 digits, and so many other letters.
const NEARLY_A_CODE: RangeInclusive<usize> = 28..=36;
const MISTAKES: usize = 4;

pub(super) async fn show(State(site): State<Arc<Site>>, visit: Visit) -> Response {
    let language = visit.language(None);
    let typed = visit.code.as_deref().map(named_in);
    let typed: Option<String> = typed.map(|typed| typed.trim().chars().take(LONGEST_TYPED).collect());
    let typed = typed.filter(|typed| !typed.is_empty());
    let code = typed.as_deref().and_then(ValidationCode::typed);
    let asked = code.clone();
    let read = site.app.read(move |tx, context| {
        let keys = receipt_statements::verifying_keys(tx, context)?;
        let found = match &asked {
            Some(code) => receipts::validate(tx, code)?,
            None => None,
        };
        Ok((keys, found))
    });
    let (keys, found) = match read.await {
        Ok(read) => read,
        Err(failure) => return Wrong::from(failure).answer(&visit, language, site.is_https),
    };
    let answer = match (code, found) {
        (None, _) => ReceiptAnswer::Malformed,
        (Some(_), None) => ReceiptAnswer::Unknown,
        (Some(_), Some((receipt, refunded))) => ReceiptAnswer::Issued(issued(receipt, refunded)),
    };
    let page = VerifyPage {
        language,
        path: "/verify".to_owned(),
        keys: keys.iter().map(|key| ReceiptKey { id: short_id(key), bytes: *key.bytes() }).collect(),
        host: host(site.pay_url()),
        asked: typed.map(|typed| AskedReceipt { typed: Some(typed).filter(|typed| is_nearly_a_code(typed)), answer }),
    };
    let nonce = nonce();
    html(StatusCode::OK, &nonce, site.is_https, verify::render(&page, &nonce))
}

/// A whole address of this page names its code.
fn named_in(typed: &str) -> String {
    let typed = typed.trim().trim_end_matches('#');
    match typed.rsplit_once("code=") {
        Some((_, query)) => query.split(['&', '#']).next().unwrap_or_default().replace('+', " ").replace("%20", " "),
        None => typed.rsplit('#').next().unwrap_or_default().to_owned(),
    }
}

/// Whoever mistyped a code need not type it again; of anything else an address could have the page say what we did not.
fn is_nearly_a_code(typed: &str) -> bool {
    let typed = without_groups(typed);
    let digits = typed.bytes().filter(u8::is_ascii_hexdigit).count();
    typed.bytes().all(|it| it.is_ascii_alphanumeric())
        && NEARLY_A_CODE.contains(&digits)
        && typed.len() - digits <= MISTAKES
}

/// What anybody who has the code may know of it, as the API tells it.
fn issued(receipt: Receipt, refunded: Money) -> IssuedReceipt {
    IssuedReceipt {
        merchant: receipt.merchant.name,
        number: receipt.number,
        amount: state::amount(receipt.amount),
        refunded: (refunded.minor > 0).then(|| state::amount(refunded)),
        paid_at: receipt.payment_date.seconds(),
        test_mode: !receipt.scope.mode.is_live(),
    }
}

/// What the address bar has to show; with a port where it isn't the usual one.
fn host(pay_url: &str) -> String {
    let url = Url::parse(pay_url).ok();
    let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
    match host {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host.to_owned(),
        None => pay_url.to_owned(),
    }
}
