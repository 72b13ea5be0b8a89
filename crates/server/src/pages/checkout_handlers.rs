//! The checkout page's addresses: show it, and do what its forms ask. A form does its thing once, however often it is
//! sent, and always ends in a redirect to the page, which tells what came of it.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest as hash};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::checkout::{Checkout, Status};
use domain::payment::{Payable, Payer, SessionStatus};
use domain::rail::NextAction;
use domain::{Id, Metadata, Method, Msisdn, Refusal};
use store::Tx;
use store::queries::idempotency::IdempotencyKey;

use super::answer::{Wrong, html, nonce, random, see_other};
use super::form::{self, Form, Token};
use super::note::{CodeFault, Note, PhoneFault};
use super::routes::Site;
use super::state::{self, Simulator};
use super::text::Language;
use super::view::{self, CheckoutPage, Item, Merchant};
use super::visit::{InPath, Visit, address};
use super::{checkout, moment};
use crate::app::Context;
use crate::app::hosted::{self, HostedCheckout};
use crate::app::idempotency::Reply;
use crate::app::payments::{Initialize, Target};
use crate::app::sessions::Payment;
use crate::error::Failure;
use crate::form_token;

const PURPOSE: &str = "checkout page";
/// A page that stays open beyond its checkout's end can still say "I approved it".
const SHORTEST_TOKEN_S: i64 = 3600;
/// So many attempts of one checkout in [`RECENTLY`]: each may cost somebody a text message.
const MOST_STARTS: usize = 10;
const RECENTLY: Duration = Duration::from_secs(600);
/// A browser is not kept waiting longer for a rail; the page goes on asking.
const LONGEST_QUESTION: Duration = Duration::from_secs(3);
const LONGEST_TYPED: usize = 24;

pub(super) async fn look_up(site: &Site, id: Id<Checkout>) -> Result<HostedCheckout, Failure> {
    site.app.read(move |tx, _| hosted::look_up_hosted(tx, id)).await
}

pub(super) fn stored_state(site: &Site, hosted: &HostedCheckout) -> view::State {
    let context = site.app.context();
    state::stored(hosted, &Simulator { pay_url: site.pay_url(), token_key: &context.page_token_key })
}

/// One request for one checkout.
struct Call {
    site: Arc<Site>,
    hosted: HostedCheckout,
    language: Language,
    path: String,
}

impl Call {
    async fn open(site: &Arc<Site>, visit: &Visit, id: &str) -> Result<Self, Wrong> {
        let id: Id<Checkout> = id.parse().map_err(|_| Wrong::NotFound)?;
        let hosted = look_up(site, id).await?;
        let language = visit.language(Some(hosted.organization.profile.locale.as_str()));
        Ok(Self { site: Arc::clone(site), path: format!("/checkout/{id}"), hosted, language })
    }

    fn id(&self) -> Id<Checkout> {
        self.hosted.checkout.id
    }

    fn to_page(&self) -> Response {
        see_other(&address(&self.path, self.language, &[]))
    }

    fn to_page_with(&self, note: &Note) -> Response {
        let sealed = self.site.notes.seal(&self.id().to_string(), note, self.hosted.now);
        see_other(&address(&self.path, self.language, &[("note", &sealed)]))
    }
}

pub(super) async fn show(State(site): State<Arc<Site>>, visit: Visit, path: InPath<String>) -> Response {
    let id = path.map(|path| path.0).unwrap_or_default();
    match Call::open(&site, &visit, &id).await {
        Ok(call) => draw(&call, &visit),
        Err(wrong) => wrong.answer(&visit, visit.language(None), site.is_https),
    }
}

/// A form's address takes forms only; who comes there otherwise is looking for the page.
pub(super) async fn show_instead(
    State(site): State<Arc<Site>>,
    visit: Visit,
    path: InPath<(String, String)>,
) -> Response {
    let (id, action) = path.map(|path| path.0).unwrap_or_default();
    let call = match Action::parse(&action) {
        Some(_) => Call::open(&site, &visit, &id).await,
        None => Err(Wrong::NotFound),
    };
    match call {
        Ok(call) => call.to_page(),
        Err(wrong) => wrong.answer(&visit, visit.language(None), site.is_https),
    }
}

