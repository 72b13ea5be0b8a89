//! Refunds: a part of a transaction's money on its way back to who paid it (contract §4.5).
//!
//! A refund and its transaction move together, so that all refunds of a transaction, open ones included, are at most what
//! was paid. Where the money is taken from in the books is `ledger`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{Id, Object};
use crate::money::Money;
use crate::payment::{self, Step, Transaction};
use crate::rail::{self, Called, FailureReason, RefundReport};
use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::time::Timestamp;

/// Of one transaction, open or done, before one has to take all that is left. A failed one leaves its place to another, so
/// that no rail's bad day uses them up.
pub const MOST_REFUNDS: i64 = 250;
/// Failed ones included: what the books say of one transaction has an end.
pub const MOST_REFUNDS_ASKED: i64 = 1_000;

/// Its id is the reference towards the rail, so nothing is ever paid back twice for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refund {
    pub id: Id<Refund>,
    pub scope: Scope,
    pub version: i64,
    pub transaction: Id<Transaction>,
    pub amount: Money,
    #[serde(flatten)]
    pub source: Source,
    #[serde(default)]
    pub reason: Option<String>,
    status: RefundStatus,
    step: Step,
    #[serde(default)]
    pub rail_reference: Option<String>,
    #[serde(default)]
    pub failure_reason: Option<FailureReason>,
    /// Why a person has to look: what the rail reports is not what was asked for.
    #[serde(default)]
    pub parked: Option<String>,
    pub moves: Vec<RefundMove>,
    /// Questions asked so far: the pauses between them grow.
    #[serde(default)]
    questions: u32,
    /// Events of this refund so far.
    #[serde(default)]
    pub event_sequence: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Object for Refund {
    const PREFIX: &'static str = "ref";
    const NOUN: &'static str = "refund";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefundMove {
    pub status: RefundStatus,
    pub at: Timestamp,
}

/// Whose money goes back, and who gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Source {
    /// The merchant's, who also keeps having paid the fee.
    Merchant { rail: String },
    /// It came twice and never was the merchant's to use.
    Unapplied { rail: String },
    /// It never was at a rail: the merchant gives it back as they got it.
    Offline,
}

impl Source {
    pub fn of(transaction: &Transaction) -> Self {
        match &transaction.source {
            payment::Source::Manual(_) => Source::Offline,
            payment::Source::Provider(attempt) => {
                let rail = attempt.rail.clone();
                if transaction.duplicate { Source::Unapplied { rail } } else { Source::Merchant { rail } }
            }
        }
    }

