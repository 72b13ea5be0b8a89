//! `/v1/pay`: the embedded flow, begun, continued and watched.

mod target;

use axum::extract::State;
use domain::api_key::{Area, Right};
use domain::payment::{Payable, Payer, PaymentSession};
use domain::{Metadata, Method, Refusal};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use store::queries::idempotency::IdempotencyKey;
use utoipa::ToSchema;

use target::{Found, Names};

use super::answer::{Answer, Problem};
use super::body::Sent;
use super::caller::Caller;
use super::card_guard;
use super::fault::{Fault, FaultCode};
use super::fields::{Fields, MetadataValues};
use super::json::Body;
use super::openapi::Data;
use super::path::InPath;
use super::references::Faulty;
use super::{Api, read};
use crate::app::Context;
use crate::app::payments::{self, Initialize, Target};
use crate::app::references::Named;
use crate::app::sessions::{self, Payment};
use crate::error::Failure;
use crate::wire::payments::{PaymentSessionView, PaymentStatusView};
use crate::wire::words;

const OBJECT_TYPES: [&str; 5] = ["payment_link", "invoice", "checkout", "donation", "topup"];
/// The fields that say together what is paid.
const NAMES: [&str; 4] = ["session_id", "client_secret", "object_type", "object_id"];

/// What is paid, by whom and how.
// For the description only: it is read field by field below.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = InitializePayment)]
pub(super) struct InitializeBody {
    /// Continue this session: what you send of the customer, of `metadata` and of the addresses is kept with it, also once its
    /// attempt began, as long as it is `pending`. Another amount, method or phone opens another session in its place.
    #[schema(min_length = 1, max_length = 64)]
    session_id: Option<String>,
    /// Pay the checkout that this secret belongs to.
    #[schema(min_length = 1, max_length = 128)]
    client_secret: Option<String>,
    /// With `object_id`: what is paid. `donation` and `topup` have nothing to pay yet.
    #[schema(value_type = Option<words::PayableIn>)]
    object_type: Option<String>,
    /// The id of what is paid.
    #[schema(min_length = 1, max_length = 64)]
    object_id: Option<String>,
    /// Of a top-up. There are none yet, so any is refused.
    #[schema(max_length = 64)]
    plan_id: Option<String>,
    /// Without one the payer chooses on the hosted page, which asks as well for what a payment link has to know and you left out.
    #[schema(value_type = Option<words::MethodName>)]
    payment_method: Option<String>,
    /// What the payer of a payment link chose, where the link says so; without it, what the link suggests. Of an invoice, a part
    /// of what is left, where your settings have `allow_partial_payments`; without it, all that is left. Elsewhere leave it out,
    /// or send what the object costs: any other amount is refused.
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
    /// The one-time code of the second step, with `session_id`. Never stored. An amount, method or phone beside it has to be that
    /// of the attempt which asked for the code; with a publishable key leave the phone out.
    #[schema(min_length = 6, max_length = 6, pattern = "^[0-9]{6}$", examples("123456"))]
    customer_pin: Option<String>,
    /// The answers to the questions of a payment link, by name; they land in the transaction's metadata. Refused elsewhere.
    #[schema(value_type = Option<words::MetadataIn>)]
    custom_field_values: Option<serde_json::Value>,
    /// Whatever you want to find again on the payment. Refused from a browser.
    #[schema(value_type = Option<words::MetadataTexts>)]
    metadata: Option<serde_json::Value>,
    /// Where the payer goes once paid. A checkout has its own; this goes before that of a payment link. Refused from a browser.
    #[schema(value_type = Option<words::Url>)]
    success_url: Option<String>,
    /// Where the payer goes who leaves unpaid. A checkout has its own; this goes before that of a payment link. Refused from a
    /// browser.
    #[schema(value_type = Option<words::Url>)]
    failure_url: Option<String>,
    /// The same as the header `Idempotency-Key`.
    #[schema(min_length = 1, max_length = 255, pattern = "^[ -~]+$")]
    idempotency_key: Option<String>,
}

struct Parsed {
    names: Names,
    amount: Option<String>,
    method: Option<Method>,
    payer: Payer,
    metadata: Option<Metadata>,
    answers: Metadata,
    success_url: Option<String>,
    failure_url: Option<String>,
    code: Option<String>,
    /// Right or wrong.
    has_code: bool,
    body_key: Option<String>,
}

