//! What a payer typed into a form that did nothing stays in its fields, in the language of the page.

use std::time::Duration;

use dalasi::app::organizations::SettingsChange;
use dalasi::app::payment_links::LinkChange;
use domain::payment_link::{CustomField, FieldType, PaymentLink, Price};
use domain::{Currency, Id, Method, Mode, Money};

use super::changes::{TOO_OLD, change_link, link_of, question, set, take_parts};
use super::replaced::{session, shown};
use crate::world::{Payer, World};

const TYPED: [(&str, &str); 6] = [
    ("amount", "1,250.50"),
    ("name", "Fatou Ceesay"),
    ("email", "fatou@example.gm"),
    ("phone", "+2207123456"),
    ("answer-0", "7.5"),
    ("answer-1", "By the window"),
];

fn questions(names: [&str; 2]) -> Vec<CustomField> {
    let [number, text] = names.map(question);
    vec![CustomField { kind: FieldType::Number, ..number }, text]
}

/// Of an amount that its payer chooses, who is asked for everything.
async fn link(world: &World) -> Id<PaymentLink> {
    let price = Price::Variable { currency: Currency::gmd(), min: None, max: None, suggested: None };
    link_of(world, price, true, questions(["weight", "table"])).await
}

async fn ask_others(world: &World, id: Id<PaymentLink>) {
    let questions = questions(["age", "name"]);
    change_link(world, id, LinkChange { custom_fields: Some(Some(questions)), ..LinkChange::default() }).await;
}

async fn offer(world: &World, methods: &[Method]) {
    set(world, SettingsChange { enabled_methods: Some(methods.to_vec()), ..SettingsChange::default() }).await;
}

/// `fields`, and that nothing else is filled in.
fn expect_typed(payer: &Payer<'_>, fields: &[(&str, &str)]) {
    for (name, _) in TYPED {
        let typed = fields.iter().find(|(it, _)| *it == name).map_or("", |(_, typed)| typed);
        assert_eq!(payer.page.value_of(name).as_deref(), Some(typed), "{name}: {}", payer.page.body);
    }
}

#[tokio::test]
async fn a_link_asks_nothing_twice_whatever_kept_it_from_starting() {
    let world = World::new().await;
    world.clock.stop();
    let id = link(&world).await;
    let mut payer = world.payer_at(format!("/pay/{id}")).await;
    let with = |method| [&TYPED[..], &[("method", method)]].concat();
    let (stale, gone) = (payer.prepare("/method", &with("wave")), payer.prepare("/method", &with("qmoney")));

    offer(&world, &[Method::Wave, Method::Card]).await;
    let answer = world.send(gone).await;
    payer.open(answer.location()).await;
    assert!(payer.page.says("QMoney could not start the payment. Nothing was taken."), "{}", payer.page.body);
    expect_typed(&payer, &TYPED);

    world.clock.advance(Duration::from_secs(25 * 3600));
    let answer = world.send(stale).await;
    payer.open(answer.location()).await;
    assert!(payer.page.says(TOO_OLD));
    expect_typed(&payer, &TYPED);

    payer.open(&payer.page.link("Français").unwrap()).await;
    let mut typed = TYPED;
    (typed[0].1, typed[4].1) = ("1250,50", "7,5");
    expect_typed(&payer, &typed);
    payer.open(&payer.page.link("English").unwrap()).await;
    (typed[0].1, typed[4].1) = ("1250.50", "7.5");
    expect_typed(&payer, &typed);

    // Answers are known by the places of their questions.
    ask_others(&world, id).await;
    payer.open(answer.location()).await;
    expect_typed(&payer, &TYPED[..4]);
    payer.press("/method", &with("wave")).await;
    assert_eq!(payer.page.heading(), "Continue in Wave");
}

#[tokio::test]
async fn the_page_that_asks_for_a_phone_keeps_it_and_the_part_that_was_chosen() {
    let world = World::new().await;
    world.clock.stop();
    take_parts(&world, true).await;
    let id = crate::invoices::create(&world, crate::invoices::rice(&world)).await.unwrap().id;
    let mut payer = world.payer_at(format!("/invoice/{id}")).await;
    payer.press("/method", &[("method", "afrimoney"), ("amount", "40.00")]).await;
    let old = payer.prepare("/phone", &[("phone", "+2207000001")]);
    world.clock.advance(Duration::from_secs(25 * 3600));
    let answer = world.send(old).await;
    for language in ["", "&lang=fr"] {
        payer.open(&format!("{}{language}", answer.location())).await;
        assert_eq!(payer.page.value_of("phone").as_deref(), Some("+2207000001"));
        assert_eq!(payer.page.value_of("amount").as_deref(), Some("40.00"), "{}", payer.page.body);
    }
    payer.open(answer.location()).await;
    assert!(payer.page.says(TOO_OLD), "{}", payer.page.body);
    // What is said of it is over, the choice is not: a part does not become all.
    world.clock.advance(Duration::from_secs(11 * 60));
    payer.open(answer.location()).await;
    assert!(!payer.page.says(TOO_OLD));
    assert_eq!(payer.page.value_of("amount").as_deref(), Some("40.00"), "{}", payer.page.body);
    payer.press("/phone", &[("phone", "+2207000001")]).await;
    assert_eq!(payer.page.heading(), "Approve it on your phone");
}

