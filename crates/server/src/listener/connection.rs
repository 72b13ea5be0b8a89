//! One connection, from its first byte to its end: HTTP/1 or HTTP/2 by its first bytes, watched all the while.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body as HttpBody;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
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

use super::activity::{Activity, Slowness, Ticket, Untaken};
use super::{ClientAddress, ListenerSettings, Serving, Unsayable};
use crate::request_id::RequestId;
use crate::{metrics, monotonic};

/// A little more than the router accepts, so that most oversized headers get a proper answer.
const MOST_HTTP1_BUFFER: usize = 64 * 1024;
const MOST_HTTP2_HEADERS: u32 = 16 * 1024;
const MOST_STREAMS: u32 = 100;
const MOST_RESET_STREAMS: usize = 20;
const MOST_OWN_RESETS: usize = 100;
/// hyper takes a part as soon as one byte of it can be sent: this and its buffer bound what it holds of an answer that nobody takes,
/// and so much of each answer has to be taken within the time for it. A frame of HTTP/2 holds as much.
const LARGEST_PART: usize = 16 * 1024;

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
    pub(super) fn agreed<I>(stream: &TlsStream<I>) -> Self {
        match stream.get_ref().1.alpn_protocol() {
            Some(b"http/1.1") => Self::Http1,
            _ => Self::HyperFindsOut,
        }
    }
}

