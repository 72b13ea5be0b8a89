//! Sessions, their transactions, and the ledger: each move is a legal one, and each completed payment is posted once,
//! to the accounts of contract §5, and no other is.

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::checkout::{self, Checkout};
use domain::invoice::{self, Invoice};
use domain::ledger::{Account, Posting};
use domain::payment::{Payable, PaymentSession, SessionStatus, Source, Step, Transaction, TransactionStatus};
use domain::payment_link::PaymentLink;
use domain::refund::Refund;
use domain::{Id, Scope};
use store::queries::verify::{self as stored, PostingRow, Span};
use store::{Entity, Tx};

use super::events::Subject;
use super::payment_links::counts_on_session;
use super::{Ends, Place, Report, events, page, refunds};
use crate::error::Failure;

const SESSIONS: &str = PaymentSession::TABLE;
const TRANSACTIONS: &str = Transaction::TABLE;
const POSTINGS: &str = "ledger_postings";
/// A payment has three lines at most; of a transaction with more postings the rest tells nothing new.
const MOST_POSTINGS_KEPT: usize = 16;
/// Asked, failed, and gone through after all.
const MOST_POSTINGS_OF_REFUND: usize = 6;
/// What is paid may be as large as a request: so many of them are looked at together.
const MOST_PAID_OBJECTS: usize = 16;

pub(super) fn sessions(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    let ends = Ends::of::<PaymentSession>();
    page::<PaymentSession>(tx, scope, report, place, |tx, report, sessions, span| {
        let ids: Vec<String> =
            sessions.iter().filter_map(|session| session.transaction).map(|id| id.to_string()).collect();
        let transactions = by_id::<Transaction>(tx, scope, &ids)?;
        let timed = sessions.iter().filter(|session| is_timed(session)).map(|session| session.id.to_string());
        let timed: Vec<String> = timed.collect();
        let owed: HashSet<String> = stored::owed(tx, scope, &["expire_session"], &timed)?.into_iter().collect();
        for some in sessions.chunks(MOST_PAID_OBJECTS) {
            let paid: Vec<String> = some.iter().map(|session| session.payable.object_id()).collect();
            let checkouts = by_id::<Checkout>(tx, scope, &paid)?;
            let invoices = by_id::<Invoice>(tx, scope, &paid)?;
            let links = by_id::<PaymentLink>(tx, scope, &paid)?;
            for session in some {
                let id = session.id.to_string();
                let object = session.payable.object_id();
                let is_there = match session.payable {
                    Payable::Checkout(_) => {
                        checkouts.get(&object).map(|checkout| of_checkout(report, session, checkout)).is_some()
                    }
                    Payable::Invoice(_) => {
                        invoices.get(&object).map(|invoice| of_invoice(report, session, invoice)).is_some()
                    }
                    Payable::PaymentLink(_) => links.contains_key(&object),
                };
                report.expect(!is_timed(session) || owed.contains(&id), SESSIONS, &id, || {
                    "it is pending and no timer will close it".into()
                });
                let counts = session.event_sequence > 0;
                report.expect(!counts || counts_on_session(session.payable), SESSIONS, &id, || {
                    format!("it counts events, which {object} does")
                });
                report.expect(is_there, SESSIONS, &id, || format!("it pays {object}, which is not there"));
                match session.transaction {
                    None => {
                        let idle = matches!(session.status(), SessionStatus::Pending | SessionStatus::Cancelled);
                        report.expect(idle, SESSIONS, &id, || {
                            format!("it is {} without a transaction", session.status().as_str())
                        });
                    }
                    Some(named) => match transactions.get(&named.to_string()) {
                        None => report.fault(SESSIONS, id.as_str(), format!("its transaction {named} is not there")),
                        Some(transaction) => of_transaction(report, session, transaction),
                    },
                }
            }
        }
        let subjects = sessions.iter().filter(|session| counts_on_session(session.payable)).map(|session| {
            let transaction = session.transaction.and_then(|id| transactions.get(&id.to_string()));
            (session.id.to_string(), Subject::Session(session, transaction))
        });
        events::check(tx, scope, ends.cut(span), report, &subjects.collect())
    })
}

