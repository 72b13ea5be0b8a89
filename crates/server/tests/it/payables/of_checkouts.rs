//! Checkouts whose payers change their mind, go away, or take longer than there is time.

use domain::job::{Job, Lane};
use domain::rail::RefundReport;
use store::queries::jobs;

use super::*;

/// The payer opens Wave, takes a card instead, and pays by Wave all the same: that session is the one to look at.
#[tokio::test]
async fn the_session_that_paid_is_the_one_that_is_named() {
    let world = World::new().await;
    let url = "https://shop.example/thanks";
    let checkout = world.create(|new| new.success_url = Some(url.into())).await;
    let payable = Payable::Checkout(checkout.id);
    let first = world.initialize(pay(payable, Method::Wave, QUIET)).await.unwrap();
    let second = world.initialize(pay(payable, Method::Card, QUIET)).await.unwrap();
    assert_eq!(world.checkout(checkout.id).await.shown_session(), Some(second));
    world.confirm(&world.attempt(first).await).await;
    assert_eq!(world.payment(second).await.session.status(), SessionStatus::Cancelled);
    assert_eq!(world.checkout(checkout.id).await.shown_session(), Some(first));
    let told = world.bodies(checkout.id).await;
    let completed = told.iter().find(|event| event["type"] == "checkout.completed").unwrap();
    assert_eq!(completed["data"]["payment_session_id"], first.to_string());
    assert_eq!(
        world.stored(checkout.id).await.success_address(),
        Some(format!("{url}?session_id={}&payment_session_id={first}", checkout.id))
    );
    world.books_are_right().await;
}

/// Contract §2.2 rule 1: who continues a session may tell more of it, also once its attempt began.
#[tokio::test]
async fn what_is_told_once_an_attempt_began_is_kept_with_it() {
    let world = World::new().await;
    // Nobody else moves what is looked at.
    world.rest().await;
    world.clock.stop();
    let metadata = Metadata::from_canonical(r#"{"desk":"3"}"#.into());
    let (thanks, sorry) = ("https://shop.example/thanks", "https://shop.example/sorry");
    let payer = Payer { email: Some("awa@example.gm".into()), name: Some("Awa".into()), ..Payer::default() };
    let (checkout, link) = (world.create(|_| {}).await, world.link(|_| {}).await);
    for payable in [Payable::Checkout(checkout.id), world.invoice().await, link] {
        let session = world.initialize(pay(payable, Method::Wave, QUIET)).await.unwrap();
        let before = world.payment(session).await;
        let more = Initialize {
            payer: payer.clone(),
            metadata: Some(metadata.clone()),
            success_url: Some(thanks.into()),
            failure_url: Some(sorry.into()),
            ..Initialize::of(Target::Session(session))
        };
        assert_eq!(world.initialize(more.clone()).await, Ok(session), "{payable:?}");
        let told = world.payment(session).await;
        let known = told.session.told();
        let (phone, addresses) = (before.session.payer.phone, (known.success_url, known.failure_url));
        assert_eq!(addresses, (Some(thanks.into()), Some(sorry.into())), "{payable:?}");
        let transaction = told.transaction.unwrap();
        for (who, what) in [(&known.payer, &known.metadata), (&transaction.payer, &transaction.metadata)] {
            let sent = (&payer.email, &payer.name, &phone, &metadata);
            assert_eq!((&who.email, &who.name, &who.phone, what), sent, "{payable:?}");
        }
        let versions = (before.session.version, before.transaction.unwrap().version);
        assert_eq!((told.session.version, transaction.version), (versions.0 + 1, versions.1 + 1), "{payable:?}");
        assert_eq!(world.initialize(more).await, Ok(session), "the same again is nothing new");
        let after = world.payment(session).await;
        assert_eq!((after.session, after.transaction), (told.session, Some(transaction)), "{payable:?}");
    }
    world.books_are_right().await;
}

/// The network has it when the time runs out, and says no: what failed was still waited for, and then it is over.
#[tokio::test]
async fn a_failure_after_the_time_ran_out_is_told_of_a_pending_checkout() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|new| new.expires_in_s = 3_600).await;
    let session = world.initialize(pay(Payable::Checkout(checkout.id), Method::Afrimoney, SILENT)).await.unwrap();
    world.clock.advance(Duration::from_secs(3_601));
    world.report(world.attempt(session).await.id, Report::Failed { reason: FailureReason::Declined }).await;
    let told = world.bodies(checkout.id).await;
    let told: Vec<_> = told.iter().map(|event| (event["type"].as_str(), event["data"]["status"].as_str())).collect();
    assert_eq!(
        told,
        [(Some("payment.failed"), Some("pending")), (Some("checkout.expired"), Some("expired"))],
        "in this order"
    );
    world.books_are_right().await;
}

