//! Each function is one transaction of the shell (`app` of the server), and moves the rows by the domain's own functions.
//! `None`: it was refused, and nothing is written.

use domain::event::EventType;
use domain::ledger::Entry;
use domain::payment::{Again, Moved, Payer, PaymentSession, SessionStatus, Settlement, Step, Transaction};
use domain::rail::Called;
use domain::{Id, Method, Money, Timestamp};

use super::object::Object;
use super::rail::{NO, Word, is_idempotent, started};
use super::world::{Attempt, Brought, Call, Phase, Run, Work, World};
use crate::guard::Guard;
use crate::jobs;
use crate::kept::Kept;
use crate::sample::{dalasi, id, scope};

const FEE: i64 = 200;

impl World {
    /// A payer begins or goes on: the intent is committed, and whoever asked calls the rail.
    pub(crate) fn pay(&mut self, method: Method, asked: Option<Money>, without: Option<Guard>) -> Option<()> {
        let now = self.now();
        let mut object = self.object.load();
        let mut current = self.object.session().map(|session| self.place(session));
        object.amount(None, now).ok()?;
        current = current.filter(|place| self.attempts[*place].session.status() != SessionStatus::Succeeded);
        if let Some(place) = current.filter(|place| self.attempts[*place].session.has_expired(now)) {
            self.close(&mut object, place, true);
        }
        let amount = object.amount(asked, now).ok()?;
        if let Some(place) = current {
            let attempt = &self.attempts[place];
            match attempt.session.again(Some(&*attempt.transaction), Some(method), amount) {
                Ok(Again::Same) => {
                    self.object = object.save();
                    return Some(());
                }
                Ok(Again::Replace) => self.close(&mut object, place, false),
                Ok(Again::New) => {}
                Err(_) if without == Some(Guard::OpenSession) => {}
                Err(_) => return None,
            }
        }
        let place = self.attempts.len();
        let number = u8::try_from(place + 1).expect("a model has few attempts");
        let expires_at = object.session_expires_at(now);
        let payer = Payer::default();
        let mut session =
            PaymentSession::open(id(number), scope(), object.payable(), amount, Some(method), payer, expires_at, now);
        object.session_opened(session.id, now);
        let mut transaction = session.begin(id(number), method, "rail".into(), dalasi(FEE), now);
        transaction.attempt_count = i64::from(number);
        object.attempt_moved(session.id, transaction.summary(), session.is_with_provider(), now);
        let mut start = None;
        jobs::hold(&mut start);
        self.attempts.push(Attempt {
            has_timer: !object.payable().ends_its_sessions(),
            session: Kept::new(session),
            transaction: Kept::new(transaction),
            start,
            ask: None,
            withdraw: None,
            order: Default::default(),
            posted: 0,
            told_paid: 0,
            told_failed: 0,
        });
        self.object = object.save();
        self.begin_run(place, Work::Start, Phase::Calls(Call::Start { is_repeated: false }), without);
        Some(())
    }

    /// A worker takes what is owed, and reads what it needs before it calls.
    pub(crate) fn claim(&mut self, place: usize, work: Work, without: Option<Guard>) -> Option<()> {
        let is_rerun = jobs::claim(self.job(place, work))?;
        let attempt = &self.attempts[place];
        let (transaction, idempotent) = (&attempt.transaction, is_idempotent(attempt.method()));
        let phase = match (work, transaction.step()) {
            (Work::Start, Step::Settled) => Phase::Has(Brought::Nothing),
            (Work::Start, Step::Waiting) if idempotent && attempt.session.next_action.is_none() => {
                Phase::Calls(Call::Start { is_repeated: true })
            }
            (Work::Start, Step::Waiting) => Phase::Has(Brought::Nothing),
            (Work::Start, Step::Sending | Step::Unknown)
                if is_rerun && !idempotent && without != Some(Guard::OneCall) =>
            {
                Phase::Has(Brought::Lost)
            }
            (Work::Start, Step::Sending | Step::Unknown) => {
                let is_repeated = is_rerun && without != Some(Guard::SecondNo);
                Phase::Calls(Call::Start { is_repeated })
            }
            (Work::Ask, step) => {
                // A question moves nothing at the rail, so only one that leads to more takes its time.
                let may_be_lost = matches!(step, Step::Sending | Step::Unknown);
                match may_be_lost && transaction.parked.is_none() && idempotent {
                    true => Phase::Calls(Call::Query { may_repeat: true }),
                    false => Phase::Has(Brought::Said(attempt.order.word())),
                }
            }
            (Work::Withdraw, Step::Settled) => Phase::Has(Brought::Said(attempt.order.word())),
            (Work::Withdraw, Step::Sending | Step::Waiting | Step::Unknown) => Phase::Calls(Call::Withdraw),
        };
        self.begin_run(place, work, phase, without);
        Some(())
    }

