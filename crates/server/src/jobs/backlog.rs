//! Says how late the work is, so that a worker that is stuck or missing is seen before a merchant asks. It only looks.

use std::time::Duration;

use domain::job::Lane;
use domain::{Mode, Timestamp};
use store::queries::{deliveries, jobs, mails};
use tokio::sync::watch;

use crate::app::{App, delivery_places};
use crate::metrics;

const PERIOD: Duration = Duration::from_secs(10);

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        let late = app.read(|tx, _| {
            let now = tx.now();
            let late = |due_at: Option<Timestamp>| due_at.map_or(Duration::ZERO, |due_at| now.since(due_at));
            let failing = delivery_places::failing(tx)?;
            Ok([
                ("jobs", late(jobs::next_due(tx, Lane::Prompt)?)),
                ("jobs_ahead", late(jobs::next_due(tx, Lane::Ahead)?)),
                ("webhooks", late(deliveries::next_due(tx, &failing)?)),
                ("mails", late(mails::next_due(tx, &[Mode::Live, Mode::Test])?)),
            ])
        });
        match late.await {
            Ok(late) => late.into_iter().for_each(|(queue, late)| metrics::backlog(queue, late)),
            // What asks for it has no answer either, and says so.
            Err(failure) => tracing::warn!(%failure, "how late the work is can't be told"),
        }
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            _ = stop.changed() => {}
        }
    }
}
