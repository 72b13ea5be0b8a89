//! One attempt, told from its beginning to its end.

use super::*;
use crate::sample::payer;

fn check(pair: &Pair, expected: &str) {
    assert_eq!(pair.stand(), expected);
}

#[test]
fn three_wrong_codes_end_it() {
    let mut pair = Pair::waiting(Method::Qmoney);
    for left in [2, 1] {
        pair.code().expect("a code is expected");
        assert_eq!(pair.code(), Err(Refusal::PaymentInProgress), "one code at a time");
        let wrong = Called::Answered(Report::AwaitingCode { attempts_left: left });
        assert_eq!(pair.code_submitted(wrong), Moved::On);
        check(&pair, &format!("pending/pending, waiting, wrong_code, otp, {left} left"));
    }
    pair.code().expect("a code is expected");
    let last = Called::Answered(Report::Failed { reason: FailureReason::WrongCode });
    assert_eq!(pair.code_submitted(last), Moved::ToFailed);
    check(&pair, "failed/failed, settled, wrong_code");
    assert_eq!(pair.code(), Err(Refusal::PaymentSessionClosed));
}

#[test]
fn a_right_code_is_asked_for_once() {
    let mut pair = Pair::with_code();
    assert_eq!(pair.code_submitted(Called::Answered(Report::Processing)), Moved::On);
    check(&pair, "processing/processing, waiting");
    // An old word, overtaken by the one above.
    assert_eq!(pair.report(&WRONG_CODE), Moved::Nowhere);
    assert_eq!(pair.report(&paid(dalasi(10_000))), Moved::ToPaid);
    check(&pair, "succeeded/completed, settled");
    assert_eq!(pair.code(), Err(Refusal::PaymentAlreadySucceeded));
}

/// The timer looked while it was handed over. Whoever stores the rail's answer began before, and waited for the row.
#[test]
fn what_the_timer_saw_is_known_to_whoever_brings_the_answer() {
    let mut pair = Pair::sending(Method::Wave);
    let until = pair.session.expires_at;
    pair.session.observe(until);
    let before = until.minus(Duration::from_millis(1));
    let answered = Called::Answered(started(Method::Wave));
    assert_eq!(pair.session.started(&mut pair.transaction, answered, before), Moved::On);
    assert!(pair.session.has_expired(before), "nobody looks at it again");
}

/// After a lost start the payer can still type the code, and mistype it.
#[test]
fn a_code_survives_a_lost_start() {
    for by_report in [true, false] {
        let mut pair = Pair::sending(Method::Qmoney);
        pair.started(Called::Lost("a timeout".into()));
        check(&pair, "processing/processing, unknown, outcome_unknown");
        let moved = if by_report {
            pair.report(&Report::AwaitingCode { attempts_left: 3 })
        } else {
            pair.started(Called::Answered(started(Method::Qmoney)))
        };
        assert_eq!(moved, Moved::On);
        check(&pair, "pending/processing, waiting, otp, 3 left");
        pair.code().expect("a code is expected");
        pair.code_submitted(Called::Answered(WRONG_CODE));
        check(&pair, "pending/processing, waiting, wrong_code, otp, 2 left");
        pair.code().expect("a code is expected");
        assert_eq!(pair.code_submitted(Called::Answered(Report::Processing)), Moved::On);
        check(&pair, "processing/processing, waiting");
    }
}

/// The process died between the code and its answer: the rail says how many tries are left.
#[test]
fn a_code_whose_call_was_never_made_can_be_typed_again() {
    let mut pair = Pair::with_code();
    let later = seconds(4 + 30);
    let still_three = Report::AwaitingCode { attempts_left: 3 };
    assert_eq!(pair.session.reported(&mut pair.transaction, &still_three, later), Moved::On);
    check(&pair, "pending/pending, waiting, otp, 3 left");
    pair.code().expect("a code is expected");
    assert_eq!(pair.report(&WRONG_CODE), Moved::On);
    pair.code().expect("a code is expected");
    assert_eq!(pair.report(&Report::AwaitingCode { attempts_left: 3 }), Moved::Nowhere, "an older word");
}

