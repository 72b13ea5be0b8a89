//! What was paid back is no longer promised, and told, wherever a page speaks of that payment.

use std::time::Duration;

use dalasi::app::hosted::{self, Hosted, Place};
use dalasi::app::invoices::{self, NewPayment};
use domain::invoice::Invoice;
use domain::payment::{Payable, Transaction};
use domain::{Currency, Id, Method, Money, OfflineMethod};

use super::changes::{billed, take_parts};
use crate::world::{Page, Payer, QUIET, World};

const PROMISE: &str = "It is kept apart, and Kairaba Books can pay it back.";

/// Once a refund of so much is through.
async fn refund(world: &World, payer: &mut Payer<'_>, transaction: Id<Transaction>, minor: i64) {
    let before = payer.page.revision().to_owned();
    world.refund(transaction, Some(minor)).await.unwrap();
    for _ in 0..400 {
        payer.reload().await;
        if payer.page.says("Paid back since") && payer.page.revision() != before {
            return;
        }
        world.clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("nothing tells of the refund: {}", payer.page.body);
}

fn tells(page: &Page, amount: &str) -> bool {
    page.body.contains(&format!("<dt>Paid back since</dt><dd>{amount}\u{a0}GMD</dd>"))
}

fn follows(page: &Page) -> bool {
    page.body.contains("data-events=")
}

#[tokio::test]
async fn a_second_payment_that_was_paid_back_is_promised_no_more() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.approve_in_wave().await;
    payer.reload().await;
    payer.press("/other", &[]).await;
    payer.with_phone(Method::Afrimoney, "+2207000000").await;
    world.clock.advance(Duration::from_secs(1));
    payer.reach("This is already paid").await;
    let second = world.stored(checkout.id).await.is_paid_by().find(|attempt| attempt.duplicate).unwrap().id;
    assert!(payer.page.says(PROMISE) && follows(&payer.page), "{}", payer.page.body);
    refund(&world, &mut payer, second, 25_000).await;
    assert!(tells(&payer.page, "250.00") && payer.page.says(PROMISE), "{}", payer.page.body);
    refund(&world, &mut payer, second, 100_000).await;
    assert!(tells(&payer.page, "1,250.00"), "{}", payer.page.body);
    assert!(!payer.page.says(PROMISE) && payer.page.says(&second.to_string()), "{}", payer.page.body);
    assert!(!follows(&payer.page), "nothing more is to come");
    payer.open(&payer.page.link("Français").unwrap()).await;
    assert!(payer.page.says("Remboursé depuis") && !payer.page.says("peut le rembourser"), "{}", payer.page.body);
}

#[tokio::test]
async fn late_money_that_was_paid_back_is_promised_no_more() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Afrimoney, QUIET).await;
    payer.go_out("Open the simulated phone").await;
    payer.decide("approve").await;
    // The network takes its time, and drops nothing that is approved.
    world.cancel(checkout.id).await;
    world.clock.advance(Duration::from_secs(1));
    payer.reach("Your money arrived late").await;
    assert!(payer.page.says("either delivers or pays you back") && follows(&payer.page), "{}", payer.page.body);
    let late = world.stored(checkout.id).await.is_paid_by().next().unwrap().id;
    refund(&world, &mut payer, late, 125_000).await;
    assert!(tells(&payer.page, "1,250.00"), "{}", payer.page.body);
    assert!(!payer.page.says("pays you back") && !follows(&payer.page), "{}", payer.page.body);
}

#[tokio::test]
async fn what_was_paid_back_as_a_whole_is_no_longer_called_paid() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Afrimoney, "+2207000000").await;
    payer.reach("Paid").await;
    assert!(payer.page.body.contains("data-back="));
    let paid = world.stored(checkout.id).await.is_paid_by().next().unwrap().id;
    refund(&world, &mut payer, paid, 25_000).await;
    assert_eq!(payer.page.heading(), "Paid");
    assert!(tells(&payer.page, "250.00"), "{}", payer.page.body);
    assert!(!payer.page.body.contains("data-back="), "nobody is led away from it");
    refund(&world, &mut payer, paid, 100_000).await;
    assert_eq!(payer.page.heading(), "Paid back");
    assert!(tells(&payer.page, "1,250.00"), "{}", payer.page.body);
    payer.open(&payer.page.link("Français").unwrap()).await;
    assert_eq!(payer.page.heading(), "Remboursé");
}

