//! Webhook endpoints and deliveries: what is owed to whom, and what an attempt brought.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use domain::event::{Event, EventType};
use domain::job::{ClaimedJob, Job};
use domain::organization::Organization;
use domain::webhook::{
    Attempted, Delivery, DeliveryStatus, DisableReason, EndpointStatus, EventFilter, WebhookEndpoint,
};
use domain::{Id, Metadata, Refusal, Scope, Timestamp};
use store::Tx;
use store::queries::deliveries::{self, ClaimedDelivery};
use store::queries::endpoints::Active;
use store::queries::idempotency::IdempotencyKey;
use store::queries::{endpoints, events, jobs, unless_damaged};

use super::delivery_places::{Places, is_failing};
use super::{Context, load, mails};
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};
use crate::signing::{self, WebhookSecret};
use crate::wire::webhooks::{EndpointView, EventView, envelope};

#[derive(Debug, Clone)]
pub struct NewEndpoint {
    pub url: String,
    pub enabled_events: Vec<EventFilter>,
    pub description: Option<String>,
    pub metadata: Metadata,
}

/// An endpoint with the secret that is shown this once.
#[derive(Debug, Clone)]
pub struct WithSecret {
    pub endpoint: WebhookEndpoint,
    pub secret: WebhookSecret,
}

impl WithSecret {
    pub fn view(&self) -> EndpointView {
        let mut view = EndpointView::of(&self.endpoint);
        view.secret = Some(self.secret.expose().to_owned());
        view
    }
}

/// Active endpoints of one organization and mode: whatever happens to a payment is written down for each of them in the
/// transaction in which it happens.
pub const MOST_ACTIVE: usize = 200;

/// Of two that come at once the second waits until the first is there, and counts it: they lock their merchant.
fn check_room(tx: &mut Tx<'_>, scope: Scope) -> Result<(), Failure> {
    tx.find::<Organization>(scope, scope.organization)?;
    if endpoints::active(tx, scope)?.count() >= MOST_ACTIVE {
        return Err(Refusal::TooManyActiveEndpoints { most: MOST_ACTIVE }.into());
    }
    Ok(())
}

pub fn create(tx: &mut Tx<'_>, context: &Context, scope: Scope, new: &NewEndpoint) -> Result<WithSecret, Failure> {
    check_room(tx, scope)?;
    let now = tx.now();
    let id: Id<WebhookEndpoint> = tx.entropy().id(now);
    let secret = WebhookSecret::generate(&tx.entropy().secret());
    let mut endpoint = WebhookEndpoint {
        id,
        scope,
        version: 0,
        url: new.url.clone(),
        description: new.description.clone(),
        enabled_events: new.enabled_events.clone(),
        status: EndpointStatus::Active,
        secret: context.master.wrap(secret.expose().as_bytes(), &additional_data(scope, id)),
        previous_secret: None,
        later_secrets: Vec::new(),
        metadata: new.metadata.clone(),
        consecutive_failures: 0,
        failing_since: None,
        last_success_at: None,
        last_failure_at: None,
        disabled_at: None,
        disable_reason: None,
        giving_up: None,
        given_up_to: None,
        created_at: now,
        updated_at: now,
    };
    tx.insert(&mut endpoint)?;
    Ok(WithSecret { endpoint, secret })
}

/// `None` leaves a field as it is, `Some(None)` clears it.
#[derive(Debug, Clone, Default)]
pub struct EndpointChange {
    pub url: Option<String>,
    pub enabled_events: Option<Vec<EventFilter>>,
    pub description: Option<Option<String>>,
    pub status: Option<EndpointStatus>,
    pub metadata: Option<Metadata>,
}

