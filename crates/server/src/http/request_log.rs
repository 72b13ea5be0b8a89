//! Answered requests, told to whoever follows those of one merchant and mode. Nothing is kept: what nobody follows is told to
//! nobody, and what another process answers is not known here.
//!
//! A line holds what the access line holds, and the code of a refusal: no body, header, query or whole address.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use domain::api_key::ApiKey;
use domain::{Id, Scope, Timestamp};
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// Lines that wait for a reader who is slow. Before there are more, the oldest are left out, and the reader is told how many.
const KEPT: usize = 256;
const MOST_READERS: usize = 200;
const MOST_READERS_OF_SCOPE: usize = 8;
/// So that one key leaves places to the others. A token counts as its key.
const MOST_READERS_OF_KEY: usize = 4;

#[derive(Clone, Default)]
pub(super) struct RequestLog(Arc<Inside>);

#[derive(Default)]
struct Inside {
    /// Of all merchants. Without any, nothing else is looked at.
    readers: AtomicUsize,
    followed: Mutex<HashMap<Scope, Followed>>,
}

/// What somebody follows, apart for each merchant and mode: how much others ask is not told even by what is left out.
struct Followed {
    lines: broadcast::Sender<Bytes>,
    /// One for each reader.
    keys: Vec<Id<ApiKey>>,
}

impl RequestLog {
    /// That a request is of this merchant and mode, for the edge, where its answer will be known.
    pub(super) fn note(&self, scope: Scope, whose: &Whose) {
        let _ = whose.0.set((self.clone(), scope));
    }

    /// Nothing: as many follow as may.
    pub(super) fn follow(&self, scope: Scope, key: Id<ApiKey>) -> Option<Reader> {
        let mut all = self.followed();
        let keys: &[Id<ApiKey>] = all.get(&scope).map_or(&[], |followed| followed.keys.as_slice());
        let of_key = keys.iter().filter(|other| **other == key).count();
        if of_key >= MOST_READERS_OF_KEY
            || keys.len() >= MOST_READERS_OF_SCOPE
            || self.0.readers.load(Ordering::Relaxed) >= MOST_READERS
        {
            return None;
        }
        let new = || Followed { lines: broadcast::Sender::new(KEPT), keys: Vec::new() };
        let followed = all.entry(scope).or_insert_with(new);
        followed.keys.push(key);
        self.0.readers.fetch_add(1, Ordering::Relaxed);
        Some(Reader { log: self.clone(), scope, key, lines: followed.lines.subscribe() })
    }

    /// Of any merchant and mode.
    pub(super) fn has_readers(&self) -> bool {
        self.0.readers.load(Ordering::Relaxed) > 0
    }

    /// To those who follow by now.
    fn lines(&self, scope: Scope) -> Option<broadcast::Sender<Bytes>> {
        if !self.has_readers() {
            return None;
        }
        self.followed().get(&scope).map(|followed| followed.lines.clone())
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<Scope, Followed>> {
        self.0.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Goes with a request from the edge to where it is known whose it is, and so brings that back.
#[derive(Clone, Default)]
pub(super) struct Whose(Arc<OnceLock<(RequestLog, Scope)>>);

#[derive(Serialize)]
pub(super) struct AnsweredRequest<'r> {
    pub(super) answered_at: String,
    pub(super) method: &'static str,
    /// The route's template, because an address may hold a token.
    pub(super) path: &'r str,
    /// None where the connection is cut instead, because what came of the request is not known.
    pub(super) status: Option<u16>,
    pub(super) duration_ms: f64,
    pub(super) request_id: &'r str,
    pub(super) code: Option<String>,
}

impl Whose {
    /// Tells those who follow, if anybody does.
    pub(super) fn tell<'r>(&self, answered: impl FnOnce() -> AnsweredRequest<'r>) {
        if let Some(lines) = self.0.get().and_then(|(log, scope)| log.lines(*scope)) {
            // Without a reader by now, nobody misses it.
            let _ = lines.send(line(&answered()));
        }
    }
}

pub(super) fn now() -> String {
    #[expect(clippy::disallowed_methods, reason = "it tells a developer when, and nothing is decided by it")]
    let now = jiff::Timestamp::now();
    Timestamp::from_micros(now.as_microsecond()).to_text_micros()
}

/// Of a stream of server-sent events.
fn line(data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).expect("texts and finite numbers are always JSON");
    Bytes::from(format!("data: {data}\n\n"))
}

fn left_out(count: u64) -> Bytes {
    #[derive(Serialize)]
    struct LeftOut {
        left_out: u64,
    }
    line(&LeftOut { left_out: count })
}

