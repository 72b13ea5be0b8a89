//! The real service in this process: its router, its commands, its store over one SQLite database in memory, or on a disk that
//! may lose its power. Time, entropy and the storage's faults are the simulation's.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use dalasi::app::webhooks::{self, NewEndpoint};
use dalasi::app::{App, Context, Offer, keys};
use dalasi::egress::{Egress, EgressSettings};
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self, Api};
use dalasi::metrics;
use dalasi::rails::{Rail as _, Rails};
use dalasi::secrets::MasterKey;
use dalasi::wire::Addresses;
use domain::api_key::{KeyKind, Rights};
use domain::job::ClaimedJob;
use domain::organization::Organization;
use domain::webhook::EventFilter;
use domain::{Metadata, Mode, Scope};
use http_body_util::BodyExt as _;
use power_cut::Image;
use serde_json::Value;
use store::{InlineDatabase, Interference, Moment, Store, Strike};
use tower::ServiceExt as _;

use crate::disk::PoweredDisk;
use crate::kept::KeptDatabase;
use crate::network::{Network, RAIL};
use crate::random::Dice;

/// 2026-11-30T10:00:00Z: a month ends in the first day, a year in the second month.
const BEGINNING_US: i64 = 1_796_032_800_000_000;
/// Organization by mode.
pub const SIDES: usize = 4;
/// What has not ended after so many turns waits for what nobody will say.
const TURNS: u32 = 64;
const PATIENCE: Duration = Duration::from_secs(30);
/// Whether somebody hangs is looked at so often where threads take their time.
const MOMENT: Duration = Duration::from_millis(1);

/// Time is one number, and nobody but the history moves it.
pub struct SimClock(AtomicI64);

impl SimClock {
    pub(crate) fn new() -> Self {
        Self(AtomicI64::new(BEGINNING_US))
    }

    /// For the next history.
    fn restart(&self) {
        self.0.store(BEGINNING_US, Ordering::Relaxed);
    }

    pub fn pass(&self, us: i64) {
        assert!(us >= 0, "time passes");
        self.0.fetch_add(us, Ordering::Relaxed);
    }
}

impl store::Clock for SimClock {
    fn now_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What ids and secrets are made of: the step's own dice.
#[derive(Default)]
pub struct SimEntropy(AtomicU64);

impl SimEntropy {
    pub fn reseed(&self, seed: u64) {
        self.0.store(seed, Ordering::Relaxed);
    }
}

impl store::EntropySource for SimEntropy {
    fn fill(&self, bytes: &mut [u8; 32]) {
        let mut dice = Dice::new(self.0.fetch_add(0x5851_f42d_4c95_7f2d, Ordering::Relaxed));
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&dice.next().to_le_bytes());
        }
    }
}

/// A storage that says no once, when it is told to.
#[derive(Default)]
pub struct Storage(Mutex<Option<(Moment, u32, Strike)>>);

impl Storage {
    /// At the `after`th such moment from now.
    pub fn arm(&self, moment: Moment, after: u32, strike: Strike) {
        *self.lock() = Some((moment, after, strike));
    }

    /// Whether it was still to come.
    pub fn disarm(&self) -> bool {
        self.lock().take().is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Moment, u32, Strike)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Interference for Storage {
    fn strike(&self, moment: Moment) -> Option<Strike> {
        let mut armed = self.lock();
        let (at, after, strike) = armed.as_mut()?;
        if *at != moment {
            return None;
        }
        if *after > 0 {
            *after -= 1;
            return None;
        }
        let strike = *strike;
        *armed = None;
        Some(strike)
    }
}

/// Where a history's rows are.
enum Place {
    /// In memory, and gone with the history.
    Memory(InlineDatabase),
    /// On a disk that forgets what was not synced when its power goes.
    Disk(PoweredDisk),
    /// In a database that keeps what earlier histories left.
    Kept(Store),
}

/// The organizations of a history, with a key for each side.
#[derive(Clone)]
struct Installed {
    keys: Vec<String>,
    scopes: Vec<Scope>,
}

/// A database with two organizations in both modes, from which every history begins.
pub struct Template {
    database: InlineDatabase,
    egress: Egress,
    installed: Installed,
    pub sends_mail: bool,
    pub kept: Option<KeptDatabase>,
    /// The same on a disk, from which histories begin that lose its power.
    powered: Option<Image>,
}

fn context(network: &Network, sends_mail: bool) -> Arc<Context> {
    let offer = |mode| {
        let offer = move |(method, capability)| Offer { mode, method, rail: RAIL, capability };
        network.capabilities().into_iter().map(offer)
    };
    let offers = offer(Mode::Test).chain(offer(Mode::Live)).collect();
    let addresses = Addresses { public_url: "https://pay.test".into(), pay_url: "https://pay.test".into() };
    let context = Context::new(addresses, MasterKey::from_bytes([7; 32]), offers);
    Arc::new(if sends_mail { context.sending_mail() } else { context })
}

impl Template {
    pub async fn build() -> Self {
        Self::with(false).await
    }

