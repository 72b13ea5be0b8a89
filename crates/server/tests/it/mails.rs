//! Mails to customers and merchants, from the command that owes one to the server that takes it, whatever that server does.

mod faults;
#[path = "../../src/mail/tests/sink.rs"]
pub(crate) mod sink;
mod turns;

use std::fmt;
use std::time::Duration;

use dalasi::app::documents::Subject;
use dalasi::app::invoices::{self, InvoiceChange, NewInvoice, NewPayment};
use dalasi::app::mail_turns::{self, Turns};
use dalasi::app::mails::{HeldMail, LEASE};
use dalasi::app::products::NewItem;
use dalasi::app::webhooks::{self, EndpointChange, NewEndpoint, Posted};
use dalasi::error::Failure;
use dalasi::monotonic;
use domain::invoice::Invoice;
use domain::mail::{Mail, MailStatus, UNHEARD};
use domain::organization::{Locale, Organization};
use domain::webhook::{Attempted, EndpointStatus, EventFilter, WebhookEndpoint};
use domain::{Currency, Id, Metadata, Mode, Money, OfflineMethod, Refusal, TaxRate};
use store::queries::{invoice_payments, mails};
use tokio::task::JoinHandle;

use crate::world::{PAY_URL, World};
use sink::{CUT, Script, Sink};

const PATIENCE: Duration = Duration::from_secs(20);

impl World {
    async fn bill(&self, change: impl FnOnce(&mut NewInvoice)) -> Invoice {
        let item = NewItem {
            product_id: None,
            description: Some("Atlas of the river".into()),
            quantity: 2,
            unit_price: Some(Money::new(45_000, Currency::gmd())),
        };
        let mut new = NewInvoice {
            customer_id: None,
            customer_email: Some("awa@example.org".into()),
            customer_name: Some("Awa Ceesay".into()),
            customer_address: None,
            customer_phone: None,
            currency: Currency::gmd(),
            tax_rate: TaxRate::parse("0").unwrap(),
            due_date: domain::Timestamp::parse("2030-12-14T23:59:59Z").unwrap(),
            notes: String::new(),
            items: vec![item],
            is_draft: false,
            metadata: Metadata::default(),
        };
        change(&mut new);
        let scope = self.scope;
        let made = self.app.commit(move |tx, context| invoices::create(tx, context, scope, &new)).await;
        made.unwrap().invoice
    }

    async fn send_invoice(&self, id: Id<Invoice>) -> Result<Invoice, Failure> {
        let scope = self.scope;
        self.app.commit(move |tx, context| invoices::send(tx, context, scope, id)).await.map(|billed| billed.invoice)
    }

    /// As a worker claims it.
    async fn hold_mail(&self) -> HeldMail {
        let since = monotonic::now();
        let claimed = self.app.commit(|tx, _| {
            let (until, mut turns) = (tx.now().plus(LEASE), Turns::begin(tx)?);
            mail_turns::claim(tx, Mode::Test, 1, until, &mut turns)
        });
        HeldMail::new(claimed.await.unwrap().pop().unwrap(), since)
    }

    /// As it sends it.
    fn sends(&self, held: HeldMail) -> JoinHandle<Result<(), Failure>> {
        let app = self.app.clone();
        tokio::spawn(async move { app.send_mail(app.mailer().unwrap(), held).await })
    }

    async fn mails_of(&self, about: impl fmt::Display) -> Vec<Mail> {
        let (scope, about) = (self.scope, about.to_string());
        self.app.read(move |tx, _| Ok(mails::of_object(tx, scope, &about)?)).await.unwrap()
    }

    /// The only mail about something, as soon as what came of so many attempts is stored.
    async fn tried(&self, id: impl fmt::Display + Copy, attempts: i64) -> Mail {
        let is_so = |mail: &Mail| mail.attempts == attempts && mail.last_error.as_deref() != Some(UNHEARD);
        self.mail_that(id, "was tried", is_so).await
    }

