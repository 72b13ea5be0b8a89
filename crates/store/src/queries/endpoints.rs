//! Webhook endpoints of one organization and mode.

use domain::event::{Event, EventType};
use domain::webhook::{Delivery, EventFilter, LookedAt, WebhookEndpoint};
use domain::{Id, Scope, Timestamp};
use serde::Deserialize;

use super::{Filter, Page, PageRequest, explained, read_id, unless_damaged};
use crate::checksum;
use crate::entity::{key, parse};
use crate::error::Error;
use crate::sql::{Row, Value};
use crate::tx::Tx;

const SELECT_BY_STATUS: &str = "\
select version, doc, id
from webhook_endpoints
where organization_id = $1 and mode = $2 and status = $3
order by id";

const DELETE: &str = "\
delete from webhook_endpoints
where organization_id = $1 and mode = $2 and id = $3";

/// Found by its index alone, whatever else the organization was told. What is to be given up among them is not asked for
/// here: the next that is could be behind any number of others.
const OPEN: &str = "\
select event_id, next_retry_at
from webhook_deliveries
where endpoint_id = $1 and status = 'pending' and (next_retry_at, event_id) > ($2, $3)
order by next_retry_at, event_id
limit $4";

/// Each by its whole key: whatever a database knows of its rows, it reads no other, since the status is asked for as no index has it.
const GIVE_UP: &str = "\
update webhook_deliveries
set status = 'failed', next_retry_at = null, updated_at = $6
where organization_id = $1 and mode = $2 and event_id = $3 and endpoint_id = $4 and status || '' = 'pending'
and by_hand <= $5";

/// Of an endpoint's open deliveries, in one transaction.
const PART: i64 = 500;

/// To which events are owed.
#[derive(Debug, Clone, Default)]
pub struct Active {
    pub endpoints: Vec<WebhookEndpoint>,
    /// Written by a later version that runs beside this one, or damaged: they keep nothing of their merchant's from happening, and
    /// what they are owed waits for whoever can read them.
    pub unreadable: Vec<Unreadable>,
}

#[derive(Debug, Clone)]
pub struct Unreadable {
    pub id: Id<WebhookEndpoint>,
    /// Nothing: not even that can be read.
    enabled_events: Option<Vec<EventFilter>>,
}

impl Unreadable {
    /// Rather one event too many than one that is lost.
    pub fn wants(&self, kind: EventType) -> bool {
        self.enabled_events.as_ref().is_none_or(|filters| filters.iter().any(|filter| filter.matches(kind)))
    }
}

impl Active {
    pub fn count(&self) -> usize {
        self.endpoints.len() + self.unreadable.len()
    }

    pub fn find(&self, id: Id<WebhookEndpoint>) -> Option<&WebhookEndpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.id == id)
    }

    pub fn is_unreadable(&self, id: Id<WebhookEndpoint>) -> bool {
        self.unreadable.iter().any(|one| one.id == id)
    }

    /// To whom such an event is owed.
    pub fn wanting(&self, kind: EventType) -> impl Iterator<Item = Id<WebhookEndpoint>> {
        let known = self.endpoints.iter().filter(move |endpoint| endpoint.wants(kind)).map(|endpoint| endpoint.id);
        known.chain(self.unreadable.iter().filter(move |one| one.wants(kind)).map(|one| one.id))
    }
}

pub fn active(tx: &mut Tx<'_>, scope: Scope) -> Result<Active, Error> {
    let mut active = Active::default();
    for row in &tx.query(SELECT_BY_STATUS, &key(scope, "active"))? {
        match parse(row) {
            Ok(endpoint) => active.endpoints.push(endpoint),
            Err(Error::Corrupt(why)) => active.unreadable.extend(unless_damaged(unreadable(row, &why), "an endpoint")?),
            Err(error) => return Err(error),
        }
    }
    Ok(active)
}

/// Those that we made inactive, and nobody since: the others are as their merchant wants them. One that can't be read is passed over.
pub fn disabled(tx: &mut Tx<'_>, scope: Scope) -> Result<Vec<WebhookEndpoint>, Error> {
    let rows = tx.query(SELECT_BY_STATUS, &key(scope, "inactive"))?;
    let read = rows.iter().filter_map(|row| unless_damaged(parse::<WebhookEndpoint>(row), "an endpoint").transpose());
    let is_ours = |endpoint: &WebhookEndpoint| endpoint.disable_reason.is_some();
    read.filter(|read| read.as_ref().map_or(true, is_ours)).collect()
}

