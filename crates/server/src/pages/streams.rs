//! How many pages may listen at a time: in all, and from one address. A page that finds no place asks now and then
//! instead.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::listener::{ClientAddress, network};

const MOST: usize = 2000;
/// Many payers can stand behind one address of a mobile network.
const MOST_PER_ADDRESS: usize = 64;

#[derive(Clone, Default)]
pub(super) struct Streams(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// Given back when the stream ends.
pub(super) struct Place {
    streams: Streams,
    address: IpAddr,
}

impl Streams {
    pub(super) fn take(&self, ClientAddress(address): ClientAddress) -> Option<Place> {
        let address = network(address);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let mine = open.get(&address).copied().unwrap_or(0);
        if all >= MOST || mine >= MOST_PER_ADDRESS {
            return None;
        }
        open.insert(address, mine + 1);
        Some(Place { streams: self.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mine) = open.get_mut(&self.address) {
            *mine -= 1;
            if *mine == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ClientAddress {
        ClientAddress(text.parse().unwrap())
    }

    #[test]
    fn an_address_has_so_many_places_and_gets_them_back() {
        let streams = Streams::default();
        let mut places: Vec<_> = (0..MOST_PER_ADDRESS).map(|_| streams.take(address("10.0.0.1")).unwrap()).collect();
        assert!(streams.take(address("10.0.0.1")).is_none());
        assert!(streams.take(address("10.0.0.2")).is_some());
        places.pop();
        assert!(streams.take(address("10.0.0.1")).is_some());
        drop(places);
        assert!(streams.0.lock().unwrap().is_empty());
    }

    #[test]
    fn there_is_an_end_in_all() {
        let streams = Streams::default();
        let places: Vec<_> = (0..MOST)
            .map(|index| streams.take(address(&format!("10.0.{}.{}", index / 250, index % 250))).unwrap())
            .collect();
        assert!(streams.take(address("10.9.9.9")).is_none());
        drop(places);
        assert!(streams.take(address("10.9.9.9")).is_some());
    }
}
