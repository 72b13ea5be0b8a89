//! Who has how much of what there is only so much of: by client, and by the site whose networks may be one client after all.
//! How much that may be is for those to say who give it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

use super::{network, site};

/// The networks of a site may have as much together as so many that have nothing in common.
pub(crate) const NETWORKS_OF_SITE: usize = 4;

#[derive(Default)]
pub(crate) struct Shares {
    by_network: HashMap<IpAddr, usize>,
    by_site: HashMap<Ipv6Addr, usize>,
}

impl Shares {
    pub(crate) fn of_network(&self, address: IpAddr) -> usize {
        self.by_network.get(&network(address)).copied().unwrap_or(0)
    }

    /// Nothing for an IPv4 address, which is a network of its own.
    pub(crate) fn of_site(&self, address: IpAddr) -> usize {
        site(address).and_then(|site| self.by_site.get(&site)).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, count: usize, address: IpAddr) {
        *self.by_network.entry(network(address)).or_default() += count;
        if let Some(site) = site(address) {
            *self.by_site.entry(site).or_default() += count;
        }
    }

    pub(crate) fn take_away(&mut self, count: usize, address: IpAddr) {
        take_away(&mut self.by_network, network(address), count);
        if let Some(site) = site(address) {
            take_away(&mut self.by_site, site, count);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_network.is_empty() && self.by_site.is_empty()
    }
}

/// Who has nothing left is forgotten.
fn take_away<K: Hash + Eq>(counts: &mut HashMap<K, usize>, whose: K, count: usize) {
    if let Entry::Occupied(mut left) = counts.entry(whose) {
        *left.get_mut() -= count;
        if *left.get() == 0 {
            left.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_network_has_its_site_has_too() {
        let mut shares = Shares::default();
        let address = |text: &str| -> IpAddr { text.parse().unwrap() };
        let all = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "2001:db8:1::1", "192.0.2.1", "::ffff:192.0.2.1"];
        all.iter().for_each(|text| shares.add(10, address(text)));
        for (text, of_network, of_site) in [
            ("2001:db8::3", 20, 30),
            ("2001:db8:0:1::2", 10, 30),
            ("2001:db8:0:2::1", 0, 30),
            ("2001:db8:1::2", 10, 10),
            ("2001:db8:2::1", 0, 0),
            ("192.0.2.1", 20, 0),
            ("192.0.2.2", 0, 0),
        ] {
            let has = (shares.of_network(address(text)), shares.of_site(address(text)));
            assert_eq!(has, (of_network, of_site), "{text}");
        }
        shares.take_away(5, address("2001:db8::1"));
        assert_eq!((shares.of_network(address("2001:db8::1")), shares.of_site(address("2001:db8::1"))), (15, 25));
        shares.add(5, address("2001:db8::1"));
        all.iter().for_each(|text| shares.take_away(10, address(text)));
        assert!(shares.is_empty());
    }
}
