//! The addresses of a payment's page: show it, and do what its forms ask. A form does its thing once, however often it is
//! sent, and always ends in a redirect to the page, which tells what came of it.

mod begun;
mod outcomes;
mod succession;

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest as hash};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::payment::{Payable, Payer, PaymentSession, SessionStatus, Step};
use domain::rail::NextAction;
use domain::{Method, Money, Msisdn};
use store::queries::idempotency::IdempotencyKey;

use super::answer::{Wrong, html, nonce, random, see_other};
use super::form::{self, Form, Token};
use super::note::{FieldFault, Note, Noted, PhoneFault};
use super::page_path::PagePath;
use super::questions::Filled;
use super::routes::Site;
use super::state::{self, Simulator};
use super::text::Language;
use super::typed::Typed;
use super::view::{self, PaymentPage};
use super::visit::{Visit, address};
use super::{amount, page_path, payment, questions, shown, subject};
use crate::app::hosted::{self, Hosted, Place, Standing};
use crate::app::idempotency::Reply;
use crate::app::paid_object::PaidObject;
use crate::app::payments::Initialize;
use crate::app::sessions::{self, Payment};
use crate::error::Failure;
use crate::form_token;
use crate::monotonic;
use crate::request_id::RequestId;
use crate::way_back;
use outcomes::{answer, payment_answer, payment_outcome, place_of};
use succession::{answer_of_before, going_on};

const PURPOSE: &str = "payment page";
/// A browser is not kept waiting longer for a rail; the page goes on asking.
const LONGEST_QUESTION: Duration = Duration::from_secs(3);
const LONGEST_TYPED: usize = 24;

pub(super) async fn look_up(site: &Site, place: Place) -> Result<Hosted, Failure> {
    site.app.look(move |tx, context| hosted::look_up_hosted(tx, context, place)).await
}

pub(super) fn stored_state(site: &Site, hosted: &Hosted) -> view::State {
    let context = site.app.context();
    state::stored(hosted, &Simulator { pay_url: site.pay_url(), token_key: &context.page_token_key })
}

/// One request for one page.
#[derive(Clone)]
struct Call {
    site: Arc<Site>,
    hosted: Hosted,
    place: Place,
    action: Option<String>,
    language: Language,
    path: String,
    request_id: RequestId,
    /// Shown again where the form does nothing.
    typed: Typed,
    /// The wallet whose phone the form asks for.
    phone_of: Option<Method>,
}

impl Call {
    async fn open(site: &Arc<Site>, visit: &Visit) -> Result<Self, Wrong> {
        let PagePath { place, action } = PagePath::of(&visit.path).ok_or(Wrong::NotFound)?;
        let hosted = look_up(site, place).await?;
        let language = visit.language(Some(hosted.organization.profile.locale.as_str()));
        let (path, request_id) = (page_path::path(place), visit.request_id.clone());
        let (typed, phone_of) = (Typed::default(), None);
        Ok(Self { site: Arc::clone(site), path, hosted, place, action, language, request_id, typed, phone_of })
    }

    /// The same request for another page.
    async fn at(self, place: Place) -> Result<Self, Wrong> {
        let hosted = look_up(&self.site, place).await?;
        Ok(Self { path: page_path::path(place), hosted, place, ..self })
    }

    /// The same request for the page on which the payer of this one went on, or as far as that can be followed at once.
    async fn gone_on(self) -> Result<Self, Wrong> {
        let mut call = self;
        for _ in 0..sessions::MOST_REPLACED {
            let Some(place) = call.hosted.successor() else { break };
            call = call.at(place).await?;
        }
        Ok(call)
    }

    fn to_page(&self) -> Response {
        see_other(&address(&self.path, self.language, &[]))
    }

    fn to_page_with(&self, note: &Note) -> Response {
        self.to_place_with(self.place, note)
    }

