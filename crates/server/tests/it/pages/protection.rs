//! What nobody can do to a payer through these pages, and what every answer carries.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use dalasi::app::checkouts::Price;
use dalasi::app::products::NewItem;
use dalasi::listener::ClientAddress;
use domain::{Currency, Method, Money};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::world::{Page, QUIET, World, post};

#[tokio::test]
async fn a_double_click_pays_once() {
    let world = World::new().await;
    for method in [Method::Afrimoney, Method::Qmoney] {
        let checkout = world.create(|_| {}).await;
        let mut payer = world.payer(&checkout).await;
        payer.choose(method).await;
        let twice = || world.send(payer.prepare("/phone", &[("phone", "+2207000000")]));
        let (first, second, third) = tokio::join!(twice(), twice(), twice());
        for answer in [first, second, third] {
            assert_eq!(answer.status, StatusCode::SEE_OTHER);
            assert!(answer.location().starts_with(&format!("/checkout/{}", checkout.id)));
        }
        if method == Method::Qmoney {
            payer.reload().await;
            let twice = || world.send(payer.prepare("/code", &[("code", "000000")]));
            let _ = tokio::join!(twice(), twice());
            payer.reload().await;
            assert!(payer.page.says("You have 2 tries left."), "one press, one try");
            let twice = || world.send(payer.prepare("/code", &[("code", "123456")]));
            let _ = tokio::join!(twice(), twice());
        }
        payer.reach("Paid").await;
        let stored = world.stored(checkout.id).await;
        assert_eq!((stored.attempts.len(), stored.is_paid_by().count()), (1, 1));
    }
}

#[tokio::test]
async fn two_tabs_pay_once() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut tabs = [world.payer(&checkout).await, world.payer(&checkout).await];
    for tab in &mut tabs {
        tab.choose(Method::Afrimoney).await;
    }
    let [first, second] = &tabs;
    let send = |tab: &crate::world::Payer<'_>| world.send(tab.prepare("/phone", &[("phone", "+2207000000")]));
    let _ = tokio::join!(send(first), send(second));
    for tab in &mut tabs {
        tab.reach("Paid").await;
    }
    assert_eq!(world.stored(checkout.id).await.attempts.len(), 1);
}

#[tokio::test]
async fn a_form_that_is_sent_again_does_nothing_more() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.choose(Method::Afrimoney).await;
    let replay = || payer.prepare("/phone", &[("phone", "+2207000001")]);
    let (first, second) = (replay(), replay());
    world.send(first).await;
    payer.reach("Not paid").await;
    let answer = world.send(second).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Not paid");
    assert_eq!(world.stored(checkout.id).await.attempts.len(), 1, "an old press starts nothing new");
}

#[tokio::test]
async fn only_our_own_forms_are_taken() {
    let world = World::new().await;
    let (mine, other) = (world.create(|_| {}).await, world.create(|_| {}).await);
    let payer = world.payer(&mine).await;
    let (to, fields) = payer.page.form("/method").unwrap();
    let token = fields[0].1.clone();
    let foreign = world.payer(&other).await.page.form("/method").unwrap().1[0].1.clone();
    let form = |token: &str| post(&to, &[("form_token".into(), token.into()), ("method".into(), "wave".into())]);
    let with = |name: &'static str, value: &str| {
        let mut request = form(&token);
        request.headers_mut().insert(name, value.parse().unwrap());
        request
    };
    let mut altered = token.clone().into_bytes();
    altered[30] = if altered[30] == b'A' { b'B' } else { b'A' };
    let refused = [
        ("another page's token", form(&foreign)),
        ("an altered token", form(std::str::from_utf8(&altered).unwrap())),
        ("an empty token", form("")),
        ("no token", post(&to, &[("method".into(), "wave".into())])),
        ("another site", with("sec-fetch-site", "cross-site")),
        ("a neighbour", with("sec-fetch-site", "same-site")),
        ("another origin", with("origin", "https://evil.example")),
        ("another scheme", with("origin", "https://pay.test")),
        ("JSON", with("content-type", "application/json")),
        ("text", with("content-type", "text/plain")),
    ];
    for (what, request) in refused {
        let answer = world.send(request).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{what}");
        assert_eq!(answer.heading(), "This form did not come from this page", "{what}");
        assert_eq!(answer.link("Look again now").as_deref(), Some(format!("/checkout/{}", mine.id).as_str()));
    }
    // The page of one payment is not the link's, which begins another.
    for page in
        ["/pay/pl_01h455vb4pex5vsknk084sn02q", "/pay/pl_01h455vb4pex5vsknk084sn02q/ps_01h455vc1nf1ysr3q8s9p3k4mh"]
    {
        for action in ["method", "phone", "approved"] {
            let answer = world.send(post(&format!("{page}/{action}"), &[("x".into(), "y".into())])).await;
            assert_eq!(answer.link("Français"), Some(format!("{page}?lang=fr")), "{}", answer.heading());
        }
    }
    let huge = post(&to, &[("form_token".into(), token.clone()), ("method".into(), "x".repeat(140_000))]);
    let answer = world.send(huge).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(answer.heading(), "This is too much text");
    assert!(world.stored(mine.id).await.attempts.is_empty(), "none of them did anything");

    for request in [with("origin", "http://pay.test"), form(&token)] {
        assert_eq!(world.send(request).await.status, StatusCode::SEE_OTHER);
    }
    assert_eq!(world.stored(mine.id).await.attempts.len(), 1);
    // Nor does a mere look do anything.
    for action in ["method", "phone", "code", "approved", "resend", "other", "leave"] {
        let answer = world.get(&format!("/checkout/{}/{action}?method=card", mine.id)).await;
        assert_eq!((answer.status, answer.location()), (StatusCode::SEE_OTHER, &*format!("/checkout/{}", mine.id)));
    }
    assert_eq!(world.stored(mine.id).await.attempts.len(), 1);
}

