//! Seals the ledger: committed entries get their place and a signed batch over them. One sealer at a time, by a lease.

use std::time::Duration;

use domain::Scope;
use store::{LONGEST_SLEEP, lease};
use tokio::sync::watch;

use super::sequence;
use crate::app::{App, ledger};
use crate::error::Failure;

const LEASE: &str = "ledger_sealer";
const LEASE_US: i64 = 10_000_000;
/// A batch for the entries of a second, not one for each.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    let holder = sequence::holder();
    while !*stop.borrow() {
        if let Err(failure) = round(&app, &holder).await {
            tracing::error!(%failure, "the ledger can't be sealed");
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE.max(LONGEST_SLEEP)) => {}
            _ = stop.changed() => {}
        }
    }
    sequence::give_back(&app, LEASE, holder).await;
}

/// Each scope in which entries wait, once or until few are left. One that can't be sealed keeps no other waiting.
async fn round(app: &App, holder: &str) -> Result<(), Failure> {
    let mut after: Option<Scope> = None;
    loop {
        let behind = after;
        // Looking costs no write: most looks find nothing.
        let next = app.read(move |tx, _| Ok(store::queries::ledger_batches::next_waiting(tx, behind)?)).await?;
        let Some(next) = next else { return Ok(()) };
        let holder = holder.to_owned();
        let context = std::sync::Arc::clone(app.context());
        let sealed = app
            .store()
            .write(move |tx| {
                if lease::take(tx, LEASE, &holder, LEASE_US)?.is_none() {
                    return Ok(None);
                }
                ledger::seal_next(tx, &context, behind)
            })
            .await;
        match sealed {
            Ok(None) => return Ok(()),
            Ok(Some((_, true))) => {}
            Ok(Some((scope, false))) => after = Some(scope),
            Err(failure) => {
                let (organization, mode) = (next.organization, next.mode.as_str());
                tracing::error!(%failure, %organization, mode, "a ledger can't be sealed");
                after = Some(next);
            }
        }
    }
}
