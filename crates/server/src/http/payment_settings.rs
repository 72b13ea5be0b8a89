//! `/v1/pay`: what payers may choose from, the merchant's settings, and the totals of a month.

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::organization::Locale;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::{Answer, Problem};
use super::body::Sent;
use super::caller::Caller;
use super::card_guard;
use super::fault::FaultCode;
use super::fields::Fields;
use super::json::Body;
use super::openapi::Data;
use super::read::cleared;
use super::{Api, read};
use crate::app::Context;
use crate::app::organizations::{self, SettingsChange};
use crate::plausible::is_visible;
use crate::wire::settings::{Methods, PayDashboard, Settings};
use crate::wire::words;

/// A year: no rail settles later.
const LONGEST_SETTLEMENT_S: i64 = 366 * 86_400;

/// List payment methods.
#[utoipa::path(
    get, path = "/v1/pay/methods", tag = "Payments", operation_id = "list_payment_methods",
    responses((status = 200, description = "The methods of this mode.", body = Data<Methods>)),
)]
pub(super) async fn methods(State(api): State<Api>, caller: Caller) -> Result<Answer, Problem> {
    let scope = caller.require_or_publishable(Right::read(Area::Payments))?;
    let methods = api.app.read(move |tx, context| organizations::methods(tx, context, scope)).await?;
    Ok(Answer::ok(&methods))
}

/// Totals of the last 30 days.
#[utoipa::path(
    get, path = "/v1/pay/dashboard", tag = "Payments", operation_id = "get_payment_dashboard",
    responses((status = 200, description = "Totals of the last 30 days.", body = Data<PayDashboard>)),
)]
pub(super) async fn dashboard(State(api): State<Api>, caller: Caller) -> Result<Answer, Problem> {
    let scope = caller.require(Right::read(Area::Payments))?;
    Ok(Answer::ok(&*api.app.dashboard(scope).await?))
}

/// Only what is given changes.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = UpdateSettings)]
pub(super) struct SettingsBody {
    /// What payers may choose from. Each at most once.
    #[schema(value_type = Option<Vec<words::MethodName>>, min_items = 1, max_items = 4, nullable = false)]
    enabled_methods: Option<Vec<String>>,
    /// What payers see.
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    name: Option<String>,
    /// null clears it.
    #[schema(value_type = Option<words::Url>)]
    logo_url: Option<String>,
    /// As `#1a2b3c`; null clears it.
    #[schema(pattern = "^#[0-9a-fA-F]{6}$")]
    accent_color: Option<String>,
    /// null clears it.
    #[schema(max_length = 2000)]
    address: Option<String>,
    /// null clears it.
    #[schema(value_type = Option<words::PhoneIn>)]
    phone: Option<String>,
    /// null clears it.
    #[schema(format = "email", max_length = 254)]
    email: Option<String>,
    /// null clears it.
    #[schema(max_length = 200)]
    tax_id: Option<String>,
    /// The language of pages for payers whose browser asks for neither.
    #[schema(value_type = Option<words::LocaleName>, nullable = false)]
    locale: Option<String>,
    #[schema(nullable = false)]
    allow_partial_payments: Option<bool>,
    /// Seconds until money counts as available.
    #[schema(minimum = 0, maximum = 31622400, nullable = false)]
    settlement_delay: Option<i64>,
    #[schema(nullable = false)]
    allow_negative_balance: Option<bool>,
}

/// Change payment settings.
#[utoipa::path(
    put, path = "/v1/pay/settings", tag = "Payments", operation_id = "update_payment_settings",
    request_body = SettingsBody,
    responses((status = 200, description = "The settings as they are now.", body = Data<Settings>)),
)]
pub(super) async fn settings(State(api): State<Api>, caller: Caller, body: Sent) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Payments))?;
    let body = body?;
    let change = parse_settings(&body)?;
    card_guard::refuse(scope, &body, &["phone"])?;
    let key = caller.merchant_key(&body, None)?;
    let context = api.app.context().clone();
    let view = move |organization: &domain::organization::Organization| organizations::settings(&context, organization);
    let command =
        move |tx: &mut store::Tx<'_>, context: &Context| organizations::change_settings(tx, context, scope, &change);
    Ok(api.app.write(key, command, caller.renderer(200, view)).await?.into())
}

fn parse_settings(body: &Body) -> Result<SettingsChange, Problem> {
    let mut fields = Fields::new(body);
    let enabled_methods = fields.texts("enabled_methods", 4, |text| text.parse(read::method).required());
    let enabled_methods = enabled_methods.check(|methods| {
        let mut seen = methods.clone();
        seen.sort_unstable();
        seen.dedup();
        if methods.is_empty() {
            Err((FaultCode::TooShort, "`enabled_methods` must name at least one method.".to_owned()))
        } else if seen.len() < methods.len() {
            Err((FaultCode::Conflict, "`enabled_methods` names a method twice.".to_owned()))
        } else {
            Ok(methods)
        }
    });
    let enabled_methods = enabled_methods.change();
    let name = fields.text("name").composed().min(1).max(200).check(name).change();
    let logo_url = fields.text("logo_url").url().clearable();
    let accent_color = fields.text("accent_color").check(accent_color).clearable();
    let address = fields.text("address").max(2000).clearable();
    let phone = fields.text("phone").parse(read::phone).clearable();
    let email = fields.text("email").email().clearable();
    let tax_id = fields.text("tax_id").max(200).clearable();
    let locale = fields.text("locale").choice(&[("en", Locale::En), ("fr", Locale::Fr)]).change();
    let allow_partial_payments = fields.boolean("allow_partial_payments").change();
    let settlement_delay = fields.integer("settlement_delay", 0..=LONGEST_SETTLEMENT_S).change();
    let allow_negative_balance = fields.boolean("allow_negative_balance").change();
    fields.finish()?;
    Ok(SettingsChange {
        enabled_methods,
        name,
        logo_url: cleared(logo_url),
        accent_color: cleared(accent_color),
        address: cleared(address),
        phone: cleared(phone).map(|phone| phone.map(|phone| phone.as_str().to_owned())),
        email: cleared(email),
        tax_id: cleared(tax_id),
        locale,
        allow_partial_payments,
        settlement_delay_s: settlement_delay.map(|delay| u32::try_from(delay).expect("within its range")),
        allow_negative_balance,
        fees: Vec::new(),
    })
}

/// It stands on every receipt.
fn name(text: String) -> Result<String, (FaultCode, String)> {
    if is_visible(&text) { Ok(text) } else { Err((FaultCode::TooShort, "`name` must be more than blanks.".into())) }
}

fn accent_color(text: String) -> Result<String, (FaultCode, String)> {
    let is_color = text.len() == 7
        && text.strip_prefix('#').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_color {
        Ok(text.to_ascii_lowercase())
    } else {
        Err((FaultCode::InvalidFormat, "`accent_color` is written as \"#1a2b3c\".".into()))
    }
}