    /// Which connector pays it back.
    pub fn rail(&self) -> Option<&str> {
        match self {
            Source::Merchant { rail } | Source::Unapplied { rail } => Some(rail),
            Source::Offline => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RefundStatus {
    Pending,
    Processing,
    Completed,
    Failed,
}

impl RefundStatus {
    pub const ALL: [RefundStatus; 4] =
        [RefundStatus::Pending, RefundStatus::Processing, RefundStatus::Completed, RefundStatus::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            RefundStatus::Pending => "pending",
            RefundStatus::Processing => "processing",
            RefundStatus::Completed => "completed",
            RefundStatus::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// The edges of contract §4.5, and no others.
    pub fn may_become(self, next: Self) -> bool {
        use RefundStatus::{Completed, Failed, Pending, Processing};
        match self {
            Pending => matches!(next, Processing | Completed | Failed),
            Processing => matches!(next, Completed | Failed),
            Failed => next == Completed,
            Completed => false,
        }
    }
}

/// The refunds of a transaction so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Earlier {
    pub asked: i64,
    /// Of those.
    pub failed: i64,
}

impl Earlier {
    /// One more. What takes all that is left leaves nothing to another, so that whatever was paid can be given back: at once, or
    /// where the merchant's balance has to cover it, as soon as it covers all of it.
    pub fn refuse_beyond_most(self, takes_all: bool) -> Result<(), Refusal> {
        if self.asked >= MOST_REFUNDS_ASKED {
            return Err(Refusal::TooManyRefundsAsked { most: MOST_REFUNDS_ASKED });
        }
        if self.asked - self.failed >= MOST_REFUNDS && !takes_all {
            return Err(Refusal::TooManyRefunds { most: MOST_REFUNDS });
        }
        Ok(())
    }
}

/// What became known of a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundMoved {
    /// It changed nothing.
    Nowhere,
    /// It changed, and its outcome is as open (or as closed) as before.
    On,
    ToCompleted,
    ToFailed,
    /// It had failed, and went through after all.
    Corrected,
}

impl Refund {
    /// Takes a part, or all that is left, of a transaction's money out of what can still be refunded. What no rail has
    /// is given back by hand, so that is done at once.
    pub fn ask(
        id: Id<Refund>,
        transaction: &mut Transaction,
        amount: Option<Money>,
        reason: Option<String>,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        let amount = transaction.refund_asked(amount, now)?;
        assert!(amount.minor > 0, "a refund gives something back");
        let mut refund = Self {
            id,
            scope: transaction.scope,
            version: 0,
            transaction: transaction.id,
            amount,
            source: Source::of(transaction),
            reason,
            status: RefundStatus::Pending,
            step: Step::Sending,
            rail_reference: None,
            failure_reason: None,
            parked: None,
            moves: vec![RefundMove { status: RefundStatus::Pending, at: now }],
            questions: 0,
            event_sequence: 0,
            created_at: now.floor_to_second(),
            updated_at: now,
        };
        if refund.source == Source::Offline {
            refund.complete(transaction, now).expect("what was just asked for is there");
        }
        Ok(refund)
    }

    pub fn status(&self) -> RefundStatus {
        self.status
    }

    pub fn step(&self) -> Step {
        self.step
    }

    /// What the call that asks the rail for it brought.
    pub fn sent(&mut self, transaction: &mut Transaction, called: Called<RefundReport>, now: Timestamp) -> RefundMoved {
        self.assert_of(transaction);
        match (self.step, called) {
            // Who sends it once more says by `reported` what came of that.
            (Step::Sending, Called::Answered(RefundReport::NotFound) | Called::Refused(_) | Called::Lost(_))
                if self.is_sent_again() =>
            {
                RefundMoved::Nowhere
            }
            // It was asked for, and the rail says that it has not heard of it.
            (Step::Sending, Called::Answered(RefundReport::NotFound)) => self.lose(now),
            (_, Called::Answered(report)) => self.reported(transaction, &report, now),
            (Step::Sending, Called::Refused(reason)) => self.fail(transaction, reason, now),
            (Step::Sending, Called::Lost(_)) if crate::planted!(Defect::LostRefundFails) => {
                self.fail(transaction, FailureReason::ProviderError, now)
            }
            (Step::Sending, Called::Lost(_)) => self.lose(now),
            // Another run of the call was faster, or the rail's word was: a no to this one says nothing of that one.
            (Step::Waiting | Step::Unknown | Step::Settled, Called::Refused(_) | Called::Lost(_)) => {
                RefundMoved::Nowhere
            }
        }
    }

    /// A call that was lost is made once more, of a rail that knows the second for the first. Until it has ended nobody else
    /// decides. Whether it may be.
    pub fn send_again(&mut self) -> bool {
        let may_be = match self.step {
            Step::Unknown => self.parked.is_none(),
            // The last such call never ended.
            Step::Sending => self.is_sent_again(),
            Step::Waiting | Step::Settled => false,
        };
        if may_be {
            self.step = Step::Sending;
        }
        may_be
    }

    /// Whether a call after the first is under way, or was when its process died.
    fn is_sent_again(&self) -> bool {
        self.step == Step::Sending && self.status == RefundStatus::Processing
    }

    /// The rail's verified word. The last verified word wins, but what is paid back stays so.
    pub fn reported(&mut self, transaction: &mut Transaction, report: &RefundReport, now: Timestamp) -> RefundMoved {
        self.assert_of(transaction);
        if self.status == RefundStatus::Completed
            || (self.status == RefundStatus::Failed && crate::planted!(Defect::RefundCorrectionIgnored))
        {
            return RefundMoved::Nowhere;
        }
        match report {
            RefundReport::Completed { amount, rail_reference } => {
                let counts = *amount == self.amount
                    || (crate::planted!(Defect::RefundWrongAmountTaken) && amount.currency == self.amount.currency)
                    || (crate::planted!(Defect::RefundWrongCurrencyTaken) && amount.minor == self.amount.minor);
                if !counts {
                    let why = format!("the rail reports {amount} {} instead", amount.currency);
                    return self.park(why, now);
                }
                self.rail_reference = rail_reference.clone().or(self.rail_reference.take());
                self.complete(transaction, now).unwrap_or_else(|left| {
                    let why = format!("the rail paid it back after all, and only {left} was left to refund");
                    self.park(why, now)
                })
            }
            RefundReport::Failed { reason } => match self.step {
                Step::Settled => RefundMoved::Nowhere,
                Step::Sending | Step::Waiting | Step::Unknown => self.fail(transaction, *reason, now),
            },
            RefundReport::Processing { rail_reference } => match self.step {
                Step::Waiting | Step::Settled => RefundMoved::Nowhere,
                // Not an outcome: it does not clear what a person has to look at.
                Step::Sending | Step::Unknown if self.parked.is_some() => RefundMoved::Nowhere,
                Step::Sending | Step::Unknown => {
                    self.rail_reference = rail_reference.clone().or(self.rail_reference.take());
                    self.step = Step::Waiting;
                    self.process(now)
                }
            },
            RefundReport::NotFound if self.is_sent_again() => self.lose(now),
            // No proof that the lost call will not take effect yet.
            RefundReport::NotFound => RefundMoved::Nowhere,
        }
    }

    /// Whether a person may say what became of it: nobody knows, or its rail has it and has not said so far.
    pub fn is_undecided(&self) -> bool {
        self.step == Step::Unknown
            || self.parked.is_some()
            || (self.status == RefundStatus::Processing && !self.is_sent_again())
    }

    /// A person who looked it up decides what nobody else can tell.
    pub fn resolved(
        &mut self,
        transaction: &mut Transaction,
        is_completed: bool,
        now: Timestamp,
    ) -> Result<RefundMoved, Refusal> {
        self.assert_of(transaction);
        if !self.is_undecided() {
            return Err(Refusal::RefundNotUnknown { status: self.status.as_str() });
        }
        let is_settled = self.step == Step::Settled;
        let moved = match (is_completed, is_settled) {
            (true, _) => self.complete(transaction, now).map_err(|left| Refusal::RefundExceedsAmount { left })?,
            (false, false) => self.fail(transaction, FailureReason::ProviderError, now),
            (false, true) => {
                self.touch(now);
                RefundMoved::On
            }
        };
        self.parked = None;
        Ok(moved)
    }

    /// The error is what is left to refund, where it is too little.
    fn complete(&mut self, transaction: &mut Transaction, now: Timestamp) -> Result<RefundMoved, Money> {
        let moved = match self.status {
            RefundStatus::Pending | RefundStatus::Processing => {
                transaction.refund_ended(self.amount, true, now);
                RefundMoved::ToCompleted
            }
            RefundStatus::Failed => match transaction.refund_corrected(self.amount, now) {
                true => RefundMoved::Corrected,
                false => return Err(transaction.refundable()),
            },
            RefundStatus::Completed => unreachable!("what is paid back is not asked about"),
        };
        self.step = Step::Settled;
        self.failure_reason = None;
        self.parked = None;
        self.go(RefundStatus::Completed, now);
        Ok(moved)
    }

    fn fail(&mut self, transaction: &mut Transaction, reason: FailureReason, now: Timestamp) -> RefundMoved {
        assert_ne!(self.step, Step::Settled, "a refund fails once");
        transaction.refund_ended(self.amount, false, now);
        self.step = Step::Settled;
        self.failure_reason = Some(reason);
        // What the rail said before it took its word back is still to be looked at.
        self.go(RefundStatus::Failed, now);
        RefundMoved::ToFailed
    }

    fn lose(&mut self, now: Timestamp) -> RefundMoved {
        assert_eq!(self.step, Step::Sending, "only what was sent is lost");
        self.step = Step::Unknown;
        self.process(now)
    }

    fn park(&mut self, why: String, now: Timestamp) -> RefundMoved {
        if self.parked.as_deref() == Some(&why) {
            return RefundMoved::Nowhere;
        }
        self.parked = Some(why);
        match self.step {
            Step::Settled => self.touch(now),
            Step::Sending | Step::Waiting | Step::Unknown => {
                self.step = Step::Unknown;
                self.process(now);
            }
        }
        RefundMoved::On
    }

    fn process(&mut self, now: Timestamp) -> RefundMoved {
        assert_ne!(self.step, Step::Settled, "a refund that is over goes nowhere");
        match self.status {
            RefundStatus::Pending => {
                self.go(RefundStatus::Processing, now);
                // Now somebody waits for the outcome: the rail is asked often again.
                self.questions = 0;
            }
            RefundStatus::Processing => self.touch(now),
            RefundStatus::Completed | RefundStatus::Failed => unreachable!("asserted above"),
        }
        RefundMoved::On
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

    /// The number of the next event of this refund.
    pub fn next_sequence(&mut self) -> i64 {
        assert!(self.event_sequence >= 0, "events are counted from one");
        self.event_sequence += 1;
        self.event_sequence
    }

    /// When it first reached `status`.
    pub fn reached(&self, status: RefundStatus) -> Option<Timestamp> {
        self.moves.iter().find(|one| one.status == status).map(|one| one.at)
    }

    fn go(&mut self, status: RefundStatus, now: Timestamp) {
        assert!(self.status.may_become(status), "{} never becomes {}", self.status.as_str(), status.as_str());
        self.touch(now);
        self.status = status;
        self.moves.push(RefundMove { status, at: self.updated_at });
    }

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = self.updated_at.max(now);
    }

    /// What enters every transition.
    fn assert_of(&self, transaction: &Transaction) {
        assert_eq!(self.transaction, transaction.id, "refund and transaction belong together");
        assert_eq!(self.amount.currency, transaction.amount.currency, "money goes back as it came");
        let is_over = matches!(self.status, RefundStatus::Completed | RefundStatus::Failed);
        assert_eq!(is_over, self.step == Step::Settled, "status and step agree");
        assert!(is_over || self.amount.minor <= transaction.refunding().minor, "an open refund counts");
    }
}

#[cfg(test)]
mod tests;
