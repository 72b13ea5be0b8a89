//! The master key and what hangs on it: envelope encryption of stored secrets, and one subkey per purpose.
//!
//! Every use has its own key, derived by HKDF-SHA256, so that no two uses can be played against each other. This
//! module stores nothing: a wrapped secret is text that the caller keeps in a row.
//!
//! A wrapped secret reads `v1:<key id>:<base64 of nonce, ciphertext, tag>`, AES-256-GCM with a random 96-bit
//! nonce. Its additional data is `dalasi:v1:<key id>:` and the caller's text, which names organization, mode and
//! row: a blob moved to another row doesn't open.

mod key_file;
mod secret;
#[cfg(test)]
mod tests;

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use aws_lc_rs::{hkdf, hmac};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use zeroize::Zeroizing;

pub use key_file::{KeyFileFault, create_key_file, load_key_file};
pub use secret::{SecretBytes, SecretText, secrets_match};

const BLOB_VERSION: &str = "v1";
const NONCE_LENGTH: usize = 12;

/// The key from which every other key of this installation derives.
#[derive(Clone)]
pub struct MasterKey {
    bytes: Zeroizing<[u8; 32]>,
    id: String,
}

/// What a subkey is for. The labels are part of every stored digest: they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The pepper under the digests of API keys.
    ApiKeyDigest,
    /// The pepper under the digests of checkout client secrets.
    ClientSecretDigest,
    /// What hides the checkout's id within its client secret.
    ClientSecretId,
    /// Signed form tokens of the hosted pages.
    FormToken,
    /// Links that carry their own proof, such as the simulator's pages.
    PageToken,
    /// Answers that are kept for a retry.
    KeptAnswer,
    /// The fingerprints of requests that came with an idempotency key.
    RequestFingerprint,
}

/// A key for one purpose, made ready for HMAC-SHA256 once.
#[derive(Clone)]
pub struct Subkey(hmac::Key);

/// Why a wrapped secret can't be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnwrapFault {
    /// Not a blob of this format.
    Malformed,
    /// Wrapped with another master key, whose id this is.
    OtherKey(String),
    /// Altered, or bound to another row.
    Forged,
}

impl MasterKey {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        let bytes = Zeroizing::new(bytes);
        let id = expand(&bytes, "dalasi key id v1")[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { bytes, id }
    }

    /// Eight hex digits that tell master keys apart and reveal nothing of them.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn subkey(&self, purpose: Purpose) -> Subkey {
        let label = match purpose {
            Purpose::ApiKeyDigest => "dalasi api key digest v1",
            Purpose::ClientSecretDigest => "dalasi client secret digest v1",
            Purpose::ClientSecretId => "dalasi client secret id v1",
            Purpose::FormToken => "dalasi form token v1",
            Purpose::PageToken => "dalasi page token v1",
            Purpose::KeptAnswer => "dalasi kept answer v1",
            Purpose::RequestFingerprint => "dalasi request fingerprint v1",
        };
        Subkey(hmac::Key::new(hmac::HMAC_SHA256, &*expand(&self.bytes, label)))
    }

    /// Encrypts `secret` so that it opens only with this key and the same `additional` text.
    pub fn wrap(&self, secret: &[u8], additional: &str) -> String {
        // Room for the tag from the start: growing would leave a copy of the plain text behind.
        let mut sealed = Zeroizing::new(Vec::with_capacity(secret.len() + AES_256_GCM.tag_len()));
        sealed.extend_from_slice(secret);
        let nonce = self
            .wrapping_key()
            .seal_in_place_append_tag(self.additional_data(additional), &mut *sealed)
            .expect("a short secret and a fresh nonce always seal");
        let mut blob = nonce.as_ref().to_vec();
        blob.extend_from_slice(&sealed);
        format!("{BLOB_VERSION}:{}:{}", self.id, STANDARD_NO_PAD.encode(blob))
    }

    /// Opens what [`MasterKey::wrap`] made.
    pub fn unwrap(&self, blob: &str, additional: &str) -> Result<SecretBytes, UnwrapFault> {
        let mut parts = blob.split(':');
        let (Some(BLOB_VERSION), Some(key_id), Some(body), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(UnwrapFault::Malformed);
        };
        if key_id != self.id {
            return Err(UnwrapFault::OtherKey(key_id.to_owned()));
        }
        let body = STANDARD_NO_PAD.decode(body).map_err(|_| UnwrapFault::Malformed)?;
        let (nonce, sealed) = body.split_at_checked(NONCE_LENGTH).ok_or(UnwrapFault::Malformed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| UnwrapFault::Malformed)?;
        let mut sealed = Zeroizing::new(sealed.to_vec());
        let opened = self
            .wrapping_key()
            .open_in_place(nonce, self.additional_data(additional), &mut sealed)
            .map_err(|_| UnwrapFault::Forged)?;
        Ok(SecretBytes::new(opened.to_vec()))
    }

    fn wrapping_key(&self) -> RandomizedNonceKey {
        let key = expand(&self.bytes, "dalasi wrapping v1");
        RandomizedNonceKey::new(&AES_256_GCM, &*key).expect("32 bytes are a key of AES-256")
    }

    fn additional_data(&self, additional: &str) -> Aad<Vec<u8>> {
        Aad::from(format!("dalasi:{BLOB_VERSION}:{}:{additional}", self.id).into_bytes())
    }
}

