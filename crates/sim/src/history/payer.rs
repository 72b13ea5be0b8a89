//! What payers do: begin to pay, go on, type a code, come back.

use domain::Id;
use domain::payment::Transaction;
use domain::rail::{Called, FailureReason, NextAction, Report, Started};
use serde_json::{Value, json};

use super::{Check, History, Kept, Object, Open, compare, expect};
use crate::model::{Begin, Begun, Kind, Next, Session, SessionState, Side, Word, needs_phone, text};
use crate::network::{Heard, RIGHT_CODE, split_early};
use crate::world::Answer;

const METHODS: [&str; 4] = ["wave", "afrimoney", "qmoney", "card"];
const PHONES: [&str; 2] = ["+2207654321", "+2207654322"];

impl History {
    pub(super) async fn pay(&mut self) -> Check {
        let side = self.side_at_random();
        let (kind, object) = match self.dice.below(8) {
            0..=4 => (Kind::Checkout, Object::Checkout),
            5 | 6 => (Kind::Invoice, Object::Invoice),
            _ => (Kind::Link, Object::Link),
        };
        match self.some_id(side, object) {
            Some(id) => self.pay_object(side, kind, id).await,
            None => Ok(()),
        }
    }

    pub(super) async fn pay_object(&mut self, side: usize, kind: Kind, object: String) -> Check {
        let fixed = self.sides[side].checkouts.get(&object).and_then(|checkout| checkout.fixed);
        let method = match self.dice.below(9) {
            0 => None,
            1..=4 if fixed.is_some() => fixed,
            _ => self.dice.pick(&METHODS).copied(),
        };
        let phone = match method {
            Some(method) if needs_phone(method) && !self.dice.one_in(15) => self.dice.pick(&PHONES).copied(),
            _ if self.dice.one_in(4) => self.dice.pick(&PHONES).copied(),
            _ => None,
        };
        let amount = match kind {
            Kind::Invoice if self.dice.one_in(3) => {
                let left = self.sides[side].invoices[&object].total() - self.sides[side].invoices[&object].paid;
                Some(1 + self.dice.below((left + left / 10 + 1) as u64) as i64)
            }
            _ if self.dice.one_in(25) => Some(1 + self.dice.below(10_000) as i64),
            _ => None,
        };
        let asked = Begin { kind, object, session: None, method, amount, phone, has_code: false };
        self.begin(side, asked, None).await
    }

    pub(super) async fn go_on(&mut self) -> Check {
        let side = self.side_at_random();
        let Some(id) = self.some_id(side, Object::Session) else { return Ok(()) };
        let session = &self.sides[side].sessions[&id];
        let (kind, object) = (session.kind, session.object.clone());
        let method = if self.dice.one_in(3) { None } else { self.dice.pick(&METHODS).copied() };
        let phone = if self.dice.one_in(4) { None } else { self.dice.pick(&PHONES).copied() };
        let asked = Begin { kind, object, session: Some(id), method, amount: None, phone, has_code: false };
        self.begin(side, asked, None).await
    }

    pub(super) async fn submit_code(&mut self) -> Check {
        let side = self.side_at_random();
        let waits = |session: &Session| matches!(session.next, Next::Code { .. });
        let waiting: Vec<String> =
            self.sides[side].sessions.iter().filter(|(_, one)| waits(one)).map(|(id, _)| id.clone()).collect();
        let id = match self.dice.one_in(8) {
            true => self.some_id(side, Object::Session),
            false => self.dice.pick_recent(&waiting).cloned(),
        };
        let Some(id) = id else { return Ok(()) };
        let session = &self.sides[side].sessions[&id];
        let (kind, object, due) = (session.kind, session.object.clone(), session.amount);
        let code = if self.dice.below(5) < 3 { RIGHT_CODE } else { "654321" };
        // What may be that of the attempt which waits for it, and may not.
        let method = if self.dice.one_in(8) { self.dice.pick(&METHODS).copied() } else { None };
        let amount = self.dice.one_in(8).then(|| due + self.dice.below(2) as i64);
        let phone = if self.dice.one_in(8) { self.dice.pick(&PHONES).copied() } else { None };
        let asked = Begin { kind, object, session: Some(id), method, amount, phone, has_code: true };
        self.begin(side, asked, Some(code)).await
    }

