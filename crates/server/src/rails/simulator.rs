//! The simulated rail of test mode. Its wallets are rows of its own, so that it survives a restart as a real network
//! would; what they do is `domain::simulator`. It alone among the rails keeps its truth in our store.

use std::time::Duration;

use domain::job::Job;
use domain::rail::{Called, Capability, FailureReason, NextAction, RefundReport, RefundSupport, Report, Started};
use domain::simulator::{CODE_LENGTH, SimulatedPayment, SimulatedRefund};
use domain::{Entropy, Method, Timestamp};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use store::queries::jobs;
use store::{Store, Tx};

use super::{Order, Rail, RefundOrder};
use crate::secrets::Subkey;

pub const NAME: &str = "simulator";
const RESEND_AFTER_S: u32 = 30;
const POLL_AFTER_S: u32 = 2;
/// A lost answer is lost so late that the caller has noticed.
const LOST_AFTER: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub struct Simulator {
    store: Store,
    pay_url: String,
    token_key: Subkey,
}

impl Simulator {
    pub fn new(store: Store, pay_url: String, token_key: Subkey) -> Self {
        Self { store, pay_url, token_key }
    }

    /// The address of its page for one payment: the token is derived, so that starting twice gives the same page.
    pub fn page_url(&self, transaction: &str) -> String {
        format!("{}/simulator/{}", self.pay_url, page_token(&self.token_key, transaction))
    }

    async fn with<T: Send + 'static>(
        &self,
        order: Order,
        act: impl Fn(&mut SimulatedPayment, Timestamp) -> T + Send + Sync + 'static,
    ) -> Result<Option<T>, store::Error> {
        self.store
            .write(move |tx| {
                let transaction = &order.transaction;
                let Some(mut payment) = tx.find::<SimulatedPayment>(transaction.scope, transaction.id)? else {
                    return Ok(None);
                };
                let result = act(&mut payment, tx.now());
                keep(tx, &mut payment)?;
                Ok::<_, store::Error>(Some(result))
            })
            .await
    }
}

/// Saves the wallet's state and owes what happens next by itself.
pub fn keep(tx: &mut Tx<'_>, payment: &mut SimulatedPayment) -> Result<(), store::Error> {
    if let Some(at) = payment.next_act() {
        jobs::schedule(tx, payment.scope, Job::SimulatePayer(payment.transaction), at)?;
    }
    if payment.version == 0 { tx.insert(payment) } else { tx.save(payment) }
}

/// The same for what a wallet pays back.
pub fn keep_refund(tx: &mut Tx<'_>, refund: &mut SimulatedRefund) -> Result<(), store::Error> {
    if let Some(at) = refund.next_act() {
        jobs::schedule(tx, refund.scope, Job::SimulateRefund(refund.refund), at)?;
    }
    if refund.version == 0 { tx.insert(refund) } else { tx.save(refund) }
}

/// The token in a page's address: unguessable without the installation's key.
pub fn page_token(key: &Subkey, transaction: &str) -> String {
    let seed = key.derive(&format!("simulator page {transaction}"));
    Entropy::from_seed(seed).secret().iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}

