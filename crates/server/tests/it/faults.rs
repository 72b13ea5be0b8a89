//! All that is wrong with a request is told at once, and nothing that isn't (contract §1.4).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, Method};
use dalasi::app::App;
use dalasi::egress::{Egress, EgressSettings, Resolver, Resolving};
use dalasi::http::envelope::{self, EdgeSettings};
use dalasi::http::{self as api, Api};
use dalasi::metrics;
use dalasi::rails::Rails;
use domain::api_key::{KeyKind, Rights};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::authorization::tenants::{Answered, new_key, request};
use crate::world::World;

const CHECKOUTS: &str = "/v1/checkouts";
const INVOICES: &str = "/v1/pay/invoices";
const LINKS: &str = "/v1/pay/payment-links";
const PRODUCTS: &str = "/v1/pay/products";
const INITIALIZE: &str = "/v1/pay/initialize";
const ENDPOINTS: &str = "/v1/webhook_endpoints";

/// Leads to a public address, until it leads inside.
#[derive(Default)]
struct Name {
    is_inside: AtomicBool,
}

impl Resolver for Name {
    fn resolve(&self, _: &str) -> Resolving {
        let address = if self.is_inside.load(Ordering::SeqCst) { "10.0.0.1" } else { "93.184.215.14" };
        Box::pin(std::future::ready(Ok(vec![address.parse().unwrap()])))
    }
}

/// A merchant's program.
struct Merchant {
    world: World,
    router: Router,
    key: String,
    name: Arc<Name>,
}

impl Merchant {
    async fn new() -> Self {
        let world = World::new().await;
        let name = Arc::new(Name::default());
        let settings = EgressSettings { resolver: Arc::clone(&name) as _, ..EgressSettings::default() };
        let (store, context) = (world.app.store().clone(), Arc::clone(world.app.context()));
        let app = App::new(store, context, Rails::new(Vec::new()), Egress::new(settings), None);
        let router = envelope::wrap(api::router(Api::new(app, None, metrics::install())), EdgeSettings::default());
        let key = new_key(&world, world.scope, KeyKind::Secret, Rights::all()).await.text.expose().to_owned();
        Self { world, router, key, name }
    }

    async fn send(&self, path: &str, body: &Value, key: Option<&'static str>) -> Answered {
        self.send_by(&Method::POST, path, body, key).await
    }

    async fn send_by(&self, method: &Method, path: &str, body: &Value, key: Option<&'static str>) -> Answered {
        let mut request = request(method, path, Some(&self.key), Some(body));
        if let Some(key) = key {
            request.headers_mut().insert("idempotency-key", HeaderValue::from_static(key));
        }
        Answered::of(self.router.clone().oneshot(request).await.unwrap()).await
    }

    async fn make(&self, path: &str, body: Value) -> Value {
        let answer = self.send(path, &body, None).await;
        assert!(answer.status.is_success(), "{path} {body}: {}", answer.text());
        answer.json()["data"].clone()
    }

    /// Each field that is refused, with its code; each once.
    async fn check(&self, path: &str, body: Value, expected: &[(&str, &str)]) {
        self.check_by(&Method::POST, path, body, expected).await;
    }

    async fn check_by(&self, method: &Method, path: &str, body: Value, expected: &[(&str, &str)]) {
        let answer = self.send_by(method, path, &body, None).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (400, &json!("validation_failed")), "{body}");
        let details = answer.json()["details"].as_array().unwrap().clone();
        let text = |fault: &Value, name: &str| fault[name].as_str().unwrap().to_owned();
        let told: BTreeMap<_, _> = details.iter().map(|fault| (text(fault, "field"), text(fault, "code"))).collect();
        assert_eq!(told.len(), details.len(), "{body}: {details:?}");
        let expected: BTreeMap<_, _> = expected.iter().map(|(f, code)| ((*f).to_owned(), (*code).to_owned())).collect();
        assert_eq!(told, expected, "{method} {path} {body}");
    }
}

