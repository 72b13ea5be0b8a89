//! Merchants and their customers: they create, pay and refund over HTTP, repeat under the same key what was not answered,
//! and remember what they were promised.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use domain::Entropy;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::place::client;
use crate::processes::Fleet;

/// The longest that a request with a key is repeated before it counts as never answered.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(100);
const STATUS_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_WATCH: u32 = 100;

/// What the clients were told. Each list by what names it.
#[derive(Default)]
pub(crate) struct Promises {
    /// The key of a creation, its request and its answer.
    pub(crate) created: BTreeMap<String, Kept>,
    pub(crate) refunded: BTreeMap<String, Kept>,
    pub(crate) started: BTreeMap<String, Kept>,
    /// The references of creations without a key, and whether they were acknowledged.
    pub(crate) unkeyed: BTreeMap<String, bool>,
    /// What should never happen and did.
    pub(crate) found: Vec<String>,
    pub(crate) repeated: u64,
}

#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) path: String,
    pub(crate) request: Value,
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Kept {
    pub(crate) fn data(&self, name: &str) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["data"][name].as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) struct Load {
    fleet: Arc<Fleet>,
    http: reqwest::Client,
    api_key: String,
    ending: AtomicBool,
    stories: AtomicU64,
    pub(crate) promises: Mutex<Promises>,
}

impl Load {
    pub(crate) fn new(fleet: &Arc<Fleet>, api_key: &str) -> Arc<Self> {
        Arc::new(Self {
            fleet: Arc::clone(fleet),
            http: client(),
            api_key: api_key.to_owned(),
            ending: AtomicBool::new(false),
            stories: AtomicU64::new(0),
            promises: Mutex::default(),
        })
    }

    /// So many customers at a time, each with one story after the other, until the end is rung.
    pub(crate) async fn run(self: Arc<Self>, customers: u64, seed: u64) {
        let customers = (0..customers).map(|customer| {
            let load = Arc::clone(&self);
            tokio::spawn(async move {
                let mut random = random(seed, customer);
                while !load.ending.load(Ordering::SeqCst) {
                    load.story(seed, &mut random).await;
                }
            })
        });
        join_all(customers).await.into_iter().for_each(Result::unwrap);
    }

    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    /// One order: created, perhaps paid, perhaps paid back.
    async fn story(&self, seed: u64, random: &mut Entropy) {
        let name = format!("{seed}-{}", self.stories.fetch_add(1, Ordering::SeqCst));
        let units = 10 + random.below(500);
        let order = json!({ "amount": format!("{units}.00"), "items": null, "reference": name });
        if random.below(6) == 0 {
            return self.create_without_key(&name, &order, random).await;
        }
        let Some(created) = self.ask("/v1/checkouts", &format!("create-{name}"), &order, random).await else { return };
        self.keep(|promises| &mut promises.created, format!("create-{name}"), &created);
        if created.status != 201 {
            return self.note(format!("creating {name} was answered by {} {}", created.status, created.body));
        }
        let phone = ["+2207000000", "+2207000000", "+2207000000", "+2207000001", "+2207000004", "+2207000006"]
            [usize::try_from(random.below(6)).unwrap()];
        let payment = json!({
            "client_secret": created.data("client_secret"), "payment_method": "wave", "customer_phone": phone
        });
        let Some(started) = self.ask("/v1/pay/initialize", &format!("pay-{name}"), &payment, random).await else {
            return;
        };
        self.keep(|promises| &mut promises.started, format!("pay-{name}"), &started);
        if started.status != 200 {
            self.note(format!("paying {name} was answered by {} {}", started.status, started.body));
        }
        if phone == "+2207000001" || random.below(2) == 0 {
            return;
        }
        let Some(transaction) = self.paid(&created.data("id"), random).await else { return };
        for part in 0..=random.below(2) {
            // The last two digits say what the wallet does.
            let cents = ["00", "00", "71", "72", "74", "76"][usize::try_from(random.below(6)).unwrap()];
            let refund = json!({ "amount": format!("{}.{cents}", 1 + random.below(units)) });
            let key = format!("refund-{name}-{part}");
            let path = format!("/v1/pay/transactions/{transaction}/refund");
            let Some(refunded) = self.ask(&path, &key, &refund, random).await else { return };
            self.keep(|promises| &mut promises.refunded, key, &refunded);
            if !matches!(refunded.status, 201 | 400) {
                self.note(format!("refunding {name} was answered by {} {}", refunded.status, refunded.body));
            }
        }
    }

    /// Sent once: without a key nobody may repeat it.
    async fn create_without_key(&self, name: &str, order: &Value, random: &mut Entropy) {
        let Some(url) = self.address(random).await else { return };
        let answer = self.post(&format!("{url}/v1/checkouts"), None, order).await;
        let acknowledged = matches!(answer, Some((201, ..)));
        self.promises.lock().unwrap().unkeyed.insert(name.to_owned(), acknowledged);
    }

