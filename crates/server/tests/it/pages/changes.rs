//! What a merchant changes while a page is open: a payer pays the amount that the page shows, by a method that it offers, and
//! answers the questions that it asks; or nothing happens.

use std::time::Duration;

use axum::http::StatusCode;
use dalasi::app::hosted::{self, Hosted, Place};
use dalasi::app::invoices::{self, InvoiceChange, NewPayment};
use dalasi::app::load;
use dalasi::app::organizations::{self, SettingsChange};
use dalasi::app::payment_links::{self, LinkChange, NewPaymentLink};
use dalasi::app::products::NewItem;
use domain::checkout::Checkout;
use domain::invoice::Invoice;
use domain::payment::{Payable, PaymentSession};
use domain::payment_link::{CustomField, FieldType, PaymentLink, Price, Status, Terms};
use domain::receipt::{ReceiptSummary, ValidationCode};
use domain::{Currency, Id, Method, Money, OfflineMethod};

use crate::invoices::{create, rice};
use crate::world::{Payer, World};

pub(super) const TOO_OLD: &str = "This page was too old. Nothing was sent.";
pub(super) const CHANGED: &str = "The amount to pay has changed. Nothing was sent.";

pub(super) fn gmd(minor: i64) -> Money {
    Money::new(minor, Currency::gmd())
}

/// Of 115.00.
pub(super) async fn billed(world: &World) -> (Id<Invoice>, Payer<'_>) {
    let id = create(world, rice(world)).await.unwrap().id;
    (id, world.payer_at(format!("/invoice/{id}")).await)
}

/// The invoice is about so much before tax of 15 % now.
pub(super) async fn bill_anew(world: &World, id: Id<Invoice>, minor: i64) {
    let item =
        NewItem { product_id: None, description: Some("Rice".into()), quantity: 1, unit_price: Some(gmd(minor)) };
    let change = InvoiceChange { items: Some(vec![item]), ..InvoiceChange::default() };
    let scope = world.scope;
    world.app.commit(move |tx, context| invoices::update(tx, context, scope, id, &change)).await.unwrap();
}

pub(super) async fn record(world: &World, id: Id<Invoice>, minor: i64) {
    let new = NewPayment { amount: gmd(minor), method: OfflineMethod::Cash, transaction_id: None, notes: None };
    let scope = world.scope;
    let recorded = world.app.commit(move |tx, context| invoices::record_payment(tx, context, scope, id, &new, "key"));
    recorded.await.unwrap();
}

pub(super) async fn take_parts(world: &World, takes: bool) {
    set(world, SettingsChange { allow_partial_payments: Some(takes), ..SettingsChange::default() }).await;
}

pub(super) async fn set(world: &World, change: SettingsChange) {
    let scope = world.scope;
    let changed = world.app.commit(move |tx, context| organizations::change_settings(tx, context, scope, &change));
    changed.await.unwrap();
}

pub(super) async fn looked_up(world: &World, id: Id<Invoice>) -> Hosted {
    let place = Place { payable: Payable::Invoice(id), session: None };
    world.app.read(move |tx, context| hosted::look_up_hosted(tx, context, place)).await.unwrap()
}

async fn of_checkout(world: &World, id: Id<Checkout>) -> Hosted {
    let place = Place { payable: Payable::Checkout(id), session: None };
    world.app.read(move |tx, context| hosted::look_up_hosted(tx, context, place)).await.unwrap()
}

async fn begun(world: &World, id: Id<Invoice>) -> Vec<Money> {
    looked_up(world, id).await.attempts.iter().map(|attempt| attempt.amount).collect()
}

/// So many parts of 0.01 were taken. Only the invoice tells of them.
async fn take_small_parts(world: &World, id: Id<Invoice>, parts: i64) {
    let scope = world.scope;
    let taken = world.app.commit(move |tx, _| {
        let mut invoice = load::<Invoice>(tx, scope, id)?;
        let now = tx.now();
        for _ in 0..parts {
            invoice.record(gmd(1), now)?;
            invoice.receipt_issued(ReceiptSummary {
                id: tx.entropy().id(now),
                number: "RCT-2027-001".into(),
                amount: gmd(1),
                payment_date: now,
                validation_code: ValidationCode::new([7; 16]),
            });
        }
        Ok(tx.save(&mut invoice)?)
    });
    taken.await.unwrap();
}

