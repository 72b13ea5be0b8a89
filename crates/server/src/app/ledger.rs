//! Sealing the ledger, and showing it: accounts, entries, and the proof that nothing sealed was altered.

use domain::ledger::Account;
use domain::payment::Transaction;
use domain::{Currency, Id, Scope};
use store::Tx;
use store::queries::ledger_batches::{self as batches, BatchRow, EntryRow, Unreadable, UnsealedTotals};
use store::queries::signing_keys;

use super::{Context, keys};
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};
use crate::ledger_proof::{self, Balances, Inclusion, Proof, SealedBatch, SealedEntry, Side, Totals, TransactionProof};

/// Entries of one batch at most.
const BATCH: i64 = 1000;
/// A mode is sealed once a second, or faster while it has much to seal.
const MOST_LOOKS: u32 = 16;

/// Puts what waits in one scope behind `after` into a signed batch: the scope, and whether more may wait there.
pub fn seal_next(tx: &mut Tx<'_>, context: &Context, after: Option<Scope>) -> Result<Option<(Scope, bool)>, Failure> {
    let Some(scope) = batches::next_waiting(tx, after)? else { return Ok(None) };
    let waiting = batches::waiting(tx, scope, BATCH)?;
    let last = batches::last(tx, scope)?;
    let first = last.as_ref().map_or(1, |last| last.last_log_no + 1);
    let entries: Vec<SealedEntry> = (first..).zip(&waiting).map(|(log_no, row)| SealedEntry::of(row, log_no)).collect();
    let now = tx.now();
    let (key, _) = keys::lasting_keys(context, &signing_keys::all(tx)?, now)?;
    let previous = last.as_ref().map(SealedBatch::of);
    let sealed = ledger_proof::seal(scope, previous.as_ref(), &entries, &key, now)
        .map_err(|what| Failure::Broken(format!("the ledger can't be sealed: {what}")))?;
    let row = BatchRow {
        batch_no: last.map_or(1, |last| last.batch_no + 1),
        first_log_no: first,
        last_log_no: first + i64::try_from(entries.len()).unwrap_or(i64::MAX) - 1,
        statement: sealed.statement,
        signature: sealed.signature,
        public_key: key.public().to_text(),
    };
    let ids: Vec<String> = waiting.into_iter().map(|entry| entry.id).collect();
    batches::append(tx, scope, &row, &ids)?;
    Ok(Some((scope, i64::try_from(ids.len()).is_ok_and(|entries| entries == BATCH))))
}

/// What all accounts came to, from the last batch and what waits for the next.
pub fn balances(tx: &mut Tx<'_>, scope: Scope) -> Result<Balances, Failure> {
    let (last, waiting) = sealed_and_waiting(tx, scope)?;
    let sealed = match last {
        Some(last) => Totals::read(&SealedBatch::of(&last).statement().map_err(not_summed)?.balances),
        None => Ok(Totals::default()),
    };
    let mut unsealed = Totals::default();
    for row in waiting {
        for (side, minor) in [(Side::Debit, row.debits_minor), (Side::Credit, row.credits_minor)] {
            unsealed.post(&row.account, &row.currency, side, minor).map_err(not_summed)?;
        }
    }
    Ok(Balances { sealed: sealed.map_err(not_summed)?, unsealed })
}

/// Debits and credits of one account.
pub fn account(tx: &mut Tx<'_>, scope: Scope, account: &Account, currency: Currency) -> Result<(i128, i128), Failure> {
    Ok(balances(tx, scope)?.all().map_err(not_summed)?.of(&account.to_string(), currency.code()))
}

fn not_summed(what: String) -> Failure {
    Failure::Broken(format!("the ledger can't be summed: {what}"))
}

/// In a writing transaction on PostgreSQL each statement sees what was committed before it: what is sealed between the two is
/// in neither. So both are read again then.
fn sealed_and_waiting(tx: &mut Tx<'_>, scope: Scope) -> Result<(Option<BatchRow>, Vec<UnsealedTotals>), Failure> {
    let mut last = batches::last(tx, scope)?;
    for _ in 0..MOST_LOOKS {
        let waiting = batches::unsealed_totals(tx, scope)?;
        let after = batches::last(tx, scope)?;
        if after == last {
            return Ok((last, waiting));
        }
        last = after;
    }
    Err(store::Error::Conflict.into())
}

