//! Why a command failed, in a sentence or two, and with which exit code.

use std::io;
use std::process::ExitCode;

use http::StatusCode;

use crate::config::SettingsFaults;
use crate::error::Failure;
use crate::listener::TlsFault;
use crate::mail::MailFault;
use crate::secrets::KeyFileFault;

/// A failed command: its kind is the exit code, its text the cause and the next step.
#[derive(Debug)]
pub(super) struct Problem {
    kind: Kind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Failed = 1,
    Usage = 2,
    NotAuthorized = 3,
    NotFound = 4,
    Conflict = 5,
    /// Whoever read the output went away: nobody is left to tell. A list that was read as far as somebody wanted is no
    /// failure; a command that decides something has done so before it tells, and says its verdict all the same.
    NobodyListens = 0,
}

/// Codes that no argument of a command explains.
const MADE_WRONG: [&str; 4] =
    ["invalid_json", "card_data_not_allowed", "invalid_idempotency_key", "idempotency_key_conflict"];

impl Problem {
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self { kind: Kind::Failed, text: text.into() }
    }

    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, text: text.into() }
    }

    /// Of a file that the settings name. What is wrong there is so at the next start too, unless the file system only failed just now.
    fn of_file(sentence: String, io: Option<io::ErrorKind>) -> Self {
        match io {
            None
            | Some(
                io::ErrorKind::NotFound
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::IsADirectory
                | io::ErrorKind::ReadOnlyFilesystem
                | io::ErrorKind::InvalidData,
            ) => Self::usage(sentence),
            Some(_) => Self::failed(sentence),
        }
    }

    /// Of an address to listen on. It may come with the network, and a port become free; what this user may not have, is so at the
    /// next start too.
    pub(super) fn of_address(sentence: String, io: io::ErrorKind) -> Self {
        match io {
            io::ErrorKind::PermissionDenied => Self::usage(sentence),
            _ => Self::failed(sentence),
        }
    }

    pub(super) fn not_authorized(text: impl Into<String>) -> Self {
        Self { kind: Kind::NotAuthorized, text: text.into() }
    }

    pub(super) fn not_found(text: impl Into<String>) -> Self {
        Self { kind: Kind::NotFound, text: text.into() }
    }

    pub(super) fn conflict(text: impl Into<String>) -> Self {
        Self { kind: Kind::Conflict, text: text.into() }
    }

    /// What the API refuses ends as it would where the command runs on the installation itself.
    pub(super) fn refused(status: StatusCode, code: Option<&str>, sentence: String) -> Self {
        match (status, code) {
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => Self::not_authorized(sentence),
            (StatusCode::NOT_FOUND, _) => Self::not_found(sentence),
            (StatusCode::BAD_REQUEST, Some("validation_failed")) => Self::usage(sentence),
            (StatusCode::BAD_REQUEST, Some(code)) if !MADE_WRONG.contains(&code) => Self::conflict(sentence),
            (StatusCode::CONFLICT, _) => Self::conflict(sentence),
            _ => Self::failed(sentence),
        }
    }

    pub(super) fn output(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self { kind: Kind::NobodyListens, text: String::new() },
            _ => Self::failed(format!("the output can't be written: {error}")),
        }
    }

    /// For a command whose output is what it is for: nobody has it.
    pub(super) fn or_lost(self, what: &str) -> Self {
        match self.kind {
            Kind::NobodyListens => Self::failed(format!("whoever read the output went away: {what}")),
            Kind::Failed | Kind::Usage | Kind::NotAuthorized | Kind::NotFound | Kind::Conflict => self.and(what),
        }
    }

    /// Adds where to look, if what was named is not there.
    pub(super) fn or_look(mut self, hint: &str) -> Self {
        if self.kind == Kind::NotFound {
            self.text = format!("{}. {hint}", self.text.trim_end_matches('.'));
        }
        self
    }

    /// Adds what came of it.
    pub(super) fn and(mut self, what: &str) -> Self {
        self.text = format!("{}; {what}", self.text.trim_end_matches('.'));
        self
    }

    /// Adds what else went wrong, if anything did.
    pub(super) fn beside(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        Self { text: format!("{}\n{}", self.text, other.text), ..self }
    }

    /// What there is to say, for a command that goes on.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Tells the operator, on standard error.
    pub(super) fn report(self) -> ExitCode {
        if self.kind != Kind::NobodyListens {
            super::output::message(&format!("dalasi: {}", self.text));
        }
        ExitCode::from(self.kind as u8)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(domain::Refusal::NotFound { .. }) => Self::not_found(failure.to_string()),
            Failure::Refused(_) | Failure::KeyReused | Failure::KeyInUse | Failure::TooOften => {
                Self::conflict(failure.to_string())
            }
            Failure::Invalid(_) => Self::usage(failure.to_string()),
            Failure::Store(error) => error.into(),
            Failure::Broken(_) => Self::failed(failure.to_string()),
        }
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::InUse(_) => Self::conflict(error.to_string()),
            store::Error::Unsafe(sentence) => Self::failed(format!(
                "{sentence}\n--unsafe starts all the same: acknowledged payments may then be lost."
            )),
            store::Error::Unusable(sentence) => Self::usage(sentence),
            store::Error::Conflict
            | store::Error::Unavailable(_)
            | store::Error::Busy
            | store::Error::UnknownCommit
            | store::Error::Corrupt(_)
            | store::Error::NewerSchema { .. }
            | store::Error::Schema(_)
            | store::Error::Backup(_)
            | store::Error::Sql { .. }
            | store::Error::Panic(_) => Self::failed(error.to_string()),
        }
    }
}

