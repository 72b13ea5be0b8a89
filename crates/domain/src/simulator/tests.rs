//! Each documented test number, the code, the cards, and what a withdrawal does.

use super::*;
use crate::sample::{at, begin, checkout, dalasi, id, payer, seconds, session};
use crate::table::table;

fn payment(method: Method, phone: &str) -> SimulatedPayment {
    let mut session = session(id(3), &checkout(dalasi(10_000)), method, at(0));
    session.payer = payer(phone);
    let transaction = begin(&mut session, id(4), 250, at(0));
    SimulatedPayment::start(&transaction, "Shop".into(), "digest".into(), "https://shop.example".into(), at(0))
}

fn word(payment: &SimulatedPayment) -> String {
    match payment.report() {
        Report::Open => "open".into(),
        Report::AwaitingCode { attempts_left } => format!("code, {attempts_left} left"),
        Report::Processing => "processing".into(),
        Report::Paid { amount, .. } => format!("paid {amount}"),
        Report::Failed { reason } => reason.as_str().into(),
        Report::NotFound => "not found".into(),
    }
}

/// What the rail says at once, when the payer has reacted, how often it says so, and whether its answer is lost.
fn path(payment: &mut SimulatedPayment) -> String {
    let mut path = vec![word(payment)];
    if payment.loses_answers() {
        path.push("answer lost".into());
    }
    if let Some(at_) = payment.next_act() {
        assert_eq!(payment.act(at_.minus(Duration::from_micros(1))), 0, "not before its time");
        let reports = payment.act(at_);
        path.push(format!("{} ms: {} × {reports}", at_.since(at(0)).as_millis(), word(payment)));
        assert_eq!(payment.act(at_.plus(Duration::from_secs(1))), 0, "it acts once");
        assert_eq!(payment.next_act(), None);
    }
    path.join(", ")
}

