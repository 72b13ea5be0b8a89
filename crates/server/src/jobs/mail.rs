//! Sends mails: claim, write, hand over, store the outcome. Apart from the other jobs, because a mail server may take its
//! time, and payments don't wait for it.

use domain::Timestamp;
use store::Tx;
use store::queries::mails::{self, ClaimedMail};

use super::queue::Queue;
use crate::app::App;
use crate::app::mails::LEASE;
use crate::error::Failure;

#[derive(Clone)]
pub(super) struct Mails;

impl Queue for Mails {
    type Claimed = ClaimedMail;

    const NAME: &'static str = "mails";
    /// Connections to the mail server: most allow few.
    const CONCURRENCY: usize = 4;

    fn next_due(&self, tx: &mut Tx<'_>) -> Result<Option<Timestamp>, Failure> {
        Ok(mails::next_due(tx)?)
    }

    async fn claim(&self, app: &App, limit: usize) -> Result<Vec<ClaimedMail>, Failure> {
        let limit = i64::try_from(limit).unwrap_or(1);
        app.store().write(move |tx| mails::claim(tx, limit, tx.now().plus(LEASE)).map_err(Failure::from)).await
    }

    async fn work(&self, app: &App, claimed: ClaimedMail) {
        let Some(mailer) = app.mailer() else { return };
        if let Err(failure) = app.send_mail(mailer, &claimed).await {
            // The lease runs out, and it is tried again.
            tracing::error!(mail = %claimed.mail.id, %failure, "what came of a mail can't be stored");
        }
    }
}
