//! The payment network outside: what its wallets really hold, and how its answers get lost. It survives every crash of the
//! service, as the world does, and writes down each word that it gave, so that the model hears what the service heard.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dalasi::app::{App, look_up};
use dalasi::error::Failure;
use dalasi::rails::{Order, Rail, RefundOrder};
use domain::payment::{PaymentSession, SessionStatus, Transaction};
use domain::rail::{Called, Capability, FailureReason, NextAction, RefundReport, RefundSupport, Report, Started};
use domain::refund::Refund;
use domain::{Currency, Id, Method, Money, Scope};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::random::Dice;

pub const RAIL: &str = "network";
pub const RIGHT_CODE: &str = "123456";
const CODE_TRIES: u8 = 3;

/// What became of money that a payer was asked for, as only the network knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wallet {
    AwaitsCode { left: u8 },
    AwaitsPayer,
    Processing,
    Paid,
    Failed,
}

#[derive(Debug, Clone)]
pub struct NetworkPayment {
    pub scope: Scope,
    pub method: Method,
    pub amount: Money,
    pub wallet: Wallet,
    /// Orders under this reference, the first and those that asked again.
    pub starts: u32,
    /// So often it was asked to drop it.
    pub withdrawals: u32,
}

#[derive(Debug, Clone)]
pub struct NetworkRefund {
    pub scope: Scope,
    pub transaction: Id<Transaction>,
    pub method: Method,
    pub amount: Money,
    /// `None` while it is under way.
    pub is_paid_back: Option<bool>,
    /// It was paid back after it had failed: others may have taken its place meanwhile.
    pub is_corrected: bool,
    /// Orders under this reference, the first and those that asked again.
    pub sends: u32,
}

/// A word that the network gave, in the order in which the service heard it.
#[derive(Debug, Clone)]
pub enum Heard {
    Started {
        transaction: Id<Transaction>,
        session: String,
        method: Method,
        amount: Money,
        called: Called<Started>,
    },
    Code {
        transaction: Id<Transaction>,
        called: Called<Report>,
    },
    Asked {
        transaction: Id<Transaction>,
        report: Report,
    },
    Refunded {
        refund: Id<Refund>,
        amount: Money,
        called: Called<RefundReport>,
    },
    AskedRefund {
        refund: Id<Refund>,
        report: RefundReport,
    },
    Withdrawn,
    /// It spoke by itself, before it answered the call that follows.
    Early {
        transaction: Id<Transaction>,
        report: Report,
    },
    EarlyRefund {
        refund: Id<Refund>,
        report: RefundReport,
    },
}

/// Whether the second order of a payment is taken for the first.
pub fn starts_once(method: Method) -> bool {
    matches!(method, Method::Wave | Method::Qmoney)
}

/// The same of money that goes back.
pub fn refunds_once(method: Method) -> bool {
    method != Method::Card
}

/// What was said before the call was answered, and the rest.
pub fn split_early(heard: &[Heard]) -> (&[Heard], &[Heard]) {
    heard.split_at(heard.iter().take_while(|word| word.is_early()).count())
}

impl Heard {
    pub fn is_early(&self) -> bool {
        matches!(self, Heard::Early { .. } | Heard::EarlyRefund { .. })
    }
}

/// The right number in another currency.
pub fn in_other_currency(amount: Money) -> Money {
    Money::new(amount.minor, Currency::parse("XOF").expect("a currency"))
}

pub fn one_more(amount: Money) -> Money {
    Money::new(amount.minor + 1, amount.currency)
}

/// What happens to the next call of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFault {
    /// It arrives and is answered.
    None,
    /// It never arrives, and the caller can't know.
    LostOnTheWay,
    /// It takes effect, and its answer is lost.
    AnswerLost,
    /// A clear no.
    Refused,
    /// It takes effect, and its caller never hears of it: the process dies meanwhile.
    Hangs,
    /// The process dies before it goes out.
    NeverLeaves,
}

impl CallFault {
    /// Whether the network hears of the call.
    fn arrives(self) -> bool {
        matches!(self, CallFault::None | CallFault::AnswerLost | CallFault::Hangs)
    }

    fn kills(self) -> bool {
        matches!(self, CallFault::Hangs | CallFault::NeverLeaves)
    }

    /// What its caller hears, if it lives.
    fn called<T>(self, answer: impl FnOnce() -> T) -> Called<T> {
        match self {
            CallFault::None => Called::Answered(answer()),
            CallFault::Refused => Called::Refused(FailureReason::ProviderError),
            CallFault::LostOnTheWay | CallFault::AnswerLost | CallFault::Hangs | CallFault::NeverLeaves => {
                Called::Lost("no answer".into())
            }
        }
    }
}

