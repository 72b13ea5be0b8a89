//! What has to be done now and then: forget idempotency keys that are older than their window, drop the files of documents
//! that nobody is likely to ask for again, and make due what a clock that was ahead put off.

use std::time::Duration;

use store::Tx;
use store::queries::{deliveries, documents, idempotency};
use tokio::sync::watch;

use crate::app::App;

const PERIOD: Duration = Duration::from_secs(3600);
/// After each part: those who pay go first.
const REST: Duration = Duration::from_millis(50);

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        by_parts(&app, &mut stop, "old idempotency keys can't be deleted", idempotency::forget).await;
        by_parts(&app, &mut stop, "the files of old documents can't be dropped", documents::drop_old_files).await;
        by_parts(&app, &mut stop, "webhooks put off too far can't be made due", deliveries::bring_back).await;
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Until `part` says that nothing is left: each a short transaction of its own, and others write between.
async fn by_parts(
    app: &App,
    stop: &mut watch::Receiver<bool>,
    fault: &'static str,
    part: fn(&mut Tx<'_>) -> Result<bool, store::Error>,
) {
    while !*stop.borrow() {
        match app.commit(move |tx, _| Ok(part(tx)?)).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(failure) => {
                tracing::error!(%failure, "{fault}");
                return;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(REST) => {}
            _ = stop.changed() => {}
        }
    }
}
