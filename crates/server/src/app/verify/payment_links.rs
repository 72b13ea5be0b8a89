//! A payment link counts its completed payments, and none of those that began while there was room went past its maximum.

use std::collections::{HashMap, HashSet};

use domain::Scope;
use domain::payment::{Payable, Transaction};
use domain::payment_link::{PaymentLink, Price, Status};
use store::queries::verify as stored;
use store::{Entity, Tx};

use super::attempts::{self, Paid};
use super::events::Subject;
use super::{Ends, Place, Report, events, page};
use crate::error::Failure;

const TABLE: &str = PaymentLink::TABLE;

pub(super) fn check(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    let ends = Ends::of::<PaymentLink>();
    page::<PaymentLink>(tx, scope, report, place, |tx, report, links, span| {
        let span = ends.cut(span);
        let prices: HashMap<String, &Price> = links.iter().map(|link| (link.id.to_string(), link.price())).collect();
        let paid = |link: &PaymentLink| (link.id.to_string(), Paid { shown: None, is_open: true });
        let known = links.iter().map(paid).collect();
        let attempts = attempts::of(tx, scope, span, report, &known, |report, transaction| {
            let object = transaction.payable.object_id();
            let price = prices.get(&object);
            let fits = price.is_some_and(|price| {
                price.currency() == transaction.amount.currency
                    && price.of_payment(Some(transaction.amount)) == Ok(transaction.amount)
            });
            report.expect(fits, Transaction::TABLE, &transaction.id.to_string(), || {
                format!("its amount is none that {object} takes")
            });
        })?;
        let watched = links.iter().filter(|link| is_watched(link)).map(|link| link.id.to_string());
        let watched: Vec<String> = watched.collect();
        let owed: HashSet<String> = stored::owed(tx, scope, &["expire_payment_link"], &watched)?.into_iter().collect();
        for link in &links {
            let id = link.id.to_string();
            let (paid, late) = attempts.get(&id).map_or((0, 0), |attempts| (attempts.paid.len(), attempts.late.len()));
            report.expect(usize::try_from(link.usage_count()) == Ok(paid + late), TABLE, &id, || {
                format!("it counts {} payments and has {}", link.usage_count(), paid + late)
            });
            let is_used_up = link.terms().max_usage_count.is_some_and(|most| link.usage_count() >= most);
            report.expect(!is_used_up || link.stored_status() != Status::Active, TABLE, &id, || {
                "it is used up and still active".into()
            });
            report.expect(!is_watched(link) || owed.contains(&id), TABLE, &id, || {
                "it is active and no timer will expire it".into()
            });
        }
        let subject = |link| (PaymentLink::id(link).to_string(), Subject::PaymentLink(link));
        events::check(tx, scope, span, report, &links.iter().map(subject).collect())
    })
}

fn is_watched(link: &PaymentLink) -> bool {
    link.stored_status() == Status::Active && link.terms().expiration_date.is_some()
}

/// Whether the session of a payment counts its events itself.
pub(super) fn counts_on_session(payable: Payable) -> bool {
    match payable {
        Payable::PaymentLink(_) => true,
        Payable::Checkout(_) | Payable::Invoice(_) => false,
    }
}
