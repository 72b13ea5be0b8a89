//! What was paid back is no longer promised, and told, wherever a page speaks of that payment.

use std::time::Duration;

use domain::payment::Transaction;
use domain::{Id, Method};

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
    payer.choose(Method::Wave).await;
    payer.go_out("Open Wave").await;
    payer.decide("approve").await;
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
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Afrimoney, QUIET).await;
    let simulator = payer.page.link("Open the simulated phone").unwrap();
    world.cancel(checkout.id).await;
    payer.open(&simulator).await;
    payer.decide("approve").await;
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
