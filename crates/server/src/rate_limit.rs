//! How often someone may ask: per API key, and per client address for requests that bring no valid key or need none. A
//! publishable key stands on a page for everybody: with it each client network may ask half as often as a secret key, and the
//! bound of all together is so wide that it takes many of them to shut out the others.
//! Counted in this process only; the tables are bounded, so that inventing addresses costs us nothing.

use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::response::Response;
use governor::clock::{Clock, QuantaClock};
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::direct::NotKeyed;
use governor::state::keyed::{DashMapStateStore, ShrinkableKeyedStateStore};
use governor::state::{InMemoryState, StateStore};
use governor::{Quota, RateLimiter};
use http::header::{HeaderName, HeaderValue};

use crate::http::answer::Problem;
use crate::listener::{ClientAddress, network, site};
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

    fn times(self, factor: NonZeroU32) -> Self {
        let [per_second, burst] = [self.per_second, self.burst].map(|count| count.saturating_mul(factor));
        Self { per_second, burst }
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

/// Of what is there for everybody, by client address: generous, whatever a key may ask, and apart from the rest.
const OPEN: Rate = Rate { per_second: NonZeroU32::new(100).unwrap(), burst: NonZeroU32::new(200).unwrap() };

/// How many times the rate of a secret key those have together who may be one visitor, or neighbours.
const SITE: NonZeroU32 = NonZeroU32::new(2).unwrap();
/// And all visitors of a page.
const CROWD: NonZeroU32 = NonZeroU32::new(20).unwrap();

/// All limits of one server.
pub struct RateLimits {
    keys: Option<Limiter<String>>,
    pages: Option<PageLimits>,
    addresses: Option<Limiter<IpAddr>>,
    /// Files and pages that explain, keys that anybody checks with, pictures.
    open: Option<Limiter<IpAddr>>,
    /// Whether the service is well: who floods the rest from the same address must not make it look ill.
    health: Option<Limiter<IpAddr>>,
}

/// Of publishable keys.
struct PageLimits {
    /// By the network of whoever looks at the page: half of what a secret key has.
    visitors: Limiter<(String, IpAddr)>,
    /// By what such a network is a part of: one machine may have it all, or a provider's customers a network each.
    sites: Limiter<(String, Ipv6Addr)>,
    everybody: Limiter<String>,
}

impl PageLimits {
    fn new(rate: Rate) -> Self {
        Self {
            visitors: Limiter::half(rate, "visitor", MOST_CALLERS, QuantaClock::default()),
            sites: Limiter::new(rate.times(SITE), "visitor", MOST_CALLERS, QuantaClock::default()),
            everybody: Limiter::new(rate.times(CROWD), "key", MOST_CALLERS, QuantaClock::default()),
        }
    }

    /// What one of them refuses is taken from none. What is left of all is the least.
    fn take(&self, key_id: &str, address: IpAddr) -> Result<Budget, Problem> {
        let visitor = (key_id.to_owned(), network(address));
        let site = site(address).map(|site| (key_id.to_owned(), site));
        let of_visitor = self.visitors.take(&visitor)?;
        let of_site = site.as_ref().map(|site| self.sites.take(site)).transpose();
        let of_site = of_site.inspect_err(|_| self.visitors.give_back(&visitor))?;
        let of_everybody = self.everybody.take(&key_id.to_owned()).inspect_err(|_| {
            self.visitors.give_back(&visitor);
            site.iter().for_each(|site| self.sites.give_back(site));
        })?;
        let others = of_site.into_iter().chain([of_everybody]);
        Ok(others.fold(of_visitor, |least, other| if other.remaining < least.remaining { other } else { least }))
    }
}

impl RateLimits {
    /// Without a rate nothing is limited.
    pub fn new(rate: Option<Rate>) -> Self {
        let by_address = |rate| Limiter::new(rate, "address", MOST_CALLERS, QuantaClock::default());
        Self {
            keys: rate.map(|rate| Limiter::new(rate, "key", MOST_CALLERS, QuantaClock::default())),
            pages: rate.map(PageLimits::new),
            addresses: rate.map(by_address),
            open: rate.map(|_| by_address(OPEN)),
            health: rate.map(|_| by_address(OPEN)),
        }
    }

    /// One request with a valid credential. A token counts as the key that it was made with.
    pub fn of_key(&self, key_id: &str) -> Result<Option<Budget>, Problem> {
        let limiter = self.keys.as_ref();
        limiter.map(|limiter| limiter.take(&key_id.to_owned())).transpose()
    }

    /// One request with a publishable key.
    pub fn of_publishable_key(
        &self,
        key_id: &str,
        ClientAddress(address): ClientAddress,
    ) -> Result<Option<Budget>, Problem> {
        self.pages.as_ref().map(|pages| pages.take(key_id, address)).transpose()
    }

    /// One request without a valid credential.
    pub fn of_address(&self, ClientAddress(address): ClientAddress) -> Result<Option<Budget>, Problem> {
        let limiter = self.addresses.as_ref();
        limiter.map(|limiter| limiter.take(&network(address))).transpose()
    }

    /// That request had a valid credential after all.
    pub fn give_back(&self, ClientAddress(address): ClientAddress) {
        if let Some(limiter) = &self.addresses {
            limiter.give_back(&network(address));
        }
    }

    /// One request for what is there for everybody.
    pub fn of_open(&self, ClientAddress(address): ClientAddress) -> Result<Option<Budget>, Problem> {
        let limiter = self.open.as_ref();
        limiter.map(|limiter| limiter.take(&network(address))).transpose()
    }

    /// One question whether the service is well.
    pub fn of_health(&self, ClientAddress(address): ClientAddress) -> Result<Option<Budget>, Problem> {
        let limiter = self.health.as_ref();
        limiter.map(|limiter| limiter.take(&network(address))).transpose()
    }
}

const MOST_CALLERS: usize = 100_000;
/// So often the table is looked at for callers that have rested long enough to be forgotten.
const REQUESTS_BETWEEN_CLEANINGS: u32 = 1000;

/// A limit for each caller of a kind.
struct Limiter<K: Hash + Eq + Clone, C: Clock = QuantaClock> {
    callers: RateLimiter<K, Table<K>, C, StateInformationMiddleware>,
    states: Arc<DashMapStateStore<K>>,
    requests: AtomicU32,
    clock: C,
    rate: Rate,
    /// What a request counts for: all of one's own rate is there to be used up, or half.
    weight: NonZeroU32,
    what: &'static str,
}

impl<K: Hash + Eq + Clone, C: Clock + Clone> Limiter<K, C> {
    fn new(rate: Rate, what: &'static str, most_callers: usize, clock: C) -> Self {
        Self::weighing(NonZeroU32::MIN, rate, what, most_callers, clock)
    }

    /// So that half of one a second is one in two.
    fn half(rate: Rate, what: &'static str, most_callers: usize, clock: C) -> Self {
        Self::weighing(NonZeroU32::MIN.saturating_add(1), rate, what, most_callers, clock)
    }

    fn weighing(weight: NonZeroU32, rate: Rate, what: &'static str, most_callers: usize, clock: C) -> Self {
        assert!(weight <= rate.burst, "a rested caller may ask once");
        let quota = Quota::per_second(rate.per_second).allow_burst(rate.burst);
        let states = Arc::new(DashMapStateStore::default());
        let table = Table { states: Arc::clone(&states), shared: InMemoryState::default(), most_callers };
        let callers = RateLimiter::new(quota, table, clock.clone());
        Self { callers, states, requests: AtomicU32::new(0), clock, rate, weight, what }
    }

    fn take(&self, caller: &K) -> Result<Budget, Problem> {
        if self.requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(REQUESTS_BETWEEN_CLEANINGS) {
            self.callers.retain_recent();
        }
        match self.callers.check_key_n(caller, self.weight).expect("a burst holds one request") {
            Ok(state) => Ok(self.budget(state.remaining_burst_capacity())),
            Err(not_until) => {
                metrics::rate_limited(self.what);
                let wait = not_until.wait_time_from(self.clock.now());
                let problem = Problem::rate_limited(wait.as_millis().div_ceil(1000) as u64);
                let headers = self.budget(0).headers();
                Err(headers.into_iter().fold(problem, |problem, (name, value)| problem.header(name, value)))
            }
        }
    }

    /// As if the last request had not been. One that was counted among all the others, in a full table, stays counted.
    fn give_back(&self, caller: &K) {
        let one = Nanos::from(Quota::per_second(self.rate.per_second).replenish_interval() * self.weight.get());
        let _ = self.states.measure_and_replace(caller, |full_at: Option<Nanos>| match full_at {
            Some(full_at) => Ok(((), full_at.saturating_sub(one))),
            None => Err(()),
        });
    }

    /// In requests, of a capacity that counts their weight.
    fn budget(&self, capacity: u32) -> Budget {
        let missing = self.rate.burst.get().saturating_sub(capacity);
        Budget {
            limit: self.rate.burst.get() / self.weight,
            remaining: capacity / self.weight,
            reset_seconds: u64::from(missing.div_ceil(self.rate.per_second.get())),
        }
    }
}

/// The callers of late. When it is full, new ones share one state, so that a flood of invented addresses neither grows
/// the table nor gets past the limit.
struct Table<K: Hash + Eq + Clone> {
    states: Arc<DashMapStateStore<K>>,
    shared: InMemoryState,
    most_callers: usize,
}

impl<K: Hash + Eq + Clone> StateStore for Table<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, caller: &K, f: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        if self.states.contains_key(caller) || self.states.len() < self.most_callers {
            self.states.measure_and_replace(caller, f)
        } else {
            self.shared.measure_and_replace(&NotKeyed::NonKey, f)
        }
    }
}

