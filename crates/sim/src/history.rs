//! One history: operations thrown at the real service and at the model, compared after every step, and looked through as a
//! whole at its end.

mod answers;
mod apart;
mod coverage;
mod drain;
mod healed;
mod hostile;
mod lists;
mod merchant;
mod outside;
mod payer;
mod power;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use store::{Moment, Strike};

use self::answers::{compare, expect, id_of};
use self::coverage::Coverage;
use crate::model::Side;
use crate::network::CallFault;
use crate::operation::{Fault, Kind, Operation};
use crate::random::{Dice, FIRST_HASH, mix};
use crate::world::{Answer, SIDES, Template, World};

pub use apart::Sides;
pub use coverage::{TRANSITIONS, cells};

pub type Check = Result<(), String>;

/// Where service and model part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The place of the operation; the number of them all: the end of the history.
    pub step: usize,
    pub what: String,
}

#[derive(Debug, Clone)]
pub struct Outcome {
    /// Of all answers: the same for the same seed.
    pub hash: u64,
    pub violation: Option<Violation>,
    /// Transitions by what went wrong while they happened.
    pub coverage: BTreeMap<(String, Fault), u64>,
    /// What the network said by itself: early, late, twice, of another amount or currency, or about what nobody began.
    pub hostile_words: u64,
    /// So often the power went.
    pub losses: u64,
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// An assertion of the product that fails is a violation, wherever it was caught; one of the program's own is told as ever.
pub fn note_panics() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() == Some("main") {
            told(panic);
        }
        PANIC.with(|noted| {
            let mut noted = noted.borrow_mut();
            if noted.is_none() {
                *noted = Some(panic.to_string());
            }
        });
    }));
}

/// A request whose answer has to be the same for ever.
#[derive(Debug, Clone)]
struct Kept {
    side: usize,
    verb: &'static str,
    path: String,
    body: Option<Value>,
    key: String,
    at: i64,
    answer: Answer,
}

/// A request that nobody has answered yet.
#[derive(Debug, Clone)]
struct Open {
    side: usize,
    body: Value,
    key: String,
    session: String,
}

pub struct History {
    world: World,
    sides: Vec<Side>,
    dice: Dice,
    fault: Fault,
    hash: u64,
    kept: Vec<Kept>,
    open: Vec<Open>,
    /// Keys that somebody else has used as well.
    shared: BTreeSet<(usize, String)>,
    received: outside::Received,
    touched: Option<(usize, Object, String)>,
    apart: Option<apart::Apart>,
    coverage: Option<Coverage>,
    /// What was to go wrong, and did.
    struck: Fault,
    is_armed: bool,
    /// The power goes in this step, or after it.
    loses_power: bool,
    hostile_words: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    Checkout,
    Invoice,
    Link,
    Session,
    Transaction,
    Refund,
}

impl Object {
    const ALL: [Object; 6] =
        [Object::Checkout, Object::Invoice, Object::Link, Object::Session, Object::Transaction, Object::Refund];

    fn path(self, id: &str) -> String {
        match self {
            Object::Checkout => format!("/v1/checkouts/{id}"),
            Object::Invoice => format!("/v1/pay/invoices/{id}"),
            Object::Link => format!("/v1/pay/payment-links/{id}"),
            Object::Session => format!("/v1/pay/session/{id}"),
            Object::Transaction => format!("/v1/pay/transactions/{id}"),
            Object::Refund => format!("/v1/pay/refunds/{id}"),
        }
    }

    fn missing(self) -> &'static str {
        match self {
            Object::Checkout => "checkout_not_found",
            Object::Invoice => "invoice_not_found",
            Object::Link => "payment_link_not_found",
            Object::Session => "payment_session_not_found",
            Object::Transaction => "transaction_not_found",
            Object::Refund => "refund_not_found",
        }
    }
}

/// What comes after the last operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All that is owed is done, and all there is stands against the model.
    Compared,
    /// Whatever went wrong stops; these dice say who still speaks.
    Healed(u64),
}

/// Plays a history from its beginning to its end, or until service and model part.
pub async fn play(template: &Template, operations: &[Operation], counts: bool) -> Outcome {
    play_to(template, operations, counts, Ending::Compared).await
}

