//! Checkout sessions: what is to be paid, and until when (contract §4.1).
//!
//! The attempt itself (who pays, how, what the rail says) is `payment`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::customer;
use crate::event::EventType;
use crate::id::{Id, Object};
use crate::metadata::Metadata;
use crate::method::Method;
use crate::money::Money;
use crate::payment::{PaymentSession, Settlement, TransactionSummary};
use crate::product::Product;
use crate::refusal::Refusal;
use crate::scope::Scope;
use crate::time::Timestamp;

/// An attempt that is with the provider holds an outdated checkout open for so long at most.
const LONGEST_HOLD: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkout {
    pub id: Id<Checkout>,
    pub scope: Scope,
    pub version: i64,
    state: State,
    pub order: Order,
    /// HMAC of the client secret, in hex; the secret itself is shown once.
    pub client_secret_digest: String,
    pub expires_at: Timestamp,
    /// The session that was opened last.
    #[serde(default)]
    pub payment_session: Option<Id<PaymentSession>>,
    /// The latest attempt, as it stands.
    #[serde(default)]
    pub transaction: Option<TransactionSummary>,
    /// The provider has an attempt and its outcome is open.
    #[serde(default)]
    attempt_with_provider: bool,
    #[serde(default)]
    pub attempt_count: i64,
    /// Events of this checkout so far.
    #[serde(default)]
    pub event_sequence: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Object for Checkout {
    const PREFIX: &'static str = "cs";
    const NOUN: &'static str = "checkout";
}

/// What the merchant asked for; it does not change afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub amount: Money,
    #[serde(default)]
    pub items: Option<Vec<Item>>,
    /// What the payer can choose from, in the page's order.
    pub available_methods: Vec<Method>,
    pub automatic_payment_methods: bool,
    /// Chosen by the merchant: no other method is taken.
    #[serde(default)]
    pub fixed_method: Option<Method>,
    #[serde(default)]
    pub customer: Customer,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub reference: Option<String>,
    #[serde(default)]
    pub metadata: Metadata,
    #[serde(default)]
    pub success_url: Option<String>,
    #[serde(default)]
    pub failure_url: Option<String>,
}

/// Prefilled by the merchant, or from the customer that was named.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Customer {
    #[serde(default)]
    pub id: Option<Id<customer::Customer>>,
    /// E.164, or empty where the merchant sent an empty text.
    #[serde(default)]
    pub phone: Option<String>,
    #[serde(default)]
    pub email: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    #[serde(default)]
    pub product_id: Option<Id<Product>>,
    #[serde(default)]
    pub description: Option<String>,
    pub quantity: i64,
    pub unit_price: Money,
    pub total: Money,
}

impl Item {
    /// `None` where the total is above what one object may cost.
    pub fn new(description: Option<String>, quantity: i64, unit_price: Money) -> Option<Self> {
        assert!(quantity > 0, "quantities are read as positive");
        let total = unit_price.checked_times(quantity)?;
        total.fits().then_some(Self { product_id: None, description, quantity, unit_price, total })
    }
}

/// The sum of the lines; `None` where it is above what one object may cost.
pub fn sum(items: &[Item]) -> Option<Money> {
    added_up(items).filter(|total| total.fits())
}

/// The same of lines that are stored, by whichever version.
pub fn stored_sum(items: &[Item]) -> Option<Money> {
    added_up(items).filter(|total| total.fits_stored())
}