    /// Invoices and receipts are mailed, to a mail server that the history plays.
    pub async fn sending_mail() -> Self {
        Self::with(true).await
    }

    /// With a PostgreSQL database of its own beside it.
    pub async fn beside(admin_url: &str) -> Self {
        Self { kept: Some(KeptDatabase::create(admin_url).await), ..Self::build().await }
    }

    /// On a disk that may lose its power.
    pub async fn on_disk() -> Self {
        let template = Self::build().await;
        let disk = PoweredDisk::holding(&Image::new());
        let store = disk.open(Arc::new(SimClock::new()), Arc::new(SimEntropy::default())).await;
        let network = Network::default();
        let app = App::new(store, context(&network, false), Rails::new(Vec::new()), template.egress.clone(), None);
        let installed = install(&app).await;
        app.store().close().await;
        Self { installed, powered: Some(disk.content()), ..template }
    }

    pub async fn end(self) {
        if let Some(kept) = self.kept {
            kept.drop().await;
        }
    }

    async fn with(sends_mail: bool) -> Self {
        let database = InlineDatabase::in_memory().expect("a database in memory opens");
        let (clock, entropy) = (Arc::new(SimClock::new()), Arc::new(SimEntropy::default()));
        let store = Store::open_inline(&database, clock, entropy, Arc::new(Storage::default()), true);
        let store = store.await.expect("an empty database is migrated");
        let egress = Egress::new(EgressSettings::default());
        let network = Network::default();
        let app = App::new(store, context(&network, sends_mail), Rails::new(Vec::new()), egress.clone(), None);
        let installed = install(&app).await;
        Self { database, egress, installed, sends_mail, kept: None, powered: None }
    }
}

/// Two organizations in both modes, each side with a key and somebody who wants to hear of everything.
async fn install(app: &App) -> Installed {
    let (mut keys, mut scopes) = (Vec::new(), Vec::new());
    for number in 0..2 {
        let made = app.commit(move |tx, context| {
            let now = tx.now();
            let id = tx.entropy().id(now);
            let mut made = Vec::new();
            for mode in [Mode::Test, Mode::Live] {
                let scope = Scope { organization: id, mode };
                let mut organization = Organization::new(id, mode, format!("Shop {number}"), now);
                organization.payments.allow_partial_payments = number == 0;
                organization.payments.allow_negative_balance = number == 0;
                tx.insert(&mut organization)?;
                let key = keys::create(tx, context, scope, KeyKind::Secret, Rights::all(), None)?;
                let endpoint = NewEndpoint {
                    url: "https://shop.test/hooks".into(),
                    enabled_events: vec![EventFilter::parse("*").expect("a filter")],
                    description: None,
                    metadata: Metadata::default(),
                };
                webhooks::create(tx, context, scope, &endpoint)?;
                made.push((key.text.expose().to_owned(), scope));
            }
            if number == 0 {
                keys::add_signing_key(tx, context)?;
            }
            Ok(made)
        });
        for (key, scope) in made.await.expect("an organization is installed") {
            keys.push(key);
            scopes.push(scope);
        }
    }
    Installed { keys, scopes }
}

/// What a request was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub is_replayed: bool,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// One history's world.
pub struct World {
    pub clock: Arc<SimClock>,
    pub entropy: Arc<SimEntropy>,
    pub storage: Arc<Storage>,
    pub network: Network,
    pub app: App,
    pub scopes: Vec<Scope>,
    pub sends_mail: bool,
    /// Whether who doesn't know what became of a commit lives long enough to look for it.
    pub is_patient: bool,
    /// So often the power went.
    pub losses: u64,
    /// What becomes of sectors that were not synced.
    luck: Dice,
    keys: Vec<String>,
    egress: Egress,
    place: Place,
    router: Router,
}

impl World {
    pub async fn begin(template: &Template) -> Self {
        let place = match &template.powered {
            Some(image) => Place::Disk(PoweredDisk::holding(image)),
            None => {
                template.database.begin_history().expect("no history is under way");
                Place::Memory(template.database.clone())
            }
        };
        Parts::new(template.egress.clone(), template.sends_mail).over(place, Some(template.installed.clone())).await
    }

