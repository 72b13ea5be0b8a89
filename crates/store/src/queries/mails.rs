//! Mails that are owed, and the worker's claim on what is due, of one mode at a time: those of the other wait for nothing here.
//!
//! A lease that ends later than any could was taken by a clock that was ahead, and counts as ended.

use std::time::Duration;

use domain::mail::{Mail, MailKind, MailStatus};
use domain::{Mode, Scope, Timestamp};

use super::{read_id, scope_of, unless_damaged};
use crate::entity::key;
use crate::error::Error;
use crate::sql::Row;
use crate::tx::Tx;

const TABLE: &str = "mails";

const INSERT: &str = "\
insert into mails (organization_id, mode, id, kind, object_id, recipient, status, attempts, next_try_at, last_error, sent_at,
    lease_until, lease_token, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0, $12)";

const SELECT_OF_OBJECT: &str = "\
select organization_id, mode, id, kind, object_id, recipient, status, attempts, next_try_at, last_error, sent_at, created_at
from mails
where organization_id = $1 and mode = $2 and object_id = $3
order by id";

const NEWEST_OF_OBJECT: &str = "\
select created_at
from mails
where organization_id = $1 and mode = $2 and object_id = $3
order by id desc
limit $4";

const DUE: &str = "\
select id
from mails
where status = 'pending' and mode = $4 and next_try_at <= $1 and (lease_until <= $1 or lease_until > $3)
order by next_try_at, id
limit $2";

const LEASE: &str = "\
update mails
set lease_until = $1, lease_token = lease_token + 1
where id = $2 and status = 'pending' and next_try_at <= $3 and (lease_until <= $3 or lease_until > $4)
returning organization_id, mode, id, kind, object_id, recipient, status, attempts, next_try_at, last_error, sent_at,
    created_at, lease_token";

const RENEW: &str = "\
update mails
set lease_until = $4
where organization_id = $1 and mode = $2 and id = $3 and lease_token = $5 and status = 'pending'";

const FINISH: &str = "\
update mails
set status = $4, attempts = $5, next_try_at = $6, last_error = $7, sent_at = $8, lease_until = 0
where organization_id = $1 and mode = $2 and id = $3 and lease_token = $9";

const NEXT_DUE: &str = "\
select min(next_try_at) as due_at
from mails
where status = 'pending' and mode = $3 and (lease_until <= $1 or lease_until > $2)";

/// Twice what any is taken for, because the clocks of two processes differ.
const LONGEST_LEASE: Duration = Duration::from_secs(60);

/// A mail that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedMail {
    pub mail: Mail,
    pub lease_token: i64,
}

pub fn insert(tx: &mut Tx<'_>, mail: &Mail) -> Result<(), Error> {
    let mut values = Vec::from(key(mail.scope, &mail.id.to_string()));
    values.extend([
        mail.kind.as_str().into(),
        mail.object_id.as_str().into(),
        mail.recipient.as_str().into(),
        mail.status.as_str().into(),
        mail.attempts.into(),
        mail.next_try_at.map(Timestamp::micros).into(),
        mail.last_error.clone().into(),
        mail.sent_at.map(Timestamp::micros).into(),
        mail.created_at.micros().into(),
    ]);
    tx.append(TABLE, INSERT, &values)
}

/// All mails about one object, oldest first.
pub fn of_object(tx: &mut Tx<'_>, scope: Scope, object_id: &str) -> Result<Vec<Mail>, Error> {
    tx.query(SELECT_OF_OBJECT, &key(scope, object_id))?.iter().map(read).collect()
}

/// When the `count` newest mails about one object were asked for, the newest first.
pub fn newest_of_object(tx: &mut Tx<'_>, scope: Scope, object_id: &str, count: usize) -> Result<Vec<Timestamp>, Error> {
    let [organization, mode, object] = key(scope, object_id);
    let rows =
        tx.query(NEWEST_OF_OBJECT, &[organization, mode, object, i64::try_from(count).unwrap_or(i64::MAX).into()])?;
    rows.iter().map(|row| Ok(Timestamp::from_micros(row.get("created_at")?))).collect()
}

