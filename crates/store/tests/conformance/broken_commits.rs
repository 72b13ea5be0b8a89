//! A connection that breaks around COMMIT: the only moment at which nobody can know, and so nobody may guess.
//!
//! A small proxy stands between the store and PostgreSQL and cuts the connection at a chosen moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use store::{Clock as _, Database, Error, Schema, Settings, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::additions::Held;
use crate::world::{System, World, entropy, schema};
use crate::writes::add_posting;

const PASS: u8 = 0;
/// COMMIT reaches the server, its answer doesn't come back.
const SWALLOW_ANSWER: u8 = 1;
/// COMMIT never reaches the server.
const SWALLOW_COMMIT: u8 = 2;
/// The connection breaks at the first insert, long before COMMIT.
const CUT_AT_INSERT: u8 = 3;
/// The same, and new connections are taken and never answered.
const GONE_AT_INSERT: u8 = 4;
const GONE: u8 = 5;
/// A pooler lost its server: at the first insert, and after COMMIT has reached it.
const POOLER_AT_INSERT: u8 = 6;
const POOLER_AT_COMMIT: u8 = 7;
/// What is read is swallowed, and the connection stays.
const SILENT_AT_READ: u8 = 8;
/// COMMIT is answered as done, and before that it is said that its wait for a standby was cancelled.
const CANCELLED_AT_COMMIT: u8 = 9;
/// The same beside an insert, where it means nothing.
const CANCELLED_AT_INSERT: u8 = 10;
/// Another pooler, which says so otherwise.
const OTHER_POOLER_AT_INSERT: u8 = 11;
const OTHER_POOLER_AT_COMMIT: u8 = 12;
/// The connection breaks at the first insert, and the next one takes a while.
const SLOW_AFTER_INSERT: u8 = 13;
const SLOW: u8 = 14;
const A_WHILE: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_answer_is_unknown_and_not_repeated() {
    for (mode, stored) in [(SWALLOW_ANSWER, 1), (SWALLOW_COMMIT, 0)] {
        let Some(world) = World::postgres("a_commit_without_an_answer").await else { return };
        let proxy = Proxy::start(world.url()).await;
        let store = proxy.open().await;
        proxy.mode.store(mode, Ordering::SeqCst);
        let (answer, runs) = write(&store).await;
        assert_eq!((answer, runs), (Err(Error::UnknownCommit), 1));
        wait_until_settled(&world, stored).await;
        // The next one finds a new connection by itself.
        store.write(|tx| add_posting(tx, "later")).await.unwrap();
        assert_eq!(world.count("postings").await, stored + 1);
        store.close().await;
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn additions_that_share_a_commit_share_its_fate() {
    for (mode, stored) in [(SWALLOW_ANSWER, 10), (SWALLOW_COMMIT, 0), (CUT_AT_INSERT, 10)] {
        let Some(world) = World::postgres("additions_that_share_a_commit").await else { return };
        let proxy = Proxy::start(world.url()).await;
        let store = proxy.open().await;
        let held = Held::of(&store, 1).await;
        proxy.mode.store(mode, Ordering::SeqCst);
        let adding = add_ten(&store);
        held.let_go().await;
        for added in adding {
            let wanted = if mode == CUT_AT_INSERT { Ok(()) } else { Err(Error::UnknownCommit) };
            assert_eq!(added.await.unwrap(), wanted);
        }
        wait_until_settled(&world, stored).await;
        store.close().await;
        world.end().await;
    }
}

/// Each of them alone would wait for a connection as long as the first.
#[tokio::test(flavor = "multi_thread")]
async fn additions_of_a_database_that_is_gone_are_refused_together() {
    let Some(world) = World::postgres("additions_of_a_database_that_is_gone").await else { return };
    let proxy = Proxy::start(world.url()).await;
    let store = proxy.open().await;
    let held = Held::of(&store, 1).await;
    proxy.mode.store(GONE_AT_INSERT, Ordering::SeqCst);
    let adding = add_ten(&store);
    held.let_go().await;
    let answers = tokio::time::timeout(Duration::from_secs(15), futures_util::future::join_all(adding));
    for answer in answers.await.expect("one limit for all of them") {
        assert!(matches!(answer, Ok(Err(Error::Unavailable(_)))), "{answer:?}");
    }
    proxy.mode.store(PASS, Ordering::SeqCst);
    assert_eq!(world.count("postings").await, 0);
    store.close().await;
    world.end().await;
}

fn add_ten(store: &Store) -> Vec<JoinHandle<Result<(), Error>>> {
    let add = |number| {
        let store = store.clone();
        tokio::spawn(async move { store.add(move |tx| add_posting(tx, &format!("p{number}"))).await })
    };
    (0..10).map(add).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_before_the_commit_runs_again() {
    let Some(world) = World::postgres("a_connection_that_breaks_before_the_commit").await else { return };
    let proxy = Proxy::start(world.url()).await;
    let store = proxy.open().await;
    proxy.mode.store(CUT_AT_INSERT, Ordering::SeqCst);
    let (answer, runs) = write(&store).await;
    assert_eq!((answer, runs), (Ok(()), 2));
    assert_eq!(world.count("postings").await, 1);
    store.close().await;
    world.end().await;
}

/// Others commit meanwhile, and what they did comes before it.
#[tokio::test(flavor = "multi_thread")]
async fn what_waited_for_a_connection_is_dated_when_there_is_one() {
    let Some(world) = World::postgres("what_waited_for_a_connection").await else { return };
    let proxy = Proxy::start(world.url()).await;
    let store = proxy.open().await;
    proxy.mode.store(SLOW_AFTER_INSERT, Ordering::SeqCst);
    let (runs, began) = (Arc::new(AtomicU32::new(0)), System.now_us());
    let seen = Arc::clone(&runs);
    let dated = store.write(move |tx| {
        seen.fetch_add(1, Ordering::SeqCst);
        tx.execute("insert into postings (id, note) values ('dated', '')", &[])?;
        Ok::<_, Error>(tx.now_us())
    });
    let later = Duration::from_micros(u64::try_from(dated.await.unwrap() - began).unwrap());
    assert!(later > A_WHILE / 2, "dated {later:?} after it was asked for");
    assert_eq!((runs.load(Ordering::SeqCst), world.count("postings").await), (2, 1));
    store.close().await;
    world.end().await;
}

/// PgBouncer says so with the code of a broken protocol, which is what PostgreSQL says of a value that doesn't fit; others with that of a
/// system's error, which is what PostgreSQL says of a full disk. What ends the connection was not said of the statement.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_lost_its_server_is_no_faulty_statement() {
    for (at_insert, at_commit) in
        [(POOLER_AT_INSERT, POOLER_AT_COMMIT), (OTHER_POOLER_AT_INSERT, OTHER_POOLER_AT_COMMIT)]
    {
        let Some(world) = World::postgres("a_pooler_that_lost_its_server").await else { return };
        let proxy = Proxy::start(world.url()).await;
        let store = proxy.open().await;
        proxy.mode.store(at_insert, Ordering::SeqCst);
        let (answer, runs) = write(&store).await;
        assert_eq!((answer, runs), (Ok(()), 2));

        // What goes out with COMMIT is prepared by then.
        store.write(|tx| add_posting(tx, "before")).await.unwrap();
        proxy.mode.store(at_commit, Ordering::SeqCst);
        let answer = store.write(|tx| add_posting(tx, "together")).await;
        assert_eq!(answer, Err(Error::UnknownCommit));
        wait_until_settled(&world, 3).await;
        store.close().await;
        world.end().await;
    }
}

/// As PgBouncer says it.
const SERVER_CRASHED: &[u8] = b"E\0\0\0\x30SFATAL\0VFATAL\0C08P01\0Mserver conn crashed?\0\0";
const SERVER_GONE: &[u8] = b"E\0\0\0\x30SFATAL\0VFATAL\0C58000\0Mserver conn crashed?\0\0";

/// As PostgreSQL 15 says it in German: the sentence is in the server's language.
const WAIT_CANCELLED: &[u8] = b"N\0\0\0\x88SWARNUNG\0VWARNING\0C01000\0\
Mstorniere Warten auf synchrone Replikation wegen Benutzeraufforderung\0\
Fsyncrep.c\0L287\0RSyncRepWaitForLSN\0\0";

/// It is on the disk of this server, and if that is lost, on none.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_no_standby_confirmed_is_unknown() {
    let Some(world) = World::postgres("a_commit_that_no_standby_confirmed").await else { return };
    let proxy = Proxy::start(world.url()).await;
    let store = proxy.open().await;
    store.write(|tx| add_posting(tx, "before")).await.unwrap();
    proxy.mode.store(CANCELLED_AT_COMMIT, Ordering::SeqCst);
    assert_eq!(write(&store).await, (Err(Error::UnknownCommit), 1));
    assert_eq!(world.count("postings").await, 2);
    // Neither does it spoil what comes behind it on this connection, nor what only read.
    store.write(|tx| add_posting(tx, "later")).await.unwrap();
    proxy.mode.store(CANCELLED_AT_INSERT, Ordering::SeqCst);
    let answer = store.write(|tx| {
        tx.execute("insert into postings (id, note) values ('unsaid', '')", &[])?;
        tx.query("select id from postings", &[]).map(drop)
    });
    assert_eq!(answer.await, Ok(()));
    assert_eq!(world.count("postings").await, 4);
    store.close().await;
    world.end().await;
}

/// Each run more would be as long, and whoever asked is gone by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_without_an_answer_is_not_repeated() {
    let Some(world) = World::postgres("a_read_without_an_answer").await else { return };
    let proxy = Proxy::start(world.url()).await;
    let store = proxy.open().await;
    let runs = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&runs);
    proxy.mode.store(SILENT_AT_READ, Ordering::SeqCst);
    let read = store.read(move |tx| {
        seen.fetch_add(1, Ordering::SeqCst);
        tx.query("select id from postings", &[])
    });
    let answer = read.await.map(drop);
    assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    store.close().await;
    world.end().await;
}

