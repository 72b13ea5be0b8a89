//! What happens outside requests: the network decides and reports, the worker works, receivers receive, time passes.

use std::collections::BTreeMap;

use dalasi::app::delivery_outcomes::Ended;
use dalasi::app::delivery_places::Places;
use dalasi::app::mail_turns::{self, Turns};
use dalasi::app::webhooks::{self, Posted};
use dalasi::error::Failure;
use domain::job::{ClaimedJob, Job};
use domain::mail::MailAttempted;
use domain::rail::{Called, FailureReason, RefundReport, Report};
use domain::webhook::{Attempted, Delivery};
use domain::{Id, Mode, Refusal, Scope, Timestamp, payment::Transaction};
use store::queries::jobs;

use super::payer::{hear_early, word_of_report, word_of_second_start, word_of_start};
use super::{Check, History, Object};
use crate::model::{CheckoutState, InvoiceState, Kind, SECOND, SessionState, Step, Word};
use crate::network::{Heard, Wallet, in_other_currency, one_more, split_early};
use crate::operation::Fault;
use crate::random::{Dice, mix};

/// More than there ever are.
const ALL: usize = 10_000;
const LEASE_US: i64 = 30 * SECOND;
/// Contract §6: after so many attempts an event is given up.
const MOST_ATTEMPTS: u32 = 10;

const PATIENCE_US: i64 = 3 * 24 * 3600 * SECOND;

/// What receivers have seen, by endpoint and object: attempts and the bytes of each event in the object's order.
#[derive(Default)]
pub(super) struct Received {
    pub(super) events: BTreeMap<(String, String), BTreeMap<i64, Delivered>>,
    pub(super) is_disabled: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Delivered {
    pub(super) id: String,
    pub(super) body: String,
    pub(super) attempts: u32,
    pub(super) is_over: bool,
}

impl History {
    fn side_of(&self, scope: Scope) -> Result<usize, String> {
        self.world.scopes.iter().position(|known| *known == scope).ok_or_else(|| format!("{scope:?} is nobody"))
    }

    /// A payer pays, or doesn't; the network says so at once, later, or never by itself.
    pub(super) async fn decide(&mut self) -> Check {
        let mut open = self.world.network.open();
        open.retain(|(_, scope)| self.acts(*scope));
        let Some((id, scope)) = self.dice.pick_recent(&open).copied() else { return Ok(()) };
        let wallet = self.world.network.payment(id).map(|payment| payment.wallet);
        let decided = match (wallet, self.dice.below(10)) {
            (Some(Wallet::AwaitsCode { .. }), 0) => Wallet::Failed,
            (Some(Wallet::AwaitsCode { left }), _) => Wallet::AwaitsCode { left },
            (_, 0..=5) => Wallet::Paid,
            (_, 6 | 7) => Wallet::Failed,
            (_, _) => Wallet::Processing,
        };
        self.world.network.decide(id, decided);
        if self.dice.one_in(3) {
            return Ok(());
        }
        let report = self.world.network.word(id);
        self.report(scope, id, report.clone()).await?;
        if !self.dice.one_in(5) {
            return Ok(());
        }
        self.hostile_words += 1;
        self.report(scope, id, report).await
    }

    /// A word that comes late, twice, out of order, wrong, or about what nobody began.
    pub(super) async fn callback(&mut self) -> Check {
        let mut payments: Vec<(Id<Transaction>, Scope)> =
            self.world.network.payments().iter().map(|(id, payment)| (*id, payment.scope)).collect();
        payments.retain(|(_, scope)| self.acts(*scope));
        let Some((id, scope)) = self.dice.pick_recent(&payments).copied() else { return Ok(()) };
        self.hostile_words += 1;
        let payment = self.world.network.payment(id).ok_or("a payment is gone")?;
        let rail_reference = "N-wrong".to_owned();
        let report = match self.dice.below(14) {
            0..=4 => self.world.network.word(id),
            5 | 6 => Report::Processing,
            7 => Report::Open,
            8 if payment.wallet != Wallet::Paid => Report::Failed { reason: FailureReason::InsufficientFunds },
            9 => Report::Paid { amount: one_more(payment.amount), rail_reference },
            12 => Report::Paid { amount: in_other_currency(payment.amount), rail_reference },
            13 => {
                let report = Report::Paid { amount: payment.amount, rail_reference };
                return self.report_of_nobody(scope, id, report).await;
            }
            10 => Report::AwaitingCode { attempts_left: self.dice.below(4) as u8 },
            _ => {
                self.world.network.decide(id, Wallet::Paid);
                self.world.network.word(id)
            }
        };
        self.report(scope, id, report).await
    }

