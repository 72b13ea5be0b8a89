//! A checkout is paid by each method, through the pages.

use dalasi::app::hosted::Standing;
use domain::Method;
use domain::payment::TransactionStatus;

use crate::world::{Payer, QUIET, World};

async fn expect_paid(world: &World, payer: &mut Payer<'_>, id: domain::Id<domain::checkout::Checkout>, method: Method) {
    payer.reach("Paid").await;
    let stored = world.stored(id).await;
    assert_eq!(stored.standing(), Standing::Paid);
    let paid: Vec<_> = stored.is_paid_by().collect();
    assert_eq!(paid.len(), 1);
    assert_eq!((paid[0].attempt().method, paid[0].status()), (method, TransactionStatus::Completed));
    assert!(payer.page.says(&paid[0].id.to_string()), "the payment's number is there");
    let back = payer.page.link("Back to Kairaba Books").unwrap();
    let session = stored.session().unwrap().id;
    assert_eq!(
        back,
        format!("https://shop.example/thanks?order=1042&session_id={id}&payment_session_id={session}#top")
    );
    assert!(!payer.page.has_form("/method"), "a paid page offers no method");
}

#[tokio::test]
async fn wave() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    assert_eq!(payer.page.heading(), "How do you want to pay?");
    payer.choose(Method::Wave).await;
    assert_eq!(payer.page.heading(), "Continue in Wave");
    assert!(payer.page.body.contains("data-go="), "it leads on by itself");
    payer.go_out("Open Wave").await;
    assert_eq!(payer.page.heading(), "Wave, simulated");
    payer.decide("approve").await;
    assert_eq!(payer.page.heading(), "Done");
    payer.back().await;
    expect_paid(&world, &mut payer, checkout.id, Method::Wave).await;
}

#[tokio::test]
async fn wave_comes_back_before_the_answer() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.approve_in_wave().await;
    payer.back().await;
    assert_eq!(payer.page.heading(), "We are asking Wave whether you paid");
    assert!(payer.page.says("Don’t pay again."));
    assert!(payer.page.body.contains("http-equiv=\"refresh\""), "it asks again without script");
    assert!(!payer.page.body.contains("<form"), "nothing there could pay twice");
    world.clock.advance(std::time::Duration::from_secs(1));
    expect_paid(&world, &mut payer, checkout.id, Method::Wave).await;
}

#[tokio::test]
async fn afrimoney() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Afrimoney, QUIET).await;
    assert_eq!(payer.page.heading(), "Approve it on your phone");
    assert!(payer.page.says("+220 7•• ••21") && !payer.page.body.contains("7654321"), "the number is masked");
    assert!(!payer.page.has_form("/resend") && !payer.page.has_form("/other"), "a second request could pay twice");

    payer.press("/approved", &[]).await;
    assert_eq!(payer.page.heading(), "We are asking Afrimoney whether you paid");
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Approve it on your phone", "nobody has approved it");

    payer.go_out("Open the simulated phone").await;
    assert_eq!(payer.page.heading(), "Afrimoney on the phone, simulated");
    payer.decide("approve").await;
    payer.back().await;
    expect_paid(&world, &mut payer, checkout.id, Method::Afrimoney).await;
}

#[tokio::test]
async fn qmoney_after_a_wrong_code() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Qmoney, "+2207000000").await;
    assert_eq!(payer.page.heading(), "Enter the code");
    assert!(payer.page.says("Test mode: the code is 123456."));
    for (code, error) in
        [("", "Enter the code from the SMS."), ("12", "The code has 6 digits."), ("12345a", "The code has 6 digits.")]
    {
        payer.press("/code", &[("code", code)]).await;
        assert!(payer.page.says(error), "{code}");
        assert!(payer.page.says("You have 3 tries left."), "{code}");
    }
    payer.press("/code", &[("code", "654321")]).await;
    assert!(payer.page.says("This code is not right."));
    assert!(payer.page.says("You have 2 tries left."));
    payer.press("/code", &[("code", "123 456")]).await;
    expect_paid(&world, &mut payer, checkout.id, Method::Qmoney).await;
}

#[tokio::test]
async fn qmoney_with_three_wrong_codes_ends_and_another_method_pays() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Qmoney, "+2207000000").await;
    for _ in 0..3 {
        payer.press("/code", &[("code", "000000")]).await;
    }
    assert_eq!(payer.page.heading(), "Not paid");
    assert!(payer.page.says("The code was wrong too often. Nothing was taken."));
    payer.approve_in_wave().await;
    payer.back().await;
    expect_paid(&world, &mut payer, checkout.id, Method::Wave).await;
}

#[tokio::test]
async fn qmoney_waits_for_the_phone_after_the_code() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Qmoney, QUIET).await;
    payer.press("/code", &[("code", "123456")]).await;
    assert_eq!(payer.page.heading(), "We are asking QMoney whether you paid");
    payer.go_out("Open the simulated phone").await;
    payer.decide("approve").await;
    payer.back().await;
    expect_paid(&world, &mut payer, checkout.id, Method::Qmoney).await;
}

#[tokio::test]
async fn cards() {
    let world = World::new().await;
    for (number, answer, heading, reason) in [
        ("4242424242424242", None, "Paid", ""),
        ("4000002500003155", Some("approve"), "Paid", ""),
        ("4000002500003155", Some("refuse"), "Not paid", "The bank refused this card. Nothing was taken."),
        ("4000000000000002", None, "Not paid", "The bank refused this card. Nothing was taken."),
        ("4000000000009995", None, "Not paid", "There is not enough money on this card. Nothing was taken."),
    ] {
        let checkout = world.create(|_| {}).await;
        let mut payer = world.payer(&checkout).await;
        payer.choose(Method::Card).await;
        payer.go_out("Open the card page").await;
        payer.card("").await;
        assert!(payer.page.says("Choose one of the test cards."));
        payer.card("4111111111111111").await;
        assert!(payer.page.says("That is not a test card."));
        payer.card(number).await;
        if let Some(answer) = answer {
            assert_eq!(payer.page.heading(), "The bank asks, simulated");
            payer.decide(answer).await;
        }
        assert_eq!(payer.page.heading(), "Done", "{number}");
        payer.back().await;
        payer.reach(heading).await;
        assert!(payer.page.says(reason), "{number}");
        if heading == "Paid" {
            expect_paid(&world, &mut payer, checkout.id, Method::Card).await;
        }
    }
}

#[tokio::test]
async fn who_leaves_the_card_page_has_not_paid() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.choose(Method::Card).await;
    payer.go_out("Open the card page").await;
    payer.decide("cancel").await;
    assert_eq!(payer.page.heading(), "Not paid");
    assert!(payer.page.says("The payment was stopped before it was approved. Nothing was taken."));
}
