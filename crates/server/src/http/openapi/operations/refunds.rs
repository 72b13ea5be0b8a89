//! Transactions, refunds and the balance.

use domain::api_key::{Area, Right};
use domain::payment::Transaction;
use domain::refund::{MOST_REFUNDS, Refund};
use domain::{Currency, Money, Refusal};

use super::super::problems::{Access, Repeats, invalid, refused};
use super::in_list;
use crate::fault::FaultCode;
use crate::http::answer::Problem;

/// Nothing for an operation of another resource.
pub(super) fn about(id: &str) -> Option<(Access, Repeats, &'static str)> {
    let read = |area| Access::Merchant(Right::read(area));
    let entry = match id {
        "list_transactions" => (
            read(Area::Transactions),
            Repeats::Harmless,
            "Newest first. One transaction is one attempt to pay, or one payment that you recorded, so one checkout or \
             invoice may have several.",
        ),
        "get_transaction" => (
            read(Area::Transactions),
            Repeats::Harmless,
            "`state_transitions` are all its moves. After refunds it is `partially_refunded` or `refunded`, while what was \
             paid stays as it is.",
        ),
        "create_refund" => (
            Access::Merchant(Right::write(Area::Refunds)),
            Repeats::ByHeader,
            "Answers at once, with the refund `pending`; `refund.completed` or `refund.failed` tells the outcome. A payment \
             that you recorded by hand is given back by hand, so its refund is `completed` at once. What is on its way \
             counts: all refunds together are never more than was paid. After 250 refunds of a transaction that have not \
             failed the next one has to be all that is left, and it has at most 1,000 in all. Your fee is not given back, so the balance may go \
             below zero, unless `allow_negative_balance` is off. In test mode the last two digits of the amount decide: \
             `.71` has too little money, `.72` is refused, `.73` never answers, `.74` loses the answer.",
        ),
        "list_refunds" => (read(Area::Refunds), Repeats::Harmless, "Newest first."),
        "get_refund" => (
            read(Area::Refunds),
            Repeats::Harmless,
            "A status `processing` may last: the provider has it, and its outcome is being asked for.",
        ),
        "get_balance" => (
            read(Area::Payouts),
            Repeats::Harmless,
            "Of the mode of the key, in GMD: completed online payments without their fees, less refunds that have not \
             failed.",
        ),
        _ => return None,
    };
    Some(entry)
}

/// Nothing for an operation of another resource.
pub(super) fn problems(id: &str) -> Option<Vec<Problem>> {
    let problems = match id {
        "list_transactions" | "list_refunds" => vec![in_list()],
        "get_transaction" => vec![refused(Refusal::not_found::<Transaction>())],
        "create_refund" => vec![
            invalid(&[(
                "amount",
                FaultCode::AmountMustBeString,
                "`amount` must be a string such as \"100.00\"; you sent a number.",
            )]),
            refused(Refusal::TransactionNotRefundable { status: "pending" }),
            refused(Refusal::TransactionAlreadyRefunded),
            refused(Refusal::RefundExceedsAmount { left: dalasi(4_000) }),
            refused(Refusal::TooManyRefunds { most: MOST_REFUNDS }),
            refused(Refusal::InsufficientBalance { available: dalasi(9_750).into(), required: dalasi(10_000) }),
            Problem::card_data_not_allowed("reason"),
            refused(Refusal::not_found::<Transaction>()),
        ],
        "get_refund" => vec![refused(Refusal::not_found::<Refund>())],
        _ => return None,
    };
    Some(problems)
}

fn dalasi(minor: i64) -> Money {
    Money::new(minor, Currency::gmd())
}
