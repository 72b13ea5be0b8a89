//! The call that starts a payment is lost on its way, so that the rail has never heard of it, or it comes late, behind that of
//! somebody who took over, or it takes its time, or its answer can't be stored; and the payer waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use dalasi::app::{App, Context, hosted, keys};
use dalasi::error::Failure;
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self, Api};
use dalasi::metrics;
use dalasi::rails::{Order, Rail, RefundOrder, Simulator};
use domain::api_key::{KeyKind, Rights};
use domain::job::{ClaimedJob, Job};
use domain::payment::{Payable, Transaction, TransactionSummary};
use domain::rail::{Called, Capability, FailureReason, RefundReport, Report, Started};
use domain::{Id, Method, Refusal};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use store::{Database, Tx};
use tokio::sync::Notify;
use tower::ServiceExt as _;

use crate::cli::place::Place;
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(20);

/// What the network does to the first calls.
enum Trouble {
    /// So many starts are lost before they arrive.
    Lost(usize),
    /// The first start arrives behind the second, and is refused as one too many.
    Late(Notify),
    /// What is withdrawn is never answered.
    Deaf,
    /// The first start takes until somebody says so.
    Slow(Notify),
    /// The first code takes until somebody says so, and is refused or not; of another one nothing is heard any more.
    SlowCode { go_on: Notify, is_refused: bool },
    /// The store is gone by the time that the rail answers.
    StoreGone(OnceLock<App>),
}

/// The simulated rail behind a bad network.
struct Lossy {
    simulator: Simulator,
    starts: AtomicUsize,
    codes: AtomicUsize,
    withdrawals: AtomicUsize,
    trouble: Trouble,
    is_idempotent: bool,
}

impl Rail for Lossy {
    fn name(&self) -> &'static str {
        self.simulator.name()
    }
    fn capabilities(&self) -> Vec<(Method, Capability)> {
        let mut all = self.simulator.capabilities();
        all.iter_mut().for_each(|(_, capability)| capability.start_is_idempotent = self.is_idempotent);
        all
    }
    fn start(&self, order: Order) -> BoxFuture<'_, Called<Started>> {
        let earlier = self.starts.fetch_add(1, Ordering::SeqCst);
        match &self.trouble {
            Trouble::Lost(lost) if earlier < *lost => async { Called::Lost("the network is away".into()) }.boxed(),
            Trouble::Late(second) if earlier == 0 => async {
                second.notified().await;
                Called::Refused(FailureReason::ProviderError)
            }
            .boxed(),
            Trouble::Late(second) if earlier == 1 => async {
                let called = self.simulator.start(order).await;
                second.notify_one();
                // The answer to the first is there before this one's.
                tokio::time::sleep(Duration::from_millis(500)).await;
                called
            }
            .boxed(),
            Trouble::Slow(go_on) if earlier == 0 => async {
                go_on.notified().await;
                self.simulator.start(order).await
            }
            .boxed(),
            Trouble::StoreGone(app) => async {
                app.get().unwrap().store().close().await;
                Called::Lost("no matter".into())
            }
            .boxed(),
            Trouble::Lost(_) | Trouble::Late(_) | Trouble::Deaf | Trouble::Slow(_) | Trouble::SlowCode { .. } => {
                self.simulator.start(order)
            }
        }
    }
    fn submit_code(&self, order: Order, code: String) -> BoxFuture<'_, Called<Report>> {
        let earlier = self.codes.fetch_add(1, Ordering::SeqCst);
        match &self.trouble {
            Trouble::SlowCode { go_on, is_refused } if earlier == 0 => async {
                go_on.notified().await;
                match is_refused {
                    true => Called::Refused(FailureReason::Declined),
                    false => self.simulator.submit_code(order, code).await,
                }
            }
            .boxed(),
            Trouble::SlowCode { .. } => std::future::pending().boxed(),
            _ => self.simulator.submit_code(order, code),
        }
    }
    fn query(&self, order: Order) -> BoxFuture<'_, Called<Report>> {
        self.simulator.query(order)
    }
    fn withdraw(&self, order: Order) -> BoxFuture<'_, Called<()>> {
        self.withdrawals.fetch_add(1, Ordering::SeqCst);
        match self.trouble {
            Trouble::Deaf => std::future::pending().boxed(),
            _ => self.simulator.withdraw(order),
        }
    }
    fn refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        self.simulator.refund(order)
    }
    fn query_refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        self.simulator.query_refund(order)
    }
}