pub async fn play_to(template: &Template, operations: &[Operation], counts: bool, ending: Ending) -> Outcome {
    let mut history = History::of(World::begin(template).await, counts);
    let mut violation = None;
    for (step, operation) in operations.iter().enumerate() {
        let played = AssertUnwindSafe(history.step(operation)).catch_unwind().await;
        if let Err(what) = played.unwrap_or_else(|_| history.panicked()) {
            violation = Some(Violation { step, what });
            break;
        }
    }
    if violation.is_none() {
        let drained = match ending {
            Ending::Compared => AssertUnwindSafe(history.drain()).catch_unwind().await,
            Ending::Healed(dice) => AssertUnwindSafe(history.heal(dice)).catch_unwind().await,
        };
        let drained = drained.unwrap_or_else(|_| history.panicked());
        if let Err(what) = drained.and_then(|()| history.no_panic()) {
            violation = Some(Violation { step: operations.len(), what });
        }
    }
    let History { world, hash, coverage, mut hostile_words, .. } = history;
    hostile_words += world.network.early_words();
    let losses = world.losses;
    world.end().await;
    Outcome { hash, violation, coverage: coverage.unwrap_or_default().seen, hostile_words, losses }
}

/// What all sides see of a history with organizations of its own, in memory or in the database that is kept.
pub async fn play_afresh(
    template: &Template,
    operations: &[Operation],
    is_kept: bool,
    seed: u64,
) -> (Vec<String>, Check) {
    let mut history = History::of(World::begin_afresh(template, is_kept, seed).await, false);
    let everybody = Sides { ours: (0..SIDES).collect(), theirs: Vec::new() };
    let played = AssertUnwindSafe(history.apart(&everybody, operations, None)).catch_unwind().await;
    let played = played.unwrap_or_else(|_| history.panicked()).and_then(|()| history.no_panic());
    let transcript = history.take_transcript();
    history.world.end().await;
    (transcript, played)
}

/// Lists beside a history with organizations of its own: how many pages were compared with a naive scan.
pub async fn play_lists(
    template: &Template,
    operations: &[Operation],
    is_kept: bool,
    seed: u64,
) -> Result<u64, String> {
    let mut history = History::of(World::begin_afresh(template, is_kept, seed).await, false);
    let played = AssertUnwindSafe(history.listing(operations, seed)).catch_unwind().await;
    let pages = played.unwrap_or_else(|_| history.panicked().map(|()| 0));
    history.world.end().await;
    pages
}

/// What `ours` see of a history of theirs, in which the other sides do `theirs` and attack, if they are there: all answers,
/// calls of the network and deliveries, and last what went wrong.
pub async fn play_apart(
    template: &Template,
    sides: &Sides,
    operations: &[Operation],
    theirs: Option<&[Operation]>,
) -> (Vec<String>, Check) {
    let mut history = History::of(World::begin(template).await, false);
    let played = AssertUnwindSafe(history.apart(sides, operations, theirs)).catch_unwind().await;
    let played = played.unwrap_or_else(|_| history.panicked()).and_then(|()| history.no_panic());
    let transcript = history.take_transcript();
    history.world.end().await;
    (transcript, played)
}

impl History {
    fn of(world: World, counts: bool) -> Self {
        PANIC.with(|noted| noted.borrow_mut().take());
        let side = |number: usize| Side {
            takes_parts: number < 2,
            may_go_negative: number < 2,
            is_live: number % 2 == 1,
            sends_mail: world.sends_mail,
            ..Side::default()
        };
        Self {
            sides: (0..SIDES).map(side).collect(),
            world,
            dice: Dice::new(0),
            fault: Fault::None,
            hash: FIRST_HASH,
            kept: Vec::new(),
            open: Vec::new(),
            shared: BTreeSet::new(),
            received: outside::Received::default(),
            touched: None,
            apart: None,
            coverage: counts.then(Coverage::default),
            struck: Fault::None,
            is_armed: false,
            loses_power: false,
            hostile_words: 0,
        }
    }

