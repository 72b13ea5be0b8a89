//! How many requests are worked on at once. One more is refused at the door, before it is read: that costs a part of what
//! an answer does, so that the server goes on doing what it can (shed, never collapse).
//!
//! A request is worked on from the end of its body: a payer whose network is slow, or somebody who is slow on purpose, takes
//! nobody's place. What has come of its body is counted from its first byte to the answer, since memory is taken all the
//! while; so are answers, until their last byte is written. Who asks what became of a payment, and who pays, comes last to be refused:
//! to know keeps people from paying twice. And no address takes all the memory of bodies or of answers, however slowly it sends or
//! reads.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use futures_util::FutureExt as _;
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::time::Instant;

use crate::listener::{ClientAddress, NETWORKS_OF_SITE, Shares};
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
const MOST_ANSWER_BYTES: usize = 40 << 20;
/// With those for payers: programs keep none of these out.
const MOST_ANSWER_BYTES_WITH_PAYERS: usize = 48 << 20;
/// With the pages that say so when there is no place for another one.
const MOST_ANSWER_BYTES_WITH_REFUSALS: usize = 52 << 20;
/// One client gets an eighth of any of these, of bodies or of answers, once half of it is taken; and the networks of a site,
/// however many there are, what [`NETWORKS_OF_SITE`] clients get.
const SHARES: usize = 8;
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
    bodies: Mutex<Held>,
    large_answers: Mutex<Held>,
    small_answers: Mutex<Held>,
    refused: Mutex<Refused>,
}

/// The bytes of bodies that have come, or of answers that are on their way, in all and by client. A client is an address or a /64, as
/// for the rate limits, and so are all who come through a proxy that we don't trust to name them: therefore nobody's share is asked
/// as long as half of the memory is free, which many have together who take what they asked for.
#[derive(Default)]
struct Held {
    all: usize,
    shares: Shares,
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
    address: IpAddr,
}

/// The memory of an answer that is on its way, until it is dropped.
pub(crate) struct Sending {
    gate: Gate,
    bytes: usize,
    address: IpAddr,
}

/// Whom an answer is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receiver {
    address: IpAddr,
    precedence: Precedence,
}

/// Who is refused first, in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precedence {
    Program,
    Payer,
    Refusal,
    /// What was asked for is done, and has to be told.
    Done,
}

/// On a response whose body is one of ours that is kept anyway: however many are on their way, they take no memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptAnyway;

/// On a response of a page: how it says that there is no place for it.
#[derive(Clone)]
pub(crate) struct WhenFull(Arc<dyn Fn() -> Response + Send + Sync>);

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

impl WhenFull {
    pub(crate) fn new(page: impl Fn() -> Response + Send + Sync + 'static) -> Self {
        Self(Arc::new(page))
    }

    pub(crate) fn page(&self) -> Response {
        (self.0)()
    }
}

impl Receiver {
    pub(crate) fn of(request: &Request) -> Self {
        let address = client(request);
        let path = request.uri().path();
        let asks_for_payment = path.starts_with("/v1/pay/status/") || path.starts_with("/v1/pay/session/");
        let is_last = asks_for_payment || !is_of_programs(request);
        Self { address, precedence: if is_last { Precedence::Payer } else { Precedence::Program } }
    }

    pub(crate) fn of_what_is_done(self) -> Self {
        Self { precedence: Precedence::Done, ..self }
    }
}

impl Precedence {
    fn most_bytes(self) -> usize {
        match self {
            Self::Program => MOST_ANSWER_BYTES,
            Self::Payer => MOST_ANSWER_BYTES_WITH_PAYERS,
            Self::Refusal => MOST_ANSWER_BYTES_WITH_REFUSALS,
            Self::Done => usize::MAX,
        }
    }
}

impl Held {
    /// So many bytes for this client, of so many in all: whether there was a place for them.
    fn take(&mut self, bytes: usize, most: usize, address: IpAddr) -> bool {
        let has_place = self.has_place_for(bytes, most, address);
        if has_place {
            self.all += bytes;
            self.shares.add(bytes, address);
        }
        has_place
    }

