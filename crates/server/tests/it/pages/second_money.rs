//! Who has paid, or may have, is told neither that nothing was taken nor that they did not pay: they would pay again.

use std::time::Duration;

use dalasi::app::idempotency::Reply;
use dalasi::app::invoices;
use dalasi::app::organizations::SettingsChange;
use dalasi::app::payments::{Initialize, Target};
use dalasi::app::sessions::Payment;
use dalasi::error::Failure;
use domain::invoice::Invoice;
use domain::payment::{Payable, Payer as PaidBy, PaymentSession};
use domain::rail::{Called, FailureReason, Report};
use domain::{Id, Method, Money};

use super::changes::{TOO_OLD, bill_anew, billed, link_with_a_way_back, looked_up, record, set, take_parts};
use super::replaced::on_own_page;
use crate::world::{Page, Payer, World, post};

const APART: &str = "is kept apart";
const CHECKED: &str = "A payment is still being checked.";
const NOTHING: &str = "Nothing was taken";

/// An invoice of 92.00 for which 115.00 came: it was of so much when the payer approved.
async fn overpaid(world: &World) -> (Id<Invoice>, Payer<'_>) {
    world.clock.stop();
    let (id, mut payer) = billed(world).await;
    payer.approve_in_wave().await;
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

/// Beside one payment of so much.
fn names(page: &Page, amount: &str) -> bool {
    page.body.contains(&format!("<dt>Amount</dt><dd>{amount}\u{a0}GMD</dd>"))
}

/// Whatever was begun or paid since.
#[tokio::test]
async fn what_is_kept_apart_is_told_as_long_as_more_is_awaited() {
    let world = World::new().await;
    let (id, mut payer) = overpaid(&world).await;
    take_parts(&world, true).await;
    let apart = looked_up(&world, id).await.is_paid_by().next().unwrap().id.to_string();
    let tells = |payer: &Payer<'_>| {
        let earlier = payer.page.says("An earlier payment was more than what was left.") && payer.page.says(APART);
        earlier && payer.page.says(&apart) && names(&payer.page, "115.00")
    };
    payer.choose(Method::Wave).await;
    payer.press("/other", &[]).await;
    assert!(payer.page.has_form("/method") && tells(&payer), "{}", payer.page.body);
    payer.press("/method", &[("amount", "50"), ("method", "afrimoney")]).await;
    payer.press("/phone", &[("phone", "+2207000000")]).await;
    world.clock.advance(Duration::from_secs(1));
    until(&mut payer, "We received 50.00 GMD").await;
    assert!(tells(&payer), "{}", payer.page.body);
    // Once, where it is the last that came.
    let (_, payer) = overpaid(&world).await;
    assert_eq!(payer.page.body.matches(APART).count(), 1, "{}", payer.page.body);
    world.has_clean_books().await;
}

/// All of it, and not what the invoice was about.
#[tokio::test]
async fn every_part_that_came_after_the_end_is_told() {
    let world = World::new().await;
    world.rest().await;
    take_parts(&world, true).await;
    let (id, mut payer) = billed(&world).await;
    for (part, method) in [("40", "wave"), ("30", "card")] {
        payer.press("/method", &[("amount", part), ("method", method)]).await;
        payer.press("/other", &[]).await;
    }
    let scope = world.scope;
    world.app.commit(move |tx, context| invoices::cancel(tx, context, scope, id)).await.unwrap();
    let begun: Vec<_> =
        looked_up(&world, id).await.attempts.iter().map(|attempt| (attempt.id, attempt.amount)).collect();
    assert_eq!(begun.len(), 2);
    let (mut sum, mut told) = (0, Vec::new());
    for (attempt, amount) in begun {
        let report = Report::Paid { amount, rail_reference: "R-1".into() };
        world.app.report(world.scope, attempt, report, None).await.unwrap();
        sum += amount.minor;
        told.push((attempt.to_string(), amount.to_string()));
        payer.reload().await;
        assert_eq!(payer.page.heading(), "Your money arrived late");
        let title = format!("Your money arrived late · {}.00 GMD", sum / 100);
        assert!(payer.page.says(&title), "{}", payer.page.body);
        for (attempt, amount) in &told {
            assert!(payer.page.says(attempt) && names(&payer.page, amount), "{amount}: {}", payer.page.body);
        }
    }
    world.has_clean_books().await;
}

