//! What needs no installation: the judgements, where a test from outside could not set the clock.

use std::net::IpAddr;

use domain::Timestamp;

use super::clock::{self, Asked, Times};
use super::report::Status;
use super::server;

const SECOND: i64 = 1_000_000;

fn asked(said_us: i64, unit_us: i64) -> Asked {
    Asked { whose: "another".into(), before_us: 100 * SECOND, after_us: 101 * SECOND, said_us, unit_us }
}

fn status(times: Times, date: Option<Asked>) -> Status {
    clock::judge(&times, date).iter().map(|finding| finding.status).max().expect("something is said")
}

#[test]
fn another_clock_is_judged_by_what_is_certain() {
    for (said_s, unit_us, wanted) in [
        (100, 1, Status::Ok),
        (103, 1, Status::Ok),
        (104, 1, Status::Warning),
        (111, 1, Status::Warning),
        (112, 1, Status::Failed),
        (98, 1, Status::Ok),
        (97, 1, Status::Warning),
        (89, 1, Status::Failed),
        // It says whole seconds: it may be almost one further.
        (97, SECOND, Status::Ok),
        (96, SECOND, Status::Warning),
        (88, SECOND, Status::Failed),
    ] {
        assert_eq!(status(Times::default(), Some(asked(said_s * SECOND, unit_us))), wanted, "{said_s} {unit_us}");
        let times = Times { server: Some(asked(said_s * SECOND, unit_us)), newest: None };
        assert_eq!(status(times, None), wanted, "{said_s} {unit_us}");
    }
}

/// What answers here goes by the clock that would be held against itself.
#[test]
fn no_clock_is_held_against_itself() {
    assert!(server::is_of_this_machine(IpAddr::from([127, 0, 0, 1])));
    // Of documentation: nobody has it.
    assert!(!server::is_of_this_machine(IpAddr::from([192, 0, 2, 1])));
    let said = |times, date| clock::judge(&times, date).iter().any(|finding| finding.found.contains("no other clock"));
    let newest = Some((Timestamp::from_micros(SECOND), 100 * SECOND));
    assert!(said(Times { server: None, newest }, None));
    assert!(!said(Times { server: None, newest }, Some(asked(100 * SECOND, SECOND))));
    assert!(!said(Times { server: Some(asked(100 * SECOND, 1)), newest }, None));
}

#[test]
fn what_was_stored_in_the_future_tells_that_a_clock_went_back() {
    for (newest_s, wanted) in [(1, Status::Ok), (101, Status::Ok), (104, Status::Warning), (200, Status::Failed)] {
        let newest = Some((Timestamp::from_micros(newest_s * SECOND), 100 * SECOND));
        assert_eq!(status(Times { server: None, newest }, None), wanted, "{newest_s}");
    }
    assert_eq!(status(Times::default(), None), Status::Ok);
}
