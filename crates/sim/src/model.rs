//! What the service has to answer and to show, written from its contract (§2, §4, §5, §6) over plain ordered maps. It shares
//! no rule with the product: where the two differ, one of them is wrong.
//!
//! Times are microseconds, money is in minor units. Each function is one request, one word of the network, or one timer.

mod attempts;
mod invoices;
mod links;
mod refunds;
mod session;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub use attempts::{Begin, Begun, Word};
pub use invoices::{Change, NewInvoice};

pub const SECOND: i64 = 1_000_000;
pub const HOUR: i64 = 3600 * SECOND;
pub const DAY: i64 = 24 * HOUR;

/// The code of a refusal; its status follows from it.
pub type Answer<T> = Result<T, &'static str>;
pub type Fields = Vec<(&'static str, Value)>;

/// What one organization has in one mode; nothing of it is seen anywhere else.
#[derive(Debug, Clone, Default)]
pub struct Side {
    pub takes_parts: bool,
    pub may_go_negative: bool,
    pub is_live: bool,
    pub sends_mail: bool,
    pub checkouts: BTreeMap<String, Checkout>,
    pub invoices: BTreeMap<String, Invoice>,
    pub links: BTreeMap<String, Link>,
    pub sessions: BTreeMap<String, Session>,
    pub attempts: BTreeMap<String, Attempt>,
    pub refunds: BTreeMap<String, Refund>,
    pub customers: BTreeMap<String, Customer>,
    pub products: BTreeMap<String, Product>,
    /// The types of each object's events, in order.
    pub events: BTreeMap<String, Vec<&'static str>>,
    /// Debits are positive.
    pub accounts: BTreeMap<String, i64>,
    /// By series and period.
    pub numbers: BTreeMap<String, i64>,
    /// A session that has just opened, before its name is known.
    pub pending_open: Option<Session>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckoutState {
    Pending,
    Completed,
    Expired,
    Cancelled,
}

#[derive(Debug, Clone)]
pub struct Checkout {
    pub amount: i64,
    pub state: CheckoutState,
    pub expires_at: i64,
    pub seen_at: i64,
    pub fixed: Option<&'static str>,
    pub session: Option<String>,
    pub shown: Option<String>,
    /// The network has an attempt of it, and its outcome is open.
    pub is_held: bool,
    pub reference: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvoiceState {
    Draft,
    Pending,
    PartiallyPaid,
    Overdue,
    Paid,
    Cancelled,
}

#[derive(Debug, Clone)]
pub struct Invoice {
    pub number: String,
    pub state: InvoiceState,
    pub lines: Vec<(i64, i64)>,
    /// In ten-thousandths of a percent.
    pub tax_rate: i64,
    pub notes: String,
    pub due_at: i64,
    pub issued_at: Option<i64>,
    pub overdue_at: i64,
    pub paid: i64,
    /// Money that came after it was cancelled.
    pub late: i64,
    pub revision: i64,
    pub seen_at: i64,
    pub session: Option<String>,
    pub held: Option<(String, i64)>,
    pub receipts: Vec<(String, i64)>,
    /// When it was mailed.
    pub sent_at: Vec<i64>,
}

#[derive(Debug, Clone)]
pub struct Link {
    pub amount: i64,
    pub is_active: bool,
    pub is_deleted: bool,
    pub expires_at: Option<i64>,
    pub most: Option<i64>,
    pub used: i64,
    pub title: String,
    pub seen_at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Checkout,
    Invoice,
    Link,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Checkout => "checkout",
            Kind::Invoice => "invoice",
            Kind::Link => "payment_link",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    Pending,
    Processing,
    Succeeded,
    Failed,
    Cancelled,
}

/// What the payer has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Nothing,
    Redirect,
    Approve,
    Code { left: u8 },
}

#[derive(Debug, Clone)]
pub struct Session {
    pub kind: Kind,
    pub object: String,
    pub amount: i64,
    pub method: Option<&'static str>,
    pub phone: Option<&'static str>,
    pub state: SessionState,
    pub next: Next,
    pub reason: Option<&'static str>,
    pub is_unknown: bool,
    pub attempt: Option<String>,
    /// When a code was handed over whose call was not answered.
    pub code_sent_at: Option<i64>,
    pub code_told: bool,
    pub expires_at: i64,
    pub seen_at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptState {
    Pending,
    Processing,
    Completed,
    Failed,
    Cancelled,
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Sending,
    Waiting,
    Unknown,
    Settled,
}

/// A transaction: an attempt at the network, or what was recorded by hand.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub session: Option<String>,
    pub kind: Kind,
    pub object: String,
    pub amount: i64,
    pub fee: i64,
    pub method: &'static str,
    pub state: AttemptState,
    pub step: Step,
    /// What the network reports instead.
    pub parked: Option<(i64, &'static str)>,
    pub is_late: bool,
    pub is_duplicate: bool,
    pub refunded: i64,
    pub refunding: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundState {
    Pending,
    Processing,
    Completed,
    Failed,
}

#[derive(Debug, Clone)]
pub struct Refund {
    pub attempt: String,
    pub amount: i64,
    pub state: RefundState,
    pub step: Step,
    pub parked: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Customer {
    pub email: String,
    pub name: String,
    pub is_deleted: bool,
}

#[derive(Debug, Clone)]
pub struct Product {
    pub price: i64,
    pub is_active: bool,
    pub is_deleted: bool,
}

pub fn text(minor: i64) -> String {
    format!("{}.{:02}", minor / 100, minor % 100)
}

/// Contract §1.7: half-up to the minor unit. The rate is in ten-thousandths of a percent.
pub fn tax(amount: i64, rate: i64) -> i64 {
    ((i128::from(amount) * i128::from(rate) * 2 + 1_000_000) / 2_000_000) as i64
}

/// 2.5 %, half-up.
pub fn fee(amount: i64) -> i64 {
    (amount * 25 + 500) / 1000
}

pub fn needs_phone(method: &str) -> bool {
    matches!(method, "afrimoney" | "qmoney")
}

impl Side {
    pub fn tell(&mut self, object: &str, event: &'static str) {
        self.events.entry(object.to_owned()).or_default().push(event);
    }

    pub fn post(&mut self, account: &str, minor: i64) {
        *self.accounts.entry(account.to_owned()).or_default() += minor;
    }

    /// The next of a series; `now` decides its period.
    pub fn number(&mut self, prefix: &str, period: &str, width: usize) -> String {
        let count = self.numbers.entry(format!("{prefix}-{period}")).or_default();
        *count += 1;
        format!("{prefix}-{period}-{count:0width$}")
    }

    #[expect(clippy::too_many_arguments, reason = "what the request says, one by one")]
    pub fn create_checkout(
        &mut self,
        id: &str,
        amount: i64,
        lasts_s: i64,
        fixed: Option<&'static str>,
        session: Option<&str>,
        reference: String,
        now: i64,
    ) {
        let created_at = now - now % SECOND;
        let expires_at = created_at + lasts_s * SECOND;
        let mut checkout = Checkout {
            amount,
            state: CheckoutState::Pending,
            expires_at,
            seen_at: created_at,
            fixed,
            session: None,
            shown: None,
            is_held: false,
            reference,
        };
        if let Some(session) = session {
            let opened = Session {
                kind: Kind::Checkout,
                object: id.to_owned(),
                amount,
                method: fixed,
                phone: None,
                state: SessionState::Pending,
                next: Next::Nothing,
                reason: None,
                is_unknown: false,
                attempt: None,
                code_sent_at: None,
                code_told: false,
                expires_at,
                seen_at: now,
            };
            self.sessions.insert(session.to_owned(), opened);
            checkout.session = Some(session.to_owned());
            checkout.seen_at = checkout.seen_at.max(now);
        }
        self.checkouts.insert(id.to_owned(), checkout);
    }

    pub fn cancel_checkout(&mut self, id: &str, now: i64) -> Answer<()> {
        let checkout = self.checkouts.get(id).ok_or("checkout_not_found")?;
        match checkout.shown_state(now) {
            CheckoutState::Pending => {}
            closed => return Err(closed.refusal()),
        }
        let session = checkout.session.clone();
        let checkout = self.checkouts.get_mut(id).expect("it was looked up");
        checkout.state = CheckoutState::Cancelled;
        checkout.seen_at = checkout.seen_at.max(now);
        self.close_session_of_object(session.as_deref(), false, now);
        self.tell(id, "checkout.cancelled");
        Ok(())
    }

    /// The timer of a checkout.
    pub fn checkout_timer(&mut self, id: &str, now: i64) {
        if self.observe_checkout(id, now) {
            let session = self.checkouts[id].session.clone();
            self.close_session_of_object(session.as_deref(), true, now);
            self.tell(id, "checkout.expired");
        }
    }

    /// Whether its time has run out just now.
    pub fn observe_checkout(&mut self, id: &str, now: i64) -> bool {
        let Some(checkout) = self.checkouts.get_mut(id) else { return false };
        if checkout.state != CheckoutState::Pending {
            return false;
        }
        if !checkout.is_overdue(now) {
            if checkout.is_past_expiry(now) {
                checkout.seen_at = checkout.seen_at.max(now);
            }
            return false;
        }
        checkout.state = CheckoutState::Expired;
        checkout.seen_at = checkout.seen_at.max(now);
        true
    }

    pub fn checkout_fields(&self, id: &str, now: i64) -> Answer<Fields> {
        let checkout = self.checkouts.get(id).ok_or("checkout_not_found")?;
        let shown = checkout.shown.as_ref().map(|id| self.summary(id, now)).unwrap_or(Value::Null);
        Ok(vec![
            ("id", json!(id)),
            ("amount", json!(text(checkout.amount))),
            ("status", json!(checkout.shown_state(now).as_str())),
            ("reference", json!(checkout.reference)),
            ("livemode", json!(self.is_live)),
            ("expires_at", json!(domain::Timestamp::from_micros(checkout.expires_at).to_text())),
            ("payment_session_id", json!(self.shown_session(checkout))),
            ("transaction", shown),
        ])
    }

    /// Contract §5: the session that the payer comes back with, which is the one that paid.
    fn shown_session(&self, checkout: &Checkout) -> Option<String> {
        let shown = checkout.shown.as_ref().map(|id| &self.attempts[id]);
        let paid = shown.filter(|attempt| attempt.state == AttemptState::Completed);
        paid.and_then(|attempt| attempt.session.clone()).or_else(|| checkout.session.clone())
    }

    pub fn summary(&self, id: &str, now: i64) -> Value {
        let attempt = self.as_read(&self.attempts[id], now);
        json!({
            "id": id, "status": attempt.status(), "amount": text(attempt.amount), "fee": text(attempt.fee),
            "net_amount": text(attempt.amount - attempt.fee),
        })
    }

    /// As a reader is told, whether or not the timer ran.
    fn as_read(&self, attempt: &Attempt, now: i64) -> Attempt {
        let mut attempt = attempt.clone();
        let is_over = attempt.session.as_ref().is_some_and(|session| self.is_over(session, now));
        if attempt.state == AttemptState::Pending && is_over {
            attempt.state = AttemptState::Expired;
        }
        attempt
    }

    pub fn transaction_fields(&self, id: &str, now: i64) -> Answer<Fields> {
        let attempt = self.as_read(self.attempts.get(id).ok_or("transaction_not_found")?, now);
        Ok(vec![
            ("id", json!(id)),
            ("status", json!(attempt.status())),
            ("amount", json!(text(attempt.amount))),
            ("fee", json!(text(attempt.fee))),
            ("net_amount", json!(text(attempt.amount - attempt.fee))),
            ("refunded_amount", json!(text(attempt.refunded))),
            ("object_id", json!(attempt.object)),
            ("object_type", json!(attempt.kind.as_str())),
            ("payment_method", json!(attempt.method)),
            ("livemode", json!(self.is_live)),
        ])
    }

    pub fn balance(&self) -> i64 {
        -self.accounts.get("merchant").copied().unwrap_or_default()
    }

    /// Create or retrieve: whether it is new.
    pub fn customer_by_email(&self, email: &str) -> Option<&str> {
        self.customers.iter().find(|(_, one)| !one.is_deleted && one.email == email).map(|(id, _)| id.as_str())
    }
}

impl CheckoutState {
    pub fn as_str(self) -> &'static str {
        match self {
            CheckoutState::Pending => "pending",
            CheckoutState::Completed => "completed",
            CheckoutState::Expired => "expired",
            CheckoutState::Cancelled => "cancelled",
        }
    }

    pub fn refusal(self) -> &'static str {
        match self {
            CheckoutState::Completed => "checkout_already_completed",
            CheckoutState::Cancelled => "checkout_already_cancelled",
            CheckoutState::Pending | CheckoutState::Expired => "checkout_expired",
        }
    }
}

impl Checkout {
    pub fn is_past_expiry(&self, now: i64) -> bool {
        now.max(self.seen_at) >= self.expires_at
    }

    /// An attempt at the network holds it open for a day at most.
    pub fn is_overdue(&self, now: i64) -> bool {
        now.max(self.seen_at) >= self.expires_at + if self.is_held { DAY } else { 0 }
    }

    pub fn shown_state(&self, now: i64) -> CheckoutState {
        match self.state {
            CheckoutState::Pending if self.is_overdue(now) => CheckoutState::Expired,
            state => state,
        }
    }
}

impl Attempt {
    pub fn status(&self) -> &'static str {
        match self.state {
            AttemptState::Pending => "pending",
            AttemptState::Processing => "processing",
            AttemptState::Completed if self.refunded == 0 => "completed",
            AttemptState::Completed if self.refunded < self.amount => "partially_refunded",
            AttemptState::Completed => "refunded",
            AttemptState::Failed => "failed",
            AttemptState::Cancelled => "cancelled",
            AttemptState::Expired => "expired",
        }
    }
}
