//! Faults of the database while the mail server has a message: nothing of ours makes it be sent once more.

use domain::mail::MailAttempted;

use super::sink::{Script, Sink};
use super::*;
use crate::cli::place::{Place, postgres_client};

/// A moment's fault lasts longer than a statement is waited for.
const MOMENT: Duration = Duration::from_secs(7);
/// Until a worker has said that it goes on, and the database has taken its time to say no.
const SIGNS_OF_LIFE: Duration = Duration::from_secs(17);

/// Takes a database away from whoever writes to it, until it is given back.
enum Away {
    Sqlite(rusqlite::Connection),
    Postgres(tokio_postgres::Client, String),
}

impl Away {
    async fn begin(place: &Place) -> Self {
        match place.settings() {
            store::Database::Postgres { url } => {
                let name = url.rsplit_once('/').unwrap().1.to_owned();
                let client = postgres_client(place.admin().unwrap()).await;
                let end = format!(
                    "alter database {name} with allow_connections false;
                    select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
                );
                client.batch_execute(&end).await.unwrap();
                Self::Postgres(client, name)
            }
            _ => {
                let beside = rusqlite::Connection::open(place.folder().join("dalasi.db")).unwrap();
                beside.busy_timeout(Duration::from_secs(5)).unwrap();
                beside.execute_batch("begin immediate").unwrap();
                Self::Sqlite(beside)
            }
        }
    }

    async fn end(self) {
        match self {
            Self::Sqlite(beside) => beside.execute_batch("rollback").unwrap(),
            Self::Postgres(client, name) => {
                client.batch_execute(&format!("alter database {name} with allow_connections true")).await.unwrap();
            }
        }
    }
}

/// A mail that nobody has claimed yet, in a world without a worker.
async fn owed(world: &World) -> Invoice {
    world.rest().await;
    let invoice = world.bill(|_| ()).await;
    world.send_invoice(invoice.id).await.unwrap()
}

impl Sink {
    pub(super) async fn has_heard(&self, what: &str, is_so: impl Fn(&sink::Heard) -> bool) {
        let heard = async {
            while !self.heard(&is_so) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, heard).await.is_ok(), "waited for {what}");
    }
}

