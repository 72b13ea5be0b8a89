//! What each operation may refuse with. The sentences and statuses are the real ones: they are made here as they are
//! made in an answer.

use domain::Refusal;
use domain::api_key::Right;

use crate::error::Failure;
use crate::fault::{Fault, FaultCode};
use crate::http::answer::Problem;
use crate::http::json::Body;
use crate::http::{auth, body, caller};

/// Who may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Anybody, without a credential.
    Open,
    /// A secret key itself: no token, no publishable key.
    SecretKey,
    /// A secret key or a token with this right.
    Merchant(Right),
    /// As `Merchant`, and a publishable key as well.
    Page(Right),
}

/// Whether a repeated request is recognised by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeats {
    /// It reads only.
    Harmless,
    /// It writes, and the key is not looked at.
    Repeat,
    /// `Idempotency-Key`.
    ByHeader,
    /// `Idempotency-Key` or the body's `idempotency_key`.
    ByHeaderOrBody,
}

impl Repeats {
    pub(super) fn takes_key(self) -> bool {
        matches!(self, Repeats::ByHeader | Repeats::ByHeaderOrBody)
    }

    fn writes(self) -> bool {
        self != Repeats::Harmless
    }
}

/// Those that follow from how an operation is called, before its own.
pub(super) fn common(access: Access, repeats: Repeats) -> Vec<Problem> {
    let mut problems = Vec::new();
    if access == Access::Open {
        problems.extend([Problem::rate_limited(1), Problem::internal_error(), Problem::unavailable()]);
        return problems;
    }
    if repeats.writes() {
        problems.push(invalid_json());
    }
    if repeats.takes_key() {
        problems.push(caller::invalid_key());
    }
    if repeats == Repeats::ByHeaderOrBody {
        problems.push(caller::key_conflict());
    }
    if repeats.takes_key() {
        problems.push(Failure::KeyReused.into());
    }
    problems.extend([auth::missing(), auth::invalid_key(), auth::invalid_token(), auth::expired_token()]);
    match access {
        Access::Open => {}
        Access::SecretKey => problems.push(caller::secret_key_required()),
        Access::Merchant(right) => problems.extend([caller::secret_key_required(), caller::insufficient_scope(right)]),
        Access::Page(right) => problems.push(caller::insufficient_scope(right)),
    }
    if repeats.writes() {
        problems.extend([body::timed_out(), Problem::body_too_large(1024 * 1024), not_json()]);
    }
    problems.push(Problem::rate_limited(1));
    if repeats.takes_key() {
        problems.push(Failure::KeyInUse.into());
    }
    problems.extend([Problem::internal_error(), Problem::unavailable()]);
    problems
}

pub(super) fn refused(refusal: Refusal) -> Problem {
    Failure::from(refusal).into()
}

/// An example of a request with these faults.
pub(super) fn invalid(faults: &[(&str, FaultCode, &str)]) -> Problem {
    Problem::validation(faults.iter().map(|(field, code, message)| Fault::new(*field, *code, *message)).collect())
}

fn invalid_json() -> Problem {
    Body::parse(b"{\"amount\": ").err().map(Problem::from).expect("half a body is no JSON")
}

fn not_json() -> Problem {
    Problem::unsupported_media_type("The body must be JSON; send it with `Content-Type: application/json`.")
}
