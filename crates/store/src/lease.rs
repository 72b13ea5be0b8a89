//! Leases: who may do something that only one process may do at a time. No advisory locks, because a pooler or a distributed
//! PostgreSQL doesn't keep them.
//!
//! A lease that ran out can be taken by anybody, while its former holder may still believe in it. So every transaction that
//! relies on a lease calls [`renew`] *in the same transaction*: the token tells it whether it was overtaken, and the row's
//! lock keeps others out until the commit.
//!
//! One that ends later than any could was taken by a clock that was ahead, and counts as ended.

use domain::job::Lane;

use crate::error::Error;
use crate::queries::explained;
use crate::sql::Value;
use crate::tx::Tx;

/// Grows by one each time the lease changes hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub i64);

/// Whoever puts the first rows into a database, an installation or a restore, or makes another signing key of the installation, takes this
/// lease under this very name: its row lets one of them in after the other, and whoever waited gets it as well, and then looks again.
pub const INSTALLATION: &str = "installation";

const INSERT: &str = "
insert into leases (name, holder, token, expires_at)
values ($1, $2, 1, $3)
on conflict do nothing";

const TAKE_OVER: &str = "
update leases
set holder = $2, token = token + 1, expires_at = $3
where name = $1
  and (expires_at <= $4 or expires_at > $5 or holder = $2)";

const TOKEN: &str = "
select token
from leases
where name = $1
  and holder = $2";

const RENEW: &str = "
update leases
set expires_at = $4
where name = $1
  and holder = $2
  and token = $3";

const GIVE_BACK: &str = "
update leases
set expires_at = 0
where name = $1
  and holder = $2";

/// Of everything that can be held but jobs; what is not held is not touched.
const END_ALL: [&str; 3] = [
    "
update leases
set expires_at = 0
where expires_at > 0",
    "
update webhook_deliveries
set lease_until = 0
where status = 'pending' and endpoint_id > '' and lease_until > 0",
    "
update mails
set lease_until = 0
where status = 'pending' and next_try_at >= 0 and lease_until > 0",
];

/// Only what is due is held, and most that is owed is not. What was owed again for later while it was held is free by then.
const END_JOBS: &str = "
update jobs
set lease_until = 0
where lane = $1
  and due_at <= $2
  and lease_until > 0";

/// What is due within this time could still be held when it is. No lease of a job lasts longer.
const SOON_US: i64 = 60_000_000;

/// The clocks of two processes may differ by as much as a lease lasts.
const DIFFERENCE: i64 = 2;

/// `None` while somebody else holds it.
pub fn take(tx: &mut Tx<'_>, name: &str, holder: &str, duration_us: i64) -> Result<Option<Token>, Error> {
    let now = tx.now_us();
    let expires_at = now.saturating_add(duration_us);
    let inserted = tx.execute(INSERT, &[name.into(), holder.into(), expires_at.into()])?;
    if inserted == 0 {
        let latest = now.saturating_add(duration_us.saturating_mul(DIFFERENCE));
        let values: [Value; 5] = [name.into(), holder.into(), expires_at.into(), now.into(), latest.into()];
        if tx.execute(TAKE_OVER, &values)? == 0 {
            return Ok(None);
        }
    }
    let row = tx.query_one(TOKEN, &[name.into(), holder.into()])?;
    Ok(Some(Token(row.get(0)?)))
}

/// `false` when the lease was overtaken: stop, and write nothing.
pub fn renew(tx: &mut Tx<'_>, name: &str, holder: &str, token: Token, duration_us: i64) -> Result<bool, Error> {
    let expires_at = tx.now_us().saturating_add(duration_us);
    let values: [Value; 4] = [name.into(), holder.into(), token.0.into(), expires_at.into()];
    Ok(tx.execute(RENEW, &values)? == 1)
}

/// Lets the next one in at once. Releasing a lease that was overtaken does nothing.
pub fn release(tx: &mut Tx<'_>, name: &str, holder: &str, token: Token) -> Result<(), Error> {
    tx.execute(RENEW, &[name.into(), holder.into(), token.0.into(), 0_i64.into()])?;
    Ok(())
}

/// The same for whoever ends and holds it perhaps.
pub fn give_back(tx: &mut Tx<'_>, name: &str, holder: &str) -> Result<(), Error> {
    tx.execute(GIVE_BACK, &[name.into(), holder.into()]).map(drop)
}

/// Where no other process serves the database, whoever holds anything is dead. The tokens stay, and what was begun counts as
/// begun: it is taken up as after any lease that ran out.
pub(crate) fn end_all(tx: &mut Tx<'_>) -> Result<(), Error> {
    if domain::planted!(Defect::LeaseNeverEnds) {
        return Ok(());
    }
    END_ALL.iter().try_for_each(|sql| tx.execute(sql, &[]).map(drop))?;
    Lane::ALL.into_iter().try_for_each(|lane| {
        let values = of_jobs(tx, lane);
        tx.execute(END_JOBS, &values).map(drop)
    })
}

fn of_jobs(tx: &Tx<'_>, lane: Lane) -> [Value; 2] {
    [lane.number().into(), tx.now_us().saturating_add(SOON_US).into()]
}

/// How the database would go about ending all leases of jobs, for whoever checks that it reads few of them.
pub fn plan_of_ending(tx: &mut Tx<'_>) -> Result<String, Error> {
    let values = of_jobs(tx, Lane::Prompt);
    explained(tx, END_JOBS, &values)
}
