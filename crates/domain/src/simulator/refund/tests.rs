use super::*;
use crate::method::Method;
use crate::payment::PaymentSession;
use crate::rail::Called;
use crate::sample::{begin, checkout, dalasi, id, paid, seconds, session, started};
use crate::table::table;

/// 100.00 GMD that the simulated wallet really got, with our transaction.
fn paid_payment() -> (Transaction, SimulatedPayment) {
    let mut session: PaymentSession = session(id(3), &checkout(dalasi(10_000)), Method::Afrimoney, seconds(1));
    session.payer = crate::sample::payer("+2207000004");
    let mut transaction = begin(&mut session, id(4), 250, seconds(2));
    let payment = SimulatedPayment::start(&transaction, "Shop".into(), "digest".into(), String::new(), seconds(2));
    session.started(&mut transaction, Called::Answered(started(Method::Afrimoney)), seconds(2));
    session.reported(&mut transaction, &paid(dalasi(10_000)), seconds(3));
    (transaction, payment)
}

fn refund(transaction: &mut Transaction, number: u8, minor: i64) -> Refund {
    Refund::ask(id(number), transaction, Some(dalasi(minor)), None, seconds(4)).expect("it is left")
}

fn say(report: &RefundReport) -> &'static str {
    match report {
        RefundReport::Processing { .. } => "processing",
        RefundReport::Completed { .. } => "completed",
        RefundReport::Failed { reason } => reason.as_str(),
        RefundReport::NotFound => "not found",
    }
}

#[test]
fn the_amount_decides() {
    let amounts = [1_000, 1_071, 1_072, 1_073, 1_074, 1_075, 1_076, 1_077];
    let names: Vec<String> = amounts.iter().map(|minor| dalasi(*minor).to_string()).collect();
    let states: Vec<(&str, i64)> = names.iter().map(String::as_str).zip(amounts).collect();
    let after_ms = [("at once", 0), ("+ 0.3 s", 300), ("+ 2.3 s", 2_300), ("+ 30 s", 30_000)];
    let cell = |minor: &i64, after_ms: &i64| {
        let (mut transaction, mut payment) = paid_payment();
        let refund = refund(&mut transaction, 5, *minor);
        let mut simulated = SimulatedRefund::start(&refund, Some(&mut payment), seconds(5));
        let until = seconds(5).plus(Duration::from_millis(after_ms.unsigned_abs()));
        let mut sent = 0;
        while let Some(at) = simulated.next_act().filter(|at| *at <= until) {
            sent = simulated.act(at);
        }
        assert_eq!(simulated.act(until), 0, "nothing is said out of turn");
        format!("{}{}", say(&simulated.report()), if sent > 1 { format!(", said {sent} times") } else { String::new() })
    };
    insta::assert_snapshot!(table(&states, &after_ms, cell), @r"
          | at once            | + 0.3 s                 | + 2.3 s                 | + 30 s
    10.00 | processing         | completed               | completed               | completed
    10.71 | insufficient_funds | insufficient_funds      | insufficient_funds      | insufficient_funds
    10.72 | processing         | declined                | declined                | declined
    10.73 | processing         | processing              | processing              | processing
    10.74 | completed          | completed               | completed               | completed
    10.75 | processing         | processing              | processing              | completed
    10.76 | processing         | completed, said 2 times | completed, said 2 times | completed, said 2 times
    10.77 | processing         | declined                | completed               | completed
    ");
}

#[test]
fn a_wallet_gives_back_no_more_than_it_got() {
    let (mut transaction, mut payment) = paid_payment();
    let refunds: Vec<Refund> = (0..4).map(|number| refund(&mut transaction, 10 + number, 2_500)).collect();
    let taken = |payment: &mut SimulatedPayment, refund: &Refund| {
        SimulatedRefund::start(refund, Some(payment), seconds(5)).paid_back
    };
    for refund in &refunds {
        assert!(taken(&mut payment, refund));
    }
    assert!(!taken(&mut payment, &refunds[0]), "it is empty");
    let empty = SimulatedRefund::start(&refunds[0], None, seconds(5));
    assert_eq!((empty.paid_back, say(&empty.report())), (false, "declined"));
}