    /// The transaction of a checkout, once it is paid.
    async fn paid(&self, checkout: &str, random: &mut Entropy) -> Option<String> {
        for _ in 0..LONGEST_WATCH {
            tokio::time::sleep(STATUS_PAUSE).await;
            let url = self.address(random).await?;
            let request = self.http.get(format!("{url}/v1/checkouts/{checkout}")).bearer_auth(&self.api_key);
            let Ok(answer) = request.timeout(PATIENCE).send().await else { continue };
            if answer.status().as_u16() == 404 {
                self.note(format!("the acknowledged {checkout} is not there"));
                return None;
            }
            let Ok(bytes) = answer.bytes().await else { continue };
            let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            if answer["data"]["status"] == "completed" {
                return answer["data"]["transaction"]["id"].as_str().map(str::to_owned);
            }
        }
        None
    }

    /// How long it takes until a creation is answered.
    pub(crate) async fn probe(&self, name: &str, random: &mut Entropy) -> Duration {
        let begun = dalasi::monotonic::now();
        let order = json!({ "amount": "1.00", "items": null, "reference": name });
        let key = format!("create-{name}");
        if let Some(created) = self.ask("/v1/checkouts", &key, &order, random).await {
            self.keep(|promises| &mut promises.created, key, &created);
        }
        begun.elapsed()
    }

    /// Repeats until there is an answer that says what happened.
    async fn ask(&self, path: &str, key: &str, request: &Value, random: &mut Entropy) -> Option<Kept> {
        let begun = dalasi::monotonic::now();
        // Only answers of 5xx so far: each said that this may have happened, or that it has not.
        let mut refused: Option<(u16, String)> = None;
        let mut unanswered = false;
        while begun.elapsed() < PATIENCE {
            let url = self.address(random).await?;
            match self.post(&format!("{url}{path}"), Some(key), request).await {
                None => unanswered = true,
                Some((429, ..)) => unanswered = true,
                Some((status @ 500.., body, _)) => refused = Some((status, body)),
                Some((status, body, replayed)) => {
                    if let Some((code, text)) = refused.filter(|_| replayed && !unanswered) {
                        self.note(format!("{key}: it had happened, and {code} was the answer: {text}"));
                    }
                    return Some(Kept { path: path.to_owned(), request: request.clone(), status, body });
                }
            }
            self.promises.lock().unwrap().repeated += 1;
            tokio::time::sleep(PAUSE).await;
        }
        self.note(format!("{key} was never answered"));
        None
    }

    /// Status, body, and whether it is the answer of an earlier time.
    pub(crate) async fn post(&self, url: &str, key: Option<&str>, request: &Value) -> Option<(u16, String, bool)> {
        let mut post = self.http.post(url).bearer_auth(&self.api_key).timeout(Duration::from_secs(40));
        if let Some(key) = key {
            post = post.header("idempotency-key", key);
        }
        let answer = post.header("content-type", "application/json").body(request.to_string()).send().await.ok()?;
        let (status, replayed) = (answer.status().as_u16(), answer.headers().contains_key("idempotent-replayed"));
        Some((status, answer.text().await.ok()?, replayed))
    }

    /// One of those that serve now. Nothing when none comes back.
    pub(crate) async fn address(&self, random: &mut Entropy) -> Option<String> {
        for _ in 0..600 {
            let addresses = self.fleet.addresses();
            if let Ok(count @ 1..) = u64::try_from(addresses.len()) {
                return addresses.into_iter().nth(usize::try_from(random.below(count)).unwrap());
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.note("nobody serves the API any more".to_owned());
        None
    }

    fn keep(&self, list: fn(&mut Promises) -> &mut BTreeMap<String, Kept>, key: String, kept: &Kept) {
        list(&mut self.promises.lock().unwrap()).insert(key, kept.clone());
    }

    pub(crate) fn note(&self, found: String) {
        self.promises.lock().unwrap().found.push(found);
    }
}

/// Random numbers that the seed and a number decide.
pub(crate) fn random(seed: u64, number: u64) -> Entropy {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    Entropy::from_seed(bytes)
}

/// A merchant's receiver with several addresses; it remembers what came where, in order.
pub(crate) struct Receiver {
    base: String,
    got: Arc<Mutex<BTreeMap<String, Vec<Arrived>>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) event: String,
    pub(crate) object: String,
    pub(crate) sequence: i64,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let got = Arc::<Mutex<BTreeMap<String, Vec<Arrived>>>>::default();
        let kept = Arc::clone(&got);
        let receive = async move |Path(name): Path<String>, body: Bytes| {
            let event: Value = serde_json::from_slice(&body).unwrap();
            let text = |name: &str| event[name].as_str().unwrap().to_owned();
            let arrived =
                Arrived { event: text("id"), object: text("object_id"), sequence: event["sequence"].as_i64().unwrap() };
            kept.lock().unwrap().entry(name).or_default().push(arrived);
        };
        let router = Router::new().route("/{name}", axum::routing::post(receive));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { base, got }
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    pub(crate) fn got(&self) -> BTreeMap<String, Vec<Arrived>> {
        self.got.lock().unwrap().clone()
    }
}
