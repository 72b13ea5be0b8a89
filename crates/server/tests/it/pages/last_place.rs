//! Two payers of a link that has one place left: whoever has begun nothing is told that somebody else has.

use dalasi::app::payment_links::LinkChange;
use domain::payment_link::{PaymentLink, Price};
use domain::{Currency, Id, Method, Money};

use super::changes::{change_link, link_of};
use super::replaced::on_own_page;
use crate::world::{QUIET, World};

const CHECKED: &str = "A payment is still being checked.";
const HELD: &str = "Somebody else is paying the last place now. Nothing was sent. Try again in some minutes.";

async fn single(world: &World) -> Id<PaymentLink> {
    let price = Price::Fixed { amount: Money::new(500, Currency::gmd()) };
    let id = link_of(world, price, false, Vec::new()).await;
    change_link(world, id, LinkChange { max_usage_count: Some(Some(1)), ..LinkChange::default() }).await;
    id
}

#[tokio::test]
async fn who_has_begun_nothing_is_told_that_somebody_else_has() {
    let world = World::new().await;
    world.clock.stop();
    let id = single(&world).await;
    let mut second = world.payer_at(format!("/pay/{id}")).await;
    let mut first = world.payer_at(format!("/pay/{id}")).await;
    first.choose(Method::Wave).await;
    let mut first = on_own_page(&world, &first).await;
    assert_eq!(first.page.heading(), "Continue in Wave");

    second.choose(Method::Card).await;
    assert_eq!(second.page.heading(), "How do you want to pay?");
    assert!(second.page.says(HELD) && !second.page.says(CHECKED), "{}", second.page.body);
    assert!(!second.page.body.contains("http-equiv=\"refresh\""), "nobody answers them");
    second.open(&second.page.link("Français").unwrap()).await;
    let held = "Quelqu’un d’autre est en train de payer la dernière place. Rien n’a été envoyé. Réessayez dans \
                quelques minutes.";
    assert!(second.page.says(held), "{}", second.page.body);
    second.open(&second.page.link("English").unwrap()).await;
    second.with_phone(Method::Afrimoney, QUIET).await;
    assert_eq!(second.page.heading(), "Your Afrimoney number");
    assert!(second.page.says(HELD) && !second.page.says(CHECKED), "{}", second.page.body);
    assert_eq!(second.page.value_of("phone").as_deref(), Some(QUIET), "nothing is typed twice");

    // The place is free as soon as the first payer wants another method, and the second takes it.
    first.go_out("Open Wave").await;
    first.decide("approve").await;
    first.reload().await;
    first.press("/other", &[]).await;
    second.press("/phone", &[("phone", QUIET)]).await;
    assert_eq!(second.page.heading(), "Approve it on your phone");
    // The first may have paid already: that is what they wait for.
    first.choose(Method::Card).await;
    assert!(first.page.says(CHECKED) && !first.page.says(HELD), "{}", first.page.body);
    world.has_clean_books().await;
}
