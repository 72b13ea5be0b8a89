//! Sends mails: claim, write, hand over, store the outcome. Apart from the other jobs, because a mail server may take its
//! time, and payments don't wait for it; and live mail does not wait for what anybody sends in test mode.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::{Mode, Timestamp};
use store::Tx;
use store::queries::mails::{self, ClaimedMail};

use super::queue::Queue;
use crate::app::App;
use crate::app::mails::LEASE;
use crate::error::Failure;

/// Connections to the mail server: most allow few.
const PLACES: usize = 4;
const MOST_OF_TEST: usize = PLACES / 2;

#[derive(Clone, Default)]
pub(super) struct Mails {
    /// Places that test mode has taken.
    of_test: Arc<AtomicUsize>,
}

impl Mails {
    fn free_for_test(&self) -> usize {
        MOST_OF_TEST.saturating_sub(self.of_test.load(Ordering::SeqCst))
    }
}

impl Queue for Mails {
    type Claimed = ClaimedMail;

    const NAME: &'static str = "mails";
    const CONCURRENCY: usize = PLACES;

    fn next_due(&self, tx: &mut Tx<'_>) -> Result<Option<Timestamp>, Failure> {
        let modes: &[Mode] = if self.free_for_test() > 0 { &[Mode::Live, Mode::Test] } else { &[Mode::Live] };
        Ok(mails::next_due(tx, modes)?)
    }

    async fn claim(&self, app: &App, limit: usize) -> Result<Vec<ClaimedMail>, Failure> {
        let for_test = self.free_for_test();
        let claimed = app.store().write(move |tx| {
            let lease_until = tx.now().plus(LEASE);
            let mut claimed = mails::claim(tx, Mode::Live, limit, lease_until)?;
            let left = limit.saturating_sub(claimed.len()).min(for_test);
            claimed.extend(mails::claim(tx, Mode::Test, left, lease_until)?);
            Ok::<_, Failure>(claimed)
        });
        let claimed = claimed.await?;
        let of_test = claimed.iter().filter(|one| one.mail.scope.mode == Mode::Test).count();
        self.of_test.fetch_add(of_test, Ordering::SeqCst);
        Ok(claimed)
    }

    async fn work(&self, app: &App, claimed: ClaimedMail) {
        let place = (claimed.mail.scope.mode == Mode::Test).then(|| Place(Arc::clone(&self.of_test)));
        let Some(mailer) = app.mailer() else { return };
        if let Err(failure) = app.send_mail(mailer, &claimed, place).await {
            // The lease runs out, and it is tried again.
            tracing::error!(mail = %claimed.mail.id, %failure, "what came of a mail can't be stored");
        }
    }
}

/// One that test mode has taken: given back when it is dropped.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