    /// About a payment that nobody knows, or that is somebody else's: it is not taken, and nothing comes of it.
    async fn report_of_nobody(&mut self, scope: Scope, id: Id<Transaction>, report: Report) -> Check {
        let others: Vec<Scope> = self.world.scopes.iter().copied().filter(|other| *other != scope).collect();
        let (scope, id) = match self.dice.pick(&others).copied().filter(|_| !self.is_apart()) {
            Some(other) if self.dice.one_in(2) => (other, id),
            _ => {
                let mut random = [0; 10];
                random[..8].copy_from_slice(&self.dice.next().to_le_bytes());
                (scope, Id::new(Timestamp::from_micros(self.world.now()), random))
            }
        };
        match self.world.app.report(scope, id, report, None).await {
            Err(Failure::Refused(Refusal::NotFound { .. })) => Ok(()),
            taken => Err(format!("a word about {id}, which {scope:?} doesn't have, is answered {taken:?}")),
        }
    }

    pub(super) async fn report(&mut self, scope: Scope, id: Id<Transaction>, report: Report) -> Check {
        let side = self.side_of(scope)?;
        let (now, began) = (self.world.now(), self.world.written());
        self.arm();
        let mut reported = self.world.app.report(scope, id, report.clone(), None).await;
        self.calm();
        if let Some(false) = self.power_goes_since(began).await {
            reported = self.world.app.report(scope, id, report.clone(), None).await;
        }
        if reported.is_err()
            && self.has_unknown_commit()
            && let Some(word) = word_of_report(&report)
        {
            self.sides[side].hear(&id.to_string(), word, now);
        }
        if reported.is_err() && self.may_fail() && self.dice.one_in(2) {
            // As far as anybody knows it was not taken, and is said again.
            reported = self.world.app.report(scope, id, report.clone(), None).await;
        }
        match reported {
            Ok(()) => {
                if let Some(word) = word_of_report(&report) {
                    self.sides[side].hear(&id.to_string(), word, now);
                }
            }
            Err(_) if self.may_fail() => {}
            Err(failure) => return Err(format!("{report:?} of {id} can't be taken: {failure}")),
        }
        self.touched = Some((side, Object::Transaction, id.to_string()));
        Ok(())
    }

    pub(super) async fn decide_refund(&mut self) -> Check {
        let mut refunds: Vec<_> = self.world.network.refunds().into_iter().collect();
        refunds.retain(|(_, refund)| self.acts(refund.scope));
        let Some((id, refund)) = self.dice.pick_recent(&refunds).cloned() else { return Ok(()) };
        let (is_paid_back, began) = (!self.dice.one_in(3), self.world.written());
        self.world.network.decide_refund(id, is_paid_back);
        let side = self.side_of(refund.scope)?;
        let report = match self.dice.below(10) {
            0 => return Ok(()),
            1 => RefundReport::Processing { rail_reference: None },
            2 => RefundReport::Completed { amount: one_more(refund.amount), rail_reference: None },
            3 => RefundReport::Completed { amount: in_other_currency(refund.amount), rail_reference: None },
            _ => self.world.network.refund_word(id),
        };
        if refund.is_paid_back.is_some() || report != self.world.network.refund_word(id) {
            self.hostile_words += 1;
        }
        self.arm();
        let mut reported = self.world.app.report_refund(refund.scope, id, report.clone()).await;
        self.calm();
        if let Some(false) = self.power_goes_since(began).await {
            reported = self.world.app.report_refund(refund.scope, id, report.clone()).await;
        }
        if reported.is_err() && self.has_unknown_commit() {
            self.sides[side].refund_reported(&id.to_string(), &report);
        }
        if reported.is_err() && self.may_fail() && self.dice.one_in(2) {
            reported = self.world.app.report_refund(refund.scope, id, report.clone()).await;
        }
        match reported {
            Ok(()) => self.sides[side].refund_reported(&id.to_string(), &report),
            Err(_) if self.may_fail() => {}
            Err(failure) => return Err(format!("{report:?} of {id} can't be taken: {failure}")),
        }
        self.touched = Some((side, Object::Refund, id.to_string()));
        Ok(())
    }

