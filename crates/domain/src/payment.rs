//! A payment session and its transaction: one attempt to pay, and what became of it
//! (contract §4.2, §4.3).
//!
//! A session exists from the moment somebody wants to pay; its transaction from the moment an
//! attempt is handed to a rail. What the outcome means for the paid object is that object's rule.

mod outcome;
mod payable;
mod transaction;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::customer::Customer;
use crate::id::{Id, Object};
use crate::metadata::Metadata;
use crate::method::Method;
use crate::money::Money;
use crate::phone::Msisdn;
use crate::rail::{FailureReason, NextAction};
use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::time::Timestamp;

pub use payable::{Payable, Settlement};
pub use transaction::{
    Attempt, Recording, Source, Step, Transaction, TransactionStatus, TransactionSummary, Transition,
};

/// A session of what has no deadline of its own can be used for so long.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// A payer is waited for at least so long after their rail asked them, or they typed a code or came back from its page.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaymentSession {
    pub id: Id<PaymentSession>,
    pub scope: Scope,
    pub version: i64,
    pub payable: Payable,
    pub amount: Money,
    pub method: Option<Method>,
    status: SessionStatus,
    pub payer: Payer,
    #[serde(default)]
    pub metadata: Metadata,
    #[serde(default)]
    pub transaction: Option<Id<Transaction>>,
    /// The one that its payer gave up for it on a page: money may still come by that.
    #[serde(default)]
    pub replaces: Option<Id<PaymentSession>>,
    /// The one for which its payer gave it up on a page: they go on there.
    #[serde(default)]
    pub replaced_by: Option<Id<PaymentSession>>,
    #[serde(default)]
    pub next_action: Option<NextAction>,
    #[serde(default)]
    pub failure_reason: Option<FailureReason>,
    /// A rail's answer was lost: whether the money moved is not known.
    #[serde(default)]
    pub outcome_unknown: bool,
    /// The idempotency key (space, key) whose answer waits for the rail.
    #[serde(default)]
    pub unanswered_key: Option<(String, String)>,
    /// Events of payments that count here, because many people pay their object at once.
    #[serde(default)]
    pub event_sequence: i64,
    /// Where this payer goes afterwards, where the object does not say it.
    #[serde(default)]
    pub success_url: Option<String>,
    #[serde(default)]
    pub failure_url: Option<String>,
    pub expires_at: Timestamp,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Object for PaymentSession {
    const PREFIX: &'static str = "ps";
    const NOUN: &'static str = "payment_session";
}

/// Who pays, as far as they told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Payer {
    #[serde(default)]
    pub customer: Option<Id<Customer>>,
    #[serde(default)]
    pub phone: Option<Msisdn>,
    #[serde(default)]
    pub email: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
}

/// What is told of a payment beside what it is for and how it is paid: who pays, what its merchant wants to find again, and
/// where its payer goes afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    pub payer: Payer,
    pub metadata: Metadata,
    pub success_url: Option<String>,
    pub failure_url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    Pending,
    Processing,
    Succeeded,
    Failed,
    Cancelled,
}

impl SessionStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            SessionStatus::Pending => "pending",
            SessionStatus::Processing => "processing",
            SessionStatus::Succeeded => "succeeded",
            SessionStatus::Failed => "failed",
            SessionStatus::Cancelled => "cancelled",
        }
    }
}

/// What asking to pay once more means for the session that was opened last (contract §2.2 rule 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It goes on.
    Same,
    /// It is closed, and another one opens.
    Replace,
    /// It is over; another one opens.
    New,
}

/// What a rail's word did to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// It changed nothing.
    Nowhere,
    /// It changed, and its outcome is still open.
    On,
    ToPaid,
    ToFailed,
}