/// `limit` batches from the number `from` on; without it, the last ones.
pub fn proof(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    transaction: Option<Id<Transaction>>,
    from: Option<i64>,
    limit: i64,
) -> Result<Proof, Failure> {
    let last = batches::last(tx, scope)?;
    let (batch_count, sealed_entries) = last.map_or((0, 0), |last| (last.batch_no, last.last_log_no));
    let from = from.unwrap_or(batch_count - limit + 1);
    let (_, keys) = keys::lasting_keys(context, &signing_keys::all(tx)?, tx.now())?;
    Ok(Proof {
        balances: balances(tx, scope)?,
        batch_count,
        sealed_entries,
        unsealed_entries: batches::count_unsealed(tx, scope)?,
        batches: batches::list(tx, scope, from, limit)?.iter().map(SealedBatch::of).collect(),
        keys,
        transaction: transaction.map(|id| of_transaction(tx, scope, id)).transpose()?,
    })
}

fn of_transaction(tx: &mut Tx<'_>, scope: Scope, id: Id<Transaction>) -> Result<TransactionProof, Failure> {
    if tx.peek::<Transaction>(scope, id)?.is_none() {
        let message = "`transaction_id` names no transaction of yours.";
        return Err(Fault::new("transaction_id", FaultCode::NotFound, message).into());
    }
    let (mut places, mut unsealed_entries) = (Vec::new(), 0);
    for (entry, log_no) in batches::places(tx, scope, &id.to_string())? {
        match log_no {
            Some(log_no) => places.push((log_no, entry)),
            None => unsealed_entries += 1,
        }
    }
    places.sort_unstable();
    let (mut inclusions, mut places) = (Vec::with_capacity(places.len()), places.as_slice());
    // Each batch is read once, whatever it holds of this transaction.
    while let Some((first, entry)) = places.first() {
        let batch = batches::of_place(tx, scope, *first)?.ok_or_else(|| placeless(entry))?;
        let (inside, behind) = places.split_at(places.partition_point(|(log_no, _)| *log_no <= batch.last_log_no));
        inclusions.extend(of_batch(tx, scope, &batch, inside)?);
        places = behind;
    }
    Ok(TransactionProof { transaction_id: id.to_string(), inclusions, unsealed_entries })
}

/// Of entries with these places, which are in order.
fn of_batch(
    tx: &mut Tx<'_>,
    scope: Scope,
    batch: &BatchRow,
    places: &[(i64, String)],
) -> Result<Vec<Inclusion>, Failure> {
    let entries = sealed_entries(tx, scope, batch)?;
    let index = |(log_no, entry): &(i64, String)| {
        entries.binary_search_by_key(log_no, |sealed| sealed.log_no).map_err(|_| placeless(entry))
    };
    let indexes = places.iter().map(index).collect::<Result<Vec<_>, _>>()?;
    Ok(ledger_proof::include_all(&entries, &indexes, &SealedBatch::of(batch)))
}

fn placeless(entry: &str) -> Failure {
    Failure::Broken(format!("the ledger entry {entry} has a place in no batch"))
}

/// All entries of a batch, as they were hashed.
pub fn sealed_entries(tx: &mut Tx<'_>, scope: Scope, batch: &BatchRow) -> Result<Vec<SealedEntry>, Failure> {
    Ok(as_hashed(&batches::sealed(tx, scope, batch.first_log_no, batch.last_log_no)?))
}

/// The same for whoever checks them, or all of their postings that can't be read.
pub fn entries_as_found(
    tx: &mut Tx<'_>,
    scope: Scope,
    batch: &BatchRow,
) -> Result<Result<Vec<SealedEntry>, Vec<Unreadable>>, Failure> {
    let found = batches::sealed_as_found(tx, scope, batch.first_log_no, batch.last_log_no)?;
    Ok(found.map(|rows| as_hashed(&rows)))
}

fn as_hashed(rows: &[EntryRow]) -> Vec<SealedEntry> {
    rows.iter().map(|row| SealedEntry::of(row, row.log_no)).collect()
}
