//! Access tokens: short-lived JWTs signed with Ed25519 by this installation for itself.
//!
//! The header never chooses: the algorithm is EdDSA, the key is the one in memory whose id is exactly `kid`, and a
//! header with any other member (`jwk`, `jku`, `x5u`, `crit`, …) is refused whole. Claims have to be there, of the
//! right type, and ours: `iss` and `aud` are both the API's origin (contract.md §1.2).
//!
//! A verified token says who it was minted for. Whether that key was revoked since is for the store to say.

mod keys;
mod strict_json;
#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;
use serde::Serialize;

use domain::Mode;
use strict_json::Object;

pub use keys::{NotAKey, PublicKey, SigningKey, SigningKeys, key_set, parse_key_set};

/// How far clocks may differ.
pub const LEEWAY_S: i64 = 30;
pub const SHORTEST_LIFETIME_S: i64 = 60;
pub const LONGEST_LIFETIME_S: i64 = 24 * 60 * 60;
pub const DEFAULT_LIFETIME_S: i64 = 60 * 60;

/// All scopes there are, spelled out, fit several times.
const LONGEST_TOKEN: usize = 4096;
const TYPE: &str = "JWT";
const ALGORITHM: &str = "EdDSA";

/// Whom a token stands for and what it allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The id of the API key that asked for the token: revoking the key ends the token.
    pub key_id: String,
    pub organization_id: String,
    pub mode: Mode,
    /// Space-separated.
    pub scope: String,
    /// The token's own id (`jti`), unique.
    pub token_id: String,
}

/// What a verified token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    pub grant: Grant,
    pub issued_at_s: i64,
    pub expires_at_s: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFault {
    /// Malformed, forged, foreign or not valid yet.
    Invalid,
    /// Genuine, but its time is over.
    Expired,
}

/// The lifetime asked for is outside [`SHORTEST_LIFETIME_S`]..=[`LONGEST_LIFETIME_S`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifetimeOutOfRange;

#[derive(Serialize)]
struct WireHeader<'a> {
    alg: &'a str,
    typ: &'a str,
    kid: &'a str,
}

#[derive(Serialize)]
struct WireClaims<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    org: &'a str,
    mode: &'a str,
    scope: &'a str,
    exp: i64,
    iat: i64,
    jti: &'a str,
}

impl SigningKeys {
    /// Signs a token with the current key.
    pub fn mint(&self, grant: &Grant, issuer: &str, now_s: i64, lifetime_s: i64) -> Result<String, LifetimeOutOfRange> {
        if !(SHORTEST_LIFETIME_S..=LONGEST_LIFETIME_S).contains(&lifetime_s) {
            return Err(LifetimeOutOfRange);
        }
        let header = WireHeader { alg: ALGORITHM, typ: TYPE, kid: self.current_id() };
        let claims = WireClaims {
            iss: issuer,
            aud: issuer,
            sub: &grant.key_id,
            org: &grant.organization_id,
            mode: grant.mode.as_str(),
            scope: &grant.scope,
            exp: now_s.saturating_add(lifetime_s),
            iat: now_s,
            jti: &grant.token_id,
        };
        let message = format!("{}.{}", encode_part(&header), encode_part(&claims));
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &self.encoding, Algorithm::EdDSA)
            .expect("a key that was parsed can sign");
        let token = format!("{message}.{signature}");
        assert!(token.len() <= LONGEST_TOKEN, "a token that we would refuse ourselves is never minted");
        Ok(token)
    }

    /// Checks a token at the time `now_s` (Unix seconds) for the API at `issuer`.
    pub fn verify(&self, token: &str, now_s: i64, issuer: &str) -> Result<Claims, TokenFault> {
        if token.len() > LONGEST_TOKEN {
            return Err(TokenFault::Invalid);
        }
        let claims = self.genuine(token, issuer).ok_or(TokenFault::Invalid)?;
        // Only a genuine token is told that it is too old.
        let Claims { issued_at_s, expires_at_s, .. } = claims.claims;
        let lifetime_s = expires_at_s.checked_sub(issued_at_s).ok_or(TokenFault::Invalid)?;
        if !(1..=LONGEST_LIFETIME_S).contains(&lifetime_s) {
            return Err(TokenFault::Invalid);
        }
        let latest_start_s = now_s.saturating_add(LEEWAY_S);
        if issued_at_s > latest_start_s || claims.not_before_s.is_some_and(|start| start > latest_start_s) {
            return Err(TokenFault::Invalid);
        }
        if now_s.saturating_sub(LEEWAY_S) >= expires_at_s {
            return Err(TokenFault::Expired);
        }
        Ok(claims.claims)
    }

    /// The claims of a token that one of our keys signed for this issuer, whatever its times say.
    fn genuine(&self, token: &str, issuer: &str) -> Option<GenuineClaims> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        if claims.contains('.') {
            return None;
        }

        let header = Object::parse(&URL_SAFE_NO_PAD.decode(header).ok()?)?;
        if header.names().any(|name| !matches!(name, "alg" | "typ" | "kid"))
            || header.text("alg")? != ALGORITHM
            || header.text("typ")? != TYPE
        {
            return None;
        }
        let key = self.decoding.get(header.text("kid")?)?;
        let verified = jsonwebtoken::crypto::verify(signature, message.as_bytes(), key, Algorithm::EdDSA).ok()?;
        if !verified {
            return None;
        }

        let claims = Object::parse(&URL_SAFE_NO_PAD.decode(claims).ok()?)?;
        if claims.text("iss")? != issuer || claims.text("aud")? != issuer {
            return None;
        }
        let not_before_s = match claims.contains("nbf") {
            true => Some(claims.integer("nbf")?),
            false => None,
        };
        let filled = |name| claims.text(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let grant = Grant {
            key_id: filled("sub")?,
            organization_id: filled("org")?,
            mode: Mode::parse(claims.text("mode")?)?,
            scope: claims.text("scope")?.to_owned(),
            token_id: filled("jti")?,
        };
        let (issued_at_s, expires_at_s) = (claims.integer("iat")?, claims.integer("exp")?);
        Some(GenuineClaims { claims: Claims { grant, issued_at_s, expires_at_s }, not_before_s })
    }
}

struct GenuineClaims {
    claims: Claims,
    not_before_s: Option<i64>,
}

fn encode_part(part: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(part).expect("text and integers always serialize"))
}

impl fmt::Display for LifetimeOutOfRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a token lives {SHORTEST_LIFETIME_S} to {LONGEST_LIFETIME_S} seconds")
    }
}
