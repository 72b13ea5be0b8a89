//! Sends mails: claim, write, hand over, store the outcome. Apart from the other jobs, because a mail server may take its
//! time, and payments don't wait for it.

use std::sync::Arc;
use std::time::Duration;

use store::queries::mails::{self, ClaimedMail};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::{Look, rest, until};
use crate::app::App;
use crate::app::mails::LEASE;
use crate::error::Failure;

/// Connections to the mail server at a time: most allow few.
const CONCURRENCY: usize = 4;

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    // What was owed while there was a mail server waits until there is one again.
    if app.mailer().is_none() {
        return;
    }
    let slots = Arc::new(Semaphore::new(CONCURRENCY));
    let mut running = JoinSet::new();
    let mut bell = app.bell();
    while !*stop.borrow() {
        while running.try_join_next().is_some() {}
        let free = slots.available_permits();
        let look = if free == 0 { Look::Later(None) } else { claim(&app, free).await };
        let (claimed, next) = look.parts();
        for mail in claimed {
            let permit = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
            let app = app.clone();
            running.spawn(async move {
                send(&app, &mail).await;
                drop(permit);
            });
        }
        let Some(next) = next else { continue };
        rest(next, running.len() >= CONCURRENCY, &mut bell, &mut stop).await;
    }
    while running.join_next().await.is_some() {}
}

async fn claim(app: &App, limit: usize) -> Look<ClaimedMail> {
    let limit = i64::try_from(limit).unwrap_or(1);
    let next = app.read(|tx, _| Ok(until(tx.now(), mails::next_due(tx)?))).await;
    let claimed = match next {
        Ok(Some(Duration::ZERO)) => {
            let store = app.store().clone();
            store.write(move |tx| mails::claim(tx, limit, tx.now().plus(LEASE)).map_err(Failure::from)).await
        }
        Ok(later) => return Look::Later(later),
        Err(failure) => Err(failure),
    };
    Look::of(claimed, "mails can't be claimed")
}

async fn send(app: &App, claimed: &ClaimedMail) {
    let Some(mailer) = app.mailer() else { return };
    if let Err(failure) = app.send_mail(mailer, claimed).await {
        // The lease runs out, and it is tried again.
        tracing::error!(mail = %claimed.mail.id, %failure, "what came of a mail can't be stored");
    }
}