async fn write(store: &Store) -> (Result<(), Error>, u32) {
    let runs = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&runs);
    let answer = store.write(move |tx| {
        seen.fetch_add(1, Ordering::SeqCst);
        tx.execute("insert into postings (id, note) values ('written', '')", &[])?;
        Ok(())
    });
    (answer.await, runs.load(Ordering::SeqCst))
}

/// The server may still be at it when the client has given up.
async fn wait_until_settled(world: &World, expected: i64) {
    for _ in 0..100 {
        if world.count("postings").await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{expected} postings were expected");
}

pub(crate) struct Proxy {
    url: String,
    mode: Arc<AtomicU8>,
    /// Bytes that came from the server.
    pub(crate) answered: Arc<AtomicUsize>,
}

impl Proxy {
    pub(crate) async fn start(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().to_string();
        let start = url.rfind('@').map_or_else(|| url.find("://").unwrap() + 3, |at| at + 1);
        let end = start + url[start..].find('/').unwrap();
        let server = url[start..end].to_owned();
        let (mode, answered) = (Arc::new(AtomicU8::new(PASS)), Arc::new(AtomicUsize::new(0)));
        let (modes, counted) = (Arc::clone(&mode), Arc::clone(&answered));
        tokio::spawn(async move {
            let mut unanswered = Vec::new();
            while let Ok((client, _)) = listener.accept().await {
                if modes.load(Ordering::SeqCst) == GONE {
                    unanswered.push(client);
                    continue;
                }
                if modes.load(Ordering::SeqCst) == SLOW {
                    tokio::time::sleep(A_WHILE).await;
                }
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pass(client, server, Arc::clone(&modes), Arc::clone(&counted)));
            }
        });
        Self { url: format!("{}{own}{}", &url[..start], &url[end..]), mode, answered }
    }

    async fn open(&self) -> Store {
        self.open_with(schema()).await
    }

    pub(crate) async fn open_with(&self, schema: Schema) -> Store {
        let database = Database::Postgres { url: self.url.clone() };
        let settings = Settings { connections: 1, ..Settings::new(database) };
        Store::open_with(settings, schema, Arc::new(System), entropy()).await.unwrap()
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, mode: Arc<AtomicU8>, answered: Arc<AtomicUsize>) {
    let (mut from_client, mut from_server) = (vec![0; 65536], vec![0; 65536]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(count @ 1..) = read else { return };
                let sent = &from_client[..count];
                let holds = |text: &[u8]| sent.windows(text.len()).any(|window| window == text);
                let cut = match mode.load(Ordering::SeqCst) {
                    SWALLOW_ANSWER | SWALLOW_COMMIT | POOLER_AT_COMMIT | OTHER_POOLER_AT_COMMIT | CANCELLED_AT_COMMIT => {
                        holds(b"commit\0")
                    }
                    CUT_AT_INSERT
                    | GONE_AT_INSERT
                    | SLOW_AFTER_INSERT
                    | POOLER_AT_INSERT
                    | OTHER_POOLER_AT_INSERT
                    | CANCELLED_AT_INSERT => holds(b"insert into postings"),
                    SILENT_AT_READ => holds(b"from postings"),
                    _ => false,
                };
                if cut {
                    let was = mode.swap(PASS, Ordering::SeqCst);
                    if was == CANCELLED_AT_COMMIT || was == CANCELLED_AT_INSERT {
                        server.write_all(sent).await.unwrap();
                        client.write_all(WAIT_CANCELLED).await.unwrap();
                        continue;
                    }
                    if was == GONE_AT_INSERT {
                        mode.store(GONE, Ordering::SeqCst);
                    }
                    if was == SLOW_AFTER_INSERT {
                        mode.store(SLOW, Ordering::SeqCst);
                    }
                    if [SWALLOW_ANSWER, POOLER_AT_COMMIT, OTHER_POOLER_AT_COMMIT].contains(&was) {
                        server.write_all(sent).await.unwrap();
                        // Until the server has answered, so that it can't notice the cut before it commits.
                        let _ = server.read(&mut from_server).await;
                    }
                    if was == SILENT_AT_READ {
                        tokio::time::sleep(Duration::from_secs(60)).await;
                    }
                    match was {
                        POOLER_AT_INSERT | POOLER_AT_COMMIT => client.write_all(SERVER_CRASHED).await.unwrap(),
                        OTHER_POOLER_AT_INSERT | OTHER_POOLER_AT_COMMIT => client.write_all(SERVER_GONE).await.unwrap(),
                        _ => {}
                    }
                    return;
                }
                if server.write_all(sent).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut from_server) => {
                let Ok(count @ 1..) = read else { return };
                answered.fetch_add(count, Ordering::SeqCst);
                if client.write_all(&from_server[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}
