//! How many there may be at a time of what clients open, in all and by address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::{ListenerSettings, network};

/// The connections of a listener, or the requests that are under way on those of HTTP/2.
pub(super) struct Places {
    taken: Mutex<Taken>,
    most: usize,
    most_per_address: usize,
    counts_addresses: bool,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

pub(super) struct Place {
    places: Arc<Places>,
    address: Option<IpAddr>,
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crowded {
    Total,
    Address,
}

impl Crowded {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Address => "address",
        }
    }
}

impl Places {
    pub(super) fn new(settings: &ListenerSettings) -> Arc<Self> {
        Arc::new(Self {
            taken: Mutex::default(),
            most: settings.most_connections,
            most_per_address: settings.most_connections_per_address,
            counts_addresses: settings.trusted_proxies == 0,
        })
    }

    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Result<Place, Crowded> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.all >= self.most {
            return Err(Crowded::Total);
        }
        let peer = peer.to_canonical();
        let address = (self.counts_addresses && !peer.is_loopback()).then(|| network(peer));
        if let Some(address) = address {
            let count = taken.by_address.entry(address).or_default();
            if *count >= self.most_per_address {
                return Err(Crowded::Address);
            }
            *count += 1;
        }
        taken.all += 1;
        let places = self.clone();
        Ok(Place { places, address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(address) = self.address
            && let Some(count) = taken.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                taken.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_cap_of_its_own() {
        let settings = ListenerSettings { most_connections_per_address: 2, ..ListenerSettings::default() };
        let places = Places::new(&settings);
        let take = |address: &str| places.take(address.parse().expect("an address"));
        let held = (take("2001:db8::1"), take("2001:db8::2"));
        assert!(held.0.is_ok() && held.1.is_ok());
        assert_eq!(take("2001:db8::3").err(), Some(Crowded::Address), "the same /64");
        let other = take("2001:db8:0:1::3");
        assert!(other.is_ok(), "another /64");
        let loopback: Vec<_> = (0..5).map(|_| take("127.0.0.1")).collect();
        assert!(loopback.iter().all(Result::is_ok), "loopback is exempt");
        drop(held);
        assert!(take("2001:db8::3").is_ok());
        drop((other, loopback));
        assert!(places.taken.lock().expect("not poisoned").by_address.is_empty());

        let behind = Places::new(&ListenerSettings { trusted_proxies: 1, ..settings });
        let held: Vec<_> = (0..5).map(|_| behind.take("10.0.0.1".parse().expect("an address"))).collect();
        assert!(held.iter().all(Result::is_ok), "a proxy is not one client");
    }
}
