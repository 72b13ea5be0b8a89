//! Every state of every page, with sample data: for looking at, for the accessibility check, and for the
//! tests of size and escaping, which all have to see the same pages.

use super::mask;
use super::pages::assets::{Asset, SCRIPT, VERIFY_SCRIPT};
use super::pages::headers::Nonce;
use super::pages::text::{Language, Locale};
use super::pages::view::*;
use super::pages::{message, payment, simulator, verify};

#[path = "invoices.rs"]
mod invoices;
#[path = "links.rs"]
mod links;

pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) html: String,
    /// What the page loads beside the style sheet.
    pub(crate) script: Option<&'static Asset>,
}

/// Whose data the samples hold.
#[derive(Clone, Copy)]
pub(crate) enum Voice {
    Friendly,
    /// This text in every place that takes text.
    Hostile(&'static str),
}

impl Voice {
    fn say(self, friendly: &str) -> String {
        match self {
            Self::Friendly => friendly.to_owned(),
            Self::Hostile(text) => text.to_owned(),
        }
    }

    fn option(self, friendly: &str) -> Option<String> {
        Some(self.say(friendly))
    }
}

const SHOP: &str = "https://kairababooks.example/thanks?session_id=cs_01";

pub(crate) fn every(locale: Locale, voice: Voice) -> Vec<Sample> {
    let language = Language { locale, chosen: true };
    let nonce = Nonce::from_random([0x5a; 16]);
    let mut samples = Vec::new();

    for (name, state) in states(voice) {
        let page = page(state, language, voice);
        samples.push(Sample {
            name: format!("checkout-{name}"),
            html: payment::render(&page, &nonce),
            script: Some(&SCRIPT),
        });
    }
    for (name, page) in variations(language, voice) {
        samples.push(Sample {
            name: format!("checkout-{name}"),
            html: payment::render(&page, &nonce),
            script: Some(&SCRIPT),
        });
    }
    for (name, page) in invoices::every(language, voice).into_iter().chain(links::every(language, voice)) {
        samples.push(Sample { name: name.to_owned(), html: payment::render(&page, &nonce), script: Some(&SCRIPT) });
    }
    for (name, scene) in scenes(voice) {
        let page = SimulatorPage {
            merchant_name: voice.say("Kairaba Books"),
            amount: gmd(150_000),
            language,
            path: voice.say("/simulator/sim_token"),
            form_token: voice.say("ft_0123456789abcdef0123456789abcdef"),
            scene,
        };
        samples.push(Sample {
            name: format!("simulator-{name}"),
            html: simulator::render(&page, &nonce),
            script: None,
        });
    }
    for (name, asked) in receipts(voice) {
        let page = VerifyPage {
            language,
            path: voice.say("/verify"),
            keys: vec![ReceiptKey { id: [7; 8], bytes: [7; 32] }; 3],
            host: voice.say("pay.kairababooks.example"),
            asked,
        };
        let html = verify::render(&page, &nonce);
        samples.push(Sample { name: name.to_owned(), html, script: Some(&VERIFY_SCRIPT) });
    }
    let messages = [
        ("not-found", Message::NotFound),
        ("foreign-form", Message::ForeignForm),
        ("too-large", Message::TooLarge),
        ("too-many", Message::TooMany),
        ("unavailable", Message::Unavailable),
        ("fault", Message::Fault { request_id: voice.say("req_01jd3v9k2m4x8q7") }),
    ];
    for (name, message) in messages {
        let page = MessagePage { language, path: voice.say("/checkout/cs_01jd3v"), message };
        samples.push(Sample { name: format!("message-{name}"), html: message::render(&page, &nonce), script: None });
    }
    samples
}

fn receipts(voice: Voice) -> [(&'static str, Option<AskedReceipt>); 4] {
    let issued = IssuedReceipt {
        merchant: voice.say("Kairaba Books"),
        number: voice.say("RCT-2026-001"),
        amount: gmd(150_000),
        refunded: Some(gmd(2_500)),
        paid_at: 1_795_273_500,
        test_mode: true,
    };
    let asked = |typed, answer| Some(AskedReceipt { typed: Some(voice.say(typed)), answer });
    [
        ("verify", None),
        ("verify-malformed", asked("5f0c9a7b", ReceiptAnswer::Malformed)),
        ("verify-not-issued", asked("5f0c9a7be1d24386a0f4c2e8b19d7360", ReceiptAnswer::Unknown)),
        ("verify-issued", asked("5f0c9a7be1d24386a0f4c2e8b19d7360", ReceiptAnswer::Issued(issued))),
    ]
}

fn gmd(minor: i64) -> Amount {
    Amount { minor, exponent: 2, currency: "GMD".to_owned() }
}

fn page(state: State, language: Language, voice: Voice) -> PaymentPage {
    PaymentPage {
        merchant: Merchant { name: voice.say("Kairaba Books"), logo_path: None, accent: voice.option("#0b5d50") },
        amount: Some(Amount { currency: voice.say("GMD"), ..gmd(150_000) }),
        subject: Subject::Order {
            description: voice.option("Two books and a map of the river"),
            reference: voice.option("ORDER-2026-0417"),
            items: items(voice),
        },
        payer: match voice {
            Voice::Friendly => {
                vec![mask::phone("+2207123412"), mask::email("fatou@example.gm")]
            }
            Voice::Hostile(text) => vec![text.to_owned()],
        },
        test_mode: false,
        language,
        path: voice.say("/checkout/cs_01jd3v9k2m4x8q7b5n6p0r1s2t"),
        kept: Vec::new(),
        revision: voice.say("7-2"),
        form_token: voice.say("ft_0123456789abcdef0123456789abcdef"),
        shown: Some(Shown { text: voice.say("150000 GMD"), tag: voice.say("q3Vb0xk7tQ") }),
        session: Some(voice.say("ps_01h455vc1nf1ysr3q8s9p3k4mh")),
        time_left: None,
        reads: 2,
        leave: Some(Leave::ToShop),
        fields: Vec::new(),
        part: None,
        chosen_part: None,
        unsettled: false,
        state,
    }
}

fn items(voice: Voice) -> Vec<Item> {
    vec![
        Item { description: voice.say("Reading the River"), quantity: 2, total: gmd(110_000) },
        Item { description: voice.say("Map of the Gambia, folded"), quantity: 1, total: gmd(40_000) },
    ]
}

const ALL: [Method; 4] = [Method::Wave, Method::Afrimoney, Method::Qmoney, Method::Card];

fn states(voice: Voice) -> Vec<(&'static str, State)> {
    let phone = || match voice {
        Voice::Friendly => mask::phone("+2207123412"),
        Voice::Hostile(text) => text.to_owned(),
    };
    let receipt = |method| Receipt {
        amount: gmd(150_000),
        method,
        paid_at: 1_795_273_500,
        payment: voice.say("txn_01jd3v9k2m4x8q7b5n6p0r1s2t"),
        refunded: None,
    };
    let back = |minor, is_whole| Some(Refunded { amount: gmd(minor), is_whole });
    let second = |refunded| {
        vec![Apart {
            amount: gmd(150_000),
            payment: voice.say("txn_01jd3vzzzzzzzzzzzzzzzzzzzz"),
            is_kept: true,
            refunded,
        }]
    };
    let late = |receipt, after, return_url| State::PaidLate {
        after,
        receipts: vec![receipt],
        kept_apart: Vec::new(),
        return_url,
    };
    let shop = || voice.option(SHOP);
    vec![
        ("choose", State::Choose { methods: ALL.to_vec(), problem: None, received: None, kept_apart: Vec::new() }),
        (
            "choose-one",
            State::Choose { methods: vec![Method::Wave], problem: None, received: None, kept_apart: Vec::new() },
        ),
        ("choose-none", State::Choose { methods: Vec::new(), problem: None, received: None, kept_apart: Vec::new() }),
        (
            "choose-checking",
            State::Choose {
                methods: ALL.to_vec(),
                problem: Some(Problem::InProgress),
                received: None,
                kept_apart: Vec::new(),
            },
        ),
        (
            "choose-problem",
            State::Choose {
                methods: ALL.to_vec(),
                problem: Some(Problem::NotStarted(Method::Wave)),
                received: None,
                kept_apart: Vec::new(),
            },
        ),
        (
            "choose-one-problem",
            State::Choose {
                methods: vec![Method::Card],
                problem: Some(Problem::NotStarted(Method::Card)),
                received: None,
                kept_apart: Vec::new(),
            },
        ),
        (
            "phone",
            State::NeedsPhone {
                method: Method::Afrimoney,
                known: None,
                typed: None,
                error: None,
                problem: None,
                other_methods: true,
            },
        ),
        (
            "phone-known",
            State::NeedsPhone {
                method: Method::Qmoney,
                known: Some(phone()),
                typed: None,
                error: None,
                problem: None,
                other_methods: true,
            },
        ),
        (
            "phone-error",
            State::NeedsPhone {
                method: Method::Qmoney,
                known: None,
                typed: voice.option("+220 712 34"),
                error: Some(PhoneError::Format),
                problem: None,
                other_methods: true,
            },
        ),
        (
            "phone-problem",
            State::NeedsPhone {
                method: Method::Qmoney,
                known: Some(phone()),
                typed: voice.option("+220 712 34"),
                error: Some(PhoneError::Format),
                problem: Some(Problem::InProgress),
                other_methods: true,
            },
        ),
        (
            "approve",
            State::ApproveOnPhone {
                method: Method::Afrimoney,
                phone: phone(),
                problem: None,
                other_methods: true,
                simulator_url: None,
            },
        ),
        (
            "approve-problem",
            State::ApproveOnPhone {
                method: Method::Afrimoney,
                phone: phone(),
                problem: Some(Problem::TooOften),
                other_methods: false,
                simulator_url: None,
            },
        ),
        (
            "code",
            State::EnterCode {
                method: Method::Qmoney,
                phone: phone(),
                length: 6,
                attempts_left: 3,
                error: None,
                can_resend_in: Some(30),
                other_methods: true,
                simulator_code: None,
            },
        ),
        (
            "code-wrong",
            State::EnterCode {
                method: Method::Qmoney,
                phone: phone(),
                length: 6,
                attempts_left: 1,
                error: Some(CodeError::Wrong),
                can_resend_in: Some(0),
                other_methods: true,
                simulator_code: None,
            },
        ),
        (
            "redirect",
            State::Redirecting {
                method: Method::Wave,
                url: voice.say("https://pay.wave.com/c/cos-1b01sghpg100j"),
                automatic: true,
                problem: None,
                other_methods: true,
            },
        ),
        (
            "redirect-again",
            State::Redirecting {
                method: Method::Card,
                url: voice.say("https://cards.example/pay"),
                automatic: false,
                problem: None,
                other_methods: true,
            },
        ),
        (
            "redirect-only",
            State::Redirecting {
                method: Method::Wave,
                url: voice.say("https://pay.wave.com/c/cos-1b01sghpg100j"),
                automatic: false,
                problem: Some(Problem::NoNewPayment),
                other_methods: false,
            },
        ),
        ("checking", State::Checking { method: Method::Wave, attempt_url: None }),
        (
            "checking-card",
            State::Checking { method: Method::Card, attempt_url: voice.option("https://pay.example/c/1") },
        ),
        ("leaving", State::Leaving { return_url: voice.say(SHOP), automatic: true }),
        ("left", State::Leaving { return_url: voice.say(SHOP), automatic: false }),
        ("paid", State::Paid { receipt: Some(receipt(Method::Wave)), return_url: shop() }),
        ("paid-no-shop", State::Paid { receipt: Some(receipt(Method::Card)), return_url: None }),
        (
            "not-paid",
            State::NotPaid {
                method: Method::Wave,
                reason: Reason::InsufficientFunds,
                methods: ALL.to_vec(),
                kept_apart: Vec::new(),
            },
        ),
        (
            "not-paid-one",
            State::NotPaid {
                method: Method::Card,
                reason: Reason::Declined,
                methods: vec![Method::Card],
                kept_apart: Vec::new(),
            },
        ),
        ("expired", State::Expired { standing: Standing::NothingTaken, return_url: shop() }),
        ("expired-unknown", State::Expired { standing: Standing::Unknown(Method::Afrimoney), return_url: shop() }),
        (
            "cancelled",
            State::Cancelled { standing: Standing::NothingTaken, kept_apart: Vec::new(), return_url: shop() },
        ),
        (
            "cancelled-unknown",
            State::Cancelled { standing: Standing::Unknown(Method::Card), kept_apart: Vec::new(), return_url: None },
        ),
        ("paid-late", late(receipt(Method::Afrimoney), End::Expiry, shop())),
        ("paid-late-cancelled", late(receipt(Method::Wave), End::Cancellation, None)),
        (
            "already-paid",
            State::AlreadyPaid {
                receipts: vec![receipt(Method::Qmoney)],
                second_payments: Vec::new(),
                return_url: shop(),
            },
        ),
        (
            "paid-twice",
            State::AlreadyPaid {
                receipts: vec![receipt(Method::Qmoney)],
                second_payments: second(None),
                return_url: shop(),
            },
        ),
        (
            "paid-twice-back",
            State::AlreadyPaid {
                receipts: vec![receipt(Method::Qmoney)],
                second_payments: second(back(150_000, true)),
                return_url: shop(),
            },
        ),
        (
            "paid-back-part",
            State::Paid {
                receipt: Some(Receipt { refunded: back(50_000, false), ..receipt(Method::Wave) }),
                return_url: shop(),
            },
        ),
        (
            "paid-back",
            State::Paid {
                receipt: Some(Receipt { refunded: back(150_000, true), ..receipt(Method::Wave) }),
                return_url: shop(),
            },
        ),
        (
            "paid-late-back",
            late(Receipt { refunded: back(150_000, true), ..receipt(Method::Afrimoney) }, End::Expiry, None),
        ),
    ]
}

/// Test mode, long and foreign names, little time, other accents.
fn variations(language: Language, voice: Voice) -> Vec<(String, PaymentPage)> {
    let simulator = || voice.option("/simulator/sim_token");
    let mut pages = Vec::new();
    for (name, mut state) in states(voice) {
        match &mut state {
            State::ApproveOnPhone { simulator_url: url, .. } | State::Checking { attempt_url: url, .. } => {
                *url = simulator()
            }
            State::EnterCode { simulator_code, .. } => *simulator_code = voice.option("123456"),
            _ => {}
        }
        let page = PaymentPage { test_mode: true, ..page(state, language, voice) };
        pages.push((format!("test-{name}"), page));
    }

    let choose = || State::Choose { methods: ALL.to_vec(), problem: None, received: None, kept_apart: Vec::new() };
    let mut long = page(choose(), language, voice);
    long.merchant.name = voice.say("Serekunda Market Women’s Co-operative Society for Rice and Groundnuts");
    long.merchant.accent = Some("#ffd400".to_owned());
    long.amount = Some(gmd(123_456_789_000));
    long.subject = Subject::Order {
        description: voice
            .option("Season order of the whole co-operative, first part of three, with transport to Basse"),
        reference: None,
        items: Vec::new(),
    };
    long.time_left = Some(TimeLeft::Minutes(12));
    pages.push(("long".to_owned(), long));

    let mut arabic = page(choose(), language, voice);
    arabic.merchant.name = voice.say("مكتبة كايرابا");
    arabic.merchant.accent = Some("#c2185b".to_owned());
    arabic.subject = Subject::Order { description: None, reference: None, items: Vec::new() };
    arabic.payer = Vec::new();
    arabic.time_left = Some(TimeLeft::Hours(3));
    arabic.leave = Some(Leave::Here);
    pages.push(("arabic".to_owned(), arabic));
    pages
}

fn scenes(voice: Voice) -> Vec<(&'static str, Scene)> {
    let phone = || voice.say("+220 712 3412");
    vec![
        ("wave", Scene::WalletApproval { phone: Some(phone()) }),
        ("afrimoney", Scene::PhonePrompt { method: Method::Afrimoney, phone: phone() }),
        ("qmoney", Scene::PhonePrompt { method: Method::Qmoney, phone: phone() }),
        ("card", Scene::CardPage { problem: None }),
        ("card-problem", Scene::CardPage { problem: Some(CardProblem::NotChosen) }),
        ("bank", Scene::CardChallenge { last4: voice.say("3155") }),
        (
            "done",
            Scene::Done { outcome: Outcome::Approve, back: voice.option("/checkout/cs_01jd3v9k2m4x8q7b5n6p0r1s2t") },
        ),
    ]
}
