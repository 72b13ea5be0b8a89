//! The logs of events and of the ledger: places 1, 2, 3 … without a gap, and those of the ledger all in batches.
//!
//! A place is given behind all others, and none is ever taken away: what was counted on one page is still so when the next is read,
//! whatever happens in between.

use domain::Scope;
use store::Tx;
use store::queries::ledger_batches as batches;
use store::queries::verify as stored;

use super::{Place, Report};
use crate::error::Failure;

const EVENTS: &str = "event_log";
const LEDGER: &str = "ledger_log";

/// Of a log, those that were looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    count: i64,
    first: Option<i64>,
    last: Option<i64>,
}

/// Each number is there once. So if the first is 1 and there are as many as the last one says, there is no gap.
pub(super) fn events(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    page(tx, scope, report, place, EVENTS)?;
    if place.is_end {
        let Places { count, first, last } = place.places;
        let (first, last) = (first.unwrap_or(1), last.unwrap_or(0));
        let name = format!("{} {}", scope.organization, scope.mode);
        report.expect(first == 1 && last == count, EVENTS, &name, || {
            format!("{count} places are numbered from {first} to {last}")
        });
    }
    Ok(())
}

/// Whatever gives places puts them into a batch, in one transaction: in the snapshot of the last page the last batch ends with the last
/// of them.
pub(super) fn ledger(tx: &mut Tx<'_>, scope: Scope, report: &mut Report, place: &mut Place) -> Result<(), Failure> {
    page(tx, scope, report, place, LEDGER)?;
    if place.is_end {
        let logged = place.places.count;
        let sealed = batches::last(tx, scope)?.map_or(0, |last| last.last_log_no);
        report.expect(logged == sealed, LEDGER, "all", || {
            format!("{logged} places were given, and {sealed} are in batches")
        });
    }
    Ok(())
}

fn page(
    tx: &mut Tx<'_>,
    scope: Scope,
    report: &mut Report,
    place: &mut Place,
    log: &'static str,
) -> Result<(), Failure> {
    let places = &mut place.places;
    let from = places.last.map_or(i64::MIN, |last| last.saturating_add(1));
    let page = stored::places(tx, scope, log, from)?;
    report.count(log, usize::try_from(page.count).unwrap_or(0));
    places.count += page.count;
    places.first = places.first.or(page.first);
    places.last = page.last.or(places.last);
    place.is_end = page.count < stored::KEYS;
    Ok(())
}
