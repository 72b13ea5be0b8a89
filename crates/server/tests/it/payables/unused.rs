//! Sessions that nobody uses, or whose attempt ends where nobody waits for it.

use super::*;

#[tokio::test]
async fn a_session_that_nobody_uses_ends_after_a_day() {
    let world = World::new().await;
    world.clock.stop();
    let (invoice, link) = (world.invoice().await, world.link(|_| {}).await);
    for payable in [invoice, link] {
        let session = world.initialize(pay(payable, Method::Wave, QUIET)).await.unwrap();
        world.clock.advance(DAY - Duration::from_secs(1));
        assert_eq!(world.payment(session).await.session.status(), SessionStatus::Pending);
        world.clock.advance(Duration::from_secs(1));
        // A read decides, whether or not the timer ran.
        let read = world.payment(session).await;
        let reason = read.session.failure_reason.map(|reason| reason.as_str());
        assert_eq!((read.session.status(), reason), (SessionStatus::Cancelled, Some("expired")));
        let by_name = Initialize { target: Target::Session(session), ..pay(payable, Method::Wave, QUIET) };
        assert_eq!(world.initialize(by_name).await, Err("payment_session_closed".into()));
        let next = world.initialize(pay(payable, Method::Wave, QUIET)).await.unwrap();
        assert_ne!(next, session);
        let stored = world.stored_attempt(session).await;
        assert_eq!(stored.status(), TransactionStatus::Expired, "the timer, or whoever came next, has stored it");
        assert_eq!(world.told(session).await, Vec::<&str>::new(), "an expiry is no failure");
    }
    world.books_are_right().await;
}

#[tokio::test]
async fn what_the_provider_has_does_not_expire() {
    let world = World::new().await;
    world.clock.stop();
    let invoice = world.invoice().await;
    let session = world.initialize(pay(invoice, Method::Afrimoney, SILENT)).await.unwrap();
    world.clock.advance(DAY * 2);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let held = world.payment(session).await;
    assert_eq!(held.session.status(), SessionStatus::Processing);
    assert_eq!(world.initialize(pay(invoice, Method::Wave, QUIET)).await, Err("payment_in_progress".into()));
    world.confirm(&held.transaction.unwrap()).await;
    let paid = world.attempt(session).await;
    assert_eq!((paid.status(), paid.late), (TransactionStatus::Completed, false), "it began in time");
    world.books_are_right().await;
}

/// The checkout is cancelled while another code is awaited, and then the rail ends the attempt for good: the session keeps
/// its word, and the books are right all the same.
#[tokio::test]
async fn an_attempt_that_fails_behind_a_closed_session_is_no_fault() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let session = world.initialize(pay(Payable::Checkout(checkout.id), Method::Qmoney, QUIET)).await.unwrap();
    let id = world.attempt(session).await.id;
    // What the rail made of the code was lost on its way.
    let scope = world.scope;
    let lost = world.app.commit(move |tx, context| {
        settlement::settle(tx, context, scope, id, |_, session, transaction, now| {
            session.submit_code(Some(transaction), now)?;
            Ok(session.code_submitted(transaction, Called::Lost("reset".into()), now))
        })
    });
    lost.await.unwrap();
    world.report(id, Report::AwaitingCode { attempts_left: 2 }).await;
    let awaited = world.payment(session).await;
    assert_eq!(awaited.session.status(), SessionStatus::Pending);
    assert_eq!(awaited.transaction.unwrap().status(), TransactionStatus::Processing);
    world.cancel(checkout.id).await;
    world.report(id, Report::Failed { reason: FailureReason::WrongCode }).await;
    let ended = world.payment(session).await;
    assert_eq!(ended.session.status(), SessionStatus::Cancelled);
    assert_eq!(ended.transaction.unwrap().status(), TransactionStatus::Failed);
    assert_eq!(world.told(checkout.id).await, ["checkout.cancelled"]);
    world.books_are_right().await;
}

/// The checkout is cancelled while the provider has the attempt, which then fails: nobody waits for it.
#[tokio::test]
async fn an_attempt_that_fails_after_a_cancel_is_no_fault() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let session = world.initialize(pay(Payable::Checkout(checkout.id), Method::Afrimoney, QUIET)).await.unwrap();
    let scope = world.scope;
    let id: Id<Checkout> = checkout.id;
    world.app.commit(move |tx, context| checkouts::cancel(tx, context, scope, id)).await.unwrap();
    let attempt = world.attempt(session).await;
    world.report(attempt.id, Report::Failed { reason: FailureReason::Declined }).await;
    assert_eq!(world.payment(session).await.session.status(), SessionStatus::Failed);
    assert_eq!(world.told(checkout.id).await, ["checkout.cancelled"]);
    world.books_are_right().await;
}
