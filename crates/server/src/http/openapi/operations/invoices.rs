//! Invoices and receipts.

use domain::api_key::{Area, Right};
use domain::invoice::Invoice;
use domain::receipt::Receipt;
use domain::{Currency, Money, Refusal, Timestamp};

use super::super::problems::{Access, Repeats, invalid, refused};
use super::{in_list, unexpected_body};
use crate::fault::FaultCode;
use crate::http::answer::Problem;

/// Nothing for an operation of another resource.
pub(super) fn about(id: &str) -> Option<(Access, Repeats, &'static str)> {
    let read = Access::Merchant(Right::read(Area::Invoices));
    let write = Access::Merchant(Right::write(Area::Invoices));
    let entry = match id {
        "create_invoice" => (
            write,
            Repeats::ByHeader,
            "It gets its number now and can be paid at once, unless `is_draft` says otherwise. Amounts and tax are \
             computed from `items` and `tax_rate`: the tax is rounded once, half-up, on the sum.",
        ),
        "list_invoices" => (read, Repeats::Harmless, "Newest first."),
        "get_invoice" => (
            read,
            Repeats::Harmless,
            "An unpaid one is `overdue` from its due date on; one that was late from the start, a day after it was \
             finalized.",
        ),
        "update_invoice" => (
            write,
            Repeats::ByHeader,
            "A draft or a pending one only. What is given changes and `version` counts on; without a difference \
             nothing happens. To be safe against somebody else's change, send the `version` that you have read, in \
             the body or as `If-Match: \"3\"`.",
        ),
        "finalize_invoice" => (write, Repeats::ByHeader, "Makes a draft a pending invoice, ready to be sent and paid."),
        "send_invoice" => (
            write,
            Repeats::ByHeader,
            "Writes to `customer_email` in your language, with the amount, a link to pay where a method takes it online, and the \
             PDF. The answer means that the mail is kept for sending: it leaves as soon as the mail server takes it, is \
             tried again for about three days (less long where the server takes it three times and its answer is lost), \
             and is not sent for an invoice that was cancelled meanwhile. Where you correct the address before it has left, it goes to the new one. Every call is one more mail, of which there may be ten \
             within ten minutes: the next is refused with `invoice_already_sent` and a sentence that says from when on it may be \
             sent again. A repetition under the same key is no mail. In test mode it is sent as well and says TEST.",
        ),
        "cancel_invoice" => (
            write,
            Repeats::ByHeader,
            "While nothing of it is paid. Its number stays taken. An open payment page of it takes no more payments.",
        ),
        "download_invoice_pdf" => (
            read,
            Repeats::Harmless,
            "The invoice as it stands, in the language of your organization, with a QR code to its page while it can be \
             paid online. In any state: drafts, cancelled and refunded ones are marked. The answer is the file itself, \
             sent as `application/pdf; charset=iso-8859-1`, so that a client that reads answers as text has every byte.",
        ),
        "download_receipt" => (
            read,
            Repeats::Harmless,
            "With the validation code, and a QR code by which anybody can check it. The answer is the file itself, sent as \
             `application/pdf; charset=iso-8859-1`, so that a client that reads answers as text has every byte.",
        ),
        "record_invoice_payment" => (
            write,
            Repeats::ByHeader,
            "For money that you took outside: cash, a transfer, a cheque. It lowers what is left to pay and issues a \
             receipt. It costs no fee and does not change your payout balance. An invoice is paid in 1,000 parts at most: \
             the last has to be all that is left.",
        ),
        "list_invoice_payments" => (read, Repeats::Harmless, "Online ones and those recorded by hand, first to last."),
        "list_invoice_receipts" => (read, Repeats::Harmless, "One for each payment, first to last."),
        "list_receipts" => (read, Repeats::Harmless, "Newest first. `receipts` is the same list as `items`."),
        "get_receipt" => (
            read,
            Repeats::Harmless,
            "It says what was true when the money came: later changes to the invoice, the customer or your settings \
             do not touch it.",
        ),
        "get_receipt_by_number" => (read, Repeats::Harmless, "The number as it is printed, such as `RCT-2026-001`."),
        "validate_receipt" => (
            Access::Open,
            Repeats::Harmless,
            "For whoever holds a receipt and wants to know whether it is real. An unknown code is answered with \
             `valid: false`.",
        ),
        _ => return None,
    };
    Some(entry)
}

/// What only this operation refuses.
pub(super) fn problems(id: &str) -> Option<Vec<Problem>> {
    let remaining = Money::new(6_000, Currency::gmd());
    let absent = || refused(Refusal::not_found::<Invoice>());
    let paid = || refused(Refusal::InvoiceAlreadyPaid);
    let cancelled = || refused(Refusal::InvoiceAlreadyCancelled);
    let problems = match id {
        "create_invoice" => vec![
            invalid(&[
                ("customer_name", FaultCode::Required, "`customer_name` is required; send it with a value."),
                ("tax_rate", FaultCode::OutOfRange, "`tax_rate` must be a percentage from 0 to 100."),
            ]),
            Problem::card_data_not_allowed("notes"),
        ],
        "list_invoices" | "list_receipts" => vec![in_list()],
        "get_invoice" | "download_invoice_pdf" | "list_invoice_payments" | "list_invoice_receipts" => vec![absent()],
        "update_invoice" => vec![
            invalid(&[("items", FaultCode::TooShort, "`items` must have at least one entry.")]),
            refused(Refusal::InvoiceNotUpdatable { status: "paid" }),
            refused(Refusal::InvoiceVersionConflict { current: 3 }),
            refused(Refusal::PaymentInProgress),
            Problem::card_data_not_allowed("notes"),
            absent(),
        ],
        "finalize_invoice" => {
            vec![unexpected_body(), refused(Refusal::InvoiceNotDraft { status: "pending" }), absent()]
        }
        "send_invoice" => vec![
            unexpected_body(),
            refused(Refusal::InvoiceIsDraft),
            paid(),
            cancelled(),
            refused(Refusal::EmailNotConfigured),
            refused(Refusal::CustomerEmailMissing),
            refused(Refusal::InvoiceAlreadySent { most: 10, again_at: Timestamp::from_micros(1_768_479_000_000_000) }),
            absent(),
        ],
        "cancel_invoice" => vec![
            unexpected_body(),
            refused(Refusal::InvoiceHasPayments),
            paid(),
            cancelled(),
            refused(Refusal::PaymentInProgress),
            absent(),
        ],
        "record_invoice_payment" => vec![
            invalid(&[(
                "payment_method",
                FaultCode::NotAllowed,
                "Payments by wave are made online and record themselves; `payment_method` is one of those made elsewhere.",
            )]),
            refused(Refusal::InvoiceOverpayment { remaining }),
            refused(Refusal::TooManyParts { parts: 999, remaining }),
            refused(Refusal::InvoiceIsDraft),
            paid(),
            cancelled(),
            refused(Refusal::PaymentInProgress),
            Problem::card_data_not_allowed("notes"),
            absent(),
        ],
        "get_receipt" | "get_receipt_by_number" | "download_receipt" => vec![refused(Refusal::not_found::<Receipt>())],
        _ => return None,
    };
    Some(problems)
}
