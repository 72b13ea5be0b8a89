//! Refunds (contract §2.8, §4.5, §5).

use domain::rail::{Called, FailureReason, RefundReport};
use serde_json::json;

use super::{Answer, AttemptState, Fields, Refund, RefundState, Side, Step, text};

impl Side {
    /// How much goes back, if it does.
    pub fn refuse_refund(&self, transaction: &str, amount: Option<i64>) -> Answer<i64> {
        let attempt = self.attempts.get(transaction).ok_or("transaction_not_found")?;
        if attempt.state != AttemptState::Completed {
            return Err("transaction_not_refundable");
        }
        if attempt.refunded == attempt.amount {
            return Err("transaction_already_refunded");
        }
        let left = attempt.amount - attempt.refunded - attempt.refunding;
        let amount = amount.unwrap_or(left);
        if amount == 0 || amount > left {
            return Err("refund_exceeds_amount");
        }
        let is_of_merchant = attempt.session.is_some() && !attempt.is_duplicate;
        if is_of_merchant && !self.may_go_negative && self.balance() < amount {
            return Err("insufficient_balance");
        }
        Ok(amount)
    }

    pub fn ask_refund(&mut self, id: &str, transaction: &str, amount: i64) {
        let mut refund = Refund {
            attempt: transaction.to_owned(),
            amount,
            state: RefundState::Pending,
            step: Step::Sending,
            parked: None,
        };
        let attempt = self.attempts.get_mut(transaction).expect("it was looked up");
        if attempt.session.is_none() {
            // Nobody has it but the merchant, who gives it back as they got it.
            attempt.refunded += amount;
            refund.state = RefundState::Completed;
            refund.step = Step::Settled;
            self.post("offline_sales", amount);
            self.post("offline_received", -amount);
            self.tell(id, "refund.completed");
        } else {
            attempt.refunding += amount;
            let source = self.source_of(transaction);
            self.post(source, amount);
            self.post("refunds_pending", -amount);
        }
        self.refunds.insert(id.to_owned(), refund);
    }

    fn source_of(&self, transaction: &str) -> &'static str {
        if self.attempts[transaction].is_duplicate { "unapplied" } else { "merchant" }
    }

    /// What the call that hands it to the network brought.
    pub fn refund_sent(&mut self, id: &str, called: &Called<RefundReport>) {
        let Some(refund) = self.refunds.get_mut(id) else { return };
        match called {
            Called::Answered(report) => self.refund_reported(id, report),
            Called::Refused(_) if refund.step == Step::Sending => self.refund_failed(id),
            Called::Lost(_) if refund.step == Step::Sending => {
                refund.step = Step::Unknown;
                if refund.state == RefundState::Pending {
                    refund.state = RefundState::Processing;
                }
            }
            Called::Refused(_) | Called::Lost(_) => {}
        }
    }

    pub fn refund_reported(&mut self, id: &str, report: &RefundReport) {
        let Some(refund) = self.refunds.get_mut(id) else { return };
        if refund.state == RefundState::Completed {
            return;
        }
        match report {
            RefundReport::Completed { amount, .. }
                if (amount.minor, amount.currency.code()) != (refund.amount, "GMD") =>
            {
                self.park_refund(id, format!("reports {} {}", amount.minor, amount.currency));
            }
            RefundReport::Completed { .. } => self.refund_completed(id),
            RefundReport::Failed { .. } if refund.step == Step::Settled => {}
            RefundReport::Failed { reason: FailureReason::Declined | FailureReason::ProviderError } => {
                self.refund_failed(id)
            }
            RefundReport::Failed { .. } => self.refund_failed(id),
            RefundReport::Processing { .. } => {
                if matches!(refund.step, Step::Sending | Step::Unknown) && refund.parked.is_none() {
                    refund.step = Step::Waiting;
                    refund.state = RefundState::Processing;
                }
            }
            RefundReport::NotFound => {}
        }
    }

    fn park_refund(&mut self, id: &str, why: String) {
        let refund = self.refunds.get_mut(id).expect("it was looked up");
        if refund.parked.as_ref() == Some(&why) {
            return;
        }
        refund.parked = Some(why);
        if refund.step != Step::Settled {
            refund.step = Step::Unknown;
            refund.state = RefundState::Processing;
        }
    }

    fn refund_completed(&mut self, id: &str) {
        let refund = self.refunds[id].clone();
        let attempt = self.attempts.get_mut(&refund.attempt).expect("a refund has its transaction");
        let was_failed = refund.state == RefundState::Failed;
        if was_failed {
            if refund.amount > attempt.amount - attempt.refunded - attempt.refunding {
                self.park_refund(id, "no room".to_owned());
                return;
            }
        } else {
            attempt.refunding -= refund.amount;
        }
        attempt.refunded += refund.amount;
        let from = if was_failed { self.source_of(&refund.attempt) } else { "refunds_pending" };
        self.post(from, refund.amount);
        self.post("rail_clearing:network", -refund.amount);
        let refund = self.refunds.get_mut(id).expect("it was looked up");
        refund.state = RefundState::Completed;
        refund.step = Step::Settled;
        refund.parked = None;
        self.tell(id, "refund.completed");
    }

    fn refund_failed(&mut self, id: &str) {
        let refund = self.refunds.get_mut(id).expect("it was looked up");
        refund.state = RefundState::Failed;
        refund.step = Step::Settled;
        let refund = refund.clone();
        self.attempts.get_mut(&refund.attempt).expect("a refund has its transaction").refunding -= refund.amount;
        let source = self.source_of(&refund.attempt);
        self.post("refunds_pending", refund.amount);
        self.post(source, -refund.amount);
        self.tell(id, "refund.failed");
    }

    pub fn refund_fields(&self, id: &str) -> Answer<Fields> {
        let refund = self.refunds.get(id).ok_or("refund_not_found")?;
        Ok(vec![
            ("id", json!(id)),
            ("transaction_id", json!(refund.attempt)),
            ("amount", json!(text(refund.amount))),
            ("status", json!(refund.state.as_str())),
        ])
    }
}

impl RefundState {
    pub fn as_str(self) -> &'static str {
        match self {
            RefundState::Pending => "pending",
            RefundState::Processing => "processing",
            RefundState::Completed => "completed",
            RefundState::Failed => "failed",
        }
    }
}
