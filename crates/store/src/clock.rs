//! Time and randomness come from outside, so that a test can replay both.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

pub trait Clock: Send + Sync + 'static {
    /// Microseconds since the Unix epoch, UTC.
    fn now_us(&self) -> i64;

    /// What others' clocks say as well, as far as this machine knows: set back, it runs backwards.
    fn wall_us(&self) -> i64 {
        self.now_us()
    }
}

pub trait EntropySource: Send + Sync + 'static {
    fn fill(&self, bytes: &mut [u8; 32]);
}

/// Business time: never runs backwards within this process, whatever clock it was given.
pub(crate) struct Monotone {
    clock: Arc<dyn Clock>,
    latest_us: AtomicI64,
}

impl Monotone {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, latest_us: AtomicI64::new(i64::MIN) }
    }

    pub(crate) fn now_us(&self) -> i64 {
        let now_us = self.clock.now_us();
        now_us.max(self.latest_us.fetch_max(now_us, Ordering::Relaxed))
    }

    pub(crate) fn wall_us(&self) -> i64 {
        self.clock.wall_us()
    }

    #[cfg(feature = "inline")]
    pub(crate) fn forget(&self) {
        self.latest_us.store(i64::MIN, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Steps(AtomicI64);

    impl Clock for Steps {
        fn now_us(&self) -> i64 {
            self.0.fetch_sub(1, Ordering::Relaxed)
        }
    }

    #[test]
    fn time_never_runs_backwards() {
        let clock = Monotone::new(Arc::new(Steps(AtomicI64::new(100))));
        assert_eq!([clock.now_us(), clock.now_us(), clock.now_us()], [100, 100, 100]);
    }
}
