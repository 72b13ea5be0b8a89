//! Sessions that nobody uses, or whose attempt ends where nobody waits for it.

use dalasi::app::hosted;
use domain::job::Job;
use store::queries::jobs;

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

/// What is paid runs out at the same moment: by its session it is told of that, before the timer as behind it.
#[tokio::test]
async fn a_session_whose_time_is_over_is_closed_before_anybody_says_so() {
    let world = World::new().await;
    world.rest().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let payable = Payable::Checkout(checkout.id);
    let session = world.initialize(pay(payable, Method::Wave, QUIET)).await.unwrap();
    let by_name = || Initialize { target: Target::Session(session), ..pay(payable, Method::Wave, QUIET) };
    world.clock.advance(DAY);
    assert_eq!(world.initialize(by_name()).await, Err("payment_session_closed".into()));
    assert_eq!(world.initialize(pay(payable, Method::Wave, QUIET)).await, Err("checkout_expired".into()));
    world.work().await;
    assert_eq!(world.told(checkout.id).await, ["checkout.expired"], "the timer has run");
    assert_eq!(world.initialize(by_name()).await, Err("payment_session_closed".into()));
    world.books_are_right().await;
}

/// The rail's no comes when the time is over, and before the timer: readers were told `expired`, and are told nothing else.
#[tokio::test]
async fn what_ran_out_does_not_fail_any_more() {
    let world = World::new().await;
    world.rest().await;
    world.clock.stop();
    let (invoice, link) = (world.invoice().await, world.link(|_| {}).await);
    let checkout = world.create(|_| {}).await;
    for payable in [Payable::Checkout(checkout.id), invoice, link] {
        let session = world.initialize(pay(payable, Method::Wave, QUIET)).await.unwrap();
        world.clock.advance(DAY);
        let told = world.payment(session).await;
        assert_eq!(told.session.status(), SessionStatus::Cancelled);
        world.report(told.transaction.unwrap().id, Report::Failed { reason: FailureReason::Declined }).await;
        let kept = world.payment(session).await;
        let reason = kept.session.failure_reason.map(|reason| reason.as_str());
        assert_eq!((kept.session.status(), reason), (SessionStatus::Cancelled, Some("expired")));
        assert_eq!(world.stored_attempt(session).await.status(), TransactionStatus::Expired);
        assert_eq!(world.told(session).await, Vec::<&str>::new());
    }
    assert_eq!(world.told(checkout.id).await, ["checkout.expired"]);
    assert_eq!(world.told(invoice.object_id()).await, ["invoice.created", "invoice.finalized"]);
    world.books_are_right().await;
}

/// The money comes when the time is over, and before the timer: it had expired, as readers were told, and so it is told.
#[tokio::test]
async fn what_ran_out_was_expired_before_it_was_paid() {
    let world = World::new().await;
    world.rest().await;
    world.clock.stop();
    let (invoice, link) = (world.invoice().await, world.link(|_| {}).await);
    let checkout = world.create(|_| {}).await;
    for (payable, is_late) in [(Payable::Checkout(checkout.id), true), (invoice, false), (link, true)] {
        let session = world.initialize(pay(payable, Method::Wave, QUIET)).await.unwrap();
        world.clock.advance(DAY);
        world.confirm(&world.attempt(session).await).await;
        let paid = world.stored_attempt(session).await;
        let moves: Vec<_> = paid.transitions.iter().map(|one| one.status).collect();
        use TransactionStatus::{Completed, Expired, Pending};
        assert_eq!((moves, paid.late), (vec![Pending, Expired, Completed], is_late), "{payable:?}");
        assert_eq!(paid.failure_reason, None);
    }
    let told = world.bodies(checkout.id).await;
    let told: Vec<_> = told.iter().map(|event| (&event["type"], &event["data"]["transaction"]["status"])).collect();
    assert_eq!(told[0], (&"checkout.expired".into(), &"expired".into()));
    assert_eq!(told[1], (&"payment.succeeded".into(), &"completed".into()));
    world.books_are_right().await;
}

