//! Which event is owed to which endpoint, and the worker's claim on what is due.
//!
//! A lease that ends later than any could was taken by a clock that was ahead, and counts as ended.
//!
//! What waits for an earlier one of its object is due at the last time there is, [`Timestamp::LATEST`], and is called when its turn
//! comes: however many wait, a look and the end of an attempt cost no more. (A process of a version before calls them only behind one
//! that had failed; the others are found by whoever looks for what was forgotten, [`call_forgotten`].)
//!
//! Each statement asks whether a delivery waits as the one index has it by which it is to go (migration 28): `status = 'pending'` the one
//! by time, `'' || status = 'pending'` the one by object, and `status || '' = 'pending'` neither, but the key.

mod ahead;
mod arrived;
mod owed;
mod plans;
mod uncalled;

pub use ahead::{bring_back, plans_of_bringing_back};
pub use arrived::delivered;
pub use owed::{Owed, owed_in};
pub use plans::{plans, plans_behind};
pub use uncalled::{LookedAt, Object, call_forgotten, plans_of_looking, uncalled};

use std::time::Duration;

use domain::event::Event;
use domain::webhook::{Delivery, DeliveryStatus, WebhookEndpoint};
use domain::{Id, Scope, Timestamp};

use super::{limit, listed, read_id, scope_of, unless_damaged};
use crate::entity::key;
use crate::error::Error;
use crate::sql::{Row, Value};
use crate::tx::Tx;
use crate::wakes::Worker;

const TABLE: &str = "webhook_deliveries";

const INSERT: &str = "\
insert into webhook_deliveries (organization_id, mode, event_id, endpoint_id, object_id, sequence, status, by_hand,
    attempts, round_attempts, next_retry_at, last_status_code, last_error, updated_at, lease_until, lease_token)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, {due_at}, $12, $13, $14, 0, 0)";

/// Not before it is called, where one is in front of it.
const BEHIND: &str = "\
coalesce((
    select 253402207199000000
    from (
        select sequence
        from webhook_deliveries
        where endpoint_id = $4 and object_id = $5 and sequence < $6 and '' || status = 'pending' and by_hand = 0
        order by sequence desc
        limit 1{lock}) as ahead), $11)";

/// What waits is tried again when the first of its object is, and then goes on.
const SELECT_OF_EVENT: &str = "\
select organization_id, mode, event_id, endpoint_id, object_id, sequence, status, attempts, round_attempts,
    case when next_retry_at = 253402207199000000 then coalesce((
        select ahead.next_retry_at
        from webhook_deliveries as ahead
        where ahead.endpoint_id = webhook_deliveries.endpoint_id
        and ahead.object_id = webhook_deliveries.object_id
        and ahead.sequence < webhook_deliveries.sequence
        and '' || ahead.status = 'pending'
        and ahead.by_hand = 0
        order by ahead.sequence
        limit 1), next_retry_at) else next_retry_at end as next_retry_at,
    last_status_code, last_error, updated_at, lease_token
from webhook_deliveries
where organization_id = $1 and mode = $2 and event_id = $3
order by endpoint_id";

/// Every endpoint that is owed something, with the time at which the first that nobody holds is due: two steps in the index for each,
/// and one for each that is under way.
const OWED: &str = "\
with recursive owed (endpoint_id) as (
    select (select first.endpoint_id
        from webhook_deliveries as first
        where first.status = 'pending'
        order by first.endpoint_id
        limit 1)
    union all
    select (select more.endpoint_id
        from webhook_deliveries as more
        where more.status = 'pending' and more.endpoint_id > owed.endpoint_id
        order by more.endpoint_id
        limit 1)
    from owed
    where owed.endpoint_id is not null)
select owed.endpoint_id, (select first.next_retry_at
    from webhook_deliveries as first
    where first.status = 'pending' and first.endpoint_id = owed.endpoint_id and first.next_retry_at < 253402207199000000
    and (first.lease_until <= $1 or first.lease_until > $2)
    order by first.next_retry_at
    limit 1) as due_at
