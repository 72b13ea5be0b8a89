//! What was heard outside can't be had again as it was, so it is stored as often as it takes. And what is said there can't be taken
//! back, so it is said by nobody who may have been overtaken.

use std::sync::Arc;
use std::time::Duration;

use domain::job::{ClaimedJob, Job};
use store::Tx;
use store::queries::{doubts, jobs};
use tokio::time::Instant;

use super::{App, Context};
use crate::error::Failure;
use crate::monotonic::{self, Since};

/// Before the next try, where the database didn't take one. After the first nobody waits: most faults are over by then.
pub(super) const PAUSE: Duration = Duration::from_millis(250);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A job's: nobody else does the work anew before it ends.
pub(super) const LEASE: Duration = super::payments::INLINE_LEASE;
/// Where it is longer than this since a job was claimed, or since a code came, a call to a rail, which lasts up to 20 s, could outlast
/// the 30 s in which nobody else says what came of it: whoever took over could have called, and a person have decided, before it.
/// Five of them are left for clocks that are apart.
pub(super) const LATEST_BEGINNING: Duration = Duration::from_secs(5);

/// While the books are in doubt a refund waits, and is looked at as often.
const DOUBT_PAUSE: Duration = Duration::from_secs(30);

/// Of work that begins now: until when what it brings is stored. Whoever takes over says what came of it.
pub(super) fn while_held() -> Instant {
    monotonic::now() + LEASE
}

/// For whoever is told of a failure and comes again.
pub(super) fn once() -> Instant {
    monotonic::now()
}

/// Whether it would send money of which the books say two things, whichever process has seen that.
pub(crate) fn sends_doubtful(tx: &mut Tx<'_>, claimed: &ClaimedJob) -> Result<bool, store::Error> {
    Ok(matches!(claimed.job, Job::SendRefund(_)) && doubts::are_of(tx, claimed.scope)?)
}

/// Until the books may be right again.
pub(crate) fn put_off(tx: &mut Tx<'_>, claimed: &ClaimedJob) -> Result<(), store::Error> {
    jobs::put_off(tx, claimed, tx.now().plus(DOUBT_PAUSE))
}

impl App {
    /// Whether a rail may be called for a job that was claimed after `since`. A process that stood still, waited for its database, or
    /// whose machine was suspended, knows nothing of who took the job over meanwhile: it holds the job for longer first, and calls
    /// nobody where it can't. Nor may money be sent that the books are in doubt of by then.
    /// A fault of the database that passes is waited out as long as the job is surely held: a run that ended with it could not be
    /// told from one that called.
    pub(super) async fn may_call(&self, claimed: &ClaimedJob, mut since: Since) -> Result<bool, Failure> {
        while since.elapsed(self.store()) > LATEST_BEGINNING {
            let until = since.at + LEASE;
            since = Since::now(self.store());
            let claimed = claimed.clone();
            let renew = move |tx: &mut Tx<'_>, _: &Context| {
                if sends_doubtful(tx, &claimed)? {
                    put_off(tx, &claimed)?;
                    return Ok(false);
                }
                Ok(jobs::renew(tx, &claimed, tx.now().plus(LEASE))?)
            };
            if !self.commit_until(Some(until), renew).await? {
                tracing::warn!(
                    "a rail is not called: somebody has taken over the job and says what comes of it, or the books are in doubt"
                );
                return Ok(false);
            }
        }
        Ok(true)
    }

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
