//! Which addresses are on the public internet, by the IANA special-purpose address registries.
//!
//! Everything in a registry is refused, also the few ranges that are marked globally reachable (anycast services,
//! AS112, the NAT64 prefix): no receiver of webhooks lives there, and translated ranges can hide a private address.
//! Of IPv6 only global unicast, 2000::/3, can be public at all.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

struct V4Range(Ipv4Addr, u32);
struct V6Range(Ipv6Addr, u32);

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u32) -> V4Range {
    V4Range(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(a: u16, b: u16, c: u16, d: u16, length: u32) -> V6Range {
    V6Range(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), length)
}

const SPECIAL_V4: &[V4Range] = &[
    v4(0, 0, 0, 0, 8),        // this network
    v4(10, 0, 0, 0, 8),       // private
    v4(100, 64, 0, 0, 10),    // shared by carriers (CGNAT); a cloud's metadata service
    v4(127, 0, 0, 0, 8),      // loopback
    v4(168, 63, 129, 16, 32), // a cloud's host services: not in the registry, reachable from its machines only
    v4(169, 254, 0, 0, 16),   // link-local; metadata services
    v4(172, 16, 0, 0, 12),    // private
    v4(192, 0, 0, 0, 24),     // protocol assignments
    v4(192, 0, 2, 0, 24),     // documentation
    v4(192, 31, 196, 0, 24),  // AS112
    v4(192, 52, 193, 0, 24),  // automatic multicast tunneling
    v4(192, 88, 99, 0, 24),   // 6to4 relays
    v4(192, 168, 0, 0, 16),   // private
    v4(192, 175, 48, 0, 24),  // AS112
    v4(198, 18, 0, 0, 15),    // benchmarking
    v4(198, 51, 100, 0, 24),  // documentation
    v4(203, 0, 113, 0, 24),   // documentation
    v4(224, 0, 0, 0, 4),      // multicast
    v4(240, 0, 0, 0, 4),      // reserved, and the limited broadcast address
];

const GLOBAL_UNICAST_V6: V6Range = v6(0x2000, 0, 0, 0, 3);

/// Inside global unicast only: ::1, ::ffff:0:0/96, 64:ff9b::/96, 64:ff9b:1::/48, 100::/64, 5f00::/16, fc00::/7,
/// fe80::/10 and ff00::/8 lie outside it.
const SPECIAL_V6: &[V6Range] = &[
    v6(0x2001, 0, 0, 0, 23),         // protocol assignments: Teredo, benchmarking, ORCHID, …
    v6(0x2001, 0xdb8, 0, 0, 32),     // documentation
    v6(0x2002, 0, 0, 0, 16),         // 6to4
    v6(0x2620, 0x4f, 0x8000, 0, 48), // AS112
    v6(0x3fff, 0, 0, 0, 20),         // documentation
];

impl V4Range {
    fn contains(&self, address: Ipv4Addr) -> bool {
        (address.to_bits() ^ self.0.to_bits()).leading_zeros() >= self.1
    }
}

impl V6Range {
    fn contains(&self, address: Ipv6Addr) -> bool {
        (address.to_bits() ^ self.0.to_bits()).leading_zeros() >= self.1
    }
}

/// Whether a connection to `address` leaves for the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|range| range.contains(address)),
        IpAddr::V6(address) => {
            GLOBAL_UNICAST_V6.contains(address) && !SPECIAL_V6.iter().any(|range| range.contains(address))
        }
    }
}

/// Whether `address` is this machine. An IPv4 address in IPv6 clothes is not accepted as such.
pub(super) fn is_loopback(address: IpAddr) -> bool {
    address.is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().unwrap_or_else(|_| panic!("{text} is no address")))
    }

    /// First address, last address, and whether the neighbours outside are public.
    const REGISTRY: &[(&str, &str)] = &[
        ("0.0.0.0", "0.255.255.255"),
        ("10.0.0.0", "10.255.255.255"),
        ("100.64.0.0", "100.127.255.255"),
        ("127.0.0.0", "127.255.255.255"),
        ("168.63.129.16", "168.63.129.16"),
        ("169.254.0.0", "169.254.255.255"),
        ("172.16.0.0", "172.31.255.255"),
        ("192.0.0.0", "192.0.0.255"),
        ("192.0.2.0", "192.0.2.255"),
        ("192.31.196.0", "192.31.196.255"),
        ("192.52.193.0", "192.52.193.255"),
        ("192.88.99.0", "192.88.99.255"),
        ("192.168.0.0", "192.168.255.255"),
        ("192.175.48.0", "192.175.48.255"),
        ("198.18.0.0", "198.19.255.255"),
        ("198.51.100.0", "198.51.100.255"),
        ("203.0.113.0", "203.0.113.255"),
        ("224.0.0.0", "255.255.255.255"),
        ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ];

    #[test]
    fn ranges_begin_and_end_where_the_registry_says() {
        for (first, last) in REGISTRY {
            assert!(!public(first), "{first}");
            assert!(!public(last), "{last}");
            let before = neighbour(first, -1);
            let after = neighbour(last, 1);
            for outside in [before, after].into_iter().flatten() {
                let inside_another = REGISTRY.iter().any(|(first, last)| {
                    let range = first.parse::<IpAddr>().expect("an address")..=last.parse().expect("an address");
                    range.contains(&outside)
                });
                assert_eq!(is_public(outside), !inside_another, "{outside}");
            }
        }
    }

    fn neighbour(text: &str, step: i32) -> Option<IpAddr> {
        match text.parse().expect("an address") {
            IpAddr::V4(address) => Some(IpAddr::V4(Ipv4Addr::from_bits(address.to_bits().checked_add_signed(step)?))),
            IpAddr::V6(address) => {
                Some(IpAddr::V6(Ipv6Addr::from_bits(address.to_bits().checked_add_signed(i128::from(step))?)))
            }
        }
    }

    #[test]
    fn every_disguise_of_an_inner_address_is_refused() {
        for address in [
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::8.8.8.8",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::10.0.0.1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:30::1",
            "2001:3::1",
            "2001:4:112::1",
            "100::1",
            "100:0:0:1::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff::1",
            "ff02::1",
            "ff0e::1",
            "5f00::1",
            "3fff::1",
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "192.0.0.192",
            "192.0.0.170",
            "255.255.255.255",
            "233.252.0.1",
            "198.19.255.1",
        ] {
            assert!(!public(address), "{address}");
        }
    }

    #[test]
    fn ordinary_addresses_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "41.223.215.1",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "2c0f:f248::1",
        ] {
            assert!(public(address), "{address}");
        }
    }
}
