//! Why a command did not do what was asked, and the one map from that to a status and a code.
//!
//! A refusal and an invalid request are the caller's to mend; a fault is ours, logged once at the edge and never shown.

use std::borrow::Cow;
use std::fmt;

use domain::Refusal;

use crate::fault::Fault;

#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The domain says no.
    Refused(Refusal),
    /// The request names or contains what can't be: all faults at once.
    Invalid(Vec<Fault>),
    /// The idempotency key belongs to another request.
    KeyReused,
    /// The first request with this idempotency key has not ended.
    KeyInUse,
    /// So many attempts to pay this are enough for now.
    TooOften,
    /// The database, or what it said.
    Store(store::Error),
    /// A fault of ours.
    Broken(String),
}

impl Failure {
    /// The HTTP status of contract §1.4.
    pub fn status(&self) -> u16 {
        match self {
            Failure::Refused(Refusal::NotFound { .. }) => 404,
            Failure::Refused(
                Refusal::CheckoutAlreadyCompleted
                | Refusal::CheckoutAlreadyCancelled
                | Refusal::CheckoutExpired
                | Refusal::PaymentInProgress
                | Refusal::PaymentLinkHeld
                | Refusal::PaymentAlreadySucceeded
                | Refusal::PaymentSessionClosed
                | Refusal::PaymentMethodFixed { .. }
                | Refusal::CodeNotExpected
                | Refusal::NoPaymentProvider
                | Refusal::NoPaymentMethodAvailable { .. }
                | Refusal::InvoiceNotDraft { .. }
                | Refusal::InvoiceNotUpdatable { .. }
                | Refusal::InvoiceIsDraft
                | Refusal::InvoiceAlreadyPaid
                | Refusal::InvoiceAlreadyCancelled
                | Refusal::InvoiceAlreadySent { .. }
                | Refusal::InvoiceHasPayments
                | Refusal::InvoiceOverpayment { .. }
                | Refusal::InvoiceVersionConflict { .. }
                | Refusal::CustomerEmailMissing
                | Refusal::EmailNotConfigured
                | Refusal::PartialPaymentNotAllowed { .. }
                | Refusal::TooManyParts { .. }
                | Refusal::PaymentLinkInactive
                | Refusal::PaymentLinkExpired
                | Refusal::PaymentLinkUsedUp
                | Refusal::NoActiveEndpoint
                | Refusal::TooManyActiveEndpoints { .. }
                | Refusal::AttemptNotUnknown { .. }
                | Refusal::AttemptCodeOnItsWay { .. }
                | Refusal::KeyAlreadyRevoked
                | Refusal::TransactionNotRefundable { .. }
                | Refusal::TransactionAlreadyRefunded
                | Refusal::RefundNotSupported
                | Refusal::RefundExceedsAmount { .. }
                | Refusal::TooManyRefunds { .. }
                | Refusal::TooManyRefundsAsked { .. }
                | Refusal::InsufficientBalance { .. }
                | Refusal::RefundNotUnknown { .. },
            )
            | Failure::Invalid(_)
            | Failure::KeyReused => 400,
            Failure::KeyInUse | Failure::TooOften => 429,
            Failure::Store(store::Error::Unavailable(_) | store::Error::Busy | store::Error::Conflict) => 503,
            Failure::Store(_) | Failure::Broken(_) => 500,
        }
    }

    pub fn code(&self) -> Cow<'static, str> {
        match self {
            Failure::Refused(refusal) => refusal.code().into(),
            Failure::Invalid(_) => "validation_failed".into(),
            Failure::KeyReused => "idempotency_key_reused".into(),
            Failure::KeyInUse => "idempotency_key_in_use".into(),
            Failure::TooOften => "rate_limited".into(),
            Failure::Store(store::Error::Unavailable(_) | store::Error::Busy | store::Error::Conflict) => {
                "unavailable".into()
            }
            Failure::Store(_) | Failure::Broken(_) => "internal_error".into(),
        }
    }

    /// What the caller is told. It never holds what went wrong inside.
    pub fn sentence(&self) -> String {
        match self {
            Failure::Refused(refusal) => refusal.to_string(),
            Failure::Invalid(faults) => faults.first().map(|fault| fault.message.clone()).unwrap_or_default(),
            Failure::KeyReused => {
                "This idempotency key was used for a different request. Use a new key for a new request.".into()
            }
            Failure::KeyInUse => {
                "The first request with this idempotency key is still running. Try again in a second.".into()
            }
            Failure::TooOften => "There were too many attempts to pay this. Try again in a few minutes.".into(),
            Failure::Store(store::Error::Busy) => {
                "There is more to do right now than can be done at once. Nothing was changed; try again.".into()
            }
            Failure::Store(store::Error::Unavailable(_) | store::Error::Conflict) => {
                "The service can't write right now. Nothing was changed; try again.".into()
            }
            Failure::Store(_) | Failure::Broken(_) => {
                "Something broke on our side. Quote the request id when you ask.".into()
            }
        }
    }

    /// Whether the answer is kept under the idempotency key: what was executed and refused is, what was rejected before or
    /// broke is not (contract §1.8).
    pub fn is_final(&self) -> bool {
        matches!(self, Failure::Refused(_))
    }

    /// No fault of what was asked: it may be done as soon as the database can, if it was not done already.
    pub fn passes(&self) -> bool {
        matches!(
            self,
            Failure::Store(
                store::Error::Unavailable(_)
                    | store::Error::Busy
                    | store::Error::UnknownCommit
                    | store::Error::Conflict
            )
        )
    }

    /// Something inside went wrong: log it.
    pub fn is_fault(&self) -> bool {
        self.status() >= 500
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::Refused(refusal)
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        Failure::Store(error)
    }
}

impl From<Vec<Fault>> for Failure {
    fn from(faults: Vec<Fault>) -> Self {
        Failure::Invalid(faults)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure::Invalid(vec![fault])
    }
}

impl fmt::Display for Failure {
    /// For logs and the command line: the cause itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Store(error) => error.fmt(f),
            Failure::Broken(what) => f.write_str(what),
            Failure::Invalid(faults) => {
                for (index, fault) in faults.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "; " };
                    write!(f, "{separator}{}: {}", fault.field, fault.message)?;
                }
                Ok(())
            }
            Failure::Refused(_) | Failure::KeyReused | Failure::KeyInUse | Failure::TooOften => {
                f.write_str(&self.sentence())
            }
        }
    }
}

impl std::error::Error for Failure {}
