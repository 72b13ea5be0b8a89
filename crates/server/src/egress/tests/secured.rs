//! Calls over TLS and HTTP/2, to a receiver that is vouched for here.

use h2::Reason;
use h2::server::SendResponse;
use http::Response;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// A receiver, and a client that trusts it.
struct Receiver {
    egress: Egress,
    url: Url,
}

impl Receiver {
    async fn start(answer: impl Fn(SendResponse<Bytes>) + Send + Sync + 'static) -> Self {
        let made = rcgen::generate_simple_self_signed(["shop.localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let mut tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("they fit");
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let (acceptor, answer) = (TlsAcceptor::from(Arc::new(tls)), Arc::new(answer));
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = socket.local_addr().expect("bound").port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
                tokio::spawn(async move {
                    // Who only looks hangs up, and who doubts too.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
                    while let Some(Ok((_, respond))) = connection.accept().await {
                        answer(respond);
                    }
                });
            }
        });
        let names = FakeNames::default();
        names.say("shop.localhost", &[&["127.0.0.1"]]);
        let resolver: Arc<dyn Resolver> = Arc::new(names);
        let mut authorities = RootCertStore::empty();
        authorities.add(made.cert.der().clone()).expect("a root");
        let settings = EgressSettings { allow_loopback: true, timeout: Duration::from_secs(5), resolver };
        let url = Url::parse(&format!("https://shop.localhost:{port}/hook")).expect("a URL");
        Self { egress: Egress::trusting(settings, authorities), url }
    }

    async fn post(&self) -> Result<Answer, Failure> {
        self.egress.post(&self.url, HeaderMap::new(), Bytes::from_static(b"{}"), false).await
    }
}

#[tokio::test]
async fn what_was_refused_unseen_is_asked_once_more() {
    for (refusals, reason, expected) in [
        (0, Reason::REFUSED_STREAM, Some(1)),
        (1, Reason::REFUSED_STREAM, Some(2)),
        (9, Reason::REFUSED_STREAM, None),
        // It may have been looked at.
        (1, Reason::CANCEL, None),
    ] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let receiver = Receiver::start(move |mut respond| {
            if count.fetch_add(1, Ordering::SeqCst) < refusals {
                respond.send_reset(reason);
            } else {
                respond.send_response(Response::new(()), true).expect("answered");
            }
        })
        .await;
        let answer = receiver.post().await;
        assert_eq!(answer.is_ok(), expected.is_some(), "{refusals} {reason}");
        let most = if reason == Reason::CANCEL { 1 } else { 2 };
        assert_eq!(asked.load(Ordering::SeqCst), expected.unwrap_or(most), "{refusals} {reason}");
    }
}

#[tokio::test]
async fn who_only_says_that_an_answer_is_to_come_is_not_listened_to_for_long() {
    let receiver = Receiver::start(|mut respond| {
        tokio::spawn(async move {
            for number in 0_u64.. {
                // Each of another text: what was said before takes a byte.
                let said = Response::builder().status(103).header("link", format!("{number:0>1000}")).body(());
                if respond.send_informational(said.expect("a head")).is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        });
    })
    .await;
    let begun = crate::monotonic::now();
    // Not that its time is over.
    assert_eq!(receiver.post().await.expect_err("a failure").kind, FailureKind::Other);
    assert!(begun.elapsed() < Duration::from_secs(4), "it listened for {:?}", begun.elapsed());
}

#[tokio::test]
async fn nobody_is_trusted_who_is_not_vouched_for() {
    let receiver = Receiver::start(|mut respond| {
        respond.send_response(Response::new(()), true).expect("answered");
    })
    .await;
    assert!(receiver.egress.connect(&receiver.url, false).await.is_ok());
    assert_eq!(receiver.post().await.expect("an answer").status.as_u16(), 200);
    let names = FakeNames::default();
    names.say("shop.localhost", &[&["127.0.0.1"]]);
    let resolver: Arc<dyn Resolver> = Arc::new(names);
    let settings = EgressSettings { allow_loopback: true, timeout: Duration::from_secs(5), resolver };
    let doubting = Egress::trusting(settings, RootCertStore::empty());
    for failure in [
        doubting.post(&receiver.url, HeaderMap::new(), Bytes::new(), false).await.expect_err("a failure"),
        doubting.connect(&receiver.url, false).await.expect_err("a failure"),
    ] {
        assert_eq!(failure.kind, FailureKind::Tls, "{failure}");
    }
}
