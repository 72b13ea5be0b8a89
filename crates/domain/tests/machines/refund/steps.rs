//! What can happen next, and what the world is after it.

use super::Machine;
use super::world::{Brought, Order, PART, Phase, Word, Work, World};
use crate::guard::Guard;
use crate::jobs;
use crate::sample::dalasi;
use crate::seen::guarded;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Do {
    /// The merchant.
    ReadPayment,
    AskAll,
    AskPart,
    /// Workers.
    Claim(usize, Work),
    Commit(usize),
    Crash(usize),
    LeaseEnds(usize, Work),
    /// The call of a run: it arrives and is answered, or says no, or its answer is lost, or it arrives late if at all.
    Answer(usize),
    Refuse(usize),
    LoseAnswer(usize),
    GiveUp(usize),
    LateCallArrives(usize),
    /// The rail.
    PayBack(usize),
    Fail(usize),
    Correct(usize),
    Deliver(usize),
    DeliverTwice(usize),
}

pub(crate) fn possible(machine: &Machine, world: &World, steps: &mut Vec<Do>) {
    if world.broken.is_some() {
        return;
    }
    if world.refunds.len() < machine.bounds.refunds {
        if machine.without == Some(Guard::FreshRows) && world.merchant_read.is_none() {
            steps.push(Do::ReadPayment);
        }
        steps.extend([Do::AskAll, Do::AskPart]);
    }
    for (place, row) in world.refunds.iter().enumerate() {
        for (work, job) in [(Work::Send, row.send), (Work::Ask, row.ask)] {
            match job {
                Some(job) if job.is_held => steps.push(Do::LeaseEnds(place, work)),
                Some(_) if world.runs.len() < machine.bounds.runs => steps.push(Do::Claim(place, work)),
                Some(_) | None => {}
            }
        }
        match row.order {
            Order::Open => steps.extend([Do::PayBack(place), Do::Fail(place)]),
            Order::Failed if world.faults_left > 0 => steps.push(Do::Correct(place)),
            Order::Failed | Order::Unknown | Order::Refused | Order::Done { .. } => {}
        }
    }
    for (number, run) in world.runs.iter().enumerate() {
        match run.phase {
            Phase::Has(_) => steps.push(Do::Commit(number)),
            Phase::Asks => steps.push(Do::Answer(number)),
            Phase::Calls { .. } => steps.extend([Do::Answer(number), Do::Refuse(number)]),
        }
        if world.faults_left > 0 {
            steps.push(Do::Crash(number));
            if let Phase::Calls { .. } = run.phase {
                steps.extend([Do::LoseAnswer(number), Do::GiveUp(number)]);
            }
        }
    }
    steps.extend((0..world.late_calls.len()).map(Do::LateCallArrives));
    for number in 0..world.callbacks.len() {
        steps.push(Do::Deliver(number));
        if world.faults_left > 0 {
            steps.push(Do::DeliverTwice(number));
        }
    }
}

/// `None`: it can't happen now, it was refused, or nothing is different.
pub(crate) fn after(machine: &Machine, world: &World, step: Do) -> Option<World> {
    let mut next = world.clone();
    let is_done = guarded(|| next.step(machine, step).is_some()).unwrap_or_else(|why| {
        next = world.clone();
        next.broken = Some(why);
        true
    });
    if !is_done {
        return None;
    }
    if next.broken.is_none() {
        next.broken = super::rules::forbidden_edge(world, &next);
    }
    next.sort();
    (next != *world).then_some(next)
}