/// From the choice to the code that QMoney sent for a part.
async fn ask_for_code(payer: &mut Payer<'_>, part: &str) {
    payer.press("/method", &[("amount", part), ("method", "qmoney")]).await;
    payer.press("/phone", &[("phone", "+2207000000")]).await;
    assert_eq!(payer.page.heading(), "Enter the code");
}

#[tokio::test]
async fn a_form_of_another_amount_begins_nothing() {
    let world = World::new().await;
    for due in ["143.75", "42.75"] {
        let (id, mut payer) = billed(&world).await;
        assert!(payer.page.says("115.00"));
        let mut forms = vec![payer.prepare("/method", &[("method", "wave")])];
        payer.choose(Method::Afrimoney).await;
        forms.push(payer.prepare("/phone", &[("phone", "+2207000000")]));
        match due {
            "143.75" => bill_anew(&world, id, 12_500).await,
            _ => record(&world, id, 7_225).await,
        }
        for form in forms {
            let answer = world.send(form).await;
            payer.open(answer.location()).await;
            assert_eq!(payer.page.heading(), "How do you want to pay?");
            assert!(payer.page.says(CHANGED) && payer.page.says(due), "{}", payer.page.body);
            assert_eq!(begun(&world, id).await, []);
        }
        // The page as it is now is as good as any.
        payer.choose(Method::Wave).await;
        assert_eq!(payer.page.heading(), "Continue in Wave");
        let begun: Vec<String> = begun(&world, id).await.iter().map(ToString::to_string).collect();
        assert_eq!(begun, [due]);
    }
    world.has_clean_books().await;
}

#[tokio::test]
async fn what_changes_beside_the_amount_holds_nobody_up() {
    let world = World::new().await;
    let (id, mut payer) = billed(&world).await;
    let (scope, notes) = (world.scope, Some("Thank you".into()));
    let change = InvoiceChange { notes, ..InvoiceChange::default() };
    world.app.commit(move |tx, context| invoices::update(tx, context, scope, id, &change)).await.unwrap();
    payer.choose(Method::Wave).await;
    assert_eq!(begun(&world, id).await, [gmd(11_500)]);
}

#[tokio::test]
async fn a_part_that_is_taken_no_more_does_not_become_all() {
    let world = World::new().await;
    take_parts(&world, true).await;
    let (id, mut payer) = billed(&world).await;
    payer.press("/method", &[("amount", "50"), ("method", "afrimoney")]).await;
    assert!(payer.page.says("50.00 GMD"));
    take_parts(&world, false).await;
    payer.press("/phone", &[("phone", "+2207000000")]).await;
    assert_eq!(payer.page.heading(), "How do you want to pay?");
    assert!(payer.page.says(CHANGED) && payer.page.says("115.00"));
    assert_eq!(begun(&world, id).await, []);
}

#[tokio::test]
async fn nothing_is_asked_for_that_the_last_payment_can_not_be() {
    let world = World::new().await;
    take_parts(&world, true).await;
    let (id, mut payer) = billed(&world).await;
    take_small_parts(&world, id, 998).await;
    payer.reload().await;
    assert!(payer.page.body.contains("name=\"amount\""));
    let part = payer.prepare("/method", &[("amount", "50"), ("method", "wave")]);
    take_small_parts(&world, id, 1).await;
    payer.open(world.send(part).await.location()).await;
    assert!(payer.page.says(CHANGED) && !payer.page.body.contains("name=\"amount\""), "{}", payer.page.body);
    payer.choose(Method::Wave).await;
    assert_eq!(begun(&world, id).await, [gmd(11_500 - 999)]);
}

