//! The end of a history: nothing goes wrong any more. What is owed is done within ten minutes, and then all there is stands
//! against the model.

use std::collections::BTreeMap;

use dalasi::app::verify;
use domain::Id;
use domain::payment::Transaction;
use serde_json::json;
use store::Tx;

use super::{Check, History, Object, compare};
use crate::model::{RefundState, SECOND, Step};
use crate::network::{Wallet, refunds_once, starts_once};
use crate::operation::Fault;

/// Ten minutes, in steps.
const PATIENCE: i64 = 600;
const STEP: i64 = 30;
/// Whoever began late is waited for beyond the time of their payment, and so is who was heard of once more since.
const WAITED_FOR: i64 = 30 * 60;
/// Jobs and claims of deliveries within one step: a history of some hundred operations owes fewer.
const MOST_AT_ONCE: usize = 5_000;

impl History {
    pub(super) async fn drain(&mut self) -> Check {
        self.fault = Fault::None;
        self.calm();
        self.answers_of_the_network().await.map_err(|what| format!("the network's last words: {what}"))?;
        let mut passed = 0;
        while passed < PATIENCE {
            self.world.pass(STEP * SECOND);
            passed += STEP;
            self.rest().await?;
            self.number().await?;
            self.count();
        }
        self.nothing_is_owed().await?;
        self.nothing_is_left_there()?;
        self.everybody_is_answered().await?;
        for side in 0..self.sides.len() {
            for object in Object::ALL {
                for id in self.ids(side, object) {
                    self.look(side, object, &id).await.map_err(|what| format!("in the end: {what}"))?;
                }
            }
            self.tells_the_whole_story(side).await?;
            self.books_are_right(side).await?;
        }
        self.nothing_happened_twice()?;
        // A file that was torn may answer all these questions rightly.
        let has_file = self.world.written().is_some();
        let report = self.world.app.read(move |tx, _| {
            let report = verify::everything(tx, &verify::Progress::default())?;
            if has_file { verify::file(tx, report) } else { Ok(report) }
        });
        let report = report.await.map_err(|failure| format!("the books can't be read: {failure}"))?;
        match report.is_clean() {
            true => Ok(()),
            false => Err(format!("the service's own check: {:?}", report.faults)),
        }
    }

    /// Nobody can approve what is over: the network was asked to drop it.
    fn nothing_is_left_there(&self) -> Check {
        let (now, payments) = (self.world.now(), self.world.network.payments());
        let waits = payments.iter().filter(|(_, payment)| {
            let is_open = matches!(payment.wallet, Wallet::AwaitsPayer | Wallet::AwaitsCode { .. });
            is_open && payment.withdrawals == 0
        });
        for (id, _) in waits {
            let id = id.to_string();
            let known = self.sides.iter().find_map(|side| side.attempts.get(&id).map(|attempt| (side, attempt)));
            if let Some((side, attempt)) = known
                && matches!(attempt.step, Step::Waiting | Step::Unknown)
                && side.is_given_up(&id, now - WAITED_FOR * SECOND)
            {
                return Err(format!("{id} waits for its payer, whom nobody waits for"));
            }
        }
        Ok(())
    }

    /// Who never got an answer gets it by asking again.
    pub(super) async fn everybody_is_answered(&mut self) -> Check {
        for open in std::mem::take(&mut self.open) {
            let sent =
                self.world.send(open.side, "POST", "/v1/pay/initialize", Some(&open.body), Some(&open.key)).await;
            let answer = sent.ok_or("a request that was never answered hangs for ever")?;
            if answer.status != 200 {
                return Err(format!("a request that was never answered is answered {} {}", answer.status, answer.body));
            }
            compare(&answer, &vec![("session_id", json!(open.session))])?;
        }
        Ok(())
    }

    /// All that is due now is done, and that comes to an end.
    pub(super) async fn rest(&mut self) -> Check {
        for _ in 0..MOST_AT_ONCE {
            let has_worked = self.work_once().await?;
            self.no_panic()?;
            if !has_worked && self.deliver_some(100, 0).await? == 0 && self.mail_some(0).await? == 0 {
                return Ok(());
            }
        }
        Err(format!("after {MOST_AT_ONCE} jobs there is still one that is due"))
    }

    /// What is under way is decided, and told.
    async fn answers_of_the_network(&mut self) -> Check {
        for (id, payment) in self.world.network.payments() {
            if payment.wallet == Wallet::Processing {
                self.world.network.decide(id, Wallet::Paid);
            }
            if !matches!(payment.wallet, Wallet::AwaitsPayer | Wallet::AwaitsCode { .. }) {
                let word = self.world.network.word(id);
                self.report(payment.scope, id, word).await?;
            }
        }
        for (id, refund) in self.world.network.refunds() {
            if refund.is_paid_back.is_none() {
                self.world.network.decide_refund(id, true);
            }
            let word = self.world.network.refund_word(id);
            let reported = self.world.app.report_refund(refund.scope, id, word.clone()).await;
            reported.map_err(|failure| format!("{word:?} of {id} can't be taken: {failure}"))?;
            let side = self.world.scopes.iter().position(|scope| *scope == refund.scope).ok_or("nobody's refund")?;
            self.sides[side].refund_reported(&id.to_string(), &word);
        }
        Ok(())
    }

