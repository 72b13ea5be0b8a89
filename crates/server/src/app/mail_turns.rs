//! Whose mail goes next, where more is due than the mail server takes at a time: merchants take turns, and of each what it sends
//! in bulk with what it owes for a payment just made, however long the one has been due before the other.

use std::collections::{BTreeMap, BTreeSet};

use domain::mail::{Mail, MailKind};
use domain::{Id, Mode, Scope, Timestamp};
use store::Tx;
use store::queries::mails::{self, ClaimedMail, Owed};
use store::queries::organizations;

use super::delivery_places::is_free;
use crate::error::Failure;

/// Connections to the mail server: most allow few.
pub const PLACES: usize = 4;
/// Of them for test mode.
const MOST_OF_TEST: usize = PLACES / 2;
/// The last, of all and of test mode's, is for a merchant that has none: one whose mails take long leaves it to whoever comes later.
/// Where there is only one merchant, nobody else comes.
const FOR_WHO_HAS_NONE: usize = 1;

/// What this process has in its hands, and who had a turn when.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    /// Until what came of it is stored.
    in_hand: BTreeMap<Id<Mail>, Scope>,
    /// Whether there is more than one merchant.
    is_shared: bool,
    /// The modes whose mails were looked for: of another it is not known who is owed some, and nobody's turn is forgotten.
    looked_at: Vec<Mode>,
    owed: Vec<Owed>,
    /// The number of the last turn, of those who have been owed mails ever since.
    last: BTreeMap<(Scope, MailKind), u64>,
    count: u64,
}

impl Turns {
    /// Of a process that has nothing in its hands.
    pub fn begin(tx: &mut Tx<'_>) -> Result<Self, Failure> {
        let mut turns = Self::default();
        turns.look(tx)?;
        Ok(turns)
    }

    /// When there is something to claim, and who is owed mails: looked for beforehand, because a claim holds up whoever writes.
    pub fn look(&mut self, tx: &mut Tx<'_>) -> Result<Option<Timestamp>, Failure> {
        self.is_shared = organizations::are_several(tx)?;
        let modes = self.modes();
        let (next, owed) = mails::look(tx, &modes, |scope| self.finds_place(scope))?;
        (self.looked_at, self.owed) = (modes, owed);
        Ok(next)
    }

    /// Adds what a copy of these has seen in a look; others may have ended since.
    pub fn know(&mut self, seen: Self) {
        self.is_shared = seen.is_shared;
        self.looked_at = seen.looked_at;
        self.owed = seen.owed;
    }

    /// The modes of which somebody may find a place.
    fn modes(&self) -> Vec<Mode> {
        let may_find = |mode: &Mode| self.has_place(*mode, 0);
        [Mode::Live, Mode::Test].into_iter().filter(may_find).collect()
    }

    fn finds_place(&self, scope: Scope) -> bool {
        self.has_place(scope.mode, self.taken_by(scope))
    }

    /// For a merchant that has `held`.
    fn has_place(&self, mode: Mode, held: usize) -> bool {
        let of_test = self.in_hand.values().filter(|scope| !scope.mode.is_live()).count();
        let kept = if self.is_shared { FOR_WHO_HAS_NONE } else { 0 };
        is_free(self.in_hand.len(), held, PLACES, kept)
            && (mode.is_live() || is_free(of_test, held, MOST_OF_TEST, kept))
    }

    fn taken_by(&self, scope: Scope) -> usize {
        self.in_hand.values().filter(|one| **one == scope).count()
    }

    /// Adds what a claim took that began with a copy of these; others may have ended since.
    pub fn add(&mut self, after: Self, claimed: &[ClaimedMail]) {
        claimed.iter().for_each(|claimed| self.hold(&claimed.mail));
        self.last = after.last;
        self.count = after.count;
    }

    fn hold(&mut self, mail: &Mail) {
        self.in_hand.insert(mail.id, mail.scope);
    }

    fn has(&self, id: &str) -> bool {
        id.parse().is_ok_and(|id: Id<Mail>| self.in_hand.contains_key(&id))
    }

    pub fn ended(&mut self, id: Id<Mail>) {
        self.in_hand.remove(&id);
    }

