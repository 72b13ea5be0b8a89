//! What a rail's word, a payer's code or a person's decision does to a session and its transaction.

use super::{Moved, PaymentSession, SessionStatus, Step, Transaction, TransactionStatus};
use crate::method::Flow;
use crate::rail::{Called, FailureReason, NextAction, Report, Started};
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// A one-time code where the rail's own answer about it was lost (contract §5).
const CODE_LENGTH: u8 = 6;
const RESEND_AFTER_S: u32 = 30;

impl PaymentSession {
    /// The payer came back from the rail's page: no proof of anything, but nothing new may begin.
    pub fn returned(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        self.enter(transaction);
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
        self.enter(transaction);
        match (transaction.step, called) {
            // The outcome was faster than this answer.
            (Step::Settled, _) => Moved::Nowhere,
            // Another run of the same call was faster, or the rail's word: that tells no payer where to go.
            (Step::Waiting, Called::Answered(started)) if self.next_action.is_none() && self.is_open() => {
                self.accepted(transaction, started, now)
            }
            (Step::Waiting, Called::Lost(_)) if crate::planted!(Defect::LostAnswerHidesWord) => {
                self.lose(transaction, now)
            }
            (Step::Waiting, _) => Moved::Nowhere,
            // What it reports is not what was asked for: no answer clears that.
            (Step::Unknown, _) if transaction.parked.is_some() && !crate::planted!(Defect::ParkedIsClearedByAnswer) => {
                Moved::Nowhere
            }
            // Who makes the call once more says by `repeated` what came of it.
            (Step::Sending, Called::Refused(_) | Called::Lost(_)) if transaction.is_start_repeated() => Moved::Nowhere,
            // An answer of before told the payer the way on: what was lost since, a code, may take effect still.
            (Step::Unknown, Called::Answered(_)) if self.next_action.is_some() => Moved::Nowhere,
            (Step::Sending | Step::Unknown, Called::Answered(started)) => self.accepted(transaction, started, now),
            (Step::Sending | Step::Unknown, Called::Refused(reason)) => self.fail(transaction, reason, now),
            (Step::Sending | Step::Unknown, Called::Lost(_)) if crate::planted!(Defect::LostStartFails) => {
                self.fail(transaction, FailureReason::ProviderError, now)
            }
            (Step::Sending | Step::Unknown, Called::Lost(_)) => self.lose(transaction, now),
        }
    }

    /// The call that starts the payment was lost, and is made once more, of a rail that knows the second for the first. Until it has
    /// ended nobody else decides. Whether it may be: what told the payer the way on arrived, and what was lost since is another call.
    pub fn repeat_start(&self, transaction: &mut Transaction) -> bool {
        self.enter(transaction);
        let may_be = self.next_action.is_none()
            && match transaction.step {
                Step::Unknown => transaction.parked.is_none() && transaction.status == TransactionStatus::Processing,
                // The last such call never ended.
                Step::Sending => transaction.is_start_repeated(),
                Step::Waiting | Step::Settled => false,
            };
        if may_be {
            transaction.step = Step::Sending;
        }
        may_be
    }

    /// What the call brought that was made once more. No to it says nothing of the first.
    pub fn repeated(&mut self, transaction: &mut Transaction, called: Called<Started>, now: Timestamp) -> Moved {
        self.enter(transaction);
        match called {
            Called::Answered(_) => self.started(transaction, called, now),
            Called::Refused(_) | Called::Lost(_) if transaction.is_start_repeated() => self.lose(transaction, now),
            // Whoever handed over the code has died, and the rail says nothing of it either.
            Called::Lost(_) if self.is_code_unheard_of(transaction, now) => self.lose(transaction, now),
            Called::Refused(_) | Called::Lost(_) => Moved::Nowhere,
        }
    }

    /// Whether the call that brings a code is over, and nobody has told what came of it.
    fn is_code_unheard_of(&self, transaction: &Transaction, now: Timestamp) -> bool {
        self.status == SessionStatus::Processing
            && transaction.step == Step::Waiting
            && self.awaits_code()
            && !transaction.is_code_on_its_way(now)
    }

    fn accepted(&mut self, transaction: &mut Transaction, started: Started, now: Timestamp) -> Moved {
        assert_ne!(transaction.step, Step::Settled, "an attempt that is over is not accepted");
        let was_unknown = transaction.step == Step::Unknown || transaction.is_start_repeated();
        transaction.step = Step::Waiting;
        transaction.rail_reference = started.rail_reference.or(transaction.rail_reference.take());
        self.outcome_unknown = false;
        let with_provider = matches!(started.next_action, NextAction::ApproveOnPhone { .. });
        if self.is_open() {
            self.next_action = Some(started.next_action);
        }
        if with_provider {
            return self.process(transaction, now);
        }
        // Known again, and nothing happened yet: a code is taken by a pending session only.
        if was_unknown && self.awaits_code() {
            self.status = SessionStatus::Pending;
        }
        self.await_payer(transaction, now)
    }

    /// The rail has it and nothing happened there yet: it is the payer's turn.
    fn await_payer(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        if self.status == SessionStatus::Processing && transaction.status == TransactionStatus::Pending {
            self.status = SessionStatus::Pending;
        }
        self.set_expiry(transaction);
        self.touch_both(transaction, now);
        Moved::On
    }

