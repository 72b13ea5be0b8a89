//! Many pay a link, and one of them changes the method: the page of the second payment tells what came of the first.

use std::time::Duration;

use dalasi::app::hosted::{self, Hosted, Place};
use dalasi::app::idempotency::Reply;
use dalasi::app::payment_links::LinkChange;
use dalasi::app::payments::{Initialize, Target};
use dalasi::app::sessions::Payment;
use dalasi::error::Failure;
use domain::payment::{Payable, PaymentSession, SessionStatus, Transaction, TransactionStatus};
use domain::payment_link::{PaymentLink, Price, Status};
use domain::rail::{FailureReason, Report};
use domain::simulator::SimulatedPayment;
use domain::{Currency, Id, Method, Money};

use super::changes::{change_link, link_of};
use crate::cli::place;
use crate::world::{Payer, QUIET, World};

const UNSETTLED: &str = "A payment is still being checked. Wait for its answer before you pay again.";
const NOTHING: &str = "Nothing was taken";

/// Whoever goes on where this page leads, and looks at that page again.
pub(super) async fn on_own_page<'w>(world: &'w World, payer: &Payer<'_>) -> Payer<'w> {
    let (path, _) = payer.page.path.split_once('?').unwrap_or((&payer.page.path, ""));
    world.payer_at(path.to_owned()).await
}

/// The payment on whose page the payer is.
pub(super) fn session(payer: &Payer<'_>) -> Id<PaymentSession> {
    let path = payer.page.path.split('?').next().unwrap();
    path.rsplit('/').next().unwrap().parse().expect("the page of one payment")
}

pub(super) async fn shown(world: &World, link: Id<PaymentLink>, session: Id<PaymentSession>) -> Hosted {
    let place = Place { payable: Payable::PaymentLink(link), session: Some(session) };
    world.app.read(move |tx, context| hosted::look_up_hosted(tx, context, place)).await.unwrap()
}

/// A link of 5.00, and somebody who comes to pay.
async fn at_link(world: &World) -> (Id<PaymentLink>, Payer<'_>) {
    let link = link_of(world, Price::Fixed { amount: Money::new(500, Currency::gmd()) }, false, Vec::new()).await;
    (link, world.payer_at(format!("/pay/{link}")).await)
}

/// Approved in Wave, given up for Afrimoney before the word of it, which nobody but the test brings.
async fn changes_method(world: &World) -> (Id<PaymentLink>, Id<Transaction>, Payer<'_>) {
    world.rest().await;
    let (link, mut payer) = at_link(world).await;
    payer.choose(Method::Wave).await;
    let mut payer = on_own_page(world, &payer).await;
    let wave = shown(world, link, session(&payer)).await.attempts[0].id;
    payer.press("/other", &[]).await;
    assert!(payer.page.says(UNSETTLED), "{}", payer.page.body);
    payer.choose(Method::Afrimoney).await;
    assert!(payer.page.says(UNSETTLED), "{}", payer.page.body);
    (link, wave, on_own_page(world, &payer).await)
}

async fn hears(world: &World, attempt: Id<Transaction>, report: Report) {
    world.app.report(world.scope, attempt, report, None).await.unwrap();
}

/// At its rail, and nobody brings word of it.
async fn money_moves(world: &World, transaction: Id<Transaction>) {
    let scope = world.scope;
    let moves = world.app.commit(move |tx, _| {
        let mut payment = tx.find::<SimulatedPayment>(scope, transaction)?.unwrap();
        let now = tx.now().plus(Duration::from_secs(60));
        assert_eq!(payment.act(now), 1);
        Ok(tx.save(&mut payment)?)
    });
    moves.await.unwrap();
}

fn paid() -> Report {
    Report::Paid { amount: Money::new(500, Currency::gmd()), rail_reference: "R-1".into() }
}

#[tokio::test]
async fn what_was_given_up_and_paid_all_the_same_is_told() {
    let world = World::new().await;
    let (link, wave, mut payer) = changes_method(&world).await;
    payer.with_phone(Method::Afrimoney, QUIET).await;
    let second = session(&payer);
    let failed = shown(&world, link, second).await.session().unwrap().transaction.unwrap();
    hears(&world, failed, Report::Failed { reason: FailureReason::Declined }).await;
    payer.reload().await;
    assert!(payer.page.says(UNSETTLED) && !payer.page.says(NOTHING), "{}", payer.page.body);
    let stale = payer.prepare("/method", &[("method", "wave")]);
    hears(&world, wave, paid()).await;
    payer.open(world.send(stale).await.location()).await;
    assert_eq!((payer.page.heading(), session(&payer)), ("Paid".to_owned(), second), "nothing more begins");
    assert!(payer.page.says(&wave.to_string()) && !payer.page.says(NOTHING), "{}", payer.page.body);
    let hosted = shown(&world, link, second).await;
    assert_eq!(hosted.attempts.iter().map(|attempt| attempt.id).collect::<Vec<_>>(), [wave, failed]);
    world.has_clean_books().await;
}

