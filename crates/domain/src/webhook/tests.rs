//! Contract §4.15 and §4.16 as tables, the schedule (P12) and the rotation of secrets (P11).

use super::*;
use crate::sample::{at, id, scope, seconds};
use crate::table::table;

const FIVE_DAYS: Duration = Duration::from_secs(5 * 24 * 3600);

fn endpoint(status: EndpointStatus) -> WebhookEndpoint {
    let is_active = status == EndpointStatus::Active;
    WebhookEndpoint {
        id: id(5),
        scope: scope(),
        version: 1,
        url: "https://shop.example/hook".into(),
        description: None,
        enabled_events: vec![EventFilter::parse("payment.*").expect("it is known")],
        status,
        secret: "first".into(),
        previous_secret: None,
        later_secrets: Vec::new(),
        metadata: Metadata::default(),
        consecutive_failures: 3,
        failing_since: is_active.then(|| at(0)),
        last_success_at: None,
        last_failure_at: None,
        disabled_at: (!is_active).then(|| at(0)),
        disable_reason: (!is_active).then_some(DisableReason::Failing),
        giving_up: None,
        given_up_to: None,
        created_at: at(0),
        updated_at: at(0),
    }
}

fn failed(status: u16) -> Attempted {
    Attempted::Failed { status: Some(status), error: "no".into(), retry_after: None, gone: status == 410 }
}

const SUCCEEDED: Attempted = Attempted::Succeeded { status: 204 };

enum Action {
    Activate,
    Deactivate,
    EventOccurs,
    /// Of which try of its event.
    Attempt(Attempted, i64, Timestamp),
}

fn endpoint_cell(before: &WebhookEndpoint, action: &Action) -> String {
    let mut endpoint = before.clone();
    let mut owed = None;
    match action {
        Action::Activate => endpoint.activate(),
        Action::Deactivate => endpoint.deactivate(),
        Action::EventOccurs => owed = Some(endpoint.wants(EventType::PaymentSucceeded)),
        Action::Attempt(outcome, tries, now) => endpoint.attempted(outcome, *tries, *now),
    }
    let state = if endpoint.status == before.status { "=" } else { endpoint.status.as_str() };
    let mut words = vec![state.to_owned()];
    words.extend(owed.map(|owed| if owed { "owed" } else { "not owed" }.to_owned()));
    if endpoint.consecutive_failures != before.consecutive_failures {
        words.push(format!("failures {}", endpoint.consecutive_failures));
    }
    if endpoint.disable_reason != before.disable_reason {
        words.push(endpoint.disable_reason.map_or("no reason", DisableReason::as_str).to_owned());
    }
    if endpoint.disabled_at != before.disabled_at {
        words.push(if endpoint.disabled_at.is_some() { "disabled_at" } else { "no disabled_at" }.to_owned());
    }
    words.join(", ")
}

