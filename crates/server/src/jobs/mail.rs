//! Sends mails: claim, write, hand over, store the outcome. Apart from the other jobs, because a mail server may take its
//! time, and payments don't wait for it; and live mail does not wait for what anybody sends in test mode.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::mail::Mail;
use domain::{Id, Mode, Timestamp};
use store::{Tx, Worker};

use super::queue::Queue;
use crate::app::App;
use crate::app::mail_turns::{self, PLACES, Turns};
use crate::app::mails::{HeldMail, LEASE};
use crate::error::Failure;
use crate::monotonic;

#[derive(Clone, Default)]
pub(super) struct Mails {
    turns: Arc<Mutex<Turns>>,
}

impl Mails {
    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue for Mails {
    type Claimed = HeldMail;

    const NAME: &'static str = "mails";
    const WORKER: Worker = Worker::Mails;
    const CONCURRENCY: usize = PLACES;
    const PASSES_OVER: bool = true;

    fn next_due(&self, tx: &mut Tx<'_>) -> Result<Option<Timestamp>, Failure> {
        let mut seen = self.turns().clone();
        let next = seen.look(tx)?;
        self.turns().know(seen);
        Ok(next)
    }

    async fn claim(&self, app: &App, limit: usize) -> Result<Vec<HeldMail>, Failure> {
        let since = monotonic::now();
        let before = self.turns().clone();
        let claimed = app.store().write(move |tx| {
            let (mut turns, until) = (before.clone(), tx.now().plus(LEASE));
            let mut claimed = mail_turns::claim(tx, Mode::Live, limit, until, &mut turns)?;
            let left = limit.saturating_sub(claimed.len());
            claimed.extend(mail_turns::claim(tx, Mode::Test, left, until, &mut turns)?);
            Ok::<_, Failure>((claimed, turns))
        });
        let (claimed, after) = claimed.await?;
        self.turns().add(after, &claimed);
        Ok(claimed.into_iter().map(|claimed| HeldMail::new(claimed, since)).collect())
    }

    async fn work(&self, app: &App, held: HeldMail) {
        let in_hand = InHand { of: self.clone(), mail: held.mail().id };
        let Some(mailer) = app.mailer() else { return };
        if let Err(failure) = app.send_mail(mailer, held).await {
            // The lease runs out, and it is tried again.
            tracing::error!(mail = %in_hand.mail, %failure, "what came of a mail can't be stored");
        }
    }
}

/// A mail in this process's hands, until it is dropped.
struct InHand {
    of: Mails,
    mail: Id<Mail>,
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.of.turns().ended(self.mail);
    }
}