fn invoice(price: &str) -> Value {
    let items = json!([{"quantity": 1, "unit_price": price, "description": "Rice"}]);
    json!({"customer_email": "awa@example.gm", "customer_name": "Awa", "due_date": "2099-01-31", "items": items})
}

/// Contract §2.1 rule 1.
#[tokio::test]
async fn items_overrule_whatever_the_amount_says() {
    let merchant = Merchant::new().await;
    let items = json!([{"quantity": 3, "unit_price": "2.50", "description": "Rice"}]);
    for amount in ["0.00", "10.001", "-1", "much", "", "1000000000000.00", "7.50"] {
        let made = merchant.make(CHECKOUTS, json!({"amount": amount, "items": items})).await;
        assert_eq!(made["amount"], "7.50", "{amount}");
    }
    let number = json!({"amount": 7.5, "items": items});
    merchant.check(CHECKOUTS, number, &[("amount", "amount_must_be_string")]).await;
    for none in [json!([]), json!(null)] {
        let alone = json!({"amount": "0.00", "items": none});
        merchant.check(CHECKOUTS, alone, &[("amount", "amount_not_positive")]).await;
    }
}

/// An amount is held against the currency that was meant, which nobody knows.
#[tokio::test]
async fn a_wrong_currency_adds_no_fault_and_hides_none() {
    let merchant = Merchant::new().await;
    type BodyOf = fn(&str) -> Value;
    let priced: [(&str, BodyOf, &str); 6] = [
        (CHECKOUTS, |price| json!({"amount": price}), "amount"),
        (CHECKOUTS, |price| json!({"items": [{"quantity": 1, "unit_price": price}]}), "items[0].unit_price"),
        ("/v1/pay/products", |price| json!({"name": "Rice", "price": price}), "price"),
        (LINKS, |price| json!({"title": "Tea", "amount": price}), "amount"),
        (LINKS, |price| json!({"title": "Tea", "amount": "0.000", "min_amount": price}), "min_amount"),
        (INVOICES, invoice, "items[0].unit_price"),
    ];
    for (path, body, field) in priced {
        let of = |price: &str, currency: Value| {
            let mut body = body(price);
            body["currency"] = currency;
            body
        };
        for currency in ["gambia", "HRK"] {
            let wrong = ("currency", "invalid_enum");
            merchant.check(path, of("1.001", json!(currency)), &[wrong]).await;
            for (price, code) in [
                ("1.00001", "too_many_decimals"),
                ("0.000", "amount_not_positive"),
                ("1000000000000", "amount_too_large"),
                ("much", "invalid_format"),
            ] {
                let body = of(price, json!(currency));
                // The payer of a link chooses.
                let faults = [wrong, (field, code)];
                let is_chosen = path == LINKS && field == "amount" && code == "amount_not_positive";
                merchant.check(path, body, if is_chosen { &faults[..1] } else { &faults }).await;
            }
        }
        if field != "min_amount" {
            merchant.check(path, of("1.001", json!(null)), &[(field, "too_many_decimals")]).await;
        }
    }
}

