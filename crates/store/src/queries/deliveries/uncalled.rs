//! What waits to be called though nothing of its object is in front of it. Whoever ends a delivery calls the next; what nobody called,
//! because a process of another version ended it, or a row was mended by hand, would wait for ever.

use domain::webhook::{Delivery, WebhookEndpoint};
use domain::{Id, Scope, Timestamp};

use crate::error::Error;
use crate::queries::{explained, read_id, scope_of, unless_damaged};
use crate::sql::{Row, Value};
use crate::tx::Tx;

/// The first that is open of the next object: one step in the index, however many wait behind it.
const FIRST_OF_NEXT: &str = "\
select organization_id, mode, endpoint_id, object_id, by_hand, attempts, next_retry_at
from webhook_deliveries
where '' || status = 'pending' and (endpoint_id, object_id) > ($1, $2)
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
pub type LookedAt = (String, String);

/// Objects of which the first open delivery may have been forgotten, and where to go on, if there are more.
pub fn uncalled(tx: &mut Tx<'_>, mut after: LookedAt) -> Result<(Vec<Object>, Option<LookedAt>), Error> {
    let mut found = Vec::new();
    for _ in 0..PART {
        let Some(row) = tx.query_opt(FIRST_OF_NEXT, &values(&after))? else { return Ok((found, None)) };
        after = (row.get("endpoint_id")?, row.get("object_id")?);
        found.extend(unless_damaged(forgotten(&row), "a delivery")?.flatten());
    }
    Ok((found, Some(after)))
}

/// One that is asked for by hand tells nothing of those behind it.
fn forgotten(row: &Row) -> Result<Option<Object>, Error> {
    let waits = row.get::<Option<i64>>("next_retry_at")? == Some(Timestamp::LATEST.micros());
    let is_first_try = row.get::<i64>("attempts")? == 0;
    if row.get::<i64>("by_hand")? == 0 && !(waits && is_first_try) {
        return Ok(None);
    }
    let endpoint = read_id(&row.get::<String>("endpoint_id")?)?;
    Ok(Some(Object { scope: scope_of(row)?, endpoint, id: row.get("object_id")? }))
}

/// Calls the first of an object, if it is still to be called.
pub fn call(tx: &mut Tx<'_>, object: &Object) -> Result<(), Error> {
    // Locked before the deliveries, as by whoever makes it inactive.
    let found =
        unless_damaged(tx.find::<WebhookEndpoint>(object.scope, object.endpoint), "the endpoint of a delivery")?;
    // What is being given up is looked for by the times of its next tries: they stay as they are.
    let is_left = found.is_none_or(|found| found.is_some_and(|endpoint| endpoint.giving_up.is_some()));
    match is_left {
        true => Ok(()),
        false => super::call_first(tx, object.scope, object.endpoint, &object.id),
    }
}

fn values((endpoint, object): &LookedAt) -> [Value; 2] {
    [endpoint.as_str().into(), object.as_str().into()]
}

/// How the database would find the next object, for whoever checks that no index is missing.
pub fn plan_of_looking(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<(&'static str, String), Error> {
    let after = (delivery.endpoint.to_string(), delivery.object_id.clone());
    Ok(("next object", explained(tx, FIRST_OF_NEXT, &values(&after))?))
}
