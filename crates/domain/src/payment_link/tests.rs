//! Contract §4.7 as a table, what a price takes, and a maximum that nobody gets past.

use super::*;
use crate::sample::{dalasi, id, scope, seconds};
use crate::table::table;

const END_S: i64 = 600;

fn terms() -> Terms {
    Terms {
        title: "Tickets".into(),
        description: None,
        expiration_date: None,
        max_usage_count: None,
        success_url: None,
        failure_url: None,
        collect_customer_info: false,
        custom_fields: None,
        metadata: None,
    }
}

fn link(terms: Terms) -> PaymentLink {
    PaymentLink::create(id(1), scope(), Price::Fixed { amount: dalasi(10_000) }, terms, seconds(0))
}

fn limited(most: i64) -> PaymentLink {
    link(Terms { max_usage_count: Some(most), ..terms() })
}

fn until_end() -> PaymentLink {
    link(Terms { expiration_date: Some(seconds(END_S)), ..terms() })
}

fn used_up() -> PaymentLink {
    let mut link = limited(1);
    assert_eq!(link.money_arrived(seconds(1)), Some(EventType::PaymentLinkDeactivated));
    link
}

fn expired() -> PaymentLink {
    let mut link = until_end();
    assert_eq!(link.observe(seconds(END_S)), Some(EventType::PaymentLinkDeactivated));
    link
}

fn inactive() -> PaymentLink {
    let mut link = link(terms());
    link.update(terms(), Some(Status::Inactive), seconds(1)).unwrap();
    link
}

fn deleted() -> PaymentLink {
    let mut link = link(terms());
    link.delete(seconds(1)).unwrap();
    link
}

#[derive(Clone, Copy)]
enum Action {
    Retitle,
    Activate,
    Deactivate,
    Pay,
    Paid,
    Clock,
    Delete,
}

fn cell(before: &PaymentLink, action: &Action) -> String {
    let mut link = before.clone();
    let now = seconds(END_S);
    let retitled = Terms { title: "Seats".into(), ..before.terms.clone() };
    let done = match action {
        Action::Retitle => link.update(retitled, None, now),
        Action::Activate => link.update(before.terms.clone(), Some(Status::Active), now),
        Action::Deactivate => link.update(before.terms.clone(), Some(Status::Inactive), now),
        Action::Pay => link.payable(now).and_then(|()| link.has_room(0, now)).map(|()| Vec::new()),
        Action::Paid => Ok(link.money_arrived(now).into_iter().collect()),
        Action::Clock => Ok(link.observe(now).into_iter().collect()),
        Action::Delete => link.delete(now).map(|event| vec![event]),
    };
    let events = match done {
        Ok(events) => events,
        Err(refusal) => {
            assert_eq!(&link, before, "a refusal changes nothing");
            return refusal.code();
        }
    };
    let counted = link.usage_count - before.usage_count;
    assert_eq!(counted, i64::from(matches!(action, Action::Paid)), "every payment counts, and nothing else does");
    let is = link.stored_status();
    let state = if is == before.stored_status() { "=".to_owned() } else { is.as_str().to_owned() };
    let told: Vec<&str> = events.iter().filter_map(|event| event.as_str().split('.').nth(1)).collect();
    if told.is_empty() { state } else { format!("{state} ({})", told.join(", ")) }
}

