//! Liveness: whatever went wrong stops, and within ten minutes nothing is owed, each attempt, refund, delivery and mail is
//! final or says why not, and what stands in the clearing accounts is what the network holds.
//!
//! The model has no say here: the database is asked what it holds, and the network what it really did.

use std::collections::BTreeMap;

use dalasi::app::delivery_places::Places;
use dalasi::app::mail_turns::{self, Turns};
use domain::Mode;
use domain::rail::RefundReport;
use serde_json::Value;
use store::Tx;

use super::{Check, History};
use crate::model::{DAY, HOUR, SECOND};
use crate::network::Wallet;
use crate::operation::Fault;
use crate::random::Dice;

const TEN_MINUTES: i64 = 600 * SECOND;
const LEASE: i64 = 30 * SECOND;

/// A transaction or a refund, as it is stored.
struct Intent {
    id: String,
    side: usize,
    is_settled: bool,
    /// The money moved: paid, or paid back.
    is_done: bool,
    /// A person has to look, because the network's word does not fit.
    is_parked: bool,
    /// By a rail, and not written down by hand.
    is_of_rail: bool,
    amount: i64,
    created_at: i64,
    /// Of a refund: what it pays back.
    transaction: String,
}

/// A provider that says nothing is asked again (contract §4): about what it was asked for so long ago within the hour, or within an
/// eighth of that time where it is more, and within a day in any case.
fn longest_pause(age: i64) -> i64 {
    (age / 8).clamp(HOUR, DAY)
}

/// What the service may know of the network.
#[derive(Clone, Copy)]
enum Heard {
    /// The next question may be a while away.
    Nothing,
    /// Each question was answered. What was closed here before nobody asks about.
    Answers,
    All,
}

struct Stored {
    attempts: Vec<Intent>,
    refunds: Vec<Intent>,
    /// When something is done next about an object.
    due: BTreeMap<String, i64>,
    /// By side and account.
    accounts: BTreeMap<(usize, String), i64>,
}

impl History {
    pub(super) async fn heal(&mut self, dice: u64) -> Check {
        self.fault = Fault::None;
        self.dice = Dice::new(dice);
        self.world.entropy.reseed(dice);
        self.calm();
        if self.dice.one_in(2) {
            self.dies_at_work().await?;
        }
        self.everything_is_decided();
        // A network that says nothing by itself has to be asked.
        let is_silent = self.dice.one_in(2);
        if !is_silent {
            self.network_tells().await?;
        }
        self.ten_quiet_minutes().await?;
        self.nothing_is_owed().await?;
        self.nothing_is_past_its_time().await?;
        self.network_does_nothing_twice()?;
        self.all_is_final_or_explained(if is_silent { Heard::Nothing } else { Heard::All }).await?;
        if is_silent {
            // The last question may have been asked just before the answer was there.
            self.all_is_asked_about().await?;
            self.nothing_is_owed().await?;
            self.all_is_final_or_explained(Heard::Answers).await?;
        }
        self.everybody_is_answered().await
    }

    /// A worker takes what is due and dies with it in its hands.
    async fn dies_at_work(&mut self) -> Check {
        let most = 1 + self.dice.below(8) as usize;
        dalasi::jobs::claim_due(&self.world.app, most).await;
        let claimed = self.world.app.commit(move |tx, _| {
            let until = domain::Timestamp::from_micros(tx.now_us() + LEASE);
            dalasi::app::webhooks::claim(tx, most, until, &mut Places::default())?;
            let mut turns = Turns::begin(tx)?;
            for mode in [Mode::Live, Mode::Test] {
                mail_turns::claim(tx, mode, most, until, &mut turns)?;
            }
            Ok(())
        });
        claimed.await.map_err(|failure| format!("what is due can't be claimed: {failure}"))?;
        self.world.crash().await;
        Ok(())
    }

    /// The network ends what it has begun; payers who have not decided may leave it at that.
    fn everything_is_decided(&mut self) {
        for (id, payment) in self.world.network.payments() {
            match payment.wallet {
                Wallet::Processing if self.dice.one_in(3) => self.world.network.decide(id, Wallet::Failed),
                Wallet::Processing => self.world.network.decide(id, Wallet::Paid),
                Wallet::AwaitsPayer if self.dice.one_in(2) => self.world.network.decide(id, Wallet::Paid),
                Wallet::AwaitsPayer | Wallet::AwaitsCode { .. } | Wallet::Paid | Wallet::Failed => {}
            }
        }
        for (id, refund) in self.world.network.refunds() {
            if refund.is_paid_back.is_none() {
                let is_paid_back = !self.dice.one_in(3);
                self.world.network.decide_refund(id, is_paid_back);
            }
        }
    }