    pub(super) async fn work(&mut self) -> Check {
        let most = if self.dice.one_in(3) { 40 } else { 1 + self.dice.below(6) };
        for _ in 0..most {
            if !self.work_once().await? {
                break;
            }
        }
        Ok(())
    }

    /// One job that is due, if one is.
    pub(super) async fn work_once(&mut self) -> Result<bool, String> {
        loop {
            let mut claimed = dalasi::jobs::claim_due(&self.world.app, 1).await;
            let Some(job) = claimed.pop() else { return Ok(false) };
            if self.is_apart() && !self.acts(job.scope) {
                self.run_theirs(job).await?;
                continue;
            }
            if self.is_apart() {
                self.world.entropy.reseed(self.dice.next());
            }
            return self.run_claimed(job).await;
        }
    }

    pub(super) async fn run_claimed(&mut self, job: ClaimedJob) -> Result<bool, String> {
        if matches!(job.job, Job::RenderInvoice(_) | Job::RenderReceipt(_)) {
            // Drawing documents is not simulated.
            let done = self.world.app.commit(move |tx, _| Ok(jobs::done(tx, &job)?)).await;
            return done.map(|()| true).map_err(|failure| format!("a job can't be let go: {failure}"));
        }
        let now = self.world.now();
        self.world.network.take_heard();
        self.arm();
        let done = self.world.work(job.clone()).await;
        self.calm();
        self.no_panic()?;
        let heard = self.world.network.take_heard();
        self.note(|| {
            let became = match done {
                Some(true) => "done",
                Some(false) => "put off",
                None => "died with",
            };
            format!("{:?} is {became}, and the network hears {heard:?}", job.job)
        });
        let (fault, may_fail) = (self.fault, self.may_fail());
        let is_stored = done == Some(true) || (done == Some(false) && self.has_unknown_commit());
        self.fault = Fault::None;
        match done {
            _ if is_stored => {
                self.network_does_nothing_twice()?;
                self.worked(&job, &heard, now)?;
                self.meet(&heard);
            }
            Some(false) if may_fail => self.worked_in_vain(&job, &heard, now)?,
            None if fault.kills() => {
                self.worked_in_vain(&job, &heard, now)?;
                self.meet(&heard);
                self.world.crash().await;
            }
            Some(_) => return Err(format!("the job {:?} fails", job.job)),
            None => return Err(format!("the job {:?} never ends", job.job)),
        }
        self.count();
        self.struck = Fault::None;
        Ok(true)
    }

    /// What came of the call is not known here; what the network said by itself was taken.
    fn worked_in_vain(&mut self, claimed: &ClaimedJob, heard: &[Heard], now: i64) -> Check {
        let side = self.side_of(claimed.scope)?;
        let early: Vec<Heard> = heard.iter().filter(|word| word.is_early()).cloned().collect();
        hear_early(&mut self.sides[side], &early, now);
        Ok(())
    }

