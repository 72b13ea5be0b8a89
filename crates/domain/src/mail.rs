//! Mails that are owed to customers, and some to the merchant, and when the next try is.
//!
//! Sending is the server's; this decides only what follows from an outcome. SMTP has no way to ask what became of a
//! message: a mail whose answer was lost is sent again, with the same Message-ID, and may then arrive more than once. Each time is
//! counted before it is sent, so that a process that ends with a message in its hands counts as one that lost the answer.

use std::time::Duration;

use crate::id::{Id, Object};
use crate::scope::Scope;
use crate::time::Timestamp;

const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;

/// The wait before each attempt, in seconds: twelve in about three days. Greylisting asks for some minutes.
const SCHEDULE_S: [u64; 12] =
    [0, 5, MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR, 20 * HOUR, 24 * HOUR];

/// Of a message whose answer is lost as often as this, nobody waits for another: it may have arrived each time.
const MOST_UNANSWERED: i64 = 3;

/// From the beginning of a conversation with a mail server on it may take up to ten minutes to look into the message, after some at
/// each step before: nobody says of the last time that it brought nothing before that is over.
const LONGEST_CONVERSATION: Duration = Duration::from_secs(30 * MINUTE);

/// Of an attempt of which nobody has stored what came of it: it is under way, or its process ended.
pub const UNHEARD: &str = "the message was handed over, and nobody heard what came of it: it may have arrived";

/// One mail to one recipient about one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    pub id: Id<Mail>,
    pub scope: Scope,
    pub kind: MailKind,
    /// The public id of what it is about.
    pub object_id: String,
    /// The address as it was when the mail was asked for. An invoice goes to the one that it names when it leaves.
    pub recipient: String,
    pub status: MailStatus,
    pub attempts: i64,
    /// Of them, those in which the message was sent whole and no answer came.
    pub unanswered: i64,
    pub next_try_at: Option<Timestamp>,
    pub last_error: Option<String>,
    pub sent_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl Object for Mail {
    const PREFIX: &'static str = "mail";
    const NOUN: &'static str = "mail";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MailKind {
    Invoice,
    Receipt,
    /// To the merchant: no events are sent to the endpoint any more (P12).
    EndpointDisabled,
}

impl MailKind {
    pub const ALL: [Self; 3] = [MailKind::Invoice, MailKind::Receipt, MailKind::EndpointDisabled];

    pub fn as_str(self) -> &'static str {
        match self {
            MailKind::Invoice => "invoice",
            MailKind::Receipt => "receipt",
            MailKind::EndpointDisabled => "endpoint_disabled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "invoice" => Some(MailKind::Invoice),
            "receipt" => Some(MailKind::Receipt),
            "endpoint_disabled" => Some(MailKind::EndpointDisabled),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailStatus {
    Pending,
    /// The mail server has taken it over.
    Sent,
    Failed,
}

impl MailStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            MailStatus::Pending => "pending",
            MailStatus::Sent => "sent",
            MailStatus::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "pending" => Some(MailStatus::Pending),
            "sent" => Some(MailStatus::Sent),
            "failed" => Some(MailStatus::Failed),
            _ => None,
        }
    }
}

/// How one try ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailAttempted {
    /// The mail server answered that it has the message.
    Accepted,
    /// It will never be taken: the recipient or the message is refused for good, or there is nothing to say any more.
    Refused { error: String },
    /// Not now, or nobody knows: the message was sent whole, and no answer came.
    Failed { error: String, may_have_arrived: bool },
    /// Nothing was sent: it was before, as often as it may be ([`Mail::is_spent`]).
    Spent,
}