/// A payer who chooses again when the time is over, and before the timer.
#[tokio::test]
async fn what_ran_out_is_not_cancelled_any_more() {
    let world = World::new().await;
    world.rest().await;
    world.clock.stop();
    for payable in [world.invoice().await, world.link(|_| {}).await] {
        let session = world.initialize(pay(payable, Method::Wave, QUIET)).await.unwrap();
        world.clock.advance(DAY);
        let (scope, place) = (world.scope, hosted::Place { payable, session: Some(session) });
        world.app.commit(move |tx, _| hosted::choose_again(tx, scope, place, None)).await.unwrap();
        assert_eq!(world.stored_attempt(session).await.status(), TransactionStatus::Expired);
        let reason = world.payment(session).await.session.failure_reason;
        assert_eq!(reason, Some(FailureReason::Expired));
    }
    world.books_are_right().await;
}

/// No timer runs: what waits for its payer runs out with its session, what the provider has does not.
#[tokio::test]
async fn transactions_are_listed_as_they_are_shown() {
    let world = World::new().await;
    world.rest().await;
    world.clock.stop();
    world.list_is_true([0, 0, 0]).await;
    // Its place is held for an hour.
    let link = world.link(|terms| terms.max_usage_count = Some(5)).await;
    let invoice = world.invoice().await;
    let [checkout, asked, silent] =
        [world.create(|_| {}).await, world.create(|_| {}).await, world.create(|_| {}).await];
    let of_checkout = |checkout: &Checkout| Payable::Checkout(checkout.id);
    for (payable, method, phone) in [
        (link, Method::Wave, QUIET),
        (invoice, Method::Card, QUIET),
        (of_checkout(&checkout), Method::Qmoney, QUIET),
        (of_checkout(&silent), Method::Afrimoney, SILENT),
    ] {
        world.initialize(pay(payable, method, phone)).await.unwrap();
    }
    // A code is on its way, and nobody knows yet what becomes of it.
    let asked = world.initialize(pay(of_checkout(&asked), Method::Qmoney, QUIET)).await.unwrap();
    let (scope, id) = (world.scope, world.attempt(asked).await.id);
    let submitted = world.app.commit(move |tx, context| {
        settlement::settle(tx, context, scope, id, |_, session, transaction, now| {
            session.submit_code(Some(transaction), now)?;
            Ok(Moved::On)
        })
    });
    submitted.await.unwrap();
    world.list_is_true([4, 1, 0]).await;
    world.clock.advance(Duration::from_secs(3600) - Duration::from_micros(1));
    world.list_is_true([4, 1, 0]).await;
    // The link's session ends after an hour, to the microsecond; the others after a day.
    world.clock.advance(Duration::from_micros(1));
    world.list_is_true([3, 1, 1]).await;
    world.clock.advance(DAY);
    world.list_is_true([1, 1, 3]).await;
    // The code was wrong: it waits for its payer again, whose time is over.
    world.report(id, Report::AwaitingCode { attempts_left: 2 }).await;
    world.list_is_true([0, 1, 4]).await;
    world.books_are_right().await;
}

