//! How many requests are worked on at once. One more is refused at the door, before it is read: that costs a part of what
//! an answer does, so that the server goes on doing what it can (shed, never collapse).
//!
//! A request is worked on from the end of its body: a payer whose network is slow, or somebody who is slow on purpose, takes
//! nobody's place. What has come of its body is counted from its first byte to the answer, since memory is taken all the
//! while; so are answers, until their last byte is written. Who asks what became of a payment, and who pays, comes last to be refused:
//! to know keeps people from paying twice.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use futures_util::FutureExt as _;
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::time::Instant;

use crate::{metrics, monotonic};

/// Requests of programs that change something. At ten thousand a second the last of them waits 50 ms.
const MOST_WRITES: usize = 512;
/// All requests.
const MOST_REQUESTS: usize = 1_024;
/// Bytes of all bodies that are held: a quarter of the 256 MiB in which the service has to do, and room for 64 of the largest
/// that programs may send.
const MOST_BYTES: usize = 64 << 20;
/// With the small ones, which nearly all are: whoever sends large ones slowly keeps none of these out.
const MOST_BYTES_WITH_SMALL: usize = 96 << 20;
/// Bytes of all large answers that are held for those who take their time over them; and as many of the smaller ones, so that
/// neither keep the others back.
const MOST_ANSWER_BYTES: usize = 48 << 20;
/// An answer as large as this is a large one. Pages are none.
const LARGE_ANSWER: usize = 64 << 10;
/// A smaller one than this is not counted: it takes no more than its request does, and a refusal has to be told somehow.
const COUNTED_ANSWER: usize = 1 << 10;
/// As far as this a body is small.
const SMALL: usize = 16 << 10;
/// Each request that is refused is counted, and all of them are said once in so long.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// The door of one server.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Inside>);

struct Inside {
    most_writes: usize,
    most: usize,
    writes: AtomicUsize,
    all: AtomicUsize,
    bytes: AtomicUsize,
    large_answers: AtomicUsize,
    small_answers: AtomicUsize,
    refused: Mutex<Refused>,
}

#[derive(Default)]
struct Refused {
    unsaid: u64,
    said_at: Option<Instant>,
}

/// Of a request that was let in. It takes its place by [`Pass::begin`], and gives it back when the last of its clones goes.
#[derive(Clone)]
pub(crate) struct Pass(Arc<Place>);

struct Place {
    gate: Gate,
    is_write: bool,
    is_taken: AtomicBool,
    bytes: AtomicUsize,
}

/// The memory of an answer that is on its way, until it is dropped.
pub(crate) struct Sending {
    gate: Gate,
    bytes: usize,
}

/// On a response whose body is one of ours that is kept anyway: however many are on their way, they take no memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptAnyway;

/// As many are being worked on as can be. Pages find it with the request, to say so in their own way; whoever reads a body finds
/// it as the reason why there is no more of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Full {
    /// Whether a body was not read on because of it.
    pub(crate) fn is_cause_of(error: &(dyn Error + 'static)) -> bool {
        std::iter::successors(Some(error), |&error| error.source()).any(|cause| cause.is::<Self>())
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is more to do than can be done at once")
    }
}

impl Error for Full {}

impl Default for Gate {
    fn default() -> Self {
        Self::of(MOST_WRITES, MOST_REQUESTS)
    }
}

impl Gate {
    /// For so many requests of programs that change something, and so many in all.
    fn of(most_writes: usize, most: usize) -> Self {
        let [writes, all, bytes, large_answers, small_answers] = [const { AtomicUsize::new(0) }; 5];
        let refused = Mutex::default();
        Self(Arc::new(Inside { most_writes, most, writes, all, bytes, large_answers, small_answers, refused }))
    }

    pub(crate) fn enter(&self, request: &Request) -> Result<Pass, Full> {
        let Inside { most_writes, most, writes, all, .. } = &*self.0;
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let is_write = is_of_programs(request) && !reads;
        let is_full =
            all.load(Ordering::Relaxed) >= *most || (is_write && writes.load(Ordering::Relaxed) >= *most_writes);
        // Whoever asks whether the service is well is told, and so is a browser that asks whether it may ask: it tells its page
        // nothing of a refusal, and the answer costs no more than one.
        let is_told = matches!(request.uri().path(), "/health" | "/v1/health") || request.method() == Method::OPTIONS;
        if is_full && !is_told {
            return Err(self.refuse(if is_write { "write" } else { "other" }));
        }
        let (is_taken, bytes) = (AtomicBool::new(false), AtomicUsize::new(0));
        let pass = Pass(Arc::new(Place { gate: self.clone(), is_write, is_taken, bytes }));
        // Who only reads is not asked for a body, and would never come to the end of one.
        if reads || request.body().is_end_stream() {
            pass.take();
        }
        Ok(pass)
    }

