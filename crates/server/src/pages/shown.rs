//! What a page shows that can change while it is open. By its merchant: the amount that is due of an invoice, the questions of a
//! payment link, the methods. The page names the first two in its forms, under a tag, and a form that names anything else begins
//! nothing. By another tab: the payment, which its forms name as well.

use aws_lc_rs::digest::{SHA256, digest};
use domain::payment::PaymentSession;
use domain::payment_link::CustomField;
use domain::{Id, Method, Money};

use super::form::{self, Form};
use super::note::Note;
use super::questions;
use crate::app::hosted::{Hosted, Place, Standing};
use crate::app::paid_object::PaidObject;

/// What the command says where another amount became due in the moment before it.
pub(super) const REFUSALS: [&str; 2] = ["invoice_overpayment", "partial_payment_not_allowed"];

/// As the forms of the page name it; nothing where nothing of it can change.
pub(super) fn named(hosted: &Hosted, place: Place) -> Option<String> {
    match &hosted.object {
        PaidObject::Invoice(_) => hosted.amount().map(written),
        PaidObject::PaymentLink(_) => {
            let asked = questions::asked(hosted, place);
            (!asked.is_empty()).then(|| digest_of(asked))
        }
        PaidObject::Checkout(_) => None,
    }
}

/// Of the questions as they are stored, so that processes of two versions name them alike.
fn digest_of(asked: &[CustomField]) -> String {
    let text = serde_json::to_vec(asked).expect("a question has nothing that JSON can't say");
    let hash = digest(&SHA256, &text);
    hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// In minor units, which are the same in every language.
fn written(amount: Money) -> String {
    format!("{} {}", amount.minor, amount.currency.code())
}

/// Whether the form comes from a page that showed this amount.
pub(super) fn is_due(form: &Form, hosted: &Hosted, amount: Money) -> bool {
    match &hosted.object {
        PaidObject::Invoice(_) => form.get(form::SHOWN) == Some(written(amount).as_str()),
        PaidObject::Checkout(_) | PaidObject::PaymentLink(_) => true,
    }
}

/// What a form asks to pay of an invoice: the part that its payer typed, or all that its page showed. The command holds it
/// against what is left once more, under the invoice's lock.
pub(super) fn due(form: &Form, hosted: &Hosted, part: Option<Money>) -> Result<Option<Money>, Note> {
    let PaidObject::Invoice(invoice) = &hosted.object else { return Ok(None) };
    // Another tab may have begun meanwhile to pay what its page showed.
    let begun = hosted.amount().filter(|_| hosted.standing() == Standing::Open);
    let amount = match part {
        // Its merchant may take no parts any more.
        Some(part) => Some(part).filter(|part| *part == invoice.remaining() || hosted.takes_parts()),
        None => [hosted.due(), begun].into_iter().flatten().find(|amount| is_due(form, hosted, *amount)),
    };
    amount.map(Some).ok_or(Note::AmountChanged {})
}

/// A method that is offered no more, or answers to questions that are others now: they are told apart by their places.
pub(super) fn refuse_gone(form: &Form, hosted: &Hosted, place: Place, method: Method) -> Result<(), Note> {
    if !hosted.methods.contains(&method) {
        return Err(Note::NotStarted { method });
    }
    match &hosted.object {
        PaidObject::PaymentLink(_) if form.get(form::SHOWN) != named(hosted, place).as_deref() => {
            Err(Note::StaleForm {})
        }
        PaidObject::PaymentLink(_) | PaidObject::Checkout(_) | PaidObject::Invoice(_) => Ok(()),
    }
}

/// Whether the form's page showed another payment than the one that is current, or none where there is one now. A page of an earlier
/// version names none and says nothing of it.
pub(super) fn is_of_another_session(form: &Form, hosted: &Hosted) -> bool {
    form.get(form::SESSION).is_some() && hosted.session().is_some() && session(form, hosted).is_none()
}

/// The page's own payment, if the form names it: what it names is only ever compared.
pub(super) fn session(form: &Form, hosted: &Hosted) -> Option<Id<PaymentSession>> {
    let own = hosted.session()?.id;
    (form.get(form::SESSION) == Some(own.to_string().as_str())).then_some(own)
}

#[cfg(test)]
mod tests {
    use domain::payment_link::FieldType;
    use domain::{Currency, Refusal};

    use super::*;

    #[test]
    fn a_question_is_named_alike_by_every_version() {
        let (name, label) = ("table".to_owned(), "Your table".to_owned());
        let question = CustomField { name, label, kind: FieldType::Text, required: false, options: Vec::new() };
        assert_eq!(digest_of(&[question]), "fe2dd30660d545c9");
    }

    #[test]
    fn these_are_the_refusals_of_another_amount() {
        let remaining = Money::new(1, Currency::gmd());
        let refusals = [Refusal::InvoiceOverpayment { remaining }, Refusal::PartialPaymentNotAllowed { remaining }];
        assert_eq!(refusals.map(|refusal| refusal.code()), REFUSALS);
    }
}
