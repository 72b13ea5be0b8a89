//! Every reason to say no, with its stable code and a sentence that says what to do.
//!
//! The HTTP status of each is the server's business (`server/error.rs`).

use std::fmt;

use crate::money::{Currency, Money, Sum};
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The id names nothing that this credential may see.
    NotFound {
        noun: &'static str,
    },
    CheckoutAlreadyCompleted,
    CheckoutAlreadyCancelled,
    CheckoutExpired,
    PaymentInProgress,
    /// Payments that are under way hold all that is left of a payment link.
    PaymentLinkHeld,
    PaymentAlreadySucceeded,
    PaymentSessionClosed,
    PaymentMethodFixed {
        method: &'static str,
    },
    CodeNotExpected,
    /// No rail stands behind any method. Only live mode is without: test mode has the simulator.
    NoPaymentProvider,
    /// None of the methods that the merchant has enabled takes it.
    NoPaymentMethodAvailable {
        currency: Currency,
        /// Another one would, if it were enabled.
        could_be_enabled: bool,
    },
    InvoiceNotDraft {
        status: &'static str,
    },
    InvoiceNotUpdatable {
        status: &'static str,
    },
    InvoiceIsDraft,
    InvoiceAlreadyPaid,
    InvoiceAlreadyCancelled,
    /// Sent as often as it may be within ten minutes.
    InvoiceAlreadySent {
        most: usize,
        /// A whole second, for it is told as one.
        again_at: Timestamp,
    },
    InvoiceHasPayments,
    InvoiceOverpayment {
        remaining: Money,
    },
    InvoiceVersionConflict {
        current: i64,
    },
    /// The invoice names no address that mail can be sent to.
    CustomerEmailMissing,
    EmailNotConfigured,
    /// Less than what is left, where the merchant takes the whole only.
    PartialPaymentNotAllowed {
        remaining: Money,
    },
    /// The last place is for all that is left.
    TooManyParts {
        parts: usize,
        remaining: Money,
    },
    PaymentLinkInactive,
    PaymentLinkExpired,
    PaymentLinkUsedUp,
    NoActiveEndpoint,
    /// Each event is told to all of them, in the transaction of what happened.
    TooManyActiveEndpoints {
        most: usize,
    },
    /// An operator may only decide an attempt whose outcome is not known.
    AttemptNotUnknown {
        status: &'static str,
    },
    /// Nor one whose code may still reach its rail.
    AttemptCodeOnItsWay {
        until: Timestamp,
    },
    KeyAlreadyRevoked,
    TransactionNotRefundable {
        status: &'static str,
    },
    TransactionAlreadyRefunded,
    /// The rail that has the money pays none back.
    RefundNotSupported,
    RefundExceedsAmount {
        left: Money,
    },
    /// Of one transaction, open or done: the next one has to be all that is left.
    TooManyRefunds {
        most: i64,
    },
    /// Of one transaction, failed ones included.
    TooManyRefundsAsked {
        most: i64,
    },
    InsufficientBalance {
        available: Sum,
        required: Money,
    },
    /// An operator may only decide a refund whose outcome is not known.
    RefundNotUnknown {
        status: &'static str,
    },
}

impl Refusal {
    pub fn not_found<T: crate::id::Object>() -> Self {
        Refusal::NotFound { noun: T::NOUN }
    }