/// What is wrong with it stands beside no field any more.
#[tokio::test]
async fn a_wrong_part_where_none_is_taken_any_more_is_told() {
    let world = World::new().await;
    for part in ["x", "115.01"] {
        take_parts(&world, true).await;
        let (id, mut payer) = billed(&world).await;
        let form = payer.prepare("/method", &[("amount", part), ("method", "wave")]);
        take_parts(&world, false).await;
        payer.open(world.send(form).await.location()).await;
        assert_eq!(payer.page.heading(), "How do you want to pay?");
        assert!(payer.page.says(CHANGED), "{part}: {}", payer.page.body);
        assert_eq!(begun(&world, id).await, []);
    }
}

#[tokio::test]
async fn a_code_pays_what_its_own_tab_shows() {
    let world = World::new().await;
    take_parts(&world, true).await;
    let (id, mut first) = billed(&world).await;
    ask_for_code(&mut first, "50").await;
    let mut second = world.payer_at(format!("/invoice/{id}")).await;
    second.press("/other", &[]).await;
    ask_for_code(&mut second, "80").await;
    first.press("/code", &[("code", "123456")]).await;
    assert_eq!(first.page.heading(), "Enter the code");
    assert!(first.page.says(CHANGED) && first.page.says("80.00"), "{}", first.page.body);
    assert_eq!(looked_up(&world, id).await.is_paid_by().count(), 0);
    first.press("/code", &[("code", "123456")]).await;
    first.reach("We received 80.00 GMD").await;
    assert_eq!(begun(&world, id).await, [gmd(5_000), gmd(8_000)]);
    world.has_clean_books().await;
}

/// What its merchant takes no more does not begin anew, and the code that was sent still pays.
#[tokio::test]
async fn a_code_is_sent_again_only_for_what_is_taken_still() {
    let world = World::new().await;
    world.clock.stop();
    for (is_of_amount, told) in [(true, CHANGED), (false, "A new code can’t be sent any more.")] {
        take_parts(&world, true).await;
        let (id, mut payer) = billed(&world).await;
        ask_for_code(&mut payer, "50").await;
        let again = payer.prepare("/resend", &[]);
        world.clock.advance(Duration::from_secs(31));
        if is_of_amount {
            take_parts(&world, false).await;
        } else {
            let methods = Some(vec![Method::Card, Method::Wave]);
            set(&world, SettingsChange { enabled_methods: methods, ..SettingsChange::default() }).await;
            payer.reload().await;
            assert!(!payer.page.has_form("/resend"), "{}", payer.page.body);
        }
        payer.open(world.send(again).await.location()).await;
        assert_eq!(payer.page.heading(), "Enter the code");
        assert!(payer.page.says(told), "{}", payer.page.body);
        assert_eq!(begun(&world, id).await, [gmd(5_000)]);
        payer.press("/code", &[("code", "123456")]).await;
        world.clock.advance(Duration::from_secs(1));
        payer.reach("We received 50.00 GMD").await;
        assert_eq!(begun(&world, id).await, [gmd(5_000)]);
    }
    world.has_clean_books().await;
}

#[tokio::test]
async fn a_tab_acts_on_the_payment_that_it_shows() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await.id;
    let page = format!("/checkout/{checkout}");
    let mut first = world.payer_at(page.clone()).await;
    first.with_phone(Method::Qmoney, "+2207000000").await;
    let twice = ["/other", "/other"].map(|action| first.prepare(action, &[]));
    first.reload().await;
    let forms = ["/code", "/resend", "/other"].map(|action| first.prepare(action, &[("code", "123456")]));
    let mut second = world.payer_at(page).await;
    for form in twice {
        let answer = world.send(form).await;
        second.open(answer.location()).await;
        // The same form once more has done what it does.
        assert_eq!(second.page.heading(), "How do you want to pay?");
        assert!(!second.page.says(TOO_OLD), "{}", second.page.body);
    }
    second.with_phone(Method::Qmoney, "+2207000001").await;
    for form in forms {
        let answer = world.send(form).await;
        first.open(answer.location()).await;
        assert_eq!(first.page.heading(), "Enter the code");
        assert!(first.page.says(TOO_OLD), "{}", first.page.body);
    }
    let hosted = of_checkout(&world, checkout).await;
    assert_eq!((hosted.attempts.len(), hosted.is_paid_by().count()), (2, 0));
    // Not enough money: from that page one can leave.
    second.press("/code", &[("code", "123456")]).await;
    second.reach("Not paid").await;
    let leave = second.prepare("/leave", &[]);
    first.reload().await;
    first.with_phone(Method::Qmoney, "+2207000000").await;
    let answer = world.send(leave).await;
    second.open(answer.location()).await;
    assert_eq!(second.page.heading(), "Enter the code");
    assert!(second.page.says(TOO_OLD), "{}", second.page.body);
    first.press("/code", &[("code", "123456")]).await;
    first.reach("Paid").await;
    world.has_clean_books().await;
}