#[test]
fn endpoints_go_as_the_contract_says() {
    let states = [("active", endpoint(EndpointStatus::Active)), ("inactive", endpoint(EndpointStatus::Inactive))];
    let end = at(0).plus(FIVE_DAYS);
    let actions = [
        ("status=active", Action::Activate),
        ("status=inactive", Action::Deactivate),
        ("event", Action::EventOccurs),
        ("succeeds", Action::Attempt(SUCCEEDED, 1, seconds(9))),
        ("fails", Action::Attempt(failed(500), 4, seconds(9))),
        ("410", Action::Attempt(failed(410), 1, seconds(9))),
        ("fails at 5 d − 1 µs", Action::Attempt(failed(500), 4, end.minus(Duration::from_micros(1)))),
        ("fails at 5 d", Action::Attempt(failed(500), 4, end)),
        ("its third try fails at 5 d", Action::Attempt(failed(500), 3, end)),
    ];
    insta::assert_snapshot!(table(&states, &actions, endpoint_cell), @r"
             | status=active                                 | status=inactive | event       | succeeds      | fails         | 410                                     | fails at 5 d − 1 µs | fails at 5 d                               | its third try fails at 5 d
    active   | =                                             | inactive        | =, owed     | =, failures 0 | =, failures 4 | inactive, failures 4, gone, disabled_at | =, failures 4       | inactive, failures 4, failing, disabled_at | =, failures 4
    inactive | active, failures 0, no reason, no disabled_at | =               | =, not owed | =             | =             | =                                       | =                   | =                                          | =
    ");
}

#[test]
fn one_success_ends_five_days_of_failures() {
    let mut endpoint = endpoint(EndpointStatus::Active);
    endpoint.attempted(&SUCCEEDED, 4, at(0).plus(FIVE_DAYS).minus(Duration::from_micros(1)));
    assert_eq!((endpoint.consecutive_failures, endpoint.failing_since), (0, None));
    endpoint.attempted(&failed(500), 4, at(0).plus(FIVE_DAYS));
    assert!(endpoint.is_active(), "the five days start anew");
    assert_eq!(endpoint.failing_since, Some(at(0).plus(FIVE_DAYS)));
}

/// Or five days are never over.
#[test]
fn failures_dated_by_a_clock_that_was_ahead_begin_anew() {
    let mut endpoint = endpoint(EndpointStatus::Active);
    endpoint.failing_since = Some(at(0).plus(Duration::from_secs(3_650 * 24 * HOUR)));
    endpoint.attempted(&failed(500), 4, at(0));
    assert_eq!(endpoint.failing_since, Some(at(0)));
    endpoint.attempted(&failed(500), 4, at(0).plus(FIVE_DAYS));
    assert_eq!(endpoint.disable_reason, Some(DisableReason::Failing));
}

#[test]
fn coming_back_starts_from_nothing() {
    let mut endpoint = endpoint(EndpointStatus::Active);
    endpoint.attempted(&failed(410), 4, seconds(1));
    assert_eq!((endpoint.disable_reason, endpoint.disabled_at), (Some(DisableReason::Gone), Some(seconds(1))));
    assert!(!endpoint.wants(EventType::PaymentSucceeded), "nothing is owed to an inactive endpoint");
    endpoint.attempted(&failed(500), 4, seconds(2));
    assert_eq!(endpoint.disabled_at, Some(seconds(1)), "disabled once");
    endpoint.activate();
    assert_eq!((endpoint.consecutive_failures, endpoint.failing_since), (0, None));
    assert_eq!((endpoint.disable_reason, endpoint.disabled_at), (None, None));
}

#[test]
fn an_address_starts_from_nothing() {
    let mut endpoint = endpoint(EndpointStatus::Active);
    endpoint.moved_to("https://shop.example/new".into());
    assert_eq!((endpoint.consecutive_failures, endpoint.failing_since), (0, None));
    endpoint.attempted(&failed(500), 4, at(0).plus(FIVE_DAYS));
    assert!(endpoint.is_active(), "it has not failed for five days");
    let mut endpoint = self::endpoint(EndpointStatus::Inactive);
    endpoint.moved_to("https://shop.example/new".into());
    assert_eq!(endpoint.disable_reason, Some(DisableReason::Failing), "it is not switched on by that");
}

fn delivery(status: DeliveryStatus, tries: u8) -> Delivery {
    let event = Event {
        id: id(6),
        scope: scope(),
        kind: EventType::PaymentSucceeded.into(),
        object_id: "cs_1".into(),
        sequence: 1,
        body: "{}".into(),
        created_at: at(0),
    };
    let mut delivery = Delivery::owed(&event, id(5), at(0));
    (0..tries).for_each(|_| delivery.attempted(&failed(500), at(0), 1000));
    match status {
        DeliveryStatus::Pending => {}
        DeliveryStatus::Delivered => delivery.attempted(&SUCCEEDED, at(0), 1000),
        DeliveryStatus::Failed => delivery.attempted(&failed(410), at(0), 1000),
    }
    assert_eq!(delivery.status, status);
    delivery
}

enum Step {
    Attempt(Attempted),
    GiveUp,
    Retry,
}

fn delivery_cell(before: &Delivery, step: &Step) -> String {
    let mut delivery = before.clone();
    match step {
        // The worker attempts open deliveries only.
        Step::Attempt(_) if before.status != DeliveryStatus::Pending => return "–".into(),
        Step::Attempt(outcome) => delivery.attempted(outcome, seconds(1), 1000),
        Step::GiveUp => delivery.give_up(seconds(1)),
        Step::Retry => delivery.retry(seconds(1)),
    }
    let is_moved = Delivery { updated_at: before.updated_at, ..delivery.clone() } != *before;
    assert_eq!(delivery.updated_at, if is_moved { Some(seconds(1)) } else { before.updated_at }, "moved with it");
    let state = if delivery.status == before.status { "=" } else { delivery.status.as_str() };
    let due = delivery.next_retry_at.map(|due| format!(", due in {} s", due.since(seconds(1)).as_secs()));
    let round = match before.round_attempts > 0 && delivery.round_attempts == 0 {
        true => ", schedule anew",
        false => "",
    };
    format!("{state}{}{round}", due.unwrap_or_default())
}

#[test]
fn deliveries_go_as_the_contract_says() {
    let states = [
        ("pending", delivery(DeliveryStatus::Pending, 1)),
        ("pending, last try", delivery(DeliveryStatus::Pending, 9)),
        ("delivered", delivery(DeliveryStatus::Delivered, 1)),
        ("failed", delivery(DeliveryStatus::Failed, 1)),
    ];
    let steps = [
        ("succeeds", Step::Attempt(SUCCEEDED)),
        ("fails", Step::Attempt(failed(500))),
        ("410", Step::Attempt(failed(410))),
        ("endpoint inactive", Step::GiveUp),
        ("retry", Step::Retry),
    ];
    insta::assert_snapshot!(table(&states, &steps, delivery_cell), @r"
                      | succeeds  | fails           | 410    | endpoint inactive | retry
    pending           | delivered | =, due in 300 s | failed | failed            | =, due in 0 s
    pending, last try | delivered | failed          | failed | failed            | =, due in 0 s
    delivered         | –         | –               | –      | =                 | pending, due in 0 s, schedule anew
    failed            | –         | –               | –      | =                 | pending, due in 0 s, schedule anew
    ");
}

#[test]
fn a_retry_by_hand_has_the_whole_schedule_before_it() {
    let mut delivery = delivery(DeliveryStatus::Pending, 9);
    delivery.attempted(&failed(500), at(0), 1000);
    assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Failed, 10));
    delivery.retry(seconds(7));
    assert_eq!((delivery.status, delivery.next_retry_at), (DeliveryStatus::Pending, Some(seconds(7))));
    for _ in 0..9 {
        delivery.attempted(&failed(500), seconds(7), 1000);
        assert_eq!(delivery.status, DeliveryStatus::Pending);
    }
    delivery.attempted(&failed(500), seconds(7), 1000);
    assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Failed, 20));
    assert_eq!(delivery.last_status_code, Some(500));
}