/// Everybody can open the address to which a rail sends payers back.
#[test]
fn coming_back_means_nothing_where_nobody_was_sent_away() {
    let mut pair = Pair::waiting(Method::Qmoney);
    assert_eq!(pair.returned(), Moved::Nowhere);
    pair.code().expect("a code is expected");
}

#[test]
fn paid_is_final() {
    let mut pair = Pair::with_code();
    assert_eq!(pair.report(&paid(dalasi(10_000))), Moved::ToPaid, "a callback before the answer to the code");
    let before = pair.clone();
    assert_eq!(pair.code_submitted(Called::Refused(FailureReason::ProviderError)), Moved::Nowhere);
    assert_eq!(pair.code_submitted(Called::Lost("a reset".into())), Moved::Nowhere);
    assert_eq!(pair.code_submitted(Called::Answered(FAILED)), Moved::Nowhere);
    assert_eq!(pair.report(&paid(dalasi(1))), Moved::Nowhere);
    assert_eq!(pair.resolve(false), Err(Refusal::AttemptNotUnknown { status: "completed" }));
    assert_eq!(pair.resolve(true), Err(Refusal::AttemptNotUnknown { status: "completed" }));
    assert_eq!((&pair.session, &pair.transaction), (&before.session, &before.transaction));
}

#[test]
fn a_provider_corrects_itself() {
    let mut pair = Pair::reported_from(Method::Wave, &FAILED);
    check(&pair, "failed/failed, settled, declined");
    assert_eq!(pair.report(&paid(dalasi(10_000))), Moved::ToPaid);
    check(&pair, "succeeded/completed, settled");
    let moves: Vec<&str> = pair.transaction.transitions.iter().map(|moved| moved.status.as_str()).collect();
    assert_eq!(moves, ["pending", "failed", "completed"]);
    assert_eq!(pair.transaction.reached(TransactionStatus::Failed), Some(seconds(6)));
}

/// Refused, and refused again while the first word is stored: one failure, one event.
#[test]
fn a_failure_is_told_once() {
    let mut pair = Pair::with_code();
    assert_eq!(pair.report(&FAILED), Moved::ToFailed);
    assert_eq!(pair.code_submitted(Called::Refused(FailureReason::ProviderError)), Moved::Nowhere);
    assert_eq!(pair.report(&paid(dalasi(1))), Moved::On, "parked");
    check(&pair, "failed/failed, unknown, outcome_unknown, declined, parked");
    assert_eq!(pair.report(&FAILED), Moved::On);
    check(&pair, "failed/failed, settled, declined, parked");
    assert_eq!(pair.report(&paid(dalasi(1))), Moved::On, "it takes its last word back: somebody has to look again");
    check(&pair, "failed/failed, unknown, outcome_unknown, declined, parked");
    assert_eq!(pair.report(&paid(dalasi(1))), Moved::Nowhere);
    assert_eq!(pair.report(&FAILED), Moved::On);
    check(&pair, "failed/failed, settled, declined, parked");
    assert_eq!(pair.resolve(false), Ok(Moved::On), "looked at: nothing new to tell");
    check(&pair, "failed/failed, settled, declined");
}

#[test]
fn another_amount_or_currency_is_parked_and_never_paid() {
    let xof = Money::new(10_000, crate::money::Currency::parse("XOF").expect("in ISO 4217"));
    for wrong in [dalasi(9_999), dalasi(10_001), xof] {
        let mut pair = Pair::waiting(Method::Wave);
        assert_eq!(pair.report(&paid(wrong)), Moved::On);
        check(&pair, "processing/processing, unknown, outcome_unknown, redirect, parked");
        let why = pair.transaction.parked.clone().expect("it says why");
        assert!(why.contains(&wrong.to_string()) && why.contains(wrong.currency.code()), "{why}");
        // Nothing that is no outcome takes it from the operator's list.
        for report in [Report::Processing, Report::Open, WRONG_CODE, Report::NotFound, paid(wrong)] {
            assert_eq!(pair.report(&report), Moved::Nowhere, "{report:?}");
        }
        assert_eq!(pair.started(Called::Answered(started(Method::Wave))), Moved::Nowhere);
        assert_eq!(pair.started(Called::Refused(FailureReason::ProviderError)), Moved::Nowhere);
        check(&pair, "processing/processing, unknown, outcome_unknown, redirect, parked");
    }
}