pub fn update(
    tx: &mut Tx<'_>,
    scope: Scope,
    id: Id<WebhookEndpoint>,
    change: &EndpointChange,
) -> Result<WebhookEndpoint, Failure> {
    let mut endpoint = load::<WebhookEndpoint>(tx, scope, id)?;
    let before = endpoint.clone();
    if let Some(url) = change.url.as_ref().filter(|url| **url != endpoint.url) {
        endpoint.moved_to(url.clone());
    }
    if let Some(enabled_events) = &change.enabled_events {
        endpoint.enabled_events.clone_from(enabled_events);
    }
    if let Some(description) = &change.description {
        endpoint.description.clone_from(description);
    }
    if let Some(metadata) = &change.metadata {
        endpoint.metadata.clone_from(metadata);
    }
    match change.status {
        Some(EndpointStatus::Active) if !endpoint.is_active() => {
            check_room(tx, scope)?;
            endpoint.activate();
        }
        Some(EndpointStatus::Inactive) if endpoint.is_active() => {
            endpoint.deactivate();
            endpoint.giving_up = give_up_open(tx, &endpoint)?.or(endpoint.giving_up);
        }
        Some(EndpointStatus::Active | EndpointStatus::Inactive) | None => {}
    }
    if endpoint != before {
        endpoint.updated_at = endpoint.updated_at.max(tx.now());
        tx.save(&mut endpoint)?;
    }
    Ok(endpoint)
}

pub fn delete(tx: &mut Tx<'_>, scope: Scope, id: Id<WebhookEndpoint>) -> Result<(), Failure> {
    let endpoint = load::<WebhookEndpoint>(tx, scope, id)?;
    give_up_open(tx, &endpoint)?;
    Ok(endpoints::delete(tx, &endpoint)?)
}

/// Nothing more is sent to it. What it was owed is marked so in this transaction, up to a part of it; the rest, of which the
/// time is returned, by the worker: it can be any number.
fn give_up_open(tx: &mut Tx<'_>, endpoint: &WebhookEndpoint) -> Result<Option<Timestamp>, Failure> {
    if endpoints::give_up_part(tx, endpoint.scope, endpoint.id, None, None)?.is_none() {
        return Ok(None);
    }
    let now = tx.now();
    jobs::schedule(tx, endpoint.scope, Job::GiveUpDeliveries(endpoint.id), now)?;
    Ok(Some(now))
}

/// The job `GiveUpDeliveries`: a part of it. `false` when nothing is left, or when another worker has taken over.
pub fn give_up_part(tx: &mut Tx<'_>, claimed: &ClaimedJob, id: Id<WebhookEndpoint>) -> Result<bool, Failure> {
    // Locked before the job, as by whoever makes it inactive.
    let endpoint = tx.find::<WebhookEndpoint>(claimed.scope, id)?;
    if !jobs::is_held(tx, claimed)? {
        return Ok(false);
    }
    let until = match &endpoint {
        Some(endpoint) if endpoint.is_active() => match endpoint.giving_up {
            Some(until) => Some(until),
            None => return jobs::done(tx, claimed).map(|()| false).map_err(Failure::from),
        },
        Some(_) | None => None,
    };
    // All that is open for an inactive one is given up: its next part is what is open then.
    let after = endpoint.as_ref().filter(|_| until.is_some()).and_then(|endpoint| endpoint.given_up_to.as_ref());
    let looked_at = endpoints::give_up_part(tx, claimed.scope, id, until, after)?;
    let goes_on = looked_at.is_some();
    if let Some(mut endpoint) = endpoint.filter(|endpoint| endpoint.giving_up.is_some()) {
        endpoint.giving_up = endpoint.giving_up.filter(|_| goes_on);
        endpoint.given_up_to = looked_at.filter(|_| until.is_some());
        tx.save(&mut endpoint)?;
    }
    if !goes_on {
        jobs::done(tx, claimed)?;
    }
    Ok(goes_on)
}

/// Whether an open delivery is only not marked yet as one that is not sent any more. `endpoint` is the one that it is for,
/// unless that is deleted.
pub(super) fn is_given_up(
    tx: &mut Tx<'_>,
    endpoint: Option<&WebhookEndpoint>,
    scope: Scope,
    event: Id<Event>,
) -> Result<bool, Failure> {
    match endpoint.filter(|endpoint| endpoint.is_active()) {
        None => Ok(true),
        Some(endpoint) if endpoint.gave_up(event) => Ok(!deliveries::is_by_hand(tx, scope, event, endpoint.id)?),
        Some(_) => Ok(false),
    }
}

pub fn rotate_secret(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    id: Id<WebhookEndpoint>,
) -> Result<WithSecret, Failure> {
    let mut endpoint = load::<WebhookEndpoint>(tx, scope, id)?;
    let secret = WebhookSecret::generate(&tx.entropy().secret());
    let wrapped = context.master.wrap(secret.expose().as_bytes(), &additional_data(scope, id));
    let now = tx.now();
    endpoint.rotate(wrapped, now);
    endpoint.updated_at = endpoint.updated_at.max(now);
    tx.save(&mut endpoint)?;
    Ok(WithSecret { endpoint, secret })
}