    /// What a job that was done has to have come to.
    fn worked(&mut self, claimed: &ClaimedJob, heard: &[Heard], now: i64) -> Check {
        let number = self.side_of(claimed.scope)?;
        let side = &mut self.sides[number];
        let is_rerun = claimed.attempts > 1;
        match claimed.job {
            Job::ExpireCheckout(id) => side.checkout_timer(&id.to_string(), now),
            Job::OverdueInvoice(id) => side.invoice_timer(&id.to_string(), now),
            Job::ExpireSession(id) => side.session_timer(&id.to_string(), now),
            Job::ExpirePaymentLink(id) => side.link_timer(&id.to_string(), now),
            Job::StartAttempt(id) => {
                let id = id.to_string();
                let (early, heard) = split_early(heard);
                let is_for_nobody = side.attempts.contains_key(&id) && side.is_for_nobody(&id, now);
                hear_early(side, early, now);
                let attempt = side.attempts.get(&id).ok_or_else(|| format!("{id} is started and was never begun"))?;
                let knows_again = matches!(attempt.method, "wave" | "qmoney");
                match heard {
                    [Heard::Started { .. }] if is_for_nobody => return Err(format!("{id} is started for nobody")),
                    [] if is_for_nobody && attempt.step == Step::Sending && !is_rerun => {
                        let is_over = side.is_past_time(&id, now);
                        side.hear(&id, Word::Refused(if is_over { "expired" } else { "cancelled" }), now);
                    }
                    [] if is_for_nobody => side.hear(&id, Word::Lost, now),
                    [Heard::Started { called, .. }] if !is_rerun => side.hear(&id, word_of_start(called), now),
                    [Heard::Started { called, .. }] if knows_again => {
                        side.hear(&id, word_of_second_start(called), now);
                    }
                    [] if attempt.step == Step::Settled || attempt.step == Step::Waiting => {}
                    [] if is_rerun && !knows_again => side.hear(&id, Word::Lost, now),
                    _ => return Err(format!("{} is started, and the network heard {heard:?}", attempt.method)),
                }
            }
            Job::AskRail(_) | Job::WithdrawAttempt(_) => {
                let mut step_before = None;
                for word in heard {
                    match word {
                        Heard::Started { transaction, called, .. } => {
                            let id = transaction.to_string();
                            let attempt =
                                side.attempts.get(&id).ok_or_else(|| format!("{id} is started and was never begun"))?;
                            let step = step_before.take().unwrap_or(attempt.step);
                            if step != Step::Unknown || !matches!(attempt.method, "wave" | "qmoney") {
                                return Err(format!("{id} is started again with who would charge again"));
                            }
                            side.hear(&id, word_of_second_start(called), now);
                        }
                        Heard::Asked { transaction, report } => {
                            let is_question = matches!(claimed.job, Job::AskRail(_));
                            side.asked(&transaction.to_string(), word_of_report(report), is_question, now);
                        }
                        Heard::Early { transaction, .. } => {
                            step_before = side.attempts.get(&transaction.to_string()).map(|attempt| attempt.step);
                            hear_early(side, std::slice::from_ref(word), now);
                        }
                        Heard::Withdrawn => {}
                        _ => return Err(format!("a question, and the network heard {word:?}")),
                    }
                }
            }
            Job::SendRefund(id) => {
                let id = id.to_string();
                let refund = side.refunds.get(&id).ok_or_else(|| format!("{id} is sent and was never asked for"))?;
                let knows_again = side.attempts[&refund.attempt].method != "card";
                let (step, amount_of_refund) = (refund.step, refund.amount);
                let (early, heard) = split_early(heard);
                hear_early(side, early, now);
                match heard {
                    [Heard::Refunded { amount, .. }] if amount.minor != amount_of_refund => {
                        return Err(format!("{id} is of {amount_of_refund} and {amount} is paid back"));
                    }
                    [Heard::Refunded { .. }] if is_rerun && !knows_again => {
                        return Err(format!("{id} is sent twice to who would pay twice"));
                    }
                    [Heard::Refunded { called: Called::Refused(_), .. }] if is_rerun => {
                        side.refund_sent(&id, &Called::Lost(String::new()));
                    }
                    [Heard::Refunded { called, .. }] => side.refund_sent(&id, called),
                    [] if step == Step::Sending && is_rerun => {
                        side.refund_sent(&id, &Called::Lost(String::new()));
                    }
                    [] if step != Step::Sending => {}
                    _ => return Err(format!("{id} is sent, and the network heard {heard:?}")),
                }
            }
            Job::AskRefund(id) => {
                let id = id.to_string();
                let refund = side.refunds.get(&id).ok_or_else(|| format!("{id} is asked for and never was"))?;
                let knows_again = side.attempts[&refund.attempt].method != "card";
                let (step, amount_of_refund) = (refund.step, refund.amount);
                for word in heard {
                    match word {
                        Heard::AskedRefund { report, .. } => side.refund_reported(&id, report),
                        Heard::Refunded { .. } if step != Step::Unknown || !knows_again => {
                            return Err(format!("{id} is sent twice to who would pay twice"));
                        }
                        Heard::Refunded { amount, .. } if amount.minor != amount_of_refund => {
                            return Err(format!("{id} is of {amount_of_refund} and {amount} is paid back"));
                        }
                        Heard::Refunded { called, .. } => side.refund_sent(&id, called),
                        Heard::EarlyRefund { .. } => hear_early(side, std::slice::from_ref(word), now),
                        Heard::Started { .. }
                        | Heard::Code { .. }
                        | Heard::Asked { .. }
                        | Heard::Early { .. }
                        | Heard::Withdrawn => {}
                    }
                }
            }
            Job::RenderInvoice(_)
            | Job::RenderReceipt(_)
            | Job::FetchLogo(..)
            | Job::GiveUpDeliveries(_)
            | Job::SimulatePayer(_)
            | Job::SimulateRefund(_) => {}
        }
        Ok(())
    }

