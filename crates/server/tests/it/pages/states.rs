//! Every state tells the truth at the moment of the look.

use std::time::Duration;

use axum::http::StatusCode;
use dalasi::app::Context;
use dalasi::app::customers::{self, NewCustomer};
use dalasi::app::hosted::{self, Place, Standing};
use domain::checkout::Checkout;
use domain::customer::Contact;
use domain::payment::Payable;
use domain::{Method, Msisdn};

use super::changes::TOO_OLD;
use crate::world::{Page, QUIET, World};

#[tokio::test]
async fn a_phone_that_is_none_is_refused_and_stays_in_its_field() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.choose(Method::Afrimoney).await;
    assert_eq!(payer.page.heading(), "Your Afrimoney number");
    for (typed, error) in [
        ("12", "Enter a number with +220 and 7 digits"),
        ("+33612345678", "Enter a number with +220 and 7 digits"),
        ("+220 ", "Enter your phone number."),
        ("", "Enter your phone number."),
    ] {
        payer.press("/phone", &[("phone", typed)]).await;
        assert_eq!(payer.page.heading(), "Your Afrimoney number");
        assert!(payer.page.says(error), "{typed}");
        let kept = if typed.trim_end_matches(['+', '2', '0', ' ']).is_empty() { "+220 " } else { typed };
        assert!(payer.page.body.contains(&format!("value=\"{kept}\"")), "{typed}: {}", payer.page.body);
        assert!(!payer.page.path.contains("3361234"), "no number in an address");
    }
    assert!(world.stored(checkout.id).await.attempts.is_empty());
    payer.press("/other", &[]).await;
    assert_eq!(payer.page.heading(), "How do you want to pay?");
}

#[tokio::test]
async fn the_number_that_the_shop_gave_is_one_tap() {
    let world = World::new().await;
    let checkout = world.create(|new| new.customer.phone = Some("+2207000000".into())).await;
    let mut payer = world.payer(&checkout).await;
    payer.choose(Method::Afrimoney).await;
    assert!(payer.page.says("Continue with +220 7•• ••00"));
    payer.press("/phone", &[("use", "known")]).await;
    payer.reach("Paid").await;
}

/// Also one who was deleted before it was paid: the checkout keeps its copies, and nobody looks for the customer again.
#[tokio::test]
async fn the_customer_of_a_checkout_is_the_customer_of_its_payment() {
    let world = World::new().await;
    let scope = world.scope;
    for is_deleted in [false, true] {
        let create = move |tx: &mut store::Tx<'_>, _: &Context| {
            let contact = Contact::new(Some("awa@example.gm".into()), Msisdn::parse("+2207000000").ok()).unwrap();
            let new = NewCustomer { contact, name: Some("Awa Ceesay".into()), metadata: Default::default() };
            Ok(customers::find_or_create(tx, scope, &new)?.customer.id)
        };
        let id = world.app.commit(create).await.unwrap();
        let checkout = world.create(|new| new.customer.id = Some(id)).await;
        if is_deleted {
            world.app.commit(move |tx, _| customers::delete(tx, scope, id)).await.unwrap();
        }
        let mut payer = world.payer(&checkout).await;
        payer.choose(Method::Afrimoney).await;
        payer.press("/phone", &[("use", "known")]).await;
        payer.reach("Paid").await;
        let stored = world.stored(checkout.id).await;
        let paid_by = stored.is_paid_by().next().unwrap();
        let known = domain::payment::Payer {
            customer: Some(id),
            phone: Msisdn::parse("+2207000000").ok(),
            email: Some("awa@example.gm".into()),
            name: Some("Awa Ceesay".into()),
        };
        assert_eq!(paid_by.payer, known);
    }
}

#[tokio::test]
async fn a_fixed_method_shows_its_own_page() {
    let world = World::new().await;
    let checkout = world.create(|new| new.payment_method = Some(Method::Qmoney)).await;
    let mut payer = world.payer(&checkout).await;
    assert_eq!(payer.page.heading(), "Your QMoney number");
    assert!(!payer.page.has_form("/other"));
    payer.press("/phone", &[("phone", "+2207000000")]).await;
    assert_eq!(payer.page.heading(), "Enter the code");
    assert!(!payer.page.has_form("/other"));

    let checkout = world.create(|new| new.payment_method = Some(Method::Wave)).await;
    let mut payer = world.payer(&checkout).await;
    assert_eq!(payer.page.heading(), "Check and pay");
    payer.choose(Method::Wave).await;
    assert_eq!(payer.page.heading(), "Continue in Wave");
    assert_eq!(world.stored(checkout.id).await.attempts.len(), 1);
}

