//! What is seen of a server within a part of the time.

use std::time::Duration;

use super::judge::{Part, median};
use super::place::Place;
use crate::sample::Sample;

#[derive(Default)]
pub(super) struct Watch {
    memory: Vec<f64>,
    descriptors: Vec<f64>,
    log: f64,
}

impl Watch {
    pub(super) fn look(&mut self, place: &Place) {
        self.memory.extend(place.server.own_memory());
        self.descriptors.extend(place.server.descriptors());
        self.log = self.log.max(place.log());
    }

    pub(super) fn part(self, at: Duration, took: Vec<u32>, is_beside_reader: bool) -> Part {
        Part {
            at: at.as_secs_f64() / 3_600.0,
            memory: median(self.memory),
            descriptors: median(self.descriptors),
            slowest: Sample::new(Duration::ZERO, took).percentile(0.99) / 1_000.0,
            log: self.log,
            is_beside_reader,
        }
    }
}