/// A page of an earlier version names no payment.
#[tokio::test]
async fn a_form_that_names_no_payment_acts_on_the_current_one() {
    let world = World::new().await;
    let checkout = world.create(|_| {}).await.id;
    let mut payer = world.payer_at(format!("/checkout/{checkout}")).await;
    payer.with_phone(Method::Qmoney, "+2207000000").await;
    let (to, mut fields) = payer.page.form("/code").unwrap();
    let session = of_checkout(&world, checkout).await.session().unwrap().id;
    assert_eq!(fields.pop(), Some(("session".to_owned(), session.to_string())));
    fields.push(("code".into(), "123456".into()));
    world.send(crate::world::post(&to, &fields)).await;
    payer.reach("Paid").await;
}

/// Under a tag of its own: another one is no form of ours. A form of an earlier version names none, and begins nothing; to a
/// process of such a version the token alone is enough.
#[tokio::test]
async fn nobody_names_another_amount_than_the_page_did() {
    let world = World::new().await;
    let (id, payer) = billed(&world).await;
    let (to, hidden) = payer.page.form("/method").unwrap();
    assert_eq!(hidden[1], ("shown".into(), "11500 GMD".into()));
    let (token, tag) = (hidden[0].clone(), hidden[2].clone());
    assert_eq!(tag.0, "shown_tag");
    for (named, tag, status) in [
        (None, None, StatusCode::SEE_OTHER),
        (Some("11500 GMD"), None, StatusCode::FORBIDDEN),
        (Some("11500"), Some(&tag), StatusCode::FORBIDDEN),
        (Some("1 GMD"), Some(&tag), StatusCode::FORBIDDEN),
        (Some(""), Some(&tag), StatusCode::FORBIDDEN),
    ] {
        let mut fields = vec![token.clone(), ("method".into(), "wave".into())];
        fields.extend(named.map(|named| ("shown".to_owned(), named.to_owned())));
        fields.extend(tag.cloned());
        assert_eq!(world.send(crate::world::post(&to, &fields)).await.status, status, "{named:?}");
    }
    assert_eq!(begun(&world, id).await, []);
}

pub(super) fn question(name: &str) -> CustomField {
    let label = format!("Your {name}");
    CustomField { name: name.into(), label, kind: FieldType::Text, required: false, options: Vec::new() }
}

async fn link(world: &World, questions: &[&str]) -> Id<PaymentLink> {
    let questions = questions.iter().map(|name| question(name)).collect();
    link_of(world, Price::Fixed { amount: gmd(500) }, false, questions).await
}

pub(super) async fn link_of(
    world: &World,
    price: Price,
    collect_customer_info: bool,
    questions: Vec<CustomField>,
) -> Id<PaymentLink> {
    let terms = Terms {
        title: "Tea".into(),
        description: None,
        expiration_date: None,
        max_usage_count: None,
        success_url: None,
        failure_url: None,
        collect_customer_info,
        custom_fields: Some(questions),
        metadata: None,
    };
    let (scope, new) = (world.scope, NewPaymentLink { price, terms });
    let made = world.app.commit(move |tx, context| payment_links::create(tx, context, scope, &new)).await;
    made.unwrap().link.id
}

