//! A whole installation in this process: router, application, worker, a database of its own, and a clock that a test can
//! stop and move. And a payer who sees nothing but pages.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use dalasi::app::checkouts::{self, NewCheckout, Price};
use dalasi::app::hosted::{self, Hosted, Place};
use dalasi::app::idempotency::Reply;
use dalasi::app::payments::{Initialize, Target};
use dalasi::app::refunds::{self, NewRefund};
use dalasi::app::verify::{self, Progress};
use dalasi::app::{App, Context, Offer, look_up, organizations};
use dalasi::clock::{Clock as _, SystemClock};
use dalasi::egress::{Egress, EgressSettings};
use dalasi::entropy::SystemEntropy;
use dalasi::error::Failure;
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::listener::ClientAddress;
use dalasi::mail::{MailSettings, Mailer};
use dalasi::pages::{self, PageSettings};
use dalasi::rails::{Rail, Rails, Simulator};
use dalasi::rate_limit::Rate;
use dalasi::secrets::{MasterKey, Purpose};
use dalasi::wire::Addresses;
use domain::checkout::{Checkout, Customer};
use domain::customer;
use domain::payment::{self, Payable, Transaction, TransactionSummary};
use domain::product::Product;
use domain::refund::Refund;
use domain::{Currency, Id, Metadata, Method, Mode, Money, Msisdn, Scope, Timestamp};
use http_body_util::BodyExt as _;
use store::queries::organizations as stored;
use store::{Database, Settings, Store};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

use crate::before_checksums;

pub(crate) const PAY_URL: &str = "http://pay.test";
/// Waits for a click on the simulator's page.
pub(crate) const QUIET: &str = "+220 765 4321";
const PATIENCE: Duration = Duration::from_secs(10);

/// The machine's time, until a test stops or moves it.
pub(crate) struct TestClock {
    system: SystemClock,
    ahead_us: AtomicI64,
    stopped_at_us: AtomicI64,
    /// For how long the machine was suspended, and is between two looks at its wall clock.
    suspended_us: AtomicI64,
    dozes_us: AtomicI64,
}

impl store::Clock for TestClock {
    fn now_us(&self) -> i64 {
        let ahead_us = self.ahead_us.load(Ordering::SeqCst);
        match self.stopped_at_us.load(Ordering::SeqCst) {
            0 => self.system.now_us() + ahead_us,
            stopped_at_us => stopped_at_us + ahead_us,
        }
    }

    fn wall_us(&self) -> i64 {
        let dozes_us = self.dozes_us.load(Ordering::SeqCst);
        self.system.wall_us() + self.suspended_us.fetch_add(dozes_us, Ordering::SeqCst)
    }
}

impl TestClock {
    pub(crate) fn stop(&self) {
        self.stopped_at_us.store(self.system.now_us(), Ordering::SeqCst);
    }

    /// Business time alone, as where the clock was ahead.
    pub(crate) fn advance(&self, by: Duration) {
        self.ahead_us.fetch_add(micros(by), Ordering::SeqCst);
    }

    /// Both times go on, and the clock that measures waits does not.
    pub(crate) fn suspend(&self, by: Duration) {
        self.suspended_us.fetch_add(micros(by), Ordering::SeqCst);
        self.advance(by);
    }