    /// An answer of so many bytes: nothing for one that is not counted. One of its own has always a place, and so has one that has
    /// to be given (`must`), because what was asked for is done.
    pub(crate) fn send(&self, bytes: usize, must: bool) -> Result<Option<Sending>, Full> {
        if bytes < COUNTED_ANSWER {
            return Ok(None);
        }
        let sending = Sending { gate: self.clone(), bytes };
        let before = self.answers_like(bytes).fetch_add(bytes, Ordering::Relaxed);
        let is_over = before > 0 && before + bytes > MOST_ANSWER_BYTES;
        if is_over && !must { Err(self.refuse("answer")) } else { Ok(Some(sending)) }
    }

    /// The bytes of all answers that are as this one, large or not.
    fn answers_like(&self, bytes: usize) -> &AtomicUsize {
        if bytes < LARGE_ANSWER { &self.0.small_answers } else { &self.0.large_answers }
    }

    fn refuse(&self, kind: &'static str) -> Full {
        metrics::request_shed(kind);
        self.0.refused.lock().unwrap_or_else(PoisonError::into_inner).another();
        Full
    }

    /// Requests that change something, and others.
    fn count(&self, is_write: bool) -> impl Iterator<Item = &AtomicUsize> {
        is_write.then_some(&self.0.writes).into_iter().chain([&self.0.all])
    }
}

impl Pass {
    /// There is nothing more to wait for: from now on it is worked on, unless others whose bodies came meanwhile have the places.
    pub(crate) fn begin(&self) -> Result<(), Full> {
        if !self.take() {
            return Ok(());
        }
        let Place { gate, is_write, .. } = &*self.0;
        let Inside { most_writes, most, writes, all, .. } = &*gate.0;
        let is_over =
            all.load(Ordering::Relaxed) > *most || (*is_write && writes.load(Ordering::Relaxed) > *most_writes);
        if is_over { Err(gate.refuse(if *is_write { "write" } else { "other" })) } else { Ok(()) }
    }

