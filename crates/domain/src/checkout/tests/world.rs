//! A checkout with all its sessions, attempts, events and postings, moved as the server moves them: what became known
//! of an attempt, and in the same step everything that follows from it.

use super::*;
use crate::event::EventType;
use crate::ledger::Entry;
use crate::method::Method;
use crate::money::Money;
use crate::payment::{Again, Moved, PaymentSession, SessionStatus, Transaction};
use crate::rail::{Called, NextAction, Report, Started};
use crate::sample::started;

#[derive(Debug, Clone)]
pub(super) struct Payment {
    pub(super) session: PaymentSession,
    pub(super) transaction: Option<Transaction>,
}

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) checkout: Checkout,
    pub(super) payments: Vec<Payment>,
    pub(super) events: Vec<(i64, EventType)>,
    pub(super) entries: Vec<Entry>,
    pub(super) settlements: Vec<Settlement>,
    rate: u32,
    ids: u8,
}

/// What a payer, a merchant, a rail, the clock or an operator does.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Pay(Method),
    Start(Called<Started>),
    Code(Called<Report>),
    Report(Report),
    Returned,
    Cancel,
    Timer,
    Resolve { paid: bool },
}

impl World {
    pub(super) fn new(amount: Money, rate: u32) -> Self {
        Self {
            checkout: checkout(amount),
            payments: Vec::new(),
            events: Vec::new(),
            entries: Vec::new(),
            settlements: Vec::new(),
            rate,
            ids: 30,
        }
    }

    fn fresh<T: Object>(&mut self) -> Id<T> {
        self.ids = self.ids.wrapping_add(1);
        id(self.ids)
    }

    /// `attempt` is counted back from the newest.
    pub(super) fn act(&mut self, act: &Act, attempt: usize, now: Timestamp) {
        match act {
            Act::Pay(method) => drop(self.pay(*method, now)),
            Act::Cancel => {
                if let Ok(event) = self.checkout.cancel(now) {
                    self.close_current(false, now);
                    self.tell(event);
                }
            }
            Act::Timer => {
                if let Some(event) = self.checkout.observe(now) {
                    self.close_current(true, now);
                    self.tell(event);
                }
            }
            Act::Code(called) => {
                let Some(newest) = self.payments.last_mut() else { return };
                let may_pay = self.checkout.payable(now).is_ok();
                if !may_pay || newest.session.submit_code(newest.transaction.as_mut(), now).is_err() {
                    return;
                }
                let transaction = newest.transaction.as_ref().expect("a code has an attempt");
                self.checkout.attempt_moved(transaction.summary(), true, now);
                self.settle(0, now, |session, transaction| {
                    let sent_at = transaction.code_sent_at();
                    session.code_submitted(transaction, sent_at, called.clone(), now)
                });
            }
            Act::Start(called) => {
                let called = match called {
                    // A rail answers with what its method asks for.
                    Called::Answered(_) => match self.attempted(attempt) {
                        Some(index) => {
                            let method = self.payments[index].session.method.expect("begun with a method");
                            Called::Answered(started(method))
                        }
                        None => return,
                    },
                    Called::Refused(_) | Called::Lost(_) => called.clone(),
                };
                self.settle(attempt, now, |session, transaction| session.started(transaction, called.clone(), now));
            }
            Act::Report(report) => {
                self.settle(attempt, now, |session, transaction| session.reported(transaction, report, now));
            }
            Act::Returned => self.settle(attempt, now, |session, transaction| session.returned(transaction, now)),
            Act::Resolve { paid } => self.settle(attempt, now, |session, transaction| {
                session.resolved(transaction, *paid, now).unwrap_or(Moved::Nowhere)
            }),
        }
    }

    fn pay(&mut self, method: Method, now: Timestamp) -> Result<(), Refusal> {
        self.checkout.payable(now)?;
        let amount = self.checkout.order.amount;
        let again = self
            .payments
            .last()
            .map_or(Ok(Again::New), |newest| newest.session.again(newest.transaction.as_ref(), Some(method), amount))?;
        match again {
            Again::Same => return Ok(()),
            Again::Replace => self.close_current(false, now),
            Again::New => {}
        }
        let mut session = session(self.fresh(), &self.checkout, method, now);
        self.checkout.session_opened(session.id, now);
        let transaction = begin(&mut session, self.fresh(), self.rate, now);
        self.checkout.attempt_moved(transaction.summary(), false, now);
        self.payments.push(Payment { session, transaction: Some(transaction) });
        Ok(())
    }

    fn attempted(&self, back: usize) -> Option<usize> {
        self.payments.len().checked_sub(1)?.checked_sub(back % self.payments.len())
    }

    fn settle(&mut self, back: usize, now: Timestamp, apply: impl Fn(&mut PaymentSession, &mut Transaction) -> Moved) {
        let Some(index) = self.attempted(back) else { return };
        let is_current = index == self.payments.len() - 1;
        let Payment { session, transaction } = &mut self.payments[index];
        let transaction = transaction.as_mut().expect("begun at once");
        let moved = apply(session, transaction);
        let (summary, with_provider) = (transaction.summary(), session.is_with_provider());
        match moved {
            Moved::Nowhere => return,
            Moved::On if is_current => self.checkout.attempt_moved(summary, with_provider, now),
            Moved::On => {}
            Moved::ToFailed => {
                if is_current {
                    self.checkout.attempt_moved(summary, false, now);
                }
                self.tell(EventType::PaymentFailed);
            }
            Moved::ToPaid => self.money_arrived(index, now),
        }
        if let Some(event) = self.checkout.observe(now) {
            self.close_current(true, now);
            self.tell(event);
        }
    }

    fn money_arrived(&mut self, index: usize, now: Timestamp) {
        if let Some(event) = self.checkout.observe(now) {
            self.tell(event);
        }
        if index != self.payments.len() - 1 && self.checkout.status(now) == Status::Pending {
            self.close_current(false, now);
        }
        let transaction = self.payments[index].transaction.as_mut().expect("money has an attempt");
        let settlement = self.checkout.money_arrived(transaction.summary(), now);
        transaction.late = settlement == Settlement::Late;
        transaction.duplicate = settlement == Settlement::Second;
        let entry = match settlement {
            Settlement::Paid | Settlement::Late => Entry::payment_completed(id(99), transaction),
            Settlement::Second => Entry::second_money(id(99), transaction),
        };
        self.entries.push(entry);
        self.settlements.push(settlement);
        self.tell(EventType::PaymentSucceeded);
        if settlement == Settlement::Paid {
            self.tell(EventType::CheckoutCompleted);
        }
    }

    fn close_current(&mut self, expired: bool, now: Timestamp) {
        let Some(newest) = self.payments.last_mut() else { return };
        if newest.session.status() != SessionStatus::Pending {
            return;
        }
        newest.session.close(newest.transaction.as_mut(), expired, now);
        let transaction = newest.transaction.as_ref().expect("begun at once");
        self.checkout.attempt_moved(transaction.summary(), false, now);
    }

    fn tell(&mut self, event: EventType) {
        let sequence = self.checkout.next_sequence();
        self.events.push((sequence, event));
    }
}

/// An answer whose content the world replaces by what the method asks for.
pub(super) fn answered() -> Called<Started> {
    Called::Answered(Started { next_action: NextAction::ConfirmDone {}, rail_reference: None })
}
