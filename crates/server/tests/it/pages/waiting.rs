//! Whoever is told to wait gets the answer, also without script.

use std::time::Duration;

use domain::Method;

use super::changes::{billed, link_with_a_way_back, take_parts};
use crate::world::{Page, Payer, World};

const CHECKED: &str = "A payment is still being checked. Wait for its answer before you pay again.";

/// Approved in Wave, whose network takes its time; and the payer wants another method.
async fn give_up_wave(payer: &mut Payer<'_>) {
    payer.approve_in_wave().await;
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

/// An app may take the way out, and the browser stays on the page. Where that looks again, it leads outward no more.
#[tokio::test]
async fn the_page_that_leads_outward_looks_again_and_leads_there_once() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let page = format!("/checkout/{}", checkout.id);
    let mut payer = world.payer(&checkout).await;
    payer.choose(Method::Wave).await;
    for part in [" data-go=", " data-status=", " data-events="] {
        assert!(payer.page.body.contains(part), "{part} in {}", payer.page.body);
    }
    // A browser goes by the first one alone.
    assert_eq!(payer.page.body.matches("http-equiv=\"refresh\"").count(), 1);
    assert_eq!(payer.page.link("Look again now"), Some(page.clone()));
    payer.open(&page).await;
    assert_eq!(payer.page.heading(), "Continue in Wave");
    let refresh = format!("<noscript><meta http-equiv=\"refresh\" content=\"5;url={page}?reads=1\"></noscript>");
    assert!(payer.page.body.contains(&refresh) && !payer.page.body.contains("data-go="), "{}", payer.page.body);
    assert_eq!(payer.page.link("Look again now"), Some(page));
    world.cancel(checkout.id).await;
    payer.reach("Cancelled").await;
}

/// The way to the shop is there as long as anybody may wait for it, and leads on by itself only at once.
#[tokio::test]
async fn who_left_by_a_slow_network_still_finds_the_way_to_the_shop() {
    let world = World::new().await;
    world.clock.stop();
    let id = link_with_a_way_back(&world).await;
    let mut payer = world.payer_at(format!("/pay/{id}")).await;
    let way = "Back to Kairaba Books";
    let answer = world.send(payer.prepare("/leave", &[])).await;
    let leads_on = |page: &Page| page.body.contains("data-go=");
    for (later_s, is_led) in [(9, true), (1, false), (589, false)] {
        world.clock.advance(Duration::from_secs(later_s));
        payer.open(answer.location()).await;
        assert_eq!(payer.page.heading(), "Back to the shop");
        assert_eq!(payer.page.link(way).as_deref(), Some("https://shop.example/sorry"));
        assert_eq!((leads_on(&payer.page), refreshes(&payer.page)), (is_led, is_led), "{}", payer.page.body);
        assert!(!payer.page.body.contains("data-events="), "{}", payer.page.body);
    }
    let in_french = payer.page.link("Français").unwrap();
    payer.open(&in_french).await;
    assert_eq!(payer.page.heading(), "Retour à la boutique");
    assert!(!leads_on(&payer.page), "{}", payer.page.body);
    world.clock.advance(Duration::from_secs(1));
    payer.open(answer.location()).await;
    assert_eq!(payer.page.heading(), "How do you want to pay?");
}