impl From<SettingsFaults> for Problem {
    fn from(faults: SettingsFaults) -> Self {
        Self::usage(faults.to_string())
    }
}

impl From<KeyFileFault> for Problem {
    fn from(fault: KeyFileFault) -> Self {
        let io = match &fault {
            KeyFileFault::Io { error, .. } => Some(error.kind()),
            KeyFileFault::Missing(_)
            | KeyFileFault::Exists(_)
            | KeyFileFault::Permissions { .. }
            | KeyFileFault::Malformed(_) => None,
        };
        Self::of_file(fault.to_string(), io)
    }
}

impl From<TlsFault> for Problem {
    fn from(fault: TlsFault) -> Self {
        Self::of_file(fault.to_string(), fault.io)
    }
}

impl From<MailFault> for Problem {
    fn from(fault: MailFault) -> Self {
        Self::of_file(fault.to_string(), fault.io)
    }
}

#[cfg(test)]
mod tests {
    use domain::Refusal;
    use domain::receipt::Receipt;

    use super::*;
    use crate::fault::{Fault, FaultCode};

    #[test]
    fn a_refusal_ends_alike_over_the_api_and_beside_the_database() {
        for failure in [
            Failure::Refused(Refusal::not_found::<Receipt>()),
            Failure::Refused(Refusal::NoActiveEndpoint),
            Failure::Refused(Refusal::CheckoutAlreadyCancelled),
            Failure::KeyReused,
            Failure::from(Fault::new("type", FaultCode::InvalidEnum, "There is no such type.")),
            Failure::Broken("a page is torn".to_owned()),
        ] {
            let status = StatusCode::from_u16(failure.status()).unwrap();
            let refused = Problem::refused(status, Some(&*failure.code()), failure.sentence());
            let what = format!("{failure:?}");
            assert_eq!(refused.kind, Problem::from(failure).kind, "{what}");
        }
    }

    /// A supervisor that starts again what failed would do so for ever.
    #[test]
    fn what_starting_again_does_not_mend_is_a_setting() {
        let kind = |io| Problem::of_file("A sentence.".to_owned(), io).kind;
        let disk = |error| Problem::from(KeyFileFault::Io { path: "master.key".into(), error }).kind;
        assert_eq!(kind(None), Kind::Usage);
        assert_eq!(Problem::from(KeyFileFault::Malformed("master.key".into())).kind, Kind::Usage);
        for (io, wanted) in [
            (io::ErrorKind::NotFound, Kind::Usage),
            (io::ErrorKind::PermissionDenied, Kind::Usage),
            (io::ErrorKind::InvalidData, Kind::Usage),
            (io::ErrorKind::StorageFull, Kind::Failed),
            (io::ErrorKind::Other, Kind::Failed),
        ] {
            assert_eq!((kind(Some(io)), disk(io.into())), (wanted, wanted), "{io}");
        }
    }

    #[test]
    fn an_address_that_may_come_is_tried_again() {
        for (io, wanted) in [
            (io::ErrorKind::PermissionDenied, Kind::Usage),
            (io::ErrorKind::AddrInUse, Kind::Failed),
            (io::ErrorKind::AddrNotAvailable, Kind::Failed),
        ] {
            assert_eq!(Problem::of_address("A sentence.".to_owned(), io).kind, wanted, "{io}");
        }
    }

    #[test]
    fn what_else_the_api_says_has_its_exit_code() {
        let kind = |status: u16, code| {
            Problem::refused(StatusCode::from_u16(status).unwrap(), code, "A sentence.".to_owned()).kind
        };
        for (status, code, expected) in [
            (401, Some("invalid_api_key"), Kind::NotAuthorized),
            (403, Some("insufficient_scope"), Kind::NotAuthorized),
            (404, None, Kind::NotFound),
            (409, None, Kind::Conflict),
            (400, Some("invalid_json"), Kind::Failed),
            (400, None, Kind::Failed),
            (302, None, Kind::Failed),
            (413, Some("body_too_large"), Kind::Failed),
        ] {
            assert_eq!(kind(status, code), expected, "{status} {code:?}");
        }
    }
}
