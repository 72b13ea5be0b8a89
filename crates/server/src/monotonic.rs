//! The clock for waits: how long something has taken, until when to be patient. It never jumps, and under a paused
//! runtime it stands still. It gives no time of day; that is `clock`'s.

use tokio::time::Instant;

#[expect(clippy::disallowed_methods, reason = "this is the one place where waits are measured")]
pub fn now() -> Instant {
    Instant::now()
}