    /// The only mail about something, as soon as it is so.
    async fn mail_that(&self, id: impl fmt::Display + Copy, what: &str, is_so: impl Fn(&Mail) -> bool) -> Mail {
        let found = async {
            loop {
                let mails = self.mails_of(id).await;
                assert_eq!(mails.len(), 1, "one mail was asked for");
                if is_so(&mails[0]) {
                    return mails.into_iter().next().unwrap();
                }
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, found).await {
            Ok(mail) => mail,
            Err(_) => panic!("waited for a mail that {what}: {:?}", self.mails_of(id).await),
        }
    }
}

/// An invoice that was sent while the server speaks this script.
async fn sent(script: Script) -> (World, Sink, Invoice) {
    let sink = Sink::start(script).await;
    let world = World::mailing(&sink.url()).await;
    let invoice = world.bill(|_| ()).await;
    let invoice = world.send_invoice(invoice.id).await.unwrap();
    (world, sink, invoice)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sent_invoice_arrives_with_its_file() {
    let (world, sink, invoice) = sent(Script::default()).await;
    assert_eq!(invoice.sent_count, 1);
    assert!(invoice.sent_at.is_some());
    let mail = world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
    assert_eq!((mail.attempts, mail.recipient.as_str(), mail.last_error), (1, "awa@example.org", None));
    let message = sink.heard(|heard| {
        assert_eq!(heard.messages.len(), 1, "once");
        heard.messages[0].clone()
    });
    for line in [
        "From: Bills <bills@shop.example>".to_owned(),
        "To: \"Awa Ceesay\" <awa@example.org>".to_owned(),
        format!("Subject: TEST: Invoice {} from Kairaba Books", invoice.number),
        format!("Message-ID: <{}@shop.example>", mail.id),
        "Content-Language: en".to_owned(),
        format!("Content-Disposition: attachment; filename=\"{}.pdf\"", invoice.number),
        // %PDF-
        "JVBERi".to_owned(),
    ] {
        assert!(message.contains(&line), "{line} is not in {message}");
    }
    let link = format!("http://pay.test/invoice/{}", invoice.id);
    assert_eq!(
        message.replace("=\r\n", "").matches(&link).count(),
        4,
        "in the text, on the button, and twice below it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_speaks_the_merchants_language() {
    let sink = Sink::start(Script::default()).await;
    let world = World::mailing(&sink.url()).await;
    let scope = world.scope;
    let set = move |tx: &mut store::Tx<'_>, _: &_| {
        let mut organization = tx.find::<Organization>(scope, scope.organization)?.unwrap();
        organization.profile.locale = Locale::Fr;
        organization.profile.email = Some("bonjour@kairaba.example".into());
        Ok(tx.save(&mut organization)?)
    };
    world.app.commit(set).await.unwrap();
    let invoice = world.bill(|new| new.customer_name = Some("Awa\r\nBcc: x@example.org".into())).await;
    world.send_invoice(invoice.id).await.unwrap();
    world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
    let message = sink.heard(|heard| heard.messages[0].replace("=\r\n", ""));
    let (head, _) = message.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Subject: TEST : Facture {} de Kairaba Books", invoice.number)), "{head}");
    assert!(head.contains("Content-Language: fr") && head.contains("<bonjour@kairaba.example>"), "{head}");
    assert!(!head.contains("\nBcc"), "{head}");
    assert!(message.contains("Payer cette facture"), "{message}");
}

/// No rail is behind live mode, and none takes naira: a letter leads nobody to a page that can't take the money.
#[tokio::test(flavor = "multi_thread")]
async fn a_letter_names_a_page_only_where_it_takes_the_money() {
    let sink = Sink::start(Script::default()).await;
    let mut world = World::mailing(&sink.url()).await;
    let (dalasi, naira) = (Currency::gmd(), Currency::parse("NGN").unwrap());
    let table = [(Mode::Test, dalasi, true), (Mode::Test, naira, false), (Mode::Live, dalasi, false)];
    for (index, (mode, currency, is_named)) in table.into_iter().enumerate() {
        world.scope.mode = mode;
        let invoice = world.bill(|new| {
            new.currency = currency;
            new.items[0].unit_price = Some(Money::new(45_000, currency));
        });
        let (scope, id) = (world.scope, invoice.await.id);
        world.send_invoice(id).await.unwrap();
        world.mail_that(id, "is sent", |mail| mail.status == MailStatus::Sent).await;
        // And the receipt of a part.
        let amount = Money::new(40_000, currency);
        let new = NewPayment { amount, method: OfflineMethod::Check, transaction_id: None, notes: None };
        let paid = world.app.commit(move |tx, context| invoices::record_payment(tx, context, scope, id, &new, "key"));
        let receipt = paid.await.unwrap().invoice.receipts()[0].id;
        world.mail_that(receipt, "is sent", |mail| mail.status == MailStatus::Sent).await;
        let messages = sink.heard(|heard| heard.messages[2 * index..].to_vec());
        assert_eq!(messages.len(), 2, "one of each");
        for message in messages {
            let message = message.replace("=\r\n", "");
            let names = [message.contains("Pay this invoice"), message.contains(&format!("/invoice/{id}"))];
            assert_eq!(names, [is_named; 2], "{mode} {currency}: {message}");
            assert!(message.contains("attachment"), "its file is there all the same: {message}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_delays_a_mail_and_loses_nothing() {
    let (world, sink, invoice) = sent(Script { greeting: CUT, ..Script::default() }).await;
    let mail = world.tried(invoice.id, 1).await;
    assert_eq!(mail.status, MailStatus::Pending);
    assert_eq!(mail.last_error.as_deref(), Some("the mail server can't be reached: it closed the connection"));
    world.clock.advance(Duration::from_secs(10));
    world.tried(invoice.id, 2).await;
    // Not before its time.
    world.clock.advance(Duration::from_secs(10));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    world.mail_that(invoice.id, "waits", |mail| mail.attempts == 2).await;

    sink.speak(Script::default());
    world.clock.advance(Duration::from_secs(60));
    let mail = world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
    assert_eq!((mail.attempts, mail.last_error), (3, None));
    sink.heard(|heard| assert_eq!(heard.messages.len(), 1, "once"));
}

/// Making its file may take longer than it was taken for.
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_passed_to_another_worker_is_sent_by_that_one() {
    let sink = Sink::start(Script::default()).await;
    let world = World::mailing(&sink.url()).await;
    world.rest().await;
    let invoice = world.bill(|_| ()).await;
    world.send_invoice(invoice.id).await.unwrap();
    let first = world.hold_mail().await;
    world.clock.advance(LEASE);
    let second = world.hold_mail().await;
    assert_eq!(world.sends(first).await.unwrap(), Ok(()));
    sink.heard(|heard| assert!(heard.messages.is_empty()));
    assert_eq!(world.sends(second).await.unwrap(), Ok(()));
    sink.heard(|heard| assert_eq!(heard.messages.len(), 1));
    world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn greylisting_is_waited_out() {
    let (world, sink, invoice) = sent(Script { recipient: "451 4.7.1 come back later", ..Script::default() }).await;
    assert_eq!(world.tried(invoice.id, 1).await.unanswered, 0, "the server said what it did");
    sink.speak(Script::default());
    world.clock.advance(Duration::from_secs(10));
    let mail = world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
    assert_eq!((mail.attempts, mail.unanswered), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_who_does_not_exist_ends_it_with_the_reason() {
    let (world, sink, invoice) = sent(Script { recipient: "550 5.1.1 no such user here", ..Script::default() }).await;
    let mail = world.mail_that(invoice.id, "failed", |mail| mail.status == MailStatus::Failed).await;
    assert_eq!(mail.last_error.as_deref(), Some("the mail server refused the recipient: 550 5.1.1 no such user here"));
    assert_eq!((mail.attempts, mail.next_try_at), (1, None));
    sink.heard(|heard| assert!(heard.messages.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_repeated_under_the_same_name() {
    let (world, sink, invoice) = sent(Script { end: CUT, ..Script::default() }).await;
    let mail = world.tried(invoice.id, 1).await;
    assert!(mail.last_error.unwrap().contains("it may have arrived"));
    sink.speak(Script::default());
    world.clock.advance(Duration::from_secs(10));
    world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
    sink.heard(|heard| {
        assert_eq!(heard.messages.len(), 2, "nobody can know that the first arrived");
        assert_eq!(heard.messages[0], heard.messages[1], "byte for byte");
    });
}

/// A server that takes each and answers what nobody can read would fill a mailbox for three days.
#[tokio::test(flavor = "multi_thread")]
async fn what_goes_without_an_answer_is_sent_three_times() {
    let (world, sink, invoice) = sent(Script { end: "250", ..Script::default() }).await;
    for (attempt, wait) in [(1, Duration::from_secs(10)), (2, Duration::from_secs(27 * 3600))] {
        let mail = world.tried(invoice.id, attempt).await;
        assert_eq!((mail.status, mail.unanswered), (MailStatus::Pending, attempt));
        world.clock.advance(wait);
    }
    let mail = world.mail_that(invoice.id, "failed", |mail| mail.status == MailStatus::Failed).await;
    assert!(mail.last_error.unwrap().contains("it may have arrived"));
    sink.heard(|heard| assert_eq!(heard.messages.len(), 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_goes_to_the_address_that_it_names_when_it_leaves() {
    let (world, sink, invoice) = sent(Script { greeting: CUT, ..Script::default() }).await;
    world.tried(invoice.id, 1).await;
    let (scope, id) = (world.scope, invoice.id);
    let change = InvoiceChange { email: Some("awa.ceesay@example.org".into()), ..InvoiceChange::default() };
    let corrected = world.app.commit(move |tx, context| invoices::update(tx, context, scope, id, &change)).await;
    assert!(corrected.is_ok());
    sink.speak(Script::default());
    world.clock.advance(Duration::from_secs(10));
    world.mail_that(invoice.id, "sent", |mail| mail.status == MailStatus::Sent).await;
    sink.heard(|heard| {
        assert_eq!(heard.messages.len(), 1);
        assert!(heard.messages[0].contains("awa.ceesay@example.org"), "{}", heard.messages[0]);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_invoice_asks_nobody_for_money() {
    let (world, sink, invoice) = sent(Script { greeting: CUT, ..Script::default() }).await;
    world.tried(invoice.id, 1).await;
    let (scope, id) = (world.scope, invoice.id);
    world.app.commit(move |tx, context| invoices::cancel(tx, context, scope, id)).await.unwrap();
    sink.speak(Script::default());
    world.clock.advance(Duration::from_secs(10));
    let mail = world.mail_that(invoice.id, "failed", |mail| mail.status == MailStatus::Failed).await;
    assert_eq!(mail.last_error.as_deref(), Some("the invoice was cancelled before the mail could be sent"));
    sink.heard(|heard| assert!(heard.messages.is_empty()));
}

/// It would say that it is paid, and its file that the money went back.
#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_that_was_paid_back_meanwhile_is_not_sent_as_paid() {
    let (world, sink, invoice) = sent(Script { greeting: CUT, ..Script::default() }).await;
    world.tried(invoice.id, 1).await;
    let (scope, id, amount) = (world.scope, invoice.id, invoice.total());
    let payment = NewPayment { amount, method: OfflineMethod::Cash, transaction_id: None, notes: None };
    let paid = world.app.commit(move |tx, context| invoices::record_payment(tx, context, scope, id, &payment, "key"));
    paid.await.unwrap();
    let payments = world.app.read(move |tx, _| Ok(invoice_payments::of_invoice(tx, scope, id)?)).await.unwrap();
    world.refund(payments[0].transaction, None).await.unwrap();
    sink.speak(Script::default());
    world.clock.advance(Duration::from_secs(10));
    let mail = world.mail_that(invoice.id, "failed", |mail| mail.status == MailStatus::Failed).await;
    let said = "all that was paid for the invoice went back before the mail could be sent";
    assert_eq!(mail.last_error.as_deref(), Some(said));
    let number = &invoice.number;
    sink.heard(|heard| {
        assert!(heard.messages.iter().all(|sent| !sent.contains(&format!("Subject: Invoice {number}"))))
    });
}

/// An invoice that changes while its file waits for the only place of test mode.
#[tokio::test(flavor = "multi_thread")]
async fn a_letter_and_its_file_are_of_one_reading() {
    let sink = Sink::start(Script::default()).await;
    let world = World::mailing(&sink.url()).await;
    world.rest().await;
    let (scope, app) = (world.scope, &world.app);
    let [paid, cancelled] = [world.bill(|_| ()).await.id, world.bill(|_| ()).await.id];
    for id in [cancelled, paid] {
        let taken = world.bill(|new| {
            new.items[0].description = Some("MW".repeat(1_000));
            new.items = vec![new.items.remove(0); 150];
        });
        let (taken, other) = (taken.await.id, app.clone());
        let taken = tokio::spawn(async move { other.document(scope, Subject::Invoice(taken)).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.send_invoice(id).await.unwrap();
        let sends = world.sends(world.hold_mail().await);
        tokio::time::sleep(Duration::from_millis(150)).await;
        if id == paid {
            let amount = Money::new(12_345, Currency::gmd());
            let payment = NewPayment { amount, method: OfflineMethod::Cash, transaction_id: None, notes: None };
            let payment =
                app.commit(move |tx, context| invoices::record_payment(tx, context, scope, id, &payment, "key"));
            payment.await.unwrap();
        } else {
            app.commit(move |tx, context| invoices::cancel(tx, context, scope, id)).await.unwrap();
        }
        assert!(!taken.is_finished(), "nothing had to be waited for");
        taken.await.unwrap().unwrap();
        assert_eq!(sends.await.unwrap(), Ok(()));
    }
    sink.heard(|heard| {
        assert_eq!(heard.messages.len(), 1);
        assert!(heard.messages[0].contains("776.55"), "what is left to pay is not in {}", heard.messages[0]);
    });
    let mail = world.mail_that(cancelled, "failed", |mail| mail.status == MailStatus::Failed).await;
    assert_eq!(mail.last_error.as_deref(), Some("the invoice was cancelled before the mail could be sent"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_send_is_a_mail_of_its_own() {
    let (world, sink, invoice) = sent(Script::default()).await;
    let again = world.send_invoice(invoice.id).await.unwrap();
    assert_eq!(again.sent_count, 2);
    let all_sent = async {
        while world.mails_of(invoice.id).await.iter().any(|mail| mail.status != MailStatus::Sent) {
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all_sent).await.unwrap();
    sink.heard(|heard| {
        assert_eq!(heard.messages.len(), 2);
        assert_ne!(heard.messages[0], heard.messages[1], "each has a Message-ID of its own");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn live_mail_does_not_wait_for_test_mail() {
    // A greeting without an end: it is waited for.
    let sink = Sink::start(Script { greeting: "220-one moment", ..Script::default() }).await;
    let mut world = World::mailing(&sink.url()).await;
    for _ in 0..8 {
        let invoice = world.bill(|_| ()).await;
        world.send_invoice(invoice.id).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    sink.speak(Script::default());
    world.scope.mode = Mode::Live;
    for _ in 0..3 {
        let invoice = world.bill(|_| ()).await;
        world.send_invoice(invoice.id).await.unwrap();
        world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
    }
    sink.heard(|heard| assert_eq!(heard.messages.len(), 3, "and test mail waits for the places that hang"));
}

#[tokio::test(flavor = "multi_thread")]
async fn about_one_invoice_ten_mails_are_enough_for_ten_minutes() {
    let (world, _sink, invoice) = sent(Script::default()).await;
    for count in 2..=10 {
        assert_eq!(world.send_invoice(invoice.id).await.unwrap().sent_count, count);
    }
    let refused = world.send_invoice(invoice.id).await.unwrap_err();
    let Failure::Refused(Refusal::InvoiceAlreadySent { most: 10, again_at }) = refused else { panic!("{refused}") };
    assert_eq!((refused.status(), &*refused.code(), refused.is_final()), (400, "invoice_already_sent", true));
    let wait = again_at.since(world.now());
    assert!((Duration::from_secs(500)..=Duration::from_secs(601)).contains(&wait), "{wait:?}");
    assert!(refused.sentence().contains(&again_at.to_text()), "{}", refused.sentence());
    let (scope, id) = (world.scope, invoice.id);
    let stored = world.app.read(move |tx, _| Ok(tx.peek::<Invoice>(scope, id)?)).await.unwrap().unwrap();
    assert_eq!((stored.sent_count, world.mails_of(id).await.len()), (10, 10));
    let another = world.bill(|_| ()).await;
    world.send_invoice(another.id).await.unwrap();
    world.clock.advance(Duration::from_secs(600));
    assert_eq!(world.send_invoice(invoice.id).await.unwrap().sent_count, 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_sent_is_refused_and_nothing_is_counted() {
    let sink = Sink::start(Script::default()).await;
    let mailing = World::mailing(&sink.url()).await;
    let mute = World::new().await;
    let no_mailbox = |new: &mut NewInvoice| new.customer_email = Some("awa@localhost\u{a0}".into());
    let table = [
        (&mailing, mailing.bill(|new| new.is_draft = true).await, Refusal::InvoiceIsDraft),
        (&mute, mute.bill(|_| ()).await, Refusal::EmailNotConfigured),
        (&mailing, mailing.bill(no_mailbox).await, Refusal::CustomerEmailMissing),
    ];
    for (world, invoice, refusal) in table {
        let refused = world.send_invoice(invoice.id).await.unwrap_err();
        assert_eq!(refused, Failure::Refused(refusal));
        assert!(world.mails_of(invoice.id).await.is_empty());
        let (scope, id) = (world.scope, invoice.id);
        let stored = world.app.read(move |tx, _| Ok(tx.peek::<Invoice>(scope, id)?)).await.unwrap().unwrap();
        assert_eq!((stored.sent_count, stored.sent_at), (0, None));
    }
}

impl World {
    async fn merchant_reads_mail_at(&self, address: &'static str) {
        let scope = self.scope;
        let set = move |tx: &mut store::Tx<'_>, _: &_| {
            let mut organization = tx.find::<Organization>(scope, scope.organization)?.unwrap();
            organization.profile.email = Some(address.into());
            Ok(tx.save(&mut organization)?)
        };
        self.app.commit(set).await.unwrap();
    }

    async fn endpoint(&self) -> WebhookEndpoint {
        let scope = self.scope;
        let new = NewEndpoint {
            url: "https://hooks.shop.example/a-secret-of-theirs".into(),
            enabled_events: vec![EventFilter::parse("*").unwrap()],
            description: Some("Orders".into()),
            metadata: Metadata::default(),
        };
        self.app.commit(move |tx, context| webhooks::create(tx, context, scope, &new)).await.unwrap().endpoint
    }

    /// It says that it is gone, and its merchant perhaps switches it on before anybody could be told.
    async fn is_gone(&self, endpoint: &WebhookEndpoint, then: Option<EndpointStatus>) {
        let (scope, id) = (self.scope, endpoint.id);
        let outcome = Attempted::Failed { status: Some(410), error: "gone".into(), retry_after: None, gone: true };
        let posted = Posted { url: endpoint.url.clone(), outcome };
        let change = EndpointChange { status: then, ..EndpointChange::default() };
        let gone = self.app.commit(move |tx, context| {
            webhooks::standing(tx, context, scope, id, &posted)?;
            webhooks::update(tx, scope, id, &change)
        });
        gone.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_hears_of_an_endpoint_that_is_switched_off() {
    let sink = Sink::start(Script::default()).await;
    let world = World::mailing(&sink.url()).await;
    let unheard = world.endpoint().await;
    world.is_gone(&unheard, None).await;
    assert_eq!(world.mails_of(unheard.id).await, [], "there is no address of the merchant's");

    world.merchant_reads_mail_at("books@kairaba.example").await;
    let endpoint = world.endpoint().await;
    world.is_gone(&endpoint, None).await;
    let mail = world.mail_that(endpoint.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
    assert_eq!(mail.recipient, "books@kairaba.example");
    let message = sink.heard(|heard| heard.messages[0].replace("=\r\n", "").replace("=20\r\n", " "));
    for words in [
        "To: \"Kairaba Books\" <books@kairaba.example>",
        "Subject: TEST: Your webhook endpoint at hooks.shop.example is switched off",
        "It answered that it is gone (status 410).",
        &format!("PATCH /v1/webhook_endpoints/{}", endpoint.id),
        // As quoted-printable has it.
        "DALASI_API_KEY=3Dsk_test_",
        " dalasi events resend --since ",
        &format!(" --missed --api-url {PAY_URL}"),
    ] {
        assert!(message.contains(words), "{words} is not in {message}");
    }
    for words in ["a-secret-of-theirs", "Reply-To", "attachment", "--live"] {
        assert!(!message.contains(words), "{words} is in {message}");
    }
    // Once: what fails for one that is switched off already tells nothing new.
    world.is_gone(&endpoint, None).await;
    assert_eq!(world.mails_of(endpoint.id).await.len(), 1);

    let mended = world.endpoint().await;
    world.is_gone(&mended, Some(EndpointStatus::Active)).await;
    let mail = world.mail_that(mended.id, "is over", |mail| mail.status != MailStatus::Pending).await;
    assert_eq!(mail.status, MailStatus::Failed, "{:?}", mail.last_error);
    assert_eq!(sink.heard(|heard| heard.messages.len()), 1, "nobody is told what is not so any more");

    let flapping = world.endpoint().await;
    for _ in 0..15 {
        world.is_gone(&flapping, Some(EndpointStatus::Active)).await;
    }
    assert_eq!(world.mails_of(flapping.id).await.len(), 10, "more within ten minutes tell nothing");
}