#[test]
fn the_right_amount_settles_what_was_parked_for_good() {
    let mut pair = Pair::waiting(Method::Wave);
    pair.report(&paid(dalasi(1)));
    assert_eq!(pair.report(&paid(dalasi(10_000))), Moved::ToPaid);
    check(&pair, "succeeded/completed, settled");
    assert_eq!(pair.resolve(false), Err(Refusal::AttemptNotUnknown { status: "completed" }));
}

#[test]
fn a_closed_session_whose_attempt_gets_paid() {
    for expired in [false, true] {
        let mut pair = Pair::closed(expired);
        let word = if expired { "cancelled/expired, waiting, expired" } else { "cancelled/cancelled, waiting" };
        check(&pair, word);
        assert_eq!(pair.report(&Report::Processing), Moved::Nowhere);
        assert_eq!(pair.report(&paid(dalasi(10_000))), Moved::ToPaid);
        check(&pair, "succeeded/completed, settled");
        assert_eq!(pair.report(&paid(dalasi(10_000))), Moved::Nowhere);
    }
}

#[test]
fn a_closed_session_whose_attempt_fails_keeps_its_word() {
    let mut pair = Pair::closed(true);
    assert_eq!(pair.report(&FAILED), Moved::On);
    check(&pair, "cancelled/expired, settled, expired");
    // An attempt that the rail was working on is over nevertheless (§4.3: processing, failure → failed).
    let mut pair = Pair::sending(Method::Qmoney);
    pair.started(Called::Lost("a timeout".into()));
    pair.report(&Report::AwaitingCode { attempts_left: 3 });
    pair.close(false);
    check(&pair, "cancelled/processing, waiting");
    assert_eq!(pair.report(&FAILED), Moved::On);
    check(&pair, "cancelled/failed, settled");
}

#[test]
fn only_a_person_decides_what_nobody_else_can_tell() {
    let undecided = [Pair::lost(), Pair::waiting(Method::Afrimoney), {
        let mut pair = Pair::waiting(Method::Wave);
        pair.report(&paid(dalasi(1)));
        pair
    }];
    for pair in undecided {
        let mut yes = pair.clone();
        assert_eq!(yes.resolve(true), Ok(Moved::ToPaid));
        check(&yes, "succeeded/completed, settled");
        assert_eq!(yes.resolve(true), Err(Refusal::AttemptNotUnknown { status: "completed" }));
        let mut no = pair.clone();
        assert_eq!(no.resolve(false), Ok(Moved::ToFailed));
        check(&no, "failed/failed, settled, provider_error");
        assert_eq!(no.resolve(false), Err(Refusal::AttemptNotUnknown { status: "failed" }));
    }
    for (mut pair, status) in [
        (Pair::waiting(Method::Wave), "pending"),
        (Pair::reported_from(Method::Wave, &FAILED), "failed"),
        (Pair::closed(false), "cancelled"),
        (Pair::closed(true), "expired"),
    ] {
        assert_eq!(pair.resolve(true), Err(Refusal::AttemptNotUnknown { status }));
    }
}