#[test]
fn each_test_number_has_its_path() {
    let numbers = [
        ("7000000", "7000000"),
        ("7000001", "7000001"),
        ("7000002", "7000002"),
        ("7000003", "7000003"),
        ("7000004", "7000004"),
        ("7000005", "7000005"),
        ("7000006", "7000006"),
        ("any other", "7123456"),
    ];
    let methods =
        [("wave", Method::Wave), ("afrimoney", Method::Afrimoney), ("qmoney", Method::Qmoney), ("card", Method::Card)];
    let cell = |phone: &&str, method: &Method| {
        let mut payment = payment(*method, phone);
        if *method == Method::Qmoney {
            assert_eq!(word(&payment), "code, 3 left", "the code comes first");
            assert!(!payment.loses_answers(), "the code is asked for in any case");
            payment.submit_code("123456", at(0));
        }
        path(&mut payment)
    };
    insta::assert_snapshot!(table(&numbers, &methods, cell), @r"
              | wave                                       | afrimoney                                  | qmoney                                     | card
    7000000   | processing, 300 ms: paid 100.00 × 1        | processing, 300 ms: paid 100.00 × 1        | processing, 300 ms: paid 100.00 × 1        | open
    7000001   | processing, 300 ms: insufficient_funds × 1 | processing, 300 ms: insufficient_funds × 1 | processing, 300 ms: insufficient_funds × 1 | open
    7000002   | processing, 300 ms: declined × 1           | processing, 300 ms: declined × 1           | processing, 300 ms: declined × 1           | open
    7000003   | open                                       | processing                                 | processing                                 | open
    7000004   | paid 100.00, answer lost                   | paid 100.00, answer lost                   | paid 100.00, answer lost                   | open
    7000005   | processing, 30000 ms: paid 100.00 × 1      | processing, 30000 ms: paid 100.00 × 1      | processing, 30000 ms: paid 100.00 × 1      | open
    7000006   | processing, 300 ms: paid 100.00 × 2        | processing, 300 ms: paid 100.00 × 2        | processing, 300 ms: paid 100.00 × 2        | open
    any other | open                                       | processing                                 | processing                                 | open
    ");
}

#[test]
fn three_wrong_codes_fail() {
    let mut payment = payment(Method::Qmoney, "7000000");
    let mut words = vec![word(&payment)];
    for code in ["000000", "12345", "1234567", "123456"] {
        payment.submit_code(code, at(0));
        words.push(word(&payment));
    }
    assert_eq!(words, ["code, 3 left", "code, 2 left", "code, 1 left", "wrong_code", "wrong_code"]);
    assert_eq!((payment.code_tries_left(), payment.next_act()), (0, None));
    assert_eq!(payment.screen(), Screen::Decided { paid: false });
}

#[test]
fn a_right_code_after_a_wrong_one() {
    let mut payment = payment(Method::Qmoney, "7000000");
    payment.submit_code("000000", at(0));
    payment.submit_code("123456", seconds(1));
    assert_eq!(payment.next_act(), Some(seconds(1).plus(REACTION)));
    payment.act(seconds(2));
    assert_eq!(word(&payment), "paid 100.00");
}

#[test]
fn each_test_card_has_its_path() {
    let cards = ["4242424242424242", "4000000000000002", "4000000000009995", "4000002500003155", "4111111111111111"];
    let lines = cards.map(|number| {
        let mut payment = payment(Method::Card, "7000000");
        let is_known = payment.card_entered(number, at(0));
        if payment.screen() != Screen::CardHolder {
            return format!("{number}: known {is_known}, {}", path(&mut payment));
        }
        let answers = [true, false].map(|confirms| {
            let mut payment = payment.clone();
            payment.card_holder_decides(confirms, at(0));
            path(&mut payment)
        });
        format!("{number}: known {is_known}, {}, 3-D Secure: {}", word(&payment), answers.join(" | "))
    });
    insta::assert_snapshot!(lines.join("\n"), @r"
    4242424242424242: known true, processing, 300 ms: paid 100.00 × 1
    4000000000000002: known true, processing, 300 ms: declined × 1
    4000000000009995: known true, processing, 300 ms: insufficient_funds × 1
    4000002500003155: known true, open, 3-D Secure: processing, 300 ms: paid 100.00 × 1 | processing, 300 ms: declined × 1
    4111111111111111: known false, open
    ");
}

#[test]
fn a_click_decides_where_no_number_does() {
    for (method, before) in [(Method::Wave, "open"), (Method::Afrimoney, "processing")] {
        for (approves, after) in [(true, "paid 100.00"), (false, "declined")] {
            let mut payment = payment(method, "7123456");
            assert_eq!(word(&payment), before);
            payment.payer_decides(approves, at(0));
            payment.payer_decides(!approves, at(0));
            assert_eq!(word(&payment), "processing", "the first click counts");
            payment.act(seconds(1));
            assert_eq!(word(&payment), after);
        }
    }
    let mut silent = payment(Method::Afrimoney, "7000003");
    silent.payer_decides(true, at(0));
    assert_eq!((word(&silent).as_str(), silent.next_act()), ("processing", None), "it stays silent");
}

#[test]
fn a_withdrawal_is_refused_once_somebody_has_paid_or_decided() {
    let decided = || {
        let mut payment = payment(Method::Wave, "7123456");
        payment.payer_decides(true, at(0));
        payment
    };
    let card_holder = || {
        let mut payment = payment(Method::Card, "7123456");
        payment.card_entered("4000002500003155", at(0));
        payment
    };
    let lines = [
        ("code asked for", payment(Method::Qmoney, "7123456")),
        ("payer asked", payment(Method::Wave, "7123456")),
        ("request on a silent handset", payment(Method::Afrimoney, "7000003")),
        ("page of a silent wallet", payment(Method::Wave, "7000003")),
        ("card holder asked", card_holder()),
        ("payer decided", decided()),
        ("paid, answer lost", payment(Method::Wave, "7000004")),
    ]
    .map(|(name, mut payment)| {
        payment.withdraw();
        let said = word(&payment);
        // Nothing brings a withdrawn payment back.
        payment.submit_code("123456", at(0));
        payment.payer_decides(true, at(0));
        payment.card_entered("4242424242424242", at(0));
        payment.card_holder_decides(true, at(0));
        payment.act(seconds(60));
        format!("{name}: {said} → {}", word(&payment))
    });
    insta::assert_snapshot!(lines.join("\n"), @r"
    code asked for: cancelled → cancelled
    payer asked: cancelled → cancelled
    request on a silent handset: processing → processing
    page of a silent wallet: cancelled → cancelled
    card holder asked: cancelled → cancelled
    payer decided: processing → paid 100.00
    paid, answer lost: paid 100.00 → paid 100.00
    ");
}

#[test]
fn the_wallets_keep_what_they_hold() {
    for phone in ["7000000", "7000004", "7000006", "7123456"] {
        for method in Method::ALL {
            let payment = payment(method, phone);
            let text = serde_json::to_string(&payment).expect("it is data");
            assert_eq!(serde_json::from_str::<SimulatedPayment>(&text).expect("ours"), payment);
        }
    }
}
