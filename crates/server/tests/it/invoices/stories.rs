//! What becomes of an invoice, from its making to its end.

use std::time::Duration;

use dalasi::app::invoices::{self, InvoiceChange, NewInvoice, NewPayment};
use dalasi::app::receipts as app_receipts;
use dalasi::error::Failure;
use dalasi::fault::FaultCode;
use domain::invoice::{Invoice, Status};
use domain::job::Job;
use domain::payment::Source;
use domain::{Id, Money, OfflineMethod, Refusal, TaxRate};
use store::queries::{invoice_payments, jobs, receipts, transactions};

use super::{DAY, assert_clean, create, eventually, gmd, on_both, rice, stored, told};
use crate::world::World;

on_both!(
    the_timer_tells_what_readers_were_told,
    a_moved_due_date_moves_the_timer,
    all_that_is_wrong_is_said_at_once,
    a_change_computes_the_totals_anew,
    one_customer_for_one_address,
    what_changed_hands_elsewhere_is_in_the_books,
    a_late_payment_is_told_after_the_moment,
);

async fn the_timer_tells_what_readers_were_told(world: &World) {
    world.clock.stop();
    let invoice = create(world, rice(world)).await.unwrap();
    let other = create(world, NewInvoice { is_draft: true, ..rice(world) }).await.unwrap();
    world.clock.advance(DAY * 10 - Duration::from_micros(1));
    assert_eq!(stored(world, invoice.id).await.status(world.now()), Status::Pending);
    world.clock.advance(Duration::from_micros(1));
    assert_eq!(stored(world, invoice.id).await.status(world.now()), Status::Overdue);
    let late = eventually(world, invoice.id, |invoice| invoice.stored_status() == Status::Overdue).await;
    assert_eq!((late.revision(), late.updated_at), (2, world.now()));
    assert_eq!(told(world, invoice.id).await, ["invoice.created", "invoice.finalized", "invoice.overdue"]);
    assert_eq!(stored(world, other.id).await.status(world.now()), Status::Draft);
    assert_clean(world).await;
}

async fn a_moved_due_date_moves_the_timer(world: &World) {
    world.clock.stop();
    let (scope, start) = (world.scope, world.now());
    let invoice = create(world, rice(world)).await.unwrap();
    let id = invoice.id;
    let due = |days: u32| {
        let change = InvoiceChange { due_date: Some(start.plus(DAY * days)), ..InvoiceChange::default() };
        world.app.commit(move |tx, context| invoices::update(tx, context, scope, id, &change))
    };
    due(20).await.unwrap();
    world.clock.advance(DAY * 15);
    // A worker that was woken too early owes it again, and tells nothing.
    world.app.commit(move |tx, context| invoices::overdue(tx, context, scope, id)).await.unwrap();
    assert_eq!(stored(world, id).await.stored_status(), Status::Pending);
    assert_clean(world).await;
    // Moved to where it was missed: it is overdue in the same moment, and both are told.
    let missed = due(12).await.unwrap().invoice;
    assert_eq!((missed.stored_status(), missed.revision()), (Status::Overdue, 4));
    let all = ["invoice.created", "invoice.finalized", "invoice.updated", "invoice.updated", "invoice.overdue"];
    assert_eq!(told(world, id).await, all);
    let job = Job::OverdueInvoice(id).object_id();
    let owed = world.app.read(move |tx, _| {
        Ok(store::queries::verify::owed(tx, scope, &["overdue_invoice"], std::slice::from_ref(&job))?)
    });
    assert!(owed.await.unwrap().is_empty(), "nobody looks again");
    assert_clean(world).await;
}

async fn all_that_is_wrong_is_said_at_once(world: &World) {
    let mut new = rice(world);
    new.customer_id = Some(world.customer_of_nobody());
    new.items[0].product_id = Some(world.product_of_nobody());
    let Err(Failure::Invalid(faults)) = create(world, new).await else { panic!("it is invalid") };
    let said: Vec<_> = faults.iter().map(|fault| (fault.field.as_str(), fault.code)).collect();
    let expected = [("customer_id", FaultCode::NotFound), ("items[0].product_id", FaultCode::NotFound)];
    assert_eq!(said, expected);
    let mut new = rice(world);
    new.items[0].quantity = 1;
    new.items[0].unit_price = Some(Money::maximum(gmd(1).currency));
    let Err(Failure::Invalid(faults)) = create(world, new.clone()).await else { panic!("it is invalid") };
    assert_eq!((faults[0].field.as_str(), faults[0].code), ("tax_rate", FaultCode::AmountTooLarge));
    new.tax_rate = TaxRate::ZERO;
    let dearest = create(world, new).await.unwrap();
    assert_eq!(dearest.total(), Money::maximum(gmd(1).currency));
    assert!(dearest.number.ends_with("-0001"), "what was refused took no number: {}", dearest.number);
    assert_clean(world).await;
}

async fn a_change_computes_the_totals_anew(world: &World) {
    let scope = world.scope;
    let invoice = create(world, rice(world)).await.unwrap();
    let id = invoice.id;
    let mut items = rice(world).items;
    items[0].quantity = 8;
    let tax_rate = TaxRate::parse("7.5").ok();
    let change = InvoiceChange { items: Some(items), tax_rate, ..InvoiceChange::default() };
    for revision in [2, 2] {
        let change = change.clone();
        let changed = world.app.commit(move |tx, context| invoices::update(tx, context, scope, id, &change)).await;
        let changed = changed.unwrap().invoice;
        let bill = changed.bill();
        assert_eq!((bill.amount(), bill.tax(), bill.total()), (gmd(20_000), gmd(1_500), gmd(21_500)));
        assert_eq!(changed.revision(), revision, "the same once more is no change");
    }
    assert_eq!(told(world, id).await, ["invoice.created", "invoice.finalized", "invoice.updated"]);
    assert_clean(world).await;
}