    async fn network_tells(&mut self) -> Check {
        for (id, payment) in self.world.network.payments() {
            let word = self.world.network.word(id);
            self.report(payment.scope, id, word).await?;
        }
        for (id, refund) in self.world.network.refunds() {
            let word = self.world.network.refund_word(id);
            let reported = self.world.app.report_refund(refund.scope, id, word.clone()).await;
            reported.map_err(|failure| format!("{word:?} of {id} can't be taken: {failure}"))?;
            let side = self.world.scopes.iter().position(|scope| *scope == refund.scope).ok_or("nobody's refund")?;
            self.sides[side].refund_reported(&id.to_string(), &word);
        }
        Ok(())
    }

    async fn ten_quiet_minutes(&mut self) -> Check {
        let until = self.world.now() + TEN_MINUTES;
        while self.world.now() < until {
            let step = 1 + self.dice.below(60 * SECOND as u64) as i64;
            self.world.pass(step.min(until - self.world.now()));
            self.rest().await?;
            self.number().await?;
        }
        Ok(())
    }

    /// What is not decided is asked about once more, in longer steps: that may be a day later.
    async fn all_is_asked_about(&mut self) -> Check {
        let (stored, now) = (self.stored().await?, self.world.now());
        let open = stored.attempts.iter().chain(&stored.refunds).filter(|one| one.is_of_rail && !one.is_settled);
        let until = now + open.map(|one| longest_pause(now - one.created_at)).max().unwrap_or_default();
        while self.world.now() < until {
            self.world.pass(TEN_MINUTES);
            self.rest().await?;
            self.number().await?;
        }
        self.ten_quiet_minutes().await
    }

    /// What the clock decides was decided.
    async fn nothing_is_past_its_time(&self) -> Check {
        let now = self.world.now();
        let late = self.world.app.read(move |tx, _| {
            let late = "select id from checkouts where status = 'pending' and deadline_at <= $1 \
                union all select id from invoices where status = 'pending' and overdue_at <= $1 \
                union all select id from payment_links where status = 'active' and expiration_at <= $1 \
                union all select event_id from webhook_deliveries where status = 'pending' and attempts = 0 \
                    and not exists (select 1 from webhook_deliveries as earlier \
                    where earlier.endpoint_id = webhook_deliveries.endpoint_id \
                    and earlier.object_id = webhook_deliveries.object_id \
                    and earlier.sequence < webhook_deliveries.sequence and earlier.status = 'pending') \
                union all select id from mails where status = 'pending' and attempts = 0 \
                order by 1";
            let rows = tx.query(late, &[now.into()])?;
            Ok(rows.iter().map(|row| row.get::<String>(0)).collect::<Result<Vec<_>, _>>()?)
        });
        match late.await.map_err(|failure| format!("what is late can't be read: {failure}"))?[..] {
            [] => Ok(()),
            ref late => Err(format!("ten minutes later the time of these had come, and nothing happened: {late:?}")),
        }
    }

    async fn all_is_final_or_explained(&self, heard: Heard) -> Check {
        let stored = self.stored().await?;
        let (payments, refunds) = (self.world.network.payments(), self.world.network.refunds());
        let paid: BTreeMap<String, i64> = payments
            .iter()
            .filter(|(_, payment)| payment.wallet == Wallet::Paid)
            .map(|(id, payment)| (id.to_string(), payment.amount.minor))
            .collect();
        let failed: Vec<String> =
            payments.iter().filter(|(_, one)| one.wallet == Wallet::Failed).map(|(id, _)| id.to_string()).collect();
        let words = refunds.iter().map(|(id, one)| (id.to_string(), self.world.network.refund_word(*id), one));
        let mut paid_back = BTreeMap::new();
        let mut refused = Vec::new();
        for (id, word, refund) in words {
            match word {
                RefundReport::Completed { .. } => drop(paid_back.insert(id, refund.amount.minor)),
                RefundReport::Failed { .. } => refused.push(id),
                RefundReport::Processing { .. } | RefundReport::NotFound => {}
            }
        }
        self.explained(&stored.attempts, &paid, &failed, &stored.due, heard)?;
        self.explained(&stored.refunds, &paid_back, &refused, &stored.due, heard)?;
        self.clears(&stored)
    }

    /// An intent that the network decided is decided here, or parked; the rest is asked about in time.
    fn explained(
        &self,
        intents: &[Intent],
        done: &BTreeMap<String, i64>,
        failed: &[String],
        due: &BTreeMap<String, i64>,
        heard: Heard,
    ) -> Check {
        let now = self.world.now();
        for one in intents.iter().filter(|one| one.is_of_rail) {
            let Intent { id, .. } = one;
            if one.is_done && done.get(id) != Some(&one.amount) {
                return Err(format!(
                    "{id} counts as {} that moved, and the network moved {:?}",
                    one.amount,
                    done.get(id)
                ));
            }
            if one.is_parked {
                continue;
            }
            let latest = now + longest_pause(now - one.created_at);
            let is_asked = due.get(id).is_some_and(|at| (now + 1..=latest).contains(at));
            if !one.is_settled && !is_asked {
                return Err(format!("{id} is not decided, and is looked at {:?}", due.get(id).map(|at| at - now)));
            }
            let is_decided = done.contains_key(id) || failed.contains(id);
            let is_missed = match heard {
                Heard::Nothing => false,
                Heard::Answers => is_decided && !one.is_settled,
                Heard::All => is_decided && !(one.is_settled && one.is_done == done.contains_key(id)),
            };
            if is_missed {
                return Err(format!("the network has decided {id}, and here it is not"));
            }
        }
        Ok(())
    }

