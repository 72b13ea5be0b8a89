//! What the attempts to pay one object add up to.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use domain::payment::{PaymentSession, SessionStatus, Transaction, TransactionStatus, TransactionSummary};
use domain::{Id, Scope, Timestamp};
use store::queries::verify::{self as stored, Span};
use store::{Entity, Tx};

use super::Report;
use super::payments::by_id;
use crate::error::Failure;

/// The clocks of two processes may have differed by so much: what was stored before settling looked at what the object had
/// seen is dated by either.
const CLOCKS_APART: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Attempts {
    pub(super) count: i64,
    pub(super) completed: i64,
    /// That were told so, unless the object took no more payments then.
    failed: i64,
    /// Those that failed for their payer, because the session was open until then: which attempt it was, and when.
    heard: Vec<(i64, Timestamp)>,
    /// Which attempt was the last that began.
    latest: i64,
    /// When the first money came.
    pub(super) paid_at: Option<Timestamp>,
    pub(super) paid: Vec<Id<Transaction>>,
    pub(super) late: Vec<Id<Transaction>>,
    pub(super) shown: Option<(TransactionSummary, TransactionStatus)>,
}

impl Attempts {
    /// How many failures were told, at least and at most. From `paid_at` on the object took no more, and what failed beside
    /// the money that paid it is nobody's concern. What failed before another attempt began failed before that, whatever the
    /// clocks of the two said; of the last one they have to tell.
    pub(super) fn failures(&self, paid_at: Option<Timestamp>) -> RangeInclusive<i64> {
        let is_told = |(attempt, failed_at): &&(i64, Timestamp)| {
            *attempt < self.latest || paid_at.is_none_or(|paid_at| failed_at.plus(CLOCKS_APART) < paid_at)
        };
        let told = self.heard.iter().filter(is_told).count();
        i64::try_from(told).unwrap_or(i64::MAX)..=self.failed
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
        self.latest = self.latest.max(transaction.attempt_count);
        if let Some(failed_at) = transaction.reached(TransactionStatus::Failed) {
            self.failed += 1;
            let was_heard = session.is_some_and(|session| session.status() == SessionStatus::Failed);
            if was_heard && is_open {
                self.heard.push((transaction.attempt_count, failed_at));
            }
        }
        if let Some(paid_at) = transaction.reached(TransactionStatus::Completed) {
            self.paid_at = Some(self.paid_at.map_or(paid_at, |first| first.min(paid_at)));
        }
        if transaction.status().is_paid() {
            self.completed += 1;
            match (transaction.duplicate, transaction.late) {
                (true, _) => {}
                (false, true) => self.late.push(transaction.id),
                (false, false) => self.paid.push(transaction.id),
            }
        }
        let fee = transaction.agreed_fee();
        let can_be_shown =
            fee.currency == transaction.amount.currency && (0..=transaction.amount.minor).contains(&fee.minor);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What was stored by two processes is not held against them, and what is certain stays so.
    #[test]
    fn a_failure_was_told_for_certain_if_it_came_first_whatever_the_clocks_said() {
        let at = |seconds: u64| Timestamp::from_micros(0).plus(Duration::from_secs(seconds));
        let failures = |attempt, failed_at, paid_at: Option<u64>| {
            let attempts =
                Attempts { failed: 1, heard: vec![(attempt, at(failed_at))], latest: 2, ..Attempts::default() };
            attempts.failures(paid_at.map(at))
        };
        let (certain, perhaps) = (1..=1, 0..=1);
        assert_eq!(failures(2, 1_000, None), certain, "no money came");
        assert_eq!(failures(2, 1_000, Some(1_100)), certain, "no clocks are so far apart");
        assert_eq!(failures(2, 1_000, Some(1_002)), perhaps, "the clock was behind");
        assert_eq!(failures(2, 1_000, Some(1_000)), perhaps, "beside the money");
        assert_eq!(failures(2, 1_002, Some(1_000)), perhaps, "behind the money");
        assert_eq!(failures(1, 1_000, Some(1_002)), certain, "another attempt began behind it");
    }
}