#[test]
fn only_an_open_delivery_is_attempted() {
    let mut delivery = delivery(DeliveryStatus::Delivered, 0);
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| delivery.attempted(&SUCCEEDED, at(0), 0)));
    assert!(again.is_err(), "a second attempt of what was delivered is a bug of ours");
}

fn signing(endpoint: &WebhookEndpoint, now: Timestamp) -> Vec<&str> {
    endpoint.old_secrets(now).chain([endpoint.secret.as_str()]).collect()
}

#[test]
fn both_secrets_sign_for_a_day() {
    let mut endpoint = endpoint(EndpointStatus::Active);
    assert_eq!(signing(&endpoint, at(0)), ["first"]);
    endpoint.rotate("second".into(), at(0));
    let end = at(0).plus(ROTATION_OVERLAP);
    assert_eq!(ROTATION_OVERLAP, crate::sample::DAY);
    for now in [at(0), end.minus(Duration::from_micros(1))] {
        assert_eq!(signing(&endpoint, now), ["first", "second"]);
    }
    for now in [end, end.plus(Duration::from_micros(1))] {
        assert_eq!(signing(&endpoint, now), ["second"]);
    }
}

#[test]
fn a_second_rotation_silences_nobody() {
    let mut endpoint = endpoint(EndpointStatus::Active);
    endpoint.rotate("second".into(), at(0));
    endpoint.rotate("third".into(), seconds(10));
    let end = at(0).plus(ROTATION_OVERLAP);
    assert_eq!(signing(&endpoint, seconds(10)), ["first", "second", "third"]);
    assert_eq!(signing(&endpoint, end.minus(Duration::from_micros(1))), ["first", "second", "third"]);
    assert_eq!(signing(&endpoint, end), ["second", "third"]);
    assert_eq!(signing(&endpoint, end.plus(Duration::from_secs(10))), ["third"]);
    // What no longer signs isn't kept.
    endpoint.rotate("fourth".into(), end);
    assert_eq!(endpoint.previous_secret, Some(("second".into(), end.plus(Duration::from_secs(10)))));
    assert_eq!(endpoint.later_secrets, [("third".into(), end.plus(ROTATION_OVERLAP))]);
}

