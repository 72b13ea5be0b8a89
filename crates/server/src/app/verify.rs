//! Whether what is stored can be what this program wrote: the ledger against the payments, the payments against what is
//! paid, states against the moves that lead to them, events without a gap.
//!
//! It reads page by page and changes nothing: all of it in one snapshot, or a few steps in each of many, so that no snapshot
//! is held for long. A fault names its row. What is altered together with everything that could tell (a fresh checkout's amount in column
//! and document, say) it can't see.

mod attempts;
mod checkouts;
mod events;
mod invoice_attempts;
mod invoices;
mod ledger;
mod logs;
mod payment_links;
mod payments;
mod refunds;
mod rest;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::api_key::ApiKey;
use domain::checkout::Checkout;
use domain::customer::Customer;
use domain::invoice::{Invoice, InvoicePayment};
use domain::organization::Organization;
use domain::payment::{PaymentSession, Transaction};
use domain::payment_link::PaymentLink;
use domain::product::Product;
use domain::receipt::Receipt;
use domain::refund::Refund;
use domain::simulator::{SimulatedPayment, SimulatedRefund};
use domain::webhook::WebhookEndpoint;
use domain::{Object, Scope};
use serde::Serialize;
use store::queries::organizations;
use store::queries::verify::{self as stored, Stored, strays};
use store::{Entity, Error, SqlKind, Tx};

use crate::error::Failure;
use crate::monotonic;

/// More than these are counted and not kept.
const MOST_FAULTS: usize = 1000;
/// The check of the file ends when it has found so many.
const MOST_IN_FILE: u32 = 100;

/// Something that can't be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub table: &'static str,
    pub row: String,
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.table, self.row, self.what)
    }
}

/// Why somebody's money is in doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InDoubt {
    pub faults: u64,
    /// The first of them.
    pub first: String,
}

/// What was looked at, and what was wrong.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Rows by table.
    pub checked: BTreeMap<&'static str, u64>,
    /// The sum of all postings by mode and currency: zero.
    pub ledger: BTreeMap<String, i128>,
    pub faults: Vec<Fault>,
    /// All of them, those that were not kept included.
    pub fault_count: u64,
    /// Whose money the faults put in doubt; nobody's, where nobody knows whose it is.
    #[serde(skip)]
    doubts: BTreeMap<Option<Scope>, InDoubt>,
    /// Whose parts were all walked over; nobody's, unless what belongs to nobody could not be looked at.
    #[serde(skip)]
    walked: BTreeSet<Option<Scope>>,
    /// Whose rows are looked at.
    #[serde(skip)]
    scope: Option<Scope>,
    #[serde(skip)]
    progress: Progress,
}

/// Where a fault means that more may go out than came in.
const OF_MONEY: [&str; 7] =
    ["ledger_postings", "ledger_unsealed", "ledger_log", "ledger_batches", "balance_guards", "transactions", "refunds"];

/// How many rows were looked at so far, for somebody who waits; and a way to stop looking.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Looked>);

#[derive(Debug, Default)]
struct Looked {
    rows: AtomicU64,
    is_stopped: AtomicBool,
}

impl Progress {
    pub fn rows(&self) -> u64 {
        self.0.rows.load(Ordering::Relaxed)
    }

    /// The check ends with a failure at its next page.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }

    fn goes_on(&self) -> Result<(), Failure> {
        match self.0.is_stopped.load(Ordering::Relaxed) {
            true => Err(Error::Unavailable("the check was stopped".into()).into()),
            false => Ok(()),
        }
    }
}

impl Report {
    pub fn is_clean(&self) -> bool {
        self.fault_count == 0
    }

    /// How many faults were counted and not kept.
    pub fn unnamed(&self) -> Option<u64> {
        let named = u64::try_from(self.faults.len()).unwrap_or(u64::MAX);
        Some(self.fault_count.saturating_sub(named)).filter(|unnamed| *unnamed > 0)
    }

    /// Whose money the faults put in doubt, and by which. Where nobody knows whose it is, it may be anybody's.
    pub fn doubts(&self) -> &BTreeMap<Option<Scope>, InDoubt> {
        &self.doubts
    }

    /// Whether all of theirs was looked at, to the end of the check, and no fault seen in their money.
    pub fn clears(&self, whose: Option<Scope>) -> bool {
        self.walked.contains(&whose) && !self.doubts.contains_key(&whose)
    }

