//! How many there may be at a time of what clients open, in all, by address and by site.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::{ListenerSettings, NETWORKS_OF_SITE, Shares};

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
    shares: Shares,
}

pub(super) struct Place {
    places: Arc<Places>,
    address: Option<IpAddr>,
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crowded {
    Total,
    /// Or the site that it belongs to.
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
        let address = (self.counts_addresses && !peer.is_loopback()).then_some(peer);
        if let Some(address) = address {
            let most_of_site = self.most_per_address.saturating_mul(NETWORKS_OF_SITE);
            let shares = &mut taken.shares;
            if shares.of_network(address) >= self.most_per_address || shares.of_site(address) >= most_of_site {
                return Err(Crowded::Address);
            }
            shares.add(1, address);
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
        if let Some(address) = self.address {
            taken.shares.take_away(1, address);
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
        assert!(places.taken.lock().expect("not poisoned").shares.is_empty());

        let behind = Places::new(&ListenerSettings { trusted_proxies: 1, ..settings });
        let held: Vec<_> = (0..5).map(|_| behind.take("10.0.0.1".parse().expect("an address"))).collect();
        assert!(held.iter().all(Result::is_ok), "a proxy is not one client");
    }

    #[test]
    fn the_networks_of_a_site_have_a_cap_together() {
        let settings = ListenerSettings { most_connections_per_address: 2, ..ListenerSettings::default() };
        let places = Places::new(&settings);
        let take = |address: &str| places.take(address.parse().expect("an address"));
        let mut held: Vec<_> = (0..100).map_while(|network| take(&format!("2001:db8:1:{network:x}::1")).ok()).collect();
        assert_eq!(held.len(), 2 * NETWORKS_OF_SITE, "one of each network");
        for address in ["2001:db8:1::1", "2001:db8:1:ffff::1"] {
            assert_eq!(take(address).err(), Some(Crowded::Address), "the same /48: {address}");
        }
        let others = ["2001:db8:2::1", "192.0.2.1", "192.0.2.1"].map(take);
        assert!(others.iter().all(Result::is_ok), "another /48, and an IPv4 address");
        assert_eq!(take("::ffff:192.0.2.1").err(), Some(Crowded::Address), "which is a network of its own");
        let neighbours: Vec<_> = (2..50).map(|number| take(&format!("192.0.2.{number}"))).collect();
        assert!(neighbours.iter().all(Result::is_ok), "and of no site");
        held.pop();
        let again = take("2001:db8:1:ffff::1");
        assert!(again.is_ok() && take("2001:db8:1:ffff::1").is_err(), "one place came back");
        drop((held, others, neighbours, again));
        assert!(places.taken.lock().expect("not poisoned").shares.is_empty());
    }
}
