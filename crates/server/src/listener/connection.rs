//! One connection, from its first byte to its end: HTTP/1 or HTTP/2 by its first bytes, watched all the while.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::Body as HttpBody;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;
use tower::Service;

use super::activity::{Activity, Slowness, Ticket};
use super::{ClientAddress, ListenerSettings, Unsayable};
use crate::{metrics, monotonic};

/// A little more than the router accepts, so that most oversized headers get a proper answer.
const MOST_HTTP1_BUFFER: usize = 64 * 1024;
const MOST_HTTP2_HEADERS: u32 = 16 * 1024;
const MOST_STREAMS: u32 = 100;
const MOST_RESET_STREAMS: usize = 20;
const MOST_OWN_RESETS: usize = 100;

/// What is spoken on a connection, as far as it is known before a byte of it is taken. hyper's buffer for HTTP/1 is twice as
/// large for as long as the connection lives when it has to find that out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    HyperFindsOut,
}

/// How a client of HTTP/2 begins (RFC 9113, section 3.4), and no other.
const HTTP2_BEGINS: &[u8] = b"PRI";

impl Protocol {
    /// By the first bytes, once there are any.
    pub(super) async fn of(stream: &TcpStream) -> io::Result<Self> {
        let mut first = [0; HTTP2_BEGINS.len()];
        let count = stream.peek(&mut first).await?;
        Ok(if HTTP2_BEGINS.starts_with(&first[..count]) { Self::HyperFindsOut } else { Self::Http1 })
    }

    /// By what both sides agreed on before (ALPN).
    pub(super) fn agreed(stream: &TlsStream<TcpStream>) -> Self {
        match stream.get_ref().1.alpn_protocol() {
            Some(b"http/1.1") => Self::Http1,
            _ => Self::HyperFindsOut,
        }
    }
}

pub(super) async fn run<I>(
    stream: I,
    protocol: Protocol,
    peer: SocketAddr,
    router: Router,
    settings: Arc<ListenerSettings>,
    mut draining: watch::Receiver<bool>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Activity::new(settings.clone());
    let builder = builder(&settings, protocol);
    let io = TokioIo::new(Watched { stream, activity: activity.clone() });
    let service = service_fn({
        let activity = activity.clone();
        move |request| answer(request, peer, router.clone(), &settings, &activity)
    });
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut drain = pin!(draining.wait_for(|is_draining| *is_draining));
    let mut is_draining = false;
    let mut patience = pin!(sleep_until(monotonic::now()));

    let end = poll_fn(|cx| {
        activity.waker.register(cx.waker());
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        if !is_draining && drain.as_mut().poll(cx).is_ready() {
            is_draining = true;
            connection.as_mut().graceful_shutdown();
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
        }
        let Some((deadline, slowness)) = activity.deadline() else {
            return Poll::Pending;
        };
        if patience.deadline() != deadline {
            patience.as_mut().reset(deadline);
        }
        ready!(patience.as_mut().poll(cx));
        if slowness == Slowness::Idle {
            // Says goodbye where the protocol has a word for it.
            connection.as_mut().graceful_shutdown();
            let _ = connection.as_mut().poll(cx);
        }
        Poll::Ready(Some(slowness))
    })
    .await;
    match end {
        None | Some(Slowness::Idle) => {}
        Some(slowness) => metrics::connection_cut(slowness.as_str()),
    }
}

fn builder(settings: &ListenerSettings, protocol: Protocol) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // hyper counts idleness, and the sending of an answer's end, as part of reading headers; `Activity` does not.
        .header_read_timeout(None)
        .max_buf_size(MOST_HTTP1_BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_pending_accept_reset_streams(MOST_RESET_STREAMS)
        .max_local_error_reset_streams(MOST_OWN_RESETS)
        .max_header_list_size(MOST_HTTP2_HEADERS)
        .max_send_buf_size(MOST_HTTP1_BUFFER)
        .keep_alive_interval(settings.idle_timeout / 3)
        .keep_alive_timeout(settings.idle_timeout / 3);
    match protocol {
        Protocol::Http1 => builder.http1_only(),
        Protocol::HyperFindsOut => builder,
    }
}

fn answer(
    request: Request<Incoming>,
    peer: SocketAddr,
    mut router: Router,
    settings: &ListenerSettings,
    activity: &Arc<Activity>,
) -> impl Future<Output = Result<Response<AnswerBody>, NoAnswer>> + Send + use<> {
    let ticket = activity.request_began(request.version());
    let address = ClientAddress::new(peer, request.headers(), settings.trusted_proxies);
    let deadline = monotonic::now() + settings.body_timeout;
    let mut request = request.map(|body| HttpBody::new(TimedBody::new(body, deadline)));
    request.extensions_mut().insert(address);
    let response = router.call(request);
    async move {
        let response = response.await.unwrap_or_else(|never| match never {});
        if response.extensions().get::<Unsayable>().is_some() {
            metrics::connection_cut("unknown_outcome");
            return Err(NoAnswer);
        }
        ticket.part_is_ready();
        Ok(response.map(|body| AnswerBody { body, ticket }))
    }
}

/// hyper ends the connection at it; of HTTP/2, the stream.
#[derive(Debug)]
struct NoAnswer;

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what came of a request is not known")
    }
}

impl std::error::Error for NoAnswer {}

/// A request's body that has to be complete by a deadline; beyond it, it fails with `TimedOut`.
struct TimedBody {
    body: Incoming,
    deadline: Instant,
    patience: Option<Pin<Box<Sleep>>>,
}

impl TimedBody {
    fn new(body: Incoming, deadline: Instant) -> Self {
        Self { body, deadline, patience: None }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)));
        }
        let deadline = self.deadline;
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        ready!(patience.as_mut().poll(cx));
        Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body that tells whether the other side takes it.
struct AnswerBody {
    body: HttpBody,
    ticket: Ticket,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.ticket.part_was_taken();
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_some() {
            self.ticket.part_is_ready();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The byte stream, reporting what moves and what does not.
struct Watched<I> {
    stream: I,
    activity: Arc<Activity>,
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.bytes_were_read();
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.activity.write_is_blocked(written.is_pending());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.activity.write_is_blocked(written.is_pending());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.activity.flush_is_blocked(flushed.is_pending());
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
