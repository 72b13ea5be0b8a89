//! What can go wrong with a mail, and where: said so that an operator knows what to mend.

use std::error::Error;
use std::fmt;
use std::io;

/// Mail can't be set up. The sentence is for the operator and holds no secret.
#[derive(Debug)]
pub struct MailFault {
    pub(super) sentence: String,
    /// What the file system said, where it was that.
    pub io: Option<io::ErrorKind>,
}

impl fmt::Display for MailFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl Error for MailFault {}

/// How far a conversation with the mail server came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The message could not be written: nothing was sent.
    Compose,
    /// Finding the server, the connection, and the server's greeting.
    Connect,
    Encrypt,
    LogIn,
    Sender,
    Recipient,
    /// The server takes the message, or says why not.
    Message,
    /// The message was sent, and the answer never came.
    Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finality {
    /// It would be refused again: the server has said no to this recipient or this message for good.
    ForGood,
    ForNow,
}

/// A message was not sent, or nobody knows whether it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendFault {
    pub step: Step,
    pub finality: Finality,
    /// The server's three digits, if it answered.
    pub code: Option<u16>,
    cause: String,
}

/// The server's own words are kept so far.
const LONGEST_CAUSE: usize = 300;

impl SendFault {
    pub(super) fn new(step: Step, finality: Finality, code: Option<u16>, cause: &str) -> Self {
        // The words are another's: one line, and not without end.
        let words = cause.split_whitespace().collect::<Vec<_>>().join(" ");
        let cause = words.chars().filter(|letter| !letter.is_control()).take(LONGEST_CAUSE).collect();
        Self { step, finality, code, cause }
    }

    /// The server's no is final where it speaks of this recipient or this message. What it says of our connection, our
    /// login or our sender is for the operator to mend, and 530 asks for a login at whatever command came first.
    pub(super) fn answered(step: Step, error: &lettre::transport::smtp::Error) -> Self {
        // TLS from the start fails while connecting.
        let step = if step == Step::Connect && is_of_tls(error) { Step::Encrypt } else { step };
        let code = error.status().map(u16::from);
        let words = innermost(error);
        let words = if words == "incomplete response" { "it closed the connection" } else { &words };
        let is_about_this = error.is_permanent() && code != Some(530);
        match is_about_this.then(|| refused(step, words)).flatten() {
            Some(refused) => Self::new(refused, Finality::ForGood, code, words),
            None => Self::new(step, Finality::ForNow, code, words),
        }
    }

    /// TLS from the start did not come about.
    pub(super) fn unencrypted(error: &std::io::Error) -> Self {
        let step = if is_of_tls(error) { Step::Encrypt } else { Step::Connect };
        Self::new(step, Finality::ForNow, None, &innermost(error))
    }

    pub(super) fn at(self, step: Step) -> Self {
        Self { step, ..self }
    }

    /// Whether the server did its work all the same: it would take another mail. Nothing where the fault does not tell.
    pub fn has_server_worked(&self) -> Option<bool> {
        match self.step {
            Step::Connect | Step::Encrypt | Step::LogIn | Step::Sender => Some(false),
            Step::Recipient | Step::Message => Some(true),
            Step::Compose | Step::Answer => None,
        }
    }

    /// The same without the server's words, which may name the recipient: for the log.
    pub fn without_words(&self) -> String {
        let code = self.code.map(|code| format!(" ({code})")).unwrap_or_default();
        match self.step {
            Step::Compose | Step::Recipient | Step::Message => format!("{}{code}", self.what()),
            Step::Connect | Step::Encrypt | Step::LogIn | Step::Sender | Step::Answer => self.to_string(),
        }
    }

    fn what(&self) -> &'static str {
        match self.step {
            Step::Compose => "the message can't be written",
            Step::Connect => "the mail server can't be reached",
            Step::Encrypt => "the connection to the mail server can't be encrypted",
            Step::LogIn => "the mail server refused the login",
            Step::Sender => "the mail server refused the sender",
            Step::Recipient if self.finality == Finality::ForGood => "the mail server refused the recipient",
            // It may have kept until then what it has to say of our connection or our sender.
            Step::Recipient | Step::Message => "the mail server did not take the message",
            Step::Answer => "the message was sent, but its answer was lost: it may have arrived",
        }
    }
}

impl fmt::Display for SendFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map(|code| format!("{code} ")).unwrap_or_default();
        write!(f, "{}: {code}{}", self.what(), self.cause)
    }
}

impl Error for SendFault {}

/// What a permanent no is about: this recipient, this message, or nothing that belongs to this mail alone. Many servers say no
/// to a sender or a client only when they hear a recipient; the code at the head of their words tells (RFC 3463). Where there is
/// none, what was said last is meant.
fn refused(said: Step, words: &str) -> Option<Step> {
    if !matches!(said, Step::Recipient | Step::Message) {
        return None;
    }
    match enhanced_code(words) {
        // The second says no more than none.
        None | Some((5, 0, 0)) => Some(said),
        // The sender's address.
        Some((5, 1, 7 | 8)) => None,
        // Or no way leads to its domain.
        Some((5, 1 | 2, _) | (5, 4, 4)) => Some(Step::Recipient),
        // It is too large, or what it is made of is not taken.
        Some((5, 3, 4) | (5, 6, _)) => Some(Step::Message),
        // Having read it, the server takes it for unwanted: it would once more, and think less of who sends it.
        Some((5, 7, 1)) if said == Step::Message => Some(Step::Message),
        Some(_) => None,
    }
}

/// Class, subject and detail, as in `5.1.1` or, of some, `#5.1.1:`.
fn enhanced_code(words: &str) -> Option<(u16, u16, u16)> {
    let head = words.split_whitespace().next()?.trim_matches(|letter: char| !letter.is_ascii_digit());
    let mut parts = head.split('.').map(|part| part.parse().ok());
    let code = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(code)
}

fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        // What an I/O error is made of is not its source, but its inside.
        let inside = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if error.is::<rustls::Error>() || inside.is_some_and(|inside| inside.is::<rustls::Error>()) {
            return true;
        }
        next = error.source();
    }
    false
}

/// The cause that the others are wrapped around.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
