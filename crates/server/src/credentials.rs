//! API keys and client secrets: how they are made, recognised without a look-up, and digested for storage.
//!
//! A key is `sk_test_`, `sk_live_`, `pk_test_` or `pk_live_`, 52 base32 characters (256 random bits) and 6 check
//! characters (30 bits of SHA-256 over everything before), so that a mistyped key is refused at once and scanners
//! can match `[sp]k_(test|live)_[0-9a-hjkmnp-tv-z]{58}`. Keys are shown once and stored as
//! HMAC-SHA256(pepper, key). This module neither stores keys nor decides what they may do.

#[cfg(test)]
mod tests;

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest as sha256};
use aws_lc_rs::hmac;
use domain::api_key::KeyKind;
use domain::checkout::Checkout;
use domain::{Id, Mode};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::base32::LOWER;
use crate::hex;
use crate::secrets::{MasterKey, Purpose, SecretText, Subkey};

/// Of 256 bits.
const BODY_LENGTH: usize = 52;
const CHECK_LENGTH: usize = 6;
const CLIENT_SECRET_PREFIX: &str = "csec_";

/// A well-formed API key. Whether it exists is for the store to say.
#[derive(Debug, Clone)]
pub struct ApiKey {
    text: SecretText,
    kind: KeyKind,
    mode: Mode,
}

/// What lets a payer's browser act on one checkout, in the shape of contract §1.6: `csec_` and 52 base32 characters. They are 128
/// random bits, and as many in which the checkout's id is hidden by a keyed hash of the first, so that nobody without the key
/// learns the id. Whoever has the key reads it and finds the row by it, so that no index of random text slows each creation down.
/// The mask proves nothing: with one secret and two ids anybody makes a text that names the other checkout. That it is the right
/// one, its digest alone says.
#[derive(Debug, Clone)]
pub struct ClientSecret {
    checkout: Id<Checkout>,
    text: SecretText,
}

/// What client secrets are made, read and digested with.
#[derive(Clone)]
pub struct ClientSecretKeys {
    digest: Subkey,
    id: Subkey,
}

/// The text isn't a key of ours: wrong prefix, length, alphabet or check characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl ApiKey {
    pub fn generate(kind: KeyKind, mode: Mode, random: &[u8; 32]) -> Self {
        let body = format!("{}{}", prefix(kind, mode), LOWER.encode(random));
        let check = check_characters(&body);
        Self { text: SecretText::new(body + &check), kind, mode }
    }

    /// Recognises a key by itself, without asking any store.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        const KINDS: [(KeyKind, Mode); 4] = [
            (KeyKind::Secret, Mode::Test),
            (KeyKind::Secret, Mode::Live),
            (KeyKind::Publishable, Mode::Test),
            (KeyKind::Publishable, Mode::Live),
        ];
        for (kind, mode) in KINDS {
            let Some(rest) = text.strip_prefix(prefix(kind, mode)) else {
                continue;
            };
            let at = rest.len().checked_sub(CHECK_LENGTH).ok_or(Malformed)?;
            let (random, check) = rest.split_at_checked(at).ok_or(Malformed)?;
            let checked = &text[..text.len() - CHECK_LENGTH];
            if decode_256(random).is_err() || check != check_characters(checked) {
                return Err(Malformed);
            }
            return Ok(Self { text: SecretText::new(text.to_owned()), kind, mode });
        }
        Err(Malformed)
    }

    /// Whether a bearer credential means to be an API key (well-formed or not) rather than an access token.
    pub fn resembles(text: &str) -> bool {
        text.starts_with("sk_") || text.starts_with("pk_")
    }

    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the store keeps and looks up by: 64 hex digits.
    pub fn digest(&self, pepper: &Subkey) -> String {
        peppered_digest(pepper, self.text.expose())
    }

    /// The key's beginning, safe to show in lists: `sk_test_`.
    pub fn prefix(&self) -> &'static str {
        prefix(self.kind, self.mode)
    }

    /// The last four characters, safe to show in lists: they belong to the check characters.
    pub fn last4(&self) -> &str {
        let text = self.text.expose();
        &text[text.len() - 4..]
    }

    /// The whole key, for showing it once.
    pub fn expose(&self) -> &str {
        self.text.expose()
    }
}

