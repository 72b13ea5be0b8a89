//! Payment links: one address that many people pay (contract §4.7).
//!
//! A link counts what was paid, and nothing else about its payments: each of them is a session of its own. An attempt
//! holds one use from the moment it is handed to a rail until its outcome is known, so that those that began while there
//! was room never exceed the maximum. Money that a rail confirms after its attempt was given up is counted all the same.

mod custom_field;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::EventType;
use crate::id::{Id, Object};
use crate::metadata::Metadata;
use crate::money::{Currency, Money};
use crate::payment::SESSION_LIFETIME;
use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::time::Timestamp;

pub use custom_field::{CustomField, FieldType};

/// So long at most a payer who never comes back keeps a use of a limited link from others.
const LONGEST_HOLD: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaymentLink {
    pub id: Id<PaymentLink>,
    pub scope: Scope,
    pub version: i64,
    state: State,
    price: Price,
    terms: Terms,
    /// Payments that were completed.
    #[serde(default)]
    usage_count: i64,
    /// Events of the link itself so far; those of a payment count on its session.
    #[serde(default)]
    pub event_sequence: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Object for PaymentLink {
    const PREFIX: &'static str = "pl";
    const NOUN: &'static str = "payment_link";
}

/// What a payment of the link costs; it does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Price {
    Fixed {
        amount: Money,
    },
    /// The payer chooses, within both bounds.
    Variable {
        currency: Currency,
        #[serde(default)]
        min: Option<Money>,
        #[serde(default)]
        max: Option<Money>,
        /// What the merchant suggests.
        #[serde(default)]
        suggested: Option<Money>,
    },
}

/// Why an amount can't be paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotThePrice {
    /// The price is fixed.
    Other(Money),
    /// The payer chooses and has not chosen.
    Missing,
    TooLittle(Money),
    TooMuch(Money),
}

impl Price {
    pub fn currency(&self) -> Currency {
        match self {
            Price::Fixed { amount } => amount.currency,
            Price::Variable { currency, .. } => *currency,
        }
    }

    /// The amount that is shown for it (nothing of it where the payer chooses and none is suggested), and its bounds.
    pub fn shown(&self) -> (Money, Option<Money>, Option<Money>) {
        match *self {
            Price::Fixed { amount } => (amount, None, None),
            Price::Variable { currency, min, max, suggested } => {
                (suggested.unwrap_or(Money::new(0, currency)), min, max)
            }
        }
    }

    /// What one payment is for.
    pub fn of_payment(&self, asked: Option<Money>) -> Result<Money, NotThePrice> {
        match (*self, asked) {
            (Price::Fixed { amount }, None) => Ok(amount),
            (Price::Fixed { amount }, Some(asked)) if asked == amount => Ok(amount),
            (Price::Fixed { amount }, Some(_)) => Err(NotThePrice::Other(amount)),
            // Whoever names none takes what the merchant suggests.
            (Price::Variable { suggested: Some(suggested), .. }, None) if suggested.minor > 0 => Ok(suggested),
            (Price::Variable { .. }, None) => Err(NotThePrice::Missing),
            (Price::Variable { currency, min, max, .. }, Some(asked)) => {
                assert_eq!(asked.currency, currency, "an amount is read in the link's currency");
                match (min, max) {
                    (Some(min), _) if asked.minor < min.minor => Err(NotThePrice::TooLittle(min)),
                    (_, Some(max)) if asked.minor > max.minor => Err(NotThePrice::TooMuch(max)),
                    (Some(_) | None, Some(_) | None) => Ok(asked),
                }
            }
        }
    }
}

/// What the merchant can change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    pub title: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub expiration_date: Option<Timestamp>,
    #[serde(default)]
    pub max_usage_count: Option<i64>,
    #[serde(default)]
    pub success_url: Option<String>,
    #[serde(default)]
    pub failure_url: Option<String>,
    #[serde(default)]
    pub collect_customer_info: bool,
    #[serde(default)]
    pub custom_fields: Option<Vec<CustomField>>,
    #[serde(default)]
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum State {
    Active,
    Inactive,
    /// Nobody finds it any more; what was begun with it is still settled.
    Deleted {
        at: Timestamp,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Active,
    Inactive,
    Deleted,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Inactive => "inactive",
            Status::Deleted => "deleted",
        }
    }
}

impl PaymentLink {
    pub fn create(id: Id<PaymentLink>, scope: Scope, price: Price, terms: Terms, now: Timestamp) -> Self {
        let created_at = now.floor_to_second();
        Self {
            id,
            scope,
            version: 0,
            state: State::Active,
            price,
            terms,
            usage_count: 0,
            event_sequence: 0,
            created_at,
            updated_at: created_at,
        }
    }

    pub fn price(&self) -> &Price {
        &self.price
    }

    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    pub fn usage_count(&self) -> i64 {
        self.usage_count
    }

    /// What a reader is told at `now`, whether or not the timer ran.
    pub fn status(&self, now: Timestamp) -> Status {
        match self.state {
            State::Active if self.is_past_expiration(now) => Status::Inactive,
            State::Active => Status::Active,
            State::Inactive => Status::Inactive,
            State::Deleted { .. } => Status::Deleted,
        }
    }