    fn fault(&mut self, table: &'static str, row: impl Into<String>, what: impl Into<String>) {
        let fault = Fault { table, row: row.into(), what: what.into() };
        self.fault_count += 1;
        if OF_MONEY.contains(&table) {
            let first = || InDoubt { faults: 0, first: fault.to_string() };
            self.doubts.entry(self.scope).or_insert_with(first).faults += 1;
        }
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault);
        }
    }

    /// A fault unless `holds`.
    fn expect(&mut self, holds: bool, table: &'static str, row: &str, what: impl FnOnce() -> String) {
        if !holds {
            self.fault(table, row, what());
        }
    }

    fn count(&mut self, table: &'static str, rows: usize) {
        let rows = u64::try_from(rows).unwrap_or(u64::MAX);
        *self.checked.entry(table).or_default() += rows;
        self.progress.0.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// The documents that can be read; those that can't, and columns that differ from theirs, are faults.
    fn readable<E: Entity>(&mut self, rows: Vec<Stored<E>>) -> Vec<E> {
        self.count(E::TABLE, rows.len());
        let mut readable = Vec::with_capacity(rows.len());
        for Stored { id, entity, differing } in rows {
            for column in differing {
                self.fault(E::TABLE, id.as_str(), format!("the column {column} differs from the document"));
            }
            match entity {
                Ok(entity) => readable.push(entity),
                Err(why) => self.fault(E::TABLE, id, why),
            }
        }
        readable
    }
}

/// What is wrong with the file that the books are in, where that is ours (see [`Tx::integrity_check`]), which [`Progress::stop`] does
/// not end.
pub fn file(tx: &mut Tx<'_>, mut report: Report) -> Result<Report, Failure> {
    for what in tx.integrity_check(MOST_IN_FILE)? {
        report.fault("database", "file", what);
    }
    Ok(report)
}

/// Everything of every organization in both modes, in one snapshot.
pub fn everything(tx: &mut Tx<'_>, progress: &Progress) -> Result<Report, Failure> {
    let mut check = Check::new(progress);
    while !check.is_done() {
        check.step(tx)?;
    }
    Ok(check.into_report())
}

/// A check of everything, and how far it has come.
#[derive(Debug, Clone)]
pub struct Check {
    report: Report,
    stage: Stage,
    place: Place,
    /// Of the scopes that are walked: of which a part could not be read.
    unread: BTreeSet<Scope>,
}

#[derive(Debug, Clone)]
enum Stage {
    Scopes,
    /// The first of these scopes, and the number of its part.
    Part(Vec<Scope>, usize),
    /// The number of the look for them.
    Strays(usize),
    IdempotencyKeys,
    Jobs,
    Done,
}

