//! Contract §4.5 and the refund columns of §4.3 as tables, and the bound that holds at every moment.

use proptest::prelude::*;

use super::*;
use crate::ledger::Entry;
use crate::method::{Method, OfflineMethod};
use crate::payment::{Payable, Payer, Recording, TransactionStatus};
use crate::rail::Report;
use crate::sample::{begin, checkout, dalasi, id, paid, scope, seconds, session, started};
use crate::table::table;

const FAILED: RefundReport = RefundReport::Failed { reason: FailureReason::Declined };
const PROCESSING: RefundReport = RefundReport::Processing { rail_reference: None };

fn completed_with(minor: i64) -> RefundReport {
    RefundReport::Completed { amount: dalasi(minor), rail_reference: Some("RF-1".into()) }
}

/// 100.00 GMD in a status of the table.
fn transaction(status: TransactionStatus) -> Transaction {
    let mut session = session(id(3), &checkout(dalasi(10_000)), Method::Wave, seconds(1));
    let mut transaction = begin(&mut session, id(4), 250, seconds(2));
    session.started(&mut transaction, Called::Answered(started(Method::Wave)), seconds(2));
    let mut report = |transaction: &mut Transaction, report: &Report| {
        session.reported(transaction, report, seconds(3));
    };
    match status {
        TransactionStatus::Pending => {}
        TransactionStatus::Processing => report(&mut transaction, &Report::Processing),
        TransactionStatus::Failed => {
            report(&mut transaction, &Report::Failed { reason: FailureReason::Declined });
        }
        TransactionStatus::Cancelled => session.close(Some(&mut transaction), false, seconds(3)),
        TransactionStatus::Expired => session.close(Some(&mut transaction), true, seconds(3)),
        TransactionStatus::Completed | TransactionStatus::PartiallyRefunded | TransactionStatus::Refunded => {
            report(&mut transaction, &paid(dalasi(10_000)));
        }
    }
    let back = match status {
        TransactionStatus::PartiallyRefunded => 1_000,
        TransactionStatus::Refunded => 10_000,
        TransactionStatus::Pending
        | TransactionStatus::Processing
        | TransactionStatus::Completed
        | TransactionStatus::Failed
        | TransactionStatus::Cancelled
        | TransactionStatus::Expired => return transaction,
    };
    let mut refund = ask(&mut transaction, 9, back);
    refund.reported(&mut transaction, &completed_with(back), seconds(4));
    assert_eq!(transaction.status(), status);
    transaction
}

fn ask(transaction: &mut Transaction, number: u8, minor: i64) -> Refund {
    Refund::ask(id(number), transaction, Some(dalasi(minor)), None, seconds(4)).expect("it is left")
}

/// A refund of 40.00 in each way of its states.
fn refund(name: &str) -> (Refund, Transaction) {
    let mut transaction = transaction(TransactionStatus::Completed);
    let mut refund = ask(&mut transaction, 5, 4_000);
    let mut answer = |called| refund.sent(&mut transaction, called, seconds(5));
    match name {
        "pending" => RefundMoved::Nowhere,
        "processing" => answer(Called::Answered(PROCESSING)),
        "processing, lost" => answer(Called::Lost("a timeout".into())),
        "processing, sent again" => answer(Called::Lost("a timeout".into())),
        "processing, parked" => answer(Called::Answered(completed_with(3_999))),
        "completed" => answer(Called::Answered(completed_with(4_000))),
        "failed" => answer(Called::Refused(FailureReason::InsufficientFunds)),
        other => unreachable!("{other}"),
    };
    assert!(name != "processing, sent again" || refund.send_again());
    (refund, transaction)
}

#[derive(Clone)]
enum Act {
    Sent(Called<RefundReport>),
    Reported(RefundReport),
    Resolved(bool),
    SentAgain,
}

