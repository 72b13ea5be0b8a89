//! One authenticated request: its actor, its rights, its idempotency key.

use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::api_key::{ApiKey, Right};
use domain::{Id, Scope};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, header};
use store::Dialect;
use store::queries::idempotency::IdempotencyKey;

use super::Api;
use super::answer::{Answer, Problem};
use super::auth::{self, Guess};
use super::json::Body;
use super::request_id::RequestId;
use super::request_log::Whose;
use super::requests;
use crate::app::idempotency::Reply;
use crate::app::{Actor, Credential};
use crate::error::Failure;
use crate::listener::ClientAddress;
use crate::rate_limit::{Budget, RateLimits};
use crate::secrets::Subkey;
use crate::wire;

/// Whoever sent this request, known and within the rate limit.
#[derive(Debug, Clone)]
pub struct Caller {
    pub actor: Actor,
    pub request_id: RequestId,
    verb: String,
    path: String,
    /// A malformed one is a fault where a key is used, and nowhere else.
    header_key: Result<Option<String>, MalformedKey>,
    fingerprint_key: Arc<Subkey>,
    /// Of the key of ours that a write without one gets, so that a commit of unknown outcome can be settled.
    own_space: &'static str,
    /// Whether the same request once more sets what it has set before.
    sets_state: bool,
}

/// An `Idempotency-Key` that is sent more than once, or is no text.
#[derive(Debug, Clone, Copy)]
struct MalformedKey;

/// Where the extractor leaves the caller's budget for the answer's headers.
#[derive(Clone, Default)]
struct BudgetSlot(Arc<OnceLock<Budget>>);

/// Sets the `RateLimit-*` headers of whatever the handler answers.
pub async fn show_budget(mut request: Request, next: Next) -> Response {
    let slot = BudgetSlot::default();
    request.extensions_mut().insert(slot.clone());
    let mut response = next.run(request).await;
    if let Some(budget) = slot.0.get() {
        budget.set_headers(&mut response);
    }
    response
}

/// Of what needs no key: so many requests of one address, by the limit that is meant.
pub async fn limit_address(
    State((limits, limit)): State<(Arc<RateLimits>, OfAddress)>,
    request: Request,
    next: Next,
) -> Response {
    let address = request.extensions().get::<ClientAddress>().copied();
    match address.map(|address| limit(&limits, address)) {
        Some(Err(problem)) => problem.into_response(),
        Some(Ok(_)) | None => next.run(request).await,
    }
}

pub type OfAddress = fn(&RateLimits, ClientAddress) -> Result<Option<Budget>, Problem>;

impl FromRequestParts<Api> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let mut guess = Guess::of(&api.limits, parts.extensions.get::<ClientAddress>().copied());
        let actor = match authorization(&parts.headers) {
            Ok(header) => api.credentials.authenticate(header, &mut guess).await,
            Err(problem) => Err(problem),
        };
        let actor = match actor {
            Ok(actor) => actor,
            Err(problem) => {
                // A fault of ours is no guess of theirs.
                if problem.status == StatusCode::UNAUTHORIZED {
                    guess.begin()?;
                }
                return Err(problem);
            }
        };
        let key = actor.key().to_string();
        let budget = match (&actor.credential, parts.extensions.get::<ClientAddress>()) {
            (Credential::Publishable { .. }, Some(address)) => api.limits.of_publishable_key(&key, *address),
            (Credential::Publishable { .. }, None) | (Credential::Secret { .. }, _) => api.limits.of_key(&key),
        };
        // Everybody has a publishable key: what is refused beyond its budget is not told.
        if (budget.is_ok() || matches!(actor.credential, Credential::Secret { .. }))
            && parts.uri.path() != requests::ADDRESS
            && let Some(whose) = parts.extensions.get::<Whose>()
        {
            api.request_log.note(actor.scope, whose);
        }
        if let Some(budget) = budget?
            && let Some(slot) = parts.extensions.get::<BudgetSlot>()
        {
            let _ = slot.0.set(budget);
        }
        Ok(Self {
            actor,
            request_id: RequestId::from_request_parts(parts, api).await.unwrap_or_default(),
            verb: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            header_key: idempotency_header(&parts.headers),
            fingerprint_key: Arc::clone(&api.app.context().fingerprint_key),
            own_space: match api.app.store().dialect() {
                Dialect::Postgres => IdempotencyKey::OWN_SPACE,
                Dialect::Sqlite => IdempotencyKey::UNSTORED_SPACE,
            },
            sets_state: parts.method != Method::POST,
        })
    }
}

