//! The transaction: one attempt at its rail, and every status it has had (contract §4.3); or money that changed hands
//! elsewhere, as somebody wrote it down.
//!
//! What moves an attempt is its session's business; here it only keeps itself consistent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Payable, Payer, PaymentSession};
use crate::id::{Id, Object};
use crate::metadata::Metadata;
use crate::method::{Method, OfflineMethod, PaymentMethod};
use crate::money::Money;
use crate::rail::FailureReason;
use crate::scope::Scope;
use crate::time::Timestamp;

/// Between two questions to a rail, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// An attempt's id is the reference towards its rail, so nothing is ever charged twice for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    pub id: Id<Transaction>,
    pub scope: Scope,
    pub version: i64,
    pub payable: Payable,
    #[serde(flatten)]
    pub source: Source,
    pub amount: Money,
    pub fee: Money,
    pub(super) status: TransactionStatus,
    pub(super) step: Step,
    pub payer: Payer,
    #[serde(default)]
    pub metadata: Metadata,
    #[serde(default)]
    pub rail_reference: Option<String>,
    #[serde(default)]
    pub failure_reason: Option<FailureReason>,
    /// Money for an object that had been paid before.
    #[serde(default)]
    pub duplicate: bool,
    /// Money after the object's expiry or cancel.
    #[serde(default)]
    pub late: bool,
    /// Why a person has to look: what the rail reports is not what was asked for.
    #[serde(default)]
    pub parked: Option<String>,
    pub transitions: Vec<Transition>,
    /// Questions asked so far: the pauses between them grow.
    #[serde(default)]
    pub questions: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Object for Transaction {
    const PREFIX: &'static str = "txn";
    const NOUN: &'static str = "transaction";
}

/// Whose word a transaction is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Source {
    /// A rail moves it.
    Provider(Attempt),
    /// It was complete when it was written down.
    Manual(Recording),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub session: Id<PaymentSession>,
    pub method: Method,
    /// Which connector has it: `simulator`, `wave` …
    pub rail: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    pub method: OfflineMethod,
    /// The merchant's own name for it: a cheque's number, a transfer's reference.
    #[serde(default)]
    pub reference: Option<String>,
    /// The credential that recorded it.
    #[serde(default)]
    pub recorded_by: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    pub status: TransactionStatus,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransactionStatus {
    Pending,
    Processing,
    Completed,
    Failed,
    Cancelled,
    Expired,
}

impl TransactionStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            TransactionStatus::Pending => "pending",
            TransactionStatus::Processing => "processing",
            TransactionStatus::Completed => "completed",
            TransactionStatus::Failed => "failed",
            TransactionStatus::Cancelled => "cancelled",
            TransactionStatus::Expired => "expired",
        }
    }

    /// The edges of contract §4.3, and no others.
    pub(super) fn may_become(self, next: Self) -> bool {
        use TransactionStatus::{Cancelled, Completed, Expired, Failed, Pending, Processing};
        match self {
            Pending => matches!(next, Processing | Completed | Failed | Cancelled | Expired),
            Processing => matches!(next, Completed | Failed),
            Failed | Cancelled | Expired => next == Completed,
            Completed => false,
        }
    }
}

/// Where the attempt stands with its rail, which the wire does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// The intent is committed; the call is on its way or its answer was never stored.
    Sending,
    /// The rail has it.
    Waiting,
    /// An answer was lost. Only the rail, or a person with a reason, can tell.
    Unknown,
    Settled,
}

impl Step {
    pub fn as_str(self) -> &'static str {
        match self {
            Step::Sending => "sending",
            Step::Waiting => "waiting",
            Step::Unknown => "unknown",
            Step::Settled => "settled",
        }
    }
}

/// What an object shows of its latest attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionSummary {
    pub id: Id<Transaction>,
    pub status: String,
    pub amount: Money,
    pub fee: Money,
    pub net: Money,
}

impl TransactionSummary {
    pub fn is_completed(&self) -> bool {
        self.status == TransactionStatus::Completed.as_str()
    }
}

impl Transaction {
    /// Money that changed hands elsewhere: complete at once, without a fee, and no rail ever hears of it.
    pub fn recorded(
        id: Id<Transaction>,
        scope: Scope,
        payable: Payable,
        recording: Recording,
        amount: Money,
        payer: Payer,
        now: Timestamp,
    ) -> Self {
        assert!(amount.minor > 0, "a payment is of something");
        let status = TransactionStatus::Completed;
        Self {
            id,
            scope,
            version: 0,
            payable,
            source: Source::Manual(recording),
            amount,
            fee: Money::new(0, amount.currency),
            status,
            step: Step::Settled,
            payer,
            metadata: Metadata::default(),
            rail_reference: None,
            failure_reason: None,
            duplicate: false,
            late: false,
            parked: None,
            transitions: vec![Transition { status, at: now }],
            questions: 0,
            created_at: now.floor_to_second(),
            updated_at: now,
        }
    }

    pub fn method(&self) -> PaymentMethod {
        match &self.source {
            Source::Provider(attempt) => PaymentMethod::Online(attempt.method),
            Source::Manual(recording) => PaymentMethod::Offline(recording.method),
        }
    }

    /// For what moves at a rail, which a recording never does.
    pub fn attempt(&self) -> &Attempt {
        match &self.source {
            Source::Provider(attempt) => attempt,
            Source::Manual(_) => panic!("{} was recorded by hand: no rail knows it", self.id),
        }
    }

    pub fn is_recorded(&self) -> bool {
        match self.source {
            Source::Provider(_) => false,
            Source::Manual(_) => true,
        }
    }

    pub fn status(&self) -> TransactionStatus {
        self.status
    }

    pub fn step(&self) -> Step {
        self.step
    }

    pub fn net(&self) -> Money {
        self.amount.checked_sub(self.fee).expect("a fee is a part of the amount")
    }

    pub fn summary(&self) -> TransactionSummary {
        TransactionSummary {
            id: self.id,
            status: self.status.as_str().into(),
            amount: self.amount,
            fee: self.fee,
            net: self.net(),
        }
    }

    /// Whether the rail has to be asked (again), and how long to wait before.
    pub fn next_question(&mut self) -> Option<Duration> {
        if self.step == Step::Settled {
            return None;
        }
        let pause = Duration::from_secs(1 << self.questions.min(12)).min(LONGEST_PAUSE);
        self.questions += 1;
        Some(pause)
    }

    /// When it first reached `status`.
    pub fn reached(&self, status: TransactionStatus) -> Option<Timestamp> {
        self.transitions.iter().find(|transition| transition.status == status).map(|transition| transition.at)
    }

    pub(super) fn go(&mut self, status: TransactionStatus, now: Timestamp) {
        let at = self.updated_at.max(now);
        assert!(self.status.may_become(status), "{} never becomes {}", self.status.as_str(), status.as_str());
        assert!(self.transitions.last().is_none_or(|last| last.at <= at), "moves are stored in their order");
        self.status = status;
        self.transitions.push(Transition { status, at });
        self.updated_at = at;
    }
}
