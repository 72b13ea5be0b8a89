//! Who is asking: a bearer credential becomes an actor, or the request ends with 401.
//!
//! What was looked up is remembered for a second, so that a revoked key stops working within one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::Timestamp;
use domain::api_key::{ApiKey, KeyKind, Rights};
use http::StatusCode;
use store::queries::{locate, signing_keys};
use tokio::time::Instant;

use super::answer::Problem;
use crate::app::{Actor, App, Credential, keys};
use crate::credentials;
use crate::error::Failure;
use crate::listener::ClientAddress;
use crate::monotonic;
use crate::rate_limit::RateLimits;
use crate::tokens::{SigningKeys, TokenFault};

const REMEMBERED: Duration = Duration::from_secs(1);
/// Nothing has been done yet: who is told so after this may ask again, before a client of ours gives up.
const LONGEST_LOOK: Duration = Duration::from_secs(10);
const MOST_REMEMBERED: usize = 10_000;

/// Finds keys and verifies tokens.
pub struct Credentials {
    app: App,
    keys: Mutex<HashMap<String, (Instant, Arc<Known>)>>,
    signing: Mutex<Option<(Instant, Arc<SigningKeys>)>>,
}

/// A key as it was looked up.
struct Known {
    key: ApiKey,
    rights: Arc<Rights>,
}

impl Credentials {
    pub fn new(app: App) -> Self {
        Self { app, keys: Mutex::default(), signing: Mutex::default() }
    }

    /// The actor behind the text of an `Authorization` header. A key that nobody has used lately may be a guess.
    pub async fn authenticate(&self, header: &str, guess: &mut Guess<'_>) -> Result<Actor, Problem> {
        let Some((scheme, token)) = header.split_once(' ') else { return Err(missing()) };
        let token = token.trim();
        if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
            return Err(missing());
        }
        let looked =
            async { if is_access_token(token) { self.by_token(token).await } else { self.by_key(token, guess).await } };
        tokio::time::timeout(LONGEST_LOOK, looked).await.unwrap_or_else(|_| {
            let why = "the credentials can't be looked up in time".to_owned();
            Err(Failure::Store(store::Error::Unavailable(why)).into())
        })
    }

    async fn by_key(&self, text: &str, guess: &mut Guess<'_>) -> Result<Actor, Problem> {
        let key = credentials::ApiKey::parse(text).map_err(|_| invalid_key())?;
        let digest = key.digest(&self.app.context().api_key_pepper);
        if !self.is_known(&digest) {
            guess.begin()?;
        }
        let lookup = digest.clone();
        let found =
            self.remember(&digest, async |app| app.look(move |tx, _| Ok((locate::key(tx, &lookup)?, tx.now()))).await);
        let (found, looked_up_at) = found.await?;
        let known = found.filter(|known| known.key.revoked_at.is_none()).ok_or_else(invalid_key)?;
        let stored = &known.key;
        if !credentials::digests_match(&stored.digest, &digest) || stored.scope.mode != key.mode() {
            return Err(invalid_key());
        }
        self.note(stored, looked_up_at);
        guess.was_right();
        Ok(actor(stored, Arc::clone(&known.rights), false))
    }

    async fn by_token(&self, token: &str) -> Result<Actor, Problem> {
        let signing = self.signing_keys().await?;
        // By the clock that dated it, in whichever process that was.
        let now_s = self.app.store().wall_time().seconds();
        let issuer = &self.app.context().addresses.public_url;
        let claims = signing.verify(token, now_s, issuer).map_err(|fault| match fault {
            TokenFault::Expired => expired_token(),
            TokenFault::Invalid => invalid_token(),
        })?;
        let scope = keys::claimed_scope(&claims.grant.organization_id, claims.grant.mode).ok_or_else(invalid_token)?;
        let id = claims.grant.key_id.clone();
        let found = self.remember(&claims.grant.key_id, async |app| {
            app.look(move |tx, _| Ok((locate::key_by_id(tx, scope, &id)?, tx.now()))).await
        });
        let (found, looked_up_at) = found.await?;
        let known = found.filter(|known| known.key.revoked_at.is_none() && known.key.scope == scope);
        let known = known.ok_or_else(invalid_token)?;
        let stored = &known.key;
        let rights = Rights::parse(&claims.grant.scope).map_err(|_| invalid_token())?;
        // A token never does more than its key.
        if !rights.is_within(&stored.rights) {
            return Err(invalid_token());
        }
        self.note(stored, looked_up_at);
        Ok(actor(stored, Arc::new(rights), true))
    }

    /// Whether it was a key when it was last looked up, however long ago.
    fn is_known(&self, name: &str) -> bool {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).contains_key(name)
    }

    /// Its use counts where it was looked up for it: once a second is more than is written down.
    fn note(&self, key: &ApiKey, looked_up_at: Option<Timestamp>) {
        if let Some(at) = looked_up_at {
            self.app.key_uses().note(key, at);
        }
    }

    /// The key, and when it was looked up if it just was.
    async fn remember(
        &self,
        name: &str,
        look_up: impl AsyncFnOnce(App) -> Result<(Option<ApiKey>, Timestamp), Failure>,
    ) -> Result<(Option<Arc<Known>>, Option<Timestamp>), Problem> {
        let now = monotonic::now();
        {
            let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((at, known)) = keys.get(name)
                && is_fresh(*at, now)
            {
                return Ok((Some(Arc::clone(known)), None));
            }
        }
        let (found, at) = look_up(self.app.clone()).await?;
        let found = found.map(|key| Arc::new(Known { rights: Arc::new(key.rights.clone()), key }));
        // Guesses are not remembered: they would fill the table.
        if let Some(found) = &found {
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            if keys.len() >= MOST_REMEMBERED {
                keys.clear();
            }
            keys.insert(name.to_owned(), (now, Arc::clone(found)));
        }
        Ok((found, Some(at)))
    }

    pub async fn signing_keys(&self) -> Result<Arc<SigningKeys>, Problem> {
        let now = monotonic::now();
        {
            let signing = self.signing.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((at, keys)) = signing.as_ref()
                && is_fresh(*at, now)
            {
                return Ok(Arc::clone(keys));
            }
        }
        let keys = self
            .app
            .read(|tx, context| {
                let stored = signing_keys::all(tx)?;
                keys::signing_keys_at(context, &stored, tx.now())
            })
            .await?;
        let keys = Arc::new(keys);
        *self.signing.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(&keys)));
        Ok(keys)
    }
}

