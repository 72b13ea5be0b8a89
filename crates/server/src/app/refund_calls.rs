//! Refunds between transactions: intent committed, rail called, outcome committed. As for attempts, the worker that finds
//! an unfinished one runs the very same function.

use std::sync::Arc;
use std::time::Duration;

use domain::job::{ClaimedJob, Job};
use domain::payment::{Step, Transaction};
use domain::rail::{Called, RefundReport};
use domain::refund::{Refund, RefundMoved};
use domain::{Id, Scope, Timestamp};
use store::Tx;
use store::queries::{doubts, jobs};
use tokio::time::Instant;

use super::{App, insist, load, look_up, refunds};
use crate::error::Failure;
use crate::monotonic::Since;
use crate::rails::{Rail, RefundOrder};

/// A rail that says nothing for so long has lost the call.
const RAIL_TIMEOUT: Duration = Duration::from_secs(20);

impl App {
    /// Hands a refund to its rail: the job `SendRefund`, claimed after `since`.
    pub async fn send_refund(&self, claimed: &ClaimedJob, since: Since) -> Result<(), Failure> {
        let Job::SendRefund(id) = claimed.job else {
            return Err(Failure::Broken("not a refund's job".into()));
        };
        let (scope, mut until) = (claimed.scope, insist::while_held());
        let order = self.refund_order(scope, id).await?;
        let is_rerun = claimed.attempts > 1 && !domain::planted!(Defect::RefundSentAgain);
        let is_idempotent = self.refunds_once(&order);
        let called = match (order.refund.step(), self.rail_of(&order.refund)) {
            (Step::Waiting | Step::Unknown | Step::Settled, _) => None,
            // Whether the first call arrived is not known, and this rail would take a second one for another refund.
            (Step::Sending, _) if is_rerun && !is_idempotent => {
                Some(Called::Lost("the process that called the rail died".into()))
            }
            (Step::Sending, None) => Some(Called::Lost("the rail is not configured any more".into())),
            // Whoever took over calls, or has called, and a person may have decided since: they say what came of it. Or it waits.
            (Step::Sending, Some(_)) if !self.may_call(claimed, since).await? => return Ok(()),
            (Step::Sending, Some(rail)) => {
                until = insist::while_held();
                Some(in_time(rail.refund(order)).await)
            }
        };
        let claim = claimed.clone();
        self.settle_refund(scope, id, Some(claimed.clone()), until, move |tx, refund, transaction, now| {
            let called = match &called {
                // Whoever took over meanwhile may have called first, or be calling: they say what came of it.
                Some(Called::Refused(_) | Called::Lost(_) | Called::Answered(RefundReport::NotFound))
                    if !jobs::is_held(tx, &claim)? =>
                {
                    return Ok(RefundMoved::Nowhere);
                }
                // No to the second call says nothing of the first.
                Some(Called::Refused(_)) if is_rerun => {
                    Called::Lost("the rail refused it, and it was not the only call".into())
                }
                Some(called) => called.clone(),
                None => return Ok(RefundMoved::Nowhere),
            };
            Ok(refund.sent(transaction, called, now))
        })
        .await
    }

    /// Asks the rail what became of a refund: the job `AskRefund`.
    pub async fn ask_refund(&self, claimed: &ClaimedJob) -> Result<(), Failure> {
        let Job::AskRefund(id) = claimed.job else {
            return Err(Failure::Broken("not a refund's job".into()));
        };
        let (scope, mut until) = (claimed.scope, insist::while_held());
        let order = self.refund_order(scope, id).await?;
        let report = match self.rail_of(&order.refund) {
            None => RefundReport::NotFound,
            Some(rail) => match in_time(rail.query_refund(order.clone())).await {
                Called::Answered(RefundReport::NotFound) if self.send_again(&order, claimed).await? => {
                    until = insist::while_held();
                    known(in_time(rail.refund(order)).await)
                }
                called => known(called),
            },
        };
        let claim = claimed.clone();
        self.settle_refund(scope, id, Some(claimed.clone()), until, move |tx, refund, transaction, now| {
            match report {
                // Whoever took over meanwhile may be sending it again.
                RefundReport::NotFound if !jobs::is_held(tx, &claim)? => Ok(RefundMoved::Nowhere),
                _ => Ok(refund.reported(transaction, &report, now)),
            }
        })
        .await
    }

