//! Whoever is told to wait gets the answer, also without script.

use std::time::Duration;

use domain::Method;

use super::changes::{billed, take_parts};
use crate::world::{Page, Payer, World};

const CHECKED: &str = "A payment is still being checked. Wait for its answer before you pay again.";

/// Approved in Wave, whose network takes its time; and the payer wants another method.
async fn give_up_wave(payer: &mut Payer<'_>) {
    payer.choose(Method::Wave).await;
    payer.go_out("Open Wave").await;
    payer.decide("approve").await;
    payer.reload().await;
    payer.press("/other", &[]).await;
    assert!(payer.page.says(CHECKED), "{}", payer.page.body);
}

fn refreshes(page: &Page) -> bool {
    page.body.contains("<noscript><meta http-equiv=\"refresh\"")
}

#[tokio::test]
async fn a_choice_that_has_to_wait_looks_again() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let page = format!("/checkout/{}", checkout.id);
    let mut payer = world.payer(&checkout).await;
    assert!(!refreshes(&payer.page) && payer.page.link("Look again now").is_none(), "{}", payer.page.body);
    give_up_wave(&mut payer).await;
    let refresh = format!("<noscript><meta http-equiv=\"refresh\" content=\"5;url={page}?reads=1\"></noscript>");
    assert!(payer.page.body.contains(&refresh), "{}", payer.page.body);
    assert_eq!(payer.page.link("Look again now"), Some(page.clone()));
    // What is typed would be taken away.
    payer.choose(Method::Afrimoney).await;
    assert!(payer.page.says(CHECKED) && !refreshes(&payer.page), "{}", payer.page.body);
    assert_eq!(payer.page.link("Look again now"), Some(page));
    world.clock.advance(Duration::from_secs(1));
    payer.reach("Paid").await;
}

#[tokio::test]
async fn so_does_one_in_which_a_part_can_be_typed() {
    let world = World::new().await;
    world.clock.stop();
    take_parts(&world, true).await;
    let (id, mut payer) = billed(&world).await;
    give_up_wave(&mut payer).await;
    assert!(payer.page.body.contains("name=\"amount\"") && !refreshes(&payer.page), "{}", payer.page.body);
    assert_eq!(payer.page.link("Look again now"), Some(format!("/invoice/{id}")));
    take_parts(&world, false).await;
    payer.reload().await;
    assert!(payer.page.says(CHECKED) && refreshes(&payer.page), "{}", payer.page.body);
    world.clock.advance(Duration::from_secs(1));
    payer.reach("Paid").await;
}