#[derive(Default)]
struct Ledger {
    payments: BTreeMap<Id<Transaction>, NetworkPayment>,
    refunds: BTreeMap<Id<Refund>, NetworkRefund>,
    heard: Vec<Heard>,
    fault: Option<CallFault>,
    dice: Option<Dice>,
    hanging: u32,
    early_words: u64,
    has_struck: bool,
    /// Who hears what it says by itself while a call is under way.
    listener: Option<App>,
}

#[derive(Clone, Default)]
pub struct Network(Arc<Mutex<Ledger>>);

impl Network {
    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the calls of the next step meet: `fault` the first of them, `dice` decide the rest.
    pub fn prepare(&self, fault: CallFault, dice: Dice) {
        let mut ledger = self.lock();
        ledger.fault = Some(fault);
        ledger.dice = Some(dice);
        ledger.hanging = 0;
    }

    /// Calls may be overtaken by the network's own word, as long as somebody listens.
    pub fn listener(&self, listener: Option<App>) {
        self.lock().listener = listener;
    }

    pub fn take_heard(&self) -> Vec<Heard> {
        std::mem::take(&mut self.lock().heard)
    }

    /// Calls of this step that nobody will answer.
    pub fn hanging(&self) -> u32 {
        self.lock().hanging
    }

    /// So often it spoke before it answered.
    pub fn early_words(&self) -> u64 {
        self.lock().early_words
    }

    pub fn payments(&self) -> BTreeMap<Id<Transaction>, NetworkPayment> {
        self.lock().payments.clone()
    }

    pub fn refunds(&self) -> BTreeMap<Id<Refund>, NetworkRefund> {
        self.lock().refunds.clone()
    }

    pub fn payment(&self, id: Id<Transaction>) -> Option<NetworkPayment> {
        self.lock().payments.get(&id).cloned()
    }

    /// Open payments with their scope: what a payer can act on.
    pub fn open(&self) -> Vec<(Id<Transaction>, Scope)> {
        let is_open = |payment: &NetworkPayment| !matches!(payment.wallet, Wallet::Paid | Wallet::Failed);
        self.lock().payments.iter().filter(|(_, payment)| is_open(payment)).map(|(id, of)| (*id, of.scope)).collect()
    }

    /// The payer decides, or the network does.
    pub fn decide(&self, id: Id<Transaction>, wallet: Wallet) {
        if let Some(payment) = self.lock().payments.get_mut(&id) {
            // What is paid stays paid.
            if payment.wallet != Wallet::Paid {
                payment.wallet = wallet;
            }
        }
    }

    pub fn decide_refund(&self, id: Id<Refund>, is_paid_back: bool) {
        if let Some(refund) = self.lock().refunds.get_mut(&id)
            && refund.is_paid_back != Some(true)
        {
            refund.is_corrected = is_paid_back && refund.is_paid_back == Some(false);
            refund.is_paid_back = Some(is_paid_back);
        }
    }

    /// What the network says of a payment when it is asked, or by itself.
    pub fn word(&self, id: Id<Transaction>) -> Report {
        let Some(payment) = self.payment(id) else { return Report::NotFound };
        match payment.wallet {
            Wallet::AwaitsCode { left } => Report::AwaitingCode { attempts_left: left },
            Wallet::AwaitsPayer => Report::Open,
            Wallet::Processing => Report::Processing,
            Wallet::Paid => Report::Paid { amount: payment.amount, rail_reference: format!("N-{id}") },
            Wallet::Failed => Report::Failed { reason: FailureReason::Declined },
        }
    }

    pub fn refund_word(&self, id: Id<Refund>) -> RefundReport {
        let Some(refund) = self.lock().refunds.get(&id).cloned() else { return RefundReport::NotFound };
        match refund.is_paid_back {
            None => RefundReport::Processing { rail_reference: None },
            Some(true) => RefundReport::Completed { amount: refund.amount, rail_reference: None },
            Some(false) => RefundReport::Failed { reason: FailureReason::Declined },
        }
    }

    /// The fault of this call where others may follow in the same step: whoever dies may do so in one of those.
    fn fault_of_one(&self) -> CallFault {
        let kills = self.lock().fault.is_some_and(CallFault::kills);
        if kills && self.decided(2) == 0 { CallFault::None } else { self.fault() }
    }

    /// The fault of this call: the step's first call has the step's fault.
    fn fault(&self) -> CallFault {
        let mut ledger = self.lock();
        let fault = ledger.fault.take().unwrap_or(CallFault::None);
        ledger.has_struck |= fault != CallFault::None;
        fault
    }

    /// Whether a call met its fault since this was asked last.
    pub fn take_struck(&self) -> bool {
        std::mem::take(&mut self.lock().has_struck)
    }

