//! What no method takes is not paid online: its page says so, and whom to ask. No rail is behind live mode.

use dalasi::app::organizations::SettingsChange;
use domain::payment_link::Price;
use domain::{Currency, Method, Mode, Money};

use super::changes::{link_of, set};
use crate::invoices::{create, rice, rice_in};
use crate::world::World;

/// Then no other method than one that takes dalasis alone.
fn afrimoney_alone() -> SettingsChange {
    SettingsChange { enabled_methods: Some(vec![Method::Afrimoney]), ..SettingsChange::default() }
}

#[tokio::test]
async fn an_invoice_that_no_method_takes_says_whom_to_ask() {
    let mut world = World::new().await;
    let ordinary = create(&world, rice(&world)).await.unwrap().id;
    let in_naira = create(&world, rice_in(&world, "NGN")).await.unwrap().id;
    world.scope.mode = Mode::Live;
    let live = create(&world, rice(&world)).await.unwrap().id;
    for id in [in_naira, live] {
        let mut payer = world.payer_at(format!("/invoice/{id}")).await;
        assert_eq!(payer.page.heading(), "No online payment");
        let told = "This invoice is not paid online. Ask Kairaba Books how to pay.";
        assert!(payer.page.says(told) && !payer.page.has_form("/method"), "{}", payer.page.body);
        assert!(payer.page.body.contains("<title>No online payment"), "{}", payer.page.body);
        payer.open(&payer.page.link("Français").unwrap()).await;
        let told = "Cette facture ne se paie pas en ligne. Demandez à Kairaba Books comment payer.";
        assert!(payer.page.says(told), "{}", payer.page.body);
    }
    let payer = world.payer_at(format!("/invoice/{ordinary}")).await;
    assert_eq!(payer.page.heading(), "How do you want to pay?");
    assert!(payer.page.has_form("/method") && !payer.page.says("not paid online"), "{}", payer.page.body);
}

#[tokio::test]
async fn so_does_a_link() {
    let world = World::new().await;
    let price = Price::Fixed { amount: Money::new(500, Currency::parse("XOF").unwrap()) };
    let id = link_of(&world, price, false, Vec::new()).await;
    set(&world, afrimoney_alone()).await;
    let mut payer = world.payer_at(format!("/pay/{id}")).await;
    assert!(payer.page.says("This payment is not made online. Ask Kairaba Books how to pay."), "{}", payer.page.body);
    payer.open(&payer.page.link("Français").unwrap()).await;
    let told = "Ce paiement ne se fait pas en ligne. Demandez à Kairaba Books comment payer.";
    assert!(payer.page.says(told), "{}", payer.page.body);
}

/// Whoever asks how to pay, pays twice if the rail took the money.
#[tokio::test]
async fn who_may_have_paid_is_told_to_wait_and_not_to_ask() {
    let world = World::new().await;
    world.clock.stop();
    let id = create(&world, rice_in(&world, "XOF")).await.unwrap().id;
    let mut payer = world.payer_at(format!("/invoice/{id}")).await;
    payer.approve_in_wave().await;
    payer.reload().await;
    payer.press("/other", &[]).await;
    set(&world, afrimoney_alone()).await;
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Checking");
    assert!(payer.page.says("A payment is still being checked."), "{}", payer.page.body);
    assert!(!payer.page.says("how to pay"), "{}", payer.page.body);
    assert!(payer.page.body.contains("<noscript><meta http-equiv=\"refresh\""), "{}", payer.page.body);
}