async fn behind(trouble: Trouble, is_idempotent: bool) -> (World, Arc<Lossy>) {
    behind_on(Database::SqliteMemory, trouble, is_idempotent).await
}

async fn behind_on(database: Database, trouble: Trouble, is_idempotent: bool) -> (World, Arc<Lossy>) {
    let mut kept = None;
    let world = World::behind_on(database, |simulator| {
        let rail = Arc::new(Lossy {
            simulator,
            starts: AtomicUsize::default(),
            codes: AtomicUsize::default(),
            withdrawals: AtomicUsize::default(),
            trouble,
            is_idempotent,
        });
        kept = Some(Arc::clone(&rail));
        rail
    });
    let world = world.await;
    (world, kept.unwrap())
}

#[tokio::test]
async fn a_rail_that_knows_the_call_again_gets_it_again() {
    let (world, rail) = behind(Trouble::Lost(2), true).await;
    let checkout = world.create(|_| {}).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    let paid = async {
        while !is_paid(&world, checkout.id).await {
            world.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, paid).await.expect("it was started again");
    assert_eq!(rail.starts.load(Ordering::SeqCst), 3, "lost, lost again, and taken");
    world.has_clean_books().await;
    world.close().await;
}

#[tokio::test]
async fn a_rail_that_would_charge_again_is_only_asked() {
    let (world, rail) = behind(Trouble::Lost(1), false).await;
    let checkout = world.create(|_| {}).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    for _ in 0..100 {
        world.clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    assert!(!is_paid(&world, checkout.id).await, "nobody knows");
    world.close().await;
}

#[tokio::test]
async fn nothing_is_started_for_a_payer_who_has_gone() {
    let (world, rail) = behind(Trouble::Lost(1), true).await;
    let checkout = world.create(|new| new.expires_in_s = 60).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    world.clock.advance(Duration::from_secs(61));
    for _ in 0..100 {
        world.clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    world.close().await;
}

#[tokio::test]
async fn a_no_to_a_call_that_was_overtaken_is_not_believed() {
    let (world, rail) = behind(Trouble::Late(Notify::new()), true).await;
    let checkout = world.create(|_| {}).await;
    let overtaken = async {
        while rail.starts.load(Ordering::SeqCst) < 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        world.clock.advance(Duration::from_secs(31));
    };
    tokio::join!(world.start(checkout.id, Method::Wave, "+2207000000"), overtaken);
    assert_eq!(rail.starts.load(Ordering::SeqCst), 2, "the worker took over");
    let shown = world.shown(checkout.id).await.expect("an attempt");
    assert_ne!(shown.status, "failed", "the rail has taken it");
    let paid = async {
        while !is_paid(&world, checkout.id).await {
            world.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, paid).await.expect("it is paid");
    world.has_clean_books().await;
    world.close().await;
}

/// It would keep a place of the worker's for ever.
#[tokio::test]
async fn a_rail_that_never_answers_a_withdrawal_is_not_waited_for() {
    let (world, _) = behind(Trouble::Deaf, true).await;
    world.rest().await;
    let checkout = world.create(|_| {}).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    let attempt = world.shown(checkout.id).await.unwrap();
    let job = Job::WithdrawAttempt(attempt.id);
    let claimed = ClaimedJob { job, scope: world.scope, due_at: world.now(), attempts: 1, lease_token: 1 };
    let withdrawn = tokio::time::timeout(Duration::from_secs(25), world.app.withdraw_attempt(&claimed)).await;
    assert!(withdrawn.expect("it ends").is_err());
    world.app.store().close().await;
}

/// The API over a world, with a secret key.
struct Merchant {
    router: Router,
    bearer: String,
}

impl Merchant {
    async fn of(world: &World) -> Self {
        let api = Api::new(world.app.clone(), None, metrics::install());
        let scope = world.scope;
        let key = move |tx: &mut Tx<'_>, context: &Context| {
            keys::create(tx, context, scope, KeyKind::Secret, Rights::all(), None)
        };
        let key = world.app.commit(key).await.unwrap();
        let router = envelope::wrap(http::router(api), EdgeSettings::default());
        Self { router, bearer: format!("Bearer {}", key.text.expose()) }
    }

    async fn ask(&self, verb: &str, path: &str, body: Value) -> (u16, Value) {
        self.ask_with_key(None, verb, path, body).await
    }

    async fn ask_with_key(&self, key: Option<&str>, verb: &str, path: &str, body: Value) -> (u16, Value) {
        let mut request = Request::builder().method(verb).uri(path).header("authorization", &self.bearer);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap())
    }

    async fn pay(&self, object: &Value, method: &str, phone: &str) -> (u16, Value) {
        let payer = json!({ "payment_method": method, "customer_phone": phone });
        let mut body = object.clone();
        body.as_object_mut().unwrap().extend(payer.as_object().unwrap().clone());
        self.ask("POST", "/v1/pay/initialize", body).await
    }
}

async fn starts(rail: &Lossy, count: usize) {
    reaches(&rail.starts, count).await;
}

async fn reaches(calls: &AtomicUsize, count: usize) {
    let called = async {
        while calls.load(Ordering::SeqCst) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, called).await.expect("the rail is called");
}

/// Contract §1.8 and §2.2 rule 6: nobody knows yet whether the rail has it, so nothing takes its place.
#[tokio::test]
async fn what_is_being_handed_over_is_processing_and_is_not_replaced() {
    let (world, rail) = behind(Trouble::Slow(Notify::new()), true).await;
    let merchant = Merchant::of(&world).await;
    let (id, object) = invoice(&merchant).await;
    let others = async {
        starts(&rail, 1).await;
        let refused = |(status, body): (u16, Value)| {
            assert_eq!((status, body["code"].as_str()), (400, Some("payment_in_progress")), "{body}");
        };
        refused(merchant.pay(&object, "card", "+2207654321").await);
        refused(merchant.pay(&object, "wave", "+2207654322").await);
        refused(merchant.ask("PUT", &format!("/v1/pay/invoices/{id}"), json!({ "notes": "later" })).await);
        refused(merchant.ask("POST", &format!("/v1/pay/invoices/{id}/cancel"), json!({})).await);
        let (status, same) = merchant.pay(&object, "wave", "+2207654321").await;
        assert_eq!((status, same["data"]["status"].as_str()), (200, Some("processing")), "{same}");
        let session = same["data"]["id"].as_str().unwrap().to_owned();
        for path in ["session", "status"] {
            let (_, shown) = merchant.ask("GET", &format!("/v1/pay/{path}/{session}"), Value::Null).await;
            assert_eq!(shown["data"]["status"], "processing", "{shown}");
        }
        let Trouble::Slow(go_on) = &rail.trouble else { unreachable!() };
        go_on.notify_one();
        session
    };
    let ((status, first), session) = tokio::join!(merchant.pay(&object, "wave", "+2207654321"), others);
    assert_eq!((status, first["data"]["id"].as_str()), (200, Some(session.as_str())), "{first}");
    assert_eq!(
        (&first["data"]["status"], &first["data"]["next_action"]["type"]),
        (&"pending".into(), &"redirect".into())
    );
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    let (status, card) = merchant.pay(&object, "card", "+2207654321").await;
    assert_eq!(status, 200, "{card}");
    assert_ne!(card["data"]["id"], session, "a redirect that nobody used is replaced");
    world.has_clean_books().await;
    world.close().await;
}

/// Contract §4.2: what is with the provider goes on, and nothing begins beside it.
#[tokio::test]
async fn cash_leaves_what_is_being_handed_over() {
    let (world, rail) = behind(Trouble::Slow(Notify::new()), true).await;
    let merchant = Merchant::of(&world).await;
    let (status, settings) = merchant.ask("PUT", "/v1/pay/settings", json!({ "allow_partial_payments": true })).await;
    assert_eq!(status, 200, "{settings}");
    let (id, mut half) = invoice(&merchant).await;
    half["amount"] = "50.00".into();
    let cash = async {
        starts(&rail, 1).await;
        let cash = json!({ "amount": "50.00", "payment_method": "cash" });
        let (status, paid) = merchant.ask("POST", &format!("/v1/pay/invoices/{id}/payments"), cash).await;
        assert_eq!((status, paid["data"]["remaining_amount"].as_str()), (201, Some("50.00")), "{paid}");
        let (status, second) = merchant.pay(&half, "card", "+2207654321").await;
        assert_eq!((status, second["code"].as_str()), (400, Some("payment_in_progress")), "{second}");
        let Trouble::Slow(go_on) = &rail.trouble else { unreachable!() };
        go_on.notify_one();
    };
    let ((status, payment), ()) = tokio::join!(merchant.pay(&half, "wave", "+2207654321"), cash);
    assert_eq!((status, payment["data"]["status"].as_str()), (200, Some("pending")), "{payment}");
    assert_eq!(payment["data"]["next_action"]["type"], "redirect");
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    world.has_clean_books().await;
    world.close().await;
}

/// Contract §1.8: the word knows of no way on, and who asks again is told what was told first.
#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_overtakes_the_call_does_not_answer_for_it() {
    let mut places = vec![Place::sqlite()];
    places.extend(Place::postgres("a word that overtakes the call does not answer for it").await);
    for place in places {
        let (world, rail) = behind_on(place.settings(), Trouble::Slow(Notify::new()), true).await;
        let merchant = Merchant::of(&world).await;
        let (_, mut order) = invoice(&merchant).await;
        order["payment_method"] = "wave".into();
        let pay = || merchant.ask_with_key(Some("once"), "POST", "/v1/pay/initialize", order.clone());
        let overtaken = async {
            starts(&rail, 1).await;
            let (_, attempts) = merchant.ask("GET", "/v1/pay/transactions", Value::Null).await;
            let attempt: Id<_> = attempts["data"]["items"][0]["id"].as_str().unwrap().parse().unwrap();
            world.app.report(world.scope, attempt, Report::Open, None).await.unwrap();
            let Trouble::Slow(go_on) = &rail.trouble else { unreachable!() };
            go_on.notify_one();
        };
        let (first, ()) = tokio::join!(pay(), overtaken);
        assert_eq!((first.0, &first.1["data"]["next_action"]["type"]), (200, &"redirect".into()), "{}", first.1);
        assert_eq!(pay().await, first);
        world.has_clean_books().await;
        world.close().await;
        place.end().await;
    }
}

/// Contract §4.2: it is with its rail until its call is over, and the payer who typed it is told what became of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_word_from_before_a_code_does_not_answer_for_it() {
    let mut places = vec![Place::sqlite()];
    places.extend(Place::postgres("a word from before a code does not answer for it").await);
    for place in places {
        let trouble = Trouble::SlowCode { go_on: Notify::new(), is_refused: false };
        let (world, rail) = behind_on(place.settings(), trouble, true).await;
        let merchant = Merchant::of(&world).await;
        let (_, object) = invoice(&merchant).await;
        let (_, begun) = merchant.pay(&object, "qmoney", "+2207000000").await;
        assert_eq!(begun["data"]["next_action"]["type"], "otp", "{begun}");
        let submit = || submit(&merchant, &object, "once");
        let overtaken = async {
            reaches(&rail.codes, 1).await;
            let attempt = latest_attempt(&merchant).await;
            // An answer to a question of the worker's, and one to nobody's.
            let job = Job::AskRail(attempt);
            let claimed = ClaimedJob { job, scope: world.scope, due_at: world.now(), attempts: 1, lease_token: 1 };
            for claimed in [Some(claimed), None] {
                let old = Report::AwaitingCode { attempts_left: 3 };
                world.app.report(world.scope, attempt, old, claimed).await.unwrap();
            }
            let (status, refused) = merchant.pay(&object, "card", "+2207000000").await;
            assert_eq!((status, refused["code"].as_str()), (400, Some("payment_in_progress")), "{refused}");
            let Trouble::SlowCode { go_on, .. } = &rail.trouble else { unreachable!() };
            go_on.notify_one();
        };
        let (first, ()) = tokio::join!(submit(), overtaken);
        assert!(["processing", "succeeded"].contains(&first.1["data"]["status"].as_str().unwrap()), "{}", first.1);
        assert_eq!(submit().await, first);
        world.has_clean_books().await;
        world.close().await;
        place.end().await;
    }
}