    /// The machine is suspended for so long between any two looks at its wall clock.
    pub(crate) fn doze(&self, by: Duration) {
        self.dozes_us.store(micros(by), Ordering::SeqCst);
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap()
}

struct StoreEntropy;

impl store::EntropySource for StoreEntropy {
    fn fill(&self, bytes: &mut [u8; 32]) {
        SystemEntropy.fill(bytes);
    }
}

pub(crate) struct World {
    pub(crate) app: App,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) scope: Scope,
    pub(crate) router: Router,
    stop: watch::Sender<bool>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Database::SqliteMemory, false, None, None, |simulator| Arc::new(simulator)).await
    }

    pub(crate) async fn on(database: Database) -> Self {
        Self::with(database, false, None, None, |simulator| Arc::new(simulator)).await
    }

    /// Mails go to the server at this address.
    pub(crate) async fn mailing(smtp_url: &str) -> Self {
        Self::mailing_on(Database::SqliteMemory, smtp_url).await
    }

    pub(crate) async fn mailing_on(database: Database, smtp_url: &str) -> Self {
        Self::with(database, false, None, Some(mailer(smtp_url)), |simulator| Arc::new(simulator)).await
    }

    /// All that the API can do: mails are owed, and webhooks may go to this machine. Nobody listens for either.
    pub(crate) async fn complete(database: Database) -> Self {
        let mailer = mailer("smtp://127.0.0.1:9");
        Self::with(database, false, None, Some(mailer), |simulator| Arc::new(simulator)).await
    }

    /// Behind a rail that a test makes of the simulated one.
    pub(crate) async fn behind(rail: impl FnOnce(Simulator) -> Arc<dyn Rail>) -> Self {
        Self::behind_on(Database::SqliteMemory, rail).await
    }

    pub(crate) async fn behind_on(database: Database, rail: impl FnOnce(Simulator) -> Arc<dyn Rail>) -> Self {
        Self::with(database, false, None, None, rail).await
    }

    /// Ends the worker and what it has begun: from then on nothing happens but what is asked for.
    pub(crate) async fn rest(&self) {
        self.stop.send_replace(true);
        let worker = self.worker.lock().unwrap().take();
        worker.expect("a worker ends once").await.unwrap();
    }

    /// Does what is due, and what becomes due by that, in place of the worker that rests.
    pub(crate) async fn work(&self) {
        while let Some(claimed) = dalasi::jobs::claim_due(&self.app, 1).await.pop() {
            assert!(dalasi::jobs::run_one(&self.app, claimed).await);
        }
    }

    /// Ends the worker, and closes the store.
    pub(crate) async fn close(&self) {
        self.rest().await;
        self.app.store().close().await;
    }

    /// Reached by TLS, and so often a second by one address; 0 is no limit.
    pub(crate) async fn limited(per_second: u32) -> Self {
        Self::with(Database::SqliteMemory, true, Rate::new(per_second), None, |simulator| Arc::new(simulator)).await
    }

    async fn with(
        database: Database,
        is_https: bool,
        rate: Option<Rate>,
        mailer: Option<Mailer>,
        rail: impl FnOnce(Simulator) -> Arc<dyn Rail>,
    ) -> Self {
        let clock = Arc::new(TestClock {
            system: SystemClock::new(),
            ahead_us: AtomicI64::default(),
            stopped_at_us: AtomicI64::default(),
            suspended_us: AtomicI64::default(),
            dozes_us: AtomicI64::default(),
        });
        let store =
            Store::open(Settings::new(database), Arc::clone(&clock) as _, Arc::new(StoreEntropy)).await.unwrap();
        let master = MasterKey::from_bytes([7; 32]);
        let simulator = Simulator::new(store.clone(), PAY_URL.into(), master.subkey(Purpose::PageToken));
        let rail = rail(simulator);
        let offer = |(method, capability)| Offer { mode: Mode::Test, method, rail: "simulator", capability };
        let offers = rail.capabilities().into_iter().map(offer).collect();
        let addresses = Addresses { public_url: PAY_URL.into(), pay_url: PAY_URL.into() };
        let context = Context::new(addresses, master, offers);
        let context = Arc::new(if mailer.is_some() { context.sending_mail() } else { context });
        let rails = Rails::new(vec![(Mode::Test, rail)]);
        let egress = Egress::new(EgressSettings { allow_loopback: mailer.is_some(), ..EgressSettings::default() });
        let app = App::new(store, context, rails, egress, mailer);
        let installed = app.commit(|tx, context| organizations::install(tx, context, "Kairaba Books")).await.unwrap();
        let organization = match installed {
            Some(installed) => installed.organization,
            None => app.read(|tx, _| Ok(stored::all(tx)?)).await.unwrap()[0].id,
        };
        let scope = Scope { organization, mode: Mode::Test };
        let (stop, stopped) = watch::channel(false);
        let settings = PageSettings { is_https, rate, stopping: stopped.clone() };
        let worker = tokio::spawn(dalasi::jobs::work(app.clone(), stopped));
        let router = envelope::wrap(pages::router(app.clone(), settings), EdgeSettings { is_https });
        Self { app, clock, scope, router, stop, worker: Mutex::new(Some(worker)) }
    }

    pub(crate) async fn create(&self, change: impl FnOnce(&mut NewCheckout)) -> Checkout {
        let mut new = NewCheckout {
            price: Price::Amount(Money::new(125_000, Currency::gmd())),
            currency: Currency::gmd(),
            payment_method_types: None,
            automatic_payment_methods: true,
            payment_method: None,
            customer: Customer::default(),
            expires_in_s: 86_400,
            metadata: Metadata::default(),
            description: Some("Two books and a map".into()),
            reference: Some("order-1042".into()),
            success_url: Some("https://shop.example/thanks?order=1042#top".into()),
            failure_url: Some("https://shop.example/sorry".into()),
        };
        change(&mut new);
        let scope = self.scope;
        let created = self.app.commit(move |tx, context| checkouts::create(tx, context, scope, &new)).await;
        created.unwrap().checkout
    }

    /// Starts to pay a checkout by a test number.
    pub(crate) async fn start(&self, checkout: Id<Checkout>, method: Method, phone: &str) {
        self.go_on(checkout, method, phone, None).await;
    }

    /// The same with a one-time code, where one is asked for.
    pub(crate) async fn go_on(&self, checkout: Id<Checkout>, method: Method, phone: &str, code: Option<&str>) {
        let request = Initialize {
            target: Target::Object(Payable::Checkout(checkout)),
            method: Some(method),
            amount: None,
            faults: Vec::new(),
            payer: payment::Payer { phone: Msisdn::parse(phone).ok(), ..Default::default() },
            metadata: None,
            answers: Metadata::default(),
            success_url: None,
            failure_url: None,
            replaces: None,
            has_code: code.is_some(),
            counted: None,
        };
        let render = |result: Result<&_, &Failure>| {
            assert!(result.is_ok(), "{:?}", result.err());
            Reply::new(200, String::new())
        };
        self.app.initialize(self.scope, request, code.map(str::to_owned), None, render).await.unwrap();
    }

    /// The transaction of a fresh checkout that was paid.
    pub(crate) async fn paid(&self, minor: i64) -> Id<Transaction> {
        let price = Price::Amount(Money::new(minor, Currency::gmd()));
        let checkout = self.create(|new| new.price = price).await;
        self.start(checkout.id, Method::Wave, "+2207000000").await;
        loop {
            if let Some(paid) = self.shown(checkout.id).await.filter(TransactionSummary::is_paid) {
                return paid.id;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The attempt that a checkout shows.
    pub(crate) async fn shown(&self, checkout: Id<Checkout>) -> Option<TransactionSummary> {
        let scope = self.scope;
        self.app.read(move |tx, _| Ok(look_up::<Checkout>(tx, scope, checkout)?.transaction)).await.unwrap()
    }

    /// Asks for a refund of a part, or of all that is left.
    pub(crate) async fn refund(&self, transaction: Id<Transaction>, minor: Option<i64>) -> Result<Refund, Failure> {
        let amount = minor.map(|minor| Money::new(minor, Currency::gmd()));
        let (scope, new) = (self.scope, NewRefund { transaction, amount, reason: None });
        self.app.commit(move |tx, context| refunds::ask(tx, context, scope, &new)).await
    }

    /// Every row is as versions left it that kept no checksums.
    pub(crate) async fn forget_checksums(&self) {
        let forgotten = self.app.commit(|tx, _| {
            for statement in before_checksums::statements() {
                tx.execute(&statement, &[])?;
            }
            Ok(())
        });
        forgotten.await.unwrap();
    }

    /// Read as a whole, the books are right.
    pub(crate) async fn has_clean_books(&self) {
        let report = self.app.read(|tx, _| verify::everything(tx, &Progress::default())).await.unwrap();
        assert!(report.is_clean(), "{:#?}", report.faults);
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_micros(store::Clock::now_us(&*self.clock))
    }

    /// Ids that name nothing.
    pub(crate) fn product_of_nobody(&self) -> Id<Product> {
        Id::new(self.now(), [7; 10])
    }

    pub(crate) fn customer_of_nobody(&self) -> Id<customer::Customer> {
        Id::new(self.now(), [7; 10])
    }

    pub(crate) async fn cancel(&self, id: Id<Checkout>) {
        let scope = self.scope;
        self.app.commit(move |tx, context| checkouts::cancel(tx, context, scope, id)).await.unwrap();
    }

    pub(crate) async fn stored(&self, id: Id<Checkout>) -> Hosted {
        let place = Place { payable: Payable::Checkout(id), session: None };
        self.app.read(move |tx, context| hosted::look_up_hosted(tx, context, place)).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Page {
        let mut request = request;
        request.extensions_mut().insert(ClientAddress("192.0.2.1".parse().unwrap()));
        let path = request.uri().to_string();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Page { status: parts.status, headers: parts.headers, body, path }
    }

    pub(crate) async fn get(&self, path: &str) -> Page {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// A payer at the checkout's page.
    pub(crate) async fn payer(&self, checkout: &Checkout) -> Payer<'_> {
        self.payer_at(format!("/checkout/{}", checkout.id)).await
    }

    pub(crate) async fn payer_at(&self, home: String) -> Payer<'_> {
        let page = self.get(&home).await;
        Payer { world: self, home, page }
    }
}

fn mailer(smtp_url: &str) -> Mailer {
    let from = Some("Bills <bills@shop.example>".to_owned());
    let settings = MailSettings::check(Some(smtp_url.to_owned()), None, from).unwrap().unwrap();
    Mailer::new(settings, None).unwrap()
}

pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) path: String,
}