    pub(super) async fn deliver(&mut self) -> Check {
        let most = 1 + self.dice.below(12) as usize;
        let bad = self.dice.below(3);
        if self.is_apart() {
            while self.deliver_some(ALL, bad).await? > 0 {}
            return Ok(());
        }
        self.deliver_some(most, bad).await?;
        self.mail_some(bad).await.map(drop)
    }

    /// Some mails that are due, handed to a mail server that refuses `bad` of nine for now; how many.
    pub(super) async fn mail_some(&mut self, bad: u64) -> Result<usize, String> {
        if !self.world.sends_mail {
            return Ok(0);
        }
        let app = self.world.app.clone();
        let until = |tx: &store::Tx<'_>| Timestamp::from_micros(tx.now_us() + LEASE_US);
        let claimed = app.store().write::<_, Failure, _>(move |tx| {
            let (until, mut turns) = (until(tx), Turns::begin(tx)?);
            let mut claimed = mail_turns::claim(tx, Mode::Live, 8, until, &mut turns)?;
            claimed.extend(mail_turns::claim(tx, Mode::Test, 8, until, &mut turns)?);
            Ok(claimed)
        });
        let claimed = claimed.await;
        let claimed = claimed.map_err(|failure| format!("mails can't be claimed: {failure}"))?;
        let count = claimed.len();
        for mail in claimed {
            let outcome = match self.dice.below(9) < bad {
                true => MailAttempted::Failed { error: "421 not now".into(), may_have_arrived: false },
                false => MailAttempted::Accepted,
            };
            let stored = app.commit(move |tx, _| dalasi::app::mails::attempted(tx, &mail, &outcome)).await;
            stored.map_err(|failure| format!("what came of a mail can't be stored: {failure}"))?;
        }
        Ok(count)
    }

