//! What was put off by a clock that was ahead.

use domain::Timestamp;
use domain::event::Event;
use domain::webhook::{Delivery, WebhookEndpoint, longest_wait};
use domain::{Id, Scope};

use crate::entity::key;
use crate::error::Error;
use crate::queries::{explained, limit, read_id, scope_of, unless_damaged};
use crate::sql::{Row, Value};
use crate::tx::Tx;
use crate::wakes::Worker;

/// Every endpoint that is owed something which is due later than `$1` and does not wait to be called: as [`super::OWED`], with one step
/// in the index for each.
const OWED_LATER: &str = "\
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
select owed.endpoint_id, (select later.next_retry_at
    from webhook_deliveries as later
    where later.status = 'pending' and later.endpoint_id = owed.endpoint_id
    and later.next_retry_at > $1 and later.next_retry_at < 253402207199000000
    order by later.next_retry_at
    limit 1) as due_at
from owed
where owed.endpoint_id is not null
order by owed.endpoint_id";

const LATER: &str = "\
select organization_id, mode, event_id
from webhook_deliveries
where endpoint_id = $1 and status = 'pending' and next_retry_at > $2 and next_retry_at < 253402207199000000
order by next_retry_at, event_id
limit $3";

/// Each by its whole key, as [`super::LEASE`].
const BRING_BACK: &str = "\
update webhook_deliveries
set next_retry_at = $5, updated_at = case when updated_at > $5 then updated_at else $5 end
where organization_id = $1 and mode = $2 and event_id = $3 and endpoint_id = $4 and status || '' = 'pending' and next_retry_at > $6";

/// In one transaction.
const PART: usize = 500;

/// Twice the longest wait there is, because the clocks of two processes differ.
fn latest(now: Timestamp) -> Timestamp {
    now.plus(longest_wait() * 2)
}

/// Makes due now what is due later than anything can be: it was owed or put off while a clock was ahead, and whatever happens to its
/// object waits behind it. True while there may be more.
pub fn bring_back(tx: &mut Tx<'_>) -> Result<bool, Error> {
    let latest = Value::from(latest(tx.now()).micros());
    let mut room = PART;
    for row in &tx.query(OWED_LATER, std::slice::from_ref(&latest))? {
        if room == 0 {
            break;
        }
        let Some(endpoint) = unless_damaged(owed_later(row), "what is owed to an endpoint")?.flatten() else {
            continue;
        };
        room -= bring_back_some(tx, endpoint, &latest, room)?;
    }
    if room < PART {
        tx.wake(Worker::Deliveries);
    }
    Ok(room == 0)
}

/// Up to `most` of one endpoint; how many there were.
fn bring_back_some(
    tx: &mut Tx<'_>,
    endpoint: Id<WebhookEndpoint>,
    latest: &Value,
    most: usize,
) -> Result<usize, Error> {
    let mut later = Vec::new();
    for row in &tx.query(LATER, &[endpoint.to_string().into(), latest.clone(), limit(most)])? {
        later.extend(unless_damaged(named(row), "a delivery")?);
    }
    let Some(&(scope, _)) = later.first() else { return Ok(0) };
    // Locked before the deliveries, as by whoever makes it inactive.
    let found = unless_damaged(tx.find::<WebhookEndpoint>(scope, endpoint), "the endpoint of a delivery")?;
    // What is being given up is looked for by the times of its next tries: they stay as they are.
    let is_left = found.is_none_or(|found| found.is_some_and(|endpoint| endpoint.giving_up.is_some()));
    if is_left {
        return Ok(0);
    }
    for &(scope, event) in &later {
        let values = brought_back(tx, scope, event, endpoint, latest);
        tx.append(super::TABLE, BRING_BACK, &values)?;
    }
    Ok(later.len())
}

fn owed_later(row: &Row) -> Result<Option<Id<WebhookEndpoint>>, Error> {
    let due_at = row.get::<Option<i64>>("due_at")?;
    due_at.map(|_| read_id(&row.get::<String>("endpoint_id")?)).transpose()
}

fn named(row: &Row) -> Result<(Scope, Id<Event>), Error> {
    Ok((scope_of(row)?, read_id(&row.get::<String>("event_id")?)?))
}

/// The values of [`BRING_BACK`].
fn brought_back(
    tx: &Tx<'_>,
    scope: Scope,
    event: Id<Event>,
    endpoint: Id<WebhookEndpoint>,
    latest: &Value,
) -> Vec<Value> {
    let mut values = Vec::from(key(scope, &event.to_string()));
    values.extend([endpoint.to_string().into(), tx.now().micros().into(), latest.clone()]);
    values
}

/// How the database would go about each step of [`bring_back`], for whoever checks that no index is missing.
pub fn plans_of_bringing_back(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<[(&'static str, String); 3], Error> {
    let latest = Value::from(latest(tx.now()).micros());
    let endpoint = delivery.endpoint;
    let of_endpoint = [endpoint.to_string().into(), latest.clone(), limit(PART)];
    let values = brought_back(tx, delivery.scope, delivery.event, endpoint, &latest);
    Ok([
        ("owed", explained(tx, OWED_LATER, &[latest])?),
        ("open", explained(tx, LATER, &of_endpoint)?),
        ("bring back", explained(tx, BRING_BACK, &values)?),
    ])
}