#[tokio::test]
async fn what_is_named_is_looked_up_whatever_else_is_wrong() {
    let merchant = Merchant::new().await;
    let (nobody, nothing) = (merchant.world.customer_of_nobody(), merchant.world.product_of_nobody());
    let (unknown, absent) = (("colour", "unknown_field"), ("customer_id", "not_found"));
    let lines = json!([
        {"quantity": 1, "product_id": nothing.to_string()},
        {"quantity": 1},
        {"quantity": 1, "unit_price": "1.00"},
    ]);
    let of_lines = [("items[0].product_id", "not_found"), ("items[1].unit_price", "required")];
    let faults = [&[unknown, absent], &of_lines[..]].concat();
    let order = json!({"items": lines, "customer_id": nobody.to_string(), "colour": "red"});
    merchant.check(CHECKOUTS, order.clone(), &faults).await;
    // Whether a product is sold in it nobody knows.
    let mut foreign = order.clone();
    foreign["currency"] = "gambia".into();
    let faults = [unknown, absent, ("currency", "invalid_enum"), of_lines[1]];
    merchant.check(CHECKOUTS, foreign, &faults).await;
    let mut unread = order;
    unread["items"][0]["quantity"] = 0.into();
    let faults = [unknown, absent, ("items[0].quantity", "out_of_range"), of_lines[1]];
    merchant.check(CHECKOUTS, unread, &faults).await;

    let items = json!([{"quantity": 1, "product_id": nothing.to_string()}]);
    let bill = json!({"customer_id": nobody.to_string(), "due_date": "soon", "items": items});
    merchant.check(INVOICES, bill, &[absent, of_lines[0], ("due_date", "invalid_format")]).await;
    let link = json!({"title": "", "amount": "5.00", "expiration_date": "2020-01-31"});
    merchant.check(LINKS, link, &[("title", "too_short"), ("expiration_date", "out_of_range")]).await;
    merchant.name.is_inside.store(true, Ordering::SeqCst);
    let endpoint = json!({"url": "https://shop.example/hook", "enabled_events": []});
    merchant.check(ENDPOINTS, endpoint, &[("url", "not_allowed"), ("enabled_events", "too_short")]).await;
}

/// Of lines, too, all is told: what is said of one is held against what it names.
#[tokio::test]
async fn a_line_is_told_all_that_is_wrong_with_it() {
    const MOST: &str = "999999999999.99";
    let merchant = Merchant::new().await;
    let nothing = merchant.world.product_of_nobody().to_string();
    let francs = merchant.make(PRODUCTS, json!({"name": "Francs", "price": "100", "currency": "XOF"})).await;
    let boat = merchant.make(PRODUCTS, json!({"name": "Boat", "price": MOST, "active": false})).await;
    let lines = json!([
        {"quantity": 2, "product_id": nothing, "unit_price": MOST},
        {"quantity": 1, "product_id": nothing},
        {"quantity": 2, "product_id": francs["id"], "unit_price": MOST},
        {"quantity": 2, "product_id": francs["id"]},
        {"quantity": 2, "product_id": boat["id"]},
        {"quantity": 1, "product_id": boat["id"]},
        {"quantity": 2, "unit_price": MOST},
        {"quantity": 1},
    ]);
    let faults = [
        ("items[0].product_id", "not_found"),
        ("items[0].unit_price", "amount_too_large"),
        ("items[1].product_id", "not_found"),
        ("items[2].product_id", "currency_mismatch"),
        ("items[2].unit_price", "amount_too_large"),
        ("items[3].product_id", "currency_mismatch"),
        ("items[4].product_id", "inactive"),
        ("items[4].unit_price", "amount_too_large"),
        ("items[5].product_id", "inactive"),
        ("items[6].unit_price", "amount_too_large"),
        ("items[7].unit_price", "required"),
    ];
    merchant.check(CHECKOUTS, json!({"items": lines}), &faults).await;
}

