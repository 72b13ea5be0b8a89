//! Who may have how many deliveries under way, so that an endpoint that hangs costs the others nothing.

use std::collections::BTreeMap;

use domain::Id;
use domain::webhook::WebhookEndpoint;
use store::Tx;
use store::queries::{endpoints, organizations};

use crate::error::Failure;

/// Deliveries of one process under way at a time.
pub const PLACES: usize = 112;
/// Of them for one endpoint: one that hangs leaves the others as many as any of them gets.
const MOST_OF_ONE: usize = 48;
const _: () = assert!(PLACES >= 2 * MOST_OF_ONE);
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

#[cfg(test)]
mod tests {
    use domain::webhook::EndpointStatus;
    use domain::{Entropy, Metadata, Mode, Scope, Timestamp};

    use super::*;

    fn endpoint(seed: u8, consecutive_failures: i64) -> WebhookEndpoint {
        let (now, mut entropy) = (Timestamp::from_micros(1_790_000_000_000_000), Entropy::from_seed([seed; 32]));
        WebhookEndpoint {
            id: entropy.id(now),
            scope: Scope { organization: entropy.id(now), mode: Mode::Test },
            version: 1,
            url: "https://hooks.shop.example/".into(),
            description: None,
            enabled_events: Vec::new(),
            status: EndpointStatus::Active,
            secret: String::new(),
            previous_secret: None,
            later_secrets: Vec::new(),
            metadata: Metadata::default(),
            consecutive_failures,
            failing_since: None,
            last_success_at: None,
            last_failure_at: None,
            disabled_at: None,
            disable_reason: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// How many it gets, if it asks for all there are.
    fn most_of(places: &mut Places, endpoint: &WebhookEndpoint) -> usize {
        (0..PLACES).filter(|_| places.take(endpoint.id, Some(endpoint))).count()
    }

    #[test]
    fn one_leaves_places_for_others_and_a_failing_one_gets_one() {
        let mut places = Places::default();
        let (well, failing, shaky) = (endpoint(1, 0), endpoint(2, FAILING), endpoint(3, FAILING - 1));
        assert_eq!(most_of(&mut places, &well), MOST_OF_ONE);
        assert_eq!(most_of(&mut places, &failing), 1);
        assert_eq!(most_of(&mut Places::default(), &shaky), MOST_OF_ONE);
        assert_eq!(places.full().len(), 2);
        places.give_back(failing.id);
        assert_eq!(places.full(), [well.id]);
        // It answered: all that one can get.
        let recovered = WebhookEndpoint { consecutive_failures: 0, ..failing };
        assert_eq!(most_of(&mut places, &recovered), MOST_OF_ONE);
    }

    #[test]
    fn what_ended_during_a_claim_is_not_counted() {
        let (mut shared, well) = (Places::default(), endpoint(1, 0));
        assert!(shared.take(well.id, Some(&well)));
        let before = shared.clone();
        let mut after = before.clone();
        assert!(after.take(well.id, Some(&well)) && after.take(well.id, Some(&well)));
        shared.give_back(well.id);
        shared.add(&before, &after);
        assert_eq!(shared.held[&well.id].count, 2);
        // It has been found to fail, by a claim that got nothing for it.
        let failing = WebhookEndpoint { consecutive_failures: FAILING, ..well };
        let before = shared.clone();
        let mut after = before.clone();
        assert!(!after.take(failing.id, Some(&failing)));
        shared.add(&before, &after);
        assert_eq!(shared.full(), [failing.id]);
    }
}
