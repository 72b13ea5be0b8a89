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
use crate::rail::{self, FailureReason};
use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::time::Timestamp;

/// The call that brings a code to its rail is over after this, whatever became of it.
const LONGEST_CODE_CALL: Duration = Duration::from_secs(30);

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
    /// As it was agreed when the attempt began; [`Transaction::fee`] is what is taken.
    pub(super) fee: Money,
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
    /// Paid back so far, in minor units.
    #[serde(default)]
    pub(super) refunded_minor: i64,
    /// Asked back and not decided: what counts as gone until it is.
    #[serde(default)]
    pub(super) refunding_minor: i64,
    /// Which attempt at its object this was, from one.
    #[serde(default = "first")]
    pub attempt_count: i64,
    /// Questions asked so far: the pauses between them grow.
    #[serde(default)]
    pub questions: u32,
    /// When a code was handed over whose call has not been answered.
    #[serde(default)]
    pub(super) code_sent_at: Option<Timestamp>,
    /// The rail has said by itself what came of that code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) code_told: bool,
    /// From when on readers are told that it expired, while it waits for its payer; what was stored before this was goes by
    /// its timer alone.
    #[serde(default)]
    pub(super) expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

fn first() -> i64 {
    1
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
    PartiallyRefunded,
    Refunded,
}

impl TransactionStatus {
    pub const ALL: [TransactionStatus; 8] = [
        TransactionStatus::Pending,
        TransactionStatus::Processing,
        TransactionStatus::Completed,
        TransactionStatus::Failed,
        TransactionStatus::Cancelled,
        TransactionStatus::Expired,
        TransactionStatus::PartiallyRefunded,
        TransactionStatus::Refunded,
    ];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Money came, whatever was paid back since.
    pub fn is_paid(self) -> bool {
        match self {
            TransactionStatus::Completed | TransactionStatus::PartiallyRefunded | TransactionStatus::Refunded => true,
            TransactionStatus::Pending
            | TransactionStatus::Processing
            | TransactionStatus::Failed
            | TransactionStatus::Cancelled
            | TransactionStatus::Expired => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            TransactionStatus::Pending => "pending",
            TransactionStatus::Processing => "processing",
            TransactionStatus::Completed => "completed",
            TransactionStatus::Failed => "failed",
            TransactionStatus::Cancelled => "cancelled",
            TransactionStatus::Expired => "expired",
            TransactionStatus::PartiallyRefunded => "partially_refunded",
            TransactionStatus::Refunded => "refunded",
        }
    }

