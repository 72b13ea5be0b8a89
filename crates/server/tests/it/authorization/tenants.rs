//! Two merchants on one installation, each with one of everything, and the API in this process.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use axum::response::Response;
use dalasi::app::keys::{self, CreatedKey};
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self as api, Api};
use dalasi::metrics;
use domain::api_key::{KeyKind, Rights};
use domain::organization::Organization;
use domain::{Id, Mode, Scope};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::cli::place::Place;
use crate::world::World;

/// Stands in every text of the other merchant's, and may stand in no answer to anybody else.
pub(crate) const MARK: &str = "Tenant-B";

pub(crate) struct Tenants {
    pub(crate) world: World,
    pub(crate) router: Router,
    pub(crate) ours: Tenant,
    pub(crate) theirs: Tenant,
    place: Place,
    beside: rusqlite::Connection,
}

pub(crate) struct Tenant {
    pub(crate) scope: Scope,
    pub(crate) key: CreatedKey,
    pub(crate) objects: Objects,
}

/// One of each kind: its id, or whatever else names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Objects {
    pub(crate) checkout: String,
    pub(crate) client_secret: String,
    pub(crate) session: String,
    pub(crate) transaction: String,
    pub(crate) refund: String,
    pub(crate) link: String,
    pub(crate) customer: String,
    pub(crate) email: String,
    pub(crate) product: String,
    pub(crate) draft: String,
    pub(crate) invoice: String,
    /// Takes many small payments.
    pub(crate) bill: String,
    pub(crate) receipt: String,
    pub(crate) receipt_number: String,
    pub(crate) validation_code: String,
    pub(crate) endpoint: String,
    pub(crate) endpoint_secret: String,
    pub(crate) event: String,
}

impl Objects {
    pub(crate) fn texts(&self) -> [&str; 18] {
        [
            &self.checkout,
            &self.client_secret,
            &self.session,
            &self.transaction,
            &self.refund,
            &self.link,
            &self.customer,
            &self.email,
            &self.product,
            &self.draft,
            &self.invoice,
            &self.bill,
            &self.receipt,
            &self.receipt_number,
            &self.validation_code,
            &self.endpoint,
            &self.endpoint_secret,
            &self.event,
        ]
    }

    /// Names that are as well-formed as these, and nobody's.
    pub(crate) fn of_nobody(&self) -> Self {
        let changed = |text: &str, at: usize, [one, another]: [&str; 2]| {
            let (start, rest) = text.split_at(at);
            let character = if rest.starts_with(one) { another } else { one };
            format!("{start}{character}{}", &rest[1..])
        };
        let other = |text: &str| changed(text, text.len() - 1, ["0", "1"]);
        Self {
            checkout: other(&self.checkout),
            // Its last character holds one bit: the last of the id that it hides.
            client_secret: changed(&self.client_secret, self.client_secret.len() - 1, ["0", "g"]),
            session: other(&self.session),
            transaction: other(&self.transaction),
            refund: other(&self.refund),
            link: other(&self.link),
            customer: other(&self.customer),
            email: self.email.replace('@', ".nobody@"),
            product: other(&self.product),
            draft: other(&self.draft),
            invoice: other(&self.invoice),
            bill: other(&self.bill),
            receipt: other(&self.receipt),
            receipt_number: "RCT-2001-001".into(),
            validation_code: other(&self.validation_code),
            endpoint: other(&self.endpoint),
            // It ends with padding.
            endpoint_secret: changed(&self.endpoint_secret, "whsec_".len(), ["0", "1"]),
            event: other(&self.event),
        }
    }
}

pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answered {
    pub(crate) async fn of(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Self { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Tenants {
    pub(crate) async fn new() -> Self {
        let place = Place::sqlite();
        let world = World::complete(place.settings()).await;
        let api = Api::new(world.app.clone(), None, metrics::install());
        let router = envelope::wrap(api::router(api), EdgeSettings::default());
        let ours = Self::furnish(&world, &router, world.scope, "Kairaba", 0).await;
        let scope = another_merchant(&world).await;
        // Further receipts, so that no number of theirs is one of ours.
        let theirs = Self::furnish(&world, &router, scope, MARK, 60).await;
        world.rest().await;
        let beside = rusqlite::Connection::open(place.folder().join("dalasi.db")).unwrap();
        Self { world, router, ours, theirs, place, beside }
    }

    pub(crate) async fn end(self) {
        self.world.app.store().close().await;
        self.place.end().await;
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answered {
        Answered::of(self.router.clone().oneshot(request).await.unwrap()).await
    }

    /// Counts on with every commit.
    pub(crate) fn commits(&self) -> i64 {
        self.beside.query_row("pragma data_version", [], |row| row.get(0)).unwrap()
    }

    /// All that is stored of anybody but this one, as one text.
    pub(crate) fn beyond(&self, scope: Scope) -> Vec<u8> {
        let tables = self.column("select name from sqlite_master where type = 'table' order by name");
        let mut all = Vec::new();
        for table in tables {
            let columns = self.column(&format!("select name from pragma_table_info('{table}')"));
            let is_theirs = |name: &String| name == "organization_id";
            let filter = match columns.iter().any(is_theirs) {
                true => format!("where organization_id <> '{}' or mode <> '{}'", scope.organization, scope.mode),
                false => continue,
            };
            let quoted: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
            let row = quoted.join(" || ',' || ");
            all.extend(self.column(&format!("select {row} from {table} {filter} order by 1")).concat().into_bytes());
        }
        all
    }

    fn column(&self, sql: &str) -> Vec<String> {
        let mut statement = self.beside.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// One of everything, made as a merchant makes it.
    async fn furnish(world: &World, router: &Router, scope: Scope, name: &str, more_receipts: usize) -> Tenant {
        let key = new_key(world, scope, KeyKind::Secret, Rights::all()).await;
        let bearer = key.text.expose().to_owned();
        let ask = async |method: Method, path: &str, body: Value| {
            let request = request(&method, path, Some(&bearer), Some(&body));
            let answer = Answered::of(router.clone().oneshot(request).await.unwrap()).await;
            assert!(answer.status.is_success(), "{method} {path}: {}", answer.text());
            answer.json()["data"].clone()
        };
        let post = async |path: &str, body: Value| ask(Method::POST, path, body).await;
        let get = async |path: &str| ask(Method::GET, path, json!({})).await;
        let text = |value: &Value, field: &str| value[field].as_str().unwrap().to_owned();

        let endpoint = json!({"url": "http://127.0.0.1:9/", "enabled_events": ["*"], "description": name});
        let endpoint = post("/v1/webhook_endpoints", endpoint).await;
        let email = format!("{}@shop.example", name.to_lowercase());
        let customer = json!({"email": email, "name": format!("{name} Ceesay"), "metadata": {"note": name}});
        let customer = text(&post("/v1/pay/customers", customer).await, "id");
        let product = json!({"name": format!("{name} book"), "price": "5.00"});
        let product = text(&post("/v1/pay/products", product).await, "id");
        let link = json!({"title": format!("{name} link"), "amount": "5.00"});
        let link = text(&post("/v1/pay/payment-links", link).await, "id");
        let order = |price: &str, is_draft: bool| {
            let items = json!([{"description": format!("{name} things"), "quantity": 1, "unit_price": price}]);
            json!({"customer_id": customer, "due_date": "2099-01-31", "items": items, "is_draft": is_draft})
        };
        let draft = text(&post("/v1/pay/invoices", order("7.00", true)).await, "id");
        let invoice = text(&post("/v1/pay/invoices", order("7.00", false)).await, "id");
        let bill = text(&post("/v1/pay/invoices", order("100000.00", false)).await, "id");
        for _ in 0..=more_receipts {
            let payment = json!({"amount": "0.01", "payment_method": "cash", "notes": name});
            post(&format!("/v1/pay/invoices/{bill}/payments"), payment).await;
        }
        let receipts = get("/v1/pay/receipts?limit=1").await;
        let receipt = &receipts["items"][0];
        let described = format!("{name} order");
        let checkout = post("/v1/checkouts", json!({"amount": "3.00", "description": described})).await;
        let open = json!({"client_secret": checkout["client_secret"], "payment_method": "wave"});
        let session = text(&post("/v1/pay/initialize", open).await, "id");

        let paid = post("/v1/checkouts", json!({"amount": "90000.00", "description": described})).await;
        let pay = json!({
            "client_secret": paid["client_secret"], "payment_method": "afrimoney", "customer_phone": "+2207000000"
        });
        post("/v1/pay/initialize", pay).await;
        let path = format!("/v1/checkouts/{}", text(&paid, "id"));
        let transaction = loop {
            let shown = get(&path).await;
            if shown["status"] == "completed" {
                break text(&shown["transaction"], "id");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let back = json!({"amount": "0.01", "reason": name});
        let refund = text(&post(&format!("/v1/pay/transactions/{transaction}/refund"), back).await, "id");
        let event = loop {
            let events = get("/v1/events?limit=1").await;
            if let Some(id) = events["items"][0]["id"].as_str() {
                break id.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let objects = Objects {
            checkout: text(&checkout, "id"),
            client_secret: text(&checkout, "client_secret"),
            session,
            transaction,
            refund,
            link,
            customer,
            email,
            product,
            draft,
            invoice,
            bill,
            receipt: text(receipt, "id"),
            receipt_number: text(receipt, "receipt_number"),
            validation_code: text(receipt, "validation_code"),
            endpoint: text(&endpoint, "id"),
            endpoint_secret: text(&endpoint, "secret"),
            event,
        };
        Tenant { scope, key, objects }
    }

    /// The same objects, with a fresh one of the kind that an operation uses up.
    pub(crate) async fn renew(&self, tenant: &Tenant, kind: Renewed) -> Objects {
        let mut objects = tenant.objects.clone();
        let order = |is_draft: bool| {
            let items = json!([{"description": "Fresh", "quantity": 1, "unit_price": "7.00"}]);
            json!({"customer_id": objects.customer, "due_date": "2099-01-31", "items": items, "is_draft": is_draft})
        };
        let (path, body) = match kind {
            Renewed::Nothing => return objects,
            Renewed::Checkout => ("/v1/checkouts", json!({"amount": "1.00"})),
            Renewed::Draft => ("/v1/pay/invoices", order(true)),
            Renewed::Invoice => ("/v1/pay/invoices", order(false)),
            Renewed::Link => ("/v1/pay/payment-links", json!({"title": "Fresh", "amount": "1.00"})),
            Renewed::Customer => {
                let number = self.commits();
                ("/v1/pay/customers", json!({"email": format!("fresh{number}@shop.example")}))
            }
            Renewed::Product => ("/v1/pay/products", json!({"name": "Fresh", "price": "1.00"})),
            Renewed::Endpoint => {
                ("/v1/webhook_endpoints", json!({"url": "http://127.0.0.1:9/", "enabled_events": ["refund.failed"]}))
            }
        };
        let bearer = tenant.key.text.expose();
        let answer = self.send(request(&Method::POST, path, Some(bearer), Some(&body))).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{path}: {}", answer.text());
        let id = answer.json()["data"]["id"].as_str().unwrap().to_owned();
        match kind {
            Renewed::Nothing => unreachable!("answered above"),
            Renewed::Checkout => objects.checkout = id,
            Renewed::Draft => objects.draft = id,
            Renewed::Invoice => objects.invoice = id,
            Renewed::Link => objects.link = id,
            Renewed::Customer => objects.customer = id,
            Renewed::Product => objects.product = id,
            Renewed::Endpoint => objects.endpoint = id,
        }
        objects
    }
}

/// What an operation needs anew for each time that it succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewed {
    Nothing,
    Checkout,
    Draft,
    Invoice,
    Link,
    Customer,
    Product,
    Endpoint,
}

pub(crate) async fn new_key(world: &World, scope: Scope, kind: KeyKind, rights: Rights) -> CreatedKey {
    let created = world.app.commit(move |tx, context| keys::create(tx, context, scope, kind, rights.clone(), None));
    created.await.unwrap()
}

pub(crate) async fn another_merchant(world: &World) -> Scope {
    let added = world.app.commit(|tx, _| {
        let now = tx.now();
        let id: Id<Organization> = tx.entropy().id(now);
        for mode in [Mode::Test, Mode::Live] {
            tx.insert(&mut Organization::new(id, mode, MARK.to_owned(), now))?;
        }
        Ok(Scope { organization: id, mode: Mode::Test })
    });
    added.await.unwrap()
}

pub(crate) fn request(method: &Method, path: &str, bearer: Option<&str>, body: Option<&Value>) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(bearer) = bearer {
        request = request.header(header::AUTHORIZATION, format!("Bearer {bearer}"));
    }
    match body {
        Some(body) => {
            let request = request.header(header::CONTENT_TYPE, "application/json");
            request.body(Body::from(body.to_string())).unwrap()
        }
        None => request.body(Body::empty()).unwrap(),
    }
}
