//! Who may have how many deliveries under way, so that an endpoint that hangs costs the others nothing, and many that hang leave
//! places to other merchants and to the other mode; and whose turn it is, so that one that is owed much keeps nobody waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::webhook::{Attempted, WebhookEndpoint};
use domain::{Id, Mode, Scope, Timestamp};
use store::Tx;
use store::queries::deliveries::{self, Owed};
use store::queries::endpoints;

use crate::egress::IDLE_CONNECTIONS_PER_HOST;
use crate::error::Failure;

/// Deliveries of one process under way at a time.
pub const PLACES: usize = 288;
/// Of them for one mode: test mode, where anybody may try what they like, always leaves some to live.
const MOST_OF_A_MODE: usize = PLACES * 3 / 4;
/// With as many taken, what is claimed next may take all of them.
const NEARLY_ALL_OF_A_MODE: usize = MOST_OF_A_MODE / 2;
/// Of them for one endpoint: one that hangs leaves the others as many as any of them gets. With three times as many as a claim
/// takes, there are some that are claimed, some that are sent and some that are stored at any time.
const MOST_OF_ONE: usize = 96;
/// The last of a mode are for merchants that have none, and the last of a merchant for its endpoints that have none: many that
/// hang leave one to whoever comes later.
const FOR_WHO_HAS_NONE: usize = 24;
/// Of those of a mode for one merchant.
const MOST_OF_A_MERCHANT: usize = MOST_OF_A_MODE - FOR_WHO_HAS_NONE;
const _: () = assert!(MOST_OF_A_MODE >= 2 * MOST_OF_ONE + FOR_WHO_HAS_NONE);
const _: () = assert!(MOST_OF_ONE <= IDLE_CONNECTIONS_PER_HOST, "the next find the connections of those that ended");
/// For one that has failed so often in a row: one at a time, until it answers again.
const FAILING: i64 = 5;
const MOST_OF_A_FAILING: usize = 1;
/// It is left alone for so long after each further failure: one that fails at once would have the worker look, claim and store for
/// it without a pause, and the others are told later.
const PAUSE_OF_A_FAILING: Duration = Duration::from_millis(50);
/// One that can't be read is looked at again after so long: a later version may have written it, or somebody mends it.
const UNREADABLE: Duration = Duration::from_secs(30);

pub fn is_failing(endpoint: &WebhookEndpoint) -> bool {
    endpoint.consecutive_failures >= FAILING
}

/// The endpoints that get one delivery at a time, of the merchants to whom something is owed: that theirs are late is their own
/// doing. There may be any number of other merchants.
pub fn failing(tx: &mut Tx<'_>) -> Result<Vec<Id<WebhookEndpoint>>, Failure> {
    let mut failing = Vec::new();
    for mode in [Mode::Live, Mode::Test] {
        let owed: BTreeSet<_> =
            deliveries::owed_in(tx, mode)?.into_iter().map(|(_, organization)| organization).collect();
        for organization in owed {
            let active = endpoints::active(tx, Scope { organization, mode })?.endpoints;
            failing.extend(active.iter().filter(|endpoint| is_failing(endpoint)).map(|one| one.id));
        }
    }
    Ok(failing)
}

/// How long the place is kept after an attempt at this endpoint, as it was before.
pub fn pause_after(endpoint: &WebhookEndpoint, outcome: &Attempted) -> Duration {
    match outcome {
        Attempted::Failed { .. } if is_failing(endpoint) => PAUSE_OF_A_FAILING,
        Attempted::Failed { .. } | Attempted::Succeeded { .. } => Duration::ZERO,
    }
}

/// Whether who holds `held` of `taken` places finds one more of `most`: the last `kept` are for whoever has none.
pub(super) fn is_free(taken: usize, held: usize, most: usize, kept: usize) -> bool {
    taken + if held == 0 { 0 } else { kept } < most
}

/// Places taken, by endpoint.
#[derive(Debug, Clone, Default)]
pub struct Places {
    held: BTreeMap<Id<WebhookEndpoint>, Held>,
    /// Of a mode that is nearly full: all that are owed something.
    owed: BTreeMap<Mode, Vec<Owed>>,
    /// Those that can't be read, until when nobody looks at them.
    unreadable: BTreeMap<Id<WebhookEndpoint>, Timestamp>,
    /// All that something is due to, in the order in which they came or last had a turn.
    line: Vec<Id<WebhookEndpoint>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    scope: Scope,
    count: usize,
    most: usize,
}