/// The worker makes the lost call once more, of which nobody else has heard yet.
#[test]
fn nobody_decides_while_the_lost_call_is_made_once_more() {
    let mut repeated = Pair::lost();
    let wave = repeated.session.method;
    assert!(repeated.repeat());
    check(&repeated, "processing/processing, sending, outcome_unknown");
    let refused = Refusal::AttemptNotUnknown { status: "processing" };
    for paid in [true, false] {
        assert_eq!(repeated.resolve(paid), Err(refused.clone()));
    }
    let amount = repeated.session.amount;
    let again = repeated.session.again(Some(&repeated.transaction), wave, amount);
    assert_eq!(again, Err(Refusal::PaymentInProgress), "as long as nobody knows what became of it");
    // What the first call, or another's, is told says nothing of this one.
    let unheard = [Called::Lost("a timeout".into()), Called::Refused(FailureReason::Declined)];
    for called in unheard.clone() {
        assert_eq!(repeated.started(called), Moved::Nowhere);
    }
    assert_eq!(repeated.report(&Report::NotFound), Moved::Nowhere);
    assert!(repeated.repeat(), "by whoever takes over");

    for called in unheard {
        let mut pair = repeated.clone();
        assert_eq!(pair.repeated(called.clone()), Moved::On);
        check(&pair, "processing/processing, unknown, outcome_unknown");
        assert_eq!(pair.repeated(called), Moved::Nowhere, "it has ended");
        assert_eq!(pair.resolve(false), Ok(Moved::ToFailed));
        assert!(!pair.repeat(), "it is decided");
    }
    let mut pair = repeated.clone();
    assert_eq!(pair.repeated(Called::Answered(started(Method::Wave))), Moved::On);
    check(&pair, "processing/processing, waiting, redirect");
    assert!(!pair.repeat(), "the rail has it");
    for (report, stands) in
        [(paid(dalasi(10_000)), "succeeded/completed, settled"), (FAILED, "failed/failed, settled, declined")]
    {
        let mut pair = repeated.clone();
        pair.report(&report);
        check(&pair, stands);
        assert_eq!(pair.repeated(Called::Answered(started(Method::Wave))), Moved::Nowhere);
    }
    let mut parked = repeated.clone();
    parked.report(&paid(dalasi(1)));
    assert!(!parked.repeat(), "a person has to look at it");
    assert!(!Pair::sending(Method::Wave).repeat(), "the first call is under way");
    assert!(!Pair::waiting(Method::Wave).repeat());
}

/// The call of the code's start is made once more, and then the payer types it.
#[test]
fn a_code_survives_a_start_that_is_repeated() {
    let mut pair = Pair::sending(Method::Qmoney);
    pair.started(Called::Lost("a timeout".into()));
    assert!(pair.repeat());
    assert_eq!(pair.repeated(Called::Answered(started(Method::Qmoney))), Moved::On);
    check(&pair, "pending/processing, waiting, otp, 3 left");
    assert_eq!(pair.code(), Ok(()));
}

#[test]
fn what_ran_out_had_expired_when_its_money_came() {
    let mut pair = Pair::waiting(Method::Wave);
    let until = pair.session.expires_at;
    assert_eq!(pair.session.reported(&mut pair.transaction, &paid(dalasi(10_000)), until), Moved::ToPaid);
    check(&pair, "succeeded/completed, settled");
    use TransactionStatus::{Completed, Expired, Pending};
    let moves: Vec<_> = pair.transaction.transitions.iter().map(|one| one.status).collect();
    assert_eq!(moves, [Pending, Expired, Completed]);
    let summary = pair.transaction.summary();
    let before = TransactionSummary { status: "expired".into(), ..summary.clone() };
    assert_eq!((pair.transaction.summary_before_money(), pair.transaction.failure_reason), (before, None));
    assert_eq!(Pair::waiting(Method::Wave).transaction.summary_before_money().status, "pending");
}

/// Who pays may be told at any time before the outcome. Only the phone was handed to the rail.
#[test]
fn what_is_told_while_it_is_under_way_is_known_of_both_halves() {
    let told = || Told {
        payer: Payer { email: Some("awa@example.gm".into()), name: Some("Awa".into()), ..payer("7654321") },
        metadata: Metadata::from_canonical(r#"{"desk":"3"}"#.into()),
        success_url: Some("https://shop.example/thanks".into()),
        failure_url: Some("https://shop.example/sorry".into()),
    };
    for mut pair in [Pair::sending(Method::Wave), Pair::waiting(Method::Wave), Pair::with_code(), Pair::lost()] {
        let phone = pair.session.payer.phone.clone();
        assert!(pair.session.tell(&mut pair.transaction, told(), seconds(9)));
        let known = Told { payer: Payer { phone, ..told().payer }, ..told() };
        assert_eq!(pair.session.told(), known);
        assert_eq!((&pair.transaction.payer, &pair.transaction.metadata), (&known.payer, &known.metadata));
        assert_eq!((pair.session.updated_at, pair.transaction.updated_at), (seconds(9), seconds(9)));
        let before = pair.clone();
        assert!(!pair.session.tell(&mut pair.transaction, told(), seconds(10)), "nothing of it is new");
        assert_eq!((pair.session, pair.transaction), (before.session, before.transaction));
    }
    let paid = Pair::reported_from(Method::Wave, &paid(dalasi(10_000)));
    for mut over in [paid, Pair::reported_from(Method::Wave, &FAILED), Pair::closed(false)] {
        let late = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            over.session.tell(&mut over.transaction, told(), seconds(9))
        }));
        assert!(late.is_err(), "what is over keeps what was told of it");
    }
}

