//! Values that must not be printed, compared with `==` or left behind in memory.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A secret in bytes. Wiped when dropped.
#[derive(Clone)]
pub struct SecretBytes(Zeroizing<Vec<u8>>);

/// A secret in text, such as an API key. Wiped when dropped.
#[derive(Clone)]
pub struct SecretText(Zeroizing<String>);

impl SecretBytes {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bare value. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl SecretText {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The bare value. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

/// Whether two secrets are the same, in a time that tells nothing about either. Compares digests, so that the
/// lengths may differ.
pub fn secrets_match(one: &[u8], other: &[u8]) -> bool {
    let one = digest(&SHA256, one);
    let other = digest(&SHA256, other);
    one.as_ref().ct_eq(other.as_ref()).into()
}