    /// One alone has always a place, in all, of its client and of its site.
    fn has_place_for(&self, bytes: usize, most: usize, address: IpAddr) -> bool {
        let is_within = |most: usize, taken: usize| taken == 0 || taken + bytes <= most;
        let is_in_share = is_within(most / SHARES, self.shares.of_network(address))
            && is_within(most / SHARES * NETWORKS_OF_SITE, self.shares.of_site(address));
        is_within(most, self.all) && (is_in_share || self.all + bytes <= most / 2)
    }

    fn give_back(&mut self, bytes: usize, address: IpAddr) {
        self.all -= bytes;
        self.shares.take_away(bytes, address);
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::of(MOST_WRITES, MOST_REQUESTS)
    }
}

impl Gate {
    /// For so many requests of programs that change something, and so many in all.
    fn of(most_writes: usize, most: usize) -> Self {
        let [writes, all] = [const { AtomicUsize::new(0) }; 2];
        let [bodies, large_answers, small_answers] = [(); 3].map(|()| Mutex::default());
        let refused = Mutex::default();
        Self(Arc::new(Inside { most_writes, most, writes, all, bodies, large_answers, small_answers, refused }))
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
        let pass = Pass(Arc::new(Place { gate: self.clone(), is_write, is_taken, bytes, address: client(request) }));
        // Who only reads is not asked for a body, and would never come to the end of one.
        if reads || request.body().is_end_stream() {
            pass.take();
        }
        Ok(pass)
    }

    /// An answer of so many bytes: nothing for one that is not counted.
    pub(crate) fn send(&self, bytes: usize, to: Receiver) -> Result<Option<Sending>, Full> {
        self.place_for(bytes, to).map_err(|_| self.refuse("answer"))
    }

    /// The page that says that there is none, which is no other refusal.
    pub(crate) fn send_refusal(&self, bytes: usize, to: Receiver) -> Result<Option<Sending>, Full> {
        self.place_for(bytes, Receiver { precedence: Precedence::Refusal, ..to })
    }

    fn place_for(&self, bytes: usize, to: Receiver) -> Result<Option<Sending>, Full> {
        if bytes < COUNTED_ANSWER {
            return Ok(None);
        }
        if !self.answers_like(bytes).take(bytes, to.precedence.most_bytes(), to.address) {
            return Err(Full);
        }
        Ok(Some(Sending { gate: self.clone(), bytes, address: to.address }))
    }