    async fn step(&mut self, operation: &Operation) -> Check {
        self.dice = Dice::new(operation.dice);
        self.fault = operation.fault;
        self.struck = Fault::None;
        self.touched = None;
        self.world.entropy.reseed(operation.dice);
        self.world.draw_luck(operation.dice);
        self.loses_power = self.world.written().is_some() && Dice::new(!operation.dice).one_in(power::GOES_IN);
        let passes = 1 + self.dice.below(1_500_000) as i64;
        self.world.pass(passes);
        self.run(operation.kind).await.map_err(|what| format!("{}: {what}", operation.kind.as_str()))?;
        self.calm();
        let losses = self.world.losses;
        if std::mem::take(&mut self.loses_power) {
            self.world.crash().await;
        }
        self.no_panic()?;
        if self.fault == Fault::None
            && (losses < self.world.losses || self.dice.one_in(2))
            && let Some((side, object, id)) = self.touched.clone()
        {
            self.look(side, object, &id).await?;
        }
        self.count();
        self.no_panic()
    }

    async fn run(&mut self, kind: Kind) -> Check {
        match kind {
            Kind::CreateCheckout => self.create_checkout().await,
            Kind::CancelCheckout => self.cancel_checkout().await,
            Kind::Pay => self.pay().await,
            Kind::GoOn => self.go_on().await,
            Kind::SubmitCode => self.submit_code().await,
            Kind::Decide => self.decide().await,
            Kind::Callback => self.callback().await,
            Kind::Return => self.come_back().await,
            Kind::Refund => self.refund().await,
            Kind::DecideRefund => self.decide_refund().await,
            Kind::CreateInvoice => self.create_invoice().await,
            Kind::FinalizeInvoice => self.finalize_invoice().await,
            Kind::UpdateInvoice => self.update_invoice().await,
            Kind::SendInvoice => self.send_invoice().await,
            Kind::CancelInvoice => self.cancel_invoice().await,
            Kind::RecordPayment => self.record_payment().await,
            Kind::CreateLink => self.create_link().await,
            Kind::UpdateLink => self.update_link().await,
            Kind::DeleteLink => self.delete_link().await,
            Kind::CreateCustomer => self.create_customer().await,
            Kind::DeleteCustomer => self.delete_customer().await,
            Kind::CreateProduct => self.create_product().await,
            Kind::UpdateProduct => self.update_product().await,
            Kind::DeleteProduct => self.delete_product().await,
            Kind::Look => self.look_somewhere().await,
            Kind::LookElsewhere => self.look_elsewhere().await,
            Kind::List => self.list().await,
            Kind::Replay => self.replay().await,
            Kind::ReuseKey => self.reuse_key().await,
            Kind::Work => self.work().await,
            Kind::Deliver => self.deliver().await,
            Kind::Number => self.number().await,
            Kind::Wait => self.wait().await,
            Kind::MeetDeadline => self.meet_deadline().await,
            Kind::JumpClock => {
                let by = 1 + self.dice.below(7_200_000_000) as i64;
                self.world.pass(by);
                Ok(())
            }
            Kind::Crash => {
                self.world.crash().await;
                Ok(())
            }
        }
    }

    fn panicked(&self) -> Check {
        self.no_panic().and_then(|()| Err("a panic without a word".to_owned()))
    }

    fn no_panic(&self) -> Check {
        match PANIC.with(|noted| noted.borrow_mut().take()) {
            Some(panic) => Err(format!("an assertion failed: {panic}")),
            None => Ok(()),
        }
    }