async fn looked_up(world: &World, id: Id<Invoice>) -> Hosted {
    let place = Place { payable: Payable::Invoice(id), session: None };
    world.app.read(move |tx, context| hosted::look_up_hosted(tx, context, place)).await.unwrap()
}

/// The transaction of what changed hands elsewhere.
async fn record(world: &World, id: Id<Invoice>, minor: i64, method: OfflineMethod) -> Id<Transaction> {
    let new = NewPayment { amount: Money::new(minor, Currency::gmd()), method, transaction_id: None, notes: None };
    let scope = world.scope;
    let recorded = world.app.commit(move |tx, context| invoices::record_payment(tx, context, scope, id, &new, "key"));
    recorded.await.unwrap();
    looked_up(world, id).await.recorded.last().unwrap().id
}

#[tokio::test]
async fn money_recorded_by_hand_that_went_back_is_told() {
    let world = World::new().await;
    let (id, mut payer) = billed(&world).await;
    let cash = record(&world, id, 5_000, OfflineMethod::Cash).await;
    payer.reload().await;
    refund(&world, &mut payer, cash, 2_000).await;
    assert!(tells(&payer.page, "20.00") && payer.page.has_form("/method"), "{}", payer.page.body);
    let cheque = record(&world, id, 6_500, OfflineMethod::Check).await;
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Paid");
    assert!(payer.page.says("This invoice is paid in full.") && payer.page.says("Cheque"), "{}", payer.page.body);
    // One of two went back whole.
    refund(&world, &mut payer, cash, 3_000).await;
    assert_eq!(payer.page.heading(), "Paid");
    assert!(tells(&payer.page, "50.00"), "{}", payer.page.body);
    refund(&world, &mut payer, cheque, 6_500).await;
    assert_eq!(payer.page.heading(), "Paid back");
    assert!(tells(&payer.page, "50.00") && tells(&payer.page, "65.00"), "{}", payer.page.body);
    assert!(!payer.page.says("paid in full") && payer.page.body.contains("<title>Paid back"), "{}", payer.page.body);
    payer.open(&payer.page.link("Français").unwrap()).await;
    assert_eq!(payer.page.heading(), "Remboursé");
    assert!(!payer.page.says("payée en entier"), "{}", payer.page.body);
    world.has_clean_books().await;
}

#[tokio::test]
async fn an_invoice_whose_money_went_back_whole_is_no_longer_called_paid() {
    let world = World::new().await;
    let (id, mut payer) = billed(&world).await;
    payer.with_phone(Method::Afrimoney, "+2207000000").await;
    payer.reach("Paid").await;
    let paid = looked_up(&world, id).await.is_paid_by().next().unwrap().id;
    refund(&world, &mut payer, paid, 1_500).await;
    assert_eq!(payer.page.heading(), "Paid");
    assert!(tells(&payer.page, "15.00"), "{}", payer.page.body);
    refund(&world, &mut payer, paid, 10_000).await;
    assert_eq!(payer.page.heading(), "Paid back");
    assert!(tells(&payer.page, "115.00"), "{}", payer.page.body);
}

#[tokio::test]
async fn a_part_that_went_back_whole_is_no_news_any_more() {
    let world = World::new().await;
    take_parts(&world, true).await;
    let (id, mut payer) = billed(&world).await;
    payer.press("/method", &[("amount", "50"), ("method", "afrimoney")]).await;
    payer.press("/phone", &[("phone", "+2207000000")]).await;
    payer.reach("We received 50.00 GMD").await;
    let part = looked_up(&world, id).await.is_paid_by().next().unwrap().id;
    refund(&world, &mut payer, part, 2_000).await;
    assert_eq!(payer.page.heading(), "We received 50.00 GMD");
    refund(&world, &mut payer, part, 3_000).await;
    assert_eq!(payer.page.heading(), "How do you want to pay?");
    assert!(tells(&payer.page, "50.00"), "{}", payer.page.body);
}