    /// With organizations of its own, whose names come from `seed`: in the template's database, or in one that is kept.
    pub async fn begin_afresh(template: &Template, is_kept: bool, seed: u64) -> Self {
        let mut parts = Parts::new(template.egress.clone(), template.sends_mail);
        let place = match template.kept.as_ref().filter(|_| is_kept) {
            None => {
                template.database.begin_history().expect("no history is under way");
                Place::Memory(template.database.clone())
            }
            Some(kept) => {
                kept.clock.restart();
                kept.store.forget_time();
                (parts.clock, parts.entropy) = (Arc::clone(&kept.clock), Arc::clone(&kept.entropy));
                Place::Kept(kept.store.clone())
            }
        };
        parts.entropy.reseed(seed);
        parts.over(place, None).await
    }

    pub async fn end(self) {
        match self.place {
            Place::Memory(database) => {
                self.app.store().close().await;
                database.end_history().expect("a history is under way");
            }
            Place::Disk(_) => self.app.store().close().await,
            Place::Kept(store) => {
                let emptied = store.write::<_, store::Error, _>(|tx| {
                    // What is still owed would come due in the next history, which begins at the same moment.
                    for queue in ["jobs", "webhook_deliveries", "mails", "events_unlogged"] {
                        tx.execute(&format!("delete from {queue}"), &[])?;
                    }
                    Ok(())
                });
                emptied.await.expect("queues are emptied");
            }
        }
    }

    /// The process dies with all it held in memory, and comes back. With the power, where its disk has some to lose.
    pub async fn crash(&mut self) {
        match &self.place {
            Place::Disk(disk) => {
                let position = disk.position();
                return match self.luck.one_in(2) {
                    true => self.lose_power_stopping(position).await,
                    false => self.lose_power(position).await,
                };
            }
            // What it had begun is not ended by anybody.
            Place::Memory(_) => self.app.store().close().await,
            Place::Kept(_) => {}
        }
        self.start().await;
    }

    async fn start(&mut self) {
        let (place, egress, mail) = (&self.place, &self.egress, self.sends_mail);
        let started = start(place, egress, &self.clock, &self.entropy, &self.storage, &self.network, mail);
        (self.app, self.router) = started.await;
    }

    /// How many steps the disk has done, if its power can go.
    pub fn written(&self) -> Option<usize> {
        match &self.place {
            Place::Disk(disk) => Some(disk.position()),
            Place::Memory(_) | Place::Kept(_) => None,
        }
    }

    /// Decides what of the next losses is lost.
    pub fn draw_luck(&mut self, seed: u64) {
        self.luck = Dice::new(seed);
    }

    /// The power goes when the disk has done so many steps, and comes back: what it did since has never happened.
    ///
    /// # Panics
    /// When the disk has none to lose.
    pub async fn lose_power(&mut self, position: usize) {
        let luck = self.luck.next();
        let left = self.disk().left_at(position, luck);
        // It writes into files that nobody reads again.
        self.app.store().close().await;
        self.start_on(left).await;
    }

    /// The same while it stops in good order, which makes one file of what was written.
    async fn lose_power_stopping(&mut self, began: usize) {
        self.app.store().close().await;
        let written = self.disk().position() - began;
        let done = self.luck.below(written as u64 + 1) as usize;
        let luck = self.luck.next();
        let left = self.disk().left_at(began + done, luck);
        self.start_on(left).await;
    }

    /// It may go again before anything is asked.
    async fn start_on(&mut self, mut left: Image) {
        loop {
            self.place = Place::Disk(PoweredDisk::holding(&left));
            self.losses += 1;
            self.start().await;
            if !self.luck.one_in(4) {
                return;
            }
            let (opened, ended) = (self.disk().opened(), self.disk().position());
            let done = self.luck.below((ended - opened) as u64 + 1) as usize;
            let luck = self.luck.next();
            left = self.disk().left_at(opened + done, luck);
            self.app.store().close().await;
        }
    }

    fn disk(&self) -> &PoweredDisk {
        match &self.place {
            Place::Disk(disk) => disk,
            Place::Memory(_) | Place::Kept(_) => panic!("this disk loses no power"),
        }
    }

    pub fn now(&self) -> i64 {
        store::Clock::now_us(&*self.clock)
    }

    pub fn pass(&self, us: i64) {
        self.clock.pass(us);
    }

