//! A connection on which the mail server may say only so much.
//!
//! The client looks at the length of a line once it has all of it: what never ends would be kept until the time is up. Below STARTTLS
//! this stands under TLS, where there are no lines to be seen: there it is all the bytes that are bounded, and no line is longer than
//! what it came in, since TLS does not compress.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::line_by_line::LineByLine;

/// A server says lines of up to 512 bytes (RFC 5321, 4.5.3.1.5), and the client takes 1,000.
const LONGEST_LINE: usize = 4 << 10;
/// On one connection. The client takes an answer of 100,000 bytes, and there are about ten of them.
const MOST: usize = 1 << 20;
/// What we send when TLS begins is a record of this type (RFC 8446, 5.1). A command begins with a letter.
const HANDSHAKE: u8 = 22;

#[derive(Debug)]
pub(super) struct Bounded<S> {
    stream: S,
    read: usize,
    /// Of the line that has not ended yet.
    read_of_line: usize,
    has_lines: bool,
}

impl<S> Bounded<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, read: 0, read_of_line: 0, has_lines: true }
    }

    fn count(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.read = self.read.saturating_add(bytes.len());
        if self.read > MOST {
            return Err(io::Error::other("it sent more than 1 MiB"));
        }
        if !self.has_lines {
            return Ok(());
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.read_of_line += part.len();
            if self.read_of_line > LONGEST_LINE {
                return Err(io::Error::other("it sent a line of more than 4 KiB"));
            }
            if part.ends_with(b"\n") {
                self.read_of_line = 0;
            }
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, into))?;
        Poll::Ready(this.count(&into.filled()[before..]))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if bytes.first() == Some(&HANDSHAKE) {
            this.has_lines = false;
        }
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl AsyncTokioStream for Bounded<LineByLine> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.0.peer_addr()
    }
}

/// TLS from the start.
impl AsyncTokioStream for Bounded<TlsStream<TcpStream>> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        let (stream, _) = self.stream.get_ref();
        stream.peer_addr()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore, ServerConfig};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    const OFFERED: usize = 8 << 20;

    /// So much of what is said again and again as somebody reads.
    async fn say(mut stream: impl AsyncWrite + Unpin, what: &[u8]) {
        for _ in 0..OFFERED / what.len() {
            if stream.write_all(what).await.is_err() {
                return;
            }
        }
    }

    async fn connected(what: Vec<u8>, by: Option<TlsAcceptor>) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("somebody");
            match by {
                Some(acceptor) => say(acceptor.accept(stream).await.expect("a handshake"), &what).await,
                None => say(stream, &what).await,
            }
        });
        TcpStream::connect(address).await.expect("somebody listens")
    }

    async fn plain(what: Vec<u8>) -> Bounded<LineByLine> {
        Bounded::new(LineByLine(connected(what, None).await))
    }

    async fn encrypted(what: Vec<u8>) -> Bounded<TlsStream<TcpStream>> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let theirs = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("they fit");
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a root");
        let ours = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = connected(what, Some(TlsAcceptor::from(Arc::new(theirs)))).await;
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = TlsConnector::from(Arc::new(ours)).connect(name, stream).await.expect("a handshake");
        Bounded::new(stream)
    }

    /// How much is handed on, and what ends it.
    async fn read(mut stream: impl AsyncRead + Unpin) -> (usize, String) {
        let (mut bytes, mut all) = (vec![0; 8 << 10], 0);
        loop {
            match stream.read(&mut bytes).await {
                Ok(0) => return (all, "its end".to_owned()),
                Ok(read) => all += read,
                Err(error) => return (all, error.to_string()),
            }
        }
    }

    fn lines() -> Vec<u8> {
        format!("250-{}\r\n", "a".repeat(994)).repeat(64).into_bytes()
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_not_read_on() {
        let endless = || vec![b'a'; 64 << 10];
        for (read, cause) in [read(plain(endless()).await).await, read(encrypted(endless()).await).await] {
            assert!(read <= LONGEST_LINE, "{read}");
            assert_eq!(cause, "it sent a line of more than 4 KiB");
        }
    }

    #[tokio::test]
    async fn lines_without_an_end_are_not_read_on() {
        for (read, cause) in [read(plain(lines()).await).await, read(encrypted(lines()).await).await] {
            assert!(read <= MOST && read > MOST - (16 << 10), "{read}");
            assert_eq!(cause, "it sent more than 1 MiB");
        }
    }

    /// After STARTTLS there are no lines to be seen from below.
    #[tokio::test]
    async fn below_tls_everything_is_counted_together() {
        let mut stream = plain(vec![b'a'; 64 << 10]).await;
        stream.write_all(b"\x16\x03\x01").await.expect("written");
        let (read, cause) = read(stream).await;
        assert!(read <= MOST && read > MOST - (16 << 10), "{read}");
        assert_eq!(cause, "it sent more than 1 MiB");
    }
}
