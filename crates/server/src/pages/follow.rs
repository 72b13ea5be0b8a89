//! Tells an open page that its state has changed: once when it asks, or for a while as a stream of events. Both say only
//! the revision; the page then draws itself anew.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::page_path::PagePath;
use super::payment_handlers::{look_up, stored_state};
use super::routes::{Site, client};
use super::state;
use super::streams::Place;
use crate::app::hosted::Place as PagePlace;
use crate::error::Failure;
use crate::monotonic::now;

/// While an attempt is open its outcome may be stored by another process, which can't ring our bell.
const BUSY_PAUSE: Duration = Duration::from_secs(2);
/// Also how often a line without news keeps the connection awake.
const IDLE_PAUSE: Duration = Duration::from_secs(15);
const LONGEST_STREAM: Duration = Duration::from_secs(600);

#[derive(Serialize)]
struct Revision {
    revision: String,
}

struct Read {
    revision: String,
    is_busy: bool,
}

async fn read(site: &Site, place: PagePlace) -> Result<Read, Failure> {
    let hosted = look_up(site, place).await?;
    let revision = state::revision(&hosted, &stored_state(site, &hosted));
    Ok(Read { revision, is_busy: hosted.unsettled().is_some() })
}

pub(super) async fn status(State(site): State<Arc<Site>>, request: Request) -> Response {
    let Some(PagePath { place: page, .. }) = PagePath::of(request.uri().path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match read(&site, page).await {
        Ok(Read { revision, .. }) => ([(CACHE_CONTROL, "no-store")], Json(Revision { revision })).into_response(),
        Err(failure) => refused(&failure),
    }
}

pub(super) async fn events(State(site): State<Arc<Site>>, request: Request) -> Response {
    let Some(PagePath { place: page, .. }) = PagePath::of(request.uri().path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // Before the first read, so that nothing is missed between the two.
    let changes = site.app.changes();
    let first = match read(&site, page).await {
        Ok(first) => first,
        Err(failure) => return refused(&failure),
    };
    let Some(place) = site.streams.take(client(&request)) else {
        return (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "60")]).into_response();
    };
    let follower = Follower {
        ends_at: now() + LONGEST_STREAM,
        stopping: site.stopping.clone(),
        object_id: page.payable.object_id(),
        site,
        page,
        changes,
        told: String::new(),
        latest: Some(first),
        is_busy: true,
        _place: place,
    };
    let events = stream::unfold(follower, |mut follower| async move {
        let line = follower.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(line)), follower))
    });
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    // Proxies that collect answers would keep the news for themselves.
    (headers, [("x-accel-buffering", "no")], Body::from_stream(events)).into_response()
}

struct Follower {
    site: Arc<Site>,
    page: PagePlace,
    object_id: String,
    changes: broadcast::Receiver<String>,
    stopping: watch::Receiver<bool>,
    /// The revision that the page knows.
    told: String,
    latest: Option<Read>,
    is_busy: bool,
    ends_at: Instant,
    /// Held until the stream ends.
    _place: Place,
}

impl Follower {
    /// The next piece of the stream; none ends it, and the browser comes back.
    async fn next(&mut self) -> Option<String> {
        let mut quiet_since = now();
        loop {
            if let Some(Read { revision, is_busy }) = self.latest.take() {
                self.is_busy = is_busy;
                if revision != self.told {
                    self.told.clone_from(&revision);
                    let data = serde_json::to_string(&Revision { revision }).expect("a text is JSON");
                    return Some(format!("retry: 3000\ndata: {data}\n\n"));
                }
            }
            if now() >= self.ends_at || *self.stopping.borrow() {
                return None;
            }
            if quiet_since + IDLE_PAUSE <= now() {
                quiet_since = now();
                // Read anew before the line goes out: it says that nothing has changed.
                self.latest = Some(self.read().await?);
                if self.latest.as_ref().is_some_and(|latest| latest.revision == self.told) {
                    return Some(":\n\n".to_owned());
                }
                continue;
            }
            let pause = if self.is_busy { BUSY_PAUSE } else { IDLE_PAUSE };
            tokio::select! {
                () = changed(&mut self.changes, &self.object_id) => {}
                () = sleep(pause) => {}
                () = sleep_until(self.ends_at) => {}
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
            }
            self.latest = Some(self.read().await?);
        }
    }

    /// The store is away for a moment: end, and let the browser come back.
    async fn read(&self) -> Option<Read> {
        read(&self.site, self.page).await.ok()
    }
}

/// Until something happened to the object, or so much happened to others that it is better to look.
async fn changed(changes: &mut broadcast::Receiver<String>, object_id: &str) {
    loop {
        match changes.recv().await {
            Ok(changed) if changed != object_id => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            // Nobody rings any more: the pauses are enough.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

fn refused(failure: &Failure) -> Response {
    StatusCode::from_u16(failure.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response()
}