    fn decided(&self, bound: u64) -> u64 {
        self.lock().dice.as_mut().map_or(0, |dice| dice.below(bound))
    }

    fn hear(&self, heard: Heard) {
        let mut ledger = self.lock();
        ledger.early_words += u64::from(heard.is_early());
        ledger.heard.push(heard);
    }

    /// Now and then, to who listens: before the call is answered.
    fn speaks_early(&self) -> Option<App> {
        let listener = self.lock().listener.clone()?;
        (self.decided(6) == 0).then_some(listener)
    }

    async fn speak_early(&self, id: Id<Transaction>) {
        let Some(payment) = self.payment(id) else { return };
        let Some(listener) = self.speaks_early() else { return };
        let reference = format!("N-{id}");
        let report = match self.decided(8) {
            0 => Report::Paid { amount: one_more(payment.amount), rail_reference: reference },
            1 => Report::Paid { amount: in_other_currency(payment.amount), rail_reference: reference },
            2 => Report::Processing,
            drawn => {
                match drawn {
                    3 | 4 => self.decide(id, Wallet::Paid),
                    5 => self.decide(id, Wallet::Failed),
                    _ => {}
                }
                self.word(id)
            }
        };
        if is_taken(&listener.report(payment.scope, id, report.clone(), None).await) {
            self.hear(Heard::Early { transaction: id, report });
        }
    }

    /// What it was asked before the call is answered in the middle of it.
    async fn answer_late(&self, id: Id<Transaction>) {
        let Some(payment) = self.payment(id) else { return };
        let listener = self.lock().listener.clone();
        let Some(listener) = listener.filter(|_| self.decided(2) == 0) else { return };
        let Wallet::AwaitsCode { left } = payment.wallet else { return };
        let report = self.word(id);
        let Ok((_, known)) = told(&listener, payment.scope, id).await else { return };
        if is_taken(&listener.report(payment.scope, id, report.clone(), None).await) {
            self.hear(Heard::Early { transaction: id, report });
            // Nobody may type another one, or begin anew, as long as this one may take money.
            if let (Ok((status, _)), true) = (told(&listener, payment.scope, id).await, Some(left) >= known) {
                assert_eq!(status, SessionStatus::Processing, "{id}: its code is on its way");
            }
        }
    }

    async fn speak_early_of_refund(&self, id: Id<Refund>) {
        let Some(refund) = self.lock().refunds.get(&id).cloned() else { return };
        let Some(listener) = self.speaks_early() else { return };
        let completed = |amount| RefundReport::Completed { amount, rail_reference: None };
        let report = match self.decided(6) {
            0 => completed(one_more(refund.amount)),
            1 => completed(in_other_currency(refund.amount)),
            2 => RefundReport::Processing { rail_reference: None },
            _ => self.refund_word(id),
        };
        if is_taken(&listener.report_refund(refund.scope, id, report.clone()).await) {
            self.hear(Heard::EarlyRefund { refund: id, report });
        }
    }

    /// Back to the caller, if the process lives.
    async fn answer<T>(&self, fault: CallFault, called: Called<T>) -> Called<T> {
        if !fault.kills() {
            return called;
        }
        self.lock().hanging += 1;
        std::future::pending().await
    }
}

/// Whether a word is stored, whoever was told so.
fn is_taken(told: &Result<(), Failure>) -> bool {
    matches!(told, Ok(()) | Err(Failure::Store(store::Error::UnknownCommit)))
}

/// What the service knows of a payment's session: its status, and the tries that are left for a code.
async fn told(app: &App, scope: Scope, id: Id<Transaction>) -> Result<(SessionStatus, Option<u8>), Failure> {
    app.read(move |tx, _| {
        let transaction = look_up::<Transaction>(tx, scope, id)?;
        let session = look_up::<PaymentSession>(tx, scope, transaction.attempt().session)?;
        let left = match session.next_action {
            Some(NextAction::Otp { attempts_left, .. }) => Some(attempts_left),
            _ => None,
        };
        Ok((session.status(), left))
    })
    .await
}