/// Of a request that no route takes: those who follow the requests of its secret key are told of it all the same; a publishable one,
/// which everybody has, tells nothing. Where nobody follows any, the key is not looked at.
pub(super) async fn note_untaken(api: &Api, parts: Parts) {
    let (true, Ok(header), Some(whose)) =
        (api.request_log.has_readers(), authorization(&parts.headers), parts.extensions.get::<Whose>())
    else {
        return;
    };
    // Whatever may be wrong with the key: the answer is that there is no such route. It takes from no key's budget, which would tell
    // its merchant that somebody follows requests.
    let mut guess = Guess::of(&api.limits, parts.extensions.get::<ClientAddress>().copied());
    if let Ok(actor) = api.credentials.authenticate(header, &mut guess).await
        && matches!(actor.credential, Credential::Secret { .. })
    {
        api.request_log.note(actor.scope, whose);
    }
}

fn authorization(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        (Some(only), None) => only.to_str().map_err(|_| auth::missing()),
        _ => Err(auth::missing()),
    }
}

fn idempotency_header(headers: &HeaderMap) -> Result<Option<String>, MalformedKey> {
    let mut values = headers.get_all("idempotency-key").iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(only), None) => only.to_str().map(|key| Some(key.to_owned())).map_err(|_| MalformedKey),
        (Some(_), Some(_)) => Err(MalformedKey),
    }
}

pub(super) fn invalid_key() -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "invalid_idempotency_key",
        "An idempotency key has 1 to 255 printable ASCII characters, sent once.",
    )
}

impl Caller {
    pub fn scope(&self) -> Scope {
        self.actor.scope
    }

    /// A secret key or a token with this right; a publishable key has none.
    pub fn require(&self, right: Right) -> Result<Scope, Problem> {
        match &self.actor.credential {
            Credential::Publishable { .. } => Err(secret_key_required()),
            Credential::Secret { .. } if self.actor.may(right) => Ok(self.scope()),
            Credential::Secret { .. } => Err(insufficient_scope(right)),
        }
    }

    /// As [`Caller::require`], and a publishable key as well: the four operations of a payment page.
    pub fn require_or_publishable(&self, right: Right) -> Result<Scope, Problem> {
        match &self.actor.credential {
            Credential::Publishable { .. } => Ok(self.scope()),
            Credential::Secret { .. } => self.require(right),
        }
    }

    /// Of a POST that does what a PUT does.
    pub fn setting_state(self) -> Self {
        Self { sets_state: true, ..self }
    }

    pub fn is_publishable(&self) -> bool {
        matches!(self.actor.credential, Credential::Publishable { .. })
    }

    /// The secret key itself, not a token made with it.
    pub fn secret_key(&self) -> Result<Id<ApiKey>, Problem> {
        match &self.actor.credential {
            Credential::Secret { key, is_token: false, .. } => Ok(*key),
            Credential::Secret { is_token: true, .. } | Credential::Publishable { .. } => Err(secret_key_required()),
        }
    }

