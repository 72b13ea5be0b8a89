//! Work that is owed. There is at most one job of a kind for an object.
//!
//! What only a later version knows is left to its processes: held here, it would wait for nothing until its lease ends.
//!
//! A lease that ends later than any could was taken by a clock that was ahead, and counts as ended.

use std::time::Duration;

use domain::job::{ClaimedJob, Job, Lane};
use domain::{Scope, Timestamp};

use super::{explained, scope_of, unless_damaged};
use crate::error::Error;
use crate::settings::Dialect;
use crate::sql::{Row, Value};
use crate::tx::Tx;
use crate::wakes::{LONGEST_SLEEP, Worker};

/// In its own lane: a process of the version before may have written it into another. So it is with those below.
const SCHEDULE: &str = "\
insert into jobs (kind, object_id, organization_id, mode, due_at, lane, attempts, lease_until, lease_token)
values ($1, $2, $3, $4, $5, $6, 0, 0, 0)
on conflict (kind, object_id) do update set due_at = excluded.due_at, lane = excluded.lane";

const SCHEDULE_ANEW: &str = "\
insert into jobs (kind, object_id, organization_id, mode, due_at, lane, attempts, lease_until, lease_token)
values ($1, $2, $3, $4, $5, $6, 0, 0, 0)
on conflict (kind, object_id) do update
set due_at = excluded.due_at, lane = excluded.lane, attempts = 0, lease_until = 0, lease_token = jobs.lease_token + 1";

const HOLD: &str = "\
insert into jobs (kind, object_id, organization_id, mode, due_at, lane, attempts, lease_until, lease_token)
values ($1, $2, $3, $4, $5, $6, 1, $7, 1)
on conflict (kind, object_id) do update
set lane = excluded.lane, lease_until = excluded.lease_until, lease_token = jobs.lease_token + 1
returning lease_token";

const DUE: &str = "\
select kind, object_id
from jobs
where lane = $3 and due_at <= $1 and (lease_until <= $1 or lease_until > $4) and kind in ({kinds})
order by due_at, kind, object_id
limit $2";

const LEASE: &str = "\
update jobs
set lease_until = $1, lease_token = lease_token + 1, attempts = attempts + 1
where kind = cast($2 as text) and object_id = cast($3 as text) and due_at <= $4
    and (lease_until <= $4 or lease_until > $5)
returning kind, object_id, organization_id, mode, due_at, attempts, lease_token";

const DONE: &str = "\
delete from jobs
where kind = $1 and object_id = $2 and lease_token = $3 and due_at = $4";

const HELD: &str = "\
select lease_token
from jobs
where kind = $1 and object_id = $2 and lease_token = $3";

const OWED: &str = "\
select lease_token
from jobs
where kind = $1 and object_id = $2";

const RENEW: &str = "\
update jobs
set lease_until = $4
where kind = $1 and object_id = $2 and lease_token = $3";

const RELEASE: &str = "\
update jobs
set lease_until = 0
where kind = $1 and object_id = $2 and lease_token = $3";

const AGAIN: &str = "\
update jobs
set due_at = $4, lease_until = 0
where kind = $1 and object_id = $2 and lease_token = $3";

/// The claim is over with it: done a second time, because nobody knows whether the first was stored, it changes nothing more.
const PUT_OFF: &str = "\
update jobs
set due_at = $4, lease_until = 0, lease_token = lease_token + 1, attempts = attempts - 1
where kind = $1 and object_id = $2 and lease_token = $3";

/// The others that call a rail are held from the moment they are owed, so that they have begun.
const COUNT_AS_BEGUN: &str = "\
update jobs
set attempts = 1
where kind = 'send_refund' and attempts = 0";

const CANCEL: &str = "\
delete from jobs
where kind = $1 and object_id = $2";

const NEXT_DUE: &str = "\
select min(due_at) as due_at
from jobs
where lane = $2 and (lease_until <= $1 or lease_until > $3) and kind in ({kinds})";

fn of_known_kinds(sql: &str) -> String {
    sql.replace("{kinds}", &Job::KINDS.map(|kind| format!("'{kind}'")).join(", "))
}

/// Twice what any is taken for, because the clocks of two processes differ.
const LONGEST_LEASE: Duration = Duration::from_secs(60);