#[tokio::test]
async fn the_simulator_takes_only_its_own_forms_too() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await;
    let mut payer = world.payer(&checkout).await;
    payer.choose(Method::Wave).await;
    let checkout_token = payer.page.form("/other").unwrap().1[0].1.clone();
    payer.go_out("Open Wave").await;
    let path = payer.page.path.clone();
    let foreign = post(&path, &[("form_token".into(), checkout_token), ("outcome".into(), "approve".into())]);
    assert_eq!(world.send(foreign).await.status, StatusCode::FORBIDDEN);
    let mut cross = payer.prepare(&path, &[("outcome", "approve")]);
    cross.headers_mut().insert("sec-fetch-site", "cross-site".parse().unwrap());
    assert_eq!(world.send(cross).await.status, StatusCode::FORBIDDEN);
    for token in ["", "x", "0000000000000000000000000000000000000000"] {
        let answer = world.get(&format!("/simulator/{token}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
    }
    // A decision is made once.
    payer.decide("refuse").await;
    payer.back().await;
    payer.reach("Not paid").await;
}

#[tokio::test]
async fn a_token_that_is_too_old_shows_the_page_again() {
    let world = World::new().await;
    world.clock.stop();
    let checkout = world.create(|new| new.expires_in_s = 7200).await;
    let mut payer = world.payer(&checkout).await;
    payer.with_phone(Method::Afrimoney, QUIET).await;
    let old = payer.prepare("/approved", &[]);
    world.clock.advance(std::time::Duration::from_secs(7200));
    let answer = world.send(old).await;
    payer.open(answer.location()).await;
    assert_eq!(payer.page.heading(), "Approve it on your phone");
    assert!(payer.page.says("This page was too old. Nothing was sent."));
}

#[tokio::test]
async fn an_address_that_leads_nowhere_is_a_page() {
    let world = World::limited(0).await;
    let checkout = world.create(|_| {}).await;
    for path in [
        "/checkout/cs_01h455vb4pex5vsknk084sn02q".to_owned(),
        "/checkout/nonsense".to_owned(),
        "/checkout/%ff".to_owned(),
        "/checkout/..%2f..".to_owned(),
        "/checkout/cs_01h455vb4pex5vsknk084sn02q/method".to_owned(),
        "/checkout/cs_01h455vb4pex5vsknk084sn02q/returned".to_owned(),
        format!("/checkout/{}/nonsense", checkout.id),
        format!("/simulator/{}", checkout.id),
        "/assets/pages-0000000000000000.css".to_owned(),
    ] {
        for language in ["en", "fr"] {
            let request = Request::get(&path).header(header::ACCEPT_LANGUAGE, language).body(Body::empty()).unwrap();
            let answer = world.send(request).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
            assert!(answer.body.contains(&format!("<html lang=\"{language}\"")), "{path}: {}", answer.body);
            expect_headers(&answer);
        }
    }
}

#[tokio::test]
async fn so_many_looks_and_no_more() {
    let world = World::limited(5).await;
    let checkout = world.create(|_| {}).await;
    let path = format!("/checkout/{}", checkout.id);
    let mut refused = 0;
    for _ in 0..30 {
        let answer = world.get(&path).await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            refused += 1;
            assert_eq!(answer.heading(), "Too many requests");
            assert!(answer.headers.contains_key(header::RETRY_AFTER));
            expect_headers(&answer);
        }
    }
    assert!((15..=20).contains(&refused), "{refused} of 30 were refused");
}

fn expect_headers(page: &Page) {
    let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    for part in
        ["default-src 'none'", "script-src 'self';", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
    {
        assert!(policy.contains(part), "{part} in {policy}");
    }
    assert!(!policy.contains("unsafe"));
    let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(page.body.contains(&format!("nonce=\"{nonce}\"")));
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("content-type", "text/html; charset=utf-8"),
    ] {
        assert_eq!(page.headers[name], value, "{name}");
    }
    assert!(page.headers.contains_key(header::STRICT_TRANSPORT_SECURITY));
}

