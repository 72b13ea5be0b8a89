//! What a payment's page says of what is paid there: what is ordered or billed, who pays it, until when, and what leaving
//! is. Reads; decides nothing.

use domain::invoice::Status;
use domain::payment::{Payable, Payer, SessionStatus};
use domain::{OfflineMethod, PaymentMethod, Timestamp};

use super::note::{FieldFault, Note};
use super::typed::Typed;
use super::view::{Due, Invoice, InvoicePayment, Item, Leave, Merchant, PaidWith, Part, PartError, Subject, TimeLeft};
use super::{moment, questions, state};
use crate::app::hosted::{Hosted, Place, Standing};
use crate::app::logos;
use crate::app::paid_object::PaidObject;
use crate::mask;
use crate::wire::{Addresses, receipts};

/// A page that stays open beyond its object's end can still say "I approved it".
const SHORTEST_TOKEN_S: i64 = 3600;
/// Of what has no end.
const TOKEN_S: i64 = 24 * 3600;

pub(super) fn merchant(hosted: &Hosted) -> Merchant {
    let profile = &hosted.organization.profile;
    let logo_path = logos::path(hosted.organization.scope(), profile);
    Merchant { name: profile.name.clone(), logo_path, accent: profile.accent_color.clone() }
}

pub(super) fn subject(hosted: &Hosted, place: Place, addresses: &Addresses) -> Subject {
    match &hosted.object {
        PaidObject::Checkout(checkout) => Subject::Order {
            description: checkout.order.description.clone(),
            reference: checkout.order.reference.clone(),
            items: checkout.order.items.iter().flatten().map(item).collect(),
        },
        PaidObject::Invoice(invoice) => match invoice.issued_date() {
            Some(issued_at) => Subject::Invoice(Box::new(billed(hosted, invoice, issued_at))),
            // Nothing of it counts before it is issued.
            None => Subject::Unissued,
        },
        PaidObject::PaymentLink(link) => {
            let begins = hosted.standing() == Standing::Open && place.session.is_none();
            Subject::Link {
                title: link.terms().title.clone(),
                description: link.terms().description.clone(),
                address: begins.then(|| addresses.page(place.payable)),
            }
        }
    }
}

fn billed(hosted: &Hosted, invoice: &domain::invoice::Invoice, issued_at: Timestamp) -> Invoice {
    let bill = invoice.bill();
    let here = Addresses { public_url: String::new(), pay_url: String::new() };
    let payment = |receipt| hosted.received.iter().find(|payment| payment.receipt == receipt);
    let refunded = |transaction| hosted.came().find(|it| it.id == transaction).and_then(state::refunded);
    let payments = invoice.receipts().iter().map(|receipt| InvoicePayment {
        receipt_number: receipt.number.clone(),
        amount: state::amount(receipt.amount),
        paid_with: payment(receipt.id).map(|payment| paid_with(payment.method)),
        paid_at: receipt.payment_date.seconds(),
        receipt_path: Some(receipts::file_url(&receipt.validation_code, &here)),
        refunded: payment(receipt.id).and_then(|payment| refunded(payment.transaction)),
    });
    Invoice {
        number: invoice.number.clone(),
        billed_to: invoice.customer.name.clone(),
        issued_at: issued_at.seconds(),
        due_at: invoice.due_date.seconds(),
        due: match invoice.status(hosted.now) {
            Status::Overdue => Due::Passed,
            Status::Pending | Status::PartiallyPaid if invoice.due_date <= hosted.now => Due::Passed,
            Status::Pending | Status::PartiallyPaid => Due::Ahead,
            Status::Draft | Status::Paid | Status::Cancelled => Due::Settled,
        },
        items: bill.items().iter().map(item).collect(),
        before_tax: state::amount(bill.amount()),
        tax: (bill.tax().minor > 0).then(|| (bill.tax_rate().to_string(), state::amount(bill.tax()))),
        total: state::amount(invoice.total()),
        paid: state::amount(invoice.paid()),
        left: state::amount(invoice.remaining()),
        notes: invoice.notes.clone(),
        payments: payments.collect(),
        document_path: Some(format!("{}/pdf", here.page(Payable::Invoice(invoice.id)))),
    }
}

