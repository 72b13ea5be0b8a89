//! What attempts to deliver webhooks brought, and how it is stored: what arrived at an endpoint together, as nearly all does.
//! Each attempt changes its endpoint's row, so that one transaction for each of them would wait for the one before it, and,
//! beside PostgreSQL, hold a connection all that time.

use std::collections::BTreeMap;

use domain::Id;
use domain::event::Event;
use domain::webhook::{Attempted, DeliveryStatus, WebhookEndpoint};
use store::Tx;
use store::queries::deliveries::{self, ClaimedDelivery};

use super::webhooks::{self, HealthChange, Posted};
use super::{App, Context};
use crate::error::Failure;

/// An attempt that is over.
#[derive(Debug, Clone)]
pub struct Ended {
    pub claimed: ClaimedDelivery,
    /// `None`: nothing was sent, because the endpoint was deleted or is inactive.
    pub posted: Option<Posted>,
}

impl Ended {
    /// The status of an answer that says that it arrived.
    fn arrived(&self) -> Option<u16> {
        match self.posted.as_ref()?.outcome {
            Attempted::Succeeded { status } => Some(status),
            Attempted::Failed { .. } => None,
        }
    }
}

impl App {
    /// Stores what attempts at one endpoint brought. What arrived is one transaction, which waits for no other delivery; each of
    /// the others has its own, so that none holds what concerns one object while it waits for what concerns another.
    ///
    /// # Errors
    /// The first of those that kept something from being stored. Its lease runs out, and it is sent once more.
    pub async fn store_attempts(&self, endpoint: Id<WebhookEndpoint>, mut ended: Vec<Ended>) -> Result<(), Failure> {
        let there: Vec<Ended> = ended.iter().filter(|ended| ended.arrived().is_some()).cloned().collect();
        if !there.is_empty() {
            let stored = self.commit(move |tx, context| arrived(tx, context, endpoint, &there)).await;
            match stored {
                Ok((stored, change)) => {
                    ended.retain(|ended| !stored.contains(&ended.claimed.delivery.event));
                    webhooks::log_health(endpoint, change);
                }
                // Each would wait for the database in vain.
                Err(failure) if failure.passes() => return Err(failure),
                Err(failure) => tracing::error!(%failure, %endpoint, "what arrived can't be stored together"),
            }
        }
        let mut all = Ok(());
        for ended in ended {
            let stored = self.commit(move |tx, context| one(tx, context, &ended)).await;
            all = all.and(stored.map(|change| webhooks::log_health(endpoint, change)));
        }
        all
    }
}

/// Stores that events arrived at an active endpoint; gives those for which that was all there was to do.
fn arrived(
    tx: &mut Tx<'_>,
    context: &Context,
    id: Id<WebhookEndpoint>,
    ended: &[Ended],
) -> Result<(Vec<Id<Event>>, Option<HealthChange>), Failure> {
    let Some(first) = ended.first() else { return Ok((Vec::new(), None)) };
    let scope = first.claimed.delivery.scope;
    // Locked before the deliveries, as by whoever makes it inactive.
    let endpoint = tx.find::<WebhookEndpoint>(scope, id)?.filter(WebhookEndpoint::is_active);
    let Some(endpoint) = endpoint else { return Ok((Vec::new(), None)) };
    let mut by_status: BTreeMap<u16, Vec<&ClaimedDelivery>> = BTreeMap::new();
    for ended in ended {
        let is_there = ended.posted.as_ref().is_some_and(|posted| posted.url == endpoint.url);
        if let (Some(status), true, false) = (ended.arrived(), is_there, endpoint.gave_up(ended.claimed.delivery.event))
        {
            by_status.entry(status).or_default().push(&ended.claimed);
        }
    }
    let mut stored = Vec::with_capacity(ended.len());
    let mut last = None;
    for (status, claimed) in by_status {
        let of_status = deliveries::delivered(tx, &endpoint, status, &claimed)?;
        last = last.or_else(|| of_status.first().map(|_| Attempted::Succeeded { status }));
        stored.extend(of_status);
    }
    let change = match last {
        Some(outcome) => webhooks::count(tx, context, endpoint, &outcome, 1)?,
        None => None,
    };
    Ok((stored, change))
}

/// Stores what an attempt brought: done, again later, or given up. A holder that was overtaken stores nothing.
fn one(tx: &mut Tx<'_>, context: &Context, ended: &Ended) -> Result<Option<HealthChange>, Failure> {
    let Ended { mut claimed, mut posted } = ended.clone();
    let jitter = tx.entropy().below(2_001);
    // Locked before the delivery, as by whoever makes it inactive.
    let endpoint = tx.find::<WebhookEndpoint>(claimed.delivery.scope, claimed.delivery.endpoint)?;
    let now = tx.now();
    let is_there = |posted: &Posted| endpoint.as_ref().is_none_or(|endpoint| endpoint.url == posted.url);
    let counts = posted.as_ref().is_some_and(is_there);
    match &mut posted {
        Some(Posted { outcome, .. }) => {
            // The address of before says nothing of the endpoint, not even that it is gone.
            if let (Attempted::Failed { gone, .. }, false) = (&mut *outcome, counts) {
                *gone = false;
            }
            claimed.delivery.attempted(outcome, now, jitter);
        }
        None => claimed.delivery.give_up(now),
    }
    if webhooks::is_given_up(tx, endpoint.as_ref(), claimed.delivery.scope, claimed.delivery.event)? {
        claimed.delivery.give_up(now);
    }
    let delivery = claimed.delivery.clone();
    if !finish(tx, claimed)? {
        return Ok(None);
    }
    // What is being given up is looked for by the times of its next tries: they stay as they are.
    let is_giving_up = endpoint.as_ref().is_some_and(|endpoint| endpoint.giving_up.is_some());
    if delivery.status != DeliveryStatus::Pending && !is_giving_up {
        deliveries::call_next(tx, &delivery)?;
    }
    match (endpoint, posted.filter(|_| counts)) {
        (Some(endpoint), Some(posted)) => {
            webhooks::count(tx, context, endpoint, &posted.outcome, delivery.round_attempts)
        }
        (None, _) | (_, None) => Ok(None),
    }
}

/// `false` when it was overtaken. What was given up meanwhile stays so, though the endpoint is active again.
fn finish(tx: &mut Tx<'_>, mut claimed: ClaimedDelivery) -> Result<bool, Failure> {
    if deliveries::finish(tx, &claimed)? {
        return Ok(true);
    }
    claimed.delivery.give_up(tx.now());
    Ok(deliveries::finish(tx, &claimed)?)
}