/// Owes `job` at `due_at`. Owed already: the time moves.
pub fn schedule(tx: &mut Tx<'_>, scope: Scope, job: Job, due_at: Timestamp) -> Result<(), Error> {
    tx.append("jobs", SCHEDULE, &owed(scope, job, due_at))?;
    wake(tx, scope, job, due_at);
    Ok(())
}

/// Owes `job` at `due_at` as if it had not been owed before: its attempts begin anew, and whoever has it in hand can neither
/// put it off nor end it.
pub fn schedule_anew(tx: &mut Tx<'_>, scope: Scope, job: Job, due_at: Timestamp) -> Result<(), Error> {
    tx.execute(SCHEDULE_ANEW, &owed(scope, job, due_at))?;
    wake(tx, scope, job, due_at);
    Ok(())
}

fn owed(scope: Scope, job: Job, due_at: Timestamp) -> [Value; 6] {
    assert!(Job::KINDS.contains(&job.kind()), "nobody would do it");
    [
        job.kind().into(),
        job.object_id().into(),
        scope.organization.to_string().into(),
        scope.mode.as_str().into(),
        due_at.micros().into(),
        job.lane(scope.mode).number().into(),
    ]
}

/// What is due later is found without being told: nobody sleeps for so long.
fn wake(tx: &mut Tx<'_>, scope: Scope, job: Job, due_at: Timestamp) {
    if due_at < tx.now().plus(LONGEST_SLEEP) {
        tx.wake(Worker::Jobs(job.lane(scope.mode)));
    }
}

/// Owes `job` now and holds it at once: for whoever runs it inline. If they die, the worker takes over.
pub fn hold(tx: &mut Tx<'_>, scope: Scope, job: Job, lease_until: Timestamp) -> Result<ClaimedJob, Error> {
    let now = tx.now();
    let values = [
        job.kind().into(),
        job.object_id().into(),
        scope.organization.to_string().into(),
        scope.mode.as_str().into(),
        now.micros().into(),
        job.lane(scope.mode).number().into(),
        end_of(lease_until).into(),
    ];
    let lease_token = tx.query_one(HOLD, &values)?.get("lease_token")?;
    Ok(ClaimedJob { job, scope, due_at: now, attempts: 1, lease_token })
}

fn end_of(lease: Timestamp) -> i64 {
    if domain::planted!(Defect::LeaseNeverEnds) { i64::MAX } else { lease.micros() }
}

/// No lease that was taken by now ends later.
fn latest_end(now: Timestamp) -> i64 {
    end_of(now.plus(LONGEST_LEASE))
}

pub fn claim(tx: &mut Tx<'_>, lane: Lane, limit: i64, lease_until: Timestamp) -> Result<Vec<ClaimedJob>, Error> {
    let (now, latest) = (tx.now().micros(), latest_end(tx.now()));
    let mut sql = format!("{}{}", of_known_kinds(DUE), tx.skip_locked_suffix());
    if domain::planted!(Defect::DueLateOnPostgres) && tx.dialect() == Dialect::Postgres {
        sql = sql.replace("due_at <= $1", "due_at < $1");
    }
    let due = tx.query(&sql, &[now.into(), limit.into(), lane.number().into(), latest.into()])?;
    let mut claimed = Vec::with_capacity(due.len());
    for row in &due {
        // Readable or not: bytes are cast to the text that they are.
        let (kind, object_id): (Value, Value) = (row.get("kind")?, row.get("object_id")?);
        let values = [end_of(lease_until).into(), kind, object_id, now.into(), latest.into()];
        let leased = tx.query(LEASE, &values)?;
        for row in &leased {
            claimed.extend(unless_damaged(read(row), "a job")?);
        }
    }
    Ok(claimed)
}

/// How a claim finds what is due.
#[doc(hidden)]
pub fn plan_of_due(tx: &mut Tx<'_>, lane: Lane) -> Result<String, Error> {
    let (now, latest) = (tx.now().micros(), latest_end(tx.now()));
    explained(tx, &of_known_kinds(DUE), &[now.into(), 32.into(), lane.number().into(), latest.into()])
}

