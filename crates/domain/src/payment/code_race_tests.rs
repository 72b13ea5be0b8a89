//! A code on its way to the rail, and a question about the same attempt that is answered meanwhile.

use super::*;
use crate::organization::Organization;
use crate::rail::{Called, Report, Started};
use crate::scope::Mode;
use crate::{Currency, Id};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn awaiting_code(left: u8) -> (PaymentSession, Transaction) {
    let organization: Id<Organization> = Id::new(at(0), [1; 10]);
    let scope = Scope { organization, mode: Mode::Test };
    let payable = Payable::Checkout(Id::new(at(0), [2; 10]));
    let amount = Money::new(10_000, Currency::gmd());
    let method = Some(Method::Qmoney);
    let id = Id::new(at(0), [3; 10]);
    let mut session = PaymentSession::open(id, scope, payable, amount, method, Payer::default(), at(600), at(0));
    let fee = Money::new(250, Currency::gmd());
    let mut attempt = session.begin(Id::new(at(0), [4; 10]), Method::Qmoney, "simulator".into(), fee, at(0));
    let next_action = NextAction::Otp { length: 6, resend_after_s: 30, attempts_left: left };
    session.started(&mut attempt, Called::Answered(Started { next_action, rail_reference: None }), at(1));
    (session, attempt)
}

fn tries_left(session: &PaymentSession) -> u8 {
    match session.next_action {
        Some(NextAction::Otp { attempts_left, .. }) => attempts_left,
        _ => panic!("a code is awaited"),
    }
}

#[test]
fn a_wrong_code_counts_although_an_older_answer_was_faster() {
    let (mut session, mut attempt) = awaiting_code(3);
    session.submit_code(Some(&mut attempt), at(2)).unwrap();
    let stale = session.reported(&mut attempt, &Report::AwaitingCode { attempts_left: 3 }, at(2));
    assert_eq!((stale, session.status(), tries_left(&session)), (Moved::Nowhere, SessionStatus::Processing, 3));
    let word = Called::Answered(Report::AwaitingCode { attempts_left: 2 });
    assert_eq!(session.code_submitted(&mut attempt, Some(at(2)), word, at(2)), Moved::On);
    assert_eq!((session.status(), tries_left(&session)), (SessionStatus::Pending, 2));
    assert_eq!(session.failure_reason, Some(FailureReason::WrongCode));
}

/// The rail's word told that the first one was wrong, before the answer to its own call.
#[test]
fn the_answer_about_a_code_of_before_says_nothing_about_the_next() {
    let two_left = Report::AwaitingCode { attempts_left: 2 };
    for answer in [
        Called::Answered(two_left.clone()),
        Called::Refused(FailureReason::ProviderError),
        Called::Lost("a reset".into()),
    ] {
        let (mut session, mut attempt) = awaiting_code(3);
        session.submit_code(Some(&mut attempt), at(2)).unwrap();
        assert_eq!(session.reported(&mut attempt, &two_left, at(3)), Moved::On);
        assert_eq!((session.status(), tries_left(&session)), (SessionStatus::Pending, 2));
        session.submit_code(Some(&mut attempt), at(5)).unwrap();
        let moved = session.code_submitted(&mut attempt, Some(at(2)), answer, at(6));
        assert_eq!((moved, session.status(), tries_left(&session)), (Moved::Nowhere, SessionStatus::Processing, 2));
        assert_eq!(attempt.code_sent_at, Some(at(5)), "it is on its way");
        let refused =
            session.code_submitted(&mut attempt, Some(at(5)), Called::Refused(FailureReason::Declined), at(7));
        assert_eq!((refused, session.status()), (Moved::ToFailed, SessionStatus::Failed));
    }
}

#[test]
fn nobody_gets_a_try_back() {
    let (mut session, mut attempt) = awaiting_code(2);
    for left in [2, 3] {
        let moved = session.reported(&mut attempt, &Report::AwaitingCode { attempts_left: left }, at(3));
        assert_eq!((moved, tries_left(&session), session.failure_reason), (Moved::Nowhere, 2, None));
    }
}

#[test]
fn a_new_code_may_be_sent_after_its_pause_while_one_is_awaited() {
    let (mut session, mut attempt) = awaiting_code(3);
    assert_eq!(session.code_again_at(&attempt), Some(at(30)));
    session.submit_code(Some(&mut attempt), at(2)).unwrap();
    assert_eq!(session.code_again_at(&attempt), None);
}

#[test]
fn a_code_that_never_arrived_is_asked_for_again_when_its_call_is_over() {
    let (mut session, mut attempt) = awaiting_code(3);
    session.submit_code(Some(&mut attempt), at(2)).unwrap();
    assert_eq!(attempt.code_on_its_way_until(), Some(at(32)));
    let still_three = Report::AwaitingCode { attempts_left: 3 };
    let early = session.reported(&mut attempt, &still_three, Timestamp::from_micros(at(32).micros() - 1));
    assert_eq!((early, session.status()), (Moved::Nowhere, SessionStatus::Processing));
    assert_eq!(session.reported(&mut attempt, &still_three, at(32)), Moved::On);
    assert_eq!((session.status(), session.failure_reason), (SessionStatus::Pending, None));
}

