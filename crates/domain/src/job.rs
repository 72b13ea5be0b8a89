//! Work that is owed: written in the transaction that owes it, done by the worker, more than once if need be.

use crate::checkout::Checkout;
use crate::id::Id;
use crate::invoice::Invoice;
use crate::organization::Organization;
use crate::payment::{PaymentSession, Transaction};
use crate::payment_link::PaymentLink;
use crate::receipt::Receipt;
use crate::refund::Refund;
use crate::scope::{Mode, Scope};
use crate::time::Timestamp;
use crate::webhook::WebhookEndpoint;

/// One kind of work on one object. There is at most one job of a kind for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Publish that a checkout's time ran out.
    ExpireCheckout(Id<Checkout>),
    /// Publish that an invoice was not paid in time.
    OverdueInvoice(Id<Invoice>),
    /// Close a payment session that nobody has used in time.
    ExpireSession(Id<PaymentSession>),
    /// Publish that a payment link's time ran out.
    ExpirePaymentLink(Id<PaymentLink>),
    /// Make the file of an invoice, so that it is there when somebody asks.
    RenderInvoice(Id<Invoice>),
    /// Make the file of a receipt.
    RenderReceipt(Id<Receipt>),
    /// Fetch the merchant's picture. The merchant is kept once per mode, under one id.
    FetchLogo(Id<Organization>, Mode),
    /// Mark what an endpoint is not sent any more.
    GiveUpDeliveries(Id<WebhookEndpoint>),
    /// Hand an attempt to its rail (or find out whether that happened).
    StartAttempt(Id<Transaction>),
    /// Ask the rail what became of an attempt.
    AskRail(Id<Transaction>),
    /// Tell the rail that nobody waits for this attempt any more.
    WithdrawAttempt(Id<Transaction>),
    /// The simulator's payer or network acts.
    SimulatePayer(Id<Transaction>),
    /// Hand a refund to its rail (or find out whether that happened).
    SendRefund(Id<Refund>),
    /// Ask the rail what became of a refund.
    AskRefund(Id<Refund>),
    /// The simulator's network pays back.
    SimulateRefund(Id<Refund>),
}

/// What keeps one kind of work from waiting behind another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Somebody waits for it, or its time was promised.
    Prompt,
    /// Made ahead of the time when somebody asks, who would have it made otherwise: it waits while there is anything else to do.
    Ahead,
    /// It shows already, and may take long: it waits behind nothing made ahead, and holds up nothing prompt.
    Aside,
    /// What runs out in live mode, any number of it at one moment. Whoever asks is told by the clock already.
    Timers,
    /// What would be prompt, in test mode: however much of it there is, no real money waits for it.
    Test,
}

impl Lane {
    pub const ALL: [Lane; 5] = [Lane::Prompt, Lane::Ahead, Lane::Aside, Lane::Timers, Lane::Test];

    /// As it is stored.
    pub fn number(self) -> i64 {
        match self {
            Lane::Prompt => 0,
            Lane::Ahead => 1,
            Lane::Aside => 2,
            Lane::Timers => 3,
            Lane::Test => 4,
        }
    }
}

impl Job {
    /// Those that this version knows.
    pub const KINDS: [&str; 15] = [
        "expire_checkout",
        "overdue_invoice",
        "expire_session",
        "expire_payment_link",
        "render_invoice",
        "render_receipt",
        "fetch_logo",
        "give_up_deliveries",
        "start_attempt",
        "ask_rail",
        "withdraw_attempt",
        "simulate_payer",
        "send_refund",
        "ask_refund",
        "simulate_refund",
    ];