#[tokio::test]
async fn another_method_closes_what_was_begun() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.choose(Method::Wave).await;
    payer.press("/other", &[]).await;
    assert_eq!(payer.page.heading(), "How do you want to pay?");
    payer.with_phone(Method::Qmoney, "+2207000000").await;
    payer.press("/other", &[]).await;
    payer.with_phone(Method::Afrimoney, "+2207000000").await;
    payer.reach("Paid").await;
    let stored = world.stored(checkout.id).await;
    assert_eq!((stored.attempts.len(), stored.is_paid_by().count()), (3, 1));
}

#[tokio::test]
async fn the_back_button_stays_and_pays_nothing() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.choose(Method::Wave).await;
    let first_showing = payer.page.path.clone();
    assert!(payer.page.body.contains("data-go="));
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Continue in Wave");
    assert!(!payer.page.body.contains("data-go="), "who comes back stays");
    world.clock.advance(Duration::from_secs(11));
    payer.open(&first_showing).await;
    assert!(!payer.page.body.contains("data-go="), "also without script, where the address is kept");
    // The stored choice page, sent once more.
    payer.choose_again(Method::Wave).await;
    assert_eq!(world.stored(checkout.id).await.attempts.len(), 1);
}

#[tokio::test]
async fn expired() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|new| new.expires_in_s = 60).await;
    let mut payer = world.payer(&checkout).await;
    assert!(!payer.page.says("to pay."), "no timer before the last quarter");
    let form = payer.prepare("/method", &[("method", "wave")]);
    let told =
        async |language: &str| world.get(&format!("/checkout/{}/status?lang={language}", checkout.id)).await.body;
    assert!(told("en").await.contains("\"time_left\":null"));
    world.clock.advance(Duration::from_secs(50));
    // A page that is open asks, and is told in its own language.
    assert!(told("en").await.contains(r#""time_left":"You have less than a minute to pay.""#));
    assert!(told("fr").await.contains(r#""time_left":"Il vous reste moins d’une minute pour payer.""#));
    payer.reload().await;
    assert!(payer.page.says("You have less than a minute to pay."));
    world.clock.advance(Duration::from_secs(10));
    payer.reload().await;
    assert_eq!(payer.page.heading(), "The time to pay is over");
    assert!(payer.page.says("Nothing was taken.") && !payer.page.body.contains("<form"));
    let address = payer.page.link("Back to Kairaba Books").unwrap();
    assert_eq!(address, format!("https://shop.example/sorry?session_id={}", checkout.id));
    assert_eq!(world.send(form).await.status, StatusCode::SEE_OTHER, "a form of before ends on the page as well");
    assert!(world.stored(checkout.id).await.attempts.is_empty());
}

#[tokio::test]
async fn an_attempt_with_its_rail_holds_the_checkout_open() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|new| new.expires_in_s = 60).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Afrimoney, QUIET).await;
    world.clock.advance(Duration::from_secs(120));
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Approve it on your phone");
    payer.press("/approved", &[]).await;
    payer.reload().await;
    payer.go_out("Open the simulated phone").await;
    payer.decide("approve").await;
    world.clock.advance(Duration::from_secs(1));
    payer.reach("Paid").await;
}

#[tokio::test]
async fn cancelled_and_then_paid_late() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|new| new.failure_url = Some("https://shop.example/unpaid".into())).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Afrimoney, QUIET).await;
    let simulator = payer.page.link("Open the simulated phone").unwrap();
    payer.open(&simulator).await;
    payer.decide("approve").await;
    payer.back().await;
    // The network takes its time, and drops nothing that is approved.
    world.cancel(checkout.id).await;
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Cancelled");
    assert!(payer.page.says("We do not know yet whether money was taken: Afrimoney has not answered."));
    assert!(!payer.page.says("Nothing was taken"), "nobody knows that");
    assert!(!payer.page.body.contains("https://shop.example/unpaid"), "they would pay again there");
    world.clock.advance(Duration::from_secs(1));
    payer.reach("Your money arrived late").await;
    let stored = world.stored(checkout.id).await;
    assert_eq!(stored.standing(), Standing::Cancelled);
    assert!(payer.page.says(&stored.is_paid_by().next().unwrap().id.to_string()));
    assert!(!payer.page.body.contains("https://shop.example/unpaid"), "they have paid, and would pay again there");
}