fn read(row: &Row) -> Result<ClaimedJob, Error> {
    let (kind, object_id): (String, String) = (row.get("kind")?, row.get("object_id")?);
    Ok(ClaimedJob {
        job: Job::parse(&kind, &object_id)
            .ok_or_else(|| Error::Corrupt(format!("no job is called {kind} of {object_id}")))?,
        scope: scope_of(row)?,
        due_at: Timestamp::from_micros(row.get("due_at")?),
        attempts: row.get("attempts")?,
        lease_token: row.get("lease_token")?,
    })
}

/// Done, unless it was owed again meanwhile: then it is only let go.
pub fn done(tx: &mut Tx<'_>, claimed: &ClaimedJob) -> Result<(), Error> {
    let key = [claimed.job.kind().into(), claimed.job.object_id().into(), claimed.lease_token.into()];
    let mut with_time = Vec::from(key.clone());
    with_time.push(claimed.due_at.micros().into());
    let is_owed_again = domain::planted!(Defect::JobNeverDone) || tx.execute(DONE, &with_time)? == 0;
    if is_owed_again && !domain::planted!(Defect::LeaseNeverReleased) {
        tx.execute(RELEASE, &key)?;
        tx.wake(Worker::Jobs(claimed.job.lane(claimed.scope.mode)));
    }
    Ok(())
}

/// Whether nobody has taken it over meanwhile; and nobody will until this transaction ends.
pub fn is_held(tx: &mut Tx<'_>, claimed: &ClaimedJob) -> Result<bool, Error> {
    let sql = format!("{HELD}{}", tx.lock_suffix());
    let key = [claimed.job.kind().into(), claimed.job.object_id().into(), claimed.lease_token.into()];
    Ok(tx.query_opt(&sql, &key)?.is_some())
}

/// Holds it for longer, unless somebody has taken it over: whether it is still held. For whoever is about to begin what may last.
pub fn renew(tx: &mut Tx<'_>, claimed: &ClaimedJob, lease_until: Timestamp) -> Result<bool, Error> {
    let [kind, object_id, token, _] = let_go(claimed, claimed.due_at);
    Ok(tx.execute(RENEW, &[kind, object_id, token, end_of(lease_until).into()])? > 0)
}

/// Whether `job` is owed, by whoever holds it or by nobody.
pub fn is_owed(tx: &mut Tx<'_>, job: Job) -> Result<bool, Error> {
    Ok(tx.query_opt(OWED, &[job.kind().into(), job.object_id().into()])?.is_some())
}

/// Let go, and owed again at `due_at`.
pub fn again(tx: &mut Tx<'_>, claimed: &ClaimedJob, due_at: Timestamp) -> Result<(), Error> {
    if domain::planted!(Defect::FailedJobForgotten) {
        return cancel(tx, claimed.job);
    }
    tx.execute(AGAIN, &let_go(claimed, due_at))?;
    wake(tx, claimed.scope, claimed.job, due_at);
    Ok(())
}

/// Not begun, let go, and owed at `due_at`: as if it had not been claimed.
pub fn put_off(tx: &mut Tx<'_>, claimed: &ClaimedJob, due_at: Timestamp) -> Result<(), Error> {
    tx.execute(PUT_OFF, &let_go(claimed, due_at)).map(drop)
}

fn let_go(claimed: &ClaimedJob, due_at: Timestamp) -> [Value; 4] {
    [claimed.job.kind().into(), claimed.job.object_id().into(), claimed.lease_token.into(), due_at.micros().into()]
}

/// Of a copy: the server that it was made of went on, and may have called since then. So no call from here is the first.
pub(crate) fn count_as_begun(tx: &mut Tx<'_>) -> Result<(), Error> {
    tx.execute(COUNT_AS_BEGUN, &[]).map(drop)
}

/// No longer owed.
pub fn cancel(tx: &mut Tx<'_>, job: Job) -> Result<(), Error> {
    tx.execute(CANCEL, &[job.kind().into(), job.object_id().into()]).map(drop)
}

pub fn next_due(tx: &mut Tx<'_>, lane: Lane) -> Result<Option<Timestamp>, Error> {
    let (now, latest) = (tx.now().micros(), latest_end(tx.now()));
    let due_at: Option<i64> =
        tx.query_one(&of_known_kinds(NEXT_DUE), &[now.into(), lane.number().into(), latest.into()])?.get("due_at")?;
    Ok(due_at.map(Timestamp::from_micros))
}