/// The stream, or what TLS is spoken over, is [`Watched`] for this activity.
pub(super) async fn run<I>(
    stream: I,
    activity: Arc<Activity>,
    protocol: Protocol,
    peer: SocketAddr,
    serving: Serving,
    mut draining: watch::Receiver<bool>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let builder = builder(&serving.settings, protocol);
    let io = TokioIo::new(stream);
    let service = service_fn({
        let activity = activity.clone();
        move |request| answer(request, peer, &serving, &activity)
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
    serving: &Serving,
    activity: &Arc<Activity>,
) -> impl Future<Output = Result<Response<AnswerBody>, NoAnswer>> + Send + use<> {
    let Serving { router, settings, streams } = serving;
    let ticket = activity.request_began(request.version());
    let has_place = request.version() != Version::HTTP_2 || streams.take(peer.ip()).map(|it| ticket.keeps(it)).is_ok();
    let response = has_place.then(|| {
        let address = ClientAddress::new(peer, request.headers(), settings.trusted_proxies);
        let deadline = monotonic::now() + settings.body_timeout;
        let mut request = request.map(|body| HttpBody::new(TimedBody::new(body, deadline)));
        request.extensions_mut().insert(address);
        router.clone().call(request)
    });
    async move {
        let Some(response) = response else { return Ok(too_many_streams(ticket)) };
        let response = response.await.unwrap_or_else(|never| match never {});
        if response.extensions().get::<Unsayable>().is_some() {
            metrics::connection_cut("unknown_outcome");
            return Err(NoAnswer);
        }
        Ok(response.map(|body| AnswerBody::new(body, ticket)))
    }
}

/// Without a body: a client that opens no window would make us keep it, and all that belongs to it.
fn too_many_streams(ticket: Arc<Ticket>) -> Response<AnswerBody> {
    metrics::request_shed("stream");
    let mut response = Response::new(AnswerBody::new(HttpBody::empty(), ticket));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let id = RequestId::new();
    headers.insert("x-request-id", HeaderValue::from_str(id.as_str()).expect("an id is of letters and digits"));
    response
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

/// An answer's body, handed on in parts that tell whether the other side takes them.
struct AnswerBody {
    body: HttpBody,
    /// What is left of the frame that came last.
    rest: Bytes,
    ticket: Arc<Ticket>,
    /// While what comes next is not asked for, which over HTTP/2 is when the other side lets no more through. While it is, and is
    /// not there yet, nothing waits for the other side: an event stream may be silent.
    unasked: Option<Untaken>,
}

/// Dropped when its bytes are written or will never be.
struct Part {
    bytes: Bytes,
    _untaken: Untaken,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AnswerBody {
    fn new(body: HttpBody, ticket: Arc<Ticket>) -> Self {
        ticket.answer_begins(body.size_hint().exact());
        let unasked = Some(Untaken::of(&ticket));
        Self { body, rest: Bytes::new(), ticket, unasked }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, rest, ticket, unasked } = &mut *self;
        let asked = unasked.take();
        if rest.is_empty() {
            let frame = match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => frame.into_data(),
                end => return Poll::Ready(end),
            };
            match frame {
                Ok(data) => *rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let bytes = rest.split_to(rest.len().min(LARGEST_PART));
        // That it is asked for is no progress: what waited for that waits on with the part.
        let part = Part { bytes, _untaken: asked.unwrap_or_else(|| Untaken::of(ticket)) };
        let is_last = rest.is_empty() && body.is_end_stream();
        *unasked = (!is_last).then(|| Untaken::of(ticket));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, of_body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + of_body.lower());
        if let Some(upper) = of_body.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

/// The byte stream as the network sees it, reporting what moves and what does not. TLS is spoken over it: above TLS a flush is
/// blocked for as long as anything is left there, however much goes meanwhile.
pub(super) struct Watched<I> {
    stream: I,
    activity: Arc<Activity>,
}

impl<I> Watched<I> {
    pub(super) fn new(stream: I, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }
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

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _, stream};
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_under_way_until_its_last_part_is_taken() {
        let activity = Activity::new(Arc::new(ListenerSettings::default()));
        let waits_for = || activity.deadline().map(|(_, slowness)| slowness);
        let mut body = AnswerBody::new(HttpBody::from(vec![b'x'; 40_000]), activity.request_began(Version::HTTP_2));
        assert_eq!(waits_for(), Some(Slowness::Write), "it is not asked for yet");
        let mut parts = Vec::new();
        while let Some(frame) = body.frame().await {
            parts.push(frame.unwrap().into_data().unwrap());
            let sent: usize = parts.iter().map(Bytes::len).sum();
            assert_eq!(body.size_hint().exact(), Some(40_000 - sent as u64));
        }
        assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [16_384, 16_384, 7_232]);
        drop(body);
        for part in parts {
            assert_eq!(waits_for(), Some(Slowness::Write));
            drop(part);
        }
        assert_eq!(waits_for(), Some(Slowness::Idle));
    }

    #[tokio::test]
    async fn an_answer_waits_between_its_parts_and_an_event_stream_between_its_events_does_not() {
        let activity = Activity::new(Arc::new(ListenerSettings::default()));
        let waits_for = || activity.deadline().map(|(_, slowness)| slowness);
        let mut body = AnswerBody::new(HttpBody::from(vec![b'x'; 40_000]), activity.request_began(Version::HTTP_2));
        drop(body.frame().await);
        assert_eq!(waits_for(), Some(Slowness::Write), "the first part is taken, and the second not asked for");
        drop(body);
        assert_eq!(waits_for(), Some(Slowness::Idle));

        let event = stream::once(async { Ok::<_, io::Error>(Bytes::from_static(b"data: news\n\n")) });
        let events = HttpBody::from_stream(event.chain(stream::pending()));
        let mut body = AnswerBody::new(events, activity.request_began(Version::HTTP_2));
        drop(body.frame().await);
        assert_eq!(waits_for(), Some(Slowness::Write), "who never asks for the next event takes nothing");
        assert!(body.frame().now_or_never().is_none());
        assert_eq!(waits_for(), None, "there is no other event yet");
    }

    #[tokio::test]
    async fn a_part_that_goes_puts_off_the_deadline_of_its_own_answer_only() {
        let activity = Activity::new(Arc::new(ListenerSettings::default()));
        let deadline = || activity.deadline().map(|(at, _)| at);
        let moment = || tokio::time::sleep(std::time::Duration::from_millis(5));
        let [slow, stuck] = [(); 2].map(|()| activity.request_began(Version::HTTP_2));
        let (first, _second) = (Untaken::of(&slow), Untaken::of(&slow));
        let of_the_first = deadline();
        moment().await;
        let other = Untaken::of(&stuck);
        assert_eq!(deadline(), of_the_first);
        moment().await;
        drop(first);
        let of_the_other = deadline();
        assert!(of_the_other > of_the_first);
        moment().await;
        activity.write_is_blocked(false);
        assert_eq!(deadline(), of_the_other, "what is written of anything else puts nothing off");
        drop(other);
        assert!(deadline() > of_the_other);
    }
}
