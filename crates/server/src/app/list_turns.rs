//! Lists take turns: one under way for each mode of an organization, and few in all, so that whoever asks for long ones in a loop
//! leaves the connections that read to those who pay.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::Scope;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

use crate::error::Failure;

/// Of the reading connections, which are four on SQLite.
const MOST_AT_ONCE: usize = 2;
/// Of one mode, with the one that is under way: an eighth of the requests that are worked on at once.
const MOST_ASKING: usize = 128;
/// Who has waited for longer is told to come again.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

pub(super) struct ListTurns {
    turns: Mutex<HashMap<Scope, Arc<Turn<()>>>>,
    places: Arc<Semaphore>,
}

/// A list that is under way, until it is dropped.
#[derive(Debug)]
pub(super) struct ListTurn {
    _of_scope: OwnedMutexGuard<()>,
    _of_all: OwnedSemaphorePermit,
}

impl Default for ListTurns {
    fn default() -> Self {
        Self { turns: Mutex::default(), places: Arc::new(Semaphore::new(MOST_AT_ONCE)) }
    }
}

impl ListTurns {
    /// Waits for its turn.
    ///
    /// # Errors
    /// Too many wait already, or it has waited for too long.
    pub(super) async fn begin(&self, scope: Scope) -> Result<ListTurn, Failure> {
        let busy = || Failure::Store(store::Error::Busy);
        let turn = self.turn(scope).ok_or_else(busy)?;
        let begun = async {
            let of_scope = turn.lock_owned().await;
            let of_all = Arc::clone(&self.places).acquire_owned().await.ok()?;
            Some(ListTurn { _of_scope: of_scope, _of_all: of_all })
        };
        tokio::time::timeout(LONGEST_WAIT, begun).await.ok().flatten().ok_or_else(busy)
    }

    fn turn(&self, scope: Scope) -> Option<Arc<Turn<()>>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        let turn = turns.entry(scope).or_default();
        // The map has one of its own.
        (Arc::strong_count(turn) <= MOST_ASKING).then(|| Arc::clone(turn))
    }
}

#[cfg(test)]
mod tests {
    use domain::organization::Organization;
    use domain::{Id, Mode, Timestamp};
    use futures_util::FutureExt as _;

    use super::*;

    fn scope(organization: u8, mode: Mode) -> Scope {
        let organization = Id::<Organization>::new(Timestamp::from_micros(0), [organization; 10]);
        Scope { organization, mode }
    }

    #[tokio::test]
    async fn a_mode_has_one_list_under_way_and_all_have_two() {
        let turns = ListTurns::default();
        let [test, live, other] = [scope(1, Mode::Test), scope(1, Mode::Live), scope(2, Mode::Live)];
        let of_test = turns.begin(test).await.expect("nobody waits");
        assert!(turns.begin(test).now_or_never().is_none(), "its own mode waits");
        let _of_live =
            turns.begin(live).now_or_never().expect("the other mode waits for nobody").expect("it has a place");
        assert!(turns.begin(other).now_or_never().is_none(), "two are under way");
        drop(of_test);
        assert!(turns.begin(other).now_or_never().is_some(), "one of them is over");
    }

    #[tokio::test]
    async fn too_many_at_once_are_sent_away() {
        let turns = ListTurns::default();
        let test = scope(1, Mode::Test);
        let first = turns.begin(test).await.expect("nobody waits");
        let mut waiting: Vec<_> = (1..MOST_ASKING).map(|_| Box::pin(turns.begin(test))).collect();
        for asking in &mut waiting {
            assert!((&mut *asking).now_or_never().is_none(), "it waits");
        }
        let refused = turns.begin(test).now_or_never().expect("it is told at once");
        assert!(matches!(refused, Err(Failure::Store(store::Error::Busy))), "{refused:?}");
        assert!(turns.begin(scope(1, Mode::Live)).now_or_never().is_some(), "another mode has its own");
        drop((first, waiting));
        assert!(turns.begin(test).now_or_never().expect("nobody waits").is_ok());
    }
}
