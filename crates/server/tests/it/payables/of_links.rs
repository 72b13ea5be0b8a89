//! Payment links: many payers, an exact number of them, and what they answer.

use super::*;

#[tokio::test]
async fn a_use_that_is_held_comes_back_after_an_hour() {
    let world = World::new().await;
    world.clock.stop();
    let thanks = "https://shop.example/thanks";
    let link = world.link(|terms| {
        terms.max_usage_count = Some(1);
        terms.success_url = Some(thanks.into());
    });
    let link = link.await;
    let absent = world.initialize(pay(link, Method::Wave, QUIET)).await.unwrap();
    assert_eq!(world.initialize(pay(link, Method::Wave, QUIET)).await, Err("payment_in_progress".into()));
    world.clock.advance(Duration::from_secs(3600));
    world.stored_attempt(absent).await;
    let next = world.initialize(pay(link, Method::Afrimoney, APPROVES)).await.unwrap();
    world.clock.advance(Duration::from_secs(5));
    world.reach(next, SessionStatus::Succeeded).await;
    assert_eq!(world.stored_link(link).await.stored_status(), payment_link::Status::Inactive);
    assert_eq!(world.initialize(pay(link, Method::Wave, QUIET)).await, Err("payment_link_inactive".into()));
    // The one who was away paid in the last moment, and the rail says so now: still money, and counted.
    world.confirm(&world.attempt(absent).await).await;
    let late = world.attempt(absent).await;
    assert_eq!((late.status(), late.late), (TransactionStatus::Completed, true));
    assert_eq!(world.stored_link(link).await.usage_count(), 2);
    assert_eq!(world.told(absent).await, ["payment.succeeded"]);
    assert_eq!(world.told(link.object_id()).await, ["payment_link.created", "payment_link.deactivated"]);
    // Nobody knows yet whether there is a place for it: the shop that thanks is the other payer's.
    let page_of = |session: Id<PaymentSession>| world.payer_at(format!("/pay/{}/{session}", link.object_id()));
    let (late_page, paid_page) = (page_of(absent).await.page, page_of(next).await.page);
    let number = late.id.to_string();
    assert_eq!(late_page.heading(), "Your money arrived late");
    for words in ["It arrived after the time to pay was over.", "either delivers or pays you back", &number] {
        assert!(late_page.says(words), "{words}: {}", late_page.body);
    }
    assert!(!late_page.body.contains(thanks), "{}", late_page.body);
    assert_eq!(paid_page.heading(), "Paid");
    assert!(paid_page.body.contains(thanks), "{}", paid_page.body);
    world.books_are_right().await;
}

/// The one payer that a link has room for was given up, nobody else came, and the money is there after all: late, and the link
/// is used up by it.
#[tokio::test]
async fn late_money_uses_a_link_up() {
    let world = World::new().await;
    world.clock.stop();
    let link = world.link(|terms| terms.max_usage_count = Some(1)).await;
    let absent = world.initialize(pay(link, Method::Wave, QUIET)).await.unwrap();
    world.clock.advance(Duration::from_secs(3600));
    assert_eq!(world.stored_attempt(absent).await.status(), TransactionStatus::Expired);
    assert_eq!(world.told(link.object_id()).await, ["payment_link.created"]);
    world.confirm(&world.attempt(absent).await).await;
    let late = world.attempt(absent).await;
    assert_eq!((late.status(), late.late), (TransactionStatus::Completed, true));
    let used = world.stored_link(link).await;
    assert_eq!((used.usage_count(), used.stored_status()), (1, payment_link::Status::Inactive));
    assert_eq!(world.told(absent).await, ["payment.succeeded"]);
    assert_eq!(world.told(link.object_id()).await, ["payment_link.created", "payment_link.deactivated"]);
    // And so it is described.
    let document: serde_json::Value = serde_json::from_str(&dalasi::http::document_text()).unwrap();
    let described = document["webhooks"]["payment.succeeded"]["post"]["description"].as_str().unwrap();
    assert!(described.contains("`payment_link.deactivated`"), "{described}");
    world.books_are_right().await;
}

/// An attempt that had run out before the one that paid was begun says nothing of that one's time.
#[tokio::test]
async fn what_was_given_up_in_its_time_is_not_late_for_one_before_it() {
    let world = World::new().await;
    world.clock.stop();
    let link = world.link(|_| {}).await;
    let gone = world.initialize(pay(link, Method::Wave, QUIET)).await.unwrap();
    world.clock.advance(Duration::from_secs(86_400));
    assert_eq!(world.stored_attempt(gone).await.status(), TransactionStatus::Expired);
    let anew = Initialize { replaces: Some(gone), ..pay(link, Method::Wave, QUIET) };
    let given_up = world.initialize(anew).await.unwrap();
    let mut payer = world.payer_at(format!("/pay/{}/{given_up}", link.object_id())).await;
    payer.press("/other", &[]).await;
    payer.choose(Method::Card).await;
    assert_eq!(payer.page.heading(), "Continue on the card page");
    world.confirm(&world.attempt(given_up).await).await;
    assert!(world.attempt(given_up).await.late);
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Paid", "{}", payer.page.body);
    world.books_are_right().await;
}