    /// The edges of contract §4.3, and no others.
    pub(super) fn may_become(self, next: Self) -> bool {
        use TransactionStatus::{
            Cancelled, Completed, Expired, Failed, PartiallyRefunded, Pending, Processing, Refunded,
        };
        match self {
            Pending => matches!(next, Processing | Completed | Failed | Cancelled | Expired),
            Processing => matches!(next, Completed | Failed),
            Failed | Cancelled | Expired => next == Completed,
            Completed => matches!(next, PartiallyRefunded | Refunded),
            PartiallyRefunded => next == Refunded,
            Refunded => false,
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
    /// Where it began; nowhere if it was recorded by hand. What was stored before this was does not say.
    #[serde(default)]
    pub session: Option<Id<PaymentSession>>,
}

impl TransactionSummary {
    pub fn is_pending(&self) -> bool {
        self.status == TransactionStatus::Pending.as_str()
    }

    pub fn is_completed(&self) -> bool {
        self.status == TransactionStatus::Completed.as_str()
    }

    /// Money came, whatever was paid back since.
    pub fn is_paid(&self) -> bool {
        TransactionStatus::parse(&self.status).is_some_and(TransactionStatus::is_paid)
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

    /// Whether it may be at its rail, and nobody is handing it over: then the rail can be told to drop it.
    pub fn may_be_withdrawn(&self) -> bool {
        match self.step {
            Step::Waiting | Step::Unknown => true,
            Step::Sending | Step::Settled => false,
        }
    }

    /// Whether nobody knows what became of a call for it; also while that call is made once more.
    pub fn is_outcome_unknown(&self) -> bool {
        self.step == Step::Unknown || self.is_start_repeated()
    }

    /// Whether a person may say what became of it: nobody knows, or its rail has it and has not said so far.
    pub fn is_undecided(&self) -> bool {
        self.step == Step::Unknown
            || self.parked.is_some()
            || (self.step != Step::Settled && self.status == TransactionStatus::Processing && !self.is_start_repeated())
    }

    /// No person decides what is known, or what its rail may be taking in this moment.
    pub fn refuse_unless_undecided(&self, now: Timestamp) -> Result<(), Refusal> {
        if !self.is_undecided() {
            return Err(Refusal::AttemptNotUnknown { status: self.status.as_str() });
        }
        match self.code_on_its_way_until() {
            Some(until) if self.awaits_word_of_code(now) => Err(Refusal::AttemptCodeOnItsWay { until }),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the call that starts it is made once more, or was when its process died.
    pub(super) fn is_start_repeated(&self) -> bool {
        self.step == Step::Sending && self.status == TransactionStatus::Processing
    }

    /// What is taken of the amount if it comes, or was when it came: nothing of what came twice.
    pub fn fee(&self) -> Money {
        let is_waived = self.duplicate && !crate::planted!(Defect::SecondMoneyShowsFee);
        if is_waived { Money::new(0, self.fee.currency) } else { self.fee }
    }

    pub fn agreed_fee(&self) -> Money {
        self.fee
    }

    pub fn net(&self) -> Money {
        self.amount.checked_sub(self.fee()).expect("a fee is a part of the amount")
    }

    pub fn summary(&self) -> TransactionSummary {
        TransactionSummary {
            id: self.id,
            status: self.status.as_str().into(),
            amount: self.amount,
            fee: self.fee(),
            net: self.net(),
            session: match &self.source {
                Source::Provider(attempt) => Some(attempt.session),
                Source::Manual(_) => None,
            },
        }
    }

    /// The same, as it was shown in the moment before money came.
    pub fn summary_before_money(&self) -> TransactionSummary {
        let before = self.transitions.iter().rev().find(|transition| !transition.status.is_paid());
        let status = before.map_or(self.status, |before| before.status);
        TransactionSummary { status: status.as_str().into(), ..self.summary() }
    }

    /// Fee and refunds are parts of the amount, which is taken for granted wherever they are shown or counted.
    pub fn adds_up(&self) -> bool {
        let is_part = |minor: i64| (0..=self.amount.minor).contains(&minor);
        let refunds = self.refunded_minor.checked_add(self.refunding_minor);
        self.fee.currency == self.amount.currency
            && [self.fee.minor, self.refunded_minor, self.refunding_minor].into_iter().all(is_part)
            && refunds.is_some_and(is_part)
    }

    pub fn refunded(&self) -> Money {
        Money::new(self.refunded_minor, self.amount.currency)
    }

    /// Asked back, with an open outcome.
    pub fn refunding(&self) -> Money {
        Money::new(self.refunding_minor, self.amount.currency)
    }

    /// What can still be asked back.
    pub fn refundable(&self) -> Money {
        let left = self.amount.checked_sub(self.refunded()).and_then(|left| left.checked_sub(self.refunding()));
        left.expect("refunds are a part of what was paid")
    }

    /// A part, or all that is left, is asked back. From here on it counts, whatever becomes of it.
    pub(crate) fn refund_asked(&mut self, amount: Option<Money>, now: Timestamp) -> Result<Money, Refusal> {
        match self.status {
            TransactionStatus::Completed | TransactionStatus::PartiallyRefunded => {}
            TransactionStatus::Refunded => return Err(Refusal::TransactionAlreadyRefunded),
            TransactionStatus::Pending
            | TransactionStatus::Processing
            | TransactionStatus::Failed
            | TransactionStatus::Cancelled
            | TransactionStatus::Expired => {
                return Err(Refusal::TransactionNotRefundable { status: self.status.as_str() });
            }
        }
        let left = match crate::planted!(Defect::RefundBoundForgotten) {
            true => self.amount,
            false => self.refundable(),
        };
        let amount = amount.unwrap_or(if crate::planted!(Defect::RefundDefaultIsWhole) { self.amount } else { left });
        assert_eq!(amount.currency, self.amount.currency, "an amount is read in the transaction's currency");
        assert!(amount.minor >= 0, "an amount is read as positive");
        if amount.minor == 0 || amount.minor > left.minor {
            return Err(Refusal::RefundExceedsAmount { left });
        }
        self.refunding_minor += amount.minor;
        self.updated_at = self.updated_at.max(now);
        self.assert_refunds();
        Ok(amount)
    }

    /// The outcome of what was asked back: gone, or here again.
    pub(crate) fn refund_ended(&mut self, amount: Money, is_completed: bool, now: Timestamp) {
        assert!(amount.minor <= self.refunding_minor, "only what was asked back has an outcome");
        if is_completed || !crate::planted!(Defect::FailedRefundKeepsHold) {
            self.refunding_minor -= amount.minor;
        }
        if is_completed {
            self.paid_back(amount, now)
        } else {
            self.updated_at = self.updated_at.max(now)
        }
        self.assert_refunds();
    }

    /// What had failed went through after all; `false` where something else took its place meanwhile.
    pub(crate) fn refund_corrected(&mut self, amount: Money, now: Timestamp) -> bool {
        let fits = amount.minor <= self.refundable().minor;
        if fits {
            self.paid_back(amount, now);
            self.assert_refunds();
        }
        fits
    }

    fn paid_back(&mut self, amount: Money, now: Timestamp) {
        self.refunded_minor += amount.minor;
        let next = if self.refunded_minor == self.amount.minor || crate::planted!(Defect::PartIsWhole) {
            TransactionStatus::Refunded
        } else {
            TransactionStatus::PartiallyRefunded
        };
        match self.status == next {
            true => self.updated_at = self.updated_at.max(now),
            false => self.go(next, now),
        }
    }

    /// At every moment, whatever races (P6).
    fn assert_refunds(&self) {
        assert!(self.refunded_minor >= 0, "nothing is paid back twice");
        assert!(self.refunding_minor >= 0, "what is asked back has one outcome");
        assert!(self.refunded_minor <= self.amount.minor - self.refunding_minor, "refunds are at most what was paid");
        let is_refunded = self.refunded_minor > 0;
        assert_eq!(is_refunded, self.status.is_paid() && self.status != TransactionStatus::Completed, "status and sum");
    }

    /// Whether the rail has to be asked (again), and how long to wait before.
    pub fn next_question(&mut self, now: Timestamp) -> Option<Duration> {
        if self.step == Step::Settled {
            return None;
        }
        let pause = rail::pause(self.questions, now.since(self.created_at));
        self.questions += 1;
        Some(pause)
    }

    /// How long to wait before the rail is called again, after as many questions as it was asked, where a payer waits for that.
    pub fn pause(&self) -> Duration {
        rail::pause(self.questions, Duration::ZERO)
    }

    /// Since when the latest code is on its way.
    pub fn code_sent_at(&self) -> Option<Timestamp> {
        self.code_sent_at
    }

    /// Until when a code may be on its way, whose call goes on or was lost.
    pub fn code_on_its_way_until(&self) -> Option<Timestamp> {
        self.code_sent_at.map(|at| at.plus(LONGEST_CODE_CALL))
    }

    pub(super) fn no_code_is_sent(&mut self) {
        self.code_sent_at = None;
        self.code_told = false;
    }

    /// Whether the call that brings a code may go on, or what it brought may still arrive.
    pub fn is_code_on_its_way(&self, now: Timestamp) -> bool {
        self.code_on_its_way_until().is_some_and(|until| now < until)
    }

    /// Whether what is heard of the attempt may be older than its code, of which its rail has said nothing yet.
    pub(super) fn awaits_word_of_code(&self, now: Timestamp) -> bool {
        self.is_code_on_its_way(now) && !self.code_told
    }

    pub fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
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
        // Nothing waits for a payer twice.
        self.expires_at = None;
        self.transitions.push(Transition { status, at });
        self.updated_at = at;
    }
}