    async fn begin(&mut self, side: usize, asked: Begin, code: Option<&str>) -> Check {
        let mut heard = Vec::new();
        let begun = self.begin_and_hear(side, asked, code, &mut heard).await;
        self.meet(&heard);
        begun
    }

    async fn begin_and_hear(&mut self, side: usize, asked: Begin, code: Option<&str>, heard: &mut Vec<Heard>) -> Check {
        let body = body_of(&asked, code);
        let key = self.new_key(side);
        let before = self.sides[side].clone();
        let at = self.world.now();
        let mut begun = self.sides[side].begin(&asked, at);
        self.world.network.take_heard();
        self.arm();
        let path = "/v1/pay/initialize";
        let mut answer = self.world.send(side, "POST", path, Some(&body), Some(&key)).await;
        self.calm();
        *heard = self.world.network.take_heard();
        let is_unknown = self.has_unknown_commit();
        if answer.is_none() {
            self.world.crash().await;
        }
        // It was begun, and nobody was called.
        let is_only_begun = is_unknown && heard.is_empty() && matches!(begun, Ok(Begun::Attempt(_) | Begun::Code(_)));
        if is_unknown && answer.is_none() && !is_only_begun {
            answer = self.world.send(side, "POST", path, Some(&body), Some(&key)).await;
        } else if let (Some(failed), true, true) = (&answer, heard.is_empty(), self.may_fail() && !is_unknown)
            && tells_no_more(failed)
        {
            // It did not happen, or it stands: the same request again does it, or is told of it.
            self.sides[side] = before;
            let now = self.world.now();
            begun = self.sides[side].begin(&asked, now);
            answer = self.world.send(side, "POST", path, Some(&body), Some(&key)).await;
            *heard = self.world.network.take_heard();
        }
        let is_lost = match &answer {
            None if self.fault.kills() || is_only_begun => true,
            None => return Err("a payment was not answered".to_owned()),
            // What was heard is stored again, so one fault of the storage keeps it from nobody.
            Some(answer) if tells_no_more(answer) && is_only_begun => true,
            Some(answer) if tells_no_more(answer) && self.may_fail() && !is_unknown && heard.is_empty() => true,
            Some(answer) if tells_no_more(answer) => {
                return Err(format!("a payment was answered {} {}", answer.status, answer.body));
            }
            Some(_) => false,
        };
        self.note(|| format!("the network hears {heard:?}"));
        let shown =
            answer.as_ref().map(|answer| answer.json()["data"]["session_id"].as_str().unwrap_or_default().to_owned());
        let id = match &begun {
            Err(code) => {
                let answer = answer.ok_or_else(|| format!("should be refused by {code}"))?;
                self.heard(&answer);
                if let Some(called) = heard.first() {
                    return Err(format!("{code}, and yet the network was called: {called:?}"));
                }
                if answer.code() != "validation_failed" {
                    let body = Some(body);
                    self.keep(Kept {
                        side,
                        verb: "POST",
                        path: path.to_owned(),
                        body,
                        key,
                        at,
                        answer: answer.clone(),
                    });
                }
                return expect(&answer, Err(code), 200);
            }
            Ok(Begun::Session(goes_on) | Begun::Attempt(goes_on)) => goes_on.clone(),
            Ok(Begun::Code(id)) => Some(id.clone()),
        };
        if is_only_begun && is_lost {
            let is_attempt = matches!(begun, Ok(Begun::Attempt(_)));
            let session = self.begun_unheard(side, id, is_attempt, at).await?;
            self.touched = Some((side, Object::Session, session.clone()));
            self.open.push(Open { side, body, key, session });
            return Ok(());
        }
        let model = &mut self.sides[side];
        let (early, heard) = split_early(heard);
        match (begun.expect("refusals have returned"), heard.first()) {
            (Begun::Session(_), None) => {
                let shown = shown.clone().ok_or("an opened session has no name")?;
                if id.is_none() {
                    model.opened(&shown, at);
                }
            }
            (Begun::Attempt(_), Some(Heard::Started { transaction, session, method, amount, called })) => {
                if id.is_none() {
                    model.opened(session, at);
                }
                let known =
                    model.sessions.get(session).ok_or("the network hears of a session that was not asked for")?;
                if (known.amount, known.method) != (amount.minor, Some(method.as_str())) {
                    return Err(format!("the network is asked for {amount} by {method:?}, and not for {known:?}"));
                }
                let transaction = transaction.to_string();
                model.attempt_begins(session, &transaction, at);
                hear_early(model, early, at);
                if !is_lost {
                    model.hear(&transaction, word_of_start(called), at);
                }
            }
            (Begun::Code(_), Some(Heard::Code { transaction, called })) => {
                hear_early(model, early, at);
                if !is_lost {
                    model.code_answered(&transaction.to_string(), word_of_code(called), at);
                }
            }
            (begun, called) => {
                return Err(format!("{begun:?}, and the network heard {called:?}; the answer is {answer:?}"));
            }
        }
        if heard.len() > 1 {
            return Err(format!("one payment calls once: {heard:?}"));
        }
        let session = match (id, heard.first()) {
            (Some(id), _) => id,
            (None, Some(Heard::Started { session, .. })) => session.clone(),
            (None, _) => shown.clone().unwrap_or_default(),
        };
        self.touched = Some((side, Object::Session, session.clone()));
        let Some(answer) = answer.filter(|_| !is_lost) else {
            self.open.push(Open { side, body, key, session });
            return Ok(());
        };
        self.heard(&answer);
        expect(&answer, Ok(()), 200)?;
        let model = &self.sides[side];
        let known = &model.sessions[&session];
        let fields = known.fields(&session, model.is_live);
        compare(&answer, &fields).map_err(|what| format!("{session}: {what}"))?;
        self.keep(Kept { side, verb: "POST", path: path.to_owned(), body: Some(body), key, at, answer });
        if self.dice.one_in(4) {
            let session = &self.sides[side].sessions[&session];
            let object = match session.kind {
                Kind::Checkout => Object::Checkout,
                Kind::Invoice => Object::Invoice,
                Kind::Link => Object::Link,
            };
            self.touched = Some((side, object, session.object.clone()));
        }
        Ok(())
    }