impl World {
    /// Of each status the list has what is shown so, page by page, and it counts them; pending, processing, expired.
    async fn list_is_true(&self, counts: [usize; 3]) {
        let scope = self.scope;
        let listed = |status, limit, after| {
            let (filter, page) =
                (TransactionFilter { status, ..TransactionFilter::default() }, PageRequest { offset: 0, limit, after });
            self.app.read(move |tx, _| {
                let found = transactions::list(tx, scope, &filter, &page)?;
                let told = found.items.into_iter().map(|stored| sessions::shown(tx, stored));
                Ok((told.collect::<Result<Vec<_>, _>>()?, found.total))
            })
        };
        let (all, _) = listed(None, 100, None).await.unwrap();
        for status in TransactionStatus::ALL {
            let shown: Vec<_> = all.iter().filter(|one| one.status() == status).map(|one| one.id).collect();
            let mut walked: Vec<Id<Transaction>> = Vec::new();
            loop {
                let after = walked.last().map(ToString::to_string);
                let (page, total) = listed(Some(status), 1, after).await.unwrap();
                assert_eq!(total, i64::try_from(shown.len()).unwrap(), "{status:?}");
                match page.first() {
                    Some(one) => walked.push(one.id),
                    None => break,
                }
            }
            assert_eq!(walked, shown, "{status:?}");
        }
        let of = |status| all.iter().filter(|one| one.status() == status).count();
        assert_eq!(
            [TransactionStatus::Pending, TransactionStatus::Processing, TransactionStatus::Expired].map(of),
            counts
        );
        let sums = self.app.dashboard(scope).await.unwrap();
        let [pending, processing, expired] = counts.map(|count| i64::try_from(count).unwrap());
        assert_eq!((sums.pending_count, sums.failed_count), (pending + processing, expired));
    }
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
    let id = world.lose_code(session).await;
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

impl World {
    /// A code was submitted, and what the rail made of it was lost on its way.
    async fn lose_code(&self, session: Id<PaymentSession>) -> Id<Transaction> {
        let (scope, id) = (self.scope, self.attempt(session).await.id);
        let lost = self.app.commit(move |tx, context| {
            settlement::settle(tx, context, scope, id, |_, session, transaction, now| {
                session.submit_code(Some(&mut *transaction), now)?;
                let sent_at = transaction.code_sent_at();
                Ok(session.code_submitted(transaction, sent_at, Called::Lost("reset".into()), now))
            })
        });
        lost.await.unwrap();
        assert_eq!(self.payment(session).await.session.status(), SessionStatus::Processing);
        id
    }
}

/// The provider has a code while other money comes, or the merchant gives up; then it wants another code. No payer is asked
/// for that: what they paid would come twice.
#[tokio::test]
async fn what_comes_back_to_a_payer_whose_money_has_no_use_is_closed() {
    let world = World::new().await;
    world.rest().await;
    world.allow_parts().await;
    let (paid, part) = (world.invoice().await, world.invoice().await);
    let (completed, cancelled) = (world.create(|_| {}).await, world.create(|_| {}).await);
    let (completed, cancelled) = (Payable::Checkout(completed.id), Payable::Checkout(cancelled.id));
    for payable in [paid, part, completed, cancelled] {
        let amount = (payable == part).then(|| dalasi(4_000));
        let wave = Initialize { amount, ..pay(payable, Method::Wave, QUIET) };
        let replaced = world.initialize(wave).await.unwrap();
        let session = world.initialize(pay(payable, Method::Qmoney, QUIET)).await.unwrap();
        let id = world.lose_code(session).await;
        match payable {
            Payable::Checkout(checkout) if payable == cancelled => world.cancel(checkout).await,
            _ => world.confirm(&world.attempt(replaced).await).await,
        }
        assert_eq!(world.payment(session).await.session.status(), SessionStatus::Processing, "{payable:?}");
        world.report(id, Report::AwaitingCode { attempts_left: 2 }).await;
        let closed = world.payment(session).await.session;
        assert_eq!((closed.status(), closed.next_action), (SessionStatus::Cancelled, None), "{payable:?}");
        world.report(id, Report::Failed { reason: FailureReason::WrongCode }).await;
        assert_eq!(world.stored_attempt(session).await.status(), TransactionStatus::Failed);
        let told = world.told(payable.object_id()).await;
        assert!(told.iter().all(|event| !event.ends_with("failed")), "{payable:?}: {told:?}");
    }
    let left = world.stored_invoice(part).await.remaining();
    let rest = world.initialize(pay(part, Method::Wave, APPROVES)).await.unwrap();
    world.clock.advance(Duration::from_secs(60));
    world.work().await;
    let paid = world.payment(rest).await;
    assert_eq!(paid.session.status(), SessionStatus::Succeeded, "what is left can be paid");
    assert_eq!(paid.session.amount, left);
    world.books_are_right().await;
}

/// An attempt of before is heard of when the checkout's time is over, and before its timer: the session of the payer's last
/// choice ends as it does by the timer, and its rail is told so.
#[tokio::test]
async fn an_older_attempts_word_ends_what_ran_out_meanwhile() {
    let world = World::new().await;
    world.rest().await;
    world.clock.stop();
    for is_paid in [false, true] {
        let checkout = world.create(|_| {}).await;
        let payable = Payable::Checkout(checkout.id);
        let older = world.initialize(pay(payable, Method::Wave, QUIET)).await.unwrap();
        let latest = world.initialize(pay(payable, Method::Card, QUIET)).await.unwrap();
        let (attempt, older) = (world.attempt(latest).await.id, world.attempt(older).await);
        world.clock.advance(DAY);
        match is_paid {
            true => world.confirm(&older).await,
            false => world.report(older.id, Report::Failed { reason: FailureReason::Declined }).await,
        }
        assert_eq!(world.stored_attempt(latest).await.status(), TransactionStatus::Expired);
        assert_eq!(world.told(checkout.id).await[0], "checkout.expired");
        let owed = world.app.read(move |tx, _| Ok(jobs::is_owed(tx, Job::WithdrawAttempt(attempt))?)).await;
        assert!(owed.unwrap(), "the rail is told");
        world.books_are_right().await;
    }
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
