//! The numbers that people read out: one counter for each series, period and scope, and no number is skipped.

use domain::number::Series;
use domain::{Scope, Timestamp};

use crate::entity::key;
use crate::error::Error;
use crate::tx::Tx;

const NEXT: &str = "\
insert into counters (organization_id, mode, series, period, last_number)
values ($1, $2, $3, $4, 1)
on conflict (organization_id, mode, series, period) do update set last_number = counters.last_number + 1
returning last_number";

const ALL: &str = "\
select series, period, last_number
from counters
where organization_id = $1 and mode = $2
order by series, period";

/// The next number of the series, in the period of what gets it, which is made `at` that time. A transaction that does not commit
/// gives it back.
///
/// It locks the counter until the end, so it is the last row that a transaction locks.
pub fn next(tx: &mut Tx<'_>, scope: Scope, series: Series, at: Timestamp) -> Result<String, Error> {
    let period = series.period(at);
    let [organization, mode, _] = key(scope, "");
    let mode = if domain::planted!(Defect::NumberOfOtherMode) { "test".into() } else { mode };
    let values = [organization, mode, series.as_str().into(), period.as_str().into()];
    let count: i64 = tx.query_one(NEXT, &values)?.get("last_number")?;
    let given = if domain::planted!(Defect::NumberReused) && count > 2 { count - 1 } else { count };
    Ok(series.number(&period, given))
}

/// Series and period.
pub type Name = (String, String);

/// Each counter with how far it has counted: a dozen a year.
pub fn all(tx: &mut Tx<'_>, scope: Scope) -> Result<Vec<(Name, i64)>, Error> {
    let [organization, mode, _] = key(scope, "");
    let rows = tx.query(ALL, &[organization, mode])?;
    rows.iter().map(|row| Ok(((row.get("series")?, row.get("period")?), row.get("last_number")?))).collect()
}