fn additional_data(scope: Scope, id: Id<WebhookEndpoint>) -> String {
    format!("webhook_endpoints:{}:{}:{id}", scope.organization, scope.mode)
}

/// The secret that signs, and while a rotation lasts the newer ones beside it.
#[derive(Debug, Clone)]
pub struct Secrets {
    pub signing: WebhookSecret,
    pub incoming: Vec<WebhookSecret>,
}

pub fn secrets(context: &Context, endpoint: &WebhookEndpoint, now: Timestamp) -> Result<Secrets, Failure> {
    let open = |wrapped: &str| {
        let opened = context
            .master
            .unwrap(wrapped, &additional_data(endpoint.scope, endpoint.id))
            .map_err(|fault| Failure::Broken(format!("the secret of {}: {fault}", endpoint.id)))?;
        let text = String::from_utf8(opened.expose().to_vec())
            .map_err(|_| Failure::Broken(format!("the secret of {} is no text", endpoint.id)))?;
        WebhookSecret::parse(&text).map_err(|_| Failure::Broken(format!("the secret of {} is damaged", endpoint.id)))
    };
    let mut oldest_first = endpoint.old_secrets(now).chain([endpoint.secret.as_str()]).map(open);
    let signing = oldest_first.next().expect("the newest secret, at least")?;
    Ok(Secrets { signing, incoming: oldest_first.collect::<Result<_, _>>()? })
}

/// The bytes of a test event, which belongs to no object and is not stored. Under a key it has the id that belongs to the key: where the
/// process of a test died, and whoever repeats it has it sent once more, the receiver can tell that the two are one.
pub fn test_event(
    tx: &mut Tx<'_>,
    context: &Context,
    endpoint: &WebhookEndpoint,
    key: Option<&IdempotencyKey>,
) -> (Id<Event>, String) {
    let now = tx.now();
    let id = match key {
        Some(key) => id_of_test(context, endpoint, key),
        None => tx.entropy().id(now),
    };
    let data = EndpointView::of(endpoint);
    let mode = endpoint.scope.mode;
    let body = envelope(id, EventType::WebhookTest, mode, &endpoint.id.to_string(), 1, now, &data);
    (id, body)
}

/// The same each time. Its time is the endpoint's, which never changes.
fn id_of_test(context: &Context, endpoint: &WebhookEndpoint, key: &IdempotencyKey) -> Id<Event> {
    let tag = context.fingerprint_key.derive(&format!("webhook.test\n{}\n{}", endpoint.id, key.name()));
    Id::new(endpoint.created_at, *tag.first_chunk().expect("it has 32 bytes"))
}

pub fn event(tx: &mut Tx<'_>, scope: Scope, id: Id<Event>) -> Result<EventView, Failure> {
    let event = events::find(tx, scope, id)?.ok_or_else(Refusal::not_found::<Event>)?;
    let active = endpoints::active(tx, scope)?;
    shown(tx, &event, &active)
}

/// Of a list: one that can't be read keeps nobody from those around it.
pub fn shown_unless_damaged(tx: &mut Tx<'_>, event: &Event, active: &Active) -> Result<Option<EventView>, Failure> {
    match shown(tx, event, active) {
        Err(Failure::Store(error)) => Ok(unless_damaged(Err(error), &format!("the event {}", event.id))?),
        shown => shown.map(Some),
    }
}

/// An event among whose endpoints these are active.
pub fn shown(tx: &mut Tx<'_>, event: &Event, active: &Active) -> Result<EventView, Failure> {
    let mut deliveries = deliveries::readable_of_event(tx, event.scope, event.id)?;
    for delivery in deliveries.iter_mut().filter(|delivery| delivery.status == DeliveryStatus::Pending) {
        if is_given_up_among(tx, active, delivery)? {
            // Its time moves when that is written down.
            delivery.give_up(delivery.updated_at.unwrap_or(event.created_at));
        }
    }
    Ok(EventView::of(event, &deliveries)?)
}

