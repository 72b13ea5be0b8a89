//! Events: what happened, as the merchant learns it. One name per fact, as on the wire (contract §6).

use serde::{Deserialize, Serialize};

use crate::id::{Id, Object};
use crate::scope::Scope;
use crate::time::Timestamp;

macro_rules! event_types {
    ($($variant:ident => $name:literal),+ $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum EventType { $(#[serde(rename = $name)] $variant),+ }

        impl EventType {
            pub const ALL: &'static [EventType] = &[$(EventType::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $(EventType::$variant => $name),+ }
            }
        }
    };
}

event_types! {
    SmsSent => "sms.sent",
    SmsDelivered => "sms.delivered",
    SmsFailed => "sms.failed",
    PaymentSucceeded => "payment.succeeded",
    PaymentFailed => "payment.failed",
    InvoicePaid => "invoice.paid",
    InvoicePaymentFailed => "invoice.payment_failed",
    InvoiceOverdue => "invoice.overdue",
    SubscriptionCreated => "subscription.created",
    SubscriptionUpdated => "subscription.updated",
    SubscriptionCancelled => "subscription.cancelled",
    PayoutCompleted => "payout.completed",
    PayoutFailed => "payout.failed",
    CheckoutCompleted => "checkout.completed",
    CheckoutExpired => "checkout.expired",
    CheckoutCancelled => "checkout.cancelled",
    InvoiceCreated => "invoice.created",
    InvoiceFinalized => "invoice.finalized",
    InvoiceUpdated => "invoice.updated",
    InvoiceSent => "invoice.sent",
    InvoiceCancelled => "invoice.cancelled",
    InvoicePartiallyPaid => "invoice.partially_paid",
    RefundCompleted => "refund.completed",
    RefundFailed => "refund.failed",
    PaymentLinkCreated => "payment_link.created",
    PaymentLinkUpdated => "payment_link.updated",
    PaymentLinkDeactivated => "payment_link.deactivated",
    PaymentLinkDeleted => "payment_link.deleted",
    DonationReceived => "donation.received",
    WebhookTest => "webhook.test",
}

impl EventType {
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }

    /// Before the point: `payment_link`.
    pub fn resource(self) -> &'static str {
        self.as_str().split('.').next().expect("split yields at least one part")
    }
}

/// What an event is called: by this version, or by a later one that runs beside it during an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventName {
    Known(EventType),
    Later(String),
}

impl EventName {
    pub fn read(text: String) -> Self {
        EventType::parse(&text).map_or(EventName::Later(text), EventName::Known)
    }

    pub fn known(&self) -> Option<EventType> {
        match self {
            EventName::Known(kind) => Some(*kind),
            EventName::Later(_) => None,
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            EventName::Known(kind) => kind.as_str(),
            EventName::Later(name) => name,
        }
    }
}

impl From<EventType> for EventName {
    fn from(kind: EventType) -> Self {
        EventName::Known(kind)
    }
}

/// A fact that was committed. `body` is the envelope exactly as every attempt sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: Id<Event>,
    pub scope: Scope,
    pub kind: EventName,
    /// The public id of the object whose sequence counts this event.
    pub object_id: String,
    /// 1, 2, 3 … per object, without a gap.
    pub sequence: i64,
    pub body: String,
    pub created_at: Timestamp,
}

impl Object for Event {
    const PREFIX: &'static str = "evt";
    const NOUN: &'static str = "event";
}
