//! The amount that a page shows and its forms pay. What is due of an invoice can become another amount while its page is
//! open: the page names it in its forms, under their token, and a form that names another one begins nothing.

use domain::Money;

use super::form::{self, Form};
use super::note::Note;
use crate::app::hosted::Hosted;
use crate::app::paid_object::PaidObject;

/// What the command says where another amount became due in the moment before it.
pub(super) const REFUSALS: [&str; 2] = ["invoice_overpayment", "partial_payment_not_allowed"];

/// As the forms of the page name it; nothing where it never changes.
pub(super) fn shown(hosted: &Hosted) -> Option<String> {
    match &hosted.object {
        PaidObject::Invoice(_) => hosted.amount().map(written),
        PaidObject::Checkout(_) | PaidObject::PaymentLink(_) => None,
    }
}

/// In minor units, which are the same in every language.
fn written(amount: Money) -> String {
    format!("{} {}", amount.minor, amount.currency.code())
}

/// Whether the form comes from a page that showed this amount.
pub(super) fn is_shown(form: &Form, hosted: &Hosted, amount: Money) -> bool {
    match &hosted.object {
        PaidObject::Invoice(_) => form.get(form::DUE) == Some(written(amount).as_str()),
        PaidObject::Checkout(_) | PaidObject::PaymentLink(_) => true,
    }
}

/// What a form asks to pay of an invoice: the part that its payer typed, or all that its page showed. The command holds it
/// against what is left once more, under the invoice's lock.
pub(super) fn asked(form: &Form, hosted: &Hosted, part: Option<Money>) -> Result<Option<Money>, Note> {
    let PaidObject::Invoice(invoice) = &hosted.object else { return Ok(None) };
    let whole = invoice.remaining();
    let is_as_shown = match part {
        // Its merchant may take no parts any more.
        Some(part) => part == whole || hosted.takes_parts(),
        None => is_shown(form, hosted, whole),
    };
    if is_as_shown { Ok(Some(part.unwrap_or(whole))) } else { Err(Note::AmountChanged {}) }
}

#[cfg(test)]
mod tests {
    use domain::{Currency, Refusal};

    use super::*;

    #[test]
    fn these_are_the_refusals_of_another_amount() {
        let remaining = Money::new(1, Currency::gmd());
        let refusals = [Refusal::InvoiceOverpayment { remaining }, Refusal::PartialPaymentNotAllowed { remaining }];
        assert_eq!(refusals.map(|refusal| refusal.code()), REFUSALS);
    }
}