/// A link of 5.00 with a way back to the shop for whoever doesn't pay.
pub(super) async fn link_with_a_way_back(world: &World) -> Id<PaymentLink> {
    let id = link_of(world, Price::Fixed { amount: gmd(500) }, false, Vec::new()).await;
    let failure_url = Some(Some("https://shop.example/sorry".to_owned()));
    change_link(world, id, LinkChange { failure_url, ..LinkChange::default() }).await;
    id
}

pub(super) async fn change_link(world: &World, id: Id<PaymentLink>, change: LinkChange) {
    let scope = world.scope;
    let changed = world.app.commit(move |tx, context| payment_links::update(tx, context, scope, id, &change));
    changed.await.unwrap();
}

async fn ask_others(world: &World, id: Id<PaymentLink>, questions: &[&str]) {
    let questions = questions.iter().map(|name| question(name)).collect();
    change_link(world, id, LinkChange { custom_fields: Some(Some(questions)), ..LinkChange::default() }).await;
}

fn session_in(address: &str) -> Option<Id<PaymentSession>> {
    address.split(['/', '?']).find_map(|part| part.parse().ok())
}

/// In a form they are known by their places.
#[tokio::test]
async fn an_answer_belongs_to_the_question_that_the_page_asked() {
    let world = World::new().await;
    let (id, scope) = (link(&world, &["table", "seat"]).await, world.scope);
    let mut payer = world.payer_at(format!("/pay/{id}")).await;
    let answers = [("answer-0", "table 7"), ("answer-1", "seat 3"), ("method", "wave")];
    let form = payer.prepare("/method", &answers);
    ask_others(&world, id, &["seat", "table"]).await;
    let answer = world.send(form).await;
    assert_eq!(session_in(answer.location()), None, "nothing begins: {}", answer.location());
    payer.open(answer.location()).await;
    assert!(payer.page.says("This page was too old. Nothing was sent."), "{}", payer.page.body);
    let answers = [("answer-0", "seat 3"), ("answer-1", "table 7"), ("method", "wave")];
    payer.press("/method", &answers).await;
    let session = session_in(&payer.page.path);
    let found = world.app.read(move |tx, _| Ok(tx.peek::<PaymentSession>(scope, session.unwrap())?)).await;
    let told = found.unwrap().unwrap().metadata;
    assert_eq!((told.text("table").as_deref(), told.text("seat").as_deref()), (Some("table 7"), Some("seat 3")));
}

/// The first answer may never have come to its payer.
#[tokio::test]
async fn a_form_that_began_a_payment_leads_to_it_whatever_changed_since() {
    let world = World::new().await;
    for method in ["wave", "qmoney"] {
        let id = link(&world, &["table"]).await;
        let payer = world.payer_at(format!("/pay/{id}")).await;
        let send = || world.send(payer.prepare("/method", &[("answer-0", "7"), ("method", method)]));
        let first = session_in(send().await.location());
        assert!(first.is_some(), "{method}");
        ask_others(&world, id, &["seat"]).await;
        assert_eq!(session_in(send().await.location()), first, "{method}");
        change_link(&world, id, LinkChange { status: Some(Status::Inactive), ..LinkChange::default() }).await;
        assert_eq!(session_in(send().await.location()), first, "{method}");
    }
}

#[tokio::test]
async fn nobody_hears_that_nothing_was_sent_of_what_was() {
    let world = World::new().await;
    take_parts(&world, true).await;
    let (id, mut payer) = billed(&world).await;
    let send = || world.send(payer.prepare("/method", &[("method", "wave")]));
    send().await;
    record(&world, id, 1_500).await;
    let again = send().await;
    payer.open(again.location()).await;
    assert!(payer.page.says("100.00") && !payer.page.says("Nothing was sent"), "{}", payer.page.body);
    assert_eq!(begun(&world, id).await, [gmd(11_500)]);

    ask_for_code(&mut payer, "50").await;
    let send = || world.send(payer.prepare("/code", &[("code", "123456")]));
    send().await;
    let mut other = world.payer_at(format!("/invoice/{id}")).await;
    other.reach("We received 50.00 GMD").await;
    ask_for_code(&mut other, "20").await;
    let again = send().await;
    other.open(again.location()).await;
    assert_eq!(other.page.heading(), "Enter the code");
    assert!(!other.page.says("Nothing was sent"), "{}", other.page.body);
}

