//! Calls over TLS, to a receiver that is vouched for here.

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::*;

const THANKS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nthanks";

/// A receiver, and a client that trusts it.
struct Receiver {
    egress: Egress,
    url: Url,
    authorities: RootCertStore,
    /// What became of connections: how many were made, and how many have ended.
    made: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

impl Receiver {
    async fn start<T>(talk: impl Fn(TlsStream<TcpStream>) -> T + Send + Sync + 'static) -> Self
    where
        T: Future<Output = ()> + Send + 'static,
    {
        Self::that_secures(usize::MAX, talk).await
    }

    async fn that_secures<T>(first: usize, talk: impl Fn(TlsStream<TcpStream>) -> T + Send + Sync + 'static) -> Self
    where
        T: Future<Output = ()> + Send + 'static,
    {
        Self::that_speaks(&[b"h2", b"http/1.1"], first, talk).await
    }

    /// Secures the first connections; of the others it takes what comes, and never answers.
    async fn that_speaks<T>(
        protocols: &[&[u8]],
        first: usize,
        talk: impl Fn(TlsStream<TcpStream>) -> T + Send + Sync + 'static,
    ) -> Self
    where
        T: Future<Output = ()> + Send + 'static,
    {
        let made = rcgen::generate_simple_self_signed(["shop.localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let mut tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("they fit");
        tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let (acceptor, talk) = (TlsAcceptor::from(Arc::new(tls)), Arc::new(talk));
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = socket.local_addr().expect("bound").port();
        let (count, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counted, ends) = (Arc::clone(&count), Arc::clone(&ended));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = socket.accept().await {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let (acceptor, talk, ends) = (acceptor.clone(), Arc::clone(&talk), Arc::clone(&ends));
                tokio::spawn(async move {
                    if number < first {
                        // Who only looks hangs up, and who doubts too.
                        if let Ok(stream) = acceptor.accept(stream).await {
                            talk(stream).await;
                        }
                    } else {
                        while stream.read(&mut [0; 4096]).await.is_ok_and(|length| length > 0) {}
                    }
                    ends.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        let mut authorities = RootCertStore::empty();
        authorities.add(made.cert.der().clone()).expect("a root");
        let url = Url::parse(&format!("https://shop.localhost:{port}/hook")).expect("a URL");
        Self { egress: Egress::trusting(settings(), authorities.clone()), url, authorities, made: count, ended }
    }

    /// Another client that trusts it.
    fn client(&self, settings: EgressSettings) -> Egress {
        Egress::trusting(settings, self.authorities.clone())
    }

    async fn post(&self) -> Result<Answer, Failure> {
        post(&self.egress, &self.url).await
    }
}

fn settings() -> EgressSettings {
    let names = FakeNames::default();
    names.say("shop.localhost", &[&["127.0.0.1"]]);
    let resolver: Arc<dyn Resolver> = Arc::new(names);
    EgressSettings { allow_loopback: true, timeout: Duration::from_secs(5), resolver, ..EgressSettings::default() }
}

async fn post(egress: &Egress, url: &Url) -> Result<Answer, Failure> {
    egress.post(url, HeaderMap::new(), Bytes::from_static(b"{}"), false).await
}

/// One request after the other.
async fn thank(mut stream: TlsStream<TcpStream>) {
    let mut request = [0; 4096];
    while stream.read(&mut request).await.is_ok_and(|length| length > 0) {
        let _ = stream.write_all(THANKS).await;
    }
}

#[tokio::test]
async fn who_only_says_that_an_answer_is_to_come_is_not_listened_to_for_long() {
    let receiver = Receiver::start(async |mut stream| {
        let _request = stream.read(&mut [0; 4096]).await;
        let said = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(1_000);
        while stream.write_all(&said).await.is_ok() {}
    })
    .await;
    let failure = receiver.post().await.expect_err("a failure");
    // And not that its time is over.
    assert_eq!(failure.kind, FailureKind::Other);
    assert!(failure.message.contains("4 MiB"), "{failure}");
}

#[tokio::test]
async fn nobody_is_trusted_who_is_not_vouched_for() {
    let receiver = Receiver::start(thank).await;
    assert!(receiver.egress.connect(&receiver.url, false).await.is_ok());
    assert_eq!(receiver.post().await.expect("an answer").status.as_u16(), 200);
    let doubting = Egress::trusting(settings(), RootCertStore::empty());
    for failure in [
        post(&doubting, &receiver.url).await.expect_err("a failure"),
        doubting.connect(&receiver.url, false).await.expect_err("a failure"),
    ] {
        assert_eq!(failure.kind, FailureKind::Tls, "{failure}");
    }
}

#[tokio::test]
async fn a_receiver_that_does_not_speak_our_http_is_told_of_as_such() {
    let receiver = Receiver::that_speaks(&[b"h2"], usize::MAX, thank).await;
    let failure = receiver.post().await.expect_err("a failure");
    assert_eq!(failure.kind, FailureKind::Tls, "{failure}");
    assert!(failure.message.ends_with("it does not speak HTTP/1.1."), "{failure}");
    let older = Receiver::that_speaks(&[], usize::MAX, thank).await;
    assert_eq!(older.post().await.expect("an answer").status.as_u16(), 200, "who says nothing of it does");
}

/// The client begins a connection for a call, and another call's comes free first: nobody waits for it any more.
#[tokio::test]
async fn connections_that_nobody_waits_for_end_with_their_calls() {
    const CALLS: usize = 8;
    let receiver = Receiver::that_secures(1, thank).await;
    let answers = futures_util::future::join_all((0..CALLS).map(|_| receiver.post())).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let made = receiver.made.load(Ordering::SeqCst);
    assert!(made > 1, "all went by one from the start");
    let begun = crate::monotonic::now();
    while receiver.ended.load(Ordering::SeqCst) < made - 1 {
        // Sooner than the time of a call is over, which would end them as well.
        assert!(begun.elapsed() < Duration::from_secs(3), "{} of {made}", receiver.ended.load(Ordering::SeqCst));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_connection_is_not_used_for_longer_than_its_check_is_good_for() {
    let receiver = Receiver::start(thank).await;
    for (reuse, most) in [(Duration::from_secs(60), 1), (Duration::ZERO, 3)] {
        let before = receiver.made.load(Ordering::SeqCst);
        let egress = receiver.client(EgressSettings { reuse, ..settings() });
        for _ in 0..3 {
            assert_eq!(post(&egress, &receiver.url).await.expect("an answer").status.as_u16(), 200);
            // It is given back when its answer was read.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(receiver.made.load(Ordering::SeqCst) - before, most, "{reuse:?}");
    }
}

#[tokio::test]
async fn there_are_so_many_connections_and_no_more() {
    let receiver = Receiver::start(thank).await;
    let EgressSettings { resolver, .. } = settings();
    let tls = tls_trusting(receiver.authorities.clone());
    let connector = Connector::new(Reach::Loopback, Means { resolver, tls, most: 2, life: Duration::from_secs(60) });
    let connect = || connection::during(connector.clone().oneshot(address_of(&receiver.url).expect("an address")));
    let kept = [connect().await.expect("the first"), connect().await.expect("the second")];
    let mut third = Box::pin(connect());
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut third).await.is_err(), "there was no place");
    drop(kept);
    assert!(third.await.is_ok());
}

/// It has answered, and nothing is wrong with it: but what it was sent it never takes.
#[tokio::test]
async fn a_receiver_that_answers_and_takes_nothing_keeps_no_connection() {
    let receiver = Receiver::start(async |mut stream| {
        let _head = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(THANKS).await;
        let _ = stream.flush().await;
        // A byte now and then keeps the system from giving it up.
        while stream.read(&mut [0; 1]).await.is_ok_and(|length| length > 0) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let egress = receiver.client(EgressSettings {
        timeout: Duration::from_millis(500),
        reuse: Duration::from_secs(1),
        ..settings()
    });
    let large = Bytes::from(vec![b'x'; 16 << 20]);
    let answer = egress.post(&receiver.url, HeaderMap::new(), large, false).await;
    assert_eq!(answer.expect("an answer").status.as_u16(), 200);
    let way = egress.loopback.as_ref().expect("it is allowed");
    assert_eq!(way.connector.under_way(), 1);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(way.connector.under_way(), 0);
}
