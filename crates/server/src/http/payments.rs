//! `/v1/pay`: the embedded flow, methods, settings and dashboard.

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::checkout::Checkout;
use domain::organization::Locale;
use domain::payment::{Payer, PaymentSession};
use domain::{Currency, Id, Metadata, Method, Refusal, Scope};
use serde::{Deserialize, Serialize};
use store::queries::locate;
use utoipa::ToSchema;

use super::answer::{Answer, Problem};
use super::caller::Caller;
use super::card_guard;
use super::fault::{Fault, FaultCode};
use super::fields::{Fields, MetadataValues};
use super::json::Body;
use super::openapi::Data;
use super::path::InPath;
use super::read::cleared;
use super::{Api, read};
use crate::app::organizations::{self, SettingsChange};
use crate::app::payments::{self, Initialize, Payment, Target};
use crate::app::{Context, look_up};
use crate::credentials::ClientSecret;
use crate::error::Failure;
use crate::wire::payments::{PaymentSessionView, PaymentStatusView};
use crate::wire::settings::{Methods, PayDashboard, Settings};
use crate::wire::words;

const OBJECT_TYPES: [&str; 5] = ["payment_link", "invoice", "checkout", "donation", "topup"];
/// A year: no rail settles later.
const LONGEST_SETTLEMENT_S: i64 = 366 * 86_400;

/// What is paid, by whom and how.
// For the description only: it is read field by field below.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = InitializePayment)]
pub(super) struct InitializeBody {
    /// Continue this session.
    #[schema(min_length = 1, max_length = 64)]
    session_id: Option<String>,
    /// Pay the checkout that this secret belongs to.
    #[schema(min_length = 1, max_length = 128)]
    client_secret: Option<String>,
    /// With `object_id`: what is paid. Only `checkout` has something to pay today.
    #[schema(value_type = Option<words::PayableIn>)]
    object_type: Option<String>,
    /// The id of what is paid.
    #[schema(min_length = 1, max_length = 64)]
    object_id: Option<String>,
    /// Of a top-up. There are none yet, so any is refused.
    #[schema(max_length = 64)]
    plan_id: Option<String>,
    /// Without one the payer chooses on the hosted page.
    #[schema(value_type = Option<words::MethodName>)]
    payment_method: Option<String>,
    /// Leave it out, or send the amount of the checkout: any other is refused.
    #[schema(value_type = Option<words::AmountIn>)]
    amount: Option<String>,
    /// A customer of yours: what you leave out below comes from it. Refused from a browser, which would see it all.
    #[schema(value_type = Option<words::CustomerId>)]
    customer_id: Option<String>,
    #[schema(format = "email", max_length = 254)]
    customer_email: Option<String>,
    /// Needed by afrimoney and qmoney, unless the checkout has one.
    #[schema(value_type = Option<words::PhoneIn>)]
    customer_phone: Option<String>,
    #[schema(min_length = 1, max_length = 200)]
    customer_name: Option<String>,
    /// The one-time code of the second step, with `session_id`. Never stored.
    #[schema(min_length = 1, max_length = 12, examples("123456"))]
    customer_pin: Option<String>,
    /// Of payment links. Refused for checkouts.
    #[schema(value_type = Option<Object>)]
    custom_field_values: Option<serde_json::Value>,
    #[schema(value_type = Option<words::MetadataTexts>)]
    metadata: Option<serde_json::Value>,
    #[schema(value_type = Option<words::Url>)]
    success_url: Option<String>,
    #[schema(value_type = Option<words::Url>)]
    failure_url: Option<String>,
    /// The same as the header `Idempotency-Key`.
    #[schema(min_length = 1, max_length = 255, pattern = "^[ -~]+$")]
    idempotency_key: Option<String>,
}

struct Parsed {
    session_id: Option<String>,
    client_secret: Option<String>,
    object_type: Option<String>,
    object_id: Option<String>,
    amount: Option<String>,
    method: Option<Method>,
    payer: Payer,
    metadata: Option<Metadata>,
    code: Option<String>,
    body_key: Option<String>,
}