/// On both databases side by side.
async fn on_each<F: Future<Output = ()>>(test: &'static str, attack: impl Fn(Place) -> F) {
    futures_util::future::join_all(Place::each(test).await.map(attack)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_of_a_mail_is_stored_when_the_database_is_back() {
    on_each("what came of a mail is stored when the database is back", async |place| {
        let sink = Sink::start(Script { end: "later 250 taken", ..Script::default() }).await;
        let world = World::mailing_on(place.settings(), &sink.url()).await;
        let invoice = owed(&world).await;
        let sending = world.sends(world.hold_mail().await);
        sink.has_heard("the message", |heard| heard.messages.len() == 1).await;
        let away = Away::begin(&place).await;
        sink.speak(Script::default());
        tokio::time::sleep(MOMENT).await;
        away.end().await;
        assert_eq!(sending.await.unwrap(), Ok(()));
        let mail = world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
        assert_eq!((mail.attempts, mail.last_error), (1, None));
        world.app.store().close().await;
        place.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_while_the_database_is_away() {
    on_each("a conversation goes on while the database is away", async |place| {
        let sink = Sink::start(Script { recipient: "later 250 fine", ..Script::default() }).await;
        let world = World::mailing_on(place.settings(), &sink.url()).await;
        let invoice = owed(&world).await;
        let sending = world.sends(world.hold_mail().await);
        sink.has_heard("the recipient", |heard| heard.commands.iter().any(|line| line.starts_with("RCPT"))).await;
        let away = Away::begin(&place).await;
        tokio::time::sleep(SIGNS_OF_LIFE).await;
        away.end().await;
        sink.speak(Script::default());
        assert_eq!(sending.await.unwrap(), Ok(()));
        world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
        sink.heard(|heard| assert_eq!(heard.messages.len(), 1));
        world.app.store().close().await;
        place.end().await;
    })
    .await;
}

/// The mail passes to another worker while the server is asked for the recipient: that one sends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_ends_before_the_last_line_of_what_another_worker_has() {
    let sink = Sink::start(Script { recipient: "later 250 fine", ..Script::default() }).await;
    let world = World::mailing(&sink.url()).await;
    let invoice = owed(&world).await;
    let first = world.sends(world.hold_mail().await);
    sink.has_heard("the recipient", |heard| heard.commands.iter().any(|line| line.starts_with("RCPT"))).await;
    world.clock.advance(LEASE);
    let second = world.hold_mail().await;
    assert_eq!(first.await.unwrap(), Ok(()));
    sink.speak(Script::default());
    assert_eq!(world.sends(second).await.unwrap(), Ok(()));
    world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
    sink.heard(|heard| assert_eq!(heard.messages.len(), 1));
}

/// It passes when the message is out: what the server says of it counts, and the other finds nothing to do.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_has_is_sent_whoever_holds_it() {
    let sink = Sink::start(Script { end: "later 250 taken", ..Script::default() }).await;
    let world = World::mailing(&sink.url()).await;
    let invoice = owed(&world).await;
    let first = world.sends(world.hold_mail().await);
    sink.has_heard("the message", |heard| heard.messages.len() == 1).await;
    world.clock.advance(LEASE);
    let second = world.hold_mail().await;
    // The first has found out by now, and hears the answer all the same.
    tokio::time::sleep(Duration::from_secs(11)).await;
    sink.speak(Script::default());
    assert_eq!(first.await.unwrap(), Ok(()));
    world.mail_that(invoice.id, "is sent", |mail| mail.status == MailStatus::Sent).await;
    assert_eq!(world.sends(second).await.unwrap(), Ok(()));
    sink.heard(|heard| assert_eq!(heard.messages.len(), 1, "once"));
}

/// A lease that ran out while the database was away is no reason to begin anew what this process still has in its hands.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_does_not_take_from_itself() {
    let sink = Sink::start(Script::default()).await;
    let mut world = World::mailing(&sink.url()).await;
    // There is a place for another of the same merchant.
    world.scope.mode = Mode::Live;
    owed(&world).await;
    let claim = async |turns: Turns| {
        let claimed = world.app.commit(move |tx, _| {
            let (until, mut turns) = (tx.now().plus(LEASE), turns.clone());
            let claimed = mail_turns::claim(tx, Mode::Live, 4, until, &mut turns)?;
            Ok((claimed, turns))
        });
        claimed.await.unwrap()
    };
    let turns = world.app.read(|tx, _| Turns::begin(tx)).await.unwrap();
    let (claimed, mut turns) = claim(turns).await;
    assert_eq!(claimed.len(), 1);
    let outcome = MailAttempted::Failed { error: "421".into(), may_have_arrived: false };
    let mail = claimed[0].clone();
    world.clock.advance(LEASE);
    assert_eq!(claim(turns.clone()).await.0, [], "what came of it is still to be stored");
    turns.ended(mail.mail.id);
    assert_eq!(claim(turns.clone()).await.0, [], "it is held for another lease");
    let stored = world.app.commit(move |tx, _| dalasi::app::mails::attempted(tx, &mail, &outcome)).await;
    assert_eq!(stored, Ok(()));
    world.clock.advance(LEASE);
    let again = claim(turns).await.0;
    assert_eq!(again.iter().map(|claimed| claimed.mail.attempts).collect::<Vec<_>>(), [1], "its holder said so");
}

/// A server that looks into each message for long, and a process that ends meanwhile, as with each new version: what it stores
/// nothing more of may have arrived.
#[tokio::test(flavor = "multi_thread")]
async fn what_processes_end_with_is_sent_three_times() {
    on_each("what processes end with is sent three times", async |place| {
        let sink = Sink::start(Script { end: "later 250 taken", ..Script::default() }).await;
        let world = World::mailing_on(place.settings(), &sink.url()).await;
        let invoice = owed(&world).await;
        let hour = Duration::from_secs(3_600);
        for (count, wait) in [(1, LEASE), (2, 27 * hour), (3, hour)] {
            let sending = world.sends(world.hold_mail().await);
            sink.has_heard("the message", |heard| heard.messages.len() == count).await;
            sending.abort();
            assert!(sending.await.unwrap_err().is_cancelled());
            let mail = world.mails_of(invoice.id).await.remove(0);
            let count = i64::try_from(count).unwrap();
            assert_eq!((mail.status, mail.attempts, mail.unanswered), (MailStatus::Pending, count, count));
            world.clock.advance(wait);
        }
        let next = world.sends(world.hold_mail().await);
        assert_eq!(tokio::time::timeout(PATIENCE, next).await.expect("nothing is sent").unwrap(), Ok(()));
        let mail = world.mail_that(invoice.id, "failed", |mail| mail.status == MailStatus::Failed).await;
        assert_eq!((mail.attempts, mail.unanswered), (3, 3));
        assert_eq!(sink.heard(|heard| heard.messages.len()), 3);
        world.app.store().close().await;
        place.end().await;
    })
    .await;
}

/// A server that says nothing to the recipient has no mail that could have arrived, however often a process ends meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn what_no_server_took_is_not_counted() {
    on_each("what no server took is not counted", async |place| {
        let sink = Sink::start(Script { recipient: "later 250 fine", ..Script::default() }).await;
        let world = World::mailing_on(place.settings(), &sink.url()).await;
        let invoice = owed(&world).await;
        for count in 1..=4 {
            let sending = world.sends(world.hold_mail().await);
            let asked = |line: &String| line.starts_with("RCPT");
            sink.has_heard("the recipient", |heard| heard.commands.iter().filter(|line| asked(line)).count() == count)
                .await;
            sending.abort();
            assert!(sending.await.unwrap_err().is_cancelled());
            let mail = world.mails_of(invoice.id).await.remove(0);
            assert_eq!((mail.status, mail.attempts, mail.unanswered), (MailStatus::Pending, 0, 0));
            world.clock.advance(LEASE);
        }
        assert_eq!(sink.heard(|heard| heard.messages.len()), 0);
        world.app.store().close().await;
        place.end().await;
    })
    .await;
}
