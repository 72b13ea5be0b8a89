//! API keys and the keys that sign access tokens: made, shown once, revoked, rotated.

use std::time::Duration;

use domain::api_key::{ApiKey, KeyKind, Rights};
use domain::audit::AuditRecord;
use domain::signing_key::SigningKey as StoredSigningKey;
use domain::{Id, Mode, Scope, Timestamp};
use store::queries::{audit, events, organizations, signing_keys};
use store::{Tx, lease};

use super::{Context, load};
use crate::credentials;
use crate::error::Failure;
use crate::secrets::UnwrapFault;
use crate::tokens::{LEEWAY_S, LONGEST_LIFETIME_S, PublicKey, SigningKey, SigningKeys};

/// The next key is published so long before it signs.
const PUBLISHED_BEFORE: Duration = Duration::from_secs(24 * 3600);
/// The keys are looked at once a second, by whoever signs a token and by whoever checks it: one may sign for so long after it retired,
/// and whoever checks may know so early that it is gone.
const LATE_LOOKS_S: i64 = 2;

/// A key as it is remembered, with its text, which is shown this once.
#[derive(Debug, Clone)]
pub struct CreatedKey {
    pub key: ApiKey,
    pub text: credentials::ApiKey,
}

pub fn create(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    kind: KeyKind,
    rights: Rights,
    name: Option<String>,
) -> Result<CreatedKey, Failure> {
    let now = tx.now();
    let text = credentials::ApiKey::generate(kind, scope.mode, &tx.entropy().secret());
    let mut key = ApiKey {
        id: tx.entropy().id(now),
        scope,
        version: 0,
        kind,
        digest: text.digest(&context.api_key_pepper),
        last4: text.last4().to_owned(),
        rights: match kind {
            KeyKind::Secret => rights,
            KeyKind::Publishable => Rights::none(),
        },
        name,
        created_at: now,
        revoked_at: None,
    };
    tx.insert(&mut key)?;
    Ok(CreatedKey { key, text })
}

pub fn revoke(tx: &mut Tx<'_>, scope: Scope, id: Id<ApiKey>) -> Result<ApiKey, Failure> {
    let mut key = load::<ApiKey>(tx, scope, id)?;
    key.revoke(tx.now())?;
    tx.save(&mut key)?;
    Ok(key)
}

/// Writes down what an operator did by hand.
pub fn record(
    tx: &mut Tx<'_>,
    scope: Scope,
    action: &str,
    object_id: String,
    actor: &str,
    reason: Option<String>,
) -> Result<(), Failure> {
    let now = tx.now();
    let id = tx.entropy().id(now);
    let record =
        AuditRecord { id, scope, action: action.into(), object_id, actor: actor.into(), reason, created_at: now };
    Ok(audit::append(tx, &record)?)
}

/// The first signing key, which signs at once.
pub fn add_signing_key(tx: &mut Tx<'_>, context: &Context) -> Result<StoredSigningKey, Failure> {
    let now = tx.now();
    add(tx, context, now, now)
}

/// What came of asking for another signing key.
#[derive(Debug)]
pub enum Rotation {
    /// It is published and signs a day later; then the one before retires.
    Published(StoredSigningKey),
    /// There is one that does not sign yet.
    Waits(StoredSigningKey),
}

/// A later signing key signs a day after it was published, so that whoever checks tokens knows it by then. Not by the clock of
/// whoever asks alone: one that is behind would have the key sign unpublished, and what one did that was ahead is put right.
pub fn rotate_signing_key(tx: &mut Tx<'_>, context: &Context) -> Result<Rotation, Failure> {
    // Of two at once the second waits, and finds the key of the first.
    lease::take(tx, lease::INSTALLATION, lease::INSTALLATION, 0)?;
    let known = signing_keys::all(tx)?;
    let now = latest_known(tx, &known)?;
    let active_from = now.plus(PUBLISHED_BEFORE);
    let key = match known.iter().find(|key| key.active_from > now) {
        Some(next) if next.active_from <= active_from => return Ok(Rotation::Waits(next.clone())),
        Some(next) => {
            signing_keys::sign_from(tx, &next.kid, active_from)?;
            StoredSigningKey { active_from, ..next.clone() }
        }
        None => add(tx, context, now, active_from)?,
    };
    for older in known.iter().filter(|older| older.kid != key.kid) {
        signing_keys::retire(tx, &older.kid, active_from)?;
    }
    Ok(Rotation::Published(key))
}

