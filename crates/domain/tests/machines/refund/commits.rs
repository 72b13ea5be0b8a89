//! Each function is one transaction of the shell (`app/refunds.rs` of the server), and moves the rows by the domain's own
//! functions. `None`: it was refused, and nothing is written.

use domain::Money;
use domain::event::EventType;
use domain::ledger::Entry;
use domain::payment::{Step, Transaction};
use domain::rail::{Called, FailureReason};
use domain::refund::{Refund, RefundMoved, Source};

use super::world::{Brought, Order, Phase, Row, Run, Word, Work, World, keep};
use crate::books::Told;
use crate::guard::Guard;
use crate::jobs::{self, Job};
use crate::sample::{at, id};

impl World {
    pub(crate) fn ask_back(&mut self, amount: Option<Money>) -> Option<()> {
        let number = u8::try_from(self.refunds.len() + 1).expect("a model has few refunds");
        let mut transaction = self.merchant_read.take().unwrap_or_else(|| self.transaction.clone()).load();
        let mut refund = Refund::ask(id(number), &mut transaction, amount, None, at(0)).ok()?;
        let mut told = Told::default();
        let (entry, send) = match refund.source {
            Source::Merchant { .. } | Source::Unapplied { .. } => {
                (Entry::refund_asked(id(1), &refund), Some(Job { was_moved: true, ..Job::default() }))
            }
            Source::Offline => {
                told.tell(EventType::RefundCompleted, refund.next_sequence());
                (Entry::offline_refunded(id(1), &refund), None)
            }
        };
        self.books.post(&entry);
        self.refunds.push(Row { refund: keep(refund), send, ask: None, order: Order::Unknown, taken: 0, told });
        self.save(transaction);
        Some(())
    }

    /// A worker takes what is owed, and reads what it needs before it calls.
    pub(crate) fn claim(&mut self, place: usize, work: Work, without: Option<Guard>) -> Option<()> {
        let is_rerun = jobs::claim(self.job(place, work))?;
        let (row, idempotent) = (&self.refunds[place], self.is_idempotent());
        let phase = match (work, row.refund.step()) {
            (Work::Send, Step::Waiting | Step::Unknown | Step::Settled) => Phase::Has(Brought::Nothing),
            (Work::Send, Step::Sending) if is_rerun && !idempotent && without != Some(Guard::OneCall) => {
                Phase::Has(Brought::Lost)
            }
            (Work::Send, Step::Sending) => Phase::Calls { is_rerun },
            (Work::Ask, Step::Unknown | Step::Sending) if idempotent => Phase::Asks,
            // A question moves nothing at the rail, so only one that leads to more takes its time.
            (Work::Ask, _) => Phase::Has(Brought::Said(row.order.word())),
        };
        let others = self.runs.iter_mut().filter(|run| run.place == place && run.work == work);
        others.for_each(|run| run.holds = false);
        self.runs.push(Run { place, work, holds: true, phase });
        Some(())
    }

    /// What a call brought is committed, and the claim let go.
    pub(crate) fn commit(&mut self, run: Run, without: Option<Guard>) -> Option<()> {
        let Phase::Has(brought) = run.phase else { return None };
        self.settle(run.place, |refund, transaction| match brought {
            Brought::Nothing => RefundMoved::Nowhere,
            // Whoever took over meanwhile may have called first, or be calling.
            Brought::Refused | Brought::Lost | Brought::Said(Word::NotFound)
                if !run.holds && without != Some(Guard::OthersCall) =>
            {
                RefundMoved::Nowhere
            }
            Brought::Refused => refund.sent(transaction, Called::Refused(FailureReason::Declined), at(0)),
            Brought::Lost => refund.sent(transaction, Called::Lost("lost".into()), at(0)),
            Brought::Said(word) => {
                let report = word.report(refund.amount);
                match run.work {
                    Work::Send => refund.sent(transaction, Called::Answered(report), at(0)),
                    Work::Ask => refund.reported(transaction, &report, at(0)),
                }
            }
        });
        if run.holds {
            jobs::done(self.job(run.place, run.work));
        }
        Some(())
    }

    pub(crate) fn send_again(&mut self, place: usize) -> bool {
        let row = &mut self.refunds[place];
        let mut refund = row.refund.load();
        let is_sent = refund.send_again();
        row.refund = keep(refund);
        is_sent
    }

    pub(crate) fn report(&mut self, place: usize, word: Word) {
        self.settle(place, |refund, transaction| {
            let report = word.report(refund.amount);
            refund.reported(transaction, &report, at(0))
        });
    }

    fn settle(&mut self, place: usize, apply: impl FnOnce(&mut Refund, &mut Transaction) -> RefundMoved) {
        let mut transaction = self.transaction.load();
        let row = &mut self.refunds[place];
        let mut refund = row.refund.load();
        let moved = apply(&mut refund, &mut transaction);
        let outcome = match moved {
            RefundMoved::Nowhere | RefundMoved::On => None,
            RefundMoved::ToCompleted => Some((Entry::refund_completed(id(1), &refund), EventType::RefundCompleted)),
            RefundMoved::ToFailed => Some((Entry::refund_failed(id(1), &refund), EventType::RefundFailed)),
            RefundMoved::Corrected => Some((Entry::refund_corrected(id(1), &refund), EventType::RefundCompleted)),
        };
        let has_ended = outcome.is_some();
        if let Some((entry, event)) = outcome {
            self.books.post(&entry);
            row.told.tell(event, refund.next_sequence());
        }
        match refund.step() {
            Step::Settled if moved == RefundMoved::Nowhere => {}
            Step::Settled => row.ask = None,
            Step::Sending | Step::Waiting | Step::Unknown => jobs::schedule(&mut row.ask),
        }
        if moved != RefundMoved::Nowhere {
            row.refund = keep(refund);
        }
        if has_ended {
            self.save(transaction);
        }
    }
}
