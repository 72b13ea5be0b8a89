//! The one place that reads a clock.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures what takes how long")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