fn cell((before, of): &(Refund, Transaction), act: &Act) -> String {
    let (mut refund, mut transaction) = (before.clone(), of.clone());
    let moved = match act {
        Act::Sent(called) => Ok(refund.sent(&mut transaction, called.clone(), seconds(6))),
        Act::Reported(report) => Ok(refund.reported(&mut transaction, report, seconds(6))),
        Act::Resolved(is_completed) => refund.resolved(&mut transaction, *is_completed, seconds(6)),
        Act::SentAgain => return if refund.send_again() { "yes" } else { "no" }.into(),
    };
    let moved = match moved {
        Ok(moved) => moved,
        Err(refusal) => {
            assert_eq!((&refund, &transaction), (before, of), "a refusal changes nothing");
            return refusal.code();
        }
    };
    if moved == RefundMoved::Nowhere {
        assert_eq!((&refund, &transaction), (before, of), "what is ignored changes nothing");
        return if refund.step == Step::Settled { "–" } else { "=" }.into();
    }
    let mut words = vec![if refund.status == before.status { "=" } else { refund.status.as_str() }.to_owned()];
    words.extend((refund.step == Step::Unknown).then(|| "unknown".to_owned()));
    words.extend(refund.parked.is_some().then(|| "parked".to_owned()));
    words.extend((moved == RefundMoved::Corrected).then(|| "correction".to_owned()));
    words.join(", ")
}