impl Page {
    pub(crate) fn heading(&self) -> String {
        let inside = between(&self.body, "<h1", "</h1>").unwrap_or_default();
        plain(inside.split_once('>').unwrap_or_default().1)
    }

    pub(crate) fn says(&self, text: &str) -> bool {
        plain(&self.body).contains(text)
    }

    pub(crate) fn revision(&self) -> &str {
        between(&self.body, "data-revision=\"", "\"").expect("a checkout page")
    }

    /// The address of the link with this text.
    pub(crate) fn link(&self, text: &str) -> Option<String> {
        self.body.split("<a ").skip(1).find_map(|rest| {
            let (tag, inside) = rest.split_once('>')?;
            let found = plain(inside.split("</a>").next()?) == text;
            found.then(|| unescaped(between(tag, "href=\"", "\"").unwrap()))
        })
    }

    pub(crate) fn has_form(&self, action: &str) -> bool {
        self.form(action).is_some()
    }

    /// Action and hidden fields of the first form whose action ends so, a query left aside.
    pub(crate) fn form(&self, action: &str) -> Option<(String, Vec<(String, String)>)> {
        self.body.split("<form").skip(1).find_map(|rest| {
            let form = rest.split("</form>").next()?;
            let to = unescaped(between(form, "action=\"", "\"")?);
            if !to.split('?').next()?.ends_with(action) {
                return None;
            }
            let hidden = form.split("<input").skip(1).filter(|input| input.contains("type=\"hidden\""));
            let field = |input: &str| {
                let value = |name| unescaped(between(input, name, "\"").unwrap());
                (value("name=\""), value("value=\""))
            };
            Some((to, hidden.map(field).collect()))
        })
    }