/// A wallet of ours is asked by a Gambian number alone; who pays can have any.
#[tokio::test]
async fn a_link_takes_the_phone_of_any_country_and_says_so() {
    let world = World::new().await;
    let price = Price::Fixed { amount: Money::new(500, Currency::gmd()) };
    let id = link_of(&world, price, true, Vec::new()).await;
    let mut payer = world.payer_at(format!("/pay/{id}")).await;
    let any = "or another country’s number with + and its code";
    assert!(payer.page.says(any), "{}", payer.page.body);
    payer.press("/method", &[("name", "Awa"), ("phone", "12"), ("method", "wave")]).await;
    assert!(payer.page.says(&format!("Enter a number with +220 and 7 digits, such as +220 712 3456, {any}.")));
    let name = "Aminata Sie\u{301}";
    payer.press("/method", &[("name", name), ("phone", "+221 77 123 45 67"), ("method", "wave")]).await;
    assert_eq!(payer.page.heading(), "Continue in Wave");
    let hosted = shown(&world, id, session(&payer)).await;
    assert_eq!(hosted.session().unwrap().payer.name.as_deref(), Some("Aminata Si\u{e9}"), "written in one way");
}

/// As many questions as there can be, each answered as long as its field takes it.
#[tokio::test]
async fn the_longest_form_that_a_payer_can_fill_in_is_taken() {
    let world = World::new().await;
    let price = Price::Fixed { amount: Money::new(500, Currency::gmd()) };
    let questions = (0..20).map(|index| question(&format!("thing {index}"))).collect();
    let id = link_of(&world, price, true, questions).await;
    let mut payer = world.payer_at(format!("/pay/{id}")).await;
    let (name, answer) = ("ߊ߬".repeat(100), "ह".repeat(500));
    let answers: Vec<_> = (0..20).map(|index| (format!("answer-{index}"), answer.as_str())).collect();
    let mut fields = vec![("name", name.as_str()), ("phone", "+2207123456"), ("method", "wave")];
    fields.extend(answers.iter().map(|(name, answer)| (name.as_str(), *answer)));
    payer.press("/method", &fields).await;
    assert_eq!(payer.page.heading(), "Continue in Wave", "{}", payer.page.body);
}

/// Of a currency without decimals too: whoever writes as the page says is not refused again.
#[tokio::test]
async fn the_example_of_an_amount_is_taken_in_every_currency() {
    let world = World::new().await;
    let offered = world.app.context().offered(Mode::Test);
    let mut codes: Vec<&str> = offered.iter().flat_map(|(_, codes)| codes.iter().copied()).collect();
    codes.sort_unstable();
    codes.dedup();
    assert!(codes.contains(&"GMD") && codes.contains(&"XOF"), "{codes:?}");
    for code in codes {
        let currency = Currency::parse(code).unwrap();
        let (method, _) = offered.iter().find(|(_, codes)| codes.contains(&code)).unwrap();
        let price = Price::Variable { currency, min: None, max: None, suggested: None };
        let id = link_of(&world, price, false, Vec::new()).await;
        for (language, before) in [("en", "Write the amount in digits, such as "), ("fr", "chiffres, par exemple ")] {
            let mut payer = world.payer_at(format!("/pay/{id}?lang={language}")).await;
            payer.press("/method", &[("amount", "ten"), ("method", method.as_str())]).await;
            let (_, rest) = payer.page.body.split_once(before).unwrap_or_else(|| panic!("{}", payer.page.body));
            let example = rest.split('<').next().unwrap().trim_end_matches('.').to_owned();
            payer.press("/method", &[("amount", example.as_str()), ("method", method.as_str())]).await;
            assert!(payer.page.path.contains("/ps_"), "{example} {code}: {}", payer.page.body);
        }
    }
}

#[tokio::test]
async fn an_amount_of_nothing_and_one_beyond_all_bounds_have_words_of_their_own() {
    let world = World::new().await;
    let (nothing, too_large) = ("Write an amount above 0.", "This amount is too large. Write a smaller one.");
    let bound = |minor| Some(Money::new(minor, Currency::gmd()));
    for (min, max, words) in [
        (None, None, [nothing, nothing, too_large]),
        (bound(5_000), bound(9_000), ["At least 50.00 GMD", "At least 50.00 GMD", "At most 90.00 GMD"]),
    ] {
        let price = Price::Variable { currency: Currency::gmd(), min, max, suggested: None };
        let id = link_of(&world, price, false, Vec::new()).await;
        let mut payer = world.payer_at(format!("/pay/{id}")).await;
        for (typed, words) in ["0", "-5", "9999999999999"].into_iter().zip(words) {
            payer.press("/method", &[("amount", typed), ("method", "wave")]).await;
            assert!(payer.page.says(&format!("Amount: {words}")), "{typed}: {}", payer.page.body);
        }
    }
    take_parts(&world, true).await;
    let id = crate::invoices::create(&world, crate::invoices::rice(&world)).await.unwrap().id;
    let mut payer = world.payer_at(format!("/invoice/{id}")).await;
    let left = "Only 115.00 GMD is left to pay.";
    let format = "Write the amount in digits, such as 50.00.";
    for (typed, words) in [("0.00", nothing), ("9999999999999", left), ("1.005", format)] {
        payer.press("/method", &[("amount", typed), ("method", "wave")]).await;
        assert!(payer.page.says(words), "{typed}: {}", payer.page.body);
    }
    payer.open(&payer.page.link("Français").unwrap()).await;
    payer.press("/method", &[("amount", "0"), ("method", "wave")]).await;
    assert!(payer.page.says("Écrivez un montant au-dessus de 0."), "{}", payer.page.body);
}