impl ClientSecretKeys {
    pub fn new(master: &MasterKey) -> Self {
        Self { digest: master.subkey(Purpose::ClientSecretDigest), id: master.subkey(Purpose::ClientSecretId) }
    }

    /// Hides the id beside this nonce, and shows what was hidden.
    fn mask(&self, nonce: [u8; 16], id: [u8; 16]) -> [u8; 16] {
        let tag = self.id.tag(&nonce);
        std::array::from_fn(|at| id[at] ^ tag[at])
    }
}

impl ClientSecret {
    pub fn generate(checkout: Id<Checkout>, nonce: [u8; 16], keys: &ClientSecretKeys) -> Self {
        let hidden = keys.mask(nonce, checkout.to_bytes());
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&nonce);
        bytes[16..].copy_from_slice(&hidden);
        let text = format!("{CLIENT_SECRET_PREFIX}{}", LOWER.encode(&bytes));
        Self { checkout, text: SecretText::new(text) }
    }

    /// Any 52 characters name some checkout: whether it exists, and this is its secret, is for its digest to say.
    pub fn parse(text: &str, keys: &ClientSecretKeys) -> Result<Self, Malformed> {
        let body = text.strip_prefix(CLIENT_SECRET_PREFIX).ok_or(Malformed)?;
        let bytes = decode_256(body)?;
        let nonce = std::array::from_fn(|at| bytes[at]);
        let hidden = std::array::from_fn(|at| bytes[16 + at]);
        let checkout = Id::from_bytes(keys.mask(nonce, hidden));
        Ok(Self { checkout, text: SecretText::new(text.to_owned()) })
    }

    /// The checkout that it claims to open.
    pub fn checkout(&self) -> Id<Checkout> {
        self.checkout
    }

    /// What the checkout keeps: 64 hex digits.
    pub fn digest(&self, keys: &ClientSecretKeys) -> String {
        peppered_digest(&keys.digest, self.text.expose())
    }

    /// The whole secret, for the answer that creates it.
    pub fn expose(&self) -> &str {
        self.text.expose()
    }
}

/// Whether a stored digest is the one computed, in a time that doesn't tell how much of it is right.
pub fn digests_match(stored: &str, computed: &str) -> bool {
    stored.len() == computed.len() && bool::from(stored.as_bytes().ct_eq(computed.as_bytes()))
}

fn prefix(kind: KeyKind, mode: Mode) -> &'static str {
    match (kind, mode) {
        (KeyKind::Secret, Mode::Test) => "sk_test_",
        (KeyKind::Secret, Mode::Live) => "sk_live_",
        (KeyKind::Publishable, Mode::Test) => "pk_test_",
        (KeyKind::Publishable, Mode::Live) => "pk_live_",
    }
}

fn check_characters(body: &str) -> String {
    let digest = sha256(&SHA256, body.as_bytes());
    // The first 30 bits: 6 characters of 5.
    let mut text = LOWER.encode(&digest.as_ref()[..4]);
    text.truncate(CHECK_LENGTH);
    text
}

/// Wiped when dropped, as the text is: these bytes are as good as it.
fn decode_256(text: &str) -> Result<Zeroizing<[u8; 32]>, Malformed> {
    if text.len() != BODY_LENGTH {
        return Err(Malformed);
    }
    let mut bytes = Zeroizing::new([0_u8; 32]);
    LOWER.decode_mut(text.as_bytes(), &mut *bytes).map_err(|_| Malformed)?;
    Ok(bytes)
}

fn peppered_digest(pepper: &Subkey, text: &str) -> String {
    let tag = hmac::sign(pepper.hmac_key(), text.as_bytes());
    hex::lower(tag.as_ref())
}

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the credential is malformed")
    }
}

impl std::error::Error for Malformed {}
