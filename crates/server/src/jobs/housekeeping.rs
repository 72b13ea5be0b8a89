//! What has to be done now and then: forget idempotency keys that are older than their window, and drop the files of
//! documents that nobody is likely to ask for again.

use std::time::Duration;

use store::queries::{documents, idempotency};
use tokio::sync::watch;

use crate::app::App;

const PERIOD: Duration = Duration::from_secs(3600);

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        if let Err(failure) = app.commit(|tx, _| Ok(idempotency::forget(tx)?)).await {
            tracing::error!(%failure, "old idempotency keys can't be deleted");
        }
        drop_old_files(&app, &stop).await;
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            _ = stop.changed() => {}
        }
    }
}

/// A part at a time, so that others write between.
async fn drop_old_files(app: &App, stop: &watch::Receiver<bool>) {
    while !*stop.borrow() {
        match app.commit(|tx, _| Ok(documents::drop_old_files(tx)?)).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(failure) => {
                tracing::error!(%failure, "the files of old documents can't be dropped");
                return;
            }
        }
    }
}
