//! One payment session and its attempt: the states that they go through (contract §4.2, §4.3).

use serde_json::{Value, json};

use super::attempts::Word;
use super::{Attempt, AttemptState, Fields, Next, SECOND, Session, SessionState, Step};

/// Within this a word may be older than the code that is on its way.
const CODE_CALL: i64 = 30 * SECOND;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    Nowhere,
    On,
    Paid,
    Failed,
}

impl Session {
    pub fn has_expired(&self, now: i64) -> bool {
        self.state == SessionState::Pending && self.is_past_expiry(now)
    }

    fn is_past_expiry(&self, now: i64) -> bool {
        now.max(self.seen_at) >= self.expires_at
    }

    fn is_open(&self) -> bool {
        matches!(self.state, SessionState::Pending | SessionState::Processing)
    }

    pub(super) fn close(&mut self, is_expired: bool, now: i64) {
        self.state = SessionState::Cancelled;
        self.next = Next::Nothing;
        self.reason = is_expired.then_some("expired");
        self.seen_at = self.seen_at.max(now);
    }

    pub fn fields(&self, id: &str, is_live: bool) -> Fields {
        let next = match self.next {
            Next::Nothing => Value::Null,
            Next::Redirect => json!("redirect"),
            Next::Approve => json!("approve_on_phone"),
            Next::Code { .. } => json!("otp"),
        };
        let left = if let Next::Code { left } = self.next { json!(left) } else { Value::Null };
        vec![
            ("session_id", json!(id)),
            ("object_type", json!(self.kind.as_str())),
            ("object_id", json!(self.object)),
            ("amount", json!(super::text(self.amount))),
            ("status", json!(self.state.as_str())),
            ("payment_method", json!(self.method)),
            ("failure_reason", json!(self.reason)),
            ("outcome_unknown", json!(self.is_unknown)),
            ("livemode", json!(is_live)),
            ("next_action/type", next),
            ("next_action/attempts_left", left),
            ("expires_at", json!(domain::Timestamp::from_micros(self.expires_at).to_text())),
        ]
    }

    pub(super) fn hear(&mut self, attempt: &mut Attempt, word: Word, now: i64) -> Moved {
        if attempt.state == AttemptState::Completed {
            return Moved::Nowhere;
        }
        let is_settled = attempt.step == Step::Settled;
        match word {
            Word::Paid(amount, currency) if (amount, currency) != (attempt.amount, "GMD") => {
                self.park(attempt, (amount, currency), now)
            }
            Word::Paid(..) => {
                attempt.step = Step::Settled;
                attempt.state = AttemptState::Completed;
                attempt.parked = None;
                self.state = SessionState::Succeeded;
                self.reason = None;
                self.is_unknown = false;
                self.next = Next::Nothing;
                self.seen_at = self.seen_at.max(now);
                Moved::Paid
            }
            _ if is_settled => Moved::Nowhere,
            Word::Failed(reason) | Word::CodeRefused(reason)
                if !(matches!(word, Word::CodeRefused(_)) && attempt.parked.is_some()) =>
            {
                self.fail(attempt, reason, now)
            }
            // What it reported is not what was asked for: a person has to look.
            _ if attempt.parked.is_some() => Moved::Nowhere,
            Word::Taken(next) if attempt.step == Step::Waiting && (self.next != Next::Nothing || !self.is_open()) => {
                let _ = next;
                Moved::Nowhere
            }
            // It is the answer of before: a code was lost since.
            Word::Taken(_) if attempt.step == Step::Unknown && self.next != Next::Nothing => Moved::Nowhere,
            Word::Taken(next) => self.taken(attempt, next, now),
            Word::Refused(_) | Word::Lost if attempt.step == Step::Waiting => Moved::Nowhere,
            Word::Refused(reason) => self.fail(attempt, reason, now),
            Word::Lost if attempt.step == Step::Sending => self.lose(attempt, now),
            Word::CodeLost if attempt.step == Step::Waiting => self.lose(attempt, now),
            Word::Lost | Word::CodeLost => Moved::Nowhere,
            Word::Open if matches!(attempt.step, Step::Sending | Step::Unknown) => {
                self.back_to_payer(attempt);
                attempt.step = Step::Waiting;
                self.is_unknown = false;
                self.seen_at = self.seen_at.max(now);
                Moved::On
            }
            Word::Open => Moved::Nowhere,
            Word::AwaitsCode(left) => self.await_code(attempt, left, now),
            Word::Processing => self.processing(attempt, now),
            Word::Returned => {
                let is_away = matches!(attempt.method, "wave" | "card");
                if !is_away || self.state != SessionState::Pending || self.is_past_expiry(now) {
                    return Moved::Nowhere;
                }
                self.process(attempt, now)
            }
            Word::Failed(_) | Word::CodeRefused(_) => Moved::Nowhere,
        }
    }

