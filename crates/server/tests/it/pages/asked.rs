//! A merchant opens a payment of a part of an invoice and leaves the method to the payer: the page asks for that part, and what
//! is paid there is paid by the payment that the merchant waits for.

use std::time::Duration;

use dalasi::app::sessions::{self, Payment};
use domain::invoice::Invoice;
use domain::payment::{PaymentSession, SessionStatus};
use domain::{Id, Method};
use serde_json::{Value, json};

use super::changes::{CHANGED, billed, gmd, looked_up, record, take_parts};
use crate::cli::place::Place;
use crate::starts::Merchant;
use crate::world::{PAY_URL, Page, World};

pub(super) const SHOP: &str = "https://shop.example/thanks";
pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// What a program opens and leaves to the payer, and its page.
pub(super) async fn open_payment(merchant: &Merchant, asked: Value) -> (Id<PaymentSession>, String) {
    let (status, opened) = merchant.ask("POST", "/v1/pay/initialize", asked).await;
    assert_eq!((status, opened["data"]["status"].as_str()), (200, Some("pending")), "{opened}");
    let page = opened["data"]["payment_url"].as_str().unwrap().strip_prefix(PAY_URL).unwrap();
    (opened["data"]["id"].as_str().unwrap().parse().unwrap(), page.to_owned())
}

pub(super) async fn payment(world: &World, session: Id<PaymentSession>) -> Payment {
    let scope = world.scope;
    world.app.read(move |tx, _| sessions::look_up_payment(tx, scope, session)).await.unwrap()
}

/// Of 40.00, for one whose phone the merchant knows; and where its payer is to go.
async fn ask_for_part(merchant: &Merchant, id: Id<Invoice>) -> (Id<PaymentSession>, String) {
    let asked = json!({
        "object_type": "invoice", "object_id": id.to_string(), "amount": "40.00", "success_url": SHOP,
        "customer_name": "Fatou Jallow", "customer_phone": "+2207000000"
    });
    open_payment(merchant, asked).await
}