/// What can't be read of one line says nothing of the others, and hides nothing of them.
#[tokio::test]
async fn a_line_that_cant_be_read_hides_no_other() {
    const MOST: &str = "999999999999.99";
    let merchant = Merchant::new().await;
    let nothing = merchant.world.product_of_nobody().to_string();
    let known = invoice("1.00");
    let path = format!("{INVOICES}/{}", merchant.make(INVOICES, known.clone()).await["id"].as_str().unwrap());
    let check = async |lines: Value, faults: &[(&str, &str)]| {
        merchant.check(CHECKOUTS, json!({"items": lines}), faults).await;
        let mut bill = known.clone();
        bill["items"] = lines.clone();
        merchant.check(INVOICES, bill, faults).await;
        merchant.check_by(&Method::PUT, &path, json!({"items": lines}), faults).await;
    };
    let lines = json!([
        {"quantity": 1, "product_id": nothing},
        {"quantity": 0, "unit_price": "1.00", "description": "Tea"},
        {"quantity": 2, "unit_price": MOST, "description": "Boat"},
        {"quantity": 1, "unit_price": "1.00", "description": "Tea", "colour": "red"},
        {"quantity": 0, "description": "Tea"},
        {"quantity": 1, "product_id": nothing},
    ]);
    let faults = [
        ("items[0].product_id", "not_found"),
        ("items[1].quantity", "out_of_range"),
        ("items[2].unit_price", "amount_too_large"),
        ("items[3].colour", "unknown_field"),
        ("items[4].quantity", "out_of_range"),
        ("items[4].unit_price", "required"),
        ("items[5].product_id", "not_found"),
    ];
    check(lines, &faults).await;
    // What they come to is told only of all.
    let boat = json!({"quantity": 1, "unit_price": MOST, "description": "Boat"});
    check(json!([boat, boat]), &[("items", "amount_too_large")]).await;
    let none = json!({"quantity": 0, "unit_price": MOST, "description": "Boat"});
    check(json!([boat, boat, none]), &[("items[2].quantity", "out_of_range")]).await;
}

#[tokio::test]
async fn a_link_is_told_that_no_method_takes_its_currency_whatever_else_is_wrong() {
    let merchant = Merchant::new().await;
    let (untaken, passed) = (("currency", "not_allowed"), ("expiration_date", "out_of_range"));
    let link = |title: &str, currency: &str| json!({"title": title, "amount": "5", "currency": currency, "expiration_date": "2020-01-31"});
    merchant.check(LINKS, link("Tea", "JPY"), &[untaken, passed]).await;
    let short = ("title", "too_short");
    merchant.check(LINKS, link("", "JPY"), &[short, untaken, passed]).await;
    merchant.check(LINKS, link("", "XOF"), &[short, passed]).await;
    merchant.check(LINKS, link("", "gambia"), &[short, ("currency", "invalid_enum"), passed]).await;
}

/// Contract §0 and §1.7: however many decimals a currency has.
#[tokio::test]
async fn the_largest_amount_is_the_same_in_every_currency() {
    let merchant = Merchant::new().await;
    for (currency, most, least, above) in [
        ("XOF", "999999999999", "1", "1000000000000"),
        ("GMD", "999999999999.99", "0.01", "1000000000000.00"),
        ("TND", "999999999999.990", "0.001", "999999999999.991"),
        ("CLF", "999999999999.9900", "0.0001", "999999999999.9901"),
    ] {
        let of = |price: &str| {
            let mut body = invoice(price);
            body["currency"] = currency.into();
            body
        };
        assert_eq!(merchant.make(INVOICES, of(most)).await["total_amount"], most);
        merchant.check(INVOICES, of(above), &[("items[0].unit_price", "amount_too_large")]).await;
        let answer = merchant.send(INVOICES, &of(above), None).await.json();
        assert_eq!(answer["details"][0]["message"], format!("`unit_price` must not be above {most}."));
        let mut two = of(most);
        let more = json!({"quantity": 1, "unit_price": least, "description": "Tea"});
        two["items"].as_array_mut().unwrap().push(more);
        merchant.check(INVOICES, two, &[("items", "amount_too_large")]).await;
        let mut taxed = of(most);
        taxed["tax_rate"] = json!(0.0001);
        merchant.check(INVOICES, taxed, &[("tax_rate", "amount_too_large")]).await;
        let product = |price: &str| json!({"name": "Boat", "price": price, "currency": currency});
        assert_eq!(merchant.make(PRODUCTS, product(most)).await["price"], most);
        merchant.check(PRODUCTS, product(above), &[("price", "amount_too_large")]).await;
    }
}

