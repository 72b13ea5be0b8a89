//! The rail of the model: what it holds under each of our references, and what it says of it.

use domain::method::Flow;
use domain::rail::{FailureReason, NextAction, Report, Started};
use domain::{Method, Money};

/// Why it says no is nothing that anybody decides by.
pub(crate) const NO: FailureReason = FailureReason::Declined;

/// What is there under one reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Order {
    pub(crate) state: OrderState,
    /// How many orders were taken under the reference: what a payer could be charged, at worst.
    pub(crate) taken: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum OrderState {
    #[default]
    Unknown,
    /// It was asked, and said no before anything happened.
    Refused,
    Open,
    /// `corrected`: it had said that it failed.
    Paid {
        corrected: bool,
    },
    Failed,
}

/// What it says of an order, by callback or when asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Word {
    NotFound,
    Open,
    Paid,
    Failed,
}

/// Whether the second call for a reference is taken for the first. A rail may say no to it all the same.
pub(crate) fn is_idempotent(method: Method) -> bool {
    method.flow() == Flow::Redirect
}

impl Order {
    /// A call arrives that starts a payment; whether it is taken.
    pub(crate) fn start(&mut self, method: Method) -> bool {
        match self.state {
            OrderState::Refused => return false,
            OrderState::Unknown => *self = Self { state: OrderState::Open, taken: 1 },
            OrderState::Open | OrderState::Paid { .. } | OrderState::Failed if is_idempotent(method) => {}
            OrderState::Open | OrderState::Paid { .. } | OrderState::Failed => self.taken += 1,
        }
        true
    }

    pub(crate) fn withdraw(&mut self) {
        if self.state == OrderState::Open {
            self.state = OrderState::Failed;
        }
    }

    pub(crate) fn word(&self) -> Word {
        match self.state {
            OrderState::Unknown | OrderState::Refused => Word::NotFound,
            OrderState::Open => Word::Open,
            OrderState::Paid { .. } => Word::Paid,
            OrderState::Failed => Word::Failed,
        }
    }

    pub(crate) fn is_paid(&self) -> bool {
        matches!(self.state, OrderState::Paid { .. })
    }
}

impl Word {
    pub(crate) fn report(self, method: Method, amount: Money) -> Report {
        match self {
            Word::NotFound => Report::NotFound,
            Word::Open if method.flow() == Flow::Redirect => Report::Open,
            Word::Open => Report::Processing,
            Word::Paid => Report::Paid { amount, rail_reference: "R".into() },
            Word::Failed => Report::Failed { reason: NO },
        }
    }
}

/// What it answers when it takes an order.
pub(crate) fn started(method: Method) -> Started {
    let next_action = match method.flow() {
        Flow::Redirect => NextAction::Redirect { url: "https://rail.example".into() },
        Flow::Push => NextAction::ApproveOnPhone { instructions: String::new(), poll_after_s: 2 },
        Flow::Otp => unreachable!("this model types no codes"),
    };
    Started { next_action, rail_reference: Some("R".into()) }
}