/// Start a payment, or take its second step.
#[utoipa::path(
    post, path = "/v1/pay/initialize", tag = "Payments", operation_id = "initialize_payment",
    request_body = InitializeBody,
    responses((status = 200, description = "The session as it stands.", body = Data<PaymentSessionView>)),
)]
pub(super) async fn initialize(State(api): State<Api>, caller: Caller, body: Body) -> Result<Answer, Problem> {
    let scope = caller.require_or_publishable(Right::write(Area::Payments))?;
    let parsed = parse(&body, caller.is_publishable())?;
    if caller.is_publishable() && parsed.client_secret.is_none() && parsed.session_id.is_none() {
        return Err(caller.require(Right::write(Area::Payments)).err().unwrap_or_else(Problem::internal_error));
    }
    if scope.mode.is_live()
        && let Some(field) = card_guard::find(&body.value, &["customer_phone", "customer_pin"])
    {
        return Err(Problem::card_data_not_allowed(&field));
    }
    let (target, currency) = find_target(&api, scope, &parsed).await?;
    let amount = parsed.amount.as_deref().map(read::amount("amount", currency)).transpose();
    let amount = amount.map_err(|(code, message)| vec![Fault::new("amount", code, message)])?;
    let space = match (caller.is_publishable(), target) {
        (false, _) => "secret".to_owned(),
        (true, Target::Checkout(id)) => format!("page:{id}"),
        (true, Target::Session(id)) => format!("page:{id}"),
    };
    let key = caller.idempotency_key(&body, parsed.body_key, &space)?;
    let request = Initialize {
        target,
        method: parsed.method,
        amount,
        payer: parsed.payer,
        metadata: parsed.metadata,
        has_code: parsed.code.is_some(),
    };
    let context = api.app.context().clone();
    let view = move |payment: &Payment| {
        PaymentSessionView::of(&payment.session, payment.transaction.as_ref(), &context.addresses)
    };
    let render = caller.renderer(200, view);
    Ok(api.app.initialize(scope, request, parsed.code, key, render).await?.into())
}

fn parse(body: &Body, from_browser: bool) -> Result<Parsed, Problem> {
    let mut fields = Fields::new(body);
    let session_id = fields.text("session_id").min(1).max(64).optional();
    let client_secret = fields.text("client_secret").min(1).max(128).optional();
    let object_type = fields.text("object_type").choice(&OBJECT_TYPES.map(|kind| (kind, kind.to_owned()))).optional();
    let object_id = fields.text("object_id").min(1).max(64).optional();
    if !fields.has("session_id") && !fields.has("client_secret") && !fields.has("object_id") {
        let message = "Name what is paid: `client_secret`, `session_id`, or `object_type` and `object_id`.";
        fields.fault("client_secret", FaultCode::Required, message);
    }
    if fields.has("object_id") && !fields.has("object_type") {
        fields.fault("object_type", FaultCode::Required, "`object_type` is required with `object_id`.");
    }
    if fields.has("plan_id") {
        fields.fault("plan_id", FaultCode::NotFound, "`plan_id` names no plan.");
    }
    fields.ignore("plan_id");
    let method = fields.text("payment_method").parse(read::method).optional();
    let amount = fields.amount("amount", |text| Ok::<_, (FaultCode, String)>(text.to_owned())).optional();
    let customer = fields.text("customer_id").parse(|text| match from_browser {
        // The answer shows what is known of the customer, and a page's visitor may be anybody.
        true => {
            Err((FaultCode::NotAllowed, "`customer_id` needs a secret key; name the customer on the checkout.".into()))
        }
        false => read::customer(text),
    });
    let payer = Payer {
        customer: customer.optional(),
        phone: fields.text("customer_phone").parse(read::phone).optional(),
        email: fields.text("customer_email").email().optional(),
        name: fields.text("customer_name").min(1).max(200).optional(),
    };
    let code = fields.text("customer_pin").check(one_time_code).optional();
    if fields.has("custom_field_values") {
        let message = "`custom_field_values` belong to payment links; leave them out here.";
        fields.fault("custom_field_values", FaultCode::NotAllowed, message);
    }
    fields.ignore("custom_field_values");
    let metadata = fields.metadata("metadata", MetadataValues::Strings).optional();
    fields.text("success_url").url().optional();
    fields.text("failure_url").url().optional();
    let body_key = read::idempotency_key(&mut fields);
    fields.finish()?;
    let metadata = metadata.map(Metadata::from_canonical);
    Ok(Parsed { session_id, client_secret, object_type, object_id, amount, method, payer, metadata, code, body_key })
}

