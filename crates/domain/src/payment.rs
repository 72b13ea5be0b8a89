//! A payment session and its transaction: one attempt to pay, and what became of it
//! (contract §4.2, §4.3).
//!
//! A session exists from the moment somebody wants to pay; its transaction from the moment an
//! attempt is handed to a rail. What the outcome means for the paid object is that object's rule.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checkout::Checkout;
use crate::id::{Id, Object};
use crate::metadata::Metadata;
use crate::method::Method;
use crate::money::Money;
use crate::phone::Msisdn;
use crate::rail::{Called, FailureReason, NextAction, Report, Started};
use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::time::Timestamp;

/// Between two questions to a rail, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// What is being paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "id", rename_all = "snake_case")]
pub enum Payable {
    Checkout(Id<Checkout>),
}

impl Payable {
    pub fn kind(&self) -> &'static str {
        match self {
            Payable::Checkout(_) => "checkout",
        }
    }

    pub fn object_id(&self) -> String {
        match self {
            Payable::Checkout(id) => id.to_string(),
        }
    }
}

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

/// One attempt: its id is the reference towards the rail, so nothing is ever charged twice for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    pub id: Id<Transaction>,
    pub scope: Scope,
    pub version: i64,
    pub session: Id<PaymentSession>,
    pub payable: Payable,
    pub method: Method,
    /// Which connector has it: `simulator`, `wave` …
    pub rail: String,
    pub amount: Money,
    pub fee: Money,
    status: TransactionStatus,
    step: Step,
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
        assert!(fee.minor <= self.amount.minor, "a fee is a part of the amount");
        self.method = Some(method);
        self.transaction = Some(id);
        self.touch(now);
        Transaction {
            id,
            scope: self.scope,
            version: 0,
            session: self.id,
            payable: self.payable,
            method,
            rail,
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
            questions: 0,
            created_at: now.floor_to_second(),
            updated_at: now,
        }
    }

    /// Closes a session that nobody will use any more. An attempt that the provider has goes on:
    /// its outcome decides.
    pub fn close(&mut self, transaction: Option<&mut Transaction>, expired: bool, now: Timestamp) {
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
        assert_eq!(self.transaction, Some(transaction.id), "session and transaction belong together");
        if self.status != SessionStatus::Pending || transaction.step == Step::Settled {
            return Moved::Nowhere;
        }
        self.process(transaction, now)
    }

    /// What the call that starts the payment brought.
    pub fn started(&mut self, transaction: &mut Transaction, called: Called<Started>, now: Timestamp) -> Moved {
        assert_eq!(self.transaction, Some(transaction.id), "session and transaction belong together");
        // The outcome, or another run of the same call, may have been faster than this answer.
        if transaction.step != Step::Sending && transaction.step != Step::Unknown {
            return Moved::Nowhere;
        }
        match called {
            Called::Answered(started) => {
                transaction.step = Step::Waiting;
                transaction.rail_reference = started.rail_reference.or(transaction.rail_reference.take());
                self.outcome_unknown = false;
                let with_provider = matches!(started.next_action, NextAction::ApproveOnPhone { .. });
                if self.status == SessionStatus::Pending || self.status == SessionStatus::Processing {
                    self.next_action = Some(started.next_action);
                }
                if with_provider && self.status == SessionStatus::Pending {
                    return self.process(transaction, now);
                }
                self.touch(now);
                transaction.updated_at = transaction.updated_at.max(now);
                Moved::On
            }
            Called::Refused(reason) => self.fail(transaction, reason, now),
            Called::Lost(_) => self.lose(transaction, now),
        }
    }

    /// A code is on its way to the rail: from here on the provider has the attempt.
    pub fn submit_code(&mut self, transaction: Option<&Transaction>, now: Timestamp) -> Result<(), Refusal> {
        self.refuse_if_closed()?;
        let awaits_code = matches!(self.next_action, Some(NextAction::Otp { .. })) && transaction.is_some();
        match self.status {
            SessionStatus::Processing => Err(Refusal::PaymentInProgress),
            SessionStatus::Pending if awaits_code => {
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
        match called {
            Called::Answered(report) => self.reported(transaction, &report, now),
            Called::Refused(reason) => self.fail(transaction, reason, now),
            Called::Lost(_) if transaction.step == Step::Waiting => self.lose(transaction, now),
            Called::Lost(_) => Moved::Nowhere,
        }
    }

    /// The rail's verified word. The last verified word wins, but paid is final.
    pub fn reported(&mut self, transaction: &mut Transaction, report: &Report, now: Timestamp) -> Moved {
        assert_eq!(self.transaction, Some(transaction.id), "session and transaction belong together");
        if transaction.status == TransactionStatus::Completed {
            return Moved::Nowhere;
        }
        match report {
            Report::Paid { amount, rail_reference } => {
                if *amount != transaction.amount {
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
            Report::AwaitingCode { attempts_left } => self.await_code(transaction, *attempts_left, now),
            Report::Open => self.open_at_rail(transaction, now),
            Report::Processing => match (self.status, transaction.step) {
                (_, Step::Settled)
                | (SessionStatus::Succeeded | SessionStatus::Failed | SessionStatus::Cancelled, _) => Moved::Nowhere,
                (SessionStatus::Processing, Step::Waiting) if transaction.status == TransactionStatus::Processing => {
                    Moved::Nowhere
                }
                (SessionStatus::Pending | SessionStatus::Processing, _) => {
                    transaction.step = Step::Waiting;
                    self.outcome_unknown = false;
                    self.process(transaction, now)
                }
            },
            // No proof that the lost call will not take effect yet.
            Report::NotFound => Moved::Nowhere,
        }
    }

    /// A person who looked it up decides what nobody else can tell.
    pub fn resolved(&mut self, transaction: &mut Transaction, paid: bool, now: Timestamp) -> Result<Moved, Refusal> {
        let undecided = transaction.step == Step::Unknown
            || transaction.parked.is_some()
            || (transaction.step != Step::Settled && transaction.status == TransactionStatus::Processing);
        if !undecided {
            return Err(Refusal::AttemptNotUnknown { status: transaction.status.as_str() });
        }
        transaction.parked = None;
        Ok(if paid {
            self.succeed(transaction, now)
        } else {
            self.fail(transaction, FailureReason::ProviderError, now)
        })
    }

    fn succeed(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        transaction.step = Step::Settled;
        transaction.failure_reason = None;
        transaction.go(TransactionStatus::Completed, now);
        self.status = SessionStatus::Succeeded;
        self.failure_reason = None;
        self.outcome_unknown = false;
        self.next_action = None;
        self.touch(now);
        Moved::ToPaid
    }

    fn fail(&mut self, transaction: &mut Transaction, reason: FailureReason, now: Timestamp) -> Moved {
        transaction.step = Step::Settled;
        // A session that was closed before keeps its word; the attempt behind it is over as well.
        if self.status == SessionStatus::Cancelled {
            self.touch(now);
            transaction.updated_at = transaction.updated_at.max(now);
            return Moved::On;
        }
        transaction.failure_reason = Some(reason);
        transaction.go(TransactionStatus::Failed, now);
        self.status = SessionStatus::Failed;
        self.failure_reason = Some(reason);
        self.outcome_unknown = false;
        self.next_action = None;
        self.touch(now);
        Moved::ToFailed
    }

    fn lose(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        if transaction.step == Step::Unknown {
            return Moved::Nowhere;
        }
        transaction.step = Step::Unknown;
        self.outcome_unknown = true;
        if self.status == SessionStatus::Cancelled {
            self.touch(now);
            return Moved::On;
        }
        self.process(transaction, now)
    }

    fn park(&mut self, transaction: &mut Transaction, why: String, now: Timestamp) -> Moved {
        if transaction.parked.as_deref() == Some(&why) {
            return Moved::Nowhere;
        }
        transaction.parked = Some(why);
        self.outcome_unknown = true;
        transaction.step = Step::Unknown;
        if self.status == SessionStatus::Pending {
            return self.process(transaction, now);
        }
        self.touch(now);
        Moved::On
    }

    fn await_code(&mut self, transaction: &mut Transaction, left: u8, now: Timestamp) -> Moved {
        let is_submitted = self.status == SessionStatus::Processing
            && (transaction.status == TransactionStatus::Pending || self.outcome_unknown);
        // The answer to a question of before may have overtaken the rail's word about the code.
        let was_tried = match self.next_action {
            Some(NextAction::Otp { attempts_left, .. }) => {
                self.status == SessionStatus::Pending && left < attempts_left
            }
            _ => false,
        };
        if !is_submitted && !was_tried {
            return Moved::Nowhere;
        }
        if let Some(NextAction::Otp { attempts_left, .. }) = &mut self.next_action {
            if left < *attempts_left {
                self.failure_reason = Some(FailureReason::WrongCode);
            }
            *attempts_left = left;
        }
        transaction.step = Step::Waiting;
        self.outcome_unknown = false;
        self.status = SessionStatus::Pending;
        self.touch(now);
        transaction.updated_at = transaction.updated_at.max(now);
        Moved::On
    }

    fn open_at_rail(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        // Found again after a lost answer: it is known to be there, and waits for the payer.
        if transaction.step == Step::Unknown || transaction.step == Step::Sending {
            transaction.step = Step::Waiting;
            self.outcome_unknown = false;
            self.touch(now);
            return Moved::On;
        }
        Moved::Nowhere
    }

    fn process(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        if self.status == SessionStatus::Pending {
            self.status = SessionStatus::Processing;
        }
        if transaction.status == TransactionStatus::Pending {
            transaction.go(TransactionStatus::Processing, now);
            // Now somebody waits for the outcome: the rail is asked often again.
            transaction.questions = 0;
        }
        self.touch(now);
        transaction.updated_at = transaction.updated_at.max(now);
        Moved::On
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

    /// Whether the provider has the attempt and its outcome is open.
    pub fn is_with_provider(&self) -> bool {
        self.status == SessionStatus::Processing
    }

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = self.updated_at.max(now);
    }
}

impl Transaction {
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

    fn go(&mut self, status: TransactionStatus, now: Timestamp) {
        let at = self.updated_at.max(now);
        self.status = status;
        self.transitions.push(Transition { status, at });
        self.updated_at = at;
    }
}

#[cfg(test)]
mod code_race_tests;
#[cfg(test)]
mod tests;