#[tokio::test]
async fn whose_part_was_recorded_by_hand_is_no_one_who_did_not_pay() {
    let world = World::new().await;
    let (id, mut payer) = billed(&world).await;
    let failure_url = Some("https://shop.example/sorry".to_owned());
    let request = Initialize { failure_url, ..Initialize::of(Target::Object(Payable::Invoice(id))) };
    let render = |_: Result<&Payment, &Failure>| Reply::new(200, String::new());
    world.app.initialize(world.scope, request, None, None, render).await.unwrap();
    payer.reload().await;
    let leave = payer.prepare("/leave", &[]);
    record(&world, id, 5_000).await;
    payer.reload().await;
    assert!(payer.page.has_form("/method") && !payer.page.has_form("/leave"), "{}", payer.page.body);
    payer.open(world.send(leave).await.location()).await;
    assert!(payer.page.has_form("/method") && !payer.page.says("You did not pay"), "{}", payer.page.body);
    world.has_clean_books().await;
}

/// Approved in Wave, and given up before the word of it.
async fn can_not_leave(world: &World, payer: &mut Payer<'_>) {
    payer.go_out("Open Wave").await;
    payer.decide("approve").await;
    payer.reload().await;
    payer.press("/other", &[]).await;
    assert!(payer.page.says(CHECKED) && !payer.page.has_form("/leave"), "{}", payer.page.body);
    // A page of before has the button.
    let (address, fields) = payer.page.form("/method").unwrap();
    let answer = world.send(post(&address.replace("/method", "/leave"), &fields)).await;
    payer.open(answer.location()).await;
    assert!(payer.page.says(CHECKED) && payer.page.has_form("/method"), "{}", payer.page.body);
    assert!(!payer.page.says("You did not pay"), "{}", payer.page.body);
    world.clock.advance(Duration::from_secs(1));
    payer.reach("Paid").await;
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
    can_not_leave(&world, &mut payer).await;
}

#[tokio::test]
async fn a_start_that_did_not_work_hides_no_payment_that_may() {
    let world = World::new().await;
    world.clock.stop();
    let (_, mut payer) = billed(&world).await;
    payer.approve_in_wave().await;
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

/// The same of a checkout, which leaving would cancel: whoever waits for its money would hear that there is none.
#[tokio::test]
async fn a_checkout_that_may_be_paid_is_left_by_nobody() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    // Of a page that showed no payment, from before another tab began one.
    let stale = payer.prepare("/leave", &[]);
    payer.choose(Method::Wave).await;
    payer.open(world.send(stale).await.location()).await;
    assert_eq!(payer.page.heading(), "Continue in Wave");
    assert!(payer.page.says(TOO_OLD), "{}", payer.page.body);
    can_not_leave(&world, &mut payer).await;
    world.has_clean_books().await;
}

/// However often they tried since: a thousand attempts are read of one checkout.
#[tokio::test]
async fn a_payment_that_may_have_been_made_is_not_forgotten_behind_very_many() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.approve_in_wave().await;
    payer.reload().await;
    payer.press("/other", &[]).await;
    world.clock.advance(Duration::from_millis(10));
    let (scope, payable, amount) = (world.scope, Payable::Checkout(checkout.id), checkout.order.amount);
    let tried = world.app.commit(move |tx, _| {
        let now = tx.now();
        for _ in 0..1_000 {
            let (session, attempt, until) =
                (tx.entropy().id(now), tx.entropy().id(now), now.plus(Duration::from_secs(60)));
            let (method, by) = (Method::Card, PaidBy::default());
            let mut session = PaymentSession::open(session, scope, payable, amount, Some(method), by, until, now);
            let fee = Money::new(0, amount.currency);
            let mut attempt = session.begin(attempt, method, "simulator".into(), fee, now);
            session.started(&mut attempt, Called::Refused(FailureReason::Declined), now);
            tx.insert(&mut session)?;
            tx.insert(&mut attempt)?;
        }
        Ok(())
    });
    tried.await.unwrap();
    payer.reload().await;
    assert!(payer.page.says(CHECKED) && !payer.page.has_form("/leave"), "{}", payer.page.body);
    world.clock.advance(Duration::from_secs(1));
    payer.reach("Paid").await;
}