    pub fn code(&self) -> String {
        match self {
            Refusal::NotFound { noun } => return format!("{noun}_not_found"),
            Refusal::CheckoutAlreadyCompleted => "checkout_already_completed",
            Refusal::CheckoutAlreadyCancelled => "checkout_already_cancelled",
            Refusal::CheckoutExpired => "checkout_expired",
            Refusal::PaymentInProgress | Refusal::PaymentLinkHeld => "payment_in_progress",
            Refusal::PaymentAlreadySucceeded => "payment_already_succeeded",
            Refusal::PaymentSessionClosed => "payment_session_closed",
            Refusal::PaymentMethodFixed { .. } => "payment_method_fixed",
            Refusal::CodeNotExpected => "code_not_expected",
            Refusal::NoPaymentProvider | Refusal::NoPaymentMethodAvailable { .. } => "no_payment_method_available",
            Refusal::InvoiceNotDraft { .. } => "invoice_not_draft",
            Refusal::InvoiceNotUpdatable { .. } => "invoice_not_updatable",
            Refusal::InvoiceIsDraft => "invoice_is_draft",
            Refusal::InvoiceAlreadyPaid => "invoice_already_paid",
            Refusal::InvoiceAlreadyCancelled => "invoice_already_cancelled",
            Refusal::InvoiceAlreadySent { .. } => "invoice_already_sent",
            Refusal::InvoiceHasPayments => "invoice_has_payments",
            Refusal::InvoiceOverpayment { .. } => "invoice_overpayment",
            Refusal::InvoiceVersionConflict { .. } => "invoice_version_conflict",
            Refusal::CustomerEmailMissing => "customer_email_missing",
            Refusal::EmailNotConfigured => "email_not_configured",
            Refusal::PartialPaymentNotAllowed { .. } | Refusal::TooManyParts { .. } => "partial_payment_not_allowed",
            Refusal::PaymentLinkInactive => "payment_link_inactive",
            Refusal::PaymentLinkExpired => "payment_link_expired",
            Refusal::PaymentLinkUsedUp => "payment_link_used_up",
            Refusal::NoActiveEndpoint => "no_active_endpoint",
            Refusal::TooManyActiveEndpoints { .. } => "too_many_active_endpoints",
            Refusal::AttemptNotUnknown { .. } => "attempt_not_unknown",
            Refusal::AttemptCodeOnItsWay { .. } => "attempt_code_on_its_way",
            Refusal::KeyAlreadyRevoked => "key_already_revoked",
            Refusal::TransactionNotRefundable { .. }
            | Refusal::RefundNotSupported
            | Refusal::TooManyRefundsAsked { .. } => "transaction_not_refundable",
            Refusal::TransactionAlreadyRefunded => "transaction_already_refunded",
            Refusal::RefundExceedsAmount { .. } => "refund_exceeds_amount",
            Refusal::TooManyRefunds { .. } => "too_many_refunds",
            Refusal::InsufficientBalance { .. } => "insufficient_balance",
            Refusal::RefundNotUnknown { .. } => "refund_not_unknown",
        }
        .into()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotFound { noun } => {
                let words = noun.replace('_', " ");
                let mut letters = words.chars();
                let first = letters.next().map(|letter| letter.to_ascii_uppercase()).unwrap_or_default();
                write!(f, "{first}{} not found", letters.as_str())
            }
            Refusal::CheckoutAlreadyCompleted => {
                f.write_str("This checkout is completed: it has been paid, so nothing more can be done with it.")
            }
            Refusal::CheckoutAlreadyCancelled => {
                f.write_str("This checkout is cancelled. Create a new one to take the payment.")
            }
            Refusal::CheckoutExpired => f.write_str("This checkout is expired. Create a new one to take the payment."),
            Refusal::PaymentInProgress => {
                f.write_str("A payment is processing: the provider has it. Wait for its outcome before you try again.")
            }
            Refusal::PaymentLinkHeld => f.write_str(
                "Payments that are under way hold all that is left of this payment link. One of them may still fail: try again in some minutes.",
            ),
            Refusal::PaymentAlreadySucceeded => f.write_str("This payment session is succeeded: it has been paid."),
            Refusal::PaymentSessionClosed => {
                f.write_str("This payment session is closed. Start a new one by what is paid.")
            }
            Refusal::PaymentMethodFixed { method } => write!(
                f,
                "This checkout was created for {method} only. Create another checkout to offer another method."
            ),
            Refusal::CodeNotExpected => {
                f.write_str("No code is expected now: leave `customer_pin` out, or start a method that asks for one.")
            }
            Refusal::NoPaymentProvider => {
                f.write_str("Live mode has no payment provider in this version; use a test key.")
            }
            Refusal::NoPaymentMethodAvailable { currency, could_be_enabled: true } => {
                write!(f, "No enabled method takes {currency}. Add one that does to `enabled_methods` in the settings.")
            }
            Refusal::NoPaymentMethodAvailable { currency, could_be_enabled: false } => write!(
                f,
                "No enabled method takes {currency}, and no other would. Use another currency, or take the money another way."
            ),
            Refusal::InvoiceNotDraft { status } => {
                write!(f, "This invoice is {status}: only a draft can be finalized.")
            }
            Refusal::InvoiceNotUpdatable { status } => write!(
                f,
                "This invoice is {status}: only a draft or a pending invoice can be updated. Cancel it and create another one where that is possible."
            ),
            Refusal::InvoiceIsDraft => f.write_str("This invoice is a draft. Finalize it first."),
            Refusal::InvoiceAlreadyPaid => f.write_str("This invoice is paid: nothing more can be done with it."),
            Refusal::InvoiceAlreadyCancelled => f.write_str("This invoice is cancelled. Create a new one instead."),
            Refusal::InvoiceAlreadySent { most, again_at } => write!(
                f,
                "This invoice was sent {most} times within ten minutes. Send it again from {} on, under another idempotency key if you use one.",
                again_at.to_text()
            ),
            Refusal::InvoiceHasPayments => f.write_str(
                "This invoice is partially paid and can't be cancelled, not even once its payments are refunded. Take the rest, or leave it as it is.",
            ),
            Refusal::InvoiceOverpayment { remaining } => {
                write!(f, "That is more than what is left to pay: {remaining} {}.", remaining.currency)
            }
            Refusal::InvoiceVersionConflict { current } => write!(
                f,
                "The invoice was changed meanwhile and is at version {current}. Read it again, then repeat the change with that version."
            ),
            Refusal::CustomerEmailMissing => f.write_str(
                "This invoice has no e-mail address of the customer that mail can be sent to. Update its `customer_email` while it is a draft or pending, or hand over its PDF another way.",
            ),
            Refusal::EmailNotConfigured => f.write_str(
                "This server sends no e-mail. Its operator sets smtp-url and mail-from (DALASI_SMTP_URL, DALASI_MAIL_FROM) and starts it again.",
            ),
            Refusal::PartialPaymentNotAllowed { remaining } => write!(
                f,
                "This invoice is paid as a whole: {remaining} {}. Leave `amount` out, or allow partial payments in the settings.",
                remaining.currency
            ),
            Refusal::TooManyParts { parts, remaining } => write!(
                f,
                "This invoice has {parts} payments already: the next one has to be all that is left, {remaining} {}.",
                remaining.currency
            ),
            Refusal::PaymentLinkInactive => f.write_str("This payment link is inactive: it takes no payments now."),
            Refusal::PaymentLinkExpired => {
                f.write_str("This payment link is expired. Send a later `expiration_date` together with `status: active`.")
            }
            Refusal::PaymentLinkUsedUp => {
                f.write_str("This payment link is used up. Send a higher `max_usage_count` together with `status: active`.")
            }
            Refusal::NoActiveEndpoint => {
                f.write_str("No active webhook endpoint listens to this event. Create or activate one, then retry.")
            }
            Refusal::TooManyActiveEndpoints { most } => write!(
                f,
                "There are {most} active webhook endpoints already. Delete one or make it inactive, or let one of them listen to more events."
            ),
            Refusal::AttemptNotUnknown { status } => {
                write!(f, "This attempt is {status}: only one whose outcome is unknown can be decided by hand.")
            }
            Refusal::AttemptCodeOnItsWay { until } => {
                let until = until.to_text();
                write!(f, "The code of this attempt may still reach its rail until {until}: decide it after that.")
            }
            Refusal::KeyAlreadyRevoked => f.write_str("This key is revoked already."),
            Refusal::TransactionNotRefundable { status } => {
                write!(f, "This transaction is {status}: only one that is completed can be refunded.")
            }
            Refusal::TransactionAlreadyRefunded => f.write_str("This transaction is refunded: nothing of it is left."),
            Refusal::RefundNotSupported => {
                f.write_str("The payment provider that has this money pays none back. Refund the payer by another way.")
            }
            Refusal::RefundExceedsAmount { left } => write!(
                f,
                "Only {left} {} of this transaction is left to refund; refunds that are on their way count.",
                left.currency
            ),
            Refusal::TooManyRefunds { most } => write!(
                f,
                "This transaction has {most} refunds already: the next one has to be all that is left. Leave `amount` out."
            ),
            Refusal::TooManyRefundsAsked { most } => write!(
                f,
                "{most} refunds of this transaction were asked for already, failed ones included, and no more can be. Give the money back to the payer by another way."
            ),
            Refusal::InsufficientBalance { available, required } => {
                let currency = required.currency;
                write!(f, "This needs {required} {currency}, and {available} {currency} is available.")
            }
            Refusal::RefundNotUnknown { status } => {
                write!(
                    f,
                    "This refund is {status}: only one whose outcome is unknown, and which is not being sent again at this \
                     moment, can be decided by hand."
                )
            }
        }
    }
}

impl std::error::Error for Refusal {}