    /// How many were claimed. Of nine receivers `bad` fail.
    pub(super) async fn deliver_some(&mut self, most: usize, bad: u64) -> Result<usize, String> {
        let store = self.world.app.store().clone();
        let claimed = store.write(move |tx| {
            let until = Timestamp::from_micros(tx.now_us() + LEASE_US);
            webhooks::claim(tx, most, until, &mut Places::default())
        });
        let claimed = claimed.await.map_err(|failure| format!("deliveries can't be claimed: {failure}"))?;
        let count = claimed.len();
        let dice = self.dice.clone();
        for dispatch in claimed {
            let delivery = &dispatch.claimed.delivery;
            if self.is_apart() {
                // Of the event's own dice, whoever else is told something now.
                let name = format!("{} {}", delivery.event, delivery.attempts);
                self.dice = Dice::new(mix(dice.clone().next(), name.as_bytes()));
                self.world.entropy.reseed(self.dice.next());
            }
            let is_ours = self.acts(delivery.scope);
            let Some(endpoint) = dispatch.endpoint else {
                self.received.is_disabled = true;
                continue;
            };
            if (endpoint.scope, dispatch.event.scope) != (delivery.scope, delivery.scope) {
                return Err(format!("{} is somebody else's to hear", dispatch.event.id));
            }
            let of_object =
                self.received.events.entry((delivery.endpoint.to_string(), delivery.object_id.clone())).or_default();
            let waits = (1..delivery.sequence).find(|before| !of_object.get(before).is_some_and(|one| one.is_over));
            if let Some(before) = waits {
                return Err(format!("{} {} is sent before {before}", delivery.object_id, delivery.sequence));
            }
            let known = of_object.entry(delivery.sequence).or_default();
            if known.attempts > 0 && (&known.id, &known.body) != (&dispatch.event.id.to_string(), &dispatch.event.body)
            {
                return Err(format!("{} is sent with other bytes", dispatch.event.id));
            }
            known.id = dispatch.event.id.to_string();
            known.body.clone_from(&dispatch.event.body);
            known.attempts += 1;
            if known.is_over {
                return Err(format!("{} is sent after it was over", dispatch.event.id));
            }
            // Before five days of failures switch the endpoint off, one succeeds.
            let is_old = endpoint.failing_since.is_some_and(|since| self.world.now() - since.micros() > PATIENCE_US);
            let is_taken = self.dice.below(9) >= bad || is_old;
            let is_over = is_taken || known.attempts >= MOST_ATTEMPTS;
            known.is_over = is_over;
            let outcome = match is_taken {
                true => Attempted::Succeeded { status: 204 },
                false => Attempted::Failed { status: Some(500), error: "no".into(), retry_after: None, gone: false },
            };
            if is_ours {
                let told = &dispatch.event;
                self.note(|| format!("{} is told {} {}, {is_taken}", delivery.endpoint, told.id, told.body));
                self.arm();
            }
            let (began, posted) = (self.world.written(), Some(Posted { url: endpoint.url.clone(), outcome }));
            let ended = Ended { claimed: dispatch.claimed.clone(), posted };
            let stored = self.world.app.store_attempts(endpoint.id, vec![ended]).await;
            self.calm();
            if stored.is_err() && !self.may_fail() {
                return Err(format!("an attempt can't be stored: {stored:?}"));
            }
            let power = self.power_goes_since(began).await;
            if stored.is_err() || power == Some(false) {
                // If that was not stored, it will be sent again: at least once.
                let (is_over, attempts) = self.as_stored(delivery).await?;
                let key = (delivery.endpoint.to_string(), delivery.object_id.clone());
                if let Some(known) = self.received.events.get_mut(&key).and_then(|of| of.get_mut(&delivery.sequence)) {
                    (known.is_over, known.attempts) = (is_over, attempts);
                }
            }
            if is_ours {
                self.fault = Fault::None;
            }
            if power.is_some() {
                // The others that were claimed are nobody's any more.
                break;
            }
        }
        if self.is_apart() {
            self.dice = dice;
        }
        Ok(count)
    }