/// A session whose own timer closes it.
fn is_timed(session: &PaymentSession) -> bool {
    session.status() == SessionStatus::Pending && !session.payable.ends_its_sessions()
}

fn of_invoice(report: &mut Report, session: &PaymentSession, invoice: &Invoice) {
    let id = session.id.to_string();
    let is_part = session.amount.currency == invoice.bill().currency();
    report.expect(is_part, SESSIONS, &id, || format!("its currency is not that of {}", invoice.id));
    let is_open = matches!(session.status(), SessionStatus::Pending | SessionStatus::Processing);
    let is_current = invoice.payment_session == Some(session.id);
    report.expect(!is_open || is_current, SESSIONS, &id, || format!("it is open, but {} has another", invoice.id));
    // Where more is paid than it is for, the invoice is the fault.
    let left = invoice.total().minor.saturating_sub(invoice.paid().minor);
    let too_much = session.status() == SessionStatus::Pending && session.amount.minor > left;
    report.expect(!too_much, SESSIONS, &id, || format!("it is for more than is left of {}", invoice.id));
    let is_late = session.status() == SessionStatus::Pending && invoice.stored_status() == invoice::Status::Cancelled;
    report.expect(!is_late, SESSIONS, &id, || format!("it waits for a payer, and {} is cancelled", invoice.id));
}

fn of_checkout(report: &mut Report, session: &PaymentSession, checkout: &Checkout) {
    let id = session.id.to_string();
    let same = session.amount == checkout.order.amount;
    report.expect(same, SESSIONS, &id, || format!("its amount is not that of {}", checkout.id));
    let is_open = matches!(session.status(), SessionStatus::Pending | SessionStatus::Processing);
    let is_current = checkout.payment_session == Some(session.id);
    report.expect(!is_open || is_current, SESSIONS, &id, || format!("it is open, but {} has another", checkout.id));
    let is_late = session.status() == SessionStatus::Pending && checkout.stored_status() != checkout::Status::Pending;
    report.expect(!is_late, SESSIONS, &id, || format!("it waits for a payer, and {} is over", checkout.id));
}

fn of_transaction(report: &mut Report, session: &PaymentSession, transaction: &Transaction) {
    let id = session.id.to_string();
    let Source::Provider(attempt) = &transaction.source else {
        report.fault(SESSIONS, id, format!("its transaction {} was recorded by hand", transaction.id));
        return;
    };
    report.expect(attempt.session == session.id, SESSIONS, &id, || {
        format!("its transaction {} belongs to another session", transaction.id)
    });
    let same = transaction.amount == session.amount
        && transaction.payable == session.payable
        && Some(attempt.method) == session.method;
    report.expect(same, SESSIONS, &id, || {
        format!("amount, method or object differ from those of its transaction {}", transaction.id)
    });
    // What was stored before this was has none, and goes by its timer.
    let runs_out = session.status() == SessionStatus::Pending && transaction.status() == TransactionStatus::Pending;
    let is_listed_so = transaction.expires_at().is_none_or(|at| runs_out && at == session.expires_at);
    report.expect(is_listed_so, SESSIONS, &id, || {
        format!("its transaction {} is said to run out at another time", transaction.id)
    });
    let (one, other) = (session.status(), transaction.status());
    report.expect(fit(one, other), SESSIONS, &id, || {
        format!("it is {} while its transaction is {}", one.as_str(), other.as_str())
    });
}

