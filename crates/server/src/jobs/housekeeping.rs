//! What has to be done now and then: forget idempotency keys that are older than their window, drop the files of documents
//! that nobody is likely to ask for again, make due what a clock that was ahead put off, and call what was forgotten.

use std::time::Duration;

use store::Tx;
use store::queries::deliveries::{self, LookedAt};
use store::queries::{documents, idempotency};
use tokio::sync::watch;

use crate::app::App;
use crate::error::Failure;

const PERIOD: Duration = Duration::from_secs(3600);
/// After each part: those who pay go first.
const REST: Duration = Duration::from_millis(50);

pub(super) async fn run(app: App, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        by_parts(&app, &mut stop, "old idempotency keys can't be deleted", idempotency::forget).await;
        by_parts(&app, &mut stop, "the files of old documents can't be dropped", documents::drop_old_files).await;
        by_parts(&app, &mut stop, "webhooks put off too far can't be made due", deliveries::bring_back).await;
        if let Err(failure) = call_forgotten(&app, &stop).await {
            tracing::error!(%failure, "webhooks that nobody called can't be made due");
        }
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Looks at the first open webhook of each object, and writes only where one waits for nobody.
async fn call_forgotten(app: &App, stop: &watch::Receiver<bool>) -> Result<(), Failure> {
    let mut after = Some(LookedAt::default());
    while let Some(from) = after.filter(|_| !*stop.borrow()) {
        let (forgotten, next) = app.read(move |tx, _| Ok(deliveries::uncalled(tx, from.clone())?)).await?;
        for object in forgotten {
            app.commit(move |tx, _| Ok(deliveries::call(tx, &object)?)).await?;
        }
        after = next;
        tokio::time::sleep(REST).await;
    }
    Ok(())
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
