//! Invoices: sums that agree, numbers without a gap, and one payment with one receipt for each transaction that paid.

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::customer::Customer;
use domain::invoice::{Invoice, InvoicePayment, Status};
use domain::number::Series;
use domain::payment::{PaymentSession, Transaction, TransactionStatus};
use domain::receipt::Receipt;
use domain::{Scope, Timestamp};
use store::queries::counters;
use store::queries::verify::{self as stored, Span};
use store::{Entity, Tx};

use super::payments::by_id;
use super::{Ends, Place, Report, invoice_attempts, page};
use crate::error::Failure;

const TABLE: &str = Invoice::TABLE;
const PAYMENTS: &str = InvoicePayment::TABLE;
const RECEIPTS: &str = Receipt::TABLE;
const COUNTERS: &str = "counters";

pub(super) fn check(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    let mut numbers = Numbers::of_walk(tx, scope, Series::Invoice, place)?;
    let ends = Ends::of::<Invoice>();
    page::<Invoice>(tx, scope, report, place, |tx, report, invoices, span| {
        let span = ends.cut(span);
        let customers: Vec<String> = invoices.iter().map(|invoice| invoice.customer_id.to_string()).collect();
        let customers = by_id::<Customer>(tx, scope, &customers)?;
        let sessions = invoices.iter().filter_map(|invoice| invoice.payment_session);
        let sessions = by_id::<PaymentSession>(tx, scope, &sessions.map(|id| id.to_string()).collect::<Vec<_>>())?;
        let pending = invoices.iter().filter(|invoice| invoice.stored_status() == Status::Pending);
        let pending: Vec<String> = pending.map(|invoice| invoice.id.to_string()).collect();
        let owed: HashSet<String> = stored::owed(tx, scope, &["overdue_invoice"], &pending)?.into_iter().collect();
        let mut payments = payments_of(tx, scope, span)?;
        let mut transactions = transactions_of(tx, scope, span)?;
        for invoice in &invoices {
            let id = invoice.id.to_string();
            numbers.add(report, TABLE, &id, &invoice.number, invoice.created_at);
            report.expect(customers.contains_key(&invoice.customer_id.to_string()), TABLE, &id, || {
                format!("its customer {} is not there", invoice.customer_id)
            });
            if let Some(named) = invoice.payment_session {
                let session = sessions.get(&named.to_string());
                let is_its_own = session.is_some_and(|session| session.payable.object_id() == id);
                report.expect(is_its_own, TABLE, &id, || format!("{named} is no session of it"));
            }
            report.expect(invoice.stored_status() != Status::Pending || owed.contains(&id), TABLE, &id, || {
                "it is pending and no timer will find it overdue".into()
            });
            let payments = payments.remove(&id).unwrap_or_default();
            paid(report, invoice, &payments, &transactions.remove(&id).unwrap_or_default());
        }
        for (id, orphans) in payments {
            let what = format!("it is for {id}, of which nothing can be read");
            orphans.iter().for_each(|payment| report.fault(PAYMENTS, payment.id.to_string(), what.as_str()));
        }
        for (id, orphans) in transactions {
            let what = format!("it pays {id}, of which nothing can be read");
            orphans.iter().for_each(|paid| report.fault(Transaction::TABLE, paid.id.to_string(), what.as_str()));
        }
        invoice_attempts::check(tx, scope, span, report, &invoices)
    })?;
    numbers.go_on(tx, scope, report, place)
}