#[tokio::test]
async fn cancelled_with_a_final_no() {
    for method in [Method::Wave, Method::Afrimoney] {
        withdrawn(method).await;
    }
}

async fn withdrawn(method: Method) {
    let world = World::new().await;
    let checkout = world.create(|new| new.failure_url = Some("https://shop.example/unpaid".into())).await;
    let mut payer = world.payer(&checkout).await;
    let way = match method {
        Method::Afrimoney => {
            payer.with_phone(method, QUIET).await;
            "Open the simulated phone"
        }
        _ => {
            payer.choose(method).await;
            "Open Wave"
        }
    };
    let simulator = payer.page.link(way).unwrap();
    world.cancel(checkout.id).await;
    payer.reach("Cancelled").await;
    for _ in 0..100 {
        if payer.page.says("Nothing was taken.") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
        payer.reload().await;
    }
    assert!(payer.page.says("Nothing was taken."), "the rail has withdrawn it");
    assert!(payer.page.body.contains("https://shop.example/unpaid"));
    payer.open(&simulator).await;
    assert_eq!(payer.page.heading(), "Cancelled", "nothing waits on the far side: back to the payment");
}

#[tokio::test]
async fn a_second_payment_is_told() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.approve_in_wave().await;
    // The network takes its time, and the payer begins anew.
    payer.reload().await;
    payer.press("/other", &[]).await;
    let unsettled = "A payment is still being checked. Wait for its answer before you pay again.";
    assert!(payer.page.says(unsettled), "{}", payer.page.body);
    payer.choose(Method::Afrimoney).await;
    assert!(payer.page.says(unsettled), "{}", payer.page.body);
    payer.press("/phone", &[("phone", "12")]).await;
    assert_eq!(payer.page.body.matches("id=\"errors\"").count(), 1, "{}", payer.page.body);
    payer.press("/phone", &[("phone", "+2207000000")]).await;
    world.clock.advance(Duration::from_secs(1));
    payer.reach("This is already paid").await;
    let stored = world.stored(checkout.id).await;
    let second = stored.is_paid_by().find(|attempt| attempt.duplicate).unwrap();
    assert!(payer.page.says("A second payment arrived as well.") && payer.page.says(&second.id.to_string()));
}

#[tokio::test]
async fn leaving_cancels_and_leads_to_the_failure_address() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.press("/leave", &[]).await;
    assert_eq!(payer.page.heading(), "Back to the shop");
    let address = payer.page.link("Back to Kairaba Books").unwrap();
    assert_eq!(address, format!("https://shop.example/sorry?session_id={}", checkout.id));
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Cancelled");

    let checkout = world.create(|new| new.failure_url = None).await;
    let mut payer = world.payer(&checkout).await;
    payer.press("/leave", &[]).await;
    assert_eq!(payer.page.heading(), "Cancelled");
    assert!(payer.page.says("You can close this page."));
}

#[tokio::test]
async fn nobody_leaves_a_payment_that_is_with_its_rail() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    let stale = [payer.prepare("/leave", &[]), payer.prepare("/method", &[("method", "wave")])];
    payer.with_phone(Method::Afrimoney, QUIET).await;
    for (form, told) in stale.into_iter().zip([TOO_OLD, "A payment is still being checked."]) {
        let answer = world.send(form).await;
        payer.open(answer.location()).await;
        assert_eq!(payer.page.heading(), "Approve it on your phone");
        assert!(payer.page.says(told), "{}", payer.page.body);
    }
    assert_eq!(world.stored(checkout.id).await.attempts.len(), 1);
}