impl Mail {
    pub fn owed(
        id: Id<Mail>,
        scope: Scope,
        kind: MailKind,
        object_id: String,
        recipient: String,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            scope,
            kind,
            object_id,
            recipient,
            status: MailStatus::Pending,
            attempts: 0,
            unanswered: 0,
            next_try_at: Some(now),
            last_error: None,
            sent_at: None,
            created_at: now,
        }
    }

    /// As it is stored just before its message is sent: as one whose answer was lost, which it is unless somebody stores what came
    /// of it. The last one that there may be stays open for as long as its answer may take.
    #[must_use]
    pub fn begun(&self, now: Timestamp, jitter: u64) -> Self {
        let mut begun = self.clone();
        begun.attempted(&MailAttempted::Failed { error: UNHEARD.into(), may_have_arrived: true }, now, jitter);
        if begun.status != MailStatus::Pending {
            begun.status = MailStatus::Pending;
            begun.next_try_at = Some(now.plus(LONGEST_CONVERSATION));
        }
        begun
    }

    /// Whether it was begun as often as it may be. Nobody has stored what came of the last time, and nobody will.
    pub fn is_spent(&self) -> bool {
        self.unanswered >= MOST_UNANSWERED || next_wait(self.attempts, 0).is_none()
    }

    /// Sent, try again at, or given up. `jitter` is 0..=2000: 1000 leaves the wait as it is.
    pub fn attempted(&mut self, outcome: &MailAttempted, now: Timestamp, jitter: u64) {
        assert_eq!(self.status, MailStatus::Pending, "only an open mail is attempted");
        assert!(self.next_try_at.is_some(), "an open mail is due at some time");
        self.attempts += i64::from(*outcome != MailAttempted::Spent);
        match outcome {
            MailAttempted::Accepted => {
                self.status = MailStatus::Sent;
                self.sent_at = Some(now);
                self.next_try_at = None;
                self.last_error = None;
            }
            MailAttempted::Refused { error } => self.give_up(error),
            MailAttempted::Failed { error, may_have_arrived } => {
                self.unanswered += i64::from(*may_have_arrived);
                match self.next_wait(*may_have_arrived, jitter) {
                    Some(wait) => {
                        self.next_try_at = Some(now.plus(wait));
                        self.last_error = Some(error.clone());
                    }
                    None => self.give_up(error),
                }
            }
            // What is known of it is what was said of the last time.
            MailAttempted::Spent => {
                self.status = MailStatus::Failed;
                self.next_try_at = None;
            }
        }
        let is_open = self.status == MailStatus::Pending;
        assert_eq!(is_open, self.next_try_at.is_some(), "what is open has a next try, and only that");
        assert_eq!(self.status == MailStatus::Sent, self.sent_at.is_some(), "what was sent has its time");
    }

    /// Before a message is sent the last time without an answer, whatever kept the answers has time to pass.
    fn next_wait(&self, may_have_arrived: bool, jitter: u64) -> Option<Duration> {
        let wait = next_wait(self.attempts, jitter)?;
        match may_have_arrived {
            true if self.unanswered >= MOST_UNANSWERED => None,
            true if self.unanswered == MOST_UNANSWERED - 1 => longest_wait(jitter),
            true | false => Some(wait),
        }
    }

    fn give_up(&mut self, error: &str) {
        self.status = MailStatus::Failed;
        self.next_try_at = None;
        self.last_error = Some(error.to_owned());
    }
}

fn longest_wait(jitter: u64) -> Option<Duration> {
    (1..).map_while(|made| next_wait(made, jitter)).max()
}

