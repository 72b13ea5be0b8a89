//! The sealed ledger: every batch signed, chained and true to the postings; every entry in a batch or waiting for one.

use std::collections::BTreeSet;

use domain::Scope;
use store::Tx;
use store::queries::ledger_batches::{self as batches, BatchRow, Unreadable};
use store::queries::signing_keys;

use super::{Place, Report};
use crate::app::ledger;
use crate::error::Failure;
use crate::ledger_proof::{Chain, SealedBatch};
use crate::tokens::PublicKey;

const BATCHES: &str = "ledger_batches";
const POSTINGS: &str = "ledger_postings";
const UNSEALED: &str = "ledger_unsealed";
/// Batches of a page at most. A small one has an entry or two.
const PAGE: i64 = 50;
/// No further batch is begun on a page behind so many entries: a large one has a thousand.
const ENTRIES: i64 = 500;

/// The batches so far.
#[derive(Debug, Clone)]
pub(super) struct Seals {
    chain: Chain,
    next: i64,
    is_whole: bool,
}

impl Default for Seals {
    fn default() -> Self {
        Self { chain: Chain::new([]), next: 1, is_whole: true }
    }
}

pub(super) fn seals(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    let mut seals = place.seals.take().unwrap_or_default();
    // Read anew for each page: a batch may have been sealed since, with a new key.
    let known: BTreeSet<String> = signing_keys::all(tx)?.into_iter().map(|key| key.kid).collect();
    let page = batches::list(tx, scope, seals.next, PAGE)?;
    let (mut looked_at, mut entries) = (0, 0_i64);
    for row in &page {
        if entries >= ENTRIES {
            break;
        }
        looked_at += 1;
        entries = entries.saturating_add(row.last_log_no.saturating_sub(row.first_log_no)).saturating_add(1);
        seals.next = row.batch_no.saturating_add(1);
        if seals.is_whole
            && let Err(what) = follow(tx, scope, report, &mut seals.chain, &known, row)?
        {
            report.fault(BATCHES, row.batch_no.to_string(), what);
            // Where only its entries are not right its signature says what comes behind them; of anything else nothing can be told.
            seals.is_whole = seals.chain.link(&SealedBatch::of(row)).is_ok();
        }
    }
    report.count(BATCHES, looked_at);
    place.is_end = looked_at == page.len() && i64::try_from(page.len()).is_ok_and(|rows| rows < PAGE);
    place.seals = Some(seals);
    Ok(())
}

fn follow(
    tx: &mut Tx<'_>,
    scope: Scope,
    report: &mut Report,
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
    match ledger::entries_as_found(tx, scope, row)? {
        Ok(entries) => Ok(chain.follow(&batch, &entries)),
        Err(unreadable) => {
            unreadable.into_iter().for_each(|Unreadable { row, why }| report.fault(POSTINGS, row, why));
            Ok(Err("an entry of it can't be read".into()))
        }
    }
}

/// What is in no batch waits for one.
pub(super) fn placed(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    let (unplaced, last) = batches::unplaced(tx, scope, &place.after.0)?;
    for entry in unplaced {
        report.fault(POSTINGS, entry, "the entry is in no batch and waits for none");
    }
    place.go_on_behind(last);
    Ok(())
}

/// What waits for a batch can be put into one.
pub(super) fn waiting(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    let page = batches::waiting_behind(tx, scope, &place.after.0)?;
    report.count(UNSEALED, page.count);
    for entry in page.for_nothing {
        report.fault(UNSEALED, entry, "it waits for a batch, but it has no postings or is in one");
    }
    place.go_on_behind(page.last);
    Ok(())
}
