//! What a payment rail can be asked and can say: the vocabulary that pages, API, simulator and
//! every connector share. No rail's own words get past its connector.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::money::Money;

/// Between two questions about what was begun within the last eight hours, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
/// And about what is older.
const LONGEST_PAUSE_OF_OLD: Duration = Duration::from_secs(24 * 3_600);

/// How long to wait before a rail is asked again about what was begun so long ago: twice as long each time, up to an hour, or to an
/// eighth of its age where that is more, but for a day. What no rail ever decides would else be asked about as often for ever.
pub(crate) fn pause(questions: u32, age: Duration) -> Duration {
    // More than a day.
    const MOST_DOUBLINGS: u32 = 17;
    let doubled = Duration::from_secs(1 << questions.min(MOST_DOUBLINGS));
    doubled.min((age / 8).clamp(LONGEST_PAUSE, LONGEST_PAUSE_OF_OLD))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;
    const DAY: u64 = 24 * HOUR;

    fn pause_s(questions: u32, age_s: u64) -> u64 {
        pause(questions, Duration::from_secs(age_s)).as_secs()
    }

    #[test]
    fn the_pauses_double_up_to_an_hour_and_for_what_is_old_up_to_an_eighth_of_its_age() {
        let pauses = |age_s| (9..19).map(|questions| pause_s(questions, age_s)).collect::<Vec<_>>();
        for age_s in [0, 1, 8 * HOUR] {
            assert_eq!(pauses(age_s), [512, 1024, 2048, HOUR, HOUR, HOUR, HOUR, HOUR, HOUR, HOUR], "{age_s}");
        }
        assert_eq!(pauses(16 * HOUR), [512, 1024, 2048, 4096, 7200, 7200, 7200, 7200, 7200, 7200]);
        assert_eq!(pauses(365 * DAY), [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, DAY, DAY]);
        assert_eq!(pause_s(0, 365 * DAY), 1, "where somebody waits again, it is asked often again");
        for (age_s, pause) in [(8 * HOUR + 8, HOUR + 1), (DAY, 3 * HOUR), (8 * DAY - 8, DAY - 1), (8 * DAY, DAY)] {
            assert_eq!(pause_s(u32::MAX, age_s), pause, "{age_s}");
        }
    }

    /// It was twenty-four times a day.
    #[test]
    fn what_no_rail_ever_decides_costs_less_and_less() {
        let asked = |from_s: u64, until_s: u64| {
            let (mut age_s, mut questions, mut count) = (0, 0, 0);
            while age_s < until_s {
                age_s += pause_s(questions, age_s);
                questions += 1;
                count += u32::from((from_s..until_s).contains(&age_s));
            }
            count
        };
        assert_eq!(asked(0, 8 * HOUR), 18, "as often as ever");
        assert!(asked(0, 8 * DAY) < 50, "{}", asked(0, 8 * DAY));
        assert_eq!(asked(30 * DAY, 60 * DAY), 30);
    }
}