impl World {
    fn step(&mut self, machine: &Machine, step: Do) -> Option<()> {
        match step {
            Do::ReadPayment => self.merchant_read = Some(self.transaction.clone()),
            Do::AskAll => self.ask_back(None)?,
            Do::AskPart => self.ask_back(Some(dalasi(PART)))?,
            Do::Claim(place, work) => self.claim(place, work, machine.without)?,
            Do::Commit(number) => {
                let run = self.runs.remove(number);
                self.commit(run, machine.without)?;
            }
            Do::Crash(number) => {
                self.fault()?;
                let run = self.runs.remove(number);
                if let Phase::Calls { .. } = run.phase {
                    self.late_calls.push(run.place);
                }
            }
            Do::LeaseEnds(place, work) => {
                jobs::lease_ends(self.job(place, work)).then_some(())?;
                // Of who died it ends in any case.
                if self.has_holder(place, work) {
                    self.fault()?;
                }
            }
            Do::Answer(number) => self.answer(number),
            Do::Refuse(number) => {
                let run = self.runs[number];
                let Phase::Calls { is_rerun } = run.phase else { return None };
                let order = &mut self.refunds[run.place].order;
                if *order == Order::Unknown {
                    *order = Order::Refused;
                }
                self.runs[number].phase = refused(run.work, is_rerun);
            }
            Do::LoseAnswer(number) => {
                self.fault()?;
                self.answer(number);
                self.lose(number);
            }
            Do::GiveUp(number) => {
                self.fault()?;
                self.late_calls.push(self.runs[number].place);
                self.lose(number);
            }
            Do::LateCallArrives(number) => {
                let place = self.late_calls.remove(number);
                self.call_arrives(place);
            }
            Do::PayBack(place) => self.decide(place, Order::Done { corrected: false }, Word::Done),
            Do::Fail(place) => self.decide(place, Order::Failed, Word::Failed),
            Do::Correct(place) => {
                self.fault()?;
                self.decide(place, Order::Done { corrected: true }, Word::Done);
            }
            Do::Deliver(number) => {
                let (place, word) = self.callbacks.remove(number);
                self.report(place, word);
            }
            Do::DeliverTwice(number) => {
                self.fault()?;
                let (place, word) = self.callbacks[number];
                self.report(place, word);
            }
        }
        Some(())
    }

    fn decide(&mut self, place: usize, order: Order, word: Word) {
        self.refunds[place].order = order;
        self.callbacks.push((place, word));
    }

    fn answer(&mut self, number: usize) {
        let run = self.runs[number];
        self.runs[number].phase = match run.phase {
            Phase::Asks => match self.refunds[run.place].order.word() {
                // The intent is committed before the call.
                Word::NotFound if run.holds && self.send_again(run.place) => Phase::Calls { is_rerun: true },
                word => Phase::Has(Brought::Said(word)),
            },
            Phase::Calls { is_rerun } => {
                self.call_arrives(run.place);
                match self.refunds[run.place].order {
                    Order::Refused => refused(run.work, is_rerun),
                    order => Phase::Has(Brought::Said(order.word())),
                }
            }
            Phase::Has(_) => unreachable!("only a run that calls is answered"),
        };
    }

    /// The caller will never know what came of its call.
    fn lose(&mut self, number: usize) {
        let run = &mut self.runs[number];
        run.phase = Phase::Has(match run.work {
            Work::Send => Brought::Lost,
            // A question without an answer changes nothing.
            Work::Ask => Brought::Said(Word::NotFound),
        });
    }

    /// One of what can still go wrong goes wrong.
    fn fault(&mut self) -> Option<()> {
        self.faults_left = self.faults_left.checked_sub(1)?;
        Some(())
    }

    /// The order in which processes began says nothing, and a claim's time nothing where nobody has the claim.
    fn sort(&mut self) {
        for place in 0..self.refunds.len() {
            for work in [Work::Send, Work::Ask] {
                if !self.has_holder(place, work)
                    && let Some(job) = self.job(place, work)
                {
                    job.was_moved = true;
                }
            }
        }
        self.runs.sort_unstable();
        self.callbacks.sort_unstable();
        self.late_calls.sort_unstable();
    }
}

/// No to a second call says nothing of the first.
fn refused(work: Work, is_rerun: bool) -> Phase {
    Phase::Has(match (work, is_rerun) {
        (Work::Send, false) => Brought::Refused,
        (Work::Send, true) => Brought::Lost,
        (Work::Ask, _) => Brought::Said(Word::NotFound),
    })
}