    /// Whose turn it is: of those who have the fewest in hand who has waited longest for a turn, and the same among what it
    /// is owed. Whoever has not had one comes before those, by the time at which its first mail was due.
    fn next(&self, owed: &[Owed]) -> Option<usize> {
        let last = |scope, kind| self.last.get(&(scope, kind)).copied().unwrap_or_default();
        let rank = |owed: &Owed| {
            let last_of_all = MailKind::ALL.into_iter().map(|kind| last(owed.scope, kind)).max();
            (self.taken_by(owed.scope), last_of_all, last(owed.scope, owed.kind), owed.due_at, owed.scope, owed.kind)
        };
        (0..owed.len()).min_by_key(|index| rank(&owed[*index]))
    }

    fn take(&mut self, claimed: &ClaimedMail) {
        let mail = &claimed.mail;
        self.count += 1;
        self.last.insert((mail.scope, mail.kind), self.count);
        self.hold(mail);
    }

    /// Whoever was owed nothing more in between has waited for no turn.
    fn forget_others(&mut self, mode: Mode, owed: &[Owed]) {
        let waiting: BTreeSet<_> = owed.iter().map(|owed| owed.scope).collect();
        self.last.retain(|(scope, _), _| scope.mode != mode || waiting.contains(scope));
    }
}

/// Up to `limit` due mails of a mode, turn by turn, held until `lease_until`: of those who were known to be owed some, as far as
/// they find places.
pub fn claim(
    tx: &mut Tx<'_>,
    mode: Mode,
    limit: usize,
    lease_until: Timestamp,
    turns: &mut Turns,
) -> Result<Vec<ClaimedMail>, Failure> {
    let mut claimed = Vec::new();
    if limit == 0 || !turns.looked_at.contains(&mode) {
        return Ok(claimed);
    }
    let now = tx.now();
    let is_due = |owed: &&Owed| owed.scope.mode == mode && owed.due_at <= now;
    let mut owed: Vec<_> = turns.owed.iter().filter(is_due).copied().collect();
    turns.forget_others(mode, &owed);
    while claimed.len() < limit
        && let Some(index) = turns.next(&owed)
    {
        let Owed { scope, kind, .. } = owed[index];
        if !turns.finds_place(scope) {
            owed.swap_remove(index);
            continue;
        }
        let (mut found, held_on) = mails::claim_beside(tx, scope, kind, 1, lease_until, |id| turns.has(id))?;
        match found.pop() {
            Some(one) => {
                turns.take(&one);
                claimed.push(one);
            }
            // Its lease ran out while this process still answers for it. What is due behind it is looked for next.
            None if held_on > 0 => tracing::warn!("a mail is in hand for longer than it could be held"),
            // All is held by now, or can't be read.
            None => drop(owed.swap_remove(index)),
        }
    }
    Ok(claimed)
}

#[cfg(test)]
mod tests {
    use domain::Entropy;
    use domain::mail::MailKind::{EndpointDisabled, Invoice, Receipt};

    use super::*;

    fn scope(seed: u8) -> Scope {
        let now = Timestamp::from_micros(1_790_000_000_000_000);
        Scope { organization: Entropy::from_seed([seed; 32]).id(now), mode: Mode::Live }
    }

    fn owed(seed: u8, kind: MailKind, due_at: i64) -> Owed {
        Owed { scope: scope(seed), kind, due_at: Timestamp::from_micros(due_at) }
    }

    /// The merchants' seeds and kinds in the order of their turns, where each has more than one and all end at once, or in the
    /// end.
    fn order(turns: &mut Turns, owed: &[Owed], count: usize, ends: bool) -> Vec<(usize, MailKind)> {
        let mut entropy = Entropy::from_seed([u8::try_from(turns.count).unwrap() + 100; 32]);
        (0..count)
            .map(|_| {
                let Owed { scope, kind, due_at } = owed[turns.next(owed).unwrap()];
                let id = entropy.id(due_at);
                let mail = Mail::owed(id, scope, kind, "inv_1".into(), "awa@example.org".into(), due_at);
                turns.take(&ClaimedMail { mail, lease_token: 1 });
                if ends {
                    turns.ended(id);
                }
                (owed.iter().position(|owed| owed.scope == scope).unwrap(), kind)
            })
            .collect()
    }

    #[test]
    fn who_has_waited_longest_goes_first_and_then_all_in_turn() {
        let owed = [owed(1, Invoice, 30), owed(2, Invoice, 10), owed(3, Invoice, 20)];
        for ends in [true, false] {
            let order: Vec<_> = order(&mut Turns::default(), &owed, 7, ends).iter().map(|(index, _)| *index).collect();
            assert_eq!(order, [1, 2, 0, 1, 2, 0, 1]);
        }
    }