impl PaymentSession {
    #[expect(clippy::too_many_arguments, reason = "every part is known at the one place that opens a session")]
    pub fn open(
        id: Id<PaymentSession>,
        scope: Scope,
        payable: Payable,
        amount: Money,
        method: Option<Method>,
        payer: Payer,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Self {
        assert!(amount.minor > 0, "a payment costs something");
        assert!(now < expires_at, "a session opens before the time runs out");
        Self {
            id,
            scope,
            version: 0,
            payable,
            amount,
            method,
            status: SessionStatus::Pending,
            payer,
            metadata: Metadata::default(),
            transaction: None,
            replaces: None,
            replaced_by: None,
            next_action: None,
            failure_reason: None,
            outcome_unknown: false,
            unanswered_key: None,
            event_sequence: 0,
            success_url: None,
            failure_url: None,
            expires_at,
            created_at: now.floor_to_second(),
            updated_at: now,
        }
    }

    pub fn status(&self) -> SessionStatus {
        self.status
    }

    /// Whether a further step by its id is possible at all.
    pub fn refuse_if_closed(&self) -> Result<(), Refusal> {
        match self.status {
            SessionStatus::Pending | SessionStatus::Processing => Ok(()),
            SessionStatus::Succeeded => Err(Refusal::PaymentAlreadySucceeded),
            SessionStatus::Failed | SessionStatus::Cancelled => Err(Refusal::PaymentSessionClosed),
        }
    }

    /// Whether the first call that hands its attempt to a rail is under way, as far as is known: one more beside it could take
    /// the money twice.
    pub fn is_being_handed_over(&self, transaction: Option<&Transaction>) -> bool {
        let is_first =
            |transaction: &Transaction| transaction.step == Step::Sending && !transaction.is_start_repeated();
        self.is_open() && transaction.is_some_and(is_first)
    }

    /// Somebody asks by the paid object to pay `amount` with `method`, or leaves it open. While its attempt is handed over
    /// nothing takes its place, and whoever asks for the same is told how it stands.
    pub fn again(
        &self,
        transaction: Option<&Transaction>,
        method: Option<Method>,
        amount: Money,
    ) -> Result<Again, Refusal> {
        let is_for_the_same = self.amount == amount
            && match (self.method, method) {
                (Some(open), Some(wanted)) => open == wanted || crate::planted!(Defect::OtherMethodKept),
                (None, _) | (_, None) => true,
            };
        match self.status {
            SessionStatus::Pending | SessionStatus::Processing if self.is_being_handed_over(transaction) => {
                if is_for_the_same {
                    Ok(Again::Same)
                } else {
                    Err(Refusal::PaymentInProgress)
                }
            }
            SessionStatus::Pending => Ok(if is_for_the_same { Again::Same } else { Again::Replace }),
            SessionStatus::Processing if crate::planted!(Defect::ProcessingSessionReplaced) => Ok(Again::New),
            SessionStatus::Processing => Err(Refusal::PaymentInProgress),
            SessionStatus::Succeeded => Err(Refusal::PaymentAlreadySucceeded),
            SessionStatus::Failed | SessionStatus::Cancelled => Ok(Again::New),
        }
    }

    /// Hands the session to a rail: the transaction is the intent that is committed before the call. Whether the rail has it is
    /// not known from here on, so the session counts as being with it (contract §1.8).
    pub fn begin(
        &mut self,
        id: Id<Transaction>,
        method: Method,
        rail: String,
        fee: Money,
        now: Timestamp,
    ) -> Transaction {
        assert_eq!(self.status, SessionStatus::Pending, "only a pending session starts");
        assert!(self.transaction.is_none(), "one attempt a session");
        assert!(now < self.expires_at, "an attempt begins before the time runs out");
        assert_eq!(fee.currency, self.amount.currency, "a fee is taken of the amount");
        assert!(fee.minor >= 0, "a fee is never negative");
        assert!(fee.minor <= self.amount.minor, "a fee is a part of the amount");
        self.method = Some(method);
        self.transaction = Some(id);
        self.status = SessionStatus::Processing;
        self.touch(now);
        let now = self.updated_at;
        Transaction {
            id,
            scope: self.scope,
            version: 0,
            payable: self.payable,
            source: Source::Provider(Attempt { session: self.id, method, rail }),
            amount: self.amount,
            fee,
            status: TransactionStatus::Pending,
            step: Step::Sending,
            payer: self.payer.clone(),
            metadata: self.metadata.clone(),
            rail_reference: None,
            failure_reason: None,
            duplicate: false,
            late: false,
            parked: None,
            transitions: vec![Transition { status: TransactionStatus::Pending, at: now }],
            refunded_minor: 0,
            refunding_minor: 0,
            attempt_count: 1,
            questions: 0,
            code_sent_at: None,
            code_told: false,
            expires_at: None,
            created_at: now.floor_to_second(),
            updated_at: now,
        }
    }

    pub fn told(&self) -> Told {
        Told {
            payer: self.payer.clone(),
            metadata: self.metadata.clone(),
            success_url: self.success_url.clone(),
            failure_url: self.failure_url.clone(),
        }
    }

    /// More is told while the attempt is under way: the session and its attempt both have it. The phone stays the one that was
    /// handed to the rail, where it can't be changed. Whether any of it is new.
    pub fn tell(&mut self, transaction: &mut Transaction, mut told: Told, now: Timestamp) -> bool {
        self.assert_pair(transaction);
        assert!(self.is_open(), "what is over keeps what was told of it");
        told.payer.phone.clone_from(&self.payer.phone);
        let is_new = told != self.told();
        if is_new {
            transaction.payer = told.payer.clone();
            transaction.metadata = told.metadata.clone();
            (self.payer, self.metadata) = (told.payer, told.metadata);
            (self.success_url, self.failure_url) = (told.success_url, told.failure_url);
            self.touch_both(transaction, now);
        }
        is_new
    }

    /// Closes a session that nobody will use any more. An attempt that the provider has goes on:
    /// its outcome decides.
    pub fn close(&mut self, transaction: Option<&mut Transaction>, expired: bool, now: Timestamp) {
        let attempt = transaction.as_ref().map(|transaction| transaction.id);
        assert_eq!(self.transaction, attempt, "a session is closed with its attempt");
        if self.status != SessionStatus::Pending {
            return;
        }
        self.status = SessionStatus::Cancelled;
        self.next_action = None;
        self.failure_reason = expired.then_some(FailureReason::Expired);
        self.touch(now);
        if let Some(transaction) = transaction.filter(|transaction| transaction.status == TransactionStatus::Pending) {
            transaction.failure_reason = self.failure_reason;
            transaction.go(if expired { TransactionStatus::Expired } else { TransactionStatus::Cancelled }, now);
        }
    }

    fn is_open(&self) -> bool {
        match self.status {
            SessionStatus::Pending | SessionStatus::Processing => true,
            SessionStatus::Succeeded | SessionStatus::Failed | SessionStatus::Cancelled => false,
        }
    }

    fn awaits_code(&self) -> bool {
        matches!(self.next_action, Some(NextAction::Otp { .. }))
    }

    pub fn is_past_expiry(&self, now: Timestamp) -> bool {
        match crate::planted!(Defect::SessionExpiryInclusive) {
            true => now.max(self.updated_at) > self.expires_at,
            false => now.max(self.updated_at) >= self.expires_at,
        }
    }

    /// Its time ran out while nobody used it, whether or not the timer ran.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.status == SessionStatus::Pending && self.is_past_expiry(now)
    }

