//! Webhook endpoints and deliveries: who is owed which event, and when the next try is.
//!
//! Sending and signing are the server's; this decides only what follows from an outcome.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::{Event, EventType};
use crate::id::{Id, Object};
use crate::metadata::Metadata;
use crate::scope::Scope;
use crate::time::Timestamp;

const SECOND: u64 = 1;
const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;

/// The wait before each attempt, in seconds (P12).
const SCHEDULE_S: [u64; 10] =
    [0, 5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];
/// A receiver can lengthen a wait up to this.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * HOUR);
/// A tenth more than the wait is.
const LONGEST_JITTER: u64 = 2_000;
/// Nothing but failures for so long disables an endpoint.
const PATIENCE: Duration = Duration::from_secs(5 * 24 * HOUR);
/// And no earlier than at this try of an event, half an hour after its first: where events are rare, a moment's fault may come weeks
/// after the last failure, with nothing sent in between.
const LEAST_TRIES: i64 = 4;
/// A secret that was replaced goes on signing for so long.
pub const ROTATION_OVERLAP: Duration = Duration::from_secs(24 * HOUR);
/// Secrets that sign at a time, the newest among them.
const MOST_SECRETS: usize = 5;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookEndpoint {
    pub id: Id<WebhookEndpoint>,
    pub scope: Scope,
    pub version: i64,
    pub url: String,
    #[serde(default)]
    pub description: Option<String>,
    pub enabled_events: Vec<EventFilter>,
    pub status: EndpointStatus,
    /// Wrapped by the master key.
    pub secret: String,
    /// The secret that was replaced first of those that still sign, and when it stops.
    #[serde(default)]
    pub previous_secret: Option<(String, Timestamp)>,
    /// Those that were replaced after it, in turn.
    #[serde(default)]
    pub later_secrets: Vec<(String, Timestamp)>,
    #[serde(default)]
    pub metadata: Metadata,
    pub consecutive_failures: i64,
    #[serde(default)]
    pub failing_since: Option<Timestamp>,
    #[serde(default)]
    pub last_success_at: Option<Timestamp>,
    #[serde(default)]
    pub last_failure_at: Option<Timestamp>,
    #[serde(default)]
    pub disabled_at: Option<Timestamp>,
    #[serde(default)]
    pub disable_reason: Option<DisableReason>,
    /// What it was owed of events until then is given up, and not all of it has been marked so yet.
    #[serde(default)]
    pub giving_up: Option<Timestamp>,
    /// How far that has come since it is active again.
    #[serde(default)]
    pub given_up_to: Option<LookedAt>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Object for WebhookEndpoint {
    const PREFIX: &'static str = "we";
    const NOUN: &'static str = "webhook_endpoint";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndpointStatus {
    Active,
    Inactive,
}

impl EndpointStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            EndpointStatus::Active => "active",
            EndpointStatus::Inactive => "inactive",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DisableReason {
    /// It answered 410.
    Gone,
    Failing,
}

impl DisableReason {
    pub fn as_str(self) -> &'static str {
        match self {
            DisableReason::Gone => "gone",
            DisableReason::Failing => "failing",
        }
    }
}

/// A type, `<resource>.*`, or `*`; kept as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventFilter(String);

impl EventFilter {
    pub fn parse(text: &str) -> Option<Self> {
        let known = text == "*"
            || EventType::parse(text).is_some_and(|kind| kind != EventType::WebhookTest)
            || text.strip_suffix(".*").is_some_and(|resource| {
                resource != EventType::WebhookTest.resource()
                    && EventType::ALL.iter().any(|kind| kind.resource() == resource)
            });
        known.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn matches(&self, kind: EventType) -> bool {
        self.0 == "*" || self.0 == kind.as_str() || self.0.strip_suffix(".*") == Some(kind.resource())
    }
}

impl WebhookEndpoint {
    pub fn is_active(&self) -> bool {
        self.status == EndpointStatus::Active
    }

    /// Whether a delivery of such an event is owed.
    pub fn wants(&self, kind: EventType) -> bool {
        self.is_active() && self.enabled_events.iter().any(|filter| filter.matches(kind))
    }

    /// Does nothing to one that is active: only coming back clears what went wrong.
    pub fn activate(&mut self) {
        if self.is_active() {
            return;
        }
        self.status = EndpointStatus::Active;
        self.given_up_to = None;
        self.consecutive_failures = 0;
        self.failing_since = None;
        self.disabled_at = None;
        self.disable_reason = None;
    }

