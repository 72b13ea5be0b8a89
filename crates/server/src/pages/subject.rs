//! What a payment's page says of what is paid there: the order, who pays it, and until when. Reads; decides nothing.

use domain::payment::Payer;

use super::view::{Item, Leave, Merchant, Subject, TimeLeft};
use super::{mask, moment, state};
use crate::app::hosted::Hosted;
use crate::app::paid_object::PaidObject;

/// A page that stays open beyond its object's end can still say "I approved it".
const SHORTEST_TOKEN_S: i64 = 3600;

pub(super) fn merchant(hosted: &Hosted) -> Merchant {
    let profile = &hosted.organization.profile;
    Merchant { name: profile.name.clone(), logo_path: None, accent: profile.accent_color.clone() }
}

pub(super) fn subject(hosted: &Hosted) -> Subject {
    match &hosted.object {
        PaidObject::Checkout(checkout) => Subject::Order {
            description: checkout.order.description.clone(),
            reference: checkout.order.reference.clone(),
            items: checkout.order.items.iter().flatten().map(item).collect(),
        },
    }
}

fn item(item: &domain::checkout::Item) -> Item {
    Item {
        description: item.description.clone().unwrap_or_else(|| "–".to_owned()),
        quantity: item.quantity,
        total: state::amount(item.total),
    }
}

/// Who pays, masked: the address of a page is all it takes to read it.
pub(super) fn payer(hosted: &Hosted) -> Vec<String> {
    let empty = Payer::default();
    let payer = hosted.payment.as_ref().map_or(&empty, |payment| &payment.session.payer);
    let phone = payer.phone.clone().or_else(|| hosted.told_phone()).map(|phone| mask::phone(phone.as_str()));
    let email = payer.email.clone().or_else(|| hosted.told_email()).map(|email| mask::email(&email));
    phone.into_iter().chain(email).collect()
}

pub(super) fn time_left(hosted: &Hosted) -> Option<TimeLeft> {
    match &hosted.object {
        PaidObject::Checkout(checkout) => {
            moment::time_left(checkout.created_at.seconds(), checkout.expires_at.seconds(), hosted.now.seconds())
        }
    }
}

/// How long a form of the page is taken, in Unix seconds.
pub(super) fn forms_until_s(hosted: &Hosted) -> i64 {
    let shortest = hosted.now.seconds() + SHORTEST_TOKEN_S;
    match &hosted.object {
        PaidObject::Checkout(checkout) => checkout.expires_at.seconds().max(shortest),
    }
}

/// What leaving unpaid is, where a payer can end anything by it.
pub(super) fn leave(hosted: &Hosted) -> Option<Leave> {
    match &hosted.object {
        PaidObject::Checkout(_) if hosted.failure_url().is_some() => Some(Leave::ToShop),
        PaidObject::Checkout(_) => Some(Leave::Here),
    }
}
