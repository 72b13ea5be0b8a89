//! How many tests of webhook endpoints are under way. Whoever asks for one waits for the receiver, up to 15 s, and is a request
//! that is worked on meanwhile: receivers that hang must not take the places of those who pay.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::Scope;

/// Of one process.
const MOST: usize = 32;
/// Of one organization in one mode.
const MOST_OF_ONE: usize = 8;

#[derive(Debug, Clone, Default)]
pub struct EndpointTests(Arc<Mutex<BTreeMap<Scope, usize>>>);

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
