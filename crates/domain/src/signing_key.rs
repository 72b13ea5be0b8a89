//! The keys that sign access tokens and receipt statements, as they are remembered and rotated.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningKey {
    /// The thumbprint of the public key (RFC 7638): a token's `kid`.
    pub kid: String,
    /// The Ed25519 key pair, wrapped by the master key.
    pub wrapped: String,
    pub created_at: Timestamp,
    /// Published before, signs from here on.
    pub active_from: Timestamp,
    /// Signs no more. Tokens verify until the longest has run out; what it signed for good (receipts, the ledger) verifies for
    /// ever, so it is kept.
    pub retired_at: Option<Timestamp>,
}
