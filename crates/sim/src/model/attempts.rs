//! Payment sessions and their attempts (contract §2.2, §4.2, §4.3), and what money does to what it pays.

use super::DAY;
use super::session::Moved;
use super::{
    Answer, Attempt, AttemptState, CheckoutState, Fields, Kind, Next, Session, SessionState, Side, Step, fee,
    needs_phone,
};

/// What a request to pay asks for.
#[derive(Debug, Clone)]
pub struct Begin {
    pub kind: Kind,
    pub object: String,
    /// Continue this one.
    pub session: Option<String>,
    pub method: Option<&'static str>,
    pub amount: Option<i64>,
    pub phone: Option<&'static str>,
    pub has_code: bool,
}

/// What became known of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Taken(Next),
    Refused(&'static str),
    Lost,
    CodeRefused(&'static str),
    CodeLost,
    Open,
    AwaitsCode(u8),
    Processing,
    /// So many minor units of this currency.
    Paid(i64, &'static str),
    Failed(&'static str),
    Returned,
}

/// What a request to pay leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// The answer is this session; `None`: one that has just opened.
    Session(Option<String>),
    /// An attempt goes to the network, in this session or in one that has just opened.
    Attempt(Option<String>),
    Code(String),
}

impl Side {
    pub fn begin(&mut self, asked: &Begin, now: i64) -> Answer<Begun> {
        if let Some(id) = &asked.session {
            match self.sessions.get(id).ok_or("payment_session_not_found")?.state {
                SessionState::Succeeded => return Err("payment_already_succeeded"),
                SessionState::Failed | SessionState::Cancelled => return Err("payment_session_closed"),
                SessionState::Pending | SessionState::Processing => {}
            }
        }
        let mut current = match asked.kind {
            Kind::Checkout => self.checkouts.get(&asked.object).ok_or("checkout_not_found")?.session.clone(),
            Kind::Invoice => self.invoices.get(&asked.object).ok_or("invoice_not_found")?.session.clone(),
            Kind::Link => {
                self.links.get(&asked.object).ok_or("payment_link_not_found")?;
                asked.session.clone()
            }
        };
        let has_attempt = current.as_ref().is_some_and(|id| self.sessions[id].attempt.is_some());
        if asked.session.is_some()
            && current == asked.session
            && current.as_ref().is_some_and(|id| self.sessions[id].has_expired(now))
        {
            return Err("payment_session_closed");
        }
        self.refuse_unless_payable(asked, asked.has_code && has_attempt, now)?;
        if asked.session.is_none() {
            current = current.filter(|id| self.sessions[id].state != SessionState::Succeeded);
        }
        if asked.session.is_some() && current != asked.session {
            return Err("payment_session_closed");
        }
        let expired = current.as_ref().is_some_and(|id| self.sessions[id].has_expired(now));
        if asked.has_code {
            let id = current.ok_or("code_not_expected")?;
            if expired {
                return Err("payment_session_closed");
            }
            let session = &self.sessions[&id];
            return match session.state {
                SessionState::Processing => Err("payment_in_progress"),
                SessionState::Pending if matches!(session.next, Next::Code { .. }) => {
                    // It is for the attempt as that was begun.
                    let is_another = asked.amount.is_some_and(|amount| amount != session.amount)
                        || (asked.method.is_some() && asked.method != session.method)
                        || (asked.phone.is_some() && asked.phone != session.phone);
                    if is_another {
                        return Err("validation_failed");
                    }
                    self.code_submitted(&id, now);
                    Ok(Begun::Code(id))
                }
                _ => Err("code_not_expected"),
            };
        }
        if let (Kind::Checkout, Some(wanted)) = (asked.kind, asked.method)
            && self.checkouts[&asked.object].fixed.is_some_and(|fixed| fixed != wanted)
        {
            return Err("payment_method_fixed");
        }
        let method = match asked.kind {
            Kind::Checkout => asked.method.or(self.checkouts[&asked.object].fixed),
            Kind::Invoice | Kind::Link => asked.method,
        };
        let known = current.as_ref().map(|id| self.sessions[id].amount);
        let amount = self.amount(asked, asked.amount.or(known.filter(|_| asked.session.is_some())), now)?;
        // What goes on, what is replaced, what is new.
        let mut payer = None;
        let goes_on = match &current {
            None => None,
            Some(id) => {
                let session = &self.sessions[id];
                let is_open = !expired && matches!(session.state, SessionState::Pending | SessionState::Processing);
                let is_told = asked.kind == Kind::Link || (asked.kind == Kind::Invoice && is_open);
                payer = session.phone.filter(|_| is_told);
                match session.state {
                    _ if expired => None,
                    SessionState::Processing if !self.is_sending(session) => return Err("payment_in_progress"),
                    SessionState::Succeeded => return Err("payment_already_succeeded"),
                    SessionState::Failed | SessionState::Cancelled => None,
                    SessionState::Pending | SessionState::Processing => {
                        let is_other = session.amount != amount
                            || method.is_some_and(|wanted| session.method.is_some_and(|known| known != wanted))
                            || (asked.phone.is_some() && asked.phone != session.phone && session.attempt.is_some());
                        if is_other && self.is_sending(session) {
                            return Err("payment_in_progress");
                        }
                        (!is_other).then(|| id.clone())
                    }
                }
            }
        };
        let phone = match &goes_on {
            Some(id) => asked.phone.or(self.sessions[id].phone),
            None => asked.phone.or(payer),
        };
        let carries = match &goes_on {
            Some(id) => method.or(self.sessions[id].method),
            None => method,
        };
        let is_begun = goes_on.as_ref().is_some_and(|id| self.sessions[id].attempt.is_some());
        if !is_begun && carries.is_some_and(needs_phone) && phone.is_none() {
            return Err("validation_failed");
        }
        if !is_begun && carries.is_some() && asked.kind == Kind::Link {
            self.refuse_unless_room(&asked.object, current.as_deref().filter(|_| goes_on.is_none()), now)?;
        }
        // From here on nothing is refused.
        if goes_on.is_none()
            && let Some(id) = &current
        {
            self.close_session(id, expired, now);
            self.show_closed(id, now);
        }
        if let (Some(id), false) = (&goes_on, is_begun) {
            let session = self.sessions.get_mut(id).expect("it goes on");
            session.method = method.or(session.method);
            session.phone = phone;
            session.seen_at = session.seen_at.max(now);
        }
        self.pending_open = goes_on.is_none().then(|| Session {
            kind: asked.kind,
            object: asked.object.clone(),
            amount,
            method,
            phone,
            state: SessionState::Pending,
            next: Next::Nothing,
            reason: None,
            is_unknown: false,
            attempt: None,
            code_sent_at: None,
            code_told: false,
            expires_at: match asked.kind {
                Kind::Checkout => self.checkouts[&asked.object].expires_at,
                Kind::Invoice => now + DAY,
                Kind::Link => now + self.links[&asked.object].hold(),
            },
            seen_at: now,
        });
        Ok(if !is_begun && carries.is_some() { Begun::Attempt(goes_on) } else { Begun::Session(goes_on) })
    }

    /// The session that `begin` opened got this name.
    pub fn opened(&mut self, id: &str, now: i64) {
        let Some(session) = self.pending_open.take() else { return };
        match session.kind {
            Kind::Checkout => {
                let checkout = self.checkouts.get_mut(&session.object).expect("it was asked for");
                checkout.session = Some(id.to_owned());
                checkout.seen_at = checkout.seen_at.max(now);
            }
            Kind::Invoice => {
                let invoice = self.invoices.get_mut(&session.object).expect("it was asked for");
                invoice.session = Some(id.to_owned());
                invoice.seen_at = invoice.seen_at.max(now);
            }
            Kind::Link => {}
        }
        self.sessions.insert(id.to_owned(), session);
    }

    /// An attempt of a session was committed; the network will hear of it, and may have it from here on.
    pub fn attempt_begins(&mut self, session_id: &str, id: &str, now: i64) {
        let session = self.sessions.get_mut(session_id).expect("an attempt has a session");
        session.attempt = Some(id.to_owned());
        session.state = SessionState::Processing;
        session.seen_at = session.seen_at.max(now);
        let attempt = Attempt {
            session: Some(session_id.to_owned()),
            kind: session.kind,
            object: session.object.clone(),
            amount: session.amount,
            fee: fee(session.amount),
            method: session.method.expect("an attempt has a method"),
            state: AttemptState::Pending,
            step: Step::Sending,
            parked: None,
            is_late: false,
            is_duplicate: false,
            refunded: 0,
            refunding: 0,
        };
        self.attempts.insert(id.to_owned(), attempt);
        self.show(session_id, true, now);
    }

    fn refuse_unless_payable(&self, asked: &Begin, ends_attempt: bool, now: i64) -> Answer<()> {
        match asked.kind {
            Kind::Checkout => {
                let checkout = &self.checkouts[&asked.object];
                match checkout.shown_state(now) {
                    CheckoutState::Pending if checkout.is_past_expiry(now) => Err("checkout_expired"),
                    CheckoutState::Pending => Ok(()),
                    closed => Err(closed.refusal()),
                }
            }
            Kind::Invoice => self.invoices[&asked.object].refuse_if_closed(now),
            Kind::Link if ends_attempt => Ok(()),
            Kind::Link => self.links[&asked.object].refuse_unless_active(now),
        }
    }

    fn amount(&self, asked: &Begin, amount: Option<i64>, now: i64) -> Answer<i64> {
        match asked.kind {
            Kind::Checkout => {
                let whole = self.checkouts[&asked.object].amount;
                if amount.is_none_or(|amount| amount == whole) { Ok(whole) } else { Err("validation_failed") }
            }
            Kind::Link => {
                let whole = self.links[&asked.object].amount;
                if amount.is_none_or(|amount| amount == whole) { Ok(whole) } else { Err("validation_failed") }
            }
            Kind::Invoice => {
                let invoice = &self.invoices[&asked.object];
                invoice.refuse_if_closed(now)?;
                let left = invoice.total() - invoice.paid;
                match amount.unwrap_or(left) {
                    amount if amount > left => Err("invoice_overpayment"),
                    amount if amount < left && !self.takes_parts => Err("partial_payment_not_allowed"),
                    amount => Ok(amount),
                }
            }
        }
    }

    /// A code is on its way: from here on the network has the attempt.
    fn code_submitted(&mut self, id: &str, now: i64) {
        let session = self.sessions.get_mut(id).expect("it was looked up");
        session.state = SessionState::Processing;
        session.reason = None;
        session.code_sent_at = Some(now);
        session.code_told = false;
        session.seen_at = session.seen_at.max(now);
        self.show(id, true, now);
    }

    /// The call that brought the code of an attempt has ended. What was lost may still arrive; what the network has said of the code
    /// meanwhile counts more than that the call failed.
    pub fn code_answered(&mut self, attempt: &str, word: Word, now: i64) {
        let session = self.attempts[attempt].session.clone().expect("only an attempt asks for a code");
        let session = self.sessions.get_mut(&session).expect("an attempt has a session");
        let is_told = std::mem::take(&mut session.code_told);
        if word != Word::CodeLost || is_told {
            session.code_sent_at = None;
        }
        if is_told && matches!(word, Word::CodeLost | Word::CodeRefused(_)) {
            return;
        }
        self.hear(attempt, word, now);
    }

    /// What the network said when it was asked. Where that is nothing, who handed over a code and died says nothing either: nobody
    /// knows, once the question is the one that is owed for that.
    pub fn asked(&mut self, id: &str, word: Option<Word>, is_owed: bool, now: i64) {
        let Some(attempt) = self.attempts.get(id) else { return };
        let session = attempt.session.as_ref().map(|session| &self.sessions[session]);
        match word {
            Some(word) => self.hear(id, word, now),
            None if is_owed && session.is_some_and(|session| session.has_unheard_code(attempt, now)) => {
                self.hear(id, Word::CodeLost, now);
            }
            None => {}
        }
    }

    /// Whether nobody waits for an attempt any more.
    pub fn is_for_nobody(&self, attempt: &str, now: i64) -> bool {
        let session = self.attempts[attempt].session.as_ref().expect("an attempt has a session");
        let session = &self.sessions[session];
        !matches!(session.state, SessionState::Pending | SessionState::Processing)
            || session.expires_at <= now
            || self.has_no_use_for(session)
    }

    /// Whether the network is to drop what it has of an attempt: an end of its time says nothing of what holds a checkout.
    pub fn is_given_up(&self, attempt: &str, now: i64) -> bool {
        let is_held = self.attempts[attempt].kind == Kind::Checkout;
        self.is_for_nobody(attempt, if is_held { i64::MIN } else { now })
    }

    /// Whether somebody waits to pay and is not told where, by a network that tells it again.
    pub fn lacks_way_on(&self, attempt: &str, now: i64) -> bool {
        let Attempt { step, method, session, .. } = &self.attempts[attempt];
        *step == Step::Waiting
            && *method == "wave"
            && session.as_ref().is_some_and(|session| self.sessions[session].next == Next::Nothing)
            && !self.is_for_nobody(attempt, now)
    }

    pub fn is_past_time(&self, attempt: &str, now: i64) -> bool {
        let session = self.attempts[attempt].session.as_ref().expect("an attempt has a session");
        self.sessions[session].expires_at <= now
    }

    /// Contract §4.1, §4.4: what is paid takes this payment no more.
    fn has_no_use_for(&self, session: &Session) -> bool {
        match session.kind {
            Kind::Checkout => self.checkouts[&session.object].state != CheckoutState::Pending,
            Kind::Invoice => {
                let invoice = &self.invoices[&session.object];
                !invoice.awaits_payment() || session.amount > invoice.total() - invoice.paid
            }
            Kind::Link => false,
        }
    }

    /// Closes a pending session; any other goes on.
    pub fn close_session(&mut self, id: &str, is_expired: bool, now: i64) {
        let session = self.sessions.get_mut(id).expect("only a known session is closed");
        if session.state != SessionState::Pending {
            return;
        }
        session.close(is_expired, now);
        if let Some(attempt) = session.attempt.clone() {
            let attempt = self.attempts.get_mut(&attempt).expect("a session knows its attempt");
            if attempt.state == AttemptState::Pending {
                attempt.state = if is_expired { AttemptState::Expired } else { AttemptState::Cancelled };
            }
        }
    }

    /// The open session of what takes no payment any more, or another amount.
    pub fn close_session_of_object(&mut self, id: Option<&str>, is_expired: bool, now: i64) {
        let Some(id) = id else { return };
        if self.sessions[id].state == SessionState::Pending {
            // A reader may have been told so already.
            let is_expired = is_expired || self.sessions[id].has_expired(now);
            self.close_session(id, is_expired, now);
            self.show_closed(id, now);
        }
    }

    fn show_closed(&mut self, id: &str, now: i64) {
        if self.sessions[id].attempt.is_some() {
            self.show(id, false, now);
        }
    }

    /// What is paid shows its latest attempt, and whether the network has one.
    fn show(&mut self, session_id: &str, is_with_network: bool, now: i64) {
        let session = &self.sessions[session_id];
        let id = session.attempt.clone().expect("only attempts are shown");
        let (kind, object, amount) = (session.kind, session.object.clone(), session.amount);
        match kind {
            Kind::Checkout => {
                let is_paid = self.shows_money(&object);
                let checkout = self.checkouts.get_mut(&object).expect("it is paid");
                if checkout.session.as_deref() != Some(session_id) && checkout.shown.as_ref() != Some(&id) {
                    return;
                }
                checkout.seen_at = checkout.seen_at.max(now);
                if !is_paid {
                    checkout.is_held = is_with_network && !checkout.is_overdue(now);
                    checkout.shown = Some(id);
                }
            }
            Kind::Invoice => {
                let invoice = self.invoices.get_mut(&object).expect("it is paid");
                invoice.seen_at = invoice.seen_at.max(now);
                if is_with_network && invoice.refuse_if_closed(now).is_ok() {
                    invoice.held = Some((id, amount));
                } else if invoice.held.as_ref().is_some_and(|(held, _)| *held == id) {
                    invoice.held = None;
                }
            }
            Kind::Link => {}
        }
    }

    fn shows_money(&self, checkout: &str) -> bool {
        let shown = self.checkouts[checkout].shown.as_ref();
        shown.is_some_and(|id| self.attempts[id].state == AttemptState::Completed)
    }

    /// What became known of an attempt, with everything that follows from it.
    pub fn hear(&mut self, id: &str, word: Word, now: i64) {
        let Some(attempt) = self.attempts.get(id) else { return };
        let Some(session_id) = attempt.session.clone() else { return };
        let (kind, object) = (attempt.kind, attempt.object.clone());
        let was_cancelled = self.sessions[&session_id].state == SessionState::Cancelled;
        let mut session = self.sessions[&session_id].clone();
        let mut attempt = attempt.clone();
        let moved = session.hear(&mut attempt, word, now);
        if moved == Moved::Nowhere {
            return;
        }
        let is_with_network = session.state == SessionState::Processing;
        self.sessions.insert(session_id.clone(), session);
        self.attempts.insert(id.to_owned(), attempt);
        match moved {
            Moved::Nowhere => {}
            Moved::On => self.show(&session_id, is_with_network, now),
            Moved::Failed => {
                self.show(&session_id, false, now);
                self.attempt_failed(kind, &object, &session_id);
            }
            Moved::Paid => self.money_arrived(id, &session_id, was_cancelled, now),
        }
        // What held an outdated object open may be over now.
        let is_observed = match kind {
            Kind::Checkout => self.observe_checkout(&object, now),
            Kind::Invoice => self.observe_invoice(&object, now),
            Kind::Link => false,
        };
        let is_outdated = is_observed && kind == Kind::Checkout;
        if is_outdated {
            let rival = self.checkouts[&object].session.clone().filter(|open| *open != session_id);
            self.close_session_of_object(rival.as_deref(), true, now);
        }
        let is_expired = is_outdated || self.sessions[&session_id].has_expired(now);
        let session = &self.sessions[&session_id];
        // Contract §4.1, §4.4: a pending session ends with its object, and with the amount that it was for.
        let has_no_use = session.state == SessionState::Pending && self.has_no_use_for(session);
        if is_expired || has_no_use {
            let was_open = self.sessions[&session_id].state == SessionState::Pending;
            self.close_session(&session_id, is_expired, now);
            if was_open || self.attempts[id].state != AttemptState::Completed {
                self.show(&session_id, false, now);
            }
        }
        if is_observed {
            self.tell(&object, if kind == Kind::Checkout { "checkout.expired" } else { "invoice.overdue" });
        }
    }

    fn attempt_failed(&mut self, kind: Kind, object: &str, session: &str) {
        match kind {
            Kind::Checkout if self.checkouts[object].state == CheckoutState::Pending => {
                self.tell(object, "payment.failed")
            }
            Kind::Invoice if self.invoices[object].awaits_payment() => {
                self.tell(object, "payment.failed");
                self.tell(object, "invoice.payment_failed");
            }
            Kind::Checkout | Kind::Invoice => {}
            Kind::Link => self.tell(session, "payment.failed"),
        }
    }

    fn money_arrived(&mut self, id: &str, session_id: &str, was_cancelled: bool, now: i64) {
        let attempt = self.attempts[id].clone();
        let object = attempt.object.clone();
        match attempt.kind {
            Kind::Checkout => {
                let is_observed = self.observe_checkout(&object, now);
                let rival = self.checkouts[&object].session.clone().filter(|open| open != session_id);
                self.close_session_of_object(rival.as_deref(), is_observed, now);
                if is_observed {
                    self.tell(&object, "checkout.expired");
                }
                let is_second = self.checkouts[&object]
                    .shown
                    .as_ref()
                    .is_some_and(|shown| shown != id && self.attempts[shown].state == AttemptState::Completed);
                let checkout = self.checkouts.get_mut(&object).expect("it is paid");
                checkout.seen_at = checkout.seen_at.max(now);
                let completes = checkout.state == CheckoutState::Pending;
                if !is_second {
                    checkout.shown = Some(id.to_owned());
                    checkout.is_held = false;
                    if completes {
                        checkout.state = CheckoutState::Completed;
                    }
                }
                self.book(id, is_second, !is_second && !completes);
                self.tell(&object, "payment.succeeded");
                if completes && !is_second {
                    self.tell(&object, "checkout.completed");
                }
            }
            Kind::Invoice => self.invoice_money(id, session_id, now),
            Kind::Link => {
                self.book(id, false, was_cancelled);
                let link = self.links.get_mut(&object).expect("it is paid");
                link.used += 1;
                link.seen_at = link.seen_at.max(now);
                let is_used_up = link.is_active && !link.is_deleted && link.most.is_some_and(|most| link.used >= most);
                link.is_active &= !is_used_up;
                self.tell(session_id, "payment.succeeded");
                if is_used_up {
                    self.tell(&object, "payment_link.deactivated");
                }
            }
        }
    }

    /// Contract §5: the ledger's lines of an online payment.
    pub fn book(&mut self, id: &str, is_second: bool, is_late: bool) {
        let attempt = self.attempts.get_mut(id).expect("it was paid");
        attempt.is_duplicate = is_second;
        attempt.is_late = is_late;
        if is_second {
            // Nobody takes a fee of what came twice.
            attempt.fee = 0;
        }
        let (amount, fee) = (attempt.amount, attempt.fee);
        self.post("rail_clearing:network", amount);
        if is_second {
            self.post("unapplied", -amount);
        } else {
            self.post("merchant", fee - amount);
            self.post("fees", -fee);
        }
    }

    /// The timer of a session whose object has none.
    pub fn session_timer(&mut self, id: &str, now: i64) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.has_expired(now) {
            self.close_session(id, true, now);
            self.show_closed(id, now);
        } else if session.state == SessionState::Processing {
            session.seen_at = session.seen_at.max(now);
        }
    }

    /// As a reader is told, whether or not the timer ran.
    pub fn session_fields(&self, id: &str, now: i64) -> Answer<Fields> {
        let mut session = self.sessions.get(id).ok_or("payment_session_not_found")?.clone();
        if self.is_over(id, now) {
            session.close(true, now);
        }
        Ok(session.fields(id, self.is_live))
    }

    /// Whether a call is under way for it, or was when the service died.
    fn is_sending(&self, session: &Session) -> bool {
        let step = session.attempt.as_ref().map(|id| self.attempts[id].step);
        session.state == SessionState::Processing && step == Some(Step::Sending)
    }

    /// Whether the time of a pending session ran out.
    pub fn is_over(&self, id: &str, now: i64) -> bool {
        let session = &self.sessions[id];
        session.state == SessionState::Pending
            && match session.kind {
                Kind::Checkout => self.checkouts[&session.object].shown_state(now) == CheckoutState::Expired,
                Kind::Invoice | Kind::Link => session.has_expired(now),
            }
    }
}