#[tokio::test]
async fn a_new_code_comes_after_its_pause() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Qmoney, "+2207000000").await;
    payer.press("/code", &[("code", "000000")]).await;
    assert!(payer.page.says("You can send it again after 30 seconds."));
    payer.press("/resend", &[]).await;
    assert!(payer.page.says("You have 2 tries left."), "too early: nothing happens");
    world.clock.advance(Duration::from_secs(31));
    payer.reload().await;
    payer.press("/resend", &[]).await;
    assert_eq!(payer.page.heading(), "Enter the code");
    assert!(payer.page.says("You have 3 tries left."));
    assert_eq!(world.stored(checkout.id).await.attempts.len(), 2);
    payer.press("/code", &[("code", "123456")]).await;
    world.clock.advance(Duration::from_secs(1));
    payer.reach("Paid").await;
    assert_eq!(world.stored(checkout.id).await.is_paid_by().count(), 1);
}

#[tokio::test]
async fn a_checkout_sends_only_so_many_messages() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    for _ in 0..10 {
        payer.with_phone(Method::Qmoney, "+2207000000").await;
        payer.press("/other", &[]).await;
    }
    payer.with_phone(Method::Qmoney, "+2207000000").await;
    assert!(payer.page.says("That was too often in a short time."));
    assert_eq!(world.stored(checkout.id).await.attempts.len(), 10);
}

#[tokio::test]
async fn who_says_that_it_is_approved_has_the_rail_asked() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Afrimoney, QUIET).await;
    for _ in 0..12 {
        payer.press("/approved", &[]).await;
        payer.reload().await;
    }
    payer.go_out("Open the simulated phone").await;
    payer.decide("answer_lost").await;
    assert!(payer.page.says("Chosen: Pay, but lose the answer."));
    payer.back().await;
    assert_eq!(payer.page.heading(), "Approve it on your phone", "the rail's word was lost");
    payer.press("/approved", &[]).await;
    assert_eq!(payer.page.heading(), "Paid");
}

#[tokio::test]
async fn asking_often_does_not_put_off_the_worker() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Afrimoney, QUIET).await;
    for _ in 0..12 {
        payer.press("/approved", &[]).await;
        payer.reload().await;
    }
    payer.go_out("Open the simulated phone").await;
    payer.decide("answer_lost").await;
    world.clock.advance(Duration::from_secs(5));
    payer.reach("Paid").await;
}

#[tokio::test]
async fn who_comes_back_after_long_is_told_soon() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.choose(Method::Wave).await;
    for _ in 0..8 {
        // The worker asks and asks, with longer pauses.
        world.clock.advance(Duration::from_secs(600));
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    world.clock.stop();
    payer.open(&way_back(&world, &checkout).await).await;
    assert_eq!(payer.page.heading(), "We are asking Wave whether you paid");
    payer.go_out("Open the simulated Wave").await;
    payer.decide("answer_lost").await;
    world.clock.advance(Duration::from_secs(5));
    payer.reach("Paid").await;
}

/// Of the payment that is current.
async fn way_back(world: &World, checkout: &Checkout) -> String {
    let place = Place { payable: Payable::Checkout(checkout.id), session: None };
    let hosted = world.app.read(move |tx, context| hosted::look_up_hosted(tx, context, place)).await.unwrap();
    hosted.simulated.expect("a simulated payment").return_url
}

/// Who knows a page's address could hold the payment that its payer is about to make, or to leave.
#[tokio::test]
async fn only_who_was_sent_away_comes_back() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.choose(Method::Card).await;
    let before = way_back(&world, &checkout).await;
    payer.press("/other", &[]).await;
    payer.choose(Method::Wave).await;
    let own = way_back(&world, &checkout).await;
    let bare = format!("/checkout/{}/returned", checkout.id);
    let session = own.strip_prefix(&format!("{}{bare}/", crate::world::PAY_URL)).unwrap().split('.').next().unwrap();
    for way in [bare.clone(), format!("{bare}/"), format!("{bare}/{session}"), own[..own.len() - 1].to_owned(), before]
    {
        let Page { status, .. } = world.get(way.strip_prefix(crate::world::PAY_URL).unwrap_or(&way)).await;
        assert!([StatusCode::SEE_OTHER, StatusCode::NOT_FOUND].contains(&status), "{status} {way}");
        payer.reload().await;
        assert_eq!(payer.page.heading(), "Continue in Wave", "{way}");
    }
    payer.open(&own).await;
    assert_eq!(payer.page.heading(), "We are asking Wave whether you paid");
    // Paid, and its rail's own word is lost: whoever comes, by whatever address, has the rail asked.
    let other = world.create(|_| {}).await;
    let mut payer = world.payer(&other).await;
    payer.choose(Method::Wave).await;
    payer.go_out("Open Wave").await;
    payer.decide("answer_lost").await;
    payer.open(&format!("/checkout/{}/returned", other.id)).await;
    assert_eq!(payer.page.heading(), "Paid");
}