/// As its merchant, or time, ends it.
async fn end_link(world: &World, id: Id<PaymentLink>, how: &str) {
    let scope = world.scope;
    match how {
        "inactive" => {
            change_link(world, id, LinkChange { status: Some(Status::Inactive), ..LinkChange::default() }).await;
        }
        "expired" => {
            let end = Some(Some(world.now().plus(Duration::from_secs(60))));
            change_link(world, id, LinkChange { expiration_date: end, ..LinkChange::default() }).await;
            world.clock.advance(Duration::from_secs(61));
        }
        _ => world.app.commit(move |tx, context| payment_links::delete(tx, context, scope, id)).await.unwrap(),
    }
}

/// Nothing is offered there that would be refused; what was offered before is told.
#[tokio::test]
async fn what_was_begun_goes_on_alone_when_its_link_has_ended() {
    let world = World::new().await;
    let told = "This link takes no new payments any more. Nothing was sent. You can still finish the payment that you \
                began.";
    for how in ["inactive", "expired", "deleted"] {
        let id = link(&world, &[]).await;
        let mut by_code = world.payer_at(format!("/pay/{id}")).await;
        by_code.with_phone(Method::Qmoney, "+2207000000").await;
        let mut by_wave = world.payer_at(format!("/pay/{id}")).await;
        by_wave.choose(Method::Wave).await;
        let forms = [by_code.prepare("/resend", &[]), by_code.prepare("/other", &[]), by_wave.prepare("/other", &[])];
        let mut payers = Vec::new();
        for payer in [by_code, by_wave] {
            let session = session_in(&payer.page.path).unwrap();
            payers.push(world.payer_at(format!("/pay/{id}/{session}")).await);
        }
        end_link(&world, id, how).await;
        for payer in &mut payers {
            payer.reload().await;
            assert!(!payer.page.has_form("/resend") && !payer.page.has_form("/other"), "{how}: {}", payer.page.body);
        }
        for (form, at) in forms.into_iter().zip([0, 0, 1]) {
            payers[at].open(world.send(form).await.location()).await;
            let heading = ["Enter the code", "Continue in Wave"][at];
            assert_eq!(payers[at].page.heading(), heading, "{how}");
            assert!(payers[at].page.says(told), "{how}: {}", payers[at].page.body);
        }
        payers[0].press("/code", &[("code", "123456")]).await;
        payers[0].reach("Paid").await;
        payers[1].go_out("Open Wave").await;
        payers[1].decide("approve").await;
        payers[1].back().await;
        payers[1].reach("Paid").await;
    }
    world.has_clean_books().await;
}

#[tokio::test]
async fn a_method_that_is_offered_no_more_is_told() {
    let world = World::new().await;
    let (id, mut payer) = billed(&world).await;
    let wave = payer.prepare("/method", &[("method", "wave")]);
    payer.choose(Method::Afrimoney).await;
    let phone = payer.prepare("/phone", &[("phone", "+2207000000")]);
    let methods = Some(vec![Method::Card, Method::Qmoney]);
    set(&world, SettingsChange { enabled_methods: methods, ..SettingsChange::default() }).await;
    for (form, name) in [(wave, "Wave"), (phone, "Afrimoney")] {
        let answer = world.send(form).await;
        payer.open(answer.location()).await;
        assert!(payer.page.says(&format!("{name} could not start the payment. Nothing was taken.")));
        assert!(!payer.page.says(&format!("Pay with {name}")));
    }
    assert_eq!(begun(&world, id).await, []);
}
