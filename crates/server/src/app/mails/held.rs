//! A mail in a worker's hands: held by a lease that is renewed while it is sent, and held on to where the database says nothing
//! for a while. What was sent can't be asked for, so nothing of ours may make it be sent once more.

use std::time::Duration;

use domain::mail::{Mail, MailAttempted};
use store::Tx;
use store::queries::mails::{self, ClaimedMail};
use tokio::time::Instant;

use super::attempted;
use crate::app::App;
use crate::app::insist::{LONGEST_PAUSE, PAUSE};
use crate::error::Failure;
use crate::mail::LastLine;
use crate::monotonic;

/// After so long a silent worker's mail goes to another; one that works on says so in time.
pub const LEASE: Duration = Duration::from_secs(30);
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// A mail that was claimed.
pub struct HeldMail {
    claimed: ClaimedMail,
    /// Not later than the lease ends.
    until: Instant,
    /// It is stored as sent without an answer.
    is_begun: bool,
}

impl HeldMail {
    /// `since`: not later than the claim began.
    pub fn new(claimed: ClaimedMail, since: Instant) -> Self {
        Self { claimed, until: since + LEASE, is_begun: false }
    }

    pub fn mail(&self) -> &Mail {
        &self.claimed.mail
    }

    /// Whether it is this worker's at this moment, for sending it. From then on it counts as sent without an answer, until what came
    /// of it is stored: a process that ends with it stores nothing more.
    pub(super) async fn begin(&mut self, app: &App) -> bool {
        let begun = tokio::time::timeout_at(self.until, self.granted(app, begin)).await.ok().flatten();
        self.until = begun.unwrap_or(self.until);
        self.is_begun = begun.is_some();
        self.is_begun
    }

    /// What comes of an attempt while the mail is held. Nothing, where another worker has it or may have it: that one answers for
    /// it. But from the message's last line on the mail server may have it, and its answer is waited for all the same.
    pub(super) async fn during<T>(
        &mut self,
        app: &App,
        last_line: &LastLine,
        attempt: impl Future<Output = T>,
    ) -> Option<T> {
        let mut attempt = std::pin::pin!(attempt);
        loop {
            tokio::select! {
                ended = &mut attempt => return Some(ended),
                renewed = self.renewed(app) => match renewed {
                    Some(until) => self.until = until,
                    None if last_line.is_said() => return Some(attempt.await),
                    None => return None,
                },
                () = tokio::time::sleep_until(self.until), if !last_line.is_said() => {
                    if !last_line.is_said() {
                        return None;
                    }
                }
            }
        }
    }

    /// When the lease ends that a sign of life is granted.
    async fn renewed(&self, app: &App) -> Option<Instant> {
        tokio::time::sleep(SIGN_OF_LIFE).await;
        self.granted(app, renew).await
    }

    /// When the lease ends that is granted, however often the database has to be asked; nothing where another worker has the mail, or
    /// all is said of it.
    async fn granted(&self, app: &App, ask: Ask) -> Option<Instant> {
        let mut pause = PAUSE;
        loop {
            let (asked, claimed) = (monotonic::now(), self.claimed.clone());
            match app.commit(move |tx, _| Ok(ask(tx, &claimed)?)).await {
                Ok(is_held) => return is_held.then_some(asked + LEASE),
                Err(failure) => {
                    tracing::warn!(mail = %self.claimed.mail.id, %failure, "that a mail is worked on can't be stored yet");
                }
            }
            tokio::time::sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// What came of the attempt, as often as it takes where the fault passes: until the lease ends, or, of a message of which
    /// something else is stored that is not so, for as long as this process lives.
    pub(super) async fn store(self, app: &App, outcome: MailAttempted) -> Result<(), Failure> {
        let is_stored_otherwise =
            self.is_begun && !matches!(outcome, MailAttempted::Failed { may_have_arrived: true, .. });
        let until = (!is_stored_otherwise).then_some(self.until);
        app.commit_until(until, move |tx, _| attempted(tx, &self.claimed, &outcome)).await
    }
}

/// Asks for a lease, in a transaction; whether it is granted.
type Ask = fn(&mut Tx<'_>, &ClaimedMail) -> Result<bool, store::Error>;

fn renew(tx: &mut Tx<'_>, claimed: &ClaimedMail) -> Result<bool, store::Error> {
    let until = tx.now().plus(LEASE);
    mails::renew(tx, claimed, until)
}

fn begin(tx: &mut Tx<'_>, claimed: &ClaimedMail) -> Result<bool, store::Error> {
    let (now, jitter) = (tx.now(), tx.entropy().below(2_001));
    mails::begin(tx, claimed, &claimed.mail.begun(now, jitter), now.plus(LEASE))
}
