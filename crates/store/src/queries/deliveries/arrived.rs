//! What arrived, many at once.

use domain::Id;
use domain::event::Event;
use domain::webhook::WebhookEndpoint;

use super::ClaimedDelivery;
use crate::entity::key;
use crate::error::Error;
use crate::queries::{listed, read_id};
use crate::sql::{Row, Value};
use crate::tx::Tx;

/// By its key, as [`super::LEASE`].
pub(super) const HELD: &str = "\
select event_id, by_hand, lease_token
from webhook_deliveries
where organization_id = $1 and mode = $2 and endpoint_id = $3 and status || '' = 'pending' and event_id in ({events})";

/// Whose turn it is when these are out of the way. Asked when all of them are locked: whoever is publishing what comes behind one waits
/// for it, or was there before.
pub(super) const NEXT_OF: &str = "\
select tried.event_id, (
    select waiting.event_id
    from webhook_deliveries as waiting
    where waiting.endpoint_id = $3
    and waiting.object_id = tried.object_id
    and waiting.sequence <> tried.sequence
    and '' || waiting.status = 'pending'
    and waiting.by_hand = 0
    order by waiting.sequence
    limit 1) as next_id
from webhook_deliveries as tried
where tried.organization_id = $1 and tried.mode = $2 and tried.endpoint_id = $3 and tried.event_id in ({events})";

const DELIVERED: &str = "\
update webhook_deliveries
set status = 'delivered', attempts = attempts + 1, round_attempts = round_attempts + 1, next_retry_at = null,
    last_status_code = $4, last_error = null, updated_at = case when updated_at > $5 then updated_at else $5 end, lease_until = 0
where organization_id = $1 and mode = $2 and endpoint_id = $3 and event_id in ({events})";

/// Stores that deliveries to one endpoint arrived, with an answer of `status_code`, and calls what waited for them. Gives those for
/// which that was done: not what another worker holds by now, what was given up, or what somebody else is just about to change, it or
/// what waits for it. That is waited for by nobody here: it could be waiting in its turn.
pub fn delivered(
    tx: &mut Tx<'_>,
    endpoint: &WebhookEndpoint,
    status_code: u16,
    claimed: &[&ClaimedDelivery],
) -> Result<Vec<Id<Event>>, Error> {
    let to = key(endpoint.scope, &endpoint.id.to_string());
    let mut ended = Vec::with_capacity(claimed.len());
    for open in locked(tx, &to, claimed.iter().map(|held| held.delivery.event))? {
        let is_held =
            claimed.iter().any(|held| (held.delivery.event, held.lease_token) == (open.event, open.lease_token));
        ended.extend(is_held.then_some(open.event));
    }
    // What is being given up is looked for by the times of its next tries: they stay as they are.
    let waiting = match endpoint.giving_up {
        Some(_) => Vec::new(),
        None => next_of(tx, &to, &ended)?,
    };
    let mut called = locked(tx, &to, waiting.iter().map(|waits| waits.event))?;
    // One that somebody took out of the order meanwhile leaves its turn to another.
    called.retain(|open| !open.by_hand);
    let is_called = |waits: &Waits| called.iter().any(|open| open.event == waits.event);
    ended.retain(|event| waiting.iter().all(|waits| waits.behind != *event || is_called(waits)));
    if ended.is_empty() {
        return Ok(ended);
    }
    let (events, ids) = listed(6, ended.iter().map(Id::to_string));
    let mut values = Vec::from(to.clone());
    values.extend([i64::from(status_code).into(), tx.now().micros().into()]);
    values.extend(ids);
    tx.execute(&DELIVERED.replace("{events}", &events), &values)?;
    super::call(tx, &to, called.iter().map(|open| open.event.to_string()))?;
    Ok(ended)
}

/// One that nobody else is about to change.
struct Open {
    event: Id<Event>,
    by_hand: bool,
    /// With which it was last held.
    lease_token: i64,
}

/// Those of them that are open, without those that somebody else is about to change.
fn locked(
    tx: &mut Tx<'_>,
    to: &[Value; 3],
    events: impl ExactSizeIterator<Item = Id<Event>>,
) -> Result<Vec<Open>, Error> {
    if events.len() == 0 {
        return Ok(Vec::new());
    }
    let (events, ids) = listed(4, events.map(|event| event.to_string()));
    let sql = format!("{}{}", HELD.replace("{events}", &events), tx.skip_locked_suffix());
    let values: Vec<Value> = to.iter().cloned().chain(ids).collect();
    let read = |row: &Row| {
        let event = read_id(&row.get::<String>("event_id")?)?;
        Ok(Open { event, by_hand: row.get::<i64>("by_hand")? != 0, lease_token: row.get("lease_token")? })
    };
    tx.query(&sql, &values)?.iter().map(read).collect()
}

/// One whose turn it is when another has ended.
struct Waits {
    event: Id<Event>,
    behind: Id<Event>,
}

/// What waits for some of them.
fn next_of(tx: &mut Tx<'_>, to: &[Value; 3], tried: &[Id<Event>]) -> Result<Vec<Waits>, Error> {
    if tried.is_empty() {
        return Ok(Vec::new());
    }
    let (events, ids) = listed(4, tried.iter().map(Id::to_string));
    let values: Vec<Value> = to.iter().cloned().chain(ids).collect();
    let mut all = Vec::new();
    for row in &tx.query(&NEXT_OF.replace("{events}", &events), &values)? {
        if let Some(next) = row.get::<Option<String>>("next_id")? {
            all.push(Waits { event: read_id(&next)?, behind: read_id(&row.get::<String>("event_id")?)? });
        }
    }
    Ok(all)
}
