//! Mails that are owed, and the worker's claim on what is due, of one merchant and kind at a time: who looks for them passes
//! over nothing that others are owed, however much that is.
//!
//! A lease that ends later than any could was taken by a clock that was ahead, and counts as ended.
//!
//! Each statement asks whether a mail waits as the one index has it by which it is to go (migration 28), or as none has it.

use std::time::Duration;

use domain::mail::{Mail, MailKind, MailStatus};
use domain::{Mode, Scope, Timestamp};

use super::{explained, limit, read_id, scope_of, unless_damaged};
use crate::entity::key;
use crate::error::Error;
use crate::sql::{Row, Value};
use crate::tx::Tx;
use crate::wakes::Worker;

const TABLE: &str = "mails";

const INSERT: &str = "\
insert into mails (organization_id, mode, id, kind, object_id, recipient, status, attempts, unanswered, next_try_at, last_error,
    sent_at, lease_until, lease_token, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, 0, $13)";

const SELECT_OF_OBJECT: &str = "\
select organization_id, mode, id, kind, object_id, recipient, status, attempts, unanswered, next_try_at, last_error, sent_at,
    created_at
from mails
where organization_id = $1 and mode = $2 and object_id = $3
order by id";

const NEWEST_OF_OBJECT: &str = "\
select created_at
from mails
where organization_id = $1 and mode = $2 and object_id = $3
order by id desc
limit $4";

/// Every merchant of a mode that is owed mails of a kind, with the time at which the first that nobody holds is due: a few steps
/// in the index for each.
const OWED: &str = "\
with recursive owed (organization_id) as (
    select (select first.organization_id
        from mails as first
        where '' || first.status = 'pending' and first.mode = $3 and first.kind = $4
        order by first.organization_id
        limit 1)
    union all
    select (select more.organization_id
        from mails as more
        where '' || more.status = 'pending' and more.mode = $3 and more.kind = $4
        and more.organization_id > owed.organization_id
        order by more.organization_id
        limit 1)
    from owed
    where owed.organization_id is not null)
select owed.organization_id, (select first.next_try_at
    from mails as first
    where '' || first.status = 'pending' and first.mode = $3 and first.kind = $4
    and first.organization_id = owed.organization_id
    and (first.lease_until <= $1 or first.lease_until > $2)
    order by first.next_try_at, first.id
    limit 1) as due_at
from owed
where owed.organization_id is not null
order by owed.organization_id";

const DUE: &str = "\
select id
from mails
where '' || status = 'pending' and mode = $3 and kind = $4 and organization_id = $5 and next_try_at <= $1
    and (lease_until <= $1 or lease_until > $2)
order by next_try_at, id
limit $6";

/// This and those below find one by its key, whatever a database knows of its rows: the status is asked for as no index has it.
const LEASE: &str = "\
update mails
set lease_until = $1, lease_token = lease_token + 1
where id = $2 and status || '' = 'pending' and next_try_at <= $3 and (lease_until <= $3 or lease_until > $4)
returning organization_id, mode, id, kind, object_id, recipient, status, attempts, unanswered, next_try_at, last_error, sent_at,
    created_at, lease_token";

/// In its holder's hands still, who goes on under the same token.
const HOLD_ON: &str = "\
update mails
set lease_until = $1
where id = $2 and status || '' = 'pending' and next_try_at <= $3 and (lease_until <= $3 or lease_until > $4)";

const RENEW: &str = "\
update mails
set lease_until = $4
where organization_id = $1 and mode = $2 and id = $3 and lease_token = $5 and status || '' = 'pending'";

/// What is true if nobody stores anything else.
const BEGIN: &str = "\
update mails
set attempts = $4, unanswered = $5, next_try_at = $6, last_error = $7, lease_until = $8
where organization_id = $1 and mode = $2 and id = $3 and lease_token = $9 and status || '' = 'pending'";

