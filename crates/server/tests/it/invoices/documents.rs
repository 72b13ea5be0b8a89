//! The files of invoices and receipts: there before anybody asks, made once, and never out of date.

use dalasi::app::documents::{File, Subject};
use dalasi::app::invoices::{self, NewInvoice, NewPayment};
use dalasi::app::products::NewItem;
use dalasi::app::{look_up, receipt_statements};
use dalasi::receipt_statement::{self, PayerProof, Statement};
use domain::invoice::Invoice;
use domain::organization::Organization;
use domain::receipt::Receipt;
use domain::{Id, Mode, Msisdn, OfflineMethod, Scope, Timestamp};
use store::queries::{documents, invoice_payments};

use super::{DAY, create, gmd, on_both, rice, rice_in};
use crate::world::{PAY_URL, World};

on_both!(
    it_is_there_before_anybody_asks,
    it_is_made_once,
    what_it_shows_makes_another,
    many_who_ask_at_once_get_the_same,
    whoever_goes_away_leaves_the_file,
    a_receipt_has_one_as_soon_as_it_is_issued,
    a_receipt_proves_a_name_and_nothing_else,
    who_has_no_key_gets_another_that_is_kept_apart,
    what_is_paid_back_makes_another,
    it_names_an_address_only_where_a_method_takes_it,
);

async fn file(world: &World, subject: Subject) -> File {
    world.app.document(world.scope, subject).await.unwrap()
}

async fn generated_at(world: &World, id: String) -> Option<Timestamp> {
    let scope = world.scope;
    let state = world.app.read(move |tx, _| Ok(documents::state(tx, scope, &id)?)).await.unwrap();
    state.and_then(|state| state.generated_at)
}

