//! What is paid online beside checkouts, with a clock that moves: invoices in parts, payment links by many, sessions that
//! nobody uses. Each story ends with books that are right.

use std::time::Duration;

use dalasi::app::invoices::{self, NewInvoice};
use dalasi::app::organizations::{self, SettingsChange};
use dalasi::app::payment_links::{self, NewPaymentLink};
use dalasi::app::payments::{Initialize, Target};
use dalasi::app::products::NewItem;
use dalasi::app::sessions::{self, Payment};
use dalasi::app::{checkouts, look_up, settlement, verify};
use dalasi::error::Failure;
use domain::checkout::Checkout;
use domain::invoice::{Invoice, Status};
use domain::payment::{Payable, Payer, PaymentSession, SessionStatus, Transaction, TransactionStatus};
use domain::payment_link::{self, PaymentLink, Price, Terms};
use domain::rail::{Called, FailureReason, Report};
use domain::{Currency, Id, Metadata, Method, Money, Msisdn, Refusal, TaxRate};
use store::queries::PageRequest;
use store::queries::events::{self, EventsFilter};

use crate::world::World;

const APPROVES: &str = "7000000";
const POOR: &str = "7000001";
const SILENT: &str = "7000003";
const QUIET: &str = "7654321";
const DAY: Duration = Duration::from_secs(24 * 3600);

fn dalasi(minor: i64) -> Money {
    Money::new(minor, Currency::gmd())
}

fn pay(payable: Payable, method: Method, phone: &str) -> Initialize {
    Initialize {
        target: Target::Object(payable),
        method: Some(method),
        amount: None,
        payer: Payer { phone: Some(Msisdn::parse(phone).unwrap()), ..Payer::default() },
        metadata: None,
        answers: Metadata::default(),
        success_url: None,
        failure_url: None,
        has_code: false,
    }
}

impl World {
    /// Of 100.00, payable at once.
    async fn invoice(&self) -> Payable {
        let item = NewItem {
            product_id: None,
            description: Some("Atlas".into()),
            quantity: 4,
            unit_price: Some(dalasi(2_500)),
        };
        let new = NewInvoice {
            customer_id: None,
            customer_email: Some("awa@example.gm".into()),
            customer_name: Some("Awa Ceesay".into()),
            customer_address: None,
            customer_phone: None,
            currency: Currency::gmd(),
            tax_rate: TaxRate::default(),
            due_date: self.app.read(|tx, _| Ok(tx.now())).await.unwrap().plus(DAY * 30),
            notes: String::new(),
            items: vec![item],
            is_draft: false,
            metadata: Metadata::default(),
        };
        let scope = self.scope;
        let created = self.app.commit(move |tx, context| invoices::create(tx, context, scope, &new)).await;
        Payable::Invoice(created.unwrap().invoice.id)
    }

    async fn link(&self, change: impl FnOnce(&mut Terms)) -> Payable {
        let mut terms = Terms {
            title: "Concert".into(),
            description: None,
            expiration_date: None,
            max_usage_count: None,
            success_url: None,
            failure_url: None,
            collect_customer_info: false,
            custom_fields: None,
            metadata: None,
        };
        change(&mut terms);
        let new = NewPaymentLink { price: Price::Fixed { amount: dalasi(10_000) }, terms };
        let scope = self.scope;
        let created = self.app.commit(move |tx, context| payment_links::create(tx, context, scope, &new)).await;
        Payable::PaymentLink(created.unwrap().link.id)
    }

    async fn allow_parts(&self) {
        let change = SettingsChange {
            enabled_methods: None,
            name: None,
            logo_url: None,
            accent_color: None,
            address: None,
            phone: None,
            email: None,
            tax_id: None,
            locale: None,
            allow_partial_payments: Some(true),
            settlement_delay_s: None,
            allow_negative_balance: None,
            fees: Vec::new(),
        };
        let scope = self.scope;
        let changed =
            self.app.commit(move |tx, context| organizations::change_settings(tx, context, scope, &change)).await;
        changed.unwrap();
    }

    /// The session, or the code of the refusal.
    async fn initialize(&self, request: Initialize) -> Result<Id<PaymentSession>, String> {
        let render = |result: Result<&Payment, &Failure>| match result {
            Ok(payment) => dalasi::app::idempotency::Reply::new(200, payment.session.id.to_string()),
            Err(failure) => dalasi::app::idempotency::Reply::new(400, failure.code().into_owned()),
        };
        match self.app.initialize(self.scope, request, None, None, render).await {
            Ok(reply) if reply.status == 200 => Ok(reply.body.parse().unwrap()),
            Ok(reply) => Err(reply.body),
            Err(failure) => Err(failure.code().into_owned()),
        }
    }

    async fn payment(&self, session: Id<PaymentSession>) -> Payment {
        let scope = self.scope;
        self.app.read(move |tx, _| sessions::look_up_payment(tx, scope, session)).await.unwrap()
    }