    /// What goes wrong in this step waits for its moment.
    fn arm(&mut self) {
        self.is_armed = true;
        let call = match self.fault {
            Fault::CallLost => CallFault::LostOnTheWay,
            Fault::AnswerLost => CallFault::AnswerLost,
            Fault::CallRefused => CallFault::Refused,
            Fault::CrashInCall => CallFault::Hangs,
            Fault::CrashBeforeCall => CallFault::NeverLeaves,
            _ => CallFault::None,
        };
        self.world.network.prepare(call, Dice::new(self.dice.next()));
        self.world.network.listener(Some(self.world.app.clone()));
        let (storage, after) = (&self.world.storage, self.dice.below(12) as u32);
        // What is known of keys and merchants saves statements and whole reads, whoever came before and however long the machine took
        // since: beside others the same one would be another.
        let (begin, statement, at) = match self.apart {
            None => (Moment::Begin, Moment::Statement, after),
            Some(_) => (Moment::Commit, Moment::Commit, after % 2),
        };
        match self.fault {
            Fault::StoreBegin => storage.arm(begin, after % 2, Strike::Unavailable),
            Fault::StoreStatement => storage.arm(statement, at, Strike::Unavailable),
            Fault::StoreCommit => storage.arm(Moment::Commit, after % 2, Strike::Unavailable),
            Fault::StoreConflict if after % 2 == 0 => storage.arm(Moment::Commit, after % 3, Strike::Conflict),
            Fault::StoreConflict => storage.arm(statement, at, Strike::Conflict),
            Fault::UnknownCommit => {
                storage.arm(Moment::Commit, after % 2, Strike::UnknownCommit);
                self.world.is_patient = self.dice.one_in(2);
            }
            _ => {}
        }
    }

    fn calm(&mut self) {
        self.disarm();
        self.world.network.prepare(CallFault::None, Dice::new(self.dice.next()));
    }

    /// From here on nothing goes wrong; whether something did is kept.
    fn disarm(&mut self) {
        let is_left = self.world.storage.disarm();
        self.world.network.listener(None);
        if self.is_armed && !is_left && self.fault.is_of_storage() || self.world.network.take_struck() {
            self.struck = self.fault;
        }
        self.is_armed = false;
        self.world.is_patient = true;
    }

    fn may_fail(&self) -> bool {
        matches!(self.fault, Fault::StoreBegin | Fault::StoreStatement | Fault::StoreCommit | Fault::UnknownCommit)
    }

    /// Whether something was committed of which nobody was told so.
    fn has_unknown_commit(&self) -> bool {
        self.fault == Fault::UnknownCommit && self.struck == self.fault
    }

    fn side_at_random(&mut self) -> usize {
        if self.is_apart() {
            let acting = self.acting();
            return self.dice.pick(&acting).copied().expect("somebody acts");
        }
        [0, 0, 0, 1, 2, 2, 3][self.dice.below(7) as usize]
    }

    /// A write that calls nobody outside. A fault of the service is settled by asking again with the same key (P2, P3).
    async fn write(
        &mut self,
        side: usize,
        verb: &'static str,
        path: &str,
        body: Option<Value>,
    ) -> Result<Answer, String> {
        let is_keyed = self.fault != Fault::None || self.loses_power || !self.dice.one_in(6);
        let key = is_keyed.then(|| self.new_key(side));
        let (at, began) = (self.world.now(), self.world.written());
        self.arm();
        let mut sent = self.world.send(side, verb, path, body.as_ref(), key.as_deref()).await;
        self.disarm();
        if let Some(is_heard) = self.power_goes_since(began).await {
            let again = self.world.send(side, verb, path, body.as_ref(), key.as_deref()).await;
            power::answered_again(is_heard, sent.as_ref(), again.as_ref())?;
            sent = again;
        }
        if sent.is_none() && self.has_unknown_commit() {
            self.world.crash().await;
            sent = self.world.send(side, verb, path, body.as_ref(), key.as_deref()).await;
        }
        let mut answer = sent.ok_or("a request was not answered")?;
        if answer.status >= 500 && self.may_fail() {
            let sent = self.world.send(side, verb, path, body.as_ref(), key.as_deref()).await;
            answer = sent.ok_or("a request was not answered when it was repeated")?;
        }
        if answer.status >= 500 {
            return Err(format!("{verb} {path} was answered {} {}", answer.status, answer.body));
        }
        self.heard(&answer);
        if let Some(key) = key
            && answer.code() != "validation_failed"
        {
            self.keep(Kept { side, verb, path: path.to_owned(), body, key, at, answer: answer.clone() });
        }
        Ok(answer)
    }

    fn keep(&mut self, kept: Kept) {
        self.kept.push(kept);
    }

