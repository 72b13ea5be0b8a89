//! Invoices paid online: in parts, by one session at a time, late and twice.

use dalasi::app::receipts;
use domain::rail::RefundReport;

use super::*;

#[tokio::test]
async fn an_invoice_is_paid_in_parts_with_a_receipt_each() {
    let world = World::new().await;
    let invoice = world.invoice().await;
    let part = |amount| Initialize { amount: Some(dalasi(amount)), ..pay(invoice, Method::Afrimoney, APPROVES) };
    assert_eq!(world.initialize(part(4_000)).await, Err("partial_payment_not_allowed".into()));
    world.allow_parts().await;
    assert_eq!(world.initialize(part(10_001)).await, Err("invoice_overpayment".into()));
    let first = world.initialize(part(4_000)).await.unwrap();
    let paid = world.reach(first, SessionStatus::Succeeded).await;
    assert_eq!((paid.amount, paid.fee(), paid.late, paid.duplicate), (dalasi(4_000), dalasi(100), false, false));
    let after = world.stored_invoice(invoice).await;
    assert_eq!((after.stored_status(), after.remaining()), (Status::PartiallyPaid, dalasi(6_000)));
    // Without an amount, all that is left.
    let rest = world.initialize(pay(invoice, Method::Wave, APPROVES)).await.unwrap();
    assert_eq!(world.reach(rest, SessionStatus::Succeeded).await.amount, dalasi(6_000));
    let after = world.stored_invoice(invoice).await;
    assert_eq!((after.stored_status(), after.receipts().len()), (Status::Paid, 2));
    assert_eq!(
        world.told(invoice.object_id()).await,
        [
            "invoice.created",
            "invoice.finalized",
            "payment.succeeded",
            "invoice.partially_paid",
            "payment.succeeded",
            "invoice.paid"
        ]
    );
    assert_eq!(world.initialize(pay(invoice, Method::Wave, APPROVES)).await, Err("invoice_already_paid".into()));
    world.books_are_right().await;
}

#[tokio::test]
async fn an_invoice_has_one_open_session() {
    let world = World::new().await;
    world.allow_parts().await;
    let invoice = world.invoice().await;
    let wave = pay(invoice, Method::Wave, QUIET);
    let first = world.initialize(wave.clone()).await.unwrap();
    assert_eq!(world.initialize(wave.clone()).await, Ok(first), "the same again goes on");
    let part = world.initialize(Initialize { amount: Some(dalasi(5_000)), ..wave.clone() }).await.unwrap();
    assert_ne!(part, first, "another amount is another payment");
    assert_eq!(world.payment(first).await.session.status(), SessionStatus::Cancelled);
    // By its name it goes on for what it was for.
    let by_name = Initialize { target: Target::Session(part), ..wave.clone() };
    assert_eq!(world.initialize(by_name).await, Ok(part));
    let card = world.initialize(Initialize { method: Some(Method::Card), ..wave.clone() }).await.unwrap();
    assert_eq!(world.payment(part).await.session.status(), SessionStatus::Cancelled);
    assert_eq!(world.attempt(card).await.amount, dalasi(10_000));
    // The provider has it: nothing else begins, and the merchant waits as well.
    let push = world.initialize(pay(invoice, Method::Afrimoney, QUIET)).await.unwrap();
    assert_eq!(world.payment(push).await.session.status(), SessionStatus::Processing);
    assert_eq!(world.initialize(wave).await, Err("payment_in_progress".into()));
    assert_eq!(world.cancel_invoice(invoice).await, Err("payment_in_progress".into()));
    world.books_are_right().await;
}

