//! The simulated rail's own truth: what its "wallets" hold of one payment, decided by the payer's
//! phone number, by clicks on its pages, and by time. Test mode only.
//!
//! It stands for the world outside, so it never looks at a session or a transaction.

mod refund;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::Id;
use crate::method::{Flow, Method};
use crate::money::Money;
use crate::payment::Transaction;
use crate::phone::Msisdn;
use crate::rail::{FailureReason, Report};
use crate::scope::Scope;
use crate::time::Timestamp;

pub use refund::{RefundScript, SimulatedRefund};

/// From the payer's decision to the rail's word.
const REACTION: Duration = Duration::from_millis(300);
const SLOW_REACTION: Duration = Duration::from_secs(30);
pub const CODE_LENGTH: u8 = 6;
pub const RIGHT_CODE: &str = "123456";
const CODE_TRIES: u8 = 3;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulatedPayment {
    /// Our reference, the idempotency key of the simulated rail.
    pub transaction: Id<Transaction>,
    pub scope: Scope,
    pub version: i64,
    pub method: Method,
    pub amount: Money,
    pub phone: Option<Msisdn>,
    pub merchant: String,
    /// HMAC of the token in its pages' address, in hex.
    pub token_digest: String,
    /// Where its pages send the payer back to.
    pub return_url: String,
    script: Script,
    state: State,
    /// The outcome was reported this often.
    pub reports: u32,
    /// What the wallet has paid back of it, or is about to.
    #[serde(default)]
    given_back_minor: i64,
    pub created_at: Timestamp,
}

/// What the documented test numbers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Script {
    Approve,
    InsufficientFunds,
    Decline,
    Silent,
    LostAnswer,
    ApproveSlowly,
    ReportTwice,
    /// A click on the simulator's page decides.
    Wait,
}

impl Script {
    fn of(method: Method, phone: Option<&Msisdn>) -> Self {
        let phone = match method.flow() {
            Flow::Redirect if method == Method::Card => None,
            Flow::Redirect | Flow::Push | Flow::Otp => phone,
        };
        match phone.map(Msisdn::as_str) {
            Some("+2207000000") => Script::Approve,
            Some("+2207000001") => Script::InsufficientFunds,
            Some("+2207000002") => Script::Decline,
            Some("+2207000003") => Script::Silent,
            Some("+2207000004") => Script::LostAnswer,
            Some("+2207000005") => Script::ApproveSlowly,
            Some("+2207000006") => Script::ReportTwice,
            Some(_) | None => Script::Wait,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum State {
    AwaitingCode {
        left: u8,
    },
    AwaitingPayer,
    /// A card's issuer asks the holder to confirm.
    AwaitingCardHolder,
    /// The payer has decided; the network takes its time.
    Deciding {
        outcome: Outcome,
        at: Timestamp,
    },
    Done {
        outcome: Outcome,
    },
    /// The merchant's side withdrew it before anybody paid.
    Withdrawn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Paid,
    InsufficientFunds,
    Declined,
    WrongCode,
}

/// What the simulator's page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// A wallet's approval page or a request on a handset.
    Approve,
    Card,
    CardHolder,
    /// The code comes first, on the merchant's page.
    WaitingForCode,
    Decided {
        paid: bool,
    },
    Withdrawn,
}

impl SimulatedPayment {
    /// Takes the order. What follows by itself comes from the phone number.
    pub fn start(
        transaction: &Transaction,
        merchant: String,
        token_digest: String,
        return_url: String,
        now: Timestamp,
    ) -> Self {
        let script = Script::of(transaction.attempt().method, transaction.payer.phone.as_ref());
        let mut payment = Self {
            transaction: transaction.id,
            scope: transaction.scope,
            version: 0,
            method: transaction.attempt().method,
            amount: transaction.amount,
            phone: transaction.payer.phone.clone(),
            merchant,
            token_digest,
            return_url,
            script,
            state: State::AwaitingPayer,
            reports: 0,
            given_back_minor: 0,
            created_at: now,
        };
        match transaction.attempt().method.flow() {
            Flow::Otp => payment.state = State::AwaitingCode { left: CODE_TRIES },
            Flow::Redirect | Flow::Push => payment.play_script(now),
        }
        payment
    }

    fn play_script(&mut self, now: Timestamp) {
        self.state = match self.script {
            Script::Approve | Script::ReportTwice => State::Deciding { outcome: Outcome::Paid, at: now.plus(REACTION) },
            Script::InsufficientFunds => {
                State::Deciding { outcome: Outcome::InsufficientFunds, at: now.plus(REACTION) }
            }
            Script::Decline => State::Deciding { outcome: Outcome::Declined, at: now.plus(REACTION) },
            Script::ApproveSlowly => State::Deciding { outcome: Outcome::Paid, at: now.plus(SLOW_REACTION) },
            // The money is gone at once; only the word about it is lost.
            Script::LostAnswer => State::Done { outcome: Outcome::Paid },
            Script::Silent | Script::Wait => State::AwaitingPayer,
        };
    }

    /// The answer to the call that started the scripted part never arrives.
    pub fn loses_answers(&self) -> bool {
        self.script == Script::LostAnswer && matches!(self.state, State::Done { .. })
    }

    pub fn code_tries_left(&self) -> u8 {
        match self.state {
            State::AwaitingCode { left } => left,
            State::AwaitingPayer
            | State::AwaitingCardHolder
            | State::Deciding { .. }
            | State::Done { .. }
            | State::Withdrawn => 0,
        }
    }

    pub fn submit_code(&mut self, code: &str, now: Timestamp) {
        let State::AwaitingCode { left } = self.state else {
            return;
        };
        if code == RIGHT_CODE {
            self.play_script(now);
            return;
        }
        self.state = match left - 1 {
            0 => State::Done { outcome: Outcome::WrongCode },
            left => State::AwaitingCode { left },
        };
    }

    /// A click on the approval page or on the simulated handset.
    pub fn payer_decides(&mut self, approves: bool, now: Timestamp) {
        // The silent number stays silent whatever anybody clicks.
        if self.waits_for_click() {
            let outcome = if approves { Outcome::Paid } else { Outcome::Declined };
            self.state = State::Deciding { outcome, at: now.plus(REACTION) };
        }
    }

    /// A click that chooses what happens, as the test numbers do. It does nothing once anything was chosen.
    pub fn payer_plays(&mut self, script: Script, now: Timestamp) {
        if self.waits_for_click() {
            self.script = script;
            self.play_script(now);
        }
    }

    /// Whether a click on the approval page or on the handset decides.
    fn waits_for_click(&self) -> bool {
        self.state == State::AwaitingPayer && self.script == Script::Wait && self.method != Method::Card
    }

    /// What was chosen, by the phone number or by a click.
    pub fn script(&self) -> Script {
        self.script
    }

    /// What was decided, whether or not the network has told it.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.state {
            State::Deciding { outcome, .. } | State::Done { outcome } => Some(outcome),
            State::AwaitingCode { .. } | State::AwaitingPayer | State::AwaitingCardHolder | State::Withdrawn => None,
        }
    }