    /// What a call brought is committed, and the claim let go.
    pub(crate) fn commit(&mut self, run: Run, without: Option<Guard>) -> Option<()> {
        let Run { attempt: place, work, holds, phase, read } = run;
        let Phase::Has(brought) = phase else { return None };
        if let Some((object, session, transaction)) = read {
            self.object = object;
            self.attempts[place].session = session;
            self.attempts[place].transaction = transaction;
        }
        let (method, amount) = (self.attempts[place].method(), self.attempts[place].transaction.amount);
        self.settle(place, |session, transaction, now| match brought {
            Brought::Nothing => Moved::Nowhere,
            Brought::Started => session.started(transaction, Called::Answered(started(method)), now),
            // Whoever took over meanwhile may have called first, or be calling.
            Brought::Refused | Brought::Lost if !holds && without != Some(Guard::OthersCall) => Moved::Nowhere,
            Brought::Refused => session.started(transaction, Called::Refused(NO), now),
            Brought::Lost if work == Work::Ask => session.repeated(transaction, Called::Lost("lost".into()), now),
            Brought::Lost => session.started(transaction, Called::Lost("lost".into()), now),
            // Nor has anybody heard what came of a call that was made once more.
            Brought::Said(Word::NotFound) if work == Work::Ask && holds => {
                session.repeated(transaction, Called::Lost("unheard".into()), now)
            }
            Brought::Said(word) => session.reported(transaction, &word.report(method, amount), now),
        });
        if holds {
            jobs::done(self.job(place, work));
        }
        if work == Work::Ask {
            self.withdraw_again(place);
        }
        Some(())
    }

    /// The intent to call once more is committed before the call.
    pub(super) fn repeat_start(&mut self, place: usize) -> bool {
        let attempt = &mut self.attempts[place];
        let mut transaction = attempt.transaction.load();
        let is_repeated = attempt.session.repeat_start(&mut transaction);
        attempt.transaction = Kept::new(transaction);
        is_repeated
    }

    /// A callback's verified word.
    pub(crate) fn report(&mut self, place: usize, word: Word) {
        let report = word.report(self.attempts[place].method(), self.attempts[place].transaction.amount);
        self.settle(place, |session, transaction, now| session.reported(transaction, &report, now));
    }

    pub(crate) fn returned(&mut self, place: usize) {
        self.settle(place, |session, transaction, now| session.returned(transaction, now));
    }

    /// `app/settlement.rs`: what became known of an attempt, with everything that follows from it.
    fn settle(&mut self, place: usize, apply: impl FnOnce(&mut PaymentSession, &mut Transaction, Timestamp) -> Moved) {
        let now = self.now();
        let mut object = self.object.load();
        let (mut session, mut transaction) =
            (self.attempts[place].session.load(), self.attempts[place].transaction.load());
        let (step_before, has_expired) = (transaction.step(), session.has_expired(now));
        match apply(&mut session, &mut transaction, now) {
            Moved::Nowhere => {
                if transaction.step() != Step::Settled {
                    jobs::schedule(&mut self.attempts[place].ask);
                }
                return;
            }
            Moved::On => object.attempt_moved(session.id, transaction.summary(), session.is_with_provider(), now),
            Moved::ToFailed => {
                object.attempt_moved(session.id, transaction.summary(), false, now);
                if object.awaits_payment() {
                    self.tell(&mut object, EventType::PaymentFailed);
                    self.attempts[place].told_failed += 1;
                    if let Object::Invoice(_) = object {
                        self.tell(&mut object, EventType::InvoicePaymentFailed);
                    }
                }
            }
            Moved::ToPaid => {
                if has_expired {
                    object.attempt_moved(session.id, transaction.summary_before_money(), false, now);
                }
                self.money_arrived(&mut object, place, session.id, &mut transaction);
            }
        }
        let attempt = &mut self.attempts[place];
        let restarts = is_idempotent(attempt.method()) && !transaction.status().is_paid();
        if transaction.step() == Step::Waiting && session.next_action.is_none() && restarts {
            jobs::schedule(&mut attempt.start);
        }
        let observed = object.observe(now);
        let is_ended = observed.is_some() && object.payable().ends_its_sessions();
        let is_news = step_before != transaction.step() || is_ended;
        if transaction.may_be_withdrawn() && is_news && is_unwanted(&object, &session, now) {
            jobs::schedule(&mut attempt.withdraw);
        }
        let is_expired = is_ended || session.has_expired(now);
        let is_useless = session.status() == SessionStatus::Pending && !object.has_use_for(session.amount);
        if is_expired || is_useless {
            close_rows(attempt, &mut session, &mut transaction, is_expired, now);
            if !transaction.status().is_paid() {
                object.attempt_moved(session.id, transaction.summary(), false, now);
            }
        }
        if session.refuse_if_closed().is_err() {
            attempt.has_timer = false;
        }
        match transaction.step() {
            Step::Settled => attempt.ask = None,
            Step::Sending | Step::Waiting | Step::Unknown => jobs::schedule(&mut attempt.ask),
        }
        attempt.save(session, transaction);
        if let Some(event) = observed {
            self.tell(&mut object, event);
        }
        let session = self.attempts[place].session.id;
        if let Some(rival) = object.rival_of(session).map(|rival| self.place(rival))
            && !object.has_use_for(self.attempts[rival].session.amount)
        {
            self.withdraw(rival);
        }
        self.object = object.save();
    }

