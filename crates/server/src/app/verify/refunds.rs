//! Refunds: together at most what was paid, each with a legal past and somebody who asks for its outcome; and the guard of
//! each balance has counted every debit.

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::Scope;
use domain::ledger::{Account, Posting};
use domain::payment::{Step, Transaction};
use domain::refund::{Refund, RefundStatus, Source};
use store::queries::balances;
use store::queries::verify::{self as stored, Span};
use store::{Entity, Tx};

use super::events::Subject;
use super::payments::{Expected, by_id};
use super::{Ends, Place, Report, events, page};
use crate::error::Failure;

const TABLE: &str = Refund::TABLE;
const GUARDS: &str = "balance_guards";

/// How often each balance was debited.
#[derive(Debug, Clone)]
pub(super) struct Debits {
    /// What the guards had counted before the first page.
    before: BTreeMap<String, i64>,
    happened: BTreeMap<String, i64>,
}

pub(super) fn check(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    let ends = Ends::of::<Refund>();
    let mut debits = match place.debits.take() {
        Some(debits) => debits,
        None => Debits { before: guards(tx, scope)?, happened: BTreeMap::new() },
    };
    page::<Refund>(tx, scope, report, place, |tx, report, refunds, span| {
        let ids: HashSet<String> = refunds.iter().map(|refund| refund.transaction.to_string()).collect();
        let transactions = by_id::<Transaction>(tx, scope, &ids.into_iter().collect::<Vec<_>>())?;
        let open = refunds.iter().filter(|refund| refund.step() != Step::Settled);
        let open: Vec<String> = open.map(|refund| refund.id.to_string()).collect();
        let owed: HashSet<String> =
            stored::owed(tx, scope, &["send_refund", "ask_refund"], &open)?.into_iter().collect();
        for refund in &refunds {
            let id = refund.id.to_string();
            moves(report, refund);
            report.expect(refund.step() == Step::Settled || owed.contains(&id), TABLE, &id, || {
                "its outcome is open and nobody will ask for it".into()
            });
            match transactions.get(&refund.transaction.to_string()) {
                None => {
                    report.fault(TABLE, id.as_str(), format!("its transaction {} is not there", refund.transaction))
                }
                Some(transaction) => of_transaction(report, refund, transaction),
            }
            if matches!(refund.source, Source::Merchant { .. }) {
                let happened = debits.happened.entry(refund.amount.currency.code().into()).or_default();
                *happened += 1 + i64::from(is_corrected(refund));
            }
        }
        let subject = |refund| (Refund::id(refund).to_string(), Subject::Refund(refund));
        events::check(tx, scope, ends.cut(span), report, &refunds.iter().map(subject).collect())
    })?;
    if place.is_end {
        return debits.compare(tx, scope, report);
    }
    place.debits = Some(debits);
    Ok(())
}

impl Debits {
    /// A debit is counted in the transaction in which it happens. So at least those that had been counted before the first
    /// page were found, and at most those that are counted now: in one snapshot neither more nor less.
    fn compare(&self, tx: &mut Tx<'_>, scope: Scope, report: &mut Report) -> Result<(), Failure> {
        let guards = guards(tx, scope)?;
        report.count(GUARDS, guards.len());
        let currencies = self.happened.keys().chain(self.before.keys()).chain(guards.keys());
        for currency in currencies.collect::<HashSet<_>>() {
            let [happened, before, counted] = [&self.happened, &self.before, &guards]
                .map(|by_currency| by_currency.get(currency).copied().unwrap_or(0));
            let name = format!("{} {} {currency}", scope.organization, scope.mode);
            report.expect((before..=counted).contains(&happened), GUARDS, &name, || {
                format!("it counts {counted} debits and {happened} happened")
            });
        }
        Ok(())
    }
}

fn guards(tx: &mut Tx<'_>, scope: Scope) -> Result<BTreeMap<String, i64>, Failure> {
    Ok(balances::guards(tx, scope)?.into_iter().collect())
}

/// The way to the present state is one that contract §4.5 draws.
fn moves(report: &mut Report, refund: &Refund) {
    let (id, path) = (refund.id.to_string(), &refund.moves);
    let begins = path.first().is_some_and(|first| first.status == RefundStatus::Pending);
    let ends = path.last().is_some_and(|last| last.status == refund.status());
    report.expect(begins && ends, TABLE, &id, || {
        format!("its history does not lead from pending to {}", refund.status().as_str())
    });
    for step in path.windows(2) {
        let legal = match step[0].status {
            RefundStatus::Pending => step[1].status != RefundStatus::Pending,
            RefundStatus::Processing => matches!(step[1].status, RefundStatus::Completed | RefundStatus::Failed),
            RefundStatus::Failed => step[1].status == RefundStatus::Completed,
            RefundStatus::Completed => false,
        };
        report.expect(legal && step[0].at <= step[1].at, TABLE, &id, || {
            format!("it can't have gone from {} to {}", step[0].status.as_str(), step[1].status.as_str())
        });
    }
    let is_over = matches!(refund.status(), RefundStatus::Completed | RefundStatus::Failed);
    report.expect(is_over == (refund.step() == Step::Settled), TABLE, &id, || {
        format!("it is {} and yet {}", refund.status().as_str(), refund.step().as_str())
    });
    report.expect(refund.amount.minor > 0, TABLE, &id, || "it gives nothing back".into());
}

