//! Whose request it is, seen through the proxies that we trust and no others.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::HeaderMap;

/// The client's address, in the extensions of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// Counts from the right of `X-Forwarded-For`: each trusted proxy has appended the address that it saw, whatever
    /// stands further left came from the client and proves nothing.
    pub(super) fn new(peer: SocketAddr, headers: &HeaderMap, trusted_proxies: usize) -> Self {
        Self(forwarded(headers, trusted_proxies).unwrap_or(peer.ip()).to_canonical())
    }
}

fn forwarded(headers: &HeaderMap, trusted_proxies: usize) -> Option<IpAddr> {
    let lines = headers.get_all("x-forwarded-for").iter();
    let entries: Vec<&[u8]> = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b',')).collect();
    // A shorter list than there are proxies: the request came in further inside, and the first entry is theirs too.
    let steps = match domain::planted!(Defect::ForwardedBelieved) {
        true => entries.len(),
        false => trusted_proxies.min(entries.len()),
    };
    let entry = entries.get(entries.len().checked_sub(steps)?)?;
    let entry = std::str::from_utf8(entry).ok()?.trim();
    let bare = entry.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    bare.unwrap_or(entry).parse().ok().or_else(|| entry.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

/// What is counted as one client: an IPv4 address, or the /64 that an IPv6 client can choose from freely.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(prefix(address, 64)),
    }
}

/// The largest part of IPv6 that one place is given to choose its networks from (RFC 6177): a /48. Of IPv4 a place has an address.
pub fn site(address: IpAddr) -> Option<Ipv6Addr> {
    match address.to_canonical() {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(prefix(address, 48)),
    }
}

fn prefix(address: Ipv6Addr, bits: u32) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(address) & (u128::MAX << (128 - bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lines: &[&str], trusted_proxies: usize) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", line.parse().expect("a value"));
        }
        let peer = "10.0.0.1:5000".parse().expect("an address");
        ClientAddress::new(peer, &headers, trusted_proxies).0.to_string()
    }

    #[test]
    fn counts_from_the_right() {
        for (lines, trusted_proxies, expected) in [
            (&["1.1.1.1, 2.2.2.2, 3.3.3.3"][..], 0, "10.0.0.1"),
            (&["1.1.1.1, 2.2.2.2, 3.3.3.3"], 1, "3.3.3.3"),
            (&["1.1.1.1, 2.2.2.2, 3.3.3.3"], 2, "2.2.2.2"),
            (&["1.1.1.1", "2.2.2.2,3.3.3.3"], 2, "2.2.2.2"),
            (&["1.1.1.1"], 2, "1.1.1.1"),
            (&[], 1, "10.0.0.1"),
            (&["unknown"], 1, "10.0.0.1"),
            (&["1.1.1.1, "], 1, "10.0.0.1"),
            (&["4.4.4.4:1234"], 1, "4.4.4.4"),
            (&["[2001:db8::1]:1234"], 1, "2001:db8::1"),
            (&["[2001:db8::1]"], 1, "2001:db8::1"),
            (&["::ffff:9.9.9.9"], 1, "9.9.9.9"),
        ] {
            assert_eq!(seen(lines, trusted_proxies), expected, "{lines:?} {trusted_proxies}");
        }
    }

    #[test]
    fn an_ipv6_client_is_its_64() {
        let of = |text: &str| network(text.parse().expect("an address")).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:1.2.3.4"), "1.2.3.4");
        assert_eq!(of("1.2.3.4"), "1.2.3.4");
    }

    #[test]
    fn an_ipv6_site_is_its_48() {
        let of = |text: &str| site(text.parse().expect("an address")).map(|site| site.to_string());
        assert_eq!(of("2001:db8:1:2:3:4:5:6").as_deref(), Some("2001:db8:1::"));
        assert_eq!((of("::ffff:1.2.3.4"), of("1.2.3.4")), (None, None));
    }
}
