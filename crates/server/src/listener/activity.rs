//! What a connection is doing, and until when it may go on doing only that.
//! Pure book-keeping: it is told of bytes, requests and answers, and names the next deadline.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::task::AtomicWaker;
use http::Version;
use tokio::time::Instant;

use super::ListenerSettings;
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
    /// Answers with a part that the other side has not taken yet, by request number.
    untaken: Vec<(u64, Instant)>,
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
                untaken: Vec::new(),
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
            .chain(state.untaken.iter().map(|(_, since)| *since))
            .min()
            .map(|since| (since + settings.write_timeout, Slowness::Write));
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
        stuck.into_iter().chain(waiting).min_by_key(|(at, _)| *at)
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
        let mut state = self.state();
        note(&mut state.write_blocked_since, blocked);
        if !blocked {
            // The end of an answer may be on its way for long after its request is done.
            state.idle_since = monotonic::now();
        }
    }

    pub(super) fn flush_is_blocked(&self, blocked: bool) {
        note(&mut self.state().flush_blocked_since, blocked);
    }

    pub(super) fn request_began(self: &Arc<Self>, version: Version) -> Ticket {
        let mut state = self.state();
        state.is_http2 = version == Version::HTTP_2;
        state.requests += 1;
        state.in_flight += 1;
        state.head_since = None;
        Ticket { number: state.requests, activity: self.clone() }
    }
}

fn note(since: &mut Option<Instant>, blocked: bool) {
    if blocked {
        since.get_or_insert_with(monotonic::now);
    } else {
        *since = None;
    }
}

/// One request from its headers to the last byte of its answer.
pub(super) struct Ticket {
    number: u64,
    activity: Arc<Activity>,
}

impl Ticket {
    /// A part of the answer is ready and waits for the other side.
    pub(super) fn part_is_ready(&self) {
        let mut state = self.activity.state();
        state.untaken.retain(|(number, _)| *number != self.number);
        state.untaken.push((self.number, monotonic::now()));
        drop(state);
        self.activity.waker.wake();
    }

    /// The other side asks for more.
    pub(super) fn part_was_taken(&self) {
        let mut state = self.activity.state();
        state.untaken.retain(|(number, _)| *number != self.number);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.untaken.retain(|(number, _)| *number != self.number);
        state.in_flight -= 1;
        if state.in_flight == 0 {
            state.idle_since = monotonic::now();
        }
        drop(state);
        self.activity.waker.wake();
    }
}
