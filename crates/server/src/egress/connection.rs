//! How a connection is made: for a call, and no longer than that waits for it; to addresses that were checked; as one of a number;
//! secured where the URL says so; and with an end, and a ceiling on what the other side may say before we say something again.
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
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Service};

use super::policy::Reach;
use super::resolver::{CheckedResolver, Resolver};
use crate::monotonic;

/// Below TLS. The largest file fits, with what is said before it.
pub(super) const MOST_SAID: usize = 2 * super::LARGEST_FILE;
/// Of all receivers of a mode together, in use and kept: each costs a file and some kilobytes.
pub(super) const MOST_CONNECTIONS: usize = 2_048;
/// A machine that is gone says nothing: after so long a silence it is asked whether it is there, and again after as long.
const SILENCE: Duration = Duration::from_secs(15);
/// So many questions without an answer end the connection.
const QUESTIONS: u32 = 3;
/// So does what was sent and not taken for so long.
#[cfg(target_os = "linux")]
const UNTAKEN: Duration = Duration::from_secs(30);

tokio::task_local! {
    /// Closed when the call that connections are made for has ended.
    static CALL: watch::Receiver<()>;
}

/// Makes a call. The client makes a connection for it even when another comes free first: what is not there when the call ends
/// is given up with it.
pub(super) async fn during<T>(call: impl Future<Output = T>) -> T {
    let (_ends, ended) = watch::channel(());
    CALL.scope(ended, call).await
}

/// What connectors of one client have in common.
#[derive(Clone)]
pub(super) struct Means {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) tls: ClientConfig,
    /// How many connections there may be of one connector.
    pub(super) most: usize,
    /// How long a connection is there at most, whatever it does.
    pub(super) life: Duration,
}

pub(super) type Stream = MaybeHttpsStream<TokioIo<Bounded<TcpStream>>>;

#[derive(Clone)]
pub(super) struct Connector {
    secured: HttpsConnector<Plain>,
    #[cfg(test)]
    places: Arc<Semaphore>,
}

impl Connector {
    pub(super) fn new(reach: Reach, Means { resolver, mut tls, most, life }: Means) -> Self {
        let mut http = HttpConnector::new_with_resolver(CheckedResolver { resolver, reach });
        // It makes the connections that TLS is laid upon as well.
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(SILENCE));
        http.set_keepalive_interval(Some(SILENCE));
        http.set_keepalive_retries(Some(QUESTIONS));
        #[cfg(target_os = "linux")]
        http.set_tcp_user_timeout(Some(UNTAKEN));
        // A call has its connection for itself: on one that is shared, as in HTTP/2, a receiver that hangs would hold up others at
        // the same address, one that vanishes all that follow, and each of its pings would make room for more words.
        let places = Arc::new(Semaphore::new(most));
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut secured = HttpsConnector::from((Plain { http, places: Arc::clone(&places), life }, tls));
        if reach == Reach::Public {
            secured.enforce_https();
        }
        Self {
            secured,
            #[cfg(test)]
            places,
        }
    }
}

#[cfg(test)]
impl Connector {
    /// How many connections there are, of those that may be.
    pub(super) fn under_way(&self) -> usize {
        MOST_CONNECTIONS - self.places.available_permits()
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
        let (made, call) = (self.secured.call(uri), CALL.try_with(watch::Receiver::clone));
        Box::pin(async {
            let mut call = call?;
            tokio::select! {
                made = made => made,
                _ended = call.changed() => Err(NobodyWaits.into()),
            }
        })
    }
}

/// What TLS is laid upon.
#[derive(Clone)]
pub(super) struct Plain {
    http: HttpConnector<CheckedResolver>,
    places: Arc<Semaphore>,
    life: Duration,
}

impl Service<Uri> for Plain {
    type Response = TokioIo<Bounded<TcpStream>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (place, made, life) = (Arc::clone(&self.places).acquire_owned(), self.http.call(uri), self.life);
        Box::pin(async move {
            let place = place.await?;
            let begun = monotonic::now();
            Ok(TokioIo::new(Bounded::new(made.await?.into_inner(), place, begun, life)))
        })
    }
}

/// Why a connection is not made: its call has ended.
#[derive(Debug)]
struct NobodyWaits;

impl fmt::Display for NobodyWaits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the call that it was for has ended")
    }
}

impl Error for NobodyWaits {}

/// Why a connection is given up: it has said more than anything that it may be asked for.
#[derive(Debug)]
pub(super) struct SaidTooMuch;

impl fmt::Display for SaidTooMuch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "more than {} MiB were said before an end", MOST_SAID >> 20)
    }
}

impl Error for SaidTooMuch {}

/// A connection on which the other side may say so much after each word of ours, and that has an end: one that takes what is left
/// of a request a byte at a time, after it has answered, would else be there for ever.
#[derive(Debug)]
pub(super) struct Bounded<S> {
    stream: S,
    said: usize,
    begun: Begun,
    end: Pin<Box<Sleep>>,
    /// Free again when this ends.
    _place: OwnedSemaphorePermit,
}

/// When a connection was begun, before the address that it leads to was looked up and checked.
#[derive(Clone, Copy, Debug)]
struct Begun(Instant);

/// How long ago that was.
pub(super) fn age(connected: &Connected) -> Duration {
    let mut known = Extensions::new();
    connected.get_extras(&mut known);
    known.get::<Begun>().map_or(Duration::MAX, |Begun(moment)| moment.elapsed())
}

impl<S> Bounded<S> {
    fn new(stream: S, place: OwnedSemaphorePermit, begun: Instant, life: Duration) -> Self {
        let end = Box::pin(tokio::time::sleep_until(begun + life));
        Self { stream, said: 0, begun: Begun(begun), end, _place: place }
    }

    /// Whatever is waited for ends with it.
    fn alive(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.end.as_mut().poll(context) {
            Poll::Pending => Ok(()),
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
        }
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
        this.alive(context)?;
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
        this.alive(context)?;
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.written(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.alive(context)?;
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alive(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alive(context)?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: Connection> Connection for Bounded<S> {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.begun)
    }
}
