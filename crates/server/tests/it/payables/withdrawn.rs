//! What a rail has of what is over by now: it is asked to drop that, so that nobody approves it in vain, and its word decides.

use super::*;

impl World {
    /// A prompt that is out on somebody's phone.
    async fn prompted(&self, payable: Payable, amount: Option<Money>) -> Id<PaymentSession> {
        let prompt = Initialize { amount, ..pay(payable, Method::Afrimoney, QUIET) };
        let session = self.initialize(prompt).await.unwrap();
        assert_eq!(self.payment(session).await.session.status(), SessionStatus::Processing);
        session
    }

    /// Its rail has dropped it, or it waits there still.
    async fn is_withdrawn(&self, session: Id<PaymentSession>, is_withdrawn: bool) {
        self.work().await;
        let Payment { session, transaction } = self.payment(session).await;
        let found = (session.status(), transaction.unwrap().failure_reason);
        let wanted = match is_withdrawn {
            true => (SessionStatus::Failed, Some(FailureReason::Cancelled)),
            false => (SessionStatus::Processing, None),
        };
        assert_eq!(found, wanted);
    }
}

#[tokio::test]
async fn what_its_merchant_cancels_is_withdrawn() {
    let world = World::new().await;
    world.rest().await;
    let checkout = world.create(|_| {}).await;
    let session = world.prompted(Payable::Checkout(checkout.id), None).await;
    world.is_withdrawn(session, false).await;
    world.cancel(checkout.id).await;
    assert_eq!(world.payment(session).await.session.status(), SessionStatus::Processing, "its outcome decides");
    world.is_withdrawn(session, true).await;
    assert_eq!(world.told(checkout.id).await, ["checkout.cancelled"], "nobody waits for it, so that none hears of it");
    world.books_are_right().await;
}

#[tokio::test]
async fn what_other_money_leaves_no_use_for_is_withdrawn() {
    let world = World::new().await;
    world.rest().await;
    world.allow_parts().await;
    for (payable, first, second, is_withdrawn) in [
        (Payable::Checkout(world.create(|_| {}).await.id), None, None, true),
        (world.invoice().await, None, None, true),
        (world.invoice().await, Some(6_000), Some(6_000), true),
        // What is left takes it.
        (world.invoice().await, Some(4_000), Some(6_000), false),
    ] {
        let wave = Initialize { amount: first.map(dalasi), ..pay(payable, Method::Wave, QUIET) };
        let given_up = world.initialize(wave).await.unwrap();
        let session = world.prompted(payable, second.map(dalasi)).await;
        world.confirm(&world.attempt(given_up).await).await;
        world.is_withdrawn(session, is_withdrawn).await;
    }
    world.books_are_right().await;
}

enum Comes {
    Timer,
    WordOfAnother,
    Word,
}

/// Nothing but the end of its hold ends a checkout whose payer has the prompt, whoever comes first then.
#[tokio::test]
async fn what_a_checkout_was_held_for_is_withdrawn_when_that_ends() {
    let world = World::new().await;
    world.rest().await;
    world.clock.stop();
    for comes in [Comes::Timer, Comes::WordOfAnother, Comes::Word] {
        let checkout = world.create(|new| new.expires_in_s = 3_600).await;
        let payable = Payable::Checkout(checkout.id);
        let given_up = world.initialize(pay(payable, Method::Wave, QUIET)).await.unwrap();
        let session = world.prompted(payable, None).await;
        let held = world.attempt(session).await;
        let other_amount = |minor| Report::Paid { amount: dalasi(minor), rail_reference: "R-1".into() };
        if let Comes::Word = comes {
            world.report(held.id, other_amount(1)).await;
        }
        world.clock.advance(Duration::from_secs(3_601));
        world.is_withdrawn(session, false).await;
        world.clock.advance(DAY);
        match comes {
            Comes::Timer => {}
            Comes::WordOfAnother => world.confirm(&world.stored_attempt(given_up).await).await,
            Comes::Word => world.report(held.id, other_amount(2)).await,
        }
        world.is_withdrawn(session, true).await;
        assert_eq!(world.told(checkout.id).await[0], "checkout.expired");
    }
    world.books_are_right().await;
}

/// The time of their payment ran out while they had the prompt: whoever began late has a while to answer it.
#[tokio::test]
async fn who_was_asked_late_is_waited_for() {
    const BEFORE_THE_END: Duration = Duration::from_secs(60);
    const WAITED_FOR: Duration = Duration::from_secs(15 * 60);
    const MOMENT: Duration = Duration::from_secs(1);
    let world = World::new().await;
    world.rest().await;
    world.clock.stop();
    let limited = world.link(|terms| terms.max_usage_count = Some(1)).await;
    for (payable, lifetime) in [(world.invoice().await, DAY), (limited, Duration::from_secs(3_600))] {
        let opened = Initialize { method: None, ..pay(payable, Method::Afrimoney, QUIET) };
        let opened = world.initialize(opened).await.unwrap();
        world.clock.advance(lifetime - BEFORE_THE_END);
        let prompt = Initialize { target: Target::Session(opened), ..pay(payable, Method::Afrimoney, QUIET) };
        assert_eq!(world.initialize(prompt).await, Ok(opened));
        for wait in [BEFORE_THE_END, WAITED_FOR - BEFORE_THE_END - MOMENT] {
            world.clock.advance(wait);
            world.is_withdrawn(opened, false).await;
        }
        world.clock.advance(MOMENT);
        world.is_withdrawn(opened, true).await;
    }
    world.books_are_right().await;
}

/// Payers who came back from a rail's page without having paid there would hold it for ever.
#[tokio::test]
async fn what_nobody_paid_in_its_time_is_withdrawn() {
    let world = World::new().await;
    world.rest().await;
    world.clock.stop();
    for payable in [world.invoice().await, world.link(|_| {}).await] {
        let prompted = world.link(|_| {}).await;
        let (prompted, returned) =
            (world.prompted(prompted, None).await, world.initialize(pay(payable, Method::Wave, QUIET)).await.unwrap());
        world.app.payer_returned(world.scope, world.attempt(returned).await.id).await.unwrap();
        world.clock.advance(DAY - Duration::from_secs(1));
        for session in [prompted, returned] {
            world.is_withdrawn(session, false).await;
        }
        world.clock.advance(Duration::from_secs(1));
        for session in [prompted, returned] {
            world.is_withdrawn(session, true).await;
        }
        let again = world.initialize(pay(payable, Method::Wave, APPROVES)).await.unwrap();
        world.clock.advance(Duration::from_secs(60));
        world.work().await;
        assert_eq!(world.payment(again).await.session.status(), SessionStatus::Succeeded);
    }
    world.books_are_right().await;
}