fn paid_with(method: PaymentMethod) -> PaidWith {
    match method {
        PaymentMethod::Online(method) => PaidWith::Online(state::shown(method)),
        PaymentMethod::Offline(OfflineMethod::Cash) => PaidWith::Cash,
        PaymentMethod::Offline(OfflineMethod::BankTransfer) => PaidWith::BankTransfer,
        PaymentMethod::Offline(OfflineMethod::Check) => PaidWith::Check,
        PaymentMethod::Offline(OfflineMethod::WesternUnion) => PaidWith::WesternUnion,
        PaymentMethod::Offline(OfflineMethod::Other) => PaidWith::Other,
    }
}

fn item(item: &domain::checkout::Item) -> Item {
    Item {
        description: item.description.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| "–".to_owned()),
        quantity: item.quantity,
        total: state::amount(item.total),
    }
}

/// Who pays, masked: the address of a page is all it takes to read it.
pub(super) fn payer(hosted: &Hosted) -> Vec<String> {
    if hosted.is_unissued() {
        return Vec::new();
    }
    let empty = Payer::default();
    let payer = hosted.session().map_or(&empty, |session| &session.payer);
    let phone = payer.phone.clone().or_else(|| hosted.told_phone()).map(|phone| mask::phone(phone.as_str()));
    let email = payer.email.clone().or_else(|| hosted.told_email()).map(|email| mask::email(&email));
    phone.into_iter().chain(email).collect()
}

pub(super) fn time_left(hosted: &Hosted) -> Option<TimeLeft> {
    let (from, until) = match &hosted.object {
        PaidObject::Checkout(checkout) => (checkout.created_at, checkout.expires_at),
        // Before a payment is begun nobody's time runs out there; what is with its rail ends by the rail's word.
        PaidObject::Invoice(_) | PaidObject::PaymentLink(_) => {
            let begun = hosted.payment.as_ref().filter(|payment| payment.transaction.is_some());
            let session = begun.map(|payment| &payment.session).filter(|it| it.status() == SessionStatus::Pending)?;
            (session.created_at, session.expires_at)
        }
    };
    moment::time_left(from.seconds(), until.seconds(), hosted.now.seconds())
}

/// How long a form of the page is taken, in Unix seconds.
pub(super) fn forms_until_s(hosted: &Hosted) -> i64 {
    let now_s = hosted.now.seconds();
    match &hosted.object {
        PaidObject::Checkout(checkout) => checkout.expires_at.seconds().max(now_s + SHORTEST_TOKEN_S),
        PaidObject::Invoice(_) | PaidObject::PaymentLink(_) => now_s + TOKEN_S,
    }
}

/// What leaving unpaid is, where a payer can end anything by it. Who has paid a part, or may have, is sent nowhere as one who did not.
pub(super) fn leave(hosted: &Hosted) -> Option<Leave> {
    match (&hosted.object, hosted.failure_address()) {
        (PaidObject::Checkout(_), _) if hosted.unsettled().is_some() => None,
        (PaidObject::Checkout(_), Some(_)) => Some(Leave::ToShop),
        (PaidObject::Checkout(_), None) => Some(Leave::Here),
        (PaidObject::Invoice(_) | PaidObject::PaymentLink(_), Some(_)) if state::is_untouched(hosted) => {
            Some(Leave::ToShop)
        }
        (PaidObject::Invoice(_) | PaidObject::PaymentLink(_), Some(_) | None) => None,
    }
}

/// Whether less than all can be paid, with what was typed before an error.
pub(super) fn part(hosted: &Hosted, note: Option<&Note>, typed: &Typed) -> Option<Part> {
    let PaidObject::Invoice(invoice) = &hosted.object else { return None };
    if !hosted.takes_parts() {
        return None;
    }
    let error = match note {
        Some(Note::Part { fault: FieldFault::TooMuch }) => Some(PartError::TooMuch),
        Some(Note::Part { fault: FieldFault::TooLittle }) => Some(PartError::TooLittle),
        Some(Note::Part { .. }) => Some(PartError::Format),
        Some(_) | None => None,
    };
    let typed = typed.get(questions::AMOUNT).map(str::to_owned);
    let remaining = invoice.remaining();
    let asked = hosted.due().filter(|due| *due != remaining).map(state::amount);
    Some(Part { most: state::amount(remaining), asked, typed, error })
}