/// Which states of session and transaction go together (contract §4.2, §4.3).
fn fit(session: SessionStatus, transaction: TransactionStatus) -> bool {
    use TransactionStatus as T;
    match session {
        SessionStatus::Pending | SessionStatus::Processing => matches!(transaction, T::Pending | T::Processing),
        SessionStatus::Succeeded => transaction.is_paid(),
        SessionStatus::Failed => transaction == T::Failed,
        // An attempt that the provider has goes on after its session was closed.
        SessionStatus::Cancelled => matches!(transaction, T::Cancelled | T::Expired | T::Processing | T::Failed),
    }
}

/// What was written down by hand is nobody's to move, and nobody took a fee of it.
fn recorded(report: &mut Report, transaction: &Transaction) {
    let id = transaction.id.to_string();
    report.expect(
        transaction.step() == Step::Settled && transaction.agreed_fee().minor == 0,
        TRANSACTIONS,
        &id,
        || "it was recorded by hand, and waits for a rail or has a fee".into(),
    );
}

pub(super) fn transactions(
    tx: &mut Tx<'_>,
    scope: Scope,
    report: &mut Report,
    place: &mut Place,
) -> Result<(), Failure> {
    if place.after.0.is_empty() {
        for entry in stored::posted_for_nobody(tx, scope)? {
            report.fault(POSTINGS, entry, "it is of no transaction");
        }
    }
    page::<Transaction>(tx, scope, report, place, |tx, report, transactions, span| {
        let attempts = transactions.iter().filter(|transaction| !transaction.is_recorded());
        let ids: Vec<String> = attempts.map(|transaction| transaction.attempt().session.to_string()).collect();
        let sessions = by_id::<PaymentSession>(tx, scope, &ids)?;
        let open = transactions.iter().filter(|transaction| transaction.step() != Step::Settled);
        let open: Vec<String> = open.map(|transaction| transaction.id.to_string()).collect();
        let owed = stored::owed(tx, scope, &["start_attempt", "ask_rail", "withdraw_attempt"], &open)?;
        let owed: HashSet<String> = owed.into_iter().collect();
        for transaction in &transactions {
            let id = transaction.id.to_string();
            match &transaction.source {
                Source::Provider(attempt) => match sessions.get(&attempt.session.to_string()) {
                    None => {
                        report.fault(TRANSACTIONS, id.as_str(), format!("its session {} is not there", attempt.session))
                    }
                    Some(session) => {
                        report.expect(session.transaction == Some(transaction.id), TRANSACTIONS, &id, || {
                            format!("its session {} has another transaction", session.id)
                        })
                    }
                },
                Source::Manual(_) => recorded(report, transaction),
            }
            moves(report, transaction);
            report.expect(transaction.step() == Step::Settled || owed.contains(&id), TRANSACTIONS, &id, || {
                "its outcome is open and nobody will ask for it".into()
            });
        }
        books(tx, scope, report, &transactions, span)
    })
}

/// What belongs to the transactions of a span, a part of them at a time.
fn books(
    tx: &mut Tx<'_>,
    scope: Scope,
    report: &mut Report,
    transactions: &[Transaction],
    span: Span<'_>,
) -> Result<(), Failure> {
    let (mut transactions, mut after) = (transactions, span.after.to_owned());
    loop {
        let (mut refunds, end) = refunds::of_transactions(tx, scope, Span { after: &after, ..span })?;
        let is_inside = |transaction: &Transaction| end.as_ref().is_none_or(|end| transaction.id.to_string() <= *end);
        let (part, behind) = transactions.split_at(transactions.partition_point(is_inside));
        let until = end.as_deref().or(span.until);
        let mut postings = posted(tx, scope, Span { after: &after, until }, report, part, &refunds)?;
        for transaction in part {
            let id = transaction.id.to_string();
            let refunds = refunds.remove(&id).unwrap_or_default();
            refunds::add_up(report, transaction, &refunds);
            let of_it = postings.remove(&id).unwrap_or_default();
            check_postings(report, transaction, &refunds, of_it);
        }
        match end {
            Some(end) => (transactions, after) = (behind, end),
            None => return Ok(()),
        }
    }
}