impl<K: Hash + Eq + Clone> ShrinkableKeyedStateStore<K> for Table<K> {
    fn retain_recent(&self, drop_below: Nanos) {
        ShrinkableKeyedStateStore::retain_recent(&*self.states, drop_below);
    }

    fn len(&self) -> usize {
        self.states.len()
    }

    fn is_empty(&self) -> bool {
        self.states.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use governor::clock::FakeRelativeClock;

    use super::*;

    fn limiter(per_second: u32, most_callers: usize) -> (Limiter<u32, FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let rate = Rate::new(per_second).expect("not 0");
        (Limiter::new(rate, "key", most_callers, clock.clone()), clock)
    }

    fn header(problem: &Problem, name: &str) -> String {
        let found = problem.headers.iter().find(|(other, _)| other == name);
        found.expect("is there").1.to_str().expect("text").to_owned()
    }

    #[test]
    fn one_more_than_the_limit_is_refused() {
        let (limiter, clock) = limiter(100, 10);
        for sent in 1..=200 {
            let budget = limiter.take(&1).expect("within the burst");
            assert_eq!((budget.limit, budget.remaining), (200, 200 - sent));
        }
        let refused = limiter.take(&1).expect_err("limit + 1");
        assert_eq!((refused.status.as_u16(), &*refused.code), (429, "rate_limited"));
        assert_eq!(header(&refused, "retry-after"), "1");
        assert_eq!(header(&refused, "ratelimit-limit"), "200");
        assert_eq!(header(&refused, "ratelimit-remaining"), "0");
        assert_eq!(header(&refused, "ratelimit-reset"), "2");
        assert!(limiter.take(&2).is_ok(), "another caller has a limit of its own");

        clock.advance(Duration::from_millis(10));
        assert!(limiter.take(&1).is_ok(), "a hundredth of a second earns one");
        assert!(limiter.take(&1).is_err(), "and no more");
        clock.advance(Duration::from_secs(1));
        let taken = (0..200).filter(|_| limiter.take(&1).is_ok()).count();
        assert_eq!(taken, 100, "a second earns a hundred");
        clock.advance(Duration::from_secs(60));
        let taken = (0..300).filter(|_| limiter.take(&1).is_ok()).count();
        assert_eq!(taken, 200, "a long rest earns a burst and no more");
    }

    #[test]
    fn a_full_table_neither_grows_nor_lets_new_callers_pass() {
        let (limiter, clock) = limiter(1, 10);
        let passed = (0..5000).filter(|caller| limiter.take(caller).is_ok()).count();
        assert_eq!(passed, 12, "ten callers and a shared burst of two");
        assert_eq!(limiter.callers.len(), 10);
        assert!(limiter.take(&3).is_ok(), "a known caller is not affected");
        clock.advance(Duration::from_secs(10));
        let passed = (0..3000).filter(|caller| limiter.take(&(caller + 9000)).is_ok()).count();
        assert!(passed >= 12, "callers that rest are forgotten: {passed}");
        assert_eq!(limiter.callers.len(), 10);
    }

    #[test]
    fn a_caller_who_has_rested_is_forgotten_without_a_gain() {
        let (limiter, clock) = limiter(1, 10);
        assert!(limiter.take(&1).is_ok() && limiter.take(&1).is_ok() && limiter.take(&1).is_err());
        limiter.callers.retain_recent();
        assert!(limiter.take(&1).is_err(), "still remembered");
        clock.advance(Duration::from_secs(4));
        limiter.callers.retain_recent();
        assert_eq!(limiter.callers.len(), 0);
    }

    #[test]
    fn an_ipv6_client_has_one_limit_for_its_64() {
        let limits = RateLimits::new(Rate::new(1));
        let take = |text: &str| limits.of_address(ClientAddress(text.parse().expect("an address"))).is_ok();
        assert!(take("2001:db8::1") && take("2001:db8::2") && !take("2001:db8::3"));
        assert!(take("2001:db8:0:1::1"));
    }

    #[test]
    fn what_is_given_back_was_never_taken() {
        let (limiter, clock) = limiter(10, 10);
        for _ in 0..1_000 {
            assert!(limiter.take(&1).is_ok());
            limiter.give_back(&1);
        }
        assert_eq!(limiter.take(&1).expect("nothing is gone").remaining, 19);
        limiter.give_back(&2);
        assert_eq!(limiter.take(&2).expect("another").remaining, 19, "and nobody gains by it");
        clock.advance(Duration::from_secs(60));
        limiter.give_back(&1);
        assert_eq!((0..100).filter(|_| limiter.take(&1).is_ok()).count(), 20, "nor after a rest");
    }

    #[test]
    fn what_is_there_for_everybody_has_a_limit_of_its_own() {
        let limits = RateLimits::new(Rate::new(1));
        let address = ClientAddress("192.0.2.1".parse().expect("an address"));
        assert!((0..200).all(|_| limits.of_open(address).is_ok()));
        assert!((0..200).any(|_| limits.of_open(address).is_err()));
        assert!((0..200).all(|_| limits.of_health(address).is_ok()), "health is not what others asked for");
        assert!(limits.of_address(address).is_ok());
        assert!((0..1_000).all(|_| matches!(RateLimits::new(None).of_health(address), Ok(None))));
    }

    fn asks(limits: &RateLimits, from: &str) -> Result<Budget, Problem> {
        let address = ClientAddress(from.parse().expect("an address"));
        limits.of_publishable_key("key_1", address).map(|budget| budget.expect("a limit"))
    }

    #[test]
    fn one_network_gets_half_of_what_a_secret_key_has() {
        for (per_second, half) in [(1, 1), (3, 3), (100, 100)] {
            let limits = RateLimits::new(Rate::new(per_second));
            let take = |text: &str| asks(&limits, text);
            let first = take("2001:db8::1").expect("the first");
            assert_eq!((first.limit, first.remaining), (half, half - 1));
            let taken = (1..=per_second * 2).filter(|count| take(&format!("2001:db8::{count:x}")).is_ok()).count();
            assert!(taken < half as usize + 3, "one of its network and {taken} more");
            assert!(take("2001:db8::1").is_err());
            let other = take("2001:db8:0:1::1").expect("another network");
            assert!(other.remaining < half, "{other:?}");
        }
    }

    #[test]
    fn who_has_two_networks_shuts_out_nobody() {
        for per_second in [1, 3, 100] {
            let limits = RateLimits::new(Rate::new(per_second));
            let takes_all = |network: &str| {
                let from = |count: u32| format!("2001:db8:1:{network}::{count:x}");
                (0..per_second * 4).filter(|count| asks(&limits, &from(*count)).is_ok()).count()
            };
            assert!(takes_all("1") + takes_all("2") >= per_second as usize * 2, "all that a secret key has");
            for other in ["2001:db8:1:3::1", "2001:db8:2::1", "192.0.2.1"] {
                let budget = asks(&limits, other).expect("another payer");
                assert_eq!((budget.limit, budget.remaining), (per_second, per_second - 1));
            }
        }
    }

    #[test]
    fn an_ipv6_site_has_a_bound_of_its_own() {
        let limits = RateLimits::new(Rate::new(1));
        let passed = (0..100).filter(|network| asks(&limits, &format!("2001:db8:1:{network:x}::1")).is_ok()).count();
        assert!((4..=8).contains(&passed), "{passed} networks of 100");
        let refused = asks(&limits, "2001:db8:1:ffff::1").expect_err("one more of them");
        assert_eq!(header(&refused, "ratelimit-limit"), "4");
        assert_eq!(header(&refused, "retry-after"), "1");
        assert!(asks(&limits, "2001:db8:2::1").is_ok(), "another site");
    }

    #[test]
    fn a_visitor_who_is_refused_for_the_others_pays_nothing() {
        let of_each: [fn(u32) -> String; 2] =
            [|number| format!("192.0.2.{number}"), |number| format!("2001:db8:{number:x}::1")];
        for address in of_each {
            let limits = RateLimits::new(Rate::new(1));
            let refused = (1..250).find(|number| asks(&limits, &address(*number)).is_err()).expect("there is an end");
            assert!(refused > 40, "20 times a burst of two: {refused}");
            let pages = limits.pages.as_ref().expect("a limit");
            let address: IpAddr = address(refused).parse().expect("an address");
            assert!(
                pages.visitors.take(&("key_1".to_owned(), network(address))).is_ok(),
                "its own half is still there"
            );
            if let Some(site) = site(address) {
                let of_site = pages.sites.take(&("key_1".to_owned(), site)).expect("so is its site's");
                assert_eq!((of_site.limit, of_site.remaining), (4, 3));
            }
        }
    }

    #[test]
    fn half_a_rate_is_half_of_it_for_ever() {
        let clock = FakeRelativeClock::default();
        let limiter = Limiter::half(Rate::new(1).expect("not 0"), "visitor", 10, clock.clone());
        assert_eq!(limiter.take(&1).expect("the first"), Budget { limit: 1, remaining: 0, reset_seconds: 2 });
        let mut taken = 0;
        for _ in 0..20 {
            clock.advance(Duration::from_millis(500));
            match limiter.take(&1) {
                Ok(_) => taken += 1,
                Err(refused) => assert!(["1", "2"].contains(&&*header(&refused, "retry-after"))),
            }
        }
        assert_eq!(taken, 5, "in ten seconds");
        limiter.give_back(&1);
        assert!(limiter.take(&1).is_ok() && limiter.take(&1).is_err());
    }

    #[test]
    fn zero_is_no_limit() {
        let limits = RateLimits::new(Rate::new(0));
        assert!((0..10_000).all(|_| matches!(limits.of_key("key_1"), Ok(None))));
        let address = ClientAddress("192.0.2.1".parse().expect("an address"));
        assert!((0..10_000).all(|_| matches!(limits.of_publishable_key("key_1", address), Ok(None))));
    }

    #[test]
    fn many_threads_get_no_more_than_one() {
        let (limiter, _clock) = limiter(100, 10);
        let passed = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        if limiter.take(&1).is_ok() {
                            passed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(passed.into_inner(), 200);
    }
}
