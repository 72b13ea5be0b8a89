//! The sealed ledger: every batch signed, chained and true to the postings; every entry in a batch or waiting for one.

use std::collections::BTreeSet;

use domain::Scope;
use store::Tx;
use store::queries::ledger_batches::{self as batches, BatchRow};
use store::queries::signing_keys;

use super::Report;
use crate::app::ledger;
use crate::error::Failure;
use crate::ledger_proof::{Chain, SealedBatch};
use crate::tokens::PublicKey;

const BATCHES: &str = "ledger_batches";
const LOG: &str = "ledger_log";
const UNSEALED: &str = "ledger_unsealed";
const PAGE: i64 = 100;

pub(super) fn seals(tx: &mut Tx<'_>, scope: Scope, report: &mut Report) -> Result<(), Failure> {
    let known: BTreeSet<String> = signing_keys::all(tx)?.into_iter().map(|key| key.kid).collect();
    let mut chain = Chain::new([]);
    let (mut next, mut sealed, mut is_whole) = (1, 0, true);
    loop {
        report.progress.goes_on()?;
        let page = batches::list(tx, scope, next, PAGE)?;
        report.count(BATCHES, page.len());
        for row in &page {
            next = row.batch_no + 1;
            sealed = row.last_log_no;
            // Behind a batch that is not right nothing can be told of the rest.
            if is_whole && let Err(what) = follow(tx, scope, &mut chain, &known, row)? {
                is_whole = false;
                report.fault(BATCHES, row.batch_no.to_string(), what);
            }
        }
        if i64::try_from(page.len()).is_ok_and(|rows| rows < PAGE) {
            break;
        }
    }
    let logged = batches::count_sealed(tx, scope)?;
    report.count(LOG, usize::try_from(logged).unwrap_or(0));
    report.expect(logged == sealed, LOG, "all", || format!("{logged} places were given, and {sealed} are in batches"));
    waiting(tx, scope, report)
}

fn follow(
    tx: &mut Tx<'_>,
    scope: Scope,
    chain: &mut Chain,
    known: &BTreeSet<String>,
    row: &BatchRow,
) -> Result<Result<(), String>, Failure> {
    match PublicKey::parse(&row.public_key) {
        Ok(key) if known.contains(key.id()) => chain.trust(key),
        Ok(key) => return Ok(Err(format!("its key {} is none of this installation", key.id()))),
        Err(fault) => return Ok(Err(fault.to_string())),
    }
    let batch = SealedBatch::of(row);
    let statement = match batch.statement() {
        Ok(statement) => statement,
        Err(what) => return Ok(Err(what)),
    };
    let said = (statement.batch, statement.first, statement.last);
    let (organization, mode) = (scope.organization.to_string(), scope.mode.as_str());
    if said != (row.batch_no, row.first_log_no, row.last_log_no)
        || (statement.organization_id.as_str(), statement.mode.as_str()) != (organization.as_str(), mode)
    {
        return Ok(Err("its columns differ from its statement".into()));
    }
    let entries = ledger::sealed_entries(tx, scope, row)?;
    Ok(chain.follow(&batch, &entries))
}

/// What is in no batch waits for one.
fn waiting(tx: &mut Tx<'_>, scope: Scope, report: &mut Report) -> Result<(), Failure> {
    let mut after = String::new();
    loop {
        let unplaced = batches::unplaced(tx, scope, &after)?;
        for entry in &unplaced {
            report.fault("ledger_postings", entry.as_str(), "the entry is in no batch and waits for none");
        }
        match unplaced.into_iter().next_back() {
            Some(last) => after = last,
            None => break,
        }
    }
    let waiting = batches::count_unsealed(tx, scope)?;
    report.count(UNSEALED, usize::try_from(waiting).unwrap_or(0));
    for entry in batches::waiting_for_nothing(tx, scope)? {
        report.fault(UNSEALED, entry, "it waits for a batch, but it has no postings or is in one");
    }
    Ok(())
}