#[tokio::test]
async fn a_checkout_is_told_which_methods_it_has_not_whatever_else_is_wrong() {
    let merchant = Merchant::new().await;
    let settings = json!({"enabled_methods": ["wave", "afrimoney"]});
    let set = merchant.send_by(&Method::PUT, "/v1/pay/settings", &settings, None).await;
    assert_eq!(set.status.as_u16(), 200, "{}", set.text());
    let short = ("expires_in", "out_of_range");
    let order = |more: Value| {
        let mut body = json!({"amount": "5", "expires_in": 5});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let orders: [(Value, &[(&str, &str)]); 9] = [
        (json!({}), &[]),
        (json!({"payment_method": "wave", "currency": "XOF"}), &[]),
        (json!({"payment_method": "card"}), &[("payment_method", "not_allowed")]),
        (json!({"payment_method_types": ["card"]}), &[("payment_method_types", "not_allowed")]),
        (json!({"currency": "JPY"}), &[("currency", "not_allowed")]),
        (json!({"payment_method": "afrimoney", "currency": "XOF"}), &[("currency", "not_allowed")]),
        // What can't be read leaves open which are meant.
        (json!({"payment_method": "cash", "currency": "JPY"}), &[("payment_method", "invalid_enum")]),
        (json!({"payment_method_types": ["cash"]}), &[("payment_method_types[0]", "invalid_enum")]),
        (
            json!({"payment_method": "card", "currency": "gambia"}),
            &[("payment_method", "not_allowed"), ("currency", "invalid_enum")],
        ),
    ];
    for (more, faults) in orders {
        merchant.check(CHECKOUTS, order(more), &[&[short], faults].concat()).await;
    }
}

#[tokio::test]
async fn a_change_of_an_invoice_is_looked_up_whatever_else_is_wrong() {
    let merchant = Merchant::new().await;
    let nothing = merchant.world.product_of_nobody().to_string();
    let francs = merchant.make(PRODUCTS, json!({"name": "Francs", "price": "100", "currency": "XOF"})).await;
    let path = |invoice: &Value| format!("{INVOICES}/{}", invoice["id"].as_str().unwrap());
    let in_dalasi = path(&merchant.make(INVOICES, invoice("1.00")).await);
    let mut in_francs = invoice("100");
    in_francs["currency"] = "XOF".into();
    let in_francs = path(&merchant.make(INVOICES, in_francs).await);
    let absent = format!("{INVOICES}/inv_01h455vb4pex5vsknk084sn02q");
    let of = |product: &Value| json!({"due_date": "soon", "items": [{"quantity": 1, "product_id": product}]});
    let (late, mismatch) = (("due_date", "invalid_format"), ("items[0].product_id", "currency_mismatch"));
    let unknown = ("items[0].product_id", "not_found");
    merchant.check_by(&Method::PUT, &in_dalasi, of(&json!(nothing)), &[late, unknown]).await;
    merchant.check_by(&Method::PUT, &in_dalasi, of(&francs["id"]), &[late, mismatch]).await;
    merchant.check_by(&Method::PUT, &in_francs, of(&francs["id"]), &[late]).await;
    // What nobody's invoice is written in nobody knows.
    merchant.check_by(&Method::PUT, &absent, of(&francs["id"]), &[late]).await;
}

#[tokio::test]
async fn a_change_of_a_link_is_told_of_a_passed_date_whatever_else_is_wrong() {
    let merchant = Merchant::new().await;
    let (short, passed) = (("title", "too_short"), ("expiration_date", "out_of_range"));
    let ends = merchant.world.now().plus(Duration::from_secs(3_600)).to_text();
    let link = merchant.make(LINKS, json!({"title": "Tea", "amount": "5.00", "expiration_date": ends})).await;
    let path = format!("{LINKS}/{}", link["id"].as_str().unwrap());
    let change = |date: &str| json!({"title": "", "expiration_date": date});
    merchant.check_by(&Method::PUT, &path, change("2020-01-31"), &[short, passed]).await;
    merchant.check_by(&Method::PUT, &path, change(&ends), &[short]).await;
    // The date that it has is no change, passed or not.
    merchant.world.clock.advance(Duration::from_secs(7_200));
    merchant.check_by(&Method::PUT, &path, change(&ends), &[short]).await;
    merchant.check_by(&Method::PUT, &path, change("2020-01-31"), &[short, passed]).await;
    merchant.check_by(&Method::PUT, &path, json!({"title": "", "expiration_date": null}), &[short]).await;
}

/// Some clients send microseconds.
#[tokio::test]
async fn a_link_ends_at_the_second_that_is_printed() {
    let merchant = Merchant::new().await;
    let second = merchant.world.now().plus(Duration::from_secs(3_600)).to_text();
    let ends = second.replace('Z', ".345678Z");
    let link = merchant.make(LINKS, json!({"title": "Tea", "amount": "5.00", "expiration_date": ends})).await;
    assert_eq!(link["expiration_date"], second);
    let path = format!("{LINKS}/{}", link["id"].as_str().unwrap());
    let put = async |title: &str| {
        let body = json!({"title": title, "expiration_date": second});
        let answer = merchant.send_by(&Method::PUT, &path, &body, None).await;
        (answer.status.as_u16(), answer.json()["data"].clone())
    };
    merchant.world.clock.advance(Duration::from_secs(60));
    assert_eq!(put("Tea").await, (200, link), "it is no change");
    merchant.world.clock.advance(Duration::from_secs(3_600));
    let (status, changed) = put("Green tea").await;
    assert_eq!(
        (status, &changed["title"]),
        (200, &json!("Green tea")),
        "the date that it has, passed or not: {changed}"
    );
}

#[tokio::test]
async fn a_change_of_an_endpoint_is_told_where_it_leads_whatever_else_is_wrong() {
    let merchant = Merchant::new().await;
    let endpoint = json!({"url": "https://shop.example/hook", "enabled_events": ["*"]});
    let path = format!("{ENDPOINTS}/{}", merchant.make(ENDPOINTS, endpoint).await["id"].as_str().unwrap());
    let change = json!({"url": "https://shop.example/other", "enabled_events": []});
    let short = ("enabled_events", "too_short");
    for method in [Method::POST, Method::PUT, Method::PATCH] {
        merchant.name.is_inside.store(false, Ordering::SeqCst);
        merchant.check_by(&method, &path, change.clone(), &[short]).await;
        merchant.name.is_inside.store(true, Ordering::SeqCst);
        merchant.check_by(&method, &path, change.clone(), &[("url", "not_allowed"), short]).await;
    }
}

#[tokio::test]
async fn a_payment_is_told_all_that_keeps_it_from_beginning() {
    let merchant = Merchant::new().await;
    let questions = json!([{"name": "seat", "label": "Seat", "type": "text", "required": true}]);
    let link = json!({"title": "Tea", "amount": "0.00", "custom_fields": questions});
    let link = merchant.make(LINKS, link).await;
    let pay = |more: Value| {
        let mut body = json!({"object_type": "payment_link", "object_id": link["id"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let (amount, phone) = (("amount", "too_many_decimals"), ("customer_phone", "required"));
    let seat = ("custom_field_values.seat", "required");
    let body = pay(json!({"payment_method": "afrimoney", "amount": "1.001"}));
    merchant.check(INITIALIZE, body, &[amount, seat, phone]).await;
    let body = pay(json!({"payment_method": "wave", "amount": "1.001"}));
    merchant.check(INITIALIZE, body, &[amount, seat]).await;
    let body = pay(json!({"payment_method": "afrimoney", "customer_phone": "7000000"}));
    merchant.check(INITIALIZE, body, &[("amount", "required"), seat]).await;
    // Who is meant may have a phone.
    let nobody = merchant.world.customer_of_nobody().to_string();
    let body = pay(json!({"payment_method": "afrimoney", "amount": "1.00", "customer_id": nobody}));
    merchant.check(INITIALIZE, body, &[("customer_id", "not_found"), seat]).await;
    let known = merchant.make("/v1/pay/customers", json!({"phone": "7000000"})).await;
    let body = pay(json!({"payment_method": "afrimoney", "amount": "1.00", "customer_id": known["id"]}));
    merchant.check(INITIALIZE, body, &[seat]).await;
    // What was told with a session is known of it.
    let checkout = merchant.make(CHECKOUTS, json!({"amount": "5.00", "customer_phone": "7000000"})).await;
    let pay = |more: Value| {
        let mut body = json!({"client_secret": checkout["client_secret"], "payment_method": "afrimoney"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    merchant.check(INITIALIZE, pay(json!({"amount": "5.001"})), &[amount]).await;
    merchant.make(INITIALIZE, json!({"client_secret": checkout["client_secret"]})).await;
    merchant.check(INITIALIZE, pay(json!({"amount": "4.00"})), &[("amount", "conflict")]).await;
}

#[tokio::test]
async fn a_payment_is_looked_up_whatever_else_is_wrong() {
    let merchant = Merchant::new().await;
    let nobody = merchant.world.customer_of_nobody().to_string();
    let (unknown, absent) = (("colour", "unknown_field"), ("customer_id", "not_found"));
    let mail = ("customer_email", "invalid_format");
    let (decimals, other) = (("amount", "too_many_decimals"), ("amount", "conflict"));
    let phone = ("customer_phone", "required");
    let with = |named: &Value, more: Value| {
        let mut body = named.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let order = merchant.make(CHECKOUTS, json!({"amount": "5.00"})).await;
    let checkout = json!({"client_secret": order["client_secret"]});
    let body = with(&checkout, json!({"customer_email": "x", "customer_id": nobody, "amount": "5.001"}));
    merchant.check(INITIALIZE, body, &[mail, absent, decimals]).await;
    let body = with(&checkout, json!({"customer_email": "x", "amount": "4.00", "payment_method": "afrimoney"}));
    merchant.check(INITIALIZE, body, &[mail, other, phone]).await;
    // What can't be read is told once, and what would follow from it is not.
    let body = with(&checkout, json!({"amount": 5, "payment_method": "afrimoney", "customer_phone": "12"}));
    let unread = [("amount", "amount_must_be_string"), ("customer_phone", "invalid_format")];
    merchant.check(INITIALIZE, body, &unread).await;
    let body = with(&checkout, json!({"payment_method": "cash", "amount": "4.00"}));
    merchant.check(INITIALIZE, body, &[("payment_method", "invalid_enum"), other]).await;

    // Names, too, are looked up beside the rest.
    let here = json!({"object_type": "checkout", "object_id": order["id"]});
    let nowhere = json!({"object_type": "checkout", "object_id": "cs_none"});
    let body = with(&nowhere, json!({"customer_email": "x", "customer_id": nobody, "amount": "5.001"}));
    merchant.check(INITIALIZE, body, &[("object_id", "not_found"), mail, absent]).await;
    let body = with(&nowhere, json!({"customer_id": nobody}));
    merchant.check(INITIALIZE, body, &[("object_id", "not_found"), absent]).await;
    let body = with(&with(&here, json!({"client_secret": "cs_none"})), json!({"colour": "red", "amount": "5.001"}));
    merchant.check(INITIALIZE, body, &[("client_secret", "not_found"), unknown]).await;
    let body = with(&checkout, json!({"object_type": "invoice", "colour": "red", "customer_id": nobody}));
    merchant.check(INITIALIZE, body, &[("object_type", "conflict"), unknown, absent]).await;
    // Which one is meant nobody knows.
    let body = with(&checkout, json!({"session_id": "", "amount": "4.00"}));
    merchant.check(INITIALIZE, body, &[("session_id", "too_short")]).await;
    let body = json!({"object_id": order["id"], "amount": "4.00", "customer_id": nobody});
    merchant.check(INITIALIZE, body, &[("object_type", "required"), absent]).await;

    let questions = json!([{"name": "seat", "label": "Seat", "type": "text", "required": true}]);
    let asking = json!({"title": "Tea", "amount": "0.00", "custom_fields": questions});
    let asking = merchant.make(LINKS, asking).await;
    let link = json!({"object_type": "payment_link", "object_id": asking["id"], "payment_method": "wave"});
    let seat = ("custom_field_values.seat", "required");
    let body = with(&link, json!({"colour": "red"}));
    merchant.check(INITIALIZE, body, &[unknown, ("amount", "required"), seat]).await;
    let body = with(&link, json!({"amount": "1.001", "custom_field_values": []}));
    merchant.check(INITIALIZE, body, &[decimals, ("custom_field_values", "wrong_type")]).await;

    // What takes no payment says so once a request can run.
    merchant.make(&format!("{CHECKOUTS}/{}/cancel", order["id"].as_str().unwrap()), json!({})).await;
    let body = with(&checkout, json!({"amount": "4.00", "customer_email": "x", "customer_id": nobody}));
    merchant.check(INITIALIZE, body, &[mail, absent]).await;
    let refused = merchant.send(INITIALIZE, &with(&checkout, json!({"amount": "4.00"})), None).await;
    assert_eq!(refused.json()["code"], "checkout_already_cancelled", "{}", refused.text());
}

/// The SDK sends no amount.
#[tokio::test]
async fn whoever_names_no_amount_pays_what_the_link_suggests() {
    let merchant = Merchant::new().await;
    let link = json!({"title": "Tea", "amount": "5.00", "is_variable_amount": true, "max_amount": "9.00"});
    let link = merchant.make(LINKS, link).await;
    let named = json!({"object_type": "payment_link", "object_id": link["id"]});
    assert_eq!(merchant.make(INITIALIZE, named.clone()).await["amount"], "5.00");
    let mut chosen = named;
    chosen["amount"] = "7.00".into();
    assert_eq!(merchant.make(INITIALIZE, chosen).await["amount"], "7.00");
}

/// Contract §2.4 rule 2: what is given wins, and an empty text is given.
#[tokio::test]
async fn an_empty_phone_on_an_invoice_is_none() {
    let merchant = Merchant::new().await;
    let customer = json!({"email": "awa@example.gm", "name": "Awa", "phone": "7000000"});
    let customer = merchant.make("/v1/pay/customers", customer).await;
    let items = json!([{"quantity": 1, "unit_price": "1.00", "description": "Rice"}]);
    let mut bill = json!({"customer_id": customer["id"], "due_date": "2099-01-31", "items": items});
    let shown = merchant.make(INVOICES, bill.clone()).await;
    assert_eq!(shown["customer_phone"], "+2207000000");
    bill["customer_phone"] = "".into();
    assert_eq!(merchant.make(INVOICES, bill).await["customer_phone"], "");
}

/// Whose name leads inside meanwhile.
#[tokio::test]
async fn an_endpoint_that_was_made_is_answered_so_again() {
    let merchant = Merchant::new().await;
    let body = json!({"url": "https://shop.example/hook", "enabled_events": ["*"]});
    let first = merchant.send(ENDPOINTS, &body, Some("endpoint-1")).await;
    assert_eq!(first.status.as_u16(), 201, "{}", first.text());
    let path = format!("{ENDPOINTS}/{}", first.json()["data"]["id"].as_str().unwrap());
    let change = json!({"url": "https://shop.example/other"});
    let changed = merchant.send(&path, &change, Some("endpoint-2")).await;
    assert_eq!(changed.status.as_u16(), 200, "{}", changed.text());
    merchant.name.is_inside.store(true, Ordering::SeqCst);
    for (path, body, key, before) in
        [(ENDPOINTS, &body, "endpoint-1", &first), (path.as_str(), &change, "endpoint-2", &changed)]
    {
        let again = merchant.send(path, body, Some(key)).await;
        assert_eq!((again.status, &again.body), (before.status, &before.body));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        merchant.check(path, body.clone(), &[("url", "not_allowed")]).await;
        // Nothing was kept of what was refused.
        let fresh = merchant.send(path, body, Some("endpoint-3")).await;
        assert_eq!(fresh.json()["code"], "validation_failed", "{}", fresh.text());
    }
}