/// Walks over a part of what a scope has: a page, or all of it where a few short questions tell.
type Part = fn(&mut Tx<'_>, Scope, &mut Report, &mut Place) -> Result<(), Failure>;

/// Each with the table that it walks over.
const PARTS: [(&str, Part); 21] = [
    (Organization::TABLE, rest::walk::<Organization>),
    (ApiKey::TABLE, rest::walk::<ApiKey>),
    (WebhookEndpoint::TABLE, rest::walk::<WebhookEndpoint>),
    (Customer::TABLE, rest::walk::<Customer>),
    (Product::TABLE, rest::walk::<Product>),
    (SimulatedPayment::TABLE, rest::walk::<SimulatedPayment>),
    (SimulatedRefund::TABLE, rest::walk::<SimulatedRefund>),
    (Checkout::TABLE, checkouts::check),
    (Invoice::TABLE, invoices::check),
    (InvoicePayment::TABLE, invoices::payments),
    (Receipt::TABLE, invoices::receipts),
    (PaymentLink::TABLE, payment_links::check),
    (PaymentSession::TABLE, payments::sessions),
    (Transaction::TABLE, payments::transactions),
    (Refund::TABLE, refunds::check),
    ("ledger_batches", ledger::seals),
    ("ledger_log", logs::ledger),
    ("ledger_postings", ledger::placed),
    // Those that wait.
    ("ledger_postings", ledger::waiting),
    ("events", |tx, scope, report, place| place.end_with(events_of_others(tx, scope, report))),
    ("event_log", logs::events),
];

impl Check {
    pub fn new(progress: &Progress) -> Self {
        let report = Report { progress: progress.clone(), walked: BTreeSet::from([None]), ..Report::default() };
        Self { report, stage: Stage::Scopes, place: Place::default(), unread: BTreeSet::new() }
    }

    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// What it has found so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    pub fn into_report(self) -> Report {
        self.report
    }

    /// Goes further for so long, and at least a little.
    pub fn steps(&mut self, tx: &mut Tx<'_>, time: Duration) -> Result<(), Failure> {
        let begun = monotonic::now();
        while !self.is_done() {
            self.step(tx)?;
            if begun.elapsed() >= time {
                break;
            }
        }
        Ok(())
    }

    /// Goes a little further. What it looks at together it looks at in this transaction.
    pub fn step(&mut self, tx: &mut Tx<'_>) -> Result<(), Failure> {
        stored::take_time(tx);
        self.report.progress.goes_on()?;
        // Whatever somebody made of a row, or a disk of a page, ends neither this check nor all that follow it.
        let looked = tx.savepoint(|tx| {
            let looked = catch_unwind(AssertUnwindSafe(|| self.look(tx)));
            looked.unwrap_or_else(|_| Err(Error::Panic("it makes this program panic".into()).into()))
        });
        match looked {
            Ok(()) => {}
            Err(Failure::Store(
                Error::Corrupt(why) | Error::Panic(why) | Error::Sql { kind: SqlKind::Type, message: why },
            )) if !tx.has_failed() => self.unreadable(&why),
            Err(failure) => return Err(failure),
        }
        self.go_on();
        Ok(())
    }

    /// Leaves out what the next step would look at, which nobody can read.
    pub fn pass_over(&mut self, why: &str) {
        self.unreadable(why);
        self.go_on();
    }

    fn look(&mut self, tx: &mut Tx<'_>) -> Result<(), Failure> {
        let report = &mut self.report;
        match &mut self.stage {
            Stage::Scopes => {
                let mut scopes = Vec::new();
                for found in organizations::scopes_as_found(tx)? {
                    match found {
                        Ok(scope) => scopes.push(scope),
                        Err((row, why)) => report.fault(Organization::TABLE, row, why.to_string()),
                    }
                }
                self.stage = Stage::Part(scopes, 0);
            }
            Stage::Part(scopes, part) => {
                report.scope = scopes.last().copied();
                match report.scope {
                    Some(scope) => PARTS[*part].1(tx, scope, report, &mut self.place)?,
                    None => self.stage = Stage::Strays(0),
                }
            }
            Stage::Strays(look) => {
                for stray in strays::find(tx, *look, &mut self.place.strays)? {
                    report.fault(stray.table, stray.row, stray.what);
                }
                self.place.is_end = self.place.strays.is_end;
            }
            Stage::IdempotencyKeys => rest::idempotency_keys(tx, report, &mut self.place)?,
            Stage::Jobs => rest::jobs(tx, report, &mut self.place)?,
            Stage::Done => {}
        }
        Ok(())
    }

    /// A row of the page that begins here can't be looked at, and neither can what is added up over it.
    fn unreadable(&mut self, why: &str) {
        let table = match &self.stage {
            Stage::Scopes => {
                self.stage = Stage::Part(Vec::new(), 0);
                Organization::TABLE
            }
            Stage::Part(scopes, part) => {
                self.unread.extend(scopes.last().copied());
                PARTS[*part].0
            }
            Stage::Strays(look) => {
                self.report.walked.remove(&None);
                strays::table(*look)
            }
            Stage::IdempotencyKeys => "idempotency_keys",
            Stage::Jobs | Stage::Done => "jobs",
        };
        let after = &self.place.after.0;
        let row = if after.is_empty() { "?".to_owned() } else { format!("behind {after}") };
        self.report.fault(table, row, format!("it can't be read, and the rest of the table was not looked at: {why}"));
        self.place.is_end = true;
    }

    /// To the next part, where one is at its end.
    fn go_on(&mut self) {
        if !std::mem::take(&mut self.place.is_end) {
            return;
        }
        self.place = Place::default();
        match &mut self.stage {
            Stage::Part(scopes, part) if *part + 1 == PARTS.len() => {
                *part = 0;
                // A fault that was seen before may stand in what can't be read now.
                let walked = scopes.pop().filter(|scope| !self.unread.remove(scope));
                self.report.walked.extend(walked.map(Some));
                self.report.scope = None;
            }
            Stage::Part(_, part) => *part += 1,
            Stage::Strays(look) if *look + 1 == strays::LOOKS => self.stage = Stage::IdempotencyKeys,
            Stage::Strays(look) => *look += 1,
            Stage::IdempotencyKeys => self.stage = Stage::Jobs,
            Stage::Jobs => {
                balance(&mut self.report);
                self.stage = Stage::Done;
            }
            Stage::Scopes | Stage::Done => {}
        }
    }
}

