//! The documented test numbers, through the pages.

use std::time::Duration;

use dalasi::app::hosted::Standing;
use domain::Method;

use crate::world::World;

const WALLETS: [(Method, &str); 2] = [(Method::Afrimoney, "Afrimoney"), (Method::Qmoney, "QMoney")];

/// Chooses the wallet with the number, and gives the code where one is asked for.
async fn pay(payer: &mut crate::world::Payer<'_>, method: Method, phone: &str) {
    payer.with_phone(method, phone).await;
    if method == Method::Qmoney {
        payer.press("/code", &[("code", "123456")]).await;
    }
}

#[tokio::test]
async fn numbers_that_pay() {
    let world = World::new().await;
    for (method, _) in WALLETS {
        for phone in ["+2207000000", "7000000", "220 700 0006"] {
            let checkout = world.create(|_| {}).await;
            let mut payer = world.payer(&checkout).await;
            pay(&mut payer, method, phone).await;
            payer.reach("Paid").await;
            let stored = world.stored(checkout.id).await;
            assert_eq!(stored.attempts.len(), 1);
            assert_eq!(stored.is_paid_by().count(), 1, "{phone}");
        }
    }
}

#[tokio::test]
async fn numbers_that_do_not() {
    let world = World::new().await;
    for (method, name) in WALLETS {
        for (phone, reason) in [
            ("+2207000001", format!("There is not enough money in the {name} wallet. Nothing was taken.")),
            ("+2207000002", format!("The payment was refused in {name}. Nothing was taken.")),
        ] {
            let checkout = world.create(|_| {}).await;
            let mut payer = world.payer(&checkout).await;
            pay(&mut payer, method, phone).await;
            payer.reach("Not paid").await;
            assert!(payer.page.says(&reason), "{phone}");
            assert!(payer.page.has_form("/method"), "the payer may try again");
            let stored = world.stored(checkout.id).await;
            assert_eq!(stored.standing(), Standing::Open);
        }
    }
}

#[tokio::test]
async fn the_number_that_never_answers() {
    let world = World::new().await;
    for (method, heading) in
        [(Method::Afrimoney, "Approve it on your phone"), (Method::Qmoney, "We are asking QMoney whether you paid")]
    {
        let checkout = world.create(|_| {}).await;
        let mut payer = world.payer(&checkout).await;
        pay(&mut payer, method, "+2207000003").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        payer.reload().await;
        assert_eq!(payer.page.heading(), heading);
        assert!(!payer.page.has_form("/method") && !payer.page.has_form("/other") && !payer.page.has_form("/leave"));
    }
}

#[tokio::test]
async fn the_number_whose_answer_is_lost() {
    let world = World::new().await;
    world.clock.stop();
    for (method, name) in WALLETS {
        let checkout = world.create(|_| {}).await;
        let mut payer = world.payer(&checkout).await;
        pay(&mut payer, method, "+2207000004").await;
        assert_eq!(payer.page.heading(), format!("We are asking {name} whether you paid"));
        assert!(payer.page.says("Don’t pay again.") && !payer.page.body.contains("<form"));
        world.clock.advance(Duration::from_secs(60));
        payer.reach("Paid").await;
    }
}

#[tokio::test]
async fn the_number_that_takes_half_a_minute() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    pay(&mut payer, Method::Afrimoney, "+2207000005").await;
    world.clock.advance(Duration::from_secs(29));
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Approve it on your phone");
    world.clock.advance(Duration::from_secs(2));
    payer.reach("Paid").await;
}

#[tokio::test]
async fn the_phone_that_came_with_the_checkout_decides_for_wave() {
    let world = World::new().await;
    for (phone, heading) in [("+2207000000", "Paid"), ("+2207000001", "Not paid"), ("+2207000002", "Not paid")] {
        let checkout = world.create(|new| new.customer.phone = Some(phone.into())).await;
        let mut payer = world.payer(&checkout).await;
        payer.choose(Method::Wave).await;
        payer.reach(heading).await;
    }
}