fn draw(call: &Call, visit: &Visit) -> Response {
    let (site, hosted, language) = (&call.site, &call.hosted, call.language);
    let (checkout, order, profile) = (&hosted.checkout, &hosted.checkout.order, &hosted.organization.profile);
    let id = checkout.id.to_string();
    let stored = stored_state(site, hosted);
    let revision = state::revision(&stored);
    let note = visit.note.as_deref().and_then(|note| site.notes.open(&id, note, hosted.now));
    let shown = state::noted(stored, hosted, note, visit.method);
    let item = |item: &domain::checkout::Item| Item {
        description: item.description.clone().unwrap_or_else(|| "–".to_owned()),
        quantity: item.quantity,
        total: state::amount(item.total),
    };
    let token_expires_at_s = checkout.expires_at.seconds().max(hosted.now.seconds() + SHORTEST_TOKEN_S);
    let page = CheckoutPage {
        merchant: Merchant { name: profile.name.clone(), logo_path: None, accent: profile.accent_color.clone() },
        amount: state::amount(order.amount),
        description: order.description.clone(),
        reference: order.reference.clone(),
        items: order.items.iter().flatten().map(item).collect(),
        payer: state::payer(hosted),
        test_mode: !checkout.scope.mode.is_live(),
        language,
        path: call.path.clone(),
        revision,
        form_token: form_token::issue(&site.app.context().form_token_key, PURPOSE, &id, token_expires_at_s, &random()),
        time_left: moment::time_left(
            checkout.created_at.seconds(),
            checkout.expires_at.seconds(),
            hosted.now.seconds(),
        ),
        reads: visit.reads,
        can_return: order.failure_url.is_some(),
        state: in_language(shown, site.pay_url(), language),
    };
    let nonce = nonce();
    html(StatusCode::OK, &nonce, site.is_https, checkout::render(&page, &nonce))
}

/// The simulator's pages are ours and speak the payer's language as well.
fn in_language(mut state: view::State, pay_url: &str, language: Language) -> view::State {
    let ours = format!("{pay_url}/simulator/");
    let url = match &mut state {
        view::State::Redirecting { url, .. } => Some(url),
        view::State::ApproveOnPhone { simulator_url, .. } | view::State::Checking { simulator_url, .. } => {
            simulator_url.as_mut()
        }
        _ => None,
    };
    if let Some(url) = url.filter(|url| url.starts_with(&ours)) {
        *url = address(url, language, &[]);
    }
    state
}

/// The rail's own page sends the payer back here. That is no proof of anything: the rail is asked.
pub(super) async fn returned(State(site): State<Arc<Site>>, visit: Visit, path: InPath<String>) -> Response {
    let id = path.map(|path| path.0).unwrap_or_default();
    let result = async {
        let call = Call::open(&site, &visit, &id).await?;
        come_back(&call).await?;
        Ok::<_, Wrong>(call.to_page())
    };
    result.await.unwrap_or_else(|wrong| wrong.answer(&visit, visit.language(None), site.is_https))
}

async fn come_back(call: &Call) -> Result<(), Failure> {
    let Some(Payment { session, transaction: Some(attempt) }) = &call.hosted.payment else { return Ok(()) };
    let is_open = matches!(session.status(), SessionStatus::Pending | SessionStatus::Processing);
    // Where nobody was sent away, nobody comes back: a code that is awaited stays awaited.
    if !is_open || !matches!(session.next_action, Some(NextAction::Redirect { .. })) {
        return Ok(());
    }
    call.site.app.payer_returned(call.hosted.scope(), attempt.id).await?;
    ask(call).await;
    Ok(())
}

/// Asks the rail about the current attempt, for a moment; the question goes on without us.
async fn ask(call: &Call) {
    let Some(attempt) = call.hosted.payment.as_ref().and_then(|payment| payment.transaction.as_ref()) else { return };
    let (app, scope, id) = (call.site.app.clone(), call.hosted.scope(), attempt.id);
    let question = tokio::spawn(async move {
        if let Err(failure) = app.ask_rail(scope, id, None).await {
            // The worker asks again in any case.
            tracing::warn!(%failure, "a rail can't be asked for a payer who waits");
        }
    });
    let _ = tokio::time::timeout(LONGEST_QUESTION, question).await;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Method,
    Phone,
    Code,
    Approved,
    Resend,
    Other,
    Leave,
}

impl Action {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "method" => Self::Method,
            "phone" => Self::Phone,
            "code" => Self::Code,
            "approved" => Self::Approved,
            "resend" => Self::Resend,
            "other" => Self::Other,
            "leave" => Self::Leave,
            _ => return None,
        })
    }
}

pub(super) async fn act(
    State(site): State<Arc<Site>>,
    visit: Visit,
    path: InPath<(String, String)>,
    request: Request,
) -> Response {
    let (id, action) = path.map(|path| path.0).unwrap_or_default();
    let result = async {
        let action = Action::parse(&action).ok_or(Wrong::NotFound)?;
        let call = Call::open(&site, &visit, &id).await?;
        let form = form::read(request, site.pay_url()).await?;
        let key = &site.app.context().form_token_key;
        match form::token(&form, key, PURPOSE, &call.id().to_string(), call.hosted.now)? {
            Token::Stale => Ok(call.to_page_with(&Note::StaleForm {})),
            Token::Good(token) => press(&call, action, &form, token).await,
        }
    };
    result.await.unwrap_or_else(|wrong| wrong.answer(&visit, visit.language(None), site.is_https))
}