/// Each entry has been looked at and named whose it is, so that nobody else's money is in doubt.
fn balance(report: &mut Report) {
    let doubts = report.doubts.clone();
    let sums: Vec<(String, i128)> = report.ledger.iter().map(|(of, sum)| (of.clone(), *sum)).collect();
    for (of, sum) in sums {
        report.expect(sum == 0, "ledger_postings", &of, || format!("the postings sum to {sum} and not to zero"));
    }
    report.doubts = doubts;
}

/// Of whose events each is looked at together with its object, in the order of their ids.
fn who_tell() -> [Ends; 5] {
    let mut ends = [
        Ends::of::<Checkout>(),
        Ends::of::<Invoice>(),
        Ends::of::<PaymentLink>(),
        Ends::of::<PaymentSession>(),
        Ends::of::<Refund>(),
    ];
    ends.sort_by(|one, other| one.first.cmp(&other.first));
    ends
}

/// Before the ids of those, between them and behind them there is nothing to tell of.
fn events_of_others(tx: &mut Tx<'_>, scope: Scope, report: &mut Report) -> Result<(), Failure> {
    let who_tell = who_tell();
    let mut after = None;
    for ends in who_tell.iter().map(Some).chain([None]) {
        let until = ends.map(|ends| ends.first.as_str());
        for event in stored::events_within(tx, scope, after, until)? {
            report.fault("events", event, "it tells of nothing that tells");
        }
        after = ends.map(|ends| ends.last.as_str());
    }
    Ok(())
}

/// Where the ids of one kind's objects begin and end. What names objects of several kinds is walked by each of them within
/// these.
struct Ends {
    first: String,
    last: String,
}

impl Ends {
    fn of<O: Object>() -> Self {
        // An id goes on with a letter or a digit.
        Self { first: format!("{}_", O::PREFIX), last: format!("{}_~", O::PREFIX) }
    }

    fn cut<'a>(&'a self, span: stored::Span<'a>) -> stored::Span<'a> {
        let after = if span.after.is_empty() { &self.first } else { span.after };
        stored::Span { after, until: Some(span.until.unwrap_or(&self.last)) }
    }
}

/// Where the next page of a table begins, and what its pages so far come to. Between two pages the service may have gone on,
/// so a sum over all of them is held against what was said of it before the first and after the last.
#[derive(Debug, Clone, Default)]
struct Place {
    after: (String, String),
    keys: stored::KeyPlace,
    strays: strays::Place,
    is_end: bool,
    numbers: Option<invoices::Numbers>,
    debits: Option<refunds::Debits>,
    seals: Option<ledger::Seals>,
    places: logs::Places,
}

impl Place {
    fn end_with<T>(&mut self, result: T) -> T {
        self.is_end = true;
        result
    }

    /// Behind the last row of a page, unless there are no more.
    fn go_on_behind(&mut self, last: Option<String>) {
        match last {
            Some(last) => self.after.0 = last,
            None => self.is_end = true,
        }
    }
}

/// Looks at a page of the documents of one kind; `each` gets them and the span of ids that they cover. The last span has no
/// end, so that what lies behind the last document is covered too.
fn page<E: Entity>(
    tx: &mut Tx<'_>,
    scope: Scope,
    report: &mut Report,
    place: &mut Place,
    each: impl FnOnce(&mut Tx<'_>, &mut Report, Vec<E>, stored::Span<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let after = &mut place.after.0;
    let (rows, may_have_more) = stored::documents::<E>(tx, scope, after)?;
    let last = may_have_more.then(|| rows.last().map(|row| row.id.clone())).flatten();
    let readable = report.readable(rows);
    each(tx, report, readable, stored::Span { after, until: last.as_deref() })?;
    match last {
        Some(last) => *after = last,
        None => place.is_end = true,
    }
    Ok(())
}