impl Subkey {
    /// 32 bytes that belong to `label` and nobody without the key can tell.
    pub fn derive(&self, label: &str) -> [u8; 32] {
        self.tag(label.as_bytes())
    }

    /// The same for what is no text.
    pub fn tag(&self, content: &[u8]) -> [u8; 32] {
        let tag = hmac::sign(&self.0, content);
        tag.as_ref().try_into().expect("HMAC-SHA256 has 32 bytes")
    }

    /// What a sealed text has more than its plain one, in bytes: nonce and tag.
    pub const SEAL_LENGTH: usize = NONCE_LENGTH + 16;

    /// Encrypts with AES-256-GCM under a key that belongs to `label` alone, so that no key is used often, however many texts
    /// there are, and a text that is put under another label doesn't open. Nonce, ciphertext, tag.
    pub fn seal(&self, label: &str, plain: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(NONCE_LENGTH + plain.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(&[0; NONCE_LENGTH]);
        sealed.extend_from_slice(plain);
        let (nonce, tag) = self
            .sealing_key(label)
            .seal_in_place_separate_tag(Aad::empty(), &mut sealed[NONCE_LENGTH..])
            .expect("a text shorter than 64 GiB and a fresh nonce always seal");
        sealed[..NONCE_LENGTH].copy_from_slice(nonce.as_ref());
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    /// Opens what [`Subkey::seal`] made for the same label.
    pub fn open(&self, label: &str, sealed: &[u8]) -> Result<Vec<u8>, UnwrapFault> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LENGTH).ok_or(UnwrapFault::Malformed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| UnwrapFault::Malformed)?;
        let mut plain = sealed.to_vec();
        let length = self
            .sealing_key(label)
            .open_in_place(nonce, Aad::empty(), &mut plain)
            .map_err(|_| UnwrapFault::Forged)?
            .len();
        plain.truncate(length);
        Ok(plain)
    }

    fn sealing_key(&self, label: &str) -> RandomizedNonceKey {
        RandomizedNonceKey::new(&AES_256_GCM, &self.derive(label)).expect("32 bytes are a key of AES-256")
    }

    pub(crate) fn hmac_key(&self) -> &hmac::Key {
        &self.0
    }
}

fn expand(master: &[u8; 32], label: &str) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0_u8; 32]);
    hkdf::Salt::new(hkdf::HKDF_SHA256, b"dalasi")
        .extract(master)
        .expand(&[label.as_bytes()], hkdf::HKDF_SHA256)
        .and_then(|material| material.fill(&mut *key))
        .expect("32 bytes are within the reach of HKDF-SHA256");
    key
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MasterKey({} [redacted])", self.id)
    }
}

impl fmt::Debug for Subkey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Subkey([redacted])")
    }
}

impl fmt::Display for UnwrapFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => formatter.write_str("the stored secret is not in a known format"),
            Self::OtherKey(id) => write!(formatter, "the stored secret was wrapped with another master key ({id})"),
            Self::Forged => formatter.write_str("the stored secret was altered or belongs to another row"),
        }
    }
}

impl std::error::Error for UnwrapFault {}
