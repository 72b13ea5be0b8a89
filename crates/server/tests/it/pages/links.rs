//! What a payer of a link that has ended is told of the own payment, and what no payer can write into a merchant's data.

use std::time::Duration;

use axum::http::StatusCode;
use dalasi::app::payment_links::LinkChange;
use domain::payment_link::{PaymentLink, Price, Status};
use domain::{Currency, Id, Method, Money};
use store::Database;
use store::queries::transactions;

use super::changes::{change_link, link_of, question};
use super::replaced::on_own_page;
use crate::cli::place::Place;
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

#[tokio::test]
async fn a_form_with_nul_begins_nothing() {
    nul_begins_nothing(Database::SqliteMemory).await;
}

#[tokio::test]
async fn a_form_with_nul_begins_nothing_on_postgres() {
    let Some(place) = Place::postgres("a form with NUL begins nothing").await else { return };
    nul_begins_nothing(place.settings()).await;
    place.end().await;
}

async fn nul_begins_nothing(database: Database) {
    let world = World::on(database).await;
    let price = Price::Fixed { amount: Money::new(500, Currency::gmd()) };
    let id = link_of(&world, price, true, vec![question("table")]).await;
    let begun = async || {
        let scope = world.scope;
        let all = world.app.read(move |tx, _| Ok(transactions::of_object(tx, scope, &id.to_string())?));
        all.await.unwrap().len()
    };
    let mut payer = world.payer_at(format!("/pay/{id}")).await;
    let fields = [
        ("name", "Awa"),
        ("email", "awa@example.gm"),
        ("phone", "+2207123456"),
        ("answer-0", "By the window"),
        ("method", "wave"),
        ("more", "than was asked"),
    ];
    for field in fields.map(|(field, _)| field) {
        let with_nul = |text: &str| format!("{text}\0");
        let values = fields.map(|(name, value)| if name == field { with_nul(value) } else { value.to_owned() });
        let names = fields.map(|(name, _)| if name == field { with_nul(name) } else { name.to_owned() });
        let in_value: Vec<_> = fields.iter().zip(&values).map(|((name, _), value)| (*name, value.as_str())).collect();
        let in_name: Vec<_> = fields.iter().zip(&names).map(|((_, value), name)| (name.as_str(), *value)).collect();
        for form in [in_value, in_name] {
            let answer = world.send(payer.prepare("/method", &form)).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{form:?}");
            assert_eq!(answer.heading(), "This form did not come from this page");
        }
    }
    assert_eq!(begun().await, 0);
    payer.press("/method", &fields).await;
    assert_eq!(payer.page.heading(), "Continue in Wave");
    assert_eq!(begun().await, 1);
}