    async fn reach(&self, session: Id<PaymentSession>, status: SessionStatus) -> Transaction {
        for _ in 0..400 {
            let payment = self.payment(session).await;
            if payment.session.status() == status {
                return payment.transaction.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{session} is still {:?}", self.payment(session).await.session.status());
    }

    async fn attempt(&self, session: Id<PaymentSession>) -> Transaction {
        self.payment(session).await.transaction.unwrap()
    }

    /// The rail's verified word, whatever the attempt has come to.
    async fn report(&self, transaction: Id<Transaction>, report: Report) {
        self.app.report(self.scope, transaction, report, None).await.unwrap();
    }

    async fn confirm(&self, transaction: &Transaction) {
        let report = Report::Paid { amount: transaction.amount, rail_reference: "R-9".into() };
        self.report(transaction.id, report).await;
    }

    async fn stored_invoice(&self, payable: Payable) -> Invoice {
        let (scope, Payable::Invoice(id)) = (self.scope, payable) else { panic!("{payable:?}") };
        self.app.read(move |tx, _| look_up::<Invoice>(tx, scope, id)).await.unwrap()
    }

    async fn stored_link(&self, payable: Payable) -> PaymentLink {
        let (scope, Payable::PaymentLink(id)) = (self.scope, payable) else { panic!("{payable:?}") };
        self.app.read(move |tx, _| look_up::<PaymentLink>(tx, scope, id)).await.unwrap()
    }

    async fn cancel_invoice(&self, payable: Payable) -> Result<(), String> {
        let (scope, Payable::Invoice(id)) = (self.scope, payable) else { panic!("{payable:?}") };
        let cancelled = self.app.commit(move |tx, context| invoices::cancel(tx, context, scope, id)).await;
        cancelled.map(drop).map_err(|failure| failure.code().into_owned())
    }

    /// The types of an object's events, in order.
    async fn told(&self, object: impl ToString) -> Vec<&'static str> {
        let (scope, object) = (self.scope, object.to_string());
        let page = PageRequest { offset: 0, limit: 100, after: None };
        let found = self.app.read(move |tx, _| Ok(events::list(tx, scope, &EventsFilter::default(), &page)?)).await;
        let mut told: Vec<_> = found.unwrap().items.into_iter().filter(|event| event.object_id == object).collect();
        told.sort_by_key(|event| event.sequence);
        told.iter().map(|event| event.kind.as_str()).collect()
    }

    async fn books_are_right(&self) {
        let report = self.app.read(|tx, _| verify::everything(tx, &verify::Progress::default())).await.unwrap();
        assert!(report.is_clean(), "{:#?}", report.faults);
    }
}

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
    assert_eq!((paid.amount, paid.fee, paid.late, paid.duplicate), (dalasi(4_000), dalasi(100), false, false));
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
        let stored = stored_attempt(&world, session).await;
        assert_eq!(stored.status(), TransactionStatus::Expired, "the timer, or whoever came next, has stored it");
        assert_eq!(world.told(session).await, Vec::<&str>::new(), "an expiry is no failure");
    }
    world.books_are_right().await;
}

/// As it is kept, once the timer ran.
async fn stored_attempt(world: &World, session: Id<PaymentSession>) -> Transaction {
    for _ in 0..400 {
        let scope = world.scope;
        let stored = world.app.read(move |tx, _| {
            let session = look_up::<PaymentSession>(tx, scope, session)?;
            look_up::<Transaction>(tx, scope, session.transaction.unwrap())
        });
        let stored = stored.await.unwrap();
        if stored.status() != TransactionStatus::Pending {
            return stored;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("nobody closed {session}");
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

#[tokio::test]
async fn a_use_that_is_held_comes_back_after_an_hour() {
    let world = World::new().await;
    world.clock.stop();
    let link = world.link(|terms| terms.max_usage_count = Some(1)).await;
    let absent = world.initialize(pay(link, Method::Wave, QUIET)).await.unwrap();
    assert_eq!(world.initialize(pay(link, Method::Wave, QUIET)).await, Err("payment_in_progress".into()));
    world.clock.advance(Duration::from_secs(3600));
    stored_attempt(&world, absent).await;
    let next = world.initialize(pay(link, Method::Afrimoney, APPROVES)).await.unwrap();
    world.clock.advance(Duration::from_secs(5));
    world.reach(next, SessionStatus::Succeeded).await;
    assert_eq!(world.stored_link(link).await.stored_status(), payment_link::Status::Inactive);
    assert_eq!(world.initialize(pay(link, Method::Wave, QUIET)).await, Err("payment_link_inactive".into()));
    // The one who was away paid in the last moment, and the rail says so now: still money, and counted.
    world.confirm(&world.attempt(absent).await).await;
    let late = world.attempt(absent).await;
    assert_eq!((late.status(), late.late), (TransactionStatus::Completed, true));
    assert_eq!(world.stored_link(link).await.usage_count(), 2);
    assert_eq!(world.told(absent).await, ["payment.succeeded"]);
    assert_eq!(world.told(link.object_id()).await, ["payment_link.created", "payment_link.deactivated"]);
    world.books_are_right().await;
}

#[tokio::test]
async fn a_link_that_is_gone_still_counts_what_was_begun() {
    let world = World::new().await;
    let link = world.link(|_| {}).await;
    let session = world.initialize(pay(link, Method::Wave, QUIET)).await.unwrap();
    let Payable::PaymentLink(id) = link else { unreachable!() };
    let scope = world.scope;
    world.app.commit(move |tx, context| payment_links::delete(tx, context, scope, id)).await.unwrap();
    let refused = world.app.read(move |tx, _| payment_links::find(tx, scope, id)).await.unwrap_err();
    assert_eq!(refused, Failure::Refused(Refusal::not_found::<PaymentLink>()));
    world.confirm(&world.attempt(session).await).await;
    let gone = world.stored_link(link).await;
    assert_eq!((gone.usage_count(), gone.stored_status()), (1, payment_link::Status::Deleted));
    assert_eq!(world.told(session).await, ["payment.succeeded"]);
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
        settlement::settle(tx, context, scope, id, |session, transaction, now| {
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
