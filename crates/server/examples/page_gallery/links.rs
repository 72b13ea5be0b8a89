//! The pages of payment links, in what they have that no other page has.

use super::super::pages::view::*;
use super::{ALL, Language, Voice, gmd, page};

pub(super) fn every(language: Language, voice: Voice) -> Vec<(&'static str, PaymentPage)> {
    let choose = || State::Choose { methods: ALL.to_vec(), problem: None, received: None, kept_apart: Vec::new() };
    let field = |name: &str, label, kind, required| Field {
        name: voice.say(name),
        label,
        kind,
        required,
        typed: None,
        error: None,
    };
    let own = |words: &str| Label::Own(voice.say(words));
    let amount = |least, most| FieldKind::Amount { currency: voice.say("GMD"), exponent: 2, least, most };
    let colours = FieldKind::Select { options: vec![voice.say("red"), voice.say("green")] };
    let fields = || {
        vec![
            field("amount", Label::Amount, amount(Some(gmd(5_000)), Some(gmd(500_000))), true),
            field("name", Label::Name, FieldKind::Name, true),
            field("email", Label::Email, FieldKind::Email, false),
            field("phone", Label::Phone, FieldKind::Phone, true),
            field("answer-0", own("Name of the pupil"), FieldKind::Text, true),
            field("answer-1", own("How many seats?"), FieldKind::Number, false),
            field("answer-2", own("Colour"), colours.clone(), true),
            field("answer-3", own("I have read the rules"), FieldKind::Checkbox, true),
        ]
    };
    let errors = [
        Some(FieldError::TooLittle),
        Some(FieldError::Missing),
        Some(FieldError::Format),
        Some(FieldError::Format),
        Some(FieldError::TooLong),
        Some(FieldError::Format),
        Some(FieldError::Missing),
        Some(FieldError::Missing),
    ];
    let wrong = |field: Field, error| Field { typed: voice.option("green"), error, ..field };
    let bounds = [amount(None, None), amount(Some(gmd(5_000)), None), amount(None, Some(gmd(5_000)))];
    let bounded =
        bounds.map(|kind| Field { error: Some(FieldError::TooMuch), ..field("amount", Label::Amount, kind, true) });
    let ended = |reason, standing| {
        let return_url = voice.option("https://kairababooks.example/");
        State::Closed { reason, standing, return_url }
    };
    let closed = |reason| ended(reason, Standing::NothingTaken);
    let unknown = ended(Closed::UsedUp, Standing::Unknown(Method::Wave));
    let held = State::Choose {
        methods: ALL.to_vec(),
        problem: Some(Problem::LastPlaceHeld),
        received: None,
        kept_apart: Vec::new(),
    };
    let none = State::Choose { methods: Vec::new(), problem: None, received: None, kept_apart: Vec::new() };
    vec![
        ("link-fixed", link(choose(), Some(gmd(25_000)), language, voice)),
        ("link-asking", PaymentPage { fields: fields(), ..link(choose(), None, language, voice) }),
        (
            "link-wrong",
            PaymentPage {
                fields: fields().into_iter().zip(errors).map(|(field, error)| wrong(field, error)).collect(),
                ..link(choose(), None, language, voice)
            },
        ),
        ("link-bounds", PaymentPage { fields: bounded.to_vec(), ..link(choose(), None, language, voice) }),
        ("link-held", link(held, Some(gmd(25_000)), language, voice)),
        ("link-none", link(none, Some(gmd(25_000)), language, voice)),
        ("link-closed", link(closed(Closed::ByMerchant), Some(gmd(25_000)), language, voice)),
        ("link-expired", link(closed(Closed::Expired), Some(gmd(25_000)), language, voice)),
        ("link-used-up", link(closed(Closed::UsedUp), None, language, voice)),
        ("link-used-up-unknown", link(unknown, Some(gmd(25_000)), language, voice)),
    ]
}

fn link(state: State, amount: Option<Amount>, language: Language, voice: Voice) -> PaymentPage {
    PaymentPage {
        amount,
        subject: Subject::Link {
            title: voice.say("Concert at the river, 14 February"),
            description: voice.option("One seat, wherever you like."),
            address: Some("https://pay.kairababooks.example/pay/pl_01h455vb4pex5vsknk084sn02q".to_owned()),
        },
        path: voice.say("/pay/pl_01jd3v9k2m4x8q7b5n6p0r1s2t"),
        payer: Vec::new(),
        ..page(state, language, voice)
    }
}