/// A key that was pasted with its full stop is a wrong key.
fn is_access_token(text: &str) -> bool {
    text.contains('.') && !credentials::ApiKey::resembles(text)
}

/// Whether what was looked up at that time is still remembered.
fn is_fresh(looked_up_at: Instant, now: Instant) -> bool {
    now.duration_since(looked_up_at) < REMEMBERED
}

/// A look into the database on behalf of whoever may be guessing: counted before it is made, and given back if there was
/// such a key. So that nobody has us look more often than their address may be wrong.
pub struct Guess<'l> {
    limits: &'l RateLimits,
    address: Option<ClientAddress>,
    is_counted: bool,
}

impl<'l> Guess<'l> {
    pub fn of(limits: &'l RateLimits, address: Option<ClientAddress>) -> Self {
        Self { limits, address, is_counted: false }
    }

    /// Once, however often it is called.
    pub fn begin(&mut self) -> Result<(), Problem> {
        if let Some(address) = self.address.filter(|_| !self.is_counted) {
            self.limits.of_address(address)?;
            self.is_counted = true;
        }
        Ok(())
    }

    fn was_right(&mut self) {
        if let Some(address) = self.address.filter(|_| self.is_counted) {
            self.limits.give_back(address);
            self.is_counted = false;
        }
    }
}

fn actor(stored: &ApiKey, rights: Arc<Rights>, is_token: bool) -> Actor {
    let credential = match stored.kind {
        KeyKind::Secret => Credential::Secret { key: stored.id, rights, is_token },
        KeyKind::Publishable => Credential::Publishable { key: stored.id },
    };
    Actor { scope: stored.scope, credential }
}

pub(super) fn missing() -> Problem {
    unauthorized(
        "authentication_required",
        "Authentication is required: log in, or send a key as `Authorization: Bearer sk_test_…`.",
    )
}

pub(super) fn invalid_key() -> Problem {
    unauthorized("invalid_api_key", "Invalid API key")
}

pub(super) fn invalid_token() -> Problem {
    unauthorized("invalid_token", "This access token is not valid here. Get a new one from POST /v1/auth/token.")
}

pub(super) fn expired_token() -> Problem {
    unauthorized("token_expired", "This access token has expired. Get a new one from POST /v1/auth/token.")
}

fn unauthorized(code: &'static str, sentence: &'static str) -> Problem {
    let challenge = http::HeaderValue::from_static("Bearer");
    Problem::new(StatusCode::UNAUTHORIZED, code, sentence).header(http::header::WWW_AUTHENTICATE, challenge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_up_is_remembered_for_a_second_and_no_longer() {
        let at = monotonic::now();
        let just_before = REMEMBERED.checked_sub(Duration::from_nanos(1)).expect("it is longer");
        assert!(is_fresh(at, at) && is_fresh(at, at + just_before));
        assert!(!is_fresh(at, at + REMEMBERED) && !is_fresh(at, at + 2 * REMEMBERED));
    }
}