/// The same, among those that are active. Of one that can't be read nobody knows that it gave up anything.
fn is_given_up_among(tx: &mut Tx<'_>, active: &Active, delivery: &Delivery) -> Result<bool, Failure> {
    if active.is_unreadable(delivery.endpoint) {
        return Ok(false);
    }
    is_given_up(tx, active.find(delivery.endpoint), delivery.scope, delivery.event)
}

/// Sends an event again to every active endpoint that it was owed to, or that wants it now; where one is named, to no other.
/// What was given up of endpoints that are deleted or inactive is owed no longer: it would keep the event failed for ever.
pub fn retry(
    tx: &mut Tx<'_>,
    scope: Scope,
    id: Id<Event>,
    named: Option<Id<WebhookEndpoint>>,
) -> Result<EventView, Failure> {
    let event = events::find(tx, scope, id)?.ok_or_else(Refusal::not_found::<Event>)?;
    if let Some(named) = named
        && tx.peek::<WebhookEndpoint>(scope, named)?.is_none()
    {
        return Err(no_such_endpoint().into());
    }
    let is_meant = |endpoint| named.is_none_or(|named| named == endpoint);
    let active = endpoints::active(tx, scope)?;
    let mut known = deliveries::of_event(tx, scope, id)?;
    let now = tx.now();
    let is_active = |endpoint| active.find(endpoint).is_some() || active.is_unreadable(endpoint);
    let mut reopened = 0;
    for delivery in &mut known {
        if delivery.status == DeliveryStatus::Pending && is_given_up_among(tx, &active, delivery)? {
            delivery.give_up(now);
            endpoints::give_up_one(tx, delivery)?;
        }
        if is_active(delivery.endpoint) && is_meant(delivery.endpoint) {
            delivery.retry(now);
            deliveries::retry(tx, delivery)?;
            reopened += 1;
        }
    }
    let wanting = event.kind.known().map(|kind| active.wanting(kind)).into_iter().flatten();
    for endpoint in wanting.filter(|endpoint| is_meant(*endpoint)) {
        if known.iter().all(|delivery| delivery.endpoint != endpoint) {
            let mut delivery = Delivery::owed(&event, endpoint, now);
            delivery.retry(now);
            deliveries::insert_by_hand(tx, &delivery)?;
            known.push(delivery);
            reopened += 1;
        }
    }
    if reopened == 0 {
        return Err(Refusal::NoActiveEndpoint.into());
    }
    let is_over = |it: &Delivery| it.status == DeliveryStatus::Failed && !is_active(it.endpoint);
    for delivery in known.extract_if(.., |it| is_over(it)) {
        deliveries::forget(tx, &delivery)?;
    }
    Ok(EventView::of(&event, &known)?)
}

pub fn no_such_endpoint() -> Fault {
    Fault::new("webhook_endpoint_id", FaultCode::NotFound, "`webhook_endpoint_id` names no webhook endpoint of yours.")
}

/// What a delivery needs outside: read when it is claimed.
#[derive(Debug, Clone)]
pub struct Dispatch {
    pub claimed: ClaimedDelivery,
    pub event: Event,
    /// `None`: it was deleted or is inactive; nothing is sent.
    pub endpoint: Option<WebhookEndpoint>,
}