    /// A3: nothing is due, nothing is held, nothing waits for its place.
    pub(super) async fn nothing_is_owed(&mut self) -> Check {
        let now = self.world.now();
        let counts = self.world.app.read(move |tx, _| {
            let count = |tx: &mut Tx<'_>, sql: &str, values: &[store::Value]| -> Result<i64, store::Error> {
                tx.query_one(sql, values)?.get(0)
            };
            let now = [now.into()];
            let jobs = "select count(*) as owed from jobs where due_at <= $1 or lease_until > $1";
            // One waits while an earlier one of its object is open, and then is called.
            let deliveries = "select count(*) as owed from webhook_deliveries as due where status = 'pending' \
                and (next_retry_at <= $1 or lease_until > $1 or attempts = 0) and not exists (select 1 from webhook_deliveries as earlier \
                where earlier.endpoint_id = due.endpoint_id and earlier.object_id = due.object_id \
                and earlier.sequence < due.sequence and earlier.status = 'pending')";
            let mails = "select count(*) as owed from mails where status = 'pending' \
                and (next_try_at <= $1 or lease_until > $1)";
            Ok((
                count(tx, jobs, &now)?,
                count(tx, deliveries, &now)?,
                count(tx, "select count(*) as owed from events_unlogged", &[])?,
                count(tx, mails, &now)?,
            ))
        });
        match counts.await.map_err(|failure| format!("what is owed can't be read: {failure}"))? {
            (0, 0, 0, 0) => self.somebody_asks().await,
            (jobs, deliveries, events, mails) => Err(format!(
                "ten minutes later {jobs} jobs, {deliveries} deliveries, {events} events and {mails} mails are still owed"
            )),
        }
    }

    /// What is not decided is asked about, so is a way on that a payer lacks, and what was given up had all its tries.
    async fn somebody_asks(&mut self) -> Check {
        let now = self.world.now();
        let found = self.world.app.read(move |tx, _| {
            let (mut asked, mut started) = (Vec::new(), Vec::new());
            for row in tx.query("select object_id, kind from jobs order by object_id", &[])? {
                asked.push(row.get::<String>(0)?);
                if row.get::<String>(1)? == "start_attempt" {
                    started.push(row.get::<String>(0)?);
                }
            }
            let given_up =
                "select count(*) as given_up from webhook_deliveries where status = 'failed' and attempts < 10";
            Ok((asked, started, tx.query_one(given_up, &[])?.get::<i64>(0)?))
        });
        let (asked, started, given_up) = found.await.map_err(|failure| format!("jobs can't be read: {failure}"))?;
        if given_up > 0 && !self.received.is_disabled {
            return Err(format!("{given_up} deliveries were given up before their time"));
        }
        for side in &self.sides {
            let attempts = side.attempts.iter().filter(|(_, one)| one.step != Step::Settled).map(|(id, _)| id);
            let refunds = side.refunds.iter().filter(|(_, one)| one.step != Step::Settled).map(|(id, _)| id);
            if let Some(id) = attempts.chain(refunds).find(|id| asked.binary_search(id).is_err()) {
                return Err(format!("{id} is not decided, and nobody asks"));
            }
            let mut stuck = side.attempts.keys().filter(|id| side.lacks_way_on(id, now));
            if let Some(id) = stuck.find(|id| !started.contains(*id)) {
                return Err(format!("{id} waits for its payer, who is not told where to go"));
            }
        }
        Ok(())
    }

    /// Every event that has to be, in its order, once; and its place in the log.
    async fn tells_the_whole_story(&mut self, number: usize) -> Check {
        let scope = self.world.scopes[number];
        let stored = self.world.app.read(move |tx, _| {
            let key = [scope.organization.to_string().into(), scope.mode.as_str().into()];
            let events = "select object_id, type, sequence, body from events \
                where organization_id = $1 and mode = $2 order by object_id, sequence";
            let mut told: Vec<(String, String, i64, String)> = Vec::new();
            for row in tx.query(events, &key)? {
                told.push((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            }
            let log = "select log_no from event_log where organization_id = $1 and mode = $2 order by log_no";
            let mut places: Vec<i64> = Vec::new();
            for row in tx.query(log, &key)? {
                places.push(row.get(0)?);
            }
            Ok((told, places))
        });
        let (told, places) = stored.await.map_err(|failure| format!("events can't be read: {failure}"))?;
        let mut by_object: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (object, kind, sequence, body) in &told {
            let of_object = by_object.entry(object.clone()).or_default();
            of_object.push(kind.clone());
            if *sequence != of_object.len() as i64 {
                return Err(format!("{object} tells its number {sequence} as {}", of_object.len()));
            }
            let json: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
            let is_live = self.sides[number].is_live;
            if json["livemode"] != json!(is_live) || json["sequence"] != json!(sequence) || json["type"] != json!(kind)
            {
                return Err(format!("an event of {object} says something else inside: {body}"));
            }
        }
        let predicted: BTreeMap<String, Vec<String>> = self.sides[number]
            .events
            .iter()
            .map(|(object, kinds)| (object.clone(), kinds.iter().map(|kind| (*kind).to_owned()).collect()))
            .collect();
        for object in by_object.keys().chain(predicted.keys()) {
            if by_object.get(object) != predicted.get(object) {
                let (told, wanted) = (by_object.get(object), predicted.get(object));
                return Err(format!("{object} should tell {wanted:?} and tells {told:?}"));
            }
        }
        if places.len() != told.len() || places.iter().enumerate().any(|(place, no)| *no != place as i64 + 1) {
            return Err(format!("the log has places {places:?} for {} events", told.len()));
        }
        if !self.received.is_disabled {
            self.everybody_was_told(&by_object)?;
        }
        Ok(())
    }

    fn everybody_was_told(&self, told: &BTreeMap<String, Vec<String>>) -> Check {
        for (object, kinds) in told {
            let received = self.received.events.iter().find(|((_, of), _)| of == object).map(|(_, events)| events);
            let known = received.map_or(0, |events| events.len());
            let first_open = received.and_then(|events| events.values().find(|one| !one.is_over));
            // One that failed waits for its next try, and those behind it wait for that.
            if known < kinds.len() && first_open.is_none() {
                return Err(format!("of {object} {known} of {} events were sent", kinds.len()));
            }
        }
        Ok(())
    }

    async fn books_are_right(&mut self, number: usize) -> Check {
        let scope = self.world.scopes[number];
        let stored = self.world.app.read(move |tx, _| {
            let key = [scope.organization.to_string().into(), scope.mode.as_str().into()];
            let sums = "select account, sum(amount_minor) as total from ledger_postings \
                where organization_id = $1 and mode = $2 group by account order by account";
            let mut accounts = BTreeMap::new();
            for row in tx.query(sums, &key)? {
                let (account, total): (String, i64) = (row.get(0)?, row.get(1)?);
                accounts.insert(account, total);
            }
            Ok(accounts)
        });
        let mut accounts = stored.await.map_err(|failure| format!("the ledger can't be read: {failure}"))?;
        let sum: i64 = accounts.values().sum();
        if sum != 0 {
            return Err(format!("the postings sum to {sum}"));
        }
        accounts.retain(|_, total| *total != 0);
        let mut predicted = self.sides[number].accounts.clone();
        predicted.retain(|_, total| *total != 0);
        if accounts != predicted {
            return Err(format!("the ledger should hold {predicted:?} and holds {accounts:?}"));
        }
        // What is on its way back is what open refunds ask for.
        let side = &self.sides[number];
        let is_open = |state| matches!(state, RefundState::Pending | RefundState::Processing);
        let open: i64 = side.refunds.values().filter(|one| is_open(one.state)).map(|one| one.amount).sum();
        let pending = -side.accounts.get("refunds_pending").copied().unwrap_or_default();
        if open != pending {
            return Err(format!("{open} is asked back and {pending} is on its way"));
        }
        Ok(())
    }

    /// P4: nobody is charged or paid back twice.
    pub(super) fn nothing_happened_twice(&self) -> Check {
        self.network_does_nothing_twice()?;
        for side in &self.sides {
            for (id, attempt) in &side.attempts {
                let refunds =
                    side.refunds.values().filter(|one| one.attempt == *id && one.state == RefundState::Completed);
                let paid_back: i64 = refunds.map(|one| one.amount).sum();
                if paid_back > attempt.amount {
                    return Err(format!("{id} brought {} and {paid_back} went back", attempt.amount));
                }
            }
        }
        Ok(())
    }

    /// The same of what really happened, whatever the service and the model know of it.
    pub(super) fn network_does_nothing_twice(&self) -> Check {
        let payments = self.world.network.payments();
        for (id, payment) in &payments {
            if payment.starts > 1 && !starts_once(payment.method) {
                return Err(format!("{id} was ordered {} times", payment.starts));
            }
        }
        let mut paid_back: BTreeMap<Id<Transaction>, i64> = BTreeMap::new();
        for (id, refund) in self.world.network.refunds() {
            if refund.sends > 1 && !refunds_once(refund.method) {
                return Err(format!("{id} was sent {} times to who pays each of them back", refund.sends));
            }
            // What a failure made room for may be paid back by then.
            if refund.is_paid_back == Some(true) && !refund.is_corrected {
                *paid_back.entry(refund.transaction).or_default() += refund.amount.minor;
            }
        }
        for (id, went) in paid_back {
            let came = payments.get(&id).map_or(0, |payment| payment.amount.minor);
            if went > came {
                return Err(format!("the network has {came} of {id} and paid {went} back"));
            }
        }
        Ok(())
    }
}