/// The wait after `made` attempts, jittered by ±10 %; `None` when the schedule has run out.
fn next_wait(made: i64, jitter: u64) -> Option<Duration> {
    let index = usize::try_from(made).expect("attempts are counted from zero");
    let base_ms = SCHEDULE_S.get(index)? * 1000;
    // 0..=2000 becomes 90 %..=110 %.
    Some(Duration::from_millis(base_ms * (9_000 + jitter.min(2_000)) / 10_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{at, id, scope};

    fn mail() -> Mail {
        Mail::owed(id(1), scope(), MailKind::Invoice, "inv_1".into(), "awa@example.org".into(), at(0))
    }

    fn failed() -> MailAttempted {
        MailAttempted::Failed { error: "the mail server can't be reached".into(), may_have_arrived: false }
    }

    fn unanswered() -> MailAttempted {
        MailAttempted::Failed { error: "it may have arrived".into(), may_have_arrived: true }
    }

    #[test]
    fn a_mail_is_due_at_once() {
        let mail = mail();
        assert_eq!((mail.status, mail.next_try_at, mail.attempts), (MailStatus::Pending, Some(at(0)), 0));
    }

    #[test]
    fn what_was_accepted_is_over() {
        let mut mail = mail();
        mail.attempted(&failed(), at(0), 1000);
        mail.attempted(&MailAttempted::Accepted, at(9), 1000);
        assert_eq!((mail.status, mail.sent_at, mail.next_try_at), (MailStatus::Sent, Some(at(9)), None));
        assert_eq!((mail.attempts, mail.last_error), (2, None));
    }

    #[test]
    fn a_refusal_ends_it_with_the_reason() {
        let mut mail = mail();
        mail.attempted(&MailAttempted::Refused { error: "no such user".into() }, at(0), 1000);
        assert_eq!((mail.status, mail.sent_at, mail.next_try_at), (MailStatus::Failed, None, None));
        assert_eq!(mail.last_error.as_deref(), Some("no such user"));
    }

    #[test]
    fn failures_are_repeated_with_growing_pauses_over_three_days() {
        let mut mail = mail();
        let mut waits = Vec::new();
        let mut now = at(0);
        while mail.status == MailStatus::Pending {
            mail.attempted(&failed(), now, 1000);
            let Some(next) = mail.next_try_at else { break };
            waits.push(next.since(now).as_secs());
            now = next;
        }
        assert_eq!(waits, SCHEDULE_S[1..]);
        assert!(waits.is_sorted());
        assert_eq!((mail.status, mail.attempts), (MailStatus::Failed, 12));
        assert_eq!(mail.last_error.as_deref(), Some("the mail server can't be reached"));
        let hours = now.since(at(0)).as_secs() / HOUR;
        assert!((71..=73).contains(&hours), "{hours} hours");
    }

    #[test]
    fn what_was_sent_three_times_without_an_answer_is_given_up() {
        let mut mail = mail();
        let mut waits = Vec::new();
        for outcome in [unanswered(), failed(), unanswered(), failed(), unanswered()] {
            let due = mail.next_try_at.expect("it is open");
            mail.attempted(&outcome, due, 1000);
            waits.extend(mail.next_try_at.map(|next| next.since(due).as_secs()));
        }
        assert_eq!(waits, [5, MINUTE, 24 * HOUR, 30 * MINUTE], "the third time not before a day has passed");
        assert_eq!((mail.status, mail.attempts, mail.unanswered), (MailStatus::Failed, 5, 3));
        assert_eq!(mail.last_error.as_deref(), Some("it may have arrived"));
    }

    /// Each process ends before it could store what came of its message.
    #[test]
    fn what_nobody_hears_of_counts_as_sent_without_an_answer() {
        let mut mail = mail();
        let mut waits = Vec::new();
        while !mail.is_spent() {
            let due = mail.next_try_at.expect("it is open");
            mail = mail.begun(due, 1000);
            assert_eq!((mail.status, mail.last_error.as_deref()), (MailStatus::Pending, Some(UNHEARD)));
            waits.extend(mail.next_try_at.map(|next| next.since(due).as_secs()));
        }
        assert_eq!(waits, [5, 24 * HOUR, 30 * MINUTE], "as after lost answers, and then what the last may take");
        assert_eq!((mail.attempts, mail.unanswered), (3, 3));
        mail.attempted(&MailAttempted::Spent, at(9), 1000);
        assert_eq!((mail.status, mail.next_try_at, mail.attempts), (MailStatus::Failed, None, 3));
        assert_eq!(mail.last_error.as_deref(), Some(UNHEARD));
    }

    #[test]
    fn what_is_heard_of_counts_as_what_it_was() {
        let before = mail();
        let begun = before.begun(at(0), 1000);
        assert_eq!((begun.attempts, begun.unanswered), (1, 1));
        for (outcome, unanswered) in [(failed(), 0), (self::unanswered(), 1), (MailAttempted::Accepted, 0)] {
            let mut mail = before.clone();
            mail.attempted(&outcome, at(1), 1000);
            assert_eq!((mail.attempts, mail.unanswered), (1, unanswered), "{outcome:?}");
        }
    }

    /// The schedule ends for those too whose last attempt nobody heard of.
    #[test]
    fn what_was_begun_twelve_times_is_spent() {
        let mut mail = mail();
        for _ in 1..SCHEDULE_S.len() {
            mail.attempted(&failed(), at(0), 1000);
        }
        assert!(!mail.is_spent());
        let begun = mail.begun(at(0), 1000);
        assert_eq!((begun.status, begun.attempts, begun.unanswered), (MailStatus::Pending, 12, 1));
        assert!(begun.is_spent());
    }

    #[test]
    fn jitter_is_a_tenth_either_way() {
        for (jitter, expected_ms) in [(0, 54_000), (1000, 60_000), (2000, 66_000), (u64::MAX, 66_000)] {
            assert_eq!(next_wait(2, jitter), Some(Duration::from_millis(expected_ms)));
        }
    }

    #[test]
    fn words_read_back() {
        for kind in MailKind::ALL {
            assert_eq!(MailKind::parse(kind.as_str()), Some(kind));
        }
        for status in [MailStatus::Pending, MailStatus::Sent, MailStatus::Failed] {
            assert_eq!(MailStatus::parse(status.as_str()), Some(status));
        }
    }
}