/// Whoever asked is gone before the commit came back: the network is called all the same, and at once.
#[tokio::test]
async fn a_payer_who_goes_away_does_not_take_the_call_along() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let request = world.initialize(pay(Payable::Checkout(checkout.id), Method::Afrimoney, QUIET));
    assert!(tokio::time::timeout(Duration::ZERO, request).await.is_err(), "it began, and nobody waits for it");
    let called = async {
        loop {
            if let Some(session) = world.checkout(checkout.id).await.payment_session
                && world.payment(session).await.session.status() == SessionStatus::Processing
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // A worker would take it over after thirty seconds.
    tokio::time::timeout(Duration::from_secs(25), called).await.expect("the network was called");
    world.books_are_right().await;
}

/// A payer who looks at the page of return again and again, and a network that repeats itself: what is known already puts off
/// nobody's question.
#[tokio::test]
async fn what_is_heard_again_puts_no_question_off() {
    let world = World::new().await;
    world.rest().await;
    world.clock.stop();
    let checkout = world.create(|_| {}).await;
    let session = world.initialize(pay(Payable::Checkout(checkout.id), Method::Wave, SILENT)).await.unwrap();
    let id = world.attempt(session).await.id;
    world.app.payer_returned(world.scope, id).await.unwrap();
    let asked = world.next_question(id).await;
    for _ in 0..15 {
        world.app.payer_returned(world.scope, id).await.unwrap();
        world.report(id, Report::Processing).await;
        world.report(id, Report::NotFound).await;
    }
    assert_eq!(world.next_question(id).await, asked);
    world.books_are_right().await;
}

/// And so it is with what goes back.
#[tokio::test]
async fn what_is_heard_again_of_a_refund_puts_no_question_off() {
    const QUESTION: &str = "select due_at from jobs where kind = 'ask_refund' and object_id = $1";
    let world = World::new().await;
    let paid = world.paid(10_000).await;
    world.rest().await;
    world.clock.stop();
    let (scope, id) = (world.scope, world.refund(paid, Some(4_000)).await.unwrap().id);
    let hear = async |report: RefundReport| world.app.report_refund(scope, id, report).await.unwrap();
    let next_question = async || {
        let due = world.app.read(move |tx, _| {
            let question = tx.query_opt(QUESTION, &[id.to_string().into()])?;
            Ok(question.map(|row| row.get::<i64>("due_at")).transpose()?)
        });
        due.await.unwrap()
    };
    let processing = RefundReport::Processing { rail_reference: None };
    hear(processing.clone()).await;
    let asked = next_question().await;
    assert!(asked.is_some());
    for _ in 0..15 {
        hear(processing.clone()).await;
        hear(RefundReport::NotFound).await;
    }
    assert_eq!(next_question().await, asked);
    // What is new is taken, and nobody asks any more.
    hear(RefundReport::Failed { reason: FailureReason::Declined }).await;
    assert_eq!(next_question().await, None);
    world.books_are_right().await;
}

/// The network reports another amount, and then that nothing was paid: what it said before is still to be looked at, until
/// somebody has.
#[tokio::test]
async fn a_parked_payment_stays_listed_until_a_person_has_decided() {
    let world = World::new().await;
    world.rest().await;
    let (paid, checkout) = (world.create(|_| {}).await, world.create(|_| {}).await);
    let mut ids = Vec::new();
    for checkout in [&paid, &checkout] {
        let session = world.initialize(pay(Payable::Checkout(checkout.id), Method::Wave, QUIET)).await.unwrap();
        let attempt = world.attempt(session).await;
        world.report(attempt.id, Report::Paid { amount: dalasi(1), rail_reference: "R-1".into() }).await;
        ids.push(attempt.id);
    }
    assert_eq!(world.undecided().await, ids);
    for id in &ids {
        world.report(*id, Report::Failed { reason: FailureReason::Declined }).await;
    }
    assert_eq!(world.undecided().await, ids, "it says no, and has said yes");
    world.books_are_right().await;
    // The network takes the first one's no back, and a person looks at the second.
    let amount = paid.order.amount;
    world.report(ids[0], Report::Paid { amount, rail_reference: "R-2".into() }).await;
    let (scope, second) = (world.scope, ids[1]);
    assert_eq!(world.undecided().await, [second]);
    // A process of the version before leaves it aside, and that is no fault.
    const LEFT_ASIDE: &str = "update transactions set attention = 0 where id = $1";
    world.app.commit(move |tx, _| Ok(tx.execute(LEFT_ASIDE, &[second.to_string().into()])?)).await.unwrap();
    world.books_are_right().await;
    let decided = world.app.commit(move |tx, context| {
        settlement::settle(tx, context, scope, second, |_, session, transaction, now| {
            Ok(session.resolved(transaction, false, now)?)
        })
    });
    decided.await.unwrap();
    assert_eq!(world.undecided().await, []);
    world.books_are_right().await;
}

impl World {
    /// What the operator is shown of which nobody knows what became of it.
    async fn undecided(&self) -> Vec<Id<Transaction>> {
        let scope = self.scope;
        let found = self.app.read(move |tx, _| {
            let long_ago = tx.now().minus(DAY);
            Ok(transactions::undecided(tx, scope, long_ago, "", 10)?)
        });
        found.await.unwrap().iter().map(|transaction| transaction.id).collect()
    }

    /// When the worker asks what became of an attempt, which is the next that it does.
    async fn next_question(&self, id: Id<Transaction>) -> domain::Timestamp {
        let next = self.app.read(move |tx, _| {
            assert!(jobs::is_owed(tx, Job::AskRail(id))?);
            Ok(jobs::next_due(tx, Lane::Test)?)
        });
        next.await.unwrap().unwrap()
    }

    async fn checkout(&self, id: Id<Checkout>) -> Checkout {
        let scope = self.scope;
        self.app.read(move |tx, _| look_up::<Checkout>(tx, scope, id)).await.unwrap()
    }
}
