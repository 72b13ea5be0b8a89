//! The one place that reads the machine's clock for business time.
//!
//! The time it gives never runs backwards within the process (promise P9). A jump of the wall clock against the
//! monotonic clock by more than a minute is logged and counted. It does not measure waits: those use the
//! monotonic clock directly, and it knows nothing of calendars.

use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub use store::Clock;

/// A difference between wall clock and monotonic clock that changes by more than this is a jump.
const JUMP_US: i64 = 60 * 1_000_000;

pub const CLOCK_JUMPS_METRIC: &str = "dalasi_clock_jumps_total";

/// The machine's clock, made monotone.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
    state: Mutex<MonotoneTime>,
}

impl SystemClock {
    pub fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "jumps of the wall clock show against the monotonic one")]
        let origin = Instant::now();
        Self { origin, state: Mutex::new(MonotoneTime::starting_at(wall_us(), 0)) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now_us(&self) -> i64 {
        let mut state = self.state.lock().expect("nothing that holds this lock can panic");
        let elapsed_us = i64::try_from(self.origin.elapsed().as_micros()).unwrap_or(i64::MAX);
        let reading = state.observe(wall_us(), elapsed_us);
        drop(state);
        if let Some(jump_us) = reading.jump_us {
            metrics::counter!(CLOCK_JUMPS_METRIC).increment(1);
            tracing::warn!(jump_seconds = jump_us / 1_000_000, "the system clock jumped");
        }
        reading.now_us
    }

    fn wall_us(&self) -> i64 {
        wall_us()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one reader of the wall clock")]
fn wall_us() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        // A machine without a battery may boot before 1970; time then stands still until it is set.
        Err(_) => 0,
    }
}

/// The wall clock; behind what was already given, half as fast as the monotonic clock until the wall clock is there again. If it
/// stood still instead, nothing would become due meanwhile, for as long as the wall clock had been ahead.
#[derive(Debug)]
struct MonotoneTime {
    /// The latest reading that was the wall clock's own, and when that was.
    wall_us: i64,
    elapsed_us: i64,
    /// Wall clock minus monotonic clock at the last reading: constant while nobody touches the wall clock, and
    /// slow slewing never adds up to a jump.
    offset_us: i64,
}

#[derive(Debug)]
struct Reading {
    now_us: i64,
    jump_us: Option<i64>,
}

impl MonotoneTime {
    fn starting_at(wall_us: i64, elapsed_us: i64) -> Self {
        Self { wall_us, elapsed_us, offset_us: wall_us.saturating_sub(elapsed_us) }
    }

    fn observe(&mut self, wall_us: i64, elapsed_us: i64) -> Reading {
        let offset_us = wall_us.saturating_sub(elapsed_us);
        let moved_us = offset_us.saturating_sub(self.offset_us);
        self.offset_us = offset_us;
        let slow_us = self.wall_us.saturating_add(elapsed_us.saturating_sub(self.elapsed_us) / 2);
        if wall_us >= slow_us {
            (self.wall_us, self.elapsed_us) = (wall_us, elapsed_us);
        }
        Reading { now_us: wall_us.max(slow_us), jump_us: (moved_us.saturating_abs() > JUMP_US).then_some(moved_us) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn time_never_runs_backwards() {
        let mut time = MonotoneTime::starting_at(1_000 * SECOND, 0);
        assert_eq!(time.observe(1_001 * SECOND, SECOND).now_us, 1_001 * SECOND);
        let back = time.observe(1_000 * SECOND, 2 * SECOND);
        assert_eq!(back.now_us, 1_001 * SECOND + SECOND / 2);
        assert!(back.jump_us.is_none(), "two seconds are no jump");
        assert_eq!(time.observe(1_005 * SECOND, 7 * SECOND).now_us, 1_005 * SECOND);
    }

    #[test]
    fn behind_itself_it_goes_on_at_half_the_pace_until_the_wall_clock_is_there_again() {
        let mut time = MonotoneTime::starting_at(1_000 * SECOND, 0);
        assert_eq!(time.observe(2_000 * SECOND, 0).now_us, 2_000 * SECOND);
        assert_eq!(time.observe(1_100 * SECOND, 100 * SECOND).now_us, 2_050 * SECOND);
        assert_eq!(time.observe(1_101 * SECOND, 101 * SECOND).now_us, 2_050 * SECOND + SECOND / 2);
        // A wall clock that stands still as well.
        assert_eq!(time.observe(1_101 * SECOND, 201 * SECOND).now_us, 2_100 * SECOND + SECOND / 2);
        assert_eq!(time.observe(3_000 * SECOND, 2_000 * SECOND).now_us, 3_000 * SECOND);
        assert_eq!(time.observe(3_001 * SECOND, 2_001 * SECOND).now_us, 3_001 * SECOND);
    }

    #[test]
    fn a_jump_is_reported_once_in_either_direction() {
        let mut time = MonotoneTime::starting_at(1_000 * SECOND, 0);
        assert_eq!(time.observe(1_062 * SECOND, SECOND).jump_us, Some(61 * SECOND));
        assert_eq!(time.observe(1_063 * SECOND, 2 * SECOND).jump_us, None);
        let back = time.observe(900 * SECOND, 3 * SECOND);
        assert_eq!(back.jump_us, Some(-164 * SECOND));
        assert_eq!(back.now_us, 1_063 * SECOND + SECOND / 2);
        assert_eq!(time.observe(961 * SECOND, 4 * SECOND).jump_us, None, "exactly a minute is no jump");
    }

    #[test]
    fn an_idle_hour_is_no_jump() {
        let mut time = MonotoneTime::starting_at(0, 0);
        assert!(time.observe(3_600 * SECOND, 3_600 * SECOND).jump_us.is_none());
    }

    #[test]
    fn the_system_clock_is_monotone_across_threads_and_near_the_wall_clock() {
        let clock = SystemClock::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut last = 0;
                    for _ in 0..10_000 {
                        let now = clock.now_us();
                        assert!(now >= last);
                        last = now;
                    }
                });
            }
        });
        assert!((clock.now_us() - wall_us()).abs() < 5 * SECOND);
    }
}
