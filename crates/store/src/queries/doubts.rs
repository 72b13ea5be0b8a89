//! Whose books are in doubt: a row for each organization and mode in whose money a check has seen a fault, and one for everybody
//! where it could not tell whose it is. It stands until a check has looked at all of theirs and seen none.
//!
//! Clocks of several processes are not held against each other: whether somebody has seen a fault again since a check began is told
//! by whether the row is still what it was then.

use domain::{Scope, Timestamp};

use super::{scope_of, unless_damaged};
use crate::error::Error;
use crate::sql::{Row, Value};
use crate::tx::Tx;

const SEE: &str = "\
insert into doubts (organization_id, mode, found, since, seen_at)
values ($1, $2, $3, $4, $5)
on conflict (organization_id, mode) do update set seen_at = excluded.seen_at
returning since";

const OF: &str = "\
select organization_id
from doubts
where (organization_id = $1 and mode = $2) or organization_id = ''
limit 1";

/// What has not been seen for the longest time comes first, so that it is ended however many there are.
const STANDING: &str = "\
select organization_id, mode, found, since, seen_at
from doubts
order by seen_at, organization_id, mode
limit $1";

const END: &str = "\
delete from doubts
where organization_id = $1 and mode = $2 and seen_at = $3";

const COUNT: &str = "\
select count(*) as standing
from doubts";

/// A check looks at so many of them; the others are for the next one.
const MOST: i64 = 1_000;
/// Letters of what was found. A fault may show what somebody made of a row.
const MOST_FOUND: usize = 500;

/// A doubt that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Whose money; nothing: everybody's.
    pub whose: Option<Scope>,
    /// The first fault that was seen.
    pub found: String,
    pub since: Timestamp,
    seen_at: i64,
}

/// A fault was seen: whether it is the first one.
pub fn see(tx: &mut Tx<'_>, whose: Option<Scope>, found: &str) -> Result<bool, Error> {
    let now = tx.now_us();
    let [organization, mode] = names(whose);
    let found: String = found.chars().filter(|letter| *letter != '\0').take(MOST_FOUND).collect();
    let row = tx.query_one(SEE, &[organization, mode, found.into(), now.into(), now.into()])?;
    Ok(row.get::<i64>("since")? == now)
}

/// Then no money of theirs goes out.
pub fn are_of(tx: &mut Tx<'_>, scope: Scope) -> Result<bool, Error> {
    Ok(tx.query_opt(OF, &names(Some(scope)))?.is_some())
}

/// In the order in which all lock them.
pub fn standing(tx: &mut Tx<'_>) -> Result<Vec<Standing>, Error> {
    let rows = tx.query(STANDING, &[MOST.into()])?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.extend(unless_damaged(read(row), "a doubt")?);
    }
    found.sort_by_key(|doubt| doubt.whose);
    Ok(found)
}

fn read(row: &Row) -> Result<Standing, Error> {
    let is_of_all = row.get::<String>("organization_id")?.is_empty();
    Ok(Standing {
        whose: if is_of_all { None } else { Some(scope_of(row)?) },
        found: row.get("found")?,
        since: row.get("since")?,
        seen_at: row.get("seen_at")?,
    })
}

/// Unless somebody has seen a fault since it was read.
pub fn end(tx: &mut Tx<'_>, doubt: &Standing) -> Result<bool, Error> {
    let [organization, mode] = names(doubt.whose);
    Ok(tx.execute(END, &[organization, mode, doubt.seen_at.into()])? > 0)
}

/// How many stand.
pub fn count(tx: &mut Tx<'_>) -> Result<u64, Error> {
    let standing: i64 = tx.query_one(COUNT, &[])?.get("standing")?;
    u64::try_from(standing).map_err(|_| Error::Corrupt("a negative count".to_owned()))
}

fn names(whose: Option<Scope>) -> [Value; 2] {
    match whose {
        Some(scope) => [scope.organization.to_string().into(), scope.mode.as_str().into()],
        None => ["", ""].map(Value::from),
    }
}
