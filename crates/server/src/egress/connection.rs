//! How a connection is made: to addresses that were checked, secured where the URL says so, and with a ceiling on what the other
//! side may say before we say something again.
//!
//! The HTTP client reads by itself the answers that say that the answer is still to come (1xx), however many there are: without
//! the ceiling, a receiver that says nothing else would keep a core busy for the whole time of a call.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use super::policy::Reach;
use super::resolver::{CheckedResolver, Resolver};

/// Above TLS. The largest file fits, with what is said before it.
pub(super) const MOST_SAID: usize = 2 * super::LARGEST_FILE;

pub(super) type Stream = TokioIo<Bounded<TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>>>;

#[derive(Clone)]
pub(super) struct Connector(HttpsConnector<HttpConnector<CheckedResolver>>);

impl Connector {
    pub(super) fn new(reach: Reach, resolver: Arc<dyn Resolver>, tls: ClientConfig) -> Self {
        let mut plain = HttpConnector::new_with_resolver(CheckedResolver { resolver, reach });
        // It makes the connections that TLS is laid upon as well.
        plain.enforce_http(false);
        plain.set_nodelay(true);
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
        let builder = match reach {
            Reach::Public => builder.https_only(),
            Reach::Loopback => builder.https_or_http(),
        };
        Self(builder.enable_all_versions().wrap_connector(plain))
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let made = self.0.call(uri);
        Box::pin(async { Ok(TokioIo::new(Bounded::new(TokioIo::new(made.await?)))) })
    }
}

/// Why a connection is given up: it has said more than anything that it may be asked for.
#[derive(Debug)]
pub(super) struct SaidTooMuch;

impl fmt::Display for SaidTooMuch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "more than {} MiB were said before an end", MOST_SAID >> 20)
    }
}

impl Error for SaidTooMuch {}

/// A connection on which the other side may say so much after each word of ours.
#[derive(Debug)]
pub(super) struct Bounded<S> {
    stream: S,
    said: usize,
}

impl<S> Bounded<S> {
    fn new(stream: S) -> Self {
        Self { stream, said: 0 }
    }

    /// What was written makes room for what is said next.
    fn written(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.said = 0;
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, into))?;
        this.said = this.said.saturating_add(into.filled().len() - before);
        if this.said > MOST_SAID && !domain::planted!(Defect::AnswerUncapped) {
            return Poll::Ready(Err(io::Error::other(SaidTooMuch)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.written(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: Connection> Connection for Bounded<S> {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}
