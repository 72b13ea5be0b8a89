//! What one measurement gave, and what several of them say together. Pure.

use std::time::Duration;

/// One load, from its first to its last answer after the warm-up.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) seconds: f64,
    /// In microseconds, sorted.
    latencies: Vec<u32>,
}

impl Sample {
    pub(crate) fn new(took: Duration, mut latencies: Vec<u32>) -> Self {
        latencies.sort_unstable();
        Self { seconds: took.as_secs_f64(), latencies }
    }

    pub(crate) fn count(&self) -> u64 {
        self.latencies.len() as u64
    }

    /// Answers a second.
    pub(crate) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.latencies.len() as f64 / self.seconds } else { 0.0 }
    }

    /// In microseconds: as many as `share` of the answers took no longer.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let Some(last) = self.latencies.len().checked_sub(1) else { return 0.0 };
        let rank = (share * self.latencies.len() as f64).ceil() as usize;
        f64::from(self.latencies[rank.saturating_sub(1).min(last)])
    }

    /// The worst stall, in microseconds.
    pub(crate) fn longest(&self) -> f64 {
        self.percentile(1.0)
    }
}

/// The middle of several figures, with the lowest and the highest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Middle {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Middle {
    pub(crate) fn of(figures: &[f64]) -> Self {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let median = match count {
            0 => 0.0,
            odd if odd % 2 == 1 => sorted[odd / 2],
            even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
        };
        Self {
            median,
            low: sorted.first().copied().unwrap_or_default(),
            high: sorted.last().copied().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_answers_that_were_given() {
        let sample = Sample::new(Duration::from_secs(2), (1..=1000).rev().collect());
        assert_eq!(sample.rate(), 500.0);
        assert_eq!(sample.percentile(0.5), 500.0);
        assert_eq!(sample.percentile(0.99), 990.0);
        assert_eq!(sample.percentile(0.999), 999.0);
        assert_eq!(sample.longest(), 1000.0);
    }

    #[test]
    fn nothing_measured_is_nothing() {
        let sample = Sample::new(Duration::ZERO, Vec::new());
        assert_eq!((sample.rate(), sample.percentile(0.5)), (0.0, 0.0));
    }

    #[test]
    fn one_bad_repeat_moves_the_spread_and_not_the_median() {
        let middle = Middle::of(&[0.4, 0.41, 0.1, 0.42, 0.4]);
        assert_eq!(middle, Middle { median: 0.4, low: 0.1, high: 0.42 });
        assert_eq!(Middle::of(&[1.0, 2.0]).median, 1.5);
        assert_eq!(Middle::of(&[]).median, 0.0);
    }
}