/// Up to `limit` due deliveries, held until `lease_until`, as far as their endpoints find `places`.
///
/// Endpoints take turns. They stand in a line, who is new at its end, and who got something goes to its end again, before those that were
/// asked in vain. Each claim has something for the first that finds a place and is owed what is due and waits for no other. So such a one
/// waits for no more claims than there are endpoints before it, whatever those are owed; and a claim of 32 has something for the first
/// four of them, unless more stand between them than it asks in vain.
pub fn claim(
    tx: &mut Tx<'_>,
    limit: usize,
    lease_until: Timestamp,
    places: &mut Places,
) -> Result<Vec<Dispatch>, Failure> {
    let (now, mut dispatches) = (tx.now(), Vec::new());
    // Those that are there and active.
    let mut endpoints: BTreeMap<Id<WebhookEndpoint>, Option<WebhookEndpoint>> = BTreeMap::new();
    let mut in_vain = Vec::new();
    places.line_up(&deliveries::endpoints_due(tx)?);
    loop {
        let passed_over = places.passed_over(now);
        let (wanted, has_some) = (limit.saturating_sub(dispatches.len()), !dispatches.is_empty());
        for mut due in deliveries::due(tx, wanted, &places.in_turn(&passed_over), &mut in_vain, has_some)? {
            if let Entry::Vacant(unknown) = endpoints.entry(due.endpoint) {
                let found =
                    unless_damaged(tx.peek::<WebhookEndpoint>(due.scope, due.endpoint), "the endpoint of a delivery")?;
                // It is left as it is, to whoever can read it.
                let Some(found) = found else {
                    places.cannot_read(due.endpoint, now);
                    continue;
                };
                unknown.insert(found.filter(WebhookEndpoint::is_active));
            }
            let endpoint = endpoints.get(&due.endpoint).cloned().flatten();
            due.events.retain(|_| places.take(due.endpoint, due.scope, endpoint.as_ref()));
            if due.events.is_empty() {
                continue;
            }
            places.had_turn(due.endpoint);
            let taken = dispatches.len() + due.events.len();
            let held = deliveries::lease(tx, &due, lease_until)?;
            let ids: Vec<_> = held.iter().map(|claimed| claimed.delivery.event).collect();
            let mut events = if ids.is_empty() { Vec::new() } else { events::some(tx, due.scope, &ids)? };
            for claimed in held {
                let id = claimed.delivery.event;
                let found = events.iter().position(|(event, _)| *event == id).map(|place| events.swap_remove(place));
                let Some((_, event)) = found else {
                    // It is left until its lease ends.
                    tracing::error!(event = %id, "the event of a delivery is not there or is another version's: it is passed over");
                    continue;
                };
                let Some(event) = event else {
                    give_up_damaged(tx, claimed, endpoint.as_ref())?;
                    continue;
                };
                let given_up = is_given_up(tx, endpoint.as_ref(), due.scope, id)?;
                let endpoint = endpoint.clone().filter(|_| !given_up);
                dispatches.push(Dispatch { claimed, event, endpoint });
            }
            for _ in dispatches.len()..taken {
                places.give_back(due.endpoint);
            }
        }
        // Behind those of an endpoint that turned out to be full, or that can't be read, there may be others'.
        if dispatches.len() >= limit || places.passed_over(now) == passed_over {
            break;
        }
    }
    // So that the next claim begins with those that were not asked, and asks these after all that got something.
    in_vain.into_iter().for_each(|endpoint| places.had_turn(endpoint));
    Ok(dispatches)
}

/// What is damaged where it is stored is never sent: that of the same object that waits behind it goes on.
fn give_up_damaged(
    tx: &mut Tx<'_>,
    mut claimed: ClaimedDelivery,
    endpoint: Option<&WebhookEndpoint>,
) -> Result<(), Failure> {
    claimed.delivery.last_error = Some("The event is damaged where it is stored and can't be sent.".to_owned());
    claimed.delivery.give_up(tx.now());
    let delivery = claimed.delivery.clone();
    let is_giving_up = endpoint.is_some_and(|endpoint| endpoint.giving_up.is_some());
    if deliveries::finish(tx, &claimed)? && !is_giving_up {
        deliveries::call_next(tx, &delivery)?;
    }
    Ok(())
}

/// An attempt, where it went and how it ended.
#[derive(Debug, Clone)]
pub struct Posted {
    pub url: String,
    pub outcome: Attempted,
}

/// What an attempt made of an endpoint, for whoever runs the service: its merchant may have no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthChange {
    Failing,
    Recovered,
    Disabled(DisableReason),
}

impl HealthChange {
    fn of(endpoint: &WebhookEndpoint, was_active: bool, was_failing: bool) -> Option<Self> {
        match endpoint.disable_reason {
            Some(reason) if was_active && !endpoint.is_active() => Some(Self::Disabled(reason)),
            _ if is_failing(endpoint) == was_failing => None,
            _ => Some(if was_failing { Self::Recovered } else { Self::Failing }),
        }
    }
}

/// In the log.
pub(super) fn log_health(endpoint: Id<WebhookEndpoint>, change: Option<HealthChange>) {
    match change {
        None => {}
        Some(HealthChange::Failing) => tracing::warn!(%endpoint, "a webhook endpoint failed several times in a row"),
        Some(HealthChange::Recovered) => {
            tracing::info!(%endpoint, "a webhook endpoint that failed takes webhooks again")
        }
        Some(HealthChange::Disabled(reason)) => {
            let why = reason.as_str();
            tracing::warn!(%endpoint, why, "a webhook endpoint was switched off, and what it was owed is given up");
        }
    }
}