    /// Whether what it was owed of the event was given up before it became active again. What was asked for by hand since then
    /// is owed all the same.
    pub fn gave_up(&self, event: Id<Event>) -> bool {
        self.giving_up.is_some_and(|until| event.made_at_ms() <= until.micros() / 1000)
    }

    /// What went wrong at the address of before says nothing of the new one.
    pub fn moved_to(&mut self, url: String) {
        self.url = url;
        self.consecutive_failures = 0;
        self.failing_since = None;
    }

    pub fn deactivate(&mut self) {
        self.status = EndpointStatus::Inactive;
    }

    /// What the `tries`th try of a delivery did to the endpoint's standing (contract §4.15). By it a clock that was ahead when a secret
    /// was replaced is found out, too.
    pub fn attempted(&mut self, outcome: &Attempted, tries: i64, now: Timestamp) {
        for (_, until) in self.previous_secret.iter_mut().chain(&mut self.later_secrets) {
            *until = within_overlap(*until, now);
        }
        match outcome {
            // A test of an inactive endpoint is worth its time, but nothing is counted (contract §4.15).
            Attempted::Succeeded { .. } if !self.is_active() => self.last_success_at = Some(now),
            Attempted::Failed { .. } if !self.is_active() => self.last_failure_at = Some(now),
            Attempted::Succeeded { .. } => {
                self.consecutive_failures = 0;
                self.failing_since = None;
                self.last_success_at = Some(now);
            }
            Attempted::Failed { gone, .. } => {
                self.consecutive_failures += 1;
                self.last_failure_at = Some(now);
                // A clock that was ahead dated it, perhaps by years, in which it would never have failed for five days.
                let since = self.failing_since.map_or(now, |since| since.min(now));
                self.failing_since = Some(since);
                let is_out_of_patience = now.since(since) >= PATIENCE && tries >= LEAST_TRIES;
                let reason = match (gone, is_out_of_patience) {
                    (true, _) => Some(DisableReason::Gone),
                    (false, true) => Some(DisableReason::Failing),
                    (false, false) => None,
                };
                if let Some(reason) = reason {
                    self.status = EndpointStatus::Inactive;
                    self.disabled_at = Some(now);
                    self.disable_reason = Some(reason);
                }
            }
        }
    }

    /// A new secret signs from now on, and each that was replaced beside it for a day: whoever lost the answer and asks
    /// again still has a receiver with the first. Where there are too many, the first and the newest stay.
    pub fn rotate(&mut self, wrapped: String, now: Timestamp) {
        assert_ne!(self.secret, wrapped, "a rotation brings another secret");
        let old = std::mem::replace(&mut self.secret, wrapped);
        let replaced = self.previous_secret.take().into_iter().chain(std::mem::take(&mut self.later_secrets));
        let still = replaced.filter(|(_, until)| now < *until);
        let mut replaced: Vec<_> = still.map(|(wrapped, until)| (wrapped, within_overlap(until, now))).collect();
        replaced.push((old, now.plus(ROTATION_OVERLAP)));
        if replaced.len() >= MOST_SECRETS {
            replaced.remove(1);
        }
        let mut replaced = replaced.into_iter();
        self.previous_secret = replaced.next();
        self.later_secrets = replaced.collect();
    }

    /// The secrets that were replaced and still sign, the one that was replaced first before the others.
    pub fn old_secrets(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        let replaced = self.previous_secret.iter().chain(&self.later_secrets);
        replaced.filter(move |(_, until)| now < *until).map(|(wrapped, _)| wrapped.as_str())
    }
}

/// When a secret that was replaced before `now` stops: a clock that was ahead set an end that may be years away, and each attempt
/// has it signing no longer than one that is replaced now. It never stops at once: receivers may still know no other.
fn within_overlap(until: Timestamp, now: Timestamp) -> Timestamp {
    until.min(now.plus(ROTATION_OVERLAP))
}

/// An open delivery: when its next try is, and of which event.
pub type LookedAt = (Timestamp, String);

/// How one try ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempted {
    Succeeded { status: u16 },
    Failed { status: Option<u16>, error: String, retry_after: Option<Duration>, gone: bool },
}

/// One event owed to one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub scope: Scope,
    pub event: Id<Event>,
    pub endpoint: Id<WebhookEndpoint>,
    pub object_id: String,
    pub sequence: i64,
    pub status: DeliveryStatus,
    /// Tries so far, over all rounds.
    pub attempts: i64,
    /// Tries since the schedule last started: a retry by hand starts it anew.
    pub round_attempts: i64,
    pub next_retry_at: Option<Timestamp>,
    pub last_status_code: Option<i64>,
    pub last_error: Option<String>,
    /// When any of this last changed; `None`: not since the event was made.
    pub updated_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryStatus {
    Pending,
    Delivered,
    Failed,
}

