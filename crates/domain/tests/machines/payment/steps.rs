//! What can happen next, and what the world is after it.

use domain::event::EventType;
use domain::rail::NextAction;

use super::Machine;
use super::object::Stored;
use super::rail::{OrderState, Word};
use super::world::{Brought, Call, PART, Phase, Work, World};
use crate::guard::Guard;
use crate::jobs;
use crate::sample::dalasi;
use crate::seen::guarded;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Do {
    Tick,
    /// The payer, with one of the methods.
    Pay(usize, Amount),
    Return(usize),
    Approve(usize),
    Decline(usize),
    /// The merchant.
    Cancel,
    Finalize,
    Send,
    ReadInvoice,
    Record(Amount),
    /// Workers.
    Claim(usize, Work),
    Timer,
    SessionTimer(usize),
    Commit(usize),
    Crash(usize),
    LeaseEnds(usize, Work),
    /// The call of a run: it arrives and is answered, or says no, or its answer is lost, or it arrives late if at all.
    Answer(usize),
    Refuse(usize),
    LoseAnswer(usize),
    GiveUp(usize),
    LateCallArrives(usize),
    /// The rail's reports.
    Correct(usize),
    Deliver(usize, Copies),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    All,
    Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copies {
    Last,
    More,
}

pub(crate) fn possible(machine: &Machine, world: &World, steps: &mut Vec<Do>) {
    if world.broken.is_some() {
        return;
    }
    let (now, has_room) = (world.now(), world.runs.len() < machine.bounds.runs);
    if world.has_later() {
        steps.push(Do::Tick);
    }
    if world.timer.is_some_and(|due_at| due_at <= now) {
        steps.push(Do::Timer);
    }
    let is_invoice = matches!(world.object, Stored::Invoice(_));
    let amounts: &[Amount] = if is_invoice { &[Amount::All, Amount::Part] } else { &[Amount::All] };
    if world.attempts.len() < machine.bounds.attempts && has_room {
        for method in 0..machine.bounds.methods.len() {
            steps.extend(amounts.iter().map(|amount| Do::Pay(method, *amount)));
        }
    }
    steps.push(Do::Cancel);
    if is_invoice {
        steps.push(Do::Finalize);
        // Once, and only where nobody pays online: it does nothing to payments.
        if machine.bounds.attempts == 0 && world.told.times(EventType::InvoiceSent) == 0 {
            steps.push(Do::Send);
        }
        match (machine.without, &world.merchant_read) {
            (Some(Guard::FreshRows), None) => steps.push(Do::ReadInvoice),
            _ => steps.extend(amounts.iter().map(|amount| Do::Record(*amount))),
        }
    }
    for (place, attempt) in world.attempts.iter().enumerate() {
        let next_action = &attempt.session.next_action;
        if !attempt.session.is_with_provider() && matches!(next_action, Some(NextAction::Redirect { .. })) {
            steps.push(Do::Return(place));
        }
        if attempt.has_timer && attempt.session.expires_at <= now {
            steps.push(Do::SessionTimer(place));
        }
        for (work, job) in [(Work::Start, attempt.start), (Work::Ask, attempt.ask), (Work::Withdraw, attempt.withdraw)]
        {
            match job {
                Some(job) if job.is_held => steps.push(Do::LeaseEnds(place, work)),
                Some(_) if has_room => steps.push(Do::Claim(place, work)),
                Some(_) | None => {}
            }
        }
        match attempt.order.state {
            OrderState::Open => steps.extend([Do::Approve(place), Do::Decline(place)]),
            OrderState::Failed if world.faults_left > 0 => steps.push(Do::Correct(place)),
            OrderState::Failed | OrderState::Unknown | OrderState::Refused | OrderState::Paid { .. } => {}
        }
    }
    for (number, run) in world.runs.iter().enumerate() {
        match run.phase {
            Phase::Has(_) => steps.push(Do::Commit(number)),
            Phase::Calls(_) => steps.push(Do::Answer(number)),
        }
        if matches!(run.phase, Phase::Calls(Call::Start { .. })) {
            steps.push(Do::Refuse(number));
        }
        if world.faults_left > 0 {
            steps.push(Do::Crash(number));
            match run.phase {
                Phase::Has(_) => {}
                // Whether a question arrived makes no difference, and one that is not answered changes nothing.
                Phase::Calls(Call::Query { .. }) => steps.push(Do::GiveUp(number)),
                Phase::Calls(Call::Start { .. } | Call::Withdraw) => {
                    steps.extend([Do::LoseAnswer(number), Do::GiveUp(number)]);
                }
            }
        }
    }
    steps.extend((0..world.late_calls.len()).map(Do::LateCallArrives));
    for number in 0..world.callbacks.len() {
        steps.push(Do::Deliver(number, Copies::Last));
        if world.faults_left > 0 {
            steps.push(Do::Deliver(number, Copies::More));
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
    if machine.without == Some(Guard::Withdrawal) {
        let held = next.attempts.iter_mut().filter(|attempt| attempt.session.is_with_provider());
        held.for_each(|attempt| attempt.withdraw = None);
    }
    if next.broken.is_none() {
        next.broken = super::rules::forbidden_edge(world, &next);
    }
    next.sort();
    (next != *world).then_some(next)
}

impl World {
    fn step(&mut self, machine: &Machine, step: Do) -> Option<()> {
        let without = machine.without;
        match step {
            Do::Tick => self.clock += 1,
            Do::Pay(method, amount) => {
                let asked = (amount == Amount::Part).then(|| dalasi(PART));
                self.pay(machine.bounds.methods[method], asked, without)?;
            }
            Do::Return(place) => self.returned(place),
            Do::Approve(place) => self.decide(place, OrderState::Paid { corrected: false }, Word::Paid),
            Do::Decline(place) => self.decide(place, OrderState::Failed, Word::Failed),
            Do::Correct(place) => {
                self.fault()?;
                self.decide(place, OrderState::Paid { corrected: true }, Word::Paid);
            }
            Do::Cancel => self.cancel()?,
            Do::Finalize => self.change(|invoice, now| invoice.finalize(now).ok())?,
            Do::Send => self.change(|invoice, now| invoice.sent(now).ok())?,
            Do::ReadInvoice => self.merchant_read = Some(self.object.clone()),
            Do::Record(Amount::All) => {
                let Stored::Invoice(invoice) = &self.object else { return None };
                let remaining = invoice.remaining();
                (remaining.minor > 0).then_some(())?;
                self.record(remaining)?;
            }
            Do::Record(Amount::Part) => self.record(dalasi(PART))?,
            Do::Claim(place, work) => self.claim(place, work, without)?,
            Do::Timer => self.timer()?,
            Do::SessionTimer(place) => self.session_timer(place)?,
            Do::Commit(number) => {
                let run = self.runs.remove(number);
                self.commit(run, without)?;
            }
            Do::Crash(number) => {
                self.fault()?;
                let run = self.runs.remove(number);
                if let Phase::Calls(Call::Start { .. }) = run.phase {
                    self.late_calls.push(run.attempt);
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
                let run = &mut self.runs[number];
                let order = &mut self.attempts[run.attempt].order;
                let Phase::Calls(Call::Start { is_repeated }) = run.phase else { return None };
                if order.state == OrderState::Unknown {
                    order.state = OrderState::Refused;
                }
                // No to the second call says nothing of the first.
                run.phase = Phase::Has(if is_repeated { Brought::Lost } else { Brought::Refused });
            }
            Do::LoseAnswer(number) => {
                self.fault()?;
                let call = self.call_of(number);
                self.answer(number);
                self.lose(number, call);
            }
            Do::GiveUp(number) => {
                self.fault()?;
                let call = self.call_of(number);
                if let Call::Start { .. } = call {
                    self.late_calls.push(self.runs[number].attempt);
                }
                self.lose(number, call);
            }
            Do::LateCallArrives(number) => {
                let attempt = &mut self.attempts[self.late_calls.remove(number)];
                let method = attempt.method();
                attempt.order.start(method);
            }
            Do::Deliver(number, copies) => {
                let (place, word) = self.callbacks[number];
                match copies {
                    Copies::Last => drop(self.callbacks.remove(number)),
                    Copies::More => self.fault()?,
                }
                self.report(place, word);
            }
        }
        Some(())
    }

    /// The payer or the network decides, and the rail reports it.
    fn decide(&mut self, place: usize, state: OrderState, word: Word) {
        self.attempts[place].order.state = state;
        self.callbacks.push((place, word));
    }

    /// The call of a run arrives, and the rail's answer comes back.
    fn answer(&mut self, number: usize) {
        let now = self.now();
        let (call, holds) = (self.call_of(number), self.runs[number].holds);
        let place = self.runs[number].attempt;
        let attempt = &mut self.attempts[place];
        let method = attempt.method();
        let phase = match call {
            Call::Start { is_repeated } => match (attempt.order.start(method), is_repeated) {
                (true, _) => Phase::Has(Brought::Started),
                // No to the second call says nothing of the first.
                (false, true) => Phase::Has(Brought::Lost),
                (false, false) => Phase::Has(Brought::Refused),
            },
            Call::Query { may_repeat } => {
                let session = &attempt.session;
                let is_wanted = session.refuse_if_closed().is_ok() && now < session.expires_at;
                match attempt.order.word() {
                    Word::NotFound if may_repeat && is_wanted && holds && self.repeat_start(place) => {
                        Phase::Calls(Call::Start { is_repeated: true })
                    }
                    word => Phase::Has(Brought::Said(word)),
                }
            }
            Call::Withdraw => {
                attempt.order.withdraw();
                Phase::Calls(Call::Query { may_repeat: false })
            }
        };
        self.runs[number].phase = phase;
    }

    /// The caller will never know what came of its call.
    fn lose(&mut self, number: usize, call: Call) {
        let run = &mut self.runs[number];
        match call {
            Call::Start { .. } => run.phase = Phase::Has(Brought::Lost),
            // A question without an answer changes nothing.
            Call::Query { .. } => run.phase = Phase::Has(Brought::Said(Word::NotFound)),
            Call::Withdraw => {
                let run = self.runs.remove(number);
                if run.holds {
                    jobs::again(self.job(run.attempt, run.work));
                }
            }
        }
    }

    fn call_of(&self, number: usize) -> Call {
        match self.runs[number].phase {
            Phase::Calls(call) => call,
            Phase::Has(_) => unreachable!("only a run that calls is answered"),
        }
    }

    /// One of what can still go wrong goes wrong.
    fn fault(&mut self) -> Option<()> {
        self.faults_left = self.faults_left.checked_sub(1)?;
        Some(())
    }
}