/// It may be on its way still: a payer who is shown another way to pay would pay twice.
#[test]
fn a_rail_that_lost_its_answer_is_believed_when_its_call_is_over() {
    let still_three = Report::AwaitingCode { attempts_left: 3 };
    let (mut session, mut attempt) = awaiting_code(3);
    session.submit_code(Some(&mut attempt), at(2)).unwrap();
    session.code_submitted(&mut attempt, Some(at(2)), Called::Lost("no answer".into()), at(3));
    assert_eq!(attempt.code_on_its_way_until(), Some(at(32)));
    let early = session.reported(&mut attempt, &still_three, at(4));
    assert_eq!((early, session.status(), session.outcome_unknown), (Moved::Nowhere, SessionStatus::Processing, true));
    let refused = Refusal::AttemptCodeOnItsWay { until: at(32) };
    assert_eq!(session.resolved(&mut attempt, false, at(31)), Err(refused), "nobody decides while it may arrive");
    assert_eq!(session.reported(&mut attempt, &still_three, at(32)), Moved::On);
    assert_eq!((session.status(), session.outcome_unknown), (SessionStatus::Pending, false));
}

#[test]
fn what_the_rail_counted_of_a_lost_code_is_believed_at_once() {
    let (mut session, mut attempt) = awaiting_code(3);
    session.submit_code(Some(&mut attempt), at(2)).unwrap();
    session.code_submitted(&mut attempt, Some(at(2)), Called::Lost("no answer".into()), at(3));
    assert_eq!(session.reported(&mut attempt, &Report::AwaitingCode { attempts_left: 2 }, at(4)), Moved::On);
    assert_eq!((session.status(), session.failure_reason), (SessionStatus::Pending, Some(FailureReason::WrongCode)));
}

/// Whoever called may wait for the answer for longer than the rail needs to tell it by itself.
#[test]
fn what_the_rail_said_of_a_code_outlives_its_call() {
    let words = [
        (Report::AwaitingCode { attempts_left: 2 }, SessionStatus::Pending),
        (Report::Processing, SessionStatus::Processing),
    ];
    for (word, status) in words {
        for called in [Called::Lost("a reset".into()), Called::Refused(FailureReason::ProviderError)] {
            let (mut session, mut attempt) = awaiting_code(3);
            session.submit_code(Some(&mut attempt), at(2)).unwrap();
            assert_eq!(session.reported(&mut attempt, &word, at(3)), Moved::On);
            assert!(attempt.is_code_on_its_way(at(3)) && !attempt.awaits_word_of_code(at(3)), "its call goes on");
            let moved = session.code_submitted(&mut attempt, Some(at(2)), called, at(4));
            assert_eq!((moved, session.status(), session.outcome_unknown), (Moved::Nowhere, status, false));
        }
    }
}

/// The process that handed it over died, and the rail is silent: a person has to be able to decide.
#[test]
fn a_code_that_nobody_tells_of_is_unknown_when_its_call_is_over() {
    let silence = || Called::Lost("nobody heard its answer".into());
    let (mut session, mut attempt) = awaiting_code(3);
    session.submit_code(Some(&mut attempt), at(2)).unwrap();
    let early = session.repeated(&mut attempt, silence(), Timestamp::from_micros(at(32).micros() - 1));
    assert_eq!((early, attempt.step()), (Moved::Nowhere, Step::Waiting));
    assert_eq!(session.repeated(&mut attempt, silence(), at(32)), Moved::On);
    assert_eq!((attempt.step(), session.outcome_unknown), (Step::Unknown, true));
    assert_eq!(session.repeated(&mut attempt, silence(), at(33)), Moved::Nowhere);
    assert_eq!(session.resolved(&mut attempt, false, at(34)), Ok(Moved::ToFailed));
}

/// It may take effect still: a code that could be typed once more would let the payer leave for another method.
#[test]
fn an_older_answer_to_the_start_gives_no_code_back() {
    let next_action = NextAction::Otp { length: 6, resend_after_s: 30, attempts_left: 3 };
    let (mut session, mut attempt) = awaiting_code(3);
    session.submit_code(Some(&mut attempt), at(2)).unwrap();
    session.code_submitted(&mut attempt, Some(at(2)), Called::Lost("no answer".into()), at(3));
    assert!(!session.repeat_start(&mut attempt), "the start had been answered");
    let started = Started { next_action, rail_reference: None };
    assert_eq!(session.started(&mut attempt, Called::Answered(started), at(4)), Moved::Nowhere);
    assert_eq!((attempt.step(), session.status()), (Step::Unknown, SessionStatus::Processing));
}
