//! The same over TLS.

use std::path::PathBuf;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::*;

/// A certificate and its key in files of their own, and who trusts it.
struct Certified {
    folder: PathBuf,
    connector: TlsConnector,
}

impl Certified {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dalasi-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        std::fs::write(folder.join("cert.pem"), made.cert.pem()).expect("writes");
        std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("writes");
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a root");
        let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { folder, connector: TlsConnector::from(Arc::new(client)) }
    }

    fn read(&self, certificate: &str, key: &str) -> Result<Arc<ServerConfig>, TlsFault> {
        tls_config(&self.folder.join(certificate), &self.folder.join(key))
    }
}

impl Drop for Certified {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").expect("a name")
}

#[tokio::test]
async fn tls_works_and_a_half_open_handshake_is_cut() {
    let certified = Certified::new("works");
    let tls = certified.read("cert.pem", "key.pem").expect("fits");
    let missing = certified.read("no.pem", "key.pem").expect_err("no file");
    assert!(missing.to_string().contains("no.pem can't be read as PEM"), "{missing}");
    let swapped = certified.read("key.pem", "key.pem").expect_err("no certificate");
    assert!(swapped.to_string().contains("holds no certificate"), "{swapped}");

    let server = start(ListenerSettings { tls: Some(tls), ..short() }).await;
    let mut stream = certified.connector.connect(localhost(), server.connect().await).await.expect("a handshake");
    stream.write_all(GET).await.expect("writes");
    let mut bytes = vec![0; 4096];
    let count = stream.read(&mut bytes).await.expect("reads");
    assert!(String::from_utf8_lossy(&bytes[..count]).contains("hello"));

    let mut half = server.connect().await;
    half.write_all(b"\x16\x03\x01").await.expect("writes");
    let (_, after) = read_to_end(&mut half).await;
    about(after, 400);
}

/// TLS keeps up to 64 KiB of what is written, so that it is never all flushed before the end, however steadily it goes.
#[tokio::test]
async fn a_slow_reader_over_tls_gets_the_whole_answer_and_who_reads_nothing_is_cut() {
    let certified = Certified::new("slow");
    let tls = TlsAcceptor::from(certified.read("cert.pem", "key.pem").expect("fits"));
    let peer: SocketAddr = "192.0.2.1:5000".parse().expect("an address");
    let (_drain, draining) = watch::channel(false);
    let begin = async || {
        let (ours, theirs) = tokio::io::duplex(16 * 1024);
        let task = tokio::spawn(serve_encrypted(
            ours,
            peer,
            tls.clone(),
            Serving::new(router(), Arc::new(short())),
            draining.clone(),
        ));
        let mut stream = certified.connector.connect(localhost(), theirs).await.expect("a handshake");
        stream.write_all(b"GET /mebibyte HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("writes");
        stream.flush().await.expect("flushes");
        (stream, task)
    };

    let (mut stream, _task) = begin().await;
    let began = monotonic::now();
    let (mut count, mut bytes) = (0, vec![0; 16 * 1024]);
    while count < 1 << 20 {
        let read = timeout(Duration::from_secs(5), stream.read(&mut bytes)).await.expect("in time");
        let read = read.unwrap_or_else(|error| panic!("cut after {count} bytes and {:?}: {error}", began.elapsed()));
        assert!(read > 0, "cut after {count} bytes and {:?}", began.elapsed());
        count += read;
        sleep(Duration::from_millis(20)).await;
    }
    assert!(began.elapsed() > Duration::from_millis(1000), "longer than a part may wait");

    let (stream, task) = begin().await;
    let began = monotonic::now();
    timeout(Duration::from_secs(5), task).await.expect("not for ever").expect("no panic");
    about(began.elapsed(), 400);
    drop(stream);
}