    fn to_place_with(&self, place: Place, note: &Note) -> Response {
        let sealed = self.site.notes.seal(&place.id(), &Noted::new(note.clone(), &self.typed, self.hosted.now));
        let mut parameters = vec![("note", sealed.as_str())];
        // Back to the page that asks for a phone.
        let phone_of = self.phone_of.filter(|_| place == self.place && note.asks_for_phone_again());
        if let Some(method) = phone_of {
            parameters.push(("method", method.as_str()));
            // Also when the note is too old: a part never becomes all.
            parameters.extend(self.typed.get(questions::AMOUNT).map(|part| ("amount", part)));
        }
        see_other(&address(&page_path::path(place), self.language, &parameters))
    }
}

pub(super) async fn show(State(site): State<Arc<Site>>, visit: Visit) -> Response {
    let result = async {
        let call = Call::open(&site, &visit).await?;
        present(call, &visit).await
    };
    result.await.unwrap_or_else(|wrong| wrong.answer(&visit, visit.language(None), site.is_https))
}

/// A form's address takes forms only; who comes there otherwise is looking for the page.
pub(super) async fn show_instead(State(site): State<Arc<Site>>, visit: Visit) -> Response {
    let result = async {
        let call = Call::open(&site, &visit).await?;
        match call.action.as_deref() {
            // Where many pay, the page of one payment stands where other pages have their actions.
            None => present(call, &visit).await,
            Some(action) => Action::parse(action).map(|_| call.to_page()).ok_or(Wrong::NotFound),
        }
    };
    result.await.unwrap_or_else(|wrong| wrong.answer(&visit, visit.language(None), site.is_https))
}

/// The page, or the way to the one on which its payer went on. What was to be said here is said there, and that they may have paid
/// here all the same.
async fn present(call: Call, visit: &Visit) -> Result<Response, Wrong> {
    if call.hosted.successor().is_none() {
        return Ok(draw(&call, visit));
    }
    let noted = visit.note.as_deref().and_then(|note| call.site.notes.open(&call.place.id(), note, call.hosted.now));
    let in_progress = call.hosted.unsettled().map(|_| Noted::new(Note::InProgress {}, &call.typed, call.hosted.now));
    let noted = noted.or(in_progress);
    let next = call.gone_on().await?;
    let note = noted.map(|noted| ("note", next.site.notes.seal(&next.place.id(), &noted)));
    let note: Vec<_> = note.iter().map(|(name, note)| (*name, note.as_str())).collect();
    Ok(see_other(&address(&next.path, next.language, &note)))
}

fn draw(call: &Call, visit: &Visit) -> Response {
    let (site, hosted, language) = (&call.site, &call.hosted, call.language);
    let id = call.place.id();
    let stored = stored_state(site, hosted);
    let revision = state::revision(hosted, &stored);
    let noted = visit.note.as_deref().and_then(|note| site.notes.open(&id, note, hosted.now));
    let note = noted.as_ref().map(|noted| &noted.note);
    let typed = noted.as_ref().map(|noted| noted.typed.clone()).unwrap_or_default().of_page(hosted, call.place);
    let fields = questions::fields(hosted, call.place, note, &typed, language.locale);
    let part = subject::part(hosted, note, &typed);
    let chosen_part = chosen_part(call, visit, &typed);
    let shown = state::noted(stored, hosted, noted.as_ref(), &typed, visit.method);
    // Only the page that asks for a phone comes between the choice of a part and its payment.
    let chosen_part = chosen_part.filter(|_| matches!(shown, view::State::NeedsPhone { .. }));
    let mut kept = kept_choice(visit, chosen_part.as_ref().map(|(_, part)| *part), language);
    kept.extend(noted.filter(|noted| noted.note.outlives_language()).map(|noted| {
        let typed = typed.in_other_language(hosted, call.place, language.locale);
        ("note", site.notes.seal(&id, &noted.with(typed)))
    }));
    let form_token_key = &site.app.context().form_token_key;
    let form_token = form_token::issue(form_token_key, PURPOSE, &id, subject::forms_until_s(hosted), &random());
    let shown_here = shown::named(hosted, call.place).map(|text| {
        let tag = form::shown_tag(form_token_key, &id, &form_token, &text);
        view::Shown { text, tag }
    });
    let page = PaymentPage {
        merchant: subject::merchant(hosted),
        amount: state::came(&shown)
            .or_else(|| chosen_part.as_ref().map(|(_, part)| *part).or(hosted.amount()).map(state::amount)),
        subject: subject::subject(hosted, call.place, &site.app.context().addresses),
        payer: subject::payer(hosted),
        test_mode: !hosted.scope().mode.is_live(),
        language,
        path: call.path.clone(),
        kept,
        revision,
        form_token,
        shown: shown_here,
        session: hosted.session().map(|session| session.id.to_string()),
        time_left: subject::time_left(hosted),
        reads: visit.reads,
        leave: subject::leave(hosted),
        fields,
        part,
        chosen_part: chosen_part.map(|(typed, _)| typed),
        unsettled: hosted.unsettled().is_some(),
        state: in_language(shown, site.pay_url(), language),
    };
    let nonce = nonce();
    html(StatusCode::OK, &nonce, site.is_https, payment::render(&page, &nonce))
}

