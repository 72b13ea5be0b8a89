//! What waits to be called though nothing of its object is in front of it. Whoever ends a delivery calls the next; what nobody called,
//! because it was published while its endpoint was made inactive, or a row was mended by hand, would wait for ever.

use domain::webhook::{Delivery, WebhookEndpoint};
use domain::{Id, Scope, Timestamp};

use crate::error::Error;
use crate::queries::{explained, read_id, scope_of, unless_damaged};
use crate::sql::{Row, Value};
use crate::tx::Tx;

/// The first in the order of the next object of an endpoint. One step in the index, however many wait behind it.
const OF_NEXT_OBJECT: &str = "\
select organization_id, mode, endpoint_id, object_id, next_retry_at
from webhook_deliveries
where endpoint_id = $1 and object_id > $2 and '' || status = 'pending' and by_hand = 0
order by object_id, sequence
limit 1";

/// The same of the next endpoint.
const OF_NEXT_ENDPOINT: &str = "\
select organization_id, mode, endpoint_id, object_id, next_retry_at
from webhook_deliveries
where endpoint_id > $1 and '' || status = 'pending' and by_hand = 0
order by endpoint_id, object_id, sequence
limit 1";

/// In one transaction.
const PART: usize = 500;

/// What one endpoint is told of one object: each event after the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub scope: Scope,
    pub endpoint: Id<WebhookEndpoint>,
    pub id: String,
}

/// As far as somebody has looked: endpoint and object as they are stored, since neither has to be readable.
#[derive(Debug, Clone)]
pub struct LookedAt {
    endpoint: Value,
    object: Value,
}

impl LookedAt {
    /// Before all of them.
    pub fn nothing() -> Self {
        Self { endpoint: "".into(), object: "".into() }
    }
}

/// Objects of which the first open delivery was forgotten, and where to go on, if there are more.
pub fn uncalled(tx: &mut Tx<'_>, mut after: LookedAt) -> Result<(Vec<Object>, Option<LookedAt>), Error> {
    let mut found = Vec::new();
    for _ in 0..PART {
        let of_object = tx.query_opt(OF_NEXT_OBJECT, &[after.endpoint.clone(), after.object.clone()])?;
        let next = match of_object {
            Some(row) => Some(row),
            None => tx.query_opt(OF_NEXT_ENDPOINT, &[after.endpoint.clone()])?,
        };
        let Some(row) = next else { return Ok((found, None)) };
        after = LookedAt { endpoint: row.values()[2].clone(), object: row.values()[3].clone() };
        found.extend(unless_damaged(forgotten(&row), "a delivery")?.flatten());
    }
    Ok((found, Some(after)))
}

fn forgotten(row: &Row) -> Result<Option<Object>, Error> {
    if row.get::<Option<i64>>("next_retry_at")? != Some(Timestamp::LATEST.micros()) {
        return Ok(None);
    }
    let endpoint = read_id(&row.get::<String>("endpoint_id")?)?;
    Ok(Some(Object { scope: scope_of(row)?, endpoint, id: row.get("object_id")? }))
}

/// Calls the first of an object, if it is still to be called. Whether it was.
pub fn call_forgotten(tx: &mut Tx<'_>, object: &Object) -> Result<bool, Error> {
    // Locked before the deliveries, as by whoever makes it inactive.
    let found =
        unless_damaged(tx.find::<WebhookEndpoint>(object.scope, object.endpoint), "the endpoint of a delivery")?;
    // What is being given up is looked for by the times of its next tries: they stay as they are.
    let is_left = found.is_none_or(|found| found.is_some_and(|endpoint| endpoint.giving_up.is_some()));
    Ok(!is_left && super::call_first(tx, object.scope, object.endpoint, &object.id)?)
}

/// How the database would find the next object, for whoever checks that no index is missing.
pub fn plans_of_looking(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<[(&'static str, String); 2], Error> {
    let (endpoint, object): (Value, Value) = (delivery.endpoint.to_string().into(), delivery.object_id.as_str().into());
    Ok([
        ("next object", explained(tx, OF_NEXT_OBJECT, &[endpoint.clone(), object])?),
        ("next endpoint", explained(tx, OF_NEXT_ENDPOINT, &[endpoint])?),
    ])
}