/// What is paid, by whichever name the request gives; two names that disagree are refused.
async fn find_target(api: &Api, scope: Scope, parsed: &Parsed) -> Result<(Target, Currency), Problem> {
    let secret = match &parsed.client_secret {
        None => None,
        Some(text) => Some(ClientSecret::parse(text).map_err(|_| vec![unknown("client_secret")])?),
    };
    let digest = secret.map(|secret| secret.digest(&api.app.context().client_secret_pepper));
    let (session_id, object_type, object_id) =
        (parsed.session_id.clone(), parsed.object_type.clone(), parsed.object_id.clone());
    let found = api
        .app
        .read(move |tx, _| {
            let mut named: Vec<(&'static str, Id<Checkout>)> = Vec::new();
            let mut faults = Vec::new();
            if let Some(digest) = &digest {
                match locate::client_secret(tx, digest)? {
                    Some((of, id)) if of == scope => named.push(("client_secret", id)),
                    _ => faults.push(unknown("client_secret")),
                }
            }
            if let Some(text) = &object_id {
                let id = text.parse::<Id<Checkout>>().ok().filter(|_| object_type.as_deref() == Some("checkout"));
                match id {
                    Some(id) if tx.peek::<Checkout>(scope, id)?.is_some() => named.push(("object_id", id)),
                    _ => faults.push(unknown("object_id")),
                }
            }
            let mut session = None;
            if let Some(text) = &session_id {
                let id = text.parse::<Id<PaymentSession>>().ok();
                match id.map(|id| tx.peek::<PaymentSession>(scope, id)).transpose()?.flatten() {
                    Some(found) => {
                        let domain::payment::Payable::Checkout(id) = found.payable;
                        session = Some(found.id);
                        named.push(("session_id", id));
                    }
                    None => faults.push(unknown("session_id")),
                }
            }
            if !faults.is_empty() {
                return Err(Failure::from(faults));
            }
            let Some((_, first)) = named.first().copied() else {
                return Err(Failure::from(unknown("client_secret")));
            };
            if let Some((field, _)) = named.iter().find(|(_, id)| *id != first) {
                let message = format!("`{field}` belongs to another payment; send only one of the names.");
                return Err(Failure::from(Fault::new(*field, FaultCode::Conflict, message)));
            }
            let currency = look_up::<Checkout>(tx, scope, first)?.order.amount.currency;
            Ok((session.map_or(Target::Checkout(first), Target::Session), currency))
        })
        .await?;
    Ok(found)
}

/// Six digits. A text that can't be a code costs no try. (A wallet's own PIN is never asked for by the rails there are.)
fn one_time_code(text: String) -> Result<String, (FaultCode, String)> {
    if text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(text)
    } else {
        Err((FaultCode::InvalidFormat, "`customer_pin` is the code from the SMS: 6 digits.".into()))
    }
}

fn unknown(field: &'static str) -> Fault {
    Fault::new(field, FaultCode::NotFound, format!("`{field}` names nothing that can be paid here."))
}

/// Get the status of a payment.
#[utoipa::path(
    get, path = "/v1/pay/status/{session_id}", tag = "Payments", operation_id = "get_payment_status",
    params(("session_id" = String, Path)),
    responses((status = 200, description = "How the payment stands.", body = Data<PaymentStatusView>)),
)]
pub(super) async fn status(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let view = find(&api, &caller, &id, |payment, context| {
        PaymentStatusView::of(&payment.session, payment.transaction.as_ref(), &context.addresses)
    });
    Ok(Answer::ok(&view.await?))
}

/// Get a payment session.
#[utoipa::path(
    get, path = "/v1/pay/session/{session_id}", tag = "Payments", operation_id = "get_payment_session",
    params(("session_id" = String, Path)),
    responses((status = 200, description = "The session as it stands.", body = Data<PaymentSessionView>)),
)]
pub(super) async fn session(State(api): State<Api>, caller: Caller, InPath(id): InPath) -> Result<Answer, Problem> {
    let view = find(&api, &caller, &id, |payment, context| {
        PaymentSessionView::of(&payment.session, payment.transaction.as_ref(), &context.addresses)
    });
    Ok(Answer::ok(&view.await?))
}

async fn find<V: Send + 'static>(
    api: &Api,
    caller: &Caller,
    id: &str,
    view: impl Fn(&Payment, &Context) -> V + Send + Sync + 'static,
) -> Result<V, Problem> {
    let scope = caller.require_or_publishable(Right::read(Area::Payments))?;
    let id = id.parse().map_err(|_| Failure::from(Refusal::not_found::<PaymentSession>()))?;
    Ok(api.app.read(move |tx, context| Ok(view(&payments::look_up_payment(tx, scope, id)?, context))).await?)
}

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
    let dashboard = api.app.read(move |tx, _| organizations::dashboard(tx, scope)).await?;
    Ok(Answer::ok(&dashboard))
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
pub(super) async fn settings(State(api): State<Api>, caller: Caller, body: Body) -> Result<Answer, Problem> {
    let scope = caller.require(Right::write(Area::Payments))?;
    let change = parse_settings(&body)?;
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
    let name = fields.text("name").min(1).max(200).change();
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

fn accent_color(text: String) -> Result<String, (FaultCode, String)> {
    let is_color = text.len() == 7
        && text.strip_prefix('#').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_color {
        Ok(text.to_ascii_lowercase())
    } else {
        Err((FaultCode::InvalidFormat, "`accent_color` is written as \"#1a2b3c\".".into()))
    }
}