/// What the clock says, or if that is later the last event in a log. The audit log is left out: it has the times of those who ask.
fn latest_known(tx: &mut Tx<'_>, known: &[StoredSigningKey]) -> Result<Timestamp, Failure> {
    let mut latest = not_before_the_first(known, tx.now());
    for scope in organizations::scopes(tx)? {
        latest = events::last_at(tx, scope)?.map_or(latest, |last| last.max(latest));
    }
    Ok(latest)
}

fn add(
    tx: &mut Tx<'_>,
    context: &Context,
    created_at: Timestamp,
    active_from: Timestamp,
) -> Result<StoredSigningKey, Failure> {
    let key = SigningKey::generate(&tx.entropy().secret());
    let kid = key.public().id().to_owned();
    let wrapped = context.master.wrap(key.expose_pkcs8(), &additional_data(&kid));
    let stored = StoredSigningKey { kid, wrapped, created_at, active_from, retired_at: None };
    signing_keys::insert(tx, &stored)?;
    Ok(stored)
}

fn additional_data(kid: &str) -> String {
    format!("signing_keys:{kid}")
}

/// The key that signs at `now`, and the public halves of all keys that ever signed: what was signed for good, unlike a
/// token, has to be checked long after its key retired.
pub fn lasting_keys(
    context: &Context,
    stored: &[StoredSigningKey],
    now: Timestamp,
) -> Result<(SigningKey, Vec<PublicKey>), Failure> {
    let now = not_before_the_first(stored, now);
    let (mut current, mut public) = (None, Vec::with_capacity(stored.len()));
    for key in stored {
        let signing = open(context, key)?;
        public.push(signing.public().clone());
        if key.active_from <= now && key.retired_at.is_none_or(|at| at > now) {
            current = Some(signing);
        }
    }
    Ok((current.ok_or_else(no_key)?, public))
}

fn open(context: &Context, key: &StoredSigningKey) -> Result<SigningKey, Failure> {
    let pkcs8 = context
        .master
        .unwrap(&key.wrapped, &additional_data(&key.kid))
        .map_err(|fault| Failure::Broken(format!("signing key {}: {fault}", key.kid)))?;
    SigningKey::from_pkcs8(pkcs8.expose()).map_err(|_| Failure::Broken(format!("signing key {} is damaged", key.kid)))
}

/// Whether these were wrapped under another master key, beyond doubt.
pub fn are_of_another_master(context: &Context, stored: &[StoredSigningKey]) -> bool {
    let opened = |key: &StoredSigningKey| context.master.unwrap(&key.wrapped, &additional_data(&key.kid));
    !stored.is_empty() && stored.iter().all(|key| matches!(opened(key), Err(UnwrapFault::OtherKey(_))))
}

/// A clock that is behind that of whoever installed: the first key signs from the beginning on.
fn not_before_the_first(stored: &[StoredSigningKey], now: Timestamp) -> Timestamp {
    stored.iter().map(|key| key.active_from).min().map_or(now, |first| now.max(first))
}

fn no_key() -> Failure {
    Failure::Broken("no key signs access tokens: run `dalasi init`".into())
}

/// The keys as they are at `now`: one signs, the next is published, the retired ones verify until the longest token is taken no more.
pub fn signing_keys_at(context: &Context, stored: &[StoredSigningKey], now: Timestamp) -> Result<SigningKeys, Failure> {
    let now = not_before_the_first(stored, now);
    let longest = Duration::from_secs(u64::try_from(LONGEST_LIFETIME_S + LEEWAY_S + LATE_LOOKS_S).unwrap_or(0));
    let (mut current, mut next, mut retired) = (None, None, Vec::new());
    for key in stored {
        let signing = open(context, key)?;
        let public = PublicKey::from_bytes(*signing.public().bytes());
        if key.active_from > now {
            next = Some(public);
        } else if key.retired_at.is_none_or(|at| at > now) {
            current = Some(signing);
        } else if key.retired_at.is_some_and(|at| at.plus(longest) > now) {
            retired.push(public);
        }
    }
    let current = current.ok_or_else(no_key)?;
    Ok(SigningKeys::new(current, next, retired))
}

/// A token's key, wherever it lives: the scope that the token claims.
pub fn claimed_scope(organization: &str, mode: Mode) -> Option<Scope> {
    Some(Scope { organization: organization.parse().ok()?, mode })
}