#[tokio::test]
async fn a_payment_that_is_open_still_is_not_asked_for_when_the_one_before_paid() {
    let world = World::new().await;
    let (link, wave, mut payer) = changes_method(&world).await;
    payer.choose(Method::Card).await;
    assert_eq!(payer.page.heading(), "Continue on the card page");
    hears(&world, wave, paid()).await;
    assert_eq!(shown(&world, link, session(&payer)).await.session().unwrap().status(), SessionStatus::Cancelled);
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Paid");
    assert!(payer.page.link("Open the card page").is_none(), "{}", payer.page.body);
    world.has_clean_books().await;
}

#[tokio::test]
async fn a_prompt_is_withdrawn_when_the_one_before_paid() {
    let world = World::new().await;
    let (link, wave, mut payer) = changes_method(&world).await;
    payer.with_phone(Method::Afrimoney, QUIET).await;
    let prompted = async || shown(&world, link, session(&payer)).await.session().unwrap().clone();
    world.work().await;
    assert_eq!(prompted().await.status(), SessionStatus::Processing);
    hears(&world, wave, paid()).await;
    world.work().await;
    let ended = prompted().await;
    assert_eq!((ended.status(), ended.failure_reason), (SessionStatus::Failed, Some(FailureReason::Cancelled)));
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Paid");
    world.has_clean_books().await;
}

#[tokio::test]
async fn both_payments_are_told_where_both_took_money() {
    for given_up_first in [true, false] {
        let world = World::new().await;
        let (link, wave, mut payer) = changes_method(&world).await;
        payer.with_phone(Method::Afrimoney, QUIET).await;
        let other = shown(&world, link, session(&payer)).await.session().unwrap().transaction.unwrap();
        let order = if given_up_first { [wave, other] } else { [other, wave] };
        hears(&world, order[0], paid()).await;
        payer.reload().await;
        assert_eq!(payer.page.heading(), "Paid");
        hears(&world, order[1], paid()).await;
        payer.reload().await;
        assert_eq!(payer.page.heading(), "This is already paid");
        for attempt in order {
            assert!(payer.page.says(&attempt.to_string()), "{}", payer.page.body);
        }
        world.has_clean_books().await;
    }
}