/// What came in adds up to what is shown, and the amounts are those of the lines (which the document is read by).
fn paid(report: &mut Report, invoice: &Invoice, payments: &[InvoicePayment], transactions: &[Transaction]) {
    let id = invoice.id.to_string();
    let (total, paid) = (invoice.total().minor, invoice.paid().minor);
    let status = invoice.stored_status();
    let fits = match status {
        Status::Draft | Status::Pending | Status::Overdue | Status::Cancelled => paid == 0,
        Status::PartiallyPaid => 0 < paid && paid < total,
        Status::Paid => paid == total,
    };
    report.expect(fits && invoice.adds_up(), TABLE, &id, || {
        format!("it is {} with {paid} of {total} paid", status.as_str())
    });
    let sum: i128 = payments.iter().map(|payment| i128::from(payment.amount.minor)).sum();
    report.expect(sum == i128::from(paid), TABLE, &id, || format!("{paid} is paid and its payments are {sum}"));
    let shown: HashSet<_> = invoice.receipts().iter().map(|receipt| (receipt.id, receipt.amount)).collect();
    let issued: HashSet<_> = payments.iter().map(|payment| (payment.receipt, payment.amount)).collect();
    report.expect(shown == issued && invoice.receipts().len() == payments.len(), TABLE, &id, || {
        "its receipts are not those of its payments".into()
    });
    // Money that counted, in whichever way it came, and no other.
    let counted = transactions.iter().filter(|paid| counts(paid)).map(|paid| paid.id);
    let (counted, known): (HashSet<_>, HashSet<_>) =
        (counted.collect(), payments.iter().map(|payment| payment.transaction).collect());
    report.expect(counted == known, TABLE, &id, || "its payments are not the transactions that paid it".into());
    let late = transactions.iter().any(|transaction| transaction.late);
    report.expect(!late || status == Status::Cancelled, TABLE, &id, || {
        format!("it is {} and got late money", status.as_str())
    });
}

fn counts(transaction: &Transaction) -> bool {
    transaction.reached(TransactionStatus::Completed).is_some() && !transaction.late && !transaction.duplicate
}

/// Each is the other side of a transaction and of a receipt.
pub(super) fn payments(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    page::<InvoicePayment>(tx, scope, report, place, |tx, report, payments, _| {
        let ids: Vec<String> = payments.iter().map(|payment| payment.transaction.to_string()).collect();
        let transactions = by_id::<Transaction>(tx, scope, &ids)?;
        let ids: Vec<String> = payments.iter().map(|payment| payment.receipt.to_string()).collect();
        let receipts = by_id::<Receipt>(tx, scope, &ids)?;
        for payment in &payments {
            let id = payment.id.to_string();
            let is_paid = transactions.get(&payment.transaction.to_string()).is_some_and(|transaction| {
                transaction.amount == payment.amount
                    && transaction.method() == payment.method
                    && transaction.payable.object_id() == payment.invoice.to_string()
                    && counts(transaction)
            });
            report.expect(is_paid, PAYMENTS, &id, || format!("{} did not pay it", payment.transaction));
            let is_proved = receipts.get(&payment.receipt.to_string()).is_some_and(|receipt| {
                receipt.payment == payment.id && receipt.invoice == payment.invoice && receipt.amount == payment.amount
            });
            report.expect(is_proved, PAYMENTS, &id, || format!("{} is no receipt of it", payment.receipt));
        }
        Ok(())
    })
}

pub(super) fn receipts(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    let mut numbers = Numbers::of_walk(tx, scope, Series::Receipt, place)?;
    page::<Receipt>(tx, scope, report, place, |tx, report, receipts, _| {
        let ids: Vec<String> = receipts.iter().map(|receipt| receipt.payment.to_string()).collect();
        let payments = by_id::<InvoicePayment>(tx, scope, &ids)?;
        for receipt in &receipts {
            let id = receipt.id.to_string();
            numbers.add(report, RECEIPTS, &id, &receipt.number, receipt.created_at);
            let payment = payments.get(&receipt.payment.to_string());
            let is_its_own = payment.is_some_and(|payment| {
                payment.receipt == receipt.id
                    && payment.transaction == receipt.transaction
                    && payment.method == receipt.method
                    && payment.payment_date == receipt.payment_date
            });
            report.expect(is_its_own, RECEIPTS, &id, || format!("{} is no payment with it", receipt.payment));
        }
        Ok(())
    })?;
    numbers.go_on(tx, scope, report, place)
}

/// How many numbers a series has used in each period, and the highest. That no number is used twice, the tables promise: so
/// as many as the counter said before the first page, none above what it says after the last, are all of them.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    series: Series,
    /// Whoever took a number up to here had committed it together with the counter, before the first page.
    before: BTreeMap<counters::Name, i64>,
    used: BTreeMap<counters::Name, Used>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Used {
    numbers: i64,
    /// Of them, those that the counter had counted before the first page.
    before: i64,
    highest: i64,
}