#[test]
fn refunds_go_as_the_contract_says() {
    let names = [
        "pending",
        "processing",
        "processing, lost",
        "processing, sent again",
        "processing, parked",
        "completed",
        "failed",
    ];
    let states = names.map(|name| (name, refund(name)));
    let sent = |called| Act::Sent(called);
    let actions = [
        ("accepted", sent(Called::Answered(PROCESSING))),
        ("refused", sent(Called::Refused(FailureReason::Declined))),
        ("answer lost", sent(Called::Lost("a timeout".into()))),
        ("success", Act::Reported(completed_with(4_000))),
        ("failure", Act::Reported(FAILED)),
        ("silent", Act::Reported(RefundReport::NotFound)),
        ("another amount", Act::Reported(completed_with(4_001))),
        ("resolved: completed", Act::Resolved(true)),
        ("resolved: failed", Act::Resolved(false)),
        ("may be sent again", Act::SentAgain),
    ];
    insta::assert_snapshot!(table(&states, &actions, cell), @r"
                           | accepted   | refused | answer lost         | success               | failure        | silent     | another amount              | resolved: completed | resolved: failed   | may be sent again
    pending                | processing | failed  | processing, unknown | completed             | failed         | =          | processing, unknown, parked | refund_not_unknown  | refund_not_unknown | no
    processing             | =          | =       | =                   | completed             | failed         | =          | =, unknown, parked          | completed           | failed             | no
    processing, lost       | =          | =       | =                   | completed             | failed         | =          | =, unknown, parked          | completed           | failed             | yes
    processing, sent again | =          | =       | =                   | completed             | failed         | =, unknown | =, unknown, parked          | refund_not_unknown  | refund_not_unknown | yes
    processing, parked     | =          | =       | =                   | completed             | failed, parked | =          | =, unknown, parked          | completed           | failed             | no
    completed              | –          | –       | –                   | –                     | –              | –          | –                           | refund_not_unknown  | refund_not_unknown | no
    failed                 | –          | –       | –                   | completed, correction | –              | –          | =, parked                   | refund_not_unknown  | refund_not_unknown | no
    ");
}

/// The columns "refund asked", "done, part" and "done, all" of contract §4.3.
#[test]
fn transactions_follow_their_refunds() {
    let states = TransactionStatus::ALL.map(|status| (status.as_str(), status));
    let actions = [("asked, part", 1_000), ("asked, too much", 10_001), ("done, part", -1_000), ("done, all", 0)];
    let cell = |status: &TransactionStatus, amount: &i64| {
        let mut transaction = transaction(*status);
        let before = transaction.clone();
        let wanted = (*amount != 0).then(|| dalasi(amount.abs()));
        let asked = Refund::ask(id(6), &mut transaction, wanted, None, seconds(5));
        let mut refund = match asked {
            Ok(refund) => refund,
            Err(refusal) => {
                assert_eq!(transaction, before, "a refusal changes nothing");
                return refusal.code();
            }
        };
        if *amount <= 0 {
            refund.reported(&mut transaction, &completed_with(refund.amount.minor), seconds(6));
        }
        if transaction.status() == before.status() { "=" } else { transaction.status().as_str() }.to_owned()
    };
    insta::assert_snapshot!(table(&states, &actions, cell), @r"
                       | asked, part                  | asked, too much              | done, part                   | done, all
    pending            | transaction_not_refundable   | transaction_not_refundable   | transaction_not_refundable   | transaction_not_refundable
    processing         | transaction_not_refundable   | transaction_not_refundable   | transaction_not_refundable   | transaction_not_refundable
    completed          | =                            | refund_exceeds_amount        | partially_refunded           | refunded
    failed             | transaction_not_refundable   | transaction_not_refundable   | transaction_not_refundable   | transaction_not_refundable
    cancelled          | transaction_not_refundable   | transaction_not_refundable   | transaction_not_refundable   | transaction_not_refundable
    expired            | transaction_not_refundable   | transaction_not_refundable   | transaction_not_refundable   | transaction_not_refundable
    partially_refunded | =                            | refund_exceeds_amount        | =                            | refunded
    refunded           | transaction_already_refunded | transaction_already_refunded | transaction_already_refunded | transaction_already_refunded
    ");
}

#[test]
fn failed_refunds_leave_their_places_to_others() {
    let say = |asked, failed, takes_all| {
        Earlier { asked, failed }.refuse_beyond_most(takes_all).map_err(|no| (no.code(), no.to_string()))
    };
    for (asked, failed) in [(0, 0), (249, 0), (250, 1), (999, 750), (999, 999)] {
        assert_eq!(say(asked, failed, false), Ok(()), "{asked}, {failed} of them failed");
    }
    let words =
        "This transaction has 250 refunds already: the next one has to be all that is left. Leave `amount` out.";
    for (asked, failed) in [(250, 0), (251, 1), (999, 749)] {
        let refused = Err(("too_many_refunds".to_owned(), words.to_owned()));
        assert_eq!(say(asked, failed, false), refused, "{asked}, {failed} of them failed");
        assert_eq!(say(asked, failed, true), Ok(()), "{asked}, {failed} of them failed");
    }
    let words = "1000 refunds of this transaction were asked for already, failed ones included, and no more can be. \
                 Give the money back to the payer by another way.";
    for (failed, takes_all) in [(749, false), (749, true), (750, false), (1_000, true)] {
        let refused = Err(("transaction_not_refundable".to_owned(), words.to_owned()));
        assert_eq!(say(1_000, failed, takes_all), refused, "{failed} failed");
    }
}

/// A failure gives the part free again; when it was none after all, and another refund took the part, a person looks.
#[test]
fn a_correction_never_breaks_the_bound() {
    let mut transaction = transaction(TransactionStatus::Completed);
    let mut first = ask(&mut transaction, 5, 10_000);
    assert_eq!(first.reported(&mut transaction, &FAILED, seconds(5)), RefundMoved::ToFailed);
    let mut second = ask(&mut transaction, 6, 6_000);
    assert_eq!(first.reported(&mut transaction, &completed_with(10_000), seconds(6)), RefundMoved::On);
    assert_eq!((first.status, transaction.refundable()), (RefundStatus::Failed, dalasi(4_000)));
    assert!(first.parked.as_deref().is_some_and(|why| why.contains("40.00")), "{:?}", first.parked);
    assert_eq!(
        first.resolved(&mut transaction, true, seconds(7)),
        Err(Refusal::RefundExceedsAmount { left: dalasi(4_000) })
    );
    assert_eq!(second.reported(&mut transaction, &FAILED, seconds(8)), RefundMoved::ToFailed);
    assert_eq!(first.resolved(&mut transaction, true, seconds(9)), Ok(RefundMoved::Corrected));
    assert_eq!((first.parked, transaction.status()), (None, TransactionStatus::Refunded));
    assert_eq!(
        second.resolved(&mut transaction, true, seconds(9)).map_err(|no| no.code()),
        Err("refund_not_unknown".into())
    );
}

/// It said that another amount went back, and takes that word back: somebody looks before the merchant asks once more.
#[test]
fn a_refund_that_failed_after_all_is_looked_at_still() {
    let mut transaction = transaction(TransactionStatus::Completed);
    let mut refund = ask(&mut transaction, 5, 4_000);
    assert_eq!(refund.reported(&mut transaction, &completed_with(3_999), seconds(5)), RefundMoved::On);
    assert_eq!(refund.reported(&mut transaction, &FAILED, seconds(6)), RefundMoved::ToFailed);
    assert!(refund.is_undecided() && refund.parked.is_some(), "{refund:?}");
    let mut gone = (refund.clone(), transaction.clone());
    assert_eq!(gone.0.resolved(&mut gone.1, true, seconds(7)), Ok(RefundMoved::Corrected));
    assert_eq!((gone.0.parked, gone.1.refunded()), (None, dalasi(4_000)));
    assert_eq!(refund.resolved(&mut transaction, false, seconds(7)), Ok(RefundMoved::On));
    assert!(!refund.is_undecided() && transaction.refunded().minor == 0);
}

#[test]
fn second_money_is_not_the_merchants() {
    let mut transaction = transaction(TransactionStatus::Completed);
    let rail = || "simulator".to_owned();
    assert_eq!(ask(&mut transaction, 5, 1).source, Source::Merchant { rail: rail() });
    transaction.duplicate = true;
    assert_eq!(ask(&mut transaction, 6, 1).source, Source::Unapplied { rail: rail() });
}

/// Nobody but the merchant has it, so nobody is asked.
#[test]
fn what_was_recorded_by_hand_is_given_back_at_once() {
    let recording = Recording { method: OfflineMethod::Cash, reference: None, recorded_by: None };
    let payable = Payable::Invoice(id(7));
    let mut transaction =
        Transaction::recorded(id(8), scope(), payable, recording, dalasi(10_000), Payer::default(), seconds(1));
    let part = ask(&mut transaction, 5, 4_000);
    assert_eq!((part.status, part.step, part.source), (RefundStatus::Completed, Step::Settled, Source::Offline));
    assert_eq!((transaction.status(), transaction.refunded()), (TransactionStatus::PartiallyRefunded, dalasi(4_000)));
    let rest = Refund::ask(id(6), &mut transaction, None, None, seconds(5)).expect("there is a rest");
    assert_eq!((rest.amount, transaction.status()), (dalasi(6_000), TransactionStatus::Refunded));
}

#[derive(Debug, Clone)]
enum Turn {
    Ask(i64),
    Sent(usize, u8),
    Reported(usize, u8),
    Resolved(usize, bool),
}

fn steps() -> impl Strategy<Value = Vec<Turn>> {
    let step = prop_oneof![
        (1_i64..12_000).prop_map(Turn::Ask),
        (0_usize..6, 0_u8..5).prop_map(|(which, what)| Turn::Sent(which, what)),
        (0_usize..6, 0_u8..5).prop_map(|(which, what)| Turn::Reported(which, what)),
        (0_usize..6, any::<bool>()).prop_map(|(which, paid)| Turn::Resolved(which, paid)),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    /// Whatever is asked and whatever rails and operators say in whatever order: open and completed refunds add up to
    /// what the transaction counts, and never to more than was paid (P6).
    #[test]
    fn refunds_are_at_most_what_was_paid(steps in steps()) {
        let mut transaction = transaction(TransactionStatus::Completed);
        let mut refunds: Vec<Refund> = Vec::new();
        for step in steps {
            let report = |refund: &Refund, what| match what {
                0 => completed_with(refund.amount.minor),
                1 => FAILED,
                2 => PROCESSING,
                3 => RefundReport::NotFound,
                _ => completed_with(refund.amount.minor + 1),
            };
            match step {
                Turn::Ask(minor) => {
                    let number = u8::try_from(10 + refunds.len()).unwrap_or(255);
                    refunds.extend(Refund::ask(id(number), &mut transaction, Some(dalasi(minor)), None, seconds(5)));
                }
                Turn::Sent(which, what) => {
                    let Some(refund) = refunds.get_mut(which) else { continue };
                    let called = match what {
                        0 => Called::Refused(FailureReason::Declined),
                        1 => Called::Lost("a timeout".into()),
                        what => Called::Answered(report(refund, what - 2)),
                    };
                    refund.sent(&mut transaction, called, seconds(6));
                }
                Turn::Reported(which, what) => {
                    let Some(refund) = refunds.get_mut(which) else { continue };
                    let report = report(refund, what);
                    refund.reported(&mut transaction, &report, seconds(6));
                }
                Turn::Resolved(which, is_completed) => {
                    let Some(refund) = refunds.get_mut(which) else { continue };
                    let _ = refund.resolved(&mut transaction, is_completed, seconds(6));
                }
            }
            let sum = |status: &[RefundStatus]| -> i64 {
                refunds.iter().filter(|one| status.contains(&one.status)).map(|one| one.amount.minor).sum()
            };
            let done = sum(&[RefundStatus::Completed]);
            let open = sum(&[RefundStatus::Pending, RefundStatus::Processing]);
            prop_assert!(done + open <= 10_000);
            prop_assert_eq!((transaction.refunded().minor, transaction.refunding().minor), (done, open));
            for refund in &refunds {
                let legal = refund.moves.windows(2).all(|pair| pair[0].status.may_become(pair[1].status));
                prop_assert!(legal, "{:?}", refund.moves);
            }
        }
    }
}

#[test]
fn the_books_say_where_a_refunds_money_was_and_where_it_went() {
    let told = |entry: &Entry| -> Vec<String> {
        entry.postings().iter().map(|posting| format!("{} {}", posting.account, posting.amount_minor)).collect()
    };
    for (duplicate, source) in [(false, "merchant"), (true, "unapplied")] {
        let after = |called: Called<RefundReport>| {
            let mut transaction = transaction(TransactionStatus::Completed);
            transaction.duplicate = duplicate;
            let mut refund = ask(&mut transaction, 5, 4_000);
            refund.sent(&mut transaction, called, seconds(5));
            refund
        };
        let (lost, done) = (after(Called::Lost("a timeout".into())), after(Called::Answered(completed_with(4_000))));
        let failed = after(Called::Refused(FailureReason::Declined));
        let rail = format!("rail_clearing:{}", lost.source.rail().expect("a rail has it"));
        let entries = [
            (Entry::refund_asked(id(6), &lost), [source, "refunds_pending"]),
            (Entry::refund_completed(id(7), &done), ["refunds_pending", &rail]),
            (Entry::refund_failed(id(8), &failed), ["refunds_pending", source]),
            (Entry::refund_corrected(id(9), &done), [source, &rail]),
        ];
        for (entry, [debit, credit]) in entries {
            assert_eq!(told(&entry), [format!("{debit} 4000"), format!("{credit} -4000")]);
            assert_eq!((entry.refund, entry.transaction), (Some(lost.id), lost.transaction));
        }
    }
}

#[test]
fn a_status_is_read_as_it_is_written() {
    for status in RefundStatus::ALL {
        assert_eq!(RefundStatus::parse(status.as_str()), Some(status));
        assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
    }
    assert_eq!(RefundStatus::parse("refunded"), None);
}

#[test]
fn the_rail_is_asked_less_and_less_often_until_it_is_over() {
    let mut refund = refund("processing, lost").0;
    let asked = refund.created_at;
    let mut pause = |hours: u64| {
        let now = asked.plus(Duration::from_secs(hours * 3_600));
        refund.next_question(now).expect("it is open").as_secs()
    };
    let pauses: Vec<u64> = (0..14).map(|_| pause(0)).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]);
    let older = [8, 16, 80, 24 * 8, 24 * 30].map(pause);
    assert_eq!(older, [3600, 7200, 36_000, 86_400, 86_400], "what is old is asked about more seldom");
    for name in ["completed", "failed"] {
        assert_eq!(self::refund(name).0.next_question(asked), None, "{name}");
    }
}

#[test]
fn the_edges_are_those_of_the_contract() {
    use RefundStatus::{Completed, Failed, Pending, Processing};
    let all = RefundStatus::ALL.into_iter().flat_map(|from| RefundStatus::ALL.map(|to| (from, to)));
    let edges: Vec<_> = all.filter(|(from, to)| from.may_become(*to)).collect();
    let expected = [
        (Pending, Processing),
        (Pending, Completed),
        (Pending, Failed),
        (Processing, Completed),
        (Processing, Failed),
        (Failed, Completed),
    ];
    assert_eq!(edges, expected);
}

#[test]
fn events_are_counted_from_one() {
    let mut refund = refund("pending").0;
    assert_eq!([refund.next_sequence(), refund.next_sequence(), refund.next_sequence()], [1, 2, 3]);
}

#[test]
fn a_refund_knows_when_it_first_reached_a_status() {
    let refund = refund("completed").0;
    assert_eq!(refund.reached(RefundStatus::Pending), Some(seconds(4)));
    assert_eq!(refund.reached(RefundStatus::Completed), Some(seconds(5)));
    assert_eq!(refund.reached(RefundStatus::Failed), None);
}