    #[test]
    fn what_takes_long_takes_no_other_merchants_places() {
        let (slow, quick) = (owed(1, Invoice, 10), owed(2, Invoice, 20));
        let mut turns = Turns::default();
        assert_eq!(order(&mut turns, &[slow], 2, false).len(), 2);
        // With two under way it gets none, for as long as others have fewer.
        let order = order(&mut turns, &[slow, quick], 6, true);
        assert!(order.iter().all(|(index, _)| *index == 1), "{order:?}");
    }

    #[test]
    fn the_last_place_is_for_whoever_has_none() {
        let (slow, other, late) = (owed(1, Invoice, 10), owed(2, Invoice, 20), owed(3, Invoice, 30));
        let of_test = [slow, other].map(|one| Scope { mode: Mode::Test, ..one.scope });
        let mut turns = Turns { is_shared: true, ..Turns::default() };
        order(&mut turns, &[slow], PLACES - 1, false);
        assert_eq!([slow, other].map(|one| turns.finds_place(one.scope)), [false, true]);
        assert_eq!(turns.modes(), [Mode::Live, Mode::Test], "in whichever mode");
        order(&mut turns, &[other], 1, false);
        assert_eq!((turns.finds_place(late.scope), turns.modes()), (false, Vec::new()));
        let mut turns = Turns { is_shared: true, ..Turns::default() };
        order(&mut turns, &[Owed { scope: of_test[0], ..slow }], 1, false);
        assert_eq!(of_test.map(|scope| turns.finds_place(scope)), [false, true]);
        order(&mut turns, &[Owed { scope: of_test[1], ..other }], 1, false);
        assert_eq!(turns.modes(), [Mode::Live], "test mode leaves some");
        assert!([slow, late].iter().all(|one| turns.finds_place(one.scope)));
    }

    #[test]
    fn who_is_alone_has_all_places() {
        let (one, mut turns) = (owed(1, Invoice, 10), Turns::default());
        let of_test = Owed { scope: Scope { mode: Mode::Test, ..one.scope }, ..one };
        order(&mut turns, &[of_test], MOST_OF_TEST - 1, false);
        assert!(turns.finds_place(of_test.scope));
        order(&mut turns, &[of_test], 1, false);
        assert!(!turns.finds_place(of_test.scope), "test mode leaves some");
        order(&mut turns, &[one], PLACES - MOST_OF_TEST - 1, false);
        assert!(turns.finds_place(one.scope));
    }

    #[test]
    fn what_is_sent_in_bulk_takes_turns_with_the_rest() {
        let owed = [owed(1, Invoice, 10), owed(1, Receipt, 99), owed(1, EndpointDisabled, 98), owed(2, Invoice, 50)];
        let order = order(&mut Turns::default(), &owed, 8, true);
        let of_others = order.iter().filter(|(index, _)| *index == 3).count();
        assert_eq!(of_others, 4, "a merchant gets no more for having more kinds: {order:?}");
        let kinds: Vec<_> = order.iter().filter(|(index, _)| *index == 0).map(|(_, kind)| *kind).collect();
        assert_eq!(kinds, [Invoice, EndpointDisabled, Receipt, Invoice]);
    }

    #[test]
    fn whoever_was_owed_nothing_for_a_while_is_not_remembered() {
        let all = [owed(1, Invoice, 10), owed(2, Invoice, 20)];
        let mut turns = Turns::default();
        order(&mut turns, &all, 3, true);
        turns.forget_others(Mode::Test, &[]);
        assert_eq!(turns.last.len(), 2, "the other mode's are not asked for");
        turns.forget_others(Mode::Live, &all[..1]);
        assert_eq!(turns.last.keys().collect::<Vec<_>>(), [&(scope(1), Invoice)]);
    }

    #[test]
    fn what_ended_during_a_claim_is_not_counted() {
        let all = [owed(1, Invoice, 10)];
        let mut shared = Turns::default();
        order(&mut shared, &all, 1, false);
        let ended = *shared.in_hand.keys().next().unwrap();
        let mut after = shared.clone();
        order(&mut after, &all, 1, false);
        let id = *after.in_hand.keys().find(|id| **id != ended).unwrap();
        let due_at = Timestamp::from_micros(10);
        let mail = Mail::owed(id, scope(1), Invoice, "inv_1".into(), "awa@example.org".into(), due_at);
        shared.ended(ended);
        shared.add(after, &[ClaimedMail { mail, lease_token: 1 }]);
        assert_eq!((shared.taken_by(scope(1)), shared.in_hand.len(), shared.count), (1, 1, 2));
    }
}
