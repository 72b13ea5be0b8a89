//! The simulator's pages: whoever tests plays the payer there. They exist only for payments of test mode, behind a token
//! that nobody can guess. They change the simulated wallet and nothing of ours; its word reaches us as a rail's would.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::method::Method;
use domain::simulator::{Outcome as Decided, Screen, Script, SimulatedPayment};
use domain::{Refusal, Timestamp};
use store::queries::locate;

use super::answer::{Wrong, html, nonce, random, see_other};
use super::form::{self, Form, Token};
use super::routes::Site;
use super::text::Language;
use super::view::{CardProblem, Outcome, Scene, SimulatorPage};
use super::visit::{InPath, Visit, address};
use super::{simulator, state};
use crate::error::Failure;
use crate::form_token;
use crate::mask;
use crate::rails::simulator as rail;

const PURPOSE: &str = "simulator page";
const TOKEN_LIFETIME_S: i64 = 24 * 3600;
/// The only test card whose issuer asks its holder.
const CHALLENGED_CARD: &str = "3155";

struct Call {
    site: Arc<Site>,
    payment: SimulatedPayment,
    now: Timestamp,
    language: Language,
    path: String,
}

impl Call {
    async fn open(site: &Arc<Site>, visit: &Visit, token: InPath<String>) -> Result<Self, Wrong> {
        let token = token.map_err(|_| Wrong::NotFound)?.0;
        let digest = rail::token_digest(&site.app.context().page_token_key, &token);
        let (payment, now) =
            site.app.read(move |tx, _| Ok((locate::simulated_payment(tx, &digest)?, tx.now()))).await?;
        let payment = payment.filter(|payment| !payment.scope.mode.is_live()).ok_or(Wrong::NotFound)?;
        let path = format!("/simulator/{token}");
        Ok(Self { site: Arc::clone(site), payment, now, language: visit.language(None), path })
    }

    /// What one form is bound to.
    fn object_id(&self) -> String {
        self.payment.transaction.to_string()
    }

    /// Back to the payment's own page, past the rail's way of telling that the payer came back.
    fn to_checkout(&self) -> Response {
        let back = self.payment.return_url.strip_prefix(self.site.pay_url()).unwrap_or("/");
        see_other(&address(back.split_once("/returned").map_or(back, |(page, _)| page), self.language, &[]))
    }

    fn return_url(&self) -> String {
        address(&self.payment.return_url, self.language, &[])
    }

    fn to_page(&self, parameters: &[(&str, &str)]) -> Response {
        see_other(&address(&self.path, self.language, parameters))
    }
}

pub(super) async fn show(State(site): State<Arc<Site>>, visit: Visit, token: InPath<String>) -> Response {
    match Call::open(&site, &visit, token).await {
        Ok(call) => match scene(&call, &visit) {
            Some(scene) => draw(&call, scene),
            None => call.to_checkout(),
        },
        Err(wrong) => wrong.answer(&visit, visit.language(None), site.is_https),
    }
}

/// Nothing where the far side has nothing to ask: the code comes first, or nobody waits any more.
fn scene(call: &Call, visit: &Visit) -> Option<Scene> {
    let payment = &call.payment;
    let phone = payment.phone.as_ref().map(|phone| mask::phone(phone.as_str()));
    let done = |outcome| Some(Scene::Done { outcome, back: Some(call.return_url()) });
    match payment.screen() {
        // The silent number stays silent whatever anybody clicks.
        Screen::Approve if payment.script() == Script::Silent => done(Outcome::Silent),
        Screen::Approve => Some(match payment.method {
            Method::Wave | Method::Card => Scene::WalletApproval { phone },
            Method::Afrimoney | Method::Qmoney => {
                Scene::PhonePrompt { method: state::shown(payment.method), phone: phone.unwrap_or_default() }
            }
        }),
        Screen::Card => {
            let problem = match visit.problem.as_deref() {
                Some("not_chosen") => Some(CardProblem::NotChosen),
                Some("unknown_card") => Some(CardProblem::UnknownCard),
                Some(_) | None => None,
            };
            Some(Scene::CardPage { problem })
        }
        Screen::CardHolder => Some(Scene::CardChallenge { last4: CHALLENGED_CARD.to_owned() }),
        Screen::Decided { .. } => done(chosen(payment)),
        Screen::WaitingForCode | Screen::Withdrawn => None,
    }
}

fn chosen(payment: &SimulatedPayment) -> Outcome {
    match (payment.outcome(), payment.script()) {
        (Some(Decided::InsufficientFunds), _) => Outcome::InsufficientFunds,
        (Some(Decided::Declined | Decided::WrongCode), _) => Outcome::Refuse,
        (Some(Decided::Paid) | None, Script::LostAnswer) => Outcome::AnswerLost,
        (Some(Decided::Paid) | None, Script::ApproveSlowly) => Outcome::Later,
        (Some(Decided::Paid) | None, Script::ReportTwice) => Outcome::Twice,
        (
            Some(Decided::Paid) | None,
            Script::Approve | Script::Wait | Script::InsufficientFunds | Script::Decline | Script::Silent,
        ) => Outcome::Approve,
    }
}