/// One who follows; the place is given back when it ends.
pub(super) struct Reader {
    log: RequestLog,
    scope: Scope,
    key: Id<ApiKey>,
    lines: broadcast::Receiver<Bytes>,
}

impl Reader {
    /// Waits for the next line.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        match self.lines.recv().await {
            Ok(line) => Some(line),
            Err(RecvError::Lagged(count)) => Some(left_out(count)),
            Err(RecvError::Closed) => None,
        }
    }

    /// Another line, if there is one already.
    pub(super) fn waiting(&mut self) -> Option<Bytes> {
        match self.lines.try_recv() {
            Ok(line) => Some(line),
            Err(TryRecvError::Lagged(count)) => Some(left_out(count)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut all = self.log.followed();
        if let Some(followed) = all.get_mut(&self.scope) {
            if let Some(place) = followed.keys.iter().position(|key| *key == self.key) {
                followed.keys.swap_remove(place);
            }
            if followed.keys.is_empty() {
                all.remove(&self.scope);
            }
        }
        self.log.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use domain::Mode;

    use super::*;

    fn id<T: domain::Object>(number: u8) -> Id<T> {
        Id::new(Timestamp::from_micros(1_700_000_000_000_000), [number; 10])
    }

    fn scope(number: u8) -> Scope {
        Scope { organization: id(number), mode: Mode::Test }
    }

    /// All places of one merchant and mode, taken with as few keys as can.
    fn follow_all(log: &RequestLog, scope: Scope) -> Vec<Reader> {
        let keys = (0..MOST_READERS_OF_SCOPE).map(|place| u8::try_from(place / MOST_READERS_OF_KEY).unwrap());
        keys.map(|key| log.follow(scope, id(key)).unwrap()).collect()
    }

    fn whose(log: &RequestLog, scope: Scope) -> Whose {
        let whose = Whose::default();
        log.note(scope, &whose);
        whose
    }

    fn tell(whose: &Whose, request_id: &str) {
        whose.tell(|| AnsweredRequest {
            answered_at: now(),
            method: "GET",
            path: "/v1/checkouts",
            status: Some(200),
            duration_ms: 1.5,
            request_id,
            code: None,
        });
    }

    fn told(reader: &mut Reader) -> Vec<String> {
        let lines = std::iter::from_fn(|| reader.waiting());
        let ids = lines.map(|line| {
            let line: serde_json::Value = serde_json::from_slice(line.strip_prefix(b"data: ").unwrap()).unwrap();
            line["request_id"].as_str().unwrap().to_owned()
        });
        ids.collect()
    }

    #[test]
    fn a_merchant_has_so_many_places_and_gets_them_back() {
        let log = RequestLog::default();
        let mut readers = follow_all(&log, scope(1));
        assert!(log.follow(scope(1), id(9)).is_none());
        readers.pop();
        readers.push(log.follow(scope(1), id(9)).unwrap());
        for number in 2..=25 {
            readers.extend(follow_all(&log, scope(number)));
        }
        assert_eq!(readers.len(), MOST_READERS);
        assert!(log.follow(scope(26), id(1)).is_none(), "there is an end in all");
        drop(readers);
        assert!(log.0.followed.lock().unwrap().is_empty());
        assert_eq!(log.0.readers.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_key_leaves_places_to_others() {
        let log = RequestLog::default();
        let follow = |key| log.follow(scope(1), id(key));
        let mut readers: Vec<Reader> = (0..MOST_READERS_OF_KEY).map(|_| follow(1).unwrap()).collect();
        assert!(follow(1).is_none());
        readers.insert(0, follow(2).unwrap());
        assert!(follow(1).is_none());
        readers.pop();
        readers.push(follow(1).unwrap());
        assert!(follow(1).is_none() && log.follow(scope(2), id(1)).is_some());
    }

    #[test]
    fn who_follows_when_a_request_is_answered_is_told() {
        let log = RequestLog::default();
        let under_way = [whose(&log, scope(1)), whose(&log, scope(1)), whose(&log, scope(2))];
        tell(&under_way[0], "req_unfollowed");
        let mut first = log.follow(scope(1), id(1)).unwrap();
        tell(&under_way[0], "req_first");
        assert_eq!(told(&mut first), ["req_first"]);
        drop(first);
        let mut second = log.follow(scope(1), id(1)).unwrap();
        tell(&under_way[1], "req_second");
        tell(&under_way[2], "req_theirs");
        assert_eq!(told(&mut second), ["req_second"]);
    }
}