    /// The session of a payment that was begun, and of which nobody was told.
    async fn begun_unheard(
        &mut self,
        side: usize,
        goes_on: Option<String>,
        is_attempt: bool,
        at: i64,
    ) -> Result<String, String> {
        if !is_attempt {
            return goes_on.ok_or_else(|| "a code is of a session".to_owned());
        }
        let scope = self.world.scopes[side];
        let stored = self.world.app.read(move |tx, _| {
            let key = [scope.organization.to_string().into(), scope.mode.as_str().into()];
            let sql = "select id, payment_session_id from transactions \
                where organization_id = $1 and mode = $2 and payment_session_id is not null order by id";
            let mut attempts: Vec<(String, String)> = Vec::new();
            for row in tx.query(sql, &key)? {
                attempts.push((row.get(0)?, row.get(1)?));
            }
            Ok(attempts)
        });
        let mut stored = stored.await.map_err(|failure| format!("attempts can't be read: {failure}"))?;
        let model = &mut self.sides[side];
        stored.retain(|(id, _)| !model.attempts.contains_key(id));
        let [(transaction, session)] = &stored[..] else {
            return Err(format!("one attempt is new, and there are {stored:?}"));
        };
        if goes_on.as_ref().is_some_and(|known| known != session) {
            return Err(format!("{transaction} is of {session}, and not of {goes_on:?}"));
        }
        if goes_on.is_none() {
            model.opened(session, at);
        }
        model.attempt_begins(session, transaction, at);
        Ok(session.clone())
    }

