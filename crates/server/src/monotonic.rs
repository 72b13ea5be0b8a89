//! The clock for waits: how long something has taken, until when to be patient. It never jumps, and under a paused
//! runtime it stands still. It gives no time of day; that is `clock`'s.

use std::cell::Cell;
use std::time::Duration;

use domain::Timestamp;
use store::Store;
use tokio::time::Instant;

#[expect(clippy::disallowed_methods, reason = "this is the one place where waits are measured")]
pub fn now() -> Instant {
    Instant::now()
}

tokio::task_local! {
    static ASKED_AT: Cell<Instant>;
}

/// Answers a request that has just come. Whoever sent it counts from there, and not from when its handler began: who they are is
/// looked up before, and that may take its time.
pub async fn answering<F: Future>(request: F) -> F::Output {
    ASKED_AT.scope(Cell::new(now()), request).await
}

/// Since when the request that is being answered here waits: now, where there is none.
pub fn asked_at() -> Instant {
    ASKED_AT.try_with(Cell::get).unwrap_or_else(|_| now())
}

/// Its sender took so long for a part of it.
pub fn was_sending(took: Duration) {
    // Nobody counts where no request is answered.
    let _ = ASKED_AT.try_with(|asked_at| asked_at.set(asked_at.get() + took));
}

/// When something was begun that others take over after a while. While the machine is suspended the clock for waits stands still, and
/// others' time goes on: what the wall clock says counts as well. One that was set back takes nothing away.
#[derive(Debug, Clone, Copy)]
pub struct Since {
    pub at: Instant,
    pub wall: Timestamp,
}

impl Since {
    pub fn now(store: &Store) -> Self {
        Self { at: now(), wall: store.wall_time() }
    }

    /// The longest that it may have been: too long where the wall clock was set forward, which costs no more than caution does.
    pub fn elapsed(self, store: &Store) -> Duration {
        self.until(Self::now(store))
    }

    fn until(self, later: Self) -> Duration {
        (later.at - self.at).max(later.wall.since(self.wall))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_its_sender_took_is_not_counted() {
        let begun = now();
        answering(async {
            tokio::time::sleep(Duration::from_secs(9)).await;
            assert_eq!(asked_at(), begun);
            tokio::time::sleep(Duration::from_secs(4)).await;
            was_sending(Duration::from_secs(4));
            assert_eq!(now() - asked_at(), Duration::from_secs(9));
        })
        .await;
        was_sending(Duration::from_secs(4));
        assert_eq!(asked_at(), now());
    }

    #[test]
    fn the_clock_that_says_more_counts() {
        let begun = Since { at: now(), wall: Timestamp::from_micros(7_200_000_000) };
        for (waited_s, wall_s, elapsed_s) in [(5, 5, 5), (0, 65, 65), (5, -3_600, 5)] {
            let later = Since {
                at: begun.at + Duration::from_secs(waited_s),
                wall: Timestamp::from_micros(begun.wall.micros() + wall_s * 1_000_000),
            };
            assert_eq!(begun.until(later), Duration::from_secs(elapsed_s), "{waited_s} {wall_s}");
        }
    }
}