async fn press(call: &Call, action: Action, form: &Form, token: &str) -> Result<Response, Wrong> {
    let once = |name: &str, detail: &str| once(call, token, name, detail);
    let method = form.get("method").and_then(Method::parse);
    match (action, method) {
        (Action::Method, Some(method)) if method.needs_phone() => ask_for_phone(call, method, once).await,
        (Action::Method, Some(method)) => start(call, method, None, once("method", method.as_str())).await,
        (Action::Phone, Some(method)) if method.needs_phone() => match phone(call, form) {
            Ok(phone) => {
                let key = once("phone", &format!("{} {}", method.as_str(), phone.as_str()));
                start(call, method, Some(phone), key).await
            }
            Err((fault, typed)) => Ok(call.to_page_with(&Note::Phone { method, fault, typed })),
        },
        // Only a form that was altered names no method.
        (Action::Method | Action::Phone, _) => Ok(call.to_page()),
        (Action::Code, _) => submit_code(call, form, |code| once("code", code)).await,
        (Action::Approved, _) => approved(call).await,
        (Action::Resend, _) => resend(call, once("resend", "")).await,
        (Action::Other, _) => {
            let result = choose_again(call, once("other", "")).await;
            answer(call, result, None)
        }
        (Action::Leave, _) => match leave(call, once("leave", "")).await {
            Ok(reply) if reply.status == 200 && state::failure_address(&call.hosted).is_some() => {
                Ok(call.to_page_with(&Note::Leaving {}))
            }
            result => answer(call, result, None),
        },
    }
}

/// The form's token is the idempotency key: the same form sent twice is one press of the button. What was filled in
/// belongs to it, as a keyed digest, since it may be a code.
fn once(call: &Call, token: &str, name: &str, detail: &str) -> IdempotencyKey {
    let key = &call.site.app.context().form_token_key;
    let digest = key.derive(&format!("page action {token} {name} {detail}"));
    let digest: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let key = format!("{token}:{name}:{digest}");
    // The key says all that was asked, so one key is always one request.
    let fingerprint = hash(&SHA256, key.as_bytes()).as_ref().to_vec();
    IdempotencyKey { scope: call.hosted.scope(), space: format!("page:{}", call.id()), key, fingerprint }
}

/// What is kept of an answer, as JSON like every kept answer: the page is drawn from the state in any case.
fn outcome<T>(result: Result<&T, &Failure>) -> Reply {
    match result {
        Ok(_) => Reply::new(200, "null".to_owned()),
        Err(failure) => Reply::new(failure.status(), kept(&failure.code())),
    }
}

fn kept(code: &str) -> String {
    serde_json::Value::from(code).to_string()
}

/// Back to the page, with the reason where nothing else there would tell it.
fn answer(call: &Call, result: Result<Reply, Failure>, method: Option<Method>) -> Result<Response, Wrong> {
    let note = match result {
        Ok(reply) if reply.status == 200 => None,
        Ok(reply) if reply.body == kept(&Refusal::PaymentInProgress.code()) => Some(Note::InProgress {}),
        Ok(reply) if reply.body == kept(&Refusal::NoPaymentMethodAvailable.code()) => {
            method.map(|method| match method.needs_phone() {
                true => Note::Phone { method, fault: PhoneFault::NotStarted, typed: None },
                false => Note::NotStarted { method },
            })
        }
        // The state on the page says why: paid, expired, cancelled.
        Ok(_) => None,
        // The first press is still at work, or the form was altered: nothing was begun.
        Err(Failure::KeyInUse | Failure::Invalid(_)) => None,
        Err(failure) => return Err(failure.into()),
    };
    Ok(note.map_or_else(|| call.to_page(), |note| call.to_page_with(&note)))
}

async fn choose_again(call: &Call, key: IdempotencyKey) -> Result<Reply, Failure> {
    let (scope, id) = (call.hosted.scope(), call.id());
    let command = move |tx: &mut Tx<'_>, _: &Context| hosted::choose_again(tx, scope, id);
    let reply = call.site.app.write(Some(key), command, outcome).await;
    call.site.app.tell(id.to_string());
    reply
}

async fn leave(call: &Call, key: IdempotencyKey) -> Result<Reply, Failure> {
    let (scope, id) = (call.hosted.scope(), call.id());
    let command = move |tx: &mut Tx<'_>, context: &Context| hosted::leave(tx, context, scope, id);
    let reply = call.site.app.write(Some(key), command, outcome).await;
    call.site.app.tell(id.to_string());
    reply
}