#[tokio::test]
async fn every_page_carries_its_headers_and_two_never_the_same_nonce() {
    let world = World::limited(0).await;
    let checkout = world.create(|_| {}).await;
    let (first, second) = (world.payer(&checkout).await.page, world.payer(&checkout).await.page);
    expect_headers(&first);
    expect_headers(&second);
    assert_ne!(first.headers[header::CONTENT_SECURITY_POLICY], second.headers[header::CONTENT_SECURITY_POLICY]);
    assert!(!first.headers.contains_key(header::SET_COOKIE));
    for asset in dalasi::pages::assets::all() {
        let answer = world.get(&asset.path).await;
        assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, asset.body.len()));
        assert!(answer.headers[header::CACHE_CONTROL].to_str().unwrap().contains("immutable"));
    }
}

const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}\u{202e}&";

#[tokio::test]
async fn hostile_words_stay_words_and_every_state_is_small() {
    let world = World::new().await;
    let scope = world.scope;
    let change = dalasi::app::organizations::SettingsChange {
        name: Some(HOSTILE.into()),
        accent_color: Some(Some("red;}</style><script>".into())),
        ..Default::default()
    };
    let changed =
        world.app.commit(move |tx, context| dalasi::app::organizations::change_settings(tx, context, scope, &change));
    changed.await.unwrap();
    let hostile = async || {
        let item = |_| NewItem {
            product_id: None,
            description: Some(HOSTILE.into()),
            quantity: 2,
            unit_price: Some(Money::new(100, Currency::gmd())),
        };
        let new = |new: &mut dalasi::app::checkouts::NewCheckout| {
            new.price = Price::Items((0..3).map(item).collect());
            new.description = Some(HOSTILE.into());
            new.reference = Some(HOSTILE.into());
            new.customer.name = Some(HOSTILE.into());
            new.customer.email = Some(format!("{HOSTILE}@example.com"));
            new.success_url = Some("https://shop.example/?a=\"><script>alert(1)</script>".into());
            new.failure_url = Some("javascript:alert(1)".into());
        };
        world.create(new).await
    };
    let assets: usize = dalasi::pages::assets::all().iter().map(|asset| asset.body.len()).sum();
    let check = |page: &Page| {
        for part in ["<script>alert", "<img", "onerror=alert(1)>", "href=\"javascript", "red;}", "\u{202e}"] {
            assert!(!page.body.contains(part), "{part:?} on {}", page.heading());
        }
        assert!(page.body.len() + assets <= 30 * 1024, "{} weighs {}", page.heading(), page.body.len() + assets);
    };
    let checkout = hostile().await;
    let mut payer = world.payer(&checkout).await;
    check(&payer.page);
    payer.choose(Method::Afrimoney).await;
    payer.press("/phone", &[("phone", HOSTILE)]).await;
    check(&payer.page);
    payer.press("/phone", &[("phone", QUIET)]).await;
    check(&payer.page);
    payer.go_by("/simulator/").await;
    check(&payer.page);
    payer.decide("approve").await;
    check(&payer.page);
    payer.back().await;
    payer.reach("Paid").await;
    check(&payer.page);
    let checkout = hostile().await;
    let mut payer = world.payer(&checkout).await;
    payer.press("/leave", &[]).await;
    check(&payer.page);
    let query = "?lang=%22%3E%3Cscript%3Ealert(1)&note=%22%3E%3Cscript%3E&method=%22%3E&reads=%22%3E";
    payer.open(&format!("/checkout/{}{query}", checkout.id)).await;
    assert_eq!(payer.page.status, StatusCode::OK);
    check(&payer.page);
}

#[tokio::test]
async fn who_takes_no_page_leaves_them_to_others_and_is_told_so_by_a_page() {
    let world = World::new().await;
    // It stands on the page, so that fewer of them take as much.
    let path = format!("/checkout/{}", "'".repeat(3_500));
    let ask = async |address: &str| {
        let mut request = Request::get(&path).body(Body::empty()).unwrap();
        request.extensions_mut().insert(ClientAddress(address.parse().unwrap()));
        world.router.clone().oneshot(request).await.unwrap()
    };
    let mut unread = Vec::new();
    let refused = loop {
        assert!(unread.len() < 10_000, "one address has all of it");
        let page = ask("198.51.100.1").await;
        if page.status() != StatusCode::NOT_FOUND {
            break page;
        }
        unread.push(page);
    };
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()[header::RETRY_AFTER], "1");
    assert_eq!(refused.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
    let text = String::from_utf8(refused.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(text.contains("Not available for a moment"), "{text}");
    assert_eq!(ask("198.51.100.2").await.status(), StatusCode::NOT_FOUND, "another payer");
    drop(unread);
    assert_eq!(ask("198.51.100.1").await.status(), StatusCode::NOT_FOUND);
}