/// Then the page promises none of the other one: that has paid.
#[tokio::test]
async fn what_went_back_has_not_paid() {
    let world = World::new().await;
    world.clock.stop();
    let (link, mut payer) = at_link(&world).await;
    payer.choose(Method::Wave).await;
    let mut payer = on_own_page(&world, &payer).await;
    payer.go_out("Open Wave").await;
    payer.decide("approve").await;
    payer.reload().await;
    payer.press("/other", &[]).await;
    payer.with_phone(Method::Afrimoney, "+2207000000").await;
    let mut payer = on_own_page(&world, &payer).await;
    let second = session(&payer);
    // Before the first one is heard of, behind which nobody would approve it.
    money_moves(&world, shown(&world, link, second).await.session().unwrap().transaction.unwrap()).await;
    world.clock.advance(Duration::from_secs(60));
    payer.reach("This is already paid").await;
    let paid = shown(&world, link, second).await.paid().unwrap().id;
    world.refund(paid, None).await.unwrap();
    let went_back = async {
        loop {
            let hosted = shown(&world, link, second).await;
            if hosted.attempts.iter().any(|attempt| attempt.status() == TransactionStatus::Refunded) {
                return hosted;
            }
            world.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    let hosted = tokio::time::timeout(Duration::from_secs(10), went_back).await.expect("it goes back");
    assert_ne!(hosted.paid().unwrap().id, paid);
    assert_eq!(hosted.paid_more().map(|attempt| attempt.id).collect::<Vec<_>>(), [paid]);
    world.has_clean_books().await;
}

/// Whoever opens another session by the API is somebody else, as far as a page knows.
#[tokio::test]
async fn nobody_is_shown_what_another_program_began() {
    let world = World::new().await;
    let (link, wave, payer) = changes_method(&world).await;
    let second = session(&payer);
    let request = Initialize { method: Some(Method::Card), ..Initialize::of(Target::Session(second)) };
    let render = |result: Result<&Payment, &Failure>| Reply::new(200, result.unwrap().session.id.to_string());
    let begun = Initialize { method: Some(Method::Wave), ..request.clone() };
    world.app.initialize(world.scope, begun, None, None, render).await.unwrap();
    let other = world.app.initialize(world.scope, request, None, None, render).await.unwrap();
    let other = shown(&world, link, other.body.parse().unwrap()).await;
    assert_ne!(other.session().unwrap().id, second);
    assert!(other.attempts.len() == 1 && other.attempts[0].id != wave);
    world.has_clean_books().await;
}

/// A form of before was sent while the link took nothing: that is remembered of no later one. There is one payment in the place of
/// another all the same.
#[tokio::test]
async fn who_was_refused_tries_again_as_soon_as_the_link_is_open() {
    for place in place::Place::each("who was refused tries again as soon as the link is open").await {
        let world = World::on(place.settings()).await;
        let link = link_of(&world, Price::Fixed { amount: Money::new(500, Currency::gmd()) }, false, Vec::new()).await;
        let set = async |status| {
            change_link(&world, link, LinkChange { status: Some(status), ..LinkChange::default() }).await;
        };
        let mut payer = world.payer_at(format!("/pay/{link}")).await;
        payer.choose(Method::Wave).await;
        let mut payer = on_own_page(&world, &payer).await;
        let first = session(&payer);
        payer.press("/other", &[]).await;
        let form = payer.prepare("/method", &[("method", "card")]);
        set(Status::Inactive).await;
        assert_eq!(world.send(form).await.location(), format!("/pay/{link}"));
        set(Status::Active).await;
        let mut tabs = [on_own_page(&world, &payer).await, on_own_page(&world, &payer).await];
        for tab in &mut tabs {
            tab.choose(Method::Card).await;
            assert_eq!(tab.page.heading(), "Continue on the card page", "{}", tab.page.path);
        }
        let [one, other] = tabs.map(|tab| session(&tab));
        assert_eq!((one, shown(&world, link, one).await.session().unwrap().replaces), (other, Some(first)));
        assert_ne!(one, first);
        world.has_clean_books().await;
        world.close().await;
        place.end().await;
    }
}

/// Its answer was lost, and a wallet says no within a moment.
#[tokio::test]
async fn a_form_that_is_sent_again_asks_no_second_time_though_the_first_is_over() {
    let world = World::new().await;
    let (link, wave, mut payer) = changes_method(&world).await;
    payer.choose(Method::Afrimoney).await;
    let (form, again) = (payer.prepare("/phone", &[("phone", QUIET)]), payer.prepare("/phone", &[("phone", QUIET)]));
    let to = world.send(form).await.location().to_owned();
    payer.open(&to).await;
    let attempt = shown(&world, link, session(&payer)).await.session().unwrap().transaction.unwrap();
    hears(&world, attempt, Report::Failed { reason: FailureReason::Declined }).await;
    assert_eq!(world.send(again).await.location(), to);
    payer.open(&to).await;
    assert!(payer.page.says(UNSETTLED), "of the first method: {}", payer.page.body);
    let hosted = shown(&world, link, session(&payer)).await;
    assert_eq!(hosted.attempts.iter().map(|attempt| attempt.id).collect::<Vec<_>>(), [wave, attempt]);
    world.has_clean_books().await;
}

/// Another tab, or the way back in a browser's history.
#[tokio::test]
async fn the_page_of_a_replaced_payment_leads_to_the_one_that_goes_on() {
    let world = World::new().await;
    world.clock.stop();
    let (link, mut payer) = at_link(&world).await;
    payer.with_phone(Method::Qmoney, "+2207000000").await;
    let mut payer = on_own_page(&world, &payer).await;
    let first = session(&payer);
    let first_page = format!("/pay/{link}/{first}");
    let forms = ["/other", "/code"].map(|action| payer.prepare(action, &[("code", "123456")]));
    let mut tab = on_own_page(&world, &payer).await;
    world.clock.advance(Duration::from_secs(31));
    payer.press("/resend", &[]).await;
    let second = session(&payer);
    assert_ne!(second, first);
    assert_eq!(shown(&world, link, first).await.session().unwrap().replaced_by, Some(second));

    for form in forms {
        payer.open(world.send(form).await.location()).await;
        assert_eq!((payer.page.heading(), session(&payer)), ("Enter the code".to_owned(), second));
    }
    payer.open(&format!("{first_page}?lang=fr")).await;
    assert_eq!(session(&payer), second);
    assert!(payer.page.path.contains("lang=fr"), "{}", payer.page.path);

    // A form of the old page asks for another method: the payment that goes on is replaced, and no second one begins.
    tab.choose_again(Method::Card).await;
    let third = session(&tab);
    assert_eq!(tab.page.heading(), "Continue on the card page");
    assert_eq!(shown(&world, link, second).await.session().unwrap().replaced_by, Some(third));
    payer.open(&first_page).await;
    assert_eq!(session(&payer), third, "past all that was given up");
    let attempts = shown(&world, link, third).await.attempts;
    assert_eq!(attempts.len(), 3);
    assert_eq!(attempts.iter().filter(|attempt| attempt.status() == TransactionStatus::Cancelled).count(), 2);
    world.has_clean_books().await;
}

/// Nobody is led away from the word that their money came after all.
#[tokio::test]
async fn the_page_of_what_was_replaced_and_paid_all_the_same_says_so() {
    let world = World::new().await;
    let (link, wave, mut payer) = changes_method(&world).await;
    let second = session(&payer);
    let first = shown(&world, link, second).await.session().unwrap().replaces.unwrap();
    let first_page = format!("/pay/{link}/{first}");
    payer.open(&first_page).await;
    assert_eq!(session(&payer), second);
    hears(&world, wave, paid()).await;
    payer.open(&first_page).await;
    assert_eq!((payer.page.heading(), session(&payer)), ("Paid".to_owned(), first));
    world.has_clean_books().await;
}

/// Who was sent away before they gave it up may pay there all the same: their rail is asked, and until it has spoken they are told to wait.
#[tokio::test]
async fn who_comes_back_from_what_was_given_up_is_told_to_wait_for_it() {
    let world = World::new().await;
    world.rest().await;
    let (link, mut payer) = at_link(&world).await;
    payer.choose(Method::Wave).await;
    let mut payer = on_own_page(&world, &payer).await;
    let mut away = on_own_page(&world, &payer).await;
    let first = session(&payer);
    let simulated = shown(&world, link, first).await.simulated.unwrap();
    let (return_url, transaction) = (simulated.return_url, simulated.transaction);
    away.go_out("Open Wave").await;
    for (method, heading) in [(Method::Card, "Continue on the card page"), (Method::Qmoney, "Enter the code")] {
        payer.press("/other", &[]).await;
        match method {
            Method::Card => payer.choose(method).await,
            _ => payer.with_phone(method, "+2207000000").await,
        }
        let mut tab = on_own_page(&world, &payer).await;
        tab.open(&return_url).await;
        assert_eq!((tab.page.heading(), session(&tab) == session(&payer)), (heading.to_owned(), true));
        assert!(tab.page.says(UNSETTLED), "{}", tab.page.body);
    }
    away.decide("approve").await;
    money_moves(&world, transaction).await;
    away.back().await;
    assert_eq!((away.page.heading(), session(&away)), ("Paid".to_owned(), first));
    world.has_clean_books().await;
}

/// What it began is over and was replaced by something else.
#[tokio::test]
async fn a_form_that_is_sent_again_ends_nothing_that_came_after_it() {
    let world = World::new().await;
    world.rest().await;
    let (link, mut payer) = at_link(&world).await;
    payer.choose(Method::Card).await;
    let mut payer = on_own_page(&world, &payer).await;
    let declines = async |session| {
        let attempt = shown(&world, link, session).await.session().unwrap().transaction.unwrap();
        hears(&world, attempt, Report::Failed { reason: FailureReason::Declined }).await;
    };
    let first = session(&payer);
    declines(first).await;
    payer.reload().await;
    let form = || payer.prepare("/method", &[("method", "card")]);
    let (form, again) = (form(), form());
    payer.open(world.send(form).await.location()).await;
    let second = session(&payer);
    declines(second).await;
    payer.open(&format!("/pay/{link}/{second}")).await;
    payer.choose(Method::Wave).await;
    let third = session(&payer);
    payer.open(world.send(again).await.location()).await;
    assert_eq!((payer.page.heading(), session(&payer)), ("Continue in Wave".to_owned(), third));
    assert_eq!(shown(&world, link, third).await.attempts.len(), 3);
    world.has_clean_books().await;
}