    /// A card number was typed on the simulator's page. It is looked at and forgotten.
    /// `false`: no test card.
    pub fn card_entered(&mut self, number: &str, now: Timestamp) -> bool {
        if self.state != State::AwaitingPayer || self.method != Method::Card {
            return true;
        }
        let at = now.plus(REACTION);
        self.state = match number {
            "4242424242424242" => State::Deciding { outcome: Outcome::Paid, at },
            "4000000000000002" => State::Deciding { outcome: Outcome::Declined, at },
            "4000000000009995" => State::Deciding { outcome: Outcome::InsufficientFunds, at },
            "4000002500003155" => State::AwaitingCardHolder,
            _ => return false,
        };
        true
    }

    /// The card holder answers the issuer's question (3-D Secure).
    pub fn card_holder_decides(&mut self, confirms: bool, now: Timestamp) {
        if self.state == State::AwaitingCardHolder {
            let outcome = if confirms { Outcome::Paid } else { Outcome::Declined };
            self.state = State::Deciding { outcome, at: now.plus(REACTION) };
        }
    }

    /// The merchant's side gives up: refused once anybody has paid or decided. A handset that never answers keeps its request.
    pub fn withdraw(&mut self) {
        match self.state {
            State::AwaitingPayer if self.script == Script::Silent && self.method.flow() != Flow::Redirect => {}
            State::AwaitingCode { .. } | State::AwaitingPayer | State::AwaitingCardHolder => {
                self.state = State::Withdrawn
            }
            State::Deciding { .. } | State::Done { .. } | State::Withdrawn => {}
        }
    }

    /// When something happens by itself.
    pub fn next_act(&self) -> Option<Timestamp> {
        match self.state {
            State::Deciding { at, .. } => Some(at),
            State::AwaitingCode { .. }
            | State::AwaitingPayer
            | State::AwaitingCardHolder
            | State::Done { .. }
            | State::Withdrawn => None,
        }
    }

    /// Time has passed: whether there is a word to send now, and whether it is sent twice.
    pub fn act(&mut self, now: Timestamp) -> u32 {
        if let State::Deciding { outcome, at } = self.state
            && now >= at
        {
            self.state = State::Done { outcome };
            self.reports = if self.script == Script::ReportTwice { 2 } else { 1 };
            return self.reports;
        }
        0
    }

    /// The answer to a status query.
    pub fn report(&self) -> Report {
        match self.state {
            State::AwaitingCode { left } => Report::AwaitingCode { attempts_left: left },
            State::AwaitingPayer | State::AwaitingCardHolder if self.method.flow() == Flow::Redirect => Report::Open,
            State::AwaitingPayer | State::AwaitingCardHolder | State::Deciding { .. } => Report::Processing,
            State::Done { outcome: Outcome::Paid } => {
                Report::Paid { amount: self.amount, rail_reference: format!("SIM-{}", self.transaction) }
            }
            State::Done { outcome: Outcome::InsufficientFunds } => {
                Report::Failed { reason: FailureReason::InsufficientFunds }
            }
            State::Done { outcome: Outcome::Declined } => Report::Failed { reason: FailureReason::Declined },
            State::Done { outcome: Outcome::WrongCode } => Report::Failed { reason: FailureReason::WrongCode },
            State::Withdrawn => Report::Failed { reason: FailureReason::Cancelled },
        }
    }

    pub fn screen(&self) -> Screen {
        match self.state {
            State::AwaitingCode { .. } => Screen::WaitingForCode,
            State::AwaitingPayer if self.method == Method::Card => Screen::Card,
            State::AwaitingPayer => Screen::Approve,
            State::AwaitingCardHolder => Screen::CardHolder,
            State::Deciding { outcome, .. } | State::Done { outcome } => {
                Screen::Decided { paid: outcome == Outcome::Paid }
            }
            State::Withdrawn => Screen::Withdrawn,
        }
    }
}

#[cfg(test)]
mod tests;
