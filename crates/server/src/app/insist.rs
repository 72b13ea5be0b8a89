//! What was heard outside can't be had again as it was, so it is stored as often as it takes.

use std::sync::Arc;
use std::time::Duration;

use store::Tx;
use tokio::time::Instant;

use super::{App, Context};
use crate::error::Failure;
use crate::monotonic;

/// Before the next try, where the database didn't take one. After the first nobody waits: most faults are over by then.
pub(super) const PAUSE: Duration = Duration::from_millis(250);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A job's: nobody else does the work anew before it ends.
pub(super) const LEASE: Duration = super::payments::INLINE_LEASE;

/// Of work that begins now: until when what it brings is stored. Whoever takes over says what came of it.
pub(super) fn while_held() -> Instant {
    monotonic::now() + LEASE
}

/// For whoever is told of a failure and comes again.
pub(super) fn once() -> Instant {
    monotonic::now()
}

impl App {
    /// [`App::commit`] as often as it takes where the fault passes, and until then; `None`: for as long as this process lives. The
    /// command has to bear being done a second time, since a commit may have an unknown outcome.
    pub(super) async fn commit_until<T, F>(&self, until: Option<Instant>, command: F) -> Result<T, Failure>
    where
        F: Fn(&mut Tx<'_>, &Context) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + 'static,
    {
        let command = Arc::new(command);
        let mut pause = Duration::ZERO;
        loop {
            let again = Arc::clone(&command);
            let failure = match self.commit(move |tx, context| again(tx, context)).await {
                Ok(stored) => return Ok(stored),
                Err(failure) => failure,
            };
            if !failure.passes() || until.is_some_and(|until| until <= monotonic::now() + pause) {
                return Err(failure);
            }
            tracing::warn!(%failure, "what was heard outside can't be stored yet");
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            pause = LONGEST_PAUSE.min(PAUSE.max(pause * 2));
        }
    }
}