#[test]
fn payment_links_go_as_the_contract_says() {
    let states = [
        ("active", link(terms())),
        ("active, last use left", limited(1)),
        ("active, past its date", until_end()),
        ("inactive", inactive()),
        ("inactive, expired", expired()),
        ("inactive, used up", used_up()),
        ("(gone)", deleted()),
    ];
    let actions = [
        ("fields change", Action::Retitle),
        ("status=active", Action::Activate),
        ("status=inactive", Action::Deactivate),
        ("initialize", Action::Pay),
        ("payment completes", Action::Paid),
        ("timer", Action::Clock),
        ("delete", Action::Delete),
    ];
    insta::assert_snapshot!(table(&states, &actions, cell), @r"
                          | fields change                   | status=active          | status=inactive        | initialize             | payment completes      | timer                  | delete
    active                | = (updated)                     | =                      | inactive (deactivated) | =                      | =                      | =                      | deleted (deleted)
    active, last use left | = (updated)                     | =                      | inactive (deactivated) | =                      | inactive (deactivated) | =                      | deleted (deleted)
    active, past its date | inactive (updated, deactivated) | payment_link_expired   | inactive (deactivated) | payment_link_inactive  | =                      | inactive (deactivated) | deleted (deleted)
    inactive              | = (updated)                     | active (updated)       | =                      | payment_link_inactive  | =                      | =                      | deleted (deleted)
    inactive, expired     | = (updated)                     | payment_link_expired   | =                      | payment_link_inactive  | =                      | =                      | deleted (deleted)
    inactive, used up     | = (updated)                     | payment_link_used_up   | =                      | payment_link_inactive  | =                      | =                      | deleted (deleted)
    (gone)                | payment_link_not_found          | payment_link_not_found | payment_link_not_found | payment_link_not_found | =                      | =                      | payment_link_not_found
    ");
}

#[test]
fn lowering_the_maximum_to_what_was_paid_ends_it() {
    let mut link = limited(3);
    link.money_arrived(seconds(1));
    let lowered = Terms { max_usage_count: Some(1), ..terms() };
    let told = link.update(lowered.clone(), None, seconds(2)).unwrap();
    assert_eq!(told, [EventType::PaymentLinkUpdated, EventType::PaymentLinkDeactivated]);
    assert_eq!(link.update(lowered, Some(Status::Active), seconds(3)), Err(Refusal::PaymentLinkUsedUp));
    // A higher one in the same update makes room first.
    let raised = Terms { max_usage_count: Some(2), ..terms() };
    assert_eq!(link.update(raised.clone(), Some(Status::Active), seconds(3)), Ok(vec![EventType::PaymentLinkUpdated]));
    assert_eq!(link.update(raised, Some(Status::Active), seconds(4)), Ok(Vec::new()), "as it was");
    assert_eq!(link.updated_at, seconds(3));
}

/// A later date or a higher maximum alone leaves it as it is.
#[test]
fn what_the_refusal_says_makes_a_link_active_again() {
    let later = Terms { expiration_date: Some(seconds(2 * END_S)), ..terms() };
    let higher = Terms { max_usage_count: Some(2), ..terms() };
    for (before, field, terms) in [(expired(), "expiration_date", later), (used_up(), "max_usage_count", higher)] {
        let now = seconds(END_S);
        let refusal = before.clone().update(before.terms.clone(), Some(Status::Active), now).unwrap_err().to_string();
        let (mut alone, mut together) = (before.clone(), before);
        alone.update(terms.clone(), None, now).unwrap();
        together.update(terms, Some(Status::Active), now).unwrap();
        assert_eq!((alone.status(now), together.status(now)), (Status::Inactive, Status::Active));
        assert!(refusal.contains(&format!("`{field}` together with `status: active`")), "{refusal}");
    }
}

#[test]
fn an_attempt_that_is_under_way_holds_a_use() {
    let mut link = limited(3);
    link.money_arrived(seconds(1));
    assert_eq!(link.has_room(1, seconds(2)), Ok(()));
    assert_eq!(link.has_room(2, seconds(2)), Err(Refusal::PaymentLinkHeld));
    assert_eq!(link.payable(seconds(2)), Ok(()), "it may fail yet");
    // One that was given up is confirmed after all: counted, although all uses are taken.
    for _ in 0..3 {
        link.money_arrived(seconds(3));
    }
    assert_eq!(link.usage_count(), 4);
    assert_eq!(link.stored_status(), Status::Inactive);
}

#[test]
fn a_payer_who_holds_a_use_has_less_time() {
    let hours = |link: &PaymentLink| link.session_expires_at(seconds(0)).since(seconds(0)).as_secs() / 3600;
    assert_eq!((hours(&link(terms())), hours(&limited(1))), (24, 1));
}

#[test]
fn a_price_takes_what_it_says() {
    let fixed = Price::Fixed { amount: dalasi(500) };
    assert_eq!(fixed.of_payment(None), Ok(dalasi(500)));
    assert_eq!(fixed.of_payment(Some(dalasi(500))), Ok(dalasi(500)));
    assert_eq!(fixed.of_payment(Some(dalasi(499))), Err(NotThePrice::Other(dalasi(500))));
    let price = |min, max| Price::Variable { currency: Currency::gmd(), min, max, suggested: None };
    let bounded = price(Some(dalasi(100)), Some(dalasi(300)));
    assert_eq!(bounded.of_payment(None), Err(NotThePrice::Missing));
    assert_eq!(bounded.of_payment(Some(dalasi(99))), Err(NotThePrice::TooLittle(dalasi(100))));
    assert_eq!(bounded.of_payment(Some(dalasi(100))), Ok(dalasi(100)));
    assert_eq!(bounded.of_payment(Some(dalasi(300))), Ok(dalasi(300)));
    assert_eq!(bounded.of_payment(Some(dalasi(301))), Err(NotThePrice::TooMuch(dalasi(300))));
    assert_eq!(price(None, None).of_payment(Some(dalasi(1))), Ok(dalasi(1)));
    let suggested =
        |minor| Price::Variable { currency: Currency::gmd(), min: None, max: None, suggested: Some(dalasi(minor)) };
    assert_eq!(suggested(200).of_payment(None), Ok(dalasi(200)));
    assert_eq!(suggested(200).of_payment(Some(dalasi(1))), Ok(dalasi(1)), "the payer chooses");
    assert_eq!(suggested(0).of_payment(None), Err(NotThePrice::Missing));
}