/// The way to the present state is one that contract §4.3 draws.
fn moves(report: &mut Report, transaction: &Transaction) {
    use TransactionStatus as T;
    let (id, path) = (transaction.id.to_string(), &transaction.transitions);
    let beginning = if transaction.is_recorded() { T::Completed } else { T::Pending };
    let begins = path.first().is_some_and(|first| first.status == beginning);
    let ends = path.last().is_some_and(|last| last.status == transaction.status());
    report.expect(begins && ends, TRANSACTIONS, &id, || {
        format!("its history does not lead from {} to {}", beginning.as_str(), transaction.status().as_str())
    });
    for step in path.windows(2) {
        let (from, to) = (step[0], step[1]);
        let legal = match from.status {
            T::Pending => to.status != T::Pending,
            T::Processing => matches!(to.status, T::Completed | T::Failed),
            T::Failed | T::Cancelled | T::Expired => to.status == T::Completed,
            T::Completed => matches!(to.status, T::PartiallyRefunded | T::Refunded),
            T::PartiallyRefunded => to.status == T::Refunded,
            T::Refunded => false,
        };
        report.expect(legal && from.at <= to.at, TRANSACTIONS, &id, || {
            format!("it can't have gone from {} to {}", from.status.as_str(), to.status.as_str())
        });
    }
    let fee = transaction.agreed_fee();
    let whole = fee.currency == transaction.amount.currency && (0..=transaction.amount.minor).contains(&fee.minor);
    report
        .expect(whole && transaction.amount.minor > 0, TRANSACTIONS, &id, || "its fee is no part of its amount".into());
    // Of a failed one the rail may say later that another amount was paid: then a person has to look.
    let is_parked = transaction.parked.is_some() && !transaction.status().is_paid();
    let is_decided = transaction.status().is_paid() || (transaction.status() == T::Failed && !is_parked);
    report.expect(!is_decided || transaction.step() == Step::Settled, TRANSACTIONS, &id, || {
        format!("it is {} and yet {}", transaction.status().as_str(), transaction.step().as_str())
    });
    let flagged = transaction.late || transaction.duplicate;
    report.expect(!flagged || transaction.status().is_paid(), TRANSACTIONS, &id, || {
        "late or second money, but it never came".into()
    });
}

/// The postings of a span, by transaction; their sums are added to the report's. Those of a transaction that is not among
/// `transactions` are faults.
fn posted(
    tx: &mut Tx<'_>,
    scope: Scope,
    span: Span<'_>,
    report: &mut Report,
    transactions: &[Transaction],
    refunds: &refunds::ByTransaction,
) -> Result<HashMap<String, Vec<PostingRow>>, Failure> {
    let mut by_transaction: HashMap<String, Vec<PostingRow>> =
        transactions.iter().map(|transaction| (transaction.id.to_string(), Vec::new())).collect();
    let mut cursor = None;
    loop {
        let rows = stored::postings(tx, scope, span, &mut cursor)?;
        report.count(POSTINGS, rows.len());
        for row in rows {
            match row {
                Err(why) => report.fault(POSTINGS, "?", why),
                Ok(posting) => {
                    let of = format!("{} {}", scope.mode, posting.currency);
                    *report.ledger.entry(of).or_default() += i128::from(posting.amount_minor);
                    let most = refunds.get(&posting.transaction_id).map_or(0, Vec::len) * MOST_POSTINGS_OF_REFUND;
                    match by_transaction.get_mut(&posting.transaction_id) {
                        Some(kept) if kept.len() < most + MOST_POSTINGS_KEPT => kept.push(posting),
                        Some(_) => {}
                        None => {
                            let what = format!("there is no readable transaction {}", posting.transaction_id);
                            report.fault(POSTINGS, row_of(&posting), what);
                        }
                    }
                }
            }
        }
        if cursor.is_none() {
            return Ok(by_transaction);
        }
    }
}