impl Places {
    /// The modes that may have none left after the next claim: whoever looks for what is due says with [`Places::know`] which
    /// endpoints are theirs.
    pub fn nearly_full(&self) -> Vec<Mode> {
        let is_nearly_full = |mode: &Mode| self.taken(*mode) >= NEARLY_ALL_OF_A_MODE;
        [Mode::Live, Mode::Test].into_iter().filter(is_nearly_full).collect()
    }

    pub fn know(&mut self, owed: BTreeMap<Mode, Vec<Owed>>) {
        self.owed = owed;
    }

    /// The endpoints that get no more for now: those that are full, and those that can't be read.
    pub fn passed_over(&self, now: Timestamp) -> Vec<Id<WebhookEndpoint>> {
        let unreadable = self.unreadable.iter().filter(|(_, until)| **until > now).map(|(id, _)| *id);
        let passed_over: BTreeSet<_> = self.full().into_iter().chain(unreadable).collect();
        passed_over.into_iter().collect()
    }

    fn full(&self) -> Vec<Id<WebhookEndpoint>> {
        let full = self.held.iter().filter(|(_, held)| self.is_full(held)).map(|(id, _)| *id);
        let unseen = self
            .owed
            .iter()
            .flat_map(|(mode, owed)| owed.iter().map(move |(id, organization)| (id, *organization, *mode)));
        let unseen = unseen.filter(|(id, organization, mode)| {
            let scope = Scope { organization: *organization, mode: *mode };
            !self.held.contains_key(id) && self.is_full(&Held { scope, count: 0, most: MOST_OF_ONE })
        });
        full.chain(unseen.map(|(id, _, _)| *id)).collect()
    }

    fn is_full(&self, held: &Held) -> bool {
        let (of_mode, of_merchant) = (self.taken(held.scope.mode), self.taken_by(held.scope));
        held.count >= held.most
            || !is_free(of_mode, of_merchant, MOST_OF_A_MODE, FOR_WHO_HAS_NONE)
            || !is_free(of_merchant, held.count, MOST_OF_A_MERCHANT, FOR_WHO_HAS_NONE)
    }

    fn taken(&self, mode: Mode) -> usize {
        self.held.values().filter(|held| held.scope.mode == mode).map(|held| held.count).sum()
    }

    fn taken_by(&self, scope: Scope) -> usize {
        self.held.values().filter(|held| held.scope == scope).map(|held| held.count).sum()
    }

    /// Whether there was one more for an endpoint, also for one that is gone: what it was owed has to be ended.
    pub(super) fn take(&mut self, id: Id<WebhookEndpoint>, scope: Scope, endpoint: Option<&WebhookEndpoint>) -> bool {
        let most = if endpoint.is_some_and(is_failing) { MOST_OF_A_FAILING } else { MOST_OF_ONE };
        let count = self.held.get(&id).map_or(0, |held| held.count);
        let mut held = Held { scope, count, most };
        let is_free = !self.is_full(&held);
        held.count += usize::from(is_free);
        // One that gets none is kept too: it is full.
        self.held.insert(id, held);
        is_free
    }

    /// What it is owed waits for somebody who can.
    pub(super) fn cannot_read(&mut self, id: Id<WebhookEndpoint>, now: Timestamp) {
        self.unreadable.retain(|_, until| *until > now);
        self.unreadable.insert(id, now.plus(UNREADABLE));
    }

    /// Something is due to these, and to no others. Whoever is new stands behind those of before, however long it has been due: nobody
    /// could be sure of a turn otherwise.
    pub(super) fn line_up(&mut self, due: &[Id<WebhookEndpoint>]) {
        let still_due: BTreeSet<_> = due.iter().copied().collect();
        self.line.retain(|one| still_due.contains(one));
        let in_line: BTreeSet<_> = self.line.iter().copied().collect();
        self.line.extend(due.iter().copied().filter(|one| !in_line.contains(one)));
    }

