//! All that there is at one moment: rows, jobs, who is at work, what is under way between us and the rail.

use domain::checkout::{self, Checkout};
use domain::invoice::{Bill, BillTo, Invoice};
use domain::payment::{PaymentSession, Step, Transaction};
use domain::{Metadata, Method, TaxRate, Timestamp, checkout::Item, invoice};

use super::Bounds;
use super::object::Stored;
use super::rail::{Order, Word};
use crate::books::{Books, Told};
use crate::guard::Guard;
use crate::jobs::Job;
use crate::kept::Kept;
use crate::sample::{SECOND_US, at, dalasi, id, scope};

pub(crate) const TOTAL: i64 = 10_000;
pub(crate) const PART: i64 = 5_000;
const CHECKOUT_OPEN_S: u32 = 600;
const OPEN_US: i64 = 600 * SECOND_US;
const DAY_US: i64 = 86_400 * SECOND_US;
const DUE_US: i64 = 10 * DAY_US;
/// The last moment in which a checkout can be paid, the first in which it can't, and when what held it open is over.
pub(crate) const CHECKOUT_TIMES: &[i64] = &[OPEN_US - 1, OPEN_US, OPEN_US + DAY_US];
/// An invoice can be paid; a session that was opened then is over, and so is its own time.
pub(crate) const INVOICE_TIMES: &[i64] = &[DUE_US - DAY_US, DUE_US];

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The times that matter, and which of them is the present.
    times: &'static [i64],
    pub(crate) clock: usize,
    pub(crate) object: Stored,
    /// When the object's own timer is due.
    pub(crate) timer: Option<Timestamp>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) runs: Vec<Run>,
    /// Reports under way from the rail. What stays here for ever is lost.
    pub(crate) callbacks: Vec<(usize, Word)>,
    /// Calls that start an attempt and whose caller has given them up or died. What stays here for ever is lost.
    pub(crate) late_calls: Vec<usize>,
    /// The merchant's program has read the invoice and is about to write it. Without its guard only.
    pub(crate) merchant_read: Option<Stored>,
    pub(crate) books: Books,
    pub(crate) told: Told,
    /// What can still go wrong.
    pub(crate) faults_left: u8,
    /// A rule of the domain, or an edge that no table has.
    pub(crate) broken: Option<String>,
}

/// A session with its one attempt, the work that is owed for it, and what the rail has under its reference.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Attempt {
    pub(crate) session: Kept<PaymentSession>,
    pub(crate) transaction: Kept<Transaction>,
    pub(crate) start: Option<Job>,
    pub(crate) ask: Option<Job>,
    pub(crate) withdraw: Option<Job>,
    pub(crate) has_timer: bool,
    pub(crate) order: Order,
    pub(crate) posted: u8,
    pub(crate) told_paid: u8,
    pub(crate) told_failed: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Work {
    Start,
    Ask,
    Withdraw,
}