fn unreadable(row: &Row, why: &str) -> Result<Unreadable, Error> {
    #[derive(Deserialize)]
    struct Wanted {
        enabled_events: Vec<EventFilter>,
    }
    let id = read_id(&row.get::<String>("id")?)?;
    tracing::error!(endpoint = %id, why, "an endpoint can't be read: what it is owed waits until it can");
    let as_written = |doc: &String| checksum::check(doc, format_args!("it")).is_ok();
    let document = row.get::<String>("doc").ok().filter(as_written);
    let wanted = document.and_then(|doc| serde_json::from_str::<Wanted>(&doc).ok());
    Ok(Unreadable { id, enabled_events: wanted.map(|wanted| wanted.enabled_events) })
}

pub fn list(tx: &mut Tx<'_>, scope: Scope, page: &PageRequest) -> Result<Page<WebhookEndpoint>, Error> {
    Filter::within(scope).entities(tx, page)
}

pub fn delete(tx: &mut Tx<'_>, endpoint: &WebhookEndpoint) -> Result<(), Error> {
    tx.guarded("webhook_endpoints", DELETE, &key(endpoint.scope, &endpoint.id.to_string()))
}

/// A part of what is open for an endpoint that is inactive or deleted (contract §4.16); of one that is active again, what it
/// was owed of events until `until` and nobody asked for by hand. Where to go on, if there may be more.
pub fn give_up_part(
    tx: &mut Tx<'_>,
    scope: Scope,
    endpoint: Id<WebhookEndpoint>,
    until: Option<Timestamp>,
    after: Option<&LookedAt>,
) -> Result<Option<LookedAt>, Error> {
    let last = until.map(|until| Id::<Event>::new(until, [0xff; 10]).to_string());
    let (due_at, event) = after.map_or((i64::MIN, ""), |(due_at, event)| (due_at.micros(), event));
    let open = tx.query(OPEN, &[endpoint.to_string().into(), due_at.into(), event.into(), PART.into()])?;
    let mut looked_at = None;
    for row in &open {
        let event: String = row.get("event_id")?;
        if last.as_ref().is_none_or(|last| event <= *last) {
            // One that has ended meanwhile stays as it is, and so does one that is asked for.
            give_up(tx, scope, &event, endpoint, until.is_none())?;
        }
        looked_at = Some((Timestamp::from_micros(row.get("next_retry_at")?), event));
    }
    Ok(looked_at.filter(|_| i64::try_from(open.len()).is_ok_and(|found| found == PART)))
}

fn give_up(
    tx: &mut Tx<'_>,
    scope: Scope,
    event: &str,
    endpoint: Id<WebhookEndpoint>,
    by_hand: bool,
) -> Result<(), Error> {
    let values = given_up(tx, scope, event, endpoint, by_hand);
    tx.append("webhook_deliveries", GIVE_UP, &values)
}

/// The values of [`GIVE_UP`].
fn given_up(tx: &Tx<'_>, scope: Scope, event: &str, endpoint: Id<WebhookEndpoint>, by_hand: bool) -> Vec<Value> {
    let mut values = Vec::from(key(scope, event));
    values.extend([endpoint.to_string().into(), by_hand.into(), tx.now().micros().into()]);
    values
}

/// How the database would go about giving up one delivery, and about finding what is open of its endpoint.
pub fn plans_of_giving_up(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<[(&'static str, String); 2], Error> {
    let (event, endpoint) = (delivery.event.to_string(), delivery.endpoint);
    let values = given_up(tx, delivery.scope, &event, endpoint, false);
    let open = [endpoint.to_string().into(), tx.now().micros().into(), event.into(), PART.into()];
    Ok([("give up", explained(tx, GIVE_UP, &values)?), ("open", explained(tx, OPEN, &open)?)])
}

/// This one is not sent any more, unless somebody has asked for it.
pub fn give_up_one(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<(), Error> {
    give_up(tx, delivery.scope, &delivery.event.to_string(), delivery.endpoint, false)
}
