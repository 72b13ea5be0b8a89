//! Some of a history's sides beside the others: what the first are answered, are told and pay has to be the same whether or
//! not the others are there.
//!
//! So that two such histories can be compared byte for byte, whatever is ours is made of our own dice: a step of theirs takes
//! no time, and a job or a delivery of theirs leaves our dice where they were.

use domain::Scope;
use domain::job::ClaimedJob;

use super::{Check, History, Object};
use crate::operation::{Fault, Kind, Operation};
use crate::random::{Dice, FIRST_HASH, mix};
use crate::world::{Answer, SIDES};

/// Whose history it is, and what they saw of it.
pub(super) struct Apart {
    sides: Sides,
    is_our_turn: bool,
    transcript: Vec<String>,
}

/// Who is looked at, and who the others are.
#[derive(Debug, Clone)]
pub struct Sides {
    pub ours: Vec<usize>,
    pub theirs: Vec<usize>,
}

/// What the others don't do: time, the worker and the process belong to both, and are in our part of the history.
const NOT_THEIRS: [Kind; 7] =
    [Kind::Work, Kind::Deliver, Kind::Number, Kind::Wait, Kind::MeetDeadline, Kind::JumpClock, Kind::Crash];
/// Steps of theirs after each of ours, at most.
const THEIR_STEPS: u64 = 4;
const SETTLING_STEPS: i64 = 20;
const STEP_US: i64 = 30 * 1_000_000;
/// What is listed in the end.
const LISTS: [&str; 14] = [
    "/v1/checkouts",
    "/v1/pay/invoices",
    "/v1/pay/transactions",
    "/v1/pay/refunds",
    "/v1/pay/payment-links",
    "/v1/pay/customers",
    "/v1/pay/products",
    "/v1/pay/receipts",
    "/v1/events",
    "/v1/webhook_endpoints",
    "/v1/ledger/entries",
    "/v1/ledger/accounts",
    "/v1/pay/dashboard",
    "/v1/payouts/balance",
];

impl History {
    /// Our history, alone or beside what the others do and try.
    pub(super) async fn apart(
        &mut self,
        sides: &Sides,
        operations: &[Operation],
        theirs: Option<&[Operation]>,
    ) -> Check {
        self.apart = Some(Apart { sides: sides.clone(), is_our_turn: true, transcript: Vec::new() });
        let mut theirs = theirs.map(|operations| operations.iter().filter(|one| !NOT_THEIRS.contains(&one.kind)));
        for operation in operations {
            self.step(operation).await?;
            let Some(theirs) = &mut theirs else { continue };
            self.turn(false);
            let mut dice = Dice::new(!operation.dice);
            for _ in 0..dice.below(THEIR_STEPS) {
                match theirs.next() {
                    Some(operation) if dice.one_in(2) => self.their_step(operation).await?,
                    _ => self.attack(dice.next()).await?,
                }
            }
            self.turn(true);
        }
        let end = operations.last().map_or(0, |operation| operation.dice);
        self.settle(mix(FIRST_HASH, &end.to_le_bytes())).await
    }

    pub(super) fn take_transcript(&mut self) -> Vec<String> {
        self.apart.take().map(|apart| apart.transcript).unwrap_or_default()
    }

    fn turn(&mut self, is_ours: bool) {
        if let Some(apart) = &mut self.apart {
            apart.is_our_turn = is_ours;
        }
    }

    async fn their_step(&mut self, operation: &Operation) -> Check {
        self.dice = Dice::new(operation.dice);
        self.fault = Fault::None;
        self.touched = None;
        self.world.entropy.reseed(operation.dice);
        self.run(operation.kind).await.map_err(|what| format!("the others, {}: {what}", operation.kind.as_str()))?;
        self.calm();
        self.no_panic()
    }

    /// Ten minutes for what is owed, and then all that we can see. Each history needs a `seed` of its own: several share a
    /// database, and no code of a receipt is anywhere twice.
    async fn settle(&mut self, seed: u64) -> Check {
        self.fault = Fault::None;
        self.dice = Dice::new(seed);
        self.calm();
        for _ in 0..SETTLING_STEPS {
            self.world.pass(STEP_US);
            self.rest().await?;
            self.number().await?;
        }
        for side in self.acting() {
            for object in Object::ALL {
                for id in self.ids(side, object) {
                    self.look(side, object, &id).await.map_err(|what| format!("in the end: {what}"))?;
                }
            }
            for list in LISTS {
                self.read(side, list).await?;
            }
        }
        Ok(())
    }

    /// The sides whose turn it is.
    pub(super) fn acting(&self) -> Vec<usize> {
        match &self.apart {
            None => (0..SIDES).collect(),
            Some(Apart { sides, is_our_turn: true, .. }) => sides.ours.clone(),
            Some(Apart { sides, is_our_turn: false, .. }) => sides.theirs.clone(),
        }
    }

    /// The sides whose turn it is not.
    pub(super) fn waiting(&self) -> Vec<usize> {
        match &self.apart {
            None => Vec::new(),
            Some(Apart { sides, is_our_turn: true, .. }) => sides.theirs.clone(),
            Some(Apart { sides, is_our_turn: false, .. }) => sides.ours.clone(),
        }
    }

    pub(super) fn acts(&self, scope: Scope) -> bool {
        self.apart.is_none() || self.acting().iter().any(|side| self.world.scopes[*side] == scope)
    }

    pub(super) fn is_apart(&self) -> bool {
        self.apart.is_some()
    }

    /// Another side than this one, among those that act.
    pub(super) fn other_than(&mut self, side: usize) -> Option<usize> {
        if self.apart.is_none() {
            return Some((side + 1 + self.dice.below(3) as usize) % SIDES);
        }
        let mut others = self.acting();
        others.retain(|other| *other != side);
        self.dice.pick(&others).copied()
    }

    /// What we saw.
    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(apart) = &mut self.apart
            && apart.is_our_turn
        {
            apart.transcript.push(what());
        }
    }

    pub(super) fn note_answer(&mut self, answer: &Answer) {
        self.note(|| match answer.status {
            // A refusal holds the request's id, which is drawn anew.
            400.. => format!("{} {} {}", answer.status, answer.code(), answer.json()["message"]),
            _ => format!("{} {}", answer.status, answer.body),
        });
    }

    /// A job of theirs, with dice of its own; ours stay where they are.
    pub(super) async fn run_theirs(&mut self, job: ClaimedJob) -> Check {
        let (dice, fault) = (self.dice.clone(), self.fault);
        let seed = mix(FIRST_HASH, format!("{:?} {}", job.job, job.attempts).as_bytes());
        (self.dice, self.fault) = (Dice::new(seed), Fault::None);
        self.world.entropy.reseed(seed);
        self.turn(false);
        let done = self.run_claimed(job).await;
        self.turn(true);
        (self.dice, self.fault) = (dice, fault);
        done.map(drop)
    }

    /// A key for a request: theirs are ours, where they have not used them yet.
    pub(super) fn new_key(&mut self, side: usize) -> String {
        let own = format!("k{:016x}", self.dice.next());
        if self.apart.as_ref().is_none_or(|apart| apart.is_our_turn) {
            return own;
        }
        let waiting = self.waiting();
        let guessed: Vec<String> =
            self.kept.iter().filter(|kept| waiting.contains(&kept.side)).map(|kept| kept.key.clone()).collect();
        match self.dice.pick_recent(&guessed).cloned() {
            Some(key) if self.shared.insert((side, key.clone())) => key,
            _ => own,
        }
    }
}
