//! The call that starts a payment, over a bad network, while others act.

mod handed_over;
mod kept;
mod lost;
mod repeated;
mod same_key;
mod untold;
mod waited;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use dalasi::app::{App, Context, keys};
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self, Api};
use dalasi::metrics;
use dalasi::rails::{Order, Rail, RefundOrder, Simulator};
use domain::Method;
use domain::api_key::{KeyKind, Rights};
use domain::rail::{Called, Capability, FailureReason, RefundReport, Report, Started};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use store::{Database, Tx};
use tokio::sync::Notify;
use tower::ServiceExt as _;

use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(20);

/// What the network does to the first calls.
enum Trouble {
    /// So many starts are lost before they arrive.
    Lost(usize),
    /// So many starts arrive, and their answers are lost: that to the first when somebody says so.
    AnswersLost(usize, Notify),
    /// So many starts are lost at once and so many after them when somebody says so; the others arrive then.
    LostSlowly { at_once: usize, slowly: usize, go_on: Notify },
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
            Trouble::AnswersLost(lost, go_on) if earlier < *lost => async move {
                drop(self.simulator.start(order).await);
                if earlier == 0 {
                    go_on.notified().await;
                }
                Called::Lost("the network lost the answer".into())
            }
            .boxed(),
            Trouble::LostSlowly { at_once, .. } if earlier < *at_once => {
                async { Called::Lost("the network is away".into()) }.boxed()
            }
            Trouble::LostSlowly { at_once, slowly, go_on } => async move {
                go_on.notified().await;
                if earlier < at_once + slowly {
                    return Called::Lost("the network is away".into());
                }
                self.simulator.start(order).await
            }
            .boxed(),
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
            Trouble::Lost(_)
            | Trouble::AnswersLost(..)
            | Trouble::Late(_)
            | Trouble::Deaf
            | Trouble::Slow(_)
            | Trouble::SlowCode { .. } => self.simulator.start(order),
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

/// The API over a world, with a secret key.
pub(crate) struct Merchant {
    router: Router,
    bearer: String,
}

impl Merchant {
    pub(crate) async fn of(world: &World) -> Self {
        let api = Api::new(world.app.clone(), None, metrics::install());
        let scope = world.scope;
        let key = move |tx: &mut Tx<'_>, context: &Context| {
            keys::create(tx, context, scope, KeyKind::Secret, Rights::all(), None)
        };
        let key = world.app.commit(key).await.unwrap();
        let router = envelope::wrap(http::router(api), EdgeSettings::default());
        Self { router, bearer: format!("Bearer {}", key.text.expose()) }
    }

    pub(crate) async fn ask(&self, verb: &str, path: &str, body: Value) -> (u16, Value) {
        self.ask_with_key(None, verb, path, body).await
    }

    async fn ask_with_key(&self, key: Option<&str>, verb: &str, path: &str, body: Value) -> (u16, Value) {
        let (status, _, answer) = self.told(key, verb, path, body).await;
        (status, answer)
    }

    /// And whether that was the answer before.
    pub(crate) async fn told(&self, key: Option<&str>, verb: &str, path: &str, body: Value) -> (u16, bool, Value) {
        let mut request = Request::builder().method(verb).uri(path).header("authorization", &self.bearer);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        // One without a body is null.
        let answer = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap_or_default();
        (parts.status.as_u16(), parts.headers.contains_key("idempotent-replayed"), answer)
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
