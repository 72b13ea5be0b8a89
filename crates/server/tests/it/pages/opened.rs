//! A merchant opens a payment of a link and leaves the method to the payer: its page asks for what the link has to know and nobody has
//! said, and what is paid there is paid by the payment that the merchant waits for.

use std::time::Duration;

use dalasi::app::payment_links::LinkChange;
use dalasi::app::sessions::Payment;
use domain::payment::{PaymentSession, SessionStatus};
use domain::payment_link::{CustomField, PaymentLink, Price};
use domain::rail::{FailureReason, Report};
use domain::{Currency, Id, Method};
use serde_json::{Value, json};
use store::queries::transactions;

use super::asked::{DAY, SHOP, open_payment, payment};
use super::changes::{TOO_OLD, change_link, gmd, link_of, question};
use super::replaced::{session, shown};
use crate::cli::place::Place;
use crate::starts::Merchant;
use crate::world::{Page, World};

const FIELDS: [&str; 7] = ["amount", "name", "email", "phone", "answer-0", "answer-1", "answer-2"];
/// By a phone that decides nothing by itself.
const ANSWERS: [(&str, &str); 3] = [("name", "Fatou Jallow"), ("phone", "+2207654321"), ("answer-0", "12 B")];

fn required(name: &str) -> CustomField {
    CustomField { required: true, ..question(name) }
}

/// Of an amount that its payer chooses, who is asked for a name, a phone and a seat.
async fn link(world: &World) -> Id<PaymentLink> {
    let price = Price::Variable { currency: Currency::gmd(), min: None, max: None, suggested: None };
    link_of(world, price, true, vec![required("seat"), question("note")]).await
}

/// A payment of 250.00, and its page.
async fn open(merchant: &Merchant, id: Id<PaymentLink>, more: Value) -> (Id<PaymentSession>, String) {
    let mut asked = json!({
        "object_type": "payment_link", "object_id": id.to_string(), "amount": "250.00", "success_url": SHOP,
        "metadata": { "order": "1042" }
    });
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    open_payment(merchant, asked).await
}

fn asked(page: &Page) -> Vec<&'static str> {
    FIELDS.into_iter().filter(|name| page.value_of(name).is_some()).collect()
}