impl Numbers {
    /// Of the pages so far.
    fn of_walk(tx: &mut Tx<'_>, scope: Scope, series: Series, place: &mut Place) -> Result<Self, Failure> {
        match place.numbers.take() {
            Some(numbers) => Ok(numbers),
            None => Ok(Self { series, before: counted(tx, scope, series)?, used: BTreeMap::new() }),
        }
    }

    fn add(&mut self, report: &mut Report, table: &'static str, id: &str, number: &str, created_at: Timestamp) {
        let period = self.series.period(created_at);
        let count = number.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let is_its_own = count > 0 && self.series.number(&period, count) == number;
        report.expect(is_its_own, table, id, || format!("{number:?} is no number of {period}"));
        let key = (self.series.as_str().to_owned(), period);
        let before = self.before.get(&key).copied().unwrap_or(0);
        let used = self.used.entry(key).or_default();
        used.numbers += 1;
        used.before += i64::from(count <= before);
        used.highest = used.highest.max(count);
    }

    /// To the next page, or to the end.
    fn go_on(self, tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
        if place.is_end {
            return self.compare(tx, scope, report);
        }
        place.numbers = Some(self);
        Ok(())
    }

    fn compare(&self, tx: &mut Tx<'_>, scope: Scope, report: &mut Report) -> Result<(), Failure> {
        let counted = counted(tx, scope, self.series)?;
        report.count(COUNTERS, counted.len());
        let keys = counted.keys().chain(self.before.keys()).chain(self.used.keys());
        for key @ (series, period) in keys.collect::<HashSet<_>>() {
            let [before, counted] = [&self.before, &counted].map(|counters| counters.get(key).copied().unwrap_or(0));
            let used = self.used.get(key).copied().unwrap_or_default();
            let Used { numbers, highest, .. } = used;
            let name = format!("{} {} {series} {period}", scope.organization, scope.mode);
            let are_all = used.before == before && (before..=counted).contains(&highest);
            report.expect(are_all, COUNTERS, &name, || {
                format!("it has counted to {counted}, and {numbers} numbers are used, up to {highest}")
            });
        }
        Ok(())
    }
}

/// The counters of a series; those of none are looked at with the receipts'.
fn counted(tx: &mut Tx<'_>, scope: Scope, series: Series) -> Result<BTreeMap<counters::Name, i64>, Failure> {
    let of = |name: &counters::Name| Series::parse(&name.0).unwrap_or(Series::Receipt);
    Ok(counters::all(tx, scope)?.into_iter().filter(|(name, _)| of(name) == series).collect())
}

/// By invoice, in the order in which they came. What can't be read is reported where its own table is walked.
fn payments_of(tx: &mut Tx<'_>, scope: Scope, span: Span<'_>) -> Result<HashMap<String, Vec<InvoicePayment>>, Failure> {
    let mut payments: HashMap<String, Vec<InvoicePayment>> = HashMap::new();
    let mut cursor = None;
    loop {
        for row in stored::documents_between::<InvoicePayment>(tx, scope, "invoice_id", span, &mut cursor)? {
            if let Ok(payment) = row.entity {
                payments.entry(payment.invoice.to_string()).or_default().push(payment);
            }
        }
        if cursor.is_none() {
            return Ok(payments);
        }
    }
}

fn transactions_of(
    tx: &mut Tx<'_>,
    scope: Scope,
    span: Span<'_>,
) -> Result<HashMap<String, Vec<Transaction>>, Failure> {
    let mut transactions: HashMap<String, Vec<Transaction>> = HashMap::new();
    let mut cursor = None;
    loop {
        for row in stored::documents_between::<Transaction>(tx, scope, "object_id", span, &mut cursor)? {
            if let Ok(transaction) = row.entity {
                transactions.entry(transaction.payable.object_id()).or_default().push(transaction);
            }
        }
        if cursor.is_none() {
            return Ok(transactions);
        }
    }
}