    /// Until when what its rail has is waited for, once its time ran out: whoever began late has a while to end it.
    pub fn waits_until(&self, transaction: &Transaction) -> Timestamp {
        let code_sent_at = transaction.code_sent_at.unwrap_or(transaction.created_at);
        self.expires_at.max(transaction.updated_at.max(code_sent_at).plus(PATIENCE))
    }

    /// The clock was looked at while an attempt that is with the provider kept it open: whoever ends that may have looked before.
    pub fn observe(&mut self, now: Timestamp) {
        if self.status == SessionStatus::Processing {
            self.touch(now);
        }
    }

    /// Two halves of one payment.
    fn assert_pair(&self, transaction: &Transaction) {
        assert_eq!(self.transaction, Some(transaction.id), "session and transaction belong together");
        assert_eq!(transaction.attempt().session, self.id, "transaction and session belong together");
        assert_eq!(transaction.amount, self.amount, "both are about the same money");
        let is_paid = transaction.status.is_paid();
        assert_eq!(self.status == SessionStatus::Succeeded, is_paid, "both are paid, or neither");
    }

    /// What enters every transition. A process of an earlier version, which an upgrade leaves running beside this one, moves
    /// the session and knows nothing of the time in the transaction: that is set right and not held against the payment.
    fn enter(&self, transaction: &mut Transaction) {
        self.assert_pair(transaction);
        if transaction.expires_at.is_some() {
            self.set_expiry(transaction);
        }
    }

    /// What the provider has does not run out; what waits for its payer runs out with the session.
    fn set_expiry(&self, transaction: &mut Transaction) {
        let runs_out = self.status == SessionStatus::Pending && transaction.status == TransactionStatus::Pending;
        transaction.expires_at = runs_out.then_some(self.expires_at);
    }

    /// From when on a new code may be sent in place of the one that is awaited; `None` where none is.
    pub fn code_again_at(&self, transaction: &Transaction) -> Option<Timestamp> {
        match (self.status, &self.next_action) {
            (SessionStatus::Pending, Some(NextAction::Otp { resend_after_s, .. })) => {
                Some(transaction.created_at.plus(Duration::from_secs(u64::from(*resend_after_s))))
            }
            _ => None,
        }
    }

    /// The number of the next event that counts on this session.
    pub fn next_sequence(&mut self) -> i64 {
        assert!(self.event_sequence >= 0, "events are counted from one");
        self.event_sequence += 1;
        self.event_sequence
    }

    /// Whether the provider has the attempt and its outcome is open.
    pub fn is_with_provider(&self) -> bool {
        self.status == SessionStatus::Processing
    }

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = self.updated_at.max(now);
    }

    fn touch_both(&mut self, transaction: &mut Transaction, now: Timestamp) {
        self.touch(now);
        transaction.updated_at = transaction.updated_at.max(now);
    }
}

#[cfg(test)]
mod code_race_tests;
#[cfg(test)]
mod tests;