#[tokio::test]
async fn coming_back_means_something_only_where_somebody_was_sent_away() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Qmoney, "+2207000000").await;
    payer.open(&format!("/checkout/{}/returned", checkout.id)).await;
    assert_eq!(payer.page.heading(), "Enter the code");
    payer.press("/code", &[("code", "123456")]).await;
    payer.reach("Paid").await;
}

#[tokio::test]
async fn the_revision_changes_with_the_state_and_only_then() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let status = format!("/checkout/{}/status", checkout.id);
    let told = async || world.get(&status).await.body;
    let mut payer = world.payer(&checkout).await;
    let first = payer.page.revision().to_owned();
    assert_eq!(told().await, format!("{{\"revision\":\"{first}\",\"time_left\":null}}"));
    payer.choose(Method::Qmoney).await;
    assert_eq!(payer.page.revision(), first, "a choice that nobody stored is no state");
    payer.press("/phone", &[("phone", "1")]).await;
    assert_eq!(payer.page.revision(), first, "nor is an error");
    payer.press("/phone", &[("phone", "+2207000000")]).await;
    let second = payer.page.revision().to_owned();
    assert_ne!(second, first);
    world.clock.advance(Duration::from_secs(7));
    payer.open(&format!("/checkout/{}?lang=fr&reads=3", checkout.id)).await;
    assert_eq!(payer.page.revision(), second, "neither time nor language");
    payer.press("/code", &[("code", "000000")]).await;
    assert_ne!(payer.page.revision(), second);
    assert!(told().await.contains(payer.page.revision()));
}

#[tokio::test]
async fn a_stream_tells_the_change() {
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let request = axum::http::Request::get(format!("/checkout/{}/events", checkout.id));
    let response = world.router.clone().oneshot(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let mut next = async || {
        let frame = tokio::time::timeout(Duration::from_secs(5), body.frame()).await.expect("in time");
        String::from_utf8(frame.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap()
    };
    let mut payer = world.payer(&checkout).await;
    let first = payer.page.revision().to_owned();
    assert_eq!(next().await, format!("retry: 3000\ndata: {{\"revision\":\"{first}\",\"time_left\":null}}\n\n"));
    payer.with_phone(Method::Afrimoney, "+2207000000").await;
    payer.reach("Paid").await;
    let last = format!("\"{}\"", payer.page.revision());
    while !next().await.contains(&last) {}
}

#[tokio::test]
async fn the_language_is_kept_along_the_way() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.open(&format!("/checkout/{}?lang=fr", checkout.id)).await;
    assert!(payer.page.body.contains("<html lang=\"fr\""));
    payer.choose(Method::Wave).await;
    assert!(payer.page.body.contains("<html lang=\"fr\"") && payer.page.path.contains("lang=fr"));
    payer.go_by("/simulator/").await;
    assert!(payer.page.body.contains("<html lang=\"fr\""));
    payer.decide("approve").await;
    payer.go_by("/returned").await;
    assert!(payer.page.body.contains("<html lang=\"fr\""), "{}", payer.page.path);
}

#[tokio::test]
async fn another_language_is_the_same_page() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.choose(Method::Afrimoney).await;
    payer.open(&payer.page.link("Français").unwrap()).await;
    assert_eq!(payer.page.heading(), "Votre numéro Afrimoney");
    payer.press("/phone", &[("phone", "12")]).await;
    payer.open(&payer.page.link("English").unwrap()).await;
    assert!(payer.page.says("Enter a number with +220 and 7 digits") && payer.page.body.contains("value=\"12\""));
    // What leads on by itself does so once.
    payer.press("/other", &[]).await;
    payer.choose(Method::Wave).await;
    assert!(payer.page.body.contains("data-go="));
    payer.open(&payer.page.link("Français").unwrap()).await;
    assert!(payer.page.says("Wave") && !payer.page.body.contains("data-go="));
}