fn of_transaction(report: &mut Report, refund: &Refund, transaction: &Transaction) {
    let id = refund.id.to_string();
    report.expect(transaction.status().is_paid(), TABLE, &id, || {
        format!("its transaction {} was never paid", transaction.id)
    });
    let agrees = refund.amount.currency == transaction.amount.currency && refund.source == Source::of(transaction);
    report.expect(agrees, TABLE, &id, || {
        format!("currency, source or rail are not those of its transaction {}", transaction.id)
    });
}

/// It failed, and went through after all.
fn is_corrected(refund: &Refund) -> bool {
    refund.moves.windows(2).any(|step| step[0].status == RefundStatus::Failed)
}

pub(super) type ByTransaction = HashMap<String, Vec<Refund>>;

/// The refunds of the first transactions of a span, and where these end, unless with the span: a transaction may
/// have a thousand. What can't be read is reported where refunds are walked.
pub(super) fn of_transactions(
    tx: &mut Tx<'_>,
    scope: Scope,
    span: Span<'_>,
) -> Result<(ByTransaction, Option<String>), Failure> {
    let mut refunds = ByTransaction::new();
    let (rows, end) = stored::documents_of_part::<Refund>(tx, scope, "transaction_id", span)?;
    for refund in rows.into_iter().filter_map(|row| row.entity.ok()) {
        refunds.entry(refund.transaction.to_string()).or_default().push(refund);
    }
    Ok((refunds, end))
}

/// What a transaction says of its refunds is what they add up to, and that is at most what was paid.
pub(super) fn add_up(report: &mut Report, transaction: &Transaction, refunds: &[Refund]) {
    const TRANSACTIONS: &str = Transaction::TABLE;
    let sum = |is_over: bool| -> i128 {
        let counts = |refund: &&Refund| match refund.status() {
            RefundStatus::Completed => is_over,
            RefundStatus::Pending | RefundStatus::Processing => !is_over,
            RefundStatus::Failed => false,
        };
        refunds.iter().filter(counts).map(|refund| i128::from(refund.amount.minor)).sum()
    };
    let (id, paid, (gone, open)) = (transaction.id.to_string(), transaction.amount.minor, (sum(true), sum(false)));
    let said = (i128::from(transaction.refunded().minor), i128::from(transaction.refunding().minor));
    report.expect(said == (gone, open), TRANSACTIONS, &id, || {
        format!("it counts {} refunded and {} on their way, and its refunds are {gone} and {open}", said.0, said.1)
    });
    report.expect(gone + open <= i128::from(paid), TRANSACTIONS, &id, || {
        format!("{} was refunded of {paid}", gone + open)
    });
    let status = transaction.status().as_str();
    let fits = match gone {
        0 => !matches!(status, "partially_refunded" | "refunded"),
        gone if gone == i128::from(paid) => status == "refunded",
        _ => status == "partially_refunded",
    };
    report.expect(fits, TRANSACTIONS, &id, || format!("it is {status} while {gone} of {paid} was refunded"));
}

/// What the chart of accounts says of a refund, computed anew and not by the code that posted it.
pub(super) fn entries(refund: &Refund) -> Vec<Expected> {
    let entry = |debit, credit| Expected {
        refund: Some(refund.id.to_string()),
        lines: vec![
            Posting { account: debit, amount_minor: refund.amount.minor },
            Posting { account: credit, amount_minor: refund.amount.minor.saturating_neg() },
        ],
    };
    let (source, rail) = match &refund.source {
        Source::Merchant { rail } => (Account::Merchant, rail),
        Source::Unapplied { rail } => (Account::Unapplied, rail),
        Source::Offline => return vec![entry(Account::OfflineSales, Account::OfflineReceived)],
    };
    let (source, rail) = (|| source.clone(), || Account::RailClearing { rail: rail.clone() });
    let mut entries = vec![entry(source(), Account::RefundsPending)];
    for step in refund.moves.windows(2) {
        match (step[0].status, step[1].status) {
            (RefundStatus::Failed, RefundStatus::Completed) => entries.push(entry(source(), rail())),
            (_, RefundStatus::Completed) => entries.push(entry(Account::RefundsPending, rail())),
            (_, RefundStatus::Failed) => entries.push(entry(Account::RefundsPending, source())),
            (_, RefundStatus::Pending | RefundStatus::Processing) => {}
        }
    }
    entries
}