    fn money_arrived(
        &mut self,
        object: &mut Object,
        place: usize,
        session: Id<PaymentSession>,
        transaction: &mut Transaction,
    ) {
        let now = self.now();
        if let Some(event) = object.observe(now) {
            self.tell(object, event);
        }
        if let Some(rival) = object.rival_of(session) {
            let rival = self.place(rival);
            self.close(object, rival, false);
        }
        let (settlement, event) = object.money_arrived(transaction, now);
        let entry = match settlement {
            Settlement::Paid | Settlement::Late => Entry::payment_completed(id(1), transaction),
            Settlement::Second => Entry::second_money(id(1), transaction),
        };
        self.books.post(&entry);
        self.attempts[place].posted += 1;
        self.tell(object, EventType::PaymentSucceeded);
        self.attempts[place].told_paid += 1;
        if let Some(event) = event {
            self.tell(object, event);
        }
        match object {
            Object::Checkout(_) if settlement == Settlement::Paid => self.timer = None,
            Object::Checkout(_) => {}
            Object::Invoice(invoice) => self.timer = invoice.overdue_at(),
        }
    }

    /// Asks the rail to drop an attempt that it has.
    pub(super) fn withdraw(&mut self, place: usize) {
        let attempt = &mut self.attempts[place];
        if attempt.session.is_with_provider() && attempt.transaction.may_be_withdrawn() {
            jobs::schedule(&mut attempt.withdraw);
        }
    }

    /// What its rail keeps though it was asked to drop it.
    fn withdraw_again(&mut self, place: usize) {
        let (now, object, attempt) = (self.now(), self.object.load(), &mut self.attempts[place]);
        if attempt.transaction.may_be_withdrawn() && is_unwanted(&object, &attempt.session, now) {
            jobs::schedule(&mut attempt.withdraw);
        }
    }

    /// Closes a pending session and asks the rail to drop its attempt; does nothing to any other.
    pub(super) fn close(&mut self, object: &mut Object, place: usize, expired: bool) {
        let now = self.now();
        let attempt = &mut self.attempts[place];
        if attempt.session.status() != SessionStatus::Pending {
            return;
        }
        let (mut session, mut transaction) = (attempt.session.load(), attempt.transaction.load());
        close_rows(attempt, &mut session, &mut transaction, expired, now);
        object.attempt_moved(session.id, transaction.summary(), false, now);
        attempt.save(session, transaction);
    }

    pub(super) fn close_session(&mut self, object: &mut Object) {
        if let Some(session) = self.object.session() {
            let place = self.place(session);
            self.close(object, place, false);
            if !object.awaits_payment() {
                self.withdraw(place);
            }
        }
    }

    pub(super) fn tell(&mut self, object: &mut Object, kind: EventType) {
        self.told.tell(kind, object.next_sequence());
    }

    pub(super) fn place(&self, session: Id<PaymentSession>) -> usize {
        self.attempts.iter().position(|attempt| attempt.session.id == session).expect("sessions are never deleted")
    }
}

/// `sessions::unwanted_from`: a job is done when it is, so the time that a payer has besides is not told apart.
fn is_unwanted(object: &Object, session: &PaymentSession, now: Timestamp) -> bool {
    let runs_out = !object.payable().ends_its_sessions() && session.is_past_expiry(now);
    session.refuse_if_closed().is_err() || runs_out || !object.has_use_for(session.amount)
}

fn close_rows(
    attempt: &mut Attempt,
    session: &mut PaymentSession,
    transaction: &mut Transaction,
    expired: bool,
    now: Timestamp,
) {
    if session.status() == SessionStatus::Pending {
        session.close(Some(transaction), expired, now);
        jobs::schedule(&mut attempt.withdraw);
        attempt.has_timer = false;
    }
}