    /// The key of header or body, with the fingerprint of this request: keyed, since a one-time code may be in its body.
    ///
    /// `space` keeps the keys of a page's visitors apart from the merchant's.
    pub fn idempotency_key(
        &self,
        body: &Body,
        body_key: Option<String>,
        space: &str,
    ) -> Result<Option<IdempotencyKey>, Problem> {
        let header_key = self.header_key.clone().map_err(|MalformedKey| invalid_key())?;
        let key = match (header_key, body_key) {
            (Some(header), Some(body)) if header != body => {
                return Err(key_conflict());
            }
            (Some(key), _) | (None, Some(key)) => key,
            (None, None) => return Ok(Some(self.own_key(body))),
        };
        let printable = key.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
        if key.is_empty() || key.len() > 255 || !printable {
            return Err(invalid_key());
        }
        let plain = digest_of(&self.text(body));
        let fingerprint = self.fingerprint_key.tag(&plain).to_vec();
        let (scope, space, sets_state) = (self.scope(), space.to_owned(), self.sets_state);
        Ok(Some(IdempotencyKey { scope, space, key, fingerprint, former_fingerprint: Some(plain), sets_state }))
    }

    /// The key of a request that brought none: nobody else can use it. Its fingerprint tells who sends the same once more.
    fn own_key(&self, body: &Body) -> IdempotencyKey {
        let text = format!("{}\n{}", self.actor.key(), self.text(body));
        let fingerprint = self.fingerprint_key.tag(&digest_of(&text)).to_vec();
        let (scope, space, sets_state) = (self.scope(), self.own_space.to_owned(), self.sets_state);
        IdempotencyKey {
            scope,
            space,
            key: self.request_id.to_string(),
            fingerprint,
            former_fingerprint: None,
            sets_state,
        }
    }

    /// What is asked for.
    fn text(&self, body: &Body) -> String {
        format!("{}\n{}\n{}", self.verb, self.path, body.value.to_canonical_text("idempotency_key"))
    }

    /// The merchant's own keys.
    pub fn merchant_key(&self, body: &Body, body_key: Option<String>) -> Result<Option<IdempotencyKey>, Problem> {
        self.idempotency_key(body, body_key, IdempotencyKey::MERCHANT_SPACE)
    }

    /// How a command's result becomes a stored answer: `status` and `{"data": view}`, or the error envelope.
    pub fn renderer<T, V: serde::Serialize>(
        &self,
        status: u16,
        view: impl Fn(&T) -> V + Send + Sync + Clone + 'static,
    ) -> impl Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static {
        self.renderer_by(move |_| status, view)
    }

    /// The same where what became of the request decides the status.
    pub fn renderer_by<T, V: serde::Serialize>(
        &self,
        status: impl Fn(&T) -> u16 + Send + Sync + Clone + 'static,
        view: impl Fn(&T) -> V + Send + Sync + Clone + 'static,
    ) -> impl Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static {
        let request_id = self.request_id.clone();
        move |result| match result {
            Ok(value) => Reply::new(status(value), wire::data(&view(value))),
            Err(failure) => refusal(failure, &request_id),
        }
    }

    /// The same for an operation that answers without a body.
    pub fn empty_renderer<T>(&self) -> impl Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static {
        let request_id = self.request_id.clone();
        move |result| match result {
            Ok(_) => Reply::new(204, String::new()),
            Err(failure) => refusal(failure, &request_id),
        }
    }
}

fn digest_of(text: &str) -> Vec<u8> {
    digest::digest(&digest::SHA256, text.as_bytes()).as_ref().to_vec()
}

fn refusal(failure: &Failure, request_id: &RequestId) -> Reply {
    let answer = Problem::from(failure.clone()).answer(request_id);
    let body = String::from_utf8(answer.body.to_vec()).expect("JSON is UTF-8");
    Reply::new(answer.status.as_u16(), body)
}

pub(super) fn key_conflict() -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "idempotency_key_conflict",
        "`Idempotency-Key` and `idempotency_key` differ. Send one of them, or the same in both.",
    )
}

pub(super) fn insufficient_scope(right: Right) -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "insufficient_scope",
        format!("This credential lacks the scope `{right}`. Use one that has it."),
    )
}

pub(super) fn secret_key_required() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "secret_key_required",
        "This operation needs a secret key (sk_…), used on your server only.",
    )
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        let status = StatusCode::from_u16(reply.status).expect("stored statuses are statuses");
        let answer = Answer::stored(status, reply.body);
        if reply.replayed { answer.replayed() } else { answer }
    }
}