/// A wallet is asked only after the payer has said which phone. What was begun with another method ends here.
async fn ask_for_phone(
    call: &Call,
    method: Method,
    once: impl Fn(&str, &str) -> IdempotencyKey,
) -> Result<Response, Wrong> {
    let open = call
        .hosted
        .payment
        .as_ref()
        .filter(|payment| payment.session.status() == SessionStatus::Pending && payment.transaction.is_some());
    match open.and_then(|payment| payment.session.method) {
        Some(begun) if begun == method => return Ok(call.to_page()),
        Some(_) => {
            let result = choose_again(call, once("method", method.as_str())).await;
            if !result.as_ref().is_ok_and(|reply| reply.status == 200) {
                return answer(call, result, Some(method));
            }
        }
        None => {}
    }
    Ok(see_other(&address(&call.path, call.language, &[("method", method.as_str())])))
}

fn phone(call: &Call, form: &Form) -> Result<Msisdn, (PhoneFault, Option<String>)> {
    if form.get("use") == Some("known") {
        let of_session = call.hosted.payment.as_ref().and_then(|payment| payment.session.payer.phone.clone());
        let known = of_session.filter(|_| call.hosted.checkout.order.fixed_method.is_some());
        let known = known.or_else(|| state::known_phone(&call.hosted)).filter(Msisdn::is_gambian);
        return known.ok_or((PhoneFault::Missing, None));
    }
    let typed: String = form.get("phone").unwrap_or_default().trim().chars().take(LONGEST_TYPED).collect();
    // What the field holds before anybody types.
    if matches!(typed.as_str(), "" | "+" | "+220") {
        return Err((PhoneFault::Missing, None));
    }
    match Msisdn::parse(&typed) {
        Ok(phone) if phone.is_gambian() => Ok(phone),
        Ok(_) | Err(_) => Err((PhoneFault::Format, Some(typed))),
    }
}

async fn start(call: &Call, method: Method, phone: Option<Msisdn>, key: IdempotencyKey) -> Result<Response, Wrong> {
    if starts_too_often(call) {
        return Ok(call.to_page_with(&match phone {
            Some(_) => Note::Phone { method, fault: PhoneFault::TooOften, typed: None },
            None => Note::TooOften {},
        }));
    }
    let request = Initialize {
        target: Target::Object(Payable::Checkout(call.id())),
        method: Some(method),
        amount: None,
        payer: Payer { phone, ..Payer::default() },
        metadata: None,
        answers: Metadata::default(),
        success_url: None,
        failure_url: None,
        has_code: false,
    };
    let result = call.site.app.initialize(call.hosted.scope(), request, None, Some(key), outcome).await;
    match result {
        Ok(reply) if reply.status == 200 && state::leads_outward(method) => Ok(call.to_page_with(&Note::Go {})),
        result => answer(call, result, Some(method)),
    }
}

fn starts_too_often(call: &Call) -> bool {
    let HostedCheckout { attempts, now, .. } = &call.hosted;
    attempts.iter().filter(|attempt| now.since(attempt.created_at) < RECENTLY).count() >= MOST_STARTS
}

async fn submit_code(call: &Call, form: &Form, once: impl Fn(&str) -> IdempotencyKey) -> Result<Response, Wrong> {
    let session = call.hosted.payment.as_ref().map(|payment| &payment.session);
    let Some(NextAction::Otp { length, .. }) = session.and_then(|session| session.next_action.as_ref()) else {
        return Ok(call.to_page());
    };
    let code: String = form.get("code").unwrap_or_default().chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    if code.is_empty() {
        return Ok(call.to_page_with(&Note::Code { fault: CodeFault::Missing }));
    }
    if code.len() != usize::from(*length) || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(call.to_page_with(&Note::Code { fault: CodeFault::Format }));
    }
    let request = Initialize {
        target: Target::Object(Payable::Checkout(call.id())),
        method: None,
        amount: None,
        payer: Payer::default(),
        metadata: None,
        answers: Metadata::default(),
        success_url: None,
        failure_url: None,
        has_code: true,
    };
    let key = once(&code);
    let result = call.site.app.initialize(call.hosted.scope(), request, Some(code), Some(key), outcome).await;
    // What a code that came too late or twice has met shows in the state.
    answer(call, result, None)
}

async fn approved(call: &Call) -> Result<Response, Wrong> {
    if call.hosted.checkout.status(call.hosted.now) != Status::Pending {
        return Ok(call.to_page());
    }
    ask(call).await;
    Ok(call.to_page_with(&Note::Approved {}))
}

async fn resend(call: &Call, key: IdempotencyKey) -> Result<Response, Wrong> {
    if starts_too_often(call) {
        return Ok(call.to_page_with(&Note::Code { fault: CodeFault::TooOften }));
    }
    let target = Target::Object(Payable::Checkout(call.id()));
    let result = call.site.app.start_again(call.hosted.scope(), target, Some(key), outcome).await;
    answer(call, result, None)
}