fn added_up(items: &[Item]) -> Option<Money> {
    let (first, rest) = items.split_first()?;
    rest.iter().try_fold(first.total, |sum, item| sum.checked_add(item.total))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum State {
    Pending,
    Completed { at: Timestamp },
    Expired { at: Timestamp },
    Cancelled { at: Timestamp },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Pending,
    Completed,
    Expired,
    Cancelled,
}

impl Status {
    pub const ALL: [Status; 4] = [Status::Pending, Status::Completed, Status::Expired, Status::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Completed => "completed",
            Status::Expired => "expired",
            Status::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl Checkout {
    pub fn create(
        id: Id<Checkout>,
        scope: Scope,
        order: Order,
        client_secret_digest: String,
        expires_in_s: u32,
        now: Timestamp,
    ) -> Self {
        assert!(order.amount.minor > 0, "a checkout costs something");
        assert!(!order.available_methods.is_empty(), "a checkout can be paid");
        assert!(expires_in_s > 0, "a checkout can be paid for a while");
        // Whole seconds, so that what is printed is what decides.
        let created_at = now.floor_to_second();
        Self {
            id,
            scope,
            version: 0,
            state: State::Pending,
            order,
            client_secret_digest,
            expires_at: match crate::planted!(Defect::CheckoutExpiryNotWhole) {
                true => now.plus(Duration::from_secs(u64::from(expires_in_s))),
                false => created_at.plus(Duration::from_secs(u64::from(expires_in_s))),
            },
            payment_session: None,
            transaction: None,
            attempt_with_provider: false,
            attempt_count: 0,
            event_sequence: 0,
            created_at,
            updated_at: created_at,
        }
    }

    /// What a reader is told at `now`, whether or not the timer ran.
    pub fn status(&self, now: Timestamp) -> Status {
        match self.state {
            State::Pending if self.is_overdue(now) => Status::Expired,
            State::Pending => Status::Pending,
            State::Completed { .. } => Status::Completed,
            State::Expired { .. } => Status::Expired,
            State::Cancelled { .. } => Status::Cancelled,
        }
    }

    /// What is stored, for the promoted column.
    pub fn stored_status(&self) -> Status {
        match self.state {
            State::Pending => Status::Pending,
            State::Completed { .. } => Status::Completed,
            State::Expired { .. } => Status::Expired,
            State::Cancelled { .. } => Status::Cancelled,
        }
    }

    /// When the timer has to look again, while the checkout is pending.
    pub fn next_deadline(&self) -> Timestamp {
        if self.attempt_with_provider && !crate::planted!(Defect::CheckoutHoldForgotten) {
            self.expires_at.plus(LONGEST_HOLD)
        } else {
            self.expires_at
        }
    }

    fn is_overdue(&self, now: Timestamp) -> bool {
        self.clock(now) >= self.next_deadline()
    }

    pub fn is_past_expiry(&self, now: Timestamp) -> bool {
        if crate::planted!(Defect::CheckoutExpiryInclusive) {
            return self.clock(now) > self.expires_at;
        }
        self.clock(now) >= self.expires_at
    }

    /// What this checkout has seen already does not become the future again (P9).
    pub fn clock(&self, now: Timestamp) -> Timestamp {
        now.max(self.updated_at)
    }

    /// Stores the expiry that the clock has decided.
    pub fn observe(&mut self, now: Timestamp) -> Option<EventType> {
        if self.state != State::Pending {
            return None;
        }
        if !self.is_overdue(now) {
            // Its attempt alone holds it: whoever ends that may have looked at the clock before.
            if self.is_past_expiry(now) {
                self.touch(now);
            }
            return None;
        }
        let at = self.touch(now);
        assert!(at >= self.expires_at, "nothing expires early");
        self.state = State::Expired { at };
        assert_eq!(self.status(now), Status::Expired, "what is stored is what readers were told");
        Some(EventType::CheckoutExpired)
    }

    pub fn cancel(&mut self, now: Timestamp) -> Result<EventType, Refusal> {
        self.refuse_if_closed(now)?;
        assert_eq!(self.state, State::Pending, "only a pending checkout is cancelled");
        let at = self.touch(now);
        assert!(at >= self.created_at, "nothing ends before it began");
        self.state = State::Cancelled { at };
        Ok(EventType::CheckoutCancelled)
    }

    /// Whether an attempt may begin at `now`.
    pub fn payable(&self, now: Timestamp) -> Result<(), Refusal> {
        self.refuse_if_closed(now)?;
        // An attempt that is with the provider holds the checkout open, but for that attempt only.
        if self.is_past_expiry(now) { Err(Refusal::CheckoutExpired) } else { Ok(()) }
    }

    fn refuse_if_closed(&self, now: Timestamp) -> Result<(), Refusal> {
        match self.status(now) {
            Status::Pending => Ok(()),
            Status::Completed => Err(Refusal::CheckoutAlreadyCompleted),
            Status::Expired => Err(Refusal::CheckoutExpired),
            Status::Cancelled if crate::planted!(Defect::CancelledCheckoutPayable) => Ok(()),
            Status::Cancelled => Err(Refusal::CheckoutAlreadyCancelled),
        }
    }

    pub fn session_opened(&mut self, session: Id<PaymentSession>, now: Timestamp) {
        assert_eq!(self.state, State::Pending, "a session opens on a pending checkout");
        assert!(!self.is_past_expiry(now), "a session opens before the time runs out");
        assert_ne!(self.payment_session, Some(session), "a session opens once");
        self.payment_session = Some(session);
        self.touch(now);
    }

    /// The latest attempt moved. `with_provider` tells whether its outcome is open over there.
    pub fn attempt_moved(&mut self, transaction: TransactionSummary, with_provider: bool, now: Timestamp) {
        assert_eq!(transaction.amount, self.order.amount, "an attempt is for the whole checkout");
        assert!(!transaction.is_paid(), "money goes through `money_arrived`");
        self.touch(now);
        let known = self.transaction.as_ref();
        let is_new = known.is_none_or(|known| known.id != transaction.id);
        // Once money is shown, no other attempt hides it: a loser that ends later is over, and that is all.
        if known.is_some_and(TransactionSummary::is_paid) {
            assert!(is_new, "paid is final");
            return;
        }
        if is_new {
            self.attempt_count += 1;
        }
        // Readers were told `expired` from the moment the time ran out; nothing takes that back.
        let is_held = with_provider && !self.is_overdue(now);
        if !crate::planted!(Defect::CheckoutAttemptHidden) || is_held {
            self.transaction = Some(transaction);
        }
        self.attempt_with_provider = is_held;
        assert!(self.attempt_count > 0, "an attempt that is shown is counted");
    }

    /// A provider confirmed an attempt of this checkout. Call [`Checkout::observe`] first.
    pub fn money_arrived(&mut self, transaction: TransactionSummary, now: Timestamp) -> Settlement {
        assert!(transaction.is_completed(), "only a completed attempt brings money");
        assert_eq!(transaction.amount, self.order.amount, "the whole amount arrives, or none of it counts");
        assert_eq!(self.status(now), self.stored_status(), "what the clock decided is stored first");
        assert!(self.attempt_count > 0, "money arrives for an attempt that began");
        let was_paid = self.transaction.as_ref().filter(|known| known.is_paid()).map(|known| known.id);
        assert_ne!(was_paid, Some(transaction.id), "one attempt brings money once");
        let at = self.touch(now);
        let settlement = match (self.state, was_paid) {
            (State::Pending, None) => {
                self.state = State::Completed { at };
                Settlement::Paid
            }
            (State::Expired { .. } | State::Cancelled { .. }, None) => Settlement::Late,
            // The first money is shown; a further one would hide it.
            (State::Completed { .. } | State::Expired { .. } | State::Cancelled { .. }, Some(_)) => {
                return if crate::planted!(Defect::SecondMoneyIsLate) { Settlement::Late } else { Settlement::Second };
            }
            (State::Pending, Some(_)) => unreachable!("a pending checkout has no money"),
            (State::Completed { .. }, None) => unreachable!("a completed checkout shows what paid it"),
        };
        self.transaction = Some(transaction);
        self.attempt_with_provider = false;
        assert_ne!(self.stored_status(), Status::Pending, "money leaves nothing open");
        settlement
    }

    /// Money of an attempt was paid back: the checkout keeps its state, and shows it where it shows that attempt.
    pub fn refund_moved(&mut self, transaction: TransactionSummary, now: Timestamp) -> bool {
        assert!(transaction.is_paid(), "only money that came is paid back");
        let is_shown = self.transaction.as_ref().is_some_and(|shown| shown.id == transaction.id);
        if is_shown {
            self.touch(now);
            self.transaction = Some(transaction);
        }
        is_shown
    }

    pub fn cancelled_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Cancelled { at } => Some(at),
            State::Pending | State::Completed { .. } | State::Expired { .. } => None,
        }
    }

    /// The session that brought the money where money came, else the one that was opened last: a payer who switched the
    /// method may still pay by the first one.
    pub fn shown_session(&self) -> Option<Id<PaymentSession>> {
        let paid = self.transaction.as_ref().filter(|shown| shown.is_paid());
        paid.and_then(|paid| paid.session).or(self.payment_session)
    }

    pub fn attempt_with_provider(&self) -> bool {
        self.attempt_with_provider
    }

    /// The number of the next event of this checkout.
    pub fn next_sequence(&mut self) -> i64 {
        assert!(self.event_sequence >= 0, "events are counted from one");
        self.event_sequence += if crate::planted!(Defect::CheckoutEventSkipped) { 2 } else { 1 };
        self.event_sequence
    }

    fn touch(&mut self, now: Timestamp) -> Timestamp {
        self.updated_at = self.updated_at.max(now);
        self.updated_at
    }
}

#[cfg(test)]
mod tests;