from owed
where owed.endpoint_id is not null
order by due_at, owed.endpoint_id";

/// Of one endpoint. An event waits while an earlier one of the same object is open for the same endpoint; what is sent by
/// hand neither waits nor is waited for.
const READY: &str = "\
from webhook_deliveries as due
where due.status = 'pending'
and due.endpoint_id = $1
and (due.lease_until <= $2 or due.lease_until > $3)
and (due.by_hand = 1 or not exists (
    select 1
    from webhook_deliveries as earlier
    where earlier.endpoint_id = due.endpoint_id
    and earlier.object_id = due.object_id
    and earlier.sequence < due.sequence
    and '' || earlier.status = 'pending'
    and earlier.by_hand = 0))";

const DUE: &str = "\
select due.organization_id, due.mode, due.event_id, due.endpoint_id
{ready}
and due.next_retry_at <= $2
order by due.next_retry_at, due.event_id
limit $4";

/// Without those that wait for an earlier one.
const NEXT_DUE: &str = "\
select due.next_retry_at
{ready}
and due.next_retry_at < 253402207199000000
order by due.next_retry_at
limit 1";

/// Each by its whole key: whatever a database knows of its rows, it reads no other that waits for the endpoint.
const LEASE: &str = "\
update webhook_deliveries
set lease_until = $4, lease_token = lease_token + 1
where organization_id = $1 and mode = $2 and endpoint_id = $3 and status || '' = 'pending'
    and (lease_until <= $5 or lease_until > $6) and event_id in ({events})
returning organization_id, mode, event_id, endpoint_id, object_id, sequence, status, attempts, round_attempts, next_retry_at,
    last_status_code, last_error, updated_at, lease_token";

/// What was given up while the attempt was under way is not open again.
const FINISH: &str = "\
update webhook_deliveries
set status = $5, attempts = $6, round_attempts = $7, next_retry_at = $8, last_status_code = $9, last_error = $10,
    updated_at = $12, lease_until = 0
where organization_id = $1 and mode = $2 and event_id = $3 and endpoint_id = $4 and lease_token = $11
and (status = 'pending' or $5 <> 'pending')";

/// Of an object. Locked, so that one which somebody is just taking out of the order is passed over.
const FIRST: &str = "\
select event_id
from webhook_deliveries
where organization_id = $1 and mode = $2 and endpoint_id = $3 and object_id = $4 and '' || status = 'pending' and by_hand = 0
order by sequence
limit 1";

/// Those that have only waited so far, by their keys, as [`LEASE`]. One that failed before goes at its own time.
const CALL: &str = "\
update webhook_deliveries
set next_retry_at = $4, updated_at = case when updated_at > $4 then updated_at else $4 end
where organization_id = $1 and mode = $2 and endpoint_id = $3 and status || '' = 'pending' and by_hand = 0 and attempts = 0
and next_retry_at > $4 and event_id in ({events})";

/// It leaves the order until it ends: it waits for no other, and no other for it. One that is open and whose turn it is has
/// its place in the order and keeps it, so that those behind it still come after it. What an attempt under way comes to is not
/// what was asked for: it would end the retry before it began.
const RETRY: &str = "\
update webhook_deliveries
set status = $5, round_attempts = $6, next_retry_at = $7, updated_at = $8, lease_until = 0, lease_token = lease_token + 1, by_hand = case
    when status = 'pending' and not exists (
        select 1
        from webhook_deliveries as earlier
        where earlier.endpoint_id = webhook_deliveries.endpoint_id
        and earlier.object_id = webhook_deliveries.object_id
        and earlier.sequence < webhook_deliveries.sequence
        and '' || earlier.status = 'pending'
        and earlier.by_hand = 0)
    then by_hand
    else 1 end