    /// What stands in the first field of this name.
    pub(crate) fn value_of(&self, name: &str) -> Option<String> {
        let named = format!(" name=\"{name}\"");
        let input = self.body.split("<input").skip(1).find(|rest| rest.split('>').next().unwrap().contains(&named))?;
        between(input.split('>').next()?, "value=\"", "\"").map(unescaped)
    }

    pub(crate) fn location(&self) -> &str {
        self.headers[header::LOCATION].to_str().unwrap()
    }
}

pub(crate) struct Payer<'w> {
    world: &'w World,
    home: String,
    pub(crate) page: Page,
}

impl Payer<'_> {
    pub(crate) async fn open(&mut self, address: &str) {
        let path = address.strip_prefix(PAY_URL).unwrap_or(address);
        self.page = self.world.get(path).await;
        self.follow().await;
    }

    pub(crate) async fn reload(&mut self) {
        let home = self.home.clone();
        self.open(&home).await;
    }

    /// Sends a form of the page, and follows to where it leads.
    pub(crate) async fn press(&mut self, action: &str, fields: &[(&str, &str)]) {
        let request = self.prepare(action, fields);
        self.page = self.world.send(request).await;
        assert_eq!(self.page.status, StatusCode::SEE_OTHER, "a form ends in a redirect: {}", self.page.body);
        self.follow().await;
    }

    /// The form as it would be sent.
    pub(crate) fn prepare(&self, action: &str, fields: &[(&str, &str)]) -> Request<Body> {
        let found = self.page.form(action);
        let (to, mut all) =
            found.unwrap_or_else(|| panic!("no form {action} on {}: {}", self.page.path, self.page.heading()));
        all.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        post(&to, &all)
    }

    async fn follow(&mut self) {
        for _ in 0..5 {
            if self.page.status != StatusCode::SEE_OTHER {
                return;
            }
            let to = self.page.location().to_owned();
            assert!(to.starts_with('/') && !to.starts_with("//"), "never to another host: {to}");
            self.page = self.world.get(&to).await;
        }
        panic!("redirects without an end at {}", self.page.path);
    }

    /// Looks at the page again and again, as it does by itself, until its heading is this.
    pub(crate) async fn reach(&mut self, heading: &str) {
        let reached = async {
            while self.page.heading() != heading {
                tokio::time::sleep(Duration::from_millis(25)).await;
                self.reload().await;
            }
        };
        if tokio::time::timeout(PATIENCE, reached).await.is_err() {
            panic!("waited for {heading:?}, and the page says {:?}", self.page.heading());
        }
    }

    pub(crate) async fn choose(&mut self, method: Method) {
        self.press("/method", &[("method", method.as_str())]).await;
    }

    /// Sends the choice of a method whatever the page shows, as a choice page from the history would.
    pub(crate) async fn choose_again(&mut self, method: Method) {
        let (_, mut fields) = self.page.form("/other").expect("a page with a token");
        fields.push(("method".into(), method.as_str().into()));
        self.page = self.world.send(post(&format!("{}/method", self.home), &fields)).await;
        self.follow().await;
    }

    pub(crate) async fn with_phone(&mut self, method: Method, phone: &str) {
        self.choose(method).await;
        self.press("/phone", &[("phone", phone)]).await;
    }

    /// From the page that leads outward to the rail's own.
    pub(crate) async fn go_out(&mut self, link: &str) {
        let address = self.page.link(link).unwrap_or_else(|| panic!("no link {link:?} on {}", self.page.heading()));
        assert!(address.starts_with(PAY_URL), "{address}");
        self.open(&address).await;
    }

    pub(crate) async fn decide(&mut self, outcome: &str) {
        let simulator = self.page.path.split('?').next().unwrap().to_owned();
        self.press(&simulator, &[("outcome", outcome)]).await;
    }

    /// Chooses it and approves there; they have not come back yet.
    pub(crate) async fn approve_in_wave(&mut self) {
        self.choose(Method::Wave).await;
        self.go_out("Open Wave").await;
        self.decide("approve").await;
    }

    pub(crate) async fn card(&mut self, number: &str) {
        let simulator = self.page.path.split('?').next().unwrap().to_owned();
        self.press(&simulator, &[("number", number)]).await;
    }

    /// By the link whose address holds this.
    pub(crate) async fn go_by(&mut self, part: &str) {
        let mut links = self.page.body.split("href=\"").map(|rest| rest.split('"').next().unwrap());
        let address = unescaped(links.find(|link| link.contains(part)).unwrap());
        self.open(&address).await;
    }

    pub(crate) async fn back(&mut self) {
        self.go_out("Back to the payment").await;
    }
}

/// Within a transaction, where nothing awaits.
pub(crate) fn hold_up(length: Duration) {
    let (_silent, signal) = std::sync::mpsc::channel::<()>();
    let _ = signal.recv_timeout(length);
}

pub(crate) fn post(to: &str, fields: &[(String, String)]) -> Request<Body> {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    Request::post(to)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ORIGIN, "null")
        .header("sec-fetch-site", "same-origin")
        .body(Body::from(body))
        .unwrap()
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let rest = &text[text.find(start)? + start.len()..];
    rest.split(end).next()
}

/// The text of HTML, as somebody reads it.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        rest = tag.split_once('>').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    unescaped(&text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn unescaped(text: &str) -> String {
    let entities = [("&#38;", "&"), ("&amp;", "&"), ("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'")];
    entities.iter().fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}
