//! The pages of invoices, in what they have that no other page has.

use super::super::pages::view::*;
use super::{ALL, Language, SHOP, Voice, gmd, items, page};

pub(super) fn every(language: Language, voice: Voice) -> Vec<(&'static str, PaymentPage)> {
    let choose = || State::Choose { methods: ALL.to_vec(), problem: None, received: None, kept_apart: Vec::new() };
    let received = State::Choose {
        methods: ALL.to_vec(),
        problem: None,
        received: Some(Received::Part { amount: gmd(50_000), return_url: voice.option(SHOP) }),
        kept_apart: vec![apart("txn_01jd3u", 115_000, voice)],
    };
    let in_progress =
        |methods| State::Choose { methods, problem: Some(Problem::InProgress), received: None, kept_apart: Vec::new() };
    let none_online = State::Choose { methods: Vec::new(), problem: None, received: None, kept_apart: Vec::new() };
    let payment = || vec![of(50_000, PaidWith::BankTransfer, voice)];
    let part = |typed: Option<&str>, error| {
        Some(Part { most: gmd(165_000), asked: None, typed: typed.and_then(|typed| voice.option(typed)), error })
    };
    let asked = Some(Part { most: gmd(165_000), asked: Some(gmd(40_000)), typed: None, error: None });
    let (open, none) = ((Due::Ahead, 0, Vec::new()), (Due::Settled, 0, Vec::new()));
    let approve = State::ApproveOnPhone {
        method: Method::Afrimoney,
        phone: voice.say("+220 7•• ••12"),
        problem: None,
        other_methods: false,
        simulator_url: None,
    };
    let phone = State::NeedsPhone {
        method: Method::Afrimoney,
        known: voice.option("+220 7•• ••12"),
        typed: None,
        error: None,
        problem: None,
        other_methods: true,
    };
    let kept_apart = State::Choose {
        methods: ALL.to_vec(),
        problem: None,
        received: Some(Received::Apart(apart("txn_01jd3v", 115_000, voice))),
        kept_apart: Vec::new(),
    };
    let earlier = State::Choose {
        methods: ALL.to_vec(),
        problem: None,
        received: None,
        kept_apart: vec![apart("txn_01jd3u", 115_000, voice), apart("txn_01jd3v", 165_000, voice)],
    };
    let nothing = || Standing::NothingTaken;
    let late = |minor| Receipt {
        amount: gmd(minor),
        method: Method::Wave,
        paid_at: 1_795_273_500,
        payment: voice.say("txn_01jd3v9k2m4x8q7b"),
        refunded: None,
    };
    let second = || apart("txn_01jd3vzzz", 115_000, voice);
    let back = |minor, is_whole| Some(Refunded { amount: gmd(minor), is_whole });
    vec![
        ("invoice-open", invoice(choose(), open.clone(), language, voice)),
        (
            "invoice-open-part",
            PaymentPage { part: part(None, None), ..invoice(choose(), open.clone(), language, voice) },
        ),
        (
            "invoice-part-error",
            PaymentPage {
                part: part(Some("9,999.00"), Some(PartError::TooMuch)),
                ..invoice(choose(), open.clone(), language, voice)
            },
        ),
        (
            "invoice-part-in-progress",
            PaymentPage { part: part(None, None), ..invoice(in_progress(ALL.to_vec()), open.clone(), language, voice) },
        ),
        ("invoice-none", invoice(none_online, open.clone(), language, voice)),
        ("invoice-none-checking", invoice(in_progress(Vec::new()), open.clone(), language, voice)),
        ("invoice-overdue", invoice(choose(), (Due::Passed, 0, Vec::new()), language, voice)),
        (
            "invoice-received",
            PaymentPage {
                part: part(None, None),
                ..invoice(received, (Due::Ahead, 50_000, payment()), language, voice)
            },
        ),
        ("invoice-apart", invoice(kept_apart, (Due::Passed, 50_000, payment()), language, voice)),
        ("invoice-apart-earlier", invoice(earlier, (Due::Passed, 50_000, payment()), language, voice)),
        (
            "invoice-asked",
            PaymentPage { amount: Some(gmd(40_000)), part: asked, ..invoice(choose(), open.clone(), language, voice) },
        ),
        (
            "invoice-draft",
            PaymentPage {
                amount: None,
                subject: Subject::Unissued,
                payer: Vec::new(),
                ..invoice(State::Draft, none.clone(), language, voice)
            },
        ),
        (
            "invoice-draft-cancelled",
            PaymentPage {
                amount: None,
                subject: Subject::Unissued,
                payer: Vec::new(),
                ..invoice(
                    State::Cancelled { standing: nothing(), kept_apart: Vec::new(), return_url: None },
                    none.clone(),
                    language,
                    voice,
                )
            },
        ),
        (
            "invoice-phone-part",
            PaymentPage {
                amount: Some(gmd(50_000)),
                chosen_part: voice.option("500.00"),
                ..invoice(phone, open.clone(), language, voice)
            },
        ),
        ("invoice-approve-part", PaymentPage { amount: Some(gmd(50_000)), ..invoice(approve, open, language, voice) }),
        (
            "invoice-paid",
            invoice(
                State::Paid { receipt: None, return_url: None },
                (
                    Due::Settled,
                    165_000,
                    vec![of(50_000, PaidWith::Cash, voice), of(115_000, PaidWith::Online(Method::Card), voice)],
                ),
                language,
                voice,
            ),
        ),
        (
            "invoice-paid-all-back",
            invoice(
                State::Paid { receipt: None, return_url: None },
                (
                    Due::Settled,
                    165_000,
                    vec![
                        InvoicePayment { refunded: back(50_000, true), ..of(50_000, PaidWith::Cash, voice) },
                        InvoicePayment { refunded: back(115_000, true), ..of(115_000, PaidWith::Check, voice) },
                    ],
                ),
                language,
                voice,
            ),
        ),
        (
            "invoice-paid-twice",
            invoice(
                State::AlreadyPaid { receipts: Vec::new(), second_payments: vec![second()], return_url: None },
                (Due::Settled, 165_000, vec![of(165_000, PaidWith::Online(Method::Wave), voice)]),
                language,
                voice,
            ),
        ),
        (
            "invoice-paid-back",
            invoice(
                State::AlreadyPaid {
                    receipts: Vec::new(),
                    second_payments: vec![Apart { refunded: back(40_000, false), ..second() }],
                    return_url: None,
                },
                (
                    Due::Settled,
                    165_000,
                    vec![InvoicePayment {
                        refunded: back(165_000, true),
                        ..of(165_000, PaidWith::Online(Method::Wave), voice)
                    }],
                ),
                language,
                voice,
            ),
        ),
        (
            "invoice-cancelled",
            invoice(
                State::Cancelled { standing: nothing(), kept_apart: Vec::new(), return_url: None },
                none.clone(),
                language,
                voice,
            ),
        ),
        (
            "invoice-paid-late",
            PaymentPage {
                amount: Some(gmd(65_000)),
                ..invoice(
                    State::PaidLate {
                        after: End::Cancellation,
                        receipts: vec![late(40_000), late(25_000)],
                        kept_apart: vec![apart("txn_01jd3u", 180_000, voice)],
                        return_url: None,
                    },
                    none,
                    language,
                    voice,
                )
            },
        ),
    ]
}

