//! Who may have how many deliveries under way, so that an endpoint that hangs costs the others nothing.

use std::collections::BTreeMap;

use domain::Id;
use domain::webhook::WebhookEndpoint;
use store::Tx;
use store::queries::{endpoints, organizations};

use crate::error::Failure;

/// Deliveries of one process under way at a time.
pub const PLACES: usize = 64;
/// Of them for one endpoint: the others always find some free.
const MOST_OF_ONE: usize = 48;
/// For one that has failed so often in a row: one at a time, until it answers again.
const FAILING: i64 = 5;
const MOST_OF_A_FAILING: usize = 1;

fn is_failing(endpoint: &WebhookEndpoint) -> bool {
    endpoint.consecutive_failures >= FAILING
}

/// The endpoints that get one delivery at a time: that theirs are late is their own doing.
pub fn failing(tx: &mut Tx<'_>) -> Result<Vec<Id<WebhookEndpoint>>, Failure> {
    let mut failing = Vec::new();
    for scope in organizations::scopes(tx)? {
        failing.extend(endpoints::active(tx, scope)?.iter().filter(|endpoint| is_failing(endpoint)).map(|one| one.id));
    }
    Ok(failing)
}

/// Places taken, by endpoint.
#[derive(Debug, Clone, Default)]
pub struct Places {
    held: BTreeMap<Id<WebhookEndpoint>, Held>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    count: usize,
    most: usize,
}

impl Places {
    /// The endpoints that get no more for now.
    pub fn full(&self) -> Vec<Id<WebhookEndpoint>> {
        self.held.iter().filter(|(_, held)| held.count >= held.most).map(|(id, _)| *id).collect()
    }

    /// Whether there was one more for an endpoint. One that is gone costs no time.
    pub(super) fn take(&mut self, id: Id<WebhookEndpoint>, endpoint: Option<&WebhookEndpoint>) -> bool {
        let most = if endpoint.is_some_and(is_failing) { MOST_OF_A_FAILING } else { MOST_OF_ONE };
        let held = self.held.entry(id).or_insert(Held { count: 0, most });
        held.most = most;
        let is_free = held.count < most;
        held.count += usize::from(is_free);
        is_free
    }

    /// Adds what a claim took that began with `before`; others may have ended since.
    pub fn add(&mut self, before: &Self, after: &Self) {
        for (id, after) in &after.held {
            let taken = after.count - before.held.get(id).map_or(0, |held| held.count);
            let held = self.held.entry(*id).or_insert(Held { count: 0, most: after.most });
            *held = Held { count: held.count + taken, most: after.most };
        }
        self.held.retain(|_, held| held.count > 0);
    }

    pub fn give_back(&mut self, id: Id<WebhookEndpoint>) {
        let held = self.held.get_mut(&id).expect("a place is given back by whoever took it");
        held.count -= 1;
        if held.count == 0 {
            self.held.remove(&id);
        }
    }
}