/// Contract §1.8: nobody asks about what is over, so that its end is the answer to whoever waits.
#[tokio::test]
async fn the_end_of_a_payment_answers_the_code_that_waits() {
    let (world, rail) = behind(Trouble::SlowCode { go_on: Notify::new(), is_refused: true }, true).await;
    let merchant = Merchant::of(&world).await;
    let (_, object) = invoice(&merchant).await;
    merchant.pay(&object, "qmoney", "+2207000000").await;
    let others = async {
        reaches(&rail.codes, 1).await;
        let attempt = latest_attempt(&merchant).await;
        let wrong = Report::AwaitingCode { attempts_left: 2 };
        world.app.report(world.scope, attempt, wrong, None).await.unwrap();
        let waits = async {
            reaches(&rail.codes, 2).await;
            let Trouble::SlowCode { go_on, .. } = &rail.trouble else { unreachable!() };
            go_on.notify_one();
            // That the first one was refused says nothing about the second, which is on its way.
            tokio::time::sleep(Duration::from_millis(200)).await;
            let (_, told) = merchant.ask("GET", &format!("/v1/pay/transactions/{attempt}"), Value::Null).await;
            assert_eq!(told["data"]["status"], "pending", "{told}");
            let over = Report::Failed { reason: FailureReason::Declined };
            world.app.report(world.scope, attempt, over, None).await.unwrap();
            let answered = async {
                loop {
                    let (status, told) = submit(&merchant, &object, "second").await;
                    if status != 429 {
                        return (status, told);
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(4), answered).await.expect("nobody waits for what is over")
        };
        // Its process dies: nobody hears what its own call brings.
        tokio::select! {
            told = waits => told,
            _ = submit(&merchant, &object, "second") => panic!("the second code is answered by its own call"),
        }
    };
    let (first, second) = tokio::join!(submit(&merchant, &object, "first"), others);
    assert_eq!((second.0, second.1["data"]["status"].as_str()), (200, Some("failed")), "{}", second.1);
    assert_eq!(first.1["data"]["id"], second.1["data"]["id"]);
}

/// Contract §4.1, §4.2: whoever was told `processing` is told of an end only when the rail's answer has decided it. Then what
/// nobody waits for any more is ended at the rail as well.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_handed_over_outlives_the_end_of_its_checkout() {
    let mut places = vec![Place::sqlite(), Place::sqlite(), Place::sqlite(), Place::sqlite()];
    places.extend(Place::postgres("what is being handed over outlives the end of its checkout").await);
    let ends = [
        (Method::Wave, false, ["cancelled", "expired", "expired"]),
        (Method::Wave, true, ["cancelled", "cancelled", "cancelled"]),
        (Method::Afrimoney, false, ["processing", "failed", "expired"]),
        (Method::Afrimoney, true, ["processing", "failed", "cancelled"]),
        (Method::Wave, false, ["cancelled", "expired", "expired"]),
    ];
    for (place, (method, is_cancelled, told)) in places.into_iter().zip(ends) {
        let (world, rail) = behind_on(place.settings(), Trouble::Slow(Notify::new()), true).await;
        outlives(&world, &rail, method, is_cancelled, told).await;
        world.close().await;
        place.end().await;
    }
}

async fn outlives(world: &World, rail: &Lossy, method: Method, is_cancelled: bool, told: [&str; 3]) {
    let merchant = Merchant::of(world).await;
    let checkout = world.create(|new| new.expires_in_s = 60).await.id;
    let path = format!("/v1/checkouts/{checkout}");
    let object = json!({ "object_type": "checkout", "object_id": checkout.to_string() });
    let status = |shown: &(u16, Value)| shown.1["data"]["status"].as_str().map(str::to_owned);
    world.clock.advance(Duration::from_secs(40));
    let ended = async {
        starts(rail, 1).await;
        let place = hosted::Place { payable: Payable::Checkout(checkout), session: None };
        let scope = world.scope;
        let left = world.app.commit(move |tx, context| hosted::leave(tx, context, scope, place)).await;
        assert!(matches!(left, Err(Failure::Refused(Refusal::PaymentInProgress))), "only the merchant may: {left:?}");
        let meanwhile = if is_cancelled {
            world.cancel(checkout).await;
            "cancelled"
        } else {
            world.clock.advance(Duration::from_secs(25));
            // The timer comes, and another attempt does not begin.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let (status, other) = merchant.pay(&object, "card", "+2207654321").await;
            assert_eq!((status, other["code"].as_str()), (400, Some("checkout_expired")), "{other}");
            "pending"
        };
        let shown = merchant.ask("GET", &path, Value::Null).await;
        assert_eq!(status(&shown).as_deref(), Some(meanwhile), "{shown:?}");
        let session = shown.1["data"]["payment_session_id"].as_str().expect("a session").to_owned();
        let shown = merchant.ask("GET", &format!("/v1/pay/session/{session}"), Value::Null).await;
        assert_eq!(status(&shown).as_deref(), Some("processing"), "{shown:?}");
        assert_eq!(rail.withdrawals.load(Ordering::SeqCst), 0, "there is nothing to withdraw yet");
        let Trouble::Slow(go_on) = &rail.trouble else { unreachable!() };
        go_on.notify_one();
    };
    let (answered, ()) = tokio::join!(merchant.pay(&object, method.as_str(), "+2207000009"), ended);
    let [session, attempt, end] = told.map(str::to_owned);
    assert_eq!(status(&answered), Some(session), "{answered:?}");
    reaches(&rail.withdrawals, 1).await;
    let ended = async {
        loop {
            let attempts = merchant.ask("GET", "/v1/pay/transactions", Value::Null).await;
            if attempts.1["data"]["items"][0]["status"] != "processing" {
                return attempts;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let attempts = tokio::time::timeout(PATIENCE, ended).await.expect("the rail has let go of it");
    assert_eq!(attempts.1["data"]["items"][0]["status"], attempt, "{attempts:?}");
    let shown = merchant.ask("GET", &path, Value::Null).await;
    assert_eq!(status(&shown), Some(end), "{shown:?}");
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    world.has_clean_books().await;
}

#[tokio::test]
async fn what_is_over_is_not_started_in_place_of_a_call_that_died() {
    let (world, rail) = behind(Trouble::Slow(Notify::new()), true).await;
    let checkout = world.create(|_| {}).await;
    let dies = async {
        starts(&rail, 1).await;
        world.cancel(checkout.id).await;
        for _ in 0..50 {
            world.clock.advance(Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = world.start(checkout.id, Method::Wave, "+2207000000") => panic!("nobody answers it"),
        () = dies => {}
    }
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    // The call may have arrived all the same.
    reaches(&rail.withdrawals, 1).await;
}

async fn submit(merchant: &Merchant, object: &Value, key: &str) -> (u16, Value) {
    let mut body = object.clone();
    body["customer_pin"] = "123456".into();
    merchant.ask_with_key(Some(key), "POST", "/v1/pay/initialize", body).await
}

async fn latest_attempt(merchant: &Merchant) -> Id<Transaction> {
    let (_, attempts) = merchant.ask("GET", "/v1/pay/transactions", Value::Null).await;
    attempts["data"]["items"][0]["id"].as_str().unwrap().parse().unwrap()
}

async fn invoice(merchant: &Merchant) -> (String, Value) {
    let line = json!({ "description": "Rice", "quantity": 1, "unit_price": "100.00" });
    let order = json!({
        "customer_email": "awa@example.gm", "customer_name": "Awa", "due_date": "2090-01-31", "items": [line],
    });
    let (_, invoice) = merchant.ask("POST", "/v1/pay/invoices", order).await;
    let id = invoice["data"]["id"].as_str().unwrap().to_owned();
    let object = json!({ "object_type": "invoice", "object_id": id });
    (id, object)
}

/// A client gives up after 30 seconds, and asks again without a key.
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_answered_in_time_though_the_database_hangs() {
    let Some(place) = Place::postgres("a payment is answered in time though the database hangs").await else { return };
    let (world, rail) = behind_on(place.settings(), Trouble::Slow(Notify::new()), true).await;
    world.rest().await;
    let merchant = Merchant::of(&world).await;
    let (_, object) = invoice(&merchant).await;
    let (table, row) = (place.raw_postgres().await, place.raw_postgres().await);
    let hanging = async {
        starts(&rail, 1).await;
        table.batch_execute("begin; lock table payment_sessions in access exclusive mode").await.unwrap();
        // The look gets through, late, and behind it the commit waits anew.
        let held = row.batch_execute("begin; select id from payment_sessions for update");
        let freed = async {
            tokio::time::sleep(Duration::from_secs(21)).await;
            table.batch_execute("rollback").await.unwrap();
        };
        let (held, ()) = tokio::join!(held, freed);
        held.unwrap();
    };
    let asked = tokio::time::timeout(Duration::from_secs(30), merchant.pay(&object, "wave", "+2207654321"));
    let (answered, ()) = tokio::join!(asked, hanging);
    let (status, begun) = answered.expect("the client still waits");
    assert_eq!((status, begun["data"]["status"].as_str()), (200, Some("processing")), "{begun}");
    row.batch_execute("rollback").await.unwrap();
    let Trouble::Slow(go_on) = &rail.trouble else { unreachable!() };
    go_on.notify_one();
    world.app.store().close().await;
    place.end().await;
}

/// Without a key nobody can ask again: whoever was told of a fault would begin a second payment.
#[tokio::test]
async fn a_payment_that_is_committed_is_answered_as_it_stands() {
    let mut places = vec![Place::sqlite()];
    places.extend(Place::postgres("a payment that is committed is answered as it stands").await);
    for place in places {
        let (world, rail) = behind_on(place.settings(), Trouble::StoreGone(OnceLock::new()), true).await;
        let Trouble::StoreGone(app) = &rail.trouble else { unreachable!() };
        app.set(world.app.clone()).ok().unwrap();
        let merchant = Merchant::of(&world).await;
        let (_, link) =
            merchant.ask("POST", "/v1/pay/payment-links", json!({ "title": "Tea", "amount": "25.00" })).await;
        let object = json!({ "object_type": "payment_link", "object_id": link["data"]["id"] });
        let (status, begun) = merchant.pay(&object, "afrimoney", "+2207654321").await;
        assert_eq!((status, begun["data"]["status"].as_str()), (200, Some("processing")), "{begun}");
        assert_eq!(begun["data"]["amount"], "25.00");
        assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
        drop(world);
        place.end().await;
    }
}

async fn is_paid(world: &World, checkout: Id<domain::checkout::Checkout>) -> bool {
    world.shown(checkout).await.is_some_and(|shown: TransactionSummary| shown.is_paid())
}