#[tokio::test]
async fn money_for_an_invoice_that_comes_late_or_twice_is_kept() {
    let world = World::new().await;
    // Twice: the first attempt was replaced, and its rail confirms it all the same.
    let invoice = world.invoice().await;
    let first = world.initialize(pay(invoice, Method::Wave, QUIET)).await.unwrap();
    let second = world.initialize(pay(invoice, Method::Card, QUIET)).await.unwrap();
    world.confirm(&world.attempt(first).await).await;
    let rival = world.payment(second).await;
    assert_eq!(rival.session.status(), SessionStatus::Cancelled, "nobody pays what is paid");
    world.confirm(&rival.transaction.unwrap()).await;
    let again = world.attempt(second).await;
    assert_eq!((again.status(), again.duplicate, again.late), (TransactionStatus::Completed, true, false));
    let after = world.stored_invoice(invoice).await;
    assert_eq!((after.stored_status(), after.receipts().len()), (Status::Paid, 1), "second money has no receipt");
    // The ledger takes no fee of it, and nobody says that it did: not the record, not the event, not the sums.
    assert_eq!((again.fee(), again.net()), (dalasi(0), dalasi(10_000)));
    assert_eq!(after.transaction, Some(again.summary()));
    let fees: Vec<_> = world.bodies(invoice.object_id()).await.iter().map(fee_told).collect();
    let (first, second) = (Some("2.50 97.50".into()), Some("0.00 100.00".into()));
    assert_eq!(fees, [None, None, first, None, second]);
    let sums = world.app.dashboard(world.scope).await.unwrap();
    let told = [&sums.total_amount, &sums.total_fees, &sums.total_net].map(String::as_str);
    assert_eq!(told, ["200.00", "2.50", "197.50"]);
    assert_eq!(
        world.told(invoice.object_id()).await,
        ["invoice.created", "invoice.finalized", "payment.succeeded", "invoice.paid", "payment.succeeded"]
    );
    // Late: the invoice was cancelled in the meantime.
    let invoice = world.invoice().await;
    let session = world.initialize(pay(invoice, Method::Wave, QUIET)).await.unwrap();
    world.cancel_invoice(invoice).await.unwrap();
    assert_eq!(world.payment(session).await.session.status(), SessionStatus::Cancelled);
    world.confirm(&world.attempt(session).await).await;
    let late = world.attempt(session).await;
    assert_eq!((late.status(), late.duplicate, late.late), (TransactionStatus::Completed, false, true));
    let after = world.stored_invoice(invoice).await;
    assert_eq!((after.stored_status(), after.receipts().len()), (Status::Cancelled, 0));
    assert_eq!(
        world.told(invoice.object_id()).await,
        ["invoice.created", "invoice.finalized", "invoice.cancelled", "payment.succeeded"]
    );
    world.books_are_right().await;
}

/// Money that came twice is no payment of it; and what was asked for, or refused, has not gone back.
#[tokio::test]
async fn an_invoice_tells_what_went_back_of_its_payments_and_of_nothing_else() {
    let world = World::new().await;
    let invoice = world.invoice().await;
    let first = world.initialize(pay(invoice, Method::Wave, QUIET)).await.unwrap();
    let second = world.initialize(pay(invoice, Method::Card, QUIET)).await.unwrap();
    for session in [first, second] {
        world.confirm(&world.payment(session).await.transaction.unwrap()).await;
    }
    let (first, second) = (world.attempt(first).await.id, world.attempt(second).await);
    assert!(second.duplicate);
    world.rest().await;
    let back = async || {
        let invoice = world.stored_invoice(invoice).await;
        let refunded = world.app.read(move |tx, _| receipts::refunded(tx, &invoice)).await.unwrap();
        refunded.map(|(amount, _)| amount)
    };
    let completed = RefundReport::Completed { amount: dalasi(10_000), rail_reference: None };
    let failed = RefundReport::Failed { reason: FailureReason::Declined };
    for (transaction, report, expected) in
        [(second.id, &completed, None), (first, &failed, None), (first, &completed, Some(dalasi(10_000)))]
    {
        let refund = world.refund(transaction, None).await.unwrap().id;
        assert_eq!(back().await, None, "it was only asked for");
        world.app.report_refund(world.scope, refund, report.clone()).await.unwrap();
        assert_eq!(back().await, expected, "{report:?}");
    }
    world.books_are_right().await;
}

#[tokio::test]
async fn an_invoice_hears_of_an_attempt_that_failed() {
    let world = World::new().await;
    let invoice = world.invoice().await;
    let session = world.initialize(pay(invoice, Method::Afrimoney, POOR)).await.unwrap();
    world.reach(session, SessionStatus::Failed).await;
    assert_eq!(
        world.told(invoice.object_id()).await,
        ["invoice.created", "invoice.finalized", "payment.failed", "invoice.payment_failed"]
    );
    let again = world.initialize(pay(invoice, Method::Afrimoney, APPROVES)).await.unwrap();
    assert_ne!(again, session);
    world.reach(again, SessionStatus::Succeeded).await;
    world.books_are_right().await;
}

/// Fee and net of the payment that an event tells of.
fn fee_told(body: &serde_json::Value) -> Option<String> {
    let told = body["data"]["transaction"].as_object()?;
    Some(format!("{} {}", told["fee"].as_str()?, told["net_amount"].as_str()?))
}
