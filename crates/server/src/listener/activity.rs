//! What a connection is doing, and until when it may go on doing only that.
//! Pure book-keeping: it is told of bytes, requests and answers, and names the next deadline.
//!
//! A request that comes and a part of an answer that goes put a deadline off. What else is written does not: HTTP/2 has frames, such
//! as the answer to a ping, by which a client that takes nothing would keep its connection and all its answers. No part puts off the end
//! of its whole answer: whoever took one now and then would hold the memory of all of it for hours.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use http::Version;
use tokio::time::Instant;

use super::ListenerSettings;
use super::places::Place;
use crate::monotonic;

pub(super) struct Activity {
    settings: Arc<ListenerSettings>,
    state: Mutex<State>,
    /// The connection's task; HTTP/2 answers run in tasks of their own and tell it of changes.
    pub(super) waker: AtomicWaker,
}

struct State {
    accepted_at: Instant,
    has_bytes: bool,
    requests: u64,
    is_http2: bool,
    in_flight: usize,
    idle_since: Instant,
    /// When the first byte of the next request's headers came (HTTP/1).
    head_since: Option<Instant>,
    write_blocked_since: Option<Instant>,
    flush_blocked_since: Option<Instant>,
    unfinished: Vec<Unfinished>,
}

/// An answer with parts that the other side has not taken yet.
struct Unfinished {
    /// The request's.
    number: u64,
    parts: usize,
    /// Since when none of them was taken.
    since: Instant,
    /// When all of it has to be taken, if it was known at its beginning how much that is.
    until: Option<Instant>,
}

/// Why a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slowness {
    FirstByte,
    Header,
    Idle,
    Write,
}

impl Slowness {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::FirstByte => "first_byte",
            Self::Header => "header",
            Self::Idle => "idle",
            Self::Write => "write",
        }
    }
}

impl Activity {
    pub(super) fn new(settings: Arc<ListenerSettings>) -> Arc<Self> {
        let now = monotonic::now();
        Arc::new(Self {
            settings,
            state: Mutex::new(State {
                accepted_at: now,
                has_bytes: false,
                requests: 0,
                is_http2: false,
                in_flight: 0,
                idle_since: now,
                head_since: None,
                write_blocked_since: None,
                flush_blocked_since: None,
                unfinished: Vec::new(),
            }),
            waker: AtomicWaker::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next moment at which patience ends, unless something happens before.
    pub(super) fn deadline(&self) -> Option<(Instant, Slowness)> {
        let state = self.state();
        let settings = &self.settings;
        let stuck = [state.write_blocked_since, state.flush_blocked_since];
        let stuck = stuck
            .into_iter()
            .flatten()
            .chain(state.unfinished.iter().map(|answer| answer.since))
            .map(|since| since + settings.write_timeout)
            .chain(state.unfinished.iter().filter_map(|answer| answer.until))
            .min()
            .map(|at| (at, Slowness::Write));
        let waiting = (state.in_flight == 0).then(|| {
            if state.requests == 0 && !state.has_bytes {
                (state.accepted_at + settings.first_byte_timeout, Slowness::FirstByte)
            } else if state.requests == 0 {
                (state.accepted_at + settings.header_timeout, Slowness::Header)
            } else if let Some(since) = state.head_since {
                (since + settings.header_timeout, Slowness::Header)
            } else {
                (state.idle_since + settings.idle_timeout, Slowness::Idle)
            }
        });
        let waiting =
            waiting.filter(|(_, slowness)| *slowness != Slowness::Header || !domain::planted!(Defect::NoHeaderTimer));
        stuck.into_iter().chain(waiting).min_by_key(|(at, _)| *at)
    }

    /// TLS is agreed on: what was read so far was of no request, and the first one is waited for from now on.
    pub(super) fn handshake_ended(&self) {
        let mut state = self.state();
        state.accepted_at = monotonic::now();
        state.has_bytes = false;
    }

    pub(super) fn bytes_were_read(&self) {
        let mut state = self.state();
        state.has_bytes = true;
        // Between HTTP/2 requests there are other frames, so only HTTP/1 bytes begin a request.
        if state.requests > 0 && state.in_flight == 0 && !state.is_http2 {
            state.head_since.get_or_insert_with(monotonic::now);
        }
    }

    pub(super) fn write_is_blocked(&self, blocked: bool) {
        note(&mut self.state().write_blocked_since, blocked);
    }

    pub(super) fn flush_is_blocked(&self, blocked: bool) {
        note(&mut self.state().flush_blocked_since, blocked);
    }

    pub(super) fn request_began(self: &Arc<Self>, version: Version) -> Arc<Ticket> {
        let mut state = self.state();
        state.is_http2 = version == Version::HTTP_2;
        state.requests += 1;
        state.in_flight += 1;
        state.head_since = None;
        Arc::new(Ticket {
            number: state.requests,
            until: OnceLock::new(),
            place: OnceLock::new(),
            activity: self.clone(),
        })
    }
}

fn note(since: &mut Option<Instant>, blocked: bool) {
    if blocked {
        since.get_or_insert_with(monotonic::now);
    } else {
        *since = None;
    }
}

/// One request from its headers until the last byte of its answer is taken: whatever holds a part of the answer holds it.
pub(super) struct Ticket {
    number: u64,
    until: OnceLock<Instant>,
    /// Of a request over HTTP/2.
    place: OnceLock<Place>,
    activity: Arc<Activity>,
}

impl Ticket {
    /// It has a place among all of its kind, for as long as anything of it is there.
    pub(super) fn keeps(&self, place: Place) {
        self.place.get_or_init(|| place);
    }

    /// An answer of so many bytes is there. One whose length nobody knows, such as an event stream, ends when it says so.
    pub(super) fn answer_begins(&self, bytes: Option<u64>) {
        let settings = &self.activity.settings;
        if let Some(bytes) = bytes {
            let for_its_length = Duration::from_secs(bytes / u64::from(settings.slowest_answer.get()));
            self.until.get_or_init(|| monotonic::now() + settings.answer_timeout + for_its_length);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.in_flight -= 1;
        if state.in_flight == 0 {
            state.idle_since = monotonic::now();
        }
        drop(state);
        self.activity.waker.wake();
    }
}

/// A part of an answer that waits for the other side, until it is dropped.
pub(super) struct Untaken(Arc<Ticket>);

impl Untaken {
    pub(super) fn of(ticket: &Arc<Ticket>) -> Self {
        let mut state = ticket.activity.state();
        match state.unfinished.iter_mut().find(|answer| answer.number == ticket.number) {
            Some(answer) => answer.parts += 1,
            None => {
                let (number, until) = (ticket.number, ticket.until.get().copied());
                state.unfinished.push(Unfinished { number, parts: 1, since: monotonic::now(), until });
                drop(state);
                ticket.activity.waker.wake();
            }
        }
        Self(ticket.clone())
    }
}

impl Drop for Untaken {
    fn drop(&mut self) {
        let mut state = self.0.activity.state();
        if let Some(answer) = state.unfinished.iter_mut().find(|answer| answer.number == self.0.number) {
            answer.parts -= 1;
            answer.since = monotonic::now();
        }
        state.unfinished.retain(|answer| answer.parts > 0);
    }
}
