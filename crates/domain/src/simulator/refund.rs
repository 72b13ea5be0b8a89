//! The simulated network pays back: what becomes of one refund, decided by the last two digits of its amount, and by time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Outcome, REACTION, SLOW_REACTION, SimulatedPayment, State};
use crate::id::Id;
use crate::money::Money;
use crate::payment::Transaction;
use crate::rail::{FailureReason, RefundReport};
use crate::refund::Refund;
use crate::scope::Scope;
use crate::time::Timestamp;

/// From a failure that was none to the word that it was none.
const CORRECTION: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulatedRefund {
    /// Our reference, the idempotency key of the simulated rail.
    pub refund: Id<Refund>,
    pub transaction: Id<Transaction>,
    pub scope: Scope,
    pub version: i64,
    pub amount: Money,
    script: RefundScript,
    next: Option<Next>,
    /// The network's last word, whether or not it reached anybody.
    said: Option<Said>,
    /// What leaves the merchant's wallet, in truth and whatever is said of it.
    pub paid_back: bool,
    /// The last word is sent this often.
    pub reports: u32,
    pub created_at: Timestamp,
}

/// What the documented test amounts do, by their last two digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundScript {
    Complete,
    /// `71`: refused at once.
    InsufficientFunds,
    /// `72`: taken, and refused a moment later.
    Decline,
    /// `73`
    Silent,
    /// `74`
    LostAnswer,
    /// `75`
    CompleteSlowly,
    /// `76`
    ReportTwice,
    /// `77`: it is said to have failed, and went through after all.
    Correct,
}

impl RefundScript {
    fn of(amount: Money) -> Self {
        match amount.minor % 100 {
            71 => RefundScript::InsufficientFunds,
            72 => RefundScript::Decline,
            73 => RefundScript::Silent,
            74 => RefundScript::LostAnswer,
            75 => RefundScript::CompleteSlowly,
            76 => RefundScript::ReportTwice,
            77 => RefundScript::Correct,
            _ => RefundScript::Complete,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Next {
    said: Said,
    at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Completed,
    InsufficientFunds,
    Declined,
}

impl SimulatedRefund {
    /// Takes the order, out of what `payment` brought. No wallet gives back more than it got.
    pub fn start(refund: &Refund, payment: Option<&mut SimulatedPayment>, now: Timestamp) -> Self {
        let script = RefundScript::of(refund.amount);
        let later = |said, pause| (Some(Next { said, at: now.plus(pause) }), None);
        let now_said = |said| (None, Some(said));
        let (next, said) = match script {
            RefundScript::Complete | RefundScript::ReportTwice => later(Said::Completed, REACTION),
            RefundScript::CompleteSlowly => later(Said::Completed, SLOW_REACTION),
            RefundScript::Decline | RefundScript::Correct => later(Said::Declined, REACTION),
            RefundScript::InsufficientFunds => now_said(Said::InsufficientFunds),
            // The money is back at once; only the word about it is lost.
            RefundScript::LostAnswer => now_said(Said::Completed),
            RefundScript::Silent => (None, None),
        };
        let goes_through = match script {
            RefundScript::InsufficientFunds | RefundScript::Decline | RefundScript::Silent => false,
            RefundScript::Complete
            | RefundScript::LostAnswer
            | RefundScript::CompleteSlowly
            | RefundScript::ReportTwice
            | RefundScript::Correct => true,
        };
        let mut order = Self {
            refund: refund.id,
            transaction: refund.transaction,
            scope: refund.scope,
            version: 0,
            amount: refund.amount,
            script,
            next,
            said,
            paid_back: goes_through,
            reports: 0,
            created_at: now,
        };
        if goes_through && !payment.is_some_and(|payment| payment.give_back(refund.amount)) {
            (order.next, order.said, order.paid_back) = (None, Some(Said::Declined), false);
        }
        order
    }

    /// The answer to the order never arrives.
    pub fn loses_answer(&self) -> bool {
        self.script == RefundScript::LostAnswer
    }

    /// When something happens by itself.
    pub fn next_act(&self) -> Option<Timestamp> {
        self.next.map(|next| next.at)
    }

    /// Time has passed: how often the word is to be sent now.
    pub fn act(&mut self, now: Timestamp) -> u32 {
        let Some(next) = self.next.filter(|next| now >= next.at) else { return 0 };
        self.said = Some(next.said);
        self.reports = if self.script == RefundScript::ReportTwice { 2 } else { 1 };
        let is_wrong = self.paid_back && next.said != Said::Completed;
        self.next = is_wrong.then(|| Next { said: Said::Completed, at: now.plus(CORRECTION) });
        self.reports
    }

    /// The answer to a status query.
    pub fn report(&self) -> RefundReport {
        match self.said {
            None => RefundReport::Processing { rail_reference: Some(self.reference()) },
            Some(Said::Completed) => {
                RefundReport::Completed { amount: self.amount, rail_reference: Some(self.reference()) }
            }
            Some(Said::InsufficientFunds) => RefundReport::Failed { reason: FailureReason::InsufficientFunds },
            Some(Said::Declined) => RefundReport::Failed { reason: FailureReason::Declined },
        }
    }

    fn reference(&self) -> String {
        format!("SIM-{}", self.refund)
    }
}

impl SimulatedPayment {
    /// Whether so much of it was there to give back; then it is gone.
    fn give_back(&mut self, amount: Money) -> bool {
        let is_paid = self.state == State::Done { outcome: Outcome::Paid };
        let fits = is_paid && amount.currency == self.amount.currency;
        let fits = fits && amount.minor <= self.amount.minor - self.given_back_minor;
        if fits {
            self.given_back_minor += amount.minor;
        }
        fits
    }
}

#[cfg(test)]
mod tests;
