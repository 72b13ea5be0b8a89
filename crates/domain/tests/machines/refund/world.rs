//! All that there is at one moment: rows, jobs, who is at work, what is under way between us and the rail.

use domain::ledger::Entry;
use domain::payment::{Payable, Payer, PaymentSession, Recording, Transaction};
use domain::rail::{Called, FailureReason, NextAction, RefundReport, Report, Started};
use domain::refund::Refund;
use domain::{Method, Money, OfflineMethod};

use super::Bounds;
use crate::books::{Books, Told};
use crate::jobs::Job;
use crate::kept::Kept;
use crate::sample::{SECOND_US, at, dalasi, id, scope};

pub(crate) const TOTAL: i64 = 10_000;
pub(crate) const PART: i64 = 5_000;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) transaction: Kept<Transaction>,
    /// The merchant's request has read the payment and is about to write. Without its guard only.
    pub(crate) merchant_read: Option<Kept<Transaction>>,
    pub(crate) refunds: Vec<Row>,
    pub(crate) runs: Vec<Run>,
    /// Reports under way from the rail. What stays here for ever is lost.
    pub(crate) callbacks: Vec<(usize, Word)>,
    /// Calls whose caller has given them up or died. What stays here for ever is lost.
    pub(crate) late_calls: Vec<usize>,
    pub(crate) books: Books,
    pub(crate) faults_left: u8,
    /// A rule of the domain, or an edge that no table has.
    pub(crate) broken: Option<String>,
}

/// A refund with the work that is owed for it, and what the rail has under its reference.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) refund: Kept<Refund>,
    pub(crate) send: Option<Job>,
    pub(crate) ask: Option<Job>,
    pub(crate) order: Order,
    /// How many orders were taken under the reference.
    pub(crate) taken: u8,
    pub(crate) told: Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    Unknown,
    Refused,
    Open,
    /// `corrected`: it had said that it failed.
    Done {
        corrected: bool,
    },
    Failed,
}

/// What the rail says of an order, by callback or when asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Word {
    NotFound,
    Open,
    Done,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Work {
    Send,
    Ask,
}

/// A process at work for one refund, between its transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Run {
    pub(crate) place: usize,
    pub(crate) work: Work,
    /// Nobody has claimed the job since.
    pub(crate) holds: bool,
    pub(crate) phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// About to ask, and to call once more if the rail knows nothing.
    Asks,
    /// `is_rerun`: somebody was here before, so a no says nothing.
    Calls {
        is_rerun: bool,
    },
    Has(Brought),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Brought {
    Nothing,
    Refused,
    Lost,
    Said(Word),
}

impl World {
    /// A rail that knows the second call for the first.
    pub(crate) fn of_wave(bounds: &Bounds) -> Self {
        Self::paid_online(Method::Wave, false, bounds)
    }

    /// A rail that would take it for another.
    pub(crate) fn of_afrimoney(bounds: &Bounds) -> Self {
        Self::paid_online(Method::Afrimoney, false, bounds)
    }

    /// Money that came twice.
    pub(crate) fn of_second_money(bounds: &Bounds) -> Self {
        Self::paid_online(Method::Wave, true, bounds)
    }

    /// Money that no rail ever had.
    pub(crate) fn of_cash(bounds: &Bounds) -> Self {
        let recording = Recording { method: OfflineMethod::Cash, reference: None, recorded_by: None };
        let payable = Payable::Invoice(id(1));
        let transaction =
            Transaction::recorded(id(1), scope(), payable, recording, dalasi(TOTAL), Payer::default(), at(0));
        let entry = Entry::offline_recorded(id(1), &transaction);
        Self::new(transaction, &entry, bounds)
    }

    fn paid_online(method: Method, is_second: bool, bounds: &Bounds) -> Self {
        let (now, amount) = (at(0), dalasi(TOTAL));
        let payable = Payable::Checkout(id(1));
        let until = at(SECOND_US);
        let mut session =
            PaymentSession::open(id(1), scope(), payable, amount, Some(method), Payer::default(), until, now);
        let mut transaction = session.begin(id(1), method, "rail".into(), dalasi(200), now);
        let next_action = NextAction::ConfirmDone {};
        session.started(&mut transaction, Called::Answered(Started { next_action, rail_reference: None }), now);
        session.reported(&mut transaction, &Report::Paid { amount, rail_reference: "R".into() }, now);
        transaction.duplicate = is_second;
        let entry = match is_second {
            true => Entry::second_money(id(1), &transaction),
            false => Entry::payment_completed(id(1), &transaction),
        };
        Self::new(transaction, &entry, bounds)
    }

    fn new(mut transaction: Transaction, entry: &Entry, bounds: &Bounds) -> Self {
        let mut books = Books::default();
        books.post(entry);
        transaction.transitions.clear();
        Self {
            transaction: Kept::new(transaction),
            merchant_read: None,
            refunds: Vec::new(),
            runs: Vec::new(),
            callbacks: Vec::new(),
            late_calls: Vec::new(),
            books,
            faults_left: bounds.faults,
            broken: None,
        }
    }

    pub(super) fn is_idempotent(&self) -> bool {
        self.transaction.attempt().method == Method::Wave
    }
    pub(super) fn save(&mut self, mut transaction: Transaction) {
        // What it was before decides nothing.
        transaction.transitions.clear();
        self.transaction = Kept::new(transaction);
    }

    pub(crate) fn job(&mut self, place: usize, work: Work) -> &mut Option<Job> {
        let row = &mut self.refunds[place];
        match work {
            Work::Send => &mut row.send,
            Work::Ask => &mut row.ask,
        }
    }

    pub(crate) fn has_holder(&self, place: usize, work: Work) -> bool {
        self.runs.iter().any(|run| run.holds && run.place == place && run.work == work)
    }

    /// A call arrives that pays back; whether it is taken.
    pub(crate) fn call_arrives(&mut self, place: usize) {
        let is_idempotent = self.is_idempotent();
        let row = &mut self.refunds[place];
        match row.order {
            Order::Refused => {}
            Order::Unknown => (row.order, row.taken) = (Order::Open, 1),
            Order::Open | Order::Done { .. } | Order::Failed if is_idempotent => {}
            Order::Open | Order::Done { .. } | Order::Failed => row.taken += 1,
        }
    }
}

/// What it was before decides nothing.
pub(super) fn keep(mut refund: Refund) -> Kept<Refund> {
    refund.moves.clear();
    Kept::new(refund)
}

impl Order {
    pub(crate) fn word(self) -> Word {
        match self {
            Order::Unknown | Order::Refused => Word::NotFound,
            Order::Open => Word::Open,
            Order::Done { .. } => Word::Done,
            Order::Failed => Word::Failed,
        }
    }
}

impl Word {
    pub(super) fn report(self, amount: Money) -> RefundReport {
        let rail_reference = Some("R".into());
        match self {
            Word::NotFound => RefundReport::NotFound,
            Word::Open => RefundReport::Processing { rail_reference },
            Word::Done => RefundReport::Completed { amount, rail_reference },
            Word::Failed => RefundReport::Failed { reason: FailureReason::Declined },
        }
    }
}