fn apart(payment: &str, minor: i64, voice: Voice) -> Apart {
    Apart { amount: gmd(minor), payment: voice.say(payment), is_kept: true, refunded: None }
}

fn of(minor: i64, paid_with: PaidWith, voice: Voice) -> InvoicePayment {
    InvoicePayment {
        receipt_number: voice.say("RCT-2026-001"),
        amount: gmd(minor),
        paid_with: Some(paid_with),
        paid_at: 1_795_273_500,
        receipt_path: voice.option("/receipts/0123456789abcdef0123456789abcdef.pdf"),
        refunded: None,
    }
}

fn invoice(
    state: State,
    (due, paid, payments): (Due, i64, Vec<InvoicePayment>),
    language: Language,
    voice: Voice,
) -> PaymentPage {
    let invoice = Invoice {
        number: voice.say("INV-2026-11-0001"),
        billed_to: voice.say("Fatou Ceesay"),
        issued_at: 1_794_700_000,
        due_at: 1_796_083_199,
        due,
        items: items(voice),
        before_tax: gmd(150_000),
        tax: Some((voice.say("10"), gmd(15_000))),
        total: gmd(165_000),
        paid: gmd(paid),
        left: gmd(165_000 - paid),
        notes: voice.say("Thank you for your order. The map follows next week."),
        payments,
        document_path: voice.option("/invoice/inv_01jd3v9k2m4x8q7b5n6p0r1s2t/pdf"),
    };
    let left = invoice.left.clone();
    PaymentPage {
        amount: Some(if due == Due::Settled { invoice.total.clone() } else { left }),
        subject: Subject::Invoice(Box::new(invoice)),
        path: voice.say("/invoice/inv_01jd3v9k2m4x8q7b5n6p0r1s2t"),
        leave: None,
        ..page(state, language, voice)
    }
}