    fn request(&self, side: usize, verb: &str, path: &str, body: Option<&Value>, key: Option<&str>) -> Request<Body> {
        let mut request = Request::builder()
            .method(verb)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.keys[side]))
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        request.body(body).expect("a request of ours is well formed")
    }

    /// `None`: it hangs in a call that nobody will answer, or died without knowing what became of a commit.
    pub async fn send(
        &self,
        side: usize,
        verb: &str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Option<Answer> {
        self.ask(self.request(side, verb, path, body, key)).await
    }

    /// The secret key of a side.
    pub fn key(&self, side: usize) -> &str {
        &self.keys[side]
    }

    /// A request as it stands. `None`: as for [`World::send`].
    pub async fn ask(&self, request: Request<Body>) -> Option<Answer> {
        let router = self.router.clone();
        self.run(async move {
            let response = router.oneshot(request).await.expect("a router never fails");
            let (parts, body) = response.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
            Answer {
                status: parts.status.as_u16(),
                is_replayed: parts.headers.contains_key("idempotent-replayed"),
                body: String::from_utf8(body).unwrap_or_default(),
            }
        })
        .await
    }

    /// Whether a job was done. `None`: as for [`World::send`].
    pub async fn work(&self, job: ClaimedJob) -> Option<bool> {
        let app = self.app.clone();
        self.run(async move { dalasi::jobs::run_one(&app, job).await }).await
    }

    async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let mut running = tokio::spawn(work);
        match &self.place {
            Place::Memory(_) => {}
            // Their threads take their time.
            Place::Kept(_) => return tokio::time::timeout(PATIENCE, &mut running).await.ok()?.ok(),
            Place::Disk(_) => {
                for _ in 0..PATIENCE.as_millis() {
                    if let Ok(ended) = tokio::time::timeout(MOMENT, &mut running).await {
                        return ended.ok();
                    }
                    if self.network.hanging() > 0 {
                        break;
                    }
                }
                running.abort();
                return None;
            }
        }
        for _ in 0..TURNS {
            if running.is_finished() {
                return (&mut running).await.ok();
            }
            tokio::task::yield_now().await;
        }
        if self.is_patient && self.network.hanging() == 0 {
            // It waits for a time that nobody else lets pass.
            tokio::time::pause();
            let ended = tokio::time::timeout(PATIENCE, &mut running).await;
            tokio::time::resume();
            if let Ok(ended) = ended {
                return ended.ok();
            }
        }
        running.abort();
        None
    }
}

/// What a history's world is made of, before there is a service in it.
struct Parts {
    clock: Arc<SimClock>,
    entropy: Arc<SimEntropy>,
    storage: Arc<Storage>,
    network: Network,
    egress: Egress,
    sends_mail: bool,
}

impl Parts {
    fn new(egress: Egress, sends_mail: bool) -> Self {
        let (clock, entropy) = (Arc::new(SimClock::new()), Arc::new(SimEntropy::default()));
        Self { clock, entropy, storage: Arc::new(Storage::default()), network: Network::default(), egress, sends_mail }
    }

    async fn over(self, place: Place, installed: Option<Installed>) -> World {
        let Self { clock, entropy, storage, network, egress, sends_mail } = self;
        let (app, router) = start(&place, &egress, &clock, &entropy, &storage, &network, sends_mail).await;
        let Installed { keys, scopes } = match installed {
            Some(installed) => installed,
            None => install(&app).await,
        };
        World {
            clock,
            entropy,
            storage,
            network,
            app,
            scopes,
            sends_mail,
            is_patient: true,
            losses: 0,
            luck: Dice::new(0),
            keys,
            egress,
            place,
            router,
        }
    }
}

async fn start(
    place: &Place,
    egress: &Egress,
    clock: &Arc<SimClock>,
    entropy: &Arc<SimEntropy>,
    storage: &Arc<Storage>,
    network: &Network,
    sends_mail: bool,
) -> (App, Router) {
    let (clock, entropy, storage) = (Arc::clone(clock), Arc::clone(entropy), Arc::clone(storage));
    let store = match place {
        Place::Memory(database) => {
            Store::open_inline(database, clock, entropy, storage, false).await.expect("the database is there")
        }
        Place::Disk(disk) => disk.open(clock, entropy).await,
        Place::Kept(store) => store.clone(),
    };
    let rails = vec![(Mode::Test, Arc::new(network.clone()) as _), (Mode::Live, Arc::new(network.clone()) as _)];
    let app = App::new(store, context(network, sends_mail), Rails::new(rails), egress.clone(), None);
    let router = http::router(Api::new(app.clone(), None, metrics::install()));
    (app, envelope::wrap(router, EdgeSettings { is_https: true }))
}