#[test]
fn times_never_go_back() {
    let mut pair = Pair::waiting(Method::Wave);
    pair.session.reported(&mut pair.transaction, &Report::Processing, seconds(100));
    pair.session.reported(&mut pair.transaction, &paid(dalasi(10_000)), seconds(50));
    let times: Vec<Timestamp> = pair.transaction.transitions.iter().map(|moved| moved.at).collect();
    assert_eq!(times, [seconds(2), seconds(100), seconds(100)]);
    assert_eq!(pair.transaction.updated_at, seconds(100));
    assert_eq!(pair.session.updated_at, seconds(100));
}

#[test]
fn a_rail_is_asked_less_and_less_often_and_never_about_what_is_settled() {
    let mut pair = Pair::waiting(Method::Wave);
    let begun = pair.transaction.created_at;
    let pause = |pair: &mut Pair, hours: u64| {
        let now = begun.plus(Duration::from_secs(hours * 3_600));
        pair.transaction.next_question(now).expect("it is open").as_secs()
    };
    let pauses: Vec<u64> = (0..14).map(|_| pause(&mut pair, 0)).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]);
    let older = [8, 16, 80, 24 * 8, 24 * 30].map(|hours| pause(&mut pair, hours));
    assert_eq!(older, [3600, 7200, 36_000, 86_400, 86_400], "what is old is asked about more seldom");
    assert_eq!(pair.transaction.pause(), Duration::from_secs(3_600), "for a payer who waits nothing is old");
    pair.report(&Report::Processing);
    assert_eq!(pause(&mut pair, 24 * 30), 1, "now somebody waits for the outcome");
    assert_eq!(pair.transaction.pause(), Duration::from_secs(2));
    pair.report(&FAILED);
    assert_eq!(pair.transaction.next_question(begun), None);
}

#[test]
fn only_the_pair_moves_together() {
    let mut one = Pair::waiting(Method::Wave);
    let mut session = session(id(9), &checkout(dalasi(10_000)), Method::Wave, seconds(1));
    begin(&mut session, id(10), 250, seconds(2));
    let mixed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        session.reported(&mut one.transaction, &FAILED, seconds(3))
    }));
    assert!(mixed.is_err(), "a report for another session's attempt is a bug of ours");
}

/// A process that knows nothing of it has moved the session alone, or both back and forth.
#[test]
fn a_time_that_does_not_fit_wedges_nothing() {
    let strange = |mut pair: Pair| {
        pair.transaction.expires_at = Some(seconds(1));
        pair
    };
    let acts: [fn(&mut Pair) -> bool; 5] = [
        |pair| pair.report(&FAILED) == Moved::ToFailed,
        |pair| pair.report(&paid(dalasi(10_000))) == Moved::ToPaid,
        |pair| pair.code_submitted(Called::Lost("a timeout".into())) == Moved::On,
        |pair| pair.code_submitted(Called::Refused(FailureReason::Declined)) == Moved::ToFailed,
        |pair| pair.started(Called::Lost("a timeout".into())) == Moved::Nowhere,
    ];
    for act in acts {
        let mut pair = strange(Pair::with_code());
        assert!(act(&mut pair), "{}", pair.stand());
        assert_eq!(pair.transaction.expires_at(), None, "{}", pair.stand());
    }
    let mut pair = strange(Pair::lost());
    assert_eq!(pair.resolve(true), Ok(Moved::ToPaid));
    let mut pair = strange(Pair::waiting(Method::Wave));
    assert_eq!(pair.report(&Report::NotFound), Moved::Nowhere);
    assert_eq!(pair.transaction.expires_at(), Some(pair.session.expires_at));
    assert_eq!(pair.returned(), Moved::On);
    assert_eq!(pair.transaction.expires_at(), None);
}