    /// The clearing account holds what the network holds, but for what a person has to look at.
    fn clears(&self, stored: &Stored) -> Check {
        for side in 0..self.sides.len() {
            let of_side = |one: &&Intent| one.side == side;
            let came = stored.attempts.iter().filter(of_side).filter(|one| one.is_of_rail && one.is_done);
            let came: i64 = came.map(|one| one.amount).sum();
            let refunds = || stored.refunds.iter().filter(of_side).filter(|one| one.is_of_rail);
            let went: i64 = refunds().filter(|one| one.is_done).map(|one| one.amount).sum();
            let under_way: i64 = refunds().filter(|one| !one.is_settled).map(|one| one.amount).sum();
            let account = |name: &str| stored.accounts.get(&(side, name.to_owned())).copied().unwrap_or_default();
            let (clearing, pending) = (account("rail_clearing:network"), account("refunds_pending"));
            if (clearing, pending) != (came - went, -under_way) {
                return Err(format!(
                    "{clearing} is held at the network and {pending} on its way, where {came} came, {went} went back and \
                    {under_way} is to go"
                ));
            }
            let sum: i64 = stored.accounts.iter().filter(|((of, _), _)| *of == side).map(|(_, total)| total).sum();
            if sum != 0 {
                return Err(format!("the postings sum to {sum}"));
            }
        }
        Ok(())
    }

    async fn stored(&self) -> Result<Stored, String> {
        let scopes = self.world.scopes.clone();
        let side_of = move |organization: &str, mode: &str| {
            let is_it =
                |scope: &domain::Scope| scope.organization.to_string() == organization && scope.mode.as_str() == mode;
            scopes.iter().position(is_it).unwrap_or(usize::MAX)
        };
        let stored = self.world.app.read(move |tx, _| {
            let attempts = "select id, organization_id, mode, status, step, amount_minor, doc, \
                coalesce(payment_session_id, '') as of from transactions order by id";
            let refunds = "select id, organization_id, mode, status, step, amount_minor, doc, \
                transaction_id as of from refunds order by id";
            let intents = |tx: &mut Tx<'_>, sql: &str| -> Result<Vec<Intent>, store::Error> {
                let row = |row: &store::Row| {
                    let (organization, mode): (String, String) = (row.get("organization_id")?, row.get("mode")?);
                    let (status, step): (String, String) = (row.get("status")?, row.get("step")?);
                    let (doc, of): (String, String) = (row.get("doc")?, row.get("of")?);
                    let doc: Value = serde_json::from_str(&doc).unwrap_or_default();
                    Ok(Intent {
                        id: row.get("id")?,
                        side: side_of(&organization, &mode),
                        is_settled: step == "settled",
                        is_done: matches!(status.as_str(), "completed" | "partially_refunded" | "refunded"),
                        is_parked: !doc["parked"].is_null(),
                        is_of_rail: !of.is_empty(),
                        amount: row.get("amount_minor")?,
                        created_at: doc["created_at"].as_i64().unwrap_or_default(),
                        transaction: of,
                    })
                };
                tx.query(sql, &[])?.iter().map(row).collect()
            };
            let (attempts, mut refunds) = (intents(tx, attempts)?, intents(tx, refunds)?);
            let of_rail = |id: &str| attempts.iter().any(|one| one.is_of_rail && one.id == id);
            refunds.iter_mut().for_each(|refund| refund.is_of_rail = of_rail(&refund.transaction));
            let mut due = BTreeMap::new();
            for row in
                tx.query("select object_id, min(due_at) as due_at from jobs group by object_id order by 1", &[])?
            {
                due.insert(row.get::<String>("object_id")?, row.get::<i64>("due_at")?);
            }
            let sums = "select organization_id, mode, account, cast(sum(amount_minor) as bigint) as total \
                from ledger_postings group by organization_id, mode, account order by 1, 2, 3";
            let mut accounts = BTreeMap::new();
            for row in tx.query(sums, &[])? {
                let (organization, mode): (String, String) = (row.get("organization_id")?, row.get("mode")?);
                accounts.insert((side_of(&organization, &mode), row.get("account")?), row.get("total")?);
            }
            Ok(Stored { attempts, refunds, due, accounts })
        });
        stored.await.map_err(|failure| format!("what became of it all can't be read: {failure}"))
    }
}