/// That the mail server has it is true whoever holds the mail by now; anything else is for the holder to say.
const FINISH: &str = "\
update mails
set status = $4, attempts = $5, unanswered = $6, next_try_at = $7, last_error = $8, sent_at = $9, lease_until = 0
where organization_id = $1 and mode = $2 and id = $3 and status || '' = 'pending' and (lease_token = $10 or $4 = 'sent')";

/// Of all merchants: one step, where nothing is due yet.
const NEXT_DUE: &str = "\
select next_try_at as due_at
from mails
where status = 'pending' and mode = $3 and (lease_until <= $1 or lease_until > $2)
order by next_try_at, id
limit 1";

/// Twice what any is taken for, because the clocks of two processes differ.
const LONGEST_LEASE: Duration = Duration::from_secs(60);

/// A mail that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedMail {
    pub mail: Mail,
    pub lease_token: i64,
}

/// A merchant who is owed mails of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owed {
    pub scope: Scope,
    pub kind: MailKind,
    /// The first that nobody holds.
    pub due_at: Timestamp,
}

pub fn insert(tx: &mut Tx<'_>, mail: &Mail) -> Result<(), Error> {
    let mut values = Vec::from(key(mail.scope, &mail.id.to_string()));
    values.extend([
        mail.kind.as_str().into(),
        mail.object_id.as_str().into(),
        mail.recipient.as_str().into(),
        mail.status.as_str().into(),
        mail.attempts.into(),
        mail.unanswered.into(),
        mail.next_try_at.map(Timestamp::micros).into(),
        mail.last_error.clone().into(),
        mail.sent_at.map(Timestamp::micros).into(),
        mail.created_at.micros().into(),
    ]);
    tx.wake(Worker::Mails);
    tx.append(TABLE, INSERT, &values)
}

/// All mails about one object, oldest first.
pub fn of_object(tx: &mut Tx<'_>, scope: Scope, object_id: &str) -> Result<Vec<Mail>, Error> {
    tx.query(SELECT_OF_OBJECT, &key(scope, object_id))?.iter().map(read).collect()
}

/// When the `count` newest mails about one object were asked for, the newest first.
pub fn newest_of_object(tx: &mut Tx<'_>, scope: Scope, object_id: &str, count: usize) -> Result<Vec<Timestamp>, Error> {
    let [organization, mode, object] = key(scope, object_id);
    let rows = tx.query(NEWEST_OF_OBJECT, &[organization, mode, object, limit(count)])?;
    rows.iter().map(|row| row.get("created_at")).collect()
}

/// Who is owed mails of a mode that nobody holds, due or not: one for each kind.
pub fn owed(tx: &mut Tx<'_>, mode: Mode) -> Result<Vec<Owed>, Error> {
    let mut all = Vec::new();
    for kind in MailKind::ALL {
        let owed = |row: &Row, due_at| {
            let organization = read_id(&row.get::<String>("organization_id")?)?;
            Ok(Owed { scope: Scope { organization, mode }, kind, due_at: Timestamp::from_micros(due_at) })
        };
        for row in &tx.query(OWED, &of_kind(tx, mode, kind))? {
            if let Some(due_at) = row.get("due_at")? {
                all.extend(unless_damaged(owed(row, due_at), "whose a mail is")?);
            }
        }
    }
    Ok(all)
}

/// Which leases count: those that ended by now, and those that end later than any could.
fn by_now(tx: &Tx<'_>) -> [i64; 2] {
    [tx.now().micros(), tx.now().plus(LONGEST_LEASE).micros()]
}

fn of_kind(tx: &Tx<'_>, mode: Mode, kind: MailKind) -> [Value; 4] {
    let [now, latest] = by_now(tx);
    [now.into(), latest.into(), mode.as_str().into(), kind.as_str().into()]
}

fn of_merchant(tx: &Tx<'_>, scope: Scope, kind: MailKind, limit: i64) -> Vec<Value> {
    let mut values = Vec::from(of_kind(tx, scope.mode, kind));
    values.extend([scope.organization.to_string().into(), limit.into()]);
    values
}

