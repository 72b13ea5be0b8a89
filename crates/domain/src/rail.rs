//! What a payment rail can be asked and can say: the vocabulary that pages, API, simulator and
//! every connector share. No rail's own words get past its connector.

use serde::{Deserialize, Serialize};

use crate::money::Money;

/// What the payer does next. Starting a payment returns exactly one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NextAction {
    Redirect {
        url: String,
    },
    /// A request was pushed to the handset.
    ApproveOnPhone {
        instructions: String,
        poll_after_s: u32,
    },
    /// A code went out by SMS and comes back through us.
    Otp {
        length: u8,
        resend_after_s: u32,
        attempts_left: u8,
    },
    /// The payer says "I have approved"; then the rail is asked to confirm.
    ConfirmDone {},
    DialUssd {
        code: String,
    },
    ShowQr {
        data: String,
    },
}

/// Why a payer's money did not move, in the wire's words (contract §2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    InsufficientFunds,
    Declined,
    WrongCode,
    Expired,
    Cancelled,
    ProviderError,
}

impl FailureReason {
    pub fn as_str(self) -> &'static str {
        match self {
            FailureReason::InsufficientFunds => "insufficient_funds",
            FailureReason::Declined => "declined",
            FailureReason::WrongCode => "wrong_code",
            FailureReason::Expired => "expired",
            FailureReason::Cancelled => "cancelled",
            FailureReason::ProviderError => "provider_error",
        }
    }
}

/// How a call to a rail ended. `Lost` is everything that is neither a clear yes nor a clear no:
/// a timeout, a reset, a 5xx, an answer that does not parse. It is never taken for a no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Called<T> {
    Answered(T),
    Refused(FailureReason),
    Lost(String),
}

/// The rail took the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub next_action: NextAction,
    /// The rail's own name of the payment, where it tells one.
    pub rail_reference: Option<String>,
}

/// What a rail says of a payment, by verified callback or by query. Nothing else is proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// It waits for the payer: nothing happened yet.
    Open,
    /// It waits for the code; so many tries are left.
    AwaitingCode {
        attempts_left: u8,
    },
    /// The payer acted; the outcome is on its way.
    Processing,
    Paid {
        amount: Money,
        rail_reference: String,
    },
    Failed {
        reason: FailureReason,
    },
    /// The rail knows no such payment: no proof that none will come (connectors §1).
    NotFound,
}

/// What a rail says of a refund, in its answer, by verified callback or by query. Nothing else is proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefundReport {
    /// It has it; the outcome is on its way.
    Processing {
        rail_reference: Option<String>,
    },
    Completed {
        amount: Money,
        rail_reference: Option<String>,
    },
    Failed {
        reason: FailureReason,
    },
    /// The rail knows no such refund: no proof that none will come.
    NotFound,
}

/// What a rail pays back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundSupport {
    None,
    /// The whole payment, once.
    Full,
    /// Any part, several times.
    Partial,
}

/// What a rail offers for one method, as data: no `if rail == …` outside its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    pub currencies: &'static [&'static str],
    /// Starting again under the same reference returns the same payment.
    pub start_is_idempotent: bool,
    pub code_length: Option<u8>,
    pub refund: RefundSupport,
    /// Asking again under the same reference returns the same refund.
    pub refund_is_idempotent: bool,
}