impl DeliveryStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryStatus::Pending => "pending",
            DeliveryStatus::Delivered => "delivered",
            DeliveryStatus::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "pending" => Some(DeliveryStatus::Pending),
            "delivered" => Some(DeliveryStatus::Delivered),
            "failed" => Some(DeliveryStatus::Failed),
            _ => None,
        }
    }
}

impl Delivery {
    pub fn owed(event: &Event, endpoint: Id<WebhookEndpoint>, now: Timestamp) -> Self {
        Self {
            scope: event.scope,
            event: event.id,
            endpoint,
            object_id: event.object_id.clone(),
            sequence: event.sequence,
            status: DeliveryStatus::Pending,
            attempts: 0,
            round_attempts: 0,
            next_retry_at: Some(now),
            last_status_code: None,
            last_error: None,
            updated_at: None,
        }
    }

    /// Done, try again at, or given up. `jitter` is 0..=2000: 1000 leaves the wait as it is.
    pub fn attempted(&mut self, outcome: &Attempted, now: Timestamp, jitter: u64) {
        assert_eq!(self.status, DeliveryStatus::Pending, "only an open delivery is attempted");
        assert!(self.next_retry_at.is_some(), "an open delivery is due at some time");
        assert!(self.round_attempts <= self.attempts, "a round is a part of all tries");
        self.touch(now);
        self.attempts += 1;
        self.round_attempts += 1;
        match outcome {
            Attempted::Succeeded { status } => {
                self.status = DeliveryStatus::Delivered;
                self.next_retry_at = None;
                self.last_status_code = Some(i64::from(*status));
                self.last_error = None;
            }
            Attempted::Failed { status, error, retry_after, gone } => {
                self.last_status_code = status.map(i64::from);
                self.last_error = Some(error.clone());
                match next_wait(self.round_attempts, *retry_after, jitter) {
                    Some(wait) if !gone && !crate::planted!(Defect::GivenUpEarly) => {
                        self.next_retry_at = Some(now.plus(wait))
                    }
                    _ => self.give_up(now),
                }
            }
        }
        let is_open = self.status == DeliveryStatus::Pending;
        assert_eq!(is_open, self.next_retry_at.is_some(), "what is open has a next try, and only that");
    }

    /// The endpoint is gone, or the schedule has run out. What was delivered stays so.
    pub fn give_up(&mut self, now: Timestamp) {
        if self.status != DeliveryStatus::Pending {
            return;
        }
        self.touch(now);
        self.status = DeliveryStatus::Failed;
        self.next_retry_at = None;
    }

    /// Sent again by hand: one that was over has the whole schedule before it, an open one is due now.
    pub fn retry(&mut self, now: Timestamp) {
        match self.status {
            DeliveryStatus::Pending => {}
            DeliveryStatus::Delivered | DeliveryStatus::Failed => {
                self.status = DeliveryStatus::Pending;
                self.round_attempts = 0;
            }
        }
        self.next_retry_at = Some(now);
        self.touch(now);
    }

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = Some(self.updated_at.map_or(now, |before| before.max(now)));
    }
}

/// No wait between two attempts is longer.
pub fn longest_wait() -> Duration {
    longest_waits().max().unwrap_or_default()
}

/// How long after it was owed a delivery may still be tried, if it waits for no other: with every wait as long as chance and the
/// receiver can make it, in whole days, which leaves some time for the attempts themselves.
pub fn longest_life() -> Duration {
    const DAY_S: u64 = 24 * HOUR;
    Duration::from_secs(longest_waits().sum::<Duration>().as_secs().div_ceil(DAY_S) * DAY_S)
}

/// Every wait of the schedule, as long as chance and the receiver can make it.
fn longest_waits() -> impl Iterator<Item = Duration> {
    (1..).map_while(|made| next_wait(made, Some(LONGEST_RETRY_AFTER), LONGEST_JITTER))
}

/// The wait after `made` attempts, jittered by ±10 %; `None` when the schedule has run out.
fn next_wait(made: i64, retry_after: Option<Duration>, jitter: u64) -> Option<Duration> {
    let index = usize::try_from(made).expect("attempts are counted from zero");
    let base_ms = SCHEDULE_S.get(index)? * 1000;
    // 0..=2000 becomes 90 %..=110 %.
    let wait = Duration::from_millis(base_ms * (9_000 + jitter.min(LONGEST_JITTER)) / 10_000);
    Some(wait.max(retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER)))
}

#[cfg(test)]
mod tests;