/// Up to `limit` due mails of a merchant and a kind, the longest due first, held until `lease_until`.
pub fn claim(
    tx: &mut Tx<'_>,
    scope: Scope,
    kind: MailKind,
    limit: usize,
    lease_until: Timestamp,
) -> Result<Vec<ClaimedMail>, Error> {
    Ok(claim_beside(tx, scope, kind, limit, lease_until, |_| false)?.0)
}

/// The same, for whoever has some in its hands already, by their ids. One of those whose lease ran out is held on to for whoever works
/// on it, and not begun anew: how many that were.
pub fn claim_beside(
    tx: &mut Tx<'_>,
    scope: Scope,
    kind: MailKind,
    limit: usize,
    lease_until: Timestamp,
    is_in_hand: impl Fn(&str) -> bool,
) -> Result<(Vec<ClaimedMail>, usize), Error> {
    let [now, latest] = by_now(tx);
    let values = of_merchant(tx, scope, kind, i64::try_from(limit).unwrap_or(i64::MAX));
    let sql = format!("{DUE}{}", tx.skip_locked_suffix());
    let due = tx.query(&sql, &values)?;
    let (mut claimed, mut held_on) = (Vec::with_capacity(due.len()), 0);
    for row in &due {
        let id: String = row.get("id")?;
        let is_held = is_in_hand(&id);
        let values: [Value; 4] = [lease_until.micros().into(), id.into(), now.into(), latest.into()];
        if is_held {
            held_on += usize::from(tx.execute(HOLD_ON, &values)? > 0);
            continue;
        }
        for row in &tx.query(LEASE, &values)? {
            if let Some(mail) = unless_damaged(read(row), "a mail")? {
                claimed.push(ClaimedMail { mail, lease_token: row.get("lease_token")? });
            }
        }
    }
    Ok((claimed, held_on))
}

/// Holds on while an attempt lasts; `false` when the lease had passed to another worker.
pub fn renew(tx: &mut Tx<'_>, claimed: &ClaimedMail, lease_until: Timestamp) -> Result<bool, Error> {
    let mut values = Vec::from(key(claimed.mail.scope, &claimed.mail.id.to_string()));
    values.extend([lease_until.micros().into(), claimed.lease_token.into()]);
    Ok(tx.execute(RENEW, &values)? == 1)
}

/// Stores that it is about to be sent, as `begun` says it, and holds on; `false` when the lease had passed to another worker.
pub fn begin(tx: &mut Tx<'_>, claimed: &ClaimedMail, begun: &Mail, lease_until: Timestamp) -> Result<bool, Error> {
    let mut values = Vec::from(key(claimed.mail.scope, &claimed.mail.id.to_string()));
    values.extend([
        begun.attempts.into(),
        begun.unanswered.into(),
        begun.next_try_at.map(Timestamp::micros).into(),
        begun.last_error.clone().into(),
        lease_until.micros().into(),
        claimed.lease_token.into(),
    ]);
    Ok(tx.execute(BEGIN, &values)? == 1)
}

/// Stores what an attempt brought; `false` when the lease had passed to another worker, unless the mail server has the mail, or
/// when all was said of it before.
pub fn finish(tx: &mut Tx<'_>, claimed: &ClaimedMail) -> Result<bool, Error> {
    let mail = &claimed.mail;
    let mut values = Vec::from(key(mail.scope, &mail.id.to_string()));
    values.extend([
        mail.status.as_str().into(),
        mail.attempts.into(),
        mail.unanswered.into(),
        mail.next_try_at.map(Timestamp::micros).into(),
        mail.last_error.clone().into(),
        mail.sent_at.map(Timestamp::micros).into(),
        claimed.lease_token.into(),
    ]);
    Ok(tx.execute(FINISH, &values)? == 1)
}

/// Of the modes that are asked for.
pub fn next_due(tx: &mut Tx<'_>, modes: &[Mode]) -> Result<Option<Timestamp>, Error> {
    Ok(look(tx, modes, |_| true)?.0)
}