#[test]
fn of_many_rotations_the_first_and_the_newest_sign() {
    let mut endpoint = endpoint(EndpointStatus::Active);
    for (second, name) in (1..).zip(["2nd", "3rd", "4th", "5th", "6th", "7th"]) {
        endpoint.rotate(name.into(), seconds(second));
        assert!(signing(&endpoint, seconds(second)).len() <= MOST_SECRETS);
    }
    assert_eq!(signing(&endpoint, seconds(9)), ["first", "4th", "5th", "6th", "7th"]);
}

/// Or it signs until then, years after its end, and is the one in the header that has room for one.
#[test]
fn a_secret_replaced_by_a_clock_that_was_ahead_signs_for_a_day() {
    let ahead = at(0).plus(Duration::from_secs(3_650 * 24 * HOUR));
    let mut endpoint = endpoint(EndpointStatus::Active);
    endpoint.rotate("second".into(), ahead);
    assert_eq!(signing(&endpoint, at(0)), ["first", "second"], "whoever knows the first alone hears it still");
    endpoint.attempted(&SUCCEEDED, 1, at(0));
    let end = at(0).plus(ROTATION_OVERLAP);
    assert_eq!(signing(&endpoint, end.minus(Duration::from_micros(1))), ["first", "second"]);
    assert_eq!(signing(&endpoint, end), ["second"]);
    // A later attempt puts nothing off, and where the clock was right it changes nothing.
    endpoint.attempted(&failed(500), 1, seconds(9));
    assert_eq!(endpoint.previous_secret, Some(("first".into(), end)));

    // A rotation finds it out as well, for all that were replaced.
    for (first, second) in [(ahead, ahead), (ahead, ahead.plus(Duration::from_secs(9)))] {
        let mut endpoint = self::endpoint(EndpointStatus::Inactive);
        endpoint.rotate("second".into(), first);
        endpoint.rotate("third".into(), second);
        endpoint.rotate("fourth".into(), at(0));
        assert_eq!(signing(&endpoint, at(0)), ["first", "second", "third", "fourth"]);
        assert_eq!(signing(&endpoint, end), ["fourth"]);
    }
    // So does a test of an inactive one.
    let mut endpoint = self::endpoint(EndpointStatus::Inactive);
    endpoint.rotate("second".into(), ahead);
    endpoint.rotate("third".into(), ahead);
    endpoint.attempted(&failed(500), 1, at(0));
    assert_eq!(signing(&endpoint, end), ["third"]);
}

