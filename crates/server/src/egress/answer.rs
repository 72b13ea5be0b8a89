//! What came of a call: an answer, or a failure with its kind and a sentence for the person who set up the receiver.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use jiff::fmt::rfc2822;
use rustls::AlertDescription;

use super::connection::SaidTooMuch;
use super::resolver::ResolveFault;

/// An answer of any status. What counts as success is for the caller to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub retry_after: Option<RetryAfter>,
    /// The first KiB of the body as text, without control characters that a database or a terminal chokes on.
    pub body_start: String,
}

/// The header of that name: a wait or a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    Seconds(u64),
    /// Unix seconds.
    At(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No whole answer in time.
    Timeout,
    /// No connection.
    Refused,
    /// The name has no address, or the name server didn't say.
    Dns,
    /// The URL or an address behind it is off limits.
    Forbidden,
    /// The TLS handshake failed: certificate, name or version.
    Tls,
    /// The connection broke, or the answer wasn't HTTP.
    Other,
}

/// No answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// A sentence that may be shown to the merchant: no address, no path.
    pub message: String,
}

impl RetryAfter {
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // More digits than fit mean "never"; the caller has a ceiling anyway.
            return Some(Self::Seconds(text.parse().unwrap_or(u64::MAX)));
        }
        let moment = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(Self::At(moment.as_second()))
    }

    /// How long from `now_s` (Unix seconds) to wait, in seconds.
    pub fn wait_s(self, now_s: i64) -> u64 {
        match self {
            Self::Seconds(seconds) => seconds,
            Self::At(moment) => u64::try_from(moment.saturating_sub(now_s)).unwrap_or(0),
        }
    }
}

impl Failure {
    pub(super) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn timeout(timeout: Duration) -> Self {
        Self::new(FailureKind::Timeout, format!("No complete answer within {} seconds.", timeout.as_secs_f32()))
    }

    pub(super) fn from_resolving(fault: &ResolveFault, host: &str) -> Self {
        match fault {
            ResolveFault::Forbidden => Self::new(
                FailureKind::Forbidden,
                format!("{host} leads to an address that is not on the public internet."),
            ),
            ResolveFault::Unknown(_) => Self::new(FailureKind::Dns, format!("The name {host} could not be resolved.")),
        }
    }

    /// Of a client that connected (`is_connect`), or talked.
    pub(super) fn from_client(error: &(dyn Error + 'static), is_connect: bool, host: &str) -> Self {
        if let Some(fault) = cause::<ResolveFault>(error) {
            return Self::from_resolving(fault, host);
        }
        if let Some(fault) = cause::<rustls::Error>(error) {
            let fault = match fault {
                rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
                    "it does not speak HTTP/1.1".to_owned()
                }
                fault => fault.to_string(),
            };
            return Self::new(FailureKind::Tls, format!("The secure connection to {host} failed: {fault}."));
        }
        if let Some(fault) = cause::<SaidTooMuch>(error) {
            return Self::new(FailureKind::Other, format!("The answer of {host} was not read to its end: {fault}."));
        }
        if is_connect {
            return Self::new(FailureKind::Refused, format!("No connection to {host} could be made."));
        }
        Self::new(FailureKind::Other, format!("The connection to {host} broke off, or the answer was not HTTP."))
    }
}

/// Looks for an error of one type among the causes, also inside the errors that wrap it without naming it as their
/// source, as those of input and output do.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        if let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref)
            && let Some(found) = cause::<E>(inner)
        {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Bytes of a stranger as text that is safe to store and to print.
pub(super) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|letter| match letter {
            '\n' | '\t' => letter,
            control if control.is_control() => char::REPLACEMENT_CHARACTER,
            other => other,
        })
        .collect()
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for Failure {}
