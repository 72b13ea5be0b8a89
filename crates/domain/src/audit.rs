//! What an operator did by hand, and why: kept for ever, never changed.

use serde::{Deserialize, Serialize};

use crate::id::{Id, Object};
use crate::scope::Scope;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub id: Id<AuditRecord>,
    pub scope: Scope,
    /// `attempt.resolved`, `key.created`, `key.revoked`, …
    pub action: String,
    pub object_id: String,
    /// Who: `cli:<system user>` as long as there are no users.
    pub actor: String,
    pub reason: Option<String>,
    pub created_at: Timestamp,
}

impl Object for AuditRecord {
    const PREFIX: &'static str = "audit";
    const NOUN: &'static str = "audit_record";
}
