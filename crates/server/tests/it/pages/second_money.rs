//! Who has paid, or may have, is told neither that nothing was taken nor that they did not pay: they would pay again.

use std::time::Duration;

use dalasi::app::invoices;
use dalasi::app::organizations::SettingsChange;
use domain::invoice::Invoice;
use domain::{Id, Method};

use super::changes::{bill_anew, billed, link_with_a_way_back, set};
use super::replaced::on_own_page;
use crate::world::{Payer, World, post};

const APART: &str = "is kept apart";
const CHECKED: &str = "A payment is still being checked.";
const NOTHING: &str = "Nothing was taken";

/// An invoice of 92.00 for which 115.00 came: it was of so much when the payer approved.
async fn overpaid(world: &World) -> (Id<Invoice>, Payer<'_>) {
    world.clock.stop();
    let (id, mut payer) = billed(world).await;
    payer.choose(Method::Wave).await;
    payer.go_out("Open Wave").await;
    payer.decide("approve").await;
    bill_anew(world, id, 8_000).await;
    world.clock.advance(Duration::from_secs(1));
    until(&mut payer, APART).await;
    (id, payer)
}

async fn until(payer: &mut Payer<'_>, said: &str) {
    for _ in 0..400 {
        payer.reload().await;
        if payer.page.says(said) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{said}: {}", payer.page.body);
}

#[tokio::test]
async fn an_invoice_that_is_cancelled_has_not_taken_nothing() {
    let world = World::new().await;
    let (id, mut payer) = overpaid(&world).await;
    let scope = world.scope;
    world.app.commit(move |tx, context| invoices::cancel(tx, context, scope, id)).await.unwrap();
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Cancelled");
    assert!(payer.page.says(APART) && !payer.page.says(NOTHING), "{}", payer.page.body);
    assert!(payer.page.says("An earlier payment was more than what was left."), "{}", payer.page.body);
    world.has_clean_books().await;
}

#[tokio::test]
async fn an_attempt_that_fails_beside_it_is_not_all_that_there_is() {
    let world = World::new().await;
    let (_, mut payer) = overpaid(&world).await;
    payer.choose(Method::Afrimoney).await;
    payer.press("/phone", &[("phone", "+2207000001")]).await;
    world.clock.advance(Duration::from_secs(1));
    until(&mut payer, NOTHING).await;
    assert_eq!(payer.page.heading(), "Not paid");
    // Of this attempt; and of the one before, that it is there.
    assert!(payer.page.says("An earlier payment was more than what was left."), "{}", payer.page.body);
    assert!(payer.page.says(APART), "{}", payer.page.body);
    world.has_clean_books().await;
}

#[tokio::test]
async fn who_may_have_paid_is_led_to_no_shop_as_one_who_did_not() {
    let world = World::new().await;
    world.clock.stop();
    let id = link_with_a_way_back(&world).await;
    let mut payer = world.payer_at(format!("/pay/{id}")).await;
    assert!(payer.page.has_form("/leave"), "{}", payer.page.body);
    payer.choose(Method::Wave).await;
    let mut payer = on_own_page(&world, &payer).await;
    payer.go_out("Open Wave").await;
    payer.decide("approve").await;
    payer.reload().await;
    payer.press("/other", &[]).await;
    assert!(payer.page.says(CHECKED) && !payer.page.has_form("/leave"), "{}", payer.page.body);
    // A page of before has the button.
    let (address, fields) = payer.page.form("/method").unwrap();
    let answer = world.send(post(&address.replace("/method", "/leave"), &fields)).await;
    payer.open(answer.location()).await;
    assert!(payer.page.says(CHECKED), "{}", payer.page.body);
    assert!(!payer.page.says("You did not pay"), "{}", payer.page.body);
    world.clock.advance(Duration::from_secs(1));
    payer.reach("Paid").await;
}

#[tokio::test]
async fn a_start_that_did_not_work_hides_no_payment_that_may() {
    let world = World::new().await;
    world.clock.stop();
    let (_, mut payer) = billed(&world).await;
    payer.choose(Method::Wave).await;
    payer.go_out("Open Wave").await;
    payer.decide("approve").await;
    payer.reload().await;
    payer.press("/other", &[]).await;
    let wave = payer.prepare("/method", &[("method", "wave")]);
    payer.choose(Method::Afrimoney).await;
    let phone = payer.prepare("/phone", &[("phone", "+2207000000")]);
    let methods = Some(vec![Method::Card, Method::Qmoney]);
    set(&world, SettingsChange { enabled_methods: methods, ..SettingsChange::default() }).await;
    for form in [wave, phone] {
        let answer = world.send(form).await;
        payer.open(answer.location()).await;
        assert!(payer.page.says(CHECKED) && !payer.page.says(NOTHING), "{}", payer.page.body);
    }
    world.clock.advance(Duration::from_secs(1));
    payer.reach("Paid").await;
}