/// What is stored of a token.
pub fn token_digest(key: &Subkey, token: &str) -> String {
    key.derive(&format!("simulator token {token}")).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Rail for Simulator {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Vec<(Method, Capability)> {
        let capability = |method| Capability {
            currencies: match method {
                Method::Wave => &["GMD", "XOF"],
                Method::Afrimoney | Method::Qmoney => &["GMD"],
                Method::Card => &["GMD", "XOF", "USD", "EUR", "GBP"],
            },
            start_is_idempotent: true,
            code_length: (method == Method::Qmoney).then_some(CODE_LENGTH),
            refund: RefundSupport::Partial,
            refund_is_idempotent: true,
        };
        Method::ALL.into_iter().map(|method| (method, capability(method))).collect()
    }

    fn start(&self, order: Order) -> BoxFuture<'_, Called<Started>> {
        async move {
            let transaction = order.transaction.clone();
            let token = page_token(&self.token_key, &transaction.id.to_string());
            let digest = token_digest(&self.token_key, &token);
            let started = self
                .store
                .write(move |tx| {
                    let transaction = &order.transaction;
                    if let Some(known) = tx.find::<SimulatedPayment>(transaction.scope, transaction.id)? {
                        return Ok::<_, store::Error>(known);
                    }
                    let mut payment = SimulatedPayment::start(
                        transaction,
                        order.merchant.clone(),
                        digest.clone(),
                        order.return_url.clone(),
                        tx.now(),
                    );
                    keep(tx, &mut payment)?;
                    Ok(payment)
                })
                .await;
            let payment = match started {
                Ok(payment) => payment,
                Err(error) => return Called::Lost(error.to_string()),
            };
            if payment.loses_answers() {
                tokio::time::sleep(LOST_AFTER).await;
                return Called::Lost("the simulated network lost the answer".into());
            }
            let next_action = match transaction.attempt().method {
                Method::Wave | Method::Card => NextAction::Redirect { url: self.page_url(&transaction.id.to_string()) },
                Method::Afrimoney => NextAction::ApproveOnPhone {
                    instructions: format!(
                        "Approve the request on your phone and enter your PIN. (Test mode: {})",
                        self.page_url(&transaction.id.to_string())
                    ),
                    poll_after_s: POLL_AFTER_S,
                },
                Method::Qmoney => NextAction::Otp {
                    length: CODE_LENGTH,
                    resend_after_s: RESEND_AFTER_S,
                    attempts_left: payment.code_tries_left(),
                },
            };
            Called::Answered(Started { next_action, rail_reference: Some(format!("SIM-{}", transaction.id)) })
        }
        .boxed()
    }

    fn submit_code(&self, order: Order, code: String) -> BoxFuture<'_, Called<Report>> {
        async move {
            let submitted = self.with(order, move |payment, now| {
                payment.submit_code(&code, now);
                (payment.report(), payment.loses_answers())
            });
            match submitted.await {
                Ok(Some((_, true))) => {
                    tokio::time::sleep(LOST_AFTER).await;
                    Called::Lost("the simulated network lost the answer".into())
                }
                Ok(Some((report, false))) => Called::Answered(report),
                Ok(None) => Called::Refused(FailureReason::ProviderError),
                Err(error) => Called::Lost(error.to_string()),
            }
        }
        .boxed()
    }

    fn query(&self, order: Order) -> BoxFuture<'_, Called<Report>> {
        async move {
            let transaction = order.transaction;
            let found = self.store.read(move |tx| tx.peek::<SimulatedPayment>(transaction.scope, transaction.id)).await;
            match found {
                Ok(Some(payment)) => Called::Answered(payment.report()),
                Ok(None) => Called::Answered(Report::NotFound),
                Err(error) => Called::Lost(error.to_string()),
            }
        }
        .boxed()
    }

    fn withdraw(&self, order: Order) -> BoxFuture<'_, Called<()>> {
        async move {
            match self.with(order, |payment, _| payment.withdraw()).await {
                Ok(_) => Called::Answered(()),
                Err(error) => Called::Lost(error.to_string()),
            }
        }
        .boxed()
    }

    fn refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        async move {
            let taken = self
                .store
                .write(move |tx| {
                    let refund = &order.refund;
                    if let Some(known) = tx.find::<SimulatedRefund>(refund.scope, refund.id)? {
                        return Ok::<_, store::Error>(known);
                    }
                    let mut payment = tx.find::<SimulatedPayment>(refund.scope, refund.transaction)?;
                    let mut taken = SimulatedRefund::start(refund, payment.as_mut(), tx.now());
                    if let Some(payment) = &mut payment {
                        tx.save(payment)?;
                    }
                    keep_refund(tx, &mut taken)?;
                    Ok(taken)
                })
                .await;
            match taken {
                Ok(refund) if refund.loses_answer() => {
                    tokio::time::sleep(LOST_AFTER).await;
                    Called::Lost("the simulated network lost the answer".into())
                }
                Ok(refund) => match refund.report() {
                    RefundReport::Failed { reason } => Called::Refused(reason),
                    report => Called::Answered(report),
                },
                Err(error) => Called::Lost(error.to_string()),
            }
        }
        .boxed()
    }

    fn query_refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        async move {
            let refund = order.refund;
            let found = self.store.read(move |tx| tx.peek::<SimulatedRefund>(refund.scope, refund.id)).await;
            match found {
                Ok(Some(refund)) => Called::Answered(refund.report()),
                Ok(None) => Called::Answered(RefundReport::NotFound),
                Err(error) => Called::Lost(error.to_string()),
            }
        }
        .boxed()
    }
}
