//! Tells an open page that its state has changed: once when it asks, or for a while as a stream of events. Both say the
//! revision, with which the page draws itself anew, and how much time is left, which changes nothing else.

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
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::page_path::PagePath;
use super::payment_handlers::{look_up, stored_state};
use super::routes::{Site, client};
use super::streams::Place;
use super::text::Text;
use super::visit::Visit;
use super::{moment, state, subject};
use crate::app::hosted::Place as PagePlace;
use crate::app::object_bells::Following;
use crate::error::Failure;
use crate::monotonic::now;

/// While an attempt is open its outcome may be stored by another process, which can't ring our bell.
const BUSY_PAUSE: Duration = Duration::from_secs(2);
/// Also how often a line without news keeps the connection awake.
const IDLE_PAUSE: Duration = Duration::from_secs(15);
const LONGEST_STREAM: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Status {
    revision: String,
    /// In words, once it is worth one.
    time_left: Option<String>,
}

struct Read {
    status: Status,
    is_busy: bool,
}

async fn read(site: &Site, place: PagePlace, visit: &Visit) -> Result<Read, Failure> {
    let hosted = look_up(site, place).await?;
    let text = Text::new(visit.language(Some(hosted.organization.profile.locale.as_str())).locale);
    let status = Status {
        revision: state::revision(&hosted, &stored_state(site, &hosted)),
        time_left: subject::time_left(&hosted).map(|left| moment::left_in_words(left, text)),
    };
    Ok(Read { status, is_busy: hosted.unsettled().is_some() })
}

pub(super) async fn status(State(site): State<Arc<Site>>, visit: Visit) -> Response {
    let Some(PagePath { place: page, .. }) = PagePath::of(&visit.path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match read(&site, page, &visit).await {
        Ok(Read { status, .. }) => ([(CACHE_CONTROL, "no-store")], Json(status)).into_response(),
        Err(failure) => refused(&failure),
    }
}

pub(super) async fn events(State(site): State<Arc<Site>>, visit: Visit, request: Request) -> Response {
    let Some(PagePath { place: page, .. }) = PagePath::of(&visit.path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // Before the first read, so that nothing is missed between the two.
    let following = site.app.follow(page.payable.object_id());
    let first = match read(&site, page, &visit).await {
        Ok(first) => first,
        Err(failure) => return refused(&failure),
    };
    let Some(place) = site.streams.take(client(&request)) else {
        return (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "60")]).into_response();
    };
    let follower = Follower {
        ends_at: now() + LONGEST_STREAM,
        stopping: site.stopping.clone(),
        site,
        page,
        visit,
        following,
        told: None,
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
    visit: Visit,
    following: Following,
    stopping: watch::Receiver<bool>,
    /// What the page knows.
    told: Option<Status>,
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
            if let Some(Read { status, is_busy }) = self.latest.take() {
                self.is_busy = is_busy;
                if self.told.as_ref() != Some(&status) {
                    let data = serde_json::to_string(&status).expect("a text is JSON");
                    self.told = Some(status);
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
                if self.latest.as_ref().map(|latest| &latest.status) == self.told.as_ref() {
                    return Some(":\n\n".to_owned());
                }
                continue;
            }
            let pause = if self.is_busy { BUSY_PAUSE } else { IDLE_PAUSE };
            tokio::select! {
                () = self.following.rung() => {}
                () = sleep(pause) => {}
                () = sleep_until(self.ends_at) => {}
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
            }
            self.latest = Some(self.read().await?);
        }
    }

    /// The store is away for a moment: end, and let the browser come back.
    async fn read(&self) -> Option<Read> {
        read(&self.site, self.page, &self.visit).await.ok()
    }
}

fn refused(failure: &Failure) -> Response {
    StatusCode::from_u16(failure.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response()
}