#[tokio::test]
async fn money_is_late_from_the_moment_the_session_ends() {
    let world = World::new().await;
    world.clock.stop();
    let link = world.link(|terms| terms.max_usage_count = Some(1)).await;
    // The timer that closes the session has not come yet, or has: it is all the same.
    for (ahead, is_late) in [(Duration::from_secs(3599), false), (Duration::from_secs(3600), true)] {
        let link = if is_late { world.link(|terms| terms.max_usage_count = Some(1)).await } else { link };
        let session = world.initialize(pay(link, Method::Wave, QUIET)).await.unwrap();
        let attempt = world.attempt(session).await;
        world.clock.advance(ahead);
        world.confirm(&attempt).await;
        let paid = world.attempt(session).await;
        assert_eq!((paid.status(), paid.late), (TransactionStatus::Completed, is_late), "{ahead:?}");
    }
    world.books_are_right().await;
}

#[tokio::test]
async fn what_a_payer_answers_stays_with_the_payment() {
    let world = World::new().await;
    let question = |name: &str, kind, required| CustomField {
        name: name.into(),
        label: name.into(),
        kind,
        required,
        options: Vec::new(),
    };
    let link = world
        .link(|terms| {
            let questions = vec![
                question("pupil", FieldType::Text, true),
                question("age", FieldType::Number, false),
                question("phone", FieldType::Phone, false),
                question("agreed", FieldType::Checkbox, true),
            ];
            terms.custom_fields = Some(questions);
        })
        .await;
    let metadata = |text: &str| Metadata::from_canonical(text.into());
    let opened = Initialize {
        method: None,
        metadata: Some(metadata(r#"{"desk":"3"}"#)),
        answers: metadata(r#"{"pupil":" Awa ","age":7.50,"phone":"7000000"}"#),
        ..pay(link, Method::Wave, QUIET)
    };
    let session = world.initialize(opened).await.unwrap();
    let begun = Initialize { target: Target::Session(session), ..pay(link, Method::Wave, QUIET) };
    assert_eq!(world.initialize(begun.clone()).await, Err("validation_failed".into()), "not agreed yet");
    let agreed = Initialize { answers: metadata(r#"{"agreed":true}"#), ..begun };
    assert_eq!(world.initialize(agreed).await, Ok(session));
    let kept = world.attempt(session).await.metadata;
    let expected = r#"{"desk":"3","age":"7.50","agreed":"true","phone":"+2207000000","pupil":"Awa"}"#;
    assert_eq!(kept.as_json(), expected);
    // Another method is another session of the same payer, who is not asked again.
    let card = Initialize { target: Target::Session(session), ..pay(link, Method::Card, QUIET) };
    let other = world.initialize(card).await.unwrap();
    assert_ne!(other, session);
    assert_eq!(world.attempt(other).await.metadata, kept);
    world.books_are_right().await;
}

#[tokio::test]
async fn a_code_ends_what_began_while_the_link_was_there() {
    let world = World::new().await;
    let link = world.link(|_| {}).await;
    let session = world.initialize(pay(link, Method::Qmoney, APPROVES)).await.unwrap();
    let Payable::PaymentLink(id) = link else { unreachable!() };
    let scope = world.scope;
    let off = LinkChange { status: Some(payment_link::Status::Inactive), ..LinkChange::default() };
    let update = move |tx: &mut store::Tx<'_>, context: &dalasi::app::Context| {
        payment_links::update(tx, context, scope, id, &off)
    };
    world.app.commit(update).await.unwrap();
    let again = Initialize { target: Target::Session(session), ..pay(link, Method::Qmoney, APPROVES) };
    assert_eq!(world.initialize(again.clone()).await, Err("payment_link_inactive".into()));
    let code = Initialize { method: None, has_code: true, ..again };
    let render = |_: Result<&Payment, &Failure>| Reply::new(200, "null".into());
    world.app.initialize(world.scope, code, Some("123456".into()), None, render).await.unwrap();
    world.reach(session, SessionStatus::Succeeded).await;
    assert_eq!(world.stored_link(link).await.usage_count(), 1);
    world.books_are_right().await;
}

/// Its time is over, and no timer has stored that: what the clock has decided is told before the deletion.
#[tokio::test]
async fn a_link_whose_time_ran_out_was_inactive_before_it_was_deleted() {
    let world = World::new().await;
    world.rest().await;
    world.clock.stop();
    let ends_at = world.now().plus(DAY);
    let link = world.link(|terms| terms.expiration_date = Some(ends_at)).await;
    world.clock.advance(DAY + Duration::from_secs(1));
    let Payable::PaymentLink(id) = link else { unreachable!() };
    let scope = world.scope;
    world.app.commit(move |tx, context| payment_links::delete(tx, context, scope, id)).await.unwrap();
    let told = ["payment_link.created", "payment_link.deactivated", "payment_link.deleted"];
    assert_eq!(world.told(link.object_id()).await, told);
    assert_eq!(world.stored_link(link).await.stored_status(), payment_link::Status::Deleted);
    world.books_are_right().await;
}

#[tokio::test]
async fn a_link_that_is_gone_still_counts_what_was_begun() {
    let world = World::new().await;
    let link = world.link(|_| {}).await;
    let session = world.initialize(pay(link, Method::Wave, QUIET)).await.unwrap();
    let Payable::PaymentLink(id) = link else { unreachable!() };
    let scope = world.scope;
    world.app.commit(move |tx, context| payment_links::delete(tx, context, scope, id)).await.unwrap();
    let refused = world.app.read(move |tx, _| payment_links::find(tx, scope, id)).await.unwrap_err();
    assert_eq!(refused, Failure::Refused(Refusal::not_found::<PaymentLink>()));
    world.confirm(&world.attempt(session).await).await;
    let gone = world.stored_link(link).await;
    assert_eq!((gone.usage_count(), gone.stored_status()), (1, payment_link::Status::Deleted));
    assert_eq!(world.told(session).await, ["payment.succeeded"]);
    world.books_are_right().await;
}
