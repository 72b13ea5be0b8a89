//! What a payer of a link that has ended is told of the own payment.

use std::time::Duration;

use dalasi::app::payment_links::LinkChange;
use domain::payment_link::{PaymentLink, Price, Status};
use domain::{Currency, Id, Method, Money};

use super::changes::{change_link, link_of};
use super::replaced::on_own_page;
use crate::world::World;

async fn link(world: &World) -> Id<PaymentLink> {
    let price = Price::Fixed { amount: Money::new(500, Currency::gmd()) };
    link_of(world, price, false, Vec::new()).await
}

/// Whoever is told to ask for another way to pay, pays twice if the rail took the money.
#[tokio::test]
async fn nobody_is_sent_to_pay_again_while_the_own_payment_is_not_decided() {
    let world = World::new().await;
    world.clock.stop();
    let id = link(&world).await;
    let mut payer = world.payer_at(format!("/pay/{id}")).await;
    payer.choose(Method::Wave).await;
    let mut payer = on_own_page(&world, &payer).await;
    payer.go_out("Open Wave").await;
    payer.decide("approve").await;
    // The network takes its time, and the payer wants another method.
    payer.reload().await;
    payer.press("/other", &[]).await;
    let off = LinkChange { status: Some(Status::Inactive), ..LinkChange::default() };
    change_link(&world, id, off).await;
    payer.reload().await;
    assert_eq!(payer.page.heading(), "No more payments here");
    assert!(payer.page.says("We do not know yet whether money was taken: Wave has not answered. Don’t pay again."));
    assert!(!payer.page.says("for another way to pay"), "{}", payer.page.body);
    assert!(payer.page.body.contains("<noscript><meta http-equiv=\"refresh\""), "without script it follows as well");
    assert!(payer.page.body.contains("data-events="), "{}", payer.page.body);
    let undecided = payer.page.revision().to_owned();
    world.clock.advance(Duration::from_secs(1));
    payer.reach("Paid").await;
    assert_ne!(payer.page.revision(), undecided);
    // Who has begun nothing is asked to find another way.
    payer.open(&format!("/pay/{id}")).await;
    assert!(payer.page.says("Ask Kairaba Books for another way to pay."), "{}", payer.page.body);
    world.has_clean_books().await;
}

/// The time of a link's payment is that of its session: an hour, where payments are counted.
#[tokio::test]
async fn who_has_an_hour_is_told_in_its_last_quarter() {
    let world = World::new().await;
    world.clock.stop();
    let id = link(&world).await;
    change_link(&world, id, LinkChange { max_usage_count: Some(Some(1)), ..LinkChange::default() }).await;
    let mut payer = world.payer_at(format!("/pay/{id}")).await;
    payer.choose(Method::Wave).await;
    let mut payer = on_own_page(&world, &payer).await;
    let page = payer.page.path.clone();
    assert!(!payer.page.says("to pay."), "{}", payer.page.body);
    world.clock.advance(Duration::from_secs(44 * 60));
    assert!(world.get(&format!("{page}/status")).await.body.contains("\"time_left\":null"));
    world.clock.advance(Duration::from_secs(4 * 60));
    let told = "You have about 12 minutes to pay.";
    assert!(world.get(&format!("{page}/status?lang=en")).await.body.contains(told));
    payer.reload().await;
    assert!(payer.page.says(told), "{}", payer.page.body);
    // Who has begun nothing has as long as the link.
    payer.open(&format!("/pay/{id}")).await;
    assert!(!payer.page.says("to pay."), "{}", payer.page.body);
}
