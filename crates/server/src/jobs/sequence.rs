//! Gives committed events their place in the log. One sequencer at a time, by a lease.

use std::time::Duration;

use store::queries::events;
use store::{LONGEST_SLEEP, Worker, lease};
use tokio::sync::watch;

use crate::app::App;
use crate::error::Failure;

const LEASE: &str = "event_sequencer";
const LEASE_US: i64 = 10_000_000;
const BATCH: i64 = 256;
const PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    let holder = holder();
    let mut bell = app.bell(Worker::Sequencer);
    while !*stop.borrow() {
        match number(&app, &holder).await {
            Ok(BATCH..) => continue,
            Ok(_) => {}
            Err(failure) => tracing::error!(%failure, "events can't be numbered"),
        }
        tokio::select! {
            () = tokio::time::sleep(LONGEST_SLEEP) => {}
            Ok(()) = bell.changed() => {}
            _ = stop.changed() => {}
        }
        // One look for the commits of a moment, not one for each.
        tokio::time::sleep(PAUSE).await;
    }
    give_back(&app, LEASE, holder).await;
}

/// The next process need not wait for the end of the lease.
pub(super) async fn give_back(app: &App, name: &'static str, holder: String) {
    let given = app.store().write(move |tx| lease::give_back(tx, name, &holder)).await;
    if let Err(failure) = given {
        // It runs out.
        tracing::debug!(%failure, "the lease {name} can't be given back");
    }
}

pub async fn number(app: &App, holder: &str) -> Result<i64, Failure> {
    if !app.read(|tx, _| Ok(events::any_unlogged(tx)?)).await? {
        return Ok(0);
    }
    let holder = holder.to_owned();
    let store = app.store().clone();
    store
        .write(move |tx| {
            if lease::take(tx, LEASE, &holder, LEASE_US)?.is_none() {
                return Ok(0);
            }
            events::number(tx, BATCH).map_err(Failure::from)
        })
        .await
}

/// Names this process among those beside the same database.
pub(super) fn holder() -> String {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system's random source does not fail once it has started");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