    fn taken(&mut self, attempt: &mut Attempt, next: Next, now: i64) -> Moved {
        let was_unknown = attempt.step == Step::Unknown;
        if next != Next::Approve {
            self.back_to_payer(attempt);
        }
        attempt.step = Step::Waiting;
        self.is_unknown = false;
        if self.is_open() {
            self.next = next;
        }
        if next == Next::Approve {
            return self.process(attempt, now);
        }
        if was_unknown && matches!(self.next, Next::Code { .. }) {
            self.state = SessionState::Pending;
        }
        self.seen_at = self.seen_at.max(now);
        Moved::On
    }

    /// It was on its way to the network, which has it now and waits for the payer.
    fn back_to_payer(&mut self, attempt: &Attempt) {
        if attempt.step == Step::Sending && self.state == SessionState::Processing {
            self.state = SessionState::Pending;
        }
    }

    fn fail(&mut self, attempt: &mut Attempt, reason: &'static str, now: i64) -> Moved {
        // A reader was told that it is over already.
        if self.has_expired(now) {
            self.close(true, now);
            if attempt.state == AttemptState::Pending {
                attempt.state = AttemptState::Expired;
            }
        }
        attempt.step = Step::Settled;
        if matches!(attempt.state, AttemptState::Pending | AttemptState::Processing) {
            attempt.state = AttemptState::Failed;
        }
        self.is_unknown = false;
        self.seen_at = self.seen_at.max(now);
        if !self.is_open() {
            return Moved::On;
        }
        self.state = SessionState::Failed;
        self.reason = Some(reason);
        self.next = Next::Nothing;
        Moved::Failed
    }

    fn lose(&mut self, attempt: &mut Attempt, now: i64) -> Moved {
        attempt.step = Step::Unknown;
        self.is_unknown = true;
        self.process(attempt, now)
    }

    fn park(&mut self, attempt: &mut Attempt, told: (i64, &'static str), now: i64) -> Moved {
        if attempt.parked == Some(told) && attempt.step != Step::Settled {
            return Moved::Nowhere;
        }
        attempt.parked = Some(told);
        attempt.step = Step::Unknown;
        self.is_unknown = true;
        self.process(attempt, now)
    }

    fn processing(&mut self, attempt: &mut Attempt, now: i64) -> Moved {
        let awaits_code = matches!(self.next, Next::Code { .. });
        match (self.state, attempt.step) {
            (SessionState::Succeeded | SessionState::Failed | SessionState::Cancelled, _) => Moved::Nowhere,
            (SessionState::Pending, Step::Waiting) if self.is_past_expiry(now) => Moved::Nowhere,
            (SessionState::Processing, Step::Waiting) if attempt.state == AttemptState::Processing && !awaits_code => {
                Moved::Nowhere
            }
            _ => {
                attempt.step = Step::Waiting;
                self.is_unknown = false;
                if awaits_code {
                    self.next = Next::Nothing;
                    self.code_told = true;
                }
                self.process(attempt, now)
            }
        }
    }

    fn process(&mut self, attempt: &mut Attempt, now: i64) -> Moved {
        if self.state == SessionState::Pending && !self.is_past_expiry(now) {
            self.state = SessionState::Processing;
        }
        if self.state == SessionState::Processing && attempt.state == AttemptState::Pending {
            attempt.state = AttemptState::Processing;
        }
        self.seen_at = self.seen_at.max(now);
        Moved::On
    }

    /// Whether a code was handed over, and its call is over without a word of it.
    pub(super) fn has_unheard_code(&self, attempt: &Attempt, now: i64) -> bool {
        let is_over = self.code_sent_at.is_none_or(|at| now >= at + CODE_CALL);
        let awaits_code = matches!(self.next, Next::Code { .. });
        self.state == SessionState::Processing && attempt.step == Step::Waiting && awaits_code && is_over
    }

    fn await_code(&mut self, attempt: &mut Attempt, left: u8, now: i64) -> Moved {
        if attempt.method != "qmoney" {
            return Moved::Nowhere;
        }
        let known = if let Next::Code { left } = self.next { Some(left) } else { None };
        let is_on_its_way = !self.code_told && self.code_sent_at.is_some_and(|at| now < at + CODE_CALL);
        if is_on_its_way && known.is_none_or(|known| left >= known) {
            return Moved::Nowhere;
        }
        let is_submitted = self.state == SessionState::Processing && (known.is_some() || self.is_unknown);
        let was_tried = self.state == SessionState::Pending && known.is_some_and(|known| left < known);
        if (!is_submitted && !was_tried) || known.is_some_and(|known| left > known) {
            return Moved::Nowhere;
        }
        if known.is_some_and(|known| left < known) {
            self.reason = Some("wrong_code");
        }
        self.next = Next::Code { left };
        self.code_told = true;
        attempt.step = Step::Waiting;
        self.is_unknown = false;
        self.state = SessionState::Pending;
        self.seen_at = self.seen_at.max(now);
        Moved::On
    }
}

impl SessionState {
    pub fn as_str(self) -> &'static str {
        match self {
            SessionState::Pending => "pending",
            SessionState::Processing => "processing",
            SessionState::Succeeded => "succeeded",
            SessionState::Failed => "failed",
            SessionState::Cancelled => "cancelled",
        }
    }
}