/// A process at work for one attempt, between its transactions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) attempt: usize,
    pub(crate) work: Work,
    /// Nobody has claimed the job since.
    pub(crate) holds: bool,
    pub(crate) phase: Phase,
    /// The rows as they were read before the call. Without the guard only.
    pub(crate) read: Option<(Stored, Kept<PaymentSession>, Kept<Transaction>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// About to call the rail.
    Calls(Call),
    /// About to commit what came of it.
    Has(Brought),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Call {
    /// `is_repeated`: there was a call before it, of which nothing is known.
    Start {
        is_repeated: bool,
    },
    Query {
        may_repeat: bool,
    },
    Withdraw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Brought {
    Nothing,
    Started,
    Refused,
    Lost,
    Said(Word),
}

impl World {
    pub(crate) fn with_checkout(bounds: &Bounds) -> Self {
        let order = checkout::Order {
            amount: dalasi(TOTAL),
            items: None,
            available_methods: Method::ALL.to_vec(),
            automatic_payment_methods: true,
            fixed_method: None,
            customer: checkout::Customer::default(),
            description: None,
            reference: None,
            metadata: Metadata::default(),
            success_url: None,
            failure_url: None,
        };
        let checkout = Checkout::create(id(1), scope(), order, "digest".into(), CHECKOUT_OPEN_S, at(0));
        let timer = Some(checkout.next_deadline());
        Self { timer, ..Self::new(Stored::Checkout(Kept::new(checkout)), bounds) }
    }

    pub(crate) fn with_draft(bounds: &Bounds) -> Self {
        Self::new(Stored::Invoice(Kept::new(draft())), bounds)
    }

    pub(crate) fn with_invoice(bounds: &Bounds) -> Self {
        let mut world = Self::with_draft(bounds);
        world.change(|invoice, now| invoice.finalize(now).ok()).expect("a draft is finalized");
        world
    }
    fn new(object: Stored, bounds: &Bounds) -> Self {
        Self {
            times: bounds.times,
            clock: 0,
            object,
            timer: None,
            attempts: Vec::new(),
            runs: Vec::new(),
            callbacks: Vec::new(),
            late_calls: Vec::new(),
            merchant_read: None,
            books: Books::default(),
            told: Told::default(),
            faults_left: bounds.faults,
            broken: None,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        at(self.times[self.clock])
    }

    pub(crate) fn has_later(&self) -> bool {
        self.clock + 1 < self.times.len()
    }

    pub(crate) fn job(&mut self, attempt: usize, work: Work) -> &mut Option<Job> {
        let attempt = &mut self.attempts[attempt];
        match work {
            Work::Start => &mut attempt.start,
            Work::Ask => &mut attempt.ask,
            Work::Withdraw => &mut attempt.withdraw,
        }
    }

    pub(crate) fn has_holder(&self, attempt: usize, work: Work) -> bool {
        self.runs.iter().any(|run| run.holds && run.attempt == attempt && run.work == work)
    }

    /// A run of this work begins; whoever did it before has lost the claim.
    pub(crate) fn begin_run(&mut self, attempt: usize, work: Work, phase: Phase, without: Option<Guard>) {
        let others = self.runs.iter_mut().filter(|run| run.attempt == attempt && run.work == work);
        others.for_each(|run| run.holds = false);
        let rows = &self.attempts[attempt];
        let read = (without == Some(Guard::FreshRows))
            .then(|| (self.object.clone(), rows.session.clone(), rows.transaction.clone()));
        self.runs.push(Run { attempt, work, holds: true, phase, read });
    }

    /// The order in which processes began says nothing, and a claim's time nothing where nobody has the claim.
    pub(crate) fn sort(&mut self) {
        for place in 0..self.attempts.len() {
            for work in [Work::Start, Work::Ask, Work::Withdraw] {
                if !self.has_holder(place, work)
                    && let Some(job) = self.job(place, work)
                {
                    job.was_moved = true;
                }
            }
        }
        self.runs.sort_by_key(|run| (run.attempt, run.work, run.holds, run.phase));
        self.callbacks.sort_unstable();
        self.late_calls.sort_unstable();
    }
}

impl Attempt {
    pub(crate) fn method(&self) -> Method {
        self.transaction.attempt().method
    }

    pub(crate) fn save(&mut self, session: PaymentSession, mut transaction: Transaction) {
        // What it was before decides nothing.
        transaction.transitions.clear();
        (self.session, self.transaction) = (Kept::new(session), Kept::new(transaction));
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.transaction.step() == Step::Settled
    }
}

fn draft() -> Invoice {
    let item = Item::new(Some("Rice".into()), 1, dalasi(TOTAL)).expect("a sample fits");
    let tax_rate = TaxRate::parse("0").expect("a sample is right");
    let order = invoice::Order {
        customer_id: id(1),
        customer: BillTo::default(),
        bill: Bill::new(vec![item], tax_rate).expect("a sample fits"),
        due_date: at(DUE_US),
        notes: String::new(),
        metadata: Metadata::default(),
        subscription_id: None,
    };
    Invoice::create(id(1), scope(), "INV-1".into(), order, at(0))
}