    /// Whether a delivery is over, and after how many attempts.
    async fn as_stored(&self, delivery: &Delivery) -> Result<(bool, u32), String> {
        let names = [delivery.event.to_string(), delivery.endpoint.to_string()];
        let stored = self.world.app.read(move |tx, _| {
            let sql = "select status, attempts from webhook_deliveries where event_id = $1 and endpoint_id = $2";
            let row = tx.query_one(sql, &names.clone().map(store::Value::from))?;
            Ok((row.get::<String>(0)? != "pending", row.get::<i64>(1)?))
        });
        let (is_over, attempts) = stored.await.map_err(|failure| format!("a delivery can't be read: {failure}"))?;
        Ok((is_over, u32::try_from(attempts).map_err(|_| "less than no attempts")?))
    }

    pub(super) async fn number(&mut self) -> Check {
        let began = self.world.written();
        self.arm();
        let mut numbered = dalasi::jobs::number(&self.world.app, "simulation").await;
        if self.power_goes_since(began).await.is_some() {
            numbered = dalasi::jobs::number(&self.world.app, "simulation").await;
        }
        // A full batch may hold theirs and not all of ours.
        while self.is_apart() && numbered.as_ref().is_ok_and(|count| *count > 0) {
            numbered = dalasi::jobs::number(&self.world.app, "simulation").await;
        }
        self.calm();
        match numbered {
            Ok(_) => Ok(()),
            Err(_) if self.may_fail() => Ok(()),
            Err(failure) => Err(format!("events can't be numbered: {failure}")),
        }
    }

    pub(super) async fn wait(&mut self) -> Check {
        let longest = [5, 60, 600, 4 * 3600, 26 * 3600][self.dice.below(5) as usize];
        let us = 1 + self.dice.below(longest * 1_000_000) as i64;
        self.world.pass(us);
        Ok(())
    }

    /// To the microsecond before a deadline, to the deadline itself, or to the one after; and then somebody acts.
    pub(super) async fn meet_deadline(&mut self) -> Check {
        let now = self.world.now();
        let mut deadlines = Vec::new();
        let acting = self.acting();
        for (number, side) in self.sides.iter().enumerate().filter(|(number, _)| acting.contains(number)) {
            for (id, one) in &side.checkouts {
                if one.state == CheckoutState::Pending {
                    let held = if one.is_held { 24 * 3600 * SECOND } else { 0 };
                    deadlines.push((one.expires_at + held, number, Object::Checkout, id.clone()));
                    deadlines.push((one.expires_at, number, Object::Checkout, id.clone()));
                }
            }
            for (id, one) in &side.invoices {
                if one.state == InvoiceState::Pending {
                    deadlines.push((one.overdue_at, number, Object::Invoice, id.clone()));
                }
            }
            for (id, one) in &side.links {
                if let (true, Some(at)) = (one.is_active, one.expires_at) {
                    deadlines.push((at, number, Object::Link, id.clone()));
                }
            }
            for (id, one) in &side.sessions {
                if one.state == SessionState::Pending && one.kind != Kind::Checkout {
                    deadlines.push((one.expires_at, number, Object::Session, id.clone()));
                }
            }
        }
        deadlines.retain(|(at, ..)| *at > now + 2);
        deadlines.sort();
        deadlines.truncate(6);
        let Some((at, side, object, id)) = self.dice.pick(&deadlines).cloned() else { return Ok(()) };
        let shift = self.dice.below(3) as i64 - 1;
        self.world.pass(at + shift - now);
        match (object, self.dice.below(4)) {
            (Object::Checkout, 0) => self.pay_object(side, Kind::Checkout, id).await,
            (Object::Checkout, 1) => self.cancel_checkout_of(side, &id).await,
            (Object::Link, 0 | 1) => self.pay_object(side, Kind::Link, id).await,
            (Object::Invoice, 0) => self.pay_object(side, Kind::Invoice, id).await,
            (_, 2) => self.work().await,
            _ => self.look(side, object, &id).await,
        }
    }
}