/// The same, but for what is due to those who find no place; and who is owed mails in the modes in which something is due.
pub fn look(
    tx: &mut Tx<'_>,
    modes: &[Mode],
    finds_place: impl Fn(Scope) -> bool,
) -> Result<(Option<Timestamp>, Vec<Owed>), Error> {
    let mut next: Option<Timestamp> = None;
    let mut all = Vec::new();
    for mode in modes {
        let row = tx.query_opt(NEXT_DUE, &of_mode(tx, *mode))?;
        let first = row.map(|row| row.get("due_at")).transpose()?.map(Timestamp::from_micros);
        let due_at = match first {
            // Not one that [`owed`] passes over: a claim would find nothing, as often as it is told that there is something.
            Some(first) if first <= tx.now() => {
                let owed = owed(tx, *mode)?;
                all.extend_from_slice(&owed);
                owed.iter().filter(|owed| finds_place(owed.scope)).map(|owed| owed.due_at).min()
            }
            later => later,
        };
        next = next.into_iter().chain(due_at).min();
    }
    Ok((next, all))
}

fn of_mode(tx: &Tx<'_>, mode: Mode) -> [Value; 3] {
    let [now, latest] = by_now(tx);
    [now.into(), latest.into(), mode.as_str().into()]
}

/// How the database would go about a look at what is owed: its plan for each statement, for whoever checks that no index is
/// missing.
pub fn plans(tx: &mut Tx<'_>, scope: Scope, kind: MailKind) -> Result<[String; 3], Error> {
    let (of_mode, of_kind) = (of_mode(tx, scope.mode), of_kind(tx, scope.mode, kind));
    let of_merchant = of_merchant(tx, scope, kind, 4);
    Ok([explained(tx, NEXT_DUE, &of_mode)?, explained(tx, OWED, &of_kind)?, explained(tx, DUE, &of_merchant)?])
}

/// The same for what is done to one that was found.
pub fn plans_of_one(tx: &mut Tx<'_>, claimed: &ClaimedMail) -> Result<[(&'static str, String); 5], Error> {
    let number = || Value::from(0_i64);
    let id = claimed.mail.id.to_string();
    let by_id = [number(), id.as_str().into(), number(), number()];
    let with = |values: Vec<Value>| [key(claimed.mail.scope, &id).to_vec(), values].concat();
    let begun = with(vec![number(), number(), number(), "".into(), number(), number()]);
    let ended = with(vec!["sent".into(), number(), number(), number(), "".into(), number(), number()]);
    Ok([
        ("lease", explained(tx, LEASE, &by_id)?),
        ("hold on", explained(tx, HOLD_ON, &by_id)?),
        ("renew", explained(tx, RENEW, &with(vec![number(), number()]))?),
        ("begin", explained(tx, BEGIN, &begun)?),
        ("finish", explained(tx, FINISH, &ended)?),
    ])
}

fn read(row: &Row) -> Result<Mail, Error> {
    let (kind, status): (String, String) = (row.get("kind")?, row.get("status")?);
    let (attempts, unanswered): (i64, i64) = (row.get("attempts")?, row.get("unanswered")?);
    if !(0..=attempts).contains(&unanswered) || attempts > i64::from(u32::MAX) {
        return Err(Error::Corrupt(format!("{unanswered} of {attempts} attempts can't have gone without an answer")));
    }
    Ok(Mail {
        id: read_id(&row.get::<String>("id")?)?,
        scope: scope_of(row)?,
        kind: MailKind::parse(&kind).ok_or_else(|| Error::Corrupt(format!("{kind:?} is no kind of mail")))?,
        object_id: row.get("object_id")?,
        recipient: row.get("recipient")?,
        status: MailStatus::parse(&status).ok_or_else(|| Error::Corrupt(format!("{status:?} is no mail status")))?,
        attempts,
        unanswered,
        next_try_at: row.get("next_try_at")?,
        last_error: row.get("last_error")?,
        sent_at: row.get("sent_at")?,
        created_at: row.get("created_at")?,
    })
}
