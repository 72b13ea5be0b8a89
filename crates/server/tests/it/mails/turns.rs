//! Who waits for whom, where more is owed than the mail server takes at a time.

use dalasi::app::invoices::{self, NewPayment};
use dalasi::app::mail_turns::PLACES;
use domain::invoice::Invoice;
use domain::organization::Organization;
use domain::{Id, Mode, OfflineMethod, Scope};

use super::sink::{Script, Sink};
use super::*;
use crate::cli::place::Place;

/// So many invoices are sent at once: more than the server takes while anybody looks.
const BULK: usize = 60;
/// A few are under way when the others come, and the files of those are made first.
const SOON: usize = BULK / 2;

impl World {
    /// Another merchant beside the first.
    pub(crate) async fn another(&self) -> Id<Organization> {
        let made = self.app.commit(|tx, _| {
            let now = tx.now();
            let id = tx.entropy().id(now);
            for mode in [Mode::Test, Mode::Live] {
                tx.insert(&mut Organization::new(id, mode, "Senegambia Tailors".into(), now))?;
            }
            Ok(id)
        });
        made.await.unwrap()
    }

    async fn is_paid_by_hand(&self, invoice: &Invoice) {
        let (scope, id) = (self.scope, invoice.id);
        let paid =
            NewPayment { amount: invoice.total(), method: OfflineMethod::Cash, transaction_id: None, notes: None };
        let command = move |tx: &mut store::Tx<'_>, context: &dalasi::app::Context| {
            invoices::record_payment(tx, context, scope, id, &paid, "key").map(drop)
        };
        self.app.commit(command).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_merchants_many_keep_nobody_else_waiting() {
    for place in Place::each("one merchant's many keep nobody else waiting").await {
        let sink = Sink::start(Script { greeting: "later 220 sink", ..Script::default() }).await;
        let mut world = World::mailing_on(place.settings(), &sink.url()).await;
        world.scope.mode = Mode::Live;
        for _ in 0..BULK {
            let invoice = world.bill(|_| ()).await;
            world.send_invoice(invoice.id).await.unwrap();
        }
        // A receipt for what a customer of the same merchant has just paid, and another merchant's only invoice.
        let paid = world.bill(|new| new.customer_email = Some("payer@example.org".into())).await;
        world.is_paid_by_hand(&paid).await;
        world.scope = Scope { organization: world.another().await, mode: Mode::Live };
        let invoice = world.bill(|new| new.customer_email = Some("other@example.org".into())).await;
        world.send_invoice(invoice.id).await.unwrap();

        sink.speak(Script::default());
        let all = async {
            while sink.heard(|heard| heard.messages.len()) < BULK + 2 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE * 3, all).await.unwrap();
        let place_of = |address: &str| {
            let is_to = |message: &String| message.contains(&format!("To: \"Awa Ceesay\" <{address}>"));
            sink.heard(|heard| heard.messages.iter().position(is_to)).unwrap()
        };
        let found = [place_of("payer@example.org"), place_of("other@example.org")];
        assert!(found.iter().all(|place| *place < SOON), "they came as {found:?} of {}", BULK + 2);
        world.close().await;
        place.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mails_of_one_merchant_that_take_long_leave_a_place_to_the_others() {
    for place in Place::each("mails of one merchant that take long leave a place to the others").await {
        // A greeting without an end: it is waited for.
        let sink = Sink::start(Script { greeting: "220-one moment", ..Script::default() }).await;
        let mut world = World::mailing_on(place.settings(), &sink.url()).await;
        let other = world.another().await;
        world.scope.mode = Mode::Live;
        for _ in 0..8 {
            let invoice = world.bill(|_| ()).await;
            world.send_invoice(invoice.id).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        sink.speak(Script::default());
        world.scope.organization = other;
        for _ in 0..3 {
            let invoice = world.bill(|_| ()).await;
            world.send_invoice(invoice.id).await.unwrap();
            world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
        }
        sink.heard(|heard| assert_eq!(heard.messages.len(), 3, "and the first merchant's wait for those that hang"));
        place.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_who_is_alone_has_all_connections() {
    for place in Place::each("a merchant who is alone has all connections").await {
        let sink = Sink::start(Script { recipient: "250-one moment", ..Script::default() }).await;
        let mut world = World::mailing_on(place.settings(), &sink.url()).await;
        world.scope.mode = Mode::Live;
        for _ in 0..PLACES {
            let invoice = world.bill(|_| ()).await;
            world.send_invoice(invoice.id).await.unwrap();
        }
        let asked = |heard: &sink::Heard| heard.commands.iter().filter(|line| line.starts_with("RCPT")).count();
        sink.has_heard("all of them at once", |heard| asked(heard) == PLACES).await;
        place.end().await;
    }
}

/// Whoever looks for live mail only, because test mode has no place left, learns nothing of who waits in test mode.
#[tokio::test(flavor = "multi_thread")]
async fn live_mail_changes_nothing_about_whose_turn_it_is_in_test_mode() {
    for place in Place::each("live mail changes nothing about whose turn it is in test mode").await {
        // Of the first, an answer without an end: it is waited for.
        let sink = Sink::start(Script { recipient: "250-one moment", ..Script::default() }).await;
        let mut world = World::mailing_on(place.settings(), &sink.url()).await;
        let send = async |world: &World, to: &'static str| {
            let invoice = world.bill(|new| new.customer_email = Some(to.into())).await;
            world.send_invoice(invoice.id).await.unwrap();
        };
        let asked_for = async |to: &'static str| {
            let line = format!("<{to}>");
            let is_so = |heard: &sink::Heard| {
                heard.commands.iter().any(|command| command.starts_with("RCPT") && command.contains(&line))
            };
            sink.has_heard(to, is_so).await;
        };
        // One merchant alone leaves no place to others.
        let (second, third) = (world.another().await, world.another().await);
        send(&world, "first@example.org").await;
        asked_for("first@example.org").await;
        send(&world, "first-waits@example.org").await;

        sink.speak(Script { recipient: "later 250 fine", ..Script::default() });
        world.scope.organization = second;
        send(&world, "second@example.org").await;
        asked_for("second@example.org").await;
        send(&world, "second-waits@example.org").await;
        world.scope.organization = third;
        send(&world, "third@example.org").await;
        world.scope.mode = Mode::Live;
        send(&world, "live@example.org").await;
        asked_for("live@example.org").await;

        sink.speak(Script::default());
        sink.has_heard("all that find a place", |heard| heard.messages.len() == 4).await;
        let place_of = |to: &str| {
            let is_to = |message: &String| message.contains(&format!("<{to}>"));
            sink.heard(|heard| heard.messages.iter().position(is_to))
        };
        let (third, again) = (place_of("third@example.org"), place_of("second-waits@example.org"));
        assert!(third.is_some() && third < again, "they came as {third:?} and {again:?}");
        assert_eq!(place_of("first-waits@example.org"), None, "its own is still waited for");
        place.end().await;
    }
}
