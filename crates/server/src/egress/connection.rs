//! How a connection is made: to addresses that were checked, in time, as one of a number, secured where the URL says so, and with a
//! ceiling on what the other side may say before we say something again.
//!
//! The HTTP client reads by itself the answers that say that the answer is still to come (1xx), however many there are, and TLS the
//! tickets for other sessions: without the ceiling, a receiver that says nothing else would keep a core busy for as long as it likes.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Extensions, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tower::{BoxError, Service};

use super::policy::Reach;
use super::resolver::{CheckedResolver, Resolver};
use crate::monotonic;

/// Below TLS. The largest file fits, with what is said before it.
pub(super) const MOST_SAID: usize = 2 * super::LARGEST_FILE;
/// Of all receivers together, in use and kept: each costs a file and some kilobytes.
pub(super) const MOST_CONNECTIONS: usize = 2_048;
/// A machine that is gone says nothing: after so long it is asked whether it is there, as often and as soon as this.
const SILENCE: Duration = Duration::from_secs(15);
const QUESTIONS: u32 = 3;
/// Nor does one that takes nothing any more, and is there.
#[cfg(target_os = "linux")]
const UNTAKEN: Duration = Duration::from_secs(30);

/// What all connectors of one client share.
#[derive(Clone)]
pub(super) struct Means {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) tls: ClientConfig,
    pub(super) places: Arc<Semaphore>,
    /// For one connection, until it is secured: the client makes some that no call waits for any more.
    pub(super) timeout: Duration,
}

pub(super) type Stream = MaybeHttpsStream<TokioIo<Bounded<TcpStream>>>;

#[derive(Clone)]
pub(super) struct Connector {
    secured: HttpsConnector<Plain>,
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(reach: Reach, Means { resolver, tls, places, timeout }: Means) -> Self {
        let mut http = HttpConnector::new_with_resolver(CheckedResolver { resolver, reach });
        // It makes the connections that TLS is laid upon as well.
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(SILENCE));
        http.set_keepalive_interval(Some(SILENCE));
        http.set_keepalive_retries(Some(QUESTIONS));
        #[cfg(target_os = "linux")]
        http.set_tcp_user_timeout(Some(UNTAKEN));
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
        let builder = match reach {
            Reach::Public => builder.https_only(),
            Reach::Loopback => builder.https_or_http(),
        };
        // A call has its connection for itself: on one that is shared, as in HTTP/2, a receiver that hangs would hold up others at
        // the same address, one that vanishes all that follow, and each of its pings would make room for more words.
        Self { secured: builder.enable_http1().wrap_connector(Plain { http, places }), timeout }
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.secured.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let made = tokio::time::timeout(self.timeout, self.secured.call(uri));
        Box::pin(async { made.await? })
    }
}

/// What TLS is laid upon.
#[derive(Clone)]
pub(super) struct Plain {
    http: HttpConnector<CheckedResolver>,
    places: Arc<Semaphore>,
}

impl Service<Uri> for Plain {
    type Response = TokioIo<Bounded<TcpStream>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (place, made) = (Arc::clone(&self.places).acquire_owned(), self.http.call(uri));
        Box::pin(async {
            let place = place.await?;
            Ok(TokioIo::new(Bounded::new(made.await?.into_inner(), place)))
        })
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
    made_at: MadeAt,
    /// Free again when this ends.
    _place: OwnedSemaphorePermit,
}

/// When a connection was made, and the address that it leads to was checked.
#[derive(Clone, Copy, Debug)]
struct MadeAt(Instant);

/// How long ago that was.
pub(super) fn age(connected: &Connected) -> Duration {
    let mut known = Extensions::new();
    connected.get_extras(&mut known);
    known.get::<MadeAt>().map_or(Duration::MAX, |MadeAt(made)| made.elapsed())
}

impl<S> Bounded<S> {
    fn new(stream: S, place: OwnedSemaphorePermit) -> Self {
        Self { stream, said: 0, made_at: MadeAt(monotonic::now()), _place: place }
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
        self.stream.connected().extra(self.made_at)
    }
}