    /// A payer is back from the network's page: no proof of anything.
    pub(super) async fn come_back(&mut self) -> Check {
        let side = self.side_at_random();
        let away = |side: &Side, id: &str| {
            side.attempts[id].session.as_ref().is_some_and(|session| {
                side.sessions[session].state == SessionState::Pending && side.sessions[session].next == Next::Redirect
            })
        };
        let ids: Vec<String> =
            self.sides[side].attempts.keys().filter(|id| away(&self.sides[side], id)).cloned().collect();
        let Some(id) = self.dice.pick_recent(&ids).cloned() else { return Ok(()) };
        let transaction: Id<Transaction> = id.parse().map_err(|_| format!("{id} is no id"))?;
        let now = self.world.now();
        self.arm();
        let returned = self.world.app.payer_returned(self.world.scopes[side], transaction).await;
        self.calm();
        match returned {
            Err(_) if self.has_unknown_commit() => self.sides[side].hear(&id, Word::Returned, now),
            Ok(()) => self.sides[side].hear(&id, Word::Returned, now),
            Err(_) if self.may_fail() => {}
            Err(failure) => return Err(format!("a payer can't come back: {failure}")),
        }
        self.touched = Some((side, Object::Transaction, id));
        Ok(())
    }
}

fn body_of(asked: &Begin, code: Option<&str>) -> Value {
    let mut body = json!({});
    match &asked.session {
        Some(session) => body["session_id"] = json!(session),
        None => {
            body["object_type"] = json!(asked.kind.as_str());
            body["object_id"] = json!(asked.object);
        }
    }
    if let Some(method) = asked.method {
        body["payment_method"] = json!(method);
    }
    if let Some(phone) = asked.phone {
        body["customer_phone"] = json!(phone);
    }
    if let Some(amount) = asked.amount {
        body["amount"] = json!(text(amount));
    }
    if let Some(code) = code {
        body["customer_pin"] = json!(code);
    }
    body
}

/// What the network said before it answered.
pub(super) fn hear_early(side: &mut Side, early: &[Heard], now: i64) {
    for word in early {
        match word {
            Heard::Early { transaction, report } => {
                if let Some(word) = word_of_report(report) {
                    side.hear(&transaction.to_string(), word, now);
                }
            }
            Heard::EarlyRefund { refund, report } => side.refund_reported(&refund.to_string(), report),
            _ => unreachable!("it answers a call"),
        }
    }
}

pub(super) fn word_of_start(called: &Called<Started>) -> Word {
    match called {
        Called::Answered(started) => Word::Taken(match started.next_action {
            NextAction::Redirect { .. } => Next::Redirect,
            NextAction::ApproveOnPhone { .. } => Next::Approve,
            NextAction::Otp { attempts_left, .. } => Next::Code { left: attempts_left },
            _ => Next::Nothing,
        }),
        Called::Refused(reason) => Word::Refused(word_of_reason(*reason)),
        Called::Lost(_) => Word::Lost,
    }
}

/// No to the second call says nothing of the first.
pub(super) fn word_of_second_start(called: &Called<Started>) -> Word {
    match word_of_start(called) {
        Word::Refused(_) => Word::Lost,
        word => word,
    }
}

fn word_of_code(called: &Called<Report>) -> Word {
    match called {
        Called::Answered(report) => word_of_report(report).unwrap_or(Word::Open),
        Called::Refused(reason) => Word::CodeRefused(word_of_reason(*reason)),
        Called::Lost(_) => Word::CodeLost,
    }
}

/// Nothing for what says nothing.
pub(super) fn word_of_report(report: &Report) -> Option<Word> {
    Some(match report {
        Report::Open => Word::Open,
        Report::AwaitingCode { attempts_left } => Word::AwaitsCode(*attempts_left),
        Report::Processing => Word::Processing,
        Report::Paid { amount, .. } => Word::Paid(amount.minor, amount.currency.code()),
        Report::Failed { reason } => Word::Failed(word_of_reason(*reason)),
        Report::NotFound => return None,
    })
}

fn word_of_reason(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::InsufficientFunds => "insufficient_funds",
        FailureReason::Declined => "declined",
        FailureReason::WrongCode => "wrong_code",
        FailureReason::Expired => "expired",
        FailureReason::Cancelled => "cancelled",
        FailureReason::ProviderError => "provider_error",
    }
}

/// The storage failed: nothing is known, or what was begun goes on under its key.
fn tells_no_more(answer: &Answer) -> bool {
    answer.status >= 500 || answer.code() == "idempotency_key_in_use"
}