    /// Whether its attempt waits for a code.
    pub fn refuse_unless_code_expected(&self) -> Result<(), Refusal> {
        self.refuse_if_closed()?;
        match self.status {
            SessionStatus::Processing => Err(Refusal::PaymentInProgress),
            SessionStatus::Pending if self.awaits_code() => Ok(()),
            SessionStatus::Pending | SessionStatus::Succeeded | SessionStatus::Failed | SessionStatus::Cancelled => {
                Err(Refusal::CodeNotExpected)
            }
        }
    }

    /// A code is on its way to the rail: from here on the provider has the attempt.
    pub fn submit_code(&mut self, transaction: Option<&mut Transaction>, now: Timestamp) -> Result<(), Refusal> {
        let attempt = transaction.as_ref().map(|transaction| transaction.id);
        assert_eq!(self.transaction, attempt, "a code is for the session's own attempt");
        self.refuse_unless_code_expected()?;
        let transaction = transaction.expect("only an attempt asks for a code");
        assert_ne!(transaction.step, Step::Settled, "an attempt that is over asks for nothing");
        self.status = SessionStatus::Processing;
        self.failure_reason = None;
        transaction.code_sent_at = Some(now);
        transaction.code_told = false;
        self.set_expiry(transaction);
        self.touch(now);
        Ok(())
    }

    /// What the call brought that submits a code, on its way since `sent_at`. The rail's own word about that code may have been
    /// faster, and the payer may have sent another since, which is on its way still: a call that failed says nothing of either.
    pub fn code_submitted(
        &mut self,
        transaction: &mut Transaction,
        sent_at: Option<Timestamp>,
        called: Called<Report>,
        now: Timestamp,
    ) -> Moved {
        self.enter(transaction);
        let is_latest = transaction.code_sent_at.is_none() || transaction.code_sent_at == sent_at;
        let is_told = transaction.code_told;
        // What was lost may be on its way still: a word that knows nothing of it may be older.
        let may_arrive = matches!(called, Called::Lost(_)) && !is_told && !crate::planted!(Defect::OldWordReopens);
        if is_latest && !may_arrive {
            transaction.no_code_is_sent();
        }
        match (transaction.step, called) {
            (_, Called::Answered(report)) => self.reported(transaction, &report, now),
            (_, Called::Refused(_) | Called::Lost(_)) if !is_latest || is_told => Moved::Nowhere,
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
        self.enter(transaction);
        if transaction.status.is_paid() {
            assert_eq!(transaction.step, Step::Settled, "nobody asks about money that arrived");
            return Moved::Nowhere;
        }
        match report {
            Report::Paid { .. } if transaction.step == Step::Settled && crate::planted!(Defect::CorrectionIgnored) => {
                Moved::Nowhere
            }
            Report::Paid { amount, rail_reference } => {
                let counts = *amount == transaction.amount
                    || (crate::planted!(Defect::WrongAmountTaken) && amount.currency == transaction.amount.currency)
                    || (crate::planted!(Defect::WrongCurrencyTaken) && amount.minor == transaction.amount.minor);
                if !counts {
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
                        transaction.code_told = transaction.code_sent_at.is_some();
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
        self.enter(transaction);
        transaction.refuse_unless_undecided(now)?;
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
        self.close_if_expired(transaction, now);
        transaction.step = Step::Settled;
        transaction.no_code_is_sent();
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
        self.close_if_expired(transaction, now);
        transaction.step = Step::Settled;
        transaction.no_code_is_sent();
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

    /// What ran out while nobody used it is expired, and readers were told so, whether or not the timer ran.
    fn close_if_expired(&mut self, transaction: &mut Transaction, now: Timestamp) {
        if self.has_expired(now) {
            self.close(Some(transaction), true, now);
        }
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
        // Of one that was decided since it is news again.
        if transaction.parked.as_deref() == Some(&why) && transaction.step != Step::Settled {
            return Moved::Nowhere;
        }
        transaction.parked = Some(why);
        self.outcome_unknown = true;
        transaction.step = Step::Unknown;
        self.process(transaction, now)
    }

    fn await_code(&mut self, transaction: &mut Transaction, left: u8, now: Timestamp) -> Moved {
        let is_submitted = self.status == SessionStatus::Processing && (self.awaits_code() || self.outcome_unknown);
        // A word from before the code was there: the payer would type it once more, or begin anew beside it.
        let is_tried = match self.next_action {
            Some(NextAction::Otp { attempts_left, .. }) => left < attempts_left,
            _ => false,
        };
        if transaction.awaits_word_of_code(now) && !is_tried && !crate::planted!(Defect::OldWordReopens) {
            return Moved::Nowhere;
        }
        // The answer to a question of before may have overtaken the rail's word about the code.
        let was_tried = self.status == SessionStatus::Pending && is_tried;
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
        transaction.code_told = transaction.code_sent_at.is_some();
        self.outcome_unknown = false;
        self.status = SessionStatus::Pending;
        self.set_expiry(transaction);
        self.touch_both(transaction, now);
        assert!(self.awaits_code(), "a code that is awaited can be submitted");
        Moved::On
    }

    fn open_at_rail(&mut self, transaction: &mut Transaction, now: Timestamp) -> Moved {
        // Found again after a lost answer: it is known to be there, and waits for the payer.
        if transaction.step == Step::Unknown || transaction.step == Step::Sending {
            transaction.step = Step::Waiting;
            self.outcome_unknown = false;
            return self.await_payer(transaction, now);
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
}