impl Rail for Network {
    fn name(&self) -> &'static str {
        RAIL
    }

    fn capabilities(&self) -> Vec<(Method, Capability)> {
        let capability = |method| Capability {
            currencies: &["GMD"],
            // Half of the methods would take a second order for another payment, and half know the reference again.
            start_is_idempotent: starts_once(method),
            code_length: (method == Method::Qmoney).then_some(6),
            refund: RefundSupport::Partial,
            refund_is_idempotent: refunds_once(method),
        };
        Method::ALL.into_iter().map(|method| (method, capability(method))).collect()
    }

    fn start(&self, order: Order) -> BoxFuture<'_, Called<Started>> {
        async move {
            let transaction = order.transaction;
            let (id, method, amount) = (transaction.id, transaction.attempt().method, transaction.amount);
            let session = transaction.attempt().session.to_string();
            let fault = self.fault();
            let next_action = match method {
                Method::Wave | Method::Card => NextAction::Redirect { url: format!("https://network.test/{id}") },
                Method::Afrimoney => {
                    NextAction::ApproveOnPhone { instructions: "Enter your PIN.".into(), poll_after_s: 2 }
                }
                Method::Qmoney => NextAction::Otp { length: 6, resend_after_s: 30, attempts_left: CODE_TRIES },
            };
            if fault.arrives() {
                let wallet = match method {
                    Method::Qmoney => Wallet::AwaitsCode { left: CODE_TRIES },
                    Method::Wave | Method::Card | Method::Afrimoney => Wallet::AwaitsPayer,
                };
                let new =
                    NetworkPayment { scope: transaction.scope, method, amount, wallet, starts: 0, withdrawals: 0 };
                self.lock().payments.entry(id).or_insert(new).starts += 1;
                self.speak_early(id).await;
            }
            let called = fault.called(|| Started { next_action, rail_reference: None });
            self.hear(Heard::Started { transaction: id, session, method, amount, called: called.clone() });
            self.answer(fault, called).await
        }
        .boxed()
    }

    fn submit_code(&self, order: Order, code: String) -> BoxFuture<'_, Called<Report>> {
        async move {
            let id = order.transaction.id;
            let fault = self.fault();
            if fault.arrives()
                && let Some(Wallet::AwaitsCode { left }) = self.payment(id).map(|payment| payment.wallet)
            {
                self.answer_late(id).await;
                let wallet = match (code == RIGHT_CODE, left) {
                    (true, _) if self.decided(2) == 0 => Wallet::Paid,
                    (true, _) => Wallet::Processing,
                    (false, 0 | 1) => Wallet::Failed,
                    (false, left) => Wallet::AwaitsCode { left: left - 1 },
                };
                self.decide(id, wallet);
                self.speak_early(id).await;
            }
            let called = fault.called(|| self.word(id));
            self.hear(Heard::Code { transaction: id, called: called.clone() });
            self.answer(fault, called).await
        }
        .boxed()
    }

    fn query(&self, order: Order) -> BoxFuture<'_, Called<Report>> {
        async move {
            let id = order.transaction.id;
            let fault = self.fault_of_one();
            let report = if fault == CallFault::None { self.word(id) } else { Report::NotFound };
            self.hear(Heard::Asked { transaction: id, report: report.clone() });
            let called = match fault {
                CallFault::None => Called::Answered(report),
                _ => Called::Lost("no answer".into()),
            };
            self.answer(fault, called).await
        }
        .boxed()
    }

    fn withdraw(&self, order: Order) -> BoxFuture<'_, Called<()>> {
        async move {
            let id = order.transaction.id;
            let kills = self.lock().fault.is_some_and(CallFault::kills);
            let fault = if kills { self.fault_of_one() } else { CallFault::None };
            if fault.arrives()
                && let Some(payment) = self.lock().payments.get_mut(&id)
            {
                payment.withdrawals += 1;
            }
            // A payer who was faster has paid.
            if fault.arrives()
                && let Some(Wallet::AwaitsCode { .. } | Wallet::AwaitsPayer) = self.payment(id).map(|of| of.wallet)
                && self.decided(4) != 0
            {
                self.decide(id, Wallet::Failed);
            }
            self.hear(Heard::Withdrawn);
            self.answer(fault, Called::Answered(())).await
        }
        .boxed()
    }

    fn refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        async move {
            let (id, amount) = (order.refund.id, order.refund.amount);
            let fault = self.fault();
            if fault.arrives() {
                let is_paid_back = match self.decided(4) {
                    0 => Some(true),
                    1 => Some(false),
                    _ => None,
                };
                let new = NetworkRefund {
                    scope: order.refund.scope,
                    transaction: order.transaction.id,
                    method: order.transaction.attempt().method,
                    amount,
                    is_paid_back,
                    is_corrected: false,
                    sends: 0,
                };
                self.lock().refunds.entry(id).or_insert(new).sends += 1;
                self.speak_early_of_refund(id).await;
            }
            let called = fault.called(|| self.refund_word(id));
            self.hear(Heard::Refunded { refund: id, amount, called: called.clone() });
            self.answer(fault, called).await
        }
        .boxed()
    }

    fn query_refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        async move {
            let id = order.refund.id;
            let fault = self.fault_of_one();
            let report = match fault {
                CallFault::None => self.refund_word(id),
                _ => RefundReport::NotFound,
            };
            self.hear(Heard::AskedRefund { refund: id, report: report.clone() });
            self.answer(fault, Called::Answered(report)).await
        }
        .boxed()
    }
}
