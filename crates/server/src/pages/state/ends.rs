//! What a page says where nobody pays any more: that it is paid, or over, and all money that came all the same.

use domain::payment::{Transaction, TransactionStatus};

use super::{apart, checking, receipt, unpaid};
use crate::app::hosted::Hosted;
use crate::app::paid_object::PaidObject;
use crate::pages::view::{End, State};

pub(super) fn completed(hosted: &Hosted) -> State {
    let return_url = hosted.success_address();
    // Many payments can have come together; the invoice itself lists them.
    if let PaidObject::Invoice(_) = &hosted.object {
        let second_payments: Vec<_> = hosted.is_paid_by().filter(|attempt| attempt.duplicate).map(apart).collect();
        return match second_payments.is_empty() {
            true => State::Paid { receipt: None, return_url },
            false => State::AlreadyPaid { receipts: Vec::new(), second_payments, return_url },
        };
    }
    let Some(paid) = hosted.paid() else {
        return checking(hosted, None);
    };
    let receipt = receipt(paid);
    // Its merchant decides what it is worth: nobody is led to the shop with it as one who has paid.
    let is_late = hosted.is_after_its_time(paid);
    let return_url = return_url.filter(|_| !is_late);
    let second_payments: Vec<_> = hosted.paid_more().map(apart).collect();
    match (second_payments.is_empty(), is_late) {
        (false, _) => State::AlreadyPaid { receipts: vec![receipt], second_payments, return_url },
        (true, true) => {
            State::PaidLate { after: End::Expiry, receipts: vec![receipt], kept_apart: Vec::new(), return_url }
        }
        (true, false) => State::Paid { receipt: Some(receipt), return_url },
    }
}

pub(super) fn ended(hosted: &Hosted, end: End) -> State {
    // Of what came in time an invoice that ended may have nothing but money that was too much for it.
    let (before, after): (Vec<_>, Vec<_>) =
        hosted.is_paid_by().partition(|attempt| attempt.duplicate && came_before_the_end(hosted, attempt));
    let kept_apart: Vec<_> = before.into_iter().map(apart).collect();
    if !after.is_empty() {
        // Whoever's money came is led to no page that says that nothing was paid: they would pay again.
        let receipts = after.into_iter().map(receipt).collect();
        return State::PaidLate { after: end, receipts, kept_apart, return_url: None };
    }
    let standing = unpaid(hosted);
    let return_url = hosted.failure_address().filter(|_| kept_apart.is_empty());
    match end {
        End::Expiry => State::Expired { standing, return_url },
        End::Cancellation => State::Cancelled { standing, kept_apart, return_url },
    }
}

fn came_before_the_end(hosted: &Hosted, attempt: &Transaction) -> bool {
    let PaidObject::Invoice(invoice) = &hosted.object else { return false };
    let came = attempt.reached(TransactionStatus::Completed);
    came.zip(invoice.cancelled_at()).is_some_and(|(came, cancelled)| came <= cancelled)
}
