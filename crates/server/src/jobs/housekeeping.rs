//! What has to be done now and then: forget idempotency keys that are older than their window.

use std::time::Duration;

use store::queries::idempotency;
use tokio::sync::watch;

use crate::app::App;

const PERIOD: Duration = Duration::from_secs(3600);

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        if let Err(failure) = app.commit(|tx, _| Ok(idempotency::forget(tx)?)).await {
            tracing::error!(%failure, "old idempotency keys can't be deleted");
        }
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            _ = stop.changed() => {}
        }
    }
}