async fn one_customer_for_one_address(world: &World) {
    let first = create(world, rice(world)).await.unwrap();
    let mut new = rice(world);
    new.customer_email = Some("AWA@example.gm".into());
    new.customer_name = Some("A. Ceesay".into());
    let second = create(world, new).await.unwrap();
    assert_eq!(first.customer_id, second.customer_id);
    assert_eq!(second.customer.name, "A. Ceesay", "what is given wins on the invoice");
    let named =
        NewInvoice { customer_id: Some(first.customer_id), customer_email: None, customer_name: None, ..rice(world) };
    let third = create(world, named).await.unwrap();
    assert_eq!((third.customer.name.as_str(), third.customer.email.as_str()), ("Awa Ceesay", "awa@example.gm"));
    assert_clean(world).await;
}

fn cash(minor: i64) -> NewPayment {
    NewPayment {
        amount: gmd(minor),
        method: OfflineMethod::Cash,
        transaction_id: Some("till 7".into()),
        notes: Some("At the counter".into()),
    }
}

async fn record(world: &World, id: Id<Invoice>, payment: NewPayment) -> Result<Invoice, Failure> {
    let scope = world.scope;
    let recorded = world
        .app
        .commit(move |tx, context| invoices::record_payment(tx, context, scope, id, &payment, "key_of_the_till"));
    recorded.await.map(|billed| billed.invoice)
}

async fn what_changed_hands_elsewhere_is_in_the_books(world: &World) {
    let scope = world.scope;
    let invoice = create(world, rice(world)).await.unwrap();
    let id = invoice.id;
    let part = record(world, id, cash(1_500)).await.unwrap();
    assert_eq!((part.stored_status(), part.remaining(), part.revision()), (Status::PartiallyPaid, gmd(10_000), 2));
    let too_much = record(world, id, cash(10_001)).await;
    assert_eq!(too_much, Err(Refusal::InvoiceOverpayment { remaining: gmd(10_000) }.into()));
    let transfer = NewPayment { method: OfflineMethod::BankTransfer, ..cash(10_000) };
    let paid = record(world, id, transfer).await.unwrap();
    assert_eq!((paid.stored_status(), paid.paid(), paid.remaining()), (Status::Paid, gmd(11_500), gmd(0)));
    assert_eq!(record(world, id, cash(1)).await, Err(Refusal::InvoiceAlreadyPaid.into()));
    let all = ["invoice.created", "invoice.finalized", "invoice.partially_paid", "invoice.paid"];
    assert_eq!(told(world, id).await, all);

    let (payments, receipts, transactions) = world
        .app
        .read(move |tx, _| {
            let payments = invoice_payments::of_invoice(tx, scope, id)?;
            let receipts = receipts::of_invoice(tx, scope, id)?;
            Ok((payments, receipts, transactions::of_object(tx, scope, &id.to_string())?))
        })
        .await
        .unwrap();
    let year = &world.now().to_text()[..4];
    assert_eq!(
        receipts.iter().map(|receipt| receipt.number.clone()).collect::<Vec<_>>(),
        [format!("RCT-{year}-001"), format!("RCT-{year}-002")]
    );
    assert_ne!(receipts[0].validation_code, receipts[1].validation_code);
    for ((payment, receipt), transaction) in payments.iter().zip(&receipts).zip(&transactions) {
        assert_eq!((payment.receipt, payment.transaction), (receipt.id, transaction.id));
        assert_eq!((payment.amount, receipt.amount), (transaction.amount, transaction.amount));
        assert_eq!(payment.recorded_by.as_deref(), Some("key_of_the_till"));
        assert_eq!(payment.notes.as_deref(), Some("At the counter"));
        assert_eq!((receipt.customer.name.as_str(), receipt.merchant.name.as_str()), ("Awa Ceesay", "Kairaba Books"));
        let Source::Manual(recording) = &transaction.source else { panic!("no rail had it") };
        assert_eq!((recording.reference.as_deref(), transaction.fee()), (Some("till 7"), gmd(0)));
        let found = receipt.clone();
        let known = world.app.read(move |tx, _| app_receipts::validate(tx, &found.validation_code)).await.unwrap();
        assert_eq!(known.unwrap(), (receipt.clone(), gmd(0)));
    }
    let report = assert_clean(world).await;
    let counted = ["invoices", "invoice_payments", "receipts", "counters", "ledger_postings"];
    assert_eq!(counted.map(|table| report.checked[table]), [1, 2, 2, 2, 4]);
    assert_eq!(report.ledger, [("test GMD".to_owned(), 0)].into());
}

/// The moment has passed and no timer ran: it is overdue first, and paid then.
async fn a_late_payment_is_told_after_the_moment(world: &World) {
    world.clock.stop();
    let invoice = create(world, rice(world)).await.unwrap();
    let (id, scope) = (invoice.id, world.scope);
    // As if the worker had been away.
    world.app.commit(move |tx, _| Ok(jobs::cancel(tx, Job::OverdueInvoice(id))?)).await.unwrap();
    world.clock.advance(DAY * 11);
    let paid = record(world, id, cash(11_500)).await.unwrap();
    assert_eq!((paid.stored_status(), paid.revision()), (Status::Paid, 3));
    assert_eq!(told(world, id).await, ["invoice.created", "invoice.finalized", "invoice.overdue", "invoice.paid"]);
    // The timer that comes after all finds nothing to tell.
    world.app.commit(move |tx, context| invoices::overdue(tx, context, scope, id)).await.unwrap();
    assert_eq!(told(world, id).await.len(), 4);
    assert_clean(world).await;
}