/// What a form of the page that names no amount would pay.
fn asks_for(page: &Page) -> String {
    let (_, fields) = page.form("/method").expect("a choice");
    fields.into_iter().find(|(name, _)| name == "shown").expect("an amount").1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_part_that_a_merchant_asks_for_is_paid_by_its_own_payment() {
    for place in Place::each("the part that a merchant asks for").await {
        let world = World::on(place.settings()).await;
        take_parts(&world, true).await;
        let merchant = Merchant::of(&world).await;
        let (id, _) = billed(&world).await;
        let (session, page) = ask_for_part(&merchant, id).await;
        let mut payer = world.payer_at(page).await;
        assert_eq!(asks_for(&payer.page), "4000 GMD");
        assert!(payer.page.says("A part of 115.00 GMD that is left to pay."), "{}", payer.page.body);
        assert!(payer.page.says("Up to 115.00 GMD. Leave it empty to pay 40.00 GMD."), "{}", payer.page.body);
        payer.choose(Method::Afrimoney).await;
        assert!(payer.page.says("Continue with +220 7•• ••00"), "{}", payer.page.body);
        payer.press("/phone", &[("use", "known")]).await;
        payer.reach("We received 40.00 GMD").await;
        // To the shop that waits for it, and nobody is led there while more is to be paid.
        let back = payer.page.link("Back to Kairaba Books");
        assert_eq!(back, Some(format!("{SHOP}?payment_session_id={session}")));
        assert!(!payer.page.body.contains("data-back="), "{}", payer.page.body);
        assert_eq!(asks_for(&payer.page), "7500 GMD");
        let paid = payment(&world, session).await;
        assert_eq!((paid.session.status(), paid.session.amount), (SessionStatus::Succeeded, gmd(4_000)));
        assert_eq!(paid.transaction.unwrap().payer.name.as_deref(), Some("Fatou Jallow"));
        assert_eq!(looked_up(&world, id).await.attempts.len(), 1);
        world.has_clean_books().await;
        world.close().await;
        place.end().await;
    }
}

/// Its other tab still shows what was asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tabs_pay_the_part_once() {
    for place in Place::each("two tabs pay the part once").await {
        let world = World::on(place.settings()).await;
        take_parts(&world, true).await;
        let merchant = Merchant::of(&world).await;
        let (id, _) = billed(&world).await;
        let (session, page) = ask_for_part(&merchant, id).await;
        let mut first = world.payer_at(page.clone()).await;
        let mut second = world.payer_at(page).await;
        first.choose(Method::Wave).await;
        second.choose(Method::Wave).await;
        assert_eq!(second.page.heading(), "Continue in Wave");
        assert!(!second.page.says(CHANGED) && second.page.says("40.00"), "{}", second.page.body);
        let hosted = looked_up(&world, id).await;
        assert_eq!((hosted.attempts.len(), hosted.session().unwrap().id), (1, session));
        world.close().await;
        place.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_pays_is_known_of_the_payment_that_takes_its_place() {
    for place in Place::each("who pays is known of the payment that takes its place").await {
        let world = World::on(place.settings()).await;
        take_parts(&world, true).await;
        let merchant = Merchant::of(&world).await;
        let (id, _) = billed(&world).await;
        let (asked, page) = ask_for_part(&merchant, id).await;
        let mut payer = world.payer_at(page).await;
        payer.press("/method", &[("amount", "115"), ("method", "wave")]).await;
        assert_eq!(payer.page.heading(), "Continue in Wave");
        assert_eq!(payment(&world, asked).await.session.status(), SessionStatus::Cancelled);
        let known = |payment: &Payment| {
            let payer = &payment.session.payer;
            (payment.session.amount, payer.name.clone(), payer.phone.as_ref().map(|phone| phone.as_str().to_owned()))
        };
        let told = (gmd(11_500), Some("Fatou Jallow".to_owned()), Some("+2207000000".to_owned()));
        let of_page = looked_up(&world, id).await.session().unwrap().id;
        assert_ne!(of_page, asked);
        assert_eq!(known(&payment(&world, of_page).await), told);
        // Also where a program asks for another method, which needs the phone.
        let other = json!({ "object_type": "invoice", "object_id": id.to_string(), "payment_method": "qmoney" });
        let (status, opened) = merchant.ask("POST", "/v1/pay/initialize", other).await;
        assert_eq!(status, 200, "{opened}");
        let of_program: Id<PaymentSession> = opened["data"]["id"].as_str().unwrap().parse().unwrap();
        assert_ne!(of_program, of_page);
        assert_eq!(known(&payment(&world, of_program).await), told);
        world.close().await;
        place.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_can_not_be_paid_any_more_is_not_asked_for() {
    for place in Place::each("a part that can't be paid any more").await {
        let world = World::on(place.settings()).await;
        take_parts(&world, true).await;
        let merchant = Merchant::of(&world).await;
        let (id, mut payer) = billed(&world).await;
        ask_for_part(&merchant, id).await;
        let shown = payer.prepare("/method", &[("method", "wave")]);
        payer.open(world.send(shown).await.location()).await;
        assert!(payer.page.says(CHANGED), "a page of before showed the whole: {}", payer.page.body);
        assert_eq!(asks_for(&payer.page), "4000 GMD");
        take_parts(&world, false).await;
        payer.reload().await;
        assert_eq!(asks_for(&payer.page), "11500 GMD", "its merchant takes no parts");
        take_parts(&world, true).await;
        record(&world, id, 8_000).await;
        payer.reload().await;
        assert_eq!(asks_for(&payer.page), "3500 GMD", "less than that is left");
        let (id, mut payer) = billed(&world).await;
        ask_for_part(&merchant, id).await;
        world.clock.advance(DAY + Duration::from_secs(1));
        payer.reload().await;
        assert_eq!(asks_for(&payer.page), "11500 GMD", "its time is over");
        world.close().await;
        place.end().await;
    }
}
