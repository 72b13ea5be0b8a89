//! What can happen between a server and its database: a small proxy that cuts, swallows, stalls and refuses when told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const PASS: u8 = 0;
/// Nothing goes through, nothing is closed.
const STALL: u8 = 1;
/// Everything is closed, and nobody gets in.
const REFUSE: u8 = 2;

#[derive(Clone)]
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: AtomicU8,
    /// COMMITs to come whose answer gets lost, or that get lost themselves.
    answers_to_swallow: AtomicU32,
    commits_to_swallow: AtomicU32,
    /// COMMITs to come that are undone and answered as if they were done.
    commits_to_forge: AtomicU32,
    /// Grows when all connections are cut.
    cuts: watch::Sender<u32>,
}

impl Proxy {
    pub(crate) async fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            state: AtomicU8::new(PASS),
            answers_to_swallow: AtomicU32::new(0),
            commits_to_swallow: AtomicU32::new(0),
            commits_to_forge: AtomicU32::new(0),
            cuts: watch::Sender::new(0),
        });
        let proxy = Self { port, shared };
        let own = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let proxy = own.clone();
                tokio::spawn(async move { proxy.pass(client, to).await });
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub(crate) fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    pub(crate) fn swallow_answers(&self, count: u32) {
        self.shared.answers_to_swallow.fetch_add(count, Ordering::SeqCst);
    }

    pub(crate) fn swallow_commits(&self, count: u32) {
        self.shared.commits_to_swallow.fetch_add(count, Ordering::SeqCst);
    }

    pub(crate) fn forge_commits(&self, count: u32) {
        self.shared.commits_to_forge.store(count, Ordering::SeqCst);
    }

    pub(crate) async fn stall(&self, pause: Duration) {
        self.shared.state.store(STALL, Ordering::SeqCst);
        tokio::time::sleep(pause).await;
        self.shared.state.store(PASS, Ordering::SeqCst);
    }

    pub(crate) async fn refuse(&self, pause: Duration) {
        self.shared.state.store(REFUSE, Ordering::SeqCst);
        self.cut();
        tokio::time::sleep(pause).await;
        self.shared.state.store(PASS, Ordering::SeqCst);
    }

    /// What was ordered and has not happened yet doesn't happen any more.
    pub(crate) fn heal(&self) {
        self.shared.answers_to_swallow.store(0, Ordering::SeqCst);
        self.shared.commits_to_swallow.store(0, Ordering::SeqCst);
        self.shared.commits_to_forge.store(0, Ordering::SeqCst);
    }

    async fn pass(&self, mut client: TcpStream, to: u16) {
        let shared = &self.shared;
        if shared.state.load(Ordering::SeqCst) == REFUSE {
            return;
        }
        let Ok(mut server) = TcpStream::connect(("127.0.0.1", to)).await else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let mut cuts = shared.cuts.subscribe();
        let (mut from_client, mut from_server) = (vec![0; 65536], vec![0; 65536]);
        loop {
            tokio::select! {
                _ = cuts.changed() => return,
                read = client.read(&mut from_client) => {
                    let Ok(count @ 1..) = read else { return };
                    self.while_stalled().await;
                    let sent = &mut from_client[..count];
                    let commit = sent.windows(7).position(|window| window == b"commit\0");
                    let commits = commit.is_some();
                    if let Some(at) = commit.filter(|_| taken(&shared.commits_to_forge)) {
                        sent[at..at + 6].copy_from_slice(b"abort ");
                    }
                    if commits && taken(&shared.commits_to_swallow) {
                        return;
                    }
                    if server.write_all(sent).await.is_err() {
                        return;
                    }
                    if commits && taken(&shared.answers_to_swallow) {
                        // Until the server has answered, so that it can't notice the cut before it commits.
                        let _ = server.read(&mut from_server).await;
                        return;
                    }
                }
                read = server.read(&mut from_server) => {
                    let Ok(count @ 1..) = read else { return };
                    self.while_stalled().await;
                    if client.write_all(&from_server[..count]).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    async fn while_stalled(&self) {
        while self.shared.state.load(Ordering::SeqCst) == STALL {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// One of those that were ordered, if any is left.
fn taken(ordered: &AtomicU32) -> bool {
    ordered.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}