where organization_id = $1 and mode = $2 and event_id = $3 and endpoint_id = $4";

const FORGET: &str = "\
delete from webhook_deliveries
where organization_id = $1 and mode = $2 and event_id = $3 and endpoint_id = $4 and status = 'failed'";

/// Twice what any is taken for, because the clocks of two processes differ.
const LONGEST_LEASE: Duration = Duration::from_secs(60);

/// Of one claim, for an endpoint, before others get theirs: each costs the claim four statements, however little it gets.
const SHARE: usize = 8;
/// Of one claim that has something: each costs it one statement. Any number of endpoints may be slow.
const MOST_IN_VAIN: usize = 32;

/// A delivery that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDelivery {
    pub delivery: Delivery,
    pub lease_token: i64,
}

/// Due when it says.
pub fn insert(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<(), Error> {
    add(tx, delivery, false, "$11")
}

/// Due when it says, or when it is called, where one is in front of it: of the same object, for the same endpoint.
pub fn insert_behind(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<(), Error> {
    // Whoever stores what became of that one, and calls the one behind it, comes before this or sees it.
    let due_at = match domain::planted!(Defect::DeliveredOutOfOrder) {
        true => "$11".to_owned(),
        false => BEHIND.replace("{lock}", tx.lock_suffix()),
    };
    add(tx, delivery, false, &due_at)
}

/// To an endpoint that wasn't owed the event: out of the order, as in [`retry`]. Whoever did the same meanwhile makes the closure
/// run again, and find it.
pub fn insert_by_hand(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<(), Error> {
    match add(tx, delivery, true, "$11").and_then(|()| tx.flush()) {
        Err(error) if error.is_unique_violation() => Err(tx.conflict()),
        added => added,
    }
}

fn add(tx: &mut Tx<'_>, delivery: &Delivery, by_hand: bool, due_at: &str) -> Result<(), Error> {
    tx.wake(Worker::Deliveries);
    tx.append(TABLE, &INSERT.replace("{due_at}", due_at), &inserted(delivery, by_hand))
}

/// The values of [`INSERT`].
fn inserted(delivery: &Delivery, by_hand: bool) -> Vec<Value> {
    let mut values = Vec::from(key(delivery.scope, &delivery.event.to_string()));
    values.extend([
        delivery.endpoint.to_string().into(),
        delivery.object_id.as_str().into(),
        delivery.sequence.into(),
        delivery.status.as_str().into(),
        by_hand.into(),
        delivery.attempts.into(),
        delivery.round_attempts.into(),
        delivery.next_retry_at.map(Timestamp::micros).into(),
        delivery.last_status_code.into(),
        delivery.last_error.clone().into(),
        delivery.updated_at.map(Timestamp::micros).into(),
    ]);
    values
}

pub fn of_event(tx: &mut Tx<'_>, scope: Scope, event: Id<Event>) -> Result<Vec<Delivery>, Error> {
    let sql = format!("{SELECT_OF_EVENT}{}", tx.lock_suffix());
    tx.query(&sql, &key(scope, &event.to_string()))?.iter().map(read).collect()
}

/// The same for whoever only shows them: one that can't be read hides neither the others nor the event.
pub fn readable_of_event(tx: &mut Tx<'_>, scope: Scope, event: Id<Event>) -> Result<Vec<Delivery>, Error> {
    let rows = tx.query(SELECT_OF_EVENT, &key(scope, &event.to_string()))?;
    rows.iter().filter_map(|row| unless_damaged(read(row), "a delivery of an event").transpose()).collect()
}

/// Deliveries to one endpoint whose time has come, the longest due first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub scope: Scope,
    pub endpoint: Id<WebhookEndpoint>,
    pub events: Vec<Id<Event>>,
}

/// Endpoints to which something is due that nobody holds, the one that waits longest first.
pub fn endpoints_due(tx: &mut Tx<'_>) -> Result<Vec<Id<WebhookEndpoint>>, Error> {
    let now = tx.now();
    let due = owed(tx, &[])?.into_iter().take_while(|(_, due_at)| *due_at <= now);
    Ok(due.map(|(endpoint, _)| endpoint).collect())
}

/// What is due to the endpoints of `line` and waits for no other, up to `limit`, endpoint by endpoint. One after the other gets its
/// share of eight as long as there is room; what is left goes to them in the same order. So there is something for each of the first
/// `limit / 8` that are owed any, and for the first in any case, whatever the others are owed: but once a claim has something, it ends
/// with the 32nd that was asked `in_vain`, whatever is due to those waits for what is under way.
pub fn due(
    tx: &mut Tx<'_>,
    limit: usize,
    line: &[Id<WebhookEndpoint>],
    in_vain: &mut Vec<Id<WebhookEndpoint>>,
    has_some: bool,
) -> Result<Vec<Due>, Error> {
    let sql = format!("{}{}", ready(DUE), tx.skip_locked_suffix());
    let (mut all, mut room) = (Vec::<(Due, Vec<_>)>::new(), limit);
    for endpoint in line {
        if room == 0 || ((has_some || room < limit) && in_vain.len() >= MOST_IN_VAIN) {
            break;
        }
        if in_vain.contains(endpoint) {
            continue;
        }
        // With what it gets if the others leave room: it is asked for once.
        let found = due_to(tx, &sql, *endpoint, room)?;
        if found.is_empty() {
            in_vain.push(*endpoint);
        }
        for mut due in found {
            let more = due.events.split_off(due.events.len().min(SHARE));
            room -= due.events.len();
            all.push((due, more));
        }
    }
    for (due, more) in &mut all {
        more.truncate(room);
        room -= more.len();
        due.events.append(more);
    }
    Ok(all.into_iter().map(|(due, _)| due).collect())
}

/// Up to `most` of one endpoint.
fn due_to(tx: &mut Tx<'_>, sql: &str, endpoint: Id<WebhookEndpoint>, most: usize) -> Result<Vec<Due>, Error> {
    let [endpoint_id, now, latest] = of_endpoint(endpoint, tx.now());
    let due = |row: &Row| Ok((scope_of(row)?, read_id(&row.get::<String>("event_id")?)?));
    let mut all: Vec<Due> = Vec::new();
    for row in &tx.query(sql, &[endpoint_id, now, latest, limit(most)])? {
        let Some((scope, event)) = unless_damaged(due(row), "a delivery")? else { continue };
        match all.last_mut().filter(|last| last.scope == scope) {
            Some(last) => last.events.push(event),
            None => all.push(Due { scope, endpoint, events: vec![event] }),
        }
    }
    Ok(all)
}

/// Endpoints that are owed something that nobody holds, by the time at which the first of it is due.
fn owed(tx: &mut Tx<'_>, but: &[Id<WebhookEndpoint>]) -> Result<Vec<(Id<WebhookEndpoint>, Timestamp)>, Error> {
    let owed = |row: &Row| {
        let endpoint = read_id(&row.get::<String>("endpoint_id")?)?;
        let due_at = row.get::<Option<i64>>("due_at")?;
        Ok(due_at.map(|due_at| (endpoint, Timestamp::from_micros(due_at))))
    };
    let mut all = Vec::new();
    for row in &tx.query(OWED, &by_now(tx.now()))? {
        all.extend(unless_damaged(owed(row), "what is owed to an endpoint")?.flatten());
    }
    all.retain(|(endpoint, _)| !but.contains(endpoint));
    Ok(all)
}

/// Which leases count: those that ended by now, and those that end later than any could.
fn by_now(now: Timestamp) -> [Value; 2] {
    [now.micros().into(), now.plus(LONGEST_LEASE).micros().into()]
}

/// The same of one endpoint.
fn of_endpoint(endpoint: Id<WebhookEndpoint>, now: Timestamp) -> [Value; 3] {
    let [now, latest] = by_now(now);
    [endpoint.to_string().into(), now, latest]
}

fn ready(sql: &str) -> String {
    let ready = match domain::planted!(Defect::DeliveredOutOfOrder) {
        true => READY.replace("due.by_hand = 1", "1 = 1"),
        false => READY.to_owned(),
    };
    sql.replace("{ready}", &ready)
}

/// Holds what is due until `lease_until`, in the order in which it is named; not what another worker was faster to hold.
pub fn lease(tx: &mut Tx<'_>, due: &Due, lease_until: Timestamp) -> Result<Vec<ClaimedDelivery>, Error> {
    let (events, ids) = listed(7, due.events.iter().map(Id::to_string));
    let [organization, mode, endpoint] = key(due.scope, &due.endpoint.to_string());
    let [_, now, latest] = of_endpoint(due.endpoint, tx.now());
    let mut values = vec![organization, mode, endpoint, lease_until.micros().into(), now, latest];
    values.extend(ids);
    let claimed = |row: &Row| Ok(ClaimedDelivery { delivery: read(row)?, lease_token: row.get("lease_token")? });
    let mut all = Vec::with_capacity(due.events.len());
    for row in &tx.query(&LEASE.replace("{events}", &events), &values)? {
        all.extend(unless_damaged(claimed(row), "a delivery")?);
    }
    all.sort_by_key(|held| due.events.iter().position(|event| *event == held.delivery.event));
    Ok(all)
}

/// Stores what an attempt brought; `false` when the lease had passed to another worker, or when it is to be tried again but was given
/// up meanwhile.
pub fn finish(tx: &mut Tx<'_>, claimed: &ClaimedDelivery) -> Result<bool, Error> {
    let delivery = &claimed.delivery;
    let mut values = Vec::from(key(delivery.scope, &delivery.event.to_string()));
    values.extend([
        delivery.endpoint.to_string().into(),
        delivery.status.as_str().into(),
        delivery.attempts.into(),
        delivery.round_attempts.into(),
        delivery.next_retry_at.map(Timestamp::micros).into(),
        delivery.last_status_code.into(),
        delivery.last_error.clone().into(),
        claimed.lease_token.into(),
        delivery.updated_at.map(Timestamp::micros).into(),
    ]);
    Ok(tx.execute(FINISH, &values)? == 1)
}

/// Makes due what is the first of an object now that `delivery` has ended. Whoever is publishing what comes behind that one has locked
/// it in [`insert_behind`] and is waited for, or sees that it has ended.
pub fn call_next(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<(), Error> {
    call_first(tx, delivery.scope, delivery.endpoint, &delivery.object_id).map(drop)
}

/// Whether it was called.
fn call_first(tx: &mut Tx<'_>, scope: Scope, endpoint: Id<WebhookEndpoint>, object: &str) -> Result<bool, Error> {
    let to = key(scope, &endpoint.to_string());
    let first = tx.query(&format!("{FIRST}{}", tx.lock_suffix()), &first_of(&to, object))?;
    let events = first.iter().map(|row| row.get("event_id")).collect::<Result<Vec<_>, _>>()?;
    call(tx, &to, events.into_iter())
}

/// The values of [`FIRST`].
fn first_of(to: &[Value; 3], object: &str) -> Vec<Value> {
    to.iter().cloned().chain([object.into()]).collect()
}

/// Whether any of them was not due yet, which it is now.
fn call(tx: &mut Tx<'_>, to: &[Value; 3], events: impl ExactSizeIterator<Item = String>) -> Result<bool, Error> {
    if events.len() == 0 || domain::planted!(Defect::NextNotCalled) {
        return Ok(false);
    }
    let (events, ids) = listed(5, events);
    let mut values = Vec::from(to.clone());
    values.push(tx.now().micros().into());
    values.extend(ids);
    let is_called = tx.execute(&CALL.replace("{events}", &events), &values)? > 0;
    if is_called {
        tx.wake(Worker::Deliveries);
    }
    Ok(is_called)
}

/// By its key, as [`LEASE`].
const IS_BY_HAND: &str = "\
select by_hand
from webhook_deliveries
where organization_id = $1 and mode = $2 and event_id = $3 and endpoint_id = $4 and status || '' = 'pending'";

/// Whether it is open because somebody asked for it.
pub fn is_by_hand(
    tx: &mut Tx<'_>,
    scope: Scope,
    event: Id<Event>,
    endpoint: Id<WebhookEndpoint>,
) -> Result<bool, Error> {
    let mut values = Vec::from(key(scope, &event.to_string()));
    values.push(endpoint.to_string().into());
    Ok(tx.query_opt(IS_BY_HAND, &values)?.map(|row| row.get::<i64>("by_hand")).transpose()? == Some(1))
}

/// Opens a delivery again, or makes it due, at an operator's or merchant's word: it waits for no other.
pub fn retry(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<(), Error> {
    let mut values = Vec::from(key(delivery.scope, &delivery.event.to_string()));
    values.extend([
        delivery.endpoint.to_string().into(),
        delivery.status.as_str().into(),
        delivery.round_attempts.into(),
        delivery.next_retry_at.map(Timestamp::micros).into(),
        delivery.updated_at.map(Timestamp::micros).into(),
    ]);
    tx.wake(Worker::Deliveries);
    tx.guarded(TABLE, RETRY, &values)
}

/// What was given up for good: nobody is owed it any more.
pub fn forget(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<(), Error> {
    let mut values = Vec::from(key(delivery.scope, &delivery.event.to_string()));
    values.push(delivery.endpoint.to_string().into());
    tx.guarded(TABLE, FORGET, &values)
}

/// When the first of those that wait for no other is due; nothing of the endpoints of `but`.
pub fn next_due(tx: &mut Tx<'_>, but: &[Id<WebhookEndpoint>]) -> Result<Option<Timestamp>, Error> {
    let (sql, now) = (ready(NEXT_DUE), tx.now());
    let mut next: Option<Timestamp> = None;
    for (endpoint, first) in owed(tx, but)? {
        // What the others are owed is due later, or as late.
        if next.is_some_and(|next| next <= first.max(now)) {
            break;
        }
        if let Some(row) = tx.query_opt(&sql, &of_endpoint(endpoint, now))? {
            let due_at = Timestamp::from_micros(row.get("next_retry_at")?);
            next = Some(next.map_or(due_at, |next| next.min(due_at)));
        }
    }
    Ok(next)
}

fn read(row: &Row) -> Result<Delivery, Error> {
    let status: String = row.get("status")?;
    let (attempts, round_attempts): (i64, i64) = (row.get("attempts")?, row.get("round_attempts")?);
    // What comes of the next one is added up with these.
    if !(0..=attempts).contains(&round_attempts) || attempts > i64::from(u32::MAX) {
        return Err(Error::Corrupt(format!("{round_attempts} of {attempts} attempts can't have been made")));
    }
    Ok(Delivery {
        scope: scope_of(row)?,
        event: read_id(&row.get::<String>("event_id")?)?,
        endpoint: read_id::<WebhookEndpoint>(&row.get::<String>("endpoint_id")?)?,
        object_id: row.get("object_id")?,
        sequence: row.get("sequence")?,
        status: DeliveryStatus::parse(&status)
            .ok_or_else(|| Error::Corrupt(format!("{status:?} is no delivery status")))?,
        attempts,
        round_attempts,
        next_retry_at: row.get("next_retry_at")?,
        last_status_code: row.get("last_status_code")?,
        last_error: row.get("last_error")?,
        updated_at: row.get("updated_at")?,
    })
}