    /// What was lost on the way may never have arrived: a rail that knows the second call for the first gets it again, unless
    /// a person has to look at it or has decided. Commits the intent, so that nobody decides while the rail is called; for as long
    /// nobody else takes the job over.
    async fn send_again(&self, order: &RefundOrder, claimed: &ClaimedJob) -> Result<bool, Failure> {
        let (scope, id) = (order.refund.scope, order.refund.id);
        let knows_again = self.refunds_once(order) || domain::planted!(Defect::RefundSentAgain);
        if !knows_again {
            return Ok(false);
        }
        let (claim, since) = (claimed.clone(), Since::now(self.store()));
        let is_sent = self.commit(move |tx, _| {
            if doubts::are_of(tx, scope)? {
                return Ok(false);
            }
            let mut refund = load::<Refund>(tx, scope, id)?;
            let is_sent = jobs::renew(tx, &claim, tx.now().plus(insist::LEASE))? && refund.send_again();
            if is_sent {
                tx.save(&mut refund)?;
            }
            Ok(is_sent)
        });
        // The answer to the commit may have come late.
        Ok(is_sent.await? && self.may_call(claimed, since).await?)
    }

    /// Whether a word would change nothing. A rail that says the same again, however often, does not put off the worker's own
    /// question.
    async fn is_known_of_refund(&self, scope: Scope, id: Id<Refund>, report: RefundReport) -> Result<bool, Failure> {
        self.look(move |tx, _| {
            let mut refund = look_up::<Refund>(tx, scope, id)?;
            let mut transaction = look_up::<Transaction>(tx, scope, refund.transaction)?;
            Ok(refund.reported(&mut transaction, &report, tx.now()) == RefundMoved::Nowhere)
        })
        .await
    }

    /// A rail's verified word about a refund, by callback.
    pub async fn report_refund(&self, scope: Scope, id: Id<Refund>, report: RefundReport) -> Result<(), Failure> {
        if self.is_known_of_refund(scope, id, report.clone()).await? {
            return Ok(());
        }
        self.settle_refund(scope, id, None, insist::once(), move |_, refund, transaction, now| {
            Ok(refund.reported(transaction, &report, now))
        })
        .await
    }

    async fn settle_refund(
        &self,
        scope: Scope,
        id: Id<Refund>,
        claimed: Option<ClaimedJob>,
        until: Instant,
        apply: impl Fn(&mut Tx<'_>, &mut Refund, &mut Transaction, Timestamp) -> Result<RefundMoved, Failure>
        + Send
        + Sync
        + 'static,
    ) -> Result<(), Failure> {
        self.commit_until(Some(until), move |tx, _| refunds::settle(tx, scope, id, claimed.as_ref(), &apply).map(drop))
            .await
    }

    fn rail_of(&self, refund: &Refund) -> Option<&Arc<dyn Rail>> {
        self.rails().named(refund.scope.mode, refund.source.rail()?)
    }

    /// Whether the rail takes a second call for the same refund as the first.
    fn refunds_once(&self, order: &RefundOrder) -> bool {
        let attempt = order.transaction.attempt();
        let offer = self.context().offer_of(order.refund.scope.mode, attempt.method, &attempt.rail);
        offer.is_some_and(|offer| offer.capability.refund_is_idempotent)
    }

    async fn refund_order(&self, scope: Scope, id: Id<Refund>) -> Result<RefundOrder, Failure> {
        self.read(move |tx, _| {
            let refund = look_up::<Refund>(tx, scope, id)?;
            let transaction = look_up::<Transaction>(tx, scope, refund.transaction)?;
            Ok(RefundOrder { refund, transaction })
        })
        .await
    }
}

/// A question without an answer changes nothing, and no to a second call says nothing of the first.
fn known(called: Called<RefundReport>) -> RefundReport {
    match called {
        Called::Answered(report) => report,
        Called::Refused(_) | Called::Lost(_) => RefundReport::NotFound,
    }
}

async fn in_time(call: impl Future<Output = Called<RefundReport>>) -> Called<RefundReport> {
    tokio::time::timeout(RAIL_TIMEOUT, call)
        .await
        .unwrap_or_else(|_| Called::Lost("the rail did not answer in time".into()))
}