#[test]
fn a_secret_that_was_stored_alone_still_signs() {
    let mut endpoint = endpoint(EndpointStatus::Active);
    endpoint.rotate("second".into(), at(0));
    let stored = serde_json::to_string(&endpoint).expect("it is written");
    let earlier = stored.replace(r#""later_secrets":[],"#, "");
    assert_ne!(earlier, stored);
    let read: WebhookEndpoint = serde_json::from_str(&earlier).expect("the earlier form is read");
    assert_eq!(signing(&read, seconds(1)), ["first", "second"]);
}

#[test]
fn the_schedule_is_ten_attempts_over_75_hours() {
    let waits: Vec<u64> = (0..).map_while(|made| next_wait(made, None, 1000)).map(|wait| wait.as_secs()).collect();
    assert_eq!(waits, [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
    assert_eq!(waits.iter().sum::<u64>(), 75 * HOUR + 35 * MINUTE + 5);
}

#[test]
fn jitter_is_ten_percent_at_most() {
    for made in 1..10 {
        let wait = |jitter| next_wait(made, None, jitter).expect("within the schedule").as_millis();
        assert_eq!(wait(0) * 10, wait(1000) * 9);
        assert_eq!(wait(2000) * 10, wait(1000) * 11);
        assert_eq!(wait(u64::MAX), wait(2000), "bounded");
    }
}

#[test]
fn a_receiver_can_only_lengthen_a_wait() {
    let wait = |seconds| next_wait(1, Some(Duration::from_secs(seconds)), 1000).expect("within").as_secs();
    assert_eq!(wait(1), 5);
    assert_eq!(wait(60), 60);
    assert_eq!(wait(1_000_000), 24 * HOUR);
    assert_eq!(next_wait(10, Some(Duration::from_secs(1)), 1000), None, "and not revive it");
}

#[test]
fn the_longest_wait_is_the_last_one_with_all_its_jitter() {
    assert_eq!(longest_wait(), Duration::from_secs(26 * HOUR + 24 * MINUTE));
}

#[test]
fn a_delivery_lives_as_long_as_its_longest_waits() {
    let waits = 8 * 24 * HOUR + 24 * HOUR * 11 / 10;
    let attempts = 10 * 15;
    let life = longest_life().as_secs();
    assert!((waits + attempts..waits + 24 * HOUR).contains(&life), "{life} s");
}

#[test]
fn filters() {
    for good in ["*", "payment.succeeded", "payment_link.*", "checkout.*"] {
        assert!(EventFilter::parse(good).is_some(), "{good}");
    }
    for bad in
        ["", "payment", "payment.", "nothing.*", "payment.nothing", "**", "webhook.test", "webhook.*", "Payment.*"]
    {
        assert!(EventFilter::parse(bad).is_none(), "{bad}");
    }
    let matches = |filter, kind| EventFilter::parse(filter).expect("it is known").matches(kind);
    assert!(matches("payment.*", EventType::PaymentFailed));
    assert!(matches("*", EventType::CheckoutExpired));
    assert!(!matches("payment.*", EventType::PaymentLinkCreated), "a resource is the whole word");
    assert!(!matches("payment.failed", EventType::PaymentSucceeded));
}

#[test]
fn every_event_type_of_the_contract_is_read_as_it_is_written() {
    for kind in EventType::ALL {
        assert_eq!(EventType::parse(kind.as_str()), Some(*kind));
        assert_eq!(serde_json::to_string(kind).expect("it is data"), format!("\"{}\"", kind.as_str()));
    }
    assert_eq!(EventType::ALL.len(), 13 + 16 + 1, "documented, ours, and the test");
}