async fn eventually_generated(world: &World, id: String) -> Timestamp {
    for _ in 0..400 {
        if let Some(at) = generated_at(world, id.clone()).await {
            return at;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("nobody made the file of {id}");
}

async fn it_is_there_before_anybody_asks(world: &World) {
    let invoice = create(world, rice(world)).await.unwrap();
    eventually_generated(world, invoice.id.to_string()).await;
    // A draft has nobody to ask for it yet, until it is issued.
    let draft = create(world, NewInvoice { is_draft: true, ..rice(world) }).await.unwrap();
    assert_eq!(generated_at(world, draft.id.to_string()).await, None);
    let (scope, id) = (world.scope, draft.id);
    world.app.commit(move |tx, context| invoices::finalize(tx, context, scope, id)).await.unwrap();
    eventually_generated(world, draft.id.to_string()).await;
}

async fn it_is_made_once(world: &World) {
    world.clock.stop();
    let invoice = create(world, rice(world)).await.unwrap();
    let made = eventually_generated(world, invoice.id.to_string()).await;
    world.clock.advance(DAY);
    let first = file(world, Subject::Invoice(invoice.id)).await;
    assert_eq!(first.name, format!("{}.pdf", invoice.number));
    assert!(first.bytes.starts_with(b"%PDF-"));
    assert_eq!(file(world, Subject::Invoice(invoice.id)).await, first);
    assert_eq!(generated_at(world, invoice.id.to_string()).await, Some(made), "it was made again");
}

async fn what_it_shows_makes_another(world: &World) {
    world.clock.stop();
    let invoice = create(world, rice(world)).await.unwrap();
    let subject = Subject::Invoice(invoice.id);
    let first = file(world, subject).await;
    let scope = world.scope;
    let moved = world.app.commit(move |tx, _| {
        let mut organization = tx.find::<Organization>(scope, scope.organization)?.unwrap();
        organization.profile.address = Some("48 Kairaba Avenue".into());
        Ok(tx.save(&mut organization)?)
    });
    moved.await.unwrap();
    let second = file(world, subject).await;
    assert!(second.bytes != first.bytes, "the merchant's new address is not in it");
    // Nobody touched it; the clock alone made it overdue.
    world.clock.advance(DAY * 11);
    let third = file(world, subject).await;
    assert!(third.bytes != second.bytes, "it does not say that it is overdue");
}

async fn many_who_ask_at_once_get_the_same(world: &World) {
    let draft = create(world, NewInvoice { is_draft: true, ..rice(world) }).await.unwrap();
    let (scope, subject) = (world.scope, Subject::Invoice(draft.id));
    let asking = (0..64).map(|_| {
        let app = world.app.clone();
        tokio::spawn(async move { app.document(scope, subject).await.unwrap() })
    });
    let mut files = Vec::new();
    for asked in asking.collect::<Vec<_>>() {
        files.push(asked.await.unwrap());
    }
    files.dedup();
    assert_eq!(files.len(), 1, "different files of one invoice");
}

async fn whoever_goes_away_leaves_the_file(world: &World) {
    world.clock.stop();
    let long = NewItem { description: Some("MW".repeat(1_000)), ..rice(world).items.remove(0) };
    let draft = NewInvoice { is_draft: true, items: vec![long; 100], ..rice(world) };
    let draft = create(world, draft).await.unwrap();
    let subject = Subject::Invoice(draft.id);
    // Longer than it takes to look it up, and much shorter than to make it.
    for _ in 0..3 {
        let asked = tokio::time::timeout(std::time::Duration::from_millis(40), file(world, subject)).await;
        assert!(asked.is_err(), "the file was there before anybody went away");
    }
    let made = eventually_generated(world, draft.id.to_string()).await;
    world.clock.advance(DAY);
    assert!(file(world, subject).await.bytes.starts_with(b"%PDF-"));
    assert_eq!(generated_at(world, draft.id.to_string()).await, Some(made), "it was made again");
}

async fn a_receipt_has_one_as_soon_as_it_is_issued(world: &World) {
    world.clock.stop();
    let invoice = create(world, rice(world)).await.unwrap();
    let (scope, id) = (world.scope, invoice.id);
    let payment = NewPayment { amount: gmd(11_500), method: OfflineMethod::Cash, transaction_id: None, notes: None };
    let paid = world.app.commit(move |tx, context| invoices::record_payment(tx, context, scope, id, &payment, "key"));
    let receipt: Id<Receipt> = paid.await.unwrap().invoice.receipts()[0].id;
    let made = eventually_generated(world, receipt.to_string()).await;
    let first = file(world, Subject::Receipt(receipt)).await;
    assert_eq!(generated_at(world, receipt.to_string()).await, Some(made));
    // Its file is dropped after a day, and made again as it was.
    world.clock.advance(DAY * 2);
    world.app.commit(|tx, _| Ok(documents::drop_old_files(tx)?)).await.unwrap();
    assert_eq!(file(world, Subject::Receipt(receipt)).await, first);
    assert!(generated_at(world, receipt.to_string()).await > Some(made));
}

/// Its validation code and a mask leave so few phone numbers that a proof of one of them would tell it to whoever has the file.
async fn a_receipt_proves_a_name_and_nothing_else(world: &World) {
    for name in ["Awa Ceesay", ""] {
        let invoice = create(world, rice(world)).await.unwrap();
        let (scope, id) = (world.scope, invoice.id);
        let paid = world.app.commit(move |tx, context| {
            let mut invoice = tx.find::<Invoice>(scope, id)?.unwrap();
            invoice.customer.name = name.into();
            invoice.customer.phone = Msisdn::parse("+2207123412").ok();
            tx.save(&mut invoice)?;
            let cash = OfflineMethod::Cash;
            let payment = NewPayment { amount: gmd(11_500), method: cash, transaction_id: None, notes: None };
            invoices::record_payment(tx, context, scope, id, &payment, "key")
        });
        let receipt = paid.await.unwrap().invoice.receipts()[0].id;
        let read = world.app.read(move |tx, context| {
            let receipt = look_up::<Receipt>(tx, scope, receipt)?;
            let address = receipt_statements::address_of(tx, context, &receipt)?;
            Ok((receipt, address, receipt_statements::verifying_keys(tx, context)?))
        });
        let (receipt, address, keys) = read.await.unwrap();
        let signed = Statement::verify(receipt_statement::find(&address), &keys).unwrap();
        let proof = PayerProof::of(name, receipt.validation_code.as_str());
        assert_eq!(signed.statement.payer_proof(), proof, "{name:?}");
    }
}

/// Neither is given out for the other, and asking for the one makes the other no second time.
async fn who_has_no_key_gets_another_that_is_kept_apart(world: &World) {
    world.clock.stop();
    let invoice = create(world, rice(world)).await.unwrap();
    let made = eventually_generated(world, invoice.id.to_string()).await;
    let masked_made = eventually_generated(world, documents::masked(&invoice.id.to_string())).await;
    world.clock.advance(DAY);
    let whole = file(world, Subject::Invoice(invoice.id)).await;
    let masked = world.app.issued_invoice_document(invoice.id).await.unwrap();
    assert_eq!(masked.name, whole.name);
    assert!(masked.bytes != whole.bytes, "whoever has the address sees all of it");
    for _ in 0..2 {
        assert_eq!(file(world, Subject::Invoice(invoice.id)).await, whole);
        assert_eq!(world.app.issued_invoice_document(invoice.id).await.unwrap(), masked);
    }
    for (id, made) in [(invoice.id.to_string(), made), (documents::masked(&invoice.id.to_string()), masked_made)] {
        assert_eq!(generated_at(world, id).await, Some(made), "it was made again");
    }
    // Nothing is masked of who has nothing to mask.
    let (scope, id) = (world.scope, invoice.id);
    let bare = world.app.commit(move |tx, _| {
        let mut invoice = tx.find::<Invoice>(scope, id)?.unwrap();
        invoice.customer.email.clear();
        Ok(tx.save(&mut invoice)?)
    });
    bare.await.unwrap();
    let whole = file(world, Subject::Invoice(invoice.id)).await;
    assert_eq!(world.app.issued_invoice_document(invoice.id).await.unwrap(), whole);
}

async fn what_is_paid_back_makes_another(world: &World) {
    world.clock.stop();
    let invoice = create(world, rice(world)).await.unwrap();
    let (scope, id, subject) = (world.scope, invoice.id, Subject::Invoice(invoice.id));
    for minor in [5_000, 6_500] {
        let payment = NewPayment { amount: gmd(minor), method: OfflineMethod::Cash, transaction_id: None, notes: None };
        let paid = world
            .app
            .commit(move |tx, context| invoices::record_payment(tx, context, scope, id, &payment, "key").map(drop));
        paid.await.unwrap();
    }
    let payments = world.app.read(move |tx, _| Ok(invoice_payments::of_invoice(tx, scope, id)?)).await.unwrap();
    let mut files = vec![file(world, subject).await.bytes];
    // Of the one a part, the other whole; the invoice itself shows only one of them.
    for (payment, minor) in payments.iter().zip([Some(2_000), None]) {
        world.refund(payment.transaction, minor).await.unwrap();
        files.push(file(world, subject).await.bytes);
    }
    assert!(files.windows(2).all(|pair| pair[0] != pair[1]), "what went back is not in it");
    assert_eq!(file(world, subject).await.bytes, files[2]);
}

/// No rail is behind live mode, and none takes naira: who scans such a file would come to a page that can't take the money.
async fn it_names_an_address_only_where_a_method_takes_it(world: &World) {
    let live = Scope { mode: Mode::Live, ..world.scope };
    let table = [
        (world.scope, rice(world), true),
        (world.scope, rice_in(world, "XOF"), true),
        (world.scope, rice_in(world, "NGN"), false),
        (live, rice(world), false),
    ];
    for (scope, new, is_named) in table {
        let currency = new.currency;
        let created = world.app.commit(move |tx, context| invoices::create(tx, context, scope, &new)).await;
        let id = created.unwrap().invoice.id;
        let file = world.app.document(scope, Subject::Invoice(id)).await.unwrap();
        let address = format!("/URI({PAY_URL}/invoice/{id})");
        let names = file.bytes.windows(address.len()).any(|window| window == address.as_bytes());
        assert_eq!(names, is_named, "{scope:?} {currency}");
    }
}