/// Up to `limit` due mails of a mode, held until `lease_until`.
pub fn claim(tx: &mut Tx<'_>, mode: Mode, limit: usize, lease_until: Timestamp) -> Result<Vec<ClaimedMail>, Error> {
    let (now, latest) = (tx.now().micros(), tx.now().plus(LONGEST_LEASE).micros());
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!("{DUE}{}", tx.skip_locked_suffix());
    let due = tx.query(&sql, &[now.into(), limit.into(), latest.into(), mode.as_str().into()])?;
    let mut claimed = Vec::with_capacity(due.len());
    for row in &due {
        let id: String = row.get("id")?;
        for row in &tx.query(LEASE, &[lease_until.micros().into(), id.into(), now.into(), latest.into()])? {
            if let Some(mail) = unless_damaged(read(row), "a mail")? {
                claimed.push(ClaimedMail { mail, lease_token: row.get("lease_token")? });
            }
        }
    }
    Ok(claimed)
}

/// Holds on while an attempt lasts; `false` when the lease had passed to another worker.
pub fn renew(tx: &mut Tx<'_>, claimed: &ClaimedMail, lease_until: Timestamp) -> Result<bool, Error> {
    let mut values = Vec::from(key(claimed.mail.scope, &claimed.mail.id.to_string()));
    values.extend([lease_until.micros().into(), claimed.lease_token.into()]);
    Ok(tx.execute(RENEW, &values)? == 1)
}

/// Stores what an attempt brought; `false` when the lease had passed to another worker.
pub fn finish(tx: &mut Tx<'_>, claimed: &ClaimedMail) -> Result<bool, Error> {
    let mail = &claimed.mail;
    let mut values = Vec::from(key(mail.scope, &mail.id.to_string()));
    values.extend([
        mail.status.as_str().into(),
        mail.attempts.into(),
        mail.next_try_at.map(Timestamp::micros).into(),
        mail.last_error.clone().into(),
        mail.sent_at.map(Timestamp::micros).into(),
        claimed.lease_token.into(),
    ]);
    Ok(tx.execute(FINISH, &values)? == 1)
}

/// Of the modes that are asked for.
pub fn next_due(tx: &mut Tx<'_>, modes: &[Mode]) -> Result<Option<Timestamp>, Error> {
    let (now, latest) = (tx.now().micros(), tx.now().plus(LONGEST_LEASE).micros());
    let mut next: Option<i64> = None;
    for mode in modes {
        let due_at: Option<i64> =
            tx.query_one(NEXT_DUE, &[now.into(), latest.into(), mode.as_str().into()])?.get("due_at")?;
        next = next.into_iter().chain(due_at).min();
    }
    Ok(next.map(Timestamp::from_micros))
}

fn read(row: &Row) -> Result<Mail, Error> {
    let (kind, status): (String, String) = (row.get("kind")?, row.get("status")?);
    let time = |micros: Option<i64>| micros.map(Timestamp::from_micros);
    Ok(Mail {
        id: read_id(&row.get::<String>("id")?)?,
        scope: scope_of(row)?,
        kind: MailKind::parse(&kind).ok_or_else(|| Error::Corrupt(format!("{kind:?} is no kind of mail")))?,
        object_id: row.get("object_id")?,
        recipient: row.get("recipient")?,
        status: MailStatus::parse(&status).ok_or_else(|| Error::Corrupt(format!("{status:?} is no mail status")))?,
        attempts: row.get("attempts")?,
        next_try_at: time(row.get("next_try_at")?),
        last_error: row.get("last_error")?,
        sent_at: time(row.get("sent_at")?),
        created_at: Timestamp::from_micros(row.get("created_at")?),
    })
}