    fn bodies(&self) -> MutexGuard<'_, Held> {
        self.0.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All answers that are as one of so many bytes, large or not.
    fn answers_like(&self, bytes: usize) -> MutexGuard<'_, Held> {
        let answers = if bytes < LARGE_ANSWER { &self.0.small_answers } else { &self.0.large_answers };
        answers.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// So many more bytes of its body have come: whether they can be held with all the others, and with those of its client.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), Full> {
        // Whoever holds nothing gives nothing back, and would be remembered for it.
        if bytes == 0 {
            return Ok(());
        }
        let Place { gate, bytes: its_own, address, .. } = &*self.0;
        let of_it = its_own.load(Ordering::Relaxed) + bytes;
        let most = if of_it <= SMALL { MOST_BYTES_WITH_SMALL } else { MOST_BYTES };
        if !gate.bodies().take(bytes, most, *address) {
            return Err(gate.refuse("body"));
        }
        its_own.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        if bytes > 0 {
            self.gate.bodies().give_back(bytes, self.address);
        }
        if *self.is_taken.get_mut() {
            for count in self.gate.count(self.is_write) {
                count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.gate.answers_like(self.bytes).give_back(self.bytes, self.address);
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

/// Without a listener all are one client.
fn client(request: &Request) -> IpAddr {
    let address = request.extensions().get::<ClientAddress>();
    address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ClientAddress(address)| *address)
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
    use std::sync::atomic::AtomicU32;

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

    /// A reader of this path at this address.
    fn at(address: &str, path: &str) -> Receiver {
        let mut request = request(Method::GET, path, Body::empty());
        request.extensions_mut().insert(ClientAddress(address.parse().unwrap()));
        Receiver::of(&request)
    }

    fn is_empty(held: &Held) -> bool {
        held.all == 0 && held.shares.is_empty()
    }

    /// Answers of so many bytes that are held for a reader until there is no place for another.
    fn fill(gate: &Gate, bytes: usize, to: Receiver) -> Vec<Sending> {
        std::iter::from_fn(|| gate.send(bytes, to).ok().flatten()).collect()
    }

    /// Of one client after the other, until there is no place for another client either.
    fn fill_for_all(gate: &Gate, bytes: usize, network: &str, path: &str) -> Vec<Sending> {
        let of_clients = (0..=255).map(|number| fill(gate, bytes, at(&format!("{network}.{number}"), path)));
        of_clients.take_while(|held| !held.is_empty()).flatten().collect()
    }

    #[test]
    fn answers_are_held_up_to_a_sum_large_ones_and_small_ones_apart() {
        let gate = Gate::default();
        let [one, another] = ["192.0.2.1", "192.0.2.2"].map(|address| at(address, "/v1/checkouts"));
        let whole = gate.send(MOST_ANSWER_BYTES + 1, one);
        assert!(whole.as_ref().is_ok_and(Option::is_some), "one has always a place");
        assert!(gate.send(LARGE_ANSWER, another).is_err());
        let small = fill_for_all(&gate, SMALL, "198.51.100", "/v1/checkouts");
        assert_eq!(small.len(), MOST_ANSWER_BYTES / SMALL, "small ones as well, as far as they go");
        assert!(gate.send(SMALL, another).is_err());
        assert!(gate.send(COUNTED_ANSWER - 1, another).is_ok_and(|sending| sending.is_none()));
        drop(small);
        assert!(gate.send(SMALL, another).is_ok());
        assert!(gate.send(LARGE_ANSWER, another.of_what_is_done()).is_ok(), "and what is done is told");
        drop(whole);
        let half = gate.send(MOST_ANSWER_BYTES / 2, one);
        assert!(gate.send(MOST_ANSWER_BYTES / 2, another).is_ok() && gate.send(MOST_ANSWER_BYTES, another).is_err());
        drop(half);
        for answers in [&gate.0.large_answers, &gate.0.small_answers] {
            assert!(is_empty(&answers.lock().unwrap()));
        }
    }

    #[test]
    fn a_client_has_no_more_than_its_share_once_half_is_taken() {
        let gate = Gate::default();
        let half = MOST_ANSWER_BYTES / 2;
        for bytes in [SMALL, 4 << 20] {
            let greedy = fill(&gate, bytes, at("2001:db8::1", "/v1/checkouts"));
            assert_eq!(greedy.len(), half / bytes, "half of it, whoever else has little");
            for neighbour in ["2001:db8::2", "2001:db8:0:1::1"] {
                assert!(gate.send(bytes, at(neighbour, "/v1/checkouts")).is_err(), "the same /64 or /48: {neighbour}");
            }
            let other = fill(&gate, bytes, at("2001:db8:1::1", "/v1/checkouts"));
            assert_eq!(other.len(), MOST_ANSWER_BYTES / SHARES / bytes, "a share");
            assert!(gate.send(bytes, at("192.0.2.1", "/v1/checkouts")).is_ok(), "and there is some for a third");
            drop(greedy);
            assert!(gate.send(bytes, at("2001:db8:1::1", "/v1/checkouts")).is_ok(), "there is half of it again");
            drop(other);
        }
        let _greedy = fill(&gate, 4 << 20, at("192.0.2.1", "/v1/checkouts"));
        assert!(gate.send(half / 2, at("192.0.2.2", "/v1/checkouts")).is_ok(), "one of its own, larger than a share");
    }

    #[test]
    fn who_pays_comes_last_to_be_refused_and_is_told_so() {
        let gate = Gate::default();
        let _held = fill_for_all(&gate, SMALL, "198.51.100", "/v1/checkouts");
        let refused = |path: &str| gate.send(SMALL, at("192.0.2.1", path)).is_err();
        assert!(refused("/v1/checkouts") && refused("/v1/pay/settings"));
        for path in ["/checkout/cs_1", "/v1/pay/status/ps_1", "/v1/pay/session/ps_1"] {
            assert!(!refused(path), "{path}");
        }
        let _more = fill_for_all(&gate, SMALL, "203.0.113", "/checkout/cs_1");
        let payer = at("192.0.2.1", "/checkout/cs_1");
        assert!(gate.send(SMALL, payer).is_err(), "there is an end to it");
        let unsaid = gate.0.refused.lock().unwrap().unsaid;
        let mut told = Vec::new();
        while let Ok(sending) = gate.send_refusal(SMALL, payer) {
            told.push(sending);
        }
        assert_eq!(told.len(), (MOST_ANSWER_BYTES_WITH_REFUSALS - MOST_ANSWER_BYTES_WITH_PAYERS) / SMALL);
        assert_eq!(gate.0.refused.lock().unwrap().unsaid, unsaid, "one refusal, however it is told");
    }

    /// Somebody at this address who sends a body.
    fn sender(gate: &Gate, address: impl Into<IpAddr>) -> Pass {
        let mut request = request(Method::POST, "/v1/checkouts", Body::from("{}"));
        request.extensions_mut().insert(ClientAddress(address.into()));
        gate.enter(&request).unwrap()
    }

    #[test]
    fn bodies_are_held_up_to_a_sum_and_small_ones_beyond_it() {
        let (gate, clients) = (Gate::default(), AtomicU32::new(0));
        let enter = || sender(&gate, Ipv4Addr::from_bits(clients.fetch_add(1, Ordering::Relaxed)));
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
        assert_eq!(held.len(), most - 2, "those have an end too");
        drop((large, another, held));
        let again = enter();
        assert_eq!((again.hold(1 << 20), small.hold(1)), (Ok(()), Ok(())), "what ended gave it back");
        drop((again, small));
        assert!(is_empty(&gate.bodies()));
    }

    #[test]
    fn whoever_sends_slowly_has_no_more_than_a_share_of_the_bodies_once_half_is_taken() {
        let gate = Gate::default();
        let from = |address: &str| sender(&gate, address.parse::<IpAddr>().unwrap());
        for (bytes, most) in [(SMALL, MOST_BYTES_WITH_SMALL), (1 << 20, MOST_BYTES)] {
            let fill = |address: &str| -> Vec<Pass> {
                std::iter::repeat_with(|| from(address)).take_while(|pass| pass.hold(bytes).is_ok()).collect()
            };
            let mut greedy = fill("2001:db8::1");
            assert_eq!(greedy.len(), most / 2 / bytes, "half of it, whoever else has little");
            for neighbour in ["2001:db8::2", "2001:db8:0:1::1"] {
                assert_eq!(from(neighbour).hold(bytes), Err(Full), "the same /64 or /48: {neighbour}");
            }
            let other = fill("2001:db8:1::1");
            assert_eq!(other.len(), most / SHARES / bytes, "a share");
            assert_eq!(other[0].hold(1), Err(Full), "and no more of what is there");
            assert_eq!((other[0].hold(0), from("2001:db8::1").hold(0)), (Ok(()), Ok(())), "nothing has always a place");
            assert_eq!(from("192.0.2.1").hold(bytes), Ok(()), "and there is some for a third");
            let last = greedy.pop().unwrap();
            drop(greedy);
            assert_eq!(from("2001:db8:0:1::1").hold(bytes), Ok(()), "there is half of it again");
            let twice = last.clone();
            drop((last, other));
            assert_eq!(gate.bodies().all, bytes, "as long as anybody holds it");
            drop(twice);
            assert!(is_empty(&gate.bodies()));
        }
    }
}