    /// Into the trace.
    fn heard(&mut self, answer: &Answer) {
        self.note_answer(answer);
        self.hash = mix(self.hash, &answer.status.to_le_bytes());
        match answer.status {
            // A refusal holds the request's id, which is nobody's business.
            400.. => self.hash = mix(self.hash, answer.code().as_bytes()),
            _ => self.hash = mix(self.hash, answer.body.as_bytes()),
        }
    }

    async fn read(&mut self, side: usize, path: &str) -> Result<Answer, String> {
        let answer = self.world.send(side, "GET", path, None, None).await.ok_or("a read was not answered")?;
        self.heard(&answer);
        Ok(answer)
    }

    /// The object as it is shown, against the model's.
    async fn look(&mut self, side: usize, object: Object, id: &str) -> Check {
        let now = self.world.now();
        let answer = self.read(side, &object.path(id)).await?;
        let model = &self.sides[side];
        let fields = match object {
            Object::Checkout => model.checkout_fields(id, now),
            Object::Invoice => model.invoice_fields(id, now),
            Object::Link => model.link_fields(id, now),
            Object::Session => model.session_fields(id, now),
            Object::Transaction => model.transaction_fields(id, now),
            Object::Refund => model.refund_fields(id),
        };
        match fields {
            Ok(fields) => {
                expect(&answer, Ok(()), 200)?;
                compare(&answer, &fields).map_err(|what| format!("reading {id} at {now}: {what}"))
            }
            Err(code) => expect(&answer, Err(code), 200).map_err(|what| format!("reading {id}: {what}")),
        }
    }

    fn ids(&self, side: usize, object: Object) -> Vec<String> {
        let side = &self.sides[side];
        match object {
            Object::Checkout => side.checkouts.keys().cloned().collect(),
            Object::Invoice => side.invoices.keys().cloned().collect(),
            Object::Link => side.links.keys().cloned().collect(),
            Object::Session => side.sessions.keys().cloned().collect(),
            Object::Transaction => side.attempts.keys().cloned().collect(),
            Object::Refund => side.refunds.keys().cloned().collect(),
        }
    }

    fn some_id(&mut self, side: usize, object: Object) -> Option<String> {
        let ids = self.ids(side, object);
        self.dice.pick_recent(&ids).cloned()
    }

    async fn look_somewhere(&mut self) -> Check {
        let side = self.side_at_random();
        let object = Object::ALL[self.dice.below(6) as usize];
        match self.some_id(side, object) {
            Some(id) => self.look(side, object, &id).await,
            None => Ok(()),
        }
    }

    /// What belongs to somebody else, or to the other mode, is not there.
    async fn look_elsewhere(&mut self) -> Check {
        let side = self.side_at_random();
        let Some(other) = self.other_than(side) else { return Ok(()) };
        let object = Object::ALL[self.dice.below(6) as usize];
        let Some(id) = self.some_id(side, object) else { return Ok(()) };
        let answer = self.read(other, &object.path(&id)).await?;
        expect(&answer, Err(object.missing()), 200).map_err(|what| format!("{id} is somebody else's: {what}"))?;
        if object == Object::Checkout {
            let answer = self.write(other, "POST", &format!("/v1/checkouts/{id}/cancel"), None).await?;
            expect(&answer, Err(object.missing()), 200).map_err(|what| format!("{id} is somebody else's: {what}"))?;
        }
        Ok(())
    }

    async fn list(&mut self) -> Check {
        let side = self.side_at_random();
        let (path, count) = match self.dice.below(5) {
            0 => ("/v1/checkouts", self.sides[side].checkouts.len()),
            1 => ("/v1/pay/invoices", self.sides[side].invoices.len()),
            2 => ("/v1/pay/transactions", self.sides[side].attempts.len()),
            3 => ("/v1/pay/refunds", self.sides[side].refunds.len()),
            _ => {
                let reference = format!("r{}", self.dice.below(5));
                let count = self.sides[side].checkouts.values().filter(|one| one.reference == reference).count();
                let answer = self.read(side, &format!("/v1/checkouts?limit=2&reference={reference}")).await?;
                return compare(&answer, &vec![("total", json!(count))]);
            }
        };
        let answer = self.read(side, &format!("{path}?limit=2")).await?;
        compare(&answer, &vec![("total", json!(count))]).map_err(|what| format!("{path}: {what}"))
    }
}
