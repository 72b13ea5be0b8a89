//! Tests of webhook endpoints, and how many are under way. Whoever asks for one waits for the receiver, up to 15 s, and is a
//! request that is worked on meanwhile: receivers that hang must not take the places of those who pay.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::event::EventType;
use domain::webhook::{Attempted, WebhookEndpoint};
use domain::{Id, Scope};
use store::Tx;
use store::queries::idempotency::IdempotencyKey;
use tokio::time::Instant;

use super::idempotency::{self, Outcome, Reply, Run};
use super::{App, Context, look_up, webhooks};
use crate::error::Failure;
use crate::monotonic;

/// A test that has not ended by then never will: its process died.
const LONGEST_TEST: Duration = Duration::from_secs(60);
/// Of one process.
const MOST: usize = 32;
/// Of one organization in one mode.
const MOST_OF_ONE: usize = 8;

#[derive(Debug, Clone, Default)]
pub struct EndpointTests(Arc<Mutex<BTreeMap<Scope, usize>>>);

/// What came of a test.
#[derive(Debug)]
pub struct Tested {
    pub event_id: String,
    pub outcome: Attempted,
}

/// What is sent, once its key is held.
#[derive(Clone)]
struct Prepared {
    endpoint: WebhookEndpoint,
    event_id: String,
    body: String,
}

impl App {
    /// Sends a test event, once for a key: whoever comes with it meanwhile waits. Nothing where too many are under way.
    pub async fn test_endpoint<R>(
        &self,
        scope: Scope,
        endpoint: Result<Id<WebhookEndpoint>, Failure>,
        key: Option<IdempotencyKey>,
        render: R,
    ) -> Result<Option<Reply>, Failure>
    where
        R: Fn(Result<&Tested, &Failure>) -> Reply + Send + Sync + Clone + 'static,
    {
        let (app, begun) = (self.clone(), monotonic::asked_at());
        // On its own: a caller who goes away does not leave the key running.
        let work = tokio::spawn(async move { app.test_once(begun, scope, endpoint, key, render).await });
        work.await.unwrap_or_else(|_| Err(Failure::Broken("a test of an endpoint broke".into())))
    }

    async fn test_once<R>(
        &self,
        begun: Instant,
        scope: Scope,
        endpoint: Result<Id<WebhookEndpoint>, Failure>,
        key: Option<IdempotencyKey>,
        render: R,
    ) -> Result<Option<Reply>, Failure>
    where
        R: Fn(Result<&Tested, &Failure>) -> Reply + Send + Sync + Clone + 'static,
    {
        // By one of ours a commit would be looked for, and before the test there is none.
        let key = key.filter(|key| !key.is_own());
        let of_key = key.clone();
        let prepare = move |tx: &mut Tx<'_>, context: &Context| {
            let endpoint = look_up::<WebhookEndpoint>(tx, scope, endpoint.clone()?)?;
            let (event_id, body) = webhooks::test_event(tx, context, &endpoint, of_key.as_ref());
            Ok(Outcome::Leave(Prepared { endpoint, event_id: event_id.to_string(), body }))
        };
        let Prepared { endpoint, event_id, body } =
            match self.write_or_leave_alone(begun, LONGEST_TEST, key.clone(), prepare, render.clone()).await? {
                Run::Done(reply) => return Ok(Some(reply)),
                Run::Wait => return Err(Failure::KeyInUse),
                Run::Open(prepared) => prepared,
            };
        let answered_by = begun + idempotency::LONGEST_ANSWER;
        let posted = match self.endpoint_tests().begin(scope) {
            // Its answer would come when nobody waits for it any more, and would have it sent again.
            _ if monotonic::now() + self.egress().longest_call() > answered_by => {
                Err(store::Error::Unavailable("it took too long until the test could be sent".into()).into())
            }
            Some(_under_way) => {
                let (kind, now) = (EventType::WebhookTest.as_str(), self.store().now());
                self.post_event(&endpoint, &event_id, kind, &body, now).await.map(Some)
            }
            None => Ok(None),
        };
        let outcome = match posted {
            Ok(Some(outcome)) => outcome,
            nothing_sent => {
                if let Some(key) = &key {
                    self.free(key).await?;
                }
                return nothing_sent.map(|_| None);
            }
        };
        let posted = webhooks::Posted { url: endpoint.url, outcome: outcome.clone() };
        let tested = Tested { event_id, outcome };
        let reply = render(Ok(&tested));
        let (kept, stored_key) = (reply.clone(), key.clone());
        let stored = self.commit(move |tx, context| {
            let change = webhooks::standing(tx, context, scope, endpoint.id, &posted)?;
            if let Some(key) = &stored_key {
                idempotency::finish_left(tx, context, key, &kept)?;
            }
            Ok(change)
        });
        let stored = tokio::time::timeout_at(answered_by, stored).await.unwrap_or_else(|_| {
            Err(store::Error::Unavailable("what came of the test can't be stored in time".into()).into())
        });
        match (stored, key) {
            (Ok(change), _) => {
                webhooks::log_health(endpoint.id, change);
                Ok(Some(reply))
            }
            // It was sent, and whoever was told of a fault would have it sent again.
            (Err(failure), None) => {
                tracing::warn!(endpoint = %endpoint.id, error = %failure, "what came of a test is not counted");
                Ok(Some(reply))
            }
            (Err(failure), Some(_)) => {
                tracing::warn!(endpoint = %endpoint.id, error = %failure, "what came of a test is not kept");
                Err(Failure::KeyInUse)
            }
        }
    }
}

/// A test that is under way, until it is dropped.
#[derive(Debug)]
pub struct EndpointTest {
    of: EndpointTests,
    scope: Scope,
}

impl EndpointTests {
    /// One more, unless there are too many.
    pub fn begin(&self, scope: Scope) -> Option<EndpointTest> {
        let mut under_way = self.under_way();
        let is_full = under_way.values().sum::<usize>() >= MOST;
        if is_full || under_way.get(&scope).is_some_and(|count| *count >= MOST_OF_ONE) {
            return None;
        }
        *under_way.entry(scope).or_default() += 1;
        Some(EndpointTest { of: self.clone(), scope })
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeMap<Scope, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EndpointTest {
    fn drop(&mut self) {
        let mut under_way = self.of.under_way();
        let count = under_way.get_mut(&self.scope).expect("a test ends once");
        *count -= 1;
        if *count == 0 {
            under_way.remove(&self.scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{Entropy, Mode, Timestamp};

    use super::*;

    #[test]
    fn each_scope_has_its_own_and_all_have_an_end() {
        let (now, mut entropy) = (Timestamp::from_micros(1_790_000_000_000_000), Entropy::from_seed([1; 32]));
        let mut scope = |mode| Scope { organization: entropy.id(now), mode };
        let (tests, one) = (EndpointTests::default(), scope(Mode::Test));
        let begin = |scope| std::iter::from_fn(|| tests.begin(scope)).collect::<Vec<_>>();
        let mut of_one = begin(one);
        assert_eq!(of_one.len(), MOST_OF_ONE);
        let live = begin(Scope { mode: Mode::Live, ..one });
        assert_eq!(live.len(), MOST_OF_ONE, "the other mode");
        let others: Vec<_> = (0..4).flat_map(|_| begin(scope(Mode::Test))).collect();
        assert_eq!(of_one.len() + live.len() + others.len(), MOST);
        drop(others);
        of_one.pop();
        assert_eq!(begin(one).len(), 1);
        drop((of_one, live));
        assert!(tests.under_way().is_empty());
    }
}
