//! What has to be done now and then: forget idempotency keys that are older than their window, drop the files of documents
//! that nobody is likely to ask for again, make due what a clock that was ahead put off, and call what was forgotten.

use std::time::Duration;

use store::Tx;
use store::queries::deliveries::{self, LookedAt};
use store::queries::{documents, idempotency};
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
        call_forgotten(&app, &mut stop).await;
        rest(PERIOD, &mut stop).await;
    }
}

/// Looks at the first open webhook of each object, and writes only where one waits for nobody.
async fn call_forgotten(app: &App, stop: &mut watch::Receiver<bool>) {
    const FAULT: &str = "webhooks that nobody called can't be made due";
    let (mut after, mut called) = (Some(LookedAt::nothing()), 0_usize);
    while let Some(from) = after.take().filter(|_| !*stop.borrow()) {
        let looked = app.read(move |tx, _| Ok(deliveries::uncalled(tx, from.clone())?)).await;
        let (forgotten, next) = looked.unwrap_or_else(|failure| {
            tracing::error!(%failure, "{FAULT}");
            (Vec::new(), None)
        });
        for object in forgotten {
            match app.commit(move |tx, _| Ok(deliveries::call_forgotten(tx, &object)?)).await {
                Ok(is_called) => called += usize::from(is_called),
                Err(failure) => tracing::error!(%failure, "{FAULT}"),
            }
            rest(REST, stop).await;
            if *stop.borrow() {
                return;
            }
        }
        after = next;
        rest(REST, stop).await;
    }
    if called > 0 {
        tracing::warn!(called, "webhooks waited that nobody had called");
    }
}

/// Until the server stops at the longest, however often somebody has rested since it was told to.
async fn rest(pause: Duration, stop: &mut watch::Receiver<bool>) {
    tokio::select! {
        () = tokio::time::sleep(pause) => {}
        _ = stop.wait_for(|is_stopping| *is_stopping) => {}
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
        rest(REST, stop).await;
    }
}