/// What a test did to the endpoint, if its address is still that to which it was `posted`.
pub fn standing(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    id: Id<WebhookEndpoint>,
    posted: &Posted,
) -> Result<Option<HealthChange>, Failure> {
    match tx.find::<WebhookEndpoint>(scope, id)? {
        Some(endpoint) if endpoint.url == posted.url => count(tx, context, endpoint, &posted.outcome, 1),
        Some(_) | None => Ok(None),
    }
}

/// The endpoint's counters; what it is still owed is given up when this attempt, which is one of `tries` for its event, disabled it,
/// and its merchant told.
pub(super) fn count(
    tx: &mut Tx<'_>,
    context: &Context,
    mut endpoint: WebhookEndpoint,
    outcome: &Attempted,
    tries: i64,
) -> Result<Option<HealthChange>, Failure> {
    let (was_active, was_failing) = (endpoint.is_active(), is_failing(&endpoint));
    endpoint.attempted(outcome, tries, tx.now());
    let change = HealthChange::of(&endpoint, was_active, was_failing);
    if let Some(HealthChange::Disabled(_)) = change {
        endpoint.updated_at = endpoint.updated_at.max(tx.now());
        endpoint.giving_up = give_up_open(tx, &endpoint)?.or(endpoint.giving_up);
        mails::owe_endpoint_disabled(tx, context, &endpoint)?;
    }
    tx.save(&mut endpoint)?;
    Ok(change)
}

impl super::App {
    /// One signed attempt at `now` to deliver `body`, outside any transaction.
    pub async fn post_event(
        &self,
        endpoint: &WebhookEndpoint,
        event_id: &str,
        kind: &str,
        body: &str,
        now: Timestamp,
    ) -> Result<Attempted, Failure> {
        let secrets = secrets(self.context(), endpoint, now)?;
        let live = endpoint.scope.mode.is_live();
        let url = match self.egress().check_url(&endpoint.url, live) {
            Ok(url) => url,
            Err(fault) => return Ok(failed(None, fault.message)),
        };
        // A receiver holds it against its own clock, which knows nothing of ours having been ahead.
        let timestamp_s = self.store().wall_time().seconds();
        let attempt = signing::Attempt { event_id, timestamp_s, body: body.as_bytes() };
        let signatures = signing::sign(&attempt, &secrets.signing, &secrets.incoming);
        let headers = headers(&[
            ("content-type", "application/json"),
            (signing::ID_HEADER, event_id),
            (signing::TIMESTAMP_HEADER, &timestamp_s.to_string()),
            (signing::SIGNATURE_HEADER, &signatures.standard),
            (signing::COMPATIBILITY_HEADER, &signatures.compatibility),
            ("x-jokoor-event", kind),
            ("x-jokoor-event-id", event_id),
        ])?;
        Ok(match self.egress().post(&url, headers, body.to_owned().into(), live).await {
            Ok(answer) if answer.status.is_success() => Attempted::Succeeded { status: answer.status.as_u16() },
            Ok(answer) => Attempted::Failed {
                status: Some(answer.status.as_u16()),
                error: format!("the endpoint answered {}", answer.status.as_u16()),
                retry_after: answer
                    .retry_after
                    .map(|retry_after| Duration::from_secs(retry_after.wait_s(self.store().wall_time().seconds()))),
                gone: answer.status.as_u16() == 410,
            },
            Err(failure) => failed(None, failure.message),
        })
    }
}

/// What is kept of an error: some of them are as long as whoever answers likes.
const LONGEST_ERROR: usize = 500;

fn failed(status: Option<u16>, error: String) -> Attempted {
    let error = error.chars().take(LONGEST_ERROR).collect();
    Attempted::Failed { status, error, retry_after: None, gone: false }
}

fn headers(pairs: &[(&'static str, &str)]) -> Result<http::HeaderMap, Failure> {
    pairs
        .iter()
        .map(|(name, value)| {
            let value = http::HeaderValue::from_str(value)
                .map_err(|_| Failure::Broken(format!("{name} can't be sent as a header")))?;
            Ok((http::HeaderName::from_static(name), value))
        })
        .collect()
}
