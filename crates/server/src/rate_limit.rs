//! How often someone may ask: per API key, and per client address for requests that bring no valid key.
//! Counted in this process only; the tables are bounded, so that inventing addresses costs us nothing.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;

use axum::response::Response;
use governor::clock::{Clock, QuantaClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use http::header::{HeaderName, HeaderValue};

use crate::http::answer::Problem;
use crate::listener::{ClientAddress, network};
use crate::metrics;

/// Requests a second, and how many may come at once after a rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub per_second: NonZeroU32,
    pub burst: NonZeroU32,
}

impl Rate {
    /// A burst of two seconds' worth; 0 is no limit.
    pub fn new(per_second: u32) -> Option<Self> {
        let per_second = NonZeroU32::new(per_second)?;
        let burst = per_second.saturating_mul(NonZeroU32::MIN.saturating_add(1));
        Some(Self { per_second, burst })
    }
}

/// Where a caller stands after a request that was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub limit: u32,
    pub remaining: u32,
    /// Until the whole burst is there again.
    pub reset_seconds: u64,
}

impl Budget {
    pub fn set_headers(&self, response: &mut Response) {
        for (name, value) in self.headers() {
            response.headers_mut().insert(name, value);
        }
    }

    fn headers(&self) -> [(HeaderName, HeaderValue); 3] {
        [
            (HeaderName::from_static("ratelimit-limit"), self.limit.into()),
            (HeaderName::from_static("ratelimit-remaining"), self.remaining.into()),
            (HeaderName::from_static("ratelimit-reset"), self.reset_seconds.into()),
        ]
    }
}

/// Both limits of one server.
pub struct RateLimits {
    keys: Option<Limiter<String>>,
    addresses: Option<Limiter<IpAddr>>,
}

impl RateLimits {
    /// Without a rate nothing is limited.
    pub fn new(rate: Option<Rate>) -> Self {
        Self {
            keys: rate.map(|rate| Limiter::new(rate, "key", QuantaClock::default())),
            addresses: rate.map(|rate| Limiter::new(rate, "address", QuantaClock::default())),
        }
    }

    /// One request with a valid credential. A token counts as the key that it was made with.
    pub fn of_key(&self, key_id: &str) -> Result<Option<Budget>, Problem> {
        let limiter = self.keys.as_ref();
        limiter.map(|limiter| limiter.take(&key_id.to_owned())).transpose()
    }

    /// One request without a valid credential.
    pub fn of_address(&self, ClientAddress(address): ClientAddress) -> Result<Option<Budget>, Problem> {
        let limiter = self.addresses.as_ref();
        limiter.map(|limiter| limiter.take(&network(address))).transpose()
    }
}

const MOST_CALLERS: usize = 100_000;

/// A limit for each caller of a kind. When the table is full of recent callers, new ones share one limit,
/// so that a flood of invented addresses neither grows the table nor gets past it.
struct Limiter<K: Hash + Eq + Clone, C: Clock = QuantaClock> {
    callers: RateLimiter<Option<K>, DashMapStateStore<Option<K>>, C, StateInformationMiddleware>,
    known: DashMapLen,
    clock: C,
    rate: Rate,
    what: &'static str,
}
