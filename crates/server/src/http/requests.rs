//! `/v1/requests`: the requests of a merchant and mode as this process answers them, for `dalasi logs tail`. A stream of server-sent
//! events without an end, and therefore no part of the described API.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use domain::Scope;
use domain::api_key::{Area, Right};
use futures_util::stream;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::Api;
use super::answer::{LONGEST_RATE_RETRY_S, Problem};
use super::auth::{self, Guess};
use super::caller::Caller;
use super::query::Query;
use super::request_log::Reader;
use crate::monotonic::now;

/// Requests for it are not told to those who follow.
pub(super) const ADDRESS: &str = "/v1/requests";
/// So often a line without news keeps the connection awake.
const IDLE_PAUSE: Duration = Duration::from_secs(15);
const LONGEST_STREAM: Duration = Duration::from_secs(3600);
const MOST_LINES_AT_ONCE: usize = 64;
/// So often it is looked whether the credential is still good, and not for every line. What is remembered of it may be as old again.
const CHECK_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn router() -> Router<Api> {
    Router::new().route(ADDRESS, get(follow))
}

/// Who may read events reads every object by them, and may see these as well: also those with other keys of the same organization and
/// mode.
fn right() -> Right {
    Right::read(Area::Webhooks)
}

async fn follow(State(api): State<Api>, caller: Caller, headers: HeaderMap, query: Query) -> Result<Response, Problem> {
    let scope = caller.require(right())?;
    query.finish()?;
    let credential = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok()).ok_or_else(auth::missing)?;
    let began_at = now();
    let follower = Follower {
        credential: credential.to_owned(),
        reader: api.request_log.follow(scope, caller.actor.key()).ok_or_else(too_many)?,
        stopping: api.stopping.clone(),
        checked_at: began_at,
        ends_at: began_at + LONGEST_STREAM,
        has_begun: false,
        scope,
        api,
    };
    let lines = stream::unfold(follower, |mut follower| async move {
        let lines = follower.next().await?;
        Some((Ok::<_, Infallible>(lines), follower))
    });
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    // Proxies that collect answers would keep the lines for themselves.
    Ok((headers, [("x-accel-buffering", "no")], Body::from_stream(lines)).into_response())
}

fn too_many() -> Problem {
    let error = "As many follow these requests already as may. End one of them, or try again later.";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", error).retry_after(LONGEST_RATE_RETRY_S)
}

struct Follower {
    api: Api,
    scope: Scope,
    /// The `Authorization` header.
    credential: String,
    reader: Reader,
    stopping: watch::Receiver<bool>,
    /// When it was looked whether the credential is good.
    checked_at: Instant,
    ends_at: Instant,
    has_begun: bool,
}

impl Follower {
    /// The next piece of the stream; none ends it, and the client comes back.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.has_begun {
            self.has_begun = true;
            return Some(no_news());
        }
        let first = tokio::select! {
            line = self.reader.next() => line?,
            () = sleep(IDLE_PAUSE) => no_news(),
            () = sleep_until(self.ends_at) => return None,
            () = stops(&mut self.stopping) => return None,
        };
        if !self.is_good().await {
            return None;
        }
        let mut lines = Vec::from(first);
        for line in std::iter::from_fn(|| self.reader.waiting()).take(MOST_LINES_AT_ONCE) {
            lines.extend_from_slice(&line);
        }
        Some(lines.into())
    }

    /// The key may have been revoked since the last look, and a token may have expired. A server that stops waits for no look.
    async fn is_good(&mut self) -> bool {
        let at = now();
        if at.duration_since(self.checked_at) < CHECK_PAUSE {
            return true;
        }
        self.checked_at = at;
        tokio::select! {
            may = still_may(&self.api, self.scope, &self.credential) => may,
            () = stops(&mut self.stopping) => false,
        }
    }
}

fn no_news() -> Bytes {
    Bytes::from_static(b":\n\n")
}

/// Where nobody says that the server stops, it never does.
async fn stops(stopping: &mut watch::Receiver<bool>) {
    if stopping.wait_for(|stopping| *stopping).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What was looked up is remembered for a second. Where nothing can be looked up, the client comes back as well.
async fn still_may(api: &Api, scope: Scope, credential: &str) -> bool {
    let mut guess = Guess::of(&api.limits, None);
    let actor = api.credentials.authenticate(credential, &mut guess).await;
    actor.is_ok_and(|actor| actor.scope == scope && actor.may(right()))
}