fn draw(call: &Call, scene: Scene) -> Response {
    let key = &call.site.app.context().form_token_key;
    let expires_at_s = call.now.seconds() + TOKEN_LIFETIME_S;
    let page = SimulatorPage {
        merchant_name: call.payment.merchant.clone(),
        amount: state::amount(call.payment.amount),
        language: call.language,
        path: call.path.clone(),
        form_token: form_token::issue(key, PURPOSE, &call.object_id(), expires_at_s, &random()),
        scene,
    };
    let nonce = nonce();
    html(StatusCode::OK, &nonce, call.site.is_https, simulator::render(&page, &nonce))
}

pub(super) async fn act(
    State(site): State<Arc<Site>>,
    visit: Visit,
    token: InPath<String>,
    request: Request,
) -> Response {
    let result = async {
        let call = Call::open(&site, &visit, token).await?;
        let form = form::read(request, site.pay_url()).await?;
        let key = &site.app.context().form_token_key;
        match form::token(&form, key, PURPOSE, &call.object_id(), call.now)? {
            Token::Stale => Ok(call.to_page(&[])),
            Token::Good(_) => press(&call, &form).await,
        }
    };
    result.await.unwrap_or_else(|wrong: Wrong| wrong.answer(&visit, visit.language(None), site.is_https))
}

/// What was pressed. A decision is made once: the wallet ignores every later one, so no key is needed.
#[derive(Debug, Clone)]
enum Press {
    Play(Script),
    Card(String),
    Holder(bool),
    /// Left the card page without paying.
    Leave,
}

async fn press(call: &Call, form: &Form) -> Result<Response, Wrong> {
    let outcome = form.get("outcome");
    let is_cancel = outcome == Some("cancel");
    let outcome = outcome.and_then(Outcome::parse);
    let press = match (call.payment.screen(), outcome) {
        (Screen::Card, _) if is_cancel => Press::Leave,
        (Screen::Card, _) => match form.get("number") {
            Some(number) if !number.is_empty() => Press::Card(number.to_owned()),
            Some(_) | None => return Ok(call.to_page(&[("problem", "not_chosen")])),
        },
        (Screen::CardHolder, Some(outcome)) => Press::Holder(outcome == Outcome::Approve),
        (Screen::Approve, Some(outcome)) => Press::Play(script(outcome)),
        (Screen::Approve | Screen::CardHolder, None)
        | (Screen::WaitingForCode | Screen::Decided { .. } | Screen::Withdrawn, _) => return Ok(call.to_page(&[])),
    };
    let is_known = apply(call, press.clone()).await?;
    Ok(match press {
        Press::Card(_) if !is_known => call.to_page(&[("problem", "unknown_card")]),
        Press::Leave => {
            // As a card page does that was given up: back by the same way.
            let back = call.payment.return_url.strip_prefix(call.site.pay_url()).unwrap_or("/");
            see_other(&address(back, call.language, &[]))
        }
        Press::Play(_) | Press::Card(_) | Press::Holder(_) => call.to_page(&[]),
    })
}

/// `false`: that is no test card.
async fn apply(call: &Call, press: Press) -> Result<bool, Failure> {
    let (scope, id) = (call.payment.scope, call.payment.transaction);
    call.site
        .app
        .commit(move |tx, _| {
            let found = tx.find::<SimulatedPayment>(scope, id)?;
            let mut payment = found.ok_or_else(Refusal::not_found::<domain::payment::Transaction>)?;
            let before = payment.clone();
            let now = tx.now();
            let is_known = match &press {
                Press::Play(script) => {
                    payment.payer_plays(*script, now);
                    true
                }
                Press::Card(number) => payment.card_entered(number, now),
                Press::Holder(confirms) => {
                    payment.card_holder_decides(*confirms, now);
                    true
                }
                Press::Leave => {
                    payment.withdraw();
                    true
                }
            };
            if payment != before {
                rail::keep(tx, &mut payment)?;
            }
            Ok(is_known)
        })
        .await
}

fn script(outcome: Outcome) -> Script {
    match outcome {
        Outcome::Approve => Script::Approve,
        Outcome::InsufficientFunds => Script::InsufficientFunds,
        Outcome::Refuse => Script::Decline,
        Outcome::Silent => Script::Silent,
        Outcome::AnswerLost => Script::LostAnswer,
        Outcome::Later => Script::ApproveSlowly,
        Outcome::Twice => Script::ReportTwice,
    }
}