    /// Of what is owed in `mode`.
    pub fn lane(&self, mode: Mode) -> Lane {
        match self {
            Job::RenderInvoice(_) | Job::RenderReceipt(_) => Lane::Ahead,
            Job::FetchLogo(..) | Job::GiveUpDeliveries(_) => Lane::Aside,
            _ if mode == Mode::Test => Lane::Test,
            Job::ExpireCheckout(_) | Job::OverdueInvoice(_) | Job::ExpireSession(_) | Job::ExpirePaymentLink(_) => {
                Lane::Timers
            }
            Job::StartAttempt(_)
            | Job::AskRail(_)
            | Job::WithdrawAttempt(_)
            | Job::SimulatePayer(_)
            | Job::SendRefund(_)
            | Job::AskRefund(_)
            | Job::SimulateRefund(_) => Lane::Prompt,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Job::ExpireCheckout(_) => "expire_checkout",
            Job::OverdueInvoice(_) => "overdue_invoice",
            Job::ExpireSession(_) => "expire_session",
            Job::ExpirePaymentLink(_) => "expire_payment_link",
            Job::RenderInvoice(_) => "render_invoice",
            Job::RenderReceipt(_) => "render_receipt",
            Job::FetchLogo(..) => "fetch_logo",
            Job::GiveUpDeliveries(_) => "give_up_deliveries",
            Job::StartAttempt(_) => "start_attempt",
            Job::AskRail(_) => "ask_rail",
            Job::WithdrawAttempt(_) => "withdraw_attempt",
            Job::SimulatePayer(_) => "simulate_payer",
            Job::SendRefund(_) => "send_refund",
            Job::AskRefund(_) => "ask_refund",
            Job::SimulateRefund(_) => "simulate_refund",
        }
    }

    pub fn object_id(&self) -> String {
        match self {
            Job::ExpireCheckout(id) => id.to_string(),
            Job::OverdueInvoice(id) | Job::RenderInvoice(id) => id.to_string(),
            Job::RenderReceipt(id) => id.to_string(),
            Job::ExpireSession(id) => id.to_string(),
            Job::FetchLogo(id, mode) => format!("{id}/{}", mode.as_str()),
            Job::ExpirePaymentLink(id) => id.to_string(),
            Job::GiveUpDeliveries(id) => id.to_string(),
            Job::StartAttempt(id) | Job::AskRail(id) | Job::WithdrawAttempt(id) | Job::SimulatePayer(id) => {
                id.to_string()
            }
            Job::SendRefund(id) | Job::AskRefund(id) | Job::SimulateRefund(id) => id.to_string(),
        }
    }

    /// A stored row back into a job; `None` for what this version does not know.
    pub fn parse(kind: &str, object_id: &str) -> Option<Self> {
        let transaction = || object_id.parse().ok();
        let refund = || object_id.parse().ok();
        match kind {
            "expire_checkout" => object_id.parse().ok().map(Job::ExpireCheckout),
            "overdue_invoice" => object_id.parse().ok().map(Job::OverdueInvoice),
            "expire_session" => object_id.parse().ok().map(Job::ExpireSession),
            "expire_payment_link" => object_id.parse().ok().map(Job::ExpirePaymentLink),
            "render_invoice" => object_id.parse().ok().map(Job::RenderInvoice),
            "render_receipt" => object_id.parse().ok().map(Job::RenderReceipt),
            "fetch_logo" => {
                let (id, mode) = object_id.split_once('/')?;
                Some(Job::FetchLogo(id.parse().ok()?, Mode::parse(mode)?))
            }
            "give_up_deliveries" => object_id.parse().ok().map(Job::GiveUpDeliveries),
            "start_attempt" => transaction().map(Job::StartAttempt),
            "ask_rail" => transaction().map(Job::AskRail),
            "withdraw_attempt" => transaction().map(Job::WithdrawAttempt),
            "simulate_payer" => transaction().map(Job::SimulatePayer),
            "send_refund" => refund().map(Job::SendRefund),
            "ask_refund" => refund().map(Job::AskRefund),
            "simulate_refund" => refund().map(Job::SimulateRefund),
            _ => None,
        }
    }
}

/// A job that a worker holds until `lease_until`; the token fences off a holder that was too slow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedJob {
    pub job: Job,
    pub scope: Scope,
    pub due_at: Timestamp,
    /// How often it was claimed, this time included.
    pub attempts: i64,
    pub lease_token: i64,
}
