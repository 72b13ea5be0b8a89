//! What the attempts to pay one object add up to.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use domain::payment::{PaymentSession, SessionStatus, Transaction, TransactionStatus, TransactionSummary};
use domain::{Id, Scope};
use store::queries::verify::{self as stored, Span};
use store::{Entity, Tx};

use super::Report;
use super::payments::by_id;
use crate::error::Failure;

#[derive(Default)]
pub(super) struct Attempts {
    pub(super) count: i64,
    pub(super) completed: i64,
    /// That were told so, unless the object took no more payments then.
    failed: i64,
    /// Among them those that did not fail for their payer, because the session was closed before.
    unheard: i64,
    pub(super) paid: Vec<Id<Transaction>>,
    pub(super) late: Vec<Id<Transaction>>,
    pub(super) shown: Option<(TransactionSummary, TransactionStatus)>,
}

impl Attempts {
    /// How many failures were told, at least and at most.
    pub(super) fn failures(&self) -> RangeInclusive<i64> {
        self.failed - self.unheard..=self.failed
    }

    /// `shown` is the attempt that the object shows; `open` says that the object still takes payments, or took the last
    /// one that it needs.
    fn add(
        &mut self,
        transaction: &Transaction,
        session: Option<&PaymentSession>,
        shown: Option<Id<Transaction>>,
        is_open: bool,
    ) {
        self.count += 1;
        if transaction.reached(TransactionStatus::Failed).is_some() {
            self.failed += 1;
            let was_heard = session.is_some_and(|session| session.status() == SessionStatus::Failed);
            self.unheard += i64::from(!was_heard || !is_open);
        }
        if transaction.status().is_paid() {
            self.completed += 1;
            match (transaction.duplicate, transaction.late) {
                (true, _) => {}
                (false, true) => self.late.push(transaction.id),
                (false, false) => self.paid.push(transaction.id),
            }
        }
        let can_be_shown = transaction.fee.currency == transaction.amount.currency
            && (0..=transaction.amount.minor).contains(&transaction.fee.minor);
        if shown == Some(transaction.id) && can_be_shown {
            self.shown = Some((transaction.summary(), transaction.status()));
        }
    }
}

/// What is known of a paid object.
pub(super) struct Paid {
    pub(super) shown: Option<Id<Transaction>>,
    /// Failures are told: it was never closed without money.
    pub(super) is_open: bool,
}

/// The attempts at the objects of a span, which includes those that are not there. `each` sees every one of them.
pub(super) fn of(
    tx: &mut Tx<'_>,
    scope: Scope,
    span: Span<'_>,
    report: &mut Report,
    known: &HashMap<String, Paid>,
    mut each: impl FnMut(&mut Report, &Transaction),
) -> Result<HashMap<String, Attempts>, Failure> {
    let mut attempts: HashMap<String, Attempts> = HashMap::new();
    let mut cursor = None;
    loop {
        let rows = stored::documents_between::<Transaction>(tx, scope, "object_id", span, &mut cursor)?;
        // What can't be read is reported where transactions are walked; what was recorded by hand is no attempt.
        let online: Vec<Transaction> = rows
            .into_iter()
            .filter_map(|row| row.entity.ok())
            .filter(|transaction| !transaction.is_recorded())
            .collect();
        let failed = online.iter().filter(|transaction| transaction.reached(TransactionStatus::Failed).is_some());
        let sessions: Vec<String> = failed.map(|transaction| transaction.attempt().session.to_string()).collect();
        let sessions = by_id::<PaymentSession>(tx, scope, &sessions)?;
        for transaction in &online {
            let object = transaction.payable.object_id();
            let Some(paid) = known.get(&object) else {
                let what = format!("it pays {object}, of which nothing can be read");
                report.fault(Transaction::TABLE, transaction.id.to_string(), what);
                continue;
            };
            each(report, transaction);
            let session = sessions.get(&transaction.attempt().session.to_string());
            attempts.entry(object).or_default().add(transaction, session, paid.shown, paid.is_open);
        }
        if cursor.is_none() {
            return Ok(attempts);
        }
    }
}