/// An entry as it has to be, and whose it is: the payment's, or a refund's.
pub(super) struct Expected {
    pub(super) refund: Option<String>,
    pub(super) lines: Vec<Posting>,
}

/// The entries that are there are those that have to be, one for one.
fn check_postings(report: &mut Report, transaction: &Transaction, refunds: &[Refund], postings: Vec<PostingRow>) {
    let (id, currency) = (transaction.id.to_string(), transaction.amount.currency.code());
    let mut expected: Vec<Expected> = Vec::new();
    if transaction.status().is_paid() {
        expected.push(Expected { refund: None, lines: lines(transaction) });
    }
    expected.extend(refunds.iter().flat_map(refunds::entries));
    let mut found: BTreeMap<String, Vec<PostingRow>> = BTreeMap::new();
    for posting in postings {
        found.entry(posting.entry_id.clone()).or_default().push(posting);
    }
    for (entry_id, entry) in found {
        let first = &entry[0];
        report.expect(entry_id.parse::<Id<domain::ledger::Entry>>().is_ok(), POSTINGS, &row_of(first), || {
            "its entry's id is none".into()
        });
        let sum: i128 = entry.iter().map(|posting| i128::from(posting.amount_minor)).sum();
        report.expect(sum == 0, POSTINGS, &row_of(first), || format!("the entry sums to {sum} and not to zero"));
        match expected.iter().position(|expected| is_entry(&entry, expected, currency)) {
            Some(position) => drop(expected.swap_remove(position)),
            None => report.fault(POSTINGS, row_of(first), format!("{id} needs no such entry")),
        }
    }
    for missing in expected {
        let of = missing.refund.as_deref().unwrap_or("the payment");
        let lines: Vec<String> =
            missing.lines.iter().map(|line| format!("{} {}", line.account, line.amount_minor)).collect();
        let what = format!("the ledger lacks the entry of {of}: {} {currency}", lines.join(", "));
        report.fault(TRANSACTIONS, id.as_str(), what);
    }
}

fn is_entry(entry: &[PostingRow], expected: &Expected, currency: &str) -> bool {
    let is_line = |((number, row), line): ((i64, &PostingRow), &Posting)| {
        row.line == number
            && row.created_at == entry[0].created_at
            && row.refund_id == expected.refund
            && row.account == line.account.to_string()
            && row.currency == currency
            && row.amount_minor == line.amount_minor
    };
    entry.len() == expected.lines.len() && (1..).zip(entry).zip(&expected.lines).all(is_line)
}

/// What the chart of accounts says of a completed payment, computed anew and not by the code that posted it.
fn lines(transaction: &Transaction) -> Vec<Posting> {
    let (amount, fee) = (transaction.amount.minor, transaction.agreed_fee().minor);
    let line = |account, amount_minor| Posting { account, amount_minor };
    let rail = match &transaction.source {
        Source::Provider(attempt) => line(Account::RailClearing { rail: attempt.rail.clone() }, amount),
        Source::Manual(_) => return vec![line(Account::OfflineReceived, amount), line(Account::OfflineSales, -amount)],
    };
    let mut lines = match transaction.duplicate {
        true => vec![rail, line(Account::Unapplied, -amount)],
        false => vec![rail, line(Account::Merchant, fee.saturating_sub(amount)), line(Account::Fees, -fee)],
    };
    lines.retain(|line| line.amount_minor != 0);
    lines
}

fn row_of(posting: &PostingRow) -> String {
    format!("{} line {}", posting.entry_id, posting.line)
}

/// A page's partners. What can't be read is reported where its own table is walked.
pub(super) fn by_id<E: Entity>(tx: &mut Tx<'_>, scope: Scope, ids: &[String]) -> Result<HashMap<String, E>, Failure> {
    let rows = stored::documents_with::<E>(tx, scope, ids)?;
    Ok(rows.into_iter().filter_map(|row| Some((row.id, row.entity.ok()?))).collect())
}
