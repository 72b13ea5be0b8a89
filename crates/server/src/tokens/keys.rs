//! Ed25519 keys for access tokens and receipt statements: making them, naming them, publishing the public halves.
//!
//! A key's id is its RFC 7638 thumbprint, so it can't name another key. Keys live in memory here; wrapping and
//! storing them is the caller's part.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{DecodingKey, EncodingKey};
use serde_json::{Value, json};

use crate::secrets::SecretBytes;

/// A key that can sign.
#[derive(Debug, Clone)]
pub struct SigningKey {
    pkcs8: SecretBytes,
    public: PublicKey,
}

/// The half that verifies and is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    id: String,
    bytes: [u8; 32],
}

/// The stored bytes aren't an Ed25519 key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAKey;

/// The keys of this installation as every node holds them in memory.
///
/// `next` is published and accepted at least a day before it signs, so that no verifier meets an unknown key;
/// retired keys stay until the last token they signed has expired.
#[derive(Clone)]
pub struct SigningKeys {
    pub(super) current: SigningKey,
    pub(super) encoding: EncodingKey,
    pub(super) decoding: BTreeMap<String, DecodingKey>,
    published: Vec<PublicKey>,
}

impl SigningKey {
    pub fn generate(random: &[u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(random).expect("any 32 bytes are an Ed25519 seed");
        let pkcs8 = pair.to_pkcs8().expect("a generated key has an encoding");
        Self::from_pkcs8(pkcs8.as_ref()).expect("what was just encoded decodes")
    }

    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, NotAKey> {
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8).map_err(|_| NotAKey)?;
        let bytes: [u8; 32] = pair.public_key().as_ref().try_into().map_err(|_| NotAKey)?;
        Ok(Self { pkcs8: SecretBytes::new(pkcs8.to_vec()), public: PublicKey::from_bytes(bytes) })
    }

    /// The private key, for wrapping it.
    pub fn expose_pkcs8(&self) -> &[u8] {
        self.pkcs8.expose()
    }

    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs something that is no token. `purpose` keeps the kinds of signed texts apart: a signature for one is none for
    /// another, and none for a token, which never begins with a purpose and a zero byte.
    pub fn sign(&self, purpose: &str, message: &[u8]) -> [u8; 64] {
        let pair = Ed25519KeyPair::from_pkcs8(self.pkcs8.expose()).expect("a key that was parsed parses again");
        let signature = pair.sign(&for_purpose(purpose, message));
        signature.as_ref().try_into().expect("an Ed25519 signature has 64 bytes")
    }
}

fn for_purpose(purpose: &str, message: &[u8]) -> Vec<u8> {
    [purpose.as_bytes(), &[0], message].concat()
}

impl PublicKey {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        // RFC 7638: the required members in lexicographic order, without white space.
        let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, URL_SAFE_NO_PAD.encode(bytes));
        Self { id: URL_SAFE_NO_PAD.encode(digest(&SHA256, canonical.as_bytes())), bytes }
    }

    /// The key's id (`kid`): 43 characters.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// In base64url.
    pub fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.bytes)
    }

    pub fn parse(text: &str) -> Result<Self, NotAKey> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| NotAKey)?;
        Ok(Self::from_bytes(bytes.try_into().map_err(|_| NotAKey)?))
    }

    /// Whether [`SigningKey::sign`] made this signature, for this purpose.
    pub fn verifies(&self, purpose: &str, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.bytes).verify(&for_purpose(purpose, message), signature).is_ok()
    }

    /// As a member of a JSON Web Key Set.
    pub fn jwk(&self) -> Value {
        json!({
            "kty": "OKP",
            "crv": "Ed25519",
            "x": self.to_text(),
            "kid": self.id,
            "alg": "EdDSA",
            "use": "sig",
        })
    }
}

impl SigningKeys {
    pub fn new(current: SigningKey, next: Option<PublicKey>, retired: Vec<PublicKey>) -> Self {
        let mut published = vec![current.public.clone()];
        published.extend(next);
        published.extend(retired);
        let decoding = published.iter().map(|key| (key.id.clone(), DecodingKey::from_ed_der(&key.bytes))).collect();
        let encoding = EncodingKey::from_ed_der(current.pkcs8.expose());
        Self { current, encoding, decoding, published }
    }

    /// The id of the key that signs now.
    pub fn current_id(&self) -> &str {
        self.current.public.id()
    }

    /// The body of `/.well-known/jwks.json`.
    pub fn jwks(&self) -> Value {
        key_set(&self.published)
    }
}

/// Public keys as a JSON Web Key Set (RFC 7517).
pub fn key_set(keys: &[PublicKey]) -> Value {
    json!({ "keys": keys.iter().map(PublicKey::jwk).collect::<Vec<_>>() })
}

/// The Ed25519 keys of a JSON Web Key Set; others are none of ours. A key's id is computed and never believed.
pub fn parse_key_set(text: &[u8]) -> Option<Vec<PublicKey>> {
    let set: Value = serde_json::from_slice(text).ok()?;
    let ours = |key: &&Value| key["kty"] == "OKP" && key["crv"] == "Ed25519";
    let read = |key: &Value| {
        let bytes = URL_SAFE_NO_PAD.decode(key["x"].as_str()?).ok()?;
        Some(PublicKey::from_bytes(bytes.try_into().ok()?))
    };
    set.get("keys")?.as_array()?.iter().filter(ours).map(read).collect()
}

impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SigningKeys(current {}, {} published)", self.current_id(), self.published.len())
    }
}

impl std::fmt::Display for NotAKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("not an Ed25519 key in PKCS#8")
    }
}

impl std::error::Error for NotAKey {}