/// The method of the page that asks for a phone, and the part of an invoice chosen with it, as the other language reads it.
fn kept_choice(visit: &Visit, part: Option<Money>, language: Language) -> Vec<(&'static str, String)> {
    let Some(method) = visit.method else { return Vec::new() };
    let part = part.map(|part| ("amount", amount::to_type(&part.to_string(), language.locale.other())));
    [("method", method.as_str().to_owned())].into_iter().chain(part).collect()
}

/// A part that was chosen with the method, on the way to the phone; as it was typed, and what it comes to.
fn chosen_part(call: &Call, visit: &Visit, typed: &Typed) -> Option<(String, Money)> {
    let typed = typed.get(questions::AMOUNT).map(str::to_owned).or_else(|| visit.part.clone());
    let typed = typed.filter(|_| call.hosted.takes_parts())?;
    let part = part_of(call, Some(&typed)).ok()??;
    Some((typed, part))
}

/// The part of what is left that a payer typed; nothing typed is all of it.
fn part_of(call: &Call, typed: Option<&str>) -> Result<Option<Money>, FieldFault> {
    let typed = typed.map(str::trim).filter(|typed| !typed.is_empty());
    let (Some(typed), PaidObject::Invoice(invoice)) = (typed, &call.hosted.object) else { return Ok(None) };
    let remaining = invoice.remaining();
    let money = questions::money(Some(typed), remaining.currency, call.language.locale)?;
    if money.minor > remaining.minor { Err(FieldFault::TooMuch) } else { Ok(Some(money)) }
}

/// The simulator's pages are ours and speak the payer's language as well.
fn in_language(mut state: view::State, pay_url: &str, language: Language) -> view::State {
    let ours = format!("{pay_url}/simulator/");
    let url = match &mut state {
        view::State::Redirecting { url, .. } => Some(url),
        view::State::ApproveOnPhone { simulator_url: url, .. } | view::State::Checking { attempt_url: url, .. } => {
            url.as_mut()
        }
        _ => None,
    };
    if let Some(url) = url.filter(|url| url.starts_with(&ours)) {
        *url = address(url, language, &[]);
    }
    state
}

/// The rail's own page sends the payer back here. That is no proof of anything: the rail is asked. Only who comes by the
/// address that this payment's rail was given has this payment wait for its word; whatever else is said here changes nothing.
pub(super) async fn returned(State(site): State<Arc<Site>>, visit: Visit) -> Response {
    let result = async {
        let call = Call::open(&site, &visit).await?;
        come_back(&call).await?;
        Ok::<_, Wrong>(call.to_page())
    };
    result.await.unwrap_or_else(|wrong| wrong.answer(&visit, visit.language(None), site.is_https))
}

