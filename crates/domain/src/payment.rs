//! A payment session and its transaction: one attempt to pay, and what became of it
//! (contract §4.2, §4.3).
//!
//! A session exists from the moment somebody wants to pay; its transaction from the moment an
//! attempt is handed to a rail. What the outcome means for the paid object is that object's rule.

mod payable;
mod transaction;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::customer::Customer;
use crate::id::{Id, Object};
use crate::metadata::Metadata;
use crate::method::{Flow, Method};
use crate::money::Money;
use crate::phone::Msisdn;
use crate::rail::{Called, FailureReason, NextAction, Report, Started};
use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::time::Timestamp;

pub use payable::{Payable, Settlement};
pub use transaction::{
    Attempt, Recording, Source, Step, Transaction, TransactionStatus, TransactionSummary, Transition,
};

/// A one-time code where the rail's own answer about it was lost (contract §5).
const CODE_LENGTH: u8 = 6;
const RESEND_AFTER_S: u32 = 30;

/// A session of what has no deadline of its own can be used for so long.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(24 * 3600);

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

    /// Somebody asks by the paid object to pay `amount` with `method`, or leaves it open.
    pub fn again(&self, method: Option<Method>, amount: Money) -> Result<Again, Refusal> {
        match self.status {
            SessionStatus::Processing if crate::planted!(Defect::ProcessingSessionReplaced) => Ok(Again::New),
            SessionStatus::Processing => Err(Refusal::PaymentInProgress),
            SessionStatus::Succeeded => Err(Refusal::PaymentAlreadySucceeded),
            SessionStatus::Failed | SessionStatus::Cancelled => Ok(Again::New),
            SessionStatus::Pending if self.amount != amount => Ok(Again::Replace),
            SessionStatus::Pending => match (self.method, method) {
                (Some(open), Some(wanted)) if open != wanted && !crate::planted!(Defect::OtherMethodKept) => {
                    Ok(Again::Replace)
                }
                (Some(_), Some(_)) | (None, _) | (_, None) => Ok(Again::Same),
            },
        }
    }

    /// Hands the session to a rail: the transaction is the intent that is committed before the call.
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
            created_at: now.floor_to_second(),
            updated_at: now,
        }
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

    /// The payer came back from the rail's page: no proof of anything, but nothing new may begin.
    pub fn returned(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        self.assert_pair(transaction);
        let was_sent_away = transaction.attempt().method.flow() == Flow::Redirect;
        let counts = was_sent_away && self.status == SessionStatus::Pending && !self.is_past_expiry(now);
        if !counts || transaction.step == Step::Settled {
            return Moved::Nowhere;
        }
        if crate::planted!(Defect::ReturnIsProof) {
            return self.succeed(transaction, now);
        }
        self.process(transaction, now)
    }

    /// What the call that starts the payment brought.
    pub fn started(&mut self, transaction: &mut Transaction, called: Called<Started>, now: Timestamp) -> Moved {
        self.assert_pair(transaction);
        match (transaction.step, called) {
            // The outcome was faster than this answer.
            (Step::Settled, _) => Moved::Nowhere,
            // Another run of the same call was faster, or the rail's word: that tells no payer where to go.
            (Step::Waiting, Called::Answered(started)) if self.next_action.is_none() && self.is_open() => {
                self.accepted(transaction, started, now)
            }
            (Step::Waiting, _) => Moved::Nowhere,
            // What it reports is not what was asked for: no answer clears that.
            (Step::Unknown, _) if transaction.parked.is_some() => Moved::Nowhere,
            (Step::Sending | Step::Unknown, Called::Answered(started)) => self.accepted(transaction, started, now),
            (Step::Sending | Step::Unknown, Called::Refused(reason)) => self.fail(transaction, reason, now),
            (Step::Sending | Step::Unknown, Called::Lost(_)) if crate::planted!(Defect::LostStartFails) => {
                self.fail(transaction, FailureReason::ProviderError, now)
            }
            (Step::Sending | Step::Unknown, Called::Lost(_)) => self.lose(transaction, now),
        }
    }

    fn accepted(&mut self, transaction: &mut Transaction, started: Started, now: Timestamp) -> Moved {
        assert_ne!(transaction.step, Step::Settled, "an attempt that is over is not accepted");
        let was_unknown = transaction.step == Step::Unknown;
        transaction.step = Step::Waiting;
        transaction.rail_reference = started.rail_reference.or(transaction.rail_reference.take());
        self.outcome_unknown = false;
        let with_provider = matches!(started.next_action, NextAction::ApproveOnPhone { .. });
        if self.is_open() {
            self.next_action = Some(started.next_action);
        }
        if with_provider && self.status == SessionStatus::Pending {
            return self.process(transaction, now);
        }
        // Known again, and nothing happened yet: a code is taken by a pending session only.
        if was_unknown && self.awaits_code() {
            self.status = SessionStatus::Pending;
        }
        self.touch_both(transaction, now);
        Moved::On
    }

    /// A code is on its way to the rail: from here on the provider has the attempt.
    pub fn submit_code(&mut self, transaction: Option<&Transaction>, now: Timestamp) -> Result<(), Refusal> {
        self.refuse_if_closed()?;
        let attempt = transaction.map(|transaction| transaction.id);
        assert_eq!(self.transaction, attempt, "a code is for the session's own attempt");
        match self.status {
            SessionStatus::Processing => Err(Refusal::PaymentInProgress),
            SessionStatus::Pending if self.awaits_code() => {
                assert!(transaction.is_some(), "only an attempt asks for a code");
                assert!(
                    transaction.is_some_and(|transaction| transaction.step != Step::Settled),
                    "an attempt that is over asks for nothing"
                );
                self.status = SessionStatus::Processing;
                self.failure_reason = None;
                self.touch(now);
                Ok(())
            }
            SessionStatus::Pending | SessionStatus::Succeeded | SessionStatus::Failed | SessionStatus::Cancelled => {
                Err(Refusal::CodeNotExpected)
            }
        }
    }

    /// What the call that submits a code brought.
    pub fn code_submitted(&mut self, transaction: &mut Transaction, called: Called<Report>, now: Timestamp) -> Moved {
        self.assert_pair(transaction);
        match (transaction.step, called) {
            (_, Called::Answered(report)) => self.reported(transaction, &report, now),
            // The outcome was faster than this answer: a refusal of the call takes nothing back.
            (Step::Settled, _) => Moved::Nowhere,
            (Step::Unknown, Called::Refused(_)) if transaction.parked.is_some() => Moved::Nowhere,
            (Step::Sending | Step::Waiting | Step::Unknown, Called::Refused(reason)) => {
                self.fail(transaction, reason, now)
            }
            (Step::Waiting, Called::Lost(_)) => self.lose(transaction, now),
            (Step::Sending | Step::Unknown, Called::Lost(_)) => Moved::Nowhere,
        }
    }

    /// The rail's verified word. The last verified word wins, but paid is final.
    pub fn reported(&mut self, transaction: &mut Transaction, report: &Report, now: Timestamp) -> Moved {
        self.assert_pair(transaction);
        if transaction.status.is_paid() {
            assert_eq!(transaction.step, Step::Settled, "nobody asks about money that arrived");
            return Moved::Nowhere;
        }
        match report {
            Report::Paid { .. } if transaction.step == Step::Settled && crate::planted!(Defect::CorrectionIgnored) => {
                Moved::Nowhere
            }
            Report::Paid { amount, rail_reference } => {
                if *amount != transaction.amount && !crate::planted!(Defect::WrongAmountTaken) {
                    return self.park(
                        transaction,
                        format!("the rail reports {amount} {} instead", amount.currency),
                        now,
                    );
                }
                transaction.rail_reference = Some(rail_reference.clone());
                self.succeed(transaction, now)
            }
            Report::Failed { reason } => match transaction.step {
                Step::Settled => Moved::Nowhere,
                Step::Sending | Step::Waiting | Step::Unknown => self.fail(transaction, *reason, now),
            },
            // Not an outcome: it does not clear what a person has to look at.
            Report::AwaitingCode { .. } | Report::Open | Report::Processing
                if transaction.parked.is_some() && !crate::planted!(Defect::ParkedIsCleared) =>
            {
                Moved::Nowhere
            }
            Report::AwaitingCode { attempts_left } => self.await_code(transaction, *attempts_left, now),
            Report::Open => self.open_at_rail(transaction, now),
            Report::Processing => match (self.status, transaction.step) {
                (_, Step::Settled)
                | (SessionStatus::Succeeded | SessionStatus::Failed | SessionStatus::Cancelled, _) => Moved::Nowhere,
                (SessionStatus::Pending, Step::Waiting) if self.is_past_expiry(now) => Moved::Nowhere,
                (SessionStatus::Processing, Step::Waiting)
                    if transaction.status == TransactionStatus::Processing && !self.awaits_code() =>
                {
                    Moved::Nowhere
                }
                (SessionStatus::Pending | SessionStatus::Processing, Step::Sending | Step::Waiting | Step::Unknown) => {
                    transaction.step = Step::Waiting;
                    self.outcome_unknown = false;
                    if self.awaits_code() {
                        // The rail took the code: there is nothing left to type.
                        self.next_action = None;
                    }
                    self.process(transaction, now)
                }
            },
            // No proof that the lost call will not take effect yet.
            Report::NotFound => Moved::Nowhere,
        }
    }

    /// A person who looked it up decides what nobody else can tell.
    pub fn resolved(&mut self, transaction: &mut Transaction, paid: bool, now: Timestamp) -> Result<Moved, Refusal> {
        self.assert_pair(transaction);
        let undecided = transaction.step == Step::Unknown
            || transaction.parked.is_some()
            || (transaction.step != Step::Settled && transaction.status == TransactionStatus::Processing);
        if !undecided {
            return Err(Refusal::AttemptNotUnknown { status: transaction.status.as_str() });
        }
        assert!(!transaction.status.is_paid(), "paid is final");
        transaction.parked = None;
        Ok(if paid {
            self.succeed(transaction, now)
        } else {
            self.fail(transaction, FailureReason::ProviderError, now)
        })
    }

    fn succeed(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        assert!(!transaction.status.is_paid(), "an attempt is paid once");
        assert_ne!(self.status, SessionStatus::Succeeded, "a session succeeds once");
        transaction.step = Step::Settled;
        transaction.failure_reason = None;
        transaction.parked = None;
        transaction.go(TransactionStatus::Completed, now);
        self.status = SessionStatus::Succeeded;
        self.failure_reason = None;
        self.outcome_unknown = false;
        self.next_action = None;
        self.touch(now);
        Moved::ToPaid
    }

    fn fail(&mut self, transaction: &mut Transaction, reason: FailureReason, now: Timestamp) -> Moved {
        assert!(!transaction.status.is_paid(), "paid is final");
        assert_ne!(self.status, SessionStatus::Succeeded, "paid is final for its session too");
        transaction.step = Step::Settled;
        let was_open = self.is_open();
        match transaction.status {
            TransactionStatus::Pending | TransactionStatus::Processing => {
                transaction.failure_reason = Some(reason);
                transaction.go(TransactionStatus::Failed, now);
            }
            TransactionStatus::Failed | TransactionStatus::Cancelled | TransactionStatus::Expired => {}
            TransactionStatus::Completed | TransactionStatus::PartiallyRefunded | TransactionStatus::Refunded => {
                unreachable!("asserted above")
            }
        }
        // A session that was closed or failed before keeps its word; the attempt behind it is over as well.
        if !was_open && !crate::planted!(Defect::LateOutcomeReopens) {
            self.outcome_unknown = false;
            self.touch_both(transaction, now);
            return Moved::On;
        }
        self.status = SessionStatus::Failed;
        self.failure_reason = Some(reason);
        self.outcome_unknown = false;
        self.next_action = None;
        self.touch(now);
        Moved::ToFailed
    }

    fn lose(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        assert_ne!(transaction.step, Step::Settled, "what is decided is not lost");
        if transaction.step == Step::Unknown {
            return Moved::Nowhere;
        }
        transaction.step = Step::Unknown;
        self.outcome_unknown = !crate::planted!(Defect::UnknownNotShown);
        self.process(transaction, now)
    }

    fn park(&mut self, transaction: &mut Transaction, why: String, now: Timestamp) -> Moved {
        assert!(!transaction.status.is_paid(), "paid is final");
        if transaction.parked.as_deref() == Some(&why) {
            return Moved::Nowhere;
        }
        transaction.parked = Some(why);
        self.outcome_unknown = true;
        transaction.step = Step::Unknown;
        self.process(transaction, now)
    }

    fn await_code(&mut self, transaction: &mut Transaction, left: u8, now: Timestamp) -> Moved {
        let is_submitted = self.status == SessionStatus::Processing && (self.awaits_code() || self.outcome_unknown);
        // The answer to a question of before may have overtaken the rail's word about the code.
        let was_tried = match self.next_action {
            Some(NextAction::Otp { attempts_left, .. }) => {
                self.status == SessionStatus::Pending && left < attempts_left
            }
            _ => false,
        };
        if transaction.step == Step::Settled || (!is_submitted && !was_tried) {
            return Moved::Nowhere;
        }
        if transaction.attempt().method.flow() != Flow::Otp {
            return Moved::Nowhere;
        }
        match &mut self.next_action {
            // An older word than the one that is known.
            Some(NextAction::Otp { attempts_left, .. }) if left > *attempts_left => return Moved::Nowhere,
            Some(NextAction::Otp { attempts_left, .. }) => {
                if left < *attempts_left {
                    self.failure_reason = Some(FailureReason::WrongCode);
                }
                if !crate::planted!(Defect::CodeTriesForgotten) {
                    *attempts_left = left;
                }
            }
            // The answer that told so was lost.
            Some(_) | None => {
                self.next_action =
                    Some(NextAction::Otp { length: CODE_LENGTH, resend_after_s: RESEND_AFTER_S, attempts_left: left })
            }
        }
        transaction.step = Step::Waiting;
        self.outcome_unknown = false;
        self.status = SessionStatus::Pending;
        self.touch_both(transaction, now);
        assert!(self.awaits_code(), "a code that is awaited can be submitted");
        Moved::On
    }

    fn open_at_rail(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        // Found again after a lost answer: it is known to be there, and waits for the payer.
        if transaction.step == Step::Unknown || transaction.step == Step::Sending {
            transaction.step = Step::Waiting;
            self.outcome_unknown = false;
            self.touch_both(transaction, now);
            return Moved::On;
        }
        Moved::Nowhere
    }

    fn process(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        assert_ne!(transaction.step, Step::Settled, "an attempt that is over goes nowhere");
        assert!(!transaction.status.is_paid(), "paid is final");
        // A session that nobody had used when its time ran out is expired, whether or not the timer ran.
        let begins = self.status == SessionStatus::Pending && !self.is_past_expiry(now);
        if begins {
            self.status = SessionStatus::Processing;
        }
        if self.status == SessionStatus::Processing && transaction.status == TransactionStatus::Pending {
            transaction.go(TransactionStatus::Processing, now);
            // Now somebody waits for the outcome: the rail is asked often again.
            transaction.questions = 0;
        }
        self.touch_both(transaction, now);
        Moved::On
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

    fn is_past_expiry(&self, now: Timestamp) -> bool {
        match crate::planted!(Defect::SessionExpiryInclusive) {
            true => now.max(self.updated_at) > self.expires_at,
            false => now.max(self.updated_at) >= self.expires_at,
        }
    }

    /// Its time ran out while nobody used it, whether or not the timer ran.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.status == SessionStatus::Pending && self.is_past_expiry(now)
    }

    /// What enters every transition: two halves of one payment.
    fn assert_pair(&self, transaction: &Transaction) {
        assert_eq!(self.transaction, Some(transaction.id), "session and transaction belong together");
        assert_eq!(transaction.attempt().session, self.id, "transaction and session belong together");
        assert_eq!(transaction.amount, self.amount, "both are about the same money");
        let is_paid = transaction.status.is_paid();
        assert_eq!(self.status == SessionStatus::Succeeded, is_paid, "both are paid, or neither");
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