    /// Without those that are passed over, who keep their place.
    pub fn in_turn(&self, passed_over: &[Id<WebhookEndpoint>]) -> Vec<Id<WebhookEndpoint>> {
        self.line.iter().copied().filter(|one| !passed_over.contains(one)).collect()
    }

    /// It got something, or could get nothing: it stands behind all others now.
    pub(super) fn had_turn(&mut self, id: Id<WebhookEndpoint>) {
        self.line.retain(|one| *one != id);
        self.line.push(id);
    }

    /// Adds what a claim took that began with `before`; others may have ended since.
    pub fn add(&mut self, before: &Self, after: &Self) {
        for (id, after) in &after.held {
            let taken = after.count - before.held.get(id).map_or(0, |held| held.count);
            let held = self.held.entry(*id).or_insert(Held { count: 0, ..*after });
            *held = Held { count: held.count + taken, ..*after };
        }
        self.held.retain(|_, held| held.count > 0);
        // Nobody but a claim writes these.
        self.unreadable.clone_from(&after.unreadable);
        self.line.clone_from(&after.line);
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
            giving_up: None,
            given_up_to: None,
            created_at: now,
            updated_at: now,
        }
    }

    fn live(seed: u8) -> WebhookEndpoint {
        let test = endpoint(seed, 0);
        WebhookEndpoint { scope: Scope { mode: Mode::Live, ..test.scope }, ..test }
    }

    /// How many it gets, if it asks for all there are.
    fn most_of(places: &mut Places, endpoint: &WebhookEndpoint) -> usize {
        (0..PLACES).filter(|_| places.take(endpoint.id, endpoint.scope, Some(endpoint))).count()
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
    fn one_that_fails_again_and_again_is_left_alone_for_a_moment() {
        let (shaky, failing) = (endpoint(1, FAILING - 1), endpoint(2, FAILING));
        let failed = Attempted::Failed { status: None, error: "reset".into(), retry_after: None, gone: false };
        let succeeded = Attempted::Succeeded { status: 200 };
        assert_eq!(pause_after(&failing, &failed), PAUSE_OF_A_FAILING);
        assert_eq!(pause_after(&failing, &succeeded), Duration::ZERO, "it is well again");
        assert_eq!(pause_after(&shaky, &failed), Duration::ZERO);
    }

    #[test]
    fn many_that_hang_leave_places_to_the_other_mode() {
        let mut places = Places::default();
        let hanging: Vec<_> = (1..=230).map(|seed| endpoint(seed, FAILING)).collect();
        assert!(places.nearly_full().is_empty());
        let taken: usize = hanging.iter().map(|one| most_of(&mut places, one)).sum();
        assert_eq!((taken, places.nearly_full()), (MOST_OF_A_MODE, vec![Mode::Test]));
        // One that nobody has seen yet, as well as those that have places and those that got none.
        let unseen = endpoint(231, 0);
        places.know(BTreeMap::from([(Mode::Test, vec![(unseen.id, unseen.scope.organization)])]));
        assert!(places.full().contains(&unseen.id) && places.full().len() == 231);
        assert_eq!(most_of(&mut places.clone(), &unseen), 0);
        let one = live(232);
        assert!(most_of(&mut places, &one) >= PLACES - MOST_OF_A_MODE);
        places.give_back(hanging[0].id);
        assert!(!places.full().contains(&unseen.id) && most_of(&mut places, &unseen) == 1);
        // What is only to be ended for one that is gone takes up the worker as well.
        let gone = endpoint(233, 0);
        assert!(!places.take(gone.id, gone.scope, None));
    }

    #[test]
    fn the_last_of_a_mode_are_for_whoever_has_none() {
        let mut places = Places::default();
        let hanging: Vec<_> = (1..=4).map(|seed| endpoint(seed, 0)).collect();
        let taken: Vec<usize> = hanging.iter().map(|one| most_of(&mut places, one)).collect();
        assert_eq!(taken, [MOST_OF_ONE, MOST_OF_ONE, 1, 1]);
        // What the first gives back it does not get again, but whoever comes.
        places.give_back(hanging[0].id);
        assert_eq!(most_of(&mut places, &hanging[0]), 0);
        let later: usize = (5..=50).map(|seed| most_of(&mut places, &endpoint(seed, 0))).sum();
        assert_eq!(later, FOR_WHO_HAS_NONE - 2 + 1);
    }

    #[test]
    fn one_merchants_many_leave_places_to_the_others() {
        let mut places = Places::default();
        let scope = endpoint(1, 0).scope;
        let hanging: Vec<_> = (1..=200).map(|seed| WebhookEndpoint { scope, ..endpoint(seed, 0) }).collect();
        let taken: Vec<usize> = hanging.iter().map(|one| most_of(&mut places, one)).collect();
        assert_eq!(taken.iter().sum::<usize>(), MOST_OF_A_MERCHANT);
        assert!(
            taken[2..2 + FOR_WHO_HAS_NONE].iter().all(|taken| *taken == 1),
            "an endpoint leaves some to its merchant's others: {taken:?}"
        );
        // Those that have none are not looked for in vain, and those of others are found.
        let [own, other] = [WebhookEndpoint { scope, ..endpoint(201, 0) }, endpoint(202, 0)];
        let owed = [&own, &other].map(|one| (one.id, one.scope.organization));
        places.know(BTreeMap::from([(Mode::Test, owed.to_vec())]));
        assert_eq!((places.full().contains(&own.id), places.full().contains(&other.id)), (true, false));
        let others: Vec<_> = (202..=240).map(|seed| most_of(&mut places, &endpoint(seed, 0))).collect();
        assert_eq!(others.iter().sum::<usize>(), FOR_WHO_HAS_NONE, "{others:?}");
        assert!(others.iter().all(|taken| *taken <= 1), "{others:?}");
    }

    #[test]
    fn what_ended_during_a_claim_is_not_counted() {
        let (mut shared, well) = (Places::default(), endpoint(1, 0));
        assert!(shared.take(well.id, well.scope, Some(&well)));
        let before = shared.clone();
        let mut after = before.clone();
        assert_eq!((0..2).filter(|_| after.take(well.id, well.scope, Some(&well))).count(), 2);
        shared.give_back(well.id);
        shared.add(&before, &after);
        assert_eq!(shared.held[&well.id].count, 2);
        // It has been found to fail, by a claim that got nothing for it.
        let failing = WebhookEndpoint { consecutive_failures: FAILING, ..well };
        let before = shared.clone();
        let mut after = before.clone();
        assert!(!after.take(failing.id, failing.scope, Some(&failing)));
        shared.add(&before, &after);
        assert_eq!(shared.full(), [failing.id]);
    }

    #[test]
    fn who_is_new_stands_behind_the_others_and_so_does_who_had_a_turn() {
        let [first, second, third, fourth] = [1, 2, 3, 4].map(|seed| endpoint(seed, 0).id);
        let mut places = Places::default();
        places.line_up(&[second, first]);
        assert_eq!(places.in_turn(&[]), [second, first], "who has been due for longest");
        places.had_turn(second);
        places.line_up(&[third, second, first]);
        assert_eq!(places.in_turn(&[]), [first, second, third]);
        // Whoever is passed over keeps its place.
        assert_eq!(places.in_turn(&[first]), [second, third]);
        places.had_turn(second);
        assert_eq!(places.in_turn(&[]), [first, third, second]);
        // Whoever is owed nothing more comes back as a new one.
        places.line_up(&[second, third, fourth]);
        places.line_up(&[first, second, third, fourth]);
        let mut shared = Places::default();
        shared.add(&Places::default(), &places);
        assert_eq!(shared.in_turn(&[]), [third, second, fourth, first], "the next claim goes on from there");
    }

    #[test]
    fn one_that_cannot_be_read_is_passed_over_for_a_while() {
        let (mut shared, one) = (Places::default(), endpoint(1, 0));
        let before = shared.clone();
        let mut after = before.clone();
        after.cannot_read(one.id, one.created_at);
        shared.add(&before, &after);
        assert_eq!(shared.passed_over(one.created_at), [one.id]);
        assert_eq!(shared.passed_over(one.created_at.plus(UNREADABLE)), []);
    }
}