fn with_method(answers: &[(&'static str, &'static str)], method: Method) -> Vec<(&'static str, &'static str)> {
    [answers, &[("method", method.as_str())]].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_merchant_opened_is_paid_by_its_own_payment() {
    for place in Place::each("what a merchant opened of a link").await {
        let world = World::on(place.settings()).await;
        let merchant = Merchant::of(&world).await;
        for method in [Method::Wave, Method::Afrimoney] {
            let id = link(&world).await;
            let (opened, page) = open(&merchant, id, json!({})).await;
            let mut payer = world.payer_at(page).await;
            assert_eq!(asked(&payer.page), ["name", "email", "phone", "answer-0", "answer-1"]);
            assert!(payer.page.says("250.00 GMD"), "{}", payer.page.body);
            payer.press("/method", &with_method(&ANSWERS[..2], method)).await;
            assert_eq!(session(&payer), opened, "{}", payer.page.body);
            assert!(payer.page.says("Your seat: Fill in this field."), "{}", payer.page.body);
            assert_eq!(payer.page.value_of("name").as_deref(), Some("Fatou Jallow"));
            payer.press("/method", &with_method(&ANSWERS, method)).await;
            assert_eq!(session(&payer), opened, "{}", payer.page.body);
            if method.needs_phone() {
                assert!(payer.page.says("Continue with +220 7•• ••21"), "{}", payer.page.body);
                payer.press("/phone", &[("use", "known")]).await;
                payer.go_out("Open the simulated phone").await;
            } else {
                payer.go_out("Open Wave").await;
            }
            payer.decide("approve").await;
            payer.back().await;
            payer.reach("Paid").await;
            let back = payer.page.link("Back to Kairaba Books");
            assert_eq!(back, Some(format!("{SHOP}?payment_session_id={opened}")));

            let Payment { session, transaction } = payment(&world, opened).await;
            assert_eq!((session.status(), session.amount), (SessionStatus::Succeeded, gmd(25_000)));
            let paid = transaction.unwrap();
            assert_eq!(paid.payer.name.as_deref(), Some("Fatou Jallow"));
            let texts = ["order", "seat", "note"].map(|name| paid.metadata.text(name));
            assert_eq!(texts, [Some("1042".to_owned()), Some("12 B".to_owned()), None]);
            let scope = world.scope;
            let all = world.app.read(move |tx, _| Ok(transactions::of_object(tx, scope, &id.to_string())?));
            assert_eq!(all.await.unwrap().len(), 1);
        }
        world.has_clean_books().await;
        world.close().await;
        place.end().await;
    }
}

#[tokio::test]
async fn nobody_is_asked_for_what_is_known() {
    let world = World::new().await;
    let merchant = Merchant::of(&world).await;
    let id = link(&world).await;
    let (seat, who) = (json!({ "seat": "12 B" }), ("Fatou Jallow", "+2207654321"));
    for (told, fields) in [
        (json!({ "custom_field_values": seat }), &["name", "email", "phone", "answer-1"][..]),
        (json!({ "customer_name": who.0, "customer_phone": who.1 }), &["email", "answer-0", "answer-1"]),
        (json!({ "custom_field_values": seat, "customer_name": who.0, "customer_phone": who.1 }), &[]),
    ] {
        let (opened, page) = open(&merchant, id, told).await;
        let mut payer = world.payer_at(page).await;
        assert_eq!(asked(&payer.page), fields);
        let answers: Vec<_> = ANSWERS.into_iter().filter(|(name, _)| fields.contains(name)).collect();
        payer.press("/method", &with_method(&answers, Method::Wave)).await;
        assert_eq!((payer.page.heading(), session(&payer)), ("Continue in Wave".to_owned(), opened));
        let stored = payment(&world, opened).await.session;
        assert_eq!(stored.metadata.text("seat").as_deref(), Some("12 B"));
        assert_eq!(stored.payer.name.as_deref(), Some("Fatou Jallow"));
    }
    world.has_clean_books().await;
}

#[tokio::test]
async fn what_a_merchant_asks_later_is_asked_on_the_same_page() {
    let world = World::new().await;
    let merchant = Merchant::of(&world).await;
    let id = link(&world).await;
    let told = json!({
        "custom_field_values": { "seat": "12 B" }, "customer_name": "Fatou Jallow", "customer_phone": "+2207654321"
    });
    let (opened, page) = open(&merchant, id, told).await;
    let mut payer = world.payer_at(page).await;
    let form = payer.prepare("/method", &[("method", "wave")]);
    let questions = vec![required("seat"), question("note"), required("table")];
    change_link(&world, id, LinkChange { custom_fields: Some(Some(questions)), ..LinkChange::default() }).await;
    payer.open(world.send(form).await.location()).await;
    assert!(session(&payer) == opened && payer.page.says(TOO_OLD), "{}", payer.page.body);
    assert_eq!(asked(&payer.page), ["email", "answer-1", "answer-2"]);
    payer.press("/method", &[("answer-2", "7"), ("method", "wave")]).await;
    assert_eq!((payer.page.heading(), session(&payer)), ("Continue in Wave".to_owned(), opened));
    let metadata = payment(&world, opened).await.session.metadata;
    assert_eq!(["seat", "table"].map(|name| metadata.text(name)), [Some("12 B".to_owned()), Some("7".to_owned())]);
}

/// What comes in its place is for what the merchant asked, and asks what it asks.
#[tokio::test]
async fn who_comes_when_its_time_is_over_is_asked_as_well() {
    let world = World::new().await;
    let merchant = Merchant::of(&world).await;
    let id = link(&world).await;
    let (opened, page) = open(&merchant, id, json!({})).await;
    world.clock.advance(DAY);
    let ended = async {
        while payment(&world, opened).await.session.status() != SessionStatus::Cancelled {
            world.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("its time is over");
    let mut payer = world.payer_at(page).await;
    assert_eq!(asked(&payer.page), ["name", "email", "phone", "answer-0", "answer-1"]);
    payer.press("/method", &with_method(&ANSWERS, Method::Wave)).await;
    assert_eq!(payer.page.heading(), "Continue in Wave");
    let second = payment(&world, session(&payer)).await.session;
    assert_eq!((second.replaces, second.amount), (Some(opened), gmd(25_000)));
    assert_eq!(second.success_url.as_deref(), Some(SHOP));
    let texts = ["order", "seat"].map(|name| second.metadata.text(name));
    assert_eq!(texts, [Some("1042".to_owned()), Some("12 B".to_owned())]);
    world.has_clean_books().await;
}

#[tokio::test]
async fn a_payer_goes_where_their_own_payment_leads() {
    let world = World::new().await;
    let merchant = Merchant::of(&world).await;
    let id = link_of(&world, Price::Fixed { amount: gmd(25_000) }, false, Vec::new()).await;
    let of_all = |end: &str| Some(Some(format!("https://all.example/{end}")));
    let (success_url, failure_url) = (of_all("thanks"), of_all("sorry"));
    change_link(&world, id, LinkChange { success_url, failure_url, ..LinkChange::default() }).await;
    let sorry = "https://shop.example/sorry";
    let (opened, page) = open(&merchant, id, json!({ "failure_url": sorry })).await;
    let mut payer = world.payer_at(page.clone()).await;
    payer.press("/leave", &[]).await;
    let back = payer.page.link("Back to Kairaba Books");
    assert_eq!(back, Some(format!("{sorry}?payment_session_id={opened}")));
    payer.open(&page).await;
    payer.approve_in_wave().await;
    payer.back().await;
    payer.reach("Paid").await;
    let back = payer.page.link("Back to Kairaba Books");
    assert_eq!(back, Some(format!("{SHOP}?payment_session_id={opened}")));

    // Whoever begins on the link's own page goes where it leads.
    let mut other = world.payer_at(format!("/pay/{id}")).await;
    other.choose(Method::Wave).await;
    let theirs = session(&other);
    let with_own = |end: &str| Some(format!("https://all.example/{end}?payment_session_id={theirs}"));
    let hosted = shown(&world, id, theirs).await;
    assert_eq!((hosted.success_address(), hosted.failure_address()), (with_own("thanks"), None), "they may have paid");
    let attempt = hosted.unsettled().unwrap().id;
    world.app.report(world.scope, attempt, Report::Failed { reason: FailureReason::Declined }, None).await.unwrap();
    assert_eq!(shown(&world, id, theirs).await.failure_address(), with_own("sorry"));
    world.has_clean_books().await;
}