    /// Whether it was not taken before.
    fn take(&self) -> bool {
        let Place { gate, is_write, is_taken, .. } = &*self.0;
        let is_first = !is_taken.swap(true, Ordering::Relaxed);
        if is_first {
            for count in gate.count(*is_write) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        is_first
    }

    /// So many more bytes of its body have come: whether they can be held with all the others.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), Full> {
        let Place { gate, bytes: its_own, .. } = &*self.0;
        let of_it = its_own.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let of_all = gate.0.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let most = if of_it <= SMALL { MOST_BYTES_WITH_SMALL } else { MOST_BYTES };
        if of_all <= most { Ok(()) } else { Err(gate.refuse("body")) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.0.bytes.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
        if *self.is_taken.get_mut() {
            for count in self.gate.count(self.is_write) {
                count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.gate.answers_like(self.bytes).fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Refused {
    fn another(&mut self) {
        let now = monotonic::now();
        self.unsaid += 1;
        if self.said_at.is_none_or(|said_at| now - said_at >= SAID_EVERY) {
            tracing::warn!(requests = self.unsaid, "more requests than can be worked on at once: refused with 503");
            *self = Self { unsaid: 0, said_at: Some(now) };
        }
    }
}

/// And not of people, who look at pages.
pub(crate) fn is_of_programs(request: &Request) -> bool {
    request.uri().path().starts_with("/v1/")
}

/// Takes what has come of the body, and waits for no more of it.
pub(crate) fn discard(request: Request) {
    let mut body = request.into_body();
    while let Some(Some(Ok(_))) = body.frame().now_or_never() {}
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(method: Method, path: &str, body: Body) -> Request {
        Request::builder().method(method).uri(path).body(body).unwrap()
    }

    #[test]
    fn reads_are_refused_last_and_health_never() {
        let gate = Gate::of(1, 2);
        let write = request(Method::POST, "/v1/checkouts", Body::empty());
        let read = request(Method::GET, "/v1/checkouts/cs_1", Body::empty());
        let first = gate.enter(&write);
        assert!(first.is_ok());
        assert!(gate.enter(&write).is_err(), "one write at once");
        let second = gate.enter(&request(Method::POST, "/checkout/cs_1/pay", Body::empty()));
        assert!(second.is_ok(), "a payer");
        assert!(gate.enter(&read).is_err(), "two requests at once");
        assert!(gate.enter(&request(Method::GET, "/health", Body::empty())).is_ok());
        assert!(gate.enter(&request(Method::OPTIONS, "/v1/checkouts", Body::empty())).is_ok(), "a preflight");
        drop((first, second));
        assert!(gate.enter(&write).is_ok(), "a place is free again");
        assert_eq!(gate.0.refused.lock().unwrap().unsaid, 1, "the first was said at once");
    }

    #[test]
    fn who_is_still_sending_takes_no_place() {
        let gate = Gate::of(1, 2);
        let slow = request(Method::POST, "/v1/checkouts", Body::from("{}"));
        let passes: Vec<_> = (0..3).map(|_| gate.enter(&slow).unwrap()).collect();
        assert!(passes[0].begin().is_ok() && passes[0].clone().begin().is_ok());
        assert!(gate.enter(&slow).is_err(), "one is worked on");
        assert!(passes[1].begin().is_err(), "it came to its end too late");
        drop(passes);
        assert!(gate.enter(&slow).is_ok());
    }

    #[test]
    fn who_only_reads_takes_a_place_whatever_body_he_announces() {
        let gate = Gate::of(1, 2);
        let read = request(Method::GET, "/v1/checkouts", Body::from("unsent"));
        let passes = [gate.enter(&read), gate.enter(&read)];
        assert!(passes.iter().all(Result::is_ok));
        assert!(gate.enter(&read).is_err());
    }

    #[test]
    fn answers_are_held_up_to_a_sum_large_ones_and_small_ones_apart() {
        let gate = Gate::default();
        let whole = gate.send(MOST_ANSWER_BYTES + 1, false);
        assert!(whole.as_ref().is_ok_and(Option::is_some), "one has always a place");
        assert!(gate.send(LARGE_ANSWER, false).is_err());
        let small: Vec<_> = std::iter::repeat_with(|| gate.send(SMALL, false)).take_while(Result::is_ok).collect();
        assert_eq!(small.len(), MOST_ANSWER_BYTES / SMALL, "small ones as well, as far as they go");
        assert!(gate.send(COUNTED_ANSWER - 1, false).is_ok_and(|sending| sending.is_none()));
        drop(small);
        assert!(gate.send(SMALL, false).is_ok());
        assert!(gate.send(LARGE_ANSWER, true).is_ok(), "and what is done is told");
        drop(whole);
        let half = gate.send(MOST_ANSWER_BYTES / 2, false);
        assert!(gate.send(MOST_ANSWER_BYTES / 2, false).is_ok() && gate.send(MOST_ANSWER_BYTES, false).is_err());
        drop(half);
        let Inside { large_answers, small_answers, .. } = &*gate.0;
        assert_eq!([large_answers, small_answers].map(|bytes| bytes.load(Ordering::Relaxed)), [0, 0]);
    }

    #[test]
    fn bodies_are_held_up_to_a_sum_and_small_ones_beyond_it() {
        let gate = Gate::default();
        let enter = || gate.enter(&request(Method::POST, "/v1/checkouts", Body::from("{}"))).unwrap();
        let large: Vec<_> = std::iter::repeat_with(enter).take(MOST_BYTES >> 20).collect();
        for pass in &large {
            assert!((0..16).all(|_| pass.hold(1 << 16).is_ok()));
        }
        assert_eq!(large[0].clone().hold(1), Err(Full), "no more of what is there");
        let (another, small) = (enter(), enter());
        assert_eq!((another.hold(SMALL), another.hold(1)), (Ok(()), Err(Full)), "and none that grows large");
        assert_eq!(small.hold(SMALL), Ok(()));
        let most = (MOST_BYTES_WITH_SMALL - MOST_BYTES) / SMALL;
        let held: Vec<_> = std::iter::repeat_with(enter).take_while(|pass| pass.hold(SMALL).is_ok()).collect();
        assert_eq!(held.len(), most - 3, "those have an end too");
        drop((large, another, held));
        let again = enter();
        assert_eq!((again.hold(1 << 20), small.hold(1)), (Ok(()), Ok(())), "what ended gave it back");
        drop((again, small));
        assert_eq!(gate.0.bytes.load(Ordering::Relaxed), 0);
    }
}
