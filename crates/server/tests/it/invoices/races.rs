//! Many at once: one wins, each number is used once, and it is told once.

use dalasi::app::idempotency::Reply;
use dalasi::app::invoices::{self, Billed, InvoiceChange, NewInvoice, NewPayment};
use dalasi::app::{Context, look_up, products::NewItem};
use dalasi::error::Failure;
use domain::customer::Customer;
use domain::invoice::{Invoice, Status};
use domain::{Id, Msisdn, OfflineMethod, Refusal, Scope};
use futures_util::future::join_all;
use store::Tx;
use store::queries::idempotency::IdempotencyKey;

use super::{assert_clean, create, gmd, on_both, rice, stored, told};
use crate::world::World;

on_both!(
    of_64_finalizes_one_wins,
    of_64_changes_of_one_revision_one_wins,
    numbers_of_64_creates_have_no_gap,
    of_16_new_customers_one_has_the_phone,
    of_64_payments_only_what_is_left_is_taken
);

const AT_ONCE: usize = 64;

type Command = fn(&mut Tx<'_>, &Context, Scope, Id<Invoice>) -> Result<Billed, Failure>;

/// How often it went through; the others were all refused with this code.
async fn at_once(world: &World, id: Id<Invoice>, command: Command, refused: &str) -> usize {
    let scope = world.scope;
    let runs = (0..AT_ONCE).map(|_| world.app.commit(move |tx, context| command(tx, context, scope, id)));
    let answers = join_all(runs).await;
    let refusals = answers.iter().filter_map(|answer| answer.as_ref().err());
    refusals.for_each(|failure| assert_eq!((failure.status(), failure.code().as_ref()), (400, refused)));
    answers.iter().filter(|answer| answer.is_ok()).count()
}

async fn of_64_finalizes_one_wins(world: &World) {
    for _ in 0..3 {
        let draft = create(world, NewInvoice { is_draft: true, ..rice(world) }).await.unwrap();
        assert_eq!(at_once(world, draft.id, invoices::finalize, "invoice_not_draft").await, 1);
        let invoice = stored(world, draft.id).await;
        assert_eq!((invoice.stored_status(), invoice.revision()), (Status::Pending, 2));
        assert_eq!(told(world, draft.id).await, ["invoice.created", "invoice.finalized"]);
        assert_eq!(at_once(world, draft.id, invoices::cancel, "invoice_already_cancelled").await, 1);
        assert_eq!(told(world, draft.id).await.last(), Some(&"invoice.cancelled"));
    }
    assert_clean(world).await;
}

async fn of_16_new_customers_one_has_the_phone(world: &World) {
    let phone = Msisdn::parse("+2203007711").unwrap();
    let runs = (0..16).map(|number| {
        let customer_email = Some(format!("one{number}@example.gm"));
        create(world, NewInvoice { customer_email, customer_phone: Some(Some(phone.clone())), ..rice(world) })
    });
    let mut with_phone = 0;
    for (number, invoice) in join_all(runs).await.into_iter().enumerate() {
        let (invoice, scope) = (invoice.unwrap(), world.scope);
        assert_eq!(invoice.customer.phone.as_ref(), Some(&phone));
        let id = invoice.customer_id;
        let customer = world.app.read(move |tx, _| look_up::<Customer>(tx, scope, id)).await.unwrap();
        assert_eq!(customer.contact.email(), Some(&*format!("one{number}@example.gm")));
        with_phone += usize::from(customer.contact.phone() == Some(&phone));
    }
    assert_eq!(with_phone, 1);
    assert_clean(world).await;
}

async fn of_64_changes_of_one_revision_one_wins(world: &World) {
    let invoice = create(world, rice(world)).await.unwrap();
    let (scope, id) = (world.scope, invoice.id);
    let runs = (0..AT_ONCE).map(|number| {
        let notes = Some(format!("Change {number}"));
        let change = InvoiceChange { notes, based_on: Some(1), ..InvoiceChange::default() };
        world.app.commit(move |tx, context| invoices::update(tx, context, scope, id, &change))
    });
    let answers = join_all(runs).await;
    let winners: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
    assert_eq!(winners.len(), 1);
    for answer in &answers {
        if let Err(failure) = answer {
            assert_eq!(*failure, Failure::from(Refusal::InvoiceVersionConflict { current: 2 }));
        }
    }
    assert_eq!(stored(world, id).await.notes, winners[0].invoice.notes);
    assert_eq!(told(world, id).await, ["invoice.created", "invoice.finalized", "invoice.updated"]);
    assert_clean(world).await;
}

/// One in four names no product, and one in four repeats the key of another.
async fn numbers_of_64_creates_have_no_gap(world: &World) {
    let scope = world.scope;
    let nothing = world.product_of_nobody();
    let runs = (0..AT_ONCE).map(|run| {
        let key = IdempotencyKey {
            scope,
            space: "secret".into(),
            key: format!("order-{}", if run % 4 == 3 { run - 1 } else { run }),
            fingerprint: vec![7; 32],
            former_fingerprint: None,
            sets_state: false,
        };
        let mut new = rice(world);
        if run % 4 == 1 {
            new.items.push(NewItem {
                product_id: Some(nothing),
                description: None,
                quantity: 1,
                unit_price: Some(gmd(1)),
            });
        }
        let command = move |tx: &mut Tx<'_>, context: &Context| invoices::create(tx, context, scope, &new);
        let render = |billed: Result<&Billed, &Failure>| match billed {
            Ok(billed) => Reply::new(201, format!("\"{}\"", billed.invoice.number)),
            Err(failure) => Reply::new(failure.status(), "null".into()),
        };
        world.app.write(Some(key), command, render)
    });
    let (mut numbers, mut replayed, mut refused) = (Vec::new(), 0, 0);
    for answer in join_all(runs).await {
        match answer {
            Ok(reply) if reply.replayed => replayed += 1,
            Ok(reply) => numbers.push(reply.body),
            Err(Failure::Invalid(_)) => refused += 1,
            Err(failure) => panic!("{failure}"),
        }
    }
    assert_eq!((replayed, refused), (AT_ONCE / 4, AT_ONCE / 4));
    numbers.sort();
    let period = world.now().to_text()[..7].to_owned();
    let expected: Vec<String> = (1..=AT_ONCE / 2).map(|count| format!("\"INV-{period}-{count:04}\"")).collect();
    assert_eq!(numbers, expected);
    assert_clean(world).await;
}

/// Each takes a third: three get it, and nobody pays more than there is.
async fn of_64_payments_only_what_is_left_is_taken(world: &World) {
    let invoice = create(world, rice(world)).await.unwrap();
    let (scope, id) = (world.scope, invoice.id);
    let runs = (0..AT_ONCE).map(|_| {
        let payment =
            NewPayment { amount: gmd(3_800), method: OfflineMethod::Other, transaction_id: None, notes: None };
        world.app.commit(move |tx, context| invoices::record_payment(tx, context, scope, id, &payment, "key"))
    });
    let answers = join_all(runs).await;
    let refused = Failure::from(Refusal::InvoiceOverpayment { remaining: gmd(100) });
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 3);
    assert!(answers.iter().filter_map(|answer| answer.as_ref().err()).all(|failure| *failure == refused));
    let invoice = stored(world, id).await;
    assert_eq!((invoice.paid(), invoice.receipts().len()), (gmd(11_400), 3));
    assert_clean(world).await;
}