    /// What is stored, for the promoted column.
    pub fn stored_status(&self) -> Status {
        match self.state {
            State::Active => Status::Active,
            State::Inactive => Status::Inactive,
            State::Deleted { .. } => Status::Deleted,
        }
    }

    fn is_past_expiration(&self, now: Timestamp) -> bool {
        self.terms.expiration_date.is_some_and(|expiration_date| {
            self.clock(now) >= expiration_date
                && !(crate::planted!(Defect::LinkExpiryInclusive) && self.clock(now) == expiration_date)
        })
    }

    fn is_used_up(&self) -> bool {
        self.terms.max_usage_count.is_some_and(|most| self.usage_count >= most)
    }

    /// What the merchant wants to be otherwise. `status` is the one that was asked for, if any was.
    ///
    /// What happened, in order; nothing where all is as it was asked to be already.
    pub fn update(&mut self, terms: Terms, status: Option<Status>, now: Timestamp) -> Result<Vec<EventType>, Refusal> {
        self.refuse_if_deleted()?;
        assert_ne!(status, Some(Status::Deleted), "a link is deleted by `delete`");
        let was_active = self.state == State::Active;
        let mut changed = Self { terms, ..self.clone() };
        changed.state = match status {
            Some(Status::Active)
                if changed.is_past_expiration(now) && !crate::planted!(Defect::ExpiredLinkReactivated) =>
            {
                return Err(Refusal::PaymentLinkExpired);
            }
            Some(Status::Active) if changed.is_used_up() => return Err(Refusal::PaymentLinkUsedUp),
            Some(Status::Active) => State::Active,
            Some(Status::Inactive | Status::Deleted) => State::Inactive,
            None if was_active && (changed.is_past_expiration(now) || changed.is_used_up()) => State::Inactive,
            None => self.state,
        };
        let is_active = changed.state == State::Active;
        let mut events = Vec::new();
        if changed.terms != self.terms || (is_active && !was_active) {
            events.push(EventType::PaymentLinkUpdated);
        }
        if was_active && !is_active {
            events.push(EventType::PaymentLinkDeactivated);
        }
        if !events.is_empty() {
            *self = changed;
            self.touch(now);
        }
        Ok(events)
    }

    pub fn delete(&mut self, now: Timestamp) -> Result<EventType, Refusal> {
        self.refuse_if_deleted()?;
        let at = self.touch(now);
        self.state = State::Deleted { at };
        Ok(EventType::PaymentLinkDeleted)
    }

    /// Stores the expiry that the clock has decided.
    pub fn observe(&mut self, now: Timestamp) -> Option<EventType> {
        if self.state != State::Active || !self.is_past_expiration(now) {
            return None;
        }
        self.state = State::Inactive;
        self.touch(now);
        assert_eq!(self.status(now), Status::Inactive, "what is stored is what readers were told");
        Some(EventType::PaymentLinkDeactivated)
    }

    /// Whether a session may open, or go on, at `now`.
    pub fn payable(&self, now: Timestamp) -> Result<(), Refusal> {
        match self.status(now) {
            Status::Active => Ok(()),
            Status::Inactive => Err(Refusal::PaymentLinkInactive),
            Status::Deleted => Err(Refusal::not_found::<PaymentLink>()),
        }
    }

    /// Until when a session that opens at `now` can be used.
    pub fn session_expires_at(&self, now: Timestamp) -> Timestamp {
        now.plus(if self.terms.max_usage_count.is_some() { LONGEST_HOLD } else { SESSION_LIFETIME })
    }

    /// Whether one more attempt may begin while the outcome of `open` others is not known.
    pub fn has_room(&self, open: i64, now: Timestamp) -> Result<(), Refusal> {
        assert!(open >= 0, "attempts are counted from none");
        self.payable(now)?;
        assert!(!self.is_used_up(), "a link that is used up is inactive");
        match self.terms.max_usage_count {
            // Some of them may fail yet.
            Some(most)
                if self.usage_count.saturating_add(open) >= most && !crate::planted!(Defect::LinkRoomIgnored) =>
            {
                Err(Refusal::PaymentLinkHeld)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A provider confirmed a payment, whenever that began.
    pub fn money_arrived(&mut self, now: Timestamp) -> Option<EventType> {
        if self.state == State::Active || !crate::planted!(Defect::LinkUseNotCounted) {
            self.usage_count += 1;
        }
        self.touch(now);
        if self.state != State::Active || !self.is_used_up() || crate::planted!(Defect::LinkStaysActive) {
            return None;
        }
        self.state = State::Inactive;
        Some(EventType::PaymentLinkDeactivated)
    }

    pub fn refuse_if_deleted(&self) -> Result<(), Refusal> {
        match self.state {
            State::Active | State::Inactive => Ok(()),
            State::Deleted { .. } => Err(Refusal::not_found::<PaymentLink>()),
        }
    }

    /// The number of the link's next event.
    pub fn next_sequence(&mut self) -> i64 {
        assert!(self.event_sequence >= 0, "events are counted from one");
        self.event_sequence += 1;
        self.event_sequence
    }

    /// What this link has seen already does not become the future again (P9).
    pub fn clock(&self, now: Timestamp) -> Timestamp {
        now.max(self.updated_at)
    }

    fn touch(&mut self, now: Timestamp) -> Timestamp {
        self.updated_at = self.clock(now);
        self.updated_at
    }
}

#[cfg(test)]
mod tests;