/// Start a payment, or take its second step.
#[utoipa::path(
    post, path = "/v1/pay/initialize", tag = "Payments", operation_id = "initialize_payment",
    request_body = InitializeBody,
    responses((status = 200, description = "The session as it stands.", body = Data<PaymentSessionView>)),
)]
pub(super) async fn initialize(State(api): State<Api>, caller: Caller, body: Sent) -> Result<Answer, Problem> {
    let scope = caller.require_or_publishable(Right::write(Area::Payments))?;
    let body = body?;
    // What it names is what it may do: asked before anything is said of the rest.
    if caller.is_publishable() && !is_named_by_secret_or_session(&body) {
        return Err(other_name_needs_secret_key());
    }
    let (parsed, mut faults) = parse(&body, caller.is_publishable());
    if faults.is_empty()
        && scope.mode.is_live()
        && let Some(field) = card_guard::find(&body.value, &["customer_phone", "customer_pin"])
    {
        return Err(Problem::card_data_not_allowed(&field));
    }
    // With a name that can't be read nobody knows what is meant by the others.
    let are_names_read = !faults.iter().any(|fault| NAMES.contains(&&*fault.field));
    let (found, more) = target::find(&api, scope, &parsed.names).await?;
    tell(&mut faults, more);
    let Some(Found { target, payable, currency }) = found.filter(|_| are_names_read) else {
        let named = Named { customer: parsed.payer.customer, ..Named::default() };
        return Err(Faulty { faults, named: Box::new(named) }.look_up(&api, scope).await);
    };
    // An amount that is none in this currency is told by the command, with what else it finds.
    let can_run = faults.is_empty();
    let amount = parsed.amount.as_deref().map(read::amount("amount", currency)).transpose();
    let amount = amount.unwrap_or_else(|(code, message)| {
        tell(&mut faults, [Fault::new("amount", code, message)]);
        None
    });
    let request = Initialize {
        target,
        method: parsed.method,
        amount,
        faults,
        payer: parsed.payer,
        metadata: parsed.metadata,
        answers: parsed.answers,
        success_url: parsed.success_url,
        failure_url: parsed.failure_url,
        replaces: None,
        has_code: parsed.has_code,
        counted: caller.is_publishable().then(|| api.app.starts().counted()),
    };
    if !can_run {
        let faults = api.app.read(move |tx, context| payments::faults(tx, context, scope, &request)).await?;
        return Err(faults.into());
    }
    let space = match (caller.is_publishable(), payable, target) {
        (false, ..) => IdempotencyKey::MERCHANT_SPACE.to_owned(),
        // Many pay it, and each of them only in a session of their own.
        (true, Payable::PaymentLink(_), Target::Session(id)) => IdempotencyKey::page_space(&id.to_string()),
        (true, ..) => IdempotencyKey::page_space(&payable.object_id()),
    };
    let key = caller.idempotency_key(&body, parsed.body_key, &space)?;
    let context = api.app.context().clone();
    let is_publishable = caller.is_publishable();
    let view = move |payment: &Payment| session_view(payment, &context, is_publishable);
    let render = caller.renderer(200, view);
    Ok(api.app.initialize(scope, request, parsed.code, key, render).await?.into())
}

/// The names that a publishable key may pay by (contract §1.2), right or wrong.
fn is_named_by_secret_or_session(body: &Body) -> bool {
    let fields = Fields::new(body);
    fields.has("client_secret") || fields.has("session_id")
}

/// More that is wrong, of fields of which nothing is said yet.
fn tell(faults: &mut Vec<Fault>, more: impl IntoIterator<Item = Fault>) {
    for fault in more {
        if faults.iter().all(|told| told.field != fault.field) {
            faults.push(fault);
        }
    }
}

pub(super) fn other_name_needs_secret_key() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "secret_key_required",
        "With a publishable key, name what is paid by `client_secret` or `session_id`. Any other name needs a secret key \
         (sk_…), used on your server only.",
    )
}

/// As far as it can be read, and what is wrong with the rest.
fn parse(body: &Body, from_browser: bool) -> (Parsed, Vec<Fault>) {
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
    // Its decimals are counted when it is known what is paid.
    let amount = fields.amount("amount", read::amount_of_any("amount")).optional();
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
        name: fields.text("customer_name").composed().min(1).max(200).optional(),
    };
    let code = fields.text("customer_pin").check(one_time_code).optional();
    let has_code = fields.has("customer_pin");
    let answers = fields.metadata("custom_field_values", MetadataValues::Any).optional();
    // The merchant trusts its metadata, and whoever has a page's address could lead its next payer anywhere.
    for field in ["metadata", "success_url", "failure_url"].into_iter().filter(|_| from_browser) {
        if fields.has(field) {
            let message = format!("`{field}` needs a secret key; set it where the payment is made.");
            fields.fault(field, FaultCode::NotAllowed, &message);
        }
    }
    let metadata = fields.metadata("metadata", MetadataValues::Strings).optional();
    let success_url = fields.text("success_url").url().optional();
    let failure_url = fields.text("failure_url").url().optional();
    let body_key = read::idempotency_key(&mut fields);
    let faults = fields.finish().err().unwrap_or_default();
    let metadata = metadata.map(Metadata::from_canonical);
    let answers = answers.map(Metadata::from_canonical).unwrap_or_default();
    let names = Names { session_id, client_secret, object_type, object_id };
    let parsed =
        Parsed { names, amount, method, payer, metadata, answers, success_url, failure_url, code, has_code, body_key };
    (parsed, faults)
}

/// Six digits. A text that can't be a code costs no try. (A wallet's own PIN is never asked for by the rails there are.)
fn one_time_code(text: String) -> Result<String, (FaultCode, String)> {
    if text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(text)
    } else {
        Err((FaultCode::InvalidFormat, "`customer_pin` is the code from the SMS: 6 digits.".into()))
    }
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
    let is_publishable = caller.is_publishable();
    let view = find(&api, &caller, &id, move |payment, context| session_view(payment, context, is_publishable));
    Ok(Answer::ok(&view.await?))
}

/// A page's visitor may be anybody who has its address, and learns nothing of who pays.
fn session_view(payment: &Payment, context: &Context, is_publishable: bool) -> PaymentSessionView {
    let view = PaymentSessionView::of(&payment.session, payment.transaction.as_ref(), &context.addresses);
    if is_publishable { view.without_payer() } else { view }
}

async fn find<V: Send + 'static>(
    api: &Api,
    caller: &Caller,
    id: &str,
    view: impl Fn(&Payment, &Context) -> V + Send + Sync + 'static,
) -> Result<V, Problem> {
    let scope = caller.require_or_publishable(Right::read(Area::Payments))?;
    let id = id.parse().map_err(|_| Failure::from(Refusal::not_found::<PaymentSession>()))?;
    Ok(api.app.look(move |tx, context| Ok(view(&sessions::look_up_payment(tx, scope, id)?, context))).await?)
}