async fn come_back(call: &Call) -> Result<(), Failure> {
    let Some(Payment { session, transaction: Some(attempt) }) = &call.hosted.payment else { return Ok(()) };
    let way = call.action.as_deref().and_then(|action| action.strip_prefix("returned/"));
    let key = &call.site.app.context().form_token_key;
    let is_of_rail = way.is_some_and(|way| way_back::is_of(key, session.id, way));
    match session.status() {
        SessionStatus::Pending | SessionStatus::Processing => {
            // Where nobody was sent away, nobody comes back: a code that is awaited stays awaited.
            if !matches!(session.next_action, Some(NextAction::Redirect { .. })) {
                return Ok(());
            }
            if is_of_rail {
                call.site.app.payer_returned(call.hosted.scope(), attempt.id).await?;
            }
        }
        // They may have paid there what they gave up here.
        SessionStatus::Failed | SessionStatus::Cancelled if is_of_rail && attempt.step() != Step::Settled => {}
        SessionStatus::Failed | SessionStatus::Cancelled | SessionStatus::Succeeded => return Ok(()),
    }
    ask(call).await;
    Ok(())
}

/// Asks the rail about the current attempt, for a moment; the question goes on without us.
async fn ask(call: &Call) {
    let Some(attempt) = call.hosted.payment.as_ref().and_then(|payment| payment.transaction.as_ref()) else { return };
    let (app, scope, id) = (call.site.app.clone(), call.hosted.scope(), attempt.id);
    let request_id = call.request_id.clone();
    let until = monotonic::now() + LONGEST_QUESTION;
    // Whoever asks as well hears of it by the page.
    let Ok(turn) = tokio::time::timeout_at(until, app.begin_question(id)).await else { return };
    let question = tokio::spawn(async move {
        let _turn = turn;
        if let Err(failure) = app.ask_rail(scope, id, None).await {
            // The worker asks again in any case.
            tracing::warn!(transaction = %id, %failure, %request_id, "a rail can't be asked for a payer who waits");
        }
    });
    let _ = tokio::time::timeout_at(until, question).await;
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

pub(super) async fn act(State(site): State<Arc<Site>>, visit: Visit, request: Request) -> Response {
    let result = async {
        let call = Call::open(&site, &visit).await?;
        let action = call.action.as_deref().and_then(Action::parse).ok_or(Wrong::NotFound)?;
        let form = form::read(request, site.pay_url()).await?;
        let phone_of = named_method(&form).filter(|method| action == Action::Phone && method.needs_phone());
        let call = Call { typed: Typed::in_form(&form), phone_of, ..call };
        let key = &site.app.context().form_token_key;
        match form::token(&form, key, PURPOSE, &call.place.id(), call.hosted.now)? {
            Token::Stale => Ok(call.to_page_with(&Note::StaleForm {})),
            Token::Good(token) => press(&call, action, &form, token).await,
        }
    };
    result.await.unwrap_or_else(|wrong| wrong.answer(&visit, visit.language(None), site.is_https))
}

async fn press(call: &Call, action: Action, form: &Form, token: &str) -> Result<Response, Wrong> {
    // A page of before its payer's money came after all begins nothing more.
    if call.hosted.is_paid_before() {
        return Ok(call.to_page());
    }
    let method = named_method(form);
    let call = match action {
        Action::Method | Action::Phone => match going_on(call, action, form, token, method).await? {
            Ok(call) => &call.clone(),
            Err(answer) => return Ok(answer),
        },
        Action::Code | Action::Approved | Action::Resend | Action::Other | Action::Leave => call,
    };
    let once = |name: &str, detail: &str| once(call, token, name, detail);
    let wish = match (action, method) {
        (Action::Method | Action::Phone, Some(method)) => match wish(call, form, method) {
            Ok(wish) => Some(wish),
            // What it began when it was sent before stands, whatever has changed since: its payer may have missed the answer.
            Err(note) => {
                let before = answer_of_before(call, action, form, token, method).await?;
                return Ok(before.unwrap_or_else(|| call.to_page_with(&note)));
            }
        },
        _ => None,
    };
    match (action, wish) {
        (Action::Method, Some(wish)) if wish.method.needs_phone() => {
            ask_for_phone(call, wish, |name| once(name, &form.whole())).await
        }
        (Action::Method, Some(wish)) => start(call, wish, None, once("method", &form.whole())).await,
        (Action::Phone, Some(wish)) if wish.method.needs_phone() => match phone(call, form) {
            Ok(phone) => {
                let key = once("phone", &with_phone(form, &phone));
                start(call, wish, Some(phone), key).await
            }
            Err(fault) => Ok(call.to_page_with(&Note::Phone { method: wish.method, fault })),
        },
        // Only a form that was altered names no method.
        (Action::Method | Action::Phone, _) => Ok(call.to_page()),
        (Action::Code, _) => begun::submit_code(call, form, |code| once("code", code)).await,
        (Action::Approved, _) => approved(call).await,
        (Action::Resend, _) => begun::resend(call, form, once("resend", "")).await,
        (Action::Other, _) => begun::other(call, form, once("other", "")).await,
        (Action::Leave, _) => begun::leave(call, form, once("leave", "")).await,
    }
}

fn named_method(form: &Form) -> Option<Method> {
    form.get("method").and_then(Method::parse)
}

/// What belongs to the key of a form that asks for a payment by this phone.
fn with_phone(form: &Form, phone: &Msisdn) -> String {
    format!("{} {}", form.whole(), phone.as_str())
}

/// What a payer wants to pay, and how.
struct Wish {
    method: Method,
    filled: Filled,
    /// The part of an invoice, as it was typed.
    typed_part: Option<String>,
}

fn wish(call: &Call, form: &Form, method: Method) -> Result<Wish, Note> {
    shown::refuse_gone(form, &call.hosted, call.place, method)?;
    let mut filled = questions::read(&call.hosted, call.place, form, call.language.locale)?;
    let typed_part: Option<String> = form.get("amount").map(|typed| typed.chars().take(LONGEST_TYPED).collect());
    let part = match part_of(call, typed_part.as_deref()) {
        Ok(part) => part,
        // There is no field any more beside which it could stand.
        Err(_) if !call.hosted.takes_parts() => return Err(Note::AmountChanged {}),
        Err(fault) => return Err(Note::Part { fault }),
    };
    filled.amount = shown::due(form, &call.hosted, part)?.or(filled.amount);
    Ok(Wish { method, typed_part: typed_part.filter(|_| part.is_some()), filled })
}

/// The form's token is the idempotency key: the same form sent twice is one press of the button. What was filled in
/// belongs to it, as a keyed digest, since it may be a code.
fn once(call: &Call, token: &str, name: &str, detail: &str) -> IdempotencyKey {
    let key = &call.site.app.context().form_token_key;
    let digest = key.derive(&format!("page action {token} {name} {detail}"));
    let digest: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    key_of(call, format!("{token}:{name}:{digest}"))
}

/// The key says all that was asked, so one key is always one request.
fn key_of(call: &Call, key: String) -> IdempotencyKey {
    let fingerprint = hash(&SHA256, key.as_bytes()).as_ref().to_vec();
    // Apart from the keys that callers with a publishable key choose.
    let space = format!("{}:form", IdempotencyKey::page_space(&call.place.id()));
    IdempotencyKey { scope: call.hosted.scope(), space, key, fingerprint, former_fingerprint: None, sets_state: false }
}

/// A wallet is asked only after the payer has said which phone. What was begun with another method ends here. Where many
/// pay, the payment is opened first, or goes on: what was filled in is in it.
async fn ask_for_phone(call: &Call, wish: Wish, once: impl Fn(&str) -> IdempotencyKey) -> Result<Response, Wrong> {
    let method = wish.method;
    let open = call
        .hosted
        .payment
        .as_ref()
        .filter(|payment| payment.session.status() == SessionStatus::Pending && payment.transaction.is_some());
    let is_as_begun = |session: &PaymentSession| {
        session.method == Some(method) && wish.filled.amount.is_none_or(|amount| amount == session.amount)
    };
    match open {
        Some(payment) if is_as_begun(&payment.session) => return Ok(call.to_page()),
        Some(_) => {
            let result = begun::choose_again(call, None, once("method")).await;
            if !result.as_ref().is_ok_and(|reply| reply.status == 200) {
                return answer(call, result, Some(method));
            }
        }
        None => {}
    }
    let part = wish.typed_part.as_deref();
    match (call.place.payable, call.place.session) {
        (Payable::PaymentLink(_), session) if session.is_none() || questions::asks(&call.hosted, call.place) => {
            let request = request(call, &wish, None, None);
            let key = Some(once("open"));
            let result = call.site.app.initialize(call.hosted.scope(), request, None, key, payment_outcome).await;
            to_phone(call, method, part, result)
        }
        (Payable::PaymentLink(_) | Payable::Checkout(_) | Payable::Invoice(_), _) => {
            Ok(phone_page(call, call.place, method, part))
        }
    }
}

/// After a payment was opened for it, or has what was filled in.
fn to_phone(
    call: &Call,
    method: Method,
    part: Option<&str>,
    result: Result<Reply, Failure>,
) -> Result<Response, Wrong> {
    match result {
        Ok(reply) if reply.status == 200 => Ok(phone_page(call, place_of(call, &reply), method, part)),
        result => payment_answer(call, result, Some(method)),
    }
}

fn phone_page(call: &Call, place: Place, method: Method, part: Option<&str>) -> Response {
    let mut parameters = vec![("method", method.as_str())];
    parameters.extend(part.map(|part| ("amount", part)));
    see_other(&address(&page_path::path(place), call.language, &parameters))
}

fn request(call: &Call, wish: &Wish, method: Option<Method>, phone: Option<Msisdn>) -> Initialize {
    let Filled { amount, payer, answers } = wish.filled.clone();
    let payer = Payer { phone: phone.or(payer.phone.clone()), ..payer };
    let counted = Some(call.site.app.starts().counted());
    let replaces = call.place.session;
    Initialize { method, amount, payer, answers, counted, replaces, ..Initialize::of(call.place.target()) }
}

fn phone(call: &Call, form: &Form) -> Result<Msisdn, PhoneFault> {
    if form.get("use") == Some("known") {
        return state::known_phone(&call.hosted).ok_or(PhoneFault::Missing);
    }
    let typed = form.get(questions::PHONE).unwrap_or_default().trim();
    // What the field holds before anybody types.
    if matches!(typed, "" | "+" | "+220") {
        return Err(PhoneFault::Missing);
    }
    Msisdn::parse(typed).ok().filter(Msisdn::is_gambian).ok_or(PhoneFault::Format)
}

async fn start(call: &Call, wish: Wish, phone: Option<Msisdn>, key: IdempotencyKey) -> Result<Response, Wrong> {
    let method = wish.method;
    let request = request(call, &wish, Some(method), phone);
    match call.site.app.initialize(call.hosted.scope(), request, None, Some(key), payment_outcome).await {
        Err(Failure::TooOften) if call.phone_of.is_some() => {
            Ok(call.to_page_with(&Note::Phone { method, fault: PhoneFault::TooOften }))
        }
        result => payment_answer(call, result, Some(method)),
    }
}

async fn approved(call: &Call) -> Result<Response, Wrong> {
    if call.hosted.standing() != Standing::Open {
        return Ok(call.to_page());
    }
    ask(call).await;
    Ok(call.to_page_with(&Note::Approved {}))
}
